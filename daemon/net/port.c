#include "daemon/net/port.h"

#include <string.h>

#include "base/assert.h"

enum { NETWORK_V4_BYTES = 3, NETWORK_V6_BYTES = 8, REGION_V4_BYTES = 2, REGION_V6_BYTES = 4 };

static dp_port_from from_of(const dp_addr *addr)
{
    dp_port_from from = {.family = addr->family};
    memcpy(from.ip, addr->ip, addr->family == 4 ? 4 : 16);
    return from;
}

static bool same_address(const dp_port_from *a, const dp_port_from *b)
{
    return a->family == b->family && memcmp(a->ip, b->ip, sizeof a->ip) == 0;
}

static bool same_network(const dp_port_from *a, const dp_port_from *b)
{
    const size_t bytes = a->family == 4 ? NETWORK_V4_BYTES : NETWORK_V6_BYTES;
    return a->family == b->family && memcmp(a->ip, b->ip, bytes) == 0;
}

static bool same_region(const dp_port_from *a, const dp_port_from *b)
{
    const size_t bytes = a->family == 4 ? REGION_V4_BYTES : REGION_V6_BYTES;
    return a->family == b->family && memcmp(a->ip, b->ip, bytes) == 0;
}

/* A household changes its IPv6 addresses within its network, so only the network counts. */
static bool same_home(const dp_port_from *a, const dp_port_from *b)
{
    return a->family == 4 ? same_address(a, b) : same_network(a, b);
}

/* ---- one pool ---- */

typedef bool is_like(const dp_port_from *a, const dp_port_from *b);

/* The oldest row that is like from, and the number of such rows. */
static dp_port_row *oldest_like(dp_port_pool *pool, const dp_port_from *from, is_like *like,
                                uint32_t *count)
{
    dp_port_row *oldest = NULL;
    *count = 0;
    for (uint32_t i = 0; i < pool->n; i++) {
        dp_port_row *row = &pool->rows[i];
        if (like(&row->from, from)) {
            ++*count;
            oldest = oldest == NULL || row->since < oldest->since ? row : oldest;
        }
    }
    return oldest;
}

/* Is a given up before b? */
static bool goes_before(const dp_port_row *a, const dp_port_row *b)
{
    if (a->region != b->region) {
        return a->region > b->region;
    }
    return a->network != b->network ? a->network > b->network : a->since < b->since;
}

static dp_port_row *oldest_of_the_largest(dp_port_pool *pool)
{
    dp_port_row *found = NULL;
    for (uint32_t i = 0; i < pool->n; i++) {
        dp_port_row *row = &pool->rows[i];
        found = found == NULL || goes_before(row, found) ? row : found;
    }
    return found;
}

/* The row whose place a new connection takes; NULL: a place is free. */
static dp_port_row *gives_way(dp_port_pool *pool, const dp_port_from *from)
{
    uint32_t count = 0;
    dp_port_row *row = oldest_like(pool, from, same_address, &count);
    if (count >= pool->per_address) {
        return row;
    }
    row = oldest_like(pool, from, same_network, &count);
    if (count >= pool->per_network) {
        return row;
    }
    return pool->n >= pool->max ? oldest_of_the_largest(pool) : NULL;
}

/* Counts row in or out: updates the numbers of similar rows in row and in all others. */
static void count(dp_port_pool *pool, dp_port_row *row, uint32_t change)
{
    for (uint32_t i = 0; i < pool->n; i++) {
        dp_port_row *other = &pool->rows[i];
        if (other != row && same_region(&other->from, &row->from)) {
            const bool near = same_network(&other->from, &row->from);
            other->region += change;
            other->network += near ? change : 0;
            row->region += change;
            row->network += near ? change : 0;
        }
    }
}

void dp_port_leave(dp_place *place)
{
    dp_port_pool *pool = place->pool;
    if (pool == NULL) {
        return;
    }
    dp_port_row *row = &pool->rows[place->row];
    dp_assert(place->row < pool->n && row->place == place);
    count(pool, row, UINT32_MAX); /* one less */
    *row = pool->rows[--pool->n];
    row->place->row = place->row; /* this may be the same row */
    *place = (dp_place){.pool = NULL};
}

static dp_place *take(dp_port *port, dp_port_pool *pool, dp_place *place, const dp_port_from *from)
{
    const dp_port_row *row = gives_way(pool, from);
    dp_place *gone = row != NULL ? row->place : NULL;
    dp_assert(place->pool == NULL && pool->max <= DP_PORT_ROWS_MAX);
    if (gone != NULL) {
        dp_port_leave(gone);
    }
    *place = (dp_place){.pool = pool, .row = pool->n};
    dp_port_row *mine = &pool->rows[pool->n++];
    *mine = (dp_port_row){
        .place = place, .since = port->turn++, .network = 1, .region = 1, .from = *from};
    count(pool, mine, 1);
    return gone;
}

