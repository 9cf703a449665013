#include "tests/lib/check.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "compute/machine/files.h"
#include "compute/text/bpe.h"
#include "compute/text/bpe_parts.h"
#include "tests/lib/allocfail.h"

enum { BUF_MAX = 16 << 20, LINE_MAX_BYTES = 8192, IDS_MAX = 2048, KINDS = 3 };

static const char *const kinds[KINDS] = {"gpt2", "llama3", "qwen"};

/* A tokenizer of tests/golden, made by make_tokenizers.py. */
static dp_bpe *golden(const char *kind)
{
    char path[64];
    dp_buf json;
    dp_bpe *bpe = NULL;
    dp_why why = {{0}};
    snprintf(path, sizeof path, "tests/golden/tokenizer_%s.json", kind);
    dp_buf_init(&json, BUF_MAX);
    CHECK_OK(dp_file_read(path, &json, &why));
    const dp_status status = dp_bpe_load(&bpe, dp_buf_view(&json), &why);
    if (status != DP_OK) {
        print_error("%s: %s\n", path, why.text);
    }
    CHECK_OK(status);
    dp_buf_close(&json);
    return bpe;
}

typedef struct vector {
    size_t kind;
    uint8_t text[LINE_MAX_BYTES];
    size_t size;
    uint32_t ids[IDS_MAX];
    size_t n_ids;
} vector;

static bool read_vector(FILE *file, vector *v)
{
    static char line[4 * LINE_MAX_BYTES];
    if (fgets(line, sizeof line, file) == NULL) {
        return false;
    }
    char *const hex = strchr(line, '\t');
    char *const numbers = hex == NULL ? NULL : strchr(hex + 1, '\t');
    CHECK(numbers != NULL && strchr(line, '\n') != NULL);
    *hex = '\0';
    *numbers = '\0';
    v->kind = 0;
    while (v->kind < KINDS && strcmp(kinds[v->kind], line) != 0) {
        v->kind++;
    }
    v->size = strlen(hex + 1) / 2;
    CHECK(v->kind < KINDS && v->size <= sizeof v->text);
    CHECK_OK(dp_unhex(hex + 1, v->text, v->size));
    v->n_ids = 0;
    for (char *at = numbers + 1; *at >= '0' && *at <= '9';) {
        CHECK(v->n_ids < IDS_MAX);
        v->ids[v->n_ids] = (uint32_t)strtoul(at, &at, 10);
        v->n_ids++;
        at += *at == ' ';
    }
    return true;
}

static void check_vector(dp_encoder *encoder, const vector *v)
{
    dp_tokens tokens = {0};
    CHECK_OK(dp_encode(encoder, dp_view_of(v->text, v->size), &tokens, NULL));
    if (tokens.count != v->n_ids ||
        (v->n_ids > 0 && memcmp(tokens.ids, v->ids, v->n_ids * sizeof *v->ids) != 0)) {
        print_error("%s, text '%.*s': %zu tokens, wanted %zu\n", kinds[v->kind], (int)v->size,
                    (const char *)v->text, tokens.count, v->n_ids);
        for (size_t i = 0; i < tokens.count; i++) {
            print_error(" %u", tokens.ids[i]);
        }
        print_error("\n");
        CHECK(false);
    }
    dp_tokens_close(&tokens);
}

static void texts_become_the_tokens_of_the_reference(void **state)
{
    (void)state;
    static vector v;
    dp_bpe *bpes[KINDS];
    dp_encoder *encoders[KINDS];
    unsigned seen = 0;
    FILE *const file = fopen("tests/golden/tokenizer_vectors.txt", "r");
    CHECK(file != NULL);
    for (size_t i = 0; i < KINDS; i++) {
        bpes[i] = golden(kinds[i]);
        CHECK_OK(dp_encoder_open(&encoders[i], bpes[i], NULL));
    }
    while (read_vector(file, &v)) {
        check_vector(encoders[v.kind], &v); /* Fresh, and ... */
        check_vector(encoders[v.kind], &v); /* ... from what was learned. */
        seen++;
    }
    fclose(file);
    for (size_t i = 0; i < KINDS; i++) {
        dp_encoder_close(encoders[i]);
        dp_bpe_close(bpes[i]);
    }
    CHECK(seen > 100);
}

static void tokens_give_back_the_text_in_its_normal_form(void **state)
{
    (void)state;
    static const char text[] = "cafe\xcc\x81! <|end|>1234\n\n \xe7\x8c\xab";
    for (size_t i = 0; i < KINDS; i++) {
        dp_bpe *const bpe = golden(kinds[i]);
        dp_tokens tokens = {0};
        dp_buf back;
        dp_buf_init(&back, 1024);
        CHECK_OK(dp_bpe_encode(bpe, dp_view_text(text), &tokens, NULL));
        CHECK_OK(dp_bpe_decode(bpe, tokens.ids, tokens.count, &back));
        const char *const wanted =
            strcmp(kinds[i], "qwen") == 0 ? "caf\xc3\xa9! <|end|>1234\n\n \xe7\x8c\xab" : text;
        CHECK(dp_view_equal(dp_buf_view(&back), dp_view_text(wanted)));
        dp_buf_close(&back);
        dp_tokens_close(&tokens);
        dp_bpe_close(bpe);
    }
}

