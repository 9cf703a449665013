#include <string.h>

#include "store/inside.h"
#include "store/journal.h"

struct batch {
    const dp_journal_event *events;
    uint32_t count;
};

static bool is_text(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

static dp_status append_body(dp_store *store, void *context)
{
    static const char insert_sql[] = "INSERT INTO event(time_ms,round,name,text) VALUES(?,?,?,?)";
    static const char trim_sql[] = "DELETE FROM event WHERE id<=(SELECT max(id) FROM event)-?";
    const struct batch *batch = (const struct batch *)context;
    for (uint32_t i = 0; i < batch->count; i++) {
        dp_query insert = dp_query_of(&store->meta, insert_sql);
        dp_bind_u64(&insert, batch->events[i].time_ms);
        dp_bind_u64(&insert, batch->events[i].round);
        dp_bind_text(&insert, batch->events[i].name);
        dp_bind_text(&insert, batch->events[i].text);
        DP_TRY(dp_query_run(&insert));
    }
    dp_query trim = dp_query_of(&store->meta, trim_sql);
    dp_bind_i64(&trim, DP_JOURNAL_EVENTS_MAX);
    return dp_query_run(&trim);
}

dp_status dp_journal_append(dp_store *store, const dp_journal_event *events, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!is_text(events[i].name, sizeof events[i].name) ||
            !is_text(events[i].text, sizeof events[i].text)) {
            return DP_BADARG;
        }
    }
    struct batch batch = {.events = events, .count = count};
    return count > 0 ? dp_store_atomically(store, append_body, &batch) : DP_OK;
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
        dp_column_text(query, 3, event->name, sizeof event->name);
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
    static const char sql[] =
        "SELECT id,time_ms,round,name,text FROM event WHERE id>? ORDER BY id LIMIT ?";
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_u64(&query, after_id);
    dp_bind_u64(&query, max);
    return list_events(&query, list, count);
}

dp_status dp_journal_tail(dp_store *store, dp_journal_event *list, uint32_t max, uint32_t *count)
{
    static const char sql[] = "SELECT id,time_ms,round,name,text FROM"
                              " (SELECT * FROM event ORDER BY id DESC LIMIT ?) ORDER BY id";
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_u64(&query, max);
    return list_events(&query, list, count);
}
