/* THREADS_TEST: training without peers in a folder: begun, stopped, taken up again, damaged,
 * measured. */
#include "tests/unit/compute/tiny_run.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compute/backend/backend_cpu.h"
#include "compute/machine/files.h"
#include "compute/standalone/standalone.h"
#include "compute/standalone/standalone_file.h"

enum { STEPS = 12 };

/* A folder with a text, and what a job told. */
typedef struct bench {
    char folder[64];
    char text[80];
    char out[80];
    uint8_t manifest[DP_MANIFEST_BYTES_MAX];
    size_t manifest_size;
    uint64_t full_after; /* the save after this one finds a full disk; 0: none does */
    uint64_t saves;
    uint64_t stop_after; /* micro-batches */
    uint64_t asked;
    uint64_t steps;
    uint32_t rows; /* of micro-batches */
    unsigned notes;
    unsigned validations;
    double val_loss; /* of the last */
    dp_standalone_best best;
    bool early;
    bool stopped;
    bool planned;
    bool exported;
    dp_hash hash;
    dp_why why;
} bench;

static void tell(void *context, const dp_standalone_event *event)
{
    bench *const b = context;
    b->steps = event->kind == DP_STANDALONE_STEP ? event->steps : b->steps;
    b->rows = event->kind == DP_STANDALONE_START ? event->rows : b->rows;
    b->notes += event->kind == DP_STANDALONE_NOTE;
    if (event->kind == DP_STANDALONE_VALIDATED) {
        b->validations++;
        b->val_loss = event->score.loss;
        CHECK(!event->is_best || (event->best.known && event->best.step == event->steps));
    }
    if (event->kind == DP_STANDALONE_SAVED && ++b->saves == b->full_after) {
        char half[160];
        snprintf(half, sizeof half, "%s/step-000000000000.ckpt.half", b->out);
        CHECK(symlink("/dev/full", half) == 0); /* once: it is removed with what was written */
    }
    b->planned = b->planned || event->kind == DP_STANDALONE_PLAN;
    if (event->kind == DP_STANDALONE_END) {
        b->hash = event->hash;
        b->best = event->best;
        b->early = event->early;
        b->stopped = event->stopped;
        b->exported = event->exported;
    }
}

static bool stop(void *context)
{
    bench *const b = context;
    b->asked++;
    return b->stop_after != 0 && b->asked > b->stop_after;
}

static void open_bench(bench *b)
{
    static char text[TINY_TEXT];
    tiny_run run;
    *b = (bench){.folder = "/tmp/dpnode-solo-XXXXXX"};
    CHECK(mkdtemp(b->folder) != NULL);
    snprintf(b->text, sizeof b->text, "%s/text", b->folder);
    snprintf(b->out, sizeof b->out, "%s/out", b->folder);
    tiny_run_text(text, sizeof text);
    CHECK_OK(dp_file_write(b->folder, "text", dp_view_of(text, sizeof text), NULL));
    tiny_run_open(&run, DP_CODEC_FP32, 0);
    memcpy(b->manifest, run.manifest, run.manifest_size);
    b->manifest_size = run.manifest_size;
    tiny_run_close(&run);
}

static void close_bench(const bench *b)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", b->folder);
    CHECK(system(command) == 0); /* NOLINT(cert-env33-c): the path is mkdtemp's */
}

static dp_standalone_job job_of(bench *b, bool resume)
{
    b->asked = 0;
    dp_standalone_options options = dp_standalone_options_none();
    options.steps = STEPS;
    options.save_steps = 5;
    return (dp_standalone_job){.manifest = dp_view_of(b->manifest, b->manifest_size),
                               .text = b->text,
                               .folder = b->out,
                               .options = options,
                               .threads = 1,
                               .rows = 2,
                               .resume = resume,
                               .tell = tell,
                               .stop = stop,
                               .context = b};
}

static dp_status train(bench *b, bool resume)
{
    const dp_standalone_job job = job_of(b, resume);
    return dp_standalone_train(&job, &b->why);
}

static void damage(const bench *b, uint64_t step, off_t at)
{
    char path[160];
    snprintf(path, sizeof path, "%s/step-%012llu.ckpt", b->out, (unsigned long long)step);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    uint8_t byte = 0;
    CHECK(fd >= 0 && pread(fd, &byte, 1, at) == 1);
    byte ^= 1;
    CHECK(pwrite(fd, &byte, 1, at) == 1);
    close(fd);
}

