#include "gossip/identity/cert.h"

#include <sodium.h>

#include "tests/lib/mutate.h"
#include "tests/unit/gossip/kit/cast.h"

static dp_status check(const struct cast *cast, dp_view credential, uint64_t now_ms,
                       dp_credential *out)
{
    return dp_credential_check(credential, &cast->run, cast->root.public_key, NULL, now_ms, out,
                               NULL);
}

/* A node invited by the founder, and one invited by that node: chains of three and of five
 * certificates. */
struct family {
    struct cast cast;
    dp_identity child;
    uint8_t child_credential[DP_CREDENTIAL_BYTES_MAX];
    size_t child_size;
    dp_identity grandchild;
    uint8_t grandchild_credential[DP_CREDENTIAL_BYTES_MAX];
    size_t grandchild_size;
};

static void family_init(struct family *family)
{
    cast_init(&family->cast);
    dp_invite_request request = cast_request(&family->cast);
    family->child_size = cast_join(&request, 2, &family->child, family->child_credential);
    request.issuer = &family->child.ed;
    request.issuer_credential = dp_view_of(family->child_credential, family->child_size);
    request.caps = DP_CAP_TRAIN;
    request.uses = 1;
    family->grandchild_size =
        cast_join(&request, 3, &family->grandchild, family->grandchild_credential);
}

static void a_certificate_comes_back_as_written_and_is_drawn_in_the_header(void **state)
{
    struct cast cast;
    dp_cert cert;
    uint8_t again[DP_CERT_BYTES];

    (void)state;
    cast_init(&cast);
    CHECK_OK(dp_cert_decode(dp_view_of(cast.founder_credential, DP_CERT_BYTES), &cert));
    dp_cert_encode(&cert, again);
    assert_memory_equal(again, cast.founder_credential, DP_CERT_BYTES);
    assert_int_equal(again[0], 1);
    assert_int_equal(again[1], DP_CERT_NODE);
    assert_memory_equal(again + 8, cast.run.bytes, 32);
    assert_memory_equal(again + 40, cast.founder.ed.public_key, 32);
    assert_memory_equal(again + 72, cast.founder.x_public, 32);
    assert_memory_equal(again + 136, cast.root.public_key, 32);
    CHECK(dp_verify(cast.root.public_key, "dpnode/cert/1", dp_view_of(again, 168), again + 168));
}

static void malformed_certificates_are_refused_by_their_form(void **state)
{
    struct cast cast;
    dp_cert cert;
    uint8_t bytes[DP_CERT_BYTES];
    static const struct {
        size_t offset;
        uint8_t value;
        dp_status wanted;
    } cases[] = {
        {0, 2, DP_VERSION}, {1, 0, DP_BADMSG},    {1, 3, DP_BADMSG}, {1, 2, DP_BADMSG},
        {2, 1, DP_BADMSG},  {4, 0x80, DP_BADMSG}, {7, 1, DP_BADMSG}, {135, 0, DP_OK},
    };

    (void)state;
    cast_init(&cast);
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memcpy(bytes, cast.founder_credential, sizeof bytes);
        bytes[cases[i].offset] = cases[i].value;
        CHECK_STATUS(dp_cert_decode(dp_view_of(bytes, sizeof bytes), &cert), cases[i].wanted);
    }
    memcpy(bytes, cast.founder_credential, sizeof bytes);
    memcpy(bytes + 128, bytes + 120, 8); /* ends when it begins */
    CHECK_STATUS(dp_cert_decode(dp_view_of(bytes, sizeof bytes), &cert), DP_BADMSG);
    memset(bytes + 72, 0, 32); /* a node without a channel key */
    memcpy(bytes + 120, cast.founder_credential + 120, 16);
    CHECK_STATUS(dp_cert_decode(dp_view_of(bytes, sizeof bytes), &cert), DP_BADMSG);
    for (size_t size = 0; size < DP_CERT_BYTES; size++) {
        CHECK_STATUS(dp_cert_decode(dp_view_of(cast.founder_credential, size), &cert), DP_BADMSG);
    }
}

