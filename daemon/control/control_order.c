/* The methods that need the root key of the run, or the rights of an admin. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "daemon/control/control.h"
#include "daemon/control/reply.h"
#include "daemon/peer/driver.h"
#include "store/ckpt.h"

void dp_method_revoke(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    char id[DP_PEER_TEXT_MAX];
    dp_why why = {""};
    dp_admin_command order = {.kind = DP_ADMIN_REVOKE, .why = &why};
    dp_packer packer;

    if (dp_call_driver(daemon, call) == NULL) {
        return;
    }
    if (!dp_call_find_peer(daemon, call, parameters, &order.peer)) {
        return;
    }
    if (dp_driver_order(daemon->driver, &order) != DP_OK) {
        dp_call_fail(call, 77, "E0121", "dpnode peers   # lists the members",
                     "this peer is not removed", why.text);
        return;
    }
    const bool has_root =
        dp_daemon_root_of(daemon, dp_driver_run_identity(daemon->driver)->root) != NULL;
    dp_peer_text(&order.peer, id);
    dp_event_log_add(daemon->event_log, DP_LOG_WARN, "member.revoked", 0, &order.peer,
                     "%s (%s) is removed from the run by this node's owner",
                     dp_driver_peer_name(daemon->driver, &order.peer), id);
    if (dp_call_begin(call, DP_CONTROL_REPLY, &packer)) {
        dp_group map = dp_map_begin(&packer);
        dp_pair_text(&map, "peer", id);
        dp_pair_text(&map, "key", has_root ? "root" : "admin");
        dp_pair_text(&map, "text", why.text); /* Empty: the remaining voters can decide. */
        dp_group_end(&map);
        dp_call_end(call, &packer);
    }
}

static void order_chain(dp_daemon *daemon, const dp_call *call, dp_admin_command order)
{
    dp_why why = {""};
    dp_driver_view view;
    dp_packer packer;

    order.why = &why;
    if (dp_call_driver(daemon, call) == NULL) {
        return;
    }
    if (dp_driver_order(daemon->driver, &order) != DP_OK) {
        dp_call_fail(call, 77, "E0123", "dpnode why   # shows the state of the run",
                     order.kind == DP_ADMIN_FORK ? "the chain is not restarted"
                                                 : "the chains are not merged",
                     why.text);
        return;
    }
    dp_driver_look(daemon->driver, &view);
    if (dp_call_begin(call, DP_CONTROL_REPLY, &packer)) {
        dp_group map = dp_map_begin(&packer);
        dp_pair_u64(&map, "round", order.back ? order.round : view.node.round);
        dp_pair_text(&map, "text", why.text);
        dp_group_end(&map);
        dp_call_end(call, &packer);
    }
}

/* ---- back to a checkpoint ---- */

typedef struct back_job {
    dp_store_thread_job job;
    dp_call call;
    dp_daemon *daemon;
    dp_run_id run;
    dp_admin_command order;
    dp_status status; /* DP_NOTFOUND: none of this round; DP_CORRUPT: it is damaged */
    bool is_found;
    dp_pieces_reading reading; /* of its state */
    dp_ckpt list[DP_CKPTS_MAX];
    uint32_t count;
} back_job;

static bool is_whole(const dp_ckpt *ckpt)
{
    return (ckpt->state == DP_CKPT_COMPLETE || ckpt->state == DP_CKPT_KEPT) &&
           !dp_ckpt_is_recovered(ckpt); /* No record is known that a FORK could go back to. */
}

static void find_checkpoint(back_job *self, dp_store *store)
{
    self->status = dp_ckpt_list(store, &self->run, self->list, DP_CKPTS_MAX, &self->count);
    if (self->status != DP_OK) {
        return;
    }
    self->status = DP_NOTFOUND;
    for (uint32_t i = 0; i < self->count; i++) {
        const dp_ckpt *ckpt = &self->list[i];
        if (ckpt->round == self->order.round && is_whole(ckpt)) {
            self->status = DP_OK;
            self->is_found = true;
            self->reading.root = ckpt->object;
            self->order.slot = ckpt->slot;
            self->order.state_root = ckpt->state_root;
        }
    }
}

