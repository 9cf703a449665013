#include "tests/sim/plan.h"

#include <string.h>

#include "gossip/core/buggify.h"
#include "gossip/node/node.h"

#include "tests/sim/evil.h"
#include "tests/sim/object.h"
#include "tests/sim/scene.h"

enum { MANY_ONE_IN = 40 }; /* swarms may have more nodes than one record lists */

static const char *const fault_names[DP_FAULT_COUNT] = {
    "loss",   "delay", "copy",    "reorder", "partition", "oneway", "crash",  "amnesia",
    "slow",   "pause", "trainer", "disk",    "late",      "leave",  "clock",  "jump",
    "nat",    "flap",  "bridge",  "damage",  "write",     "rebind", "chunks", "newer",
    "shards", "rot",   "hang",    "narrow",  "owner",
};

static const char *const profile_names[DP_PROFILE_COUNT] = {
    "swarm",  "rivals", "gossip", "calm",   "duel",  "liar",   "scale",
    "detect", "kill",   "stall",  "strict", "joins", "revoke", "merge",
    "byz",    "pairs",  "steps",  "rot",    "stale", "lists",  "spots"};

const char *dp_fault_name(dp_fault fault)
{
    return (unsigned)fault < DP_FAULT_COUNT ? fault_names[fault] : "?";
}

const char *dp_profile_name(dp_profile profile)
{
    return (unsigned)profile < DP_PROFILE_COUNT ? profile_names[profile] : "?";
}

dp_status dp_plan_faults(const char *list, uint32_t *mask, dp_why *why)
{
    uint32_t found = 0;

    if (strcmp(list, "all") == 0) {
        *mask = DP_FAULTS_ALL;
        return DP_OK;
    }
    if (strcmp(list, "none") == 0) {
        *mask = 0;
        return DP_OK;
    }
    if (list[0] == '\0') {
        return dp_why_set(why, DP_BADARG, "no fault class is named; \"none\" turns all off");
    }
    for (const char *at = list; *at != '\0';) {
        const size_t size = strcspn(at, ",");
        uint32_t i = 0;
        while (i < DP_FAULT_COUNT &&
               (strlen(fault_names[i]) != size || memcmp(fault_names[i], at, size) != 0)) {
            i++;
        }
        if (i == DP_FAULT_COUNT) {
            return dp_why_set(why, DP_BADARG,
                              "no fault class is called \"%.*s\"; dpsim --help lists them",
                              (int)size, at);
        }
        found |= 1U << i;
        at += size + (at[size] == ',' ? 1 : 0);
    }
    *mask = found;
    return DP_OK;
}

/* The profiles with bad luck and a core, besides the swarm. */
static bool is_wild(dp_profile profile)
{
    return profile <= DP_PROFILE_GOSSIP || profile == DP_PROFILE_PAIRS ||
           profile == DP_PROFILE_STEPS || profile == DP_PROFILE_ROT ||
           profile == DP_PROFILE_STALE || profile == DP_PROFILE_LISTS;
}

/* About log-uniform in [low, high]. */
static uint64_t spread(dp_rng *rng, uint64_t low, uint64_t high)
{
    uint64_t value = low;

    while (value < high && dp_rng_below(rng, 3) != 0) {
        value *= 2;
    }
    value += dp_rng_below(rng, value + 1);
    return value > high ? high : value;
}

static void draw_weather(dp_plan *plan, dp_rng *rng)
{
    const dp_net_weather drawn = {
        .loss = (uint32_t)spread(rng, 60, 6000),
        .spike = (uint32_t)spread(rng, 60, 6000),
        .copy = (uint32_t)spread(rng, 200, 12000),
        .reorder = (uint32_t)spread(rng, 600, 30000),
        .spike_us_max = (uint32_t)spread(rng, 100000, 4000000),
        .jitter_us = (uint32_t)spread(rng, 200, 50000),
        .damage = (uint32_t)spread(rng, 2, 200),
    };

    plan->weather = (dp_net_weather){0};
    if ((plan->on & (1U << DP_FAULT_LOSS)) != 0) {
        plan->weather.loss = drawn.loss;
    }
    if ((plan->on & (1U << DP_FAULT_DELAY)) != 0) {
        plan->weather.spike = drawn.spike;
        plan->weather.spike_us_max = drawn.spike_us_max;
        plan->weather.jitter_us = drawn.jitter_us;
    }
    if ((plan->on & (1U << DP_FAULT_COPY)) != 0) {
        plan->weather.copy = drawn.copy;
    }
    if ((plan->on & (1U << DP_FAULT_REORDER)) != 0) {
        plan->weather.reorder = drawn.reorder;
    }
    if ((plan->on & (1U << DP_FAULT_DAMAGE)) != 0) {
        plan->weather.damage = drawn.damage;
    }
}

