/* Cost of the secure channel on one core: whole handshakes, strangers refused, and records
 * sealed and opened with each suite of either library.
 * bench_channel [--json] [--seconds S]   S per figure, 1 if not given */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "bench/clock.h"
#include "daemon/net/aead.h"
#include "gossip/channel/channel.h"
#include "gossip/identity/invite.h"

enum { BULK_MESSAGE_BYTES = 1024 * 1024, OUT_BYTES_MAX = 2 * BULK_MESSAGE_BYTES };

/* A founder that listens, and a node that joins by its invite. */
struct world {
    dp_run_id run;
    dp_sign_key root;
    dp_identity founder;
    dp_identity node;
    uint8_t founder_credential[DP_CERT_BYTES];
    uint8_t node_credential[DP_CREDENTIAL_BYTES_MAX];
    size_t node_credential_bytes;
    dp_channel_config initiator;
    dp_channel_config responder;
    dp_buf to_responder;
    dp_buf to_initiator;
};

static struct world world;
static uint8_t payload[BULK_MESSAGE_BYTES];

/* CPU time, so that other processes have little influence. */
static dp_channel_config config_of(bool initiator, const dp_identity *identity, dp_view credential)
{
    dp_channel_config config = {
        .initiator = initiator,
        .lane = DP_LANE_BULK,
        .run = world.run,
        .n_psks = 1,
        .identity = identity,
        .credential = credential,
        .now_ms = 2000,
    };

    memcpy(config.root, world.root.public_key, sizeof config.root);
    memset(config.ephemeral, initiator ? 3 : 4, sizeof config.ephemeral);
    return config;
}

static void make_world(void)
{
    const dp_entropy seeds[3] = {{{1}}, {{2}}, {{3}}};
    dp_invite invite;

    dp_assert(dp_crypto_start() == DP_OK);
    dp_sign_key_of_seed(seeds[2].bytes, &world.root);
    dp_identity_of_seed(&seeds[0], &world.founder);
    dp_identity_of_seed(&seeds[1], &world.node);
    dp_founder_credential(&world.root, &world.run, &world.founder, seeds[0].bytes, 1000,
                          world.founder_credential);
    const dp_invite_request request = {
        .run = &world.run,
        .root = world.root.public_key,
        .join_secret = seeds[0].bytes,
        .issuer = &world.founder.ed,
        .issuer_credential = dp_view_of(world.founder_credential, DP_CERT_BYTES),
        .caps = DP_CAP_TRAIN,
        .not_before_ms = 1000,
        .not_after_ms = 100000,
        .name = "bench",
    };
    dp_assert(dp_invite_make(&request, &seeds[1], &invite, NULL) == DP_OK);
    dp_assert(dp_invite_redeem(&invite, &world.node, seeds[1].bytes, 2000, 100000,
                               world.node_credential, &world.node_credential_bytes) == DP_OK);
    world.initiator = config_of(true, &world.node,
                                dp_view_of(world.node_credential, world.node_credential_bytes));
    world.responder =
        config_of(false, &world.founder, dp_view_of(world.founder_credential, DP_CERT_BYTES));
    dp_buf_init(&world.to_responder, OUT_BYTES_MAX);
    dp_buf_init(&world.to_initiator, OUT_BYTES_MAX);
}

/* Passes all bytes of from to the channel; returns the type of the last event. */
static dp_channel_event_type deliver(dp_channel *channel, dp_buf *from, dp_buf *answer)
{
    dp_channel_event event = {.type = DP_CHANNEL_NOTHING};
    size_t consumed = 0;

    dp_assert(dp_channel_read(channel, dp_buf_view(from), &consumed, answer, &event) == DP_OK);
    dp_assert(consumed == from->size);
    dp_buf_clear(from);
    return event.type;
}

static void shake_hands(dp_channel *initiator, dp_channel *responder)
{
    dp_assert(dp_channel_init(responder, &world.responder, NULL) == DP_OK);
    dp_assert(dp_channel_init(initiator, &world.initiator, &world.to_responder) == DP_OK);
    deliver(responder, &world.to_responder, &world.to_initiator);
    dp_assert(deliver(initiator, &world.to_initiator, &world.to_responder) ==
              DP_CHANNEL_HANDSHAKE_DONE);
    dp_assert(deliver(responder, &world.to_responder, &world.to_initiator) ==
              DP_CHANNEL_HANDSHAKE_DONE);
}

static double handshakes_per_s(double seconds)
{
    dp_channel initiator;
    dp_channel responder;
    const double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    unsigned count = 0;

    while (bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start < seconds) {
        shake_hands(&initiator, &responder);
        dp_channel_close(&initiator);
        dp_channel_close(&responder);
        count++;
    }
    return count / (bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start);
}

