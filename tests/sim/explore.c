#include "tests/sim/explore.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "gossip/msg.h"
#include "tests/sim/explore_table.h"
#include "tests/sim/explore_voter.h"

enum { DEPTH_MAX = 20000, WORDS = DP_EXPLORE_MESSAGES_MAX / 64 };

typedef struct arguments {
    uint32_t bids;     /* of each voter */
    uint32_t bids_all; /* of all together */
    uint32_t crashes;
    uint64_t states; /* at most */
    bool only_s1;
    bool votes_each;
} arguments;

/* One state of the world on the way from the start. */
typedef struct frame {
    uint32_t voters[DP_EXPLORE_VOTERS];
    uint32_t crashes;
    uint64_t sent_mark; /* sum over the messages */
    uint64_t sent[WORDS];
    /* what is tried next */
    uint32_t voter;
    uint32_t event;
    /* how it was reached */
    uint32_t by_voter;
    uint32_t by_event;
} frame;

typedef struct search {
    arguments args;
    dp_explore_voters *voters;
    dp_explore_table seen;
    frame *stack; /* of DEPTH_MAX */
    uint32_t depth;
    uint32_t depth_max;
    uint64_t steps;
    char failure[160];
} search;

static uint64_t mark_of(const search *s, const frame *f)
{
    uint64_t mark = dp_mix64(f->crashes) ^ f->sent_mark;

    for (uint32_t i = 0; i < DP_EXPLORE_VOTERS; i++) {
        mark = dp_mix64(mark + dp_explore_mark(s->voters, f->voters[i]));
    }
    return mark;
}

/* ---- claims over all voters ---- */

static void fail(search *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void fail(search *s, const char *format, ...)
{
    va_list list;

    if (s->failure[0] == '\0') {
        va_start(list, format);
        vsnprintf(s->failure, sizeof s->failure, format, list);
        va_end(list);
    }
}

static bool has(const frame *f, uint32_t message)
{
    return (f->sent[message / 64] >> message % 64 & 1) != 0;
}

/* Of the bits of sent, as far as there are messages. */
static uint32_t words_of(const search *s)
{
    return dp_explore_messages(s->voters) / 64 + 1;
}

typedef void look(search *s, const dp_explore_message *new, const dp_explore_message *old,
                  void *context);

/* Every message sent so far beside a new one. */
static void each_sent(search *s, const frame *f, const dp_explore_message *new, look *do_look,
                      void *context)
{
    for (uint32_t word = 0; word < words_of(s) && s->failure[0] == '\0'; word++) {
        for (uint64_t left = f->sent[word]; left != 0; left &= left - 1) {
            const uint32_t number = word * 64 + (uint32_t)__builtin_ctzll(left);
            do_look(s, new, dp_explore_message_of(s->voters, number), context);
        }
    }
}

static void look_for_second_vote(search *s, const dp_explore_message *new,
                                 const dp_explore_message *old, void *context)
{
    (void)s;
    if (old->type == DP_MSG_ACCEPTED && old->ballot == new->ballot && old->hash == new->hash &&
        old->from != new->from) {
        *(bool *)context = true;
    }
}

typedef struct chosen {
    const frame *frame;
    uint32_t ballot;
    uint64_t hash;
} chosen;

/* old against a record that a majority has accepted. */
static void compare_chosen(search *s, const dp_explore_message *new, const dp_explore_message *old,
                           void *context)
{
    chosen *c = context;
    bool second = false;

    (void)new;
    if (old->hash == c->hash) {
        return;
    }
    if (old->type == DP_MSG_PROPOSE && old->ballot > c->ballot && !s->args.only_s1) {
        fail(s, "V2: ballot %u proposes another record than ballot %u has decided", old->ballot,
             c->ballot);
    }
    if (old->type == DP_MSG_ACCEPTED) {
        each_sent(s, c->frame, old, look_for_second_vote, &second);
        if (second) {
            fail(s, "S1: ballots %u and %u have decided two records", old->ballot, c->ballot);
        }
    }
}

/* A PROPOSE against all that is chosen in lower ballots, and against its own ballot. */
static void compare_propose(search *s, const dp_explore_message *new, const dp_explore_message *old,
                            void *context)
{
    bool second = false;

    if (old->type == DP_MSG_PROPOSE && old->ballot == new->ballot && old->hash != new->hash) {
        fail(s, "V3: two records in ballot %u", new->ballot);
    }
    if (old->type == DP_MSG_ACCEPTED && old->ballot < new->ballot && old->hash != new->hash) {
        each_sent(s, context, old, look_for_second_vote, &second);
        if (second) {
            fail(s, "V2: ballot %u proposes another record than ballot %u has decided", new->ballot,
                 old->ballot);
        }
    }
}

static void check_message(search *s, frame *f, const dp_explore_message *m)
{
    bool second = false;

    if (m->type == DP_MSG_PROPOSE && !s->args.only_s1) {
        each_sent(s, f, m, compare_propose, f);
    }
    if (m->type == DP_MSG_ACCEPTED) {
        each_sent(s, f, m, look_for_second_vote, &second);
        if (second) {
            chosen c = {.frame = f, .ballot = m->ballot, .hash = m->hash};
            each_sent(s, f, m, compare_chosen, &c);
        }
    }
}

static void check_decided(search *s, const frame *f)
{
    uint64_t first = 0;

    for (uint32_t i = 0; i < DP_EXPLORE_VOTERS; i++) {
        const uint64_t decided = dp_explore_decided(s->voters, f->voters[i]);
        if (decided != 0 && first != 0 && decided != first) {
            fail(s, "S1: voters hold two records for decided");
        }
        first = decided != 0 ? decided : first;
    }
}

/* ---- the search: depth first, no state twice ---- */

static void send_all(search *s, frame *f, const dp_explore_effect *effect)
{
    for (uint32_t i = 0; i < effect->n_sends; i++) {
        const uint32_t number = effect->sends[i];
        if (!has(f, number)) {
            const dp_explore_message *m = dp_explore_message_of(s->voters, number);
            f->sent[number / 64] |= 1ULL << number % 64;
            f->sent_mark += dp_mix64(m->mark);
            check_message(s, f, m);
        }
    }
}

static uint32_t bids_of(const search *s, const frame *f)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < DP_EXPLORE_VOTERS; i++) {
        sum += dp_explore_bids(s->voters, f->voters[i]);
    }
    return sum;
}

