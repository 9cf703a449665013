/* The root key of a run in a folder where there may be another one. */
#include <unistd.h>

#include "daemon/host/daemon.h"
#include "store/dir.h"
#include "tests/lib/check.h"
#include "tests/lib/tempdir.h"

static const uint8_t first[DP_ROOT_SEED_BYTES] = {1};
static const uint8_t second[DP_ROOT_SEED_BYTES] = {2};

static struct {
    tempdir dir;
    dp_config config;
    dp_daemon daemon;
    char moved[DP_ROOT_NAME_MAX];
    dp_why why;
} keys;

static void keys_open(void)
{
    CHECK_OK(dp_crypto_start());
    memset(&keys, 0, sizeof keys);
    tempdir_open(&keys.dir);
    CHECK_OK(dp_config_default(&keys.config, &keys.why));
    snprintf(keys.config.dir, sizeof keys.config.dir, "%s", keys.dir.path);
    keys.daemon.config = &keys.config;
}

static bool holds(const char *name, const uint8_t seed[DP_ROOT_SEED_BYTES])
{
    dp_buf out;
    dp_buf_init(&out, DP_ROOT_SEED_BYTES);
    const bool same = dp_dir_read_secret(keys.dir.path, name, &out, NULL) == DP_OK &&
                      dp_view_equal(dp_buf_view(&out), dp_view_of(seed, DP_ROOT_SEED_BYTES));
    dp_buf_close(&out);
    return same;
}

static dp_status keep(const uint8_t seed[DP_ROOT_SEED_BYTES])
{
    return dp_daemon_keep_root(&keys.daemon, seed, keys.moved, &keys.why);
}

/* The name that the first key gets. */
static const char *name_of_first(void)
{
    static char name[DP_ROOT_NAME_MAX];
    dp_sign_key key;
    dp_sign_key_of_seed(first, &key);
    snprintf(name, sizeof name, "root.key.%02x%02x%02x%02x", key.public_key[0], key.public_key[1],
             key.public_key[2], key.public_key[3]);
    return name;
}

static void a_second_root_key_does_not_cost_the_first(void **state)
{
    dp_sign_key key;
    (void)state;
    keys_open();
    CHECK_OK(keep(first));
    assert_string_equal(keys.moved, "");
    CHECK_OK(keep(second));
    assert_string_equal(keys.moved, name_of_first());
    assert_true(holds("root.key", second) && holds(keys.moved, first));
    keys.daemon.has_root = false;
    CHECK_OK(dp_daemon_load_root(&keys.daemon, &keys.why));
    dp_sign_key_of_seed(second, &key);
    assert_non_null(dp_daemon_root_of(&keys.daemon, key.public_key));
    dp_sign_key_of_seed(first, &key);
    assert_null(dp_daemon_root_of(&keys.daemon, key.public_key));
    tempdir_close(&keys.dir);
}

static void a_copy_under_that_name_is_enough_and_another_file_is_not(void **state)
{
    (void)state;
    keys_open();
    CHECK_OK(keep(first));
    CHECK_OK(dp_dir_write_secret(keys.dir.path, name_of_first(), dp_view_text("my diary")));
    CHECK_STATUS(keep(second), DP_EXISTS);
    assert_string_equal(keys.moved, "");
    assert_non_null(strstr(keys.why.text, name_of_first()));
    assert_true(holds("root.key", first));
    CHECK_OK(dp_dir_write_secret(keys.dir.path, name_of_first(), dp_view_of(first, sizeof first)));
    CHECK_OK(keep(second));
    assert_true(holds("root.key", second) && holds(keys.moved, first));
    CHECK_OK(dp_dir_write_secret(keys.dir.path, "root.key", dp_view_text("no key")));
    CHECK_STATUS(keep(first), DP_CORRUPT);
    tempdir_close(&keys.dir);
}

static void the_key_of_a_run_that_was_not_created_gives_its_place_back(void **state)
{
    char path[TEMPDIR_FILE_MAX];
    (void)state;
    keys_open();
    CHECK_OK(keep(first));
    CHECK_OK(dp_daemon_drop_root(&keys.daemon, keys.moved));
    tempdir_file(&keys.dir, "root.key", path);
    assert_true(!keys.daemon.has_root && access(path, F_OK) != 0);
    CHECK_OK(keep(first));
    CHECK_OK(keep(second));
    CHECK_OK(dp_daemon_drop_root(&keys.daemon, keys.moved));
    assert_true(keys.daemon.has_root && holds("root.key", first));
    tempdir_close(&keys.dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_root_key_does_not_cost_the_first),
        cmocka_unit_test(a_copy_under_that_name_is_enough_and_another_file_is_not),
        cmocka_unit_test(the_key_of_a_run_that_was_not_created_gives_its_place_back),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
