#include "tests/unit/store/faultvfs.h"
#include "tests/unit/store/ledger.h"

#include "store/db_file.h"
#include "store/journal.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEEDS = 60, ROUNDS = 4 };

/* Flip bits, overwrite a run with a constant, or cut; once to three times. */
static void damage(const char *path, dp_rng *rng)
{
    struct stat info;
    uint8_t run[300];
    const int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    for (uint64_t times = dp_rng_below(rng, 3) + 1; times > 0; times--) {
        assert_int_equal(fstat(fd, &info), 0);
        const uint64_t size = (uint64_t)info.st_size;
        const off_t at = size > 0 ? (off_t)dp_rng_below(rng, size) : 0;
        const uint64_t kind = dp_rng_below(rng, 8);
        if (kind == 0) {
            assert_int_equal(ftruncate(fd, at), 0);
        } else if (kind < 4) {
            memset(run, (int)dp_rng_below(rng, 256), sizeof run);
            assert_true(pwrite(fd, run, dp_rng_below(rng, sizeof run) + 1, at) > 0);
        } else if (size > 0) {
            assert_int_equal(pread(fd, run, 1, at), 1);
            run[0] = (uint8_t)(run[0] ^ (1U << dp_rng_below(rng, 8)));
            assert_int_equal(pwrite(fd, run, 1, at), 1);
        }
    }
    close(fd);
}

static dp_status read_row(const dp_store_row *row, void *context)
{
    ledger_kept *kept = (ledger_kept *)context;
    CHECK(row->bytes.size == sizeof kept->round);
    memcpy(&kept->round, row->bytes.data, sizeof kept->round);
    return DP_OK;
}

/* Read everything there is; any answer will do, as long as there is one and bytes that are given
 * out are right. */
static void use_all(shelf *s)
{
    const dp_hash run = name_of(1);
    dp_ckpt ckpt;
    dp_vote_row vote;
    ledger_kept kept = {.store = s->store};
    dp_chain_tip tip;
    dp_journal_event events[4];
    uint32_t count = 0;
    dp_buf buf;
    dp_buf_init(&buf, 1 << 20);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        const dp_hash root = ledger_root(round, LEDGER_BLOB);
        uint8_t got[LEDGER_BLOB];
        uint8_t *wanted = noise(round, LEDGER_BLOB);
        if (dp_object_read(s->store, &root, got, sizeof got) == DP_OK) {
            assert_memory_equal(got, wanted, sizeof got);
        }
        free(wanted);
        DP_IGNORE(dp_chain_read(s->store, &run, round, NULL, NULL, NULL)); /* Any status. */
    }
    if (load_ckpt(s->store, &run, &ckpt, &buf, NULL) == DP_OK) {
        uint8_t *wanted = noise(ckpt.round + 500, LEDGER_STATE);
        CHECK(dp_view_equal(dp_buf_view(&buf), dp_view_of(wanted, LEDGER_STATE)));
        free(wanted);
    }
    if (dp_vote_load(s->store, &run, &vote, &buf) == DP_OK) {
        /* The vote is always one that was saved: that before the damage, a lower one, or none after
         * a rebuild. */
        CHECK((vote.slot == ROUNDS || vote.slot == ROUNDS + 1) && vote.promised == 2 &&
              vote.accepted == 1);
    }
    if (dp_store_row_each(s->store, &run, "", read_row, &kept) == DP_OK && kept.round != 0) {
        CHECK(kept.round == ROUNDS || kept.round == ROUNDS + 1); /* As for the vote. */
    }
    DP_IGNORE(dp_chain_head(s->store, &run, &tip));
    DP_IGNORE(dp_journal_back(s->store, UINT64_MAX, events, 4, &count));
    ledger book = {.key = true};
    DP_IGNORE(ledger_round(s->store, &book, ROUNDS + 1));
    DP_IGNORE(dp_object_collect(s->store, NULL));
    dp_buf_close(&buf);
}

