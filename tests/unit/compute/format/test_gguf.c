#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "compute/format/gguf.h"
#include "compute/text/bpe_parts.h"
#include "tests/lib/gguf_read.h"

enum { VOCAB = 300, FILE_MAX = 1 << 22 };

static const dp_model_config gpt2 = {
    .layers = 2, .width = 32, .heads = 2, .context = 8, .vocab = VOCAB};
static const dp_model_config llama = {.arch = DP_ARCH_LLAMA,
                                      .layers = 2,
                                      .width = 32,
                                      .heads = 4,
                                      .kv_heads = 2,
                                      .head_width = 12,
                                      .hidden = 40,
                                      .context = 8,
                                      .vocab = VOCAB};

static const dp_model_config gemma2 = {.arch = DP_ARCH_GEMMA2,
                                       .layers = 3,
                                       .width = 32,
                                       .heads = 4,
                                       .kv_heads = 2,
                                       .head_width = 12,
                                       .hidden = 40,
                                       .context = 8,
                                       .vocab = VOCAB,
                                       .softcap_milli = 30000,
                                       .scores_softcap_milli = 50000,
                                       .window = 4,
                                       .full_every = 2};

struct file {
    dp_model model;
    float *theta;
    dp_bpe *bpe;
    dp_buf bytes;
    dp_gguf *read;
};

static void make(struct file *f, const dp_model_config *config)
{
    *f = (struct file){.theta = NULL};
    uint32_t id = 0;
    assert_int_equal(dp_model_open(&f->model, config, NULL), DP_OK);
    f->theta = test_calloc(f->model.n_elements, sizeof *f->theta);
    dp_model_init(&f->model, 3, f->theta);
    assert_int_equal(dp_bpe_train(&f->bpe, dp_view_text("a cat, a hat, a bat"), 258, NULL), DP_OK);
    assert_int_equal(dp_bpe_add_special(f->bpe, dp_view_text("<|endoftext|>"), &id), DP_OK);
    dp_buf_init(&f->bytes, FILE_MAX);
}

static void open_file(struct file *f, const dp_model_config *config, dp_gguf_type type)
{
    dp_why why = {""};
    make(f, config);
    assert_int_equal(dp_gguf_write(&f->model, f->theta, &(dp_gguf_language){.bpe = f->bpe}, type,
                                   &f->bytes, &why),
                     DP_OK);
    if (dp_gguf_open(&f->read, dp_buf_view(&f->bytes), &why) != DP_OK) {
        fail_msg("%s", why.text);
    }
}

static void close_file(struct file *f)
{
    dp_gguf_close(f->read);
    dp_buf_close(&f->bytes);
    dp_bpe_close(f->bpe);
    test_free(f->theta);
    dp_model_close(&f->model);
}

/* Row of the file against column of the arena, within a share of the largest weight. */
static void check_row(const struct file *f, const char *name, size_t row, dp_slot slot,
                      size_t column, float share)
{
    const dp_gguf_tensor *const tensor = dp_gguf_find(f->read, name);
    const dp_tensor *const ours = dp_model_tensor(&f->model, 1, slot);
    assert_non_null(tensor);
    assert_int_equal(tensor->dims[0], ours->shape[0]);
    float *const values = test_calloc(tensor->elements, sizeof *values);
    dp_gguf_floats(tensor, values);
    for (size_t i = 0; i < ours->shape[0]; i++) {
        const float wanted = f->theta[ours->offset + i * ours->shape[1] + column];
        assert_true(fabsf(values[row * ours->shape[0] + i] - wanted) <= share * 0.12F);
    }
    test_free(values);
}

static void gpt2_has_its_names_and_turned_weights(void **state)
{
    (void)state;
    struct file f;
    uint32_t type = 0;
    dp_view value;
    open_file(&f, &gpt2, DP_GGUF_F32);
    assert_int_equal(dp_gguf_count(f.read), f.model.n_tensors);
    check_row(&f, "blk.1.attn_qkv.weight", 70, DP_LAYER_QKV_W, 70, 0);
    check_row(&f, "blk.1.ffn_up.weight", 100, DP_LAYER_UP_W, 100, 0);
    check_row(&f, "blk.1.ffn_down.weight", 31, DP_LAYER_DOWN_W, 31, 0);
    assert_null(dp_gguf_find(f.read, "output.weight"));
    assert_int_equal(dp_gguf_find(f.read, "token_embd.weight")->dims[1], VOCAB);
    assert_int_equal(dp_gguf_value(f.read, "general.architecture", &type, &value), DP_OK);
    assert_true(dp_view_equal(value, dp_view_text("gpt2")));
    assert_int_equal(dp_gguf_value(f.read, "gpt2.block_count", &type, &value), DP_OK);
    assert_memory_equal(value.data, "\2\0\0\0", 4);
    assert_int_equal(dp_gguf_value(f.read, "tokenizer.ggml.tokens", &type, &value), DP_OK);
    assert_memory_equal(value.data, "\x08\0\0\0\x2c\x01\0\0\0\0\0\0\1\0\0\0\0\0\0\0!", 21);
    assert_int_equal(dp_gguf_value(f.read, "gpt2.none", &type, &value), DP_NOTFOUND);
    close_file(&f);
}

