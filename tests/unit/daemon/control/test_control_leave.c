/* run.leave, down: the orders to the node, and their preconditions. The driver is a mock; waits end
 * at once. */
#include <stdatomic.h>

#include "daemon/control/list_stream.h"
#include "store/chain.h"
#include "store/ckpt.h"
#include "store/vote.h"
#include "tests/unit/daemon/hurry.h"
#include "tests/unit/daemon/suspension_kit.h"

static uint32_t n_closed; /* drivers */

void dp_driver_close(dp_driver *driver)
{
    CHECK(driver == desk.driver);
    n_closed++;
}

static uint32_t n_told; /* lists of rounds, of a run that is over */

void dp_streams_on_entry(dp_daemon *daemon, dp_stream_kind kind)
{
    CHECK(daemon->driver == NULL && kind == DP_STREAM_OF_ROUNDS);
    n_told++;
}

const char *dp_call_state(const dp_daemon *daemon)
{
    return daemon->driver == NULL ? "idle" : "paused";
}

/* A member of a run with two others, of which this node is a voter. */
static void open_member(void)
{
    const dp_vote_key_row key = {.secret = {1}};
    call_open();
    suspension_open();
    n_closed = 0;
    n_told = 0;
    hurry_from_ms = 50;
    call_kit.has_manifest = true;
    call_kit.view.running = true;
    call_kit.view.node.mode = DP_MODE_SYNC;
    call_kit.view.node.is_voter = true;
    call_kit.view.node.voters = 3;
    call_kit.view.node.alive = 3;
    call_kit.view.node.members = 3;
    call_kit.view.node.leaving = DP_LEAVING_NOT;
    CHECK_OK(dp_run_identity_save(desk.shelf.store, &desk.driver->facts));
    CHECK_OK(dp_vote_create_key(desk.shelf.store, &desk.driver->facts.run, &key));
}

static void close_member(void)
{
    hurry_from_ms = UINT64_MAX;
    call_close();
}

static bool has_key(void)
{
    dp_vote_key_row key;
    return dp_vote_load_key(desk.shelf.store, &desk.driver->facts.run, &key) == DP_OK;
}

/* A checkpoint of the run and one record. */
static void keep_model(void)
{
    static const uint8_t tensors[4096] = {7};
    const dp_run_id *const run = &desk.driver->facts.run;
    const dp_chain_record record = {.slot = 1, .record = dp_view_text("r"), .cert = {0}};
    dp_ckpt ckpt = {.round = 3, .slot = 4, .created_ms = 1000};
    CHECK_OK(dp_ckpt_save(desk.shelf.store, run, &ckpt, dp_view_of(tensors, sizeof tensors)));
    CHECK_OK(dp_chain_append(desk.shelf.store, run, &record));
}

static bool has_model(void)
{
    dp_ckpt ckpt;
    dp_chain_tip tip;
    const dp_run_id *const run = &desk.driver->facts.run;
    const bool has = dp_ckpt_newest(desk.shelf.store, run, &ckpt) == DP_OK;
    CHECK_STATUS(dp_chain_head(desk.shelf.store, run, &tip), has ? DP_OK : DP_NOTFOUND);
    return has;
}

static bool is_member(void)
{
    dp_run_identity facts;
    return dp_run_identity_load(desk.shelf.store, &facts) == DP_OK;
}

static bool is_told(void *context)
{
    (void)context;
    return call_kit.n_commands > 2;
}

