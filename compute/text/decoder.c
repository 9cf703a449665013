#include "compute/text/decoder.h"

#include <string.h>

#include "base/alloc.h"
#include "compute/unicode/utf8.h"

/* Texts one after the other. */
typedef struct texts {
    dp_buf bytes;
    size_t *ends; /* of each */
    size_t count;
} texts;

static void texts_close(texts *t)
{
    dp_buf_close(&t->bytes);
    dp_free(t->ends);
}

static dp_view text_at(const texts *t, size_t index)
{
    const size_t begin = index == 0 ? 0 : t->ends[index - 1];
    return dp_view_of(t->bytes.data + begin, t->ends[index] - begin);
}

/* Ends the text that was appended to bytes. */
static void end_text(texts *t)
{
    t->ends[t->count] = t->bytes.size;
    t->count++;
}

typedef dp_status apply_step(const dp_decoder_step *step, const texts *in, texts *out);

static dp_status apply_nothing(const dp_decoder_step *step, const texts *in, texts *out)
{
    (void)step;
    for (size_t i = 0; i < in->count; i++) {
        DP_TRY(dp_buf_append(&out->bytes, text_at(in, i)));
        end_text(out);
    }
    return DP_OK;
}

static dp_status replace(dp_view text, dp_view from, dp_view to, dp_buf *out)
{
    size_t at = 0;
    while (at < text.size) {
        const uint8_t *const found = memmem(text.data + at, text.size - at, from.data, from.size);
        const size_t end = found == NULL ? text.size : (size_t)(found - text.data);
        DP_TRY(dp_buf_append(out, dp_view_of(text.data + at, end - at)));
        if (found != NULL) {
            DP_TRY(dp_buf_append(out, to));
        }
        at = end + (found != NULL ? from.size : 0);
    }
    return DP_OK;
}

static dp_view from_of(const dp_decoder_step *step)
{
    return dp_view_of(step->from, step->from_bytes);
}

static dp_view to_of(const dp_decoder_step *step)
{
    return dp_view_of(step->to, step->to_bytes);
}

static dp_status apply_replace(const dp_decoder_step *step, const texts *in, texts *out)
{
    for (size_t i = 0; i < in->count; i++) {
        DP_TRY(replace(text_at(in, i), from_of(step), to_of(step), &out->bytes));
        end_text(out);
    }
    return DP_OK;
}

static dp_status apply_metaspace(const dp_decoder_step *step, const texts *in, texts *out)
{
    for (size_t i = 0; i < in->count; i++) {
        const dp_view to = i == 0 && step->drops ? dp_view_of(NULL, 0) : dp_view_text(" ");
        DP_TRY(replace(text_at(in, i), from_of(step), to, &out->bytes));
        end_text(out);
    }
    return DP_OK;
}

