/* Private header of the channel: channel.c splits bytes into units; channel_handshake.c,
 * channel_first.c and channel_record.c interpret them; record_batch.c has records of the bulk lane
 * sealed and opened elsewhere. No other source includes this header. */
#ifndef DP_GOSSIP_CHANNEL_CHANNEL_INTERNAL_H
#define DP_GOSSIP_CHANNEL_CHANNEL_INTERNAL_H

#include "gossip/channel/channel.h"

enum { DP_HANDSHAKE_HEADER_BYTES = 2, DP_MESSAGE_SIZE_BYTES = 4 };

enum { DP_RECORD_BEGIN = 0, DP_RECORD_CONTINUE = 1, DP_RECORD_CLOSE = 2 };

/* The one way to BROKEN: wipes the keys and returns status. The phrase is static and for a log. */
dp_status dp_channel_fail(dp_channel *channel, dp_status status, const char *fault);

/* Wipes the secrets of the config: the handshake has its own copies. */
void dp_channel_forget_config(dp_channel *channel);

/* An initiator's preamble and first message. */
DP_MUST dp_status dp_channel_send_first(dp_channel *channel, dp_buf *out);
/* unit: the 8 bytes of a preamble. */
DP_MUST dp_status dp_channel_read_preamble(dp_channel *channel, dp_view unit);
/* unit: size and message. The answer, if one is due, goes to out. */
DP_MUST dp_status dp_channel_read_handshake(dp_channel *channel, dp_view unit, dp_buf *out,
                                            dp_channel_event *event);
/* A responder's first message holds, and says told_ms: is it new and of this time? DP_EXISTS,
 * DP_TIMEOUT (then the own time goes to out), DP_NOMEM; the channel is BROKEN then. */
DP_MUST dp_status dp_channel_judge_first(dp_channel *channel, uint64_t told_ms, dp_buf *out);
/* message: DP_CHANNEL_TIME_BYTES in place of the second one. DP_TIMEOUT: peer_unix_ms is the
 * responder's time. DP_BADSIG. */
DP_MUST dp_status dp_channel_read_time(dp_channel *channel, dp_view message);
/* unit: header and sealed plaintext, of a permitted size. */
DP_MUST dp_status dp_channel_read_record(dp_channel *channel, dp_view unit,
                                         dp_channel_event *event);

#endif
