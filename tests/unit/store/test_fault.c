#include "tests/unit/store/faultvfs.h"
#include "tests/unit/store/ledger.h"

#include "base/alloc.h"
#include "store/inside.h"

static void fault_shelf(shelf *s)
{
    memset(s, 0, sizeof *s);
    fault_set(FAULT_NONE, 0, NULL);
    tempdir_open(&s->dir);
    tempdir_file(&s->dir, "store", s->path);
    s->options = (dp_store_options){.vfs = "fault", .reserve_bytes = 64 * 1024};
    shelf_reopen(s);
}

static void a_full_disk_stops_writing_at_any_write_and_only_until_there_is_room(void **state)
{
    (void)state;
    for (uint64_t at = 1; at < 130; at += 3) {
        ledger book = {0};
        shelf s;
        fault_shelf(&s);
        s.options.reserve_bytes = 0;
        shelf_reopen(&s);
        CHECK_OK(ledger_start(s.store, &book));
        CHECK_OK(ledger_round(s.store, &book, 1));
        fault_set(FAULT_FULL, at, NULL);
        dp_status status = DP_OK;
        for (uint64_t round = 2; round < 5 && status == DP_OK; round++) {
            status = ledger_round(s.store, &book, round);
        }
        CHECK(status == DP_NOSPACE || (status == DP_OK && fault.ops < at));
        CHECK(ledger_holds(s.store, &book)); /* Reading goes on. */
        CHECK_OK(dp_store_failed(s.store));
        fault_set(FAULT_NONE, 0, NULL);
        CHECK_OK(ledger_round(s.store, &book, book.record + 1));
        CHECK(ledger_holds(s.store, &book));
        shelf_reopen(&s);
        CHECK(ledger_holds(s.store, &book));
        shelf_close(&s);
    }
}

static void test_R5_the_ballast_lets_meta_be_written_on_a_full_disk(void **state)
{
    (void)state;
    char ballast[TEMPDIR_FILE_MAX + 64];
    ledger book = {0};
    shelf s;
    fault_shelf(&s);
    CHECK_OK(ledger_start(s.store, &book));
    CHECK(dp_store_reserve_held(s.store));
    snprintf(ballast, sizeof ballast, "%s", shelf_file(&s, "reserve.bin"));
    fault_set(FAULT_FULL, 1, NULL);
    fault.while_there = ballast;
    CHECK_STATUS(ledger_put(s.store, 1, LEDGER_BLOB, DP_PIN_BLOB, 1), DP_NOSPACE);
    CHECK(dp_store_reserve_held(s.store)); /* Not for bulk. */
    CHECK_OK(dp_store_put(s.store, "vote", dp_view_text("kept")));
    CHECK(!dp_store_reserve_held(s.store) && access(ballast, F_OK) != 0);
    fault_set(FAULT_NONE, 0, NULL);
    CHECK_OK(dp_store_refill_reserve(s.store));
    CHECK(dp_store_reserve_held(s.store) && access(ballast, F_OK) == 0);
    shelf_close(&s);
}

enum { DROPPED = 6, DROPPED_BYTES = 300000 };

/* The rest in chunks.db after a collect. */
struct left {
    uint64_t bytes;
    int64_t chunks;
    int64_t recipes;
};

static struct left left_in(shelf *s)
{
    struct left left;
    CHECK_OK(dp_store_bytes(s->store, &left.bytes));
    CHECK_OK(dp_sql_number(&s->store->chunks, "SELECT count(*) FROM chunk", &left.chunks));
    CHECK_OK(dp_sql_number(&s->store->chunks, "SELECT count(*) FROM recipe", &left.recipes));
    return left;
}

/* Collects some objects while the disk is full from the at-th write of chunks.db on, 0: not full,
 * and again when it is not. False: the collect has fewer writes. */