static void damage_one_file(const char *name, uint64_t seed)
{
    ledger book = {0};
    dp_rng rng;
    dp_why why;
    shelf s;
    dp_rng_init(&rng, seed);
    shelf_open(&s);
    CHECK_OK(ledger_start(s.store, &book));
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        CHECK_OK(ledger_round(s.store, &book, round));
    }
    dp_store_close(s.store);
    s.store = NULL;
    damage(shelf_file(&s, name), &rng);
    for (int again = 0; again < 2; again++) {
        const dp_status status = dp_store_open(&s.store, s.path, &s.options, &s.report, &why);
        if (status == DP_OK) {
            use_all(&s);
        } else {
            CHECK(status == DP_BADMSG ||
                  status == DP_VERSION); /* The header names another program or version. */
        }
        dp_store_close(s.store);
        s.store = NULL;
    }
    shelf_close(&s);
}

/* Only the queries refuse it, at every start: a damaged row would be repaired repeatedly. */
static void a_wrong_letter_in_the_schema_sets_the_file_aside(void **state)
{
    static const char column[] = "keep2 BLOB";
    shelf s;
    dp_why why;

    (void)state;
    shelf_open(&s);
    dp_store_close(s.store);
    s.store = NULL;
    assert_true(flip_after(shelf_file(&s, "meta.db"), (const uint8_t *)column, 5) >= 1);
    CHECK_OK(dp_store_open(&s.store, s.path, &s.options, &s.report, &why));
    assert_true(s.report.moved_to[0] != '\0');
    dp_store_close(s.store);
    CHECK_OK(dp_store_open(&s.store, s.path, &s.options, &s.report, &why));
    assert_true(s.report.moved_to[0] == '\0');
    shelf_close(&s);
}

/* Where a table begins in a file that is open nowhere, and how long a page is. */
static off_t first_page_of(const char *path, const char *table, size_t *page)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "SELECT rootpage,page_size FROM sqlite_schema,"
                                        "pragma_page_size WHERE name=?",
                                        -1, &stmt, NULL),
                     SQLITE_OK);
    sqlite3_bind_text(stmt, 1, table, -1, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    *page = (size_t)sqlite3_column_int64(stmt, 1);
    const off_t at = (off_t)((sqlite3_column_int64(stmt, 0) - 1) * (sqlite3_int64)*page);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return at;
}

/* The daemon could not start any more: the file was for reading alone, of another program, or of a
 * version that no program has. */
static void a_wrong_bit_in_a_header_sets_the_file_aside(void **state)
{
    static const struct {
        off_t at;
        uint8_t bit;
    } bits[] = {{18, 0x10}, {19, 0x80}, {60, 0x40}, {70, 0x01}};
    static const char *const names[] = {"meta.db", "chunks.db"};

    (void)state;
    for (size_t i = 0; i < sizeof bits / sizeof bits[0] * 2; i++) {
        ledger book = {0};
        shelf s;
        dp_why why;
        uint8_t byte = 0;
        shelf_open(&s);
        CHECK_OK(ledger_start(s.store, &book));
        CHECK_OK(ledger_round(s.store, &book, 1));
        dp_store_close(s.store);
        s.store = NULL;
        const int fd = open(shelf_file(&s, names[i % 2]), O_RDWR);
        assert_int_equal(pread(fd, &byte, 1, bits[i / 2].at), 1);
        byte ^= bits[i / 2].bit;
        assert_int_equal(pwrite(fd, &byte, 1, bits[i / 2].at), 1);
        close(fd);
        CHECK_OK(dp_store_open(&s.store, s.path, &s.options, &s.report, &why));
        assert_true(i % 2 == 0 ? s.report.moved_to[0] != '\0' : s.report.chunks_rebuilt);
        shelf_close(&s);
    }
}

/* A link is not followed. It may also be put there after the first look at the file. */
static void a_header_that_cannot_be_read_is_an_error_of_its_file(void **state)
{
    static const dp_store_file *const files[] = {&dp_store_meta_file, &dp_store_chunks_file};

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        shelf s;
        dp_why why;
        dp_sql sql = {0};
        uint32_t from = 0;
        shelf_open(&s);
        assert_int_equal(unlink(shelf_file(&s, files[i]->name)), 0);
        assert_int_equal(symlink("elsewhere", shelf_file(&s, files[i]->name)), 0);
        CHECK_STATUS(dp_store_file_open(s.store, &sql, files[i], &from), DP_DENIED);
        assert_null(sql.db);
        dp_store_close(s.store);
        s.store = NULL;
        CHECK_STATUS(dp_store_open(&s.store, s.path, &s.options, &s.report, &why), DP_DENIED);
        assert_non_null(strstr(why.text, files[i]->name));
        assert_int_not_equal(access(shelf_file(&s, "elsewhere"), F_OK), 0);
        shelf_close(&s);
    }
}

