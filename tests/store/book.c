#include "tests/store/book.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/rng.h"
#include "store/chain.h"
#include "store/journal.h"
#include "store/peers.h"
#include "store/rows.h"
#include "store/vote.h"

enum { CHAIN_LOOK = 12, EVENTS_LOOK = 8 };

static const dp_pin_kind kinds[DP_BOOK_KINDS] = {DP_PIN_BLOB, DP_PIN_DATA, DP_PIN_PENDING,
                                                 DP_PIN_EXCHANGE};

/* ---- contents ---- */

static void fill(uint8_t *out, size_t size, uint64_t seed)
{
    dp_rng rng;

    dp_rng_init(&rng, seed);
    for (size_t i = 0; i < size; i++) {
        if (i % 8 == 0) {
            const uint64_t word = dp_rng_next(&rng);
            memcpy(out + i, &word, size - i < 8 ? size - i : 8);
        }
    }
}

const dp_book_matter *dp_book_matter_of(uint32_t object)
{
    static const uint32_t sizes[DP_BOOK_OBJECTS] = {
        0,    1,     700,   4096,  9000,  9000,  9000,   9000,   9000,   9000,
        9000, 20000, 30000, 30000, 65536, 70000, 262145, 300000, 530000, DP_BOOK_OBJECT_MAX};
    static dp_book_matter all[DP_BOOK_OBJECTS];
    dp_book_matter *m = &all[object];

    dp_assert(object < DP_BOOK_OBJECTS);
    if (m->bytes == NULL) {
        m->size = sizes[object];
        m->n_chunks = dp_object_chunks(m->size);
        dp_assert(m->n_chunks <= DP_BOOK_CHUNKS_MAX);
        m->bytes = malloc(m->size + 1);
        dp_assert(m->bytes != NULL);
        for (uint32_t i = 0; i < m->n_chunks; i++) {
            /* The first chunks of the large ones are the same two by two. */
            const uint64_t seed = i == 0 && object >= DP_BOOK_LARGE ? object / 2 : object + 100;
            fill(m->bytes + (size_t)i * DP_CHUNK_BYTES_MIN, dp_object_chunk_size(m->size, i), seed);
        }
        m->root = dp_object_hash(dp_view_of(m->bytes, m->size), m->leaves);
    }
    return m;
}

dp_hash dp_book_name(uint64_t number)
{
    return dp_hash_of("test", dp_view_of(&number, sizeof number));
}

dp_hash dp_book_run(void)
{
    return dp_book_name(1);
}

dp_pin dp_book_pin(uint32_t kind, uint32_t round)
{
    return (dp_pin){.run = dp_book_run(), .kind = kinds[kind], .round = round};
}

const char *dp_book_row_name(uint32_t row)
{
    static const char *const names[DP_BOOK_ROWS] = {"exchange/0", "exchange/1", "exchange/2",
                                                    "exchange/3", "pending"};

    return names[row];
}

const char *dp_book_key_name(uint32_t key)
{
    static const char *const names[DP_BOOK_KEYS] = {"a", "b", "c", "d"};

    return names[key];
}

dp_view dp_book_text(uint64_t number)
{
    static uint8_t text[1000];
    const size_t size = 100 + (size_t)(dp_mix64(number) % 800);

    fill(text, size, number);
    return dp_view_of(text, size);
}

/* ---- saying what is wrong ---- */

