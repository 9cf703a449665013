#include "compute/outer/part.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "compute/codec/feedback.h"
#include "compute/outer/consensus.h"
#include "tests/lib/check.h"
#include "tests/lib/mutate.h"

enum { N = 5 * DP_CODEC_RUN + 77, RUNS = 6, NODES = 3, BLOB_MAX = 1 << 20 };

static const uint32_t q_one = UINT32_C(1) << 31;
/* Parts of one run, two, none, and the rest. */
static const dp_part_cuts cuts = {.n = 4, .first = {0, 11000, 33000, 33001}};

static void fill(float *a, size_t n, uint64_t seed)
{
    dp_rng rng;
    dp_rng_init(&rng, seed);
    for (size_t i = 0; i < n; i++) {
        a[i] = ((float)dp_rng_below(&rng, 2000001) - 1e6F) * 1e-8F;
    }
}

static dp_buf encoded(const dp_codec *codec, const float *a)
{
    dp_buf blob;
    dp_buf_init(&blob, BLOB_MAX);
    CHECK_OK(dp_codec_encode(codec, a, N, &blob));
    return blob;
}

static dp_part_place place_of(uint32_t p)
{
    dp_part_place place;
    CHECK_OK(dp_part_place_of(dp_part_range_of(&cuts, p), N, &place));
    return place;
}

/* The blob of part p in one piece. */
static dp_buf part_of(dp_view blob, uint32_t p)
{
    dp_part_blob parts[DP_PARTS_MAX];
    unsigned __int128 energy;
    dp_buf out;
    dp_buf_init(&out, BLOB_MAX);
    CHECK_OK(dp_part_cut(blob, N, &cuts, parts, &energy));
    CHECK_OK(dp_buf_append(&out, dp_view_of(parts[p].header, sizeof parts[p].header)));
    CHECK_OK(dp_buf_append(&out, parts[p].runs));
    return out;
}

/* Elements of a part's blob; those of other parts are untouched. */
static void decode_part(dp_view blob, dp_part_place place, float *d)
{
    const uint32_t q = q_one;
    dp_consensus_sum *sum;
    const float *g;
    size_t length;
    CHECK_OK(dp_consensus_sum_open(&sum, place.first, place.n,
                                   &(dp_consensus_items){.blobs = &blob, .q = &q, .n = 1}));
    for (size_t at = place.first; at < place.first + place.n; at += length) {
        CHECK_OK(dp_consensus_sum_next(sum, &g, &length));
        memcpy(d + at, g, length * sizeof *d);
    }
    CHECK_OK(dp_consensus_sum_next(sum, &g, &length));
    CHECK(length == 0);
    dp_consensus_sum_close(sum);
}

static void shares_lie_at_whole_runs_and_cover_the_vector(void **state)
{
    static const size_t sizes[] = {1, 4095, 4096, 4097, N, (size_t)1 << 31};
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        size_t end = 0;
        for (uint32_t p = 0; p < 32; p++) {
            dp_part_place place;
            const dp_part_range range = {.first = 2048 * p, .end = 2048 * (p + 1)};
            CHECK_OK(dp_part_place_of(range, sizes[s], &place));
            CHECK(place.first == end);
            CHECK(place.n == 0 || place.first % DP_CODEC_RUN == 0);
            end += place.n;
        }
        CHECK(end == sizes[s]);
    }
    CHECK(place_of(0).n == DP_CODEC_RUN && place_of(1).n == 2 * DP_CODEC_RUN);
    CHECK(place_of(2).n == 0 && place_of(2).first == place_of(3).first);
    CHECK(place_of(3).n == N - 3 * DP_CODEC_RUN);
}

static void no_range_is_all_and_a_bad_one_is_none(void **state)
{
    dp_part_place place = {0};
    (void)state;
    CHECK_OK(dp_part_place_of((dp_part_range){0}, N, &place));
    CHECK(place.first == 0 && place.n == N);
    CHECK_STATUS(dp_part_place_of((dp_part_range){5, 4}, N, &place), DP_BADARG);
    CHECK_STATUS(dp_part_place_of((dp_part_range){5, 65537}, N, &place), DP_BADARG);
    CHECK_STATUS(dp_part_place_of((dp_part_range){0, UINT32_MAX}, N, &place), DP_BADARG);
}

