#include "tests/sim/explore_chain.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "gossip/ledger/valid.h"

typedef struct item {
    uint8_t *bytes;
    size_t size;
    dp_hash hash;
    uint32_t before;
    uint32_t slot;
    bool has_ledger;
    dp_ledger ledger; /* after it */
    bool has_cert;
    dp_cert_of_record cert;
} item;

struct dp_explore_chain {
    dp_sim *sim;
    dp_admission admission;
    dp_admitted admitted[DP_CONFIG_ADMIT_MAX];
    dp_record record; /* for decoding */
    uint32_t n;
    item items[DP_EXPLORE_RECORDS_MAX];
};

/* ---- records ---- */

static dp_record config_after(const dp_ledger *ledger)
{
    return (dp_record){.kind = DP_RECORD_CONFIG,
                       .has_config = true,
                       .run = ledger->run,
                       .fork = ledger->fork,
                       .slot = ledger->slot + 1,
                       .prev = ledger->head,
                       .time_ms = ledger->time_ms + 1};
}

/* Into the list of voters, which is in peer order. */
static void add_voter(dp_explore_chain *chain, const dp_ledger *ledger, dp_config_part *config,
                      uint32_t host)
{
    dp_host *const h = &chain->sim->hosts[host];
    const dp_crypto crypto = dp_sim_crypto(h);
    dp_voter_entry entry = {.voter.peer = h->peer,
                            .kept = dp_ledger_voter(ledger, &h->peer) != DP_NOBODY};
    uint32_t at = config->n_voters++;

    dp_sim_vote_key(h, entry.voter.key);
    if (!entry.kept) {
        const bool made = dp_voter_ok_sign(&crypto, &ledger->run, &ledger->head, entry.voter.key,
                                           entry.signature);
        dp_assert(made);
    }
    for (; at > 0 && memcmp(config->voters[at - 1].voter.peer.bytes, entry.voter.peer.bytes,
                            sizeof entry.voter.peer.bytes) > 0;
         at--) {
        config->voters[at] = config->voters[at - 1];
    }
    config->voters[at] = entry;
}

/* Admits all but the founder and has the first three vote. */
static dp_record start_record(dp_explore_chain *chain, const dp_ledger *genesis,
                              uint8_t credentials[][DP_SIM_CREDENTIAL_BYTES])
{
    dp_record record = config_after(genesis);
    dp_config_part *config = &record.config;

    for (uint32_t i = 1; i <= DP_EXPLORE_VOTERS; i++) {
        uint32_t at = config->n_admits++;
        dp_sim_credential(chain->sim, i, credentials[i]);
        const dp_admit admit = {.peer = chain->sim->hosts[i].peer,
                                .credential = dp_view_of(credentials[i], DP_SIM_CREDENTIAL_BYTES)};
        for (; at > 0 && memcmp(config->admits[at - 1].peer.bytes, admit.peer.bytes,
                                sizeof admit.peer.bytes) > 0;
             at--) {
            config->admits[at] = config->admits[at - 1];
        }
        config->admits[at] = admit;
    }
    for (uint32_t i = 0; i < DP_EXPLORE_VOTERS; i++) {
        add_voter(chain, genesis, config, i);
    }
    return record;
}

static size_t encode(const dp_record *record, uint8_t *out)
{
    dp_view bytes;
    const dp_status status = dp_record_encode(record, out, DP_RECORD_BYTES_MAX, &bytes);

    dp_assert(status == DP_OK);
    return bytes.size;
}

size_t dp_explore_value(dp_explore_chain *chain, uint32_t before, uint32_t host, uint32_t life,
                        uint32_t goes, uint8_t *out)
{
    const dp_ledger *ledger = dp_explore_ledger(chain, before);
    dp_record *const record = &chain->record;

    *record = config_after(ledger);
    record->config.n_fences = 1;
    record->config.fences[0] = (dp_fence){.peer = chain->sim->hosts[DP_EXPLORE_VOTERS].peer,
                                          .incarnation = ledger->slot * 1000 + host * 100 + life};
    for (uint32_t i = 0; goes != DP_NOBODY && i <= DP_EXPLORE_VOTERS; i++) {
        if (i != goes) {
            add_voter(chain, ledger, &record->config, i);
        }
    }
    return encode(record, out);
}

/* ---- numbers ---- */

uint32_t dp_explore_find(const dp_explore_chain *chain, const dp_hash *hash)
{
    for (uint32_t i = 1; i < chain->n; i++) {
        if (dp_hash_equal(&chain->items[i].hash, hash)) {
            return i;
        }
    }
    return 0;
}

static uint32_t add(dp_explore_chain *chain, dp_view bytes, const dp_hash *hash)
{
    dp_assert(chain->n < DP_EXPLORE_RECORDS_MAX);
    item *const it = &chain->items[chain->n];

    *it = (item){.size = bytes.size, .hash = *hash, .bytes = malloc(bytes.size)};
    dp_assert(it->bytes != NULL);
    memcpy(it->bytes, bytes.data, bytes.size);
    return chain->n++;
}

