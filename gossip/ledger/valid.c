#include "gossip/ledger/valid.h"

#include <string.h>

#include "base/assert.h"
#include "base/mutation.h"
#include "gossip/ledger/harm.h"
#include "gossip/ledger/inviting.h"
#include "gossip/ledger/valid_inside.h"
#include "gossip/ledger/weights.h"

#define CARRIED_MAX ((uint64_t)1 << 44)

/* A member by the chain, or one that this record admits: its capabilities, 0 for a stranger. */
uint32_t dp_valid_caps(const dp_valid *valid, const dp_record *record, const dp_peer *peer)
{
    const dp_roster_entry *entry = dp_ledger_member(valid->ledger, peer);

    if (entry != NULL) {
        return entry->caps;
    }
    for (uint32_t i = 0; record->has_config && i < record->config.n_admits; i++) {
        if (dp_peer_equal(&record->config.admits[i].peer, peer)) {
            return valid->admitted[i].caps;
        }
    }
    return 0;
}

/* ---- config part ---- */

static bool is_listed(const dp_record *record, const dp_peer *peer)
{
    for (uint32_t i = 0; i < record->n_listed; i++) {
        if (dp_peer_equal(&record->listed[i].peer, peer)) {
            return true;
        }
    }
    return false;
}

static dp_status check_admits(const dp_valid *valid, const dp_record *record, const char **cause)
{
    const dp_ledger *ledger = valid->ledger;
    const dp_config_part *config = &record->config;

    if (config->n_admits > 0 &&
        (!dp_ledger_has_place(ledger, config->n_admits, config->n_removes) ||
         dp_ledger_rows_left(ledger) < config->n_admits)) {
        return no(cause, "the record admits more members than the run may have");
    }
    for (uint32_t i = 0; i < config->n_admits; i++) {
        const dp_admit *admit = &config->admits[i];
        dp_admitted *out = &valid->admitted[i];
        if (dp_ledger_member(ledger, &admit->peer) != NULL ||
            dp_ledger_barred(ledger, &admit->peer)) {
            return no(cause, "the record admits a node that is a member or was removed");
        }
        if (valid->admission->check(valid->admission->context, admit->credential, &ledger->run,
                                    ledger->root_key, &admit->peer, record->time_ms,
                                    out) != DP_OK) {
            return no(cause, "the record admits a node whose credential is not valid");
        }
        const char *struck = dp_inviting_struck(ledger, config, out);
        if (struck != NULL) {
            return no(cause, struck);
        }
        uint32_t uses = dp_ledger_uses(ledger, &out->invite, &admit->peer);
        for (uint32_t k = 0; k < i; k++) {
            uses +=
                memcmp(&valid->admitted[k].invite, &out->invite, sizeof out->invite) == 0 ? 1 : 0;
        }
        if (out->uses > 0 && uses >= out->uses) {
            return no(cause, "the invite of an admitted node is used up");
        }
    }
    return DP_OK;
}

/* Its place is wanted, and the record has nothing of it. */
static bool is_absent(const dp_ledger *ledger, const dp_record *record, const dp_peer *peer)
{
    bool late = false;

    for (uint32_t i = 0; i < record->n_late; i++) {
        late = late || dp_peer_equal(&record->late[i], peer);
    }
    return record->config.n_admits > 0 && !late && !is_listed(record, peer) &&
           dp_ledger_is_absent(ledger, dp_ledger_member(ledger, peer), record->time_ms);
}

static dp_status check_removes(const dp_valid *valid, const dp_record *record, const char **cause)
{
    const dp_ledger *ledger = valid->ledger;
    const dp_config_part *config = &record->config;

    for (uint32_t i = 0; i < config->n_removes; i++) {
        const dp_remove *remove = &config->removes[i];
        if (dp_ledger_member(ledger, &remove->peer) == NULL) {
            return no(cause, "the record removes a node that is not a member");
        }
        if (remove->reason == DP_REMOVE_REVOKED &&
            !dp_ledger_may_revoke(ledger, &remove->by, &remove->peer)) {
            return no(cause, "the signer of a revocation may not revoke that member");
        }
        if (remove->reason == DP_REMOVE_ABSENT) {
            if (!is_absent(ledger, record, &remove->peer)) {
                return no(cause, "the record removes a member as absent that is not absent");
            }
            continue;
        }
        if (remove->reason == DP_REMOVE_HARMFUL) {
            DP_TRY(dp_harm_valid(ledger, valid->crypto, remove, cause));
            continue;
        }
        if (!dp_remove_verify(remove, valid->crypto, &ledger->run)) {
            *cause = "the signature of a removal is not valid";
            return DP_BADSIG;
        }
        /* Every voter is a member; the last member of all may leave. */
        if (config->n_voters == 0 && dp_ledger_voter(ledger, &remove->peer) != DP_NOBODY &&
            ledger->n_members + config->n_admits > config->n_removes) {
            return no(cause, "the record removes a voter and names no new voters");
        }
    }
    for (uint32_t i = 0; i < config->n_fences; i++) {
        const uint32_t index = dp_ledger_find(ledger, &config->fences[i].peer);
        if (index == DP_NOBODY || ledger->roster[index].fenced >= config->fences[i].incarnation) {
            return no(cause,
                      "the record fences a node that is not in the roster or is fenced already");
        }
    }
    return DP_OK;
}

