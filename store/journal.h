/* The event log, for `dpnode why` and `dpnode logs`: append-only, bounded, for people only. No
 * decision depends on it. */
#ifndef DP_STORE_JOURNAL_H
#define DP_STORE_JOURNAL_H

#include "store/db.h"

enum {
    DP_JOURNAL_EVENTS_MAX = 10000, /* Then the oldest are removed. */
    DP_JOURNAL_NAME_MAX = 48,      /* With NUL; without spaces. */
    DP_JOURNAL_TEXT_MAX = 512,     /* With NUL; longer text is cut. */
};

typedef struct dp_journal_event {
    uint64_t id; /* Grows, with gaps. In append, 0: the store gives the next one. */
    uint64_t time_ms;
    uint64_t round;
    dp_hash peer;                   /* The id of the peer that it is about; zero: none. */
    char name[DP_JOURNAL_NAME_MAX]; /* "round.commit" */
    char text[DP_JOURNAL_TEXT_MAX];
} dp_journal_event;

/* Appends all in one transaction; collect a few before calling. Ids given must be above those
 * before; an event whose id is there already is dropped. */
DP_MUST dp_status dp_journal_append(dp_store *store, const dp_journal_event *events,
                                    uint32_t count);
/* Events with id > after_id, oldest first, at most max. after_id 0: from the oldest kept. */
DP_MUST dp_status dp_journal_read(dp_store *store, uint64_t after_id, dp_journal_event *list,
                                  uint32_t max, uint32_t *count);
/* The last max events with id < before_id, oldest first. before_id UINT64_MAX: of all. */
DP_MUST dp_status dp_journal_back(dp_store *store, uint64_t before_id, dp_journal_event *list,
                                  uint32_t max, uint32_t *count);
/* The largest id that was ever given; 0: none. */
DP_MUST dp_status dp_journal_last(dp_store *store, uint64_t *id);

#endif
