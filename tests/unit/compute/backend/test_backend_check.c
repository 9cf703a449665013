/* Faults that the self-test of a backend must find, beside those in test_plugin.c. */
#include "compute/backend/backend_check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "compute/backend/backend_check_inside.h"
#include "compute/backend/backend_cpu.h"
#include "compute/model/state.h"
#include "tests/lib/check.h"

/* The CPU, but for its losses at heads of one width. */
static uint32_t wrong_at;
static uint32_t head;

static dp_status create_and_note(dp_engine **out, const dp_engine_setup *setup, dp_why *why)
{
    head = setup->model->config.head_width;
    return dp_backend_cpu()->create(out, setup, why);
}

static dp_status step_wrong_there(dp_engine *e, const dp_gpt_batch *batch, float scale,
                                  double *loss_sum)
{
    DP_TRY(dp_backend_cpu()->step(e, batch, scale, loss_sum));
    *loss_sum *= head == wrong_at ? 1.5 : 1.0;
    return DP_OK;
}

static void a_backend_that_errs_at_the_heads_of_published_models_is_found(void **state)
{
    (void)state;
    static const uint32_t widths[] = {16, 64, 128};
    dp_backend table = *dp_backend_cpu();
    table.capabilities = DP_CAN_BF16;
    table.create = create_and_note;
    table.step = step_wrong_there;
    wrong_at = 0;
    CHECK_OK(dp_backend_check(&table, 0, NULL, NULL));
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        dp_why why = {{0}};
        wrong_at = widths[i];
        CHECK_STATUS(dp_backend_check(&table, 0, NULL, &why), DP_UNSUPPORTED);
        CHECK(strstr(why.text, "its loss in bf16 is") != NULL);
    }
}

static dp_status create_without_bf16(dp_engine **out, const dp_engine_setup *setup, dp_why *why)
{
    return setup->precision == DP_PRECISION_BF16
               ? dp_why_set(why, DP_UNSUPPORTED, "it computes no bf16")
               : dp_backend_cpu()->create(out, setup, why);
}

static void count(void *context)
{
    ++*(int *)context;
}

/* As cards before Ampere. */
static void a_precision_that_the_device_has_not_is_left_out(void **state)
{
    (void)state;
    int parts = 0;
    const dp_backend_told told = {.passed = count, .context = &parts};
    dp_why why = {{0}};
    dp_backend table = *dp_backend_cpu();
    table.capabilities = DP_CAN_BF16 | DP_CAN_FP16;
    table.create = create_without_bf16;
    CHECK_OK(dp_backend_check(&table, 0, &told, &why));
    CHECK(parts == 1 + 5);
    table.capabilities = DP_CAN_BF16;
    CHECK_STATUS(dp_backend_check(&table, 0, NULL, &why), DP_UNSUPPORTED);
    CHECK(strcmp(why.text, "it computes no bf16") == 0);
}

/* ---- A backend that errs in one call alone: whatever the call, the self-test finds it. */

static const char *wrong; /* the call */
static dp_engine_setup made;
static dp_buf spoiled;

static bool errs(const char *call)
{
    return strcmp(wrong, call) == 0;
}

static dp_status note(dp_engine **out, const dp_engine_setup *setup, dp_why *why)
{
    made = *setup;
    return dp_backend_cpu()->create(out, setup, why);
}

/* The vector, with the last bit of one element changed; lent until the next. */
static const float *with_another_bit(const float *values, size_t n, size_t at)
{
    static float *copy;
    dp_free(copy);
    copy = dp_alloc(n, sizeof *copy);
    CHECK(copy != NULL);
    memcpy(copy, values, n * sizeof *copy);
    copy[at] = nextafterf(copy[at], 2.0F);
    return copy;
}

static dp_status spoil(dp_engine *e, dp_vector v)
{
    const size_t n = made.model->n_elements;
    dp_buf_clear(&spoiled);
    CHECK_OK(dp_floats_write(with_another_bit(dp_backend_cpu()->values(e, v), n, 9), n, &spoiled));
    return dp_backend_cpu()->load(e, v, dp_buf_view(&spoiled));
}

static dp_status w_init(dp_engine *e, uint64_t seed)
{
    return dp_backend_cpu()->init(e, seed + errs("init"));
}

static dp_status w_load(dp_engine *e, dp_vector to, dp_view bytes)
{
    const dp_status status = dp_backend_cpu()->load(e, to, bytes);
    if (status == DP_DIVERGED) {
        return errs("load: takes NaN") ? DP_OK : status;
    }
    if (status == DP_BADMSG) {
        return errs("load: takes too little") ? DP_OK : status;
    }
    return errs("load") ? spoil(e, to) : status;
}

