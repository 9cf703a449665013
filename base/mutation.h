/* Rules that a test breaks on purpose, to show that it detects the fault: the rows of
 * docs/MUTATIONS.md. */
#ifndef DP_BASE_MUTATION_H
#define DP_BASE_MUTATION_H

#include <stdbool.h>
#include <stdint.h>

#ifdef DP_BROKEN_RULES
/* The number of the rule that this process breaks, or 0 (tests/lib/broken_rule.c). */
extern uint32_t dp_broken_rule;
#endif

/* True if the rule of this row is broken. In the product this is the constant false, and the
 * compiler removes the code that depends on it. */
static inline bool dp_broken(uint32_t rule)
{
#ifdef DP_BROKEN_RULES
    return rule == dp_broken_rule;
#else
    (void)rule;
    return false;
#endif
}

#endif
