/* Stores a renewal of this node's certificate. Peers see it from the next handshake on. */
#include <string.h>

#include "base/alloc.h"
#include "daemon/net/hello.h"
#include "daemon/peer/driver_inside.h"

typedef struct renew_job {
    dp_store_thread_job job;
    dp_driver *driver;
    dp_run_id run;
    dp_renewal renewal;
    dp_status status;
} renew_job;

static void run_renew(dp_store_thread_job *job, dp_store *store)
{
    renew_job *self = (renew_job *)job;
    self->status = dp_run_identity_renewed(store, &self->run, &self->renewal);
}

static void done_renew(dp_store_thread_job *job)
{
    renew_job *self = (renew_job *)job;
    dp_driver *driver = self->driver;
    if (self->status != DP_OK) {
        dp_event_log_add(driver->daemon->event_log, DP_LOG_WARN, "certificate.unsaved", 0, NULL,
                         "the renewal of this node's certificate could not be stored (%s); it is "
                         "requested again at the next start",
                         dp_status_text(self->status));
    }
    dp_free(self);
    dp_driver_job_done(driver);
}

static void keep(dp_driver *driver)
{
    renew_job *self = dp_alloc(1, sizeof *self);
    if (self == NULL) {
        return; /* Asked for again at the next start. */
    }
    self->job.run = run_renew;
    self->job.done = done_renew;
    self->driver = driver;
    self->run = driver->facts.run;
    self->renewal = driver->facts.renewal;
    if (!dp_driver_post(driver, &self->job, DP_STORE_THREAD_BULK)) {
        dp_free(self);
    }
}

void dp_driver_renewed(dp_driver *driver, const dp_renewal *renewal)
{
    uint8_t hello[DP_CHANNEL_HELLO_MAX];
    const uint64_t now_ms = dp_driver_wall_ms(driver);
    driver->facts.renewal = *renewal;
    dp_transport_say(
        driver->transport,
        dp_view_of(hello, dp_hello_write(driver->facts.node_name, renewal, hello, sizeof hello)));
    dp_event_log_add(
        driver->daemon->event_log, DP_LOG_INFO, "certificate.renewed", 0, &renewal->by,
        "this node's certificate is renewed for %llu days",
        (unsigned long long)((renewal->until_ms > now_ms ? renewal->until_ms - now_ms : 0) /
                             (24ULL * 3600 * 1000)));
    keep(driver);
}
