/* What the kernels of a step take on a card, one by one: median time of a launch, the bytes it must move, and its share of what the same
 * card copies in the same run; attention also in TFLOP/s of the causal products (4 forward, 10 backward, times length^2 / 2 * head). Shapes are
 * those of GPT-2: 124M, with --large 1558M. Bytes are those of tensors that must come from memory or go to it once; numbers of a row or of a
 * head (mean, rstd, lse) and sums of columns, below 2 % of them, are left out. Attention takes the card's best path, or what
 * DPNODE_CUDA_ATTENTION says. Says so and ends with 77 where there is no device. Built where nvcc is.
 * bench_kernels [--json] [--large] [--rows N] [--only NAME]   64 rows of 1024 tokens if not given */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "bench/clock.h"
#include "compute/cuda/act.h"
#include "compute/cuda/attention.h"
#include "compute/cuda/columns.h"
#include "compute/cuda/device.h"
#include "compute/cuda/embed.h"
#include "compute/cuda/head.h"
#include "compute/cuda/norm.h"
#include "compute/cuda/optim.h"
#include "compute/cuda/rope.h"
#include "compute/cuda/vectors.h"
#include "compute/optim.h"

enum {
    REPEATS = 21,
    WARM_UP = 3,
    LENGTH = 1024,
    VOCAB = 50257,
    PADDED = 50304,
    CHUNK = 4096,
    NO_DEVICE = 77
};

typedef enum slot {
    X,
    Y,
    DY,
    DX,
    WIDE,
    D_WIDE,
    QKV,
    D_QKV,
    LOGITS,
    TABLE,
    GAIN,
    GAINS,
    STATS,
    LSE,
    SCRATCH,
    TOKENS,
    PIECES,
    TERMS,
    SLOTS
} slot;

typedef struct rig {
    dp_cuda_device device;
    size_t rows;
    size_t tokens;
    size_t width;
    size_t heads;
    size_t head;  /* width of one, for attention and rotations */
    size_t words; /* different ones among the tokens */
    dp_cuda_attention_path path;
    bool json;
    const char *only;
    void *at[SLOTS];
    size_t bytes[SLOTS];
    double copy; /* bytes a second, read and written */
} rig;

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static float *floats(const rig *r, slot s)
{
    return r->at[s];
}

/* ---- the launches */

static dp_cuda_norm norm_of(const rig *r, bool rms)
{
    return (dp_cuda_norm){.rows = r->tokens,
                          .width = r->width,
                          .rms = rms,
                          .eps = 1e-5F,
                          .stream = DP_BF16,
                          .type = DP_BF16,
                          .x = r->at[X],
                          .gain = floats(r, GAIN),
                          .bias = rms ? NULL : floats(r, GAIN),
                          .mean = floats(r, STATS),
                          .rstd = floats(r, STATS) + r->tokens};
}

static dp_status layer_norm(const rig *r, cudaStream_t stream)
{
    const dp_cuda_norm norm = norm_of(r, false);
    return dp_cuda_norm_forward(&norm, NULL, NULL, r->at[Y], stream);
}

static dp_status add_layer_norm(const rig *r, cudaStream_t stream)
{
    const dp_cuda_norm norm = norm_of(r, false);
    return dp_cuda_norm_forward(&norm, r->at[DY], r->at[DX], r->at[Y], stream);
}

static dp_status rms_norm(const rig *r, cudaStream_t stream)
{
    const dp_cuda_norm norm = norm_of(r, true);
    return dp_cuda_norm_forward(&norm, NULL, NULL, r->at[Y], stream);
}

static dp_status layer_norm_back(const rig *r, cudaStream_t stream)
{
    const dp_cuda_norm norm = norm_of(r, false);
    return dp_cuda_norm_backward(&norm, r->at[DY], r->at[DX], r->at[DX], floats(r, GAINS),
                                 floats(r, GAINS) + r->width, floats(r, SCRATCH), stream);
}

static dp_cuda_activation act_of(const rig *r, dp_activation_kind kind)
{
    return (dp_cuda_activation){kind, DP_BF16, r->tokens, (kind == DP_SWIGLU ? 2 : 4) * r->width,
                                r->at[WIDE]};
}

