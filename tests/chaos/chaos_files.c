/* Faults of the chaos bench by files: a damaged store, an older copy of a node's directory, a wrong
 * clock. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/chaos/chaos.h"

enum { ROT_BITS = 20, BACKUP_AGE_MS = 5000, MINUTE_S = 60, CLOCK_MINUTES_MAX = 180 };

/* ---- damage ---- */

static void flip_bits(dp_rng *rng, const char *path, uint64_t size)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    for (unsigned i = 0; i < ROT_BITS && fd >= 0 && size > 0; i++) {
        uint8_t byte = 0;
        const off_t at = (off_t)dp_rng_below(rng, size);
        if (pread(fd, &byte, 1, at) == 1) {
            byte ^= (uint8_t)(1U << dp_rng_below(rng, 8));
            /* Then the file is whole, and the node returns. */
            DP_IGNORE(pwrite(fd, &byte, 1, at) != 1);
        }
    }
    if (fd >= 0) {
        close(fd);
    }
}

void dp_chaos_rot(dp_chaos *self, unsigned node)
{
    static const char *const names[] = {"chunks.db", "meta.db"};
    static const char *const ways[] = {"deleted", "cut to half", "20 bits of it flipped"};
    const char *const name = names[dp_rng_below(&self->rng, sizeof names / sizeof names[0])];
    const unsigned way = (unsigned)dp_rng_below(&self->rng, sizeof ways / sizeof ways[0]);
    char dir[DP_CLI_PATH_MAX];
    char path[DP_CLI_PATH_MAX + 16];
    struct stat is = {.st_size = 0};
    dp_chaos_node_path(self, node, "node", dir);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (stat(path, &is) != 0) {
        return;
    }
    if (way == 0) {
        DP_IGNORE(unlink(path) != 0); /* If this fails, the file is whole and the node returns. */
    } else if (way == 1) {
        DP_IGNORE(truncate(path, is.st_size / 2) != 0);
    } else {
        flip_bits(&self->rng, path, (uint64_t)is.st_size);
    }
    if (self->options->chatty) {
        fprintf(stderr, "node%u: %s %s\n", node + 1, name, ways[way]);
    }
}

/* ---- older copies ---- */

/* Copies all files of the folder from to the folder to, which is created again. */
static bool copy_folder(const char *from, const char *to)
{
    char source[DP_CLI_PATH_MAX + 8];
    snprintf(source, sizeof source, "%s/.", from);
    const pid_t pid = fork();
    if (pid == 0) {
        execlp("cp", "cp", "-a", "--", source, to, (char *)NULL);
        _exit(127);
    }
    int status = -1;
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

bool dp_chaos_backup(dp_chaos *self, unsigned node, uint64_t now_ms)
{
    char dir[DP_CLI_PATH_MAX];
    char copy[DP_CLI_PATH_MAX];
    char path[DP_CLI_PATH_MAX + 16];
    static const char *const names[] = {"chunks.db", "chunks.db-journal", "meta.db", "meta.db-wal",
                                        "meta.db-shm"};
    dp_chaos_node *const it = &self->nodes[node];
    dp_chaos_node_path(self, node, "node", dir);
    dp_chaos_node_path(self, node, "copy", copy);
    if (it->backup_ms == 0) {
        DP_IGNORE(mkdir(copy, 0700) != 0); /* cp reports an error by its status. */
        it->backup_ms = copy_folder(dir, copy) ? now_ms : 0;
        return false;
    }
    if (now_ms < it->backup_ms + BACKUP_AGE_MS) {
        return false;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        DP_IGNORE(unlink(path) != 0 && errno != ENOENT); /* cp overwrites remaining files. */
    }
    const bool good = copy_folder(copy, dir);
    it->backup_ms = 0;
    DP_IGNORE(dp_path_remove_tree(copy)); /* It is removed with the whole folder at the end. */
    return good;
}

/* ---- clocks ---- */

static void clock_path(const dp_chaos *self, unsigned node, char path[DP_CLI_PATH_MAX])
{
    dp_chaos_node_path(self, node, "clock", path);
}

bool dp_chaos_clock_set(const dp_chaos *self, unsigned node, int64_t offset_s)
{
    char path[DP_CLI_PATH_MAX];
    clock_path(self, node, path);
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const bool good =
        fd >= 0 && pwrite(fd, &offset_s, sizeof offset_s, 0) == (ssize_t)sizeof offset_s;
    if (fd >= 0) {
        close(fd);
    }
    return good;
}

int64_t dp_chaos_clock_draw(dp_chaos *self)
{
    const int64_t minutes = 1 + (int64_t)dp_rng_below(&self->rng, CLOCK_MINUTES_MAX);
    return (dp_rng_below(&self->rng, 2) == 0 ? -minutes : minutes) * MINUTE_S;
}

bool dp_chaos_clock_wear(const dp_chaos *self, unsigned node)
{
    char shim[DP_CLI_PATH_MAX];
    char path[DP_CLI_PATH_MAX];
    if ((self->options->kinds >> DP_CHAOS_CLOCK & 1) == 0) {
        return true;
    }
    dp_path_program("libdpclock.so", shim);
    clock_path(self, node, path);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread; the daemon and its trainer inherit
     * both. */
    return strchr(shim, '/') != NULL && dp_chaos_clock_set(self, node, 0) &&
           setenv("DPCLOCK_FILE", path, 1) == 0 && setenv("LD_PRELOAD", shim, 1) == 0;
}
