/* token inspect: the content of a token, without a daemon and without its secrets. */
#include "cli/print.h"
#include "gossip/identity/invite.h"
#include "tests/unit/cli/verb_kit.h"

static char text[DP_TOKEN_TEXT_MAX + 1];
static char secret[2 * DP_JOIN_SECRET_BYTES + 1];

/* A token for two nodes, valid from an hour ago until so many seconds from now. */
static void make(int64_t until_s, uint16_t uses)
{
    dp_entropy entropy;
    dp_sign_key root;
    uint8_t join_secret[DP_JOIN_SECRET_BYTES];
    const dp_run_id run = {.bytes = {0xab, 0xcd}};
    const dp_address address = {.kind = DP_ADDRESS_IP4, .port = 7717, .ip = {192, 0, 2, 1}};
    memset(entropy.bytes, 7, sizeof entropy.bytes);
    memset(join_secret, 0x5e, sizeof join_secret);
    dp_hex(dp_view_of(join_secret, sizeof join_secret), secret);
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
    CHECK_OK(dp_invite_write(&invite, text));
    dp_invite_close(&invite);
}

static void a_token_shows_run_terms_and_addresses_and_no_secret(void **state)
{
    (void)state;
    make(7200 + 30, 2);
    assert_int_equal(VERB(dp_verb_token_inspect, text), 0);
    assert_true(verb_said("run       kjv  (abcd0000") && verb_said("expires   in 2 h\n"));
    assert_true(verb_said("uses      2\n") && verb_said("roles     train vote\n"));
    assert_true(verb_said("addresses 192.0.2.1:7717\n") &&
                verb_said("valid: a node can join by it now"));
    assert_null(strstr(verb_kit.out, secret));
    assert_int_equal(VERB(dp_verb_token_inspect, text, "--json"), 0);
    assert_true(verb_said("\"epoch\":3") && verb_said("\"valid\":true"));
    assert_null(strstr(verb_kit.out, secret));
}

static void a_token_that_is_over_is_shown_all_the_same_and_ends_with_1(void **state)
{
    (void)state;
    make(-600, 0);
    assert_int_equal(VERB(dp_verb_token_inspect, text), DP_EXIT_NEGATIVE);
    assert_true(verb_said("expires   10 min ago\n") && verb_said("uses      any number\n"));
    assert_null(strstr(verb_kit.out, "valid: a node can join by it now"));
    assert_int_equal(VERB(dp_verb_token_inspect, text, "--json"), DP_EXIT_NEGATIVE);
    assert_true(verb_said("\"valid\":false") && verb_said("\"why\":"));
}

static void a_token_is_read_from_a_pipe(void **state)
{
    (void)state;
    make(3600, 1);
    verb_kit.in = text;
    assert_int_equal(VERB(dp_verb_token_inspect, "-"), 0);
    assert_true(verb_said("kjv"));
}

static void what_is_cut_or_changed_is_no_token(void **state)
{
    (void)state;
    make(3600, 1);
    text[strlen(text) - 8] = '\0';
    assert_int_equal(VERB(dp_verb_token_inspect, text), DP_EXIT_DATA);
    assert_true(verb_warned("E0203") && verb_warned("copy the whole token again"));
    assert_int_equal(VERB(dp_verb_token_inspect, "hello"), DP_EXIT_DATA);
    assert_string_equal(verb_kit.out, "");
    assert_int_equal(VERB(dp_verb_token_inspect, "hello", "--json"), DP_EXIT_DATA);
    assert_true(verb_said("\"error\"") && verb_said("E0203"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        VERB_TEST(a_token_shows_run_terms_and_addresses_and_no_secret),
        VERB_TEST(a_token_that_is_over_is_shown_all_the_same_and_ends_with_1),
        VERB_TEST(a_token_is_read_from_a_pipe),
        VERB_TEST(what_is_cut_or_changed_is_no_token),
    };
    CHECK_OK(dp_crypto_start());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
