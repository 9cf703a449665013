/* Sums of sites at the owner of a part: the owner waits for a member that says that it collects,
 * fetches its sum, judges it and adds it to the part. Contributions whose sum does not come in time
 * are fetched as objects. A member that adds up a part in its owner's place takes objects only. */
#include <string.h>

#include "base/assert.h"
#include "gossip/context/context.h"
#include "gossip/parts/part_round.h"
#include "gossip/parts/part_wait.h"
#include "gossip/record/part_sum.h"
#include "gossip/round/round.h"

enum {
    /* energy of an encoded sum over that of the sum: a value of half a step is rounded to one */
    LARGER_MAX = 4
};

static bool owns(const dp_node *node, uint32_t part)
{
    dp_assert(node->ledger.parted);
    return part < node->ledger.layout.cuts.n &&
           dp_peer_equal(&node->ledger.layout.owners[part], &node->self);
}

static bool is_far(const dp_node *node, const dp_peer *peer)
{
    const uint32_t index = dp_node_member_index(node, peer);

    return index != 0 && (index == DP_MEMBER_NONE || !dp_part_site_near(node->parts, index));
}

static bool is_in(const dp_part_word *word, const dp_peer *peer)
{
    for (uint32_t i = 0; i < word->n; i++) {
        if (dp_peer_equal(&word->sources[i].peer, peer)) {
            return true;
        }
    }
    return false;
}

/* Are all sources of the sum far away? A node has the objects of itself and of the members near to
 * it anyhow; with a sum of those, a collector far away would speak for all of them. */
static bool is_of_far(const dp_node *node, const dp_part_word *word)
{
    bool far = true;

    for (uint32_t i = 0; i < word->n && far; i++) {
        far = is_far(node, &word->sources[i].peer);
    }
    return far;
}

static bool will_be_of_far(const dp_node *node, const dp_collect *told)
{
    bool far = true;

    for (uint32_t i = 0; i < told->n && far; i++) {
        far = is_far(node, &told->peers[i]);
    }
    return far;
}

/* ---- messages of collectors ---- */

static void forget_hint(dp_part_round *parts, const dp_peer *collector)
{
    dp_assert(parts->n_hints <= DP_HINTS_MAX);
    for (uint32_t i = parts->n_hints; i-- > 0;) {
        if (dp_peer_equal(&parts->hints[i].collector, collector)) {
            parts->hints[i] = parts->hints[--parts->n_hints];
        }
    }
}

static dp_sum *sum_by(const dp_part_round *parts, uint32_t part, const dp_peer *collector)
{
    for (uint32_t i = 0; i < parts->n_sums; i++) {
        const dp_sum *sum = &parts->sums[i];
        if (!sum->mine && sum->word.part == part && dp_peer_equal(&sum->word.owner, collector)) {
            return (dp_sum *)(uintptr_t)sum;
        }
    }
    return NULL;
}

dp_status dp_part_take_hint(dp_node *node, uint32_t from, dp_view bytes, bool *look)
{
    const dp_peer collector = dp_members_at(node->members, from)->peer;
    dp_collect told;

    DP_TRY(dp_collect_read(bytes, &told));
    if (node->parts == NULL || !node->ledger.summed) {
        return DP_DENIED;
    }
    if (told.round != node->ledger.round + 1 || !dp_hash_equal(&told.base, &node->ledger.base)) {
        return DP_OK; /* It is told again. */
    }
    if (!owns(node, told.part) || !dp_round_may_contribute(node, &collector)) {
        return DP_DENIED;
    }
    dp_part_round *parts = node->parts;
    forget_hint(parts, &collector);
    if (told.n > 0 && parts->n_hints < DP_HINTS_MAX && is_far(node, &collector) &&
        will_be_of_far(node, &told) && sum_by(parts, told.part, &collector) == NULL) {
        parts->hints[parts->n_hints++] = (dp_part_hint){.collector = collector, .told = told};
    }
    *look = told.n == 0; /* The sum comes no more: its contributions are fetched. */
    dp_node_changed(node);
    return DP_OK;
}

static uint32_t count_taken(const dp_part_round *parts)
{
    uint32_t n = 0;

    dp_assert(parts->n_sums <= DP_SUMS_MAX);
    for (uint32_t i = 0; i < parts->n_sums; i++) {
        n += parts->sums[i].mine ? 0 : 1;
    }
    return n;
}

