/* The judge of liveness after the faults have ended: do the healed hosts decide rounds, become
 * level, stay level, and are they counted? */
#include "gossip/context/context.h"
#include "gossip/node/node.h"
#include "gossip/round/deadline.h"
#include "gossip/round/round.h"
#include "tests/sim/epochs.h"
#include "tests/sim/evil.h"
#include "tests/sim/faults.h"
#include "tests/sim/forks.h"
#include "tests/sim/oracle_internal.h"

/* Where the bounds come from. A node dials a lost peer again after at most 30 s (a quarter more by
 * chance), and a voter that bid without success bids again after at most the same time: so within
 * 75 s all links are up and some voter proposes. A round then ends by its hard deadline, 1.5 L + 2
 * s, where L may have grown to three times the round time while all was broken. If the owner of the
 * ballot is gone, another voter bids: the one d places behind it waits (1 + d) times 5 s at most,
 * and a quarter more by chance (SAFETY A9), and all before it may be gone too. The 5 s are reached
 * if round trips took a second during the faults: their mean and deviation fall only with new
 * samples. */
static const uint64_t settle_us = 75 * DP_SECOND;
/* After that, or once a host was level: it gives up a state that does not arrive after 5 s,
 * possibly a few times. */
static const uint64_t stuck_us = 30 * DP_SECOND;
/* A node that has asked a partner whether an exchange took place publishes nothing until the
 * partner answers; if it is gone forever, until the voters fence it: the node asks them after 60
 * s. */
static const uint64_t fence_us = 60 * DP_SECOND;
enum {
    COUNTED_ROUNDS = 12, /* from level to listed */
    /* L6, for a host that is level and no longer slow, after the round under way */
    COUNTED_AGAIN_ROUNDS = 3,
};

/* At least one owner counts as gone, since it may lack the state that it needs to propose. */
static uint64_t bid_us(dp_sim *sim)
{
    uint32_t gone = 0;

    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        const dp_host *host = &sim->hosts[i];
        gone += (host->broken || host->left) && dp_oracle_votes(sim, sim->oracle->n_slots + 1, i)
                    ? 1
                    : 0;
    }
    return (1 + (gone > 1 ? gone : 1)) * DP_BID_US_MAX * 5 / 4;
}

static uint64_t round_us(dp_sim *sim)
{
    return (uint64_t)sim->plan.round_ms * 4500 + 2 * DP_SECOND + bid_us(sim);
}

/* Voters wait for the time of a record that wrong clocks have put into the future: one that was
 * proposed before the healing, or from heartbeats before it. */
static uint64_t ahead_us(const dp_sim *sim)
{
    return dp_fault_on(sim, DP_FAULT_JUMP) &&
                   sim->oracle->seen_us < sim->healed_us + 3 * DP_HEARTBEAT_US
               ? DP_RECORD_PATIENCE_US
               : 0;
}

/* The reason why this node is not level with the others; NULL: it is level. */
static const char *out_of_line(dp_sim *sim, const dp_host *host, dp_node_view *view)
{
    const dp_oracle *o = sim->oracle;

    if (!dp_host_up(host)) {
        return "does not run";
    }
    dp_node_look(host->node, view);
    if (view->applied < o->n_rounds && !dp_hash_is_zero(&view->state_root) &&
        !dp_hash_is_zero(&o->rounds[view->applied].state_root) &&
        !dp_hash_equal(&view->state_root, &o->rounds[view->applied].state_root)) {
        dp_sim_fail(sim, "S2", host->index, "its state root of round %llu is not the certified one",
                    (unsigned long long)view->applied);
    }
    if (view->mode != DP_MODE_SYNC) {
        return dp_mode_name(view->mode);
    }
    if (view->slot + 2 < o->n_slots) {
        return "lacks records";
    }
    if (dp_epochs_lacks(sim, host)) {
        return "lacks the join secret";
    }
    return view->applied + 2 < o->n_rounds - 1 ? "has not applied the newest rounds" : NULL;
}

static void judge_progress(dp_sim *sim)
{
    dp_oracle *o = sim->oracle;
    const uint64_t decided = o->n_rounds - 1 - o->rounds_at_heal;
    const uint64_t waited = sim->now_us - o->seen_us;

    if (decided > o->rounds_seen) {
        uint64_t *most = o->rounds_seen == 0 ? &sim->totals.first_us : &sim->totals.gap_us;
        *most = waited > *most ? waited : *most;
        o->rounds_seen = decided;
        o->seen_us = sim->now_us;
    } else if (waited > (decided == 0 ? settle_us : 0) + round_us(sim) + ahead_us(sim)) {
        dp_sim_fail(sim, "L1", 0,
                    "no round for %.1f s, %llu since the healing; slot %llu, %u voters",
                    (double)waited / 1e6, (unsigned long long)decided,
                    (unsigned long long)o->n_slots, dp_oracle_voters(sim));
    }
}

