#include <cublasLt.h>
#include <dlfcn.h>
#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "compute/cuda/gemm.h"
#include "compute/cuda/gemm_cache.h"

enum {
    PROPOSALS = 24, /* algorithms that are tried for a shape */
    TRIALS = 5,     /* of each; the fastest counts */
    TRIED_MIN =
        1 << 26,        /* m n k from which they are: below it a product is shorter than its launch,
                               and loading 24 kernels for it costs more than all its runs */
    PREPARED_MAX = 512, /* shapes of one engine; beyond that they are prepared anew */
    WORKSPACE_BYTES = 32 * 1024 * 1024, /* NVIDIA's advice for Hopper; less is enough elsewhere */
    LOADED_BYTES = 64 * 1024 * 1024 /* kernels, loaded one by one, and graphs; not measured yet */
};

_Static_assert(sizeof(cublasLtMatmulAlgo_t) == DP_GEMM_ALGORITHM_WORDS * sizeof(uint64_t),
               "the cache holds an algorithm");

/* The calls of cuBLASLt, by their names behind "cublasLt". */
typedef struct library {
    void *handle;
    size_t (*version)(void);
    cublasStatus_t (*create)(cublasLtHandle_t *);
    cublasStatus_t (*destroy)(cublasLtHandle_t);
    __typeof__(&cublasLtMatmul) matmul;
    __typeof__(&cublasLtMatmulDescCreate) desc_create;
    __typeof__(&cublasLtMatmulDescDestroy) desc_destroy;
    __typeof__(&cublasLtMatmulDescSetAttribute) desc_set;
    __typeof__(&cublasLtMatrixLayoutCreate) layout_create;
    __typeof__(&cublasLtMatrixLayoutDestroy) layout_destroy;
    __typeof__(&cublasLtMatmulPreferenceCreate) preference_create;
    __typeof__(&cublasLtMatmulPreferenceDestroy) preference_destroy;
    __typeof__(&cublasLtMatmulPreferenceSetAttribute) preference_set;
    __typeof__(&cublasLtMatmulAlgoGetHeuristic) heuristic;
    __typeof__(&cublasLtMatmulAlgoCheck) check;
} library;

/* A shape that is ready to run. */
typedef struct prepared {
    dp_gemm_key key;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t first; /* of b: cuBLASLt counts columns first, so c' = b' a' */
    cublasLtMatrixLayout_t second;
    cublasLtMatrixLayout_t result;
    cublasLtMatmulAlgo_t algorithm;
    size_t workspace;
    bool plain; /* the library has nothing for it */
} prepared;

struct dp_cuda_gemm {
    dp_cuda_device *device;
    library lt;
    cublasLtHandle_t handle;
    cublasLtMatmulPreference_t preference;
    void *workspace;
    cudaEvent_t from;
    cudaEvent_t to;
    prepared *shapes; /* owned, PREPARED_MAX */
    size_t n_shapes;
    dp_gemm_cache cache;
};

size_t dp_cuda_gemm_bytes(void)
{
    return WORKSPACE_BYTES;
}

size_t dp_cuda_gemm_room(void)
{
    return WORKSPACE_BYTES + LOADED_BYTES;
}

/* ---- The library. */

static bool find(const library *lt, const char *name, void *call)
{
    void *const symbol = dlsym(lt->handle, name);
    memcpy(call, &symbol, sizeof symbol); /* ISO C has no cast from data to functions. */
    return symbol != NULL;
}

static bool is_whole(library *lt)
{
    return find(lt, "cublasLtGetVersion", &lt->version) &&
           find(lt, "cublasLtCreate", &lt->create) && find(lt, "cublasLtDestroy", &lt->destroy) &&
           find(lt, "cublasLtMatmul", &lt->matmul) &&
           find(lt, "cublasLtMatmulDescCreate", &lt->desc_create) &&
           find(lt, "cublasLtMatmulDescDestroy", &lt->desc_destroy) &&
           find(lt, "cublasLtMatmulDescSetAttribute", &lt->desc_set) &&
           find(lt, "cublasLtMatrixLayoutCreate", &lt->layout_create) &&
           find(lt, "cublasLtMatrixLayoutDestroy", &lt->layout_destroy) &&
           find(lt, "cublasLtMatmulPreferenceCreate", &lt->preference_create) &&
           find(lt, "cublasLtMatmulPreferenceDestroy", &lt->preference_destroy) &&
           find(lt, "cublasLtMatmulPreferenceSetAttribute", &lt->preference_set) &&
           find(lt, "cublasLtMatmulAlgoGetHeuristic", &lt->heuristic) &&
           find(lt, "cublasLtMatmulAlgoCheck", &lt->check);
}

