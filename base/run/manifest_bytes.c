/* Canonical bytes of a manifest: "DPM1" | version u16 | the fields of the table below that this
 * version has, in order | signature. The version is the first that has all fields which are not
 * standard. */
#include <stddef.h>
#include <string.h>

#include "base/run/manifest.h"

enum {
    VERSION_FIRST = 6,
    VERSION_AUTO = 23, /* the precision may be auto */
    VERSION_LAST = 23,
    SIGNATURE_BYTES = sizeof(((dp_manifest *)0)->signature)
};

static const uint8_t magic[4] = {'D', 'P', 'M', '1'};

typedef enum field_type {
    FIELD_NAME,
    FIELD_U32,
    FIELD_U64,
    FIELD_ENUM,
    FIELD_BYTES32,
    FIELD_SHARDS, /* n_shards, then shards */
    FIELD_GONE    /* a setting that was deleted: 4 bytes, always its standard */
} field_type;

typedef struct field {
    field_type type;
    size_t offset;
    uint16_t since;    /* the version that brought it, */
    uint32_t standard; /* ... and its value in earlier versions; 0 for a field of eight bytes */
} field;

#define FIELD_SINCE(since_, type_, member, standard_)                                              \
    {                                                                                              \
        .type = (type_), .offset = offsetof(dp_manifest, member), .since = (since_),               \
        .standard = (standard_)                                                                    \
    }
#define GONE_SINCE(since_, standard_)                                                              \
    {                                                                                              \
        .type = FIELD_GONE, .since = (since_), .standard = (standard_)                             \
    }
#define FIELD(type_, member) FIELD_SINCE(VERSION_FIRST, type_, member, 0)

