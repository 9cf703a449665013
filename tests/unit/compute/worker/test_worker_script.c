/* THREADS_TEST. The worker of a built-in model, as a daemon sees it: a script with Hugging Face's
 * tensors takes the steps, and the engine takes them again when it is gone. */
#include "tests/unit/compute/worker_kit.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/un.h>

#include "compute/backend/backend_cpu.h"
#include "compute/format/hf_layout.h"
#include "compute/model/tensor_table.h"
#include "compute/worker/run_files.h"
#include "compute/worker/script_link.h"
#include "compute/worker/script_msg.h"
#include "tests/lib/tempdir.h"

#define DPNODE_IMPLEMENTATION
#include "contrib/script/dpnode.h"

enum { TENSORS_MAX = 40 };

static tempdir dir;
static char path[TEMPDIR_FILE_MAX];
static dp_model model;
static dp_hf_layout *layout;
static float *values; /* of the script: the vector of the layout */
static char names[TENSORS_MAX][DP_TENSOR_NAME_MAX];
static dpnode_tensor tensors[TENSORS_MAX];
static size_t n_tensors;

static void fill_tensors(void)
{
    dp_tensor_table table;
    dp_tensor_row row;
    dp_tensor_walk walk = {0};
    n_tensors = 0;
    CHECK_OK(dp_tensor_table_open(&table, dp_hf_layout_table(layout), NULL));
    while (dp_tensor_table_next(&table, &walk, &row)) {
        CHECK(n_tensors < TENSORS_MAX);
        snprintf(names[n_tensors], sizeof names[0], "%.*s", (int)row.name.size,
                 (const char *)row.name.data);
        dpnode_tensor *const t = &tensors[n_tensors];
        *t = (dpnode_tensor){
            .name = names[n_tensors], .values = values + row.offset, .n_dims = row.n_dims};
        memcpy(t->shape, row.shape, sizeof row.shape);
        n_tensors++;
    }
}

static dp_manifest manifest_of_files(void)
{
    dp_manifest m;
    CHECK_OK(dp_manifest_decode(&m, dp_view_of(files.manifest, files.manifest_size)));
    return m;
}

static int set_up(void **state)
{
    make_files(state);
    tempdir_open(&dir);
    tempdir_file(&dir, "script.sock", path);
    dp_manifest m = manifest_of_files();
    m.codec = DP_CODEC_FP32; /* Blobs hold all of a. */
    m.arch = DP_ARCH_LLAMA;
    CHECK_OK(dp_manifest_encode(&m, files.manifest, &files.manifest_size));
    const dp_model_config config = dp_manifest_model(&m);
    CHECK_OK(dp_model_open(&model, &config, NULL));
    CHECK_OK(dp_hf_layout_open(&layout, &model, NULL));
    values = test_calloc(model.n_parameters, sizeof *values);
    fill_tensors();
    return 0;
}

static int tear_down(void **state)
{
    test_free(values);
    dp_hf_layout_close(layout);
    dp_model_close(&model);
    tempdir_close(&dir);
    return drop_files(state);
}

static peer ready_with_door(void)
{
    const peer p = start_with(&(dp_worker_options){.threads = 1, .script_path = path});
    open_run(&p, 3);
    init(&p);
    return p;
}

static void train(const peer *p, uint64_t round)
{
    const dp_trainer_msg msg = {.kind = DP_TRAINER_TRAIN, .round = round};
    send_views(p, &msg, NULL, 0);
}

static dpnode *connected(const peer *p)
{
    dpnode *script = NULL;
    if (dpnode_open(&script, path, tensors, n_tensors) != DPNODE_OK) {
        fail_msg("%s", dpnode_problem(NULL));
    }
    assert_int_equal(expect(p, DP_TRAINER_SCRIPT).msg.pid, getpid());
    return script;
}

static void leave(const peer *p, dpnode *script)
{
    dpnode_close(script);
    assert_int_equal(expect(p, DP_TRAINER_SCRIPT).msg.pid, 0);
}

static void step(dpnode *script, uint32_t samples)
{
    uint64_t indices[64];
    CHECK(dpnode_draw(script, indices, samples) == samples);
    for (uint32_t i = 0; i < samples; i++) {
        CHECK(indices[i] < dpnode_samples(script));
    }
    assert_int_equal(dpnode_step(script, samples, 2.0), DPNODE_OK);
}