static dp_hash uninterrupted(void)
{
    bench b;
    open_bench(&b);
    CHECK_OK(train(&b, false));
    CHECK(b.steps == STEPS && !b.stopped && b.planned && b.exported && b.notes == 0);
    close_bench(&b);
    return b.hash;
}

static void stopped_within_any_step_it_ends_with_the_same_bits(void **state)
{
    (void)state;
    const dp_hash whole = uninterrupted();
    bench b;
    open_bench(&b);
    b.stop_after = 3; /* two micro-batches are a step */
    CHECK_OK(train(&b, false));
    CHECK(b.stopped && b.steps == 1);
    for (unsigned lives = 0; b.stopped && lives < STEPS; lives++) {
        CHECK_OK(train(&b, true));
    }
    CHECK(b.steps == STEPS && dp_hash_equal(&b.hash, &whole));
    uint64_t steps[DP_STANDALONE_FILES_MAX];
    CHECK(dp_standalone_list(b.out, DP_STANDALONE_LAST, steps) == DP_STANDALONE_KEPT);
    CHECK(steps[0] == STEPS && steps[1] < STEPS);
    close_bench(&b);
}

static void a_damaged_checkpoint_is_told_and_the_one_before_is_taken(void **state)
{
    (void)state;
    bench b;
    open_bench(&b);
    CHECK_OK(train(&b, false));
    const dp_hash whole = b.hash;
    damage(&b, STEPS, 4000); /* in the weights */
    CHECK_OK(train(&b, true));
    CHECK(b.notes == 1 && dp_hash_equal(&b.hash, &whole));
    damage(&b, STEPS, 0);
    damage(&b, 10, 60); /* and in the head of the one before */
    CHECK_STATUS(train(&b, true), DP_BADMSG);
    CHECK(b.why.text[0] != '\0');
    close_bench(&b);
}

static void files_that_do_not_match_are_refused_with_a_sentence(void **state)
{
    (void)state;
    bench b;
    open_bench(&b);
    CHECK_STATUS(train(&b, true), DP_NOTFOUND); /* nothing there */
    CHECK(strstr(b.why.text, "there is no folder") != NULL);
    CHECK_OK(train(&b, false));
    CHECK_STATUS(train(&b, false), DP_EXISTS);
    CHECK(strstr(b.why.text, "--resume") != NULL);
    dp_manifest m;
    CHECK_OK(dp_manifest_decode(&m, dp_view_of(b.manifest, b.manifest_size)));
    m.lr_nano++;
    CHECK_OK(dp_manifest_encode(&m, b.manifest, &b.manifest_size));
    CHECK_STATUS(train(&b, true), DP_BADARG);
    CHECK(strstr(b.why.text, "train.lr") != NULL);
    m.lr_nano--;
    m.created_ms++; /* which is no setting */
    CHECK_OK(dp_manifest_encode(&m, b.manifest, &b.manifest_size));
    CHECK_OK(train(&b, true));
    char data[96];
    snprintf(data, sizeof data, "%s/data", b.out);
    CHECK_OK(dp_file_write(data, "tokens-00000.bin", dp_view_text("other"), NULL));
    CHECK_STATUS(train(&b, true), DP_BADHASH);
    close_bench(&b);
}

static void a_checkpoint_of_another_run_is_told_and_not_taken(void **state)
{
    (void)state;
    bench own;
    bench other;
    dp_manifest m;
    char command[320];
    open_bench(&own);
    open_bench(&other);
    CHECK_OK(dp_manifest_decode(&m, dp_view_of(other.manifest, other.manifest_size)));
    m.lr_nano++;
    CHECK_OK(dp_manifest_encode(&m, other.manifest, &other.manifest_size));
    CHECK_OK(train(&own, false));
    CHECK_OK(train(&other, false));
    const dp_hash whole = own.hash;
    snprintf(command, sizeof command, "cp %s/step-000000000012.ckpt %s/", other.out, own.out);
    CHECK(system(command) == 0); /* NOLINT(cert-env33-c): the paths are mkdtemp's */
    CHECK_OK(train(&own, true));
    CHECK(own.notes == 1 && dp_hash_equal(&own.hash, &whole));
    close_bench(&other);
    close_bench(&own);
}

