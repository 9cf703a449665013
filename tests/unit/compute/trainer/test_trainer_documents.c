/* A run of documents that are kept apart: losses are counted and averaged over the tokens that have
 * one. */
#include "tests/unit/compute/tiny_node.h"

#include <math.h>

#include "base/run/samples.h"
#include "compute/backend/backend_cpu.h"
#include "compute/trainer/trainer_keep.h"
#include "compute/trainer/trainer_script.h"
#include "tests/unit/compute/marked_shard.h"

enum { WINDOWS = 40, VOCAB = 256 };

/* Windows of one document each, whose last `losses` tokens are a fixed answer to a random text;
 * every `empty`-th window (0: none) has no loss at all. */
typedef struct recipe {
    size_t losses;
    size_t empty;
    bool lies; /* the first token of a document has a loss, in an object of the right hash */
} recipe;

static void make_data(tiny_run *run, const recipe *r)
{
    static uint32_t ids[WINDOWS * TINY_CONTEXT + 1];
    static uint8_t marks[WINDOWS * TINY_CONTEXT + 1];
    uint64_t random = 1;
    const size_t n = WINDOWS * (size_t)TINY_CONTEXT + 1;
    for (size_t i = 0; i < n; i++) {
        const size_t at = i % TINY_CONTEXT;
        const bool answers = at + r->losses >= TINY_CONTEXT;
        const bool learns = r->empty == 0 || i / TINY_CONTEXT % r->empty != 0;
        random = random * 6364136223846793005U + 1442695040888963407U;
        ids[i] = answers ? (uint32_t)at : (uint32_t)(random >> 33) % VOCAB;
        marks[i] = at == 0 ? DP_MARK_BEGINS : answers && learns ? DP_MARK_LOSS : 0;
    }
    marks[5 * TINY_CONTEXT] |= r->lies ? DP_MARK_LOSS : 0;
    dp_buf_clear(&run->data);
    marked_shard(ids, marks, n, VOCAB, &run->data);
}

static dp_status try_open(node *x, const recipe *r, dp_trainer_setup setup, dp_why *why)
{
    *x = (node){.manifest = node_settings(DP_CODEC_SPARSE, 950)};
    tiny_run_open(&x->run, x->manifest.codec, x->manifest.feedback_beta_milli);
    make_data(&x->run, r);
    x->manifest.val_per_mille = 200;
    x->manifest.spike_milli = 0;
    x->manifest.shards[0] =
        (dp_manifest_shard){.root = dp_object_hash(dp_buf_view(&x->run.data), NULL),
                            .bytes = x->run.data.size,
                            .tokens = WINDOWS * (uint64_t)TINY_CONTEXT + 1};
    CHECK_OK(dp_manifest_encode(&x->manifest, x->run.manifest, &x->run.manifest_size));
    setup.manifest = dp_view_of(x->run.manifest, x->run.manifest_size);
    setup.tokenizer = dp_buf_view(&x->run.tokenizer);
    setup.shards = (dp_view[]){dp_buf_view(&x->run.data)};
    setup.n_shards = 1;
    setup.threads = 1;
    dp_buf_init(&x->blob, 1 << 20);
    DP_TRY(dp_trainer_open(&x->trainer, &setup, why));
    CHECK_OK(dp_trainer_init(x->trainer));
    x->n = dp_trainer_elements(x->trainer);
    return DP_OK;
}

static node open_documents(const recipe *r, dp_trainer_setup setup)
{
    node x;
    dp_why why = {{0}};
    const dp_status status = try_open(&x, r, setup, &why);
    if (status != DP_OK) {
        print_error("%s\n", why.text);
    }
    CHECK_OK(status);
    return x;
}

static const dp_trainer_setup alone = {.alone = true, .rows = 2};

/* The answer never changes, so its loss goes to 0; the text before it is noise, which nobody can
 * learn: a loss on it would stay near ln 300 = 5.7. */
