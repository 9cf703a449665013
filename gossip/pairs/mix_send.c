/* Messages of the exchange under way: offer, acceptance, commit, status. */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "gossip/ledger/weights.h"
#include "gossip/pairs/mix.h"
#include "gossip/pairs/mix_internal.h"

void dp_mix_send_status(dp_mix *mix, const dp_peer *to, const dp_mix_id *id, uint64_t ticket,
                        dp_mix_status status, dp_out *out)
{
    dp_mix_tell(
        mix,
        &(dp_mix_msg){.type = DP_MSG_MIX_STATUS, .id = *id, .ticket = ticket, .status = status}, to,
        out);
}

void dp_mix_send_offer(const dp_mix *mix, dp_out *out)
{
    dp_mix_msg_send(&(dp_mix_msg){.type = DP_MSG_MIX_OFFER,
                                  .id = mix->x.id,
                                  .number = mix->x.number,
                                  .base = mix->x.base,
                                  .terms = mix->x.own},
                    &mix->x.peer, out);
}

void dp_mix_send_ack(const dp_mix *mix, dp_out *out)
{
    dp_mix_msg ack = {.type = DP_MSG_MIX_ACK,
                      .id = mix->x.id,
                      .ticket = mix->x.ticket,
                      .prepared = mix->state == DP_MIX_PREPARED,
                      .base = mix->x.base,
                      .terms = mix->x.own};

    dp_fence_ask word = {
        .fence = {.peer = mix->config.self, .incarnation = mix->config.incarnation},
        .asker = mix->x.peer};
    memcpy(word.exchange, mix->x.id.bytes, sizeof word.exchange);
    if (dp_life_sign(&word, &mix->config.crypto, &mix->config.run)) {
        memcpy(ack.life, word.signature, sizeof ack.life);
    } /* Without a key nobody takes its ACK. */
    dp_mix_msg_send(&ack, &mix->x.peer, out);
}

/* COMMIT of a, DONE of b. */
void dp_mix_send_pair(dp_mix *mix, const dp_mix_row *row, dp_msg_type type, dp_out *out)
{
    dp_mix_tell(
        mix,
        &(dp_mix_msg){
            .type = type, .id = row->id, .ticket = row->ticket, .pair = dp_mix_pair_of(row)},
        &row->peer, out);
}
