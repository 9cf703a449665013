/* Matrix products alone: GFLOP/s and share of the peak of one core, beside oneDNN if its library is
 * installed. bench_gemm [--json] [--seconds S]. Process CPU time; shapes of GPT-2 small and of the
 * demo. Ours is timed with b packed (a step packs each weight once and multiplies every slice of
 * tokens with it) and, in "with pack", with b packed for every product; slices of 144 rows as the
 * engine cuts them. oneDNN gets plain row-major matrices, or with bf16 a matmul primitive: once
 * with inputs that are rounded beforehand, and once with a in fp32, as an engine has it and as our
 * product takes it, rounded by oneDNN's reorder. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "bench/clock.h"
#include "bench/peak.h"
#include "compute/cpu/ops.h"

static const struct shape {
    const char *name;
    size_t m;
    size_t n;
    size_t k;
} shapes[] = {
    {"L4 qkv", 2048, 768, 256},     {"L4 fc", 2048, 1024, 256},  {"L4 proj", 2048, 256, 1024},
    {"124M qkv", 256, 2304, 768},   {"124M fc", 256, 3072, 768}, {"124M proj", 256, 768, 3072},
    {"124M head", 256, 50257, 768}, {"few rows", 64, 768, 768},  {"square", 2048, 2048, 2048},
};
enum { SLICE = 144 };

/* ---- oneDNN 2.x by its C interface, opened if it is installed. Its structures are only passed
 * on. */

typedef long dim; /* dnnl_dim_t */
enum {
    DNNL_BF16 = 2,
    DNNL_F32 = 3,
    DNNL_CPU = 1,
    DNNL_ARG_SRC = 1,
    DNNL_ARG_WEIGHTS = 33,
    DNNL_ARG_DST = 17
};
enum { DNNL_DESC_BYTES = 8192 }; /* of a memory or operation descriptor: they have a few hundred */

struct dnnl_arg {
    int arg;
    void *memory;
};

struct onednn {
    int (*sgemm)(char, char, dim, dim, dim, float, const float *, dim, const float *, dim, float,
                 float *, dim);
    int (*engine_create)(void **, int, size_t);
    int (*stream_create)(void **, void *, unsigned);
    int (*md_strides)(void *, int, const dim *, int, const dim *);
    int (*matmul_init)(void *, const void *, const void *, const void *, const void *);
    int (*pd_create)(void **, const void *, const void *, void *, const void *);
    int (*reorder_create)(void **, const void *, void *, const void *, void *, const void *);
    int (*primitive_create)(void **, const void *);
    int (*memory_create)(void **, const void *, void *, void *);
    int (*execute)(const void *, void *, int, const struct dnnl_arg *);
    int (*wait)(void *);
    void *engine;
    void *stream;
};

