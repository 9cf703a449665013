/* Times of the kernels of a step and of a round on a card, one by one: the median time of a launch,
 * the bytes that it must move, and its share of the rate at which the same card copies in the same
 * run; for attention also TFLOP/s of the causal products (4 forward, 10 backward, times length^2 /
 * 2 * head). The shapes are those of GPT-2: 124M, with --large 1558M. The bytes are those of
 * tensors that must be read from or written to memory once; numbers of a row or of a head (mean,
 * rstd, lse) and sums of columns, below 2 % of them, are left out. Attention takes the card's best
 * path, or the one that DPNODE_CUDA_ATTENTION names. The last line is the cost of equal bits in
 * every run: the embedding's gradients beside a version by atomics, and the two of attention's
 * seven backward products that sums by atomics would save, which is an upper bound. Without a
 * device the program reports it and ends with 77. It is built if nvcc is installed; tests run it on
 * the emulator, where times mean nothing.
 *   bench_kernels [--json] [--large] [--rows N] [--only NAME] [--length N] [--heads N]
 *   [--repeats N]
 *     64 rows of 1024 tokens if not given, 12 heads of 64, the median of 21 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/clock.h"
#include "bench/kernels_rig.h"
#include "compute/cuda/optim.h"
#include "compute/model/optim.h"

enum {
    WARM_UP = 3,
    CHUNK = 4096,
    ROWS_MAX = 4096,
    LENGTH_MAX = 65536,
    HEADS_MAX = 128,
    NO_DEVICE = 77
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* ---- memory */

static void sizes(rig *r)
{
    const size_t n = r->tokens * r->width * 2;
    r->bytes[RIG_X] = r->bytes[RIG_Y] = r->bytes[RIG_DY] = r->bytes[RIG_DX] = n;
    r->bytes[RIG_WIDE] = 4 * n;
    r->bytes[RIG_D_WIDE] =
        4 * n; /* Also holds the largest blob of a vector of parameters: 3 n and a header. */
    r->bytes[RIG_QKV] = r->bytes[RIG_D_QKV] = 3 * n;
    r->bytes[RIG_LOGITS] = r->chunk * RIG_PADDED * 2;
    r->bytes[RIG_TABLE] = (size_t)RIG_VOCAB * r->width * sizeof(float);
    r->bytes[RIG_GAIN] = r->bytes[RIG_GAINS] = 4 * r->width * sizeof(float);
    r->bytes[RIG_STATS] = larger(2 * r->tokens * r->heads, r->chunk) * sizeof(float);
    r->bytes[RIG_LSE] = r->tokens * r->heads * sizeof(float);
    r->bytes[RIG_SCRATCH] = rig_step_scratch(r);
    r->bytes[RIG_TOKENS] = larger(r->tokens, r->chunk) * sizeof(uint32_t);
    r->bytes[RIG_PIECES] = (rig_parameters(r) / DP_NORM_BLOCK + 1) * sizeof(dp_cuda_piece);
    r->bytes[RIG_TERMS] = sizeof(dp_cuda_optim_terms);
    r->bytes[RIG_NEWS] = 2 * sizeof(uint64_t);
}

/* Random halves near 1; read as floats they are near 1 too, by their high half. Equal numbers would
 * take less power than real ones. */
dp_status rig_fill(rig *r, rig_slot s, dp_rng *rng)
{
    enum { PIECE = 1 << 20 };
    static uint32_t piece[PIECE / sizeof(uint32_t)];
    for (size_t i = 0; i < PIECE / sizeof piece[0]; i++) {
        const uint32_t bits = (uint32_t)dp_rng_next(rng);
        /* Second moments (in QKV, read as floats) are positive. */
        piece[i] = (bits & (s == RIG_QKV ? 0x7f807fU : 0x807f807fU)) | 0x3f003f00U;
    }
    for (size_t at = 0; at < r->bytes[s]; at += PIECE) {
        const size_t left = r->bytes[s] - at < PIECE ? r->bytes[s] - at : PIECE;
        DP_TRY(DP_CUDA(&r->device, copy, (char *)r->at[s] + at, piece, left, DP_CUDA_TO_DEVICE,
                       r->device.compute));
        DP_TRY(dp_cuda_wait(&r->device, r->device.compute));
    }
    return DP_OK;
}

