#include "tests/unit/store/shelf.h"

#include "store/ckpt.h"

enum { SMALL = 20000, MIDDLE = 700000 }; /* One chunk; three chunks. */

static void an_object_comes_back_byte_for_byte(void **state)
{
    (void)state;
    const size_t sizes[] = {
        0, 1, 31, DP_CHUNK_BYTES_MIN - 1, DP_CHUNK_BYTES_MIN, DP_CHUNK_BYTES_MIN + 1, MIDDLE};
    shelf s;
    shelf_open(&s);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const dp_hash root = put_noise(s.store, i, sizes[i], DP_PIN_BLOB, 1);
        CHECK(holds_noise(s.store, &root, i, sizes[i]));
    }
    shelf_reopen(&s);
    const dp_hash root = put_noise(s.store, 6, MIDDLE, DP_PIN_BLOB, 1);
    CHECK(holds_noise(s.store, &root, 6, MIDDLE));
    CHECK(s.report.objects_dropped == 0 && s.report.chunks_swept == 0);
    shelf_close(&s);
}

/* Leaves, root and size of noise, cut into chunks. */
struct parts {
    uint8_t *bytes;
    size_t size;
    dp_hash leaves[8];
    dp_hash root;
};

static struct parts parts_of(uint64_t seed, size_t size)
{
    struct parts parts = {.bytes = noise(seed, size), .size = size};
    parts.root = dp_object_hash(dp_view_of(parts.bytes, size), parts.leaves);
    return parts;
}

static dp_view chunk_of(const struct parts *parts, uint32_t index)
{
    return dp_view_of(parts->bytes + (size_t)index * dp_object_chunk_bytes(parts->size),
                      dp_object_chunk_size(parts->size, index));
}

static void chunks_come_in_any_order_and_survive_a_restart(void **state)
{
    (void)state;
    const dp_pin pin = pin_of(DP_PIN_STATE, 3);
    struct parts parts = parts_of(1, MIDDLE);
    uint8_t bitmap[1];
    uint32_t missing = 0;
    shelf s;
    shelf_open(&s);
    CHECK_OK(dp_object_begin(s.store, &parts.root, parts.size, parts.leaves, &pin));
    CHECK_OK(dp_object_put_chunk(s.store, &parts.root, 2, chunk_of(&parts, 2)));
    CHECK_STATUS(dp_object_commit(s.store, &parts.root), DP_AGAIN);
    CHECK_OK(dp_object_flush(s.store));
    shelf_reopen(&s);
    CHECK_OK(dp_object_begin(s.store, &parts.root, parts.size, parts.leaves, &pin));
    CHECK_OK(dp_object_missing(s.store, &parts.root, bitmap, sizeof bitmap, &missing));
    assert_int_equal(missing, 2);
    assert_int_equal(bitmap[0], 3);
    CHECK_OK(dp_object_put_chunk(s.store, &parts.root, 1, chunk_of(&parts, 1)));
    CHECK_OK(dp_object_put_chunk(s.store, &parts.root, 0, chunk_of(&parts, 0)));
    CHECK_OK(dp_object_commit(s.store, &parts.root));
    CHECK_OK(dp_object_commit(s.store, &parts.root));
    CHECK(holds_noise(s.store, &parts.root, 1, MIDDLE));
    free(parts.bytes);
    shelf_close(&s);
}

static void wrong_chunks_and_roots_are_refused(void **state)
{
    (void)state;
    const dp_pin pin = pin_of(DP_PIN_STATE, 3);
    struct parts parts = parts_of(1, MIDDLE);
    const dp_hash other = name_of(5);
    dp_object_info info;
    shelf s;
    shelf_open(&s);
    CHECK_STATUS(dp_object_begin(s.store, &other, parts.size, parts.leaves, &pin), DP_BADHASH);
    CHECK_STATUS(dp_object_begin(s.store, &other, DP_OBJECT_BYTES_MAX + 1, parts.leaves, &pin),
                 DP_TOOBIG);
    CHECK_OK(dp_object_begin(s.store, &parts.root, parts.size, parts.leaves, &pin));
    CHECK_STATUS(dp_object_put_chunk(s.store, &parts.root, 1, chunk_of(&parts, 0)), DP_BADHASH);
    CHECK_STATUS(dp_object_put_chunk(s.store, &parts.root, 3, chunk_of(&parts, 0)), DP_NOTFOUND);
    CHECK_STATUS(dp_object_put_chunk(s.store, &other, 0, chunk_of(&parts, 0)), DP_NOTFOUND);
    parts.bytes[0] ^= 1;
    CHECK_STATUS(dp_object_put_chunk(s.store, &parts.root, 0, chunk_of(&parts, 0)), DP_BADHASH);
    CHECK_OK(dp_object_stat(s.store, &parts.root, &info));
    CHECK(info.n_present == 0 && info.n_chunks == 3 && !info.complete);
    free(parts.bytes);
    shelf_close(&s);
}

