#include "compute/bucket.h"

#include "base/assert.h"

size_t dp_buckets_count(size_t elements, size_t size)
{
    return elements / size + (elements % size != 0);
}

dp_buckets dp_buckets_start(size_t elements, size_t size, dp_bucket_take take, void *context)
{
    dp_assert(size > 0);
    return (dp_buckets){.elements = elements, .size = size, .take = take, .context = context};
}

void dp_buckets_final(void *buckets, size_t first)
{
    dp_buckets *const b = buckets;
    const size_t count = dp_buckets_count(b->elements, b->size);
    while (b->next < count) {
        const size_t from = (count - 1 - b->next) * b->size;
        if (from < first) {
            return;
        }
        const size_t to = b->elements - from < b->size ? b->elements : from + b->size;
        b->take(b->context, b->next, from, to);
        b->next++;
    }
}
