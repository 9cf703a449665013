/* A model and its tokenizer as a GGUF file, version 3, as llama.cpp reads it.
 *
 *   "GGUF" | u32 version 3 | u64 tensors | u64 pairs
 *   pairs    u64 size, key | u32 type | value; text: u64 size, bytes; array: u32 type | u64 count
 *            | values
 *   tensors  u64 size, name | u32 dimensions | u64 each, the fastest first | u32 type | u64 offset
 *            from the data
 *   zeros up to a multiple of 32, then the data; each tensor starts at a multiple of 32
 *
 * Names of architectures and tensors are gguf-py's constants. Linear weights stand as [out][in].
 * llama.cpp turns neighbouring channels of a head where Hugging Face's Llama turns those half a
 * head apart, so rows of q and k of llama and smollm3 are interleaved: row 2i + s of a head is row
 * s * half + i of Hugging Face's (permute in llama.cpp's convert_hf_to_gguf.py). The other families
 * keep them. */
#ifndef DP_COMPUTE_FORMAT_GGUF_H
#define DP_COMPUTE_FORMAT_GGUF_H

#include "base/bytes.h"
#include "compute/model/model.h"
#include "compute/text/bpe.h"

enum { DP_GGUF_ALIGN = 32, DP_GGUF_BLOCK = 32 /* elements of Q8_0 that share a scale */ };

/* Values as in the file. */
typedef enum dp_gguf_type {
    DP_GGUF_F32 = 0,
    DP_GGUF_F16 = 1,
    DP_GGUF_Q8_0 = 8, /* per 32 elements: f16 scale d = max|x| / 127, then i8 round(x / d) */
    DP_GGUF_BF16 = 30
} dp_gguf_type;

/* "f32", "f16", "bf16", "q8_0". False: none of these. */
bool dp_gguf_type_of(const char *text, dp_gguf_type *type);

/* The parts of a file that concern text. */
typedef struct dp_gguf_language {
    const dp_bpe *bpe;
    dp_view chat_template; /* Jinja; empty: none */
} dp_gguf_language;

/* Appends a file. matrices: the type of matrices; vectors and positions stay F32, and rows that are
 * no multiple of a block become F16 in place of Q8_0. Ids from the tokenizer's count up to the
 * model's vocabulary are written as unused tokens. DP_UNSUPPORTED with a sentence: llama.cpp has no
 * such model (gguf_arch.h) or makes other tokens (gguf_words.h). DP_BADARG: a tokenizer with more
 * tokens than the model. DP_TOOBIG, DP_NOMEM. On failure out is unchanged. */
DP_MUST dp_status dp_gguf_write(const dp_model *model, const float *theta,
                                const dp_gguf_language *language, dp_gguf_type matrices,
                                dp_buf *out, dp_why *why);

#endif