static dp_status gelu(const rig *r, cudaStream_t stream)
{
    const dp_cuda_activation act = act_of(r, DP_GELU);
    return dp_cuda_activation_forward(&act, r->at[D_WIDE], stream);
}

static dp_status gelu_back(const rig *r, cudaStream_t stream)
{
    const dp_cuda_activation act = act_of(r, DP_GELU);
    return dp_cuda_activation_backward(&act, r->at[D_WIDE], 4 * r->width, r->at[D_WIDE], NULL,
                                       stream);
}

static dp_status swiglu(const rig *r, cudaStream_t stream)
{
    const dp_cuda_activation act = act_of(r, DP_SWIGLU);
    return dp_cuda_activation_forward(&act, r->at[D_WIDE], stream);
}

static dp_status swiglu_back(const rig *r, cudaStream_t stream)
{
    const dp_cuda_activation act = act_of(r, DP_SWIGLU);
    return dp_cuda_activation_backward(&act, r->at[D_WIDE], 4 * r->width, r->at[D_WIDE], NULL,
                                       stream);
}

static dp_status bias_grad(const rig *r, cudaStream_t stream)
{
    return dp_cuda_add_columns(r->at[D_WIDE], DP_BF16, r->tokens, 4 * r->width, 4 * r->width,
                               floats(r, GAINS), floats(r, SCRATCH), stream);
}

static dp_cuda_rope rope_of(const rig *r, bool norms)
{
    return (dp_cuda_rope){.rows = r->tokens,
                          .length = LENGTH,
                          .heads = r->heads,
                          .kv_heads = r->heads,
                          .head = r->head,
                          .type = DP_BF16,
                          .angles = floats(r, TABLE), /* any numbers will do */
                          .q_gain = norms ? floats(r, GAIN) : NULL,
                          .k_gain = norms ? floats(r, GAIN) : NULL,
                          .eps = 1e-6F,
                          .q_rstd = floats(r, STATS),
                          .k_rstd = floats(r, STATS) + r->tokens * r->heads,
                          .x = r->at[QKV],
                          .ld = 3 * r->width};
}

static dp_status rope(const rig *r, cudaStream_t stream)
{
    const dp_cuda_rope turn = rope_of(r, false);
    return dp_cuda_rope_forward(&turn, r->at[D_QKV], 3 * r->width, stream);
}

static dp_status qk_rope(const rig *r, cudaStream_t stream)
{
    const dp_cuda_rope turn = rope_of(r, true);
    return dp_cuda_rope_forward(&turn, r->at[D_QKV], 3 * r->width, stream);
}

static dp_status qk_rope_back(const rig *r, cudaStream_t stream)
{
    const dp_cuda_rope turn = rope_of(r, true);
    return dp_cuda_rope_backward(&turn, r->at[D_QKV], 3 * r->width, floats(r, GAINS),
                                 floats(r, GAINS) + r->head, floats(r, SCRATCH), stream);
}

static dp_cuda_attention attention_of(const rig *r)
{
    char *const qkv = r->at[QKV];
    return (dp_cuda_attention){.type = DP_BF16,
                               .rows = r->rows,
                               .length = LENGTH,
                               .heads = r->heads,
                               .kv_heads = r->heads,
                               .head = r->head,
                               .q = qkv,
                               .k = qkv + 2 * r->width,
                               .ld_qk = 3 * r->width,
                               .v = qkv + 4 * r->width,
                               .ld_v = 3 * r->width,
                               .out = r->at[Y],
                               .ld_out = r->width,
                               .lse = floats(r, LSE),
                               .path = r->path};
}

static dp_status attention(const rig *r, cudaStream_t stream)
{
    const dp_cuda_attention a = attention_of(r);
    return dp_cuda_attention_forward(&a, stream);
}

