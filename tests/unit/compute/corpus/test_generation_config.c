#include "compute/corpus/generation_config.h"

#include <jansson.h>
#include <string.h>

#include "compute/machine/files.h"
#include "compute/text/bpe.h"
#include "tests/lib/check.h"
#include "tests/lib/tempdir.h"

static const char name[] = "generation_config.json";

/* A tokenizer of bytes whose end of text is 256. */
static dp_buf tokenizer(void)
{
    dp_bpe *bpe;
    dp_buf json;
    uint32_t id;
    dp_buf_init(&json, DP_BPE_JSON_BYTES_MAX);
    CHECK_OK(dp_bpe_train(&bpe, dp_view_text("abc"), DP_BPE_TOKENS_MIN, NULL));
    CHECK_OK(dp_bpe_add_special(bpe, dp_view_text("<|endoftext|>"), &id));
    CHECK_OK(dp_bpe_save(bpe, &json));
    dp_bpe_close(bpe);
    return json;
}

/* The exported file, without line ends and blanks, from a kept and an exported one, each may be
 * NULL. */
static void check_exported(const char *kept, const char *exported, const char *wanted)
{
    tempdir data;
    tempdir model;
    char path[TEMPDIR_FILE_MAX];
    dp_why why = {{0}};
    dp_buf json = tokenizer();
    tempdir_open(&data);
    tempdir_open(&model);
    if (kept != NULL) {
        CHECK_OK(dp_file_write(data.path, name, dp_view_text(kept), NULL));
    }
    if (exported != NULL) {
        CHECK_OK(dp_file_write(model.path, name, dp_view_text(exported), NULL));
    }
    CHECK_OK(dp_generation_config_export(data.path, model.path, dp_buf_view(&json), &why));
    json_t *const made = json_load_file(tempdir_file(&model, name, path), 0, NULL);
    json_t *const expected = json_loads(wanted, 0, NULL);
    CHECK(made != NULL && expected != NULL);
    CHECK(json_equal(made, expected));
    json_decref(expected);
    json_decref(made);
    dp_buf_close(&json);
    tempdir_close(&model);
    tempdir_close(&data);
}

static void the_kept_file_is_exported_with_the_ends_that_it_lacks(void **state)
{
    (void)state;
    static const char ours[] = "{\"do_sample\": true, \"eos_token_id\": 256}";
    check_exported("{\"temperature\": 0.7, \"eos_token_id\": [258, 7]}", ours,
                   "{\"temperature\": 0.7, \"eos_token_id\": [258, 7, 256]}");
    check_exported("{\"eos_token_id\": 258}", ours, "{\"eos_token_id\": [258, 256]}");
    check_exported("{\"eos_token_id\": 256, \"top_p\": 0.8}", ours,
                   "{\"eos_token_id\": 256, \"top_p\": 0.8}");
    check_exported("{\"top_p\": 0.8}", ours, "{\"eos_token_id\": 256, \"top_p\": 0.8}");
}

static void without_a_kept_file_the_exported_one_is_completed(void **state)
{
    (void)state;
    check_exported(NULL, "{\"do_sample\": true}", "{\"do_sample\": true, \"eos_token_id\": 256}");
    check_exported("no JSON", "{\"do_sample\": true}",
                   "{\"do_sample\": true, \"eos_token_id\": 256}");
    check_exported("[1]", "{\"a\": 1}", "{\"a\": 1, \"eos_token_id\": 256}");
}

static void without_either_nothing_is_written(void **state)
{
    (void)state;
    tempdir dir;
    dp_buf json = tokenizer();
    tempdir_open(&dir);
    CHECK_OK(dp_generation_config_export(dir.path, dir.path, dp_buf_view(&json), NULL));
    CHECK_STATUS(dp_generation_config_export(dir.path, dir.path, dp_view_text("{"), NULL),
                 DP_BADMSG);
    dp_buf_close(&json);
    tempdir_close(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kept_file_is_exported_with_the_ends_that_it_lacks),
        cmocka_unit_test(without_a_kept_file_the_exported_one_is_completed),
        cmocka_unit_test(without_either_nothing_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