static bool collect_on_a_full_disk(uint64_t at, bool reserve, struct left *left)
{
    char ballast[TEMPDIR_FILE_MAX + 64];
    shelf s;
    fault_shelf(&s);
    if (!reserve) {
        s.options.reserve_bytes = 0;
        shelf_reopen(&s);
    }
    const dp_hash kept = put_noise(s.store, 99, DROPPED_BYTES, DP_PIN_DATA, 0);
    for (uint64_t i = 0; i < DROPPED; i++) {
        put_noise(s.store, i, DROPPED_BYTES, DP_PIN_BLOB, 1);
    }
    const dp_pin pin = pin_of(DP_PIN_BLOB, 1);
    CHECK_OK(dp_object_prune(s.store, &pin.run, DP_PIN_BLOB, 2));
    snprintf(ballast, sizeof ballast, "%s", shelf_file(&s, "reserve.bin"));
    fault_set(at > 0 ? FAULT_FULL : FAULT_NONE, at, "chunks.db");
    fault.while_there = reserve ? ballast : NULL;
    const dp_status status = dp_object_collect(s.store, NULL);
    const bool reached = at > 0 && fault.ops >= at;
    CHECK(status == DP_OK || (status == DP_NOSPACE && !reserve));
    fault_set(FAULT_NONE, 0, NULL);
    CHECK_OK(dp_object_collect(s.store, NULL));
    *left = left_in(&s);
    CHECK(holds_noise(s.store, &kept, 99, DROPPED_BYTES));
    shelf_close(&s);
    return reached;
}

/* meta.db had forgotten the chunks, and their rows stayed until the next start. */
static void test_R6_what_is_dropped_on_a_full_disk_is_freed(void **state)
{
    struct left clean;
    struct left left;
    (void)state;
    CHECK(!collect_on_a_full_disk(0, false, &clean));
    for (int reserve = 0; reserve < 2; reserve++) {
        uint64_t at = 1;
        while (collect_on_a_full_disk(at, reserve == 1, &left)) {
            assert_int_equal(left.chunks, clean.chunks);
            assert_int_equal(left.recipes, clean.recipes);
            assert_int_equal(left.bytes, clean.bytes);
            at++;
        }
        assert_in_range(at, 5, 1000);
    }
}

static void a_write_that_failed_and_took_chunks_of_another_object_is_told_by_the_flush(void **state)
{
    (void)state;
    enum { SIZE = 700000 };
    const dp_pin pin = {.kind = DP_PIN_STATE, .round = 1};
    uint8_t *bytes = noise(1, SIZE);
    uint8_t *other = noise(2, SIZE);
    dp_hash leaves[4];
    uint8_t bitmap[1];
    shelf s;
    fault_shelf(&s);
    assert_true(dp_object_chunks(SIZE) <= 4);
    const dp_hash root = dp_object_hash(dp_view_of(bytes, SIZE), leaves);
    const size_t first = dp_object_chunk_size(SIZE, 0);
    CHECK_OK(dp_object_begin(s.store, &root, SIZE, leaves, &pin));
    CHECK_OK(dp_object_put_chunk(s.store, &root, 0, dp_view_of(bytes, first)));
    fault_set(FAULT_FULL, 1, "chunks.db");
    CHECK_STATUS(dp_object_put(s.store, dp_view_of(other, SIZE), &pin, NULL), DP_NOSPACE);
    fault_set(FAULT_NONE, 0, NULL);
    CHECK_STATUS(dp_object_flush(s.store), DP_AGAIN);
    CHECK_OK(dp_object_missing(s.store, &root, bitmap, sizeof bitmap, NULL));
    CHECK((bitmap[0] & 1) == 1);
    CHECK_OK(dp_object_put_chunk(s.store, &root, 0, dp_view_of(bytes, first)));
    CHECK_OK(dp_object_flush(s.store));
    CHECK_OK(dp_object_missing(s.store, &root, bitmap, sizeof bitmap, NULL));
    CHECK((bitmap[0] & 1) == 0);
    free(other);
    free(bytes);
    shelf_close(&s);
}

