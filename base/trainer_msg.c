#include "base/trainer_msg.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/pack.h"

typedef enum field_type {
    FIELD_U32,
    FIELD_U64,
    FIELD_F64,
    FIELD_BOOL,
    FIELD_ENUM,
    FIELD_BIN16,
    FIELD_BIN32,
    FIELD_ENERGY,
    FIELD_ITEMS,
    FIELD_RANGES,
    FIELD_TEXT
} field_type;

typedef struct field {
    const char *key;
    field_type type;
    size_t offset;
    uint32_t least; /* FIELD_ENUM: the values that exist */
    uint32_t most;
} field;

#define FIELD(key_, type_, member)                                                                 \
    {                                                                                              \
        .key = (key_), .type = (type_), .offset = offsetof(dp_trainer_msg, member)                 \
    }

typedef enum field_id {
    ABI,
    PID,
    ROUND,
    ELEMENTS,
    TOKENS,
    CARRIED,
    STEPS,
    SKIPPED,
    SPIKES,
    COMPUTED_US,
    TRAINED_US,
    ID,
    OF,
    EXCHANGE,
    MEMBER,
    ROOT,
    LOSS,
    BITS,
    MOVED,
    OUTER_REACH,
    NORM,
    ERROR,
    WEIGHT_OWN,
    WEIGHT_OTHER,
    ENERGY,
    ALPHA,
    CLIP,
    LAMBDA,
    SETTLE,
    RESTORE,
    DENSE,
    OK,
    FOREIGN,
    LACKS,
    SEED,
    ITEMS,
    LEASED,
    OWN,
    LEASE,
    NAME,
    DEVICE,
    WHAT,
    PROMPT,
    TEXT,
    FIELD_COUNT
} field_id;

static const field fields[FIELD_COUNT] = {
    [ABI] = FIELD("abi", FIELD_U32, abi),
    [PID] = FIELD("pid", FIELD_U32, pid),
    [ROUND] = FIELD("round", FIELD_U64, round),
    [ELEMENTS] = FIELD("elements", FIELD_U64, elements),
    [TOKENS] = FIELD("tokens", FIELD_U64, tokens),
    [CARRIED] = FIELD("carried", FIELD_U64, carried),
    [STEPS] = FIELD("steps", FIELD_U32, steps),
    [SKIPPED] = FIELD("skipped", FIELD_U32, skipped),
    [SPIKES] = FIELD("spikes", FIELD_U32, spikes),
    [COMPUTED_US] = FIELD("computed_us", FIELD_U64, computed_us),
    [TRAINED_US] = FIELD("trained_us", FIELD_U64, trained_us),
    [ID] = FIELD("id", FIELD_U32, id),
    [OF] = {.key = "of",
            .type = FIELD_ENUM,
            .offset = offsetof(dp_trainer_msg, of),
            .least = 0,
            .most = DP_TRAINER_KIND_COUNT - 1},
    [EXCHANGE] = FIELD("exchange", FIELD_BIN16, exchange),
    [MEMBER] = FIELD("member", FIELD_BIN32, member),
    [ROOT] = FIELD("root", FIELD_BIN32, root),
    [LOSS] = FIELD("loss", FIELD_F64, loss),
    [BITS] = FIELD("bits_per_byte", FIELD_F64, bits_per_byte),
    [MOVED] = FIELD("moved", FIELD_F64, moved),
    [OUTER_REACH] = FIELD("outer_reach", FIELD_F64, outer_reach),
    [NORM] = FIELD("norm", FIELD_F64, norm),
    [ERROR] = FIELD("error", FIELD_F64, error),
    [WEIGHT_OWN] = FIELD("weight_own", FIELD_U64, weight_own),
    [WEIGHT_OTHER] = FIELD("weight_other", FIELD_U64, weight_other),
    [ENERGY] = FIELD("energy", FIELD_ENERGY, energy),
    [ALPHA] = FIELD("alpha", FIELD_U32, alpha),
    [CLIP] = FIELD("clip", FIELD_U32, clip),
    [LAMBDA] = FIELD("lambda", FIELD_U32, lambda),
    [SETTLE] = {.key = "settle",
                .type = FIELD_ENUM,
                .offset = offsetof(dp_trainer_msg, settle),
                .least = DP_SETTLE_NONE,
                .most = DP_SETTLE_LEFT_OUT},
    [RESTORE] = {.key = "kind",
                 .type = FIELD_ENUM,
                 .offset = offsetof(dp_trainer_msg, restore),
                 .least = DP_RESTORE_PENDING,
                 .most = DP_RESTORE_FROZEN},
    [DENSE] = FIELD("dense", FIELD_BOOL, dense),
    [OK] = FIELD("ok", FIELD_BOOL, ok),
    [FOREIGN] = FIELD("foreign", FIELD_BOOL, foreign),
    [LACKS] = FIELD("lacks", FIELD_BOOL, lacks),
    [SEED] = FIELD("seed", FIELD_U64, seed),
    [ITEMS] = FIELD("items", FIELD_ITEMS, q),
    [LEASED] = FIELD("leased", FIELD_U64, reach.leased),
    [OWN] = FIELD("own", FIELD_U64, reach.own),
    [LEASE] = FIELD("lease", FIELD_RANGES, ranges),
    [NAME] = FIELD("name", FIELD_TEXT, text),
    [DEVICE] = FIELD("device", FIELD_TEXT, text),
    [WHAT] = FIELD("what", FIELD_TEXT, text),
    [PROMPT] = FIELD("prompt", FIELD_TEXT, text),
    [TEXT] = FIELD("text", FIELD_TEXT, text),
};