static dp_status open_library(library *lt, dp_why *why)
{
    /* That of the release we were built with first; the calls above are the same in both. */
    static const char *const names[] = {
        CUBLAS_VER_MAJOR >= 13 ? "libcublasLt.so.13" : "libcublasLt.so.12",
        CUBLAS_VER_MAJOR >= 13 ? "libcublasLt.so.12" : "libcublasLt.so.13", "libcublasLt.so"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        lt->handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (lt->handle != NULL && is_whole(lt)) {
            return DP_OK;
        }
    }
    return dp_why_set(why, DP_UNSUPPORTED,
                      "%s is not there or too old; install CUDA's libcublas (package "
                      "libcublas-%d-0 or nvidia-cublas of pip, on LD_LIBRARY_PATH)",
                      names[0], CUBLAS_VER_MAJOR);
}

static dp_status refused(dp_cuda_gemm *g, cublasStatus_t status, const char *call)
{
    if (status == CUBLAS_STATUS_SUCCESS) {
        return DP_OK;
    }
    g->device->lost = true;
    return dp_why_set(&g->device->problem, DP_IO, "%s: cuBLASLt refuses %s (its status %d)",
                      g->device->properties.name, call, (int)status);
}

/* ---- Life. */

static dp_status open_preference(dp_cuda_gemm *g)
{
    const size_t workspace = WORKSPACE_BYTES;
    /* Not in place: there the order of sums is that of arrival. */
    const uint32_t schemes =
        CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    DP_TRY(refused(g, g->lt.create(&g->handle), "Create"));
    DP_TRY(refused(g, g->lt.preference_create(&g->preference), "PreferenceCreate"));
    DP_TRY(refused(g,
                   g->lt.preference_set(g->preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                        &workspace, sizeof workspace),
                   "PreferenceSetAttribute"));
    return refused(g,
                   g->lt.preference_set(g->preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                        &schemes, sizeof schemes),
                   "PreferenceSetAttribute");
}

static dp_status open_cache(dp_cuda_gemm *g, const char *folder)
{
    const dp_cuda_properties *const p = &g->device->properties;
    char uuid[2 * sizeof p->uuid + 1];
    char file[sizeof g->cache.file];
    char purpose[sizeof g->cache.purpose];
    for (size_t i = 0; i < sizeof p->uuid; i++) {
        snprintf(uuid + 2 * i, 3, "%02x", (unsigned)p->uuid[i]);
    }
    snprintf(file, sizeof file, "gemm-%s-%zu.txt", uuid, g->lt.version());
    snprintf(purpose, sizeof purpose, "%s sm_%d%d cublasLt %zu", p->name, p->major, p->minor,
             g->lt.version());
    return dp_gemm_cache_open(&g->cache, folder == NULL ? "" : folder, file, purpose);
}

static dp_status open_gemm(dp_cuda_gemm *g, const char *cache, dp_why *why)
{
    DP_TRY(open_library(&g->lt, why));
    g->shapes = dp_alloc(PREPARED_MAX, sizeof *g->shapes);
    if (g->shapes == NULL) {
        return DP_NOMEM;
    }
    DP_TRY(open_cache(g, cache));
    DP_TRY(DP_CUDA(g->device, device_alloc, &g->workspace, WORKSPACE_BYTES));
    DP_TRY(DP_CUDA(g->device, event_open, &g->from));
    DP_TRY(DP_CUDA(g->device, event_open, &g->to));
    return open_preference(g);
}

