/* THREADS_TEST: the store thread and the loop hand jobs to each other. */
#include <pthread.h>
#include <stdlib.h>

#include "daemon/host/store_thread.h"
#include "tests/unit/daemon/turn.h"
#include "tests/unit/store/faultvfs.h"

enum { JOBS = 200 };

struct desk {
    uv_loop_t loop;
    shelf shelf;
    dp_store_thread *store_thread;
    unsigned n_done;
    unsigned ran[2 * JOBS]; /* in the order of running; read after done */
    unsigned n_ran;
    pthread_mutex_t gate;
};

typedef struct task {
    dp_store_thread_job job;
    struct desk *desk;
    unsigned number;
    unsigned again; /* how often done posts it anew */
    unsigned pieces;
    pthread_t thread;
} task;

static void run_task(dp_store_thread_job *job, dp_store *store)
{
    task *self = (task *)job;
    struct desk *desk = self->desk;
    CHECK(store == desk->shelf.store);
    self->thread = pthread_self();
    desk->ran[desk->n_ran++ % (2 * JOBS)] = self->number;
}

static void done_task(dp_store_thread_job *job)
{
    task *self = (task *)job;
    CHECK(!pthread_equal(self->thread, pthread_self()));
    self->desk->n_done++;
    if (self->again > 0) {
        self->again--;
        CHECK_OK(dp_store_thread_post(self->desk->store_thread, job, DP_STORE_THREAD_BULK));
    }
}

/* Waits at the gate, so that a test can queue behind it. */
static void run_gate(dp_store_thread_job *job, dp_store *store)
{
    task *self = (task *)job;
    pthread_mutex_lock(&self->desk->gate);
    pthread_mutex_unlock(&self->desk->gate);
    run_task(job, store);
}

static void desk_open(struct desk *desk)
{
    memset(desk, 0, sizeof *desk);
    pthread_mutex_init(&desk->gate, NULL);
    turn_open(&desk->loop);
    shelf_open(&desk->shelf);
    CHECK_OK(dp_store_thread_open(&desk->store_thread, &desk->loop, desk->shelf.store));
}

static void desk_close(struct desk *desk)
{
    dp_store_thread_close(desk->store_thread);
    turn_close(&desk->loop);
    shelf_close(&desk->shelf);
    pthread_mutex_destroy(&desk->gate);
}

static void post(struct desk *desk, task *item, unsigned number, dp_store_thread_class class)
{
    *item = (task){.job = {.run = run_task, .done = done_task}, .desk = desk, .number = number};
    CHECK_OK(dp_store_thread_post(desk->store_thread, &item->job, class));
}

struct count {
    struct desk *desk;
    unsigned done;
};

static bool all_done(void *context)
{
    const struct count *count = context;
    return count->desk->n_done >= count->done;
}

static void wait_done(struct desk *desk, unsigned done)
{
    struct count count = {desk, done};
    turn_until(&desk->loop, all_done, &count);
}

static void jobs_of_one_class_run_in_order(void **state)
{
    struct desk desk;
    static task tasks[JOBS];
    (void)state;
    desk_open(&desk);
    for (unsigned i = 0; i < JOBS; i++) {
        post(&desk, &tasks[i], i, DP_STORE_THREAD_BULK);
    }
    wait_done(&desk, JOBS);
    for (unsigned i = 0; i < JOBS; i++) {
        assert_int_equal(desk.ran[i], i);
    }
    assert_int_equal(dp_store_thread_waiting(desk.store_thread), 0);
    desk_close(&desk);
}

static void urgent_jobs_overtake_bulk_jobs(void **state)
{
    struct desk desk;
    task gate;
    task tasks[4];
    (void)state;
    desk_open(&desk);
    pthread_mutex_lock(&desk.gate);
    gate = (task){.job = {.run = run_gate, .done = done_task}, .desk = &desk, .number = 9};
    CHECK_OK(dp_store_thread_post(desk.store_thread, &gate.job, DP_STORE_THREAD_URGENT));
    post(&desk, &tasks[0], 0, DP_STORE_THREAD_BULK);
    post(&desk, &tasks[1], 1, DP_STORE_THREAD_BULK);
    post(&desk, &tasks[2], 2, DP_STORE_THREAD_URGENT);
    post(&desk, &tasks[3], 3, DP_STORE_THREAD_URGENT);
    assert_int_equal(dp_store_thread_waiting(desk.store_thread), 5);
    pthread_mutex_unlock(&desk.gate);
    wait_done(&desk, 5);
    static const unsigned wanted[] = {9, 2, 3, 0, 1};
    assert_memory_equal(desk.ran, wanted, sizeof wanted);
    desk_close(&desk);
}

enum { PIECES = 3 };

/* A long job: votes that wait get their turn between its pieces. */
static void run_piece(dp_store_thread_job *job, dp_store *store)
{
    task *self = (task *)job;
    run_task(job, store);
    job->again = ++self->pieces < PIECES;
}

