/* A holder that lies: wrong chunks, no chunks, or the chunk list of another object. */
#include <string.h>

#include "gossip/record/wire.h"
#include "tests/sim/evil.h"

static void serve_pieces(dp_host *host, const dp_action *action, uint32_t to)
{
    static uint8_t out[DP_INFO_BYTES_MAX];
    dp_sim *sim = host->sim;
    dp_writer w = dp_writer_of(out, sizeof out);
    dp_hash leaf = {{1, 2, 3}};

    dp_wire_write_info(&w, &action->u.get.root, 1 + dp_evil_below(sim, DP_CHUNK_BYTES_MIN - 1),
                       &leaf);
    dp_evil_say(host, to, dp_view_of(out, w.size));
}

static void serve_wrong(dp_host *host, const dp_action *action, uint32_t to, bool cut)
{
    static uint8_t out[DP_CHUNK_HEAD_BYTES + DP_CHUNK_BYTES_MIN];
    dp_sim *sim = host->sim;
    const uint32_t object = dp_shelf_find(&sim->shelf, &action->u.get.root);
    dp_writer w = dp_writer_of(out, sizeof out);
    dp_view bytes = {0};

    if (object == DP_SHELF_NONE || action->u.get.index >= sim->shelf.items[object].n_chunks) {
        return;
    }
    bytes = dp_shelf_chunk(&sim->shelf, object, action->u.get.index);
    dp_wire_write_chunk_head(&w, &action->u.get.root, action->u.get.index, true);
    dp_write_view(&w, bytes);
    if (cut) {
        w.size -= 1 + (size_t)dp_evil_below(sim, bytes.size);
    } else {
        out[w.size - 1 - dp_evil_below(sim, bytes.size)] ^= 1;
    }
    dp_evil_say(host, to, dp_view_of(out, w.size));
}

static void serve_nothing(dp_host *host, const dp_action *action, uint32_t to)
{
    uint8_t out[DP_CHUNK_HEAD_BYTES];
    dp_writer w = dp_writer_of(out, sizeof out);

    dp_wire_write_chunk_head(&w, &action->u.get.root, action->u.get.index, false);
    dp_evil_say(host, to, dp_view_of(out, w.size));
}

bool dp_evil_serves(dp_host *host, const dp_action *action)
{
    dp_sim *sim = host->sim;
    const uint32_t to = dp_sim_index(sim, &action->u.get.peer);

    if (!dp_evil_does(sim, host->index, DP_EVIL_HOLDER) || action->type == DP_DO_SERVE_RECORDS) {
        return false;
    }
    uint32_t trick = sim->evil->tricks[DP_EVIL_HOLDER];
    if (trick == DP_HOLDS_MIXED) {
        trick = (uint32_t)dp_evil_below(sim, DP_HOLDS_MIXED);
    }
    sim->totals.lies++;
    if (trick == DP_HOLDS_SILENT) {
        return true;
    }
    if (action->type == DP_DO_SERVE_INFO) {
        if (trick == DP_HOLDS_PIECES) {
            serve_pieces(host, action, to);
            return true;
        }
        return false; /* The list is right, the chunks are wrong. */
    }
    if (trick == DP_HOLDS_NOT || trick == DP_HOLDS_PIECES) {
        serve_nothing(host, action, to);
    } else {
        serve_wrong(host, action, to, trick == DP_HOLDS_SHORT);
    }
    return true;
}
