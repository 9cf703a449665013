#include "compute/corpus/generation_config.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "compute/corpus/end_tokens.h"
#include "compute/machine/files.h"

enum { BYTES_MAX = 1 << 20 };

static const char name[] = "generation_config.json";

/* Leaves out empty if there is none. */
static dp_status read_file(const char *folder, dp_buf *out, dp_why *why)
{
    char path[PATH_MAX];
    const int size = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (size < 0 || (size_t)size >= sizeof path) {
        return dp_why_set(why, DP_BADARG, "the path %.300s is too long", folder);
    }
    return access(path, F_OK) == 0 ? dp_file_read(path, out, why) : DP_OK;
}

/* NULL: absent, or no object. */
static dp_status read_object(const char *folder, json_t **object, dp_why *why)
{
    dp_buf bytes;
    dp_buf_init(&bytes, BYTES_MAX);
    const dp_status status = read_file(folder, &bytes, why);
    json_t *const root = json_loadb((const char *)bytes.data, bytes.size, 0, NULL);
    *object = json_is_object(root) ? root : NULL;
    if (*object == NULL) {
        json_decref(root);
    }
    dp_buf_close(&bytes);
    return status;
}

static bool holds(const json_t *list, uint32_t id)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *const item = json_array_get(list, i);
        if (json_is_integer(item) && json_integer_value(item) == id) {
            return true;
        }
    }
    return false;
}

/* A number, as most files have it, or a list. */
static dp_status add_ends(json_t *object, const dp_end_tokens *ends)
{
    json_t *const given = json_object_get(object, "eos_token_id");
    json_t *const list = json_is_array(given) ? json_deep_copy(given) : json_array();
    bool good = list != NULL;
    if (json_is_integer(given)) {
        good = good && json_array_append(list, given) == 0;
    }
    for (size_t i = 0; i < ends->count && good; i++) {
        good = holds(list, ends->ids[i]) ||
               json_array_append_new(list, json_integer(ends->ids[i])) == 0;
    }
    if (good && json_array_size(list) > 0) {
        json_t *const value = json_array_size(list) == 1 ? json_array_get(list, 0) : list;
        good = json_object_set(object, "eos_token_id", value) == 0;
    }
    json_decref(list);
    return good ? DP_OK : DP_NOMEM;
}

static dp_status write_object(const char *folder, const json_t *object, dp_why *why)
{
    enum { DIGITS = 10 };
    char *const text = json_dumps(object, JSON_INDENT(1) | JSON_REAL_PRECISION(DIGITS));
    if (text == NULL) {
        return DP_NOMEM;
    }
    const dp_status status = dp_file_write(folder, name, dp_view_text(text), why);
    free(text);
    return status;
}

dp_status dp_generation_config_export(const char *data, const char *model, dp_view tokenizer,
                                      dp_why *why)
{
    json_t *object;
    dp_end_tokens ends;
    dp_bpe *bpe;
    DP_TRY(dp_bpe_load(&bpe, tokenizer, why));
    dp_status status = dp_end_tokens_find(&ends, data, bpe, why);
    dp_bpe_close(bpe);
    DP_TRY(status);
    DP_TRY(read_object(data, &object, why));
    if (object == NULL) {
        DP_TRY(read_object(model, &object, why));
    }
    if (object == NULL) {
        return DP_OK;
    }
    status = add_ends(object, &ends);
    if (status == DP_OK) {
        status = write_object(model, object, why);
    }
    json_decref(object);
    return status;
}
