#include "compute/backend/plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "compute/backend/backend_check.h"
#include "compute/backend/backend_cpu.h"

enum {
    DEVICE_DIGITS_MAX = 3,
    PARTS_MAX = 64 /* that a self-test may tell of; ours has eighteen */
};

/* The result of the process that tests a plugin. */
typedef struct verdict {
    dp_status status;
    dp_why why;
} verdict;

/* ---- Loading. */

/* Every call is there. The functions follow one another at the end of the table. */
static bool has_all(const void *table, size_t first, size_t size)
{
    for (size_t at = first; at < size; at += sizeof(void (*)(void))) {
        void (*call)(void);
        memcpy(&call, (const char *)table + at, sizeof call);
        if (call == NULL) {
            return false;
        }
    }
    return true;
}

static bool is_whole(const dp_backend *b)
{
    return b->name != NULL && has_all(b, offsetof(dp_backend, devices), sizeof *b) &&
           (b->parts == NULL || has_all(b->parts, 0, sizeof *b->parts));
}

static dp_status look_at(const char *path, const dp_backend *b, dp_why *why)
{
    static const uint32_t layout[DP_BACKEND_LAYOUTS] = DP_BACKEND_LAYOUT;
    if (b == NULL) {
        return dp_why_set(why, DP_VERSION, "%s has no table of version %d; build it with dpnode",
                          path, DP_BACKEND_VERSION);
    }
    if (b->magic != DP_BACKEND_MAGIC) {
        return dp_why_set(why, DP_BADMSG, "%s is no backend of dpnode: its table starts wrong",
                          path);
    }
    if (b->version != DP_BACKEND_VERSION) {
        return dp_why_set(why, DP_VERSION,
                          "%s has version %u of the table and this dpnode %d; install those of one "
                          "release",
                          path, b->version, DP_BACKEND_VERSION);
    }
    if (memcmp(b->layout, layout, sizeof layout) != 0) {
        return dp_why_set(why, DP_VERSION,
                          "%s was built with other structures than this dpnode; install those of "
                          "one release",
                          path);
    }
    if (!is_whole(b)) {
        return dp_why_set(why, DP_BADMSG, "%s leaves calls of the table empty", path);
    }
    return DP_OK;
}

dp_status dp_plugin_load(const char *path, const dp_backend **out, dp_why *why)
{
    if (access(path, F_OK) != 0) {
        return dp_why_set(why, DP_NOTFOUND, "%s is not there", path);
    }
    /* One thread loads, at start: dlerror's buffer is its own. */
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        return dp_why_set(why, DP_BADMSG, "%s does not load: %s", path,
                          dlerror()); /* NOLINT(concurrency-mt-unsafe) */
    }
    void *const symbol = dlsym(library, DP_PLUGIN_SYMBOL);
    if (symbol == NULL) {
        return dp_why_set(why, DP_BADMSG, "%s is no backend of dpnode: it has no %s", path,
                          DP_PLUGIN_SYMBOL);
    }
    dp_backend_query_function query;
    memcpy(&query, &symbol, sizeof query);
    const dp_backend *const found = query(DP_BACKEND_VERSION);
    DP_TRY(look_at(path, found, why));
    *out = found;
    return DP_OK;
}

/* ---- Trying, in another process. */

static dp_status check_here(const char *path, uint32_t device, const dp_backend_told *told,
                            dp_why *why)
{
    const dp_backend *backend;
    DP_TRY(dp_plugin_load(path, &backend, why));
    dp_why cause = {{0}};
    const uint32_t count = backend->devices(&cause);
    if (count == 0) {
        return dp_why_set(why, DP_UNSUPPORTED, "%s finds no device: %.300s", path,
                          cause.text[0] != '\0' ? cause.text : "it does not say why");
    }
    if (device >= count) {
        return dp_why_set(why, DP_UNSUPPORTED, "%s finds no device %u, only 0 to %u", path, device,
                          count - 1);
    }
    const dp_status status = dp_backend_check(backend, device, told, &cause);
    if (status != DP_OK) {
        return dp_why_set(why, status, "%s fails its self-test: %.300s", path,
                          cause.text[0] != '\0' ? cause.text : dp_status_text(status));
    }
    return DP_OK;
}

/* At most PIPE_BUF bytes: written whole or not at all. */
static void write_verdict(int pipe_end, const verdict *v)
{
    _Static_assert(sizeof *v <= PIPE_BUF, "a verdict fits a pipe");
    DP_IGNORE(write(pipe_end, v, sizeof *v) < 0); /* Then nothing arrives, which says enough. */
}