/* Reads a piece of it: votes are written in between. */
static void run_back(dp_store_thread_job *job, dp_store *store)
{
    back_job *self = (back_job *)job;
    if (!self->is_found) {
        find_checkpoint(self, store);
    }
    if (self->status == DP_OK) {
        self->status = dp_pieces_read(&self->reading, store) == DP_OK ? DP_OK : DP_CORRUPT;
        job->again = self->status == DP_OK && self->reading.more;
    }
}

/* The rounds with a saved state, newest first, as many as fit. */
static void say_which(const back_job *self, dp_why *why)
{
    uint32_t n_whole = 0;
    for (uint32_t i = 0; i < self->count; i++) {
        n_whole += is_whole(&self->list[i]) ? 1 : 0;
    }
    size_t used =
        (size_t)snprintf(why->text, sizeof why->text, "this node has no checkpoint of round %llu%s",
                         (unsigned long long)self->order.round,
                         n_whole > 0 ? "; it has those of rounds" : ", and no other");

    for (uint32_t i = 0; i < self->count && used + 24 < sizeof why->text; i++) {
        if (is_whole(&self->list[i])) {
            used += (size_t)snprintf(why->text + used, sizeof why->text - used, " %llu",
                                     (unsigned long long)self->list[i].round);
        }
    }
}

static void go_back(dp_store_thread_job *job)
{
    back_job *self = (back_job *)job;
    dp_why why = {"its stored bytes are damaged"};
    if (!dp_call_alive(&self->call)) {
        dp_free(self);
        return;
    }
    if (self->status == DP_OK) {
        order_chain(self->daemon, &self->call, self->order);
    } else if (self->status == DP_NOTFOUND || self->status == DP_CORRUPT) {
        if (self->status == DP_NOTFOUND) {
            say_which(self, &why);
        }
        dp_call_fail(&self->call, 77, "E0123", "dpnode ckpt ls   # lists all checkpoints",
                     "there is no checkpoint to restart from", why.text);
    } else {
        dp_call_fail(&self->call, 74, "E0401", "dpnode logs   # shows the cause",
                     "the store could not be read", dp_status_text(self->status));
    }
    dp_free(self);
}

static void order_back(dp_daemon *daemon, const dp_call *call, uint64_t round)
{
    const dp_driver *driver = dp_call_driver(daemon, call);
    if (driver == NULL) {
        return;
    }
    back_job *job = dp_alloc(1, sizeof *job);
    if (job == NULL) {
        dp_call_fail(call, 70, "E0199", "", "out of memory", "");
        return;
    }
    job->job.run = run_back;
    job->job.done = go_back;
    job->call = *call;
    job->daemon = daemon;
    job->run = dp_driver_run_identity(driver)->run;
    job->order = (dp_admin_command){.kind = DP_ADMIN_FORK, .back = true, .round = round};
    if (dp_store_thread_post(daemon->store_thread, &job->job, DP_STORE_THREAD_BULK) != DP_OK) {
        dp_free(job);
        dp_call_fail(call, 75, "E0402", "try again", "the store is busy",
                     "too many writes are waiting");
    }
}

void dp_method_run_fork(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    uint64_t round = 0;

    if (dp_pack_get_u64(dp_pack_key(parameters, "round"), &round)) {
        order_back(daemon, call, round);
    } else {
        order_chain(daemon, call, (dp_admin_command){.kind = DP_ADMIN_FORK});
    }
}

void dp_method_run_merge(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    (void)parameters;
    order_chain(daemon, call, (dp_admin_command){.kind = DP_ADMIN_MERGE});
}
