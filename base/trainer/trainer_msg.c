/* Messages as bytes: which fields each kind carries, encoded and decoded by one table. The types of
 * fields are in trainer_field.c. */
#include "base/trainer/trainer_msg.h"

#include <stddef.h>
#include <string.h>

#include "base/pack.h"
#include "base/trainer/trainer_field.h"

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
    EMPTY,
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
    AGAIN,
    SEED,
    ITEMS,
    LEASED,
    OWN,
    LEASE,
    SHARES, /* after ITEMS, whose count it must have */
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
    CELSIUS,
    WATTS,
    TEMPERATURE,
    TOP_K,
    TOP_P,
    NAME,
    DEVICE,
    WHAT,
    PROMPT,
    TEXT,
    FIELD_COUNT
} field_id;

static const dp_trainer_field fields[FIELD_COUNT] = {
    [ABI] = FIELD("abi", DP_FIELD_U32, abi),
    [PID] = FIELD("pid", DP_FIELD_U32, pid),
    [ROUND] = FIELD("round", DP_FIELD_U64, round),
    [ELEMENTS] = FIELD("elements", DP_FIELD_U64, elements),
    [TOKENS] = FIELD("tokens", DP_FIELD_U64, tokens),
    [CARRIED] = FIELD("carried", DP_FIELD_U64, carried),
    [STEPS] = FIELD("steps", DP_FIELD_U32, steps),
    [SKIPPED] = FIELD("skipped", DP_FIELD_U32, skipped),
    [SPIKES] = FIELD("spikes", DP_FIELD_U32, spikes),
    [EMPTY] = FIELD("empty", DP_FIELD_U32, empty),
    [COMPUTED_US] = FIELD("computed_us", DP_FIELD_U64, computed_us),
    [TRAINED_US] = FIELD("trained_us", DP_FIELD_U64, trained_us),
    [DATA_US] = FIELD("data_us", DP_FIELD_U64, spent.data_us),
    [PUBLISH_US] = FIELD("publish_us", DP_FIELD_U64, spent.publish_us),
    [APPLY_US] = FIELD("apply_us", DP_FIELD_U64, spent.apply_us),
    [STATE_US] = FIELD("state_us", DP_FIELD_U64, spent.state_us),
    [TELL_US] = FIELD("tell_us", DP_FIELD_U64, spent.tell_us),
    [ID] = FIELD("id", DP_FIELD_U32, id),
    [OF] = {.key = "of",
            .type = DP_FIELD_ENUM,
            .offset = offsetof(dp_trainer_msg, of),
            .min = 0,
            .max = DP_TRAINER_KIND_COUNT - 1},
    [EXCHANGE] = FIELD("exchange", DP_FIELD_BIN16, exchange),
    [MEMBER] = FIELD("member", DP_FIELD_BIN32, member),
    [ROOT] = FIELD("root", DP_FIELD_BIN32, root),
    [LOSS] = FIELD("loss", DP_FIELD_F64, loss),
    [BITS] = FIELD("bits_per_byte", DP_FIELD_F64, bits_per_byte),
    [MOVED] = FIELD("moved", DP_FIELD_F64, moved),
    [OUTER_REACH] = FIELD("outer_reach", DP_FIELD_F64, outer_reach),
    [NORM] = FIELD("norm", DP_FIELD_F64, norm),
    [ERROR] = FIELD("error", DP_FIELD_F64, error),
    [WEIGHT_OWN] = FIELD("weight_own", DP_FIELD_U64, weight_own),
    [WEIGHT_OTHER] = FIELD("weight_other", DP_FIELD_U64, weight_other),
    [ENERGY] = FIELD("energy", DP_FIELD_ENERGY, energy),
    [ALPHA] = FIELD("alpha", DP_FIELD_U32, alpha),
    [CLIP] = FIELD("clip", DP_FIELD_U32, clip),
    [LAMBDA] = FIELD("lambda", DP_FIELD_U32, lambda),
    [SETTLE] = {.key = "settle",
                .type = DP_FIELD_ENUM,
                .offset = offsetof(dp_trainer_msg, settle),
                .min = DP_SETTLE_NONE,
                .max = DP_SETTLE_LEFT_OUT},
    [RESTORE] = {.key = "kind",
                 .type = DP_FIELD_ENUM,
                 .offset = offsetof(dp_trainer_msg, restore),
                 .min = DP_RESTORE_PENDING,
                 .max = DP_RESTORE_FROZEN},
    [DENSE] = FIELD("dense", DP_FIELD_BOOL, dense),
    [OK] = FIELD("ok", DP_FIELD_BOOL, ok),
    [FOREIGN] = FIELD("foreign", DP_FIELD_BOOL, foreign),
    [LACKS] = FIELD("lacks", DP_FIELD_BOOL, lacks),
    [AGAIN] = FIELD("again", DP_FIELD_BOOL, again),
    [SEED] = FIELD("seed", DP_FIELD_U64, seed),
    [TEMPERATURE] = FIELD("temperature", DP_FIELD_F64, temperature),
    [TOP_K] = FIELD("top_k", DP_FIELD_U32, top_k),
    [TOP_P] = FIELD("top_p", DP_FIELD_F64, top_p),
    [ITEMS] = FIELD("items", DP_FIELD_ITEMS, q),
    [LEASED] = FIELD("leased", DP_FIELD_U64, reach.leased),
    [OWN] = FIELD("own", DP_FIELD_U64, reach.own),
    [LEASE] = FIELD("lease", DP_FIELD_RANGES, ranges),
    [SHARES] = FIELD("shares", DP_FIELD_SHARES, shares),
    [CONTRIBUTORS] = FIELD("contributors", DP_FIELD_U32, contributors),
    [AT] = FIELD("at", DP_FIELD_U32, at),
    [PART] = FIELD("part", DP_FIELD_U32, part),
    [FIRST] = {.key = "first",
               .type = DP_FIELD_ENUM,
               .offset = offsetof(dp_trainer_msg, range.first),
               .max = DP_PART_WHOLE},
    [END] = {.key = "end",
             .type = DP_FIELD_ENUM,
             .offset = offsetof(dp_trainer_msg, range.end),
             .max = DP_PART_WHOLE},
    [CUTS] = FIELD("cuts", DP_FIELD_CUTS, cuts),
    [TAKEN] = FIELD("taken", DP_FIELD_U32, taken),
    [KEEP] = FIELD("keep", DP_FIELD_U32, keep),
    [SCALE] = FIELD("scale", DP_FIELD_U32, scale),
    [OWN_COUNT] = FIELD("own_count", DP_FIELD_U64, own_count),
    [DID_FAIL] = FIELD("failed", DP_FIELD_BOOL, judged.failed),
    [COMPARED] = FIELD("compared", DP_FIELD_BOOL, judged.compared),
    [ALIGN] = FIELD("align", DP_FIELD_COSINE, judged.align),
    [HELD] = FIELD("held", DP_FIELD_GAIN, judged.held),
    [CLAIMED] = FIELD("claimed", DP_FIELD_GAIN, judged.claimed),
    [LIKENESS] = FIELD("likeness", DP_FIELD_BIN32, judged.likeness),
    [CELSIUS] = FIELD("celsius", DP_FIELD_U32, celsius),
    [WATTS] = FIELD("watts", DP_FIELD_U32, watts),
    [NAME] = FIELD("name", DP_FIELD_TEXT, text),
    [DEVICE] = FIELD("device", DP_FIELD_TEXT, text),
    [WHAT] = FIELD("what", DP_FIELD_TEXT, text),
    [PROMPT] = FIELD("prompt", DP_FIELD_TEXT, text),
    [TEXT] = FIELD("text", DP_FIELD_TEXT, text),
};

