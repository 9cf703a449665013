#include "gossip/ledger/ledger.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutation.h"
#include "base/run/samples.h"
#include "gossip/core/median.h"
#include "gossip/ledger/inviting.h"
#include "gossip/ledger/weights.h"

static dp_hash key_of(const dp_peer *peer)
{
    dp_hash key;

    memcpy(key.bytes, peer->bytes, sizeof key.bytes);
    return key;
}

dp_status dp_ledger_open(dp_ledger *ledger, const dp_manifest *manifest, const dp_run_id *run,
                         uint64_t seed)
{
    const uint32_t capacity =
        manifest->members_max < DP_MEMBERS_MAX ? manifest->members_max : DP_MEMBERS_MAX;
    dp_peer founder;

    *ledger = (dp_ledger){
        .run = *run,
        .voters_max = manifest->voters_max < DP_VOTERS_MAX ? manifest->voters_max : DP_VOTERS_MAX,
        .alpha = (uint32_t)((uint64_t)manifest->alpha_milli * 65536 / 1000),
        .unclipped = manifest->exchange == DP_EXCHANGE_GRADIENTS,
        .stale = manifest->stale == DP_ON,
        .density = dp_density_first(manifest),
        .pace = dp_pace_first(manifest),
        .listed_max = manifest->contributors_max > DP_LISTED_DEFAULT ? manifest->contributors_max
                                                                     : (uint32_t)DP_LISTED_DEFAULT,
        .head = *run,
        .base = *run,
        .time_ms = manifest->created_ms,
        .capacity = capacity > 0 ? capacity : 1,
        .rows_max = (capacity > 0 ? capacity : 1) + DP_FORMER_MAX,
        .judges = manifest->trust == DP_TRUST_OPEN,
        .absent_ms = (uint64_t)manifest->members_absent_s * 1000,
        .context = dp_manifest_sample_tokens(manifest),
        .pass = dp_manifest_samples(manifest)};
    memcpy(ledger->root_key, manifest->root_key, sizeof ledger->root_key);
    DP_TRY(dp_map_init(&ledger->map, ledger->rows_max, seed));
    ledger->roster = dp_reserve(ledger->rows_max, sizeof *ledger->roster);
    if (ledger->roster == NULL) {
        dp_ledger_close(ledger);
        return DP_NOMEM;
    }
    memcpy(founder.bytes, manifest->founder, sizeof founder.bytes);
    dp_roster_entry *first = dp_ledger_admit(ledger, &founder);
    first->caps = DP_CAP_ALL;
    first->counted_ms = ledger->time_ms;
    ledger->n_voters = 1;
    ledger->voters[0].peer = founder;
    ledger->parted = manifest->reduce == DP_REDUCE_PARTS;
    ledger->summed = ledger->parted && manifest->site_sums != DP_OFF;
    dp_part_layout_first(&ledger->layout, &founder);
    memcpy(ledger->voters[0].key, manifest->founder_vote_key, sizeof ledger->voters[0].key);
    return DP_OK;
}

void dp_ledger_close(dp_ledger *ledger)
{
    dp_map_close(&ledger->map);
    dp_free(ledger->roster);
    *ledger = (dp_ledger){0};
}

bool dp_ledger_lists(const dp_ledger *ledger)
{
    return ledger->listed_max > DP_LISTED_DEFAULT;
}

uint32_t dp_ledger_find(const dp_ledger *ledger, const dp_peer *peer)
{
    const dp_hash key = key_of(peer);
    uint32_t index = 0;

    return dp_map_get(&ledger->map, &key, &index) ? index : (uint32_t)DP_NOBODY;
}

const dp_roster_entry *dp_ledger_member(const dp_ledger *ledger, const dp_peer *peer)
{
    const uint32_t index = dp_ledger_find(ledger, peer);

    return index != DP_NOBODY && ledger->roster[index].gone == 0 ? &ledger->roster[index] : NULL;
}

