/* What a node must remember about its own work: the pending publication, the error feedback with its round, and pair
 * exchanges; and what it wants to tell a person: events and counters.
 *
 * Work is never counted twice because every step is one transaction: save replaces, settle is "feedback + pending
 * gone" at once. Group calls of this and other files with dp_store_atomically. */
#ifndef DP_STORE_JOURNAL_H
#define DP_STORE_JOURNAL_H

#include "store/db.h"

enum {
    DP_JOURNAL_EVENTS_MAX = 10000, /* The oldest go first. */
    DP_JOURNAL_NAME_MAX = 48, /* Event and counter names, with NUL. */
    DP_JOURNAL_TEXT_MAX = 512, /* With NUL; longer text is cut. */
    DP_JOURNAL_ID_BYTES = 16,
    DP_JOURNAL_SUM_MAX = 128, /* Text of a sum, with NUL. */
    DP_JOURNAL_EXCHANGES_MAX = 1000, /* Finished ones kept for the journal. */
};

/* ---- The publication that waits for its record: at most one per run. */
typedef struct dp_pending_row {
    uint64_t t; /* Round it is meant for. */
    dp_hash base; /* Hash of the last record that changed the state. */
    dp_hash root; /* Object of the encoded update. */
    dp_hash a_root; /* Object of the fp32 vector that was encoded; zero if only the update is kept. */
    uint64_t tokens;
    uint64_t steps;
} dp_pending_row;

/* Replace the pending row; from now on it keeps its objects (which must be complete: DP_AGAIN, DP_NOTFOUND) and the
 * PENDING pins of the run are removed, all in one transaction. Another root for the same t and base than the one
 * saved: DP_EXISTS, since READY for it may have left. */
DP_MUST dp_status dp_pending_save(dp_store *store, const dp_hash *run, const dp_pending_row *pending);
/* DP_NOTFOUND, DP_CORRUPT. */
DP_MUST dp_status dp_pending_load(dp_store *store, const dp_hash *run, dp_pending_row *pending);
/* Absent rows are fine. */
DP_MUST dp_status dp_pending_delete(dp_store *store, const dp_hash *run);

/* ---- Error feedback: an object and the round after which it is exact. */
typedef struct dp_feedback_row {
    uint64_t tag;
    dp_hash root;
} dp_feedback_row;

/* {e, e.tag, pending deleted} in one transaction; the earlier feedback loses its object. root must be complete. */
DP_MUST dp_status dp_pending_settle(dp_store *store, const dp_hash *run, const dp_feedback_row *feedback);
DP_MUST dp_status dp_feedback_save(dp_store *store, const dp_hash *run, const dp_feedback_row *feedback);
DP_MUST dp_status dp_feedback_load(dp_store *store, const dp_hash *run, dp_feedback_row *feedback);
DP_MUST dp_status dp_feedback_delete(dp_store *store, const dp_hash *run);

/* ---- Pair exchanges of the gossip fallback. */
typedef enum dp_journal_role { DP_JOURNAL_ASKER = 0, DP_JOURNAL_DECIDER } dp_journal_role;

typedef enum dp_journal_state {
    DP_JOURNAL_PREPARED = 0, /* Both blobs are here; either side may still drop it. */
    DP_JOURNAL_ASKED, /* The asker has sent COMMIT: only the decider's journal answers now. */
    DP_JOURNAL_COMMITTED, /* The decider has decided. */
    DP_JOURNAL_ABORTED, /* Final. */
    DP_JOURNAL_DONE, /* Final: applied. */
} dp_journal_state;

typedef struct dp_exchange_row {
    uint8_t id[DP_JOURNAL_ID_BYTES];
    dp_hash peer;
    dp_journal_role role;
    dp_journal_state state;
    dp_hash base;
    dp_hash own_root; /* Object of what we send. */
    dp_hash other_root; /* Object of what we got. */
    dp_hash own_f_root; /* Object of our frozen displacement; zero roots name no object. */
    uint64_t w_own;
    uint64_t w_other;
    uint64_t own_incarnation;
    uint64_t other_incarnation;
    uint64_t time_ms;
    char sum_before[DP_JOURNAL_SUM_MAX]; /* Text for a person: the sum of weight times displacement. */
    char sum_after[DP_JOURNAL_SUM_MAX];
} dp_exchange_row;

/* Insert or replace by id. An unfinished one keeps its objects and the EXCHANGE pins on them are removed; a final one
 * lets them go. A final state never changes and COMMITTED only becomes DONE, else DP_BADARG. DP_NOTFOUND, DP_AGAIN:
 * an object of an unfinished one is not complete here. */
DP_MUST dp_status dp_exchange_save(dp_store *store, const dp_hash *run, const dp_exchange_row *exchange);
/* DP_NOTFOUND. */
DP_MUST dp_status dp_exchange_load(dp_store *store, const dp_hash *run, const uint8_t *id, dp_exchange_row *exchange);
/* Unfinished ones (neither ABORTED nor DONE), oldest first; DP_TOOBIG if there are more than max. */
DP_MUST dp_status dp_exchange_unfinished(dp_store *store, const dp_hash *run, dp_exchange_row *list, uint32_t max,
                                         uint32_t *count);
/* The last max of any state, newest first. */
DP_MUST dp_status dp_exchange_last(dp_store *store, const dp_hash *run, dp_exchange_row *list, uint32_t max,
                                   uint32_t *count);

/* ---- Events for `dpnode why` and `dpnode logs`: append-only and bounded. */
typedef struct dp_journal_event {
    uint64_t id; /* Grows by one; filled in by the store. */
    uint64_t time_ms;
    uint64_t round;
    char name[DP_JOURNAL_NAME_MAX]; /* "round.commit" */
    char text[DP_JOURNAL_TEXT_MAX];
} dp_journal_event;

/* All of them in one transaction: collect a few before calling. */
DP_MUST dp_status dp_journal_append(dp_store *store, const dp_journal_event *events, uint32_t count);
/* Events with id > after_id, oldest first, at most max. after_id 0: from the oldest kept. */
DP_MUST dp_status dp_journal_read(dp_store *store, uint64_t after_id, dp_journal_event *list, uint32_t max, uint32_t *count);
/* The last max events, oldest first. */
DP_MUST dp_status dp_journal_tail(dp_store *store, dp_journal_event *list, uint32_t max, uint32_t *count);

/* ---- Counters that survive restarts. */
typedef struct dp_counter_row {
    char name[DP_JOURNAL_NAME_MAX];
    uint64_t value;
} dp_counter_row;

/* Add to each of them in one transaction (value is the amount); a counter stops at INT64_MAX. */
DP_MUST dp_status dp_counter_add(dp_store *store, const dp_counter_row *amounts, uint32_t count);
/* 0 if it was never added to. */
DP_MUST dp_status dp_counter_get(dp_store *store, const char *name, uint64_t *value);
/* By name. DP_TOOBIG if there are more than max. */
DP_MUST dp_status dp_counter_list(dp_store *store, dp_counter_row *list, uint32_t max, uint32_t *count);

#endif
