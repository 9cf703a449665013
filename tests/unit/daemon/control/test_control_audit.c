/* The audit of a chain with damaged or missing rows: each is reported once, and later rows are
 * still judged. The rules for a right record are tested in tests/unit/gossip/ledger/test_audit.c;
 * here no record even decodes. */
#include "daemon/peer/driver.h"
#include "daemon/peer/driver_inside.h"
#include "gossip/ledger/audit.h"
#include "store/chain.h"
#include "store/inside.h"
#include "tests/unit/daemon/joining.h"

enum { SLOTS = 28 }; /* two findings each are still fewer than are kept */

static const char damaged[] = "the stored record is damaged";
static const char missing[] = "the record is missing";

/* Members that the audit has found; they are played, the last one is gone. */
static uint32_t n_members;

void __real_dp_audit_look(const dp_audit *audit, dp_audit_view *view);
void __wrap_dp_audit_look(const dp_audit *audit, dp_audit_view *view);
void __wrap_dp_audit_look(const dp_audit *audit, dp_audit_view *view)
{
    __real_dp_audit_look(audit, view);
    view->members = n_members;
}

void __wrap_dp_audit_member(const dp_audit *audit, uint32_t index, dp_audit_member_view *view);
void __wrap_dp_audit_member(const dp_audit *audit, uint32_t index, dp_audit_member_view *view)
{
    (void)audit;
    *view = (dp_audit_member_view){.peer.bytes = {(uint8_t)index, (uint8_t)(index >> 8)},
                                   .gone = index == 0};
}

/* Makes a chain of so many records in the store, and then the damage; on the store thread, which
 * owns the store. */
struct harm {
    dp_store_thread_job job;
    dp_hash run;
    const char *const *sql;
    size_t n_sql;
    bool done;
};

static void do_harm(dp_store_thread_job *job, dp_store *store)
{
    struct harm *const harm = (struct harm *)job;
    for (uint64_t slot = 1; slot <= SLOTS; slot++) {
        char text[32];
        snprintf(text, sizeof text, "record %u", (unsigned)slot);
        const dp_chain_record row = {.slot = slot,
                                     .hash = dp_hash_of("test", dp_view_text(text)),
                                     .record = dp_view_text(text),
                                     .cert = dp_view_text("a certificate")};
        CHECK_OK(dp_chain_append(store, &harm->run, &row));
    }
    for (size_t i = 0; i < harm->n_sql; i++) {
        dp_query query = dp_query_of(&store->meta, harm->sql[i]);
        CHECK_OK(dp_query_run(&query));
    }
}

static void is_done(dp_store_thread_job *job)
{
    ((struct harm *)job)->done = true;
}

static bool was_done(void *context)
{
    return ((struct harm *)context)->done;
}

static uint64_t number(const dp_pack_value *map, const char *key)
{
    uint64_t value = UINT64_MAX;
    CHECK(dp_pack_get_u64(dp_pack_key(map, key), &value));
    return value;
}

/* The cause with this text, or NULL. */
static const dp_pack_value *cause_of(const dp_pack_value *reply, const char *text)
{
    const dp_pack_value *const causes = dp_pack_key(reply, "causes");
    uint32_t count = 0;
    CHECK(dp_pack_is_array(causes, &count));
    for (uint32_t i = 0; i < count; i++) {
        char own[128] = "";
        const dp_pack_value *const cause = dp_pack_at(causes, i);
        CHECK(dp_pack_copy_text(dp_pack_key(cause, "text"), own, sizeof own));
        if (strcmp(own, text) == 0) {
            return cause;
        }
    }
    return NULL;
}

static void check_cause(const dp_pack_value *reply, const char *text, uint64_t count,
                        uint64_t first, uint64_t last)
{
    const dp_pack_value *const cause = cause_of(reply, text);
    assert_int_equal(cause == NULL ? 0 : number(cause, "count"), count);
    if (count > 0) {
        assert_int_equal(number(cause, "first"), first);
        assert_int_equal(number(cause, "last"), last);
    }
}

/* Slots that the findings name. */
static uint64_t slots_told(const dp_pack_value *reply)
{
    const dp_pack_value *const findings = dp_pack_key(reply, "findings");
    uint64_t told = 0;
    uint32_t count = 0;
    CHECK(dp_pack_is_array(findings, &count));
    for (uint32_t i = 0; i < count; i++) {
        told |= 1ULL << number(dp_pack_at(findings, i), "slot");
    }
    return told;
}

