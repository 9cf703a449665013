#include "tests/lib/check.h"

#include <jansson.h>
#include <stdlib.h>

#include "compute/machine/files.h"
#include "compute/text/bpe.h"
#include "compute/text/bpe_parts.h"
#include "tests/lib/allocfail.h"

enum { BUF_MAX = 16 << 20 };

static json_t *example(void)
{
    dp_buf bytes;
    dp_buf_init(&bytes, BUF_MAX);
    CHECK_OK(dp_file_read("tests/golden/tokenizer_llama3.json", &bytes, NULL));
    json_t *const root = json_loadb((const char *)bytes.data, bytes.size, 0, NULL);
    CHECK(root != NULL);
    dp_buf_close(&bytes);
    return root;
}

static dp_status load(json_t *root, dp_bpe **bpe, dp_why *why)
{
    char *const text = json_dumps(root, 0);
    CHECK(text != NULL);
    const dp_status status = dp_bpe_load(bpe, dp_view_text(text), why);
    free(text);
    return status;
}

/* The file with a small change is refused, and the sentence has these words. Takes root. */
static void check_refused(json_t *root, dp_status wanted, const char *words)
{
    dp_bpe *bpe;
    dp_why why = {{0}};
    CHECK_STATUS(load(root, &bpe, &why), wanted);
    if (strstr(why.text, words) == NULL) {
        print_error("'%s' lacks '%s'\n", why.text, words);
        CHECK(false);
    }
    json_decref(root);
}

static json_t *model_of(json_t *root)
{
    return json_object_get(root, "model");
}

static void set(json_t *object, const char *key, json_t *value)
{
    CHECK(json_object_set_new(object, key, value) == 0);
}

static void files_that_are_no_tokenizers_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "{",
        "[]",
        "{}",
        "{\"model\":7,\"pre_tokenizer\":[]}",
        "{\"model\":{\"type\":\"BPE\"}}",
        "{\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":7}}",
        "{\"model\":{\"type\":\"BPE\",\"merges\":{},\"vocab\":{}}}",
        "{\"model\":{\"merges\":[],\"vocab\":{}},\"pre_tokenizer\":{\"type\":\"ByteLevel\","
        "\"add_prefix_space\":false}}",
        "{\"a\":1,\"a\":2}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        dp_bpe *bpe;
        dp_why why = {{0}};
        CHECK_STATUS(dp_bpe_load(&bpe, dp_view_text(texts[i]), &why), DP_BADMSG);
        CHECK(why.text[0] != '\0');
    }
}

static void vocabularies_that_cannot_be_are_named(void **state)
{
    (void)state;
    json_t *root = example();
    set(json_object_get(model_of(root), "vocab"), "tide", json_integer(5));
    check_refused(root, DP_BADMSG, "both have id 5");
    root = example();
    set(json_object_get(model_of(root), "vocab"), "tide", json_integer(DP_BPE_TOKENS_MAX));
    check_refused(root, DP_BADMSG, "'tide' needs an id from 0 to 262143");
    root = example();
    set(json_object_get(model_of(root), "vocab"), "tide", json_string("9"));
    check_refused(root, DP_BADMSG, "'tide' needs an id");
    root = example();
    set(json_object_get(model_of(root), "vocab"), "two words", json_integer(9000));
    check_refused(root, DP_BADMSG, "'two words' (id 9000) is not written in bytes");
    root = example();
    CHECK(json_object_del(json_object_get(model_of(root), "vocab"), "!") == 0);
    check_refused(root, DP_BADMSG, "some byte has no token");
    root = example();
    set(model_of(root), "vocab", json_object());
    check_refused(root, DP_BADMSG, "has 0 tokens");
}

static void merges_that_cannot_be_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *merge; /* JSON */
        const char *words;
    } cases[] = {
        {"[\"zzz\", \"b\"]", "joins 'zzz', which is no token"},
        {"[\"a\", \"\\u4e00\"]", "which is no token"},
        {"[\"q\", \"q\"]", "makes no token"},
        {"[\"a\"]", "is not a pair"},
        {"[\"a\", 7]", "is not a pair"},
        {"\"ab\"", "is not a pair"},
        {"7", "is not a pair"},
        {"[\"\", \"a\"]", "which is no token"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *const root = example();
        json_t *const merge = json_loads(cases[i].merge, JSON_DECODE_ANY, NULL);
        CHECK(merge != NULL);
        CHECK(json_array_insert_new(json_object_get(model_of(root), "merges"), 3, merge) == 0);
        check_refused(root, DP_BADMSG, "merge 3");
        json_t *const again = example();
        CHECK(json_array_insert_new(json_object_get(model_of(again), "merges"), 3,
                                    json_loads(cases[i].merge, JSON_DECODE_ANY, NULL)) == 0);
        check_refused(again, DP_BADMSG, cases[i].words);
    }
    json_t *const root = example();
    json_t *const merges = json_object_get(model_of(root), "merges");
    CHECK(json_array_append(merges, json_array_get(merges, 0)) == 0);
    check_refused(root, DP_BADMSG, "stands there twice");
}

