/* A token of a run of its own, for verbs that take one. */
#ifndef DP_TESTS_UNIT_CLI_TOKEN_KIT_H
#define DP_TESTS_UNIT_CLI_TOKEN_KIT_H

#include "cli/print.h"
#include "gossip/identity/invite.h"
#include "tests/lib/check.h"

static char token_text[DP_TOKEN_TEXT_MAX + 1];
static char token_secret[2 * DP_JOIN_SECRET_BYTES + 1];

/* A token for two nodes, valid from an hour ago until so many seconds from now. */
static inline void token_make(int64_t until_s, uint16_t uses)
{
    dp_entropy entropy;
    dp_sign_key root;
    uint8_t join_secret[DP_JOIN_SECRET_BYTES];
    const dp_run_id run = {.bytes = {0xab, 0xcd}};
    const dp_address address = {.kind = DP_ADDRESS_IP4, .port = 7717, .ip = {192, 0, 2, 1}};
    memset(entropy.bytes, 7, sizeof entropy.bytes);
    memset(join_secret, 0x5e, sizeof join_secret);
    dp_hex(dp_view_of(join_secret, sizeof join_secret), token_secret);
    dp_sign_key_of_seed(entropy.bytes, &root);
    const dp_invite_request request = {
        .run = &run,
        .root = root.public_key,
        .join_secret = join_secret,
        .psk_epoch = 3,
        .issuer = &root,
        .caps = DP_CAP_TRAIN | DP_CAP_VOTE,
        .uses = uses,
        .not_before_ms = dp_print_now_ms() - 3600 * 1000,
        .not_after_ms = (uint64_t)((int64_t)dp_print_now_ms() + until_s * 1000),
        .addresses = &address,
        .n_addresses = 1,
        .name = "kjv",
    };
    dp_invite invite;
    CHECK_OK(dp_invite_make(&request, &entropy, &invite, NULL));
    CHECK_OK(dp_invite_write(&invite, token_text));
    dp_invite_close(&invite);
}

#endif
