/* Space of the store: its size, whether more may be written (SAFETY R6), and the disk reserve. */
#include "store/inside.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/size.h"

#define BIG_WRITE_BYTES                                                                            \
    ((uint64_t)1 << 20) /* Below this only the quota is asked: the margin is there for these. */

static dp_status pages(dp_sql *sql, uint64_t *used, uint64_t *free_bytes)
{
    int64_t size = 0;
    int64_t count = 0;
    int64_t unused = 0;
    DP_TRY(dp_sql_number(sql, "PRAGMA page_size", &size));
    DP_TRY(dp_sql_number(sql, "PRAGMA page_count", &count));
    DP_TRY(dp_sql_number(sql, "PRAGMA freelist_count", &unused));
    *used = (uint64_t)(count - unused) * (uint64_t)size;
    *free_bytes = (uint64_t)unused * (uint64_t)size;
    return DP_OK;
}

dp_status dp_store_bytes(dp_store *store, uint64_t *bytes)
{
    uint64_t meta = 0;
    uint64_t chunks = 0;
    uint64_t unused = 0;
    DP_TRY(pages(&store->meta, &meta, &unused));
    DP_TRY(pages(&store->chunks, &chunks, &unused));
    *bytes = meta + chunks;
    return DP_OK;
}

void dp_store_limit(dp_store *store, uint64_t max_bytes)
{
    store->options.max_bytes = max_bytes;
}

/* Bytes of begun objects that are not here yet: they were admitted, and will be written. */
static dp_status to_come(dp_store *store, uint64_t *bytes)
{
    static const char all_sql[] = "SELECT coalesce(sum(size),0) FROM object WHERE complete=0";
    static const char here_sql[] = "SELECT coalesce(sum(x.size),0) FROM object o JOIN part p ON "
                                   "p.object_id=o.id JOIN chunk_ix "
                                   "x ON x.hash=p.hash WHERE o.complete=0";
    int64_t all = 0;
    int64_t here = 0;
    DP_TRY(dp_sql_number(&store->meta, all_sql, &all));
    if (all > 0) { /* The second looks at each chunk. */
        DP_TRY(dp_sql_number(&store->meta, here_sql, &here));
    }
    const uint64_t written = (uint64_t)here + store->batch.bytes;
    *bytes = (uint64_t)all > written ? (uint64_t)all - written : 0;
    return DP_OK;
}

/* DP_OK or DP_NOSPACE as things stand now. */
static dp_status fits(dp_store *store, uint64_t bytes)
{
    uint64_t disk = 0;
    uint64_t used = 0;
    uint64_t reusable = 0;
    uint64_t coming = 0;
    DP_TRY(to_come(store, &coming));
    const uint64_t need =
        bytes + coming + (bytes + coming) / 20; /* 1.05: pages, index and journal. */
    DP_TRY(dp_store_bytes(store, &used));
    store->quota_reached = store->options.max_bytes > 0 && used + need > store->options.max_bytes;
    if (store->quota_reached) {
        return DP_NOSPACE;
    }
    if (bytes < BIG_WRITE_BYTES) {
        return DP_OK;
    }
    uint64_t ignored = 0;
    DP_TRY(pages(&store->chunks, &ignored, &reusable));
    DP_TRY(dp_dir_free_bytes(&store->dir, &disk));
    return disk + reusable >= need + store->options.margin_bytes ? DP_OK : DP_NOSPACE;
}

void dp_store_full_text(dp_store *store, char text[DP_DISK_TEXT_MAX])
{
    uint64_t used = 0;
    char used_text[DP_SIZE_TEXT_MAX];
    char max_text[DP_SIZE_TEXT_MAX];
    if (!store->quota_reached || dp_store_bytes(store, &used) != DP_OK) {
        dp_disk_full_text(store->dir.path, text);
        return;
    }
    dp_size_text(used, used_text);
    dp_size_text(store->options.max_bytes, max_text);
    snprintf(text, DP_DISK_TEXT_MAX,
             "the store is at its limit: it uses %s of %s (store-max); to raise it: dpnode limits "
             "--disk SIZE",
             used_text, max_text);
}

dp_status dp_store_admit(dp_store *store, uint64_t bytes)
{
    dp_assert(store->depth == 0);
    if (bytes > DP_OBJECT_BYTES_MAX) {
        return DP_TOOBIG;
    }
    dp_status status = fits(store, bytes);
    if (status != DP_NOSPACE) {
        return status;
    }
    DP_TRY(dp_object_collect(store, NULL));
    status = fits(store, bytes);
    if (status != DP_NOSPACE) {
        return status;
    }
    DP_TRY(dp_ckpt_make_room(store));
    DP_TRY(dp_object_collect(store, NULL));
    return fits(store, bytes);
}

dp_status dp_store_give_back(dp_store *store, bool *more)
{
    uint64_t meta = 0;
    uint64_t chunks = 0;
    uint64_t unused = 0;
    DP_TRY(pages(&store->meta, &meta, &unused));
    meta += unused;
    DP_TRY(pages(&store->chunks, &chunks, &unused));
    const bool full = store->options.reserve_bytes > 0 && !store->reserve_held;
    const uint64_t max = store->options.max_bytes;
    const bool above = max > 0 && meta + chunks + unused > max;
    *more = false;
    return unused > 0 && (full || above) ? dp_store_shrink(store, more) : DP_OK;
}

bool dp_store_release_reserve(dp_store *store)
{
    const bool held = store->reserve_held;
    store->reserve_held = false;
    if (held) {
        DP_IGNORE(dp_dir_release(&store->dir, DP_STORE_RESERVE_NAME));
    }
    return held;
}

bool dp_store_reserve_held(const dp_store *store)
{
    return store->reserve_held;
}

dp_status dp_store_refill_reserve(dp_store *store)
{
    if (store->reserve_held || store->options.reserve_bytes == 0) {
        return DP_OK;
    }
    uint64_t disk = 0;
    DP_TRY(dp_dir_free_bytes(&store->dir, &disk));
    if (disk < store->options.reserve_bytes ||
        disk - store->options.reserve_bytes < store->options.margin_bytes) {
        return DP_NOSPACE; /* Room that has just become free is for waiting writes. */
    }
    DP_TRY(dp_dir_reserve(&store->dir, DP_STORE_RESERVE_NAME, store->options.reserve_bytes));
    store->reserve_held = true;
    return DP_OK;
}