/* None if more members take part than a record lists: the blobs of 32 hardly fit in their short
 * rounds. */
static uint32_t draw_chunks(const dp_plan *plan, uint64_t seed)
{
    dp_rng rng;

    dp_rng_init(&rng, dp_mix64(seed) ^ 0x6368756e6b73ULL);
    return (plan->on & (1U << DP_FAULT_CHUNKS)) != 0 && plan->nodes <= DP_LISTED_DEFAULT
               ? 2 + (uint32_t)dp_rng_below(&rng, DP_SHELF_CHUNKS_MAX - 1)
               : 0;
}

static void draw_disks(dp_plan *plan, uint64_t seed)
{
    dp_rng rng;

    dp_rng_init(&rng, dp_mix64(seed) ^ 0x726f74ULL);
    const uint32_t shards = 2 + (uint32_t)dp_rng_below(&rng, 7);
    plan->shards = (plan->on & (1U << DP_FAULT_SHARDS)) != 0 ? shards : 1;
    plan->fault_us[DP_FAULT_ROT] = spread(&rng, 500000, 8000000);
    plan->fault_us[DP_FAULT_HANG] = spread(&rng, 1000000, 16000000);
    plan->fault_us[DP_FAULT_NARROW] = spread(&rng, 500000, 8000000);
    plan->fault_us[DP_FAULT_OWNER] = spread(&rng, 4000000, 30000000);
}