uint32_t dp_ledger_voter(const dp_ledger *ledger, const dp_peer *peer)
{
    dp_assert(ledger->n_voters <= DP_VOTERS_MAX);
    for (uint32_t i = 0; i < ledger->n_voters; i++) {
        if (dp_peer_equal(&ledger->voters[i].peer, peer)) {
            return i;
        }
    }
    return DP_NOBODY;
}

bool dp_ledger_was_fork(const dp_ledger *ledger, const dp_hash *fork)
{
    for (uint32_t i = 0; i < ledger->n_forks; i++) {
        if (dp_hash_equal(&ledger->forks[i], fork)) {
            return true;
        }
    }
    return false;
}

dp_hash dp_fork_id(const dp_ledger *ledger, const dp_hash *hash)
{
    return dp_broken(45) ? (dp_hash){{(uint8_t)(ledger->n_forks + 1)}} : *hash;
}

static void begin_fork(dp_ledger *ledger, const dp_hash *hash)
{
    const dp_hash id = dp_fork_id(ledger, hash);

    if (ledger->n_forks == DP_FORKS_MAX) {
        memmove(ledger->forks, ledger->forks + 1, sizeof ledger->forks - sizeof ledger->forks[0]);
        ledger->n_forks--;
    }
    ledger->forks[ledger->n_forks++] = ledger->fork;
    ledger->fork = id;
    ledger->base = *hash;
    ledger->has_before = false;
}

uint32_t dp_ledger_majority(const dp_ledger *ledger)
{
    dp_assert(ledger->n_voters > 0);
    return ledger->n_voters / 2 + 1;
}

uint32_t dp_ledger_uses(const dp_ledger *ledger, const dp_invite_id *invite, const dp_peer *peer)
{
    uint32_t uses = 0;

    for (uint32_t i = 0; i < ledger->n_roster; i++) {
        if (dp_broken(46) && ledger->roster[i].admitted_slot + 2 > ledger->slot) {
            continue; /* About as early as the member that asks. */
        }
        uses += memcmp(&ledger->roster[i].invite, invite, sizeof *invite) == 0 &&
                        !dp_peer_equal(&ledger->roster[i].peer, peer)
                    ? 1
                    : 0;
    }
    return uses;
}

bool dp_ledger_may_revoke(const dp_ledger *ledger, const dp_peer *by, const dp_peer *peer)
{
    const dp_roster_entry *judge = dp_ledger_member(ledger, by);
    const dp_roster_entry *entry = dp_ledger_member(ledger, peer);

    if (entry == NULL) {
        return false;
    }
    return memcmp(by->bytes, ledger->root_key, sizeof by->bytes) == 0 ||
           (judge != NULL && (judge->caps & DP_CAP_ADMIN) != 0 &&
            (entry->caps & DP_CAP_ADMIN) == 0);
}

uint32_t dp_ledger_rounds(const dp_roster_entry *entry, uint64_t round)
{
    if (entry == NULL) {
        return 1;
    }
    const uint64_t since =
        entry->included > entry->admitted_round ? entry->included : entry->admitted_round;
    dp_assert(since <= round);
    if (since == round) {
        return 1; /* Admitted by the record that lists it. */
    }
    return round - since < 4 ? (uint32_t)(round - since) : 4;
}

bool dp_ledger_may_be_stale(const dp_ledger *ledger, const dp_peer *peer)
{
    const dp_roster_entry *entry = dp_ledger_member(ledger, peer);

    return ledger->has_before && entry != NULL && entry->admitted_round < ledger->round &&
           entry->included < ledger->round && !dp_ledger_is_forgotten(ledger, entry);
}

bool dp_ledger_may_be_late(const dp_ledger *ledger, const dp_roster_entry *entry, uint64_t round)
{
    const uint64_t window =
        4 * (((uint64_t)ledger->n_members + ledger->listed_max - 1) / ledger->listed_max);

    return entry->gone == 0 && entry->included > 0 && entry->included + window >= round;
}

const dp_lease *dp_ledger_lease(const dp_ledger *ledger, const dp_peer *peer)
{
    const uint32_t index = dp_ledger_find(ledger, peer);

    return index != DP_NOBODY && !dp_ledger_barred(ledger, peer) ? &ledger->roster[index].lease
                                                                 : NULL;
}

