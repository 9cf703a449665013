#include "compute/unicode/charsmap.h"

#include <string.h>
#include <utf8proc.h>

#include "base/alloc.h"
#include "compute/unicode/utf8.h"

enum { CLUSTER_BYTES_MAX = 5 };

struct dp_charsmap {
    dp_buf bytes;
    dp_view texts;
    const uint8_t *units; /* u32 each */
    size_t n_units;
};

static int digit_of(uint8_t c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *const at = c == '\0' ? NULL : strchr(digits, c);
    return at == NULL ? -1 : (int)(at - digits);
}

/* RFC 4648, section 4, with padding. */
static dp_status read_base64(dp_view text, dp_buf *out)
{
    if (text.size % 4 != 0) {
        return DP_BADMSG;
    }
    for (size_t at = 0; at < text.size; at += 4) {
        uint32_t bits = 0;
        size_t padding = 0;
        for (size_t i = 0; i < 4; i++) {
            const uint8_t c = text.data[at + i];
            const int digit = digit_of(c);
            padding += c == '=';
            if ((digit < 0) != (padding > 0) || (padding > 0 && at + 4 < text.size)) {
                return DP_BADMSG;
            }
            bits = bits << 6 | (uint32_t)(digit < 0 ? 0 : digit);
        }
        const uint8_t bytes[3] = {(uint8_t)(bits >> 16), (uint8_t)(bits >> 8), (uint8_t)bits};
        if (padding > 2) {
            return DP_BADMSG;
        }
        DP_TRY(dp_buf_append(out, dp_view_of(bytes, 3 - padding)));
    }
    return DP_OK;
}

static dp_status read_parts(dp_charsmap *map, dp_view base64, dp_why *why)
{
    const dp_status status = read_base64(base64, &map->bytes);
    if (status == DP_NOMEM || status == DP_TOOBIG) {
        return status == DP_NOMEM ? status
                                  : dp_why_set(why, status, "it is larger than %d MiB",
                                               DP_CHARSMAP_BYTES_MAX >> 20);
    }
    if (status != DP_OK) {
        return dp_why_set(why, status, "it is not base64");
    }
    dp_reader r = dp_reader_of(dp_buf_view(&map->bytes));
    const uint32_t size = dp_read_u32(&r);
    map->units = dp_read_view(&r, size).data;
    map->n_units = size / 4;
    map->texts = dp_read_view(&r, dp_reader_left(&r));
    if (dp_reader_finish(&r) != DP_OK || map->n_units == 0 || size % 4 != 0 ||
        dp_utf8_bad_at(map->texts) != map->texts.size) {
        return dp_why_set(why, DP_BADMSG, "its sizes or its texts are damaged");
    }
    return DP_OK;
}

dp_status dp_charsmap_open(dp_charsmap **out, dp_view base64, dp_why *why)
{
    dp_charsmap *const map = dp_alloc(1, sizeof *map);
    if (map == NULL) {
        return DP_NOMEM;
    }
    dp_buf_init(&map->bytes, DP_CHARSMAP_BYTES_MAX);
    const dp_status status = read_parts(map, base64, why);
    if (status != DP_OK) {
        dp_charsmap_close(map);
        return status;
    }
    *out = map;
    return DP_OK;
}

void dp_charsmap_close(dp_charsmap *map)
{
    if (map == NULL) {
        return;
    }
    dp_buf_close(&map->bytes);
    dp_free(map);
}

/* False: outside. */
static bool unit_at(const dp_charsmap *map, size_t at, uint32_t *unit)
{
    if (at >= map->n_units) {
        return false;
    }
    const uint8_t *const b = map->units + 4 * at;
    *unit = b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    return true;
}

static size_t offset_of(uint32_t unit)
{
    return (size_t)(unit >> 10) << ((unit & 1U << 9) >> 6);
}

/* The text at a place; false: damaged. */
static bool text_at(const dp_charsmap *map, size_t at, dp_view *text)
{
    if (at > map->texts.size || (at < map->texts.size && (map->texts.data[at] & 0xc0U) == 0x80U)) {
        return false;
    }
    const size_t left = map->texts.size - at;
    const uint8_t *const start = map->texts.data + at;
    const uint8_t *const end = left == 0 ? NULL : memchr(start, 0, left);
    *text = dp_view_of(start, end == NULL ? left : (size_t)(end - start));
    return true;
}

/* The replacement by the shortest rule that key begins with. */
static bool find_rule(const dp_charsmap *map, dp_view key, dp_view *text)
{
    uint32_t unit;
    size_t at = 0;
    if (!unit_at(map, 0, &unit)) {
        return false;
    }
    at ^= offset_of(unit);
    for (size_t i = 0; i < key.size && key.data[i] != 0; i++) {
        at ^= key.data[i];
        if (!unit_at(map, at, &unit) || (unit & (1U << 31 | 0xffU)) != key.data[i]) {
            return false;
        }
        at ^= offset_of(unit);
        if ((unit >> 8 & 1U) != 0) {
            return unit_at(map, at, &unit) && text_at(map, unit & 0x7fffffffU, text);
        }
    }
    return false;
}

/* Bytes of the grapheme cluster (Unicode Standard Annex 29) at at. */
static size_t cluster_size(dp_view text, size_t at)
{
    utf8proc_int32_t state = 0;
    size_t size;
    uint32_t code = dp_utf8_char(text, at, &size);
    size_t end = at + size;
    while (end < text.size) {
        const uint32_t next = dp_utf8_char(text, end, &size);
        if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)code, (utf8proc_int32_t)next,
                                             &state)) {
            break;
        }
        code = next;
        end += size;
    }
    return end - at;
}

static dp_status append_cluster(const dp_charsmap *map, dp_view cluster, dp_buf *out)
{
    dp_view text;
    if (cluster.size <= CLUSTER_BYTES_MAX && find_rule(map, cluster, &text)) {
        return dp_buf_append(out, text);
    }
    for (size_t at = 0; at < cluster.size;) {
        size_t size;
        (void)dp_utf8_char(cluster, at, &size);
        const dp_view one = dp_view_of(cluster.data + at, size);
        DP_TRY(dp_buf_append(out, find_rule(map, one, &text) ? text : one));
        at += size;
    }
    return DP_OK;
}

dp_status dp_charsmap_append(const dp_charsmap *map, dp_view text, dp_buf *out)
{
    for (size_t at = 0; at < text.size;) {
        const size_t size = cluster_size(text, at);
        DP_TRY(append_cluster(map, dp_view_of(text.data + at, size), out));
        at += size;
    }
    return DP_OK;
}
