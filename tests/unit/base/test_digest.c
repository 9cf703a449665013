#include "base/digest.h"

#include <stdlib.h>

#include "tests/lib/check.h"

/* Expected values come from Python's hashlib.blake2b(domain + b"\0" + bytes, digest_size=32). */
static void assert_hash(dp_hash hash, const char *wanted)
{
    char text[2 * DP_HASH_BYTES + 1];

    dp_hex(dp_view_of(hash.bytes, sizeof hash.bytes), text);
    assert_string_equal(text, wanted);
}

static void a_hash_is_blake2b_of_domain_zero_and_bytes(void **state)
{
    (void)state;
    assert_hash(dp_hash_of("dpnode/test", (dp_view){0}),
                "290f95fd53165a75a12f20209d5d9690647e4e93d47544a1bfc74f58000e2d7a");
    assert_hash(dp_hash_of("dpnode/test", dp_view_text("abc")),
                "5a1461365c4c02c3f589a5ffd30f96c546a613d8561e59ccf3063755c8d6cdc5");
}

static void pieces_hash_like_the_whole(void **state)
{
    const dp_hash whole = dp_hash_of("d", dp_view_text("one two three"));
    dp_digest digest;

    (void)state;
    dp_digest_init(&digest, "d");
    dp_digest_add(&digest, dp_view_text("one "));
    dp_digest_add(&digest, (dp_view){0});
    dp_digest_add(&digest, dp_view_text("two three"));
    const dp_hash pieces = dp_digest_end(&digest);
    assert_true(dp_hash_equal(&whole, &pieces));
}

static void a_number_is_hashed_as_eight_little_endian_bytes(void **state)
{
    const dp_hash wanted = dp_hash_of("d", dp_view_of("\x08\x07\x06\x05\x04\x03\x02\x01", 8));
    dp_digest digest;

    (void)state;
    dp_digest_init(&digest, "d");
    dp_digest_add_u64(&digest, 0x0102030405060708ULL);
    const dp_hash got = dp_digest_end(&digest);
    assert_true(dp_hash_equal(&got, &wanted));
}

static void domains_keep_hashes_apart(void **state)
{
    const dp_hash a = dp_hash_of("ab", dp_view_text("c"));
    const dp_hash b = dp_hash_of("a", dp_view_text("bc"));

    (void)state;
    assert_false(dp_hash_equal(&a, &b));
    assert_int_equal(dp_hash_compare(&a, &a), 0);
    assert_true((dp_hash_compare(&a, &b) < 0) == (dp_hash_compare(&b, &a) > 0));
}

static void only_the_zero_hash_is_zero(void **state)
{
    dp_hash hash = {0};

    (void)state;
    assert_true(dp_hash_is_zero(&hash));
    hash.bytes[31] = 1;
    assert_false(dp_hash_is_zero(&hash));
}

static void chunk_sizes_follow_from_the_total_size(void **state)
{
    const uint64_t kib256 = DP_CHUNK_BYTES_MIN;

    (void)state;
    assert_int_equal(dp_object_chunks(0), 0);
    assert_int_equal(dp_object_chunks(1), 1);
    assert_int_equal(dp_object_chunks(kib256), 1);
    assert_int_equal(dp_object_chunks(kib256 + 1), 2);
    assert_int_equal(dp_object_chunk_bytes(1024 * kib256), kib256);
    assert_int_equal(dp_object_chunks(1024 * kib256), 1024);
    assert_int_equal(dp_object_chunk_bytes(1024 * kib256 + 1), 2 * kib256);
    assert_int_equal(dp_object_chunks(1024 * kib256 + 1), 513);
    const uint64_t gib4 = (uint64_t)1 << 32;
    assert_int_equal(dp_object_chunk_bytes(gib4), DP_CHUNK_BYTES_MAX);
    assert_int_equal(dp_object_chunks(gib4), 1024);
    assert_int_equal(dp_object_chunk_bytes(gib4 + 1), DP_CHUNK_BYTES_MAX);
    assert_int_equal(dp_object_chunks(gib4 + 1), 1025);
    assert_int_equal(dp_object_chunk_bytes(DP_OBJECT_BYTES_MAX), DP_CHUNK_BYTES_MAX);
    assert_int_equal(dp_object_chunks(DP_OBJECT_BYTES_MAX), DP_CHUNKS_MAX);
}

static void the_last_chunk_may_be_short(void **state)
{
    const uint64_t size = 2 * (uint64_t)DP_CHUNK_BYTES_MIN + 5;

    (void)state;
    assert_int_equal(dp_object_chunk_size(size, 0), DP_CHUNK_BYTES_MIN);
    assert_int_equal(dp_object_chunk_size(size, 1), DP_CHUNK_BYTES_MIN);
    assert_int_equal(dp_object_chunk_size(size, 2), 5);
    assert_int_equal(dp_object_chunk_size(DP_CHUNK_BYTES_MIN, 0), DP_CHUNK_BYTES_MIN);
}

static void a_size_beyond_the_limit_has_too_many_chunks(void **state)
{
    (void)state;
    assert_int_equal(dp_object_chunks(DP_OBJECT_BYTES_MAX + 1), DP_CHUNKS_MAX + 1);
    assert_int_equal(dp_object_chunks(UINT64_MAX), DP_CHUNKS_MAX + 1);
}

static void an_object_is_named_by_its_size_and_leaves(void **state)
{
    enum { SIZE = 600000 };
    uint8_t *const bytes = malloc(SIZE);
    dp_hash leaves[3];

    (void)state;
    assert_non_null(bytes);
    for (size_t i = 0; i < SIZE; i++) {
        bytes[i] = (uint8_t)(i * 7 + i / 256);
    }
    const dp_hash root = dp_object_hash(dp_view_of(bytes, SIZE), leaves);
    assert_hash(root, "9d843d4f2cc76f18c33199c5ecd1b02dd4956331793604f8f28fe89f833d3b6c");
    const dp_hash from_leaves = dp_object_root(SIZE, leaves);
    assert_true(dp_hash_equal(&root, &from_leaves));
    const dp_hash without = dp_object_hash(dp_view_of(bytes, SIZE), NULL);
    assert_true(dp_hash_equal(&root, &without));
    const dp_hash leaf = dp_chunk_leaf(dp_view_of(bytes + 524288, SIZE - 524288));
    assert_true(dp_hash_equal(&leaf, &leaves[2]));
    free(bytes);
}

static void an_empty_object_has_a_root(void **state)
{
    const dp_hash root = dp_object_hash((dp_view){0}, NULL);
    const dp_hash same = dp_object_root(0, NULL);

    (void)state;
    assert_hash(root, "dbc832b4ccbea59f698387f4b20f2404ac1b8893e74a4cbc76489d6a75c27db6");
    assert_true(dp_hash_equal(&root, &same));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hash_is_blake2b_of_domain_zero_and_bytes),
        cmocka_unit_test(pieces_hash_like_the_whole),
        cmocka_unit_test(a_number_is_hashed_as_eight_little_endian_bytes),
        cmocka_unit_test(domains_keep_hashes_apart),
        cmocka_unit_test(only_the_zero_hash_is_zero),
        cmocka_unit_test(chunk_sizes_follow_from_the_total_size),
        cmocka_unit_test(the_last_chunk_may_be_short),
        cmocka_unit_test(a_size_beyond_the_limit_has_too_many_chunks),
        cmocka_unit_test(an_object_is_named_by_its_size_and_leaves),
        cmocka_unit_test(an_empty_object_has_a_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