static void bias(dp_plan *plan, const dp_sim_options *options, dp_rng *rng)
{
    const dp_profile profile = options->profile;

    if (profile == DP_PROFILE_RIVALS || profile == DP_PROFILE_REVOKE) {
        plan->nodes = 3 + (uint32_t)dp_rng_below(rng, 4);
        plan->voters_max = dp_rng_below(rng, 2) == 0 ? 3 : 5;
        plan->on |= 1U << DP_FAULT_CRASH | 1U << DP_FAULT_COPY | 1U << DP_FAULT_DELAY |
                    1U << DP_FAULT_PARTITION;
        plan->on &= ~(1U << DP_FAULT_LEAVE | 1U << DP_FAULT_SLOW);
        plan->crash_after_send = 600 + (uint32_t)dp_rng_below(rng, 2000);
        plan->fault_us[DP_FAULT_CRASH] = 3000000;
        plan->fault_us[DP_FAULT_PARTITION] = 2500000;
        plan->fault_us[DP_FAULT_AMNESIA] = 8000000;
        plan->round_ms = 300;
        plan->disk_us_max = 40000;
        plan->faults_end_us = 40000000;
    } else if (profile == DP_PROFILE_GOSSIP || profile == DP_PROFILE_PAIRS) {
        plan->nodes = 4 + (uint32_t)dp_rng_below(rng, 5);
        plan->on |= 1U << DP_FAULT_PARTITION;
        plan->on &= ~(1U << DP_FAULT_LEAVE);
        plan->fault_us[DP_FAULT_PARTITION] = 6000000;
        plan->fault_us[DP_FAULT_CRASH] = 8000000;
        plan->gossip_round_ms = 300;
        plan->round_ms = 500;
        /* Doubt lasts longer than the wait of an exchange that may be aborted. */
        plan->on |= 1U << DP_FAULT_CRASH;
        plan->crash_after_send = 400;
        plan->away_us_max = 35000000;
        plan->faults_end_us = 80000000;
        plan->pairs = profile == DP_PROFILE_PAIRS;
        if (plan->pairs) { /* Several exchanges fit into a round. */
            plan->round_ms = 2000;
            plan->inner_steps_max = 500;
        }
    } else if (profile == DP_PROFILE_DUEL || profile == DP_PROFILE_LIAR) {
        plan->nodes = dp_rng_below(rng, 2) == 0 ? 3 : 5;
    } else if (profile == DP_PROFILE_MERGE) {
        plan->nodes = 5 + (uint32_t)dp_rng_below(rng, 4);
        plan->voters_max = dp_rng_below(rng, 2) == 0 ? 3 : 5;
        plan->on &= 1U << DP_FAULT_LOSS | 1U << DP_FAULT_DELAY | 1U << DP_FAULT_COPY |
                    1U << DP_FAULT_REORDER | 1U << DP_FAULT_CRASH | 1U << DP_FAULT_TRAINER |
                    1U << DP_FAULT_NARROW;
        plan->fault_us[DP_FAULT_CRASH] = 9000000;
        plan->crash_after_send = 0;
        plan->round_ms = 1000;
        plan->faults_end_us = 32000000;
    } else if (profile == DP_PROFILE_BYZ) {
        dp_evil_plan(plan, options);
    } else if (profile == DP_PROFILE_STEPS) {
        plan->nodes = 3 + (uint32_t)dp_rng_below(rng, 6);
        /* Ten rounds a second: a slow line that carries two chunks instead of one would never
         * transfer a state in addition. */
        plan->on &= ~(1U << DP_FAULT_LEAVE | 1U << DP_FAULT_CHUNKS);
        plan->gradients = true;
        plan->inner_steps_max = 1;
        plan->round_ms = 1000;
    } else if (profile == DP_PROFILE_ROT) {
        plan->on |= 1U << DP_FAULT_SHARDS | 1U << DP_FAULT_ROT | 1U << DP_FAULT_CHUNKS |
                    1U << DP_FAULT_CRASH | 1U << DP_FAULT_HANG | 1U << DP_FAULT_NARROW;
    } else if (profile == DP_PROFILE_STALE) {
        plan->nodes = 3 + (uint32_t)dp_rng_below(rng, 8);
        /* Faults that make publications late. */
        plan->on |= 1U << DP_FAULT_SLOW | 1U << DP_FAULT_DELAY | 1U << DP_FAULT_CRASH |
                    1U << DP_FAULT_TRAINER;
        plan->stale = true;
    } else if (profile == DP_PROFILE_LISTS) {
        /* Two lists in every second run; the others have so few nodes that all faults can be
         * tried. */
        plan->nodes = dp_rng_below(rng, 2) == 0 ? 34 + (uint32_t)dp_rng_below(rng, 15)
                                                : 4 + (uint32_t)dp_rng_below(rng, 8);
        plan->on |= 1U << DP_FAULT_CRASH | 1U << DP_FAULT_LOSS;
        plan->on &= ~(uint32_t)(1U << DP_FAULT_CHUNKS);
        plan->round_ms = plan->nodes > DP_LISTED_DEFAULT ? 2000 : plan->round_ms;
        plan->inner_steps_max += plan->nodes > DP_LISTED_DEFAULT ? 200 : 0;
        plan->crash_after_send = 100 + (uint32_t)dp_rng_below(rng, 300);
    } else if (profile == DP_PROFILE_CALM) {
        plan->on = 0;
        plan->faults_end_us = 5000000;
    }
}

/* As in runs with the default settings, on one good network. */
static void steady(dp_plan *plan, const dp_sim_options *options)
{
    const bool detect = options->profile == DP_PROFILE_DETECT;

    plan->measured = true;
    plan->on = 0;
    plan->nodes = options->nodes != 0 ? options->nodes : detect ? 8 : 100;
    plan->round_ms = options->round_ms != 0 ? options->round_ms : 30000;
    plan->gossip_round_ms = 10000;
    plan->voters_max = 7;
    plan->inner_steps_max = 100000;
    plan->disk_us_max = 1000;
    plan->chunks_max = 0;
    plan->crash_after_send = 0;
    plan->at_start = 1;
    plan->members = options->churn_milli == 0 ? plan->nodes : plan->nodes - plan->nodes / 6;
    plan->churn_us = detect ? 10000000
                     : options->churn_milli == 0
                         ? 0
                         : 60000000000ULL / options->churn_milli / plan->nodes;
    plan->weather = (dp_net_weather){.loss = options->loss_milli * 65536 / 1000};
    plan->limit_us = options->until_us != 0 ? options->until_us : 120000000;
    plan->faults_end_us = plan->limit_us + 1;
}

