#include "store/inside.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

/* DP_NOTFOUND. */
static dp_status find_object(dp_store *store, const dp_hash *root, int64_t *id, uint64_t *size,
                             bool *complete)
{
    static const char sql[] = "SELECT id,size,complete FROM object WHERE root=?";
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, root);
    DP_TRY(dp_query_next(&query));
    *id = dp_column_i64(&query, 0);
    *size = dp_column_u64(&query, 1);
    *complete = dp_column_i64(&query, 2) == 1;
    dp_query_end(&query);
    return *size <= DP_OBJECT_BYTES_MAX ? DP_OK : DP_CORRUPT;
}

/* Leaf of one chunk. DP_NOTFOUND. */
static dp_status find_leaf(dp_store *store, int64_t object, uint32_t index, dp_hash *leaf)
{
    static const char sql[] = "SELECT hash FROM part WHERE object_id=? AND seq=?";
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_i64(&query, object);
    dp_bind_u64(&query, index);
    DP_TRY(dp_query_next(&query));
    *leaf = dp_column_hash(&query, 0);
    dp_query_end(&query);
    return DP_OK;
}

dp_status dp_object_require(dp_store *store, const dp_hash *root)
{
    if (dp_hash_is_zero(root)) {
        return DP_OK;
    }
    int64_t id = 0;
    uint64_t size = 0;
    bool complete = false;
    DP_TRY(find_object(store, root, &id, &size, &complete));
    return complete ? DP_OK : DP_AGAIN;
}

dp_status dp_object_insert(dp_store *store, const dp_hash *root, uint64_t size,
                           const dp_hash *leaves, bool complete, const dp_pin *pin)
{
    static const char object_sql[] = "INSERT INTO object(root,size,complete) VALUES(?,?,?)";
    static const char part_sql[] = "INSERT INTO part(object_id,seq,hash) VALUES(?,?,?)";
    dp_query object = dp_query_of(&store->meta, object_sql);
    dp_bind_hash(&object, root);
    dp_bind_u64(&object, size);
    dp_bind_i64(&object, complete ? 1 : 0);
    DP_TRY(dp_query_run(&object));
    const int64_t id = sqlite3_last_insert_rowid(store->meta.db);
    const uint32_t count = dp_object_chunks(size);
    for (uint32_t i = 0; i < count; i++) {
        dp_query part = dp_query_of(&store->meta, part_sql);
        dp_bind_i64(&part, id);
        dp_bind_u64(&part, i);
        dp_bind_hash(&part, &leaves[i]);
        DP_TRY(dp_query_run(&part));
    }
    return pin != NULL ? dp_pin_insert(store, root, pin) : DP_OK;
}

static dp_status mark_complete(dp_store *store, const dp_hash *root)
{
    static const char sql[] = "UPDATE object SET complete=1 WHERE root=?";
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, root);
    return dp_query_run(&query);
}

/* ---- Writing. */

struct begin {
    const dp_hash *root;
    const dp_hash *leaves;
    const dp_pin *pin;
    uint64_t size;
    bool known;       /* Row exists already. */
    bool with_chunks; /* The chunks are committed: index them and mark the object complete. */
};

static dp_status begin_body(dp_store *store, void *context)
{
    const struct begin *begin = (const struct begin *)context;
    if (begin->with_chunks) {
        DP_TRY(dp_chunk_index(store));
    }
    if (!begin->known) {
        return dp_object_insert(store, begin->root, begin->size, begin->leaves, begin->with_chunks,
                                begin->pin);
    }
    if (begin->with_chunks) {
        DP_TRY(mark_complete(store, begin->root));
    }
    return dp_pin_insert(store, begin->root, begin->pin);
}

dp_status dp_object_begin(dp_store *store, const dp_hash *root, uint64_t size,
                          const dp_hash *leaves, const dp_pin *pin)
{
    dp_assert(store->depth == 0); /* Objects first, then the rows that name them (SAFETY R1). */
    if (size > DP_OBJECT_BYTES_MAX) {
        return DP_TOOBIG;
    }
    const dp_hash expected = dp_object_root(size, leaves);
    if (!dp_hash_equal(&expected, root)) {
        return DP_BADHASH;
    }
    struct begin begin = {.root = root, .leaves = leaves, .pin = pin, .size = size};
    int64_t id = 0;
    uint64_t known_size = 0;
    bool complete = false;
    const dp_status found = find_object(store, root, &id, &known_size, &complete);
    if (found != DP_OK && found != DP_NOTFOUND) {
        return found;
    }
    begin.known = found == DP_OK;
    if (!begin.known) {
        DP_TRY(dp_store_admit(store, size));
    }
    return dp_store_atomically(store, begin_body, &begin);
}

