/* The parts in a record: which a voter lists, and whether it may accept those of another. */
#include <string.h>

#include "base/assert.h"
#include "gossip/context/context.h"
#include "gossip/parts/part_round.h"
#include "gossip/parts/part_wait.h"
#include "gossip/round/round.h"

uint32_t dp_part_round_ready(const dp_node *node, uint32_t *chosen)
{
    dp_seal seals[DP_VOTERS_MAX];
    dp_hash root;
    uint32_t n_seals = 0;
    uint32_t n = 0;

    if (!dp_round_state_cert(node, &root, seals, &n_seals)) {
        return 0;
    }
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        const dp_claim *claim = &node->round->claims[i];
        if (!claim->evidence && dp_round_may_list(node, &claim->ready, &root)) {
            chosen[n++] = i;
        }
    }
    return n;
}

/* ---- which results ---- */

static uint32_t claim_of(const dp_node *node, const dp_part_source *source, const uint32_t *ready,
                         uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const dp_ready *claim = &node->round->claims[ready[i]].ready;
        if (dp_peer_equal(&claim->peer, &source->peer) &&
            dp_hash_equal(&claim->root, &source->root)) {
            return ready[i];
        }
    }
    return UINT32_MAX;
}

bool dp_part_round_may_name(const dp_node *node, const dp_result *result, const uint32_t *ready,
                            uint32_t n)
{
    bool may = dp_round_may_contribute(node, &result->word.owner);

    dp_assert(n <= DP_CLAIMS_MAX);
    for (uint32_t i = 0; i < result->word.n && may; i++) {
        may = claim_of(node, &result->word.sources[i], ready, n) != UINT32_MAX;
    }
    return may;
}

/* Own results first in everything: more contributions, then the owner before others, then by
 * root. */
static bool is_better(const dp_node *node, const dp_result *a, const dp_result *b)
{
    const dp_peer *owner = &node->ledger.layout.owners[a->word.part];
    const bool first_a = dp_peer_equal(&a->word.owner, owner);
    const bool first_b = dp_peer_equal(&b->word.owner, owner);

    if (a->word.n != b->word.n) {
        return a->word.n > b->word.n;
    }
    if (first_a != first_b) {
        return first_a;
    }
    return memcmp(a->word.root.bytes, b->word.root.bytes, DP_HASH_BYTES) < 0;
}

static bool is_usable(const dp_node *node, const dp_result *result, const uint32_t *ready,
                      uint32_t n)
{
    return result->held && result->checked && !result->bad && result->size == result->word.bytes &&
           dp_part_round_may_name(node, result, ready, n);
}

/* Of each part the best usable result that all of mask hold, or NULL: how many. */
static uint32_t results_of(const dp_node *node, const bool usable[DP_RESULTS_MAX], uint32_t mask,
                           const dp_result *best[DP_PARTS_MAX])
{
    const dp_part_round *parts = node->parts;
    uint32_t n = 0;

    for (uint32_t part = 0; part < DP_PARTS_MAX; part++) {
        best[part] = NULL;
    }
    for (uint32_t i = 0; i < parts->n_results; i++) {
        const dp_result *result = &parts->results[i];
        const uint32_t part = result->word.part;
        if (!usable[i] || ((result->have | 1U << node->commit->self) & mask) != mask) {
            continue;
        }
        n += best[part] == NULL ? 1 : 0;
        if (best[part] == NULL || is_better(node, result, best[part])) {
            best[part] = result;
        }
    }
    return n;
}

/* Of all majorities that contain this node, the one that holds most parts of nothing but these
 * claims. */
static uint32_t choose_results(const dp_node *node, const uint32_t *ready, uint32_t n_ready,
                               const dp_result *chosen[DP_PARTS_MAX])
{
    const uint32_t self = node->commit->self;
    const uint32_t majority = dp_ledger_majority(&node->ledger);
    bool usable[DP_RESULTS_MAX] = {false};
    uint32_t most = 0;
    uint32_t best = 0;

    for (uint32_t part = 0; part < DP_PARTS_MAX; part++) {
        chosen[part] = NULL;
    }
    if (self == DP_NOBODY) {
        return 0;
    }
    for (uint32_t i = 0; i < node->parts->n_results; i++) {
        usable[i] = is_usable(node, &node->parts->results[i], ready, n_ready);
    }
    for (uint32_t mask = 0; mask < (1U << node->ledger.n_voters); mask++) {
        if ((mask & (1U << self)) == 0 || (uint32_t)__builtin_popcount(mask) != majority) {
            continue;
        }
        const uint32_t n = results_of(node, usable, mask, chosen);
        if (n > most) {
            most = n;
            best = mask;
        }
    }
    return most > 0 ? results_of(node, usable, best, chosen) : 0;
}

uint32_t dp_part_round_held(const dp_node *node)
{
    const dp_result *chosen[DP_PARTS_MAX];
    uint32_t ready[DP_CLAIMS_MAX];

    return choose_results(node, ready, dp_part_round_ready(node, ready), chosen);
}

const char *dp_part_round_close(dp_node *node, const char *cause)
{
    dp_part_round *parts = node->parts;

    if (cause != NULL && parts->ripe_at.us == 0) {
        parts->ripe_at = node->now;
    }
    if (parts->ripe_at.us == 0) {
        return NULL;
    }
    const uint32_t held = dp_part_round_held(node);
    if (held == node->ledger.layout.cuts.n) {
        return cause != NULL ? cause : "parts";
    }
    const dp_part_wait wait = dp_part_round_wait(node, DP_PARTS_MAX);
    return held > 0 && dp_time_reached(node->now,
                                       dp_time_after(parts->ripe_at, dp_part_wait_close(&wait)))
               ? "parts missing"
               : NULL;
}

