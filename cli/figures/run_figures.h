/* The figures of a run as an event file for TensorBoard, from the daemon's replies to status and
 * rounds (daemon/control/control_msg.h). The step is the round. Asks nobody. */
#ifndef DP_CLI_FIGURES_RUN_FIGURES_H
#define DP_CLI_FIGURES_RUN_FIGURES_H

#include <jansson.h>

#include "cli/figures/event_file.h"

enum { DP_RUN_FIGURES_ID_MAX = 64 };

/* Zeroed, with folder (borrowed), warn and context. */
typedef struct dp_run_figures {
    const char *folder;
    void (*warn)(void *context, const char *sentence); /* once per kind of trouble */
    void *context;
    bool is_open;
    bool failed;                         /* the folder cannot be made, which was told */
    char run[DP_RUN_FIGURES_ID_MAX + 1]; /* id of the run that the file is of */
    long long slot;                      /* the newest that is written; below 0: none */
    long long measured;                  /* the newest round with a held-out loss; below 0: none */
    dp_event_file events;
} dp_run_figures;

void dp_run_figures_close(dp_run_figures *figures);
/* True if status tells of something that is not written: a round, or a held-out loss. */
bool dp_run_figures_lacks(const dp_run_figures *figures, const json_t *status);
/* Writes what is new. rounds: an array, oldest first; those that are written are skipped, and a
 * daemon of another run, or a chain that has gone back, begins another file. A failure is told once
 * and costs figures only. */
void dp_run_figures_take(dp_run_figures *figures, const json_t *status, const json_t *rounds,
                         uint64_t time_ms);

/* A text {"round", "text"} of a checkpoint, as the figure "sample"; nothing before the file is
 * open. */
void dp_run_figures_text(dp_run_figures *figures, const json_t *text, uint64_t time_ms);

#endif
