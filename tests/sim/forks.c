#include "tests/sim/forks.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "gossip/catchup/chain.h"
#include "gossip/context/context.h"
#include "gossip/node/node.h"

enum { ENTRIES_MAX = 4096, HEAD_BYTES = 115, PAST_MAX = 64 };
#define ASK_US (500 * DP_MS) /* a command that was refused is given again */

/* One decided record; a FORK stands under its own id. */
typedef struct entry {
    dp_hash fork;
    uint64_t slot;
    dp_hash hash;
    bool has_root;
    dp_hash tensor_root; /* ROUND: of the state after it */
} entry;

typedef struct book {
    uint64_t slot; /* of the last record asked to be stored */
    dp_hash head;
    dp_hash fork;
    bool announced;
    bool settled;
    dp_hash root;
    dp_hash past[PAST_MAX];
    uint32_t n_past;
    bool adopts; /* a FORK was stored and its note is due */
    uint64_t records;
    uint64_t rounds;
    uint64_t counted_us; /* last listed in a record */
    bool halted;
} book;

/* A publication, and what was drawn for it. */
typedef struct drawn {
    dp_hash root;
    dp_toy_samples samples;
} drawn;

typedef enum story {
    LOST = 0, /* a majority of the voters never comes back */
    AWAY,     /* it continues without the others, and returns */
    TWICE,    /* nobody has a majority, and the root key is used on two sides */
    BACK      /* without a fault, the root key goes back to an earlier round */
} story;

struct dp_forks_world {
    dp_rng rng;
    story story;
    uint32_t stage;
    uint64_t at_us;     /* of the last stage */
    uint32_t side;      /* bit per node: with the owner of the root key */
    uint32_t root;      /* the host that has it */
    uint32_t other;     /* TWICE: the second host that has it */
    bool forked[2];     /* ordered, */
    uint32_t boots[2];  /* in this life of the host that got the command */
    dp_hash forks[2];   /* ids, once their writes were asked for, */
    uint32_t makers[2]; /* first by these */
    uint32_t n_forks;
    uint32_t n;
    entry entries[ENTRIES_MAX];
    book books[32];
    uint32_t n_drawn;
    drawn *drawn; /* room for a power of two of them */
};

static uint64_t below(dp_sim *sim, uint64_t limit)
{
    return dp_rng_below(&sim->forks->rng, limit);
}

dp_status dp_forks_open(dp_sim *sim)
{
    sim->forks = calloc(1, sizeof *sim->forks);
    if (sim->forks == NULL || sim->plan.nodes > 32) {
        return DP_NOMEM;
    }
    dp_rng_init(&sim->forks->rng, dp_mix64(sim->options.seed) ^ 0x666f726bULL);
    sim->forks->story = (story)below(sim, 3);
    if (sim->options.seed % 4 == 0) {
        sim->forks->story = BACK;
        sim->forks->stage = 1;
        sim->forks->root = (uint32_t)below(sim, sim->plan.nodes);
    }
    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        sim->forks->books[i].head = sim->run;
    }
    return DP_OK;
}

void dp_forks_close(dp_sim *sim)
{
    if (sim->forks != NULL) {
        free(sim->forks->drawn);
    }
    free(sim->forks);
    sim->forks = NULL;
}

/* ---- the judge ---- */

static entry *find(struct dp_forks_world *w, const dp_hash *fork, uint64_t slot)
{
    for (uint32_t i = w->n; i-- > 0;) {
        if (w->entries[i].slot == slot && dp_hash_equal(&w->entries[i].fork, fork)) {
            return &w->entries[i];
        }
    }
    return NULL;
}

static entry *by_hash(struct dp_forks_world *w, const dp_hash *hash)
{
    for (uint32_t i = w->n; i-- > 0;) {
        if (dp_hash_equal(&w->entries[i].hash, hash)) {
            return &w->entries[i];
        }
    }
    return NULL;
}

