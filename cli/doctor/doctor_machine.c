/* Checks of the machine: programs, processors, memory, device, limits of the system, clock,
 * network. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"
#include "cli/json.h"
#include "cli/print.h"

enum {
    /* for a node with few links: each needs two, the store and the trainer some more */
    FILES_LEAST = 128,
    FILES_WANTED = 1024,
    CARDS_TEXT_MAX = 160,
    BUSY_LEAST = 20,  /* percent; the display of a desktop uses less */
    CELSIUS_MAX = 87, /* temperature at which cards begin to slow down */
    SKEW_MS_MAX = 5000,
    SKEW_ROUNDS = 20
};
#define MEMORY_LEAST ((uint64_t)128 << 20)
#define MEMORY_WANTED ((uint64_t)1 << 30)
#define SHM_WANTED ((uint64_t)64 << 20)
#define YEAR_2026_MS ((uint64_t)1767225600000)

/* ---- findings ---- */

void dp_finding_what(dp_finding *out, dp_finding_level level, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    out->level = level;
    vsnprintf(out->what, sizeof out->what, format, arguments);
    va_end(arguments);
}

void dp_finding_why(dp_finding *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out->why, sizeof out->why, format, arguments);
    va_end(arguments);
}

void dp_finding_fix(dp_finding *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out->fix, sizeof out->fix, format, arguments);
    va_end(arguments);
}

const char *dp_finding_level_name(dp_finding_level level)
{
    switch (level) {
    case DP_FINDING_NONE:
        return "none";
    case DP_FINDING_OK:
        return "ok";
    case DP_FINDING_WARN:
        return "warn";
    case DP_FINDING_FAIL:
        break;
    }
    return "fail";
}

/* ---- programs ---- */

static void look_program(const dp_doctor *doctor, const char *name, const json_t *told,
                         const char *why, dp_finding *out)
{
    const char *const version = dp_json_text(told, "version", "?");
    if (told == NULL) {
        dp_finding_what(out, DP_FINDING_FAIL, "%s does not answer", name);
        dp_finding_why(out, "%s", why);
        dp_finding_fix(out, "install %s beside dpnode, or add its folder to PATH", name);
    } else if (strcmp(version, doctor->version) != 0) {
        dp_finding_what(out, DP_FINDING_FAIL, "%s has version %.32s, dpnode has %s", name, version,
                        doctor->version);
        dp_finding_why(out, "their protocol may differ");
        dp_finding_fix(out, "install all programs from one release");
    } else {
        dp_finding_what(out, DP_FINDING_OK, "%s %s", name, version);
    }
}

static void look_worker(const dp_doctor *doctor, dp_finding *out)
{
    look_program(doctor, "dpnode-worker", doctor->worker, doctor->worker_why, out);
}

static void look_daemon(const dp_doctor *doctor, dp_finding *out)
{
    look_program(doctor, "dpnoded", doctor->check, doctor->check_why, out);
    const char *const runs = dp_json_text(doctor->status, "version", doctor->version);
    if (out->level == DP_FINDING_OK && strcmp(runs, doctor->version) != 0) {
        dp_finding_what(out, DP_FINDING_WARN, "the running daemon has version %.32s", runs);
        dp_finding_why(out, "it was started before dpnoded %s was installed", doctor->version);
        dp_finding_fix(out, "dpnode down; dpnode up");
    }
}

/* ---- devices that compute ---- */

/* The trainer's processes, if more than one are set. */
static void look_processes(const dp_doctor *doctor, dp_finding *out)
{
    const long long usable = dp_json_int(doctor->worker, "threads", 1);
    const long long processes = dp_json_int(doctor->check, "processes", 1);
    if (processes <= usable) {
        dp_finding_what(out, DP_FINDING_OK, "%s kernels, %lld processors for %lld processes",
                        dp_json_text(doctor->worker, "kernels", "?"), usable, processes);
        return;
    }
    dp_finding_what(out, DP_FINDING_WARN,
                    "%lld processes are configured, %lld processors are available", processes,
                    usable);
    dp_finding_why(out, "each process needs a processor, and all wait for the slowest one");
    dp_finding_fix(out, "dpnoded --processes 1   # or one per CPU socket");
}

