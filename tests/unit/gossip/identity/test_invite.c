#include "gossip/identity/invite.h"

#include <sodium.h>

#include "base/digest.h"
#include "gossip/core/armor.h"
#include "tests/lib/mutate.h"
#include "tests/unit/gossip/kit/cast.h"

static const dp_address home = {.kind = DP_ADDRESS_IP4, .port = 7000, .ip = {192, 0, 2, 1}};

static void make(const dp_invite_request *request, dp_invite *invite,
                 char text[DP_TOKEN_TEXT_MAX + 1])
{
    const dp_entropy entropy = cast_entropy(50);

    CHECK_OK(dp_invite_make(request, &entropy, invite, NULL));
    CHECK_OK(dp_invite_write(invite, text));
}

static dp_status parse(const char *text, dp_invite *invite, dp_why *why)
{
    return dp_invite_parse(dp_view_text(text), invite, NULL, why);
}

/* A token as the founder of the cast writes it, and room to read one. request may be changed, and
 * make called again. */
struct issue {
    struct cast cast;
    dp_invite_request request;
    dp_invite made;
    dp_invite read;
    char text[DP_TOKEN_TEXT_MAX + 1];
    dp_why why;
};

static void issue(struct issue *t)
{
    cast_init(&t->cast);
    t->request = cast_request(&t->cast);
    t->why = (dp_why){""};
    make(&t->request, &t->made, t->text);
}

static void a_token_comes_back_as_it_was_made(void **state)
{
    struct issue t;
    dp_address addresses[DP_TOKEN_ADDRESSES_MAX] = {home};

    (void)state;
    issue(&t);
    CHECK_OK(dp_address_parse("[2001:db8::7]:65535", &addresses[1], NULL));
    CHECK_OK(dp_address_parse("node-1.example.org:1", &addresses[2], NULL));
    t.request.addresses = addresses;
    for (uint8_t n = 0; n <= 3; n++) {
        t.request.n_addresses = n;
        make(&t.request, &t.made, t.text);
        CHECK_OK(parse(t.text, &t.read, NULL));
        assert_memory_equal(&t.read, &t.made, sizeof t.made);
    }
    assert_string_equal(t.read.name, "kjv");
    assert_int_equal(t.read.psk_epoch, 3);
}

static void a_token_from_the_root_itself_is_short(void **state)
{
    struct issue t;

    (void)state;
    issue(&t);
    t.request.issuer = &t.cast.root;
    t.request.issuer_credential = dp_view_of(NULL, 0);
    t.request.addresses = &home;
    t.request.n_addresses = 1;
    make(&t.request, &t.made, t.text);
    CHECK_OK(parse(t.text, &t.read, NULL));
    assert_memory_equal(&t.read, &t.made, sizeof t.made);
    CHECK(strlen(t.text) < 450);
}

static void the_longest_token_fits(void **state)
{
    struct issue t;
    dp_identity child;
    uint8_t credential[DP_CREDENTIAL_BYTES_MAX];
    dp_address addresses[DP_TOKEN_ADDRESSES_MAX];

    (void)state;
    issue(&t);
    const size_t size = cast_join(&t.request, 2, &child, credential);
    for (unsigned i = 0; i < DP_TOKEN_ADDRESSES_MAX; i++) {
        addresses[i] = (dp_address){.kind = DP_ADDRESS_DNS, .port = 1};
        memset(addresses[i].name, 'x', DP_ADDRESS_NAME_MAX);
    }
    t.request.issuer = &child.ed;
    t.request.issuer_credential = dp_view_of(credential, size);
    t.request.addresses = addresses;
    t.request.n_addresses = DP_TOKEN_ADDRESSES_MAX;
    t.request.name = "thirty-two bytes of a run's name";
    make(&t.request, &t.made, t.text);
    CHECK_OK(parse(t.text, &t.read, NULL));
    assert_memory_equal(&t.read, &t.made, sizeof t.made);
    assert_int_equal(t.read.n_certs, DP_INVITE_CHAIN_CERTS_MAX);
}