dp_status dp_object_put_chunk(dp_store *store, const dp_hash *root, uint32_t index, dp_view chunk)
{
    dp_assert(store->depth == 0);
    int64_t id = 0;
    uint64_t size = 0;
    bool complete = false;
    dp_hash leaf;
    DP_TRY(find_object(store, root, &id, &size, &complete));
    if (index >= dp_object_chunks(size)) {
        return DP_NOTFOUND;
    }
    DP_TRY(find_leaf(store, id, index, &leaf));
    if (chunk.size != dp_object_chunk_size(size, index)) {
        return DP_BADHASH;
    }
    const dp_hash got = dp_chunk_leaf(chunk);
    if (!dp_hash_equal(&got, &leaf)) {
        return DP_BADHASH;
    }
    return dp_chunk_add(store, &leaf, chunk);
}

dp_status dp_object_flush(dp_store *store)
{
    dp_assert(store->depth == 0);
    DP_TRY(dp_chunk_flush(store));
    const bool lost = store->batch.lost;
    store->batch.lost = false;
    return lost ? DP_AGAIN : DP_OK;
}

/* Repeats the rows of an object in meta.db in the open transaction of chunks.db. */
static dp_status put_recipe(dp_store *store, const dp_hash *root, uint64_t size,
                            const dp_hash *leaves, const dp_pin *pin)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO recipe(root,size,run,kind,round,leaves) VALUES(?,?,?,?,?,?)";
    DP_TRY(dp_chunk_begin(store));
    dp_query query = dp_query_of(&store->chunks, sql);
    dp_bind_hash(&query, root);
    dp_bind_u64(&query, size);
    dp_bind_hash(&query, &pin->run);
    dp_bind_i64(&query, pin->kind);
    dp_bind_u64(&query, pin->round);
    dp_bind_view(&query, dp_view_of(leaves, (size_t)dp_object_chunks(size) * sizeof *leaves));
    const dp_status status = dp_query_run(&query);
    if (status != DP_OK) {
        dp_chunk_abandon(store);
    }
    return status;
}

/* Any reason will do for the recipe: it only has to survive the next collect after meta.db was
 * lost. */
static dp_status any_pin(dp_store *store, const dp_hash *root, dp_pin *pin)
{
    static const char sql[] = "SELECT run,kind,round FROM pin WHERE root=?1 UNION ALL"
                              " SELECT run,2,round FROM ckpt WHERE object=?1 LIMIT 1";
    *pin = (dp_pin){.kind = DP_PIN_STATE};
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, root);
    const dp_status status = dp_query_next(&query);
    if (status == DP_OK) {
        pin->run = dp_column_hash(&query, 0);
        pin->kind = (dp_pin_kind)dp_column_i64(&query, 1);
        pin->round = dp_column_u64(&query, 2);
        dp_query_end(&query);
    }
    return status == DP_NOTFOUND ? DP_OK : status;
}

/* writing and pin may be NULL; else pin replaces writing. */
struct complete {
    const dp_hash *root;
    const dp_pin *writing;
    const dp_pin *pin;
};

static dp_status swap_pins_body(dp_store *store, void *context)
{
    const struct complete *complete = (const struct complete *)context;
    DP_TRY(dp_pin_insert(store, complete->root, complete->pin));
    return dp_pin_delete(store, complete->root, complete->writing);
}

static dp_status complete_body(dp_store *store, void *context)
{
    const struct complete *complete = (const struct complete *)context;
    DP_TRY(dp_chunk_index(store));
    DP_TRY(mark_complete(store, complete->root));
    return complete->pin != NULL ? swap_pins_body(store, context) : DP_OK;
}

