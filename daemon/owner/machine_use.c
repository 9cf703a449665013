#include "daemon/owner/machine_use.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "daemon/owner/machine_process.h"

enum {
    PATH_BYTES = 512,
    TEXT_BYTES = 4096,
    SUPPLIES_MAX = 64,
    TERMINALS_MAX = 1024,
    PROCESSES_MAX = 16384
};

/* The first word of a file below a folder. */
static bool read_word(const char *folder, const char *name, const char *file, char word[32])
{
    char path[PATH_BYTES];
    char text[64];
    const int size = snprintf(path, sizeof path, "%s/%s/%s", folder, name, file);
    word[0] = '\0';
    return size > 0 && (size_t)size < sizeof path &&
           dp_machine_file_read(path, text, sizeof text) && sscanf(text, "%31s", word) == 1;
}

/* ---- power ---- */

typedef struct supplies {
    unsigned mains;
    unsigned batteries; /* of the machine */
    unsigned online;
    unsigned discharging;
    unsigned odd;
} supplies;

static void add_supply(supplies *found, const char *folder, const char *name)
{
    char type[32];
    char word[32];
    if (!read_word(folder, name, "type", type)) {
        found->odd++;
        return;
    }
    if (strcmp(type, "Battery") == 0) {
        if (read_word(folder, name, "scope", word) && strcmp(word, "Device") == 0) {
            return; /* of a mouse, not of the machine */
        }
        found->batteries++;
        found->odd += read_word(folder, name, "status", word) ? 0 : 1;
        found->discharging += strcmp(word, "Discharging") == 0 ? 1 : 0;
        return;
    }
    if (strncmp(type, "Mains", 5) == 0 || strncmp(type, "USB", 3) == 0) {
        found->mains++;
        if (!read_word(folder, name, "online", word) || strlen(word) != 1 || word[0] < '0' ||
            word[0] > '2') {
            found->odd++;
        } else {
            found->online += word[0] != '0' ? 1 : 0;
        }
    }
}

static dp_machine_power look_at_power(const char *root)
{
    char folder[PATH_BYTES];
    supplies found = {0};
    snprintf(folder, sizeof folder, "%s/sys/class/power_supply", root);
    DIR *const dir = opendir(folder);
    const struct dirent *entry;
    if (dir == NULL) {
        return errno == ENOENT ? DP_MACHINE_POWER_MAINS : DP_MACHINE_POWER_UNKNOWN;
    }
    unsigned n = 0;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): a directory of this function alone */
    while ((entry = readdir(dir)) != NULL && n < SUPPLIES_MAX) {
        if (entry->d_name[0] != '.') {
            add_supply(&found, folder, entry->d_name);
            n++;
        }
    }
    closedir(dir);
    if (found.online > 0) {
        return DP_MACHINE_POWER_MAINS;
    }
    if (found.odd > 0) {
        return DP_MACHINE_POWER_UNKNOWN;
    }
    /* A free USB-C port of a machine without a battery is a supply that is not online. */
    return (found.mains > 0 && found.batteries > 0) || found.discharging > 0
               ? DP_MACHINE_POWER_BATTERY
               : DP_MACHINE_POWER_MAINS;
}

/* ---- load ---- */

static bool read_totals(const char *root, uint64_t *busy, uint64_t *all)
{
    char path[PATH_BYTES];
    char text[TEXT_BYTES];
    unsigned long long t[8] = {0};
    snprintf(path, sizeof path, "%s/proc/stat", root);
    /* user nice system idle iowait irq softirq steal; guest times are in user */
    if (!dp_machine_file_read(path, text, sizeof text) ||
        sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", /* NOLINT(cert-err34-c) */
               &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]) < 4) {
        return false;
    }
    *busy = t[0] + t[1] + t[2] + t[5] + t[6];
    *all = *busy + t[3] + t[4] + t[7];
    return true;
}

typedef struct process {
    dp_machine_process is;
    bool own;
} process;

