/* Receiving on the bulk lane. */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "daemon/net/transport_bulk.h"
#include "gossip/channel/channel_internal.h"

static void release_incoming(dp_bulk_incoming *incoming)
{
    if (incoming == NULL) {
        return;
    }
    incoming->refs--; /* At 0 it is kept until the lane idles, since its pages are in the cache. */
}

/* Memory for a message of several records. *full: too many are under way, which is not an error. */
static dp_bulk_incoming *begin_incoming(dp_bulk *bulk, bool *full)
{
    dp_bulk_incoming *best = NULL;
    for (uint32_t i = 0; i < DP_BULK_INCOMING; i++) {
        dp_bulk_incoming *incoming = &bulk->incoming[i];
        if (incoming->refs == 0 && (best == NULL || incoming->bytes != NULL)) {
            best = incoming;
        }
    }
    *full = best == NULL;
    if (best == NULL) {
        return NULL;
    }
    if (best->bytes == NULL) {
        const bool guest = dp_conn_is_guest(bulk->conn);
        const bool room = dp_peer_memory_take(&bulk->conn->transport->peer_memory, guest,
                                              DP_RECORD_BATCH_MESSAGE_MAX);
        if (!room && guest) {
            return NULL; /* The connection is lost. Guests send no messages of this length. */
        }
        if (!room && bulk->n_lots > 0) {
            *full = true; /* Then one message at a time. */
            return NULL;
        }
        if (!room) {
            dp_peer_memory_take_anyway(&bulk->conn->transport->peer_memory, guest,
                                       DP_RECORD_BATCH_MESSAGE_MAX);
        }
        best->bytes = dp_alloc(1, DP_RECORD_BATCH_MESSAGE_MAX);
        best->guest = guest;
        if (best->bytes == NULL) {
            dp_peer_memory_give(&bulk->conn->transport->peer_memory, guest,
                                DP_RECORD_BATCH_MESSAGE_MAX);
            return NULL;
        }
    }
    best->refs = 1;
    return best;
}

/* The place for the plaintext of a record batch. */
static uint8_t *plain_of(const dp_bulk_lot *lot)
{
    return lot->incoming != NULL ? lot->incoming->bytes + lot->offset
                                 : lot->slab->bytes + lot->at + DP_RECORD_HEADER_BYTES;
}

static void run_open(dp_crypto_pool_job *job)
{
    dp_bulk_lot *lot = DP_LIST_ITEM(job, dp_bulk_lot, job);
    lot->opened = dp_record_batch_open(&lot->lot, lot->slab->bytes + lot->at, plain_of(lot));
    dp_record_batch_close(&lot->lot);
}

static void turn(dp_bulk *bulk);

static void done_open(dp_crypto_pool_job *job)
{
    dp_bulk_lot *lot = DP_LIST_ITEM(job, dp_bulk_lot, job);
    dp_bulk *bulk = lot->bulk;
    lot->done = true;
    if (!dp_bulk_job_done(bulk)) {
        turn(bulk);
    }
}

/* Lets the crypto pool open a record batch; a small one is opened at once if no other is under
 * way. */
static void start_lot(dp_bulk *bulk, dp_bulk_lot *lot, uint32_t bytes)
{
    const bool here = bytes <= DP_BULK_INLINE_BYTES && bulk->n_lots == 0;
    lot->job.run = run_open;
    lot->job.done = done_open;
    lot->bulk = bulk;
    lot->done = false;
    lot->slab->n_lots++;
    bulk->n_lots++;
    if (!here && dp_crypto_pool_post(bulk->conn->transport->crypto_pool, &lot->job)) {
        bulk->n_jobs++;
        return;
    }
    run_open(&lot->job);
    lot->done = true;
}

typedef enum found { FOUND_NOTHING, FOUND_LOT, FOUND_FAULT } found;

/* Puts the next records of one message into a record batch. NOTHING: it needs more bytes, or the
 * end of a batch under way. */
