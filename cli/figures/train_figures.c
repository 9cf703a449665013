#include "cli/figures/train_figures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"

enum { LINE_BYTES_MAX = 8192 };

/* A key of a line and the curve that it is a point of. */
typedef struct curve {
    const char *key;
    const char *tag;
} curve;

static const curve step_curves[] = {{"loss", "train/loss"},
                                    {"norm", "train/grad_norm"},
                                    {"lr", "train/lr"},
                                    {"tokens_per_second", "train/tokens_per_second"},
                                    {"skipped", "train/skipped"}};
static const curve validation_curves[] = {
    {"loss", "val/loss"}, {"perplexity", "val/perplexity"}, {"bits_per_byte", "val/bits_per_byte"}};
enum {
    STEP_CURVES = sizeof step_curves / sizeof step_curves[0],
    VALIDATION_CURVES = sizeof validation_curves / sizeof validation_curves[0],
    CURVES_MAX = STEP_CURVES
};

bool dp_train_figures_open(dp_train_figures *figures, const char *metrics, const char *folder)
{
    figures->has_lines = metrics != NULL;
    figures->has_events = folder != NULL;
    figures->is_open = false;
    figures->folder = folder;
    figures->lines.fd = -1;
    figures->events.file.fd = -1;
    return metrics == NULL || dp_figure_file_init(&figures->lines, metrics);
}

void dp_train_figures_close(dp_train_figures *figures)
{
    dp_figure_file_close(&figures->lines);
    dp_event_file_close(&figures->events);
}

static void warn(const dp_train_figures *figures, const dp_why *why)
{
    char sentence[sizeof why->text + 32];
    if (why->text[0] != '\0') {
        snprintf(sentence, sizeof sentence, "%s; training goes on", why->text);
        figures->warn(figures->context, sentence);
    }
}

static void write_line(dp_train_figures *figures, json_t *line, uint64_t time_ms)
{
    dp_why why = {{0}};
    json_t *const timed = json_copy(line);
    char text[LINE_BYTES_MAX];
    json_object_set_new(timed, "time_ms", json_integer((json_int_t)time_ms));
    const size_t size = json_dumpb(timed, text, sizeof text - 1,
                                   JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(10));
    json_decref(timed);
    if (size == 0 || size >= sizeof text) {
        return; /* No line of the worker is as long. */
    }
    text[size] = '\n';
    if (dp_figure_file_append(&figures->lines, dp_view_of(text, size + 1), &why) != DP_OK) {
        warn(figures, &why);
    }
}

/* The folder may come back, but not be asked for at every step. */
static void open_events(dp_train_figures *figures, const json_t *start, uint64_t time_ms)
{
    dp_why why = {{0}};
    const uint64_t step = (uint64_t)dp_json_int(start, "step", 0) + 1; /* the next */
    figures->is_open =
        dp_event_file_open(&figures->events, figures->folder, time_ms, step, &why) == DP_OK;
    if (!figures->is_open) {
        warn(figures, &why);
    }
}

static void write_event(dp_train_figures *figures, const json_t *line, uint64_t time_ms,
                        const curve *curves, size_t n)
{
    dp_event_scalar scalars[CURVES_MAX];
    dp_why why = {{0}};
    for (size_t i = 0; i < n; i++) {
        scalars[i] = (dp_event_scalar){.tag = curves[i].tag,
                                       .value = dp_json_real(line, curves[i].key, (double)NAN)};
    }
    if (dp_event_file_scalars(&figures->events, time_ms, (uint64_t)dp_json_int(line, "step", 0),
                              scalars, n, &why) != DP_OK) {
        warn(figures, &why);
    }
}

void dp_train_figures_take(dp_train_figures *figures, json_t *line, uint64_t time_ms)
{
    const char *const event = dp_json_text(line, "event", "");
    const bool is_step = strcmp(event, "step") == 0;
    const bool is_validation = strcmp(event, "validation") == 0;
    if (figures->has_events && strcmp(event, "start") == 0) {
        open_events(figures, line, time_ms);
    }
    if (!is_step && !is_validation) {
        return;
    }
    if (figures->has_lines) {
        write_line(figures, line, time_ms);
    }
    if (figures->is_open) {
        write_event(figures, line, time_ms, is_step ? step_curves : validation_curves,
                    is_step ? STEP_CURVES : VALIDATION_CURVES);
    }
}
