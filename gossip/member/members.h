/* The table of members: the nodes in the run and whether they are alive, kept by SWIM (Das, Gupta,
 * Motivala 2002) with Lifeguard's local health (Dadgar, Phillips, Currey 2018), as a state machine
 * without I/O. It knows nothing of rounds.
 *
 * Deviations from the papers: any authenticated message is life, so that peers with traffic are not
 * probed; every statement is signed, and a death needs two accusers from four nodes up; a broken
 * connection is evidence at once; each node that learns of a new statement floods it to a few
 * linked peers, and lists are compared now and then.
 *
 * To a member, a peer that the chain has not admitted is a guest (guest.c): it may ask, is heard on
 * its own link alone and of itself alone, and counts for nothing. A node that is no member itself
 * yet knows nobody better than anybody else, and has no guests.
 *
 * An index stands for one peer until the table is full and its row is needed for another (forget,
 * below), which happens to peers that are neither members by the chain nor linked; index 0 is this
 * node. Times are those of events. Messages that do not parse or verify change nothing and give a
 * status for the caller's counter. */
#ifndef DP_GOSSIP_MEMBER_MEMBERS_H
#define DP_GOSSIP_MEMBER_MEMBERS_H

#include "gossip/event/event.h"
#include "gossip/event/out.h"
#include "gossip/identity/admission.h"
#include "gossip/member/heartbeat.h"
#include "gossip/member/links.h"
#include "gossip/member/rowset.h"
#include "gossip/member/summary.h"

enum {
    DP_MEMBER_NONE = UINT32_MAX >> 1, /* "no such member" where an index is wanted */
    DP_ACCUSERS_MAX = 8,              /* remembered per suspect */
    DP_FULL_MESH_MAX = 64,            /* up to so many members everybody keeps links to everybody */
    DP_VOTER_LINKS = 3,       /* above it: voters that a node which is none keeps links to */
    DP_MESH_LINKS_LOW = 12,   /* above it: others are dialled while fewer are linked */
    DP_MESH_LINKS_HIGH = 32,  /* above it: more are let go */
    DP_PROBES_MAX = 16,       /* own probes under way */
    DP_RELAYED_MAX = 64,      /* probes made for others under way */
    DP_SYNC_ENTRIES_MAX = 48, /* in one SYNC message */
    DP_GUESTS_MAX = 64,       /* linked at a time */
    DP_LHM_MAX = 8            /* Lifeguard's local health multiplier */
};
#define DP_PROBE_US_MIN (250 * DP_MS)
#define DP_PROBE_US_MAX (1000 * DP_MS)
#define DP_DIAL_US_MIN (250 * DP_MS)
#define DP_DIAL_US_MAX (30 * DP_SECOND)
#define DP_DIAL_US_ALONE DP_SECOND /* the most while no majority is heard, but in a large run */
/* A SYNC: u8 kind | u16 count | entries; of kind COMPARE: u8 kind | u16 0 | u64 nonce | u64 sum, to
 * which only a table that differs is the answer, as an ANSWER_WANTED. sum: over all rows with a
 * statement, the first 8 bytes of H("dpnode/table/1", u64 nonce | 32 peer | u64 incarnation | u32
 * revision | u8 kind of the statement | u8 1 if it is taken for dead), modulo 2^64. */
enum { DP_SYNC_LIST = 0, DP_SYNC_ANSWER_WANTED = 1, DP_SYNC_COMPARE = 2 };
#define DP_SYNC_US (20 * DP_SECOND)

/* One row of the table, to read. */
typedef struct dp_member {
    dp_peer peer;
    /* UNKNOWN: only an address to dial, or in the roster and never heard of */
    dp_member_state state;
    uint64_t incarnation; /* of the process: durable, given by its daemon; 0 unknown */
    dp_time life_since;   /* when this node heard of that incarnation first */
    uint32_t revision;    /* counts refutations within an incarnation */
    uint32_t caps;
    uint16_t uses;       /* of the invite that its credential was made with; 0: any number */
    dp_invite_id invite; /* zero: not known, or the root key's own */
    bool linked;
    bool in_roster; /* set by the owner of the chain */
    bool voter;
    uint32_t n_addrs;
    dp_addr addrs[DP_ADDRS_MAX];
    dp_time heard;   /* last authenticated message; zero: never in this life */
    dp_time changed; /* when state last changed */
    dp_rtt rtt;
    bool has_summary;
    dp_summary summary; /* the last one heard: on its link, or signed through others */
    dp_time summary_at;
    char name[DP_NAME_MAX + 1]; /* told through others; empty: not known here */
    uint16_t credential_bytes;  /* 0: not known */
    uint8_t credential[DP_CREDENTIAL_MAX];
} dp_member;

typedef struct dp_members dp_members;

typedef struct dp_members_config {
    dp_run_id run;
    dp_peer self;
    uint64_t incarnation;
    dp_view credential; /* own; copied */
    uint32_t caps;      /* own */
    uint32_t n_addrs;
    dp_addr addrs[DP_ADDRS_MAX];
    char name[DP_NAME_MAX + 1]; /* own, for people */
    uint32_t members_max;       /* rows, this node included; 2..DP_MEMBERS_MAX */
    uint64_t seed;
    dp_crypto crypto;
    /* Is this credential valid for this peer? Then gives its capabilities. wall_ms 0: do not
     * compare with the time. */
    bool (*admit)(void *context, const dp_peer *peer, dp_view credential, uint64_t wall_ms,
                  dp_admitted *grants);
    void *admit_context;
    /* This row is about to be another peer's: the callee forgets all data under its index. May be
     * NULL; of admit_context. */
    void (*forget)(void *context, uint32_t index);
    dp_heartbeat *beat; /* heartbeats ride on PING and ACK; may be NULL. Must outlive the table */
} dp_members_config;

