/* THREADS_TEST. The door for scripts, packet by packet, with others than honest ones. */
#include "tests/unit/compute/script_kit.h"

static int dial(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    memcpy(address.sun_path, path, strlen(path) + 1);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void tell(int fd, uint32_t kind, uint32_t number, int file)
{
    uint8_t room[8];
    dp_writer w = dp_writer_of(room, sizeof room);
    dp_view bytes;
    dp_write_u32(&w, kind);
    dp_write_u32(&w, number);
    CHECK_OK(dp_writer_finish(&w, &bytes));
    CHECK_OK(dp_script_send(fd, bytes, file));
}

static void tell_done(int fd, uint32_t what, uint64_t steps, uint64_t samples)
{
    uint8_t room[32];
    dp_writer w = dp_writer_of(room, sizeof room);
    dp_view bytes;
    dp_write_u32(&w, DP_SCRIPT_DONE);
    dp_write_u32(&w, what);
    dp_write_u64(&w, steps);
    dp_write_u64(&w, samples);
    dp_write_u64(&w, 0);
    CHECK_OK(dp_writer_finish(&w, &bytes));
    CHECK_OK(dp_script_send(fd, bytes, -1));
}

/* The first two numbers of the answer; the text of a refusal. *file: what came along. */
static uint32_t hear(int fd, uint32_t *number, char text[512], int *file)
{
    uint8_t room[1024] = {0};
    size_t size = 0;
    dp_script_files files;
    CHECK_OK(dp_script_receive(fd, room, sizeof room - 1, &size, &files));
    const int came = files.n > 0 ? files.fds[0] : -1;
    CHECK(size >= 8);
    dp_reader r = dp_reader_of(dp_view_of(room, size));
    const uint32_t kind = dp_read_u32(&r);
    *number = dp_read_u32(&r);
    snprintf(text, 512, "%.500s", kind == DP_SCRIPT_REFUSED ? (char *)room + 8 : "");
    if (came >= 0 && file == NULL) {
        close(came);
    } else if (file != NULL) {
        *file = came;
    }
    return kind;
}

static void refused(int fd, uint32_t code, const char *words)
{
    uint32_t got;
    char text[512];
    CHECK(hear(fd, &got, text, NULL) == DP_SCRIPT_REFUSED);
    if (got != code || strstr(text, words) == NULL) {
        fail_msg("refused with %u: %s", got, text);
    }
    uint8_t byte;
    CHECK(recv(fd, &byte, 1, 0) <= 0); /* and closed */
    close(fd);
}

static void told(int fd, uint32_t what)
{
    uint32_t got;
    char text[512];
    const uint32_t kind = hear(fd, &got, text, NULL);
    if (kind != DP_SCRIPT_DO || got != what) {
        fail_msg("told %u %u %s instead of %u", kind, got, text, what);
    }
}

static int table_of(const dp_tensor_row *rows, size_t n)
{
    dp_buf bytes;
    int fd;
    dp_buf_init(&bytes, 4096);
    CHECK_OK(dp_tensor_table_write(rows, n, &bytes, NULL));
    CHECK_OK(dp_memfd_make("table", dp_buf_view(&bytes), &fd));
    dp_buf_close(&bytes);
    return fd;
}

static void fill_rows(dp_tensor_row rows[3])
{
    rows[0] = (dp_tensor_row){
        .name = dp_view_text("a"), .type = DP_NUMBER_F32, .n_dims = 2, .shape = {2, 3}};
    rows[1] = (dp_tensor_row){.name = dp_view_text("b"), .type = DP_NUMBER_F32};
    rows[2] = (dp_tensor_row){
        .name = dp_view_text("c"), .type = DP_NUMBER_BF16, .n_dims = 1, .shape = {500}};
}

/* Connects with a table, and greets. */
static int greeted(const dp_tensor_row *rows, size_t n)
{
    const int fd = dial();
    const int table = table_of(rows, n);
    tell(fd, DP_SCRIPT_HELLO, DP_SCRIPT_VERSION, table);
    close(table);
    return fd;
}

/* A script that has the first weights; *memory: of the shared pages. */
static int welcomed(float **memory)
{
    dp_tensor_row rows[3];
    uint32_t number;
    char text[512];
    int file = -1;
    fill_rows(rows);
    const int fd = greeted(rows, 3);
    CHECK(hear(fd, &number, text, &file) == DP_SCRIPT_WELCOME);
    uint8_t *const at =
        mmap(NULL, 4096 + N * sizeof(float), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(at != MAP_FAILED);
    CHECK(ftruncate(file, 1) != 0); /* A script cannot pull the pages away. */
    close(file);
    *memory = (float *)(at + 4096);
    tell(fd, DP_SCRIPT_LOOK, 0, -1);
    told(fd, DP_SCRIPT_ASSIGN);
    CHECK((*memory)[1] == 0.25F);
    tell_done(fd, DP_SCRIPT_ASSIGN, 0, 0);
    told(fd, DP_SCRIPT_GO);
    return fd;
}

/* The script is told to copy its weights for a publication. */
static void begin_copy(int fd)
{
    CHECK(ask_copy());
    tell(fd, DP_SCRIPT_LOOK, 0, -1);
    told(fd, DP_SCRIPT_COPY);
}

static void unmap(float *memory)
{
    munmap((uint8_t *)memory - 4096, 4096 + N * sizeof(float));
}

static void the_first_tensor_that_differs_is_named(void **state)
{
    (void)state;
    dp_tensor_row rows[4];
    fill_rows(rows);
    refused(greeted(rows, 2), DP_SCRIPT_OTHER_TENSORS, "the run has a tensor \"c\", the script");
    rows[1].name = dp_view_text("aa");
    refused(greeted(rows, 3), DP_SCRIPT_OTHER_TENSORS, "the script has a tensor \"aa\", the run");
    rows[1].name = dp_view_text("bb");
    refused(greeted(rows, 3), DP_SCRIPT_OTHER_TENSORS, "the run has a tensor \"b\", the script");
    fill_rows(rows);
    rows[3] = (dp_tensor_row){.name = dp_view_text("d"), .type = DP_NUMBER_F32};
    refused(greeted(rows, 4), DP_SCRIPT_OTHER_TENSORS, "the script has a tensor \"d\", the run");
    rows[0].shape[0] = 3;
    rows[0].shape[1] = 2;
    refused(greeted(rows, 3), DP_SCRIPT_OTHER_TENSORS,
            "\"a\" is (2 x 3) in the run and (3 x 2) in the script");
    CHECK(atomic_load(&n_present) == 0);
    dpnode_close(connected());
}

static void tables_that_are_none_are_refused(void **state)
{
    (void)state;
    const int pipes = dial();
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    tell(pipes, DP_SCRIPT_HELLO, DP_SCRIPT_VERSION, ends[0]); /* would block a reader for ever */
    refused(pipes, DP_SCRIPT_OTHER_TENSORS, "cannot be read");
    close(ends[0]);
    close(ends[1]);
    const int without = dial();
    tell(without, DP_SCRIPT_HELLO, DP_SCRIPT_VERSION, -1);
    refused(without, DP_SCRIPT_OTHER_TENSORS, "without the table");
    const int junk = dial();
    int fd;
    CHECK_OK(dp_memfd_make("junk", dp_view_text("DPX1 and no more of it than that"), &fd));
    tell(junk, DP_SCRIPT_HELLO, DP_SCRIPT_VERSION, fd);
    close(fd);
    refused(junk, DP_SCRIPT_OTHER_TENSORS, "");
    dpnode_close(connected());
}

static void another_version_is_refused_by_name(void **state)
{
    (void)state;
    const int fd = dial();
    tell(fd, DP_SCRIPT_HELLO, 2, -1);
    refused(fd, DP_SCRIPT_OTHER_VERSION, "version 2 of the protocol, this node version 1");
}

static void a_second_script_is_refused_and_the_first_goes_on(void **state)
{
    (void)state;
    dpnode *second = NULL;
    dpnode *const node = connected();
    assert_int_equal(dpnode_open(&second, path, tensors, 3), DPNODE_REFUSED);
    CHECK(strstr(dpnode_problem(NULL), "trains with this node already") != NULL);
    CHECK(ask_copy());
    step(node, 0, 1.0);
    CHECK(atomic_load(&n_copied) == 1);
    dpnode_close(node);
}

static void nobody_reaches_a_node_that_is_not_there(void **state)
{
    (void)state;
    dpnode *node = NULL;
    char nowhere[TEMPDIR_FILE_MAX];
    tempdir_file(&dir, "none", nowhere);
    assert_int_equal(dpnode_open(&node, nowhere, tensors, 3), DPNODE_NO_NODE);
    CHECK(strstr(dpnode_problem(NULL), "dpnode join TOKEN") != NULL);
    CHECK(node == NULL);
}

static void packets_out_of_turn_end_the_session(void **state)
{
    (void)state;
    static const struct {
        uint32_t kind;
        uint32_t number;
    } odd[] = {{1, 1}, {2, 1}, {6, 3}, {10, 1}, {7, 0}, {0, 0}};
    float *memory;
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        const int fd = welcomed(&memory);
        if (odd[i].kind == DP_SCRIPT_DONE) {
            tell_done(fd, odd[i].number, 1, 0);
        } else {
            tell(fd, odd[i].kind, odd[i].number, -1);
        }
        refused(fd, DP_SCRIPT_ODD, "");
        unmap(memory);
        wait_present(2 * (uint32_t)i + 2);
    }
    const int silent = dial();
    tell(silent, DP_SCRIPT_LOOK, 0, -1); /* before HELLO */
    refused(silent, DP_SCRIPT_ODD, "");
}

static void totals_that_fall_or_are_not_told_end_the_session(void **state)
{
    (void)state;
    float *memory;
    int fd = welcomed(&memory);
    begin_copy(fd);
    tell_done(fd, DP_SCRIPT_ADD, 5, 0); /* another thing than told */
    refused(fd, DP_SCRIPT_ODD, "");
    unmap(memory);
    wait_present(2);
    CHECK(atomic_load(&n_copied) == 1); /* The wait is over. */
    fd = welcomed(&memory);
    for (uint64_t steps = 5; steps >= 4; steps--) {
        CHECK(ask_copy());
        tell(fd, DP_SCRIPT_LOOK, 0, -1);
        told(fd, DP_SCRIPT_COPY);
        tell_done(fd, DP_SCRIPT_COPY, steps, 0);
        if (steps == 5) {
            told(fd, DP_SCRIPT_GO);
        }
    }
    refused(fd, DP_SCRIPT_ODD, "");
    unmap(memory);
    CHECK(progress_now().steps == 5);
}

static void weights_that_are_no_numbers_are_not_taken(void **state)
{
    (void)state;
    float *memory;
    int fd = welcomed(&memory);
    begin_copy(fd);
    memory[ELEMENTS - 1] = NAN;
    tell_done(fd, DP_SCRIPT_COPY, 1, 0);
    told(fd, DP_SCRIPT_GO); /* before anybody looks at the weights */
    refused(fd, DP_SCRIPT_NOT_FINITE, "NaN");
    CHECK(((dp_script_header *)((uint8_t *)memory - 4096))->word == DP_SCRIPT_WORD_OVER);
    unmap(memory);
    wait_present(2);
    CHECK(atomic_load(&n_copied) == 1 && weight_now(ELEMENTS - 1) == 126.5F);
    CHECK(progress_now().steps == 0);
    fd = welcomed(&memory); /* The next gets good ones. */
    CHECK(memory[ELEMENTS - 1] == 126.5F);
    close(fd);
    unmap(memory);
}

static void a_script_that_ends_hears_that_its_last_weights_are_refused(void **state)
{
    (void)state;
    uint64_t index;
    for (uint32_t steps = 1; steps <= 2; steps++) { /* The second is in no copy before the end. */
        dpnode *const node = connected();
        for (uint32_t i = 1; i <= steps; i++) {
            CHECK(dpnode_draw(node, &index, 1) == 1);
            a[0] = i == steps ? NAN : 1;
            step(node, 1, 1.0);
        }
        assert_int_equal(dpnode_close(node), DPNODE_REFUSED);
        CHECK(strstr(dpnode_problem(NULL), "NaN") != NULL);
        wait_present(2 * steps);
        CHECK(progress_now().steps == steps - 1);
    }
}

/* The script's steps are told for nothing: the daemon would refuse a mean loss of none. */
static void steps_before_another_state_are_not_told(void **state)
{
    (void)state;
    float *memory;
    const int fd = welcomed(&memory);
    dp_script_header *const header = (dp_script_header *)((uint8_t *)memory - 4096);
    dp_script_enter(door, true);
    CHECK_OK(dp_trainer_load(trainer, 0, dp_buf_view(&run.init)));
    atomic_store(&header->steps, 5);
    dp_script_leave(door, DP_SCRIPT_SET);
    train(1, 500);
    tell(fd, DP_SCRIPT_LOOK, 0, -1);
    told(fd, DP_SCRIPT_ASSIGN);
    tell_done(fd, DP_SCRIPT_ASSIGN, 5, 0);
    told(fd, DP_SCRIPT_GO);
    tell(fd, DP_SCRIPT_LOOK, 0, -1); /* Its answer comes after a turn of the door. */
    told(fd, DP_SCRIPT_GO);
    uint32_t drawn;
    char text[512];
    tell(fd, DP_SCRIPT_DRAW, 1, -1);
    CHECK(hear(fd, &drawn, text, NULL) == DP_SCRIPT_DRAWN && drawn == 1);
    atomic_store(&header->steps, 6);
    tell(fd, DP_SCRIPT_LOOK, 0, -1);
    told(fd, DP_SCRIPT_COPY);
    tell_done(fd, DP_SCRIPT_COPY, 6, 1);
    told(fd, DP_SCRIPT_GO);
    wait_stepped(1);
    CHECK(told_now().done.steps == 1);
    close(fd);
    unmap(memory);
}

static void padding_of_the_vector_stays_zero(void **state)
{
    (void)state;
    float *memory;
    const int fd = welcomed(&memory);
    begin_copy(fd);
    for (size_t i = ELEMENTS; i < N; i++) {
        memory[i] = 9;
    }
    tell_done(fd, DP_SCRIPT_COPY, 1, 0);
    told(fd, DP_SCRIPT_GO);
    settle();
    for (size_t i = ELEMENTS; i < N; i++) {
        CHECK(weight_now(i) == 0);
    }
    close(fd);
    unmap(memory);
}

static void samples_that_were_not_drawn_are_not_counted(void **state)
{
    (void)state;
    float *memory;
    const int fd = welcomed(&memory);
    begin_copy(fd);
    tell_done(fd, DP_SCRIPT_COPY, 1, 1);
    told(fd, DP_SCRIPT_GO);
    refused(fd, DP_SCRIPT_NOT_DRAWN, "DRAW");
    CHECK(progress_now().tokens == 0);
    unmap(memory);
}

static void a_script_that_keeps_the_buffer_is_cut_off_and_the_round_goes_on(void **state)
{
    (void)state;
    float *memory;
    dp_script_close(door);
    open_door(20000, UINT64_MAX);
    train(1, 0);
    const int fd = welcomed(&memory);
    begin_copy(fd);
    memory[0] = 77;
    move_weights(1); /* waits for its patience, then goes on */
    CHECK(!ask_copy());
    refused(fd, DP_SCRIPT_SLOW, "connect again");
    wait_present(2);
    CHECK(weight_now(0) == 1 && atomic_load(&n_copied) == 1);
    unmap(memory);
    dpnode_close(connected());
    CHECK(a[0] == 1);
}

static void pass_us(uint64_t us)
{
    const uint64_t until = dp_now_us() + us;
    while (dp_now_us() < until) {
        poll(NULL, 0, 1);
    }
}

/* Its answer lies in the socket while a command has the door's lock. */
static void a_script_that_was_quick_is_not_cut_off_after_a_long_command(void **state)
{
    (void)state;
    float *memory;
    dp_script_close(door);
    open_door(20000, UINT64_MAX);
    train(1, 0);
    const int fd = welcomed(&memory);
    move_weights(1);
    tell(fd, DP_SCRIPT_LOOK, 0, -1);
    told(fd, DP_SCRIPT_ADD);
    dp_script_enter(door, false);
    tell_done(fd, DP_SCRIPT_ADD, 0, 0);
    pass_us(60000); /* three times its patience */
    dp_script_leave(door, DP_SCRIPT_SAME);
    move_weights(1);
    told(fd, DP_SCRIPT_GO);
    close(fd);
    unmap(memory);
}

static uint32_t descriptors(void)
{
    uint32_t n = 0;
    DIR *const folder = opendir("/proc/self/fd");
    CHECK(folder != NULL);
    while (readdir(folder) !=
           NULL) { /* NOLINT(concurrency-mt-unsafe): one thread has this folder */
        n++;
    }
    closedir(folder);
    return n;
}

/* The caller's descriptor goes with an empty packet, four times over. */
static void send_empty(int fd, int file)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(4 * sizeof(int))];
    } control = {0};
    const int four[4] = {file, file, file, file};
    struct msghdr message = {.msg_control = &control, .msg_controllen = sizeof control};
    struct cmsghdr *const part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof four);
    memcpy(CMSG_DATA(part), four, sizeof four);
    CHECK(sendmsg(fd, &message, 0) == 0);
}

