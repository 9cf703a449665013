#include "cli/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/rng.h"
#include "cli/json.h"
#include "cli/paths.h"
#include "tests/lib/check.h"
#include "tests/lib/mutate.h"
#include "tests/lib/tempdir.h"

enum { FIRST_CALL = 1 };

static dp_control_error error;

/* ---- what a daemon says ---- */

static void say_map(dp_buf *out, dp_control_kind kind, uint64_t id, const char *key, uint64_t value)
{
    size_t start = 0;
    dp_packer packer = dp_control_begin(out, kind, id, "", &start);
    dp_pack_map(&packer, 1);
    dp_pack_text(&packer, key);
    dp_pack_u64(&packer, value);
    CHECK_OK(dp_control_end(out, start, &packer));
}

static void say_error(dp_buf *out, uint64_t id)
{
    dp_control_error said;
    dp_error_set(&said, 77, "E0999", "do it", "it failed", "because");
    CHECK_OK(dp_control_write_error(out, id, &said));
}

/* One call of method "try" to a daemon that answers with these bytes and then closes. */
static int call(dp_view answer, dp_on_notice *on_notice, void *context, json_t **result)
{
    int ends[2];
    dp_client client = {.fd = -1};
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    client.fd = ends[0];
    dp_buf_init(&client.in, DP_CONTROL_FRAME_MAX + 65536);
    dp_buf_init(&client.out, DP_CONTROL_FRAME_MAX);
    CHECK(write(ends[1], answer.data, answer.size) == (ssize_t)answer.size);
    CHECK(shutdown(ends[1], SHUT_WR) == 0);
    dp_packer packer = dp_client_begin(&client, "try");
    dp_pack_map(&packer, 0);
    *result = NULL;
    const int status = dp_client_call(&client, &packer, on_notice, context, result, &error);
    dp_client_close(&client);
    close(ends[1]);
    return status;
}

static int count_notices(void *context, const json_t *notice)
{
    int *count = context;
    CHECK(dp_json_int(notice, "n", -1) == *count);
    *count += 1;
    return 0;
}

static int stop_at_once(void *context, const json_t *notice)
{
    (void)context;
    (void)notice;
    return 42;
}

/* ---- tests ---- */

static void notices_come_in_order_and_the_reply_ends_the_call(void **state)
{
    (void)state;
    dp_buf said;
    json_t *result = NULL;
    int count = 0;
    dp_buf_init(&said, 65536);
    say_map(&said, DP_CONTROL_NOTICE, FIRST_CALL, "n", 0);
    say_map(&said, DP_CONTROL_NOTICE, FIRST_CALL + 7, "n", 99); /* of another call */
    say_map(&said, DP_CONTROL_NOTICE, FIRST_CALL, "n", 1);
    say_map(&said, DP_CONTROL_REPLY, FIRST_CALL, "answer", 5);
    CHECK(call(dp_buf_view(&said), count_notices, &count, &result) == 0);
    CHECK(count == 2 && dp_json_int(result, "answer", 0) == 5);
    json_decref(result);
    dp_buf_close(&said);
}

/* A socket where nobody accepts; connections wait for it, up to a few. */
static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    CHECK(fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof address) == 0);
    CHECK(listen(fd, 0) == 0);
    return fd;
}

static void a_daemon_that_hangs_ends_a_bounded_call(void **state)
{
    enum { CLIENTS_MAX = 16 };
    char path[TEMPDIR_FILE_MAX];
    tempdir dir;
    dp_client clients[CLIENTS_MAX];
    json_t *result = NULL;
    dp_status status = DP_OK;
    int n = 0;

    (void)state;
    tempdir_open(&dir);
    const int fd = listen_at(tempdir_file(&dir, "s", path));
    CHECK_OK(dp_client_open_within(&clients[n++], path, 1, &error));
    dp_packer packer = dp_client_begin(&clients[0], "try");
    dp_pack_map(&packer, 0);
    assert_int_equal(dp_client_call(&clients[0], &packer, NULL, NULL, &result, &error),
                     DP_EXIT_UNAVAILABLE);
    assert_string_equal(error.code, "E0103");
    assert_string_equal(error.why, "it is busy, or it hangs");
    assert_true(clients[0].late);
    error = (dp_control_error){.exit = 0};
    while (status == DP_OK && n < CLIENTS_MAX) { /* until no more connections wait */
        status = dp_client_open_within(&clients[n++], path, 1, &error);
    }
    assert_int_equal(status, DP_CLOSED);
    assert_string_equal(error.code, "E0103");
    while (n > 0) {
        dp_client_close(&clients[--n]);
    }
    close(fd);
    tempdir_close(&dir);
}

static void an_error_reply_becomes_the_error_and_its_exit_status(void **state)
{
    (void)state;
    dp_buf said;
    json_t *result = NULL;
    dp_buf_init(&said, 65536);
    say_error(&said, FIRST_CALL);
    CHECK(call(dp_buf_view(&said), NULL, NULL, &result) == 77 && result == NULL);
    assert_string_equal(error.code, "E0999");
    assert_string_equal(error.why, "because");
    dp_buf_close(&said);
}

