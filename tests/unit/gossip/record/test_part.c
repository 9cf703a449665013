#include "gossip/record/part.h"

#include "gossip/core/msg.h"
#include "gossip/record/part_sum.h"
#include "tests/unit/gossip/kit/chain_kit.h"

static dp_part_layout layout_of(const uint32_t *rates, uint32_t n)
{
    dp_peer peers[DP_PARTS_MAX];
    dp_part_layout layout;

    for (uint32_t i = 0; i < n; i++) {
        peers[i] = kit_peer(i);
    }
    dp_part_layout_of(&layout, peers, rates, n);
    return layout;
}

static uint32_t share(const dp_part_layout *layout, uint32_t part)
{
    return dp_part_end(&layout->cuts, part) - layout->cuts.first[part];
}

static void the_parts_of_a_layout_are_the_whole_vector(void **state)
{
    uint32_t rates[DP_PARTS_MAX];

    (void)state;
    for (uint32_t n = 1; n <= DP_PARTS_MAX; n++) {
        for (uint32_t seed = 0; seed < 20; seed++) {
            for (uint32_t i = 0; i < n; i++) {
                rates[i] = (i * 7919 + seed * 104729) % 1000 * (seed % 3 == 0 ? 4000000U : 1U);
            }
            const dp_part_layout layout = layout_of(rates, n);
            assert_in_range(layout.cuts.n, 1, n);
            assert_int_equal(layout.cuts.first[0], 0);
            uint32_t sum = 0;
            for (uint32_t p = 0; p < layout.cuts.n; p++) {
                assert_true(share(&layout, p) > 0 && share(&layout, p) <= DP_PART_WHOLE);
                sum += share(&layout, p);
            }
            assert_int_equal(sum, DP_PART_WHOLE);
        }
    }
}

static void shares_are_equal_where_a_rate_is_unknown(void **state)
{
    static const uint32_t rates[4] = {100, 0, 300, 100};
    const dp_part_layout layout = layout_of(rates, 4);

    (void)state;
    assert_int_equal(layout.cuts.n, 4);
    for (uint32_t p = 0; p < 4; p++) {
        assert_int_equal(share(&layout, p), DP_PART_WHOLE / 4);
    }
    static const uint32_t of_two[2] = {1000, 10}; /* Each has to send half of it in any case. */
    const dp_part_layout two = layout_of(of_two, 2);
    assert_int_equal(two.cuts.n, 2);
    assert_int_equal(share(&two, 0), DP_PART_WHOLE / 2);
    static const uint32_t of_three[3] = {1000, 1000, 10};
    const dp_part_layout three = layout_of(of_three, 3);
    assert_int_equal(three.cuts.n, 2); /* The thin line of three owns nothing. */
}

/* (2N - 2) r - sum: 6 times 100 and 50 against 300. */
static void a_slow_line_owns_less_and_the_slowest_nothing(void **state)
{
    static const uint32_t rates[4] = {100, 100, 50, 50};
    static const uint32_t unlike[4] = {100, 100, 100, 10};
    const dp_part_layout halves = layout_of(rates, 4);
    const dp_part_layout three = layout_of(unlike, 4);

    (void)state;
    assert_int_equal(halves.cuts.n, 2); /* 300, 300, 0, 0 */
    assert_int_equal(share(&halves, 0), DP_PART_WHOLE / 2);
    assert_int_equal(three.cuts.n, 3);
    const dp_peer third = kit_peer(2);
    assert_true(dp_peer_equal(&three.owners[2], &third));
}

static void nobody_owns_all_by_what_it_says(void **state)
{
    static const uint32_t rates[4] = {100, 100, 100, UINT32_MAX};
    const dp_part_layout layout = layout_of(rates, 4);

    (void)state;
    const uint32_t last = layout.cuts.n - 1;
    const dp_peer liar = kit_peer(3);
    assert_true(dp_peer_equal(&layout.owners[last], &liar));
    assert_int_equal(share(&layout, last),
                     DP_PART_WHOLE * 7 / 10 +
                         1); /* 100, 100, 100 and 700: as twice the others' rate. */
}

