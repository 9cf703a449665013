#include "tests/unit/compute/tiny_run.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compute/backend/backend_check.h"
#include "compute/backend/backend_cpu.h"
#include "compute/backend/plugin.h"
#include "compute/trainer/trainer.h"
#include "tests/lib/tempdir.h"

/* A self-test takes a second; on a busy machine, or with coverage, a minute. Only a hanging test
 * waits so long. */
enum { PATIENCE_MS = 100 * 1000 };

static char folder[PATH_MAX]; /* of the plugins, below that of this program */
static tiny_run run;

static const char *path_of(const char *name)
{
    static char path[PATH_MAX];
    CHECK(snprintf(path, sizeof path, "%.*s/libdpnode_%s.so", PATH_MAX - 64, folder, name) > 0);
    return path;
}

static int find_folder(void **state)
{
    (void)state;
    const ssize_t size = readlink("/proc/self/exe", folder, PATH_MAX / 2);
    folder[size > 0 ? size : 0] = '\0';
    char *const slash = strrchr(folder, '/');
    if (slash == NULL) {
        return 1;
    }
    memcpy(slash, "/plugins", sizeof "/plugins");
    return 0;
}

static const dp_backend *load(const char *name)
{
    const dp_backend *backend = NULL;
    dp_why why = {{0}};
    const dp_status status = dp_plugin_load(path_of(name), &backend, &why);
    if (status != DP_OK) {
        print_error("%s\n", why.text);
    }
    CHECK_OK(status);
    return backend;
}

static const dp_backend *load_faulty(const char *fault)
{
    CHECK(setenv("DP_FAULT", fault, 1) == 0);
    return load("faulty");
}

/* Fixed micro-batches, so that bits depend on the backend alone. */
static dp_trainer *open_alone(const dp_backend *backend, dp_precision_kind precision)
{
    dp_manifest m;
    CHECK_OK(dp_manifest_decode(&m, dp_view_of(run.manifest, run.manifest_size)));
    m.precision = precision;
    CHECK_OK(dp_manifest_encode(&m, run.manifest, &run.manifest_size));
    const dp_trainer_setup setup = {.manifest = dp_view_of(run.manifest, run.manifest_size),
                                    .tokenizer = dp_buf_view(&run.tokenizer),
                                    .shards = (dp_view[]){dp_buf_view(&run.data)},
                                    .n_shards = 1,
                                    .threads = 1,
                                    .backend = backend,
                                    .alone = true,
                                    .rows = 2};
    dp_trainer *trainer = NULL;
    CHECK_OK(dp_trainer_open(&trainer, &setup, NULL));
    CHECK_OK(dp_trainer_init(trainer));
    return trainer;
}

static bool has_bf16;

static dp_status look_at_processor(uint32_t index, dp_device *out, dp_why *why)
{
    const dp_status status = dp_backend_cpu()->device(index, out, why);
    out->bf16 = has_bf16;
    return status;
}

static void a_run_without_a_precision_trains_in_the_one_that_is_fast_on_its_device(void **state)
{
    (void)state;
    dp_backend within = *dp_backend_cpu();
    within.device = look_at_processor;
    static const dp_precision_kind kinds[] = {DP_PRECISION_FP32, DP_PRECISION_BF16};
    for (size_t i = 0; i < 2; i++) {
        has_bf16 = i == 1;
        tiny_run_open(&run, DP_CODEC_SPARSE, 950);
        dp_trainer *const named = open_alone(&within, kinds[i]);
        dp_trainer *const other = open_alone(&within, kinds[1 - i]);
        dp_trainer *const one = open_alone(&within, DP_PRECISION_AUTO);
        assert_int_equal(dp_trainer_manifest(one)->precision, kinds[i]);
        tiny_run_work(named, 2);
        tiny_run_work(other, 2);
        tiny_run_work(one, 2);
        const size_t size = dp_trainer_elements(one) * sizeof(float);
        assert_memory_equal(dp_trainer_params(one), dp_trainer_params(named), size);
        assert_memory_not_equal(dp_trainer_params(one), dp_trainer_params(other), size);
        dp_trainer_close(one);
        dp_trainer_close(other);
        dp_trainer_close(named);
        tiny_run_close(&run);
    }
}