static void descriptors_that_nobody_asked_for_are_closed(void **state)
{
    (void)state;
    const uint32_t before = descriptors();
    for (int i = 0; i < 10; i++) {
        const int fd = dial();
        uint8_t byte;
        send_empty(fd, 0);
        while (recv(fd, &byte, 1, 0) > 0) {
        }
        close(fd);
    }
    while (descriptors() > before) { /* The door closes them without its lock. */
        pass_us(100);
    }
}

/* A TCP connection that lingers for 30 s with unsent bytes. */
static int lingering(int *far)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    const struct linger stay = {.l_onoff = 1, .l_linger = 30};
    static const char junk[65536];
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    const int near = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(connect(near, (struct sockaddr *)&address, sizeof address), 0);
    *far = accept(listener, NULL, NULL);
    close(listener);
    while (send(near, junk, sizeof junk, MSG_DONTWAIT) > 0) {
    }
    assert_int_equal(setsockopt(near, SOL_SOCKET, SO_LINGER, &stay, sizeof stay), 0);
    return near;
}

static void a_descriptor_whose_end_takes_long_holds_up_no_command(void **state)
{
    (void)state;
    int far;
    const int near = lingering(&far);
    const int fd = dial();
    tell(fd, DP_SCRIPT_HELLO, DP_SCRIPT_VERSION, near);
    close(near); /* The packet alone has it now. */
    refused(fd, DP_SCRIPT_OTHER_TENSORS, "cannot be read");
    const uint64_t begin = dp_now_us();
    move_weights(1);
    CHECK(dp_now_us() - begin < 10000000);
    close(far); /* Nobody has anything to linger for. */
}

