#include "gossip/dense.h"

#include <string.h>

#include "base/assert.h"

enum { MEMBERS_MIN = 2 };

/* ---- layout ---- */

/* (2N - 2) r_i - sum r, which the share of member i is in proportion to; not below 0. */
static unsigned __int128 claim(uint32_t n_members, const uint64_t *rates, uint32_t member,
                               unsigned __int128 sum)
{
    const uint64_t rate = rates == NULL ? 1 : rates[member];
    const unsigned __int128 twice = (unsigned __int128)(2 * n_members - 2) * rate;

    return twice > sum ? twice - sum : 0;
}

dp_status dp_dense_layout_init(dp_dense_layout *layout, uint64_t n_elements, uint32_t n_members,
                               const uint64_t *rates, uint32_t chunk_elements)
{
    dp_assert(chunk_elements > 0 && chunk_elements <= DP_DENSE_CHUNK_ELEMENTS_MAX);
    const uint64_t n_chunks = n_elements / chunk_elements + (n_elements % chunk_elements != 0);
    unsigned __int128 claims[DP_DENSE_MEMBERS_MAX];
    unsigned __int128 sum = 0;
    unsigned __int128 all = 0;
    unsigned __int128 before = 0;

    if (n_members < MEMBERS_MIN || n_members > DP_DENSE_MEMBERS_MAX) {
        return DP_BADARG;
    }
    if (n_chunks > DP_DENSE_CHUNKS_MAX) {
        return DP_TOOBIG;
    }
    for (uint32_t i = 0; i < n_members; i++) {
        sum += rates == NULL ? 1 : rates[i];
    }
    for (uint32_t i = 0; i < n_members; i++) {
        /* Between two it does not matter who adds; nobody's rate known is nobody's faster. */
        claims[i] = n_members == 2 || sum == 0 ? 1 : claim(n_members, rates, i, sum);
        all += claims[i];
    }
    dp_assert(all > 0); /* The claims of the fastest are. */
    *layout = (dp_dense_layout){.n_elements = n_elements,
                                .n_members = n_members,
                                .n_chunks = (uint32_t)n_chunks,
                                .chunk_elements = chunk_elements};
    for (uint32_t i = 0; i < n_members; i++) {
        before += claims[i];
        layout->first[i + 1] = (uint32_t)(n_chunks * before / all);
    }
    return DP_OK;
}

uint32_t dp_dense_owner(const dp_dense_layout *layout, uint32_t chunk)
{
    uint32_t owner = 0;

    dp_assert(chunk < layout->n_chunks);
    while (chunk >= layout->first[owner + 1]) {
        owner++;
    }
    return owner;
}

uint32_t dp_dense_chunk_elements(const dp_dense_layout *layout, uint32_t chunk)
{
    const uint64_t left = layout->n_elements - (uint64_t)chunk * layout->chunk_elements;

    dp_assert(chunk < layout->n_chunks);
    return left < layout->chunk_elements ? (uint32_t)left : layout->chunk_elements;
}

/* ---- bytes ---- */

void dp_dense_write_head(dp_writer *writer, const dp_dense_message *message)
{
    dp_write_u8(writer, DP_MSG_DENSE);
    dp_write_u8(writer, DP_MSG_VERSION);
    dp_write_u64(writer, message->exchange);
    dp_write_u32(writer, message->chunk);
    dp_write_u8(writer, (uint8_t)message->kind);
    dp_write_u8(writer, message->codec);
    dp_write_u16(writer, message->weight);
    dp_write_u32(writer, message->present);
}

dp_status dp_dense_read(dp_view bytes, dp_dense_message *message)
{
    dp_reader reader = dp_reader_of(bytes);

    if (dp_msg_type_of(bytes) != DP_MSG_DENSE) {
        return DP_BADMSG;
    }
    DP_IGNORE(dp_read_u16(&reader)); /* type and version */
    dp_dense_message read = {.exchange = dp_read_u64(&reader), .chunk = dp_read_u32(&reader)};
    const uint8_t kind = dp_read_u8(&reader);
    read.codec = dp_read_u8(&reader);
    read.weight = dp_read_u16(&reader);
    read.present = dp_read_u32(&reader);
    read.bytes = dp_read_view(&reader, dp_reader_left(&reader));
    if (reader.failed || kind > DP_DENSE_OPEN) {
        return DP_BADMSG;
    }
    read.kind = (dp_dense_kind)kind;
    const bool is_part = read.kind == DP_DENSE_PART;
    const bool is_mean = read.kind == DP_DENSE_MEAN;
    if ((read.weight != 0) != is_part || (read.present != 0) != is_mean ||
        read.weight > DP_DENSE_WEIGHT_MAX || (read.bytes.size != 0) != (is_part || is_mean)) {
        return DP_BADMSG;
    }
    *message = read;
    return DP_OK;
}

