#include "base/trainer/trainer_msg.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/pack.h"
#include "base/rng.h"
#include "tests/lib/check.h"
#include "tests/lib/mutate.h"

/* A message of this kind in which every field is set; encoding takes the fields of the kind. */
static dp_trainer_msg full_message(dp_trainer_kind kind)
{
    dp_trainer_msg msg = {
        .kind = kind,
        .abi = DP_TRAINER_ABI,
        .pid = 4242,
        .round = 1ULL << 40,
        .elements = 1000003,
        .tokens = UINT64_MAX,
        .carried = 17,
        .steps = UINT32_MAX,
        .skipped = UINT32_MAX - 1,
        .spikes = UINT32_MAX - 2,
        .empty = UINT32_MAX - 3,
        .computed_us = 1ULL << 41,
        .trained_us = UINT64_MAX - 1,
        .spent = {.data_us = 1,
                  .publish_us = 2,
                  .apply_us = UINT64_MAX,
                  .state_us = 1ULL << 33,
                  .tell_us = 5},
        .id = 9,
        .loss = 2.5,
        .bits_per_byte = 1.25,
        .moved = -1e-300,
        .outer_reach = 2.71,
        .norm = 0.5,
        .error = 0.25,
        .weight_own = 5,
        .weight_other = 6,
        .energy = (unsigned __int128)7 << 100,
        .alpha = 65536,
        .clip = 65535,
        .lambda = 1,
        .settle = DP_SETTLE_LEFT_OUT,
        .restore = DP_RESTORE_FROZEN,
        .dense = true,
        .ok = true,
        .foreign = true,
        .again = true,
        .seed = 3,
        .celsius = 88,
        .watts = UINT32_MAX,
        .n_items = DP_TRAINER_ITEMS_MAX,
        .reach = {.leased = 1ULL << 61, .own = 12},
        .n_ranges = DP_LEASE_RANGES_MAX,
        .contributors = 31,
        .at = 992,
        .part = 5,
        .range = {.first = 4096, .end = DP_PART_WHOLE},
        .cuts = {.n = DP_PARTS_MAX},
        .taken = 0x80000001U,
        .keep = 128,
        .scale = 65536,
        .temperature = 0.75,
        .top_k = 40,
        .top_p = 0.9,
        .own_count = 1ULL << 61,
        .judged = {.failed = true,
                   .compared = true,
                   .align = -DP_ALIGN_ONE,
                   .held = {.micro = -DP_GAIN_MICRO_MAX, .error_micro = 7, .tokens = UINT32_MAX},
                   .claimed = {.micro = 5, .error_micro = DP_GAIN_MICRO_MAX, .tokens = 64}},
        .text = "In the beginning\n",
    };

    memset(msg.exchange, 0xe0, sizeof msg.exchange);
    memset(msg.member, 0xe1, sizeof msg.member);
    memset(msg.root.bytes, 0xe2, DP_HASH_BYTES);
    memset(msg.judged.likeness, 0xe3, DP_LIKENESS_BYTES);
    for (uint32_t i = 0; i < DP_TRAINER_ITEMS_MAX; i++) {
        msg.q[i] = i << 26;
        msg.shares[i] = (dp_part_range){.first = 2048 * i, .end = 2048 * (i + 1)};
    }
    for (uint32_t i = 0; i < DP_PARTS_MAX; i++) {
        msg.cuts.first[i] = (uint16_t)(2000 * i);
    }
    for (uint32_t i = 0; i < DP_LEASE_RANGES_MAX; i++) {
        msg.ranges[i] = (dp_sample_range){.first = 100ULL * i, .count = 1 + i};
    }
    return msg;
}

static dp_buf encoded(const dp_trainer_msg *msg)
{
    dp_buf buf = {.max = DP_TRAINER_PACKET_MAX};

    CHECK_OK(dp_trainer_encode(msg, &buf));
    return buf;
}