static void change_added(json_t *root, size_t index, const char *key, json_t *value)
{
    set(json_array_get(json_object_get(root, "added_tokens"), index), key, value);
}

static void added_tokens_that_cannot_be_are_named(void **state)
{
    (void)state;
    json_t *root = example();
    change_added(root, 0, "id", json_integer(5));
    check_refused(root, DP_BADMSG, "another token has this id");
    root = example();
    change_added(root, 1, "id", json_integer(700));
    check_refused(root, DP_BADMSG, "another token has this id");
    root = example();
    change_added(root, 1, "content", json_string("<|end|>"));
    check_refused(root, DP_BADMSG, "or this text");
    root = example();
    change_added(root, 1, "content", json_string("e"));
    check_refused(root, DP_BADMSG, "in the vocabulary");
    root = example();
    change_added(root, 1, "content", json_string(""));
    check_refused(root, DP_BADMSG, "it cannot be read");
    root = example(); /* A hole in front of it, which Hugging Face's tokenizers close. */
    const size_t size = json_object_size(json_object_get(model_of(root), "vocab"));
    char words[64];
    snprintf(words, sizeof words, "has id 5000, and Hugging Face's tokenizers give it %zu", size);
    change_added(root, 0, "id", json_integer(5000));
    check_refused(root, DP_UNSUPPORTED, words);
    root = example();
    change_added(root, 1, "id", json_integer(-1));
    check_refused(root, DP_BADMSG, "an id below");
}

static void add_token(json_t *root, int id, const char *content, bool special)
{
    json_t *const token = json_object();
    set(token, "id", json_integer(id));
    set(token, "content", json_string(content));
    set(token, "special", json_boolean(special));
    CHECK(json_array_append_new(json_object_get(root, "added_tokens"), token) == 0);
}

/* As <image_soft_token> of Gemma 3, which its model has no row for. */
static void a_special_token_beyond_all_ids_is_text(void **state)
{
    dp_bpe *bpe;
    dp_tokens tokens = {0};
    dp_why why = {{0}};
    (void)state;
    json_t *root = example();
    add_token(root, DP_BPE_TOKENS_MAX, "<soft>", false);
    check_refused(root, DP_BADMSG, "an id below");
    root = example();
    add_token(root, DP_BPE_TOKENS_MAX, "<soft>", true);
    CHECK_OK(load(root, &bpe, &why));
    CHECK(dp_bpe_count(bpe) < DP_BPE_TOKENS_MAX);
    CHECK_OK(dp_bpe_encode(bpe, dp_view_text("<soft>"), &tokens, &why));
    CHECK(tokens.count > 1);
    dp_tokens_close(&tokens);
    dp_bpe_close(bpe);
    json_decref(root);
}

