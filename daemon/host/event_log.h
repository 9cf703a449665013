/* The event log, for people: every entry becomes one log line, a row in the durable journal unless
 * it is of level debug, and an entry of a ring that `dpnode logs` and `why` read. Rounds have a
 * ring of their own; older ones are in the chain. daemon/history reads what the rings no longer
 * have. Loop thread only.
 *
 * Entries are numbered, and so are rounds that this daemon saw. Numbers grow, also from one life of
 * the daemon to the next, and are never given twice (dp_event_log_begin). A client that remembers
 * the last number it has asks for those after it. Entries of the last half second before a crash
 * may be lost; their numbers are not used again. */
#ifndef DP_DAEMON_HOST_EVENT_LOG_H
#define DP_DAEMON_HOST_EVENT_LOG_H

#include <uv.h>

#include "base/log.h"
#include "daemon/host/phases.h"
#include "daemon/host/store_thread.h"
#include "gossip/node/node.h"
#include "gossip/record/record.h"

enum {
    DP_EVENT_LOG_ENTRIES_MAX = 1024,
    DP_EVENT_LOG_ROUNDS_MAX = 1024,
    DP_EVENT_LOG_TEXT_MAX = 240,
    DP_EVENT_LOG_NAME_MAX = 40,
    DP_EVENT_LOG_LEFT_OUT_MAX = 8,
    DP_EVENT_LOG_STRAGGLERS_MAX = 64, /* causes kept until their round is decided */
    DP_EVENT_LOG_PHASES_MAX = 16,     /* rounds whose phases are kept beside their rows */
    DP_EVENT_LOG_FLUSH_MS = 500
};

typedef struct dp_event_log_entry {
    uint64_t id; /* one more than that of the entry before it, except at a start */
    uint64_t time_ms;
    uint64_t round;
    dp_peer peer;      /* zero if none */
    dp_note_code code; /* 0: an entry of the daemon itself */
    char name[DP_EVENT_LOG_NAME_MAX];
    char text[DP_EVENT_LOG_TEXT_MAX];
} dp_event_log_entry;

typedef enum dp_event_log_kind { DP_EVENT_LOG_SYNC = 1, DP_EVENT_LOG_GOSSIP = 2 } dp_event_log_kind;

typedef struct dp_left_out {
    dp_peer peer;
    char cause[64]; /* of a note; a longer one is cut */
} dp_left_out;

typedef struct dp_event_log_round {
    dp_event_log_kind kind;
    uint64_t round;
    uint64_t slot;
    /* time at which this node learned the decision, or finished the exchange */
    uint64_t time_ms;
    uint64_t duration_ms; /* since the round before; 0: unknown */
    uint32_t listed;
    uint32_t active;      /* members that were expected */
    uint64_t tokens;      /* of this round */
    uint64_t loss_micro;  /* weighted by tokens; 0: unknown */
    uint64_t bytes;       /* of all blobs listed */
    uint32_t parts;       /* of a round of parts; 0: there are none */
    uint32_t parts_empty; /* of these without a result */
    uint32_t keep;  /* one element of so many in its updates; 0: as the manifest says, or unknown */
    dp_lines lines; /* state of the lines, by the record */
    double update_norm;  /* |a| of this node's update in it, and the residual of its codec; */
    double update_error; /* 0: not known */
    bool counted;        /* lists this node */
    bool live;           /* decided while this daemon ran, not read from the chain */
    uint64_t seq;        /* its number; 0: it was read from the chain */
    dp_phases phases;    /* of this node; none where it was read from the chain */
    dp_hash state_root;  /* of this node after this round; zero: it had none in this life */
    uint32_t n_left_out; /* the first of those that the record lists as late */
    dp_left_out left_out[DP_EVENT_LOG_LEFT_OUT_MAX];
    uint32_t n_peers;
    struct {
        dp_peer peer;
        uint32_t steps;
        uint64_t tokens;
        uint32_t q;
        uint32_t age; /* 1: it was too late for the round before */
    } peers[DP_LISTED_DEFAULT];
    /* GOSSIP */
    dp_peer partner;
    uint64_t weight_own;
    uint64_t weight_other;
    double moved;
    char cause[64]; /* of a note; a longer one is cut */
} dp_event_log_round;