static void every_kind_has_a_name_and_comes_back_as_it_was(void **state)
{
    (void)state;
    for (int kind = DP_TRAINER_HELLO; kind < DP_TRAINER_KIND_COUNT; kind++) {
        const dp_trainer_msg msg = full_message((dp_trainer_kind)kind);
        static dp_trainer_msg back;
        dp_buf first = encoded(&msg);

        CHECK_OK(dp_trainer_decode(&back, dp_buf_view(&first)));
        assert_int_equal(back.kind, kind);
        dp_buf second = encoded(&back);
        assert_true(dp_view_equal(dp_buf_view(&first), dp_buf_view(&second)));
        assert_string_not_equal(dp_trainer_kind_name((dp_trainer_kind)kind), "unknown");
        dp_buf_close(&first);
        dp_buf_close(&second);
    }
    assert_string_equal(dp_trainer_kind_name((dp_trainer_kind)0), "unknown");
    assert_string_equal(dp_trainer_kind_name(DP_TRAINER_KIND_COUNT), "unknown");
}

static void fields_of_an_apply_survive_the_trip(void **state)
{
    const dp_trainer_msg msg = full_message(DP_TRAINER_APPLY);
    static dp_trainer_msg back;
    dp_buf buf = encoded(&msg);

    (void)state;
    CHECK_OK(dp_trainer_decode(&back, dp_buf_view(&buf)));
    assert_int_equal(back.round, 1ULL << 40);
    assert_int_equal(back.tokens, UINT64_MAX);
    assert_int_equal(back.alpha, 65536);
    assert_int_equal(back.settle, DP_SETTLE_LEFT_OUT);
    assert_int_equal(back.n_items, DP_TRAINER_ITEMS_MAX);
    assert_memory_equal(back.q, msg.q, sizeof back.q);
    assert_int_equal(back.seed, 0); /* An APPLY does not carry it. */
    dp_buf_close(&buf);
}

static void a_question_for_text_survives_the_trip(void **state)
{
    const dp_trainer_msg msg = full_message(DP_TRAINER_SAMPLE);
    static dp_trainer_msg back;
    dp_buf buf = encoded(&msg);

    (void)state;
    CHECK_OK(dp_trainer_decode(&back, dp_buf_view(&buf)));
    assert_string_equal(back.text, msg.text);
    assert_true(back.temperature == 0.75 && back.top_p == 0.9);
    assert_int_equal(back.top_k, 40);
    dp_buf_close(&buf);
}

static void limits_of_the_owner_and_a_rest_survive_the_trip(void **state)
{
    static const dp_trainer_kind kinds[] = {DP_TRAINER_LIMITS, DP_TRAINER_RESTING};

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const dp_trainer_msg msg = full_message(kinds[i]);
        static dp_trainer_msg back;
        dp_buf buf = encoded(&msg);
        CHECK_OK(dp_trainer_decode(&back, dp_buf_view(&buf)));
        dp_buf_close(&buf);
        assert_int_equal(back.celsius, 88);
        assert_int_equal(back.watts, kinds[i] == DP_TRAINER_LIMITS ? UINT32_MAX : 0);
        assert_int_equal(back.ok, kinds[i] == DP_TRAINER_RESTING);
    }
}

static void fields_of_parts_are_read_back(void **state)
{
    static const dp_trainer_kind kinds[] = {DP_TRAINER_APPLY, DP_TRAINER_RESTORE, DP_TRAINER_REDUCE,
                                            DP_TRAINER_CHECK};

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const dp_trainer_msg msg = full_message(kinds[i]);
        static dp_trainer_msg back;
        dp_buf buf = encoded(&msg);
        CHECK_OK(dp_trainer_decode(&back, dp_buf_view(&buf)));
        dp_buf_close(&buf);
        if (kinds[i] == DP_TRAINER_APPLY || kinds[i] == DP_TRAINER_RESTORE) {
            assert_memory_equal(&back.cuts, &msg.cuts, sizeof back.cuts);
            assert_int_equal(back.taken, 0x80000001U);
        } else {
            assert_memory_equal(&back.range, &msg.range, sizeof back.range);
        }
        if (kinds[i] == DP_TRAINER_APPLY) {
            assert_memory_equal(back.shares, msg.shares, sizeof back.shares);
            assert_int_equal(back.contributors, 31);
        }
    }
}

