#include "store/peers.h"

#include <string.h>

#include "store/inside.h"

static dp_status save_body(dp_store *store, void *context)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO peer(id,card,addresses,last_ok_ms,bad) VALUES(?,?,?,?,?)";
    static const char trim_sql[] =
        "DELETE FROM peer WHERE id IN (SELECT id FROM peer WHERE id<>?1 ORDER BY last_ok_ms"
        " LIMIT max(0,(SELECT count(*) FROM peer)-?2))";
    const dp_peer_row *peer = (const dp_peer_row *)context;
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, &peer->id);
    dp_bind_view(&query, dp_view_of(peer->card, peer->card_bytes));
    dp_bind_text(&query, peer->addresses);
    dp_bind_u64(&query, peer->last_ok_ms);
    dp_bind_u64(&query, peer->n_bad);
    DP_TRY(dp_query_run(&query));
    dp_query trim = dp_query_of(&store->meta, trim_sql);
    dp_bind_hash(&trim, &peer->id);
    dp_bind_i64(&trim, DP_PEERS_MAX);
    return dp_query_run(&trim);
}

dp_status dp_peer_save(dp_store *store, const dp_peer_row *peer)
{
    if (peer->card_bytes > DP_PEER_CARD_MAX ||
        memchr(peer->addresses, '\0', sizeof peer->addresses) == NULL) {
        return DP_BADARG;
    }
    dp_peer_row copy = *peer;
    return dp_store_atomically(store, save_body, &copy);
}

/* DP_CORRUPT: more bytes than ever were saved. */
static dp_status read_row(const dp_query *query, dp_peer_row *peer)
{
    const dp_view card = dp_column_view(query, 1);
    if (card.size > DP_PEER_CARD_MAX) {
        return DP_CORRUPT;
    }
    memset(peer, 0, sizeof *peer);
    peer->id = dp_column_hash(query, 0);
    if (card.size > 0) {
        memcpy(peer->card, card.data, card.size);
    }
    peer->card_bytes = (uint32_t)card.size;
    dp_column_text(query, 2, peer->addresses, sizeof peer->addresses);
    peer->last_ok_ms = dp_column_u64(query, 3);
    peer->n_bad = dp_column_u64(query, 4);
    return DP_OK;
}

dp_status dp_peer_load(dp_store *store, const dp_hash *id, dp_peer_row *peer)
{
    static const char sql[] = "SELECT id,card,addresses,last_ok_ms,bad FROM peer WHERE id=?";
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, id);
    DP_TRY(dp_query_next(&query));
    const dp_status status = read_row(&query, peer);
    dp_query_end(&query);
    return status;
}

dp_status dp_peer_list(dp_store *store, dp_peer_row *list, uint32_t max, uint32_t *count)
{
    static const char sql[] =
        "SELECT id,card,addresses,last_ok_ms,bad FROM peer ORDER BY last_ok_ms DESC,id LIMIT ?";
    uint32_t n = 0;
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_u64(&query, max);
    dp_status status = dp_query_next(&query);
    while (status == DP_OK) {
        status = read_row(&query, &list[n]);
        if (status != DP_OK) {
            dp_query_end(&query);
            return status;
        }
        n++;
        status = dp_query_next(&query);
    }
    if (status != DP_NOTFOUND) {
        return status;
    }
    *count = n;
    return DP_OK;
}

static dp_status forget_body(dp_store *store, void *context)
{
    static const char sql[] = "DELETE FROM peer WHERE id=?";
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, (const dp_hash *)context);
    return dp_query_run(&query);
}

dp_status dp_peer_forget(dp_store *store, const dp_hash *id)
{
    dp_hash copy = *id;
    return dp_store_atomically(store, forget_body, &copy);
}
