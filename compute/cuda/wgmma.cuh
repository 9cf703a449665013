/* The warpgroup's products of sm_90a as functions: 64 rows by 64 or 128 columns, 16 deep, with
 * factors in shared memory and sums in registers, under way while the threads do other things.
 * Beside each instruction its twin for the emulator, after NVIDIA's PTX ISA 8.0, "Asynchronous
 * Warpgroup Level Matrix Instructions".
 *
 * A warpgroup is four warps that begin at a multiple of four, and all its threads call together.
 * Warp w has rows 16 w .. 16 w + 15 of the sums; in it lane = 4 g + t has, of each 8 columns, the
 * four sums that mma.cuh draws: rows g, g, g+8, g+8, columns 2t, 2t+1, 2t, 2t+1. A left factor in
 * registers is laid out as mma.cuh's too, so sums rounded to halves are left factors at once.
 *
 * A factor in shared memory is a tile of bulk.cuh, told by a descriptor: address / 16 in bits 0 to
 * 13; in bits 16 to 29 the distance of panels / 16, used where a panel's columns are columns of the
 * product and there are more than 64; in bits 32 to 45 that of groups of 8 rows / 16, here 64; in
 * bits 62 and 63 the swizzle, 1 for 128 bytes. */
#ifndef DP_COMPUTE_CUDA_WGMMA_CUH
#define DP_COMPUTE_CUDA_WGMMA_CUH

#include "compute/cuda/bulk.cuh"

#if !defined(__CUDACC__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define DP_HAS_WGMMA 1
#else
#define DP_HAS_WGMMA 0
#endif

enum { DP_GROUP = 128 /* threads of a warpgroup */, DP_GROUP_ROWS = 64, DP_SM_REGISTERS = 65536 };

/* Of a tile of ROWS rows, or of the panels from this one on. */
template <int ROWS> static __device__ inline uint64_t dp_factor(const void *tile)
{
    const uint64_t panels = ROWS * DP_PANEL * 2;
    const uint64_t groups = 8 * DP_PANEL * 2;
    return (uint64_t)(dp_shared_at(tile) >> 4 & 0x3fffU) | panels >> 4 << 16 | groups >> 4 << 32 |
           (uint64_t)1 << 62;
}

/* The part of a descriptor that begins so many bytes behind. */
static __device__ inline uint64_t dp_factor_from(uint64_t factor, int bytes)
{
    return factor + (uint64_t)(bytes >> 4);
}

#if defined(__CUDACC__)

/* Before the first product that reads registers written since. */
static __device__ inline void dp_group_begin(void)
{
#if DP_HAS_WGMMA
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}

/* Products since the last are a batch. */
static __device__ inline void dp_group_close(void)
{
#if DP_HAS_WGMMA
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}

/* Until at most so many batches are under way. */
template <int BATCHES> static __device__ inline void dp_group_wait(void)
{
#if DP_HAS_WGMMA
    asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(BATCHES) : "memory");
#endif
}

/* Registers for each thread of the warpgroup from now on, a multiple of 8; all its threads. A block
 * that is alone on its SM begins with DP_SM_REGISTERS shared out to its threads, rounded down to
 * eights, and more come from what others of the block give back, from nowhere else: 168 each for
 * three warpgroups, so 504 a lane of all, and 128, so 512, for four. A warpgroup that asks for more
 * waits for ever. */
template <int REGISTERS> static __device__ inline void dp_group_registers_less(void)
{
#if DP_HAS_WGMMA
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(REGISTERS));
#endif
}

template <int REGISTERS> static __device__ inline void dp_group_registers_more(void)
{
#if DP_HAS_WGMMA
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(REGISTERS));
#endif
}

/* The compiler reads and writes these sums neither before nor behind this line instead of behind or
 * before it: products change them between instructions that it sees. */
template <int N> static __device__ inline void dp_group_keep(float (&sums)[N][4])
{
#pragma unroll
    for (int n = 0; n < N; n++) {
        asm volatile(""
                     : "+f"(sums[n][0]), "+f"(sums[n][1]), "+f"(sums[n][2]),
                       "+f"(sums[n][3])::"memory");
    }
}

#define DP_SUMS4(s, n) "+f"(s[n][0]), "+f"(s[n][1]), "+f"(s[n][2]), "+f"(s[n][3])
#define DP_SUMS32(s, n)                                                                            \
    DP_SUMS4(s, n), DP_SUMS4(s, n + 1), DP_SUMS4(s, n + 2), DP_SUMS4(s, n + 3),                    \
        DP_SUMS4(s, n + 4), DP_SUMS4(s, n + 5), DP_SUMS4(s, n + 6), DP_SUMS4(s, n + 7)