static void a_node_leaves_when_its_going_does_not_stop_the_run(void **state)
{
    dp_run_identity facts;
    (void)state;
    open_member();
    keep_model();
    CALL_ALONE(dp_method_run_leave);
    assert_true(call_kit.n_commands == 1 && call_kit.command == DP_COMMAND_LEAVE);
    turn_until(&desk.loop, is_told, NULL); /* The order is repeated until the node confirms it. */
    call_kit.view.node.leaving = DP_LEAVING_WAITS;
    for (int i = 0; i < 20; i++) {
        uv_run(&desk.loop, UV_RUN_ONCE);
    }
    assert_true(call_kit.n_frames == 0 && n_closed == 0);
    call_kit.view.node.leaving = DP_LEAVING_FREE;
    call_wait();
    assert_string_equal(text_at(call_body(), "run"), "kjv");
    assert_false(flag_at(call_body(), "ended"));
    assert_true(n_closed == 1 && n_told == 1 && desk.daemon.driver == NULL);
    assert_int_equal(call_kit.n_lefts, 1); /* No token brings it back. */
    CHECK_STATUS(dp_run_identity_load(desk.shelf.store, &facts), DP_NOTFOUND);
    assert_false(has_key() || has_model());
    assert_true(suspension_kit.n_pauses == 1 && !suspension_kit.pause.holds);
    close_member();
}

static void data_that_is_kept_keeps_the_vote_key_and_the_model(void **state)
{
    (void)state;
    open_member();
    keep_model();
    call_kit.view.node.leaving = DP_LEAVING_FREE;
    CALL(dp_method_run_leave, FLAG("keep_data", true));
    call_wait();
    assert_true(has_key() && has_model() && !is_member());
    close_member();
}

typedef struct late_save {
    dp_store_thread_job job;
    dp_ckpt ckpt;
    atomic_bool last; /* the next piece is */
} late_save;

/* As a checkpoint in pieces: each is a turn behind the other jobs. */
static void run_late_save(dp_store_thread_job *job, dp_store *store)
{
    static const uint8_t tensors[4096] = {8};
    late_save *const self = (late_save *)job;
    job->again = !atomic_load(&self->last);
    if (!job->again) {
        CHECK_OK(dp_ckpt_save(store, &desk.driver->facts.run, &self->ckpt,
                              dp_view_of(tensors, sizeof tensors)));
    }
}

static void done_late_save(dp_store_thread_job *job)
{
    dp_driver_job_done(desk.driver);
    job->run = NULL;
}

static bool is_closed(void *context)
{
    (void)context;
    return n_closed > 0;
}

static void a_checkpoint_that_was_being_written_goes_with_the_others(void **state)
{
    late_save late = {.ckpt = {.round = 9, .slot = 9}};
    (void)state;
    open_member();
    keep_model();
    late.job.run = run_late_save;
    late.job.done = done_late_save;
    assert_true(dp_driver_post(desk.driver, &late.job, DP_STORE_THREAD_BULK));
    call_kit.view.node.leaving = DP_LEAVING_FREE;
    CALL_ALONE(dp_method_run_leave);
    turn_until(&desk.loop, is_closed, NULL);
    for (int i = 0; i < 50; i++) {
        uv_run(&desk.loop, UV_RUN_ONCE);
    }
    assert_int_equal(call_kit.n_frames, 0); /* It waits for that write. */
    atomic_store(&late.last, true);
    call_wait();
    assert_true(call_kit.n_errors == 0 && late.job.run == NULL && !has_model());
    close_member();
}

static void a_leave_that_cannot_be_stored_is_no_success(void **state)
{
    (void)state;
    open_member();
    keep_model();
    call_kit.view.node.leaving = DP_LEAVING_FREE;
    snprintf(desk.config.dir, sizeof desk.config.dir, "/nowhere");
    CALL_ALONE(dp_method_run_leave);
    call_wait();
    assert_true(call_failed("E0127", 74) && n_closed == 1);
    assert_true(has_key() && has_model() && is_member()); /* As before, at the next start. */
    close_member();
}

static void a_full_queue_delays_the_leave(void **state)
{
    dp_store_thread *store_thread = NULL;
    (void)state;
    open_member();
    keep_model();
    call_kit.view.node.leaving = DP_LEAVING_FREE;
    store_thread = desk.daemon.store_thread;
    desk.daemon.store_thread = NULL; /* It takes no job. */
    CALL_ALONE(dp_method_run_leave);
    turn_until(&desk.loop, is_closed, NULL);
    for (int i = 0; i < 20; i++) {
        uv_run(&desk.loop, UV_RUN_ONCE);
    }
    assert_true(call_kit.n_frames == 0 && call_kit.n_errors == 0);
    desk.daemon.store_thread = store_thread;
    call_wait();
    assert_true(call_kit.n_errors == 0 && !has_model() && !is_member());
    close_member();
}

