#include "compute/machine/numa.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_MOST = 512, LINE_MOST = 4096 };

/* "0-23,48-71\n". False: it is no such list. */
static bool parse_list(const char *text, cpu_set_t *set)
{
    CPU_ZERO(set);
    const char *at = text;
    while (*at != '\0' && *at != '\n') {
        char *end;
        const unsigned long first = strtoul(at, &end, 10);
        unsigned long last = first;
        if (end == at) {
            return false;
        }
        if (*end == '-') {
            at = end + 1;
            last = strtoul(at, &end, 10);
            if (end == at) {
                return false;
            }
        }
        if (last < first || last >= CPU_SETSIZE || (*end != ',' && *end != '\0' && *end != '\n')) {
            return false;
        }
        for (unsigned long cpu = first; cpu <= last; cpu++) {
            CPU_SET(cpu, set);
        }
        at = *end == ',' ? end + 1 : end;
    }
    return true;
}

/* Empty where there is no such node; nodes may have gaps. False: it cannot be understood. */
static bool read_node(const char *folder, uint32_t node, cpu_set_t *set)
{
    char path[PATH_MOST];
    char line[LINE_MOST] = "";
    CPU_ZERO(set);
    const int size = snprintf(path, sizeof path, "%s/node%u/cpulist", folder, node);
    if (size < 0 || (size_t)size >= sizeof path) {
        return false;
    }
    FILE *const file = fopen(path, "re");
    if (file == NULL) {
        return true;
    }
    const bool got = fgets(line, sizeof line, file) != NULL;
    (void)fclose(file); /* It was read. */
    return !got || parse_list(line, set);
}

bool dp_numa_bind(const char *folder, uint32_t index, uint32_t count)
{
    cpu_set_t allowed;
    cpu_set_t wanted;
    uint32_t found = 0;
    if (count < 2 || sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        return false;
    }
    CPU_ZERO(&wanted);
    for (uint32_t node = 0; node < DP_NUMA_NODES_MAX; node++) {
        cpu_set_t set;
        if (!read_node(folder, node, &set)) {
            return false;
        }
        CPU_AND(&set, &set, &allowed);
        if (CPU_COUNT(&set) > 0) {
            wanted = found == index ? set : wanted;
            found++;
        }
    }
    return found == count && index < count && sched_setaffinity(0, sizeof wanted, &wanted) == 0;
}