_Static_assert(sizeof(dp_settle) == 4 && sizeof(dp_restore) == 4 && sizeof(dp_trainer_kind) == 4,
               "enums are read and written as four bytes");

/* Which fields a kind carries: bit i stands for fields[i]. */
typedef struct shape {
    const char *name;
    uint64_t fields;
    uint64_t optional; /* of fields: what may be absent, as from a trainer that does not know it */
} shape;

#define BIT(id) (UINT64_C(1) << (id))

static const shape shapes[DP_TRAINER_KIND_COUNT] = {
    [DP_TRAINER_HELLO] = {.name = "hello", .fields = BIT(ABI) | BIT(NAME) | BIT(PID)},
    [DP_TRAINER_OPEN] = {.name = "open", .fields = BIT(MEMBER) | BIT(SEED)},
    [DP_TRAINER_OPENED] = {.name = "opened",
                           .fields = BIT(ELEMENTS) | BIT(DEVICE),
                           .optional = BIT(DEVICE)},
    [DP_TRAINER_INIT] = {.name = "init", .fields = 0},
    [DP_TRAINER_LOAD] = {.name = "load", .fields = BIT(ROUND)},
    [DP_TRAINER_READY_AT] = {.name = "ready_at", .fields = BIT(ROUND) | BIT(ROOT)},
    [DP_TRAINER_RESTORE] = {.name = "restore",
                            .fields = BIT(ROUND) | BIT(RESTORE) | BIT(SETTLE) | BIT(CLIP) |
                                      BIT(LAMBDA) | BIT(STEPS) | BIT(TOKENS)},
    [DP_TRAINER_TRAIN] = {.name = "train",
                          .fields = BIT(ROUND) | BIT(TOKENS) | BIT(LEASED) | BIT(OWN) | BIT(LEASE)},
    [DP_TRAINER_STEP] = {.name = "step",
                         .fields = BIT(ROUND) | BIT(STEPS) | BIT(TOKENS) | BIT(LOSS) |
                                   BIT(SKIPPED) | BIT(SPIKES) | BIT(COMPUTED_US) | BIT(TRAINED_US),
                         .optional =
                             BIT(SKIPPED) | BIT(SPIKES) | BIT(COMPUTED_US) | BIT(TRAINED_US)},
    [DP_TRAINER_PUBLISH] = {.name = "publish", .fields = BIT(ROUND) | BIT(DENSE)},
    [DP_TRAINER_PUBLISHED] = {.name = "published",
                              .fields = BIT(ROUND) | BIT(STEPS) | BIT(TOKENS) | BIT(LOSS) |
                                        BIT(CARRIED) | BIT(ENERGY) | BIT(LEASED) | BIT(OWN) |
                                        BIT(NORM) | BIT(ERROR),
                              .optional = BIT(NORM) | BIT(ERROR)},
    [DP_TRAINER_CHECK] = {.name = "check", .fields = BIT(ID)},
    [DP_TRAINER_CHECKED] = {.name = "checked",
                            .fields = BIT(ID) | BIT(OK) | BIT(ENERGY) | BIT(FOREIGN),
                            .optional = BIT(FOREIGN)},
    [DP_TRAINER_APPLY] = {.name = "apply",
                          .fields = BIT(ROUND) | BIT(TOKENS) | BIT(ALPHA) | BIT(SETTLE) |
                                    BIT(CLIP) | BIT(LAMBDA) | BIT(ITEMS)},
    [DP_TRAINER_APPLIED] = {.name = "applied",
                            .fields = BIT(ROUND) | BIT(ROOT) | BIT(OUTER_REACH),
                            .optional = BIT(OUTER_REACH)},
    [DP_TRAINER_FREEZE] = {.name = "freeze", .fields = BIT(EXCHANGE)},
    [DP_TRAINER_FROZEN] = {.name = "frozen",
                           .fields =
                               BIT(EXCHANGE) | BIT(STEPS) | BIT(TOKENS) | BIT(LEASED) | BIT(OWN)},
    [DP_TRAINER_MIX] = {.name = "mix",
                        .fields =
                            BIT(EXCHANGE) | BIT(WEIGHT_OWN) | BIT(WEIGHT_OTHER) | BIT(LAMBDA)},
    [DP_TRAINER_MIXED] = {.name = "mixed", .fields = BIT(EXCHANGE) | BIT(MOVED)},
    [DP_TRAINER_EVAL] = {.name = "eval", .fields = BIT(TOKENS)},
    [DP_TRAINER_EVALUATED] = {.name = "evaluated", .fields = BIT(LOSS) | BIT(BITS) | BIT(TOKENS)},
    [DP_TRAINER_SAMPLE] = {.name = "sample", .fields = BIT(PROMPT) | BIT(TOKENS) | BIT(SEED)},
    [DP_TRAINER_SAMPLED] = {.name = "sampled", .fields = BIT(TEXT)},
    [DP_TRAINER_STOP] = {.name = "stop", .fields = 0},
    [DP_TRAINER_FAILED] = {.name = "failed",
                           .fields = BIT(WHAT) | BIT(OF) | BIT(LACKS),
                           .optional = BIT(OF) | BIT(LACKS)},
};

