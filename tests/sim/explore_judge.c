#include "tests/sim/explore_judge.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gossip/core/msg.h"

typedef struct looking {
    dp_explore_judge *judge;
    const uint64_t *sent;
    const dp_explore_message *new;
    bool second; /* another voter has accepted the record that new accepts */
} looking;

typedef void look(looking *l, const dp_explore_message *old);

static void fail(dp_explore_judge *judge, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void fail(dp_explore_judge *judge, const char *format, ...)
{
    va_list list;

    if (judge->failure[0] == '\0') {
        va_start(list, format);
        vsnprintf(judge->failure, sizeof judge->failure, format, list);
        va_end(list);
    }
}

void dp_explore_judge_claim(dp_explore_judge *judge, const char *claim)
{
    if (claim != NULL && (!judge->only_s1 || memcmp(claim, "S1", 2) == 0)) {
        fail(judge, "%s", claim);
    }
}

/* Every message of the slot of l->new that matters. */
static void each_sent(looking *l, look *do_look)
{
    const uint32_t words = dp_explore_messages(l->judge->voters) / 64 + 1;

    for (uint32_t word = 0; word < words && l->judge->failure[0] == '\0'; word++) {
        for (uint64_t left = l->sent[word]; left != 0; left &= left - 1) {
            const dp_explore_message *old = dp_explore_message_of(
                l->judge->voters, word * 64 + (uint32_t)__builtin_ctzll(left));
            if (old->after == l->new->after) {
                do_look(l, old);
            }
        }
    }
}

static void look_for_second_vote(looking *l, const dp_explore_message *old)
{
    if (old->type == DP_MSG_ACCEPTED && old->ballot == l->new->ballot &&
        old->hash == l->new->hash && old->from != l->new->from) {
        l->second = true;
    }
}

/* Has a majority accepted the record of vote? */
static bool is_chosen(const looking *l, const dp_explore_message *vote)
{
    looking around = {.judge = l->judge, .sent = l->sent, .new = vote};

    each_sent(&around, look_for_second_vote);
    return around.second;
}

/* Checks old against l->new, whose record a majority has accepted. */
static void compare_chosen(looking *l, const dp_explore_message *old)
{
    if (old->hash == l->new->hash) {
        return;
    }
    if (old->type == DP_MSG_PROPOSE && old->ballot > l->new->ballot && !l->judge->only_s1) {
        fail(l->judge, "V2: ballot %u proposes another record than ballot %u has decided",
             old->ballot, l->new->ballot);
    }
    if (old->type == DP_MSG_ACCEPTED && is_chosen(l, old)) {
        fail(l->judge, "S1: ballots %u and %u have decided two records", old->ballot,
             l->new->ballot);
    }
}

/* Checks a PROPOSE against all records chosen in lower ballots, and against its own ballot. */
static void compare_propose(looking *l, const dp_explore_message *old)
{
    if (old->type == DP_MSG_PROPOSE && old->ballot == l->new->ballot && old->hash != l->new->hash) {
        fail(l->judge, "V3: two records in ballot %u", l->new->ballot);
    }
    if (old->type == DP_MSG_ACCEPTED && old->ballot < l->new->ballot &&
        old->hash != l->new->hash &&is_chosen(l, old)) {
        fail(l->judge, "V2: ballot %u proposes another record than ballot %u has decided",
             l->new->ballot, old->ballot);
    }
}

void dp_explore_judge_message(dp_explore_judge *judge, const uint64_t sent[DP_EXPLORE_WORDS],
                              const dp_explore_message *message)
{
    looking l = {.judge = judge, .sent = sent, .new = message};

    if (message->type == DP_MSG_PROPOSE && !judge->only_s1) {
        each_sent(&l, compare_propose);
    }
    if (message->type == DP_MSG_ACCEPTED && is_chosen(&l, message)) {
        each_sent(&l, compare_chosen);
    }
}

void dp_explore_judge_decided(dp_explore_judge *judge, const uint32_t *states, uint32_t n,
                              uint32_t slots)
{
    for (uint32_t slot = 1; slot <= slots; slot++) {
        uint32_t first = 0;
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t decided = dp_explore_decided(judge->voters, states[i], slot);
            if (decided != 0 && first != 0 && decided != first) {
                fail(judge, "S1: two hosts hold two records for decided");
            }
            first = decided != 0 ? decided : first;
        }
    }
}
