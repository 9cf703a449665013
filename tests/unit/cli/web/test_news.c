/* News of rounds and events for a reader of the stream: from where it was, bounded, each once. */
#include "cli/web/news.h"

#include "tests/unit/cli/verb_kit.h"

static dp_source source;
static dp_buf out;

static int setup(void **state)
{
    source = (dp_source){.socket = "/nowhere"};
    dp_buf_init(&out, 64 * 1024);
    return verb_setup(state);
}

static int teardown(void **state)
{
    (void)state;
    json_decref(source.status);
    dp_buf_close(&out);
    return 0;
}

static void use_status(const char *text)
{
    json_decref(source.status);
    source.status = verb_json(text);
}

/* The event that news has written; "" for none. */
static const char *written(dp_news *news)
{
    dp_buf_clear(&out);
    CHECK_OK(dp_news_write(news, &source, &out));
    CHECK_OK(dp_buf_append(&out, dp_view_of("", 1)));
    return (const char *)out.data;
}

static void an_id_is_three_numbers_and_nothing_else(void **state)
{
    static const char *const bad[] = {"",       "1",     "1-2",    "1-2-",  "1-2-3-",
                                      "-1-2-3", "a-2-3", "1-2-3x", "1 -2-3"};
    dp_news news;
    (void)state;
    assert_true(dp_news_read(&news, "17-0-42"));
    assert_true(news.begun && news.event == 17 && news.seq == 0 && news.slot == 42);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(dp_news_read(&news, bad[i]));
        assert_true(!news.begun && news.event == 0);
    }
    assert_false(dp_news_read(&news, NULL));
}

static void a_new_reader_begins_now_and_then_gets_each_entry_once(void **state)
{
    dp_news news = {.begun = false};
    (void)state;
    use_status("{'run': {'slot': 5, 'exchanges': 0}}");
    verb_answer_after("[{'event': {'id': 70}}]", "{'count': 1}");
    verb_answer_after("[{'round': {'slot': 5, 'seq': 9}}]", "{'count': 1}");
    assert_string_equal(written(&news),
                        "event: news\nid: 70-9-5\ndata: {\"events\":[],\"rounds\":[]}\n\n");
    assert_true(verb_asked(0, "events", "{'last': 1}") && verb_asked(1, "rounds", "{'last': 1}"));
    verb_forget_calls();
    verb_answer("{'count': 0}"); /* No slot more: rounds are not asked for. */
    assert_string_equal(written(&news), "");
    assert_true(verb_asked(0, "events", "{'after': 70}") && verb_kit.n_calls == 1);
    verb_forget_calls();
    use_status("{'run': {'slot': 6, 'exchanges': 1}}");
    verb_answer_after("[{'event': {'id': 69}}, {'event': {'id': 71}}]", "{'count': 2}");
    verb_answer_after(
        "[{'round': {'slot': 5}}, {'round': {'slot': 6, 'seq': 10}}, {'round': {'slot': "
        "6, 'seq': 11, 'exchange': {}}}]",
        "{'count': 3}");
    assert_string_equal(written(&news),
                        "event: news\nid: 71-11-6\ndata: {\"events\":[{\"id\":71}],\"rounds\":"
                        "[{\"slot\":6,\"seq\":10},{\"slot\":6,\"seq\":11,\"exchange\":{}}]}\n\n");
    assert_true(verb_asked(1, "rounds", "{'after': 9, 'after_slot': 5}"));
}

static void a_reader_that_was_cut_goes_on_after_its_id(void **state)
{
    dp_news news;
    (void)state;
    assert_true(dp_news_read(&news, "70-9-5"));
    use_status("{'run': {'slot': 8, 'exchanges': 0}}");
    verb_answer_after("[{'event': {'id': 2000}}]", "{'count': 1}");
    verb_answer_after("[{'round': {'slot': 6}}, {'round': {'slot': 8}}]", "{'count': 2}");
    assert_non_null(strstr(written(&news), "id: 2000-9-8\n"));
    assert_true(verb_asked(0, "events", "{'after': 70}"));
    assert_true(verb_asked(1, "rounds", "{'after': 9, 'after_slot': 5}"));
}

static void rounds_of_a_chain_that_went_back_are_new(void **state)
{
    dp_news news;
    (void)state;
    assert_true(dp_news_read(&news, "70-9-8"));
    use_status("{'run': {'slot': 3, 'exchanges': 0}}");
    verb_answer("{'count': 0}");
    verb_answer_after("[{'round': {'slot': 3}}, {'round': {'slot': 4, 'seq': 12}}]",
                      "{'count': 2}");
    assert_non_null(
        strstr(written(&news), "id: 70-12-4\ndata: {\"events\":[],\"rounds\":[{\"slot\":4"));
}

static void without_an_answer_nothing_is_lost(void **state)
{
    dp_news news;
    (void)state;
    assert_true(dp_news_read(&news, "70-9-5"));
    assert_string_equal(written(&news), ""); /* No status. */
    use_status("{'state': 'idle'}");
    assert_string_equal(written(&news), "");
    use_status("{'run': {'slot': 6, 'exchanges': 0}}");
    verb_answer_after("[{'event': {'id': 71}}]", "{'count': 1}");
    verb_refuse(DP_EXIT_UNAVAILABLE, "E0103", "the daemon gave no answer");
    assert_string_equal(written(&news), "");
    assert_true(news.event == 70 && news.slot == 5);
    dp_buf small;
    dp_buf_init(&small, 20);
    verb_answer_after("[{'event': {'id': 71}}]", "{'count': 1}");
    verb_answer("{'count': 0}");
    CHECK_STATUS(dp_news_write(&news, &source, &small), DP_TOOBIG);
    assert_true(small.size == 0 && news.event == 70);
    dp_buf_close(&small);
}

static void very_many_come_in_several_news(void **state)
{
    dp_news news;
    static char many[64 * (DP_NEWS_EVENTS_MAX + 2)];
    size_t used = 0;
    (void)state;
    for (int i = 0; i < DP_NEWS_EVENTS_MAX + 1; i++) {
        used += (size_t)snprintf(many + used, sizeof many - used, "%s{'event': {'id': %d}}",
                                 i == 0 ? "[" : ", ", 1000 + i);
    }
    snprintf(many + used, sizeof many - used, "]");
    assert_true(dp_news_read(&news, "70-9-5"));
    use_status("{'run': {'slot': 5, 'exchanges': 0}}");
    verb_answer_after(many, "{'count': 257}");
    assert_non_null(strstr(written(&news), "id: 1255-9-5\n"));
    verb_answer_after("[{'event': {'id': 1256}}]", "{'count': 1}");
    assert_non_null(strstr(written(&news), "id: 1256-9-5\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_id_is_three_numbers_and_nothing_else, setup, teardown),
        cmocka_unit_test_setup_teardown(a_new_reader_begins_now_and_then_gets_each_entry_once,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_reader_that_was_cut_goes_on_after_its_id, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(rounds_of_a_chain_that_went_back_are_new, setup, teardown),
        cmocka_unit_test_setup_teardown(without_an_answer_nothing_is_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(very_many_come_in_several_news, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