static bool load(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool open_onednn(struct onednn *d)
{
    DP_IGNORE(setenv("OMP_NUM_THREADS", "1", 1) != 0);
    void *library = dlopen("libdnnl.so.2", RTLD_NOW);
    return library != NULL && load(library, "dnnl_sgemm", &d->sgemm) &&
           load(library, "dnnl_engine_create", &d->engine_create) &&
           load(library, "dnnl_stream_create", &d->stream_create) &&
           load(library, "dnnl_memory_desc_init_by_strides", &d->md_strides) &&
           load(library, "dnnl_matmul_desc_init", &d->matmul_init) &&
           load(library, "dnnl_primitive_desc_create", &d->pd_create) &&
           load(library, "dnnl_reorder_primitive_desc_create", &d->reorder_create) &&
           load(library, "dnnl_primitive_create", &d->primitive_create) &&
           load(library, "dnnl_memory_create", &d->memory_create) &&
           load(library, "dnnl_primitive_execute", &d->execute) &&
           load(library, "dnnl_stream_wait", &d->wait) &&
           d->engine_create(&d->engine, DNNL_CPU, 0) == 0 &&
           d->stream_create(&d->stream, d->engine, 1) == 0;
}

/* ---- One product, again and again. */

struct product {
    const struct shape *shape;
    const dp_ops *ops; /* of ours */
    float *a;
    float *b;
    float *c;
    float *packed;
    uint16_t *a16;
    uint16_t *b16;
    const struct onednn *dnnl;
    void *primitive;
    struct dnnl_arg args[3];
    void *rounding;
    struct dnnl_arg round_args[2]; /* a to a16 */
};

static void ours(struct product *p)
{
    const struct shape *s = p->shape;
    for (size_t row = 0; row < s->m; row += SLICE) {
        p->ops->gemm(&(dp_gemm){.m = s->m - row < SLICE ? s->m - row : SLICE,
                                .n = s->n,
                                .k = s->k,
                                .a = p->a + row * s->k,
                                .a_row = s->k,
                                .a_depth = 1,
                                .packed = p->packed,
                                .c = p->c + row * s->n,
                                .ldc = s->n});
    }
}

static void ours_with_pack(struct product *p)
{
    p->ops->pack(p->b, p->shape->n, false, p->shape->k, p->shape->n, p->packed);
    ours(p);
}

static void theirs_fp32(struct product *p)
{
    const struct shape *s = p->shape;
    DP_IGNORE(p->dnnl->sgemm('N', 'N', (dim)s->m, (dim)s->n, (dim)s->k, 1.0F, p->a, (dim)s->k, p->b,
                             (dim)s->n, 0.0F, p->c, (dim)s->n) != 0);
}

static void theirs_bf16(struct product *p)
{
    DP_IGNORE(p->dnnl->execute(p->primitive, p->dnnl->stream, 3, p->args) != 0);
    DP_IGNORE(p->dnnl->wait(p->dnnl->stream) != 0);
}

static void theirs_of_fp32(struct product *p)
{
    DP_IGNORE(p->dnnl->execute(p->rounding, p->dnnl->stream, 2, p->round_args) != 0);
    theirs_bf16(p);
}

/* False if this oneDNN or processor has no such product. */
static bool open_theirs_bf16(struct product *p)
{
    static _Alignas(64) char descs[5][DNNL_DESC_BYTES];
    const struct onednn *d = p->dnnl;
    const dim m = (dim)p->shape->m;
    const dim n = (dim)p->shape->n;
    const dim k = (dim)p->shape->k;
    void *pd = NULL;
    void *rounding = NULL;
    memset(descs, 0, sizeof descs);
    return d->md_strides(descs[0], 2, (dim[]){m, k}, DNNL_BF16, (dim[]){k, 1}) == 0 &&
           d->md_strides(descs[1], 2, (dim[]){k, n}, DNNL_BF16, (dim[]){n, 1}) == 0 &&
           d->md_strides(descs[2], 2, (dim[]){m, n}, DNNL_F32, (dim[]){n, 1}) == 0 &&
           d->matmul_init(descs[3], descs[0], descs[1], NULL, descs[2]) == 0 &&
           d->pd_create(&pd, descs[3], NULL, d->engine, NULL) == 0 &&
           d->primitive_create(&p->primitive, pd) == 0 &&
           d->memory_create(&p->args[0].memory, descs[0], d->engine, p->a16) == 0 &&
           d->memory_create(&p->args[1].memory, descs[1], d->engine, p->b16) == 0 &&
           d->memory_create(&p->args[2].memory, descs[2], d->engine, p->c) == 0 &&
           d->md_strides(descs[4], 2, (dim[]){m, k}, DNNL_F32, (dim[]){k, 1}) == 0 &&
           d->reorder_create(&rounding, descs[4], d->engine, descs[0], d->engine, NULL) == 0 &&
           d->primitive_create(&p->rounding, rounding) == 0 &&
           d->memory_create(&p->round_args[0].memory, descs[4], d->engine, p->a) == 0 &&
           d->memory_create(&p->round_args[1].memory, descs[0], d->engine, p->a16) == 0;
}

typedef void (*way)(struct product *);
enum { OURS, WITH_PACK, THEIRS, THEIRS_OF_FP32, WAYS, ROUNDS = 5 };

/* Medians of ROUNDS; the ways alternate. NULL ways give 0. */
static void measure(struct product *p, const way ways[WAYS], double seconds, double gflops[WAYS])
{
    double rates[WAYS][ROUNDS] = {{0}};
    const double flops = 2.0 * (double)p->shape->m * (double)p->shape->n * (double)p->shape->k;
    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t w = 0; w < WAYS && ways[w] != NULL; w++) {
            ways[w](p); /* warm */
            const double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
            size_t times = 0;
            do {
                ways[w](p);
                times++;
            } while (bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start < seconds / ROUNDS);
            const double rate =
                1e-9 * flops * (double)times / (bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start);
            size_t at = round;
            for (; at > 0 && rates[w][at - 1] > rate; at--) {
                rates[w][at] = rates[w][at - 1];
            }
            rates[w][at] = rate;
        }
    }
    for (size_t w = 0; w < WAYS; w++) {
        gflops[w] = rates[w][ROUNDS / 2];
    }
}