dp_status rig_put(rig *r, rig_slot s, const void *from, size_t bytes)
{
    DP_TRY(DP_CUDA(&r->device, copy, r->at[s], from, bytes, DP_CUDA_TO_DEVICE, r->device.compute));
    return dp_cuda_wait(&r->device, r->device.compute);
}

dp_status rig_get(rig *r, rig_slot s, void *to, size_t bytes)
{
    DP_TRY(DP_CUDA(&r->device, copy, to, r->at[s], bytes, DP_CUDA_TO_HOST, r->device.compute));
    return dp_cuda_wait(&r->device, r->device.compute);
}

/* Draws tokens with equal probability, and counts the different ones. */
static dp_status put_tokens(rig *r, dp_rng *rng)
{
    static bool seen[RIG_VOCAB];
    uint32_t *const tokens = calloc(1, r->bytes[RIG_TOKENS]);
    if (tokens == NULL) {
        return DP_NOMEM;
    }
    for (size_t i = 0; i < r->bytes[RIG_TOKENS] / sizeof tokens[0]; i++) {
        tokens[i] = (uint32_t)dp_rng_next(rng) % RIG_VOCAB;
        r->words += i < r->tokens && !seen[tokens[i]] ? 1 : 0;
        seen[tokens[i]] = seen[tokens[i]] || i < r->tokens;
    }
    const dp_status status = rig_put(r, RIG_TOKENS, tokens, r->bytes[RIG_TOKENS]);
    free(tokens);
    return status;
}

static dp_status put_pieces(rig *r)
{
    const dp_cuda_optim_terms terms = {
        .adamw = {1e-3F, 0.9F, 0.95F, 1e-8F, 1e-4F, 20.0F, 1.0F},
        .layer = {1e-3F, 0.9F, 0.95F, 1e-8F, 1e-4F, 10.0F, 20.0F, 1.0F},
        .muon = {.lr = 1e-3F, .decay = 1e-4F, .momentum = 0.95F, .grad_scale = 1.0F},
        .step = 1};
    dp_cuda_piece *const pieces = calloc(1, r->bytes[RIG_PIECES]);
    if (pieces == NULL) {
        return DP_NOMEM;
    }
    for (size_t i = 0; i < rig_parameters(r) / DP_NORM_BLOCK; i++) {
        pieces[i] = (dp_cuda_piece){i * DP_NORM_BLOCK, (i + 1) * DP_NORM_BLOCK, 0, 1};
    }
    dp_status status = rig_put(r, RIG_PIECES, pieces, r->bytes[RIG_PIECES]);
    free(pieces);
    if (status == DP_OK) {
        status = rig_put(r, RIG_TERMS, &terms, sizeof terms);
    }
    return status;
}

static dp_status make(rig *r)
{
    dp_rng rng;
    dp_rng_init(&rng, 1);
    sizes(r);
    for (int s = 0; s < RIG_SLOTS; s++) {
        DP_TRY(DP_CUDA(&r->device, device_alloc, &r->at[s], r->bytes[s]));
        DP_TRY(rig_fill(r, (rig_slot)s, &rng));
    }
    DP_TRY(put_tokens(r, &rng));
    return put_pieces(r);
}

/* ---- timing */

bool rig_wants(const rig *r, const char *name)
{
    return r->only == NULL || strstr(name, r->only) != NULL;
}

/* Copies as many bytes as a medium-sized kernel moves: the upper bound of this run. */
static dp_status copy_all(const rig *r, cudaStream_t stream)
{
    return r->device.api->copy(r->at[RIG_D_WIDE], r->at[RIG_WIDE], r->bytes[RIG_WIDE],
                               DP_CUDA_ON_DEVICE, stream) == 0
               ? DP_OK
               : DP_IO;
}

/* The first launches load the kernel and are not counted; with a single one, the caller only wants
 * to see that the kernel runs. */
