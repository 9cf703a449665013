#include "gossip/round/judge.h"

#include <string.h>

#include "base/assert.h"
#include "base/mutation.h"
#include "gossip/ledger/weights.h"

const char *dp_judgement_text(dp_judgement judgement)
{
    switch (judgement) {
    case DP_FOUND_NONE:
    case DP_FOUND_GOOD:
        return "";
    case DP_FOUND_AGAINST:
        return "its update points away from the updates of the others and does not lower the loss";
    case DP_FOUND_COPY:
        return "its update is a copy of another member's update";
    }
    return "";
}

/* A token is passed forward twice for each of two gains; in training it costs as much as three
 * passes. */
enum { BUDGET_NUMERATOR = 9, BUDGET_DENOMINATOR = 400, SUSPECT_SHARE = 4, SUSPECT_WINDOWS = 4 };

uint64_t dp_judge_budget(uint64_t trained)
{
    return trained / BUDGET_DENOMINATOR * BUDGET_NUMERATOR;
}

uint32_t dp_judge_take(uint64_t *left, uint32_t context)
{
    const uint64_t part = *left / SUSPECT_SHARE;
    const uint64_t least = (uint64_t)SUSPECT_WINDOWS * context;
    const uint64_t tokens = part > least ? part : least;

    dp_assert(context > 0);
    *left -= part;
    return tokens < UINT32_MAX ? (uint32_t)tokens : UINT32_MAX;
}

void dp_judge_open_round(dp_judge *judge)
{
    dp_usual *usual = &judge->align;

    const int32_t middle = usual->n > 0 ? usual->samples[(usual->n - 1) / 2] : 0;

    if (middle > 0) { /* Else half of the updates point elsewhere, and give no usual value. */
        usual->value = usual->value == 0 ? middle : (4 * usual->value + middle) / 5;
    }
    usual->n = 0;
}

static void add_sample(dp_usual *usual, int32_t value)
{
    if (usual->n == DP_JUDGE_SAMPLES_MAX) {
        return;
    }
    uint32_t at = usual->n++;
    while (at > 0 && value < usual->samples[at - 1]) {
        usual->samples[at] = usual->samples[at - 1];
        at--;
    }
    usual->samples[at] = value;
}

/* ---- copies ---- */

static uint32_t distance(const uint8_t *a, const uint8_t *b)
{
    uint32_t bits = 0;

    for (uint32_t i = 0; i < DP_LIKENESS_BYTES; i++) {
        bits += (uint32_t)__builtin_popcount((uint32_t)(a[i] ^ b[i]));
    }
    return bits;
}

static bool is_nothing(const uint8_t *likeness)
{
    static const uint8_t nothing[DP_LIKENESS_BYTES];

    return memcmp(likeness, nothing, sizeof nothing) == 0;
}

typedef enum copied { COPIED_NONE = 0, COPIED_NOW, COPIED_BEFORE } copied;

/* The one that was told later is the copy: its author must have had the other. */
static copied copied_from(const dp_judge *judge, const dp_judge_print *print)
{
    copied most = COPIED_NONE;

    for (uint32_t i = 0; i < judge->n_prints && !dp_broken(225); i++) {
        const dp_judge_print *other = &judge->prints[i];
        const bool now = other->round == print->round &&
                         !dp_peer_equal(&other->peer, &print->peer) &&
                         other->told_at.us < print->told_at.us;
        const bool before = other->round > 0 && other->round < print->round &&
                            other->round + DP_JUDGE_PRINT_ROUNDS >= print->round;
        if ((now || before) && distance(other->likeness, print->likeness) < DP_JUDGE_COPY_BITS) {
            most = before ? COPIED_BEFORE : most == COPIED_NONE ? COPIED_NOW : most;
        }
    }
    return most;
}

/* Of this round, judged before it and told after it. */
static void find_copy(const dp_judge *judge, const dp_judge_print *print, dp_peer *exposed)
{
    for (uint32_t i = 0; i < judge->n_prints; i++) {
        const dp_judge_print *other = &judge->prints[i];
        if (other->round == print->round && !dp_peer_equal(&other->peer, &print->peer) &&
            other->told_at.us > print->told_at.us &&
            distance(other->likeness, print->likeness) < DP_JUDGE_COPY_BITS) {
            *exposed = other->peer;
        }
    }
}

static void add_print(dp_judge *judge, const dp_judge_print *print)
{
    judge->prints[judge->next_print] = *print;
    judge->next_print = (judge->next_print + 1) % DP_JUDGE_PRINTS_MAX;
    judge->n_prints += judge->n_prints < DP_JUDGE_PRINTS_MAX ? 1 : 0;
}

/* ---- judgements ---- */

enum { GAIN_MAX = 1 << 30 /* micronats: more than any loss, so that sums fit */ };

static int64_t bounded(int64_t micro)
{
    return micro > GAIN_MAX ? GAIN_MAX : micro < -GAIN_MAX ? -GAIN_MAX : micro;
}

/* The gains of both kinds of data together: an update of unlike data may cost the others a little,
 * and gains its author more. It is no excuse for a loss of half as much: a few samples can be
 * learnt by heart. */