static bool is_round(const dp_disk_record *record, uint64_t *round)
{
    dp_reader r = dp_reader_of(dp_view_of(record->data, record->record_size));

    dp_read_u8(&r);
    const bool yes = dp_read_u8(&r) == DP_RECORD_ROUND;
    dp_read_view(&r, HEAD_BYTES - 2);
    *round = dp_read_u64(&r);
    return yes && !r.failed;
}

static uint64_t rounds_from(const dp_host *host, uint64_t slot)
{
    uint64_t count = 0;
    uint64_t round = 0;

    for (uint64_t s = slot; s <= host->disk.n_records; s++) {
        count += is_round(&host->disk.records[s - 1], &round) ? 1 : 0;
    }
    return count;
}

static dp_hash hash_on_disk(const dp_host *host, uint64_t slot)
{
    if (slot == 0) {
        return host->sim->run;
    }
    const dp_disk_record *record = &host->disk.records[slot - 1];
    return dp_record_hash(dp_view_of(record->data, record->record_size));
}

static void remember(dp_host *host, const dp_hash *fork, const dp_record *record,
                     const dp_hash *hash)
{
    struct dp_forks_world *w = host->sim->forks;
    const entry *known = find(w, fork, record->slot);

    if (known != NULL && !dp_hash_equal(&known->hash, hash)) {
        dp_sim_fail(host->sim, "S1", host->index, "slot %llu of one fork is decided twice",
                    (unsigned long long)record->slot);
    } else if (known == NULL) {
        dp_assert(w->n < ENTRIES_MAX);
        w->entries[w->n++] = (entry){.fork = *fork, .slot = record->slot, .hash = *hash};
    }
    for (uint32_t i = 0; i < record->n_listed; i++) {
        const uint32_t index = dp_sim_index(host->sim, &record->listed[i].peer);
        if (index < host->sim->plan.nodes) {
            w->books[index].counted_us = host->sim->now_us;
        }
    }
}

static void take_fork(dp_host *host, const dp_hash *hash)
{
    struct dp_forks_world *w = host->sim->forks;

    for (uint32_t i = 0; i < w->n_forks; i++) {
        if (dp_hash_equal(&w->forks[i], hash)) {
            return;
        }
    }
    if (w->n_forks == (w->story == TWICE ? 2 : 1)) {
        dp_sim_fail(host->sim, "S1", host->index, "stores a FORK that nobody ordered");
        return;
    }
    w->makers[w->n_forks] = host->index;
    w->forks[w->n_forks++] = *hash;
}

void dp_forks_store(dp_host *host, const dp_action *action)
{
    static dp_record record;
    dp_sim *sim = host->sim;
    book *b = &sim->forks->books[host->index];
    const dp_hash hash = dp_record_hash(action->u.store.bytes);
    const uint64_t slot = action->u.store.slot;
    const bool again = action->u.store.kind == DP_STORE_FORK;

    if (!again && action->u.store.kind != DP_STORE_DECIDED) {
        return;
    }
    if (dp_record_decode(&record, action->u.store.bytes) != DP_OK || record.slot != slot) {
        dp_sim_fail(sim, "S6", host->index, "stores what is no record of slot %llu",
                    (unsigned long long)slot);
        return;
    }
    const bool is_fork = record.kind == DP_RECORD_FORK;
    const dp_hash before =
        again && slot <= host->disk.n_records + 1ULL ? hash_on_disk(host, slot - 1) : b->head;
    if (!dp_hash_equal(&record.prev, &before) || (again ? !is_fork : slot != b->slot + 1) ||
        (!again && !dp_hash_equal(&record.fork, &b->fork))) {
        dp_sim_fail(sim, "S6", host->index, "slot %llu does not follow its chain",
                    (unsigned long long)slot);
        return;
    }
    if (again) {
        b->adopts = true;
        b->records = host->disk.n_records + 1ULL - slot;
        b->rounds = rounds_from(host, slot);
    }
    b->slot = slot;
    b->head = hash;
    if (is_fork) {
        b->fork = hash;
        take_fork(host, &hash);
    }
    remember(host, &b->fork, &record, &hash);
}

