#include "base/trainer/trainer_msg.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

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
    FIELD_SHARES,
    FIELD_CUTS,
    FIELD_COSINE,
    FIELD_GAIN,
    FIELD_TEXT
} field_type;

typedef struct field {
    const char *key;
    field_type type;
    size_t offset;
    uint32_t least; /* FIELD_ENUM, any number of which some values exist: these */
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
    DATA_US,
    PUBLISH_US,
    APPLY_US,
    STATE_US,
    TELL_US,
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
    SHARES, /* after ITEMS, of which it must have as many */
    CONTRIBUTORS,
    AT,
    PART,
    FIRST,
    END,
    CUTS,
    TAKEN,
    KEEP,
    SCALE,
    OWN_COUNT, /* after OWN */
    DID_FAIL,
    COMPARED,
    ALIGN,
    HELD,
    CLAIMED,
    LIKENESS,
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
    [DATA_US] = FIELD("data_us", FIELD_U64, spent.data_us),
    [PUBLISH_US] = FIELD("publish_us", FIELD_U64, spent.publish_us),
    [APPLY_US] = FIELD("apply_us", FIELD_U64, spent.apply_us),
    [STATE_US] = FIELD("state_us", FIELD_U64, spent.state_us),
    [TELL_US] = FIELD("tell_us", FIELD_U64, spent.tell_us),
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
    [SHARES] = FIELD("shares", FIELD_SHARES, shares),
    [CONTRIBUTORS] = FIELD("contributors", FIELD_U32, contributors),
    [AT] = FIELD("at", FIELD_U32, at),
    [PART] = FIELD("part", FIELD_U32, part),
    [FIRST] = {.key = "first",
               .type = FIELD_ENUM,
               .offset = offsetof(dp_trainer_msg, range.first),
               .most = DP_PART_WHOLE},
    [END] = {.key = "end",
             .type = FIELD_ENUM,
             .offset = offsetof(dp_trainer_msg, range.end),
             .most = DP_PART_WHOLE},
    [CUTS] = FIELD("cuts", FIELD_CUTS, cuts),
    [TAKEN] = FIELD("taken", FIELD_U32, taken),
    [KEEP] = FIELD("keep", FIELD_U32, keep),
    [SCALE] = FIELD("scale", FIELD_U32, scale),
    [OWN_COUNT] = FIELD("own_count", FIELD_U64, own_count),
    [DID_FAIL] = FIELD("failed", FIELD_BOOL, judged.failed),
    [COMPARED] = FIELD("compared", FIELD_BOOL, judged.compared),
    [ALIGN] = FIELD("align", FIELD_COSINE, judged.align),
    [HELD] = FIELD("held", FIELD_GAIN, judged.held),
    [CLAIMED] = FIELD("claimed", FIELD_GAIN, judged.claimed),
    [LIKENESS] = FIELD("likeness", FIELD_BIN32, judged.likeness),
    [NAME] = FIELD("name", FIELD_TEXT, text),
    [DEVICE] = FIELD("device", FIELD_TEXT, text),
    [WHAT] = FIELD("what", FIELD_TEXT, text),
    [PROMPT] = FIELD("prompt", FIELD_TEXT, text),
    [TEXT] = FIELD("text", FIELD_TEXT, text),
};

_Static_assert(sizeof(dp_settle) == 4 && sizeof(dp_restore) == 4 && sizeof(dp_trainer_kind) == 4,
               "enums are read and written as four bytes");
_Static_assert(DP_LIKENESS_BYTES == 32, "a likeness is read and written as that many bytes");

typedef unsigned __int128 field_set;

/* Which fields a kind carries: bit i stands for fields[i]. */
typedef struct shape {
    const char *name;
    field_set fields;
    field_set optional; /* of fields: what may be absent, as from a trainer that does not know it */
} shape;

#define BIT(id) ((field_set)1 << (id))
_Static_assert(FIELD_COUNT <= 128, "a shape has a bit for each field");