static dp_status commit_with_leaves(dp_store *store, struct complete *complete, uint64_t size,
                                    dp_hash *leaves)
{
    dp_pin pin;
    DP_TRY(dp_object_leaves(store, complete->root, leaves, dp_object_chunks(size)));
    if (complete->pin != NULL) {
        pin = *complete->pin;
    } else {
        DP_TRY(any_pin(store, complete->root, &pin));
    }
    DP_TRY(put_recipe(store, complete->root, size, leaves, &pin));
    DP_TRY(dp_chunk_commit(store));
    DP_TRY(dp_store_atomically(store, complete_body, complete));
    dp_chunk_done(store);
    return DP_OK;
}

static dp_status commit(dp_store *store, struct complete *complete)
{
    dp_assert(store->depth == 0);
    dp_object_info info;
    DP_TRY(dp_object_stat(store, complete->root, &info));
    if (info.complete) {
        DP_TRY(dp_chunk_flush(store));
        return complete->pin != NULL ? dp_store_atomically(store, swap_pins_body, complete) : DP_OK;
    }
    if (info.n_present < info.n_chunks) {
        return DP_AGAIN;
    }
    dp_hash *leaves = dp_alloc((size_t)info.n_chunks + 1, sizeof *leaves);
    if (leaves == NULL) {
        return DP_NOMEM;
    }
    const dp_status status = commit_with_leaves(store, complete, info.size, leaves);
    dp_free(leaves);
    return status;
}

dp_status dp_object_commit(dp_store *store, const dp_hash *root)
{
    struct complete complete = {.root = root};
    return commit(store, &complete);
}

dp_status dp_object_commit_as(dp_store *store, const dp_hash *root, const dp_pin *writing,
                              const dp_pin *pin)
{
    struct complete complete = {.root = root, .writing = writing, .pin = pin};
    return commit(store, &complete);
}

static dp_status add_all(dp_store *store, dp_view bytes, const dp_hash *leaves)
{
    const uint32_t count = dp_object_chunks(bytes.size);
    size_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        const size_t size = dp_object_chunk_size(bytes.size, i);
        DP_TRY(dp_chunk_add(store, &leaves[i], dp_view_of(bytes.data + at, size)));
        at += size;
    }
    return DP_OK;
}

dp_status dp_object_put_hashed(dp_store *store, dp_view bytes, const dp_hash *leaves,
                               const dp_pin *pin, dp_hash *root)
{
    dp_assert(store->depth == 0);
    if (bytes.size > DP_OBJECT_BYTES_MAX) {
        return DP_TOOBIG;
    }
    const dp_hash name = dp_object_root(bytes.size, leaves);
    struct begin begin = {
        .root = &name, .leaves = leaves, .pin = pin, .size = bytes.size, .with_chunks = true};
    int64_t id = 0;
    uint64_t size = 0;
    bool complete = false;
    dp_status status = find_object(store, &name, &id, &size, &complete);
    if (status != DP_OK && status != DP_NOTFOUND) {
        return status;
    }
    begin.known = status == DP_OK;
    if (complete) {
        DP_TRY(dp_object_pin(store, &name, pin));
    } else if (bytes.size > store->options.batch_bytes) {
        DP_TRY(dp_object_begin(store, &name, bytes.size, leaves, pin));
        DP_TRY(add_all(store, bytes, leaves));
        DP_TRY(dp_object_commit(store, &name));
    } else {
        DP_TRY(dp_store_admit(store, bytes.size));
        DP_TRY(add_all(store, bytes, leaves));
        DP_TRY(put_recipe(store, &name, bytes.size, leaves, pin));
        DP_TRY(dp_chunk_commit(store));
        DP_TRY(dp_store_atomically(store, begin_body, &begin));
        dp_chunk_done(store);
    }
    if (root != NULL) {
        *root = name;
    }
    return DP_OK;
}

dp_status dp_object_put(dp_store *store, dp_view bytes, const dp_pin *pin, dp_hash *root)
{
    if (bytes.size > DP_OBJECT_BYTES_MAX) {
        return DP_TOOBIG;
    }
    dp_hash *leaves = dp_alloc((size_t)dp_object_chunks(bytes.size) + 1, sizeof *leaves);
    if (leaves == NULL) {
        return DP_NOMEM;
    }
    const dp_hash name = dp_object_hash(bytes, leaves);
    const dp_status status = dp_object_put_hashed(store, bytes, leaves, pin, root);
    dp_assert(status != DP_OK || root == NULL || dp_hash_equal(root, &name));
    dp_free(leaves);
    return status;
}

/* ---- Reading. */