struct wanted {
    uint64_t n_damaged;
    uint64_t damaged_first;
    uint64_t damaged_last;
    uint64_t n_missing;
    uint64_t missing_first;
    uint64_t missing_last;
};

static void check_audit(const char *const *sql, size_t n_sql, const struct wanted *wanted)
{
    struct house house;
    struct caller caller;
    dp_control_frame frame;
    start_joining(&house, &caller);
    struct dp_driver *const driver = house.daemon.driver;
    struct harm harm = {.job = {.run = do_harm, .done = is_done},
                        .run = driver->facts.run,
                        .sql = sql,
                        .n_sql = n_sql};
    CHECK_OK(dp_store_thread_post(house.daemon.store_thread, &harm.job, DP_STORE_THREAD_BULK));
    turn_until(&house.loop, was_done, &harm);
    dp_manifest_default(&driver->manifest);
    driver->has_manifest = true;
    ask(&caller, 2, "audit");
    size_t size = next_frame(&caller, &frame);
    CHECK(frame.kind == DP_CONTROL_REPLY && frame.id == 2 && frame.error == NULL);
    assert_int_equal(number(frame.body, "head"), SLOTS);
    assert_int_equal(number(frame.body, "records"), 0);
    assert_int_equal(slots_told(frame.body), (1ULL << (SLOTS + 1)) - 2);
    check_cause(frame.body, damaged, wanted->n_damaged, wanted->damaged_first,
                wanted->damaged_last);
    check_cause(frame.body, missing, wanted->n_missing, wanted->missing_first,
                wanted->missing_last);
    uint32_t listed = 0;
    const dp_pack_value *const members = dp_pack_key(frame.body, "members");
    CHECK(dp_pack_is_array(members, &listed) && (listed > 100) == (n_members > 100));
    assert_int_equal(listed + number(frame.body, "more"), n_members);
    for (uint32_t i = 0; i < listed; i++) { /* Members come first. */
        bool gone = false;
        CHECK(dp_pack_get_bool(dp_pack_key(dp_pack_at(members, i), "gone"), &gone));
        CHECK(gone == (i + 1 == n_members));
    }
    used(&caller, &frame, size);
    driver->has_manifest = false;
    ask(&caller, 3, "run.leave");
    size = next_frame(&caller, &frame);
    used(&caller, &frame, size);
    caller_close(&caller);
    house.daemon.ending = true;
    dp_driver_close(house.daemon.driver);
    house.daemon.driver = NULL;
    house_close(&house);
}

static void a_damaged_row_is_told_and_the_audit_goes_on(void **state)
{
    static const char *const sql[] = {"UPDATE record SET cert=x'00' WHERE slot=20",
                                      "UPDATE record SET record=x'00' WHERE slot=21",
                                      "UPDATE record SET chk=0 WHERE slot=25"};
    (void)state;
    check_audit(sql, 3, &(struct wanted){.n_damaged = 3, .damaged_first = 20, .damaged_last = 25});
}

static void the_first_and_the_last_row_may_be_damaged(void **state)
{
    static const char *const sql[] = {"UPDATE record SET hash=record WHERE slot=1",
                                      "UPDATE record SET chk=chk+1 WHERE slot=28"};
    (void)state;
    check_audit(sql, 2, &(struct wanted){.n_damaged = 2, .damaged_first = 1, .damaged_last = 28});
}

static void a_missing_row_is_told_from_a_damaged_one(void **state)
{
    static const char *const sql[] = {"DELETE FROM record WHERE slot IN (1,17,18,28)",
                                      "UPDATE record SET chk=chk+1 WHERE slot=19"};
    (void)state;
    check_audit(sql, 2,
                &(struct wanted){.n_damaged = 1,
                                 .damaged_first = 19,
                                 .damaged_last = 19,
                                 .n_missing = 4,
                                 .missing_first = 1,
                                 .missing_last = 28});
}

static void the_members_of_a_large_run_fit_into_the_answer(void **state)
{
    static const char *const sql[] = {"DELETE FROM record WHERE slot = 1"};
    static const uint32_t counts[] = {3, 2048};
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        n_members = counts[i];
        check_audit(sql, 1,
                    &(struct wanted){.n_missing = 1, .missing_first = 1, .missing_last = 1});
    }
    n_members = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_damaged_row_is_told_and_the_audit_goes_on),
        cmocka_unit_test(the_first_and_the_last_row_may_be_damaged),
        cmocka_unit_test(a_missing_row_is_told_from_a_damaged_one),
        cmocka_unit_test(the_members_of_a_large_run_fit_into_the_answer),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
