/* Private header of the member table, shared by the sources of this folder: members.c (table,
 * links), dial.c, suspicion.c, the statement sources, probe.c and others. No source elsewhere
 * includes it. */
#ifndef DP_GOSSIP_MEMBER_MEMBERS_INTERNAL_H
#define DP_GOSSIP_MEMBER_MEMBERS_INTERNAL_H

#include "base/map.h"
#include "base/mutation.h"
#include "base/rng.h"
#include "gossip/member/members.h"
#include "gossip/member/statement.h"

enum {
    FLOOD_PEERS = 8,        /* peers to which a new statement is forwarded */
    FLOOD_PEERS_LARGE = 4,  /* the same in a large run, where lists repair losses */
    HELPERS = 3,            /* asked to probe for us */
    CONFIRMATIONS = 3,      /* accusers beyond the first that shorten a suspicion to its least */
    ACCUSALS_PER_WINDOW = 5 /* storm breaker */
};
#define STORM_WINDOW_US (10 * DP_SECOND)
#define DP_GUEST_US (30 * DP_SECOND) /* a guest that is silent for so long goes */

typedef struct dp_accuser {
    dp_peer peer;
    bool reset; /* by a broken connection */
} dp_accuser;

typedef struct dp_row {
    dp_member member;    /* first: dp_members_at lends it */
    bool removed;        /* by the chain */
    dp_time guest_until; /* of one removed: its link may stand so long; zero: not at all */
    dp_time reset_at;    /* its word was taken as a reason to dial it at once */
    bool is_new;         /* the chain has admitted it just now */
    bool down;     /* said so itself (DOWN, LEFT): only a new statement or a new link revives it */
    dp_time acked; /* last ACK of its own, which brought riders */
    dp_time asked; /* first PING on its link since then; zero: none */
    /* own statement of the subject: ALIVE, LEFT or DOWN; size 0: none */
    uint16_t statement_bytes;
    dp_statement_kind statement_kind;
    uint8_t statement[DP_STATEMENT_BYTES_MAX];
    /* suspicion */
    uint32_t n_accusers;
    dp_accuser accusers[DP_ACCUSERS_MAX];
    dp_time suspect_at;
    /* this node's last accusation of this incarnation and revision; size 0: none */
    uint16_t accusation_bytes;
    uint8_t accusation[DP_ACCUSATION_BYTES];
    /* dialling */
    bool dialling;
    uint32_t dials_failed;
    bool let_go; /* its last link was closed in order, or it spoke to others since: they watch it */
    bool closing;      /* hung up here, and the driver has not yet said so */
    dp_time linked_at; /* the last time */
    dp_time dial_at;   /* next try, or end of patience while dialling */
    /* its newest SUMMARY, see far.c */
    uint64_t far_incarnation;
    uint64_t far_sequence;
    uint32_t far_via; /* the peer that brought it; 0: none has come */
} dp_row;

typedef struct dp_probe {
    uint32_t target;   /* DP_MEMBER_NONE: free */
    uint32_t sequence; /* of the direct ping; the indirect stage uses sequence + 1 */
    bool indirect;
    bool last;     /* the target has been asked for the third time */
    uint8_t asked; /* helpers */
    uint8_t nacks;
    dp_time sent;
    dp_time deadline;
} dp_probe;

/* A probe for somebody else. */
typedef struct dp_relayed {
    uint32_t requester; /* DP_MEMBER_NONE: free */
    uint32_t target;
    uint32_t their_sequence;
    uint32_t own_sequence;
    dp_time deadline;
} dp_relayed;

