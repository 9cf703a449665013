/* Assertions on our own reasoning, checked in every build, releases included. Bytes from outside
 * get a dp_status instead. */
#ifndef DP_BASE_ASSERT_H
#define DP_BASE_ASSERT_H

#define dp_assert(condition)                                                                       \
    ((condition) ? (void)0 : dp_assert_failed(#condition, __FILE__, __LINE__))

/* Prints the condition and its place to standard error, then aborts. */
_Noreturn void dp_assert_failed(const char *condition, const char *file, int line);

#endif
