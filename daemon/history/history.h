/* The history of a run for people, from the store: events of the journal and rounds of the chain,
 * older than those that the event log keeps in memory. Read on the store thread, a page at a time;
 * only the two functions that judge one entry are called elsewhere. */
#ifndef DP_DAEMON_HISTORY_HISTORY_H
#define DP_DAEMON_HISTORY_HISTORY_H

#include "daemon/host/event_log.h"
#include "store/chain.h"
#include "store/journal.h"

enum {
    DP_HISTORY_EVENTS_LOOK = 256, /* rows of the journal that one call looks at */
    DP_HISTORY_ROUNDS_LOOK = 64   /* records of the chain */
};

/* The entries that somebody asks for. A time t fits if since_ms <= t < until_ms. */
typedef struct dp_history_filter {
    uint64_t since_ms;
    uint64_t until_ms; /* UINT64_MAX: to the newest */
    bool has_peer;
    dp_peer peer;
    bool has_round; /* events of this round alone */
    uint64_t round;
} dp_history_filter;

/* An event of a peer names it as its subject, or its text has the peer's short id. */
bool dp_history_takes_event(const dp_history_filter *filter, const dp_event_log_entry *entry);
/* A round of a peer lists it, or lists it as late; an exchange of a peer is with it. */
bool dp_history_takes_round(const dp_history_filter *filter, const dp_event_log_round *round);
/* The row of a large round does not have all of its contributors: whether it is of the filter's
 * peer, the record alone tells. */
bool dp_history_is_unsure(const dp_history_filter *filter, const dp_event_log_round *round);

/* A place in the history, and the work of one call. */
typedef struct dp_history_page {
    uint64_t at;        /* the next id or slot to look at; moved */
    uint64_t end;       /* the first one that is not looked at any more */
    uint32_t max;       /* rows that list has room for */
    uint32_t n;         /* of these filled by this call */
    bool over;          /* nothing is left before the end */
    uint64_t before_ms; /* rounds: time of the round before at; 0: not known */
} dp_history_page;

/* Fills list with the events that the filter takes, from page->at on, oldest first. page->n is less
 * than page->max where the filter takes few: call again until page->over. */
DP_MUST dp_status dp_history_events(dp_store *store, const dp_history_filter *filter,
                                    dp_history_page *page, dp_event_log_entry *list);
/* Goes back from *at (exclusive): subtracts from *wanted each event that the filter takes, until it
 * is 0, then *at is the id of the last one. True: it is 0, or no older event is left. Call it until
 * then, or until it fails. */
DP_MUST dp_status dp_history_events_back(dp_store *store, const dp_history_filter *filter,
                                         uint64_t *at, uint64_t *wanted, bool *over);

/* The chain that rounds are read from, as seen by one of its nodes. */
typedef struct dp_history_chain {
    dp_run_id run;
    dp_peer self;
} dp_history_chain;

/* As dp_history_events, of rounds by their slots. A record that fails its checksum ends the page
 * with its error. */
DP_MUST dp_status dp_history_rounds(dp_store *store, const dp_history_chain *chain,
                                    const dp_history_filter *filter, dp_history_page *page,
                                    dp_event_log_round *list);
DP_MUST dp_status dp_history_rounds_back(dp_store *store, const dp_history_chain *chain,
                                         const dp_history_filter *filter, uint64_t *at,
                                         uint64_t *wanted, bool *over);
/* The row of one round. DP_NOTFOUND. */
DP_MUST dp_status dp_history_round(dp_store *store, const dp_history_chain *chain, uint64_t round,
                                   dp_event_log_round *row);

#endif
