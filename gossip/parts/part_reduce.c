/* Input of the sum of a part: one object per contribution, in order of peer, with shares of their
 * mean. A sum of a site stands in the place of its first contribution. */
#include <string.h>

#include "base/assert.h"
#include "gossip/context/context.h"
#include "gossip/parts/part_round.h"
#include "gossip/round/round.h"

/* Like drop_copies of propose.c, which does it with whole updates: a member that publishes
 * another's parts with one of them changed is found by the owners of the other parts. A
 * contribution in a sum of a site stays: two contributions in sums are never the same
 * (part_take.c). */
uint32_t dp_part_round_drop_copies(const dp_node *node, uint32_t part, uint32_t *claims, uint32_t n)
{
    const dp_claim *all = node->round->claims;
    bool summed[DP_CLAIMS_MAX];
    bool dropped[DP_CLAIMS_MAX] = {false};
    uint32_t kept = 0;

    dp_assert(n <= DP_CLAIMS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        summed[i] = dp_part_take_sum_of(node, part, &all[claims[i]]) != NULL;
    }
    for (uint32_t i = 0; i < n; i++) {
        const dp_claim *claim = &all[claims[i]];
        const bool may = !summed[i] && (claim->parts.nothing >> part & 1U) == 0;
        for (uint32_t k = 0; k < n && may && !dropped[i]; k++) {
            dropped[i] = (summed[k] || (k < i && !dropped[k])) &&
                         dp_hash_equal(&all[claims[k]].ready.parts.refs[part].root,
                                       &claim->ready.parts.refs[part].root);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!dropped[i]) {
            claims[kept++] = claims[i];
        }
    }
    return kept;
}

void dp_part_round_reduce(dp_node *node, uint32_t part, uint32_t tag, const dp_part_term *terms,
                          uint32_t n)
{
    const dp_part_cuts *cuts = &node->ledger.layout.cuts;
    dp_action *action = dp_out_add(&node->out, DP_DO_REDUCE);
    unsigned __int128 all = 0;

    dp_assert(part < node->ledger.layout.cuts.n);
    dp_assert(n > 0);
    for (uint32_t i = 0; i < n; i++) {
        all += terms[i].w;
    }
    action->u.reduce.round = node->ledger.round + 1;
    action->u.reduce.part = part + tag;
    action->u.reduce.first = cuts->first[part];
    action->u.reduce.end = dp_part_end(cuts, part);
    action->u.reduce.n_items = n;
    for (uint32_t i = 0; i < n; i++) {
        action->u.reduce.items[i] =
            (dp_apply_item){.root = terms[i].ref.root,
                            .bytes = terms[i].ref.bytes,
                            .q = dp_weight_share(terms[i].w, terms[i].clip, all),
                            .first = action->u.reduce.first,
                            .end = action->u.reduce.end};
    }
}

/* A sum of a site stands in the place of its first contribution, with the weight of all of them. */
void dp_part_round_reduce_chosen(dp_node *node, uint32_t part, const uint32_t *chosen, uint32_t n)
{
    dp_duty *duty = &node->parts->duties[part];
    dp_part_term terms[DP_LISTED_DEFAULT];
    const dp_sum *sums[DP_SITE_SUMS_MAX] = {NULL};
    uint32_t at[DP_SITE_SUMS_MAX] = {0};
    uint32_t n_terms = 0;

    dp_assert(part < node->ledger.layout.cuts.n);
    dp_assert(n <= DP_LISTED_MAX);
    duty->n = n;
    duty->n_sums = 0;
    for (uint32_t i = 0; i < n; i++) {
        const dp_claim *claim = &node->round->claims[chosen[i]];
        const dp_part_term term = dp_part_round_term(node, claim, part);
        const dp_sum *sum = dp_part_take_sum_of(node, part, claim);
        uint32_t k = 0;
        duty->sources[i] = (dp_part_source){.peer = claim->ready.peer, .root = claim->ready.root};
        while (sum != NULL && k < duty->n_sums && sums[k] != sum) {
            k++;
        }
        if (sum == NULL) {
            terms[n_terms++] = term;
            continue;
        }
        if (k == duty->n_sums) {
            dp_assert(k < DP_SITE_SUMS_MAX);
            sums[k] = sum;
            at[k] = n_terms;
            terms[n_terms++] = (dp_part_term){
                .ref = {.root = sum->word.root, .bytes = sum->word.bytes}, .clip = DP_CLIP_ONE};
            duty->sums[duty->n_sums] =
                (dp_site_sum){.root = sum->word.root, .bytes = sum->word.bytes};
            memcpy(duty->sums[duty->n_sums++].signature, sum->word.signature,
                   sizeof sum->word.signature);
        }
        if (dp_broken(75) && n_terms < DP_LISTED_DEFAULT) {
            terms[n_terms++] = term; /* The object too. */
        }
        if (!dp_broken(76) || terms[at[k]].w == 0) {
            terms[at[k]].w += term.w;
        }
        duty->sums[k].from |= 1U << i;
        duty->sums[k].collector =
            dp_peer_equal(&claim->ready.peer, &sum->word.owner) ? i : duty->sums[k].collector;
    }
    dp_part_round_reduce(node, part, 0, terms, n_terms);
    duty->reducing = true;
}
