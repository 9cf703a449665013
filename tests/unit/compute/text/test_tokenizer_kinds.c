/* The kinds of tokenizers that published models have, against what Hugging Face's library makes of
 * hard texts: tests/golden/make_tokenizer_kinds.py. */
#include "tests/lib/check.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "compute/machine/files.h"
#include "compute/text/bpe.h"
#include "compute/text/bpe_parts.h"
#include "tests/lib/allocfail.h"

enum { BUF_MAX = 16 << 20, KINDS_MAX = 64, TEXT_BYTES_MAX = 4096, IDS_MAX = 4096, TEXTS_MIN = 300 };

static json_t *read_json(const char *path)
{
    dp_buf bytes;
    dp_buf_init(&bytes, BUF_MAX);
    CHECK_OK(dp_file_read(path, &bytes, NULL));
    json_t *const root = json_loadb((const char *)bytes.data, bytes.size, 0, NULL);
    CHECK(root != NULL);
    dp_buf_close(&bytes);
    return root;
}

/* A tokenizer.json from the parts of a kind. */
static json_t *compose(const json_t *all, const json_t *bytes, const json_t *kind)
{
    static const char *const parts[] = {"added_tokens", "normalizer", "pre_tokenizer",
                                        "post_processor", "decoder"};
    const char *const name = json_string_value(json_object_get(kind, "model"));
    const json_t *const model = strcmp(name, "bytes") == 0
                                    ? json_object_get(bytes, "model")
                                    : json_object_get(json_object_get(all, "models"), name);
    json_t *const root = json_object();
    json_t *const changed = json_copy((json_t *)(uintptr_t)model);
    CHECK(json_object_update(changed, json_object_get(kind, "flags")) == 0);
    CHECK(json_object_set_new(root, "model", changed) == 0);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        CHECK(json_object_set(root, parts[i], json_object_get(kind, parts[i])) == 0);
    }
    return root;
}

static dp_bpe *load(const json_t *root)
{
    dp_bpe *bpe = NULL;
    dp_why why = {{0}};
    char *const text = json_dumps(root, 0);
    const dp_status status = dp_bpe_load(&bpe, dp_view_text(text), &why);
    if (status != DP_OK) {
        print_error("%s\n", why.text);
    }
    CHECK_OK(status);
    free(text);
    return bpe;
}

typedef struct kinds {
    size_t count;
    const char *names[KINDS_MAX];
    dp_bpe *bpes[KINDS_MAX];
    dp_encoder *encoders[KINDS_MAX];
    json_t *all;
} kinds;

static void kinds_open(kinds *k)
{
    json_t *const bytes = read_json("tests/golden/tokenizer_gpt2.json");
    k->all = read_json("tests/golden/tokenizer_kinds.json");
    const json_t *const list = json_object_get(k->all, "kinds");
    k->count = json_array_size(list);
    CHECK(k->count > 20 && k->count <= KINDS_MAX);
    for (size_t i = 0; i < k->count; i++) {
        json_t *const root = compose(k->all, bytes, json_array_get(list, i));
        k->names[i] = json_string_value(json_object_get(json_array_get(list, i), "name"));
        k->bpes[i] = load(root);
        CHECK_OK(dp_encoder_open(&k->encoders[i], k->bpes[i], NULL));
        json_decref(root);
    }
    json_decref(bytes);
}

static void kinds_close(kinds *k)
{
    for (size_t i = 0; i < k->count; i++) {
        dp_encoder_close(k->encoders[i]);
        dp_bpe_close(k->bpes[i]);
    }
    json_decref(k->all);
}

typedef struct text {
    uint8_t bytes[TEXT_BYTES_MAX];
    size_t size;
} text;

static void read_hex(const char *hex, text *t)
{
    t->size = strlen(hex) / 2;
    CHECK(t->size <= sizeof t->bytes);
    CHECK_OK(dp_unhex(hex, t->bytes, t->size));
}

static bool print_unlike(const char *name, const text *t, const dp_tokens *got,
                         const uint32_t *wanted, size_t n_wanted)
{
    if (got->count == n_wanted &&
        (n_wanted == 0 || memcmp(got->ids, wanted, n_wanted * sizeof *wanted) == 0)) {
        return false;
    }
    char hex[2 * TEXT_BYTES_MAX + 1];
    dp_hex(dp_view_of(t->bytes, t->size), hex);
    print_error("%s, text '%.*s' %s:\n got", name, (int)t->size, (const char *)t->bytes, hex);
    for (size_t i = 0; i < got->count; i++) {
        print_error(" %u", got->ids[i]);
    }
    print_error("\n not");
    for (size_t i = 0; i < n_wanted; i++) {
        print_error(" %u", wanted[i]);
    }
    print_error("\n");
    return true;
}

