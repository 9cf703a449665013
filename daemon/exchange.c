#include "daemon/exchange.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/list.h"
#include "daemon/pile.h"

/* A part that came early. */
typedef struct kept {
    dp_list item;
    dp_buf bytes;
} kept;

/* A mean with its head, for all that have not got it. */
typedef struct made {
    dp_list item; /* in exchange->made_free */
    uint32_t refs;
    size_t size;
    uint8_t *bytes;
} made;

/* One that a full lane did not take. */
typedef struct owed {
    dp_list item;
    made *mean;
} owed;

typedef struct member {
    dp_peer peer;
    uint32_t next_part; /* chunk of this owner that it gets next */
    uint64_t sent;      /* bytes of parts */
    bool open;          /* it has begun this exchange */
    bool opened_next;   /* or the next one */
    dp_list means;      /* owed */
    dp_list early;      /* kept */
    uint64_t early_bytes;
} member;

struct dp_exchange {
    dp_exchange_config config;
    dp_dense_tally tally;
    uint32_t *present;
    dp_pile *pile; /* of own chunks, by their place among them */
    uint64_t number;
    uint32_t weight;
    float *x; /* NULL: between exchanges */
    uint64_t dropped;
    dp_status failed;
    bool replaying;
    dp_list made_free; /* made: memory of means that all have, whose pages are warm */
    member members[DP_DENSE_MEMBERS_MAX];
};

static void write_head(uint8_t *room, const dp_dense_message *head)
{
    dp_writer writer = dp_writer_of(room, DP_DENSE_HEAD_BYTES);
    dp_dense_write_head(&writer, head);
    dp_assert(writer.size == DP_DENSE_HEAD_BYTES && !writer.full);
}

static float *chunk_of(const dp_exchange *exchange, uint32_t chunk)
{
    return exchange->x + (uint64_t)chunk * exchange->tally.layout.chunk_elements;
}

static bool keep(dp_list *list, dp_buf *bytes)
{
    kept *entry = dp_alloc(1, sizeof *entry);
    if (entry == NULL) {
        return false;
    }
    entry->bytes = *bytes;
    dp_buf_init(bytes, bytes->max);
    dp_list_push_back(list, &entry->item);
    return true;
}

static void drop_kept(dp_list *list)
{
    while (!dp_list_empty(list)) {
        kept *entry = DP_LIST_ITEM(list->next, kept, item);
        dp_list_remove(&entry->item);
        dp_buf_close(&entry->bytes);
        dp_free(entry);
    }
}

/* ---- means that wait ---- */

/* NULL: no memory. */
static made *take_made(dp_exchange *exchange)
{
    if (!dp_list_empty(&exchange->made_free)) {
        made *mean = DP_LIST_ITEM(exchange->made_free.prev, made, item);
        dp_list_remove(&mean->item);
        mean->refs = 1;
        return mean;
    }
    const size_t most =
        DP_DENSE_HEAD_BYTES +
        exchange->config.ops->bytes(exchange->config.codec, exchange->tally.layout.chunk_elements);
    made *mean = dp_alloc(1, sizeof *mean);
    uint8_t *bytes = dp_alloc(1, most);
    if (mean == NULL || bytes == NULL) {
        dp_free(mean);
        dp_free(bytes);
        return NULL;
    }
    mean->refs = 1;
    mean->bytes = bytes;
    return mean;
}

static void release_made(dp_exchange *exchange, made *mean)
{
    mean->refs--;
    if (mean->refs == 0) {
        dp_list_push_back(&exchange->made_free, &mean->item);
    }
}

static bool owe(member *to, made *mean)
{
    owed *entry = dp_alloc(1, sizeof *entry);
    if (entry == NULL) {
        return false;
    }
    entry->mean = mean;
    mean->refs++;
    dp_list_push_back(&to->means, &entry->item);
    return true;
}

static void pay(dp_exchange *exchange, owed *entry)
{
    release_made(exchange, entry->mean);
    dp_list_remove(&entry->item);
    dp_free(entry);
}

static void drop_owed(dp_exchange *exchange, dp_list *list)
{
    while (!dp_list_empty(list)) {
        pay(exchange, DP_LIST_ITEM(list->next, owed, item));
    }
}

/* ---- sending ---- */

static bool give(dp_exchange *exchange, const member *to, const made *mean)
{
    uint8_t *room = NULL;
    const dp_status status =
        dp_transport_compose(exchange->config.transport, &to->peer, mean->size, &room);
    if (status == DP_OK) {
        memcpy(room, mean->bytes, mean->size);
        dp_transport_post(exchange->config.transport);
    }
    /* Who has no lane misses it, and asks for nothing: its parts or ours are not in the mean. */
    return status != DP_AGAIN;
}