/* A part that is not known is named by its place and its type. */
static void a_file_that_would_make_other_tokens_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *part;
        const char *json;
        const char *words;
    } cases[] = {
        {"model", "{\"type\":\"WordPiece\",\"merges\":[],\"vocab\":{}}",
         "model has the type 'WordPiece'"},
        {"normalizer", "{\"type\":\"BertNormalizer\"}", "normalizer has the type 'BertNormalizer'"},
        {"normalizer", "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},{\"type\":7}]}",
         "normalizer.normalizers[1] has the type ''"},
        {"normalizer",
         "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"a|\\\\bb\"},\"content\":\"c\"}",
         "normalizer, step 0: the pattern has an escape that is not done here before byte 4"},
        {"pre_tokenizer", "{\"type\":\"UnicodeScripts\"}",
         "pre_tokenizer has the type 'UnicodeScripts'"},
        {"pre_tokenizer",
         "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Sequence\",\"pretokenizers\":["
         "{\"type\":\"BertPreTokenizer\"}]}]}",
         "pre_tokenizer.pretokenizers[0].pretokenizers[0] has the type 'BertPreTokenizer'"},
        {"pre_tokenizer",
         "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"ByteLevel\"},"
         "{\"type\":\"Digits\"}]}",
         "pre_tokenizer.pretokenizers[1] follows ByteLevel"},
        {"pre_tokenizer",
         "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(a+)+\\\\b\"},\"behavior\":\"Isolated\","
         "\"invert\":false}",
         "pre_tokenizer, step 0: the pattern has an escape"},
        {"decoder", "{\"type\":\"WordPiece\"}", "decoder has the type 'WordPiece'"},
        {"decoder", "{\"type\":\"ByteFallback\"}", "decoder has the type 'ByteFallback'"},
        {"post_processor", "{\"type\":\"Other\"}", "post_processor has the type 'Other'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *const root = example();
        json_t *const part = json_loads(cases[i].json, 0, NULL);
        CHECK(part != NULL);
        set(root, cases[i].part, part);
        check_refused(root, DP_UNSUPPORTED, cases[i].words);
    }
    json_t *root = example();
    set(model_of(root), "dropout", json_real(0.1));
    check_refused(root, DP_UNSUPPORTED, "dropout");
    root = example();
    set(model_of(root), "end_of_word_suffix", json_string("</w>"));
    check_refused(root, DP_UNSUPPORTED, "end_of_word_suffix");
}

static void parts_that_are_damaged_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *part;
        const char *json;
        const char *words;
    } cases[] = {
        {"normalizer", "{\"type\":\"Sequence\",\"normalizers\":7}", "needs a list"},
        {"normalizer", "{\"type\":\"Replace\",\"content\":\"\"}", "needs a pattern"},
        {"normalizer", "{\"type\":\"Prepend\",\"prepend\":\"\"}", "needs a short text"},
        {"normalizer", "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAA\"}",
         "normalizer, precompiled_charsmap: it is not base64"},
        {"pre_tokenizer", "{\"type\":\"Split\",\"behavior\":\"Isolated\"}", "needs a pattern"},
        {"pre_tokenizer",
         "{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":\"Other\"}", "behavior"},
        {"pre_tokenizer", "{\"type\":\"Metaspace\",\"replacement\":\"ab\"}", "one character"},
        {"pre_tokenizer",
         "{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"often\"}",
         "needs a prepend_scheme"},
        {"post_processor", "{\"type\":\"TemplateProcessing\",\"single\":[]}", "no single text"},
        {"post_processor", "{\"type\":\"BertProcessing\",\"cls\":[\"a\",9999],\"sep\":[\"b\",1]}",
         "adds token 9999, which is none"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *const root = example();
        json_t *const part = json_loads(cases[i].json, 0, NULL);
        CHECK(part != NULL);
        set(root, cases[i].part, part);
        check_refused(root, DP_BADMSG, cases[i].words);
    }
}

/* A Unigram of letters. */
static json_t *small_unigram(void)
{
    json_t *const root =
        json_pack("{s:{s:s, s:i, s:[[s,f],[s,f],[s,f]]}}", "model", "type", "Unigram", "unk_id", 0,
                  "vocab", "<unk>", 0.0, "a", -1.0, "ab", -1.5);
    CHECK(root != NULL);
    return root;
}

static void unigrams_that_cannot_be_are_named(void **state)
{
    (void)state;
    dp_bpe *bpe;
    json_t *root = small_unigram();
    CHECK_OK(load(root, &bpe, NULL));
    dp_tokens tokens = {0};
    CHECK_OK(dp_bpe_encode(bpe, dp_view_text("aabx"), &tokens, NULL));
    CHECK(tokens.count == 3 && tokens.ids[0] == 1 && tokens.ids[1] == 2 && tokens.ids[2] == 0);
    dp_tokens_close(&tokens);
    dp_bpe_close(bpe);
    set(model_of(root), "unk_id", json_null());
    check_refused(root, DP_BADMSG, "an unk_id in it");
    root = small_unigram();
    set(model_of(root), "unk_id", json_integer(3));
    check_refused(root, DP_BADMSG, "an unk_id in it");
    root = small_unigram();
    set(model_of(root), "alpha", json_real(0.1));
    check_refused(root, DP_UNSUPPORTED, "alpha");
    root = small_unigram();
    json_t *const vocab = json_object_get(model_of(root), "vocab");
    CHECK(json_array_append_new(vocab, json_pack("[s,f]", "a", -2.0)) == 0);
    check_refused(root, DP_BADMSG, "'a' (id 3) stands there twice");
    root = small_unigram();
    CHECK(json_array_append_new(json_object_get(model_of(root), "vocab"), json_pack("[s]", "b")) ==
          0);
    check_refused(root, DP_BADMSG, "model.vocab[3] is no pair");
}

