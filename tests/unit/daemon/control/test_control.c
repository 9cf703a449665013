/* THREADS_TEST: a real unix socket with clients of all kinds in front of an idle daemon. */
#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tests/lib/mutate.h"
#include "tests/unit/daemon/caller.h"

static uid_t pretended_uid; /* of those who connect; 0: as it is */

/* In front of libc's. */
int getsockopt(int fd, int level, int option, void *value, socklen_t *size)
{
    typedef int real(int, int, int, void *, socklen_t *);
    real *const next = (real *)(uintptr_t)dlsym(RTLD_NEXT, "getsockopt");
    const int result = next(fd, level, option, value, size);
    if (result == 0 && level == SOL_SOCKET && option == SO_PEERCRED && pretended_uid != 0) {
        ((struct ucred *)value)->uid = pretended_uid;
    }
    return result;
}

static void an_idle_daemon_answers_hello_and_status(void **state)
{
    struct house house;
    struct caller caller;
    dp_control_frame frame;
    (void)state;
    house_open(&house);
    house_open_control(&house);
    caller_open(&caller, &house);
    check_hello(&caller, 1);
    ask(&caller, 2, "status");
    const size_t size = next_frame(&caller, &frame);
    check_text(frame.body, "state", "idle");
    check_text(frame.body, "name", "ann");
    CHECK(dp_pack_key(frame.body, "run") == NULL);
    used(&caller, &frame, size);
    caller_close(&caller);
    house_close(&house);
}

static void methods_of_a_run_say_that_there_is_none(void **state)
{
    static const char *const methods[] = {
        "peers",  "rounds",      "why",    "data", "run.leave",  "invite",      "pause",
        "resume", "ckpt.export", "sample", "eval", "token.list", "token.revoke"};
    struct house house;
    struct caller caller;
    (void)state;
    house_open(&house);
    house_open_control(&house);
    caller_open(&caller, &house);
    for (unsigned i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        dp_control_frame frame;
        dp_control_error error;
        ask(&caller, i, methods[i]);
        const size_t size = next_frame(&caller, &frame);
        CHECK(frame.kind == DP_CONTROL_REPLY && frame.error != NULL && frame.id == i);
        dp_control_error_read(frame.error, &error);
        CHECK(error.code[0] == 'E' && error.what[0] != '\0' && error.fix[0] != '\0' &&
              error.exit > 0);
        used(&caller, &frame, size);
    }
    caller_close(&caller);
    house_close(&house);
}

static void an_unknown_method_is_an_error_and_not_the_end(void **state)
{
    struct house house;
    struct caller caller;
    dp_control_frame frame;
    dp_control_error error;
    (void)state;
    house_open(&house);
    house_open_control(&house);
    caller_open(&caller, &house);
    ask(&caller, 5, "fly");
    const size_t size = next_frame(&caller, &frame);
    CHECK(frame.error != NULL);
    dp_control_error_read(frame.error, &error);
    assert_string_equal(error.code, "E0102");
    used(&caller, &frame, size);
    check_hello(&caller, 6);
    caller_close(&caller);
    house_close(&house);
}

static void create_and_join_refuse_what_is_no_manifest_and_no_token(void **state)
{
    static const char *const methods[] = {"run.create", "run.join"};
    struct house house;
    struct caller caller;
    (void)state;
    house_open(&house);
    house_open_control(&house);
    caller_open(&caller, &house);
    for (unsigned i = 0; i < 2; i++) {
        dp_control_frame frame;
        ask(&caller, i, methods[i]);
        const size_t size = next_frame(&caller, &frame);
        CHECK(frame.kind == DP_CONTROL_REPLY && frame.error != NULL);
        used(&caller, &frame, size);
    }
    CHECK(house.daemon.driver == NULL);
    caller_close(&caller);
    house_close(&house);
}

static void half_a_frame_waits_for_the_other_half(void **state)
{
    struct house house;
    struct caller caller;
    dp_buf out = {.max = 4096};
    dp_control_frame frame;
    (void)state;
    house_open(&house);
    house_open_control(&house);
    caller_open(&caller, &house);
    write_request(&out, 3, "hello", false, 0);
    for (size_t i = 0; i < out.size; i++) {
        send_bytes(&caller, dp_view_of(out.data + i, 1));
        uv_run(&house.loop, UV_RUN_NOWAIT);
        hear(&caller);
        CHECK(!caller.ended && (i + 1 == out.size || caller.in.size == 0));
    }
    const size_t size = next_frame(&caller, &frame);
    assert_int_equal(frame.id, 3);
    used(&caller, &frame, size);
    dp_buf_close(&out);
    caller_close(&caller);
    house_close(&house);
}

