/* The dense exchange: everybody's vector averaged by owners of its parts. Who owns which chunk, what is sent, and what has
 * come, as arithmetic without I/O; daemon/exchange.h sends it and compute/dense.h adds it up.
 *
 * The vector is cut in chunks of as many blocks of 1,024 elements as fill one record: 63 as int8,
 * 15 as fp32. Member i owns consecutive chunks. Each sends its part of a chunk to the owner
 * (reduce-scatter); the owner adds parts as they come, a few at a time, in integers, so that their
 * order does not matter (SAFETY F1), and sends the mean to all at once (all-gather): one delay of
 * the path, no lock-step. A chunk that is closed before all parts came says whose are in it.
 *
 * Message, on the bulk lane:  head | u64 exchange | u32 chunk | u8 kind (0 part, 1 mean, 2 open) | u8 codec
 *   | u16 weight (part: 1 to 1,023) | u32 present (mean: bit i, member i's part is in it) | bytes of the codec to the end */
#ifndef DP_GOSSIP_DENSE_H
#define DP_GOSSIP_DENSE_H

#include "gossip/msg.h"

enum {
    DP_DENSE_MEMBERS_MAX = 32,
    DP_DENSE_CHUNK_ELEMENTS_MAX = 63 * 1024,
    DP_DENSE_CHUNKS_MAX = 1 << 20,
    DP_DENSE_WEIGHT_MAX = 1023,
    DP_DENSE_HEAD_BYTES = DP_MSG_HEAD_BYTES + 8 + 4 + 1 + 1 + 2 + 4
};

typedef struct dp_dense_layout {
    uint64_t n_elements;
    uint32_t n_members;
    uint32_t n_chunks;
    uint32_t chunk_elements; /* all but the last have so many */
    uint32_t
        first[DP_DENSE_MEMBERS_MAX + 1]; /* member i owns first[i] up to, but not, first[i + 1] */
} dp_dense_layout;

/* chunk_elements: 1 to DP_DENSE_CHUNK_ELEMENTS_MAX. rates: of each member's uplink, in one unit, or NULL for equal ones. Member i sends n + (N - 2) s_i elements when it owns s_i
 * of n, so all end together at s_i = n ((2N - 2) r_i / sum r - 1) / (N - 2); who would own less than nothing owns nothing.
 * DP_BADARG: fewer than 2 or more than DP_DENSE_MEMBERS_MAX members; DP_TOOBIG: too many chunks. */
DP_MUST dp_status dp_dense_layout_init(dp_dense_layout *layout, uint64_t n_elements,
                                       uint32_t n_members, const uint64_t *rates,
                                       uint32_t chunk_elements);
uint32_t dp_dense_owner(const dp_dense_layout *layout, uint32_t chunk);
/* Elements in a chunk. */
uint32_t dp_dense_chunk_elements(const dp_dense_layout *layout, uint32_t chunk);

typedef enum dp_dense_kind {
    DP_DENSE_PART = 0,
    DP_DENSE_MEAN = 1,
    DP_DENSE_OPEN = 2, /* this member has begun the exchange; the rest is zero */
} dp_dense_kind;

typedef struct dp_dense_message {
    uint64_t exchange;
    uint32_t chunk;
    dp_dense_kind kind;
    uint8_t codec;
    uint16_t weight;
    uint32_t present;
    dp_view bytes; /* reading: lent from the message */
} dp_dense_message;

/* Everything before the bytes. */
void dp_dense_write_head(dp_writer *writer, const dp_dense_message *message);
DP_MUST dp_status dp_dense_read(dp_view bytes, dp_dense_message *message);

/* What has come of one exchange. The caller's memory: one word per chunk. */
typedef struct dp_dense_tally {
    dp_dense_layout layout;
    uint32_t self;
    uint32_t *
        present; /* [n_chunks]: own: parts that are in; others': not 0 once the mean is here, as it says */
    uint32_t n_own_open; /* own chunks without a mean */
    uint32_t n_missing;  /* others' chunks without a mean */
} dp_dense_tally;

/* present: n_chunks words, zeroed here. */
void dp_dense_tally_init(dp_dense_tally *tally, const dp_dense_layout *layout, uint32_t self,
                         uint32_t *present);

typedef enum dp_dense_verdict {
    DP_DENSE_REFUSED, /* out of place: not its owner, not one of ours, twice; the sender is wrong */
    DP_DENSE_LATE,    /* a part of a chunk that is closed */
    DP_DENSE_ADD,     /* a part to add */
    DP_DENSE_COMPLETE, /* the same, and the last one */
    DP_DENSE_TAKE      /* a mean to take */
} dp_dense_verdict;

/* A message from this member: what to do with it? Changes nothing but after DP_DENSE_ADD, COMPLETE and TAKE, where it counts;
 * look at the bytes first. The own part counts from the start. */
dp_dense_verdict dp_dense_judge(const dp_dense_tally *tally, uint32_t from,
                                const dp_dense_message *message);
void dp_dense_count(dp_dense_tally *tally, uint32_t from, const dp_dense_message *message);
/* An own chunk has its mean; what comes is late. */
void dp_dense_close_chunk(dp_dense_tally *tally, uint32_t chunk);
bool dp_dense_is_closed(const dp_dense_tally *tally, uint32_t chunk);
uint32_t dp_dense_present(const dp_dense_tally *tally, uint32_t chunk);
bool dp_dense_is_done(const dp_dense_tally *tally);

#endif