dp_status dp_part_take_message(dp_node *node, dp_view bytes, bool *look)
{
    dp_part_word word;

    DP_TRY(dp_site_sum_msg_read(bytes, &word));
    if (node->parts == NULL || !node->ledger.summed) {
        return DP_DENIED;
    }
    if (word.round != node->ledger.round + 1 || !dp_hash_equal(&word.base, &node->ledger.base)) {
        return DP_OK;
    }
    if (!owns(node, word.part) || !dp_round_may_contribute(node, &word.owner) ||
        dp_peer_equal(&word.owner, &node->self)) {
        return DP_DENIED;
    }
    dp_part_round *parts = node->parts;
    if (sum_by(parts, word.part, &word.owner) != NULL) {
        return DP_OK; /* Of one there is one. */
    }
    if (!dp_site_sum_verify(&word, &node->config.crypto, &node->run, &node->ledger.fork)) {
        return DP_BADSIG;
    }
    forget_hint(parts, &word.owner);
    if (is_of_far(node, &word) &&
        count_taken(parts) < dp_site_sums_most(node->ledger.layout.cuts.n) &&
        parts->n_sums < DP_SUMS_MAX) {
        parts->sums[parts->n_sums++] =
            (dp_sum){.word = word, .since = node->now, .moved = node->now};
    }
    *look = true;
    dp_node_changed(node);
    return DP_OK;
}

/* ---- checks of their sums ---- */

/* The claim of the publication that this source of a sum names; NULL: its author has none here, or
 * another one. */
static const dp_claim *claim_of(const dp_node *node, const dp_part_source *source, uint32_t part)
{
    const dp_claim *claim = dp_round_claim_of(node, &source->peer);

    return claim != NULL && !claim->evidence && part < claim->ready.parts.n &&
                   dp_hash_equal(&claim->ready.root, &source->root)
               ? claim
               : NULL;
}

/* All of it is known, so that one can say how large it may be. By the triangle inequality: |sum of
 * q_i x_i| <= sum of q_i |x_i|, and x_i, being a part, has no more energy than the READY of the
 * whole says. */
static bool bound_of(const dp_node *node, const dp_sum *sum, unsigned __int128 *energy)
{
    dp_part_term terms[DP_PART_SOURCES_MAX];
    uint64_t norms[DP_PART_SOURCES_MAX];
    unsigned __int128 all = 0;
    unsigned __int128 norm = 0;

    dp_assert(sum->word.n <= DP_PART_SOURCES_MAX);
    for (uint32_t i = 0; i < sum->word.n; i++) {
        const dp_claim *claim = claim_of(node, &sum->word.sources[i], sum->word.part);
        if (claim == NULL) {
            return false;
        }
        terms[i] = dp_part_round_term(node, claim, sum->word.part);
        norms[i] = dp_isqrt(claim->ready.energy) + 1;
        all += terms[i].w;
    }
    for (uint32_t i = 0; i < sum->word.n; i++) {
        norm += (unsigned __int128)dp_weight_share(terms[i].w, terms[i].clip, all) * norms[i];
    }
    norm = (norm >> 31) + 1;
    *energy = LARGER_MAX * norm * norm;
    return true;
}

static void look_at_sum(dp_node *node, dp_sum *sum)
{
    const dp_hash *root = &sum->word.root;
    unsigned __int128 energy = 0;

    dp_assert(sum->word.part < node->ledger.layout.cuts.n);
    if (sum->mine || sum->bad) {
        return;
    }
    if (!sum->held) {
        if (!dp_node_holds(node, root)) {
            if (!dp_picker_wants(node->picker, root)) {
                dp_part_round_fetch(node, root, sum->word.bytes, &sum->word.owner);
            }
            return;
        }
        sum->held = true;
        sum->size = dp_node_size(node, root);
        dp_node_changed(node);
    }
    if (!sum->checked && !sum->checking && bound_of(node, sum, &energy) &&
        dp_part_round_may_check(node)) {
        sum->checking = true;
        dp_part_round_check(node, root, sum->word.part);
    }
}

void dp_part_take_look(dp_node *node)
{
    for (uint32_t i = 0; i < node->parts->n_sums; i++) {
        look_at_sum(node, &node->parts->sums[i]);
    }
}

bool dp_part_take_checked(dp_node *node, const dp_event *event)
{
    const dp_part_cuts *cuts = &node->ledger.layout.cuts;
    bool ours = false;

    for (uint32_t i = 0; i < node->parts->n_sums; i++) {
        dp_sum *sum = &node->parts->sums[i];
        unsigned __int128 most = 0;
        if (!sum->checking || !dp_hash_equal(&sum->word.root, &event->u.checked.root) ||
            event->u.checked.first != cuts->first[sum->word.part] ||
            event->u.checked.end != dp_part_end(cuts, sum->word.part)) {
            continue;
        }
        ours = true;
        sum->checking = false;
        if (!bound_of(node, sum, &most)) {
            continue; /* A claim has gone: judged when it is known again. */
        }
        sum->checked = true;
        sum->bad = !event->u.checked.ok || (event->u.checked.energy > most && !dp_broken(77)) ||
                   sum->size != sum->word.bytes;
        if (sum->bad) {
            node->rejected++;
            dp_node_note(
                node, DP_NOTE_REJECTED, sum->word.round, &sum->word.owner, 0, 0,
                event->u.checked.ok
                    ? "its sum of a site has another size or more energy than its updates allow"
                    : "its sum of a site cannot be decoded");
        }
    }
    return ours;
}

/* ---- sums that go into the part ---- */

