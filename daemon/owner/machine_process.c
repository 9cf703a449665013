#include "daemon/owner/machine_process.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 512, TEXT_BYTES = 4096 };

bool dp_machine_file_read(const char *path, char *text, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    size_t used = 0;
    ssize_t got = 1;
    if (fd < 0) {
        return false;
    }
    while (used + 1 < size && got > 0) {
        got = read(fd, text + used, size - 1 - used);
        used += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    text[used] = '\0';
    return got >= 0 && used > 0;
}

/* The name of a process may hold spaces and brackets: the fields begin after the last bracket. */
bool dp_machine_process_read(const char *root, const char *pid, dp_machine_process *out)
{
    char path[PATH_BYTES];
    char text[TEXT_BYTES];
    unsigned parent = 0;
    unsigned long long user = 0;
    unsigned long long system = 0;
    unsigned long long ended_user = 0; /* of children that have ended */
    unsigned long long ended_system = 0;
    snprintf(path, sizeof path, "%s/proc/%.20s/stat", root, pid);
    const char *const fields =
        dp_machine_file_read(path, text, sizeof text) ? strrchr(text, ')') : NULL;
    if (fields == NULL || sscanf(fields, /* NOLINT(cert-err34-c) */
                                 ") %*c %u %*d %*d %*d %*d %*u %*u %*u %*u %*u "
                                 "%llu %llu %llu %llu",
                                 &parent, &user, &system, &ended_user, &ended_system) != 5) {
        return false;
    }
    *out = (dp_machine_process){.pid = (uint32_t)strtoul(pid, NULL, 10),
                                .parent = parent,
                                .ticks = (uint64_t)user + system + ended_user + ended_system};
    return true;
}

void dp_machine_process_name(const char *root, uint32_t pid, char name[DP_MACHINE_PROCESS_NAME_MAX])
{
    char path[PATH_BYTES];
    name[0] = '\0';
    snprintf(path, sizeof path, "%s/proc/%u/comm", root, pid);
    if (!dp_machine_file_read(path, name, DP_MACHINE_PROCESS_NAME_MAX)) {
        name[0] = '\0';
    }
    name[strcspn(name, "\n")] = '\0';
    for (char *at = name; *at != '\0'; at++) {
        *at = isprint((unsigned char)*at) ? *at : '?';
    }
}

bool dp_machine_process_is_of(const char *root, uint32_t pid, uint32_t self, uint32_t script)
{
    for (int depth = 0; depth <= DP_MACHINE_PROCESS_DEPTH_MAX && pid > 1; depth++) {
        dp_machine_process is;
        char text[16];
        if (pid == self || (script != 0 && pid == script)) {
            return true;
        }
        snprintf(text, sizeof text, "%u", pid);
        if (!dp_machine_process_read(root, text, &is)) {
            return false;
        }
        pid = is.parent;
    }
    return false;
}
