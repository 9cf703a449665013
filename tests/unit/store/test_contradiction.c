/* Rows that contradict each other or their own bounds, as by damage or strangers: reported or left
 * out, and never trusted. */
#include "tests/unit/store/shelf.h"

#include <unistd.h>

#include "base/alloc.h"
#include "store/chain.h"
#include "store/inside.h"
#include "store/peers.h"
#include "store/vote.h"

enum { SIZE = 700000 };

static void spoil(dp_sql *sql, const char *text)
{
    CHECK_OK(dp_sql_exec(sql, text));
}

static void close_store(shelf *s)
{
    dp_store_close(s->store);
    s->store = NULL;
}

static void lose_meta(shelf *s)
{
    close_store(s);
    assert_int_equal(unlink(shelf_file(s, "meta.db")), 0);
}

/* ---- meta.db ---- */

static dp_status see_nothing(const dp_chain_record *row, void *context)
{
    (void)row;
    (void)context;
    return DP_OK;
}

static void a_chain_with_a_hole_is_told_and_one_that_begins_late_is_not_one(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    dp_chain_record row = {.record = dp_view_text("r"), .cert = dp_view_text("c")};
    shelf s;
    shelf_open(&s);
    for (row.slot = 5; row.slot <= 9; row.slot++) {
        row.hash = name_of(row.slot);
        CHECK_OK(dp_chain_append(s.store, &run, &row));
    }
    row.slot = 3;
    CHECK_STATUS(dp_chain_append(s.store, &run, &row), DP_BADARG);
    CHECK_STATUS(dp_chain_each(s.store, &run, 3, 10, see_nothing, NULL), DP_NOTFOUND);
    CHECK_OK(dp_chain_each(s.store, &run, 5, 10, see_nothing, NULL));
    spoil(&s.store->meta, "DELETE FROM record WHERE slot=7");
    CHECK_STATUS(dp_chain_each(s.store, &run, 5, 10, see_nothing, NULL), DP_CORRUPT);
    CHECK_OK(dp_chain_each(s.store, &run, 5, 2, see_nothing, NULL));
    shelf_close(&s);
}

static void an_object_larger_than_any_and_a_peer_with_too_long_a_card_are_told(void **state)
{
    (void)state;
    static dp_peer_row peer;
    static dp_peer_row list[2];
    uint32_t count = 0;
    dp_object_info info;
    shelf s;
    shelf_open(&s);
    const dp_hash root = put_noise(s.store, 1, SIZE, DP_PIN_BLOB, 1);
    spoil(&s.store->meta, "UPDATE object SET size=4611686018427387904");
    CHECK_STATUS(dp_object_stat(s.store, &root, &info), DP_CORRUPT);
    peer = (dp_peer_row){.id = name_of(7), .card_bytes = 5};
    CHECK_OK(dp_peer_save(s.store, &peer));
    spoil(&s.store->meta, "UPDATE peer SET card=zeroblob(5000)");
    CHECK_STATUS(dp_peer_list(s.store, list, 2, &count), DP_CORRUPT);
    CHECK_STATUS(dp_peer_load(s.store, &peer.id, &peer), DP_CORRUPT);
    shelf_close(&s);
}

/* A finding of the check contains names from the file. A name that looks like SQLite's word for a
 * page that could not be read, with the code for success, is damage all the same. */
static void a_finding_that_claims_success_is_damage(void **state)
{
    (void)state;
    shelf s;
    shelf_open(&s);
    const dp_hash root = put_noise(s.store, 1, SIZE, DP_PIN_BLOB, 1);
    spoil(&s.store->meta, "PRAGMA ignore_check_constraints=ON;"
                          "CREATE TABLE \"error code=0\"(a CHECK(a>0));"
                          "INSERT INTO \"error code=0\" VALUES(-1);");
    shelf_reopen(&s);
    CHECK(s.report.meta_rebuilt);
    assert_string_equal(s.report.moved_to, "meta.db.corrupt-1");
    CHECK(holds_noise(s.store, &root, 1, SIZE));
    shelf_close(&s);
}

