/* THREADS_TEST. The door for scripts, with dpnode.h as an honest one. */
#include "tests/unit/compute/script_kit.h"

static void a_script_begins_with_the_weights_of_the_run(void **state)
{
    (void)state;
    memset(c, 1, sizeof c);
    dpnode *const node = connected();
    CHECK(a[1] == 0.25F && b[0] == 1.5F && c[0] == 1.75F && c[499] == 126.5F);
    CHECK(dpnode_samples(node) == 1000 && dpnode_unit(node) == UNIT);
    CHECK(dpnode_tokens_total(node) == 90000);
    CHECK(dpnode_round(node) == 1 && dpnode_tokens(node) == 500);
    CHECK(atomic_load(&present_pid) == (uint32_t)getpid());
    dpnode_close(node);
    wait_present(2);
    CHECK(atomic_load(&present_pid) == 0);
}

static void the_first_steps_are_copied_and_later_ones_when_they_are_asked_for(void **state)
{
    (void)state;
    uint64_t indices[8];
    dpnode *const node = connected();
    CHECK(dpnode_draw(node, indices, 8) == 8);
    a[0] = 7;
    step(node, 4, 2.0); /* So that a publication has something. */
    CHECK(weight_now(0) == 7 && atomic_load(&n_copied) == 0);
    a[0] = 7.5F;
    step(node, 2, 3.0);
    CHECK(weight_now(0) == 7);
    CHECK(ask_copy());
    a[0] = 8;
    step(node, 2, 4.0);
    CHECK(atomic_load(&n_copied) == 1 && weight_now(0) == 8);
    const dp_trainer_progress done = progress_now();
    CHECK(done.steps == 3 && done.tokens == 8 * UNIT && fabs(done.loss - 3) < 1e-12);
    step(node, 0, NAN); /* nothing is asked any more */
    CHECK(atomic_load(&n_copied) == 1);
    dpnode_close(node);
}

/* No command comes in between, as in a long round. */
static void a_copy_is_made_now_and_then_without_being_asked_for(void **state)
{
    (void)state;
    uint64_t indices[8];
    dp_script_close(door);
    open_door(0, 1000);
    train(1, 0);
    dpnode *const node = connected();
    CHECK(dpnode_draw(node, indices, 8) == 8);
    for (uint64_t i = 1; i <= 3; i++) {
        a[0] = (float)i;
        assert_int_equal(dpnode_step(node, 1, 1.0), DPNODE_OK);
        while (node->given < i) { /* The thread of scripts looks at the time. */
            assert_int_equal(dpnode_look(node), DPNODE_OK);
        }
    }
    CHECK(weight_now(0) == 3 && atomic_load(&n_copied) == 0);
    CHECK(progress_now().steps == 3 && progress_now().tokens == 3 * UNIT);
    dpnode_close(node);
}

static void the_wait_for_a_copy_is_as_long_as_steps_take(void **state)
{
    (void)state;
    dp_script_enter(door, true);
    CHECK(dp_script_ask_copy(door) == 0); /* nobody */
    dp_script_leave(door, DP_SCRIPT_SAME);
    dpnode *const node = connected();
    step(node, 0, 1.0);
    dp_script_enter(door, true);
    const uint64_t wait_us = dp_script_ask_copy(door);
    CHECK(wait_us >= 100 * 1000 && wait_us <= 20 * 1000 * 1000);
    dp_script_leave(door, DP_SCRIPT_SAME);
    dpnode_close(node);
}

static void what_rounds_move_is_added_to_the_scripts_own_steps(void **state)
{
    (void)state;
    dpnode *const node = connected();
    a[0] += 100; /* A step of its own that nobody has seen. */
    move_weights(10);
    move_weights(5); /* Two records in one look. */
    CHECK(a[1] == 0.25F);
    step(node, 0, 1.0);
    CHECK(a[0] == 115 && a[1] == 15.25F && c[499] == 141.5F);
    CHECK(ask_copy());
    move_weights(-1);
    step(node, 0, 1.0); /* ADD first, then COPY */
    CHECK(a[0] == 114 && weight_now(0) == 114);
    step(node, 0, 1.0);
    CHECK(a[0] == 114); /* and never twice */
    dpnode_close(node);
}

static void another_state_replaces_the_weights_and_its_work_counts_for_nothing(void **state)
{
    (void)state;
    uint64_t indices[8];
    dpnode *const node = connected();
    CHECK(dpnode_draw(node, indices, 8) == 8);
    a[0] = 55;
    dp_script_enter(door, true);
    CHECK_OK(dp_trainer_load(trainer, 0, dp_buf_view(&run.init)));
    dp_script_leave(door, DP_SCRIPT_SET);
    train(1, 500);
    CHECK(!ask_copy()); /* There is nothing to copy before the script has it. */
    step(node, 8, 1.0);
    CHECK(a[0] == 0 && a[1] == 0.25F);
    CHECK(ask_copy());
    CHECK(dpnode_draw(node, indices, 2) == 2);
    step(node, 2, 1.0);
    const dp_trainer_progress done = progress_now();
    CHECK(done.steps == 1 && done.tokens == 2 * UNIT);
    dpnode_close(node);
}

