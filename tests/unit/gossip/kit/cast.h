/* The cast of the identity tests: a run with its root, a founder, and nodes invited by token; all
 * from fixed seeds. */
#ifndef DP_TESTS_UNIT_GOSSIP_KIT_CAST_H
#define DP_TESTS_UNIT_GOSSIP_KIT_CAST_H

#include <string.h>

#include "gossip/identity/invite.h"
#include "tests/lib/check.h"

#define CAST_NOW_MS 1800000000000ULL
#define CAST_HOUR_MS 3600000ULL
#define CAST_DAY_MS (24 * CAST_HOUR_MS)

struct cast {
    dp_run_id run;
    dp_sign_key root;
    uint8_t join_secret[DP_JOIN_SECRET_BYTES];
    dp_identity founder;
    uint8_t founder_credential[DP_CERT_BYTES];
};

static inline dp_entropy cast_entropy(uint8_t number)
{
    dp_entropy entropy;

    for (unsigned i = 0; i < sizeof entropy.bytes; i++) {
        entropy.bytes[i] = (uint8_t)(number * 31U + i * 7U + 1U);
    }
    return entropy;
}

static inline void cast_identity(uint8_t number, dp_identity *identity)
{
    const dp_entropy seed = cast_entropy(number);

    dp_identity_of_seed(&seed, identity);
}

static inline void cast_init(struct cast *cast)
{
    const dp_entropy entropy = cast_entropy(200);

    CHECK_OK(dp_crypto_start());
    memset(cast, 0, sizeof *cast);
    cast->run = dp_hash_of("test", dp_view_text("a run"));
    memcpy(cast->join_secret, entropy.bytes, sizeof cast->join_secret);
    dp_sign_key_of_seed(entropy.bytes + 32, &cast->root);
    cast_identity(1, &cast->founder);
    dp_founder_credential(&cast->root, &cast->run, &cast->founder, entropy.bytes, CAST_NOW_MS,
                          cast->founder_credential);
}

/* The founder's request for an invite; tests change the fields that they are about. */
static inline dp_invite_request cast_request(const struct cast *cast)
{
    return (dp_invite_request){
        .run = &cast->run,
        .root = cast->root.public_key,
        .join_secret = cast->join_secret,
        .psk_epoch = 3,
        .issuer = &cast->founder.ed,
        .issuer_credential = dp_view_of(cast->founder_credential, DP_CERT_BYTES),
        .caps = DP_CAP_TRAIN | DP_CAP_VOTE | DP_CAP_SERVE | DP_CAP_INVITE,
        .uses = 4,
        .not_before_ms = CAST_NOW_MS,
        .not_after_ms = CAST_NOW_MS + CAST_HOUR_MS,
        .name = "kjv",
    };
}

/* An invite of the request, and a node that joins by it an instant later. */
static inline size_t cast_join(const dp_invite_request *request, uint8_t number,
                               dp_identity *identity, uint8_t credential[DP_CREDENTIAL_BYTES_MAX])
{
    const dp_entropy entropy = cast_entropy((uint8_t)(number + 100));
    dp_invite invite;
    size_t size = 0;

    cast_identity(number, identity);
    CHECK_OK(dp_invite_make(request, &entropy, &invite, NULL));
    CHECK_OK(dp_invite_redeem(&invite, identity, entropy.bytes, CAST_NOW_MS + 1000,
                              30 * CAST_DAY_MS, credential, &size));
    dp_invite_close(&invite);
    return size;
}

#endif