static void test_R5_after_a_failed_fsync_nothing_is_written_until_the_next_start(void **state)
{
    (void)state;
    static const char *const files[] = {"meta.db", "chunks.db"};
    for (size_t i = 0; i < 2; i++) {
        ledger book = {0};
        shelf s;
        fault_shelf(&s);
        CHECK_OK(ledger_start(s.store, &book));
        CHECK_OK(ledger_round(s.store, &book, 1));
        fault_set(FAULT_FSYNC, 1, files[i]);
        CHECK_STATUS(ledger_round(s.store, &book, 2), DP_IO);
        fault_set(FAULT_NONE, 0, NULL);
        CHECK_STATUS(dp_store_failed(s.store), DP_IO);
        CHECK_STATUS(ledger_put(s.store, 77, LEDGER_BLOB, DP_PIN_BLOB, 3), DP_IO);
        const dp_hash root = ledger_root(1, LEDGER_BLOB);
        CHECK(holds_noise(s.store, &root, 1, LEDGER_BLOB));
        shelf_reopen(&s);
        CHECK_OK(dp_store_failed(s.store));
        CHECK(ledger_holds(s.store, &book));
        CHECK_OK(ledger_round(s.store, &book, book.record + 1));
        shelf_close(&s);
    }
}

/* Where the bytes of this noise stand in chunks.db, from their byte at on. */
static sqlite3_int64 place_of(const shelf *s, const uint8_t *bytes, size_t at)
{
    FILE *file = fopen(shelf_file(s, "chunks.db"), "re");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    uint8_t *all = malloc((size_t)size);
    assert_non_null(all);
    rewind(file);
    assert_int_equal(fread(all, 1, (size_t)size, file), size);
    const uint8_t *found = memmem(all, (size_t)size, bytes + at, 32);
    assert_non_null(found);
    const sqlite3_int64 place = found - all;
    free(all);
    fclose(file);
    return place;
}

/* A bad sector, or a wrong checksum of the file system. */
static void a_chunk_that_the_disk_cannot_read_is_lost_and_writing_goes_on(void **state)
{
    enum { SIZE = 200000, LATER = 300000 };
    static const int codes[] = {SQLITE_IOERR_READ, SQLITE_IOERR_CORRUPTFS};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        uint8_t *bytes = noise(5, SIZE);
        uint8_t *later = noise(7, LATER);
        dp_hash leaves[4];
        const dp_pin pin = pin_of(DP_PIN_STATE, 1);
        dp_object_info info;
        shelf s;
        fault_shelf(&s);
        const dp_hash root = put_noise(s.store, 5, SIZE, DP_PIN_BLOB, 1);
        const dp_hash other = put_noise(s.store, 6, SIZE, DP_PIN_BLOB, 1);
        shelf_reopen(&s); /* with an empty cache */
        fault.unread_at = place_of(&s, bytes, SIZE / 2);
        fault.unread = codes[i];
        const dp_hash open = dp_object_hash(dp_view_of(later, LATER), leaves);
        const dp_view first = dp_view_of(later, dp_object_chunk_size(LATER, 0));
        CHECK_OK(dp_object_begin(s.store, &open, LATER, leaves, &pin));
        CHECK_OK(dp_object_put_chunk(s.store, &open, 0, first)); /* It waits in the batch. */
        CHECK_STATUS(dp_object_verify(s.store, &root), DP_BADHASH);
        CHECK_OK(dp_store_failed(s.store));
        CHECK_OK(dp_object_stat(s.store, &root, &info));
        CHECK(!info.complete && info.n_present == info.n_chunks - 1);
        const dp_status flushed = dp_object_flush(s.store);
        CHECK(flushed == DP_OK || flushed == DP_AGAIN); /* The batch may be lost, which is told. */
        CHECK_OK(dp_object_put_chunk(s.store, &open, 0, first));
        CHECK_OK(dp_object_flush(s.store));
        CHECK_OK(dp_store_put(s.store, "vote", dp_view_text("kept")));
        CHECK_OK(dp_object_put(s.store, dp_view_of(bytes, SIZE), &pin, NULL));
        CHECK(holds_noise(s.store, &root, 5, SIZE) && holds_noise(s.store, &other, 6, SIZE));
        shelf_reopen(&s); /* The row that cannot be read may still be there. */
        CHECK(holds_noise(s.store, &root, 5, SIZE));
        CHECK_OK(dp_object_collect(s.store, NULL));
        free(later);
        free(bytes);
        shelf_close(&s);
    }
}

