/* A member that lies about others, replays messages, floods, and invents peers. It may sign as
 * itself and as peers that it invented, never as an existing host. */
#include <string.h>

#include "base/assert.h"
#include "gossip/core/msg.h"
#include "gossip/ledger/harm.h"
#include "gossip/member/heartbeat.h"
#include "gossip/member/statement.h"
#include "gossip/record/wire.h"
#include "gossip/requests/request_msg.h"
#include "gossip/round/round_msg.h"
#include "gossip/vote/commit_msg.h"
#include "tests/sim/evil.h"

enum { FLOOD_MESSAGES = 40 };

static uint8_t room[DP_MESSAGE_MAX + 64];

static uint32_t anybody(dp_sim *sim)
{
    return (uint32_t)dp_evil_below(sim, sim->plan.nodes);
}

/* ---- statements ---- */

static void say_statement(dp_host *host, uint32_t to, const dp_statement *statement,
                          dp_view credential)
{
    const dp_crypto crypto = dp_sim_crypto(host);
    uint8_t bytes[DP_STATEMENT_BYTES_MAX];
    dp_writer w = dp_writer_of(room, sizeof room);
    const size_t size = dp_statement_sign(statement, &crypto, &host->sim->run, bytes);

    dp_write_u8(&w, DP_MSG_STATEMENT);
    dp_write_u8(&w, DP_MSG_VERSION);
    dp_write_bytes(&w, bytes, size);
    dp_write_u16(&w, (uint16_t)credential.size);
    dp_write_view(&w, credential);
    dp_evil_say(host, to, dp_view_of(room, w.size));
}

static dp_statement about(dp_host *host, uint32_t victim)
{
    dp_sim *sim = host->sim;
    dp_statement s = {.subject = sim->hosts[victim].peer, .author = host->peer, .incarnation = 1};
    dp_member_view view;

    if (dp_host_up(&sim->hosts[victim]) && dp_node_member(sim->hosts[victim].node, 0, &view)) {
        s.incarnation = view.incarnation;
    }
    s.revision = (uint32_t)dp_evil_below(sim, dp_evil_below(sim, 2) == 0 ? 2 : 40);
    return s;
}

/* Sends to all a suspicion or a death without a reason. */
static void accuse(dp_host *host)
{
    dp_sim *sim = host->sim;
    dp_statement s = about(host, anybody(sim));

    s.kind = dp_evil_below(sim, 2) == 0 ? DP_STATEMENT_SUSPECT : DP_STATEMENT_DEAD;
    s.cause = dp_evil_below(sim, 2) == 0 ? DP_CAUSE_RESET : DP_CAUSE_SILENCE;
    for (uint32_t revision = 0; revision < 8; revision++) {
        s.revision = revision; /* One of them is the present incarnation, or close to it. */
        for (uint32_t to = 0; to < sim->plan.nodes; to++) {
            say_statement(host, to, &s, (dp_view){0});
        }
    }
}

/* Statements in the name of another, with a wrong signature: it lives again, has left, or has
 * stopped. */
static void forge(dp_host *host)
{
    dp_sim *sim = host->sim;
    dp_statement s = about(host, anybody(sim));

    s.kind = (dp_statement_kind[]){DP_STATEMENT_ALIVE, DP_STATEMENT_LEFT,
                                   DP_STATEMENT_DOWN}[dp_evil_below(sim, 3)];
    s.author = s.subject;
    s.incarnation += 1 + dp_evil_below(sim, 1000000);
    say_statement(host, anybody(sim), &s, (dp_view){0});
}

/* Announces its own name with the addresses of others. */
static void redirect(dp_host *host)
{
    dp_sim *sim = host->sim;
    dp_statement s = about(host, host->index);

    s.kind = DP_STATEMENT_ALIVE;
    s.revision = (uint32_t)dp_evil_below(sim, 1000);
    s.n_addrs = DP_ADDRS_MAX;
    for (uint32_t i = 0; i < s.n_addrs; i++) {
        const uint32_t victim = anybody(sim);
        s.addrs[i] = (dp_addr){.family = 4, .port = 1};
        memcpy(s.addrs[i].ip, &victim, sizeof victim);
    }
    say_statement(host, anybody(sim), &s, (dp_view){0});
}

/* Peers that do not exist, with its own credential, a truncated one, or one with an invalid tag. */
static void invent(dp_host *host)
{
    dp_sim *sim = host->sim;
    uint8_t credential[DP_SIM_CREDENTIAL_BYTES];
    dp_statement s = {.kind = DP_STATEMENT_ALIVE, .incarnation = 1};
    dp_host mask = *host; /* signs with the invented name */

    for (uint32_t i = 0; i < sizeof s.subject.bytes; i++) {
        s.subject.bytes[i] = (uint8_t)dp_evil_below(sim, 256);
    }
    s.author = s.subject;
    mask.peer = s.subject;
    dp_sim_credential(sim, host->index, credential);
    if (dp_evil_below(sim, 2) == 0) {
        memcpy(credential, s.subject.bytes, sizeof s.subject.bytes);
    }
    say_statement(&mask, anybody(sim), &s,
                  dp_view_of(credential, sizeof credential - dp_evil_below(sim, 2)));
}

