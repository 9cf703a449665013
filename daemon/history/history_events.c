/* Events of the journal that a filter takes. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "daemon/history/history.h"

bool dp_history_takes_event(const dp_history_filter *filter, const dp_event_log_entry *entry)
{
    char id[DP_PEER_TEXT_MAX];
    if (entry->time_ms < filter->since_ms || entry->time_ms >= filter->until_ms ||
        (filter->has_round && entry->round != filter->round)) {
        return false;
    }
    if (!filter->has_peer || dp_peer_equal(&entry->peer, &filter->peer)) {
        return true;
    }
    dp_peer_text(&filter->peer, id);
    return strstr(entry->text, id) != NULL;
}

static void read_row(const dp_journal_event *row, dp_event_log_entry *entry)
{
    *entry = (dp_event_log_entry){.id = row->id, .time_ms = row->time_ms, .round = row->round};
    _Static_assert(sizeof entry->peer == sizeof row->peer, "both are ids");
    memcpy(&entry->peer, &row->peer, sizeof entry->peer);
    snprintf(entry->name, sizeof entry->name, "%.*s", DP_EVENT_LOG_NAME_MAX - 1, row->name);
    snprintf(entry->text, sizeof entry->text, "%.*s", DP_EVENT_LOG_TEXT_MAX - 1, row->text);
}

dp_status dp_history_events(dp_store *store, const dp_history_filter *filter, dp_history_page *page,
                            dp_event_log_entry *list)
{
    static dp_journal_event rows[DP_HISTORY_EVENTS_LOOK]; /* Store thread only. */
    uint32_t count = 0;
    dp_assert(page->max > 0);
    page->n = 0;
    DP_TRY(dp_journal_read(store, page->at > 0 ? page->at - 1 : 0, rows, DP_HISTORY_EVENTS_LOOK,
                           &count));
    page->over = count < DP_HISTORY_EVENTS_LOOK;
    for (uint32_t i = 0; i < count; i++) {
        if (rows[i].id >= page->end) {
            page->over = true;
            return DP_OK;
        }
        if (page->n == page->max) {
            page->over = false;
            return DP_OK;
        }
        page->at = rows[i].id + 1;
        read_row(&rows[i], &list[page->n]);
        page->n += dp_history_takes_event(filter, &list[page->n]);
    }
    return DP_OK;
}

dp_status dp_history_events_back(dp_store *store, const dp_history_filter *filter, uint64_t *at,
                                 uint64_t *wanted, bool *over)
{
    static dp_journal_event rows[DP_HISTORY_EVENTS_LOOK]; /* Store thread only. */
    uint32_t count = 0;
    DP_TRY(dp_journal_back(store, *at, rows, DP_HISTORY_EVENTS_LOOK, &count));
    for (uint32_t i = count; i > 0 && *wanted > 0;) {
        dp_event_log_entry entry;
        *at = rows[--i].id;
        read_row(&rows[i], &entry);
        *wanted -= dp_history_takes_event(filter, &entry);
    }
    *over = *wanted == 0 || count < DP_HISTORY_EVENTS_LOOK;
    return DP_OK;
}