/* The bug: it was told as an error after the last step. */
static void a_model_that_nobody_else_computes_is_trained_and_measured_all_the_same(void **state)
{
    (void)state;
    bench b;
    dp_manifest m;
    char model[96];
    open_bench(&b);
    CHECK_OK(dp_manifest_decode(&m, dp_view_of(b.manifest, b.manifest_size)));
    m.softcap_milli = 15000;
    CHECK_OK(dp_manifest_encode(&m, b.manifest, &b.manifest_size));
    CHECK_OK(train(&b, false));
    CHECK(b.steps == STEPS && b.notes == 1 && !b.exported);
    snprintf(model, sizeof model, "%s/model", b.out);
    CHECK(access(model, F_OK) != 0);
    dp_trainer_score score;
    uint64_t steps = 0;
    const dp_standalone_look look = {.folder = b.out, .threads = 1};
    CHECK_OK(dp_standalone_eval(&look, &score, &steps, &b.why));
    CHECK(steps == STEPS && score.loss < 6);
    close_bench(&b);
}

/* A card of so many rows, which the CPU plays. */
static uint32_t card_rows;

static dp_status plan_of_a_card(uint32_t index, const dp_plan_request *request, dp_plan *plan,
                                dp_why *why)
{
    dp_plan_request own = *request;
    own.budget = own.budget == 0 ? UINT64_MAX : own.budget;
    const dp_status status = dp_backend_cpu()->plan(index, &own, plan, why);
    if (status == DP_OK && request->rows > card_rows) {
        return dp_why_set(why, DP_TOOBIG, "that does not fit");
    }
    plan->rows = request->rows == 0 ? card_rows : plan->rows;
    return status;
}

static void on_a_card_rows_are_more_and_as_many_as_it_holds(void **state)
{
    (void)state;
    static const struct {
        uint32_t holds;
        uint32_t told;
        uint32_t rows; /* 0: it is refused */
    } cases[] = {{100, 0, TINY_ROWS}, {3, 0, 3}, {3, 1, 1}, {3, TINY_ROWS, 0}};
    dp_backend card = *dp_backend_cpu();
    card.plan = plan_of_a_card;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bench b;
        open_bench(&b);
        dp_standalone_job job = job_of(&b, false);
        job.backend = &card;
        job.rows = cases[i].told;
        job.options.steps = 1;
        card_rows = cases[i].holds;
        CHECK_STATUS(dp_standalone_train(&job, &b.why), cases[i].rows == 0 ? DP_TOOBIG : DP_OK);
        CHECK(b.rows == cases[i].rows);
        close_bench(&b);
    }
}

static void a_card_that_cannot_train_adapters_is_told_before_anything_is_made(void **state)
{
    (void)state;
    bench b;
    dp_manifest m;
    dp_backend card = *dp_backend_cpu();
    card.plan = plan_of_a_card;
    card.name = "cuda";
    card.capabilities &= ~(uint32_t)DP_CAN_ADAPTERS;
    open_bench(&b);
    CHECK_OK(dp_manifest_decode(&m, dp_view_of(b.manifest, b.manifest_size)));
    m.adapt_rank = 2;
    CHECK_OK(dp_manifest_encode(&m, b.manifest, &b.manifest_size));
    dp_standalone_job job = job_of(&b, false);
    job.backend = &card;
    CHECK_STATUS(dp_standalone_train(&job, &b.why), DP_UNSUPPORTED);
    CHECK(strstr(b.why.text, "the CPU trains adapters, the backend 'cuda' does not yet") != NULL);
    CHECK(!b.planned && access(b.out, F_OK) == 0);
    job.backend = NULL; /* Then the weights are missing. */
    CHECK_STATUS(dp_standalone_train(&job, &b.why), DP_BADARG);
    CHECK(strstr(b.why.text, "give --from FOLDER") != NULL && b.planned);
    close_bench(&b);
}

static void two_processes_do_not_train_in_one_folder(void **state)
{
    (void)state;
    bench b;
    char path[96];
    open_bench(&b);
    CHECK_OK(train(&b, false));
    snprintf(path, sizeof path, "%s/lock", b.out);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0 && flock(fd, LOCK_EX) == 0);
    CHECK_STATUS(train(&b, true), DP_BUSY);
    close(fd);
    CHECK_OK(train(&b, true));
    close_bench(&b);
}