void dp_forks_note(dp_host *host, const dp_note *note)
{
    book *b = &host->sim->forks->books[host->index];

    if (note->code == DP_NOTE_DIVERGED) {
        dp_sim_fail(host->sim, "S2", host->index,
                    "believes that its state of round %llu is not the certified one",
                    (unsigned long long)note->round);
    } else if (note->code == DP_NOTE_ADOPTED && b->adopts) {
        b->adopts = false;
        if (note->a != b->records || note->b != b->rounds) {
            dp_sim_fail(host->sim, "S6", host->index,
                        "gives up %llu records with %llu rounds and says %llu with %llu",
                        (unsigned long long)b->records, (unsigned long long)b->rounds,
                        (unsigned long long)note->a, (unsigned long long)note->b);
        }
    }
}

void dp_forks_booted(dp_host *host)
{
    static dp_record record;
    book *b = &host->sim->forks->books[host->index];

    b->slot = host->disk.n_records;
    b->head = hash_on_disk(host, b->slot);
    b->fork = (dp_hash){{0}};
    b->adopts = false;
    for (uint64_t s = 1; s <= b->slot; s++) {
        const dp_disk_record *on_disk = &host->disk.records[s - 1];
        if (on_disk->data[1] == DP_RECORD_FORK &&
            dp_record_decode(&record, dp_view_of(on_disk->data, on_disk->record_size)) == DP_OK) {
            b->fork = hash_on_disk(host, s);
        }
    }
}

void dp_forks_theta(dp_host *host, uint64_t round, const dp_hash *tensor_root)
{
    uint64_t found = 0;

    for (uint64_t s = host->disk.n_records; s > 0 && round > 0; s--) {
        if (!is_round(&host->disk.records[s - 1], &found) || found != round) {
            continue;
        }
        const dp_hash hash = hash_on_disk(host, s);
        entry *at = by_hash(host->sim->forks, &hash);
        if (at == NULL || (at->has_root && !dp_hash_equal(&at->tensor_root, tensor_root))) {
            dp_sim_fail(host->sim, "S2", host->index, "holds another state of round %llu",
                        (unsigned long long)round);
        } else {
            at->has_root = true;
            at->tensor_root = *tensor_root;
        }
        return;
    }
    if (round > 0) {
        dp_sim_fail(host->sim, "S9", host->index,
                    "holds a state of round %llu, which is not in its chain",
                    (unsigned long long)round);
    }
}

void dp_forks_announced(dp_host *host, const dp_hash *root)
{
    book *b = &host->sim->forks->books[host->index];

    /* It may forward an old one of its own that others sent. */
    for (uint32_t i = 0; i < PAST_MAX; i++) {
        if (dp_hash_equal(&b->past[i], root)) {
            return;
        }
    }
    if (b->announced && !b->settled) {
        dp_sim_fail(host->sim, "B6", host->index,
                    "announces another publication, and the one before was never settled");
    }
    b->announced = true;
    b->settled = false;
    b->root = *root;
    b->past[b->n_past++ % PAST_MAX] = *root;
}

void dp_forks_settled(dp_host *host, const dp_hash *root)
{
    book *b = &host->sim->forks->books[host->index];

    b->settled = b->settled || (b->announced && dp_hash_equal(&b->root, root));
}

void dp_forks_published(dp_host *host, const dp_hash *root, const dp_toy_samples *samples)
{
    struct dp_forks_world *w = host->sim->forks;

    if ((w->n_drawn & (w->n_drawn - 1)) == 0) {
        const size_t room = w->n_drawn == 0 ? 1 : (size_t)w->n_drawn * 2;
        w->drawn = realloc(w->drawn, room * sizeof *w->drawn);
        dp_assert(w->drawn != NULL);
    }
    w->drawn[w->n_drawn++] = (drawn){.root = *root, .samples = *samples};
}

