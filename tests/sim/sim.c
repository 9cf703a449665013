#include "tests/sim/sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "gossip/core/buggify.h"
#include "tests/sim/enrol.h"
#include "tests/sim/evil.h"
#include "tests/sim/forks.h"
#include "tests/sim/oracle.h"
#include "tests/sim/real.h"
#include "tests/sim/scene.h"

enum {
    CHECK_EVERY_US = 250000, /* between two checks whether the run has recovered */
    LEAVE_EVERY_US = 100000, /* the interval at which the daemon checks whether its node may end */
    WRITES_MAX = 256,        /* queued writes of one node; its daemon would queue 8,192 jobs */
    SMALL_NODES = 8, /* of worlds whose nodes are checked after every event (DP_LEASE_BOOK_HOSTS) */
    SLOTS_KEPT = 64, /* whose blobs remain */
    /* data, states, the publication, an exchange, publications that no record lists */
    OBJECTS_BESIDE = 64
};

void dp_sim_fail(dp_sim *sim, const char *invariant, uint32_t node, const char *format, ...)
{
    va_list arguments;

    if (sim->failure.invariant[0] != '\0' || dp_evil_excuses(sim, invariant, node)) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(sim->failure.sentence, sizeof sim->failure.sentence, format, arguments);
    va_end(arguments);
    snprintf(sim->failure.invariant, sizeof sim->failure.invariant, "%s", invariant);
    sim->failure.at_us = sim->now_us;
    sim->failure.node = node;
}

void dp_sim_push(dp_sim *sim, const dp_occasion *occasion)
{
    if (dp_queue_push(&sim->queue, occasion) != DP_OK) {
        dp_sim_fail(sim, "S12", occasion->node, "the queue of the world is full");
    }
}

void dp_sim_mark(dp_sim *sim, uint64_t a, uint64_t b)
{
    uint64_t hash = (sim->totals.digest ^ a) * 0x9fb21c651e98df25ULL;

    hash = (hash ^ (hash >> 29) ^ b) * 0xd6e8feb86659fd93ULL;
    sim->totals.digest = hash ^ (hash >> 32);
}

/* Data that all nodes need before training; the founder has them. */
static dp_hash make_data(dp_sim *sim, uint64_t salt, uint32_t size, uint64_t *told)
{
    uint8_t bytes[1024];

    dp_assert(size <= sizeof bytes);
    for (uint32_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)dp_mix64(salt + i);
    }
    const uint32_t object = dp_shelf_add(&sim->shelf, dp_view_of(bytes, size));
    dp_disk_use(&sim->hosts[0].disk, object, DP_USE_DATA, true);
    sim->hosts[0].disk.uses[object] |= 1;
    *told = sim->shelf.items[object].size;
    return sim->shelf.items[object].root;
}