const char *dp_trainer_kind_name(dp_trainer_kind kind)
{
    if (kind < DP_TRAINER_HELLO || kind >= DP_TRAINER_KIND_COUNT) {
        return "unknown";
    }
    return shapes[kind].name;
}

static void pack_field(dp_packer *packer, const dp_trainer_msg *msg, const field *f)
{
    const char *const at = (const char *)msg + f->offset;
    uint32_t small;
    uint64_t large;
    double real;
    bool flag;
    uint8_t energy[16];
    dp_writer writer = dp_writer_of(energy, sizeof energy);
    dp_pack_text(packer, f->key);
    switch (f->type) {
    case FIELD_U32:
    case FIELD_ENUM:
        memcpy(&small, at, sizeof small);
        dp_pack_u64(packer, small);
        break;
    case FIELD_U64:
        memcpy(&large, at, sizeof large);
        dp_pack_u64(packer, large);
        break;
    case FIELD_F64:
        memcpy(&real, at, sizeof real);
        dp_pack_f64(packer, real);
        break;
    case FIELD_BOOL:
        memcpy(&flag, at, sizeof flag);
        dp_pack_bool(packer, flag);
        break;
    case FIELD_BIN16:
        dp_pack_bytes(packer, dp_view_of(at, 16));
        break;
    case FIELD_BIN32:
        dp_pack_bytes(packer, dp_view_of(at, 32));
        break;
    case FIELD_ENERGY:
        dp_write_u128(&writer, msg->energy);
        dp_pack_bytes(packer, dp_view_of(energy, sizeof energy));
        break;
    case FIELD_ITEMS:
        dp_pack_array(packer, msg->n_items);
        for (uint32_t i = 0; i < msg->n_items; i++) {
            dp_pack_u64(packer, msg->q[i]);
        }
        break;
    case FIELD_RANGES:
        dp_pack_array(packer, 2 * msg->n_ranges);
        for (uint32_t i = 0; i < msg->n_ranges; i++) {
            dp_pack_u64(packer, msg->ranges[i].first);
            dp_pack_u64(packer, msg->ranges[i].count);
        }
        break;
    case FIELD_TEXT:
        dp_pack_text(packer, at);
        break;
    }
}

