/* Requests of members for the next record, as bytes.
 *
 *   REMOVE     head | 32 peer | u8 reason | u64 incarnation | 32 by, if revoked | 64 signature
 *   FENCE_ASK  head | 32 peer | u64 incarnation | 32 asker | 16 exchange | 64 signature of peer:
 *              that life's word for that exchange with asker (dp_life_sign) */
#ifndef DP_GOSSIP_REQUESTS_REQUEST_MSG_H
#define DP_GOSSIP_REQUESTS_REQUEST_MSG_H

#include "gossip/record/record.h"

/* Each writes head and body. */
void dp_remove_msg_write(dp_writer *writer, const dp_remove *remove);
void dp_fence_msg_write(dp_writer *writer, const dp_fence_ask *ask);
/* Total; signatures are not looked at. */
DP_MUST dp_status dp_remove_msg_read(dp_view message, dp_remove *remove);
DP_MUST dp_status dp_fence_msg_read(dp_view message, dp_fence_ask *ask);

#endif
