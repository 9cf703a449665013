/* The answers of SQLite, as statuses; the numbers that a statement gives, or does not give. */
#include "tests/lib/check.h"

#include "store/sql.h"

static void each_answer_of_sqlite_has_a_status_and_damage_stays(void **state)
{
    static const struct {
        int code;
        dp_status wanted;
        dp_status stays; /* of the file, from then on */
    } answers[] = {
        {SQLITE_OK, DP_OK, DP_OK},
        {SQLITE_ROW, DP_OK, DP_OK},
        {SQLITE_DONE, DP_OK, DP_OK},
        {SQLITE_NOMEM, DP_NOMEM, DP_OK},
        {SQLITE_IOERR_NOMEM, DP_NOMEM, DP_OK},
        {SQLITE_FULL, DP_NOSPACE, DP_OK},
        {SQLITE_IOERR_READ, DP_IO, DP_OK},
        {SQLITE_IOERR_CORRUPTFS, DP_IO, DP_OK},
        {SQLITE_IOERR_WRITE, DP_IO, DP_IO},
        {SQLITE_IOERR_FSYNC, DP_IO, DP_IO},
        {SQLITE_CORRUPT, DP_CORRUPT, DP_CORRUPT},
        {SQLITE_NOTADB, DP_CORRUPT, DP_CORRUPT},
        {SQLITE_CONSTRAINT_UNIQUE, DP_CORRUPT, DP_CORRUPT},
        {SQLITE_BUSY, DP_BUSY, DP_OK},
        {SQLITE_LOCKED, DP_BUSY, DP_OK},
        {SQLITE_READONLY_DIRECTORY, DP_DENIED, DP_OK},
        {SQLITE_PERM, DP_DENIED, DP_OK},
        {SQLITE_AUTH, DP_DENIED, DP_OK},
        {SQLITE_TOOBIG, DP_TOOBIG, DP_OK},
        {SQLITE_ERROR, DP_CORRUPT, DP_OK},
        {SQLITE_MISUSE, DP_IO, DP_OK},
    };

    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        dp_sql sql = {0};
        CHECK_STATUS(dp_sql_status(&sql, answers[i].code), answers[i].wanted);
        assert_int_equal(sql.failed, answers[i].stays);
        assert_int_equal(sql.full, answers[i].wanted == DP_NOSPACE);
    }
}

static void a_number_is_there_or_not_or_cannot_be_asked_for(void **state)
{
    dp_sql sql;
    int64_t value = 7;

    (void)state;
    CHECK_OK(dp_sql_open(&sql, ":memory:", NULL));
    CHECK_STATUS(dp_sql_number(&sql, "SELECT 1 WHERE 0", &value), DP_NOTFOUND);
    CHECK_STATUS(dp_sql_number(&sql, "SELECT a FROM nowhere", &value), DP_CORRUPT);
    assert_int_equal(value, 7);
    CHECK_OK(dp_sql_number(&sql, "SELECT 40 + 2", &value));
    assert_int_equal(value, 42);
    dp_sql_close(&sql);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_answer_of_sqlite_has_a_status_and_damage_stays),
        cmocka_unit_test(a_number_is_there_or_not_or_cannot_be_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
