/* Rounds and events that are new to one reader of the stream, as a server-sent event with an id by
 * which a reader that was cut goes on. Blocks as cli/watch/source.h does. One thread. */
#ifndef DP_CLI_WEB_NEWS_H
#define DP_CLI_WEB_NEWS_H

#include "cli/watch/source.h"

enum { DP_NEWS_EVENTS_MAX = 256, DP_NEWS_ROUNDS_MAX = 32 }; /* in one; the next has the others */

/* The newest that a reader has. */
typedef struct dp_news {
    bool begun;
    uint64_t event;     /* id of an event */
    uint64_t seq;       /* of a round */
    uint64_t slot;      /* of the last round of the chain */
    uint64_t exchanges; /* of the node, when rounds were asked for last */
} dp_news;

/* From the id of a news event, "event-seq-slot". False: any other text or NULL; then the reader has
 * nothing yet. */
bool dp_news_read(dp_news *news, const char *id);
/* Appends the event "news", {"events", "rounds"}, both oldest first, if there is something new, or
 * at the begin: then it is empty, and what comes later is in the next ones. Nothing where the
 * daemon does not answer. DP_NOMEM, DP_TOOBIG: nothing is appended, and it is asked for again. */
DP_MUST dp_status dp_news_write(dp_news *news, const dp_source *source, dp_buf *out);

#endif
