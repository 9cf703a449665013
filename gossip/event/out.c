#include "gossip/event/out.h"

#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutation.h"
#include "gossip/core/msg.h"

enum { ACTION_BYTES = 384 };
_Static_assert(offsetof(dp_action, u) + sizeof((dp_action *)0)->u.store <= ACTION_BYTES &&
                   offsetof(dp_action, u) + sizeof((dp_action *)0)->u.dial <= ACTION_BYTES &&
                   offsetof(dp_action, u) + sizeof((dp_action *)0)->u.restore <= ACTION_BYTES &&
                   offsetof(dp_action, u) + sizeof((dp_action *)0)->u.mix <= ACTION_BYTES &&
                   offsetof(dp_action, u) + sizeof((dp_action *)0)->u.train <= ACTION_BYTES &&
                   offsetof(dp_action, u) + sizeof((dp_action *)0)->u.save <= ACTION_BYTES &&
                   offsetof(dp_action, u) + sizeof((dp_action *)0)->u.object <= ACTION_BYTES &&
                   offsetof(dp_action, u) + sizeof((dp_action *)0)->u.note <= ACTION_BYTES &&
                   offsetof(dp_action, u) + sizeof((dp_action *)0)->u.send <= ACTION_BYTES &&
                   offsetof(dp_action, u) + sizeof((dp_action *)0)->u.judge <= ACTION_BYTES &&
                   offsetof(dp_action, u) + sizeof((dp_action *)0)->u.load <= ACTION_BYTES &&
                   offsetof(dp_action, u) + sizeof((dp_action *)0)->u.apply <= ACTION_BYTES,
               "every action but REDUCE is small");

dp_status dp_out_open(dp_out *out)
{
    *out = (dp_out){.bytes = dp_reserve(DP_OUT_BYTES, 1),
                    .bytes_max = DP_OUT_BYTES,
                    .sends_max = DP_OUT_SENDS_MAX};
    return out->bytes != NULL ? DP_OK : DP_NOMEM;
}

void dp_out_close(dp_out *out)
{
    dp_free(out->bytes);
    *out = (dp_out){0};
}

void dp_out_begin(dp_out *out, dp_actions *actions)
{
    actions->count = 0;
    out->actions = actions;
    out->size = 0;
}

dp_action *dp_out_add(dp_out *out, dp_action_type type)
{
    dp_actions *actions = out->actions;

    dp_assert(actions->count < DP_ACTIONS_MAX);
    dp_action *action = &actions->items[actions->count++];
    /* A REDUCE is ten times as large as any other; its items are counted. */
    memset(action, 0, ACTION_BYTES);
    action->type = type;
    return action;
}

bool dp_out_room(const dp_out *out, uint32_t count)
{
    return out->actions->count + count <= out->sends_max;
}

dp_view dp_out_keep(dp_out *out, dp_view bytes)
{
    if (bytes.size > out->bytes_max - out->size) {
        out->dropped++;
        return (dp_view){0};
    }
    uint8_t *at = out->bytes + out->size;
    if (bytes.size > 0) {
        memcpy(at, bytes.data, bytes.size);
    }
    out->size += bytes.size;
    return dp_view_of(at, bytes.size);
}

dp_writer dp_out_writer(dp_out *out, uint8_t type, size_t size)
{
    const size_t left = out->bytes_max - out->size;
    dp_writer writer = dp_writer_of(out->bytes + out->size, size < left ? size : left);

    dp_assert(size > 0);
    dp_write_u8(&writer, type);
    dp_write_u8(&writer, DP_MSG_VERSION);
    return writer;
}

bool dp_out_message(dp_out *out, const dp_writer *writer, dp_view *message)
{
    dp_assert(writer->data == out->bytes + out->size);
    if (dp_writer_finish(writer, message) != DP_OK || message->size > DP_MESSAGE_MAX) {
        out->dropped++;
        return false;
    }
    out->size += message->size;
    return true;
}

void dp_out_send(dp_out *out, const dp_peer *peer, dp_view message)
{
    if (message.size == 0 || !dp_out_room(out, 1)) {
        out->dropped++;
        return;
    }
    dp_action *action = dp_out_add(out, DP_DO_SEND);
    action->u.send.to = DP_TO_PEER;
    action->u.send.peer = *peer;
    action->u.send.bytes = message;
}

void dp_out_send_all(dp_out *out, dp_view message)
{
    if (message.size == 0 || !dp_out_room(out, 1)) {
        out->dropped++;
        return;
    }
    dp_action *action = dp_out_add(out, DP_DO_SEND);
    action->u.send.to = DP_TO_ALL;
    action->u.send.bytes = message;
}

dp_action *dp_out_store(dp_out *out, dp_store_kind kind, uint32_t *op)
{
    dp_action *action = dp_out_add(out, DP_DO_STORE);

    dp_assert(op != NULL);
    *op = ++out->op;
    action->u.store.op = *op;
    action->u.store.kind = kind;
    return action;
}

/* Is this a note about lost work or a lost state of this node? Nothing else reports such a loss. A
 * step writes few of them. */
static bool tells_of_loss(dp_note_code code)
{
    return code == DP_NOTE_DISCARDED || code == DP_NOTE_DIVERGED || code == DP_NOTE_ADOPTED ||
           code == DP_NOTE_VOTE_KEY_LOST;
}

void dp_out_note(dp_out *out, dp_note note)
{
    if (!dp_out_room(out, 1) && (!tells_of_loss(note.code) || dp_broken(140))) {
        out->dropped++;
        return;
    }
    if (note.cause == NULL) {
        note.cause = "";
    }
    dp_out_add(out, DP_DO_NOTE)->u.note = note;
}