/* context: the pipe's end. A verdict of DP_AGAIN says that it goes on; all of them have room in a
 * pipe. */
static void still_going(void *context)
{
    write_verdict(*(const int *)context, &(verdict){.status = DP_AGAIN});
}

static void report(int pipe_end, const char *path, uint32_t device)
{
    const dp_backend_told told = {.passed = still_going, .context = &pipe_end};
    verdict v = {.status = DP_OK};
    v.status = check_here(path, device, &told, &v.why);
    write_verdict(pipe_end, &v);
    _exit(0);
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000U + (uint64_t)now.tv_nsec / 1000000U;
}

/* True when there is something to read, or the other end has been closed. */
static bool wait_for(int fd, uint32_t timeout_ms)
{
    const uint64_t deadline = now_ms() + timeout_ms;
    for (;;) {
        const uint64_t now = now_ms();
        const int left = now >= deadline ? 0 : (int)(deadline - now);
        struct pollfd waits = {.fd = fd, .events = POLLIN};
        const int got = poll(&waits, 1, left);
        if (got > 0) {
            return true;
        }
        if (left == 0 || (got < 0 && errno != EINTR)) {
            return false;
        }
    }
}

/* A process that tries a device. */
typedef struct trial {
    pid_t pid; /* not positive: there is none */
    int fd;    /* its report */
} trial;

/* The next that is no DP_AGAIN. *came: false when a part, or the whole, takes too long; *whole: it
 * is one. */
static void hear_verdict(int fd, uint64_t deadline, uint32_t part_ms, verdict *v, bool *came,
                         bool *whole)
{
    uint32_t parts = 0;
    do {
        const uint64_t now = now_ms();
        const uint64_t left = now < deadline ? deadline - now : 0;
        *came = parts++ < PARTS_MAX && wait_for(fd, left < part_ms ? (uint32_t)left : part_ms);
        *whole = *came && read(fd, v, sizeof *v) == (ssize_t)sizeof *v;
    } while (*whole && v->status == DP_AGAIN);
}

static dp_status hear(const trial *t, const char *path, uint64_t deadline, uint32_t part_ms,
                      dp_why *why)
{
    const pid_t child = t->pid;
    verdict v;
    bool came;
    bool whole;
    hear_verdict(t->fd, deadline, part_ms, &v, &came, &whole);
    if (!came) {
        DP_IGNORE(kill(child, SIGKILL) != 0); /* It may have ended just now. */
    }
    int ended = 0;
    while (waitpid(child, &ended, 0) < 0 && errno == EINTR) {
    }
    if (!came) {
        return dp_why_set(why, DP_TIMEOUT,
                          "%s has not ended its self-test: a part of it takes more than %u ms, or "
                          "all %d times that",
                          path, part_ms, DP_PLUGIN_CHECK_PARTS);
    }
    if (!whole && WIFSIGNALED(ended)) {
        return dp_why_set(why, DP_UNSUPPORTED, "%s crashes in its self-test (SIG%s)", path,
                          sigabbrev_np(WTERMSIG(ended)));
    }
    if (!whole) {
        return dp_why_set(why, DP_UNSUPPORTED, "%s ends the process in its self-test", path);
    }
    v.why.text[sizeof v.why.text - 1] = '\0';
    return v.status == DP_OK ? DP_OK : dp_why_set(why, v.status, "%s", v.why.text);
}

static dp_status begin_trial(trial *out, const char *path, uint32_t device, dp_why *why)
{
    int ends[2];
    if (pipe(ends) != 0) {
        return dp_why_set(why, DP_IO, "no pipe for the self-test: errno %d", errno);
    }
    const pid_t child = fork();
    if (child == 0) {
        /* The waiting process may be killed. */
        DP_IGNORE(prctl(PR_SET_PDEATHSIG, SIGKILL) != 0);
        close(ends[0]);
        report(ends[1], path, device);
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return dp_why_set(why, DP_IO, "no process for the self-test: errno %d", errno);
    }
    *out = (trial){.pid = child, .fd = ends[0]};
    return DP_OK;
}

