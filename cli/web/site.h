/* The pages of dpnode-web as a function of a request: no sockets, no HTTP library. Read-only: only
 * GET and HEAD are answered.
 *
 *   /            the page; /app.js and /app.css belong to it
 *   /metrics     Prometheus text (cli/web/metrics.h)
 *   /healthz     200 where `dpnode status --check live` passes, else 503
 *   /readyz      200 where `dpnode status --check ready` passes, else 503
 *   /api/v1/status, /api/v1/peers               the daemon's replies, unchanged
 *   /api/v1/rounds?last=N, /api/v1/events?last=N  arrays, oldest first
 *   /api/v1/texts    array of {"round", "time_ms", "text"} of checkpoints, oldest first
 *   /api/v1/stream   text/event-stream: event "state" with {"status", "peers"} each second; event
 *                    "news" with {"events", "rounds"} that are new (cli/web/news.h), whose id a
 *                    reader that was cut gives back as Last-Event-ID, or as ?after=
 *
 * A page of the internet can make a browser send requests to this machine under a name of its own
 * (DNS rebinding), so the Host of a request must be an address, localhost, or a name that the owner
 * gave. */
#ifndef DP_CLI_WEB_SITE_H
#define DP_CLI_WEB_SITE_H

#include "cli/watch/source.h"

enum {
    DP_SITE_NAMES_MAX = 4,               /* of hosts */
    DP_SITE_BYTES_MAX = 4 * 1024 * 1024, /* of one answer */
    DP_SITE_LAST = 64                    /* rounds or events where the request does not say */
};

typedef struct dp_site {
    dp_source source;
    const char *names[DP_SITE_NAMES_MAX]; /* borrowed; NULL: no more */
    json_t *texts;                        /* borrowed (cli/web/texts.h); NULL: none are made */
} dp_site;

typedef struct dp_site_request {
    const char *method;
    const char *path; /* without its query */
    const char *host; /* the header's value; NULL: none */
    const char *last; /* of the query; NULL: none */
} dp_site_request;

typedef struct dp_site_answer {
    unsigned status;  /* of HTTP */
    const char *type; /* Content-Type */
    bool streams;     /* body is not used: dp_site_event, again and again */
    dp_buf body;
} dp_site_answer;

/* Close the answer with dp_site_answer_close. DP_NOMEM, DP_TOOBIG: there is none. */
DP_MUST dp_status dp_site_ask(dp_site *site, uint64_t now_ms, const dp_site_request *request,
                              dp_site_answer *answer);
void dp_site_answer_close(dp_site_answer *answer);

/* The event of what the source knows now. Appends to out. DP_NOMEM, DP_TOOBIG. */
DP_MUST dp_status dp_site_event(const dp_site *site, dp_buf *out);

/* Whether a request with this Host may be answered. */
bool dp_site_host_allowed(const dp_site *site, const char *host);

#endif
