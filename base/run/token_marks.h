/* Marks in the windows of a batch whose documents are kept apart: in its inputs where a document
 * begins, in its targets which tokens have no loss. Both lie outside of every vocabulary, so that
 * code which does not know them refuses such a batch and does not misread it. */
#ifndef DP_BASE_RUN_TOKEN_MARKS_H
#define DP_BASE_RUN_TOKEN_MARKS_H

#include <stdint.h>

/* Set in an input: a document begins with this token. Attention does not reach over its beginning,
 * and positions count from 0 there. */
#define DP_TOKEN_BEGINS (UINT32_C(1) << 31)
/* A target without a loss. */
#define DP_TOKEN_NO_LOSS UINT32_MAX

/* An input without its mark. */
static inline uint32_t dp_token_of(uint32_t input)
{
    return input & ~DP_TOKEN_BEGINS;
}

#endif
