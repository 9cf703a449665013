#include "tests/sim/enrol.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "gossip/core/msg.h"
#include "gossip/ledger/valid.h"
#include "tests/sim/oracle.h"
#include "tests/sim/sim.h"

/* Inputs and buffers for making a record. */
typedef struct desk {
    dp_ledger ledger;
    dp_record record;
    dp_admitted admitted[DP_CONFIG_ADMIT_MAX];
    uint8_t credentials[DP_CONFIG_ADMIT_MAX][DP_SIM_CREDENTIAL_BYTES];
    uint8_t bytes[DP_RECORD_BYTES_MAX];
    uint8_t cert[DP_CERT_OF_RECORD_BYTES_MAX];
} desk;

/* The record after the ledger's head: it admits hosts from first on, in the order of their
 * names. */
static void write_record(dp_sim *sim, desk *d, uint32_t first)
{
    dp_config_part *config = &d->record.config;

    d->record = (dp_record){.kind = DP_RECORD_CONFIG,
                            .has_config = true,
                            .run = d->ledger.run,
                            .fork = d->ledger.fork,
                            .slot = d->ledger.slot + 1,
                            .prev = d->ledger.head,
                            .time_ms = d->ledger.time_ms + 1};
    for (uint32_t i = 0; i < DP_CONFIG_ADMIT_MAX && first + i < sim->plan.members; i++) {
        uint32_t at = config->n_admits++;
        dp_sim_credential(sim, first + i, d->credentials[i]);
        const dp_admit admit = {.peer = sim->hosts[first + i].peer,
                                .credential =
                                    dp_view_of(d->credentials[i], DP_SIM_CREDENTIAL_BYTES)};
        for (; at > 0 && dp_peer_compare(&config->admits[at - 1].peer, &admit.peer) > 0; at--) {
            config->admits[at] = config->admits[at - 1];
        }
        config->admits[at] = admit;
    }
}

/* Only the founder's vote, which is a majority as long as there is no other voter. */
static dp_view certify(dp_sim *sim, desk *d, const dp_hash *hash)
{
    const dp_crypto crypto = dp_sim_crypto(&sim->hosts[0]);
    dp_vote vote = {.type = DP_MSG_ACCEPTED,
                    .fork = d->record.fork,
                    .slot = d->record.slot,
                    .prev = d->record.prev,
                    .hash = *hash};
    dp_cert_of_record cert = {.n = 1};
    dp_view bytes;

    const bool made = dp_vote_sign(&vote, &crypto, &sim->run);
    dp_assert(made);
    memcpy(cert.seals[0].signature, vote.signature, sizeof vote.signature);
    const dp_status status = dp_cert_of_record_encode(&cert, d->cert, sizeof d->cert, &bytes);
    dp_assert(status == DP_OK);
    return bytes;
}

/* Checks the record like a node that receives it: DP_OK, or it could not have been decided. */
static dp_status judge(dp_sim *sim, desk *d, dp_view bytes)
{
    const dp_crypto crypto = dp_sim_crypto(&sim->hosts[0]);
    const dp_admission admission = dp_sim_admission();
    const dp_valid valid = {.ledger = &d->ledger,
                            .bytes = bytes,
                            .crypto = &crypto,
                            .admission = &admission,
                            .admitted = d->admitted};
    const char *cause = "";

    DP_TRY(dp_record_decode(&d->record, bytes));
    return dp_valid_record(&valid, &d->record, &cause);
}

static dp_status enrol_from(dp_sim *sim, desk *d, uint32_t first)
{
    dp_view bytes;

    write_record(sim, d, first);
    DP_TRY(dp_record_encode(&d->record, d->bytes, sizeof d->bytes, &bytes));
    const dp_hash hash = dp_record_hash(bytes);
    const dp_view cert = certify(sim, d, &hash);
    DP_TRY(judge(sim, d, bytes));
    dp_action action = {.type = DP_DO_STORE};
    action.u.store.kind = DP_STORE_DECIDED;
    action.u.store.slot = d->record.slot;
    action.u.store.bytes = bytes;
    action.u.store.cert = cert;
    dp_oracle_store(&sim->hosts[0], &action);
    for (uint32_t i = 0; i < sim->plan.members; i++) {
        dp_disk_add_record(&sim->hosts[i].disk, bytes, cert);
    }
    dp_ledger_apply(&d->ledger, &d->record, &hash, d->admitted);
    return DP_OK;
}

dp_status dp_enrol(struct dp_sim *sim)
{
    desk *d = calloc(1, sizeof *d);

    if (d == NULL) {
        return DP_NOMEM;
    }
    dp_status status = dp_ledger_open(&d->ledger, &sim->manifest, &sim->run, 1);
    for (uint32_t first = 1; status == DP_OK && first < sim->plan.members;
         first += DP_CONFIG_ADMIT_MAX) {
        status = enrol_from(sim, d, first);
    }
    dp_ledger_close(&d->ledger);
    free(d);
    return status;
}
