/* Identity of the peer at the other end of a channel: certificates that name another node, and the
 * proof of the right one. */
#include "tests/unit/gossip/kit/pair.h"

/* A credential of the same people in another run, with the right pre-shared key. */
static void a_foreign_credential_is_refused_by_either_side(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct pair pair;
        struct cast other;
        pair_init(&pair);
        cast_init(&other);
        other.run.bytes[0] ^= 1;
        struct side *liar = i == 0 ? &pair.a : &pair.b;
        struct side *judge = i == 0 ? &pair.b : &pair.a;
        dp_founder_credential(&other.root, &other.run, &liar->identity, other.join_secret,
                              CAST_NOW_MS, liar->credential);
        liar->config.credential = dp_view_of(liar->credential, DP_CERT_BYTES);
        pair_open(&pair);
        talk(&pair, NULL, SIZE_MAX);
        CHECK_STATUS(judge->status, DP_DENIED);
        CHECK(judge->handshakes == 0);
        pair_close(&pair);
    }
}

/* A peer replays the certificate of a member without its static key. */
static void a_credential_of_another_node_is_refused(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    cast_identity(9, &pair.a.identity);
    pair_open(&pair);
    talk(&pair, NULL, SIZE_MAX);
    CHECK_STATUS(pair.b.status, DP_DENIED);
    assert_string_equal(pair.b.channel.fault,
                        "the peer's static key is not the key in its certificate");
    pair_close(&pair);
}

/* The holder of a token can make a certificate that names any node, with a static key of its own:
 * the invite's key signs it. */
static size_t forge(const struct cast *cast, const dp_peer *victim, const dp_identity *thief,
                    uint8_t credential[DP_CREDENTIAL_BYTES_MAX])
{
    const dp_entropy entropy = cast_entropy(77);
    const dp_invite_request request = cast_request(cast);
    dp_identity claimed = *thief;
    dp_invite invite;
    size_t size = 0;

    memcpy(claimed.ed.public_key, victim->bytes, sizeof claimed.ed.public_key);
    CHECK_OK(dp_invite_make(&request, &entropy, &invite, NULL));
    CHECK_OK(dp_invite_redeem(&invite, &claimed, entropy.bytes, CAST_NOW_MS + 1000,
                              30 * CAST_DAY_MS, credential, &size));
    dp_invite_close(&invite);
    return size;
}

/* It would gain that node's place: its links, its vote, and with a high boot id the node itself
 * locked out. */
static void a_holder_of_a_token_cannot_be_another_node_on_either_side(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct pair pair;
        pair_init(&pair);
        struct side *liar = i == 0 ? &pair.a : &pair.b;
        struct side *judge = i == 0 ? &pair.b : &pair.a;
        const dp_peer victim = dp_identity_peer(&liar->identity);
        cast_identity(9, &liar->identity);
        liar->config.credential = dp_view_of(
            liar->credential, forge(&pair.cast, &victim, &liar->identity, liar->credential));
        liar->config.boot_id = UINT64_MAX - 1;
        pair_open(&pair);
        talk(&pair, NULL, SIZE_MAX);
        CHECK_STATUS(judge->status, DP_BADSIG);
        assert_string_equal(judge->channel.fault,
                            "the peer does not have the key of the node that it claims to be");
        CHECK(judge->handshakes == 0);
        pair_close(&pair);
    }
}

/* The third message of a thief that has a signature of its victim over something else: of another
 * handshake, of the second message, with the victim's own static key, of another life. */