static void each_replaced_character_is_named(void **state)
{
    struct issue t;

    (void)state;
    issue(&t);
    for (size_t i = 5; t.text[i] != '\0'; i++) {
        const char right = t.text[i];
        size_t position = 0;
        t.text[i] = right == 'Q' ? 'R' : 'Q';
        CHECK_STATUS(dp_invite_parse(dp_view_text(t.text), &t.read, &position, NULL), DP_BADMSG);
        assert_int_equal(position, i + 1);
        t.text[i] = right;
    }
    CHECK_OK(parse(t.text, &t.read, NULL));
}

static void every_cut_token_is_refused(void **state)
{
    struct issue t;

    (void)state;
    issue(&t);
    for (size_t size = 0; size < strlen(t.text); size++) {
        CHECK_STATUS(dp_invite_parse(dp_view_of(t.text, size), &t.read, NULL, NULL), DP_BADMSG);
    }
}

static void two_halves_of_different_tokens_are_noticed(void **state)
{
    struct issue t;
    char first[DP_TOKEN_TEXT_MAX + 1];
    char second[DP_TOKEN_TEXT_MAX + 1];

    (void)state;
    issue(&t);
    make(&t.request, &t.made, first);
    t.request.uses = 5;
    make(&t.request, &t.made, second);
    memcpy(first, second, 5 + 30 * 10); /* ten whole words, so that no word is broken */
    CHECK_STATUS(parse(first, &t.read, &t.why), DP_BADMSG);
    assert_non_null(strstr(t.why.text, "put together from two"));
}

static void expired_and_early_tokens_say_so(void **state)
{
    struct issue t;
    dp_credential found;

    (void)state;
    issue(&t);
    CHECK_OK(dp_invite_check(&t.made, CAST_NOW_MS, &found, &t.why));
    assert_int_equal(found.uses, 4);
    CHECK_STATUS(dp_invite_check(&t.made, CAST_NOW_MS + 4 * CAST_HOUR_MS, &found, &t.why),
                 DP_EXPIRED);
    assert_string_equal(
        t.why.text,
        "The token expired 3 h ago by this machine's clock; ask whoever invited you for "
        "a new one, or set the clock if it is wrong.");
    CHECK_STATUS(dp_invite_check(&t.made, CAST_NOW_MS - 5 * CAST_DAY_MS, NULL, &t.why), DP_AGAIN);
    assert_non_null(strstr(t.why.text, "becomes valid in 5 days"));
}

static void foreign_versions_are_named(void **state)
{
    struct issue t;

    (void)state;
    issue(&t);
    t.text[3] = '2';
    CHECK_STATUS(parse(t.text, &t.read, &t.why), DP_VERSION);
    assert_non_null(strstr(t.why.text, "version 2"));
}

/* ---- tokens that are intact and wrong: their checksum holds ---- */

enum { AT_VERSION = 0, AT_FLAGS = 1, CHECK_SIZE = 8 };

static void write_again(dp_buf *bytes, char text[DP_TOKEN_TEXT_MAX + 1])
{
    const dp_view body = dp_view_of(bytes->data, bytes->size - CHECK_SIZE);
    const dp_hash check = dp_hash_of("dpnode/token/1", body);

    memcpy(bytes->data + body.size, check.bytes, CHECK_SIZE);
    CHECK_OK(dp_armor_write(dp_buf_view(bytes), text));
}

/* One byte, counted from the front or, if negative, from the end of the body, has another value. */
static void check_refused(dp_buf *bytes, long at, uint8_t value, dp_status wanted,
                          const char *sentence)
{
    char text[DP_TOKEN_TEXT_MAX + 1];
    dp_invite read;
    dp_why why = {""};
    uint8_t *byte = bytes->data + (at >= 0 ? at : (long)(bytes->size - CHECK_SIZE) + at);
    const uint8_t was = *byte;

    *byte = value;
    write_again(bytes, text);
    CHECK_STATUS(parse(text, &read, &why), wanted);
    assert_non_null(strstr(why.text, sentence));
    *byte = was;
}

