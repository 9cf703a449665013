#include "gossip/identity/invite_revoke.h"

#include <string.h>

#include "base/assert.h"
#include "gossip/core/msg.h"

static const char revoke_domain[] = "dpnode/invite-revoke/1";

enum { SIGNED_BYTES = 32 + DP_INVITE_ID_BYTES + 8 + 32 };

int dp_invite_id_compare(const dp_invite_id *a, const dp_invite_id *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes);
}

uint64_t dp_invite_revoke_until(uint64_t invite_until_ms)
{
    return invite_until_ms > UINT64_MAX - DP_CERT_NODE_MS_MAX
               ? UINT64_MAX
               : invite_until_ms + DP_CERT_NODE_MS_MAX;
}

static dp_view signed_bytes(const dp_invite_revoke *word, const dp_run_id *run,
                            uint8_t out[SIGNED_BYTES])
{
    dp_writer writer = dp_writer_of(out, SIGNED_BYTES);

    dp_write_bytes(&writer, run->bytes, sizeof run->bytes);
    dp_write_bytes(&writer, word->id.bytes, sizeof word->id.bytes);
    dp_write_u64(&writer, word->until_ms);
    dp_write_bytes(&writer, word->by.bytes, sizeof word->by.bytes);
    dp_assert(!writer.full && writer.size == SIGNED_BYTES);
    return dp_view_of(out, SIGNED_BYTES);
}

bool dp_invite_revoke_sign(dp_invite_revoke *word, const dp_crypto *crypto, int key,
                           const dp_run_id *run)
{
    uint8_t room[SIGNED_BYTES];

    return crypto->sign(crypto->context, key, revoke_domain, signed_bytes(word, run, room),
                        word->signature);
}

bool dp_invite_revoke_verify(const dp_invite_revoke *word, const dp_crypto *crypto,
                             const dp_run_id *run)
{
    uint8_t room[SIGNED_BYTES];

    return crypto->verify(crypto->context, word->by.bytes, revoke_domain,
                          signed_bytes(word, run, room), word->signature);
}

void dp_invite_revoke_write(dp_writer *writer, const dp_invite_revoke *word)
{
    dp_write_bytes(writer, word->id.bytes, sizeof word->id.bytes);
    dp_write_u64(writer, word->until_ms);
    dp_write_bytes(writer, word->by.bytes, sizeof word->by.bytes);
    dp_write_bytes(writer, word->signature, sizeof word->signature);
}

void dp_invite_revoke_read(dp_reader *reader, dp_invite_revoke *word)
{
    dp_read_bytes(reader, word->id.bytes, sizeof word->id.bytes);
    word->until_ms = dp_read_u64(reader);
    dp_read_bytes(reader, word->by.bytes, sizeof word->by.bytes);
    dp_read_bytes(reader, word->signature, sizeof word->signature);
}

void dp_invite_revokes_write(dp_writer *writer, const dp_invite_revoke *words, uint32_t n)
{
    dp_write_u8(writer, (uint8_t)n);
    for (uint32_t i = 0; i < n; i++) {
        dp_invite_revoke_write(writer, &words[i]);
    }
}

bool dp_invite_revokes_read(dp_reader *reader, dp_invite_revoke *words, uint32_t max, uint32_t *n)
{
    const uint32_t count = dp_read_u8(reader);

    if (count > max) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        dp_invite_revoke_read(reader, &words[i]);
        if (reader->failed ||
            (i > 0 && dp_invite_id_compare(&words[i - 1].id, &words[i].id) >= 0)) {
            return false;
        }
    }
    *n = count;
    return true;
}

void dp_invite_revoke_msg_write(dp_writer *writer, const dp_invite_revoke *word)
{
    dp_write_u8(writer, DP_MSG_INVITE_REVOKE);
    dp_write_u8(writer, DP_MSG_VERSION);
    dp_invite_revoke_write(writer, word);
}

dp_status dp_invite_revoke_msg_read(dp_view message, dp_invite_revoke *word)
{
    dp_reader reader = dp_reader_of(message);

    if (dp_msg_type_of(message) != DP_MSG_INVITE_REVOKE) {
        return DP_BADMSG;
    }
    DP_IGNORE(dp_read_view(&reader, DP_MSG_HEAD_BYTES).size == 0);
    dp_invite_revoke_read(&reader, word);
    return dp_reader_finish(&reader);
}
