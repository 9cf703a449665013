#include "daemon/control/list_stream.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "daemon/control/reply.h"
#include "daemon/peer/driver.h"

typedef enum phase {
    SEEK, /* the store counts back to the oldest of the last ones */
    DISK, /* entries of the store, up to the oldest of the event log */
    RING  /* entries of the event log */
} phase;

struct dp_stream {
    dp_stream *next;
    dp_daemon *daemon;
    dp_call call;
    dp_stream_wish wish;
    dp_history_chain chain; /* rounds */
    phase phase;
    bool busy; /* the store thread has its job */
    bool over; /* it is to be freed */
    uint64_t count;
    uint64_t wanted;    /* SEEK: entries still to be found in the store */
    uint64_t at;        /* the next id, or slot */
    uint64_t end;       /* SEEK, DISK: the first one that the event log has */
    uint64_t row;       /* rounds in the event log: number of the next row */
    uint64_t from_disk; /* rounds: the store had those of slots below */
    uint64_t before_ms; /* DISK: as in dp_history_page */
    uint64_t skip_row;  /* DISK for one round whose row is unsure: go on in RING after it; 0: no */
};

typedef struct page_job {
    dp_store_thread_job job;
    dp_stream *stream;
    dp_stream_kind kind;
    bool seeks;
    dp_history_filter filter;
    dp_history_chain chain;
    dp_history_page page;
    uint64_t wanted;
    dp_status status;
    union {
        dp_event_log_entry events[DP_STREAM_EVENTS];
        dp_event_log_round rounds[DP_STREAM_ROUNDS];
    } list;
} page_job;

static void sweep(dp_daemon *daemon);

/* ---- notices ---- */

static bool send_event(dp_stream *self, const dp_event_log_entry *entry)
{
    dp_packer packer;
    if (!dp_call_begin(&self->call, DP_CONTROL_NOTICE, &packer)) {
        return false;
    }
    dp_group map = dp_map_begin(&packer);
    dp_pack_entry(dp_pair(&map, "event"), entry);
    dp_group_end(&map);
    dp_call_end(&self->call, &packer);
    self->count++;
    return true;
}

static bool send_round(dp_stream *self, const dp_event_log_round *round)
{
    dp_packer packer;
    if (!dp_call_begin(&self->call, DP_CONTROL_NOTICE, &packer)) {
        return false;
    }
    dp_group map = dp_map_begin(&packer);
    dp_pack_round(dp_pair(&map, "round"), self->daemon, round);
    dp_group_end(&map);
    dp_call_end(&self->call, &packer);
    self->count++;
    return true;
}

static void send_count(dp_stream *self)
{
    dp_packer packer;
    if (dp_call_begin(&self->call, DP_CONTROL_REPLY, &packer)) {
        dp_group map = dp_map_begin(&packer);
        dp_pair_u64(&map, "count", self->count);
        if (self->wish.narrow) {
            dp_pair_bool(&map, "filtered", true);
        }
        dp_group_end(&map);
        dp_call_end(&self->call, &packer);
    }
}

static void fail(dp_stream *self, dp_status status)
{
    self->over = true;
    dp_call_fail(&self->call, 74, "E0136", "dpnode status   # then ask again",
                 "the history in the store cannot be read", dp_status_text(status));
}

/* ---- the event log ---- */

static uint64_t first_id(const dp_event_log *event_log)
{
    const dp_event_log_entry *const first = dp_event_log_entry_at(event_log, 0);
    return first != NULL ? first->id : dp_event_log_next_id(event_log);
}

/* Of the rounds of the chain that the event log has; UINT64_MAX: it has none. */
static uint64_t first_slot(const dp_event_log *event_log)
{
    const uint32_t kept = dp_event_log_rounds(event_log);
    for (uint32_t i = 0; i < kept; i++) {
        const dp_event_log_round *const row = dp_event_log_round_at(event_log, i);
        if (row->kind == DP_EVENT_LOG_SYNC) {
            return row->slot;
        }
    }
    return UINT64_MAX;
}

static uint64_t first_row(const dp_event_log *event_log)
{
    return dp_event_log_rounds_total(event_log) - dp_event_log_rounds(event_log);
}

/* Is this row of the event log one of those after what the client has? A row with a number is, by
 * that: slots are given again when the chain goes back (FORK). */
