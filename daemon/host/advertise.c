#include "daemon/host/advertise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

dp_status dp_advertise_parse(const char *text, dp_address addresses[DP_ADDRS_MAX], uint32_t *count,
                             dp_why *why)
{
    static const char between[] = ", ";
    dp_address parsed[DP_ADDRS_MAX];
    uint32_t n = 0;
    for (const char *at = text + strspn(text, between); *at != '\0'; at += strspn(at, between)) {
        const size_t size = strcspn(at, between);
        char one[DP_ADDRESS_TEXT_MAX + 2]; /* A longer text is cut, and then has no port. */
        dp_why cause = {{0}};
        if (n == DP_ADDRS_MAX) {
            return dp_why_set(why, DP_BADARG, "advertise: at most %d addresses", DP_ADDRS_MAX);
        }
        snprintf(one, sizeof one, "%.*s", (int)(size < sizeof one ? size : sizeof one - 1), at);
        if (dp_address_parse(one, &parsed[n], &cause) != DP_OK) {
            return dp_why_set(why, DP_BADARG, "advertise: %.300s", cause.text);
        }
        n++;
        at += size;
    }
    memcpy(addresses, parsed, n * sizeof parsed[0]);
    *count = n;
    return DP_OK;
}

/* ---- clouds ---- */

/* The variables of one cloud. */
typedef struct cloud {
    const char *name;
    const char *ports; /* before the number */
    const char *address;
} cloud;

static const cloud clouds[] = {{"Vast", "VAST_TCP_PORT_", "PUBLIC_IPADDR="},
                               {"RunPod", "RUNPOD_TCP_PORT_", "RUNPOD_PUBLIC_IP="}};

enum { SERVICES_BELOW = 1024, PORT_DIGITS_MAX = 6 };

/* Digits up to the end byte; otherwise 0. */
static uint32_t number_of(const char **at, char end)
{
    const size_t digits = strspn(*at, "0123456789");
    if (digits == 0 || digits > PORT_DIGITS_MAX || (*at)[digits] != end) {
        return 0;
    }
    const uint32_t number = (uint32_t)strtoul(*at, NULL, 10);
    *at += digits;
    return number;
}

/* inner=outer of one variable of this cloud. */
static bool mapping_of(const cloud *of, const char *variable, uint32_t *inner, uint32_t *outer)
{
    const size_t prefix = strlen(of->ports);
    if (strncmp(variable, of->ports, prefix) != 0) {
        return false;
    }
    const char *at = variable + prefix;
    *inner = number_of(&at, '=');
    at += *inner != 0;
    *outer = *inner != 0 ? number_of(&at, '\0') : 0;
    return *inner != 0 && *outer != 0 && *outer <= UINT16_MAX;
}

/* The port to listen on; 0: none. */
static uint16_t pick_port(const cloud *of, char *const *environment, uint16_t wanted,
                          bool only_wanted, uint16_t *outer)
{
    /* the lowest port that is the same on both sides; the lowest of the others */
    uint32_t best[2] = {0, 0};
    uint32_t told = 0;
    uint32_t n_others = 0;
    for (char *const *at = environment; *at != NULL; at++) {
        uint32_t in = 0;
        uint32_t out = 0;
        if (!mapping_of(of, *at, &in, &out)) {
            continue;
        }
        if (in == wanted) {
            *outer = (uint16_t)out;
            return wanted;
        }
        if (in > UINT16_MAX) {
            best[0] = best[0] == 0 || out < best[0] ? out : best[0];
        } else if (in >= SERVICES_BELOW) {
            n_others++;
            best[1] = in;
            told = out;
        }
    }
    if (only_wanted || (best[0] == 0 && n_others != 1)) {
        return 0;
    }
    *outer = (uint16_t)(best[0] != 0 ? best[0] : told);
    return (uint16_t)(best[0] != 0 ? best[0] : best[1]);
}

bool dp_cloud_port_find(char *const *environment, uint16_t wanted, bool only_wanted,
                        dp_cloud_port *out)
{
    for (size_t i = 0; i < sizeof clouds / sizeof clouds[0]; i++) {
        const size_t prefix = strlen(clouds[i].address);
        const char *host = NULL;
        for (char *const *at = environment; *at != NULL; at++) {
            host = strncmp(*at, clouds[i].address, prefix) == 0 ? *at + prefix : host;
        }
        uint16_t outer = 0;
        const uint16_t inner =
            host == NULL ? 0 : pick_port(&clouds[i], environment, wanted, only_wanted, &outer);
        if (inner == 0) {
            continue;
        }
        char text[DP_ADDRESS_TEXT_MAX + 3];
        const bool bare_v6 = strchr(host, ':') != NULL && host[0] != '[';
        const int size =
            snprintf(text, sizeof text, bare_v6 ? "[%s]:%u" : "%s:%u", host, (unsigned)outer);
        dp_cloud_port found = {.inner = inner, .cloud = clouds[i].name};
        if (size < (int)sizeof text && dp_address_parse(text, &found.outer, NULL) == DP_OK) {
            *out = found;
            return true;
        }
    }
    return false;
}

/* ---- interfaces ---- */

static bool is_told(const uv_interface_address_t *of, sa_family_t family, bool internal)
{
    if (of->address.address4.sin_family != family || (of->is_internal != 0) != internal) {
        return false;
    }
    return family == AF_INET || !IN6_IS_ADDR_LINKLOCAL(&of->address.address6.sin6_addr);
}

/* The next item of the list at *at; moves *at behind it. */
static bool next_of(const uv_interface_address_t *list, int count, int *at, sa_family_t family,
                    bool internal, dp_address *out)
{
    for (; *at < count; (*at)++) {
        if (!is_told(&list[*at], family, internal)) {
            continue;
        }
        out->kind = family == AF_INET ? DP_ADDRESS_IP4 : DP_ADDRESS_IP6;
        if (family == AF_INET) {
            memcpy(out->ip, &list[*at].address.address4.sin_addr, 4);
        } else {
            memcpy(out->ip, &list[*at].address.address6.sin6_addr, 16);
        }
        (*at)++;
        return true;
    }
    return false;
}

uint32_t dp_advertise_interfaces(const uv_interface_address_t *list, int count, uint16_t port,
                                 bool with_v6, dp_address addresses[DP_ADDRS_MAX])
{
    dp_address loopback = {.port = port};
    int at_loopback = 0;
    const bool has_loopback = next_of(list, count, &at_loopback, AF_INET, true, &loopback);
    const uint32_t most = DP_ADDRS_MAX - (has_loopback ? 1 : 0);
    uint32_t n = 0;
    int at[2] = {0, with_v6 ? 0 : count};
    for (bool more = true; more && n < most;) {
        more = false;
        for (int v6 = 0; v6 < 2 && n < most; v6++) {
            addresses[n] = (dp_address){.port = port};
            if (next_of(list, count, &at[v6], v6 == 0 ? AF_INET : AF_INET6, false, &addresses[n])) {
                more = true;
                n++;
            }
        }
    }
    if (has_loopback) {
        addresses[n++] = loopback;
    }
    dp_assert(n <= DP_ADDRS_MAX);
    return n;
}
