/* An invented machine for the checks of doctor.h, and the expected result of one check. Include it
 * after cmocka.h. */
#ifndef DP_TESTS_UNIT_CLI_DOCTOR_KIT_H
#define DP_TESTS_UNIT_CLI_DOCTOR_KIT_H

#include <string.h>

#include "cli/doctor/doctor.h"

/* Facts with which all checks pass, for a test to change. Objects are borrowed. */
static inline dp_doctor doctor_of(const json_t *worker, const json_t *check, const json_t *status)
{
    return (dp_doctor){.version = "1.0",
                       .root = "",
                       .worker = worker,
                       .worker_why = "",
                       .check = check,
                       .check_why = "",
                       .status = status,
                       .files_max = 4096,
                       .now_ms = 1800000000000,
                       .clock_synchronised = true};
}

static inline dp_finding doctor_look(const dp_doctor_check *(*table)(size_t *), const char *name,
                                     const dp_doctor *doctor)
{
    dp_finding finding = {.level = DP_FINDING_NONE};
    size_t count = 0;
    const dp_doctor_check *const checks = table(&count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(checks[i].name, name) == 0) {
            checks[i].look(doctor, &finding);
            return finding;
        }
    }
    fail_msg("there is no check %s", name);
    return finding;
}

/* The level, and words that each sentence has; NULL: the sentence is empty. */
static inline void expect(dp_finding finding, dp_finding_level level, const char *what,
                          const char *why, const char *fix)
{
    const struct {
        const char *said;
        const char *words;
    } rows[] = {{finding.what, what}, {finding.why, why}, {finding.fix, fix}};
    if (finding.level != level) {
        fail_msg("%s: %s (%s)", dp_finding_level_name(finding.level), finding.what, finding.why);
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const bool holds = rows[i].words == NULL ? rows[i].said[0] == '\0'
                                                 : strstr(rows[i].said, rows[i].words) != NULL;
        if (!holds) {
            fail_msg("\"%s\" is not in \"%s\"", rows[i].words != NULL ? rows[i].words : "",
                     rows[i].said);
        }
    }
    /* A finding that reports a problem also says how to fix it. */
    assert_true(level < DP_FINDING_WARN || finding.fix[0] != '\0');
}

#endif
