/* Memory, descriptors and store of the daemons of a chaos run: the largest values, and their growth
 * over a life. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/chaos/chaos.h"

enum {
    LIFE_MS_MIN = 10 * 60 * 1000, /* a shorter life has no meaningful slope, ... */
    /* ... nor has the first part of a life, which fills caches and rings; */
    WARM_MS = 5 * 60 * 1000,
    SLOPE_COUNT_MIN = 300 /* a slope needs at least five minutes of samples */
};
#define MS_PER_HOUR 3600000.0
#define MIB 1048576.0

/* ---- slopes ---- */

void dp_chaos_slope_add(dp_chaos_slope *slope, uint64_t now_ms, double rss_mib, double fds)
{
    const double t = (double)(now_ms - slope->begin_ms) / MS_PER_HOUR;
    slope->count++;
    slope->t += t;
    slope->tt += t * t;
    slope->rss += rss_mib;
    slope->t_rss += t * rss_mib;
    slope->fds += fds;
    slope->t_fds += t * fds;
}

void dp_chaos_slope_fold(dp_chaos_slope *all, dp_chaos_slope *life)
{
    if (life->count > 0) {
        const double n = (double)life->count;
        all->count += life->count;
        all->tt += life->tt - life->t * life->t / n;
        all->t_rss += life->t_rss - life->t * life->rss / n;
        all->t_fds += life->t_fds - life->t * life->fds / n;
    }
    *life = (dp_chaos_slope){0};
}

bool dp_chaos_slope_tell(const dp_chaos_slope *all, double *rss_mib_h, double *fds_h)
{
    if (all->count < SLOPE_COUNT_MIN || all->tt <= 0) {
        return false;
    }
    *rss_mib_h = all->t_rss / all->tt;
    *fds_h = all->t_fds / all->tt;
    return true;
}

/* ---- looking ---- */

static uint64_t resident_bytes(pid_t pid)
{
    char path[64];
    unsigned long long pages = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        char line[128];
        const char *second = fgets(line, sizeof line, file) != NULL ? strchr(line, ' ') : NULL;
        pages = second != NULL ? strtoull(second, NULL, 10) : 0;
        fclose(file);
    }
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t count_descriptors(pid_t pid)
{
    char path[64];
    uint64_t count = 0;
    struct stat is;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    /* Only root may list those of dpnoded; since Linux 6.2 the size of the folder is their
     * number. */
    if (stat(path, &is) == 0 && is.st_size > 0) {
        return (uint64_t)is.st_size;
    }
    DIR *folder = opendir(path);
    while (folder != NULL && readdir(folder) != NULL) { /* NOLINT(concurrency-mt-unsafe) */
        count++;
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return count > 2 ? count - 2 : 0; /* . and .. */
}

/* Size of the files of its store. */
static uint64_t store_bytes(const dp_chaos *self, unsigned node)
{
    char dir[DP_CLI_PATH_MAX];
    char path[DP_CLI_PATH_MAX + 32];
    uint64_t sum = 0;
    static const char *const names[] = {"chunks.db", "chunks.db-journal", "meta.db", "meta.db-wal"};
    dp_chaos_node_path(self, node, "node", dir);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct stat is;
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        sum += stat(path, &is) == 0 ? (uint64_t)is.st_size : 0;
    }
    return sum;
}

void dp_chaos_sample_end(dp_chaos *self, unsigned node)
{
    dp_chaos_slope *const life = &self->slopes[node];
    if (dp_chaos_now_ms() - life->begin_ms < LIFE_MS_MIN) {
        *life = (dp_chaos_slope){0};
    }
    dp_chaos_slope_fold(&self->slope, life);
}

void dp_chaos_sample(dp_chaos *self, uint64_t now_ms)
{
    for (unsigned i = 0; i < self->options->nodes; i++) {
        const uint64_t begin_ms = self->book.lives[i].spawned_ms;
        if (self->nodes[i].pid <= 0) {
            continue;
        }
        const uint64_t bytes = resident_bytes(self->nodes[i].pid);
        const uint64_t fds = count_descriptors(self->nodes[i].pid);
        const uint64_t stored = store_bytes(self, i);
        self->rss_max = bytes > self->rss_max ? bytes : self->rss_max;
        self->fds_max = fds > self->fds_max ? fds : self->fds_max;
        self->store_max = stored > self->store_max ? stored : self->store_max;
        if (bytes > 0 && now_ms - begin_ms >= WARM_MS) {
            self->slopes[i].begin_ms = begin_ms;
            dp_chaos_slope_add(&self->slopes[i], now_ms, (double)bytes / MIB, (double)fds);
        }
    }
}
