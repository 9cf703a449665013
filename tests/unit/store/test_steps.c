/* Each statement of each function fails once, also while a store is opened, repaired or rebuilt:
 * the function reports it, nothing is half done, and the next call finds a consistent store.
 * (Reads, writes and syncs of files that fail: test_world.c.) */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/tempdir.h"
#include "tests/unit/store/every.h"

enum { STEPS_MAX = 3000, FILE_MAX = 1 << 23 };

static uint64_t steps;
static uint64_t fails_at; /* 0: never */

static bool fails_now(void)
{
    return fails_at != 0 && ++steps == fails_at;
}

/* The linker replaces the functions that the store calls by these; SQLite's own calls do not
 * change. A failed statement has done nothing. */
int __wrap_sqlite3_step(sqlite3_stmt *stmt);
int __real_sqlite3_step(sqlite3_stmt *stmt);
int __wrap_sqlite3_exec(sqlite3 *db, const char *sql,
                        int (*callback)(void *, int, char **, char **), void *argument,
                        char **message);
int __real_sqlite3_exec(sqlite3 *db, const char *sql,
                        int (*callback)(void *, int, char **, char **), void *argument,
                        char **message);

int __wrap_sqlite3_step(sqlite3_stmt *stmt)
{
    return fails_now() ? SQLITE_NOMEM : __real_sqlite3_step(stmt);
}

int __wrap_sqlite3_exec(sqlite3 *db, const char *sql,
                        int (*callback)(void *, int, char **, char **), void *argument,
                        char **message)
{
    return fails_now() ? SQLITE_NOMEM : __real_sqlite3_exec(db, sql, callback, argument, message);
}

/* ---- functions ---- */

/* True if the call has fewer than n statements. */
static bool fail_nth_of_call(dp_store *store, unsigned call, uint64_t n)
{
    steps = 0;
    fails_at = n;
    const dp_status status = every[call](store);
    fails_at = 0;
    if (status != DP_OK && status != DP_NOMEM) {
        print_error("call %u, statement %llu: %s\n", call, (unsigned long long)n,
                    dp_status_name(status));
    }
    CHECK(status == DP_OK || status == DP_NOMEM);
    CHECK_OK(dp_store_failed(store));
    const dp_status again = every[call](store); /* And it goes on. */
    if (again != DP_OK) {
        print_error("call %u after statement %llu failed\n", call, (unsigned long long)n);
    }
    CHECK_OK(again);
    return steps < n;
}

static void every_function_tells_when_one_of_its_statements_fails_and_goes_on(void **state)
{
    dp_platter *platter = dp_platter_open(DP_PLATTER_HONEST);
    const dp_store_options options = {.vfs = dp_platter_vfs(platter)};
    char path[TEMPDIR_FILE_MAX];
    dp_store *store = NULL;
    uint64_t failed = 0;
    tempdir dir;

    (void)state;
    tempdir_open(&dir);
    tempdir_file(&dir, "store", path);
    CHECK_OK(dp_store_open(&store, path, &options, NULL, NULL));
    for (unsigned call = 0; call < N_EVERY; call++) {
        CHECK_OK(every[call](store));
    }
    for (unsigned call = 0; call < N_EVERY; call++) {
        for (uint64_t n = 1; n < STEPS_MAX && !fail_nth_of_call(store, call, n); n++) {
            failed++;
        }
    }
    CHECK(failed > 200);
    dp_store_close(store);
    CHECK_OK(dp_store_open(&store, path, &options, NULL, NULL));
    for (unsigned call = 0; call < N_EVERY; call++) {
        CHECK_OK(every[call](store));
    }
    dp_store_close(store);
    dp_platter_close(platter);
    tempdir_close(&dir);
}

/* ---- starts ---- */

typedef struct copy {
    uint8_t *bytes;
    size_t size;
} copy;

static copy copy_of(const char *folder, const char *name)
{
    char path[TEMPDIR_FILE_MAX + 64];
    copy c = {.bytes = malloc(FILE_MAX)};

    assert_non_null(c.bytes);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    c.size = fread(c.bytes, 1, FILE_MAX, file);
    assert_in_range(c.size, 1, FILE_MAX - 1);
    fclose(file);
    return c;
}

