/* Rebuilds the protocol core from the store after a start: one job on the store thread, while no
 * other thread has the node. It reads the chain and the newest checkpoint in pieces, since both may
 * take longer than the supervisor waits for a sign of life. */
#include <sodium.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/map.h"
#include "daemon/peer/driver_inside.h"
#include "daemon/peer/driver_restore_inside.h"
#include "daemon/peer/suspension.h"
#include "gossip/vote/commit_row.h"
#include "store/chain.h"
#include "store/ckpt.h"
#include "store/peers.h"
#include "store/rows.h"
#include "store/vote.h"

enum { PINS_MIN = 8192, RECORDS_AT_ONCE = 64 };

_Static_assert((int)DP_MANIFEST_MEMBERS_MAX == (int)DP_MEMBERS_MAX,
               "every manifest fits the member table");

static dp_status load_vote_key(restore_job *self, dp_store *store)
{
    dp_driver *driver = self->driver;
    dp_vote_key_row row;
    dp_status status = dp_vote_load_key(store, &driver->facts.run, &row);
    if (status == DP_NOTFOUND || status == DP_CORRUPT) {
        /* A lost vote table means a lost key: this node may be enrolled again, under a key that
         * never voted. */
        uint8_t seed[32];
        randombytes_buf(seed, sizeof seed);
        dp_sign_key key;
        dp_sign_key_of_seed(seed, &key);
        memcpy(row.public_key, key.public_key, sizeof row.public_key);
        memcpy(row.secret, key.secret_key, sizeof row.secret);
        sodium_memzero(seed, sizeof seed);
        sodium_memzero(&key, sizeof key);
        DP_TRY(dp_vote_destroy_key(store, &driver->facts.run));
        status = dp_vote_create_key(store, &driver->facts.run, &row);
        self->new_vote_key = true;
    }
    DP_TRY(status);
    memcpy(driver->daemon->vote.public_key, row.public_key, sizeof row.public_key);
    memcpy(driver->daemon->vote.secret_key, row.secret, sizeof row.secret);
    driver->has_vote_key = true;
    sodium_memzero(&row, sizeof row);
    return DP_OK;
}

static dp_status open_node(restore_job *self)
{
    dp_driver *driver = self->driver;
    driver->keys = (dp_crypto_keys){.identity = &driver->daemon->identity,
                                    .vote = driver->has_vote_key ? &driver->daemon->vote : NULL,
                                    .root = dp_daemon_root_of(driver->daemon, driver->facts.root)};
    dp_node_config config = {
        .manifest = &driver->manifest,
        .run = driver->facts.run,
        .self = driver->self,
        .incarnation = driver->daemon->incarnation,
        .credential = dp_view_of(driver->facts.credential, driver->facts.credential_bytes),
        .certified_from_ms = driver->own.member_from_ms,
        .certified_until_ms = driver->own.member_until_ms,
        .renewal = driver->facts.renewal,
        .secrets = driver->facts.secrets,
        .has_vote_key = driver->has_vote_key,
        .members_max = driver->manifest.members_max,
        .observer = driver->daemon->config->observer,
        .one_level = driver->daemon->config->one_level,
        .crypto = dp_crypto_sodium(&driver->keys),
        .admission = dp_admission_certs(),
    };
    memcpy(config.vote_public_key, driver->daemon->vote.public_key, sizeof config.vote_public_key);
    memcpy(config.name, driver->facts.node_name, sizeof config.name);
    randombytes_buf(&config.seed, sizeof config.seed);
    dp_address addresses[DP_ADDRS_MAX];
    config.n_addrs = dp_driver_addresses(driver, addresses);
    for (uint32_t i = 0; i < config.n_addrs; i++) {
        config.addrs[i] = dp_addr_of(&addresses[i]);
    }
    return dp_node_open(&self->node, &config);
}

static dp_status restore_record(const dp_chain_record *entry, void *context)
{
    restore_job *self = context;
    DP_TRY(dp_node_restore_record(self->node, entry->slot, entry->record, entry->cert));
    self->slot = entry->slot;
    if (dp_record_decode(&self->record, entry->record) == DP_OK &&
        self->record.kind == DP_RECORD_ROUND) {
        dp_event_log_round *const round = &self->rounds[self->n_rounds++ % DP_RESTORE_HISTORY];
        dp_event_log_round_of_record(&self->record, &self->driver->self, round);
        round->keep = dp_node_keep(self->node, round->round);
        self->counted += round->counted;
    }
    return DP_OK;
}

