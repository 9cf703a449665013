/* Bytes: views that borrow, buffers that own, and a bounds-checked reader and writer. All integers
 * are little-endian. No call here is thread-safe on one object. */
#ifndef DP_BASE_BYTES_H
#define DP_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Borrowed bytes. data may be NULL only when size is 0. */
typedef struct dp_view {
    const uint8_t *data;
    size_t size;
} dp_view;

static inline dp_view dp_view_of(const void *data, size_t size)
{
    return (dp_view){.data = (const uint8_t *)data, .size = size};
}

bool dp_view_equal(dp_view a, dp_view b);
/* The bytes of a C string, without its NUL. */
dp_view dp_view_text(const char *text);

/* Owned bytes that grow up to max. A zeroed dp_buf with max set is a valid empty one. */
typedef struct dp_buf {
    uint8_t *data;
    size_t size;
    size_t capacity;
    size_t max; /* dp_buf_append beyond this gives DP_TOOBIG. */
} dp_buf;

void dp_buf_init(dp_buf *buf, size_t max);
void dp_buf_close(dp_buf *buf);
/* DP_TOOBIG: beyond max; DP_NOMEM. On failure the buffer is unchanged. */
DP_MUST dp_status dp_buf_append(dp_buf *buf, dp_view bytes);
/* Reserves size more bytes and lends a pointer to them until the next call; dp_buf.size stays until
 * dp_buf_commit. DP_TOOBIG, DP_NOMEM. */
DP_MUST dp_status dp_buf_reserve(dp_buf *buf, size_t size, uint8_t **room);
void dp_buf_commit(dp_buf *buf, size_t size);
void dp_buf_clear(dp_buf *buf);
/* Removes the first size bytes, size <= dp_buf.size. */
void dp_buf_consume(dp_buf *buf, size_t size);
static inline dp_view dp_buf_view(const dp_buf *buf)
{
    return dp_view_of(buf->data, buf->size);
}

/* A reader of little-endian values. After a short read every read gives zero and failed stays
 * set. */
typedef struct dp_reader {
    const uint8_t *at;
    const uint8_t *end;
    bool failed;
} dp_reader;

dp_reader dp_reader_of(dp_view bytes);
uint8_t dp_read_u8(dp_reader *reader);
uint16_t dp_read_u16(dp_reader *reader);
uint32_t dp_read_u32(dp_reader *reader);
uint64_t dp_read_u64(dp_reader *reader);
unsigned __int128 dp_read_u128(dp_reader *reader);
/* Copies size bytes to out, or zeroes out on a short read. */
void dp_read_bytes(dp_reader *reader, void *out, size_t size);
/* Lends size bytes of the input, or an empty view on a short read. */
dp_view dp_read_view(dp_reader *reader, size_t size);
size_t dp_reader_left(const dp_reader *reader);
/* DP_OK if all bytes were read and no read was short, else DP_BADMSG. */
DP_MUST dp_status dp_reader_finish(const dp_reader *reader);

/* A writer of little-endian values into the caller's memory. A value that does not fit sets full,
 * and nothing more is written. */
typedef struct dp_writer {
    uint8_t *data;
    size_t size;
    size_t capacity;
    bool full;
} dp_writer;

dp_writer dp_writer_of(void *data, size_t capacity);
void dp_write_u8(dp_writer *writer, uint8_t value);
void dp_write_u16(dp_writer *writer, uint16_t value);
void dp_write_u32(dp_writer *writer, uint32_t value);
void dp_write_u64(dp_writer *writer, uint64_t value);
void dp_write_u128(dp_writer *writer, unsigned __int128 value);
void dp_write_bytes(dp_writer *writer, const void *data, size_t size);
void dp_write_view(dp_writer *writer, dp_view bytes);
/* Lends the written bytes; DP_TOOBIG if they did not fit, then out is untouched. */
DP_MUST dp_status dp_writer_finish(const dp_writer *writer, dp_view *out);

/* Lower-case hexadecimal. text holds 2 * size + 1 characters. */
void dp_hex(dp_view bytes, char *text);
/* Reads exactly size bytes from 2 * size hexadecimal characters, else DP_BADMSG. */
DP_MUST dp_status dp_unhex(const char *text, uint8_t *out, size_t size);

#endif