/* The next event of the frame that may come; false when all were tried. */
static bool next_event(const search *s, frame *f)
{
    for (; f->voter < DP_EXPLORE_VOTERS; f->voter++, f->event = 0) {
        for (; f->event < DP_EXPLORE_EVENTS; f->event++) {
            if (f->event < DP_EXPLORE_MESSAGES_MAX) {
                if (f->event >= words_of(s) * 64) {
                    f->event = DP_EXPLORE_MESSAGES_MAX - 1;
                    continue;
                }
                const uint64_t left = f->sent[f->event / 64] >> f->event % 64;
                if (left == 0) { /* None in the rest of this word. */
                    f->event |= 63;
                    continue;
                }
                f->event += (uint32_t)__builtin_ctzll(left);
                if (dp_explore_message_of(s->voters, f->event)->to != f->voter) {
                    continue;
                }
                return true;
            }
            const bool crash = f->event == DP_EXPLORE_CRASH || f->event == DP_EXPLORE_CRASH_KEPT;
            if ((!crash || f->crashes < s->args.crashes) &&
                (f->event != DP_EXPLORE_BID || bids_of(s, f) < s->args.bids_all) &&
                dp_explore_may(s->voters, f->voters[f->voter], f->event)) {
                return true;
            }
        }
    }
    return false;
}

static void judge_effect(search *s, const dp_explore_effect *effect)
{
    if (effect->claim != NULL && (!s->args.only_s1 || memcmp(effect->claim, "S1", 2) == 0)) {
        fail(s, "%s", effect->claim);
    }
}

/* A vote that decides nothing yet may as well be heard with the one that does: then all votes for this record in this ballot
 * that were sent to the voter are heard in one step, or, if they do not decide, none. */
static uint32_t hear_votes(search *s, const frame *f)
{
    const dp_explore_message *first = dp_explore_message_of(s->voters, f->event);
    const uint32_t before = f->voters[f->voter];
    uint32_t state = before;

    for (uint32_t word = f->event / 64; word < words_of(s); word++) {
        for (uint64_t left = f->sent[word]; left != 0; left &= left - 1) {
            const uint32_t number = word * 64 + (uint32_t)__builtin_ctzll(left);
            const dp_explore_message *m = dp_explore_message_of(s->voters, number);
            if (m->to == f->voter && m->type == DP_MSG_ACCEPTED && m->ballot == first->ballot &&
                m->hash == first->hash && dp_explore_decided(s->voters, state) == 0) {
                const dp_explore_effect *effect = dp_explore_step(s->voters, state, number);
                judge_effect(s, effect);
                state = effect->state;
            }
        }
    }
    return dp_explore_decided(s->voters, state) != 0 ? state : before;
}

static bool is_vote(const search *s, const frame *f)
{
    return f->event < DP_EXPLORE_MESSAGES_MAX &&
           dp_explore_message_of(s->voters, f->event)->type == DP_MSG_ACCEPTED;
}