static dp_status make_manifest(dp_sim *sim)
{
    dp_manifest *m = &sim->manifest;
    uint8_t canonical[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;

    dp_manifest_default(m);
    m->precision = DP_PRECISION_FP32;
    memcpy(m->name, "dpsim", 6);
    m->nonce = sim->options.seed;
    m->created_ms = 1700000000000ULL;
    memcpy(m->founder, sim->hosts[0].peer.bytes, sizeof m->founder);
    memset(m->root_key, 7, sizeof m->root_key);
    dp_sim_vote_key(&sim->hosts[0], m->founder_vote_key);
    m->model_seed = dp_mix64(sim->options.seed + 99);
    m->tokenizer = make_data(sim, sim->options.seed + 1, 300, &m->tokenizer_bytes);
    m->n_shards = sim->plan.shards;
    for (uint32_t i = 0; i < m->n_shards; i++) {
        m->shards[i].root = make_data(sim, sim->options.seed + 2 + i * 7919ULL, 1000 - i * 100,
                                      &m->shards[i].bytes);
        m->shards[i].tokens = m->shards[i].bytes / 2;
    }
    m->round_ms = sim->plan.round_ms;
    m->gossip_round_ms = sim->plan.gossip_round_ms;
    m->inner_steps_max = sim->plan.inner_steps_max;
    m->voters_max = sim->plan.voters_max;
    m->voter_uptime_s = 0;
    m->members_max = sim->plan.members_max != 0 ? sim->plan.members_max : 1024;
    m->members_absent_s = sim->plan.absent_s;
    m->pairs = sim->plan.pairs ? DP_ON : DP_OFF;
    m->stale = sim->plan.stale ? DP_ON : DP_OFF;
    m->contributors_max = sim->plan.contributors;
    if (sim->plan.pairs || sim->plan.gradients) {
        m->trust = DP_TRUST_MEMBERS;
    }
    m->exchange = sim->plan.gradients ? DP_EXCHANGE_GRADIENTS : DP_EXCHANGE_UPDATES;
    m->codec_keep = sim->plan.span ? DP_CODEC_KEEP_MIN : DP_CODEC_KEEP_DEFAULT;
    m->codec_keep_most = sim->plan.span ? DP_CODEC_KEEP_MAX : 0;
    if (sim->plan.parts) {
        m->reduce = DP_REDUCE_PARTS;
        m->site_sums = sim->plan.sums ? DP_ON : DP_OFF;
        m->trust = DP_TRUST_MEMBERS;
        m->codec = DP_CODEC_INT8; /* The toy's own codec; sums of parts are not encoded sparsely. */
    }
    DP_TRY(dp_manifest_encode(m, canonical, &size));
    sim->run = dp_manifest_run_id(dp_view_of(canonical, size));
    m->context = DP_TOY_TOKENS_PER_STEP; /* More than a manifest allows, as for many sequences. */
    /* Enough passes for the leases; nothing reads these samples. */
    m->shards[0].tokens = 1ULL << 38;
    return DP_OK;
}

/* In half of the worlds proposers report arbitrary statistics of the lines, so that densities
 * change although no line is slow. */
static void draw_span(dp_sim *sim)
{
    dp_rng rng;

    dp_rng_init(&rng, dp_mix64(sim->options.seed) ^ 0x7370616eULL);
    sim->plan.span = sim->options.span;
    if (sim->plan.span && dp_rng_below(&rng, 2) == 0 && !sim->options.lucky) {
        sim->plan.buggify |= 1U << DP_BUG_ANY_LINES;
    }
}

/* In a quarter of the worlds every node gives its update to one voter first. */
static void draw_thin(dp_sim *sim)
{
    dp_rng rng;

    dp_rng_init(&rng, dp_mix64(sim->options.seed) ^ 0x7468696eULL);
    if (dp_rng_below(&rng, 4) == 0 && !sim->options.lucky) {
        sim->plan.buggify |= 1U << DP_BUG_THIN_UPLINK;
    }
}

dp_status dp_sim_open(dp_sim *sim, const dp_sim_options *options)
{
    memset(sim, 0, sizeof *sim);
    sim->options = *options;
    dp_plan_draw(&sim->plan, options);
    sim->plan.parts = options->parts;
    draw_span(sim);
    draw_thin(sim);
    sim->plan.sums = options->sums;
    sim->plan.sites = options->sites;
    if (options->sites > 0 && sim->plan.round_ms < 1000) {
        sim->plan.round_ms = 1000; /* Like with far regions. */
    }
    if ((options->span && (options->parts || sim->plan.gradients)) ||
        (options->sums && !options->parts) ||
        (options->enrolled &&
         (options->profile != DP_PROFILE_SCALE || options->store >= DP_SIM_STORE_REAL)) ||
        sim->plan.nodes == 0 || sim->plan.nodes > DP_SIM_NODES_MAX) {
        return DP_BADARG;
    }
    if (!dp_real_wanted(sim)) { /* The real store requires chunks of their real size. */
        sim->shelf.chunks_max = sim->plan.chunks_max;
    }
    dp_rng_init(&sim->crash_rng, dp_mix64(options->seed) ^ 0x63726173);
    DP_TRY(dp_net_open(&sim->net, sim->plan.nodes, dp_mix64(options->seed) ^ 0x6e6574));
    sim->hosts = calloc(sim->plan.nodes, sizeof *sim->hosts);
    sim->actions = malloc(sizeof *sim->actions);
    if (sim->hosts == NULL || sim->actions == NULL) {
        return DP_NOMEM;
    }
    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        DP_TRY(dp_host_open(&sim->hosts[i], sim, i));
    }
    DP_TRY(dp_measure_open(sim));
    DP_TRY(dp_evil_open(sim));
    DP_TRY(make_manifest(sim));
    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        dp_host *host = &sim->hosts[i];
        dp_toy_init(&host->toy, i, sim->manifest.feedback_beta_milli, dp_rng_next(&host->rng));
        /* The token that it joins by names the founder and two others. */
        host->met[0] = 1;
        host->met[dp_rng_below(&host->rng, sim->plan.nodes)] = 1;
        host->met[dp_rng_below(&host->rng, sim->plan.nodes)] = 1;
    }
    DP_TRY(dp_oracle_open(sim));
    if (options->profile == DP_PROFILE_MERGE) {
        DP_TRY(dp_forks_open(sim));
    }
    if (dp_real_wanted(sim)) {
        dp_real_open(sim);
    }
    return sim->options.enrolled ? dp_enrol(sim) : DP_OK;
}