dp_status dp_trainer_encode(const dp_trainer_msg *msg, dp_buf *out)
{
    if (msg->kind < DP_TRAINER_HELLO || msg->kind >= DP_TRAINER_KIND_COUNT ||
        msg->n_items > DP_TRAINER_ITEMS_MAX || msg->n_ranges > DP_LEASE_RANGES_MAX ||
        strnlen(msg->text, DP_TRAINER_TEXT_MAX + 1) > DP_TRAINER_TEXT_MAX) {
        return DP_BADARG;
    }
    const uint64_t bits = shapes[msg->kind].fields;
    dp_packer packer = dp_packer_of(out);
    dp_pack_map(&packer, 1 + (uint32_t)__builtin_popcountll(bits));
    dp_pack_text(&packer, "type");
    dp_pack_u64(&packer, (uint64_t)msg->kind);
    for (uint32_t i = 0; i < FIELD_COUNT; i++) {
        if (bits & BIT(i)) {
            pack_field(&packer, msg, &fields[i]);
        }
    }
    return dp_packer_finish(&packer);
}

static bool unpack_u32(const dp_pack_value *value, uint32_t *out)
{
    uint64_t large;
    if (!dp_pack_get_u64(value, &large) || large > UINT32_MAX) {
        return false;
    }
    *out = (uint32_t)large;
    return true;
}

static bool unpack_bin(const dp_pack_value *value, void *out, size_t size)
{
    dp_view bytes;
    if (!dp_pack_get_bytes(value, &bytes) || bytes.size != size) {
        return false;
    }
    memcpy(out, bytes.data, size);
    return true;
}

static bool unpack_items(const dp_pack_value *value, dp_trainer_msg *msg)
{
    uint32_t count;
    if (!dp_pack_is_array(value, &count) || count > DP_TRAINER_ITEMS_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!unpack_u32(dp_pack_at(value, i), &msg->q[i])) {
            return false;
        }
    }
    msg->n_items = count;
    return true;
}

/* What a lease may be: no range is empty, and sums stay far below what a number can hold. */
static bool unpack_ranges(const dp_pack_value *value, dp_trainer_msg *msg)
{
    const uint64_t most = (uint64_t)1 << 62;
    uint32_t count;
    if (!dp_pack_is_array(value, &count) || count > 2 * DP_LEASE_RANGES_MAX || count % 2 != 0) {
        return false;
    }
    for (uint32_t i = 0; i < count / 2; i++) {
        dp_sample_range *const range = &msg->ranges[i];
        if (!dp_pack_get_u64(dp_pack_at(value, 2 * i), &range->first) ||
            !dp_pack_get_u64(dp_pack_at(value, 2 * i + 1), &range->count) || range->count == 0 ||
            range->first > most || range->count > most - range->first) {
            return false;
        }
    }
    msg->n_ranges = count / 2;
    return true;
}