/* ---- building ---- */

/* Claims that a record lists, in order of peer. */
typedef struct listing {
    uint32_t n;
    uint32_t claims[DP_LISTED_DEFAULT];
} listing;

static bool add_claim(const dp_node *node, listing *all, uint32_t claim)
{
    const dp_claim *claims = node->round->claims;

    dp_assert(claim < node->round->n_claims);
    for (uint32_t i = 0; i < all->n; i++) {
        if (all->claims[i] == claim) {
            return true;
        }
        if (claims[claim].ready.energy != 0 &&
            dp_hash_equal(&claims[all->claims[i]].ready.root, &claims[claim].ready.root)) {
            return false; /* A copy. */
        }
    }
    if (all->n == DP_LISTED_DEFAULT) {
        return false;
    }
    uint32_t at = all->n++;
    while (at > 0 && dp_peer_compare(&claims[claim].ready.peer,
                                     &claims[all->claims[at - 1]].ready.peer) < 0) {
        all->claims[at] = all->claims[at - 1];
        at--;
    }
    all->claims[at] = claim;
    return true;
}

/* All contributions in this result may be listed beside those that are listed already. */
static bool add_result(const dp_node *node, listing *all, const dp_result *result,
                       const uint32_t *ready, uint32_t n_ready)
{
    listing more = *all;

    for (uint32_t i = 0; i < result->word.n; i++) {
        const uint32_t claim = claim_of(node, &result->word.sources[i], ready, n_ready);
        if (claim == UINT32_MAX || !add_claim(node, &more, claim)) {
            return false;
        }
    }
    *all = more;
    return true;
}

static void write_row(dp_record *draft, const dp_result *result)
{
    dp_part_row *row = &draft->parts[result->word.part];

    dp_assert(result->word.part < DP_PARTS_MAX);
    dp_assert(!result->bad);
    *row = (dp_part_row){.has = true,
                         .owner = result->word.owner,
                         .root = result->word.root,
                         .bytes = result->word.bytes};
    memcpy(row->signature, result->word.signature, sizeof row->signature);
    for (uint32_t i = 0; i < result->word.n; i++) {
        for (uint32_t k = 0; k < draft->n_listed; k++) {
            row->from |=
                dp_peer_equal(&draft->listed[k].peer, &result->word.sources[i].peer) ? 1U << k : 0U;
        }
    }
    row->first_sum = draft->n_sums;
    row->n_sums = result->word.n_sums;
    for (uint32_t i = 0; i < row->n_sums; i++) {
        dp_assert(draft->n_sums < DP_SITE_SUMS_ALL); /* A word has no more than its share. */
        draft->sums[draft->n_sums++] = dp_part_sum_renamed(&result->word.sums[i], row->from, true);
    }
}

/* ready[i] is left out from now on. */
static uint32_t without(uint32_t *ready, uint32_t n, uint32_t claim)
{
    uint32_t kept = 0;

    dp_assert(claim < DP_CLAIMS_MAX);
    dp_assert(n <= DP_CLAIMS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        if (ready[i] != claim) {
            ready[kept++] = ready[i];
        }
    }
    return kept;
}

void dp_part_round_list(dp_node *node, dp_record *draft)
{
    const dp_result *chosen[DP_PARTS_MAX];
    uint32_t ready[DP_CLAIMS_MAX];
    uint32_t n_ready = dp_part_round_ready(node, ready);
    bool again = true;

    dp_assert(draft->n_listed == 0);
    draft->parted = true;
    draft->n_parts = node->ledger.layout.cuts.n;
    while (again) { /* Each turn has one claim fewer that may be listed. */
        listing all = {0};
        bool used[DP_PARTS_MAX] = {false};
        again = false;
        DP_IGNORE(choose_results(node, ready, n_ready, chosen) == 0);
        draft->n_listed = 0;
        draft->n_sums = 0;
        for (uint32_t p = 0; p < draft->n_parts; p++) {
            draft->parts[p] = (dp_part_row){.has = false};
            used[p] = chosen[p] != NULL && add_result(node, &all, chosen[p], ready, n_ready);
        }
        for (uint32_t i = 0; i < all.n && !again; i++) {
            if (!dp_round_list(node, draft, &node->round->claims[all.claims[i]])) {
                n_ready = without(ready, n_ready, all.claims[i]);
                again = true;
            }
        }
        for (uint32_t p = 0; p < draft->n_parts && !again; p++) {
            if (used[p]) {
                write_row(draft, chosen[p]);
            }
        }
    }
}

/* ---- judging ---- */

int dp_part_round_judge(dp_node *node, const dp_record *record)
{
    dp_part_round *parts = node->parts;
    int verdict = 1;

    dp_assert(record->n_parts <= DP_PARTS_MAX);
    for (uint32_t p = 0; p < record->n_parts; p++) {
        if (!record->parts[p].has) {
            continue;
        }
        const dp_part_word word = dp_part_word_of(record, p);
        const dp_result *result = NULL;
        for (uint32_t i = 0; i < parts->n_results; i++) {
            if (parts->results[i].word.part == p &&
                dp_hash_equal(&parts->results[i].word.root, &word.root)) {
                result = &parts->results[i];
                if (result->word.bytes == word.bytes) {
                    break;
                }
            }
        }
        if (result == NULL) {
            dp_part_round_word(node, &word, true);
            verdict = 0;
        } else if (!result->held || !result->checked) {
            verdict = 0;
        } else if (result->bad || result->size != word.bytes) {
            return -1;
        }
    }
    return verdict;
}