/* Near by means go first, while they are in the cache. On a long path parts do: with them each owner makes its means one delay after
 * half of the bytes have left, and the other half, the means, leaves without a gap; otherwise the last part leaves at the end, and its mean
 * has yet to be made and to come back. */
static bool parts_come_first(const dp_exchange *exchange, const member *to)
{
    const uint32_t index = (uint32_t)(to - exchange->members);
    return to->next_part < exchange->tally.layout.first[index + 1] &&
           (to->open || to->sent < DP_EXCHANGE_EARLY_BYTES) &&
           dp_transport_is_far(exchange->config.transport, &to->peer);
}

/* Somebody waits for them. False: the lane is full. */
static bool send_means(dp_exchange *exchange, member *to)
{
    while (!dp_list_empty(&to->means)) {
        owed *entry = DP_LIST_ITEM(to->means.next, owed, item);
        if (!give(exchange, to, entry->mean)) {
            return false;
        }
        pay(exchange, entry);
    }
    return true;
}

/* False: the lane is full, or there is nothing left for it. */
static bool send_part(dp_exchange *exchange, uint32_t index)
{
    const dp_exchange_config *config = &exchange->config;
    const dp_dense_layout *layout = &exchange->tally.layout;
    member *to = &exchange->members[index];
    uint8_t *room = NULL;
    if (exchange->failed != DP_OK || to->next_part == layout->first[index + 1] ||
        (!to->open && to->sent >= DP_EXCHANGE_EARLY_BYTES)) {
        return false;
    }
    const uint32_t chunk = to->next_part;
    const size_t n = dp_dense_chunk_elements(layout, chunk);
    const size_t bytes = config->ops->bytes(config->codec, n);
    const dp_dense_message head = {.exchange = exchange->number,
                                   .chunk = chunk,
                                   .kind = DP_DENSE_PART,
                                   .codec = config->codec,
                                   .weight = (uint16_t)exchange->weight};
    if (exchange->present[chunk] != 0) { /* It was closed without this part. */
        to->next_part++;
        return true;
    }
    const dp_status status =
        dp_transport_compose(config->transport, &to->peer, DP_DENSE_HEAD_BYTES + bytes, &room);
    if (status == DP_AGAIN) {
        return false;
    }
    if (status == DP_OK) {
        write_head(room, &head);
        exchange->failed = config->ops->encode(config->codec, chunk_of(exchange, chunk), n,
                                               room + DP_DENSE_HEAD_BYTES);
        if (exchange->failed != DP_OK) {
            return false;
        }
        dp_transport_post(config->transport);
    } else if (status != DP_NOTFOUND) { /* Who has no lane misses it. */
        exchange->failed = status;
        return false;
    }
    to->next_part++;
    to->sent += bytes;
    return true;
}

static void finish_if_done(dp_exchange *exchange)
{
    const dp_dense_layout *layout = &exchange->tally.layout;
    if (exchange->x == NULL || exchange->replaying) {
        return;
    }
    if (exchange->failed == DP_OK) {
        for (uint32_t i = 0; i < layout->n_members; i++) {
            if (i != exchange->tally.self &&
                (exchange->members[i].next_part < layout->first[i + 1] ||
                 !dp_list_empty(&exchange->members[i].means))) {
                return;
            }
        }
        if (!dp_dense_is_done(&exchange->tally)) {
            return;
        }
    }
    exchange->x = NULL;
    exchange->config.done(exchange->config.context, exchange->failed);
}

/* A chunk for each in turn, so that all lines are busy from the start. */
static void pump(dp_exchange *exchange)
{
    bool moved = true;
    while (moved && exchange->x != NULL) { /* Each turn sends a chunk, or ends. */
        moved = false;
        for (uint32_t k = 1; k < exchange->tally.layout.n_members; k++) {
            const uint32_t i = (exchange->tally.self + k) % exchange->tally.layout.n_members;
            member *to = &exchange->members[i];
            if (parts_come_first(exchange, to) || send_means(exchange, to)) {
                moved = send_part(exchange, i) || moved;
            }
        }
    }
    finish_if_done(exchange);
}

/* ---- adding up ---- */