struct dp_members {
    dp_run_id run;
    dp_crypto crypto;
    dp_heartbeat *beat;
    bool (*admit)(void *context, const dp_peer *peer, dp_view credential, uint64_t wall_ms,
                  dp_admitted *grants);
    void *admit_context;
    void (*forget)(void *context, uint32_t index);
    dp_rng rng;
    dp_map index;
    uint32_t count;
    uint32_t capacity;
    dp_row *rows;
    /* kept with the rows, so that a change of a few rows does not walk a table of 2,000 */
    dp_rowset voters;   /* rows marked so */
    uint32_t n_alive;   /* alive or suspect, this node included, without guests */
    uint32_t n_guests;  /* linked */
    uint32_t n_known;   /* rows without guests */
    bool greets;        /* a row has become a member's: see dp_members_greet */
    uint64_t slot_most; /* no linked row has told of a later one */
    dp_rowset linked;
    dp_rowset accused; /* rows with an accuser */
    dp_rowset urgent;  /* accused by somebody, or unreachable: probe them next */
    dp_time started_at;
    bool dial_stale;   /* a row has changed: dial_next must be looked for */
    dp_time dial_next; /* the earliest try of a row that wants a link; maybe too early */
    dp_summary summary;
    bool started;
    bool leaving;
    /* probing */
    uint32_t *order; /* shuffled rows */
    uint32_t order_at;
    uint32_t order_count;
    dp_time probe_at;
    dp_time dead_at;   /* the dead that are linked are pinged again */
    dp_time guests_at; /* links of those removed are looked at */
    uint64_t period_us;
    uint32_t lhm;
    uint32_t sequence;
    bool alone;           /* at the last dials, no majority of the voters was heard */
    bool push;            /* mode or trainer has changed: tell all linked rows at the next tick */
    bool quiet;           /* it speaks rarely, as the run is idle (idle.h) */
    dp_time quiet_until;  /* after a gap in our own time: accuse nobody */
    dp_time unsure_until; /* and until those that are gone should have been noticed */
    dp_probe probes[DP_PROBES_MAX];
    uint32_t n_relayed;
    dp_relayed relayed[DP_RELAYED_MAX];
    dp_time accusals[ACCUSALS_PER_WINDOW]; /* times of the last ones, ring */
    uint32_t n_accusals;
    /* anti-entropy */
    dp_time sync_at;
    uint32_t sync_row;
    /* members without a link */
    uint64_t far_sequence; /* of own SUMMARYs */
    dp_time far_told;      /* the last */
    dp_time far_at;        /* the next */
    bool reading_list;     /* a SYNC is being worked off */
    bool refuting;         /* the statement that is being flooded answers accusers */
};

/* probe.c */
/* Age of a linked row's summary at which it is asked for, traffic or not. */
uint64_t dp_members_summary_us(const dp_members *members);

/* member_rows.c */
/* for_member: a member by the chain finds room before those that are not. */
uint32_t dp_members_row_add(dp_members *members, const dp_peer *peer, bool for_member);
void dp_members_set_credential(dp_member *member, dp_view credential, uint32_t caps);
void dp_members_set_addrs(dp_member *member, const dp_addr *addrs, uint32_t n_addrs);
/* Has the chain not admitted this peer? */
bool dp_members_row_is_guest(const dp_members *members, const dp_row *row);
/* Alive or suspect, and no guest. */
bool dp_members_counts(const dp_members *members, const dp_row *row);
/* Guests changed places with members: count anew. */
void dp_members_recount(dp_members *members);
/* So many microseconds later than planned is a probe: more than a busy loop explains. Else 0. */
uint64_t dp_members_gap(const dp_members *members, dp_time now);
/* guest.c: peers that the chain has not admitted. */
/* Peers have become members: they and this node exchange their lists of members. */
void dp_members_greet(dp_members *members, dp_time now, dp_out *out);
/* A guest's link is up; false: there is no place for it, and it is hung up. Another may give
 * way. */
bool dp_members_guest_enter(dp_members *members, uint32_t index, dp_out *out);
/* dial.c */
void dp_members_dial_later(dp_members *members, dp_row *row, dp_time now);
/* Dials the peers to which a link is wanted, closes surplus links. */
void dp_members_dial(dp_members *members, dp_time now, dp_out *out);
/* Hangs up on those that were removed and have had their time. */
void dp_members_part(dp_members *members, dp_time now, dp_out *out);
dp_time dp_members_part_wake(const dp_members *members);
/* Looks for dial_next again. */
void dp_members_dial_find(dp_members *members);

bool dp_members_watches(const dp_members *members, uint32_t index);
/* Up to most random linked rows other than the two given, into picked; alive ones only. */
uint32_t dp_members_pick(dp_members *members, uint32_t not_a, uint32_t not_b, uint32_t *picked,
                         uint32_t most);
void dp_members_state_set(dp_members *members, uint32_t index, dp_member_state state, dp_time now,
                          const char *cause, dp_out *out);