_Static_assert(sizeof(dp_settle) == 4 && sizeof(dp_restore) == 4 && sizeof(dp_trainer_kind) == 4,
               "enums are read and written as four bytes");
_Static_assert(DP_LIKENESS_BYTES == 32, "a likeness is read and written as that many bytes");

typedef unsigned __int128 field_set;

/* The fields that a kind carries: bit i stands for fields[i]. */
typedef struct shape {
    const char *name;
    field_set fields;
    field_set optional; /* of fields: those that may be absent, as from an older trainer */
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
                                      BIT(LAMBDA) | BIT(STEPS) | BIT(TOKENS) | BIT(CARRIED) |
                                      BIT(CUTS) | BIT(TAKEN),
                            .optional = BIT(CARRIED) | BIT(CUTS) | BIT(TAKEN)},
    [DP_TRAINER_TRAIN] = {.name = "train",
                          .fields = BIT(ROUND) | BIT(TOKENS) | BIT(LEASED) | BIT(OWN) | BIT(LEASE)},
    [DP_TRAINER_STEP] = {.name = "step",
                         .fields = BIT(ROUND) | BIT(STEPS) | BIT(TOKENS) | BIT(LOSS) |
                                   BIT(SKIPPED) | BIT(SPIKES) | BIT(EMPTY) | BIT(AGAIN) |
                                   SPENT_BITS | BIT(CELSIUS) | BIT(WATTS),
                         .optional = BIT(SKIPPED) | BIT(SPIKES) | BIT(EMPTY) | BIT(AGAIN) |
                                     SPENT_BITS | BIT(CELSIUS) | BIT(WATTS)},
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
    [DP_TRAINER_SAMPLE] = {.name = "sample",
                           .fields = BIT(PROMPT) | BIT(TOKENS) | BIT(SEED) | BIT(TEMPERATURE) |
                                     BIT(TOP_K) | BIT(TOP_P),
                           .optional = BIT(TEMPERATURE) | BIT(TOP_K) | BIT(TOP_P)},
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
    [DP_TRAINER_SCRIPT] = {.name = "script", .fields = BIT(PID)},
    [DP_TRAINER_LIMITS] = {.name = "limits", .fields = BIT(CELSIUS) | BIT(WATTS)},
    [DP_TRAINER_RESTING] = {.name = "resting",
                            .fields = BIT(OK) | BIT(CELSIUS),
                            .optional = BIT(CELSIUS)},
};

const char *dp_trainer_kind_name(dp_trainer_kind kind)
{
    if (kind < DP_TRAINER_HELLO || kind >= DP_TRAINER_KIND_COUNT) {
        return "unknown";
    }
    return shapes[kind].name;
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
            dp_trainer_field_pack(&packer, msg, &fields[i]);
        }
    }
    return dp_packer_finish(&packer);
}

static bool unpack(const dp_pack_value *root, dp_trainer_msg *msg)
{
    uint32_t kind;
    if (!dp_trainer_field_u32(dp_pack_key(root, "type"), &kind) || kind < DP_TRAINER_HELLO ||
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
        if (!dp_trainer_field_unpack(value, msg, &fields[i])) {
            return false;
        }
    }
    return msg->kind != DP_TRAINER_JUDGE || dp_trainer_are_samples(msg->reach.own, msg->own_count);
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