static void a_child_of_a_script_does_not_keep_its_place(void **state)
{
    (void)state;
    int stays[2];
    assert_int_equal(pipe(stays), 0);
    fflush(NULL);
    const pid_t script = fork();
    if (script == 0) {
        dpnode *node = NULL;
        const dpnode_status status = dpnode_open(&node, path, tensors, 3);
        if (status == DPNODE_OK &&
            fork() == 0) { /* as a worker of a loader: it has the socket, too */
            char byte;
            close(stays[1]);
            _exit(read(stays[0], &byte, 1) < 0);
        }
        _exit(status != DPNODE_OK);
    }
    close(stays[0]);
    int status = 1;
    assert_int_equal(waitpid(script, &status, 0), script);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    wait_present(2);
    dpnode_close(connected());
    close(stays[1]);
}

static void scripts_that_come_and_go_in_a_loop_wait(void **state)
{
    (void)state;
    enum { TIMES = 19 }; /* sixteen at once, and then one a second */
    const uint64_t begin = dp_now_us();
    for (uint32_t i = 0; i < TIMES; i++) {
        dpnode_close(connected());
        wait_present(2 * i + 2);
    }
    CHECK(dp_now_us() - begin >= 1500000);
}

static void a_script_that_dies_in_the_copy_has_given_nothing(void **state)
{
    (void)state;
    float *memory;
    const int fd = welcomed(&memory);
    begin_copy(fd);
    memory[0] = 77; /* half of it */
    close(fd);
    unmap(memory);
    wait_present(2);
    CHECK(atomic_load(&n_copied) == 1 && weight_now(0) == 0);
    move_weights(1); /* Nobody holds the buffer. */
    dpnode_close(connected());
    CHECK(a[0] == 1);
}

