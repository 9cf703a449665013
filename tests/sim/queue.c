#include "tests/sim/queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

dp_packet *dp_packet_of(const void *data, uint32_t size)
{
    dp_packet *packet = malloc(sizeof *packet + size);

    if (packet != NULL) {
        packet->uses = 1;
        packet->size = size;
        if (size != 0) {
            memcpy(packet->data, data, size);
        }
    }
    return packet;
}

dp_packet *dp_packet_share(dp_packet *packet)
{
    packet->uses++;
    return packet;
}

void dp_packet_drop(dp_packet *packet)
{
    if (packet == NULL) {
        return;
    }
    dp_assert(packet->uses > 0);
    if (--packet->uses == 0) {
        free(packet);
    }
}

static bool before(const dp_occasion *a, const dp_occasion *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

void dp_queue_close(dp_queue *queue)
{
    for (uint32_t i = 0; i < queue->count; i++) {
        dp_packet_drop(queue->items[i].packet);
    }
    free(queue->items);
    memset(queue, 0, sizeof *queue);
}

static dp_status make_room(dp_queue *queue)
{
    if (queue->count < queue->capacity) {
        return DP_OK;
    }
    if (queue->count >= DP_QUEUE_MAX) {
        return DP_TOOBIG;
    }
    const uint32_t capacity = queue->capacity == 0 ? 1024 : queue->capacity * 2;
    dp_occasion *items = realloc(queue->items, (size_t)capacity * sizeof *items);
    if (items == NULL) {
        return DP_NOMEM;
    }
    queue->items = items;
    queue->capacity = capacity;
    return DP_OK;
}

dp_status dp_queue_push(dp_queue *queue, const dp_occasion *occasion)
{
    const dp_status status = make_room(queue);

    if (status != DP_OK) {
        dp_packet_drop(occasion->packet);
        return status;
    }
    dp_occasion item = *occasion;
    item.order = ++queue->order;
    uint32_t at = queue->count++;
    while (at > 0) {
        const uint32_t parent = (at - 1) / 2;
        if (!before(&item, &queue->items[parent])) {
            break;
        }
        queue->items[at] = queue->items[parent];
        at = parent;
    }
    queue->items[at] = item;
    return DP_OK;
}

bool dp_queue_pop(dp_queue *queue, dp_occasion *out)
{
    if (queue->count == 0) {
        return false;
    }
    *out = queue->items[0];
    const dp_occasion last = queue->items[--queue->count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= queue->count) {
            break;
        }
        if (child + 1 < queue->count && before(&queue->items[child + 1], &queue->items[child])) {
            child++;
        }
        if (!before(&queue->items[child], &last)) {
            break;
        }
        queue->items[at] = queue->items[child];
        at = child;
    }
    if (queue->count > 0) {
        queue->items[at] = last;
    }
    return true;
}