static void the_founder_has_every_capability_and_no_invite(void **state)
{
    struct cast cast;
    dp_credential found;
    const dp_invite_id none = {{0}};

    (void)state;
    cast_init(&cast);
    CHECK_OK(check(&cast, dp_view_of(cast.founder_credential, DP_CERT_BYTES), CAST_NOW_MS, &found));
    assert_int_equal(found.caps, DP_CAP_ALL);
    assert_int_equal(found.n_certs, 1);
    assert_memory_equal(&found.invite, &none, sizeof none);
    const dp_peer founder = dp_identity_peer(&cast.founder);
    CHECK(dp_peer_equal(&found.node, &founder));
    CHECK_OK(dp_credential_join_at(&found, UINT64_MAX));
}

static void chains_of_invited_nodes_lead_to_the_root(void **state)
{
    struct family family;
    dp_credential child;
    dp_credential grandchild;

    (void)state;
    family_init(&family);
    const dp_view credential = dp_view_of(family.child_credential, family.child_size);
    CHECK_OK(check(&family.cast, credential, CAST_NOW_MS, &child));
    assert_int_equal(child.n_certs, 3);
    assert_int_equal(child.uses, 4);
    assert_int_equal(child.caps, DP_CAP_TRAIN | DP_CAP_VOTE | DP_CAP_SERVE | DP_CAP_INVITE);
    assert_memory_equal(child.x_public, family.child.x_public, 32);
    const dp_view longest = dp_view_of(family.grandchild_credential, family.grandchild_size);
    CHECK_OK(check(&family.cast, longest, CAST_NOW_MS, &grandchild));
    assert_int_equal(grandchild.n_certs, DP_CHAIN_CERTS_MAX);
    assert_int_equal(grandchild.caps, DP_CAP_TRAIN);
    assert_memory_not_equal(&child.invite, &grandchild.invite, sizeof child.invite);
    const dp_invite_id id = dp_invite_id_of(family.grandchild_credential + DP_CERT_BYTES + 40);
    assert_memory_equal(&grandchild.invite, &id, sizeof id);
}

static void a_credential_tells_the_nodes_and_the_invite_above_it(void **state)
{
    struct family family;
    dp_credential founder;
    dp_credential child;
    dp_credential grandchild;
    const dp_invite_id none = {{0}};

    (void)state;
    family_init(&family);
    CHECK_OK(check(&family.cast, dp_view_of(family.cast.founder_credential, DP_CERT_BYTES),
                   CAST_NOW_MS, &founder));
    CHECK_OK(check(&family.cast, dp_view_of(family.child_credential, family.child_size),
                   CAST_NOW_MS, &child));
    CHECK_OK(check(&family.cast, dp_view_of(family.grandchild_credential, family.grandchild_size),
                   CAST_NOW_MS, &grandchild));
    assert_int_equal(founder.n_above, 0);
    assert_int_equal(child.n_above, 1);
    CHECK(dp_peer_equal(&child.above[0], &founder.node));
    assert_memory_equal(&child.invite_above, &none, sizeof none);
    assert_int_equal(grandchild.n_above, DP_CERT_ABOVE_MAX);
    CHECK(dp_peer_equal(&grandchild.above[0], &child.node));
    CHECK(dp_peer_equal(&grandchild.above[1], &founder.node));
    assert_memory_equal(&grandchild.invite_above, &child.invite, sizeof child.invite);
}

static void a_credential_holds_for_its_node_run_and_root_only(void **state)
{
    struct family family;
    dp_credential found;

    (void)state;
    family_init(&family);
    const struct cast *cast = &family.cast;
    const dp_view bytes = dp_view_of(family.child_credential, family.child_size);
    const dp_peer child = dp_identity_peer(&family.child);
    const dp_peer founder = dp_identity_peer(&cast->founder);
    const dp_run_id other = dp_hash_of("test", dp_view_text("another run"));
    const uint8_t *root = cast->root.public_key;
    CHECK_OK(dp_credential_check(bytes, &cast->run, root, &child, 0, &found, NULL));
    CHECK_STATUS(dp_credential_check(bytes, &cast->run, root, &founder, 0, &found, NULL),
                 DP_DENIED);
    CHECK_STATUS(dp_credential_check(bytes, &other, root, &child, 0, &found, NULL), DP_DENIED);
    CHECK_STATUS(dp_credential_check(bytes, &cast->run, founder.bytes, &child, 0, &found, NULL),
                 DP_DENIED);
}

