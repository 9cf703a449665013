/* THREADS_TEST: lines of the test's threads pass through the ring to the writer's. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/host/log_sink.h"
#include "tests/lib/check.h"
#include "tests/lib/tempdir.h"

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

enum { TEXT_MAX = 1 << 20, TRIES = 2000 };

typedef struct bench {
    dp_log_sink *sink;
    tempdir dir;
    char path[TEMPDIR_FILE_MAX];
} bench;

static int setup(void **state)
{
    bench *self = calloc(1, sizeof *self);
    dp_log_init(NULL, DP_LOG_INFO, "test");
    tempdir_open(&self->dir);
    tempdir_file(&self->dir, "log", self->path);
    *state = self;
    return 0;
}

static int teardown(void **state)
{
    bench *self = *state;
    dp_log_sink_close(self->sink);
    tempdir_close(&self->dir);
    free(self);
    return 0;
}

static void open_sink(bench *self, uint64_t file_bytes)
{
    const dp_log_sink_config config = {.path = self->path, .fd = -1, .file_bytes = file_bytes};
    CHECK_OK(dp_log_sink_open(&self->sink, &config, NULL));
}

static void close_sink(bench *self)
{
    dp_log_sink_close(self->sink);
    self->sink = NULL;
}

/* Content of the log, or of its older part n. */
static const char *content(const bench *self, unsigned part)
{
    static char text[TEXT_MAX];
    char path[TEMPDIR_FILE_MAX + 8];
    snprintf(path, sizeof path, part > 0 ? "%s.%u" : "%s", self->path, part);
    FILE *file = fopen(path, "re");
    const size_t size = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
    text[size] = '\0';
    if (file != NULL) {
        fclose(file);
    }
    return text;
}

static unsigned count_lines(const char *text)
{
    unsigned count = 0;
    for (; *text != '\0'; text++) {
        count += *text == '\n';
    }
    return count;
}

/* Wait until the writer, a thread of its own, has come to a word. */
static bool comes(const bench *self, const char *word)
{
    for (int i = 0; i < TRIES; i++) {
        if (strstr(content(self, 0), word) != NULL) {
            return true;
        }
        poll(NULL, 0, 5);
    }
    return false;
}

static void lines_reach_the_file_in_order_and_the_end_waits_for_them(void **state)
{
    bench *self = *state;
    open_sink(self, 0);
    for (unsigned i = 0; i < 500; i++) {
        dp_log(DP_LOG_INFO, "line", "n=%u end=1", i);
    }
    close_sink(self);
    const char *at = content(self, 0);
    CHECK(count_lines(at) == 500);
    for (unsigned i = 0; i < 500; i++) {
        char word[32];
        snprintf(word, sizeof word, "n=%u end=1", i);
        at = strstr(at, word);
        CHECK(at != NULL);
    }
}

/* Standard error of a daemon that dpnode up has started: children and libraries write to it. */
static void a_descriptor_that_leads_to_the_file_follows_it(void **state)
{
    bench *self = *state;
    const int fd = open(self->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && dp_log_sink_may_follow(self->path, fd));
    CHECK(dprintf(fd, "before the log\n") > 0);
    const dp_log_sink_config config = {
        .path = self->path, .fd = fd, .fd_follows = true, .file_bytes = 2000};
    CHECK_OK(dp_log_sink_open(&self->sink, &config, NULL));
    for (unsigned i = 0; i < 200; i++) {
        dp_log(DP_LOG_INFO, "line", "n=%u", i);
    }
    CHECK(comes(self, "n=199"));
    CHECK(content(self, 4)[0] != '\0' && content(self, 5)[0] == '\0');
    CHECK(dprintf(fd, "of a child\n") > 0);
    CHECK(strstr(content(self, 0), "of a child") != NULL);
    char moved[TEMPDIR_FILE_MAX + 8];
    snprintf(moved, sizeof moved, "%s.9", self->path);
    CHECK(rename(self->path, moved) == 0);
    CHECK(!dp_log_sink_may_follow(self->path, fd)); /* It does again after the next line. */
    dp_log_sink_reopen(self->sink);
    dp_log(DP_LOG_INFO, "line", "anew=1");
    CHECK(comes(self, "anew=1") && dp_log_sink_may_follow(self->path, fd));
    close_sink(self);
    close(fd);
}

static void what_is_no_file_of_this_name_is_not_followed(void **state)
{
    bench *self = *state;
    const int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    CHECK(!dp_log_sink_may_follow("/dev/null", fd) && !dp_log_sink_may_follow(self->path, fd));
    close(fd);
}

static void *log_many(void *who)
{
    for (unsigned i = 0; i < 200; i++) {
        dp_log(DP_LOG_INFO, "many", "who=%s n=%u end=1", (const char *)who, i);
    }
    return NULL;
}

static void lines_of_several_threads_stay_whole(void **state)
{
    static char names[4][2] = {"a", "b", "c", "d"};
    bench *self = *state;
    pthread_t threads[4];
    open_sink(self, 0);
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_create(&threads[i], NULL, log_many, names[i]) == 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    const uint64_t dropped = dp_log_sink_dropped(self->sink);
    close_sink(self);
    unsigned whole = 0;
    const char *text = content(self, 0);
    for (const char *at = text; (at = strstr(at, " end=1\n")) != NULL; at++) {
        whole++;
    }
    CHECK(dropped == 0);
    CHECK(whole == 800 && count_lines(text) == 800);
}