static dp_status attention_back(const rig *r, cudaStream_t stream)
{
    const dp_cuda_attention a = attention_of(r);
    char *const d = r->at[D_QKV];
    const dp_cuda_attention_grads g = {.d_out = r->at[DY],
                                       .dq = d,
                                       .dk = d + 2 * r->width,
                                       .dv = d + 4 * r->width,
                                       .ld_d = 3 * r->width,
                                       .scratch = floats(r, SCRATCH)};
    return dp_cuda_attention_backward(&a, &g, stream);
}

static dp_status classify(const rig *r, cudaStream_t stream)
{
    const dp_cuda_classifier c = {.type = DP_BF16,
                                  .logits = r->at[LOGITS],
                                  .targets = r->at[TOKENS],
                                  .rows = CHUNK,
                                  .vocab = VOCAB,
                                  .ld = PADDED,
                                  .scale = 1.0F,
                                  .losses = floats(r, STATS)};
    return dp_cuda_classify(&c, stream);
}

static dp_cuda_embed embed_of(const rig *r)
{
    return (dp_cuda_embed){r->at[TOKENS], r->rows, LENGTH, VOCAB, r->width, DP_BF16};
}

static dp_status embed(const rig *r, cudaStream_t stream)
{
    const dp_cuda_embed e = embed_of(r);
    return dp_cuda_embed_forward(&e, floats(r, TABLE), floats(r, TABLE), r->at[X], stream);
}

static dp_status embed_back(const rig *r, cudaStream_t stream)
{
    const dp_cuda_embed e = embed_of(r);
    return dp_cuda_embed_backward(&e, r->at[DX], floats(r, TABLE), floats(r, TABLE), r->at[SCRATCH],
                                  stream);
}

/* ---- vectors of parameters: as long as what qkv holds */

static size_t parameters(const rig *r)
{
    return r->tokens * r->width * 3 / 2;
}

static dp_status adamw(const rig *r, cudaStream_t stream)
{
    const dp_cuda_optim_terms *const terms = r->at[TERMS];
    return dp_cuda_adamw(floats(r, WIDE), floats(r, D_WIDE), floats(r, QKV), floats(r, D_QKV),
                         r->at[PIECES], parameters(r) / DP_NORM_BLOCK, &terms->adamw, stream);
}

static dp_status squares(const rig *r, cudaStream_t stream)
{
    return dp_cuda_squares(floats(r, WIDE), parameters(r), r->at[D_WIDE], stream);
}

static dp_status snapshot(const rig *r, cudaStream_t stream)
{
    return dp_cuda_snapshot(floats(r, WIDE), floats(r, D_WIDE), floats(r, QKV), floats(r, D_QKV),
                            parameters(r), r->at[SCRATCH], stream);
}

/* ---- the table */

typedef struct kernel {
    const char *name;
    dp_status (*run)(const rig *r, cudaStream_t stream);
    double narrow; /* halves for each token and channel that must be read or written */
    double flops;  /* products of length^2 / 2 * head, times 2, for each head and row */
    size_t head;   /* 0: 64 */
    bool logits;   /* a chunk of them is read and written instead */
    double words;  /* floats for each channel of every different word, and of every position */
    double wide;   /* floats for each parameter */
} kernel;

static const kernel kernels[] = {
    {"layer norm", layer_norm, 2, 0, 0, false, 0, 0},
    {"add, layer norm", add_layer_norm, 4, 0, 0, false, 0, 0},
    {"rms norm", rms_norm, 2, 0, 0, false, 0, 0},
    {"layer norm back", layer_norm_back, 4, 0, 0, false, 0, 0},
    {"gelu", gelu, 8, 0, 0, false, 0, 0},
    {"gelu back", gelu_back, 12, 0, 0, false, 0, 0},
    {"swiglu", swiglu, 6, 0, 0, false, 0, 0},
    {"swiglu back", swiglu_back, 10, 0, 0, false, 0, 0},
    {"bias grad", bias_grad, 4, 0, 0, false, 0, 0},
    {"rope", rope, 4, 0, 0, false, 0, 0},
    {"q k norm, rope", qk_rope, 4, 0, 0, false, 0, 0},
    {"q k norm, rope back", qk_rope_back, 6, 0, 0, false, 0, 0},
    {"attention 64", attention, 4, 4, 0, false, 0, 0},
    {"attention 64 back", attention_back, 8, 10, 0, false, 0, 0},
    {"attention 128", attention, 4, 4, 128, false, 0, 0},
    {"attention 128 back", attention_back, 8, 10, 128, false, 0, 0},
    {"softmax, cross-entropy", classify, 0, 0, 0, true, 0, 0},
    {"embed", embed, 1, 0, 0, false, 1, 0},
    {"embed back", embed_back, 1, 0, 0, false, 2, 0}, /* gradients are added to */
    {"adamw", adamw, 0, 0, 0, false, 0, 7},           /* x, m and v both ways, gradients */
    {"squares", squares, 0, 0, 0, false, 0, 1},
    {"snapshot", snapshot, 0, 0, 0, false, 0, 4},
};
enum { N_KERNELS = sizeof kernels / sizeof kernels[0] };

