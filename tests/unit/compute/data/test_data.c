#include "tests/lib/check.h"

#include "base/rng.h"
#include "base/run/samples.h"
#include "base/run/token_marks.h"
#include "compute/data/data.h"
#include "compute/model/state.h"
#include "tests/lib/mutate.h"
#include "tests/unit/compute/marked_shard.h"

#include <math.h>

enum { COUNT = 1000, VOCAB = 1000, LENGTH = 16 };

static dp_buf shard_of(size_t count)
{
    uint32_t ids[COUNT];
    for (size_t i = 0; i < count; i++) {
        ids[i] = (uint32_t)i;
    }
    dp_buf shard;
    dp_buf_init(&shard, 1 << 16);
    CHECK_OK(dp_shard_write(ids, count, VOCAB, 4321, &shard));
    return shard;
}

static dp_data open_shard(const dp_buf *shard, uint32_t val_per_mille)
{
    dp_data data;
    CHECK_OK(dp_data_open(&data, dp_buf_view(shard), VOCAB, val_per_mille, NULL));
    return data;
}

static void a_shard_comes_back_with_its_split(void **state)
{
    (void)state;
    dp_buf shard = shard_of(COUNT);
    const dp_data data = open_shard(&shard, 50);
    CHECK(shard.size == DP_SHARD_HEADER_BYTES + 2 * COUNT);
    CHECK(data.n_tokens == COUNT && data.n_train == 950 && data.text_bytes == 4321 &&
          data.vocab == VOCAB);
    dp_buf_close(&shard);
}

static void held_out_windows_follow_each_other(void **state)
{
    (void)state;
    dp_buf shard = shard_of(100);
    const dp_data data = open_shard(&shard, 350);
    uint32_t x[LENGTH];
    uint32_t y[LENGTH];
    CHECK(dp_data_val_windows(&data, LENGTH) == 2);
    CHECK(dp_data_val_losses(&data, LENGTH) == 2 * LENGTH);
    CHECK(dp_data_val_row(&data, 0, LENGTH, x, y) == LENGTH && x[0] == 65 && y[LENGTH - 1] == 81);
    CHECK(dp_data_val_row(&data, 1, LENGTH, x, y) == LENGTH && x[0] == 81 && y[LENGTH - 1] == 97);
    CHECK(dp_data_val_windows(&data, 64) == 1 && dp_data_val_losses(&data, 64) == 34);
    uint32_t long_x[64];
    uint32_t long_y[64];
    CHECK(dp_data_val_row(&data, 0, 64, long_x, long_y) == 34 && long_y[33] == 99);
    const dp_data none = open_shard(&shard, 10);
    CHECK(dp_data_val_windows(&none, LENGTH) == 0 && dp_data_val_losses(&none, LENGTH) == 0);
    dp_buf_close(&shard);
}

static void data_that_is_too_short_or_foreign_is_refused(void **state)
{
    (void)state;
    dp_buf shard = shard_of(LENGTH);
    const dp_data data = open_shard(&shard, 0);
    uint32_t x[LENGTH];
    uint32_t y[LENGTH];
    CHECK_STATUS(dp_data_sample(&data, 1, 0, LENGTH, x, y), DP_BADARG);
    CHECK_OK(dp_data_sample(&data, 1, 0, LENGTH - 1, x, y));
    dp_data other;
    dp_why why = {{0}};
    CHECK_STATUS(dp_data_open(&other, dp_buf_view(&shard), VOCAB - 1, 0, &why), DP_BADARG);
    CHECK(strstr(why.text, "a vocabulary of 1000 tokens, the model has 999") != NULL);
    dp_buf_close(&shard);
}

/* So many windows of LENGTH tokens and the closing token: in each a document of ten, whose last
 * five have a loss, and one of six, whose last one has. */
static dp_buf documents_of(size_t windows)
{
    uint32_t ids[COUNT];
    uint8_t marks[COUNT];
    dp_buf shard;
    const size_t n = windows * LENGTH + 1;
    for (size_t i = 0; i < n; i++) {
        const size_t at = i % LENGTH;
        ids[i] = (uint32_t)i;
        marks[i] = at == 0 || at == 10 ? DP_MARK_BEGINS : 0;
        marks[i] |= (at >= 5 && at < 10) || at == 15 ? DP_MARK_LOSS : 0;
    }
    dp_buf_init(&shard, 1 << 16);
    marked_shard(ids, marks, n, VOCAB, &shard);
    return shard;
}

