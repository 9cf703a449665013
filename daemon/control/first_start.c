#include "daemon/control/first_start.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "daemon/control/control.h"
#include "daemon/host/tool.h"
#include "daemon/peer/driver.h"
#include "store/dir.h"

enum {
    INVITE_LOOK_MS = 3600 * 1000,
    INVITE_ALONE_MS = 10 * 1000 /* while the invite names this node alone */
};
#define INVITE_HALF_MS (DP_FIRST_START_INVITE_DAYS * 24ULL * 3600 * 1000 / 2)
#define DEMO "demo:"
#define LEFT_FILE "token.left"

struct dp_first_start {
    dp_daemon *daemon;
    uv_timer_t timer;
    uint64_t again_ms;
    dp_control_error problem; /* code "": none */
    dp_hash left;             /* of the token that its owner has left; zero: none */
    bool entered;             /* a run; the token is not used any more */
    bool invited;             /* has written an invite, or tried to */
    bool tool_runs;           /* it answers also after close */
    bool timer_closed;
};

/* One more than a token may have, so that a longer file is not taken for a token. */
typedef struct token_text {
    size_t size;
    bool others_read; /* other users of this machine may */
    char bytes[DP_TOKEN_TEXT_MAX + 2];
} token_text;

static void look_later(dp_first_start *start, uint64_t wait_ms);

static uint64_t next_wait_ms(dp_first_start *start)
{
    start->again_ms = start->again_ms == 0 ? DP_FIRST_START_LOOK_MS : 2 * start->again_ms;
    if (start->again_ms > DP_FIRST_START_AGAIN_MS_MAX) {
        start->again_ms = DP_FIRST_START_AGAIN_MS_MAX;
    }
    return start->again_ms;
}

/* Logs a problem once, not at each try. */
static void set_problem(dp_first_start *start, dp_log_level level, const char *name,
                        const dp_control_error *problem)
{
    const bool told = strcmp(start->problem.code, problem->code) == 0 &&
                      strcmp(start->problem.why, problem->why) == 0;
    start->problem = *problem;
    if (!told) {
        dp_event_log_add(start->daemon->event_log, level, name, 0, NULL, "%s %s: %s; fix: %s",
                         problem->code, problem->what, problem->why, problem->fix);
    }
}

/* ---- the token ---- */

/* 0, or the error of reading it. The size is 0 while it is empty: it may just be being written. */
static int read_file(const char *path, token_text *out)
{
    struct stat about = {0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return errno;
    }
    const ssize_t size = read(fd, out->bytes, sizeof out->bytes);
    const int error = size < 0 ? errno : 0;
    out->others_read = fstat(fd, &about) == 0 && (about.st_mode & S_IROTH) != 0;
    close(fd);
    out->size = size > 0 ? (size_t)size : 0;
    return error;
}

/* From the environment, or from the file. 0, or the error of reading the file. */
static int read_token(const dp_config *config, token_text *out)
{
    int error = 0;
    if (config->token[0] != '\0') {
        out->size = strlen(config->token);
        memcpy(out->bytes, config->token, out->size);
    } else {
        error = config->token_file[0] != '\0' ? read_file(config->token_file, out) : ENOENT;
    }
    while (out->size > 0 && strchr(" \t\r\n", out->bytes[out->size - 1]) != NULL) {
        out->size--;
    }
    return error;
}

/* Never the token itself. */
static const char *name_of_token(const dp_config *config)
{
    return config->token[0] != '\0' ? "DPNODE_TOKEN" : config->token_file;
}

static void tell_others_read(const dp_first_start *start)
{
    const char *const path = start->daemon->config->token_file;
    dp_event_log_add(start->daemon->event_log, DP_LOG_WARN, "token.readable", 0, NULL,
                     "other users of this machine can read the token in %s and join by it; fix: "
                     "chmod o-r %s",
                     path, path);
}

/* ---- the token that was left */