static void the_next_script_gets_what_the_last_one_had_copied(void **state)
{
    (void)state;
    dpnode *node = connected();
    uint64_t first[4];
    uint64_t again[4];
    CHECK(dpnode_draw(node, first, 4) == 4);
    CHECK(ask_copy());
    a[0] = 3;
    step(node, 1, 1.0);
    a[0] = 4; /* lost */
    step(node, 1, 1.0);
    kill_script(node);
    wait_present(2);
    node = connected();
    CHECK(a[0] == 3);
    CHECK(dpnode_draw(node, again, 3) == 3 && memcmp(first + 1, again, sizeof again[0] * 3) == 0);
    dpnode_close(node);
}

static void a_script_that_ends_by_itself_hands_in_its_steps(void **state)
{
    (void)state;
    uint64_t indices[4];
    dpnode *node = connected();
    CHECK(dpnode_draw(node, indices, 4) == 4);
    a[0] = 9;
    step(node, 3, 2.0);
    dpnode_close(node);
    wait_present(2);
    CHECK(weight_now(0) == 9 && atomic_load(&n_copied) == 0);
    const dp_trainer_progress done = progress_now();
    CHECK(done.steps == 1 && done.tokens == 3 * UNIT);
    node = connected(); /* The next one goes on from there, with the sample that is left. */
    uint64_t again;
    CHECK(a[0] == 9 && dpnode_draw(node, &again, 1) == 1 && again == indices[3]);
    train(0, 0); /* Also to a paused node. */
    a[0] = 10;
    assert_int_equal(dpnode_look(node), DPNODE_PAUSED);
    dpnode_close(node);
}

static void samples_of_a_million_without_a_copy_are_followed_by_others(void **state)
{
    (void)state;
    enum { BATCH = 8000, STEPS = 140 };
    static uint64_t indices[BATCH];
    dpnode *const node = connected();
    for (int i = 0; i < STEPS; i++) {
        CHECK(dpnode_draw(node, indices, BATCH) == BATCH);
        step(node, BATCH, 1.0);
    }
    dpnode_close(node);
    wait_present(2);
    CHECK(progress_now().tokens == (uint64_t)STEPS * BATCH * UNIT);
}

static void *lease_soon(void *context)
{
    (void)context;
    usleep(20000);
    train(1, 0);
    return NULL;
}

static void a_draw_after_a_load_waits_for_the_lease(void **state)
{
    (void)state;
    pthread_t other;
    uint64_t indices[4];
    dpnode *const node = connected();
    dp_script_enter(door, true);
    CHECK_OK(dp_trainer_load(trainer, 0, dp_buf_view(&run.init)));
    dp_script_leave(door, DP_SCRIPT_SET);
    step(node, 0, 1.0); /* takes the weights */
    assert_int_equal(pthread_create(&other, NULL, lease_soon, NULL), 0);
    CHECK(dpnode_draw(node, indices, 4) == 4);
    pthread_join(other, NULL);
    step(node, 4, 1.0);
    CHECK(progress_now().tokens == 4 * UNIT); /* They count. */
    dpnode_close(node);
}

static void a_script_that_goes_ends_the_wait_for_its_copy(void **state)
{
    (void)state;
    dpnode *const node = connected();
    CHECK(ask_copy());
    dpnode_close(node);
    wait_present(2);
    CHECK(atomic_load(&n_copied) == 1);
    CHECK(!ask_copy());
}

static void steps_are_told_between_copies(void **state)
{
    (void)state;
    uint64_t indices[6];
    dpnode *const node = connected();
    CHECK(dpnode_draw(node, indices, 6) == 6);
    step(node, 3, 4.0);
    step(node, 3, 2.0);
    wait_stepped(2);
    CHECK(told_now().done.steps == 2 && told_now().done.tokens == 6 * UNIT);
    CHECK(fabs(told_now().done.loss - 3) < 1e-12 && told_now().done.round == 1);
    step(node, 0, 3.0);
    wait_stepped(3); /* 100 ms later, all of it at work */
    CHECK(told_now().computed_us > 0 && told_now().computed_us <= told_now().trained_us);
    dpnode_close(node);
}

static void a_paused_node_says_so_or_makes_the_look_wait(void **state)
{
    (void)state;
    dpnode *const node = connected();
    train(0, 0);
    assert_int_equal(dpnode_look(node), DPNODE_PAUSED);
    move_weights(2); /* Records come all the same. */
    assert_int_equal(dpnode_look(node), DPNODE_PAUSED);
    CHECK(a[1] == 2.25F);
    CHECK(!ask_copy());
    train(2, 700);
    assert_int_equal(dpnode_look(node), DPNODE_OK);
    CHECK(dpnode_round(node) == 2 && dpnode_tokens(node) == 700);
    dpnode_close(node);
}

