/* The addresses of the token: those who have no link dial them, and names among them are looked up off the loop first. */
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>

#include "base/alloc.h"
#include "daemon/driver_inside.h"

/* One name being looked up. */
typedef struct lookup {
    uv_getaddrinfo_t request;
    dp_driver *driver;
    uint8_t index; /* in the facts' addresses */
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

static void on_looked_up(uv_getaddrinfo_t *request, int status, struct addrinfo *list)
{
    lookup *self = request->data;
    dp_driver *driver = self->driver;
    const dp_address *address = &driver->facts.addresses[self->index];
    dp_addr addrs[DP_ADDRS_MAX];
    uint32_t n_addrs = 0;
    driver->looking_up &= ~(1U << self->index);
    for (const struct addrinfo *at = list; status == 0 && at != NULL && n_addrs < DP_ADDRS_MAX;
         at = at->ai_next) {
        n_addrs += addr_of(at, address->port, &addrs[n_addrs]);
    }
    if (!driver->closing && n_addrs > 0) {
        dp_transport_dial(driver->transport, NULL, addrs, n_addrs);
    } else if (!driver->closing) {
        dp_diary_add(driver->daemon->diary, DP_LOG_WARN, "name.unknown", 0, NULL,
                     "the name %s has no address: %s", address->name,
                     status != 0 ? uv_strerror(status) : "none of a known kind");
    }
    uv_freeaddrinfo(list);
    dp_free(self);
    dp_driver_job_done(driver);
}

/* One look-up per name at a time; it may take as long as the system's resolver waits. */
static void look_up(dp_driver *driver, uint8_t index)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    if ((driver->looking_up >> index & 1) != 0) {
        return;
    }
    lookup *self = dp_alloc(1, sizeof *self);
    if (self == NULL) {
        return; /* The tick comes back. */
    }
    self->driver = driver;
    self->index = index;
    self->request.data = self;
    if (uv_getaddrinfo(driver->daemon->loop, &self->request, on_looked_up,
                       driver->facts.addresses[index].name, NULL, &hints) != 0) {
        dp_free(self);
        return;
    }
    driver->looking_up |= 1U << index;
    driver->n_jobs++;
}

void dp_driver_dial_token(dp_driver *driver)
{
    dp_addr addrs[DP_ADDRS_MAX];
    uint32_t n_addrs = 0;
    for (uint8_t i = 0; i < driver->facts.n_addresses; i++) {
        const dp_address *address = &driver->facts.addresses[i];
        if (address->kind == DP_ADDRESS_DNS) {
            look_up(driver, i);
        } else if (n_addrs < DP_ADDRS_MAX) {
            dp_addr *addr = &addrs[n_addrs++];
            *addr = (dp_addr){.family = (uint8_t)address->kind, .port = address->port};
            memcpy(addr->ip, address->ip, sizeof addr->ip);
        }
    }
    if (n_addrs > 0) {
        dp_transport_dial(driver->transport, NULL, addrs, n_addrs);
    }
}