/* The texts that kind makes other tokens of, or decodes to other text. */
static size_t check_ids(kinds *k, uint64_t mask, const text *t, const char *numbers)
{
    static uint32_t ids[IDS_MAX];
    size_t n = 0;
    size_t unlike = 0;
    for (const char *at = numbers; *at >= '0' && *at <= '9'; at += *at == ' ') {
        char *end;
        CHECK(n < IDS_MAX);
        ids[n] = (uint32_t)strtoul(at, &end, 10);
        at = end;
        n++;
    }
    for (size_t i = 0; i < k->count; i++) {
        dp_tokens tokens = {0};
        if ((mask >> i & 1U) == 0) {
            continue;
        }
        for (int again = 0; again < 2; again++) { /* Fresh, and from what was learned. */
            tokens.count = 0;
            CHECK_OK(dp_encode(k->encoders[i], dp_view_of(t->bytes, t->size), &tokens, NULL));
            unlike += print_unlike(k->names[i], t, &tokens, ids, n);
        }
        dp_tokens_close(&tokens);
    }
    return unlike;
}

static size_t check_decoded(kinds *k, uint64_t mask, const text *t, const text *wanted)
{
    size_t unlike = 0;
    for (size_t i = 0; i < k->count; i++) {
        dp_tokens tokens = {0};
        dp_buf back;
        if ((mask >> i & 1U) == 0) {
            continue;
        }
        dp_buf_init(&back, BUF_MAX);
        CHECK_OK(dp_encode(k->encoders[i], dp_view_of(t->bytes, t->size), &tokens, NULL));
        CHECK_OK(dp_bpe_decode(k->bpes[i], tokens.ids, tokens.count, &back));
        if (!dp_view_equal(dp_buf_view(&back), dp_view_of(wanted->bytes, wanted->size))) {
            print_error("%s decodes '%.*s' to '%.*s', not '%.*s'\n", k->names[i], (int)t->size,
                        (const char *)t->bytes, (int)back.size, (const char *)back.data,
                        (int)wanted->size, (const char *)wanted->bytes);
            unlike++;
        }
        dp_buf_close(&back);
        dp_tokens_close(&tokens);
    }
    return unlike;
}

/* Lines "T hex", "I mask ids", "D mask hex". */
static void texts_become_the_tokens_of_the_reference_and_text_again(void **state)
{
    (void)state;
    static char line[64 * 1024];
    static text t;
    static text back;
    kinds k = {0};
    size_t texts = 0;
    size_t unlike = 0;
    uint64_t left = 0; /* kinds without a line for the decoded text: it is the text */
    kinds_open(&k);
    const uint64_t all = ((uint64_t)1 << k.count) - 1;
    FILE *const file = fopen("tests/golden/tokenizer_kinds.txt", "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *rest = line + 2;
        if (line[0] == 'T') {
            unlike += check_decoded(&k, left, &t, &t);
            read_hex(rest, &t);
            left = all;
            texts++;
            continue;
        }
        const uint64_t mask = strtoull(rest, &rest, 16);
        CHECK(mask != 0 && (mask & ~all) == 0 && *rest == ' ');
        if (line[0] == 'I') {
            unlike += check_ids(&k, mask, &t, rest + 1);
        } else {
            read_hex(rest + 1, &back);
            unlike += check_decoded(&k, mask, &t, &back);
            left &= ~mask;
        }
    }
    unlike += check_decoded(&k, left, &t, &t);
    fclose(file);
    CHECK(texts >= TEXTS_MIN);
    CHECK(unlike == 0);
    kinds_close(&k);
}

static void a_saved_tokenizer_of_any_kind_is_the_same_tokenizer(void **state)
{
    (void)state;
    static const char sample[] = "The tide, naïve\xcc\x81 <mask>  word 1234\n\xe7\x8c\xab[rs] x";
    kinds k = {0};
    kinds_open(&k);
    for (size_t i = 0; i < k.count; i++) {
        dp_bpe *again;
        dp_buf first;
        dp_buf second;
        dp_tokens a = {0};
        dp_tokens b = {0};
        dp_buf_init(&first, BUF_MAX);
        dp_buf_init(&second, BUF_MAX);
        CHECK_OK(dp_bpe_save(k.bpes[i], &first));
        CHECK_OK(dp_bpe_load(&again, dp_buf_view(&first), NULL));
        CHECK_OK(dp_bpe_save(again, &second));
        CHECK(dp_view_equal(dp_buf_view(&first), dp_buf_view(&second)));
        CHECK_OK(dp_bpe_encode(k.bpes[i], dp_view_text(sample), &a, NULL));
        CHECK_OK(dp_bpe_encode(again, dp_view_text(sample), &b, NULL));
        CHECK(a.count > 5 && a.count == b.count &&
              memcmp(a.ids, b.ids, a.count * sizeof *a.ids) == 0);
        CHECK(dp_bpe_count(again) == dp_bpe_count(k.bpes[i]));
        dp_tokens_close(&a);
        dp_tokens_close(&b);
        dp_buf_close(&first);
        dp_buf_close(&second);
        dp_bpe_close(again);
    }
    kinds_close(&k);
}

