/* Objects and records between hosts: the work of the daemon's driver with its store and the bulk
 * connections. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mutation.h"
#include "gossip/record/wire.h"
#include "tests/sim/evil.h"
#include "tests/sim/host.h"
#include "tests/sim/sim.h"

static void send_bulk(dp_host *host, const dp_peer *peer, const dp_writer *writer)
{
    dp_sim *sim = host->sim;
    const uint32_t to = dp_evil_body(sim, host->index, dp_sim_index(sim, peer));

    dp_assert(!writer->full);
    if (to >= sim->plan.nodes || to == host->index) {
        return;
    }
    dp_packet *packet = dp_packet_of(writer->data, (uint32_t)writer->size);
    dp_assert(packet != NULL);
    if (sim->net.ends[(size_t)host->index * sim->plan.nodes + to].connection != 0) {
        dp_measure_sent(sim, host->index, to, packet);
    }
    DP_IGNORE(
        dp_net_send(&sim->net, &sim->queue, sim->now_us, host->index, to, packet, DP_NET_BULK));
}

static bool is_here(const dp_host *host, uint32_t object, uint32_t index)
{
    const dp_part *part = dp_parts_find(&host->disk.parts, object);

    return dp_disk_holds(&host->disk, object) || (part != NULL && dp_part_has(part, index));
}

void dp_host_get(dp_host *host, const dp_action *action)
{
    dp_sim *sim = host->sim;
    const uint32_t object = dp_shelf_find(&sim->shelf, &action->u.get.root);
    uint8_t bytes[64];
    dp_writer w = dp_writer_of(bytes, sizeof bytes);

    if (action->type == DP_DO_GET_INFO) {
        dp_wire_write_info_get(&w, &action->u.get.root);
    } else {
        if (object != DP_SHELF_NONE && is_here(host, object, action->u.get.index)) {
            dp_sim_push(
                sim, &(dp_occasion){.at_us = sim->now_us + 1,
                                    .kind = DP_ON_HELD,
                                    .node = host->index,
                                    .boot = host->boot,
                                    .other = dp_sim_index(sim, &action->u.get.peer),
                                    .detail = (uint16_t)object,
                                    .value = (uint64_t)action->u.get.index << 32 | object >> 16});
            return;
        }
        dp_wire_write_chunk_get(&w, &action->u.get.root, action->u.get.index);
    }
    send_bulk(host, &action->u.get.peer, &w);
}

static void serve_records(dp_host *host, const dp_action *action)
{
    static uint8_t bytes[DP_RECORDS_BYTES_MAX];
    const dp_disk *disk = &host->disk;
    uint64_t slot = action->u.serve.from;
    const uint64_t end = slot + action->u.serve.count;

    while (slot > 0 && slot < end && slot <= disk->n_records) {
        dp_writer w = dp_writer_of(bytes, sizeof bytes);
        const uint64_t first = slot;
        dp_wire_begin_records(&w, slot);
        while (slot < end && slot <= disk->n_records) {
            const dp_disk_record *r = &disk->records[slot - 1];
            if (!dp_wire_add_record(&w, dp_view_of(r->data, r->record_size),
                                    dp_view_of(r->data + r->record_size, r->cert_size))) {
                break;
            }
            slot++;
        }
        dp_assert(slot > first);
        send_bulk(host, &action->u.serve.peer, &w);
    }
}

void dp_host_serve(dp_host *host, const dp_action *action)
{
    static uint8_t bytes[DP_CHUNK_HEAD_BYTES + DP_CHUNK_BYTES_MIN];
    dp_sim *sim = host->sim;
    dp_writer w = dp_writer_of(bytes, sizeof bytes);

    if (dp_evil_serves(host, action)) {
        return;
    }
    if (action->type == DP_DO_SERVE_RECORDS) {
        serve_records(host, action);
        return;
    }
    const uint32_t object = dp_shelf_find(&sim->shelf, &action->u.get.root);
    const bool held = object != DP_SHELF_NONE && dp_disk_holds(&host->disk, object);
    if (action->type == DP_DO_SERVE_INFO) {
        if (held) {
            dp_wire_write_info(&w, &action->u.get.root, sim->shelf.items[object].size,
                               sim->shelf.items[object].leaves);
        } else {
            dp_wire_write_chunk_head(&w, &action->u.get.root, 0, false);
        }
    } else {
        const bool found = held && action->u.get.index < sim->shelf.items[object].n_chunks &&
                           dp_rot_read(host, object, action->u.get.index);
        if (!found && dp_rot_is_lost(host, object)) {
            dp_rot_tell(host, object);
        }
        dp_wire_write_chunk_head(&w, &action->u.get.root, action->u.get.index, found);
        if (found) {
            dp_write_view(&w, dp_shelf_chunk(&sim->shelf, object, action->u.get.index));
            if (host->rot_until > sim->now_us && dp_faults_bend(host, DP_FAULT_DAMAGE)) {
                bytes[w.size - 1] ^= 1;
            }
        }
    }
    send_bulk(host, &action->u.get.peer, &w);
}

static void on_info(dp_host *host, uint32_t from, dp_view bytes)
{
    static dp_hash leaves[DP_CHUNKS_MAX];
    dp_wire_info info;
    dp_event event = {.type = DP_EV_OBJECT_INFO};

    if (dp_wire_read_info(bytes, &info, leaves) != DP_OK) {
        dp_sim_fail(host->sim, "W1", from, "an INFO message does not decode");
        return;
    }
    event.u.object.root = info.root;
    event.u.object.size = info.size;
    event.u.object.leaves = leaves;
    event.u.object.peer = host->sim->hosts[from].peer;
    dp_host_event(host, &event);
}

static void tell_chunk(dp_host *host, const dp_hash *root, uint32_t index, uint32_t from,
                       dp_status status)
{
    dp_event event = {.type = DP_EV_CHUNK};

    event.u.chunk.root = *root;
    event.u.chunk.index = index;
    event.u.chunk.status = status;
    if (from < host->sim->plan.nodes) {
        event.u.chunk.peer = host->sim->hosts[from].peer;
    }
    dp_host_event(host, &event);
}

/* One chunk of several: checks it against the leaf that the node was told of, and writes it to its
 * place on the disk. */
