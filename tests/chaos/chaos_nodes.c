/* The processes of the chaos bench: daemons on loopback with their own folders, dpfault between
 * them, and the end of all of them in every case. This process adopts orphans (trainers of killed
 * daemons), so that none remains. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/start/start.h"
#include "tests/chaos/chaos.h"

enum {
    PORT_FIRST = 15000, /* below the ports that the system gives to outgoing connections */
    PORT_COUNT = 16000,
    PORT_TRIES = 2000,
    HOST_FIRST = 2, /* 127.0.0.2 etc.: so the proxy can identify the dialling node */
    END_MS_MAX = 10 * 1000,
    LOOK_EVERY_MS = 20
};

/* Used by the signal handler. */
_Static_assert((int)DP_CHAOS_NODES_MAX <= (int)DP_CHILDREN_MAX, "each node is a child");

uint64_t dp_chaos_now_ms(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void dp_chaos_node_path(const dp_chaos *self, unsigned node, const char *what,
                        char path[DP_CLI_PATH_MAX])
{
    dp_children_path(self->dir, node, what, path);
}

static int fail(dp_control_error *error, int exit, const char *fix, const char *what,
                const char *why)
{
    dp_error_set(error, exit, "E0130", fix, what, why);
    return exit;
}

/* ---- daemons ---- */

static bool port_is_free(unsigned host, unsigned port)
{
    const int on = 1;
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + host)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool is_free = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                         bind(fd, (const struct sockaddr *)&address, sizeof address) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return is_free;
}

/* Free ports, upwards from a random one: a daemon keeps its port over all of its lives. */
static bool take_ports(dp_chaos *self)
{
    dp_rng rng;
    unsigned taken = 0;
    dp_rng_init(&rng, self->options->seed ^ (uint64_t)getpid() << 32);
    unsigned port = (unsigned)dp_rng_below(&rng, PORT_COUNT);
    for (unsigned tries = 0; tries < PORT_TRIES && taken < 2 * self->options->nodes; tries++) {
        port = (port + 1) % PORT_COUNT;
        if (port_is_free(taken % 2 == 0 ? HOST_FIRST + taken / 2 : 1, PORT_FIRST + port)) {
            dp_chaos_node *node = &self->nodes[taken / 2];
            *(taken % 2 == 0 ? &node->port : &node->proxy_port) = PORT_FIRST + port;
            taken++;
        }
    }
    return taken == 2 * self->options->nodes;
}

int dp_chaos_spawn(dp_chaos *self, unsigned node, dp_control_error *error)
{
    char dir[DP_CLI_PATH_MAX];
    char socket_path[DP_CLI_PATH_MAX];
    char listen_at[32];
    char advertise[32];
    char quota[24];
    dp_chaos_node_path(self, node, "node", dir);
    dp_chaos_node_path(self, node, "s", socket_path);
    snprintf(quota, sizeof quota, "%d", DP_CHAOS_STORE_BYTES);
    snprintf(listen_at, sizeof listen_at, "127.0.0.%u:%u", HOST_FIRST + node,
             self->nodes[node].port);
    snprintf(advertise, sizeof advertise, "127.0.0.%u:%u",
             self->proxy_pid > 0 ? 1 : HOST_FIRST + node,
             self->proxy_pid > 0 ? self->nodes[node].proxy_port : self->nodes[node].port);
    const char *const extra[] = {
        "--listen",    listen_at, "--advertise", advertise, "--threads",       "1",
        "--ballast",   "1M",      "--margin",    "1M",      "--write-per-day", "0",
        "--store-max", quota,     NULL};
    const dp_start start = {
        .dir = dir, .socket = socket_path, .extra = extra, .pid = dp_children_pid(node)};
    self->book.lives[node].spawned_ms = dp_chaos_now_ms();
    if (!dp_chaos_clock_wear(self, node)) {
        return fail(error, DP_EXIT_UNAVAILABLE, "build the target dpclock",
                    "the clock of a daemon cannot be set wrong", "libdpclock.so is not here");
    }
    return dp_start_spawn(&start, &self->nodes[node].pid, error);
}

void dp_chaos_kill(dp_chaos *self, unsigned node, int number)
{
    dp_chaos_node *target = &self->nodes[node];
    if (target->pid <= 0) {
        return;
    }
    kill(target->pid, number);
    if (number == SIGKILL) {
        *dp_children_pid(node) = 0;
        waitpid(target->pid, NULL, 0);
        target->pid = 0;
        dp_chaos_deaf(target);
        dp_chaos_sample_end(self, node);
    }
}

/* The trainer leads a session of its own. */
static void signal_children(pid_t pid, int number)
{
    char path[64];
    int child;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *const children = fopen(path, "r");
    while (children != NULL && fscanf(children, "%d", &child) == 1) {
        kill(-child, number);
    }
    if (children != NULL) {
        fclose(children);
    }
}

void dp_chaos_signal(dp_chaos *self, unsigned node, int number)
{
    if (self->nodes[node].pid > 0) { /* Each daemon leads a process group. */
        kill(-self->nodes[node].pid, number);
        signal_children(self->nodes[node].pid, number);
    }
}

bool dp_chaos_ended(dp_chaos *self, unsigned node)
{
    dp_chaos_node *target = &self->nodes[node];
    if (target->pid <= 0 || waitpid(target->pid, NULL, WNOHANG) != target->pid) {
        return false;
    }
    *dp_children_pid(node) = 0;
    target->pid = 0;
    dp_chaos_deaf(target);
    dp_chaos_sample_end(self, node);
    return true;
}

/* ---- the proxy ---- */