static dp_hash hash_of(const token_text *token)
{
    return dp_hash_of("dpnode/token-left/1", dp_view_of(token->bytes, token->size));
}

static void keep_left(dp_first_start *start, const dp_hash *left)
{
    const dp_status status = dp_dir_write_secret(start->daemon->config->dir, LEFT_FILE,
                                                 dp_view_of(left->bytes, sizeof left->bytes));
    start->left = *left;
    if (status != DP_OK) {
        dp_event_log_add(start->daemon->event_log, DP_LOG_ERROR, "token.left", 0, NULL,
                         "%s cannot be written in %s: %s; after a restart this node joins again by "
                         "the token in %s; fix: remove that token",
                         LEFT_FILE, start->daemon->config->dir, dp_status_text(status),
                         name_of_token(start->daemon->config));
    }
}

static void read_left(dp_first_start *start)
{
    dp_buf bytes;
    dp_buf_init(&bytes, sizeof start->left.bytes);
    if (dp_dir_read_secret(start->daemon->config->dir, LEFT_FILE, &bytes, NULL) == DP_OK &&
        bytes.size == sizeof start->left.bytes) {
        memcpy(start->left.bytes, bytes.data, sizeof start->left.bytes);
    }
    dp_buf_close(&bytes);
}

static void forget_left(dp_first_start *start)
{
    char path[DP_CONFIG_PATH_MAX + sizeof LEFT_FILE];
    if (dp_hash_is_zero(&start->left)) {
        return;
    }
    snprintf(path, sizeof path, "%s/%s", start->daemon->config->dir, LEFT_FILE);
    start->left = (dp_hash){{0}};
    DP_IGNORE(unlink(path) != 0); /* Then only a restart brings that order back. */
}

static bool is_left(const dp_first_start *start, const token_text *token)
{
    const dp_hash hash = hash_of(token);
    return dp_hash_equal(&start->left, &hash);
}

static void tell_left(dp_first_start *start)
{
    dp_control_error problem = {.code = "E0218",
                                .what = "this node does not join by the token that it has"};
    snprintf(problem.why, sizeof problem.why,
             "its owner has told it to leave, and %.400s still has the token of then",
             name_of_token(start->daemon->config));
    snprintf(problem.fix, sizeof problem.fix,
             "dpnode join TOKEN   # or put another token in that place");
    set_problem(start, DP_LOG_INFO, "join.left", &problem);
    look_later(start, DP_FIRST_START_LOOK_MS);
}

static void join(dp_first_start *start, const token_text *token)
{
    if (token->others_read && start->again_ms == 0) {
        tell_others_read(start);
    }
    dp_event_log_add(start->daemon->event_log, DP_LOG_INFO, "join.file", 0, NULL,
                     "joining by the token in %s", name_of_token(start->daemon->config));
    dp_run_join_unasked(start->daemon, dp_view_of(token->bytes, token->size));
}

static void wait_for_token(dp_first_start *start, int error)
{
    const char *const path = start->daemon->config->token_file;
    dp_control_error problem = {.code = "E0215", .what = "this node waits for a token"};
    snprintf(problem.fix, sizeof problem.fix,
             "dpnode invite >FILE   # on a member; then copy FILE to that place");
    snprintf(problem.why, sizeof problem.why, "%.400s: %s", path,
             error == ENOENT ? "the file does not exist yet"
             : error == 0    ? "the file is empty"
                             : uv_strerror(-error));
    set_problem(start, error == ENOENT || error == 0 ? DP_LOG_INFO : DP_LOG_ERROR, "join.waits",
                &problem);
    look_later(start, DP_FIRST_START_LOOK_MS);
}

