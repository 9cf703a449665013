#include "compute/codec.h"

#include <string.h>

#include "base/assert.h"
#include "compute/codec_family.h"

enum { VERSION = 1 };

static const uint8_t magic[4] = {'D', 'P', 'U', '1'};

typedef struct family {
    const char *name;
    dp_status (*write)(const float *a, size_t length, dp_writer *out);
    dp_status (*read)(dp_reader *in, dp_codec_run *run);
    size_t run_bytes_max; /* of a full run; a shorter one takes no more */
} family;

static const family families[] = {
    [DP_CODEC_FP32] = {"fp32", dp_codec_fp32_write, dp_codec_fp32_read,
                       sizeof(float[DP_CODEC_RUN])},
    [DP_CODEC_BF16] = {"bf16", dp_codec_bf16_write, dp_codec_bf16_read,
                       sizeof(uint16_t[DP_CODEC_RUN])},
    [DP_CODEC_INT8] = {"int8", dp_codec_int8_write, dp_codec_int8_read,
                       DP_CODEC_RUN + 2 * (DP_CODEC_RUN / DP_CODEC_BLOCK)},
    /* Two centroids, two bits per entry, and gaps: 6 bits each and a unary part of at most (4096 - 64) / 32 in all. */
    [DP_CODEC_SPARSE] = {"sparse", dp_codec_sparse_write, dp_codec_sparse_read, 4 + 16 + 64},
};

static bool kind_exists(unsigned kind)
{
    return kind >= DP_CODEC_FP32 && kind <= DP_CODEC_SPARSE;
}

const char *dp_codec_name(dp_codec_kind kind)
{
    return kind_exists((unsigned)kind) ? families[kind].name : NULL;
}

bool dp_codec_named(const char *name, dp_codec_kind *kind)
{
    for (unsigned i = DP_CODEC_FP32; i <= DP_CODEC_SPARSE; i++) {
        if (strcmp(families[i].name, name) == 0) {
            *kind = (dp_codec_kind)i;
            return true;
        }
    }
    return false;
}

static size_t run_length(size_t left)
{
    return left < DP_CODEC_RUN ? left : DP_CODEC_RUN;
}

uint64_t dp_codec_bytes_max(dp_codec_kind kind, size_t n)
{
    if (!kind_exists((unsigned)kind) || n > DP_CODEC_ELEMENTS_MAX) {
        return 0;
    }
    const uint64_t runs = n / DP_CODEC_RUN + 1;
    return DP_CODEC_HEADER_BYTES + runs * families[kind].run_bytes_max;
}

static dp_status encode_runs(const family *f, const float *a, size_t n, dp_buf *out)
{
    size_t done = 0;
    while (done < n) {
        const size_t length = run_length(n - done);
        uint8_t *room;
        DP_TRY(dp_buf_reserve(out, f->run_bytes_max, &room));
        dp_writer writer = dp_writer_of(room, f->run_bytes_max);
        DP_TRY(f->write(a + done, length, &writer));
        dp_assert(!writer.full);
        dp_buf_commit(out, writer.size);
        done += length;
    }
    return DP_OK;
}

dp_status dp_codec_encode(dp_codec_kind kind, const float *a, size_t n, dp_buf *out)
{
    if (!kind_exists((unsigned)kind) || n > DP_CODEC_ELEMENTS_MAX) {
        return DP_BADARG;
    }
    uint8_t header[DP_CODEC_HEADER_BYTES];
    dp_writer writer = dp_writer_of(header, sizeof header);
    dp_write_bytes(&writer, magic, sizeof magic);
    dp_write_u8(&writer, VERSION);
    dp_write_u8(&writer, (uint8_t)kind);
    dp_write_u16(&writer, 0);
    dp_write_u64(&writer, n);
    const size_t before = out->size;
    DP_TRY(dp_buf_append(out, dp_view_of(header, writer.size)));
    const dp_status status = encode_runs(&families[kind], a, n, out);
    if (status != DP_OK) {
        out->size = before;
    }
    return status;
}