void dp_sim_close(dp_sim *sim)
{
    for (uint32_t i = 0; sim->hosts != NULL && i < sim->plan.nodes; i++) {
        dp_host_close(&sim->hosts[i]);
    }
    dp_oracle_close(sim);
    dp_evil_close(sim);
    dp_measure_close(sim);
    dp_forks_close(sim);
    free(sim->hosts);
    free(sim->actions);
    dp_queue_close(&sim->queue);
    dp_net_close(&sim->net);
    dp_shelf_close(&sim->shelf);
    memset(sim, 0, sizeof *sim);
}

/* The process announces its end and ends when its node may; the disk remains, but the process is
 * not started again. One that was killed meanwhile gets the command to leave again when it runs. */
static void on_leave(dp_sim *sim, dp_host *host)
{
    dp_node_view view = {.leaving = DP_LEAVING_NOT};

    if (dp_host_up(host)) {
        dp_node_look(host->node, &view);
    }
    /* The protocol cannot lose two of three voters that leave without having been removed: such a
     * voter stays until it is removed. */
    const bool votes =
        view.mode != DP_MODE_LEFT && dp_oracle_votes(sim, dp_oracle_slots(sim) + 1, host->index);
    if (view.leaving == DP_LEAVING_FREE && !votes) {
        dp_host_crash(host, true);
        host->left = true;
        return;
    }
    if (dp_host_up(host) && view.leaving != DP_LEAVING_WAITS && host->paused_until <= sim->now_us) {
        dp_host_command(host, DP_COMMAND_LEAVE);
    }
    dp_sim_push(sim, &(dp_occasion){.at_us = sim->now_us + LEAVE_EVERY_US,
                                    .kind = DP_ON_LEAVE,
                                    .node = host->index});
}

/* The command holds: a node that is down, or crashes, gets it when it starts. */
static void on_order(dp_host *host, bool pause)
{
    if (host->owner_pauses != pause && dp_host_up(host)) {
        dp_host_command(host, pause ? DP_COMMAND_PAUSE : DP_COMMAND_RESUME);
    }
    host->owner_pauses = pause;
}

/* True if the occasion was postponed because its host stands still. */
static bool put_off(dp_sim *sim, dp_occasion *occasion)
{
    const dp_host *host = &sim->hosts[occasion->node];

    if (!dp_host_up(host) || host->paused_until <= sim->now_us) {
        return false;
    }
    occasion->at_us = host->paused_until;
    dp_sim_push(sim, occasion);
    occasion->packet = NULL;
    return true;
}

static void dispatch(dp_sim *sim, dp_occasion *occasion)
{
    dp_host *host = &sim->hosts[occasion->node];

    dp_sim_mark(sim, occasion->at_us, (uint64_t)occasion->kind << 32 | occasion->node);
    if (occasion->kind == DP_ON_FAULT) {
        dp_faults_strike(sim, occasion);
    } else if (occasion->kind == DP_ON_CHURN) {
        if (sim->forks != NULL) {
            dp_forks_strike(sim);
        } else {
            dp_churn_strike(sim);
        }
    } else if (occasion->kind == DP_ON_LOOK) {
        dp_measure_look(sim);
        dp_sim_push(sim, &(dp_occasion){.at_us = sim->now_us + DP_SECOND, .kind = DP_ON_LOOK});
    } else if (occasion->kind == DP_ON_EVIL) {
        dp_evil_acts(host);
    } else if (occasion->kind == DP_ON_BOOT) {
        dp_host_boot(host);
    } else if (occasion->kind == DP_ON_LEAVE) {
        on_leave(sim, host);
    } else if (occasion->kind == DP_ON_ORDER) {
        if (!put_off(sim, occasion)) {
            on_order(host, occasion->detail == 1 && !sim->healed);
        }
    } else if (occasion->kind == DP_ON_PACKET || occasion->kind == DP_ON_LINK_DOWN) {
        if (dp_host_up(host)) {
            if (!put_off(sim, occasion)) {
                dp_host_occasion(host, occasion);
            }
        } else if (occasion->kind == DP_ON_PACKET) {
            /* No process listens: the machine answers with a reset. */
            DP_IGNORE(dp_net_reset(&sim->net, &sim->queue, sim->now_us, host->index,
                                   occasion->other, occasion->value, DP_LINK_RESET));
        }
    } else if (dp_host_up(host) && occasion->boot == host->boot && !put_off(sim, occasion)) {
        dp_host_occasion(host, occasion);
    }
}