static found find_lot(dp_bulk *bulk)
{
    dp_bulk_slab *slab = bulk->slab;
    if (slab == NULL || bulk->n_lots == DP_BULK_LOTS) {
        return FOUND_NOTHING;
    }
    dp_bulk_lot *lot = &bulk->lots[(bulk->first_lot + bulk->n_lots) % DP_BULK_LOTS];
    uint32_t n_records = 0;
    uint32_t at = bulk->parsed;
    *lot = (dp_bulk_lot){.slab = slab, .at = at};
    while (n_records < DP_RECORD_BATCH_RECORDS_MAX && !lot->closes) {
        dp_record_batch_framer framer = bulk->framer;
        dp_record_batch_record record;
        if (dp_record_batch_frame(&framer, dp_view_of(slab->bytes + at, slab->filled - at),
                                  &record) != DP_OK) {
            return FOUND_FAULT;
        }
        if (record.bytes == 0 || (n_records > 0 && (record.begins || record.closes))) {
            break;
        }
        /* Only the last record of a message may be short, so a short first one is a whole message,
         * and is opened in place. */
        if (record.begins) {
            bool full = false;
            const bool whole = record.plain < DP_RECORD_PLAIN_MAX;
            dp_bulk_incoming *incoming = whole ? NULL : begin_incoming(bulk, &full);
            if (incoming == NULL && !whole) {
                return full ? FOUND_NOTHING : FOUND_FAULT;
            }
            release_incoming(bulk->current);
            bulk->current = incoming;
        }
        if (n_records == 0) {
            lot->begins = record.begins;
            lot->closes = record.closes;
            lot->offset = record.offset;
        }
        bulk->framer = framer;
        lot->plain += record.plain;
        at += (uint32_t)record.bytes;
        n_records++;
    }
    if (n_records == 0) {
        return FOUND_NOTHING;
    }
    if (!lot->closes && bulk->current != NULL) {
        lot->incoming = bulk->current;
        lot->incoming->refs++;
    }
    bulk->parsed = at;
    if (dp_channel_take_receives(&bulk->conn->channel, n_records, &lot->lot) != DP_OK) {
        return FOUND_FAULT;
    }
    start_lot(bulk, lot, at - lot->at);
    return FOUND_LOT;
}

/* The oldest record batch has ended. False: the connection has ended too. */
static bool tell(dp_bulk *bulk)
{
    dp_bulk_lot *lot = &bulk->lots[bulk->first_lot];
    dp_bulk_incoming *incoming = lot->incoming;
    dp_conn *conn = bulk->conn;
    bool complete = false;
    bulk->first_lot = (bulk->first_lot + 1) % DP_BULK_LOTS;
    bulk->n_lots--;
    lot->slab->n_lots--;
    if (lot->opened && lot->closes && !bulk->story.in_message) {
        dp_conn_lose(conn, DP_LINK_CLOSED);
        return false;
    }
    if (!lot->opened || lot->closes ||
        dp_record_batch_accept(&bulk->story, lot->begins, plain_of(lot), lot->plain, &complete) !=
            DP_OK ||
        (incoming == NULL && !complete)) {
        dp_conn_lose(conn, DP_LINK_RESET);
        return false;
    }
    /* No record may follow in this message. */
    if (complete && incoming != NULL && incoming == bulk->current) {
        bulk->framer = (dp_record_batch_framer){0};
        bulk->current = NULL;
        incoming->refs--; /* The record batch still holds it. */
    }
    if (complete) {
        const uint8_t *bytes = incoming != NULL ? incoming->bytes : plain_of(lot);
        dp_link_message(conn, dp_view_of(bytes + DP_MESSAGE_SIZE_BYTES, bulk->story.size));
    }
    release_incoming(incoming);
    return !conn->closing;
}

/* A slab to read into: the current one, or another, to which the incomplete record at its end is
 * moved. */