/* The node is in a run. A token that was not meant for this directory must not be missed. */
static void check_run(dp_first_start *start, const dp_invite *invite)
{
    const dp_run_identity *const facts = dp_driver_run_identity(start->daemon->driver);
    dp_control_error problem = {.code = "E0216", .what = "the token is not used"};
    if (memcmp(invite->run.bytes, facts->run.bytes, sizeof facts->run.bytes) == 0) {
        return;
    }
    snprintf(problem.why, sizeof problem.why,
             "%.200s is of the run %s, and this node is a member of another run, %s",
             name_of_token(start->daemon->config), invite->name, facts->name);
    snprintf(problem.fix, sizeof problem.fix,
             "dpnoded --dir DIR   # another directory or volume for a node of that run");
    set_problem(start, DP_LOG_WARN, "token.other", &problem);
}

/* ---- dpnode as a child ---- */

static void free_if_over(dp_first_start *start)
{
    if (start->timer_closed && !start->tool_runs) {
        dp_free(start);
    }
}

/* False: the daemon is ending, and start may be freed. */
static bool tool_has_ended(dp_first_start *start)
{
    const bool ending = start->daemon->ending || start->timer_closed;
    start->tool_runs = false;
    free_if_over(start);
    return !ending;
}

/* The text after a word of the error that dpnode prints, to the end of its line. */
static void copy_line(const char *output, const char *word, char *text, size_t size)
{
    const char *const found = strstr(output, word);
    const char *const from = found != NULL ? found + strlen(word) : "";
    snprintf(text, size, "%.*s", (int)strcspn(from, "\n"), from);
}

/* "error E0301: what\n  why: ...\n  fix: ..." */
static void read_problem(const char *output, dp_control_error *problem)
{
    char first[sizeof problem->what] = "";
    copy_line(output, "error ", first, sizeof first);
    const char *const colon = strstr(first, ": ");
    if (first[0] != 'E' || colon != first + 5) {
        snprintf(problem->code, sizeof problem->code, "E0315");
        snprintf(problem->what, sizeof problem->what, "no run could be created");
        snprintf(problem->why, sizeof problem->why, "%.400s", output);
        snprintf(problem->fix, sizeof problem->fix, "dpnode run create --help");
        return;
    }
    snprintf(problem->code, sizeof problem->code, "%.5s", first);
    snprintf(problem->what, sizeof problem->what, "%s", colon + 2);
    copy_line(output, "  why: ", problem->why, sizeof problem->why);
    copy_line(output, "  fix: ", problem->fix, sizeof problem->fix);
}

static void on_created(void *context, int exit, const char *output)
{
    dp_first_start *const start = context;
    dp_control_error problem = {.exit = exit};
    if (!tool_has_ended(start)) {
        return;
    }
    if (exit == 0) {
        look_later(start, 0);
        return;
    }
    read_problem(output, &problem);
    set_problem(start, DP_LOG_ERROR, "create.failed", &problem);
    look_later(start, next_wait_ms(start));
}

/* An invite, and not an error message of dpnode beside it. */
static bool is_invite(const char *text)
{
    static dp_invite invite;
    const bool is = dp_invite_parse(dp_view_text(text), &invite, NULL, NULL) == DP_OK;
    dp_invite_close(&invite);
    return is;
}

static void folder_of(const char *path, char folder[DP_CONFIG_PATH_MAX])
{
    const char *const slash = strrchr(path, '/');
    snprintf(folder, DP_CONFIG_PATH_MAX, "%.*s", (int)(slash != NULL ? slash - path : 1),
             slash == NULL   ? "."
             : slash == path ? "/"
                             : path);
}

static dp_status write_file(const char *path, const char *text)
{
    char folder[DP_CONFIG_PATH_MAX];
    const char *const slash = strrchr(path, '/');
    folder_of(path, folder);
    return dp_dir_write_secret(folder, slash != NULL ? slash + 1 : path, dp_view_text(text));
}

static void tell_no_invite(dp_first_start *start, const char *why)
{
    dp_control_error problem = {.code = "E0217", .what = "the invite cannot be written"};
    snprintf(problem.why, sizeof problem.why, "%.400s: %s", start->daemon->config->token_file, why);
    snprintf(problem.fix, sizeof problem.fix,
             "dpnoded --token-file PATH   # a new file in a folder that this user may write");
    set_problem(start, DP_LOG_ERROR, "invite.failed", &problem);
}