static void parts_of_a_blob_decode_to_its_elements(void **state)
{
    static float a[N];
    static float whole[N];
    static float pieces[N];
    (void)state;
    fill(a, N, 1);
    size_t count = 0;
    const dp_codec_row *const rows = dp_codec_rows(&count);
    for (size_t i = 0; i < count; i++) {
        const dp_codec codec = dp_codec_default(rows[i].kind);
        dp_buf blob = encoded(&codec, a);
        CHECK_OK(dp_codec_decode(dp_buf_view(&blob), whole, N));
        memset(pieces, 0xff, sizeof pieces);
        for (uint32_t p = 0; p < cuts.n; p++) {
            dp_buf part = part_of(dp_buf_view(&blob), p);
            decode_part(dp_buf_view(&part), place_of(p), pieces);
            dp_buf_close(&part);
        }
        CHECK(memcmp(whole, pieces, sizeof whole) == 0);
        dp_buf_close(&blob);
    }
}

static void one_part_of_all_is_the_blob_itself(void **state)
{
    static float a[N];
    static const dp_part_cuts one = {.n = 1};
    dp_part_blob parts[DP_PARTS_MAX];
    unsigned __int128 energy;
    (void)state;
    fill(a, N, 2);
    const dp_codec codec = dp_codec_default(DP_CODEC_SPARSE);
    dp_buf blob = encoded(&codec, a);
    CHECK_OK(dp_part_cut(dp_buf_view(&blob), N, &one, parts, &energy));
    CHECK(memcmp(parts[0].header, blob.data, sizeof parts[0].header) == 0);
    CHECK(parts[0].runs.data == blob.data + DP_CODEC_HEADER_BYTES);
    CHECK(parts[0].runs.size == blob.size - DP_CODEC_HEADER_BYTES);
    dp_buf_close(&blob);
}

static void a_part_has_no_more_energy_than_the_whole(void **state)
{
    static float a[N];
    (void)state;
    fill(a, N, 3);
    size_t count = 0;
    const dp_codec_row *const rows = dp_codec_rows(&count);
    for (size_t i = 0; i < count; i++) {
        const dp_codec codec = dp_codec_default(rows[i].kind);
        dp_part_blob parts[DP_PARTS_MAX];
        unsigned __int128 told;
        unsigned __int128 sum = 0;
        dp_buf blob = encoded(&codec, a);
        CHECK_OK(dp_part_cut(dp_buf_view(&blob), N, &cuts, parts, &told));
        for (uint32_t p = 0; p < cuts.n; p++) {
            unsigned __int128 energy = 0;
            dp_buf part = part_of(dp_buf_view(&blob), p);
            CHECK_OK(dp_part_energy(dp_buf_view(&part), place_of(p), &energy));
            CHECK(energy == parts[p].energy && energy <= told);
            CHECK((energy == 0) == (place_of(p).n == 0));
            sum += energy;
            dp_buf_close(&part);
        }
        CHECK(sum == told);
        dp_buf_close(&blob);
    }
}

static void energies_beyond_what_a_number_holds_stay_there(void **state)
{
    static float a[N];
    dp_part_blob parts[DP_PARTS_MAX];
    unsigned __int128 told;
    (void)state;
    for (size_t i = 0; i < N; i++) {
        a[i] = DP_CODEC_VALUE_MAX;
    }
    const dp_codec codec = dp_codec_default(DP_CODEC_FP32);
    dp_buf blob = encoded(&codec, a);
    CHECK_OK(dp_part_cut(dp_buf_view(&blob), N, &cuts, parts, &told));
    CHECK(told == DP_CODEC_ENERGY_MAX && parts[0].energy == DP_CODEC_ENERGY_MAX);
    dp_buf_close(&blob);
}

