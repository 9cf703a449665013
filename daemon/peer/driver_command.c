/* Makes each command to the trainer from the node's action. */
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "daemon/peer/driver_inside.h"
#include "daemon/peer/trainer_commands_inside.h"
#include "store/object.h"

void dp_driver_open_model(dp_driver *driver)
{
    command_job *job = dp_trainer_command_new(driver, DP_TRAINER_OPEN);
    if (job == NULL) {
        return;
    }
    memcpy(job->msg.member, driver->self.bytes, sizeof job->msg.member);
    randombytes_buf(&job->msg.seed, sizeof job->msg.seed);
    job->wait.command = DP_TRAINER_OPEN;
    job->roots[0] = driver->manifest.tokenizer;
    job->n_roots = 1;
    for (uint32_t i = 0; i < driver->manifest.n_shards; i++) {
        job->roots[job->n_roots++] = driver->manifest.shards[i].root;
    }
    if (dp_manifest_adapts(&driver->manifest)) {
        job->roots[job->n_roots++] = driver->manifest.base;
    }
    dp_trainer_command_post(driver, job);
}

static void give_items(command_job *job, const dp_apply_item *items, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        job->msg.q[i] = items[i].q;
        job->msg.shares[i] = (dp_part_range){.first = items[i].first, .end = items[i].end};
        job->roots[i] = items[i].root;
    }
    job->msg.n_items = n;
    job->n_roots = n;
}

void dp_driver_command_slice(dp_driver *driver, uint64_t round, uint32_t at,
                             const dp_apply_item *items, uint32_t n)
{
    command_job *job = dp_trainer_command_new(driver, DP_TRAINER_ADD);
    if (job == NULL) { /* No memory: without this part the sum would be wrong. */
        dp_trainer_process_replace(driver->trainer, "does not take its commands");
        return;
    }
    job->msg.round = round;
    job->msg.at = at;
    give_items(job, items, n);
    job->wait = (dp_driver_wait){.command = DP_TRAINER_ADD, .round = round, .part = at + n};
    dp_trainer_command_post(driver, job);
}

static void start_reduce(dp_driver *driver, const dp_action *action)
{
    command_job *job = dp_trainer_command_new(driver, DP_TRAINER_REDUCE);
    if (job == NULL) {
        return;
    }
    job->msg.round = action->u.reduce.round;
    job->msg.part = action->u.reduce.part;
    job->msg.range = (dp_part_range){.first = action->u.reduce.first, .end = action->u.reduce.end};
    give_items(job, action->u.reduce.items, action->u.reduce.n_items);
    dp_event_log_add(driver->daemon->event_log, DP_LOG_DEBUG, "part.adding", job->msg.round, NULL,
                     "part %u: summing %u contributions", job->msg.part, job->msg.n_items);
    job->wait = (dp_driver_wait){.command = DP_TRAINER_REDUCE,
                                 .round = action->u.reduce.round,
                                 .part = action->u.reduce.part};
    dp_trainer_command_post(driver, job);
}

static void start_apply(dp_driver *driver, const dp_action *action)
{
    const dp_apply_item *const items = action->u.apply.items;
    const uint32_t n = action->u.apply.n_items;
    command_job *job = dp_trainer_command_new(driver, DP_TRAINER_APPLY);
    if (job == NULL) {
        return;
    }
    job->msg.round = action->u.apply.round;
    job->msg.tokens = action->u.apply.tokens;
    job->msg.alpha = action->u.apply.alpha;
    job->msg.settle = (dp_settle)action->u.apply.settle;
    job->msg.clip = action->u.apply.clip;
    job->msg.lambda = action->u.apply.lambda;
    job->msg.contributors = action->u.apply.contributors;
    job->msg.cuts = action->u.apply.cuts;
    job->msg.taken = action->u.apply.taken;
    job->wait = (dp_driver_wait){.command = DP_TRAINER_APPLY, .round = action->u.apply.round};
    /* Only all results of parts together cover the vector, and there are at most as many as
     * parts. */
    if (job->msg.cuts.n > 0 || !dp_driver_slices_needed(driver, items, n)) {
        give_items(job, items, n);
    } else if (dp_driver_slices_begin(driver, job->msg.round, items, n)) {
        job->msg.at = n;
    } else {
        dp_trainer_command_free(job);
        dp_trainer_process_replace(driver->trainer, "does not take its commands");
        return;
    }
    dp_trainer_command_post(driver, job);
}

static void start_restore(dp_driver *driver, const dp_action *action)
{
    command_job *job = dp_trainer_command_new(driver, DP_TRAINER_RESTORE);
    if (job == NULL) {
        return;
    }
    job->msg.restore = action->u.restore.frozen ? DP_RESTORE_FROZEN : DP_RESTORE_PENDING;
    job->msg.round = action->u.restore.round;
    job->msg.settle = (dp_settle)action->u.restore.settle;
    job->msg.clip = action->u.restore.clip;
    job->msg.lambda = action->u.restore.lambda;
    job->msg.steps = action->u.restore.steps;
    job->msg.tokens = action->u.restore.tokens;
    job->msg.carried = action->u.restore.carried;
    job->msg.cuts = action->u.restore.cuts;
    job->msg.taken = action->u.restore.taken;
    job->roots[0] = action->u.restore.a_root;
    job->roots[1] = action->u.restore.blob_root;
    job->n_roots = dp_hash_is_zero(&action->u.restore.blob_root) ? 1 : 2;
    dp_trainer_command_post(driver, job);
}

