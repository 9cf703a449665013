/* The control socket: accepts the CLI and dispatches its requests. The methods are in the
 * control_*.c files, one table row each. Loop thread only. */
#ifndef DP_DAEMON_CONTROL_CONTROL_H
#define DP_DAEMON_CONTROL_CONTROL_H

#include "daemon/control/control_msg.h"
#include "daemon/control/reply.h"
#include "daemon/host/daemon.h"

enum {
    DP_CALL_NOBODY = 0,
    DP_CONTROL_CLIENTS_MAX = 64,
    DP_CONTROL_LOOKERS_MAX = 16, /* of these, of users who may not give orders */
    DP_CONTROL_OUT_MAX = 8 * 1024 * 1024
};

/* Binds the socket: mode 0600, or 0660 if its folder belongs to this user and is open to the
 * socket's group; an absent folder is made with mode 0700. The daemon's user and root may give
 * orders, others may query (SO_PEERCRED). A stale socket file is replaced. DP_BUSY: another daemon
 * answers there. */
DP_MUST dp_status dp_control_open(dp_control **control, dp_daemon *daemon, const char *path,
                                  dp_why *why);
void dp_control_close(dp_control *control);
/* Called by the event log, for clients that follow it. */
void dp_control_on_entry(const dp_control *control);
void dp_control_on_round(const dp_control *control);

/* One request under way. A value: it may outlive its client; then replies are dropped. */
typedef struct dp_call {
    const dp_daemon *daemon; /* not its control: that may be closed before the answer comes */
    uint64_t client;         /* DP_CALL_NOBODY: of first_start.h, which reports its failure */
    uint64_t id;
} dp_call;

/* A method of the RPC server. Exactly one reply or error must follow, now or later; notices may
 * come before it. */
typedef void dp_method(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters);

/* Begins a reply or notice; pack one value, then end it. False: pack nothing; the client has gone,
 * or its queue has no room for a notice. If it has no room for a reply, the client was cut. */
bool dp_call_begin(const dp_call *call, dp_control_kind kind, dp_packer *packer);
void dp_call_end(const dp_call *call, dp_packer *packer);
void dp_call_fail(const dp_call *call, int exit, const char *code, const char *fix,
                  const char *what, const char *why);
/* Bytes that wait until the client reads them. */
size_t dp_call_waiting(const dp_call *call);
bool dp_call_alive(const dp_call *call);
/* True if the user of this client may give orders; false after an error reply. */
bool dp_call_may_order(const dp_call *call);
/* The name of the user of the client's process, or its number; "" if the system does not report
 * it. */
void dp_call_user(const dp_call *call, char *name, size_t size);

/* control_run.c */
/* False after an error reply: the node is in a run. */
bool dp_call_must_be_idle(const dp_daemon *daemon, const dp_call *call);
/* A notice: this phase begins, or has ended with this text. */
void dp_call_progress(const dp_call *call, const char *phase, const char *text);
/* Copies the parameter "name" to the daemon's configuration; false after an error reply. */
bool dp_call_take_name(const dp_daemon *daemon, const dp_call *call,
                       const dp_pack_value *parameters, char name[DP_NAME_MAX + 1]);
/* control_query.c, control_lists.c */
dp_method dp_method_hello, dp_method_status, dp_method_peers, dp_method_rounds, dp_method_events;
/* control_why.c */
dp_method dp_method_why;
/* control_data.c */
dp_method dp_method_data;
/* The number of tokenizer and shards of the run, and how many of them are here whole; 0 while the
 * manifest is unknown. */
uint32_t dp_data_objects(const dp_driver *driver, uint32_t *here);
/* control_run.c */
dp_method dp_method_run_create, dp_method_run_join;
/* Joins like the method, without a request, and tells first_start.h the outcome. The daemon must be
 * idle. */
void dp_run_join_unasked(dp_daemon *daemon, dp_view token);
/* control_leave.c */
dp_method dp_method_run_leave, dp_method_down;
/* control_pause.c */
dp_method dp_method_pause, dp_method_resume;
/* Packs the key "paused" of status, if there is such an order. */
void dp_pack_pause(dp_group *map, const dp_daemon *daemon);
/* control_drain.c */
dp_method dp_method_drain;
/* control_limits.c */
dp_method dp_method_limits;
/* control_config.c */
dp_method dp_method_config;
/* Everything that the owner's limits act on looks at daemon->config again. */
void dp_daemon_apply_limits(dp_daemon *daemon);
/* True while the store is larger than store-max; then text is a sentence without full stop. */
bool dp_daemon_store_note(const dp_daemon *daemon, char *text, size_t size);
/* Reads the configuration again, by SIGHUP: all of it or nothing. Settings that are live change at
 * once; the log names those that need a restart. */
void dp_daemon_reload(dp_daemon *daemon);
/* control_audit.c */
dp_method dp_method_audit;
/* control_order.c */
dp_method dp_method_revoke, dp_method_run_fork, dp_method_run_merge;
/* control_invite.c */
dp_method dp_method_invite;
/* A new token names these: this node's own addresses (dp_driver_addresses), then one of each other
 * voter that is linked, so that the token holds while this node is away. Returns their number. */
uint8_t dp_invite_addresses(const dp_driver *driver, dp_address addresses[DP_TOKEN_ADDRESSES_MAX]);
/* control_token.c */
dp_method dp_method_token_list, dp_method_token_revoke;
/* control_rotate.c */
dp_method dp_method_token_rotate;
/* The entry of the event log for a finished export (daemon/model/export.h). */
#define DP_EXPORT_DONE "model.exported"
/* daemon/model/control_model.c */
dp_method dp_method_ckpt_list, dp_method_ckpt_verify, dp_method_ckpt_export, dp_method_sample,
    dp_method_eval;

/* Shared by methods: the driver of the run, or NULL after an error reply that there is none. */
dp_driver *dp_call_driver(dp_daemon *daemon, const dp_call *call);
/* The activity of the node, as in hello and status. */
const char *dp_call_state(const dp_daemon *daemon);
/* The member, or former member, that a request names in "peer": by its id (all of it in
 * hexadecimal, or its twelve characters), or by its name if no other member has it (each node
 * chooses its own). False after an error reply. */
bool dp_call_find_peer(const dp_daemon *daemon, const dp_call *call,
                       const dp_pack_value *parameters, dp_peer *peer);
/* Packs a round or event as documented in control_msg.h. */
void dp_pack_round(dp_packer *packer, const dp_daemon *daemon, const dp_event_log_round *round);
void dp_pack_entry(dp_packer *packer, const dp_event_log_entry *entry);

#endif
