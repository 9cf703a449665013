/* The directory of a store: what disks it may lie on. Its lock and files are tested with the store. */
#include <stdio.h>

#include "store/dir.h"
#include "tests/lib/check.h"
#include "tests/lib/tempdir.h"

static void network_file_systems_are_known(void **state)
{
    static const uint64_t networks[] = {0x6969, 0xff534d42, 0xfe534d42, 0x01021997};
    static const uint64_t local[] = {0xef53 /* ext4 */,        0x01021994 /* tmpfs */,
                                     0x58465342 /* XFS */,     0x9123683e /* Btrfs */,
                                     0x794c7630 /* overlay */, 0x65735546 /* FUSE */};
    (void)state;
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        CHECK(dp_dir_is_network(networks[i]));
    }
    CHECK(dp_dir_is_network(0xffffffffff534d42)); /* a 32-bit kind that was widened with its sign */
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++) {
        CHECK(!dp_dir_is_network(local[i]));
    }
}

static void a_local_disk_is_taken_also_before_the_folder_is_there(void **state)
{
    tempdir dir;
    char path[TEMPDIR_FILE_MAX + 32];
    (void)state;
    tempdir_open(&dir);
    snprintf(path, sizeof path, "%s/not/yet/there", dir.path);
    CHECK_OK(dp_dir_check_disk(dir.path, NULL));
    CHECK_OK(dp_dir_check_disk(path, NULL));
    CHECK_OK(dp_dir_check_disk("", NULL));
    CHECK_OK(dp_dir_check_disk("nowhere", NULL));
    tempdir_close(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(network_file_systems_are_known),
        cmocka_unit_test(a_local_disk_is_taken_also_before_the_folder_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
