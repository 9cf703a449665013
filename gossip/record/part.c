#include "gossip/record/part.h"

#include <string.h>

#include "base/assert.h"
#include "gossip/core/median.h"
#include "gossip/core/msg.h"
#include "gossip/record/part_inside.h"
#include "gossip/record/part_sum.h"

/* ---- owners of parts ---- */

void dp_part_layout_first(dp_part_layout *layout, const dp_peer *founder)
{
    *layout = (dp_part_layout){.cuts = {.n = 1}};
    layout->owners[0] = *founder;
}

/* No member's share grows without bound by its own claim. All 1 where a rate is unknown, or where
 * there are two: between two it does not matter which one sums. */
static void claims_of(const uint32_t *rates, uint32_t n, uint64_t *claims)
{
    unsigned __int128 told[DP_PARTS_MAX];
    uint64_t clamped[DP_PARTS_MAX];
    uint64_t sum = 0;
    bool known = n > 2;

    dp_assert(n > 0);
    for (uint32_t i = 0; i < n; i++) {
        told[i] = rates[i];
    }
    const uint64_t most = 2 * (uint64_t)dp_lower_median(told, n);
    for (uint32_t i = 0; i < n; i++) {
        clamped[i] = rates[i] < most ? rates[i] : most;
        sum += clamped[i];
        known = known && rates[i] > 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t twice = (2 * (uint64_t)n - 2) * clamped[i];
        claims[i] = known ? (twice > sum ? twice - sum : 0) : 1;
    }
}

uint32_t dp_part_rate_told(uint32_t measured, uint32_t median)
{
    const uint64_t more = 4ULL * measured;

    return more >= 3ULL * median && more <= 5ULL * median ? median : measured;
}

void dp_part_layout_of(dp_part_layout *layout, const dp_peer *peers, const uint32_t *rates,
                       uint32_t n)
{
    uint64_t claims[DP_PARTS_MAX];
    uint64_t all = 0;
    uint64_t before = 0;

    dp_assert(n >= 1 && n <= DP_PARTS_MAX);
    claims_of(rates, n, claims);
    for (uint32_t i = 0; i < n; i++) {
        all += claims[i];
    }
    dp_assert(all > 0); /* The fastest claims. */
    *layout = (dp_part_layout){.cuts = {.n = 0}};
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t first = DP_PART_WHOLE * before / all;
        before += claims[i];
        if (DP_PART_WHOLE * before / all > first) {
            layout->cuts.first[layout->cuts.n] = (uint16_t)first;
            layout->owners[layout->cuts.n++] = peers[i];
        }
    }
}

/* ---- lists ---- */

void dp_part_list_write(dp_writer *writer, const dp_part_list *list)
{
    dp_assert(list->n <= DP_PARTS_MAX);
    dp_write_u8(writer, (uint8_t)list->n);
    for (uint32_t i = 0; i < list->n; i++) {
        dp_write_bytes(writer, list->refs[i].root.bytes, DP_HASH_BYTES);
        dp_write_u64(writer, list->refs[i].bytes);
    }
}

bool dp_part_list_read(dp_reader *reader, dp_part_list *list)
{
    list->n = dp_read_u8(reader);
    if (reader->failed || list->n == 0 || list->n > DP_PARTS_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < list->n; i++) {
        dp_read_bytes(reader, list->refs[i].root.bytes, DP_HASH_BYTES);
        list->refs[i].bytes = dp_read_u64(reader);
        if (list->refs[i].bytes == 0 || list->refs[i].bytes > DP_OBJECT_BYTES_MAX) {
            return false;
        }
    }
    return !reader->failed;
}

dp_hash dp_part_list_root(const dp_part_list *list)
{
    uint8_t room[1 + DP_PARTS_MAX * (DP_HASH_BYTES + 8)];
    dp_writer writer = dp_writer_of(room, sizeof room);

    dp_part_list_write(&writer, list);
    return dp_hash_of("dpnode/parts/1", dp_view_of(room, writer.size));
}

uint64_t dp_part_list_bytes(const dp_part_list *list)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < list->n; i++) {
        bytes += list->refs[i].bytes;
    }
    return bytes;
}

/* ---- the word of an owner ---- */

static const char part_domain[] = "dpnode/part/1";
static const char sums_domain[] = "dpnode/part/2"; /* with sums of sites in it */

enum { HAS_SUMS = 128 /* added to the count of sources */ };

static void write_sums(dp_writer *writer, const dp_part_word *word)
{
    dp_assert(word->n_sums <= DP_SITE_SUMS_MAX);
    dp_write_u8(writer, (uint8_t)word->n_sums);
    for (uint32_t i = 0; i < word->n_sums; i++) {
        const dp_site_sum *sum = &word->sums[i];
        dp_write_u8(writer, (uint8_t)sum->collector);
        dp_write_u32(writer, sum->from);
        dp_write_bytes(writer, sum->root.bytes, 32);
        dp_write_u64(writer, sum->bytes);
        dp_write_bytes(writer, sum->signature, sizeof sum->signature);
    }
}

