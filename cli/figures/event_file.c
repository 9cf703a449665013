#include "cli/figures/event_file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    RECORD_BYTES_MAX = DP_EVENT_FILE_TEXT_MAX + 4096,
    HOST_MAX = 64,
    /* of a field of a protocol buffer: its number << 3 | how it is written */
    VARINT = 0,
    FIXED64 = 1,
    BYTES = 2,
    FIXED32 = 5,
    DT_STRING = 7,
    SESSION_START = 1
};
#define POLYNOMIAL 0x82f63b78U /* of Castagnoli, reflected */
#define MASK_DELTA 0xa282ead8U

/* ---- sums ---- */

static uint32_t crc32c(dp_view bytes)
{
    uint32_t sum = ~0U;
    for (size_t i = 0; i < bytes.size; i++) {
        sum ^= bytes.data[i];
        for (int bit = 0; bit < 8; bit++) {
            sum = sum >> 1 ^ ((sum & 1) != 0 ? POLYNOMIAL : 0);
        }
    }
    return ~sum;
}

uint32_t dp_event_file_sum(dp_view bytes)
{
    const uint32_t sum = crc32c(bytes);
    return (sum >> 15 | sum << 17) + MASK_DELTA;
}

/* ---- protocol buffers ----
 *
 * Messages stand in each other behind their size, so the inner one is written first. */

static dp_status put_number(dp_buf *out, uint64_t value, unsigned bytes)
{
    uint8_t raw[sizeof value];
    for (unsigned i = 0; i < bytes; i++) {
        raw[i] = (uint8_t)(value >> (8 * i));
    }
    return dp_buf_append(out, dp_view_of(raw, bytes));
}

static dp_status put_varint(dp_buf *out, uint64_t value)
{
    uint8_t raw[10];
    size_t size = 0;
    do {
        raw[size] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
        size++;
    } while (value != 0);
    return dp_buf_append(out, dp_view_of(raw, size));
}

static dp_status put_field(dp_buf *out, unsigned number, unsigned type)
{
    return put_varint(out, number << 3 | type);
}

static dp_status put_whole(dp_buf *out, unsigned number, uint64_t value)
{
    DP_TRY(put_field(out, number, VARINT));
    return put_varint(out, value);
}

static dp_status put_bytes(dp_buf *out, unsigned number, dp_view bytes)
{
    DP_TRY(put_field(out, number, BYTES));
    DP_TRY(put_varint(out, bytes.size));
    return dp_buf_append(out, bytes);
}

static dp_status put_double(dp_buf *out, unsigned number, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    DP_TRY(put_field(out, number, FIXED64));
    return put_number(out, bits, sizeof bits);
}

static dp_status put_float(dp_buf *out, unsigned number, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    DP_TRY(put_field(out, number, FIXED32));
    return put_number(out, bits, sizeof bits);
}

/* ---- records ---- */

/* Appends the frame of one Event with this content in this field. */
static dp_status put_event(dp_buf *out, uint64_t time_ms, uint64_t step, unsigned number,
                           dp_view content)
{
    dp_buf event;
    dp_buf_init(&event, RECORD_BYTES_MAX);
    dp_status status = put_double(&event, 1, (double)time_ms / 1000);
    status = status == DP_OK ? put_whole(&event, 2, step) : status;
    status = status == DP_OK ? put_bytes(&event, number, content) : status;
    const dp_view data = dp_buf_view(&event);
    const size_t start = out->size;
    status = status == DP_OK ? put_number(out, data.size, 8) : status;
    if (status == DP_OK) {
        status = put_number(out, dp_event_file_sum(dp_view_of(out->data + start, 8)), 4);
    }
    status = status == DP_OK ? dp_buf_append(out, data) : status;
    status = status == DP_OK ? put_number(out, dp_event_file_sum(data), 4) : status;
    dp_buf_close(&event);
    return status;
}

static dp_status put_start(const dp_event_file *file, uint64_t time_ms, dp_buf *out)
{
    dp_buf log;
    dp_buf_init(&log, RECORD_BYTES_MAX);
    dp_status status = put_event(out, time_ms, 0, 3, dp_view_text("brain.Event:2"));
    status = status == DP_OK ? put_whole(&log, 1, SESSION_START) : status;
    if (status == DP_OK) {
        status = put_event(out, time_ms, file->first_step, 7, dp_buf_view(&log));
    }
    dp_buf_close(&log);
    return status;
}

/* Writes a Summary, behind the first two records if they are not written. */
static dp_status append(dp_event_file *file, uint64_t time_ms, uint64_t step, dp_view summary,
                        dp_why *why)
{
    dp_buf out;
    dp_buf_init(&out, (size_t)2 * RECORD_BYTES_MAX);
    dp_status status = file->begun ? DP_OK : put_start(file, time_ms, &out);
    status = status == DP_OK ? put_event(&out, time_ms, step, 5, summary) : status;
    if (status == DP_OK) {
        status = dp_figure_file_append(&file->file, dp_buf_view(&out), why);
        file->begun = file->begun || status == DP_OK;
    }
    dp_buf_close(&out);
    return status;
}