static dp_trainer *open_member(const dp_backend *backend)
{
    const dp_trainer_setup setup = {.manifest = dp_view_of(run.manifest, run.manifest_size),
                                    .tokenizer = dp_buf_view(&run.tokenizer),
                                    .shards = (dp_view[]){dp_buf_view(&run.data)},
                                    .n_shards = 1,
                                    .threads = 1,
                                    .backend = backend};
    dp_trainer *trainer = NULL;
    CHECK_OK(dp_trainer_open(&trainer, &setup, NULL));
    CHECK_OK(dp_trainer_init(trainer));
    return trainer;
}

/* The plain table in this program, for comparison. */
static dp_status create_plain(dp_engine **out, const dp_engine_setup *setup, dp_why *why)
{
    return dp_backend_cpu_create(out, setup,
                                 dp_ops_at_in(dp_precision_of_kind(setup->precision), 1), why);
}

static void a_second_backend_passes_the_self_test_in_a_process_of_its_own(void **state)
{
    (void)state;
    CHECK_OK(dp_plugin_try(path_of("plain"), 0, PATIENCE_MS, NULL));
    dp_plugin_choice choice;
    dp_plugin_choose(&choice, "plain", folder, PATIENCE_MS);
    CHECK(strcmp(choice.backend->name, "plain") == 0);
    CHECK(strstr(choice.line.text, "computes (plain)") != NULL);
    CHECK_OK(dp_backend_check(dp_backend_cpu(), 0, NULL, NULL));
}

static void a_plugin_trains_to_the_bits_of_the_same_code_within(void **state)
{
    (void)state;
    dp_backend within = *dp_backend_cpu();
    within.create = create_plain;
    for (int precision = DP_PRECISION_FP32; precision <= DP_PRECISION_FP16; precision++) {
        tiny_run_open(&run, DP_CODEC_SPARSE, 950);
        dp_trainer *const a = open_alone(load("plain"), (dp_precision_kind)precision);
        dp_trainer *const b = open_alone(&within, (dp_precision_kind)precision);
        tiny_run_work(a, 6);
        tiny_run_work(b, 6);
        CHECK(memcmp(dp_trainer_params(a), dp_trainer_params(b),
                     dp_trainer_elements(a) * sizeof(float)) == 0);
        dp_trainer_close(b);
        dp_trainer_close(a);
        tiny_run_close(&run);
    }
}

/* Twenty steps from one start: sums in another order move a loss of 5 nats by units of fp32 that
 * training makes grow. */
static void a_plugin_trains_as_the_cpu_does(void **state)
{
    (void)state;
    tiny_run_open(&run, DP_CODEC_SPARSE, 950);
    dp_trainer *const plain = open_alone(load("plain"), DP_PRECISION_FP32);
    dp_trainer *const cpu = open_alone(NULL, DP_PRECISION_FP32);
    for (uint64_t step = 1; step <= 20; step++) {
        tiny_run_work(plain, step);
        tiny_run_work(cpu, step);
        const double loss = dp_trainer_last_of(cpu).loss;
        CHECK(fabs(dp_trainer_last_of(plain).loss - loss) <= 1e-4 * loss);
    }
    dp_trainer_close(cpu);
    dp_trainer_close(plain);
    tiny_run_close(&run);
}

