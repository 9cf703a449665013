#include "gossip/identity/renewal.h"

#include "base/assert.h"
#include "gossip/core/msg.h"

static const char renewal_domain[] = "dpnode/renewal/1";

enum { SIGNED_BYTES = 32 + 32 + 8 + 32 };

static dp_view signed_bytes(const dp_renewal *renewal, const dp_run_id *run,
                            uint8_t out[SIGNED_BYTES])
{
    dp_writer writer = dp_writer_of(out, SIGNED_BYTES);

    dp_write_bytes(&writer, run->bytes, sizeof run->bytes);
    dp_write_bytes(&writer, renewal->peer.bytes, sizeof renewal->peer.bytes);
    dp_write_u64(&writer, renewal->until_ms);
    dp_write_bytes(&writer, renewal->by.bytes, sizeof renewal->by.bytes);
    dp_assert(!writer.full && writer.size == SIGNED_BYTES);
    return dp_view_of(out, SIGNED_BYTES);
}

bool dp_renewal_sign(dp_renewal *renewal, const dp_crypto *crypto, int key, const dp_run_id *run)
{
    uint8_t room[SIGNED_BYTES];

    return crypto->sign(crypto->context, key, renewal_domain, signed_bytes(renewal, run, room),
                        renewal->signature);
}

bool dp_renewal_fits(const dp_renewal *renewal, const dp_crypto *crypto, const dp_run_id *run,
                     const dp_peer *peer, uint64_t now_ms)
{
    uint8_t room[SIGNED_BYTES];

    return dp_peer_equal(&renewal->peer, peer) && renewal->until_ms >= now_ms &&
           renewal->until_ms - now_ms <= DP_CERT_NODE_MS_MAX &&
           crypto->verify(crypto->context, renewal->by.bytes, renewal_domain,
                          signed_bytes(renewal, run, room), renewal->signature);
}

void dp_renewal_write(dp_writer *writer, const dp_renewal *renewal)
{
    dp_write_bytes(writer, renewal->peer.bytes, sizeof renewal->peer.bytes);
    dp_write_u64(writer, renewal->until_ms);
    dp_write_bytes(writer, renewal->by.bytes, sizeof renewal->by.bytes);
    dp_write_bytes(writer, renewal->signature, sizeof renewal->signature);
}

void dp_renewal_read(dp_reader *reader, dp_renewal *renewal)
{
    dp_read_bytes(reader, renewal->peer.bytes, sizeof renewal->peer.bytes);
    renewal->until_ms = dp_read_u64(reader);
    dp_read_bytes(reader, renewal->by.bytes, sizeof renewal->by.bytes);
    dp_read_bytes(reader, renewal->signature, sizeof renewal->signature);
}

void dp_renewal_msg_write(dp_writer *writer, const dp_renewal *renewal)
{
    dp_write_u8(writer, DP_MSG_RENEWAL);
    dp_write_u8(writer, DP_MSG_VERSION);
    dp_renewal_write(writer, renewal);
}

dp_status dp_renewal_msg_read(dp_view message, dp_renewal *renewal)
{
    dp_reader reader = dp_reader_of(message);

    if (dp_msg_type_of(message) != DP_MSG_RENEWAL) {
        return DP_BADMSG;
    }
    DP_IGNORE(dp_read_view(&reader, DP_MSG_HEAD_BYTES).size == 0);
    dp_renewal_read(&reader, renewal);
    return dp_reader_finish(&reader);
}