static void on_invited(void *context, int exit, const char *output)
{
    dp_first_start *const start = context;
    dp_control_error problem = {.exit = exit};
    if (!tool_has_ended(start)) {
        return;
    }
    const char *const path = start->daemon->config->token_file;
    if (exit != 0 || !is_invite(output)) {
        read_problem(output, &problem);
        set_problem(start, DP_LOG_ERROR, "invite.failed", &problem);
        look_later(start, next_wait_ms(start));
        return;
    }
    const dp_status status = write_file(path, output);
    if (status == DP_OK) {
        dp_event_log_add(start->daemon->event_log, DP_LOG_INFO, "invite.file", 0, NULL,
                         "an invite for any number of nodes, which vote, is in %s; it expires in "
                         "%d days and is replaced before",
                         path, DP_FIRST_START_INVITE_DAYS);
        start->problem.code[0] = '\0';
        start->again_ms = 0;
    } else {
        tell_no_invite(start, dp_status_text(status));
    }
    /* Each try takes one of the node's 512 invites. */
    look_later(start, start->invited ? INVITE_LOOK_MS : INVITE_ALONE_MS);
    start->invited = true;
}

static void run_dpnode(dp_first_start *start, const char *const *arguments, dp_tool_done *done)
{
    start->tool_runs = true;
    const dp_status status =
        dp_tool_run(start->daemon, start->daemon->config->cli, arguments, done, start);
    if (status != DP_OK) {
        done(start, -1, dp_status_text(status));
    }
}

/* ---- the founder ---- */

static void create(dp_first_start *start)
{
    const dp_config *const config = start->daemon->config;
    const bool demo = strncmp(config->create_from, DEMO, strlen(DEMO)) == 0;
    const char *const arguments[] = {"run",
                                     "create",
                                     demo ? "--demo" : config->create_from,
                                     demo ? config->create_from + strlen(DEMO) : "--socket",
                                     demo ? "--socket" : config->socket,
                                     demo ? config->socket : NULL,
                                     NULL};
    if (start->daemon->has_root || start->daemon->lost) {
        dp_control_error problem = {.code = "E0316", .what = "no second run is created"};
        snprintf(problem.why, sizeof problem.why,
                 "%.400s holds the root key of a run that it created, or a damaged store; it is "
                 "in no run now",
                 config->dir);
        snprintf(problem.fix, sizeof problem.fix,
                 "dpnoded --dir DIR   # an empty directory or volume for another run");
        set_problem(start, DP_LOG_ERROR, "create.failed", &problem);
        look_later(start, DP_FIRST_START_LOOK_MS); /* A token may come. */
        return;
    }
    dp_event_log_add(start->daemon->event_log, DP_LOG_INFO, "create.from", 0, NULL,
                     "creating a run from %s", config->create_from);
    run_dpnode(start, arguments, on_created);
}

/* The file may be replaced by a new invite: it is missing, empty or an older one of this run. A
 * reason why not; NULL: it may. */
static const char *why_not_replaced(const char *path, int error, const token_text *token, bool own)
{
    char folder[DP_CONFIG_PATH_MAX];
    folder_of(path, folder);
    if (error != 0 && error != ENOENT) {
        return uv_strerror(-error);
    }
    if (error == 0 && token->size > 0 && !own) {
        return "the file exists and holds no invite of this run";
    }
    return access(folder, W_OK) != 0 ? "its folder does not exist or cannot be written" : NULL;
}

/* The invite names this node alone: without its volume the node could not return by it. */
static bool names_no_other(const dp_driver *driver, const dp_invite *invite)
{
    dp_address own[DP_TOKEN_ADDRESSES_MAX];
    const uint32_t n_own = dp_driver_addresses(driver, own);
    for (uint8_t i = 0; i < invite->n_addresses; i++) {
        uint32_t at = 0;
        while (at < n_own && !dp_address_equal(&own[at], &invite->addresses[i])) {
            at++;
        }
        if (at == n_own) {
            return false;
        }
    }
    return true;
}