static double refusals_per_s(double seconds)
{
    dp_channel initiator;
    dp_buf first;
    unsigned count = 0;

    dp_buf_init(&first, OUT_BYTES_MAX);
    world.initiator.psks[0].key[0] ^= 1;
    dp_assert(dp_channel_init(&initiator, &world.initiator, &first) == DP_OK);
    world.initiator.psks[0].key[0] ^= 1;
    const double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    while (bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start < seconds) {
        dp_channel responder;
        dp_channel_event event;
        size_t consumed = 0;
        dp_assert(dp_channel_init(&responder, &world.responder, NULL) == DP_OK);
        dp_assert(dp_channel_read(&responder, dp_buf_view(&first), &consumed, NULL, &event) ==
                  DP_BADSIG);
        dp_channel_close(&responder);
        count++;
    }
    const double took = bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
    dp_channel_close(&initiator);
    dp_buf_close(&first);
    return count / took;
}

/* Plaintext bytes per second that this suite seals, and that it opens. */
static void bulk_rates(double seconds, const dp_suite *suite, double *seal, double *open)
{
    dp_channel initiator;
    dp_channel responder;
    double seal_s = 0;
    double open_s = 0;
    double bytes = 0;

    memset(world.initiator.suites, 0, sizeof world.initiator.suites);
    world.initiator.suites[suite->id - 1] = suite;
    memcpy(world.responder.suites, world.initiator.suites, sizeof world.responder.suites);
    shake_hands(&initiator, &responder);
    dp_assert(initiator.suite == suite->id);
    while (seal_s + open_s < 2 * seconds) {
        const double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
        dp_assert(dp_channel_write(&initiator, dp_view_of(payload, sizeof payload),
                                   &world.to_responder) == DP_OK);
        const double sealed = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
        dp_assert(deliver(&responder, &world.to_responder, &world.to_initiator) ==
                  DP_CHANNEL_MESSAGE);
        open_s += bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - sealed;
        seal_s += sealed - start;
        bytes += sizeof payload;
    }
    *seal = bytes / seal_s;
    *open = bytes / open_s;
    dp_channel_close(&initiator);
    dp_channel_close(&responder);
}

/* Ratios are to libsodium's ChaCha20-Poly1305, in the same run. */
static void print_suites(double seconds, bool json)
{
    const dp_suite *fastest[DP_SUITES];
    double anchor = 0;

    dp_aead_suites(fastest);
    for (unsigned i = 0; i < 2 * DP_SUITES; i++) {
        const dp_suite *plain = dp_suite_of((uint8_t)(i / 2 + 1));
        const dp_suite *suite = i % 2 == 0 ? plain : fastest[i / 2];
        double seal = 0;
        double open = 0;
        if (suite == NULL || (i % 2 == 1 && suite == plain)) {
            continue;
        }
        bulk_rates(seconds, suite, &seal, &open);
        anchor = i == 0 ? seal : anchor;
        printf(json ? "%s{\"suite\": \"%s\", \"library\": \"%s\", \"seal_GB_per_s\": %.3f, "
                      "\"open_GB_per_s\": %.3f, \"ratio\": %.2f}"
                    : "%s%-18s %-10s seal %6.2f GB/s, open %6.2f GB/s, messages of 1 MiB; %.2f\n",
               json && i > 0 ? ", " : "", suite->name, i % 2 == 0 ? "libsodium" : dp_aead_name(),
               seal * 1e-9, open * 1e-9, seal / anchor);
    }
    if (json) {
        printf("]}\n");
    }
}

int main(int argc, char **argv)
{
    bool json = false;
    double seconds = 1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            json = true;
        } else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
            seconds = strtod(argv[++i], NULL);
        } else {
            fprintf(stderr, "usage: %s [--json] [--seconds S]\n", argv[0]);
            return 64;
        }
    }
    make_world();
    const double handshakes = handshakes_per_s(seconds);
    const double refusals = refusals_per_s(seconds);
    if (json) {
        printf("{\"handshakes_both_sides_per_s\": %.0f, \"handshake_side_us\": %.1f, "
               "\"wrong_psk_per_s\": %.0f, "
               "\"wrong_psk_us\": %.2f, \"suites\": [",
               handshakes, 5e5 / handshakes, refusals, 1e6 / refusals);
    } else {
        printf("handshakes, both sides     %8.0f /s   (%.0f us a side; chains of 1 and 3 "
               "certificates)\n",
               handshakes, 5e5 / handshakes);
        printf("wrong pre-shared key       %8.0f /s   (%.1f us each)\n", refusals, 1e6 / refusals);
    }
    print_suites(seconds, json);
    dp_buf_close(&world.to_responder);
    dp_buf_close(&world.to_initiator);
    return 0;
}
