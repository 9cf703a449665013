/* The publication that waits and the error feedback (journal.h); exchanges are in exchange.c, events in event.c. */
#include "store/journal.h"

#include "store/inside.h"

/* ---- Pending. */

struct save {
    const dp_hash *run;
    const dp_pending_row *pending; /* May be NULL: delete. */
    const dp_feedback_row *feedback; /* May be NULL: delete. */
};

/* Objects put for a publication are named by its row now, or by nothing. */
static dp_status drop_pins(dp_store *store, const dp_hash *run)
{
    static const char sql[] = "DELETE FROM pin WHERE run=? AND kind=?";
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, run);
    dp_bind_i64(&query, DP_PIN_PENDING);
    return dp_query_run(&query);
}

static dp_status delete_pending_body(dp_store *store, void *context)
{
    static const char sql[] = "DELETE FROM pending WHERE run=?";
    const struct save *save = (const struct save *)context;
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, save->run);
    DP_TRY(dp_query_run(&query));
    return drop_pins(store, save->run);
}

static dp_status save_pending_body(dp_store *store, void *context)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO pending(run,t,base,root,a_root,tokens,steps,chk) VALUES(?,?,?,?,?,?,?,?)";
    const struct save *save = (const struct save *)context;
    const dp_pending_row *pending = save->pending;
    DP_TRY(dp_object_require(store, &pending->root));
    DP_TRY(dp_object_require(store, &pending->a_root));
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, save->run);
    dp_bind_u64(&query, pending->t);
    dp_bind_hash(&query, &pending->base);
    dp_bind_hash(&query, &pending->root);
    dp_bind_hash(&query, &pending->a_root);
    dp_bind_u64(&query, pending->tokens);
    dp_bind_u64(&query, pending->steps);
    dp_bind_check(&query);
    DP_TRY(dp_query_run(&query));
    return drop_pins(store, save->run);
}

dp_status dp_pending_load(dp_store *store, const dp_hash *run, dp_pending_row *pending)
{
    static const char sql[] = "SELECT run,t,base,root,a_root,tokens,steps,chk FROM pending WHERE run=?";
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, run);
    DP_TRY(dp_query_next(&query));
    const dp_status status = dp_column_check(&query, 0, 6);
    if (status == DP_OK) {
        pending->t = dp_column_u64(&query, 1);
        pending->base = dp_column_hash(&query, 2);
        pending->root = dp_column_hash(&query, 3);
        pending->a_root = dp_column_hash(&query, 4);
        pending->tokens = dp_column_u64(&query, 5);
        pending->steps = dp_column_u64(&query, 6);
    }
    dp_query_end(&query);
    return status;
}

dp_status dp_pending_save(dp_store *store, const dp_hash *run, const dp_pending_row *pending)
{
    dp_pending_row there;
    const dp_status found = dp_pending_load(store, run, &there);
    if (found == DP_OK && there.t == pending->t && dp_hash_equal(&there.base, &pending->base) &&
        !dp_hash_equal(&there.root, &pending->root)) {
        return DP_EXISTS;
    }
    if (found != DP_OK && found != DP_NOTFOUND) {
        return found;
    }
    struct save save = {.run = run, .pending = pending};
    return dp_store_atomically(store, save_pending_body, &save);
}

dp_status dp_pending_delete(dp_store *store, const dp_hash *run)
{
    struct save save = {.run = run};
    return dp_store_atomically(store, delete_pending_body, &save);
}

/* ---- Error feedback. */

static dp_status save_feedback_body(dp_store *store, void *context)
{
    static const char sql[] = "INSERT OR REPLACE INTO feedback(run,tag,root,chk) VALUES(?,?,?,?)";
    const struct save *save = (const struct save *)context;
    DP_TRY(dp_object_require(store, &save->feedback->root));
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, save->run);
    dp_bind_u64(&query, save->feedback->tag);
    dp_bind_hash(&query, &save->feedback->root);
    dp_bind_check(&query);
    return dp_query_run(&query);
}

dp_status dp_feedback_save(dp_store *store, const dp_hash *run, const dp_feedback_row *feedback)
{
    struct save save = {.run = run, .feedback = feedback};
    return dp_store_atomically(store, save_feedback_body, &save);
}

static dp_status settle_body(dp_store *store, void *context)
{
    DP_TRY(save_feedback_body(store, context));
    return delete_pending_body(store, context);
}

dp_status dp_pending_settle(dp_store *store, const dp_hash *run, const dp_feedback_row *feedback)
{
    struct save save = {.run = run, .feedback = feedback};
    return dp_store_atomically(store, settle_body, &save);
}

dp_status dp_feedback_load(dp_store *store, const dp_hash *run, dp_feedback_row *feedback)
{
    static const char sql[] = "SELECT run,tag,root,chk FROM feedback WHERE run=?";
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, run);
    DP_TRY(dp_query_next(&query));
    const dp_status status = dp_column_check(&query, 0, 2);
    if (status == DP_OK) {
        feedback->tag = dp_column_u64(&query, 1);
        feedback->root = dp_column_hash(&query, 2);
    }
    dp_query_end(&query);
    return status;
}

static dp_status delete_feedback_body(dp_store *store, void *context)
{
    static const char sql[] = "DELETE FROM feedback WHERE run=?";
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, ((const struct save *)context)->run);
    return dp_query_run(&query);
}

dp_status dp_feedback_delete(dp_store *store, const dp_hash *run)
{
    struct save save = {.run = run};
    return dp_store_atomically(store, delete_feedback_body, &save);
}