static void check_marks(const uint32_t *x, const uint32_t *y)
{
    CHECK(dp_token_of(x[0]) % LENGTH == 0);
    for (size_t i = 0; i < LENGTH; i++) {
        const bool begins = i == 0 || i == 10;
        const bool loss = (i + 1 >= 5 && i + 1 < 10) || i + 1 == 15;
        CHECK(x[i] == (dp_token_of(x[0]) + i) + (begins ? DP_TOKEN_BEGINS : 0));
        CHECK(y[i] == (loss ? dp_token_of(x[i]) + 1 : DP_TOKEN_NO_LOSS));
    }
}

static void windows_of_documents_carry_their_marks(void **state)
{
    (void)state;
    dp_buf shard = documents_of(20);
    const dp_data data = open_shard(&shard, 0);
    uint32_t x[LENGTH];
    uint32_t y[LENGTH];
    CHECK(data.documents && dp_data_windows(&data, LENGTH) == 20);
    CHECK(dp_data_losses(&data, LENGTH) == (uint64_t)20 * 6);
    for (uint64_t i = 0; i < 20; i++) {
        CHECK_OK(dp_data_sample(&data, 1, i, LENGTH, x, y));
        check_marks(x, y);
    }
    dp_buf_close(&shard);
    dp_buf plain = shard_of(100);
    const dp_data without = open_shard(&plain, 0);
    CHECK(!without.documents && dp_data_losses(&without, LENGTH) == (uint64_t)6 * LENGTH);
    dp_buf_close(&plain);
}

/* The number of training windows follows from the manifest alone, as ever; the window that is cut
 * by the end of the training part is of neither. */
static void held_out_windows_of_documents_are_whole_too(void **state)
{
    (void)state;
    dp_buf shard = documents_of(20);
    const dp_data data = open_shard(&shard, 270); /* 321 - 86 = 235 = 14.7 windows */
    uint32_t x[LENGTH];
    uint32_t y[LENGTH];
    CHECK(data.n_train == 235 && dp_data_windows(&data, LENGTH) == 14);
    CHECK(dp_data_losses(&data, LENGTH) == (uint64_t)14 * 6);
    CHECK(dp_data_val_windows(&data, LENGTH) == 5);
    for (uint64_t i = 0; i < 5; i++) {
        CHECK(dp_data_val_row(&data, i, LENGTH, x, y) == LENGTH);
        CHECK(dp_token_of(x[0]) == (15 + i) * LENGTH);
        check_marks(x, y);
    }
    const dp_data all = open_shard(&shard, 1000);
    CHECK(dp_data_windows(&all, LENGTH) == 0 && dp_data_val_windows(&all, LENGTH) == 20);
    dp_buf_close(&shard);
}

static void damaged_shards_never_crash(void **state)
{
    (void)state;
    dp_buf shard = shard_of(50);
    dp_data data;
    for (size_t size = 0; size < shard.size; size++) {
        CHECK_STATUS(dp_data_open(&data, dp_view_of(shard.data, size), VOCAB, 50, NULL), DP_BADMSG);
    }
    dp_rng rng;
    dp_rng_init(&rng, 4);
    for (int i = 0; i < 5000; i++) {
        uint8_t bytes[256];
        memcpy(bytes, shard.data, shard.size);
        const size_t size = mutate(&rng, bytes, shard.size, sizeof bytes);
        if (dp_data_open(&data, dp_view_of(bytes, size), VOCAB, 50, NULL) == DP_OK) {
            CHECK(data.n_tokens * 2 + DP_SHARD_HEADER_BYTES == size);
        }
    }
    dp_buf_close(&shard);
}

