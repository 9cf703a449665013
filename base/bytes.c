#include "base/bytes.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

enum { BUF_BYTES_FIRST = 256 };

bool dp_view_equal(dp_view a, dp_view b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

dp_view dp_view_text(const char *text)
{
    return dp_view_of(text, strlen(text));
}

void dp_buf_init(dp_buf *buf, size_t max)
{
    *buf = (dp_buf){.max = max};
}

void dp_buf_close(dp_buf *buf)
{
    dp_free(buf->data);
    *buf = (dp_buf){.max = buf->max};
}

dp_status dp_buf_reserve(dp_buf *buf, size_t size, uint8_t **room)
{
    if (buf->size > buf->max || size > buf->max - buf->size) {
        return DP_TOOBIG;
    }
    const size_t needed = buf->size + size;
    if (needed > buf->capacity || buf->data == NULL) {
        size_t capacity = buf->capacity > BUF_BYTES_FIRST ? buf->capacity : BUF_BYTES_FIRST;

        while (capacity < needed) {
            capacity = capacity > buf->max / 2 ? buf->max : capacity * 2;
        }
        capacity = capacity < buf->max ? capacity : buf->max;
        uint8_t *const data = dp_realloc(buf->data, capacity);
        if (data == NULL) {
            return DP_NOMEM;
        }
        buf->data = data;
        buf->capacity = capacity;
    }
    *room = buf->data + buf->size;
    return DP_OK;
}

void dp_buf_commit(dp_buf *buf, size_t size)
{
    dp_assert(size <= buf->capacity - buf->size);
    buf->size += size;
}

dp_status dp_buf_append(dp_buf *buf, dp_view bytes)
{
    uint8_t *room = NULL;

    DP_TRY(dp_buf_reserve(buf, bytes.size, &room));
    if (bytes.size > 0) {
        memcpy(room, bytes.data, bytes.size);
    }
    dp_buf_commit(buf, bytes.size);
    return DP_OK;
}

void dp_buf_clear(dp_buf *buf)
{
    buf->size = 0;
}

void dp_buf_consume(dp_buf *buf, size_t size)
{
    dp_assert(size <= buf->size);
    if (size > 0) {
        memmove(buf->data, buf->data + size, buf->size - size);
        buf->size -= size;
    }
}

dp_reader dp_reader_of(dp_view bytes)
{
    return (dp_reader){
        .at = bytes.data,
        .end = bytes.size == 0 ? bytes.data : bytes.data + bytes.size,
    };
}

size_t dp_reader_left(const dp_reader *reader)
{
    return reader->failed ? 0 : (size_t)(reader->end - reader->at);
}

dp_view dp_read_view(dp_reader *reader, size_t size)
{
    if (size > dp_reader_left(reader)) {
        reader->failed = true;
    }
    if (reader->failed || size == 0) {
        return (dp_view){0};
    }
    const dp_view taken = dp_view_of(reader->at, size);
    reader->at += size;
    return taken;
}

/* Little-endian value of 1 to 16 bytes; zero on a short read. */
static unsigned __int128 read_number(dp_reader *reader, size_t size)
{
    const dp_view bytes = dp_read_view(reader, size);
    unsigned __int128 value = 0;

    for (size_t i = bytes.size; i > 0; i--) {
        value = value << 8 | bytes.data[i - 1];
    }
    return value;
}

uint8_t dp_read_u8(dp_reader *reader)
{
    return (uint8_t)read_number(reader, sizeof(uint8_t));
}

uint16_t dp_read_u16(dp_reader *reader)
{
    return (uint16_t)read_number(reader, sizeof(uint16_t));
}

uint32_t dp_read_u32(dp_reader *reader)
{
    return (uint32_t)read_number(reader, sizeof(uint32_t));
}

uint64_t dp_read_u64(dp_reader *reader)
{
    return (uint64_t)read_number(reader, sizeof(uint64_t));
}

unsigned __int128 dp_read_u128(dp_reader *reader)
{
    return read_number(reader, sizeof(unsigned __int128));
}

void dp_read_bytes(dp_reader *reader, void *out, size_t size)
{
    const dp_view bytes = dp_read_view(reader, size);

    if (bytes.size == size && size > 0) {
        memcpy(out, bytes.data, size);
    } else if (size > 0) {
        memset(out, 0, size);
    }
}

dp_status dp_reader_finish(const dp_reader *reader)
{
    return !reader->failed && reader->at == reader->end ? DP_OK : DP_BADMSG;
}

dp_writer dp_writer_of(void *data, size_t capacity)
{
    return (dp_writer){.data = data, .capacity = capacity};
}

void dp_write_bytes(dp_writer *writer, const void *data, size_t size)
{
    if (size > writer->capacity - writer->size) {
        writer->full = true;
    }
    if (writer->full || size == 0) {
        return;
    }
    memcpy(writer->data + writer->size, data, size);
    writer->size += size;
}

static void write_number(dp_writer *writer, unsigned __int128 value, size_t size)
{
    uint8_t bytes[sizeof value];

    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)(value >> (8 * i));
    }
    dp_write_bytes(writer, bytes, size);
}

void dp_write_u8(dp_writer *writer, uint8_t value)
{
    write_number(writer, value, sizeof value);
}

void dp_write_u16(dp_writer *writer, uint16_t value)
{
    write_number(writer, value, sizeof value);
}

void dp_write_u32(dp_writer *writer, uint32_t value)
{
    write_number(writer, value, sizeof value);
}

void dp_write_u64(dp_writer *writer, uint64_t value)
{
    write_number(writer, value, sizeof value);
}

void dp_write_u128(dp_writer *writer, unsigned __int128 value)
{
    write_number(writer, value, sizeof value);
}

void dp_write_view(dp_writer *writer, dp_view bytes)
{
    dp_write_bytes(writer, bytes.data, bytes.size);
}

dp_status dp_writer_finish(const dp_writer *writer, dp_view *out)
{
    if (writer->full) {
        return DP_TOOBIG;
    }
    *out = dp_view_of(writer->data, writer->size);
    return DP_OK;
}

void dp_hex(dp_view bytes, char *text)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < bytes.size; i++) {
        text[2 * i] = digits[bytes.data[i] >> 4];
        text[2 * i + 1] = digits[bytes.data[i] & 15];
    }
    text[2 * bytes.size] = '\0';
}

/* 0 to 15, or 16 for anything that is no hexadecimal digit. */
static unsigned digit_value(char c)
{
    if (c >= '0' && c <= '9') {
        return (unsigned)(c - '0');
    }
    if (c >= 'a' && c <= 'f') {
        return (unsigned)(c - 'a') + 10;
    }
    return c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10 : 16;
}

dp_status dp_unhex(const char *text, uint8_t *out, size_t size)
{
    size_t length = 0;

    while (digit_value(text[length]) < 16) {
        if (length == 2 * size) {
            return DP_BADMSG;
        }
        length++;
    }
    if (text[length] != '\0' || length != 2 * size) {
        return DP_BADMSG;
    }
    for (size_t i = 0; i < size; i++) {
        out[i] = (uint8_t)(digit_value(text[2 * i]) << 4 | digit_value(text[2 * i + 1]));
    }
    return DP_OK;
}