static dp_status check_revoked(const dp_valid *valid, const dp_record *record, const char **cause)
{
    const dp_ledger *ledger = valid->ledger;
    const dp_config_part *config = &record->config;

    if (config->n_revoked > dp_inviting_room(ledger, record->time_ms)) {
        return no(cause, "the list of revoked invites is full");
    }
    for (uint32_t i = 0; i < config->n_revoked; i++) {
        const dp_invite_revoke *word = &config->revoked[i];
        if (!dp_inviting_may_revoke(ledger, &word->by)) {
            return no(cause, "the signer may not revoke an invite");
        }
        if (!dp_inviting_wants(ledger, word, record->time_ms)) {
            return no(cause, "the record revokes an invite that is revoked already or has expired");
        }
        if (!dp_invite_revoke_verify(word, valid->crypto, &ledger->run)) {
            *cause = "the signature of an invite's revocation is not valid";
            return DP_BADSIG;
        }
    }
    return DP_OK;
}

static bool is_removed(const dp_config_part *config, const dp_peer *peer)
{
    for (uint32_t i = 0; i < config->n_removes; i++) {
        if (dp_peer_equal(&config->removes[i].peer, peer)) {
            return true;
        }
    }
    return false;
}

static dp_status check_voters(const dp_valid *valid, const dp_record *record, const char **cause)
{
    const dp_ledger *ledger = valid->ledger;
    const dp_config_part *config = &record->config;

    if (config->n_voters == 0) {
        return DP_OK;
    }
    if (!dp_broken(18) && (config->n_voters % 2 == 0 || config->n_voters > ledger->voters_max)) {
        return no(cause, "the number of voters is even or too large");
    }
    for (uint32_t i = 0; i < config->n_voters; i++) {
        const dp_voter_entry *entry = &config->voters[i];
        const dp_peer *peer = &entry->voter.peer;
        const uint32_t index = dp_ledger_voter(ledger, peer);
        if ((dp_valid_caps(valid, record, peer) & DP_CAP_VOTE) == 0 || is_removed(config, peer)) {
            return no(cause, "the record names a voter that may not vote");
        }
        for (uint32_t k = 0; k < i; k++) {
            if (memcmp(config->voters[k].voter.key, entry->voter.key, DP_PUBLIC_KEY_BYTES) == 0) {
                return no(cause, "two voters have the same vote key");
            }
        }
        if (entry->kept) {
            if (index == DP_NOBODY ||
                memcmp(ledger->voters[index].key, entry->voter.key, DP_PUBLIC_KEY_BYTES) != 0) {
                return no(cause, "the record keeps a voter that was none, or had another vote key");
            }
        } else if (!dp_voter_ok_verify(valid->crypto, peer, &ledger->run, &ledger->head,
                                       entry->voter.key, entry->signature)) {
            *cause = "the signature of a new voter is not valid";
            return DP_BADSIG;
        }
    }
    return DP_OK;
}

/* ---- ROUND ---- */

/* A majority of the voters of this slot signed the state that the contributions start from. */
static dp_status check_state(const dp_valid *valid, const dp_record *record, const char **cause)
{
    const dp_ledger *ledger = valid->ledger;

    if (record->n_state < dp_ledger_majority(ledger) && !(dp_broken(44) && record->n_state >= 2)) {
        return no(cause, "fewer than a majority of the voters signed the state");
    }
    for (uint32_t i = 0; i < record->n_state; i++) {
        const dp_seal *seal = &record->state[i];
        if (seal->voter >= ledger->n_voters) {
            return no(cause, "a signer of the state is not a voter");
        }
        if (!dp_state_verify(valid->crypto, ledger->voters[seal->voter].key, &ledger->run,
                             &ledger->fork, ledger->round, &record->state_root, seal->signature)) {
            *cause = "a signature of the state is not valid";
            return DP_BADSIG;
        }
    }
    return DP_OK;
}

