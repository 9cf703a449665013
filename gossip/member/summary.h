/* The summary that a node tells of itself: plain with every PING and ACK on its own links, and
 * signed, in a SUMMARY that others carry, to nodes that it has no link to. Bytes, signing and
 * checking; far.c decides when a SUMMARY is sent and which effects it has.
 *
 * A SUMMARY message, little-endian:
 *     0  u8   type    1  u8 version
 *     2  32   peer: its author
 *    34  u64  incarnation of its process
 *    42  u64  sequence within the incarnation, from 1
 *    50  u8   size of its name, at most 32 | name
 *    ..  142  summary, as in a PING
 *    ..  64   signature by the author's identity key over run id and all before, domain
 *        "dpnode/summary/1" */
#ifndef DP_GOSSIP_MEMBER_SUMMARY_H
#define DP_GOSSIP_MEMBER_SUMMARY_H

#include "base/run/manifest.h"
#include "gossip/core/crypto.h"
#include "gossip/core/id.h"
#include "gossip/core/limits.h"
#include "gossip/core/msg.h"

typedef struct dp_summary {
    uint64_t slot; /* chain head */
    dp_hash head;
    uint64_t fork;  /* first 8 bytes of the id of its fork; 0: the run as it began */
    dp_hash base;   /* of the state it trains on */
    uint64_t round; /* applied */
    dp_mode mode;
    bool has_trainer;
    uint32_t step_us;
    uint64_t saved_round; /* newest checkpoint that it serves; 0 with a zero root: none */
    dp_hash saved_root;
    uint64_t saved_bytes;
} dp_summary;

typedef struct dp_signed_summary {
    dp_peer peer;
    uint64_t incarnation;
    uint64_t sequence;
    char name[DP_NAME_MAX + 1];
    dp_summary summary;
} dp_signed_summary;

enum {
    DP_SUMMARY_BYTES = 8 + 32 + 8 + 32 + 8 + 1 + 1 + 4 + 8 + 32 + 8,
    DP_SUMMARY_MESSAGE_MAX =
        DP_MSG_HEAD_BYTES + 32 + 8 + 8 + 1 + DP_NAME_MAX + DP_SUMMARY_BYTES + DP_SIGNATURE_BYTES
};

void dp_summary_write(dp_writer *writer, const dp_summary *summary);
/* DP_BADMSG for values that cannot be. */
DP_MUST dp_status dp_summary_read(dp_reader *reader, dp_summary *summary);

/* The whole message. Its size, or 0 when there is no identity key. */
size_t dp_summary_sign(const dp_signed_summary *summary, const dp_crypto *crypto,
                       const dp_run_id *run, uint8_t message[DP_SUMMARY_MESSAGE_MAX]);
/* Form only; total. DP_BADMSG. */
DP_MUST dp_status dp_summary_open(dp_view message, dp_signed_summary *summary);
/* The signature of a message that dp_summary_open has read as by this peer. */
bool dp_summary_verify(dp_view message, const dp_peer *peer, const dp_crypto *crypto,
                       const dp_run_id *run);

#endif
