/* Heartbeats of the voters and two conclusions from them: whether a majority of voters is
 * connected, and which voter can carry a message to a voter that does not hear us. A state machine
 * without I/O; it decides when to fall back to gossip; node.c does it.
 *
 * A HEARTBEAT is signed, so anybody may pass it on: a voter that another does not hear directly is
 * heard through a third. Rules (SAFETY D2): a beat says "quorum" when its sender heard a majority
 * of the voters, itself included, within three beats. A node is without quorum after fallback_us
 * without fresh beats that say so from a majority; it is back after two beats' time with them; it
 * changes at most once per hold_us. Freshness counts from the local arrival of a beat with a higher
 * (incarnation, sequence), never from the sender's clock. While the run is idle (idle.h) beats are
 * rare, and three of them are as much longer. */
#ifndef DP_GOSSIP_MEMBER_HEARTBEAT_H
#define DP_GOSSIP_MEMBER_HEARTBEAT_H

#include "base/clock.h"
#include "gossip/event/out.h"
#include "gossip/member/idle.h"

enum {
    DP_HEARTBEAT_BYTES =
        2 + 32 + 8 + 8 + 4 + 8 + 8 + 8 + 1 + 1 + DP_SIGNATURE_BYTES, /* one HEARTBEAT message */
    DP_HEARTBEAT_RIDER_MAX = 1 + DP_VOTERS_MAX * DP_HEARTBEAT_BYTES,
    DP_HEARTBEAT_PAST_MAX = 16 /* former voters remembered; of more the oldest is forgotten */
};
#define DP_HEARTBEAT_US (250 * DP_MS) /* between beats, in a run of short rounds */

typedef struct dp_heartbeat_voter {
    dp_peer peer;
    uint64_t incarnation;
    uint64_t sequence;
    dp_time arrived; /* of the newest beat, direct or passed on; zero: none */
    dp_time direct;  /* of the newest beat on the voter's own link */
    /* of the newest beat that somebody else brought first, with its next line; zero: none */
    dp_time passed;
    /* the peer that brought it, voter or not: it hears this voter, or a node that does */
    dp_peer via;
    uint64_t slot;
    uint64_t round;
    uint64_t wall_ms;
    bool quorum;   /* as the beat says */
    uint8_t heard; /* bit v: hears voter v of the same set directly */
    uint8_t message[DP_HEARTBEAT_BYTES];
} dp_heartbeat_voter;

/* The newest beat of one that was a voter: when it is one again, its old beats do not count as
 * new. */
typedef struct dp_heartbeat_past {
    dp_peer peer;
    uint64_t incarnation; /* 0: empty */
    uint64_t sequence;
} dp_heartbeat_past;

/* Data; written by this module only. */
typedef struct dp_heartbeat {
    dp_run_id run;
    dp_peer self;
    uint64_t incarnation;
    dp_crypto crypto;
    uint32_t pace; /* beats come every pace * DP_HEARTBEAT_US */
    uint64_t fallback_us;
    uint64_t hold_us;
    dp_idle idle;
    uint32_t n_voters; /* 0: not known yet */
    uint32_t own;      /* index of this node in voters, or DP_VOTERS_MAX */
    uint32_t tag;      /* of the voter set: bitmaps count only under the same tag */
    dp_heartbeat_voter voters[DP_VOTERS_MAX];
    dp_heartbeat_past past[DP_HEARTBEAT_PAST_MAX]; /* a ring */
    uint32_t n_past;                               /* ever put in */
    uint64_t wall_ms;                              /* own */
    uint64_t sequence;                             /* of own beats */
    dp_time beat_at;                               /* next own beat */
    uint32_t enough;    /* beats that say quorum, for a node that is no voter; 0: a majority */
    bool quorum;        /* the opinion, with hysteresis */
    dp_time seen_at;    /* quorum last seen */
    dp_time seen_since; /* start of the present unbroken sight of it; zero: not in sight */
    dp_time changed;
    uint64_t changes;
} dp_heartbeat;

typedef struct dp_heartbeat_config {
    dp_run_id run;
    dp_peer self;
    uint64_t incarnation;
    dp_crypto crypto;
    uint32_t pace;        /* dp_heartbeat_pace; 0: 1 */
    uint64_t fallback_us; /* 0: a second and three beats */
    uint64_t hold_us;     /* least time between two changes of the opinion; 0 is allowed */
} dp_heartbeat_config;

