/* Fuzz target of the channel. The first byte chooses where the rest arrives: at a fresh responder
 * (0), at an initiator that waits for its answer (1), at an open channel as ciphertext (2), or at
 * an open channel as records that a member sealed (3): u8 type | u16 size | bytes, again and
 * again. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "gossip/channel/channel.h"

enum { OUT_BYTES_MAX = 1 << 17 };

struct world {
    dp_identity identity;
    uint8_t credential[DP_CERT_BYTES];
    dp_channel_config config;
    dp_channel open[2]; /* initiator and responder after their handshake, without buffers */
};

static struct world world;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void drop_buffers(dp_channel *channel)
{
    dp_buf_close(&channel->in);
    dp_buf_close(&channel->message);
}

static void read_all(dp_channel *channel, dp_view bytes, dp_buf *out)
{
    dp_channel_event event = {.type = DP_CHANNEL_MESSAGE};
    size_t done = 0;

    while (done < bytes.size || event.type != DP_CHANNEL_NOTHING) {
        size_t consumed = 0;
        const dp_view rest = dp_view_of(bytes.data + done, bytes.size - done);
        if (dp_channel_read(channel, rest, &consumed, out, &event) != DP_OK) {
            dp_assert(channel->state == DP_CHANNEL_BROKEN && channel->fault != NULL);
            return;
        }
        dp_assert(consumed <= rest.size);
        dp_assert(event.message.size <= DP_MESSAGE_CONTROL_MAX);
        done += consumed;
    }
}

static void make_world(void)
{
    dp_entropy entropy = {{1}};
    dp_sign_key root;
    dp_buf out;
    dp_channel *a = &world.open[0];
    dp_channel *b = &world.open[1];

    dp_assert(dp_crypto_start() == DP_OK);
    dp_sign_key_of_seed(entropy.bytes, &root);
    dp_identity_of_seed(&entropy, &world.identity);
    dp_founder_credential(&root, &world.config.run, &world.identity, entropy.bytes, 1000,
                          world.credential);
    memcpy(world.config.root, root.public_key, sizeof world.config.root);
    world.config.n_psks = 1;
    world.config.identity = &world.identity;
    world.config.credential = dp_view_of(world.credential, sizeof world.credential);
    dp_buf_init(&out, OUT_BYTES_MAX);
    dp_assert(dp_channel_init(b, &world.config, NULL) == DP_OK);
    world.config.initiator = true;
    dp_assert(dp_channel_init(a, &world.config, &out) == DP_OK);
    for (unsigned i = 0; i < 3; i++) {
        dp_buf answer;
        dp_buf_init(&answer, OUT_BYTES_MAX);
        read_all(i % 2 == 0 ? b : a, dp_buf_view(&out), &answer);
        dp_buf_close(&out);
        out = answer;
    }
    dp_buf_close(&out);
    dp_assert(a->state == DP_CHANNEL_OPEN && b->state == DP_CHANNEL_OPEN);
    drop_buffers(a);
    drop_buffers(b);
}

static void run_handshake(bool initiator, dp_view bytes)
{
    dp_channel channel;
    dp_buf out;

    dp_buf_init(&out, OUT_BYTES_MAX);
    world.config.initiator = initiator;
    dp_assert(dp_channel_init(&channel, &world.config, &out) == DP_OK);
    read_all(&channel, bytes, &out);
    dp_channel_close(&channel);
    dp_buf_close(&out);
}

static void run_ciphertext(dp_view bytes)
{
    dp_channel channel = world.open[1];

    read_all(&channel, bytes, NULL);
    drop_buffers(&channel);
}

static void run_sealed(dp_view bytes)
{
    dp_noise_cipher cipher = world.open[0].send;
    dp_channel channel = world.open[1];
    dp_reader reader = dp_reader_of(bytes);
    uint8_t *record = malloc(DP_SEALED_RECORD_MAX);

    dp_assert(record != NULL);
    while (dp_reader_left(&reader) >= 3 && channel.state == DP_CHANNEL_OPEN) {
        const uint8_t type = dp_read_u8(&reader);
        const size_t wanted = dp_read_u16(&reader);
        const size_t left = dp_reader_left(&reader);
        const size_t size = wanted < left ? wanted : left;
        /* A full record is too long for most inputs to hold, so one size stands for it. */
        const size_t plain = wanted == UINT16_MAX ? DP_RECORD_PLAIN_MAX : size;
        const size_t sealed = plain + DP_NOISE_TAG_BYTES;
        dp_writer writer = dp_writer_of(record, DP_RECORD_HEADER_BYTES);
        dp_write_u32(&writer, (uint32_t)sealed | (uint32_t)type << 24);
        memset(record + DP_RECORD_HEADER_BYTES, 0, plain);
        const dp_view given = dp_read_view(&reader, size);
        if (given.size > 0) {
            memcpy(record + DP_RECORD_HEADER_BYTES, given.data, given.size);
        }
        dp_noise_seal(&cipher, dp_view_of(record, DP_RECORD_HEADER_BYTES),
                      dp_view_of(record + DP_RECORD_HEADER_BYTES, plain),
                      record + DP_RECORD_HEADER_BYTES);
        read_all(&channel, dp_view_of(record, DP_RECORD_HEADER_BYTES + sealed), NULL);
        dp_assert(channel.state == DP_CHANNEL_OPEN || channel.state == DP_CHANNEL_ENDED ||
                  channel.status != DP_BADSIG);
    }
    free(record);
    drop_buffers(&channel);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (world.config.n_psks == 0) {
        make_world();
    }
    if (size == 0) {
        return 0;
    }
    const dp_view rest = dp_view_of(data + 1, size - 1);
    switch (data[0] % 4) {
    case 0:
        run_handshake(false, rest);
        break;
    case 1:
        run_handshake(true, rest);
        break;
    case 2:
        run_ciphertext(rest);
        break;
    default:
        run_sealed(rest);
        break;
    }
    return 0;
}
