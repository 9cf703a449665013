/* Bytes and form of sums of sites: the messages of collectors, and an owner's message that names
 * them. */
#include "gossip/record/part_sum.h"

#include "gossip/core/msg.h"
#include "tests/unit/gossip/kit/chain_kit.h"

enum { ROOM = 8192 };

static dp_hash run_id;
static dp_hash fork_id = {{3}};
static uint8_t room[ROOM];

static dp_part_word word_of(uint32_t owner, uint32_t n)
{
    dp_part_word word = {
        .owner = kit_peer(owner), .round = 7, .base = {{8}}, .part = 2, .bytes = 900, .n = n};
    dp_peer peers[DP_PART_SOURCES_MAX];

    memset(word.root.bytes, 0x50 + (int)owner, sizeof word.root.bytes);
    for (uint32_t i = 0; i < n; i++) { /* In order of peer. */
        uint32_t at = i;
        const dp_peer peer = kit_peer(i);
        while (at > 0 && dp_peer_compare(&peer, &peers[at - 1]) < 0) {
            peers[at] = peers[at - 1];
            at--;
        }
        peers[at] = peer;
    }
    for (uint32_t i = 0; i < n; i++) {
        word.sources[i].peer = peers[i];
        memset(word.sources[i].root.bytes, (int)(i + 1), DP_HASH_BYTES);
    }
    return word;
}

static uint32_t place_of(const dp_part_word *word, uint32_t who)
{
    const dp_peer peer = kit_peer(who);
    uint32_t i = 0;

    while (!dp_peer_equal(&word->sources[i].peer, &peer)) {
        i++;
    }
    return i;
}

/* The sources of from, added up by who. */
static void add_sum(dp_part_word *word, uint32_t who, uint32_t from)
{
    const dp_crypto crypto = kit_crypto(who);
    dp_site_sum *sum = &word->sums[word->n_sums++];

    *sum = (dp_site_sum){.collector = place_of(word, who), .from = from, .bytes = 300};
    memset(sum->root.bytes, 0x70 + (int)word->n_sums, sizeof sum->root.bytes);
    dp_part_word said = dp_site_sum_word(word, word->n_sums - 1);
    assert_true(dp_site_sum_sign(&said, &crypto, &run_id, &fork_id));
    memcpy(sum->signature, said.signature, sizeof sum->signature);
}

static dp_part_word word_with_sums(void)
{
    dp_part_word word = word_of(5, 6);
    const dp_crypto crypto = kit_crypto(5);
    const uint32_t at[2] = {place_of(&word, 0), place_of(&word, 4)};
    const uint32_t others = 0x3f & ~(1U << at[0]) & ~(1U << at[1]);
    const uint32_t second = (uint32_t)__builtin_ctz(others);
    const uint32_t third = 31 - (uint32_t)__builtin_clz(others);

    run_id = kit_run();
    const uint32_t one = 1U << at[0] | 1U << second;
    const uint32_t two = 1U << at[1] | 1U << third;
    const bool ordered = __builtin_ctz(one) < __builtin_ctz(two);
    add_sum(&word, ordered ? 0 : 4, ordered ? one : two);
    add_sum(&word, ordered ? 4 : 0, ordered ? two : one);
    assert_true(dp_part_sign(&word, &crypto, &run_id, &fork_id));
    return word;
}

static void a_word_with_sums_is_read_as_it_was_written(void **state)
{
    const dp_part_word word = word_with_sums();
    dp_writer writer = dp_writer_of(room, sizeof room);
    static dp_part_word back;

    (void)state;
    dp_part_msg_write(&writer, &word);
    assert_int_equal(dp_part_msg_read(dp_view_of(room, writer.size), &back), DP_OK);
    assert_int_equal(back.n, 6);
    assert_int_equal(back.n_sums, 2);
    assert_memory_equal(&back.sums, &word.sums, 2 * sizeof word.sums[0]);
    const dp_crypto anybody = kit_crypto(1);
    assert_true(dp_part_verify(&back, &anybody, &run_id, &fork_id));
    for (size_t size = 0; size < writer.size; size++) {
        assert_int_not_equal(dp_part_msg_read(dp_view_of(room, size), &back), DP_OK);
    }
}

