#include "tests/unit/store/shelf.h"

#include "store/inside.h"
#include "store/rows.h"

enum { SMALL = 3000 };

typedef struct seen {
    char names[256]; /* Each with a blank behind it. */
    char last[64];   /* Bytes of the last row. */
    dp_hash keep[DP_ROW_KEEPS];
    uint32_t count;
    dp_status answer;
} seen;

static dp_status see(const dp_store_row *row, void *context)
{
    seen *s = (seen *)context;
    const size_t used = strlen(s->names);
    snprintf(s->names + used, sizeof s->names - used, "%s ", row->name);
    snprintf(s->last, sizeof s->last, "%.*s", (int)row->bytes.size, (const char *)row->bytes.data);
    memcpy(s->keep, row->keep, sizeof s->keep);
    s->count++;
    return s->answer;
}

static dp_hash the_run(void)
{
    return pin_of(DP_PIN_PENDING, 0).run;
}

/* Puts it like the daemon: staged by a pin, named by the row, released by the pin. */
static dp_hash staged(shelf *s, uint64_t seed)
{
    return put_noise(s->store, seed, SMALL, DP_PIN_PENDING, 0);
}

static dp_store_row row_of(const char *name, const char *bytes)
{
    dp_store_row row = {.bytes = dp_view_text(bytes)};
    snprintf(row.name, sizeof row.name, "%s", name);
    return row;
}

static void unstage(shelf *s)
{
    const dp_hash run = the_run();
    CHECK_OK(dp_object_prune(s->store, &run, DP_PIN_PENDING, 1));
}

static void a_row_alone_keeps_its_objects_over_a_restart(void **state)
{
    (void)state;
    const dp_hash run = the_run();
    seen got = {0};
    shelf s;
    shelf_open(&s);
    dp_store_row row = row_of("pending", "one");
    row.keep[0] = staged(&s, 10);
    row.keep[2] = staged(&s, 11);
    const dp_hash loose = staged(&s, 12);
    CHECK_OK(dp_store_row_put(s.store, &run, &row));
    unstage(&s);
    shelf_reopen(&s);
    CHECK_OK(dp_store_row_each(s.store, &run, "", see, &got));
    CHECK(got.count == 1);
    assert_string_equal(got.last, "one");
    assert_memory_equal(got.keep, row.keep, sizeof row.keep);
    CHECK(holds_noise(s.store, &row.keep[0], 10, SMALL) &&
          holds_noise(s.store, &row.keep[2], 11, SMALL));
    CHECK_STATUS(dp_object_verify(s.store, &loose), DP_NOTFOUND);
    shelf_close(&s);
}

static void a_replaced_row_lets_go_of_what_the_new_one_does_not_name(void **state)
{
    (void)state;
    const dp_hash run = the_run();
    shelf s;
    shelf_open(&s);
    dp_store_row row = row_of("pending", "one");
    row.keep[0] = staged(&s, 10);
    row.keep[1] = staged(&s, 11);
    const dp_hash first = row.keep[0];
    CHECK_OK(dp_store_row_put(s.store, &run, &row));
    row.keep[0] = row.keep[1];
    row.keep[1] = staged(&s, 12);
    CHECK_OK(dp_store_row_put(s.store, &run, &row));
    unstage(&s);
    CHECK_OK(dp_object_collect(s.store, NULL));
    CHECK_STATUS(dp_object_verify(s.store, &first), DP_NOTFOUND);
    CHECK(holds_noise(s.store, &row.keep[0], 11, SMALL) &&
          holds_noise(s.store, &row.keep[1], 12, SMALL));
    CHECK_OK(dp_store_row_delete(s.store, &run, "pending"));
    CHECK_OK(dp_store_row_delete(s.store, &run, "pending"));
    CHECK_OK(dp_object_collect(s.store, NULL));
    CHECK_STATUS(dp_object_verify(s.store, &row.keep[0]), DP_NOTFOUND);
    CHECK_STATUS(dp_object_verify(s.store, &row.keep[1]), DP_NOTFOUND);
    shelf_close(&s);
}