/* Row 2i + s of a head is row s * half + i of ours. */
static void rows_of_q_and_k_of_llama_are_interleaved(void **state)
{
    (void)state;
    struct file f;
    open_file(&f, &llama, DP_GGUF_F32);
    check_row(&f, "blk.1.attn_q.weight", 12 + 2 * 5 + 1, DP_LAYER_QKV_W, 12 + 6 + 5, 0);
    check_row(&f, "blk.1.attn_k.weight", 2 * 3, DP_LAYER_QKV_W, 48 + 3, 0);
    check_row(&f, "blk.1.attn_v.weight", 7, DP_LAYER_QKV_W, 48 + 24 + 7, 0);
    check_row(&f, "blk.1.ffn_gate.weight", 39, DP_LAYER_UP_W, 39, 0);
    check_row(&f, "blk.1.ffn_up.weight", 0, DP_LAYER_UP_W, 40, 0);
    assert_non_null(dp_gguf_find(f.read, "output.weight"));
    close_file(&f);
}

static void rows_of_qwen3_stay(void **state)
{
    (void)state;
    struct file f;
    dp_model_config qwen = llama;
    qwen.qk_norm = DP_ON;
    open_file(&f, &qwen, DP_GGUF_F32);
    check_row(&f, "blk.1.attn_q.weight", 23, DP_LAYER_QKV_W, 23, 0);
    assert_int_equal(dp_gguf_find(f.read, "blk.1.attn_k_norm.weight")->dims[0], 12);
    close_file(&f);
}

static uint32_t number_of(const dp_gguf *file, const char *key)
{
    uint32_t type = 0;
    uint32_t number = 0;
    dp_view value = {0};
    if (dp_gguf_value(file, key, &type, &value) != DP_OK) {
        fail_msg("no %s", key);
    }
    assert_true(value.size == sizeof number);
    memcpy(&number, value.data, sizeof number);
    return number;
}

