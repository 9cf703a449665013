#include <sys/stat.h>

#include "store/chain.h"
#include "store/ckpt.h"
#include "store/rows.h"
#include "store/vote.h"
#include "tests/unit/store/ckpt_kit.h"
#include "tests/unit/store/shelf.h"

enum { STATE = 3000000, BLOB = 400000, RECORDS = 200 };

static uint64_t file_bytes(const shelf *s, const char *name)
{
    struct stat info = {0};
    assert_int_equal(stat(shelf_file(s, name), &info), 0);
    return (uint64_t)info.st_size;
}

static uint64_t store_bytes(shelf *s)
{
    uint64_t bytes = 0;
    CHECK_OK(dp_store_bytes(s->store, &bytes));
    return bytes;
}

/* A chain, a kept and an ordinary checkpoint, data, an update and a row with its object. */
static void fill(shelf *s, uint64_t number)
{
    const dp_hash run = name_of(number);
    dp_ckpt ckpt = {.round = 1, .created_ms = 1};
    dp_store_row row = {.name = "pending/1", .bytes = dp_view_text("bytes")};
    const dp_vote_key_row key = {.secret = {1}};
    uint8_t *bytes = noise(number, STATE);
    for (uint64_t slot = 1; slot <= RECORDS; slot++) {
        const dp_chain_record record = {.slot = slot,
                                        .hash = name_of(slot),
                                        .record = dp_view_of(bytes, 2000),
                                        .cert = dp_view_text("cert")};
        CHECK_OK(dp_chain_append(s->store, &run, &record));
    }
    CHECK_OK(dp_ckpt_save(s->store, &run, &ckpt, dp_view_of(bytes, STATE)));
    CHECK_OK(dp_ckpt_keep(s->store, &run, 1, true));
    ckpt.round = 2;
    CHECK_OK(dp_ckpt_save(s->store, &run, &ckpt, dp_view_of(bytes, STATE - 1)));
    for (uint32_t kind = DP_PIN_BLOB; kind <= DP_PIN_LEASE; kind++) {
        const dp_pin pin = {.run = run, .kind = (dp_pin_kind)kind, .round = 7};
        CHECK_OK(dp_object_put(s->store, dp_view_of(bytes, BLOB + kind), &pin, &row.keep[0]));
    }
    CHECK_OK(dp_store_row_put(s->store, &run, &row));
    CHECK_OK(dp_vote_create_key(s->store, &run, &key));
    free(bytes);
}

static dp_status count_row(const dp_store_row *row, void *context)
{
    (void)row;
    ++*(uint32_t *)context;
    return DP_OK;
}

/* Tells whether the run has what fill made; checks that it has all of it or none. */
static bool is_there(shelf *s, uint64_t number)
{
    const dp_hash run = name_of(number);
    dp_ckpt list[4];
    dp_hash roots[4];
    dp_chain_tip tip;
    uint32_t n_ckpts = 0;
    uint32_t n_rows = 0;
    CHECK_OK(dp_ckpt_list(s->store, &run, list, 4, &n_ckpts));
    CHECK_OK(dp_store_row_each(s->store, &run, "", count_row, &n_rows));
    const bool there = n_ckpts > 0;
    CHECK(n_ckpts == (there ? 2 : 0) && n_rows == (there ? 1 : 0));
    CHECK_STATUS(dp_chain_head(s->store, &run, &tip), there ? DP_OK : DP_NOTFOUND);
    CHECK_STATUS(dp_chain_read(s->store, &run, 5, NULL, NULL, NULL), there ? DP_OK : DP_NOTFOUND);
    for (uint32_t kind = DP_PIN_BLOB; kind <= DP_PIN_LEASE; kind++) {
        uint32_t count = 0;
        CHECK_OK(dp_object_pins(s->store, &run, (dp_pin_kind)kind, roots, 4, &count));
        CHECK(count == (there ? 1 : 0));
        CHECK(!there || dp_object_verify(s->store, &roots[0]) == DP_OK);
    }
    return there;
}

