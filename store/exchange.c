/* Pair exchanges: the journal that decides what a crash in the middle of one meant (journal.h). */
#include <string.h>

#include "store/inside.h"
#include "store/journal.h"

#define COLUMNS                                                                                                        \
    "run,id,peer,role,state,base,own_root,other_root,own_f_root,w_own,w_other,own_incarnation,other_incarnation,"      \
    "time_ms,sum_before,sum_after,chk"

static bool is_final(dp_journal_state state)
{
    return state == DP_JOURNAL_ABORTED || state == DP_JOURNAL_DONE;
}

static dp_status read_row(const dp_query *query, dp_exchange_row *row)
{
    DP_TRY(dp_column_check(query, 0, 15));
    memset(row, 0, sizeof *row);
    dp_column_bytes(query, 1, row->id, sizeof row->id);
    row->peer = dp_column_hash(query, 2);
    row->role = (dp_journal_role)dp_column_i64(query, 3);
    row->state = (dp_journal_state)dp_column_i64(query, 4);
    row->base = dp_column_hash(query, 5);
    row->own_root = dp_column_hash(query, 6);
    row->other_root = dp_column_hash(query, 7);
    row->own_f_root = dp_column_hash(query, 8);
    row->w_own = dp_column_u64(query, 9);
    row->w_other = dp_column_u64(query, 10);
    row->own_incarnation = dp_column_u64(query, 11);
    row->other_incarnation = dp_column_u64(query, 12);
    row->time_ms = dp_column_u64(query, 13);
    dp_column_text(query, 14, row->sum_before, sizeof row->sum_before);
    dp_column_text(query, 15, row->sum_after, sizeof row->sum_after);
    return DP_OK;
}

struct save {
    const dp_hash *run;
    const dp_exchange_row *row;
};

static dp_status require_objects(dp_store *store, const dp_exchange_row *row)
{
    DP_TRY(dp_object_require(store, &row->own_root));
    DP_TRY(dp_object_require(store, &row->other_root));
    return dp_object_require(store, &row->own_f_root);
}

static dp_status drop_pin(dp_store *store, const dp_hash *run, const dp_hash *root)
{
    static const char sql[] = "DELETE FROM pin WHERE run=? AND kind=? AND root=?";
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, run);
    dp_bind_i64(&query, DP_PIN_EXCHANGE);
    dp_bind_hash(&query, root);
    return dp_query_run(&query);
}

/* The oldest finished ones beyond the limit. */
static dp_status trim(dp_store *store, const dp_hash *run)
{
    static const char sql[] = "DELETE FROM exchange WHERE run=?1 AND state>=3 AND seq<(SELECT seq FROM exchange WHERE"
                              " run=?1 AND state>=3 ORDER BY seq DESC LIMIT 1 OFFSET ?2)";
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, run);
    dp_bind_i64(&query, DP_JOURNAL_EXCHANGES_MAX - 1);
    return dp_query_run(&query);
}

/* An update, so that the row keeps its place in the order, or an insert. */
static dp_status write_row(dp_store *store, const dp_hash *run, const dp_exchange_row *row)
{
    static const char sql[] =
        "INSERT INTO exchange(" COLUMNS ") VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT(run,id) DO UPDATE SET"
        " peer=excluded.peer,role=excluded.role,state=excluded.state,base=excluded.base,own_root=excluded.own_root,"
        " other_root=excluded.other_root,own_f_root=excluded.own_f_root,w_own=excluded.w_own,w_other=excluded.w_other,"
        " own_incarnation=excluded.own_incarnation,other_incarnation=excluded.other_incarnation,"
        " time_ms=excluded.time_ms,sum_before=excluded.sum_before,sum_after=excluded.sum_after,chk=excluded.chk";
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, run);
    dp_bind_view(&query, dp_view_of(row->id, sizeof row->id));
    dp_bind_hash(&query, &row->peer);
    dp_bind_i64(&query, row->role);
    dp_bind_i64(&query, row->state);
    dp_bind_hash(&query, &row->base);
    dp_bind_hash(&query, &row->own_root);
    dp_bind_hash(&query, &row->other_root);
    dp_bind_hash(&query, &row->own_f_root);
    dp_bind_bits(&query, row->w_own);
    dp_bind_bits(&query, row->w_other);
    dp_bind_bits(&query, row->own_incarnation);
    dp_bind_bits(&query, row->other_incarnation);
    dp_bind_u64(&query, row->time_ms);
    dp_bind_text(&query, row->sum_before);
    dp_bind_text(&query, row->sum_after);
    dp_bind_check(&query);
    return dp_query_run(&query);
}

