#include "compute/codec/bucket.h"

#include "base/assert.h"

void dp_buckets_final(void *buckets, size_t first)
{
    dp_buckets *const b = buckets;
    while (b->left > 0 && b->starts[b->left - 1] >= first) {
        b->left--;
        const size_t from = b->starts[b->left];
        const size_t to = b->starts[b->left + 1];
        dp_assert(from <= to);
        b->take(b->context, b->left, from, to);
    }
}