/* ---- what counts ---- */

/* Since the contributor was counted last; of a newcomer, since the record before. */
static uint64_t span_of(const dp_ledger *ledger, const dp_record *record, uint32_t index)
{
    const dp_roster_entry *entry = dp_ledger_member(ledger, &record->listed[index].peer);
    const uint64_t since = entry != NULL ? entry->counted_ms : ledger->time_ms;

    dp_assert(index < record->n_listed);
    return record->time_ms > since ? record->time_ms - since : 0;
}

/* Tokens that may count now: those that the contribution tells, and those left over in the last
 * rounds. */
static uint64_t told_of(const dp_ledger *ledger, const dp_record *record, uint32_t index)
{
    const dp_listed *listed = &record->listed[index];
    const dp_roster_entry *entry = dp_ledger_member(ledger, &listed->peer);
    const bool owed = entry != NULL && record->round - entry->owed_round <= DP_PACE_OWED_ROUNDS;

    dp_assert(index < record->n_listed);
    return listed->tokens + listed->carried + (owed ? entry->owed : 0);
}

/* In the first round no speed is known. The founder made the run, and of two the smaller is the
 * measure; the claim of a single unknown member is not. */
static uint64_t first_most(const dp_ledger *ledger, const dp_record *record)
{
    const uint64_t least = dp_pace_most(&ledger->pace, 0);
    const bool founder = dp_peer_equal(&record->listed[0].peer, &ledger->roster[0].peer);
    unsigned __int128 told[DP_LISTED_MAX];

    if (record->n_listed == 1 && !founder) {
        return least;
    }
    for (uint32_t i = 0; i < record->n_listed; i++) {
        told[i] = told_of(ledger, record, i);
    }
    const uint64_t middle = (uint64_t)dp_lower_median(told, record->n_listed);
    const uint64_t most = middle < UINT64_MAX / DP_PACE_SLACK ? middle * DP_PACE_SLACK : UINT64_MAX;
    return most > least ? most : least;
}

uint64_t dp_ledger_counted(const dp_ledger *ledger, const dp_record *record,
                           uint64_t counted[DP_LISTED_MAX])
{
    const bool first = ledger->pace.bounded && ledger->pace.speed == 0 && record->n_listed > 0;
    const uint64_t most_first = first ? first_most(ledger, record) : 0;
    uint64_t total = ledger->tokens;

    dp_assert(record->n_listed <= DP_LISTED_MAX);
    for (uint32_t i = 0; i < record->n_listed; i++) {
        const uint64_t told = told_of(ledger, record, i);
        const uint64_t most =
            first ? most_first : dp_pace_most(&ledger->pace, span_of(ledger, record, i));
        counted[i] = told < most ? told : most;
        total += counted[i];
    }
    return total;
}

/* By the ledger before the record. */
static uint64_t speed_of(const dp_ledger *ledger, const dp_record *record,
                         const uint64_t counted[DP_LISTED_MAX])
{
    unsigned __int128 speeds[DP_LISTED_MAX];

    for (uint32_t i = 0; i < record->n_listed; i++) {
        speeds[i] = dp_pace_speed(&ledger->pace, counted[i], span_of(ledger, record, i));
    }
    return (uint64_t)dp_lower_median(speeds, record->n_listed);
}

/* Books the tokens that the record counts, before anything else of it is applied. */
static void apply_counted(dp_ledger *ledger, const dp_record *record)
{
    uint64_t counted[DP_LISTED_MAX];

    DP_IGNORE(dp_ledger_counted(ledger, record, counted)); /* The record has the total. */
    const uint64_t speed = speed_of(ledger, record, counted);
    for (uint32_t i = 0; i < record->n_listed && ledger->pace.bounded; i++) {
        const uint32_t index = dp_ledger_find(ledger, &record->listed[i].peer);
        if (index == DP_NOBODY) {
            continue; /* The new member of this record: drops expired rows. */
        }
        dp_roster_entry *entry = &ledger->roster[index];
        const uint64_t left = told_of(ledger, record, i) - counted[i];
        const bool before =
            entry->owed > 0 && record->round - entry->owed_round <= DP_PACE_OWED_ROUNDS;
        entry->owed_round = left == 0 ? 0 : before ? entry->owed_round : record->round;
        entry->owed = left;
    }
    dp_pace_next(&ledger->pace, speed);
}

