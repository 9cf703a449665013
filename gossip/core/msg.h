/* The types of control messages and the limits that several of them share. The bytes of each
 * message are drawn in the file that writes them: record.h, commit.h, wire.h and the modules of
 * membership, spreading and mixing.
 *
 * Every message is little-endian and starts with
 *     0  u8   type, one of dp_msg_type
 *     1  u8   version, DP_MSG_VERSION
 * A receiver drops a message of another version, with short or left-over bytes, or above
 * DP_MESSAGE_MAX. */
#ifndef DP_GOSSIP_CORE_MSG_H
#define DP_GOSSIP_CORE_MSG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum { DP_MSG_VERSION = 1, DP_MSG_HEAD_BYTES = 2 };

typedef enum dp_msg_type {
    DP_MSG_HEARTBEAT = 1, /* heartbeat.h */
    DP_MSG_PING = 2,      /* members.h */
    DP_MSG_ACK = 3,
    DP_MSG_PING_REQ = 4,
    DP_MSG_STATEMENT = 5,
    DP_MSG_SYNC = 6,
    DP_MSG_SUMMARY =
        7, /* summary.h: of a member, carried by others to one that it has no link to */

    DP_MSG_READY = 10,   /* round_msg.h: a trainer's signed contribution */
    DP_MSG_HAVE = 11,    /* round_msg.h: a voter holds a blob */
    DP_MSG_PREPARE = 12, /* commit_msg.h */
    DP_MSG_PROMISE = 13,
    DP_MSG_PROPOSE = 14,
    DP_MSG_ACCEPTED = 15,
    DP_MSG_NACK = 16,
    DP_MSG_DECIDE = 17,
    DP_MSG_STATE = 18,       /* round_msg.h: a voter's signed state root */
    DP_MSG_VOTER_OK = 19,    /* round_msg.h: a candidate offers its vote key */
    DP_MSG_RECORDS_GET = 20, /* wire.h */
    DP_MSG_RECORDS = 21,
    DP_MSG_PROOF = 22,  /* commit_msg.h: two votes of one voter that contradict each other */
    DP_MSG_REMOVE = 23, /* round_msg.h: a signed leave or revocation, for the next record */
    DP_MSG_FENCE_ASK =
        24, /* round_msg.h: a member asks the voters to fence a dead partner of an exchange */

    DP_MSG_FORK = 25, /* fork.h */
    DP_MSG_STOP = 26,

    DP_MSG_PART = 27,     /* part.h: an owner has added up a part; 28 is not used again */
    DP_MSG_LIST_GET = 29, /* lists.h: lists that a record names; LIST is 35 */

    DP_MSG_INFO_GET = 30, /* wire.h */
    DP_MSG_INFO = 31,
    DP_MSG_CHUNK_GET = 32,
    DP_MSG_CHUNK = 33,
    DP_MSG_CHUNK_DROP = 34,

    DP_MSG_LIST = 35, /* lists.h */

    DP_MSG_SUBTOTAL = 36, /* part_sum.h: a part of all near to the sender is added up */
    DP_MSG_COLLECT = 37,  /* part_sum.h: ... or will be */

    DP_MSG_GUEST = 38, /* admit.h: a member has a link to a node that waits for admission */

    DP_MSG_HARM = 39, /* harm.h: a voter finds that a member's updates do harm */

    DP_MSG_MIX_OFFER = 40, /* mix.h */
    DP_MSG_MIX_ACK = 41,
    DP_MSG_MIX_COMMIT = 42,
    DP_MSG_MIX_DONE = 43,
    DP_MSG_MIX_STATUS = 44,
    DP_MSG_MIX_SIGNED = 45, /* mix_msg.h: one of the last three, carried by others */

    DP_MSG_INVITE_REVOKE =
        48, /* invite_revoke.h: the signed word that an invite admits nobody any more */

    DP_MSG_RELAY = 50, /* wire.h: a message carried for somebody else */
    DP_MSG_MANIFEST_GET = 51,
    DP_MSG_MANIFEST = 52,
    DP_MSG_ROTATE = 53,     /* rotation.h: a new join secret, and the signed word that names it; */
    DP_MSG_SECRET_GET = 54, /* ... a member asks for that of the present epoch; */
    DP_MSG_SECRET = 55,     /* ... gets it */
    DP_MSG_RENEW_GET = 56,  /* renewal.h: a member asks for a renewal of its certificate; */
    DP_MSG_RENEWAL = 57     /* ... gets one */
} dp_msg_type;

/* 0 for a message too short to have a type or of another version. */
static inline uint8_t dp_msg_type_of(dp_view message)
{
    if (message.size < DP_MSG_HEAD_BYTES || message.data[1] != DP_MSG_VERSION) {
        return 0;
    }
    return message.data[0];
}

#endif
