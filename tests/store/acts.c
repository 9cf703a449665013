#include "tests/store/world.h"

#include <string.h>

#include "base/assert.h"
#include "store/chain.h"
#include "store/journal.h"
#include "store/peers.h"
#include "store/pieces.h"
#include "store/rows.h"
#include "store/vote.h"

static uint64_t below(dp_world *w, uint64_t limit)
{
    return dp_rng_below(&w->rng, limit);
}

static bool has_reason(const dp_book *book, uint32_t object)
{
    bool reason = book->objects[object].pins != 0;

    for (uint32_t i = 0; i < DP_BOOK_ROWS; i++) {
        for (int k = 0; k < 3; k++) {
            reason =
                reason || (book->rows[i].version != 0 && book->rows[i].keep[k] == (int32_t)object);
        }
    }
    for (uint32_t i = 0; i < book->n_ckpts; i++) {
        reason = reason || book->ckpts[i].object == object;
    }
    return reason;
}

/* ---- objects ---- */

static dp_status act_put(dp_world *w)
{
    const uint32_t object = (uint32_t)below(w, DP_BOOK_OBJECTS);
    const uint32_t kind = (uint32_t)below(w, DP_BOOK_KINDS);
    const uint32_t round = (uint32_t)below(w, DP_BOOK_ROUNDS);
    const dp_book_matter *m = dp_book_matter_of(object);
    dp_pieces pieces = {.bytes = dp_view_of(m->bytes, m->size), .pin = dp_book_pin(kind, round)};

    w->next.objects[object] = (dp_book_object){.pins = w->now.objects[object].pins |
                                                       1U << (kind * DP_BOOK_ROUNDS + round),
                                               .whole = true,
                                               .chunks = (1U << m->n_chunks) - 1};
    if (object == w->filling) {
        w->unsaved = 0;
    }
    if (below(w, 4) == 0) {
        dp_status status = DP_AGAIN;
        while (status == DP_AGAIN) {
            status = dp_pieces_put(&pieces, w->store);
        }
        dp_pieces_close(&pieces);
        return status;
    }
    return dp_object_put(w->store, pieces.bytes, &pieces.pin, NULL);
}

static dp_status act_pin(dp_world *w)
{
    const uint32_t object = (uint32_t)below(w, DP_BOOK_OBJECTS);
    const uint32_t kind = (uint32_t)below(w, DP_BOOK_KINDS);
    const uint32_t round = (uint32_t)below(w, DP_BOOK_ROUNDS);
    const dp_pin pin = dp_book_pin(kind, round);
    const uint32_t bit = 1U << (kind * DP_BOOK_ROUNDS + round);
    const dp_hash *root = &dp_book_matter_of(object)->root;

    if (below(w, 3) == 0 && has_reason(&w->now, object)) {
        w->next.objects[object].pins |= bit;
        return dp_object_pin(w->store, root, &pin);
    }
    w->next.objects[object].pins &= ~bit;
    return dp_object_unpin(w->store, root, &pin);
}

static dp_status act_prune(dp_world *w)
{
    const uint32_t kind = (uint32_t)below(w, DP_BOOK_KINDS);
    const uint32_t before = (uint32_t)below(w, DP_BOOK_ROUNDS + 1);
    const dp_pin pin = dp_book_pin(kind, 0);
    const uint32_t gone = ((1U << before) - 1) << (kind * DP_BOOK_ROUNDS);

    for (uint32_t i = 0; i < DP_BOOK_OBJECTS; i++) {
        w->next.objects[i].pins &= ~gone;
    }
    return dp_object_prune(w->store, &pin.run, pin.kind, before);
}

static dp_status act_collect(dp_world *w)
{
    w->atomic = false;
    for (uint32_t i = 0; i < DP_BOOK_OBJECTS; i++) {
        if (!has_reason(&w->now, i)) {
            w->next.objects[i] = (dp_book_object){0};
        }
    }
    w->unsaved = has_reason(&w->now, w->filling) ? w->unsaved : 0;
    return dp_object_collect(w->store, NULL);
}