static dp_status with_a_signature_over(struct pair *pair, unsigned what)
{
    struct side *from = NULL;
    struct side *to = NULL;
    static uint8_t read[DP_CHANNEL_HANDSHAKE_MAX];
    uint8_t payload[PAYLOAD_HEADER + DP_CREDENTIAL_BYTES_MAX] = {0};
    uint8_t transcript[DP_NOISE_HASH_BYTES];
    uint8_t x_public[32];
    size_t size = 0;
    dp_identity thief;
    dp_buf out;

    pair_init(pair);
    const dp_identity victim = pair->a.identity;
    const dp_peer peer = dp_identity_peer(&victim);
    cast_identity(9, &thief);
    const size_t credential = forge(&pair->cast, &peer, &thief, payload + PAYLOAD_HEADER);
    pair->a.identity = thief;
    pair_open(pair);
    from = &pair->b;
    to = &pair->a;
    CHECK_OK(feed(from, dp_buf_view(&to->out)));
    const dp_view second = dp_view_of(from->out.data + 2, from->out.size - 2);
    CHECK_OK(dp_noise_read(&to->channel.noise, second, read, sizeof read, &size));
    payload[8] = 11; /* boot id */
    payload[16] = (uint8_t)credential;
    payload[17] = (uint8_t)(credential >> 8);
    memcpy(transcript, to->channel.noise.hash, sizeof transcript);
    memcpy(x_public, thief.x_public, sizeof x_public);
    transcript[5] ^= what == 1 ? 1 : 0;
    if (what == 3) {
        memcpy(x_public, victim.x_public, sizeof x_public);
    }
    sign_payload(&victim.ed, what == 2 ? 1 : 2, transcript, x_public, payload,
                 PAYLOAD_HEADER + credential);
    payload[8] = what == 4 ? 12 : payload[8];
    dp_buf_init(&out, OUT_BYTES_MAX);
    CHECK_OK(dp_buf_append(&out, dp_view_of("\0\0", 2)));
    CHECK_OK(
        dp_noise_write(&to->channel.noise, dp_view_of(payload, PAYLOAD_HEADER + credential), &out));
    out.data[0] = (uint8_t)(out.size - 2);
    out.data[1] = (uint8_t)((out.size - 2) >> 8);
    const dp_status status = feed(from, dp_buf_view(&out));
    dp_buf_close(&out);
    return status;
}

static void a_signature_holds_for_its_handshake_message_key_and_life_alone(void **state)
{
    struct pair pair;

    (void)state;
    CHECK_OK(with_a_signature_over(&pair, 0)); /* The signed bytes are those of the header. */
    pair_close(&pair);
    for (unsigned what = 1; what <= 4; what++) {
        CHECK_STATUS(with_a_signature_over(&pair, what), DP_BADSIG);
        pair_close(&pair);
    }
}

/* The chain has this key of every admitted node. */
static bool admitted_with(void *context, const dp_peer *peer, uint8_t x_public[32])
{
    (void)peer;
    memcpy(x_public, context, 32);
    return true;
}

static void a_member_has_the_static_key_that_it_was_admitted_with(void **state)
{
    struct pair pair;
    uint8_t key[32];

    (void)state;
    pair_init(&pair);
    memcpy(key, pair.a.identity.x_public, sizeof key);
    pair.b.config.member = admitted_with;
    pair.b.config.context = key;
    shake_hands(&pair);
    pair_close(&pair);
    pair_init(&pair);
    key[31] ^= 1;
    pair.b.config.member = admitted_with;
    pair.b.config.context = key;
    pair_open(&pair);
    talk(&pair, NULL, SIZE_MAX);
    CHECK_STATUS(pair.b.status, DP_DENIED);
    assert_string_equal(pair.b.channel.fault,
                        "the peer's static key is not the key with which it was admitted");
    pair_close(&pair);
}

static void the_initiator_reveals_nothing_to_an_impostor(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    cast_identity(9, &pair.b.identity);
    pair_open(&pair);
    CHECK_OK(feed(&pair.b, dp_buf_view(&pair.a.out)));
    dp_buf_clear(&pair.a.out);
    CHECK_STATUS(feed(&pair.a, dp_buf_view(&pair.b.out)), DP_DENIED);
    assert_int_equal(pair.a.out.size, 0);
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_foreign_credential_is_refused_by_either_side),
        cmocka_unit_test(a_credential_of_another_node_is_refused),
        cmocka_unit_test(a_holder_of_a_token_cannot_be_another_node_on_either_side),
        cmocka_unit_test(a_signature_holds_for_its_handshake_message_key_and_life_alone),
        cmocka_unit_test(a_member_has_the_static_key_that_it_was_admitted_with),
        cmocka_unit_test(the_initiator_reveals_nothing_to_an_impostor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