static const float *w_values(dp_engine *e, dp_vector from)
{
    const float *const values = dp_backend_cpu()->values(e, from);
    return errs("values") ? with_another_bit(values, made.model->n_elements, 0) : values;
}

static dp_status w_zero(dp_engine *e, dp_vector to)
{
    return errs("zero") ? DP_OK : dp_backend_cpu()->zero(e, to);
}

static dp_status w_copy(dp_engine *e, dp_vector to, dp_vector from)
{
    DP_TRY(dp_backend_cpu()->copy(e, to, from));
    return errs("copy") ? spoil(e, to) : DP_OK;
}

static dp_status w_add(dp_engine *e, dp_vector to, dp_vector from)
{
    DP_TRY(dp_backend_cpu()->add(e, to, from));
    return errs("add") ? spoil(e, to) : DP_OK;
}

static dp_status w_subtract(dp_engine *e, dp_vector to, dp_vector from)
{
    DP_TRY(dp_backend_cpu()->subtract(e, to, from));
    return errs("subtract") ? spoil(e, to) : DP_OK;
}

static dp_status w_scale(dp_engine *e, dp_vector to, uint32_t lambda)
{
    return dp_backend_cpu()->scale(e, to, lambda + errs("scale"));
}

static dp_status w_snapshot(dp_engine *e, dp_vector to, dp_vector feedback, dp_vector from)
{
    DP_TRY(dp_backend_cpu()->snapshot(e, to, feedback, from));
    const bool has = feedback != DP_VECTOR_NONE;
    return (has && errs("snapshot with e")) || (!has && errs("snapshot")) ? spoil(e, to) : DP_OK;
}

static dp_status w_reset(dp_engine *e)
{
    return errs("reset") ? DP_OK : dp_backend_cpu()->reset(e);
}

static dp_status w_drop(dp_engine *e)
{
    return errs("drop") ? DP_OK : dp_backend_cpu()->drop(e);
}

static dp_status w_step(dp_engine *e, const dp_gpt_batch *batch, float scale, double *loss)
{
    const dp_status status =
        dp_backend_cpu()->step(e, batch, errs("step: gradients") ? 1.1F * scale : scale, loss);
    if (status == DP_BADARG && errs("step: takes any token")) {
        return DP_OK;
    }
    if (status == DP_OK && (errs("step: loss") || (errs("step: ladder 0") && made.recompute == 0) ||
                            (errs("step: ladder 1") && made.recompute == 1) ||
                            (errs("step: ladder 2") && made.recompute == 2) ||
                            (errs("step: ladder 3") && made.recompute == 3))) {
        *loss *= 1.5;
    }
    return status;
}

static const float *w_gradients(dp_engine *e)
{
    const float *const g = dp_backend_cpu()->gradients(e);
    static float zeros[1 << 20];
    CHECK(made.model->n_elements < sizeof zeros / sizeof *zeros);
    return errs("gradients") ? zeros : g;
}

static dp_status w_norm(dp_engine *e, double *norm)
{
    DP_TRY(dp_backend_cpu()->norm(e, norm));
    *norm *= errs("norm") ? 1.1 : 1.0;
    return DP_OK;
}

/* "update KIND WEIGHTS option": as if that option were another, for that optimizer alone. */
static dp_status w_update(dp_engine *e, const dp_optim_options *options, double norm)
{
    char call[64];
    dp_optim_options o = *options;
    float *const fields[] = {&o.lr,    &o.beta1, &o.beta2,    &o.eps,
                             &o.decay, &o.clip,  &o.momentum, &o.loss_scale};
    static const char *const names[] = {"lr",    "beta1", "beta2",    "eps",
                                        "decay", "clip",  "momentum", "loss_scale"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(call, sizeof call, "update %d %d %s", (int)made.optimizer, (int)made.weights,
                 names[i]);
        *fields[i] *= errs(call) ? 0.5F : 1.0F;
    }
    return dp_backend_cpu()->update(e, &o, norm);
}

static size_t w_lend_state(dp_engine *e, dp_optim_vector out[DP_BACKEND_STATE_MAX])
{
    const size_t count = dp_backend_cpu()->lend_state(e, out);
    if (errs("lend_state: another order")) {
        const dp_optim_vector m = out[1];
        out[1] = out[count - 1];
        out[count - 1] = m;
    }
    return count - errs("lend_state");
}

static dp_status w_take_state(dp_engine *e, uint64_t updates)
{
    if (errs("take_state: moments")) {
        dp_optim_vector lent[DP_BACKEND_STATE_MAX];
        CHECK(dp_backend_cpu()->lend_state(e, lent) > 1);
        memset(lent[1].values, 0, made.model->n_elements * sizeof(float));
    }
    DP_TRY(dp_backend_cpu()->take_state(e, updates));
    return errs("take_state: x") ? spoil(e, DP_VECTOR_X) : DP_OK;
}

