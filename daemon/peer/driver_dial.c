/* Dials peers and the addresses of the token. Names among the addresses are resolved off the loop
 * first. */
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "daemon/peer/driver_inside.h"

enum {
    /* at the same time: members choose the names, and each may block a thread */
    LOOKUPS_MAX = 8,
    LOOKUP_MS_MAX = 2000, /* then the known addresses are dialled; a late answer is dialled too */
    UNKNOWN_TOLD_MS = 3600 * 1000 /* a node without a network looks a name up every 2 s */
};

/* A dial that waits until the names among its addresses are known. */
typedef struct lookup {
    uv_getaddrinfo_t request;
    dp_list item; /* in driver->lookups */
    dp_driver *driver;
    bool has_peer;
    dp_peer peer;
    uint64_t deadline_ms; /* uv_now; 0: dialled already */
    uint32_t at;          /* index in addrs of the name being looked up */
    uint32_t n_addrs;
    dp_addr addrs[DP_ADDRS_MAX];
    uint32_t n_found;
    dp_addr found[DP_ADDRS_MAX];
} lookup;

static bool addr_of(const struct addrinfo *info, uint16_t port, dp_addr *addr)
{
    *addr = (dp_addr){.port = port};
    if (info->ai_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, info->ai_addr, sizeof in);
        addr->family = 4;
        memcpy(addr->ip, &in.sin_addr, 4);
        return true;
    }
    if (info->ai_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, info->ai_addr, sizeof in6);
        addr->family = 6;
        memcpy(addr->ip, &in6.sin6_addr, 16);
        return true;
    }
    return false;
}

/* Dials the known addresses: those found, and those after the name that is still being looked
 * up. */
static void dial_found(lookup *self)
{
    dp_addr addrs[DP_ADDRS_MAX];
    uint32_t n = self->n_found;
    memcpy(addrs, self->found, n * sizeof addrs[0]);
    for (uint32_t i = self->at; i < self->n_addrs && n < DP_ADDRS_MAX; i++) {
        if (self->addrs[i].family != DP_ADDRESS_DNS) {
            addrs[n++] = self->addrs[i];
        }
    }
    self->deadline_ms = 0;
    if (!self->driver->closing && (self->has_peer || n > 0)) {
        dp_transport_dial(self->driver->transport, self->has_peer ? &self->peer : NULL, addrs, n);
    }
}

static void on_looked_up(uv_getaddrinfo_t *request, int status, struct addrinfo *list);

/* Continues with the next name. False: there is none left, and the dial has begun. */
static bool look_up_next(lookup *self)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    for (; self->at < self->n_addrs; self->at++) {
        const dp_addr *addr = &self->addrs[self->at];
        if (addr->family != DP_ADDRESS_DNS) {
            if (self->n_found < DP_ADDRS_MAX) {
                self->found[self->n_found++] = *addr;
            }
        } else if (!self->driver->closing &&
                   uv_getaddrinfo(self->driver->daemon->loop, &self->request, on_looked_up,
                                  addr->name, NULL, &hints) == 0) {
            return true;
        }
    }
    dial_found(self);
    return false;
}

static void end(lookup *self)
{
    dp_driver *driver = self->driver;
    dp_list_remove(&self->item);
    dp_assert(driver->n_lookups > 0);
    driver->n_lookups--;
    dp_free(self);
    dp_driver_job_done(driver);
}

/* Once an hour of each name, and of DP_DRIVER_UNKNOWN_MAX names in all: the history is bounded. */
static bool is_news(dp_driver *driver, const char *name)
{
    const uint64_t now = uv_now(driver->daemon->loop);
    for (uint32_t i = 0; i < DP_DRIVER_UNKNOWN_MAX; i++) {
        if (strcmp(driver->unknown[i].name, name) == 0 &&
            now < driver->unknown[i].told_ms + UNKNOWN_TOLD_MS) {
            return false;
        }
    }
    const uint32_t at = driver->next_unknown;
    if (driver->unknown[at].name[0] != '\0' &&
        now < driver->unknown[at].told_ms + UNKNOWN_TOLD_MS) {
        return false;
    }
    snprintf(driver->unknown[at].name, sizeof driver->unknown[at].name, "%s", name);
    driver->unknown[at].told_ms = now;
    driver->next_unknown = (at + 1) % DP_DRIVER_UNKNOWN_MAX;
    return true;
}