static float real_of(const dp_gguf *file, const char *key)
{
    const uint32_t bits = number_of(file, key);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void gemma_has_its_windows_caps_and_norms(void **state)
{
    (void)state;
    struct file f;
    open_file(&f, &gemma2, DP_GGUF_F32);
    assert_int_equal(number_of(f.read, "gemma2.attention.sliding_window"), 4);
    assert_int_equal(number_of(f.read, "gemma2.attention.sliding_window_pattern"), 2);
    assert_true(real_of(f.read, "gemma2.final_logit_softcapping") == 30.0F);
    assert_true(real_of(f.read, "gemma2.attn_logit_softcapping") == 50.0F);
    /* Its files for transformers have the gain less 1. */
    float gain[32];
    dp_gguf_floats(dp_gguf_find(f.read, "blk.2.post_ffw_norm.weight"), gain);
    assert_true(gain[31] == 1.0F);
    assert_non_null(dp_gguf_find(f.read, "blk.0.post_attention_norm.weight"));
    check_row(&f, "blk.1.attn_q.weight", 23, DP_LAYER_QKV_W, 23, 0);
    close_file(&f);
}

/* Of a head of 12, channels 0 to 3 turn: 0 and 1 with 2 and 3, which our table has in the other
 * half of the head. */
static void neox_has_q_k_and_v_one_after_the_other_and_its_channels_in_their_order(void **state)
{
    (void)state;
    struct file f;
    dp_model_config neox = {.arch = DP_ARCH_NEOX,
                            .layers = 2,
                            .width = 24,
                            .heads = 2,
                            .context = 8,
                            .vocab = VOCAB,
                            .hidden = 40,
                            .rope_width = 4};
    open_file(&f, &neox, DP_GGUF_F32);
    const dp_tensor *const bias = dp_model_tensor(&f.model, 1, DP_LAYER_QKV_B);
    for (size_t i = 0; i < bias->elements; i++) {
        f.theta[bias->offset + i] = (float)i;
    }
    dp_buf_clear(&f.bytes);
    dp_gguf_close(f.read);
    assert_int_equal(dp_gguf_write(&f.model, f.theta, &(dp_gguf_language){.bpe = f.bpe},
                                   DP_GGUF_F32, &f.bytes, NULL),
                     DP_OK);
    assert_int_equal(dp_gguf_open(&f.read, dp_buf_view(&f.bytes), NULL), DP_OK);
    float values[3 * 24];
    static const float head[] = {0, 1, 6, 7, 2, 3, 4, 5, 8, 9, 10, 11};
    dp_gguf_floats(dp_gguf_find(f.read, "blk.1.attn_qkv.bias"), values);
    for (size_t i = 0; i < 12; i++) {
        assert_true(values[i] == head[i]);                /* q of the first head */
        assert_true(values[24 + 12 + i] == 36 + head[i]); /* k of the second */
        assert_true(values[48 + i] == (float)(48 + i));   /* v, which does not turn */
    }
    check_row(&f, "blk.1.attn_qkv.weight", 12 + 2, DP_LAYER_QKV_W, 12 + 6, 0);
    assert_int_equal(number_of(f.read, "gptneox.rope.dimension_count"), 4);
    close_file(&f);
}

static void smaller_types_are_near(void **state)
{
    (void)state;
    static const struct {
        dp_gguf_type type;
        float share;
    } rows[] = {{DP_GGUF_F16, 0x1p-11F}, {DP_GGUF_BF16, 0x1p-8F}, {DP_GGUF_Q8_0, 1.0F / 253}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct file f;
        open_file(&f, &llama, rows[i].type);
        check_row(&f, "blk.1.attn_v.weight", 7, DP_LAYER_QKV_W, 48 + 24 + 7, rows[i].share);
        assert_int_equal(dp_gguf_find(f.read, "blk.0.attn_v.weight")->type, rows[i].type);
        assert_int_equal(dp_gguf_find(f.read, "blk.0.attn_norm.weight")->type, DP_GGUF_F32);
        const dp_gguf_type down = dp_gguf_find(f.read, "blk.0.ffn_down.weight")->type;
        assert_int_equal(down, rows[i].type == DP_GGUF_Q8_0 ? DP_GGUF_F16 : rows[i].type);
        close_file(&f);
    }
}

static void a_model_that_llama_cpp_does_not_compute_is_refused(void **state)
{
    (void)state;
    dp_model_config configs[] = {gpt2, gpt2, llama, gemma2, gemma2, gemma2, llama};
    static const char *const words[] = {"model.softcap 0",          "model.activation gelu",
                                        "model.activation swiglu",  "model.query_scalar 12",
                                        "set model.softcap",        "set model.scores_softcap",
                                        "model.context 4 to export"};
    configs[0].softcap_milli = 30000;
    configs[1].activation = DP_ACTIVATION_RELU2;
    configs[2].activation = DP_ACTIVATION_RELU2;
    configs[3].query_scalar = 24;
    configs[4].softcap_milli = 0;
    configs[5].scores_softcap_milli = 0;
    configs[6].arch = DP_ARCH_PHI3;
    configs[6].window = 4;
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        struct file f;
        dp_why why = {""};
        make(&f, &configs[i]);
        assert_int_equal(dp_gguf_write(&f.model, f.theta, &(dp_gguf_language){.bpe = f.bpe},
                                       DP_GGUF_F32, &f.bytes, &why),
                         DP_UNSUPPORTED);
        assert_non_null(strstr(why.text, words[i]));
        assert_int_equal(f.bytes.size, 0);
        close_file(&f);
    }
}

/* llama.cpp would cut its text in another way. */
static void a_tokenizer_that_llama_cpp_does_not_know_is_refused(void **state)
{
    static const char json[] =
        "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],"
        "[\"a\",-1]]}}";
    struct file f;
    dp_why why = {""};
    (void)state;
    make(&f, &llama);
    dp_bpe_close(f.bpe);
    assert_int_equal(dp_bpe_load(&f.bpe, dp_view_text(json), &why), DP_OK);
    assert_int_equal(dp_gguf_write(&f.model, f.theta, &(dp_gguf_language){.bpe = f.bpe},
                                   DP_GGUF_F32, &f.bytes, &why),
                     DP_UNSUPPORTED);
    assert_non_null(strstr(why.text, "export without --gguf"));
    assert_int_equal(f.bytes.size, 0);
    close_file(&f);
}