static void take_piece(dp_host *host, uint32_t from, uint32_t object, const dp_wire_chunk *chunk)
{
    const dp_part *part = dp_parts_find(&host->disk.parts, object);

    if (part == NULL || chunk->index >= part->n_chunks) {
        return; /* The object is complete, or no longer wanted. */
    }
    const dp_hash leaf = dp_chunk_leaf(chunk->bytes);
    if (!dp_hash_equal(&leaf, &part->leaves[chunk->index]) && !dp_broken(54)) {
        tell_chunk(host, &chunk->root, chunk->index, from, DP_BADHASH);
        return;
    }
    if (dp_disk_is_writing(&host->disk, object, chunk->index)) {
        return; /* Like the object transfer, it ignores a second copy. */
    }
    dp_disk_write write = {.kind = DP_WRITE_CHUNK,
                           .then = DP_THEN_CHUNK,
                           .object = object,
                           .index = chunk->index,
                           .peer = from,
                           .row = {.size = (uint32_t)chunk->bytes.size}};
    write.row.data = malloc(chunk->bytes.size + 1);
    dp_assert(write.row.data != NULL);
    memcpy(write.row.data, chunk->bytes.data, chunk->bytes.size);
    dp_host_write(host, &write);
}

static void on_chunk(dp_host *host, uint32_t from, dp_view bytes)
{
    dp_sim *sim = host->sim;
    dp_wire_chunk chunk;

    if (dp_wire_read_chunk(bytes, &chunk) != DP_OK) {
        dp_sim_fail(sim, "W1", from, "a CHUNK message does not decode");
        return;
    }
    const uint32_t object = dp_shelf_find(&sim->shelf, &chunk.root);
    if (!chunk.found || object == DP_SHELF_NONE) {
        tell_chunk(host, &chunk.root, chunk.index, from, DP_NOTFOUND);
    } else if (sim->shelf.items[object].n_chunks > 1) {
        take_piece(host, from, object, &chunk);
    } else if (!dp_view_equal(chunk.bytes, dp_shelf_bytes(&sim->shelf, object))) {
        tell_chunk(host, &chunk.root, chunk.index, from, DP_BADHASH);
    } else if (!dp_disk_is_writing(&host->disk, object, 0)) {
        dp_host_write(host, &(dp_disk_write){.kind = DP_WRITE_OBJECT,
                                             .then = DP_THEN_CHUNK,
                                             .object = object,
                                             .peer = from});
    }
}

bool dp_host_message(dp_host *host, uint32_t from, dp_view bytes)
{
    const uint8_t type = dp_msg_type_of(bytes);

    if (type == DP_MSG_INFO) {
        on_info(host, from, bytes);
        return true;
    }
    if (type == DP_MSG_CHUNK) {
        on_chunk(host, from, bytes);
        return true;
    }
    return false;
}

/* After the last of several chunks: checks that the bytes are those that were put, from whichever
 * peers and in whichever lives the chunks came. */
static void complete(dp_host *host, uint32_t object)
{
    dp_sim *sim = host->sim;
    const dp_part *part = dp_parts_find(&host->disk.parts, object);

    if (part != NULL && dp_part_whole(part)) {
        if (!dp_part_is(part, dp_shelf_bytes(&sim->shelf, object))) {
            dp_sim_fail(sim, "F1", host->index,
                        "an object came whole, in %u chunks, and is not what was put",
                        part->n_chunks);
        }
        dp_disk_complete(&host->disk, object);
    }
}

void dp_host_chunk_stored(dp_host *host, const dp_disk_write *write)
{
    const dp_shelf *shelf = &host->sim->shelf;
    const dp_hash root = shelf->items[write->object].root;
    const bool here = is_here(host, write->object, write->index);

    complete(host, write->object);
    const bool whole = dp_disk_holds(&host->disk, write->object);
    tell_chunk(host, &root, write->index, write->peer, here ? DP_OK : DP_AGAIN);
    if (whole) {
        dp_event event = {.type = DP_EV_OBJECT};
        event.u.object.root = root;
        event.u.object.size = shelf->items[write->object].size;
        dp_host_event(host, &event);
    }
}