/* A bit of one small row may not cost the node its votes, nor its next start. */
static void a_damaged_small_row_costs_neither_vote_nor_chain(void **state)
{
    (void)state;
    static const char *const harms[] = {
        "UPDATE kv SET val=x'33' WHERE key='store/ready'",
        "UPDATE kv SET key='store/reacy' WHERE key='store/ready'",
        "UPDATE kv SET val=zeroblob(8) WHERE key='store/incarnation'",
        "UPDATE kv SET val=zeroblob(8)",
    };
    const dp_hash run = name_of(1);
    const dp_chain_record row = {
        .slot = 1, .hash = name_of(2), .record = dp_view_text("r"), .cert = dp_view_text("c")};
    for (size_t i = 0; i < sizeof harms / sizeof harms[0]; i++) {
        dp_vote_key_row key = {{9}, {8}};
        dp_chain_tip tip;
        uint64_t before = 0;
        uint64_t after = 0;
        shelf s;
        shelf_open(&s);
        CHECK_OK(dp_store_bump_incarnation(s.store, 1000, &before));
        CHECK_OK(dp_store_put(s.store, "limits", dp_view_text("x")));
        CHECK_OK(dp_chain_append(s.store, &run, &row));
        CHECK_OK(dp_vote_create_key(s.store, &run, &key));
        const dp_hash root = put_noise(s.store, 1, SIZE, DP_PIN_BLOB, 1);
        spoil(&s.store->meta, harms[i]);
        for (int start = 0; start < 2; start++) {
            shelf_reopen(&s);
            CHECK(!s.report.created && !s.report.meta_rebuilt && s.report.moved_to[0] == '\0');
            CHECK_OK(dp_store_bump_incarnation(s.store, before, &after));
            CHECK(after == before + 1 + (uint64_t)start);
        }
        CHECK_OK(dp_chain_head(s.store, &run, &tip));
        CHECK_OK(dp_vote_load_key(s.store, &run, &key));
        CHECK(holds_noise(s.store, &root, 1, SIZE));
        shelf_close(&s);
    }
}

/* ---- chunks.db ---- */

static void a_chunk_of_another_length_or_without_a_row_is_missing_from_then_on(void **state)
{
    (void)state;
    static const char *const harms[] = {"UPDATE chunk SET data=zeroblob(10)", "DELETE FROM chunk",
                                        "UPDATE chunk SET data=zeroblob(5000000)",
                                        "UPDATE chunk SET data=zeroblob(size)"};
    for (size_t i = 0; i < sizeof harms / sizeof harms[0]; i++) {
        dp_object_info info;
        shelf s;
        shelf_open(&s);
        const dp_hash root = put_noise(s.store, 1, 1000, DP_PIN_BLOB, 1);
        spoil(&s.store->chunks, harms[i]);
        CHECK_STATUS(dp_object_verify(s.store, &root), i == 1 ? DP_NOTFOUND : DP_BADHASH);
        CHECK_OK(dp_object_stat(s.store, &root, &info));
        CHECK(!info.complete && info.n_present == 0);
        const dp_hash again = put_noise(s.store, 1, 1000, DP_PIN_BLOB, 1);
        CHECK(holds_noise(s.store, &again, 1, 1000));
        shelf_close(&s);
    }
}