/* ---- what others said, again ---- */

static dp_packet *overheard(dp_sim *sim)
{
    const uint32_t n =
        sim->evil->n_heard < DP_EVIL_HEARD_MAX ? sim->evil->n_heard : DP_EVIL_HEARD_MAX;

    return n == 0 ? NULL : sim->evil->heard[dp_evil_below(sim, n)];
}

static void repeat(dp_host *host, bool relayed)
{
    dp_sim *sim = host->sim;
    const dp_packet *packet = overheard(sim);
    const uint32_t to = anybody(sim);
    dp_writer w = dp_writer_of(room, sizeof room);

    if (packet == NULL || packet->size + DP_RELAY_HEAD_BYTES > DP_MESSAGE_MAX) {
        return;
    }
    if (relayed) {
        dp_wire_write_relay(&w, (uint8_t)dp_evil_below(sim, 256), &sim->hosts[anybody(sim)].peer,
                            dp_view_of(packet->data, packet->size));
    } else {
        dp_write_bytes(&w, packet->data, packet->size);
    }
    dp_evil_say(host, to, dp_view_of(room, w.size));
}

/* Flips bits, truncates, or appends bytes; the first bytes often contain counts. */
static void mangle(dp_host *host)
{
    dp_sim *sim = host->sim;
    const dp_packet *packet = overheard(sim);

    if (packet == NULL || packet->size == 0 || packet->size > DP_MESSAGE_MAX) {
        return;
    }
    size_t size = packet->size;
    memcpy(room, packet->data, size);
    for (uint64_t i = 1 + dp_evil_below(sim, 6); i > 0; i--) {
        const size_t at = dp_evil_below(sim, 2) == 0 && size > 16 ? dp_evil_below(sim, 16)
                                                                  : dp_evil_below(sim, size);
        room[at] = (uint8_t)dp_evil_below(sim, 256);
    }
    if (dp_evil_below(sim, 3) == 0) {
        size = dp_evil_below(sim, size + 1);
    } else if (dp_evil_below(sim, 3) == 0) {
        memset(room + size, (int)dp_evil_below(sim, 256), 64);
        size += 1 + dp_evil_below(sim, 64);
    }
    if (size > 0) {
        dp_evil_say(host, anybody(sim), dp_view_of(room, size));
    }
}

/* ---- wishes and votes ---- */

static void wish(dp_host *host)
{
    dp_sim *sim = host->sim;
    const dp_crypto crypto = dp_sim_crypto(host);
    dp_writer w = dp_writer_of(room, sizeof room);
    const uint64_t what = dp_evil_below(sim, 6);
    const dp_peer victim = sim->hosts[anybody(sim)].peer;

    if (what == 0) { /* A fence against every possible incarnation of the victim. */
        /* ... or against the present one, with its own message in place of the victim's, or with
         * random bytes. */
        dp_fence_ask ask = {.fence = {.peer = victim, .incarnation = UINT64_MAX},
                            .asker = host->peer,
                            .signature = {1}};
        if (dp_evil_below(sim, 2) == 0) {
            ask.fence.incarnation = 1 + dp_evil_below(sim, 4);
            dp_assert(dp_life_sign(&ask, &crypto, &sim->run));
        }
        dp_fence_msg_write(&w, &ask);
    } else if (what == 1) {
        dp_remove remove = {.peer = victim, .reason = DP_REMOVE_LEFT, .incarnation = 1};
        remove.reason = dp_evil_below(sim, 2) == 0 ? DP_REMOVE_LEFT : DP_REMOVE_REVOKED;
        dp_assert(dp_remove_sign(&remove, &crypto, DP_KEY_IDENTITY, &sim->run));
        dp_remove_msg_write(&w, &remove);
    } else if (what == 2) { /* Claims that a voter holds the object that was announced last. */
        dp_have_msg have = {.voter = victim, .round = dp_oracle_rounds(sim) + 1, .n = 1};
        have.roots[0] = sim->evil->ready.root;
        dp_have_msg_write(&w, &have);
    } else if (what == 3) { /* A decision far ahead, without a certificate. */
        dp_write_u8(&w, DP_MSG_DECIDE);
        dp_write_u8(&w, DP_MSG_VERSION);
        dp_write_u64(&w, dp_oracle_slots(sim) + dp_evil_below(sim, UINT32_MAX));
        dp_write_u16(&w, 5);
        dp_write_bytes(&w, "certificate", 11);
    } else if (what == 4) { /* An accusation of harm in the name of a voter. */
        dp_harm harm = {.accused = victim,
                        .round = dp_oracle_rounds(sim) + dp_evil_below(sim, 2),
                        .voter = sim->hosts[anybody(sim)].peer,
                        .signature = {1}};
        if (dp_evil_below(sim, 2) == 0) {
            dp_assert(dp_harm_sign(&harm, &crypto, &sim->run, &(dp_hash){{0}}));
        }
        dp_harm_write(&w, &harm);
    } else { /* Proof against an honest voter, signed by the accuser. */
        dp_vote a = {.type = DP_MSG_ACCEPTED, .slot = dp_oracle_slots(sim) + 1};
        a.voter = (uint8_t)dp_evil_below(sim, DP_VOTERS_MAX);
        dp_vote b = a;
        b.hash.bytes[0] = 1;
        dp_assert(dp_vote_sign(&a, &crypto, &sim->run) && dp_vote_sign(&b, &crypto, &sim->run));
        b.signature[0] ^= 1; /* Or it would convict itself, where it votes. */
        dp_proof_msg_write(&w, &a, &b);
    }
    dp_evil_say(host, anybody(sim), dp_view_of(room, w.size));
}

