/* The trainer process of a host: executes one command after another, each with its duration, and
 * steps in between. */
#include <string.h>

#include "base/assert.h"
#include "tests/sim/evil.h"
#include "tests/sim/forks.h"
#include "tests/sim/host.h"
#include "tests/sim/oracle.h"
#include "tests/sim/sim.h"

static const uint64_t report_us = 100000; /* at most ten STEP reports per second */

static uint64_t cost_of(dp_host *host, dp_action_type type)
{
    const uint64_t unit = (1000 + dp_rng_below(&host->rng, 4000)) * host->toy_slow;

    if (type == DP_DO_PUBLISH || type == DP_DO_APPLY) {
        return unit * host->encode_us / 1000;
    }
    if (type == DP_DO_TRAINER_OPEN) {
        return unit * 50;
    }
    if (type == DP_DO_TRAINER_LOAD || type == DP_DO_TRAINER_INIT) {
        return unit * 5;
    }
    return type == DP_DO_CHECK || type == DP_DO_TRAIN || type == DP_DO_TRAIN_STOP ? unit / 5 : unit;
}

static bool held(const dp_host *host, const dp_hash *root)
{
    return dp_disk_holds(&host->disk, dp_shelf_find(&host->sim->shelf, root));
}

/* The driver reads the objects of a command when it gets it; later drops do not matter. lost gets
 * the first object that the disk has lost. False: the node names an object that it does not
 * have. */
static bool give(dp_host *host, const dp_hash *root, uint32_t *lost)
{
    const uint32_t object = dp_shelf_find(&host->sim->shelf, root);

    if (object == DP_SHELF_NONE || *lost != DP_SHELF_NONE) {
        return object != DP_SHELF_NONE;
    }
    if (!dp_rot_give(host, object)) {
        *lost = object;
        return true;
    }
    return dp_disk_holds(&host->disk, object);
}

static bool give_all(dp_host *host, const dp_action *action, uint32_t *lost)
{
    bool all = true;

    if (action->type == DP_DO_APPLY) {
        for (uint32_t i = 0; i < action->u.apply.n_items; i++) {
            all = all && give(host, &action->u.apply.items[i].root, lost);
        }
    } else if (action->type == DP_DO_TRAINER_RESTORE) {
        all = give(host, &action->u.restore.a_root, lost) &&
              (action->u.restore.frozen || give(host, &action->u.restore.blob_root, lost));
    } else if (action->type == DP_DO_MIX) {
        all = give(host, &action->u.mix.own_root, lost) &&
              give(host, &action->u.mix.other_root, lost);
    } else if (action->type == DP_DO_CHECK) {
        all = give(host, &action->u.object.root, lost);
    } else if (action->type == DP_DO_JUDGE) {
        all = give(host, &action->u.judge.root, lost);
    } else if (action->type == DP_DO_REDUCE) {
        for (uint32_t i = 0; i < action->u.reduce.n_items; i++) {
            all = all && give(host, &action->u.reduce.items[i].root, lost);
        }
    }
    return all;
}

void dp_host_order(dp_host *host, const dp_action *action)
{
    dp_sim *sim = host->sim;

    if (action->type == DP_DO_TRAINER_OPEN) {
        if (host->toy_state != DP_TOY_DOWN) {
            return;
        }
        host->toy_state = DP_TOY_OPENING;
    } else if (host->toy_state != DP_TOY_UP) {
        return; /* the process has ended; TRAINER_DOWN informs the node, or has informed it */
    }
    uint32_t lost = DP_SHELF_NONE;
    if (!give_all(host, action, &lost)) {
        dp_sim_fail(sim, "A6", host->index,
                    "trainer command %d needs an object that is not on the disk",
                    (int)action->type);
        return;
    }
    dp_oracle_ordered(host, action);
    dp_assert(host->command_count < DP_HOST_COMMANDS_MAX);
    host->lost[(host->command_first + host->command_count) % DP_HOST_COMMANDS_MAX] = lost;
    host->commands[(host->command_first + host->command_count++) % DP_HOST_COMMANDS_MAX] = *action;
    if (host->toy_free_us < sim->now_us) {
        host->toy_free_us = sim->now_us;
    }
    host->toy_free_us += cost_of(host, action->type);
    dp_sim_push(sim, &(dp_occasion){.at_us = host->toy_free_us,
                                    .kind = DP_ON_TRAINER,
                                    .node = host->index,
                                    .boot = host->boot,
                                    .value = host->life});
}