/* A node on a plugin and one on the CPU apply one another's blobs. */
static void nodes_of_two_backends_hold_the_same_state_round_after_round(void **state)
{
    (void)state;
    tiny_run_open(&run, DP_CODEC_SPARSE, 950);
    dp_trainer *const nodes[2] = {open_member(load("plain")), open_member(NULL)};
    for (uint64_t round = 1; round <= 4; round++) {
        const uint32_t q[2] = {0x40000000U, 0x40000000U};
        dp_view blobs[2];
        dp_view a;
        dp_hash roots[2];
        dp_view bytes;
        for (int i = 0; i < 2; i++) {
            dp_trainer_aim(nodes[i], round, 0);
            while (dp_trainer_progress_of(nodes[i]).steps < 3) {
                CHECK_OK(dp_trainer_work(nodes[i]));
            }
            CHECK_OK(dp_trainer_publish(nodes[i], round == 3, &blobs[i], &a));
        }
        for (int i = 0; i < 2; i++) {
            const dp_trainer_record record = {.round = round,
                                              .alpha = 65536,
                                              .clip = 65536,
                                              .lambda = 65536,
                                              .settle = DP_SETTLE_INCLUDED,
                                              .q = q,
                                              .blobs = blobs,
                                              .n_items = 2};
            CHECK_OK(dp_trainer_apply(nodes[i], &record));
        }
        for (int i = 0; i < 2; i++) {
            CHECK_OK(dp_trainer_state_bytes(nodes[i], &bytes, &roots[i]));
        }
        CHECK(dp_hash_equal(&roots[0], &roots[1]));
    }
    dp_trainer_close(nodes[1]);
    dp_trainer_close(nodes[0]);
    tiny_run_close(&run);
}

static void every_broken_plugin_gives_one_sentence_and_the_cpu(void **state)
{
    (void)state;
    static const struct {
        const char *fault;
        dp_status status;
        const char *says;
    } cases[] = {
        {"magic", DP_BADMSG, "its table starts wrong"},
        {"version", DP_VERSION, " of the table and this dpnode "},
        {"layout", DP_VERSION, "built with other structures"},
        {"refuse", DP_VERSION, "has no table of version "},
        {"hole", DP_BADMSG, "leaves calls of the table empty"},
        {"device", DP_UNSUPPORTED, "finds no device: there is no card in this machine"},
        {"create", DP_TOOBIG, "fails its self-test: the card is too small"},
        {"crash", DP_UNSUPPORTED, "crashes in its self-test (SIGABRT)"},
        {"exit", DP_UNSUPPORTED, "ends the process in its self-test"},
        {"nan", DP_UNSUPPORTED, "its loss in fp32 is nan where the CPU has"},
        {"wrong", DP_UNSUPPORTED, "its loss in fp32 is"},
        {"documents", DP_UNSUPPORTED, "its loss of documents in fp32 is"},
        {"bit", DP_UNSUPPORTED, "after a round element 5 of x is"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dp_why why = {{0}};
        CHECK(setenv("DP_FAULT", cases[i].fault, 1) == 0);
        const dp_status status = dp_plugin_try(path_of("faulty"), 0, PATIENCE_MS, &why);
        if (status != cases[i].status || strstr(why.text, cases[i].says) == NULL) {
            print_error("%s: %s: %s\n", cases[i].fault, dp_status_name(status), why.text);
        }
        CHECK(status == cases[i].status && strstr(why.text, cases[i].says) != NULL);
        CHECK(strstr(why.text, "libdpnode_faulty.so") != NULL);
    }
    dp_plugin_choice choice;
    dp_plugin_choose(&choice, "faulty", folder, PATIENCE_MS);
    CHECK(choice.backend == dp_backend_cpu() && choice.missed);
    CHECK(strstr(choice.line.text, "; the CPU computes instead") != NULL);
}

static void a_plugin_that_hangs_is_ended(void **state)
{
    (void)state;
    dp_why why = {{0}};
    CHECK(setenv("DP_FAULT", "hang", 1) == 0);
    CHECK_STATUS(dp_plugin_try(path_of("faulty"), 0, 300, &why), DP_TIMEOUT);
    CHECK(strstr(why.text, "has not ended its self-test: a part of it takes more than 300 ms") !=
          NULL);
}

static void libraries_that_are_no_plugins_are_named(void **state)
{
    (void)state;
    const dp_backend *backend = NULL;
    dp_why why = {{0}};
    CHECK_STATUS(dp_plugin_load(path_of("empty"), &backend, &why), DP_BADMSG);
    CHECK(strstr(why.text, "it has no dp_backend_query") != NULL);
    CHECK_STATUS(dp_plugin_load("/proc/self/status", &backend, &why), DP_BADMSG);
    CHECK(strstr(why.text, "does not load") != NULL);
    CHECK_STATUS(dp_plugin_load("/nowhere/x.so", &backend, &why), DP_NOTFOUND);
    CHECK(backend == NULL);
}

static void a_missing_plugin_is_reported_only_if_requested(void **state)
{
    (void)state;
    dp_plugin_choice choice;
    dp_plugin_choose(&choice, "auto", "/nowhere", PATIENCE_MS);
    CHECK(choice.backend == dp_backend_cpu() && choice.line.text[0] == '\0' && !choice.missed);
    dp_plugin_choose(&choice, "cpu", folder, PATIENCE_MS);
    CHECK(choice.backend == dp_backend_cpu() && choice.line.text[0] == '\0' && !choice.missed);
    dp_plugin_choose(&choice, "cuda", "/nowhere", PATIENCE_MS);
    CHECK(choice.backend == dp_backend_cpu());
    CHECK(strstr(choice.line.text, "the backend 'cuda' is not installed: ") != NULL);
    dp_plugin_choose(&choice, "/nowhere/x.so", folder, PATIENCE_MS);
    CHECK(strstr(choice.line.text, "/nowhere/x.so is not there; the CPU") != NULL);
}

static void a_plugin_is_found_where_it_is_installed_and_where_it_is_built(void **state)
{
    (void)state;
    static const char *const places[] = {"bin/libdpnode_plain.so", "bin/plugins/libdpnode_plain.so",
                                         "lib/dpnode/libdpnode_plain.so"};
    tempdir dir;
    char bin[TEMPDIR_FILE_MAX];
    tempdir_open(&dir);
    static const char *const folders[] = {"bin", "bin/plugins", "lib", "lib/dpnode"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        tempdir_file(&dir, folders[i], bin);
        assert_int_equal(mkdir(bin, 0700), 0);
    }
    tempdir_file(&dir, "bin", bin);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char place[TEMPDIR_FILE_MAX];
        dp_plugin_choice choice;
        tempdir_file(&dir, places[i], place);
        /* The first is used; of the others it shows enough that they were opened, since a self-test
         * takes its time. */
        const bool whole = i == 0;
        assert_int_equal(symlink(path_of(whole ? "plain" : "empty"), place), 0);
        dp_plugin_choose(&choice, "plain", bin, PATIENCE_MS);
        CHECK(whole ? strcmp(choice.backend->name, "plain") == 0
                    : strstr(choice.line.text, "it has no dp_backend_query") != NULL);
        assert_int_equal(unlink(place), 0);
    }
    tempdir_close(&dir);
}

