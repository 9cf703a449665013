#include "compute/standalone/standalone_options.h"

#include <jansson.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compute/machine/files.h"

enum { BYTES_MAX = 4096, SAVE_SECONDS = 300, VAL_TOKENS = 65536 };

static const struct {
    const char *key;
    size_t offset;
    uint64_t standard;
} rows[] = {
    {"steps", offsetof(dp_standalone_options, steps), 0},
    {"save_steps", offsetof(dp_standalone_options, save_steps), 0},
    {"save_seconds", offsetof(dp_standalone_options, save_s), SAVE_SECONDS},
    {"val_steps", offsetof(dp_standalone_options, val_steps), DP_STANDALONE_UNSET},
    {"val_tokens", offsetof(dp_standalone_options, val_tokens), VAL_TOKENS},
    {"patience", offsetof(dp_standalone_options, patience), 0},
};

enum { N_ROWS = sizeof rows / sizeof rows[0] };

static uint64_t value_of(const dp_standalone_options *options, size_t row)
{
    uint64_t value;
    memcpy(&value, (const char *)options + rows[row].offset, sizeof value);
    return value;
}

static void set(dp_standalone_options *options, size_t row, uint64_t value)
{
    memcpy((char *)options + rows[row].offset, &value, sizeof value);
}

dp_standalone_options dp_standalone_options_none(void)
{
    dp_standalone_options options;
    for (size_t i = 0; i < N_ROWS; i++) {
        set(&options, i, DP_STANDALONE_UNSET);
    }
    return options;
}

static json_t *read_object(const char *folder)
{
    char path[PATH_MAX];
    dp_buf bytes;
    dp_why why;
    json_t *object = NULL;
    dp_buf_init(&bytes, BYTES_MAX);
    const int size = snprintf(path, sizeof path, "%s/%s", folder, DP_STANDALONE_OPTIONS_FILE);
    if (size > 0 && (size_t)size < sizeof path && dp_file_read(path, &bytes, &why) == DP_OK) {
        object = json_loadb((const char *)bytes.data, bytes.size, 0, NULL);
    }
    dp_buf_close(&bytes);
    return object;
}

void dp_standalone_options_inherit(dp_standalone_options *options, const char *folder)
{
    json_t *const object = read_object(folder);
    for (size_t i = 0; i < N_ROWS; i++) {
        const json_t *const kept = json_object_get(object, rows[i].key);
        if (value_of(options, i) == DP_STANDALONE_UNSET && json_is_integer(kept) &&
            json_integer_value(kept) >= 0) {
            set(options, i, (uint64_t)json_integer_value(kept));
        }
    }
    json_decref(object);
}

dp_status dp_standalone_options_keep(const dp_standalone_options *options, const char *folder,
                                     dp_why *why)
{
    dp_standalone_options kept = dp_standalone_options_none();
    dp_standalone_options_inherit(&kept, folder);
    if (memcmp(&kept, options, sizeof kept) == 0) {
        return DP_OK;
    }
    json_t *const object = json_object();
    bool good = object != NULL;
    for (size_t i = 0; i < N_ROWS && good; i++) {
        const uint64_t value = value_of(options, i);
        good = value == DP_STANDALONE_UNSET ||
               json_object_set_new(object, rows[i].key, json_integer((json_int_t)value)) == 0;
    }
    char *const text = good ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    if (text == NULL) {
        return DP_NOMEM;
    }
    const dp_status status =
        dp_file_replace(folder, DP_STANDALONE_OPTIONS_FILE, dp_view_text(text), why);
    free(text);
    return status;
}

void dp_standalone_options_complete(dp_standalone_options *options)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        if (value_of(options, i) == DP_STANDALONE_UNSET) {
            set(options, i, rows[i].standard);
        }
    }
    options->val_tokens = options->val_tokens != 0 ? options->val_tokens : VAL_TOKENS;
}
