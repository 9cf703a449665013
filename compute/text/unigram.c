#include "compute/text/unigram.h"

#include "base/alloc.h"
#include "base/assert.h"

void dp_unigram_close(dp_unigram *unigram)
{
    dp_trie_close(&unigram->trie);
    dp_free(unigram->scores);
    *unigram = (dp_unigram){.count = 0};
}

void dp_unigram_room_close(dp_unigram_room *room)
{
    dp_free(room->memory);
    *room = (dp_unigram_room){.size = 0};
}

/* The best way that ends before a byte. */
typedef struct best {
    double score;
    uint32_t begin; /* of its last token; NOWHERE: there is none yet */
    uint32_t id;
} best;

static const uint32_t NOWHERE = UINT32_MAX;

static void offer(best *b, double score, size_t begin, uint32_t id)
{
    if (b->begin == NOWHERE || score > b->score) {
        *b = (best){.score = score, .begin = (uint32_t)begin, .id = id};
    }
}

static size_t char_size(uint8_t byte)
{
    return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

/* Offers all tokens that begin at at. */
static void offer_all(const dp_unigram *u, dp_view text, size_t at, best *ways)
{
    const double score = ways[at].score;
    const size_t first = char_size(text.data[at]);
    uint32_t node = 0;
    bool single = false;
    for (size_t end = at; end < text.size && dp_trie_step(&u->trie, &node, text.data[end]);) {
        end++;
        const uint32_t id = u->trie.nodes[node].value;
        if (id != DP_TRIE_NONE) {
            offer(&ways[end], u->scores[id] + score, at, id);
            single = single || end - at == first;
        }
    }
    if (!single) {
        offer(&ways[at + first], u->unknown_score + score, at, u->unknown);
    }
}

/* From the end to the beginning; unknown neighbours become one. */
static void walk_back(const dp_unigram *u, dp_unigram_room *room, const best *ways, size_t size)
{
    size_t n = 0;
    for (size_t end = size; end > 0; end = ways[end].begin) {
        const best *const b = &ways[end];
        dp_assert(b->begin < end);
        if (n > 0 && b->id == u->unknown && room->parts[n - 1].id == u->unknown) {
            room->parts[n - 1].begin = b->begin;
        } else {
            room->parts[n] =
                (dp_unigram_part){.begin = b->begin, .end = (uint32_t)end, .id = b->id};
            n++;
        }
    }
    for (size_t i = 0; i < n / 2; i++) {
        const dp_unigram_part swap = room->parts[i];
        room->parts[i] = room->parts[n - 1 - i];
        room->parts[n - 1 - i] = swap;
    }
    room->n_parts = n;
}

dp_status dp_unigram_apply(const dp_unigram *unigram, dp_unigram_room *room, dp_view text)
{
    dp_assert(text.size < (size_t)1 << 30);
    const size_t size = (text.size + 1) * (sizeof(best) + sizeof(dp_unigram_part));
    if (room->size < size) {
        dp_free(room->memory);
        *room = (dp_unigram_room){.memory = dp_alloc(1, size + size / 4), .size = size + size / 4};
        if (room->memory == NULL) {
            room->size = 0;
            return DP_NOMEM;
        }
    }
    best *const ways = room->memory;
    room->parts = (dp_unigram_part *)(ways + text.size + 1);
    ways[0] = (best){.score = 0, .begin = 0};
    for (size_t i = 1; i <= text.size; i++) {
        ways[i].begin = NOWHERE;
    }
    for (size_t at = 0; at < text.size; at += char_size(text.data[at])) {
        offer_all(unigram, text, at, ways);
    }
    walk_back(unigram, room, ways, text.size);
    return DP_OK;
}
