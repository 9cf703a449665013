#include "cli/web/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/unit/cli/verb_kit.h"

enum { TEXT_MAX = 64 * 1024, STEPS_MAX = 200 };

static dp_site site;
static dp_server *server;

static int setup(void **state)
{
    dp_control_error error;
    site = (dp_site){.names = {NULL}};
    dp_source_open(&site.source, "socket");
    CHECK(dp_server_open(&server, &site, "127.0.0.1:0", &error) == 0);
    return verb_setup(state);
}

static int teardown(void **state)
{
    (void)state;
    dp_server_close(server);
    dp_source_close(&site.source);
    return 0;
}

/* A connection that has sent this. */
static int said(const char *text)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const char *const port = strrchr(dp_server_address(server), ':') + 1;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    to.sin_port = htons((uint16_t)atoi(port));
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
    CHECK(send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
    return fd;
}

/* Serves until this stands in what came on the connection. */
static void wait_for(int fd, const char *text)
{
    static char came[TEXT_MAX];
    size_t size = 0;
    for (int i = 0; i < STEPS_MAX; i++) {
        CHECK_OK(dp_server_step(server, 100));
        const ssize_t n = recv(fd, came + size, sizeof came - 1 - size, MSG_DONTWAIT);
        size += n > 0 ? (size_t)n : 0;
        came[size] = '\0';
        if (strstr(came, text) != NULL) {
            return;
        }
        if (n == 0 || (n < 0 && errno != EAGAIN)) {
            break;
        }
    }
    fail_msg("no %s in: %s", text, came);
}

static void a_request_gets_its_answer_and_the_headers_that_guard_it(void **state)
{
    (void)state;
    verb_answer("{'state':'idle'}");
    const int fd = said("GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n");
    wait_for(fd, "{\"state\":\"idle\"}");
    close(fd);
    const int other = said("GET /app.css HTTP/1.1\r\nHost: localhost\r\n\r\n");
    wait_for(other, "Content-Security-Policy: default-src 'none'");
    close(other);
}

static void a_request_that_is_none_harms_nobody(void **state)
{
    static const char *const wrong[] = {"\r\n\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
                                        "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02\r\n\r\n"};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const int fd = said(wrong[i]);
        for (int k = 0; k < 5; k++) {
            CHECK_OK(dp_server_step(server, 1));
        }
        close(fd);
    }
    const int fd = said("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    wait_for(fd, "<!doctype html>");
    close(fd);
    assert_int_equal(verb_kit.n_calls, 0);
}

static void a_stream_has_an_event_for_each_answer_of_the_daemon(void **state)
{
    (void)state;
    verb_answer("{'state':'idle','n':1}");
    verb_answer("{'state':'idle','n':2}");
    verb_kit.is_down = false;
    const int fd = said("GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    wait_for(fd, "\"n\":1");
    wait_for(fd, "\"n\":2");
    verb_kit.is_down = true;
    wait_for(fd, "no daemon is running");
    close(fd);
}

static void one_reader_too_many_is_told_so_and_gets_the_place_of_one_that_goes(void **state)
{
    static const char request[] = "GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n";
    int readers[DP_SERVER_STREAMS];

    (void)state;
    verb_kit.is_down = true;
    for (size_t i = 0; i < DP_SERVER_STREAMS; i++) {
        readers[i] = said(request);
        wait_for(readers[i], "text/event-stream");
    }
    const int late = said(request);
    wait_for(late, "503");
    close(late);
    close(readers[0]);
    wait_for(readers[1], "event: state"); /* Two events: the end of the first reader is seen. */
    wait_for(readers[1], "event: state");
    const int next = said(request);
    wait_for(next, "text/event-stream");
    close(next);
    for (size_t i = 1; i < DP_SERVER_STREAMS; i++) { /* The others are open when the server ends. */
        close(readers[i]);
    }
}

static void an_address_that_cannot_be_used_is_named(void **state)
{
    static const struct {
        const char *address;
        const char *code;
    } wrong[] = {
        {"", "E0601"},
        {"7719", "E0601"},
        {":7719", "E0601"},
        {"[::1:7719", "E0601"},
        {"127.0.0.1:", "E0601"},
        {"127.0.0.1:65536", "E0601"},
        {"a:1", "E0601"},
        {"127.0.0.1:1x", "E0601"},
        {"192.0.2.1:0", "E0603"},
        {"127.0.0.1:-1", "E0601"},
        {"0123456789012345678901234567890123456789012345678901234567890123456789:1", "E0601"},
    };
    dp_control_error error;
    dp_server *none;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_true(dp_server_open(&none, &site, wrong[i].address, &error) != 0);
        assert_string_equal(error.code, wrong[i].code);
        assert_null(none);
    }
    assert_int_equal(dp_server_open(&none, &site, dp_server_address(server), &error),
                     DP_EXIT_UNAVAILABLE);
    assert_string_equal(error.code, "E0602");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_request_gets_its_answer_and_the_headers_that_guard_it,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_request_that_is_none_harms_nobody, setup, teardown),
        cmocka_unit_test_setup_teardown(a_stream_has_an_event_for_each_answer_of_the_daemon, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            one_reader_too_many_is_told_so_and_gets_the_place_of_one_that_goes, setup, teardown),
        cmocka_unit_test_setup_teardown(an_address_that_cannot_be_used_is_named, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
