/* Handling of each message of an exchange. */
#include <string.h>

#include "base/assert.h"
#include "gossip/pairs/mix_internal.h"

/* Only work that moves away from the same state can be averaged (SAFETY C5). */
static bool same_base(const dp_hash *a, const dp_hash *b)
{
    return dp_hash_equal(a, b) || dp_broken(35);
}

/* a offers anew: it has no use for outcomes of its earlier offers. True: this offer is itself older
 * than such an outcome. */
static bool outcomes_older(dp_mix *mix, const dp_peer *peer, const dp_mix_msg *msg, dp_out *out)
{
    bool stale = false;

    for (uint32_t i = mix->n_outcomes; i-- > 0;) {
        const dp_mix_row *const row = &mix->outcomes[i];
        if (!dp_peer_equal(&row->peer, peer)) {
            continue;
        }
        const bool older =
            row->other.incarnation < msg->terms.incarnation ||
            (row->other.incarnation == msg->terms.incarnation && row->number < msg->number);
        if (older && !(mix->state == DP_MIX_MIXING && dp_mix_id_equal(&mix->x.id, &row->id))) {
            dp_mix_outcome_close(mix, i, out);
        } else if (!older) {
            stale = true;
        }
    }
    return stale;
}

static void on_offer(dp_mix *mix, dp_time now, uint32_t from, const dp_mix_msg *msg, dp_out *out)
{
    const dp_member *const member = dp_members_at(mix->config.members, from);
    const dp_mix_id id = dp_mix_id_of(&member->peer, msg->terms.incarnation, msg->number);

    dp_assert(from < mix->config.members_max);
    if (!dp_mix_id_equal(&id, &msg->id)) {
        return;
    }
    if (mix->state != DP_MIX_IDLE && dp_mix_id_equal(&mix->x.id, &msg->id)) {
        if (mix->state == DP_MIX_FETCHING || mix->state == DP_MIX_PREPARED) {
            dp_mix_send_ack(mix, out);
        }
        return;
    }
    if (outcomes_older(mix, &member->peer, msg, out)) {
        return;
    }
    /* Prepared before, and ended: F stands on that row, which another attempt under its name would
     * overwrite. a begins a new one when it hears this. */
    if (mix->has_f && dp_mix_id_equal(&mix->f.id, &msg->id)) {
        dp_mix_send_status(mix, &member->peer, &msg->id, 0, DP_MIX_STATUS_ABORTED, out);
        return;
    }
    /* Node a has left the exchange that this node was about to begin with it. */
    if (mix->state != DP_MIX_IDLE && !mix->x.initiator &&
        dp_peer_equal(&mix->x.peer, &member->peer) &&
        (mix->x.other.incarnation < msg->terms.incarnation || mix->x.number < msg->number)) {
        dp_mix_want_abort(mix, now, false, out);
    }
    /* Two offers that cross: the one of the smaller key stands. */
    if (mix->x.initiator && (mix->state == DP_MIX_FREEZING || mix->state == DP_MIX_OFFERED) &&
        dp_peer_equal(&mix->x.peer, &member->peer) &&
        dp_peer_compare(&member->peer, &mix->config.self) < 0) {
        dp_mix_abort(mix, now, true, out);
    }
    if (!dp_mix_may_begin(mix) || !dp_mix_is_partner(mix, from) ||
        member->incarnation != msg->terms.incarnation || !same_base(&msg->base, &mix->now.base) ||
        mix->n_outcomes == DP_MIX_OUTCOMES_MAX ||
        dp_mix_refuse(mix, from, &msg->terms, out) != NULL) {
        dp_mix_send_status(mix, &member->peer, &msg->id, 0, DP_MIX_STATUS_ABORTED, out);
        return;
    }
    mix->x = (dp_mix_row){.has_f = true,
                          .id = msg->id,
                          .order = ++mix->order,
                          .number = msg->number,
                          .ticket = ++mix->ticket,
                          .peer = member->peer,
                          .base = mix->now.base,
                          .own = {.incarnation = mix->config.incarnation},
                          .other = msg->terms};
    mix->seen[from] = now;
    dp_mix_freeze(mix, now, out);
}

static void on_ack(dp_mix *mix, dp_time now, uint32_t from, const dp_mix_msg *msg, dp_out *out)
{
    const dp_peer *const peer = &dp_members_at(mix->config.members, from)->peer;
    const bool ours = mix->state != DP_MIX_IDLE && mix->x.initiator &&
                      dp_mix_id_equal(&mix->x.id, &msg->id) && dp_peer_equal(&mix->x.peer, peer);

    dp_assert(from < mix->config.members_max);
    if (ours && mix->state == DP_MIX_OFFERED) {
        dp_fence_ask life = {.fence = {.peer = *peer, .incarnation = msg->terms.incarnation},
                             .asker = mix->config.self};
        memcpy(life.exchange, mix->x.id.bytes, sizeof life.exchange);
        memcpy(life.signature, msg->life, sizeof life.signature);
        if (!dp_life_verify(&life, &mix->config.crypto, &mix->config.run)) {
            /* The voters could not be shown the node to fence, if it never answers again. */
            return;
        }
        mix->x.ticket = msg->ticket;
        mix->x.other = msg->terms;
        memcpy(mix->x.life, msg->life, sizeof mix->x.life);
        if (!same_base(&msg->base, &mix->x.base) || !dp_mix_weighs(&mix->x) ||
            dp_mix_refuse(mix, from, &msg->terms, out) != NULL) {
            dp_mix_abort(mix, now, true, out);
            return;
        }
        mix->other_prepared = msg->prepared;
        dp_mix_start_fetch(mix, now, out);
        return;
    }
    if (!ours || mix->state == DP_MIX_FREEZING || msg->ticket != mix->x.ticket ||
        !dp_hash_equal(&msg->terms.root, &mix->x.other.root) ||
        msg->terms.incarnation != mix->x.other.incarnation) {
        /* An attempt that we gave up, or that the other began anew: it must not wait for our
         * COMMIT. */
        dp_mix_send_status(mix, peer, &msg->id, msg->ticket, DP_MIX_STATUS_ABORTED, out);
        return;
    }
    mix->other_prepared = mix->other_prepared || msg->prepared;
    if (msg->prepared && mix->state == DP_MIX_PREPARED) {
        dp_mix_ask(mix, now, out);
    }
}

