#include "bench/defence_shipped.h"

#include <string.h>

#include "compute/trainer/trainer_inside.h"
#include "gossip/ledger/weights.h"

enum {
    ONE = 65536,
    TOLD_US = 1000 /* between two READY: hostile workers are the last and know all others */
};

/* One round, as voters see it. */
typedef struct session {
    defence_shipped *shipped;
    const defence_round *round;
    uint64_t left; /* tokens of the voter's budget */
    uint64_t tests;
} session;

void defence_shipped_open(defence_shipped *shipped)
{
    for (uint32_t v = 0; v < DEFENCE_VOTERS; v++) {
        shipped->judges[v].members = shipped->members[v];
        shipped->judges[v].members_max = QUALITY_WORKERS;
    }
}

static dp_peer peer_of(uint32_t worker)
{
    return (dp_peer){.bytes = {(uint8_t)(worker + 1)}};
}

static uint32_t scale_of(const session *s, uint32_t worker)
{
    const double norm = defence_norm(s->round->workers[worker].d, s->round->elements);
    const double clip = norm > s->round->median ? s->round->median / norm : 1;
    return (uint32_t)(clip * ONE) / DP_JUDGE_STEP_SHARE;
}

static dp_status measure(session *s, uint32_t voter, uint32_t worker, uint32_t tokens,
                         dp_judged *found)
{
    const defence_worker *const w = &s->round->workers[worker];
    dp_trainer_update update = {.blob = dp_buf_view(s->shipped->blobs[worker]),
                                .scale = scale_of(s, worker),
                                .tokens = tokens,
                                .seed = dp_mix64(s->round->number) + 64 * (uint64_t)voter + worker,
                                .own = w->own_first,
                                .own_count = w->own_end - w->own_first};
    memcpy(update.member, s->shipped->trainers[worker]->member, sizeof update.member);
    return dp_trainer_judge(s->shipped->trainers[voter], &update, found);
}

static dp_status judge_one(session *s, dp_judge *judge, uint32_t voter, uint32_t worker, bool *good)
{
    const dp_peer peer = peer_of(worker);
    const dp_time told = {s->round->number * 1000000 + (uint64_t)worker * TOLD_US};
    dp_judged found;
    dp_peer exposed;
    DP_TRY(measure(s, voter, worker, 0, &found));
    if (worker < DEFENCE_VOTERS) {
        dp_judge_trusted(judge, &peer, s->round->number, told, worker == voter, &found, &exposed);
        *good = true;
        return DP_OK;
    }
    if (dp_judge_suspects(judge, &found)) {
        const dp_manifest *const manifest = dp_trainer_manifest(s->shipped->trainers[voter]);
        const uint32_t tokens = dp_judge_take(&s->left, manifest->context);
        DP_TRY(measure(s, voter, worker, tokens, &found));
        s->tests++;
    }
    *good =
        dp_judge_update(judge, &peer, s->round->number, told, &found, &exposed) == DP_FOUND_GOOD;
    return DP_OK;
}

/* Adds this voter's votes: for updates that it would list, and against members that it accuses. */
static dp_status ask_voter(session *s, uint32_t voter, bool keeps, uint32_t *have, uint32_t *accuse)
{
    dp_judge judge = s->shipped->judges[voter];
    dp_judge_member members[QUALITY_WORKERS];
    memcpy(members, judge.members, sizeof members);
    judge.members = members;
    s->left = dp_judge_budget(s->shipped->training_tokens);
    dp_judge_open_round(&judge);
    for (uint32_t i = 0; i < s->round->n; i++) {
        bool good = false;
        if (s->round->workers[i].counted && s->shipped->out[i] == 0) {
            DP_TRY(judge_one(s, &judge, voter, i, &good));
            const dp_peer peer = peer_of(i);
            accuse[i] += dp_judge_accuses(&judge, &peer) ? 1 : 0;
        }
        have[i] += good ? 1 : 0;
    }
    if (keeps) {
        memcpy(s->shipped->members[voter], members, sizeof members);
        judge.members = s->shipped->members[voter];
        s->shipped->judges[voter] = judge;
    }
    return DP_OK;
}

dp_status defence_shipped_ask(defence_shipped *shipped, const defence_round *round, bool keeps,
                              bool rejected[QUALITY_WORKERS], uint64_t *tests)
{
    session s = {.shipped = shipped, .round = round};
    uint32_t have[QUALITY_WORKERS] = {0};
    uint32_t accuse[QUALITY_WORKERS] = {0};
    for (uint32_t voter = 0; voter < DEFENCE_VOTERS; voter++) {
        DP_TRY(ask_voter(&s, voter, keeps, have, accuse));
    }
    *tests += s.tests;
    for (uint32_t i = 0; i < round->n; i++) {
        rejected[i] = round->workers[i].counted && have[i] * 2 < DEFENCE_VOTERS;
        if (keeps && accuse[i] * 2 > DEFENCE_VOTERS) {
            shipped->out[i] = round->number;
        }
        for (uint32_t voter = 0; keeps && rejected[i] && voter < DEFENCE_VOTERS; voter++) {
            const dp_peer peer = peer_of(i);
            dp_judge_unlisted(&shipped->judges[voter], &peer, round->number);
        }
    }
    return DP_OK;
}