uint32_t dp_explore_number(dp_explore_chain *chain, dp_view bytes)
{
    const dp_hash hash = dp_record_hash(bytes);
    uint32_t number = dp_explore_find(chain, &hash);

    if (number != 0) {
        return number;
    }
    number = add(chain, bytes, &hash);
    if (dp_record_decode(&chain->record, bytes) == DP_OK) {
        const uint32_t before = dp_explore_find(chain, &chain->record.prev);
        chain->items[number].before = before;
        chain->items[number].slot = chain->items[before].slot + 1;
    }
    return number;
}

dp_view dp_explore_record(const dp_explore_chain *chain, uint32_t number)
{
    return dp_view_of(chain->items[number].bytes, chain->items[number].size);
}

uint32_t dp_explore_slot(const dp_explore_chain *chain, uint32_t number)
{
    return chain->items[number].slot;
}

uint32_t dp_explore_before(const dp_explore_chain *chain, uint32_t number)
{
    return chain->items[number].before;
}

/* ---- the chain ---- */

/* Leaves it decoded in chain->record, with chain->admitted. */
static bool is_valid(dp_explore_chain *chain, const dp_ledger *ledger, dp_view record)
{
    const dp_crypto crypto = dp_sim_crypto(&chain->sim->hosts[0]);
    const dp_valid valid = {.ledger = ledger,
                            .bytes = record,
                            .crypto = &crypto,
                            .admission = &chain->admission,
                            .admitted = chain->admitted};
    const char *cause = "";

    return dp_record_decode(&chain->record, record) == DP_OK &&
           dp_valid_record(&valid, &chain->record, &cause) == DP_OK;
}

static void apply(dp_explore_chain *chain, dp_ledger *ledger, uint32_t number)
{
    const bool follows = is_valid(chain, ledger, dp_explore_record(chain, number));

    dp_assert(follows);
    dp_ledger_apply(ledger, &chain->record, &chain->items[number].hash, chain->admitted);
}

const dp_ledger *dp_explore_ledger(dp_explore_chain *chain, uint32_t number)
{
    item *const it = &chain->items[number];
    uint32_t way[DP_EXPLORE_SLOTS_MAX];
    uint32_t n = 0;

    if (it->has_ledger) {
        return &it->ledger;
    }
    for (uint32_t i = number; i != 0; i = chain->items[i].before) {
        dp_assert(n < DP_EXPLORE_SLOTS_MAX);
        way[n++] = i;
    }
    const dp_status status =
        dp_ledger_open(&it->ledger, &chain->sim->manifest, &chain->sim->run, 1);
    dp_assert(status == DP_OK);
    apply(chain, &it->ledger, 0);
    while (n > 0) {
        apply(chain, &it->ledger, way[--n]);
    }
    it->has_ledger = true;
    return &it->ledger;
}

bool dp_explore_valid(dp_explore_chain *chain, uint32_t before, dp_view record)
{
    return is_valid(chain, dp_explore_ledger(chain, before), record);
}

bool dp_explore_certify(dp_explore_chain *chain, uint32_t before, uint32_t number,
                        const dp_cert_of_record *cert)
{
    const dp_ledger *ledger = dp_explore_ledger(chain, before);
    const dp_crypto crypto = dp_sim_crypto(&chain->sim->hosts[0]);
    item *const it = &chain->items[number];

    if (!dp_cert_verify(cert, &crypto, &ledger->run, &ledger->fork, ledger->slot + 1, &ledger->head,
                        &it->hash, ledger->voters, ledger->n_voters)) {
        return false;
    }
    if (!it->has_cert) {
        it->cert = *cert;
        it->has_cert = true;
    }
    return true;
}

bool dp_explore_offer(dp_explore_chain *chain, uint32_t before, uint32_t number)
{
    return chain->items[number].has_cert &&
           dp_explore_valid(chain, before, dp_explore_record(chain, number)) &&
           dp_explore_certify(chain, before, number, &chain->items[number].cert);
}

/* ---- life ---- */

dp_explore_chain *dp_explore_chain_open(dp_sim *sim)
{
    dp_explore_chain *chain = calloc(1, sizeof *chain);
    uint8_t credentials[DP_EXPLORE_VOTERS + 1][DP_SIM_CREDENTIAL_BYTES];
    uint8_t bytes[DP_RECORD_BYTES_MAX];
    dp_ledger genesis;

    dp_assert(chain != NULL && sim->plan.nodes > DP_EXPLORE_VOTERS);
    chain->sim = sim;
    chain->admission = dp_sim_admission();
    const dp_status status = dp_ledger_open(&genesis, &sim->manifest, &sim->run, 1);
    dp_assert(status == DP_OK);
    const dp_record record = start_record(chain, &genesis, credentials);
    const dp_view start = dp_view_of(bytes, encode(&record, bytes));
    const dp_hash hash = dp_record_hash(start);
    add(chain, start, &hash);
    dp_ledger_close(&genesis);
    return chain;
}

void dp_explore_chain_close(dp_explore_chain *chain)
{
    if (chain == NULL) {
        return;
    }
    for (uint32_t i = 0; i < chain->n; i++) {
        free(chain->items[i].bytes);
        if (chain->items[i].has_ledger) {
            dp_ledger_close(&chain->items[i].ledger);
        }
    }
    free(chain);
}
