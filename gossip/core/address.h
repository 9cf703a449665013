/* Where a node may be reached: an IP address or a name, and a port; as text and as bytes. Resolves
 * nothing. */
#ifndef DP_GOSSIP_CORE_ADDRESS_H
#define DP_GOSSIP_CORE_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum {
    DP_ADDRESS_NAME_MAX = 79,
    DP_ADDRESS_TEXT_MAX = DP_ADDRESS_NAME_MAX + 9,
    DP_ADDRESS_BYTES_MAX = 1 + 1 + DP_ADDRESS_NAME_MAX + 2,
};

typedef enum dp_address_kind {
    DP_ADDRESS_NONE = 0,
    DP_ADDRESS_DNS = 1,
    DP_ADDRESS_IP4 = 4,
    DP_ADDRESS_IP6 = 6,
} dp_address_kind;

typedef struct dp_address {
    dp_address_kind kind;
    uint16_t port;                      /* 1..65535 */
    uint8_t ip[16];                     /* network order; an IPv4 address uses the first 4 */
    char name[DP_ADDRESS_NAME_MAX + 1]; /* DNS: letters, digits, '-', '.', '_' */
} dp_address;

/* "192.0.2.1:7000", "[2001:db8::1]:7000" or "host.example:7000". DP_BADMSG with a sentence in why,
 * which may be NULL. */
DP_MUST dp_status dp_address_parse(const char *text, dp_address *address, dp_why *why);
void dp_address_text(const dp_address *address, char text[DP_ADDRESS_TEXT_MAX]);
bool dp_address_equal(const dp_address *a, const dp_address *b);
bool dp_address_name_is_valid(dp_view name);

/* u8 kind | 4 bytes, 16 bytes, or u8 size and name | u16 port. The kind must not be NONE. */
void dp_address_write(dp_writer *writer, const dp_address *address);
/* DP_BADMSG: short, unknown kind, port 0, or a name with other characters. */
DP_MUST dp_status dp_address_read(dp_reader *reader, dp_address *address);

/* An address to dial, as small as a table of members wants it. */
typedef struct dp_addr {
    uint8_t family; /* a dp_address_kind. In the simulator: 4, and the node's index in ip[0..3]. */
    union {
        uint8_t ip[16];
        char name[DP_ADDRESS_NAME_MAX + 1]; /* DP_ADDRESS_DNS: looked up by the one that dials */
    };
    uint16_t port;
} dp_addr;

dp_addr dp_addr_of(const dp_address *address);
dp_address dp_addr_address(const dp_addr *addr);

#endif
