/* The faults of the chaos bench: chooses the next one and its node, and ends it. All is drawn from
 * the seed. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "tests/chaos/chaos.h"

enum { FAULTY_SHARE = 3, DISK_MIB = 128 };

_Static_assert((DISK_MIB << 20) > DP_CHAOS_STORE_BYTES, "a store at its quota fits its disk");

static const struct {
    const char *name;
    uint64_t least_ms; /* how long it lasts */
    uint64_t most_ms;
} kinds[DP_CHAOS_KINDS] = {
    [DP_CHAOS_KILL] = {"kill", 0, 0},
    [DP_CHAOS_STOP] = {"stop", DP_CHAOS_NOTICE_MS + 500, 7000}, /* long enough to be noticed */
    [DP_CHAOS_CUT] = {"cut", 2000, 6000},
    [DP_CHAOS_DISK] = {"disk", 1000, 4000},
    [DP_CHAOS_WORKER] = {"worker", 0, 0},
    [DP_CHAOS_OWNER] = {"owner", 0, 0},
    [DP_CHAOS_MAJORITY] = {"majority", 2000, 6000},
    [DP_CHAOS_ROT] = {"rot", 0, 0},
    [DP_CHAOS_BACKUP] = {"backup", 0, 0},
    [DP_CHAOS_CLOCK] = {"clock", 3000, 8000},
};

bool dp_chaos_kind_kills(dp_chaos_kind kind)
{
    return kind == DP_CHAOS_KILL || kind == DP_CHAOS_OWNER || kind == DP_CHAOS_MAJORITY ||
           kind == DP_CHAOS_ROT || kind == DP_CHAOS_BACKUP;
}

const char *dp_chaos_kind_name(dp_chaos_kind kind)
{
    return kinds[kind].name;
}

unsigned dp_chaos_kinds_parse(const char *text)
{
    unsigned mask = 0;
    for (;;) {
        const size_t size = strcspn(text, ",");
        unsigned kind = 0;
        while (kind < DP_CHAOS_KINDS &&
               (strlen(kinds[kind].name) != size || memcmp(kinds[kind].name, text, size) != 0)) {
            kind++;
        }
        if (kind == DP_CHAOS_KINDS) {
            return 0;
        }
        mask |= 1U << kind;
        if (text[size] == '\0') {
            return mask;
        }
        text += size + 1;
    }
}

/* ---- disks ---- */

int dp_chaos_make_disks(dp_chaos *self, dp_control_error *error)
{
    char dir[DP_CLI_PATH_MAX];
    char options[32];
    snprintf(options, sizeof options, "size=%dm", DISK_MIB);
    bool good =
        unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
    for (unsigned i = 0; i < self->options->nodes && good; i++) {
        dp_chaos_node_path(self, i, "node", dir);
        good = mkdir(dir, 0700) == 0 &&
               mount("none", dir, "tmpfs", MS_NOSUID | MS_NODEV, options) == 0;
        self->nodes[i].has_disk = good;
    }
    if (!good) {
        const char *why = strerror(errno); /* NOLINT(concurrency-mt-unsafe): one thread */
        dp_error_set(error, DP_EXIT_CANTCREATE, "E0130",
                     "run it as root, or name --kinds without disk",
                     "no disk of its own can be mounted for a node", why);
        return error->exit;
    }
    return 0;
}

void dp_chaos_end_disks(dp_chaos *self)
{
    char dir[DP_CLI_PATH_MAX];
    for (unsigned i = 0; i < DP_CHAOS_NODES_MAX; i++) {
        dp_chaos_node_path(self, i, "node", dir);
        /* If this fails, the disk disappears with the last process of the namespace. */
        if (self->nodes[i].has_disk) {
            DP_IGNORE(umount2(dir, MNT_DETACH) != 0);
        }
        self->nodes[i].has_disk = false;
    }
}