static bool is_after(const dp_stream *self, const dp_event_log_round *row)
{
    const bool goes_on = self->wish.after != 0 || self->wish.after_slot != 0;
    if (row->kind == DP_EVENT_LOG_GOSSIP || (row->seq != 0 && goes_on)) {
        return (self->wish.after == 0 || row->seq > self->wish.after) &&
               (row->kind == DP_EVENT_LOG_GOSSIP || row->slot >= self->from_disk);
    }
    return row->slot >= self->at && (self->wish.after_slot != 0 || !goes_on);
}

/* One page of events. False: there are no more now. */
static bool ring_events(dp_stream *self)
{
    const dp_event_log *const event_log = self->daemon->event_log;
    const uint64_t first = first_id(event_log);
    uint32_t n = 0;
    if (first > self->at) { /* A client that reads slowly: the event log has dropped some. */
        self->phase = DISK;
        self->end = first;
        return true;
    }
    while (n < DP_STREAM_EVENTS && self->at < dp_event_log_next_id(event_log)) {
        const dp_event_log_entry *const entry =
            dp_event_log_entry_at(event_log, (uint32_t)(self->at - first));
        self->at++;
        if (dp_history_takes_event(&self->wish.filter, entry)) {
            n++;
            if (!send_event(self, entry)) {
                self->over = true;
                return false;
            }
        }
    }
    return self->at < dp_event_log_next_id(event_log);
}

/* The same of rounds. */
static bool ring_rounds(dp_stream *self)
{
    const dp_event_log *const event_log = self->daemon->event_log;
    const uint64_t first = first_row(event_log);
    uint32_t n = 0;
    if (first > self->row) { /* As above. */
        self->row = first;
        self->end = first_slot(event_log);
        self->phase = self->end > self->at ? DISK : RING;
        return true;
    }
    while (n < DP_STREAM_ROUNDS && self->row < dp_event_log_rounds_total(event_log)) {
        const dp_event_log_round *const row =
            dp_event_log_round_at(event_log, (uint32_t)(self->row - first));
        const bool after = is_after(self, row);
        if (after && dp_history_is_unsure(&self->wish.filter, row)) {
            self->phase = DISK; /* This one record. */
            self->at = row->slot;
            self->end = row->slot + 1;
            self->skip_row = ++self->row;
            return true;
        }
        self->row++;
        if (row->kind == DP_EVENT_LOG_SYNC && (after || row->slot >= self->at)) {
            self->at = row->slot + 1;
        }
        if (after && dp_history_takes_round(&self->wish.filter, row)) {
            n++;
            if (!send_round(self, row)) {
                self->over = true;
                return false;
            }
        }
    }
    return self->row < dp_event_log_rounds_total(event_log);
}

/* ---- the store ---- */

static void run_page(dp_store_thread_job *job, dp_store *store)
{
    page_job *const self = (page_job *)job;
    bool over = true;
    if (self->seeks && self->kind == DP_STREAM_OF_EVENTS) {
        self->status =
            dp_history_events_back(store, &self->filter, &self->page.at, &self->wanted, &over);
    } else if (self->seeks) {
        self->status = dp_history_rounds_back(store, &self->chain, &self->filter, &self->page.at,
                                              &self->wanted, &over);
    } else if (self->kind == DP_STREAM_OF_EVENTS) {
        self->status = dp_history_events(store, &self->filter, &self->page, self->list.events);
        over = self->page.over || self->page.n > 0;
    } else {
        self->status =
            dp_history_rounds(store, &self->chain, &self->filter, &self->page, self->list.rounds);
        over = self->page.over || self->page.n > 0;
    }
    job->again = self->status == DP_OK && !over; /* Others run in between. */
}

/* The row of a round in the event log knows more than its record. */
static const dp_event_log_round *best_row(const dp_stream *self, const dp_event_log_round *row)
{
    const dp_event_log_round *const kept =
        dp_event_log_round_find(self->daemon->event_log, row->round);
    return kept != NULL && kept->slot == row->slot ? kept : row;
}

static void send_page(dp_stream *self, const page_job *job)
{
    bool sent = true;
    for (uint32_t i = 0; sent && i < job->page.n; i++) {
        sent = self->wish.kind == DP_STREAM_OF_EVENTS
                   ? send_event(self, &job->list.events[i])
                   : send_round(self, best_row(self, &job->list.rounds[i]));
    }
    self->over = self->over || !sent;
}

