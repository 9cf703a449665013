/* dp_assert: our own reasoning, checked in every build, release too. Never for bytes from
 * outside. */
#ifndef DP_BASE_ASSERT_H
#define DP_BASE_ASSERT_H

#define dp_assert(condition)                                                                       \
    ((condition) ? (void)0 : dp_assert_failed(#condition, __FILE__, __LINE__))

/* Prints the condition and where it stands to standard error, then aborts. */
_Noreturn void dp_assert_failed(const char *condition, const char *file, int line);

#endif