static void a_state_comes_back_bit_for_bit(void **state)
{
    (void)state;
    const float theta[4] = {1, -0.0F, 1e-40F, 3e38F};
    dp_buf bytes;
    dp_buf_init(&bytes, 1000);
    CHECK_OK(dp_state_write(7, theta, NULL, 4, &bytes));
    static const uint8_t expected[] = {'D', 'P', 'S', '1', 1, 0, 0, 0, 4, 0, 0,    0,
                                       0,   0,   0,   0,   7, 0, 0, 0, 0, 0, 0,    0,
                                       0,   0,   0,   0,   0, 0, 0, 0, 0, 0, 0x80, 0x3f};
    CHECK(bytes.size == dp_state_bytes(4, false) &&
          memcmp(bytes.data, expected, sizeof expected) == 0);
    float back[4] = {0};
    uint64_t round = 0;
    CHECK_OK(dp_state_read(dp_buf_view(&bytes), &round, back, 4));
    CHECK(round == 7 && memcmp(theta, back, sizeof theta) == 0);
    dp_state view;
    CHECK_OK(dp_state_open(&view, dp_buf_view(&bytes)));
    CHECK(view.elements == 4 && view.round == 7 && view.momentum.size == 0);
    CHECK_STATUS(dp_state_read(dp_buf_view(&bytes), &round, back, 3), DP_BADMSG);
    for (size_t size = 0; size < bytes.size; size++) {
        CHECK_STATUS(dp_state_read(dp_view_of(bytes.data, size), &round, back, 4), DP_BADMSG);
    }
    bytes.data[4] = 2;
    CHECK_STATUS(dp_state_read(dp_buf_view(&bytes), &round, back, 4), DP_VERSION);
    bytes.data[4] = 1;
    bytes.data[24] = 1;
    CHECK_STATUS(dp_state_read(dp_buf_view(&bytes), &round, back, 4), DP_BADMSG);
    dp_buf_close(&bytes);
}

static void a_state_may_hold_two_moments(void **state)
{
    (void)state;
    const float values[2] = {1, 2};
    dp_buf bytes;
    dp_buf_init(&bytes, 1000);
    CHECK_OK(dp_state_write_header(5, 2, 2, &bytes));
    for (int i = 0; i < 3; i++) {
        const float scaled[2] = {values[0] * (float)(i + 1), values[1] * (float)(i + 1)};
        CHECK_OK(dp_floats_write(scaled, 2, &bytes));
    }
    CHECK(bytes.size == dp_state_bytes(2, 2));
    dp_state view;
    float back[2];
    uint64_t round;
    CHECK_OK(dp_state_open(&view, dp_buf_view(&bytes)));
    CHECK(view.elements == 2 && view.moments == 2 && view.round == 5);
    CHECK_OK(dp_floats_read(view.momentum, back, 2));
    CHECK(back[0] == 2 && back[1] == 4);
    CHECK_OK(dp_floats_read(view.second, back, 2));
    CHECK(back[0] == 3 && back[1] == 6);
    CHECK_OK(dp_state_read(dp_buf_view(&bytes), &round, back, 2));
    CHECK(back[0] == 1 && back[1] == 2);
    for (size_t size = 0; size < bytes.size; size++) {
        CHECK_STATUS(dp_state_open(&view, dp_view_of(bytes.data, size)), DP_BADMSG);
    }
    bytes.data[6] = 3;
    CHECK_STATUS(dp_state_open(&view, dp_buf_view(&bytes)), DP_BADMSG);
    dp_buf_close(&bytes);
}

static void a_state_holds_theta_and_then_the_momentum(void **state)
{
    (void)state;
    const float theta[3] = {1, 2, 3};
    const float m[3] = {-4, 1e-40F, 6};
    dp_buf bytes;
    dp_buf_init(&bytes, 1000);
    CHECK_OK(dp_state_write(5, theta, m, 3, &bytes));
    CHECK(bytes.size == dp_state_bytes(3, true) && bytes.data[6] == 1);
    dp_state view;
    float back[3];
    uint64_t round;
    CHECK_OK(dp_state_open(&view, dp_buf_view(&bytes)));
    CHECK(view.elements == 3 && view.round == 5);
    CHECK_OK(dp_floats_read(view.momentum, back, 3));
    CHECK(memcmp(back, m, sizeof m) == 0);
    CHECK_OK(dp_state_read(dp_buf_view(&bytes), &round, back, 3));
    CHECK(memcmp(back, theta, sizeof theta) == 0);
    for (size_t size = 0; size < bytes.size; size++) {
        CHECK_STATUS(dp_state_open(&view, dp_view_of(bytes.data, size)), DP_BADMSG);
    }
    bytes.data[6] = 2;
    CHECK_STATUS(dp_state_open(&view, dp_buf_view(&bytes)), DP_BADMSG);
    dp_buf_close(&bytes);
}