#define SPENT_BITS                                                                                 \
    (BIT(COMPUTED_US) | BIT(TRAINED_US) | BIT(DATA_US) | BIT(PUBLISH_US) | BIT(APPLY_US) |         \
     BIT(STATE_US) | BIT(TELL_US))

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
                                      BIT(LAMBDA) | BIT(STEPS) | BIT(TOKENS) | BIT(CUTS) |
                                      BIT(TAKEN),
                            .optional = BIT(CUTS) | BIT(TAKEN)},
    [DP_TRAINER_TRAIN] = {.name = "train",
                          .fields = BIT(ROUND) | BIT(TOKENS) | BIT(LEASED) | BIT(OWN) | BIT(LEASE) |
                                    BIT(CUTS),
                          .optional = BIT(CUTS)},
    [DP_TRAINER_STEP] = {.name = "step",
                         .fields = BIT(ROUND) | BIT(STEPS) | BIT(TOKENS) | BIT(LOSS) |
                                   BIT(SKIPPED) | BIT(SPIKES) | SPENT_BITS,
                         .optional = BIT(SKIPPED) | BIT(SPIKES) | SPENT_BITS},
    [DP_TRAINER_PUBLISH] = {.name = "publish",
                            .fields = BIT(ROUND) | BIT(DENSE) | BIT(CUTS) | BIT(KEEP),
                            .optional = BIT(CUTS) | BIT(KEEP)},
    [DP_TRAINER_PUBLISHED] = {.name = "published",
                              .fields = BIT(ROUND) | BIT(STEPS) | BIT(TOKENS) | BIT(LOSS) |
                                        BIT(CARRIED) | BIT(ENERGY) | BIT(LEASED) | BIT(OWN) |
                                        BIT(NORM) | BIT(ERROR) | BIT(CUTS),
                              .optional = BIT(NORM) | BIT(ERROR) | BIT(CUTS)},
    [DP_TRAINER_CHECK] = {.name = "check",
                          .fields = BIT(ID) | BIT(FIRST) | BIT(END) | BIT(KEEP),
                          .optional = BIT(FIRST) | BIT(END) | BIT(KEEP)},
    [DP_TRAINER_CHECKED] = {.name = "checked",
                            .fields = BIT(ID) | BIT(OK) | BIT(ENERGY) | BIT(FOREIGN),
                            .optional = BIT(FOREIGN)},
    [DP_TRAINER_APPLY] = {.name = "apply",
                          .fields = BIT(ROUND) | BIT(TOKENS) | BIT(ALPHA) | BIT(SETTLE) |
                                    BIT(CLIP) | BIT(LAMBDA) | BIT(ITEMS) | BIT(SHARES) |
                                    BIT(CONTRIBUTORS) | BIT(CUTS) | BIT(TAKEN) | BIT(AT),
                          .optional =
                              BIT(SHARES) | BIT(CONTRIBUTORS) | BIT(CUTS) | BIT(TAKEN) | BIT(AT)},
    [DP_TRAINER_APPLIED] = {.name = "applied",
                            .fields = BIT(ROUND) | BIT(ROOT) | BIT(OUTER_REACH),
                            .optional = BIT(OUTER_REACH)},
    [DP_TRAINER_FREEZE] = {.name = "freeze", .fields = BIT(EXCHANGE)},
    [DP_TRAINER_FROZEN] = {.name = "frozen",
                           .fields = BIT(EXCHANGE) | BIT(STEPS) | BIT(TOKENS) | BIT(LEASED) |
                                     BIT(OWN) | BIT(ENERGY)},
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
    [DP_TRAINER_REDUCE] = {.name = "reduce",
                           .fields = BIT(ROUND) | BIT(PART) | BIT(FIRST) | BIT(END) | BIT(ITEMS)},
    [DP_TRAINER_REDUCED] = {.name = "reduced",
                            .fields = BIT(ROUND) | BIT(PART) | BIT(ENERGY) | BIT(NORM) | BIT(ERROR),
                            .optional = BIT(NORM) | BIT(ERROR)},
    [DP_TRAINER_EARLY] = {.name = "early",
                          .fields = BIT(ROUND) | BIT(PART) | BIT(FIRST) | BIT(END)},
    [DP_TRAINER_ADD] = {.name = "add", .fields = BIT(ROUND) | BIT(AT) | BIT(ITEMS)},
    [DP_TRAINER_ADDED] = {.name = "added", .fields = BIT(ROUND) | BIT(AT)},
    [DP_TRAINER_JUDGE] = {.name = "judge",
                          .fields = BIT(ID) | BIT(KEEP) | BIT(SCALE) | BIT(TOKENS) | BIT(SEED) |
                                    BIT(MEMBER) | BIT(OWN) | BIT(OWN_COUNT) | BIT(LEASE),
                          .optional = BIT(KEEP)},
    [DP_TRAINER_JUDGED] = {.name = "judged",
                           .fields = BIT(ID) | BIT(DID_FAIL) | BIT(COMPARED) | BIT(ALIGN) |
                                     BIT(HELD) | BIT(CLAIMED) | BIT(LIKENESS),
                           .optional = BIT(DID_FAIL) | BIT(COMPARED)},
};

const char *dp_trainer_kind_name(dp_trainer_kind kind)
{
    if (kind < DP_TRAINER_HELLO || kind >= DP_TRAINER_KIND_COUNT) {
        return "unknown";
    }
    return shapes[kind].name;
}

static void pack_gain(dp_packer *packer, const char *at)
{
    dp_gain gain;
    memcpy(&gain, at, sizeof gain);
    dp_pack_array(packer, 3);
    dp_pack_i64(packer, gain.micro);
    dp_pack_u64(packer, gain.error_micro);
    dp_pack_u64(packer, gain.tokens);
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
    case FIELD_SHARES:
        dp_pack_array(packer, 2 * msg->n_items);
        for (uint32_t i = 0; i < msg->n_items; i++) {
            dp_pack_u64(packer, msg->shares[i].first);
            dp_pack_u64(packer, msg->shares[i].end);
        }
        break;
    case FIELD_CUTS:
        dp_pack_array(packer, msg->cuts.n);
        for (uint32_t i = 0; i < msg->cuts.n; i++) {
            dp_pack_u64(packer, msg->cuts.first[i]);
        }
        break;
    case FIELD_COSINE:
        dp_pack_i64(packer, msg->judged.align);
        break;
    case FIELD_GAIN:
        pack_gain(packer, at);
        break;
    case FIELD_TEXT:
        dp_pack_text(packer, at);
        break;
    }
}