static const dp_toy_samples *samples_of(const struct dp_forks_world *w, const dp_hash *root)
{
    for (uint32_t i = w->n_drawn; i-- > 0;) {
        if (dp_hash_equal(&w->drawn[i].root, root)) {
            return &w->drawn[i].samples;
        }
    }
    return NULL;
}

/* Adds the spans to those that the chain has counted so far. False: one of them was counted
 * already. */
static bool count_spans(dp_toy_span *counted, uint32_t *n, const dp_toy_samples *samples)
{
    for (uint32_t i = 0; i < samples->n; i++) {
        const dp_toy_span *span = &samples->spans[i];
        for (uint32_t k = 0; k < *n; k++) {
            if (counted[k].line == span->line && counted[k].first < span->end &&
                span->first < counted[k].end) {
                return false;
            }
        }
        counted[(*n)++] = *span;
    }
    return true;
}

/* The chain on this disk, from its first record on. */
static void check_samples(const dp_host *host)
{
    static dp_record record;
    const struct dp_forks_world *w = host->sim->forks;
    dp_toy_span *counted = calloc((size_t)w->n_drawn * DP_TOY_SPANS_MAX + 1, sizeof *counted);
    uint32_t n = 0;

    dp_assert(counted != NULL);
    for (uint32_t s = 0; s < host->disk.n_records; s++) {
        const dp_disk_record *on_disk = &host->disk.records[s];
        if (dp_record_decode(&record, dp_view_of(on_disk->data, on_disk->record_size)) != DP_OK) {
            continue; /* oracle.c has reported it */
        }
        for (uint32_t i = 0; i < record.n_listed; i++) {
            const dp_toy_samples *samples = samples_of(w, &record.listed[i].root);
            if (samples != NULL && !count_spans(counted, &n, samples)) {
                dp_sim_fail(host->sim, "S17", dp_sim_index(host->sim, &record.listed[i].peer),
                            "round %llu of a chain with a FORK counts samples that it has counted",
                            (unsigned long long)record.round);
            }
        }
    }
    free(counted);
}

bool dp_forks_halted(const dp_host *host)
{
    struct dp_forks_world *w = host->sim->forks;

    w->books[host->index].halted = true;
    return w->n_forks == 2;
}

/* ---- the schedule ---- */

static bool on_side(const struct dp_forks_world *w, uint32_t node)
{
    return (w->side >> node & 1) != 0;
}

static uint32_t voters_of(dp_sim *sim, uint32_t *mask)
{
    dp_member_view member;
    uint32_t count = 0;

    *mask = 0;
    for (uint32_t i = 0; dp_node_member(sim->hosts[0].node, i, &member); i++) {
        if (member.voter) {
            *mask |= 1U << dp_sim_index(sim, &member.peer);
            count++;
        }
    }
    return count;
}

/* Splits the hosts into a part without a majority and the rest; if the root key is used in the rest
 * too, the rest is split so that no part has a majority. */
