#include "tests/sim/explore.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "gossip/core/msg.h"
#include "tests/sim/explore_arguments.h"
#include "tests/sim/explore_judge.h"
#include "tests/sim/explore_table.h"

enum { DEPTH_MAX = 20000 };

/* One state of the world on the way from the start. */
typedef struct frame {
    uint32_t hosts[DP_EXPLORE_HOSTS];
    uint32_t crashes;
    uint64_t sent_mark; /* sum over the messages */
    uint64_t sent[DP_EXPLORE_WORDS];
    /* next event to try; from DP_EXPLORE_TAKE on: the host that gives a record */
    uint32_t host;
    uint32_t event;
    /* the event that led here */
    uint32_t by_host;
    uint32_t by_event;
} frame;

typedef struct search {
    dp_explore_arguments args;
    uint32_t n; /* hosts */
    dp_explore_voters *voters;
    dp_explore_judge judge;
    dp_explore_table seen;
    frame *stack; /* of DEPTH_MAX */
    uint32_t depth;
    uint32_t depth_max;
    uint64_t steps;
    uint64_t ends; /* states in which the last slot is decided */
} search;

static uint64_t mark_of(const search *s, const frame *f)
{
    uint64_t mark = dp_mix64(f->crashes) ^ f->sent_mark;

    for (uint32_t i = 0; i < s->n; i++) {
        mark = dp_mix64(mark + dp_explore_mark(s->voters, f->hosts[i]));
    }
    return mark;
}

static bool failed(const search *s)
{
    return s->judge.failure[0] != '\0';
}

/* Words of the bits of sent that the present number of messages needs. */
static uint32_t words_of(const search *s)
{
    return dp_explore_messages(s->voters) / 64 + 1;
}

static uint32_t slot_on_disk(const search *s, const frame *f, uint32_t host)
{
    return dp_explore_slot(dp_explore_chain_of(s->voters),
                           dp_explore_durable(s->voters, f->hosts[host]));
}

/* ---- messages ---- */

/* Can this message still have an effect? Not after its receiver has the record of its slot on disk,
 * except that votes and proposals are evidence as long as a voter may vote in their slot. */
static bool matters(const search *s, const frame *f, const dp_explore_message *m)
{
    const uint32_t slot = dp_explore_slot(dp_explore_chain_of(s->voters), m->after);

    if (slot_on_disk(s, f, m->to) <= slot) {
        return true;
    }
    for (uint32_t i = 0; i < s->n; i++) {
        if ((m->type == DP_MSG_ACCEPTED || m->type == DP_MSG_PROPOSE) &&
            slot_on_disk(s, f, i) <= slot && dp_explore_votes(s->voters, m->after, i)) {
            return true;
        }
    }
    return false;
}

static void forget_old(const search *s, frame *f)
{
    for (uint32_t word = 0; word < words_of(s); word++) {
        for (uint64_t left = f->sent[word]; left != 0; left &= left - 1) {
            const uint32_t bit = (uint32_t)__builtin_ctzll(left);
            const dp_explore_message *m = dp_explore_message_of(s->voters, word * 64 + bit);
            if (!matters(s, f, m)) {
                f->sent[word] &= ~(1ULL << bit);
                f->sent_mark -= dp_mix64(m->mark);
            }
        }
    }
}

static void send_all(search *s, frame *f, const dp_explore_effect *effect)
{
    for (uint32_t i = 0; i < effect->n_sends; i++) {
        const uint32_t number = effect->sends[i];
        const dp_explore_message *m = dp_explore_message_of(s->voters, number);
        if ((f->sent[number / 64] >> number % 64 & 1) == 0 && matters(s, f, m)) {
            f->sent[number / 64] |= 1ULL << number % 64;
            f->sent_mark += dp_mix64(m->mark);
            dp_explore_judge_message(&s->judge, f->sent, m);
        }
    }
}

/* ---- the search: depth first, no state twice ---- */

static uint32_t bids_of(const search *s, const frame *f)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        sum += dp_explore_bids(s->voters, f->hosts[i]);
    }
    return sum;
}

/* The next message for the host of f, from f->event on, that its machine takes; false: there is
 * none. */
static bool next_message(const search *s, frame *f)
{
    const uint32_t head = dp_explore_head(s->voters, f->hosts[f->host]);

    for (; f->event < words_of(s) * 64; f->event++) {
        const uint64_t left = f->sent[f->event / 64] >> f->event % 64;
        if (left == 0) { /* No message in the rest of this word. */
            f->event |= 63;
            continue;
        }
        f->event += (uint32_t)__builtin_ctzll(left);
        const dp_explore_message *m = dp_explore_message_of(s->voters, f->event);
        if (m->to == f->host && m->after == head) {
            return true;
        }
    }
    f->event = DP_EXPLORE_MESSAGES_MAX;
    return false;
}

