/* The inside of the pair exchange, shared by mix.c (states, the driver's events), mix_tick.c
 * (time), mix_talk.c (messages), mix_carry.c (how they travel) and mix_journal.c (rows, and F
 * rebuilt from them). No other file includes it. */
#ifndef DP_GOSSIP_PAIRS_MIX_INTERNAL_H
#define DP_GOSSIP_PAIRS_MIX_INTERNAL_H

#include "base/mutation.h"
#include "base/rng.h"
#include "gossip/pairs/mix_msg.h"
#include "gossip/record/record.h"

enum {
    DP_MIX_ROWS_MAX = DP_MIX_OUTCOMES_MAX + 2, /* outcomes, the exchange under way, the newest F */
    DP_MIX_WRITES_MAX = 2 * DP_MIX_ROWS_MAX    /* row bytes that stay valid until the next step */
};

/* Work that was in F at the last exchange with a member, in tokens. */
typedef struct dp_mix_share {
    uint64_t own; /* 0: no exchange with it since own work was last counted */
    uint64_t other;
} dp_mix_share;

struct dp_mix {
    dp_mix_config config;
    dp_mix_now now;
    dp_rng rng;
    uint64_t number;    /* of the last own offer */
    uint64_t ticket;    /* of the last acceptance */
    uint64_t order;     /* of the last row */
    uint64_t published; /* at the start: rows up to this order are not F any more */
    bool started;
    bool trainer;         /* holds F as the newest row, or no row, says */
    dp_time *seen;        /* per member: last exchange with it */
    bool *refused;        /* per member: its terms did not pass; until the base is another */
    dp_mix_share *shares; /* per member */
    bool shares_out;      /* a publication holds all that they speak of */
    uint32_t via; /* the member that carried the message under way, or NONE: its link brought it */

    /* the exchange under way */
    dp_mix_state state;
    dp_mix_row x;
    bool fetched;
    bool other_prepared;
    bool abort_wanted;        /* PREPARING: once the row is there */
    bool rebuilding;          /* MIXING again an exchange that was committed in an earlier life */
    unsigned __int128 energy; /* of the own blob of x */
    uint32_t kept; /* Q16: share of F that APPLY and RESTORE have left since its freeze for x */
    uint32_t op;   /* of the row being written; 0: none, write again at write_at */
    dp_time write_at;
    dp_time since;
    dp_time progress;
    dp_time retry_at;
    uint32_t retries;
    dp_time next_at; /* of an own offer */

    /* the newest row with F */
    bool has_f;
    dp_mix_row f;

    uint32_t n_outcomes;
    dp_mix_row outcomes[DP_MIX_OUTCOMES_MAX]; /* committed as b, not closed */
    dp_time nudge_at;
    uint32_t nudge_next;

    uint32_t n_restored;
    dp_mix_row restored[DP_MIX_ROWS_MAX];

    uint64_t done;
    uint64_t aborted;
    uint32_t n_writes;
    uint8_t writes[DP_MIX_WRITES_MAX][DP_MIX_ROW_BYTES];
};

/* mix_journal.c */
uint32_t dp_mix_row_store(dp_mix *mix, const dp_mix_row *row, dp_out *out);
void dp_mix_row_delete(const dp_mix_id *id, dp_out *out);
/* The row of x is durable and holds F: older rows need not hold theirs. */
void dp_mix_adopt_f(dp_mix *mix, dp_out *out);
/* The newest row no longer serves for F; it goes, or stays as an outcome. */
void dp_mix_release_f(dp_mix *mix, dp_out *out);
/* Index among the outcomes, or n_outcomes. */
uint32_t dp_mix_outcome_find(const dp_mix *mix, const dp_mix_id *id);
void dp_mix_outcome_add(dp_mix *mix, const dp_mix_row *row);
void dp_mix_outcome_close(dp_mix *mix, uint32_t index, dp_out *out);
dp_mix_pair dp_mix_pair_of(const dp_mix_row *row);
void dp_mix_do_mix(const dp_mix *mix, dp_out *out);

/* mix.c */
void dp_mix_enter(dp_mix *mix, dp_mix_state state, dp_time now);
/* The exchange under way, to the journal. */
void dp_mix_note(const dp_mix *mix, const char *cause, dp_out *out);
/* The terms of a member (index) do not pass, for this cause; NULL: they do. A refused one is not
 * asked again, nor heard, while the base is the same. */
const char *dp_mix_refuse(dp_mix *mix, uint32_t from, const dp_mix_terms *terms, dp_out *out);
/* May this node still give up the exchange by itself? */
bool dp_mix_may_abort(const dp_mix *mix);
/* Leaves the exchange at once, in any state, and sends nothing. */
void dp_mix_give_up(dp_mix *mix, dp_time now, const char *cause, dp_out *out);
void dp_mix_abort(dp_mix *mix, dp_time now, bool tell, dp_out *out);
void dp_mix_want_abort(dp_mix *mix, dp_time now, bool tell, dp_out *out);
void dp_mix_send_status(dp_mix *mix, const dp_peer *to, const dp_mix_id *id, uint64_t ticket,
                        dp_mix_status status, dp_out *out);
void dp_mix_send_offer(const dp_mix *mix, dp_out *out);
void dp_mix_send_ack(const dp_mix *mix, dp_out *out);
void dp_mix_send_pair(dp_mix *mix, const dp_mix_row *row, dp_msg_type type, dp_out *out);
void dp_mix_write_row(dp_mix *mix, dp_mix_mark mark, dp_out *out);
void dp_mix_start_fetch(dp_mix *mix, dp_time now, dp_out *out);
void dp_mix_ask(dp_mix *mix, dp_time now, dp_out *out);
void dp_mix_freeze(dp_mix *mix, dp_time now, dp_out *out);
bool dp_mix_weighs(const dp_mix_row *row);

/* mix_tick.c */
/* Free, and in a mode that exchanges. */
bool dp_mix_may_begin(const dp_mix *mix);
bool dp_mix_is_partner(const dp_mix *mix, uint32_t index);

/* mix_carry.c */
/* To the other side of an exchange, linked or not. */
void dp_mix_tell(dp_mix *mix, const dp_mix_msg *msg, const dp_peer *to, dp_out *out);

#endif