static void look_cpu(const dp_doctor *doctor, dp_finding *out)
{
    if (doctor->worker == NULL) {
        return;
    }
    const char *const kernels = dp_json_text(doctor->worker, "kernels", "?");
    const long long cpus = dp_json_int(doctor->worker, "cpus", 1);
    const long long quota = dp_json_int(doctor->worker, "quota", 0);
    const long long usable = dp_json_int(doctor->worker, "threads", 1);
    const long long wanted = dp_json_int(doctor->check, "threads", 0);
    dp_finding_what(out, DP_FINDING_OK, "%s kernels, %lld of %lld processors", kernels, usable,
                    cpus);
    if (wanted > usable) {
        dp_finding_what(out, DP_FINDING_WARN,
                        "%lld threads are configured, %lld processors are available", wanted,
                        usable);
        dp_finding_why(out, quota > 0 && quota < cpus
                                ? "the control group grants no more CPU time"
                                : "threads without a processor of their own wait for the others");
        dp_finding_fix(out, "dpnoded --threads 0   # as many as the machine grants");
    } else if (strncmp(kernels, "generic", 7) == 0 || strncmp(kernels, "reference", 9) == 0) {
        out->level = DP_FINDING_WARN;
        dp_finding_why(
            out, "this processor has neither AVX2 nor AVX-512: training is several times slower");
        dp_finding_fix(out, "in a virtual machine: start it with -cpu host");
    } else if (quota > 0 && quota < cpus) {
        dp_finding_what(out, DP_FINDING_OK,
                        "%s kernels, %lld of %lld processors (limit of the control group)", kernels,
                        usable, cpus);
    }
    if (out->level == DP_FINDING_OK && dp_json_int(doctor->check, "processes", 1) > 1) {
        look_processes(doctor, out);
    }
}

static void look_memory(const dp_doctor *doctor, dp_finding *out)
{
    char usable[DP_PRINT_CELL_MAX];
    char limit[DP_PRINT_CELL_MAX];
    const uint64_t bytes = (uint64_t)dp_json_int(doctor->worker, "memory_usable", 0);
    const uint64_t granted = (uint64_t)dp_json_int(doctor->worker, "memory_limit", 0);
    if (doctor->worker == NULL || bytes == 0) {
        return;
    }
    dp_print_bytes(bytes, usable);
    dp_print_bytes(granted, limit);
    const dp_finding_level level = bytes < MEMORY_LEAST    ? DP_FINDING_FAIL
                                   : bytes < MEMORY_WANTED ? DP_FINDING_WARN
                                                           : DP_FINDING_OK;
    dp_finding_what(out, level, "%s available for training%s%s", usable,
                    granted > 0 ? "; limit of the control group: " : "", granted > 0 ? limit : "");
    if (level != DP_FINDING_OK) {
        dp_finding_why(out, "a model takes about 36 bytes for each parameter, and its activations");
        dp_finding_fix(out, "end other programs, or raise the limit; dpnode doctor MANIFEST shows "
                            "the need of a run");
    }
}

/* True if the node's trainer computes on this backend: doctor is another process, and would
 * otherwise report the trainer as a foreign program. */
static bool trains_there(const dp_doctor *doctor, const char *backend)
{
    const char *const device = dp_json_text(json_object_get(doctor->status, "run"), "device", "");
    const size_t size = strlen(backend);
    return strncmp(device, backend, size) == 0 && device[size] == ':';
}

/* Like compute/backend/plugin.c, looks for the driver, on Linux and in WSL. */
static bool has_card(const dp_doctor *doctor)
{
    static const char *const nodes[] = {"/dev/nvidiactl", "/dev/dxg"};
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
        char path[512];
        snprintf(path, sizeof path, "%.400s%s", doctor->root, nodes[i]);
        if (access(path, F_OK) == 0) {
            return true;
        }
    }
    return false;
}

