/* The bytes of a word that owners (part.c) and collectors (part_sum.c) write alike. Only these two
 * include it. */
#ifndef DP_GOSSIP_RECORD_PART_INSIDE_H
#define DP_GOSSIP_RECORD_PART_INSIDE_H

#include "gossip/record/part.h"

enum {
    DP_SITE_SUM_BYTES = 1 + 4 + 32 + 8 + 64,
    DP_PART_WORD_MAX = 32 + 8 + 32 + 1 + 32 + 8 + 1 + DP_PART_SOURCES_MAX * 64 + 1 +
                       DP_SITE_SUMS_MAX * DP_SITE_SUM_BYTES, /* without the signature */
    DP_PART_SIGNED_MAX = 64 + DP_PART_WORD_MAX
};

/* The signed bytes, in room. */
dp_view dp_part_signed(const dp_part_word *word, const dp_hash *run, const dp_hash *fork,
                       uint8_t room[DP_PART_SIGNED_MAX]);
/* As a message of this type. */
void dp_part_word_write(dp_writer *writer, uint8_t type, const dp_part_word *word);
DP_MUST dp_status dp_part_word_read(dp_view message, uint8_t type, dp_part_word *word);

#endif