#define DP_SUMS_OF_64(s) DP_SUMS32(s, 0)
#define DP_SUMS_OF_128(s) DP_SUMS32(s, 0), DP_SUMS32(s, 8)
#define DP_NAMES32                                                                                 \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,"   \
    "%25,%26,%27,%28,%29,%30,%31"
#define DP_NAMES64                                                                                 \
    DP_NAMES32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51," \
               "%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"

/* sums (+)= left * right', both tiles whose columns are the depth, from this step of 16 on. add 0:
 * sums are written. */
#if DP_HAS_WGMMA
#define DP_WGMMA_TILES(type, word, columns, names, left_at, right_at, add_at)                      \
    static __device__ inline void dp_group_mma(type *, float(&sums)[columns / 8][4],               \
                                               uint64_t left, uint64_t right, int add)             \
    {                                                                                              \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %" add_at ", 0; "                             \
                     "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." word "." word         \
                     " {" names "}, %" left_at ", %" right_at ", p, 1, 1, 0, 0; }"                 \
                     : DP_SUMS_OF_##columns(sums)                                                  \
                     : "l"(left), "l"(right), "r"(add));                                           \
    }
/* sums += left * right, left in registers, right a tile whose rows are the depth, from this step of
 * 16 rows on. */
#define DP_WGMMA_HELD(type, word, columns, names, a0, a1, a2, a3, right_at)                        \
    static __device__ inline void dp_group_mma_held(type *, float(&sums)[columns / 8][4],          \
                                                    const uint32_t(&left)[4], uint64_t right)      \
    {                                                                                              \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." word "." word         \
                     " {" names "}, {%" a0 ",%" a1 ",%" a2 ",%" a3 "}, %" right_at ", 1, 1, 1, 1;" \
                     : DP_SUMS_OF_##columns(sums)                                                  \
                     : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right));        \
    }
#else
#define DP_WGMMA_TILES(type, word, columns, names, left_at, right_at, add_at)                      \
    static __device__ inline void dp_group_mma(type *, float(&)[columns / 8][4], uint64_t,         \
                                               uint64_t, int)                                      \
    {                                                                                              \
    }
#define DP_WGMMA_HELD(type, word, columns, names, a0, a1, a2, a3, right_at)                        \
    static __device__ inline void dp_group_mma_held(type *, float(&)[columns / 8][4],              \
                                                    const uint32_t(&)[4], uint64_t)                \
    {                                                                                              \
    }
#endif
DP_WGMMA_TILES(dp_bf16, "bf16", 64, DP_NAMES32, "32", "33", "34")
DP_WGMMA_TILES(dp_bf16, "bf16", 128, DP_NAMES64, "64", "65", "66")
DP_WGMMA_TILES(dp_fp16, "f16", 64, DP_NAMES32, "32", "33", "34")
DP_WGMMA_TILES(dp_fp16, "f16", 128, DP_NAMES64, "64", "65", "66")
DP_WGMMA_HELD(dp_bf16, "bf16", 64, DP_NAMES32, "32", "33", "34", "35", "36")
DP_WGMMA_HELD(dp_bf16, "bf16", 128, DP_NAMES64, "64", "65", "66", "67", "68")
DP_WGMMA_HELD(dp_fp16, "f16", 64, DP_NAMES32, "32", "33", "34", "35", "36")
DP_WGMMA_HELD(dp_fp16, "f16", 128, DP_NAMES64, "64", "65", "66", "67", "68")

#else

/* ---- on the processor: products come when their batch is waited for, as late as they may. Until
 * then their sums are NaN; shared memory is read when they come, and the registers of a left factor
 * must still hold the same values then. */

enum { DP_PRODUCTS_MAX = 48, DP_WINDOWS_MAX = 8, DP_GROUPED_MAX = 512, DP_SUMS_MAX = 64 };

/* Sums of a thread that products under way will write. */
typedef struct dp_window {
    float *sums;
    int n;
    int batch; /* the last that writes it */
    float values[DP_SUMS_MAX];
} dp_window;

typedef struct dp_product {
    int window;
    int batch;
    bool fp16;
    bool held; /* left is in registers */
    bool add;
    const uint32_t *own; /* the registers of this thread */
    uint32_t own_then[4];
    uint16_t rows[2][16]; /* of a held left factor */
    uint64_t left;
    uint64_t right;
} dp_product;

typedef struct dp_grouped {
    int n;
    int n_windows;
    int closed; /* batches */
    dp_product at[DP_PRODUCTS_MAX];
    dp_window windows[DP_WINDOWS_MAX];
} dp_grouped;

static dp_grouped dp_grouped_of[DP_GROUPED_MAX]; /* by thread of the block */

static inline void dp_group_begin(void)
{
}

static inline void dp_group_close(void)
{
    dp_grouped_of[threadIdx.x].closed++;
}

/* Registers that threads of the running block have given back, less 1: static shared memory begins
 * as -1. */
__shared__ int dp_registers_spare;

/* Registers of a thread at the start. */
static inline int dp_registers_given(void)
{
    return DP_SM_REGISTERS / (int)blockDim.x / 8 * 8;
}

static inline bool dp_registers_are_there(const void *wanted)
{
    return dp_registers_spare + 1 >= *(const int *)wanted;
}

template <int REGISTERS> static inline void dp_group_registers_less(void)
{
    static_assert(REGISTERS % 8 == 0 && REGISTERS >= 24 && REGISTERS <= 256, "as a card takes it");
    if (REGISTERS > dp_registers_given()) {
        host_gpu_fail(__FILE__, __LINE__, "%d registers are not less", REGISTERS);
    }
    dp_registers_spare += dp_registers_given() - REGISTERS;
}

template <int REGISTERS> static inline void dp_group_registers_more(void)
{
    static_assert(REGISTERS % 8 == 0 && REGISTERS >= 24 && REGISTERS <= 256, "as a card takes it");
    const int more = REGISTERS - dp_registers_given();
    if (more < 0) {
        host_gpu_fail(__FILE__, __LINE__, "%d registers are not more", REGISTERS);
    }
    host_gpu_wait_until("dp_group_registers_more", dp_registers_are_there, &more);
    dp_registers_spare -= more;
}

template <int N> static inline void dp_group_keep(float (&)[N][4])
{
}

static inline uint16_t dp_shared_half(uint32_t at)
{
    uint16_t half;
    memcpy(&half, dp_shared_of(dp_swizzled(at)), sizeof half);
    return half;
}

static inline uint32_t dp_factor_bytes(uint64_t factor, int bit)
{
    return (uint32_t)(factor >> bit & 0x3fffU) << 4;
}

/* Where row r, depth k of a factor stands whose columns are the depth. */
static inline uint32_t dp_factor_at(uint64_t factor, unsigned r, unsigned k)
{
    return dp_factor_bytes(factor, 0) + r / 8 * dp_factor_bytes(factor, 32) + r % 8 * 128 + k * 2;
}

/* Where depth k, column c of a factor stands whose rows are the depth. */
static inline uint32_t dp_factor_turned_at(uint64_t factor, unsigned k, unsigned c)
{
    return dp_factor_bytes(factor, 0) + k / 8 * dp_factor_bytes(factor, 32) + k % 8 * 128 +
           c / DP_PANEL * dp_factor_bytes(factor, 16) + c % DP_PANEL * 2;
}

static inline float dp_product_float(const dp_product *p, uint16_t bits)
{
    return p->fp16 ? dp_to_float(dp_fp16{bits}) : dp_to_float(dp_bf16{bits});
}

static inline void dp_product_come(dp_product *p, dp_window *w)
{
    const unsigned lane = threadIdx.x % DP_LANES;
    const unsigned first = threadIdx.x % DP_GROUP / DP_LANES * 16 + lane / 4;
    float left[2][16];
    if (p->held && memcmp(p->own, p->own_then, sizeof p->own_then) != 0) {
        host_gpu_fail(__FILE__, __LINE__, "a left factor was changed under a product under way");
    }
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned k = 0; k < 16; k++) {
            left[i][k] = dp_product_float(
                p,
                p->held ? p->rows[i][k] : dp_shared_half(dp_factor_at(p->left, first + 8 * i, k)));
        }
    }
    for (unsigned n = 0; n < (unsigned)w->n; n += 4) {
        for (unsigned j = 0; j < 2; j++) {
            const unsigned column = 2 * n + 2 * (lane % 4) + j;
            float low = p->add ? w->values[n + j] : 0.0F;
            float high = p->add ? w->values[n + 2 + j] : 0.0F;
            for (unsigned k = 0; k < 16; k++) {
                const float right = dp_product_float(
                    p, dp_shared_half(p->held ? dp_factor_turned_at(p->right, k, column)
                                              : dp_factor_at(p->right, column, k)));
                low += left[0][k] * right;
                high += left[1][k] * right;
            }
            w->values[n + j] = low;
            w->values[n + 2 + j] = high;
        }
    }
}

