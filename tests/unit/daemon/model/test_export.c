/* ckpt.export: the newest checkpoint as input of a tool, and the result. The tool is a mock. */
#include "daemon/model/export.h"
#include "tests/unit/daemon/model_kit.h"

static void start(const char *option, const char *type)
{
    const dp_call call = {.daemon = &desk.daemon, .client = 1, .id = 7};
    dp_export_form form = {.umask = 022};
    snprintf(form.option, sizeof form.option, "%s", option);
    snprintf(form.type, sizeof form.type, "%s", type);
    call_clear();
    tool.done = NULL;
    dp_export_start(&desk.daemon, &call, "/m", &form);
    turn_until(&desk.loop, is_running, NULL);
}

static void a_checkpoint_becomes_files_for_the_tool_and_its_answer_a_list(void **state)
{
    uint32_t count = 0;
    (void)state;
    open_run(8);
    start("", "");
    assert_int_equal(size_of("manifest"), 8);
    assert_int_equal(size_of("state"), 5000);
    assert_int_equal(size_of("tokenizer.json"), 300);
    assert_int_equal(tool.n_words, 7);
    assert_string_equal(tool.words[0], "--export");
    assert_string_equal(tool.words[4], "/m");
    assert_string_equal(tool.words[6], "022");
    tool.done(tool.context, 0, "");
    const dp_pack_value *files = dp_pack_key(call_body(), "files");
    assert_true(dp_pack_is_array(files, &count) && count == 4);
    assert_int_equal(number_at(call_body(), "round"), 8);
    assert_true(desk_logged("model.exported") && tool.n_removed == 1);
    call_close();
}

static void a_file_alone_has_its_option_and_name(void **state)
{
    static const char *const rows[][2] = {{"--gguf", "model.gguf"}, {"--llmc", "model.bin"}};
    uint32_t count = 0;
    dp_view name;
    (void)state;
    open_run(8);
    for (size_t i = 0; i < 2; i++) {
        start(rows[i][0], "f32");
        assert_true(tool.n_words == 9 && strcmp(tool.words[7], rows[i][0]) == 0);
        assert_string_equal(tool.words[8], "f32");
        tool.done(tool.context, 0, "");
        const dp_pack_value *files = dp_pack_key(call_body(), "files");
        assert_true(dp_pack_is_array(files, &count) && count == 1);
        assert_true(dp_pack_get_text(dp_pack_at(files, 0), &name));
        assert_memory_equal(name.data, rows[i][1], name.size);
    }
    call_close();
}

static void the_output_of_the_tool_is_the_reason_of_a_failure(void **state)
{
    (void)state;
    open_run(8);
    start("", "");
    tool.done(tool.context, 73, "/m: permission denied");
    assert_true(call_failed("E0405", 74));
    assert_string_equal(call_kit.error.why, "/m: permission denied");
    assert_non_null(strstr(call_kit.error.fix, desk.config.dir));
    assert_true(!desk_logged("model.exported") && tool.n_removed == 1);
    tool.runs = DP_TOOBIG;
    start("", "");
    turn_until(&desk.loop, call_is_answered, NULL);
    assert_true(call_failed("E0405", 70) && tool.n_removed == 2);
    call_close();
}

static void a_copy_that_would_fill_the_disk_is_refused(void **state)
{
    (void)state;
    open_run(8);
    desk.config.margin = UINT64_MAX / 2;
    start("", "");
    assert_true(call_failed("E0404", 74) && tool.done == NULL && tool.n_removed == 1);
    assert_string_equal(call_kit.error.why, dp_status_text(DP_NOSPACE));
    call_close();
}

static void without_a_checkpoint_or_with_a_lost_tokenizer_no_tool_runs(void **state)
{
    (void)state;
    open_run(0);
    start("", "");
    assert_true(call_failed("E0404", 75) && tool.done == NULL && tool.n_removed == 1);
    assert_string_equal(call_kit.error.what, "there is no checkpoint yet");
    call_close();
    open_run(8);
    dp_query query =
        dp_query_of(&desk.shelf.store->chunks, "DELETE FROM chunk WHERE length(data) = 300");
    CHECK_OK(dp_query_run(&query));
    start("", "");
    assert_true(call_kit.n_errors == 1 && tool.done == NULL && tool.n_removed == 1);
    assert_string_equal(call_kit.error.code, "E0404");
    call_close();
}

static void before_the_manifest_is_known_and_without_room_nothing_is_begun(void **state)
{
    (void)state;
    open_run(8);
    call_kit.has_manifest = false;
    start("", "");
    assert_true(call_failed("E0404", 75) && tool.n_removed == 0);
    call_kit.has_manifest = true;
    tool.folders = DP_NOSPACE;
    start("", "");
    assert_true(call_failed("E0404", 75));
    tool.folders = DP_OK;
    dp_store_thread *store_thread = desk.daemon.store_thread;
    desk.daemon.store_thread = NULL;
    start("", "");
    assert_true(call_failed("E0402", 75) && tool.n_removed == 1);
    desk.daemon.store_thread = store_thread;
    call_close();
}

