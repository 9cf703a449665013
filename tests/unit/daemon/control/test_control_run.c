/* Joins and leaves through the control socket that end before they are done. */
#include "base/alloc.h"
#include "daemon/peer/driver_inside.h"
#include "store/chain.h"
#include "store/inside.h"
#include "store/vote.h"
#include "tests/unit/daemon/joining.h"

static void leaving_ends_a_join_that_still_waits(void **state)
{
    struct house house;
    struct caller caller;
    dp_control_frame frame;
    (void)state;
    start_joining(&house, &caller);
    ask(&caller, 2, "run.leave");
    size_t size = next_frame(&caller, &frame);
    CHECK(frame.kind == DP_CONTROL_REPLY && frame.id == 1 && frame.error != NULL);
    used(&caller, &frame, size);
    size = next_frame(&caller, &frame);
    CHECK(frame.kind == DP_CONTROL_REPLY && frame.id == 2 && frame.error == NULL);
    used(&caller, &frame, size);
    CHECK(house.daemon.driver == NULL);
    check_hello(&caller, 3);
    caller_close(&caller);
    house_close(&house);
}

static void leaving_twice_is_answered_twice(void **state)
{
    struct house house;
    struct caller caller;
    (void)state;
    start_joining(&house, &caller);
    ask(&caller, 2, "run.leave");
    ask(&caller, 3, "run.leave");
    caller.wanted = 3; /* and the join's error */
    turn_until(&house.loop, has_frames, &caller);
    assert_int_equal(frames_in(&caller), 3);
    CHECK(house.daemon.driver == NULL);
    caller_close(&caller);
    house_close(&house);
}

static void the_end_of_the_daemon_ends_a_join_that_still_waits(void **state)
{
    struct house house;
    struct caller caller;
    (void)state;
    start_joining(&house, &caller);
    house.daemon.ending = true;
    dp_driver_close(house.daemon.driver);
    house.daemon.driver = NULL;
    caller_close(&caller);
    const uint64_t before = uv_hrtime();
    house_close(&house); /* runs until no timer is left */
    CHECK(uv_hrtime() - before < 5000000000ULL);
}

/* Does the next start of this daemon find the run, and continue the join? */
static bool knows_its_run(struct house *house)
{
    static dp_run_identity facts;
    dp_why why = {""};
    const bool knows = dp_run_identity_load(house->shelf.store, &facts) == DP_OK;
    CHECK(knows == (dp_run_identity_copy_load(house->config.dir, &facts, &why) == DP_OK));
    return knows;
}

static void an_end_of_the_daemon_interrupts_a_join_and_forgets_no_run(void **state)
{
    for (int ends = 0; ends <= 1; ends++) {
        struct house house;
        struct caller caller;
        dp_control_frame frame;
        dp_control_error error;
        (void)state;
        start_joining(&house, &caller);
        static dp_run_identity facts;
        facts = *dp_driver_run_identity(house.daemon.driver);
        CHECK_OK(dp_run_identity_save(house.shelf.store, &facts));
        CHECK_OK(dp_run_identity_copy_save(house.config.dir, &facts));
        house.daemon.ending = ends != 0; /* Otherwise the driver fails. */
        if (house.daemon.ending) {
            dp_driver_close(house.daemon.driver);
            house.daemon.driver = NULL;
        } else {
            dp_driver_fail(house.daemon.driver, DP_IO, "the store cannot be written");
        }
        const size_t size = next_frame(&caller, &frame);
        CHECK(frame.kind == DP_CONTROL_REPLY && frame.id == 1 && frame.error != NULL);
        dp_control_error_read(frame.error, &error);
        assert_int_equal(error.exit, ends != 0 ? 75 : 70);
        used(&caller, &frame, size);
        caller_close(&caller);
        house_close_rows(&house);
        CHECK(knows_its_run(&house) == house.daemon.ending);
        house_open_rows(&house);
        house_close(&house);
    }
}

/* Rows of meta.db that keep something of a run, and objects. */
static int64_t rows_of_runs(const struct house *house)
{
    int64_t count = 0;
    CHECK_OK(dp_sql_number(&house->shelf.store->meta,
                           "SELECT (SELECT count(*) FROM pin)+(SELECT count(*) FROM object)+"
                           "(SELECT count(*) FROM vote)+(SELECT count(*) FROM record)",
                           &count));
    return count;
}