static dp_status put_scalar(dp_buf *summary, const dp_event_scalar *scalar)
{
    dp_buf value;
    dp_buf_init(&value, RECORD_BYTES_MAX);
    dp_status status = put_bytes(&value, 1, dp_view_text(scalar->tag));
    status = status == DP_OK ? put_float(&value, 2, (float)scalar->value) : status;
    status = status == DP_OK ? put_bytes(summary, 1, dp_buf_view(&value)) : status;
    dp_buf_close(&value);
    return status;
}

dp_status dp_event_file_scalars(dp_event_file *file, uint64_t time_ms, uint64_t step,
                                const dp_event_scalar *scalars, size_t n, dp_why *why)
{
    dp_buf summary;
    dp_status status = DP_OK;
    why->text[0] = '\0';
    dp_buf_init(&summary, RECORD_BYTES_MAX);
    for (size_t i = 0; i < n && i < DP_EVENT_FILE_SCALARS_MAX && status == DP_OK; i++) {
        if (isfinite(scalars[i].value)) {
            status = put_scalar(&summary, &scalars[i]);
        }
    }
    if (status == DP_OK && summary.size > 0) {
        status = append(file, time_ms, step, dp_buf_view(&summary), why);
    }
    dp_buf_close(&summary);
    return status;
}

/* The bytes of a text to keep: the cut falls between two characters. */
static size_t fit(const char *text)
{
    size_t size = strnlen(text, DP_EVENT_FILE_TEXT_MAX + 1);
    if (size <= DP_EVENT_FILE_TEXT_MAX) {
        return size;
    }
    size = DP_EVENT_FILE_TEXT_MAX;
    while (size > 0 && ((unsigned char)text[size] & 0xc0) == 0x80) {
        size--;
    }
    return size;
}

dp_status dp_event_file_text(dp_event_file *file, uint64_t time_ms, uint64_t step, const char *tag,
                             const char *text, dp_why *why)
{
    static const uint8_t metadata[] = {0x0a, 6, 0x0a, 4, 't', 'e', 'x', 't'};
    dp_buf tensor;
    dp_buf value;
    dp_buf summary;
    why->text[0] = '\0';
    dp_buf_init(&tensor, RECORD_BYTES_MAX);
    dp_buf_init(&value, RECORD_BYTES_MAX);
    dp_buf_init(&summary, RECORD_BYTES_MAX);
    dp_status status = put_whole(&tensor, 1, DT_STRING);
    status = status == DP_OK ? put_bytes(&tensor, 2, dp_view_of("", 0)) : status;
    status = status == DP_OK ? put_bytes(&tensor, 8, dp_view_of(text, fit(text))) : status;
    status = status == DP_OK ? put_bytes(&value, 1, dp_view_text(tag)) : status;
    status = status == DP_OK ? put_bytes(&value, 8, dp_buf_view(&tensor)) : status;
    if (status == DP_OK) {
        status = put_bytes(&value, 9, dp_view_of(metadata, sizeof metadata));
    }
    status = status == DP_OK ? put_bytes(&summary, 1, dp_buf_view(&value)) : status;
    status = status == DP_OK ? append(file, time_ms, step, dp_buf_view(&summary), why) : status;
    dp_buf_close(&summary);
    dp_buf_close(&value);
    dp_buf_close(&tensor);
    return status;
}

/* ---- opening ---- */

/* Makes path and its parents. */
static dp_status make_folders(char *path, dp_why *why)
{
    char text[128];
    for (char *at = path + 1;; at++) {
        const char here = *at;
        if (here != '/' && here != '\0') {
            continue;
        }
        *at = '\0';
        const bool made = mkdir(path, 0777) == 0 || errno == EEXIST;
        const int error = errno;
        *at = here;
        if (!made) {
            return dp_why_set(why, error == ENOSPC || error == EDQUOT ? DP_NOSPACE : DP_IO,
                              "the folder %.300s cannot be made: %s", path,
                              strerror_r(error, text, sizeof text));
        }
        if (here == '\0') {
            return DP_OK;
        }
    }
}

dp_status dp_event_file_open(dp_event_file *file, const char *folder, uint64_t time_ms,
                             uint64_t first_step, dp_why *why)
{
    static unsigned count; /* of this process */
    char path[DP_CLI_PATH_MAX];
    char host[HOST_MAX + 1] = "";
    *file = (dp_event_file){.file = {.fd = -1}, .first_step = first_step};
    if (gethostname(host, HOST_MAX) != 0 || host[0] == '\0') {
        snprintf(host, sizeof host, "host");
    }
    int size = snprintf(path, sizeof path, "%s", folder);
    if (size > 0 && (size_t)size < sizeof path) {
        DP_TRY(make_folders(path, why));
        size = snprintf(path, sizeof path, "%s/events.out.tfevents.%010llu.%s.%ld.%u", folder,
                        (unsigned long long)(time_ms / 1000), host, (long)getpid(), count++);
    }
    if (size <= 0 || (size_t)size >= sizeof path || !dp_figure_file_init(&file->file, path)) {
        return dp_why_set(why, DP_BADARG, "the folder's path is empty or too long");
    }
    return DP_OK;
}

void dp_event_file_close(dp_event_file *file)
{
    dp_figure_file_close(&file->file);
}
