#include "tests/unit/store/shelf.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "store/chain.h"
#include "store/dir.h"
#include "store/sql.h"

static dp_status put_two(dp_store *store, void *context)
{
    DP_TRY(dp_store_put(store, "a", dp_view_text("1")));
    DP_TRY(dp_store_put(store, "b", dp_view_text("2")));
    return *(const dp_status *)context;
}

static dp_status swallow_inner(dp_store *store, void *context)
{
    DP_IGNORE(dp_store_atomically(store, put_two, context)); /* The rule forbids to ignore it. */
    return DP_OK;
}

static void a_transaction_is_all_or_nothing_also_nested(void **state)
{
    (void)state;
    dp_status bad = DP_EXPIRED;
    dp_status good = DP_OK;
    dp_buf out;
    dp_buf_init(&out, 100);
    shelf s;
    shelf_open(&s);
    CHECK_STATUS(dp_store_atomically(s.store, put_two, &bad), DP_EXPIRED);
    CHECK_STATUS(dp_store_get(s.store, "a", &out), DP_NOTFOUND);
    CHECK_STATUS(dp_store_atomically(s.store, swallow_inner, &bad), DP_EXPIRED);
    CHECK_STATUS(dp_store_get(s.store, "a", &out), DP_NOTFOUND);
    CHECK_OK(dp_store_atomically(s.store, swallow_inner, &good));
    CHECK_OK(dp_store_get(s.store, "b", &out));
    dp_buf_close(&out);
    shelf_close(&s);
}

static void a_second_opener_is_told_who_holds_the_directory(void **state)
{
    (void)state;
    dp_store *second = NULL;
    dp_why why;
    char pid[32];
    shelf s;
    shelf_open(&s);
    CHECK_STATUS(dp_store_open(&second, s.path, NULL, NULL, &why), DP_BUSY);
    CHECK(second == NULL);
    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    CHECK(strstr(why.text, pid) != NULL);
    shelf_reopen(&s);
    shelf_close(&s);
}

static void set_header(const char *path, long at, const uint8_t bytes[4])
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    fseek(file, at, SEEK_SET);
    assert_int_equal(fwrite(bytes, 1, 4, file), 4);
    fclose(file);
}

static uint64_t hash_file(const char *path)
{
    static uint8_t bytes[1 << 20];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    const dp_hash hash = dp_hash_of("file", dp_view_of(bytes, size));
    uint64_t head;
    memcpy(&head, hash.bytes, sizeof head);
    return head;
}

static void a_newer_version_is_refused_and_left_alone(void **state)
{
    (void)state;
    static const char *const names[] = {"meta.db", "chunks.db"};
    static const uint8_t two[4] = {0, 0, 0, 2};
    static const uint8_t one[4] = {0, 0, 0, 1};
    dp_store *store = NULL;
    dp_why why;
    shelf s;
    shelf_open(&s);
    put_noise(s.store, 1, 1000, DP_PIN_BLOB, 1);
    dp_store_close(s.store);
    s.store = NULL;
    for (size_t i = 0; i < 2; i++) {
        char path[TEMPDIR_FILE_MAX + 64];
        snprintf(path, sizeof path, "%s", shelf_file(&s, names[i]));
        set_header(path, 60, two);
        const uint64_t before = hash_file(path);
        CHECK_STATUS(dp_store_open(&store, s.path, &s.options, NULL, &why), DP_VERSION);
        CHECK(strstr(why.text, "newer") != NULL);
        CHECK(hash_file(path) == before);
        set_header(path, 60, one);
    }
    shelf_reopen(&s);
    CHECK(!s.report.meta_rebuilt && !s.report.chunks_rebuilt);
    shelf_close(&s);
}

