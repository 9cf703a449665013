/* The HTTP server of dpnode-web: a site (cli/web/site.h) at an address, in the loop of the caller.
 * One thread. Bounds: DP_SERVER_CONNECTIONS connections, each silent for DP_SERVER_IDLE_S at most,
 * DP_SERVER_STREAMS of them streams. */
#ifndef DP_CLI_WEB_SERVER_H
#define DP_CLI_WEB_SERVER_H

#include "cli/web/site.h"

enum {
    DP_SERVER_CONNECTIONS = 64,
    DP_SERVER_STREAMS = 32,
    DP_SERVER_IDLE_S = 30,
    DP_SERVER_STREAM_BYTES_MAX = 1 << 20, /* of events that a reader has not taken */
    DP_SERVER_EVENT_MS = 1000,            /* between the events of a stream */
    DP_SERVER_ADDRESS_MAX = 64
};

typedef struct dp_server dp_server;

/* Listens at address, "127.0.0.1:7719" or "[::1]:7719"; port 0: any that is free. site is borrowed.
 * On failure *error says why, and the result is its exit status. */
DP_MUST int dp_server_open(dp_server **server, dp_site *site, const char *address,
                           dp_control_error *error);
void dp_server_close(dp_server *server); /* accepts NULL */

/* The address with the port that it has. */
const char *dp_server_address(const dp_server *server);

/* Serves what has come, or waits for it, at most most_ms or until a signal; -1: no bound. DP_IO:
 * the server has failed. */
DP_MUST dp_status dp_server_step(dp_server *server, int most_ms);

#endif
