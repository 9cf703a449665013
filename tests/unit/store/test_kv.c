#include "tests/unit/store/shelf.h"

#include <sys/stat.h>
#include <unistd.h>

#include "store/inside.h"

static void values_are_kept_and_replaced(void **state)
{
    (void)state;
    dp_buf out;
    dp_buf_init(&out, 100);
    shelf s;
    shelf_open(&s);
    CHECK(s.report.created);
    CHECK_STATUS(dp_store_get(s.store, "run", &out), DP_NOTFOUND);
    CHECK_OK(dp_store_put(s.store, "run", dp_view_text("one")));
    CHECK_OK(dp_store_put(s.store, "run", dp_view_text("two")));
    CHECK_OK(dp_store_put(s.store, "empty", dp_view_of(NULL, 0)));
    shelf_reopen(&s);
    CHECK(!s.report.created && !s.report.meta_rebuilt && !s.report.chunks_rebuilt);
    CHECK_OK(dp_store_get(s.store, "run", &out));
    CHECK(dp_view_equal(dp_buf_view(&out), dp_view_text("two")));
    CHECK_OK(dp_store_get(s.store, "empty", &out));
    CHECK_OK(dp_store_delete(s.store, "run"));
    CHECK_OK(dp_store_delete(s.store, "run"));
    CHECK_STATUS(dp_store_get(s.store, "run", &out), DP_NOTFOUND);
    char key[DP_STORE_KEY_MAX + 2];
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    CHECK_STATUS(dp_store_put(s.store, key, dp_view_text("x")), DP_TOOBIG);
    dp_buf_close(&out);
    shelf_close(&s);
}

static void lose_meta(shelf *s)
{
    dp_store_close(s->store);
    s->store = NULL;
    assert_int_equal(unlink(shelf_file(s, "meta.db")), 0);
    shelf_reopen(s);
}

/* The value of the key "pause", row or copy; "": there is none, "?": it cannot be read. */
static const char *order(shelf *s)
{
    static char text[64];
    dp_buf out;
    dp_buf_init(&out, sizeof text - 1);
    const dp_status status = dp_store_get_either(s->store, "pause", &out);
    CHECK(status == DP_OK || status == DP_NOTFOUND || status == DP_CORRUPT);
    snprintf(text, sizeof text, "%.*s", (int)out.size, out.size > 0 ? (const char *)out.data : "");
    dp_buf_close(&out);
    return status == DP_CORRUPT ? "?" : text;
}

static void write_file(const char *path, const char *text)
{
    FILE *const file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0600), 0);
}

static void an_order_outlives_a_lost_meta_db_and_a_damaged_row(void **state)
{
    (void)state;
    shelf s;
    shelf_open(&s);
    assert_string_equal(order(&s), "");
    CHECK_OK(dp_store_put_both(s.store, "pause", dp_view_text("one")));
    CHECK_OK(dp_store_put_both(s.store, "pause", dp_view_text("two")));
    CHECK_OK(dp_sql_exec(&s.store->meta, "UPDATE kv SET val=zeroblob(3) WHERE key='pause'"));
    assert_string_equal(order(&s), "two");
    lose_meta(&s);
    assert_string_equal(order(&s), "two");
    CHECK_OK(dp_store_put(s.store, "pause", dp_view_text("row"))); /* The row comes first. */
    assert_string_equal(order(&s), "row");
    CHECK_OK(dp_store_delete_both(s.store, "pause"));
    assert_string_equal(order(&s), "");
    lose_meta(&s);
    assert_string_equal(order(&s), "");
    shelf_close(&s);
}

static void an_order_that_neither_place_can_give_is_damaged_and_not_absent(void **state)
{
    static const char *const harms[] = {"", "short",
                                        "thirty-two characters of no checksum, and more"};
    (void)state;
    for (size_t i = 0; i < sizeof harms / sizeof harms[0]; i++) {
        shelf s;
        shelf_open(&s);
        CHECK_OK(dp_store_put_both(s.store, "pause", dp_view_text("one")));
        write_file(shelf_file(&s, "pause.row"), harms[i]);
        assert_string_equal(order(&s), "one");
        lose_meta(&s);
        assert_string_equal(order(&s), "?");
        shelf_close(&s);
    }
}

static void without_room_for_its_copy_an_order_is_kept_and_no_older_copy_stays(void **state)
{
    (void)state;
    shelf s;
    shelf_open(&s);
    CHECK_OK(dp_store_put_both(s.store, "pause", dp_view_text("one")));
    assert_int_equal(mkdir(shelf_file(&s, "pause.row.new"), 0700), 0); /* In the copy's way. */
    CHECK_OK(dp_store_put_both(s.store, "pause", dp_view_text("two")));
    assert_string_equal(order(&s), "two");
    lose_meta(&s);
    assert_string_equal(order(&s), "");
    shelf_close(&s);
}

static void an_incarnation_is_never_given_twice(void **state)
{
    (void)state;
    uint64_t one = 0;
    uint64_t two = 0;
    shelf s;
    shelf_open(&s);
    CHECK_OK(dp_store_bump_incarnation(s.store, 1000, &one));
    shelf_reopen(&s);
    CHECK_OK(dp_store_bump_incarnation(s.store, 5, &two));
    CHECK(one == 1001 && two == 1002);
    CHECK_STATUS(dp_store_bump_incarnation(s.store, UINT64_MAX, &two), DP_TOOBIG);
    shelf_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_kept_and_replaced),
        cmocka_unit_test(an_order_outlives_a_lost_meta_db_and_a_damaged_row),
        cmocka_unit_test(an_order_that_neither_place_can_give_is_damaged_and_not_absent),
        cmocka_unit_test(without_room_for_its_copy_an_order_is_kept_and_no_older_copy_stays),
        cmocka_unit_test(an_incarnation_is_never_given_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
