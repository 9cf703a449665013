#include "tests/lib/check.h"
#include "tests/lib/tempdir.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "tests/store/platter.h"
#include "tests/store/world.h"

enum { PAGE = 4096, DRAWS = 200 };

typedef struct open_file {
    sqlite3_file *file;
} open_file;

static open_file open_on(const dp_platter *platter, const char *name, int kind)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(dp_platter_vfs(platter));
    open_file f = {.file = calloc(1, (size_t)vfs->szOsFile)};

    assert_non_null(f.file);
    assert_int_equal(vfs->xOpen(vfs, name, f.file, kind | SQLITE_OPEN_CREATE, NULL), SQLITE_OK);
    return f;
}

static int write_page(const open_file *f, int page, uint8_t mark)
{
    uint8_t bytes[PAGE];

    memset(bytes, mark, sizeof bytes);
    return f->file->pMethods->xWrite(f->file, bytes, sizeof bytes, (sqlite3_int64)page * PAGE);
}

/* Of the page, how many sectors are wholly of that mark. */
static unsigned sectors(const open_file *f, int page, uint8_t mark)
{
    uint8_t bytes[PAGE];
    uint8_t wanted[DP_PLATTER_SECTOR];
    unsigned count = 0;

    memset(wanted, mark, sizeof wanted);
    f->file->pMethods->xRead(f->file, bytes, sizeof bytes, (sqlite3_int64)page * PAGE);
    for (size_t at = 0; at < sizeof bytes; at += DP_PLATTER_SECTOR) {
        count += memcmp(bytes + at, wanted, DP_PLATTER_SECTOR) == 0 ? 1 : 0;
    }
    return count;
}

static void synced_bytes_stay_and_others_are_there_torn_or_not(void **state)
{
    unsigned none = 0;
    unsigned all = 0;
    unsigned some = 0;
    unsigned later_alone = 0;
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        dp_platter *p = dp_platter_open(DP_PLATTER_HONEST);
        open_file f = open_on(p, "a/file", SQLITE_OPEN_MAIN_JOURNAL);
        dp_rng rng;
        dp_rng_init(&rng, seed);
        write_page(&f, 0, 1);
        assert_int_equal(f.file->pMethods->xSync(f.file, 0), SQLITE_OK);
        write_page(&f, 1, 2);
        write_page(&f, 2, 3);
        dp_platter_kill(p);
        assert_int_equal(write_page(&f, 3, 4), SQLITE_IOERR_WRITE);
        dp_platter_settle(p, &rng);
        assert_int_equal(sectors(&f, 0, 1), 8);
        assert_int_equal(sectors(&f, 3, 4), 0);
        const unsigned second = sectors(&f, 1, 2);
        none += second == 0 ? 1 : 0;
        all += second == 8 ? 1 : 0;
        some += second > 0 && second < 8 ? 1 : 0;
        later_alone += second < 8 && sectors(&f, 2, 3) == 8 ? 1 : 0;
        free(f.file);
        dp_platter_close(p);
    }
    CHECK(none > 10 && all > 10 && some > 10 && later_alone > 3);
}

static void a_disk_that_lies_loses_what_it_said_to_have_synced(void **state)
{
    unsigned lost = 0;
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        dp_platter *p = dp_platter_open(DP_PLATTER_LIES);
        open_file f = open_on(p, "file", SQLITE_OPEN_MAIN_JOURNAL);
        dp_rng rng;
        dp_rng_init(&rng, seed);
        write_page(&f, 0, 1);
        assert_int_equal(f.file->pMethods->xSync(f.file, 0), SQLITE_OK);
        dp_platter_kill(p);
        free(f.file);
        dp_platter_settle(p, &rng);
        f = open_on(p, "file", SQLITE_OPEN_MAIN_JOURNAL);
        lost += sectors(&f, 0, 1) < 8 ? 1 : 0;
        free(f.file);
        dp_platter_close(p);
    }
    CHECK(lost > DRAWS / 2);
}

