#include "compute/standalone/standalone_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "compute/machine/files.h"
#include "compute/model/gpt.h"
#include "compute/model/state.h"

enum { VERSION = 1, PIECE_FLOATS = 1 << 18, NAME_DIGITS = 12 };
static const uint8_t magic[4] = {'D', 'P', 'C', '1'};
static const char domain[] = "dpnode/solo/1";

/* ---- the head ---- */

static void write_f32(dp_writer *w, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    dp_write_u32(w, bits);
}

static float read_f32(dp_reader *r)
{
    const uint32_t bits = dp_read_u32(r);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void dp_standalone_head_write(const dp_standalone_head *head, uint8_t out[DP_STANDALONE_HEAD_BYTES])
{
    const dp_trainer_place *const p = &head->place;
    const uint64_t numbers[] = {p->steps, p->done, p->tokens, p->skipped, p->spikes, p->updates};
    dp_writer w = dp_writer_of(out, DP_STANDALONE_HEAD_BYTES);
    dp_write_bytes(&w, magic, sizeof magic);
    dp_write_u32(&w, VERSION);
    dp_write_bytes(&w, head->manifest.bytes, sizeof head->manifest.bytes);
    dp_write_u32(&w, head->rows);
    dp_write_u32(&w, head->vectors);
    dp_write_u64(&w, head->elements);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        dp_write_u64(&w, numbers[i]);
    }
    write_f32(&w, p->scaler.scale);
    dp_write_u32(&w, p->scaler.good);
    dp_write_u64(&w, p->scaler.skipped);
    dp_write_u32(&w, p->losses.count);
    dp_write_u32(&w, p->losses.next);
    dp_write_u32(&w, p->losses.row);
    for (size_t i = 0; i < DP_SPIKE_WINDOW; i++) {
        write_f32(&w, p->losses.recent[i]);
    }
    dp_assert(!w.full && w.size == DP_STANDALONE_HEAD_BYTES);
}

static bool is_possible(const dp_standalone_head *head)
{
    return head->rows >= 1 && head->rows <= DP_GPT_ROWS_MAX && head->vectors >= 1 &&
           head->vectors <= DP_TRAINER_VECTORS_MAX && head->elements >= 1 &&
           head->elements <= DP_OBJECT_BYTES_MAX / sizeof(float);
}

dp_status dp_standalone_head_read(dp_standalone_head *head, dp_view bytes)
{
    dp_reader r = dp_reader_of(bytes);
    dp_standalone_head read = {.rows = 0};
    dp_trainer_place *const p = &read.place;
    uint64_t *const numbers[] = {&p->steps,   &p->done,   &p->tokens,
                                 &p->skipped, &p->spikes, &p->updates};
    uint8_t start[sizeof magic];
    dp_read_bytes(&r, start, sizeof start);
    const uint32_t version = dp_read_u32(&r);
    dp_read_bytes(&r, read.manifest.bytes, sizeof read.manifest.bytes);
    read.rows = dp_read_u32(&r);
    read.vectors = dp_read_u32(&r);
    read.elements = dp_read_u64(&r);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        *numbers[i] = dp_read_u64(&r);
    }
    p->scaler.scale = read_f32(&r);
    p->scaler.good = dp_read_u32(&r);
    p->scaler.skipped = dp_read_u64(&r);
    p->losses.count = dp_read_u32(&r);
    p->losses.next = dp_read_u32(&r);
    p->losses.row = dp_read_u32(&r);
    for (size_t i = 0; i < DP_SPIKE_WINDOW; i++) {
        p->losses.recent[i] = read_f32(&r);
    }
    DP_TRY(dp_reader_finish(&r));
    if (memcmp(start, magic, sizeof magic) != 0) {
        return DP_BADMSG;
    }
    if (version != VERSION) {
        return DP_VERSION;
    }
    if (!is_possible(&read)) {
        return DP_BADMSG;
    }
    *head = read;
    return DP_OK;
}

/* ---- names ---- */

static dp_status failed(dp_why *why, const char *what, const char *path)
{
    const int error = errno;
    char text[128];
    return dp_why_set(why, error == ENOSPC || error == EDQUOT ? DP_NOSPACE : DP_IO,
                      "cannot %s %.300s: %s", what, path, strerror_r(error, text, sizeof text));
}