/* Leaves a closed store of ROUNDS rounds whose table of records is of the first round, and its
 * indexes are not. */
static void shelf_of_two_times(shelf *s)
{
    ledger book = {0};
    size_t size = 0;

    shelf_open(s);
    CHECK_OK(ledger_start(s->store, &book));
    CHECK_OK(ledger_round(s->store, &book, 1));
    shelf_reopen(s);
    dp_store_close(s->store);
    s->store = NULL;
    const off_t at = first_page_of(shelf_file(s, "meta.db"), "record", &size);
    uint8_t *before = malloc(size);
    assert_non_null(before);
    int fd = open(shelf_file(s, "meta.db"), O_RDWR);
    assert_int_equal(pread(fd, before, size, at), size);
    close(fd);

    shelf_reopen(s);
    for (uint64_t round = 2; round <= ROUNDS; round++) {
        CHECK_OK(ledger_round(s->store, &book, round));
    }
    dp_store_close(s->store);
    s->store = NULL;
    fd = open(shelf_file(s, "meta.db"), O_RDWR);
    assert_int_equal(pwrite(fd, before, size, at), size);
    close(fd);
    free(before);
}

/* So it is when the write-ahead log lost its end. A node fetches the records that it lacks; each of
 * them was refused by the index, the daemon ended, and its next start found nothing wrong. */
static void a_table_of_an_earlier_time_takes_its_rows_again(void **state)
{
    shelf s;
    dp_why why;

    (void)state;
    shelf_of_two_times(&s);
    CHECK_OK(dp_store_open(&s.store, s.path, &s.options, &s.report, &why));
    /* The key of the vote and the remaining rows stay. */
    assert_true(s.report.moved_to[0] == '\0');
    const dp_hash run = name_of(1);
    CHECK_OK(dp_chain_cut(s.store, &run, 1)); /* As the daemon does when slot 2 is not there. */
    for (uint64_t slot = 2; slot <= ROUNDS; slot++) {
        const dp_chain_record row = {.slot = slot,
                                     .hash = name_of(slot),
                                     .record = dp_view_of(&slot, sizeof slot),
                                     .cert = dp_view_text("certificate")};
        CHECK_OK(dp_chain_append(s.store, &run, &row));
    }
    shelf_close(&s);
}

/* A full disk is not damage: the file still has the vote, and must not be set aside. */
static void an_index_that_cannot_be_rebuilt_on_a_full_disk_leaves_its_file(void **state)
{
    shelf s;
    dp_why why;

    (void)state;
    shelf_of_two_times(&s);
    s.options.vfs = "fault";
    fault_set(FAULT_FULL, 1, "meta.db");
    CHECK_STATUS(dp_store_open(&s.store, s.path, &s.options, &s.report, &why), DP_NOSPACE);
    assert_null(s.store);
    assert_int_not_equal(access(shelf_file(&s, "meta.db.corrupt-1"), F_OK), 0);
    fault_set(FAULT_NONE, 0, NULL);
    CHECK_OK(dp_store_open(&s.store, s.path, &s.options, &s.report, &why));
    assert_true(s.report.moved_to[0] == '\0');
    shelf_close(&s);
}

/* Leaves a closed store of ROUNDS rounds whose chunks.db has an unreadable page as its table. */
static void shelf_without_a_table_of_chunks(shelf *s, ledger *book)
{
    static const uint8_t no_page[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    size_t size = 0;

    shelf_open(s);
    CHECK_OK(ledger_start(s->store, book));
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        CHECK_OK(ledger_round(s->store, book, round));
    }
    dp_store_close(s->store);
    s->store = NULL;
    const off_t at = first_page_of(shelf_file(s, "chunks.db"), "chunk", &size);
    const int fd = open(shelf_file(s, "chunks.db"), O_RDWR);
    assert_int_equal(pwrite(fd, no_page, sizeof no_page, at), sizeof no_page);
    close(fd);
}

/* The file is not read whole at a start, so that the damage shows itself later. The daemon could
 * not start any more. */
