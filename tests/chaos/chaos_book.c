/* Compares the reports of all nodes: rounds, states, and the times at which nodes were held for
 * dead. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"
#include "tests/chaos/chaos.h"

enum { SAMPLE_KINDS = 8 };

static void wrong(dp_chaos_book *book, const char *what, uint64_t round, unsigned node)
{
    if (book->first_wrong[0] == '\0') {
        snprintf(book->first_wrong, sizeof book->first_wrong, "round %llu, node%u: %s",
                 (unsigned long long)round, node + 1, what);
    }
}

static void add_sample(dp_chaos_samples *samples, uint64_t from_ms, uint64_t to_ms)
{
    if (samples->count < DP_CHAOS_SAMPLES_MAX) {
        samples->values[samples->count++] =
            to_ms > from_ms ? (double)(to_ms - from_ms) / 1000.0 : 0;
    }
}

static int by_value(const void *a, const void *b)
{
    const double left = *(const double *)a;
    const double right = *(const double *)b;
    return (left > right) - (left < right);
}

double dp_chaos_quantile(dp_chaos_samples *samples, double q)
{
    if (samples->count == 0) {
        return 0;
    }
    qsort(samples->values, samples->count, sizeof samples->values[0], by_value);
    const double rank = ceil(q * samples->count);
    const uint32_t index = rank < 1 ? 0 : (uint32_t)rank - 1;
    return samples->values[index < samples->count ? index : samples->count - 1];
}

static void sample_kinds(dp_chaos_book *book, dp_chaos_samples *kinds[SAMPLE_KINDS])
{
    dp_chaos_samples *const all[] = {&book->gaps,       &book->gaps_by[0],   &book->gaps_by[1],
                                     &book->gaps_by[2], &book->detects,      &book->detects_stop,
                                     &book->rejoins,    &book->rejoins_other};
    _Static_assert(sizeof all / sizeof all[0] == SAMPLE_KINDS, "every kind of samples");
    memcpy(kinds, all, sizeof all);
}

dp_status dp_chaos_book_open(dp_chaos_book *book, unsigned n_nodes)
{
    *book = (dp_chaos_book){.n_nodes = n_nodes};
    dp_chaos_samples *kinds[SAMPLE_KINDS];
    sample_kinds(book, kinds);
    book->rounds = calloc(DP_CHAOS_ROUNDS_MAX, sizeof *book->rounds);
    bool good = book->rounds != NULL;
    for (size_t i = 0; i < SAMPLE_KINDS; i++) {
        kinds[i]->values = malloc(DP_CHAOS_SAMPLES_MAX * sizeof(double));
        good = good && kinds[i]->values != NULL;
    }
    if (!good) {
        dp_chaos_book_close(book);
        return DP_NOMEM;
    }
    return DP_OK;
}

void dp_chaos_book_close(dp_chaos_book *book)
{
    dp_chaos_samples *kinds[SAMPLE_KINDS];
    sample_kinds(book, kinds);
    free(book->rounds);
    for (size_t i = 0; i < SAMPLE_KINDS; i++) {
        free(kinds[i]->values);
    }
    *book = (dp_chaos_book){0};
}

void dp_chaos_book_begin(dp_chaos_book *book, uint64_t now_ms)
{
    book->measuring = true;
    book->last_ms = now_ms;
}

/* ---- faults ---- */

static void look_for_watchers(dp_chaos_book *book, unsigned node)
{
    dp_chaos_life *life = &book->lives[node];
    life->noticed_by = 0;
    life->watchers = 0;
    for (unsigned i = 0; i < book->n_nodes; i++) {
        const bool parted = ((book->cut >> i ^ book->cut >> node) & 1) != 0;
        const bool tells = book->lives[i].up && !book->lives[i].odd_clock;
        life->watchers |= tells && i != node && !parted ? 1U << i : 0;
        /* A new process reports nothing of earlier faults. */
        book->lives[i].watchers &= ~(1U << node);
    }
}

void dp_chaos_book_fault(dp_chaos_book *book, unsigned node, dp_chaos_kind kind, uint64_t now_ms)
{
    dp_chaos_life *life = &book->lives[node];
    /* A cut of several nodes counts as one fault, and so does the loss of a majority. */
    book->faults[kind] += kind != DP_CHAOS_CUT && kind != DP_CHAOS_MAJORITY;
    book->gap_faults |= 1U << kind;
    book->killed_before += life->waits;
    life->waits = false;
    life->fault = kind;
    life->fault_ms = now_ms;
    life->watchers = 0;
    life->killed_trainers += kind == DP_CHAOS_WORKER;
    life->odd_clock = life->odd_clock || kind == DP_CHAOS_CLOCK;
    for (unsigned i = 0; i < book->n_nodes && kind == DP_CHAOS_CLOCK; i++) {
        book->lives[i].watchers &= ~(1U << node); /* Its reported times are wrong. */
    }
    if (dp_chaos_kind_kills(kind) || kind == DP_CHAOS_STOP) {
        life->up = false;
        look_for_watchers(book, node);
    }
}