static void finish(dp_sim *sim)
{
    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        if (dp_host_up(&sim->hosts[i])) {
            sim->totals.node_us += sim->now_us - sim->hosts[i].up_since;
        }
    }
    sim->totals.rounds = dp_oracle_rounds(sim);
    sim->totals.slots = dp_oracle_slots(sim);
    sim->totals.messages = sim->net.sent;
    sim->totals.faults[DP_FAULT_LOSS] = sim->net.harm.loss;
    sim->totals.faults[DP_FAULT_DELAY] = sim->net.harm.spike;
    sim->totals.faults[DP_FAULT_COPY] = sim->net.harm.copy;
    sim->totals.faults[DP_FAULT_REORDER] = sim->net.harm.reorder;
    sim->totals.faults[DP_FAULT_DAMAGE] += sim->net.harm.damage;
    sim->totals.ended_us = sim->now_us;
    dp_measure_finish(sim);
}

/* Checks that the contents of the disk stay within the bounds of the node, independent of the
 * length of the run: the blobs of 64 slots and of the round under way, those that a row or an
 * exchange needs, states, data. */
static void check_disk(dp_sim *sim, const dp_host *host)
{
    const uint32_t contributors =
        sim->plan.nodes < sim->plan.contributors ? sim->plan.nodes : sim->plan.contributors;
    /* In rounds of parts also the own parts, those of others that it adds up, and several results
     * of each. */
    const uint32_t most =
        (SLOTS_KEPT + (sim->plan.parts ? 8U : 2U)) * contributors + OBJECTS_BESIDE;
    const uint32_t objects = dp_disk_objects(&host->disk);

    if (host->disk.n_writes > WRITES_MAX) {
        dp_sim_fail(sim, "S12", host->index, "%u writes are under way", host->disk.n_writes);
    } else if (objects > most) {
        dp_sim_fail(sim, "S12", host->index, "its disk holds %u objects, %u at the most", objects,
                    most);
    }
}

/* The node's own check of all its structures. */
static void check_node(dp_sim *sim, const dp_host *host)
{
    dp_why why = {0};

    if (dp_host_up(host) && dp_node_check(host->node, &why) != DP_OK) {
        dp_sim_fail(sim, "S12", host->index, "%.200s", why.text);
    }
}

static void check_leases(const dp_host *host)
{
    if (dp_host_up(host)) {
        dp_oracle_leases(host);
    }
}

/* Checks one host at a time; in a small world also the host of each event. */
static void check_one(dp_sim *sim)
{
    const dp_host *host = &sim->hosts[sim->totals.occasions % sim->plan.nodes];

    check_disk(sim, host);
    check_node(sim, host);
}

bool dp_sim_run(dp_sim *sim)
{
    dp_occasion occasion;
    uint64_t look_at = 0;
    uint64_t rules_at = 0;

    dp_faults_start(sim);
    dp_evil_start(sim);
    if (sim->plan.measured) {
        dp_churn_start(sim);
    }
    if (sim->forks != NULL) {
        dp_forks_start(sim);
    }
    while (sim->failure.invariant[0] == '\0' && dp_queue_pop(&sim->queue, &occasion)) {
        if (occasion.at_us > sim->plan.limit_us) {
            dp_packet_drop(occasion.packet);
            sim->now_us = sim->plan.limit_us;
            if (sim->options.until_us == 0 && !sim->plan.measured) {
                if (dp_evil_spoiled(sim)) {
                    dp_evil_stuck(sim);
                } else {
                    dp_oracle_stuck(sim);
                }
            }
            break;
        }
        sim->now_us = occasion.at_us > sim->now_us ? occasion.at_us : sim->now_us;
        if (!sim->healed && sim->now_us >= sim->plan.faults_end_us) {
            dp_faults_heal(sim);
        }
        sim->totals.occasions++;
        dispatch(sim, &occasion);
        dp_packet_drop(occasion.packet);
        if (sim->plan.nodes <= SMALL_NODES && occasion.node < sim->plan.nodes) {
            check_node(sim, &sim->hosts[occasion.node]);
            check_leases(&sim->hosts[occasion.node]);
        }
        if (sim->now_us >= rules_at) {
            rules_at = sim->now_us + CHECK_EVERY_US;
            dp_scene_look(sim);
            dp_oracle_look(sim);
            check_one(sim);
        }
        if (sim->healed && sim->now_us >= look_at) {
            look_at = sim->now_us + CHECK_EVERY_US;
            if (dp_evil_spoiled(sim) ? dp_evil_over(sim) : dp_oracle_converged(sim)) {
                sim->totals.together_us = sim->now_us - sim->healed_us;
                break;
            }
        }
    }
    finish(sim);
    return sim->failure.invariant[0] == '\0';
}