static void many_requests_in_one_piece_are_answered_in_order(void **state)
{
    struct house house;
    struct caller caller;
    dp_buf out = {.max = 65536};
    (void)state;
    house_open(&house);
    house_open_control(&house);
    caller_open(&caller, &house);
    for (uint64_t i = 0; i < 100; i++) {
        write_request(&out, i, "hello", false, 0);
    }
    send_bytes(&caller, dp_buf_view(&out));
    for (uint64_t i = 0; i < 100; i++) {
        dp_control_frame frame;
        const size_t size = next_frame(&caller, &frame);
        assert_int_equal(frame.id, i);
        used(&caller, &frame, size);
    }
    dp_buf_close(&out);
    caller_close(&caller);
    house_close(&house);
}

static void garbage_and_oversize_frames_cut_the_client_alone(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
    } cases[] = {
        {"GET / HTTP/1.0\r\n\r\n", 18},              /* a size of 0x20544547 */
        {"\x01\x00\x10\x00", 4},                     /* 1 MiB + 1 */
        {"\x00\x00\x00\x00", 4},                     /* an empty frame */
        {"\x01\x00\x00\x00\xc1", 5},                 /* no msgpack */
        {"\x05\x00\x00\x00\x94\x01\x01\xc0\x80", 9}, /* a reply */
        {"\x05\x00\x00\x00\xdd\xff\xff\xff\xff", 9}, /* an array of four thousand million */
    };
    struct house house;
    struct caller good;
    (void)state;
    house_open(&house);
    house_open_control(&house);
    caller_open(&good, &house);
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct caller bad;
        caller_open(&bad, &house);
        send_bytes(&bad, dp_view_of(cases[i].bytes, cases[i].size));
        turn_until(&house.loop, has_ended, &bad);
        caller_close(&bad);
    }
    CHECK(house_logged(&house, "control.garbage"));
    check_hello(&good, 1);
    caller_close(&good);
    house_close(&house);
}

static void damaged_requests_never_crash(void **state)
{
    static const char *const methods[] = {"hello", "status", "events", "ckpt.list",
                                          "data",  "why",    "rounds", "invite"};
    struct house house;
    struct caller good;
    dp_rng rng;
    (void)state;
    house_open(&house);
    house_open_control(&house);
    caller_open(&good, &house);
    dp_rng_init(&rng, 17);
    for (unsigned i = 0; i < 300; i++) {
        struct caller bad;
        dp_buf out = {.max = 65536};
        uint8_t *room = NULL;
        caller_open(&bad, &house);
        write_request(&out, i, methods[i % 8], i % 3 == 0, i);
        CHECK_OK(dp_buf_reserve(&out, 256, &room));
        const size_t size = mutate(&rng, out.data, out.size, out.size + 256);
        send_bytes(&bad, dp_view_of(out.data, size));
        uv_run(&house.loop, UV_RUN_NOWAIT);
        caller_close(&bad);
        uv_run(&house.loop, UV_RUN_NOWAIT);
        dp_buf_close(&out);
    }
    check_hello(&good, 1);
    caller_close(&good);
    house_close(&house);
}

static bool all_answered(void *context)
{
    struct caller *callers = context;
    bool all = true;
    for (int i = 0; i < DP_CONTROL_CLIENTS_MAX; i++) {
        hear(&callers[i]);
        all = all && (frames_in(&callers[i]) == 1 || callers[i].ended);
    }
    return all;
}

