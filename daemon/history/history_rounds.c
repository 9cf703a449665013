/* Rounds of the chain that a filter takes. Slots follow each other from 1 on; times and rounds of
 * the records never fall from one slot to the next (gossip/ledger/valid.c), so both are searched by
 * halves. */
#include "base/assert.h"
#include "daemon/history/history.h"

bool dp_history_is_unsure(const dp_history_filter *filter, const dp_event_log_round *round)
{
    return filter->has_peer && round->kind == DP_EVENT_LOG_SYNC &&
           (round->listed > round->n_peers || round->active - round->listed > round->n_left_out);
}

static bool is_in_row(const dp_event_log_round *round, const dp_peer *peer)
{
    if (round->kind == DP_EVENT_LOG_GOSSIP) {
        return dp_peer_equal(&round->partner, peer);
    }
    for (uint32_t i = 0; i < round->n_peers; i++) {
        if (dp_peer_equal(&round->peers[i].peer, peer)) {
            return true;
        }
    }
    for (uint32_t i = 0; i < round->n_left_out; i++) {
        if (dp_peer_equal(&round->left_out[i].peer, peer)) {
            return true;
        }
    }
    return false;
}

bool dp_history_takes_round(const dp_history_filter *filter, const dp_event_log_round *round)
{
    return round->time_ms >= filter->since_ms && round->time_ms < filter->until_ms &&
           (!filter->has_peer || is_in_row(round, &filter->peer));
}

static bool is_in_record(const dp_record *record, const dp_peer *peer)
{
    for (uint32_t i = 0; i < record->n_listed; i++) {
        if (dp_peer_equal(&record->listed[i].peer, peer)) {
            return true;
        }
    }
    for (uint32_t i = 0; i < record->n_late; i++) {
        if (dp_peer_equal(&record->late[i], peer)) {
            return true;
        }
    }
    return false;
}

static bool takes_record(const dp_history_filter *filter, const dp_record *record)
{
    return record->kind == DP_RECORD_ROUND && record->time_ms >= filter->since_ms &&
           record->time_ms < filter->until_ms &&
           (!filter->has_peer || is_in_record(record, &filter->peer));
}

/* ---- one record ---- */

static dp_record decoded; /* Store thread only; large for a stack. */

static dp_status decode(const dp_chain_record *entry, void *context)
{
    (void)context;
    return dp_record_decode(&decoded, entry->record);
}

/* Reads one slot into decoded. DP_NOTFOUND. */
static dp_status read_slot(dp_store *store, const dp_run_id *run, uint64_t slot)
{
    decoded.slot = 0;
    DP_TRY(dp_chain_each(store, run, slot, 1, decode, NULL));
    return decoded.slot == slot ? DP_OK : DP_NOTFOUND;
}

/* A record of CONFIG has no round: looks for the first one that has, from this slot on. */
static dp_status skip_config(const dp_chain_record *entry, void *context)
{
    (void)context;
    DP_TRY(dp_record_decode(&decoded, entry->record));
    return decoded.kind == DP_RECORD_CONFIG ? DP_OK : DP_CLOSED;
}

static dp_status read_round_from(dp_store *store, const dp_run_id *run, uint64_t slot, uint64_t end)
{
    const dp_status status = dp_chain_each(
        store, run, slot, (uint32_t)(end - slot < UINT32_MAX ? end - slot : UINT32_MAX),
        skip_config, NULL);
    return status == DP_CLOSED ? DP_OK : status == DP_OK ? DP_NOTFOUND : status;
}

