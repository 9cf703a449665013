/* Sending on the bulk lane. */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "daemon/net/transport_bulk.h"

dp_status dp_transport_buffer(dp_transport *transport, size_t size, dp_buf *buffer)
{
    uint8_t *room = NULL;
    dp_buf_init(buffer, DP_MESSAGE_BULK_MAX);
    for (uint32_t i = transport->n_spares; i > 0 && buffer->data == NULL; i--) {
        /* Does not keep a buffer that is much too large. */
        if (transport->spares[i - 1].capacity >= size &&
            transport->spares[i - 1].capacity / 4 <= size) {
            *buffer = transport->spares[i - 1];
            transport->spare_bytes -= buffer->capacity;
            transport->spares[i - 1] = transport->spares[--transport->n_spares];
        }
    }
    transport->spares_idle = false;
    const dp_status status = dp_buf_reserve(buffer, size, &room);
    if (status != DP_OK) {
        dp_buf_close(buffer);
    }
    return status;
}

void dp_transport_trim(dp_transport *transport)
{
    while (transport->spares_idle && transport->n_spares > 0) {
        dp_buf_close(&transport->spares[--transport->n_spares]);
    }
    transport->spare_bytes = transport->n_spares == 0 ? 0 : transport->spare_bytes;
    transport->spares_idle = true;
}

static void free_message(dp_bulk *bulk, dp_bulk_message *message)
{
    dp_transport *transport =
        bulk->conn != NULL && !bulk->conn->closing ? bulk->conn->transport : NULL;
    dp_list_remove(&message->item);
    bulk->n_messages--;
    if (transport != NULL && message->bytes.data != NULL &&
        transport->n_spares < DP_TRANSPORT_SPARES_MAX &&
        transport->spare_bytes + message->bytes.capacity <= DP_TRANSPORT_SPARE_BYTES_MAX) {
        transport->spare_bytes += message->bytes.capacity;
        dp_buf_clear(&message->bytes);
        message->bytes.max = DP_MESSAGE_BULK_MAX;
        transport->spares[transport->n_spares++] = message->bytes;
    } else {
        dp_buf_close(&message->bytes);
    }
    dp_free(message);
}

void dp_bulk_drop_messages(dp_bulk *bulk)
{
    while (!dp_list_empty(&bulk->messages)) {
        free_message(bulk, DP_LIST_ITEM(bulk->messages.next, dp_bulk_message, item));
    }
}

static void finish_sealing(dp_bulk_piece *piece)
{
    dp_bulk_message *message = piece->message;
    piece->sealed = true;
    piece->message = NULL;
    message->n_sealing--;
    if (message->next == message->n_records && message->n_sealing == 0) {
        free_message(piece->bulk, message);
    }
}

static void tell_if_low(const dp_bulk *bulk)
{
    if (!bulk->conn->closing && bulk->waiting < DP_TRANSPORT_BULK_LOW) {
        dp_link_drained(bulk->conn);
    }
}

static void run_seal(dp_crypto_pool_job *job)
{
    dp_bulk_piece *piece = DP_LIST_ITEM(job, dp_bulk_piece, job);
    dp_record_batch_seal(&piece->lot, dp_buf_view(&piece->message->bytes), piece->first,
                         piece->room);
    dp_record_batch_close(&piece->lot);
}

static void done_seal(dp_crypto_pool_job *job)
{
    dp_bulk_piece *piece = DP_LIST_ITEM(job, dp_bulk_piece, job);
    dp_bulk *bulk = piece->bulk;
    finish_sealing(piece);
    if (dp_bulk_job_done(bulk)) {
        return;
    }
    dp_bulk_pump(bulk);
    /* All of it was written at once, so no callback of a write follows. */
    if (bulk->n_pieces == 0) {
        tell_if_low(bulk);
    }
}