static void an_object_lives_while_one_of_two_rows_names_it(void **state)
{
    (void)state;
    const dp_hash run = the_run();
    shelf s;
    shelf_open(&s);
    dp_store_row one = row_of("exchange:1", "one");
    dp_store_row two = row_of("exchange:2", "two");
    one.keep[1] = staged(&s, 10);
    two.keep[0] = one.keep[1];
    CHECK_OK(dp_store_row_put(s.store, &run, &one));
    CHECK_OK(dp_store_row_put(s.store, &run, &two));
    unstage(&s);
    CHECK_OK(dp_store_row_delete(s.store, &run, "exchange:1"));
    CHECK_OK(dp_object_collect(s.store, NULL));
    CHECK(holds_noise(s.store, &two.keep[0], 10, SMALL));
    shelf_close(&s);
}

static dp_status count_row(const dp_store_row *row, void *context)
{
    (void)row;
    ++*(uint32_t *)context;
    return DP_OK;
}

static void rows_of_a_prefix_are_dropped_with_what_they_keep(void **state)
{
    (void)state;
    const dp_hash run = the_run();
    uint32_t left = 0;
    shelf s;
    shelf_open(&s);
    dp_store_row one = row_of("exchange:1", "one");
    dp_store_row two = row_of("exchange", "two");
    one.keep[1] = staged(&s, 10);
    CHECK_OK(dp_store_row_put(s.store, &run, &one));
    CHECK_OK(dp_store_row_put(s.store, &run, &two));
    unstage(&s);
    CHECK_OK(dp_store_row_drop(s.store, &run, "exchange:"));
    CHECK_OK(dp_store_row_each(s.store, &run, "", count_row, &left));
    assert_int_equal(left, 1);
    CHECK_OK(dp_object_collect(s.store, NULL));
    CHECK_STATUS(dp_object_verify(s.store, &one.keep[1]), DP_NOTFOUND);
    shelf_close(&s);
}

static void a_row_cannot_name_what_is_not_whole_and_the_old_one_stays(void **state)
{
    (void)state;
    const dp_hash run = the_run();
    const dp_pin pin = pin_of(DP_PIN_PENDING, 0);
    uint8_t *bytes = noise(20, SMALL);
    const dp_hash leaf = dp_chunk_leaf(dp_view_of(bytes, SMALL));
    const dp_hash half = dp_object_root(SMALL, &leaf);
    seen got = {0};
    shelf s;
    shelf_open(&s);
    dp_store_row row = row_of("pending", "one");
    row.keep[0] = staged(&s, 10);
    CHECK_OK(dp_store_row_put(s.store, &run, &row));
    dp_store_row next = row_of("pending", "two");
    next.keep[0] = name_of(3);
    CHECK_STATUS(dp_store_row_put(s.store, &run, &next), DP_NOTFOUND);
    CHECK_OK(dp_object_begin(s.store, &half, SMALL, &leaf, &pin));
    next.keep[0] = half;
    CHECK_STATUS(dp_store_row_put(s.store, &run, &next), DP_AGAIN);
    CHECK_OK(dp_store_row_each(s.store, &run, "", see, &got));
    assert_string_equal(got.last, "one");
    unstage(&s);
    shelf_reopen(&s);
    CHECK(holds_noise(s.store, &row.keep[0], 10, SMALL));
    free(bytes);
    shelf_close(&s);
}

static void rows_are_listed_by_prefix_and_run(void **state)
{
    (void)state;
    const dp_hash run = the_run();
    const dp_hash other = name_of(2);
    static const char *const names[] = {"pending", "exchange:b", "exchange:a", "exchange",
                                        "exchangf"};
    seen some = {0};
    seen all = {0};
    seen none = {0};
    seen stopped = {.answer = DP_BUSY};
    shelf s;
    shelf_open(&s);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const dp_store_row row = row_of(names[i], names[i]);
        CHECK_OK(dp_store_row_put(s.store, &run, &row));
    }
    CHECK_OK(dp_store_row_each(s.store, &run, "exchange:", see, &some));
    assert_string_equal(some.names, "exchange:a exchange:b ");
    CHECK_OK(dp_store_row_each(s.store, &run, "", see, &all));
    assert_string_equal(all.names, "exchange exchange:a exchange:b exchangf pending ");
    CHECK_OK(dp_store_row_each(s.store, &other, "", see, &none));
    CHECK(none.count == 0);
    CHECK_STATUS(dp_store_row_each(s.store, &run, "", see, &stopped), DP_BUSY);
    CHECK(stopped.count == 1);
    shelf_close(&s);
}

