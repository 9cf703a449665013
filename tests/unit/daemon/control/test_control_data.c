/* data: the objects that a run learns from, and which of them are here. */
#include "base/run/samples.h"
#include "tests/unit/daemon/call_kit.h"

static dp_hash here; /* the only object that this node holds */
static const dp_driver *opened;

bool dp_node_holds(const dp_node *node, const dp_hash *root)
{
    CHECK(node != NULL);
    return dp_hash_equal(root, &here);
}

static dp_manifest *open_run(void)
{
    dp_driver *driver = call_open();
    opened = driver;
    dp_manifest *manifest = &driver->manifest;
    dp_manifest_default(manifest);
    manifest->tokenizer = name_of(1);
    manifest->tokenizer_bytes = 100;
    manifest->n_shards = 2;
    for (uint32_t i = 0; i < 2; i++) {
        manifest->shards[i].root = name_of(10 + i);
        manifest->shards[i].bytes = 4000;
        manifest->shards[i].tokens = 2000;
    }
    here = name_of(10);
    call_kit.has_manifest = true;
    call_kit.has_node = true;
    return manifest;
}

static const dp_pack_value *item(uint32_t index)
{
    return dp_pack_at(dp_pack_key(call_body(), "data"), index);
}

static void each_object_is_listed_with_its_kind_and_place(void **state)
{
    uint32_t count = 0;
    (void)state;
    const dp_manifest *manifest = open_run();
    CALL_ALONE(dp_method_data);
    assert_true(dp_pack_is_array(dp_pack_key(call_body(), "data"), &count) && count == 3);
    assert_string_equal(text_at(item(0), "kind"), "tokenizer");
    assert_false(flag_at(item(0), "local"));
    assert_string_equal(text_at(item(1), "kind"), "tokens");
    assert_true(flag_at(item(1), "local") && number_at(item(1), "tokens") == 2000);
    assert_false(flag_at(item(2), "local"));
    assert_int_equal(number_at(call_body(), "tokens"), 4000);
    assert_int_equal(number_at(call_body(), "samples"), dp_manifest_samples(manifest));
    call_close();
}

static void weights_to_start_from_are_listed_where_there_are_some(void **state)
{
    uint32_t count = 0;
    (void)state;
    dp_manifest *manifest = open_run();
    manifest->init = name_of(20);
    manifest->init_bytes = 7;
    CALL_ALONE(dp_method_data);
    assert_true(dp_pack_is_array(dp_pack_key(call_body(), "data"), &count) && count == 4);
    assert_string_equal(text_at(item(3), "kind"), "weights");
    assert_int_equal(number_at(item(3), "bytes"), 7);
    call_close();
}

static void the_base_below_adapters_is_listed_and_counted(void **state)
{
    uint32_t count = 0;
    uint32_t n_here = 0;
    (void)state;
    dp_manifest *manifest = open_run();
    const uint32_t before = dp_data_objects(opened, &n_here);
    manifest->adapt_rank = 4;
    manifest->base = name_of(10);
    manifest->base_bytes = 9;
    CALL_ALONE(dp_method_data);
    assert_true(dp_pack_is_array(dp_pack_key(call_body(), "data"), &count) && count == 4);
    assert_string_equal(text_at(item(3), "kind"), "base");
    assert_true(flag_at(item(3), "local") && number_at(item(3), "bytes") == 9);
    assert_int_equal(dp_data_objects(opened, &n_here), before + 1);
    call_close();
}

static void before_the_node_stands_nothing_is_here(void **state)
{
    uint32_t count = 7;
    (void)state;
    open_run();
    call_kit.has_node = false;
    CALL_ALONE(dp_method_data);
    assert_false(flag_at(item(1), "local"));
    call_kit.has_manifest = false;
    CALL_ALONE(dp_method_data);
    assert_true(dp_pack_is_array(dp_pack_key(call_body(), "data"), &count) && count == 0);
    assert_null(dp_pack_key(call_body(), "samples"));
    call_close();
}

static void objects_are_counted_as_the_tokenizer_and_the_shards(void **state)
{
    uint32_t n_here = 9;
    (void)state;
    open_run();
    assert_int_equal(dp_data_objects(desk.driver, &n_here), 3);
    assert_int_equal(n_here, 1);
    call_kit.has_node = false;
    assert_int_equal(dp_data_objects(desk.driver, &n_here), 3);
    assert_int_equal(n_here, 0);
    call_kit.has_manifest = false;
    assert_int_equal(dp_data_objects(desk.driver, &n_here), 0);
    call_close();
}

static void without_a_run_or_a_client_nothing_is_listed(void **state)
{
    (void)state;
    open_run();
    call_kit.is_gone = true;
    CALL_ALONE(dp_method_data);
    assert_true(call_kit.n_frames == 0 && call_kit.n_errors == 0);
    desk.daemon.driver = NULL;
    CALL_ALONE(dp_method_data);
    assert_true(call_failed("E0105", 75));
    call_close();
}

static void any_model_has_a_table_and_samples(void **state)
{
    uint32_t count = 0;
    (void)state;
    dp_manifest *manifest = open_run();
    manifest->arch = DP_ARCH_EXTERNAL;
    manifest->n_shards = 0;
    manifest->samples = 500;
    CALL_ALONE(dp_method_data);
    assert_true(dp_pack_is_array(dp_pack_key(call_body(), "data"), &count) && count == 1);
    assert_string_equal(text_at(item(0), "kind"), "table");
    assert_int_equal(number_at(call_body(), "samples"), 500);
    call_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_object_is_listed_with_its_kind_and_place),
        cmocka_unit_test(weights_to_start_from_are_listed_where_there_are_some),
        cmocka_unit_test(the_base_below_adapters_is_listed_and_counted),
        cmocka_unit_test(before_the_node_stands_nothing_is_here),
        cmocka_unit_test(objects_are_counted_as_the_tokenizer_and_the_shards),
        cmocka_unit_test(without_a_run_or_a_client_nothing_is_listed),
        cmocka_unit_test(any_model_has_a_table_and_samples),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