dp_status rig_time(rig *r, rig_launch run, float *ms)
{
    dp_cuda_device *const d = &r->device;
    const size_t warm_up = r->repeats > 1 ? WARM_UP : 0;
    double times[RIG_REPEATS_MAX];
    cudaEvent_t from;
    cudaEvent_t to;
    DP_TRY(DP_CUDA(d, event_open, &from));
    DP_TRY(DP_CUDA(d, event_open, &to));
    for (size_t i = 0; i < warm_up + r->repeats; i++) {
        DP_TRY(DP_CUDA(d, event_record, from, d->compute));
        DP_TRY(dp_cuda_launch_status(d, run(r, d->compute), "a kernel"));
        DP_TRY(DP_CUDA(d, event_record, to, d->compute));
        DP_TRY(dp_cuda_wait(d, d->compute));
        if (i >= warm_up) {
            float took;
            DP_TRY(DP_CUDA(d, event_elapsed, &took, from, to));
            times[i - warm_up] = (double)took;
        }
    }
    DP_TRY(DP_CUDA(d, event_close, from));
    DP_TRY(DP_CUDA(d, event_close, to));
    *ms = (float)bench_median(times, r->repeats);
    return DP_OK;
}

/* ---- output */

static const char *const paths[] = {[DP_ATTENTION_MMA] = "mma",
                                    [DP_ATTENTION_PLAIN] = "plain",
                                    [DP_ATTENTION_WGMMA] = "wgmma",
                                    [DP_ATTENTION_MMA8] = "mma8"};

void rig_print(const rig *r, const char *name, double ms, double bytes, double flops)
{
    const double seconds = ms * 1e-3;
    const double rate = bytes / seconds;
    const double tflops = flops / seconds * 1e-12;
    if (r->json) {
        printf("{\"kernel\":\"%s\",\"us\":%.2f,\"bytes\":%.0f,\"gb_per_s\":%.1f,\"share\":%.3f,"
               "\"tflops\":%.1f,\"path\":\"%s\"}\n",
               name, 1e6 * seconds, bytes, rate * 1e-9, rate / r->copy, tflops,
               flops > 0.0 ? paths[r->path] : "");
    } else if (flops > 0.0) {
        printf("%-24s %10.1f us %9.1f GB/s %6.2f of copying %8.1f TFLOP/s by %s\n", name,
               1e6 * seconds, rate * 1e-9, rate / r->copy, tflops, paths[r->path]);
    } else {
        printf("%-24s %10.1f us %9.1f GB/s %6.2f of copying\n", name, 1e6 * seconds, rate * 1e-9,
               rate / r->copy);
    }
    fflush(stdout); /* If the program is stopped, the lines printed so far remain. */
}

static double bytes_of(const rig *r, const rig_kernel *k)
{
    const double channels = (double)r->width;
    return k->logits ? 2.0 * (double)r->chunk * RIG_VOCAB * 2.0
                     : k->narrow * 2.0 * (double)r->tokens * channels +
                           (k->words * (double)r->words + k->places * (double)r->length) * 4.0 *
                               channels +
                           k->wide * 4.0 * (double)rig_parameters(r);
}

static double flops_of(const rig *r, const rig_kernel *k)
{
    const double length = (double)r->length;
    return k->flops * (double)r->rows * (double)r->heads * (double)r->head * length * length / 2.0;
}

/* Milliseconds that equal bits cost, for the kernels of which another order of sums is known to be
 * faster. */
typedef struct prices {
    double table;
    double atomic;
    double attention;
} prices;

static void take_price(prices *p, const char *name, double ms)
{
    p->table = strcmp(name, RIG_EMBED_TABLE) == 0 ? ms : p->table;
    p->atomic = strcmp(name, RIG_EMBED_ATOMIC) == 0 ? ms : p->atomic;
    p->attention = strcmp(name, RIG_ATTENTION_BACK) == 0 ? ms : p->attention;
}

