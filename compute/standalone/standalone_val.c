#include "compute/standalone/standalone_val.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "compute/machine/files.h"

enum {
    TIMES = 20,      /* validations of a run, and the part of the time that they take at most */
    FORWARD = 3,     /* products of a step for each of forward alone */
    BYTES_MAX = 4096 /* of best.json */
};

uint64_t dp_standalone_val_steps(const dp_standalone_options *options, uint64_t target,
                                 uint64_t batch_tokens, uint64_t held)
{
    if (options->val_steps != DP_STANDALONE_UNSET) {
        return options->val_steps;
    }
    const uint64_t tokens = held < options->val_tokens ? held : options->val_tokens;
    const uint64_t part = target / TIMES;
    const uint64_t cost = TIMES * tokens / (FORWARD * batch_tokens) + 1;
    return part > cost ? part : cost;
}

bool dp_standalone_best_take(dp_standalone_best *best, uint64_t step, const dp_trainer_score *score)
{
    if (!isfinite(score->loss) || (best->known && !(score->loss < best->score.loss))) {
        return false;
    }
    *best = (dp_standalone_best){.known = true, .step = step, .score = *score};
    return true;
}

bool dp_standalone_val_ends(const dp_standalone_options *options, const dp_standalone_best *best,
                            uint64_t step, uint64_t every)
{
    return options->patience != 0 && best->known && step > best->step &&
           (step - best->step) / every >= options->patience;
}

/* ---- the file ---- */

dp_status dp_standalone_best_write(const char *folder, const dp_standalone_best *best, dp_why *why)
{
    json_t *const object = json_pack("{s:I,s:f,s:f,s:I}", "step", (json_int_t)best->step, "loss",
                                     best->score.loss, "bits_per_byte", best->score.bits_per_byte,
                                     "tokens", (json_int_t)best->score.tokens);
    char *const text = object != NULL ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    if (text == NULL) {
        return DP_NOMEM;
    }
    const dp_status status =
        dp_file_replace(folder, DP_STANDALONE_BEST_FILE, dp_view_text(text), why);
    free(text);
    return status;
}

static bool read_object(const json_t *object, dp_standalone_best *best)
{
    const json_t *const step = json_object_get(object, "step");
    const json_t *const loss = json_object_get(object, "loss");
    if (!json_is_integer(step) || json_integer_value(step) < 1 || !json_is_number(loss)) {
        return false;
    }
    *best = (dp_standalone_best){
        .known = true,
        .step = (uint64_t)json_integer_value(step),
        .score = {.loss = json_number_value(loss),
                  .bits_per_byte = json_number_value(json_object_get(object, "bits_per_byte")),
                  .tokens = (uint64_t)json_integer_value(json_object_get(object, "tokens"))}};
    return isfinite(best->score.loss);
}

void dp_standalone_best_read(const char *folder, dp_standalone_best *best)
{
    char path[PATH_MAX];
    dp_buf bytes;
    dp_why why;
    json_t *object = NULL;
    dp_buf_init(&bytes, BYTES_MAX);
    const int size = snprintf(path, sizeof path, "%s/%s", folder, DP_STANDALONE_BEST_FILE);
    if (size > 0 && (size_t)size < sizeof path && dp_file_read(path, &bytes, &why) == DP_OK) {
        object = json_loadb((const char *)bytes.data, bytes.size, 0, NULL);
    }
    if (!read_object(object, best)) {
        *best = (dp_standalone_best){.known = false};
    }
    json_decref(object);
    dp_buf_close(&bytes);
}
