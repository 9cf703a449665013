/* Records the data that a store has acknowledged, and checks that after a power cut the store holds
 * exactly that: nothing lost, nothing half, nothing back that was removed. It writes nothing but
 * the rows that the check itself needs. */
#ifndef DP_TESTS_STORE_BOOK_H
#define DP_TESTS_STORE_BOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "store/ckpt.h"
#include "store/db.h"
#include "store/object.h"

enum {
    DP_BOOK_OBJECTS = 20,
    DP_BOOK_LARGE = 16, /* objects from here on have several chunks */
    DP_BOOK_OBJECT_MAX = 600000,
    DP_BOOK_CHUNKS_MAX = 3,
    DP_BOOK_KINDS = 4,  /* of pins: those below */
    DP_BOOK_ROUNDS = 8, /* of pins */
    DP_BOOK_ROWS = 5,
    DP_BOOK_KEYS = 4,
    DP_BOOK_PEERS = 3,
    DP_BOOK_SENTENCE_MAX = 200,
};

/* Objects are the same in every world; made at first use. Neighbours share chunks. */
typedef struct dp_book_matter {
    uint8_t *bytes;
    uint64_t size;
    uint32_t n_chunks;
    dp_hash root;
    dp_hash leaves[DP_BOOK_CHUNKS_MAX];
} dp_book_matter;
const dp_book_matter *dp_book_matter_of(uint32_t object);

typedef struct dp_book_object {
    uint32_t pins;   /* bit kind index * DP_BOOK_ROUNDS + round */
    bool whole;      /* complete */
    uint32_t chunks; /* bit per chunk that is durable */
} dp_book_object;

typedef struct dp_book_row {
    uint32_t version; /* 0: no row */
    int32_t keep[3];  /* objects, -1: none */
} dp_book_row;

typedef struct dp_book_vote {
    uint32_t key; /* 0: none; the secret is made of it */
    uint64_t slot;
    int64_t promised;
    int64_t accepted;
} dp_book_vote;

typedef struct dp_book_ckpt {
    uint64_t round;
    uint32_t object;
    bool kept;
} dp_book_ckpt;

typedef struct dp_book {
    dp_book_object objects[DP_BOOK_OBJECTS];
    dp_book_row rows[DP_BOOK_ROWS];
    dp_book_vote vote;
    uint64_t head; /* of the chain */
    dp_book_ckpt ckpts[DP_CKPTS_MAX];
    uint32_t n_ckpts; /* complete ones, newest first */
    uint32_t kv[DP_BOOK_KEYS];
    uint32_t peers[DP_BOOK_PEERS];
    uint64_t events;
    uint64_t incarnation;
} dp_book;

/* Contents that follow from a version. */
dp_hash dp_book_name(uint64_t number);
dp_hash dp_book_run(void);
dp_pin dp_book_pin(uint32_t kind, uint32_t round); /* indices */
const char *dp_book_row_name(uint32_t row);
const char *dp_book_key_name(uint32_t key);
/* 100 to 900 bytes that follow from the number; lives until the next call. */
dp_view dp_book_text(uint64_t number);

typedef struct dp_book_check {
    dp_store *store;
    const dp_book *now;  /* acknowledged */
    const dp_book *next; /* the same, or what the call that was cut off would have made of it */
    bool atomic;         /* that call does all or nothing */
    bool quota;          /* checkpoints but the newest may be dropped to make room */
    bool thorough;       /* the whole chain */
    int32_t loose;       /* object that may be there without a reason of the book's, or -1 */
    dp_book seen;        /* what is there: the book to go on with */
    uint32_t olds;       /* differences that stand as before, and as after */
    uint32_t news;
    char sentence[DP_BOOK_SENTENCE_MAX]; /* empty: all is well */
} dp_book_check;

/* Right after the store was opened. True if all is well; then seen is filled. */
bool dp_book_check_run(dp_book_check *check);
/* The complete checkpoints, newest first, into seen; every one must be known to now or next, and
 * those that retention keeps must be there. */
bool dp_book_check_ckpts(dp_book_check *check);

#endif