static void the_newest_checkpoint_is_measured_on_what_was_held_out_and_on_other_data(void **state)
{
    (void)state;
    bench b;
    open_bench(&b);
    CHECK_OK(train(&b, false));
    dp_trainer_score held;
    dp_trainer_score text;
    dp_trainer_score shard;
    uint64_t steps = 0;
    char tokens[128];
    snprintf(tokens, sizeof tokens, "%s/data/tokens-00000.bin", b.out);
    dp_standalone_look look = {.folder = b.out, .threads = 1};
    CHECK_OK(dp_standalone_eval(&look, &held, &steps, &b.why));
    CHECK(steps == STEPS && held.loss > 0 && held.loss < 6 && held.bits_per_byte > 0);
    look.data = b.text; /* The same text once more, now all of it, as text and as tokens. */
    CHECK_OK(dp_standalone_eval(&look, &text, &steps, &b.why));
    look.data = tokens;
    CHECK_OK(dp_standalone_eval(&look, &shard, &steps, &b.why));
    CHECK(text.loss == shard.loss && text.tokens == shard.tokens && text.tokens > held.tokens);
    look.data = "/dev/null";
    CHECK(dp_standalone_eval(&look, &text, &steps, &b.why) != DP_OK && b.why.text[0] != '\0');
    look.folder = b.folder; /* as who gives the model's folder, or the wrong one */
    CHECK_STATUS(dp_standalone_eval(&look, &text, &steps, &b.why), DP_NOTFOUND);
    CHECK(strstr(b.why.text, "holds no run of `dpnode train`") != NULL);
    close_bench(&b);
}

static dp_status train_with(bench *b, bool resume, uint64_t val_steps, uint64_t patience,
                            uint64_t steps)
{
    dp_standalone_job job = job_of(b, resume);
    job.options.val_steps = val_steps;
    job.options.patience = patience;
    job.options.steps = steps;
    b->validations = 0;
    return dp_standalone_train(&job, &b->why);
}

static void held_out_text_is_measured_on_the_way_and_changes_no_bit(void **state)
{
    (void)state;
    const dp_hash whole = uninterrupted();
    bench b;
    dp_trainer_score score;
    uint64_t steps[DP_STANDALONE_FILES_MAX];
    open_bench(&b);
    CHECK_OK(train_with(&b, false, 5, 0, STEPS));
    CHECK(b.validations == 3 && dp_hash_equal(&b.hash, &whole)); /* 5, 10, and the last */
    CHECK(b.best.known && b.best.step == STEPS);
    CHECK(dp_standalone_list(b.out, DP_STANDALONE_BEST, steps) == 1 && steps[0] == STEPS);
    dp_standalone_look look = {.folder = b.out, .threads = 1, .which = DP_STANDALONE_BEST};
    CHECK_OK(dp_standalone_eval(&look, &score, steps, &b.why));
    CHECK(score.loss == b.val_loss && b.best.score.loss == b.val_loss);
    CHECK_OK(train_with(&b, true, 0, 0, STEPS + 1));
    CHECK(b.validations == 0 && !b.best.known);
    close_bench(&b);
}

/* A rate at which the loss rises again. */
static void open_bad_bench(bench *b)
{
    dp_manifest m;
    open_bench(b);
    CHECK_OK(dp_manifest_decode(&m, dp_view_of(b->manifest, b->manifest_size)));
    m.lr_nano = 300000000;
    CHECK_OK(dp_manifest_encode(&m, b->manifest, &b->manifest_size));
}

static void it_ends_where_nothing_gets_better_and_the_best_stays_beside_the_last(void **state)
{
    (void)state;
    bench b;
    uint64_t last[DP_STANDALONE_FILES_MAX];
    uint64_t best[DP_STANDALONE_FILES_MAX];
    open_bad_bench(&b);
    CHECK_OK(train_with(&b, false, 1, 3, 200));
    CHECK(b.early && !b.stopped && b.exported && b.steps < 200);
    CHECK(b.best.step + 3 == b.steps && b.best.score.loss <= b.val_loss);
    CHECK(dp_standalone_list(b.out, DP_STANDALONE_LAST, last) == DP_STANDALONE_KEPT);
    CHECK(dp_standalone_list(b.out, DP_STANDALONE_BEST, best) == 1);
    CHECK(last[0] == b.steps && best[0] == b.best.step);
    close_bench(&b);
}

