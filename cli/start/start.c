#include "cli/start/start.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/json.h"
#include "cli/paths.h"
#include "cli/start/start_owner.h"
#include "cli/start/start_unit.h"

enum {
    ASK_EVERY_MS = 10,
    LOG_TAIL_BYTES = 4000,
    WHY_BYTES = 400,
    DYING_MS_MAX = 3000,
    HELLO_MS = 2000, /* for one answer of a daemon that has just been started */
    OWNER_BYTES = 16
};

static uint64_t now_ms(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Output of dpnoded before it has a log, and errors of the log. */
static bool is_error(const char *line)
{
    return strncmp(line, "dpnoded: ", 9) == 0 || strstr(line, " lvl=error ") != NULL;
}

/* The last error of the log since this start, or its last line: the reason why the daemon ended. */
static void last_words(const char *log, off_t began, char *line, size_t size)
{
    char tail[LOG_TAIL_BYTES + 1];
    line[0] = '\0';
    const int fd = open(log, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    const off_t end = lseek(fd, 0, SEEK_END);
    began = began <= end ? began : 0; /* The daemon has begun a new file. */
    const off_t from = end - began > LOG_TAIL_BYTES ? end - LOG_TAIL_BYTES : began;
    const ssize_t got = pread(fd, tail, LOG_TAIL_BYTES, from);
    close(fd);
    bool error = false;
    tail[got > 0 ? got : 0] = '\0';
    for (char *at = tail; *at != '\0';) {
        char *const newline = strchr(at, '\n');
        if (newline != NULL) {
            *newline = '\0';
        }
        if (at[0] != '\0' && (is_error(at) || !error)) {
            error = is_error(at);
            snprintf(line, size, "%.*s", (int)size - 1, at);
        }
        at = newline != NULL ? newline + 1 : at + strlen(at);
    }
}

static off_t size_of(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 ? about.st_size : 0;
}

/* Runs in the child, and ends it. */
static void become_daemon(const dp_start *start, const dp_start_owner *owner, const char *program,
                          int out)
{
    /* The verb joins or creates a run itself. */
    static const char *const first[] = {"DPNODE_TOKEN", "DPNODE_TOKEN_FILE", "DPNODE_CREATE_FROM"};
    const char *arguments[DP_START_ARGS_MAX] = {program};
    size_t count = 1;
    if (!start->finds_dir || owner->other) { /* Another user has other settings. */
        arguments[count++] = "--dir";
        arguments[count++] = start->dir;
    }
    if (!start->finds_socket || owner->other) {
        arguments[count++] = "--socket";
        arguments[count++] = start->socket;
    }
    for (size_t i = 0;
         start->extra != NULL && start->extra[i] != NULL && count + 1 < DP_START_ARGS_MAX; i++) {
        arguments[count++] = start->extra[i];
    }
    for (size_t i = 0; !start->by_environment && i < sizeof first / sizeof first[0]; i++) {
        DP_IGNORE(unsetenv(first[i]) != 0); /* NOLINT(concurrency-mt-unsafe): one thread */
    }
    const int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
    /* Replaces the standard streams, so that no program waits for the daemon's end of a pipe. */
    if (none < 0 || dup2(none, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
        dup2(out, STDERR_FILENO) < 0) {
        _exit(DP_EXIT_CANTCREATE);
    }
    if (dp_start_owner_become(owner) != DP_OK) {
        dprintf(STDERR_FILENO, "dpnoded: cannot run as the user of %s: %s\n", start->dir,
                strerror(errno)); /* NOLINT(concurrency-mt-unsafe): one thread */
        _exit(DP_EXIT_CANTCREATE);
    }
    if (start->detach) {
        setsid();
    } else {
        setpgid(0, 0);                   /* Ctrl-C goes to its parent, which ends it cleanly ... */
        prctl(PR_SET_PDEATHSIG, SIGINT); /* ... and if the parent dies, the system ends it. */
    }
    char *vector[DP_START_ARGS_MAX] = {NULL};
    memcpy(vector, arguments,
           sizeof vector); /* execvp takes writable strings, but does not write to them. */
    execvp(program, vector);
    dprintf(STDERR_FILENO, "%s: %s\n", program,
            strerror(errno)); /* NOLINT(concurrency-mt-unsafe): one thread */
    _exit(127);
}

static int died(const dp_start *start, int status, const char *log, off_t began,
                dp_control_error *error)
{
    if (start->pid != NULL) {
        *start->pid = 0; /* Another process may get this number soon. */
    }
    char line[WHY_BYTES + 1];
    char fix[DP_CLI_PATH_MAX];
    last_words(log, began, line, sizeof line);
    snprintf(fix, sizeof fix, "less %.200s   # the daemon's log", log);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : DP_EXIT_SOFTWARE;
    if (code == 127) {
        dp_error_set(error, DP_EXIT_UNAVAILABLE, "E0105",
                     "install dpnoded beside dpnode, or add its folder to PATH",
                     "dpnoded cannot be run", line);
        return error->exit;
    }
    dp_error_set(error, code >= DP_EXIT_USAGE && code < 79 ? code : DP_EXIT_SOFTWARE, "E0106", fix,
                 "the daemon ended right after its start", line);
    return error->exit;
}

typedef enum standing {
    STANDING_NONE,
    STANDING_MUTE, /* takes connections and gives no answer in time */
    STANDING_STARTS,
    STANDING_UP
} standing;

/* An answering socket is not enough: the daemon may be about to end, or may still be reading its
 * store. */
static standing ask_standing(const char *socket, uint32_t most_ms, dp_control_error *error)
{
    dp_client client;
    json_t *hello = NULL;
    standing is = STANDING_NONE;
    if (dp_client_open_within(&client, socket, most_ms, error) == DP_OK) {
        dp_packer packer = dp_client_begin(&client, "hello");
        dp_pack_map(&packer, 0);
        if (dp_client_call(&client, &packer, NULL, NULL, &hello, error) == 0) {
            is = strcmp(dp_json_text(hello, "state", ""), "starting") == 0 ? STANDING_STARTS
                                                                           : STANDING_UP;
        }
        json_decref(hello);
    }
    is = client.late ? STANDING_MUTE : is;
    dp_client_close(&client);
    return is;
}

static int wait_for_answer(const dp_start *start, pid_t pid, const char *log, off_t began,
                           dp_control_error *error)
{
    const uint64_t until = now_ms() + DP_START_MS_MAX;
    const struct timespec pause = {.tv_nsec = ASK_EVERY_MS * 1000000L};
    for (;;) {
        int status = 0;
        const standing is = ask_standing(start->socket, HELLO_MS, error);
        /* Another daemon may answer there, because of which ours has ended. */
        if (waitpid(pid, &status, WNOHANG) == pid) {
            return died(start, status, log, began, error);
        }
        if (is == STANDING_UP) {
            return 0;
        }
        if (now_ms() > until && is == STANDING_STARTS) {
            return 0; /* The daemon reads a long chain; hello shows it. */
        }
        if (now_ms() > until) {
            char why[64];
            snprintf(why, sizeof why, "no answer within %d s", DP_START_MS_MAX / 1000);
            dp_error_set(error, DP_EXIT_TEMPORARY, "E0107",
                         "dpnode status   # tells whether it has come up since",
                         "the daemon was started but does not answer", why);
            return error->exit;
        }
        nanosleep(&pause, NULL);
    }
}

static void cannot(const char *path, const char *what, dp_control_error *error)
{
    dp_why why;
    dp_why_set(&why, DP_IO, "%s: %s", path,
               strerror(errno)); /* NOLINT(concurrency-mt-unsafe): one thread */
    dp_error_set(error, DP_EXIT_CANTCREATE, "E0108", "choose another one with --dir", what,
                 why.text);
}

/* Makes the daemon's directory and opens its log. -1 with an error: if the log cannot be written,
 * no other file can. */
static int open_log(const dp_start *start, dp_control_error *error)
{
    char log[DP_CLI_PATH_MAX + 16];
    snprintf(log, sizeof log, "%s/dpnoded.log", start->dir);
    errno = strlen(log) >= DP_CLI_PATH_MAX ? ENAMETOOLONG : 0;
    if (errno != 0 || dp_path_make_folders(start->dir) != DP_OK) {
        cannot(start->dir, "the daemon's directory cannot be made", error);
        return -1;
    }
    const int out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (out < 0) {
        cannot(log, "the daemon's directory cannot be written", error);
    }
    return out;
}

int dp_start_spawn(const dp_start *start, pid_t *pid, dp_control_error *error)
{
    char program[DP_CLI_PATH_MAX];
    dp_start_owner owner;
    dp_path_program("dpnoded", program);
    dp_start_owner_of(start->dir, &owner);
    if (dp_start_owner_socket(&owner, start->socket) != DP_OK) {
        cannot(start->socket, "the folder of the daemon's socket cannot be made", error);
        return error->exit;
    }
    if (dp_start_owner_enter(&owner) != DP_OK) {
        cannot(start->dir, "the daemon's directory belongs to another user", error);
        return error->exit;
    }
    const int out = open_log(start, error);
    dp_start_owner_leave(&owner);
    if (out < 0) {
        return error->exit;
    }
    fflush(NULL);
    *pid = fork();
    if (*pid == 0) {
        become_daemon(start, &owner, program, out);
    }
    close(out);
    if (*pid < 0) {
        dp_error_set(error, DP_EXIT_TEMPORARY, "E0109", "", "no process could be started",
                     strerror(errno)); /* NOLINT(concurrency-mt-unsafe): one thread */
        return error->exit;
    }
    if (start->pid != NULL) {
        *start->pid = *pid;
    }
    return 0;
}

/* A running daemon holds the lock (store/dir.c): a second one would only write into its log. */
static bool is_in_use(const char *dir, char owner[OWNER_BYTES])
{
    char path[DP_CLI_PATH_MAX + 8];
    snprintf(path, sizeof path, "%s/lock", dir);
    owner[0] = '\0';
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    const bool held = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    const ssize_t got = held ? pread(fd, owner, OWNER_BYTES - 1, 0) : 0;
    close(fd); /* Closing it also releases the lock, if it was free. */
    owner[got > 0 ? got : 0] = '\0';
    owner[strspn(owner, "0123456789")] = '\0';
    return held;
}

int dp_start_daemon(const dp_start *start, pid_t *pid, dp_control_error *error)
{
    char log[DP_CLI_PATH_MAX + 16];
    const uint64_t until = now_ms() + DYING_MS_MAX;
    const struct timespec pause = {.tv_nsec = ASK_EVERY_MS * 1000000L};
    snprintf(log, sizeof log, "%s/dpnoded.log", start->dir);
    for (;;) {
        char owner[OWNER_BYTES];
        if (is_in_use(start->dir, owner)) {
            if (now_ms() > until) {
                char why[DP_CLI_PATH_MAX + 64];
                snprintf(why, sizeof why, "process %s uses %.300s and listens on another socket",
                         owner, start->dir);
                dp_error_set(error, DP_EXIT_CANTCREATE, "E0112",
                             "give its socket with --socket, or another directory with --dir",
                             "a daemon runs in this directory already", why);
                return error->exit;
            }
            nanosleep(&pause, NULL);
            continue;
        }
        const off_t began = size_of(log);
        int status = dp_start_spawn(start, pid, error);
        status = status != 0 ? status : wait_for_answer(start, *pid, log, began, error);
        /* A killed daemon may hold socket and store for another moment. */
        if (status != DP_EXIT_CANTCREATE || now_ms() > until || strcmp(error->code, "E0106") != 0) {
            return status;
        }
        nanosleep(&pause, NULL);
    }
}

static int open_started(const dp_cmd *cmd, dp_client *client, dp_control_error *error)
{
    const bool open = dp_client_open(client, cmd->socket, error) == DP_OK;
    if (!open) {
        dp_client_close(client);
    }
    return open ? 0 : error->exit;
}

static bool is_up(const dp_cmd *cmd)
{
    return strcmp(cmd->verb->name, "up") == 0;
}

/* Has the environment something to say to the daemon, which does not reach a unit? join reads
 * DPNODE_TOKEN itself. */
static bool environment_speaks(bool up)
{
    for (char **variable = environ; *variable != NULL; variable++) {
        const bool token = strncmp(*variable, "DPNODE_TOKEN=", 13) == 0;
        if (strncmp(*variable, "DPNODE_", 7) == 0 && (up || !token)) {
            return true;
        }
    }
    return false;
}

/* Asks the systemd to which the daemon at the standard places belongs: the machine's, for root, or
 * that of this user. */
static dp_unit_start ask_systemd(const dp_cmd *cmd, dp_control_error *error)
{
    char managed[DP_CLI_PATH_MAX];
    if (dp_cmd_option(cmd, "dir") != NULL || dp_cmd_option(cmd, "listen") != NULL ||
        environment_speaks(is_up(cmd))) {
        return DP_UNIT_NONE;
    }
    if (geteuid() == 0) {
        return strcmp(cmd->socket, DP_PATH_SYSTEM_SOCKET) == 0
                   ? dp_start_unit(DP_UNIT_OF_MACHINE, DP_UNIT_MANAGED, error)
                   : DP_UNIT_NONE;
    }
    const char *const run = getenv("XDG_RUNTIME_DIR"); /* NOLINT(concurrency-mt-unsafe) */
    if (run == NULL || cmd->socket_given) {
        return DP_UNIT_NONE;
    }
    snprintf(managed, sizeof managed, "%s/systemd", run);
    return dp_start_unit(DP_UNIT_OF_USER, managed, error);
}

/* Starts the daemon's unit and waits until it has read its store. */
static dp_unit_start start_unit(const dp_cmd *cmd, dp_control_error *error)
{
    const struct timespec pause = {.tv_nsec = ASK_EVERY_MS * 1000000L};
    const dp_unit_start unit = ask_systemd(cmd, error);
    const uint64_t until = now_ms() + DP_START_MS_MAX;
    if (unit == DP_UNIT_STARTED && geteuid() == 0 && !is_up(cmd) &&
        dp_start_unit_disabled(DP_UNIT_OF_MACHINE)) {
        fprintf(stderr, "The node does not start with the machine, since its unit is not enabled; "
                        "to change that: systemctl enable dpnoded\n");
    }
    while (unit == DP_UNIT_STARTED && now_ms() < until &&
           ask_standing(cmd->socket, HELLO_MS, error) == STANDING_STARTS) {
        nanosleep(&pause, NULL);
    }
    return unit;
}

int dp_start_if_none(const dp_cmd *cmd, dp_client *client, bool *started, dp_control_error *error)
{
    char given[DP_CLI_PATH_MAX];
    char dir[DP_CLI_PATH_MAX];
    *started = false;
    const standing is = ask_standing(cmd->socket, DP_START_MS_MAX, error);
    if (is == STANDING_MUTE) {
        return error->exit;
    }
    if (is != STANDING_NONE) {
        const bool answers = dp_client_open(client, cmd->socket, error) == DP_OK;
        if (answers) {
            return 0;
        }
        dp_client_close(client);
    }
    if (error->exit != DP_EXIT_UNAVAILABLE) { /* Also of a daemon that is just ending. */
        return error->exit;
    }
    const bool finds_dir = dp_path_dir(dp_cmd_option(cmd, "dir"), given);
    if (dp_path_absolute(given, dir) != DP_OK) {
        dp_error_set(error, DP_EXIT_USAGE, "E0108", "choose another one with --dir",
                     "the directory's path is too long", given);
        return error->exit;
    }
    const dp_unit_start unit = start_unit(cmd, error);
    if (unit == DP_UNIT_FAILED) {
        return error->exit;
    }
    if (unit == DP_UNIT_STARTED) {
        *started = true;
        return open_started(cmd, client, error);
    }
    const char *listen = dp_cmd_option(cmd, "listen");
    const char *const extra[] = {listen != NULL ? "--listen" : NULL, listen, NULL};
    const dp_start start = {.dir = dir,
                            .socket = cmd->socket,
                            .extra = extra,
                            .finds_dir = finds_dir,
                            .finds_socket = !cmd->socket_given,
                            .detach = true,
                            .by_environment = is_up(cmd)};
    pid_t pid = 0;
    const int status = dp_start_daemon(&start, &pid, error);
    if (status != 0) {
        return status;
    }
    *started = true;
    return open_started(cmd, client, error);
}

bool dp_start_would(const dp_cmd *cmd, char dir[DP_CLI_PATH_MAX])
{
    dp_client client;
    dp_control_error error;
    char given[DP_CLI_PATH_MAX];
    const bool answers = dp_client_open(&client, cmd->socket, &error) == DP_OK;
    dp_client_close(&client);
    dp_path_dir(dp_cmd_option(cmd, "dir"), given);
    return !answers && error.exit == DP_EXIT_UNAVAILABLE && dp_path_absolute(given, dir) == DP_OK;
}

void dp_start_undo(const dp_cmd *cmd)
{
    dp_control_error error;
    json_t *result = NULL;
    if (dp_client_ask(cmd, "down", &result, &error) == 0) {
        const pid_t pid = (pid_t)dp_json_int(result, "pid", 0);
        if (pid > 0) {
            waitpid(pid, NULL, 0); /* Waits for our child; fails at once if it is not ours. */
        }
    }
    json_decref(result);
}