/* The invite names a voter that is linked now, or there is none to name. An address of this node of
 * before, at which nobody answers any more, is not enough. */
static bool names_a_linked_voter(const dp_driver *driver, const dp_invite *invite)
{
    dp_address all[DP_TOKEN_ADDRESSES_MAX];
    const uint32_t n_own = dp_driver_addresses(driver, all);
    const uint32_t n_all = dp_invite_addresses(driver, all);
    for (uint32_t k = n_own; k < n_all; k++) {
        for (uint8_t i = 0; i < invite->n_addresses; i++) {
            if (dp_address_equal(&all[k], &invite->addresses[i])) {
                return true;
            }
        }
    }
    return n_all <= n_own;
}

/* Nobody joins by it any more, or from the next record on. */
static bool is_revoked(const dp_first_start *start, const dp_invite_id *id)
{
    const dp_node *const node = dp_driver_node(start->daemon->driver);
    return node != NULL && dp_node_invite(node, id) != DP_INVITE_STANDS;
}

/* Keeps an invite of this run in the file that is valid for long enough, and names other nodes when
 * there are some. invite: of the file; NULL: it has none. */
static void keep_invite(dp_first_start *start, int error, const token_text *token,
                        const dp_invite *invite)
{
    const dp_run_identity *const facts = dp_driver_run_identity(start->daemon->driver);
    const char *const arguments[] = {"invite", "--role",   "vote",
                                     "--uses", "0",        "--expires",
                                     "7d",     "--socket", start->daemon->config->socket,
                                     NULL};
    _Static_assert(DP_FIRST_START_INVITE_DAYS == 7, "as in the arguments");
    dp_credential credential;
    dp_driver_view view;
    dp_driver_look(start->daemon->driver, &view);
    if (!view.running) {
        look_later(start, DP_FIRST_START_LOOK_MS);
        return;
    }
    const bool own =
        invite != NULL && memcmp(invite->run.bytes, facts->run.bytes, sizeof facts->run.bytes) == 0;
    const bool lasts =
        own && invite->psk_epoch == facts->psk_epoch &&
        dp_invite_check(invite, dp_unix_ms() + INVITE_HALF_MS, &credential, NULL) == DP_OK &&
        !is_revoked(start, &credential.invite);
    const bool alone = lasts && names_no_other(start->daemon->driver, invite);
    const bool has_root = dp_daemon_root_of(start->daemon, facts->root) != NULL;
    const bool good = lasts && names_a_linked_voter(start->daemon->driver, invite);
    if (good || !has_root) {
        if (good) {
            start->problem.code[0] = '\0';
        }
        look_later(start, alone && has_root ? INVITE_ALONE_MS : INVITE_LOOK_MS);
        return;
    }
    const char *const why = why_not_replaced(start->daemon->config->token_file, error, token, own);
    if (why == NULL) {
        run_dpnode(start, arguments, on_invited);
        return;
    }
    if (invite == NULL) { /* A token of another run is reported as such. */
        tell_no_invite(start, why);
    }
    look_later(start, next_wait_ms(start));
}

/* ---- each look ---- */

static void look_in_run(dp_first_start *start, token_text *token)
{
    static dp_invite invite;
    const dp_config *const config = start->daemon->config;
    if (!start->entered) {
        start->entered = true;
        start->problem.code[0] = '\0';
        start->again_ms = 0;
        forget_left(start);
    }
    const int error = read_token(config, token);
    const bool parsed = error == 0 && dp_invite_parse(dp_view_of(token->bytes, token->size),
                                                      &invite, NULL, NULL) == DP_OK;
    if (parsed) {
        check_run(start, &invite);
    }
    if (config->create_from[0] != '\0' && config->token_file[0] != '\0') {
        keep_invite(start, error, token, parsed ? &invite : NULL);
    }
    dp_invite_close(&invite);
}