dp_sum *dp_part_take_sum_of(const dp_node *node, uint32_t part, const dp_claim *claim)
{
    for (uint32_t i = 0; i < node->parts->n_sums; i++) {
        const dp_sum *sum = &node->parts->sums[i];
        if (sum->in_use && sum->word.part == part && is_in(&sum->word, &claim->ready.peer)) {
            return (dp_sum *)(uintptr_t)sum;
        }
    }
    return NULL;
}

static bool waits_for_sum(const dp_node *node, const dp_sum *sum, dp_time *until)
{
    const dp_part_wait wait = dp_part_round_wait(node, sum->word.part);

    if (sum->mine || sum->bad || (!sum->held && !dp_part_round_is_alive(node, &sum->word.owner))) {
        return false;
    }
    *until = dp_part_wait_owner(&wait, sum->since, sum->moved, DP_SITE_WAITS);
    return !dp_time_reached(node->now, *until);
}

static bool waits_for_hint(const dp_node *node, const dp_part_hint *hint, dp_time *until)
{
    const dp_part_wait wait = dp_part_round_wait(node, hint->told.part);

    *until = node->parts->ripe_at.us == 0
                 ? DP_NEVER
                 : dp_time_after(node->parts->ripe_at, dp_part_wait_line(&wait));
    return dp_part_round_is_alive(node, &hint->collector) && !dp_time_reached(node->now, *until);
}

bool dp_part_take_awaits(const dp_node *node, uint32_t part, const dp_claim *claim, dp_time *until)
{
    const dp_part_round *parts = node->parts;
    const dp_peer *author = &claim->ready.peer;

    if (!node->ledger.summed || !owns(node, part) || !is_far(node, author)) {
        return false;
    }
    if (dp_part_take_sum_of(node, part, claim) != NULL) {
        *until = DP_NEVER;
        return true;
    }
    for (uint32_t i = 0; i < parts->n_sums; i++) {
        if (parts->sums[i].word.part == part && is_in(&parts->sums[i].word, author) &&
            waits_for_sum(node, &parts->sums[i], until)) {
            return true;
        }
    }
    for (uint32_t i = 0; i < parts->n_hints; i++) {
        const dp_collect *told = &parts->hints[i].told;
        for (uint32_t k = 0; told->part == part && k < told->n; k++) {
            if (dp_peer_equal(&told->peers[k], author) &&
                waits_for_hint(node, &parts->hints[i], until)) {
                return true;
            }
        }
    }
    return false;
}

static void look_whether_it_moves(dp_node *node, dp_sum *sum)
{
    const uint64_t came =
        sum->held ? sum->word.bytes : dp_picker_bytes_of(node->picker, &sum->word.root);

    if (came > sum->came) {
        sum->moved = node->now;
    }
    sum->came = came;
}

/* Nothing in it is in another sum already, and no two of all that is in sums are one object. */
static bool is_apart(const dp_node *node, const dp_sum *sum)
{
    const uint32_t part = sum->word.part;
    const dp_claim *claims[2 * DP_CLAIMS_MAX];
    uint32_t n = 0;

    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        const dp_claim *claim = &node->round->claims[i];
        const bool used = dp_part_take_sum_of(node, part, claim) != NULL;
        if (used && is_in(&sum->word, &claim->ready.peer)) {
            return false;
        }
        if (used && part < claim->ready.parts.n) {
            claims[n++] = claim;
        }
    }
    for (uint32_t i = 0; i < sum->word.n; i++) {
        claims[n++] = claim_of(node, &sum->word.sources[i], part);
    }
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (dp_hash_equal(&claims[i]->ready.parts.refs[part].root,
                              &claims[k]->ready.parts.refs[part].root)) {
                return false;
            }
        }
    }
    return true;
}

/* All of it may be listed. */
static bool is_listable(const dp_node *node, const dp_sum *sum, const uint32_t *ready, uint32_t n)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < sum->word.n; i++) {
        const dp_claim *claim = claim_of(node, &sum->word.sources[i], sum->word.part);
        for (uint32_t k = 0; k < n && claim != NULL; k++) {
            found += claim == &node->round->claims[ready[k]] ? 1 : 0;
        }
    }
    return found == sum->word.n;
}

void dp_part_take_choose(dp_node *node, uint32_t part, const uint32_t *ready, uint32_t n)
{
    dp_part_round *parts = node->parts;

    dp_assert(part < node->ledger.layout.cuts.n);
    dp_assert(n <= node->round->n_claims);
    if (!node->ledger.summed || !owns(node, part)) {
        return;
    }
    for (uint32_t i = 0; i < parts->n_sums; i++) {
        parts->sums[i].in_use = false;
        look_whether_it_moves(node, &parts->sums[i]);
    }
    for (uint32_t i = 0; i < parts->n_sums && n <= DP_LISTED_DEFAULT; i++) {
        dp_sum *sum = &parts->sums[i]; /* In the order in which they were heard of. */
        if (sum->mine || sum->word.part != part || !sum->held || !sum->checked || sum->bad ||
            !is_listable(node, sum, ready, n)) {
            continue;
        }
        sum->bad = !is_apart(node, sum);
        sum->in_use = !sum->bad;
    }
}
