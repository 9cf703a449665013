#include "compute/machine/memory.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

enum {
    LINES_MAX = 256,
    LEFT_MIN = 64 * 1024 /* a group that has nothing left; 0 would be one without a limit */
};

/* The number after key, which has its separator, at the begin of a line; 0: absent. */
static uint64_t number_after(const char *path, const char *key)
{
    char line[256];
    uint64_t number = 0;
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return 0;
    }
    for (size_t i = 0; i < LINES_MAX && fgets(line, sizeof line, file) != NULL; i++) {
        if (strncmp(line, key, strlen(key)) == 0) {
            number = strtoull(line + strlen(key), NULL, 10);
            break;
        }
    }
    DP_IGNORE(fclose(file) != 0); /* only read */
    return number;
}

uint64_t dp_memory_available(const char *meminfo)
{
    const uint64_t kib = number_after(meminfo, "MemAvailable:");
    return kib > UINT64_MAX / 1024 ? 0 : kib * 1024;
}

/* The number in <folder>/<name>; 0 for "max", for no such file, and for numbers above any machine's
 * memory, which version 1 writes for no limit. */
static uint64_t number_in(const char *folder, const char *name)
{
    char line[DP_CGROUP_LINE_MAX];
    dp_cgroup_line(folder, name, line);
    const uint64_t bytes = strtoull(line, NULL, 10);
    return bytes < (uint64_t)1 << 60 ? bytes : 0;
}

/* The kernel kills at memory.max; at memory.high it slows the group down until nothing goes on. */
static uint64_t limit_of_folder(const char *folder)
{
    const uint64_t second =
        dp_cgroup_lesser(number_in(folder, "memory.max"), number_in(folder, "memory.high"));
    return dp_cgroup_lesser(second, number_in(folder, "memory.limit_in_bytes"));
}

/* Pages of files, which the kernel takes back: "MemAvailable" counts them too. Bytes in both
 * versions; total_ of version 1 includes the groups below, as the other numbers do. */
static uint64_t cached_in(const char *folder)
{
    static const char *const keys[2][2] = {{"inactive_file ", "active_file "},
                                           {"total_inactive_file ", "total_active_file "}};
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof path, "%s/memory.stat", folder);
    if (length < 0 || (size_t)length >= sizeof path) {
        return 0;
    }
    const bool first = number_in(folder, "memory.usage_in_bytes") != 0;
    return number_after(path, keys[first][0]) + number_after(path, keys[first][1]);
}

/* Of the limit of this group, what its processes have left. */
static uint64_t left_in_folder(const char *folder)
{
    const uint64_t limit = limit_of_folder(folder);
    const uint64_t all =
        number_in(folder, "memory.current") + number_in(folder, "memory.usage_in_bytes");
    const uint64_t cached = cached_in(folder);
    const uint64_t used = all > cached ? all - cached : 0;
    if (limit == 0) {
        return 0;
    }
    return limit > used + LEFT_MIN ? limit - used : LEFT_MIN;
}

uint64_t dp_memory_limit(const dp_cgroup_place *place)
{
    return dp_cgroup_min(place, "memory", limit_of_folder);
}

uint64_t dp_memory_usable_in(const dp_cgroup_place *place, const char *meminfo, uint64_t taken)
{
    const uint64_t left = dp_cgroup_min(place, "memory", left_in_folder);
    const uint64_t limit = dp_cgroup_lesser(left == 0 ? 0 : left + taken, dp_memory_limit(place));
    const uint64_t available = dp_memory_available(meminfo);
    return dp_cgroup_lesser(available == 0 ? 0 : available + taken, limit) / 10 * 9;
}

uint64_t dp_memory_usable_with(uint64_t taken)
{
    return dp_memory_usable_in(&dp_cgroup_own, "/proc/meminfo", taken);
}

uint64_t dp_memory_usable(void)
{
    return dp_memory_usable_with(0);
}
