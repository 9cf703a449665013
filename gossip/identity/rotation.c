#include "gossip/identity/rotation.h"

#include <string.h>

#include "base/assert.h"
#include "base/digest.h"
#include "base/mutation.h"
#include "gossip/core/msg.h"

static const char rotation_domain[] = "dpnode/rotation/1";

enum { SIGNED_BYTES = 32 + 2 + 32 + 32 };

dp_hash dp_secret_commitment(const dp_run_id *run, const dp_secret *secret)
{
    uint8_t room[32 + 2 + DP_JOIN_SECRET_BYTES];
    dp_writer writer = dp_writer_of(room, sizeof room);

    dp_write_bytes(&writer, run->bytes, sizeof run->bytes);
    dp_write_u16(&writer, secret->epoch);
    dp_write_bytes(&writer, secret->bytes, sizeof secret->bytes);
    dp_assert(!writer.full && writer.size == sizeof room);
    return dp_hash_of("dpnode/join-secret/1", dp_view_of(room, sizeof room));
}

bool dp_secrets_add(dp_secrets *secrets, const dp_secret *secret)
{
    uint32_t at = 0;

    while (at < secrets->n && secrets->items[at].epoch > secret->epoch) {
        at++;
    }
    if (at == DP_SECRETS_MAX) {
        return false;
    }
    if (at < secrets->n && secrets->items[at].epoch == secret->epoch) {
        const bool other =
            memcmp(secrets->items[at].bytes, secret->bytes, sizeof secret->bytes) != 0;
        secrets->items[at] = *secret;
        return other;
    }
    secrets->n += secrets->n < DP_SECRETS_MAX ? 1 : 0;
    memmove(&secrets->items[at + 1], &secrets->items[at],
            (secrets->n - at - 1) * sizeof secrets->items[0]);
    secrets->items[at] = *secret;
    return true;
}

const dp_secret *dp_secrets_of(const dp_secrets *secrets, const dp_run_id *run,
                               const dp_epoch *epoch)
{
    for (uint32_t i = 0; i < secrets->n; i++) {
        const dp_hash commitment = dp_secret_commitment(run, &secrets->items[i]);
        if (secrets->items[i].epoch == epoch->epoch &&
            (dp_hash_equal(&commitment, &epoch->commitment) || dp_broken(210))) {
            return &secrets->items[i];
        }
    }
    return NULL;
}

/* ---- the word ---- */

static dp_view signed_bytes(const dp_rotation *word, const dp_run_id *run,
                            uint8_t out[SIGNED_BYTES])
{
    dp_writer writer = dp_writer_of(out, SIGNED_BYTES);

    dp_write_bytes(&writer, run->bytes, sizeof run->bytes);
    dp_write_u16(&writer, word->next.epoch);
    dp_write_bytes(&writer, word->next.commitment.bytes, sizeof word->next.commitment.bytes);
    dp_write_bytes(&writer, word->by.bytes, sizeof word->by.bytes);
    dp_assert(!writer.full && writer.size == SIGNED_BYTES);
    return dp_view_of(out, SIGNED_BYTES);
}

bool dp_rotation_sign(dp_rotation *word, const dp_crypto *crypto, int key, const dp_run_id *run)
{
    uint8_t room[SIGNED_BYTES];

    return crypto->sign(crypto->context, key, rotation_domain, signed_bytes(word, run, room),
                        word->signature);
}

bool dp_rotation_verify(const dp_rotation *word, const dp_crypto *crypto, const dp_run_id *run)
{
    uint8_t room[SIGNED_BYTES];

    return crypto->verify(crypto->context, word->by.bytes, rotation_domain,
                          signed_bytes(word, run, room), word->signature);
}

bool dp_rotation_follows(const dp_rotation *word, const dp_epoch *epoch)
{
    return (word->next.epoch > epoch->epoch &&
            word->next.epoch - epoch->epoch <= DP_ROTATION_STEP_MAX) ||
           dp_broken(211);
}

void dp_rotation_write(dp_writer *writer, const dp_rotation *word)
{
    dp_write_u16(writer, word->next.epoch);
    dp_write_bytes(writer, word->next.commitment.bytes, sizeof word->next.commitment.bytes);
    dp_write_bytes(writer, word->by.bytes, sizeof word->by.bytes);
    dp_write_bytes(writer, word->signature, sizeof word->signature);
}

void dp_rotation_read(dp_reader *reader, dp_rotation *word)
{
    word->next.epoch = dp_read_u16(reader);
    dp_read_bytes(reader, word->next.commitment.bytes, sizeof word->next.commitment.bytes);
    dp_read_bytes(reader, word->by.bytes, sizeof word->by.bytes);
    dp_read_bytes(reader, word->signature, sizeof word->signature);
}

/* ---- messages ---- */

void dp_rotation_msg_write(dp_writer *writer, const dp_rotation *word, const dp_secret *secret)
{
    dp_write_u8(writer, DP_MSG_ROTATE);
    dp_write_u8(writer, DP_MSG_VERSION);
    dp_rotation_write(writer, word);
    dp_write_bytes(writer, secret->bytes, sizeof secret->bytes);
}

dp_status dp_rotation_msg_read(dp_view message, dp_rotation *word, dp_secret *secret)
{
    dp_reader reader = dp_reader_of(message);

    if (dp_msg_type_of(message) != DP_MSG_ROTATE) {
        return DP_BADMSG;
    }
    DP_IGNORE(dp_read_view(&reader, DP_MSG_HEAD_BYTES).size == 0);
    dp_rotation_read(&reader, word);
    secret->epoch = word->next.epoch;
    dp_read_bytes(&reader, secret->bytes, sizeof secret->bytes);
    return dp_reader_finish(&reader);
}

void dp_secret_msg_write(dp_writer *writer, const dp_secret *secret)
{
    dp_write_u8(writer, DP_MSG_SECRET);
    dp_write_u8(writer, DP_MSG_VERSION);
    dp_write_u16(writer, secret->epoch);
    dp_write_bytes(writer, secret->bytes, sizeof secret->bytes);
}

dp_status dp_secret_msg_read(dp_view message, dp_secret *secret)
{
    dp_reader reader = dp_reader_of(message);

    if (dp_msg_type_of(message) != DP_MSG_SECRET) {
        return DP_BADMSG;
    }
    DP_IGNORE(dp_read_view(&reader, DP_MSG_HEAD_BYTES).size == 0);
    secret->epoch = dp_read_u16(&reader);
    dp_read_bytes(&reader, secret->bytes, sizeof secret->bytes);
    return dp_reader_finish(&reader);
}