static void clients_beyond_the_limit_are_turned_away_and_room_comes_back(void **state)
{
    static struct caller callers[DP_CONTROL_CLIENTS_MAX];
    struct house house;
    struct caller late;
    (void)state;
    house_open(&house);
    house_open_control(&house);
    for (int i = 0; i < DP_CONTROL_CLIENTS_MAX; i++) {
        caller_open(&callers[i], &house);
        ask(&callers[i], 1, "hello");
    }
    turn_until(&house.loop, all_answered, callers);
    for (int i = 0; i < DP_CONTROL_CLIENTS_MAX; i++) {
        CHECK(!callers[i].ended);
    }
    for (int i = 0; i < 3; i++) {
        caller_open(&late, &house);
        turn_until(&house.loop, has_ended, &late);
        caller_close(&late);
    }
    for (int i = 0; i < DP_CONTROL_CLIENTS_MAX; i++) {
        caller_close(&callers[i]);
    }
    for (int i = 0; i < 3; i++) {
        uv_run(&house.loop, UV_RUN_NOWAIT);
    }
    caller_open(&late, &house);
    check_hello(&late, 2);
    caller_close(&late);
    house_close(&house);
}

static void a_client_that_came_without_memory_does_not_end_the_listening(void **state)
{
    struct house house;
    struct caller first;
    struct caller second;
    (void)state;
    house_open(&house);
    house_open_control(&house);
    caller_open(&first, &house);
    dp_alloc_fail_after(1);
    for (int i = 0; i < 3; i++) {
        uv_run(&house.loop, UV_RUN_NOWAIT);
    }
    dp_alloc_fail_after(0);
    dp_event_log_add(house.daemon.event_log, DP_LOG_INFO, "test.entry", 0, NULL, "memory is back");
    turn_until(&house.loop, has_ended, &first);
    caller_open(&second, &house);
    check_hello(&second, 1);
    caller_close(&first);
    caller_close(&second);
    house_close(&house);
}

/* The code of the answer, or "" for a reply. */
static void code_of(struct caller *caller, uint64_t id, const char *method, char code[8])
{
    dp_control_frame frame;
    dp_control_error error = {.code = ""};
    ask(caller, id, method);
    const size_t size = next_frame(caller, &frame);
    if (frame.error != NULL) {
        dp_control_error_read(frame.error, &error);
    }
    snprintf(code, 8, "%s", error.code);
    used(caller, &frame, size);
}

static void another_user_looks_and_gives_no_orders(void **state)
{
    static const char *const looks[] = {"hello", "status"};
    static const char *const orders[] = {
        "run.create", "run.join", "run.leave", "invite",      "revoke",       "run.fork",
        "run.merge",  "pause",    "resume",    "drain",       "ckpt.verify",  "audit",
        "sample",     "eval",     "down",      "ckpt.export", "token.revoke",
    };
    struct house house;
    struct caller other;
    struct caller owner;
    char code[8];
    (void)state;
    house_open(&house);
    house_open_control(&house);
    pretended_uid = geteuid() + 1;
    caller_open(&other, &house);
    for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++) {
        code_of(&other, i, looks[i], code);
        assert_string_equal(code, "");
    }
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        code_of(&other, 10 + i, orders[i], code);
        assert_string_equal(code, "E0113");
    }
    CHECK(!house.daemon.ending);
    pretended_uid = 0;
    caller_open(&owner, &house);
    code_of(&owner, 1, "invite", code);
    assert_string_equal(code, "E0110"); /* There is no run; else it could. */
    code_of(&other, 50, "invite", code);
    assert_string_equal(code, "E0113");
    caller_close(&owner);
    caller_close(&other);
    house_close(&house);
}

static void those_who_look_leave_room_for_the_owner(void **state)
{
    struct house house;
    struct caller others[DP_CONTROL_LOOKERS_MAX];
    struct caller late;
    struct caller owner;
    (void)state;
    house_open(&house);
    house_open_control(&house);
    pretended_uid = geteuid() + 1;
    for (unsigned i = 0; i < DP_CONTROL_LOOKERS_MAX; i++) {
        caller_open(&others[i], &house);
        check_hello(&others[i], i);
    }
    caller_open(&late, &house);
    turn_until(&house.loop, has_ended, &late);
    pretended_uid = 0;
    caller_open(&owner, &house);
    check_hello(&owner, 1);
    caller_close(&others[0]);
    caller_close(&late);
    for (int i = 0; i < 3; i++) {
        uv_run(&house.loop, UV_RUN_NOWAIT);
    }
    pretended_uid = geteuid() + 1;
    caller_open(&late, &house);
    check_hello(&late, 2); /* Room comes back. */
    pretended_uid = 0;
    for (unsigned i = 1; i < DP_CONTROL_LOOKERS_MAX; i++) {
        caller_close(&others[i]);
    }
    caller_close(&late);
    caller_close(&owner);
    house_close(&house);
}