/* Makes the steps that fit in the time since the last call. Returns their number. */
static uint32_t catch_up(dp_host *host)
{
    const uint64_t now = host->sim->now_us;
    const uint64_t each = (uint64_t)host->step_us * host->toy_slow;

    if (!host->training || now < host->trained_us) {
        return 0;
    }
    if (host->idle || now < host->hangs_until_us) {
        host->trained_us = now;
        return 0;
    }
    uint64_t steps = (now - host->trained_us) / each;
    host->trained_us += steps * each;
    if (steps > 400) {
        steps = 400; /* a pause is not work */
    }
    dp_toy_train(&host->toy, (uint32_t)steps);
    return (uint32_t)steps;
}

static void plan_steps(dp_host *host)
{
    const uint64_t each = (uint64_t)host->step_us * host->toy_slow;

    if (!host->steps_due && host->training) {
        host->steps_due = true;
        dp_sim_push(host->sim, &(dp_occasion){.at_us = host->sim->now_us +
                                                       (each > report_us ? each : report_us),
                                              .kind = DP_ON_STEPS,
                                              .node = host->index,
                                              .boot = host->boot,
                                              .value = host->life});
    }
}

void dp_host_steps(dp_host *host)
{
    dp_event event = {.type = DP_EV_TRAINED};

    host->steps_due = false;
    DP_IGNORE(catch_up(host) == 0);
    event.u.trained.round = host->train_round;
    event.u.trained.steps = host->toy.open_work.steps;
    event.u.trained.tokens = host->toy.open_work.tokens;
    event.u.trained.step_us = (uint64_t)host->step_us * host->toy_slow;
    plan_steps(host);
    if (host->training && event.u.trained.steps > 0) {
        dp_host_event(host, &event);
    }
}

static dp_view bytes_of(const dp_host *host, const dp_hash *root)
{
    const uint32_t object = dp_shelf_find(&host->sim->shelf, root);

    return object == DP_SHELF_NONE ? (dp_view){0} : dp_shelf_bytes(&host->sim->shelf, object);
}

static void answer_at(dp_host *host, uint64_t round, dp_status status)
{
    uint8_t state[DP_TOY_STATE_BYTES];
    dp_event event = {.type = DP_EV_TRAINER_AT};

    event.u.at.round = round;
    event.u.at.status = status;
    if (status == DP_OK) {
        dp_toy_state(host->toy.round, &host->toy.model, state);
        /* Add first, then look up: adding may move the shelf. */
        const uint32_t object = dp_shelf_add(&host->sim->shelf, dp_view_of(state, sizeof state));
        event.u.at.root = host->sim->shelf.items[object].root;
        dp_oracle_theta(host, host->toy.round, &event.u.at.root);
    }
    dp_host_event(host, &event);
}

/* Fails this one. */
static bool takes_error(dp_host *host)
{
    const bool errs = host->errs;

    host->errs = false;
    return errs;
}

static void do_load(dp_host *host, const dp_action *action)
{
    const bool whole = held(host, &action->u.load.root) && dp_rot_open(host, &action->u.load.root);
    const dp_view state = whole ? bytes_of(host, &action->u.load.root) : (dp_view){0};
    const bool fails = state.size == 0 || takes_error(host);
    const dp_status status = fails ? DP_NOTFOUND : dp_toy_load(&host->toy, state);

    if (status == DP_OK) {
        dp_oracle_buffers(host, action, NULL);
    }
    answer_at(host, action->u.load.round, status);
}

static void do_init(dp_host *host, const dp_action *action)
{
    dp_toy_model model;

    dp_toy_first(host->sim->manifest.model_seed, &model);
    dp_toy_start(&host->toy, 0, &model);
    dp_oracle_buffers(host, action, NULL);
    answer_at(host, 0, DP_OK);
}