static void an_intact_token_that_is_malformed_says_so(void **state)
{
    struct cast cast;
    dp_identity child;
    uint8_t credential[DP_CREDENTIAL_BYTES_MAX];
    dp_invite made;
    char text[DP_TOKEN_TEXT_MAX + 1];
    dp_buf bytes;
    size_t position = 0;

    (void)state;
    cast_init(&cast);
    dp_invite_request request = cast_request(&cast);
    const size_t size = cast_join(&request, 2, &child, credential);
    request.issuer = &child.ed; /* So that certificates stand above its own. */
    request.issuer_credential = dp_view_of(credential, size);
    request.addresses = &home;
    request.n_addresses = 1;
    make(&request, &made, text);
    dp_buf_init(&bytes, DP_TOKEN_TEXT_MAX);
    CHECK_OK(dp_armor_read(dp_view_text(text), &bytes, &position, NULL));
    /* From the end: 3 of the name and its size, 7 of the address, the number of addresses, and
     * before it the certificates. */
    const long name_at = -4;
    const long address_at = name_at - 7;
    const long count_at = address_at - 1;
    const long certs_at = count_at - (long)size;
    check_refused(&bytes, AT_VERSION, 2, DP_VERSION, "of version 2 and this program reads");
    check_refused(&bytes, AT_FLAGS, 1, DP_BADMSG, "intact but malformed");
    check_refused(&bytes, name_at, 2, DP_BADMSG, "intact but malformed");
    check_refused(&bytes, name_at + 1, '\n', DP_BADMSG, "intact but malformed");
    /* No character begins so, whatever follows. */
    uint8_t *const second = bytes.data + (bytes.size - CHECK_SIZE) + name_at + 2;
    const uint8_t was = *second;
    *second = 0x80;
    check_refused(&bytes, name_at + 1, 0x80, DP_BADMSG, "intact but malformed");
    check_refused(&bytes, name_at + 1, 0xc1, DP_BADMSG, "intact but malformed");
    *second = was;
    check_refused(&bytes, address_at, 9, DP_BADMSG, "intact but malformed");
    check_refused(&bytes, count_at, DP_TOKEN_ADDRESSES_MAX + 1, DP_BADMSG, "intact but malformed");
    check_refused(&bytes, certs_at, 99, DP_VERSION, "intact but malformed");
    check_refused(&bytes, certs_at - 1, DP_INVITE_CHAIN_CERTS_MAX, DP_BADMSG,
                  "intact but malformed");
    write_again(&bytes, text);
    dp_invite read;
    CHECK_OK(parse(text, &read, NULL));
    dp_buf_close(&bytes);
}

static void a_damaged_invite_is_refused_before_its_time_is_looked_at(void **state)
{
    struct issue t;
    dp_credential found;

    (void)state;
    issue(&t);
    const dp_view chain = dp_view_of(t.made.chain, (size_t)t.made.n_certs * DP_CERT_BYTES);
    CHECK_OK(dp_invite_chain_check(chain, &t.made.run, t.made.root, CAST_NOW_MS, &found, &t.why));
    CHECK_STATUS(dp_invite_chain_check(chain, &t.made.run, t.made.root, CAST_NOW_MS + CAST_DAY_MS,
                                       &found, &t.why),
                 DP_EXPIRED);
    t.made.chain[DP_CERT_BYTES - 1] ^= 1;
    CHECK_STATUS(dp_invite_check(&t.made, CAST_NOW_MS + CAST_DAY_MS, &found, &t.why), DP_BADSIG);
}

static void a_forged_token_is_refused(void **state)
{
    struct issue t;

    (void)state;
    issue(&t);
    t.made.chain[4] ^= DP_CAP_RELAY; /* grant one capability more */
    CHECK_OK(dp_invite_write(&t.made, t.text));
    CHECK_STATUS(parse(t.text, &t.read, NULL), DP_BADSIG);
    t.made.chain[4] ^= DP_CAP_RELAY;
    t.made.root[0] ^= 1; /* lure into a run of one's own */
    CHECK_OK(dp_invite_write(&t.made, t.text));
    CHECK_STATUS(parse(t.text, &t.read, NULL), DP_DENIED);
}