/* The event of the voter that f->event represents: a host that gives a record gives the one after
 * the receiver's last. */
static uint32_t event_of(const search *s, const frame *f)
{
    if (f->event < DP_EXPLORE_TAKE) {
        return f->event;
    }
    return DP_EXPLORE_TAKE +
           dp_explore_next(s->voters, dp_explore_head(s->voters, f->hosts[f->host]),
                           dp_explore_durable(s->voters, f->hosts[f->event - DP_EXPLORE_TAKE]));
}

static bool may_come(const search *s, const frame *f)
{
    const bool crash = f->event >= DP_EXPLORE_FAILED && f->event <= DP_EXPLORE_CRASH_BOTH;

    return (!crash || f->crashes < s->args.crashes) &&
           (f->event != DP_EXPLORE_BID || bids_of(s, f) < s->args.bids_all) &&
           dp_explore_may(s->voters, f->hosts[f->host], event_of(s, f));
}

/* The next possible event of the frame; false when all were tried. */
static bool next_event(const search *s, frame *f)
{
    for (; f->host < s->n; f->host++, f->event = 0) {
        if (f->event < DP_EXPLORE_MESSAGES_MAX && next_message(s, f)) {
            return true;
        }
        for (; f->event < DP_EXPLORE_TAKE + s->n; f->event++) {
            if (may_come(s, f)) {
                return true;
            }
        }
    }
    return false;
}

static bool has_decided(const search *s, uint32_t before, uint32_t state)
{
    return dp_explore_has_decided(s->voters, state) ||
           dp_explore_head(s->voters, state) != dp_explore_head(s->voters, before);
}

/* A vote that does not decide yet has no effect before the one that does: so the voter takes all
 * votes for this record in this ballot that were sent to it in one step, or none if they do not
 * decide. */
static dp_explore_effect hear_votes(search *s, const frame *f)
{
    const dp_explore_message *first = dp_explore_message_of(s->voters, f->event);
    dp_explore_effect effect = {.state = f->hosts[f->host]};

    for (uint32_t word = f->event / 64; word < words_of(s); word++) {
        for (uint64_t left = f->sent[word]; left != 0; left &= left - 1) {
            const uint32_t number = word * 64 + (uint32_t)__builtin_ctzll(left);
            const dp_explore_message *m = dp_explore_message_of(s->voters, number);
            if (m->to == f->host && m->type == DP_MSG_ACCEPTED && m->ballot == first->ballot &&
                m->hash == first->hash && !has_decided(s, f->hosts[f->host], effect.state)) {
                effect = *dp_explore_step(s->voters, effect.state, number);
                dp_explore_judge_claim(&s->judge, effect.claim);
            }
        }
    }
    if (!has_decided(s, f->hosts[f->host], effect.state)) {
        effect = (dp_explore_effect){.state = f->hosts[f->host]};
    }
    return effect;
}

static bool is_vote(const search *s, const frame *f)
{
    return f->event < DP_EXPLORE_MESSAGES_MAX &&
           dp_explore_message_of(s->voters, f->event)->type == DP_MSG_ACCEPTED;
}

static bool is_end(const search *s, const frame *f)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (dp_explore_decided(s->voters, f->hosts[i], s->args.bounds.slots) != 0) {
            return true;
        }
    }
    return false;
}

static void step(search *s, frame *f)
{
    dp_explore_effect effect = {0};
    frame *child = f + 1;
    const bool crash = f->event >= DP_EXPLORE_FAILED && f->event <= DP_EXPLORE_CRASH_BOTH;
    const uint32_t slot = slot_on_disk(s, f, f->host);

    s->steps++;
    if (is_vote(s, f) && !s->args.votes_each) {
        effect = hear_votes(s, f);
    } else {
        effect = *dp_explore_step(s->voters, f->hosts[f->host], event_of(s, f));
        dp_explore_judge_claim(&s->judge, effect.claim);
    }
    if (effect.state == f->hosts[f->host] && effect.n_sends == 0 && !crash && !failed(s)) {
        return;
    }
    memcpy(child, f, sizeof *child);
    child->hosts[f->host] = effect.state;
    child->crashes += crash ? 1 : 0;
    child->by_host = f->host;
    child->by_event = f->event;
    child->host = 0;
    child->event = 0;
    send_all(s, child, &effect);
    if (slot_on_disk(s, child, f->host) != slot) {
        forget_old(s, child);
    }
    dp_explore_judge_decided(&s->judge, child->hosts, s->n, s->args.bounds.slots);
    if (failed(s) || dp_explore_table_add(&s->seen, mark_of(s, child), 0)) {
        s->ends += is_end(s, child) ? 1 : 0;
        s->depth++;
        s->depth_max = s->depth > s->depth_max ? s->depth : s->depth_max;
        dp_assert(s->depth + 1 < DEPTH_MAX);
    }
}