static unsigned count_bits(uint32_t bits)
{
    return (unsigned)__builtin_popcount(bits);
}

void dp_chaos_book_back(dp_chaos_book *book, unsigned node, uint64_t now_ms)
{
    dp_chaos_life *life = &book->lives[node];
    if (life->fault == DP_CHAOS_STOP && !life->up && life->fault_ms != 0 &&
        now_ms - life->fault_ms >= DP_CHAOS_NOTICE_MS) {
        book->unnoticed += count_bits(life->watchers & ~life->noticed_by);
    }
    const bool was_away = !life->up && life->fault_ms != 0;
    for (unsigned i = 0; i < book->n_nodes && was_away;
         i++) { /* They need a moment to learn of it. */
        const uint64_t until_ms = now_ms + DP_CHAOS_GRACE_MS;
        book->excused_ms[i][node] =
            book->excused_ms[i][node] > until_ms ? book->excused_ms[i][node] : until_ms;
    }
    if (life->fault == DP_CHAOS_MAJORITY && was_away && book->measuring) {
        /* Without a majority no round can be decided: the gap begins when there is one. */
        const uint64_t from_ms = book->last_ms > life->fault_ms ? book->last_ms : life->fault_ms;
        book->outage_ms += now_ms > from_ms ? now_ms - from_ms : 0;
        book->last_ms = now_ms > book->last_ms ? now_ms : book->last_ms;
    }
    life->odd_clock = life->odd_clock && !(was_away && dp_chaos_kind_kills(life->fault));
    life->up = true;
    life->waits = life->fault_ms != 0;
    life->back_ms = now_ms;
}

/* Two nodes of the other side suffice for a statement that also spreads on this side. */
static void excuse(dp_chaos_book *book, uint32_t group, uint64_t until_ms)
{
    const unsigned inside = count_bits(group);
    for (unsigned i = 0; i < book->n_nodes; i++) {
        for (unsigned k = 0; k < book->n_nodes; k++) {
            const bool parted = ((group >> i ^ group >> k) & 1) != 0;
            const unsigned accusers = (group >> k & 1) != 0 ? book->n_nodes - inside : inside;
            if (parted || accusers >= 2) {
                book->excused_ms[i][k] = until_ms;
            }
        }
    }
}

void dp_chaos_book_cut(dp_chaos_book *book, uint32_t group, uint64_t now_ms)
{
    book->cut = group;
    book->faults[DP_CHAOS_CUT]++;
    excuse(book, group, UINT64_MAX);
    for (unsigned i = 0; i < book->n_nodes; i++) {
        for (unsigned k = 0; k < book->n_nodes; k++) {
            if (((group >> i ^ group >> k) & 1) !=
                0) { /* It cannot distinguish the fault from the cut. */
                book->lives[k].watchers &= ~(1U << i);
            }
        }
        if ((group >> i & 1) != 0) {
            dp_chaos_book_fault(book, i, DP_CHAOS_CUT, now_ms);
        }
    }
}

void dp_chaos_book_healed(dp_chaos_book *book, uint64_t now_ms)
{
    excuse(book, book->cut, now_ms + DP_CHAOS_GRACE_MS);
    for (unsigned i = 0; i < book->n_nodes; i++) {
        if ((book->cut >> i & 1) != 0) {
            dp_chaos_book_back(book, i, now_ms);
        }
    }
    book->cut = 0;
}

/* ---- rounds ---- */

static unsigned node_of(const dp_chaos_book *book, const char *id)
{
    for (unsigned i = 0; i < book->n_nodes; i++) {
        if (book->lives[i].id[0] != '\0' && strcmp(book->lives[i].id, id) == 0) {
            return i;
        }
    }
    return DP_CHAOS_NODES_MAX;
}

static uint32_t listed_in(const dp_chaos_book *book, const json_t *round)
{
    const json_t *peers = json_object_get(round, "peers");
    uint32_t listed = 0;
    for (size_t i = 0; i < json_array_size(peers); i++) {
        const unsigned node = node_of(book, dp_json_text(json_array_get(peers, i), "short", ""));
        listed |= node < DP_CHAOS_NODES_MAX ? 1U << node : 0;
    }
    return listed;
}

/* A node counts again with the first round that lists it and began after the fault: an update
 * published before the fault belongs to a round whose predecessor was decided before. */
