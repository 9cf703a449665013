/* Where the parts of a node put their actions during one step: the list of the caller and an arena
 * for the bytes that the actions point to. Not a queue: everything in it is gone with the next
 * step. */
#ifndef DP_GOSSIP_EVENT_OUT_H
#define DP_GOSSIP_EVENT_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "gossip/event/action.h"

enum {
    DP_OUT_BYTES = 512 * 1024, /* of messages in one step */
    DP_OUT_ACTIONS_MIN = 96,   /* kept free for actions that may not be dropped */
    DP_OUT_SENDS_MAX = DP_ACTIONS_MAX - DP_OUT_ACTIONS_MIN
};

typedef struct dp_out {
    dp_actions *actions; /* of the step under way */
    uint8_t *bytes;      /* DP_OUT_BYTES */
    size_t size;
    size_t bytes_max;   /* DP_OUT_BYTES, and */
    uint32_t sends_max; /* DP_OUT_SENDS_MAX; the simulator sets less for a step */
    uint32_t op;        /* last operation number given to a DP_DO_STORE */
    uint64_t dropped;   /* messages that did not fit, ever */
} dp_out;

DP_MUST dp_status dp_out_open(dp_out *out);
void dp_out_close(dp_out *out);
/* A new step: actions is emptied. */
void dp_out_begin(dp_out *out, dp_actions *actions);

/* A zeroed action at the end of the list, never NULL: the limit is kept by dropping messages, not
 * these. */
dp_action *dp_out_add(dp_out *out, dp_action_type type);
/* True while a part may still add this many optional actions (messages, requests for chunks). */
bool dp_out_room(const dp_out *out, uint32_t count);

/* A copy of bytes that lives until the next step. Empty if the arena is full. */
dp_view dp_out_keep(dp_out *out, dp_view bytes);
/* A writer into the arena with room for size bytes, started with type and version. Finish with
 * dp_out_message. */
dp_writer dp_out_writer(dp_out *out, uint8_t type, size_t size);
/* The bytes written since dp_out_writer; false, with nothing to send, if they did not fit. */
bool dp_out_message(dp_out *out, const dp_writer *writer, dp_view *message);
/* message must come from dp_out_message or dp_out_keep. */
void dp_out_send(dp_out *out, const dp_peer *peer, dp_view message);
void dp_out_send_all(dp_out *out, dp_view message);
/* A DP_DO_STORE with a new operation number, which is returned. */
dp_action *dp_out_store(dp_out *out, dp_store_kind kind, uint32_t *op);
/* Dropped without room like a message, but one that tells of lost work has its place. */
void dp_out_note(dp_out *out, dp_note note);

#endif
