/* Records of the bulk lane in lots that any thread may seal or open: a channel hands out counters
 * and keys, and what is left is arithmetic on bytes. Pure, as the channel; the bytes are those of
 * gossip/channel/channel.h.
 *
 * Sending: dp_channel_take_sends gives numbers for some records of a message, dp_record_batch_seal
 * makes them. Receiving: dp_record_batch_frame finds whole records by their clear headers and says
 * where their plaintext goes, dp_channel_take_receives numbers them, dp_record_batch_open opens
 * them, and dp_record_batch_accept, in order again, says whether they tell a message. */
#ifndef DP_GOSSIP_CHANNEL_RECORD_BATCH_H
#define DP_GOSSIP_CHANNEL_RECORD_BATCH_H

#include "gossip/channel/channel.h"

enum {
    DP_RECORD_BATCH_RECORDS_MAX =
        4, /* 256 KiB: a chunk of the smallest size is two lots, one of 4 MiB is 17 */
    DP_RECORD_BATCH_BYTES_MAX = DP_RECORD_BATCH_RECORDS_MAX * DP_SEALED_RECORD_MAX,
    /* A message with its size in front, as it lies in memory while it comes. */
    DP_RECORD_BATCH_MESSAGE_MAX = DP_MESSAGE_BULK_MAX + 4,
};

/* Consecutive records of one direction. Holds keys: dp_record_batch_close after use. */
typedef struct dp_record_batch {
    const dp_suite *suite;
    uint64_t counter; /* of the first one, under keys[0] */
    uint32_t n_records;
    uint8_t keys[2][DP_NOISE_KEY_BYTES]; /* [1] when the counter has restarted */
} dp_record_batch;

/* The next n_records numbers of a direction, 1 to DP_RECORD_BATCH_RECORDS_MAX. DP_CLOSED as
 * dp_channel_write: then nothing is taken. */
DP_MUST dp_status dp_channel_take_sends(dp_channel *channel, uint32_t n_records,
                                        dp_record_batch *lot);
DP_MUST dp_status dp_channel_take_receives(dp_channel *channel, uint32_t n_records,
                                           dp_record_batch *lot);
void dp_record_batch_close(dp_record_batch *lot); /* Wipes the keys. */

/* Records that a message of size bytes needs. */
uint32_t dp_record_batch_message_records(size_t size);
/* Bytes on the wire of n records of it from number first on. */
size_t dp_record_batch_wire_bytes(size_t size, uint32_t first, uint32_t n);
/* Seal lot->n_records of message from number first on into out (as many as
 * dp_record_batch_wire_bytes says). */
void dp_record_batch_seal(const dp_record_batch *lot, dp_view message, uint32_t first,
                          uint8_t *out);

/* State of the framing in one direction; zeroed at the start. */
typedef struct dp_record_batch_framer {
    bool in_message;
    bool short_record; /* the last one: nothing may continue it */
    uint32_t plain;    /* bytes of the message, its size included, that were framed */
} dp_record_batch_framer;

typedef struct dp_record_batch_record {
    size_t bytes; /* on the wire; 0: more bytes are needed */
    uint32_t plain;
    uint32_t offset; /* of its plaintext in the message with its size in front */
    bool begins;
    bool closes; /* the lane; plain is 0 */
} dp_record_batch_record;

/* The first record in bytes. Its header is not authentic yet: a wrong one can only be an error a
 * little sooner. DP_BADMSG, DP_TOOBIG: close the connection. offset + plain is never above
 * DP_RECORD_BATCH_MESSAGE_MAX. */
DP_MUST dp_status dp_record_batch_frame(dp_record_batch_framer *framer, dp_view bytes,
                                        dp_record_batch_record *record);

/* Open the records of a lot, which lie one after the other at sealed as dp_record_batch_frame found
 * them; their plaintexts go to out, one after the other. False: one does not authenticate. */
DP_MUST bool dp_record_batch_open(const dp_record_batch *lot, const uint8_t *sealed, uint8_t *out);

/* The message under way, in order; zeroed at the start. */
typedef struct dp_record_batch_story {
    bool in_message;
    uint32_t size; /* of the message, once it has begun */
    uint32_t have;
} dp_record_batch_story;

/* plain more authentic bytes, that begin a message (at is where it lies, with its size) or go on
 * with one. *complete: it is whole, story->size bytes behind its size. DP_BADMSG, DP_TOOBIG. */
DP_MUST dp_status dp_record_batch_accept(dp_record_batch_story *story, bool begins,
                                         const uint8_t *at, uint32_t plain, bool *complete);

#endif
