/* The end of the faults: all hosts are healed, or only a core, which must work while the rest stays
 * broken forever. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "gossip/context/context.h"
#include "gossip/round/round.h"
#include "gossip/vote/commit_row.h"
#include "tests/sim/faults.h"
#include "tests/sim/oracle.h"

/* The way in which a host outside the core stays broken. */
typedef enum broken_kind {
    BROKEN_DEAD = 0,
    BROKEN_CUT,
    BROKEN_FROZEN,
    BROKEN_SLOW,
    BROKEN_MUTE,
    BROKEN_KINDS
} broken_kind;

static bool stays(const dp_host *host)
{
    return !host->left && !host->leaving;
}

/* Puts random voters of a slot into the core until it has a majority of them, including those
 * already in it. False: too few are left. */
static bool take_majority(dp_sim *sim, uint64_t slot, uint8_t *core)
{
    uint32_t found[DP_VOTERS_MAX];
    uint32_t n = 0;
    uint32_t in = 0;
    uint32_t total = 0;

    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        if (!dp_oracle_votes(sim, slot, i)) {
            continue;
        }
        total++;
        if (core[i] != 0) {
            in++;
        } else if (stays(&sim->hosts[i])) {
            found[n++] = i;
        }
    }
    while (in * 2 <= total) {
        if (n == 0) {
            return false;
        }
        const uint32_t at = (uint32_t)dp_rng_below(&sim->crash_rng, n);
        core[found[at]] = 1;
        found[at] = found[--n];
        in++;
    }
    return true;
}

/* The same for the voters that a record names which one voter has accepted, or may have accepted:
 * the record may be decided at any moment. False: too few are left. */
static bool take_named(dp_sim *sim, dp_view bytes, uint8_t *core)
{
    dp_record *record = malloc(sizeof *record);
    uint32_t found[DP_VOTERS_MAX];
    uint32_t n = 0;
    uint32_t in = 0;

    dp_assert(record != NULL);
    const uint32_t total =
        bytes.size > 0 && dp_record_decode(record, bytes) == DP_OK && record->has_config
            ? record->config.n_voters
            : 0;
    for (uint32_t i = 0; i < total; i++) {
        const uint32_t index = dp_sim_index(sim, &record->config.voters[i].voter.peer);
        if (index < sim->plan.nodes && core[index] != 0) {
            in++;
        } else if (index < sim->plan.nodes && stays(&sim->hosts[index])) {
            found[n++] = index;
        }
    }
    free(record);
    while (total > 0 && in * 2 <= total && n > 0) {
        core[found[--n]] = 1;
        in++;
    }
    return total == 0 || in * 2 > total;
}

/* The same for all undecided records that change the voters. */
static bool take_accepted(dp_sim *sim, uint8_t *core)
{
    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        const dp_host *host = &sim->hosts[i];
        const dp_disk_row *vote = &host->disk.vote;
        dp_commit_row row;
        if (vote->size > 0 &&
            dp_commit_row_read(dp_view_of(vote->data, vote->size), &row) == DP_OK &&
            row.slot > dp_oracle_slots(sim) && !take_named(sim, row.record, core)) {
            return false;
        }
        const dp_commit *commit = dp_host_up(host) ? host->node->commit : NULL;
        if (commit != NULL && commit->state.accepted >= 0 && commit->slot > dp_oracle_slots(sim) &&
            !take_named(sim, dp_view_of(commit->accepted.data, commit->accepted.size), core)) {
            return false;
        }
    }
    return true;
}

static bool has_offered(const dp_sim *sim, const dp_peer *peer)
{
    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        const dp_host *host = &sim->hosts[i];
        const dp_round *round = dp_host_up(host) ? host->node->round : NULL;
        for (uint32_t k = 0; round != NULL && k < round->n_offers; k++) {
            if (dp_peer_equal(&round->offers[k].peer, peer)) {
                return true;
            }
        }
    }
    return false;
}

/* The next record may name hosts that have offered to vote, before any host can know that they are
 * gone. Let b of the n voters be gone, and let the record add q voters that are gone, and 0 or 1
 * that is not, so that the number stays odd: a majority is present as long as q / 2 <= (n - 1) / 2
 * - b. */
static void take_offers(dp_sim *sim, uint8_t *core)
{
    const uint64_t slot = dp_oracle_slots(sim) + 1;
    uint32_t gone = 0;
    uint32_t may = 0;

    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        gone += core[i] == 0 && dp_oracle_votes(sim, slot, i) ? 1 : 0;
    }
    may = 2 * ((dp_oracle_voters(sim) - 1) / 2 - gone) + 1;
    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        if (core[i] != 0 || dp_oracle_votes(sim, slot, i) || !stays(&sim->hosts[i]) ||
            !has_offered(sim, &sim->hosts[i].peer)) {
            continue;
        }
        core[i] = may == 0 ? 1 : 0;
        may -= may > 0 ? 1 : 0;
    }
}

/* Chooses a majority of the present voters and of the voters of the last slot (only these may know
 * the last decision), and every other node with probability one half. */
static bool choose(dp_sim *sim, uint8_t *core)
{
    const uint64_t slots = dp_oracle_slots(sim);

    /* All hosts know the address of host 0 and can dial it. */
    core[0] = 1;
    if (sim->amnesias > 0 || !take_majority(sim, slots + 1, core) ||
        (slots > 0 && !take_majority(sim, slots, core))) {
        return false;
    }
    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        if (stays(&sim->hosts[i]) && dp_rng_below(&sim->crash_rng, 2) == 0) {
            core[i] = 1;
        }
    }
    if (!take_accepted(sim, core) || !dp_rot_take_holders(sim, core)) {
        return false;
    }
    take_offers(sim, core);
    return true;
}

static void mute(dp_sim *sim, uint32_t index, bool deaf)
{
    for (uint32_t b = 0; b < sim->plan.nodes; b++) {
        if (b != index) {
            dp_net_block(&sim->net, index, b, UINT64_MAX, false);
            if (deaf) {
                dp_net_block(&sim->net, b, index, UINT64_MAX, false);
            }
        }
    }
}

static void break_one(dp_sim *sim, dp_host *host)
{
    broken_kind kind = (broken_kind)dp_rng_below(&sim->crash_rng, BROKEN_KINDS);

    host->broken = true;
    if (!dp_host_up(host)) {
        kind = BROKEN_DEAD;
    }
    switch (kind) {
    case BROKEN_DEAD:
        dp_host_crash(host, dp_rng_below(&sim->crash_rng, 2) == 0);
        break;
    case BROKEN_CUT:
    case BROKEN_MUTE:
        mute(sim, host->index, kind == BROKEN_CUT);
        break;
    case BROKEN_FROZEN:
        host->paused_until = UINT64_MAX;
        break;
    case BROKEN_SLOW:
    case BROKEN_KINDS:
        host->toy_slow = 500;
        sim->net.bytes_per_ms[host->index] = 20;
        break;
    }
}

void dp_core_break(dp_sim *sim)
{
    uint8_t core[DP_SIM_NODES_MAX] = {0};

    if (!sim->plan.core || !choose(sim, core)) {
        return;
    }
    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        if (core[i] == 0 && stays(&sim->hosts[i])) {
            break_one(sim, &sim->hosts[i]);
        }
    }
}
