/* Which table of operations a process uses: a measurement decides, since what a processor can is
 * not what it is fast at (a Xeon's vdpbf16ps has half the speed of its fp32). */
#ifndef DP_COMPUTE_CPU_OPS_CHOICE_H
#define DP_COMPUTE_CPU_OPS_CHOICE_H

#include "compute/cpu/ops.h"

/* An earlier table of a list is taken only if it is so many times as fast as a later one: a
 * measurement beside other work then changes nothing, and a machine gives the same bits in each
 * process. */
#define DP_OPS_CHOICE_MARGIN 1.2

/* The index of the table to take, for the seconds that each of n > 0 needed, the likeliest last. */
size_t dp_ops_choose(const double *seconds, size_t n);

#endif
