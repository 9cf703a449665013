#include "tests/lib/check.h"
#include "tests/lib/tempdir.h"

#include <sqlite3.h>

#include "base/alloc.h"
#include "tests/unit/store/every.h"

enum { CALLS_OF_MEMORY_MAX = 2000 };

static sqlite3_mem_methods real_memory;
static uint64_t memory_calls;
static uint64_t memory_fails_at; /* 0: never; all later ones fail too */

static bool memory_ok(void)
{
    return memory_fails_at == 0 || ++memory_calls < memory_fails_at;
}

static void *failing_malloc(int size)
{
    return memory_ok() ? real_memory.xMalloc(size) : NULL;
}

static void *failing_realloc(void *memory, int size)
{
    return memory_ok() ? real_memory.xRealloc(memory, size) : NULL;
}

/* The call with the n-th allocation of SQLite failing, or of ours: true if there were not so many.
 * fresh: also while the store is opened. */
static bool fail_nth(const char *path, const dp_store_options *options, unsigned call, uint64_t n,
                     bool ours, bool fresh)
{
    dp_store *store = NULL;
    dp_status status = DP_OK;

    if (!fresh) {
        CHECK_OK(dp_store_open(&store, path, options, NULL, NULL));
    }
    memory_calls = 0;
    memory_fails_at = ours ? 0 : n;
    dp_alloc_fail_after(ours ? n : 0);
    if (fresh) {
        status = dp_store_open(&store, path, options, NULL, NULL);
    }
    if (status == DP_OK) {
        status = every[call](store);
    }
    const bool beyond = ours ? status == DP_OK : memory_calls < n;
    memory_fails_at = 0;
    dp_alloc_fail_after(0);
    if (status != DP_OK && status != DP_NOMEM) {
        print_error("call %u, allocation %llu: %s\n", call, (unsigned long long)n,
                    dp_status_name(status));
    }
    CHECK(status == DP_OK || status == DP_NOMEM);
    if (store != NULL) {
        CHECK_OK(dp_store_failed(store));
        CHECK_OK(every[call](store)); /* And it goes on. */
    }
    dp_store_close(store);
    return beyond;
}

static void every_function_tells_when_memory_is_gone_and_goes_on(void **state)
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
    dp_store_close(store);
    for (unsigned call = 0; call < N_EVERY; call++) {
        const bool fresh = call == N_EVERY - 1;
        for (uint64_t n = 1;
             n < CALLS_OF_MEMORY_MAX && !fail_nth(path, &options, call, n, true, fresh); n++) {
            failed++;
        }
        for (uint64_t n = 1;
             n < CALLS_OF_MEMORY_MAX && !fail_nth(path, &options, call, n, false, fresh);
             n += n < 100 ? 1 : n / 12) {
            failed++;
        }
    }
    CHECK(failed > 500);
    dp_platter_close(platter);
    tempdir_close(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_function_tells_when_memory_is_gone_and_goes_on),
    };
    sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real_memory);
    sqlite3_mem_methods methods = real_memory;
    methods.xMalloc = failing_malloc;
    methods.xRealloc = failing_realloc;
    sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
