#include "gossip/core/address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

bool dp_address_name_is_valid(dp_view name)
{
    if (name.size == 0 || name.size > DP_ADDRESS_NAME_MAX || name.data[0] == '-' ||
        name.data[0] == '.') {
        return false;
    }
    bool has_letter = false;
    for (size_t i = 0; i < name.size; i++) {
        const uint8_t c = name.data[i];
        const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter && !(c >= '0' && c <= '9') && c != '-' && c != '.' && c != '_') {
            return false;
        }
        has_letter = has_letter || is_letter;
    }
    return has_letter; /* else it is a mistyped IPv4 address */
}

/* 1..65535 in decimal, without sign or leading zero. 0 otherwise. */
static uint16_t parse_port(const char *text)
{
    unsigned port = 0;
    const size_t digits = strlen(text);

    if (digits == 0 || digits > 5 || text[0] == '0') {
        return 0;
    }
    for (size_t i = 0; i < digits; i++) {
        if (isdigit((unsigned char)text[i]) == 0) {
            return 0;
        }
        port = port * 10 + (unsigned)(text[i] - '0');
    }
    return port <= UINT16_MAX ? (uint16_t)port : 0;
}

dp_status dp_address_parse(const char *text, dp_address *address, dp_why *why)
{
    char host[DP_ADDRESS_NAME_MAX + 1] = {0};
    dp_address parsed = {.kind = DP_ADDRESS_NONE};
    const char *colon = strrchr(text, ':');
    const bool has_brackets =
        text[0] == '[' && colon != NULL && colon > text + 1 && colon[-1] == ']';

    if (colon == NULL) {
        return dp_why_set(why, DP_BADMSG,
                          "The address \"%.150s\" has no port; write host:port or [v6]:port.",
                          text);
    }
    parsed.port = parse_port(colon + 1);
    if (parsed.port == 0) {
        return dp_why_set(why, DP_BADMSG, "The port of \"%.150s\" is not a number from 1 to 65535.",
                          text);
    }
    const char *start = has_brackets ? text + 1 : text;
    const size_t size = (size_t)(colon - start) - (has_brackets ? 1 : 0);
    if (size == 0 || size >= sizeof host) {
        return dp_why_set(why, DP_BADMSG,
                          "The host of \"%.150s\" is empty or longer than %d characters.", text,
                          DP_ADDRESS_NAME_MAX);
    }
    memcpy(host, start, size);
    if (has_brackets) {
        parsed.kind = inet_pton(AF_INET6, host, parsed.ip) == 1 ? DP_ADDRESS_IP6 : DP_ADDRESS_NONE;
    } else if (inet_pton(AF_INET, host, parsed.ip) == 1) {
        parsed.kind = DP_ADDRESS_IP4;
    } else if (dp_address_name_is_valid(dp_view_of(host, size))) {
        parsed.kind = DP_ADDRESS_DNS;
        memcpy(parsed.name, host, size);
    }
    if (parsed.kind == DP_ADDRESS_NONE) {
        return dp_why_set(why, DP_BADMSG,
                          "The host of \"%.150s\" is neither an IPv4 address, nor an IPv6 address "
                          "in brackets, nor a "
                          "name.",
                          text);
    }
    *address = parsed;
    return DP_OK;
}

void dp_address_text(const dp_address *address, char text[DP_ADDRESS_TEXT_MAX])
{
    char ip[INET6_ADDRSTRLEN] = "?";

    switch (address->kind) {
    case DP_ADDRESS_DNS:
        (void)snprintf(text, DP_ADDRESS_TEXT_MAX, "%s:%u", address->name, (unsigned)address->port);
        return;
    case DP_ADDRESS_IP4:
        inet_ntop(AF_INET, address->ip, ip, sizeof ip);
        (void)snprintf(text, DP_ADDRESS_TEXT_MAX, "%s:%u", ip, (unsigned)address->port);
        return;
    case DP_ADDRESS_IP6:
        inet_ntop(AF_INET6, address->ip, ip, sizeof ip);
        (void)snprintf(text, DP_ADDRESS_TEXT_MAX, "[%s]:%u", ip, (unsigned)address->port);
        return;
    case DP_ADDRESS_NONE:
        break;
    }
    (void)snprintf(text, DP_ADDRESS_TEXT_MAX, "none");
}

bool dp_address_equal(const dp_address *a, const dp_address *b)
{
    return a->kind == b->kind && a->port == b->port && memcmp(a->ip, b->ip, sizeof a->ip) == 0 &&
           strcmp(a->name, b->name) == 0;
}

void dp_address_write(dp_writer *writer, const dp_address *address)
{
    dp_write_u8(writer, (uint8_t)address->kind);
    switch (address->kind) {
    case DP_ADDRESS_DNS:
        dp_write_u8(writer, (uint8_t)strlen(address->name));
        dp_write_bytes(writer, address->name, strlen(address->name));
        break;
    case DP_ADDRESS_IP4:
        dp_write_bytes(writer, address->ip, 4);
        break;
    case DP_ADDRESS_IP6:
        dp_write_bytes(writer, address->ip, 16);
        break;
    case DP_ADDRESS_NONE:
        dp_assert(address->kind != DP_ADDRESS_NONE);
        break;
    }
    dp_write_u16(writer, address->port);
}

dp_status dp_address_read(dp_reader *reader, dp_address *address)
{
    dp_address read = {.kind = DP_ADDRESS_NONE};
    const uint8_t kind = dp_read_u8(reader);

    if (kind == DP_ADDRESS_DNS) {
        const dp_view name = dp_read_view(reader, dp_read_u8(reader));
        if (!dp_address_name_is_valid(name)) {
            return DP_BADMSG;
        }
        memcpy(read.name, name.data, name.size);
    } else if (kind == DP_ADDRESS_IP4 || kind == DP_ADDRESS_IP6) {
        dp_read_bytes(reader, read.ip, kind == DP_ADDRESS_IP4 ? 4 : 16);
    } else {
        return DP_BADMSG;
    }
    read.kind = (dp_address_kind)kind;
    read.port = dp_read_u16(reader);
    if (reader->failed || read.port == 0) {
        return DP_BADMSG;
    }
    *address = read;
    return DP_OK;
}

dp_addr dp_addr_of(const dp_address *address)
{
    dp_addr addr = {.family = (uint8_t)address->kind, .port = address->port};
    if (address->kind == DP_ADDRESS_DNS) {
        memcpy(addr.name, address->name, sizeof addr.name);
    } else {
        memcpy(addr.ip, address->ip, sizeof addr.ip);
    }
    return addr;
}

dp_address dp_addr_address(const dp_addr *addr)
{
    dp_address address = {.kind = (dp_address_kind)addr->family, .port = addr->port};
    if (addr->family == DP_ADDRESS_DNS) {
        memcpy(address.name, addr->name, sizeof address.name);
    } else {
        memcpy(address.ip, addr->ip, sizeof address.ip);
    }
    return address;
}
