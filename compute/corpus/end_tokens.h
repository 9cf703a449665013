/* The tokens that end what a model says: of its documents, and of the turns of its chats. */
#ifndef DP_COMPUTE_CORPUS_END_TOKENS_H
#define DP_COMPUTE_CORPUS_END_TOKENS_H

#include "compute/text/bpe.h"

enum { DP_END_TOKENS_MAX = 3 };

typedef struct dp_end_tokens {
    uint32_t ids[DP_END_TOKENS_MAX]; /* each once */
    size_t count;
} dp_end_tokens;

/* Those of bpe, whose files of a chat template (chat_files.h) are in folder, if there are any: the
 * end of a text (dp_bpe_end_of_text); the eos_token of tokenizer_config.json; and the first added
 * token that the template writes behind what the assistant says. A template that cannot be used has
 * none. DP_BADARG (path too long), DP_IO, DP_TOOBIG, DP_NOMEM. */
DP_MUST dp_status dp_end_tokens_find(dp_end_tokens *out, const char *folder, const dp_bpe *bpe,
                                     dp_why *why);

#endif