static bool tear(dp_sim *sim)
{
    struct dp_forks_world *w = sim->forks;
    uint32_t voters = 0;
    uint32_t left = 0;

    if (!dp_host_up(&sim->hosts[0])) {
        return false;
    }
    const uint32_t n = voters_of(sim, &voters);
    if (n < 3) {
        return false;
    }
    left = (n - 1) / 2; /* voters on the side of the key */
    w->side = 0;
    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        const bool votes = (voters >> i & 1) != 0;
        if (votes ? left > 0 : below(sim, 2) == 0) {
            w->side |= 1U << i;
            left -= votes ? 1 : 0;
        }
    }
    w->root = sim->plan.nodes;
    w->other = sim->plan.nodes;
    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        if ((voters >> i & 1) == 0) {
            continue;
        }
        if (on_side(w, i)) {
            w->root = i;
        } else {
            w->other = i;
        }
    }
    const uint64_t until = sim->plan.faults_end_us;
    uint32_t alone = sim->plan.nodes; /* TWICE: an isolated voter of the rest */
    for (uint32_t i = 0; i < sim->plan.nodes && w->story == TWICE; i++) {
        alone = (voters >> i & 1) != 0 && !on_side(w, i) && i != w->other ? i : alone;
    }
    for (uint32_t a = 0; a < sim->plan.nodes; a++) {
        for (uint32_t b = 0; b < sim->plan.nodes; b++) {
            if (a != b && (on_side(w, a) != on_side(w, b) || a == alone || b == alone)) {
                dp_net_block(&sim->net, a, b, until, false);
            }
        }
        if (w->story == LOST && !on_side(w, a) && (voters >> a & 1) != 0) {
            dp_host_crash(&sim->hosts[a], true);
            sim->hosts[a].left = true;
        }
    }
    return true;
}

/* To one of the checkpoints of this host, of an earlier round than the newest. False: it has
 * none. */
static bool go_back(dp_sim *sim, const dp_host *host, dp_admin_command *order)
{
    const uint32_t n = host->disk.n_checkpoints;
    const uint32_t first = (uint32_t)below(sim, n + 1);

    for (uint32_t i = 0; i < n; i++) {
        const dp_disk_checkpoint *checkpoint = &host->disk.checkpoints[(first + i) % n];
        const dp_history_row *row = dp_chain_row(host->node, checkpoint->round);
        if (row != NULL && row->certified && checkpoint->round < host->node->ledger.round) {
            order->back = true;
            order->round = checkpoint->round;
            order->slot = row->slot;
            order->state_root = row->root;
            return true;
        }
    }
    return false;
}

static bool give_order(dp_sim *sim, uint32_t node, dp_admin_command_kind kind)
{
    dp_status status = DP_AGAIN;
    dp_event event = {.type = DP_EV_ADMIN_COMMAND};
    dp_why why = {""};

    if (!dp_host_up(&sim->hosts[node])) {
        return false;
    }
    event.u.order = (dp_admin_command){.kind = kind, .status = &status, .why = &why};
    if (sim->forks->story == BACK && kind == DP_ADMIN_FORK &&
        !go_back(sim, &sim->hosts[node], &event.u.order)) {
        return false;
    }
    dp_host_event(&sim->hosts[node], &event);
    return status == DP_OK;
}

static bool has_fork(const dp_host *host)
{
    static dp_record record;

    for (uint32_t i = host->disk.n_records; i-- > 0;) {
        const dp_disk_record *at = &host->disk.records[i];
        if (dp_record_decode(&record, dp_view_of(at->data, at->record_size)) == DP_OK &&
            record.kind == DP_RECORD_FORK) {
            return true;
        }
    }
    return false;
}

/* A command is lost with its process until its record is on the disk; then it is given again. */
static bool order_fork(dp_sim *sim, uint32_t which, uint32_t node)
{
    struct dp_forks_world *w = sim->forks;
    const dp_host *host = &sim->hosts[node];

    if (has_fork(host)) {
        return true;
    }
    if (w->forked[which] && (w->boots[which] == host->boot || !dp_host_up(host))) {
        return false;
    }
    for (uint32_t i = 0; w->forked[which] && i < w->n_forks; i++) {
        if (w->makers[i] == node) { /* No peer knows of it: it is announced when it is durable. */
            w->n_forks--;
            w->makers[i] = w->makers[w->n_forks];
            w->forks[i] = w->forks[w->n_forks];
            break;
        }
    }
    w->forked[which] = give_order(sim, node, DP_ADMIN_FORK);
    w->boots[which] = host->boot;
    return false;
}

void dp_forks_start(dp_sim *sim)
{
    sim->forks->at_us = 6 * DP_SECOND + below(sim, 6 * DP_SECOND);
    dp_sim_push(sim, &(dp_occasion){.at_us = sim->forks->at_us, .kind = DP_ON_CHURN});
}

