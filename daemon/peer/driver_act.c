/* Carries out the actions of the protocol core: one row of the switch per action. It decides
 * nothing. */
#include <string.h>

#include "daemon/peer/driver_inside.h"

enum { GUESTS_TOLD_MS = 60 * 1000 };

/* The steps of a round that the node has notes of. */
static void note_phase(dp_driver *driver, const dp_note *what)
{
    dp_event_log *event_log = driver->daemon->event_log;
    if (what->code == DP_NOTE_ROUND_OPENED) {
        dp_event_log_phase(event_log, what->round, DP_PHASE_OPENED);
    } else if (what->code == DP_NOTE_PUBLISHED) {
        dp_event_log_phase(event_log, what->round, DP_PHASE_PUBLISHED);
        driver->published_round = what->round; /* Ready when its row is durable. */
    } else if (what->code == DP_NOTE_DECIDED) {
        dp_node_view view;
        dp_node_look(driver->node, &view);
        dp_event_log_phase(event_log, what->round, DP_PHASE_DECIDED);
        if (view.held_known) {
            dp_event_log_held(event_log, what->round, view.held_us);
        }
    } else if (what->code == DP_NOTE_APPLIED) {
        dp_event_log_phase(event_log, what->round, DP_PHASE_APPLIED);
    }
}

/* One token makes any number of guests, whose links could fill the history within minutes: a change
 * of a guest's state is an event of its own once a minute, and the others are counted. */
static bool is_counted(dp_driver *driver, const dp_note *what)
{
    const uint64_t now = uv_now(driver->daemon->loop);
    uint8_t ignored[32];
    if (what->code != DP_NOTE_MEMBER || dp_node_admitted(driver->node, &what->peer, ignored)) {
        return false;
    }
    if (driver->guests.told && now < driver->guests.told_ms + GUESTS_TOLD_MS) {
        driver->guests.changes++;
        return true;
    }
    driver->guests.told = true;
    driver->guests.told_ms = now;
    return false;
}

void dp_driver_guests_tick(dp_driver *driver)
{
    const uint64_t now = uv_now(driver->daemon->loop);
    if (driver->guests.changes == 0 || now < driver->guests.told_ms + GUESTS_TOLD_MS) {
        return;
    }
    dp_event_log_add(driver->daemon->event_log, DP_LOG_INFO, "guests.changed", 0, NULL,
                     "peers that are not members linked or left %u times since the last line "
                     "about one",
                     driver->guests.changes);
    driver->guests.changes = 0;
    driver->guests.told_ms = now;
}

static void note(dp_driver *driver, const dp_note *what)
{
    dp_event_log *event_log = driver->daemon->event_log;
    if (is_counted(driver, what)) {
        return;
    }
    dp_event_log_note(event_log, what, dp_driver_peer_name(driver, &what->peer));
    note_phase(driver, what);
    if (what->code == DP_NOTE_EXCHANGE) {
        dp_node_view view;
        dp_node_look(driver->node, &view);
        dp_event_log_round round = {.kind = DP_EVENT_LOG_GOSSIP,
                                    .round = view.round,
                                    .slot = view.slot,
                                    .time_ms = dp_unix_ms(),
                                    .listed = 2,
                                    .active = view.alive,
                                    .partner = what->peer,
                                    .weight_own = what->a,
                                    .weight_other = what->b,
                                    .moved = driver->moved,
                                    .live = true};
        strncpy(round.cause, what->cause, sizeof round.cause - 1);
        dp_event_log_round_add(event_log, &round);
    } else if (what->code == DP_NOTE_STRAGGLER) {
        dp_event_log_straggler(event_log, what);
    } else if (what->code == DP_NOTE_COUNTED) {
        driver->counted++;
    } else if (what->code == DP_NOTE_ADMITTED) {
        dp_driver_remember_soon(driver); /* Further progress counts from here. */
    }
}

static void send_message(dp_driver *driver, const dp_action *action)
{
    if (action->u.send.to == DP_TO_ALL) {
        dp_transport_send_all(driver->transport, action->u.send.bytes);
        return;
    }
    /* Dropped without a link; the protocol repeats the messages that matter. */
    DP_IGNORE(dp_transport_send(driver->transport, &action->u.send.peer, DP_LANE_CONTROL,
                                action->u.send.bytes));
}

