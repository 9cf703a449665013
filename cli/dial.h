/* Tests whether an address accepts connections, by a connection that sends nothing. */
#ifndef DP_CLI_DIAL_H
#define DP_CLI_DIAL_H

#include <stdbool.h>

/* address: "192.0.2.1:7717" "[2001:db8::1]:7717" or "host.example:7717", which is looked up first:
 * up to 8 addresses of it are dialed. False also after wait_ms without an answer of each of them,
 * and for text that is no address. */
bool dp_dial_answers(const char *address, int wait_ms);

#endif