static void print(const struct product *p, const double gflops[WAYS], double peak, bool json)
{
    const struct shape *s = p->shape;
    const double ratio = gflops[THEIRS] > 0 ? gflops[OURS] / gflops[THEIRS] : 0.0;
    const double of_fp32 =
        gflops[THEIRS_OF_FP32] > 0 ? gflops[OURS] / gflops[THEIRS_OF_FP32] : ratio;
    if (json) {
        printf("{\"shape\":\"%s\",\"m\":%zu,\"n\":%zu,\"k\":%zu,\"ops\":\"%s\",\"gflops\":%.1f,"
               "\"gflops_with_pack\":%.1f,\"gflops_onednn\":%.1f,\"peak\":%.1f,\"share\":%.3f,"
               "\"ratio\":%.3f,\"ratio_of_fp32\":%.3f}\n",
               s->name, s->m, s->n, s->k, p->ops->name, gflops[OURS], gflops[WITH_PACK],
               gflops[THEIRS], 1e-9 * peak, 1e9 * gflops[OURS] / peak, ratio, of_fp32);
        return;
    }
    printf("%-10s %5zu x %5zu x %4zu  %-10s %6.1f GFLOP/s (%2.0f %% of %.0f), with pack %6.1f",
           s->name, s->m, s->n, s->k, p->ops->name, gflops[OURS], 100e9 * gflops[OURS] / peak,
           1e-9 * peak, gflops[WITH_PACK]);
    if (gflops[THEIRS] > 0.0) {
        printf(", oneDNN %6.1f, ratio %.3f", gflops[THEIRS], ratio);
    }
    if (gflops[THEIRS_OF_FP32] > 0.0) {
        printf(", of a in fp32 %6.1f, ratio %.3f", gflops[THEIRS_OF_FP32], of_fp32);
    }
    puts("");
}

static dp_status run(const struct shape *shape, const dp_ops *ops, const struct onednn *dnnl,
                     double seconds, bool json)
{
    struct product p = {
        .shape = shape,
        .ops = ops,
        .dnnl = dnnl,
        .args = {{DNNL_ARG_SRC, NULL}, {DNNL_ARG_WEIGHTS, NULL}, {DNNL_ARG_DST, NULL}},
        .round_args = {{DNNL_ARG_SRC, NULL}, {DNNL_ARG_DST, NULL}}};
    const size_t n_a = shape->m * shape->k;
    const size_t n_b = shape->k * shape->n;
    p.a = dp_alloc(n_a, sizeof *p.a);
    p.b = dp_alloc(n_b, sizeof *p.b);
    p.c = dp_alloc(shape->m * shape->n, sizeof *p.c);
    p.packed = dp_alloc(dp_packed_floats(ops, shape->k, shape->n), sizeof *p.packed);
    p.a16 = dp_alloc(n_a, sizeof *p.a16);
    p.b16 = dp_alloc(n_b, sizeof *p.b16);
    if (p.a == NULL || p.b == NULL || p.c == NULL || p.packed == NULL || p.a16 == NULL ||
        p.b16 == NULL) {
        return DP_NOMEM;
    }
    dp_rng rng;
    dp_rng_init(&rng, 1);
    for (size_t i = 0; i < n_a + n_b; i++) {
        float *x = i < n_a ? &p.a[i] : &p.b[i - n_a];
        *x = (float)dp_rng_below(&rng, 2001) / 1000.0F - 1.0F;
        *(i < n_a ? &p.a16[i] : &p.b16[i - n_a]) = dp_bfloat_of(*x);
    }
    ops->pack(p.b, shape->n, false, shape->k, shape->n, p.packed);
    way ways[WAYS] = {ours, ours_with_pack};
    if (dnnl != NULL && ops->precision == DP_FP32) {
        ways[THEIRS] = theirs_fp32;
    } else if (dnnl != NULL && open_theirs_bf16(&p)) {
        ways[THEIRS] = theirs_bf16;
        ways[THEIRS_OF_FP32] = theirs_of_fp32;
    }
    double gflops[WAYS] = {0};
    measure(&p, ways, seconds, gflops);
    print(&p, gflops, peak_of(ops), json);
    dp_free(p.a);
    dp_free(p.b);
    dp_free(p.c);
    dp_free(p.packed);
    dp_free(p.a16);
    dp_free(p.b16);
    return DP_OK;
}

int main(int argc, char **argv)
{
    bool json = false;
    double seconds = 1.0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            json = true;
        } else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
            seconds = strtod(argv[++i], NULL);
        } else {
            puts("usage: bench_gemm [--json] [--seconds S]");
            return 64;
        }
    }
    struct onednn onednn = {0};
    const bool found = open_onednn(&onednn);
    for (size_t precision = DP_FP32; precision <= DP_BF16; precision++) {
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            const dp_status status =
                run(&shapes[i], dp_ops_best_in(precision), found ? &onednn : NULL, seconds, json);
            if (status != DP_OK) {
                printf("bench_gemm: %s: %s\n", shapes[i].name, dp_status_text(status));
                return 1;
            }
        }
    }
    return 0;
}