static const field fields[] = {
    /* The run. */
    FIELD(FIELD_NAME, name),
    FIELD(FIELD_U64, created_ms),
    FIELD(FIELD_U64, nonce),
    FIELD(FIELD_BYTES32, root_key),
    FIELD(FIELD_BYTES32, founder),
    FIELD(FIELD_BYTES32, founder_vote_key),
    /* The model. */
    FIELD(FIELD_U32, layers),
    FIELD(FIELD_U32, width),
    FIELD(FIELD_U32, heads),
    FIELD(FIELD_U32, context),
    FIELD(FIELD_U32, vocab),
    FIELD(FIELD_ENUM, arch),
    FIELD(FIELD_U32, kv_heads),
    FIELD(FIELD_U32, head_width),
    FIELD(FIELD_U32, hidden),
    FIELD(FIELD_U32, norm_eps_nano),
    FIELD(FIELD_U32, rope_theta),
    FIELD(FIELD_ENUM, activation),
    FIELD(FIELD_ENUM, qk_norm),
    FIELD(FIELD_ENUM, head),
    FIELD(FIELD_U32, softcap_milli),
    FIELD(FIELD_U64, model_seed),
    /* Its data. */
    FIELD(FIELD_BYTES32, tokenizer),
    FIELD(FIELD_BYTES32, init),
    FIELD(FIELD_U64, tokenizer_bytes),
    FIELD(FIELD_U64, init_bytes),
    FIELD(FIELD_SHARDS, n_shards),
    FIELD(FIELD_U32, val_per_mille),
    /* Local training. */
    FIELD(FIELD_U32, batch_rows),
    FIELD(FIELD_U32, lr_nano),
    FIELD(FIELD_U32, lr_floor_per_mille),
    FIELD(FIELD_ENUM, schedule),
    FIELD(FIELD_U64, warmup_tokens),
    FIELD(FIELD_U64, total_tokens),
    FIELD(FIELD_U32, beta1_micro),
    FIELD(FIELD_U32, beta2_micro),
    FIELD(FIELD_U32, decay_micro),
    FIELD(FIELD_U32, clip_milli),
    FIELD(FIELD_ENUM, optimizer),
    FIELD(FIELD_U32, momentum_micro),
    FIELD(FIELD_ENUM, weights),
    FIELD(FIELD_ENUM, batch_rule),
    FIELD(FIELD_U64, batch_reference),
    FIELD(FIELD_U32, spike_milli),
    FIELD(FIELD_ENUM, precision),
    /* Rounds and members. */
    FIELD(FIELD_U32, round_ms),
    FIELD(FIELD_U32, inner_steps_max),
    FIELD(FIELD_ENUM, codec),
    GONE_SINCE(VERSION_FIRST, 0), /* elements under one scale: the codec's default */
    FIELD(FIELD_U32, codec_keep),
    GONE_SINCE(VERSION_FIRST, 2), /* bits of a value in codec sparse */
    FIELD(FIELD_U32, feedback_beta_milli),
    FIELD(FIELD_U32, alpha_milli),
    FIELD(FIELD_U32, outer_mu_milli),
    GONE_SINCE(VERSION_FIRST, 1),    /* fewest contributors at the deadline */
    GONE_SINCE(VERSION_FIRST, 1000), /* a factor on every wait, in 1e-3 */
    FIELD(FIELD_U32, gossip_round_ms),
    FIELD(FIELD_U32, voter_uptime_s),
    FIELD(FIELD_U32, voters_max),
    FIELD(FIELD_U32, members_max),
    /* New ones, each of a later version than the one before it, or the same. */
    FIELD_SINCE(7, FIELD_ENUM, pairs, DP_OFF),
    FIELD_SINCE(7, FIELD_ENUM, exchange, DP_EXCHANGE_UPDATES),
    FIELD_SINCE(8, FIELD_ENUM, reduce, DP_REDUCE_WHOLE),
    FIELD_SINCE(9, FIELD_ENUM, stale, DP_OFF),
    FIELD_SINCE(10, FIELD_U32, codec_keep_most, 0),
    FIELD_SINCE(11, FIELD_U32, contributors_max, DP_MANIFEST_LISTED_DEFAULT),
    GONE_SINCE(12, 0), /* a share of the members that closed rounds at once */
    FIELD_SINCE(13, FIELD_ENUM, site_sums, DP_OFF),
    FIELD_SINCE(14, FIELD_ENUM, codec_gain, DP_OFF),
    FIELD_SINCE(14, FIELD_U32, members_absent_s, 0),
    FIELD_SINCE(15, FIELD_ENUM, trust, DP_TRUST_MEMBERS),
    FIELD_SINCE(16, FIELD_U64, samples, 0),
    FIELD_SINCE(16, FIELD_U32, unit, 0),
    FIELD_SINCE(16, FIELD_U64, elements, 0),
    FIELD_SINCE(17, FIELD_U32, adapt_rank, 0), /* without it, those below are 0 */
    FIELD_SINCE(17, FIELD_U32, adapt_alpha_milli, 0),
    FIELD_SINCE(17, FIELD_U32, adapt_targets, 0),
    FIELD_SINCE(17, FIELD_ENUM, base_kind, DP_BASE_BF16),
    FIELD_SINCE(17, FIELD_U64, base_bytes, 0),
    FIELD_SINCE(17, FIELD_BYTES32, base, 0),
    FIELD_SINCE(18, FIELD_ENUM, rope_scaling, DP_ROPE_PLAIN),
    FIELD_SINCE(18, FIELD_U32, rope_factor_milli, 0),
    FIELD_SINCE(18, FIELD_U32, rope_low_milli, 0),
    FIELD_SINCE(18, FIELD_U32, rope_high_milli, 0),
    FIELD_SINCE(18, FIELD_U32, rope_context, 0),
    FIELD_SINCE(18, FIELD_U32, rope_off_every, 0),
    FIELD_SINCE(19, FIELD_U32, window, 0),
    FIELD_SINCE(20, FIELD_U32, full_every, 0),
    FIELD_SINCE(20, FIELD_U32, rope_local_theta, 0),
    FIELD_SINCE(20, FIELD_U32, scores_softcap_milli, 0),
    FIELD_SINCE(20, FIELD_U32, query_scalar, 0),
    FIELD_SINCE(21, FIELD_U32, rope_width, 0),
    FIELD_SINCE(22, FIELD_ENUM, long_once, DP_OFF),
};

enum { FIELD_COUNT = sizeof fields / sizeof fields[0] };

