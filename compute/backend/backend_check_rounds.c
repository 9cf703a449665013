/* The self-test: the calls of a round, which must give the bits of the CPU. Covers work buffers,
 * codecs, the outer step and pairwise averaging. */
#include <string.h>

#include "compute/backend/backend_check_inside.h"
#include "compute/model/state.h"

enum { HALF = 32768, ONE = 65536 }; /* Q16 */

/* Copies x of the CPU to the backend: after training the two differ by rounding. */
static dp_status level(dp_twins *t)
{
    dp_buf_clear(&t->bytes);
    DP_TRY(dp_floats_write(t->of[1]->values(t->engines[1], DP_VECTOR_X), t->model.n_elements,
                           &t->bytes));
    DP_TRY(dp_twins_told(t, 0, "load",
                         t->of[0]->load(t->engines[0], DP_VECTOR_X, dp_buf_view(&t->bytes))));
    return dp_twins_same(t, DP_VECTOR_X, "load");
}

static dp_status same_blobs(dp_twins *t, int blob, const dp_codec *codec)
{
    if (!dp_view_equal(t->blobs[0][blob], t->blobs[1][blob])) {
        return dp_why_set(t->why, DP_UNSUPPORTED, "its %s blob has other bytes than the CPU's",
                          dp_codec_name(codec->kind));
    }
    return DP_OK;
}

static dp_status encode_f(dp_twins *t, const dp_codec *codec)
{
    for (int twin = 0; twin < 2; twin++) {
        DP_TRY(dp_twins_told(
            t, twin, "encode",
            t->of[twin]->encode(t->engines[twin], DP_VECTOR_F, codec, &t->blobs[twin][1])));
    }
    return same_blobs(t, 1, codec);
}

static dp_status start_a(dp_twins *t, const dp_codec *codec)
{
    for (int twin = 0; twin < 2; twin++) {
        DP_TRY(dp_twins_told(t, twin, "encode_start",
                             t->of[twin]->encode_start(t->engines[twin], DP_VECTOR_A, codec)));
    }
    return DP_OK;
}

/* encode_take waits for the blob where it is not ready yet. */
static dp_status take_a(dp_twins *t, const dp_codec *codec)
{
    const float *values[2];
    bool ready;
    for (int twin = 0; twin < 2; twin++) {
        DP_TRY(dp_twins_told(t, twin, "encode_ready",
                             t->of[twin]->encode_ready(t->engines[twin], &ready)));
        DP_TRY(dp_twins_told(
            t, twin, "encode_take",
            t->of[twin]->encode_take(t->engines[twin], &t->blobs[twin][0], &values[twin])));
    }
    if (memcmp(values[0], values[1], t->model.n_elements * sizeof(float)) != 0) {
        return dp_why_set(t->why, DP_UNSUPPORTED,
                          "what it gives with a blob is not what the CPU encoded");
    }
    return same_blobs(t, 0, codec);
}

static dp_status check_round(dp_twins *t, const dp_codec *codec, uint32_t mu)
{
    const dp_codec dense = dp_codec_default(DP_CODEC_INT8);
    const uint32_t q[2] = {0x50000000U, 0x30000000U};
    DP_TWINS_DO(t, snapshot, DP_VECTOR_F, DP_VECTOR_NONE, DP_VECTOR_THETA);
    DP_TWINS_DO(t, scale, DP_VECTOR_F, HALF);
    DP_TWINS_DO(t, snapshot, DP_VECTOR_A, DP_VECTOR_E, DP_VECTOR_THETA);
    DP_TRY(dp_twins_same_all(t, "snapshot"));
    DP_TRY(encode_f(t, &dense));
    DP_TRY(start_a(t, codec));
    DP_TWINS_DO(t, copy, DP_VECTOR_ANCHOR, DP_VECTOR_X);
    DP_TWINS_DO(t, subtract, DP_VECTOR_X, DP_VECTOR_THETA);
    DP_TRY(take_a(t, codec));
    const dp_outer outer = {.alpha = ONE - 1, .mu = mu, .long_once = true};
    const dp_consensus_items items = {.blobs = t->blobs[1], .q = q, .n = 2};
    DP_TRY(dp_twins_apply(t, &items, &outer));
    DP_TRY(dp_twins_apply_parts(t, t->blobs[1][0], &outer));
    for (int twin = 0; twin < 2; twin++) {
        DP_TRY(
            dp_twins_told(t, twin, "settle",
                          t->of[twin]->settle(t->engines[twin], t->blobs[1][0], ONE / 3, 0.95F)));
    }
    DP_TWINS_DO(t, add, DP_VECTOR_X, DP_VECTOR_THETA);
    DP_TRY(dp_twins_same_all(t, "a round"));
    double moved[2];
    for (int twin = 0; twin < 2; twin++) {
        DP_TRY(dp_twins_told(t, twin, "mix",
                             t->of[twin]->mix(t->engines[twin], t->blobs[1], 0.375, &moved[twin])));
    }
    DP_TRY(dp_twins_same_all(t, "an exchange"));
    return dp_twins_near(t, "sum of an exchange", moved);
}

dp_status dp_twins_check_rounds(dp_twins *t)
{
    /* Beside the standard options some that are not. */
    static const dp_codec others[] = {{.kind = DP_CODEC_SPARSE, .keep = 16, .bits = 2},
                                      {.kind = DP_CODEC_SPARSE, .keep = 128, .bits = 1},
                                      {.kind = DP_CODEC_INT8, .block = 1024},
                                      {.kind = DP_CODEC_INT4, .block = 256}};
    size_t count = 0;
    const dp_codec_row *const rows = dp_codec_rows(&count);
    DP_TRY(level(t));
    DP_TWINS_DO(t, copy, DP_VECTOR_E, DP_VECTOR_X);
    DP_TWINS_DO(t, zero, DP_VECTOR_E);
    for (size_t i = 0; i < count; i++) {
        const dp_codec codec = dp_codec_default(rows[i].kind);
        DP_TRY(check_round(t, &codec, i == 0 ? 0 : ONE / 10 * 9));
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        DP_TRY(check_round(t, &others[i], 0));
    }
    return DP_OK;
}
