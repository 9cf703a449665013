/* What all nodes told, compared: rounds, states, who was held for dead and when. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench_chaos.h"
#include "cli/json.h"

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

dp_status dp_chaos_book_open(dp_chaos_book *book, unsigned n_nodes)
{
    *book = (dp_chaos_book){.n_nodes = n_nodes};
    dp_chaos_samples *const kinds[] = {&book->gaps, &book->detects, &book->rejoins};
    book->rounds = calloc(DP_CHAOS_ROUNDS_MAX, sizeof *book->rounds);
    bool good = book->rounds != NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
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
    free(book->rounds);
    free(book->gaps.values);
    free(book->detects.values);
    free(book->rejoins.values);
    *book = (dp_chaos_book){0};
}

void dp_chaos_book_begin(dp_chaos_book *book, uint64_t now_ms)
{
    book->measuring = true;
    book->last_ms = now_ms;
}

void dp_chaos_book_killed(dp_chaos_book *book, unsigned node, uint64_t now_ms)
{
    dp_chaos_life *life = &book->lives[node];
    book->kills++;
    book->killed_before += life->waits;
    life->waits = false;
    life->up = false;
    life->killed_ms = now_ms;
    life->noticed_by = 0;
    life->watchers = 0;
    for (unsigned i = 0; i < book->n_nodes; i++) {
        life->watchers |= book->lives[i].up ? 1U << i : 0;
        book->lives[i].watchers &= ~(1U << node); /* It will tell nothing of earlier kills. */
    }
}

void dp_chaos_book_started(dp_chaos_book *book, unsigned node, uint64_t now_ms)
{
    dp_chaos_life *life = &book->lives[node];
    life->up = true;
    life->waits = life->killed_ms != 0;
    life->started_ms = now_ms;
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

/* A node counts again with the first round that lists it and was begun after the kill: an update that it published before
 * is for a round whose predecessor was decided before. */
static void look_for_returned(dp_chaos_book *book, uint64_t number, const dp_chaos_round *row)
{
    const dp_chaos_round *before = number > 0 ? &book->rounds[number - 1] : NULL;
    for (unsigned i = 0; i < book->n_nodes; i++) {
        dp_chaos_life *life = &book->lives[i];
        if (life->waits && (row->listed & 1U << i) != 0 && before != NULL && before->seen &&
            before->first_ms > life->killed_ms && row->first_ms >= life->started_ms) {
            life->waits = false;
            book->rejoined++;
            add_sample(&book->rejoins, life->started_ms, row->first_ms);
        }
    }
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
            add_sample(&book->gaps, book->last_ms, now_ms);
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
        book->gossip += book->measuring && time_ms + 1000 > now_ms; /* Not told again. */
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

void dp_chaos_book_event(dp_chaos_book *book, unsigned node, const json_t *event)
{
    const char *text = dp_json_text(event, "text", "");
    const uint64_t time_ms = (uint64_t)dp_json_int(event, "time_ms", 0);
    const bool dead = strstr(text, "-> dead") != NULL;
    if (strcmp(dp_json_text(event, "name", ""), "member.state") != 0 ||
        (!dead && strstr(text, "-> suspect") == NULL)) {
        return;
    }
    for (unsigned i = 0; i < book->n_nodes; i++) {
        dp_chaos_life *life = &book->lives[i];
        if (i == node || life->id[0] == '\0' || strstr(text, life->id) == NULL) {
            continue;
        }
        const bool gone = life->killed_ms != 0 && time_ms >= life->killed_ms &&
                          (!life->up || time_ms < life->started_ms + DP_CHAOS_GRACE_MS);
        if (gone && (life->watchers & ~life->noticed_by & 1U << node) != 0) {
            life->noticed_by |= 1U << node;
            add_sample(&book->detects, life->killed_ms, time_ms);
        } else if (!gone && book->measuring) {
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