static void names_bytes_and_count_are_bounded(void **state)
{
    (void)state;
    const dp_hash run = the_run();
    static uint8_t bytes[DP_ROW_BYTES_MAX + 1];
    shelf s;
    shelf_open(&s);
    dp_store_row row = {.bytes = dp_view_of(bytes, DP_ROW_BYTES_MAX)};
    CHECK_STATUS(dp_store_row_put(s.store, &run, &row), DP_BADARG);
    memset(row.name, 'x', sizeof row.name);
    CHECK_STATUS(dp_store_row_put(s.store, &run, &row), DP_BADARG);
    row = row_of("large", "");
    row.bytes = dp_view_of(bytes, sizeof bytes);
    CHECK_STATUS(dp_store_row_put(s.store, &run, &row), DP_TOOBIG);
    row.bytes.size--;
    CHECK_OK(dp_store_row_put(s.store, &run, &row));
    row.bytes.size = 1;
    for (unsigned i = 1; i < DP_ROWS_MAX; i++) {
        snprintf(row.name, sizeof row.name, "row:%u", i);
        CHECK_OK(dp_store_row_put(s.store, &run, &row));
    }
    CHECK_OK(dp_store_row_put(s.store, &run, &row));
    snprintf(row.name, sizeof row.name, "one too many");
    CHECK_STATUS(dp_store_row_put(s.store, &run, &row), DP_TOOBIG);
    shelf_close(&s);
}

static void a_row_with_a_flipped_bit_is_not_given_out(void **state)
{
    (void)state;
    static const char *const columns[] = {"keep0", "keep2", "bytes", "name", "run"};
    const dp_hash run = the_run();
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        seen got = {0};
        char sql[128];
        shelf s;
        shelf_open(&s);
        const dp_store_row row = row_of("pending", "abc");
        CHECK_OK(dp_store_row_put(s.store, &run, &row));
        const dp_hash elsewhere = name_of(9);
        char hex[2 * DP_HASH_BYTES + 1];
        dp_hex(dp_view_of(elsewhere.bytes, DP_HASH_BYTES), hex);
        const bool is_name = strcmp(columns[i], "name") == 0;
        snprintf(sql, sizeof sql, "UPDATE row SET %s=%s%s'", columns[i], is_name ? "'" : "x'",
                 is_name ? "penning" : hex);
        CHECK_OK(dp_sql_exec(&s.store->meta, sql));
        const bool moved = strcmp(columns[i], "run") == 0;
        CHECK_STATUS(dp_store_row_each(s.store, moved ? &elsewhere : &run, "", see, &got),
                     DP_CORRUPT);
        CHECK(got.count == 0);
        shelf_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_alone_keeps_its_objects_over_a_restart),
        cmocka_unit_test(a_replaced_row_lets_go_of_what_the_new_one_does_not_name),
        cmocka_unit_test(an_object_lives_while_one_of_two_rows_names_it),
        cmocka_unit_test(rows_of_a_prefix_are_dropped_with_what_they_keep),
        cmocka_unit_test(a_row_cannot_name_what_is_not_whole_and_the_old_one_stays),
        cmocka_unit_test(rows_are_listed_by_prefix_and_run),
        cmocka_unit_test(names_bytes_and_count_are_bounded),
        cmocka_unit_test(a_row_with_a_flipped_bit_is_not_given_out),
    };
    tempdir_in_memory(); /* Many syncs; test_db stays on a disk, and waits for its own. */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