void dp_forks_strike(dp_sim *sim)
{
    struct dp_forks_world *w = sim->forks;
    bool done = true;
    uint64_t next = ASK_US;

    if (sim->healed && w->stage == 0) {
        return; /* It never had three voters, so they cannot be separated. */
    }
    /* Too late for a command that was not executed. */
    if (sim->healed && w->stage == 1 && w->story != LOST) {
        w->story = AWAY;
        w->stage = w->forked[0] || w->forked[1] ? 2 : 0;
        return;
    }
    if (w->stage == 0) {
        done = tear(sim);
        next = done ? 3 * DP_SECOND + below(sim, 4 * DP_SECOND) : ASK_US;
    } else if (w->stage == 1) {
        const bool other = w->story != TWICE || order_fork(sim, 1, w->other);
        done = order_fork(sim, 0, w->root) && other;
    } else if (w->stage == 2) {
        /* After two chains have met, the host that has the key decides which one continues. */
        done = sim->healed && (give_order(sim, w->root, DP_ADMIN_MERGE) ||
                               give_order(sim, w->other, DP_ADMIN_MERGE));
    }
    w->stage += done ? 1 : 0;
    if (w->stage < (w->story == TWICE ? 3U : 2U)) {
        dp_sim_push(sim, &(dp_occasion){.at_us = sim->now_us + next, .kind = DP_ON_CHURN});
    }
}

/* ---- the end ---- */

static bool lags(dp_sim *sim, dp_host *host, const dp_hash *fork, const char **what)
{
    const book *b = &sim->forks->books[host->index];
    dp_node_view view;

    if (host->left) {
        return false;
    }
    if (!dp_host_up(host)) {
        *what = "does not run";
        return true;
    }
    dp_node_look(host->node, &view);
    if (view.mode != DP_MODE_SYNC) {
        *what = dp_mode_name(view.mode);
    } else if (!dp_hash_equal(&b->fork, fork)) {
        *what = "is on another chain";
    } else if (b->counted_us <= sim->healed_us) {
        *what = "has not been counted in any round since";
    } else {
        return false;
    }
    return true;
}

/* The chain that all hosts should have: that of a FORK, once a host has it; otherwise that of the
 * first running host. */
static const dp_hash *goes_on(const dp_sim *sim)
{
    uint32_t first = sim->plan.nodes;

    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        const dp_hash *fork = &sim->forks->books[i].fork;
        if (sim->hosts[i].left) {
            continue;
        }
        first = first == sim->plan.nodes ? i : first;
        if (sim->forks->story != TWICE && !dp_hash_is_zero(fork)) {
            return fork;
        }
    }
    return &sim->forks->books[first == sim->plan.nodes ? 0 : first].fork;
}

bool dp_forks_converged(dp_sim *sim)
{
    struct dp_forks_world *w = sim->forks;
    const char *what = NULL;
    bool all = w->stage == 0 || w->stage == (w->story == TWICE ? 3U : 2U);

    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        all = all && !lags(sim, &sim->hosts[i], goes_on(sim), &what);
    }
    for (uint32_t i = 0; i < sim->plan.nodes && all; i++) {
        check_samples(&sim->hosts[i]);
    }
    return all;
}

void dp_forks_stuck(dp_sim *sim)
{
    struct dp_forks_world *w = sim->forks;
    const char *what = NULL;

    if (w->n_forks == 0) {
        dp_sim_fail(sim, "L4", w->root, "no FORK was made; stage %u, story %d", w->stage,
                    (int)w->story);
        return;
    }
    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        if (lags(sim, &sim->hosts[i], goes_on(sim), &what)) {
            dp_sim_fail(sim, "L4", i, "%.1f s after everything was healed: %s; story %d",
                        (double)(sim->now_us - sim->healed_us) / 1e6, what, (int)w->story);
            return;
        }
    }
}
