#include "tests/sim/script.h"

#include <inttypes.h>
#include <string.h>

#include "tests/sim/arguments.h"

static bool read_number(const char *text, uint64_t most, uint64_t *out)
{
    return dp_read_number(text, 10, most, out);
}

static bool read_seconds(const char *text, uint64_t *out_us)
{
    double seconds = 0;

    if (!dp_read_decimal(text, 1e6, &seconds) || !(seconds > 0)) {
        return false;
    }
    *out_us = (uint64_t)(seconds * 1e6);
    return true;
}

static bool read_bool(const char *text, bool *out)
{
    *out = strcmp(text, "yes") == 0;
    return *out || strcmp(text, "no") == 0;
}

static bool read_profile(const char *text, dp_profile *out)
{
    for (int i = 0; i < DP_PROFILE_COUNT; i++) {
        if (strcmp(text, dp_profile_name((dp_profile)i)) == 0) {
            *out = (dp_profile)i;
            return true;
        }
    }
    return false;
}

/* False: the value is not one of this key, or there is no such key. */
static bool take(dp_script *script, const char *key, const char *value)
{
    dp_sim_options *options = &script->options;
    uint64_t number = 0;

    if (strcmp(key, "seed") == 0) {
        return read_number(value, UINT64_MAX, &options->seed);
    }
    if (strcmp(key, "nodes") == 0) {
        const bool right = read_number(value, DP_SIM_NODES_MAX, &number) && number > 0;
        options->nodes = (uint32_t)number;
        return right;
    }
    if (strcmp(key, "until") == 0) {
        return read_seconds(value, &options->until_us);
    }
    if (strcmp(key, "every") == 0) {
        return read_bool(value, &options->all_on);
    }
    if (strcmp(key, "lucky") == 0) {
        return read_bool(value, &options->lucky);
    }
    if (strcmp(key, "span") == 0) {
        return read_bool(value, &options->span);
    }
    if (strcmp(key, "early") == 0) {
        return read_bool(value, &options->early);
    }
    if (strcmp(key, "sites") == 0) {
        const bool right = read_number(value, DP_SIM_NODES_MAX, &number) && number > 0;
        options->sites = (uint32_t)number;
        return right;
    }
    if (strcmp(key, "parts") == 0) {
        return read_bool(value, &options->parts);
    }
    if (strcmp(key, "keep-vote-key") == 0) {
        return read_bool(value, &options->keep_vote_key);
    }
    if (strcmp(key, "profile") == 0) {
        return read_profile(value, &options->profile);
    }
    if (strcmp(key, "faults") == 0) {
        return dp_plan_faults(value, &options->faults, NULL) == DP_OK;
    }
    if (strcmp(key, "invariant") == 0 && strlen(value) < sizeof script->invariant) {
        memcpy(script->invariant, value, strlen(value) + 1);
        return true;
    }
    return false;
}

static dp_status read_version(const char *line, const char *name, dp_why *why)
{
    uint64_t version = 0;

    if (strncmp(line, "dpsim ", 6) != 0 || !read_number(line + 6, UINT32_MAX, &version)) {
        return dp_why_set(why, DP_BADMSG, "%s:1: not a script: the first line must be \"dpsim %d\"",
                          name, DP_SCRIPT_VERSION);
    }
    if (version != DP_SCRIPT_VERSION) {
        return dp_why_set(why, DP_VERSION,
                          "%s:1: a script of version %" PRIu64 "; this program reads version %d",
                          name, version, DP_SCRIPT_VERSION);
    }
    return DP_OK;
}

dp_status dp_script_read(dp_script *script, FILE *in, const char *name, dp_why *why)
{
    char line[DP_SCRIPT_LINE_MAX + 2];
    dp_script read = {.options = {.faults = DP_FAULTS_ALL, .trace = -1}};
    int number = 0;
    bool has_seed = false;

    while (fgets(line, sizeof line, in) != NULL) {
        const size_t size = strcspn(line, "\n");
        number++;
        if (size > DP_SCRIPT_LINE_MAX || number > DP_SCRIPT_LINES_MAX) {
            return dp_why_set(why, DP_BADMSG, "%s:%d: too long", name, number);
        }
        line[size] = '\0';
        if (number == 1) {
            DP_TRY(read_version(line, name, why));
            continue;
        }
        if (line[0] == '\0' || line[0] == '#') {
            continue;
        }
        char *value = strchr(line, ' ');
        if (value != NULL) {
            *value++ = '\0';
        }
        if (value == NULL || !take(&read, line, value)) {
            return dp_why_set(why, DP_BADMSG, "%s:%d: cannot read \"%s %s\"", name, number, line,
                              value == NULL ? "" : value);
        }
        has_seed = has_seed || strcmp(line, "seed") == 0;
    }
    if (ferror(in) != 0) {
        return dp_why_set(why, DP_IO, "%s: cannot be read", name);
    }
    if (!has_seed) {
        return dp_why_set(why, DP_BADMSG, "%s:%d: ends without a seed", name, number);
    }
    *script = read;
    return DP_OK;
}

dp_status dp_script_write(const dp_script *script, FILE *out)
{
    const dp_sim_options *options = &script->options;
    const char *comma = "";

    fprintf(out, "dpsim %d\nseed %" PRIu64 "\nprofile %s\nfaults ", DP_SCRIPT_VERSION,
            options->seed, dp_profile_name(options->profile));
    for (uint32_t i = 0; i < DP_FAULT_COUNT; i++) {
        if ((options->faults >> i & 1) != 0) {
            fprintf(out, "%s%s", comma, dp_fault_name((dp_fault)i));
            comma = ",";
        }
    }
    fprintf(out, "%s\nevery %s\n", options->faults == 0 ? "none" : "",
            options->all_on ? "yes" : "no");
    if (options->nodes != 0) {
        fprintf(out, "nodes %u\n", options->nodes);
    }
    if (options->until_us != 0) {
        fprintf(out, "until %.6f\n", (double)options->until_us / 1e6);
    }
    if (options->lucky) {
        fprintf(out, "lucky yes\n");
    }
    if (options->keep_vote_key) {
        fprintf(out, "keep-vote-key yes\n");
    }
    if (options->early) {
        fprintf(out, "early yes\n");
    }
    if (options->span) {
        fprintf(out, "span yes\n");
    }
    if (options->sites > 0) {
        fprintf(out, "sites %u\n", options->sites);
    }
    if (options->parts) {
        fprintf(out, "parts yes\n");
    }
    if (script->invariant[0] != '\0') {
        fprintf(out, "invariant %s\n", script->invariant);
    }
    return ferror(out) == 0 && fflush(out) == 0 ? DP_OK : DP_IO;
}
