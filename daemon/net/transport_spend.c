/* Measures the cost of each message (spending.h). A connection whose peer has spent too much is not
 * read for a while, so that TCP slows the sender. Of members the bulk lane is not measured: chunks
 * and records are requested. */
#include <time.h>

#include "daemon/net/transport_bulk.h"

enum {
    /* Of a guest, and before the peer is proved, less is read at once: a message costs up to half a
     * microsecond a byte (a signature in 120 bytes). */
    GUEST_READ_BYTES = 8 * 1024,
    /* At one tick so many connections of guests are read again, in the order in which they were
     * paused: a guest that floods cannot take the share of those that wait. */
    GUESTS_RESUMED_MAX = 4
};

static uint64_t now_us(void)
{
    return uv_hrtime() / 1000;
}

/* Processor time, not the clock: on a busy machine peers do not pay for other programs. */
static uint64_t work_us(void)
{
    struct timespec used = {0};
    DP_IGNORE(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) != 0); /* Then all is free. */
    return (uint64_t)used.tv_sec * 1000000 + (uint64_t)used.tv_nsec / 1000;
}

static void pause_reading(dp_conn *conn)
{
    if (!conn->paused) {
        conn->paused = true;
        dp_list_remove(&conn->item);
        dp_list_push_back(&conn->transport->conns, &conn->item);
    }
    if (conn->bulk == NULL) { /* bulk_receive.c asks paused. */
        uv_read_stop((uv_stream_t *)&conn->tcp);
    }
}

static bool is_over(const dp_conn *conn, bool guest)
{
    dp_transport *transport = conn->transport;
    dp_spending *spending = guest ? &transport->guests : &conn->link->spending;
    return dp_spending_over(spending, guest, transport->up.rate, now_us());
}

static void charge(dp_conn *conn, uint64_t spent_us, uint64_t bytes)
{
    dp_transport *transport = conn->transport;
    const bool guest = dp_conn_is_guest(conn);
    dp_spending *spending = guest ? &transport->guests : &conn->link->spending;
    if (!guest && conn->bulk != NULL) {
        return;
    }
    dp_spending_pay(spending, guest, transport->up.rate, spent_us, bytes, now_us());
    if (is_over(conn, guest)) {
        pause_reading(conn);
    }
}

void dp_link_message(dp_conn *conn, dp_view bytes)
{
    dp_transport *transport = conn->transport;
    if (conn->link == NULL) {
        return;
    }
    const dp_peer peer = conn->link->peer;
    const uint64_t begin_us = work_us();
    transport->heard = conn->link;
    transport->answered = 0;
    transport->config.hooks.message(transport->config.hooks.context, &peer, bytes);
    transport->heard = NULL;
    if (!conn->closing && conn->link != NULL) { /* Otherwise the hook has ended the link. */
        charge(conn, work_us() - begin_us, transport->answered);
    }
}

void dp_link_answered(const dp_link *link, uint64_t bytes)
{
    dp_transport *transport = link->lanes[DP_LANE_CONTROL]->transport;
    transport->answered += transport->heard == link ? bytes : 0;
}

void dp_link_enter(dp_conn *conn)
{
    if (dp_conn_is_guest(conn) && is_over(conn, true)) {
        pause_reading(conn);
    }
}

unsigned dp_conn_read_room(const dp_conn *conn)
{
    return conn->link != NULL && !dp_conn_is_guest(conn) ? sizeof conn->transport->read_buffer
                                                         : GUEST_READ_BYTES;
}

void dp_transport_resume(dp_transport *transport)
{
    uint32_t n_guests = 0;
    for (dp_list *at = transport->conns.next; at != &transport->conns;) {
        dp_conn *conn = DP_LIST_ITEM(at, dp_conn, item);
        at = at->next;
        if (!conn->paused || conn->link == NULL) {
            continue;
        }
        const bool guest = dp_conn_is_guest(conn);
        if ((guest && n_guests == GUESTS_RESUMED_MAX) || is_over(conn, guest)) {
            continue;
        }
        n_guests += guest ? 1 : 0;
        conn->paused = false;
        if (conn->bulk != NULL) {
            dp_bulk_read_on(conn->bulk);
            at = transport->conns.next; /* A hook may have changed the list. */
        } else if (dp_conn_read(conn) != 0) {
            conn->doom = DP_LINK_RESET;
        }
    }
}
