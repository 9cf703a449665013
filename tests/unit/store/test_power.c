#include "tests/unit/store/faultvfs.h"
#include "tests/unit/store/ledger.h"

enum { ROUNDS = 7, CUTS = 120 };

/* Run until the power is cut at op number at; the number of ops. */
static uint64_t run_until_cut(shelf *s, ledger *book, uint64_t at, bool lies)
{
    fault_set(FAULT_CUT, at, NULL);
    fault.lies = lies;
    dp_status status = dp_store_open(&s->store, s->path, &s->options, NULL, NULL);
    if (status == DP_OK) {
        status = ledger_start(s->store, book);
    }
    for (uint64_t round = 1; round <= ROUNDS && status == DP_OK; round++) {
        status = ledger_round(s->store, book, round);
    }
    const uint64_t ops = fault.ops;
    fault.dead = true; /* Closing writes nothing more. */
    dp_store_close(s->store);
    s->store = NULL;
    return ops;
}

/* One cut and what is left after it. */
static bool survives(uint64_t at, uint64_t seed, bool lies, uint64_t *ops)
{
    shelf s = {.options = {.vfs = "fault"}};
    ledger book = {0};
    tempdir_open(&s.dir);
    tempdir_file(&s.dir, "store", s.path);
    *ops = run_until_cut(&s, &book, at, lies);
    fault_settle(seed);
    s.options.vfs = NULL;
    const dp_status status = dp_store_open(&s.store, s.path, &s.options, &s.report, NULL);
    if (getenv("DP_TEST_VERBOSE") != NULL) {
        print_message("cut %llu: %s rebuilt=%d moved=%s blob=%llu record=%llu ckpt=%llu\n",
                      (unsigned long long)at, dp_status_name(status), s.report.meta_rebuilt,
                      s.report.moved_to, (unsigned long long)book.blob,
                      (unsigned long long)book.record, (unsigned long long)book.ckpt);
    }
    bool good = status == DP_OK && !s.report.meta_rebuilt && s.report.moved_to[0] == '\0';
    good = good && ledger_holds(s.store, &book);
    ledger more = {.blob = book.blob};
    good = good &&
           ledger_put(s.store, 99, LEDGER_STATE, DP_PIN_DATA, 0) == DP_OK; /* And it goes on. */
    good =
        good &&
        ledger_holds(s.store, &(ledger){.blob = more.blob, .record = book.record, .key = book.key});
    shelf_close(&s);
    return good;
}

static void test_R1_R3_nothing_acknowledged_is_lost_by_a_power_cut(void **state)
{
    (void)state;
    uint64_t all = 0;
    uint64_t ignored = 0;
    CHECK(survives(0, 1, false, &all));
    CHECK(all > CUTS);
    for (uint64_t i = 0; i < CUTS; i++) {
        const uint64_t at = 1 + i * all / CUTS;
        if (!survives(at, i, false, &ignored)) {
            print_error("lost something: cut at op %llu of %llu, seed %llu\n",
                        (unsigned long long)at, (unsigned long long)all, (unsigned long long)i);
            fail();
        }
    }
}

static void the_power_cuts_find_a_disk_that_lies_about_sync(void **state)
{
    (void)state;
    uint64_t all = 0;
    uint64_t ignored = 0;
    unsigned lost = 0;
    CHECK(survives(0, 1, false, &all));
    for (uint64_t i = 0; i < 20; i++) {
        lost += survives(all / 2 + i * all / 50, i, true, &ignored) ? 0 : 1;
    }
    CHECK(lost > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_R1_R3_nothing_acknowledged_is_lost_by_a_power_cut),
        cmocka_unit_test(the_power_cuts_find_a_disk_that_lies_about_sync),
    };
    fault_install();
    tempdir_in_memory(); /* Many syncs; test_db stays on a disk, and waits for its own. */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
