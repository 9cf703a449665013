/* The tokens that end what a model says, by templates as those of published models. */
#include "compute/corpus/end_tokens.h"

#include <stdio.h>
#include <string.h>

#include "compute/machine/files.h"
#include "compute/template/chat.h"
#include "tests/lib/check.h"
#include "tests/lib/tempdir.h"

/* A tokenizer of bytes with these special tokens, ids from 256 on. */
static dp_bpe *tokenizer_of(const char *const *names, size_t count)
{
    dp_bpe *bpe;
    uint32_t id;
    CHECK_OK(dp_bpe_train(&bpe, dp_view_text("abc"), DP_BPE_TOKENS_MIN, NULL));
    for (size_t i = 0; i < count; i++) {
        CHECK_OK(dp_bpe_add_special(bpe, dp_view_text(names[i]), &id));
    }
    return bpe;
}

/* The last of the ends, and their number, with a template of tests/golden/templates. */
static void check_ends(const char *template, const char *const *names, size_t count, uint32_t last,
                       size_t n_ends)
{
    char path[256];
    tempdir dir;
    dp_buf source;
    dp_end_tokens ends;
    dp_bpe *const bpe = tokenizer_of(names, count);
    tempdir_open(&dir);
    dp_buf_init(&source, DP_CHAT_CONFIG_MAX);
    snprintf(path, sizeof path, "tests/golden/templates/%s.jinja", template);
    CHECK_OK(dp_file_read(path, &source, NULL));
    CHECK_OK(dp_file_write(dir.path, "chat_template.jinja", dp_buf_view(&source), NULL));
    CHECK_OK(dp_end_tokens_find(&ends, dir.path, bpe, NULL));
    if (ends.count != n_ends || ends.ids[n_ends - 1] != last) {
        fail_msg("%s: %zu ends, the last %u", template, ends.count, ends.ids[ends.count - 1]);
    }
    dp_buf_close(&source);
    dp_bpe_close(bpe);
    tempdir_close(&dir);
}

static void the_token_behind_an_answer_is_one_of_them(void **state)
{
    (void)state;
    static const char *const chatml[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
    static const char *const llama3[] = {"<|end_of_text|>", "<|start_header_id|>", "<|eot_id|>"};
    static const char *const phi3[] = {"<|endoftext|>", "<|user|>", "<|end|>"};
    static const char *const gemma[] = {"<eos>", "<start_of_turn>", "<end_of_turn>"};
    check_ends("chatml", chatml, 3, 258, 2);
    check_ends("qwen3", chatml, 3, 258, 2);
    check_ends("llama3", llama3, 3, 258, 2);
    check_ends("phi3", phi3, 3, 258, 2);
    check_ends("gemma", gemma, 3, 258, 2);
    check_ends("chatml", chatml, 1, 256, 1); /* the tokenizer has no other */
}

static void the_eos_token_of_the_configuration_is_one_of_them(void **state)
{
    (void)state;
    static const char *const names[] = {"<|endoftext|>", "<stop>"};
    static const char *const configs[] = {"{\"eos_token\": \"<stop>\"}",
                                          "{\"eos_token\": {\"content\": \"<stop>\"}}",
                                          "{\"eos_token\": \"<stop>\", \"chat_template\": \"{{\"}"};
    tempdir dir;
    dp_end_tokens ends;
    dp_bpe *const bpe = tokenizer_of(names, 2);
    tempdir_open(&dir);
    CHECK_OK(dp_end_tokens_find(&ends, dir.path, bpe, NULL));
    CHECK(ends.count == 1 && ends.ids[0] == 256);
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        CHECK_OK(dp_file_write(dir.path, "tokenizer_config.json", dp_view_text(configs[i]), NULL));
        CHECK_OK(dp_end_tokens_find(&ends, dir.path, bpe, NULL));
        CHECK(ends.count == 2 && ends.ids[0] == 256 && ends.ids[1] == 257);
    }
    dp_bpe_close(bpe);
    tempdir_close(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_token_behind_an_answer_is_one_of_them),
        cmocka_unit_test(the_eos_token_of_the_configuration_is_one_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