static void a_state_with_a_value_that_is_not_finite_changes_nothing(void **state)
{
    (void)state;
    const float theta[2] = {5, (float)NAN};
    dp_buf bytes;
    dp_buf_init(&bytes, 1000);
    CHECK_OK(dp_state_write(1, theta, NULL, 2, &bytes));
    float back[2] = {3, 4};
    uint64_t round = 0;
    CHECK_STATUS(dp_state_read(dp_buf_view(&bytes), &round, back, 2), DP_DIVERGED);
    CHECK(back[0] == 3 && back[1] == 4 && round == 0);
    dp_buf_close(&bytes);
    dp_buf_init(&bytes, 39);
    CHECK_STATUS(dp_state_write(1, theta, NULL, 2, &bytes), DP_TOOBIG);
    CHECK(bytes.size == 0);
    dp_buf_close(&bytes);
}

enum { PARTS = 3 };

static const uint64_t part_sizes[PARTS] = {100, 40, 60};

/* Three shards with tokens 0, 1, 2 ... through all of them. */
typedef struct shelf {
    dp_buf shards[PARTS];
    dp_data data;
} shelf;

static void shelf_open(shelf *s, uint32_t val_per_mille)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < PARTS; i++) {
        uint32_t ids[COUNT];
        for (size_t j = 0; j < part_sizes[i]; j++) {
            ids[j] = next;
            next++;
        }
        dp_buf_init(&s->shards[i], 1 << 12);
        CHECK_OK(dp_shard_write(ids, part_sizes[i], VOCAB, 1000 + i, &s->shards[i]));
    }
    CHECK_OK(dp_data_open_list(&s->data, part_sizes, PARTS, VOCAB, val_per_mille, NULL));
}

static void shelf_fill(shelf *s)
{
    for (uint32_t i = 0; i < PARTS; i++) {
        CHECK_OK(dp_data_attach(&s->data, i, dp_buf_view(&s->shards[i]), NULL));
    }
}

static void shelf_close(shelf *s)
{
    dp_data_close(&s->data);
    for (uint32_t i = 0; i < PARTS; i++) {
        dp_buf_close(&s->shards[i]);
    }
}

/* The window is whole, and inside of one shard. */
static void check_window(const uint32_t *x, const uint32_t *y, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        CHECK(x[i] == x[0] + i && y[i] == x[i] + 1);
    }
    const uint32_t last = y[length - 1];
    CHECK(last < 100 || (x[0] >= 100 && last < 140) || x[0] >= 140);
}

static void a_pass_through_several_shards_visits_each_window_once(void **state)
{
    (void)state;
    shelf s;
    shelf_open(&s, 0);
    shelf_fill(&s);
    /* 99 / 16 + 39 / 16 + 59 / 16 windows. */
    const uint64_t n = dp_data_windows(&s.data, LENGTH);
    CHECK(n == 6 + 2 + 3);
    for (uint64_t pass = 0; pass < 3; pass++) {
        unsigned seen[PARTS * 100] = {0};
        for (uint64_t i = 0; i < n; i++) {
            uint32_t x[LENGTH];
            uint32_t y[LENGTH];
            uint32_t part = PARTS;
            CHECK_OK(dp_data_sample(&s.data, 11, pass * n + i, LENGTH, x, y));
            CHECK_OK(dp_data_sample_shard(&s.data, 11, pass * n + i, LENGTH, &part));
            check_window(x, y, LENGTH);
            CHECK(part == (x[0] >= 100 ? 1U : 0U) + (x[0] >= 140 ? 1U : 0U));
            seen[x[0]]++;
            CHECK(seen[x[0]] == 1);
        }
    }
    shelf_close(&s);
}

static void as_many_windows_as_the_manifest_says(void **state)
{
    (void)state;
    for (uint32_t val = 0; val <= 1000; val += 50) {
        shelf s;
        dp_manifest m;
        shelf_open(&s, val);
        dp_manifest_default(&m);
        m.val_per_mille = val;
        m.n_shards = PARTS;
        for (uint32_t i = 0; i < PARTS; i++) {
            m.shards[i].tokens = part_sizes[i];
        }
        for (uint32_t length = 1; length < 120; length += 7) {
            m.context = length;
            CHECK(dp_data_windows(&s.data, length) == dp_manifest_samples(&m));
        }
        shelf_close(&s);
    }
}