static void chunks_whose_table_cannot_be_read_are_begun_anew(void **state)
{
    ledger book = {0};
    shelf s;
    dp_why why;

    (void)state;
    shelf_without_a_table_of_chunks(&s, &book);
    CHECK_OK(dp_store_open(&s.store, s.path, &s.options, &s.report, &why));
    assert_true(s.report.chunks_rebuilt);
    assert_true(s.report.moved_to[0] == '\0');
    CHECK_OK(ledger_round(s.store, &book, ROUNDS + 1));
    shelf_reopen(&s);
    assert_false(s.report.chunks_rebuilt);
    shelf_close(&s);
}

/* They start again only after meta.db has recorded it. */
static void chunks_that_cannot_be_marked_on_a_full_disk_stay(void **state)
{
    ledger book = {0};
    shelf s;
    dp_why why;

    (void)state;
    shelf_without_a_table_of_chunks(&s, &book);
    s.options.vfs = "fault";
    fault_set(FAULT_FULL, 1, "meta.db");
    CHECK_STATUS(dp_store_open(&s.store, s.path, &s.options, &s.report, &why), DP_NOSPACE);
    assert_null(s.store);
    assert_int_not_equal(access(shelf_file(&s, "chunks.db.corrupt-1"), F_OK), 0);
    fault_set(FAULT_NONE, 0, NULL);
    CHECK_OK(dp_store_open(&s.store, s.path, &s.options, &s.report, &why));
    assert_true(s.report.chunks_rebuilt);
    shelf_close(&s);
}

enum { SALVAGED = 12, SALVAGED_BYTES = 30000, SALVAGE_OPS_MAX = 2000 };

/* Leaves a closed store of some objects whose chunks.db is salvaged at the next start. */
static void shelf_to_salvage(shelf *s, dp_hash roots[SALVAGED])
{
    shelf_open(s);
    for (uint64_t i = 0; i < SALVAGED; i++) {
        roots[i] = put_noise(s->store, i, SALVAGED_BYTES, DP_PIN_BLOB, 1);
    }
    CHECK_OK(dp_store_put(s->store, DP_STORE_SUSPECT_KEY, dp_view_text("1")));
    dp_store_close(s->store);
    s->store = NULL;
    s->options.batch_bytes = 2 * SALVAGED_BYTES; /* several transactions */
}

/* Nothing is lost, and no file is left over. */
static void check_salvaged(shelf *s, const dp_hash roots[SALVAGED])
{
    for (uint64_t i = 0; i < SALVAGED; i++) {
        assert_true(holds_noise(s->store, &roots[i], i, SALVAGED_BYTES));
    }
    for (int n = 1; n <= 3; n++) {
        char name[64];
        snprintf(name, sizeof name, "chunks.db.corrupt-%d", n);
        assert_int_not_equal(access(shelf_file(s, name), F_OK), 0);
    }
    int64_t rows = 0;
    CHECK_OK(dp_sql_number(&s->store->chunks, "SELECT count(*) FROM chunk", &rows));
    assert_int_equal(rows, SALVAGED);
}

/* The power is cut at this operation of the start; false: the start has fewer. */
static bool cut_of_a_salvage(uint64_t at)
{
    dp_hash roots[SALVAGED];
    shelf s;
    shelf_to_salvage(&s, roots);
    s.options.vfs = "fault";
    fault_set(FAULT_CUT, at, NULL);
    const dp_status status = dp_store_open(&s.store, s.path, &s.options, NULL, NULL);
    const bool cut = fault.ops >= at;
    assert_true(cut || status == DP_OK);
    fault.dead = true; /* Closing writes nothing more. */
    dp_store_close(s.store);
    s.store = NULL;
    fault_settle(at);
    s.options.vfs = NULL;
    shelf_reopen(&s);
    check_salvaged(&s, roots);
    shelf_reopen(&s);
    assert_false(s.report.chunks_rebuilt);
    check_salvaged(&s, roots);
    shelf_close(&s);
    return cut;
}

static void a_salvage_that_a_power_cut_ends_goes_on_at_the_next_start(void **state)
{
    (void)state;
    uint64_t at = 1;
    while (at < SALVAGE_OPS_MAX && cut_of_a_salvage(at)) {
        at++;
    }
    assert_in_range(at, 20, SALVAGE_OPS_MAX - 1);
}

