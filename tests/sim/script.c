#include "tests/sim/script.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "tests/sim/arguments.h"
#include "tests/sim/evil.h"

/* Written if not 0. */
static const struct number_key {
    const char *key;
    size_t at; /* uint32_t of dp_sim_options */
    uint32_t most;
} number_keys[] = {
    {"nodes", offsetof(dp_sim_options, nodes), DP_SIM_NODES_MAX},
    {"sites", offsetof(dp_sim_options, sites), DP_SIM_NODES_MAX},
    {"contributors", offsetof(dp_sim_options, contributors), DP_LISTED_MAX},
    {"loss-milli", offsetof(dp_sim_options, loss_milli), 999},
    {"churn-milli", offsetof(dp_sim_options, churn_milli), 10000},
    {"round-ms", offsetof(dp_sim_options, round_ms), 1000000000},
};

/* Written if yes. */
static const struct flag_key {
    const char *key;
    size_t at; /* bool of dp_sim_options */
} flag_keys[] = {
    {"lucky", offsetof(dp_sim_options, lucky)},
    {"rotate", offsetof(dp_sim_options, rotate)},
    {"keep-vote-key", offsetof(dp_sim_options, keep_vote_key)},
    {"enrolled", offsetof(dp_sim_options, enrolled)},
    {"parts", offsetof(dp_sim_options, parts)},
    {"sums", offsetof(dp_sim_options, sums)},
    {"span", offsetof(dp_sim_options, span)},
};

enum {
    NUMBER_KEYS = sizeof number_keys / sizeof number_keys[0],
    FLAG_KEYS = sizeof flag_keys / sizeof flag_keys[0]
};

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

static bool read_store(const char *text, dp_sim_store *out)
{
    for (int i = DP_SIM_STORE_MODEL; i <= DP_SIM_STORE_LIES; i++) {
        if (strcmp(text, dp_store_name((dp_sim_store)i)) == 0) {
            *out = (dp_sim_store)i;
            return true;
        }
    }
    return false;
}

/* Keys of the tables. False like take. */
static bool take_plain(dp_sim_options *options, const char *key, const char *value)
{
    for (size_t i = 0; i < NUMBER_KEYS; i++) {
        uint64_t number = 0;
        if (strcmp(key, number_keys[i].key) == 0) {
            const bool right = read_number(value, number_keys[i].most, &number) && number > 0;
            *(uint32_t *)(void *)((char *)options + number_keys[i].at) = (uint32_t)number;
            return right;
        }
    }
    for (size_t i = 0; i < FLAG_KEYS; i++) {
        if (strcmp(key, flag_keys[i].key) == 0) {
            return read_bool(value, (bool *)((char *)options + flag_keys[i].at));
        }
    }
    return false;
}

/* False: the key is unknown, or does not allow this value. */
static bool take(dp_script *script, const char *key, const char *value)
{
    dp_sim_options *options = &script->options;

    if (strcmp(key, "seed") == 0) {
        return read_number(value, UINT64_MAX, &options->seed);
    }
    if (strcmp(key, "until") == 0) {
        return read_seconds(value, &options->until_us);
    }
    if (strcmp(key, "every") == 0) {
        return read_bool(value, &options->all_on);
    }
    if (strcmp(key, "evil") == 0) {
        options->evil = dp_evil_named(value);
        return options->evil != 0;
    }
    if (strcmp(key, "store") == 0) {
        return read_store(value, &options->store);
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
    return take_plain(options, key, value);
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
    if (options->until_us != 0) {
        fprintf(out, "until %.6f\n", (double)options->until_us / 1e6);
    }
    if (options->evil != 0) {
        fprintf(out, "evil %s\n", dp_evil_name((dp_evil_kind)options->evil));
    }
    if (options->store != DP_SIM_STORE_DRAWN) {
        fprintf(out, "store %s\n", dp_store_name(options->store));
    }
    for (size_t i = 0; i < NUMBER_KEYS; i++) {
        const uint32_t number =
            *(const uint32_t *)(const void *)((const char *)options + number_keys[i].at);
        if (number != 0) {
            fprintf(out, "%s %" PRIu32 "\n", number_keys[i].key, number);
        }
    }
    for (size_t i = 0; i < FLAG_KEYS; i++) {
        if (*(const bool *)((const char *)options + flag_keys[i].at)) {
            fprintf(out, "%s yes\n", flag_keys[i].key);
        }
    }
    if (script->invariant[0] != '\0') {
        fprintf(out, "invariant %s\n", script->invariant);
    }
    return ferror(out) == 0 && fflush(out) == 0 ? DP_OK : DP_IO;
}
