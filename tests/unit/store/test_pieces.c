#include "store/pieces.h"

#include "store/ckpt.h"
#include "store/inside.h"
#include "tests/unit/store/shelf.h"

enum { SIZE = 50 * 1000 * 1000 }; /* Three pieces. */

static dp_pieces pieces_of(uint8_t *bytes, size_t size)
{
    return (dp_pieces){.bytes = dp_view_of(bytes, size), .pin = pin_of(DP_PIN_STATE, 3)};
}

static void an_object_put_in_pieces_is_the_one_put_at_once(void **state)
{
    (void)state;
    uint8_t *bytes = noise(1, SIZE);
    dp_hash leaves[DP_CHUNKS_MAX];
    const dp_hash root = dp_object_hash(dp_view_of(bytes, SIZE), leaves);
    dp_pieces pieces = pieces_of(bytes, SIZE);
    uint32_t turns = 1;
    shelf s;
    shelf_open(&s);
    while (dp_pieces_put(&pieces, s.store) == DP_AGAIN) {
        turns++;
        const dp_hash other = put_noise(s.store, turns, 1000, DP_PIN_BLOB, 1); /* in between */
        CHECK_OK(dp_object_collect(s.store, NULL));
        CHECK(holds_noise(s.store, &other, turns, 1000));
    }
    CHECK(turns >= 6); /* Three to hash, three to write. */
    CHECK(dp_hash_equal(&pieces.root, &root));
    CHECK_OK(dp_object_verify(s.store, &root));
    dp_pieces_close(&pieces);
    free(bytes);
    shelf_close(&s);
}

static uint32_t pins_of_states(const shelf *s, const dp_pin *pin)
{
    dp_hash roots[1];
    uint32_t count = 0;
    CHECK_OK(dp_object_pins(s->store, &pin->run, DP_PIN_STATE, roots, 1, &count));
    return count;
}

static void an_object_given_up_midway_is_collected(void **state)
{
    (void)state;
    uint8_t *bytes = noise(4, SIZE);
    dp_pieces pieces = pieces_of(bytes, SIZE);
    dp_object_info info;
    shelf s;
    shelf_open(&s);
    dp_pieces_drop(&pieces, s.store); /* Of nothing. */
    while (pieces.written == 0) {
        CHECK_STATUS(dp_pieces_put(&pieces, s.store), DP_AGAIN);
    }
    CHECK_OK(dp_object_collect(s.store, NULL));
    CHECK_OK(dp_object_stat(s.store, &pieces.root, &info));
    dp_pieces_drop(&pieces, s.store);
    CHECK_OK(dp_object_collect(s.store, NULL));
    CHECK_STATUS(dp_object_stat(s.store, &pieces.root, &info), DP_NOTFOUND);
    dp_pieces_close(&pieces);
    free(bytes);
    shelf_close(&s);
}

static void an_object_that_was_whole_before_keeps_its_pin(void **state)
{
    (void)state;
    uint8_t *bytes = noise(5, SIZE);
    dp_pieces pieces = pieces_of(bytes, SIZE);
    dp_hash root;
    shelf s;
    shelf_open(&s);
    CHECK_OK(dp_object_put(s.store, pieces.bytes, &pieces.pin, &root));
    while (!pieces.begun) {
        CHECK_STATUS(dp_pieces_put(&pieces, s.store), DP_AGAIN);
    }
    dp_pieces_drop(&pieces, s.store);
    assert_int_equal(pins_of_states(&s, &pieces.pin), 1);
    dp_pieces_close(&pieces);
    free(bytes);
    shelf_close(&s);
}

/* Two updates of the same bytes, or a state that is also being fetched: each writer has the same
 * pin in mind. */