dp_status dp_codec_kind_of(dp_view blob, dp_codec_kind *kind)
{
    if (blob.size < DP_CODEC_HEADER_BYTES || memcmp(blob.data, magic, sizeof magic) != 0 ||
        !kind_exists(blob.data[5])) {
        return DP_BADMSG;
    }
    *kind = (dp_codec_kind)blob.data[5];
    return DP_OK;
}

dp_status dp_codec_open(dp_codec_cursor *cursor, dp_view blob, size_t n)
{
    dp_codec_kind kind;
    DP_TRY(dp_codec_kind_of(blob, &kind));
    dp_reader reader = dp_reader_of(blob);
    dp_read_view(&reader, sizeof magic);
    if (dp_read_u8(&reader) != VERSION) {
        return DP_VERSION;
    }
    dp_read_u8(&reader);
    const uint16_t reserved = dp_read_u16(&reader);
    const uint64_t elements = dp_read_u64(&reader);
    if (reserved != 0 || elements != n || n > DP_CODEC_ELEMENTS_MAX ||
        (n == 0 && dp_reader_left(&reader) != 0)) {
        return DP_BADMSG;
    }
    *cursor = (dp_codec_cursor){.reader = reader, .kind = kind, .left = n};
    return DP_OK;
}

dp_status dp_codec_next(dp_codec_cursor *cursor, dp_codec_run *run)
{
    dp_assert(cursor->left > 0);
    run->length = run_length(cursor->left);
    DP_TRY(families[cursor->kind].read(&cursor->reader, run));
    if (cursor->reader.failed) {
        return DP_BADMSG;
    }
    cursor->left -= run->length;
    return cursor->left == 0 ? dp_reader_finish(&cursor->reader) : DP_OK;
}

void dp_codec_expand(const dp_codec_run *run, float *d)
{
    if (run->dense) {
        memcpy(d, run->value, run->length * sizeof *d);
        return;
    }
    memset(d, 0, run->length * sizeof *d);
    for (size_t i = 0; i < run->count; i++) {
        d[run->index[i]] = run->value[i];
    }
}

dp_status dp_codec_check(dp_view blob, size_t n)
{
    dp_codec_cursor cursor;
    DP_TRY(dp_codec_open(&cursor, blob, n));
    dp_codec_run run;
    while (cursor.left > 0) {
        DP_TRY(dp_codec_next(&cursor, &run));
    }
    return DP_OK;
}

dp_status dp_codec_decode(dp_view blob, float *d, size_t n)
{
    DP_TRY(dp_codec_check(blob, n));
    dp_codec_cursor cursor;
    DP_TRY(dp_codec_open(&cursor, blob, n));
    dp_codec_run run;
    float *to = d;
    while (cursor.left > 0) {
        DP_TRY(dp_codec_next(&cursor, &run));
        dp_codec_expand(&run, to);
        to += run.length;
    }
    return DP_OK;
}

dp_status dp_codec_energy(dp_view blob, size_t n, unsigned __int128 *energy)
{
    dp_codec_cursor cursor;
    DP_TRY(dp_codec_open(&cursor, blob, n));
    dp_codec_run run;
    unsigned __int128 exact = 0; /* below 2^30 / 256 blocks * 2^102 */
    double square = 0;
    while (cursor.left > 0) {
        DP_TRY(dp_codec_next(&cursor, &run));
        exact += run.energy;
        square += run.square;
    }
    if (square >= 0x1p72) {
        exact = DP_CODEC_ENERGY_MAX;
    } else if (square > 0) {
        exact = (unsigned __int128)(square * 0x1p48); /* A product with a power of two is exact. */
    }
    *energy = exact > DP_CODEC_ENERGY_MAX ? DP_CODEC_ENERGY_MAX : exact;
    return DP_OK;
}
