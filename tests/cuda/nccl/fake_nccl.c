/* An NCCL for tests on the emulated card, whose memory is that of the host: sends and receives
 * between processes, over sockets named after the link's id. Does its work when it is asked for the
 * state, as the real one's threads do theirs meanwhile; a peer that is gone leaves it in progress
 * for ever.
 *
 * FAKE_NCCL in the environment makes it fail: "CALL:ERROR" or "CALL:ERROR:RANK" with CALL one of
 * id, init, state, send, recv, start, end; an ERROR of 7 is one without end, 99 the end of the
 * process. "version:N": it says it is of that release. */
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    ID_BYTES = 128,
    RANKS_MAX = 64,
    MOVES_MAX = 256,
    IN_PROGRESS = 7,
    USAGE = 5,
    SYSTEM = 2,
    KILLED = 99
};

typedef struct ncclUniqueId {
    char internal[ID_BYTES];
} ncclUniqueId;

typedef struct config {
    size_t size;
    unsigned magic;
    unsigned version;
    int blocking;
} config;

typedef struct move {
    bool sends;
    int peer;
    char *at;
    size_t left;
} move;

typedef struct comm {
    int rank;
    int count;
    ncclUniqueId id;
    int listener;
    int peers[RANKS_MAX]; /* sockets; -1: not yet */
    move moves[MOVES_MAX];
    size_t n_moves;
    int broken;
} comm;

int ncclGetVersion(int *version);
int ncclGetUniqueId(ncclUniqueId *out);
int ncclCommInitRankConfig(comm **out, int count, ncclUniqueId id, int rank, const config *how);
int ncclCommGetAsyncError(comm *c, int *state);
int ncclCommAbort(comm *c);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclSend(const void *from, size_t n, int type, int peer, comm *c, void *stream);
int ncclRecv(void *to, size_t n, int type, int peer, comm *c, void *stream);
const char *ncclGetErrorString(int result);

static int group_depth;

/* The result that the environment wants for this call; 0: no wish. */
static int wanted(const char *call, int rank)
{
    const char *const text = getenv("FAKE_NCCL"); /* NOLINT(concurrency-mt-unsafe) */
    const size_t size = strlen(call);
    if (text == NULL || strncmp(text, call, size) != 0 || text[size] != ':') {
        return 0;
    }
    char *end;
    const long error = strtol(text + size + 1, &end, 10);
    if (*end == ':' && strtol(end + 1, NULL, 10) != rank) {
        return 0;
    }
    if (error == KILLED) {
        raise(SIGKILL);
    }
    return (int)error;
}

int ncclGetVersion(int *version)
{
    const int other = wanted("version", 0);
    *version = other != 0 ? other : 22105;
    return 0;
}

int ncclGetUniqueId(ncclUniqueId *out)
{
    const int error = wanted("id", 0);
    if (error != 0) {
        return error;
    }
    memset(out, 0, sizeof *out);
    return getrandom(out, 16, 0) == 16 ? 0 : SYSTEM;
}

static socklen_t name_of(const comm *c, int rank, struct sockaddr_un *name)
{
    uint64_t words[2];
    memcpy(words, c->id.internal, sizeof words);
    *name = (struct sockaddr_un){.sun_family = AF_UNIX};
    const int size = snprintf(name->sun_path + 1, sizeof name->sun_path - 1,
                              "dpnode-fake-nccl-%016llx%016llx-%d", (unsigned long long)words[0],
                              (unsigned long long)words[1], rank);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size);
}

int ncclCommInitRankConfig(comm **out, int count, ncclUniqueId id, int rank, const config *how)
{
    struct sockaddr_un name;
    const int error = wanted("init", rank);
    if (error != 0 && error != IN_PROGRESS) {
        return error;
    }
    if (how->magic != 0xcafebeefU || how->size != 24 || how->version != 21400 ||
        how->blocking != 0 || count > RANKS_MAX || rank >= count) {
        return USAGE;
    }
    comm *const c = calloc(1, sizeof *c);
    c->rank = rank;
    c->count = count;
    c->id = id;
    memset(c->peers, -1, sizeof c->peers);
    const socklen_t size = name_of(c, rank, &name);
    c->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (bind(c->listener, (const struct sockaddr *)&name, size) != 0 ||
        listen(c->listener, RANKS_MAX) != 0) {
        c->broken = SYSTEM;
    }
    *out = c;
    return IN_PROGRESS;
}