static dp_part_word word_of(uint32_t n)
{
    dp_part_word word = {.owner = kit_peer(1), .round = 7, .part = 3, .bytes = 99, .n = n};

    memset(word.root.bytes, 5, sizeof word.root.bytes);
    for (uint32_t i = 0; i < n; i++) {
        word.sources[i].peer = kit_peer(i);
        memset(word.sources[i].root.bytes, (int)i, sizeof word.sources[i].root.bytes);
    }
    return word;
}

static void a_word_is_read_as_it_was_written(void **state)
{
    uint8_t room[4096];
    dp_part_word read;

    (void)state;
    for (uint32_t n = 1; n <= DP_PART_SOURCES_MAX; n += 31) {
        const dp_part_word word = word_of(n);
        dp_writer writer = dp_writer_of(room, sizeof room);
        dp_part_msg_write(&writer, &word);
        assert_int_equal(dp_part_msg_read(dp_view_of(room, writer.size), &read), DP_OK);
        assert_memory_equal(&read.sources, &word.sources, n * sizeof word.sources[0]);
        assert_int_equal(read.part, 3);
        for (size_t size = 0; size < writer.size; size++) {
            assert_int_not_equal(dp_part_msg_read(dp_view_of(room, size), &read), DP_OK);
        }
    }
}

static void a_word_of_nothing_or_of_somebody_twice_is_refused(void **state)
{
    uint8_t room[4096];
    dp_part_word read;
    dp_part_word words[3] = {word_of(0), word_of(2), word_of(1)};

    (void)state;
    words[1].sources[1].peer = words[1].sources[0].peer;
    words[2].bytes = 0;
    for (uint32_t i = 0; i < 3; i++) {
        dp_writer writer = dp_writer_of(room, sizeof room);
        dp_part_msg_write(&writer, &words[i]);
        assert_int_equal(dp_part_msg_read(dp_view_of(room, writer.size), &read), DP_BADMSG);
    }
}

static void a_signature_covers_whose_contributions_are_in_the_part(void **state)
{
    const dp_crypto crypto = kit_crypto(1);
    const dp_hash run = {{1}};
    const dp_hash fork = {{2}};
    dp_part_word word = word_of(3);

    (void)state;
    assert_true(dp_part_sign(&word, &crypto, &run, &fork));
    assert_true(dp_part_verify(&word, &crypto, &run, &fork));
    assert_false(dp_part_verify(&word, &crypto, &run, &run));
    word.sources[2].root.bytes[0] ^= 1;
    assert_false(dp_part_verify(&word, &crypto, &run, &fork));
    word.sources[2].root.bytes[0] ^= 1;
    word.n = 2;
    assert_false(dp_part_verify(&word, &crypto, &run, &fork));
}

static void a_list_names_its_objects_and_their_sizes(void **state)
{
    dp_part_list list = {.n = 2, .refs = {{{{1}}, 10}, {{{2}}, 20}}};
    uint8_t room[128];
    dp_writer writer = dp_writer_of(room, sizeof room);
    dp_part_list read;

    (void)state;
    const dp_hash root = dp_part_list_root(&list);
    assert_int_equal(dp_part_list_bytes(&list), 30);
    dp_part_list_write(&writer, &list);
    dp_reader reader = dp_reader_of(dp_view_of(room, writer.size));
    assert_true(dp_part_list_read(&reader, &read));
    const dp_hash again = dp_part_list_root(&read);
    assert_true(dp_hash_equal(&root, &again));
    list.refs[1].bytes++;
    const dp_hash other = dp_part_list_root(&list);
    assert_false(dp_hash_equal(&root, &other));
    room[0] = 0;
    reader = dp_reader_of(dp_view_of(room, writer.size));
    assert_false(dp_part_list_read(&reader, &read));
    room[0] = DP_PARTS_MAX + 1;
    reader = dp_reader_of(dp_view_of(room, writer.size));
    assert_false(dp_part_list_read(&reader, &read));
}

static void a_rate_near_the_median_is_told_as_the_median(void **state)
{
    static const struct {
        uint32_t measured;
        uint32_t median;
        uint32_t told;
    } cases[] = {{750, 1000, 1000}, {1250, 1000, 1000},
                 {749, 1000, 749},  {1251, 1000, 1251},
                 {1234, 0, 1234},   {0, 1000, 0},
                 {0, 0, 0},         {UINT32_MAX, UINT32_MAX - 5, UINT32_MAX - 5},
                 {1, UINT32_MAX, 1}};

    (void)state;
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(dp_part_rate_told(cases[i].measured, cases[i].median), cases[i].told);
    }
}