static dp_status restore_chain(restore_job *self, dp_store *store)
{
    dp_chain_tip tip;
    const dp_hash *run = &self->driver->facts.run;
    const uint64_t before = self->slot;
    const dp_status head = dp_chain_head(store, run, &tip);
    if (head != DP_OK && head != DP_CORRUPT) {
        return head == DP_NOTFOUND ? DP_OK : head;
    }
    const dp_status status =
        dp_chain_each(store, run, before + 1, RECORDS_AT_ONCE, restore_record, self);
    if (status != DP_OK) {
        return status == DP_NOTFOUND && before > 0 ? DP_CORRUPT : status; /* A hole. */
    }
    self->more = self->slot == before + RECORDS_AT_ONCE;
    if (self->more) {
        return DP_OK;
    }
    return head == DP_OK && self->slot != tip.slot ? DP_CORRUPT : head;
}

/* Records are certified: other members have them, or the root key begins the chain anew after the
 * last good one. A vote of a later slot than the chain's binds until it has caught up
 * (gossip/vote/commit.h), so that nothing is decided twice. */
static dp_status mend_chain(restore_job *self, dp_store *store)
{
    dp_log(DP_LOG_ERROR, "chain.damaged",
           "slot=%llu msg=\"records from this slot on are damaged on this disk; they are fetched "
           "again from other members (without members: dpnode run fork); check the disk: smartctl "
           "-a DEVICE\"",
           (unsigned long long)self->slot + 1);
    return dp_chain_cut(store, &self->driver->facts.run, self->slot);
}

static dp_status mend_rows(const restore_job *self, dp_store *store, const char *prefix,
                           const char *what)
{
    dp_log(
        DP_LOG_ERROR, "row.damaged",
        "msg=\"%s is damaged on this disk and is discarded; check the disk: smartctl -a DEVICE\"",
        what);
    return dp_store_row_drop(store, &self->driver->facts.run, prefix);
}

static dp_status mend_pending(restore_job *self, dp_store *store)
{
    return mend_rows(self, store, DP_DRIVER_PENDING, "the pending publication");
}

static dp_status mend_exchanges(restore_job *self, dp_store *store)
{
    return mend_rows(self, store, DP_DRIVER_EXCHANGE, "the work of a pair exchange");
}

static dp_status mend_proof(restore_job *self, dp_store *store)
{
    return mend_rows(self, store, DP_DRIVER_PROOF, "the proof of a double vote");
}

static dp_status mend_vote(restore_job *self, dp_store *store)
{
    dp_log(DP_LOG_ERROR, "vote.damaged",
           "msg=\"the stored vote is damaged: this node gives up its vote key, because its last "
           "vote is unknown, and votes again when the members enrol it\"");
    return dp_vote_destroy_key(store, &self->driver->facts.run);
}

/* Older ones are verified when they are loaded or served: their chunks are checked in any case. The
 * newest decides from where this node can start, and for which rounds it keeps updates. */
static dp_status verify_newest(restore_job *self, dp_store *store)
{
    const dp_status status = dp_ckpt_read(store, &self->reading);
    /* The node does not start from a recovered one. */
    self->more =
        status == DP_AGAIN || (status == DP_OK && dp_ckpt_is_recovered(&self->reading.ckpt));
    return status == DP_AGAIN || status == DP_NOTFOUND ? DP_OK : status;
}

static dp_status restore_checkpoints(restore_job *self, dp_store *store)
{
    dp_ckpt list[DP_CKPTS_MAX];
    uint32_t count = 0;
    if (self->reading.n_good == 0) {
        return DP_OK;
    }
    DP_TRY(dp_ckpt_list(store, &self->driver->facts.run, list, DP_CKPTS_MAX, &count));
    for (uint32_t i = count; i-- > 0;) { /* oldest first */
        dp_object_info info;
        /* The node may not train from one that no record is known to certify. */
        const bool whole = (list[i].state == DP_CKPT_COMPLETE || list[i].state == DP_CKPT_KEPT) &&
                           !dp_ckpt_is_recovered(&list[i]);
        if (whole && list[i].round <= self->reading.ckpt.round &&
            dp_object_stat(store, &list[i].object, &info) == DP_OK && info.complete) {
            DP_TRY(
                dp_node_restore_checkpoint(self->node, list[i].round, &list[i].object, info.size));
            self->has_checkpoint = true;
            self->checkpoint_round = list[i].round;
        }
    }
    return DP_OK;
}

