/* Every function of the store, called on a store that has something of everything: for tests that
 * have each step of each fail. */
#ifndef DP_TESTS_UNIT_STORE_EVERY_H
#define DP_TESTS_UNIT_STORE_EVERY_H

#include "tests/lib/check.h"

#include "store/chain.h"
#include "store/ckpt.h"
#include "store/journal.h"
#include "store/peers.h"
#include "store/rows.h"
#include "store/vote.h"
#include "tests/store/world.h"
#include "tests/unit/store/ckpt_kit.h"

static inline dp_view big(void)
{
    const dp_book_matter *m = dp_book_matter_of(DP_BOOK_OBJECTS - 1);

    return dp_view_of(m->bytes, m->size);
}

static inline dp_status do_chain_append(dp_store *store)
{
    const dp_hash run = dp_book_run();
    dp_chain_tip tip = {0};
    const dp_status status = dp_chain_head(store, &run, &tip);
    const dp_chain_record row = {.slot = tip.slot + 1,
                                 .hash = dp_book_name(tip.slot + 1),
                                 .record = dp_view_text("record"),
                                 .cert = dp_view_text("certificate")};
    return status == DP_OK || status == DP_NOTFOUND ? dp_chain_append(store, &run, &row) : status;
}

static inline dp_status do_chain_read(dp_store *store)
{
    const dp_hash run = dp_book_run();
    dp_buf record;
    dp_buf_init(&record, 100);
    const dp_status status = dp_chain_read(store, &run, 1, &record, &record, NULL);
    dp_buf_close(&record);
    return status;
}

static inline dp_status see_record(const dp_chain_record *row, void *context)
{
    (void)row;
    (void)context;
    return DP_OK;
}

static inline dp_status do_chain_each(dp_store *store)
{
    const dp_hash run = dp_book_run();
    return dp_chain_each(store, &run, 1, 10, see_record, NULL);
}

static inline dp_status do_chain_again(dp_store *store)
{
    const dp_hash run = dp_book_run();
    const dp_chain_record row = {.slot = 1,
                                 .hash = dp_book_name(1),
                                 .record = dp_view_text("record"),
                                 .cert = dp_view_text("certificate")};
    return dp_chain_append(store, &run, &row);
}

/* The head again, as after a FORK; no checkpoint is after it. */
static inline dp_status do_fork(dp_store *store)
{
    const dp_hash run = dp_book_run();
    dp_chain_tip tip;
    uint64_t dropped = 0;
    DP_TRY(dp_chain_head(store, &run, &tip));
    const dp_chain_record row = {.slot = tip.slot,
                                 .hash = dp_book_name(tip.slot),
                                 .record = dp_view_text("record"),
                                 .cert = dp_view_text("certificate")};
    return dp_chain_fork(store, &run, &row, (uint64_t)1 << 40, &dropped);
}

/* A first lease, then its renewal. */
static inline dp_status do_lease(dp_store *store)
{
    static uint64_t now_s = 2 * DP_LEASE_S;
    const dp_hash run = dp_book_run();
    dp_ckpt ckpt;
    now_s += 2 * DP_LEASE_S;
    DP_TRY(dp_ckpt_newest(store, &run, &ckpt));
    DP_TRY(dp_ckpt_end_leases(store, &run, now_s));
    const dp_pin fetch = {.run = run, .kind = DP_PIN_STATE};
    DP_TRY(dp_object_pin(store, &ckpt.object, &fetch));
    DP_TRY(dp_ckpt_carry_over(store, &run, now_s));
    DP_TRY(dp_ckpt_lease(store, &run, &ckpt.object, now_s));
    return dp_ckpt_lease(store, &run, &ckpt.object, now_s + DP_LEASE_S / 2);
}

static inline dp_status do_vote_key(dp_store *store)
{
    const dp_hash run = dp_book_run();
    dp_vote_key_row key = {.secret = {1}};
    const dp_status status = dp_vote_create_key(store, &run, &key);
    DP_TRY(status == DP_EXISTS ? DP_OK : status);
    return dp_vote_load_key(store, &run, &key);
}

