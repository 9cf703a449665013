/* Which table of operations of bf16 a process uses: a measurement decides, since a processor's
 * instructions for it may be slower than doing without (a Xeon's vdpbf16ps has half the speed of
 * its fp32). Of fp32 and fp16 it is the last of the list that runs here. */
#ifndef DP_COMPUTE_CPU_OPS_CHOICE_H
#define DP_COMPUTE_CPU_OPS_CHOICE_H

#include "compute/cpu/ops.h"

/* An earlier table of a list is taken only if it is so many times as fast as a later one, so that a
 * measurement beside other work hardly ever gives a machine other bits than in the last process. */
#define DP_OPS_CHOICE_MARGIN 1.2

/* The index of the table to take, for the seconds that each of n > 0 needed, the likeliest last. */
size_t dp_ops_choose(const double *seconds, size_t n);

#endif
