#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/net/path.h"
#include "tests/lib/check.h"

struct wire {
    int a;
    int b;
};

static struct wire wire_open(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    struct wire wire = {socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), -1};
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(listener, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
    assert_int_equal(connect(wire.a, (const struct sockaddr *)&at, sizeof at), 0);
    wire.b = accept(listener, NULL, NULL);
    assert_true(wire.b >= 0);
    close(listener);
    return wire;
}

static void the_kernel_counts_what_was_sent(void **state)
{
    struct wire wire = wire_open();
    dp_path_sample sample = {0};
    uint8_t bytes[5000] = {0};
    (void)state;
    CHECK(dp_path_read(wire.a, &sample));
    CHECK(sample.now_us > 0 && sample.min_rtt_us < 1000000);
    const uint64_t before = sample.sent;
    assert_int_equal(send(wire.a, bytes, sizeof bytes, 0), sizeof bytes);
    assert_int_equal(recv(wire.b, bytes, sizeof bytes, MSG_WAITALL), sizeof bytes);
    CHECK(dp_path_read(wire.a, &sample));
    assert_int_equal(sample.sent - before, sizeof bytes);
    CHECK(dp_path_read(wire.b, &sample));
    CHECK(sample.segments_in > 0 && sample.again == 0);
    close(wire.a);
    close(wire.b);
    CHECK(!dp_path_read(wire.a, &sample));
}

static void unread_messages_wait(void **state)
{
    enum { TRIES = 1000 };
    struct wire wire = wire_open();
    static uint8_t bytes[1 << 16];
    dp_path_room room = {0};
    ssize_t sent = 0;
    (void)state;
    CHECK(dp_path_look(wire.a, &room));
    CHECK(room.waiting == 0 && room.window > 0 && !room.hole && !room.stalled);
    for (unsigned i = 0; i < TRIES && sent >= 0; i++) { /* Until both ends are full. */
        sent = send(wire.a, bytes, sizeof bytes, MSG_DONTWAIT);
    }
    CHECK(dp_path_look(wire.a, &room));
    CHECK(room.waiting > 0);
    close(wire.a);
    close(wire.b);
    CHECK(!dp_path_look(wire.a, &room));
}

static void options_are_set_and_taken_back(void **state)
{
    struct wire wire = wire_open();
    unsigned value = 0;
    uint64_t rate = 0;
    socklen_t size = sizeof value;
    (void)state;
    dp_path_set_options(wire.a, true);
    assert_int_equal(getsockopt(wire.a, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &size), 0);
    assert_int_equal(value, 15000);
    assert_int_equal(getsockopt(wire.a, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &value, &size), 0);
    assert_int_equal(value, 256 * 1024);
    size = sizeof rate;
    dp_path_set_pace(wire.a, 1000000);
    assert_int_equal(getsockopt(wire.a, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, &size), 0);
    assert_int_equal(rate, 1000000);
    dp_path_set_pace(wire.a, 0);
    assert_int_equal(getsockopt(wire.a, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, &size), 0);
    CHECK(rate == UINT64_MAX);
    close(wire.a);
    close(wire.b);
}

static void a_short_path_is_never_bbr(void **state)
{
    struct wire wire = wire_open();
    char name[16] = "";
    socklen_t size = sizeof name - 1;
    (void)state;
    dp_path_set_short(wire.a);
    assert_int_equal(getsockopt(wire.a, IPPROTO_TCP, TCP_CONGESTION, name, &size), 0);
    assert_string_not_equal(name, "bbr");
    dp_path_set_short(-1); /* Best effort: nothing happens. */
    close(wire.a);
    close(wire.b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kernel_counts_what_was_sent),
        cmocka_unit_test(unread_messages_wait),
        cmocka_unit_test(options_are_set_and_taken_back),
        cmocka_unit_test(a_short_path_is_never_bbr),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
