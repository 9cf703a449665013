/* Which file of a publication is an object already. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/peer/driver_inside.h"
#include "tests/lib/check.h"

enum { SIZE = 1000 };

static dp_driver *driver;

static dp_hash root_of(uint8_t number)
{
    return (dp_hash){.bytes = {number}};
}

static int file_of(void)
{
    const int fd = memfd_create("part", MFD_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

/* The driver keeps a number of its own for the file, as the trainer sends one. */
static void keep(uint32_t part, int file, uint8_t number)
{
    const dp_hash root = root_of(number);
    const int given = dup(file);
    assert_true(given >= 0);
    dp_driver_early_keep(driver, part, given, &root, SIZE + number);
}

static bool finds(int file, uint8_t number)
{
    const dp_hash wanted = root_of(number);
    dp_hash root = {{0}};
    uint64_t size = 0;
    return dp_driver_early_find(driver, file, &root, &size) && dp_hash_equal(&root, &wanted) &&
           size == SIZE + (uint64_t)number;
}

static bool is_closed(int fd)
{
    return fcntl(fd, F_GETFD) == -1 && errno == EBADF;
}

static void a_file_is_known_by_every_descriptor_of_it_and_no_other(void **state)
{
    const int one = file_of();
    const int other = file_of();
    (void)state;
    keep(0, one, 1);
    keep(DP_PARTS_MAX - 1, other, 2);
    assert_true(finds(one, 1));
    assert_true(finds(other, 2));
    const int third = file_of();
    const int again = dup(one);
    assert_true(finds(again, 1));
    dp_hash root = root_of(9);
    uint64_t size = 9;
    assert_false(dp_driver_early_find(driver, third, &root, &size));
    assert_true(size == 9 && root.bytes[0] == 9); /* Outputs stay as they were. */
    dp_driver_early_forget(driver);
    close(one);
    close(other);
    close(third);
    close(again);
}

static void a_newer_file_of_a_part_takes_the_place_of_the_older(void **state)
{
    const int old = file_of();
    const int new = file_of();
    (void)state;
    keep(3, old, 1);
    const int held = driver->early[3].fd;
    keep(3, new, 2);
    assert_true(finds(new, 2));
    assert_false(finds(old, 1));
    assert_true(is_closed(held));
    dp_driver_early_forget(driver);
    close(old);
    close(new);
}

static void what_is_forgotten_is_closed_and_not_found(void **state)
{
    const int file = file_of();
    (void)state;
    keep(0, file, 1);
    const int held = driver->early[0].fd;
    dp_driver_early_forget(driver);
    assert_true(is_closed(held));
    assert_false(finds(file, 1));
    dp_driver_early_forget(driver); /* Twice is once. */
    close(file);
}

static void a_descriptor_that_is_none_is_not_found(void **state)
{
    const int file = file_of();
    (void)state;
    keep(0, file, 1);
    close(file);
    assert_false(finds(file, 1));
    assert_false(finds(-1, 1));
    dp_driver_early_forget(driver);
}

static int open_driver(void **state)
{
    (void)state;
    driver = test_calloc(1, sizeof *driver);
    return 0;
}

static int close_driver(void **state)
{
    (void)state;
    test_free(driver);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_known_by_every_descriptor_of_it_and_no_other),
        cmocka_unit_test(a_newer_file_of_a_part_takes_the_place_of_the_older),
        cmocka_unit_test(what_is_forgotten_is_closed_and_not_found),
        cmocka_unit_test(a_descriptor_that_is_none_is_not_found),
    };
    return cmocka_run_group_tests(tests, open_driver, close_driver);
}
