#include "base/pack.h"

#include <msgpack.h>
#include <string.h>

#include "base/alloc.h"

/* ---- The pre-scan. Types as in the msgpack specification (Furuhashi 2013); extension types are
 * not spoken here. */

/* The payload and items that a head byte announces. */
struct head {
    uint64_t payload; /* Bytes of text, binary or number data after that. */
    uint64_t items;   /* Values inside a container. */
};

/* Big-endian number of size bytes. */
static uint64_t read_count(dp_reader *reader, size_t size)
{
    const dp_view bytes = dp_read_view(reader, size);
    uint64_t value = 0;

    for (size_t i = 0; i < bytes.size; i++) {
        value = value << 8 | bytes.data[i];
    }
    return value;
}

/* Forms of the bytes after the head bytes 0xc0 to 0xdf. */
typedef enum form_kind {
    FORM_REFUSED, /* 0xc1, which is never used, and the extension types. */
    FORM_FIXED,   /* That many bytes of number. */
    FORM_RAW,     /* A size of that many bytes, then as many bytes of text or binary. */
    FORM_ITEMS,   /* A count of that many bytes, then as many values. */
    FORM_PAIRS    /* The same, then twice as many values. */
} form_kind;

static const struct {
    form_kind kind;
    uint8_t bytes;
} forms[32] = {
    /* nil, false, true */
    [0x00] = {FORM_FIXED, 0},
    [0x02] = {FORM_FIXED, 0},
    [0x03] = {FORM_FIXED, 0},
    /* bin */
    [0x04] = {FORM_RAW, 1},
    [0x05] = {FORM_RAW, 2},
    [0x06] = {FORM_RAW, 4},
    /* float */
    [0x0a] = {FORM_FIXED, 4},
    [0x0b] = {FORM_FIXED, 8},
    /* unsigned */
    [0x0c] = {FORM_FIXED, 1},
    [0x0d] = {FORM_FIXED, 2},
    [0x0e] = {FORM_FIXED, 4},
    [0x0f] = {FORM_FIXED, 8},
    /* signed */
    [0x10] = {FORM_FIXED, 1},
    [0x11] = {FORM_FIXED, 2},
    [0x12] = {FORM_FIXED, 4},
    [0x13] = {FORM_FIXED, 8},
    /* str */
    [0x19] = {FORM_RAW, 1},
    [0x1a] = {FORM_RAW, 2},
    [0x1b] = {FORM_RAW, 4},
    /* array */
    [0x1c] = {FORM_ITEMS, 2},
    [0x1d] = {FORM_ITEMS, 4},
    /* map */
    [0x1e] = {FORM_PAIRS, 2},
    [0x1f] = {FORM_PAIRS, 4},
};

static bool read_form(dp_reader *reader, uint8_t byte, struct head *head)
{
    const uint8_t bytes = forms[byte & 0x1f].bytes;

    switch (forms[byte & 0x1f].kind) {
    case FORM_REFUSED:
        return false;
    case FORM_FIXED:
        head->payload = bytes;
        return true;
    case FORM_RAW:
        head->payload = read_count(reader, bytes);
        return true;
    case FORM_ITEMS:
        head->items = read_count(reader, bytes);
        return true;
    case FORM_PAIRS:
        head->items = 2 * read_count(reader, bytes);
        return true;
    }
    return false;
}

static bool read_head(dp_reader *reader, struct head *head)
{
    const uint8_t byte = dp_read_u8(reader);

    *head = (struct head){0};
    if (byte <= 0x7f || byte >= 0xe0) { /* small integers */
        return true;
    }
    if (byte <= 0x8f) { /* fixmap */
        head->items = 2 * (uint64_t)(byte & 0x0f);
        return true;
    }
    if (byte <= 0x9f) { /* fixarray */
        head->items = byte & 0x0f;
        return true;
    }
    if (byte <= 0xbf) { /* fixstr */
        head->payload = byte & 0x1f;
        return true;
    }
    return read_form(reader, byte, head);
}

dp_status dp_pack_check(dp_view bytes)
{
    dp_reader reader = dp_reader_of(bytes);
    uint64_t open[DP_PACK_DEPTH_MAX + 1] = {1}; /* Values still missing at each depth. */
    unsigned depth = 0;

    if (bytes.size > DP_PACK_BYTES_MAX) {
        return DP_TOOBIG;
    }
    for (unsigned nodes = 1;; nodes++) {
        struct head head;

        if (nodes > DP_PACK_NODES_MAX) {
            return DP_TOOBIG;
        }
        if (!read_head(&reader, &head) || reader.failed || head.payload > dp_reader_left(&reader) ||
            head.items > dp_reader_left(&reader)) {
            return DP_BADMSG;
        }
        (void)dp_read_view(&reader, (size_t)head.payload);
        open[depth]--;
        if (head.items > 0) {
            if (depth == DP_PACK_DEPTH_MAX) {
                return DP_TOOBIG;
            }
            open[++depth] = head.items;
        }
        while (open[depth] == 0) {
            if (depth == 0) {
                return dp_reader_finish(&reader);
            }
            depth--;
        }
    }
}

