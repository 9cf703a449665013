#include "store/chain.h"

#include "store/inside.h"

dp_status dp_chain_head(dp_store *store, const dp_hash *run, dp_chain_tip *head)
{
    static const char sql[] = "SELECT run,slot,hash,chk FROM head WHERE run=?";
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, run);
    DP_TRY(dp_query_next(&query));
    const dp_status status = dp_column_check(&query, 0, 2);
    if (status == DP_OK) {
        head->slot = dp_column_u64(&query, 1);
        head->hash = dp_column_hash(&query, 2);
    }
    dp_query_end(&query);
    return status;
}

static const char read_sql[] =
    "SELECT run,slot,hash,record,cert,chk FROM record WHERE run=? AND slot=?";

/* DP_OK: the slot holds this very record. DP_NOTFOUND, DP_DIVERGED, DP_CORRUPT. */
static dp_status compare(dp_store *store, const dp_hash *run, const dp_chain_record *row)
{
    dp_query query = dp_query_of(&store->meta, read_sql);
    dp_bind_hash(&query, run);
    dp_bind_u64(&query, row->slot);
    DP_TRY(dp_query_next(&query));
    dp_status status = dp_column_check(&query, 0, 4);
    if (status == DP_OK && !dp_view_equal(dp_column_view(&query, 3), row->record)) {
        status = DP_DIVERGED;
    }
    dp_query_end(&query);
    return status;
}

struct append {
    const dp_hash *run;
    const dp_chain_record *row;
};

static dp_status put_head(dp_store *store, const dp_hash *run, uint64_t slot, const dp_hash *hash)
{
    static const char sql[] = "INSERT OR REPLACE INTO head(run,slot,hash,chk) VALUES(?,?,?,?)";
    dp_query head = dp_query_of(&store->meta, sql);
    dp_bind_hash(&head, run);
    dp_bind_u64(&head, slot);
    dp_bind_hash(&head, hash);
    dp_bind_check(&head);
    return dp_query_run(&head);
}

static dp_status append_body(dp_store *store, void *context)
{
    static const char record_sql[] =
        "INSERT INTO record(run,slot,hash,record,cert,chk) VALUES(?,?,?,?,?,?)";
    const struct append *append = (const struct append *)context;
    const dp_chain_record *row = append->row;
    dp_query record = dp_query_of(&store->meta, record_sql);
    dp_bind_hash(&record, append->run);
    dp_bind_u64(&record, row->slot);
    dp_bind_hash(&record, &row->hash);
    dp_bind_view(&record, row->record);
    dp_bind_view(&record, row->cert);
    dp_bind_check(&record);
    DP_TRY(dp_query_run(&record));
    return put_head(store, append->run, row->slot, &row->hash);
}

dp_status dp_chain_append(dp_store *store, const dp_hash *run, const dp_chain_record *row)
{
    if (row->record.size > DP_CHAIN_RECORD_MAX || row->cert.size > DP_CHAIN_CERT_MAX ||
        row->slot > INT64_MAX) {
        return DP_TOOBIG;
    }
    dp_chain_tip head;
    const dp_status found = dp_chain_head(store, run, &head);
    if (found != DP_OK && found != DP_NOTFOUND) {
        return found;
    }
    if (found == DP_OK && row->slot <= head.slot) {
        const dp_status same = compare(store, run, row);
        return same == DP_NOTFOUND ? DP_BADARG : same; /* Below the first slot of the chain. */
    }
    if (found == DP_OK && row->slot != head.slot + 1) {
        return DP_BADARG;
    }
    struct append append = {.run = run, .row = row};
    return dp_store_atomically(store, append_body, &append);
}

struct fork {
    struct append append;
    uint64_t round;
};

static dp_status fork_body(dp_store *store, void *context)
{
    static const char drop_sql[] = "DELETE FROM record WHERE run=? AND slot>=?";
    /* A recovered one stays: it may be all that is left of a chain that was lost. */
    static const char ckpt_sql[] =
        "DELETE FROM ckpt WHERE run=? AND round>? AND state_root<>zeroblob(32)";
    struct fork *fork = (struct fork *)context;
    dp_query drop = dp_query_of(&store->meta, drop_sql);
    dp_bind_hash(&drop, fork->append.run);
    dp_bind_u64(&drop, fork->append.row->slot);
    DP_TRY(dp_query_run(&drop));
    dp_query ckpt = dp_query_of(&store->meta, ckpt_sql);
    dp_bind_hash(&ckpt, fork->append.run);
    dp_bind_u64(&ckpt, fork->round);
    DP_TRY(dp_query_run(&ckpt));
    return append_body(store, &fork->append);
}