/* Stopped after each few micro-batches it ends at the same step with the same bits. */
static void a_run_that_was_stopped_ends_as_early_as_one_that_was_not(void **state)
{
    (void)state;
    bench whole;
    bench b;
    open_bad_bench(&whole);
    CHECK_OK(train_with(&whole, false, 1, 3, 200));
    open_bad_bench(&b);
    b.stop_after = 5;
    dp_standalone_job job;
    CHECK_OK(train_with(&b, false, 1, 3, 200));
    for (unsigned lives = 0; b.stopped && lives < 200; lives++) {
        job = job_of(&b, true);
        job.options = dp_standalone_options_none(); /* as the printed command has it */
        CHECK_OK(dp_standalone_train(&job, &b.why));
    }
    CHECK(b.early && b.steps == whole.steps && dp_hash_equal(&b.hash, &whole.hash));
    CHECK(b.best.step == whole.best.step && b.best.score.loss == whole.best.score.loss);
    close_bench(&b);
    close_bench(&whole);
}

static void a_best_checkpoint_that_cannot_be_saved_is_told_and_costs_nothing_else(void **state)
{
    (void)state;
    const dp_hash whole = uninterrupted();
    bench b;
    char half[160];
    open_bench(&b);
    snprintf(half, sizeof half, "%s/best-000000000000.ckpt.half", b.out);
    CHECK(mkdir(b.out, 0700) == 0 && mkdir(half, 0700) == 0); /* in its place */
    CHECK_OK(train_with(&b, false, 6, 0, STEPS));
    CHECK(b.notes == 2 && b.validations == 2 && dp_hash_equal(&b.hash, &whole));
    CHECK(strstr(b.why.text, "best") == NULL);
    close_bench(&b);
}

static void a_full_disk_costs_the_older_checkpoint_or_one_save(void **state)
{
    (void)state;
    const dp_hash whole = uninterrupted();
    uint64_t steps[DP_STANDALONE_FILES_MAX];
    bench b;
    for (uint64_t full = 1; full <= 3; full++) { /* at step 5, at 10, and at the end */
        open_bench(&b);
        b.full_after = full;
        CHECK_OK(train(&b, false));
        CHECK(b.notes == (full == 1)); /* There was no older one that could go. */
        CHECK(b.steps == STEPS && dp_hash_equal(&b.hash, &whole));
        CHECK(dp_standalone_list(b.out, DP_STANDALONE_LAST, steps) == 2 && steps[0] == STEPS);
        close_bench(&b);
    }
    open_bench(&b);
    b.full_after = 1;
    dp_standalone_job job = job_of(&b, false);
    job.options.steps = 3; /* The only save after the first is the last. */
    CHECK_STATUS(dp_standalone_train(&job, &b.why), DP_NOSPACE);
    CHECK(strstr(b.why.text, "--resume goes on from step 0") != NULL);
    close_bench(&b);
}

static void without_held_out_text_only_an_order_to_measure_is_refused(void **state)
{
    (void)state;
    bench b;
    dp_manifest m;
    open_bench(&b);
    CHECK_OK(dp_manifest_decode(&m, dp_view_of(b.manifest, b.manifest_size)));
    m.val_per_mille = 0;
    CHECK_OK(dp_manifest_encode(&m, b.manifest, &b.manifest_size));
    CHECK_OK(train(&b, false));
    CHECK(b.steps == STEPS && b.validations == 0);
    CHECK_STATUS(train_with(&b, true, DP_STANDALONE_UNSET, 2, STEPS), DP_BADARG);
    CHECK(strstr(b.why.text, "data.val is 0") != NULL);
    close_bench(&b);
}