/* A tokenizer as SentencePiece's BPE becomes one: <unk>, the 256 bytes, "a", "b", the mark, "ab",
 * "aba", and its merges. */
static void check_sentencepiece(const char *merges, dp_status wanted)
{
    dp_buf json;
    dp_bpe *bpe = NULL;
    char item[512];
    dp_why why = {""};
    dp_buf_init(&json, FILE_MAX);
    assert_int_equal(
        dp_buf_append(
            &json,
            dp_view_text(
                "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\","
                "\"prepend\":\"\342\226\201\"},{\"type\":\"Replace\",\"pattern\":{\"String\":\" "
                "\"},"
                "\"content\":\"\342\226\201\"}]},\"model\":{\"type\":\"BPE\",\"unk_token\":\"<unk>"
                "\","
                "\"byte_fallback\":true,\"vocab\":{\"<unk>\":0")),
        DP_OK);
    for (int i = 0; i < 256; i++) {
        snprintf(item, sizeof item, ",\"<0x%02X>\":%d", i, i + 1);
        assert_int_equal(dp_buf_append(&json, dp_view_text(item)), DP_OK);
    }
    snprintf(item, sizeof item,
             ",\"a\":257,\"b\":258,\"\342\226\201\":259,\"ab\":260,\"aba\":261,\"ba\":262},"
             "\"merges\":[%s]}}",
             merges);
    assert_int_equal(dp_buf_append(&json, dp_view_text(item)), DP_OK);
    if (dp_bpe_load(&bpe, dp_buf_view(&json), &why) != DP_OK) {
        fail_msg("%s", why.text);
    }
    dp_buf_close(&json);
    struct file f;
    make(&f, &llama);
    dp_bpe_close(f.bpe);
    f.bpe = bpe;
    assert_int_equal(dp_gguf_write(&f.model, f.theta, &(dp_gguf_language){.bpe = bpe}, DP_GGUF_F32,
                                   &f.bytes, &why),
                     wanted);
    if (wanted != DP_OK) {
        assert_non_null(strstr(why.text, "no scores of tokens"));
        close_file(&f);
        return;
    }
    assert_int_equal(dp_gguf_open(&f.read, dp_buf_view(&f.bytes), &why), DP_OK);
    uint32_t type = 0;
    dp_view value;
    float scores[263];
    uint32_t kinds[263];
    assert_int_equal(dp_gguf_value(f.read, "tokenizer.ggml.model", &type, &value), DP_OK);
    assert_true(dp_view_equal(value, dp_view_text("llama")));
    assert_int_equal(dp_gguf_value(f.read, "tokenizer.ggml.scores", &type, &value), DP_OK);
    memcpy(scores, value.data + 12, sizeof scores);
    assert_true(scores[260] == 0.0F && scores[262] == -1.0F && scores[261] == -2.0F);
    assert_int_equal(dp_gguf_value(f.read, "tokenizer.ggml.token_type", &type, &value), DP_OK);
    memcpy(kinds, value.data + 12, sizeof kinds);
    assert_true(kinds[0] == 2 && kinds[1] == 6 && kinds[256] == 6 && kinds[257] == 1);
    assert_int_equal(dp_gguf_value(f.read, "tokenizer.ggml.add_space_prefix", &type, &value),
                     DP_OK);
    assert_int_equal(value.data[0], 1);
    close_file(&f);
}

static void tokens_of_sentencepiece_have_the_ranks_of_their_merges_as_scores(void **state)
{
    (void)state;
    check_sentencepiece("\"a b\",\"b a\",\"a ba\",\"ab a\"", DP_OK);
}

/* llama.cpp joins whatever is a token. */
static void merges_that_are_no_scores_are_refused(void **state)
{
    (void)state;
    check_sentencepiece("\"a b\",\"b a\",\"ab a\"", DP_UNSUPPORTED);          /* a split is none */
    check_sentencepiece("\"a b\",\"a ba\",\"b a\",\"ab a\"", DP_UNSUPPORTED); /* two of aba apart */
}

static void a_chat_template_is_carried_along(void **state)
{
    (void)state;
    struct file f;
    uint32_t type = 0;
    dp_view value;
    make(&f, &gpt2);
    const dp_gguf_language language = {.bpe = f.bpe, .chat_template = dp_view_text("{{ x }}")};
    assert_int_equal(dp_gguf_write(&f.model, f.theta, &language, DP_GGUF_F32, &f.bytes, NULL),
                     DP_OK);
    assert_int_equal(dp_gguf_open(&f.read, dp_buf_view(&f.bytes), NULL), DP_OK);
    assert_int_equal(dp_gguf_value(f.read, "tokenizer.chat_template", &type, &value), DP_OK);
    assert_true(dp_view_equal(value, dp_view_text("{{ x }}")));
    close_file(&f);
}