/* suspicion.c */
/* Index of this peer among the accusers of a row; n_accusers: it is none of them. */
uint32_t dp_members_find_accuser(const dp_row *row, const dp_peer *peer);
/* How many accusers make a member of this table dead at once. */
uint32_t dp_members_accusers_needed(const dp_members *members);
/* This peer accuses the member of the row, in its revision. */
bool dp_members_add_accuser(dp_members *members, uint32_t index, const dp_peer *peer, bool reset,
                            dp_time now);
/* The evidence suffices: the member is dead, and this node says so. */
void dp_members_die(dp_members *members, uint32_t index, bool reset, dp_time now, dp_out *out);
void dp_members_accuse(dp_members *members, uint32_t index, dp_statement_cause cause, dp_time now,
                       dp_out *out);
/* Declares a member dead if the evidence suffices. */
void dp_members_conclude(dp_members *members, uint32_t index, dp_time now, dp_out *out);
void dp_members_cleared(dp_members *members, uint32_t index);
dp_time dp_members_suspicion_end(const dp_members *members, uint32_t index);

/* statement_take.c */
/* Somebody believes this of us: refute it if it is about our present revision. */
void dp_members_believed(dp_members *members, dp_member_state state, uint64_t incarnation,
                         uint32_t revision, dp_out *out);
/* One statement and the subject's credential. from: the sender. */
dp_status dp_members_statement(dp_members *members, dp_time now, uint64_t wall_ms, uint32_t from,
                               dp_reader *reader, dp_out *out);
dp_status dp_members_sync(dp_members *members, dp_time now, uint64_t wall_ms, uint32_t from,
                          dp_reader *reader, dp_out *out);

/* statement_send.c */
void dp_members_own_alive(dp_members *members);
/* Floods this node's statement about itself. */
void dp_members_tell_own(dp_members *members, dp_out *out);
/* The credential of the member of a row, as it was shown. */
dp_view dp_members_credential(const dp_row *row);
void dp_members_statement_send(const dp_members *members, const dp_row *row, bool accusation,
                               const dp_peer *to, dp_out *out);
void dp_members_flood(dp_members *members, dp_view statement, dp_view credential, uint32_t subject,
                      uint32_t from, dp_out *out);
void dp_members_sync_send(dp_members *members, uint32_t to, bool answer_wanted, dp_out *out);
/* Asks it whether its table is the same. */
void dp_members_compare_send(dp_members *members, uint32_t to, dp_out *out);
uint64_t dp_members_table_sum(const dp_members *members, uint64_t nonce);

/* far.c */
/* Of a linked row: its other end has answered no ping for a while, and TCP has not given it up: a
 * way that is cut without a word. */
bool dp_members_mute(const dp_row *row, dp_time now);
/* When it will be mute, unless an answer comes; DP_NEVER: no ping is open. */
dp_time dp_members_mute_at(const dp_row *row);
/* Round, mode or trainer of this node: those without a link hear of it soon. */
void dp_members_far_changed(dp_members *members);
void dp_members_far_tick(dp_members *members, dp_time now, dp_out *out);
/* A SUMMARY that from brought. DP_BADMSG, DP_BADSIG; DP_DENIED: of nobody known. */
dp_status dp_members_far_message(dp_members *members, dp_time now, uint32_t from, dp_view bytes);

/* probe_msg.c */
/* To a linked member: this node's belief about it is included. */
void dp_members_send_ping(dp_members *members, uint32_t to, uint32_t sequence, dp_time now,
                          dp_out *out);
void dp_members_send_ack(dp_members *members, uint32_t to, uint32_t sequence, bool nack,
                         const dp_peer *about, uint32_t tag, uint8_t heard, dp_time now,
                         dp_out *out);
/* probe.c */
/* How long an answer of the member with this index is waited for, microseconds. */
uint64_t dp_members_timeout(const dp_members *members, uint32_t index);
void dp_members_probe_tick(dp_members *members, dp_time now, dp_out *out);
void dp_members_probe_reset(dp_members *members, dp_time now);
dp_time dp_members_probe_wake(const dp_members *members);
dp_status dp_members_ping(dp_members *members, dp_time now, uint32_t from, dp_reader *reader,
                          dp_out *out);
dp_status dp_members_ack(dp_members *members, dp_time now, uint32_t from, dp_reader *reader,
                         dp_out *out);
dp_status dp_members_ping_req(dp_members *members, dp_time now, uint32_t from, dp_reader *reader,
                              dp_out *out);

#endif
