#include "gossip/record/lists.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "gossip/core/msg.h"

dp_status dp_lists_open(dp_lists *lists, uint32_t listed_max)
{
    dp_assert(listed_max > 0 && listed_max <= DP_LISTED_MAX);
    *lists = (dp_lists){0};
    if (listed_max <= DP_LISTED_DEFAULT) {
        return DP_OK;
    }
    lists->capacity = DP_LISTS_RECORDS * dp_listing_count(listed_max);
    lists->known = dp_reserve(lists->capacity, sizeof *lists->known);
    return lists->known != NULL ? DP_OK : DP_NOMEM;
}

void dp_lists_close(dp_lists *lists)
{
    dp_free(lists->known);
    *lists = (dp_lists){0};
}

static dp_known_list *find(dp_lists *lists, const dp_hash *hash)
{
    for (uint32_t i = 0; i < lists->capacity; i++) {
        if (lists->known[i].order != 0 && dp_hash_equal(&lists->known[i].hash, hash)) {
            lists->known[i].order = ++lists->order;
            return &lists->known[i];
        }
    }
    return NULL;
}

dp_view dp_lists_get(dp_lists *lists, const dp_hash *hash)
{
    const dp_known_list *known = find(lists, hash);

    return known != NULL ? dp_view_of(known->bytes, known->size) : (dp_view){0};
}

void dp_lists_put(dp_lists *lists, dp_view list)
{
    const dp_hash hash = dp_listing_hash(list);
    dp_known_list *oldest = NULL;

    dp_assert(lists->capacity > 0);
    if (lists->capacity == 0 || list.size > DP_LIST_BYTES_MAX || find(lists, &hash) != NULL) {
        return;
    }
    for (uint32_t i = 0; i < lists->capacity; i++) {
        dp_known_list *known = &lists->known[i];
        if (!known->pinned && (oldest == NULL || known->order < oldest->order)) {
            oldest = known;
        }
    }
    dp_assert(oldest != NULL); /* Of one record in DP_LISTS_RECORDS at most are pinned. */
    oldest->hash = hash;
    oldest->order = ++lists->order;
    oldest->size = (uint32_t)list.size;
    memcpy(oldest->bytes, list.data, list.size);
}

void dp_lists_put_all(dp_lists *lists, dp_view whole)
{
    const size_t voted = dp_record_voted(whole).size;
    size_t at = voted;

    while (at < whole.size) {
        const size_t left = whole.size - at;
        const size_t full = dp_listing_bytes(DP_LIST_ROWS_MAX);
        const size_t size = left < full ? left : full;
        dp_lists_put(lists, dp_view_of(whole.data + at, size));
        at += size;
    }
}

/* The hashes of the lists of a voted form. More than the run may have would drive out those of
 * other records. */
static dp_status hashes_of(const dp_lists *lists, dp_view record, dp_hash hashes[DP_LISTS_MAX],
                           uint32_t *n)
{
    DP_TRY(dp_record_lists(record, hashes, n));
    return *n <= lists->capacity / DP_LISTS_RECORDS ? DP_OK : DP_BADMSG;
}

void dp_lists_pin(dp_lists *lists, dp_view record)
{
    dp_hash hashes[DP_LISTS_MAX];
    uint32_t n = 0;

    for (uint32_t i = 0; i < lists->capacity; i++) {
        lists->known[i].pinned = false;
    }
    if (hashes_of(lists, record, hashes, &n) != DP_OK) {
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        dp_known_list *known = find(lists, &hashes[i]);
        if (known != NULL) {
            known->pinned = true;
        }
    }
}

dp_status dp_lists_join(dp_lists *lists, dp_view record, bool wanted, uint8_t *out, dp_view *whole)
{
    static const size_t max = DP_RECORD_WHOLE_MAX;
    dp_hash hashes[DP_LISTS_MAX];
    dp_hash missing[DP_LISTS_MAX];
    uint32_t n = 0;
    uint32_t n_missing = 0;
    size_t size = record.size;

    if (record.size > max) {
        return DP_TOOBIG;
    }
    memcpy(out, record.data, record.size);
    DP_TRY(hashes_of(lists, record, hashes, &n));
    if (n > 0 && record.size > DP_RECORD_BYTES_MAX) {
        return DP_TOOBIG;
    }
    for (uint32_t i = 0; i < n; i++) {
        const dp_view list = dp_lists_get(lists, &hashes[i]);
        if (list.size == 0) {
            missing[n_missing++] = hashes[i];
        } else if (n_missing == 0) {
            dp_assert(list.size <= max - size);
            memcpy(out + size, list.data, list.size);
            size += list.size;
        }
    }
    if (wanted) {
        memcpy(lists->wanted, missing, n_missing * sizeof missing[0]);
        lists->n_wanted = n_missing;
    }
    if (n_missing > 0) {
        return DP_AGAIN;
    }
    *whole = dp_view_of(out, size);
    return DP_OK;
}

bool dp_lists_take(dp_lists *lists, dp_view list)
{
    const dp_hash hash = dp_listing_hash(list);

    for (uint32_t i = 0; i < lists->n_wanted; i++) {
        if (dp_hash_equal(&lists->wanted[i], &hash)) {
            lists->wanted[i] = lists->wanted[--lists->n_wanted];
            dp_lists_put(lists, list);
            return true;
        }
    }
    return false;
}

/* ---- messages ---- */

void dp_list_get_msg_write(dp_writer *writer, const dp_list_get_msg *get)
{
    dp_assert(get->n >= 1 && get->n <= DP_LISTS_MAX);
    dp_write_u8(writer, DP_MSG_LIST_GET);
    dp_write_u8(writer, DP_MSG_VERSION);
    dp_write_bytes(writer, get->asker.bytes, sizeof get->asker.bytes);
    dp_write_u8(writer, (uint8_t)get->n);
    for (uint32_t i = 0; i < get->n; i++) {
        dp_write_bytes(writer, get->hashes[i].bytes, DP_HASH_BYTES);
    }
}

dp_status dp_list_get_msg_read(dp_view message, dp_list_get_msg *get)
{
    dp_reader reader = dp_reader_of(message);

    if (dp_msg_type_of(message) != DP_MSG_LIST_GET) {
        return DP_BADMSG;
    }
    dp_read_view(&reader, DP_MSG_HEAD_BYTES);
    dp_read_bytes(&reader, get->asker.bytes, sizeof get->asker.bytes);
    get->n = dp_read_u8(&reader);
    if (get->n == 0 || get->n > DP_LISTS_MAX) {
        return DP_BADMSG;
    }
    for (uint32_t i = 0; i < get->n; i++) {
        dp_read_bytes(&reader, get->hashes[i].bytes, DP_HASH_BYTES);
    }
    return dp_reader_finish(&reader);
}

void dp_list_msg_write(dp_writer *writer, dp_view list)
{
    dp_write_u8(writer, DP_MSG_LIST);
    dp_write_u8(writer, DP_MSG_VERSION);
    dp_write_view(writer, list);
}

dp_status dp_list_msg_read(dp_view message, dp_view *list)
{
    dp_listed rows[DP_LIST_ROWS_MAX];
    dp_reader reader = dp_reader_of(message);
    uint32_t n = 0;

    if (dp_msg_type_of(message) != DP_MSG_LIST) {
        return DP_BADMSG;
    }
    dp_read_view(&reader, DP_MSG_HEAD_BYTES);
    const dp_view bytes = dp_read_view(&reader, dp_reader_left(&reader));
    DP_TRY(dp_listing_read(bytes, rows, &n));
    *list = bytes;
    return DP_OK;
}
