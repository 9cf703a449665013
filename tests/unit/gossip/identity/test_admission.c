/* Admission with real certificates: the chain's row of a newcomer, and refused ones. */
#include "gossip/identity/admission.h"
#include "tests/unit/gossip/kit/cast.h"

typedef struct newcomer {
    struct cast cast;
    dp_identity identity;
    uint8_t credential[DP_CREDENTIAL_BYTES_MAX];
    size_t size;
} newcomer;

static dp_status check(const newcomer *n, const dp_peer *peer, uint64_t now_ms, dp_admitted *out)
{
    const dp_admission admission = dp_admission_certs();

    return admission.check(admission.context, dp_view_of(n->credential, n->size), &n->cast.run,
                           n->cast.root.public_key, peer, now_ms, out);
}

static dp_peer peer_of(const dp_identity *identity)
{
    dp_peer peer;

    memcpy(peer.bytes, identity->ed.public_key, sizeof peer.bytes);
    return peer;
}

static void prepare(newcomer *n)
{
    cast_init(&n->cast);
    dp_invite_request request = cast_request(&n->cast);
    request.caps = DP_CAP_TRAIN | DP_CAP_SERVE;
    n->size = cast_join(&request, 2, &n->identity, n->credential);
}

static void a_credential_by_invite_admits_with_its_rights_and_uses(void **state)
{
    newcomer n;
    dp_admitted admitted = {0};
    const dp_invite_id none = {{0}};

    (void)state;
    prepare(&n);
    const dp_peer peer = peer_of(&n.identity);
    CHECK_OK(check(&n, &peer, CAST_NOW_MS + 2000, &admitted));
    assert_int_equal(admitted.caps, DP_CAP_TRAIN | DP_CAP_SERVE);
    assert_int_equal(admitted.uses, 4);
    assert_memory_not_equal(&admitted.invite, &none, sizeof none);
    const dp_peer founder = peer_of(&n.cast.founder);
    assert_int_equal(admitted.n_above, 1);
    assert_true(dp_peer_equal(&admitted.above[0], &founder));
    CHECK_OK(check(&n, &peer, 0, &admitted)); /* The chain asks without a clock. */
}

static void a_credential_of_somebody_else_or_too_old_or_damaged_admits_nobody(void **state)
{
    newcomer n;
    dp_admitted admitted = {.caps = 77};

    (void)state;
    prepare(&n);
    const dp_peer peer = peer_of(&n.identity);
    const dp_peer other = peer_of(&n.cast.founder);
    assert_int_not_equal(check(&n, &other, 0, &admitted), DP_OK);
    CHECK_STATUS(check(&n, &peer, CAST_NOW_MS + 400 * CAST_DAY_MS, &admitted), DP_EXPIRED);
    n.credential[n.size - 1] ^= 1;
    assert_int_not_equal(check(&n, &peer, 0, &admitted), DP_OK);
    n.size--;
    assert_int_not_equal(check(&n, &peer, 0, &admitted), DP_OK);
    assert_int_equal(admitted.caps, 77); /* Untouched. */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_credential_by_invite_admits_with_its_rights_and_uses),
        cmocka_unit_test(a_credential_of_somebody_else_or_too_old_or_damaged_admits_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