static void filler_path(const dp_chaos *self, unsigned node, char path[DP_CLI_PATH_MAX + 16])
{
    char dir[DP_CLI_PATH_MAX];
    dp_chaos_node_path(self, node, "node", dir);
    snprintf(path, DP_CLI_PATH_MAX + 16, "%s/filler", dir);
}

/* To the last byte. */
static void fill_disk(const dp_chaos *self, unsigned node)
{
    static const char block[4096];
    char path[DP_CLI_PATH_MAX + 16];
    struct statvfs is;
    filler_path(self, node, path);
    const int fd = open(path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0 && fstatvfs(fd, &is) == 0) {
        DP_IGNORE(fallocate(fd, 0, 0, (off_t)(is.f_bavail * is.f_frsize)) !=
                  0); /* The faster alternative. */
        while (write(fd, block, sizeof block) > 0) {
        }
    }
    if (fd >= 0) {
        close(fd);
    }
}

static void free_disk(const dp_chaos *self, unsigned node)
{
    char path[DP_CLI_PATH_MAX + 16];
    filler_path(self, node, path);
    DP_IGNORE(unlink(path) != 0); /* The next fault tries again. */
}

/* ---- trainers ---- */

/* The only long-lived child of a daemon; 0 if there is none now. */
static pid_t trainer_of(pid_t daemon)
{
    char path[64];
    char line[64] = "";
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)daemon, (int)daemon);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return 0;
    }
    const long pid = fgets(line, sizeof line, file) != NULL ? strtol(line, NULL, 10) : 0;
    fclose(file);
    return (pid_t)pid;
}

/* ---- cuts ---- */

static void cut_off(dp_chaos *self, uint32_t group)
{
    for (unsigned i = 0; i < self->options->nodes; i++) {
        for (unsigned k = 0; k < self->options->nodes; k++) {
            if ((group >> i & 1) != 0 && (group >> k & 1) == 0) {
                dp_chaos_tell_proxy(self, "cut n%u from n%u\ncut n%u from n%u\n", i + 1, k + 1,
                                    k + 1, i + 1);
            }
        }
    }
}

/* ---- which, whom, and how long ---- */

/* Collects the nodes that run, have no lasting fault and are not spared; returns their number. */
static unsigned free_nodes(const dp_chaos *self, unsigned list[DP_CHAOS_NODES_MAX])
{
    unsigned count = 0;
    for (unsigned i = self->options->spare; i < self->options->nodes; i++) {
        if (self->nodes[i].pid > 0 && !self->nodes[i].faulty) {
            list[count++] = i;
        }
    }
    return count;
}

static unsigned count_faulty(const dp_chaos *self)
{
    unsigned count = 0;
    for (unsigned i = 0; i < self->options->nodes; i++) {
        count += self->nodes[i].faulty;
    }
    return count;
}

static unsigned majority_of(const dp_chaos *self)
{
    return self->options->nodes / 2 + 1;
}

/* The free node that most running nodes name as the ballot's owner; DP_CHAOS_NODES_MAX: none. */
static unsigned owner_of_ballot(const dp_chaos *self, const unsigned *list, unsigned n_list)
{
    unsigned best = DP_CHAOS_NODES_MAX;
    unsigned most = 0;
    for (unsigned i = 0; i < n_list; i++) {
        unsigned votes = 0;
        for (unsigned k = 0; k < self->options->nodes; k++) {
            votes += self->nodes[k].pid > 0 && self->nodes[k].owner[0] != '\0' &&
                     strcmp(self->nodes[k].owner, self->book.lives[list[i]].id) == 0;
        }
        best = votes > most ? list[i] : best;
        most = votes > most ? votes : most;
    }
    return best;
}

/* Lasting faults affect at most a third of the nodes at a time, so that usually a majority of
 * voters works; kills are additional. A fault of a majority, or of a voter's own memory, waits
 * until all nodes are well: two such faults at once could end a run forever. */