/* How names begin; what follows is the same. */
static const char *const begins[] = {
    [DP_STANDALONE_LAST] = "step-", [DP_STANDALONE_BEST] = "best-"};

static dp_status path_of(const char *folder, dp_standalone_which which, uint64_t steps,
                         const char *end, char path[PATH_MAX], dp_why *why)
{
    const int size = snprintf(path, PATH_MAX, "%s/%s%0*" PRIu64 ".ckpt%s", folder, begins[which],
                              NAME_DIGITS, steps, end);
    return size > 0 && size < PATH_MAX
               ? DP_OK
               : dp_why_set(why, DP_BADARG, "the path %.300s is too long", folder);
}

/* "step-000000000012.ckpt", and nothing else. */
static bool name_is(const char *name, dp_standalone_which which, uint64_t *steps)
{
    char *end;
    if (strncmp(name, begins[which], 5) != 0 || strspn(name + 5, "0123456789") != NAME_DIGITS) {
        return false;
    }
    *steps = strtoull(name + 5, &end, 10);
    return strcmp(end, ".ckpt") == 0;
}

size_t dp_standalone_list(const char *folder, dp_standalone_which which,
                          uint64_t steps[DP_STANDALONE_FILES_MAX])
{
    DIR *const dir = opendir(folder);
    size_t count = 0;
    const struct dirent *entry;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is this function's own */
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        uint64_t found;
        if (!name_is(entry->d_name, which, &found)) {
            continue;
        }
        size_t at = count < DP_STANDALONE_FILES_MAX ? count : DP_STANDALONE_FILES_MAX - 1;
        if (count == DP_STANDALONE_FILES_MAX && steps[at] >= found) {
            continue; /* The oldest of too many. */
        }
        while (at > 0 && steps[at - 1] < found) {
            steps[at] = steps[at - 1];
            at--;
        }
        steps[at] = found;
        count += count < DP_STANDALONE_FILES_MAX;
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return count;
}

/* Removes old checkpoints, all but the saved one of the best; a failure is harmless. */
static void prune(const char *folder, dp_standalone_which which, uint64_t saved)
{
    uint64_t steps[DP_STANDALONE_FILES_MAX];
    char path[PATH_MAX];
    const size_t count = dp_standalone_list(folder, which, steps);
    for (size_t i = 0; i < count; i++) {
        const bool old = which == DP_STANDALONE_BEST ? steps[i] != saved : i >= DP_STANDALONE_KEPT;
        if (old && path_of(folder, which, steps[i], "", path, NULL) == DP_OK) {
            unlink(path);
        }
    }
}

bool dp_standalone_keep_one(const char *folder, uint64_t kept)
{
    uint64_t steps[DP_STANDALONE_FILES_MAX];
    char path[PATH_MAX];
    bool removed = false;
    const size_t count = dp_standalone_list(folder, DP_STANDALONE_LAST, steps);
    for (size_t i = 0; i < count; i++) {
        if (steps[i] != kept &&
            path_of(folder, DP_STANDALONE_LAST, steps[i], "", path, NULL) == DP_OK) {
            removed = unlink(path) == 0 || removed;
        }
    }
    return removed;
}

/* ---- writing ---- */

typedef struct sink {
    int fd;
    const char *path;
    dp_digest digest;
    dp_buf piece;
} sink;

static dp_status put(sink *s, dp_view bytes, dp_why *why)
{
    return dp_fd_write(s->fd, bytes) == DP_OK ? DP_OK : failed(why, "write", s->path);
}

static dp_status put_hashed(sink *s, dp_view bytes, dp_why *why)
{
    dp_digest_add(&s->digest, bytes);
    return put(s, bytes, why);
}

static dp_status put_vector(sink *s, const float *x, size_t n, dp_why *why)
{
    for (size_t at = 0; at < n; at += PIECE_FLOATS) {
        const size_t size = n - at < PIECE_FLOATS ? n - at : PIECE_FLOATS;
        dp_buf_clear(&s->piece);
        DP_TRY(dp_floats_write(x + at, size, &s->piece));
        DP_TRY(put_hashed(s, dp_buf_view(&s->piece), why));
    }
    return DP_OK;
}