static uint32_t count_of(field_set bits)
{
    return (uint32_t)(__builtin_popcountll((uint64_t)bits) +
                      __builtin_popcountll((uint64_t)(bits >> 64)));
}

dp_status dp_trainer_encode(const dp_trainer_msg *msg, dp_buf *out)
{
    if (msg->kind < DP_TRAINER_HELLO || msg->kind >= DP_TRAINER_KIND_COUNT ||
        msg->n_items > DP_TRAINER_ITEMS_MAX || msg->n_ranges > DP_LEASE_RANGES_MAX ||
        !dp_part_cuts_good(&msg->cuts) ||
        strnlen(msg->text, DP_TRAINER_TEXT_MAX + 1) > DP_TRAINER_TEXT_MAX) {
        return DP_BADARG;
    }
    const field_set bits = shapes[msg->kind].fields;
    dp_packer packer = dp_packer_of(out);
    dp_pack_map(&packer, 1 + count_of(bits));
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

/* Sums of sample numbers stay far below what a number can hold. */
static bool are_samples(uint64_t first, uint64_t count)
{
    const uint64_t most = (uint64_t)1 << 62;
    return first <= most && count <= most - first;
}

/* What a lease may be: no range is empty. */
static bool unpack_ranges(const dp_pack_value *value, dp_trainer_msg *msg)
{
    uint32_t count;
    if (!dp_pack_is_array(value, &count) || count > 2 * DP_LEASE_RANGES_MAX || count % 2 != 0) {
        return false;
    }
    for (uint32_t i = 0; i < count / 2; i++) {
        dp_sample_range *const range = &msg->ranges[i];
        if (!dp_pack_get_u64(dp_pack_at(value, 2 * i), &range->first) ||
            !dp_pack_get_u64(dp_pack_at(value, 2 * i + 1), &range->count) || range->count == 0 ||
            !are_samples(range->first, range->count)) {
            return false;
        }
    }
    msg->n_ranges = count / 2;
    return true;
}

/* A range for each item, from what is not behind its end. */
static bool unpack_shares(const dp_pack_value *value, dp_trainer_msg *msg)
{
    uint32_t count;
    if (!dp_pack_is_array(value, &count) || count != 2 * msg->n_items) {
        return false;
    }
    for (uint32_t i = 0; i < msg->n_items; i++) {
        dp_part_range *const range = &msg->shares[i];
        if (!unpack_u32(dp_pack_at(value, 2 * i), &range->first) ||
            !unpack_u32(dp_pack_at(value, 2 * i + 1), &range->end) || range->first > range->end ||
            range->end > DP_PART_WHOLE) {
            return false;
        }
    }
    return true;
}

static bool unpack_cuts(const dp_pack_value *value, dp_trainer_msg *msg)
{
    uint32_t count;
    if (!dp_pack_is_array(value, &count) || count > DP_PARTS_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t share;
        if (!unpack_u32(dp_pack_at(value, i), &share) || share >= DP_PART_WHOLE) {
            return false;
        }
        msg->cuts.first[i] = (uint16_t)share;
    }
    msg->cuts.n = count;
    return dp_part_cuts_good(&msg->cuts);
}

/* Q16. */
static bool unpack_cosine(const dp_pack_value *value, dp_trainer_msg *msg)
{
    int64_t large;
    if (!dp_pack_get_i64(value, &large) || large < -DP_ALIGN_ONE || large > DP_ALIGN_ONE) {
        return false;
    }
    msg->judged.align = (int32_t)large;
    return true;
}

static bool unpack_gain(const dp_pack_value *value, char *at)
{
    dp_gain gain;
    uint32_t count;
    if (!dp_pack_is_array(value, &count) || count != 3 ||
        !dp_pack_get_i64(dp_pack_at(value, 0), &gain.micro) ||
        !dp_pack_get_u64(dp_pack_at(value, 1), &gain.error_micro) ||
        !unpack_u32(dp_pack_at(value, 2), &gain.tokens) || gain.micro < -DP_GAIN_MICRO_MAX ||
        gain.micro > DP_GAIN_MICRO_MAX || gain.error_micro > DP_GAIN_MICRO_MAX) {
        return false;
    }
    memcpy(at, &gain, sizeof gain);
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
    case FIELD_SHARES:
        return unpack_shares(value, msg);
    case FIELD_CUTS:
        return unpack_cuts(value, msg);
    case FIELD_COSINE:
        return unpack_cosine(value, msg);
    case FIELD_GAIN:
        return unpack_gain(value, at);
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
    return msg->kind != DP_TRAINER_JUDGE || are_samples(msg->reach.own, msg->own_count);
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
