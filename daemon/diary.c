#include "daemon/diary.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "store/journal.h"

enum { BATCH_MAX = 64 };

struct dp_diary {
    dp_saver *saver;
    dp_diary_hooks hooks;
    uv_timer_t *flush;
    uint64_t next_id;
    uint64_t last_round_ms;
    uint32_t n_entries; /* ever; the ring holds the last DP_DIARY_ENTRIES_MAX */
    uint32_t n_rounds;
    uint32_t n_batch;
    dp_journal_event batch[BATCH_MAX];
    dp_diary_entry entries[DP_DIARY_ENTRIES_MAX];
    dp_diary_round rounds[DP_DIARY_ROUNDS_MAX];
};

typedef struct append_job {
    dp_saver_job job;
    uint32_t count;
    dp_journal_event events[];
} append_job;

static void run_append(dp_saver_job *job, dp_store *store)
{
    append_job *self = (append_job *)job;
    DP_IGNORE(dp_journal_append(store, self->events,
                                self->count)); /* A full disk must not stop training. */
}

static void done_append(dp_saver_job *job)
{
    dp_free(job);
}

void dp_diary_flush(dp_diary *diary)
{
    if (diary->n_batch == 0) {
        return;
    }
    append_job *job = dp_alloc(1, sizeof *job + diary->n_batch * sizeof diary->batch[0]);
    if (job != NULL) {
        job->job.run = run_append;
        job->job.done = done_append;
        job->count = diary->n_batch;
        memcpy(job->events, diary->batch, diary->n_batch * sizeof diary->batch[0]);
        if (dp_saver_post(diary->saver, &job->job, DP_SAVER_BULK) != DP_OK) {
            dp_free(job);
        }
    }
    diary->n_batch = 0;
}

static void on_flush(uv_timer_t *timer)
{
    dp_diary_flush(timer->data);
}