static void a_blob_of_a_part_begins_where_a_run_does(void **state)
{
    static float a[N];
    const dp_codec none = {.kind = DP_CODEC_KINDS};
    const dp_codec codec = dp_codec_default(DP_CODEC_BF16);
    dp_buf out;
    (void)state;
    fill(a, N, 8);
    dp_buf_init(&out, BLOB_MAX);
    CHECK_STATUS(dp_codec_header_at(&codec, 1, 100, &out), DP_BADARG);
    CHECK_STATUS(dp_codec_header_at(&codec, DP_CODEC_RUN, DP_CODEC_ELEMENTS_MAX, &out), DP_BADARG);
    CHECK_STATUS(dp_codec_header_at(&none, 0, 100, &out), DP_BADARG);
    CHECK_STATUS(dp_codec_append(&codec, a, 100, 100, &out), DP_BADARG);
    CHECK_STATUS(dp_codec_append(&none, a, 0, 100, &out), DP_BADARG);
    a[N - 1] = NAN; /* The last run is refused, and those before it are taken back. */
    CHECK_STATUS(dp_codec_append(&codec, a, 0, N, &out), DP_DIVERGED);
    CHECK(out.size == 0);
    dp_buf_close(&out);
}

static void a_part_is_of_its_place_alone(void **state)
{
    static float a[N];
    unsigned __int128 energy = 0;
    (void)state;
    fill(a, N, 4);
    const dp_codec codec = dp_codec_default(DP_CODEC_INT8);
    dp_buf blob = encoded(&codec, a);
    dp_buf part = part_of(dp_buf_view(&blob), 1);
    const dp_view bytes = dp_buf_view(&part);
    CHECK_OK(dp_part_energy(bytes, place_of(1), &energy));
    const dp_part_place other = {.first = 3 * DP_CODEC_RUN, .n = place_of(1).n};
    CHECK_STATUS(dp_part_energy(bytes, other, &energy), DP_BADMSG);
    CHECK_STATUS(dp_part_energy(bytes, place_of(0), &energy), DP_BADMSG);
    CHECK_STATUS(dp_part_energy(dp_buf_view(&blob), place_of(0), &energy), DP_BADMSG);
    CHECK_STATUS(dp_part_energy(dp_view_of(bytes.data, bytes.size - 1), place_of(1), &energy),
                 DP_BADMSG);
    CHECK_STATUS(dp_codec_check(bytes, N), DP_BADMSG);
    CHECK_STATUS(dp_codec_check(bytes, place_of(1).n), DP_BADMSG);
    dp_buf_close(&part);
    dp_buf_close(&blob);
}

/* Contributors of a round and their shares. */
typedef struct contributors {
    dp_codec codec;
    dp_buf blobs[NODES];
    uint32_t q[NODES];
} contributors;

static contributors contributors_of(dp_codec_kind kind)
{
    static float a[N];
    contributors c = {.codec = dp_codec_default(kind), .q = {700000000, 900000000, 547483648}};
    for (uint32_t i = 0; i < NODES; i++) {
        fill(a, N, 10 + i);
        c.blobs[i] = encoded(&c.codec, a);
    }
    return c;
}

static void close_contributors(contributors *c)
{
    for (uint32_t i = 0; i < NODES; i++) {
        dp_buf_close(&c->blobs[i]);
    }
}

/* The owner's result of part p. */
static dp_buf reduced(const contributors *c, const dp_codec *codec, uint32_t p, dp_part_sum *sum)
{
    dp_buf parts[NODES];
    dp_view views[NODES];
    dp_buf out;
    dp_buf_init(&out, BLOB_MAX);
    for (uint32_t i = 0; i < NODES; i++) {
        parts[i] = part_of(dp_buf_view(&c->blobs[i]), p);
        views[i] = dp_buf_view(&parts[i]);
    }
    const dp_part_items items = {.blobs = views, .q = c->q, .n = NODES};
    unsigned __int128 energy = 0;
    CHECK_OK(dp_part_reduce(codec, place_of(p), &items, &out, sum));
    CHECK_OK(
        dp_part_energy(dp_buf_view(&out), place_of(p), &energy)); /* As those who get it will. */
    CHECK(energy == sum->energy);
    for (uint32_t i = 0; i < NODES; i++) {
        dp_buf_close(&parts[i]);
    }
    return out;
}

static void mean_of(const contributors *c, float *g)
{
    dp_view views[NODES];
    for (uint32_t i = 0; i < NODES; i++) {
        views[i] = dp_buf_view(&c->blobs[i]);
    }
    CHECK_OK(dp_consensus_mean(g, N, &(dp_consensus_items){.blobs = views, .q = c->q, .n = NODES}));
}

