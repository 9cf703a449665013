/* The bulk connections of a link: one, or several on a path with packet loss. The side that dialed
 * the link opens and closes them. */
#include "daemon/net/transport_bulk.h"

static bool fd_of(const dp_conn *conn, int *fd)
{
    uv_os_fd_t found;
    if (uv_fileno((const uv_handle_t *)&conn->tcp, &found) != 0) {
        return false;
    }
    *fd = found;
    return true;
}

/* The connection on which a message of size bytes arrives first; bytes that wait above the kernel
 * count like those in it. */
static uint64_t turns_on(const dp_conn *conn, size_t size)
{
    dp_path_room room = {0};
    int fd = -1;
    if (!fd_of(conn, &fd) || !dp_path_look(fd, &room)) {
        return UINT64_MAX;
    }
    return dp_path_turns(&room, dp_conn_waiting(conn) + size);
}

dp_conn *dp_link_stripe(const dp_link *link, size_t size)
{
    dp_conn *best = link->lanes[DP_LANE_BULK];
    uint32_t count = 0;
    uint64_t least = UINT64_MAX;
    for (uint32_t stripe = 0; stripe < DP_CHANNEL_STRIPES_MAX; stripe++) {
        dp_conn *conn = link->lanes[DP_LANE_BULK + stripe];
        count += conn != NULL && conn->doom == 0;
        best = conn != NULL && conn->doom == 0 ? conn : best;
    }
    for (uint32_t stripe = 0; stripe < DP_CHANNEL_STRIPES_MAX && count > 1; stripe++) {
        dp_conn *conn = link->lanes[DP_LANE_BULK + stripe];
        const uint64_t turns = conn != NULL && conn->doom == 0 ? turns_on(conn, size) : UINT64_MAX;
        if (turns < least) {
            least = turns;
            best = conn;
        }
    }
    return best == NULL || best->doom != 0 ? NULL : best;
}

uint64_t dp_link_bulk_waiting(const dp_link *link)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t stripe = 0; stripe < DP_CHANNEL_STRIPES_MAX; stripe++) {
        const dp_conn *conn = link->lanes[DP_LANE_BULK + stripe];
        if (conn != NULL && conn->doom == 0 && dp_conn_waiting(conn) < least) {
            least = dp_conn_waiting(conn);
        }
    }
    return least;
}

void dp_conn_set_options(dp_conn *conn)
{
    dp_path_sample sample;
    int fd = -1;
    uv_tcp_nodelay(&conn->tcp, 1);
    if (!fd_of(conn, &fd)) {
        return;
    }
    dp_path_set_options(fd, conn->lane == DP_LANE_BULK);
    if (conn->lane == DP_LANE_BULK && conn->transport->down.rate != 0) {
        dp_conn_set_window(conn);
    }
    /* Opening the connection has measured the path once. */
    if (dp_path_read(fd, &sample) && sample.min_rtt_us < DP_PATH_LONG_RTT_US) {
        dp_path_set_short(fd);
    }
}

static void set_pace(dp_conn *conn)
{
    const uint64_t pace = conn->path.pace;
    const uint64_t change = pace > conn->pace ? pace - conn->pace : conn->pace - pace;
    int fd = -1;
    if (change > conn->pace / 32 && fd_of(conn, &fd)) {
        dp_path_set_pace(fd, pace);
        conn->pace = pace;
    }
}

void dp_transport_measure(dp_transport *transport)
{
    uint32_t count = 0;
    for (dp_list *at = transport->conns.next; at != &transport->conns; at = at->next) {
        dp_conn *conn = DP_LIST_ITEM(at, dp_conn, item);
        dp_path_sample sample;
        int fd = -1;
        if (count < DP_TRANSPORT_CONNECTIONS_MAX && conn->bulk != NULL && fd_of(conn, &fd) &&
            dp_path_read(fd, &sample)) {
            dp_path_step(&conn->path, &sample);
            transport->paths[count] = &conn->path;
            transport->measured[count++] = conn;
        }
    }
    dp_path_share(&transport->line, transport->paths, count);
    for (uint32_t i = 0; i < count; i++) {
        set_pace(transport->measured[i]);
    }
}

bool dp_bulk_is_quiet(const dp_conn *conn)
{
    const dp_bulk *bulk = conn->bulk;
    return conn->idle && bulk->waiting == 0 && !conn->down.waits && bulk->n_lots == 0 &&
           !bulk->story.in_message;
}

void dp_link_measure(dp_transport *transport, dp_link *link)
{
    const uint64_t now = uv_now(transport->config.loop);
    dp_path *paths[DP_CHANNEL_STRIPES_MAX];
    uint32_t count = 0;
    for (uint32_t stripe = 0; stripe < DP_CHANNEL_STRIPES_MAX; stripe++) {
        dp_conn *conn = link->lanes[DP_LANE_BULK + stripe];
        if (conn != NULL) {
            paths[count++] = &conn->path;
        }
    }
    dp_path_count(&link->loss, paths, count);
    const uint32_t wanted =
        transport->stripes_min > link->loss.wanted ? transport->stripes_min : link->loss.wanted;
    if (!link->lanes[DP_LANE_CONTROL]->outgoing) {
        return;
    }
    for (uint32_t stripe = 1; stripe < DP_CHANNEL_STRIPES_MAX; stripe++) {
        const dp_conn *conn = link->lanes[DP_LANE_BULK + stripe];
        if (conn == NULL && stripe < wanted && now >= link->stripe_retry_ms &&
            link->lanes[DP_LANE_BULK] != NULL && transport->n_conns < DP_TRANSPORT_STRIPED_MAX) {
            dp_link_dial_bulk(transport, link, (uint8_t)stripe);
        } else if (conn != NULL && stripe >= wanted && dp_bulk_is_quiet(conn)) {
            dp_link_drop_lane(link, DP_LANE_BULK + stripe);
        }
    }
}

bool dp_stripe_give_way(dp_transport *transport)
{
    dp_link *found = NULL;
    uint32_t slot = 0;
    for (dp_list *at = transport->links.next; at != &transport->links; at = at->next) {
        dp_link *link = DP_LIST_ITEM(at, dp_link, item);
        for (uint32_t stripe = 1; stripe < DP_CHANNEL_STRIPES_MAX; stripe++) {
            const dp_conn *conn = link->lanes[DP_LANE_BULK + stripe];
            if (conn != NULL && dp_bulk_is_quiet(conn)) {
                dp_link_drop_lane(link, DP_LANE_BULK + stripe);
                return true;
            }
            found = conn != NULL ? link : found;
            slot = conn != NULL ? DP_LANE_BULK + stripe : slot;
        }
    }
    if (found != NULL) {
        dp_link_drop_lane(found, slot);
    }
    return found != NULL;
}
