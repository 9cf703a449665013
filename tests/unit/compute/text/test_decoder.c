#include "tests/lib/check.h"

#include "compute/text/decoder.h"
#include "tests/lib/allocfail.h"

enum { MOST = 8 };

#define MARK "\xe2\x96\x81"
#define FROM(text) .from = (text), .from_bytes = sizeof(text) - 1

/* Llama 2's. */
static const dp_decoder llama = {
    .items = {{.kind = DP_DECODER_REPLACE, FROM(MARK), .to = " ", .to_bytes = 1},
              {.kind = DP_DECODER_BYTE_FALLBACK},
              {.kind = DP_DECODER_FUSE},
              {.kind = DP_DECODER_STRIP, FROM(" "), .start = 1}},
    .count = 4};
static const dp_decoder t5 = {.items = {{.kind = DP_DECODER_METASPACE, FROM(MARK), .drops = true}},
                              .count = 1};
static const dp_decoder both_ends = {
    .items = {{.kind = DP_DECODER_STRIP, FROM("-"), .start = 1, .stop = 2}}, .count = 1};

static void check(const dp_decoder *decoder, const char *const tokens[MOST], const char *wanted)
{
    dp_view views[MOST];
    size_t n = 0;
    dp_buf out;
    dp_buf_init(&out, 1000);
    for (; n < MOST && tokens[n] != NULL; n++) {
        views[n] = dp_view_text(tokens[n]);
    }
    CHECK_OK(dp_decoder_append(decoder, views, n, &out));
    if (!dp_view_equal(dp_buf_view(&out), dp_view_text(wanted))) {
        print_error("'%.*s', not '%s'\n", (int)out.size, (const char *)out.data, wanted);
        CHECK(false);
    }
    dp_buf_close(&out);
}

static void tokens_become_text_by_the_steps(void **state)
{
    (void)state;
    static const dp_decoder none = {.count = 0};
    check(&none, (const char *const[MOST]){"a", "b"}, "a b");
    check(&none, (const char *const[MOST]){NULL}, "");
    check(&llama, (const char *const[MOST]){NULL}, "");
    check(&llama, (const char *const[MOST]){MARK "the", MARK "cat", "s"}, "the cats");
    check(&llama, (const char *const[MOST]){MARK MARK "a"}, " a");
    check(&llama, (const char *const[MOST]){"<0xC3>", "<0xa9>", "x"}, "\xc3\xa9x");
    check(&llama, (const char *const[MOST]){"<0xC3>", "x", "<0xC3>", "<0x41>"},
          "\xef\xbf\xbdx\xef\xbf\xbd\xef\xbf\xbd");
    check(&llama, (const char *const[MOST]){"<0xCG>", "<0x1>"}, "<0xCG><0x1>");
    check(&t5, (const char *const[MOST]){MARK "a", "b" MARK, MARK "c"}, "ab  c");
    check(&both_ends, (const char *const[MOST]){"--a---", "-", "---"}, "-a-");
}

static void a_token_counts_the_bytes_of_its_text(void **state)
{
    (void)state;
    CHECK(dp_decoder_text_bytes(&llama, dp_view_text(MARK "the")) == 4);
    CHECK(dp_decoder_text_bytes(&llama, dp_view_text("<0x0A>")) == 1);
    CHECK(dp_decoder_text_bytes(&llama, dp_view_text("\xe7\x8c\xab")) == 3);
    CHECK(dp_decoder_text_bytes(&t5, dp_view_text(MARK MARK)) == 2);
    CHECK(dp_decoder_text_bytes(&t5, dp_view_text("<0x0A>")) == 6);
}

static void growth_beyond_all_measure_is_refused(void **state)
{
    (void)state;
    dp_decoder decoder = {.count = 2};
    dp_buf out;
    const dp_view token =
        dp_view_text("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    for (unsigned i = 0; i < 2; i++) {
        decoder.items[i] = (dp_decoder_step){
            .kind = DP_DECODER_REPLACE, FROM("a"), .to = "aaaaaaaa", .to_bytes = 8};
    }
    dp_buf_init(&out, 1 << 20);
    CHECK_STATUS(dp_decoder_append(&decoder, &token, 1, &out), DP_TOOBIG);
    CHECK(out.size == 0);
    dp_buf_close(&out);
}

static dp_status decode_once(void *context)
{
    const dp_view token = dp_view_text(MARK "a");
    dp_buf out;
    (void)context;
    dp_buf_init(&out, 100);
    const dp_status status = dp_decoder_append(&llama, &token, 1, &out);
    CHECK(status == DP_OK || out.size == 0);
    dp_buf_close(&out);
    return status;
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    CHECK(fail_each_allocation(decode_once, NULL) >= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_become_text_by_the_steps),
        cmocka_unit_test(a_token_counts_the_bytes_of_its_text),
        cmocka_unit_test(growth_beyond_all_measure_is_refused),
        cmocka_unit_test(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
