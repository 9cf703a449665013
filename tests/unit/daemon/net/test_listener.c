#include "daemon/net/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/tempdir.h"
#include "tests/unit/daemon/turn.h"

enum { CALLERS = 40 };

struct desk {
    uv_loop_t loop;
    dp_listener *listener;
    struct rlimit limit; /* as it was */
    unsigned n_accepted;
    unsigned wanted;
    bool close_at_first;
    int fds[CALLERS];
};

static void take(void *context, int fd)
{
    struct desk *desk = context;
    const int flags = fcntl(fd, F_GETFL);
    CHECK((flags & O_NONBLOCK) != 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    desk->fds[desk->n_accepted++] = fd;
    if (desk->close_at_first) {
        dp_listener_close(desk->listener);
        desk->listener = NULL;
    }
}

static bool taken(void *context)
{
    const struct desk *desk = context;
    return desk->n_accepted >= desk->wanted;
}

static bool turned_away(void *context)
{
    const struct desk *desk = context;
    return dp_listener_turned_away(desk->listener) > 0;
}

static void desk_open(struct desk *desk)
{
    const struct sockaddr_in any = {.sin_family = AF_INET,
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int error = -1;
    memset(desk, 0, sizeof *desk);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &desk->limit), 0);
    turn_open(&desk->loop);
    CHECK_OK(dp_listener_open(&desk->listener, &desk->loop, (const struct sockaddr *)&any,
                              sizeof any, take, desk, &error));
    assert_int_equal(error, 0);
}

static void desk_close(struct desk *desk)
{
    for (unsigned i = 0; i < desk->n_accepted; i++) {
        close(desk->fds[i]);
    }
    dp_listener_close(desk->listener);
    turn_close(&desk->loop);
}

/* No number from this one on may be given out. */
static void limit_to(const struct desk *desk, int number)
{
    const struct rlimit limit = {(rlim_t)number, desk->limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static int first_free(void)
{
    const int fd = dup(STDOUT_FILENO);
    CHECK(fd >= 0);
    close(fd);
    return fd;
}

static int socket_of(int family)
{
    const int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0);
    CHECK(fd >= 0);
    return fd;
}

/* A call that nobody has taken yet. */
static void call(int fd, const struct desk *desk)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(dp_listener_port(desk->listener)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    DP_IGNORE(connect(fd, (const struct sockaddr *)&to, sizeof to) != 0); /* It is under way. */
}

static void a_connection_is_passed_on(void **state)
{
    struct desk desk;
    int callers[CALLERS];
    (void)state;
    desk_open(&desk);
    CHECK(dp_listener_port(desk.listener) != 0);
    for (unsigned i = 0; i < CALLERS; i++) {
        callers[i] = socket_of(AF_INET);
        call(callers[i], &desk);
    }
    desk.wanted = CALLERS;
    turn_until(&desk.loop, taken, &desk);
    for (unsigned i = 0; i < CALLERS; i++) {
        close(callers[i]);
    }
    desk_close(&desk);
}

static void a_path_works_and_an_address_that_is_taken_is_told(void **state)
{
    struct desk desk;
    tempdir dir;
    char path[TEMPDIR_FILE_MAX];
    dp_listener *other = NULL;
    int error = 0;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct sockaddr_in same = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    (void)state;
    desk_open(&desk);
    same.sin_port = htons(dp_listener_port(desk.listener));
    CHECK_STATUS(dp_listener_open(&other, &desk.loop, (const struct sockaddr *)&same, sizeof same,
                                  take, &desk, &error),
                 DP_BUSY);
    assert_int_equal(error, UV_EADDRINUSE);
    tempdir_open(&dir);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", tempdir_file(&dir, "sock", path));
    CHECK_OK(dp_listener_open(&other, &desk.loop, (const struct sockaddr *)&address, sizeof address,
                              take, &desk, &error));
    assert_int_equal(dp_listener_port(other), 0);
    const int caller = socket_of(AF_UNIX);
    assert_int_equal(connect(caller, (const struct sockaddr *)&address, sizeof address), 0);
    desk.wanted = 1;
    turn_until(&desk.loop, taken, &desk);
    close(caller);
    dp_listener_close(other);
    desk_close(&desk);
    tempdir_close(&dir);
}

static void without_a_descriptor_callers_are_turned_away_and_do_not_wait(void **state)
{
    struct desk desk;
    char byte;
    (void)state;
    desk_open(&desk);
    const int caller = socket_of(AF_INET);
    limit_to(&desk, first_free());
    call(caller, &desk);
    turn_until(&desk.loop, turned_away, &desk);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &desk.limit), 0);
    assert_int_equal(recv(caller, &byte, 1, 0), 0);
    assert_int_equal(desk.n_accepted, 0);
    close(caller);
    desk_close(&desk);
}

/* As when another thread takes the descriptor that was given up for a moment. libuv's own listener
 * never comes back from here. */
static void
without_even_the_spare_descriptor_the_loop_goes_on_and_who_waits_is_taken_later(void **state)
{
    struct desk desk;
    (void)state;
    const int caller = socket_of(AF_INET);
    desk_open(&desk);
    const int spare = first_free() - 1; /* It was opened last. */
    CHECK(fcntl(spare, F_GETFL) != -1);
    limit_to(&desk, spare);
    call(caller, &desk);
    desk.wanted = 1;
    CHECK(!turn_within(&desk.loop, taken, &desk, 3 * DP_LISTENER_PAUSE_MS));
    CHECK(fcntl(spare, F_GETFL) == -1);
    assert_int_equal(dp_listener_turned_away(desk.listener), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &desk.limit), 0);
    turn_until(&desk.loop, taken, &desk);
    close(caller);
    desk_close(&desk);
}

static void the_receiver_of_a_connection_may_close_the_listener(void **state)
{
    struct desk desk;
    (void)state;
    desk_open(&desk);
    desk.close_at_first = true;
    const int first = socket_of(AF_INET);
    const int second = socket_of(AF_INET);
    call(first, &desk);
    call(second, &desk);
    desk.wanted = 1;
    turn_until(&desk.loop, taken, &desk);
    assert_int_equal(desk.n_accepted, 1);
    close(first);
    close(second);
    desk_close(&desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connection_is_passed_on),
        cmocka_unit_test(a_path_works_and_an_address_that_is_taken_is_told),
        cmocka_unit_test(without_a_descriptor_callers_are_turned_away_and_do_not_wait),
        cmocka_unit_test(
            without_even_the_spare_descriptor_the_loop_goes_on_and_who_waits_is_taken_later),
        cmocka_unit_test(the_receiver_of_a_connection_may_close_the_listener),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