/* Makes the chunks that were put durable, and the object whole if the last one was put. */
static dp_status finish_fill(dp_world *w, const dp_book_matter *m, dp_book_object *next)
{
    next->chunks |= w->unsaved;
    next->whole = next->chunks == (1U << m->n_chunks) - 1;
    const dp_status status =
        next->whole ? dp_object_commit(w->store, &m->root) : dp_object_flush(w->store);
    w->unsaved = 0;
    if (status != DP_AGAIN || !w->failing) {
        return status;
    }
    *next = w->now.objects[w->filling]; /* A write that failed took them with it. */
    return DP_OK;
}

/* A download: begun, chunks in any order, flushed, finished. */
static dp_status act_fill(dp_world *w)
{
    const dp_book_matter *m = dp_book_matter_of(w->filling);
    dp_book_object *next = &w->next.objects[w->filling];
    const dp_pin pin = dp_book_pin(1, 7);
    const uint32_t chunk = (uint32_t)below(w, m->n_chunks);

    w->atomic = false;
    if (w->now.objects[w->filling].whole || !has_reason(&w->now, w->filling)) {
        w->filling = DP_BOOK_LARGE + (uint32_t)below(w, DP_BOOK_OBJECTS - DP_BOOK_LARGE);
        w->unsaved = 0;
        m = dp_book_matter_of(w->filling);
        next = &w->next.objects[w->filling];
        if (!w->now.objects[w->filling].whole) {
            if (!has_reason(&w->now, w->filling)) {
                next->chunks = 0; /* Chunks of an earlier download may be gone. */
            }
            next->pins |= 1U << (1 * DP_BOOK_ROUNDS + 7);
            return dp_object_begin(w->store, &m->root, m->size, m->leaves, &pin);
        }
        return DP_OK;
    }
    if (below(w, 3) == 0) {
        return finish_fill(w, m, next);
    }
    w->unsaved |= 1U << chunk;
    return dp_object_put_chunk(w->store, &m->root, chunk,
                               dp_view_of(m->bytes + (size_t)chunk * DP_CHUNK_BYTES_MIN,
                                          dp_object_chunk_size(m->size, chunk)));
}

/* ---- rows ---- */

static dp_status put_row(dp_world *w, uint32_t row)
{
    static uint8_t bytes[2000];
    const dp_hash run = dp_book_run();
    dp_book_row *next = &w->next.rows[row];
    dp_store_row put = {0};

    next->version = (uint32_t)++w->versions;
    memcpy(put.name, dp_book_row_name(row), strlen(dp_book_row_name(row)));
    for (int k = 0; k < 3; k++) {
        const uint32_t object = (uint32_t)below(w, DP_BOOK_OBJECTS);
        next->keep[k] = -1;
        if (w->now.objects[object].whole && has_reason(&w->now, object)) {
            next->keep[k] = (int32_t)object;
            put.keep[k] = dp_book_matter_of(object)->root;
        }
    }
    const dp_view text = dp_book_text(next->version);
    memcpy(bytes, &next->version, 4);
    memcpy(bytes + 4, text.data, text.size);
    put.bytes = dp_view_of(bytes, 4 + text.size);
    return dp_store_row_put(w->store, &run, &put);
}

static dp_status act_row(dp_world *w)
{
    const uint32_t row = (uint32_t)below(w, DP_BOOK_ROWS);
    const dp_hash run = dp_book_run();

    if (below(w, 3) == 0) {
        w->next.rows[row] = (dp_book_row){.keep = {-1, -1, -1}};
        return dp_store_row_delete(w->store, &run, dp_book_row_name(row));
    }
    return put_row(w, row);
}

/* ---- vote and chain ---- */

static dp_status save_vote(dp_world *w)
{
    const dp_hash run = dp_book_run();
    dp_book_vote *next = &w->next.vote;

    if (next->key == 0) {
        dp_vote_key_row key = {0};
        *next = (dp_book_vote){.key = (uint32_t)++w->versions,
                               .promised = DP_VOTE_ROW_NONE,
                               .accepted = DP_VOTE_ROW_NONE};
        memcpy(key.secret, &next->key, sizeof next->key);
        return dp_vote_create_key(w->store, &run, &key);
    }
    if (next->slot <= w->now.head) {
        next->slot = w->now.head + 1;
        next->promised = (int64_t)below(w, 3);
        next->accepted = DP_VOTE_ROW_NONE;
    } else if (next->accepted < next->promised && below(w, 2) == 0) {
        next->accepted = next->promised;
    } else {
        next->promised += 1 + (int64_t)below(w, 3);
    }
    const dp_vote_row row = {.slot = next->slot,
                             .promised = next->promised,
                             .accepted = next->accepted,
                             .record =
                                 next->accepted == DP_VOTE_ROW_NONE
                                     ? (dp_view){0}
                                     : dp_book_text(next->slot * 100 + (uint64_t)next->accepted)};
    return dp_vote_save(w->store, &run, &row);
}

