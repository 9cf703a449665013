/* The kind of run whose updates are summed in parts (kind.h). */
#include "base/alloc.h"
#include "base/assert.h"
#include "gossip/context/context.h"
#include "gossip/parts/part_round.h"
#include "gossip/round/claim.h"
#include "gossip/round/kind.h"
#include "gossip/round/round.h"
#include "gossip/round/round_msg.h"

dp_status dp_part_round_reserve(dp_node *node)
{
    node->parts = dp_reserve(1, sizeof *node->parts);
    if (node->parts == NULL) {
        return DP_NOMEM;
    }
    node->parts->wake_at = DP_NEVER;
    return DP_OK;
}

void dp_part_round_release(dp_node *node)
{
    dp_free(node->parts);
}

void dp_part_round_forget_member(dp_node *node, uint32_t index)
{
    dp_assert(index < DP_MEMBERS_MAX);
    if (node->parts != NULL) {
        node->parts->site.near[index / 64] &= ~(1ULL << (index % 64));
    }
}

static void open_slot(dp_node *node, bool new_round)
{
    if (new_round) {
        dp_part_round_open_round(node);
    }
    for (uint32_t i = 0; i < node->parts->n_results; i++) {
        node->parts->results[i].have = 0; /* Bits are by voter of the slot. */
    }
}

/* All that is missing is looked for, since one contribution may end several waits. */
static void fetch(dp_node *node, dp_claim *claim)
{
    (void)claim;
    dp_part_round_look(node);
}

static bool sized(dp_node *node, const dp_hash *root, uint64_t size)
{
    bool right = false;

    for (uint32_t i = 0; i < node->parts->n_results; i++) {
        dp_result *result = &node->parts->results[i];
        if (!result->held && !result->bad && dp_hash_equal(&result->word.root, root) &&
            !dp_claim_hold_against(&result->bad, result->word.bytes, size)) {
            dp_claim_note_lie(node, result->word.round, &result->word.owner);
        } else {
            right = right || (!result->bad && dp_hash_equal(&result->word.root, root));
        }
    }
    for (uint32_t i = 0; i < node->parts->n_sums; i++) {
        dp_sum *sum = &node->parts->sums[i];
        if (!sum->held && !sum->bad && dp_hash_equal(&sum->word.root, root) &&
            !dp_claim_hold_against(&sum->bad, sum->word.bytes, size)) {
            dp_claim_note_lie(node, sum->word.round, &sum->word.owner);
        } else {
            right = right || (!sum->bad && dp_hash_equal(&sum->word.root, root));
        }
    }
    return right;
}

static void add_have(dp_node *node, dp_have_msg *have)
{
    dp_assert(node->commit->self < DP_VOTERS_MAX);
    for (uint32_t i = 0; i < node->parts->n_results; i++) {
        dp_result *result = &node->parts->results[i];
        if (result->held && result->checked && !result->bad && have->n < DP_HAVE_MAX) {
            result->have |= 1U << node->commit->self;
            have->roots[have->n++] = result->word.root;
        }
    }
}

static const char *close(dp_node *node, const char *cause)
{
    uint32_t ready[DP_CLAIMS_MAX];

    if (cause != NULL && dp_part_round_ready(node, ready) == 0) {
        return cause; /* A config part is no matter of parts. */
    }
    return dp_part_round_close(node, cause);
}

static dp_verdict judge(dp_node *node, const dp_record *record)
{
    const int held = dp_part_round_judge(node, record);

    dp_assert(node->ledger.parted);
    return held > 0 ? DP_VERDICT_YES : held == 0 ? DP_VERDICT_LATER : DP_VERDICT_NO;
}

/* When the round may be ripe, and then the next wait. */
static dp_time wake(const dp_node *node)
{
    const dp_round *round = node->round;
    dp_time wake = dp_part_round_wake(node);

    if (node->parts->ripe_at.us == 0 && round->enough_at.us != 0) {
        wake = dp_time_min(wake, dp_time_after(round->enough_at, round->grace_us));
    }
    if (node->parts->ripe_at.us == 0 && round->opened.us != 0) {
        wake = dp_time_min(wake, dp_time_after(round->opened, dp_round_hard_us(node)));
    }
    return wake.us > node->now.us ? wake : dp_time_after(node->now, 20 * DP_MS);
}

const dp_round_kind dp_round_parted = {.open_slot = open_slot,
                                       .fetch = fetch,
                                       .have = dp_part_round_have,
                                       .object = dp_part_round_object,
                                       .lost = dp_part_round_lost,
                                       .asked = dp_part_round_asked,
                                       .knows = dp_part_round_knows,
                                       .sized = sized,
                                       .checked = dp_part_round_checked,
                                       .trainer_down = dp_part_round_trainer_down,
                                       .look = dp_part_round_look,
                                       .add_have = add_have,
                                       .repeat = dp_part_round_repeat,
                                       .ready = dp_part_round_ready,
                                       .held = dp_part_round_held,
                                       .close = close,
                                       .list = dp_part_round_list,
                                       .judge = judge,
                                       .drop = dp_part_round_drop,
                                       .tick = dp_part_round_tick,
                                       .wake = wake};