DP_MUST dp_status dp_members_open(dp_members **members, const dp_members_config *config);
void dp_members_close(dp_members *members);

uint32_t dp_members_count(const dp_members *members);
const dp_member *dp_members_at(const dp_members *members, uint32_t index); /* index < count */
/* DP_MEMBER_NONE if the table lacks it. */
uint32_t dp_members_find(const dp_members *members, const dp_peer *peer);
/* To this node, a peer that the chain has not admitted. */
bool dp_members_is_guest(const dp_members *members, uint32_t index);
/* More members than everybody keeps links to. */
bool dp_members_large(const dp_members *members);
/* Alive or suspect rows, this node included, without guests. */
uint32_t dp_members_alive(const dp_members *members);
/* Had this node's own time a gap (a stopped process, a sleeping laptop) so recently that a dead
 * member may still look alive? */
bool dp_members_unsure(const dp_members *members, dp_time now);
/* Wait that a reply from linked peers stays under: the largest p95 of linked rows. 0: unknown. */
uint64_t dp_members_rtt_p95(const dp_members *members);
/* The same for the n voters that answer first; of all linked ones when there are fewer. 0:
 * unknown. */
uint64_t dp_members_rtt_voters(const dp_members *members, uint32_t n);
/* Indexes of the linked rows, rising; lent until the next change. */
const dp_rowset *dp_members_linked(const dp_members *members);
/* No row has told of a later slot than this. */
uint64_t dp_members_slot_most(const dp_members *members);

/* A peer met in an earlier life or listed in the chain. Gives its index, or DP_MEMBER_NONE when the
 * table is full. Known rows only gain missing fields. credential may be empty: then addrs are
 * dialled and nothing else is believed. */
uint32_t dp_members_add(dp_members *members, const dp_peer *peer, dp_view credential, uint32_t caps,
                        const dp_addr *addrs, uint32_t n_addrs);
/* The same for a member by the chain: a peer that is no member gives up its row if the table is
 * full. */
uint32_t dp_members_enter(dp_members *members, const dp_peer *peer, uint32_t caps);
/* Sets a row's state by the chain. Voters are always kept linked. When a guest becomes a member,
 * the statement that it has made about itself takes effect. */
void dp_members_mark(dp_members *members, uint32_t index, bool in_roster, bool voter);
/* A row that the chain removed (banned, or left): no dialling, no probing. Its link is hung up,
 * after guest_us if it stands so long; until then such a row may also link again. */
void dp_members_remove(dp_members *members, uint32_t index, dp_time now, uint64_t guest_us,
                       dp_out *out);
/* A guest is silent, or its link is gone or is to go: nobody is told, and its row is another's when
 * it is needed. */
void dp_members_guest_gone(dp_members *members, uint32_t index, dp_time now, dp_out *out);
/* Every living member is linked, none is suspected and no guest is here: for idle.h. */
bool dp_members_calm(const dp_members *members);
/* The heartbeats' idle state may have changed. */
void dp_members_idle(dp_members *members, dp_time now);
/* Sets the summary that this node tells of itself from now on. */
void dp_members_tell(dp_members *members, const dp_summary *summary);
void dp_members_start(dp_members *members, dp_time now, uint64_t wall_ms, dp_out *out);
/* credential was checked by the channel. Reports of one peer must alternate up, down; when two
 * connections cross, the driver keeps the one dialled by the smaller id (dp_members_keeps_dial) and
 * reports nothing of the other. */
uint32_t dp_members_link_up(dp_members *members, dp_time now, uint64_t wall_ms, const dp_peer *peer,
                            const dp_addr *addr, dp_view credential, bool outgoing, dp_out *out);
void dp_members_link_down(dp_members *members, dp_time now, uint64_t wall_ms, const dp_peer *peer,
                          dp_link_cause cause, dp_out *out);
/* True if of two crossing connections the one dialled by a stays. */
bool dp_members_keeps_dial(const dp_peer *a, const dp_peer *b);
/* Any authenticated message came from this row. Call it before handling the message. */
void dp_members_heard(dp_members *members, uint32_t index, dp_time now, dp_out *out);
/* PING, ACK, PING_REQ, STATEMENT, SYNC, SUMMARY. DP_BADMSG, DP_VERSION, DP_BADSIG, DP_DENIED (not
 * for us to believe), DP_TOOBIG (table full); then nothing has changed. */
DP_MUST dp_status dp_members_message(dp_members *members, dp_time now, uint64_t wall_ms,
                                     uint32_t from, dp_view bytes, dp_out *out);
void dp_members_tick(dp_members *members, dp_time now, uint64_t wall_ms, dp_out *out);
/* Not const: the result is cached. */
dp_time dp_members_wake(dp_members *members);

/* Say goodbye to everybody: for good (LEFT; the chain will remove this node), or for a while (DEAD
 * at once, no accusers needed, until a later incarnation). */
void dp_members_leave(dp_members *members, dp_time now, uint64_t wall_ms, bool for_good,
                      dp_out *out);

/* Invariants, for tests and paranoid builds. */
DP_MUST dp_status dp_members_check(const dp_members *members, dp_why *why);

#endif