static void look_device(const dp_doctor *doctor, dp_finding *out)
{
    if (doctor->worker == NULL) {
        return;
    }
    char memory[DP_PRINT_CELL_MAX];
    const char *const line = dp_json_text(doctor->worker, "line", "");
    const char *const backend = dp_json_text(doctor->worker, "backend", "?");
    const char *const trains_on =
        dp_json_text(json_object_get(doctor->status, "run"), "device", "");
    const long long celsius = dp_json_int(doctor->worker, "celsius", 0);
    const long long busy = dp_json_int(doctor->worker, "busy_percent", 0);
    dp_print_bytes((uint64_t)dp_json_int(doctor->worker, "device_memory_usable", 0), memory);
    char cards[CARDS_TEXT_MAX] = "";
    const long long n_cards = dp_json_int(doctor->worker, "cards", 0);
    if (n_cards > 1) {
        snprintf(cards, sizeof cards, "; %lld cards, %s", n_cards,
                 dp_json_text(doctor->worker, "link", "?"));
    }
    dp_finding_what(out, DP_FINDING_OK, "%s: %s; %s available%s", backend,
                    dp_json_text(doctor->worker, "device", "?"), memory, cards);
    if (line[0] != '\0' && strcmp(backend, "cpu") == 0 && !has_card(doctor) &&
        strcmp(dp_json_text(doctor->check, "backend", ""), "auto") == 0) {
        dp_finding_what(out, DP_FINDING_OK, "%s: %s; %s available; this machine has no GPU",
                        backend, dp_json_text(doctor->worker, "device", "?"), memory);
    } else if (line[0] != '\0' &&
               strcmp(backend, "cpu") == 0) { /* Otherwise it names the device that computes. */
        out->level = DP_FINDING_WARN;
        dp_finding_why(out, "%s", line);
        dp_finding_fix(out, "dpnoded --backend cpu   # or correct the cause named above");
    } else if (strncmp(trains_on, "cpu:", 4) == 0 && strcmp(backend, "cpu") != 0) {
        out->level = DP_FINDING_WARN;
        dp_finding_why(out,
                       "this node trains on %s: the GPU was busy or not ready when the trainer "
                       "started (dpnode logs tells which)",
                       trains_on);
        dp_finding_fix(out, "dpnode down; dpnode up   # after the other trainer has ended");
    } else if (celsius > CELSIUS_MAX) {
        out->level = DP_FINDING_WARN;
        dp_finding_why(out, "its temperature is %lld degrees Celsius, at which GPUs slow down",
                       celsius);
        dp_finding_fix(out, "check its fans and filters");
    } else if (busy >= BUSY_LEAST && !trains_there(doctor, backend)) {
        out->level = DP_FINDING_WARN;
        dp_finding_why(out, "other programs use %lld %% of it", busy);
        dp_finding_fix(out, "dpnoded --backend %s:1   # another GPU, or end those programs",
                       backend);
    }
}

/* ---- limits of the system ---- */

static void look_files(const dp_doctor *doctor, dp_finding *out)
{
    const dp_finding_level level = doctor->files_max < FILES_LEAST    ? DP_FINDING_FAIL
                                   : doctor->files_max < FILES_WANTED ? DP_FINDING_WARN
                                                                      : DP_FINDING_OK;
    dp_finding_what(out, level, "at most %" PRIu64 " file descriptors per process",
                    doctor->files_max);
    if (level != DP_FINDING_OK) {
        dp_finding_why(out, "each link needs two descriptors; further peers cannot connect");
        dp_finding_fix(out, "ulimit -Hn 8192   # as root, before dpnode up; in a systemd unit: "
                            "LimitNOFILE=8192");
    }
}

static void look_shm(const dp_doctor *doctor, dp_finding *out)
{
    char path[512];
    char text[DP_PRINT_CELL_MAX];
    struct statvfs disk;
    snprintf(path, sizeof path, "%.400s/dev/shm", doctor->root);
    if (statvfs(path, &disk) != 0) {
        dp_finding_what(out, DP_FINDING_WARN, "/dev/shm is missing");
        dp_finding_why(
            out,
            "PyTorch data loaders and the system tests need it; the built-in trainer does not");
        dp_finding_fix(out, "mount -t tmpfs tmpfs /dev/shm");
        return;
    }
    const uint64_t bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    dp_print_bytes(bytes, text);
    dp_finding_what(out, bytes < SHM_WANTED ? DP_FINDING_WARN : DP_FINDING_OK,
                    "%s free in /dev/shm", text);
    if (bytes < SHM_WANTED) {
        dp_finding_why(
            out,
            "PyTorch data loaders and the system tests need more; the built-in trainer does not");
        dp_finding_fix(out, "in a container: --shm-size 1g");
    }
}

/* ---- clock ---- */

/* The time at which this node learned the decision of the round, by its own clock; 0: unknown. */
static int64_t decided_ms(const json_t *events, long long round)
{
    size_t index = 0;
    const json_t *event = NULL;
    json_array_foreach(events, index, event)
    {
        if (strcmp(dp_json_text(event, "name", ""), "round.decided") == 0 &&
            dp_json_int(event, "round", -1) == round) {
            return dp_json_int(event, "time_ms", 0);
        }
    }
    return 0;
}

/* The lead of this clock over those of the records' proposers: the median over the last rounds, few
 * of which were old on arrival. False: there is no round to compare with. */