static void print_prices(const rig *r, const prices *p)
{
    if (p->table > 0.0 && p->atomic > 0.0 && p->attention > 0.0) {
        printf(r->json ? "{\"kernel\":\"determinism\",\"embed_us\":%.2f,\"attention_us\":%.2f,"
                         "\"tokens\":%zu}\n"
                       : "equal bits cost at most %.1f us for the embedding and %.1f us for each "
                         "layer's attention, of %zu tokens\n",
               1e3 * (p->table - p->atomic), 1e3 * p->attention * 2.0 / 7.0, r->tokens);
    }
}

static dp_status run_steps(rig *r)
{
    size_t count;
    const rig_kernel *const kernels = rig_step_kernels(&count);
    const size_t heads = r->heads;
    prices seen = {0};
    for (size_t i = 0; i < count; i++) {
        const rig_kernel *const k = &kernels[i];
        if (!rig_wants(r, k->name)) {
            continue;
        }
        float ms;
        r->head = k->head == 0 ? 64 : k->head;
        r->heads = heads * 64 / r->head;
        DP_TRY(rig_time(r, k->run, &ms));
        rig_print(r, k->name, (double)ms, bytes_of(r, k), flops_of(r, k));
        take_price(&seen, k->name, (double)ms);
        r->heads = heads;
    }
    print_prices(r, &seen);
    return DP_OK;
}

static dp_status run_all(rig *r)
{
    float ms;
    DP_TRY(make(r));
    DP_TRY(rig_time(r, copy_all, &ms));
    r->copy = 2.0 * (double)r->bytes[RIG_WIDE] / ((double)ms * 1e-3);
    printf(r->json ? "{\"kernel\":\"copy\",\"device\":\"%s\",\"gb_per_s\":%.1f}\n"
                   : "%s copies %.1f GB/s, read and written\n",
           r->device.properties.name, r->copy * 1e-9);
    r->path = dp_cuda_attention_path_for(r->device.properties.major, r->device.properties.minor);
    DP_TRY(run_steps(r));
    return rig_run_rounds(r);
}

/* A whole number of 1 .. most. */
static bool read_number(const char *text, size_t most, size_t *number)
{
    char *end;
    const unsigned long value = strtoul(text, &end, 10);
    *number = value;
    return *end == '\0' && value > 0 && value <= most;
}

static bool read_arguments(rig *r, int argc, char **argv)
{
    bool fits = true;
    for (int i = 1; i < argc && fits; i++) {
        const char *const next = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--json") == 0) {
            r->json = true;
            continue;
        }
        if (strcmp(argv[i], "--large") == 0) {
            r->heads = 25;
            continue;
        }
        i++;
        if (strcmp(argv[i - 1], "--rows") == 0) {
            fits = read_number(next, ROWS_MAX, &r->rows);
        } else if (strcmp(argv[i - 1], "--length") == 0) {
            fits = read_number(next, LENGTH_MAX, &r->length);
        } else if (strcmp(argv[i - 1], "--heads") == 0) {
            fits = read_number(next, HEADS_MAX, &r->heads) && r->heads > 1;
        } else if (strcmp(argv[i - 1], "--repeats") == 0) {
            fits = read_number(next, RIG_REPEATS_MAX, &r->repeats);
        } else if (strcmp(argv[i - 1], "--only") == 0) {
            r->only = next;
            fits = i < argc;
        } else {
            fits = false;
        }
    }
    r->width = 64 * r->heads;
    r->tokens = r->rows * r->length;
    r->chunk = least(CHUNK, r->tokens);
    return fits;
}

int main(int argc, char **argv)
{
    static rig r = {.rows = 64, .length = 1024, .heads = 12, .head = 64, .repeats = 21};
    dp_why why = {{0}};
    if (!read_arguments(&r, argc, argv)) {
        fprintf(stderr, "usage: bench_kernels [--json] [--large] [--rows N] [--only NAME] "
                        "[--length N] [--heads N] [--repeats N]\n");
        return 64;
    }
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
    for (int s = 0; s < RIG_SLOTS; s++) {
        if (r.at[s] != NULL) {
            (void)r.device.api->device_free(r.at[s]);
        }
    }
    dp_cuda_device_close(&r.device);
    return status == DP_OK ? 0 : 1;
}
