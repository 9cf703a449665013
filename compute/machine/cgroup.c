#include "compute/machine/cgroup.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

enum {
    LINE_BYTES = PATH_MAX + 256, /* of /proc/<pid>/cgroup: a path and its controllers */
    GROUPS_MAX = 64              /* lines of it: there are about a dozen controllers */
};

const dp_cgroup_place dp_cgroup_own = {.groups = "/proc/self/cgroup", .root = "/sys/fs/cgroup"};

uint64_t dp_cgroup_lesser(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

void dp_cgroup_line(const char *folder, const char *name, char line[DP_CGROUP_LINE_MAX])
{
    char path[LINE_BYTES + PATH_MAX];
    line[0] = '\0';
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = length < 0 || (size_t)length >= sizeof path ? NULL : fopen(path, "re");
    if (file == NULL) {
        return;
    }
    if (fgets(line, DP_CGROUP_LINE_MAX, file) == NULL) {
        line[0] = '\0';
    }
    DP_IGNORE(fclose(file) != 0); /* only read */
}

/* The least limit of a group and those above it. group: "/a/b" or "/". */
static uint64_t least_of_group(const char *mount, const char *group, dp_cgroup_limit *limit)
{
    char folder[LINE_BYTES + PATH_MAX];
    uint64_t least = 0;
    const size_t root = strlen(mount);
    const int length = snprintf(folder, sizeof folder, "%s%s", mount, group);
    if (length < 0 || (size_t)length >= sizeof folder) {
        return 0;
    }
    for (char *slash = folder + length; slash != NULL; slash = strrchr(folder + root, '/')) {
        *slash = '\0'; /* Each turn the path loses a name. */
        least = dp_cgroup_lesser(least, limit(folder));
    }
    return least;
}

/* True when the comma-separated list has the word. */
static bool has_word(const char *list, const char *word)
{
    const size_t size = strlen(word);
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, size) == 0 && (at[size] == ',' || at[size] == '\0')) {
            return true;
        }
    }
    return false;
}

/* A line "4:cpu,cpuacct:/group" (version 1) or "0::/group" (version 2); is spoiled. */
static uint64_t least_of_line(char *line, const char *root, const char *controller,
                              dp_cgroup_limit *limit)
{
    char *controllers = strchr(line, ':');
    char *group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    if (group == NULL || group[1] != '/') {
        return 0;
    }
    *group++ = '\0';
    controllers++;
    group[strcspn(group, "\n")] = '\0';
    if (*controllers == '\0') {
        return least_of_group(root, group, limit);
    }
    if (!has_word(controllers, controller)) {
        return 0;
    }
    /* Mounted under all its names, and usually linked to from each. */
    const char *const names[] = {controllers, controller};
    uint64_t least = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char mount[PATH_MAX];
        const int length = snprintf(mount, sizeof mount, "%s/%s", root, names[i]);
        if (length > 0 && (size_t)length < sizeof mount) {
            least = dp_cgroup_lesser(least, least_of_group(mount, group, limit));
        }
    }
    return least;
}

uint64_t dp_cgroup_min(const dp_cgroup_place *place, const char *controller, dp_cgroup_limit *limit)
{
    char line[LINE_BYTES];
    uint64_t least = 0;
    FILE *file = fopen(place->groups, "re");
    if (file == NULL) {
        return 0;
    }
    for (size_t i = 0; i < GROUPS_MAX && fgets(line, sizeof line, file) != NULL; i++) {
        least = dp_cgroup_lesser(least, least_of_line(line, place->root, controller, limit));
    }
    DP_IGNORE(fclose(file) != 0); /* only read */
    return least;
}
