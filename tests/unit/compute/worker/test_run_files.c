/* Files about a built-in run that a script may read: where the tokens are, and nothing that can be
 * written. */
#include "tests/lib/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/run/samples.h"
#include "base/trainer/trainer_msg.h"
#include "compute/data/data.h"
#include "compute/data/order.h"
#include "compute/worker/run_files.h"

enum { SHARDS = 3, VOCAB = 300, CONTEXT = 8 };

static const size_t tokens_of[SHARDS] = {100, 37, 64};
static dp_manifest manifest;
static dp_buf shards[SHARDS];
static dp_view views[SHARDS];
static int given[1 + SHARDS];

static int set_up(void **state)
{
    (void)state;
    uint32_t ids[128];
    dp_manifest_default(&manifest);
    manifest.context = CONTEXT;
    manifest.vocab = VOCAB;
    manifest.n_shards = SHARDS;
    manifest.val_per_mille = 300;
    CHECK_OK(dp_memfd_make("words", dp_view_text("{}"), &given[0]));
    for (uint32_t s = 0; s < SHARDS; s++) {
        for (uint32_t i = 0; i < tokens_of[s]; i++) {
            ids[i] = (100 * s + i) % VOCAB;
        }
        dp_buf_init(&shards[s], 1 << 16);
        CHECK_OK(dp_shard_write(ids, tokens_of[s], VOCAB, 0, &shards[s]));
        views[s] = dp_buf_view(&shards[s]);
        manifest.shards[s] = (dp_manifest_shard){.bytes = views[s].size, .tokens = tokens_of[s]};
        CHECK_OK(dp_memfd_make("shard", views[s], &given[1 + s]));
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (uint32_t s = 0; s < SHARDS; s++) {
        dp_buf_close(&shards[s]);
    }
    for (uint32_t i = 0; i < 1 + SHARDS; i++) {
        close(given[i]);
    }
    return 0;
}

static int64_t number(const json_t *of, const char *key)
{
    const json_t *const value = json_object_get(of, key);
    CHECK(json_is_integer(value));
    return json_integer_value(value);
}

static json_t *about_of(const dp_run_files *files)
{
    dp_view text;
    const dp_run_file file = dp_run_files_at(files, DP_RUN_FILE_ABOUT);
    CHECK_OK(dp_memfd_map(file.fd, 1 << 16, &text));
    CHECK(text.size == file.bytes);
    json_t *const json = json_loadb((const char *)text.data, text.size, 0, NULL);
    CHECK(json != NULL);
    dp_memfd_unmap(text);
    return json;
}

/* By the rule of docs/TRAINER.md, section 6, from the numbers of the file alone. */
static void check_window(const json_t *list, int64_t window, const uint32_t *wanted)
{
    for (size_t s = 0; s < SHARDS; s++) {
        const json_t *const shard = json_array_get(list, s);
        const int64_t training = number(shard, "training");
        const int64_t here = training > 0 ? (training - 1) / CONTEXT : 0;
        if (window >= here) {
            window -= here;
            continue;
        }
        CHECK(number(shard, "token_bytes") == 2);
        const uint8_t *const at =
            views[s].data + number(shard, "offset") + 2 * window * (int64_t)CONTEXT;
        for (size_t i = 0; i < CONTEXT; i++) {
            CHECK(at[2 * i] + 256U * at[2 * i + 1] == wanted[i]);
        }
        return;
    }
    CHECK(false);
}

/* Every window of a pass is where a script finds it, with shards that are held out in part or
 * whole. */
static void a_script_finds_the_windows_that_the_engine_has(void **state)
{
    (void)state;
    dp_run_files files;
    dp_data data;
    uint64_t tokens[SHARDS];
    bool seen[64] = {false};
    CHECK_OK(dp_run_files_open(&files, &manifest, given, views));
    json_t *const about = about_of(&files);
    for (uint32_t s = 0; s < SHARDS; s++) {
        tokens[s] = tokens_of[s];
    }
    CHECK_OK(dp_data_open_list(&data, tokens, SHARDS, VOCAB, manifest.val_per_mille, NULL));
    for (uint32_t s = 0; s < SHARDS; s++) {
        CHECK_OK(dp_data_attach(&data, s, views[s], NULL));
    }
    const uint64_t n = dp_data_windows(&data, CONTEXT);
    CHECK(n > 10 && n < 64 && number(about, "samples") == (int64_t)n);
    CHECK(number(about, "context") == CONTEXT && number(about, "vocab") == VOCAB);
    for (uint64_t sample = 0; sample < n; sample++) {
        uint32_t x[CONTEXT];
        uint32_t y[CONTEXT];
        CHECK_OK(dp_data_sample(&data, 9, sample, CONTEXT, x, y));
        const uint64_t window = dp_order_at(9, 0, n, sample);
        check_window(json_object_get(about, "shards"), (int64_t)window, x);
        CHECK(!seen[window]);
        seen[window] = true;
    }
    json_decref(about);
    dp_data_close(&data);
    dp_run_files_close(&files);
}

static void files_cannot_be_written_and_others_are_none(void **state)
{
    (void)state;
    dp_run_files files;
    CHECK_OK(dp_run_files_open(&files, &manifest, given, views));
    for (uint32_t i = 0; i < DP_RUN_FILE_SHARDS + SHARDS; i++) {
        const dp_run_file file = dp_run_files_at(&files, i);
        CHECK(file.fd >= 0 && file.bytes > 0);
        CHECK(pwrite(file.fd, "x", 1, 0) < 0 && ftruncate(file.fd, 0) < 0);
    }
    CHECK(dp_run_files_at(&files, DP_RUN_FILE_SHARDS + SHARDS).fd == -1);
    CHECK(dp_run_files_at(&files, UINT32_MAX).bytes == 0);
    dp_run_files_close(&files);
    CHECK(dp_run_files_at(&files, 0).fd == -1);
}

static void a_model_that_transformers_has_not_has_no_config(void **state)
{
    (void)state;
    dp_run_files files;
    dp_manifest soft = manifest;
    soft.softcap_milli = 15000;
    CHECK_OK(dp_run_files_open(&files, &soft, given, views));
    CHECK(dp_run_files_at(&files, DP_RUN_FILE_CONFIG).bytes == 0);
    CHECK(dp_run_files_at(&files, DP_RUN_FILE_SHARDS).bytes == views[0].size);
    dp_run_files_close(&files);
}

static uint32_t open_descriptors(void)
{
    uint32_t n = 0;
    DIR *const folder = opendir("/proc/self/fd");
    CHECK(folder != NULL);
    while (readdir(folder) != NULL) {
        n++;
    }
    closedir(folder);
    return n;
}

static void bytes_that_are_no_shard_and_bad_descriptors_leave_nothing_open(void **state)
{
    (void)state;
    dp_run_files files;
    const uint32_t before = open_descriptors();
    const dp_view junk[SHARDS] = {views[0], dp_view_text("no shard"), views[2]};
    CHECK(dp_run_files_open(&files, &manifest, given, junk) != DP_OK);
    const int gone[1 + SHARDS] = {given[0], given[1], -1, given[3]};
    CHECK(dp_run_files_open(&files, &manifest, gone, views) != DP_OK);
    CHECK(open_descriptors() == before);
}

#define TEST_OF(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_OF(a_script_finds_the_windows_that_the_engine_has),
        TEST_OF(files_cannot_be_written_and_others_are_none),
        TEST_OF(a_model_that_transformers_has_not_has_no_config),
        TEST_OF(bytes_that_are_no_shard_and_bad_descriptors_leave_nothing_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
