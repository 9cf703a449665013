/* Included by every unit test: cmocka with its headers in the required order, and a check of a
 * status that prints its name. */
#ifndef DP_TESTS_LIB_CHECK_H
#define DP_TESTS_LIB_CHECK_H

/* cmocka.h requires these four before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#include "base/status.h"

#define CHECK(condition) check_true((condition), #condition, __FILE__, __LINE__)
#define CHECK_OK(call) check_status((call), DP_OK, #call, __FILE__, __LINE__)
#define CHECK_STATUS(call, wanted) check_status((call), (wanted), #call, __FILE__, __LINE__)

static inline void check_true(bool holds, const char *text, const char *file, int line)
{
    if (!holds) {
        print_error("does not hold: %s\n", text);
        _fail(file, line);
    }
}

static inline void check_status(dp_status got, dp_status wanted, const char *text, const char *file,
                                int line)
{
    if (got != wanted) {
        print_error("%s: %s, wanted %s\n", text, dp_status_name(got), dp_status_name(wanted));
        _fail(file, line);
    }
}

#endif