static void run(search *s)
{
    frame *first = &s->stack[0];

    for (uint32_t i = 0; i < s->n; i++) {
        first->hosts[i] = dp_explore_start(s->voters, i);
    }
    dp_explore_table_add(&s->seen, mark_of(s, first), 0);
    for (;;) {
        frame *f = &s->stack[s->depth];
        if (failed(s) || s->seen.count > s->args.states) {
            return;
        }
        if (next_event(s, f)) {
            step(s, f);
            f->event++;
        } else if (s->depth == 0) {
            return;
        } else {
            s->depth--;
        }
    }
}

/* ---- telling ---- */

static const char *event_name(uint32_t event)
{
    static const char *const names[] = {"has its vote row on disk",
                                        "has the record on disk",
                                        "is told that its vote row is not on disk",
                                        "is told so although the row is there",
                                        "crashes, what it wrote is lost",
                                        "crashes, the row was written",
                                        "crashes, the record was written",
                                        "crashes, both were written",
                                        "proposes in ballot 0",
                                        "bids"};
    return event < DP_EXPLORE_TAKE ? names[event - DP_EXPLORE_MESSAGES_MAX]
                                   : "is given the next record";
}

static const char *type_name(uint8_t type)
{
    switch (type) {
    case DP_MSG_PREPARE:
        return "PREPARE";
    case DP_MSG_PROMISE:
        return "PROMISE";
    case DP_MSG_PROPOSE:
        return "PROPOSE";
    case DP_MSG_ACCEPTED:
        return "ACCEPTED";
    default:
        return "NACK";
    }
}

static void print_way(const search *s)
{
    for (uint32_t i = 1; i <= s->depth; i++) {
        const frame *f = &s->stack[i];
        if (f->by_event < DP_EXPLORE_MESSAGES_MAX) {
            const dp_explore_message *m = dp_explore_message_of(s->voters, f->by_event);
            printf("%4u  host %u hears %s of ballot %u from host %u in slot %u\n", i, f->by_host,
                   type_name(m->type), m->ballot, m->from,
                   dp_explore_slot(dp_explore_chain_of(s->voters), m->after) + 1);
        } else {
            printf("%4u  host %u %s\n", i, f->by_host, event_name(f->by_event));
        }
    }
}

static double seconds_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int tell(const search *s, double took)
{
    const bool all = s->seen.count <= s->args.states;

    if (failed(s)) {
        printf("FAIL %s\n", s->judge.failure);
        print_way(s);
    }
    printf("%s: %" PRIu64 " states, %" PRIu64 " with the last slot decided, %" PRIu64
           " steps, depth %u; %u states of single voters, %u "
           "messages; slots %u, voters %s, bids %u each and %u in all, crashes %u; "
           "%.1f s\n",
           failed(s) ? "stopped"
           : all     ? "all searched"
                     : "not all searched",
           s->seen.count, s->ends, s->steps, s->depth_max, dp_explore_states(s->voters),
           dp_explore_messages(s->voters), s->args.bounds.slots,
           s->args.bounds.hand_over ? "change" : "stay", s->args.bounds.bids, s->args.bids_all,
           s->args.crashes, took);
    return failed(s) ? 1 : all ? 0 : 2;
}

int dp_explore_main(int argc, char **argv)
{
    static dp_sim sim;
    search s = {.args = {.bounds = {.slots = 1, .bids = 1},
                         .bids_all = 2,
                         .crashes = 1,
                         .states = UINT64_MAX},
                .seen = {.only_keys = true}};
    const dp_sim_options options = {
        .seed = 1, .nodes = DP_EXPLORE_HOSTS, .profile = DP_PROFILE_DUEL, .trace = -1};
    dp_why why = {0};

    if (dp_explore_arguments_read(&s.args, argc, argv, &why) != DP_OK) {
        fprintf(stderr, "dpsim: %s\n", why.text);
        return 64;
    }
    if (s.args.help) {
        dp_explore_arguments_usage(stdout);
        return 0;
    }
    const double start = seconds_now();
    s.stack = calloc(DEPTH_MAX, sizeof *s.stack);
    dp_assert(s.stack != NULL && dp_sim_open(&sim, &options) == DP_OK);
    s.voters = dp_explore_voters_open(&sim, &s.args.bounds);
    s.judge = (dp_explore_judge){.voters = s.voters, .only_s1 = s.args.only_s1};
    s.n = s.args.bounds.hand_over ? DP_EXPLORE_HOSTS : DP_EXPLORE_VOTERS;
    run(&s);
    const int status = tell(&s, seconds_now() - start);
    dp_explore_voters_close(s.voters);
    dp_explore_table_close(&s.seen);
    dp_sim_close(&sim);
    free(s.stack);
    return status;
}