static void a_reader_that_does_not_read_holds_up_nobody_and_lines_are_counted(void **state)
{
    bench *self = *state;
    int ends[2];
    char text[1000];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    const dp_log_sink_config config = {.fd = ends[1]};
    CHECK_OK(dp_log_sink_open(&self->sink, &config, NULL));
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (unsigned i = 0; i < 1000; i++) { /* A million bytes: more than pipe and ring hold. */
        dp_log(DP_LOG_INFO, "flood", "text=%s", text);
    }
    CHECK(dp_log_sink_dropped(self->sink) > 300);
    close_sink(self); /* Returns, although the pipe is never read. */
    close(ends[0]);
    close(ends[1]);
}

static void a_full_disk_drops_lines_and_tells_how_many(void **state)
{
    bench *self = *state;
    struct rlimit before;
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
    const struct rlimit full = {.rlim_cur = 1000, .rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &full) == 0);
    open_sink(self, 0);
    for (unsigned i = 0; i < 100; i++) {
        dp_log(DP_LOG_INFO, "before", "n=%u end=1", i);
    }
    /* Until each of them is in the file or dropped: a line that still waits would be written once
     * there is room again. */
    for (int i = 0; i < TRIES; i++) {
        if (dp_log_sink_dropped(self->sink) + count_lines(content(self, 0)) == 100) {
            break;
        }
        poll(NULL, 0, 5);
    }
    const uint64_t dropped = dp_log_sink_dropped(self->sink);
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
    dp_log(DP_LOG_INFO, "after", "x=1");
    close_sink(self);
    const char *text = content(self, 0);
    char told[64];
    snprintf(told, sizeof told, "evt=log.dropped lines=%llu\n", (unsigned long long)dropped);
    CHECK(dropped > 80 && dropped < 100);
    CHECK(strstr(text, told) != NULL);
    CHECK(count_lines(text) == 100 - dropped + 2);
    for (const char *at = text; *at != '\0'; at = strchr(at, '\n') + 1) {
        CHECK(memcmp(at, "ts=", 3) == 0); /* No half line stays. */
    }
}

static void a_file_that_is_full_makes_room_and_five_are_kept(void **state)
{
    bench *self = *state;
    struct stat is;
    char path[TEMPDIR_FILE_MAX + 8];
    open_sink(self, 2000);
    for (unsigned i = 0; i < 300; i++) {
        dp_log(DP_LOG_INFO, "line", "n=%u end=1", i);
    }
    close_sink(self);
    for (unsigned part = 0; part < DP_LOG_FILES_MAX; part++) {
        const char *text = content(self, part);
        CHECK(text[0] != '\0' && strlen(text) < 2000 + DP_LOG_LINE_MAX);
        CHECK(part > 0 || strstr(text, "n=299 end=1\n") != NULL);
    }
    snprintf(path, sizeof path, "%s.%d", self->path, DP_LOG_FILES_MAX);
    CHECK(stat(path, &is) != 0);
}

static void a_log_that_was_moved_is_opened_again_when_told_to(void **state)
{
    bench *self = *state;
    char moved[TEMPDIR_FILE_MAX + 8];
    open_sink(self, 0);
    dp_log(DP_LOG_INFO, "first", "x=1");
    CHECK(comes(self, "evt=first"));
    snprintf(moved, sizeof moved, "%s.1", self->path);
    CHECK(rename(self->path, moved) == 0);
    dp_log_sink_reopen(self->sink);
    dp_log(DP_LOG_INFO, "second", "x=1");
    CHECK(comes(self, "evt=second"));
    CHECK(strstr(content(self, 0), "evt=first") == NULL);
    CHECK(strstr(content(self, 1), "evt=first") != NULL);
}

static void a_deleted_log_is_noticed_by_itself(void **state)
{
    bench *self = *state;
    open_sink(self, 0);
    dp_log(DP_LOG_INFO, "first", "x=1");
    CHECK(comes(self, "evt=first"));
    CHECK(unlink(self->path) == 0);
    bool back = false;
    for (int i = 0; i < TRIES && !back; i++) { /* Within DP_LOG_LOOK_MS of lines. */
        dp_log(DP_LOG_INFO, "again", "x=1");
        poll(NULL, 0, 5);
        back = strstr(content(self, 0), "evt=again") != NULL;
    }
    CHECK(back);
}

static void a_log_that_cannot_be_opened_is_told(void **state)
{
    bench *self = *state;
    dp_why why = {""};
    char path[TEMPDIR_FILE_MAX + 8];
    snprintf(path, sizeof path, "%s/no/log", self->dir.path);
    const dp_log_sink_config config = {.path = path, .fd = -1};
    CHECK(dp_log_sink_open(&self->sink, &config, &why) == DP_IO);
    CHECK(strstr(why.text, "No such file") != NULL && self->sink == NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(a_descriptor_that_leads_to_the_file_follows_it),
        EACH(what_is_no_file_of_this_name_is_not_followed),
        EACH(lines_reach_the_file_in_order_and_the_end_waits_for_them),
        EACH(lines_of_several_threads_stay_whole),
        EACH(a_reader_that_does_not_read_holds_up_nobody_and_lines_are_counted),
        EACH(a_full_disk_drops_lines_and_tells_how_many),
        EACH(a_file_that_is_full_makes_room_and_five_are_kept),
        EACH(a_log_that_was_moved_is_opened_again_when_told_to),
        EACH(a_deleted_log_is_noticed_by_itself),
        EACH(a_log_that_cannot_be_opened_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
