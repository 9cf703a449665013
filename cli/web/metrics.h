/* The state of a node as Prometheus reads it (text format 0.0.4): from the daemon's replies to
 * status and peers (daemon/control/control_msg.h), one line for each value that is known. Names
 * begin with dpnode_, units are base units, a counter ends with _total. */
#ifndef DP_CLI_WEB_METRICS_H
#define DP_CLI_WEB_METRICS_H

#include <jansson.h>

#include "base/bytes.h"

enum {
    DP_METRICS_BYTES_MAX = 256 * 1024, /* of one text; a reply of peers has 116 of them at most */
    DP_METRICS_LABEL_MAX = 64          /* bytes of a label's value; what is longer is cut */
};

/* status: NULL while no daemon answers, then dpnode_up is 0 and nothing else is told. peers: NULL
 * if it is not known. Appends to out. DP_TOOBIG, DP_NOMEM. */
DP_MUST dp_status dp_metrics_write(dp_buf *out, const json_t *status, const json_t *peers);

#endif
