#include "compute/format/base_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "compute/machine/files.h"

enum { PIECE_BYTES = 4 << 20 };

typedef struct sink {
    int fd;
    dp_buf piece;
} sink;

static dp_status flush(sink *s)
{
    const dp_status status = dp_fd_write(s->fd, dp_buf_view(&s->piece));
    dp_buf_clear(&s->piece);
    return status;
}

static dp_status put(void *context, dp_view bytes)
{
    sink *const s = context;
    if (s->piece.size + bytes.size > PIECE_BYTES) {
        DP_TRY(flush(s));
    }
    return bytes.size > PIECE_BYTES ? dp_fd_write(s->fd, bytes) : dp_buf_append(&s->piece, bytes);
}

static dp_status failed(dp_why *why, dp_status status, const char *path)
{
    const int error = errno;
    char text[128];
    if (status != DP_IO) {
        return dp_why_set(why, status, "cannot make %.300s: %s", path, dp_status_text(status));
    }
    return dp_why_set(why, error == ENOSPC || error == EDQUOT ? DP_NOSPACE : DP_IO,
                      "cannot write %.300s: %s", path, strerror_r(error, text, sizeof text));
}

static dp_status write_file(const char *path, const dp_model *model, dp_base_kind kind,
                            const float *theta, dp_why *why)
{
    sink s = {.fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
    if (s.fd < 0) {
        return failed(why, DP_IO, path);
    }
    dp_buf_init(&s.piece, PIECE_BYTES);
    dp_status status = dp_base_weights_write(model, kind, theta, put, &s);
    if (status == DP_OK) {
        status = flush(&s);
    }
    if (status != DP_OK) {
        status = failed(why, status, path);
    }
    dp_buf_close(&s.piece);
    if (close(s.fd) != 0 && status == DP_OK) {
        status = failed(why, DP_IO, path);
    }
    return status;
}

static const double gib = 1024.0 * 1024.0 * 1024.0;

static dp_status check_memory(const dp_model *model, uint64_t usable, dp_why *why)
{
    const uint64_t taken = sizeof(float) * (uint64_t)model->n_elements;
    if (usable == 0 || taken <= usable) {
        return DP_OK;
    }
    return dp_why_set(why, DP_TOOBIG,
                      "to make the base, the first start holds all weights of it in 32 bits: %.1f "
                      "GiB, and %.1f GiB are there; begin on a machine with more memory, or "
                      "take a smaller model",
                      (double)taken / gib, (double)usable / gib);
}

dp_status dp_base_file_check(const dp_model *model, dp_base_kind kind, uint64_t usable, dp_why *why)
{
    const uint64_t bytes = dp_base_weights_bytes(model, kind);
    if (bytes <= DP_OBJECT_BYTES_MAX) {
        return check_memory(model, usable, why);
    }
    const char *const smaller =
        dp_base_weights_bytes(model, DP_BASE_INT8) <= DP_OBJECT_BYTES_MAX  ? "int8"
        : dp_base_weights_bytes(model, DP_BASE_NF4) <= DP_OBJECT_BYTES_MAX ? "nf4"
                                                                           : NULL;
    if (smaller != NULL) {
        return dp_why_set(why, DP_TOOBIG,
                          "the base would have %.1f GiB, and one object holds 8: write "
                          "model.adapt.base: %s",
                          (double)bytes / gib, smaller);
    }
    return dp_why_set(why, DP_TOOBIG,
                      "the base would have %.1f GiB, and one object holds 8: take a smaller model",
                      (double)bytes / gib);
}

dp_status dp_base_file_write(const char *folder, const char *name, const dp_model *model,
                             dp_base_kind kind, const float *theta, dp_hash *root, uint64_t *bytes,
                             dp_why *why)
{
    char path[PATH_MAX];
    dp_view made;
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= sizeof path) {
        return dp_why_set(why, DP_BADARG, "the path %.300s is too long", folder);
    }
    DP_TRY(write_file(path, model, kind, theta, why));
    DP_TRY(dp_file_map_path(path, &made, why));
    *root = dp_object_hash(made, NULL);
    *bytes = made.size;
    dp_file_unmap(made);
    return DP_OK;
}