static void become_proxy(int in, int out, uint64_t seed)
{
    char program[DP_CLI_PATH_MAX];
    char text[24];
    dp_path_program("dpfault", program);
    snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    setpgid(0, 0);
    if (dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0) {
        execlp(program, "dpfault", "--seed", text, (char *)NULL);
    }
    dprintf(STDERR_FILENO, "%s: %s\n", program,
            strerror(errno)); /* NOLINT(concurrency-mt-unsafe): one thread */
    _exit(127);
}

/* Sends it all forwards and settings, and waits for its confirmation. */
static bool instruct_proxy(const dp_chaos *self, int answers)
{
    char word[16] = "";
    bool good = true;
    for (unsigned i = 0; i < self->options->nodes; i++) {
        good = dprintf(self->proxy_fd, "forward n%u 127.0.0.1:%u 127.0.0.%u:%u\n", i + 1,
                       self->nodes[i].proxy_port, HOST_FIRST + i, self->nodes[i].port) > 0 &&
               good;
    }
    good = dprintf(self->proxy_fd, "set * %s\nsay ready\n", self->options->proxy) > 0 && good;
    return good && read(answers, word, sizeof word - 1) == 6 && strcmp(word, "ready\n") == 0;
}

void dp_chaos_tell_proxy(dp_chaos *self, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    /* If it has ended, all links are broken too, and the run fails anyway. */
    if (self->proxy_fd >= 0) {
        DP_IGNORE(vdprintf(self->proxy_fd, format, arguments) < 0);
    }
    va_end(arguments);
}

static int start_proxy(dp_chaos *self, dp_control_error *error)
{
    int in[2] = {-1, -1};
    int out[2] = {-1, -1};
    bool good = pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0;
    fflush(NULL);
    self->proxy_pid = good ? fork() : -1;
    if (self->proxy_pid == 0) {
        become_proxy(in[0], out[1], self->options->seed);
    }
    self->proxy_fd = in[1];
    close(in[0]);
    close(out[1]);
    good = self->proxy_pid > 0 && instruct_proxy(self, out[0]);
    close(out[0]);
    return good ? 0
                : fail(error, DP_EXIT_USAGE, "see tests/fault/script.h for what --proxy takes",
                       "the proxy dpfault did not start, or does not know these settings",
                       self->options->proxy);
}

static void end_proxy(dp_chaos *self)
{
    if (self->proxy_fd >= 0) {
        close(self->proxy_fd); /* It ends at the end of its input. */
    }
    self->proxy_fd = -1;
    if (self->proxy_pid > 0) {
        kill(self->proxy_pid, SIGTERM);
        waitpid(self->proxy_pid, NULL, 0);
    }
    self->proxy_pid = 0;
}

/* ---- the beginning and the end ---- */

int dp_chaos_up(dp_chaos *self, const dp_chaos_options *options, dp_control_error *error)
{
    char path[DP_CLI_PATH_MAX];
    *self = (dp_chaos){.options = options, .proxy_fd = -1};
    for (unsigned i = 0; i < DP_CHAOS_NODES_MAX; i++) {
        self->nodes[i].client.fd = -1;
    }
    dp_children_watch(SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    dp_rng_init(&self->rng, options->seed);
    if (dp_chaos_book_open(&self->book, options->nodes) != DP_OK) {
        return fail(error, DP_EXIT_SOFTWARE, "", "out of memory", "");
    }
    if (!dp_children_folder("chaos", self->dir)) {
        const int exit =
            fail(error, DP_EXIT_CANTCREATE, "set TMPDIR to a folder that can be written",
                 "the folder cannot be made", self->dir);
        self->dir[0] = '\0';
        return exit;
    }
    dp_chaos_node_path(self, DP_CHAOS_NODES_MAX, "s", path);
    if (strlen(path) > DP_CONTROL_PATH_MAX || !take_ports(self)) {
        return fail(error, DP_EXIT_CANTCREATE, "set TMPDIR to a short path",
                    "the path is too long for sockets, or no ports are free", self->dir);
    }
    if (options->disks) {
        const int exit = dp_chaos_make_disks(self, error);
        if (exit != 0) {
            return exit;
        }
    }
    return options->proxy != NULL ? start_proxy(self, error) : 0;
}

/* All children of this process, including adopted orphans. */
static void kill_children(void)
{
    char path[64];
    char line[4096];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return;
    }
    char *at = fgets(line, sizeof line, file) != NULL ? line : NULL;
    while (at != NULL) {
        char *end = at;
        const long pid = strtol(at, &end, 10);
        if (end == at) {
            break;
        }
        kill((pid_t)pid, SIGKILL);
        at = end;
    }
    fclose(file);
}

void dp_chaos_down(dp_chaos *self, bool keep)
{
    const struct timespec pause = {.tv_nsec = LOOK_EVERY_MS * 1000000L};
    for (unsigned i = 0; i < DP_CHAOS_NODES_MAX; i++) {
        dp_chaos_kill(self, i, SIGKILL);
    }
    end_proxy(self);
    /* Trainers end after their daemon; those that do not are killed. */
    for (unsigned waited = 0; waited < END_MS_MAX; waited += LOOK_EVERY_MS) {
        if (waited >= END_MS_MAX / 5) {
            kill_children();
        }
        pid_t pid = 0;
        do {
            pid = waitpid(-1, NULL, WNOHANG);
        } while (pid > 0);
        if (pid < 0) {
            break;
        }
        nanosleep(&pause, NULL);
    }
    dp_chaos_end_disks(self);
    if (self->dir[0] != '\0' && keep) {
        snprintf(self->kept, sizeof self->kept, "%s", self->dir);
    } else if (self->dir[0] != '\0') {
        DP_IGNORE(dp_path_remove_tree(
            self->dir)); /* Remaining files are in the folder for temporary files. */
    }
    if (self->dir[0] != '\0') {
        self->dir[0] = '\0';
    }
}