/* All at once, each heard. The first that is not DP_OK. */
static dp_status try_all(const char *path, const uint32_t *devices, uint32_t n, uint32_t timeout_ms,
                         dp_why *why)
{
    trial trials[DP_PLUGIN_DEVICES_MAX];
    const uint64_t deadline = now_ms() + (uint64_t)DP_PLUGIN_CHECK_PARTS * timeout_ms;
    dp_status status = DP_OK;
    uint32_t begun = 0;
    while (begun < n && status == DP_OK) {
        status = begin_trial(&trials[begun], path, devices[begun], why);
        begun += status == DP_OK;
    }
    for (uint32_t i = 0; i < begun; i++) {
        dp_why cause = {{0}};
        /* After one that failed the others are ended. */
        const dp_status one =
            hear(&trials[i], path, status == DP_OK ? deadline : 0, timeout_ms, &cause);
        close(trials[i].fd);
        if (one != DP_OK && status == DP_OK) {
            status = n == 1 ? dp_why_set(why, one, "%s", cause.text)
                            : dp_why_set(why, one, "device %u: %.440s", devices[i], cause.text);
        }
    }
    return status;
}

dp_status dp_plugin_try(const char *path, uint32_t device, uint32_t timeout_ms, dp_why *why)
{
    return try_all(path, &device, 1, timeout_ms, why);
}

/* ---- Choosing. */

/* The last of the places where the file is, as installed, as built, beside the program; path names
 * the last one if it is nowhere. */
static bool find(const char *name, const char *folder, char path[PATH_MAX])
{
    static const char *const places[] = {"/../lib/dpnode", "/plugins", ""};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const int size = snprintf(path, PATH_MAX, "%s%s/libdpnode_%s.so", folder, places[i], name);
        if (size > 0 && size < PATH_MAX && access(path, F_OK) == 0) {
            return true;
        }
    }
    return false;
}

/* Digits at *at, which goes behind them. */
static bool read_device(const char **at, uint32_t *device)
{
    const size_t digits = strspn(*at, "0123456789");
    if (digits == 0 || digits > DEVICE_DIGITS_MAX) {
        return false;
    }
    *device = 0;
    for (size_t i = 0; i < digits; i++) {
        *device = 10 * *device + (uint32_t)((*at)[i] - '0');
    }
    *at += digits;
    return true;
}

/* One more; false for one that is there already, or too many. */
static bool add_device(dp_plugin_choice *to, uint32_t device)
{
    bool known = to->n_devices == DP_PLUGIN_DEVICES_MAX;
    for (uint32_t i = 0; i < to->n_devices && !known; i++) {
        known = to->devices[i] == device;
    }
    if (!known) {
        to->devices[to->n_devices++] = device;
    }
    return !known;
}

/* "cuda:0,cuda:1" or "cuda:0,1" as name and devices. False: the text after the colon is no list of
 * device numbers. */
static bool split(const char *wanted, char name[NAME_MAX + 1], dp_plugin_choice *out)
{
    const char *const colon = strchr(wanted, ':');
    const size_t size = colon != NULL ? (size_t)(colon - wanted) : strlen(wanted);
    out->n_devices = 0;
    if (size > NAME_MAX) {
        return false;
    }
    memcpy(name, wanted, size);
    name[size] = '\0';
    if (colon == NULL) {
        return add_device(out, 0);
    }
    const char *at = colon + 1;
    for (;;) {
        uint32_t device;
        if (!read_device(&at, &device) || !add_device(out, device)) {
            return false;
        }
        if (*at == '\0') {
            return true;
        }
        if (*at++ != ',') {
            return false;
        }
        if (strncmp(at, wanted, size + 1) == 0) { /* The name again, and its colon. */
            at += size + 1;
        }
    }
}

uint32_t dp_plugin_count(const char *wanted)
{
    char name[NAME_MAX + 1];
    dp_plugin_choice found;
    return strchr(wanted, '/') == NULL && split(wanted, name, &found) ? found.n_devices : 1;
}

/* The file of the backend, to out->path, and its devices. */
static dp_status find_wanted(dp_plugin_choice *out, const char *wanted, const char *folder,
                             dp_why *why)
{
    char name[NAME_MAX + 1] = "";
    if (strchr(wanted, '/') != NULL) {
        const size_t size = strlen(wanted);
        out->n_devices = 1;
        out->devices[0] = 0;
        if (size >= sizeof out->path) {
            return dp_why_set(why, DP_BADARG, "'%.100s...' is too long for a path", wanted);
        }
        memcpy(out->path, wanted, size + 1);
        return DP_OK;
    }
    if (!split(wanted, name, out)) {
        return dp_why_set(why, DP_BADARG,
                          "'%.100s' names no backend; cuda:1 is its device 1, and cuda:0,1 two",
                          wanted);
    }
    const bool automatic = strcmp(name, "auto") == 0;
    if (!find(automatic ? "cuda" : name, folder, out->path)) {
        return automatic
                   ? DP_NOTFOUND
                   : dp_why_set(
                         why, DP_NOTFOUND,
                         "the backend '%s' is not installed: %.300s is not there, nor in plugins "
                         "or ../lib/dpnode beside it",
                         name, out->path);
    }
    return DP_OK;
}