static void the_loss_falls_on_answers_alone(void **state)
{
    (void)state;
    node x = open_documents(&(recipe){.losses = 8}, (dp_trainer_setup){.member = {1}});
    node_train(&x, 1);
    const double first = dp_trainer_progress_of(x.trainer).loss;
    CHECK(first > 5.0 && first < 7.0);
    node_train(&x, 79);
    if (!(dp_trainer_last_of(x.trainer).loss < 0.2 * first)) {
        fail_msg("loss %g after %g", dp_trainer_last_of(x.trainer).loss, first);
    }
    dp_trainer_score score;
    CHECK_OK(dp_trainer_eval(x.trainer, NULL, 0, &score));
    CHECK(score.tokens ==
          (uint64_t)7 * 8); /* Windows that lie in the last fifth, and eight of each. */
    node_close(&x);
}

static void tokens_are_those_with_a_loss(void **state)
{
    (void)state;
    node x = open_documents(&(recipe){.losses = 8}, (dp_trainer_setup){.member = {1}});
    node_train(&x, 5);
    CHECK(dp_trainer_progress_of(x.trainer).tokens == (uint64_t)5 * TINY_ROWS * 8);
    node_close(&x);
    x = open_documents(&(recipe){.losses = 8}, alone);
    CHECK(dp_trainer_batch_losses(x.trainer) == TINY_ROWS * 8);
    node_train(&x, 3);
    CHECK(dp_trainer_place_of(x.trainer).tokens == (uint64_t)3 * TINY_ROWS * 8);
    node_close(&x);
}

/* Windows without a loss add nothing to a mean, so they do not make a step smaller. Whole batches
 * of them are skipped, and training goes on. */
static void windows_without_a_target_are_well_defined(void **state)
{
    (void)state;
    node x = open_documents(&(recipe){.losses = 8, .empty = 2}, alone);
    tiny_run_work(x.trainer, 20);
    const dp_trainer_progress some = dp_trainer_progress_of(x.trainer);
    CHECK(isfinite(some.loss) && some.loss > 0.5 && some.steps + some.skipped == 20);
    CHECK(some.tokens < (uint64_t)20 * TINY_ROWS * 8 && some.tokens > 0);
    node_close(&x);
    x = open_documents(&(recipe){.losses = 8, .empty = 1}, alone);
    tiny_run_work(x.trainer, 5);
    const dp_trainer_progress none = dp_trainer_progress_of(x.trainer);
    CHECK(none.steps == 0 && none.skipped == 5 && none.tokens == 0 && none.loss == 0);
    CHECK(none.empty == 5 && dp_trainer_last_of(x.trainer).outcome == DP_STEP_EMPTY);
    const float *const params = dp_trainer_params(x.trainer);
    for (size_t i = 0; i < x.n; i++) {
        CHECK(isfinite(params[i]));
    }
    dp_trainer_score score;
    CHECK_STATUS(dp_trainer_eval(x.trainer, NULL, 0, &score), DP_NOTFOUND);
    node_close(&x);
}

/* The norm is that of the mean over targets: it does not depend on how many tokens have none. Two
 * rows at a time or four: the same step. */
static void a_step_is_the_mean_over_targets(void **state)
{
    (void)state;
    dp_trainer_last last[2];
    for (uint32_t i = 0; i < 2; i++) {
        node x = open_documents(&(recipe){.losses = 1},
                                (dp_trainer_setup){.alone = true, .rows = i == 0 ? 1 : TINY_ROWS});
        tiny_run_work(x.trainer, 1);
        last[i] = dp_trainer_last_of(x.trainer);
        node_close(&x);
    }
    CHECK(last[0].loss > 4.0 && fabs(last[0].loss - last[1].loss) < 1e-4);
    /* A gradient divided by all 32 tokens of a row would be a 32nd of this. */
    CHECK(last[0].norm > 0.3 && fabs(last[0].norm / last[1].norm - 1) < 1e-3);
}

static void a_resumed_trainer_continues_where_it_stood(void **state)
{
    (void)state;
    node x = open_documents(&(recipe){.losses = 8, .empty = 3}, alone);
    tiny_run_work(x.trainer, 4);
    dp_trainer_place place = dp_trainer_place_of(x.trainer);
    CHECK(place.tokens < place.done * TINY_ROWS * 8);
    CHECK_OK(dp_trainer_place_at(x.trainer, &place));
    place.tokens = place.done * TINY_ROWS * TINY_CONTEXT + 1;
    CHECK_STATUS(dp_trainer_place_at(x.trainer, &place), DP_BADMSG);
    node_close(&x);
}