static void write_word(dp_writer *writer, const dp_part_word *word)
{
    dp_assert(word->n <= DP_PART_SOURCES_MAX);
    dp_write_bytes(writer, word->owner.bytes, 32);
    dp_write_u64(writer, word->round);
    dp_write_bytes(writer, word->base.bytes, 32);
    dp_write_u8(writer, (uint8_t)word->part);
    dp_write_bytes(writer, word->root.bytes, 32);
    dp_write_u64(writer, word->bytes);
    dp_write_u8(writer, (uint8_t)(word->n + (word->n_sums > 0 ? HAS_SUMS : 0)));
    for (uint32_t i = 0; i < word->n; i++) {
        dp_write_bytes(writer, word->sources[i].peer.bytes, 32);
        dp_write_bytes(writer, word->sources[i].root.bytes, 32);
    }
    if (word->n_sums > 0) {
        write_sums(writer, word);
    }
}

dp_view dp_part_signed(const dp_part_word *word, const dp_hash *run, const dp_hash *fork,
                       uint8_t room[DP_PART_SIGNED_MAX])
{
    dp_writer writer = dp_writer_of(room, DP_PART_SIGNED_MAX);

    dp_assert(word->n <= DP_PART_SOURCES_MAX);
    dp_write_bytes(&writer, run->bytes, 32);
    dp_write_bytes(&writer, fork->bytes, 32);
    write_word(&writer, word);
    dp_assert(!writer.full);
    return dp_view_of(room, writer.size);
}

bool dp_part_sign(dp_part_word *word, const dp_crypto *crypto, const dp_hash *run,
                  const dp_hash *fork)
{
    uint8_t room[DP_PART_SIGNED_MAX];

    return crypto->sign(crypto->context, DP_KEY_IDENTITY,
                        word->n_sums > 0 ? sums_domain : part_domain,
                        dp_part_signed(word, run, fork, room), word->signature);
}

bool dp_part_verify(const dp_part_word *word, const dp_crypto *crypto, const dp_hash *run,
                    const dp_hash *fork)
{
    uint8_t room[DP_PART_SIGNED_MAX];
    bool right = crypto->verify(crypto->context, word->owner.bytes,
                                word->n_sums > 0 ? sums_domain : part_domain,
                                dp_part_signed(word, run, fork, room), word->signature);

    for (uint32_t i = 0; i < word->n_sums && right; i++) {
        const dp_part_word said = dp_site_sum_word(word, i);
        right = dp_site_sum_verify(&said, crypto, run, fork);
    }
    return right;
}

void dp_part_word_write(dp_writer *writer, uint8_t type, const dp_part_word *word)
{
    dp_write_u8(writer, type);
    dp_write_u8(writer, DP_MSG_VERSION);
    write_word(writer, word);
    dp_write_bytes(writer, word->signature, DP_SIGNATURE_BYTES);
}

void dp_part_msg_write(dp_writer *writer, const dp_part_word *word)
{
    dp_part_word_write(writer, DP_MSG_PART, word);
}

static bool read_sums(dp_reader *reader, dp_part_word *word)
{
    const uint32_t all = word->n == DP_PART_SOURCES_MAX ? UINT32_MAX : (1U << word->n) - 1;

    word->n_sums = dp_read_u8(reader);
    if (reader->failed || word->n_sums == 0 || word->n_sums > DP_SITE_SUMS_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < word->n_sums; i++) {
        dp_site_sum *sum = &word->sums[i];
        sum->collector = dp_read_u8(reader);
        sum->from = dp_read_u32(reader);
        dp_read_bytes(reader, sum->root.bytes, 32);
        sum->bytes = dp_read_u64(reader);
        dp_read_bytes(reader, sum->signature, sizeof sum->signature);
    }
    return !reader->failed && dp_site_sums_fit(word->sums, word->n_sums, all);
}

dp_status dp_part_word_read(dp_view message, uint8_t type, dp_part_word *word)
{
    dp_reader reader = dp_reader_of(message);

    if (dp_msg_type_of(message) != type) {
        return DP_BADMSG;
    }
    DP_IGNORE(dp_read_u16(&reader) == 0); /* type and version */
    dp_read_bytes(&reader, word->owner.bytes, 32);
    word->round = dp_read_u64(&reader);
    dp_read_bytes(&reader, word->base.bytes, 32);
    word->part = dp_read_u8(&reader);
    dp_read_bytes(&reader, word->root.bytes, 32);
    word->bytes = dp_read_u64(&reader);
    const uint32_t n = dp_read_u8(&reader);
    word->n = n & ~(uint32_t)HAS_SUMS;
    word->n_sums = 0;
    if (word->part >= DP_PARTS_MAX || word->n == 0 || word->n > DP_PART_SOURCES_MAX ||
        word->bytes == 0 || word->bytes > DP_OBJECT_BYTES_MAX) {
        return DP_BADMSG;
    }
    for (uint32_t i = 0; i < word->n; i++) {
        dp_read_bytes(&reader, word->sources[i].peer.bytes, 32);
        dp_read_bytes(&reader, word->sources[i].root.bytes, 32);
        if (i > 0 && dp_peer_compare(&word->sources[i - 1].peer, &word->sources[i].peer) >= 0) {
            return DP_BADMSG;
        }
    }
    if ((n & HAS_SUMS) != 0 && !read_sums(&reader, word)) {
        return DP_BADMSG;
    }
    dp_read_bytes(&reader, word->signature, DP_SIGNATURE_BYTES);
    return dp_reader_finish(&reader);
}

dp_status dp_part_msg_read(dp_view message, dp_part_word *word)
{
    return dp_part_word_read(message, DP_MSG_PART, word);
}
