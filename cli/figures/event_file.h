/* Event files as TensorBoard reads them, written here: TFRecord frames of the protocol buffers
 * Event and Summary (tensorflow/core/util/event.proto and framework/summary.proto), as far as
 * scalars and texts need them.
 *
 * FOLDER/events.out.tfevents.<unix time, 10 digits>.<host>.<pid>.<n>, for each record:
 *   u64 size of the data | u32 masked CRC32C of these 8 bytes | data | u32 masked CRC32C of it
 * all little-endian; masked: the sum c (Castagnoli polynomial) as rotr(c, 15) + 0xa282ead8, so that
 * a sum over data that holds sums is none of the usual ones.
 *
 * Event:    1 double wall_time | 2 int64 step | 3 string file_version "brain.Event:2", of the first
 *           record | 5 Summary | 7 SessionLog {1 enum status: 1 START}
 * Summary:  1 Value, repeated: {1 string tag | 2 float simple_value | 8 TensorProto | 9 metadata}
 * of text:  metadata {1 plugin_data {1 string plugin_name "text"}}
 *           TensorProto {1 enum dtype: 7 string | 2 shape {} | 8 bytes string_val}
 *
 * A run that goes on writes a file of its own into the same folder; its SessionLog has the first
 * step that it writes, and readers drop what older files have from there on. */
#ifndef DP_CLI_FIGURES_EVENT_FILE_H
#define DP_CLI_FIGURES_EVENT_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "cli/figures/figure_file.h"

enum { DP_EVENT_FILE_TEXT_MAX = 64 * 1024, DP_EVENT_FILE_SCALARS_MAX = 64 };

typedef struct dp_event_file {
    dp_figure_file file;
    uint64_t first_step; /* of the session */
    bool begun;          /* the first two records are written */
} dp_event_file;

/* One curve's point. */
typedef struct dp_event_scalar {
    const char *tag; /* "train/loss" */
    double value;    /* one that is not finite is left out */
} dp_event_scalar;

/* Chooses a new name in folder, which is made with its parents if absent; writes nothing yet.
 * time_ms: of the clock, unix. DP_IO, DP_NOSPACE, DP_BADARG (the path is too long), with a
 * sentence. */
DP_MUST dp_status dp_event_file_open(dp_event_file *file, const char *folder, uint64_t time_ms,
                                     uint64_t first_step, dp_why *why);
void dp_event_file_close(dp_event_file *file);
/* At most DP_EVENT_FILE_SCALARS_MAX of one step. As dp_figure_file_append; also DP_NOMEM. */
DP_MUST dp_status dp_event_file_scalars(dp_event_file *file, uint64_t time_ms, uint64_t step,
                                        const dp_event_scalar *scalars, size_t n, dp_why *why);
/* text: UTF-8, shown as Markdown; more than DP_EVENT_FILE_TEXT_MAX bytes are cut. */
DP_MUST dp_status dp_event_file_text(dp_event_file *file, uint64_t time_ms, uint64_t step,
                                     const char *tag, const char *text, dp_why *why);

/* CRC32C (RFC 3720, appendix B.4) of bytes, masked as above. */
uint32_t dp_event_file_sum(dp_view bytes);

#endif