static bool unpack_field(const dp_pack_value *value, dp_trainer_msg *msg, const field *f)
{
    char *const at = (char *)msg + f->offset;
    uint32_t small;
    uint64_t large;
    double real;
    bool flag;
    uint8_t energy[16];
    switch (f->type) {
    case FIELD_U32:
        if (!unpack_u32(value, &small)) {
            return false;
        }
        memcpy(at, &small, sizeof small);
        return true;
    case FIELD_ENUM:
        if (!unpack_u32(value, &small) || small < f->least || small > f->most) {
            return false;
        }
        memcpy(at, &small, sizeof small);
        return true;
    case FIELD_U64:
        if (!dp_pack_get_u64(value, &large)) {
            return false;
        }
        memcpy(at, &large, sizeof large);
        return true;
    case FIELD_F64:
        if (!dp_pack_get_f64(value, &real) || !isfinite(real)) {
            return false;
        }
        memcpy(at, &real, sizeof real);
        return true;
    case FIELD_BOOL:
        if (!dp_pack_get_bool(value, &flag)) {
            return false;
        }
        memcpy(at, &flag, sizeof flag);
        return true;
    case FIELD_BIN16:
        return unpack_bin(value, at, 16);
    case FIELD_BIN32:
        return unpack_bin(value, at, 32);
    case FIELD_ENERGY: {
        if (!unpack_bin(value, energy, sizeof energy)) {
            return false;
        }
        dp_reader reader = dp_reader_of(dp_view_of(energy, sizeof energy));
        msg->energy = dp_read_u128(&reader);
        return true;
    }
    case FIELD_ITEMS:
        return unpack_items(value, msg);
    case FIELD_RANGES:
        return unpack_ranges(value, msg);
    case FIELD_TEXT:
        return dp_pack_copy_text(value, at, DP_TRAINER_TEXT_MAX + 1);
    }
    return false;
}

static bool unpack(const dp_pack_value *root, dp_trainer_msg *msg)
{
    uint32_t kind;
    if (!unpack_u32(dp_pack_key(root, "type"), &kind) || kind < DP_TRAINER_HELLO ||
        kind >= DP_TRAINER_KIND_COUNT) {
        return false;
    }
    msg->kind = (dp_trainer_kind)kind;
    for (uint32_t i = 0; i < FIELD_COUNT; i++) {
        const dp_pack_value *const value = dp_pack_key(root, fields[i].key);
        if ((shapes[kind].fields & BIT(i)) == 0 ||
            (value == NULL && (shapes[kind].optional & BIT(i)) != 0)) {
            continue;
        }
        if (!unpack_field(value, msg, &fields[i])) {
            return false;
        }
    }
    return true;
}

dp_status dp_trainer_decode(dp_trainer_msg *msg, dp_view bytes)
{
    if (bytes.size > DP_TRAINER_PACKET_MAX) {
        return DP_TOOBIG;
    }
    dp_unpacked *unpacked;
    DP_TRY(dp_unpack_open(&unpacked, bytes));
    memset(msg, 0, sizeof *msg);
    const bool good = unpack(dp_unpack_root(unpacked), msg);
    dp_unpack_close(unpacked);
    return good ? DP_OK : DP_BADMSG;
}

static dp_status status_of_errno(int error)
{
    switch (error) {
    case EAGAIN:
        return DP_AGAIN;
    case EPIPE:
    case ECONNRESET:
    case ENOTCONN:
        return DP_CLOSED;
    case EMSGSIZE:
        return DP_TOOBIG;
    case ENOMEM:
    case ENOBUFS:
    case EMFILE: /* The machine lacks something; nothing is broken. */
    case ENFILE:
        return DP_NOMEM;
    case ENOSPC:
        return DP_NOSPACE;
    default:
        return DP_IO;
    }
}

typedef union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(DP_TRAINER_FDS_MAX * sizeof(int))];
} control;

static dp_status send_packet(int socket, dp_view packet, const int *fds, uint32_t n_fds)
{
    control ancillary;
    memset(&ancillary, 0, sizeof ancillary);
    /* sendmsg only reads, but struct iovec has no const form. */
    struct iovec part = {.iov_base = (void *)(uintptr_t)packet.data, .iov_len = packet.size};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    if (n_fds > 0) {
        header.msg_control = ancillary.bytes;
        header.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        struct cmsghdr *const rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(rights), fds, n_fds * sizeof(int));
    }
    ssize_t sent;
    do {
        sent = sendmsg(socket, &header, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? status_of_errno(errno) : DP_OK;
}

dp_status dp_trainer_send(int socket, const dp_trainer_msg *msg, const int *fds, uint32_t n_fds)
{
    dp_assert(n_fds <= DP_TRAINER_FDS_MAX);
    dp_buf packet;
    dp_buf_init(&packet, DP_TRAINER_PACKET_MAX);
    dp_status status = dp_trainer_encode(msg, &packet);
    if (status == DP_OK) {
        status = send_packet(socket, dp_buf_view(&packet), fds, n_fds);
    }
    dp_buf_close(&packet);
    return status;
}

static uint32_t take_fds(struct msghdr *header, int fds[DP_TRAINER_FDS_MAX])
{
    uint32_t count = 0;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part != NULL;
         part = CMSG_NXTHDR(header, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        const size_t n = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
            if (count < DP_TRAINER_FDS_MAX) {
                fds[count] = fd;
                count++;
            } else {
                close(fd);
            }
        }
    }
    return count;
}

