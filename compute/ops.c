#include "compute/ops.h"

#include "compute/cpu/tables.h"

static bool runs_here(const dp_ops *ops)
{
#if defined(__x86_64__)
    if (ops == &dp_ops_avx2) {
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    }
    if (ops == &dp_ops_avx512) {
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
    }
#endif
    return ops != NULL;
}

static const dp_ops *const tables[] = {
    &dp_ops_plain,
    &dp_ops_generic,
#if defined(__x86_64__)
    &dp_ops_avx2,
    &dp_ops_avx512,
#endif
};

const dp_ops *dp_ops_reference(void)
{
    return &dp_ops_plain;
}

const dp_ops *dp_ops_at(size_t index)
{
    return index < sizeof tables / sizeof tables[0] && runs_here(tables[index]) ? tables[index]
                                                                                : NULL;
}

const dp_ops *dp_ops_best(void)
{
    size_t index = 0;
    while (dp_ops_at(index + 1) != NULL) {
        index++;
    }
    return tables[index];
}