static dp_status put_all(sink *s, dp_trainer *trainer, dp_standalone_head *head, dp_hash *hash,
                         dp_why *why)
{
    dp_optim_vector vectors[DP_TRAINER_VECTORS_MAX];
    uint8_t bytes[DP_STANDALONE_HEAD_BYTES];
    head->vectors = (uint32_t)dp_trainer_vectors(trainer, vectors);
    if (head->vectors == 0) {
        return dp_why_set(why, DP_IO, "the device does not give the weights back");
    }
    head->elements = dp_trainer_elements(trainer);
    head->place = dp_trainer_place_of(trainer);
    dp_standalone_head_write(head, bytes);
    dp_digest_init(&s->digest, domain);
    DP_TRY(put_hashed(s, dp_view_of(bytes, sizeof bytes), why));
    for (uint32_t i = 0; i < head->vectors; i++) {
        DP_TRY(put_vector(s, vectors[i].values, head->elements, why));
    }
    *hash = dp_digest_end(&s->digest);
    DP_TRY(put(s, dp_view_of(hash->bytes, sizeof hash->bytes), why));
    return fsync(s->fd) == 0 ? DP_OK : failed(why, "sync", s->path);
}

static dp_status sync_folder(const char *folder, dp_why *why)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return failed(why, "open", folder);
    }
    const dp_status status = fsync(fd) == 0 ? DP_OK : failed(why, "sync", folder);
    close(fd);
    return status;
}

dp_status dp_standalone_save(const char *folder, dp_standalone_which which, dp_trainer *trainer,
                             dp_standalone_head *head, dp_hash *hash, dp_why *why)
{
    char path[PATH_MAX];
    char half[PATH_MAX];
    const uint64_t steps = dp_trainer_place_of(trainer).steps;
    DP_TRY(path_of(folder, which, steps, "", path, why));
    DP_TRY(path_of(folder, which, 0, ".half", half, why)); /* One name, so that nothing piles up. */
    sink s = {.fd = open(half, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644), .path = half};
    if (s.fd < 0) {
        return failed(why, "create", half);
    }
    dp_buf_init(&s.piece, PIECE_FLOATS * sizeof(float));
    dp_status status = put_all(&s, trainer, head, hash, why);
    dp_buf_close(&s.piece);
    if (close(s.fd) != 0 && status == DP_OK) {
        status = failed(why, "close", half);
    }
    if (status == DP_OK && rename(half, path) != 0) {
        status = failed(why, "rename", half);
    }
    if (status != DP_OK) {
        unlink(half);
        return status;
    }
    DP_TRY(sync_folder(folder, why));
    prune(folder, which, steps);
    return DP_OK;
}

/* ---- reading ---- */

static dp_status get(int fd, void *out, size_t size, const char *path, dp_why *why)
{
    size_t done = 0;
    while (done < size) {
        const ssize_t n = read(fd, (uint8_t *)out + done, size - done);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return failed(why, "read", path);
        }
        if (n == 0) {
            return dp_why_set(why, DP_BADMSG, "%.400s is shorter than it says", path);
        }
        done += (size_t)n;
    }
    return DP_OK;
}

static dp_status get_head(int fd, uint8_t bytes[DP_STANDALONE_HEAD_BYTES], dp_standalone_head *head,
                          const char *path, dp_why *why)
{
    DP_TRY(get(fd, bytes, DP_STANDALONE_HEAD_BYTES, path, why));
    const dp_status status =
        dp_standalone_head_read(head, dp_view_of(bytes, DP_STANDALONE_HEAD_BYTES));
    return status == DP_OK ? DP_OK
                           : dp_why_set(why, status,
                                        "%.400s is no checkpoint that this program "
                                        "reads: %s",
                                        path, dp_status_text(status));
}

dp_status dp_standalone_peek(const char *folder, dp_standalone_which which, uint64_t steps,
                             dp_standalone_head *head, dp_why *why)
{
    char path[PATH_MAX];
    uint8_t bytes[DP_STANDALONE_HEAD_BYTES];
    int fd = -1;
    DP_TRY(path_of(folder, which, steps, "", path, why));
    DP_TRY(dp_file_open(path, &fd, why));
    dp_standalone_head read;
    dp_status status = get_head(fd, bytes, &read, path, why);
    close(fd);
    if (status == DP_OK && read.place.steps != steps) {
        status = dp_why_set(why, DP_BADMSG, "%.300s is of another step, %" PRIu64, path,
                            read.place.steps);
    }
    DP_TRY(status);
    *head = read;
    return DP_OK;
}

