/* Runs a verb like main.c, with a mock of the daemon: records its requests, gives its answers, and
 * captures the output of the verb. Implements all of cli/client.h, so there is no socket. For verbs
 * that ask a daemon; test_client.c tests the bytes on the socket. */
#ifndef DP_TESTS_UNIT_CLI_VERB_KIT_H
#define DP_TESTS_UNIT_CLI_VERB_KIT_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/json.h"
#include "tests/lib/check.h"

enum { VERB_CALLS_MAX = 16, VERB_TEXT_MAX = 64 * 1024 };

static struct {
    uint32_t n_calls;
    struct {
        char method[DP_CONTROL_METHOD_MAX + 1];
        json_t *params;
    } calls[VERB_CALLS_MAX];
    uint32_t n_answers; /* that are still to come, in order */
    struct {
        json_t *result;
        json_t *notices; /* before it; may be NULL */
        dp_control_error error;
    } answers[VERB_CALLS_MAX];
    bool is_down; /* no daemon is running */
    char out[VERB_TEXT_MAX];
    char err[VERB_TEXT_MAX];
    const char *in; /* the input of the user; NULL: none */
} verb_kit;

/* ---- cli/client.h */

dp_status dp_client_open(dp_client *client, const char *path, dp_control_error *error)
{
    (void)path;
    *client = (dp_client){.fd = -1};
    dp_buf_init(&client->in, DP_CONTROL_FRAME_MAX);
    dp_buf_init(&client->out, DP_CONTROL_FRAME_MAX);
    if (!verb_kit.is_down) {
        return DP_OK;
    }
    dp_error_set(error, DP_EXIT_UNAVAILABLE, "E0101", "dpnode up", "no daemon is running", "");
    return DP_CLOSED;
}

dp_status dp_client_open_within(dp_client *client, const char *path, uint32_t most_ms,
                                dp_control_error *error)
{
    (void)most_ms;
    return dp_client_open(client, path, error);
}

void dp_client_close(dp_client *client)
{
    dp_buf_close(&client->in);
    dp_buf_close(&client->out);
    *client = (dp_client){.fd = -1};
}

dp_packer dp_client_begin(dp_client *client, const char *method)
{
    client->id++;
    dp_buf_clear(&client->out);
    return dp_control_begin(&client->out, DP_CONTROL_REQUEST, client->id, method, &client->start);
}

static inline void verb_remember(const dp_client *client)
{
    dp_control_frame frame;
    CHECK_OK(dp_control_frame_open(&frame, dp_buf_view(&client->out)));
    CHECK(frame.kind == DP_CONTROL_REQUEST && verb_kit.n_calls < VERB_CALLS_MAX);
    snprintf(verb_kit.calls[verb_kit.n_calls].method, sizeof verb_kit.calls[0].method, "%s",
             frame.method);
    verb_kit.calls[verb_kit.n_calls].params = dp_json_of(frame.body);
    verb_kit.n_calls++;
    dp_control_frame_close(&frame);
}

int dp_client_call(dp_client *client, const dp_packer *packer, dp_on_notice *on_notice,
                   void *context, json_t **result, dp_control_error *error)
{
    CHECK_OK(dp_control_end(&client->out, client->start, packer));
    verb_remember(client);
    CHECK(verb_kit.n_answers > 0); /* Otherwise the test did not expect this request. */
    json_t *const notices = verb_kit.answers[0].notices;
    json_t *const answer = verb_kit.answers[0].result;
    *error = verb_kit.answers[0].error;
    verb_kit.n_answers--;
    memmove(&verb_kit.answers[0], &verb_kit.answers[1],
            verb_kit.n_answers * sizeof verb_kit.answers[0]);
    int status = answer != NULL ? 0 : error->exit;
    size_t index = 0;
    const json_t *notice = NULL;
    json_array_foreach(notices, index, notice)
    {
        const int ends = on_notice != NULL ? on_notice(context, notice) : 0;
        if (ends != 0) {
            status = ends;
            break;
        }
    }
    json_decref(notices);
    if (status == 0) {
        *result = answer;
    } else {
        json_decref(answer);
    }
    return status;
}

int dp_client_ask(const dp_cmd *cmd, const char *method, json_t **result, dp_control_error *error)
{
    dp_client client;
    if (dp_client_open(&client, cmd->socket, error) != DP_OK) {
        dp_client_close(&client);
        return error->exit;
    }
    dp_packer packer = dp_client_begin(&client, method);
    dp_pack_map(&packer, 0);
    const int status = dp_client_call(&client, &packer, NULL, NULL, result, error);
    dp_client_close(&client);
    return status;
}

/* ---- The daemon's answers. Each is given once, in order. */