static inline dp_status do_vote(dp_store *store)
{
    const dp_hash run = dp_book_run();
    dp_vote_row vote = {0};
    dp_buf record;
    dp_buf_init(&record, 100);
    dp_status status = dp_vote_load(store, &run, &vote, &record);
    dp_buf_close(&record);
    DP_TRY(status);
    vote = (dp_vote_row){
        .slot = vote.slot + 1, .promised = 1, .accepted = 1, .record = dp_view_text("record")};
    return dp_vote_save(store, &run, &vote);
}

static inline dp_status do_put(dp_store *store)
{
    const dp_pin pin = dp_book_pin(0, 1);
    return dp_object_put(store, big(), &pin, NULL);
}

static inline dp_status do_fill(dp_store *store)
{
    const dp_book_matter *m = dp_book_matter_of(DP_BOOK_OBJECTS - 2);
    const dp_pin pin = dp_book_pin(1, 1);
    uint8_t missing[1];
    DP_TRY(dp_object_unpin(store, &m->root, &pin)); /* Anew each time. */
    DP_TRY(dp_object_collect(store, NULL));
    DP_TRY(dp_object_begin(store, &m->root, m->size, m->leaves, &pin));
    for (uint32_t i = 0; i < m->n_chunks; i++) {
        DP_TRY(dp_object_put_chunk(store, &m->root, i,
                                   dp_view_of(m->bytes + (size_t)i * DP_CHUNK_BYTES_MIN,
                                              dp_object_chunk_size(m->size, i))));
    }
    DP_TRY(dp_object_missing(store, &m->root, missing, sizeof missing, NULL));
    return dp_object_commit(store, &m->root);
}

static inline dp_status do_read(dp_store *store)
{
    static uint8_t room[DP_BOOK_OBJECT_MAX];
    const dp_book_matter *m = dp_book_matter_of(DP_BOOK_OBJECTS - 1);
    dp_hash leaves[DP_BOOK_CHUNKS_MAX];
    dp_object_info info;
    size_t size = 0;
    DP_TRY(dp_object_stat(store, &m->root, &info));
    DP_TRY(dp_object_leaves(store, &m->root, leaves, m->n_chunks));
    DP_TRY(dp_object_read_chunk(store, &m->root, 0, room, sizeof room, &size));
    DP_TRY(dp_object_read(store, &m->root, room, m->size));
    return dp_object_verify(store, &m->root);
}

static inline dp_status do_pins(dp_store *store)
{
    const dp_book_matter *m = dp_book_matter_of(DP_BOOK_OBJECTS - 1);
    const dp_pin pin = dp_book_pin(2, 3);
    dp_hash roots[4];
    uint32_t count = 0;
    DP_TRY(dp_object_pin(store, &m->root, &pin));
    DP_TRY(dp_object_pins(store, &pin.run, pin.kind, roots, 4, &count));
    DP_TRY(dp_object_unpin(store, &m->root, &pin));
    return dp_object_prune(store, &pin.run, pin.kind, 9);
}

static inline dp_status do_collect(dp_store *store)
{
    const dp_book_matter *m = dp_book_matter_of(DP_BOOK_LARGE);
    const dp_pin pin = dp_book_pin(3, 1);
    DP_TRY(dp_object_put(store, dp_view_of(m->bytes, m->size), &pin, NULL));
    DP_TRY(dp_object_unpin(store, &m->root, &pin));
    return dp_object_collect(store, NULL);
}

static inline dp_status do_rows(dp_store *store)
{
    const dp_hash run = dp_book_run();
    const dp_store_row row = {.name = "pending",
                              .keep = {dp_book_matter_of(DP_BOOK_OBJECTS - 1)->root},
                              .bytes = dp_view_text("row")};
    return dp_store_row_put(store, &run, &row);
}

static inline dp_status see_row(const dp_store_row *row, void *context)
{
    (void)row;
    (void)context;
    return DP_OK;
}

static inline dp_status do_rows_each(dp_store *store)
{
    const dp_hash run = dp_book_run();
    DP_TRY(dp_store_row_each(store, &run, "p", see_row, NULL));
    return dp_store_row_delete(store, &run, "nobody");
}

