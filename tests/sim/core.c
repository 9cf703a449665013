/* The end of the faults: everybody is healed, or only a core that must get along while the rest stays broken for ever. */
#include <string.h>

#include "tests/sim/faults.h"
#include "tests/sim/oracle.h"

/* How somebody outside the core stays broken. */
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

/* Enough of the voters of a slot into the core, drawn, those that are there already counted. False: too few are left. */
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

/* A majority of those who vote now and of those who voted last (they alone may know what was decided last), and every
 * other node with a chance of one half. */
static bool choose(dp_sim *sim, uint8_t *core)
{
    const uint64_t slots = dp_oracle_slots(sim);

    /* Whom all can dial, and whose address nobody has to learn. */
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