static void every_changed_bit_of_a_credential_is_refused(void **state)
{
    struct family family;
    dp_credential found;
    unsigned bad_signatures = 0;

    (void)state;
    family_init(&family);
    for (size_t bit = 0; bit < family.child_size * 8; bit++) {
        family.child_credential[bit / 8] ^= (uint8_t)(1U << bit % 8);
        const dp_view bytes = dp_view_of(family.child_credential, family.child_size);
        const dp_status status = check(&family.cast, bytes, 0, &found);
        CHECK(status == DP_BADSIG || status == DP_DENIED || status == DP_BADMSG ||
              status == DP_VERSION);
        bad_signatures += status == DP_BADSIG ? 1 : 0;
        family.child_credential[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    CHECK(bad_signatures > 3 * DP_SIGNATURE_BYTES * 8);
}

static void parts_of_chains_are_refused(void **state)
{
    struct family family;
    dp_credential found;
    uint8_t bytes[6 * DP_CERT_BYTES];

    (void)state;
    family_init(&family);
    for (size_t size = 0; size < family.child_size; size++) {
        const dp_view cut = dp_view_of(family.child_credential, size);
        CHECK(check(&family.cast, cut, 0, &found) != DP_OK);
    }
    memcpy(bytes, family.grandchild_credential, family.grandchild_size);
    memcpy(bytes + family.grandchild_size, family.cast.founder_credential, DP_CERT_BYTES);
    CHECK_STATUS(check(&family.cast, dp_view_of(bytes, sizeof bytes), 0, &found), DP_BADMSG);
    /* An invite is not a membership, and a membership not an invite. */
    const dp_view invite = dp_view_of(family.child_credential + DP_CERT_BYTES, 2 * DP_CERT_BYTES);
    CHECK_STATUS(check(&family.cast, invite, 0, &found), DP_BADMSG);
    CHECK_OK(dp_invite_chain_check(invite, &family.cast.run, family.cast.root.public_key, 0, &found,
                                   NULL));
    const dp_view node = dp_view_of(family.child_credential, family.child_size);
    CHECK_STATUS(
        dp_invite_chain_check(node, &family.cast.run, family.cast.root.public_key, 0, &found, NULL),
        DP_BADMSG);
}

/* ---- what may be granted: change one field of a chain and sign it again as its issuer could
 * ---- */

struct grant {
    struct cast cast;
    dp_sign_key invite_key;
    dp_identity node;
    dp_cert invite_cert;
    dp_cert node_cert;
    dp_cert founder_cert;
};

static void grant_init(struct grant *grant)
{
    const dp_entropy entropy = cast_entropy(77);

    cast_init(&grant->cast);
    cast_identity(9, &grant->node);
    dp_sign_key_of_seed(entropy.bytes, &grant->invite_key);
    CHECK_OK(dp_cert_decode(dp_view_of(grant->cast.founder_credential, DP_CERT_BYTES),
                            &grant->founder_cert));
    grant->invite_cert = (dp_cert){
        .kind = DP_CERT_INVITE,
        .caps = DP_CAP_TRAIN,
        .run = grant->cast.run,
        .not_before_ms = CAST_NOW_MS,
        .not_after_ms = CAST_NOW_MS + CAST_HOUR_MS,
    };
    memcpy(grant->invite_cert.subject_ed, grant->invite_key.public_key, 32);
    grant->node_cert = (dp_cert){
        .kind = DP_CERT_NODE,
        .caps = DP_CAP_TRAIN,
        .run = grant->cast.run,
        .not_before_ms = CAST_NOW_MS + 1,
        .not_after_ms = CAST_NOW_MS + CAST_DAY_MS,
    };
    memcpy(grant->node_cert.subject_ed, grant->node.ed.public_key, 32);
    memcpy(grant->node_cert.subject_x, grant->node.x_public, 32);
}

static dp_status grant_check_at(struct grant *grant, uint64_t now_ms)
{
    uint8_t bytes[3 * DP_CERT_BYTES];
    dp_credential found;

    dp_cert_sign(&grant->node_cert, &grant->invite_key);
    dp_cert_sign(&grant->invite_cert, &grant->cast.founder.ed);
    dp_cert_sign(&grant->founder_cert, &grant->cast.root);
    dp_cert_encode(&grant->node_cert, bytes);
    dp_cert_encode(&grant->invite_cert, bytes + DP_CERT_BYTES);
    dp_cert_encode(&grant->founder_cert, bytes + 2 * DP_CERT_BYTES);
    return check(&grant->cast, dp_view_of(bytes, sizeof bytes), now_ms, &found);
}

static void a_fair_grant_is_accepted(void **state)
{
    struct grant grant;

    (void)state;
    grant_init(&grant);
    CHECK_OK(grant_check_at(&grant, CAST_NOW_MS));
}

static void nobody_grants_more_than_it_has(void **state)
{
    struct grant grant;

    (void)state;
    grant_init(&grant);
    grant.node_cert.caps |= DP_CAP_VOTE;
    CHECK_STATUS(grant_check_at(&grant, 0), DP_DENIED);
    grant.invite_cert.caps |= DP_CAP_VOTE;
    CHECK_OK(grant_check_at(&grant, 0));
    grant.founder_cert.caps &= ~(uint32_t)DP_CAP_VOTE;
    CHECK_STATUS(grant_check_at(&grant, 0), DP_DENIED);
}

static void a_node_without_the_right_to_invite_invites_nobody(void **state)
{
    struct grant grant;

    (void)state;
    grant_init(&grant);
    grant.founder_cert.caps &= ~(uint32_t)DP_CAP_INVITE;
    CHECK_STATUS(grant_check_at(&grant, 0), DP_DENIED);
}

static void an_invite_does_not_outlive_its_issuer(void **state)
{
    struct grant grant;

    (void)state;
    grant_init(&grant);
    grant.invite_cert.not_after_ms = grant.founder_cert.not_after_ms;
    CHECK_OK(grant_check_at(&grant, 0));
    grant.invite_cert.not_after_ms++;
    CHECK_STATUS(grant_check_at(&grant, 0), DP_DENIED);
}

static void a_membership_begins_within_its_invite_and_is_bounded(void **state)
{
    struct grant grant;

    (void)state;
    grant_init(&grant);
    grant.node_cert.not_before_ms = CAST_NOW_MS - 1;
    CHECK_STATUS(grant_check_at(&grant, 0), DP_DENIED);
    grant.node_cert.not_before_ms = CAST_NOW_MS + CAST_HOUR_MS;
    CHECK_OK(grant_check_at(&grant, 0));
    grant.node_cert.not_before_ms++;
    CHECK_STATUS(grant_check_at(&grant, 0), DP_DENIED);
    grant.node_cert.not_before_ms = CAST_NOW_MS;
    grant.node_cert.not_after_ms = CAST_NOW_MS + DP_CERT_NODE_MS_MAX;
    CHECK_OK(grant_check_at(&grant, 0));
    grant.node_cert.not_after_ms++;
    CHECK_STATUS(grant_check_at(&grant, 0), DP_DENIED);
}

static void times_are_checked_only_when_one_is_given(void **state)
{
    struct grant grant;

    (void)state;
    grant_init(&grant);
    CHECK_OK(grant_check_at(&grant, 0));
    CHECK_OK(grant_check_at(&grant, CAST_NOW_MS - DP_CERT_SKEW_MS + 1));
    CHECK_STATUS(grant_check_at(&grant, CAST_NOW_MS - DP_CERT_SKEW_MS - 1), DP_AGAIN);
    CHECK_OK(grant_check_at(&grant, CAST_NOW_MS + CAST_HOUR_MS));
    CHECK_STATUS(grant_check_at(&grant, CAST_NOW_MS + CAST_HOUR_MS + 1), DP_EXPIRED);
}

static void a_closed_invite_and_a_past_membership_are_told_apart(void **state)
{
    struct family family;
    dp_credential found;

    (void)state;
    family_init(&family);
    CHECK_OK(
        check(&family.cast, dp_view_of(family.child_credential, family.child_size), 0, &found));
    CHECK_OK(dp_credential_member_at(&found, CAST_NOW_MS + CAST_DAY_MS));
    CHECK_STATUS(dp_credential_join_at(&found, CAST_NOW_MS + CAST_DAY_MS), DP_EXPIRED);
    CHECK_STATUS(dp_credential_member_at(&found, CAST_NOW_MS + 31 * CAST_DAY_MS), DP_EXPIRED);
    CHECK_STATUS(dp_credential_member_at(&found, 1), DP_AGAIN);
}

static void a_refusal_says_why_and_leaves_the_result_alone(void **state)
{
    struct family family;
    dp_credential found;
    dp_credential before;
    dp_why why = {""};

    (void)state;
    family_init(&family);
    memset(&found, 0x5a, sizeof found);
    before = found;
    family.child_credential[200] ^= 1;
    const dp_view bytes = dp_view_of(family.child_credential, family.child_size);
    CHECK_STATUS(dp_credential_check(bytes, &family.cast.run, family.cast.root.public_key, NULL, 0,
                                     &found, &why),
                 DP_BADSIG);
    assert_memory_equal(&found, &before, sizeof found);
    assert_string_equal(why.text, "The signature of certificate 1 does not verify.");
}

static void mutated_credentials_never_pass(void **state)
{
    struct family family;
    dp_credential found;
    uint8_t bytes[2 * DP_CREDENTIAL_BYTES_MAX];
    dp_rng rng;

    (void)state;
    family_init(&family);
    dp_rng_init(&rng, 11);
    for (unsigned i = 0; i < 2000; i++) {
        memcpy(bytes, family.grandchild_credential, family.grandchild_size);
        const size_t size = mutate(&rng, bytes, family.grandchild_size, sizeof bytes);
        const bool same = size == family.grandchild_size &&
                          memcmp(bytes, family.grandchild_credential, size) == 0;
        CHECK(same || check(&family.cast, dp_view_of(bytes, size), CAST_NOW_MS, &found) != DP_OK);
    }
}

/* A person then sets the clock, or asks for a new token. */
static void a_time_outside_says_which_of_both_windows_and_on_which_side(void **state)
{
    struct family family;
    dp_credential found;

    (void)state;
    family_init(&family);
    const dp_view bytes = dp_view_of(family.child_credential, family.child_size);
    CHECK_OK(check(&family.cast, bytes, 0, &found));
    const uint64_t from =
        found.member_from_ms > found.join_from_ms ? found.member_from_ms : found.join_from_ms;
    CHECK(found.join_until_ms < found.member_until_ms);
    const struct {
        uint64_t now_ms;
        dp_status status;
        const char *text;
    } cases[] = {
        {from - DP_CERT_SKEW_MS, DP_OK, ""},
        {found.member_from_ms - DP_CERT_SKEW_MS - 1, DP_AGAIN,
         "The membership certificate is not valid yet; check this machine's clock."},
        {found.join_until_ms, DP_OK, ""},
        {found.join_until_ms + 1, DP_EXPIRED, "The invite has expired; ask for a new token."},
        {found.member_until_ms, DP_EXPIRED, "The invite has expired; ask for a new token."},
        {found.member_until_ms + 1, DP_EXPIRED,
         "The membership certificate has expired; ask for a new token."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dp_why why = {""};
        CHECK_STATUS(dp_credential_check(bytes, &family.cast.run, family.cast.root.public_key, NULL,
                                         cases[i].now_ms, &found, &why),
                     cases[i].status);
        assert_string_equal(why.text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_certificate_comes_back_as_written_and_is_drawn_in_the_header),
        cmocka_unit_test(malformed_certificates_are_refused_by_their_form),
        cmocka_unit_test(the_founder_has_every_capability_and_no_invite),
        cmocka_unit_test(chains_of_invited_nodes_lead_to_the_root),
        cmocka_unit_test(a_credential_tells_the_nodes_and_the_invite_above_it),
        cmocka_unit_test(a_credential_holds_for_its_node_run_and_root_only),
        cmocka_unit_test(every_changed_bit_of_a_credential_is_refused),
        cmocka_unit_test(parts_of_chains_are_refused),
        cmocka_unit_test(a_fair_grant_is_accepted),
        cmocka_unit_test(nobody_grants_more_than_it_has),
        cmocka_unit_test(a_node_without_the_right_to_invite_invites_nobody),
        cmocka_unit_test(an_invite_does_not_outlive_its_issuer),
        cmocka_unit_test(a_membership_begins_within_its_invite_and_is_bounded),
        cmocka_unit_test(times_are_checked_only_when_one_is_given),
        cmocka_unit_test(a_closed_invite_and_a_past_membership_are_told_apart),
        cmocka_unit_test(a_refusal_says_why_and_leaves_the_result_alone),
        cmocka_unit_test(mutated_credentials_never_pass),
        cmocka_unit_test(a_time_outside_says_which_of_both_windows_and_on_which_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
