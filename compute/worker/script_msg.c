#include "compute/worker/script_msg.h"

#include <stddef.h>
#include <string.h>

_Static_assert(offsetof(dp_script_header, round) == 8 && offsetof(dp_script_header, theta) == 24 &&
                   offsetof(dp_script_header, rate) == 32 &&
                   offsetof(dp_script_header, steps) == 64 &&
                   offsetof(dp_script_header, loss) == 80,
               "docs/TRAINER.md draws the header");
_Static_assert(8 + 8 * (int)DP_SCRIPT_DRAW_MAX <= (int)DP_SCRIPT_PACKET_MAX, "indices fit");

static double f64_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static bool is_allowed(const dp_script_ask *ask)
{
    switch ((int)ask->kind) {
    case DP_SCRIPT_HELLO:
    case DP_SCRIPT_LOOK:
    case DP_SCRIPT_READ:
        return true;
    case DP_SCRIPT_DONE:
        return ask->what >= DP_SCRIPT_ASSIGN && ask->what <= DP_SCRIPT_COPY;
    case DP_SCRIPT_DRAW:
        return ask->n >= 1 && ask->n <= DP_SCRIPT_DRAW_MAX;
    default:
        return false;
    }
}

dp_status dp_script_read(dp_view packet, dp_script_ask *ask)
{
    dp_reader r = dp_reader_of(packet);
    dp_script_ask read = {.kind = (dp_script_kind)dp_read_u32(&r)};
    const uint32_t number = dp_read_u32(&r);
    if (read.kind == DP_SCRIPT_DONE) {
        read.what = (dp_script_what)number;
        read.steps = dp_read_u64(&r);
        read.samples = dp_read_u64(&r);
        read.loss = f64_of(dp_read_u64(&r));
    }
    read.version = read.kind == DP_SCRIPT_HELLO ? number : 0;
    read.flags = read.kind == DP_SCRIPT_LOOK ? number : 0;
    read.n = read.kind == DP_SCRIPT_DRAW || read.kind == DP_SCRIPT_READ ? number : 0;
    DP_TRY(dp_reader_finish(&r));
    if (!is_allowed(&read)) {
        return DP_BADMSG;
    }
    *ask = read;
    return DP_OK;
}

void dp_script_write_welcome(dp_writer *packet, const dp_script_welcome *welcome)
{
    dp_write_u32(packet, DP_SCRIPT_WELCOME);
    dp_write_u32(packet, DP_SCRIPT_VERSION);
    dp_write_u64(packet, welcome->elements);
    dp_write_u64(packet, welcome->samples);
    dp_write_u64(packet, welcome->unit);
    dp_write_u64(packet, welcome->tokens_total);
    dp_write_u64(packet, DP_SCRIPT_HEADER_BYTES);
    dp_write_u64(packet, welcome->bytes);
}

void dp_script_write_refused(dp_writer *packet, dp_script_refusal code, const char *text)
{
    const dp_view all = dp_view_text(text);
    dp_write_u32(packet, DP_SCRIPT_REFUSED);
    dp_write_u32(packet, code);
    const size_t room = packet->capacity - packet->size;
    dp_write_view(packet, dp_view_of(all.data, all.size < room ? all.size : room));
}

void dp_script_write_do(dp_writer *packet, dp_script_what what, uint64_t round, uint64_t tokens)
{
    dp_write_u32(packet, DP_SCRIPT_DO);
    dp_write_u32(packet, what);
    dp_write_u64(packet, round);
    dp_write_u64(packet, tokens);
}

void dp_script_write_drawn(dp_writer *packet, const uint64_t *indices, uint32_t n)
{
    dp_write_u32(packet, DP_SCRIPT_DRAWN);
    dp_write_u32(packet, n);
    for (uint32_t i = 0; i < n; i++) {
        dp_write_u64(packet, indices[i]);
    }
}

void dp_script_write_given(dp_writer *packet, uint32_t file, uint64_t bytes)
{
    dp_write_u32(packet, DP_SCRIPT_GIVEN);
    dp_write_u32(packet, file);
    dp_write_u64(packet, bytes);
}