static inline dp_status do_ckpt(dp_store *store)
{
    const dp_hash run = dp_book_run();
    dp_ckpt list[DP_CKPTS_MAX];
    uint32_t count = 0;
    DP_TRY(dp_ckpt_prune(store, &run, 999999999));
    DP_TRY(dp_ckpt_list(store, &run, list, DP_CKPTS_MAX, &count));
    dp_ckpt ckpt = {
        .round = (count == 0 ? 0 : list[0].round) + 1, .state_root = run, .created_ms = 1000};
    return dp_ckpt_save(store, &run, &ckpt, big());
}

static inline dp_status do_ckpt_load(dp_store *store)
{
    const dp_hash run = dp_book_run();
    uint32_t n_good = 0;
    uint32_t n_bad = 0;
    dp_buf state;
    dp_ckpt ckpt;
    DP_TRY(dp_ckpt_newest(store, &run, &ckpt));
    dp_buf_init(&state, DP_BOOK_OBJECT_MAX);
    const dp_status status = load_ckpt(store, &run, &ckpt, &state, &n_bad);
    dp_buf_close(&state);
    DP_TRY(status);
    return verify_ckpts(store, &run, &n_good, &n_bad);
}

static inline dp_status do_ckpt_keep(dp_store *store)
{
    const dp_hash run = dp_book_run();
    dp_ckpt ckpt;
    DP_TRY(dp_ckpt_newest(store, &run, &ckpt));
    DP_TRY(dp_ckpt_keep(store, &run, ckpt.round, true));
    DP_TRY(dp_ckpt_keep(store, &run, ckpt.round, false));
    return dp_ckpt_prune(store, &run, 999999999);
}

static inline dp_status do_events(dp_store *store)
{
    dp_journal_event list[2] = {{.name = "a"}, {.name = "b"}};
    uint32_t count = 0;
    DP_TRY(dp_journal_append(store, list, 2));
    DP_TRY(dp_journal_read(store, 0, list, 2, &count));
    return dp_journal_back(store, UINT64_MAX, list, 2, &count);
}

static inline dp_status do_peers(dp_store *store)
{
    static dp_peer_row row;
    static dp_peer_row list[2];
    uint32_t count = 0;
    row = (dp_peer_row){.id = dp_book_name(3), .card_bytes = 5};
    DP_TRY(dp_peer_save(store, &row));
    DP_TRY(dp_peer_load(store, &row.id, &row));
    DP_TRY(dp_peer_list(store, list, 2, &count));
    return dp_peer_forget(store, &row.id);
}

static inline dp_status do_values(dp_store *store)
{
    uint64_t number = 0;
    dp_buf value;
    DP_TRY(dp_store_put(store, "key", dp_view_text("value")));
    dp_buf_init(&value, 100);
    const dp_status status = dp_store_get(store, "key", &value);
    dp_buf_close(&value);
    DP_TRY(status);
    DP_TRY(dp_store_bump_incarnation(store, 0, &number));
    DP_TRY(dp_store_bytes(store, &number));
    DP_TRY(dp_store_admit(store, 2000000));
    return dp_store_delete(store, "key");
}

static inline dp_status do_drop(dp_store *store)
{
    const dp_hash run = dp_object_hash(dp_view_text("a run that ends"), NULL);
    const dp_store_row row = {.name = "pending/1", .bytes = dp_view_text("bytes")};
    DP_TRY(dp_store_row_put(store, &run, &row));
    return dp_store_drop_run(store, &run);
}

/* Pages become free, and the file of the chunks gives them back. */
static inline dp_status do_shrink(dp_store *store)
{
    bool more = true;
    DP_TRY(do_collect(store));
    while (more) {
        DP_TRY(dp_store_shrink(store, &more));
    }
    return DP_OK;
}

static inline dp_status do_nothing(dp_store *store)
{
    (void)store;
    return DP_OK;
}

static dp_status (*const every[])(dp_store *store) = {
    do_vote_key,   do_vote,        do_chain_append, do_chain_append, do_fork,   do_chain_read,
    do_chain_each, do_chain_again, do_put,          do_fill,         do_read,   do_pins,
    do_collect,    do_rows,        do_rows_each,    do_ckpt,         do_ckpt,   do_ckpt_load,
    do_lease,      do_ckpt_keep,   do_events,       do_peers,        do_values, do_drop,
    do_shrink,     do_nothing};
enum { N_EVERY = sizeof every / sizeof every[0] };

#endif