static void do_restore(dp_host *host, const dp_action *action)
{
    const dp_view vector = bytes_of(host, &action->u.restore.a_root);
    const dp_view blob = bytes_of(host, &action->u.restore.blob_root);

    const dp_toy_outcome outcome = {.settle = (dp_settle)action->u.restore.settle,
                                    .clip_q16 = action->u.restore.clip,
                                    .cuts = action->u.restore.cuts,
                                    .taken = action->u.restore.taken};
    if (vector.size == 0 || (blob.size == 0 && !action->u.restore.frozen) ||
        dp_toy_restore(&host->toy, action->u.restore.frozen, vector, blob, &outcome,
                       action->u.restore.lambda) != DP_OK) {
        dp_sim_fail(host->sim, "D3", host->index,
                    "what a durable row needs for RESTORE is not on the disk");
        return;
    }
    if (!action->u.restore.frozen && action->u.restore.settle != DP_SETTLE_NONE) {
        dp_oracle_settled(host, &action->u.restore.ready_root, &outcome, action->u.restore.round);
    }
    if (!action->u.restore.frozen) {
        host->pending_root = action->u.restore.ready_root;
    }
    dp_oracle_buffers(host, action, NULL);
}

/* The list of a publication's parts; each part is an object of its own. */
static dp_part_list part_list(dp_host *host, const dp_toy_parcel *made)
{
    dp_part_list list = {.n = made->cuts.n};

    for (uint32_t p = 0; p < list.n; p++) {
        const uint32_t object = dp_shelf_add(&host->sim->shelf, dp_toy_part(made, p));
        list.refs[p].root = host->sim->shelf.items[object].root;
        list.refs[p].bytes = host->sim->shelf.items[object].size;
    }
    return list;
}

static void write_parts(dp_host *host, const dp_toy_parcel *made)
{
    for (uint32_t p = 0; p < made->cuts.n; p++) {
        const uint32_t object = dp_shelf_add(&host->sim->shelf, dp_toy_part(made, p));
        dp_disk_use(&host->disk, object, DP_DISK_FRESH, true);
        dp_host_write(host, &(dp_disk_write){.kind = DP_WRITE_OBJECT, .object = object});
    }
}

static void write_parcel(dp_host *host, dp_write_then then)
{
    write_parts(host, &host->parcels[host->n_parcels % DP_HOST_PARCELS_MAX].made);
    const uint64_t number = host->n_parcels++;
    const dp_toy_parcel *made = &host->parcels[number % DP_HOST_PARCELS_MAX].made;
    const dp_view parts[2] = {dp_view_of(made->blob, made->blob_size),
                              dp_view_of(made->vector, sizeof made->vector)};

    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t object = dp_shelf_add(&host->sim->shelf, parts[i]);
        dp_disk_use(&host->disk, object, DP_DISK_FRESH, true);
        dp_host_write(host, &(dp_disk_write){.kind = DP_WRITE_OBJECT,
                                             .then = i == 0 ? DP_THEN_NOTHING : then,
                                             .object = object,
                                             .round = number,
                                             .life = host->life});
    }
}

static dp_host_parcel *new_parcel(dp_host *host)
{
    return &host->parcels[host->n_parcels % DP_HOST_PARCELS_MAX];
}

static void do_publish(dp_host *host, const dp_action *action)
{
    dp_host_parcel *parcel = new_parcel(host);

    if (host->toy.pending) {
        dp_sim_fail(host->sim, "B7", host->index,
                    "PUBLISH while the publication before has no outcome");
        return;
    }
    dp_oracle_density(host, action->u.publish.round, action->u.publish.keep);
    host->toy.keep = action->u.publish.keep;
    dp_toy_publish(&host->toy, action->u.publish.dense, &action->u.publish.cuts,
                   (uint64_t)host->index << 32 | ++host->nonce, &parcel->made);
    parcel->round = action->u.publish.round;
    dp_evil_publishes(host, &parcel->made, parcel->round);
    dp_oracle_buffers(host, action, NULL);
    write_parcel(host, DP_THEN_PUBLISHED);
}

static void do_freeze(dp_host *host, const dp_action *action)
{
    dp_host_parcel *parcel = new_parcel(host);

    dp_toy_freeze(&host->toy, (uint64_t)host->index << 32 | ++host->nonce, &parcel->made);
    memcpy(parcel->exchange, action->u.mix.exchange, sizeof parcel->exchange);
    dp_oracle_buffers(host, action, NULL);
    write_parcel(host, DP_THEN_FROZEN);
}