dp_status dp_trainer_receive(int socket, dp_trainer_msg *msg, int fds[DP_TRAINER_FDS_MAX],
                             uint32_t *n_fds)
{
    uint8_t packet[DP_TRAINER_PACKET_MAX];
    control ancillary;
    struct iovec part = {.iov_base = packet, .iov_len = sizeof packet};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    header.msg_control = ancillary.bytes;
    header.msg_controllen = sizeof ancillary.bytes;
    *n_fds = 0;
    ssize_t got;
    do {
        got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        return status_of_errno(errno);
    }
    const uint32_t count = take_fds(&header, fds);
    dp_status status = DP_OK;
    if (got == 0) {
        status = DP_CLOSED; /* No message of ours is empty. */
    } else if (header.msg_flags & MSG_TRUNC) {
        status = DP_TOOBIG;
    } else if (header.msg_flags & MSG_CTRUNC) {
        status =
            DP_NOMEM; /* No descriptors are left here; nobody sends more than there is room for. */
    } else {
        status = dp_trainer_decode(msg, dp_view_of(packet, (size_t)got));
    }
    if (status == DP_OK) {
        *n_fds = count;
        return DP_OK;
    }
    for (uint32_t i = 0; i < count; i++) {
        close(fds[i]);
    }
    return status;
}

static dp_status write_all(int fd, dp_view bytes)
{
    size_t done = 0;
    while (done < bytes.size) {
        const ssize_t n = write(fd, bytes.data + done, bytes.size - done);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? status_of_errno(errno) : DP_IO;
        }
        done += (size_t)n;
    }
    return DP_OK;
}

dp_status dp_memfd_start(const char *name, int *fd)
{
    const int made = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (made < 0) {
        return status_of_errno(errno);
    }
    *fd = made;
    return DP_OK;
}

dp_status dp_memfd_add(int fd, dp_view bytes)
{
    return write_all(fd, bytes);
}

dp_status dp_memfd_seal(int fd)
{
    const int all = F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_WRITE | F_SEAL_SEAL;
    return fcntl(fd, F_ADD_SEALS, all) == 0 ? DP_OK : DP_IO;
}

dp_status dp_memfd_make(const char *name, dp_view bytes, int *fd)
{
    int made = -1;
    DP_TRY(dp_memfd_start(name, &made));
    dp_status status = dp_memfd_add(made, bytes);
    if (status == DP_OK) {
        status = dp_memfd_seal(made);
    }
    if (status != DP_OK) {
        close(made);
        return status;
    }
    *fd = made;
    return DP_OK;
}

dp_status dp_memfd_map(int fd, uint64_t bytes_max, dp_view *bytes)
{
    const int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & (F_SEAL_WRITE | F_SEAL_SHRINK)) != (F_SEAL_WRITE | F_SEAL_SHRINK)) {
        return DP_BADMSG;
    }
    struct stat about;
    if (fstat(fd, &about) != 0) {
        return DP_IO;
    }
    if (about.st_size < 0 || (uint64_t)about.st_size > bytes_max ||
        (uint64_t)about.st_size > SIZE_MAX) {
        return DP_BADMSG;
    }
    if (about.st_size == 0) {
        *bytes = dp_view_of(NULL, 0);
        return DP_OK;
    }
    /* Private: kernels before 6.7 refuse a shared mapping of what is sealed against writing. */
    void *const at = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED) {
        return status_of_errno(errno);
    }
    *bytes = dp_view_of(at, (size_t)about.st_size);
    return DP_OK;
}

void dp_memfd_unmap(dp_view bytes)
{
    if (bytes.size > 0) {
        munmap((void *)(uintptr_t)bytes.data, bytes.size);
    }
}
