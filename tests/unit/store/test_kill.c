#include "tests/unit/store/ledger.h"

#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KILLS = 25 };

/* The child writes rounds forever and sends the book over the pipe after each acknowledged step. */
static void write_for_ever(shelf *s, int out, ledger book)
{
    dp_status status = dp_store_open(&s->store, s->path, &s->options, NULL, NULL);
    if (status == DP_OK && !book.key) {
        status = ledger_start(s->store, &book);
    }
    while (status == DP_OK) {
        status = ledger_round(s->store, &book, book.record + 1);
        if (write(out, &book, sizeof book) != (ssize_t)sizeof book) {
            break;
        }
    }
    _exit(status == DP_OK ? 0 : 1);
}

/* Kills a writer after it has reported some rounds, at any point; returns its last book. */
static ledger kill_one(shelf *s, const ledger *before, unsigned rounds, unsigned spin)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(ends[0]);
        write_for_ever(s, ends[1], *before);
    }
    close(ends[1]);
    ledger book = *before;
    for (unsigned i = 0; i < rounds; i++) {
        assert_int_equal(read(ends[0], &book, sizeof book), sizeof book);
    }
    for (volatile unsigned i = 0; i < spin; i++) { /* Into the middle of something. */
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    while (read(ends[0], &book, sizeof book) == (ssize_t)sizeof book) {
    }
    close(ends[0]);
    return book;
}

static void test_R3_nothing_acknowledged_is_lost_by_sigkill(void **state)
{
    (void)state;
    dp_rng rng;
    ledger book = {0};
    shelf s;
    dp_rng_init(&rng, 11);
    shelf_open(&s);
    for (int i = 0; i < KILLS; i++) {
        dp_store_close(s.store);
        s.store = NULL;
        book = kill_one(&s, &book, (unsigned)dp_rng_below(&rng, 3) + 1,
                        (unsigned)dp_rng_below(&rng, 20000000));
        shelf_reopen(&s);
        CHECK(!s.report.meta_rebuilt && !s.report.chunks_rebuilt);
        CHECK(ledger_holds(s.store, &book));
        dp_chain_tip tip;
        const dp_hash run = name_of(1);
        CHECK_OK(dp_chain_head(s.store, &run, &tip));
        book.record = tip.slot; /* May be one more than was reported. */
        const dp_status blobs = dp_object_prune(s.store, &run, DP_PIN_BLOB, 0);
        CHECK_OK(blobs);
    }
    CHECK(book.record >= KILLS);
    shelf_close(&s);
}

static void a_dead_process_leaves_no_lock_behind(void **state)
{
    (void)state;
    ledger book = {0};
    shelf s;
    shelf_open(&s);
    dp_store_close(s.store);
    s.store = NULL;
    book = kill_one(&s, &book, 1, 0);
    shelf_reopen(&s);
    CHECK(ledger_holds(s.store, &book));
    shelf_close(&s);
}

static void test_R4_another_process_is_kept_out(void **state)
{
    (void)state;
    int code = 0;
    shelf s;
    shelf_open(&s);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        /* The fork inherited the lock; another process opens it again. */
        dp_store *store = NULL;
        _exit(dp_store_open(&store, s.path, &s.options, NULL, NULL) == DP_BUSY ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &code, 0), child);
    CHECK(WIFEXITED(code) && WEXITSTATUS(code) == 0);
    shelf_close(&s);
}

static void a_really_full_disk_is_read_opened_and_written_again(void **state)
{
    (void)state;
    ledger book = {0};
    tempdir mount_point;
    tempdir_open(&mount_point);
    if (geteuid() != 0 || mount("none", mount_point.path, "tmpfs", 0, "size=6m") != 0) {
        tempdir_close(&mount_point);
        skip();
    }
    shelf s;
    memset(&s, 0, sizeof s);
    tempdir_file(&mount_point, "store", s.path);
    s.options = (dp_store_options){.reserve_bytes = 256 * 1024};
    shelf_reopen(&s);
    dp_status status = ledger_start(s.store, &book);
    for (uint64_t round = 1; round < 2000 && status == DP_OK; round++) {
        status = ledger_round(s.store, &book, round);
    }
    CHECK_STATUS(status, DP_NOSPACE);
    CHECK(ledger_holds(s.store, &book));
    CHECK_OK(dp_store_put(s.store, "small", dp_view_text("still written")));
    shelf_reopen(&s);
    CHECK(ledger_holds(s.store, &book));
    const dp_hash run = name_of(1);
    CHECK_OK(dp_object_prune(s.store, &run, DP_PIN_BLOB, 1000));
    CHECK_OK(dp_object_collect(s.store, NULL));
    CHECK_OK(ledger_put(s.store, 5000, LEDGER_STATE, DP_PIN_DATA, 0));
    dp_store_close(s.store);
    assert_int_equal(umount(mount_point.path), 0);
    tempdir_close(&mount_point);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_R3_nothing_acknowledged_is_lost_by_sigkill),
        cmocka_unit_test(a_dead_process_leaves_no_lock_behind),
        cmocka_unit_test(test_R4_another_process_is_kept_out),
        cmocka_unit_test(a_really_full_disk_is_read_opened_and_written_again),
    };
    tempdir_in_memory(); /* Many syncs; test_db stays on a disk, and waits for its own. */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