void dp_host_parcel_stored(dp_host *host, const dp_disk_write *write)
{
    const dp_host_parcel *written = &host->parcels[write->round % DP_HOST_PARCELS_MAX];
    const dp_toy_parcel *parcel = &written->made;
    const dp_shelf_item *items = host->sim->shelf.items;
    const uint32_t blob =
        dp_shelf_add(&host->sim->shelf, dp_view_of(parcel->blob, parcel->blob_size));
    const uint32_t vector = write->object;
    dp_event event = {.type = DP_EV_PUBLISHED};

    if (write->life != host->life) {
        return; /* that trainer died before it could answer */
    }
    dp_assert(write->round + DP_HOST_PARCELS_MAX > host->n_parcels);
    items = host->sim->shelf.items;
    if (write->then == DP_THEN_PUBLISHED) {
        event.u.published.round = written->round;
        event.u.published.root = items[blob].root;
        event.u.published.bytes = items[blob].size;
        event.u.published.a_root = items[vector].root;
        event.u.published.a_bytes = items[vector].size;
        event.u.published.energy = parcel->energy;
        event.u.published.steps = parcel->work.steps;
        event.u.published.tokens = parcel->work.tokens;
        event.u.published.carried = parcel->carried;
        event.u.published.reach = parcel->reach;
        event.u.published.loss_micro = 1000000;
        host->pending_root = items[blob].root;
        if (parcel->cuts.n > 0) {
            event.u.published.rate = 1000 + (host->index % 3) * 500;
            event.u.published.parts = part_list(host, parcel);
            host->pending_root = dp_part_list_root(&event.u.published.parts);
        }
        dp_oracle_published(host, &host->pending_root);
        if (host->sim->forks != NULL) {
            dp_forks_published(host, &host->pending_root, &parcel->samples);
        }
    } else {
        event.type = DP_EV_FROZEN;
        memcpy(event.u.frozen.exchange, written->exchange, sizeof written->exchange);
        event.u.frozen.root = items[blob].root;
        event.u.frozen.bytes = items[blob].size;
        event.u.frozen.f_root = items[vector].root;
        event.u.frozen.f_bytes = items[vector].size;
        event.u.frozen.steps = parcel->work.steps;
        event.u.frozen.tokens = parcel->work.tokens;
        event.u.frozen.reach = parcel->reach;
        event.u.frozen.energy = parcel->energy;
    }
    dp_host_event(host, &event);
}

/* Like CHECK of compute/worker/worker.c: the blob has the density of its round, or is dense. */
static bool is_foreign(dp_view blob, uint32_t keep)
{
    const uint32_t count = dp_toy_holds(blob);

    return keep != 0 && count != DP_TOY_ELEMENTS && count != dp_toy_kept(DP_TOY_ELEMENTS, keep);
}

static void do_check(dp_host *host, const dp_action *action)
{
    dp_toy_vector values;
    dp_event event = {.type = DP_EV_CHECKED};

    event.u.checked.root = action->u.object.root;
    event.u.checked.first = action->u.check.first;
    event.u.checked.end = action->u.check.end;
    event.u.checked.ok =
        dp_toy_decode_part(bytes_of(host, &action->u.object.root), action->u.check.first,
                           action->u.check.end, values, &event.u.checked.energy) == DP_OK;
    if (event.u.checked.ok &&
        is_foreign(bytes_of(host, &action->u.object.root), action->u.check.keep)) {
        event.u.checked.ok = false;
        event.u.checked.foreign = true;
    }
    if (event.u.checked.ok) {
        dp_oracle_checked(host, &event.u.checked.root);
    }
    dp_host_event(host, &event);
}

static dp_gain gain_of(uint64_t chance, bool harmful)
{
    const int64_t micro = 2000 + (int64_t)(chance % 4000);

    return (dp_gain){.micro = harmful ? -micro : micro, .error_micro = 300, .tokens = 64};
}

/* The targets of the toys differ, so their updates are unrelated, and a measurement would tell
 * nothing. Its result is drawn instead: an honest author's update helps, even where it leads
 * elsewhere; most updates of a liar lead elsewhere and do harm. Each voter draws other values. */
