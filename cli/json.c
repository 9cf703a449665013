#include "cli/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

static json_t *hex_of(dp_view bytes)
{
    char *text = dp_alloc(2 * bytes.size + 1, 1);
    if (text == NULL) {
        return NULL;
    }
    dp_hex(bytes, text);
    json_t *json = json_string(text);
    dp_free(text);
    return json;
}

/* Bytes of the UTF-8 sequence that starts here; 1 for a byte that starts none, with *valid
 * false. */
static size_t sequence(dp_view text, size_t at, bool *valid)
{
    const uint8_t first = text.data[at];
    const size_t size = first < 0x80                    ? 1
                        : first >= 0xc2 && first < 0xe0 ? 2
                        : first >= 0xe0 && first < 0xf0 ? 3
                        : first >= 0xf0 && first < 0xf5 ? 4
                                                        : 0;
    *valid = size > 0 && at + size <= text.size;
    for (size_t i = 1; *valid && i < size; i++) {
        *valid = (text.data[at + i] & 0xc0) == 0x80;
    }
    return *valid ? size : 1;
}

json_t *dp_json_of_text(dp_view text)
{
    json_t *json = json_stringn((const char *)text.data, text.size);
    if (json != NULL) {
        return json;
    }
    char *clean = dp_alloc(text.size + 1, 1); /* Not UTF-8: leaves out the invalid bytes. */
    size_t used = 0;
    for (size_t at = 0; clean != NULL && at < text.size;) {
        bool valid = false;
        const size_t size = sequence(text, at, &valid);
        if (valid) {
            memcpy(clean + used, text.data + at, size);
            used += size;
        }
        at += size;
    }
    if (clean != NULL) {
        json = json_stringn(clean, used);
        json = json != NULL ? json : json_string(""); /* Surrogates pass the rough check above. */
    }
    dp_free(clean);
    return json;
}

json_t *dp_json_string(const char *text)
{
    return text != NULL ? dp_json_of_text(dp_view_text(text)) : NULL;
}

static json_t *number_of(const dp_pack_value *value)
{
    int64_t whole = 0;
    uint64_t large = 0;
    double real = 0;
    if (dp_pack_get_i64(value, &whole)) {
        return json_integer(whole);
    }
    if (dp_pack_get_u64(value, &large)) {
        char text[24];
        snprintf(text, sizeof text, "%" PRIu64, large);
        return json_string(text);
    }
    if (dp_pack_get_f64(value, &real) && isfinite(real)) {
        return json_real(real);
    }
    return json_null();
}

static json_t *leaf_of(const dp_pack_value *value)
{
    dp_view bytes;
    bool flag = false;
    if (dp_pack_get_text(value, &bytes)) {
        return dp_json_of_text(bytes);
    }
    if (dp_pack_get_bytes(value, &bytes)) {
        return hex_of(bytes);
    }
    if (dp_pack_get_bool(value, &flag)) {
        return json_boolean(flag);
    }
    return number_of(value);
}

static json_t *array_of(const dp_pack_value *value, uint32_t count);

static json_t *object_of(const dp_pack_value *value, uint32_t count)
{
    json_t *object = json_object();
    for (uint32_t i = 0; object != NULL && i < count; i++) {
        const dp_pack_value *key = NULL;
        const dp_pack_value *item = NULL;
        char name[64];
        if (!dp_pack_pair(value, i, &key, &item) || !dp_pack_copy_text(key, name, sizeof name)) {
            continue; /* Our daemons have short text keys. */
        }
        if (json_object_set_new(object, name, dp_json_of(item)) != 0 &&
            json_object_set_new(object, name, json_null()) != 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

/* The depth of a message is bounded by dp_pack_check. */
json_t *dp_json_of(const dp_pack_value *value)
{
    uint32_t count = 0;
    if (dp_pack_is_map(value, &count)) {
        return object_of(value, count);
    }
    if (dp_pack_is_array(value, &count)) {
        return array_of(value, count);
    }
    return leaf_of(value);
}

static json_t *array_of(const dp_pack_value *value, uint32_t count)
{
    json_t *array = json_array();
    for (uint32_t i = 0; array != NULL && i < count; i++) {
        if (json_array_append_new(array, dp_json_of(dp_pack_at(value, i))) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

const char *dp_json_text(const json_t *object, const char *key, const char *standard)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : standard;
}

long long dp_json_int(const json_t *object, const char *key, long long standard)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? json_integer_value(value) : standard;
}

double dp_json_real(const json_t *object, const char *key, double standard)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : standard;
}

int dp_json_flag(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}