static void a_new_meta_db_takes_in_only_chunks_and_objects_that_verify(void **state)
{
    (void)state;
    static const char *const chunk_harms[] = {
        "UPDATE chunk SET data=zeroblob(5000000) WHERE id=(SELECT max(id) FROM chunk)",
        "UPDATE chunk SET data=zeroblob(size) WHERE id=(SELECT max(id) FROM chunk)"};
    static const char *const recipe_harms[] = {"UPDATE recipe SET leaves=zeroblob(length(leaves))",
                                               "UPDATE recipe SET leaves=zeroblob(31)",
                                               "UPDATE recipe SET size=4611686018427387904",
                                               "UPDATE recipe SET round=-1"};
    dp_object_info info;
    for (size_t i = 0; i < sizeof chunk_harms / sizeof chunk_harms[0]; i++) {
        shelf s;
        shelf_open(&s);
        const dp_hash good = put_noise(s.store, 1, 1000, DP_PIN_BLOB, 1);
        const dp_hash bad = put_noise(s.store, 2, 1000, DP_PIN_BLOB, 1);
        spoil(&s.store->chunks, chunk_harms[i]);
        lose_meta(&s);
        shelf_reopen(&s);
        CHECK(s.report.meta_rebuilt && s.report.chunks_damaged == 1);
        CHECK(holds_noise(s.store, &good, 1, 1000));
        CHECK_STATUS(dp_object_stat(s.store, &bad, &info), DP_NOTFOUND);
        shelf_close(&s);
    }
    for (size_t i = 0; i < sizeof recipe_harms / sizeof recipe_harms[0]; i++) {
        shelf s;
        shelf_open(&s);
        const dp_hash root = put_noise(s.store, 1, 1000, DP_PIN_BLOB, 1);
        spoil(&s.store->chunks, recipe_harms[i]);
        lose_meta(&s);
        shelf_reopen(&s);
        CHECK_STATUS(dp_object_stat(s.store, &root, &info), DP_NOTFOUND);
        shelf_close(&s);
    }
}

/* ---- memory ---- */

/* The n-th allocation of a start fails; the start after it finds the object. True if there were not
 * so many. */
static bool fail_nth_of_rebuild(bool meta, uint64_t n)
{
    dp_store *store = NULL;
    shelf s;
    shelf_open(&s);
    const dp_hash root = put_noise(s.store, 1, SIZE, DP_PIN_BLOB, 1);
    if (meta) {
        lose_meta(&s);
    } else { /* As a reader that met damage left it. */
        CHECK_OK(dp_store_put(s.store, DP_STORE_SUSPECT_KEY, dp_view_text("1")));
        close_store(&s);
    }
    dp_alloc_fail_after(n);
    const dp_status status = dp_store_open(&store, s.path, &s.options, NULL, NULL);
    dp_alloc_fail_after(0);
    CHECK(status == DP_OK || status == DP_NOMEM);
    dp_store_close(store);
    shelf_reopen(&s);
    dp_object_info info;
    CHECK_OK(dp_object_stat(s.store, &root, &info));
    if (meta) {
        CHECK(holds_noise(s.store, &root, 1, SIZE));
    }
    shelf_close(&s);
    return status == DP_OK;
}

static void a_rebuild_tells_that_memory_is_gone_and_the_next_one_goes_through(void **state)
{
    (void)state;
    for (int meta = 0; meta < 2; meta++) {
        uint64_t n = 1;
        while (n < 100 && !fail_nth_of_rebuild(meta == 1, n)) {
            n++;
        }
        CHECK(n > 3 && n < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_with_a_hole_is_told_and_one_that_begins_late_is_not_one),
        cmocka_unit_test(an_object_larger_than_any_and_a_peer_with_too_long_a_card_are_told),
        cmocka_unit_test(a_finding_that_claims_success_is_damage),
        cmocka_unit_test(a_damaged_small_row_costs_neither_vote_nor_chain),
        cmocka_unit_test(a_chunk_of_another_length_or_without_a_row_is_missing_from_then_on),
        cmocka_unit_test(a_new_meta_db_takes_in_only_chunks_and_objects_that_verify),
        cmocka_unit_test(a_rebuild_tells_that_memory_is_gone_and_the_next_one_goes_through),
    };
    tempdir_in_memory(); /* Many starts, each with its syncs. */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