static void each_sum_in_a_word_is_signed_by_who_made_it(void **state)
{
    const dp_crypto anybody = kit_crypto(1);
    const dp_crypto owner = kit_crypto(5);

    (void)state;
    for (uint32_t what = 0; what < 5; what++) {
        dp_part_word word = word_with_sums();
        dp_site_sum *sum = &word.sums[1];
        if (what == 0) {
            sum->root.bytes[0] ^= 1;
        } else if (what == 1) {
            sum->bytes++;
        } else if (what == 2) {
            word.sources[sum->collector].root.bytes[0] ^= 1; /* Of another READY. */
        } else if (what == 3) {
            word.part++;
        } else {
            sum->signature[0] ^= 1;
        }
        assert_true(dp_part_sign(&word, &owner, &run_id, &fork_id));
        assert_false(dp_part_verify(&word, &anybody, &run_id, &fork_id));
    }
}

static void a_word_without_sums_has_the_bytes_that_it_had(void **state)
{
    dp_part_word word = word_of(5, 6);
    const dp_crypto crypto = kit_crypto(5);
    dp_writer writer = dp_writer_of(room, sizeof room);

    (void)state;
    run_id = kit_run();
    assert_true(dp_part_sign(&word, &crypto, &run_id, &fork_id));
    dp_part_msg_write(&writer, &word);
    assert_int_equal(writer.size, 2 + 32 + 8 + 32 + 1 + 32 + 8 + 1 + 6 * 64 + 64);
    assert_int_equal(room[2 + 32 + 8 + 32 + 1 + 32 + 8], 6);
}

static void sums_are_of_two_at_least_none_in_two_and_in_one_order(void **state)
{
    static const struct {
        dp_site_sum sums[2];
        bool fit;
    } rows[] = {
        {{{.collector = 0, .from = 3, .bytes = 1}, {.collector = 2, .from = 12, .bytes = 1}}, true},
        {{{.collector = 2, .from = 12, .bytes = 1}, {.collector = 0, .from = 3, .bytes = 1}},
         false},
        {{{.collector = 0, .from = 3, .bytes = 1}, {.collector = 1, .from = 6, .bytes = 1}}, false},
        {{{.collector = 0, .from = 3, .bytes = 1}, {.collector = 2, .from = 4, .bytes = 1}}, false},
        {{{.collector = 0, .from = 3, .bytes = 1}, {.collector = 0, .from = 12, .bytes = 1}},
         false},
        {{{.collector = 0, .from = 3, .bytes = 1}, {.collector = 4, .from = 48, .bytes = 1}},
         false}, /* One of them is not there. */
        {{{.collector = 0, .from = 3, .bytes = 1}, {.collector = 2, .from = 0, .bytes = 1}}, false},
        {{{.collector = 0, .from = 3, .bytes = 1}, {.collector = 40, .from = 12, .bytes = 1}},
         false},
        {{{.collector = 0, .from = 3, .bytes = 1}, {.collector = 2, .from = 12, .bytes = 0}},
         false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(dp_site_sums_fit(rows[i].sums, 2, 0x1f), rows[i].fit);
    }
    for (uint32_t n = 1; n <= DP_PARTS_MAX; n++) {
        assert_in_range(dp_site_sums_most(n), 2, DP_SITE_SUMS_MAX);
        assert_true(n * dp_site_sums_most(n) <= DP_SITE_SUMS_ALL || n < 4);
    }
}

static void a_collector_s_word_has_itself_and_another_in_it(void **state)
{
    const dp_crypto crypto = kit_crypto(1);
    const dp_crypto anybody = kit_crypto(2);
    dp_part_word word = word_of(1, 3);
    dp_writer writer = dp_writer_of(room, sizeof room);
    static dp_part_word back;

    (void)state;
    run_id = kit_run();
    assert_true(dp_site_sum_sign(&word, &crypto, &run_id, &fork_id));
    assert_false(dp_part_verify(&word, &anybody, &run_id, &fork_id)); /* No owner has said that. */
    dp_site_sum_msg_write(&writer, &word);
    assert_int_equal(dp_site_sum_msg_read(dp_view_of(room, writer.size), &back), DP_OK);
    assert_true(dp_site_sum_verify(&back, &anybody, &run_id, &fork_id));
    assert_int_not_equal(dp_part_msg_read(dp_view_of(room, writer.size), &back), DP_OK);
    word.owner = kit_peer(9);
    writer = dp_writer_of(room, sizeof room);
    dp_site_sum_msg_write(&writer, &word);
    assert_int_equal(dp_site_sum_msg_read(dp_view_of(room, writer.size), &back), DP_BADMSG);
    word = word_of(0, 1);
    writer = dp_writer_of(room, sizeof room);
    dp_site_sum_msg_write(&writer, &word);
    assert_int_equal(dp_site_sum_msg_read(dp_view_of(room, writer.size), &back), DP_BADMSG);
    word = word_with_sums(); /* A sum of sums does not exist. */
    writer = dp_writer_of(room, sizeof room);
    dp_part_msg_write(&writer, &word);
    room[0] = DP_MSG_SUBTOTAL;
    assert_int_equal(dp_site_sum_msg_read(dp_view_of(room, writer.size), &back), DP_BADMSG);
}

static void a_hint_names_nobody_or_two_at_least(void **state)
{
    dp_collect told = {.round = 7, .base = {{8}}, .part = 2, .n = 3};
    const dp_part_word order = word_of(0, 3);
    dp_collect back;

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        told.peers[i] = order.sources[i].peer;
    }
    for (uint32_t n = 0; n <= 3; n++) {
        dp_writer writer = dp_writer_of(room, sizeof room);
        told.n = n;
        dp_collect_write(&writer, &told);
        assert_int_equal(dp_collect_read(dp_view_of(room, writer.size), &back),
                         n == 1 ? DP_BADMSG : DP_OK);
        assert_int_not_equal(dp_collect_read(dp_view_of(room, writer.size - 1), &back), DP_OK);
        assert_int_not_equal(dp_collect_read(dp_view_of(room, writer.size + 1), &back), DP_OK);
    }
    told.peers[1] = told.peers[0];
    dp_writer writer = dp_writer_of(room, sizeof room);
    dp_collect_write(&writer, &told);
    assert_int_equal(dp_collect_read(dp_view_of(room, writer.size), &back), DP_BADMSG);
}