/* What is known of an own chunk but for what came of it. */
static dp_terms terms_of(const dp_exchange *exchange, uint32_t chunk)
{
    return (dp_terms){.codec = exchange->config.codec,
                      .n = dp_dense_chunk_elements(&exchange->tally.layout, chunk),
                      .x = chunk_of(exchange, chunk)};
}

/* Of an own chunk: its place in the pile. */
static uint32_t place_of(const dp_exchange *exchange, uint32_t chunk)
{
    return chunk - exchange->tally.layout.first[exchange->tally.self];
}

static void add(dp_exchange *exchange, const dp_dense_message *message)
{
    dp_terms terms = terms_of(exchange, message->chunk);
    const dp_status status =
        dp_pile_add(exchange->pile, place_of(exchange, message->chunk), &terms, message->bytes,
                    message->weight, exchange->config.ops->add);
    exchange->failed = status == DP_OK ? exchange->failed : status;
}

/* Of two members the other one's lane, if it takes a mean now: then it is made where it is sealed. */
static uint8_t *room_of_the_other(dp_exchange *exchange, size_t size)
{
    member *to = &exchange->members[1 - exchange->tally.self % 2];
    uint8_t *room = NULL;
    const bool has =
        exchange->tally.layout.n_members == 2 && !parts_come_first(exchange, to) &&
        send_means(exchange, to) &&
        dp_transport_compose(exchange->config.transport, &to->peer, size, &room) == DP_OK;
    return has ? room : NULL;
}

static dp_status spread(dp_exchange *exchange, made *mean)
{
    const dp_dense_layout *layout = &exchange->tally.layout;
    for (uint32_t k = 1; k < layout->n_members; k++) {
        member *to = &exchange->members[(exchange->tally.self + k) % layout->n_members];
        if ((parts_come_first(exchange, to) || !send_means(exchange, to) ||
             !give(exchange, to, mean)) &&
            !owe(to, mean)) {
            return DP_NOMEM;
        }
    }
    return DP_OK;
}

/* The mean goes to all as the same bytes, and here too what they decode to is what counts. last: the part that completes it, or NULL. */
static void close_chunk(dp_exchange *exchange, uint32_t chunk, const dp_dense_message *last)
{
    const dp_exchange_config *config = &exchange->config;
    dp_terms terms = terms_of(exchange, chunk);
    const size_t size = DP_DENSE_HEAD_BYTES + config->ops->bytes(config->codec, terms.n);
    const dp_dense_message head = {.exchange = exchange->number,
                                   .chunk = chunk,
                                   .kind = DP_DENSE_MEAN,
                                   .codec = config->codec,
                                   .present = dp_dense_present(&exchange->tally, chunk)};
    uint8_t *room = room_of_the_other(exchange, size);
    made *mean = room == NULL ? take_made(exchange) : NULL;
    if (room == NULL && mean == NULL) {
        exchange->failed = DP_NOMEM;
        return;
    }
    uint8_t *at = room != NULL ? room : mean->bytes;
    const uint64_t weights = dp_pile_take(exchange->pile, place_of(exchange, chunk), &terms,
                                          last == NULL ? dp_view_of(NULL, 0) : last->bytes,
                                          last == NULL ? 0 : last->weight);
    write_head(at, &head);
    exchange->failed = config->ops->mean(&terms, weights, at + DP_DENSE_HEAD_BYTES);
    dp_pile_forget(exchange->pile, place_of(exchange, chunk));
    dp_dense_close_chunk(&exchange->tally, chunk);
    if (room != NULL && exchange->failed == DP_OK) {
        dp_transport_post(config->transport);
    }
    if (mean != NULL) {
        mean->size = size;
        exchange->failed = exchange->failed == DP_OK ? spread(exchange, mean) : exchange->failed;
        release_made(exchange, mean);
    }
}

/* ---- what comes ---- */

static uint32_t index_of(const dp_exchange *exchange, const dp_peer *peer)
{
    uint32_t i = 0;
    while (i < exchange->config.n_members && !dp_peer_equal(&exchange->members[i].peer, peer)) {
        i++;
    }
    return i;
}

