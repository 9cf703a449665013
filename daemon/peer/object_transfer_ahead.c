/* Requests chunks together with the size and leaves of their object, one round trip before the
 * node can. A chunk that arrives before size and leaves is dropped and requested again. */
#include "base/assert.h"
#include "daemon/peer/object_transfer_inside.h"
#include "gossip/record/wire.h"

static asked_ahead *find(dp_object_transfer *object_transfer, const dp_peer *peer,
                         const dp_hash *root)
{
    for (uint32_t i = 0; i < AHEADS_MAX; i++) {
        asked_ahead *entry = &object_transfer->aheads[i];
        if (entry->chunks != 0 && dp_peer_equal(&entry->peer, peer) &&
            dp_hash_equal(&entry->root, root)) {
            return entry;
        }
    }
    return NULL;
}

static void tell(const dp_object_transfer *object_transfer, const dp_peer *peer,
                 const dp_writer *writer)
{
    /* Without a link it will be requested again. */
    DP_IGNORE(dp_transport_send(object_transfer->config.transport, peer, DP_LANE_CONTROL,
                                dp_view_of(writer->data, writer->size)));
}

void dp_object_transfer_ahead_ask(dp_object_transfer *object_transfer, const dp_peer *peer,
                                  const dp_hash *root, uint32_t n)
{
    uint8_t bytes[64];
    asked_ahead *entry = find(object_transfer, peer, root);

    dp_assert(n > 0 && n <= DP_FLIGHTS_MAX);
    if (entry == NULL) {
        entry = &object_transfer->aheads[object_transfer->next_ahead++ % AHEADS_MAX];
    }
    *entry = (asked_ahead){.peer = *peer, .root = *root, .chunks = (1U << n) - 1};
    for (uint32_t i = 0; i < n; i++) {
        dp_writer writer = dp_writer_of(bytes, sizeof bytes);
        dp_wire_write_chunk_get(&writer, root, i);
        tell(object_transfer, peer, &writer);
    }
}

bool dp_object_transfer_ahead_take(dp_object_transfer *object_transfer, const dp_peer *peer,
                                   const dp_hash *root, uint32_t index)
{
    asked_ahead *entry = find(object_transfer, peer, root);
    const bool asked =
        entry != NULL && index < DP_FLIGHTS_MAX && (entry->chunks >> index & 1U) != 0;

    if (asked) {
        entry->chunks &= ~(1U << index);
    }
    return asked;
}

void dp_object_transfer_ahead_drop(dp_object_transfer *object_transfer, const dp_hash *root)
{
    uint8_t bytes[64];

    for (uint32_t i = 0; i < AHEADS_MAX; i++) {
        asked_ahead *entry = &object_transfer->aheads[i];
        if (entry->chunks != 0 && dp_hash_equal(&entry->root, root)) {
            dp_writer writer = dp_writer_of(bytes, sizeof bytes);
            dp_wire_write_chunk_drop(&writer, root);
            tell(object_transfer, &entry->peer, &writer);
            entry->chunks = 0;
        }
    }
}