static bool has_room(const dp_chaos *self, dp_chaos_kind kind, const unsigned *list,
                     unsigned n_free)
{
    const bool lasts = kinds[kind].most_ms > 0;
    const unsigned most = (self->options->nodes - 1) / FAULTY_SHARE;
    const bool calm = count_faulty(self) == 0 && dp_chaos_book_waiting(&self->book) == 0;
    if (kind == DP_CHAOS_MAJORITY) {
        return calm && n_free >= majority_of(self);
    }
    if (kind == DP_CHAOS_ROT || kind == DP_CHAOS_BACKUP) {
        return calm && n_free > 0;
    }
    if (kind == DP_CHAOS_OWNER) {
        return owner_of_ballot(self, list, n_free) < DP_CHAOS_NODES_MAX;
    }
    return n_free > 0 && (!lasts || count_faulty(self) < (most > 0 ? most : 1)) &&
           (kind != DP_CHAOS_CUT || (self->cut_until_ms == 0 && self->options->nodes > 1));
}

/* A random one of the chosen kinds that is possible now; DP_CHAOS_KINDS if there is none. */
static dp_chaos_kind draw_kind(dp_chaos *self, const unsigned *list, unsigned n_free)
{
    dp_chaos_kind fitting[DP_CHAOS_KINDS];
    unsigned count = 0;
    for (unsigned k = 0; k < DP_CHAOS_KINDS; k++) {
        if ((self->options->kinds >> k & 1) != 0 &&
            has_room(self, (dp_chaos_kind)k, list, n_free)) {
            fitting[count++] = (dp_chaos_kind)k;
        }
    }
    return count > 0 ? fitting[dp_rng_below(&self->rng, count)] : DP_CHAOS_KINDS;
}

static uint64_t draw_end(dp_chaos *self, dp_chaos_kind kind, uint64_t now_ms)
{
    return now_ms + kinds[kind].least_ms +
           dp_rng_below(&self->rng, kinds[kind].most_ms - kinds[kind].least_ms + 1);
}

static void begin_cut(dp_chaos *self, unsigned *list, unsigned n_list, uint64_t now_ms)
{
    const unsigned room = (self->options->nodes - 1) / FAULTY_SHARE - count_faulty(self);
    const unsigned most = room < n_list && room > 0 ? room : 1;
    const unsigned size = 1 + (unsigned)dp_rng_below(&self->rng, most);
    uint32_t group = 0;
    self->cut_until_ms = draw_end(self, DP_CHAOS_CUT, now_ms);
    for (unsigned i = 0; i < size; i++) {
        const unsigned at = (unsigned)dp_rng_below(&self->rng, n_list);
        dp_chaos_node *node = &self->nodes[list[at]];
        node->faulty = true;
        node->fault = DP_CHAOS_CUT;
        group |= 1U << list[at];
        list[at] = list[--n_list];
    }
    cut_off(self, group);
    dp_chaos_book_cut(&self->book, group, now_ms);
}

static void begin_lasting(dp_chaos *self, unsigned victim, dp_chaos_kind kind, uint64_t now_ms)
{
    dp_chaos_node *node = &self->nodes[victim];
    node->faulty = true;
    node->fault = kind;
    node->fault_until_ms = draw_end(self, kind, now_ms);
    dp_chaos_book_fault(&self->book, victim, kind, now_ms);
    if (kind == DP_CHAOS_STOP) {
        dp_chaos_signal(self, victim, SIGSTOP);
    } else if (kind == DP_CHAOS_CLOCK) {
        /* It was wrong in this process. */
        DP_IGNORE(!dp_chaos_clock_set(self, victim, dp_chaos_clock_draw(self)));
    } else {
        fill_disk(self, victim);
    }
}