static void keep_home(restore_job *self, const dp_peer *peer, const dp_addr *addr)
{
    if (self->n_homes < DP_PORT_REMEMBERED_MAX) {
        self->homes[self->n_homes].peer = *peer;
        self->homes[self->n_homes++].addr = *addr;
    }
}

/* After a restart all members dial at once, maybe beside an attacker who uses up the answers. */
static void remember_homes(const restore_job *self)
{
    const dp_driver *driver = self->driver;
    uint8_t ignored[32];
    for (uint32_t i = 0; i < self->n_homes; i++) {
        if (dp_node_admitted(driver->node, &self->homes[i].peer, ignored)) {
            dp_transport_remember(driver->transport, &self->homes[i].addr);
        }
    }
}

static dp_status restore_peers(restore_job *self, dp_store *store)
{
    enum { PEERS_MAX = 64 };
    dp_peer_row *rows = dp_alloc(PEERS_MAX, sizeof *rows);
    uint32_t count = 0;
    if (rows == NULL) {
        return DP_NOMEM;
    }
    dp_status status = dp_peer_list(store, rows, PEERS_MAX, &count);
    for (uint32_t i = 0; i < count && status == DP_OK; i++) {
        dp_addr addrs[DP_ADDRS_MAX];
        uint32_t n_addrs = 0;
        dp_peer peer;
        memcpy(peer.bytes, rows[i].id.bytes, sizeof peer.bytes);
        char *rest = rows[i].addresses;
        for (char *text = strtok_r(rest, " ", &rest); text != NULL && n_addrs < DP_ADDRS_MAX;
             text = strtok_r(NULL, " ", &rest)) {
            dp_address address;
            if (dp_address_parse(text, &address, NULL) == DP_OK) {
                addrs[n_addrs++] = dp_addr_of(&address);
                keep_home(self, &peer, &addrs[n_addrs - 1]);
            }
        }
        status = dp_node_restore_peer(self->node, &peer, addrs, n_addrs);
    }
    dp_free(rows);
    return status;
}

typedef struct restore_step {
    const char *what;
    dp_status (*run)(restore_job *self, dp_store *store);
    dp_status (*mend)(restore_job *self, dp_store *store); /* repair after DP_CORRUPT; NULL: none */
} restore_step;

static dp_status save_facts(restore_job *self, dp_store *store)
{
    const dp_status status =
        dp_run_identity_copy_save(self->driver->daemon->config->dir, &self->driver->facts);
    if (status != DP_OK) { /* The run continues without it; the next start writes it. */
        dp_log(DP_LOG_WARN, "run.member", "msg=\"the file run.member cannot be written\" status=%s",
               dp_status_name(status));
    }
    return dp_run_identity_save(store, &self->driver->facts);
}

static dp_status make_node(restore_job *self, dp_store *store)
{
    (void)store;
    return open_node(self);
}

/* Drops the vectors that an earlier life of the daemon took from its trainer and that no row
 * names. */
static dp_status drop_staged(restore_job *self, dp_store *store)
{
    DP_TRY(dp_object_prune(store, &self->driver->facts.run, DP_PIN_PENDING, DP_STAGED_ROUND + 1));
    return dp_object_prune(store, &self->driver->facts.run, DP_PIN_EXCHANGE, DP_STAGED_ROUND + 1);
}

static const restore_step steps[] = {
    {"unfinished operations", drop_staged, NULL},
    {"the run identity", save_facts, NULL},
    {"the vote key", load_vote_key, NULL},
    {"memory for the protocol", make_node, NULL},
    {"the chain of records", restore_chain, mend_chain},
    {"the vote", dp_restore_vote, mend_vote},
    {"the proof of a double vote", dp_restore_proof, mend_proof},
    {"stored objects", dp_restore_objects, NULL},
    {"stored updates", dp_restore_blobs, mend_pending},
    {"the pending publication", dp_restore_pending, mend_pending},
    {"pair exchanges", dp_restore_exchanges, mend_exchanges},
    {"the newest checkpoint", verify_newest, NULL},
    {"checkpoints", restore_checkpoints, NULL},
    {"known peers", restore_peers, NULL},
};