/* ---- Reading. A dp_pack_value is a msgpack_object under another name. */

struct dp_unpacked {
    msgpack_zone zone;
    msgpack_object root;
};

dp_status dp_unpack_open(dp_unpacked **unpacked, dp_view bytes)
{
    DP_TRY(dp_pack_check(bytes));
    dp_unpacked *const made = dp_alloc(1, sizeof *made);
    if (made == NULL) {
        return DP_NOMEM;
    }
    if (!msgpack_zone_init(&made->zone, MSGPACK_ZONE_CHUNK_SIZE)) {
        dp_free(made);
        return DP_NOMEM;
    }
    size_t offset = 0;
    const msgpack_unpack_return result =
        msgpack_unpack((const char *)bytes.data, bytes.size, &offset, &made->zone, &made->root);
    if (result != MSGPACK_UNPACK_SUCCESS || offset != bytes.size) {
        dp_unpack_close(made);
        return result == MSGPACK_UNPACK_NOMEM_ERROR ? DP_NOMEM : DP_BADMSG;
    }
    *unpacked = made;
    return DP_OK;
}

void dp_unpack_close(dp_unpacked *unpacked)
{
    if (unpacked != NULL) {
        msgpack_zone_destroy(&unpacked->zone);
        dp_free(unpacked);
    }
}

static const dp_pack_value *value_of(const msgpack_object *object)
{
    return (const dp_pack_value *)(const void *)object;
}

/* The object if it has this type, else NULL. */
static const msgpack_object *object_of(const dp_pack_value *value, msgpack_object_type type)
{
    const msgpack_object *const object = (const msgpack_object *)(const void *)value;

    return object != NULL && object->type == type ? object : NULL;
}

const dp_pack_value *dp_unpack_root(const dp_unpacked *unpacked)
{
    return value_of(&unpacked->root);
}

bool dp_pack_get_u64(const dp_pack_value *value, uint64_t *out)
{
    const msgpack_object *const object = object_of(value, MSGPACK_OBJECT_POSITIVE_INTEGER);

    if (object == NULL) {
        return false;
    }
    *out = object->via.u64;
    return true;
}

bool dp_pack_get_i64(const dp_pack_value *value, int64_t *out)
{
    const msgpack_object *const negative = object_of(value, MSGPACK_OBJECT_NEGATIVE_INTEGER);
    uint64_t positive = 0;

    if (negative != NULL) {
        *out = negative->via.i64;
        return true;
    }
    if (!dp_pack_get_u64(value, &positive) || positive > INT64_MAX) {
        return false;
    }
    *out = (int64_t)positive;
    return true;
}

bool dp_pack_get_f64(const dp_pack_value *value, double *out)
{
    const msgpack_object *object = object_of(value, MSGPACK_OBJECT_FLOAT64);
    int64_t negative = 0;
    uint64_t positive = 0;

    if (object == NULL) {
        object = object_of(value, MSGPACK_OBJECT_FLOAT32);
    }
    if (object != NULL) {
        *out = object->via.f64;
    } else if (dp_pack_get_u64(value, &positive)) {
        *out = (double)positive;
    } else if (dp_pack_get_i64(value, &negative)) {
        *out = (double)negative;
    } else {
        return false;
    }
    return true;
}

bool dp_pack_get_bool(const dp_pack_value *value, bool *out)
{
    const msgpack_object *const object = object_of(value, MSGPACK_OBJECT_BOOLEAN);

    if (object == NULL) {
        return false;
    }
    *out = object->via.boolean;
    return true;
}

bool dp_pack_get_text(const dp_pack_value *value, dp_view *out)
{
    const msgpack_object *const object = object_of(value, MSGPACK_OBJECT_STR);

    if (object == NULL) {
        return false;
    }
    *out = dp_view_of(object->via.str.ptr, object->via.str.size);
    return true;
}

bool dp_pack_get_bytes(const dp_pack_value *value, dp_view *out)
{
    const msgpack_object *const object = object_of(value, MSGPACK_OBJECT_BIN);

    if (object == NULL) {
        return false;
    }
    *out = dp_view_of(object->via.bin.ptr, object->via.bin.size);
    return true;
}

bool dp_pack_is_array(const dp_pack_value *value, uint32_t *count)
{
    const msgpack_object *const object = object_of(value, MSGPACK_OBJECT_ARRAY);

    if (object == NULL) {
        return false;
    }
    *count = object->via.array.size;
    return true;
}