static void a_flipped_bit_on_disk_is_found_and_the_chunk_can_be_put_again(void **state)
{
    (void)state;
    struct parts parts = parts_of(1, MIDDLE);
    uint8_t out[DP_CHUNK_BYTES_MIN];
    size_t size = 0;
    dp_object_info info;
    shelf s;
    shelf_open(&s);
    const dp_hash root = put_noise(s.store, 1, MIDDLE, DP_PIN_BLOB, 1);
    dp_store_close(s.store);
    s.store = NULL;
    assert_int_equal(flip_after(shelf_file(&s, "chunks.db"), chunk_of(&parts, 1).data + 100, 32),
                     1);
    shelf_reopen(&s);
    CHECK_OK(dp_object_read_chunk(s.store, &root, 0, out, sizeof out, &size));
    CHECK_STATUS(dp_object_read_chunk(s.store, &root, 1, out, sizeof out, &size), DP_BADHASH);
    CHECK_OK(dp_object_stat(s.store, &root, &info));
    CHECK(!info.complete && info.n_present == 2);
    CHECK_OK(dp_object_put_chunk(s.store, &root, 1, chunk_of(&parts, 1)));
    CHECK_OK(dp_object_commit(s.store, &root));
    CHECK(holds_noise(s.store, &root, 1, MIDDLE));
    CHECK_OK(dp_store_failed(s.store));
    free(parts.bytes);
    shelf_close(&s);
}

static void test_R2_an_object_lives_as_long_as_anything_names_it(void **state)
{
    (void)state;
    uint64_t freed = 0;
    dp_object_info info;
    const dp_pin first = pin_of(DP_PIN_BLOB, 1);
    const dp_pin second = pin_of(DP_PIN_DATA, 0);
    shelf s;
    shelf_open(&s);
    const dp_hash root = put_noise(s.store, 1, SMALL, DP_PIN_BLOB, 1);
    CHECK_OK(dp_object_pin(s.store, &root, &second));
    CHECK_OK(dp_object_unpin(s.store, &root, &first));
    CHECK_OK(dp_object_collect(s.store, &freed));
    CHECK(freed == 0 && holds_noise(s.store, &root, 1, SMALL));
    CHECK_OK(dp_object_unpin(s.store, &root, &second));
    CHECK_OK(dp_object_collect(s.store, &freed));
    assert_int_equal(freed, SMALL);
    CHECK_STATUS(dp_object_stat(s.store, &root, &info), DP_NOTFOUND);
    CHECK_STATUS(dp_object_pin(s.store, &root, &first), DP_NOTFOUND);
    shelf_close(&s);
}

static void a_chunk_of_two_objects_stays_when_one_of_them_goes(void **state)
{
    (void)state;
    const dp_pin pin = pin_of(DP_PIN_BLOB, 2);
    struct parts parts = parts_of(1, MIDDLE);
    dp_hash shorter;
    shelf s;
    shelf_open(&s);
    const dp_hash whole = put_noise(s.store, 1, MIDDLE, DP_PIN_BLOB, 1);
    CHECK_OK(
        dp_object_put(s.store, dp_view_of(parts.bytes, 2 * DP_CHUNK_BYTES_MIN), &pin, &shorter));
    CHECK_OK(dp_object_prune(s.store, &pin.run, DP_PIN_BLOB, 2));
    CHECK_OK(dp_object_collect(s.store, NULL));
    CHECK_STATUS(dp_object_verify(s.store, &whole), DP_NOTFOUND);
    CHECK(holds_noise(s.store, &shorter, 1, 2 * DP_CHUNK_BYTES_MIN));
    free(parts.bytes);
    shelf_close(&s);
}

