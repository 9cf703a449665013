#include "compute/cpu/ops_choice.h"

#include <pthread.h>
#include <stdint.h>
#include <time.h>

#include "base/alloc.h"
#include "base/assert.h"

enum { ROWS = 144, COLUMNS = 256, DEPTH = 256, TRIES = 3 };

/* The operands of a product like those of a small layer. */
struct product {
    float a[ROWS * DEPTH];
    float b[DEPTH * COLUMNS];
    float c[ROWS * COLUMNS];
    float packed[DEPTH * (COLUMNS + DP_OPS_PANEL_MAX)];
};

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double seconds_of(const dp_ops *ops, struct product *p)
{
    const double start = seconds_now();
    ops->pack(p->b, COLUMNS, false, DEPTH, COLUMNS, p->packed);
    ops->gemm(&(dp_gemm){.m = ROWS,
                         .n = COLUMNS,
                         .k = DEPTH,
                         .a = p->a,
                         .a_row = DEPTH,
                         .a_depth = 1,
                         .packed = p->packed,
                         .c = p->c,
                         .ldc = COLUMNS});
    return seconds_now() - start;
}

size_t dp_ops_choose(const double *seconds, size_t n)
{
    dp_assert(n > 0);
    size_t best = n - 1;
    for (size_t i = n - 1; i-- > 0;) {
        if (seconds[i] * DP_OPS_CHOICE_MARGIN < seconds[best]) {
            best = i;
        }
    }
    return best;
}

static const dp_ops *last_of(dp_precision precision)
{
    size_t n = 0;
    while (dp_ops_at_in(precision, n + 1) != NULL) {
        n++;
    }
    return dp_ops_at_in(precision, n);
}

/* The tables behind the reference take turns, so that a change of the processor's speed meets all;
 * the first turn warms the caches. Only bf16 is measured: its instructions may be slower than doing
 * without, while wider vectors never are, and processes that train as one must not choose between
 * tables that are about as fast. */
static const dp_ops *measured(dp_precision precision)
{
    double best[DP_OPS_TABLES_MAX];
    size_t n = 0;
    struct product *const p = precision == DP_BF16 ? dp_alloc(1, sizeof *p) : NULL;
    if (p == NULL) {
        return last_of(precision);
    }
    for (size_t try = 0; try <= TRIES; try++) {
        for (n = 0; dp_ops_at_in(precision, n + 1) != NULL; n++) {
            const double seconds = seconds_of(dp_ops_at_in(precision, n + 1), p);
            best[n] = try <= 1 || seconds < best[n] ? seconds : best[n];
        }
    }
    dp_free(p);
    return dp_ops_at_in(precision, 1 + dp_ops_choose(best, n));
}

const dp_ops *dp_ops_best_in(dp_precision precision)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const dp_ops *chosen[DP_PRECISIONS];
    pthread_mutex_lock(&lock);
    if (chosen[precision] == NULL) {
        chosen[precision] = measured(precision);
    }
    const dp_ops *const ops = chosen[precision];
    pthread_mutex_unlock(&lock);
    return ops;
}

const dp_ops *dp_ops_best(void)
{
    return dp_ops_best_in(DP_FP32);
}