static dp_status act_destroy(dp_world *w)
{
    const dp_hash run = dp_book_run();

    w->next.vote = (dp_book_vote){0};
    return dp_vote_destroy_key(w->store, &run);
}

static dp_status append_record(dp_world *w)
{
    uint8_t record[1000];
    const dp_hash run = dp_book_run();
    const uint64_t slot = w->now.head + 1;
    const dp_view text = dp_book_text(slot);
    dp_chain_record row = {.slot = slot, .hash = dp_book_name(slot)};

    memcpy(record, text.data, text.size);
    row.record = dp_view_of(record, text.size);
    row.cert = dp_book_text(slot + 100000);
    w->next.head = slot;
    return dp_chain_append(w->store, &run, &row);
}

/* ---- small facts ---- */

static dp_status put_value(dp_world *w, uint32_t key)
{
    uint8_t bytes[2000];
    const uint32_t version = (uint32_t)++w->versions;
    const dp_view text = dp_book_text(version);

    memcpy(bytes, &version, 4);
    memcpy(bytes + 4, text.data, text.size);
    w->next.kv[key] = version;
    return dp_store_put(w->store, dp_book_key_name(key), dp_view_of(bytes, 4 + text.size));
}

static dp_status act_kv(dp_world *w)
{
    const uint32_t key = (uint32_t)below(w, DP_BOOK_KEYS);

    if (below(w, 4) == 0) {
        w->next.kv[key] = 0;
        return dp_store_delete(w->store, dp_book_key_name(key));
    }
    return put_value(w, key);
}

static dp_status act_bump(dp_world *w)
{
    return dp_store_bump_incarnation(w->store, 0, &w->next.incarnation);
}

static dp_status act_events(dp_world *w)
{
    static dp_journal_event events[5];
    const uint32_t count = 1 + (uint32_t)below(w, 5);

    for (uint32_t i = 0; i < count; i++) {
        events[i] = (dp_journal_event){.round = w->now.events + 1 + i, .name = "test.event"};
    }
    w->next.events += count;
    return dp_journal_append(w->store, events, count);
}

static dp_status act_peer(dp_world *w)
{
    static dp_peer_row row;
    const uint32_t peer = (uint32_t)below(w, DP_BOOK_PEERS);

    row = (dp_peer_row){.id = dp_book_name(500 + peer)};
    if (below(w, 4) == 0) {
        w->next.peers[peer] = 0;
        return dp_peer_forget(w->store, &row.id);
    }
    w->next.peers[peer] = (uint32_t)++w->versions;
    row.n_bad = w->next.peers[peer];
    const dp_view text = dp_book_text(row.n_bad);
    memcpy(row.card, text.data, text.size);
    row.card_bytes = (uint32_t)text.size;
    return dp_peer_save(w->store, &row);
}

/* Writes a decision: record, vote, pending row and a fact, together or not at all. */
static dp_status together(dp_store *store, void *context)
{
    dp_world *w = context;

    (void)store;
    DP_TRY(append_record(w));
    if (w->next.vote.key != 0) {
        DP_TRY(save_vote(w));
    }
    DP_TRY(put_row(w, DP_BOOK_ROWS - 1));
    return put_value(w, 0);
}

static dp_status act_together(dp_world *w)
{
    return dp_store_atomically(w->store, together, w);
}

/* ---- checkpoints ---- */

