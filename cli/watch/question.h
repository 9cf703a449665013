/* One question to the daemon, or one order, as a row: its method and its parameters. Verbs and the
 * screen of `dpnode top` send the same rows. Blocking. */
#ifndef DP_CLI_WATCH_QUESTION_H
#define DP_CLI_WATCH_QUESTION_H

#include "cli/client.h"

typedef struct dp_parameter {
    const char *key;
    const char *text; /* NULL: it is the number */
    uint64_t number;
    bool is_flag; /* the number is sent as true or false */
} dp_parameter;

typedef struct dp_question {
    const char *method;
    const dp_parameter *parameters; /* borrowed; NULL if there are none */
    uint32_t n_parameters;
    dp_on_notice *on_notice; /* NULL: notices are dropped */
    void *context;           /* of on_notice */
} dp_question;

/* Asks an open client. 0 and *result (a new reference), or an exit status as dp_client_call. */
DP_MUST int dp_question_put(dp_client *client, const dp_question *question, json_t **result,
                            dp_control_error *error);
/* Opens a client of this socket, asks, and closes it. most_ms bounds each read and each write
 * (E0103); 0: no bound. */
DP_MUST int dp_question_ask(const char *socket, uint32_t most_ms, const dp_question *question,
                            json_t **result, dp_control_error *error);

#endif
