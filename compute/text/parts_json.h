/* Reads the parts of tokenizer.json around its model: normalizer, pre-tokenizer, decoder,
 * post-processor. A part that is not done here is refused by its type and its place in the file. */
#ifndef DP_COMPUTE_TEXT_PARTS_JSON_H
#define DP_COMPUTE_TEXT_PARTS_JSON_H

#include <jansson.h>
#include <stdbool.h>

#include "base/bytes.h"
#include "compute/text/bpe_parts.h"

/* Ends the sentences that refuse a part. */
#define DP_JSON_UNDONE                                                                             \
    "which dpnode does not do: use another tokenizer, or none, and dpnode trains one"

/* root: the file. All of them: DP_UNSUPPORTED or DP_BADMSG with a sentence, DP_NOMEM. */
DP_MUST dp_status dp_json_normalizer(const json_t *root, dp_normalizer_steps *steps, dp_why *why);
/* *bytes: pieces are bytes (ByteLevel). */
DP_MUST dp_status dp_json_pre_tokenizer(const json_t *root, dp_pretokenizer_steps *steps,
                                        bool *bytes, dp_why *why);
DP_MUST dp_status dp_json_decoder(const json_t *root, bool bytes, dp_decoder *decoder, dp_why *why);
DP_MUST dp_status dp_json_post_processor(const json_t *root, dp_bpe_ends *ends, dp_why *why);

/* The text of a string; empty for anything else. */
dp_view dp_json_view(const json_t *string);
bool dp_json_has_type(const json_t *object, const char *type);
/* Absent counts as standard. */
bool dp_json_flag(const json_t *object, const char *key, bool standard);
/* The sentence for a type that is not done here, at a place in the file. */
DP_MUST dp_status dp_json_unknown(const char *place, const json_t *object, dp_why *why);

#endif
