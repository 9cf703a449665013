/* Any bytes as tokenizer.json: a tokenizer that gives back the text it is given, or a sentence. */
#include <stdlib.h>

#include "compute/text/bpe.h"
#include "compute/text/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const dp_bpe *bpe, const char *text)
{
    dp_tokens tokens = {0};
    dp_buf back;
    dp_buf_init(&back, 1 << 20);
    if (dp_bpe_encode(bpe, dp_view_text(text), &tokens, NULL) != DP_OK ||
        dp_bpe_decode(bpe, tokens.ids, tokens.count, &back) != DP_OK ||
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
    check_text(bpe, "the cat's <|end|> e\xcc\x81 42\n\n\xe7\x8c\xab");
    check_text(bpe, (const char *)"");
    dp_bpe_close(bpe);
    return 0;
}
