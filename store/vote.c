#include "store/vote.h"

#include <string.h>

#include "store/inside.h"

static const char load_sql[] =
    "SELECT run,secret,public,slot,promised,accepted,place,record,chk FROM vote WHERE run=?";

/* The row of a run, checked and left open. DP_NOTFOUND, DP_CORRUPT. */
static dp_status open_row(dp_store *store, const dp_hash *run, dp_query *query)
{
    *query = dp_query_of(&store->meta, load_sql);
    dp_bind_hash(query, run);
    DP_TRY(dp_query_next(query));
    dp_status status = dp_column_check(query, 0, 7);
    if (status == DP_OK && (dp_column_view(query, 1).size != DP_VOTE_ROW_SECRET_BYTES ||
                            dp_column_view(query, 2).size != DP_VOTE_ROW_PUBLIC_BYTES)) {
        status = DP_CORRUPT;
    }
    if (status != DP_OK) {
        dp_query_end(query);
    }
    return status;
}

struct save {
    const dp_hash *run;
    const dp_vote_key_row *key;
    const dp_vote_row *vote;
};

static dp_status save_body(dp_store *store, void *context)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO vote(run,secret,public,slot,promised,accepted,place,record,chk)"
        " VALUES(?,?,?,?,?,?,?,?,?)";
    const struct save *save = (const struct save *)context;
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, save->run);
    dp_bind_view(&query, dp_view_of(save->key->secret, sizeof save->key->secret));
    dp_bind_view(&query, dp_view_of(save->key->public_key, sizeof save->key->public_key));
    dp_bind_u64(&query, save->vote->slot);
    dp_bind_i64(&query, save->vote->promised);
    dp_bind_i64(&query, save->vote->accepted);
    dp_bind_view(&query, dp_view_of(save->vote->place, sizeof save->vote->place));
    dp_bind_view(&query, save->vote->record);
    dp_bind_check(&query);
    return dp_query_run(&query);
}

dp_status dp_vote_create_key(dp_store *store, const dp_hash *run, const dp_vote_key_row *key)
{
    static const char sql[] = "SELECT 1 FROM vote WHERE run=?";
    dp_query there = dp_query_of(&store->meta, sql);
    dp_bind_hash(&there, run);
    const dp_status status = dp_query_next(&there);
    dp_query_end(&there);
    if (status != DP_NOTFOUND) {
        return status == DP_OK ? DP_EXISTS
                               : status; /* Also when the row is damaged: destroy it first. */
    }
    const dp_vote_row none = {.promised = DP_VOTE_ROW_NONE, .accepted = DP_VOTE_ROW_NONE};
    struct save save = {.run = run, .key = key, .vote = &none};
    return dp_store_atomically(store, save_body, &save);
}

dp_status dp_vote_load_key(dp_store *store, const dp_hash *run, dp_vote_key_row *key)
{
    dp_query query;
    DP_TRY(open_row(store, run, &query));
    dp_column_bytes(&query, 1, key->secret, sizeof key->secret);
    dp_column_bytes(&query, 2, key->public_key, sizeof key->public_key);
    dp_query_end(&query);
    return DP_OK;
}

static dp_status destroy_body(dp_store *store, void *context)
{
    static const char wipe_sql[] = "UPDATE vote SET secret=zeroblob(64) WHERE run=?";
    static const char drop_sql[] = "DELETE FROM vote WHERE run=?";
    /* Overwritten first: secure_delete is off, so a deleted row alone would stay readable in a free
     * page. */
    dp_query wipe = dp_query_of(&store->meta, wipe_sql);
    dp_bind_hash(&wipe, (const dp_hash *)context);
    DP_TRY(dp_query_run(&wipe));
    dp_query drop = dp_query_of(&store->meta, drop_sql);
    dp_bind_hash(&drop, (const dp_hash *)context);
    return dp_query_run(&drop);
}

dp_status dp_vote_destroy_key(dp_store *store, const dp_hash *run)
{
    dp_hash copy = *run;
    return dp_store_atomically(store, destroy_body, &copy);
}

static void view_row(const dp_query *query, dp_vote_row *vote)
{
    vote->slot = dp_column_u64(query, 3);
    vote->promised = dp_column_i64(query, 4);
    vote->accepted = dp_column_i64(query, 5);
    dp_column_bytes(query, 6, vote->place, sizeof vote->place);
    vote->record = dp_column_view(query, 7);
}

dp_status dp_vote_load(dp_store *store, const dp_hash *run, dp_vote_row *vote, dp_buf *record)
{
    dp_query query;
    dp_vote_row row;
    DP_TRY(open_row(store, run, &query));
    view_row(&query, &row);
    dp_buf_clear(record);
    const dp_status status = dp_buf_append(record, row.record);
    dp_query_end(&query);
    if (status != DP_OK) {
        return status;
    }
    row.record = dp_buf_view(record);
    *vote = row;
    return DP_OK;
}

/* True if next takes nothing of saved back (SAFETY V1 to V3). */
static bool goes_on(const dp_vote_row *saved, const dp_vote_row *next)
{
    if (next->promised < DP_VOTE_ROW_NONE || next->accepted < DP_VOTE_ROW_NONE ||
        next->accepted > next->promised ||
        (next->accepted == DP_VOTE_ROW_NONE && next->record.size > 0)) {
        return false;
    }
    if (memcmp(next->place, saved->place, DP_HASH_BYTES) != 0) {
        return true; /* Another fork of the chain: its slots have votes of their own. */
    }
    if (next->slot != saved->slot) {
        return next->slot > saved->slot;
    }
    if (next->promised < saved->promised || next->accepted < saved->accepted) {
        return false;
    }
    return next->accepted > saved->accepted || dp_view_equal(next->record, saved->record);
}

dp_status dp_vote_save(dp_store *store, const dp_hash *run, const dp_vote_row *vote)
{
    if (vote->record.size > DP_VOTE_ROW_RECORD_MAX) {
        return DP_TOOBIG;
    }
    dp_query query;
    dp_vote_row saved;
    dp_vote_key_row key;
    DP_TRY(open_row(store, run, &query));
    view_row(&query, &saved);
    dp_column_bytes(&query, 1, key.secret, sizeof key.secret);
    dp_column_bytes(&query, 2, key.public_key, sizeof key.public_key);
    const bool allowed = goes_on(&saved, vote);
    dp_query_end(&query);
    struct save save = {.run = run, .key = &key, .vote = vote};
    const dp_status status = allowed ? dp_store_atomically(store, save_body, &save) : DP_BADARG;
    explicit_bzero(&key, sizeof key);
    return status;
}