/* ---- leases ---- */

/* Samples in a round: the samples trained on since the last publication, over the rounds that it
 * may have taken. */
static uint64_t used_of(const dp_ledger *ledger, const dp_listed *listed, uint32_t rounds)
{
    const uint64_t tokens = (uint64_t)ledger->context * rounds;

    return listed->tokens / tokens + (listed->tokens % tokens != 0 ? 1 : 0);
}

/* No member's share grows by its own claim alone: as with weights, four times the median is the
 * most. */
static void grant_listed(dp_ledger *ledger, const dp_record *record, const uint64_t *used)
{
    unsigned __int128 all[DP_LISTED_MAX];

    for (uint32_t i = 0; i < record->n_listed; i++) {
        all[i] = used[i];
    }
    const uint64_t most = 4 * (uint64_t)dp_lower_median(all, record->n_listed);
    for (uint32_t i = 0; i < record->n_listed; i++) {
        dp_roster_entry *entry = &ledger->roster[dp_ledger_find(ledger, &record->listed[i].peer)];
        if (entry->gone == 0) {
            const uint64_t need = dp_lease_need(&entry->lease, used[i] < most ? used[i] : most,
                                                ledger->pass / ledger->n_members);
            dp_lease_grant(&entry->lease, &ledger->pool, need);
        }
    }
}

static void take_back(dp_ledger *ledger)
{
    dp_assert(ledger->n_roster <= ledger->rows_max);
    for (uint32_t i = 0; i < ledger->n_roster; i++) {
        dp_roster_entry *entry = &ledger->roster[i];
        if (entry->lease.n > 0 && dp_ledger_is_forgotten(ledger, entry)) {
            dp_lease_return(&entry->lease, &ledger->pool);
        }
    }
}

/* Sets the owners of the parts of the next round, and the values against which its weights are
 * measured (SAFETY F2). */
static void prepare_parts(dp_ledger *ledger, const dp_record *record)
{
    dp_peer peers[DP_LISTED_DEFAULT];
    uint32_t rates[DP_LISTED_DEFAULT];
    unsigned __int128 weights[DP_LISTED_DEFAULT];
    unsigned __int128 told[DP_LISTED_DEFAULT];

    dp_assert(ledger->parted);
    for (uint32_t i = 0; i < record->n_listed; i++) {
        peers[i] = record->listed[i].peer;
        rates[i] = record->listed[i].rate;
        told[i] = rates[i];
        weights[i] = record->listed[i].w;
    }
    dp_part_layout_of(&ledger->layout, peers, rates, record->n_listed);
    ledger->w_median = (uint64_t)dp_lower_median(weights, record->n_listed);
    ledger->rate_median = (uint32_t)dp_lower_median(told, record->n_listed);
}

static void apply_round(dp_ledger *ledger, const dp_record *record, const dp_hash *hash,
                        uint64_t *used)
{
    dp_assert(record->round == ledger->round + 1);
    ledger->round = record->round;
    ledger->base = *hash;
    if (ledger->stale) {
        ledger->has_before = true;
        ledger->base_before = record->base;
        ledger->state_before = record->state_root;
    }
    ledger->tokens = record->tokens_total;
    ledger->clip_median = record->clip_median;
    dp_density_next(&ledger->density, record->lines);
    for (uint32_t i = 0; i < record->n_listed; i++) {
        const uint32_t index = dp_ledger_find(ledger, &record->listed[i].peer);
        dp_assert(index != DP_NOBODY);
        dp_roster_entry *entry = &ledger->roster[index];
        const uint64_t made = record->round - dp_listed_age(record, i);
        used[i] = used_of(ledger, &record->listed[i], dp_ledger_rounds(entry, made));
        entry->included = made; /* Work done since waits for the next publication. */
        entry->touched = record->round;
        entry->w = record->listed[i].w;
        entry->counted_ms = record->time_ms;
        dp_lease_move(&entry->lease, &record->listed[i].reach);
    }
    for (uint32_t i = 0; i < record->n_late; i++) {
        const uint32_t index = dp_ledger_find(ledger, &record->late[i]);
        dp_assert(index != DP_NOBODY);
        ledger->roster[index].touched = record->round;
    }
    if (ledger->parted) {
        prepare_parts(ledger, record);
    }
    take_back(ledger);
}