static void on_commit(dp_mix *mix, dp_time now, const dp_peer *peer, const dp_mix_msg *msg,
                      dp_out *out)
{
    const uint32_t outcome = dp_mix_outcome_find(mix, &msg->id);

    if (outcome < mix->n_outcomes && dp_peer_equal(&mix->outcomes[outcome].peer, peer) &&
        mix->outcomes[outcome].ticket == msg->ticket) {
        dp_mix_send_pair(mix, &mix->outcomes[outcome], DP_MSG_MIX_DONE, out);
        return;
    }
    if (mix->state != DP_MIX_IDLE && !mix->x.initiator && dp_mix_id_equal(&mix->x.id, &msg->id) &&
        dp_peer_equal(&mix->x.peer, peer) && mix->x.ticket == msg->ticket) {
        const dp_mix_pair pair = dp_mix_pair_of(&mix->x);
        if (mix->state == DP_MIX_COMMITTING) {
            return; /* DONE follows the row */
        }
        if (mix->state == DP_MIX_PREPARED && dp_mix_pair_equal(&pair, &msg->pair)) {
            dp_mix_enter(mix, DP_MIX_COMMITTING, now);
            dp_mix_write_row(mix, DP_MIX_MARK_COMMITTED, out);
            return;
        }
        /* The COMMIT names other blobs or incarnations than this node has prepared, or this node
         * has not prepared yet: this attempt will not be committed. */
        dp_mix_want_abort(mix, now, false, out);
    }
    dp_mix_send_status(mix, peer, &msg->id, msg->ticket, DP_MIX_STATUS_ABORTED, out);
}

static void on_done(dp_mix *mix, dp_time now, const dp_peer *peer, const dp_mix_msg *msg,
                    dp_out *out)
{
    if (mix->state != DP_MIX_IDLE && mix->x.initiator && dp_mix_id_equal(&mix->x.id, &msg->id)) {
        const dp_mix_pair pair = dp_mix_pair_of(&mix->x);
        if (mix->state == DP_MIX_ASKED && dp_peer_equal(&mix->x.peer, peer) &&
            mix->x.ticket == msg->ticket && dp_mix_pair_equal(&pair, &msg->pair)) {
            dp_mix_enter(mix, DP_MIX_COMMITTING, now);
            dp_mix_write_row(mix, DP_MIX_MARK_DONE, out);
        }
        if (mix->state != DP_MIX_MIXING) {
            return;
        }
    }
    /* Our row says DONE, or we have none and shall never ask: the other may forget. */
    dp_mix_send_status(mix, peer, &msg->id, msg->ticket, DP_MIX_STATUS_CLOSED, out);
}

static void on_status(dp_mix *mix, dp_time now, const dp_peer *peer, const dp_mix_msg *msg,
                      dp_out *out)
{
    if (msg->status == DP_MIX_STATUS_CLOSED) {
        const uint32_t outcome = dp_mix_outcome_find(mix, &msg->id);
        if (outcome < mix->n_outcomes && dp_peer_equal(&mix->outcomes[outcome].peer, peer) &&
            mix->outcomes[outcome].ticket == msg->ticket) {
            dp_mix_outcome_close(mix, outcome, out);
        }
        return;
    }
    if (mix->state == DP_MIX_IDLE || !dp_mix_id_equal(&mix->x.id, &msg->id) ||
        !dp_peer_equal(&mix->x.peer, peer)) {
        return;
    }
    if (mix->state == DP_MIX_ASKED) {
        if (msg->ticket == mix->x.ticket) {
            dp_mix_abort(mix, now, false, out); /* b has decided */
        }
        return;
    }
    /* A word about an earlier acceptance (another ticket) is no word about this one. */
    if (mix->x.initiator || msg->ticket == 0 || msg->ticket == mix->x.ticket) {
        dp_mix_want_abort(mix, now, false, out);
    }
}

dp_status dp_mix_message(dp_mix *mix, dp_time now, uint32_t from, dp_view bytes, dp_out *out)
{
    dp_assert(from < mix->config.members_max);
    dp_assert(from > 0 && from < dp_members_count(mix->config.members));
    const dp_peer *const peer = &dp_members_at(mix->config.members, from)->peer;
    dp_mix_msg msg;

    DP_TRY(dp_mix_msg_read(bytes, &msg));
    if (!mix->started) {
        return DP_AGAIN;
    }
    if (msg.type == DP_MSG_MIX_OFFER) {
        on_offer(mix, now, from, &msg, out);
    } else if (msg.type == DP_MSG_MIX_ACK) {
        on_ack(mix, now, from, &msg, out);
    } else if (msg.type == DP_MSG_MIX_COMMIT) {
        on_commit(mix, now, peer, &msg, out);
    } else if (msg.type == DP_MSG_MIX_DONE) {
        on_done(mix, now, peer, &msg, out);
    } else {
        on_status(mix, now, peer, &msg, out);
    }
    return DP_OK;
}
