/* Join secrets: the store keeps one before the transport uses it. It also tells the owner of a
 * node whose connections are all closed without an answer, maybe because it was removed or missed
 * two rotations, how to join again. */
#include <sodium.h>
#include <string.h>

#include "base/alloc.h"
#include "daemon/peer/driver_inside.h"

/* A proxy whose node restarts closes connections too, and a restart takes seconds to a minute. A
 * node without links dials an address of its token every DP_DRIVER_REDIAL_MS. */
enum { CUTS_MIN = 16, CUTS_MS = 120 * 1000 };

typedef struct rotate_job {
    dp_store_thread_job job;
    dp_driver *driver;
    dp_run_identity facts;
    dp_status status;
} rotate_job;

void dp_driver_use_secrets(const dp_driver *driver, dp_channel_psk psks[DP_SECRETS_MAX])
{
    const dp_secrets *secrets = &driver->facts.secrets;
    memset(psks, 0, DP_SECRETS_MAX * sizeof psks[0]);
    for (uint32_t i = 0; i < secrets->n; i++) {
        psks[i].epoch = secrets->items[i].epoch;
        dp_psk_derive(secrets->items[i].bytes, &driver->facts.run, psks[i].epoch, psks[i].key);
    }
}

static void use(dp_driver *driver, const dp_run_identity *facts)
{
    dp_channel_psk psks[DP_SECRETS_MAX];
    driver->facts.secrets = facts->secrets;
    driver->facts.psk_epoch = facts->psk_epoch;
    memcpy(driver->facts.join_secret, facts->join_secret, sizeof facts->join_secret);
    dp_driver_use_secrets(driver, psks);
    dp_transport_keys(driver->transport, &psks[0], facts->secrets.n > 1 ? &psks[1] : NULL);
    sodium_memzero(psks, sizeof psks);
    dp_event_log_add(driver->daemon->event_log, DP_LOG_INFO, "secret.rotated", 0, NULL,
                     "the join secret of epoch %u has arrived and is used for connections and new "
                     "tokens; that of epoch %u stays valid for connections",
                     facts->psk_epoch, facts->secrets.items[facts->secrets.n - 1].epoch);
}

static void run_rotate(dp_store_thread_job *job, dp_store *store)
{
    rotate_job *self = (rotate_job *)job;
    self->status = dp_run_identity_rotated(store, self->driver->daemon->config->dir, &self->facts);
}

static void done_rotate(dp_store_thread_job *job)
{
    rotate_job *self = (rotate_job *)job;
    dp_driver *driver = self->driver;
    if (self->status != DP_OK) {
        dp_event_log_add(
            driver->daemon->event_log, DP_LOG_ERROR, "secret.unsaved", 0, NULL,
            "the join secret of epoch %u could not be stored (%s) and is not used; it is "
            "requested again at the next start",
            self->facts.psk_epoch, dp_status_text(self->status));
    } else if (!driver->closing) {
        use(driver, &self->facts);
    }
    sodium_memzero(&self->facts, sizeof self->facts);
    dp_free(self);
    dp_driver_job_done(driver);
}

void dp_driver_secrets(dp_driver *driver, const dp_secrets *secrets)
{
    bool added = false;
    for (uint32_t i = 0; i < secrets->n; i++) {
        added = dp_secrets_add(&driver->secrets, &secrets->items[i]) || added;
    }
    rotate_job *self = added ? dp_alloc(1, sizeof *self) : NULL;
    if (self == NULL) {
        return; /* Without memory the next start asks for it again. */
    }
    self->job.run = run_rotate;
    self->job.done = done_rotate;
    self->driver = driver;
    self->facts = driver->facts;
    self->facts.secrets = driver->secrets;
    self->facts.psk_epoch = driver->secrets.items[0].epoch;
    memcpy(self->facts.join_secret, driver->secrets.items[0].bytes, DP_JOIN_SECRET_BYTES);
    if (!dp_driver_post(driver, &self->job, DP_STORE_THREAD_BULK)) {
        dp_free(self);
    }
}

bool dp_driver_token_secret(dp_driver *driver, const dp_invite *invite)
{
    dp_transport_stats stats;
    dp_secrets one = {.n = 1, .items = {{.epoch = invite->psk_epoch}}};
    dp_transport_look(driver->transport, &stats);
    if (stats.links > 0 || invite->psk_epoch <= driver->secrets.items[0].epoch) {
        return false;
    }
    memcpy(one.items[0].bytes, invite->join_secret, sizeof one.items[0].bytes);
    dp_driver_secrets(driver, &one);
    return true;
}

void dp_driver_rotate_tick(dp_driver *driver, const dp_transport_stats *stats)
{
    const uint64_t now = uv_now(driver->daemon->loop);
    if (stats->links > 0 || stats->handshakes != driver->cut.handshakes) {
        driver->cut.handshakes = stats->handshakes;
        driver->cut.cuts = stats->dials_cut;
        driver->cut.told = false;
    }
    if (stats->dials_cut == driver->cut.cuts || driver->cut.since_ms == 0) {
        driver->cut.since_ms = now; /* The first cut is counted from here, or from the start. */
    }
    if (driver->cut.told || driver->node == NULL ||
        stats->dials_cut - driver->cut.cuts < CUTS_MIN || now < driver->cut.since_ms + CUTS_MS) {
        return;
    }
    driver->cut.told = true;
    dp_event_log_add(
        driver->daemon->event_log, DP_LOG_WARN, "secret.refused", 0, NULL,
        "every address closes the connection without an answer: the node there is down behind a "
        "proxy, or this one was removed, or missed two rotations of the join secret; if the run is "
        "up: dpnode join TOKEN   # printed by dpnode invite on a member");
}