/* Runs steps until one has more to do: then a sign of life gets its turn. */
static void run_restore(dp_store_thread_job *job, dp_store *store)
{
    restore_job *self = (restore_job *)job;
    while (self->step < sizeof steps / sizeof steps[0] && self->status == DP_OK && !job->again) {
        const restore_step *const step = &steps[self->step];
        self->what = step->what;
        self->more = false;
        self->status = step->run(self, store);
        if (self->status == DP_CORRUPT && step->mend != NULL) {
            self->mended = step->mend(self, store) == DP_OK;
        }
        job->again = self->status == DP_OK && self->more;
        self->step += !self->more;
    }
}

static void free_restore(restore_job *self)
{
    dp_map_close(&self->wanted);
    dp_free(self->pinned);
    dp_free(self);
}

/* The failure as text for users: only the name of the step would be misleading. */
static const char *failed_step(const restore_job *self)
{
    if (self->status == DP_NOMEM) {
        return "the run cannot be opened";
    }
    if (self->status == DP_DENIED) { /* The store has rows of another member. */
        return "identity.key is not the key with which this directory joined its run; restore the "
               "old file, or join by a token in another directory";
    }
    return self->what;
}

static void done_restore(dp_store_thread_job *job)
{
    restore_job *self = (restore_job *)job;
    dp_driver *driver = self->driver;
    driver->is_new = self->new_vote_key && self->slot == 0 && !self->has_checkpoint;
    if (self->status != DP_OK || driver->closing) {
        dp_node_close(self->node);
        if (!driver->closing && self->mended) {
            dp_daemon_again(
                driver->daemon,
                "damaged rows were deleted from the store; the node restarts with the rest");
        } else if (!driver->closing) {
            dp_driver_fail(driver, self->status, failed_step(self));
        }
    } else {
        const uint32_t kept =
            self->n_rounds < DP_RESTORE_HISTORY ? self->n_rounds : DP_RESTORE_HISTORY;
        for (uint32_t i = 0; i < kept; i++) {
            dp_event_log_round_add(driver->daemon->event_log,
                                   &self->rounds[(self->n_rounds - kept + i) % DP_RESTORE_HISTORY]);
        }
        if (self->new_vote_key) {
            dp_event_log_add(driver->daemon->event_log, DP_LOG_INFO, "vote.key", 0, NULL,
                             "created a new vote key");
        }
        driver->counted_before = self->counted;
        driver->has_checkpoint = self->has_checkpoint;
        driver->checkpoint_round = self->checkpoint_round;
        driver->node = self->node;
        remember_homes(self);
        dp_driver_feed(driver, &(dp_event){.type = DP_EV_START});
        const dp_pause pause = dp_suspension_owner(driver->daemon->suspension);
        if (pause.holds && !pause.waits) {
            dp_driver_command(driver, DP_COMMAND_PAUSE); /* No trainer has a state yet. */
        }
        dp_transport_replay(driver->transport);
    }
    free_restore(self);
    dp_driver_job_done(driver);
}

/* NULL: no memory. */
static restore_job *restore_new(const dp_driver *driver)
{
    const uint32_t listed = driver->manifest.contributors_max > DP_LISTED_DEFAULT
                                ? driver->manifest.contributors_max
                                : (uint32_t)DP_LISTED_DEFAULT;
    const uint32_t wanted = (DP_DRIVER_BLOB_WINDOW + DP_DRIVER_BLOBS_BESIDE) * listed;
    restore_job *const job = dp_alloc(1, sizeof *job);
    uint64_t seed;
    if (job == NULL) {
        return NULL;
    }
    randombytes_buf(&seed, sizeof seed);
    job->pins_max = wanted > PINS_MIN ? wanted : (uint32_t)PINS_MIN;
    job->pinned = dp_alloc(job->pins_max, sizeof *job->pinned);
    if (job->pinned == NULL || dp_map_init(&job->wanted, wanted, seed) != DP_OK) {
        dp_free(job->pinned);
        dp_free(job);
        return NULL;
    }
    return job;
}

void dp_driver_restore(dp_driver *driver)
{
    restore_job *job = restore_new(driver);
    if (job == NULL) {
        dp_driver_fail(driver, DP_NOMEM, "starting");
        return;
    }
    job->job.run = run_restore;
    job->job.done = done_restore;
    job->driver = driver;
    job->reading.run = driver->facts.run;
    if (!dp_driver_post(driver, &job->job, DP_STORE_THREAD_URGENT)) {
        free_restore(job);
        dp_driver_fail(driver, DP_AGAIN, "starting");
    }
}
