/* A daemon in the middle of a join that no peer answers: it has a driver, and knows its run. */
#ifndef DP_TESTS_UNIT_DAEMON_JOINING_H
#define DP_TESTS_UNIT_DAEMON_JOINING_H

#include "tests/unit/daemon/caller.h"

/* An invite whose only address does not answer. */
static inline void write_join(dp_buf *out, uint64_t id)
{
    static char text[DP_TOKEN_TEXT_MAX + 1];
    const struct party *party = party_of();
    const dp_entropy entropy = party_entropy(77);
    const dp_address address = {.kind = DP_ADDRESS_IP4, .port = 1, .ip = {127, 0, 0, 1}};
    const dp_invite_request request = {
        .run = &party->run,
        .root = party->root.public_key,
        .join_secret = party->join_secret,
        .psk_epoch = PARTY_EPOCH,
        .issuer = &party->root,
        .caps = DP_CAP_TRAIN,
        .not_before_ms = party_now_ms() - 1000,
        .not_after_ms = party_now_ms() + 3600 * 1000,
        .addresses = &address,
        .n_addresses = 1,
        .name = "kjv",
    };
    dp_invite invite;
    size_t start = 0;
    CHECK_OK(dp_invite_make(&request, &entropy, &invite, NULL));
    CHECK_OK(dp_invite_write(&invite, text));
    dp_invite_close(&invite);
    dp_packer packer = dp_control_begin(out, DP_CONTROL_REQUEST, id, "run.join", &start);
    dp_group map = dp_map_begin(&packer);
    dp_pair_text(&map, "token", text);
    dp_group_end(&map);
    CHECK_OK(dp_control_end(out, start, &packer));
}

static inline void start_joining(struct house *house, struct caller *caller)
{
    dp_buf out = {.max = 65536};
    dp_control_frame frame;
    house_open(house);
    snprintf(house->config.listen, sizeof house->config.listen, "127.0.0.1:0");
    house_open_control(house);
    caller_open(caller, house);
    write_join(&out, 1);
    send_bytes(caller, dp_buf_view(&out));
    const size_t size = next_frame(caller, &frame);
    CHECK(frame.kind == DP_CONTROL_NOTICE && frame.id == 1);
    used(caller, &frame, size);
    CHECK(house->daemon.driver != NULL);
    dp_buf_close(&out);
}

#endif
