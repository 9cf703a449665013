/* The method run.join: joins a run by a token. */
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "daemon/control/control.h"
#include "daemon/control/first_start.h"
#include "daemon/control/reply.h"
#include "daemon/control/run_create.h"
#include "daemon/peer/driver.h"
#include "daemon/peer/suspension.h"

enum {
    JOIN_CLOCK_MS = 3 * 1000, /* after a different clock was found */
    /* the peer may cut this node off for so long, since it may be overloaded ... */
    JOIN_CUT_MS = 15 * 1000,
    JOIN_REACH_MS = 20 * 1000, /* ... a peer must have answered with the manifest ... */
    /* ... or have accepted a connection; then the wait is extended once */
    JOIN_SLOW_MS = 40 * 1000,
    JOIN_LOOK_MS = 100,           /* between checks whether it is refused or admitted; */
    JOIN_QUIET_MS = 3 * 1000,     /* the waiting client gets a first notice after so long, */
    JOIN_TELL_MS = 30 * 1000,     /* ... and further ones at this interval */
    FORGET_TURNS_MAX = 100 * 1000 /* of the store's thread, until a run's last write is done */
};
#define MEMBER_MS (365ULL * 24 * 3600 * 1000)

typedef struct joining {
    dp_daemon *daemon;
    dp_call call;
    uv_timer_t timer;
    uint64_t started_ms;  /* dp_boot_ms, as told_ms */
    uint64_t first_event; /* since the join's begin */
    uint64_t waited_ms;   /* the sum of the timer's settings so far */
    /* the driver that waits to be admitted: shows whether the node has left meanwhile */
    const dp_driver *driver;
    uint64_t told_ms; /* when the client was last told that it waits */
    bool over;
} joining;

static void on_joining_closed(uv_handle_t *handle)
{
    dp_free(handle->data);
}

static void end_joining(joining *self)
{
    if (!self->over) {
        self->over = true;
        if (self->daemon->driver != NULL &&
            (self->driver == NULL || self->driver == self->daemon->driver)) {
            dp_driver_set_hooks(self->daemon->driver, NULL);
        }
        uv_close((uv_handle_t *)&self->timer, on_joining_closed);
    }
}

typedef struct forget_job {
    dp_store_thread_job job;
    const dp_daemon *daemon;
    dp_run_id run;
    bool all; /* the join has brought all that is here of the run: the data go too */
    uint32_t turns;
} forget_job;

/* If it fails, the next start tries to enter again, and reports it. */
static void run_forget_facts(dp_store_thread_job *job, dp_store *store)
{
    const forget_job *self = (const forget_job *)job;
    DP_IGNORE(self->all ? dp_run_identity_leave(store, &self->run) : dp_run_identity_forget(store));
}

static void run_nothing(dp_store_thread_job *job, dp_store *store)
{
    (void)job;
    (void)store;
}

/* If it fails, the next start does it: the run is marked as left. */
static void run_drop_data(dp_store_thread_job *job, dp_store *store)
{
    (void)job;
    DP_IGNORE(dp_run_identity_drop(store));
}

/* The data go when the last write of the run, which may be waiting now, is done. */
static void done_forget_facts(dp_store_thread_job *job)
{
    forget_job *self = (forget_job *)job;
    const bool is_last = dp_store_thread_waiting(self->daemon->store_thread) == 0;
    if (!self->all || job->run == run_drop_data || ++self->turns > FORGET_TURNS_MAX) {
        dp_free(self);
        return;
    }
    job->run = is_last ? run_drop_data : run_nothing;
    if (dp_store_thread_post(self->daemon->store_thread, job, DP_STORE_THREAD_BULK) != DP_OK) {
        dp_free(self);
    }
}

/* The run is not entered: the daemon is idle again, also after a restart. */
static void forget_run(dp_daemon *daemon)
{
    dp_driver *driver = daemon->driver;
    forget_job *forget = dp_alloc(1, sizeof *forget);
    if (forget != NULL) {
        forget->daemon = daemon;
    }
    if (forget != NULL && driver != NULL) { /* Otherwise run.leave, which closes it, does more. */
        dp_driver_view view;
        dp_driver_look(driver, &view);
        forget->run = dp_driver_run_identity(driver)->run;
        forget->all = view.is_new;
    }
    daemon->driver = NULL;
    dp_driver_close(driver);
    DP_IGNORE(dp_suspension_pause(daemon->suspension, &(dp_pause){.holds = false}, NULL,
                                  /* The pause belonged to this run. If this is not written, the
                                    * node is still paused. */
                                  NULL));
    /* If it stays, the next start enters this run only if it had a chain. */
    DP_IGNORE(dp_run_identity_copy_forget(daemon->config->dir));
    if (forget != NULL) {
        forget->job.run = run_forget_facts;
        forget->job.done = done_forget_facts;
        if (dp_store_thread_post(daemon->store_thread, &forget->job, DP_STORE_THREAD_URGENT) !=
            DP_OK) {
            dp_free(forget);
        }
    }
}

