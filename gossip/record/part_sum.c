#include "gossip/record/part_sum.h"

#include <string.h>

#include "base/assert.h"
#include "gossip/core/msg.h"
#include "gossip/record/part_inside.h"

static const char subtotal_domain[] = "dpnode/subtotal/1";

uint32_t dp_site_sums_most(uint32_t n_parts)
{
    const uint32_t each = n_parts == 0 ? 0 : DP_SITE_SUMS_ALL / n_parts;

    dp_assert(n_parts <= DP_PARTS_MAX);
    return each < DP_SITE_SUMS_MAX ? each : DP_SITE_SUMS_MAX;
}

bool dp_site_sums_fit(const dp_site_sum *sums, uint32_t n, uint32_t all)
{
    uint32_t left = all;

    for (uint32_t i = 0; i < n; i++) {
        const uint32_t from = sums[i].from;
        if (from == 0 || (from & ~left) != 0 || (from & (from - 1)) == 0 ||
            sums[i].collector >= DP_PART_SOURCES_MAX || (from >> sums[i].collector & 1U) == 0 ||
            sums[i].bytes == 0 || sums[i].bytes > DP_OBJECT_BYTES_MAX) {
            return false;
        }
        if (i > 0 && __builtin_ctz(sums[i - 1].from) >= __builtin_ctz(from)) {
            return false;
        }
        left &= ~from;
    }
    return true;
}

dp_part_word dp_site_sum_word(const dp_part_word *word, uint32_t k)
{
    const dp_site_sum *sum = &word->sums[k];
    dp_part_word said = {.owner = word->sources[sum->collector].peer,
                         .round = word->round,
                         .base = word->base,
                         .part = word->part,
                         .root = sum->root,
                         .bytes = sum->bytes};

    dp_assert(k < word->n_sums);
    dp_assert(k < word->n_sums && sum->collector < word->n);
    for (uint32_t i = 0; i < word->n; i++) {
        if ((sum->from >> i & 1U) != 0) {
            said.sources[said.n++] = word->sources[i];
        }
    }
    memcpy(said.signature, sum->signature, sizeof said.signature);
    return said;
}

bool dp_site_sum_sign(dp_part_word *word, const dp_crypto *crypto, const dp_hash *run,
                      const dp_hash *fork)
{
    uint8_t room[DP_PART_SIGNED_MAX];

    return crypto->sign(crypto->context, DP_KEY_IDENTITY, subtotal_domain,
                        dp_part_signed(word, run, fork, room), word->signature);
}

bool dp_site_sum_verify(const dp_part_word *word, const dp_crypto *crypto, const dp_hash *run,
                        const dp_hash *fork)
{
    uint8_t room[DP_PART_SIGNED_MAX];

    return crypto->verify(crypto->context, word->owner.bytes, subtotal_domain,
                          dp_part_signed(word, run, fork, room), word->signature);
}

void dp_site_sum_msg_write(dp_writer *writer, const dp_part_word *word)
{
    dp_assert(word->n_sums == 0);
    dp_part_word_write(writer, DP_MSG_SUBTOTAL, word);
}

dp_status dp_site_sum_msg_read(dp_view message, dp_part_word *word)
{
    bool own = false;

    DP_TRY(dp_part_word_read(message, DP_MSG_SUBTOTAL, word));
    for (uint32_t i = 0; i < word->n; i++) {
        own = own || dp_peer_equal(&word->sources[i].peer, &word->owner);
    }
    return own && word->n >= 2 && word->n_sums == 0 ? DP_OK : DP_BADMSG;
}

void dp_collect_write(dp_writer *writer, const dp_collect *collect)
{
    dp_assert(collect->n <= DP_PART_SOURCES_MAX);
    dp_write_u8(writer, DP_MSG_COLLECT);
    dp_write_u8(writer, DP_MSG_VERSION);
    dp_write_u64(writer, collect->round);
    dp_write_bytes(writer, collect->base.bytes, DP_HASH_BYTES);
    dp_write_u8(writer, (uint8_t)collect->part);
    dp_write_u8(writer, (uint8_t)collect->n);
    for (uint32_t i = 0; i < collect->n; i++) {
        dp_write_bytes(writer, collect->peers[i].bytes, sizeof collect->peers[i].bytes);
    }
}

dp_status dp_collect_read(dp_view message, dp_collect *collect)
{
    dp_reader reader = dp_reader_of(message);

    if (dp_msg_type_of(message) != DP_MSG_COLLECT) {
        return DP_BADMSG;
    }
    DP_IGNORE(dp_read_u16(&reader) == 0); /* type and version */
    collect->round = dp_read_u64(&reader);
    dp_read_bytes(&reader, collect->base.bytes, DP_HASH_BYTES);
    collect->part = dp_read_u8(&reader);
    collect->n = dp_read_u8(&reader);
    if (collect->part >= DP_PARTS_MAX || collect->n == 1 || collect->n > DP_PART_SOURCES_MAX) {
        return DP_BADMSG;
    }
    for (uint32_t i = 0; i < collect->n; i++) {
        dp_read_bytes(&reader, collect->peers[i].bytes, sizeof collect->peers[i].bytes);
        if (i > 0 && dp_peer_compare(&collect->peers[i - 1], &collect->peers[i]) >= 0) {
            return DP_BADMSG;
        }
    }
    return dp_reader_finish(&reader);
}