static void a_saved_tokenizer_is_the_same_tokenizer(void **state)
{
    (void)state;
    for (size_t i = 0; i < KINDS; i++) {
        dp_bpe *const bpe = golden(kinds[i]);
        dp_bpe *back;
        dp_buf first;
        dp_buf second;
        dp_buf_init(&first, BUF_MAX);
        dp_buf_init(&second, BUF_MAX);
        CHECK_OK(dp_bpe_save(bpe, &first));
        CHECK_OK(dp_bpe_load(&back, dp_buf_view(&first), NULL));
        CHECK_OK(dp_bpe_save(back, &second));
        CHECK(dp_view_equal(dp_buf_view(&first), dp_buf_view(&second)));
        CHECK(back->pieces.count == 1 && back->normalizer.count == bpe->normalizer.count &&
              back->ignore_merges == bpe->ignore_merges);
        CHECK(dp_view_equal(
            dp_view_of(back->pieces.items[0].pattern, back->pieces.items[0].pattern_bytes),
            dp_view_of(bpe->pieces.items[0].pattern, bpe->pieces.items[0].pattern_bytes)));
        CHECK(back->added.count == 1 && back->added_raw.count == 4);
        dp_buf_close(&first);
        dp_buf_close(&second);
        dp_bpe_close(back);
        dp_bpe_close(bpe);
    }
}

static void text_that_is_not_utf8_leaves_the_tokens_alone(void **state)
{
    (void)state;
    dp_bpe *const bpe = golden("qwen");
    dp_tokens tokens = {0};
    dp_why why = {{0}};
    CHECK_OK(dp_bpe_encode(bpe, dp_view_text("so far"), &tokens, NULL));
    const size_t before = tokens.count;
    CHECK_STATUS(dp_bpe_encode(bpe, dp_view_text("good \xff bad"), &tokens, &why), DP_BADMSG);
    CHECK(tokens.count == before && strstr(why.text, "at byte 5;") != NULL);
    CHECK_OK(dp_bpe_encode(bpe, dp_view_of(NULL, 0), &tokens, &why));
    CHECK(tokens.count == before);
    dp_tokens_close(&tokens);
    dp_bpe_close(bpe);
}

/* The words that an encoder has learned must not change its output: it is compared with a new
 * encoder. */
static void the_cache_changes_no_token(void **state)
{
    (void)state;
    dp_bpe *const bpe = golden("llama3");
    dp_encoder *encoder;
    dp_rng rng;
    CHECK_OK(dp_encoder_open(&encoder, bpe, NULL));
    dp_rng_init(&rng, 8);
    for (int i = 0; i < 200; i++) {
        char text[400];
        const size_t size = (size_t)dp_rng_below(&rng, sizeof text);
        for (size_t j = 0; j < size; j++) {
            text[j] = "tehaoin sr\n.1"[dp_rng_below(&rng, 13)];
        }
        dp_tokens learned = {0};
        dp_tokens fresh = {0};
        CHECK_OK(dp_encode(encoder, dp_view_of(text, size), &learned, NULL));
        CHECK_OK(dp_bpe_encode(bpe, dp_view_of(text, size), &fresh, NULL));
        CHECK(learned.count == fresh.count);
        CHECK(fresh.count == 0 ||
              memcmp(learned.ids, fresh.ids, fresh.count * sizeof *fresh.ids) == 0);
        dp_tokens_close(&learned);
        dp_tokens_close(&fresh);
    }
    dp_encoder_close(encoder);
    dp_bpe_close(bpe);
}

static dp_status encode_once(void *context)
{
    dp_tokens tokens = {0};
    const dp_status status = dp_bpe_encode(
        context, dp_view_text("cafe\xcc\x81 and a word of more than twenty-two bytes"), &tokens,
        NULL);
    dp_tokens_close(&tokens);
    return status;
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    dp_bpe *const bpe = golden("qwen");
    CHECK(fail_each_allocation(encode_once, bpe) > 5);
    dp_bpe_close(bpe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_become_the_tokens_of_the_reference),
        cmocka_unit_test(tokens_give_back_the_text_in_its_normal_form),
        cmocka_unit_test(a_saved_tokenizer_is_the_same_tokenizer),
        cmocka_unit_test(text_that_is_not_utf8_leaves_the_tokens_alone),
        cmocka_unit_test(the_cache_changes_no_token),
        cmocka_unit_test(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