static void give_up(joining *self, int exit, const char *code, const char *fix, const char *what,
                    const char *why)
{
    dp_call_fail(&self->call, exit, code, fix, what, why);
    end_joining(self);
    forget_run(self->daemon);
}

/* The other side cut every connection that was established, and there were several. */
static bool only_cut(const dp_transport_stats *stats)
{
    return stats->handshakes == 0 && stats->dials_cut > 1 &&
           stats->dials_cut == stats->handshakes_failed;
}

/* Links come up, and members close each at once, as for a node that was removed or joined by a
 * revoked invite. */
static bool only_ended(const dp_transport_stats *stats)
{
    return stats->handshakes > 1 && stats->links == 0;
}

/* The newest word since the join's begin about a name that has no address; NULL: there is none. */
static const char *name_unknown(const joining *self)
{
    const dp_event_log *const log = self->daemon->event_log;
    for (uint32_t i = dp_event_log_entries(log); i-- > 0;) {
        const dp_event_log_entry *const entry = dp_event_log_entry_at(log, i);
        if (entry->id < self->first_event) {
            break;
        }
        if (strcmp(entry->name, "name.unknown") == 0) {
            return entry->text;
        }
    }
    return NULL;
}

/* The tried addresses and the outcome, as a sentence. */
static void tell_tried(const joining *self, const dp_transport_stats *stats, char *why, size_t size)
{
    const dp_run_identity *facts = dp_driver_run_identity(self->daemon->driver);
    size_t at = (size_t)snprintf(why, size, "tried for %llu s",
                                 (unsigned long long)(dp_boot_ms() - self->started_ms) / 1000);
    for (uint8_t i = 0; i < facts->n_addresses && at < size; i++) {
        char text[DP_ADDRESS_TEXT_MAX];
        dp_address_text(&facts->addresses[i], text);
        at += (size_t)snprintf(why + at, size - at, "%s %s", i > 0 ? "," : "", text);
    }
    if (at < size && stats->handshakes > 0) {
        snprintf(why + at, size - at, "; a peer is connected but has not sent the manifest");
    } else if (at < size && only_cut(stats)) {
        snprintf(why + at, size - at,
                 "; a program answers there and closes every connection: it has another run, its "
                 "join secret was rotated twice since this token was made, or it is overloaded");
    } else if (at < size && stats->handshakes_failed > 0) {
        snprintf(why + at, size - at, "; a program accepts connections there but is slow");
    } else if (at < size) {
        const char *const unknown = name_unknown(self);
        snprintf(why + at, size - at, "; %s",
                 unknown != NULL ? unknown : "no connection succeeded");
    }
}

#define CLOCK_FIX "timedatectl set-ntp true   # then join again"

static void on_nobody(uv_timer_t *timer);

static void wait_until(joining *self, uint64_t waited_ms)
{
    uv_timer_start(&self->timer, on_nobody, waited_ms - self->waited_ms, 0);
    self->waited_ms = waited_ms;
}

static void on_nobody(uv_timer_t *timer)
{
    joining *self = timer->data;
    char why[DP_TOKEN_ADDRESSES_MAX * (DP_ADDRESS_TEXT_MAX + 2) + DP_EVENT_LOG_TEXT_MAX + 128];
    dp_driver_view view;
    dp_driver_look(self->daemon->driver, &view);
    const dp_transport_stats *stats = &view.transport;
    dp_wall_view clock;
    if (dp_driver_clock(self->daemon->driver, &clock, why, sizeof why) && stats->links == 0) {
        give_up(self, 75, "E0210", CLOCK_FIX, "this machine's clock differs from the run's", why);
        return;
    }
    /* An overloaded machine answers late. */
    const bool cut = only_cut(stats) || only_ended(stats);
    const bool slow = stats->handshakes + stats->handshakes_failed > 0 && !cut;
    const uint64_t until_ms = cut ? JOIN_CUT_MS : slow ? JOIN_SLOW_MS : JOIN_REACH_MS;
    if (self->waited_ms < until_ms) {
        wait_until(self, until_ms);
        return;
    }
    tell_tried(self, stats, why, sizeof why);
    if (only_ended(stats)) {
        give_up(self, 77, "E0209", "dpnode invite   # on a member; then join by that token",
                "the run refuses this node",
                "its connections are closed at once: its invite or its membership was revoked");
        return;
    }
    give_up(
        self, 75, "E0202",
        "dpnode doctor   # on the inviter's machine: checks its daemon and port; then join again",
        "no member of the run answered", why);
}