/* An offer to vote in the name of a host that was never admitted. */
static void offer(dp_host *host)
{
    dp_sim *sim = host->sim;
    dp_host mask = *host;
    const dp_crypto crypto = dp_sim_crypto(&mask);
    dp_voter_ok_msg msg = {0};
    dp_node_view view;
    dp_writer w = dp_writer_of(room, sizeof room);

    if (!dp_host_up(host)) {
        return;
    }
    dp_node_look(host->node, &view);
    for (uint32_t i = 0; i < sizeof msg.peer.bytes; i++) {
        msg.peer.bytes[i] = (uint8_t)dp_evil_below(sim, 256);
    }
    mask.peer = msg.peer;
    msg.head = view.head;
    memcpy(msg.key, msg.peer.bytes, sizeof msg.key);
    dp_assert(dp_voter_ok_sign(&crypto, &sim->run, &msg.head, msg.key, msg.signature));
    dp_voter_ok_msg_write(&w, &msg);
    dp_evil_say(host, anybody(sim), dp_view_of(room, w.size));
}

void dp_evil_brag(dp_host *host, uint8_t *message, size_t size)
{
    enum { PING_SUMMARY_AT = 6, ACK_SUMMARY_AT = 39 };
    const uint8_t type = dp_msg_type_of(dp_view_of(message, size));
    const size_t at = type == DP_MSG_PING ? PING_SUMMARY_AT : ACK_SUMMARY_AT;
    uint8_t slot[8];
    dp_writer w = dp_writer_of(slot, sizeof slot);

    if ((type == DP_MSG_PING || type == DP_MSG_ACK) && size >= at + sizeof slot) {
        dp_write_u64(&w, dp_oracle_slots(host->sim) + 1000000);
        memcpy(message + at, slot, sizeof slot);
    }
}

void dp_evil_cheat(dp_host *host, uint8_t *message, size_t size)
{
    const uint8_t type = dp_msg_type_of(dp_view_of(message, size));

    if (type >= DP_MSG_MIX_OFFER && type <= DP_MSG_MIX_STATUS && dp_evil_below(host->sim, 3) == 0) {
        const size_t at = DP_MSG_HEAD_BYTES + dp_evil_below(host->sim, size - DP_MSG_HEAD_BYTES);
        message[at] ^= (uint8_t)(1U << dp_evil_below(host->sim, 8));
    }
}

/* ---- floods ---- */

static void flood(dp_host *host)
{
    dp_sim *sim = host->sim;
    const uint32_t to = anybody(sim);
    const uint64_t what = dp_evil_below(sim, 5);

    for (uint32_t i = 0; i < FLOOD_MESSAGES; i++) {
        dp_writer w = dp_writer_of(room, sizeof room);
        if (what == 0) {
            dp_wire_write_records_get(&w, 1, DP_RECORDS_PER_MESSAGE);
        } else if (what == 1) {
            dp_wire_write_info_get(&w, &sim->evil->ready.root);
        } else if (what == 2) {
            dp_wire_write_chunk_get(&w, &sim->evil->ready.root, (uint32_t)dp_evil_below(sim, 3));
        } else if (what == 3) {
            dp_wire_write_manifest_get(&w);
        } else {
            repeat(host, false);
            continue;
        }
        dp_evil_say(host, to, dp_view_of(room, w.size));
    }
}

void dp_evil_acts_member(dp_host *host)
{
    dp_sim *sim = host->sim;

    sim->totals.lies++;
    switch (dp_evil_below(sim, 12)) {
    case 0:
        accuse(host);
        break;
    case 1:
        forge(host);
        break;
    case 2:
        redirect(host);
        break;
    case 3:
        for (uint32_t i = 0; i < 8; i++) {
            invent(host);
        }
        break;
    case 4:
        repeat(host, true);
        break;
    case 5:
        repeat(host, false);
        break;
    case 6:
        for (uint32_t i = 0; i < 8; i++) {
            mangle(host);
        }
        break;
    case 7:
        wish(host);
        break;
    case 8:
        for (uint32_t i = 0; i < 8; i++) {
            offer(host);
        }
        break;
    case 9:
    case 10:
        dp_evil_forge(host);
        break;
    default:
        flood(host);
        break;
    }
}
