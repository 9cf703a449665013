#include "tests/lib/check.h"

#include "compute/data/shard_table.h"
#include "tests/lib/mutate.h"

static dp_buf table_of(const dp_shard_row *rows, uint32_t n_rows)
{
    dp_buf bytes;
    dp_buf_init(&bytes, DP_SHARD_TABLE_BYTES_MAX);
    CHECK_OK(dp_shard_table_write(rows, n_rows, 1000, 55, &bytes));
    return bytes;
}

static const dp_shard_row rows[3] = {
    {.root = {{1, 2, 3}}, .bytes = 232, .tokens = 100},
    {.root = {{9}}, .bytes = 82, .tokens = 25},
    {.root = {{7}}, .bytes = 34, .tokens = 1},
};

static void the_rows_come_back(void **state)
{
    (void)state;
    dp_buf bytes = table_of(rows, 3);
    dp_shard_table table;
    CHECK(bytes.size == DP_SHARD_TABLE_HEADER_BYTES + 3 * DP_SHARD_ROW_BYTES);
    CHECK(dp_shard_table_is(dp_buf_view(&bytes)));
    CHECK_OK(dp_shard_table_open(&table, dp_buf_view(&bytes), NULL));
    CHECK(table.vocab == 1000 && table.n_shards == 3 && table.tokens == 126);
    CHECK(table.text_bytes == 55);
    for (uint32_t i = 0; i < 3; i++) {
        const dp_shard_row row = dp_shard_table_row(&table, i);
        CHECK(dp_hash_equal(&row.root, &rows[i].root));
        CHECK(row.bytes == rows[i].bytes && row.tokens == rows[i].tokens);
    }
    dp_buf_close(&bytes);
}

static void sums_that_do_not_hold_are_refused(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint8_t value;
        dp_status status;
        const char *words;
    } cases[] = {
        {0, 'X', DP_BADMSG, "not a shard table"},
        {4, 9, DP_VERSION, "version 9"},
        {6, 1, DP_BADMSG, "damaged"},
        {12, 0, DP_TOOBIG, "0 shards"},
        {12, 2, DP_BADMSG, "cut off"},
        {13, 0xff, DP_TOOBIG, "shards; it may have 1 to 4096"},
        {16, 127, DP_BADMSG, "says 127 tokens, its shards have 126"},
        {32 + 40 + 7, 0x80, DP_BADMSG, "shard 0 of the table cannot have"},
        {32 + 32 + 6, 1, DP_BADMSG, "shard 0 of the table cannot have"},
        {32 + 40, 0, DP_BADMSG, "shard 0 of the table cannot have 0 tokens"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dp_buf bytes = table_of(rows, 3);
        dp_shard_table table;
        dp_why why = {{0}};
        bytes.data[cases[i].at] = cases[i].value;
        CHECK_STATUS(dp_shard_table_open(&table, dp_buf_view(&bytes), &why), cases[i].status);
        CHECK(strstr(why.text, cases[i].words) != NULL);
        dp_buf_close(&bytes);
    }
}

static void damaged_tables_never_crash(void **state)
{
    (void)state;
    dp_buf bytes = table_of(rows, 3);
    dp_shard_table table;
    dp_rng rng;
    dp_rng_init(&rng, 5);
    for (size_t size = 0; size < bytes.size; size++) {
        CHECK(dp_shard_table_open(&table, dp_view_of(bytes.data, size), NULL) != DP_OK);
    }
    for (int i = 0; i < 5000; i++) {
        uint8_t damaged[512];
        memcpy(damaged, bytes.data, bytes.size);
        const size_t size = mutate(&rng, damaged, bytes.size, sizeof damaged);
        if (dp_shard_table_open(&table, dp_view_of(damaged, size), NULL) == DP_OK) {
            CHECK(size == DP_SHARD_TABLE_HEADER_BYTES + table.n_shards * DP_SHARD_ROW_BYTES);
        }
    }
    dp_buf_close(&bytes);
}

static void a_table_has_a_bounded_number_of_rows(void **state)
{
    (void)state;
    static dp_shard_row many[DP_SHARDS_MAX + 1];
    dp_buf bytes;
    dp_shard_table table;
    for (size_t i = 0; i <= DP_SHARDS_MAX; i++) {
        many[i] = rows[2];
    }
    dp_buf_init(&bytes, DP_SHARD_TABLE_BYTES_MAX);
    CHECK_STATUS(dp_shard_table_write(many, 0, 1000, 0, &bytes), DP_BADARG);
    CHECK_STATUS(dp_shard_table_write(many, DP_SHARDS_MAX + 1, 1000, 0, &bytes), DP_TOOBIG);
    CHECK(bytes.size == 0);
    CHECK_OK(dp_shard_table_write(many, DP_SHARDS_MAX, 1000, 0, &bytes));
    CHECK_OK(dp_shard_table_open(&table, dp_buf_view(&bytes), NULL));
    CHECK(table.tokens == DP_SHARDS_MAX);
    dp_buf_close(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rows_come_back),
        cmocka_unit_test(sums_that_do_not_hold_are_refused),
        cmocka_unit_test(damaged_tables_never_crash),
        cmocka_unit_test(a_table_has_a_bounded_number_of_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