/* The object that the run began from, until its first checkpoint. */
static void before_the_first_round_the_first_weights_are_exported(void **state)
{
    uint32_t count = 0;
    (void)state;
    open_run(0);
    desk.driver->manifest.init = put_noise(desk.shelf.store, 9, 700, DP_PIN_DATA, 0);
    start("", "");
    assert_true(call_failed("E0404", 75)); /* The node is not known to stand at round 0. */
    call_kit.view.running = true;
    start("", "");
    assert_int_equal(size_of("state"), 700);
    tool.done(tool.context, 0, "");
    assert_int_equal(number_at(call_body(), "round"), 0);
    assert_true(dp_pack_is_array(dp_pack_key(call_body(), "files"), &count) && count == 4);
    call_kit.view.node.round = 1;
    start("", "");
    assert_true(call_failed("E0404", 75));
    call_kit.view.node.round = 0;
    desk.driver->manifest.arch = DP_ARCH_EXTERNAL; /* One file alone. */
    start("", "");
    tool.done(tool.context, 0, "");
    assert_true(dp_pack_is_array(dp_pack_key(call_body(), "files"), &count) && count == 1);
    desk.driver->manifest.arch = DP_ARCH_GPT2;
    call_close();
}

static void save(uint64_t round, size_t size)
{
    uint8_t *bytes = noise(round, size);
    dp_ckpt ckpt = {.round = round, .slot = round};
    CHECK_OK(
        dp_ckpt_save(desk.shelf.store, &desk.driver->facts.run, &ckpt, dp_view_of(bytes, size)));
    free(bytes);
}

static bool holds_state(uint64_t seed, size_t size)
{
    char path[DP_CONFIG_PATH_MAX + 64];
    uint8_t *got = malloc(size);
    uint8_t *bytes = noise(seed, size);
    snprintf(path, sizeof path, "%s/state", tool.folder);
    FILE *file = fopen(path, "re");
    assert_true(file != NULL && got != NULL);
    const bool same = fread(got, 1, size, file) == size && memcmp(got, bytes, size) == 0;
    fclose(file);
    free(bytes);
    free(got);
    return same;
}

static void votes_are_written_while_a_state_is_copied(void **state)
{
    const dp_call call = {.daemon = &desk.daemon, .client = 1, .id = 7};
    const dp_export_form form = {.umask = 022};
    (void)state;
    open_run(8);
    save(9, DP_PIECE_BYTES + 5000);
    desk_hold();
    dp_export_start(&desk.daemon, &call, "/m", &form);
    assert_true(desk_writes_between(DP_STORE_THREAD_BULK, is_running));
    assert_int_equal(size_of("state"), (long)DP_PIECE_BYTES + 5000);
    assert_true(holds_state(9, DP_PIECE_BYTES + 5000));
    tool.done(tool.context, 0, "");
    assert_int_equal(number_at(call_body(), "round"), 9);
    call_close();
}

static void of_a_damaged_checkpoint_nothing_stays_in_the_copy_of_the_one_before(void **state)
{
    (void)state;
    open_run(8);
    save(9, 600000); /* Of three chunks, the last of which is damaged. */
    dp_query query = dp_query_of(&desk.shelf.store->chunks,
                                 "UPDATE chunk SET data=zeroblob(size) WHERE id=(SELECT max(id) "
                                 "FROM chunk)");
    CHECK_OK(dp_query_run(&query));
    start("", "");
    assert_int_equal(size_of("state"), 5000);
    assert_true(holds_state(8, 5000));
    tool.done(tool.context, 0, "");
    assert_int_equal(number_at(call_body(), "round"), 8);
    call_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_checkpoint_becomes_files_for_the_tool_and_its_answer_a_list),
        cmocka_unit_test(a_file_alone_has_its_option_and_name),
        cmocka_unit_test(the_output_of_the_tool_is_the_reason_of_a_failure),
        cmocka_unit_test(a_copy_that_would_fill_the_disk_is_refused),
        cmocka_unit_test(without_a_checkpoint_or_with_a_lost_tokenizer_no_tool_runs),
        cmocka_unit_test(before_the_manifest_is_known_and_without_room_nothing_is_begun),
        cmocka_unit_test(before_the_first_round_the_first_weights_are_exported),
        cmocka_unit_test(votes_are_written_while_a_state_is_copied),
        cmocka_unit_test(of_a_damaged_checkpoint_nothing_stays_in_the_copy_of_the_one_before),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