/* Publishes while the script goes on, without more steps. */
static answer published(const peer *p, dpnode *script, uint64_t round)
{
    const dp_trainer_msg msg = {.kind = DP_TRAINER_PUBLISH, .round = round};
    answer told = {0};
    send_views(p, &msg, NULL, 0);
    while (told.msg.kind != DP_TRAINER_PUBLISHED) {
        assert_int_equal(dpnode_look(script), DPNODE_OK);
        if (recv(p->socket, &(uint8_t){0}, 1, MSG_PEEK | MSG_DONTWAIT) > 0) {
            CHECK_OK(dp_trainer_receive(p->socket, &told.msg, told.fds, &told.n_fds));
        }
    }
    return told;
}

static void a_script_begins_with_the_runs_weights_under_hugging_faces_names(void **state)
{
    (void)state;
    const peer p = ready_with_door();
    dpnode *const script = connected(&p);
    const dp_manifest m = manifest_of_files();
    float *const arena = test_malloc(model.n_elements * sizeof *arena);
    float *const named = test_malloc(model.n_parameters * sizeof *named);
    dp_model_init(&model, m.model_seed, arena);
    dp_hf_layout_name(layout, arena, named);
    assert_memory_equal(values, named, model.n_parameters * sizeof *named);
    CHECK(dpnode_unit(script) == TINY_CONTEXT && dpnode_samples(script) > 100);
    train(&p, 1); /* The header then has the rate of the manifest's schedule. */
    double rate = 0;
    while (rate == 0) {
        rate = atomic_load(&((dp_script_header *)(void *)script->memory)->rate);
    }
    CHECK(rate > 0 && rate <= (double)m.lr_nano * 1e-9);
    test_free(named);
    test_free(arena);
    leave(&p, script);
    stop(&p);
}

/* a = what the script has taken from its weights, at its places; the padding is 0. */
static void an_update_has_what_the_script_has_changed_and_nothing_else(void **state)
{
    (void)state;
    const peer p = ready_with_door();
    dpnode *const script = connected(&p);
    train(&p, 1);
    for (size_t i = 0; i < model.n_parameters; i++) {
        values[i] -= (float)(i % 5) * 0.125F;
    }
    step(script, 6);
    const answer told = published(&p, script, 1);
    CHECK(told.msg.steps == 1 && told.msg.tokens == 6 * TINY_CONTEXT && told.msg.loss == 2.0);
    CHECK(told.msg.reach.own == 6 && told.msg.reach.leased == 0);
    float *const wanted = test_malloc(model.n_elements * sizeof *wanted);
    float *const changed = test_malloc(model.n_parameters * sizeof *changed);
    for (size_t i = 0; i < model.n_parameters; i++) {
        changed[i] = (float)(i % 5) * 0.125F;
    }
    dp_hf_layout_place(layout, changed, wanted);
    const dp_view a = map(told.fds[1]);
    CHECK(a.size == model.n_elements * sizeof *wanted);
    for (size_t i = 0; i < model.n_elements; i++) {
        float found;
        memcpy(&found, a.data + i * sizeof found, sizeof found);
        CHECK(found > wanted[i] - 1e-6F && found < wanted[i] + 1e-6F);
        CHECK(wanted[i] != 0 || (found < 1e-6F && found > -1e-6F));
    }
    dp_memfd_unmap(a);
    test_free(changed);
    test_free(wanted);

    /* The run takes half of it, and the script hears what to give back, at the same places. */
    memset(values, 0, model.n_parameters * sizeof *values);
    dp_trainer_msg record = record_of(1, DP_SETTLE_INCLUDED, 1);
    record.alpha = ONE / 2;
    apply(&p, &record, told.fds);
    assert_int_equal(dpnode_look(script), DPNODE_OK);
    for (size_t i = 0; i < model.n_parameters; i++) {
        const float back = (float)(i % 5) * 0.0625F;
        CHECK(values[i] > back - 1e-6F && values[i] < back + 1e-6F);
    }
    release(&told);
    leave(&p, script);
    stop(&p);
}

