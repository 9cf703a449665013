#include "compute/ops.h"

#include <math.h>

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

void dp_rope_angles(float theta, size_t width, size_t length, float *angles)
{
    const size_t half = width / 2;
    for (size_t i = 0; i < half; i++) {
        const double turn = pow((double)theta, -2.0 * (double)i / (double)width);
        for (size_t position = 0; position < length; position++) {
            angles[position * width + i] = (float)cos((double)position * turn);
            angles[position * width + half + i] = (float)sin((double)position * turn);
        }
    }
}

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
