/* Gossip averaging in pairs, used while no majority of voters is heard, and between rounds where
 * the run says so: the exchange of frozen displacement between two nodes as a state machine without
 * I/O. It moves no tensor and knows nothing of rounds; work buffers and rules are those of SAFETY
 * C1 to C5.
 *
 * The initiator a and the responder b exchange D = DEC(ENC(F)) and each moves its own F and x by D'
 * - D_own, where D' = (w_a D_a + w_b D_b) / (w_a + w_b) and w = floor(tokens^2 / steps) of what F
 * holds. Weights stay home, so w_a F_a + w_b F_b is the same before and after. Training goes on
 * into O meanwhile.
 *
 * A partner may lie about its work. Its terms are judged by the chain when they come, before
 * anything is fetched; and the moves of both are damped alike (dp_weight_pair), so that the sum
 * stays the same: neither side gives up more than four fifths of its own, whatever the other
 * weighs, and a vector of any length moves it by no more than its own or that of four rounds.
 *
 *   a: FREEZE, OFFER ->                b: FREEZE, ACK ->          both: fetch and check the other's
 *     blob
 *   a, b: journal PREPARED             b: ACK again, prepared
 *   a: journal ASKED, COMMIT ->        b: journal COMMITTED, MIX, DONE ->      a: journal DONE,
 *     MIX, STATUS closed ->
 *
 * Before ASKED a may abort, before COMMITTED b may. In ASKED a repeats COMMIT until b answers DONE
 * or STATUS aborted: b's journal decides. b answers COMMIT by its row, and with aborted when it has
 * none, since then it can never commit that exchange: OFFER, ACK, COMMIT and DONE name both roots
 * and incarnations, and a row is for exactly these. b forgets a COMMITTED outcome only when a says
 * closed, or offers anew (a has one exchange at a time), or is fenced.
 *
 * The messages that end an exchange (COMMIT, DONE, STATUS) also travel without a link between the
 * two: signed by their author, and carried by any member that is linked to both. Which two nodes
 * can have a link may change at any time, and a's F waits for b's word.
 *
 * Rows outlive the exchange: F is rebuilt from the newest row with F after a crash
 * (RESTORE, and MIX where it was committed), until dp_mix_folded. */
#ifndef DP_GOSSIP_PAIRS_MIX_H
#define DP_GOSSIP_PAIRS_MIX_H

#include "gossip/member/members.h"
#include "gossip/transfer/picker.h"

enum {
    DP_EXCHANGE_BYTES = 16,
    DP_MIX_OUTCOMES_MAX =
        64, /* commits whose initiator has not said closed; then offers are refused */
    DP_MIX_ROW_MAX = 512
};
#define DP_MIX_RETRY_US (500 * DP_MS)   /* OFFER, ACK, COMMIT are repeated */
#define DP_MIX_WAIT_US (20 * DP_SECOND) /* without progress before ASKED or COMMITTED: abort */

typedef enum dp_mix_state {
    DP_MIX_IDLE = 0,
    DP_MIX_FREEZING,  /* DP_DO_FREEZE under way */
    DP_MIX_OFFERED,   /* a waits for ACK */
    DP_MIX_FETCHING,  /* the other's blob is being fetched, then checked */
    DP_MIX_PREPARING, /* row PREPARED is being written */
    DP_MIX_PREPARED,
    DP_MIX_ASKING,     /* a: row ASKED is being written */
    DP_MIX_ASKED,      /* a: in doubt; b's journal decides */
    DP_MIX_COMMITTING, /* row COMMITTED (b) or DONE (a) is being written */
    DP_MIX_MIXING      /* DP_DO_MIX under way */
} dp_mix_state;

/* State of an exchange in a journal row. */
typedef enum dp_mix_mark {
    DP_MIX_MARK_PREPARED = 1,
    DP_MIX_MARK_ASKED,     /* a only */
    DP_MIX_MARK_COMMITTED, /* b only */
    DP_MIX_MARK_ABORTED,   /* F as frozen stands */
    DP_MIX_MARK_DONE       /* a only */
} dp_mix_mark;