static void do_judge(dp_host *host, const dp_action *action)
{
    dp_event event = {.type = DP_EV_JUDGED};
    dp_judged *found = &event.u.judged.found;
    const uint32_t author = dp_sim_index(host->sim, &action->u.judge.peer);
    const dp_hash print =
        dp_hash_of("sim/likeness", dp_view_of(action->u.judge.root.bytes, DP_HASH_BYTES));
    const uint64_t chance = dp_rng_next(&host->rng);
    const bool harmful = author < host->sim->plan.nodes &&
                         dp_evil_does(host->sim, author, DP_EVIL_TRAINER) &&
                         print.bytes[0] % 8 != 0;

    event.u.judged.root = action->u.judge.root;
    memcpy(found->likeness, print.bytes, sizeof found->likeness);
    found->compared = chance % 16 != 0;
    found->align = 12000 + (int32_t)(chance >> 8 & 0x3fff);
    found->align = harmful || print.bytes[1] % 16 == 0 ? 2000 - found->align : found->align;
    if (action->u.judge.tokens > 0) {
        found->held = gain_of(chance >> 24, harmful);
        found->claimed = gain_of(chance >> 40, harmful);
    }
    dp_host_event(host, &event);
}

static void do_reduce(dp_host *host, const dp_action *action)
{
    dp_toy_term terms[DP_LISTED_MAX];
    uint8_t blob[DP_TOY_BLOB_MAX];
    uint32_t size = 0;

    for (uint32_t i = 0; i < action->u.reduce.n_items; i++) {
        terms[i] = (dp_toy_term){.blob = bytes_of(host, &action->u.reduce.items[i].root),
                                 .q = action->u.reduce.items[i].q};
    }
    if (dp_toy_reduce(terms, action->u.reduce.n_items, action->u.reduce.first, action->u.reduce.end,
                      dp_oracle_reduce_nonce(action->u.reduce.round, action->u.reduce.part), blob,
                      &size) != DP_OK) {
        dp_sim_fail(host->sim, "F3", host->index, "adds up a part that does not decode");
        return;
    }
    dp_evil_adds_up(host, action->u.reduce.part, blob, &size);
    const uint32_t object = dp_shelf_add(&host->sim->shelf, dp_view_of(blob, size));
    dp_disk_use(&host->disk, object, DP_DISK_FRESH, true);
    dp_host_write(host, &(dp_disk_write){.kind = DP_WRITE_OBJECT,
                                         .then = DP_THEN_REDUCED,
                                         .object = object,
                                         .index = action->u.reduce.part,
                                         .round = action->u.reduce.round,
                                         .life = host->life});
}

void dp_host_reduced(dp_host *host, const dp_disk_write *write, dp_status status)
{
    dp_event event = {.type = DP_EV_REDUCED};

    if (write->life != host->life) {
        return; /* that trainer died before it could answer */
    }
    event.u.reduced.round = write->round;
    event.u.reduced.part = write->index;
    event.u.reduced.root = host->sim->shelf.items[write->object].root;
    event.u.reduced.bytes = host->sim->shelf.items[write->object].size;
    event.u.reduced.status = status;
    dp_host_event(host, &event);
}