static dp_status choose(dp_plugin_choice *out, const char *wanted, const char *folder,
                        uint32_t timeout_ms, dp_why *why)
{
    DP_TRY(find_wanted(out, wanted, folder, why));
    DP_TRY(try_all(out->path, out->devices, out->n_devices, timeout_ms, why));
    const dp_backend *backend = NULL;
    DP_TRY(dp_plugin_load(out->path, &backend, why));
    dp_assert(backend != NULL);
    if (out->n_devices > 1 && backend->parts == NULL) {
        return dp_why_set(why, DP_UNSUPPORTED, "the backend '%s' trains on one device alone",
                          backend->name);
    }
    dp_device device;
    DP_TRY(backend->device(out->devices[0], &device, why));
    out->device = out->devices[0];
    device.name[sizeof device.name - 1] = '\0';
    DP_IGNORE(out->n_devices > 1
                  ? dp_why_set(why, DP_OK, "%u cards compute (%s), the first is %s", out->n_devices,
                               backend->name, device.name)
                  : dp_why_set(why, DP_OK, "%s computes (%s)", device.name, backend->name));
    out->backend = backend;
    return DP_OK;
}

void dp_plugin_choose(dp_plugin_choice *out, const char *wanted, const char *folder,
                      uint32_t timeout_ms)
{
    *out = (dp_plugin_choice){.backend = dp_backend_cpu()};
    if (strcmp(wanted, "cpu") == 0) {
        return;
    }
    dp_why why = {{0}};
    const dp_status status = choose(out, wanted, folder, timeout_ms, &why);
    if (status == DP_OK) {
        out->line = why;
        return;
    }
    *out = (dp_plugin_choice){.backend = dp_backend_cpu()};
    out->missed = strcmp(wanted, "auto") != 0;
    if (why.text[0] != '\0') {
        DP_IGNORE(dp_why_set(&out->line, status, "%.440s; the CPU computes instead", why.text));
    }
}

/* Plugins lie beside this program; "." where that cannot be read. */
static void own_folder(char path[PATH_MAX])
{
    const ssize_t size = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[size > 0 ? size : 0] = '\0';
    char *const slash = strrchr(path, '/');
    if (slash != NULL) {
        *slash = '\0';
    } else {
        memcpy(path, ".", sizeof ".");
    }
}

void dp_plugin_yield(dp_plugin_choice *out, const char *wanted)
{
    dp_device device = {.taken = false};
    if (strcmp(wanted, "auto") != 0 || out->path[0] == '\0' ||
        out->backend->device(out->device, &device, NULL) != DP_OK || !device.taken) {
        return;
    }
    device.name[sizeof device.name - 1] = '\0';
    *out = (dp_plugin_choice){.backend = dp_backend_cpu()};
    DP_IGNORE(dp_why_set(&out->line, DP_BUSY,
                         "another trainer of dpnode on this machine has %s; the CPU computes "
                         "instead",
                         device.name));
}

void dp_plugin_tell_card(dp_plugin_choice *out, const char *wanted, const char *root)
{
    static const char *const cards[] = {"/dev/nvidiactl", "/dev/dxg"}; /* Linux, and WSL */
    if (strcmp(wanted, "auto") != 0 || out->path[0] != '\0' || out->line.text[0] != '\0') {
        return;
    }
    for (size_t i = 0; i < sizeof cards / sizeof cards[0]; i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%.512s%s", root, cards[i]);
        if (access(path, F_OK) == 0) {
            DP_IGNORE(dp_why_set(
                &out->line, DP_NOTFOUND,
                "this machine has a card (%s), and libdpnode_cuda.so is neither beside "
                "dpnode-worker nor in plugins or ../lib/dpnode there: it is built where cmake "
                "finds nvcc; the CPU computes instead",
                cards[i]));
            return;
        }
    }
}

void dp_plugin_choose_own(dp_plugin_choice *out, const char *wanted, uint32_t timeout_ms)
{
    char folder[PATH_MAX];
    own_folder(folder);
    dp_plugin_choose(out, wanted, folder, timeout_ms);
    dp_plugin_tell_card(out, wanted, "");
}