static void the_receiver_of_notices_may_end_the_call(void **state)
{
    (void)state;
    dp_buf said;
    json_t *result = NULL;
    dp_buf_init(&said, 65536);
    say_map(&said, DP_CONTROL_NOTICE, FIRST_CALL, "n", 0);
    CHECK(call(dp_buf_view(&said), stop_at_once, NULL, &result) == 42 && error.code[0] == '\0');
    dp_buf_close(&said);
}

static void a_daemon_that_closes_or_babbles_is_unavailable(void **state)
{
    (void)state;
    static const char *const answers[] = {"", "\x01", "\x02\x00\x00\x00\x90",
                                          "\xff\xff\xff\xff____", "\x01\x00\x00\x00\xc1"};
    static const size_t sizes[] = {0, 1, 5, 8, 5};
    json_t *result = NULL;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        CHECK(call(dp_view_of(answers[i], sizes[i]), NULL, NULL, &result) == DP_EXIT_UNAVAILABLE);
        assert_string_equal(error.code, "E0103");
    }
    assert_string_equal(error.why, "it is too large, or damaged"); /* Of the last. */
}

static void damaged_answers_end_the_call(void **state)
{
    (void)state;
    uint8_t bytes[1024];
    dp_buf said;
    dp_rng rng;
    dp_rng_init(&rng, 11);
    dp_buf_init(&said, 65536);
    say_map(&said, DP_CONTROL_NOTICE, FIRST_CALL, "n", 0);
    say_error(&said, FIRST_CALL + 1);
    say_map(&said, DP_CONTROL_REPLY, FIRST_CALL, "answer", 5);
    for (int i = 0; i < 1000; i++) {
        json_t *result = NULL;
        memcpy(bytes, said.data, said.size);
        const size_t size = mutate(&rng, bytes, said.size, sizeof bytes);
        const int status = call(dp_view_of(bytes, size), NULL, NULL, &result);
        CHECK((status == 0) == (result != NULL));
        json_decref(result);
    }
    dp_buf_close(&said);
}

static void nobody_at_the_socket_is_an_error_with_its_path(void **state)
{
    (void)state;
    tempdir dir;
    char path[TEMPDIR_FILE_MAX];
    dp_client client;
    tempdir_open(&dir);
    tempdir_file(&dir, "s", path);
    CHECK_STATUS(dp_client_open(&client, path, &error), DP_CLOSED);
    assert_string_equal(error.code, "E0101");
    CHECK(error.exit == DP_EXIT_UNAVAILABLE && strstr(error.why, path) != NULL);
    dp_client_close(&client);
    dp_client_close(&client);
    tempdir_close(&dir);
}

/* The kernel's answer about the socket of the machine's daemon: an errno. */
static int machine_says = ENOENT;
int __wrap_euidaccess(const char *path, int how);
int __wrap_euidaccess(const char *path, int how)
{
    assert_string_equal(path, DP_PATH_SYSTEM_SOCKET);
    assert_int_equal(how, R_OK | W_OK);
    errno = machine_says;
    return -1;
}

static void a_daemon_of_the_machine_that_may_not_be_asked_is_told_with_its_group(void **state)
{
    (void)state;
    tempdir dir;
    char path[TEMPDIR_FILE_MAX + 32];
    dp_client client;
    tempdir_open(&dir);
    assert_int_equal(unsetenv("DPNODE_SOCKET"), 0);
    assert_int_equal(setenv("XDG_RUNTIME_DIR", dir.path, 1), 0);
    snprintf(path, sizeof path, "%s/dpnode/dpnode.sock", dir.path);
    assert_int_equal(chmod(dir.path, 0755), 0);
    if (geteuid() == 0 && seteuid(65534) != 0) { /* Root may ask every daemon. */
        skip();
    }
    CHECK_STATUS(dp_client_open(&client, path, &error), DP_CLOSED);
    assert_null(strstr(error.fix, "adduser")); /* There is none. */
    dp_client_close(&client);
    machine_says = EACCES;
    CHECK_STATUS(dp_client_open(&client, path, &error), DP_CLOSED);
    assert_string_equal(error.code, "E0101");
    assert_int_equal(error.exit, DP_EXIT_UNAVAILABLE); /* join starts a daemon of the user's own. */
    assert_non_null(strstr(error.why, "is for root and the group dpnode"));
    assert_non_null(strstr(error.fix, "sudo adduser $USER dpnode, then log in again"));
    dp_client_close(&client);
    CHECK_STATUS(dp_client_open(&client, "/nowhere/dpnode.sock", &error), DP_CLOSED);
    assert_null(strstr(error.fix, "adduser")); /* The user has chosen another one. */
    dp_client_close(&client);
    assert_int_equal(seteuid(getuid()), 0);
    tempdir_close(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_daemon_of_the_machine_that_may_not_be_asked_is_told_with_its_group),
        cmocka_unit_test(notices_come_in_order_and_the_reply_ends_the_call),
        cmocka_unit_test(a_daemon_that_hangs_ends_a_bounded_call),
        cmocka_unit_test(an_error_reply_becomes_the_error_and_its_exit_status),
        cmocka_unit_test(the_receiver_of_notices_may_end_the_call),
        cmocka_unit_test(a_daemon_that_closes_or_babbles_is_unavailable),
        cmocka_unit_test(damaged_answers_end_the_call),
        cmocka_unit_test(nobody_at_the_socket_is_an_error_with_its_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