/* Of a backend whose device is taken. */
static dp_status taken_device(uint32_t index, dp_device *out, dp_why *why)
{
    (void)index;
    (void)why;
    *out = (dp_device){.name = "Card", .taken = true};
    return DP_OK;
}

static void automatic_choice_leaves_a_card_to_the_trainer_that_has_it(void **state)
{
    (void)state;
    dp_backend taken = *dp_backend_cpu();
    taken.device = taken_device;
    dp_plugin_choice choice = {.backend = &taken, .path = "x"};
    dp_plugin_yield(&choice, "cuda"); /* asked for by name: it is told instead */
    CHECK(choice.backend == &taken);
    dp_plugin_yield(&choice, "auto");
    CHECK(choice.backend == dp_backend_cpu() && choice.path[0] == '\0' && !choice.missed);
    CHECK(strstr(choice.line.text, "another trainer of dpnode on this machine has Card; the CPU") !=
          NULL);
}

static void a_card_without_its_plugin_is_told(void **state)
{
    (void)state;
    dp_plugin_choice choice;
    tempdir dir;
    char path[TEMPDIR_FILE_MAX];
    tempdir_open(&dir);
    dp_plugin_choose(&choice, "auto", "/nowhere", PATIENCE_MS);
    dp_plugin_tell_card(&choice, "auto", dir.path);
    CHECK(choice.line.text[0] == '\0');
    tempdir_file(&dir, "dev", path);
    assert_int_equal(mkdir(path, 0700), 0);
    tempdir_file(&dir, "dev/nvidiactl", path);
    assert_int_equal(symlink("/dev/null", path), 0);
    dp_plugin_tell_card(&choice, "cpu", dir.path);
    CHECK(choice.line.text[0] == '\0');
    dp_plugin_tell_card(&choice, "auto", dir.path);
    CHECK(strstr(choice.line.text, "this machine has a card (/dev/nvidiactl)") != NULL);
    CHECK(strstr(choice.line.text, "built where cmake finds nvcc; the CPU computes") != NULL);
    tempdir_close(&dir);
}

