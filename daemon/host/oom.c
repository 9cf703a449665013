#include "daemon/host/oom.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

enum {
    LINE_BYTES = PATH_MAX + 256, /* of /proc/<pid>/cgroup: a path and its controllers */
    LINES_MAX = 1024             /* of each file; /proc/vmstat has about 200 */
};

const dp_oom_place dp_oom_own = {
    .groups = "/proc/self/cgroup", .root = "/sys/fs/cgroup", .vmstat = "/proc/vmstat"};

/* The number in the line "oom_kill N". */
static bool read_count(const char *path, uint64_t *kills)
{
    static const char key[] = "oom_kill ";
    char line[128];
    bool found = false;
    FILE *file = fopen(path, "re");
    for (int i = 0; file != NULL && i < LINES_MAX && !found && fgets(line, sizeof line, file);
         i++) {
        const char *const digits = line + sizeof key - 1;
        if (strncmp(line, key, sizeof key - 1) == 0 && *digits >= '0' && *digits <= '9') {
            *kills = strtoull(digits, NULL, 10); /* UINT64_MAX if it is larger. */
            found = true;
        }
    }
    if (file != NULL) {
        DP_IGNORE(fclose(file) != 0); /* only read */
    }
    return found;
}

/* Reads it in the folder of this group, or, if that is not visible, as in a container, in the
 * visible one. */
static bool read_group(const char *mount, const char *group, const char *name, uint64_t *kills)
{
    char path[LINE_BYTES + PATH_MAX];
    const int length = snprintf(path, sizeof path, "%s%s/%s", mount, group, name);
    if (length < 0 || (size_t)length >= sizeof path) {
        return false;
    }
    if (read_count(path, kills)) {
        return true;
    }
    snprintf(path, sizeof path, "%s/%s", mount, name);
    return read_count(path, kills);
}

/* A line "4:cpu,memory:/group" (version 1) or "0::/group" (version 2); the call overwrites it. */
static bool read_line(char *line, const char *root, uint64_t *kills)
{
    char *controllers = strchr(line, ':');
    char *group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    if (group == NULL || group[1] != '/') {
        return false;
    }
    *group++ = '\0';
    controllers++;
    group[strcspn(group, "\n")] = '\0';
    if (*controllers == '\0') {
        return read_group(root, group, "memory.events", kills);
    }
    char mount[PATH_MAX];
    const int length = snprintf(mount, sizeof mount, "%s/memory", root);
    return strstr(controllers, "memory") != NULL && length > 0 && length < (int)sizeof mount &&
           read_group(mount, group, "memory.oom_control", kills);
}

bool dp_oom_kills(const dp_oom_place *place, uint64_t *kills)
{
    char line[LINE_BYTES];
    bool found = false;
    FILE *file = fopen(place->groups, "re");
    for (int i = 0; file != NULL && i < LINES_MAX && !found && fgets(line, sizeof line, file);
         i++) {
        found = read_line(line, place->root, kills);
    }
    if (file != NULL) {
        DP_IGNORE(fclose(file) != 0); /* only read */
    }
    return found || read_count(place->vmstat, kills);
}

void dp_oom_begin(dp_oom *oom, const dp_oom_place *place, uint64_t now_ms)
{
    *oom = (dp_oom){.looked_ms = now_ms};
    oom->known[1] = dp_oom_kills(place, &oom->kills[1]);
    oom->known[0] = oom->known[1];
    oom->kills[0] = oom->kills[1];
}

void dp_oom_look(dp_oom *oom, const dp_oom_place *place, uint64_t now_ms)
{
    if (now_ms - oom->looked_ms < DP_OOM_LOOK_MS) {
        return;
    }
    oom->looked_ms = now_ms;
    oom->known[0] = oom->known[1];
    oom->kills[0] = oom->kills[1];
    oom->known[1] = dp_oom_kills(place, &oom->kills[1]);
}

bool dp_oom_happened(const dp_oom *oom, const dp_oom_place *place)
{
    uint64_t kills = 0;
    return oom->known[0] && dp_oom_kills(place, &kills) && kills > oom->kills[0];
}
