/* Lists of rounds and events that clients of the control socket ask for: older ones come from the
 * store, newer ones from the event log, in pages that follow each other as the client reads. A list
 * that follows goes on with each new entry. Loop thread only.
 *
 * A page is at most DP_STREAM_EVENTS or DP_STREAM_ROUNDS entries, and none is made while more than
 * DP_STREAM_WAITING bytes wait for the client: a list of any length takes little memory, and the
 * loop little time at once. A client that does not read gets no more, and misses nothing. */
#ifndef DP_DAEMON_CONTROL_LIST_STREAM_H
#define DP_DAEMON_CONTROL_LIST_STREAM_H

#include "daemon/control/control.h"
#include "daemon/history/history.h"

enum {
    DP_STREAMS_MAX = 2 * DP_CONTROL_CLIENTS_MAX,
    DP_STREAMS_OF_CLIENT_MAX = 4,
    DP_STREAM_EVENTS = 64,
    DP_STREAM_ROUNDS = 8,
    DP_STREAM_WAITING = 64 * 1024
};

typedef enum dp_stream_kind { DP_STREAM_OF_EVENTS = 1, DP_STREAM_OF_ROUNDS } dp_stream_kind;

/* The entries of a list: those that the filter takes, of these the last ones, and of these the ones
 * after a number. */
typedef struct dp_stream_wish {
    dp_stream_kind kind;
    dp_history_filter filter; /* until_ms is not looked at in a list that follows */
    uint64_t last;            /* UINT64_MAX: all */
    uint64_t after;           /* id of an event, seq of a round; 0: from the oldest */
    uint64_t after_slot;      /* rounds: of the chain, those after this slot; 0: all of them */
    bool follow;
    bool narrow; /* the filter was asked for: the reply says that it was looked at */
} dp_stream_wish;

/* Answers the call, now or later: a notice for each entry, and unless it follows, the count. */
void dp_stream_open(dp_daemon *daemon, const dp_call *call, const dp_stream_wish *wish);
/* There is a new entry of this kind. */
void dp_streams_on_entry(dp_daemon *daemon, dp_stream_kind kind);
/* This client has read; or it is gone. */
void dp_streams_on_room(dp_daemon *daemon, uint64_t client);
void dp_streams_on_gone(dp_daemon *daemon, uint64_t client);
/* Ends all; those that the store thread has are freed when it is done with them. */
void dp_streams_close(dp_daemon *daemon);

#endif