static void on_join_progress(void *context, const char *phase, const char *text)
{
    joining *self = context;
    dp_call_progress(&self->call, phase, text);
    if (strcmp(phase, "clock") == 0) { /* If there is no link soon, this is the reason. */
        uv_timer_start(&self->timer, on_nobody, JOIN_CLOCK_MS, 0);
    }
}

/* The run stays in the store: the next start of this daemon continues the join. */
static void interrupt(joining *self)
{
    const bool known = dp_driver_manifest(self->daemon->driver) != NULL;
    dp_call_fail(&self->call, 75, "E0206",
                 known ? "dpnode up   # the join goes on"
                       : "dpnode up; dpnode join TOKEN   # the run was not reached yet",
                 "the join was interrupted", "the daemon has ended");
    end_joining(self);
}

static void on_join_failed(void *context, dp_status status, const char *why)
{
    joining *self = context;
    if (self->daemon->ending) {
        interrupt(self);
        return;
    }
    give_up(self, status == DP_NOSPACE ? 74 : 70, "E0206", "dpnode logs   # shows the cause",
            "the run could not be joined", why);
}

/* Its identity was a member before, and its store is of that one. The remedy destroys nothing. */
static void tell_barred(joining *self)
{
    char fix[sizeof((dp_control_error *)NULL)->fix];
    const char *const dir = self->daemon->config->dir;
    const char *const told = strlen(dir) <= 80 ? dir : "DIR"; /* Never half a path. */
    snprintf(fix, sizeof fix,
             "dpnode down; mv %.80s %.80s.left; dpnode up   # then join again, as a new node", told,
             told);
    give_up(self, 77, "E0219", fix, "the run refuses the identity of this node",
            "it left the run or was revoked, and a run admits no identity twice, by no token");
}

/* False: the run does not take this node, and the join has failed. */
static bool is_taken(joining *self)
{
    dp_why why;
    const dp_status refused = dp_node_refused(dp_driver_node(self->daemon->driver), &why);
    if (refused == DP_TOOBIG) {
        give_up(self, 75, "E0211",
                "join again then, or ask the run's owner for a larger members.max",
                "the run is full", why.text);
    } else if (refused == DP_EXISTS) {
        tell_barred(self);
    } else if (refused != DP_OK) {
        give_up(self, 77, "E0209", "dpnode invite   # on a member; then join by that token",
                "the run refuses this node", why.text);
    }
    return refused == DP_OK;
}

/* The chain is here as far as the members that are linked have applied it. */
static bool is_level(const dp_node *node)
{
    dp_node_view own;
    dp_member_view member;
    bool any = false;
    dp_node_look(node, &own);
    for (uint32_t i = 1; dp_node_member(node, i, &member); i++) {
        if (member.linked && member.round > own.round) {
            return false;
        }
        any = any || (member.linked && member.round > 0);
    }
    return any;
}

/* The run's data may be many: a run that will not take this node is not fetched first. A removal is
 * for good; in other respects only the end of the chain counts. */
static void on_catching_up(uv_timer_t *timer)
{
    joining *self = timer->data;
    dp_why why;
    const dp_node *const node =
        self->daemon->driver != NULL ? dp_driver_node(self->daemon->driver) : NULL;
    if (node != NULL && (is_level(node) || dp_node_refused(node, &why) == DP_EXISTS)) {
        DP_IGNORE(!is_taken(self)); /* Then the join has failed. */
    }
}

static void on_join_manifest(void *context)
{
    joining *self = context;
    uv_timer_start(&self->timer, on_catching_up, JOIN_LOOK_MS, JOIN_LOOK_MS);
    dp_call_progress(&self->call, "manifest", dp_driver_run_identity(self->daemon->driver)->name);
}

/* The next record admits it, if others do not come before it by the same invite. An observer is not
 * admitted. */
static bool waits_for_admission(const dp_daemon *daemon)
{
    const dp_run_identity *facts = dp_driver_run_identity(daemon->driver);
    const dp_peer self = dp_identity_peer(&daemon->identity);
    uint8_t ignored[32];
    dp_credential own;
    return !daemon->config->observer &&
           dp_credential_check(dp_view_of(facts->credential, facts->credential_bytes), &facts->run,
                               facts->root, NULL, 0, &own, NULL) == DP_OK &&
           (own.caps & DP_CAP_TRAIN) != 0 &&
           !dp_node_admitted(dp_driver_node(daemon->driver), &self, ignored);
}

