/* Any bytes as tokenizer.json: a tokenizer that makes tokens of its own of a text and text of
 * these, or a sentence. */
#include <stdlib.h>

#include "compute/text/bpe.h"
#include "compute/unicode/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_ids(const dp_bpe *bpe, const dp_tokens *tokens)
{
    for (size_t i = 0; i < tokens->count; i++) {
        if (dp_bpe_token(bpe, tokens->ids[i]).size == 0) {
            abort();
        }
    }
}

/* A pattern or a normalizer of the file may make too much of the text; it then says so. */
static void check_text(const dp_bpe *bpe, const char *text)
{
    dp_tokens tokens = {0};
    dp_buf back;
    dp_why why = {{0}};
    dp_buf_init(&back, 1 << 20);
    const dp_status status = dp_bpe_encode(bpe, dp_view_text(text), &tokens, &why);
    if (status != DP_OK && (status != DP_TOOBIG || why.text[0] == '\0' || tokens.count > 0)) {
        abort();
    }
    check_ids(bpe, &tokens);
    const dp_status decoded = dp_bpe_decode(bpe, tokens.ids, tokens.count, &back);
    if ((decoded != DP_OK && decoded != DP_TOOBIG) ||
        dp_utf8_bad_at(dp_buf_view(&back)) != back.size) {
        abort();
    }
    dp_buf_close(&back);
    dp_tokens_close(&tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dp_bpe *bpe;
    dp_why why = {{0}};
    const dp_status status = dp_bpe_load(&bpe, dp_view_of(data, size), &why);
    if (status != DP_OK) {
        if (why.text[0] == '\0') {
            abort();
        }
        return 0;
    }
    check_text(bpe,
               "the cat's <|end|> e\xcc\x81 42\n\n\xe7\x8c\xab <m> [r]  word a`` \xef\xac\x81");
    check_text(bpe, (const char *)"");
    dp_bpe_close(bpe);
    return 0;
}