dp_status dp_object_missing(dp_store *store, const dp_hash *root, uint8_t *bitmap,
                            size_t bitmap_bytes, uint32_t *n_missing)
{
    int64_t id = 0;
    uint64_t size = 0;
    bool complete = false;
    DP_TRY(find_object(store, root, &id, &size, &complete));
    const uint32_t count = dp_object_chunks(size);
    if (bitmap_bytes < ((size_t)count + 7) / 8) {
        return DP_TOOBIG;
    }
    memset(bitmap, 0, bitmap_bytes);
    uint32_t missing = 0;
    for (uint32_t i = 0; i < count; i++) {
        dp_hash leaf;
        DP_TRY(find_leaf(store, id, i, &leaf));
        const dp_status found = dp_chunk_find(store, &leaf, NULL, NULL);
        if (found == DP_NOTFOUND) {
            bitmap[i / 8] = (uint8_t)(bitmap[i / 8] | (1U << (i % 8)));
            missing++;
        } else if (found != DP_OK) {
            return found;
        }
    }
    if (n_missing != NULL) {
        *n_missing = missing;
    }
    return DP_OK;
}

dp_status dp_object_stat(dp_store *store, const dp_hash *root, dp_object_info *info)
{
    int64_t id = 0;
    dp_object_info found = {0};
    uint8_t bitmap[DP_CHUNKS_MAX / 8];
    uint32_t missing = 0;
    DP_TRY(find_object(store, root, &id, &found.size, &found.complete));
    found.n_chunks = dp_object_chunks(found.size);
    if (!found.complete) {
        DP_TRY(dp_object_missing(store, root, bitmap, sizeof bitmap, &missing));
    }
    found.n_present = found.n_chunks - missing;
    *info = found;
    return DP_OK;
}

dp_status dp_object_leaves(dp_store *store, const dp_hash *root, dp_hash *leaves, uint32_t n_leaves)
{
    int64_t id = 0;
    uint64_t size = 0;
    bool complete = false;
    DP_TRY(find_object(store, root, &id, &size, &complete));
    if (n_leaves != dp_object_chunks(size)) {
        return DP_BADARG;
    }
    for (uint32_t i = 0; i < n_leaves; i++) {
        DP_TRY(find_leaf(store, id, i, &leaves[i]));
    }
    return DP_OK;
}

dp_status dp_object_read_chunk(dp_store *store, const dp_hash *root, uint32_t index, void *out,
                               size_t capacity, size_t *size)
{
    int64_t id = 0;
    uint64_t bytes = 0;
    bool complete = false;
    dp_hash leaf;
    DP_TRY(find_object(store, root, &id, &bytes, &complete));
    if (index >= dp_object_chunks(bytes)) {
        return DP_NOTFOUND;
    }
    DP_TRY(find_leaf(store, id, index, &leaf));
    return dp_chunk_read(store, &leaf, out, capacity, size);
}

/* out NULL: through the scratch buffer. */
static dp_status read_all(dp_store *store, const dp_hash *root, uint8_t *out, uint64_t out_bytes)
{
    int64_t id = 0;
    uint64_t size = 0;
    bool complete = false;
    uint8_t *scratch = NULL;
    DP_TRY(find_object(store, root, &id, &size, &complete));
    if (out != NULL && out_bytes != size) {
        return DP_BADARG;
    }
    if (!complete) {
        return DP_AGAIN;
    }
    if (out == NULL) {
        DP_TRY(dp_store_scratch(store, &scratch));
    }
    uint64_t at = 0;
    for (uint32_t i = 0; i < dp_object_chunks(size); i++) {
        dp_hash leaf;
        size_t got = 0;
        const uint32_t want = dp_object_chunk_size(size, i);
        DP_TRY(find_leaf(store, id, i, &leaf));
        DP_TRY(dp_chunk_read(store, &leaf, out != NULL ? out + at : scratch, want, &got));
        if (got != want) {
            return DP_BADHASH;
        }
        at += got;
    }
    return DP_OK;
}

dp_status dp_object_read(dp_store *store, const dp_hash *root, void *out, uint64_t size)
{
    static uint8_t nothing;
    return read_all(store, root, size > 0 ? out : &nothing, size);
}

dp_status dp_object_verify(dp_store *store, const dp_hash *root)
{
    return read_all(store, root, NULL, 0);
}