static void take(dp_exchange *exchange, uint32_t from, const dp_dense_message *message)
{
    const dp_exchange_config *config = &exchange->config;
    const dp_dense_verdict verdict = dp_dense_judge(&exchange->tally, from, message);
    if (verdict == DP_DENSE_REFUSED || verdict == DP_DENSE_LATE) {
        exchange->dropped += verdict == DP_DENSE_REFUSED;
        return;
    }
    const size_t n = dp_dense_chunk_elements(&exchange->tally.layout, message->chunk);
    const bool is_mean = verdict == DP_DENSE_TAKE;
    if (message->codec != config->codec ||
        (is_mean ? config->ops->decode(message->codec, message->bytes, n,
                                       chunk_of(exchange, message->chunk))
                 : config->ops->check(message->codec, message->bytes, n)) != DP_OK) {
        exchange->dropped++;
        return;
    }
    dp_dense_count(&exchange->tally, from, message);
    if (verdict == DP_DENSE_COMPLETE) {
        close_chunk(exchange, message->chunk, message);
    } else if (!is_mean) {
        add(exchange, message);
    }
}

/* Of the next exchange: the sender may not know that this side has not begun it. */
static void take_early(dp_exchange *exchange, member *from, const dp_dense_message *message,
                       dp_view bytes)
{
    dp_buf copy;
    if (message->kind == DP_DENSE_OPEN) {
        from->opened_next = true;
        return;
    }
    dp_buf_init(&copy, DP_MESSAGE_BULK_MAX);
    /* Nobody sends more than the allowance and the message that went over it. */
    if (from->early_bytes >= DP_EXCHANGE_EARLY_BYTES || dp_buf_append(&copy, bytes) != DP_OK ||
        !keep(&from->early, &copy)) {
        exchange->dropped++;
    } else {
        from->early_bytes += message->bytes.size;
    }
    dp_buf_close(&copy);
}

bool dp_exchange_message(dp_exchange *exchange, const dp_peer *peer, dp_view bytes)
{
    dp_dense_message message;
    if (dp_msg_type_of(bytes) != DP_MSG_DENSE) {
        return false;
    }
    const uint32_t from = index_of(exchange, peer);
    if (dp_dense_read(bytes, &message) != DP_OK || from >= exchange->config.n_members) {
        exchange->dropped++;
        return true;
    }
    if (message.exchange == exchange->number + 1) {
        take_early(exchange, &exchange->members[from], &message, bytes);
        return true;
    }
    if (message.exchange != exchange->number || exchange->x == NULL) {
        exchange->dropped++; /* One that is over, or far ahead. */
        return true;
    }
    exchange->members[from].open = true; /* Whatever it says, it has begun. */
    if (message.kind != DP_DENSE_OPEN) {
        take(exchange, from, &message);
    }
    pump(exchange);
    return true;
}

void dp_exchange_drained(dp_exchange *exchange, const dp_peer *peer)
{
    (void)peer;
    if (exchange->x != NULL) {
        pump(exchange);
    }
}

/* ---- one exchange ---- */

static void replay(dp_exchange *exchange, uint32_t from)
{
    dp_list *early = &exchange->members[from].early;
    while (!dp_list_empty(early)) {
        kept *entry = DP_LIST_ITEM(early->next, kept, item);
        dp_dense_message message;
        dp_list_remove(&entry->item);
        if (dp_dense_read(dp_buf_view(&entry->bytes), &message) == DP_OK &&
            exchange->failed == DP_OK) {
            take(exchange, from, &message);
        }
        dp_buf_close(&entry->bytes);
        dp_free(entry);
    }
    exchange->members[from].early_bytes = 0;
}

static void say_open(dp_exchange *exchange, const member *to)
{
    const dp_dense_message open = {.exchange = exchange->number, .kind = DP_DENSE_OPEN};
    uint8_t *room = NULL;
    if (dp_transport_compose(exchange->config.transport, &to->peer, DP_DENSE_HEAD_BYTES, &room) ==
        DP_OK) {
        write_head(room, &open);
        dp_transport_post(exchange->config.transport);
    }
}

void dp_exchange_start(dp_exchange *exchange, uint64_t number, uint32_t weight, float *x)
{
    dp_assert(exchange->x == NULL && x != NULL && number == exchange->number + 1);
    dp_assert(weight > 0 && weight <= DP_DENSE_WEIGHT_MAX);
    const dp_dense_layout layout = exchange->tally.layout;
    dp_dense_tally_init(&exchange->tally, &layout, exchange->config.self, exchange->present);
    dp_pile_restart(exchange->pile, weight);
    exchange->number = number;
    exchange->weight = weight;
    exchange->x = x;
    exchange->failed = DP_OK;
    exchange->replaying = true;
    for (uint32_t i = 0; i < layout.n_members; i++) {
        member *each = &exchange->members[i];
        drop_owed(exchange, &each->means);
        each->next_part = layout.first[i];
        each->sent = 0;
        each->open = each->opened_next;
        each->opened_next = false;
        if (i != exchange->config.self) { /* Full: then it hears by the first part. */
            say_open(exchange, each);
        }
    }
    for (uint32_t i = 0; i < layout.n_members; i++) {
        replay(exchange, i);
    }
    exchange->replaying = false;
    pump(exchange);
}

