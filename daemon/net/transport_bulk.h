/* The bulk lane of one connection, after its handshake: records are sealed and opened by the crypto
 * pool's threads, in record batches; the loop thread reads, frames, writes and keeps the order.
 * Shared by transport_conn.c, bulk_send.c and bulk_receive.c only.
 *
 *   sending     message -> record batches, or several messages in one piece -> up to 4 pieces,
 *               sealed in any order -> uv_write in their order
 *   receiving   uv_read into a slab -> framed into record batches -> opened in any order, directly
 *               into the message -> delivered in their order
 *
 * The bytes under way have a bound on either side; at the bound the queue of messages grows (and
 * refuses more), or the socket is not read, and TCP slows the sender. */
#ifndef DP_DAEMON_NET_TRANSPORT_BULK_H
#define DP_DAEMON_NET_TRANSPORT_BULK_H

#include "daemon/net/crypto_pool.h"
#include "daemon/net/transport_conn.h"
#include "gossip/channel/record_batch.h"

enum {
    /* being sealed or written: one sealed, one being sent, and two because both take varying
     * time */
    DP_BULK_PIECES = 4,
    DP_BULK_SLABS = 4,           /* of DP_RECORD_BATCH_BYTES_MAX: being read into or opened from */
    DP_BULK_LOTS = 16,           /* being opened */
    DP_BULK_INCOMING = 3,        /* messages that they belong to */
    DP_BULK_MESSAGES_MAX = 4096, /* waiting to be sealed */
    /* A record batch that takes less than about 15 us is sealed or opened at once: passing it to
     * another thread and back costs as much. */
    DP_BULK_INLINE_BYTES = 16 * 1024,
    /* then the loop continues, so that other sockets are read too */
    DP_BULK_AT_ONCE_BYTES = 1 << 20
};

/* A message to be sent. */
typedef struct dp_bulk_message {
    dp_list item;
    dp_buf bytes;
    uint32_t n_records;
    uint32_t next;      /* record that no piece has yet */
    uint32_t n_sealing; /* pieces that read from it */
} dp_bulk_message;

typedef struct dp_bulk_piece {
    dp_crypto_pool_job job;
    dp_bulk *bulk;
    dp_bulk_message *message; /* NULL once sealed */
    dp_record_batch lot;
    uint32_t first;
    size_t bytes;
    size_t handed; /* passed to the system; less than bytes under a limit (throttle.h) */
    bool sealed;
    uint8_t *room;
    size_t room_bytes;
    uv_write_t write;
} dp_bulk_piece;

typedef struct dp_bulk_slab {
    uint8_t *bytes; /* DP_RECORD_BATCH_BYTES_MAX of them, or NULL */
    uint32_t filled;
    uint32_t n_lots; /* messages in it */
} dp_bulk_slab;

/* An incoming message of several records, which begins with its size. */
typedef struct dp_bulk_incoming {
    uint8_t *bytes; /* DP_RECORD_BATCH_MESSAGE_MAX, kept until the lane idles; or NULL */
    uint32_t refs;  /* lots, and the framer while it may go on */
    bool guest;     /* of the budget in peer_memory.h */
} dp_bulk_incoming;

typedef struct dp_bulk_lot {
    dp_crypto_pool_job job;
    dp_bulk *bulk;
    dp_record_batch lot;
    dp_bulk_slab *slab;
    uint32_t at;                /* in the slab */
    dp_bulk_incoming *incoming; /* NULL: a message of one record, opened in place */
    uint32_t offset;            /* in the message */
    uint32_t plain;
    bool begins;
    bool closes;
    bool opened; /* authentic */
    bool done;
} dp_bulk_lot;

struct dp_bulk {
    dp_conn *conn;   /* NULL: closed; only jobs still use this */
    uint32_t n_jobs; /* at the crypto pool */
    /* sending */
    dp_list messages;
    uint32_t n_messages;
    uint64_t waiting; /* bytes on the wire of accepted records that are not yet written */
    uint64_t at_once; /* bytes written without libuv's queue since its last write callback */
    dp_bulk_piece pieces[DP_BULK_PIECES];
    uint32_t first_piece; /* of the ring; n_writing of the n_pieces are with libuv */
    uint32_t n_pieces;
    uint32_t n_writing;
    /* receiving */
    bool reading;
    bool turning;
    dp_bulk_slab slabs[DP_BULK_SLABS];
    dp_bulk_slab *slab; /* being read into; NULL: none is free */
    uint32_t parsed;    /* bytes of it that belong to lots */
    dp_record_batch_framer framer;
    dp_record_batch_story story;
    dp_bulk_incoming incoming[DP_BULK_INCOMING];
    dp_bulk_incoming *current; /* the slab of the framer */
    dp_bulk_lot lots[DP_BULK_LOTS];
    uint32_t first_lot; /* of the ring */
    uint32_t n_lots;
};

/* NULL: no memory. The connection's handshake is done. */
dp_bulk *dp_bulk_open(dp_conn *conn);
/* The connection's handle is closed: frees the memory, after the last job if any is under way. */
void dp_bulk_close(dp_bulk *bulk);
/* Its connection is closed next: returns its part of the budget (peer_memory.h). */
void dp_bulk_give_back(const dp_bulk *bulk);
/* Frees empty buffers. */
void dp_bulk_trim(dp_bulk *bulk);
/* A job has ended. True: it was the last one of a closed connection, and bulk is freed. */
bool dp_bulk_job_done(dp_bulk *bulk);

/* bulk_send.c. Takes the bytes, which leaves message empty. DP_TOOBIG; DP_AGAIN: the queue is full;
 * DP_NOMEM; then message is unchanged. */
DP_MUST dp_status dp_bulk_send(dp_bulk *bulk, dp_buf *message);
/* Seals and writes as much as is possible. Calls no hook. */
void dp_bulk_pump(dp_bulk *bulk);
/* The connection's turn under the owner's limit has come. May call hooks. */
void dp_bulk_write_on(dp_bulk *bulk);
void dp_bulk_drop_messages(dp_bulk *bulk);

/* bulk_receive.c. The place for the next bytes of the socket. */
uv_buf_t dp_bulk_room(dp_bulk *bulk);
/* size bytes have arrived there. May close the connection, and calls hooks. */
void dp_bulk_read(dp_bulk *bulk, size_t size);
/* The connection's turn under the owner's limit has come. May close the connection, and calls
 * hooks. */
void dp_bulk_read_on(dp_bulk *bulk);
/* Bytes that arrived together with the handshake. */
void dp_bulk_feed(dp_bulk *bulk, dp_view bytes);

#endif
