/* The length of an object. READY, PART and SUM state it under their author's signature, and the
 * root proves the size that a holder gives. Where the two differ the author has lied: the node
 * names it and fetches nothing for that message, so that a contribution of "1,000 bytes" costs no
 * node more. */
#include "base/assert.h"
#include "gossip/context/context.h"
#include "gossip/round/claim.h"
#include "gossip/round/kind.h"
#include "gossip/round/round.h"

bool dp_claim_fits(const dp_node *node, const dp_ready *ready)
{
    const uint64_t most = dp_manifest_update_bytes_max(&node->manifest);

    return dp_broken(184) || ready->bytes <= most;
}

bool dp_claim_hold_against(bool *bad, uint64_t said, uint64_t size)
{
    *bad = *bad || said != size;
    return said == size;
}

void dp_claim_note_lie(dp_node *node, uint64_t round, const dp_peer *liar)
{
    node->rejected++;
    dp_node_note(node, DP_NOTE_REJECTED, round, liar, 0, 0,
                 "one of its objects has another size than it announced");
}

/* The objects of a publication that this claim names. True: one of them is this one, and as long as
 * told. */
static bool judge_claim(dp_node *node, dp_claim *claim, const dp_hash *root, uint64_t size)
{
    const dp_ready *ready = &claim->ready;
    bool lied = false;
    bool right = false;

    dp_assert(claim->ready.parts.n <= DP_PARTS_MAX);
    if (!node->ledger.parted && !claim->held && !claim->bad && dp_hash_equal(&ready->root, root)) {
        right = dp_claim_hold_against(&claim->bad, ready->bytes, size);
        lied = !right;
    }
    for (uint32_t p = 0; p < ready->parts.n; p++) {
        const uint32_t bit = 1U << p;
        if (((claim->parts.held | claim->parts.bad) & bit) != 0 ||
            !dp_hash_equal(&ready->parts.refs[p].root, root)) {
            continue;
        }
        bool bad = false;
        right = dp_claim_hold_against(&bad, ready->parts.refs[p].bytes, size) || right;
        claim->parts.bad |= bad ? bit : 0;
        lied = lied || bad;
    }
    if (lied) {
        dp_claim_note_lie(node, ready->round, &ready->peer);
    }
    return right;
}

void dp_claim_sized(dp_node *node, const dp_hash *root, uint64_t size)
{
    const uint64_t rejected = node->rejected;
    bool right = false;

    if (dp_broken(185) || !dp_picker_unsure(node->picker, root)) {
        /* Not wanted, or by a record, the manifest or a partner, which the holder is held
         * against. */
        return;
    }
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        right = judge_claim(node, &node->round->claims[i], root, size) || right;
    }
    right = node->kind->sized(node, root, size) || right;
    if (node->rejected != rejected) {
        if (!right) {
            dp_picker_cancel(node->picker, node->now, root, &node->out);
        }
        dp_node_changed(node);
    }
}