static bool make_room(dp_bulk_piece *piece)
{
    if (piece->room_bytes < piece->bytes) {
        dp_free(piece->room);
        piece->room = dp_alloc(1, piece->bytes);
        piece->room_bytes = piece->room == NULL ? 0 : piece->bytes;
    }
    return piece->room != NULL;
}

/* The first message with records for another piece; those before it are being sealed. */
static dp_bulk_message *next_message(const dp_bulk *bulk)
{
    for (dp_list *at = bulk->messages.next; at != &bulk->messages; at = at->next) {
        dp_bulk_message *message = DP_LIST_ITEM(at, dp_bulk_message, item);
        if (message->next < message->n_records) {
            return message;
        }
    }
    return NULL;
}

static bool anything_is_sealing(const dp_bulk *bulk)
{
    for (uint32_t i = 0; i < bulk->n_pieces; i++) {
        if (!bulk->pieces[(bulk->first_piece + i) % DP_BULK_PIECES].sealed) {
            return true;
        }
    }
    return false;
}

/* The caller has checked that there is one. */
static dp_bulk_piece *free_piece(dp_bulk *bulk)
{
    return &bulk->pieces[(bulk->first_piece + bulk->n_pieces) % DP_BULK_PIECES];
}

/* Puts it into the ring, and gives it to the crypto pool if there is one. False: the record numbers
 * are exhausted. */
static bool seal_piece(dp_bulk_piece *piece, uint32_t n_records)
{
    dp_bulk *bulk = piece->bulk;
    if (dp_channel_take_sends(&bulk->conn->channel, n_records, &piece->lot) != DP_OK) {
        /* Closes it later, since the caller may be iterating over links. */
        bulk->conn->doom = DP_LINK_RESET;
        return false;
    }
    const bool here = piece->bytes <= DP_BULK_INLINE_BYTES && !anything_is_sealing(bulk);
    piece->sealed = false;
    piece->handed = 0;
    piece->message->next += n_records;
    piece->message->n_sealing++;
    bulk->n_pieces++;
    if (!here && dp_crypto_pool_post(bulk->conn->transport->crypto_pool, &piece->job)) {
        bulk->n_jobs++;
        return true;
    }
    run_seal(&piece->job);
    finish_sealing(piece);
    return true;
}

/* False: there is nothing to seal, or no free piece. */
static bool start_piece(dp_bulk *bulk)
{
    dp_bulk_message *message = bulk->n_pieces < DP_BULK_PIECES ? next_message(bulk) : NULL;
    if (message == NULL) {
        return false;
    }
    dp_bulk_piece *piece = free_piece(bulk);
    const uint32_t left = message->n_records - message->next;
    const uint32_t n_records =
        left < DP_RECORD_BATCH_RECORDS_MAX ? left : DP_RECORD_BATCH_RECORDS_MAX;
    piece->bytes = dp_record_batch_wire_bytes(message->bytes.size, message->next, n_records);
    piece->first = message->next;
    if (!make_room(piece)) {
        bulk->conn->doom = DP_LINK_RESET;
        return false;
    }
    piece->message = message;
    if (!seal_piece(piece, n_records)) {
        piece->message = NULL;
        return false;
    }
    return true;
}

static void end_piece(dp_bulk *bulk)
{
    bulk->waiting -= bulk->pieces[bulk->first_piece].bytes;
    bulk->n_pieces--;
    /* When the ring is empty, starts again with the first piece, whose memory is in the cache. */
    bulk->first_piece = bulk->n_pieces == 0 ? 0 : (bulk->first_piece + 1) % DP_BULK_PIECES;
}

static void on_piece_written(uv_write_t *request, int status)
{
    dp_bulk_piece *piece = request->data;
    dp_bulk *bulk = piece->bulk;
    dp_conn *conn = bulk->conn;
    dp_assert(piece == &bulk->pieces[bulk->first_piece]);
    bulk->n_writing--;
    bulk->at_once = 0;
    if (piece->handed == piece->bytes) {
        end_piece(bulk);
    }
    if (conn->closing) {
        return;
    }
    if (status != 0) {
        dp_conn_lose(conn, status == UV_ETIMEDOUT ? DP_LINK_TIMEOUT : DP_LINK_RESET);
        return;
    }
    dp_bulk_pump(bulk);
    tell_if_low(bulk);
}