static dp_status read_ckpts(dp_world *w, dp_status status)
{
    static dp_book_check check;

    if (status != DP_OK || dp_platter_dead(w->platter)) {
        return status;
    }
    check = (dp_book_check){
        .store = w->store, .now = &w->now, .next = &w->next, .quota = w->options.max_bytes != 0};
    if (!dp_book_check_ckpts(&check)) {
        memcpy(w->sentence, check.sentence, sizeof w->sentence);
        return DP_CORRUPT;
    }
    memcpy(w->next.ckpts, check.seen.ckpts, sizeof check.seen.ckpts);
    w->next.n_ckpts = check.seen.n_ckpts;
    return DP_OK;
}

static dp_status act_ckpt(dp_world *w)
{
    const dp_hash run = dp_book_run();
    const uint64_t round = ++w->versions;
    const uint32_t object = 8 + (uint32_t)below(w, DP_BOOK_OBJECTS - 8);
    const dp_book_matter *m = dp_book_matter_of(object);
    dp_ckpt ckpt = {.round = round, .slot = w->now.head, .state_root = dp_book_name(round)};

    w->atomic = false;
    w->loose = (int32_t)object;
    w->clock_ms += below(w, 3) == 0 ? below(w, 20) * 3600000 : below(w, 600000);
    ckpt.created_ms = w->clock_ms;
    if (w->next.n_ckpts == DP_CKPTS_MAX) {
        w->next.n_ckpts--;
    }
    memmove(w->next.ckpts + 1, w->next.ckpts, w->next.n_ckpts * sizeof w->next.ckpts[0]);
    w->next.ckpts[0] = (dp_book_ckpt){.round = round, .object = object};
    w->next.n_ckpts++;
    w->next.objects[object].whole = true;
    w->next.objects[object].chunks = (1U << m->n_chunks) - 1;
    if (object == w->filling) {
        w->unsaved = 0;
    }
    return read_ckpts(w, dp_ckpt_save(w->store, &run, &ckpt, dp_view_of(m->bytes, m->size)));
}

static dp_status act_keep(dp_world *w)
{
    const dp_hash run = dp_book_run();

    if (w->now.n_ckpts == 0) {
        return DP_OK;
    }
    dp_book_ckpt *ckpt = &w->next.ckpts[below(w, w->now.n_ckpts)];
    ckpt->kept = below(w, 3) == 0;
    return dp_ckpt_keep(w->store, &run, ckpt->round, ckpt->kept);
}

static dp_status act_retain(dp_world *w)
{
    const dp_hash run = dp_book_run();

    w->atomic = false;
    w->clock_ms += below(w, 30) * 3600000;
    return read_ckpts(w, dp_ckpt_prune(w->store, &run, w->clock_ms));
}

/* A quota makes room by itself, so the list may have changed. */
static dp_status act_put_and_look(dp_world *w)
{
    const dp_status status = act_put(w);

    if (w->options.max_bytes == 0) {
        return status;
    }
    w->atomic = false;
    if (status == DP_NOSPACE) {
        w->next = w->now;
    }
    const dp_status looked = read_ckpts(w, status == DP_NOSPACE ? DP_OK : status);
    return looked == DP_OK ? status : looked;
}

static const struct {
    const char *name;
    dp_status (*run)(dp_world *world);
    uint32_t weight;
} acts[] = {
    {"put", act_put_and_look, 20}, {"pin", act_pin, 12},
    {"prune", act_prune, 4},       {"collect", act_collect, 8},
    {"fill", act_fill, 12},        {"row", act_row, 12},
    {"vote", save_vote, 12},       {"destroy key", act_destroy, 1},
    {"record", append_record, 10}, {"checkpoint", act_ckpt, 5},
    {"keep", act_keep, 2},         {"retention", act_retain, 2},
    {"value", act_kv, 4},          {"incarnation", act_bump, 2},
    {"journal", act_events, 4},    {"peer", act_peer, 3},
    {"together", act_together, 6},
};

dp_status dp_world_act(dp_world *w)
{
    uint32_t sum = 0;
    size_t i = 0;

    for (size_t k = 0; k < sizeof acts / sizeof acts[0]; k++) {
        sum += acts[k].weight;
    }
    uint64_t drawn = below(w, sum);
    while (drawn >= acts[i].weight) {
        drawn -= acts[i++].weight;
    }
    w->act = acts[i].name;
    w->next = w->now;
    w->atomic = true;
    w->loose = -1;
    w->n_acts++;
    return acts[i].run(w);
}