void dp_exchange_expire(dp_exchange *exchange)
{
    const dp_dense_layout *layout = &exchange->tally.layout;
    if (exchange->x == NULL) {
        return;
    }
    exchange->replaying = true; /* Not done before all of it is. */
    for (uint32_t chunk = layout->first[exchange->tally.self];
         chunk < layout->first[exchange->tally.self + 1]; chunk++) {
        if (!dp_dense_is_closed(&exchange->tally, chunk) && exchange->failed == DP_OK) {
            close_chunk(exchange, chunk, NULL);
        }
    }
    exchange->replaying = false;
    if (exchange->failed == DP_OK && !dp_dense_is_done(&exchange->tally)) {
        exchange->failed = DP_TIMEOUT;
    }
    finish_if_done(exchange);
}

/* ---- life ---- */

/* As many blocks as one record takes with what stands before them: what fills no record is opened where it lies, and stays in the cache
 * on its way. Of a small vector on long paths fewer, so that each owner has some chunks for each connection, and none waits for one that lost a
 * segment; near by more messages would cost a third more time. */
static uint32_t chunk_that_fits(const dp_exchange_config *config)
{
    enum {
        BLOCK = 1024,
        LEAST = 8 * BLOCK,
        EACH = 16, /* chunks that an owner has at least, if they are not that small */
        ROOM = DP_RECORD_PLAIN_MAX - 1 - 4 - DP_DENSE_HEAD_BYTES
    };
    const uint64_t share = config->n_elements / config->n_members / EACH;
    uint32_t elements = DP_DENSE_CHUNK_ELEMENTS_MAX;
    while (elements > BLOCK && config->ops->bytes(config->codec, elements) > ROOM) {
        elements -= BLOCK;
    }
    while (config->far && elements > LEAST && elements - BLOCK >= share) {
        elements -= BLOCK;
    }
    return elements;
}

dp_status dp_exchange_open(dp_exchange **out, const dp_exchange_config *config)
{
    dp_dense_layout layout;
    DP_TRY(dp_dense_layout_init(&layout, config->n_elements, config->n_members, config->rates,
                                chunk_that_fits(config)));
    dp_exchange *exchange = dp_alloc(1, sizeof *exchange);
    if (exchange == NULL) {
        return DP_NOMEM;
    }
    exchange->config = *config;
    dp_list_init(&exchange->made_free);
    for (uint32_t i = 0; i < config->n_members; i++) {
        exchange->members[i].peer = config->peers[i];
        dp_list_init(&exchange->members[i].means);
        dp_list_init(&exchange->members[i].early);
    }
    exchange->present = dp_alloc(layout.n_chunks + 1U, sizeof *exchange->present);
    if (exchange->present == NULL ||
        dp_pile_open(&exchange->pile, layout.first[config->self + 1] - layout.first[config->self],
                     config->ops->bytes(config->codec, layout.chunk_elements),
                     layout.chunk_elements) != DP_OK) {
        dp_exchange_close(exchange);
        return DP_NOMEM;
    }
    dp_dense_tally_init(&exchange->tally, &layout, config->self, exchange->present);
    *out = exchange;
    return DP_OK;
}

void dp_exchange_close(dp_exchange *exchange)
{
    if (exchange == NULL) {
        return;
    }
    for (uint32_t i = 0; i < exchange->config.n_members; i++) {
        drop_owed(exchange, &exchange->members[i].means);
        drop_kept(&exchange->members[i].early);
    }
    while (!dp_list_empty(&exchange->made_free)) {
        made *mean = DP_LIST_ITEM(exchange->made_free.next, made, item);
        dp_list_remove(&mean->item);
        dp_free(mean->bytes);
        dp_free(mean);
    }
    dp_free(exchange->present);
    dp_pile_close(exchange->pile);
    dp_free(exchange);
}

uint32_t dp_exchange_present(const dp_exchange *exchange, uint32_t chunk)
{
    return dp_dense_present(&exchange->tally, chunk);
}

const dp_dense_layout *dp_exchange_layout(const dp_exchange *exchange)
{
    return &exchange->tally.layout;
}

uint64_t dp_exchange_dropped(const dp_exchange *exchange)
{
    return exchange->dropped;
}