/* Of a run with rounds of this length, of its manifest: 1 for 10 s and less, up to 4 for 40 s and
 * more. A late word costs a share of a round, and each word costs bytes. */
uint32_t dp_heartbeat_pace(uint32_t round_ms);
void dp_heartbeat_init(dp_heartbeat *beat, const dp_heartbeat_config *config);
/* The voter set of the chain head, in its order. Voters that stay keep their rows; of voters that
 * go the numbers of their last heartbeats are kept. n in 1..DP_VOTERS_MAX. */
/* Index of this peer among the voters; DP_VOTERS_MAX: it is none. */
uint32_t dp_heartbeat_find_voter(const dp_heartbeat *beat, const dp_peer *peer);
void dp_heartbeat_set_voters(dp_heartbeat *beat, const dp_peer *voters, uint32_t n, dp_time now);
/* A quarter of the expected round time, from the core. */
void dp_heartbeat_hold(dp_heartbeat *beat, uint64_t hold_us);

/* Is the run idle? When that ends, the own beat is due at once. */
void dp_heartbeat_idle(dp_heartbeat *beat, bool idle, dp_time now);
/* The own wall clock, for heartbeats and for agreed time. */
void dp_heartbeat_clock(dp_heartbeat *beat, uint64_t wall_ms);
/* The latest time that as many clocks have reached as make a majority of the voters, out of those
 * that are heard (all of them when fewer are heard): neither a minority ahead nor a minority behind
 * moves it. */
uint64_t dp_heartbeat_agreed_ms(const dp_heartbeat *beat, dp_time now);
/* In a large run a node that is no voter keeps links to a few voters only: then so many beats that
 * say quorum are enough (a voter that says it hears a majority; which of them is told does not
 * matter), and nobody else's are asked for. 0: the usual majority. */
void dp_heartbeat_enough(dp_heartbeat *beat, uint32_t enough);

/* A HEARTBEAT from a linked peer, which may forward another voter's. Sends it on to linked voters
 * known not to hear its author. DP_BADMSG, DP_VERSION, DP_BADSIG; DP_NOTFOUND from a node that is
 * no voter here (a newer set, perhaps); DP_EXISTS for one without news. */
DP_MUST dp_status dp_heartbeat_message(dp_heartbeat *beat, dp_time now, const dp_peer *from,
                                       dp_view bytes, dp_out *out);
/* Sends the own beat when it is due and this node is a voter, and moves the opinion. Chain head and
 * decided rounds ride in it. */
void dp_heartbeat_tick(dp_heartbeat *beat, dp_time now, uint64_t slot, uint64_t round, dp_out *out);
dp_time dp_heartbeat_wake(const dp_heartbeat *beat);

/* The opinion, as the last call with a time left it. False before voters are known. */
bool dp_heartbeat_quorum(const dp_heartbeat *beat);
/* Voters heard within three beats, directly or not; bit per voter, this node's own bit included. */
uint8_t dp_heartbeat_heard(const dp_heartbeat *beat, dp_time now);
bool dp_heartbeat_fresh(const dp_heartbeat *beat, dp_time now, uint32_t voter);
/* Some voter is not heard on its own link: riders of others are wanted. */
bool dp_heartbeat_wants_riders(const dp_heartbeat *beat, dp_time now);
/* Finds peers that can carry a message to the voter with index target: voters that hear it and that
 * this node hears directly; writes at most most of them into relays and returns their number. If
 * there is none, takes the peer that brought the target's newest beat, as between two voters that
 * only have a member in common. Returns 0 if no peer can carry it, or if none is needed: this node
 * hears the target directly and, if this node is a voter, the target hears it. */
uint32_t dp_heartbeat_route(const dp_heartbeat *beat, dp_time now, uint32_t target, dp_peer *relays,
                            uint32_t most);

/* Riders of PING and ACK: u32 tag and u8 bitmap of the voters heard directly; and the fresh beats
 * of all others. */
void dp_heartbeat_write_heard(const dp_heartbeat *beat, dp_time now, dp_writer *writer);
void dp_heartbeat_write_rider(const dp_heartbeat *beat, dp_time now, uint32_t tag, uint8_t heard,
                              dp_writer *writer);
/* Total: bad beats are skipped, a bad shape gives DP_BADMSG. */
DP_MUST dp_status dp_heartbeat_read_rider(dp_heartbeat *beat, dp_time now, const dp_peer *from,
                                          dp_reader *reader, dp_out *out);

DP_MUST dp_status dp_heartbeat_check(const dp_heartbeat *beat, dp_why *why);

#endif