static void on_looked_up(uv_getaddrinfo_t *request, int status, struct addrinfo *list)
{
    lookup *self = request->data;
    dp_driver *driver = self->driver;
    const dp_addr *name = &self->addrs[self->at];
    uint32_t n = 0;
    for (const struct addrinfo *at = list;
         status == 0 && at != NULL && self->n_found < DP_ADDRS_MAX; at = at->ai_next) {
        const bool known = addr_of(at, name->port, &self->found[self->n_found]);
        self->n_found += known;
        n += known;
    }
    if (n == 0 && !driver->closing && is_news(driver, name->name)) {
        dp_event_log_add(driver->daemon->event_log, DP_LOG_WARN, "name.unknown", 0,
                         self->has_peer ? &self->peer : NULL, "the name %s has no address: %s",
                         name->name, status != 0 ? uv_strerror(status) : "none of a known kind");
    }
    uv_freeaddrinfo(list);
    self->at++;
    if (!look_up_next(self)) {
        end(self);
    }
}

static bool is_looked_up(const dp_driver *driver, const dp_peer *peer, const dp_addr *first)
{
    for (dp_list *at = driver->lookups.next; at != &driver->lookups; at = at->next) {
        const lookup *one = DP_LIST_ITEM(at, lookup, item);
        if (peer != NULL ? one->has_peer && dp_peer_equal(peer, &one->peer)
                         : !one->has_peer && strcmp(one->addrs[0].name, first->name) == 0) {
            return true;
        }
    }
    return false;
}

/* False: there is no name, or no more can be looked up now. */
static bool look_up(dp_driver *driver, const dp_peer *peer, const dp_addr *addrs, uint32_t n_addrs)
{
    lookup *self = driver->n_lookups < LOOKUPS_MAX ? dp_alloc(1, sizeof *self) : NULL;
    if (self == NULL) {
        return false;
    }
    *self = (lookup){.driver = driver,
                     .has_peer = peer != NULL,
                     .deadline_ms = uv_now(driver->daemon->loop) + LOOKUP_MS_MAX,
                     .n_addrs = n_addrs};
    self->request.data = self;
    if (peer != NULL) {
        self->peer = *peer;
    }
    memcpy(self->addrs, addrs, n_addrs * sizeof addrs[0]);
    dp_list_push_back(&driver->lookups, &self->item);
    driver->n_lookups++;
    driver->n_jobs++;
    if (!look_up_next(self)) {
        end(self);
    }
    return true;
}

void dp_driver_dial(dp_driver *driver, const dp_peer *peer, const dp_addr *addrs, uint32_t n_addrs)
{
    dp_addr plain[DP_ADDRS_MAX];
    uint32_t n_plain = 0;
    dp_assert(n_addrs <= DP_ADDRS_MAX);
    for (uint32_t i = 0; i < n_addrs; i++) {
        if (addrs[i].family != DP_ADDRESS_DNS) {
            plain[n_plain++] = addrs[i];
        }
    }
    if (n_plain < n_addrs && is_looked_up(driver, peer, &addrs[0])) {
        return;
    }
    if (n_plain == n_addrs || !look_up(driver, peer, addrs, n_addrs)) {
        dp_transport_dial(driver->transport, peer, plain, n_plain);
    }
}

void dp_driver_dial_tick(dp_driver *driver)
{
    const uint64_t now = uv_now(driver->daemon->loop);
    for (dp_list *at = driver->lookups.next; at != &driver->lookups; at = at->next) {
        lookup *self = DP_LIST_ITEM(at, lookup, item);
        if (self->deadline_ms != 0 && now >= self->deadline_ms) {
            dial_found(self); /* It ends when its name is known. */
        }
    }
}

void dp_driver_dial_token(dp_driver *driver)
{
    dp_addr addrs[DP_ADDRS_MAX];
    uint32_t n_addrs = 0;
    for (uint8_t i = 0; i < driver->facts.n_addresses; i++) {
        const dp_addr addr = dp_addr_of(&driver->facts.addresses[i]);
        /* In a dial of its own, so that no other address waits for it. */
        if (addr.family == DP_ADDRESS_DNS) {
            dp_driver_dial(driver, NULL, &addr, 1);
            continue;
        }
        addrs[n_addrs++] = addr;
        if (n_addrs == DP_ADDRS_MAX) {
            dp_driver_dial(driver, NULL, addrs, n_addrs);
            n_addrs = 0;
        }
    }
    if (n_addrs > 0) {
        dp_driver_dial(driver, NULL, addrs, n_addrs);
    }
}