static void reply_joined(joining *self)
{
    const dp_run_identity *facts = dp_driver_run_identity(self->daemon->driver);
    dp_driver_view view;
    dp_packer packer;
    dp_driver_look(self->daemon->driver, &view);
    if (dp_call_begin(&self->call, DP_CONTROL_REPLY, &packer)) {
        dp_group map = dp_map_begin(&packer);
        dp_pair_text(&map, "run", facts->name);
        dp_pair_hex(&map, "id", dp_view_of(facts->run.bytes, sizeof facts->run.bytes));
        dp_pair_u64(&map, "round", view.node.round);
        dp_pair_u64(&map, "ms", dp_boot_ms() - self->started_ms);
        dp_group_end(&map);
        dp_call_end(&self->call, &packer);
    }
    if (self->call.client == DP_CALL_NOBODY) {
        dp_first_start_joined(self->daemon->first_start);
    }
    end_joining(self);
}

static void on_admission(uv_timer_t *timer)
{
    joining *self = timer->data;
    if (self->daemon->driver != self->driver) {
        dp_call_fail(&self->call, 70, "E0206", "dpnode join TOKEN   # again",
                     "the run could not be joined", "the node has left the run in the meantime");
        end_joining(self);
        return;
    }
    if (self->call.client != DP_CALL_NOBODY && !dp_call_alive(&self->call)) {
        end_joining(self); /* No client waits any more; the node continues. */
        return;
    }
    if (!is_taken(self)) {
        return;
    }
    if (!waits_for_admission(self->daemon)) {
        reply_joined(self);
        return;
    }
    const uint64_t now_ms = dp_boot_ms();
    if (now_ms >= self->told_ms + JOIN_TELL_MS) {
        self->told_ms = now_ms;
        dp_call_progress(&self->call, "admission",
                         "waiting for the next record, which admits this node; Ctrl-C ends the "
                         "wait, the node keeps joining");
    }
}

static void on_join_following(void *context)
{
    joining *self = context;
    if (!is_taken(self)) {
        return;
    }
    if (!waits_for_admission(self->daemon)) {
        reply_joined(self);
        return;
    }
    self->driver = self->daemon->driver;
    self->told_ms = dp_boot_ms() - JOIN_TELL_MS + JOIN_QUIET_MS;
    uv_timer_start(&self->timer, on_admission, JOIN_LOOK_MS, JOIN_LOOK_MS);
}

/* The facts of a newcomer, from its token. */
static dp_status facts_of_token(const dp_daemon *daemon, const dp_invite *invite, const char *name,
                                dp_run_identity *facts)
{
    uint8_t serial[DP_CERT_SERIAL_BYTES];
    *facts = (dp_run_identity){
        .run = invite->run, .psk_epoch = invite->psk_epoch, .n_addresses = invite->n_addresses};
    memcpy(facts->root, invite->root, sizeof facts->root);
    memcpy(facts->join_secret, invite->join_secret, sizeof facts->join_secret);
    memcpy(facts->addresses, invite->addresses, sizeof facts->addresses);
    snprintf(facts->name, sizeof facts->name, "%s", invite->name);
    snprintf(facts->node_name, sizeof facts->node_name, "%s", name);
    randombytes_buf(serial, sizeof serial);
    return dp_invite_redeem(invite, &daemon->identity, serial, dp_unix_ms(), MEMBER_MS,
                            facts->credential, &facts->credential_bytes);
}

static dp_status open_by_token(dp_daemon *daemon, dp_view token, const char *name, dp_why *why)
{
    static dp_run_identity facts;
    static dp_invite invite;
    DP_TRY(dp_invite_parse(token, &invite, NULL, why));
    dp_status status = dp_invite_check(&invite, dp_unix_ms(), NULL, why);
    if (status == DP_OK) {
        status = facts_of_token(daemon, &invite, name, &facts);
    }
    dp_invite_close(&invite);
    if (status == DP_OK) {
        status = dp_driver_open(&daemon->driver, daemon, &facts, why);
    }
    sodium_memzero(&facts, sizeof facts);
    return status;
}