static void put_copy(const copy *c, const char *folder, const char *name)
{
    char path[TEMPDIR_FILE_MAX + 64];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(c->bytes, 1, c->size, file), c->size);
    assert_int_equal(fclose(file), 0);
}

/* The damage to the two files since the store was closed. */
typedef enum harm {
    HARM_NONE,
    HARM_META_GONE,
    HARM_CHUNKS_CUT,
    HARM_CHUNKS_GONE,
    HARM_CHUNKS_OLD
} harm;

typedef struct past {
    copy meta;
    copy chunks;
    copy chunks_old; /* of before the last objects */
} past;

static void store_of(const past *p, harm what, const char *path)
{
    copy cut = p->chunks;

    assert_int_equal(mkdir(path, 0700), 0);
    cut.size = cut.size / 2;
    if (what != HARM_META_GONE) {
        put_copy(&p->meta, path, "meta.db");
    }
    if (what == HARM_CHUNKS_CUT) {
        put_copy(&cut, path, "chunks.db");
    } else if (what != HARM_CHUNKS_GONE) {
        put_copy(what == HARM_CHUNKS_OLD ? &p->chunks_old : &p->chunks, path, "chunks.db");
    }
}

/* True if this start has fewer than n statements. */
static bool fail_nth_of_start(const past *p, harm what, uint64_t n)
{
    const dp_store_options options = {0};
    dp_store *store = NULL;
    char path[TEMPDIR_FILE_MAX];
    tempdir dir;

    tempdir_open(&dir);
    tempdir_file(&dir, "store", path);
    store_of(p, what, path);
    steps = 0;
    fails_at = n;
    const dp_status status = dp_store_open(&store, path, &options, NULL, NULL);
    const bool beyond = steps < n;
    fails_at = 0;
    if (status != DP_OK && status != DP_NOMEM) {
        print_error("harm %d, statement %llu: %s\n", (int)what, (unsigned long long)n,
                    dp_status_name(status));
    }
    CHECK(status == DP_OK || status == DP_NOMEM);
    dp_store_close(store);
    store = NULL;
    CHECK_OK(dp_store_open(&store, path, &options, NULL, NULL));
    CHECK_OK(do_put(store));
    CHECK_OK(do_read(store));
    dp_store_close(store);
    tempdir_close(&dir);
    return beyond;
}

static past live_once(void)
{
    const dp_store_options options = {0};
    dp_store *store = NULL;
    char path[TEMPDIR_FILE_MAX];
    tempdir dir;
    past p;

    tempdir_open(&dir);
    tempdir_file(&dir, "store", path);
    CHECK_OK(dp_store_open(&store, path, &options, NULL, NULL));
    CHECK_OK(do_fill(store));
    dp_store_close(store);
    p.chunks_old = copy_of(path, "chunks.db");
    CHECK_OK(dp_store_open(&store, path, &options, NULL, NULL));
    CHECK_OK(do_put(store));
    CHECK_OK(do_ckpt(store));
    CHECK_OK(do_rows(store));
    CHECK_OK(do_vote_key(store));
    CHECK_OK(do_vote(store));
    dp_store_close(store);
    p.meta = copy_of(path, "meta.db");
    p.chunks = copy_of(path, "chunks.db");
    tempdir_close(&dir);
    return p;
}

static void
every_start_tells_when_one_of_its_statements_fails_and_the_next_one_is_whole(void **state)
{
    past p = live_once();

    (void)state;
    for (harm what = HARM_NONE; what <= HARM_CHUNKS_OLD; what++) {
        uint64_t n = 1;
        while (n < STEPS_MAX && !fail_nth_of_start(&p, what, n)) {
            n++;
        }
        CHECK(n > 10 && n < STEPS_MAX);
    }
    free(p.meta.bytes);
    free(p.chunks.bytes);
    free(p.chunks_old.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_function_tells_when_one_of_its_statements_fails_and_goes_on),
        cmocka_unit_test(
            every_start_tells_when_one_of_its_statements_fails_and_the_next_one_is_whole),
    };
    tempdir_in_memory(); /* Hundreds of starts, each with its syncs. */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