/* The socket's mode keeps others out already; a folder that is open to all does not help them. */
static void another_user_is_refused_by_name(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        skip(); /* Only root becomes somebody else. */
    }
    assert_int_equal(chmod(dir.path, 0755), 0);
    assert_int_equal(chmod(path, 0666), 0);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        dpnode *node = NULL;
        const bool other = setuid(65534) == 0;
        const dpnode_status status = dpnode_open(&node, path, tensors, 3);
        const char *const words = dpnode_problem(NULL);
        _exit(other && status == DPNODE_REFUSED && strstr(words, "user 65534") != NULL ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(atomic_load(&n_present) == 0);
}

static void a_connection_that_never_greets_does_not_keep_others_out(void **state)
{
    (void)state;
    dpnode *node = NULL;
    const int silent = dial();
    uint8_t byte;
    CHECK(recv(silent, &byte, 1, 0) <= 0); /* until it is dropped */
    assert_int_equal(dpnode_open(&node, path, tensors, 3), DPNODE_OK);
    dpnode_close(node);
    close(silent);
}

static void names_that_the_library_cannot_send_are_refused_by_it(void **state)
{
    (void)state;
    dpnode *node = NULL;
    char name[300];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    const dpnode_tensor bad[] = {{name, a, 1, {6}}, {"a", NULL, 1, {6}}, {"a", a, 9, {6}}};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(dpnode_open(&node, path, &bad[i], 1), DPNODE_BAD_MODEL);
    }
    assert_int_equal(dpnode_open(&node, path, tensors, 0), DPNODE_BAD_MODEL);
    const dpnode_tensor twice[] = {{"a", a, 1, {6}}, {"a", a, 1, {6}}};
    assert_int_equal(dpnode_open(&node, path, twice, 2), DPNODE_REFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_OF(the_first_tensor_that_differs_is_named),
        TEST_OF(tables_that_are_none_are_refused),
        TEST_OF(another_version_is_refused_by_name),
        TEST_OF(a_second_script_is_refused_and_the_first_goes_on),
        TEST_OF(nobody_reaches_a_node_that_is_not_there),
        TEST_OF(packets_out_of_turn_end_the_session),
        TEST_OF(totals_that_fall_or_are_not_told_end_the_session),
        TEST_OF(weights_that_are_no_numbers_are_not_taken),
        TEST_OF(a_script_that_ends_hears_that_its_last_weights_are_refused),
        TEST_OF(steps_before_another_state_are_not_told),
        TEST_OF(padding_of_the_vector_stays_zero),
        TEST_OF(samples_that_were_not_drawn_are_not_counted),
        TEST_OF(a_script_that_keeps_the_buffer_is_cut_off_and_the_round_goes_on),
        TEST_OF(a_script_that_was_quick_is_not_cut_off_after_a_long_command),
        TEST_OF(descriptors_that_nobody_asked_for_are_closed),
        TEST_OF(a_descriptor_whose_end_takes_long_holds_up_no_command),
        TEST_OF(a_child_of_a_script_does_not_keep_its_place),
        TEST_OF(scripts_that_come_and_go_in_a_loop_wait),
        TEST_OF(a_script_that_dies_in_the_copy_has_given_nothing),
        TEST_OF(another_user_is_refused_by_name),
        TEST_OF(a_connection_that_never_greets_does_not_keep_others_out),
        TEST_OF(names_that_the_library_cannot_send_are_refused_by_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
