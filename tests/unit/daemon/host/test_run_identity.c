#include "daemon/host/run_identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include "store/ckpt.h"
#include "store/vote.h"
#include "tests/lib/mutate.h"
#include "tests/unit/store/shelf.h"

static dp_run_identity example(void)
{
    dp_run_identity facts = {.run = name_of(1),
                             .psk_epoch = 513,
                             .credential_bytes = 700,
                             .manifest_bytes = 450,
                             .n_addresses = 3};
    memset(facts.root, 2, sizeof facts.root);
    memset(facts.join_secret, 3, sizeof facts.join_secret);
    memset(facts.credential, 4, facts.credential_bytes);
    memset(facts.manifest, 5, facts.manifest_bytes);
    CHECK_OK(dp_address_parse("192.0.2.1:7000", &facts.addresses[0], NULL));
    CHECK_OK(dp_address_parse("[2001:db8::1]:7001", &facts.addresses[1], NULL));
    CHECK_OK(dp_address_parse("host.example:7002", &facts.addresses[2], NULL));
    snprintf(facts.name, sizeof facts.name, "kjv");
    snprintf(facts.node_name, sizeof facts.node_name, "ann");
    return facts;
}

static void check_same(const dp_run_identity *a, const dp_run_identity *b)
{
    CHECK(dp_hash_equal(&a->run, &b->run) && a->psk_epoch == b->psk_epoch);
    assert_memory_equal(a->root, b->root, sizeof a->root);
    assert_memory_equal(a->join_secret, b->join_secret, sizeof a->join_secret);
    assert_int_equal(a->credential_bytes, b->credential_bytes);
    assert_memory_equal(a->credential, b->credential, sizeof a->credential);
    assert_int_equal(a->manifest_bytes, b->manifest_bytes);
    assert_memory_equal(a->manifest, b->manifest, sizeof a->manifest);
    assert_int_equal(a->n_addresses, b->n_addresses);
    for (uint8_t i = 0; i < a->n_addresses; i++) {
        CHECK(dp_address_equal(&a->addresses[i], &b->addresses[i]));
    }
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->node_name, b->node_name);
}

static void facts_come_back_after_a_restart(void **state)
{
    shelf kept;
    static dp_run_identity got;
    (void)state;
    shelf_open(&kept);
    CHECK_STATUS(dp_run_identity_load(kept.store, &got), DP_NOTFOUND);
    const dp_run_identity facts = example();
    CHECK_OK(dp_run_identity_save(kept.store, &facts));
    shelf_reopen(&kept);
    CHECK_OK(dp_run_identity_load(kept.store, &got));
    check_same(&facts, &got);
    assert_int_equal(got.renewal.until_ms, 0);
    const dp_renewal renewal = {.peer = {{1}}, .until_ms = 77, .by = {{2}}};
    const dp_run_id other = name_of(9);
    CHECK_OK(dp_run_identity_renewed(kept.store, &other, &renewal));
    CHECK_OK(dp_run_identity_load(kept.store, &got));
    assert_int_equal(got.renewal.until_ms, 0); /* Of another run. */
    CHECK_OK(dp_run_identity_renewed(kept.store, &facts.run, &renewal));
    CHECK_OK(dp_run_identity_load(kept.store, &got));
    assert_memory_equal(&got.renewal, &renewal, sizeof renewal);
    CHECK_OK(dp_run_identity_forget(kept.store));
    CHECK_OK(dp_run_identity_forget(kept.store));
    CHECK_STATUS(dp_run_identity_load(kept.store, &got), DP_NOTFOUND);
    shelf_close(&kept);
}

static void secrets_come_back_and_the_newest_stands_in_the_copy(void **state)
{
    shelf kept;
    tempdir dir = {{0}};
    static dp_run_identity got;
    const dp_secret second = {.epoch = 514, .bytes = {1}};
    (void)state;
    shelf_open(&kept);
    tempdir_open(&dir);
    dp_run_identity facts = example();
    CHECK_OK(dp_run_identity_save(kept.store, &facts));
    CHECK_OK(dp_run_identity_load(kept.store, &got));
    assert_int_equal(got.secrets.n, 1); /* That of the token. */
    assert_int_equal(got.secrets.items[0].epoch, 513);
    facts.secrets = got.secrets;
    CHECK(dp_secrets_add(&facts.secrets, &second));
    facts.psk_epoch = second.epoch;
    memcpy(facts.join_secret, second.bytes, sizeof facts.join_secret);
    CHECK_OK(dp_run_identity_rotated(kept.store, dir.path, &facts));
    shelf_reopen(&kept);
    CHECK_OK(dp_run_identity_load(kept.store, &got));
    assert_memory_equal(&got.secrets, &facts.secrets, sizeof got.secrets);
    assert_memory_equal(got.join_secret, second.bytes, sizeof second.bytes);
    CHECK_OK(dp_run_identity_copy_load(dir.path, &got, NULL));
    assert_int_equal(got.psk_epoch, 514);
    CHECK_OK(dp_run_identity_forget(kept.store));
    facts.run = name_of(9); /* Another run begins with the secret of its own token. */
    CHECK_OK(dp_run_identity_save(kept.store, &facts));
    CHECK_OK(dp_run_identity_load(kept.store, &got));
    assert_int_equal(got.secrets.n, 1);
    tempdir_close(&dir);
    shelf_close(&kept);
}