typedef struct dp_mix dp_mix;
struct dp_mix_terms; /* mix_msg.h */

typedef struct dp_mix_config {
    dp_run_id run;
    dp_peer self;
    uint64_t incarnation;
    uint64_t pause_us; /* between two exchanges that this node starts */
    bool pairs; /* the run exchanges between rounds too: also with nodes that hear a majority */
    uint64_t seed;
    dp_crypto crypto; /* the identity key, for words that others carry */
    /* May a member hold so much work, by the chain (SAFETY C3)? Returns why not, or NULL. NULL: any
     * may. */
    const char *(*judge)(void *context, const dp_peer *peer, const struct dp_mix_terms *terms);
    void *judge_context;
    const dp_members *members; /* both must outlive this */
    dp_picker *picker;
    uint32_t members_max;
} dp_mix_config;

/* State of the node that exchanges depend on; set with dp_mix_set whenever it changes. */
typedef struct dp_mix_now {
    bool gossip;    /* this node trains and may exchange */
    dp_hash base;   /* of the state that F moves away from */
    uint64_t round; /* applied; for notes and RESTORE */
    /* of the record that made base; 0: none, and nothing is clipped */
    unsigned __int128 clip_median;
} dp_mix_now;

/* The row of this member, which is not linked, belongs to another peer from now on. */
void dp_mix_forget(dp_mix *mix, uint32_t member);
DP_MUST dp_status dp_mix_open(dp_mix **mix, const dp_mix_config *config);
void dp_mix_close(dp_mix *mix);

/* A row of the journal, before dp_mix_start; any order. DP_BADMSG, DP_VERSION, DP_TOOBIG. */
DP_MUST dp_status dp_mix_restore(dp_mix *mix, const uint8_t exchange[DP_EXCHANGE_BYTES],
                                 dp_view row);
/* Before dp_mix_start: F of rows up to this order went into a publication whose row is durable.
 * Such a row may still be there, since a full disk may refuse to delete it. */
void dp_mix_published(dp_mix *mix, uint64_t order);
/* Of the newest row, or attempt at one; not locked: all of F that there is. */
uint64_t dp_mix_order(const dp_mix *mix);
/* After the last row: settles each exchange that this node can settle alone (PREPARED rows are
 * aborted). */
void dp_mix_start(dp_mix *mix, dp_time now, dp_out *out);

/* gossip false, or another base: no new exchange begins, and one that may still be aborted is. */
void dp_mix_set(dp_mix *mix, dp_time now, const dp_mix_now *state, dp_out *out);

/* OFFER, ACK, COMMIT, DONE, STATUS of a member (index). */
DP_MUST dp_status dp_mix_message(dp_mix *mix, dp_time now, uint32_t from, dp_view bytes,
                                 dp_out *out);
/* MIX_SIGNED, brought by a member (index) that is not its author. DP_BADMSG, DP_VERSION, DP_DENIED,
 * DP_BADSIG. */
DP_MUST dp_status dp_mix_carried(dp_mix *mix, dp_time now, uint32_t via, dp_view bytes,
                                 dp_out *out);
/* Events of the driver; those of other exchanges, operations or objects are ignored. True: it was
 * ours. */
bool dp_mix_frozen(dp_mix *mix, dp_time now, const dp_event *event, dp_out *out);
bool dp_mix_object(dp_mix *mix, dp_time now, const dp_hash *root, dp_out *out);
/* energy: of the blob, where it is ok. */
bool dp_mix_checked(dp_mix *mix, dp_time now, const dp_hash *root, bool ok,
                    unsigned __int128 energy, dp_out *out);
bool dp_mix_stored(dp_mix *mix, dp_time now, uint32_t op, dp_status status, dp_out *out);
bool dp_mix_mixed(dp_mix *mix, dp_time now, const dp_event *event, dp_out *out);
void dp_mix_tick(dp_mix *mix, dp_time now, dp_out *out);
dp_time dp_mix_wake(const dp_mix *mix);

/* The trainer died, or will be loaded anew, and holds F no more: an exchange that is not yet in the
 * journal is aborted. */