/* An APPLY with an item, and with these numbers under this key. */
static dp_status apply_with(const char *key, const uint32_t *numbers, uint32_t n)
{
    static const char *const zeros[] = {"round", "tokens", "alpha", "settle", "clip", "lambda"};
    static dp_trainer_msg back;
    dp_buf buf = {.max = DP_TRAINER_PACKET_MAX};
    dp_packer packer = dp_packer_of(&buf);

    dp_pack_map(&packer, 9);
    dp_pack_text(&packer, "type");
    dp_pack_u64(&packer, DP_TRAINER_APPLY);
    for (size_t i = 0; i < sizeof zeros / sizeof zeros[0]; i++) {
        dp_pack_text(&packer, zeros[i]);
        dp_pack_u64(&packer, 0);
    }
    dp_pack_text(&packer, "items");
    dp_pack_array(&packer, 1);
    dp_pack_u64(&packer, 7);
    dp_pack_text(&packer, key);
    dp_pack_array(&packer, n);
    for (uint32_t i = 0; i < n; i++) {
        dp_pack_u64(&packer, numbers[i]);
    }
    CHECK_OK(dp_packer_finish(&packer));
    const dp_status status = dp_trainer_decode(&back, dp_buf_view(&buf));
    dp_buf_close(&buf);
    return status;
}

static void shares_and_cuts_that_are_none_are_refused(void **state)
{
    (void)state;
    CHECK_OK(apply_with("of the future", NULL, 0)); /* Whole blobs need no fields of parts. */
    CHECK_OK(apply_with("shares", (uint32_t[]){5, 65536}, 2));
    CHECK_OK(apply_with("shares", (uint32_t[]){5, 5}, 2)); /* An empty part. */
    CHECK_STATUS(apply_with("shares", NULL, 0), DP_BADMSG);
    CHECK_STATUS(apply_with("shares", (uint32_t[]){5, 6, 7}, 3), DP_BADMSG);
    CHECK_STATUS(apply_with("shares", (uint32_t[]){5, 6, 7, 8}, 4), DP_BADMSG);
    CHECK_STATUS(apply_with("shares", (uint32_t[]){6, 5}, 2), DP_BADMSG);
    CHECK_STATUS(apply_with("shares", (uint32_t[]){5, 65537}, 2), DP_BADMSG);
    CHECK_OK(apply_with("cuts", (uint32_t[]){0, 1, 65535}, 3));
    CHECK_OK(apply_with("cuts", NULL, 0));
    CHECK_STATUS(apply_with("cuts", (uint32_t[]){1}, 1), DP_BADMSG);
    CHECK_STATUS(apply_with("cuts", (uint32_t[]){0, 7, 7}, 3), DP_BADMSG);
    CHECK_STATUS(apply_with("cuts", (uint32_t[]){0, 65536}, 2), DP_BADMSG);
    CHECK_STATUS(apply_with("cuts", (uint32_t[DP_PARTS_MAX + 1]){0}, DP_PARTS_MAX + 1), DP_BADMSG);
}

static void a_restore_says_what_its_work_is_worth(void **state)
{
    dp_trainer_msg msg = full_message(DP_TRAINER_RESTORE);
    static dp_trainer_msg back;

    (void)state;
    msg.lambda = 55109;
    dp_buf buf = encoded(&msg);
    CHECK_OK(dp_trainer_decode(&back, dp_buf_view(&buf)));
    assert_int_equal(back.lambda, 55109);
    assert_int_equal(back.clip, 65535);
    assert_int_equal(back.restore, DP_RESTORE_FROZEN);
    dp_buf_close(&buf);
}