/* ---- The n-th allocation fails, SQLite's own too. */

static sqlite3_mem_methods real_memory;
static uint64_t memory_calls;
static uint64_t memory_fails_at; /* 0: never. */

static bool memory_ok(void)
{
    memory_calls++;
    return memory_fails_at == 0 || memory_calls != memory_fails_at;
}

static void *failing_malloc(int size)
{
    return memory_ok() ? real_memory.xMalloc(size) : NULL;
}

static void *failing_realloc(void *memory, int size)
{
    return memory_ok() ? real_memory.xRealloc(memory, size) : NULL;
}

static void install_memory(void)
{
    sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real_memory);
    sqlite3_mem_methods methods = real_memory;
    methods.xMalloc = failing_malloc;
    methods.xRealloc = failing_realloc;
    sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
}

/* Open, work, close. The first failure. */
static dp_status attempt(shelf *s, ledger *book)
{
    const bool first = !book->key;
    dp_status status = dp_store_open(&s->store, s->path, &s->options, &s->report, NULL);
    if (status == DP_OK && first) {
        status = ledger_start(s->store, book);
    }
    for (uint64_t i = 0; i < 3 && status == DP_OK; i++) {
        status = ledger_round(s->store, book, book->record + 1);
    }
    dp_store_close(s->store);
    s->store = NULL;
    return status;
}

/* True when n was beyond the last allocation. */
static bool fail_nth(uint64_t n, bool ours)
{
    ledger book = {0};
    shelf s = {.options = {.vfs = "fault"}};
    tempdir_open(&s.dir);
    tempdir_file(&s.dir, "store", s.path);
    memory_calls = 0;
    memory_fails_at = ours ? 0 : n;
    if (ours) {
        dp_alloc_fail_after(n);
    }
    const dp_status status = attempt(&s, &book);
    const bool beyond = ours ? status == DP_OK : memory_calls < n;
    memory_fails_at = 0;
    dp_alloc_fail_after(0);
    CHECK(status == DP_OK || status == DP_NOMEM);
    CHECK(!s.report.meta_rebuilt);
    shelf_reopen(&s);
    CHECK(!s.report.meta_rebuilt && !s.report.chunks_rebuilt && s.report.moved_to[0] == '\0');
    CHECK(ledger_holds(s.store, &book));
    shelf_close(&s);
    return beyond;
}

static void a_failed_allocation_of_ours_is_told_and_breaks_nothing(void **state)
{
    (void)state;
    uint64_t n = 1;
    fault_set(FAULT_NONE, 0, NULL);
    while (!fail_nth(n, true)) {
        n++;
    }
    CHECK(n > 10);
}

static void a_failed_allocation_of_sqlite_is_told_and_breaks_nothing(void **state)
{
    (void)state;
    uint64_t n = 1;
    fault_set(FAULT_NONE, 0, NULL);
    while (!fail_nth(n, false)) {
        n += 1 + n / 12;
    }
    CHECK(n > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_disk_stops_writing_at_any_write_and_only_until_there_is_room),
        cmocka_unit_test(test_R5_the_ballast_lets_meta_be_written_on_a_full_disk),
        cmocka_unit_test(test_R6_what_is_dropped_on_a_full_disk_is_freed),
        cmocka_unit_test(
            a_write_that_failed_and_took_chunks_of_another_object_is_told_by_the_flush),
        cmocka_unit_test(test_R5_after_a_failed_fsync_nothing_is_written_until_the_next_start),
        cmocka_unit_test(a_chunk_that_the_disk_cannot_read_is_lost_and_writing_goes_on),
        cmocka_unit_test(a_failed_allocation_of_ours_is_told_and_breaks_nothing),
        cmocka_unit_test(a_failed_allocation_of_sqlite_is_told_and_breaks_nothing),
    };
    install_memory();
    fault_install();
    tempdir_in_memory(); /* Many syncs; test_db stays on a disk, and waits for its own. */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
