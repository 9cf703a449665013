/* The forwards of dpfault: TCP connections between real programs, delayed, throttled, stalled,
 * damaged, cut and torn on command. libuv; one loop, one thread. Bytes stay in order, as TCP keeps
 * them: a lost segment is a stall.
 *
 * Limits are in proxy.c: forwards, connections, bytes held per direction; at the last, reading
 * stops. */
#ifndef DP_FAULT_PROXY_H
#define DP_FAULT_PROXY_H

#include <uv.h>

#include "tests/fault/script.h"

typedef struct dp_fault_proxy dp_fault_proxy;

/* Chances come from seed. The loop outlives the proxy. DP_NOMEM. */
DP_MUST dp_status dp_fault_open(dp_fault_proxy **proxy, uv_loop_t *loop, uint64_t seed);
/* Do a command of those that name forwards. DP_NOTFOUND: no such forward; DP_EXISTS; DP_BUSY: the
 * address to listen on is taken; DP_CLOSED: a target is not up (CHECK); DP_TOOBIG: too many
 * forwards. why has the sentence. */
DP_MUST dp_status dp_fault_do(dp_fault_proxy *proxy, const dp_fault_command *command, dp_why *why);
/* Ends all; the memory goes when the loop has run once more. */
void dp_fault_close(dp_fault_proxy *proxy);

#endif