static void look(dp_first_start *start, token_text *token)
{
    dp_daemon *const daemon = start->daemon;
    if (daemon->driver != NULL) {
        if (dp_driver_manifest(daemon->driver) == NULL) { /* A command joins, and may fail. */
            look_later(start, DP_FIRST_START_LOOK_MS);
        } else {
            look_in_run(start, token);
        }
        return;
    }
    if (start->entered) {
        return;
    }
    const int error = read_token(daemon->config, token);
    if (error == 0 && token->size > 0 && is_left(start, token)) {
        tell_left(start);
    } else if (error == 0 && token->size > 0) {
        join(start, token);
    } else if (error == ENOENT && daemon->config->create_from[0] != '\0') {
        create(start);
    } else {
        wait_for_token(start, error);
    }
}

static void on_look(uv_timer_t *timer)
{
    token_text token = {.size = 0};
    look(timer->data, &token);
    sodium_memzero(&token, sizeof token);
}

static void look_later(dp_first_start *start, uint64_t wait_ms)
{
    uv_timer_start(&start->timer, on_look, wait_ms, 0);
}

void dp_first_start_joined(dp_first_start *start)
{
    if (start != NULL) {
        look_later(start, 0);
    }
}

void dp_first_start_failed(dp_first_start *start, const dp_control_error *error)
{
    if (start != NULL && !start->entered) {
        set_problem(start, DP_LOG_ERROR, "join.failed", error);
        look_later(start, next_wait_ms(start));
    }
}

void dp_first_start_revoked(dp_first_start *start)
{
    if (start != NULL && start->entered && !start->tool_runs) {
        look_later(start, 0);
    }
}

/* One of the settings is given. */
static bool is_asked_for(const dp_config *config)
{
    return config->token[0] != '\0' || config->token_file[0] != '\0' ||
           config->create_from[0] != '\0';
}

bool dp_first_start_left(dp_first_start *start)
{
    token_text token = {.size = 0};
    bool has = false;
    if (start == NULL || !is_asked_for(start->daemon->config)) {
        return false;
    }
    if (read_token(start->daemon->config, &token) == 0 && token.size > 0 &&
        !is_left(start, &token)) {
        const dp_hash left = hash_of(&token);
        keep_left(start, &left);
        has = true;
    }
    sodium_memzero(&token, sizeof token);
    start->entered = false;
    start->problem.code[0] = '\0';
    start->again_ms = 0;
    look_later(start, DP_FIRST_START_LOOK_MS);
    return has;
}

const dp_control_error *dp_first_start_problem(const dp_first_start *start)
{
    return start != NULL && start->problem.code[0] != '\0' ? &start->problem : NULL;
}

bool dp_first_start_tries(const dp_first_start *start)
{
    return start != NULL && start->daemon->driver == NULL && !start->entered &&
           start->problem.code[0] == '\0' && is_asked_for(start->daemon->config);
}

dp_status dp_first_start_open(dp_first_start **out, dp_daemon *daemon)
{
    const dp_config *const config = daemon->config;
    dp_first_start *start = dp_alloc(1, sizeof *start);
    if (start == NULL) {
        return DP_NOMEM;
    }
    start->daemon = daemon;
    DP_IGNORE(uv_timer_init(daemon->loop, &start->timer) != 0); /* It does not fail. */
    start->timer.data = start;
    if (is_asked_for(config)) {
        read_left(start);
        look_later(start, 0);
    }
    *out = start;
    return DP_OK;
}

static void on_closed(uv_handle_t *handle)
{
    dp_first_start *const start = handle->data;
    start->timer_closed = true;
    free_if_over(start);
}

void dp_first_start_close(dp_first_start *start)
{
    if (start != NULL) {
        uv_close((uv_handle_t *)&start->timer, on_closed);
    }
}