static uint64_t w_updates(const dp_engine *e)
{
    return dp_backend_cpu()->updates(e) + errs("updates");
}

static dp_status w_loss(dp_engine *e, dp_vector v, const dp_gpt_batch *batch, double *loss)
{
    DP_TRY(dp_backend_cpu()->loss(e, v, batch, loss));
    *loss *= errs(v == DP_VECTOR_X ? "loss of x" : "loss of theta") ? 1.1 : 1.0;
    return DP_OK;
}

static dp_status w_logits(dp_engine *e, dp_vector v, const uint32_t *tokens, size_t length,
                          float *logits)
{
    DP_TRY(dp_backend_cpu()->logits(e, v, tokens, length, logits));
    logits[3] += errs("logits") ? 0.1F : 0.0F;
    return DP_OK;
}

static dp_view another_byte(dp_view blob)
{
    dp_buf_clear(&spoiled);
    CHECK_OK(dp_buf_append(&spoiled, blob));
    spoiled.data[blob.size - 1] ^= 1;
    return dp_buf_view(&spoiled);
}

/* Both ways end here. */
static dp_status w_encode(dp_engine *e, dp_vector from, const dp_codec *codec, dp_view *blob)
{
    DP_TRY(dp_backend_cpu()->encode(e, from, codec, blob));
    *blob = errs("encode") ? another_byte(*blob) : *blob;
    return DP_OK;
}

static dp_codec started;

static dp_status w_encode_start(dp_engine *e, dp_vector from, const dp_codec *codec)
{
    started = *codec;
    return dp_backend_cpu()->encode_start(e, from, codec);
}

static dp_status w_encode_ready(dp_engine *e, bool *ready)
{
    return errs("encode_ready") ? DP_IO : dp_backend_cpu()->encode_ready(e, ready);
}

/* "encode_take KIND": that codec alone. */
static dp_status w_encode_take(dp_engine *e, dp_view *blob, const float **values)
{
    char call[64];
    DP_TRY(dp_backend_cpu()->encode_take(e, blob, values));
    snprintf(call, sizeof call, "encode_take %d", (int)started.kind);
    *blob = errs(call) ? another_byte(*blob) : *blob;
    *values = errs("encode_take: values") ? with_another_bit(*values, made.model->n_elements, 1)
                                          : *values;
    return DP_OK;
}

static dp_status w_settle(dp_engine *e, dp_view blob, uint32_t clip, float beta)
{
    return dp_backend_cpu()->settle(e, blob, clip + errs("settle: clip"),
                                    errs("settle: beta") ? 0.9F : beta);
}

static dp_status w_apply(dp_engine *e, const dp_consensus_items *items, const dp_outer *outer,
                         dp_outer_seen *seen)
{
    const dp_view turned[2] = {items->blobs[1], items->blobs[0]};
    dp_consensus_items some = *items;
    if (errs("apply: order") && items->places == NULL) {
        some.blobs = turned;
    }
    some.n -= errs("apply: parts") && items->places != NULL ? 1 : 0;
    DP_TRY(dp_backend_cpu()->apply(e, &some, outer, seen));
    seen->reach *= errs("apply: reach") && outer->mu > 0 ? 1.5 : 1.0;
    return errs("apply: m") && outer->mu > 0 ? spoil(e, DP_VECTOR_M) : DP_OK;
}

static dp_status w_mix(dp_engine *e, const dp_view blobs[2], double share, double *sum)
{
    DP_TRY(dp_backend_cpu()->mix(e, blobs, share, sum));
    *sum *= errs("mix: sum") ? 1.5 : 1.0;
    return errs("mix: x") ? spoil(e, DP_VECTOR_X) : errs("mix: F") ? spoil(e, DP_VECTOR_F) : DP_OK;
}

static dp_backend wrong_table(void)
{
    dp_backend b = *dp_backend_cpu();
    b.capabilities &= ~(uint32_t)(DP_CAN_BF16 | DP_CAN_FP16);
    b.create = note;
    b.init = w_init;
    b.load = w_load;
    b.values = w_values;
    b.zero = w_zero;
    b.copy = w_copy;
    b.add = w_add;
    b.subtract = w_subtract;
    b.scale = w_scale;
    b.snapshot = w_snapshot;
    b.reset = w_reset;
    b.drop = w_drop;
    b.step = w_step;
    b.gradients = w_gradients;
    b.norm = w_norm;
    b.update = w_update;
    b.lend_state = w_lend_state;
    b.take_state = w_take_state;
    b.updates = w_updates;
    b.loss = w_loss;
    b.logits = w_logits;
    b.encode = w_encode;
    b.encode_start = w_encode_start;
    b.encode_ready = w_encode_ready;
    b.encode_take = w_encode_take;
    b.settle = w_settle;
    b.apply = w_apply;
    b.mix = w_mix;
    return b;
}

