/* One chosen statement of the store fails: the linker replaces the functions that the store calls
 * by those below; SQLite's own calls do not change. A failed statement has done nothing. */
#ifndef DP_TESTS_UNIT_STORE_STRIKE_H
#define DP_TESTS_UNIT_STORE_STRIKE_H

#include <sqlite3.h>

#include "store/inside.h"
#include "tests/unit/store/shelf.h"

static struct {
    const char *file; /* Part of the name of the database. */
    const char *text; /* Part of the statement; NULL: none fails. */
    unsigned at;      /* The so many-th that fits. */
    unsigned seen;
    int code;
} struck;

/* From now on the at-th statement with this text on this file gives that code, once. */
static inline void strike(const char *file, const char *text, unsigned at, int code)
{
    struck.file = file;
    struck.text = text;
    struck.at = at;
    struck.seen = 0;
    struck.code = code;
}

/* True if the statement was met since strike. */
static inline bool strike_over(void)
{
    const bool met = struck.seen >= struck.at;
    struck.text = NULL;
    return met;
}

static inline bool strikes_now(sqlite3 *db, const char *text)
{
    return struck.text != NULL && strstr(text, struck.text) != NULL &&
           strstr(sqlite3_db_filename(db, "main"), struck.file) != NULL &&
           ++struck.seen == struck.at;
}

int __wrap_sqlite3_step(sqlite3_stmt *stmt);
int __real_sqlite3_step(sqlite3_stmt *stmt);
int __wrap_sqlite3_exec(sqlite3 *db, const char *sql,
                        int (*callback)(void *, int, char **, char **), void *argument,
                        char **message);
int __real_sqlite3_exec(sqlite3 *db, const char *sql,
                        int (*callback)(void *, int, char **, char **), void *argument,
                        char **message);

int __wrap_sqlite3_step(sqlite3_stmt *stmt)
{
    return strikes_now(sqlite3_db_handle(stmt), sqlite3_sql(stmt)) ? struck.code
                                                                   : __real_sqlite3_step(stmt);
}

int __wrap_sqlite3_exec(sqlite3 *db, const char *sql,
                        int (*callback)(void *, int, char **, char **), void *argument,
                        char **message)
{
    return strikes_now(db, sql) ? struck.code
                                : __real_sqlite3_exec(db, sql, callback, argument, message);
}

#endif