static void a_long_job_lets_others_in_between_its_pieces(void **state)
{
    struct desk desk;
    task gate;
    task tasks[3];
    (void)state;
    desk_open(&desk);
    pthread_mutex_lock(&desk.gate);
    gate = (task){.job = {.run = run_gate, .done = done_task}, .desk = &desk, .number = 9};
    CHECK_OK(dp_store_thread_post(desk.store_thread, &gate.job, DP_STORE_THREAD_URGENT));
    tasks[0] = (task){.job = {.run = run_piece, .done = done_task}, .desk = &desk, .number = 0};
    CHECK_OK(dp_store_thread_post(desk.store_thread, &tasks[0].job, DP_STORE_THREAD_URGENT));
    post(&desk, &tasks[1], 1, DP_STORE_THREAD_URGENT);
    post(&desk, &tasks[2], 2, DP_STORE_THREAD_BULK);
    pthread_mutex_unlock(&desk.gate);
    wait_done(&desk, 4);
    static const unsigned wanted[] = {9, 0, 1, 0, 0, 2};
    assert_memory_equal(desk.ran, wanted, sizeof wanted);
    assert_int_equal(dp_store_thread_waiting(desk.store_thread), 0);
    desk_close(&desk);
}

static void closing_finishes_what_waits_and_what_that_posts(void **state)
{
    struct desk desk;
    static task tasks[JOBS];
    (void)state;
    desk_open(&desk);
    for (unsigned i = 0; i < JOBS; i++) {
        post(&desk, &tasks[i], i, i % 2 == 0 ? DP_STORE_THREAD_BULK : DP_STORE_THREAD_URGENT);
    }
    tasks[7].again = 3;
    dp_store_thread_close(desk.store_thread);
    desk.store_thread = NULL;
    assert_int_equal(desk.n_done, JOBS + 3);
    desk_close(&desk);
}

static void a_full_queue_says_again(void **state)
{
    struct desk desk;
    task gate;
    task *tasks = calloc(DP_STORE_THREAD_JOBS_MAX, sizeof *tasks);
    (void)state;
    assert_non_null(tasks);
    desk_open(&desk);
    pthread_mutex_lock(&desk.gate);
    gate = (task){.job = {.run = run_gate, .done = done_task}, .desk = &desk};
    CHECK_OK(dp_store_thread_post(desk.store_thread, &gate.job, DP_STORE_THREAD_URGENT));
    for (unsigned i = 1; i < DP_STORE_THREAD_JOBS_MAX; i++) {
        post(&desk, &tasks[i], i, DP_STORE_THREAD_BULK);
    }
    CHECK_STATUS(dp_store_thread_post(desk.store_thread, &tasks[0].job, DP_STORE_THREAD_URGENT),
                 DP_AGAIN);
    CHECK_STATUS(dp_store_thread_post(NULL, &tasks[0].job, DP_STORE_THREAD_URGENT), DP_AGAIN);
    pthread_mutex_unlock(&desk.gate);
    wait_done(&desk, DP_STORE_THREAD_JOBS_MAX);
    free(tasks);
    desk_close(&desk);
}

static void one_job_posted_for_ever_does_not_keep_the_loop(void **state)
{
    struct desk desk;
    task item;
    (void)state;
    desk_open(&desk);
    post(&desk, &item, 1, DP_STORE_THREAD_BULK);
    item.again = JOBS;
    wait_done(&desk, JOBS + 1);
    desk_close(&desk);
}

struct failure {
    struct desk *desk;
    unsigned n_told;
    unsigned n_done; /* when it was told */
};

static void on_failed(void *context)
{
    struct failure *failure = context;
    failure->n_told++;
    failure->n_done = failure->desk->n_done;
}

static bool is_told(void *context)
{
    return ((const struct failure *)context)->n_told > 0;
}

static void run_write(dp_store_thread_job *job, dp_store *store)
{
    const task *self = (const task *)job;
    const dp_pin pin = pin_of(DP_PIN_BLOB, 1);
    uint8_t bytes[1000] = {(uint8_t)self->number};
    run_task(job, store);
    CHECK_STATUS(dp_object_put(store, dp_view_of(bytes, sizeof bytes), &pin, NULL),
                 self->number == 0 ? DP_OK : DP_IO);
}

/* No row of the protocol fails with it: without a word the daemon would be useless for ever. */
static void a_failed_write_of_chunks_is_told_once(void **state)
{
    struct desk desk;
    struct failure failure = {.desk = &desk};
    task tasks[3];
    (void)state;
    desk_open(&desk);
    dp_store_thread_close(desk.store_thread);
    desk.shelf.options.vfs = "fault";
    shelf_reopen(&desk.shelf);
    CHECK_OK(dp_store_thread_open(&desk.store_thread, &desk.loop, desk.shelf.store));
    dp_store_thread_watch(desk.store_thread, on_failed, &failure);
    for (unsigned i = 0; i < 3; i++) {
        fault_set(i == 1 ? FAULT_FSYNC : FAULT_NONE, 1, "chunks.db");
        tasks[i] = (task){.job = {.run = run_write, .done = done_task}, .desk = &desk, .number = i};
        CHECK_OK(dp_store_thread_post(desk.store_thread, &tasks[i].job, DP_STORE_THREAD_BULK));
        wait_done(&desk, i + 1);
        assert_true(i != 0 || failure.n_told == 0);
    }
    turn_until(&desk.loop, is_told, &failure);
    assert_true(failure.n_told == 1 && failure.n_done >= 2); /* Its job was done before. */
    desk_close(&desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_of_one_class_run_in_order),
        cmocka_unit_test(urgent_jobs_overtake_bulk_jobs),
        cmocka_unit_test(a_long_job_lets_others_in_between_its_pieces),
        cmocka_unit_test(closing_finishes_what_waits_and_what_that_posts),
        cmocka_unit_test(a_full_queue_says_again),
        cmocka_unit_test(one_job_posted_for_ever_does_not_keep_the_loop),
        cmocka_unit_test(a_failed_write_of_chunks_is_told_once),
    };
    fault_install();
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
