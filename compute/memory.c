#include "compute/memory.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

enum { LINE_BYTES = PATH_MAX + 256, LINES_MAX = 256 };

/* A limit of 0 is none; so is one that no machine reaches, which v1 writes where there is none. */
static uint64_t lesser(uint64_t a, uint64_t b)
{
    if (b == 0 || b >= (uint64_t)1 << 60) {
        return a;
    }
    return a == 0 || b < a ? b : a;
}

uint64_t dp_memory_available(const char *meminfo)
{
    char line[256];
    uint64_t bytes = 0;
    FILE *file = fopen(meminfo, "re");
    if (file == NULL) {
        return 0;
    }
    static const char key[] = "MemAvailable:";
    for (size_t i = 0; i < LINES_MAX && fgets(line, sizeof line, file) != NULL; i++) {
        if (strncmp(line, key, sizeof key - 1) == 0) {
            const uint64_t kib = strtoull(line + sizeof key - 1, NULL, 10);
            bytes = kib > UINT64_MAX / 1024 ? 0 : kib * 1024;
            break;
        }
    }
    DP_IGNORE(fclose(file) != 0); /* only read */
    return bytes;
}

/* The number in <root><middle><group>/<name>; 0 for "max" or no such file. */
static uint64_t number_in(const char *root, const char *middle, const char *group, const char *name)
{
    char path[2 * LINE_BYTES];
    char text[64] = "";
    const int length = snprintf(path, sizeof path, "%s%s%s/%s", root, middle, group, name);
    FILE *file = length < 0 || (size_t)length >= sizeof path ? NULL : fopen(path, "re");
    if (file == NULL) {
        return 0;
    }
    const bool read = fgets(text, sizeof text, file) != NULL;
    DP_IGNORE(fclose(file) != 0); /* only read */
    return read ? strtoull(text, NULL, 10) : 0;
}

/* "0::/group" (v2) or "7:memory:/group" (v1); other lines have no limit of memory. */
static uint64_t limit_of_line(char *line, const char *root)
{
    char *const controllers = strchr(line, ':');
    char *const group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    if (group == NULL || group[1] != '/') {
        return 0;
    }
    *group = '\0';
    char *const path = group + 1;
    path[strcspn(path, "\n")] = '\0';
    const bool unified = controllers[1] == '\0';
    if (!unified && strcmp(controllers + 1, "memory") != 0) {
        return 0;
    }
    uint64_t least = 0;
    for (char *slash = path + strlen(path); slash != NULL; slash = strrchr(path, '/')) {
        *slash = '\0'; /* Each turn the path loses a name. */
        least = lesser(least, unified ? number_in(root, "", path, "memory.max")
                                      : number_in(root, "/memory", path, "memory.limit_in_bytes"));
    }
    return least;
}

uint64_t dp_memory_limit(const char *groups, const char *root)
{
    char line[LINE_BYTES];
    uint64_t least = 0;
    FILE *file = fopen(groups, "re");
    if (file == NULL) {
        return 0;
    }
    for (size_t i = 0; i < LINES_MAX && fgets(line, sizeof line, file) != NULL; i++) {
        least = lesser(least, limit_of_line(line, root));
    }
    DP_IGNORE(fclose(file) != 0); /* only read */
    return least;
}

uint64_t dp_memory_usable(void)
{
    const uint64_t limit = dp_memory_limit("/proc/self/cgroup", "/sys/fs/cgroup");
    return lesser(dp_memory_available("/proc/meminfo"), limit) / 10 * 9;
}
