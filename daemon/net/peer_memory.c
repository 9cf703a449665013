#include "daemon/net/peer_memory.h"

#include "base/assert.h"

void dp_peer_memory_init(dp_peer_memory *memory, uint64_t machine)
{
    *memory = (dp_peer_memory){.limit = machine / 4 > DP_PEER_MEMORY_LEAST ? machine / 4
                                                                           : DP_PEER_MEMORY_LEAST};
}

void dp_peer_memory_take_anyway(dp_peer_memory *memory, bool guest, uint64_t bytes)
{
    memory->bytes += bytes;
    memory->guests += guest ? bytes : 0;
    memory->most = memory->bytes > memory->most ? memory->bytes : memory->most;
}

bool dp_peer_memory_take(dp_peer_memory *memory, bool guest, uint64_t bytes)
{
    const uint64_t left = memory->limit > memory->bytes ? memory->limit - memory->bytes : 0;

    if (bytes > left || (guest && memory->guests + bytes > DP_PEER_MEMORY_GUESTS_MAX)) {
        return false;
    }
    dp_peer_memory_take_anyway(memory, guest, bytes);
    return true;
}

void dp_peer_memory_give(dp_peer_memory *memory, bool guest, uint64_t bytes)
{
    dp_assert(bytes <= memory->bytes && (!guest || bytes <= memory->guests));
    memory->bytes -= bytes;
    memory->guests -= guest ? bytes : 0;
}
