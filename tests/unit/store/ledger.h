/* A workload that records the acknowledged writes of the store, and the check that none of them is
 * lost. */
#ifndef DP_TESTS_UNIT_STORE_LEDGER_H
#define DP_TESTS_UNIT_STORE_LEDGER_H

#include "tests/unit/store/ckpt_kit.h"
#include "tests/unit/store/shelf.h"

#include "store/chain.h"
#include "store/ckpt.h"
#include "store/rows.h"
#include "store/vote.h"

enum { LEDGER_BLOB = 9000, LEDGER_STATE = 300000, LEDGER_CKPT_EVERY = 3, LEDGER_VECTORS = 100000 };

/* Highest round for which each step has returned DP_OK; 0: none. */
typedef struct ledger {
    uint64_t blob;
    uint64_t row;
    uint64_t record;
    uint64_t vote;
    uint64_t ckpt;
    bool key;
} ledger;

static inline dp_hash ledger_root(uint64_t seed, size_t size)
{
    uint8_t *bytes = noise(seed, size);
    const dp_hash root = dp_object_hash(dp_view_of(bytes, size), NULL);
    free(bytes);
    return root;
}

static inline dp_status ledger_put(dp_store *store, uint64_t seed, size_t size, dp_pin_kind kind,
                                   uint64_t round)
{
    const dp_pin pin = {.run = name_of(1), .kind = kind, .round = round};
    uint8_t *bytes = noise(seed, size);
    const dp_status status = dp_object_put(store, dp_view_of(bytes, size), &pin, NULL);
    free(bytes);
    return status;
}

/* One round of a voter that trains; stops at the first failure. */
static inline dp_status ledger_round(dp_store *store, ledger *book, uint64_t round)
{
    const dp_hash run = name_of(1);
    const dp_vote_row vote = {
        .slot = round, .promised = 2, .accepted = 1, .record = dp_view_text("record")};
    const dp_chain_record row = {.slot = round,
                                 .hash = name_of(round),
                                 .record = dp_view_of(&round, sizeof round),
                                 .cert = dp_view_text("certificate")};
    const dp_hash vector = ledger_root(LEDGER_VECTORS + round, LEDGER_BLOB);
    const dp_pin staged = {.run = run, .kind = DP_PIN_PENDING};
    const dp_store_row kept = {
        .name = "pending", .keep = {vector}, .bytes = dp_view_of(&round, sizeof round)};
    DP_TRY(ledger_put(store, round, LEDGER_BLOB, DP_PIN_BLOB, round));
    book->blob = round;
    DP_TRY(ledger_put(store, LEDGER_VECTORS + round, LEDGER_BLOB, DP_PIN_PENDING, 0));
    DP_TRY(dp_store_row_put(store, &run, &kept));
    book->row = round;
    DP_TRY(dp_object_unpin(store, &vector, &staged)); /* From here on the row alone keeps it. */
    DP_TRY(dp_vote_save(store, &run, &vote));
    book->vote = round;
    DP_TRY(dp_chain_append(store, &run, &row));
    book->record = round;
    if (round % LEDGER_CKPT_EVERY == 0) {
        dp_ckpt ckpt = {
            .round = round, .slot = round, .state_root = name_of(round), .created_ms = round};
        uint8_t *bytes = noise(round + 500, LEDGER_STATE);
        const dp_status status = dp_ckpt_save(store, &run, &ckpt, dp_view_of(bytes, LEDGER_STATE));
        free(bytes);
        DP_TRY(status);
        book->ckpt = round;
    }
    return DP_OK;
}

static inline dp_status ledger_start(dp_store *store, ledger *book)
{
    const dp_hash run = name_of(1);
    const dp_vote_key_row key = {.secret = {1, 2, 3}, .public_key = {4, 5}};
    DP_TRY(dp_vote_create_key(store, &run, &key));
    book->key = true;
    return DP_OK;
}

typedef struct ledger_kept {
    dp_store *store;
    uint64_t round;
} ledger_kept;

/* The one row names a round, and the vector of that round is whole. */
static inline dp_status ledger_visit(const dp_store_row *row, void *context)
{
    ledger_kept *kept = (ledger_kept *)context;
    if (kept->round != 0 || row->bytes.size != sizeof kept->round) {
        return DP_CORRUPT;
    }
    memcpy(&kept->round, row->bytes.data, sizeof kept->round);
    const bool whole =
        holds_noise(kept->store, &row->keep[0], LEDGER_VECTORS + kept->round, LEDGER_BLOB);
    return whole ? DP_OK : DP_NOTFOUND;
}

/* All acknowledged data are present and whole, and no present data are broken. */
static inline bool ledger_holds(dp_store *store, const ledger *book)
{
    const dp_hash run = name_of(1);
    bool holds = true;
    for (uint64_t round = 1; round <= book->blob; round++) {
        const dp_hash root = ledger_root(round, LEDGER_BLOB);
        holds = holds && holds_noise(store, &root, round, LEDGER_BLOB);
    }
    dp_chain_tip tip = {0};
    const dp_status head = dp_chain_head(store, &run, &tip);
    holds = holds && (head == DP_OK || head == DP_NOTFOUND) && tip.slot >= book->record &&
            tip.slot <= book->record + 1;
    for (uint64_t slot = 1; slot <= tip.slot; slot++) {
        holds = holds && dp_chain_read(store, &run, slot, NULL, NULL, NULL) == DP_OK;
    }
    dp_buf record;
    dp_buf_init(&record, 100);
    dp_vote_row vote = {0};
    const dp_status voted = dp_vote_load(store, &run, &vote, &record);
    holds = holds && (voted == DP_OK || (voted == DP_NOTFOUND && !book->key)) &&
            vote.slot >= book->vote;
    dp_buf_close(&record);
    ledger_kept kept = {.store = store};
    holds = holds && dp_store_row_each(store, &run, "", ledger_visit, &kept) == DP_OK &&
            kept.round >= book->row;
    dp_ckpt ckpt = {0};
    uint32_t n_bad = 0;
    const dp_status state = load_ckpt(store, &run, &ckpt, NULL, &n_bad);
    return holds && (state == DP_OK || state == DP_NOTFOUND) && n_bad == 0 &&
           ckpt.round >= book->ckpt;
}

#endif