static bool list_reads(uint32_t n, uint64_t bytes)
{
    static uint8_t room[1 + (DP_PARTS_MAX + 1) * (DP_HASH_BYTES + 8)];
    dp_writer writer = dp_writer_of(room, sizeof room);
    dp_part_list read;

    dp_write_u8(&writer, (uint8_t)n);
    for (uint32_t i = 0; i < n; i++) {
        dp_write_bytes(&writer, (dp_hash){{(uint8_t)i}}.bytes, DP_HASH_BYTES);
        dp_write_u64(&writer, i + 1 == n ? bytes : 1);
    }
    dp_reader reader = dp_reader_of(dp_view_of(room, writer.size));
    return dp_part_list_read(&reader, &read) && read.n == n && read.refs[n - 1].bytes == bytes;
}

static void a_list_is_read_up_to_its_bounds_and_not_beyond(void **state)
{
    (void)state;
    assert_true(list_reads(1, 1));
    assert_true(list_reads(DP_PARTS_MAX, DP_OBJECT_BYTES_MAX));
    assert_false(list_reads(0, 1));
    assert_false(list_reads(DP_PARTS_MAX + 1, 1));
    assert_false(list_reads(1, 0));
    assert_false(list_reads(1, (uint64_t)DP_OBJECT_BYTES_MAX + 1));
}

/* Signed, written and read: no bit of a message can be changed, and all fields are read back. */
static void no_bit_of_a_word_can_be_changed_and_every_field_comes_back(void **state)
{
    const dp_crypto crypto = kit_crypto(1);
    const dp_hash run = {{1}};
    const dp_hash fork = {{2}};

    (void)state;
    for (uint32_t sums = 0; sums < 2; sums++) {
        static uint8_t room[4096];
        static dp_part_word read;
        dp_part_word word = word_of(3);
        memset(word.base.bytes, 6, sizeof word.base.bytes);
        if (sums == 1) {
            word.n_sums = 1;
            word.sums[0] = (dp_site_sum){.collector = 1, .from = 6, .root = {{7}}, .bytes = 11};
            dp_part_word site = dp_site_sum_word(&word, 0);
            const dp_crypto collector = kit_crypto(1);
            assert_true(dp_site_sum_sign(&site, &collector, &run, &fork));
            memcpy(word.sums[0].signature, site.signature, sizeof site.signature);
        }
        assert_true(dp_part_sign(&word, &crypto, &run, &fork));
        dp_writer writer = dp_writer_of(room, sizeof room);
        dp_part_msg_write(&writer, &word);
        memset(&read, 0, sizeof read);
        assert_int_equal(dp_part_msg_read(dp_view_of(room, writer.size), &read), DP_OK);
        assert_memory_equal(&read, &word, sizeof word);
        assert_true(dp_part_verify(&read, &crypto, &run, &fork));
        for (size_t at = 0; at < writer.size; at++) {
            room[at] ^= 1;
            assert_true(dp_part_msg_read(dp_view_of(room, writer.size), &read) != DP_OK ||
                        !dp_part_verify(&read, &crypto, &run, &fork));
            room[at] ^= 1;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rate_near_the_median_is_told_as_the_median),
        cmocka_unit_test(the_parts_of_a_layout_are_the_whole_vector),
        cmocka_unit_test(shares_are_equal_where_a_rate_is_unknown),
        cmocka_unit_test(a_slow_line_owns_less_and_the_slowest_nothing),
        cmocka_unit_test(nobody_owns_all_by_what_it_says),
        cmocka_unit_test(a_word_is_read_as_it_was_written),
        cmocka_unit_test(a_word_of_nothing_or_of_somebody_twice_is_refused),
        cmocka_unit_test(a_signature_covers_whose_contributions_are_in_the_part),
        cmocka_unit_test(a_list_names_its_objects_and_their_sizes),
        cmocka_unit_test(a_list_is_read_up_to_its_bounds_and_not_beyond),
        cmocka_unit_test(no_bit_of_a_word_can_be_changed_and_every_field_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