uint64_t dp_unix_ms(void)
{
    uv_timeval64_t now;
    return uv_gettimeofday(&now) == 0 ? (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_usec / 1000
                                      : 0;
}

dp_status dp_diary_open(dp_diary **out, uv_loop_t *loop, dp_saver *saver,
                        const dp_diary_hooks *hooks)
{
    dp_diary *diary = dp_alloc(1, sizeof *diary);
    uv_timer_t *timer = dp_alloc(1, sizeof *timer);
    if (diary == NULL || timer == NULL || uv_timer_init(loop, timer) != 0) {
        dp_free(diary);
        dp_free(timer);
        return DP_NOMEM;
    }
    diary->saver = saver;
    diary->hooks = *hooks;
    diary->next_id = 1;
    diary->flush = timer;
    timer->data = diary;
    uv_timer_start(timer, on_flush, DP_DIARY_FLUSH_MS, DP_DIARY_FLUSH_MS);
    *out = diary;
    return DP_OK;
}

void dp_diary_close(dp_diary *diary)
{
    if (diary == NULL) {
        return;
    }
    uv_close((uv_handle_t *)diary->flush, (uv_close_cb)dp_free);
    dp_free(diary);
}

static void add_entry(dp_diary *diary, dp_log_level level, const dp_diary_entry *entry)
{
    dp_diary_entry *slot = &diary->entries[diary->n_entries % DP_DIARY_ENTRIES_MAX];
    *slot = *entry;
    slot->id = diary->next_id++;
    slot->time_ms = dp_unix_ms();
    diary->n_entries++;
    if (slot->round != 0) {
        dp_log(level, slot->name, "round=%llu msg=%s", (unsigned long long)slot->round,
               DP_LOG_TEXT(slot->text));
    } else {
        dp_log(level, slot->name, "msg=%s", DP_LOG_TEXT(slot->text));
    }
    if (level >= DP_LOG_INFO) {
        dp_journal_event *row = &diary->batch[diary->n_batch++];
        *row = (dp_journal_event){.time_ms = slot->time_ms, .round = slot->round};
        _Static_assert(sizeof row->name >= sizeof slot->name &&
                           sizeof row->text >= sizeof slot->text,
                       "it fits");
        memcpy(row->name, slot->name, sizeof slot->name);
        memcpy(row->text, slot->text, sizeof slot->text);
        if (diary->n_batch == BATCH_MAX) {
            dp_diary_flush(diary);
        }
    }
    diary->hooks.entry(diary->hooks.context, slot);
}

void dp_diary_add(dp_diary *diary, dp_log_level level, const char *name, uint64_t round,
                  const dp_peer *peer, const char *format, ...)
{
    if (diary == NULL) { /* A late callback of a daemon that has ended. */
        return;
    }
    dp_diary_entry entry = {.round = round};
    if (peer != NULL) {
        entry.peer = *peer;
    }
    snprintf(entry.name, sizeof entry.name, "%s", name);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(entry.text, sizeof entry.text, format, arguments);
    va_end(arguments);
    add_entry(diary, level, &entry);
}

static dp_log_level level_of(const dp_note *note)
{
    switch (note->code) {
    case DP_NOTE_ROUND_OPENED:
    case DP_NOTE_READY:
    case DP_NOTE_PUBLISHED:
    case DP_NOTE_FETCH:
    case DP_NOTE_APPLIED:
    case DP_NOTE_CERTIFIED:
    case DP_NOTE_CLOSED:
    case DP_NOTE_BID:
        return DP_LOG_DEBUG;
    case DP_NOTE_DIVERGED:
    case DP_NOTE_VOTE_KEY_LOST:
    case DP_NOTE_REJECTED:
    case DP_NOTE_DISCARDED:
    case DP_NOTE_ADOPTED:
        return DP_LOG_WARN;
    case DP_NOTE_MODE:
    case DP_NOTE_STRAGGLER:
    case DP_NOTE_DECIDED:
    case DP_NOTE_COUNTED:
    case DP_NOTE_LEFT_OUT:
    case DP_NOTE_VOTERS:
    case DP_NOTE_ADMITTED:
    case DP_NOTE_REMOVED:
    case DP_NOTE_MEMBER:
    case DP_NOTE_CATCHUP:
    case DP_NOTE_EXCHANGE:
    case DP_NOTE_CODE_COUNT:
        break;
    }
    return DP_LOG_INFO;
}

/* What a cause means, for those that gossip/ names by a word. */
static const char *explained(const char *cause)
{
    static const struct {
        const char *cause;
        const char *text;
    } rows[] = {
        {"all", "all are ready"},
        {"grace", "enough are ready, and the time to wait for the others is over"},
        {"deadline", "the round has lasted too long"},
        {"quorum", "a majority of the voters is heard"},
        {"voted twice", "a voter voted twice"},
        {"two forks", "the root key has begun the chain anew twice at one place"},
        {"revoked", "it was put out"},
        {"fenced", "exchanges under way when it vanished were declared void"},
        {"no quorum", "no majority of the voters is heard"},
        {"owner", "its owner said so"},
        {"no state", "the model is not here yet"},
        {"lambda", "it aged while rounds were missed"},
        {"linked", "a connection is up"},
        {"says so", "others heard it say so"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(cause, rows[i].cause) == 0) {
            return rows[i].text;
        }
    }
    return cause;
}

/* The sentence of a note; who: name and short id of its peer. */
static void write_note(const dp_note *note, const char *who, char *text, size_t size)
{
    const unsigned long long a = note->a;
    const unsigned long long b = note->b;
    const unsigned long long t = note->round;
    const char *cause = explained(note->cause);
    switch (note->code) {
    case DP_NOTE_MODE:
        snprintf(text, size, "this node: %s -> %s: %s", dp_mode_name((dp_mode)a),
                 dp_mode_name((dp_mode)b), cause);
        break;
    case DP_NOTE_ROUND_OPENED:
        snprintf(text, size, "round %llu opened", t);
        break;
    case DP_NOTE_PUBLISHED:
        snprintf(text, size, "published an update for round %llu: %llu bytes, %llu tokens", t, a,
                 b);
        break;
    case DP_NOTE_READY:
        snprintf(text, size, "%s is ready for round %llu", who, t);
        break;
    case DP_NOTE_CLOSED:
        snprintf(text, size, "round %llu closes with %llu of %llu: %s", t, a, b, cause);
        break;
    case DP_NOTE_STRAGGLER:
        snprintf(text, size, "round %llu goes on without %s: %s", t, who, cause);
        break;
    case DP_NOTE_BID:
        snprintf(text, size, "slot %llu: bidding with ballot %llu", t, a);
        break;
    case DP_NOTE_DECIDED:
        snprintf(text, size, "round %llu decided in slot %llu with %llu contributors", t, b, a);
        break;
    case DP_NOTE_COUNTED:
        snprintf(text, size, "this node's update counts in round %llu", t);
        break;
    case DP_NOTE_LEFT_OUT:
        snprintf(text, size, "this node's update is not in round %llu; its work is carried over",
                 t);
        break;
    case DP_NOTE_APPLIED:
        snprintf(text, size, "round %llu applied", t);
        break;
    case DP_NOTE_CERTIFIED:
        snprintf(text, size, "a majority signed the state after round %llu", t);
        break;
    case DP_NOTE_VOTERS:
        snprintf(text, size, "voters %llu -> %llu", a, b);
        break;
    case DP_NOTE_ADMITTED:
        snprintf(text, size, "%s is a member now", who);
        break;
    case DP_NOTE_REMOVED:
        snprintf(text, size, "%s is no member any more: %s", who, cause);
        break;
    case DP_NOTE_MEMBER:
        snprintf(text, size, "%s: %s -> %s: %s", who, dp_member_state_name((dp_member_state)a),
                 dp_member_state_name((dp_member_state)b), cause);
        break;
    case DP_NOTE_FETCH:
        snprintf(text, size, "fetching from %s: %s", who, cause);
        break;
    case DP_NOTE_CATCHUP:
        snprintf(text, size, "catching up from round %llu to %llu: %s", a, b, cause);
        break;
    case DP_NOTE_EXCHANGE:
        snprintf(text, size, "gossip exchange with %s, weights %llu and %llu: %s", who, a, b,
                 cause);
        break;
    case DP_NOTE_DISCARDED:
        snprintf(text, size, "%llu.%llu %% of the work that was not averaged yet is let go: %s",
                 a * 100 / 65536, a * 1000 / 65536 % 10, cause);
        break;
    case DP_NOTE_DIVERGED:
        snprintf(text, size, "own state after round %llu differs from the certified one: %s", t,
                 cause);
        break;
    case DP_NOTE_ADOPTED:
        snprintf(
            text, size,
            "the root key begins the chain anew after round %llu: %llu records, %llu rounds of "
            "them, are given up here",
            t, a, b);
        break;
    case DP_NOTE_VOTE_KEY_LOST:
        snprintf(text, size, "the vote key is gone; this node is no voter until enrolled again: %s",
                 cause);
        break;
    case DP_NOTE_REJECTED:
        snprintf(text, size, "refused something from %s: %s", who, cause);
        break;
    case DP_NOTE_CODE_COUNT:
        snprintf(text, size, "%s", cause);
        break;
    }
}

void dp_diary_note(dp_diary *diary, const dp_note *note, const char *peer_name)
{
    dp_diary_entry entry = {.round = note->round, .peer = note->peer, .code = note->code};
    char id[DP_PEER_TEXT_MAX];
    char who[64] = "an unknown peer";
    if (!dp_peer_is_zero(&note->peer)) {
        dp_peer_text(&note->peer, id);
        const bool named = peer_name != NULL && peer_name[0] != '\0';
        snprintf(who, sizeof who, named ? "%.32s (%s)" : "%.0s%s", named ? peer_name : "", id);
    }
    snprintf(entry.name, sizeof entry.name, "%s", dp_note_name(note->code));
    write_note(note, who, entry.text, sizeof entry.text);
    add_entry(diary, level_of(note), &entry);
}

void dp_diary_round_of_record(const dp_record *record, const dp_peer *self, dp_diary_round *round)
{
    *round = (dp_diary_round){.kind = DP_DIARY_SYNC,
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
        round->peers[i].peer = listed->peer;
        round->peers[i].steps = listed->steps;
        round->peers[i].tokens = listed->tokens;
        round->peers[i].q = listed->q;
    }
    round->n_peers = record->n_listed;
    round->loss_micro = tokens_with_loss == 0 ? 0 : (uint64_t)(loss / tokens_with_loss);
}

dp_diary_round *dp_diary_round_find(dp_diary *diary, uint64_t round)
{
    const uint32_t kept = dp_diary_rounds(diary);
    for (uint32_t i = 0; i < kept; i++) {
        dp_diary_round *row = &diary->rounds[(diary->n_rounds - 1 - i) % DP_DIARY_ROUNDS_MAX];
        if (row->kind == DP_DIARY_SYNC && row->round == round) {
            return row;
        }
    }
    return NULL;
}

void dp_diary_round_add(dp_diary *diary, const dp_diary_round *round)
{
    dp_diary_round *row =
        round->kind == DP_DIARY_SYNC ? dp_diary_round_find(diary, round->round) : NULL;
    const bool replaces = row != NULL;
    if (!replaces) {
        row = &diary->rounds[diary->n_rounds++ % DP_DIARY_ROUNDS_MAX];
    }
    const uint64_t duration_ms = replaces ? row->duration_ms : 0;
    *row = *round;
    if (replaces && row->duration_ms == 0) {
        row->duration_ms = duration_ms;
    } else if (!replaces && row->kind == DP_DIARY_SYNC && row->time_ms >= diary->last_round_ms) {
        row->duration_ms = diary->last_round_ms != 0 ? row->time_ms - diary->last_round_ms : 0;
        diary->last_round_ms = row->time_ms;
    }
    if (row->live) {
        diary->hooks.round(diary->hooks.context, row);
    }
}

uint32_t dp_diary_rounds(const dp_diary *diary)
{
    return diary->n_rounds < DP_DIARY_ROUNDS_MAX ? diary->n_rounds : DP_DIARY_ROUNDS_MAX;
}

const dp_diary_round *dp_diary_round_at(const dp_diary *diary, uint32_t index)
{
    const uint32_t kept = dp_diary_rounds(diary);
    return index < kept ? &diary->rounds[(diary->n_rounds - kept + index) % DP_DIARY_ROUNDS_MAX]
                        : NULL;
}

uint32_t dp_diary_entries(const dp_diary *diary)
{
    return diary->n_entries < DP_DIARY_ENTRIES_MAX ? diary->n_entries : DP_DIARY_ENTRIES_MAX;
}

const dp_diary_entry *dp_diary_entry_at(const dp_diary *diary, uint32_t index)
{
    const uint32_t kept = dp_diary_entries(diary);
    return index < kept ? &diary->entries[(diary->n_entries - kept + index) % DP_DIARY_ENTRIES_MAX]
                        : NULL;
}