void dp_mix_trainer_down(dp_mix *mix, dp_time now, dp_out *out);
/* The trainer holds theta of the base that F belongs to: RESTORE frozen and, where it was
 * committed, MIX. Nothing when there is no F. The core decides lambda (Q16), which counts the
 * rounds missed since. */
void dp_mix_trainer_restore(dp_mix *mix, dp_time now, uint32_t lambda, dp_out *out);

/* The same where F needs no bringing back: it is inside a publication. */
void dp_mix_trainer_up(dp_mix *mix);
/* An APPLY that is on its way to the trainer scales F by lambda (Q16): so does it the change of an
 * exchange for which F had been frozen before, lambda * (F + change), whenever the other's word for
 * it arrives. RESTORE does the same. */
void dp_mix_faded(dp_mix *mix, uint32_t lambda);

/* A record counts work of this peer, of told tokens, and not that of this node, of own tokens: the
 * share of the latter, Q16, that both had after their last exchange, each the mean of both. 0 if
 * there was none, or if what it told is less than it had then: it was published before. Each
 * exchange counts once. */
uint32_t dp_mix_take_share(dp_mix *mix, const dp_peer *peer, uint64_t told, uint64_t own);
/* A record counts this node's publication: exchanges before it count no more. */
void dp_mix_counted(dp_mix *mix);

/* An exchange is under way (any state but IDLE). */
bool dp_mix_busy(const dp_mix *mix);
/* F may not be published, folded or zeroed now: ask dp_mix_finish first and wait. */
bool dp_mix_locked(const dp_mix *mix);
/* The quorum is back: abort the exchange if it may be aborted. True when F is free now; else it
 * will be when dp_mix_locked turns false. */
bool dp_mix_finish(dp_mix *mix, dp_time now, dp_out *out);
/* F went into a publication whose row is durable (or was discarded): rows of F are no longer
 * needed. F must not be locked. */
void dp_mix_folded(dp_mix *mix, dp_time now, dp_out *out);
/* A decided record fences all exchanges of peer up to this incarnation: in doubt with it means
 * aborted. */
void dp_mix_fence(dp_mix *mix, dp_time now, const dp_peer *peer, uint64_t incarnation, dp_out *out);

/* A decided record fences this node itself: work that it froze in lives up to this incarnation is
 * void on both sides; F and its statements in those exchanges are dropped. True: F, or an exchange,
 * was of such a life; the trainer must be emptied too. */
bool dp_mix_fence_self(dp_mix *mix, dp_time now, uint64_t incarnation, dp_out *out);

/* An object that was here cannot be read any more. True: F, or the exchange under way, cannot be
 * brought back without it and is let go of, with its rows. */
bool dp_mix_lost(dp_mix *mix, dp_time now, const dp_hash *root, dp_out *out);

/* Contents of F by the newest row: false when there is none. */
typedef struct dp_mix_frozen_view {
    dp_hash f_root;
    uint64_t f_bytes;
    dp_hash base;
    uint32_t steps;
    uint64_t tokens;
    dp_reach reach;
    bool mixed; /* a MIX stands on top of it */
} dp_mix_frozen_view;
bool dp_mix_frozen_row(const dp_mix *mix, dp_mix_frozen_view *view);

typedef struct dp_mix_look {
    dp_mix_state state;
    bool initiator;
    bool in_doubt; /* ASKED: only the other side knows */
    dp_time since; /* of the exchange */
    dp_peer peer;  /* its other side; zero when idle */
    uint64_t peer_incarnation;
    uint8_t life[DP_SIGNATURE_BYTES]; /* the peer's word for it, where this node initiates */
    uint8_t exchange[DP_EXCHANGE_BYTES];
    uint64_t done; /* exchanges completed by this process */
    uint64_t aborted;
    uint32_t outcomes; /* commits not yet closed by their initiator */
} dp_mix_look;
dp_mix_look dp_mix_view(const dp_mix *mix);

/* floor(tokens^2 / steps), cut to 2^62; 0 when steps is 0. */
uint64_t dp_mix_weight(uint64_t tokens, uint32_t steps);

DP_MUST dp_status dp_mix_check(const dp_mix *mix, dp_why *why);

#endif
