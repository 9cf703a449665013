/* Nodes of one run, made now: identities and credentials as invites give them, and a transport with
 * its ears open. */
#ifndef DP_TESTS_UNIT_DAEMON_PARTY_H
#define DP_TESTS_UNIT_DAEMON_PARTY_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/net/transport.h"
#include "gossip/identity/cert.h"
#include "gossip/identity/invite.h"
#include "tests/unit/daemon/turn.h"

enum { PARTY_GUESTS = 3, PARTY_EPOCH = 3 };

struct party {
    dp_run_id run;
    dp_sign_key root;
    uint8_t join_secret[DP_JOIN_SECRET_BYTES];
    dp_identity identities[PARTY_GUESTS];
    uint8_t credentials[PARTY_GUESTS][DP_CREDENTIAL_BYTES_MAX];
    size_t credential_bytes[PARTY_GUESTS];
};

/* One guest with its transport and the calls of its hooks. */
struct guest {
    uv_loop_t *loop;
    dp_transport *transport;
    uint16_t port;
    dp_peer peer;
    unsigned ups;
    unsigned downs;
    unsigned refusals;
    unsigned messages;
    unsigned drains;
    int64_t clock_ms; /* its clock is so far ahead */
    unsigned met;     /* clocks of those who had proved who they are ... */
    unsigned met_refused;
    unsigned met_unknown; /* ... and of others */
    uint64_t met_ms;
    bool wants_no_link;
    bool knows_nobody;    /* of its chain: all are guests */
    bool reads_its_store; /* so it does not know who is one */
    dp_link_cause last_cause;
    dp_peer last_peer;
    dp_addr last_addr;
    bool last_outgoing;
    size_t hello_bytes;
    size_t credential_bytes;
    uint64_t bytes;
    dp_hash last_hash;
    void (*on_message)(struct guest *guest); /* may be NULL */
};

static inline dp_entropy party_entropy(uint8_t number)
{
    dp_entropy entropy;
    for (unsigned i = 0; i < sizeof entropy.bytes; i++) {
        entropy.bytes[i] = (uint8_t)(number * 37U + i * 11U + 5U);
    }
    return entropy;
}

static inline uint64_t party_now_ms(void)
{
    uv_timeval64_t now;
    assert_int_equal(uv_gettimeofday(&now), 0);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_usec / 1000;
}

static inline void party_invite(struct party *party, int number)
{
    const dp_entropy entropy = party_entropy((uint8_t)(number + 50));
    const dp_invite_request request = {
        .run = &party->run,
        .root = party->root.public_key,
        .join_secret = party->join_secret,
        .psk_epoch = PARTY_EPOCH,
        .issuer = &party->identities[0].ed,
        .issuer_credential = dp_view_of(party->credentials[0], party->credential_bytes[0]),
        .caps = DP_CAP_TRAIN | DP_CAP_VOTE | DP_CAP_SERVE,
        .uses = 1,
        .not_before_ms = party_now_ms() - 1000,
        .not_after_ms = party_now_ms() + 3600 * 1000,
        .name = "kjv",
    };
    dp_invite invite;
    CHECK_OK(dp_invite_make(&request, &entropy, &invite, NULL));
    CHECK_OK(dp_invite_redeem(&invite, &party->identities[number], entropy.bytes, party_now_ms(),
                              24 * 3600 * 1000, party->credentials[number],
                              &party->credential_bytes[number]));
    dp_invite_close(&invite);
}

/* Guest 0 is the founder. Made once per process; libuv must not be killed by broken pipes. */
static inline struct party *party_of(void)
{
    static struct party party;
    const dp_entropy entropy = party_entropy(200);
    if (party.credential_bytes[0] != 0) {
        return &party;
    }
    signal(SIGPIPE, SIG_IGN);
    CHECK_OK(dp_crypto_start());
    party.run = dp_hash_of("test", dp_view_text("a run"));
    memcpy(party.join_secret, entropy.bytes, sizeof party.join_secret);
    dp_sign_key_of_seed(entropy.bytes + 32, &party.root);
    for (int i = 0; i < PARTY_GUESTS; i++) {
        const dp_entropy seed = party_entropy((uint8_t)(i + 1));
        dp_identity_of_seed(&seed, &party.identities[i]);
    }
    dp_founder_credential(&party.root, &party.run, &party.identities[0], entropy.bytes,
                          party_now_ms() - 2000, party.credentials[0]);
    party.credential_bytes[0] = DP_CERT_BYTES;
    for (int i = 1; i < PARTY_GUESTS; i++) {
        party_invite(&party, i);
    }
    return &party;
}

static inline void guest_up(void *context, const dp_peer *peer, const dp_addr *addr,
                            dp_view credential, dp_view hello, bool outgoing)
{
    struct guest *guest = context;
    CHECK(addr->port != 0);
    guest->ups++;
    guest->last_peer = *peer;
    guest->last_addr = *addr;
    guest->last_outgoing = outgoing;
    guest->hello_bytes = hello.size;
    guest->credential_bytes = credential.size;
}