static void the_smallest_and_the_largest_facts_fit(void **state)
{
    shelf kept;
    static dp_run_identity facts;
    static dp_run_identity got;
    (void)state;
    shelf_open(&kept);
    CHECK_OK(dp_run_identity_save(kept.store, &facts));
    CHECK_OK(dp_run_identity_load(kept.store, &got));
    check_same(&facts, &got);
    facts = example();
    facts.credential_bytes = sizeof facts.credential;
    facts.manifest_bytes = sizeof facts.manifest;
    memset(facts.credential, 7, sizeof facts.credential);
    memset(facts.manifest, 8, sizeof facts.manifest);
    facts.n_addresses = DP_TOKEN_ADDRESSES_MAX;
    for (int i = 0; i < DP_TOKEN_ADDRESSES_MAX; i++) {
        facts.addresses[i] = (dp_address){.kind = DP_ADDRESS_DNS, .port = 1};
        memset(facts.addresses[i].name, 'a', DP_ADDRESS_NAME_MAX);
    }
    memset(facts.name, 'r', sizeof facts.name - 1);
    memset(facts.node_name, 'n', sizeof facts.node_name - 1);
    CHECK_OK(dp_run_identity_save(kept.store, &facts));
    CHECK_OK(dp_run_identity_load(kept.store, &got));
    check_same(&facts, &got);
    shelf_close(&kept);
}

static void that_a_run_was_lost_is_known_until_another_is_entered(void **state)
{
    shelf kept;
    (void)state;
    shelf_open(&kept);
    CHECK(!dp_run_identity_lost(kept.store));
    CHECK_OK(dp_run_identity_lost_save(kept.store));
    CHECK(dp_run_identity_lost(kept.store));
    const dp_run_identity facts = example();
    CHECK_OK(dp_run_identity_save(kept.store, &facts));
    CHECK(!dp_run_identity_lost(kept.store));
    shelf_close(&kept);
}

static void a_row_cut_short_or_with_bytes_left_over_is_corrupt(void **state)
{
    shelf kept;
    dp_buf row = {.max = 32768};
    static dp_run_identity got;
    (void)state;
    shelf_open(&kept);
    const dp_run_identity facts = example();
    CHECK_OK(dp_run_identity_save(kept.store, &facts));
    CHECK_OK(dp_store_get(kept.store, "run", &row));
    for (size_t cut = 0; cut < row.size; cut += cut < 130 || cut + 90 > row.size ? 1 : 97) {
        CHECK_OK(dp_store_put(kept.store, "run", dp_view_of(row.data, cut)));
        CHECK_STATUS(dp_run_identity_load(kept.store, &got), DP_CORRUPT);
    }
    CHECK_OK(dp_buf_append(&row, dp_view_of("", 1)));
    CHECK_OK(dp_store_put(kept.store, "run", dp_buf_view(&row)));
    CHECK_STATUS(dp_run_identity_load(kept.store, &got), DP_CORRUPT);
    row.data[0] = 9;
    CHECK_OK(dp_store_put(kept.store, "run", dp_buf_view(&row)));
    CHECK_STATUS(dp_run_identity_load(kept.store, &got), DP_VERSION);
    dp_buf_close(&row);
    shelf_close(&kept);
}