/* Text of JSON with ' for ". */
static inline json_t *verb_json(const char *text)
{
    char *room = strdup(text);
    json_error_t error;
    CHECK(room != NULL);
    for (char *at = room; *at != '\0'; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    json_t *value = json_loads(room, JSON_DECODE_ANY, &error);
    if (value == NULL) {
        print_error("%s: %s\n", error.text, room);
    }
    free(room);
    CHECK(value != NULL);
    return value;
}

/* notices: an array, or NULL. */
static inline void verb_answer_after(const char *notices, const char *result)
{
    CHECK(verb_kit.n_answers < VERB_CALLS_MAX);
    verb_kit.answers[verb_kit.n_answers].notices = notices != NULL ? verb_json(notices) : NULL;
    verb_kit.answers[verb_kit.n_answers].error = (dp_control_error){.exit = 0};
    verb_kit.answers[verb_kit.n_answers++].result = verb_json(result);
}

static inline void verb_answer(const char *result)
{
    verb_answer_after(NULL, result);
}

static inline void verb_refuse(int exit, const char *code, const char *what)
{
    CHECK(verb_kit.n_answers < VERB_CALLS_MAX);
    verb_kit.answers[verb_kit.n_answers].notices = NULL;
    verb_kit.answers[verb_kit.n_answers].result = NULL;
    dp_error_set(&verb_kit.answers[verb_kit.n_answers++].error, exit, code, "the fix", what,
                 "the cause");
}

/* After these notices the daemon is away, without a reply. */
static inline void verb_cut_after(const char *notices)
{
    verb_refuse(DP_EXIT_UNAVAILABLE, "E0103", "the daemon gave no answer");
    verb_kit.answers[verb_kit.n_answers - 1].notices = verb_json(notices);
}

/* ---- Running it. */

/* The next call is the first again. */
static inline void verb_forget_calls(void)
{
    for (uint32_t i = 0; i < verb_kit.n_calls; i++) {
        json_decref(verb_kit.calls[i].params);
    }
    verb_kit.n_calls = 0;
}

static inline void verb_reset(void)
{
    verb_forget_calls();
    for (uint32_t i = 0; i < verb_kit.n_answers; i++) {
        json_decref(verb_kit.answers[i].notices);
        json_decref(verb_kit.answers[i].result);
    }
    memset(&verb_kit, 0, sizeof verb_kit);
}

/* A setup of cmocka. */
static inline int verb_setup(void **state)
{
    (void)state;
    verb_reset();
    return 0;
}

static inline int verb_swap(int fd, FILE *with)
{
    const int before = dup(fd);
    CHECK(before >= 0 && dup2(fileno(with), fd) >= 0);
    return before;
}

static inline void verb_restore(int fd, int before)
{
    CHECK(dup2(before, fd) >= 0);
    close(before);
}

static inline void verb_read(FILE *file, char *text)
{
    rewind(file);
    text[fread(text, 1, VERB_TEXT_MAX - 1, file)] = '\0';
    fclose(file);
}

/* The words after the verb's name, ended by NULL. Returns the exit status; a command that does not
 * parse fails like in main.c. Drops the requests of earlier calls. */
static inline int verb_words(const dp_verb *verb, const char *const *words)
{
    static char room[DP_ARGUMENTS_MAX][512];
    char *argv[DP_ARGUMENTS_MAX];
    static dp_cmd cmd;
    dp_control_error error = {.exit = 0};
    int argc = 0;
    for (; words[argc] != NULL; argc++) {
        snprintf(room[argc], sizeof room[argc], "%s", words[argc]);
        argv[argc] = room[argc];
    }
    verb_forget_calls();
    cmd = (dp_cmd){.n_args = 0};
    FILE *const in = tmpfile();
    FILE *const out = tmpfile();
    FILE *const err = tmpfile();
    CHECK(in != NULL && out != NULL && err != NULL);
    fputs(verb_kit.in != NULL ? verb_kit.in : "", in);
    rewind(in);
    fflush(stdout);
    fflush(stderr);
    const int in_before = verb_swap(STDIN_FILENO, in);
    const int out_before = verb_swap(STDOUT_FILENO, out);
    const int err_before = verb_swap(STDERR_FILENO, err);
    rewind(stdin);
    const int status = dp_cmd_parse(&cmd, verb, argc, argv, &error) == DP_OK
                           ? verb->run(&cmd)
                           : dp_cmd_fail(&cmd, &error);
    fflush(stdout);
    fflush(stderr);
    verb_restore(STDIN_FILENO, in_before);
    verb_restore(STDOUT_FILENO, out_before);
    verb_restore(STDERR_FILENO, err_before);
    fclose(in);
    verb_read(out, verb_kit.out);
    verb_read(err, verb_kit.err);
    return status;
}

#define VERB(verb, ...) verb_words(&(verb), (const char *const[]){__VA_ARGS__, NULL})
#define VERB_ALONE(verb) verb_words(&(verb), (const char *const[]){NULL})

/* Was the daemon asked this, as its call-th call, with just these parameters? */
static inline bool verb_asked(uint32_t call, const char *method, const char *params)
{
    json_t *wanted = verb_json(params);
    const bool same = call < verb_kit.n_calls && strcmp(verb_kit.calls[call].method, method) == 0 &&
                      json_equal(verb_kit.calls[call].params, wanted);
    if (!same && call < verb_kit.n_calls) {
        char *text = json_dumps(verb_kit.calls[call].params, 0);
        print_error("asked %s %s\n", verb_kit.calls[call].method, text != NULL ? text : "");
        free(text);
    }
    json_decref(wanted);
    return same;
}

static inline bool verb_said(const char *text)
{
    if (strstr(verb_kit.out, text) == NULL) {
        print_error("it said: %s\n", verb_kit.out);
        return false;
    }
    return true;
}

/* On stderr, as errors are. */
static inline bool verb_warned(const char *text)
{
    if (strstr(verb_kit.err, text) == NULL) {
        print_error("it warned: %s\n", verb_kit.err);
        return false;
    }
    return true;
}

#define VERB_TEST(test) cmocka_unit_test_setup(test, verb_setup)

#endif