static bool have_room(dp_bulk *bulk)
{
    dp_bulk_slab *old = bulk->slab;
    if (old != NULL && old->n_lots == 0 && bulk->parsed == old->filled) {
        old->filled = 0; /* All of its bytes have been used: starts again. */
        bulk->parsed = 0;
    }
    if (old != NULL && old->filled < DP_RECORD_BATCH_BYTES_MAX) {
        return true;
    }
    if (old != NULL && old->filled - bulk->parsed >= DP_SEALED_RECORD_MAX) {
        return false; /* Whole records wait for the end of record batches. */
    }
    for (uint32_t i = 0; i < DP_BULK_SLABS; i++) {
        dp_bulk_slab *slab = &bulk->slabs[i];
        if (slab == old || slab->n_lots > 0) {
            continue;
        }
        if (slab->bytes == NULL) {
            slab->bytes = dp_alloc(1, DP_RECORD_BATCH_BYTES_MAX);
        }
        if (slab->bytes == NULL) {
            bulk->conn->doom = DP_LINK_RESET;
            return false;
        }
        slab->filled = old == NULL ? 0 : old->filled - bulk->parsed;
        if (slab->filled > 0) {
            memcpy(slab->bytes, old->bytes + bulk->parsed, slab->filled);
        }
        bulk->slab = slab;
        bulk->parsed = 0;
        return true;
    }
    return false;
}

static void set_reading(dp_bulk *bulk, bool wanted)
{
    dp_conn *conn = bulk->conn;
    if (bulk->reading == wanted || conn->closing) {
        return;
    }
    bulk->reading = wanted;
    if (!wanted) {
        uv_read_stop((uv_stream_t *)&conn->tcp);
    } else if (dp_conn_read(conn) != 0) {
        conn->doom = DP_LINK_RESET;
    }
}

/* Frames records, delivers messages and frees memory until there is no progress. */
static void turn(dp_bulk *bulk)
{
    dp_conn *conn = bulk->conn;
    if (bulk->turning || conn->closing) {
        return;
    }
    bulk->turning = true;
    bool moved = false;
    do { /* Each iteration uses received bytes, or ends a record batch. */
        const found what = find_lot(bulk);
        if (what == FOUND_FAULT) {
            dp_conn_lose(conn, DP_LINK_RESET);
            return;
        }
        moved = what == FOUND_LOT;
        if (bulk->n_lots > 0 && bulk->lots[bulk->first_lot].done && !conn->paused) {
            if (!tell(bulk)) {
                return;
            }
            moved = true;
        }
    } while (moved);
    bulk->turning = false;
    set_reading(bulk, have_room(bulk) && !conn->paused && dp_conn_may_read(conn));
}

uv_buf_t dp_bulk_room(dp_bulk *bulk)
{
    if (!have_room(bulk)) {
        return uv_buf_init(NULL, 0); /* libuv says ENOBUFS, and the connection is lost. */
    }
    const size_t most = dp_conn_read_most(bulk->conn);
    const size_t left = DP_RECORD_BATCH_BYTES_MAX - bulk->slab->filled;
    return uv_buf_init((char *)bulk->slab->bytes + bulk->slab->filled,
                       (unsigned)(left < most ? left : most));
}

void dp_bulk_read(dp_bulk *bulk, size_t size)
{
    bulk->slab->filled += (uint32_t)size;
    turn(bulk);
}

void dp_bulk_read_on(dp_bulk *bulk)
{
    turn(bulk);
}

void dp_bulk_feed(dp_bulk *bulk, dp_view bytes)
{
    const dp_conn *conn = bulk->conn;
    /* At most the read buffer of a handshake, which is less than a slab. */
    if (bytes.size == 0 || conn->closing) {
        return;
    }
    if (!have_room(bulk) || DP_RECORD_BATCH_BYTES_MAX - bulk->slab->filled < bytes.size) {
        dp_conn_lose(bulk->conn, DP_LINK_RESET);
        return;
    }
    memcpy(bulk->slab->bytes + bulk->slab->filled, bytes.data, bytes.size);
    dp_bulk_read(bulk, bytes.size);
}