dp_status dp_chain_fork(dp_store *store, const dp_hash *run, const dp_chain_record *row,
                        uint64_t round, uint64_t *dropped)
{
    if (row->record.size > DP_CHAIN_RECORD_MAX || row->cert.size > DP_CHAIN_CERT_MAX ||
        row->slot > INT64_MAX || round > INT64_MAX) {
        return DP_TOOBIG;
    }
    dp_chain_tip head = {0};
    const dp_status found = dp_chain_head(store, run, &head);
    if (found != DP_OK && found != DP_NOTFOUND) {
        return found;
    }
    if (row->slot == 0 || row->slot > head.slot + 1) {
        return DP_BADARG;
    }
    struct fork fork = {.append = {.run = run, .row = row}, .round = round};
    DP_TRY(dp_store_atomically(store, fork_body, &fork));
    *dropped = head.slot + 1 - row->slot;
    return DP_OK;
}

static dp_status read_row(dp_query *query, dp_chain_record *row)
{
    DP_TRY(dp_column_check(query, 0, 4));
    row->slot = dp_column_u64(query, 1);
    row->hash = dp_column_hash(query, 2);
    row->record = dp_column_view(query, 3);
    row->cert = dp_column_view(query, 4);
    return DP_OK;
}

static dp_status copy_row(const dp_chain_record *row, dp_buf *record, dp_buf *cert, dp_hash *hash)
{
    const size_t before = record != NULL ? record->size : 0;
    if (record != NULL) {
        DP_TRY(dp_buf_append(record, row->record));
    }
    if (cert != NULL) {
        const dp_status status = dp_buf_append(cert, row->cert);
        if (status != DP_OK) {
            if (record != NULL) {
                record->size = before; /* Both or neither. */
            }
            return status;
        }
    }
    if (hash != NULL) {
        *hash = row->hash;
    }
    return DP_OK;
}

dp_status dp_chain_read(dp_store *store, const dp_hash *run, uint64_t slot, dp_buf *record,
                        dp_buf *cert, dp_hash *hash)
{
    dp_query query = dp_query_of(&store->meta, read_sql);
    dp_bind_hash(&query, run);
    dp_bind_u64(&query, slot);
    DP_TRY(dp_query_next(&query));
    dp_chain_record row;
    dp_status status = read_row(&query, &row);
    if (status == DP_OK) {
        status = copy_row(&row, record, cert, hash);
    }
    dp_query_end(&query);
    return status;
}

dp_status dp_chain_each(dp_store *store, const dp_hash *run, uint64_t from, uint32_t count,
                        dp_chain_visit *visit, void *context)
{
    static const char sql[] = "SELECT run,slot,hash,record,cert,chk FROM record WHERE run=? AND "
                              "slot>=? ORDER BY slot LIMIT ?";
    uint64_t expected = from;
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, run);
    dp_bind_u64(&query, from);
    dp_bind_u64(&query, count);
    dp_status status = dp_query_next(&query);
    while (status == DP_OK) {
        dp_chain_record row;
        /* Slots follow each other without a gap. A row of another slot means that one is missing,
         * also if that row is damaged. */
        if (dp_column_u64(&query, 1) == expected) {
            status = read_row(&query, &row);
        } else {
            status = expected == from ? DP_NOTFOUND : DP_CORRUPT;
        }
        if (status == DP_OK) {
            status = visit(&row, context);
        }
        if (status != DP_OK) {
            dp_query_end(&query);
            return status;
        }
        expected++;
        status = dp_query_next(&query);
    }
    return status == DP_NOTFOUND ? DP_OK : status;
}

struct cut {
    const dp_hash *run;
    uint64_t last;
};

static dp_status cut_body(dp_store *store, void *context)
{
    static const char drop_sql[] = "DELETE FROM record WHERE run=? AND slot>?";
    static const char head_sql[] = "DELETE FROM head WHERE run=?";
    const struct cut *cut = (const struct cut *)context;
    dp_hash hash;
    if (cut->last > 0) {
        DP_TRY(dp_chain_read(store, cut->run, cut->last, NULL, NULL, &hash));
    }
    dp_query drop = dp_query_of(&store->meta, drop_sql);
    dp_bind_hash(&drop, cut->run);
    dp_bind_u64(&drop, cut->last);
    DP_TRY(dp_query_run(&drop));
    if (cut->last > 0) {
        return put_head(store, cut->run, cut->last, &hash);
    }
    dp_query head = dp_query_of(&store->meta, head_sql);
    dp_bind_hash(&head, cut->run);
    return dp_query_run(&head);
}

dp_status dp_chain_cut(dp_store *store, const dp_hash *run, uint64_t last)
{
    struct cut cut = {.run = run, .last = last};
    return last > INT64_MAX ? DP_TOOBIG : dp_store_atomically(store, cut_body, &cut);
}
