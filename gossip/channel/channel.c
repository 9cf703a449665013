#include "gossip/channel/channel.h"

#include <sodium.h>
#include <string.h>

#include "gossip/channel/channel_internal.h"

void dp_channel_forget_config(dp_channel *channel)
{
    sodium_memzero(channel->config.psks, sizeof channel->config.psks);
    sodium_memzero(channel->config.ephemeral, sizeof channel->config.ephemeral);
}

dp_status dp_channel_fail(dp_channel *channel, dp_status status, const char *fault)
{
    channel->state = DP_CHANNEL_BROKEN;
    channel->status = status;
    if (channel->fault == NULL) {
        channel->fault = fault;
    }
    dp_noise_close(&channel->noise);
    sodium_memzero(&channel->send, sizeof channel->send);
    sodium_memzero(&channel->receive, sizeof channel->receive);
    dp_channel_forget_config(channel);
    return status;
}

/* Bytes of the next unit (preamble, handshake message, record), judged from what is there; its
 * header when that is not. */
static dp_status unit_bytes(dp_channel *channel, dp_view have, size_t *size)
{
    dp_reader reader = dp_reader_of(have);

    if (channel->state == DP_CHANNEL_PREAMBLE) {
        *size = DP_CHANNEL_PREAMBLE_BYTES;
        return DP_OK;
    }
    if (channel->state == DP_CHANNEL_HANDSHAKE) {
        *size = DP_HANDSHAKE_HEADER_BYTES;
        if (have.size >= DP_HANDSHAKE_HEADER_BYTES) {
            *size += dp_read_u16(&reader);
        }
        return *size <= DP_HANDSHAKE_HEADER_BYTES + DP_CHANNEL_HANDSHAKE_MAX
                   ? DP_OK
                   : dp_channel_fail(channel, DP_TOOBIG, "an overlong handshake message");
    }
    *size = DP_RECORD_HEADER_BYTES;
    if (have.size < DP_RECORD_HEADER_BYTES) {
        return DP_OK;
    }
    *size += dp_read_u32(&reader) & 0xffffffU;
    if (*size > DP_SEALED_RECORD_MAX) {
        return dp_channel_fail(channel, DP_TOOBIG, "an overlong record");
    }
    return *size >= DP_RECORD_HEADER_BYTES + DP_NOISE_TAG_BYTES
               ? DP_OK
               : dp_channel_fail(channel, DP_BADMSG, "a record without a tag");
}

static size_t header_bytes(const dp_channel *channel)
{
    if (channel->state == DP_CHANNEL_PREAMBLE) {
        return DP_CHANNEL_PREAMBLE_BYTES;
    }
    return channel->state == DP_CHANNEL_HANDSHAKE ? DP_HANDSHAKE_HEADER_BYTES
                                                  : DP_RECORD_HEADER_BYTES;
}

/* Lend the next whole unit, from bytes where it lies there in one piece, else from channel->in. An
 * empty unit asks for more bytes. Every turn of the loop returns or consumes at least one byte. */
static dp_status next_unit(dp_channel *channel, dp_view bytes, size_t *consumed, dp_view *unit)
{
    for (;;) {
        const bool from_in = channel->in.size > 0;
        const dp_view rest = dp_view_of(bytes.data + *consumed, bytes.size - *consumed);
        const dp_view have = from_in ? dp_buf_view(&channel->in) : rest;
        size_t size = 0;

        *unit = dp_view_of(NULL, 0);
        DP_TRY(unit_bytes(channel, have, &size));
        if (have.size >= header_bytes(channel) && have.size >= size) {
            *unit = dp_view_of(have.data, size);
            *consumed += from_in ? 0 : size;
            return DP_OK;
        }
        if (rest.size == 0) {
            return DP_OK;
        }
        const size_t missing = size - channel->in.size;
        const size_t taken = missing < rest.size ? missing : rest.size;
        if (dp_buf_append(&channel->in, dp_view_of(rest.data, taken)) != DP_OK) {
            return dp_channel_fail(channel, DP_NOMEM, "no memory for incoming bytes");
        }
        *consumed += taken;
    }
}