static void a_queue_that_stays_full_ends_the_leave_with_an_error(void **state)
{
    dp_store_thread *store_thread = NULL;
    (void)state;
    open_member();
    call_kit.view.node.leaving = DP_LEAVING_FREE;
    store_thread = desk.daemon.store_thread;
    desk.daemon.store_thread = NULL;
    CALL_ALONE(dp_method_run_leave);
    call_wait();
    desk.daemon.store_thread = store_thread;
    assert_true(call_failed("E0127", 74) && is_member());
    close_member();
}

static void the_only_voter_does_not_leave_by_accident(void **state)
{
    (void)state;
    open_member();
    call_kit.view.node.voters = 1;
    call_kit.view.node.alive = 1;
    call_kit.view.node.round = 12;
    call_kit.view.node.members = 1;
    call_kit.view.elements = 1000;
    CALL_ALONE(dp_method_run_leave);
    assert_true(call_failed("E0124", 75) && call_kit.n_commands == 0);
    assert_non_null(strstr(call_kit.error.why, "kjv has 12 rounds, 1 member"));
    assert_non_null(strstr(call_kit.error.why, "not exported since this daemon started"));
    assert_non_null(strstr(call_kit.error.why, "--delete-run kjv"));
    dp_event_log_add(desk.daemon.event_log, DP_LOG_INFO, "model.exported", 12, NULL,
                     "exported round 12 to /m");
    CALL_ALONE(dp_method_run_leave);
    assert_non_null(strstr(call_kit.error.why, "exported round 12 to /m"));
    close_member();
}

static void the_only_voter_beside_others_leaves_when_one_has_taken_over(void **state)
{
    (void)state;
    open_member();
    call_kit.view.node.voters = 1;
    call_kit.view.node.alive = 2;
    call_kit.view.node.leaving = DP_LEAVING_FREE;
    CALL_ALONE(dp_method_run_leave);
    call_wait();
    assert_true(call_kit.n_errors == 0 && call_kit.n_commands == 1 && n_closed == 1);
    close_member();
}

static void the_only_voter_leaves_when_its_run_is_named(void **state)
{
    (void)state;
    open_member();
    call_kit.view.node.voters = 1;
    call_kit.view.node.alive = 1;
    CALL(dp_method_run_leave, TEXT("delete_run", "another"));
    assert_true(call_failed("E0128", 64) && call_kit.n_commands == 0);
    assert_string_equal(call_kit.error.why, "it is a member of kjv");
    call_kit.view.node.leaving = DP_LEAVING_NEEDED;
    CALL(dp_method_run_leave, TEXT("delete_run", "kjv"));
    call_wait();
    assert_true(call_kit.n_errors == 0 && n_closed == 1 && flag_at(call_body(), "ended"));
    close_member();
}

/* All members have left by one record, this node by an order that was refused first. */
static void the_last_to_leave_is_told_that_the_run_has_ended(void **state)
{
    (void)state;
    open_member();
    call_kit.view.node.mode = DP_MODE_LEFT;
    call_kit.view.node.leaving = DP_LEAVING_FREE;
    call_kit.view.node.members = 0;
    CALL_ALONE(dp_method_run_leave);
    call_wait();
    assert_true(call_kit.n_errors == 0 && flag_at(call_body(), "ended"));
    close_member();
}

static void a_node_that_is_needed_after_all_stays(void **state)
{
    (void)state;
    open_member();
    call_kit.view.node.leaving = DP_LEAVING_NEEDED;
    CALL_ALONE(dp_method_run_leave);
    call_wait();
    assert_true(call_failed("E0124", 75) && n_closed == 0 && has_key());
    assert_non_null(strstr(call_kit.error.why, "it leaves by itself when one has"));
    close_member();
}

