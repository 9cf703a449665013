#include "daemon/host/issued.h"

#include <string.h>

#include "base/alloc.h"

/* Row "invites" of kv, little-endian: u16 version 1 | 32 run | u16 n, at most 512 | n times {16 id
 * | u16 uses | u32 capabilities | u64 valid from | u64 valid until, unix ms}. */
enum {
    ISSUED_VERSION = 1,
    ITEM_BYTES = DP_INVITE_ID_BYTES + 2 + 4 + 8 + 8,
    ROW_BYTES_MAX = 2 + 32 + 2 + DP_ISSUED_MAX * ITEM_BYTES
};

static const char key[] = "invites";

static dp_status read_list(dp_view bytes, const dp_run_id *run, dp_issued_list *list)
{
    dp_reader reader = dp_reader_of(bytes);
    dp_run_id of;

    if (dp_read_u16(&reader) != ISSUED_VERSION) {
        return reader.failed ? DP_CORRUPT : DP_VERSION;
    }
    dp_read_bytes(&reader, of.bytes, sizeof of.bytes);
    const uint32_t n = dp_read_u16(&reader);
    if (reader.failed || n > DP_ISSUED_MAX) {
        return DP_CORRUPT;
    }
    for (uint32_t i = 0; i < n; i++) {
        dp_issued *item = &list->items[i];
        dp_read_bytes(&reader, item->id.bytes, sizeof item->id.bytes);
        item->uses = dp_read_u16(&reader);
        item->caps = dp_read_u32(&reader);
        item->from_ms = dp_read_u64(&reader);
        item->until_ms = dp_read_u64(&reader);
    }
    if (dp_reader_finish(&reader) != DP_OK) {
        return DP_CORRUPT;
    }
    list->n = dp_hash_equal(&of, run) ? n : 0;
    return DP_OK;
}

dp_status dp_issued_load(dp_store *store, const dp_run_id *run, dp_issued_list *list)
{
    dp_buf buf;

    dp_buf_init(&buf, ROW_BYTES_MAX);
    list->n = 0;
    dp_status status = dp_store_get(store, key, &buf);
    if (status == DP_OK) {
        status = read_list(dp_buf_view(&buf), run, list);
    } else if (status == DP_NOTFOUND) {
        status = DP_OK;
    } else if (status == DP_TOOBIG) {
        status = DP_CORRUPT;
    }
    dp_buf_close(&buf);
    return status;
}

static dp_status save(dp_store *store, const dp_run_id *run, const dp_issued_list *list)
{
    uint8_t *room = dp_alloc(1, ROW_BYTES_MAX);
    if (room == NULL) {
        return DP_NOMEM;
    }
    dp_writer writer = dp_writer_of(room, ROW_BYTES_MAX);
    dp_view bytes;

    dp_write_u16(&writer, ISSUED_VERSION);
    dp_write_bytes(&writer, run->bytes, sizeof run->bytes);
    dp_write_u16(&writer, (uint16_t)list->n);
    for (uint32_t i = 0; i < list->n; i++) {
        const dp_issued *item = &list->items[i];
        dp_write_bytes(&writer, item->id.bytes, sizeof item->id.bytes);
        dp_write_u16(&writer, item->uses);
        dp_write_u32(&writer, item->caps);
        dp_write_u64(&writer, item->from_ms);
        dp_write_u64(&writer, item->until_ms);
    }
    dp_status status = dp_writer_finish(&writer, &bytes);
    status = status == DP_OK ? dp_store_put(store, key, bytes) : status;
    dp_free(room);
    return status;
}

static void drop_old(dp_issued_list *list, uint64_t now_ms)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < list->n; i++) {
        if (list->items[i].until_ms >= now_ms) {
            list->items[kept++] = list->items[i];
        }
    }
    list->n = kept;
}

static dp_status add(dp_store *store, const dp_run_id *run, const dp_issued *invite,
                     uint64_t now_ms, dp_issued_list *list, bool *anew)
{
    const dp_status status = dp_issued_load(store, run, list);
    *anew = status == DP_CORRUPT;
    if (*anew) {
        list->n = 0;
    } else {
        DP_TRY(status);
    }
    if (list->n == DP_ISSUED_MAX) {
        drop_old(list, now_ms);
    }
    if (list->n == DP_ISSUED_MAX) {
        return DP_TOOBIG;
    }
    list->items[list->n++] = *invite;
    return save(store, run, list);
}

dp_status dp_issued_add(dp_store *store, const dp_run_id *run, const dp_issued *invite,
                        uint64_t now_ms, bool *anew)
{
    dp_issued_list *list = dp_alloc(1, sizeof *list);

    if (list == NULL) {
        return DP_NOMEM;
    }
    const dp_status status = add(store, run, invite, now_ms, list, anew);
    dp_free(list);
    return status;
}

dp_status dp_issued_forget(dp_store *store)
{
    return dp_store_delete(store, key);
}

const dp_issued *dp_issued_find(const dp_issued_list *list, const dp_invite_id *id)
{
    for (uint32_t i = 0; i < list->n; i++) {
        if (memcmp(list->items[i].id.bytes, id->bytes, sizeof id->bytes) == 0) {
            return &list->items[i];
        }
    }
    return NULL;
}