static void a_run_goes_and_another_stays_whole(void **state)
{
    const dp_hash run = name_of(1);
    const dp_hash other = name_of(2);
    dp_vote_key_row key;
    uint32_t n_good = 0;
    uint32_t n_bad = 0;
    shelf s;
    (void)state;
    shelf_open(&s);
    fill(&s, 2);
    const uint64_t before = store_bytes(&s);
    fill(&s, 1);
    assert_true(store_bytes(&s) > before + STATE);
    CHECK_OK(dp_store_drop_run(s.store, &run));
    CHECK_OK(dp_object_collect(s.store, NULL));
    assert_true(!is_there(&s, 1) && is_there(&s, 2));
    assert_true(store_bytes(&s) < before + STATE / 10);
    CHECK_OK(verify_ckpts(s.store, &other, &n_good, &n_bad));
    assert_true(n_good == 2 && n_bad == 0);
    CHECK_OK(dp_vote_load_key(s.store, &run, &key)); /* vote.h destroys it. */
    CHECK_OK(dp_store_drop_run(s.store, &run));
    shelf_reopen(&s);
    assert_true(!is_there(&s, 1) && is_there(&s, 2));
    shelf_close(&s);
}

static void the_disk_gets_the_space_back(void **state)
{
    const dp_hash run = name_of(1);
    bool more = true;
    uint32_t turns = 0;
    shelf s;
    (void)state;
    shelf_open(&s);
    const uint64_t before = file_bytes(&s, "chunks.db");
    fill(&s, 1);
    const dp_hash kept = put_noise(s.store, 77, STATE, DP_PIN_DATA, 0);
    CHECK_OK(dp_store_drop_run(s.store, &run));
    CHECK_OK(dp_object_collect(s.store, NULL));
    assert_true(file_bytes(&s, "chunks.db") > before + 2 * STATE);
    while (more) {
        CHECK_OK(dp_store_shrink(s.store, &more));
        assert_true(++turns < 10);
    }
    assert_true(file_bytes(&s, "chunks.db") < before + STATE + STATE / 2);
    assert_true(holds_noise(s.store, &kept, 77, STATE));
    CHECK_OK(dp_store_shrink(s.store, &more));
    assert_false(more);
    shelf_reopen(&s);
    assert_true(holds_noise(s.store, &kept, 77, STATE));
    shelf_close(&s);
}

static void give_all_back(shelf *s)
{
    bool more = true;
    for (uint32_t turns = 0; more; turns++) {
        CHECK_OK(dp_store_give_back(s->store, &more));
        assert_true(turns < 10);
    }
}

static void space_goes_back_while_the_files_are_above_the_quota(void **state)
{
    const dp_hash run = name_of(1);
    shelf s;
    (void)state;
    shelf_open(&s);
    fill(&s, 1);
    CHECK_OK(dp_store_drop_run(s.store, &run));
    CHECK_OK(dp_object_collect(s.store, NULL));
    const uint64_t full = file_bytes(&s, "chunks.db");
    give_all_back(&s);
    assert_int_equal(file_bytes(&s, "chunks.db"), full); /* The store uses the pages again. */
    dp_store_limit(s.store, 2 * full);
    give_all_back(&s);
    assert_int_equal(file_bytes(&s, "chunks.db"), full);
    dp_store_limit(s.store, full / 2);
    give_all_back(&s);
    assert_true(file_bytes(&s, "chunks.db") < full / 2);
    dp_store_limit(s.store, 1); /* Below the use: no page is free any more. */
    give_all_back(&s);
    shelf_close(&s);
}

static void data_without_a_run_goes_with_the_last_one(void **state)
{
    static const dp_pin unnamed = {.kind = DP_PIN_DATA};
    const dp_hash first = name_of(1);
    const dp_hash second = name_of(2);
    dp_object_info info;
    dp_hash root;
    shelf s;
    (void)state;
    shelf_open(&s);
    fill(&s, 1);
    fill(&s, 2);
    CHECK_OK(dp_object_put(s.store, dp_view_text("a text"), &unnamed, &root));
    CHECK_OK(dp_vote_destroy_key(s.store, &first));
    CHECK_OK(dp_store_drop_run(s.store, &first));
    CHECK_OK(dp_object_collect(s.store, NULL));
    CHECK_OK(dp_object_stat(s.store, &root, &info)); /* It may be of the second. */
    CHECK_OK(dp_vote_destroy_key(s.store, &second));
    CHECK_OK(dp_store_drop_run(s.store, &second));
    CHECK_OK(dp_object_collect(s.store, NULL));
    CHECK_STATUS(dp_object_stat(s.store, &root, &info), DP_NOTFOUND);
    shelf_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_goes_and_another_stays_whole),
        cmocka_unit_test(the_disk_gets_the_space_back),
        cmocka_unit_test(space_goes_back_while_the_files_are_above_the_quota),
        cmocka_unit_test(data_without_a_run_goes_with_the_last_one),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