static size_t kind_called(const kinds *k, const char *name)
{
    for (size_t i = 0; i < k->count; i++) {
        if (strcmp(k->names[i], name) == 0) {
            return i;
        }
    }
    print_error("no kind %s\n", name);
    CHECK(false);
    return 0;
}

/* A mark for a space, and a token for a byte, count one byte of text. */
static void tokens_know_the_bytes_of_text_that_they_stand_for(void **state)
{
    (void)state;
    kinds k = {0};
    kinds_open(&k);
    const dp_bpe *const llama = k.bpes[kind_called(&k, "llama2")];
    uint32_t id = 0;
    CHECK(dp_bpe_find(llama, dp_view_text("\xe2\x96\x81the"), &id));
    CHECK(dp_bpe_text_bytes(llama, id) == 4);
    CHECK(dp_bpe_find(llama, dp_view_text("<0xE7>"), &id));
    CHECK(dp_bpe_text_bytes(llama, id) == 1);
    CHECK(dp_bpe_text_bytes(llama, (uint32_t)dp_bpe_count(llama)) == 0);
    CHECK(dp_bpe_special(llama, dp_view_text("</s>"), &id) && dp_bpe_text_bytes(llama, id) == 0);
    kinds_close(&k);
}

static void documents_stand_between_the_tokens_of_the_post_processor(void **state)
{
    (void)state;
    kinds k = {0};
    size_t n = 0;
    uint32_t id = 0;
    kinds_open(&k);
    const dp_bpe *const llama = k.bpes[kind_called(&k, "llama2")];
    const uint32_t *const before = dp_bpe_begin_of_text(llama, &n);
    CHECK(n == 1 && before[0] == 1);
    CHECK(dp_bpe_end_of_text(llama, &id) && id == 2); /* by its name, </s> */
    const dp_bpe *const t5 = k.bpes[kind_called(&k, "t5")];
    CHECK(dp_bpe_begin_of_text(t5, &n) != NULL && n == 0);
    CHECK(dp_bpe_end_of_text(t5, &id) && id == 1);
    const dp_bpe *const albert = k.bpes[kind_called(&k, "albert")];
    CHECK(dp_bpe_begin_of_text(albert, &n)[0] == 0 && n == 1);
    CHECK(dp_bpe_end_of_text(albert, &id) && id == 1);
    kinds_close(&k);
}

static dp_status load_and_encode(void *context)
{
    dp_bpe *bpe;
    dp_tokens tokens = {0};
    dp_buf back;
    DP_TRY(dp_bpe_load(&bpe, *(const dp_view *)context, NULL));
    dp_buf_init(&back, BUF_MAX);
    dp_status status = dp_bpe_encode(
        bpe, dp_view_text("\xef\xac\x81 The  ti\xc2\xad\x64\x65s word"), &tokens, NULL);
    if (status == DP_OK) {
        status = dp_bpe_decode(bpe, tokens.ids, tokens.count, &back);
    }
    dp_buf_close(&back);
    dp_tokens_close(&tokens);
    dp_bpe_close(bpe);
    return status;
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    static const char *const names[] = {"spm", "albert", "deepseek-v3"};
    kinds k = {0};
    kinds_open(&k);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        dp_buf json;
        dp_buf_init(&json, BUF_MAX);
        CHECK_OK(dp_bpe_save(k.bpes[kind_called(&k, names[i])], &json));
        dp_view view = dp_buf_view(&json);
        CHECK(fail_each_allocation(load_and_encode, &view) > 20);
        dp_buf_close(&json);
    }
    kinds_close(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_become_the_tokens_of_the_reference_and_text_again),
        cmocka_unit_test(a_saved_tokenizer_of_any_kind_is_the_same_tokenizer),
        cmocka_unit_test(tokens_know_the_bytes_of_text_that_they_stand_for),
        cmocka_unit_test(documents_stand_between_the_tokens_of_the_post_processor),
        cmocka_unit_test(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