static void a_folder_that_is_open_to_a_group_opens_the_socket_to_it(void **state)
{
    static const struct {
        mode_t folder;
        mode_t socket;
    } modes[] = {{0700, 0600}, {0750, 0660}, {0710, 0660}, {0705, 0600}};
    struct house house;
    struct stat about;
    char folder[sizeof house.config.socket];
    (void)state;
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        house_open(&house);
        snprintf(folder, sizeof folder, "%s", house.config.socket);
        *strrchr(folder, '/') = '\0';
        assert_int_equal(chmod(folder, modes[i].folder), 0);
        house_open_control(&house);
        assert_int_equal(stat(house.config.socket, &about), 0);
        assert_int_equal(about.st_mode & 0777, modes[i].socket);
        house_close(&house);
    }
}

static void followers_hear_events_as_they_come(void **state)
{
    struct house house;
    struct caller caller;
    dp_buf out = {.max = 4096};
    (void)state;
    house_open(&house);
    house_open_control(&house);
    dp_event_log_add(house.daemon.event_log, DP_LOG_INFO, "test.before", 0, NULL, "before");
    caller_open(&caller, &house);
    write_request(&out, 8, "events", true, 1);
    send_bytes(&caller, dp_buf_view(&out));
    for (int i = 0; i < 4; i++) {
        dp_control_frame frame;
        const size_t size = next_frame(&caller, &frame);
        CHECK(frame.kind == DP_CONTROL_NOTICE && frame.id == 8);
        check_text(dp_pack_key(frame.body, "event"), "text", i == 0 ? "before" : "after");
        used(&caller, &frame, size);
        dp_event_log_add(house.daemon.event_log, DP_LOG_INFO, "test.after", 0, NULL, "after");
    }
    caller_close(&caller);
    for (int i = 0; i < 4; i++) { /* A follower that left is forgotten. */
        dp_event_log_add(house.daemon.event_log, DP_LOG_INFO, "test.after", 0, NULL,
                         "nobody hears this");
        uv_run(&house.loop, UV_RUN_NOWAIT);
    }
    dp_buf_close(&out);
    house_close(&house);
}

static void a_client_that_asks_and_never_reads_is_cut(void **state)
{
    struct house house;
    struct caller deaf;
    struct caller good;
    dp_buf out = {.max = 8 << 20};
    (void)state;
    house_open(&house);
    house_open_control(&house);
    for (int i = 0; i < DP_EVENT_LOG_ENTRIES_MAX; i++) {
        dp_event_log_add(house.daemon.event_log, DP_LOG_DEBUG, "test.long", 0, NULL, "%0200d", i);
    }
    caller_open(&deaf, &house);
    for (uint64_t i = 0; i < 60000; i++) {
        write_request(&out, i, "status", false, 0);
        if (i % 500 == 0) {
            write_request(&out, i, "events", false, DP_EVENT_LOG_ENTRIES_MAX);
        }
    }
    send_bytes(&deaf, dp_buf_view(&out)); /* returns when it is cut, or all was taken */
    turn_until(&house.loop, has_ended, &deaf);
    caller_open(&good, &house);
    check_hello(&good, 1);
    caller_close(&good);
    caller_close(&deaf);
    dp_buf_close(&out);
    house_close(&house);
}

static void a_long_list_ends_with_its_count(void **state)
{
    struct house house;
    struct caller caller;
    dp_buf out = {.max = 4096};
    (void)state;
    house_open(&house);
    house_open_control(&house);
    for (int i = 0; i < DP_EVENT_LOG_ENTRIES_MAX + 10; i++) {
        dp_event_log_add(house.daemon.event_log, DP_LOG_DEBUG, "test.long", 0, NULL, "%0200d", i);
    }
    caller_open(&caller, &house);
    write_request(&out, 1, "events", false, UINT64_MAX);
    send_bytes(&caller, dp_buf_view(&out));
    caller.wanted = DP_EVENT_LOG_ENTRIES_MAX + 1;
    turn_until(&house.loop, has_frames, &caller);
    assert_int_equal(frames_in(&caller), DP_EVENT_LOG_ENTRIES_MAX + 1);
    dp_buf_close(&out);
    caller_close(&caller);
    house_close(&house);
}

