#include "compute/cpu/ops.h"

#include <math.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "compute/cpu/tables.h"

#if defined(__x86_64__)
/* True if the processor has tiles of bf16 and the kernel lets this process use them, which it wants
 * to be asked (Linux 5.16). */
static bool has_amx(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    enum { AMX_BF16 = 1U << 22U, AMX_TILE = 1U << 24U };
    unsigned int regs[4] = {0};
    return __get_cpuid_count(7, 0, &regs[0], &regs[1], &regs[2], &regs[3]) != 0 &&
           (regs[3] & AMX_BF16) != 0 && (regs[3] & AMX_TILE) != 0 &&
           syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}
#endif

static bool runs_here(const dp_ops *ops)
{
#if defined(__x86_64__)
    if (ops == &dp_ops_avx2 || ops == &dp_ops_avx2_bf16 || ops == &dp_ops_avx2_fp16) {
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    }
    if (ops == &dp_ops_avx512 || ops == &dp_ops_avx512_bf16 || ops == &dp_ops_avx512_fp16 ||
        ops == &dp_ops_avx512bf16 || ops == &dp_ops_amx) {
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
               ((ops != &dp_ops_avx512bf16 && ops != &dp_ops_amx) ||
                __builtin_cpu_supports("avx512bf16")) &&
               (ops != &dp_ops_amx || has_amx());
    }
#endif
    return ops != NULL;
}

/* From the one that is slowest on most processors. */
static const dp_ops *const tables[DP_PRECISIONS][DP_OPS_TABLES_MAX] = {
#if defined(__x86_64__)
    [DP_FP32] = {&dp_ops_plain, &dp_ops_generic, &dp_ops_avx2, &dp_ops_avx512},
    [DP_BF16] = {&dp_ops_plain_bf16, &dp_ops_generic_bf16, &dp_ops_avx2_bf16, &dp_ops_avx512_bf16,
                 &dp_ops_avx512bf16, &dp_ops_amx},
    [DP_FP16] = {&dp_ops_plain_fp16, &dp_ops_generic_fp16, &dp_ops_avx2_fp16, &dp_ops_avx512_fp16},
#else
    [DP_FP32] = {&dp_ops_plain, &dp_ops_generic},
    [DP_BF16] = {&dp_ops_plain_bf16, &dp_ops_generic_bf16},
    [DP_FP16] = {&dp_ops_plain_fp16, &dp_ops_generic_fp16},
#endif
};

/* A turn after scaling. */
static double stretched(const dp_rope_turns *turns, double turn)
{
    switch (turns->scaling) {
    case DP_ROPE_PLAIN:
        return turn;
    case DP_ROPE_LINEAR:
        return turn / turns->factor;
    case DP_ROPE_LLAMA3:
        break;
    }
    const double waves = turns->context * turn / (2.0 * M_PI); /* in the context */
    const double share = (waves - turns->low) / (turns->high - turns->low);
    const double kept = share < 0.0 ? 0.0 : share > 1.0 ? 1.0 : share;
    return (1.0 - kept) * turn / turns->factor + kept * turn;
}

double dp_rope_turn(const dp_rope_turns *turns, size_t pair)
{
    const size_t turned = turns->turned != 0 ? turns->turned : turns->width;
    return pair >= turned / 2
               ? 0.0
               : stretched(turns, pow(turns->theta, -2.0 * (double)pair / (double)turned));
}

void dp_rope_angles(const dp_rope_turns *turns, size_t length, float *angles)
{
    const size_t width = turns->width;
    const size_t half = width / 2;
    for (size_t i = 0; i < half; i++) {
        const double turn = dp_rope_turn(turns, i);
        for (size_t position = 0; position < length; position++) {
            angles[position * width + i] = (float)cos((double)position * turn);
            angles[position * width + half + i] = (float)sin((double)position * turn);
        }
    }
}

/* Intel's vdpbf16ps has half the speed of its fp32 multiply-adds, AMD's twice that. Not measured: a
 * process beside other work would choose otherwise than the last one, and compute other bits. */
static bool pays(const dp_ops *ops)
{
#if defined(__x86_64__)
    return ops != &dp_ops_avx512bf16 || !__builtin_cpu_is("intel");
#else
    return ops != NULL;
#endif
}

const dp_ops *dp_ops_reference(void)
{
    return &dp_ops_plain;
}

const dp_ops *dp_ops_at_in(dp_precision precision, size_t index)
{
    return index < DP_OPS_TABLES_MAX && runs_here(tables[precision][index])
               ? tables[precision][index]
               : NULL;
}

const dp_ops *dp_ops_at(size_t index)
{
    return dp_ops_at_in(DP_FP32, index);
}

const dp_ops *dp_ops_best_in(dp_precision precision)
{
    const dp_ops *best = dp_ops_at_in(precision, 0);
    for (size_t i = 1; dp_ops_at_in(precision, i) != NULL; i++) {
        best = pays(dp_ops_at_in(precision, i)) ? dp_ops_at_in(precision, i) : best;
    }
    return best;
}

bool dp_ops_has_fast_bf16(void)
{
#if defined(__x86_64__)
    const dp_ops *const best = dp_ops_best_in(DP_BF16);
    return best == &dp_ops_avx512bf16 || best == &dp_ops_amx;
#else
    return false;
#endif
}

const dp_ops *dp_ops_best(void)
{
    return dp_ops_best_in(DP_FP32);
}