/* how: dp_backend_check, or a part of it that must find it. */
static void check_found(dp_status (*how)(const dp_backend *, uint32_t, const dp_backend_told *,
                                         dp_why *),
                        const char *call)
{
    const dp_backend table = wrong_table();
    dp_why why = {{0}};
    wrong = call;
    const dp_status status = how(&table, 0, NULL, &why);
    if (status == DP_OK || why.text[0] == '\0') {
        print_error("not found: %s\n", call);
    }
    CHECK(status != DP_OK && why.text[0] != '\0');
}

static int open_spoiled(void **state)
{
    (void)state;
    dp_buf_init(&spoiled, 1 << 24);
    return 0;
}

static int close_spoiled(void **state)
{
    (void)state;
    dp_buf_close(&spoiled);
    return 0;
}

static void whichever_call_errs_is_found(void **state)
{
    (void)state;
    static const char *const calls[] = {"init",
                                        "load",
                                        "load: takes NaN",
                                        "load: takes too little",
                                        "values",
                                        "zero",
                                        "copy",
                                        "add",
                                        "subtract",
                                        "scale",
                                        "snapshot",
                                        "snapshot with e",
                                        "reset",
                                        "drop",
                                        "step: gradients",
                                        "step: takes any token",
                                        "step: loss",
                                        "step: ladder 0",
                                        "step: ladder 1",
                                        "step: ladder 2",
                                        "step: ladder 3",
                                        "gradients",
                                        "norm",
                                        "lend_state",
                                        "lend_state: another order",
                                        "take_state: moments",
                                        "take_state: x",
                                        "updates",
                                        "loss of x",
                                        "loss of theta",
                                        "logits",
                                        "encode",
                                        "encode_ready",
                                        "encode_take: values",
                                        "settle: clip",
                                        "settle: beta",
                                        "apply: order",
                                        "apply: parts",
                                        "apply: reach",
                                        "apply: m",
                                        "mix: sum",
                                        "mix: x",
                                        "mix: F"};
    const dp_backend right = wrong_table();
    wrong = "none";
    CHECK_OK(dp_backend_check(&right, 0, NULL, NULL));
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        check_found(dp_backend_check, calls[i]);
    }
    size_t count = 0;
    const dp_codec_row *const codecs = dp_codec_rows(&count);
    for (size_t i = 0; i < count; i++) {
        char call[64];
        snprintf(call, sizeof call, "encode_take %d", (int)codecs[i].kind);
        check_found(dp_backend_check, call);
    }
}

static void an_optimizer_that_forgets_one_option_is_found(void **state)
{
    (void)state;
    static const char *const of_adamw[] = {"lr",    "beta1", "beta2",     "eps",
                                           "decay", "clip",  "loss_scale"};
    static const struct {
        dp_optim_kind kind;
        const char *option;
    } others[] = {{DP_OPTIM_LAMB, "lr"},    {DP_OPTIM_LAMB, "beta1"},    {DP_OPTIM_LAMB, "beta2"},
                  {DP_OPTIM_LAMB, "eps"},   {DP_OPTIM_LAMB, "decay"},    {DP_OPTIM_LARS, "lr"},
                  {DP_OPTIM_LARS, "decay"}, {DP_OPTIM_LARS, "momentum"}, {DP_OPTIM_MUON, "lr"},
                  {DP_OPTIM_MUON, "decay"}, {DP_OPTIM_MUON, "momentum"}, {DP_OPTIM_MUON, "beta1"}};
    char call[64];
    for (int weights = DP_WEIGHTS_FP32; weights <= DP_WEIGHTS_BF16_SR; weights++) {
        for (size_t i = 0; i < sizeof of_adamw / sizeof of_adamw[0]; i++) {
            snprintf(call, sizeof call, "update %d %d %s", (int)DP_OPTIM_ADAMW, weights,
                     of_adamw[i]);
            check_found(dp_backend_check_optimizers, call);
        }
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        snprintf(call, sizeof call, "update %d %d %s", (int)others[i].kind, (int)DP_WEIGHTS_FP32,
                 others[i].option);
        check_found(dp_backend_check_optimizers, call);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_backend_that_errs_at_the_heads_of_published_models_is_found),
        cmocka_unit_test(a_precision_that_the_device_has_not_is_left_out),
        cmocka_unit_test_setup_teardown(whichever_call_errs_is_found, open_spoiled, close_spoiled),
        cmocka_unit_test_setup_teardown(an_optimizer_that_forgets_one_option_is_found, open_spoiled,
                                        close_spoiled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