static void the_engine_stops_for_a_script_and_goes_on_after_it(void **state)
{
    (void)state;
    const peer p = ready_with_door();
    train(&p, 1);
    uint32_t steps = 0;
    while (steps < 2) {
        steps = expect(&p, DP_TRAINER_STEP).msg.steps;
    }
    dpnode *script = connected(&p);
    step(script, 5);
    answer told = published(&p, script, 1); /* of both: the engine's steps, and 5 samples */
    const uint32_t by_engine = told.msg.steps - 1;
    CHECK(by_engine >= 2);
    CHECK(told.msg.tokens == (4 * (uint64_t)by_engine + 5) * TINY_CONTEXT);
    CHECK(told.msg.reach.own >= 4 * (uint64_t)by_engine + 5);
    const uint64_t reach = told.msg.reach.own;
    release(&told);
    const dp_trainer_msg record = record_of(1, DP_SETTLE_LEFT_OUT, 0);
    apply(&p, &record, NULL);
    train(&p, 2);
    /* Nobody takes steps while the script does not. */
    usleep(300 * 1000);
    told = (answer){0};
    CHECK(recv(p.socket, &told.msg, 1, MSG_PEEK | MSG_DONTWAIT) <= 0);
    leave(&p, script);
    const answer by_itself = expect(&p, DP_TRAINER_STEP);
    CHECK(by_itself.msg.steps >= 1 && by_itself.msg.computed_us <= by_itself.msg.trained_us);
    script = connected(&p);
    step(script, 3);
    told = published(&p, script, 2);
    CHECK(told.msg.reach.own >= reach + 4 + 3);
    release(&told);
    leave(&p, script);
    stop(&p);
}

/* Of a script that draws and dies the engine draws the samples again: the claim is without holes
 * and counts nothing twice. */
static void samples_of_a_script_that_died_are_the_engines_again(void **state)
{
    (void)state;
    const peer p = ready_with_door();
    const dp_trainer_msg msg = {.kind = DP_TRAINER_TRAIN,
                                .round = 1,
                                .n_ranges = 1,
                                .ranges = {{.first = 7, .count = 1U << 20}}};
    dpnode *const script = connected(&p);
    send_views(&p, &msg, NULL, 0);
    uint64_t indices[50];
    CHECK(dpnode_draw(script, indices, 50) == 50);
    script->end = DPNODE_GONE; /* as a process that is killed */
    leave(&p, script);
    while (expect(&p, DP_TRAINER_STEP).msg.steps < 2) {
    }
    const dp_trainer_msg ask = {.kind = DP_TRAINER_PUBLISH, .round = 1};
    send_views(&p, &ask, NULL, 0);
    const answer told = expect(&p, DP_TRAINER_PUBLISHED);
    CHECK(told.msg.tokens == 4ULL * told.msg.steps * TINY_CONTEXT);
    /* A step that the engine skipped for its loss has passed its samples and is not in steps; the
     * 50 of the script would be no whole number of steps. */
    const uint64_t passed = told.msg.reach.leased - 4ULL * told.msg.steps;
    CHECK(passed % 4 == 0 && passed < 48 && told.msg.reach.own == 0);
    release(&told);
    stop(&p);
}

/* Looks until the connection ends. */
static void look_until_refused(dpnode *script)
{
    dpnode_status status = DPNODE_OK;
    while (status == DPNODE_OK) {
        status = dpnode_look(script);
    }
    assert_int_equal(status, DPNODE_REFUSED);
}

/* Weights that are no numbers, samples that nobody drew: the engine goes on with what was good. */
static void a_script_that_lies_leaves_nothing_behind(void **state)
{
    (void)state;
    const peer p = ready_with_door();
    train(&p, 1);
    for (int lie = 0; lie < 2; lie++) {
        dpnode *const script = connected(&p);
        if (lie == 0) {
            values[5] = NAN;
        }
        DP_IGNORE(dpnode_step(script, lie == 0 ? 0 : 1U << 20, 1.0) != DPNODE_OK);
        const dp_trainer_msg ask = {.kind = DP_TRAINER_FREEZE}; /* asks for a copy */
        send_views(&p, &ask, NULL, 0);
        look_until_refused(script);
        dpnode_close(script);
        bool gone = false;
        bool frozen = false;
        while (!gone || !frozen) { /* in either order */
            answer a;
            CHECK_OK(dp_trainer_receive(p.socket, &a.msg, a.fds, &a.n_fds));
            gone = gone || a.msg.kind == DP_TRAINER_SCRIPT;
            frozen = frozen || a.msg.kind == DP_TRAINER_FROZEN;
            release(&a);
        }
        const answer by_engine = expect(&p, DP_TRAINER_STEP);
        CHECK(by_engine.msg.steps >= 1 && by_engine.msg.skipped == 0);
        CHECK(by_engine.msg.loss > 1 && by_engine.msg.loss < 10);
    }
    stop(&p);
}

static void a_run_that_exchanges_gradients_has_no_door(void **state)
{
    (void)state;
    dpnode *script = NULL;
    exchange_gradients(4);
    const peer p = ready_with_door();
    assert_int_equal(dpnode_open(&script, path, tensors, n_tensors), DPNODE_NO_NODE);
    stop(&p);
}

