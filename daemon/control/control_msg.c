#include "daemon/control/control_msg.h"

#include <string.h>

enum { HEADER_BYTES = 4 };

static uint32_t frame_bytes(dp_view bytes)
{
    dp_reader reader = dp_reader_of(bytes);
    return dp_read_u32(&reader);
}

dp_status dp_control_frame_size(dp_view bytes, size_t *size)
{
    if (bytes.size < HEADER_BYTES) {
        *size = 0;
        return DP_OK;
    }
    const uint32_t body = frame_bytes(bytes);
    if (body > DP_CONTROL_FRAME_MAX) {
        return DP_TOOBIG;
    }
    *size = bytes.size < HEADER_BYTES + (size_t)body ? 0 : HEADER_BYTES + (size_t)body;
    return DP_OK;
}

static dp_status read_frame(dp_control_frame *frame)
{
    const dp_pack_value *root = dp_unpack_root(frame->unpacked);
    uint32_t count = 0;
    uint64_t kind = 0;
    if (!dp_pack_is_array(root, &count) || count < 3 ||
        !dp_pack_get_u64(dp_pack_at(root, 0), &kind) ||
        !dp_pack_get_u64(dp_pack_at(root, 1), &frame->id)) {
        return DP_BADMSG;
    }
    switch (kind) {
    case DP_CONTROL_REQUEST:
        frame->kind = DP_CONTROL_REQUEST;
        frame->body = dp_pack_at(root, 3);
        return count == 4 &&
                       dp_pack_copy_text(dp_pack_at(root, 2), frame->method, sizeof frame->method)
                   ? DP_OK
                   : DP_BADMSG;
    case DP_CONTROL_REPLY: {
        frame->kind = DP_CONTROL_REPLY;
        dp_view code;
        const dp_pack_value *error = dp_pack_at(root, 2);
        const bool failed = dp_pack_get_text(dp_pack_key(error, "code"), &code);
        frame->error = failed ? error : NULL;
        frame->body = failed ? NULL : dp_pack_at(root, 3);
        return count == 4 ? DP_OK : DP_BADMSG;
    }
    case DP_CONTROL_NOTICE:
        frame->kind = DP_CONTROL_NOTICE;
        frame->body = dp_pack_at(root, 2);
        return DP_OK;
    default:
        return DP_BADMSG;
    }
}

dp_status dp_control_frame_open(dp_control_frame *frame, dp_view bytes)
{
    *frame = (dp_control_frame){0};
    if (bytes.size < HEADER_BYTES || bytes.size != HEADER_BYTES + (size_t)frame_bytes(bytes)) {
        return DP_BADMSG;
    }
    DP_TRY(dp_unpack_open(&frame->unpacked,
                          dp_view_of(bytes.data + HEADER_BYTES, bytes.size - HEADER_BYTES)));
    const dp_status status = read_frame(frame);
    if (status != DP_OK) {
        dp_control_frame_close(frame);
    }
    return status;
}

void dp_control_frame_close(dp_control_frame *frame)
{
    dp_unpack_close(frame->unpacked);
    *frame = (dp_control_frame){0};
}

static void copy_key(const dp_pack_value *map, const char *key, char *out, size_t size)
{
    if (!dp_pack_copy_text(dp_pack_key(map, key), out, size)) {
        out[0] = '\0';
    }
}

void dp_control_error_read(const dp_pack_value *map, dp_control_error *error)
{
    *error = (dp_control_error){.exit = 70};
    copy_key(map, "code", error->code, sizeof error->code);
    copy_key(map, "what", error->what, sizeof error->what);
    copy_key(map, "why", error->why, sizeof error->why);
    copy_key(map, "fix", error->fix, sizeof error->fix);
    uint64_t status = 0;
    if (dp_pack_get_u64(dp_pack_key(map, "exit"), &status) && status <= 255) {
        error->exit = (int)status;
    }
}

dp_packer dp_control_begin(dp_buf *out, dp_control_kind kind, uint64_t id, const char *method,
                           size_t *start)
{
    static const uint8_t no_size[HEADER_BYTES] = {0};
    *start = out->size;
    dp_packer packer = dp_packer_of(out);
    packer.status = dp_buf_append(out, dp_view_of(no_size, sizeof no_size));
    dp_pack_array(&packer, kind == DP_CONTROL_NOTICE ? 3 : 4);
    dp_pack_u64(&packer, (uint64_t)kind);
    dp_pack_u64(&packer, id);
    if (kind == DP_CONTROL_REQUEST) {
        dp_pack_text(&packer, method);
    } else if (kind == DP_CONTROL_REPLY) {
        dp_pack_nil(&packer);
    }
    return packer;
}

dp_status dp_control_end(dp_buf *out, size_t start, const dp_packer *packer)
{
    dp_status status = dp_packer_finish(packer);
    const size_t body = out->size - start - (status == DP_OK ? HEADER_BYTES : 0);
    if (status == DP_OK && body > DP_CONTROL_FRAME_MAX) {
        status = DP_TOOBIG;
    }
    if (status != DP_OK) {
        out->size = start; /* A part of a frame must never be sent. */
        return status;
    }
    dp_writer writer = dp_writer_of(out->data + start, HEADER_BYTES);
    dp_write_u32(&writer, (uint32_t)body);
    return DP_OK;
}

dp_status dp_control_write_error(dp_buf *out, uint64_t id, const dp_control_error *error)
{
    static const uint8_t no_size[HEADER_BYTES] = {0};
    const size_t start = out->size;
    dp_packer packer = dp_packer_of(out);
    packer.status = dp_buf_append(out, dp_view_of(no_size, sizeof no_size));
    dp_pack_array(&packer, 4);
    dp_pack_u64(&packer, DP_CONTROL_REPLY);
    dp_pack_u64(&packer, id);
    dp_pack_map(&packer, 5);
    dp_pack_text(&packer, "code");
    dp_pack_text(&packer, error->code);
    dp_pack_text(&packer, "what");
    dp_pack_text(&packer, error->what);
    dp_pack_text(&packer, "why");
    dp_pack_text(&packer, error->why);
    dp_pack_text(&packer, "fix");
    dp_pack_text(&packer, error->fix);
    dp_pack_text(&packer, "exit");
    dp_pack_u64(&packer, (uint64_t)error->exit);
    dp_pack_nil(&packer);
    return dp_control_end(out, start, &packer);
}
