#include "cli/web/texts.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/json.h"

enum { CANNOT_RUN = 127, PIECE = 4096 };

dp_status dp_texts_open(dp_texts *texts, const char *socket, const char *prompt)
{
    *texts =
        (dp_texts){.prompt = prompt, .socket = socket, .list = json_array(), .round = -1, .fd = -1};
    dp_buf_init(&texts->answer, DP_TEXTS_BYTES_MAX);
    dp_path_program("dpnode", texts->program);
    return texts->list != NULL ? DP_OK : DP_NOMEM;
}

/* Waits for the process, whose end of the pipe is closed or which was killed. */
static void reap(dp_texts *texts)
{
    while (waitpid(texts->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    close(texts->fd);
    texts->pid = 0;
    texts->fd = -1;
}

void dp_texts_close(dp_texts *texts)
{
    if (texts->pid > 0) {
        kill(texts->pid, SIGKILL);
        reap(texts);
    }
    dp_buf_close(&texts->answer);
    json_decref(texts->list);
    texts->list = NULL;
}

/* Runs in the child, and ends it. */
static void become_sample(const dp_texts *texts, int out, pid_t parent)
{
    char tokens[16];
    char program[] = "dpnode";
    char verb[] = "sample";
    char json[] = "--json";
    char seed[] = "--seed=1";
    char socket[DP_CLI_PATH_MAX + 16];
    snprintf(tokens, sizeof tokens, "-n%d", DP_TEXTS_TOKENS);
    char option[] = "--prompt";
    char *const prompt = strdup(texts->prompt);
    snprintf(socket, sizeof socket, "--socket=%s", texts->socket);
    char *const arguments[] = {program, verb, json, seed, tokens, option, prompt, socket, NULL};
    const int none = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (prompt == NULL || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent ||
        none < 0 || dup2(none, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
        dup2(none, STDERR_FILENO) < 0) {
        _exit(CANNOT_RUN);
    }
    execvp(texts->program, arguments);
    _exit(CANNOT_RUN);
}

static void ask(dp_texts *texts, uint64_t now_ms)
{
    int out[2];
    if (pipe2(out, O_CLOEXEC) != 0) {
        return;
    }
    fflush(NULL);
    const pid_t parent = getpid();
    texts->pid = fork();
    if (texts->pid == 0) {
        become_sample(texts, out[1], parent);
    }
    close(out[1]);
    if (texts->pid < 0 || fcntl(out[0], F_SETFL, O_NONBLOCK) != 0) {
        texts->pid = texts->pid < 0 ? 0 : texts->pid;
    }
    texts->fd = out[0];
    texts->begun_ms = now_ms;
    dp_buf_clear(&texts->answer);
    if (texts->pid == 0) {
        close(out[0]);
        texts->fd = -1;
    }
}

/* True once the process has written all, or more than it may. */
static bool read_answer(dp_texts *texts)
{
    uint8_t piece[PIECE];
    for (;;) {
        const ssize_t n = read(texts->fd, piece, sizeof piece);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return errno != EAGAIN;
        }
        if (n == 0 || dp_buf_append(&texts->answer, dp_view_of(piece, (size_t)n)) != DP_OK) {
            return true;
        }
    }
}

/* An error of dpnode has no text. */
static const json_t *take_answer(dp_texts *texts, uint64_t time_ms)
{
    json_t *const answer =
        json_loadb((const char *)texts->answer.data, texts->answer.size, 0, NULL);
    const json_t *const text = json_object_get(answer, "text");
    json_t *item = NULL;
    if (json_is_string(text)) {
        item = json_pack("{s:I,s:I,s:s}", "round", (json_int_t)dp_json_int(answer, "round", 0),
                         "time_ms", (json_int_t)time_ms, "text", json_string_value(text));
    }
    json_decref(answer);
    if (item == NULL || json_array_append_new(texts->list, item) != 0) {
        return NULL;
    }
    if (json_array_size(texts->list) > DP_TEXTS_KEPT) {
        json_array_remove(texts->list, 0);
    }
    return json_array_get(texts->list, json_array_size(texts->list) - 1);
}

const json_t *dp_texts_look(dp_texts *texts, const json_t *status, uint64_t now_ms,
                            uint64_t time_ms)
{
    if (texts->pid > 0) {
        const bool late = now_ms - texts->begun_ms > DP_TEXTS_MOST_MS;
        if (!read_answer(texts) && !late) {
            return NULL;
        }
        kill(texts->pid, SIGKILL); /* It has ended, is late, or says too much. */
        reap(texts);
        texts->next_ms = now_ms + DP_TEXTS_SHARE * (now_ms - texts->begun_ms);
        return take_answer(texts, time_ms);
    }
    const long long round = dp_json_int(json_object_get(status, "run"), "checkpoint_round", -1);
    if (round >= 0 && round != texts->round && now_ms >= texts->next_ms) {
        texts->round = round;
        ask(texts, now_ms);
    }
    return NULL;
}