static void halted(dp_driver *driver, const dp_peer *culprit, uint64_t round)
{
    dp_event_log *event_log = driver->daemon->event_log;
    if (dp_peer_is_zero(culprit)) {
        dp_event_log_add(
            event_log, DP_LOG_ERROR, "run.halted", round, NULL,
            "the root key has restarted the chain twice at one place; no round is decided "
            "until one of the two is chosen: dpnode run merge");
        return;
    }
    dp_event_log_add(
        event_log, DP_LOG_ERROR, "run.halted", round, culprit,
        "%s voted twice in one ballot; no round is decided until the root key names new "
        "voters: dpnode run fork",
        dp_driver_peer_name(driver, culprit));
}

void dp_driver_act(dp_driver *driver, const dp_action *action)
{
    switch (action->type) {
    case DP_DO_SEND:
        send_message(driver, action);
        break;
    case DP_DO_DIAL:
        dp_driver_dial(driver, &action->u.dial.peer, action->u.dial.addrs, action->u.dial.n_addrs);
        break;
    case DP_DO_HANGUP:
        dp_transport_hangup(driver->transport, &action->u.peer);
        break;
    case DP_DO_STORE:
        dp_driver_store(driver, action);
        break;
    case DP_DO_OBJECT_BEGIN:
        dp_object_transfer_begin(driver->object_transfer, &action->u.object.root,
                                 action->u.object.size, action->u.object.leaves,
                                 action->u.object.use, 0);
        break;
    case DP_DO_OBJECT_DROP:
        dp_object_transfer_cancel(driver->object_transfer, &action->u.keep.root);
        dp_driver_keep(driver, action);
        break;
    case DP_DO_OBJECT_KEEP:
        dp_driver_keep(driver, action);
        break;
    case DP_DO_GET_INFO:
        dp_object_transfer_get_info(driver->object_transfer, &action->u.get.peer,
                                    &action->u.get.root, action->u.get.ahead);
        break;
    case DP_DO_GET_CHUNK:
        dp_object_transfer_get_chunk(driver->object_transfer, &action->u.get.peer,
                                     &action->u.get.root, action->u.get.index);
        break;
    case DP_DO_SERVE_INFO:
        dp_object_transfer_serve_info(driver->object_transfer, &action->u.get.peer,
                                      &action->u.get.root);
        break;
    case DP_DO_SERVE_CHUNK:
        dp_object_transfer_serve_chunk(driver->object_transfer, &action->u.get.peer,
                                       &action->u.get.root, action->u.get.index);
        break;
    case DP_DO_SERVE_RECORDS:
        dp_object_transfer_serve_records(driver->object_transfer, &action->u.serve.peer,
                                         action->u.serve.from, action->u.serve.count);
        break;
    case DP_DO_SERVE_MANIFEST:
        dp_object_transfer_serve_manifest(driver->object_transfer, &action->u.peer);
        break;
    case DP_DO_TRAINER_OPEN:
        dp_driver_trainer_open(driver);
        break;
    case DP_DO_TRAINER_INIT:
    case DP_DO_TRAINER_LOAD:
    case DP_DO_TRAINER_RESTORE:
    case DP_DO_TRAIN:
    case DP_DO_TRAIN_STOP:
    case DP_DO_PUBLISH:
    case DP_DO_CHECK:
    case DP_DO_FREEZE:
    case DP_DO_MIX:
    case DP_DO_REDUCE:
    case DP_DO_JUDGE:
        dp_driver_command_trainer(driver, action);
        break;
    case DP_DO_APPLY: /* All of its updates are here, now if not before. */
        dp_event_log_phase(driver->daemon->event_log, action->u.apply.round, DP_PHASE_HELD);
        dp_driver_command_trainer(driver, action);
        break;
    case DP_DO_SAVE:
        dp_driver_save(driver, action);
        break;
    case DP_DO_NOTE:
        note(driver, &action->u.note);
        break;
    case DP_DO_RENEWED:
        dp_driver_renewed(driver, &action->u.renewal);
        break;
    case DP_DO_SECRETS:
        dp_driver_secrets(driver, &action->u.secrets);
        break;
    case DP_DO_REOPEN:
        dp_daemon_again(driver->daemon, "the chain restarts");
        break;
    case DP_DO_HALT:
        dp_event_log_note(driver->daemon->event_log, &action->u.note,
                          dp_driver_peer_name(driver, &action->u.note.peer));
        halted(driver, &action->u.note.peer, action->u.note.round);
        break;
    }
}