static void start_check(dp_driver *driver, const dp_action *action)
{
    const dp_part_range range = {.first = action->u.check.first, .end = action->u.check.end};
    command_job *job = dp_trainer_command_new(driver, DP_TRAINER_CHECK);
    if (job == NULL) {
        return;
    }
    job->msg.id = driver->next_check++;
    driver->checks[job->msg.id % DP_DRIVER_CHECKS_MAX].root = action->u.check.root;
    driver->checks[job->msg.id % DP_DRIVER_CHECKS_MAX].range = range;
    if (range.first != 0 || range.end != DP_PART_WHOLE) {
        job->msg.range = range;
    }
    job->msg.keep = action->u.check.keep;
    job->roots[0] = action->u.check.root;
    job->n_roots = 1;
    dp_trainer_command_post(driver, job);
}

static void start_judge(dp_driver *driver, const dp_action *action)
{
    driver->n_judges++;
    command_job *const job = driver->trainer_open && driver->n_judges <= DP_DRIVER_JUDGES_MAX
                                 ? dp_trainer_command_new(driver, DP_TRAINER_JUDGE)
                                 : NULL;
    if (job == NULL) {
        dp_driver_judged(driver, &action->u.judge.root, NULL);
        return;
    }
    job->msg.id = driver->next_judge++;
    job->msg.keep = action->u.judge.keep;
    job->msg.scale = action->u.judge.scale;
    job->msg.tokens = action->u.judge.tokens;
    job->msg.seed = action->u.judge.seed;
    memcpy(job->msg.member, action->u.judge.peer.bytes, sizeof job->msg.member);
    job->msg.reach.own = action->u.judge.own;
    job->msg.own_count = action->u.judge.own_count;
    job->msg.n_ranges = action->u.judge.n_ranges;
    memcpy(job->msg.ranges, action->u.judge.ranges, sizeof job->msg.ranges);
    job->roots[0] = action->u.judge.root;
    job->n_roots = 1;
    job->wait = (dp_driver_wait){
        .command = DP_TRAINER_JUDGE, .id = job->msg.id, .root = action->u.judge.root};
    dp_trainer_command_post(driver, job);
}

static void start_mix(dp_driver *driver, const dp_action *action, dp_trainer_kind kind)
{
    command_job *job = dp_trainer_command_new(driver, kind);
    if (job == NULL) {
        return;
    }
    memcpy(job->msg.exchange, action->u.mix.exchange, sizeof job->msg.exchange);
    memcpy(job->wait.exchange, action->u.mix.exchange, sizeof job->wait.exchange);
    job->wait.command = kind;
    if (kind == DP_TRAINER_MIX) {
        job->msg.weight_own = action->u.mix.weight_own;
        job->msg.weight_other = action->u.mix.weight_other;
        job->msg.lambda = action->u.mix.lambda;
        job->roots[0] = action->u.mix.own_root;
        job->roots[1] = action->u.mix.other_root;
        job->n_roots = 2;
    }
    dp_trainer_command_post(driver, job);
}

static void start_plain(dp_driver *driver, const dp_trainer_msg *msg, dp_trainer_kind wait,
                        const dp_hash *root)
{
    command_job *job = dp_trainer_command_new(driver, msg->kind);
    if (job == NULL) {
        return;
    }
    job->msg = *msg;
    job->wait = (dp_driver_wait){.command = wait, .round = msg->round, .cuts = msg->cuts};
    if (root != NULL) {
        job->roots[0] = *root;
        job->n_roots = 1;
    }
    dp_trainer_command_post(driver, job);
}

void dp_driver_command_trainer(dp_driver *driver, const dp_action *action)
{
    dp_trainer_msg msg = {0};
    if (action->type == DP_DO_TRAINER_INIT) {
        msg.kind = DP_TRAINER_INIT;
        start_plain(driver, &msg, DP_TRAINER_INIT, NULL);
    } else if (action->type == DP_DO_TRAINER_LOAD) {
        msg.kind = DP_TRAINER_LOAD;
        msg.round = action->u.load.round;
        start_plain(driver, &msg, DP_TRAINER_LOAD, &action->u.load.root);
    } else if (action->type == DP_DO_TRAINER_RESTORE) {
        start_restore(driver, action);
    } else if (action->type == DP_DO_TRAIN || action->type == DP_DO_TRAIN_STOP) {
        driver->training = action->type == DP_DO_TRAIN;
        /* A pause does not count as a slow step. */
        driver->step_ms = driver->training ? driver->step_ms : 0;
        msg.kind = DP_TRAINER_TRAIN;
        msg.round = action->type == DP_DO_TRAIN ? action->u.train.round : 0;
        if (action->type == DP_DO_TRAIN) {
            msg.tokens = action->u.train.tokens;
            msg.reach = action->u.train.reach;
            msg.n_ranges = action->u.train.n_ranges;
            memcpy(msg.ranges, action->u.train.ranges, sizeof msg.ranges);
        }
        start_plain(driver, &msg, (dp_trainer_kind)0, NULL);
    } else if (action->type == DP_DO_PUBLISH) {
        msg.kind = DP_TRAINER_PUBLISH;
        msg.round = action->u.publish.round;
        msg.dense = action->u.publish.dense;
        msg.keep = action->u.publish.keep;
        msg.cuts = action->u.publish.cuts;
        start_plain(driver, &msg, DP_TRAINER_PUBLISH, NULL);
    } else if (action->type == DP_DO_CHECK) {
        start_check(driver, action);
    } else if (action->type == DP_DO_JUDGE) {
        start_judge(driver, action);
    } else if (action->type == DP_DO_APPLY) {
        start_apply(driver, action);
    } else if (action->type == DP_DO_REDUCE) {
        start_reduce(driver, action);
    } else {
        start_mix(driver, action,
                  action->type == DP_DO_FREEZE ? DP_TRAINER_FREEZE : DP_TRAINER_MIX);
    }
}
