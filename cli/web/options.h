/* The options that `dpnode web` and dpnode-web share. */
#ifndef DP_CLI_WEB_OPTIONS_H
#define DP_CLI_WEB_OPTIONS_H

#include "cli/cmd.h"

#define DP_WEB_LISTEN "127.0.0.1:7719"
#define DP_WEB_SUMMARY "serve a page about this node, and /metrics for Prometheus; read-only"
#define DP_WEB_OPTIONS                                                                             \
    {"listen", 0, "ADDR:PORT", "where to serve; port 0: any that is free [" DP_WEB_LISTEN "]"},    \
        {"sample", 0, "TEXT", "show the text that each checkpoint writes after this one"},         \
        {"tensorboard", 0, "DIR", "write the figures of the run as event files for TensorBoard"},  \
    {                                                                                              \
        "name", 0, "HOST,HOST",                                                                    \
            "names of hosts under which it is asked, besides addresses and localhost"              \
    }

#endif
