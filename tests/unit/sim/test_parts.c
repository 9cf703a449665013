#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/disk.h"

enum { BYTES = 100, CHUNKS_MAX = 5 };

/* The number of the first object on the shelf that is cut in more than two chunks. */
static uint32_t large_object(dp_shelf *shelf)
{
    uint8_t bytes[BYTES];

    shelf->chunks_max = CHUNKS_MAX;
    for (uint32_t salt = 0;; salt++) {
        memset(bytes, (int)salt, sizeof bytes);
        const uint32_t object = dp_shelf_add(shelf, dp_view_of(bytes, sizeof bytes));
        if (shelf->items[object].n_chunks > 2) {
            return object;
        }
    }
}

static void write_chunk(dp_disk *disk, const dp_shelf *shelf, uint32_t object, uint32_t index)
{
    const dp_view bytes = dp_shelf_chunk(shelf, object, index);
    dp_disk_write write = {.kind = DP_WRITE_CHUNK,
                           .object = object,
                           .index = index,
                           .row = {.size = (uint32_t)bytes.size}};

    write.row.data = malloc(bytes.size);
    assert_non_null(write.row.data);
    memcpy(write.row.data, bytes.data, bytes.size);
    dp_disk_begin(disk, &write, 0, 1);
}

static void begin(dp_disk *disk, const dp_shelf *shelf, uint32_t object)
{
    dp_disk_use(disk, object, DP_USE_STATE, true);
    dp_parts_begin(&disk->parts, object, shelf->items[object].n_chunks,
                   shelf->items[object].leaves);
}

static void end_writes(dp_disk *disk)
{
    for (dp_disk_write *write = dp_disk_end(disk); write != NULL; write = dp_disk_end(disk)) {
        dp_disk_write_free(write);
    }
}

static void size_leaves_and_root_are_those_of_an_object_of_several_chunks(void **state)
{
    dp_shelf shelf = {0};
    const uint32_t object = large_object(&shelf);
    const dp_shelf_item *item = &shelf.items[object];
    size_t bytes = 0;

    (void)state;
    assert_int_equal(dp_object_chunks(item->size), item->n_chunks);
    for (uint32_t i = 0; i < item->n_chunks; i++) {
        const dp_hash leaf = dp_chunk_leaf(dp_shelf_chunk(&shelf, object, i));
        assert_true(dp_hash_equal(&leaf, &item->leaves[i]));
        bytes += dp_shelf_chunk(&shelf, object, i).size;
    }
    assert_int_equal(bytes, BYTES);
    const dp_hash root = dp_object_root(item->size, item->leaves);
    assert_true(dp_hash_equal(&root, &item->root));
    const dp_hash again = dp_shelf_root(&shelf, dp_shelf_bytes(&shelf, object));
    assert_true(dp_hash_equal(&again, &item->root));
    dp_shelf_close(&shelf);
}

static void chunks_in_any_order_make_the_bytes_that_were_put(void **state)
{
    dp_shelf shelf = {0};
    dp_disk disk = {0};
    const uint32_t object = large_object(&shelf);

    (void)state;
    begin(&disk, &shelf, object);
    for (uint32_t i = shelf.items[object].n_chunks; i > 0; i--) {
        assert_false(dp_part_whole(dp_parts_find(&disk.parts, object)));
        write_chunk(&disk, &shelf, object, i - 1);
        write_chunk(&disk, &shelf, object, i - 1); /* A copy has no effect. */
        end_writes(&disk);
    }
    assert_true(dp_part_whole(dp_parts_find(&disk.parts, object)));
    assert_true(dp_part_is(dp_parts_find(&disk.parts, object), dp_shelf_bytes(&shelf, object)));
    assert_false(dp_disk_holds(&disk, object));
    dp_disk_complete(&disk, object);
    assert_true(dp_disk_holds(&disk, object));
    assert_null(dp_parts_find(&disk.parts, object));
    dp_disk_close(&disk);
    dp_shelf_close(&shelf);
}

static void one_wrong_byte_is_not_what_was_put(void **state)
{
    dp_shelf shelf = {0};
    dp_disk disk = {0};
    const uint32_t object = large_object(&shelf);

    (void)state;
    begin(&disk, &shelf, object);
    for (uint32_t i = 0; i < shelf.items[object].n_chunks; i++) {
        write_chunk(&disk, &shelf, object, i);
    }
    disk.last->row.data[0] ^= 1;
    end_writes(&disk);
    assert_false(dp_part_is(dp_parts_find(&disk.parts, object), dp_shelf_bytes(&shelf, object)));
    dp_disk_close(&disk);
    dp_shelf_close(&shelf);
}

static void a_crash_keeps_the_chunks_that_were_written(void **state)
{
    dp_shelf shelf = {0};
    dp_disk disk = {0};
    dp_rng rng;
    const uint32_t object = large_object(&shelf);

    (void)state;
    dp_rng_init(&rng, 3);
    begin(&disk, &shelf, object);
    write_chunk(&disk, &shelf, object, 1);
    end_writes(&disk);
    dp_disk_crash(&disk, &rng);
    begin(&disk, &shelf, object);
    assert_true(dp_part_has(dp_parts_find(&disk.parts, object), 1));
    assert_false(dp_part_has(dp_parts_find(&disk.parts, object), 0));
    dp_disk_close(&disk);
    dp_shelf_close(&shelf);
}

static void an_unwanted_object_is_dropped_with_its_chunks(void **state)
{
    dp_shelf shelf = {0};
    dp_disk disk = {0};
    const uint32_t object = large_object(&shelf);

    (void)state;
    begin(&disk, &shelf, object);
    write_chunk(&disk, &shelf, object, 0);
    end_writes(&disk);
    write_chunk(&disk, &shelf, object, 1);
    dp_disk_use(&disk, object, DP_USE_STATE, false);
    end_writes(&disk); /* It came too late. */
    assert_null(dp_parts_find(&disk.parts, object));
    assert_false(dp_disk_holds(&disk, object));
    dp_disk_close(&disk);
    dp_shelf_close(&shelf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(size_leaves_and_root_are_those_of_an_object_of_several_chunks),
        cmocka_unit_test(chunks_in_any_order_make_the_bytes_that_were_put),
        cmocka_unit_test(one_wrong_byte_is_not_what_was_put),
        cmocka_unit_test(a_crash_keeps_the_chunks_that_were_written),
        cmocka_unit_test(an_unwanted_object_is_dropped_with_its_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