/* The disk fills up at this operation of the start; false: the start has fewer. */
static bool full_disk_of_a_salvage(uint64_t at, const char *only)
{
    dp_hash roots[SALVAGED];
    dp_why why;
    shelf s;
    shelf_to_salvage(&s, roots);
    s.options.vfs = "fault";
    fault_set(FAULT_FULL, at, only);
    const dp_status status = dp_store_open(&s.store, s.path, &s.options, NULL, &why);
    const bool reached = fault.ops >= at;
    assert_true(status == DP_OK || (reached && status == DP_NOSPACE));
    if (status == DP_NOSPACE && access(shelf_file(&s, "chunks.db.corrupt-1"), F_OK) == 0) {
        assert_non_null(strstr(why.text, "needs up to"));
        assert_non_null(strstr(why.text, "chunks.db.corrupt-1"));
    }
    dp_store_close(s.store);
    s.store = NULL;
    fault_set(FAULT_NONE, 0, NULL);
    shelf_reopen(&s);
    check_salvaged(&s, roots);
    shelf_close(&s);
    return reached;
}

/* The old file was deleted with all that had not been copied. */
static void a_salvage_on_a_full_disk_loses_nothing(void **state)
{
    static const char *const files[] = {"chunks.db", "meta.db", NULL};
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        uint64_t at = 1;
        while (at < SALVAGE_OPS_MAX && full_disk_of_a_salvage(at, files[i])) {
            at++;
        }
        assert_in_range(at, 10, SALVAGE_OPS_MAX - 1);
    }
}

/* A salvage stopped after some rows; then the new file is damaged, too, or the file of a salvage
 * that was complete is still there. */
static void what_a_cut_salvage_leaves_is_used_or_removed(void **state)
{
    dp_hash roots[SALVAGED];
    shelf s;
    (void)state;
    shelf_to_salvage(&s, roots);
    s.options.vfs = "fault";
    fault_set(FAULT_CUT, 60, NULL);
    CHECK(dp_store_open(&s.store, s.path, &s.options, NULL, NULL) != DP_OK);
    fault_settle(1);
    s.options.vfs = NULL;
    assert_int_equal(access(shelf_file(&s, "chunks.db.corrupt-1"), F_OK), 0);
    FILE *file = fopen(shelf_file(&s, "chunks.db"), "we");
    assert_non_null(file);
    for (int i = 0; i < 100; i++) {
        fputs("no database", file);
    }
    fclose(file);
    shelf_reopen(&s);
    check_salvaged(&s, roots);
    CHECK_OK(dp_store_put(s.store, DP_STORE_SALVAGED_KEY, dp_view_text("chunks.db.corrupt-2")));
    file = fopen(shelf_file(&s, "chunks.db.corrupt-2"), "we");
    assert_non_null(file);
    fclose(file);
    shelf_reopen(&s);
    check_salvaged(&s, roots);
    shelf_close(&s);
}

static void a_damaged_meta_db_never_crashes_and_never_lies(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        damage_one_file("meta.db", seed);
    }
}

static void a_damaged_chunks_db_never_crashes_and_never_lies(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        damage_one_file("chunks.db", seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_letter_in_the_schema_sets_the_file_aside),
        cmocka_unit_test(a_wrong_bit_in_a_header_sets_the_file_aside),
        cmocka_unit_test(a_header_that_cannot_be_read_is_an_error_of_its_file),
        cmocka_unit_test(a_table_of_an_earlier_time_takes_its_rows_again),
        cmocka_unit_test(an_index_that_cannot_be_rebuilt_on_a_full_disk_leaves_its_file),
        cmocka_unit_test(chunks_whose_table_cannot_be_read_are_begun_anew),
        cmocka_unit_test(chunks_that_cannot_be_marked_on_a_full_disk_stay),
        cmocka_unit_test(a_salvage_that_a_power_cut_ends_goes_on_at_the_next_start),
        cmocka_unit_test(a_salvage_on_a_full_disk_loses_nothing),
        cmocka_unit_test(what_a_cut_salvage_leaves_is_used_or_removed),
        cmocka_unit_test(a_damaged_meta_db_never_crashes_and_never_lies),
        cmocka_unit_test(a_damaged_chunks_db_never_crashes_and_never_lies),
    };
    fault_install();
    tempdir_in_memory(); /* Many syncs; test_db stays on a disk, and waits for its own. */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