static void a_join_that_fails_leaves_nothing_but_what_was_here_before_it(void **state)
{
    static dp_run_identity facts;
    const dp_vote_key_row key = {.secret = {1}};
    const dp_chain_record record = {.slot = 1, .record = dp_view_text("r"), .cert = {0}};
    for (int is_new = 0; is_new <= 1; is_new++) {
        struct house house;
        struct caller caller;
        dp_control_frame frame;
        (void)state;
        start_joining(&house, &caller);
        facts = *dp_driver_run_identity(house.daemon.driver);
        const dp_pin pin = {.run = facts.run, .kind = DP_PIN_DATA};
        CHECK_OK(dp_run_identity_save(house.shelf.store, &facts));
        CHECK_OK(dp_run_identity_copy_save(house.config.dir, &facts));
        CHECK_OK(dp_vote_create_key(house.shelf.store, &facts.run, &key));
        CHECK_OK(dp_chain_append(house.shelf.store, &facts.run, &record));
        CHECK_OK(dp_object_put(house.shelf.store, dp_view_text("tokens"), &pin, NULL));
        house.daemon.driver->is_new = is_new != 0;
        dp_driver_fail(house.daemon.driver, DP_NOSPACE, "the data cannot be stored");
        const size_t size = next_frame(&caller, &frame);
        CHECK(frame.kind == DP_CONTROL_REPLY && frame.id == 1 && frame.error != NULL);
        used(&caller, &frame, size);
        caller_close(&caller);
        house_close_rows(&house);
        CHECK(!knows_its_run(&house));
        assert_int_equal(rows_of_runs(&house), is_new != 0 ? 0 : 4);
        house_open_rows(&house);
        house_close(&house);
    }
}

static void the_end_of_the_daemon_ends_a_leave_that_still_waits(void **state)
{
    struct house house;
    struct caller caller;
    (void)state;
    start_joining(&house, &caller);
    ask(&caller, 2, "run.leave");
    uv_run(&house.loop, UV_RUN_NOWAIT);
    house.daemon.ending = true;
    dp_driver_close(house.daemon.driver);
    house.daemon.driver = NULL;
    caller_close(&caller);
    house_close(&house);
}

static bool is_answered(void *context)
{
    struct caller *caller = context;
    return has_frames(caller) || has_ended(caller);
}

/* With an answer, or with the end of the connection when there is no memory even for that. */
static void a_request_without_memory_is_answered_all_the_same(void **state)
{
    static const char *const methods[] = {"run.leave", "down", "ckpt.list"};
    struct house house;
    struct caller caller;
    (void)state;
    start_joining(&house, &caller);
    caller_close(&caller);
    for (size_t at = 1; at <= 12; at++) {
        for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
            if (i == 0 && at > 1) {
                continue; /* It may have left by now. */
            }
            caller_open(&caller, &house);
            caller.wanted = 1;
            ask(&caller, 1, "hello"); /* so that the connection has its buffers */
            turn_until(&house.loop, is_answered, &caller);
            caller.wanted = 2;
            dp_buf out = {.max = 4096};
            write_request(&out, 2, methods[i], false, 20);
            send_bytes(&caller, dp_buf_view(&out));
            dp_buf_close(&out);
            dp_alloc_fail_after(at);
            const bool answered =
                turn_within(&house.loop, is_answered, &caller, 2000); /* leaving takes its time */
            dp_alloc_fail_after(0);
            CHECK(answered);
            caller_close(&caller);
        }
    }
    house.daemon.ending = true;
    if (house.daemon.driver != NULL) {
        dp_driver_close(house.daemon.driver);
    }
    house.daemon.driver = NULL;
    house_close(&house);
}

static void a_name_that_is_too_long_is_refused_not_dropped(void **state)
{
    static const char *const methods[] = {"run.join", "run.create"};
    struct house house;
    struct caller caller;
    dp_manifest manifest;
    uint8_t canonical[DP_MANIFEST_BYTES_MAX];
    size_t canonical_bytes = 0;
    (void)state;
    dp_manifest_default(&manifest);
    CHECK_OK(dp_manifest_encode(&manifest, canonical, &canonical_bytes));
    house_open(&house);
    house_open_control(&house);
    caller_open(&caller, &house);
    for (uint64_t i = 0; i < 2; i++) {
        dp_buf out = {.max = 65536};
        dp_control_frame frame;
        size_t start = 0;
        dp_packer packer = dp_control_begin(&out, DP_CONTROL_REQUEST, i + 1, methods[i], &start);
        dp_group map = dp_map_begin(&packer);
        dp_pack_bytes(dp_pair(&map, "manifest"), dp_view_of(canonical, canonical_bytes));
        dp_pair_text(&map, "text_path", "/nowhere");
        dp_pair_text(&map, "name", "a name of more than 32 characters");
        dp_group_end(&map);
        CHECK_OK(dp_control_end(&out, start, &packer));
        send_bytes(&caller, dp_buf_view(&out));
        const size_t size = next_frame(&caller, &frame);
        CHECK(frame.kind == DP_CONTROL_REPLY && frame.id == i + 1);
        check_text(frame.error, "code", "E0001");
        used(&caller, &frame, size);
        dp_buf_close(&out);
        CHECK(house.daemon.driver == NULL);
    }
    caller_close(&caller);
    house_close(&house);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_without_memory_is_answered_all_the_same),
        cmocka_unit_test(a_name_that_is_too_long_is_refused_not_dropped),
        cmocka_unit_test(leaving_ends_a_join_that_still_waits),
        cmocka_unit_test(leaving_twice_is_answered_twice),
        cmocka_unit_test(the_end_of_the_daemon_ends_a_join_that_still_waits),
        cmocka_unit_test(an_end_of_the_daemon_interrupts_a_join_and_forgets_no_run),
        cmocka_unit_test(a_join_that_fails_leaves_nothing_but_what_was_here_before_it),
        cmocka_unit_test(the_end_of_the_daemon_ends_a_leave_that_still_waits),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