static void a_name_may_say_which_device(void **state)
{
    (void)state;
    static const struct {
        const char *wanted;
        const char *says;
    } cases[] = {
        {"plain:0", "computes (plain)"},
        {"plain:1", "finds no device 1, only 0 to 0; the CPU"},
        {"plain:1000000", "'plain:1000000' names no backend"},
        {"plain:", "'plain:' names no backend"},
        {"plain:1,0", "device 1: "},
        {"plain:1,plain:2", "finds no device 1, only 0 to 0; the CPU"},
        {"plain:0,plain:0", "names no backend"},
        {"plain:0,other:1", "names no backend"},
        {"plain:0,", "names no backend"},
        {"plain:1x", "names no backend; cuda:1 is its device 1, and cuda:0,1 two; the CPU"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dp_plugin_choice choice;
        dp_plugin_choose(&choice, cases[i].wanted, folder, PATIENCE_MS);
        CHECK(strstr(choice.line.text, cases[i].says) != NULL);
        CHECK(choice.missed == (i > 0) && choice.device == 0);
        CHECK(choice.n_devices == (i == 0 ? 1 : 0));
    }
    CHECK(dp_plugin_count("auto") == 1 && dp_plugin_count("cuda:3") == 1);
    CHECK(dp_plugin_count("cuda:0,cuda:1") == 2 && dp_plugin_count("cuda:7,2,5") == 3);
    CHECK(dp_plugin_count("cuda:0,0") == 1 && dp_plugin_count("/a:0,1/x.so") == 1);
}

static void a_device_that_vanishes_is_told_and_can_only_be_closed(void **state)
{
    (void)state;
    tiny_run_open(&run, DP_CODEC_SPARSE, 950);
    dp_trainer *const trainer = open_alone(load_faulty("late-gone"), DP_PRECISION_FP32);
    CHECK(strcmp(dp_trainer_problem(trainer), "") == 0);
    dp_status status = DP_OK;
    for (int i = 0; i < 10 && status == DP_OK; i++) {
        status = dp_trainer_work(trainer);
    }
    CHECK(status == DP_IO);
    CHECK(strcmp(dp_trainer_problem(trainer), "the card has fallen off the bus") == 0);
    dp_trainer_close(trainer);
    tiny_run_close(&run);
}

static void losses_that_are_no_numbers_cost_steps_and_are_counted(void **state)
{
    (void)state;
    tiny_run_open(&run, DP_CODEC_SPARSE, 950);
    dp_trainer *const trainer = open_alone(load_faulty("late-nan"), DP_PRECISION_FP32);
    tiny_run_work(trainer, 6);
    const dp_trainer_progress done = dp_trainer_progress_of(trainer);
    CHECK(done.steps == 2 && done.skipped == 4);
    const float *const x = dp_trainer_params(trainer);
    for (size_t i = 0; i < dp_trainer_elements(trainer); i++) {
        CHECK(isfinite(x[i]));
    }
    dp_trainer_close(trainer);
    tiny_run_close(&run);
}

static void a_blob_that_a_plugin_spoiled_is_not_published(void **state)
{
    (void)state;
    tiny_run_open(&run, DP_CODEC_SPARSE, 950);
    dp_trainer *const trainer = open_member(load_faulty("late-blob"));
    dp_view blob;
    dp_view a;
    while (dp_trainer_progress_of(trainer).steps < 6) {
        CHECK_OK(dp_trainer_work(trainer));
    }
    CHECK_STATUS(dp_trainer_publish(trainer, false, &blob, &a), DP_BADMSG);
    dp_trainer_close(trainer);
    tiny_run_close(&run);
}

static void a_backend_without_the_precision_of_the_run_is_refused(void **state)
{
    (void)state;
    tiny_run_open(&run, DP_CODEC_SPARSE, 950);
    dp_backend narrow = *dp_backend_cpu();
    narrow.name = "narrow";
    narrow.capabilities &= ~(uint32_t)DP_CAN_FP32;
    const dp_trainer_setup setup = {.manifest = dp_view_of(run.manifest, run.manifest_size),
                                    .tokenizer = dp_buf_view(&run.tokenizer),
                                    .shards = (dp_view[]){dp_buf_view(&run.data)},
                                    .n_shards = 1,
                                    .backend = &narrow};
    dp_trainer *trainer = NULL;
    dp_why why = {{0}};
    CHECK_STATUS(dp_trainer_open(&trainer, &setup, &why), DP_UNSUPPORTED);
    CHECK(strstr(why.text, "the backend 'narrow' has not") != NULL);
    tiny_run_close(&run);
}

static void a_backend_without_the_optimizer_of_the_run_is_refused(void **state)
{
    (void)state;
    static const struct {
        dp_optim_kind kind;
        dp_capability capability;
    } cases[] = {{DP_OPTIM_ADAMW, DP_CAN_ADAMW},
                 {DP_OPTIM_LAMB, DP_CAN_LAMB},
                 {DP_OPTIM_LARS, DP_CAN_LARS},
                 {DP_OPTIM_MUON, DP_CAN_MUON}};
    tiny_run_open(&run, DP_CODEC_SPARSE, 950);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dp_manifest m;
        CHECK_OK(dp_manifest_decode(&m, dp_view_of(run.manifest, run.manifest_size)));
        m.optimizer = cases[i].kind;
        CHECK_OK(dp_manifest_encode(&m, run.manifest, &run.manifest_size));
        dp_backend narrow = *dp_backend_cpu();
        narrow.name = "narrow";
        narrow.capabilities &= ~(uint32_t)cases[i].capability;
        const dp_trainer_setup setup = {.manifest = dp_view_of(run.manifest, run.manifest_size),
                                        .tokenizer = dp_buf_view(&run.tokenizer),
                                        .shards = (dp_view[]){dp_buf_view(&run.data)},
                                        .n_shards = 1,
                                        .backend = &narrow};
        dp_trainer *trainer = NULL;
        dp_why why = {{0}};
        CHECK_STATUS(dp_trainer_open(&trainer, &setup, &why), DP_UNSUPPORTED);
        CHECK(strstr(why.text, "the backend 'narrow' has not") != NULL);
    }
    tiny_run_close(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_backend_passes_the_self_test_in_a_process_of_its_own),
        cmocka_unit_test(a_plugin_trains_to_the_bits_of_the_same_code_within),
        cmocka_unit_test(a_plugin_trains_as_the_cpu_does),
        cmocka_unit_test(nodes_of_two_backends_hold_the_same_state_round_after_round),
        cmocka_unit_test(every_broken_plugin_gives_one_sentence_and_the_cpu),
        cmocka_unit_test(a_plugin_that_hangs_is_ended),
        cmocka_unit_test(libraries_that_are_no_plugins_are_named),
        cmocka_unit_test(a_missing_plugin_is_reported_only_if_requested),
        cmocka_unit_test(a_plugin_is_found_where_it_is_installed_and_where_it_is_built),
        cmocka_unit_test(automatic_choice_leaves_a_card_to_the_trainer_that_has_it),
        cmocka_unit_test(a_card_without_its_plugin_is_told),
        cmocka_unit_test(a_name_may_say_which_device),
        cmocka_unit_test(a_device_that_vanishes_is_told_and_can_only_be_closed),
        cmocka_unit_test(losses_that_are_no_numbers_cost_steps_and_are_counted),
        cmocka_unit_test(a_blob_that_a_plugin_spoiled_is_not_published),
        cmocka_unit_test(a_backend_without_the_precision_of_the_run_is_refused),
        cmocka_unit_test(a_run_without_a_precision_trains_in_the_one_that_is_fast_on_its_device),
        cmocka_unit_test(a_backend_without_the_optimizer_of_the_run_is_refused),
    };
    return cmocka_run_group_tests(tests, find_folder, NULL);
}