static void
data_too_short_to_hold_a_window_out_is_told_and_an_order_to_measure_is_refused(void **state)
{
    (void)state;
    static const char line[] = "{\"prompt\": \"what is it? \", \"completion\": \"an answer\"}\n";
    bench b;
    dp_buf lines;
    open_bench(&b);
    dp_buf_init(&lines, 1 << 12);
    for (unsigned i = 0; i < 8; i++) {
        CHECK_OK(dp_buf_append(&lines, dp_view_text(line)));
    }
    CHECK_OK(dp_file_write(b.folder, "few.jsonl", dp_buf_view(&lines), NULL));
    dp_buf_close(&lines);
    snprintf(b.text, sizeof b.text, "%s/few.jsonl", b.folder);
    CHECK_OK(train(&b, false));
    CHECK(b.steps == STEPS && b.notes == 1 && b.validations == 0 && !b.best.known);
    CHECK_STATUS(train_with(&b, true, DP_STANDALONE_UNSET, 2, STEPS), DP_BADARG);
    CHECK(strstr(b.why.text, "nothing is held out") != NULL);
    CHECK_STATUS(train_with(&b, true, 4, 0, STEPS), DP_BADARG);
    CHECK_STATUS(train_with(&b, true, 0, 2, STEPS), DP_BADARG);
    CHECK(strstr(b.why.text, "--val-steps 0") != NULL);
    CHECK_OK(train_with(&b, true, 0, 0, STEPS));
    close_bench(&b);
}

/* Text of a folder with a seed, on so many threads. The caller closes it. */
static dp_buf text_of(bench *b, size_t threads, uint64_t *steps, dp_status expected)
{
    const dp_standalone_look look = {.folder = b->out, .threads = threads};
    const dp_sampler sampler = {.temperature = 0.9F, .top_k = 50, .top_p = 0.95F, .seed = 7};
    dp_buf text;
    dp_buf_init(&text, 1 << 20);
    CHECK_STATUS(
        dp_standalone_sample(&look, &sampler, "a", 3 * TINY_CONTEXT, &text, steps, &b->why),
        expected);
    return text;
}

static void text_follows_the_seed_and_is_of_the_newest_checkpoint_that_is_whole(void **state)
{
    (void)state;
    bench b;
    uint64_t steps = 0;
    open_bench(&b);
    CHECK_OK(train(&b, false));
    dp_buf one = text_of(&b, 1, &steps, DP_OK);
    dp_buf two = text_of(&b, 2, &steps, DP_OK); /* THREADS do not matter */
    CHECK(steps == STEPS && one.size > 1 && one.data[0] == 'a');
    CHECK(dp_view_equal(dp_buf_view(&one), dp_buf_view(&two)));
    damage(&b, STEPS, 4000);
    dp_buf before = text_of(&b, 1, &steps, DP_OK);
    CHECK(steps == 10 && !dp_view_equal(dp_buf_view(&one), dp_buf_view(&before)));
    damage(&b, 10, 4000);
    dp_buf none = text_of(&b, 1, &steps, DP_BADHASH);
    CHECK(none.size == 0 && strstr(b.why.text, "is damaged") != NULL);
    dp_buf_close(&none);
    dp_buf_close(&before);
    dp_buf_close(&two);
    dp_buf_close(&one);
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stopped_within_any_step_it_ends_with_the_same_bits),
        cmocka_unit_test(a_damaged_checkpoint_is_told_and_the_one_before_is_taken),
        cmocka_unit_test(files_that_do_not_match_are_refused_with_a_sentence),
        cmocka_unit_test(a_checkpoint_of_another_run_is_told_and_not_taken),
        cmocka_unit_test(a_model_that_nobody_else_computes_is_trained_and_measured_all_the_same),
        cmocka_unit_test(on_a_card_rows_are_more_and_as_many_as_it_holds),
        cmocka_unit_test(a_card_that_cannot_train_adapters_is_told_before_anything_is_made),
        cmocka_unit_test(two_processes_do_not_train_in_one_folder),
        cmocka_unit_test(the_newest_checkpoint_is_measured_on_what_was_held_out_and_on_other_data),
        cmocka_unit_test(held_out_text_is_measured_on_the_way_and_changes_no_bit),
        cmocka_unit_test(it_ends_where_nothing_gets_better_and_the_best_stays_beside_the_last),
        cmocka_unit_test(a_run_that_was_stopped_ends_as_early_as_one_that_was_not),
        cmocka_unit_test(a_best_checkpoint_that_cannot_be_saved_is_told_and_costs_nothing_else),
        cmocka_unit_test(a_full_disk_costs_the_older_checkpoint_or_one_save),
        cmocka_unit_test(without_held_out_text_only_an_order_to_measure_is_refused),
        cmocka_unit_test(
            data_too_short_to_hold_a_window_out_is_told_and_an_order_to_measure_is_refused),
        cmocka_unit_test(text_follows_the_seed_and_is_of_the_newest_checkpoint_that_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
