/* The column name holds the event's name, and after a space the peer's id in hexadecimal if the
 * event is about one: a daemon of an earlier version reads and writes the same table. */
#include <stdio.h>
#include <string.h>

#include "store/inside.h"
#include "store/journal.h"

enum { COLUMN_MAX = DP_JOURNAL_NAME_MAX + 1 + 2 * DP_HASH_BYTES };

#define COLUMNS "id,time_ms,round,name,text"

struct batch {
    const dp_journal_event *events;
    uint32_t count;
    uint64_t rows; /* of the table, after it */
};

static bool is_text(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

static dp_status count_rows(dp_store *store, uint64_t *rows)
{
    int64_t count = 0;
    DP_TRY(dp_sql_number(&store->meta, "SELECT count(*) FROM event", &count));
    *rows = (uint64_t)count;
    return DP_OK;
}

static dp_status insert(dp_store *store, const dp_journal_event *event)
{
    static const char next_sql[] = "INSERT INTO event(time_ms,round,name,text) VALUES(?,?,?,?)";
    static const char id_sql[] = "INSERT OR IGNORE INTO event(" COLUMNS ") VALUES(?,?,?,?,?)";
    char name[COLUMN_MAX];
    char hex[2 * DP_HASH_BYTES + 1] = "";
    const bool has_peer = !dp_hash_is_zero(&event->peer);
    if (has_peer) {
        dp_hex(dp_view_of(event->peer.bytes, DP_HASH_BYTES), hex);
    }
    snprintf(name, sizeof name, "%s%s%s", event->name, has_peer ? " " : "", hex);
    dp_query query = dp_query_of(&store->meta, event->id == 0 ? next_sql : id_sql);
    if (event->id != 0) {
        dp_bind_u64(&query, event->id);
    }
    dp_bind_u64(&query, event->time_ms);
    dp_bind_u64(&query, event->round);
    dp_bind_text(&query, name);
    dp_bind_text(&query, event->text);
    return dp_query_run(&query);
}

/* The ids have gaps, so the oldest rows are counted off. */
static dp_status append_body(dp_store *store, void *context)
{
    static const char trim_sql[] =
        "DELETE FROM event WHERE id IN(SELECT id FROM event ORDER BY id LIMIT ?)";
    struct batch *batch = (struct batch *)context;
    uint64_t rows = store->n_events;
    if (!store->events_counted) {
        DP_TRY(count_rows(store, &rows));
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        DP_TRY(insert(store, &batch->events[i]));
        rows += (uint64_t)sqlite3_changes(store->meta.db);
    }
    if (rows > DP_JOURNAL_EVENTS_MAX) {
        dp_query trim = dp_query_of(&store->meta, trim_sql);
        dp_bind_u64(&trim, rows - DP_JOURNAL_EVENTS_MAX);
        DP_TRY(dp_query_run(&trim));
        rows = DP_JOURNAL_EVENTS_MAX;
    }
    batch->rows = rows;
    return DP_OK;
}

dp_status dp_journal_append(dp_store *store, const dp_journal_event *events, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!is_text(events[i].name, sizeof events[i].name) ||
            !is_text(events[i].text, sizeof events[i].text) ||
            strchr(events[i].name, ' ') != NULL) {
            return DP_BADARG;
        }
    }
    struct batch batch = {.events = events, .count = count};
    if (count == 0) {
        return DP_OK;
    }
    const dp_status status = dp_store_atomically(store, append_body, &batch);
    /* An outer transaction may still be rolled back: the next append counts again. */
    store->events_counted = status == DP_OK && store->depth == 0;
    store->n_events = batch.rows;
    return status;
}

static void read_name(const dp_query *query, dp_journal_event *event)
{
    char column[COLUMN_MAX];
    dp_column_text(query, 3, column, sizeof column);
    char *const space = strchr(column, ' ');
    event->peer = (dp_hash){{0}};
    if (space != NULL) {
        *space = '\0';
        /* Other text after the name is no peer. */
        DP_IGNORE(dp_unhex(space + 1, event->peer.bytes, DP_HASH_BYTES));
    }
    snprintf(event->name, sizeof event->name, "%.*s", DP_JOURNAL_NAME_MAX - 1, column);
}

static dp_status list_events(dp_query *query, dp_journal_event *list, uint32_t *count)
{
    uint32_t n = 0;
    dp_status status = dp_query_next(query);
    while (status == DP_OK) {
        dp_journal_event *event = &list[n++];
        event->id = dp_column_u64(query, 0);
        event->time_ms = dp_column_u64(query, 1);
        event->round = dp_column_u64(query, 2);
        read_name(query, event);
        dp_column_text(query, 4, event->text, sizeof event->text);
        status = dp_query_next(query);
    }
    if (status != DP_NOTFOUND) {
        return status;
    }
    *count = n;
    return DP_OK;
}

dp_status dp_journal_read(dp_store *store, uint64_t after_id, dp_journal_event *list, uint32_t max,
                          uint32_t *count)
{
    static const char sql[] = "SELECT " COLUMNS " FROM event WHERE id>? ORDER BY id LIMIT ?";
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_u64(&query, after_id < INT64_MAX ? after_id : INT64_MAX);
    dp_bind_u64(&query, max);
    return list_events(&query, list, count);
}

dp_status dp_journal_back(dp_store *store, uint64_t before_id, dp_journal_event *list, uint32_t max,
                          uint32_t *count)
{
    static const char sql[] =
        "SELECT " COLUMNS
        " FROM (SELECT * FROM event WHERE id<? ORDER BY id DESC LIMIT ?) ORDER BY id";
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_u64(&query, before_id < INT64_MAX ? before_id : INT64_MAX);
    dp_bind_u64(&query, max);
    return list_events(&query, list, count);
}

dp_status dp_journal_last(dp_store *store, uint64_t *id)
{
    int64_t last = 0;
    /* AUTOINCREMENT keeps it in this table of SQLite, also after its row is gone. */
    const dp_status status =
        dp_sql_number(&store->meta, "SELECT seq FROM sqlite_sequence WHERE name='event'", &last);
    if (status != DP_OK && status != DP_NOTFOUND) {
        return status;
    }
    *id = status == DP_OK && last > 0 ? (uint64_t)last : 0;
    return DP_OK;
}
