#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"

static void a_write_appends_to_earlier_ones(void **state)
{
    const int fd = memfd_create("test", MFD_CLOEXEC);
    char back[8] = {0};

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(dp_fd_write(fd, dp_view_text("one")), DP_OK);
    assert_int_equal(dp_fd_write(fd, dp_view_of(NULL, 0)), DP_OK);
    assert_int_equal(dp_fd_write(fd, dp_view_text("two")), DP_OK);
    assert_int_equal(pread(fd, back, sizeof back, 0), 6);
    assert_string_equal(back, "onetwo");
    close(fd);
}

static void errno_says_why_nothing_could_be_written(void **state)
{
    const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    int pipes[2];

    (void)state;
    assert_true(full >= 0);
    assert_int_equal(dp_fd_write(full, dp_view_text("x")), DP_IO);
    assert_int_equal(errno, ENOSPC);
    close(full);
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    assert_int_equal(dp_fd_write(pipes[0], dp_view_text("x")), DP_IO);
    assert_int_equal(errno, EBADF);
    close(pipes[0]);
    close(pipes[1]);
}

/* A file that may hold 100 bytes takes these of 150, and says so only when it is asked again. */
static void after_a_part_the_rest_is_written_or_refused(void **state)
{
    char path[] = "/tmp/dp_fd_XXXXXX";
    const int fd = mkostemp(path, O_CLOEXEC);
    const uint8_t bytes[150] = {1};
    struct rlimit before;

    (void)state;
    assert_true(fd >= 0);
    unlink(path);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small = {.rlim_cur = 100, .rlim_max = before.rlim_max};
    void (*const handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const dp_status status = dp_fd_write(fd, dp_view_of(bytes, sizeof bytes));
    const int error = errno;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, DP_IO);
    assert_int_equal(error, EFBIG);
    assert_int_equal(lseek(fd, 0, SEEK_END), 100);
    close(fd);
}

static int drained;
static volatile sig_atomic_t alarms;

/* The write sits in the full pipe at the first; from the second on there is room. */
static void on_alarm(int number)
{
    uint8_t room[4096];
    const int error = errno;

    (void)number;
    if (++alarms > 1) {
        while (read(drained, room, sizeof room) > 0) {
        }
    }
    errno = error;
}

static void a_signal_in_the_middle_changes_nothing(void **state)
{
    const struct sigaction act = {.sa_handler = on_alarm}; /* without SA_RESTART */
    const struct itimerval often = {.it_interval.tv_usec = 2000, .it_value.tv_usec = 2000};
    const struct itimerval never = {0};
    const uint8_t bytes[4096] = {0};
    struct sigaction before;
    int pipes[2];

    (void)state;
    assert_int_equal(pipe2(pipes, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(fcntl(pipes[1], F_SETPIPE_SZ, 4096), 4096);
    assert_int_equal(write(pipes[1], bytes, sizeof bytes), sizeof bytes);
    assert_int_equal(fcntl(pipes[1], F_SETFL, 0), 0);
    drained = pipes[0];
    alarms = 0;
    assert_int_equal(sigaction(SIGALRM, &act, &before), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    const dp_status status = dp_fd_write(pipes[1], dp_view_of(bytes, sizeof bytes));
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    assert_int_equal(status, DP_OK);
    assert_true(alarms > 1);
    close(pipes[0]);
    close(pipes[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_appends_to_earlier_ones),
        cmocka_unit_test(errno_says_why_nothing_could_be_written),
        cmocka_unit_test(after_a_part_the_rest_is_written_or_refused),
        cmocka_unit_test(a_signal_in_the_middle_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
