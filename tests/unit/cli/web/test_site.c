#include "cli/web/site.h"

#include <string.h>

#include "cli/web/assets.h"
#include "tests/unit/cli/verb_kit.h"

static dp_site site;
static uint64_t now = 1000;

static int setup(void **state)
{
    site = (dp_site){.names = {"node.example"}};
    dp_source_open(&site.source, "socket");
    now += 10000;
    return verb_setup(state);
}

static int teardown(void **state)
{
    (void)state;
    dp_source_close(&site.source);
    return 0;
}

/* The status of HTTP; *body: of the answer, ended by NUL, until the next call. */
static unsigned ask(const char *method, const char *path, const char *host, const char *last,
                    const char **body)
{
    static char text[64 * 1024];
    const dp_site_request request = {.method = method, .path = path, .host = host, .last = last};
    dp_site_answer answer;
    CHECK_OK(dp_site_ask(&site, now, &request, &answer));
    CHECK(answer.body.size < sizeof text && answer.type != NULL);
    if (answer.body.size > 0) {
        memcpy(text, answer.body.data, answer.body.size);
    }
    text[answer.body.size] = '\0';
    *body = text;
    const unsigned status = answer.status;
    dp_site_answer_close(&answer);
    return status;
}

static unsigned get(const char *path, const char **body)
{
    return ask("GET", path, "localhost:7719", NULL, body);
}

static void texts_are_an_empty_list_until_there_are_some(void **state)
{
    const char *body = NULL;
    (void)state;
    verb_answer("{'state':'training'}");
    assert_int_equal(get("/api/v1/texts", &body), 200);
    assert_string_equal(body, "[]");
    site.texts = verb_json("[{'round':7,'time_ms':1,'text':'In the'}]");
    verb_answer("{'state':'training'}");
    assert_int_equal(get("/api/v1/texts", &body), 200);
    assert_string_equal(body, "[{\"round\":7,\"time_ms\":1,\"text\":\"In the\"}]");
    json_decref(site.texts);
}

static void requests_for_an_address_or_a_given_name_are_answered(void **state)
{
    (void)state;
    static const char *const allowed[] = {
        "localhost",  "LocalHost:7719", "127.0.0.1",    "127.0.0.1:7719",    "10.1.2.3:80",
        "[::1]:7719", "[fe80::1]",      "node.example", "NODE.example:7719",
    };
    static const char *const refused[] = {
        "",
        ":7719",
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "[::1",
        "[evil.example]:1",
        "1",
        "node.example.",
    };
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++) {
        assert_true(dp_site_host_allowed(&site, allowed[i]));
    }
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_false(dp_site_host_allowed(&site, refused[i]));
    }
    assert_false(dp_site_host_allowed(&site, NULL));
}

/* A page of evil.example whose name was turned to this machine asks: it learns nothing, and the
 * daemon is not asked. */
static void a_foreign_host_is_refused_before_the_daemon_is_asked(void **state)
{
    const char *body;

    (void)state;
    assert_int_equal(ask("GET", "/api/v1/status", "evil.example", NULL, &body), 403);
    assert_int_equal(ask("GET", "/", "evil.example", NULL, &body), 403);
    assert_int_equal(verb_kit.n_calls, 0);
}

static void nothing_but_reading_is_possible(void **state)
{
    const char *body;
    static const char *const others[] = {"POST", "PUT", "DELETE", "OPTIONS", "get"};

    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_int_equal(ask(others[i], "/metrics", "localhost", NULL, &body), 405);
    }
    assert_int_equal(verb_kit.n_calls, 0);
}

static void the_page_needs_no_daemon(void **state)
{
    const char *body;

    (void)state;
    assert_int_equal(get("/", &body), 200);
    assert_non_null(strstr(body, "<!doctype html>"));
    assert_non_null(strstr(body, "/app.js"));
    assert_int_equal(get("/app.js", &body), 200);
    assert_null(strstr(body, "innerHTML")); /* Names of peers are text and stay it. */
    assert_int_equal(get("/app.css", &body), 200);
    assert_int_equal(verb_kit.n_calls, 0);
}

static void replies_of_the_daemon_are_passed_on(void **state)
{
    const char *body;

    (void)state;
    verb_answer("{'state':'training','run':{'name':'a','trainer':'up'}}");
    verb_answer("{'peers':[{'name':'b'}],'more':0}");
    assert_int_equal(get("/api/v1/status", &body), 200);
    assert_string_equal(body,
                        "{\"state\":\"training\",\"run\":{\"name\":\"a\",\"trainer\":\"up\"}}");
    assert_int_equal(get("/api/v1/peers", &body), 200);
    assert_string_equal(body, "{\"peers\":[{\"name\":\"b\"}],\"more\":0}");
    assert_int_equal(get("/metrics", &body), 200);
    assert_non_null(strstr(body, "dpnode_up 1\n"));
    assert_int_equal(get("/healthz", &body), 200);
    assert_string_equal(body, "ok: training\n");
    assert_int_equal(get("/readyz", &body), 200);
    assert_int_equal(verb_kit.n_calls, 2);
}

static void a_node_in_no_run_has_an_empty_list_of_peers_and_is_not_ready(void **state)
{
    const char *body;

    (void)state;
    verb_answer("{'state':'idle'}");
    assert_int_equal(get("/api/v1/peers", &body), 200);
    assert_string_equal(body, "{\"peers\":[]}");
    assert_int_equal(get("/healthz", &body), 200);
    assert_int_equal(get("/readyz", &body), 503);
    assert_string_equal(body, "not ok: idle\n");
}

