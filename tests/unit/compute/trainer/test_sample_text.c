/* Text from weights: with keys and values kept and without, the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "compute/trainer/sample_text.h"
#include "tests/lib/check.h"

enum { TOKENS = 60, VOCAB = 280 };

static const dp_model_config config = {.arch = DP_ARCH_LLAMA,
                                       .layers = 2,
                                       .width = 24,
                                       .heads = 3,
                                       .kv_heads = 1,
                                       .context = 16,
                                       .vocab = VOCAB,
                                       .hidden = 32};

typedef struct rig {
    dp_model model;
    dp_bpe *bpe;
    dp_status loads;
} rig;

static dp_status load(void *context, float *params, dp_why *why)
{
    rig *const r = context;
    if (r->loads == DP_OK) {
        dp_model_init(&r->model, 6, params);
        return DP_OK;
    }
    return dp_why_set(why, r->loads, "no weights");
}

static void open_rig(rig *r)
{
    static const char text[] = "the light and the darkness and the light of the day";
    *r = (rig){.loads = DP_OK};
    CHECK_OK(dp_model_open(&r->model, &config, NULL));
    CHECK_OK(dp_bpe_train(&r->bpe, dp_view_text(text), DP_BPE_TOKENS_MIN + 9, NULL));
}

static void close_rig(rig *r)
{
    dp_bpe_close(r->bpe);
    dp_model_close(&r->model);
}

static dp_sample_weights weights_of(rig *r)
{
    return (dp_sample_weights){
        .model = &r->model, .bpe = r->bpe, .threads = 1, .load = load, .context = r};
}

static dp_status whole(void *context, const uint32_t *tokens, size_t known, size_t length,
                       float *logits)
{
    (void)known;
    return dp_gpt_logits(context, tokens, length, logits);
}

/* Past the context: the window is left and begun anew. */
static void kept_keys_give_the_text_of_whole_windows(void **state)
{
    (void)state;
    rig r;
    dp_gpt *gpt = NULL;
    dp_buf kept;
    dp_buf text;
    dp_why why;
    open_rig(&r);
    CHECK_OK(dp_gpt_open(&gpt, &r.model, &(dp_gpt_options){.rows_max = 1}));
    CHECK_OK(load(&r, dp_gpt_params_to_write(gpt), NULL));
    const dp_sample_model model = {.config = &r.model.config, .context = gpt, .logits = whole};
    const dp_sample_weights weights = weights_of(&r);
    for (uint64_t seed = 1; seed <= 5; seed++) {
        const dp_sampler sampler = {.temperature = 1.0F, .top_k = 100, .seed = seed};
        dp_buf_init(&kept, 1 << 16);
        dp_buf_init(&text, 1 << 16);
        CHECK_OK(dp_sample_from(&weights, &sampler, "the light", TOKENS, &kept, &why));
        CHECK_OK(dp_sample_text(&model, &sampler, r.bpe, "the light", TOKENS, &text));
        assert_memory_equal(kept.data, "the light", 9);
        CHECK(kept.size > 9 && dp_view_equal(dp_buf_view(&kept), dp_buf_view(&text)));
        dp_buf_close(&text);
        dp_buf_close(&kept);
    }
    dp_gpt_close(gpt);
    close_rig(&r);
}

static void what_cannot_be_drawn_is_refused(void **state)
{
    (void)state;
    rig r;
    dp_buf text;
    dp_why why;
    open_rig(&r);
    dp_buf_init(&text, 1 << 16);
    const dp_sampler sampler = {.temperature = 1.0F};
    const dp_sampler cold = {.temperature = -1.0F};
    const dp_sample_weights weights = weights_of(&r);
    CHECK_STATUS(dp_sample_from(&weights, &sampler, "", DP_SAMPLE_TOKENS_MAX + 1, &text, &why),
                 DP_TOOBIG);
    CHECK_STATUS(dp_sample_from(&weights, &sampler, "\xff", 3, &text, &why), DP_BADMSG);
    CHECK_STATUS(dp_sample_from(&weights, &cold, "", 3, &text, &why), DP_BADARG);
    r.loads = DP_BADHASH;
    CHECK_STATUS(dp_sample_from(&weights, &sampler, "", 3, &text, &why), DP_BADHASH);
    assert_string_equal(why.text, "no weights");
    assert_int_equal(text.size, 0);
    dp_buf_close(&text);
    close_rig(&r);
}

/* An empty prompt is a line end, and n = 0 gives the prompt back. */
static void a_prompt_alone_comes_back(void **state)
{
    (void)state;
    rig r;
    dp_buf text;
    dp_why why;
    open_rig(&r);
    dp_buf_init(&text, 1 << 16);
    const dp_sampler sampler = {.temperature = 0.0F};
    const dp_sample_weights weights = weights_of(&r);
    CHECK_OK(dp_sample_from(&weights, &sampler, "", 0, &text, &why));
    CHECK_OK(dp_sample_from(&weights, &sampler, "day\xc3\xbc", 0, &text, &why));
    CHECK(dp_view_equal(dp_buf_view(&text), dp_view_text("\nday\xc3\xbc")));
    dp_buf_close(&text);
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_keys_give_the_text_of_whole_windows),
        cmocka_unit_test(what_cannot_be_drawn_is_refused),
        cmocka_unit_test(a_prompt_alone_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