/* Everything below the end has been looked at. */
static void leave_disk(dp_stream *self)
{
    self->phase = RING;
    self->before_ms = 0;
    if (self->end != UINT64_MAX) {
        self->from_disk = self->end;
    }
    if (self->skip_row != 0) {
        self->row = self->skip_row;
        self->skip_row = 0;
        self->at = self->end;
    } else if (self->end != UINT64_MAX && self->end > self->at) {
        self->at = self->end;
    }
}

static void done_page(dp_store_thread_job *job)
{
    page_job *const done = (page_job *)job;
    dp_stream *const self = done->stream;
    self->busy = false;
    if (self->over) {
        dp_free(done);
        sweep(self->daemon);
        return;
    }
    if (done->status != DP_OK) {
        fail(self, done->status);
    } else if (done->seeks) {
        self->phase = DISK;
        self->at = done->page.at;
    } else {
        self->at = done->page.at;
        self->before_ms = done->page.before_ms;
        send_page(self, done);
        if (done->page.over) {
            leave_disk(self);
        }
    }
    dp_free(done);
    dp_streams_on_room(self->daemon, self->call.client);
}

/* A page, or the way back. */
static void ask_store(dp_stream *self)
{
    page_job *const job = dp_alloc(1, sizeof *job);
    if (job == NULL) {
        fail(self, DP_NOMEM);
        return;
    }
    job->job.run = run_page;
    job->job.done = done_page;
    job->stream = self;
    job->kind = self->wish.kind;
    job->seeks = self->phase == SEEK;
    job->filter = self->wish.filter;
    job->chain = self->chain;
    job->wanted = self->wanted;
    job->page = (dp_history_page){.at = job->seeks ? self->end : self->at,
                                  .end = self->end,
                                  .max = self->wish.kind == DP_STREAM_OF_EVENTS ? DP_STREAM_EVENTS
                                                                                : DP_STREAM_ROUNDS,
                                  .before_ms = self->before_ms};
    const dp_status status =
        dp_store_thread_post(self->daemon->store_thread, &job->job, DP_STORE_THREAD_BULK);
    if (status != DP_OK) {
        dp_free(job);
        fail(self, status);
        return;
    }
    self->busy = true;
}

/* ---- a stream ---- */

/* False: the node has left the run of this list; then it is over. */
static bool is_in_run(dp_stream *self)
{
    const dp_driver *const driver = self->daemon->driver;
    if (self->wish.kind == DP_STREAM_OF_EVENTS ||
        (driver != NULL && dp_hash_equal(&dp_driver_run_identity(driver)->run, &self->chain.run))) {
        return true;
    }
    self->over = true;
    dp_call_fail(&self->call, 69, "E0110", "dpnode status   # shows its run, if it has another",
                 "this node has no run", "it has left the run of this list");
    return false;
}

static void pump(dp_stream *self)
{
    while (!self->busy && !self->over) {
        if (!dp_call_alive(&self->call)) {
            self->over = true;
        } else if (!is_in_run(self) || dp_call_waiting(&self->call) > DP_STREAM_WAITING) {
            return;
        } else if (self->phase != RING) {
            ask_store(self);
        } else if (!(self->wish.kind == DP_STREAM_OF_EVENTS ? ring_events(self)
                                                            : ring_rounds(self))) {
            if (self->wish.follow) {
                return;
            }
            if (!self->over) {
                send_count(self);
            }
            self->over = true;
        }
    }
}

/* A call of the client may close it, which marks streams: only the outermost call frees them. */
static void sweep(dp_daemon *daemon)
{
    dp_stream **at = &daemon->streams;
    while (daemon->streams_depth == 0 && *at != NULL) {
        dp_stream *const self = *at;
        if (self->over && !self->busy) {
            *at = self->next;
            daemon->n_streams--;
            dp_free(self);
        } else {
            at = &self->next;
        }
    }
}

void dp_streams_on_entry(dp_daemon *daemon, dp_stream_kind kind)
{
    daemon->streams_depth++;
    for (dp_stream *at = daemon->streams; at != NULL; at = at->next) {
        if (at->wish.kind == kind && at->wish.follow) {
            pump(at);
        }
    }
    daemon->streams_depth--;
    sweep(daemon);
}

void dp_streams_on_room(dp_daemon *daemon, uint64_t client)
{
    daemon->streams_depth++;
    for (dp_stream *at = daemon->streams; at != NULL; at = at->next) {
        if (at->call.client == client) {
            pump(at);
        }
    }
    daemon->streams_depth--;
    sweep(daemon);
}

