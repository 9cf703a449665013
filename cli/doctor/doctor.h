/* The checks of `dpnode doctor`: facts about this machine and this node, and a table of checks
 * that judge them. No process, no socket: cmd_doctor.c collects the facts, and a test can make up
 * any machine. */
#ifndef DP_CLI_DOCTOR_DOCTOR_H
#define DP_CLI_DOCTOR_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef enum dp_finding_level {
    DP_FINDING_NONE, /* not applicable */
    DP_FINDING_OK,
    DP_FINDING_WARN, /* it works, and could work better */
    DP_FINDING_FAIL  /* a node does not work here */
} dp_finding_level;

typedef struct dp_finding {
    dp_finding_level level;
    char what[224];
    char why[512]; /* "" if the check passed */
    char fix[256]; /* as why */
} dp_finding;

/* The facts that doctor has collected, all borrowed. An object is NULL if its source did not
 * answer; then the sentence beside it has the reason. */
typedef struct dp_doctor {
    const char *version;  /* of dpnode */
    const char *root;     /* before /proc and /dev: "", or a test's own */
    const json_t *worker; /* compute/worker/machine_info.h */
    const char *worker_why;
    const json_t *check; /* daemon/control/check.h, its lines as an object */
    const char *check_why;
    const json_t *status; /* control_msg.h, and below */
    const json_t *peers;
    const json_t *dialed;    /* own address: does it answer from here? */
    const json_t *rounds;    /* array of R */
    const json_t *events;    /* array */
    const json_t *plan;      /* compute/backend/plan.h, for the given manifest */
    const char *plan_name;   /* of its run; NULL: no manifest was given */
    bool plan_external;      /* it is of any model: without the model's file there is no plan */
    const char *text_why;    /* reason why its text has no whole sequence; NULL or "": it has one */
    uint64_t files_max;      /* hard limit of descriptors: the daemon raises its own to it */
    uint64_t now_ms;         /* unix */
    bool clock_synchronised; /* according to the kernel */
} dp_doctor;

/* Pure but for small files below root. *out is DP_FINDING_NONE before. */
typedef void dp_doctor_look(const dp_doctor *doctor, dp_finding *out);

typedef struct dp_doctor_check {
    const char *name; /* stable, for scripts: "disk" */
    dp_doctor_look *look;
} dp_doctor_check;

/* The checks of the machine, and of the node and its run, in the order of the output. */
const dp_doctor_check *dp_doctor_machine(size_t *count);
const dp_doctor_check *dp_doctor_node(size_t *count);

/* Fills in the text of a finding; the three are printf-like, and cut. */
void dp_finding_what(dp_finding *out, dp_finding_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void dp_finding_why(dp_finding *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void dp_finding_fix(dp_finding *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "ok", "warn", "fail". */
const char *dp_finding_level_name(dp_finding_level level);

#endif
