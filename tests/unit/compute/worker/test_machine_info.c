#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <string.h>

#include "base/version.h"
#include "compute/backend/backend_cpu.h"
#include "compute/worker/machine_info.h"

static json_t *look_at(const dp_plugin_choice *choice)
{
    dp_buf line;
    dp_buf_init(&line, 1 << 16);
    assert_int_equal(dp_machine_info_json(choice, &line), DP_OK);
    assert_int_equal(line.data[line.size - 1], '\n');
    json_t *const object = json_loadb((const char *)line.data, line.size, 0, NULL);
    dp_buf_close(&line);
    assert_non_null(object);
    return object;
}

static const char *text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static json_int_t number(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static void this_machine_has_processors_and_memory(void **state)
{
    (void)state;
    const dp_plugin_choice choice = {.backend = dp_backend_cpu()};
    json_t *const object = look_at(&choice);
    assert_string_equal(text(object, "version"), DP_VERSION_TEXT);
    assert_string_equal(text(object, "backend"), "cpu");
    assert_string_equal(text(object, "line"), "");
    assert_non_null(strstr(text(object, "device"), text(object, "kernels")));
    assert_in_range(number(object, "threads"), 1, number(object, "cpus"));
    assert_true(number(object, "memory_usable") > 0);
    assert_int_equal(number(object, "device_memory_usable") > 0, 1);
    assert_null(json_object_get(object, "celsius"));
    assert_null(json_object_get(object, "watts"));
    assert_null(json_object_get(object, "busy_percent"));
    json_decref(object);
}

static dp_status hot(uint32_t index, dp_device *out, dp_why *why)
{
    (void)index;
    (void)why;
    *out = (dp_device){
        .name = "a \"card\"", .memory_total = 5, .celsius = 70, .watts = 300, .percent = 30};
    return DP_OK;
}

static dp_status gone(uint32_t index, dp_device *out, dp_why *why)
{
    (void)index;
    (void)out;
    return dp_why_set(why, DP_IO, "it fell off the bus");
}

static dp_status joins(char name[DP_DEVICE_NAME_MAX], dp_why *why)
{
    (void)why;
    strcpy(name, "NCCL 2.21.5");
    return DP_OK;
}

static void a_device_is_told_as_its_backend_tells_it(void **state)
{
    (void)state;
    dp_backend backend = *dp_backend_cpu();
    backend.name = "plain";
    backend.device = hot;
    const dp_backend_parts parts = {.library = joins};
    dp_plugin_choice choice = {.backend = &backend};
    json_t *object = look_at(&choice);
    assert_string_equal(text(object, "backend"), "plain");
    assert_string_equal(text(object, "device"), "a \"card\"");
    assert_int_equal(number(object, "device_memory_total"), 5);
    assert_int_equal(number(object, "celsius"), 70);
    assert_int_equal(number(object, "watts"), 300);
    assert_int_equal(number(object, "busy_percent"), 30);
    json_decref(object);
    backend.parts = &parts;
    object = look_at(&choice);
    assert_int_equal(number(object, "cards"), 1);
    assert_string_equal(text(object, "link"), "NCCL 2.21.5");
    json_decref(object);
    backend.device = gone;
    strcpy(choice.line.text, "the CPU computes instead");
    object = look_at(&choice);
    assert_string_equal(text(object, "device"), "it fell off the bus");
    assert_string_equal(text(object, "line"), "the CPU computes instead");
    json_decref(object);
}

static void a_line_that_does_not_fit_is_an_error(void **state)
{
    (void)state;
    const dp_plugin_choice choice = {.backend = dp_backend_cpu()};
    dp_buf line;
    dp_buf_init(&line, 16);
    assert_int_equal(dp_machine_info_json(&choice, &line), DP_TOOBIG);
    dp_buf_close(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(this_machine_has_processors_and_memory),
        cmocka_unit_test(a_device_is_told_as_its_backend_tells_it),
        cmocka_unit_test(a_line_that_does_not_fit_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