static void training_windows_stay_inside_of_a_shard(void **state)
{
    (void)state;
    shelf s;
    unsigned parts[PARTS] = {0};
    shelf_open(&s, 100);
    shelf_fill(&s);
    const uint64_t n = dp_data_windows(&s.data, LENGTH);
    for (uint64_t sample = 0; sample < 10 * n; sample++) {
        uint32_t x[LENGTH];
        uint32_t y[LENGTH];
        CHECK_OK(dp_data_sample(&s.data, 5, sample, LENGTH, x, y));
        check_window(x, y, LENGTH);
        CHECK(y[LENGTH - 1] < 180); /* The last 20 are held out. */
        parts[(x[0] >= 100 ? 1 : 0) + (x[0] >= 140 ? 1 : 0)]++;
    }
    CHECK(parts[0] > 0 && parts[1] > 0 && parts[2] > 0);
    uint32_t x[LENGTH];
    uint32_t y[LENGTH];
    CHECK(dp_data_val_windows(&s.data, LENGTH) == 1);
    CHECK(dp_data_val_row(&s.data, 0, LENGTH, x, y) == LENGTH && x[0] == 180);
    shelf_close(&s);
}

static void a_shard_that_is_not_here_is_said_so(void **state)
{
    (void)state;
    shelf s;
    dp_why why = {{0}};
    uint32_t x[LENGTH];
    uint32_t y[LENGTH];
    uint32_t part = 0;
    shelf_open(&s, 0);
    CHECK_STATUS(dp_data_sample(&s.data, 1, 0, LENGTH, x, y), DP_AGAIN);
    CHECK_OK(dp_data_sample_shard(&s.data, 1, 0, LENGTH, &part));
    CHECK_OK(dp_data_attach(&s.data, part, dp_buf_view(&s.shards[part]), NULL));
    CHECK_OK(dp_data_sample(&s.data, 1, 0, LENGTH, x, y));
    CHECK_STATUS(dp_data_attach(&s.data, 0, dp_buf_view(&s.shards[1]), &why), DP_BADMSG);
    CHECK(strstr(why.text, "shard 0 of the data has 40 tokens, the run says 100") != NULL);
    CHECK_STATUS(dp_data_attach(&s.data, PARTS, dp_buf_view(&s.shards[0]), &why), DP_BADARG);
    CHECK_STATUS(dp_data_sample(&s.data, 1, 0, 5000, x, y), DP_BADARG);
    dp_data other;
    CHECK_OK(dp_data_open_list(&other, part_sizes, PARTS, VOCAB - 1, 0, NULL));
    CHECK_STATUS(dp_data_attach(&other, 0, dp_buf_view(&s.shards[0]), &why), DP_BADARG);
    CHECK(strstr(why.text, "1000 tokens, the model has 999") != NULL);
    dp_data_close(&other);
    CHECK_STATUS(dp_data_open_list(&other, part_sizes, 0, VOCAB, 0, &why), DP_BADARG);
    shelf_close(&s);
}

static void tables_of_shards_are_added_up(void **state)
{
    (void)state;
    shelf s;
    shelf_open(&s, 0);
    CHECK(s.data.text_bytes == 0 && s.data.vocab == 0);
    shelf_fill(&s);
    shelf_fill(&s); /* Once more changes nothing. */
    CHECK(s.data.text_bytes == 3003 && s.data.vocab == VOCAB);
    const size_t text_bytes_at = 24;
    memset(s.shards[1].data + text_bytes_at, 0, sizeof(uint64_t));
    shelf_fill(&s);
    CHECK(s.data.text_bytes == 0);
    shelf_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shard_comes_back_with_its_split),
        cmocka_unit_test(windows_of_documents_carry_their_marks),
        cmocka_unit_test(held_out_windows_of_documents_are_whole_too),
        cmocka_unit_test(held_out_windows_follow_each_other),
        cmocka_unit_test(data_that_is_too_short_or_foreign_is_refused),
        cmocka_unit_test(damaged_shards_never_crash),
        cmocka_unit_test(a_pass_through_several_shards_visits_each_window_once),
        cmocka_unit_test(as_many_windows_as_the_manifest_says),
        cmocka_unit_test(training_windows_stay_inside_of_a_shard),
        cmocka_unit_test(a_shard_that_is_not_here_is_said_so),
        cmocka_unit_test(tables_of_shards_are_added_up),
        cmocka_unit_test(a_state_comes_back_bit_for_bit),
        cmocka_unit_test(a_state_holds_theta_and_then_the_momentum),
        cmocka_unit_test(a_state_may_hold_two_moments),
        cmocka_unit_test(a_state_with_a_value_that_is_not_finite_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