const dp_pack_value *dp_pack_at(const dp_pack_value *array, uint32_t index)
{
    const msgpack_object *const object = object_of(array, MSGPACK_OBJECT_ARRAY);

    return object != NULL && index < object->via.array.size
               ? value_of(&object->via.array.ptr[index])
               : NULL;
}

bool dp_pack_is_map(const dp_pack_value *value, uint32_t *count)
{
    const msgpack_object *const object = object_of(value, MSGPACK_OBJECT_MAP);

    if (object == NULL) {
        return false;
    }
    *count = object->via.map.size;
    return true;
}

bool dp_pack_pair(const dp_pack_value *map, uint32_t index, const dp_pack_value **key,
                  const dp_pack_value **value)
{
    const msgpack_object *const object = object_of(map, MSGPACK_OBJECT_MAP);

    if (object == NULL || index >= object->via.map.size) {
        return false;
    }
    *key = value_of(&object->via.map.ptr[index].key);
    *value = value_of(&object->via.map.ptr[index].val);
    return true;
}

const dp_pack_value *dp_pack_key(const dp_pack_value *map, const char *key)
{
    const msgpack_object *const object = object_of(map, MSGPACK_OBJECT_MAP);
    const dp_view wanted = dp_view_text(key);

    for (uint32_t i = 0; object != NULL && i < object->via.map.size; i++) {
        const msgpack_object_kv *const pair = &object->via.map.ptr[i];
        dp_view name;

        if (dp_pack_get_text(value_of(&pair->key), &name) && dp_view_equal(name, wanted)) {
            return value_of(&pair->val);
        }
    }
    return NULL;
}

bool dp_pack_copy_text(const dp_pack_value *value, char *out, size_t out_size)
{
    dp_view text;

    if (!dp_pack_get_text(value, &text) || text.size >= out_size ||
        (text.size > 0 && memchr(text.data, '\0', text.size) != NULL)) {
        return false;
    }
    if (text.size > 0) {
        memcpy(out, text.data, text.size);
    }
    out[text.size] = '\0';
    return true;
}

/* ---- Writing. */

dp_packer dp_packer_of(dp_buf *buf)
{
    return (dp_packer){.buf = buf, .status = DP_OK};
}

/* msgpack-c writes through this. */
static int append(void *data, const char *bytes, size_t size)
{
    dp_packer *const packer = data;

    if (packer->status == DP_OK) {
        packer->status = dp_buf_append(packer->buf, dp_view_of(bytes, size));
    }
    return packer->status == DP_OK ? 0 : -1;
}

static msgpack_packer writer_of(dp_packer *packer)
{
    return (msgpack_packer){.data = packer, .callback = append};
}

void dp_pack_map(dp_packer *packer, uint32_t pairs)
{
    msgpack_packer writer = writer_of(packer);
    msgpack_pack_map(&writer, pairs);
}

void dp_pack_array(dp_packer *packer, uint32_t items)
{
    msgpack_packer writer = writer_of(packer);
    msgpack_pack_array(&writer, items);
}

void dp_pack_u64(dp_packer *packer, uint64_t value)
{
    msgpack_packer writer = writer_of(packer);
    msgpack_pack_uint64(&writer, value);
}

void dp_pack_i64(dp_packer *packer, int64_t value)
{
    msgpack_packer writer = writer_of(packer);
    msgpack_pack_int64(&writer, value);
}

void dp_pack_f64(dp_packer *packer, double value)
{
    msgpack_packer writer = writer_of(packer);
    msgpack_pack_double(&writer, value);
}

void dp_pack_bool(dp_packer *packer, bool value)
{
    msgpack_packer writer = writer_of(packer);

    if (value) {
        msgpack_pack_true(&writer);
    } else {
        msgpack_pack_false(&writer);
    }
}

void dp_pack_nil(dp_packer *packer)
{
    msgpack_packer writer = writer_of(packer);
    msgpack_pack_nil(&writer);
}

void dp_pack_text(dp_packer *packer, const char *text)
{
    msgpack_packer writer = writer_of(packer);
    const size_t size = strlen(text);

    if (size > DP_PACK_BYTES_MAX) {
        packer->status = packer->status == DP_OK ? DP_TOOBIG : packer->status;
        return;
    }
    msgpack_pack_str(&writer, size);
    msgpack_pack_str_body(&writer, text, size);
}

void dp_pack_bytes(dp_packer *packer, dp_view bytes)
{
    msgpack_packer writer = writer_of(packer);

    if (bytes.size > DP_PACK_BYTES_MAX) {
        packer->status = packer->status == DP_OK ? DP_TOOBIG : packer->status;
        return;
    }
    msgpack_pack_bin(&writer, bytes.size);
    msgpack_pack_bin_body(&writer, bytes.data, bytes.size);
}

dp_status dp_packer_finish(const dp_packer *packer)
{
    return packer->status;
}