dp_status dp_cuda_gemm_open(dp_cuda_gemm **out, dp_cuda_device *device, const char *cache,
                            dp_why *why)
{
    dp_cuda_gemm *const g = dp_alloc(1, sizeof *g);
    if (g == NULL) {
        return DP_NOMEM;
    }
    g->device = device;
    dp_why own = {{0}};
    const dp_status status = open_gemm(g, cache, &own);
    if (status != DP_OK) {
        DP_IGNORE(
            dp_why_set(why, status, "%s", own.text[0] != '\0' ? own.text : device->problem.text));
        dp_cuda_gemm_close(g);
        return status;
    }
    *out = g;
    return DP_OK;
}

/* These calls fail only on a lost device; the memory ends with the device. */
static void forget_shapes(dp_cuda_gemm *g)
{
    for (size_t i = 0; i < g->n_shapes; i++) {
        prepared *const p = &g->shapes[i];
        DP_IGNORE(p->result != NULL && g->lt.layout_destroy(p->result) != CUBLAS_STATUS_SUCCESS);
        DP_IGNORE(p->second != NULL && g->lt.layout_destroy(p->second) != CUBLAS_STATUS_SUCCESS);
        DP_IGNORE(p->first != NULL && g->lt.layout_destroy(p->first) != CUBLAS_STATUS_SUCCESS);
        DP_IGNORE(p->desc != NULL && g->lt.desc_destroy(p->desc) != CUBLAS_STATUS_SUCCESS);
    }
    g->n_shapes = 0;
}

static void free_card(dp_cuda_gemm *g)
{
    const dp_cuda_api *const api = g->device->api;
    forget_shapes(g);
    if (g->preference != NULL) {
        DP_IGNORE(g->lt.preference_destroy(g->preference) != CUBLAS_STATUS_SUCCESS);
    }
    if (g->handle != NULL) {
        DP_IGNORE(g->lt.destroy(g->handle) != CUBLAS_STATUS_SUCCESS);
    }
    if (g->to != NULL) {
        DP_IGNORE(api->event_close(g->to) != 0);
    }
    if (g->from != NULL) {
        DP_IGNORE(api->event_close(g->from) != 0);
    }
    if (g->workspace != NULL) {
        DP_IGNORE(api->device_free(g->workspace) != 0);
    }
}

void dp_cuda_gemm_close(dp_cuda_gemm *g)
{
    if (g == NULL) {
        return;
    }
    if (!g->device->hangs) {
        free_card(g);
    }
    dp_gemm_cache_close(&g->cache);
    dp_free(g->shapes);
    dp_free(g); /* The library stays: work that it started may still run. */
}

/* ---- A shape. */

static cudaDataType_t type_of(dp_precision precision)
{
    switch (precision) {
    case DP_BF16:
        return CUDA_R_16BF;
    case DP_FP16:
        return CUDA_R_16F;
    case DP_FP32:
    case DP_PRECISIONS:
        break;
    }
    return CUDA_R_32F;
}

static dp_status set(dp_cuda_gemm *g, prepared *p, cublasLtMatmulDescAttributes_t attribute,
                     const void *value, size_t size)
{
    return refused(g, g->lt.desc_set(p->desc, attribute, value, size), "MatmulDescSetAttribute");
}