/* The u32 behind a key and its type. */
static uint32_t value_of(const dp_buf *file, const char *key)
{
    const uint8_t *const at = memmem(file->data, file->size, key, strlen(key));
    uint32_t value;
    assert_non_null(at);
    memcpy(&value, at + strlen(key) + sizeof(uint32_t), sizeof value);
    return value;
}

static void texts_begin_with_the_token_of_the_post_processor(void **state)
{
    static const char key[] = "tokenizer.ggml.add_bos_token";
    struct file f;
    dp_why why = {""};
    (void)state;
    make(&f, &llama);
    assert_int_equal(dp_gguf_write(&f.model, f.theta, &(dp_gguf_language){.bpe = f.bpe},
                                   DP_GGUF_F32, &f.bytes, &why),
                     DP_OK);
    assert_int_equal(value_of(&f.bytes, "tokenizer.ggml.bos_token_id"), 258);
    assert_int_equal(value_of(&f.bytes, key) & 0xffU, 0);
    dp_buf_clear(&f.bytes);
    f.bpe->ends = (dp_bpe_ends){.before = {7}, .n_before = 1};
    assert_int_equal(dp_gguf_write(&f.model, f.theta, &(dp_gguf_language){.bpe = f.bpe},
                                   DP_GGUF_F32, &f.bytes, &why),
                     DP_OK);
    assert_int_equal(value_of(&f.bytes, "tokenizer.ggml.bos_token_id"), 7);
    assert_int_equal(value_of(&f.bytes, "tokenizer.ggml.eos_token_id"), 258);
    assert_int_equal(value_of(&f.bytes, key) & 0xffU, 1);
    close_file(&f);
}

static void a_file_cut_short_is_refused(void **state)
{
    (void)state;
    struct file f;
    open_file(&f, &gpt2, DP_GGUF_F16);
    for (size_t size = 0; size < f.bytes.size; size += size < 9000 ? 1 : 997) {
        dp_gguf *none = NULL;
        dp_why why = {""};
        const dp_status status = dp_gguf_open(&none, dp_view_of(f.bytes.data, size), &why);
        assert_true(status == DP_BADMSG);
        assert_true(none == NULL && why.text[0] != '\0');
    }
    close_file(&f);
}

static void without_memory_nothing_is_written_or_read(void **state)
{
    (void)state;
    struct file f;
    dp_gguf *none = NULL;
    open_file(&f, &gpt2, DP_GGUF_F16);
    const size_t whole = f.bytes.size;
    for (size_t n = 1; n < 4; n++) {
        dp_alloc_fail_after(n);
        const dp_status written = dp_gguf_write(
            &f.model, f.theta, &(dp_gguf_language){.bpe = f.bpe}, DP_GGUF_F32, &f.bytes, NULL);
        dp_alloc_fail_after(n);
        const dp_status read = dp_gguf_open(&none, dp_view_of(f.bytes.data, whole), NULL);
        dp_alloc_fail_after(0);
        assert_int_equal(written, DP_NOMEM);
        assert_int_equal(read, DP_NOMEM);
        assert_int_equal(f.bytes.size, whole);
    }
    close_file(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt2_has_its_names_and_turned_weights),
        cmocka_unit_test(rows_of_q_and_k_of_llama_are_interleaved),
        cmocka_unit_test(rows_of_qwen3_stay),
        cmocka_unit_test(gemma_has_its_windows_caps_and_norms),
        cmocka_unit_test(neox_has_q_k_and_v_one_after_the_other_and_its_channels_in_their_order),
        cmocka_unit_test(smaller_types_are_near),
        cmocka_unit_test(a_model_that_llama_cpp_does_not_compute_is_refused),
        cmocka_unit_test(a_tokenizer_that_llama_cpp_does_not_know_is_refused),
        cmocka_unit_test(tokens_of_sentencepiece_have_the_ranks_of_their_merges_as_scores),
        cmocka_unit_test(merges_that_are_no_scores_are_refused),
        cmocka_unit_test(a_chat_template_is_carried_along),
        cmocka_unit_test(texts_begin_with_the_token_of_the_post_processor),
        cmocka_unit_test(a_file_cut_short_is_refused),
        cmocka_unit_test(without_memory_nothing_is_written_or_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