/* Writes as many of the next bytes of a piece as the socket takes now, if nothing is queued before
 * them. So the piece is free again while its memory is in the cache. */
static size_t write_at_once(dp_bulk *bulk, const dp_bulk_piece *piece, size_t size)
{
    const uv_buf_t buf = uv_buf_init((char *)piece->room + piece->handed, (unsigned)size);
    if (bulk->n_writing > 0 || bulk->at_once >= DP_BULK_AT_ONCE_BYTES) {
        return 0;
    }
    const int written = uv_try_write((uv_stream_t *)&bulk->conn->tcp, &buf, 1);
    /* uv_write will report the error too. */
    const size_t taken = written > 0 ? (size_t)written : 0;
    bulk->at_once += taken;
    return taken;
}

/* The last piece at libuv is incomplete: no other bytes may follow this part of it. */
static bool is_between(const dp_bulk *bulk)
{
    const uint32_t last =
        (bulk->first_piece + bulk->n_writing + DP_BULK_PIECES - 1) % DP_BULK_PIECES;
    return bulk->n_writing > 0 && bulk->pieces[last].handed < bulk->pieces[last].bytes;
}

/* Bytes of a sealed piece that may be sent now; 0: the connection waits for its turn. */
static size_t next_bytes(dp_conn *conn, const dp_bulk_piece *piece)
{
    const uint64_t may = dp_conn_may_send(conn);
    const size_t left = piece->bytes - piece->handed;
    return left < may ? left : (size_t)may;
}

/* Writes sealed pieces in order, after unsent bytes of the handshake. */
static void write_pieces(dp_bulk *bulk)
{
    dp_conn *conn = bulk->conn;
    while (conn->out.size == 0 && bulk->n_writing < bulk->n_pieces && !is_between(bulk)) {
        dp_bulk_piece *piece =
            &bulk->pieces[(bulk->first_piece + bulk->n_writing) % DP_BULK_PIECES];
        if (!piece->sealed) {
            return;
        }
        const size_t size = next_bytes(conn, piece);
        if (size == 0) {
            return;
        }
        const size_t written = write_at_once(bulk, piece, size);
        const uv_buf_t rest =
            uv_buf_init((char *)piece->room + piece->handed + written, (unsigned)(size - written));
        dp_conn_sent(conn, size);
        piece->handed += size;
        if (rest.len == 0) {
            if (piece->handed == piece->bytes) {
                end_piece(bulk);
            }
            continue;
        }
        piece->write.data = piece;
        if (uv_write(&piece->write, (uv_stream_t *)&conn->tcp, &rest, 1, on_piece_written) != 0) {
            conn->doom = DP_LINK_RESET;
            return;
        }
        bulk->n_writing++;
    }
}

void dp_bulk_pump(dp_bulk *bulk)
{
    dp_conn *conn = bulk->conn;
    if (conn->closing || conn->doom != 0) {
        return;
    }
    bool moved = true;
    while (moved && conn->doom == 0) { /* Each iteration takes a piece, or writes one at once. */
        const uint32_t before = bulk->n_pieces;
        moved = start_piece(bulk);
        write_pieces(bulk);
        moved = moved || bulk->n_pieces < before;
    }
}

void dp_bulk_write_on(dp_bulk *bulk)
{
    dp_bulk_pump(bulk);
    tell_if_low(bulk);
}