_Static_assert(sizeof(dp_codec_kind) == 4 && sizeof(dp_schedule_kind) == 4 &&
                   sizeof(dp_optim_kind) == 4 && sizeof(dp_weights_kind) == 4 &&
                   sizeof(dp_precision_kind) == 4 && sizeof(dp_batch_rule) == 4 &&
                   sizeof(dp_arch) == 4 && sizeof(dp_switch) == 4 &&
                   sizeof(dp_activation_choice) == 4 && sizeof(dp_head_choice) == 4 &&
                   sizeof(dp_exchange_kind) == 4 && sizeof(dp_reduce_kind) == 4 &&
                   sizeof(dp_trust) == 4 && sizeof(dp_base_kind) == 4 &&
                   sizeof(dp_rope_scaling) == 4,
               "enums are read and written as four bytes in memory");
_Static_assert(sizeof(dp_hash) == 32 && sizeof(((dp_manifest *)0)->root_key) == 32,
               "hashes and keys share FIELD_BYTES32");

static void write_shards(dp_writer *writer, const dp_manifest *manifest)
{
    dp_write_u8(writer, (uint8_t)manifest->n_shards);
    for (uint32_t i = 0; i < manifest->n_shards; i++) {
        dp_write_bytes(writer, manifest->shards[i].root.bytes, DP_HASH_BYTES);
        dp_write_u64(writer, manifest->shards[i].bytes);
        dp_write_u64(writer, manifest->shards[i].tokens);
    }
}

static void write_field(dp_writer *writer, const dp_manifest *manifest, const field *f)
{
    const char *const at = (const char *)manifest + f->offset;
    uint32_t small;
    uint64_t large;
    switch (f->type) {
    case FIELD_NAME: {
        const size_t size = strnlen(at, DP_NAME_MAX);
        dp_write_u8(writer, (uint8_t)size);
        dp_write_bytes(writer, at, size);
        break;
    }
    case FIELD_U32:
        memcpy(&small, at, sizeof small);
        dp_write_u32(writer, small);
        break;
    case FIELD_U64:
        memcpy(&large, at, sizeof large);
        dp_write_u64(writer, large);
        break;
    case FIELD_ENUM:
        memcpy(&small, at, sizeof small);
        dp_write_u8(writer, (uint8_t)small);
        break;
    case FIELD_BYTES32:
        dp_write_bytes(writer, at, 32);
        break;
    case FIELD_SHARDS:
        write_shards(writer, manifest);
        break;
    case FIELD_GONE:
        dp_write_u32(writer, f->standard);
        break;
    }
}

static size_t field_bytes(const field *f)
{
    return f->type == FIELD_U64 ? sizeof(uint64_t) : sizeof(uint32_t);
}

static uint64_t field_value(const dp_manifest *manifest, const field *f)
{
    uint32_t small;
    uint64_t large;
    if (field_bytes(f) == sizeof large) {
        memcpy(&large, (const char *)manifest + f->offset, sizeof large);
        return large;
    }
    memcpy(&small, (const char *)manifest + f->offset, sizeof small);
    return small;
}

static uint16_t version_of(const dp_manifest *manifest)
{
    uint16_t version = VERSION_FIRST;
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        if (fields[i].since > VERSION_FIRST && fields[i].type != FIELD_GONE) {
            version =
                field_value(manifest, &fields[i]) != fields[i].standard ? fields[i].since : version;
        }
    }
    return manifest->precision == DP_PRECISION_AUTO ? VERSION_AUTO : version;
}

dp_status dp_manifest_encode(const dp_manifest *manifest, uint8_t out[DP_MANIFEST_BYTES_MAX],
                             size_t *size)
{
    DP_TRY(dp_manifest_check(manifest, NULL));
    dp_writer writer = dp_writer_of(out, DP_MANIFEST_BYTES_MAX);
    dp_write_bytes(&writer, magic, sizeof magic);
    const uint16_t version = version_of(manifest);
    dp_write_u16(&writer, version);
    for (size_t i = 0; i < FIELD_COUNT && fields[i].since <= version; i++) {
        write_field(&writer, manifest, &fields[i]);
    }
    dp_write_bytes(&writer, manifest->signature, SIGNATURE_BYTES);
    dp_view written;
    DP_TRY(dp_writer_finish(&writer, &written));
    *size = written.size;
    return DP_OK;
}