static void impossible_requests_are_refused(void **state)
{
    struct cast cast;
    dp_invite made;
    const dp_entropy entropy = cast_entropy(50);

    (void)state;
    cast_init(&cast);
    dp_invite_request request = cast_request(&cast);
    request.caps = 0;
    CHECK_STATUS(dp_invite_make(&request, &entropy, &made, NULL), DP_BADARG);
    request.caps = 0x100;
    CHECK_STATUS(dp_invite_make(&request, &entropy, &made, NULL), DP_BADARG);
    request = cast_request(&cast);
    request.not_after_ms = request.not_before_ms;
    CHECK_STATUS(dp_invite_make(&request, &entropy, &made, NULL), DP_BADARG);
    request = cast_request(&cast);
    request.n_addresses = DP_TOKEN_ADDRESSES_MAX + 1;
    CHECK_STATUS(dp_invite_make(&request, &entropy, &made, NULL), DP_BADARG);
    request = cast_request(&cast);
    request.not_after_ms = CAST_NOW_MS + 2 * DP_CERT_NODE_MS_MAX;
    CHECK_STATUS(dp_invite_make(&request, &entropy, &made, NULL), DP_DENIED);
    request = cast_request(&cast);
    request.issuer_credential = dp_view_of(cast.founder_credential, DP_CERT_BYTES - 1);
    CHECK_STATUS(dp_invite_make(&request, &entropy, &made, NULL), DP_DENIED);
    static const uint8_t long_chain[DP_INVITE_CHAIN_BYTES_MAX];
    request.issuer_credential = dp_view_of(long_chain, sizeof long_chain);
    CHECK_STATUS(dp_invite_make(&request, &entropy, &made, NULL), DP_DENIED);
    request.issuer_credential = dp_view_of(NULL, 0); /* a node that passes for the root */
    CHECK_STATUS(dp_invite_make(&request, &entropy, &made, NULL), DP_DENIED);
}

static void names_that_could_steer_a_terminal_are_refused(void **state)
{
    static const char *const bad[] = {
        "\x1b[2J",
        "a\nb",
        "\x7f",
        "\xc2\x9b"
        "2J",
        "\xff",
        "\xc3",
        "\xe0\x80\x80",
        "\xed\xa0\x80",
        "\xf4\x90\x80\x80",
        "a name that has more than 32 bytes",
    };
    static const char *const good[] = {"", "kjv", "Bibel für alle", "聖書", "\xf0\x9f\x93\x96"};
    struct cast cast;
    dp_invite made;
    const dp_entropy entropy = cast_entropy(50);

    (void)state;
    cast_init(&cast);
    dp_invite_request request = cast_request(&cast);
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        request.name = bad[i];
        CHECK_STATUS(dp_invite_make(&request, &entropy, &made, NULL), DP_BADARG);
    }
    for (unsigned i = 0; i < sizeof good / sizeof good[0]; i++) {
        request.name = good[i];
        CHECK_OK(dp_invite_make(&request, &entropy, &made, NULL));
    }
}

static void a_joiner_gets_a_credential_that_holds(void **state)
{
    struct cast cast;
    dp_identity node;
    uint8_t credential[DP_CREDENTIAL_BYTES_MAX];
    dp_credential found;

    (void)state;
    cast_init(&cast);
    const dp_invite_request request = cast_request(&cast);
    const dp_view bytes = dp_view_of(credential, cast_join(&request, 2, &node, credential));
    const dp_peer peer = dp_identity_peer(&node);
    CHECK_OK(dp_credential_check(bytes, &cast.run, cast.root.public_key, &peer, CAST_NOW_MS + 2000,
                                 &found, NULL));
    assert_int_equal(found.caps, request.caps);
    assert_memory_equal(found.x_public, node.x_public, 32);
    assert_int_equal(found.member_until_ms, CAST_NOW_MS + 1000 + 30 * CAST_DAY_MS);
}