dp_status dp_bulk_send(dp_bulk *bulk, dp_buf *bytes)
{
    const uint32_t n_records = dp_record_batch_message_records(bytes->size);
    if (bytes->size > DP_MESSAGE_BULK_MAX) {
        return DP_TOOBIG;
    }
    if (bulk->waiting + bytes->size > DP_TRANSPORT_BULK_QUEUE ||
        bulk->n_messages >= DP_BULK_MESSAGES_MAX) {
        return DP_AGAIN;
    }
    dp_bulk_message *message = dp_alloc(1, sizeof *message);
    if (message == NULL) {
        return DP_NOMEM;
    }
    message->bytes = *bytes;
    message->n_records = n_records;
    dp_buf_init(bytes, bytes->max);
    dp_list_push_back(&bulk->messages, &message->item);
    bulk->n_messages++;
    bulk->waiting += dp_record_batch_wire_bytes(message->bytes.size, 0, n_records);
    dp_bulk_pump(bulk);
    return DP_OK;
}

/* ---- life ---- */

dp_bulk *dp_bulk_open(dp_conn *conn)
{
    dp_bulk *bulk = dp_alloc(1, sizeof *bulk);
    if (bulk == NULL) {
        return NULL;
    }
    bulk->conn = conn;
    bulk->reading = true;
    dp_list_init(&bulk->messages);
    for (uint32_t i = 0; i < DP_BULK_PIECES; i++) {
        bulk->pieces[i].bulk = bulk;
        bulk->pieces[i].job.run = run_seal;
        bulk->pieces[i].job.done = done_seal;
    }
    return bulk;
}

static void give_back(const dp_bulk *bulk, const dp_bulk_incoming *incoming)
{
    if (incoming->bytes != NULL) {
        dp_peer_memory_give(&bulk->conn->transport->peer_memory, incoming->guest,
                            DP_RECORD_BATCH_MESSAGE_MAX);
    }
}

void dp_bulk_trim(dp_bulk *bulk)
{
    for (uint32_t i = 0; i < DP_BULK_PIECES && bulk->n_pieces == 0; i++) {
        dp_free(bulk->pieces[i].room);
        bulk->pieces[i].room = NULL;
        bulk->pieces[i].room_bytes = 0;
    }
    for (uint32_t i = 0; i < DP_BULK_SLABS && bulk->n_lots == 0; i++) {
        dp_bulk_slab *slab = &bulk->slabs[i];
        if (slab == bulk->slab && bulk->parsed < slab->filled) {
            continue; /* An incomplete record. */
        }
        dp_free(slab->bytes);
        *slab = (dp_bulk_slab){0};
        if (slab == bulk->slab) {
            bulk->slab = NULL;
            bulk->parsed = 0;
        }
    }
    for (uint32_t i = 0; i < DP_BULK_INCOMING; i++) {
        if (bulk->incoming[i].refs == 0) {
            give_back(bulk, &bulk->incoming[i]);
            dp_free(bulk->incoming[i].bytes);
            bulk->incoming[i] = (dp_bulk_incoming){0};
        }
    }
}

static void free_all(dp_bulk *bulk)
{
    dp_bulk_drop_messages(bulk);
    for (uint32_t i = 0; i < DP_BULK_PIECES; i++) {
        dp_free(bulk->pieces[i].room);
    }
    for (uint32_t i = 0; i < DP_BULK_SLABS; i++) {
        dp_free(bulk->slabs[i].bytes);
    }
    for (uint32_t i = 0; i < DP_BULK_INCOMING; i++) {
        dp_free(bulk->incoming[i].bytes);
    }
    dp_free(bulk);
}

void dp_bulk_give_back(const dp_bulk *bulk)
{
    for (uint32_t i = 0; bulk != NULL && i < DP_BULK_INCOMING; i++) {
        give_back(bulk, &bulk->incoming[i]);
    }
}

void dp_bulk_close(dp_bulk *bulk)
{
    if (bulk == NULL) {
        return;
    }
    bulk->conn = NULL;
    if (bulk->n_jobs == 0) {
        free_all(bulk);
    }
}

bool dp_bulk_job_done(dp_bulk *bulk)
{
    bulk->n_jobs--;
    if (bulk->conn == NULL && bulk->n_jobs == 0) {
        free_all(bulk);
        return true;
    }
    return bulk->conn == NULL;
}