/* ---- what has come ---- */

static bool owns(const dp_dense_tally *tally, uint32_t member, uint32_t chunk)
{
    return chunk >= tally->layout.first[member] && chunk < tally->layout.first[member + 1];
}

static uint32_t everybody(const dp_dense_tally *tally)
{
    return UINT32_MAX >> (32 - tally->layout.n_members);
}

void dp_dense_tally_init(dp_dense_tally *tally, const dp_dense_layout *layout, uint32_t self,
                         uint32_t *present)
{
    dp_assert(self < layout->n_members);
    *tally = (dp_dense_tally){.layout = *layout, .self = self, .present = present};
    memset(present, 0, layout->n_chunks * sizeof *present);
    for (uint32_t chunk = layout->first[self]; chunk < layout->first[self + 1]; chunk++) {
        present[chunk] = 1U << self;
    }
    tally->n_own_open = layout->first[self + 1] - layout->first[self];
    tally->n_missing = layout->n_chunks - tally->n_own_open;
}

/* The own part counts from the start, so its bit is free to say that the chunk is open. */
bool dp_dense_is_closed(const dp_dense_tally *tally, uint32_t chunk)
{
    return owns(tally, tally->self, chunk) && (tally->present[chunk] >> tally->self & 1U) == 0;
}

uint32_t dp_dense_present(const dp_dense_tally *tally, uint32_t chunk)
{
    return tally->present[chunk] | (owns(tally, tally->self, chunk) ? 1U << tally->self : 0U);
}

dp_dense_verdict dp_dense_judge(const dp_dense_tally *tally, uint32_t from,
                                const dp_dense_message *message)
{
    const uint32_t chunk = message->chunk;

    if (message->kind == DP_DENSE_OPEN || from >= tally->layout.n_members || from == tally->self ||
        chunk >= tally->layout.n_chunks) {
        return DP_DENSE_REFUSED;
    }
    const uint32_t present = tally->present[chunk];
    if (message->kind == DP_DENSE_MEAN) {
        return owns(tally, from, chunk) && present == 0 &&
                       (message->present & ~everybody(tally)) == 0
                   ? DP_DENSE_TAKE
                   : DP_DENSE_REFUSED;
    }
    if (!owns(tally, tally->self, chunk) || (present >> from & 1U) != 0) {
        return DP_DENSE_REFUSED;
    }
    if (dp_dense_is_closed(tally, chunk)) {
        return DP_DENSE_LATE;
    }
    return (present | 1U << from) == everybody(tally) ? DP_DENSE_COMPLETE : DP_DENSE_ADD;
}

void dp_dense_count(dp_dense_tally *tally, uint32_t from, const dp_dense_message *message)
{
    const dp_dense_verdict verdict = dp_dense_judge(tally, from, message);

    dp_assert(verdict == DP_DENSE_ADD || verdict == DP_DENSE_COMPLETE || verdict == DP_DENSE_TAKE);
    if (verdict == DP_DENSE_TAKE) {
        tally->present[message->chunk] = message->present;
        tally->n_missing--;
        return;
    }
    tally->present[message->chunk] |= 1U << from;
}

void dp_dense_close_chunk(dp_dense_tally *tally, uint32_t chunk)
{
    dp_assert(owns(tally, tally->self, chunk) && !dp_dense_is_closed(tally, chunk));
    tally->present[chunk] &= ~(1U << tally->self);
    tally->n_own_open--;
}

bool dp_dense_is_done(const dp_dense_tally *tally)
{
    return tally->n_own_open == 0 && tally->n_missing == 0;
}