static void a_damaged_row_never_breaks_a_limit(void **state)
{
    shelf kept;
    dp_buf row = {.max = 32768};
    static dp_run_identity got;
    static uint8_t bytes[16384];
    dp_rng rng;
    (void)state;
    shelf_open(&kept);
    const dp_run_identity facts = example();
    CHECK_OK(dp_run_identity_save(kept.store, &facts));
    CHECK_OK(dp_store_get(kept.store, "run", &row));
    dp_rng_init(&rng, 1);
    for (unsigned i = 0; i < 300; i++) {
        memcpy(bytes, row.data, row.size);
        const size_t size = mutate(&rng, bytes, row.size, sizeof bytes);
        CHECK_OK(dp_store_put(kept.store, "run", dp_view_of(bytes, size)));
        if (dp_run_identity_load(kept.store, &got) == DP_OK) {
            CHECK(got.credential_bytes <= sizeof got.credential &&
                  got.manifest_bytes <= sizeof got.manifest);
            CHECK(got.n_addresses <= DP_TOKEN_ADDRESSES_MAX &&
                  strlen(got.name) <= DP_TOKEN_NAME_MAX);
        }
    }
    dp_buf_close(&row);
    shelf_close(&kept);
}

static void the_copy_outlives_the_store_and_nobody_else_reads_it(void **state)
{
    char path[TEMPDIR_FILE_MAX];
    const dp_run_identity facts = example();
    dp_run_identity back;
    struct stat is;
    tempdir dir = {{0}};

    (void)state;
    tempdir_open(&dir);
    tempdir_file(&dir, "run.member", path);
    CHECK_STATUS(dp_run_identity_copy_load(dir.path, &back, NULL), DP_NOTFOUND);
    CHECK_OK(dp_run_identity_copy_save(dir.path, &facts));
    assert_int_equal(stat(path, &is), 0);
    assert_int_equal(is.st_mode & 077, 0);
    CHECK_OK(dp_run_identity_copy_load(dir.path, &back, NULL));
    check_same(&facts, &back);
    for (off_t size = 0; size < 60; size += 7) { /* A damaged copy is none. */
        CHECK_OK(dp_run_identity_copy_save(dir.path, &facts));
        assert_int_equal(truncate(path, size), 0);
        CHECK_STATUS(dp_run_identity_copy_load(dir.path, &back, NULL), DP_CORRUPT);
    }
    CHECK_OK(dp_run_identity_copy_forget(dir.path));
    CHECK_OK(dp_run_identity_copy_forget(dir.path));
    CHECK_STATUS(dp_run_identity_copy_forget("/nowhere"), DP_NOTFOUND); /* It is not durable. */
    CHECK_STATUS(dp_run_identity_copy_load(dir.path, &back, NULL), DP_NOTFOUND);
    tempdir_close(&dir);
}

static void keep_state(shelf *kept, const dp_run_id *run)
{
    static const uint8_t tensors[1000] = {1};
    dp_ckpt ckpt = {.round = 1};
    CHECK_OK(dp_ckpt_save(kept->store, run, &ckpt, dp_view_of(tensors, sizeof tensors)));
}

static bool has_state(shelf *kept, const dp_run_id *run)
{
    dp_ckpt ckpt;
    return dp_ckpt_newest(kept->store, run, &ckpt) == DP_OK;
}

static void the_data_of_a_run_that_was_left_go_also_after_a_restart(void **state)
{
    shelf kept;
    static dp_run_identity got;
    const dp_vote_key_row key = {.secret = {1}};
    dp_vote_key_row found;
    (void)state;
    shelf_open(&kept);
    const dp_run_identity facts = example();
    CHECK_OK(dp_run_identity_save(kept.store, &facts));
    CHECK_OK(dp_vote_create_key(kept.store, &facts.run, &key));
    keep_state(&kept, &facts.run);
    CHECK_OK(dp_run_identity_drop(kept.store)); /* It has not left. */
    assert_true(has_state(&kept, &facts.run));
    CHECK_OK(dp_run_identity_leave(kept.store, &facts.run));
    CHECK_STATUS(dp_run_identity_load(kept.store, &got), DP_NOTFOUND);
    CHECK_STATUS(dp_vote_load_key(kept.store, &facts.run, &found), DP_NOTFOUND);
    assert_true(has_state(&kept, &facts.run));
    shelf_reopen(&kept);
    CHECK_OK(dp_run_identity_drop(kept.store));
    assert_false(has_state(&kept, &facts.run));
    keep_state(&kept, &facts.run);
    CHECK_OK(dp_run_identity_drop(kept.store)); /* Once. */
    assert_true(has_state(&kept, &facts.run));
    shelf_close(&kept);
}