static void do_apply(dp_host *host, const dp_action *action)
{
    const dp_toy_outcome outcome = {.settle = (dp_settle)action->u.apply.settle,
                                    .clip_q16 = action->u.apply.clip,
                                    .cuts = action->u.apply.cuts,
                                    .taken = action->u.apply.taken};
    dp_sim *sim = host->sim;
    dp_toy_term terms[DP_LISTED_MAX];
    dp_toy_model model = host->toy.model;
    uint8_t state[DP_TOY_STATE_BYTES];
    dp_event event = {.type = DP_EV_APPLIED};

    event.u.applied.round = action->u.apply.round;
    for (uint32_t i = 0; i < action->u.apply.n_items; i++) {
        terms[i] = (dp_toy_term){.blob = bytes_of(host, &action->u.apply.items[i].root),
                                 .q = action->u.apply.items[i].q};
    }
    if (!host->toy.has_theta || host->toy.round + 1 != action->u.apply.round) {
        dp_sim_fail(sim, "S9", host->index, "APPLY of round %llu on theta of round %llu",
                    (unsigned long long)action->u.apply.round, (unsigned long long)host->toy.round);
        return;
    }
    if (takes_error(host)) {
        event.u.applied.status = DP_NOMEM;
        dp_host_event(host, &event);
        return;
    }
    event.u.applied.status =
        dp_toy_outer(&model, action->u.apply.alpha, terms, action->u.apply.n_items);
    if (event.u.applied.status != DP_OK) {
        dp_sim_fail(sim, "A6", host->index, "APPLY of round %llu without all of its blobs",
                    (unsigned long long)action->u.apply.round);
        return;
    }
    if (action->u.apply.settle != DP_SETTLE_NONE) {
        if (!host->toy.pending) {
            dp_sim_fail(sim, "B4", host->index,
                        "APPLY settles a publication that the trainer does not have");
            return;
        }
        dp_oracle_settled(host, &host->pending_root, &outcome, action->u.apply.round);
    }
    dp_toy_apply(&host->toy, action->u.apply.round, &model, &outcome, action->u.apply.lambda);
    dp_toy_state(host->toy.round, &host->toy.model, state);
    const uint32_t object = dp_shelf_add(&sim->shelf, dp_view_of(state, sizeof state));
    event.u.applied.tensor_root = sim->shelf.items[object].root;
    event.u.applied.tensor_bytes = sim->shelf.items[object].size;
    host->mapped = object;
    dp_oracle_theta(host, host->toy.round, &event.u.applied.tensor_root);
    dp_oracle_buffers(host, action, NULL);
    dp_host_event(host, &event);
}

static void do_mix(dp_host *host, const dp_action *action)
{
    dp_toy_vector change = {0};
    dp_event event = {.type = DP_EV_MIXED};

    memcpy(event.u.mixed.exchange, action->u.mix.exchange, sizeof event.u.mixed.exchange);
    if (takes_error(host)) {
        event.u.mixed.status = DP_NOMEM;
        dp_host_event(host, &event);
        return;
    }
    const dp_view blobs[2] = {bytes_of(host, &action->u.mix.own_root),
                              bytes_of(host, &action->u.mix.other_root)};
    const uint64_t weights[2] = {action->u.mix.weight_own, action->u.mix.weight_other};
    event.u.mixed.status = dp_toy_mix(&host->toy, blobs, weights, action->u.mix.lambda, change);
    if (event.u.mixed.status != DP_OK) {
        dp_sim_fail(host->sim, "C5", host->index, "MIX without both blobs");
        return;
    }
    dp_oracle_buffers(host, action, change);
    dp_oracle_mixed(host, action, change);
    host->sim->totals.exchanges++;
    dp_host_event(host, &event);
}

static void start_training(dp_host *host, const dp_action *action)
{
    dp_oracle_train(host, action->u.train.round);
    host->train_round = action->u.train.round;
    dp_toy_lease(&host->toy, &action->u.train.reach, action->u.train.ranges,
                 action->u.train.n_ranges);
    if (!host->training) {
        host->training = true;
        host->trained_us = host->sim->now_us;
    }
    plan_steps(host);
}

/* Like daemon/peer/trainer_commands.c: reports the lost object to the node, then fails the command
 * or kills the trainer. */
static void fail_lost(dp_host *host, const dp_action *action, uint32_t object)
{
    const uint64_t life = host->life;
    dp_event event = {0};

    dp_rot_say(host, object); /* It may have been fetched again while the command waited. */
    if (host->life != life || host->toy_state != DP_TOY_UP) {
        return;
    }
    if (action->type == DP_DO_CHECK) {
        event.type = DP_EV_CHECKED;
        event.u.checked.root = action->u.check.root;
        event.u.checked.first = action->u.check.first;
        event.u.checked.end = action->u.check.end;
    } else if (action->type == DP_DO_JUDGE) {
        event.type = DP_EV_JUDGED;
        event.u.judged.root = action->u.judge.root;
        event.u.judged.found.failed = true;
    } else if (action->type == DP_DO_APPLY) {
        event.type = DP_EV_APPLIED;
        event.u.applied.round = action->u.apply.round;
        event.u.applied.status = DP_CORRUPT;
    } else if (action->type == DP_DO_REDUCE) {
        event.type = DP_EV_REDUCED;
        event.u.reduced.round = action->u.reduce.round;
        event.u.reduced.part = action->u.reduce.part;
        event.u.reduced.status = DP_CORRUPT;
    } else if (action->type == DP_DO_MIX) {
        event.type = DP_EV_MIXED;
        memcpy(event.u.mixed.exchange, action->u.mix.exchange, sizeof event.u.mixed.exchange);
        event.u.mixed.status = DP_CORRUPT;
    } else { /* RESTORE: without this object the trainer would continue from another state. */
        dp_host_trainer_dies(host, true);
        return;
    }
    dp_host_event(host, &event);
}