static void sums_of_parts_in_fp32_are_the_sum_of_the_whole(void **state)
{
    static float g[N];
    static float d[N];
    (void)state;
    size_t count = 0;
    const dp_codec_row *const rows = dp_codec_rows(&count);
    for (size_t i = 0; i < count; i++) {
        contributors c = contributors_of(rows[i].kind);
        const dp_codec plain = dp_codec_default(DP_CODEC_FP32);
        mean_of(&c, g);
        for (uint32_t p = 0; p < cuts.n; p++) {
            dp_part_sum sum;
            dp_buf result = reduced(&c, &plain, p, &sum);
            decode_part(dp_buf_view(&result), place_of(p), d);
            CHECK(sum.error == 0 && (sum.norm > 0) == (place_of(p).n > 0));
            dp_buf_close(&result);
            result = reduced(&c, &c.codec, p, &sum); /* Each codec's energy. */
            dp_buf_close(&result);
        }
        CHECK(memcmp(g, d, sizeof g) == 0);
        close_contributors(&c);
    }
}

static void encoding_a_sum_loses_half_a_step_and_reports_it(void **state)
{
    static float g[N];
    static float d[N];
    double told = 0;
    double lost = 0;
    (void)state;
    contributors c = contributors_of(DP_CODEC_INT8);
    mean_of(&c, g);
    for (uint32_t p = 0; p < cuts.n; p++) {
        dp_part_sum sum;
        dp_buf result = reduced(&c, &c.codec, p, &sum);
        decode_part(dp_buf_view(&result), place_of(p), d);
        told += sum.error * sum.error;
        dp_buf_close(&result);
    }
    for (size_t block = 0; block < N; block += c.codec.block) {
        const size_t end = block + c.codec.block < N ? block + c.codec.block : (size_t)N;
        float most = 0;
        for (size_t i = block; i < end; i++) {
            most = fmaxf(most, fabsf(g[i]));
        }
        for (size_t i = block; i < end; i++) {
            const double rest = (double)g[i] - (double)d[i];
            /* The scale is rounded to 11 bits, so the largest may lie a little beyond 127 steps. */
            CHECK(fabs(rest) <= 0.6 * (double)most / 127);
            lost += rest * rest;
        }
    }
    CHECK(lost > 0 && fabs(told / lost - 1) < 1e-9);
    close_contributors(&c);
}

static void results_are_added_on_their_ranges_alone(void **state)
{
    static const uint32_t q[] = {UINT32_C(1) << 31, 1500000000, UINT32_C(1) << 31};
    static const dp_part_range ranges[] = {{0, 11000}, {11000, 33000}, {33001, 65536}};
    static const uint32_t parts[] = {0, 1, 3};
    static float g[N];
    static float wanted[N];
    dp_buf blobs[3];
    dp_view views[3];
    dp_part_place places[DP_PARTS_MAX];
    (void)state;
    contributors c = contributors_of(DP_CODEC_INT8);
    for (size_t i = 0; i < 3; i++) {
        dp_part_sum sum;
        const dp_part_place place = place_of(parts[i]);
        blobs[i] = reduced(&c, &c.codec, parts[i], &sum);
        views[i] = dp_buf_view(&blobs[i]);
        decode_part(views[i], place, wanted);
        for (size_t at = place.first; at < place.first + place.n; at++) {
            wanted[at] = 0.0F + (float)q[i] * 0x1p-31F * wanted[at];
        }
    }
    const dp_part_results all = {.ranges = ranges, .blobs = views, .q = q, .n = 3};
    CHECK_OK(dp_part_places(&all, N, places));
    dp_consensus_items items = {.blobs = views, .q = q, .places = places, .n = 3};
    CHECK_OK(dp_consensus_mean(g, N, &items));
    CHECK(memcmp(g, wanted, sizeof g) == 0);
    /* Without the part in the middle nothing moves there. */
    const dp_part_results less = {.ranges = (dp_part_range[]){ranges[0], ranges[2]},
                                  .blobs = (dp_view[]){views[0], views[2]},
                                  .q = (uint32_t[]){q[0], q[2]},
                                  .n = 2};
    const dp_part_place middle = place_of(1);
    memset(wanted + middle.first, 0, middle.n * sizeof *wanted);
    CHECK_OK(dp_part_places(&less, N, places));
    items = (dp_consensus_items){.blobs = less.blobs, .q = less.q, .places = places, .n = 2};
    CHECK_OK(dp_consensus_mean(g, N, &items));
    CHECK(memcmp(g, wanted, sizeof g) == 0);
    for (size_t i = 0; i < 3; i++) {
        dp_buf_close(&blobs[i]);
    }
    close_contributors(&c);
}