static void a_run_that_is_entered_again_keeps_its_data(void **state)
{
    shelf kept;
    (void)state;
    shelf_open(&kept);
    const dp_run_identity facts = example();
    dp_run_identity other = example();
    other.run = name_of(2);
    keep_state(&kept, &facts.run);
    CHECK_OK(dp_run_identity_leave(kept.store, &facts.run));
    CHECK_OK(dp_run_identity_save(kept.store, &facts));
    CHECK_OK(dp_run_identity_drop(kept.store));
    assert_true(has_state(&kept, &facts.run));
    CHECK_OK(dp_run_identity_leave(kept.store, &facts.run));
    CHECK_OK(dp_run_identity_save(kept.store, &other)); /* Another run changes nothing. */
    keep_state(&kept, &other.run);
    CHECK_OK(dp_run_identity_leave(kept.store, &other.run));
    assert_true(!has_state(&kept, &facts.run) && has_state(&kept, &other.run));
    CHECK_OK(dp_run_identity_drop(kept.store));
    assert_false(has_state(&kept, &other.run));
    shelf_close(&kept);
}

static void a_run_is_unfinished_until_its_facts_are_stored(void **state)
{
    shelf kept;
    dp_run_id run;
    uint8_t root[DP_PUBLIC_KEY_BYTES];
    const dp_vote_key_row key = {.secret = {1}};
    dp_vote_key_row found;
    (void)state;
    shelf_open(&kept);
    const dp_run_identity facts = example();
    CHECK_STATUS(dp_run_identity_unfinished(kept.store, &run, root), DP_NOTFOUND);
    CHECK_OK(dp_run_identity_founding(kept.store, &facts.run, facts.root));
    shelf_reopen(&kept);
    CHECK_OK(dp_run_identity_unfinished(kept.store, &run, root));
    assert_true(dp_hash_equal(&run, &facts.run));
    assert_memory_equal(root, facts.root, sizeof root);
    CHECK_OK(dp_vote_create_key(kept.store, &run, &key));
    CHECK_OK(dp_run_identity_abandon(kept.store, &run));
    CHECK_STATUS(dp_vote_load_key(kept.store, &run, &found), DP_NOTFOUND);
    CHECK_STATUS(dp_run_identity_unfinished(kept.store, &run, root), DP_NOTFOUND);
    CHECK_OK(dp_run_identity_founding(kept.store, &facts.run, facts.root));
    CHECK_OK(dp_run_identity_save(kept.store, &facts));
    CHECK_STATUS(dp_run_identity_unfinished(kept.store, &run, root), DP_NOTFOUND);
    shelf_close(&kept);
}

/* Its id is made of its data, which are stored first. */
static void the_data_of_a_run_that_has_no_id_yet_go_with_its_mark(void **state)
{
    const dp_run_id none = {{0}};
    const dp_pin unnamed = {.kind = DP_PIN_DATA};
    shelf kept;
    dp_run_id run;
    dp_hash root;
    uint8_t root_key[DP_PUBLIC_KEY_BYTES];
    dp_object_info info;
    (void)state;
    shelf_open(&kept);
    const dp_run_identity facts = example();
    keep_state(&kept, &facts.run); /* of another run, that was left with its data */
    CHECK_OK(dp_run_identity_founding(kept.store, &none, facts.root));
    CHECK_OK(dp_object_put(kept.store, dp_view_text("tokens"), &unnamed, &root));
    shelf_reopen(&kept);
    CHECK_OK(dp_object_stat(kept.store, &root, &info));
    CHECK_OK(dp_run_identity_unfinished(kept.store, &run, root_key));
    assert_true(dp_hash_is_zero(&run));
    CHECK_OK(dp_run_identity_abandon(kept.store, &run));
    CHECK_STATUS(dp_object_stat(kept.store, &root, &info), DP_NOTFOUND);
    CHECK_STATUS(dp_run_identity_unfinished(kept.store, &run, root_key), DP_NOTFOUND);
    assert_true(has_state(&kept, &facts.run));
    shelf_close(&kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_come_back_after_a_restart),
        cmocka_unit_test(secrets_come_back_and_the_newest_stands_in_the_copy),
        cmocka_unit_test(the_smallest_and_the_largest_facts_fit),
        cmocka_unit_test(that_a_run_was_lost_is_known_until_another_is_entered),
        cmocka_unit_test(a_row_cut_short_or_with_bytes_left_over_is_corrupt),
        cmocka_unit_test(a_damaged_row_never_breaks_a_limit),
        cmocka_unit_test(the_data_of_a_run_that_was_left_go_also_after_a_restart),
        cmocka_unit_test(a_run_that_is_entered_again_keeps_its_data),
        cmocka_unit_test(a_run_is_unfinished_until_its_facts_are_stored),
        cmocka_unit_test(the_data_of_a_run_that_has_no_id_yet_go_with_its_mark),
        cmocka_unit_test(the_copy_outlives_the_store_and_nobody_else_reads_it),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
