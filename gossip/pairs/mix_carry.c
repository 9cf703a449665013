/* How a word of an exchange reaches its other side: on their link, or, without one, signed and
 * carried by members that have links to both. */
#include <string.h>

#include "base/assert.h"
#include "gossip/pairs/mix_internal.h"
#include "gossip/record/wire.h"

enum {
    CARRIERS = 3,           /* asked at a time; others at the next repetition */
    UNANSWERED_RETRIES = 3, /* of a COMMIT on a link that is up: then others carry it besides */
    MIX_SIGNED_PART_MAX = DP_HASH_BYTES + DP_PUBLIC_KEY_BYTES + DP_MIX_MESSAGE_MAX
};

static const char mix_domain[] = "dpnode/mix/1";

/* The signed bytes: the run, the receiver, the message. */
static dp_view signed_part(const dp_mix *mix, const dp_peer *to, dp_view message,
                           uint8_t room[MIX_SIGNED_PART_MAX])
{
    dp_assert(message.size <= DP_MIX_MESSAGE_MAX);
    memcpy(room, mix->config.run.bytes, DP_HASH_BYTES);
    memcpy(room + DP_HASH_BYTES, to->bytes, DP_PUBLIC_KEY_BYTES);
    memcpy(room + DP_HASH_BYTES + DP_PUBLIC_KEY_BYTES, message.data, message.size);
    return dp_view_of(room, DP_HASH_BYTES + DP_PUBLIC_KEY_BYTES + message.size);
}

/* Some linked members by chance; or, for an answer, the one that carried the question. */
static uint32_t choose_carriers(dp_mix *mix, const dp_peer *to, uint32_t carriers[CARRIERS])
{
    const dp_members *const members = mix->config.members;
    uint32_t count = 0;

    if (mix->via != DP_MEMBER_NONE) {
        carriers[0] = mix->via;
        return 1;
    }
    for (uint32_t i = 1; i < dp_members_count(members); i++) {
        const dp_member *const member = dp_members_at(members, i);
        if (!member->linked || !member->in_roster || dp_peer_equal(&member->peer, to)) {
            continue;
        }
        const uint64_t place = count < CARRIERS ? count : dp_rng_below(&mix->rng, count + 1U);
        if (place < CARRIERS) {
            carriers[place] = i;
        }
        count++;
    }
    return count < CARRIERS ? count : CARRIERS;
}

static void carry(dp_mix *mix, const dp_mix_msg *msg, const dp_peer *to, dp_out *out)
{
    const dp_crypto *const crypto = &mix->config.crypto;
    uint8_t plain[DP_MIX_MESSAGE_MAX];
    uint8_t sealed[DP_MIX_SIGNED_MAX];
    uint8_t room[MIX_SIGNED_PART_MAX];
    uint8_t relay[DP_RELAY_HEAD_BYTES + DP_MIX_SIGNED_MAX];
    uint32_t carriers[CARRIERS];
    dp_writer inner = dp_writer_of(plain, sizeof plain);
    dp_writer middle = dp_writer_of(sealed, sizeof sealed);
    dp_writer outer = dp_writer_of(relay, sizeof relay);
    dp_mix_signed word = {.author = mix->config.self};

    dp_mix_msg_write(&inner, msg);
    word.message = dp_view_of(plain, inner.size);
    const uint32_t n = choose_carriers(mix, to, carriers);
    if (n == 0 || !crypto->sign(crypto->context, DP_KEY_IDENTITY, mix_domain,
                                signed_part(mix, to, word.message, room), word.signature)) {
        return; /* It is said again later. */
    }
    dp_mix_signed_write(&middle, &word);
    dp_wire_write_relay(&outer, 1, to, dp_view_of(sealed, middle.size));
    dp_assert(!outer.full);
    const dp_view kept = dp_out_keep(out, dp_view_of(relay, outer.size));
    for (uint32_t i = 0; i < n; i++) {
        dp_out_send(out, &dp_members_at(mix->config.members, carriers[i])->peer, kept);
    }
}

void dp_mix_tell(dp_mix *mix, const dp_mix_msg *msg, const dp_peer *to, dp_out *out)
{
    const uint32_t index = dp_members_find(mix->config.members, to);
    const bool linked =
        index != DP_MEMBER_NONE && dp_members_at(mix->config.members, index)->linked;
    const bool unanswered = msg->type == DP_MSG_MIX_COMMIT && mix->state == DP_MIX_ASKED &&
                            mix->retries >= UNANSWERED_RETRIES;

    dp_assert(msg != NULL && to != NULL);
    if (linked) {
        dp_mix_msg_send(msg, to, out);
    }
    if (dp_mix_may_carry(msg->type) && (!linked || unanswered || mix->via != DP_MEMBER_NONE)) {
        carry(mix, msg, to, out);
    }
}

dp_status dp_mix_carried(dp_mix *mix, dp_time now, uint32_t via, dp_view bytes, dp_out *out)
{
    uint8_t room[MIX_SIGNED_PART_MAX];
    dp_mix_signed word;

    dp_assert(via < mix->config.members_max);
    DP_TRY(dp_mix_signed_read(bytes, &word));
    const uint32_t author = dp_members_find(mix->config.members, &word.author);
    if (author == DP_MEMBER_NONE || author == 0 ||
        !dp_members_at(mix->config.members, author)->in_roster) {
        return DP_DENIED;
    }
    if (!mix->config.crypto.verify(mix->config.crypto.context, word.author.bytes, mix_domain,
                                   signed_part(mix, &mix->config.self, word.message, room),
                                   word.signature)) {
        return DP_BADSIG;
    }
    mix->via = via;
    const dp_status status = dp_mix_message(mix, now, author, word.message, out);
    mix->via = DP_MEMBER_NONE;
    return status;
}
