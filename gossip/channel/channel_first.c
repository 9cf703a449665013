/* The first message of a handshake, once it has authenticated: is it new, and of this time? A
 * stranger that recorded one can send it again without the run's secret. So each first message is
 * answered once. One whose time is wrong is answered with the responder's time alone, which only
 * the real sender can read. That sender dials again with this time, and then each end learns the
 * time of the other's clock.
 *
 *   the time, in place of message 2    u16 size, 56 | 32 salt | sealed u64 unix ms
 *   salt    BLAKE2b-256 over "dpnode/first/salt/1", a zero byte and the responder's fresh ephemeral
 *           secret, which is used for nothing else then: random, so that no two of these have a key
 *           in common, also of one message sent twice
 *   key     BLAKE2b-256 over "dpnode/first/time/1", a zero byte | 32 Noise cipher key after message
 *           1 | 64 handshake hash | salt; ChaCha20-Poly1305, counter 0, nothing associated */
#include <string.h>

#include "base/assert.h"
#include "base/digest.h"
#include "base/mutation.h"
#include "gossip/channel/channel_internal.h"

enum { TIME_BYTES = 8 };

_Static_assert((int)DP_CHANNEL_TIME_BYTES == DP_HASH_BYTES + TIME_BYTES + DP_NOISE_TAG_BYTES,
               "salt and sealed time");

static dp_noise_cipher time_cipher(const dp_channel *channel, const dp_hash *salt)
{
    dp_noise_cipher cipher = {.keyed = true};
    dp_digest digest;

    dp_digest_init(&digest, "dpnode/first/time/1");
    dp_digest_add(&digest, dp_view_of(channel->noise.cipher.key, sizeof channel->noise.cipher.key));
    dp_digest_add(&digest, dp_view_of(channel->noise.hash, sizeof channel->noise.hash));
    dp_digest_add(&digest, dp_view_of(salt->bytes, sizeof salt->bytes));
    const dp_hash key = dp_digest_end(&digest);
    memcpy(cipher.key, key.bytes, sizeof cipher.key);
    return cipher;
}

static dp_status tell_time(const dp_channel *channel, dp_buf *out)
{
    uint8_t unit[DP_HANDSHAKE_HEADER_BYTES + DP_CHANNEL_TIME_BYTES];
    uint8_t time[TIME_BYTES];
    dp_writer writer = dp_writer_of(unit, sizeof unit);
    dp_writer plain = dp_writer_of(time, sizeof time);
    const dp_hash salt =
        dp_hash_of("dpnode/first/salt/1", dp_view_of(channel->noise.ephemeral_secret,
                                                     sizeof channel->noise.ephemeral_secret));
    dp_noise_cipher cipher = time_cipher(channel, &salt);

    dp_write_u64(&plain, channel->config.now_ms);
    dp_write_u16(&writer, DP_CHANNEL_TIME_BYTES);
    dp_write_bytes(&writer, salt.bytes, sizeof salt.bytes);
    dp_assert(!writer.full && !plain.full);
    dp_noise_seal(&cipher, dp_view_of(NULL, 0), dp_view_of(time, sizeof time), unit + writer.size);
    return dp_buf_append(out, dp_view_of(unit, sizeof unit));
}

static bool is_timely(const dp_channel *channel, uint64_t told_ms)
{
    const uint64_t now_ms = channel->config.now_ms;
    const uint64_t off_ms = told_ms > now_ms ? told_ms - now_ms : now_ms - told_ms;

    return now_ms == 0 || dp_broken(190) || off_ms <= DP_CHANNEL_CLOCK_MS;
}

dp_status dp_channel_judge_first(dp_channel *channel, uint64_t told_ms, dp_buf *out)
{
    const bool timely = is_timely(channel, told_ms);
    dp_replay_cache *replays = channel->config.replays;

    if (replays != NULL && !dp_broken(191) &&
        !dp_replay_add(replays, channel->noise.remote_ephemeral, timely)) {
        return dp_channel_fail(channel, DP_EXISTS, "the first message repeats an earlier one");
    }
    if (timely) {
        return DP_OK;
    }
    channel->peer_unix_ms = told_ms;
    const dp_status told = tell_time(channel, out);
    return dp_channel_fail(channel, told == DP_OK ? DP_TIMEOUT : told,
                           "the time of the first message is far from this node's");
}

dp_status dp_channel_read_time(dp_channel *channel, dp_view message)
{
    uint8_t time[TIME_BYTES];
    dp_hash salt;

    dp_assert(channel->initiator && message.size == DP_CHANNEL_TIME_BYTES);
    memcpy(salt.bytes, message.data, sizeof salt.bytes);
    dp_noise_cipher cipher = time_cipher(channel, &salt);
    const dp_view sealed =
        dp_view_of(message.data + sizeof salt.bytes, message.size - sizeof salt.bytes);
    if (dp_noise_open(&cipher, dp_view_of(NULL, 0), sealed, time) != DP_OK) {
        return dp_channel_fail(channel, DP_BADSIG, "the peer's answer about its clock is forged");
    }
    dp_reader reader = dp_reader_of(dp_view_of(time, sizeof time));
    channel->peer_unix_ms = dp_read_u64(&reader);
    return dp_channel_fail(channel, DP_TIMEOUT,
                           "the time of the first message is far from the peer's");
}