/* It joins after the last use of the invite, and must learn this. */
static bool is_told(dp_sim *sim, const dp_host *host)
{
    dp_why why;

    if (dp_host_up(host) && dp_node_refused(host->node, &why) != DP_OK) {
        return true;
    }
    if (sim->now_us - sim->healed_us > settle_us + stuck_us) {
        dp_sim_fail(sim, "S10", host->index, "is not told that every use of its invite is taken");
    }
    return false;
}

/* Forever: broken, outside the core, or gone because its owner asked, perhaps in the middle of an
 * exchange. */
static bool somebody_is_gone(const dp_sim *sim)
{
    bool gone = sim->plan.core;

    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        gone = gone || sim->hosts[i].left;
    }
    return gone;
}

/* True when nothing is left to wait for. */
static bool judge_host(dp_sim *sim, const dp_host *host)
{
    dp_oracle *o = sim->oracle;
    dp_live_book *book = &o->live[host->index];
    dp_node_view view = {0};
    const char *out = out_of_line(sim, host, &view);

    if (!o->members[host->index].member && sim->plan.invite_uses != 0 &&
        o->redeemed == sim->plan.invite_uses) {
        return is_told(sim, host);
    }
    if (out != NULL) {
        if (book->out_since == 0) {
            book->out_since = sim->now_us;
            book->out_round = o->n_rounds - 1;
        }
        const uint64_t waited = sim->now_us - book->out_since;
        if (waited > stuck_us + (book->level ? 0 : settle_us)) {
            dp_sim_fail(sim, book->level ? "L5" : "L2", host->index,
                        "%.1f s after everything was healed, for %.1f s: %s (slot %llu of %llu, "
                        "applied %llu of %llu)",
                        (double)(sim->now_us - sim->healed_us) / 1e6, (double)waited / 1e6, out,
                        (unsigned long long)view.slot, (unsigned long long)o->n_slots,
                        (unsigned long long)view.applied, (unsigned long long)(o->n_rounds - 1));
        }
        return false;
    }
    if (!book->level) {
        const uint64_t took = sim->now_us - sim->healed_us;
        sim->totals.level_us = took > sim->totals.level_us ? took : sim->totals.level_us;
        book->level = true;
        book->level_round = o->n_rounds - 1;
        book->free_us = sim->now_us;
    }
    if (book->out_since > book->free_us) {
        /* A host that fell behind again, for example by a pause that ends after the healing, was
         * not level meanwhile; L5 bounds that time. */
        book->out_rounds += o->n_rounds - 1 - book->out_round;
        book->free_us += sim->now_us - book->out_since;
    }
    book->out_since = 0;
    if (o->members[host->index].included > o->rounds_at_heal) {
        return true;
    }
    const uint64_t missed = o->n_rounds - 1 - book->level_round - book->out_rounds;
    const uint64_t turns =
        sim->plan.nodes / sim->plan.contributors; /* more nodes than a record lists */
    const bool slow = host->was_slow && book->level_round <= o->rounds_at_heal;
    const uint64_t bound = turns + (slow ? COUNTED_AGAIN_ROUNDS + 1 : COUNTED_ROUNDS);
    /* Rounds that end long before their time because many members are ready do not count as full
     * ones: summaries arrive once a second, and shorter rounds do not wait for the last members. */
    if (host->disk.n_exchanges > 0 && somebody_is_gone(sim) &&
        sim->now_us < sim->healed_us + settle_us + fence_us) {
        book->free_us = sim->now_us;
    }
    const uint64_t full =
        (sim->now_us - book->free_us) / (sim->plan.round_ms * 1500ULL + 2 * DP_SECOND);
    const uint64_t counted = missed < full ? missed : full;
    uint64_t *most = slow ? &sim->totals.slow_rounds : &sim->totals.count_rounds;
    *most = counted > *most ? counted : *most;
    if (counted > bound) {
        dp_sim_fail(sim, slow ? "L6" : "L3", host->index,
                    "level since round %llu and in none of the %llu rounds since",
                    (unsigned long long)book->level_round, (unsigned long long)missed);
    }
    return false;
}

static bool is_judged(const dp_sim *sim, const dp_host *host)
{
    return !host->left && !host->leaving && !host->broken && !dp_evil_is(sim, host->index);
}

bool dp_oracle_converged(dp_sim *sim)
{
    dp_oracle *o = sim->oracle;

    if (!o->heal_seen) {
        o->heal_seen = true;
        o->rounds_at_heal = o->n_rounds - 1;
        o->seen_us = sim->now_us;
    }
    if (sim->forks != NULL) {
        return dp_forks_converged(sim);
    }
    judge_progress(sim);
    bool all = o->n_rounds - 1 >= o->rounds_at_heal + sim->plan.rounds_after;
    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        if (is_judged(sim, &sim->hosts[i])) {
            all = judge_host(sim, &sim->hosts[i]) && all;
        }
    }
    return all;
}

void dp_oracle_stuck(dp_sim *sim)
{
    if (sim->forks != NULL) {
        dp_forks_stuck(sim);
        return;
    }
    dp_sim_fail(sim, "L1", 0,
                "the end, %.1f s after everything was healed, and no bound was passed",
                (double)(sim->now_us - sim->healed_us) / 1e6);
}