static int hex_of(uint8_t c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    const uint8_t low = c | 0x20U;
    return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

bool dp_decoder_byte(dp_view token, uint8_t *byte)
{
    if (token.size != 6 || memcmp(token.data, "<0x", 3) != 0 || token.data[5] != '>' ||
        hex_of(token.data[3]) < 0 || hex_of(token.data[4]) < 0) {
        return false;
    }
    *byte = (uint8_t)(16 * hex_of(token.data[3]) + hex_of(token.data[4]));
    return true;
}

static dp_status append_bytes(const uint8_t *bytes, size_t count, texts *out)
{
    if (count == 0) {
        return DP_OK;
    }
    const dp_view view = dp_view_of(bytes, count);
    if (dp_utf8_bad_at(view) == count) {
        DP_TRY(dp_buf_append(&out->bytes, view));
        end_text(out);
        return DP_OK;
    }
    for (size_t i = 0; i < count; i++) {
        DP_TRY(dp_buf_append(&out->bytes, dp_view_text("\xef\xbf\xbd")));
        end_text(out);
    }
    return DP_OK;
}

static dp_status apply_byte_fallback(const dp_decoder_step *step, const texts *in, texts *out)
{
    dp_buf run; /* bytes that follow each other */
    dp_status status = DP_OK;
    (void)step;
    dp_buf_init(&run, in->count);
    for (size_t i = 0; i < in->count && status == DP_OK; i++) {
        uint8_t byte;
        if (dp_decoder_byte(text_at(in, i), &byte)) {
            status = dp_buf_append(&run, dp_view_of(&byte, 1));
            continue;
        }
        status = append_bytes(run.data, run.size, out);
        dp_buf_clear(&run);
        if (status == DP_OK) {
            status = dp_buf_append(&out->bytes, text_at(in, i));
            end_text(out);
        }
    }
    if (status == DP_OK) {
        status = append_bytes(run.data, run.size, out);
    }
    dp_buf_close(&run);
    return status;
}

static dp_status apply_fuse(const dp_decoder_step *step, const texts *in, texts *out)
{
    (void)step;
    DP_TRY(dp_buf_append(&out->bytes, dp_buf_view(&in->bytes)));
    end_text(out);
    return DP_OK;
}

static dp_status apply_strip(const dp_decoder_step *step, const texts *in, texts *out)
{
    const dp_view mark = from_of(step);
    for (size_t i = 0; i < in->count; i++) {
        dp_view t = text_at(in, i);
        for (uint32_t j = 0;
             j < step->start && t.size >= mark.size && memcmp(t.data, mark.data, mark.size) == 0;
             j++) {
            t = dp_view_of(t.data + mark.size, t.size - mark.size);
        }
        for (uint32_t j = 0; j < step->stop && t.size >= mark.size &&
                             memcmp(t.data + t.size - mark.size, mark.data, mark.size) == 0;
             j++) {
            t.size -= mark.size;
        }
        DP_TRY(dp_buf_append(&out->bytes, t));
        end_text(out);
    }
    return DP_OK;
}

static const struct {
    const char *type; /* in tokenizer.json */
    apply_step *apply;
} kinds[DP_DECODER_KINDS] = {
    [DP_DECODER_BYTE_LEVEL] = {"ByteLevel", apply_nothing},
    [DP_DECODER_REPLACE] = {"Replace", apply_replace},
    [DP_DECODER_BYTE_FALLBACK] = {"ByteFallback", apply_byte_fallback},
    [DP_DECODER_FUSE] = {"Fuse", apply_fuse},
    [DP_DECODER_STRIP] = {"Strip", apply_strip},
    [DP_DECODER_METASPACE] = {"Metaspace", apply_metaspace},
};

bool dp_decoder_kind_of(const char *type, dp_decoder_kind *kind)
{
    for (unsigned i = 0; i < DP_DECODER_KINDS; i++) {
        if (strcmp(kinds[i].type, type) == 0) {
            *kind = (dp_decoder_kind)i;
            return true;
        }
    }
    return false;
}

static size_t times_in(dp_view text, dp_view part)
{
    size_t n = 0;
    for (size_t at = 0; at + part.size <= text.size;) {
        const bool here = memcmp(text.data + at, part.data, part.size) == 0;
        n += here;
        at += here ? part.size : 1;
    }
    return n;
}

size_t dp_decoder_text_bytes(const dp_decoder *decoder, dp_view token)
{
    size_t size = token.size;
    uint8_t byte;
    for (unsigned i = 0; i < decoder->count; i++) {
        const dp_decoder_step *const s = &decoder->items[i];
        if (s->kind == DP_DECODER_BYTE_FALLBACK && dp_decoder_byte(token, &byte)) {
            return 1;
        }
        if (s->kind == DP_DECODER_REPLACE || s->kind == DP_DECODER_METASPACE) {
            const size_t to = s->kind == DP_DECODER_METASPACE ? 1 : s->to_bytes;
            const size_t n = times_in(token, from_of(s));
            const size_t taken = n * s->from_bytes;
            size = size + n * to > taken ? size + n * to - taken : 0;
        }
    }
    return size;
}

/* Room for as many texts as there are tokens: no step makes more. */
static dp_status open_texts(texts *t, size_t count, size_t bytes_max)
{
    dp_buf_init(&t->bytes, bytes_max);
    t->ends = dp_alloc(count + 1, sizeof *t->ends);
    return t->ends == NULL ? DP_NOMEM : DP_OK;
}

static dp_status apply_all(const dp_decoder *decoder, texts two[2], unsigned *last)
{
    unsigned now = 0;
    for (unsigned i = 0; i < decoder->count; i++) {
        texts *const out = &two[1 - now];
        dp_buf_clear(&out->bytes);
        out->count = 0;
        DP_TRY(kinds[decoder->items[i].kind].apply(&decoder->items[i], &two[now], out));
        now = 1 - now;
    }
    *last = now;
    return DP_OK;
}

/* Without steps: the tokens with a space between. */
static dp_status gather(const dp_decoder *decoder, const dp_view *tokens, size_t count, texts *out)
{
    for (size_t i = 0; i < count; i++) {
        if (decoder->count == 0 && i > 0) {
            DP_TRY(dp_buf_append(&out->bytes, dp_view_text(" ")));
        }
        DP_TRY(dp_buf_append(&out->bytes, tokens[i]));
        end_text(out);
    }
    return DP_OK;
}

dp_status dp_decoder_append(const dp_decoder *decoder, const dp_view *tokens, size_t count,
                            dp_buf *out)
{
    texts two[2] = {{.count = 0}, {.count = 0}};
    unsigned last = 0;
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += tokens[i].size + 1;
    }
    dp_status status = open_texts(&two[0], count, DP_DECODER_GROWTH_MAX * bytes);
    if (status == DP_OK) {
        status = open_texts(&two[1], count, DP_DECODER_GROWTH_MAX * bytes);
    }
    if (status == DP_OK) {
        status = gather(decoder, tokens, count, &two[0]);
    }
    if (status == DP_OK) {
        status = apply_all(decoder, two, &last);
    }
    if (status == DP_OK) {
        status = dp_buf_append(out, dp_buf_view(&two[last].bytes));
    }
    texts_close(&two[0]);
    texts_close(&two[1]);
    return status;
}
