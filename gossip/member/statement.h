/* Signed statements about members: alive, suspect, dead, left, down. Bytes, signing and checking;
 * members.c draws the conclusions.
 *
 * A statement, little-endian:
 *     0  u8   kind: 1 ALIVE, 2 SUSPECT, 3 DEAD, 4 LEFT, 5 DOWN
 *     1  u8   cause of an accusation: 1 broken connection, 2 silence; else 0
 *     2  32   subject
 *    34  u64  incarnation of the subject
 *    42  u32  revision within it
 *    46  32   author: the accuser, or the subject itself
 *    78  u8   count of addresses, 0..4; 0 unless ALIVE
 *    79  addresses, names among them (gossip/core/address.h)
 *    ..  64   signature by the author over run id and all before, domain "dpnode/member/2"
 * In STATEMENT and SYNC each is followed by u16 size and the subject's credential (ALIVE; else size
 * 0). */
#ifndef DP_GOSSIP_MEMBER_STATEMENT_H
#define DP_GOSSIP_MEMBER_STATEMENT_H

#include "gossip/core/address.h"
#include "gossip/core/crypto.h"
#include "gossip/core/id.h"
#include "gossip/core/limits.h"

enum {
    DP_STATEMENT_HEAD_BYTES = 79,
    DP_STATEMENT_BYTES_MAX =
        DP_STATEMENT_HEAD_BYTES + DP_ADDRS_MAX * DP_ADDRESS_BYTES_MAX + DP_SIGNATURE_BYTES,
    DP_ACCUSATION_BYTES = DP_STATEMENT_HEAD_BYTES + DP_SIGNATURE_BYTES
};

typedef enum dp_statement_kind {
    DP_STATEMENT_ALIVE = 1,
    DP_STATEMENT_SUSPECT,
    DP_STATEMENT_DEAD,
    DP_STATEMENT_LEFT, /* for good */
    DP_STATEMENT_DOWN  /* for a while: a clean stop */
} dp_statement_kind;

typedef enum dp_statement_cause {
    DP_CAUSE_NONE = 0,
    DP_CAUSE_RESET,
    DP_CAUSE_SILENCE
} dp_statement_cause;

typedef struct dp_statement {
    dp_statement_kind kind;
    dp_statement_cause cause;
    dp_peer subject;
    uint64_t incarnation;
    uint32_t revision;
    dp_peer author;
    uint32_t n_addrs;
    dp_addr addrs[DP_ADDRS_MAX];
} dp_statement;

/* Signs with the identity key of crypto. The size written, or 0 when there is no key. */
size_t dp_statement_sign(const dp_statement *statement, const dp_crypto *crypto,
                         const dp_run_id *run, uint8_t bytes[DP_STATEMENT_BYTES_MAX]);
/* Form only, from the front of reader. *bytes: all of it, signature included, lent. DP_BADMSG. */
DP_MUST dp_status dp_statement_read(dp_reader *reader, dp_statement *statement, dp_view *bytes);
/* The signature of the bytes that dp_statement_read lent. */
bool dp_statement_verify(const dp_statement *statement, dp_view bytes, const dp_crypto *crypto,
                         const dp_run_id *run);

#endif