void dp_streams_on_gone(dp_daemon *daemon, uint64_t client)
{
    for (dp_stream *at = daemon->streams; at != NULL; at = at->next) {
        at->over = at->over || at->call.client == client;
    }
    sweep(daemon);
}

void dp_streams_close(dp_daemon *daemon)
{
    for (dp_stream *at = daemon->streams; at != NULL; at = at->next) {
        at->over = true;
    }
    sweep(daemon);
}

/* Goes back in the event log over the last ones that are wanted. Without enough of them there the
 * store has the others. */
static void seek_events(dp_stream *self)
{
    const dp_event_log *const event_log = self->daemon->event_log;
    const uint64_t first = first_id(event_log);
    const uint64_t low = self->wish.after + 1;
    uint64_t at = dp_event_log_next_id(event_log);
    while (at > first && at > low && self->wanted > 0) {
        at--;
        self->wanted -= dp_history_takes_event(
            &self->wish.filter, dp_event_log_entry_at(event_log, (uint32_t)(at - first)));
    }
    const bool whole = self->wanted == 0 || at <= low;
    self->end = first;
    self->at = whole ? (at > low ? at : low) : low;
    self->phase = whole ? RING : self->wish.last == UINT64_MAX ? DISK : SEEK;
}

static void seek_rounds(dp_stream *self)
{
    const dp_event_log *const event_log = self->daemon->event_log;
    const uint64_t first = first_row(event_log);
    const bool by_slot = self->wish.after_slot != 0 || self->wish.after == 0;
    bool unsure = false;
    uint64_t head = 0;
    self->at = self->wish.after_slot != 0 ? self->wish.after_slot + 1 : 0;
    self->row = dp_event_log_rounds_total(event_log);
    while (self->row > first && self->wanted > 0 && !unsure) {
        const dp_event_log_round *const row =
            dp_event_log_round_at(event_log, (uint32_t)(--self->row - first));
        unsure = dp_history_is_unsure(&self->wish.filter, row);
        head = row->kind == DP_EVENT_LOG_SYNC && row->slot > head ? row->slot : head;
        self->wanted -= is_after(self, row) && dp_history_takes_round(&self->wish.filter, row);
    }
    self->end = unsure ? head + 1 : first_slot(event_log);
    if (unsure) { /* All records from the store. */
        self->wanted = self->wish.last;
        self->row = first;
    }
    self->phase = !by_slot || self->wanted == 0 || self->end <= self->at || self->end <= 1 ? RING
                  : self->wish.last == UINT64_MAX                                          ? DISK
                                                                                           : SEEK;
}

/* False after an error reply. */
static bool has_place(const dp_daemon *daemon, const dp_call *call)
{
    uint32_t n = 0;
    for (const dp_stream *at = daemon->streams; at != NULL; at = at->next) {
        n += at->call.client == call->client;
    }
    if (n < DP_STREAMS_OF_CLIENT_MAX && daemon->n_streams < DP_STREAMS_MAX) {
        return true;
    }
    dp_call_fail(call, 75, "E0137", "wait for the end of one of them, or close it",
                 "too many lists are being read at once", "the daemon sends a few at a time");
    return false;
}

void dp_stream_open(dp_daemon *daemon, const dp_call *call, const dp_stream_wish *wish)
{
    if (!has_place(daemon, call)) {
        return;
    }
    dp_stream *const self = dp_alloc(1, sizeof *self);
    if (self == NULL) {
        dp_call_fail(call, 70, "E0199", "", "out of memory", "");
        return;
    }
    self->daemon = daemon;
    self->call = *call;
    self->wish = *wish;
    if (daemon->driver != NULL) {
        self->chain.run = dp_driver_run_identity(daemon->driver)->run;
    }
    self->chain.self = dp_identity_peer(&daemon->identity);
    if (wish->follow) {
        self->wish.filter.until_ms = UINT64_MAX;
    }
    if (wish->after != 0 || wish->after_slot != 0) {
        self->wish.last = UINT64_MAX;
    }
    self->wanted = self->wish.last;
    if (wish->kind == DP_STREAM_OF_EVENTS) {
        seek_events(self);
    } else {
        seek_rounds(self);
    }
    self->next = daemon->streams;
    daemon->streams = self;
    daemon->n_streams++;
    dp_streams_on_room(daemon, call->client);
}