static void a_message_that_cannot_be_sent_is_a_bad_argument(void **state)
{
    dp_buf buf = {.max = DP_TRAINER_PACKET_MAX};
    dp_trainer_msg msg = full_message((dp_trainer_kind)0);

    (void)state;
    CHECK_STATUS(dp_trainer_encode(&msg, &buf), DP_BADARG);
    msg = full_message(DP_TRAINER_KIND_COUNT);
    CHECK_STATUS(dp_trainer_encode(&msg, &buf), DP_BADARG);
    msg = full_message(DP_TRAINER_APPLY);
    msg.n_items = DP_TRAINER_ITEMS_MAX + 1;
    CHECK_STATUS(dp_trainer_encode(&msg, &buf), DP_BADARG);
    msg = full_message(DP_TRAINER_PUBLISH);
    msg.cuts.first[0] = 1;
    CHECK_STATUS(dp_trainer_encode(&msg, &buf), DP_BADARG);
    msg = full_message(DP_TRAINER_SAMPLED);
    memset(msg.text, 'x', sizeof msg.text); /* no NUL */
    CHECK_STATUS(dp_trainer_encode(&msg, &buf), DP_BADARG);
    assert_int_equal(buf.size, 0);
    dp_buf_close(&buf);
}

/* Packs {"type": kind, key: <value by pack>} and decodes it. */
static dp_status decode_with(dp_trainer_kind kind, const char *key, void (*pack)(dp_packer *packer))
{
    static dp_trainer_msg msg;
    dp_buf buf = {.max = DP_TRAINER_PACKET_MAX};
    dp_packer packer = dp_packer_of(&buf);

    dp_pack_map(&packer, 2);
    dp_pack_text(&packer, "type");
    dp_pack_u64(&packer, (uint64_t)kind);
    dp_pack_text(&packer, key);
    pack(&packer);
    CHECK_OK(dp_packer_finish(&packer));
    const dp_status status = dp_trainer_decode(&msg, dp_buf_view(&buf));
    dp_buf_close(&buf);
    return status;
}

static void pack_seven(dp_packer *packer)
{
    dp_pack_u64(packer, 7);
}

static void pack_beyond_u32(dp_packer *packer)
{
    dp_pack_u64(packer, 1ULL << 32);
}

static void pack_minus_one(dp_packer *packer)
{
    dp_pack_i64(packer, -1);
}

static void pack_seven_words(dp_packer *packer)
{
    dp_pack_text(packer, "seven");
}

static void pack_short_bytes(dp_packer *packer)
{
    dp_pack_bytes(packer, dp_view_of("0123456789abcde", 15));
}

static void mistyped_missing_and_extra_fields(void **state)
{
    (void)state;
    CHECK_OK(decode_with(DP_TRAINER_CHECK, "id", pack_seven));
    CHECK_STATUS(decode_with(DP_TRAINER_CHECK, "id", pack_beyond_u32), DP_BADMSG);
    CHECK_STATUS(decode_with(DP_TRAINER_CHECK, "id", pack_minus_one), DP_BADMSG);
    CHECK_STATUS(decode_with(DP_TRAINER_CHECK, "id", pack_seven_words), DP_BADMSG);
    CHECK_STATUS(decode_with(DP_TRAINER_CHECK, "ID", pack_seven), DP_BADMSG);
    CHECK_STATUS(decode_with(DP_TRAINER_FREEZE, "exchange", pack_short_bytes), DP_BADMSG);
    CHECK_STATUS(decode_with(DP_TRAINER_FAILED, "what", pack_seven), DP_BADMSG);
    CHECK_OK(decode_with(DP_TRAINER_STOP, "from the future", pack_seven));
    CHECK_STATUS(decode_with((dp_trainer_kind)0, "id", pack_seven), DP_BADMSG);
    CHECK_STATUS(decode_with(DP_TRAINER_KIND_COUNT, "id", pack_seven), DP_BADMSG);
}

