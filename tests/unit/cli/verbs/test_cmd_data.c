/* data tokenize, info, verify: the arguments of the tool, and the printed answer. */
#include "tests/unit/cli/tool_kit.h"
#include "tests/unit/cli/verb_kit.h"

static int reset(void **state)
{
    memset(&tool_kit, 0, sizeof tool_kit);
    return verb_setup(state);
}

#define SUM "{'tokens': 1000, 'text_bytes': 4096, 'vocab': 512, 'shards': 2, 'root': 'abcd'}"

static void a_text_becomes_shards_with_the_options_that_were_given(void **state)
{
    (void)state;
    tool_kit.answer = SUM;
    assert_int_equal(
        VERB(dp_verb_data_tokenize, "a.txt", "b.txt", "--out", "book", "--vocab", "512"), 0);
    assert_string_equal(tool_kit.words, "data tokenize --out book --vocab 512 -- a.txt b.txt ");
    assert_true(verb_said("book: 1000 tokens for 4.0 KiB of text (4.10 bytes each), vocabulary 512,"
                          " shards 2\n  root abcd\n"));
    assert_int_equal(VERB(dp_verb_data_tokenize, "a.txt", "--out", "book", "--json"), 0);
    assert_true(verb_said("\"folder\":\"book\"") && verb_said("\"root\":\"abcd\""));
}

static void a_file_that_looks_like_an_option_is_a_file(void **state)
{
    (void)state;
    tool_kit.answer = SUM;
    assert_int_equal(VERB(dp_verb_data_tokenize, "--out", "book", "--", "--text"), 0);
    assert_true(tool_got("-- --text "));
}

static void without_a_place_to_write_nothing_is_run(void **state)
{
    (void)state;
    assert_int_equal(VERB(dp_verb_data_tokenize, "a.txt"), DP_EXIT_USAGE);
    assert_true(verb_warned("--out is missing") && tool_kit.n_runs == 0);
    assert_int_equal(VERB_ALONE(dp_verb_data_verify), DP_EXIT_USAGE);
}

static void a_folder_is_checked_and_one_without_tokens_divides_by_nothing(void **state)
{
    (void)state;
    tool_kit.answer = SUM;
    assert_int_equal(VERB(dp_verb_data_verify, "book"), 0);
    assert_string_equal(tool_kit.words, "data verify -- book ");
    tool_kit.answer = "{'tokens': 0}";
    assert_int_equal(VERB(dp_verb_data_verify, "book"), 0);
    assert_true(verb_said("book: 0 tokens for 0 B of text (0.00 bytes each)"));
}

static void a_folder_with_a_name_that_is_no_utf8_is_told(void **state)
{
    (void)state;
    tool_kit.answer = SUM;
    assert_int_equal(VERB(dp_verb_data_verify, "b\xffook", "--json"), 0);
    assert_true(verb_said("\"folder\":\"book\""));
}

static void each_file_has_a_row_in_the_order_of_the_answer(void **state)
{
    (void)state;
    tool_kit.answer = "{'format': 'dpnode', 'tokens': 100, 'token_bytes': 4, 'vocab': 70000, "
                      "'needs': 69999}\n{'format': 'nanogpt', 'tokens': 7, 'needs': 9}\n";
    assert_int_equal(VERB(dp_verb_data_info, "one.bin", "two.bin"), 0);
    assert_string_equal(tool_kit.words, "data info -- one.bin two.bin ");
    assert_true(verb_said("one.bin") && verb_said("u32") && verb_said("70000"));
    assert_true(verb_said("two.bin") && verb_said("nanogpt") && verb_said("u16"));
    assert_int_equal(VERB(dp_verb_data_info, "one.bin", "two.bin", "--json"), 0);
    assert_non_null(strstr(verb_kit.out, "\"file\":\"two.bin\""));
}

static void the_output_of_the_tool_is_the_reason_of_a_failure(void **state)
{
    (void)state;
    tool_kit.exit = DP_EXIT_DATA;
    tool_kit.says = "one.bin: its magic is another";
    assert_int_equal(VERB(dp_verb_data_info, "one.bin"), DP_EXIT_DATA);
    assert_true(verb_warned("E0501") && verb_warned("this is not a token shard"));
    assert_true(verb_warned("its magic is another") && verb_warned("dpnode data info --help"));
    assert_int_equal(VERB(dp_verb_data_verify, "book"), DP_EXIT_DATA);
    assert_true(verb_warned("the folder does not match its table"));
    assert_int_equal(VERB(dp_verb_data_tokenize, "a.txt", "-o", "b", "--json"), DP_EXIT_DATA);
    assert_true(verb_said("\"error\"") && verb_said("E0501"));
}

static void a_tool_that_is_not_there_or_dies_is_told(void **state)
{
    (void)state;
    tool_kit.status = DP_NOTFOUND;
    assert_true(VERB(dp_verb_data_verify, "book") != 0);
    assert_true(verb_warned("dpnode-worker"));
    tool_kit.status = DP_OK;
    tool_kit.exit = 139;
    assert_true(VERB(dp_verb_data_verify, "book") != 0);
    assert_true(verb_warned("give fewer files at once"));
    tool_kit.exit = 0;
    tool_kit.answer = "no JSON";
    assert_true(VERB(dp_verb_data_verify, "book") != 0);
    assert_string_equal(verb_kit.out, "");
}

#define TEST(test) cmocka_unit_test_setup(test, reset)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_text_becomes_shards_with_the_options_that_were_given),
        TEST(a_file_that_looks_like_an_option_is_a_file),
        TEST(without_a_place_to_write_nothing_is_run),
        TEST(a_folder_is_checked_and_one_without_tokens_divides_by_nothing),
        TEST(a_folder_with_a_name_that_is_no_utf8_is_told),
        TEST(each_file_has_a_row_in_the_order_of_the_answer),
        TEST(the_output_of_the_tool_is_the_reason_of_a_failure),
        TEST(a_tool_that_is_not_there_or_dies_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
