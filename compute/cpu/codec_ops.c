#include "compute/cpu/codec_ops.h"

#include "compute/cpu/codec_tables.h"

static bool runs_here(const dp_codec_ops *ops)
{
#if defined(__x86_64__)
    if (ops == &dp_codec_ops_avx2) {
        return __builtin_cpu_supports("avx2");
    }
    if (ops == &dp_codec_ops_avx512) {
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
    }
#endif
    return ops != NULL;
}

/* Slowest first. */
static const dp_codec_ops *const tables[] = {
    &dp_codec_ops_plain,
#if defined(__x86_64__)
    &dp_codec_ops_avx2,
    &dp_codec_ops_avx512,
#endif
};

enum { TABLE_COUNT = sizeof tables / sizeof tables[0] };

const dp_codec_ops *dp_codec_ops_reference(void)
{
    return &dp_codec_ops_plain;
}

const dp_codec_ops *dp_codec_ops_at(size_t index)
{
    return index < TABLE_COUNT && runs_here(tables[index]) ? tables[index] : NULL;
}

const dp_codec_ops *dp_codec_ops_best(void)
{
    size_t index = 0;
    while (dp_codec_ops_at(index + 1) != NULL) {
        index++;
    }
    return tables[index];
}