static bool helps(const dp_judged *found)
{
    const dp_gain *gains[] = {&found->held, &found->claimed};
    const int64_t held = found->held.tokens > 0 ? bounded(found->held.micro) : 0;
    int64_t micro = 0;
    uint64_t square = 0;

    for (uint32_t i = 0; i < 2; i++) {
        if (gains[i]->tokens > 0) {
            const uint64_t error =
                gains[i]->error_micro < GAIN_MAX ? gains[i]->error_micro : GAIN_MAX;
            micro += bounded(gains[i]->micro);
            square += error * error;
        }
    }
    const bool harms = held < 0 && (uint64_t)-held > found->held.error_micro && -held > micro;
    return micro > 0 && (uint64_t)micro > DP_JUDGE_ERRORS * dp_isqrt(square) &&
           (!harms || dp_broken(231));
}

bool dp_judge_suspects(const dp_judge *judge, const dp_judged *found)
{
    return !found->failed && found->compared && !dp_broken(226) &&
           found->align <= judge->align.value / DP_JUDGE_SHARE;
}

static dp_judgement judgement_of(const dp_judge *judge, const dp_judge_print *print,
                                 const dp_judged *found)
{
    if (found->failed) {
        return DP_FOUND_GOOD; /* Nothing is known against it. */
    }
    if (dp_judge_suspects(judge, found) && (!helps(found) || dp_broken(230))) {
        return DP_FOUND_AGAINST;
    }
    return !is_nothing(print->likeness) && copied_from(judge, print) != COPIED_NONE ? DP_FOUND_COPY
                                                                                    : DP_FOUND_GOOD;
}

/* Its row, or a new one; where there is no room, that of the member that was judged longest ago. */
static dp_judge_member *member_of(dp_judge *judge, const dp_peer *peer)
{
    uint32_t oldest = 0;

    for (uint32_t i = 0; i < judge->n_members; i++) {
        if (dp_peer_equal(&judge->members[i].peer, peer)) {
            return &judge->members[i];
        }
        oldest = judge->members[i].round < judge->members[oldest].round ? i : oldest;
    }
    const uint32_t at = judge->n_members < judge->members_max ? judge->n_members++ : oldest;
    dp_assert(at < judge->members_max);
    judge->members[at] = (dp_judge_member){.peer = *peer};
    return &judge->members[at];
}

static dp_judge_print print_of(const dp_peer *peer, uint64_t round, dp_time told_at,
                               const dp_judged *found)
{
    dp_judge_print print = {.peer = *peer, .round = round, .told_at = told_at};

    memcpy(print.likeness, found->likeness, sizeof print.likeness);
    return print;
}

static void remember(dp_judge *judge, const dp_judge_print *print, dp_peer *exposed)
{
    if (!is_nothing(print->likeness)) {
        find_copy(judge, print, exposed);
        add_print(judge, print);
    }
}

dp_judgement dp_judge_update(dp_judge *judge, const dp_peer *peer, uint64_t round, dp_time told_at,
                             const dp_judged *found, dp_peer *exposed)
{
    const dp_judge_print print = print_of(peer, round, told_at, found);
    const dp_judgement judgement = judgement_of(judge, &print, found);

    dp_assert(round > 0);
    *exposed = (dp_peer){{0}};
    if (found->failed) {
        return judgement;
    }
    dp_judge_member *member = member_of(judge, peer);
    if (member->round >= round) {
        return judgement;
    }
    const bool harmful =
        judgement == DP_FOUND_AGAINST ||
        (judgement == DP_FOUND_COPY && copied_from(judge, &print) == COPIED_BEFORE);
    member->round = round;
    member->harmful = (member->harmful << 1 | (harmful ? 1U : 0U)) & ((1U << DP_JUDGE_WINDOW) - 1);
    if (found->compared) {
        add_sample(&judge->align, found->align);
    }
    if (judgement == DP_FOUND_GOOD) {
        remember(judge, &print, exposed);
    }
    return judgement;
}

void dp_judge_trusted(dp_judge *judge, const dp_peer *peer, uint64_t round, dp_time told_at,
                      bool own, const dp_judged *found, dp_peer *exposed)
{
    const dp_judge_print print = print_of(peer, round, told_at, found);

    *exposed = (dp_peer){{0}};
    if (found->failed) {
        return;
    }
    if (found->compared && !own) {
        add_sample(&judge->align, found->align);
    }
    remember(judge, &print, exposed);
}

void dp_judge_unlisted(dp_judge *judge, const dp_peer *peer, uint64_t round)
{
    for (uint32_t i = 0; i < judge->n_prints; i++) {
        dp_judge_print *print = &judge->prints[i];
        if (print->round == round && dp_peer_equal(&print->peer, peer)) {
            print->round = 0;
        }
    }
}

bool dp_judge_accuses(const dp_judge *judge, const dp_peer *peer)
{
    for (uint32_t i = 0; i < judge->n_members; i++) {
        const dp_judge_member *member = &judge->members[i];
        if (dp_peer_equal(&member->peer, peer)) {
            return (member->harmful & 1U) != 0 &&
                   __builtin_popcount(member->harmful) >= (dp_broken(227) ? 1 : DP_JUDGE_HARMFUL);
        }
    }
    return false;
}