static void apply_config(dp_ledger *ledger, const dp_config_part *config)
{
    for (uint32_t i = 0; i < config->n_fences; i++) {
        const uint32_t index = dp_ledger_find(ledger, &config->fences[i].peer);
        dp_assert(index != DP_NOBODY &&
                  config->fences[i].incarnation > ledger->roster[index].fenced);
        ledger->roster[index].fenced = config->fences[i].incarnation;
    }
    for (uint32_t i = 0; i < config->n_removes; i++) {
        const uint32_t index = dp_ledger_find(ledger, &config->removes[i].peer);
        dp_assert(index != DP_NOBODY && ledger->roster[index].gone == 0);
        ledger->roster[index].gone = (uint32_t)config->removes[i].reason;
        ledger->roster[index].gone_slot = ledger->slot;
        dp_lease_return(&ledger->roster[index].lease, &ledger->pool);
        ledger->n_members--;
    }
    if (config->n_voters > 0) {
        ledger->n_voters = config->n_voters;
        for (uint32_t i = 0; i < config->n_voters; i++) {
            ledger->voters[i] = config->voters[i].voter;
        }
    }
}

void dp_ledger_apply(dp_ledger *ledger, const dp_record *record, const dp_hash *hash,
                     const dp_admitted *admitted)
{
    dp_assert(record->slot == ledger->slot + 1);
    dp_assert(record->slot == ledger->slot + 1 && dp_hash_equal(&record->prev, &ledger->head));
    const uint64_t rounds = record->kind == DP_RECORD_ROUND ? record->round : ledger->round;
    uint64_t used[DP_LISTED_MAX];

    if (record->kind == DP_RECORD_ROUND) {
        apply_counted(ledger, record);
    }
    ledger->slot = record->slot;
    ledger->head = *hash;
    ledger->time_ms = record->time_ms;
    if (record->has_config) {
        for (uint32_t i = 0; i < record->config.n_admits; i++) {
            dp_roster_entry *entry = dp_ledger_admit(ledger, &record->config.admits[i].peer);
            entry->caps = admitted[i].caps;
            entry->invite = admitted[i].invite;
            entry->invite_above = admitted[i].invite_above;
            entry->strict = admitted[i].uses > 0;
            entry->until_ms = admitted[i].until_ms;
            memcpy(entry->x_public, admitted[i].x_public, sizeof entry->x_public);
            entry->counted_ms = record->time_ms;
            entry->admitted_slot = record->slot;
            entry->admitted_round = rounds;
        }
    }
    if (record->kind == DP_RECORD_ROUND) {
        dp_assert(record->round == ledger->round + 1);
        apply_round(ledger, record, hash, used);
    }
    if (record->kind == DP_RECORD_FORK) {
        begin_fork(ledger, hash);
    }
    if (dp_broken(17)) {
        ledger->base = *hash;
    }
    if (record->has_config) {
        apply_config(ledger, &record->config);
    }
    if (record->has_config && record->config.has_revoked) {
        dp_inviting_apply(ledger, &record->config, record->time_ms);
    }
    if (record->has_config && record->config.has_rotation) {
        ledger->epoch = record->config.rotation.next;
    }
    if (record->kind == DP_RECORD_ROUND) {
        grant_listed(ledger, record, used); /* After the samples that came back with this record. */
    }
}