/* The first slot whose record has at least this time; head + 1: none. */
static dp_status slot_since(dp_store *store, const dp_run_id *run, uint64_t time_ms, uint64_t *slot)
{
    dp_chain_tip head;
    uint64_t low = 1;
    DP_TRY(dp_chain_head(store, run, &head));
    uint64_t high = head.slot + 1;
    while (low < high) { /* 64 times at most. */
        const uint64_t middle = low + (high - low) / 2;
        DP_TRY(read_slot(store, run, middle));
        if (decoded.time_ms < time_ms) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *slot = low;
    return DP_OK;
}

/* Reads the record of this round into decoded. DP_NOTFOUND. */
static dp_status find_round(dp_store *store, const dp_run_id *run, uint64_t round)
{
    dp_chain_tip head;
    uint64_t low = 1;
    DP_TRY(dp_chain_head(store, run, &head));
    uint64_t high = head.slot + 1;
    while (low < high) { /* 64 times at most. */
        const uint64_t middle = low + (high - low) / 2;
        const dp_status status = read_round_from(store, run, middle, high);
        if (status == DP_OK && decoded.kind == DP_RECORD_ROUND && decoded.round == round) {
            return DP_OK;
        }
        if (status == DP_OK && decoded.round < round) {
            low = decoded.slot + 1;
        } else if (status == DP_OK || status == DP_NOTFOUND) {
            high = middle;
        } else {
            return status;
        }
    }
    return DP_NOTFOUND;
}

/* ---- pages ---- */

typedef struct walk {
    const dp_history_chain *chain;
    const dp_history_filter *filter;
    dp_history_page *page;
    dp_event_log_round *list;
} walk;

static dp_status visit(const dp_chain_record *entry, void *context)
{
    walk *const self = context;
    dp_history_page *const page = self->page;
    if (entry->slot >= page->end || page->n == page->max) {
        page->over = entry->slot >= page->end;
        return DP_CLOSED;
    }
    DP_TRY(dp_record_decode(&decoded, entry->record));
    if (decoded.time_ms >= self->filter->until_ms) {
        page->over = true;
        return DP_CLOSED;
    }
    page->at = entry->slot + 1;
    if (decoded.kind != DP_RECORD_ROUND) {
        return DP_OK;
    }
    if (takes_record(self->filter, &decoded)) {
        dp_event_log_round *const row = &self->list[page->n++];
        dp_event_log_round_of_record(&decoded, &self->chain->self, row);
        row->duration_ms = page->before_ms != 0 ? decoded.time_ms - page->before_ms : 0;
    }
    page->before_ms = decoded.time_ms;
    return DP_OK;
}

/* Before the first record: its round has a length if the record before it is a round's. */
static void look_before(dp_store *store, const dp_history_chain *chain, dp_history_page *page)
{
    if (page->before_ms == 0 && page->at > 1 &&
        read_slot(store, &chain->run, page->at - 1) == DP_OK && decoded.kind == DP_RECORD_ROUND) {
        page->before_ms = decoded.time_ms;
    }
}

dp_status dp_history_rounds(dp_store *store, const dp_history_chain *chain,
                            const dp_history_filter *filter, dp_history_page *page,
                            dp_event_log_round *list)
{
    walk self = {.chain = chain, .filter = filter, .page = page, .list = list};
    uint64_t since = 0;
    dp_assert(page->max > 0);
    page->n = 0;
    page->over = false;
    if (filter->since_ms > 0 && page->before_ms == 0) {
        const dp_status status = slot_since(store, &chain->run, filter->since_ms, &since);
        page->over = status == DP_NOTFOUND;
        if (status != DP_OK) {
            return page->over ? DP_OK : status;
        }
    }
    page->at = page->at > since ? page->at : since;
    page->at = page->at > 1 ? page->at : 1;
    look_before(store, chain, page);
    const uint64_t from = page->at;
    const dp_status status =
        dp_chain_each(store, &chain->run, from, DP_HISTORY_ROUNDS_LOOK, visit, &self);
    if (status == DP_OK && page->at < from + DP_HISTORY_ROUNDS_LOOK) {
        page->over = true; /* The head. */
    }
    return status == DP_CLOSED || status == DP_NOTFOUND ? DP_OK : status;
}

typedef struct tally {
    const dp_history_filter *filter;
    bool takes[DP_HISTORY_ROUNDS_LOOK];
    bool too_old[DP_HISTORY_ROUNDS_LOOK];
    uint32_t n;
} tally;

static dp_status count_visit(const dp_chain_record *entry, void *context)
{
    tally *const self = context;
    DP_TRY(dp_record_decode(&decoded, entry->record));
    self->takes[self->n] = takes_record(self->filter, &decoded);
    self->too_old[self->n++] = decoded.time_ms < self->filter->since_ms;
    return DP_OK;
}

dp_status dp_history_rounds_back(dp_store *store, const dp_history_chain *chain,
                                 const dp_history_filter *filter, uint64_t *at, uint64_t *wanted,
                                 bool *over)
{
    dp_chain_tip head;
    tally self = {.filter = filter};
    const dp_status found = dp_chain_head(store, &chain->run, &head);
    if (found != DP_OK) {
        *at = 1;
        *over = true;
        return found == DP_NOTFOUND ? DP_OK : found;
    }
    *at = *at <= head.slot ? *at : head.slot + 1;
    const uint64_t from = *at > DP_HISTORY_ROUNDS_LOOK ? *at - DP_HISTORY_ROUNDS_LOOK : 1;
    if (*at > from) {
        DP_TRY(dp_chain_each(store, &chain->run, from, (uint32_t)(*at - from), count_visit, &self));
    }
    while (self.n > 0 && *wanted > 0 && !self.too_old[self.n - 1]) {
        *at = from + --self.n;
        *wanted -= self.takes[self.n];
    }
    *over = *wanted == 0 || *at <= 1 || self.n > 0;
    return DP_OK;
}

dp_status dp_history_round(dp_store *store, const dp_history_chain *chain, uint64_t round,
                           dp_event_log_round *row)
{
    DP_TRY(find_round(store, &chain->run, round));
    const uint64_t slot = decoded.slot;
    dp_event_log_round_of_record(&decoded, &chain->self, row);
    const uint64_t time_ms = decoded.time_ms;
    if (slot > 1 && read_slot(store, &chain->run, slot - 1) == DP_OK &&
        decoded.kind == DP_RECORD_ROUND) {
        row->duration_ms = time_ms - decoded.time_ms;
    }
    return DP_OK;
}