template <int BATCHES> static inline void dp_group_wait(void)
{
    dp_grouped *const mine = &dp_grouped_of[threadIdx.x];
    const int due = mine->closed - BATCHES; /* batches below come */
    int left = 0;
    for (int i = 0; i < mine->n; i++) {
        if (mine->at[i].batch < due) {
            dp_product_come(&mine->at[i], &mine->windows[mine->at[i].window]);
        } else {
            mine->at[left++] = mine->at[i];
        }
    }
    mine->n = left;
    for (int i = 0; i < mine->n_windows; i++) {
        dp_window *const w = &mine->windows[i];
        if (w->sums != nullptr && w->batch < due) {
            memcpy(w->sums, w->values, (size_t)w->n * sizeof(float));
            w->sums = nullptr;
        }
    }
    mine->n_windows = mine->n == 0 ? 0 : mine->n_windows;
}

/* The window of these sums, which are NaN from now on. */
static inline int dp_window_of(dp_grouped *mine, float *sums, int n)
{
    int at = 0;
    while (at < mine->n_windows && mine->windows[at].sums != sums) {
        at++;
    }
    if (at == mine->n_windows) {
        if (at == DP_WINDOWS_MAX || mine->n == DP_PRODUCTS_MAX) {
            host_gpu_fail(__FILE__, __LINE__, "more products under way than the emulator holds");
        }
        mine->n_windows++;
        mine->windows[at].sums = sums;
        mine->windows[at].n = n;
        memcpy(mine->windows[at].values, sums, (size_t)n * sizeof(float));
        memset(sums, 0xff, (size_t)n * sizeof(float));
    }
    mine->windows[at].batch = mine->closed;
    return at;
}

