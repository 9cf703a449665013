/* A verb of the command line as a table row, and the arguments of one call. It also holds the
 * common output and exit statuses of all verbs. No sockets. */
#ifndef DP_CLI_CMD_H
#define DP_CLI_CMD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/local_time.h"
#include "daemon/control/control_msg.h"

enum { DP_OPTIONS_MAX = 24, DP_ARGUMENTS_MAX = 64 };

/* sysexits(3), as far as we use them. */
enum {
    DP_EXIT_NEGATIVE = 1, /* a check failed */
    DP_EXIT_USAGE = 64,
    DP_EXIT_DATA = 65,
    DP_EXIT_NOINPUT = 66,
    DP_EXIT_UNAVAILABLE = 69,
    DP_EXIT_SOFTWARE = 70,
    DP_EXIT_CANTCREATE = 73,
    DP_EXIT_IO = 74,
    DP_EXIT_TEMPORARY = 75,
    DP_EXIT_PROTOCOL = 76,
    DP_EXIT_CONFIG = 78,
    DP_EXIT_INTERRUPTED = 130
};

typedef struct dp_option {
    const char *name;  /* "uses": --uses */
    char letter;       /* -n, or 0 */
    const char *value; /* "N"; NULL: a flag */
    const char *text;
} dp_option;

typedef struct dp_cmd dp_cmd;

typedef struct dp_verb {
    /* NULL: a verb of dpnode. Otherwise the program that has only this verb; name is "" */
    const char *program;
    const char *name;        /* "join", or of two words: "run create" */
    int (*run)(dp_cmd *cmd); /* exit status */
    const char *arguments;   /* "TOKEN|-" */
    const char *summary;     /* without a full stop */
    const char *examples;    /* lines for --help */
    unsigned n_args_min;
    unsigned n_args_max;
    /* ends with a NULL name; every verb has --json, --socket and --help */
    dp_option options[DP_OPTIONS_MAX];
    bool refuses_json; /* its help does not offer --json */
} dp_verb;

struct dp_cmd {
    const dp_verb *verb;
    bool json;
    bool help;
    char socket[DP_CONTROL_PATH_MAX + 1];
    bool socket_given; /* by option or environment, so that dpnoded must be told */
    /* of the verb's options; "" for a flag that is on, NULL if absent */
    const char *values[DP_OPTIONS_MAX];
    const char *args[DP_ARGUMENTS_MAX];
    unsigned n_args;
    /* Below the help of a verb: prints the verbs whose names begin with its name. NULL in a program
     * of one verb, which so does not link the others. */
    void (*tell_others)(const char *name);
};

/* The options that every verb has. */
const dp_option *dp_cmd_common(size_t *count);

/* Parses the arguments after the verb's words. On failure *error describes the mistake. */
DP_MUST dp_status dp_cmd_parse(dp_cmd *cmd, const dp_verb *verb, int argc, char **argv,
                               dp_control_error *error);
/* One call of a verb: the daemon's socket, the arguments, then help or the verb itself. Gives the
 * exit status. */
int dp_cmd_run(dp_cmd *cmd, const dp_verb *verb, int argc, char **argv);
/* The main of a program that is one verb. */
int dp_cmd_program(const dp_verb *verb, int argc, char **argv);

/* Value of an option by its name, or NULL. The verb must have that option. */
const char *dp_cmd_option(const dp_cmd *cmd, const char *name);
/* The option as a number of least to most. False, with *error filled, if it is not; if absent,
 * *number does not change. */
bool dp_cmd_number(const dp_cmd *cmd, const char *name, uint64_t least, uint64_t most,
                   uint64_t *number, dp_control_error *error);
/* The same for a decimal number like 0.8. */
bool dp_cmd_real(const dp_cmd *cmd, const char *name, double least, double most, double *number,
                 dp_control_error *error);
/* The same for a span of time as seconds: 90, 90s, 15m, 24h, 7d. */
bool dp_cmd_seconds(const dp_cmd *cmd, const char *name, uint64_t *seconds,
                    dp_control_error *error);
/* The same for an instant on one side of now (base/local_time.h): 10:40, 2026-11-28T10:40. */
bool dp_cmd_instant(const dp_cmd *cmd, const char *name, uint64_t now_ms, dp_instant_side side,
                    uint64_t *unix_ms, dp_control_error *error);

/* Fills an error. code is stable ("E0101"); why and fix may be "". */
void dp_error_set(dp_control_error *error, int exit, const char *code, const char *fix,
                  const char *what, const char *why);
/* Prints it on stderr in three lines, or with --json as {"error":{...}} on stdout; returns its exit
 * status. */
int dp_cmd_fail(const dp_cmd *cmd, const dp_control_error *error);
/* Prints one JSON value as one line on stdout and flushes it for readers of a stream. Takes value.
 * Returns 0, or DP_EXIT_IO if stdout is closed. */
int dp_cmd_print(json_t *value);

/* The rows that verbs.c lists. */
extern const dp_verb dp_verb_up, dp_verb_down, dp_verb_version;
extern const dp_verb dp_verb_run_create, dp_verb_run_validate, dp_verb_run_fork, dp_verb_run_merge;
extern const dp_verb dp_verb_join, dp_verb_invite, dp_verb_token_inspect;
extern const dp_verb dp_verb_token_ls, dp_verb_token_revoke, dp_verb_token_rotate;
extern const dp_verb dp_verb_status, dp_verb_peers, dp_verb_rounds, dp_verb_why, dp_verb_logs;
extern const dp_verb dp_verb_audit;
extern const dp_verb dp_verb_pause, dp_verb_resume, dp_verb_drain, dp_verb_leave, dp_verb_revoke;
extern const dp_verb dp_verb_limits, dp_verb_config_show;
extern const dp_verb dp_verb_ckpt_ls, dp_verb_ckpt_verify, dp_verb_ckpt_export;
extern const dp_verb dp_verb_sample, dp_verb_eval, dp_verb_data, dp_verb_train;
extern const dp_verb dp_verb_data_tokenize, dp_verb_data_info, dp_verb_data_verify;
extern const dp_verb dp_verb_top, dp_verb_web, dp_verb_swarm, dp_verb_completion, dp_verb_doctor;
extern const dp_verb dp_verb_explain, dp_verb_wait;

/* All of them, in the order of the help. */
const dp_verb *const *dp_verbs(size_t *count);
/* True if verbs of two words begin with this word ("run": run create and others). */
bool dp_verbs_in_group(const char *word);
/* Prints the help of these. */
void dp_verbs_help_group(const char *word);
/* Prints, below the help of the verb word, the verbs of its group, if there are any. */
void dp_verbs_tell_others(const char *word);

#endif