void dp_plan_draw(dp_plan *plan, const dp_sim_options *options)
{
    static const uint32_t round_ms[] = {500, 1000, 1000, 2000};
    dp_rng rng;
    dp_rng later;
    dp_rng bugs;

    dp_rng_init(&rng, dp_mix64(options->seed) ^ 0x706c616eULL);
    memset(plan, 0, sizeof *plan);
    plan->nodes = 5 + (uint32_t)dp_rng_below(&rng, dp_rng_below(&rng, 2) == 0 ? 4 : 16);
    plan->on = (uint32_t)dp_rng_next(&rng) & DP_FAULTS_DRAWN;
    if (options->all_on) {
        /* drawn in any case, so that the rest of the plan does not change */
        plan->on = DP_FAULTS_ALL;
    }
    plan->faults_end_us = 60000000;
    plan->rounds_after = 15;
    plan->round_ms = round_ms[dp_rng_below(&rng, 4)];
    plan->gossip_round_ms = 500 + (uint32_t)dp_rng_below(&rng, 1500);
    plan->voters_max = 3 + 2 * (uint32_t)dp_rng_below(&rng, 3);
    plan->inner_steps_max = 20 + (uint32_t)dp_rng_below(&rng, 100);
    plan->disk_us_max = (uint32_t)spread(&rng, 500, 20000);
    plan->save_us = (uint32_t)dp_rng_below(&rng, 4000001);
    plan->crash_after_send = dp_rng_below(&rng, 3) == 0 ? 100 : 0;
    plan->away_us_max = 3000000;
    dp_rng_init(&bugs, dp_mix64(options->seed) ^ 0x62756773ULL);
    dp_rng_init(&later, dp_mix64(options->seed) ^ 0x6c617465ULL);
    for (uint32_t i = 0; i < DP_FAULT_STEADY; i++) {
        plan->fault_us[i] = spread(i < DP_FAULT_OLD ? &rng : &later, 2000000, 20000000);
    }
    for (uint32_t i = 0; i < DP_BUG_COUNT && is_wild(options->profile); i++) {
        plan->buggify |= dp_rng_below(&bugs, 4) == 0 ? 1U << i : 0;
    }
    plan->buggify = dp_rng_below(&bugs, 2) == 0 && !options->lucky ? plan->buggify : 0;
    plan->core = is_wild(options->profile) && dp_rng_below(&later, 2) == 0;
    if (options->profile == DP_PROFILE_SWARM && dp_rng_below(&later, MANY_ONE_IN) == 0) {
        plan->nodes = 40 + (uint32_t)dp_rng_below(&later, 25);
        /* In shorter rounds the few near ones of so many would be ahead of the far ones. */
        plan->round_ms = 2000;
        plan->inner_steps_max += 200;
    }
    bias(plan, options, &rng);
    dp_scene_plan(plan, options->profile, &rng);
    plan->on &= options->faults;
    if ((plan->on & (1U << DP_FAULT_DELAY)) != 0 && plan->round_ms < 1000 &&
        (options->profile == DP_PROFILE_SWARM || options->profile == DP_PROFILE_ROT)) {
        plan->round_ms = 1000; /* Round trips of 160 ms do not fit in a quarter of a shorter one. */
    }
    if ((plan->on & (1U << DP_FAULT_DISK)) == 0 && options->profile != DP_PROFILE_RIVALS &&
        options->profile != DP_PROFILE_REVOKE) {
        plan->disk_us_max = 1000;
    }
    if ((plan->on & (1U << DP_FAULT_CRASH)) == 0) {
        plan->crash_after_send = 0;
    }
    draw_weather(plan, &rng);
    plan->chunks_max = draw_chunks(plan, options->seed);
    draw_disks(plan, options->seed);
    if (options->nodes != 0) {
        plan->nodes = options->nodes;
    }
    /* The bounds of oracle_live.c end a run that does not recover long before this. */
    plan->limit_us = plan->faults_end_us + 600000000;
    if (options->until_us != 0) {
        plan->limit_us = options->until_us;
    }
    plan->at_start = plan->nodes;
    plan->contributors = options->contributors != 0             ? options->contributors
                         : options->profile == DP_PROFILE_LISTS ? 2 * (uint32_t)DP_LISTED_DEFAULT
                                                                : (uint32_t)DP_LISTED_DEFAULT;
    if (options->profile == DP_PROFILE_SCALE || options->profile == DP_PROFILE_DETECT) {
        steady(plan, options);
    }
}