static void look_for_returned(dp_chaos_book *book, uint64_t number, const dp_chaos_round *row)
{
    const dp_chaos_round *before = number > 0 ? &book->rounds[number - 1] : NULL;
    for (unsigned i = 0; i < book->n_nodes; i++) {
        dp_chaos_life *life = &book->lives[i];
        if (life->waits && (row->listed & 1U << i) != 0 && before != NULL && before->seen &&
            before->first_ms > life->fault_ms && row->first_ms >= life->back_ms) {
            const uint64_t took_ms = row->first_ms - life->back_ms;
            life->waits = false;
            book->rejoined++;
            book->slowest = took_ms > book->slowest_ms ? life->fault : book->slowest;
            book->slowest_ms = took_ms > book->slowest_ms ? took_ms : book->slowest_ms;
            add_sample(life->fault == DP_CHAOS_KILL || life->fault == DP_CHAOS_OWNER
                           ? &book->rejoins
                           : &book->rejoins_other,
                       life->back_ms, row->first_ms);
        }
    }
}

/* A gap has ended. It shows the cost of a kill only if no other fault began in it or continues. */
static void add_gap(dp_chaos_book *book, uint64_t now_ms)
{
    const unsigned began = book->gap_faults;
    unsigned lasting = 0;
    add_sample(&book->gaps, book->last_ms, now_ms);
    for (unsigned i = 0; i < book->n_nodes; i++) {
        const dp_chaos_life *life = &book->lives[i];
        lasting |= life->fault_ms != 0 && life->back_ms < life->fault_ms ? 1U << life->fault : 0;
    }
    if (began == 0 && lasting == 0) {
        add_sample(&book->gaps_by[DP_CHAOS_GAP_CLEAN], book->last_ms, now_ms);
    } else if (began == 1U << DP_CHAOS_KILL && (lasting & ~began) == 0) {
        add_sample(&book->gaps_by[DP_CHAOS_GAP_KILL], book->last_ms, now_ms);
    } else if (began == 1U << DP_CHAOS_STOP && (lasting & ~began) == 0) {
        add_sample(&book->gaps_by[DP_CHAOS_GAP_STOP], book->last_ms, now_ms);
    }
    book->gap_faults = 0;
}

static void new_round(dp_chaos_book *book, uint64_t number, dp_chaos_round *row, uint64_t now_ms,
                      const json_t *round)
{
    *row = (dp_chaos_round){.seen = true,
                            .first_ms = now_ms,
                            .slot = (uint64_t)dp_json_int(round, "slot", 0),
                            .tokens = (uint64_t)dp_json_int(round, "tokens", 0),
                            .bytes = (uint64_t)dp_json_int(round, "bytes", 0),
                            .loss = dp_json_real(round, "loss", 0),
                            .listed = listed_in(book, round)};
    if (book->measuring) {
        book->committed++;
        book->tokens += row->tokens;
    }
    if (number > book->last_round) {
        if (book->measuring) {
            add_gap(book, now_ms);
        }
        book->last_round = number;
        book->last_ms = now_ms;
    }
    look_for_returned(book, number, row);
}

static void compare_root(dp_chaos_book *book, unsigned node, uint64_t number, dp_chaos_round *row,
                         const char *root)
{
    if (root[0] == '\0' || strlen(root) >= sizeof row->root || (row->rooted_by & 1U << node) != 0) {
        return;
    }
    row->rooted_by |= 1U << node;
    book->roots++;
    if (row->root[0] == '\0') {
        memcpy(row->root, root, strlen(root) + 1);
    } else if (strcmp(row->root, root) != 0) {
        book->parity_breaks++;
        wrong(book, "its state differs from that of others", number, node);
    }
}

void dp_chaos_book_round(dp_chaos_book *book, unsigned node, uint64_t now_ms, const json_t *round)
{
    const long long number = dp_json_int(round, "round", -1);
    if (strcmp(dp_json_text(round, "kind", ""), "gossip") == 0) {
        const uint64_t time_ms = (uint64_t)dp_json_int(round, "time_ms", 0);
        /* Counts only new reports, not repeated ones. */
        book->gossip += book->measuring && time_ms + 1000 > now_ms;
        return;
    }
    if (number < 0 || number >= DP_CHAOS_ROUNDS_MAX) {
        return;
    }
    dp_chaos_round *row = &book->rounds[number];
    if (!row->seen) {
        new_round(book, (uint64_t)number, row, now_ms, round);
    } else if (row->slot != (uint64_t)dp_json_int(round, "slot", 0) ||
               row->tokens != (uint64_t)dp_json_int(round, "tokens", 0) ||
               row->bytes != (uint64_t)dp_json_int(round, "bytes", 0) ||
               row->listed != listed_in(book, round)) {
        book->duplicate++;
        wrong(book, "it tells another record than the others", (uint64_t)number, node);
    }
    compare_root(book, node, (uint64_t)number, row, dp_json_text(round, "state_root", ""));
}