bool dp_valid_numbers(const dp_ready *ready)
{
    return ready->steps > 0 && ready->tokens <= DP_TOKENS_MAX && ready->carried <= CARRIED_MAX &&
           ready->bytes > 0 && ready->bytes <= DP_OBJECT_BYTES_MAX &&
           ready->energy <= DP_ENERGY_MAX; /* Of parts; else the blob tells it. */
}

bool dp_valid_lease(const dp_ledger *ledger, const dp_ready *ready)
{
    return dp_broken(62) || dp_lease_covers(dp_ledger_lease(ledger, &ready->peer), &ready->reach,
                                            ready->tokens + ready->carried, ledger->context);
}

dp_ready dp_valid_ready(const dp_ledger *ledger, const dp_record *record, uint32_t index)
{
    dp_ready ready = dp_ready_of_listed(record, &record->listed[index]);

    dp_assert(index < record->n_listed);
    if (dp_listed_age(record, index) != 0) {
        ready.round--;
        ready.base = ledger->base_before;
        ready.state_root = ledger->state_before;
    }
    return ready;
}

/* One blob under two names is counted once. Blobs of nothing may well be equal. */
static bool is_copied(const dp_record *record, uint32_t index)
{
    dp_assert(index < record->n_listed);
    for (uint32_t i = 0; i < index; i++) {
        if (record->listed[index].energy != 0 &&
            dp_hash_equal(&record->listed[i].root, &record->listed[index].root)) {
            return true;
        }
    }
    return false;
}

static dp_status check_listed(const dp_valid *valid, const dp_record *record, const char **cause)
{
    const dp_ledger *ledger = valid->ledger;

    if (record->n_listed == 0 || record->n_listed > ledger->listed_max) {
        return no(cause, "the number of contributions is 0 or too large");
    }
    for (uint32_t i = 0; i < record->n_listed; i++) {
        const dp_listed *listed = &record->listed[i];
        if ((dp_valid_caps(valid, record, &listed->peer) & DP_CAP_TRAIN) == 0) {
            return no(cause, "the record counts a node that may not train");
        }
        if (dp_listed_age(record, i) != 0 && !dp_ledger_may_be_stale(ledger, &listed->peer)) {
            return no(cause, "a contribution is for the round before and may not count any more");
        }
        const dp_ready ready = dp_valid_ready(ledger, record, i);
        if (!dp_valid_numbers(&ready) || listed->energy > DP_ENERGY_MAX) {
            return no(cause, "the numbers of a contribution are out of range");
        }
        if (!dp_valid_lease(ledger, &ready)) {
            return no(cause, "a contribution has samples outside of its member's lease");
        }
        if (is_copied(record, i)) {
            return no(cause, "two members contribute the same blob");
        }
        if (!(dp_broken(70) && i >= DP_LIST_ROWS_MAX) &&
            !dp_ready_verify(&ready, valid->crypto, &ledger->run, &ledger->fork)) {
            *cause = "the signature of a contribution is not valid";
            return DP_BADSIG;
        }
    }
    for (uint32_t i = 0; i < record->n_late; i++) {
        const dp_roster_entry *entry = dp_ledger_member(ledger, &record->late[i]);
        if (entry == NULL || is_listed(record, &record->late[i]) ||
            !dp_ledger_may_be_late(ledger, entry, record->round)) {
            return no(cause, "the list of late members is not valid");
        }
    }
    return DP_OK;
}

/* The numbers of the record that follow from the others; computed at the proposer and again by
 * everyone. */
typedef struct numbers {
    dp_weight_out rows[DP_LISTED_MAX];
    dp_weight_sum sum;
    uint64_t tokens;
} numbers;

static dp_weight_in weight_in(const dp_ledger *ledger, const dp_ready *ready, uint32_t age,
                              unsigned __int128 energy)
{
    return (dp_weight_in){
        .tokens = ready->tokens,
        .steps = ready->steps,
        .rounds = dp_ledger_rounds(dp_ledger_member(ledger, &ready->peer), ledger->round + 1 - age),
        .age = age,
        /* All alike: none stands out. */
        .energy = ledger->unclipped ? 0 : energy};
}

dp_weight_out dp_valid_weigh(const dp_ledger *ledger, const dp_ready *ready)
{
    const dp_weight_in in = weight_in(ledger, ready, 0, ready->energy);

    return dp_weight_before(&in, ledger->w_median, ledger->clip_median);
}

