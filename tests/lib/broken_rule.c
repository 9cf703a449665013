/* The rule that a program built with DP_BROKEN_RULES breaks: its number in docs/MUTATIONS.md, read
 * from the environment variable DP_BREAK. Nothing else links this file. */
#include <stdlib.h>

#include "base/mutation.h"

uint32_t dp_broken_rule;

/* Runs before main. Without a number, or with an unknown one, no rule is broken. */
__attribute__((constructor)) static void read_broken_rule(void)
{
    const char *const number = getenv("DP_BREAK");

    if (number != NULL) {
        dp_broken_rule = (uint32_t)strtoul(number, NULL, 10);
    }
}
