/* A process of this machine as /proc tells of it, and files of the kernel. No locks, no state. */
#ifndef DP_DAEMON_OWNER_MACHINE_PROCESS_H
#define DP_DAEMON_OWNER_MACHINE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DP_MACHINE_PROCESS_DEPTH_MAX = 8, /* of descendants: trainer, its processes, a tool */
    DP_MACHINE_PROCESS_NAME_MAX = 16  /* the kernel keeps 15 characters and a zero */
};

typedef struct dp_machine_process {
    uint32_t pid;
    uint32_t parent;
    uint64_t ticks; /* of processors, with those of children that have ended */
} dp_machine_process;

/* Reads the beginning of a file as text. False: it cannot be read, or is empty. */
bool dp_machine_file_read(const char *path, char *text, size_t size);
/* The process of the folder root/proc/pid; pid in digits. root: as in machine_use.h. False: there
 * is none, or it cannot be read. */
bool dp_machine_process_read(const char *root, const char *pid, dp_machine_process *out);
/* Its name, with unprintable characters as '?'; "" if it cannot be read. */
void dp_machine_process_name(const char *root, uint32_t pid,
                             char name[DP_MACHINE_PROCESS_NAME_MAX]);
/* True if it is self or script (0: none), or descends from one of them. */
bool dp_machine_process_is_of(const char *root, uint32_t pid, uint32_t self, uint32_t script);

#endif