static inline dp_product *dp_product_ask(float *sums, int n, bool fp16, uint64_t right, bool add)
{
    dp_grouped *const mine = &dp_grouped_of[threadIdx.x];
    const int window = dp_window_of(mine, sums, n);
    if (mine->n == DP_PRODUCTS_MAX) {
        host_gpu_fail(__FILE__, __LINE__, "more than %d products under way", DP_PRODUCTS_MAX);
    }
    dp_product *const p = &mine->at[mine->n++];
    *p = {};
    p->window = window;
    p->batch = mine->closed;
    p->fp16 = fp16;
    p->add = add;
    p->right = right;
    return p;
}

static inline bool dp_is_fp16(const dp_fp16 *)
{
    return true;
}

static inline bool dp_is_fp16(const dp_bf16 *)
{
    return false;
}

/* sums (+)= left * right', both tiles whose columns are the depth, from this step of 16 on. add 0:
 * sums are written. */
template <typename T, int N>
static inline void dp_group_mma(T *type, float (&sums)[N][4], uint64_t left, uint64_t right,
                                int add)
{
    __syncwarp();
    dp_product *const p = dp_product_ask(&sums[0][0], N * 4, dp_is_fp16(type), right, add != 0);
    p->left = left;
}

/* sums += left * right, left in registers, right a tile whose rows are the depth, from this step of
 * 16 rows on. */
template <typename T, int N>
static inline void dp_group_mma_held(T *type, float (&sums)[N][4], const uint32_t (&left)[4],
                                     uint64_t right)
{
    struct words {
        uint32_t word[4];
    };
    const words mine = {{left[0], left[1], left[2], left[3]}};
    words all[DP_LANES];
    host_gpu_gather(0xffffffffU, mine, all);
    dp_product *const p = dp_product_ask(&sums[0][0], N * 4, dp_is_fp16(type), right, true);
    p->held = true;
    p->own = left;
    memcpy(p->own_then, left, sizeof p->own_then);
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned k = 0; k < 16; k++) {
            const words *const of = &all[host_gpu_lane() / 4 * 4 + k % 8 / 2];
            p->rows[i][k] = (uint16_t)(of->word[k / 8 * 2 + i] >> 16 * (k % 2));
        }
    }
}

#endif

#endif
