/* The figures of `dpnode train` for other programs: lines of JSON in a file, and event files for
 * TensorBoard, from the lines that dpnode-worker prints (compute/standalone/standalone_tool.c). */
#ifndef DP_CLI_FIGURES_TRAIN_FIGURES_H
#define DP_CLI_FIGURES_TRAIN_FIGURES_H

#include <jansson.h>

#include "cli/figures/event_file.h"

typedef struct dp_train_figures {
    bool has_lines;
    bool has_events;
    bool is_open; /* the event file, which begins with the first step */
    const char *folder;
    dp_figure_file lines;
    dp_event_file events;
    void (*warn)(void *context, const char *sentence); /* once per kind of trouble */
    void *context;
} dp_train_figures;

/* metrics, folder: NULL: none; folder is borrowed until close. False: a path is too long. Nothing
 * is written yet. */
bool dp_train_figures_open(dp_train_figures *figures, const char *metrics, const char *folder);
void dp_train_figures_close(dp_train_figures *figures);
/* Takes one line of the worker: "start" opens the event file; "step" and "validation" are written,
 * with "time_ms" (unix). A failure is told once and costs figures only. */
void dp_train_figures_take(dp_train_figures *figures, json_t *line, uint64_t time_ms);

#endif