/* ---- memory */

static void sizes(rig *r)
{
    const size_t n = r->tokens * r->width * 2;
    const size_t scratch = larger(larger(dp_cuda_norm_scratch(r->tokens, r->width),
                                         dp_cuda_columns_scratch(r->tokens, 4 * r->width)),
                                  larger(dp_cuda_rope_scratch(128),
                                         dp_cuda_attention_scratch(r->rows, r->heads, LENGTH))) *
                           sizeof(float);
    r->bytes[X] = r->bytes[Y] = r->bytes[DY] = r->bytes[DX] = n;
    r->bytes[WIDE] = r->bytes[D_WIDE] = 4 * n;
    r->bytes[QKV] = r->bytes[D_QKV] = 3 * n;
    r->bytes[LOGITS] = (size_t)CHUNK * PADDED * 2;
    r->bytes[TABLE] = (size_t)VOCAB * r->width * sizeof(float);
    r->bytes[GAIN] = r->bytes[GAINS] = 4 * r->width * sizeof(float);
    r->bytes[STATS] = larger(2 * r->tokens * r->heads, CHUNK) * sizeof(float);
    r->bytes[LSE] = r->tokens * r->heads * sizeof(float);
    r->bytes[SCRATCH] = larger(scratch, dp_cuda_embed_scratch(r->tokens, r->width));
    r->bytes[TOKENS] = larger(r->tokens, CHUNK) * sizeof(uint32_t);
    r->bytes[PIECES] = (parameters(r) / DP_NORM_BLOCK + 1) * sizeof(dp_cuda_piece);
    r->bytes[TERMS] = sizeof(dp_cuda_optim_terms);
}

/* Random halves near 1; read as floats their high half says as much. Equal numbers would cost less power than real ones. */
static dp_status fill(rig *r, slot s, dp_rng *rng)
{
    enum { PIECE = 1 << 20 };
    static uint32_t piece[PIECE / sizeof(uint32_t)];
    for (size_t i = 0; i < PIECE / sizeof piece[0]; i++) {
        const uint32_t bits = (uint32_t)dp_rng_next(rng);
        /* Second moments (QKV, where they are floats) are positive. */
        piece[i] = (bits & (s == QKV ? 0x7f807fU : 0x807f807fU)) | 0x3f003f00U;
    }
    for (size_t at = 0; at < r->bytes[s]; at += PIECE) {
        const size_t left = r->bytes[s] - at < PIECE ? r->bytes[s] - at : PIECE;
        DP_TRY(DP_CUDA(&r->device, copy, (char *)r->at[s] + at, piece, left, DP_CUDA_TO_DEVICE,
                       r->device.compute));
        DP_TRY(dp_cuda_wait(&r->device, r->device.compute));
    }
    return DP_OK;
}

static dp_status put(rig *r, slot s, const void *from, size_t bytes)
{
    DP_TRY(DP_CUDA(&r->device, copy, r->at[s], from, bytes, DP_CUDA_TO_DEVICE, r->device.compute));
    return dp_cuda_wait(&r->device, r->device.compute);
}