static void the_newer_version_may_stand_in_the_log_only(void **state)
{
    (void)state;
    dp_store *store = NULL;
    sqlite3 *db = NULL;
    shelf s;
    shelf_open(&s);
    dp_store_close(s.store);
    s.store = NULL;
    assert_int_equal(sqlite3_open(shelf_file(&s, "meta.db"), &db), SQLITE_OK);
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    assert_int_equal(sqlite3_exec(db, "PRAGMA user_version=7", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    const uint64_t before = hash_file(shelf_file(&s, "meta.db"));
    CHECK_STATUS(dp_store_open(&store, s.path, &s.options, NULL, NULL), DP_VERSION);
    CHECK(hash_file(shelf_file(&s, "meta.db")) == before);
    CHECK(access(shelf_file(&s, "meta.db-wal"), F_OK) == 0);
    shelf_close(&s);
}

static void a_database_of_another_program_is_refused(void **state)
{
    (void)state;
    static const uint8_t other[4] = {1, 2, 3, 4};
    dp_store *store = NULL;
    shelf s;
    shelf_open(&s);
    dp_store_close(s.store);
    s.store = NULL;
    assert_int_equal(unlink(shelf_file(&s, "reserve.bin")),
                     0); /* Nothing marks the folder as ours. */
    set_header(shelf_file(&s, "meta.db"), 68, other);
    CHECK_STATUS(dp_store_open(&store, s.path, &s.options, NULL, NULL), DP_BADMSG);
    shelf_close(&s);
}

static void migration_runs_each_missing_step_once(void **state)
{
    (void)state;
    static const char *const steps[] = {"CREATE TABLE a(x);",
                                        "ALTER TABLE a ADD COLUMN y; INSERT INTO a VALUES(1,2);",
                                        "CREATE TABLE a(broken);"};
    char path[TEMPDIR_FILE_MAX];
    dp_sql sql;
    tempdir dir;
    uint32_t from = 9;
    int64_t rows = 0;
    tempdir_open(&dir);
    CHECK_OK(dp_sql_open(&sql, tempdir_file(&dir, "x.db", path), NULL));
    CHECK_OK(dp_sql_migrate(&sql, steps, 1, &from));
    assert_int_equal(from, 0);
    CHECK_OK(dp_sql_migrate(&sql, steps, 2, &from));
    assert_int_equal(from, 1);
    CHECK_OK(dp_sql_migrate(&sql, steps, 2, &from));
    CHECK_OK(dp_sql_number(&sql, "SELECT count(*) FROM a", &rows));
    assert_int_equal(rows, 1);
    CHECK_STATUS(dp_sql_migrate(&sql, steps, 3, &from), DP_CORRUPT);
    CHECK_OK(dp_sql_number(&sql, "PRAGMA user_version", &rows));
    assert_int_equal(rows, 2);
    CHECK_STATUS(dp_sql_migrate(&sql, steps, 1, &from), DP_VERSION);
    dp_sql_close(&sql);
    tempdir_close(&dir);
}

/* Objects come back from chunks.db; the rest must come from peers. */
static void check_rebuilt(shelf *s, const dp_hash *root)
{
    const dp_hash run = name_of(1);
    dp_chain_tip tip;
    shelf_reopen(s);
    CHECK(s->report.meta_rebuilt);
    CHECK(holds_noise(s->store, root, 1, 700000));
    CHECK_STATUS(dp_chain_head(s->store, &run, &tip), DP_NOTFOUND);
    shelf_reopen(s);
    CHECK(!s->report.meta_rebuilt);
    CHECK(holds_noise(s->store, root, 1, 700000));
}

static void meta_db_cut_short_or_gone_is_rebuilt_and_objects_stay(void **state)
{
    (void)state;
    static const long cuts[] = {0, 100, 5000, 20480, -1};
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        shelf s;
        shelf_open(&s);
        const dp_hash run = name_of(1);
        const dp_hash root = put_noise(s.store, 1, 700000, DP_PIN_BLOB, 4);
        const dp_chain_record row = {
            .slot = 1, .hash = name_of(2), .record = dp_view_text("r"), .cert = {0}};
        CHECK_OK(dp_chain_append(s.store, &run, &row));
        dp_store_close(s.store);
        s.store = NULL;
        if (cuts[i] < 0) {
            assert_int_equal(unlink(shelf_file(&s, "meta.db")), 0);
        } else {
            assert_int_equal(truncate(shelf_file(&s, "meta.db"), cuts[i]), 0);
        }
        check_rebuilt(&s, &root);
        shelf_close(&s);
    }
}

static void a_meta_db_of_noise_is_set_aside_under_a_name_that_is_told(void **state)
{
    (void)state;
    shelf s;
    shelf_open(&s);
    const dp_hash root = put_noise(s.store, 1, 700000, DP_PIN_BLOB, 4);
    dp_store_close(s.store);
    s.store = NULL;
    uint8_t *bytes = noise(9, 50000);
    FILE *file = fopen(shelf_file(&s, "meta.db"), "wb");
    assert_non_null(file);
    fwrite(bytes, 1, 50000, file);
    fclose(file);
    free(bytes);
    shelf_reopen(&s);
    CHECK(s.report.meta_rebuilt);
    assert_string_equal(s.report.moved_to, "meta.db.corrupt-1");
    CHECK(access(shelf_file(&s, s.report.moved_to), F_OK) == 0);
    CHECK(holds_noise(s.store, &root, 1, 700000));
    shelf_close(&s);
}

static void chunks_db_cut_short_loses_only_what_was_cut(void **state)
{
    (void)state;
    struct stat info;
    shelf s;
    shelf_open(&s);
    const dp_hash first = put_noise(s.store, 1, 700000, DP_PIN_BLOB, 4);
    const dp_hash last = put_noise(s.store, 2, 700000, DP_PIN_BLOB, 4);
    dp_store_close(s.store);
    s.store = NULL;
    assert_int_equal(stat(shelf_file(&s, "chunks.db"), &info), 0);
    assert_int_equal(truncate(shelf_file(&s, "chunks.db"), info.st_size - 300000), 0);
    shelf_reopen(&s);
    const dp_status status = dp_object_verify(s.store, &last);
    CHECK(status != DP_OK);
    shelf_reopen(&s);
    CHECK(holds_noise(s.store, &first, 1, 700000));
    const dp_hash again = put_noise(s.store, 2, 700000, DP_PIN_BLOB, 4);
    CHECK(holds_noise(s.store, &again, 2, 700000));
    CHECK_OK(dp_store_failed(s.store));
    shelf_close(&s);
}

static void chunks_db_gone_or_of_noise_leaves_objects_to_fetch_again(void **state)
{
    (void)state;
    dp_object_info info;
    for (int gone = 0; gone < 2; gone++) {
        shelf s;
        shelf_open(&s);
        const dp_hash root = put_noise(s.store, 1, 700000, DP_PIN_BLOB, 4);
        dp_store_close(s.store);
        s.store = NULL;
        if (gone == 1) {
            assert_int_equal(unlink(shelf_file(&s, "chunks.db")), 0);
        } else {
            FILE *file = fopen(shelf_file(&s, "chunks.db"), "wb");
            assert_non_null(file);
            fputs("this is not a database, and longer than a header of one hundred bytes would be, "
                  "so that it is"
                  " really read and found to be wrong",
                  file);
            fclose(file);
        }
        shelf_reopen(&s);
        CHECK(s.report.chunks_rebuilt && !s.report.meta_rebuilt);
        CHECK_OK(dp_object_stat(s.store, &root, &info));
        CHECK(!info.complete && info.n_present == 0);
        shelf_close(&s);
    }
}

static void secrets_outside_the_databases_are_private(void **state)
{
    (void)state;
    char path[TEMPDIR_FILE_MAX];
    struct stat info;
    dp_buf out;
    tempdir dir;
    dp_buf_init(&out, 64);
    tempdir_open(&dir);
    CHECK_STATUS(dp_dir_read_secret(dir.path, "identity.key", &out, NULL), DP_NOTFOUND);
    CHECK_OK(dp_dir_write_secret(dir.path, "identity.key", dp_view_text("old")));
    CHECK_OK(dp_dir_write_secret(dir.path, "identity.key", dp_view_text("secret")));
    assert_int_equal(stat(tempdir_file(&dir, "identity.key", path), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    CHECK_OK(dp_dir_read_secret(dir.path, "identity.key", &out, NULL));
    CHECK(dp_view_equal(dp_buf_view(&out), dp_view_text("secret")));
    assert_int_equal(chmod(path, 0644), 0);
    CHECK_STATUS(dp_dir_read_secret(dir.path, "identity.key", &out, NULL), DP_DENIED);
    dp_buf_close(&out);
    tempdir_close(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_transaction_is_all_or_nothing_also_nested),
        cmocka_unit_test(a_second_opener_is_told_who_holds_the_directory),
        cmocka_unit_test(a_newer_version_is_refused_and_left_alone),
        cmocka_unit_test(the_newer_version_may_stand_in_the_log_only),
        cmocka_unit_test(a_database_of_another_program_is_refused),
        cmocka_unit_test(migration_runs_each_missing_step_once),
        cmocka_unit_test(meta_db_cut_short_or_gone_is_rebuilt_and_objects_stay),
        cmocka_unit_test(a_meta_db_of_noise_is_set_aside_under_a_name_that_is_told),
        cmocka_unit_test(chunks_db_cut_short_loses_only_what_was_cut),
        cmocka_unit_test(chunks_db_gone_or_of_noise_leaves_objects_to_fetch_again),
        cmocka_unit_test(secrets_outside_the_databases_are_private),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