static inline void guest_down(void *context, const dp_peer *peer, dp_link_cause cause)
{
    struct guest *guest = context;
    guest->downs += cause != DP_LINK_REFUSED;
    guest->refusals += cause == DP_LINK_REFUSED;
    guest->last_cause = cause;
    guest->last_peer = *peer;
}

static inline void guest_message(void *context, const dp_peer *peer, dp_view bytes)
{
    struct guest *guest = context;
    guest->messages++;
    guest->bytes += bytes.size;
    guest->last_peer = *peer;
    guest->last_hash = dp_hash_of("test", bytes);
    if (guest->on_message != NULL) {
        guest->on_message(guest);
    }
}

static inline void guest_drained(void *context, const dp_peer *peer)
{
    struct guest *guest = context;
    (void)peer;
    guest->drains++;
}

static inline bool guest_knows(void *context, const dp_peer *peer, uint8_t x_public[32])
{
    const struct guest *guest = context;
    (void)peer;
    (void)x_public;
    return !guest->knows_nobody;
}

static inline bool guest_counts_as_guest(void *context, const dp_peer *peer)
{
    const struct guest *guest = context;
    (void)peer;
    return guest->knows_nobody || guest->reads_its_store;
}

static inline bool guest_met(void *context, const dp_peer *peer, const dp_addr *addr,
                             uint64_t peer_ms, bool refused)
{
    struct guest *guest = context;
    CHECK(addr->port != 0);
    guest->met += peer != NULL;
    guest->met_refused += peer != NULL && refused;
    guest->met_unknown += peer == NULL;
    guest->met_ms = peer_ms;
    return !guest->wants_no_link;
}

static inline uint64_t guest_wall(void *context)
{
    const struct guest *guest = context;
    return party_now_ms() + (uint64_t)guest->clock_ms;
}

static inline dp_transport_config guest_config(struct guest *guest, uv_loop_t *loop, int number,
                                               uint64_t incarnation)
{
    const struct party *party = party_of();
    dp_transport_config config = {
        .loop = loop,
        .run = party->run,
        .psk = {.epoch = PARTY_EPOCH},
        .identity = &party->identities[number],
        .credential = dp_view_of(party->credentials[number], party->credential_bytes[number]),
        .hello = dp_view_text("hello"),
        .incarnation = incarnation,
        .n_threads = 2,
        .hooks = {guest, guest_up, guest_down, guest_message, guest_drained, guest_knows,
                  guest_counts_as_guest, guest_met, guest_wall},
    };
    memcpy(config.root, party->root.public_key, sizeof config.root);
    dp_psk_derive(party->join_secret, &party->run, PARTY_EPOCH, config.psk.key);
    return config;
}

static inline void guest_open_as(struct guest *guest, const dp_transport_config *config)
{
    dp_why why = {""};
    guest->loop = config->loop;
    guest->peer = dp_identity_peer(config->identity);
    CHECK_OK(dp_transport_open(&guest->transport, config));
    CHECK_OK(dp_transport_listen(guest->transport, "127.0.0.1:0", &guest->port, &why));
    CHECK(guest->port != 0);
}

static inline void guest_open(struct guest *guest, uv_loop_t *loop, int number,
                              uint64_t incarnation)
{
    memset(guest, 0, sizeof *guest);
    const dp_transport_config config = guest_config(guest, loop, number, incarnation);
    guest_open_as(guest, &config);
}

static inline void guest_close(struct guest *guest)
{
    dp_transport_close(guest->transport);
    guest->transport = NULL;
}

static inline dp_addr guest_addr(const struct guest *guest)
{
    return (dp_addr){.family = 4, .ip = {127, 0, 0, 1}, .port = guest->port};
}

static inline void guest_dial(struct guest *from, const struct guest *to)
{
    const dp_addr addr = guest_addr(to);
    dp_transport_dial(from->transport, &to->peer, &addr, 1);
}

static inline dp_transport_stats guest_stats(const struct guest *guest)
{
    dp_transport_stats stats;
    dp_transport_look(guest->transport, &stats);
    return stats;
}

struct two {
    struct guest *a;
    struct guest *b;
};

/* Both sides have both lanes. */
static inline bool two_linked(void *context)
{
    const struct two *two = context;
    return dp_transport_bulk_waiting(two->a->transport, &two->b->peer) != UINT64_MAX &&
           dp_transport_bulk_waiting(two->b->transport, &two->a->peer) != UINT64_MAX;
}

static inline void party_link(struct guest *a, struct guest *b)
{
    struct two two = {a, b};
    guest_dial(a, b);
    turn_until(a->loop, two_linked, &two);
}

#endif