/* Tokens drawn with equal chances, and how many words are among them. */
static dp_status put_tokens(rig *r, dp_rng *rng)
{
    static bool seen[VOCAB];
    uint32_t *const tokens = calloc(1, r->bytes[TOKENS]);
    if (tokens == NULL) {
        return DP_NOMEM;
    }
    for (size_t i = 0; i < r->bytes[TOKENS] / sizeof tokens[0]; i++) {
        tokens[i] = (uint32_t)dp_rng_next(rng) % VOCAB;
        r->words += i < r->tokens && !seen[tokens[i]] ? 1 : 0;
        seen[tokens[i]] = seen[tokens[i]] || i < r->tokens;
    }
    const dp_status status = put(r, TOKENS, tokens, r->bytes[TOKENS]);
    free(tokens);
    return status;
}

static dp_status put_pieces(rig *r)
{
    const dp_cuda_optim_terms terms = {.adamw = {1e-3F, 0.9F, 0.95F, 1e-8F, 1e-4F, 20.0F, 1.0F}};
    dp_cuda_piece *const pieces = calloc(1, r->bytes[PIECES]);
    if (pieces == NULL) {
        return DP_NOMEM;
    }
    for (size_t i = 0; i < parameters(r) / DP_NORM_BLOCK; i++) {
        pieces[i] = (dp_cuda_piece){i * DP_NORM_BLOCK, (i + 1) * DP_NORM_BLOCK, 0, 1};
    }
    dp_status status = put(r, PIECES, pieces, r->bytes[PIECES]);
    free(pieces);
    if (status == DP_OK) {
        status = put(r, TERMS, &terms, sizeof terms);
    }
    return status;
}

static dp_status make(rig *r)
{
    dp_rng rng;
    dp_rng_init(&rng, 1);
    sizes(r);
    for (int s = 0; s < SLOTS; s++) {
        DP_TRY(DP_CUDA(&r->device, device_alloc, &r->at[s], r->bytes[s]));
        DP_TRY(fill(r, (slot)s, &rng));
    }
    DP_TRY(put_tokens(r, &rng));
    return put_pieces(r);
}

/* ---- timing */

/* Copies what a kernel of the middle moves: the roof of this run. */
static dp_status copy_all(const rig *r, cudaStream_t stream)
{
    return r->device.api->copy(r->at[D_WIDE], r->at[WIDE], r->bytes[WIDE], DP_CUDA_ON_DEVICE,
                               stream) == 0
               ? DP_OK
               : DP_IO;
}

/* Median milliseconds of one launch. */
static dp_status time_one(rig *r, dp_status (*run)(const rig *r, cudaStream_t stream), float *ms)
{
    dp_cuda_device *const d = &r->device;
    double times[REPEATS];
    cudaEvent_t from;
    cudaEvent_t to;
    DP_TRY(DP_CUDA(d, event_open, &from));
    DP_TRY(DP_CUDA(d, event_open, &to));
    for (int i = -WARM_UP; i < REPEATS; i++) {
        DP_TRY(DP_CUDA(d, event_record, from, d->compute));
        DP_TRY(dp_cuda_launch_status(d, run(r, d->compute), "a kernel"));
        DP_TRY(DP_CUDA(d, event_record, to, d->compute));
        DP_TRY(dp_cuda_wait(d, d->compute));
        if (i >= 0) {
            float took;
            DP_TRY(DP_CUDA(d, event_elapsed, &took, from, to));
            times[i] = (double)took;
        }
    }
    DP_TRY(DP_CUDA(d, event_close, from));
    DP_TRY(DP_CUDA(d, event_close, to));
    *ms = (float)bench_median(times, REPEATS);
    return DP_OK;
}

static const char *const paths[] = {
    [DP_ATTENTION_MMA] = "mma", [DP_ATTENTION_PLAIN] = "plain", [DP_ATTENTION_WGMMA] = "wgmma"};

