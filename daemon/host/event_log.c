#include "daemon/host/event_log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "daemon/host/event_text.h"
#include "store/journal.h"

enum { BATCH_MAX = 64 };

struct dp_event_log {
    dp_store_thread *store_thread;
    dp_event_log_hooks hooks;
    uv_timer_t *flush;
    uint64_t next_id;
    uint64_t next_seq; /* of rounds */
    uint64_t last_round_ms;
    uint32_t n_entries; /* all entries so far; the ring holds the last DP_EVENT_LOG_ENTRIES_MAX */
    uint32_t n_rounds;
    uint32_t n_forgotten; /* of these, the ones of an earlier run */
    dp_event_log_turnout turnout;
    uint32_t n_batch;
    uint64_t stragglers_round;
    uint32_t n_stragglers; /* of that round */
    dp_left_out stragglers[DP_EVENT_LOG_STRAGGLERS_MAX];
    struct {
        uint64_t round;
        dp_phases phases;
    } under_way[DP_EVENT_LOG_PHASES_MAX]; /* by round, modulo their number */
    dp_journal_event batch[BATCH_MAX];
    dp_event_log_entry entries[DP_EVENT_LOG_ENTRIES_MAX];
    dp_event_log_round rounds[DP_EVENT_LOG_ROUNDS_MAX];
};

typedef struct append_job {
    dp_store_thread_job job;
    uint32_t count;
    dp_journal_event events[];
} append_job;

static void run_append(dp_store_thread_job *job, dp_store *store)
{
    append_job *self = (append_job *)job;
    DP_IGNORE(dp_journal_append(store, self->events,
                                self->count)); /* A full disk must not stop training. */
}

static void done_append(dp_store_thread_job *job)
{
    dp_free(job);
}

void dp_event_log_flush(dp_event_log *event_log)
{
    if (event_log->n_batch == 0) {
        return;
    }
    append_job *job = dp_alloc(1, sizeof *job + event_log->n_batch * sizeof event_log->batch[0]);
    if (job != NULL) {
        job->job.run = run_append;
        job->job.done = done_append;
        job->count = event_log->n_batch;
        memcpy(job->events, event_log->batch, event_log->n_batch * sizeof event_log->batch[0]);
        if (dp_store_thread_post(event_log->store_thread, &job->job, DP_STORE_THREAD_BULK) !=
            DP_OK) {
            dp_free(job);
        }
    }
    event_log->n_batch = 0;
}

static void on_flush(uv_timer_t *timer)
{
    dp_event_log_flush(timer->data);
}