static void a_trainer_that_knows_no_dropped_steps_has_none(void **state)
{
    static dp_trainer_msg back;
    dp_buf buf = {.max = DP_TRAINER_PACKET_MAX};
    dp_packer packer = dp_packer_of(&buf);

    (void)state;
    dp_pack_map(&packer, 5);
    dp_pack_text(&packer, "type");
    dp_pack_u64(&packer, DP_TRAINER_STEP);
    dp_pack_text(&packer, "round");
    dp_pack_u64(&packer, 3);
    dp_pack_text(&packer, "steps");
    dp_pack_u64(&packer, 4);
    dp_pack_text(&packer, "tokens");
    dp_pack_u64(&packer, 5);
    dp_pack_text(&packer, "loss");
    dp_pack_f64(&packer, 1.5);
    CHECK_OK(dp_packer_finish(&packer));
    CHECK_OK(dp_trainer_decode(&back, dp_buf_view(&buf)));
    assert_int_equal(back.steps, 4);
    assert_int_equal(back.skipped, 0);
    CHECK(back.spikes == 0 && back.empty == 0);
    assert_int_equal(back.computed_us, 0);
    assert_int_equal(back.trained_us, 0);
    assert_int_equal(back.spent.tell_us, 0);
    CHECK(back.celsius == 0 && back.watts == 0);
    dp_buf_close(&buf);
}

static void numbers_that_are_not_finite_are_bad(void **state)
{
    const double bad[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        dp_trainer_msg msg = full_message(DP_TRAINER_STEP);
        static dp_trainer_msg back;

        msg.loss = bad[i];
        dp_buf buf = encoded(&msg);
        CHECK_STATUS(dp_trainer_decode(&back, dp_buf_view(&buf)), DP_BADMSG);
        dp_buf_close(&buf);
    }
}

static void damaged_packets_give_a_status_or_a_message(void **state)
{
    static dp_trainer_msg back;
    unsigned decoded = 0;
    unsigned refused = 0;
    dp_rng rng;

    (void)state;
    dp_rng_init(&rng, 5);
    for (unsigned i = 0; i < 10000; i++) {
        const dp_trainer_msg msg =
            full_message((dp_trainer_kind)(1 + i % (DP_TRAINER_KIND_COUNT - 1)));
        dp_buf buf = encoded(&msg);
        uint8_t damaged[2048];

        assert_true(buf.size <= sizeof damaged);
        memcpy(damaged, buf.data, buf.size);
        const size_t size = mutate(&rng, damaged, buf.size, sizeof damaged);
        uint8_t *const exact = malloc(size + 1);
        assert_non_null(exact);
        memcpy(exact, damaged, size);
        if (dp_trainer_decode(&back, dp_view_of(exact, size)) == DP_OK) {
            assert_true(back.n_items <= DP_TRAINER_ITEMS_MAX);
            dp_buf again = encoded(&back);
            dp_buf_close(&again);
            decoded++;
        } else {
            refused++;
        }
        free(exact);
        dp_buf_close(&buf);
    }
    assert_true(decoded > 100 && refused > 100);
}

static void without_memory_nothing_is_read(void **state)
{
    const dp_trainer_msg msg = full_message(DP_TRAINER_APPLY);
    static dp_trainer_msg back;
    dp_buf buf = encoded(&msg);

    (void)state;
    dp_alloc_fail_after(1);
    CHECK_STATUS(dp_trainer_decode(&back, dp_buf_view(&buf)), DP_NOMEM);
    dp_alloc_fail_after(0);
    dp_buf_close(&buf);
}

static void slices_say_where_they_follow_on(void **state)
{
    static const dp_trainer_kind kinds[] = {DP_TRAINER_ADD, DP_TRAINER_ADDED, DP_TRAINER_APPLY};
    static dp_trainer_msg back;

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const dp_trainer_msg msg = full_message(kinds[i]);
        dp_buf buf = encoded(&msg);
        CHECK_OK(dp_trainer_decode(&back, dp_buf_view(&buf)));
        dp_buf_close(&buf);
        assert_int_equal(back.round, 1ULL << 40);
        assert_int_equal(back.at, 992);
        assert_int_equal(back.n_items, kinds[i] == DP_TRAINER_ADDED ? 0 : DP_TRAINER_ITEMS_MAX);
    }
}