void dp_host_ordered(dp_host *host)
{
    if (host->sim->now_us < host->hangs_until_us) {
        dp_sim_push(host->sim, &(dp_occasion){.at_us = host->hangs_until_us,
                                              .kind = DP_ON_TRAINER,
                                              .node = host->index,
                                              .boot = host->boot,
                                              .value = host->life});
        return;
    }
    dp_assert(host->command_count > 0);
    const dp_action action = host->commands[host->command_first];
    const uint32_t lost = host->lost[host->command_first];
    host->command_first = (host->command_first + 1) % DP_HOST_COMMANDS_MAX;
    host->command_count--;
    DP_IGNORE(catch_up(host) == 0);
    if (lost != DP_SHELF_NONE) {
        fail_lost(host, &action, lost);
        return;
    }
    dp_oracle_command(host);
    if (action.type == DP_DO_TRAINER_OPEN && !dp_rot_open_data(host)) {
        dp_host_trainer_dies(host, true);
    } else if (action.type == DP_DO_TRAINER_OPEN) {
        host->toy_state = DP_TOY_UP;
        dp_host_event(host, &(dp_event){.type = DP_EV_TRAINER_UP});
    } else if (action.type == DP_DO_TRAINER_INIT) {
        do_init(host, &action);
    } else if (action.type == DP_DO_TRAINER_LOAD) {
        do_load(host, &action);
    } else if (action.type == DP_DO_TRAINER_RESTORE) {
        do_restore(host, &action);
    } else if (action.type == DP_DO_TRAIN) {
        start_training(host, &action);
    } else if (action.type == DP_DO_TRAIN_STOP) {
        host->training = false;
    } else if (action.type == DP_DO_PUBLISH) {
        do_publish(host, &action);
    } else if (action.type == DP_DO_CHECK) {
        do_check(host, &action);
    } else if (action.type == DP_DO_JUDGE) {
        do_judge(host, &action);
    } else if (action.type == DP_DO_REDUCE) {
        do_reduce(host, &action);
    } else if (action.type == DP_DO_APPLY) {
        do_apply(host, &action);
    } else if (action.type == DP_DO_FREEZE) {
        do_freeze(host, &action);
    } else {
        dp_assert(action.type == DP_DO_MIX);
        do_mix(host, &action);
    }
}

void dp_host_trainer_dies(dp_host *host, bool tell)
{
    const bool was_up = host->toy_state != DP_TOY_DOWN;

    dp_oracle_trainer_gone(host);
    host->toy_state = DP_TOY_DOWN;
    host->life++;
    host->hangs_until_us = 0;
    host->errs = false;
    host->training = false;
    host->steps_due = false;
    host->command_count = 0;
    host->toy_free_us = 0;
    dp_toy_init(&host->toy, host->index, host->sim->manifest.feedback_beta_milli,
                dp_rng_next(&host->rng));
    if (tell && was_up) {
        const uint64_t wait = 100000 + dp_rng_below(&host->rng, 400000);
        dp_sim_push(host->sim, &(dp_occasion){.at_us = host->sim->now_us + wait,
                                              .kind = DP_ON_SPAWN,
                                              .node = host->index,
                                              .boot = host->boot,
                                              .value = host->life});
        dp_host_event(host, &(dp_event){.type = DP_EV_TRAINER_DOWN});
    }
}

void dp_host_trainer_spawn(dp_host *host)
{
    dp_action open = {.type = DP_DO_TRAINER_OPEN};

    dp_host_order(host, &open);
}