/* Row-major [rows][columns] is column-major [columns][rows], as the library sees it. */
static dp_status describe(dp_cuda_gemm *g, prepared *p, const dp_cuda_product *product)
{
    const cudaDataType_t in = type_of(product->in);
    const cudaDataType_t out = type_of(product->out);
    const cublasOperation_t ops[2] = {product->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                                      product->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N};
    const uint64_t b_columns = product->b_transposed ? product->k : product->n;
    const uint64_t b_rows = product->b_transposed ? product->n : product->k;
    const uint64_t a_columns = product->a_transposed ? product->m : product->k;
    const uint64_t a_rows = product->a_transposed ? product->k : product->m;
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    /* Cards before Ampere have no tensor cores for it. */
    const cublasComputeType_t compute = product->tf32 && g->device->properties.major >= 8
                                            ? CUBLAS_COMPUTE_32F_FAST_TF32
                                            : CUBLAS_COMPUTE_32F;
    DP_TRY(refused(g, g->lt.desc_create(&p->desc, compute, CUDA_R_32F), "DescCreate"));
    DP_TRY(set(g, p, CUBLASLT_MATMUL_DESC_TRANSA, &ops[0], sizeof ops[0]));
    DP_TRY(set(g, p, CUBLASLT_MATMUL_DESC_TRANSB, &ops[1], sizeof ops[1]));
    if (product->bias != NULL) {
        DP_TRY(set(g, p, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
        DP_TRY(set(g, p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &product->bias, sizeof(void *)));
    }
    DP_TRY(refused(g, g->lt.layout_create(&p->first, in, b_columns, b_rows, (int64_t)product->ldb),
                   "Layout"));
    DP_TRY(refused(g, g->lt.layout_create(&p->second, in, a_columns, a_rows, (int64_t)product->lda),
                   "Layout"));
    return refused(
        g, g->lt.layout_create(&p->result, out, product->n, product->m, (int64_t)product->ldc),
        "Layout");
}

/* c: product->c, or other memory while algorithms are tried. */
static cublasStatus_t multiply(dp_cuda_gemm *g, const prepared *p, const dp_cuda_product *product,
                               const cublasLtMatmulAlgo_t *algorithm, void *c, cudaStream_t stream)
{
    const float one = 1.0F;
    const float beta = product->add != NULL ? 1.0F : 0.0F;
    const void *const add = product->add == NULL || product->add == product->c ? c : product->add;
    return g->lt.matmul(g->handle, p->desc, &one, product->b, p->first, product->a, p->second,
                        &beta, add, p->result, c, p->result, algorithm, g->workspace,
                        WORKSPACE_BYTES, stream);
}

/* ---- Finding the algorithm. */

/* The fastest of TRIALS runs, in ms; negative when it does not run. */
static dp_status try_one(dp_cuda_gemm *g, const prepared *p, const dp_cuda_product *product,
                         const cublasLtMatmulAlgo_t *algorithm, void *c, float *best)
{
    const cudaStream_t stream = g->device->compute;
    *best = -1.0F;
    for (int i = 0; i < TRIALS; i++) {
        float ms = 0.0F;
        DP_TRY(DP_CUDA(g->device, event_record, g->from, stream));
        if (multiply(g, p, product, algorithm, c, stream) != CUBLAS_STATUS_SUCCESS) {
            (void)g->device->api->last_error(); /* The attempt may have left one. */
            return DP_OK;
        }
        DP_TRY(DP_CUDA(g->device, event_record, g->to, stream));
        DP_TRY(dp_cuda_wait(g->device, stream));
        DP_TRY(DP_CUDA(g->device, event_elapsed, &ms, g->from, g->to));
        *best = *best < 0.0F || ms < *best ? ms : *best;
    }
    return DP_OK;
}

static dp_status try_all(dp_cuda_gemm *g, prepared *p, const dp_cuda_product *product,
                         const cublasLtMatmulHeuristicResult_t *proposals, size_t count)
{
    /* Results go elsewhere: c may be one that is added to. Where there is no room for that the
     * first proposal must do. */
    const size_t bytes = product->m * product->ldc * (product->out == DP_FP32 ? 4 : 2);
    void *c = NULL;
    float best = 0.0F;
    size_t chosen = 0;
    dp_status status = DP_CUDA(g->device, device_alloc, &c, bytes);
    if (status == DP_NOMEM) {
        count = 0;
        status = DP_OK;
    } else if (status == DP_OK) {
        status = DP_CUDA(g->device, fill, c, 0, bytes, g->device->compute);
    }
    const bool first_does =
        (double)product->m * (double)product->n * (double)product->k < TRIED_MIN;
    for (size_t i = 0; i < count && status == DP_OK && !(first_does && best > 0.0F); i++) {
        float ms;
        status = try_one(g, p, product, &proposals[i].algo, c, &ms);
        if (status == DP_OK && ms >= 0.0F && (best <= 0.0F || ms < best)) {
            best = ms > 0.0F ? ms : FLT_MIN; /* Clocks may see nothing. */
            chosen = i;
        }
    }
    if (c != NULL) {
        dp_cuda_device_free(g->device, c);
    }
    p->algorithm = proposals[chosen].algo;
    p->workspace = proposals[chosen].workspaceSize;
    return status;
}

/* The library takes 256 bytes for granted; weights lie at 128 in halves, parts of batches at
 * less. */
static dp_status set_alignment(dp_cuda_gemm *g, uint32_t bytes)
{
    static const cublasLtMatmulPreferenceAttributes_t attributes[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
        DP_TRY(refused(g, g->lt.preference_set(g->preference, attributes[i], &bytes, sizeof bytes),
                       "PreferenceSetAttribute"));
    }
    return DP_OK;
}

/* A found algorithm becomes that of p, if the library takes it for this shape here. */
static bool takes(dp_cuda_gemm *g, prepared *p, const dp_gemm_found *found)
{
    cublasLtMatmulHeuristicResult_t result;
    cublasLtMatmulAlgo_t algorithm;
    memcpy(&algorithm, found->algorithm, sizeof algorithm);
    if (g->lt.check(g->handle, p->desc, p->first, p->second, p->result, p->result, &algorithm,
                    &result) != CUBLAS_STATUS_SUCCESS ||
        result.workspaceSize > WORKSPACE_BYTES) {
        return false;
    }
    p->algorithm = algorithm;
    return true;
}

static dp_status choose(dp_cuda_gemm *g, prepared *p, const dp_cuda_product *product)
{
    cublasLtMatmulHeuristicResult_t proposals[PROPOSALS];
    const dp_gemm_found *const known = dp_gemm_cache_get(&g->cache, &p->key);
    if (known != NULL && takes(g, p, known)) {
        return DP_OK;
    }
    int count = 0;
    DP_TRY(set_alignment(g, dp_gemm_is_aligned(product) ? DP_GEMM_ALIGN : 2));
    const cublasStatus_t status =
        g->lt.heuristic(g->handle, p->desc, p->first, p->second, p->result, p->result,
                        g->preference, PROPOSALS, proposals, &count);
    if (status != CUBLAS_STATUS_SUCCESS || count <= 0) {
        p->plain = true;
        return DP_OK;
    }
    DP_TRY(try_all(g, p, product, proposals, (size_t)count));
    dp_gemm_found found = {.key = p->key, .workspace = p->workspace};
    memcpy(found.algorithm, &p->algorithm, sizeof found.algorithm);
    /* Where it cannot be written, the next start searches again and may compute other bits: no
     * reason not to compute now. */
    DP_IGNORE(dp_gemm_cache_keep(&g->cache, &found, known != NULL) != DP_OK);
    DP_IGNORE(takes(g, p, &found)); /* Its own, or that of another process. */
    return DP_OK;
}

static dp_status prepare(dp_cuda_gemm *g, const dp_cuda_product *product, prepared **out)
{
    const dp_gemm_key key = dp_gemm_key_of(product);
    for (size_t i = 0; i < g->n_shapes; i++) {
        if (memcmp(&g->shapes[i].key, &key, sizeof key) == 0) {
            *out = &g->shapes[i];
            return DP_OK;
        }
    }
    if (g->device->capturing) {
        return DP_BUSY;
    }
    if (g->n_shapes == PREPARED_MAX) {
        forget_shapes(g);
    }
    prepared *const p = &g->shapes[g->n_shapes++]; /* Counted first, so that close finds it. */
    *p = (prepared){.key = key};
    DP_TRY(describe(g, p, product));
    DP_TRY(choose(g, p, product));
    *out = p;
    return DP_OK;
}

dp_status dp_cuda_gemm_run(dp_cuda_gemm *g, const dp_cuda_product *product, cudaStream_t stream)
{
    prepared *p;
    if (g->device->lost) {
        return DP_IO;
    }
    DP_TRY(prepare(g, product, &p));
    if (p->plain) {
        return DP_CUDA_RUN(g->device, dp_cuda_gemm_plain(product, stream));
    }
    if (product->bias != NULL) {
        DP_TRY(set(g, p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &product->bias, sizeof(void *)));
    }
    return refused(g, multiply(g, p, product, &p->algorithm, product->c, stream), "Matmul");
}