static void a_judgement_survives_the_trip(void **state)
{
    static dp_trainer_msg back;
    const dp_trainer_msg asked = full_message(DP_TRAINER_JUDGE);
    const dp_trainer_msg told = full_message(DP_TRAINER_JUDGED);
    dp_buf buf = encoded(&asked);

    (void)state;
    CHECK_OK(dp_trainer_decode(&back, dp_buf_view(&buf)));
    dp_buf_close(&buf);
    assert_int_equal(back.id, 9);
    assert_int_equal(back.keep, 128);
    assert_int_equal(back.scale, 65536);
    assert_int_equal(back.seed, 3);
    assert_int_equal(back.reach.own, 12);
    assert_int_equal(back.reach.leased, 0);
    assert_int_equal(back.own_count, 1ULL << 61);
    assert_int_equal(back.n_ranges, DP_LEASE_RANGES_MAX);
    assert_memory_equal(back.ranges, asked.ranges, sizeof back.ranges);
    assert_memory_equal(back.member, asked.member, sizeof back.member);
    buf = encoded(&told);
    CHECK_OK(dp_trainer_decode(&back, dp_buf_view(&buf)));
    dp_buf_close(&buf);
    assert_int_equal(back.id, 9);
    assert_true(back.judged.failed && back.judged.compared);
    assert_int_equal(back.judged.align, -DP_ALIGN_ONE);
    assert_int_equal(back.judged.held.micro, -DP_GAIN_MICRO_MAX);
    assert_int_equal(back.judged.held.error_micro, 7);
    assert_int_equal(back.judged.held.tokens, UINT32_MAX);
    assert_int_equal(back.judged.claimed.micro, 5);
    assert_int_equal(back.judged.claimed.tokens, 64);
    assert_memory_equal(back.judged.likeness, told.judged.likeness, DP_LIKENESS_BYTES);
}

static dp_status sent(const dp_trainer_msg *msg)
{
    static dp_trainer_msg back;
    dp_buf buf = encoded(msg);
    const dp_status status = dp_trainer_decode(&back, dp_buf_view(&buf));
    dp_buf_close(&buf);
    return status;
}

static void judgements_beyond_what_they_can_be_are_refused(void **state)
{
    (void)state;
    dp_trainer_msg msg = full_message(DP_TRAINER_JUDGE);
    CHECK_OK(sent(&msg));
    msg.own_count = (1ULL << 62) - msg.reach.own;
    CHECK_OK(sent(&msg));
    msg.own_count++;
    CHECK_STATUS(sent(&msg), DP_BADMSG);
    msg = full_message(DP_TRAINER_JUDGED);
    CHECK_OK(sent(&msg));
    msg.judged.align = DP_ALIGN_ONE + 1;
    CHECK_STATUS(sent(&msg), DP_BADMSG);
    msg.judged.align = -DP_ALIGN_ONE - 1;
    CHECK_STATUS(sent(&msg), DP_BADMSG);
    msg.judged.align = 0;
    msg.judged.held.micro--;
    CHECK_STATUS(sent(&msg), DP_BADMSG);
    msg.judged.held.micro = DP_GAIN_MICRO_MAX + 1;
    CHECK_STATUS(sent(&msg), DP_BADMSG);
    msg.judged.held.micro = 0;
    msg.judged.claimed.error_micro++;
    CHECK_STATUS(sent(&msg), DP_BADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_a_name_and_comes_back_as_it_was),
        cmocka_unit_test(fields_of_an_apply_survive_the_trip),
        cmocka_unit_test(a_question_for_text_survives_the_trip),
        cmocka_unit_test(limits_of_the_owner_and_a_rest_survive_the_trip),
        cmocka_unit_test(fields_of_parts_are_read_back),
        cmocka_unit_test(shares_and_cuts_that_are_none_are_refused),
        cmocka_unit_test(a_restore_says_what_its_work_is_worth),
        cmocka_unit_test(a_message_that_cannot_be_sent_is_a_bad_argument),
        cmocka_unit_test(mistyped_missing_and_extra_fields),
        cmocka_unit_test(a_trainer_that_knows_no_dropped_steps_has_none),
        cmocka_unit_test(numbers_that_are_not_finite_are_bad),
        cmocka_unit_test(damaged_packets_give_a_status_or_a_message),
        cmocka_unit_test(without_memory_nothing_is_read),
        cmocka_unit_test(slices_say_where_they_follow_on),
        cmocka_unit_test(a_judgement_survives_the_trip),
        cmocka_unit_test(judgements_beyond_what_they_can_be_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