static uint32_t read_processes(const char *root, process *all, uint32_t self, uint32_t script)
{
    char folder[PATH_BYTES];
    uint32_t n = 0;
    snprintf(folder, sizeof folder, "%s/proc", root);
    DIR *const dir = opendir(folder);
    const struct dirent *entry;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): a directory of this function alone */
    while (dir != NULL && (entry = readdir(dir)) != NULL && n < PROCESSES_MAX) {
        if (isdigit((unsigned char)entry->d_name[0]) &&
            dp_machine_process_read(root, entry->d_name, &all[n].is)) {
            all[n].own = all[n].is.pid == self || (script != 0 && all[n].is.pid == script);
            n++;
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return n;
}

static bool has_own_parent(const process *all, uint32_t n, uint32_t parent)
{
    for (uint32_t i = 0; i < n; i++) {
        if (all[i].own && all[i].is.pid == parent) {
            return true;
        }
    }
    return false;
}

/* The ticks of self, of the script, and of their descendants. False: no memory, or self is not
 * there. */
static bool read_own(const char *root, uint32_t self, uint32_t script, uint64_t *ticks)
{
    process *const all = dp_alloc(PROCESSES_MAX, sizeof *all);
    bool any = false;
    *ticks = 0;
    if (all == NULL) {
        return false;
    }
    const uint32_t n = read_processes(root, all, self, script);
    bool more = true;
    for (int depth = 0; more && depth < DP_MACHINE_PROCESS_DEPTH_MAX; depth++) {
        more = false;
        for (uint32_t i = 0; i < n; i++) {
            if (!all[i].own && has_own_parent(all, n, all[i].is.parent)) {
                all[i].own = true;
                more = true;
            }
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        *ticks += all[i].own ? all[i].is.ticks : 0;
        any = any || all[i].own;
    }
    dp_free(all);
    return any;
}

static void look_at_load(dp_machine_use *use, const char *root, uint32_t self, uint32_t script)
{
    uint64_t busy = 0;
    uint64_t all = 0;
    uint64_t own = 0;
    use->has_load = false;
    if (!read_totals(root, &busy, &all) || !read_own(root, self, script, &own)) {
        use->has_before = false;
        return;
    }
    if (use->has_before && all > use->all && busy >= use->busy) {
        /* A script that has ended takes its time with it. */
        const uint64_t mine = own > use->own ? own - use->own : 0;
        const uint64_t worked = busy - use->busy;
        const uint64_t others = worked > mine ? worked - mine : 0;
        use->has_load = true;
        use->others_milli = (uint32_t)(others * 1000 / (all - use->all));
    }
    use->busy = busy;
    use->all = all;
    use->own = own;
    use->has_before = true;
}

/* ---- input ---- */

/* The newest access to a file of the folder whose name is prefix and a number from least on. */
static uint64_t newest_access(const char *folder, const char *prefix, unsigned long least)
{
    uint64_t newest = 0;
    unsigned n = 0;
    DIR *const dir = opendir(folder);
    const struct dirent *entry;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): a directory of this function alone */
    while (dir != NULL && (entry = readdir(dir)) != NULL && n < TERMINALS_MAX) {
        struct stat about;
        const char *const number = entry->d_name + strlen(prefix);
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
            isdigit((unsigned char)number[0]) && strtoul(number, NULL, 10) >= least &&
            fstatat(dirfd(dir), entry->d_name, &about, 0) == 0) {
            const uint64_t at = (uint64_t)about.st_atime;
            newest = at > newest ? at : newest;
            n++;
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return newest;
}

/* The interrupts of i8042 at all processors. False: there is no such controller. */
static bool read_interrupts(const char *root, uint64_t *count)
{
    char path[PATH_BYTES];
    char *const text = dp_alloc(1, 65536);
    bool any = false;
    *count = 0;
    if (text == NULL) {
        return false;
    }
    snprintf(path, sizeof path, "%s/proc/interrupts", root);
    text[0] = '\0';
    DP_IGNORE(!dp_machine_file_read(path, text, 65536)); /* Then there is no line. */
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        const char *at = strchr(line, ':');
        if (at == NULL || strstr(line, "i8042") == NULL) {
            continue;
        }
        any = true;
        char *end = NULL;
        for (at++; isdigit((unsigned char)at[strspn(at, " ")]); at = end) {
            *count += strtoull(at, &end, 10);
        }
    }
    dp_free(text);
    return any;
}

static void look_at_input(dp_machine_use *use, const char *root, uint64_t unix_s)
{
    char folder[PATH_BYTES];
    uint64_t interrupts = 0;
    snprintf(folder, sizeof folder, "%s/dev", root);
    uint64_t newest = newest_access(folder, "tty", 1);
    snprintf(folder, sizeof folder, "%s/dev/pts", root);
    const uint64_t remote = newest_access(folder, "", 0);
    newest = remote > newest ? remote : newest;
    const bool keys = read_interrupts(root, &interrupts);
    if (keys && interrupts > use->interrupts && use->interrupts > 0) {
        use->typed_s = unix_s;
    }
    use->interrupts = interrupts;
    newest = use->typed_s > newest ? use->typed_s : newest;
    use->has_input = newest > 0 || keys;
    use->input_s = newest > unix_s ? 0 : unix_s - newest;
}

void dp_machine_use_look(dp_machine_use *use, const char *root, uint32_t self, uint32_t script,
                         uint64_t unix_s)
{
    use->power = look_at_power(root);
    look_at_load(use, root, self, script);
    look_at_input(use, root, unix_s);
}

void dp_machine_busy_pass(dp_machine_busy *busy, const dp_machine_use *use, uint64_t now_s)
{
    busy->input = use->has_input && use->input_s < DP_MACHINE_INPUT_S;
    if (use->has_load && use->others_milli >= DP_MACHINE_CALM_MILLI) {
        busy->loud_s = now_s;
    }
    busy->load = (use->has_load && use->others_milli > DP_MACHINE_BUSY_MILLI) ||
                 (busy->load && now_s - busy->loud_s < DP_MACHINE_CALM_S);
}
