/* THREADS_TEST: the loop asks, the store thread looks. */
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/host/disk_reserve.h"
#include "tests/unit/daemon/house.h"

enum { LOOK_MS = 5 };

struct cellar {
    struct house house;
    dp_disk_reserve *disk_reserve;
    char path[TEMPDIR_FILE_MAX + 64];
};

static bool told(struct cellar *cellar, const char *name)
{
    const dp_event_log *event_log = cellar->house.daemon.event_log;
    const uint32_t n = dp_event_log_entries(event_log);
    return n > 0 && strcmp(dp_event_log_entry_at(event_log, n - 1)->name, name) == 0;
}

static bool gone(void *context)
{
    return told(context, "store.reserve_gone");
}

static bool back(void *context)
{
    return told(context, "store.reserve_back");
}

/* Where the file would be is a folder, so that there is no place for it, as on a full disk. */
static void cellar_open(struct cellar *cellar, bool full)
{
    memset(cellar, 0, sizeof *cellar);
    house_open(&cellar->house);
    snprintf(cellar->path, sizeof cellar->path, "%s",
             shelf_file(&cellar->house.shelf, "reserve.bin"));
    if (full) {
        house_close_rows(&cellar->house);
        dp_store_close(cellar->house.shelf.store);
        cellar->house.shelf.store = NULL;
        assert_int_equal(unlink(cellar->path), 0);
        assert_int_equal(mkdir(cellar->path, 0700), 0);
        shelf_reopen(&cellar->house.shelf);
        cellar->house.daemon.store = cellar->house.shelf.store;
        house_open_rows(&cellar->house);
    }
    CHECK_OK(dp_disk_reserve_open(&cellar->disk_reserve, &cellar->house.daemon, LOOK_MS));
}

static void cellar_close(struct cellar *cellar)
{
    dp_disk_reserve_close(cellar->disk_reserve);
    house_close(&cellar->house);
}

static void the_reserve_comes_back_when_there_is_room_and_both_are_told_once(void **state)
{
    struct cellar cellar;
    struct stat about;
    (void)state;
    cellar_open(&cellar, true);
    turn_until(&cellar.house.loop, gone, &cellar);
    const uint32_t entries = dp_event_log_entries(cellar.house.daemon.event_log);
    CHECK(!turn_within(&cellar.house.loop, back, &cellar, 10 * LOOK_MS));
    assert_int_equal(dp_event_log_entries(cellar.house.daemon.event_log), entries);
    assert_int_equal(rmdir(cellar.path), 0);
    turn_until(&cellar.house.loop, back, &cellar);
    assert_int_equal(stat(cellar.path, &about), 0);
    assert_int_equal(about.st_size, cellar.house.shelf.options.reserve_bytes);
    assert_int_equal(dp_event_log_entries(cellar.house.daemon.event_log), entries + 1);
    cellar_close(&cellar);
}

/* Larger than what one turn of a check gives back. */
enum { FREED_BYTES = 40 << 20 };

static off_t chunks_bytes(const struct cellar *cellar)
{
    struct stat about;
    assert_int_equal(stat(shelf_file(&cellar->house.shelf, "chunks.db"), &about), 0);
    return about.st_size;
}

static bool shrunk(void *context)
{
    return chunks_bytes(context) < FREED_BYTES / 8;
}

/* The free pages of chunks.db kept the disk full for votes. */
static void a_missing_reserve_gets_the_free_pages_of_the_store(void **state)
{
    struct cellar cellar;
    const dp_pin pin = pin_of(DP_PIN_BLOB, 1);
    (void)state;
    cellar_open(&cellar, true);
    dp_disk_reserve_close(cellar.disk_reserve);
    house_close_rows(&cellar.house);
    put_noise(cellar.house.shelf.store, 1, FREED_BYTES, DP_PIN_BLOB, 1);
    CHECK_OK(dp_object_prune(cellar.house.shelf.store, &pin.run, DP_PIN_BLOB, 2));
    CHECK_OK(dp_object_collect(cellar.house.shelf.store, NULL));
    assert_true(chunks_bytes(&cellar) > FREED_BYTES);
    house_open_rows(&cellar.house);
    CHECK_OK(dp_disk_reserve_open(&cellar.disk_reserve, &cellar.house.daemon, LOOK_MS));
    turn_until(&cellar.house.loop, shrunk, &cellar);
    assert_int_equal(rmdir(cellar.path), 0);
    turn_until(&cellar.house.loop, back, &cellar);
    cellar_close(&cellar);
}

static void a_reserve_that_is_there_is_not_spoken_of(void **state)
{
    struct cellar cellar;
    (void)state;
    cellar_open(&cellar, false);
    CHECK(!turn_within(&cellar.house.loop, gone, &cellar, 10 * LOOK_MS));
    assert_int_equal(dp_event_log_entries(cellar.house.daemon.event_log), 0);
    cellar_close(&cellar);
}

static bool posted(void *context)
{
    const struct cellar *cellar = context;
    return dp_store_thread_waiting(cellar->house.daemon.store_thread) > 0;
}

static void it_may_close_while_it_looks(void **state)
{
    struct cellar cellar;
    (void)state;
    cellar_open(&cellar, true);
    turn_until(&cellar.house.loop, posted, &cellar);
    cellar_close(&cellar);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reserve_comes_back_when_there_is_room_and_both_are_told_once),
        cmocka_unit_test(a_missing_reserve_gets_the_free_pages_of_the_store),
        cmocka_unit_test(a_reserve_that_is_there_is_not_spoken_of),
        cmocka_unit_test(it_may_close_while_it_looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
