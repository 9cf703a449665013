#include "compute/codec/codec.h"

#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "compute/codec/codec_family.h"

enum { VERSION = 2 };

static const uint8_t magic[4] = {'D', 'P', 'U', '1'};

#define FAMILY(name, NAME, number, least, most, standard, thins)                                   \
    [DP_CODEC_##NAME] = &dp_codec_##name,
static const dp_codec_family *const families[DP_CODEC_KINDS] = {DP_CODEC_LIST(FAMILY)};

/* ---- Options. */

static dp_codec codec_of(dp_codec_kind kind, uint32_t keep)
{
    const dp_codec_row *const row = dp_codec_row_of((unsigned)kind);
    dp_assert(row != NULL);
    return (dp_codec){.kind = kind,
                      .block = row->block_default,
                      .keep = row->thins ? keep : 0,
                      .bits = row->thins ? DP_CODEC_BITS_DEFAULT : 0};
}

dp_codec dp_codec_default(dp_codec_kind kind)
{
    return codec_of(kind, DP_CODEC_KEEP_DEFAULT);
}

dp_codec dp_codec_of_run(const dp_manifest *m)
{
    return dp_codec_of_round(m, 0);
}

dp_codec dp_codec_dense_of_run(const dp_manifest *m)
{
    const dp_codec codec = dp_codec_of_run(m);
    return codec.keep == 0 ? codec : dp_codec_default(DP_CODEC_INT8);
}

bool dp_codec_keep_permitted(const dp_manifest *m, uint32_t keep)
{
    const uint32_t most = m->codec_keep_most != 0 ? m->codec_keep_most : m->codec_keep;
    return keep == 0 || (keep >= m->codec_keep && keep <= most && (keep & (keep - 1)) == 0);
}

dp_codec dp_codec_of_round(const dp_manifest *m, uint32_t keep)
{
    return codec_of(m->codec, keep == 0 ? m->codec_keep : keep);
}

dp_codec dp_codec_after_loss(const dp_manifest *m, uint32_t keep)
{
    dp_codec codec = dp_codec_of_round(m, keep);
    if (codec.keep >= 2 * DP_CODEC_KEEP_MIN) {
        codec.keep /= 2;
    }
    return codec;
}

static bool same(const dp_codec *a, const dp_codec *b)
{
    return a->kind == b->kind && a->block == b->block && a->keep == b->keep && a->bits == b->bits;
}

bool dp_codec_allowed(const dp_codec *codec, const dp_manifest *manifest, uint32_t keep)
{
    if (!dp_codec_keep_permitted(manifest, keep)) {
        return false;
    }
    const dp_codec sparse = dp_codec_of_round(manifest, keep);
    const dp_codec dense = dp_codec_dense_of_run(manifest);
    const dp_codec after = dp_codec_after_loss(manifest, keep);
    return same(codec, &sparse) || same(codec, &dense) || same(codec, &after);
}

/* True if the codec exists and its unused options are 0. */
static bool is_valid(const dp_codec *codec)
{
    const dp_codec_row *const row = dp_codec_row_of((unsigned)codec->kind);
    if (row == NULL ||
        dp_codec_options_check(codec->kind, codec->block, codec->keep, codec->bits, NULL) !=
            DP_OK ||
        (codec->block == 0) != (row->block_default == 0)) {
        return false;
    }
    return row->thins || (codec->keep == 0 && codec->bits == 0);
}

/* ---- Writing. */

static size_t run_length(size_t left)
{
    return left < DP_CODEC_RUN ? left : DP_CODEC_RUN;
}

uint64_t dp_codec_bytes_max(const dp_codec *codec, size_t n)
{
    if (!is_valid(codec) || n > DP_CODEC_ELEMENTS_MAX) {
        return 0;
    }
    const uint64_t runs = n / DP_CODEC_RUN + 1;
    return DP_CODEC_HEADER_BYTES + runs * families[codec->kind]->run_bytes_max(codec);
}

uint64_t dp_codec_bytes_max_any(size_t n)
{
    const dp_codec widest = {.kind = DP_CODEC_FP32};
    return dp_codec_bytes_max(&widest, n);
}

/* A part of a vector that there may be. */
static bool is_part(size_t first, size_t n)
{
    return first % DP_CODEC_RUN == 0 && first <= DP_CODEC_ELEMENTS_MAX &&
           n <= DP_CODEC_ELEMENTS_MAX - first;
}

/* As the header names it. */
static uint64_t part_word(size_t first, size_t n)
{
    return (uint64_t)(first / DP_CODEC_RUN) << 32 | n;
}

dp_status dp_codec_header(const dp_codec *codec, size_t n, dp_buf *out)
{
    return dp_codec_header_at(codec, 0, n, out);
}

dp_status dp_codec_header_at(const dp_codec *codec, size_t first, size_t n, dp_buf *out)
{
    if (!is_valid(codec) || !is_part(first, n)) {
        return DP_BADARG;
    }
    uint8_t header[DP_CODEC_HEADER_BYTES];
    dp_writer writer = dp_writer_of(header, sizeof header);
    const uint32_t size = codec->block + codec->keep; /* One of them is 0. */
    dp_write_bytes(&writer, magic, sizeof magic);
    dp_write_u8(&writer, VERSION);
    dp_write_u8(&writer, (uint8_t)codec->kind);
    dp_write_u8(&writer, (uint8_t)(size == 0 ? 0 : __builtin_ctz(size)));
    dp_write_u8(&writer, (uint8_t)codec->bits);
    dp_write_u64(&writer, part_word(first, n));
    dp_write_u64(&writer, 0);
    dp_assert(writer.size == sizeof header);
    return dp_buf_append(out, dp_view_of(header, writer.size));
}

static dp_status append_runs(const dp_codec_ops *ops, const dp_codec *codec, const float *a,
                             size_t n, dp_buf *out)
{
    const dp_codec_family *const family = families[codec->kind];
    const size_t most = family->run_bytes_max(codec);
    dp_codec_slice slice = {.ops = ops, .codec = codec};
    for (size_t done = 0; done < n; done += slice.length) {
        slice.a = a + done;
        slice.length = run_length(n - done);
        uint8_t *room;
        DP_TRY(dp_buf_reserve(out, most, &room));
        dp_writer writer = dp_writer_of(room, most);
        DP_TRY(family->write(&slice, &writer));
        dp_assert(!writer.full);
        dp_buf_commit(out, writer.size);
    }
    return DP_OK;
}

dp_status dp_codec_encode_with(const dp_codec_ops *ops, const dp_codec *codec, const float *a,
                               size_t n, dp_buf *out)
{
    const size_t before = out->size;
    DP_TRY(dp_codec_header(codec, n, out));
    const dp_status status = append_runs(ops, codec, a, n, out);
    if (status != DP_OK) {
        out->size = before;
    }
    return status;
}

dp_status dp_codec_encode(const dp_codec *codec, const float *a, size_t n, dp_buf *out)
{
    return dp_codec_encode_with(dp_codec_ops_best(), codec, a, n, out);
}

dp_status dp_codec_append(const dp_codec *codec, const float *a, size_t first, size_t n,
                          dp_buf *out)
{
    if (!is_valid(codec) || !is_part(first, n)) {
        return DP_BADARG;
    }
    const size_t before = out->size;
    const dp_status status = append_runs(dp_codec_ops_best(), codec, a, n, out);
    if (status != DP_OK) {
        out->size = before;
    }
    return status;
}

/* ---- Reading. */

dp_status dp_codec_peek(dp_view blob, dp_codec *codec, uint64_t *elements)
{
    dp_reader reader = dp_reader_of(blob);
    uint8_t start[sizeof magic];
    dp_read_bytes(&reader, start, sizeof start);
    const uint8_t version = dp_read_u8(&reader);
    const dp_codec_row *const row = dp_codec_row_of(dp_read_u8(&reader));
    const uint8_t size = dp_read_u8(&reader);
    const uint8_t bits = dp_read_u8(&reader);
    const uint64_t n = dp_read_u64(&reader);
    const uint64_t zero = dp_read_u64(&reader);
    if (memcmp(start, magic, sizeof magic) != 0) {
        return DP_BADMSG;
    }
    if (version != VERSION) {
        return DP_VERSION;
    }
    if (reader.failed || row == NULL || size > 31 || zero != 0) {
        return DP_BADMSG;
    }
    dp_codec found = {.kind = row->kind, .bits = bits};
    const uint32_t value = size == 0 ? 0 : UINT32_C(1) << size;
    *(row->thins ? &found.keep : &found.block) = value;
    if (!is_valid(&found)) {
        return DP_BADMSG;
    }
    *codec = found;
    *elements = n;
    return DP_OK;
}

dp_codec_cursor dp_codec_cursor_of(const dp_codec *codec, dp_view runs, size_t n)
{
    return (dp_codec_cursor){
        .reader = dp_reader_of(runs), .codec = *codec, .ops = dp_codec_ops_best(), .left = n};
}

dp_status dp_codec_open(dp_codec_cursor *cursor, dp_view blob, size_t n)
{
    return dp_codec_open_at(cursor, blob, 0, n);
}

dp_status dp_codec_open_at(dp_codec_cursor *cursor, dp_view blob, size_t first, size_t n)
{
    dp_codec codec;
    uint64_t elements;
    DP_TRY(dp_codec_peek(blob, &codec, &elements));
    dp_reader reader = dp_reader_of(blob);
    dp_read_view(&reader, DP_CODEC_HEADER_BYTES);
    const dp_view runs = dp_read_view(&reader, dp_reader_left(&reader));
    if (!is_part(first, n) || elements != part_word(first, n) || (n == 0 && runs.size != 0)) {
        return DP_BADMSG;
    }
    *cursor = dp_codec_cursor_of(&codec, runs, n);
    return DP_OK;
}

dp_status dp_codec_next(dp_codec_cursor *cursor, dp_codec_run *run)
{
    dp_assert(cursor->left > 0);
    run->length = run_length(cursor->left);
    DP_TRY(families[cursor->codec.kind]->read(cursor, run));
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

void dp_codec_add(const dp_codec_ops *ops, const dp_codec_run *run, float f, float *acc)
{
    if (run->dense) {
        ops->add(acc, run->value, run->length, f);
        return;
    }
    for (size_t i = 0; i < run->count; i++) {
        acc[run->index[i]] += f * run->value[i];
    }
}

dp_status dp_codec_check(dp_view blob, size_t n)
{
    return dp_codec_check_at(blob, 0, n);
}

dp_status dp_codec_check_at(dp_view blob, size_t first, size_t n)
{
    dp_codec_cursor cursor;
    DP_TRY(dp_codec_open_at(&cursor, blob, first, n));
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

/* ---- Measuring. */

void dp_codec_tally_add(dp_codec_tally *tally, const dp_codec *codec, dp_codec_run *runs, size_t n)
{
    dp_assert(n <= DP_CODEC_ABREAST);
    if (dp_codec_tally_waits(codec)) {
        families[codec->kind]->measure(runs, n);
    }
    for (size_t i = 0; i < n; i++) {
        tally->exact += runs[i].energy; /* below 2^31 elements * 2^94, a square of 127 * 65504 */
        tally->square += runs[i].square;
    }
}

bool dp_codec_tally_waits(const dp_codec *codec)
{
    return families[codec->kind]->measure != NULL;
}

unsigned __int128 dp_codec_tally_end(const dp_codec_tally *tally)
{
    unsigned __int128 exact = tally->exact;
    if (tally->square >= 0x1p72) {
        exact = DP_CODEC_ENERGY_MAX;
    } else if (tally->square > 0) {
        exact = (unsigned __int128)(tally->square *
                                    0x1p48); /* A product with a power of two is exact. */
    }
    return exact > DP_CODEC_ENERGY_MAX ? DP_CODEC_ENERGY_MAX : exact;
}

dp_status dp_codec_energy_next(dp_codec_cursor *cursor, size_t n, unsigned __int128 *energy)
{
    const size_t most = dp_codec_tally_waits(&cursor->codec) ? DP_CODEC_ABREAST : 1;
    dp_codec_tally tally = {0};
    dp_codec_run runs[DP_CODEC_ABREAST];
    for (size_t done = 0; done < n;) {
        size_t read = 0;
        while (read < most && done < n) {
            DP_TRY(dp_codec_next(cursor, &runs[read]));
            done += runs[read].length;
            read++;
        }
        dp_codec_tally_add(&tally, &cursor->codec, runs, read);
    }
    *energy = dp_codec_tally_end(&tally);
    return DP_OK;
}

dp_status dp_codec_energy(dp_view blob, size_t n, unsigned __int128 *energy)
{
    dp_codec_cursor cursor;
    DP_TRY(dp_codec_open(&cursor, blob, n));
    return dp_codec_energy_next(&cursor, n, energy);
}

void dp_codec_leaves(const dp_codec_ops *ops, const dp_codec_run *run, const float *g,
                     double sums[2])
{
    float d[DP_CODEC_RUN];
    if (!run->dense) {
        dp_codec_expand(run, d);
    }
    ops->squares(g, run->dense ? run->value : d, run->length, sums);
}

dp_status dp_codec_error(dp_view blob, const float *a, size_t n, double *norm, double *error)
{
    dp_codec_cursor cursor;
    DP_TRY(dp_codec_open(&cursor, blob, n));
    dp_codec_run run;
    double sums[2] = {0};
    while (cursor.left > 0) {
        DP_TRY(dp_codec_next(&cursor, &run));
        dp_codec_leaves(cursor.ops, &run, a, sums);
        a += run.length;
    }
    *norm = sqrt(sums[0]);
    *error = sqrt(sums[1]);
    return DP_OK;
}