static void step(search *s, frame *f)
{
    dp_explore_effect effect = {0};
    frame *child = f + 1;
    const bool crash = f->event == DP_EXPLORE_CRASH || f->event == DP_EXPLORE_CRASH_KEPT;

    s->steps++;
    if (is_vote(s, f) && !s->args.votes_each) {
        effect.state = hear_votes(s, f);
    } else {
        effect = *dp_explore_step(s->voters, f->voters[f->voter], f->event);
        judge_effect(s, &effect);
    }
    if (effect.state == f->voters[f->voter] && effect.n_sends == 0 && !crash &&
        s->failure[0] == '\0') {
        return;
    }
    memcpy(child, f, sizeof *child);
    child->voters[f->voter] = effect.state;
    child->crashes += crash ? 1 : 0;
    child->by_voter = f->voter;
    child->by_event = f->event;
    child->voter = 0;
    child->event = 0;
    send_all(s, child, &effect);
    check_decided(s, child);
    if (s->failure[0] != '\0' || dp_explore_table_add(&s->seen, mark_of(s, child), 0)) {
        s->depth++;
        s->depth_max = s->depth > s->depth_max ? s->depth : s->depth_max;
        dp_assert(s->depth + 1 < DEPTH_MAX);
    }
}

static void run(search *s)
{
    frame *first = &s->stack[0];

    for (uint32_t i = 0; i < DP_EXPLORE_VOTERS; i++) {
        first->voters[i] = dp_explore_start(s->voters, i);
    }
    dp_explore_table_add(&s->seen, mark_of(s, first), 0);
    for (;;) {
        frame *f = &s->stack[s->depth];
        if (s->failure[0] != '\0' || s->seen.count > s->args.states) {
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
    static const char *const names[] = {"write ends", "crashes, the write is lost",
                                        "crashes, the write was done", "proposes in ballot 0",
                                        "bids"};
    return names[event - DP_EXPLORE_MESSAGES_MAX];
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
            printf("%4u  voter %u hears %s of ballot %u from voter %u\n", i, f->by_voter,
                   type_name(m->type), m->ballot, m->from);
        } else {
            printf("%4u  voter %u %s\n", i, f->by_voter, event_name(f->by_event));
        }
    }
}

static bool read_arguments(arguments *args, int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        char *end = NULL;
        if (i + 1 >= argc) {
            return false;
        }
        const char *name = argv[i];
        const char *text = argv[++i];
        if (strcmp(name, "--claim") == 0) {
            args->only_s1 = strcmp(text, "s1") == 0;
            if (!args->only_s1 && strcmp(text, "all") != 0) {
                return false;
            }
            continue;
        }
        if (strcmp(name, "--votes") == 0) {
            args->votes_each = strcmp(text, "each") == 0;
            if (!args->votes_each && strcmp(text, "together") != 0) {
                return false;
            }
            continue;
        }
        const uint64_t number = strtoull(text, &end, 10);
        if (text[0] < '0' || text[0] > '9' || *end != '\0') {
            return false;
        }
        if (strcmp(name, "--bids") == 0 && number < 8) {
            args->bids = (uint32_t)number;
        } else if (strcmp(name, "--bids-all") == 0 && number < 32) {
            args->bids_all = (uint32_t)number;
        } else if (strcmp(name, "--crashes") == 0 && number < 8) {
            args->crashes = (uint32_t)number;
        } else if (strcmp(name, "--states") == 0 && number > 0) {
            args->states = number;
        } else {
            return false;
        }
    }
    return true;
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

    if (s->failure[0] != '\0') {
        printf("FAIL %s\n", s->failure);
        print_way(s);
    }
    printf("%s: %" PRIu64 " states, %" PRIu64 " steps, depth %u; %u states of single voters, %u "
           "messages; bids %u each and %u in all, crashes %u; "
           "%.1f s\n",
           s->failure[0] != '\0' ? "stopped"
           : all                 ? "all searched"
                                 : "not all searched",
           s->seen.count, s->steps, s->depth_max, dp_explore_states(s->voters),
           dp_explore_messages(s->voters), s->args.bids, s->args.bids_all, s->args.crashes, took);
    return s->failure[0] != '\0' ? 1 : all ? 0 : 2;
}

int dp_explore_main(int argc, char **argv)
{
    static dp_sim sim;
    search s = {.args = {.bids = 1, .bids_all = 2, .crashes = 1, .states = UINT64_MAX},
                .seen = {.only_keys = true}};
    const dp_sim_options options = {
        .seed = 1, .nodes = DP_EXPLORE_VOTERS, .profile = DP_PROFILE_DUEL, .trace = -1};

    if (!read_arguments(&s.args, argc, argv)) {
        fputs("usage: dpsim --explore [--bids N] [--bids-all N] [--crashes N] [--states N] "
              "[--claim all|s1]\n",
              stderr);
        return 64;
    }
    const double start = seconds_now();
    s.stack = calloc(DEPTH_MAX, sizeof *s.stack);
    dp_assert(s.stack != NULL && dp_sim_open(&sim, &options) == DP_OK);
    s.voters = dp_explore_voters_open(&sim, s.args.bids);
    run(&s);
    const int status = tell(&s, seconds_now() - start);
    dp_explore_voters_close(s.voters);
    dp_explore_table_close(&s.seen);
    dp_sim_close(&sim);
    free(s.stack);
    return status;
}