/* ---- who is held for dead ---- */

/* Just killed or frozen. */
static bool is_away(const dp_chaos_life *life)
{
    return !life->up && life->fault_ms != 0;
}

/* A trainer may die because of a full disk, a damaged store or a freeze of its node; otherwise the
 * bench must have killed it. */
static void trainer_died(dp_chaos_book *book, unsigned node, uint64_t time_ms)
{
    dp_chaos_life *life = &book->lives[node];
    if (time_ms <= life->down_ms) {
        return; /* Told again. */
    }
    life->down_ms = time_ms;
    const bool lasts = life->back_ms < life->fault_ms;
    const bool explained = life->fault_ms != 0 && life->fault != DP_CHAOS_WORKER &&
                           (lasts || time_ms < life->back_ms + DP_CHAOS_EXPLAINED_MS);
    if (life->killed_trainers > 0) {
        life->killed_trainers--;
    } else if (!explained && book->measuring) {
        book->trainers_died++;
        wrong(book, "its trainer died, and nobody had killed it", book->last_round, node);
    }
}

/* Others notice frozen nodes by their silence, killed ones by their connections. Faults that
 * overlap with others are not timed. */
static dp_chaos_samples *detected(dp_chaos_book *book, dp_chaos_kind kind)
{
    return kind == DP_CHAOS_STOP                             ? &book->detects_stop
           : kind == DP_CHAOS_KILL || kind == DP_CHAOS_OWNER ? &book->detects
                                                             : NULL;
}

void dp_chaos_book_event(dp_chaos_book *book, unsigned node, const json_t *event)
{
    const char *text = dp_json_text(event, "text", "");
    const uint64_t time_ms = (uint64_t)dp_json_int(event, "time_ms", 0);
    const bool dead = strstr(text, "-> dead") != NULL;
    if (book->lives[node].odd_clock) {
        return; /* Each connection gets all events again, with their original times. */
    }
    if (strcmp(dp_json_text(event, "name", ""), "trainer.down") == 0) {
        trainer_died(book, node, time_ms);
        return;
    }
    if (strcmp(dp_json_text(event, "name", ""), "member.state") != 0 ||
        (!dead && strstr(text, "-> suspect") == NULL)) {
        return;
    }
    for (unsigned i = 0; i < book->n_nodes; i++) {
        dp_chaos_life *life = &book->lives[i];
        if (i == node || life->id[0] == '\0' || strstr(text, life->id) == NULL) {
            continue;
        }
        const bool lasts = is_away(life);
        const bool fresh = lasts || time_ms < life->back_ms + DP_CHAOS_GRACE_MS;
        if (fresh && time_ms >= life->fault_ms &&
            (life->watchers & ~life->noticed_by & 1U << node) != 0) {
            dp_chaos_samples *const samples = detected(book, life->fault);
            life->noticed_by |= 1U << node;
            if (samples != NULL) {
                add_sample(samples, life->fault_ms, time_ms);
            }
        } else if (!lasts && time_ms >= book->excused_ms[node][i] && book->measuring) {
            book->false_detections += dead;
            book->false_suspicions += !dead;
            if (dead) {
                wrong(book, text, book->last_round, node);
            }
        }
    }
}

/* ---- sums ---- */

void dp_chaos_book_end(dp_chaos_book *book, uint64_t head)
{
    book->measuring = false;
    for (uint64_t r = 1; r <= book->last_round; r++) {
        if (!book->rounds[r].seen || r > head) {
            book->lost++;
            wrong(book, book->rounds[r].seen ? "no node holds it any more" : "nobody told it", r,
                  0);
        }
    }
}

uint64_t dp_chaos_book_tokens(const dp_chaos_book *book)
{
    uint64_t sum = 0;
    for (uint64_t r = 0; r <= book->last_round; r++) {
        sum += book->rounds[r].tokens;
    }
    return sum;
}

double dp_chaos_book_loss(const dp_chaos_book *book, uint64_t tokens)
{
    uint64_t sum = 0;
    double loss = 0;
    double weight = 0;
    for (uint64_t r = 0; r <= book->last_round && sum < tokens; r++) {
        sum += book->rounds[r].tokens;
        if (book->rounds[r].loss > 0 && sum > tokens / 5 * 4) {
            loss += book->rounds[r].loss * (double)book->rounds[r].tokens;
            weight += (double)book->rounds[r].tokens;
        }
    }
    return weight > 0 ? loss / weight : 0;
}

unsigned dp_chaos_book_waiting(const dp_chaos_book *book)
{
    unsigned waiting = 0;
    for (unsigned i = 0; i < book->n_nodes; i++) {
        waiting += book->lives[i].waits || !book->lives[i].up;
    }
    return waiting;
}