/* A gain is told for each target; a window without one has no gain, and no number is broken. */
static void updates_are_judged_by_targets(void **state)
{
    (void)state;
    node author =
        open_documents(&(recipe){.losses = 4, .empty = 4}, (dp_trainer_setup){.member = {1}});
    node judge =
        open_documents(&(recipe){.losses = 4, .empty = 4}, (dp_trainer_setup){.member = {2}});
    dp_view blob;
    dp_view a;
    node_train(&author, 30);
    CHECK_OK(dp_trainer_publish(author.trainer, true, &blob, &a));
    dp_judged judged;
    const dp_trainer_update update = {.blob = blob,
                                      .scale = 65536,
                                      .tokens = 8 * TINY_CONTEXT,
                                      .seed = 5,
                                      .member = {1},
                                      .own_count = 30 * TINY_ROWS};
    CHECK_OK(dp_trainer_judge(judge.trainer, &update, &judged));
    CHECK(judged.held.tokens > 0 && judged.held.tokens <= 8 * 4);
    CHECK(judged.held.micro > 500000 && judged.claimed.micro > 500000); /* half a nat for a token */
    CHECK(judged.held.micro < 10000000);
    node_close(&judge);
    node_close(&author);
}

/* As those of a member whose engine trains: else a script would weigh four times and more. */
static void samples_of_a_script_count_by_their_losses(void **state)
{
    (void)state;
    node x = open_documents(&(recipe){.losses = 8}, (dp_trainer_setup){.member = {1}});
    uint64_t indices[4];
    float *const weights = node_copy(dp_trainer_params(x.trainer), x.n);
    CHECK_OK(dp_trainer_begin_script(x.trainer));
    CHECK(dp_trainer_draw(x.trainer, 4, indices) == 4);
    const dp_script_work work = {.samples = 4, .steps = 1, .loss_sum = 1};
    CHECK_OK(dp_trainer_take_weights(x.trainer, weights, &work));
    CHECK(dp_trainer_progress_of(x.trainer).tokens == (uint64_t)4 * 8);
    test_free(weights);
    node_close(&x);
}

/* Its table lacks the capability: it is told before anything is trained. */
static void a_backend_that_mixes_documents_is_refused(void **state)
{
    (void)state;
    dp_backend other = *dp_backend_cpu();
    node x;
    dp_why why = {{0}};
    other.capabilities &= ~(uint32_t)DP_CAN_DOCUMENTS;
    other.name = "other";
    CHECK_STATUS(try_open(&x, &(recipe){.losses = 8}, (dp_trainer_setup){.backend = &other}, &why),
                 DP_UNSUPPORTED);
    CHECK(strstr(why.text, "the backend 'other' does not yet; --backend cpu") != NULL);
    dp_buf_close(&x.blob);
    tiny_run_close(&x.run);
}

/* A founder that lies would teach the beginning of a document by the end of another one. */
static void a_shard_that_lies_is_refused(void **state)
{
    (void)state;
    node x;
    dp_why why = {{0}};
    CHECK_STATUS(try_open(&x, &(recipe){.losses = 8, .lies = true}, alone, &why), DP_BADMSG);
    CHECK(strstr(why.text, "token 160 begins a document and has a loss") != NULL);
    dp_buf_close(&x.blob);
    tiny_run_close(&x.run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loss_falls_on_answers_alone),
        cmocka_unit_test(tokens_are_those_with_a_loss),
        cmocka_unit_test(windows_without_a_target_are_well_defined),
        cmocka_unit_test(a_step_is_the_mean_over_targets),
        cmocka_unit_test(a_resumed_trainer_continues_where_it_stood),
        cmocka_unit_test(updates_are_judged_by_targets),
        cmocka_unit_test(samples_of_a_script_count_by_their_losses),
        cmocka_unit_test(a_shard_that_lies_is_refused),
        cmocka_unit_test(a_backend_that_mixes_documents_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