static void ids_without_a_token_are_allowed_and_empty(void **state)
{
    (void)state;
    json_t *const root = example();
    dp_bpe *bpe;
    set(json_object_get(model_of(root), "vocab"), "tide", json_integer(1000));
    for (size_t i = 0; i < 5; i++) {
        change_added(root, i, "id", json_integer(701 + (json_int_t)i));
    }
    CHECK_OK(load(root, &bpe, NULL));
    CHECK(dp_bpe_count(bpe) == 1001);
    CHECK(dp_bpe_token(bpe, 700).size == 0 && dp_bpe_token(bpe, 5000).size == 0);
    CHECK(dp_view_equal(dp_bpe_token(bpe, 1000), dp_view_text("tide")));
    dp_bpe_close(bpe);
    json_decref(root);
}

static void an_added_token_may_stand_in_the_vocabulary_as_it_is_written(void **state)
{
    (void)state;
    json_t *const root = example();
    dp_bpe *bpe;
    json_t *const vocab = json_object_get(model_of(root), "vocab");
    set(vocab, "<|end|>", json_integer(700));
    set(vocab, "\xef\xbd\x9c tool", json_integer(701)); /* Has characters that stand for no byte. */
    change_added(root, 2, "content", json_string("\xef\xbd\x9c tool"));
    change_added(root, 2, "id", json_integer(701));
    change_added(root, 1, "id", json_integer(702));
    dp_why why = {{0}};
    CHECK_OK(load(root, &bpe, &why));
    uint32_t id = 0;
    CHECK(dp_bpe_special(bpe, dp_view_text("\xef\xbd\x9c tool"), &id) && id == 701);
    dp_tokens tokens = {0};
    CHECK_OK(dp_bpe_encode(bpe, dp_view_text("\xef\xbd\x9c tool<|end|>"), &tokens, NULL));
    CHECK(tokens.count == 2 && tokens.ids[0] == 701 && tokens.ids[1] == 700);
    dp_tokens_close(&tokens);
    dp_bpe_close(bpe);
    json_decref(root);
}

static void a_special_token_may_follow_training(void **state)
{
    (void)state;
    dp_bpe *bpe;
    uint32_t id = 0;
    CHECK_OK(dp_bpe_train(&bpe, dp_view_text("abab abab"), 258, NULL));
    const size_t count = dp_bpe_count(bpe);
    CHECK_OK(dp_bpe_add_special(bpe, dp_view_text("<|endoftext|>"), &id));
    CHECK(dp_bpe_text_bytes(bpe, id) == 0);
    CHECK(id == count && dp_bpe_count(bpe) == count + 1);
    CHECK_STATUS(dp_bpe_add_special(bpe, dp_view_text("<|endoftext|>"), &id), DP_EXISTS);
    CHECK_STATUS(dp_bpe_add_special(bpe, dp_view_text(""), &id), DP_BADARG);
    dp_bpe_close(bpe);
}

static dp_status load_small(void *context)
{
    dp_bpe *bpe;
    DP_TRY(dp_bpe_load(&bpe, *(const dp_view *)context, NULL));
    dp_bpe_close(bpe);
    return DP_OK;
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    dp_buf json;
    dp_buf_init(&json, BUF_MAX);
    CHECK_OK(dp_file_read("tests/golden/tokenizer_qwen.json", &json, NULL));
    dp_view view = dp_buf_view(&json);
    CHECK(fail_each_allocation(load_small, &view) > 10);
    dp_buf_close(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_that_are_no_tokenizers_are_refused),
        cmocka_unit_test(vocabularies_that_cannot_be_are_named),
        cmocka_unit_test(merges_that_cannot_be_are_named),
        cmocka_unit_test(added_tokens_that_cannot_be_are_named),
        cmocka_unit_test(a_special_token_beyond_all_ids_is_text),
        cmocka_unit_test(a_file_that_would_make_other_tokens_is_refused),
        cmocka_unit_test(parts_that_are_damaged_are_named),
        cmocka_unit_test(unigrams_that_cannot_be_are_named),
        cmocka_unit_test(ids_without_a_token_are_allowed_and_empty),
        cmocka_unit_test(an_added_token_may_stand_in_the_vocabulary_as_it_is_written),
        cmocka_unit_test(a_special_token_may_follow_training),
        cmocka_unit_test(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
