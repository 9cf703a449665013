#include "compute/codec/simhash.h"

#include "tests/unit/compute/update_kit.h"

typedef struct likeness {
    uint8_t bytes[DP_LIKENESS_BYTES];
} likeness;

static float a[UPDATE_N];
static float d[UPDATE_N];

static void fresh(uint64_t seed)
{
    memset(a, 0, sizeof a);
    update_add(a, UPDATE_N, 1, seed);
}

/* Of a; d is a after encoding and decoding. */
static likeness of(const dp_codec *codec)
{
    likeness found;
    dp_buf blob = update_blob(codec, a, UPDATE_N);
    CHECK_OK(dp_simhash(dp_buf_view(&blob), UPDATE_N, found.bytes));
    CHECK_OK(dp_codec_decode(dp_buf_view(&blob), d, UPDATE_N));
    dp_buf_close(&blob);
    return found;
}

static unsigned differences(const likeness *x, const likeness *y)
{
    unsigned bits = 0;
    for (size_t i = 0; i < DP_LIKENESS_BYTES; i++) {
        bits += (unsigned)__builtin_popcount((unsigned)(x->bytes[i] ^ y->bytes[i]));
    }
    return bits;
}

/* The header's formula, bit by bit. */
static likeness by_the_book(void)
{
    static double s[4096];
    likeness found = {{0}};
    memset(s, 0, sizeof s);
    for (uint64_t i = 0; i < UPDATE_N; i++) {
        const uint64_t h = dp_mix64(i);
        s[h % 4096] += h >> 63 != 0 ? -(double)d[i] : (double)d[i];
    }
    for (uint64_t j = 0; j < 256; j++) {
        double sum = 0;
        for (uint64_t b = 0; b < 4096; b++) {
            const uint64_t g = dp_mix64((UINT64_C(1) << 63) + 4 * b + j / 64) >> (j % 64) & 1U;
            sum += g != 0 ? -s[b] : s[b];
        }
        found.bytes[j / 8] |= (uint8_t)((unsigned)(sum < 0) << (j % 8));
    }
    return found;
}

static void the_bits_are_those_of_the_formula(void **state)
{
    (void)state;
    for (size_t i = 0; i < UPDATE_CODECS; i++) {
        fresh(1);
        const likeness found = of(&update_codecs[i]);
        const likeness book = by_the_book();
        assert_memory_equal(found.bytes, book.bytes, DP_LIKENESS_BYTES);
    }
}

static void copies_differ_in_few_bits_also_scaled_or_with_noise(void **state)
{
    (void)state;
    for (size_t i = 0; i < UPDATE_CODECS; i++) {
        fresh(1);
        const likeness first = of(&update_codecs[i]);
        for (float factor = 0.5F; factor <= 2; factor *= 1.26F) {
            fresh(1);
            update_scale(a, UPDATE_N, factor);
            const likeness scaled = of(&update_codecs[i]);
            CHECK(differences(&first, &scaled) < 32);
        }
        /* A twentieth of noise on a published update; unrelated updates are not nearer. */
        fresh(1);
        of(&update_codecs[i]);
        const double share = 0.05 * update_norm(d, UPDATE_N) / update_norm(a, UPDATE_N);
        memcpy(a, d, sizeof a);
        update_add(a, UPDATE_N, share, 2);
        const likeness noisy = of(&update_codecs[i]);
        CHECK(differences(&first, &noisy) < 32);
    }
}

static void updates_of_their_own_differ_in_about_half(void **state)
{
    (void)state;
    for (size_t i = 0; i < UPDATE_CODECS; i++) {
        for (uint64_t seed = 1; seed <= 16; seed++) {
            fresh(2 * seed);
            const likeness first = of(&update_codecs[i]);
            fresh(2 * seed + 1);
            const likeness second = of(&update_codecs[i]);
            const unsigned bits = differences(&first, &second);
            CHECK(bits >= 90 && bits <= 166);
        }
    }
}

static void the_opposite_has_the_other_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < UPDATE_CODECS; i++) {
        fresh(3);
        const likeness first = of(&update_codecs[i]);
        update_scale(a, UPDATE_N, -1);
        const likeness opposite = of(&update_codecs[i]);
        CHECK(differences(&first, &opposite) == 8 * DP_LIKENESS_BYTES);
    }
}

static void an_update_of_nothing_has_no_bits(void **state)
{
    static const likeness none;
    (void)state;
    memset(a, 0, sizeof a);
    const likeness found = of(&update_codecs[2]);
    assert_memory_equal(found.bytes, none.bytes, DP_LIKENESS_BYTES);
}

static void a_damaged_blob_gives_a_status(void **state)
{
    (void)state;
    likeness found;
    memset(found.bytes, 0x5a, sizeof found.bytes);
    fresh(1);
    dp_buf blob = update_blob(&update_codecs[4], a, UPDATE_N);
    const dp_view bytes = dp_buf_view(&blob);
    CHECK_STATUS(dp_simhash(dp_view_of(bytes.data, bytes.size - 1), UPDATE_N, found.bytes),
                 DP_BADMSG);
    CHECK_STATUS(dp_simhash(bytes, UPDATE_N + 1, found.bytes), DP_BADMSG);
    CHECK(found.bytes[0] == 0x5a);
    dp_buf_close(&blob);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bits_are_those_of_the_formula),
        cmocka_unit_test(copies_differ_in_few_bits_also_scaled_or_with_noise),
        cmocka_unit_test(updates_of_their_own_differ_in_about_half),
        cmocka_unit_test(the_opposite_has_the_other_bits),
        cmocka_unit_test(an_update_of_nothing_has_no_bits),
        cmocka_unit_test(a_damaged_blob_gives_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