static void without_a_daemon_everything_but_the_metrics_says_why(void **state)
{
    const char *body;
    static const char *const paths[] = {"/healthz", "/readyz", "/api/v1/status", "/api/v1/peers"};

    (void)state;
    verb_kit.is_down = true;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        assert_int_equal(get(paths[i], &body), 503);
        assert_non_null(strstr(body, "no daemon is running"));
    }
    assert_int_equal(get("/metrics", &body), 200);
    assert_non_null(strstr(body, "dpnode_up 0\n"));
}

static void lists_have_as_many_items_as_are_asked_for(void **state)
{
    const char *body;
    static const char *const wrong[] = {"0", "513", "x", "", "1x", "-1"};

    (void)state;
    verb_answer("{'state':'idle'}");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(ask("GET", "/api/v1/rounds", "localhost", wrong[i], &body), 400);
    }
    verb_answer_after("[{'round':{'slot':1}}]", "{'count':1}");
    assert_int_equal(ask("GET", "/api/v1/rounds", "localhost", "512", &body), 200);
    assert_string_equal(body, "[{\"slot\":1}]");
    verb_answer_after("[{'event':{'id':1}}]", "{'count':1}");
    assert_int_equal(get("/api/v1/events", &body), 200);
    assert_int_equal(dp_json_int(verb_kit.calls[2].params, "last", 0), DP_SITE_LAST);
    verb_refuse(69, "E0110", "in no run");
    assert_int_equal(get("/api/v1/events", &body), 503);
    assert_non_null(strstr(body, "\"E0110\""));
}

static void of_a_list_that_is_too_large_the_newest_items_are_given(void **state)
{
    const dp_site_request request = {
        .method = "GET", .path = "/api/v1/rounds", .host = "localhost", .last = "512"};
    dp_site_answer answer;
    (void)state;
    json_t *const list = json_array();
    for (int slot = 1; slot <= 512; slot++) {
        static char name[9 * 1024];
        memset(name, 'n', sizeof name - 1);
        json_array_append_new(list,
                              json_pack("{s:{s:i, s:s}}", "round", "slot", slot, "name", name));
    }
    verb_answer("{'state':'idle'}");
    verb_answer("{'count':512}");
    verb_kit.answers[1].notices = list;
    CHECK_OK(dp_site_ask(&site, now, &request, &answer));
    assert_int_equal(answer.status, 200);
    assert_in_range(answer.body.size, DP_SITE_BYTES_MAX - 10 * 1024, DP_SITE_BYTES_MAX);
    json_t *const told = json_loadb((const char *)answer.body.data, answer.body.size, 0, NULL);
    const size_t n = json_array_size(told);
    assert_int_equal(dp_json_int(json_array_get(told, n - 1), "slot", 0), 512);
    assert_int_equal(dp_json_int(json_array_get(told, 0), "slot", 0), 513 - (int)n);
    json_decref(told);
    dp_site_answer_close(&answer);
}

static void an_event_has_the_state_in_one_line(void **state)
{
    dp_buf out;

    (void)state;
    dp_buf_init(&out, 4096);
    verb_answer("{'state':'idle','name':'a\\nb'}");
    dp_source_look(&site.source, now);
    CHECK_OK(dp_site_event(&site, &out));
    CHECK_OK(dp_buf_append(&out, dp_view_of("", 1)));
    assert_string_equal((const char *)out.data,
                        "event: state\ndata: {\"status\":{\"state\":\"idle\",\"name\":\"a\\nb\"}"
                        ",\"peers\":null}\n\n");
    dp_buf_clear(&out);
    verb_kit.is_down = true;
    dp_source_look(&site.source, now + DP_SOURCE_FRESH_MS);
    CHECK_OK(dp_site_event(&site, &out));
    CHECK_OK(dp_buf_append(&out, dp_view_of("", 1)));
    assert_non_null(strstr((const char *)out.data, "data: {\"error\":{\"what\":\"no daemon is"));
    dp_buf_close(&out);
    dp_buf_init(&out, 20); /* Half an event would be none. */
    CHECK_STATUS(dp_site_event(&site, &out), DP_TOOBIG);
    assert_int_equal(out.size, 0);
    dp_buf_close(&out);
}

static void a_path_that_there_is_not_names_those_that_there_are(void **state)
{
    const char *body;

    (void)state;
    verb_answer("{'state':'idle'}");
    assert_int_equal(get("/../etc/passwd", &body), 404);
    assert_non_null(strstr(body, "/metrics"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(texts_are_an_empty_list_until_there_are_some, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(requests_for_an_address_or_a_given_name_are_answered, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_foreign_host_is_refused_before_the_daemon_is_asked, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(nothing_but_reading_is_possible, setup, teardown),
        cmocka_unit_test_setup_teardown(the_page_needs_no_daemon, setup, teardown),
        cmocka_unit_test_setup_teardown(replies_of_the_daemon_are_passed_on, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_node_in_no_run_has_an_empty_list_of_peers_and_is_not_ready, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_daemon_everything_but_the_metrics_says_why, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(lists_have_as_many_items_as_are_asked_for, setup, teardown),
        cmocka_unit_test_setup_teardown(of_a_list_that_is_too_large_the_newest_items_are_given,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(an_event_has_the_state_in_one_line, setup, teardown),
        cmocka_unit_test_setup_teardown(a_path_that_there_is_not_names_those_that_there_are, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