/* Rounds that were decided since the daemon's start, as their records tell it. */
typedef struct dp_event_log_turnout {
    uint64_t all;  /* that list every member that was expected */
    uint64_t some; /* that were closed without some of them, at the end of a grace or deadline */
} dp_event_log_turnout;

typedef struct dp_event_log dp_event_log;

typedef struct dp_event_log_hooks {
    void *context;
    void (*entry)(void *context, const dp_event_log_entry *entry);
    void (*round)(void *context, const dp_event_log_round *round);
} dp_event_log_hooks;

DP_MUST dp_status dp_event_log_open(dp_event_log **event_log, uv_loop_t *loop,
                                    dp_store_thread *store_thread, const dp_event_log_hooks *hooks);
/* Before the first entry: numbers begin with this one, instead of 1. */
void dp_event_log_begin(dp_event_log *event_log, uint64_t first);
/* Passes the entries that are not yet in the journal to the store thread; call before the store
 * thread closes. */
void dp_event_log_flush(dp_event_log *event_log);
void dp_event_log_close(dp_event_log *event_log);

/* One entry: name is a stable event name ("run.joined"), the text a sentence or key=value pairs. */
void dp_event_log_add(dp_event_log *event_log, dp_log_level level, const char *name, uint64_t round,
                      const dp_peer *peer, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
/* Adds a note of the node as text. names may be NULL, or gives a name for a peer ("" if
 * unknown). */
void dp_event_log_note(dp_event_log *event_log, const dp_note *note, const char *peer_name);

/* The node no longer waits for this member (DP_NOTE_STRAGGLER): kept until that round is added; if
 * the record leaves the member out, the round's row then has this cause. */
void dp_event_log_straggler(dp_event_log *event_log, const dp_note *note);
/* A phase of a round begins now, if that is not known of it yet; its row has it, now or later. */
void dp_event_log_phase(dp_event_log *event_log, uint64_t round, dp_phase phase);
/* The updates of a round were here so long after it was opened. */
void dp_event_log_held(dp_event_log *event_log, uint64_t round, uint64_t held_us);
/* Rounds. The row is copied; the same (kind SYNC, round) replaces. */
void dp_event_log_round_add(dp_event_log *event_log, const dp_event_log_round *round);
/* Before the first round of another run: the rounds so far are not kept any more. */
void dp_event_log_rounds_forget(dp_event_log *event_log);
/* NULL if absent. */
dp_event_log_round *dp_event_log_round_find(dp_event_log *event_log, uint64_t round);
/* index 0 = oldest kept; NULL beyond the last. */
const dp_event_log_round *dp_event_log_round_at(const dp_event_log *event_log, uint32_t index);
uint32_t dp_event_log_rounds(const dp_event_log *event_log);
/* How many rows were ever added: row number dp_event_log_rounds_total - dp_event_log_rounds is the
 * oldest kept. */
uint64_t dp_event_log_rounds_total(const dp_event_log *event_log);
/* The newest round whose phases are known up to its application, of the last
 * DP_EVENT_LOG_PHASES_MAX rows; NULL: none. dp_phases_times is true of it. */
const dp_event_log_round *dp_event_log_round_phased(const dp_event_log *event_log);
dp_event_log_turnout dp_event_log_turnout_of(const dp_event_log *event_log);
/* From a decided record, as seen by self. The record does not contain the reason why a member was
 * left out; the proposer that closed the round knows it (above). */
void dp_event_log_round_of_record(const dp_record *record, const dp_peer *self,
                                  dp_event_log_round *round);

const dp_event_log_entry *dp_event_log_entry_at(const dp_event_log *event_log, uint32_t index);
uint32_t dp_event_log_entries(const dp_event_log *event_log);
/* The number of the entry to come. */
uint64_t dp_event_log_next_id(const dp_event_log *event_log);

uint64_t dp_unix_ms(void);
/* For spans of time: never jumps, and advances also while the machine sleeps. */
uint64_t dp_boot_ms(void);

#endif
