/* The fastest ciphers for records on this machine: OpenSSL's libcrypto if the program was built
 * with it, else libsodium's. The bytes are the same (gossip/channel/suite.h). */
#ifndef DP_DAEMON_NET_AEAD_H
#define DP_DAEMON_NET_AEAD_H

#include "gossip/channel/suite.h"

/* [id - 1]; NULL: not available on this machine. The tables are static. After dp_crypto_start; any
 * thread. */
void dp_aead_suites(const dp_suite *suites[DP_SUITES]);

/* "libcrypto" or "libsodium". */
const char *dp_aead_name(void);

#endif