uint64_t dp_unix_ms(void)
{
    uv_timeval64_t now;
    return uv_gettimeofday(&now) == 0 ? (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_usec / 1000
                                      : 0;
}

uint64_t dp_boot_ms(void)
{
    struct timespec now = {0};
    const int failed = clock_gettime(CLOCK_BOOTTIME, &now);
    dp_assert(failed == 0);
    return (uint64_t)now.tv_sec * 1000U + (uint64_t)now.tv_nsec / 1000000U;
}

dp_status dp_event_log_open(dp_event_log **out, uv_loop_t *loop, dp_store_thread *store_thread,
                            const dp_event_log_hooks *hooks)
{
    dp_event_log *event_log = dp_alloc(1, sizeof *event_log);
    uv_timer_t *timer = dp_alloc(1, sizeof *timer);
    if (event_log == NULL || timer == NULL || uv_timer_init(loop, timer) != 0) {
        dp_free(event_log);
        dp_free(timer);
        return DP_NOMEM;
    }
    event_log->store_thread = store_thread;
    event_log->hooks = *hooks;
    event_log->next_id = 1;
    event_log->next_seq = 1;
    event_log->flush = timer;
    timer->data = event_log;
    uv_timer_start(timer, on_flush, DP_EVENT_LOG_FLUSH_MS, DP_EVENT_LOG_FLUSH_MS);
    *out = event_log;
    return DP_OK;
}

void dp_event_log_begin(dp_event_log *event_log, uint64_t first)
{
    dp_assert(event_log->n_entries == 0 && first > 0);
    event_log->next_id = first;
    event_log->next_seq = first;
}

void dp_event_log_close(dp_event_log *event_log)
{
    if (event_log == NULL) {
        return;
    }
    uv_close((uv_handle_t *)event_log->flush, (uv_close_cb)dp_free);
    dp_free(event_log);
}

static void add_entry(dp_event_log *event_log, dp_log_level level, const dp_event_log_entry *entry)
{
    dp_event_log_entry *slot = &event_log->entries[event_log->n_entries % DP_EVENT_LOG_ENTRIES_MAX];
    *slot = *entry;
    slot->id = event_log->next_id++;
    slot->time_ms = dp_unix_ms();
    event_log->n_entries++;
    if (slot->round != 0) {
        dp_log(level, slot->name, "round=%llu msg=%s", (unsigned long long)slot->round,
               DP_LOG_TEXT(slot->text));
    } else {
        dp_log(level, slot->name, "msg=%s", DP_LOG_TEXT(slot->text));
    }
    if (level >= DP_LOG_INFO) {
        dp_journal_event *row = &event_log->batch[event_log->n_batch++];
        *row = (dp_journal_event){.id = slot->id, .time_ms = slot->time_ms, .round = slot->round};
        _Static_assert(sizeof row->peer == sizeof slot->peer, "both are ids");
        memcpy(&row->peer, &slot->peer, sizeof row->peer);
        _Static_assert(sizeof row->name >= sizeof slot->name &&
                           sizeof row->text >= sizeof slot->text,
                       "it fits");
        memcpy(row->name, slot->name, sizeof slot->name);
        memcpy(row->text, slot->text, sizeof slot->text);
        if (event_log->n_batch == BATCH_MAX) {
            dp_event_log_flush(event_log);
        }
    }
    event_log->hooks.entry(event_log->hooks.context, slot);
}

void dp_event_log_add(dp_event_log *event_log, dp_log_level level, const char *name, uint64_t round,
                      const dp_peer *peer, const char *format, ...)
{
    if (event_log == NULL) { /* A late callback of a daemon that has ended. */
        return;
    }
    dp_event_log_entry entry = {.round = round};
    if (peer != NULL) {
        entry.peer = *peer;
    }
    snprintf(entry.name, sizeof entry.name, "%s", name);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(entry.text, sizeof entry.text, format, arguments);
    va_end(arguments);
    add_entry(event_log, level, &entry);
}

void dp_event_log_note(dp_event_log *event_log, const dp_note *note, const char *peer_name)
{
    dp_event_log_entry entry = {.round = note->round, .peer = note->peer, .code = note->code};
    char id[DP_PEER_TEXT_MAX];
    char who[64] = "an unknown peer";
    if (!dp_peer_is_zero(&note->peer)) {
        dp_peer_text(&note->peer, id);
        const bool named = peer_name != NULL && peer_name[0] != '\0';
        snprintf(who, sizeof who, named ? "%.32s (%s)" : "%.0s%s", named ? peer_name : "", id);
    }
    snprintf(entry.name, sizeof entry.name, "%s", dp_note_name(note->code));
    dp_event_text_write(note, who, entry.text, sizeof entry.text);
    add_entry(event_log, dp_event_text_level(note->code), &entry);
}

void dp_event_log_round_of_record(const dp_record *record, const dp_peer *self,
                                  dp_event_log_round *round)
{
    *round = (dp_event_log_round){.kind = DP_EVENT_LOG_SYNC,
                                  .round = record->round,
                                  .slot = record->slot,
                                  .time_ms = record->time_ms,
                                  .listed = record->n_listed,
                                  .active = record->n_listed + record->n_late};
    unsigned __int128 loss = 0;
    uint64_t tokens_with_loss = 0;
    for (uint32_t i = 0; i < record->n_listed; i++) {
        const dp_listed *listed = &record->listed[i];
        round->tokens += listed->tokens;
        round->bytes += listed->bytes;
        round->counted = round->counted || dp_peer_equal(&listed->peer, self);
        if (listed->loss_micro != 0) {
            loss += (unsigned __int128)listed->loss_micro * listed->tokens;
            tokens_with_loss += listed->tokens;
        }
        if (i >= DP_LISTED_DEFAULT) {
            continue; /* Number of rounds whose sums are kept. */
        }
        round->peers[i].peer = listed->peer;
        round->peers[i].steps = listed->steps;
        round->peers[i].tokens = listed->tokens;
        round->peers[i].q = listed->q;
        round->peers[i].age = dp_listed_age(record, i);
        round->n_peers = i + 1;
    }
    for (uint32_t i = 0; i < record->n_late && i < DP_EVENT_LOG_LEFT_OUT_MAX; i++) {
        round->left_out[i] =
            (dp_left_out){.peer = record->late[i], .cause = "its update was not ready in time"};
        round->n_left_out = i + 1;
    }
    round->lines = record->lines;
    round->parts = record->n_parts;
    for (uint32_t p = 0; p < record->n_parts; p++) {
        round->parts_empty += record->parts[p].has ? 0 : 1;
    }
    round->loss_micro = tokens_with_loss == 0 ? 0 : (uint64_t)(loss / tokens_with_loss);
}

dp_event_log_round *dp_event_log_round_find(dp_event_log *event_log, uint64_t round)
{
    const uint32_t kept = dp_event_log_rounds(event_log);
    for (uint32_t i = 0; i < kept; i++) {
        dp_event_log_round *row =
            &event_log->rounds[(event_log->n_rounds - 1 - i) % DP_EVENT_LOG_ROUNDS_MAX];
        if (row->kind == DP_EVENT_LOG_SYNC && row->round == round) {
            return row;
        }
    }
    return NULL;
}

void dp_event_log_straggler(dp_event_log *event_log, const dp_note *note)
{
    if (note->round != event_log->stragglers_round) {
        event_log->stragglers_round = note->round;
        event_log->n_stragglers = 0;
    }
    if (event_log->n_stragglers < DP_EVENT_LOG_STRAGGLERS_MAX) {
        dp_left_out *one = &event_log->stragglers[event_log->n_stragglers++];
        one->peer = note->peer;
        snprintf(one->cause, sizeof one->cause, "%s", note->cause);
    }
}

/* NULL: a newer round has its place. */
static dp_phases *phases_of(dp_event_log *event_log, uint64_t round)
{
    const size_t at = round % DP_EVENT_LOG_PHASES_MAX;
    if (event_log->under_way[at].round > round) {
        return NULL;
    }
    if (event_log->under_way[at].round < round) {
        event_log->under_way[at].round = round;
        event_log->under_way[at].phases = (dp_phases){0};
    }
    return &event_log->under_way[at].phases;
}

static void set_phase(dp_event_log *event_log, uint64_t round, dp_phase phase, uint64_t at_us)
{
    dp_phases *const phases = phases_of(event_log, round);
    dp_event_log_round *const row = dp_event_log_round_find(event_log, round);
    if (phases == NULL) {
        return;
    }
    if (phase == DP_PHASE_OPENED && phases->opened_ms == 0) {
        phases->opened_ms = dp_unix_ms();
    }
    dp_phases_set(phases, phase, at_us);
    if (row != NULL && row->live) {
        row->phases = *phases;
    }
}

void dp_event_log_phase(dp_event_log *event_log, uint64_t round, dp_phase phase)
{
    set_phase(event_log, round, phase, uv_hrtime() / 1000);
}

void dp_event_log_held(dp_event_log *event_log, uint64_t round, uint64_t held_us)
{
    const dp_phases *const phases = phases_of(event_log, round);
    if (phases != NULL && phases->at_us[DP_PHASE_OPENED] != 0) {
        set_phase(event_log, round, DP_PHASE_HELD, phases->at_us[DP_PHASE_OPENED] + held_us);
    }
}

static bool is_phased(const dp_event_log_round *row)
{
    uint64_t ms = 0;
    dp_phase_times times;
    return row->kind == DP_EVENT_LOG_SYNC && dp_phases_ms(&row->phases, DP_PHASE_APPLIED, &ms) &&
           dp_phases_times(&row->phases, &times);
}

const dp_event_log_round *dp_event_log_round_phased(const dp_event_log *event_log)
{
    const uint32_t kept = dp_event_log_rounds(event_log);
    for (uint32_t i = kept; i > 0 && kept - i < DP_EVENT_LOG_PHASES_MAX; i--) {
        const dp_event_log_round *const row = dp_event_log_round_at(event_log, i - 1);
        if (is_phased(row)) {
            return row;
        }
    }
    return NULL;
}

dp_event_log_turnout dp_event_log_turnout_of(const dp_event_log *event_log)
{
    return event_log->turnout;
}

static void tell_causes(const dp_event_log *event_log, dp_event_log_round *row)
{
    for (uint32_t i = 0; i < event_log->n_stragglers && event_log->stragglers_round == row->round;
         i++) {
        const dp_left_out *one = &event_log->stragglers[i];
        for (uint32_t k = 0; k < row->n_left_out; k++) {
            if (dp_peer_equal(&row->left_out[k].peer, &one->peer)) {
                row->left_out[k] = *one;
            }
        }
    }
}

void dp_event_log_round_add(dp_event_log *event_log, const dp_event_log_round *round)
{
    dp_event_log_round *row =
        round->kind == DP_EVENT_LOG_SYNC ? dp_event_log_round_find(event_log, round->round) : NULL;
    const bool replaces = row != NULL;
    if (round->kind == DP_EVENT_LOG_SYNC && round->live && (!replaces || !row->live)) {
        event_log->turnout.all += round->listed >= round->active ? 1 : 0;
        event_log->turnout.some += round->listed < round->active ? 1 : 0;
    }
    if (!replaces) {
        row = &event_log->rounds[event_log->n_rounds++ % DP_EVENT_LOG_ROUNDS_MAX];
    }
    const uint64_t duration_ms = replaces ? row->duration_ms : 0;
    *row = *round;
    if (row->kind == DP_EVENT_LOG_SYNC) {
        const dp_phases *const phases = row->live ? phases_of(event_log, row->round) : NULL;
        tell_causes(event_log, row);
        row->phases = phases != NULL ? *phases : row->phases;
    }
    if (replaces && row->duration_ms == 0) {
        row->duration_ms = duration_ms;
    } else if (!replaces && row->kind == DP_EVENT_LOG_SYNC &&
               row->time_ms >= event_log->last_round_ms) {
        row->duration_ms =
            event_log->last_round_ms != 0 ? row->time_ms - event_log->last_round_ms : 0;
        event_log->last_round_ms = row->time_ms;
    }
    if (row->live) {
        row->seq = event_log->next_seq++;
        event_log->hooks.round(event_log->hooks.context, row);
    }
}

void dp_event_log_rounds_forget(dp_event_log *event_log)
{
    event_log->n_forgotten = event_log->n_rounds;
    event_log->last_round_ms = 0;
}

uint64_t dp_event_log_rounds_total(const dp_event_log *event_log)
{
    return event_log->n_rounds;
}

uint64_t dp_event_log_next_id(const dp_event_log *event_log)
{
    return event_log->next_id;
}

uint32_t dp_event_log_rounds(const dp_event_log *event_log)
{
    const uint32_t rounds = event_log->n_rounds - event_log->n_forgotten;
    return rounds < DP_EVENT_LOG_ROUNDS_MAX ? rounds : DP_EVENT_LOG_ROUNDS_MAX;
}

const dp_event_log_round *dp_event_log_round_at(const dp_event_log *event_log, uint32_t index)
{
    const uint32_t kept = dp_event_log_rounds(event_log);
    return index < kept
               ? &event_log->rounds[(event_log->n_rounds - kept + index) % DP_EVENT_LOG_ROUNDS_MAX]
               : NULL;
}

uint32_t dp_event_log_entries(const dp_event_log *event_log)
{
    return event_log->n_entries < DP_EVENT_LOG_ENTRIES_MAX ? event_log->n_entries
                                                           : DP_EVENT_LOG_ENTRIES_MAX;
}

const dp_event_log_entry *dp_event_log_entry_at(const dp_event_log *event_log, uint32_t index)
{
    const uint32_t kept = dp_event_log_entries(event_log);
    return index < kept
               ? &event_log
                      ->entries[(event_log->n_entries - kept + index) % DP_EVENT_LOG_ENTRIES_MAX]
               : NULL;
}