static void a_writer_that_gives_up_leaves_the_object_to_another(void **state)
{
    (void)state;
    uint8_t *bytes = noise(6, SIZE);
    dp_pieces one = pieces_of(bytes, SIZE);
    dp_pieces two = pieces_of(bytes, SIZE);
    shelf s;
    shelf_open(&s);
    for (uint32_t first = 0; first < 2; first++) { /* Either one begins. */
        dp_pieces *before = first == 0 ? &one : &two;
        dp_pieces *after = first == 0 ? &two : &one;
        while (!before->begun) {
            CHECK_STATUS(dp_pieces_put(before, s.store), DP_AGAIN);
        }
        while (after->written == 0) {
            CHECK_STATUS(dp_pieces_put(after, s.store), DP_AGAIN);
        }
        dp_pieces_drop(&one, s.store);
        dp_pieces_close(&one);
        one = pieces_of(bytes, SIZE);
        CHECK_OK(dp_object_collect(s.store, NULL));
        dp_status status = DP_AGAIN;
        while (status == DP_AGAIN) {
            status = dp_pieces_put(&two, s.store);
        }
        CHECK_OK(status);
        assert_int_equal(pins_of_states(&s, &two.pin), 1);
        CHECK_OK(dp_object_collect(s.store, NULL));
        CHECK_OK(dp_object_verify(s.store, &two.root));
        CHECK_OK(dp_object_unpin(s.store, &two.root, &two.pin));
        CHECK_OK(dp_object_collect(s.store, NULL));
        CHECK_STATUS(dp_object_verify(s.store, &two.root), DP_NOTFOUND);
        dp_pieces_close(&two);
        two = pieces_of(bytes, SIZE);
    }
    free(bytes);
    shelf_close(&s);
}

static void unfinished_objects_of_an_earlier_life_are_dropped_at_open(void **state)
{
    (void)state;
    uint8_t *bytes = noise(7, SIZE);
    dp_pieces pieces = pieces_of(bytes, SIZE);
    dp_object_info info;
    shelf s;
    shelf_open(&s);
    while (pieces.written == 0) {
        CHECK_STATUS(dp_pieces_put(&pieces, s.store), DP_AGAIN);
    }
    CHECK_OK(dp_object_flush(s.store));
    shelf_reopen(&s);
    CHECK_STATUS(dp_object_stat(s.store, &pieces.root, &info), DP_NOTFOUND);
    dp_pieces_close(&pieces);
    free(bytes);
    shelf_close(&s);
}

static void a_small_object_takes_one_turn(void **state)
{
    (void)state;
    uint8_t *bytes = noise(2, 1000);
    dp_pieces pieces = pieces_of(bytes, 1000);
    shelf s;
    shelf_open(&s);
    CHECK_OK(dp_pieces_put(&pieces, s.store));
    CHECK(holds_noise(s.store, &pieces.root, 2, 1000));
    dp_pieces_close(&pieces);
    free(bytes);
    shelf_close(&s);
}

static void a_checkpoint_adopts_what_was_put(void **state)
{
    (void)state;
    const dp_hash run = {{9}};
    uint8_t *bytes = noise(3, 1000);
    dp_pieces pieces = pieces_of(bytes, 1000);
    dp_ckpt ckpt = {.round = 3, .slot = 4, .created_ms = 5};
    dp_ckpt found;
    uint32_t pins = 1;
    dp_hash pinned[1];
    shelf s;
    shelf_open(&s);
    CHECK_OK(dp_pieces_put(&pieces, s.store));
    ckpt.object = pieces.root;
    CHECK_OK(dp_ckpt_adopt(s.store, &run, &ckpt, &pieces.pin));
    CHECK_OK(dp_object_pins(s.store, &pieces.pin.run, DP_PIN_STATE, pinned, 1, &pins));
    assert_int_equal(pins, 0);
    CHECK_OK(dp_object_collect(s.store, NULL));
    CHECK_OK(dp_ckpt_newest(s.store, &run, &found));
    CHECK_OK(dp_object_verify(s.store, &found.object));
    dp_pieces_close(&pieces);
    free(bytes);
    shelf_close(&s);
}