static void fail_join(const dp_call *call, dp_status status, const char *why)
{
    switch ((int)status) {
    case DP_EXPIRED:
        dp_call_fail(call, 65, "E0201", "dpnode invite   # on a member; then join by that token",
                     "this invite has expired", why);
        break;
    case DP_AGAIN:
        dp_call_fail(call, 75, "E0210", CLOCK_FIX, "this machine's clock differs from the run's",
                     why);
        break;
    case DP_BADMSG:
        dp_call_fail(call, 65, "E0203", "copy the whole token again, from DPN1- on",
                     "this is not a whole invite token", why);
        break;
    case DP_BADSIG:
    case DP_DENIED:
        dp_call_fail(call, 65, "E0204", "dpnode invite   # on a member; then join by that token",
                     "this token was not made by its run", why);
        break;
    case DP_BUSY:
        dp_call_fail(call, 73, "E0207",
                     "dpnode down; dpnode up --listen ADDR:PORT   # another port",
                     "the port is in use", why);
        break;
    default:
        dp_call_fail(call, 65, "E0208", "dpnode token inspect TOKEN", "this token cannot be used",
                     why[0] != '\0' ? why : dp_status_text(status));
        break;
    }
}

static void join(dp_daemon *daemon, const dp_call *call, dp_view token, const char *name)
{
    dp_why why = {""};
    joining *self = dp_alloc(1, sizeof *self);
    if (self == NULL || uv_timer_init(daemon->loop, &self->timer) != 0) {
        dp_free(self);
        dp_call_fail(call, 70, "E0199", "", "out of memory", "");
        return;
    }
    self->daemon = daemon;
    self->call = *call;
    self->timer.data = self;
    self->started_ms = dp_boot_ms();
    self->first_event = dp_event_log_next_id(daemon->event_log);
    const dp_status status = open_by_token(daemon, token, name, &why);
    if (status != DP_OK) {
        daemon->driver = NULL;
        fail_join(call, status, why.text);
        end_joining(self);
        return;
    }
    const dp_driver_hooks hooks = {self, on_join_manifest, on_join_following, on_join_failed,
                                   on_join_progress};
    dp_driver_set_hooks(daemon->driver, &hooks);
    wait_until(self, JOIN_CUT_MS);
    dp_call_progress(call, "token", dp_driver_run_identity(daemon->driver)->name);
}

/* A token of the run of this node, even if the token is revoked or used up. If the node was away
 * for two rotations of the join secret, the token has the secret that it lacks. */
static bool is_own_run(dp_daemon *daemon, dp_view token)
{
    static dp_invite invite;
    dp_why why = {""};
    const dp_run_identity *const facts = dp_driver_run_identity(daemon->driver);
    if (dp_invite_parse(token, &invite, NULL, &why) != DP_OK) {
        return false;
    }
    const bool own = memcmp(invite.run.bytes, facts->run.bytes, sizeof facts->run.bytes) == 0 &&
                     memcmp(invite.root, facts->root, sizeof facts->root) == 0;
    if (own && dp_driver_token_secret(daemon->driver, &invite)) {
        dp_event_log_add(
            daemon->event_log, DP_LOG_WARN, "secret.token", 0, NULL,
            "no peer answers this node; it now uses the newer join secret of its owner's token");
    }
    dp_invite_close(&invite);
    return own;
}

/* The reply for a node that is already a member: scripts that restart a machine call join each
 * time. */
static void reply_member(const dp_daemon *daemon, const dp_call *call)
{
    dp_packer packer;
    dp_driver_view view;
    const dp_run_identity *const facts = dp_driver_run_identity(daemon->driver);
    dp_driver_look(daemon->driver, &view);
    if (dp_call_begin(call, DP_CONTROL_REPLY, &packer)) {
        dp_group map = dp_map_begin(&packer);
        dp_pair_text(&map, "run", facts->name);
        dp_pair_hex(&map, "id", dp_view_of(facts->run.bytes, sizeof facts->run.bytes));
        if (view.running) {
            dp_pair_u64(&map, "round", view.node.round);
        } else {
            dp_pair_nil(&map, "round");
        }
        dp_pair_text(&map, "already", dp_call_state(daemon));
        dp_group_end(&map);
        dp_call_end(call, &packer);
    }
}

void dp_method_run_join(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    char name[DP_NAME_MAX + 1];
    dp_view token = {0};
    DP_IGNORE(!dp_pack_get_text(dp_pack_key(parameters, "token"),
                                &token)); /* An empty one is refused by its reader. */
    if (daemon->driver != NULL && is_own_run(daemon, token)) {
        reply_member(daemon, call);
        return;
    }
    if (dp_call_must_be_idle(daemon, call) && dp_call_take_name(daemon, call, parameters, name)) {
        join(daemon, call, token, name);
    }
}

void dp_run_join_unasked(dp_daemon *daemon, dp_view token)
{
    const dp_call nobody = {.daemon = daemon, .client = DP_CALL_NOBODY};
    dp_assert(daemon->driver == NULL);
    join(daemon, &nobody, token, daemon->config->name);
}