static void a_removed_file_may_be_back_until_the_folder_is_synced(void **state)
{
    unsigned back[2] = {0};
    (void)state;
    for (uint64_t seed = 0; seed < 2 * DRAWS; seed++) {
        dp_platter *p = dp_platter_open(DP_PLATTER_HONEST);
        sqlite3_vfs *vfs = sqlite3_vfs_find(dp_platter_vfs(p));
        open_file f = open_on(p, "journal", SQLITE_OPEN_MAIN_JOURNAL);
        dp_rng rng;
        int there = 0;
        dp_rng_init(&rng, seed);
        write_page(&f, 0, 1);
        assert_int_equal(f.file->pMethods->xSync(f.file, 0), SQLITE_OK);
        free(f.file);
        assert_int_equal(vfs->xDelete(vfs, "journal", (int)(seed % 2)), SQLITE_OK);
        dp_platter_kill(p);
        dp_platter_settle(p, &rng);
        vfs->xAccess(vfs, "journal", SQLITE_ACCESS_EXISTS, &there);
        back[seed % 2] += there != 0 ? 1 : 0;
        dp_platter_close(p);
    }
    CHECK(back[0] > 20);
    assert_int_equal(back[1], 0);
}

static void the_nth_call_of_a_kind_fails(void **state)
{
    dp_platter *p = dp_platter_open(DP_PLATTER_HONEST);
    open_file f = open_on(p, "file", SQLITE_OPEN_MAIN_DB);
    (void)state;
    dp_platter_arm(p, DP_PLATTER_WRITE_EIO, 2, false);
    assert_int_equal(write_page(&f, 0, 1), SQLITE_OK);
    assert_int_equal(write_page(&f, 1, 1), SQLITE_IOERR_WRITE);
    assert_int_equal(write_page(&f, 1, 1), SQLITE_OK);
    assert_int_equal(dp_platter_count(p), 3);
    dp_platter_arm(p, DP_PLATTER_FULL, 1, true);
    assert_int_equal(write_page(&f, 0, 2), SQLITE_OK); /* It grows nothing. */
    assert_int_equal(write_page(&f, 2, 2), SQLITE_FULL);
    assert_int_equal(write_page(&f, 2, 2), SQLITE_FULL);
    dp_platter_arm(p, DP_PLATTER_SYNC_EIO, 1, false);
    assert_int_equal(f.file->pMethods->xSync(f.file, 0), SQLITE_IOERR_FSYNC);
    assert_int_equal(f.file->pMethods->xSync(f.file, 0), SQLITE_OK);
    free(f.file);
    dp_platter_close(p);
}

/* Power cuts in some worlds; true if none lost anything. */
static bool survive(uint64_t seed, unsigned cuts, dp_platter_sync sync)
{
    static dp_world world;
    tempdir dir;
    bool good = true;

    tempdir_open(&dir);
    assert_true(dp_world_open(&world, seed, dir.path, sync));
    while (good && world.n_cuts < cuts) {
        good = dp_world_cut(&world);
    }
    if (!good && sync == DP_PLATTER_HONEST) {
        print_error("seed %llu, cut %llu in '%s': %s\n", (unsigned long long)seed,
                    (unsigned long long)world.n_cuts, world.act, world.sentence);
    }
    dp_world_close(&world);
    tempdir_close(&dir);
    return good;
}

static void nothing_acknowledged_is_lost_in_any_world(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        CHECK(survive(seed, 12, DP_PLATTER_HONEST));
    }
}

static void every_world_notices_a_missing_sync(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        CHECK(!survive(seed, 64, DP_PLATTER_LIES));
        CHECK(!survive(seed, 64, DP_PLATTER_NORMAL));
        CHECK(!survive(seed, 64, DP_PLATTER_OFF));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(synced_bytes_stay_and_others_are_there_torn_or_not),
        cmocka_unit_test(a_disk_that_lies_loses_what_it_said_to_have_synced),
        cmocka_unit_test(a_removed_file_may_be_back_until_the_folder_is_synced),
        cmocka_unit_test(the_nth_call_of_a_kind_fails),
        cmocka_unit_test(nothing_acknowledged_is_lost_in_any_world),
        cmocka_unit_test(every_world_notices_a_missing_sync),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