static bool skew_of(const dp_doctor *doctor, long long *skew_ms)
{
    int64_t skews[SKEW_ROUNDS];
    size_t count = 0;
    size_t index = 0;
    const json_t *round = NULL;
    json_array_foreach(doctor->rounds, index, round)
    {
        const int64_t seen = decided_ms(doctor->events, dp_json_int(round, "round", 0));
        const int64_t written = dp_json_int(round, "time_ms", 0);
        if (seen == 0 || written == 0 || count == SKEW_ROUNDS) {
            continue;
        }
        size_t at = count++;
        for (; at > 0 && skews[at - 1] > seen - written; at--) {
            skews[at] = skews[at - 1];
        }
        skews[at] = seen - written;
    }
    *skew_ms = count > 0 ? skews[count / 2] : 0;
    return count > 0;
}

static void look_clock(const dp_doctor *doctor, dp_finding *out)
{
    const json_t *const clock = json_object_get(json_object_get(doctor->status, "run"), "clock");
    long long skew_ms = 0;
    const bool compared = skew_of(doctor, &skew_ms);
    const long long far = skew_ms < 0 ? -skew_ms : skew_ms;
    if (doctor->now_ms < YEAR_2026_MS) {
        dp_finding_what(out, DP_FINDING_FAIL, "this machine's clock is before 2026");
        dp_finding_why(out, "invites and certificates are checked against it");
        dp_finding_fix(out, "timedatectl set-ntp true");
    } else if (clock != NULL) { /* From the clocks of others in handshakes. */
        dp_finding_what(out, DP_FINDING_WARN, "%s", dp_json_text(clock, "text", ""));
        dp_finding_why(out, "a node whose clock is far off finds its certificates expired or not "
                            "yet valid, and no peer accepts it");
        dp_finding_fix(out, "timedatectl set-ntp true   # on the machine whose clock is wrong");
    } else if (compared && far > SKEW_MS_MAX) {
        dp_finding_what(out, DP_FINDING_WARN, "this clock is %lld s %s those of the run",
                        (far + 500) / 1000, skew_ms < 0 ? "behind" : "before");
        dp_finding_why(
            out, "invites and certificates expire at another time here than on the other nodes");
        dp_finding_fix(out, "timedatectl set-ntp true");
    } else if (!doctor->clock_synchronised) {
        dp_finding_what(out, DP_FINDING_WARN, "this machine's clock is not synchronized");
        dp_finding_why(out, "the kernel reports no synchronization, so the clock drifts; invites "
                            "and certificates are checked against it");
        dp_finding_fix(out, "timedatectl set-ntp true   # or: apt install systemd-timesyncd");
    } else if (compared) {
        dp_finding_what(out, DP_FINDING_OK, "synchronized; within %lld ms of the run", far);
    } else {
        dp_finding_what(out, DP_FINDING_OK, "synchronised");
    }
}

/* ---- network ---- */

static void read_word(const dp_doctor *doctor, const char *name, char *text, size_t size)
{
    char path[512];
    snprintf(path, sizeof path, "%.400s/proc/sys/net/ipv4/%s", doctor->root, name);
    FILE *const file = fopen(path, "re");
    text[0] = '\0';
    if (file == NULL) {
        return;
    }
    if (fgets(text, (int)size, file) == NULL) {
        text[0] = '\0';
    }
    DP_IGNORE(fclose(file) != 0); /* only read */
    text[strcspn(text, "\n")] = '\0';
}

static void look_congestion(const dp_doctor *doctor, dp_finding *out)
{
    char used[64];
    char known[256];
    read_word(doctor, "tcp_congestion_control", used, sizeof used);
    read_word(doctor, "tcp_available_congestion_control", known, sizeof known);
    if (used[0] == '\0') {
        return; /* The system does not report it. */
    }
    if (strcmp(used, "bbr") == 0) {
        dp_finding_what(out, DP_FINDING_OK, "TCP uses bbr");
        return;
    }
    dp_finding_what(out, DP_FINDING_WARN, "TCP uses %s", used);
    dp_finding_why(out,
                   "on a line with 50 ms and 0.1 %% packet loss, bbr is many times faster; on a "
                   "clean line, the others restart slowly after each of a round's two pauses");
    dp_finding_fix(out, "%ssysctl -w net.ipv4.tcp_congestion_control=bbr",
                   strstr(known, "bbr") == NULL ? "modprobe tcp_bbr; " : "");
}

const dp_doctor_check *dp_doctor_machine(size_t *count)
{
    static const dp_doctor_check checks[] = {
        {"worker", look_worker}, {"daemon", look_daemon},         {"cpu", look_cpu},
        {"memory", look_memory}, {"device", look_device},         {"files", look_files},
        {"shm", look_shm},       {"congestion", look_congestion}, {"clock", look_clock},
    };
    *count = sizeof checks / sizeof checks[0];
    return checks;
}