static bool wrong(dp_book_check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool wrong(dp_book_check *c, const char *format, ...)
{
    va_list arguments;

    if (c->sentence[0] == '\0') {
        va_start(arguments, format);
        vsnprintf(c->sentence, sizeof c->sentence, format, arguments);
        va_end(arguments);
    }
    return false;
}

/* One thing is as before the call that was cut off, or as after it. */
static bool either(dp_book_check *c, const char *what, uint64_t old, uint64_t new, uint64_t got)
{
    if (got != old && got != new) {
        return wrong(c, "%s is %llu, was %llu and may be %llu", what, (unsigned long long)got,
                     (unsigned long long)old, (unsigned long long)new);
    }
    if (old != new) {
        c->olds += got == old ? 1 : 0;
        c->news += got == new ? 1 : 0;
    }
    return true;
}

/* ---- small rows ---- */

static bool check_kv(dp_book_check *c, uint32_t key)
{
    dp_buf got;
    uint32_t version = 0;

    dp_buf_init(&got, 2000);
    const dp_status status = dp_store_get(c->store, dp_book_key_name(key), &got);
    const dp_view view = dp_buf_view(&got);
    if (status == DP_OK && view.size >= sizeof version) {
        memcpy(&version, view.data, sizeof version);
    }
    const bool whole = version == 0 || dp_view_equal(dp_view_of(view.data + 4, view.size - 4),
                                                     dp_book_text(version));
    dp_buf_close(&got);
    if ((status != DP_OK && status != DP_NOTFOUND) || !whole) {
        return wrong(c, "key %u does not read: %s", key, dp_status_name(status));
    }
    c->seen.kv[key] = version;
    return either(c, "a value", c->now->kv[key], c->next->kv[key], version);
}

static bool check_peer(dp_book_check *c, uint32_t peer)
{
    static dp_peer_row row;
    const dp_hash id = dp_book_name(500 + peer);
    const dp_status status = dp_peer_load(c->store, &id, &row);
    const uint32_t version = status == DP_OK ? (uint32_t)row.n_bad : 0;

    if (status != DP_OK && status != DP_NOTFOUND) {
        return wrong(c, "peer %u does not read: %s", peer, dp_status_name(status));
    }
    if (status == DP_OK &&
        !dp_view_equal(dp_view_of(row.card, row.card_bytes), dp_book_text(version))) {
        return wrong(c, "peer %u has the card of another version", peer);
    }
    c->seen.peers[peer] = version;
    return either(c, "a peer", c->now->peers[peer], c->next->peers[peer], version);
}

static bool check_events(dp_book_check *c)
{
    static dp_journal_event list[EVENTS_LOOK];
    uint32_t count = 0;

    if (dp_journal_back(c->store, UINT64_MAX, list, EVENTS_LOOK, &count) != DP_OK) {
        return wrong(c, "the journal does not read");
    }
    for (uint32_t i = 0; i < count; i++) {
        if (list[i].round != list[0].round + i || list[i].id != list[0].id + i) {
            return wrong(c, "the journal has a hole before event %llu",
                         (unsigned long long)list[i].round);
        }
    }
    c->seen.events = count == 0 ? 0 : list[count - 1].round;
    return either(c, "the last event", c->now->events, c->next->events, c->seen.events);
}

/* ---- vote and chain ---- */

static uint64_t vote_digest(const dp_book_vote *v)
{
    uint64_t d = v->key == 0 ? 0 : dp_mix64(v->key);

    if (v->key != 0) {
        d = dp_mix64(d ^ v->slot);
        d = dp_mix64(d ^ (uint64_t)(v->promised + 2));
        d = dp_mix64(d ^ (uint64_t)(v->accepted + 2));
    }
    return d;
}

static bool check_vote(dp_book_check *c)
{
    const dp_hash run = dp_book_run();
    dp_book_vote *seen = &c->seen.vote;
    dp_vote_row row = {0};
    dp_vote_key_row key = {0};
    dp_buf record;

    dp_buf_init(&record, 2000);
    const dp_status status = dp_vote_load(c->store, &run, &row, &record);
    *seen = (dp_book_vote){0};
    if (status == DP_OK && dp_vote_load_key(c->store, &run, &key) == DP_OK) {
        memcpy(&seen->key, key.secret, sizeof seen->key);
        seen->slot = row.slot;
        seen->promised = row.promised;
        seen->accepted = row.accepted;
    }
    const bool right =
        status != DP_OK || row.accepted == DP_VOTE_ROW_NONE ||
        dp_view_equal(row.record, dp_book_text(row.slot * 100 + (uint64_t)row.accepted));
    dp_buf_close(&record);
    if ((status != DP_OK && status != DP_NOTFOUND) || !right) {
        return wrong(c, "the vote does not read: %s", dp_status_name(status));
    }
    return either(c, "the vote", vote_digest(&c->now->vote), vote_digest(&c->next->vote),
                  vote_digest(seen));
}

static dp_status visit_record(const dp_chain_record *row, void *context)
{
    uint64_t *next = context;
    const dp_hash hash = dp_book_name(row->slot);

    if (row->slot != *next || !dp_hash_equal(&row->hash, &hash) ||
        !dp_view_equal(row->record, dp_book_text(row->slot)) ||
        !dp_view_equal(row->cert, dp_book_text(row->slot + 100000))) {
        return DP_DIVERGED;
    }
    (*next)++;
    return DP_OK;
}

static bool check_chain(dp_book_check *c)
{
    const dp_hash run = dp_book_run();
    dp_chain_tip tip = {0};
    const dp_status status = dp_chain_head(c->store, &run, &tip);

    if (status != DP_OK && status != DP_NOTFOUND) {
        return wrong(c, "the head does not read: %s", dp_status_name(status));
    }
    c->seen.head = status == DP_OK ? tip.slot : 0;
    if (!either(c, "the head", c->now->head, c->next->head, c->seen.head)) {
        return false;
    }
    uint64_t next = c->seen.head > CHAIN_LOOK && !c->thorough ? c->seen.head - CHAIN_LOOK : 1;
    const dp_status each =
        c->seen.head == 0
            ? DP_OK
            : dp_chain_each(c->store, &run, next, (uint32_t)c->seen.head, visit_record, &next);
    if (each != DP_OK || (c->seen.head != 0 && next != c->seen.head + 1)) {
        return wrong(c, "record %llu of %llu: %s", (unsigned long long)next,
                     (unsigned long long)c->seen.head, dp_status_name(each));
    }
    return true;
}

/* ---- rows ---- */

static int32_t object_of(const dp_hash *root)
{
    for (uint32_t i = 0; i < DP_BOOK_OBJECTS; i++) {
        if (dp_hash_equal(&dp_book_matter_of(i)->root, root)) {
            return (int32_t)i;
        }
    }
    return -1;
}

static dp_status visit_row(const dp_store_row *row, void *context)
{
    dp_book_check *c = context;

    for (uint32_t i = 0; i < DP_BOOK_ROWS; i++) {
        if (strcmp(row->name, dp_book_row_name(i)) == 0 && row->bytes.size > 4) {
            memcpy(&c->seen.rows[i].version, row->bytes.data, 4);
            for (int k = 0; k < 3; k++) {
                c->seen.rows[i].keep[k] =
                    dp_hash_is_zero(&row->keep[k]) ? -1 : object_of(&row->keep[k]);
            }
            return dp_view_equal(dp_view_of(row->bytes.data + 4, row->bytes.size - 4),
                                 dp_book_text(c->seen.rows[i].version))
                       ? DP_OK
                       : DP_DIVERGED;
        }
    }
    return DP_DIVERGED;
}

static bool check_rows(dp_book_check *c)
{
    const dp_hash run = dp_book_run();

    for (uint32_t i = 0; i < DP_BOOK_ROWS; i++) {
        c->seen.rows[i] = (dp_book_row){.keep = {-1, -1, -1}};
    }
    const dp_status status = dp_store_row_each(c->store, &run, "", visit_row, c);
    if (status != DP_OK) {
        return wrong(c, "the rows do not read: %s", dp_status_name(status));
    }
    for (uint32_t i = 0; i < DP_BOOK_ROWS; i++) {
        const dp_book_row *seen = &c->seen.rows[i];
        if (!either(c, "a row", c->now->rows[i].version, c->next->rows[i].version, seen->version)) {
            return false;
        }
        const dp_book_row *from =
            seen->version == c->now->rows[i].version ? &c->now->rows[i] : &c->next->rows[i];
        if (seen->version != 0 && memcmp(seen->keep, from->keep, sizeof seen->keep) != 0) {
            return wrong(c, "row %u keeps other objects than it named", i);
        }
    }
    return true;
}

/* ---- checkpoints ---- */

static const dp_book_ckpt *find_ckpt(const dp_book *book, uint64_t round)
{
    for (uint32_t i = 0; i < book->n_ckpts; i++) {
        if (book->ckpts[i].round == round) {
            return &book->ckpts[i];
        }
    }
    return NULL;
}

static bool read_ckpts(dp_book_check *c)
{
    const dp_hash run = dp_book_run();
    dp_ckpt list[DP_CKPTS_MAX];
    uint32_t count = 0;

    c->seen.n_ckpts = 0;
    if (dp_ckpt_list(c->store, &run, list, DP_CKPTS_MAX, &count) != DP_OK) {
        return wrong(c, "the checkpoints do not read");
    }
    for (uint32_t i = 0; i < count; i++) {
        const dp_book_ckpt *known = find_ckpt(c->now, list[i].round);
        const dp_hash name = dp_book_name(list[i].round);
        known = known != NULL ? known : find_ckpt(c->next, list[i].round);
        if (list[i].state != DP_CKPT_COMPLETE && list[i].state != DP_CKPT_KEPT) {
            return wrong(c, "checkpoint %llu is neither complete nor gone",
                         (unsigned long long)list[i].round);
        }
        if (known == NULL || object_of(&list[i].object) != (int32_t)known->object ||
            !dp_hash_equal(&list[i].state_root, &name)) {
            return wrong(c, "checkpoint %llu is not one that was made",
                         (unsigned long long)list[i].round);
        }
        c->seen.ckpts[c->seen.n_ckpts++] = (dp_book_ckpt){
            .round = list[i].round, .object = known->object, .kept = list[i].state == DP_CKPT_KEPT};
    }
    return true;
}

bool dp_book_check_ckpts(dp_book_check *c)
{
    if (!read_ckpts(c)) {
        return false;
    }
    const bool made = c->next->n_ckpts > 0 && c->seen.n_ckpts > 0 &&
                      find_ckpt(c->now, c->seen.ckpts[0].round) == NULL;
    for (uint32_t i = 0; i < c->now->n_ckpts; i++) {
        const dp_book_ckpt *old = &c->now->ckpts[i];
        const dp_book_ckpt *next = find_ckpt(c->next, old->round);
        const dp_book_ckpt *seen = find_ckpt(&c->seen, old->round);
        const bool stays =
            (old->kept && next != NULL && next->kept) || i + (made ? 1 : 0) < (c->quota ? 1U : 2U);
        if (stays && seen == NULL) {
            return wrong(c, "checkpoint %llu is lost", (unsigned long long)old->round);
        }
        if (seen != NULL && seen->kept != old->kept && (next == NULL || seen->kept != next->kept)) {
            return wrong(c, "checkpoint %llu has changed", (unsigned long long)old->round);
        }
    }
    return true;
}

/* ---- objects ---- */

static bool named(const dp_book *book, uint32_t object)
{
    for (uint32_t i = 0; i < book->n_ckpts; i++) {
        if (book->ckpts[i].object == object) {
            return true;
        }
    }
    for (uint32_t i = 0; i < DP_BOOK_ROWS; i++) {
        for (int k = 0; k < 3; k++) {
            if (book->rows[i].version != 0 && book->rows[i].keep[k] == (int32_t)object) {
                return true;
            }
        }
    }
    return false;
}

static bool check_chunks(dp_book_check *c, uint32_t object, uint32_t promised)
{
    static uint8_t room[DP_CHUNK_BYTES_MAX];
    const dp_book_matter *m = dp_book_matter_of(object);
    uint8_t missing[1] = {0};

    if (dp_object_missing(c->store, &m->root, missing, sizeof missing, NULL) != DP_OK) {
        return wrong(c, "object %u does not tell what is missing", object);
    }
    for (uint32_t i = 0; i < m->n_chunks; i++) {
        size_t size = 0;
        if ((missing[0] >> i & 1) != 0) {
            if ((promised >> i & 1) != 0) {
                return wrong(c, "chunk %u of object %u is lost", i, object);
            }
            continue;
        }
        c->seen.objects[object].chunks |= 1U << i;
        if (dp_object_read_chunk(c->store, &m->root, i, room, sizeof room, &size) != DP_OK ||
            size != dp_object_chunk_size(m->size, i) ||
            memcmp(room, m->bytes + (size_t)i * DP_CHUNK_BYTES_MIN, size) != 0) {
            return wrong(c, "chunk %u of object %u is damaged", i, object);
        }
    }
    return true;
}

static bool check_object(dp_book_check *c, uint32_t object)
{
    static uint8_t room[DP_BOOK_OBJECT_MAX];
    const dp_book_matter *m = dp_book_matter_of(object);
    const dp_book_object *old = &c->now->objects[object];
    const dp_book_object *new = &c->next->objects[object];
    dp_book_object *seen = &c->seen.objects[object];
    const bool reason = named(&c->seen, object);
    dp_object_info info = {0};
    const dp_status status = dp_object_stat(c->store, &m->root, &info);

    *seen = (dp_book_object){.pins = old->pins & new->pins};
    if (status != DP_OK && status != DP_NOTFOUND) {
        return wrong(c, "object %u does not read: %s", object, dp_status_name(status));
    }
    if (status == DP_NOTFOUND) {
        return reason || (old->pins != 0 && new->pins != 0) ? wrong(c, "object %u is lost", object)
                                                            : true;
    }
    if (!reason && old->pins == 0 && new->pins == 0 && (int32_t)object != c->loose) {
        return wrong(c, "object %u is there without a reason", object);
    }
    seen->whole = info.complete;
    if (!info.complete && (reason || (old->whole && new->whole))) {
        return wrong(c, "object %u is not whole any more", object);
    }
    if (!info.complete) {
        return check_chunks(c, object, old->chunks & new->chunks);
    }
    seen->chunks = (1U << m->n_chunks) - 1;
    if (dp_object_read(c->store, &m->root, room, m->size) != DP_OK ||
        memcmp(room, m->bytes, m->size) != 0) {
        return wrong(c, "object %u is damaged", object);
    }
    return true;
}

/* No pin is lost, and none is back. */
static bool check_pins(dp_book_check *c, uint32_t kind)
{
    static const uint32_t all = (1U << DP_BOOK_ROUNDS) - 1;
    const dp_pin pin = dp_book_pin(kind, 0);
    dp_hash roots[DP_BOOK_OBJECTS + 1];
    uint32_t count = 0;

    if (dp_object_pins(c->store, &pin.run, pin.kind, roots, DP_BOOK_OBJECTS + 1, &count) != DP_OK) {
        return wrong(c, "the pins do not read");
    }
    for (uint32_t object = 0; object < DP_BOOK_OBJECTS; object++) {
        const bool old = (c->now->objects[object].pins >> kind * DP_BOOK_ROUNDS & all) != 0;
        const bool new = (c->next->objects[object].pins >> kind * DP_BOOK_ROUNDS & all) != 0;
        bool got = false;
        for (uint32_t i = 0; i < count; i++) {
            got = got || object_of(&roots[i]) == (int32_t)object;
        }
        if (got != old && got != new) {
            return wrong(c, "object %u: a pin is %s", object, got ? "back" : "lost");
        }
    }
    return true;
}

bool dp_book_check_run(dp_book_check *c)
{
    bool right = check_vote(c) && check_chain(c) && check_rows(c) && check_events(c) &&
                 dp_book_check_ckpts(c);

    for (uint32_t i = 0; right && i < DP_BOOK_KEYS; i++) {
        right = check_kv(c, i);
    }
    for (uint32_t i = 0; right && i < DP_BOOK_PEERS; i++) {
        right = check_peer(c, i);
    }
    for (uint32_t i = 0; right && i < DP_BOOK_KINDS; i++) {
        right = check_pins(c, i);
    }
    for (uint32_t i = 0; right && i < DP_BOOK_OBJECTS; i++) {
        right = check_object(c, i);
    }
    if (right && c->atomic && c->olds != 0 && c->news != 0) {
        right = wrong(c, "half of a transaction is there");
    }
    return right;
}
