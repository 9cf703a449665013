/* Sums of a site in the protocol: the word of a collector, a member that has added up a part of all
 * members near to it for an owner far away. Bytes and rules of form; part_collect.c makes such
 * sums, part_take.c uses them.
 *
 * The sum of contributions i in order of peer is encode(sum of q_i decode(object_i)), q_i =
 * floor(w_i clip_i 2^15 / W_s), W_s the sum of their w: the sum that an owner would make of these
 * contributions alone. The owner adds it up as one contribution of weight W_s that is not clipped,
 * in the place of the first of its sources. So bits, READYs and collectors' words determine the
 * bytes of a result.
 *
 *   SUBTOTAL   what PART is, without sums; the owner is the collector, the sources are what is in
 *              it, one of them its own. Domain "dpnode/subtotal/1". To the owner of the part alone.
 *   COLLECT    head | u64 t | 32 base | u8 part | u8 n, 0 or 2 to 32 | n times 32 peer, rising
 * To the owner of the part alone: the sender is about to add up what these publish of it. With n =
 * 0: it is not. Unsigned, a hint. */
#ifndef DP_GOSSIP_RECORD_PART_SUM_H
#define DP_GOSSIP_RECORD_PART_SUM_H

#include "gossip/record/part.h"

/* That the word of one part may have, so that all of a record fit in it. */
uint32_t dp_site_sums_most(uint32_t n_parts);
/* No more than that many in a statement. Each has two contributions at least, its collector's among
 * them; no contribution is in two; they are in order of their first contributions. */
bool dp_site_sums_fit(const dp_site_sum *sums, uint32_t n, uint32_t all);

/* The word of the collector of word->sums[k]. */
dp_part_word dp_site_sum_word(const dp_part_word *word, uint32_t k);
bool dp_site_sum_sign(dp_part_word *word, const dp_crypto *crypto, const dp_hash *run,
                      const dp_hash *fork);
bool dp_site_sum_verify(const dp_part_word *word, const dp_crypto *crypto, const dp_hash *run,
                        const dp_hash *fork);
void dp_site_sum_msg_write(dp_writer *writer, const dp_part_word *word);
/* Total and strict; the signature is not looked at. The collector is one of two sources at
 * least. */
DP_MUST dp_status dp_site_sum_msg_read(dp_view message, dp_part_word *word);

typedef struct dp_collect {
    uint64_t round;
    dp_hash base;
    uint32_t part;
    uint32_t n;
    dp_peer peers[DP_PART_SOURCES_MAX];
} dp_collect;

void dp_collect_write(dp_writer *writer, const dp_collect *collect);
/* Total and strict. */
DP_MUST dp_status dp_collect_read(dp_view message, dp_collect *collect);

#endif