static void nobody_joins_by_a_token_out_of_its_time(void **state)
{
    struct cast cast;
    dp_identity node;
    dp_invite invite;
    uint8_t credential[DP_CREDENTIAL_BYTES_MAX];
    size_t size = 0;
    const dp_entropy entropy = cast_entropy(50);

    (void)state;
    cast_init(&cast);
    cast_identity(2, &node);
    const dp_invite_request request = cast_request(&cast);
    CHECK_OK(dp_invite_make(&request, &entropy, &invite, NULL));
    const uint64_t late = CAST_NOW_MS + CAST_HOUR_MS + 1;
    CHECK_STATUS(dp_invite_redeem(&invite, &node, entropy.bytes, late, 1000, credential, &size),
                 DP_EXPIRED);
    const uint64_t early = CAST_NOW_MS - CAST_HOUR_MS;
    CHECK_STATUS(dp_invite_redeem(&invite, &node, entropy.bytes, early, 1000, credential, &size),
                 DP_AGAIN);
    /* A clock that is a minute slow still joins, within the invite's window. */
    CHECK_OK(dp_invite_redeem(&invite, &node, entropy.bytes, CAST_NOW_MS - 60000, 1000, credential,
                              &size));
    dp_credential found;
    CHECK_OK(dp_credential_check(dp_view_of(credential, size), &cast.run, cast.root.public_key,
                                 NULL, 0, &found, NULL));
    assert_int_equal(found.member_from_ms, CAST_NOW_MS);
}

static void the_pre_shared_key_depends_on_secret_run_and_epoch(void **state)
{
    struct cast cast;
    uint8_t keys[4][DP_PSK_BYTES];
    uint8_t again[DP_PSK_BYTES];

    (void)state;
    cast_init(&cast);
    const dp_run_id other = dp_hash_of("test", dp_view_text("another run"));
    dp_psk_derive(cast.join_secret, &cast.run, 3, keys[0]);
    dp_psk_derive(cast.join_secret, &cast.run, 3, again);
    assert_memory_equal(keys[0], again, DP_PSK_BYTES);
    dp_psk_derive(cast.join_secret, &cast.run, 4, keys[1]);
    dp_psk_derive(cast.join_secret, &other, 3, keys[2]);
    cast.join_secret[0] ^= 1;
    dp_psk_derive(cast.join_secret, &cast.run, 3, keys[3]);
    for (unsigned i = 0; i < 4; i++) {
        for (unsigned k = 0; k < i; k++) {
            assert_memory_not_equal(keys[i], keys[k], DP_PSK_BYTES);
        }
    }
}

static void closing_wipes_the_secrets(void **state)
{
    struct issue t;

    (void)state;
    issue(&t);
    dp_invite_close(&t.made);
    CHECK(sodium_is_zero((const uint8_t *)&t.made, sizeof t.made) == 1);
}

static void mutated_tokens_never_pass_as_something_else(void **state)
{
    struct issue t;
    uint8_t bytes[2 * DP_TOKEN_TEXT_MAX];
    dp_rng rng;

    (void)state;
    issue(&t);
    dp_rng_init(&rng, 5);
    for (unsigned i = 0; i < 3000; i++) {
        dp_invite read;
        memcpy(bytes, t.text, strlen(t.text));
        const size_t size = mutate(&rng, bytes, strlen(t.text), sizeof bytes);
        if (dp_invite_parse(dp_view_of(bytes, size), &read, NULL, NULL) == DP_OK) {
            assert_memory_equal(&read, &t.made, sizeof read);
        }
    }
}

/* ---- addresses ---- */

static void addresses_come_back_as_typed(void **state)
{
    static const char *const texts[] = {"192.0.2.1:7000", "[2001:db8::1]:1", "[::1]:65535",
                                        "host:80", "a-b.c_d.example:9"};
    dp_address address;
    char text[DP_ADDRESS_TEXT_MAX];

    (void)state;
    for (unsigned i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        CHECK_OK(dp_address_parse(texts[i], &address, NULL));
        dp_address_text(&address, text);
        assert_string_equal(text, texts[i]);
    }
}