static void results_that_overlap_or_weigh_too_much_are_refused(void **state)
{
    dp_part_sum sum;
    dp_part_place places[DP_PARTS_MAX];
    (void)state;
    contributors c = contributors_of(DP_CODEC_INT8);
    dp_buf result = reduced(&c, &c.codec, 1, &sum);
    const dp_view views[] = {dp_buf_view(&result), dp_buf_view(&result)};
    const dp_part_range ranges[] = {dp_part_range_of(&cuts, 1), dp_part_range_of(&cuts, 1)};
    uint32_t q[] = {1, 1};
    dp_part_results bad = {.ranges = ranges, .blobs = views, .q = q, .n = 2};
    CHECK_STATUS(dp_part_places(&bad, N, places), DP_BADARG);
    bad.n = DP_PARTS_MAX + 1;
    CHECK_STATUS(dp_part_places(&bad, N, places), DP_BADARG);
    bad.n = 1;
    q[0] = q_one + 1;
    CHECK_STATUS(dp_part_places(&bad, N, places), DP_BADARG);
    q[0] = q_one;
    bad.ranges = (dp_part_range[]){{0, 11000}};
    CHECK_STATUS(dp_part_places(&bad, N, places), DP_BADMSG);
    bad.ranges = ranges;
    CHECK_OK(dp_part_places(&bad, N, places));
    dp_buf_close(&result);
    close_contributors(&c);
}

static void a_sum_that_the_codec_cannot_hold_is_refused(void **state)
{
    static float a[N];
    const uint32_t q[] = {UINT32_MAX, UINT32_MAX};
    dp_part_sum sum;
    dp_buf out;
    (void)state;
    for (size_t i = 0; i < N; i++) {
        a[i] = DP_CODEC_VALUE_MAX;
    }
    const dp_codec codec = dp_codec_default(DP_CODEC_FP32);
    dp_buf blob = encoded(&codec, a);
    const dp_view views[] = {dp_buf_view(&blob), dp_buf_view(&blob)};
    const dp_part_place all = {.n = N};
    dp_buf_init(&out, BLOB_MAX);
    dp_part_items items = {.blobs = views, .q = q, .n = 2};
    CHECK_STATUS(dp_part_reduce(&codec, all, &items, &out, &sum), DP_DIVERGED);
    items.n = 0;
    CHECK_STATUS(dp_part_reduce(&codec, all, &items, &out, &sum), DP_BADARG);
    items.n = DP_CONSENSUS_ITEMS_MAX + 1;
    CHECK_STATUS(dp_part_reduce(&codec, all, &items, &out, &sum), DP_BADARG);
    CHECK(out.size == 0);
    dp_buf_close(&out);
    dp_buf_close(&blob);
}

static void a_part_that_does_not_count_keeps_all_of_a(void **state)
{
    static float a[N];
    static float d[N];
    static float wanted[N];
    dp_buf out;
    (void)state;
    fill(a, N, 5);
    const dp_codec codec = dp_codec_default(DP_CODEC_INT8);
    const dp_part_outcome outcome = {
        .cuts = &cuts, .taken = 0xfffffffd, .clip = 50000, .beta = 0.5F};
    dp_buf blob = encoded(&codec, a);
    CHECK_OK(dp_codec_decode(dp_buf_view(&blob), d, N));
    dp_feedback_included(wanted, a, d, outcome.clip, outcome.beta, N);
    const dp_part_place left = place_of(1);
    memcpy(wanted + left.first, a + left.first, left.n * sizeof *a);
    dp_buf_init(&out, sizeof a);
    CHECK_OK(dp_part_settle(&outcome, a, N, dp_buf_view(&blob), &out));
    CHECK(out.size == sizeof a && memcmp(out.data, wanted, sizeof a) == 0);
    dp_buf_clear(&out);
    const dp_view cut = dp_view_of(blob.data, blob.size - 1);
    CHECK_STATUS(dp_part_settle(&outcome, a, N, cut, &out), DP_BADMSG);
    CHECK(out.size == 0);
    dp_buf_close(&out);
    dp_buf_close(&blob);
}