static dp_status save_body(dp_store *store, void *context)
{
    const struct save *save = (const struct save *)context;
    const dp_exchange_row *row = save->row;
    if (!is_final(row->state)) {
        DP_TRY(require_objects(store, row));
    }
    DP_TRY(write_row(store, save->run, row));
    DP_TRY(drop_pin(store, save->run, &row->own_root));
    DP_TRY(drop_pin(store, save->run, &row->other_root));
    DP_TRY(drop_pin(store, save->run, &row->own_f_root));
    return is_final(row->state) ? trim(store, save->run) : DP_OK;
}

/* May an exchange go from one state to the other? Repeating a state is always allowed. */
static bool follows(dp_journal_state from, dp_journal_state to)
{
    if (from == to) {
        return true;
    }
    switch (from) {
    case DP_JOURNAL_PREPARED:
        return true;
    case DP_JOURNAL_ASKED:
        return to != DP_JOURNAL_PREPARED;
    case DP_JOURNAL_COMMITTED:
        return to == DP_JOURNAL_DONE;
    case DP_JOURNAL_ABORTED:
    case DP_JOURNAL_DONE:
        return false;
    }
    return false;
}

dp_status dp_exchange_save(dp_store *store, const dp_hash *run, const dp_exchange_row *exchange)
{
    dp_exchange_row there;
    if (memchr(exchange->sum_before, '\0', sizeof exchange->sum_before) == NULL ||
        memchr(exchange->sum_after, '\0', sizeof exchange->sum_after) == NULL) {
        return DP_BADARG;
    }
    const dp_status found = dp_exchange_load(store, run, exchange->id, &there);
    if (found != DP_OK && found != DP_NOTFOUND) {
        return found;
    }
    if (found == DP_OK && !follows(there.state, exchange->state)) {
        return DP_BADARG;
    }
    struct save save = {.run = run, .row = exchange};
    return dp_store_atomically(store, save_body, &save);
}

dp_status dp_exchange_load(dp_store *store, const dp_hash *run, const uint8_t *id, dp_exchange_row *exchange)
{
    static const char sql[] = "SELECT " COLUMNS " FROM exchange WHERE run=? AND id=?";
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, run);
    dp_bind_view(&query, dp_view_of(id, DP_JOURNAL_ID_BYTES));
    DP_TRY(dp_query_next(&query));
    const dp_status status = read_row(&query, exchange);
    dp_query_end(&query);
    return status;
}

/* Fill list from a query with run and a limit; DP_TOOBIG if there is one row more than max. */
static dp_status list_rows(dp_store *store, const char *sql, const dp_hash *run, uint32_t limit, dp_exchange_row *list,
                           uint32_t max, uint32_t *count)
{
    uint32_t n = 0;
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, run);
    dp_bind_u64(&query, limit);
    dp_status status = dp_query_next(&query);
    while (status == DP_OK) {
        status = n < max ? read_row(&query, &list[n]) : DP_TOOBIG;
        if (status != DP_OK) {
            dp_query_end(&query);
            return status;
        }
        n++;
        status = dp_query_next(&query);
    }
    if (status != DP_NOTFOUND) {
        return status;
    }
    *count = n;
    return DP_OK;
}

dp_status dp_exchange_unfinished(dp_store *store, const dp_hash *run, dp_exchange_row *list, uint32_t max,
                                 uint32_t *count)
{
    static const char sql[] = "SELECT " COLUMNS " FROM exchange WHERE run=? AND state<3 ORDER BY seq LIMIT ?";
    return list_rows(store, sql, run, max + 1, list, max, count);
}

dp_status dp_exchange_last(dp_store *store, const dp_hash *run, dp_exchange_row *list, uint32_t max, uint32_t *count)
{
    static const char sql[] = "SELECT " COLUMNS " FROM exchange WHERE run=? ORDER BY seq DESC LIMIT ?";
    return list_rows(store, sql, run, max, list, max, count);
}