static void a_node_that_reads_its_chain_cannot_know_and_says_so(void **state)
{
    (void)state;
    open_member();
    call_kit.view.running = false;
    CALL_ALONE(dp_method_run_leave);
    assert_true(call_failed("E0402", 75) && call_kit.n_commands == 0);
    call_kit.has_manifest = false; /* It is joining: it may leave at once. */
    CALL_ALONE(dp_method_run_leave);
    call_wait();
    assert_int_equal(n_closed, 1);
    close_member();
}

static void a_second_leave_of_a_run_is_answered(void **state)
{
    (void)state;
    open_member();
    CALL_ALONE(dp_method_run_leave);
    dp_driver other = {.port = 1};
    desk.daemon.driver = &other; /* And entered another one meanwhile. */
    call_wait();
    assert_string_equal(text_at(call_body(), "run"), "kjv");
    assert_true(n_closed == 0 && desk.daemon.driver == &other);
    close_member();
}

static void without_a_run_or_memory_nothing_is_left(void **state)
{
    (void)state;
    open_member();
    call_kit.fails_at = 1;
    CALL_ALONE(dp_method_run_leave);
    assert_true(call_failed("E0199", 70) && call_kit.n_commands == 0);
    CALL_ALONE(dp_method_down);
    assert_true(call_failed("E0199", 70));
    call_kit.fails_at = 0;
    desk.daemon.driver = NULL;
    CALL_ALONE(dp_method_run_leave);
    assert_true(call_failed("E0105", 75));
    close_member();
}

static void a_node_that_only_tries_to_join_is_told_to_stop(void **state)
{
    (void)state;
    open_member();
    desk.daemon.driver = NULL;
    call_kit.has_token = true;
    CALL_ALONE(dp_method_run_leave);
    assert_true(call_kit.n_errors == 0 && call_kit.n_lefts == 1 && call_kit.n_commands == 0);
    assert_true(dp_pack_key(call_body(), "run") != NULL && !flag_at(call_body(), "ended"));
    close_member();
}

static bool has_ended(void *context)
{
    (void)context;
    return desk.ended;
}

static void the_daemon_ends_after_it_has_answered(void **state)
{
    (void)state;
    open_member();
    CALL_ALONE(dp_method_down);
    assert_int_equal(number_at(call_body(), "pid"), uv_os_getpid());
    assert_false(desk.ended);
    CALL_ALONE(dp_method_down); /* Two have asked. */
    turn_until(&desk.loop, has_ended, NULL);
    assert_int_equal(desk.exit_status, 0);
    close_member();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_leaves_when_its_going_does_not_stop_the_run),
        cmocka_unit_test(data_that_is_kept_keeps_the_vote_key_and_the_model),
        cmocka_unit_test(a_checkpoint_that_was_being_written_goes_with_the_others),
        cmocka_unit_test(a_leave_that_cannot_be_stored_is_no_success),
        cmocka_unit_test(a_full_queue_delays_the_leave),
        cmocka_unit_test(a_queue_that_stays_full_ends_the_leave_with_an_error),
        cmocka_unit_test(the_only_voter_does_not_leave_by_accident),
        cmocka_unit_test(the_only_voter_beside_others_leaves_when_one_has_taken_over),
        cmocka_unit_test(the_only_voter_leaves_when_its_run_is_named),
        cmocka_unit_test(the_last_to_leave_is_told_that_the_run_has_ended),
        cmocka_unit_test(a_node_that_is_needed_after_all_stays),
        cmocka_unit_test(a_node_that_reads_its_chain_cannot_know_and_says_so),
        cmocka_unit_test(a_second_leave_of_a_run_is_answered),
        cmocka_unit_test(without_a_run_or_memory_nothing_is_left),
        cmocka_unit_test(a_node_that_only_tries_to_join_is_told_to_stop),
        cmocka_unit_test(the_daemon_ends_after_it_has_answered),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