static void *resume_soon(void *context)
{
    (void)context;
    usleep(20000);
    move_weights(1); /* Said while it waits. */
    train(3, 900);
    return NULL;
}

static void a_step_waits_while_the_node_is_paused(void **state)
{
    (void)state;
    pthread_t other;
    dpnode *const node = connected();
    train(0, 0);
    assert_int_equal(pthread_create(&other, NULL, resume_soon, NULL), 0);
    step(node, 0, 1.0);
    pthread_join(other, NULL);
    CHECK(dpnode_round(node) == 3 && a[1] == 1.25F);
    dpnode_close(node);
}

static void the_door_closes_under_a_script(void **state)
{
    (void)state;
    dpnode *const node = connected();
    dp_script_close(door);
    door = NULL;
    move_weights(1);
    CHECK(access(path, F_OK) != 0);
    a[0] = 1;
    uint64_t index;
    CHECK(dpnode_draw(node, &index, 1) == 0);
    CHECK(strstr(dpnode_problem(node), "connect again") != NULL);
    assert_int_equal(dpnode_step(node, 0, 1.0), DPNODE_GONE); /* and does not go on for nobody */
    dpnode_close(node);
}

static void the_door_replaces_what_a_dead_one_left(void **state)
{
    (void)state;
    dp_script_close(door);
    const int left = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strlen(path) + 1);
    assert_int_equal(bind(left, (struct sockaddr *)&address, sizeof address), 0);
    close(left);
    open_door(0, UINT64_MAX);
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 07777, 0600);
    train(1, 0);
    dpnode_close(connected());
}

static void an_empty_variable_is_no_directory_and_no_run_is_returned(void **state)
{
    (void)state;
    static char elsewhere[] = "elsewhere";
    dpnode *node = (dpnode *)(void *)elsewhere;
    const char *const before = getenv("DPNODE_DIR");
    setenv("DPNODE_DIR", "", 1);
    assert_int_equal(dpnode_open(&node, NULL, tensors, 0), DPNODE_BAD_MODEL);
    CHECK(node == NULL);
    CHECK(dpnode_open(&node, NULL, tensors, 3) != DPNODE_OK); /* a node of this machine refuses */
    CHECK(strstr(dpnode_problem(NULL), " /script.sock") == NULL);
    if (before != NULL) {
        setenv("DPNODE_DIR", before, 1);
    } else {
        unsetenv("DPNODE_DIR");
    }
}

static void a_file_in_the_way_is_named(void **state)
{
    (void)state;
    dp_why why = {{0}};
    dp_script *other;
    char long_path[300];
    char file[TEMPDIR_FILE_MAX];
    memset(long_path, 'x', sizeof long_path);
    long_path[sizeof long_path - 1] = '\0';
    dp_script_setup setup = {.path = long_path, .trainer = trainer};
    CHECK_STATUS(dp_script_open(&other, &setup, &why), DP_TOOBIG);
    CHECK(strstr(why.text, "--dir") != NULL);
    tempdir_file(&dir, "file", file);
    const int fd = open(file, O_CREAT | O_WRONLY, 0600);
    close(fd);
    setup.path = file;
    CHECK_STATUS(dp_script_open(&other, &setup, &why), DP_IO);
    CHECK(strstr(why.text, file) != NULL && access(file, F_OK) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_OF(a_script_begins_with_the_weights_of_the_run),
        TEST_OF(the_first_steps_are_copied_and_later_ones_when_they_are_asked_for),
        TEST_OF(a_copy_is_made_now_and_then_without_being_asked_for),
        TEST_OF(the_wait_for_a_copy_is_as_long_as_steps_take),
        TEST_OF(what_rounds_move_is_added_to_the_scripts_own_steps),
        TEST_OF(another_state_replaces_the_weights_and_its_work_counts_for_nothing),
        TEST_OF(the_next_script_gets_what_the_last_one_had_copied),
        TEST_OF(a_script_that_ends_by_itself_hands_in_its_steps),
        TEST_OF(samples_of_a_million_without_a_copy_are_followed_by_others),
        TEST_OF(a_draw_after_a_load_waits_for_the_lease),
        TEST_OF(a_script_that_goes_ends_the_wait_for_its_copy),
        TEST_OF(steps_are_told_between_copies),
        TEST_OF(a_paused_node_says_so_or_makes_the_look_wait),
        TEST_OF(a_step_waits_while_the_node_is_paused),
        TEST_OF(the_door_closes_under_a_script),
        TEST_OF(the_door_replaces_what_a_dead_one_left),
        TEST_OF(an_empty_variable_is_no_directory_and_no_run_is_returned),
        TEST_OF(a_file_in_the_way_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