/* Kills the daemon; it restarts at restart_ms, with the files that this kind of fault leaves. */
static void begin_kill(dp_chaos *self, unsigned victim, dp_chaos_kind kind, uint64_t now_ms,
                       uint64_t restart_ms)
{
    dp_chaos_book_fault(&self->book, victim, kind, now_ms);
    dp_chaos_kill(self, victim, SIGKILL);
    self->nodes[victim].restart_ms = restart_ms;
    if (kind == DP_CHAOS_ROT) {
        dp_chaos_rot(self, victim);
    } else if (kind == DP_CHAOS_BACKUP) {
        self->book.faults[kind] -= dp_chaos_backup(self, victim, now_ms) ? 0 : 1;
    }
}

static void begin_majority(dp_chaos *self, unsigned *list, unsigned n_list, uint64_t now_ms)
{
    const uint64_t restart_ms = draw_end(self, DP_CHAOS_MAJORITY, now_ms);
    self->book.faults[DP_CHAOS_MAJORITY]++;
    for (unsigned i = 0; i < majority_of(self); i++) {
        const unsigned at = (unsigned)dp_rng_below(&self->rng, n_list);
        begin_kill(self, list[at], DP_CHAOS_MAJORITY, now_ms, restart_ms);
        list[at] = list[--n_list];
    }
}

static void kill_trainer(dp_chaos *self, unsigned victim, uint64_t now_ms)
{
    const pid_t trainer = trainer_of(self->nodes[victim].pid);
    if (trainer > 0) {
        kill(trainer, SIGKILL);
        dp_chaos_book_fault(&self->book, victim, DP_CHAOS_WORKER, now_ms);
        dp_chaos_book_back(&self->book, victim, now_ms);
    }
}

void dp_chaos_begin_fault(dp_chaos *self, uint64_t now_ms)
{
    unsigned list[DP_CHAOS_NODES_MAX] = {0};
    const unsigned n_list = free_nodes(self, list);
    const dp_chaos_kind kind = draw_kind(self, list, n_list);
    if (kind == DP_CHAOS_KINDS) {
        return;
    }
    if (kind == DP_CHAOS_CUT) {
        begin_cut(self, list, n_list, now_ms);
        return;
    }
    if (kind == DP_CHAOS_MAJORITY) {
        begin_majority(self, list, n_list, now_ms);
        return;
    }
    const unsigned victim = kind == DP_CHAOS_OWNER ? owner_of_ballot(self, list, n_list)
                                                   : list[dp_rng_below(&self->rng, n_list)];
    if (dp_chaos_kind_kills(kind)) {
        begin_kill(self, victim, kind, now_ms, now_ms + self->options->down_ms);
    } else if (kind == DP_CHAOS_WORKER) {
        kill_trainer(self, victim, now_ms);
    } else {
        begin_lasting(self, victim, kind, now_ms);
    }
}

static void end_cut(dp_chaos *self, uint64_t now_ms)
{
    dp_chaos_tell_proxy(self, "heal *\n");
    dp_chaos_book_healed(&self->book, now_ms);
    self->cut_until_ms = 0;
    for (unsigned i = 0; i < self->options->nodes; i++) {
        self->nodes[i].faulty = self->nodes[i].faulty && self->nodes[i].fault != DP_CHAOS_CUT;
    }
}

void dp_chaos_end_faults(dp_chaos *self, uint64_t now_ms, bool all)
{
    if (self->cut_until_ms > 0 && (all || now_ms >= self->cut_until_ms)) {
        end_cut(self, now_ms);
    }
    for (unsigned i = 0; i < self->options->nodes; i++) {
        dp_chaos_node *node = &self->nodes[i];
        if (!node->faulty || node->fault == DP_CHAOS_CUT ||
            (!all && now_ms < node->fault_until_ms)) {
            continue;
        }
        node->faulty = false;
        if (node->fault == DP_CHAOS_STOP) {
            dp_chaos_signal(self, i, SIGCONT);
        } else if (node->fault == DP_CHAOS_CLOCK) {
            DP_IGNORE(!dp_chaos_clock_set(self, i, 0)); /* As when it was set to a wrong time. */
        } else {
            free_disk(self, i);
        }
        dp_chaos_book_back(&self->book, i, now_ms);
    }
}
