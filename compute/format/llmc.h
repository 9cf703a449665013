/* The model file of llm.c (Karpathy 2024, train_gpt2.py and gpt2_write_to_checkpoint): GPT-2
 * weights behind a header, read and written. Not its optimizer's state files, and no tokenizer:
 * llm.c keeps that apart.
 *
 *   offset size   all little-endian
 *        0    4   20240326
 *        4    4   version: 3 fp32, 5 bf16; of both the vocabulary is padded
 *        8    4   context T
 *       12    4   vocabulary V
 *       16    4   layers L
 *       20    4   heads
 *       24    4   width C
 *       28    4   padded vocabulary Vp >= V; written: V rounded up to 128
 *       32  992   0, not looked at
 *     1024        wte [Vp][C] | wpe [T][C]
 *                 then of all layers one after the other: norm 1 weight, bias [C] | qkv weight
 *                   [3C][C], bias [3C]
 *                 | attention projection [C][C], bias [C] | norm 2 weight, bias [C] | up [4C][C],
 *                   bias [4C] | down [C][4C], bias [C]
 *                 then last norm weight, bias [C]
 *
 * Linear weights stand as [out][in], in our arena as [in][out]; the head is wte. Rows of wte from V
 * on are written as 0 and not looked at. */
#ifndef DP_COMPUTE_FORMAT_LLMC_H
#define DP_COMPUTE_FORMAT_LLMC_H

#include <stdbool.h>

#include "base/bytes.h"
#include "compute/model/model.h"

enum { DP_LLMC_HEADER_BYTES = 1024 };

typedef enum dp_llmc_type { DP_LLMC_FP32 = 3, DP_LLMC_BF16 = 5 } dp_llmc_type; /* its version */

/* "f32", "bf16". */
bool dp_llmc_type_of(const char *name, dp_llmc_type *type);
/* True if the bytes begin like such a file. */
bool dp_llmc_is(dp_view bytes);
/* The model in a file, resolved and checked, from its header and its size. Accepts any bytes.
 * DP_BADMSG, DP_VERSION, DP_BADARG (dp_model_config_check), with a sentence; *config is
 * untouched. */
DP_MUST dp_status dp_llmc_config(dp_view bytes, dp_model_config *config, dp_why *why);
/* Fills theta (the model's arena, padding 0) from a file with this model, else DP_BADARG. Also as
 * dp_llmc_config, and DP_DIVERGED (a weight is not finite); theta is then undefined. */
DP_MUST dp_status dp_llmc_read(dp_view bytes, const dp_model *model, float *theta, dp_why *why);
/* Appends a file. bf16 rounds to nearest, ties to even. DP_UNSUPPORTED: llm.c has no such model;
 * DP_TOOBIG, DP_NOMEM. */
DP_MUST dp_status dp_llmc_write(const dp_model *model, const float *theta, dp_llmc_type type,
                                dp_buf *out, dp_why *why);

#endif
