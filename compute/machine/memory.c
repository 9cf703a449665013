#include "compute/machine/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

enum { LINES_MAX = 256 };

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

/* The number in <folder>/<name>; 0 for "max", for no such file, and for numbers above any machine's
 * memory, which version 1 writes for no limit. */
static uint64_t number_in(const char *folder, const char *name)
{
    char line[DP_CGROUP_LINE_MAX];
    dp_cgroup_line(folder, name, line);
    const uint64_t bytes = strtoull(line, NULL, 10);
    return bytes < (uint64_t)1 << 60 ? bytes : 0;
}

static uint64_t limit_of_folder(const char *folder)
{
    return dp_cgroup_lesser(number_in(folder, "memory.max"),
                            number_in(folder, "memory.limit_in_bytes"));
}

uint64_t dp_memory_limit(const dp_cgroup_place *place)
{
    return dp_cgroup_min(place, "memory", limit_of_folder);
}

uint64_t dp_memory_usable_in(const dp_cgroup_place *place, const char *meminfo, uint64_t taken)
{
    const uint64_t limit = dp_memory_limit(place);
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
