/* The error type of the project: a status that every fallible function returns, its name and its
 * sentence. */
#ifndef DP_BASE_STATUS_H
#define DP_BASE_STATUS_H

#include <stddef.h>

typedef enum dp_status {
    DP_OK = 0,
    DP_BADARG,  /* the caller asked for something impossible */
    DP_BADMSG,  /* Bytes from a peer, a file or a user do not parse. */
    DP_TOOBIG,  /* A named limit would be passed. */
    DP_NOMEM,   /* Allocation failed or the budget is spent. */
    DP_IO,      /* The operating system refused a read, write or sync. */
    DP_NOSPACE, /* The disk is full. */
    DP_NOTFOUND,
    DP_EXISTS,
    DP_DENIED,  /* Not permitted: capability, ownership, file mode. */
    DP_EXPIRED, /* A token or certificate is past its time. */
    DP_BADSIG,  /* A signature or an authentication tag does not verify. */
    DP_BADHASH, /* Content does not match the hash that names it. */
    DP_VERSION, /* Written by a version that this program does not speak. */
    DP_AGAIN,   /* Not now; the same call may succeed later. */
    DP_TIMEOUT,
    DP_CLOSED,      /* The other side is gone. */
    DP_CORRUPT,     /* A store or state contradicts itself. */
    DP_DIVERGED,    /* A number is not finite, or replicas differ. */
    DP_UNSUPPORTED, /* Not available on this machine or in this build. */
    DP_BUSY,        /* Held elsewhere: a lock, a port, a directory. */
    DP_STATUS_COUNT
} dp_status;

#define DP_MUST __attribute__((warn_unused_result))

/* Returns the status of f() unless it is DP_OK. */
#define DP_TRY(f)                                                                                  \
    do {                                                                                           \
        const dp_status dp_try_status_ = (f);                                                      \
        if (dp_try_status_ != DP_OK) {                                                             \
            return dp_try_status_;                                                                 \
        }                                                                                          \
    } while (0)

/* Ignores a status on purpose; say why beside it. */
#define DP_IGNORE(f)                                                                               \
    do {                                                                                           \
        if (f) {                                                                                   \
        }                                                                                          \
    } while (0)

/* "DP_BADMSG". A static string, never NULL, also for values out of range. */
const char *dp_status_name(dp_status status);
/* "the bytes do not parse". A static phrase without capital and full stop. */
const char *dp_status_text(dp_status status);

enum { DP_WHY_MAX = 512 };

/* A sentence for a person: the error, its place, the fix. Filled by functions that read a person's
 * input. */
typedef struct dp_why {
    char text[DP_WHY_MAX];
} dp_why;

/* Prints into why (which may be NULL) and returns status, so that one line does both. Truncates. */
dp_status dp_why_set(dp_why *why, dp_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The analyzer sees one file at a time and would follow calls that return another status. */
#ifdef __clang_analyzer__
#define dp_why_set(why, status, ...) ((void)dp_why_set(why, status, __VA_ARGS__), (status))
#endif

#endif