static void print(const rig *r, const kernel *k, float ms)
{
    const double seconds = (double)ms * 1e-3;
    const double rows = (double)(r->words + LENGTH);
    const double bytes = k->logits ? 2.0 * CHUNK * VOCAB * 2.0
                                   : k->narrow * 2.0 * (double)r->tokens * (double)r->width +
                                         k->words * 4.0 * rows * (double)r->width +
                                         k->wide * 4.0 * (double)parameters(r);
    const double flops =
        k->flops * (double)r->rows * (double)r->heads * (double)r->head * LENGTH * LENGTH / 2.0;
    const double rate = bytes / seconds;
    if (r->json) {
        printf("{\"kernel\":\"%s\",\"us\":%.2f,\"bytes\":%.0f,\"gb_per_s\":%.1f,\"share\":%.3f,"
               "\"tflops\":%.1f,\"path\":\"%s\"}\n",
               k->name, 1e6 * seconds, bytes, rate * 1e-9, rate / r->copy, flops / seconds * 1e-12,
               k->flops > 0.0 ? paths[r->path] : "");
    } else if (k->flops > 0.0) {
        printf("%-24s %10.1f us %9.1f GB/s %6.2f of copying %8.1f TFLOP/s by %s\n", k->name,
               1e6 * seconds, rate * 1e-9, rate / r->copy, flops / seconds * 1e-12, paths[r->path]);
    } else {
        printf("%-24s %10.1f us %9.1f GB/s %6.2f of copying\n", k->name, 1e6 * seconds, rate * 1e-9,
               rate / r->copy);
    }
}

static dp_status run_all(rig *r)
{
    float ms;
    DP_TRY(make(r));
    DP_TRY(time_one(r, copy_all, &ms));
    r->copy = 2.0 * (double)r->bytes[WIDE] / ((double)ms * 1e-3);
    printf(r->json ? "{\"kernel\":\"copy\",\"device\":\"%s\",\"gb_per_s\":%.1f}\n"
                   : "%s copies %.1f GB/s, read and written\n",
           r->device.properties.name, r->copy * 1e-9);
    r->path = dp_cuda_attention_path_for(r->device.properties.major, r->device.properties.minor);
    const size_t heads = r->heads;
    for (size_t i = 0; i < N_KERNELS; i++) {
        if (r->only != NULL && strstr(kernels[i].name, r->only) == NULL) {
            continue;
        }
        r->head = kernels[i].head == 0 ? 64 : kernels[i].head;
        r->heads = heads * 64 / r->head;
        DP_TRY(time_one(r, kernels[i].run, &ms));
        print(r, &kernels[i], ms);
        r->heads = heads;
    }
    return DP_OK;
}

static bool read_arguments(rig *r, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (strcmp(argv[i], "--json") == 0) {
            r->json = true;
        } else if (strcmp(argv[i], "--large") == 0) {
            r->width = 1600;
            r->heads = 25;
        } else if (strcmp(argv[i], "--rows") == 0 && more) {
            r->rows = strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--only") == 0 && more) {
            r->only = argv[++i];
        } else {
            return false;
        }
    }
    return r->rows > 0 && r->rows <= 4096;
}

int main(int argc, char **argv)
{
    static rig r = {.rows = 64, .width = 768, .heads = 12, .head = 64};
    dp_why why = {{0}};
    if (!read_arguments(&r, argc, argv)) {
        fprintf(stderr, "usage: bench_kernels [--json] [--large] [--rows N] [--only NAME]\n");
        return 64;
    }
    r.tokens = r.rows * LENGTH;
    if (dp_cuda_devices(dp_cuda_api_of(), &why) == 0) {
        fprintf(stderr, "bench_kernels: no device: %s\n", why.text);
        return NO_DEVICE;
    }
    dp_status status = dp_cuda_device_open(&r.device, dp_cuda_api_of(), 0, &why);
    if (status == DP_OK) {
        status = run_all(&r);
        why = r.device.problem;
    }
    if (status != DP_OK) {
        fprintf(stderr, "bench_kernels: %s\n", why.text);
    }
    for (int s = 0; s < SLOTS; s++) {
        if (r.at[s] != NULL) {
            (void)r.device.api->device_free(r.at[s]);
        }
    }
    dp_cuda_device_close(&r.device);
    return status == DP_OK ? 0 : 1;
}