/* To a lower rank; it may not be there yet. */
static void dial(comm *c, int peer)
{
    struct sockaddr_un name;
    const socklen_t size = name_of(c, peer, &name);
    const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const uint8_t rank = (uint8_t)c->rank;
    if (connect(made, (const struct sockaddr *)&name, size) == 0 && write(made, &rank, 1) == 1) {
        c->peers[peer] = made;
        return;
    }
    close(made);
}

static void answer(comm *c)
{
    uint8_t rank = 0;
    const int made = accept(c->listener, NULL, NULL);
    if (made < 0) {
        return;
    }
    if (read(made, &rank, 1) == 1 && rank < c->count) {
        c->peers[rank] = made;
    }
}

static bool meet(comm *c)
{
    bool all = true;
    for (int peer = 0; peer < c->count; peer++) {
        if (peer < c->rank && c->peers[peer] < 0) {
            dial(c, peer);
        }
        answer(c);
        all = all && (peer == c->rank || c->peers[peer] >= 0);
    }
    return all;
}

/* The first move of its kind for each peer goes on. True when all are done. */
static bool carry(comm *c)
{
    bool begun[2][RANKS_MAX] = {{false}};
    bool all = true;
    for (size_t i = 0; i < c->n_moves; i++) {
        move *const m = &c->moves[i];
        if (m->left == 0 || begun[m->sends][m->peer]) {
            all = all && m->left == 0;
            continue;
        }
        const int to = c->peers[m->peer];
        const ssize_t got = m->sends ? send(to, m->at, m->left, MSG_DONTWAIT | MSG_NOSIGNAL)
                                     : recv(to, m->at, m->left, MSG_DONTWAIT);
        m->at += got > 0 ? got : 0;
        m->left -= got > 0 ? (size_t)got : 0;
        begun[m->sends][m->peer] = m->left > 0;
        all = all && m->left == 0;
    }
    return all;
}

int ncclCommGetAsyncError(comm *c, int *state)
{
    *state = wanted("state", c->rank);
    if (*state == 0) {
        *state = c->broken != 0                 ? c->broken
                 : wanted("init", c->rank) != 0 ? IN_PROGRESS
                 : !meet(c)                     ? IN_PROGRESS
                 : group_depth > 0 || !carry(c) ? IN_PROGRESS
                                                : 0;
    }
    c->n_moves = *state == 0 ? 0 : c->n_moves;
    return 0;
}

int ncclCommAbort(comm *c)
{
    for (int peer = 0; peer < c->count; peer++) {
        if (c->peers[peer] >= 0) {
            close(c->peers[peer]);
        }
    }
    close(c->listener);
    free(c);
    return 0;
}

int ncclGroupStart(void)
{
    const int error = wanted("start", 0);
    group_depth += error == 0;
    return error;
}

int ncclGroupEnd(void)
{
    const int error = wanted("end", 0);
    group_depth -= group_depth > 0;
    return error != 0 ? error : IN_PROGRESS;
}

static int put(const char *call, comm *c, const move *m)
{
    const int error = wanted(call, c->rank);
    if (error != 0) {
        return error;
    }
    if (c->n_moves == MOVES_MAX || m->peer >= c->count || m->peer == c->rank || group_depth == 0) {
        return USAGE;
    }
    c->moves[c->n_moves++] = *m;
    return 0;
}

int ncclSend(const void *from, size_t n, int type, int peer, comm *c, void *stream)
{
    (void)stream;
    (void)type;
    char *at;
    memcpy(&at, &from, sizeof at); /* It is only read. */
    return put("send", c, &(move){.sends = true, .peer = peer, .at = at, .left = n * 4});
}

int ncclRecv(void *to, size_t n, int type, int peer, comm *c, void *stream)
{
    (void)stream;
    (void)type;
    return put("recv", c, &(move){.peer = peer, .at = to, .left = n * 4});
}

const char *ncclGetErrorString(int result)
{
    return result == USAGE ? "invalid usage" : result == SYSTEM ? "system error" : "some error";
}