static void compute(const dp_ledger *ledger, const dp_record *record, numbers *out)
{
    dp_weight_in in[DP_LISTED_MAX];
    uint64_t counted[DP_LISTED_MAX];
    unsigned __int128 late = 0;

    dp_assert(record->n_listed <= DP_LISTED_MAX);
    out->tokens = dp_ledger_counted(ledger, record, counted);
    for (uint32_t i = 0; i < record->n_listed; i++) {
        const dp_listed *listed = &record->listed[i];
        const dp_ready ready = dp_valid_ready(ledger, record, i);
        in[i] = weight_in(ledger, &ready, dp_listed_age(record, i), listed->energy);
        if (record->parted) {
            out->rows[i] = dp_valid_weigh(ledger, &ready);
        }
    }
    for (uint32_t i = 0; i < record->n_late; i++) {
        late += dp_ledger_member(ledger, &record->late[i])->w;
    }
    if (dp_broken(24)) {
        late = 0;
    }
    out->sum = record->parted ? dp_weights_before(in, record->n_listed, late, out->rows)
                              : dp_weights(in, record->n_listed, late, out->rows);
}

void dp_valid_fill(const dp_ledger *ledger, dp_record *record)
{
    numbers all;

    compute(ledger, record, &all);
    record->alpha = ledger->alpha;
    record->tokens_total = all.tokens;
    record->w_total = all.sum.w;
    record->clip_median = all.sum.median;
    for (uint32_t i = 0; i < record->n_listed; i++) {
        record->listed[i].w = all.rows[i].w;
        record->listed[i].clip = all.rows[i].clip;
        record->listed[i].q = all.rows[i].q;
    }
    if (record->parted) {
        dp_valid_fill_parts(record);
    }
}

static dp_status check_numbers(const dp_valid *valid, const dp_record *record, const char **cause)
{
    numbers all;

    compute(valid->ledger, record, &all);
    if (record->alpha != valid->ledger->alpha || record->tokens_total != all.tokens ||
        record->w_total != all.sum.w || record->clip_median != all.sum.median) {
        return no(cause, "the totals of the round do not follow from its contributions");
    }
    for (uint32_t i = 0; i < record->n_listed; i++) {
        const dp_listed *listed = &record->listed[i];
        if (listed->w != all.rows[i].w || listed->clip != all.rows[i].clip ||
            listed->q != all.rows[i].q) {
            return no(cause, "the weight of a contribution is not the one that the chain gives it");
        }
    }
    return DP_OK;
}

static dp_status check_round(const dp_valid *valid, const dp_record *record, const char **cause)
{
    const dp_ledger *ledger = valid->ledger;

    dp_assert(record->kind == DP_RECORD_ROUND);
    if (record->round != ledger->round + 1 || !dp_hash_equal(&record->base, &ledger->base)) {
        return no(cause, "the record is for another round or base");
    }
    DP_TRY(check_state(valid, record, cause));
    if (record->parted != ledger->parted || record->in_lists != dp_ledger_lists(ledger)) {
        return no(cause, "the form of the record is not that of this run's rounds");
    }
    if (record->lines != DP_LINES_FIT && !dp_density_moves(&ledger->density)) {
        return no(cause, "the record changes the density, which is fixed in this run");
    }
    DP_TRY(check_listed(valid, record, cause));
    DP_TRY(check_numbers(valid, record, cause));
    return record->parted ? dp_valid_parts(valid, record, cause) : DP_OK;
}

/* ---- FORK ---- */

dp_status dp_valid_record(const dp_valid *valid, const dp_record *record, const char **cause)
{
    const dp_ledger *ledger = valid->ledger;

    *cause = "";
    if (!dp_hash_equal(&record->run, &ledger->run) ||
        !dp_hash_equal(&record->fork, &ledger->fork)) {
        return no(cause, "the record is of another run or another fork");
    }
    if (record->slot != ledger->slot + 1) {
        *cause = "the record is of another slot";
        return record->slot > ledger->slot ? DP_AGAIN : DP_EXISTS;
    }
    if (!dp_hash_equal(&record->prev, &ledger->head)) {
        return no(cause, "the record does not follow the newest one of this chain");
    }
    if (record->time_ms < ledger->time_ms) {
        return no(cause, "the record's time is before that of the record before");
    }
    if (record->kind == DP_RECORD_FORK) {
        return record->round == ledger->round
                   ? dp_valid_fork(valid, record, cause)
                   : no(cause, "the fork is after another round than the newest one");
    }
    if (record->has_config) {
        DP_TRY(check_admits(valid, record, cause));
        DP_TRY(check_removes(valid, record, cause));
        DP_TRY(check_revoked(valid, record, cause));
        if (record->config.has_rotation) {
            DP_TRY(
                dp_inviting_rotation_valid(ledger, valid->crypto, &record->config.rotation, cause));
        }
        DP_TRY(check_voters(valid, record, cause));
    }
    if (record->kind == DP_RECORD_ROUND) {
        return check_round(valid, record, cause);
    }
    return record->has_config ? DP_OK : no(cause, "the record changes nothing");
}