static int dial(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    memcpy(address.sun_path, path, strlen(path) + 1);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* The file's bytes, of a mapping that the caller unmaps; none if there is no such file. */
static dp_view file_of(int fd, uint32_t number)
{
    uint8_t room[16];
    uint8_t reply[64];
    size_t size = 0;
    dp_view packet;
    dp_script_files came;
    dp_writer w = dp_writer_of(room, sizeof room);
    dp_write_u32(&w, DP_SCRIPT_READ);
    dp_write_u32(&w, number);
    CHECK_OK(dp_writer_finish(&w, &packet));
    CHECK_OK(dp_script_send(fd, packet, -1));
    CHECK_OK(dp_script_receive(fd, reply, sizeof reply, &size, &came));
    dp_reader r = dp_reader_of(dp_view_of(reply, size));
    CHECK(dp_read_u32(&r) == DP_SCRIPT_GIVEN && dp_read_u32(&r) == number);
    const uint64_t bytes = dp_read_u64(&r);
    CHECK_OK(dp_reader_finish(&r));
    CHECK(came.n == (bytes > 0 ? 1 : 0));
    if (bytes == 0) {
        return dp_view_of(NULL, 0);
    }
    const dp_view at = map(came.fds[0]); /* which checks that nobody can write it */
    CHECK(at.size == bytes);
    close(came.fds[0]);
    return at;
}

static bool says(dp_view text, const char *words)
{
    return memmem(text.data, text.size, words, strlen(words)) != NULL;
}

static void a_script_reads_about_the_run_before_it_greets(void **state)
{
    (void)state;
    const peer p = ready_with_door();
    const int fd = dial();
    const dp_view about = file_of(fd, DP_RUN_FILE_ABOUT);
    CHECK(says(about, "\"context\": 32") && says(about, "\"offset\": 32") &&
          says(about, "\"lr\":"));
    const dp_view config = file_of(fd, DP_RUN_FILE_CONFIG);
    CHECK(says(config, "LlamaForCausalLM"));
    const dp_view words = file_of(fd, DP_RUN_FILE_TOKENIZER);
    CHECK(dp_view_equal(words, dp_buf_view(&files.tokenizer)));
    const dp_view shard = file_of(fd, DP_RUN_FILE_SHARDS);
    CHECK(dp_view_equal(shard, dp_buf_view(&files.data)));
    CHECK(file_of(fd, DP_RUN_FILE_SHARDS + 1).size == 0 && file_of(fd, UINT32_MAX).size == 0);
    dp_memfd_unmap(about);
    dp_memfd_unmap(config);
    dp_memfd_unmap(words);
    dp_memfd_unmap(shard);
    close(fd);
    stop(&p);
}

static dp_status warm_device(uint32_t index, dp_device *out, dp_why *why)
{
    DP_TRY(dp_backend_cpu()->device(index, out, why));
    out->celsius = 71;
    out->watts = 45;
    return DP_OK;
}

static void steps_of_a_script_tell_the_heat_and_power_of_the_device(void **state)
{
    (void)state;
    dp_backend backend = *dp_backend_cpu();
    backend.device = warm_device;
    const dp_worker_options options = {
        .threads = 1, .script_path = path, .backend = &backend, .look_us = 5 * 1000};
    const peer p = start_with(&options);
    open_run(&p, 3);
    init(&p);
    dpnode *const script = connected(&p);
    train(&p, 1);
    answer told = {0};
    while (told.msg.kind != DP_TRAINER_STEP || told.msg.celsius == 0) {
        step(script, 2);
        if (recv(p.socket, &(uint8_t){0}, 1, MSG_PEEK | MSG_DONTWAIT) > 0) {
            CHECK_OK(dp_trainer_receive(p.socket, &told.msg, told.fds, &told.n_fds));
        }
    }
    CHECK(told.msg.celsius == 71 && told.msg.watts == 45);
    leave(&p, script);
    stop(&p);
}

#define TEST_OF(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_OF(a_script_begins_with_the_runs_weights_under_hugging_faces_names),
        TEST_OF(an_update_has_what_the_script_has_changed_and_nothing_else),
        TEST_OF(the_engine_stops_for_a_script_and_goes_on_after_it),
        TEST_OF(samples_of_a_script_that_died_are_the_engines_again),
        TEST_OF(a_script_that_lies_leaves_nothing_behind),
        TEST_OF(steps_of_a_script_tell_the_heat_and_power_of_the_device),
        TEST_OF(a_run_that_exchanges_gradients_has_no_door),
        TEST_OF(a_script_reads_about_the_run_before_it_greets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