static void addresses_that_cannot_be_are_refused_with_a_sentence(void **state)
{
    static const char *const texts[] = {
        "",           ":",         "host",         "host:",    ":80",   "host:0",
        "host:65536", "host:080",  "host:+1",      "host:1x",  "[::1]", "[]:80",
        "[::1:80",    "::1:80",    "[1.2.3.4]:80", "1.2.3:80", "-x:80", ".x:80",
        "ho st:80",   "host\n:80", "1.2.3.4.5:80",
    };
    dp_address address;

    (void)state;
    for (unsigned i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        dp_why why = {""};
        CHECK_STATUS(dp_address_parse(texts[i], &address, &why), DP_BADMSG);
        CHECK(strlen(why.text) > 20);
    }
    CHECK(dp_address_equal(&home, &home));
}

static void the_key_of_an_invite_is_made_of_its_secret_its_run_and_its_epoch(void **state)
{
    dp_invite invite = {.psk_epoch = 3};
    uint8_t keys[5][DP_PSK_BYTES];

    (void)state;
    memset(keys, 0, sizeof keys);
    for (uint32_t i = 0; i < 4; i++) {
        dp_invite other = invite;
        other.join_secret[0] ^= i == 1;
        other.run.bytes[0] ^= i == 2;
        other.psk_epoch = i == 3 ? 4 : 3;
        dp_invite_psk(&other, keys[i]);
        for (uint32_t k = 0; k < i; k++) {
            assert_memory_not_equal(keys[i], keys[k], DP_PSK_BYTES);
        }
    }
    dp_psk_derive(invite.join_secret, &invite.run, 3, keys[4]);
    assert_memory_equal(keys[4], keys[0], DP_PSK_BYTES);
}

static void the_certificate_of_an_invite_has_the_serial_that_was_drawn_for_it(void **state)
{
    struct issue t;
    dp_entropy entropy = cast_entropy(50);
    dp_cert cert;

    (void)state;
    issue(&t);
    for (uint32_t i = 0; i < 2; i++) {
        entropy.bytes[sizeof t.made.seed] ^= (uint8_t)i;
        CHECK_OK(dp_invite_make(&t.request, &entropy, &t.made, NULL));
        CHECK_OK(dp_cert_decode(dp_view_of(t.made.chain, DP_CERT_BYTES), &cert));
        assert_memory_equal(cert.serial, entropy.bytes + sizeof t.made.seed, sizeof cert.serial);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_comes_back_as_it_was_made),
        cmocka_unit_test(a_token_from_the_root_itself_is_short),
        cmocka_unit_test(the_longest_token_fits),
        cmocka_unit_test(each_replaced_character_is_named),
        cmocka_unit_test(every_cut_token_is_refused),
        cmocka_unit_test(two_halves_of_different_tokens_are_noticed),
        cmocka_unit_test(expired_and_early_tokens_say_so),
        cmocka_unit_test(foreign_versions_are_named),
        cmocka_unit_test(an_intact_token_that_is_malformed_says_so),
        cmocka_unit_test(a_damaged_invite_is_refused_before_its_time_is_looked_at),
        cmocka_unit_test(a_forged_token_is_refused),
        cmocka_unit_test(impossible_requests_are_refused),
        cmocka_unit_test(names_that_could_steer_a_terminal_are_refused),
        cmocka_unit_test(a_joiner_gets_a_credential_that_holds),
        cmocka_unit_test(nobody_joins_by_a_token_out_of_its_time),
        cmocka_unit_test(the_pre_shared_key_depends_on_secret_run_and_epoch),
        cmocka_unit_test(closing_wipes_the_secrets),
        cmocka_unit_test(mutated_tokens_never_pass_as_something_else),
        cmocka_unit_test(addresses_come_back_as_typed),
        cmocka_unit_test(addresses_that_cannot_be_are_refused_with_a_sentence),
        cmocka_unit_test(the_key_of_an_invite_is_made_of_its_secret_its_run_and_its_epoch),
        cmocka_unit_test(the_certificate_of_an_invite_has_the_serial_that_was_drawn_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