static dp_status read_shards(dp_reader *reader, dp_manifest *manifest)
{
    const uint32_t n = dp_read_u8(reader);
    if (n > DP_MANIFEST_SHARDS_MAX) {
        return DP_BADMSG;
    }
    for (uint32_t i = 0; i < n; i++) {
        dp_read_bytes(reader, manifest->shards[i].root.bytes, DP_HASH_BYTES);
        manifest->shards[i].bytes = dp_read_u64(reader);
        manifest->shards[i].tokens = dp_read_u64(reader);
    }
    manifest->n_shards = n;
    return DP_OK;
}

static dp_status read_field(dp_reader *reader, dp_manifest *manifest, const field *f)
{
    char *const at = (char *)manifest + f->offset;
    uint32_t small;
    uint64_t large;
    switch (f->type) {
    case FIELD_NAME:
        small = dp_read_u8(reader);
        if (small > DP_NAME_MAX) {
            return DP_BADMSG;
        }
        dp_read_bytes(reader, at, small);
        /* A NUL inside would give two byte forms of one name. */
        return strnlen(at, DP_NAME_MAX + 1) == small ? DP_OK : DP_BADMSG;
    case FIELD_U32:
        small = dp_read_u32(reader);
        memcpy(at, &small, sizeof small);
        return DP_OK;
    case FIELD_U64:
        large = dp_read_u64(reader);
        memcpy(at, &large, sizeof large);
        return DP_OK;
    case FIELD_ENUM:
        small = dp_read_u8(reader);
        memcpy(at, &small, sizeof small);
        return DP_OK;
    case FIELD_BYTES32:
        dp_read_bytes(reader, at, 32);
        return DP_OK;
    case FIELD_SHARDS:
        return read_shards(reader, manifest);
    case FIELD_GONE: /* Of a run that needs it: an earlier version goes on with that. */
        return dp_read_u32(reader) == f->standard || reader->failed ? DP_OK : DP_VERSION;
    }
    return DP_BADMSG;
}

dp_status dp_manifest_decode(dp_manifest *manifest, dp_view bytes)
{
    dp_reader reader = dp_reader_of(bytes);
    uint8_t start[sizeof magic];
    dp_read_bytes(&reader, start, sizeof start);
    if (memcmp(start, magic, sizeof magic) != 0) {
        return DP_BADMSG;
    }
    const uint16_t version = dp_read_u16(&reader);
    if (reader.failed) {
        return DP_BADMSG;
    }
    if (version < VERSION_FIRST || version > VERSION_LAST) {
        return DP_VERSION;
    }
    dp_manifest read;
    memset(&read, 0, sizeof read);
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        if (fields[i].since <= version) {
            DP_TRY(read_field(&reader, &read, &fields[i]));
        } else if (fields[i].type != FIELD_GONE && fields[i].type != FIELD_U64) {
            memcpy((char *)&read + fields[i].offset, &fields[i].standard,
                   sizeof fields[i].standard);
        }
    }
    dp_read_bytes(&reader, read.signature, SIGNATURE_BYTES);
    DP_TRY(dp_reader_finish(&reader));
    if (version_of(&read) == version && read.trust == DP_TRUST_OPEN &&
        !dp_manifest_judgeable(&read) && !dp_manifest_external(&read)) {
        return DP_VERSION; /* Of before this rule (dp_manifest_check), with that version. */
    }
    if (version_of(&read) != version || dp_manifest_check(&read, NULL) != DP_OK) {
        return DP_BADMSG;
    }
    *manifest = read;
    return DP_OK;
}

dp_hash dp_manifest_run_id(dp_view canonical)
{
    const size_t size = canonical.size > SIGNATURE_BYTES ? canonical.size - SIGNATURE_BYTES : 0;
    return dp_hash_of("dpnode/run/1", dp_view_of(canonical.data, size));
}