/* ---- the port ---- */

void dp_port_init(dp_port *port)
{
    memset(port, 0, sizeof *port);
    port->all.left = DP_PORT_ANSWERS_ALL_BURST * 1000ULL;
    port->strangers = (dp_port_pool){.max = DP_PORT_STRANGERS_MAX,
                                     .per_address = DP_PORT_PER_ADDRESS,
                                     .per_network = DP_PORT_PER_NETWORK};
    port->homes = (dp_port_pool){.max = DP_PORT_HOMES_MAX,
                                 .per_address = DP_PORT_PER_HOME,
                                 .per_network = DP_PORT_HOMES_MAX};
    port->holders = (dp_port_pool){.max = DP_PORT_HOLDERS_MAX,
                                   .per_address = DP_PORT_HOLDERS_MAX,
                                   .per_network = DP_PORT_HOLDERS_MAX};
}

static bool remembers(const dp_port *port, const dp_port_from *from)
{
    for (uint32_t i = 0; i < port->n_remembered; i++) {
        if (same_home(&port->remembered[i], from)) {
            return true;
        }
    }
    return false;
}

dp_place *dp_port_enter(dp_port *port, dp_place *place, const dp_addr *addr)
{
    const dp_port_from from = from_of(addr);
    const bool reserved = remembers(port, &from) && gives_way(&port->homes, &from) == NULL;
    return take(port, reserved ? &port->homes : &port->strangers, place, &from);
}

dp_place *dp_port_prove(dp_port *port, dp_place *place)
{
    dp_assert(place->pool != NULL);
    const dp_port_from from = place->pool->rows[place->row].from;
    dp_port_leave(place);
    return take(port, &port->holders, place, &from);
}

static void fill(dp_port_answers *answers, uint64_t now_ms, uint64_t rate, uint64_t burst)
{
    const uint64_t passed_ms = now_ms - answers->filled_ms;
    const uint64_t most = burst * 1000;
    const uint64_t gained = passed_ms < most ? passed_ms * rate : most;
    answers->left = answers->left + gained < most ? answers->left + gained : most;
    answers->filled_ms = now_ms;
}

/* Of networks or of regions. */
static dp_port_answers *answers_of(dp_port_answers *list, uint32_t *count, is_like *like,
                                   const dp_port_answers *whole)
{
    dp_port_answers *longest = &list[0];
    for (uint32_t i = 0; i < *count; i++) {
        dp_port_answers *at = &list[i];
        if (like(&at->from, &whole->from)) {
            return at;
        }
        longest = at->filled_ms < longest->filled_ms ? at : longest;
    }
    if (*count < DP_PORT_NETWORKS_MAX) {
        longest = &list[(*count)++];
    }
    *longest = *whole;
    return longest;
}

bool dp_port_may_answer(dp_port *port, const dp_addr *addr, uint64_t now_ms)
{
    const dp_port_from from = from_of(addr);
    if (remembers(port, &from)) {
        return true;
    }
    dp_port_answers whole = {
        .from = from, .left = DP_PORT_ANSWERS_BURST * 1000ULL, .filled_ms = now_ms};
    dp_port_answers *own = answers_of(port->networks, &port->n_networks, same_network, &whole);
    whole.left = DP_PORT_ANSWERS_REGION_BURST * 1000ULL;
    dp_port_answers *region = answers_of(port->regions, &port->n_regions, same_region, &whole);
    fill(own, now_ms, DP_PORT_ANSWERS, DP_PORT_ANSWERS_BURST);
    fill(region, now_ms, DP_PORT_ANSWERS_REGION, DP_PORT_ANSWERS_REGION_BURST);
    fill(&port->all, now_ms, DP_PORT_ANSWERS_ALL, DP_PORT_ANSWERS_ALL_BURST);
    if (own->left < 1000 || region->left < 1000 || port->all.left < 1000) {
        return false;
    }
    own->left -= 1000;
    region->left -= 1000;
    port->all.left -= 1000;
    return true;
}

void dp_port_remember(dp_port *port, const dp_addr *addr)
{
    const dp_port_from from = from_of(addr);
    if (remembers(port, &from)) {
        return;
    }
    port->remembered[port->next_remembered] = from;
    port->next_remembered = (port->next_remembered + 1) % DP_PORT_REMEMBERED_MAX;
    port->n_remembered += port->n_remembered < DP_PORT_REMEMBERED_MAX ? 1 : 0;
}

dp_place *dp_port_first_to_go(dp_port *port)
{
    const dp_port_row *row = oldest_of_the_largest(&port->strangers);
    return row != NULL ? row->place : NULL;
}