static void damaged_parts_give_a_status(void **state)
{
    static const uint32_t q = UINT32_C(1) << 31;
    unsigned good = 0;
    dp_rng rng;
    dp_buf out;
    dp_part_sum sum;
    (void)state;
    dp_rng_init(&rng, 6);
    contributors c = contributors_of(DP_CODEC_SPARSE);
    dp_buf part = part_of(dp_buf_view(&c.blobs[0]), 0);
    const dp_codec int8 = dp_codec_default(DP_CODEC_INT8);
    dp_buf_init(&out, BLOB_MAX);
    for (unsigned i = 0; i < 2000; i++) {
        unsigned __int128 energy = 0;
        uint8_t damaged[1024];
        CHECK(part.size <= sizeof damaged);
        memcpy(damaged, part.data, part.size);
        const size_t size = mutate(&rng, damaged, part.size, sizeof damaged);
        uint8_t *const exact = malloc(size + 1);
        assert_non_null(exact);
        memcpy(exact, damaged, size);
        const dp_view bytes = dp_view_of(exact, size);
        const dp_part_items items = {.blobs = &bytes, .q = &q, .n = 1};
        const dp_status status = dp_part_energy(bytes, place_of(0), &energy);
        dp_buf_clear(&out);
        CHECK(dp_part_reduce(&int8, place_of(0), &items, &out, &sum) == status);
        good += status == DP_OK;
        free(exact);
    }
    CHECK(good > 10 && good < 1990);
    dp_buf_close(&out);
    dp_buf_close(&part);
    close_contributors(&c);
}

static void without_memory_there_is_no_result(void **state)
{
    dp_part_sum sum;
    dp_part_blob parts[DP_PARTS_MAX];
    unsigned __int128 energy;
    dp_buf out;
    (void)state;
    contributors c = contributors_of(DP_CODEC_INT8);
    dp_buf part = part_of(dp_buf_view(&c.blobs[0]), 1);
    const dp_view view = dp_buf_view(&part);
    const dp_part_items items = {.blobs = &view, .q = c.q, .n = 1};
    for (unsigned i = 1; i <= 2; i++) {
        dp_buf_init(&out, BLOB_MAX);
        dp_alloc_fail_after(i);
        const dp_status status = dp_part_reduce(&c.codec, place_of(1), &items, &out, &sum);
        dp_alloc_fail_after(0);
        CHECK_STATUS(status, DP_NOMEM);
        CHECK(out.size == 0);
        dp_buf_close(&out);
    }
    dp_alloc_fail_after(1);
    const dp_status status = dp_part_cut(dp_buf_view(&c.blobs[0]), N, &cuts, parts, &energy);
    dp_alloc_fail_after(0);
    CHECK_STATUS(status, DP_NOMEM);
    dp_buf_close(&part);
    close_contributors(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_lie_at_whole_runs_and_cover_the_vector),
        cmocka_unit_test(no_range_is_all_and_a_bad_one_is_none),
        cmocka_unit_test(parts_of_a_blob_decode_to_its_elements),
        cmocka_unit_test(one_part_of_all_is_the_blob_itself),
        cmocka_unit_test(a_part_has_no_more_energy_than_the_whole),
        cmocka_unit_test(energies_beyond_what_a_number_holds_stay_there),
        cmocka_unit_test(a_blob_of_a_part_begins_where_a_run_does),
        cmocka_unit_test(a_part_is_of_its_place_alone),
        cmocka_unit_test(sums_of_parts_in_fp32_are_the_sum_of_the_whole),
        cmocka_unit_test(encoding_a_sum_loses_half_a_step_and_reports_it),
        cmocka_unit_test(results_are_added_on_their_ranges_alone),
        cmocka_unit_test(results_that_overlap_or_weigh_too_much_are_refused),
        cmocka_unit_test(a_sum_that_the_codec_cannot_hold_is_refused),
        cmocka_unit_test(a_part_that_does_not_count_keeps_all_of_a),
        cmocka_unit_test(damaged_parts_give_a_status),
        cmocka_unit_test(without_memory_there_is_no_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
