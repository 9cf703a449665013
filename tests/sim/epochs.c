#include "tests/sim/epochs.h"

#include "gossip/context/context.h"

enum { LOOKS_US = 250000, LOOKS = 20, TURN = 7, STRIDE = 7 };

/* The secret of a command follows from its time and its host. */
static dp_secret secret_of(uint64_t order, uint32_t index, uint16_t epoch)
{
    return (dp_secret){.epoch = epoch,
                       .bytes = {(uint8_t)order, (uint8_t)(order >> 8), (uint8_t)index, 1}};
}

static uint32_t index_of(const dp_sim *sim, uint64_t order)
{
    return (uint32_t)(order * STRIDE % sim->plan.nodes);
}

void dp_epochs_look(dp_sim *sim)
{
    const uint64_t order = sim->now_us / LOOKS_US / LOOKS;
    dp_host *by = &sim->hosts[index_of(sim, order)];
    const dp_secret secret = secret_of(order, by->index, 0);
    dp_status status = DP_OK;
    dp_why why = {0};
    dp_event event = {.type = DP_EV_ADMIN_COMMAND};

    if (!sim->options.rotate || sim->healed || sim->now_us / LOOKS_US % LOOKS != TURN ||
        by->leaving || !dp_host_up(by) || by->paused_until > sim->now_us) {
        return;
    }
    event.u.order = (dp_admin_command){
        .kind = DP_ADMIN_ROTATE, .secret = secret.bytes, .status = &status, .why = &why};
    dp_host_event(by, &event);
}

static bool has(const dp_sim *sim, const dp_host *host, const dp_epoch *epoch)
{
    return dp_secrets_of(&host->secrets, &sim->run, epoch) != NULL;
}

bool dp_epochs_lacks(const dp_sim *sim, const dp_host *host)
{
    const dp_epoch *epoch = &host->node->ledger.epoch;
    bool somebody = false;

    if (epoch->epoch == 0 || has(sim, host, epoch) ||
        (host->secrets.n > 0 && host->secrets.items[0].epoch > epoch->epoch)) {
        return false;
    }
    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        const dp_host *other = &sim->hosts[i];
        somebody = somebody || (dp_host_up(other) && !other->broken && has(sim, other, epoch));
    }
    return somebody;
}

void dp_epochs_judge(dp_sim *sim, const dp_record *record)
{
    const dp_epoch *next = &record->config.rotation.next;
    const uint64_t last = sim->now_us / LOOKS_US / LOOKS;
    bool ordered = false;

    if (!record->config.has_rotation) {
        return;
    }
    sim->totals.epochs++;
    for (uint64_t order = 0; order <= last && sim->options.rotate; order++) {
        const dp_secret secret = secret_of(order, index_of(sim, order), next->epoch);
        const dp_hash commitment = dp_secret_commitment(&sim->run, &secret);
        ordered = ordered || dp_hash_equal(&commitment, &next->commitment);
    }
    if (!ordered) {
        dp_sim_fail(sim, "S10", 0, "slot %llu names a join secret that nobody ordered",
                    (unsigned long long)record->slot);
    }
}