static void pins_of_one_kind_are_listed(void **state)
{
    (void)state;
    const dp_pin pin = pin_of(DP_PIN_BLOB, 1);
    dp_hash roots[4];
    uint32_t count = 0;
    shelf s;
    shelf_open(&s);
    const dp_hash a = put_noise(s.store, 1, 100, DP_PIN_BLOB, 1);
    put_noise(s.store, 2, 100, DP_PIN_STATE, 1);
    CHECK_OK(dp_object_pins(s.store, &pin.run, DP_PIN_BLOB, roots, 4, &count));
    assert_int_equal(count, 1);
    CHECK(dp_hash_equal(&roots[0], &a));
    CHECK_OK(dp_object_unpin(s.store, &a, &pin));
    CHECK_OK(dp_object_pins(s.store, &pin.run, DP_PIN_BLOB, roots, 4, &count));
    assert_int_equal(count, 0);
    shelf_close(&s);
}

struct received {
    const uint8_t *bytes;
    size_t at;
    dp_status status;
};

static dp_status receive(void *context, dp_view chunk)
{
    struct received *const received = context;
    assert_memory_equal(chunk.data, received->bytes + received->at, chunk.size);
    received->at += chunk.size;
    return received->status;
}

static void an_object_is_read_in_pieces_and_others_write_in_between(void **state)
{
    (void)state;
    uint8_t *bytes = noise(8, SIZE);
    struct received received = {.bytes = bytes};
    uint32_t turns = 0;
    shelf s;
    shelf_open(&s);
    const dp_hash root = put_noise(s.store, 8, SIZE, DP_PIN_STATE, 3);
    dp_pieces_reading reading = {.root = root, .take = receive, .context = &received, .more = true};
    for (; reading.more; turns++) {
        CHECK_OK(dp_pieces_read(&reading, s.store));
        put_noise(s.store, 9, 1000, DP_PIN_BLOB, 1);
    }
    assert_int_equal(turns, 3);
    CHECK(received.at == SIZE && reading.size == SIZE);
    free(bytes);
    shelf_close(&s);
}

static void the_reading_of_an_object_tells_what_ended_it(void **state)
{
    (void)state;
    uint8_t *bytes = noise(8, 1000);
    struct received received = {.bytes = bytes, .status = DP_NOSPACE};
    shelf s;
    shelf_open(&s);
    const dp_hash root = put_noise(s.store, 8, 1000, DP_PIN_STATE, 3);
    dp_pieces_reading reading = {.root = root, .take = receive, .context = &received};
    CHECK_STATUS(dp_pieces_read(&reading, s.store), DP_NOSPACE);
    CHECK_OK(dp_sql_exec(&s.store->chunks, "UPDATE chunk SET data=zeroblob(size)"));
    reading = (dp_pieces_reading){.root = root};
    CHECK_STATUS(dp_pieces_read(&reading, s.store), DP_BADHASH);
    CHECK_STATUS(dp_pieces_read(&reading, s.store), DP_AGAIN); /* It is known by now. */
    reading.root = name_of(5);
    CHECK_STATUS(dp_pieces_read(&reading, s.store), DP_NOTFOUND);
    free(bytes);
    shelf_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_put_in_pieces_is_the_one_put_at_once),
        cmocka_unit_test(an_object_given_up_midway_is_collected),
        cmocka_unit_test(an_object_that_was_whole_before_keeps_its_pin),
        cmocka_unit_test(a_writer_that_gives_up_leaves_the_object_to_another),
        cmocka_unit_test(unfinished_objects_of_an_earlier_life_are_dropped_at_open),
        cmocka_unit_test(a_small_object_takes_one_turn),
        cmocka_unit_test(a_checkpoint_adopts_what_was_put),
        cmocka_unit_test(pins_of_one_kind_are_listed),
        cmocka_unit_test(an_object_is_read_in_pieces_and_others_write_in_between),
        cmocka_unit_test(the_reading_of_an_object_tells_what_ended_it),
    };
    tempdir_in_memory(); /* Many syncs; test_db stays on a disk, and waits for its own. */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