/* values NULL: only the hash needs the bytes. */
static dp_status get_vector(int fd, dp_digest *digest, uint8_t *piece, dp_optim_vector vector,
                            size_t n, const char *path, dp_why *why)
{
    for (size_t at = 0; at < n; at += PIECE_FLOATS) {
        const size_t count = n - at < PIECE_FLOATS ? n - at : PIECE_FLOATS;
        const dp_view bytes = dp_view_of(piece, count * sizeof(float));
        DP_TRY(get(fd, piece, bytes.size, path, why));
        dp_digest_add(digest, bytes);
        const dp_status status =
            vector.values == NULL ? DP_OK : dp_floats_read(bytes, vector.values + at, count);
        if (status != DP_OK) {
            return dp_why_set(why, status, "%.300s has a number in %s that is none", path,
                              vector.name);
        }
    }
    return DP_OK;
}

/* The whole file. vectors: read.vectors of head.elements floats, as get_vector. */
static dp_status get_all(int fd, const dp_standalone_head *head, const dp_optim_vector *vectors,
                         dp_standalone_head *read, uint8_t *piece, const char *path, dp_why *why)
{
    uint8_t bytes[DP_STANDALONE_HEAD_BYTES];
    dp_digest digest;
    dp_hash kept;
    DP_TRY(get_head(fd, bytes, read, path, why));
    if (read->vectors != head->vectors || read->elements != head->elements ||
        read->rows != head->rows || !dp_hash_equal(&read->manifest, &head->manifest)) {
        return dp_why_set(why, DP_BADMSG, "%.400s is of another run", path);
    }
    dp_digest_init(&digest, domain);
    dp_digest_add(&digest, dp_view_of(bytes, sizeof bytes));
    for (uint32_t i = 0; i < read->vectors; i++) {
        DP_TRY(get_vector(fd, &digest, piece, vectors[i], read->elements, path, why));
    }
    DP_TRY(get(fd, kept.bytes, sizeof kept.bytes, path, why));
    const dp_hash found = dp_digest_end(&digest);
    if (!dp_hash_equal(&found, &kept)) {
        return dp_why_set(why, DP_BADHASH, "%.400s is damaged: its hash does not hold", path);
    }
    return DP_OK;
}

/* Into these vectors. */
static dp_status load(const char *path, const dp_standalone_head *head,
                      const dp_optim_vector *vectors, dp_standalone_head *read, dp_why *why)
{
    int fd = -1;
    dp_buf piece;
    uint8_t *room;
    DP_TRY(dp_file_open(path, &fd, why));
    dp_buf_init(&piece, PIECE_FLOATS * sizeof(float));
    dp_status status = dp_buf_reserve(&piece, PIECE_FLOATS * sizeof(float), &room);
    if (status == DP_OK) {
        status = get_all(fd, head, vectors, read, room, path, why);
    }
    dp_buf_close(&piece);
    close(fd);
    return status;
}

dp_status dp_standalone_load(const char *folder, dp_standalone_which which,
                             const dp_standalone_head *head, dp_trainer *trainer, dp_why *why)
{
    char path[PATH_MAX];
    dp_optim_vector vectors[DP_TRAINER_VECTORS_MAX];
    dp_standalone_head read;
    dp_standalone_head wanted = *head;
    DP_TRY(path_of(folder, which, head->place.steps, "", path, why));
    wanted.vectors = (uint32_t)dp_trainer_vectors(trainer, vectors);
    wanted.elements = dp_trainer_elements(trainer);
    DP_TRY(load(path, &wanted, vectors, &read, why));
    const dp_status status = dp_trainer_place_at(trainer, &read.place);
    return status == DP_OK
               ? DP_OK
               : dp_why_set(why, status, "%.400s is of a place that no step leads to", path);
}

dp_status dp_standalone_weights(const char *folder, dp_standalone_which which,
                                const dp_standalone_head *head, float *weights, dp_why *why)
{
    char path[PATH_MAX];
    const dp_optim_vector vectors[DP_TRAINER_VECTORS_MAX] = {{.name = "x", .values = weights}};
    dp_standalone_head read;
    DP_TRY(path_of(folder, which, head->place.steps, "", path, why));
    return load(path, head, vectors, &read, why);
}
