#include "tests/lib/mutate.h"

#include <string.h>

static size_t below(dp_rng *rng, size_t limit)
{
    return (size_t)dp_rng_below(rng, limit);
}

/* Inserts a piece of the data at another place, if there is room. */
static size_t double_piece(dp_rng *rng, uint8_t *data, size_t size, size_t capacity)
{
    const size_t from = below(rng, size);
    const size_t piece = 1 + below(rng, size - from < 16 ? size - from : 16);
    const size_t to = below(rng, size);
    uint8_t copy[16];

    if (piece > capacity - size) {
        return size;
    }
    memcpy(copy, data + from, piece);
    memmove(data + to + piece, data + to, size - to);
    memcpy(data + to, copy, piece);
    return size + piece;
}

static size_t remove_piece(dp_rng *rng, uint8_t *data, size_t size)
{
    const size_t from = below(rng, size);
    const size_t piece = 1 + below(rng, size - from < 16 ? size - from : 16);

    memmove(data + from, data + from + piece, size - from - piece);
    return size - piece;
}

static size_t mutate_once(dp_rng *rng, uint8_t *data, size_t size, size_t capacity)
{
    static const uint8_t extremes[] = {0x00, 0x01, 0x7f, 0x80, 0xff, 0xc1, 0xdd, 0xdf};
    const size_t at = below(rng, size);

    switch (below(rng, 7)) {
    case 0:
        data[at] = (uint8_t)(data[at] ^ 1U << below(rng, 8));
        return size;
    case 1:
        data[at] = extremes[below(rng, sizeof extremes)];
        return size;
    case 2:
        return at;
    case 3:
        return double_piece(rng, data, size, capacity);
    case 4:
        return remove_piece(rng, data, size);
    case 5:
        memset(data + at, 0xff, size - at < 4 ? size - at : 4);
        return size;
    default:
        data[at] = (uint8_t)dp_rng_next(rng);
        return size;
    }
}

size_t mutate(dp_rng *rng, uint8_t *data, size_t size, size_t capacity)
{
    const size_t times = 1 + below(rng, 4);

    for (size_t i = 0; i < times && size > 0; i++) {
        size = mutate_once(rng, data, size, capacity);
    }
    return size;
}