static void no_byte_of_a_collectors_word_can_be_another_and_all_of_it_comes_back(void **state)
{
    const dp_part_word word = word_with_sums();
    const dp_crypto crypto = kit_crypto(0);
    dp_part_word said = dp_site_sum_word(&word, 0);
    dp_part_word read;

    (void)state;
    memset(&read, 0, sizeof read);
    memcpy(said.signature, word.sums[0].signature, sizeof said.signature);
    dp_writer writer = dp_writer_of(room, sizeof room);
    dp_site_sum_msg_write(&writer, &said);
    assert_int_equal(dp_site_sum_msg_read(dp_view_of(room, writer.size), &read), DP_OK);
    assert_true(dp_site_sum_verify(&read, &crypto, &run_id, &fork_id));
    assert_false(dp_site_sum_verify(&read, &crypto, &fork_id, &fork_id));
    assert_false(dp_site_sum_verify(&read, &crypto, &run_id, &run_id));
    assert_true(dp_peer_equal(&read.owner, &said.owner) && dp_hash_equal(&read.base, &said.base));
    assert_true(dp_hash_equal(&read.root, &said.root) && read.bytes == said.bytes);
    assert_true(read.round == said.round && read.part == said.part && read.n == said.n);
    assert_memory_equal(read.sources, said.sources, said.n * sizeof said.sources[0]);
    for (size_t at = 0; at < writer.size; at++) {
        room[at] ^= 1;
        assert_true(dp_site_sum_msg_read(dp_view_of(room, writer.size), &read) != DP_OK ||
                    !dp_site_sum_verify(&read, &crypto, &run_id, &fork_id));
        room[at] ^= 1;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_word_with_sums_is_read_as_it_was_written),
        cmocka_unit_test(each_sum_in_a_word_is_signed_by_who_made_it),
        cmocka_unit_test(a_word_without_sums_has_the_bytes_that_it_had),
        cmocka_unit_test(sums_are_of_two_at_least_none_in_two_and_in_one_order),
        cmocka_unit_test(a_collector_s_word_has_itself_and_another_in_it),
        cmocka_unit_test(a_hint_names_nobody_or_two_at_least),
        cmocka_unit_test(no_byte_of_a_collectors_word_can_be_another_and_all_of_it_comes_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
