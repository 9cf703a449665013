/* How messages between daemon and trainer travel. */
#include "base/trainer/trainer_msg.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tests/lib/check.h"

static void open_pair(int ends[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends),
                     0);
}

static void a_packet_carries_its_descriptors(void **state)
{
    const dp_trainer_msg msg = {.kind = DP_TRAINER_OPEN};
    static dp_trainer_msg back;
    int ends[2];
    int fds[DP_TRAINER_FDS_MAX];
    int sent[2];
    uint32_t n_fds = 0;
    dp_view bytes;

    (void)state;
    open_pair(ends);
    CHECK_OK(dp_memfd_make("one", dp_view_text("first"), &sent[0]));
    CHECK_OK(dp_memfd_start("two", &sent[1])); /* In pieces. */
    CHECK_OK(dp_memfd_add(sent[1], dp_view_text("sec")));
    CHECK_OK(dp_memfd_add(sent[1], dp_view_text("ond")));
    CHECK_STATUS(dp_memfd_map(sent[1], 6, &bytes), DP_BADMSG);
    CHECK_OK(dp_memfd_seal(sent[1]));
    CHECK_STATUS(dp_memfd_add(sent[1], dp_view_text("!")), DP_IO);
    CHECK_OK(dp_trainer_send(ends[0], &msg, sent, 2));
    CHECK_OK(dp_trainer_receive(ends[1], &back, fds, &n_fds));
    assert_int_equal(n_fds, 2);
    assert_int_equal(back.kind, DP_TRAINER_OPEN);
    assert_int_equal(fcntl(fds[1], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    CHECK_OK(dp_memfd_map(fds[1], 6, &bytes));
    for (unsigned i = 0; i < 2; i++) {
        close(sent[i]);
        close(fds[i]);
        close(ends[i]);
    }
    assert_true(dp_view_equal(bytes, dp_view_text("second"))); /* The mapping outlives the fd. */
    dp_memfd_unmap(bytes);
}

static void an_empty_socket_says_again_and_a_closed_one_says_so(void **state)
{
    const dp_trainer_msg msg = {.kind = DP_TRAINER_STOP};
    static dp_trainer_msg back;
    int ends[2];
    int fds[DP_TRAINER_FDS_MAX];
    uint32_t n_fds = 9;

    (void)state;
    open_pair(ends);
    CHECK_STATUS(dp_trainer_receive(ends[1], &back, fds, &n_fds), DP_AGAIN);
    assert_int_equal(n_fds, 0);
    close(ends[0]);
    CHECK_STATUS(dp_trainer_receive(ends[1], &back, fds, &n_fds), DP_CLOSED);
    CHECK_STATUS(dp_trainer_send(ends[1], &msg, NULL, 0), DP_CLOSED);
    close(ends[1]);
}

static void descriptors_of_a_bad_packet_are_closed(void **state)
{
    static dp_trainer_msg back;
    int ends[2];
    int fds[DP_TRAINER_FDS_MAX];
    int sent = -1;
    uint32_t n_fds = 0;
    char letter[] = "x";
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {.iov_base = letter, .iov_len = 1};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};

    (void)state;
    open_pair(ends);
    CHECK_OK(dp_memfd_make("lost", dp_view_text("lost"), &sent));
    memset(&control, 0, sizeof control);
    header.msg_control = control.bytes;
    header.msg_controllen = sizeof control.bytes;
    struct cmsghdr *const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(rights), &sent, sizeof sent);
    assert_int_equal(sendmsg(ends[0], &header, 0), 1);
    const int next_before = dup(ends[0]); /* The number that a received descriptor will get. */
    close(next_before);
    CHECK_STATUS(dp_trainer_receive(ends[1], &back, fds, &n_fds), DP_BADMSG);
    assert_int_equal(n_fds, 0);
    assert_int_equal(fcntl(next_before, F_GETFD), -1);
    assert_int_equal(errno, EBADF);
    close(sent);
    close(ends[0]);
    close(ends[1]);
}

static void memory_that_is_not_sealed_or_too_large_is_refused(void **state)
{
    dp_view bytes = {0};
    int fd = -1;

    (void)state;
    const int open_fd = memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(open_fd >= 0);
    CHECK_STATUS(dp_memfd_map(open_fd, 100, &bytes), DP_BADMSG);
    close(open_fd);
    CHECK_STATUS(dp_memfd_map(open_fd, 100, &bytes), DP_BADMSG);
    CHECK_OK(dp_memfd_make("large", dp_view_text("12345"), &fd));
    CHECK_STATUS(dp_memfd_map(fd, 4, &bytes), DP_BADMSG);
    assert_true(write(fd, "x", 1) < 0);
    assert_true(ftruncate(fd, 0) < 0);
    close(fd);
    CHECK_OK(dp_memfd_make("empty", (dp_view){0}, &fd));
    CHECK_OK(dp_memfd_map(fd, 0, &bytes));
    assert_int_equal(bytes.size, 0);
    dp_memfd_unmap(bytes);
    close(fd);
}

static void without_memory_nothing_is_sent(void **state)
{
    const dp_trainer_msg msg = {.kind = DP_TRAINER_STOP};
    int ends[2];

    (void)state;
    open_pair(ends);
    dp_alloc_fail_after(1);
    CHECK_STATUS(dp_trainer_send(ends[0], &msg, NULL, 0), DP_NOMEM);
    dp_alloc_fail_after(0);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_packet_carries_its_descriptors),
        cmocka_unit_test(an_empty_socket_says_again_and_a_closed_one_says_so),
        cmocka_unit_test(descriptors_of_a_bad_packet_are_closed),
        cmocka_unit_test(memory_that_is_not_sealed_or_too_large_is_refused),
        cmocka_unit_test(without_memory_nothing_is_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