static void prune_drops_one_kind_of_one_run_below_a_round(void **state)
{
    (void)state;
    dp_object_info info;
    const dp_hash run = pin_of(DP_PIN_BLOB, 0).run;
    const dp_hash other_run = name_of(77);
    shelf s;
    shelf_open(&s);
    const dp_hash old = put_noise(s.store, 1, SMALL, DP_PIN_BLOB, 1);
    const dp_hash fresh = put_noise(s.store, 2, SMALL, DP_PIN_BLOB, 5);
    const dp_hash data = put_noise(s.store, 3, SMALL, DP_PIN_DATA, 1);
    CHECK_OK(dp_object_prune(s.store, &other_run, DP_PIN_BLOB, 9));
    CHECK_OK(dp_object_collect(s.store, NULL));
    CHECK_OK(dp_object_stat(s.store, &old, &info));
    CHECK_OK(dp_object_prune(s.store, &run, DP_PIN_BLOB, 5));
    CHECK_OK(dp_object_collect(s.store, NULL));
    CHECK_STATUS(dp_object_stat(s.store, &old, &info), DP_NOTFOUND);
    CHECK_OK(dp_object_stat(s.store, &fresh, &info));
    CHECK_OK(dp_object_stat(s.store, &data, &info));
    shelf_close(&s);
}

static void the_same_bytes_are_stored_once(void **state)
{
    (void)state;
    uint64_t before = 0;
    uint64_t after = 0;
    shelf s;
    shelf_open(&s);
    put_noise(s.store, 1, MIDDLE, DP_PIN_BLOB, 1);
    CHECK_OK(dp_store_bytes(s.store, &before));
    put_noise(s.store, 1, MIDDLE, DP_PIN_DATA, 1);
    CHECK_OK(dp_store_bytes(s.store, &after));
    CHECK(after - before < SMALL);
    shelf_close(&s);
}

static void leaves_and_buffers_of_the_wrong_size_are_refused(void **state)
{
    (void)state;
    dp_hash leaves[4];
    uint8_t small[16];
    size_t size = 0;
    shelf s;
    shelf_open(&s);
    const dp_hash root = put_noise(s.store, 1, MIDDLE, DP_PIN_BLOB, 1);
    CHECK_OK(dp_object_leaves(s.store, &root, leaves, 3));
    CHECK_STATUS(dp_object_leaves(s.store, &root, leaves, 4), DP_BADARG);
    CHECK_STATUS(dp_object_read_chunk(s.store, &root, 0, small, sizeof small, &size), DP_TOOBIG);
    CHECK_STATUS(dp_object_read(s.store, &root, small, sizeof small), DP_BADARG);
    CHECK_STATUS(dp_object_missing(s.store, &root, small, 0, NULL), DP_TOOBIG);
    CHECK_OK(dp_object_verify(s.store, &root));
    shelf_close(&s);
}

static void leaves_that_lie_are_found_when_the_object_is_read(void **state)
{
    (void)state;
    const dp_pin pin = pin_of(DP_PIN_BLOB, 1);
    struct parts parts = parts_of(1, MIDDLE);
    dp_hash root;
    shelf s;
    shelf_open(&s);
    parts.leaves[1] = name_of(3);
    CHECK_OK(dp_object_put_hashed(s.store, dp_view_of(parts.bytes, parts.size), parts.leaves, &pin,
                                  &root));
    CHECK_STATUS(dp_object_verify(s.store, &root), DP_BADHASH);
    free(parts.bytes);
    shelf_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_comes_back_byte_for_byte),
        cmocka_unit_test(chunks_come_in_any_order_and_survive_a_restart),
        cmocka_unit_test(wrong_chunks_and_roots_are_refused),
        cmocka_unit_test(a_flipped_bit_on_disk_is_found_and_the_chunk_can_be_put_again),
        cmocka_unit_test(test_R2_an_object_lives_as_long_as_anything_names_it),
        cmocka_unit_test(a_chunk_of_two_objects_stays_when_one_of_them_goes),
        cmocka_unit_test(prune_drops_one_kind_of_one_run_below_a_round),
        cmocka_unit_test(the_same_bytes_are_stored_once),
        cmocka_unit_test(leaves_and_buffers_of_the_wrong_size_are_refused),
        cmocka_unit_test(leaves_that_lie_are_found_when_the_object_is_read),
    };
    tempdir_in_memory(); /* Many syncs; test_db stays on a disk, and waits for its own. */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