static void an_answer_after_the_end_goes_nowhere(void **state)
{
    struct house house;
    dp_packer packer;
    (void)state;
    house_open(&house);
    house_open_control(&house);
    const dp_call call = {.daemon = &house.daemon, .client = 1, .id = 1};
    CHECK(!dp_call_alive(&call));
    CHECK(!dp_call_begin(&call, DP_CONTROL_REPLY, &packer));
    dp_control_close(house.daemon.control);
    house.daemon.control = NULL;
    CHECK(!dp_call_alive(&call));
    CHECK(!dp_call_begin(&call, DP_CONTROL_REPLY, &packer));
    dp_call_fail(&call, 1, "E0000", "", "", "");
    assert_int_equal(dp_call_waiting(&call), 0);
    house_close(&house);
}

static void a_second_daemon_is_busy_and_a_stale_socket_is_replaced(void **state)
{
    struct house house;
    dp_control *second = NULL;
    dp_why why = {""};
    struct stat about;
    (void)state;
    house_open(&house);
    house_open_control(&house);
    assert_int_equal(stat(house.config.socket, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600); /* Its folder is its owner's alone. */
    CHECK_STATUS(dp_control_open(&second, &house.daemon, house.config.socket, &why), DP_BUSY);
    assert_non_null(strstr(why.text, house.config.socket));
    dp_control_close(house.daemon.control);
    house.daemon.control = NULL;
    uv_run(&house.loop, UV_RUN_NOWAIT);
    CHECK(stat(house.config.socket, &about) != 0);

    const int stale = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "%.107s", house.config.socket);
    assert_int_equal(bind(stale, (const struct sockaddr *)&at, sizeof at), 0);
    close(stale);
    house_open_control(&house);
    house_close(&house);
}

static void a_file_in_the_place_of_the_socket_is_left_alone(void **state)
{
    struct house house;
    dp_control *control = NULL;
    dp_why why = {""};
    struct stat about;
    char path[DP_CONFIG_PATH_MAX];
    (void)state;
    house_open(&house);
    FILE *file = fopen(house.config.socket, "w");
    assert_non_null(file);
    fclose(file);
    CHECK_STATUS(dp_control_open(&control, &house.daemon, house.config.socket, &why), DP_IO);
    assert_non_null(strstr(why.text, house.config.socket));
    CHECK(stat(house.config.socket, &about) == 0 && S_ISREG(about.st_mode));
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    CHECK_STATUS(dp_control_open(&control, &house.daemon, path, &why), DP_BADARG);
    snprintf(path, sizeof path, "%s/no/such/folder/sock", house.shelf.dir.path);
    CHECK_STATUS(dp_control_open(&control, &house.daemon, path, &why), DP_IO);
    house_close(&house);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_idle_daemon_answers_hello_and_status),
        cmocka_unit_test(methods_of_a_run_say_that_there_is_none),
        cmocka_unit_test(an_unknown_method_is_an_error_and_not_the_end),
        cmocka_unit_test(create_and_join_refuse_what_is_no_manifest_and_no_token),
        cmocka_unit_test(half_a_frame_waits_for_the_other_half),
        cmocka_unit_test(many_requests_in_one_piece_are_answered_in_order),
        cmocka_unit_test(garbage_and_oversize_frames_cut_the_client_alone),
        cmocka_unit_test(damaged_requests_never_crash),
        cmocka_unit_test(clients_beyond_the_limit_are_turned_away_and_room_comes_back),
        cmocka_unit_test(a_client_that_came_without_memory_does_not_end_the_listening),
        cmocka_unit_test(another_user_looks_and_gives_no_orders),
        cmocka_unit_test(those_who_look_leave_room_for_the_owner),
        cmocka_unit_test(a_folder_that_is_open_to_a_group_opens_the_socket_to_it),
        cmocka_unit_test(followers_hear_events_as_they_come),
        cmocka_unit_test(a_client_that_asks_and_never_reads_is_cut),
        cmocka_unit_test(a_long_list_ends_with_its_count),
        cmocka_unit_test(an_answer_after_the_end_goes_nowhere),
        cmocka_unit_test(a_second_daemon_is_busy_and_a_stale_socket_is_replaced),
        cmocka_unit_test(a_file_in_the_place_of_the_socket_is_left_alone),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
