#include "compute/plugin.h"

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
#include "compute/backend_check.h"
#include "compute/backend_cpu.h"

enum { DEVICE_DIGITS_MAX = 3 };

/* What the process that tries a plugin reports. */
typedef struct verdict {
    dp_status status;
    dp_why why;
} verdict;

/* ---- Loading. */

/* Every call is there. The functions follow one another at the end of the table. */
static bool is_whole(const dp_backend *b)
{
    const size_t first = offsetof(dp_backend, devices);
    for (size_t at = first; at < sizeof *b; at += sizeof(void (*)(void))) {
        void (*call)(void);
        memcpy(&call, (const char *)b + at, sizeof call);
        if (call == NULL) {
            return false;
        }
    }
    return b->name != NULL;
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

static dp_status check_here(const char *path, uint32_t device, dp_why *why)
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
    const dp_status status = dp_backend_check(backend, device, &cause);
    if (status != DP_OK) {
        return dp_why_set(why, status, "%s fails its self-test: %.300s", path,
                          cause.text[0] != '\0' ? cause.text : dp_status_text(status));
    }
    return DP_OK;
}

static void report(int pipe_end, const char *path, uint32_t device)
{
    verdict v = {.status = DP_OK};
    v.status = check_here(path, device, &v.why);
    /* At most PIPE_BUF bytes: written whole or not at all. */
    _Static_assert(sizeof v <= PIPE_BUF, "a verdict fits a pipe");
    DP_IGNORE(write(pipe_end, &v, sizeof v) < 0); /* Then nothing arrives, which says enough. */
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

static dp_status hear(int fd, pid_t child, const char *path, uint32_t timeout_ms, dp_why *why)
{
    verdict v;
    const bool came = wait_for(fd, timeout_ms);
    const bool whole = came && read(fd, &v, sizeof v) == (ssize_t)sizeof v;
    if (!came) {
        DP_IGNORE(kill(child, SIGKILL) != 0); /* It may have ended just now. */
    }
    int ended = 0;
    while (waitpid(child, &ended, 0) < 0 && errno == EINTR) {
    }
    if (!came) {
        return dp_why_set(why, DP_TIMEOUT, "%s has not ended its self-test in %u ms", path,
                          timeout_ms);
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

dp_status dp_plugin_try(const char *path, uint32_t device, uint32_t timeout_ms, dp_why *why)
{
    int ends[2];
    if (pipe(ends) != 0) {
        return dp_why_set(why, DP_IO, "no pipe for the self-test: errno %d", errno);
    }
    const pid_t child = fork();
    if (child == 0) {
        /* Whoever waits for it may be killed. */
        DP_IGNORE(prctl(PR_SET_PDEATHSIG, SIGKILL) != 0);
        close(ends[0]);
        report(ends[1], path, device);
    }
    close(ends[1]);
    dp_status status = DP_IO;
    if (child > 0) {
        status = hear(ends[0], child, path, timeout_ms, why);
    } else {
        status = dp_why_set(why, DP_IO, "no process for the self-test: errno %d", errno);
    }
    close(ends[0]);
    return status;
}

/* ---- Choosing. */

/* The first of the places where the file is; path names the first one if it is nowhere. */
static bool find(const char *name, const char *folder, char path[PATH_MAX])
{
    static const char *const places[] = {"", "/../lib/dpnode"};
    for (size_t i = sizeof places / sizeof places[0]; i-- > 0;) {
        const int size = snprintf(path, PATH_MAX, "%s%s/libdpnode_%s.so", folder, places[i], name);
        if (size > 0 && size < PATH_MAX && access(path, F_OK) == 0) {
            return true;
        }
    }
    return false;
}

/* "cuda:1" as name and device. False: what stands behind the colon is no number of a device. */
static bool split(const char *wanted, char name[NAME_MAX + 1], uint32_t *device)
{
    const char *const colon = strchr(wanted, ':');
    const size_t size = colon != NULL ? (size_t)(colon - wanted) : strlen(wanted);
    if (size > NAME_MAX) {
        return false;
    }
    memcpy(name, wanted, size);
    name[size] = '\0';
    *device = 0;
    if (colon == NULL) {
        return true;
    }
    const size_t digits = strspn(colon + 1, "0123456789");
    if (digits == 0 || digits > DEVICE_DIGITS_MAX || colon[1 + digits] != '\0') {
        return false;
    }
    for (size_t i = 1; i <= digits; i++) {
        *device = 10 * *device + (uint32_t)(colon[i] - '0');
    }
    return true;
}

static dp_status choose(dp_plugin_choice *out, const char *wanted, const char *folder, dp_why *why)
{
    char path[PATH_MAX];
    char name[NAME_MAX + 1] = "";
    const char *file = wanted;
    uint32_t index = 0;
    if (strchr(wanted, '/') == NULL) {
        if (!split(wanted, name, &index)) {
            return dp_why_set(why, DP_BADARG, "'%.100s' names no backend; cuda:1 is its device 1",
                              wanted);
        }
        const bool automatic = strcmp(name, "auto") == 0;
        file = path;
        if (!find(automatic ? "cuda" : name, folder, path)) {
            return automatic ? DP_NOTFOUND
                             : dp_why_set(why, DP_NOTFOUND,
                                          "the backend '%s' is not installed (%.300s is not there)",
                                          name, path);
        }
    }
    DP_TRY(dp_plugin_try(file, index, DP_PLUGIN_CHECK_MS, why));
    const dp_backend *backend = NULL;
    DP_TRY(dp_plugin_load(file, &backend, why));
    dp_assert(backend != NULL);
    dp_device device;
    DP_TRY(backend->device(index, &device, why));
    out->device = index;
    device.name[sizeof device.name - 1] = '\0';
    DP_IGNORE(dp_why_set(why, DP_OK, "%s computes (%s)", device.name, backend->name));
    out->backend = backend;
    return DP_OK;
}

void dp_plugin_choose(dp_plugin_choice *out, const char *wanted, const char *folder)
{
    *out = (dp_plugin_choice){.backend = dp_backend_cpu()};
    if (strcmp(wanted, "cpu") == 0) {
        return;
    }
    dp_why why = {{0}};
    const dp_status status = choose(out, wanted, folder, &why);
    if (status == DP_OK) {
        out->line = why;
        return;
    }
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

void dp_plugin_choose_own(dp_plugin_choice *out, const char *wanted)
{
    char folder[PATH_MAX];
    own_folder(folder);
    dp_plugin_choose(out, wanted, folder);
}