dp_status dp_channel_read(dp_channel *channel, dp_view bytes, size_t *consumed, dp_buf *out,
                          dp_channel_event *event)
{
    *consumed = 0;
    *event = (dp_channel_event){.type = DP_CHANNEL_NOTHING};
    while (event->type == DP_CHANNEL_NOTHING) {
        dp_view unit;
        if (channel->state == DP_CHANNEL_BROKEN) {
            return channel->status;
        }
        if (channel->state == DP_CHANNEL_ENDED) {
            *consumed = bytes.size;
            return DP_OK;
        }
        DP_TRY(next_unit(channel, bytes, consumed, &unit));
        if (unit.size == 0) {
            return DP_OK;
        }
        dp_status status = DP_OK;
        if (channel->state == DP_CHANNEL_PREAMBLE) {
            status = dp_channel_read_preamble(channel, unit);
        } else if (channel->state == DP_CHANNEL_HANDSHAKE) {
            status = dp_channel_read_handshake(channel, unit, out, event);
        } else {
            status = dp_channel_read_record(channel, unit, event);
        }
        dp_buf_clear(&channel->in);
        if (status != DP_OK) {
            *event = (dp_channel_event){.type = DP_CHANNEL_NOTHING};
            return status;
        }
    }
    return DP_OK;
}

dp_status dp_channel_eof(const dp_channel *channel)
{
    if (channel->state == DP_CHANNEL_ENDED) {
        return DP_OK;
    }
    if (channel->state == DP_CHANNEL_BROKEN) {
        return channel->status;
    }
    return channel->state == DP_CHANNEL_OPEN ? DP_BADSIG : DP_CLOSED;
}

/* ---- life ---- */

static dp_status take_own(dp_channel *channel, const dp_channel_config *config)
{
    dp_buf_init(&channel->own, DP_CREDENTIAL_BYTES_MAX + DP_CHANNEL_HELLO_MAX);
    dp_buf_init(&channel->in, DP_SEALED_RECORD_MAX);
    dp_buf_init(&channel->message, DP_CHANNEL_HANDSHAKE_MAX);
    DP_TRY(dp_buf_append(&channel->own, config->credential));
    DP_TRY(dp_buf_append(&channel->own, config->hello));
    channel->config.credential = dp_view_of(channel->own.data, config->credential.size);
    channel->config.hello =
        dp_view_of(channel->own.data + config->credential.size, config->hello.size);
    return DP_OK;
}

dp_status dp_channel_init(dp_channel *channel, const dp_channel_config *config, dp_buf *out)
{
    memset(channel, 0, sizeof *channel);
    if (config->credential.size == 0 || config->credential.size > DP_CREDENTIAL_BYTES_MAX ||
        config->hello.size > DP_CHANNEL_HELLO_MAX || config->n_psks == 0 ||
        config->n_psks > DP_CHANNEL_PSKS_MAX || config->identity == NULL ||
        (config->initiator && out == NULL)) {
        return DP_BADARG;
    }
    channel->config = *config;
    channel->initiator = config->initiator;
    channel->lane = config->initiator ? config->lane : DP_LANE_CONTROL;
    channel->stripe = config->initiator ? config->stripe : 0;
    channel->state = DP_CHANNEL_PREAMBLE;
    dp_status status = take_own(channel, config);
    if (status == DP_OK && config->initiator) {
        status = dp_channel_send_first(channel, out);
    }
    if (status != DP_OK) {
        dp_channel_close(channel);
    }
    return status;
}

void dp_channel_trim(dp_channel *channel)
{
    if (channel->in.size == 0) {
        dp_buf_close(&channel->in);
    }
    if (!channel->in_message) {
        dp_buf_close(&channel->message);
    }
}

void dp_channel_close(dp_channel *channel)
{
    dp_buf_close(&channel->own);
    dp_buf_close(&channel->in);
    dp_buf_close(&channel->message);
    sodium_memzero(channel, sizeof *channel);
    channel->state = DP_CHANNEL_BROKEN;
    channel->status = DP_CLOSED;
}
