#include "tests/sim/arguments.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/jobs.h"
#include "tests/sim/evil.h"

#define SECONDS_MAX 1e6

bool dp_read_number(const char *text, int base, uint64_t most, uint64_t *out)
{
    char *end = NULL;

    errno = 0;
    const unsigned long long value = strtoull(text, &end, base);
    if (isdigit((unsigned char)text[0]) == 0 || *end != '\0' || errno != 0 || value > most) {
        return false;
    }
    *out = value;
    return true;
}

bool dp_read_decimal(const char *text, double most, double *out)
{
    char *end = NULL;
    const double value = strtod(text, &end);

    if (isspace((unsigned char)text[0]) != 0 || end == text || *end != '\0' ||
        !(value >= 0 && value <= most)) {
        return false;
    }
    *out = value;
    return true;
}

/* ---- one reader per kind of value ---- */

static bool read_seeds(dp_arguments *args, const char *text)
{
    char first[32];
    const char *dots = strstr(text, "..");
    const size_t size = dots != NULL ? (size_t)(dots - text) : strlen(text);

    if (size >= sizeof first) {
        return false;
    }
    memcpy(first, text, size);
    first[size] = '\0';
    if (!dp_read_number(first, 0, UINT64_MAX, &args->first)) {
        return false;
    }
    args->last = args->first;
    return (dots == NULL || dp_read_number(dots + 2, 0, UINT64_MAX, &args->last)) &&
           args->first > 0 && args->first <= args->last;
}

static bool read_count(const char *text, uint32_t least, uint32_t most, uint32_t *out)
{
    uint64_t value = 0;

    if (!dp_read_number(text, 0, most, &value) || value < least) {
        return false;
    }
    *out = (uint32_t)value;
    return true;
}

static bool read_nodes(dp_arguments *args, const char *text)
{
    return read_count(text, 1, DP_SIM_NODES_MAX, &args->options.nodes);
}

static bool read_sites(dp_arguments *args, const char *text)
{
    return read_count(text, 1, DP_SIM_NODES_MAX, &args->options.sites);
}

static bool read_contributors(dp_arguments *args, const char *text)
{
    return read_count(text, DP_LISTED_DEFAULT, DP_LISTED_MAX, &args->options.contributors);
}

static bool read_jobs(dp_arguments *args, const char *text)
{
    return read_count(text, 1, JOBS_MAX, &args->jobs);
}

static bool read_failures(dp_arguments *args, const char *text)
{
    return read_count(text, 1, UINT32_MAX, &args->failures_max);
}

static bool read_trace(dp_arguments *args, const char *text)
{
    uint32_t node = 0;
    const bool right = read_count(text, 0, DP_SIM_NODES_MAX - 1, &node);

    args->options.trace = right ? (int32_t)node : args->options.trace;
    return right;
}

static bool read_until(dp_arguments *args, const char *text)
{
    double seconds = 0;
    const bool right = dp_read_decimal(text, SECONDS_MAX, &seconds);

    args->options.until_us = (uint64_t)(seconds * 1e6);
    return right && args->options.until_us > 0;
}

static bool read_round(dp_arguments *args, const char *text)
{
    double seconds = 0;
    const bool right = dp_read_decimal(text, SECONDS_MAX, &seconds);

    args->options.round_ms = (uint32_t)(seconds * 1000 + 0.5);
    return right && args->options.round_ms >= 100;
}

static bool read_loss(dp_arguments *args, const char *text)
{
    double percent = 0;
    const bool right = dp_read_decimal(text, 99.9, &percent);

    args->options.loss_milli = (uint32_t)(percent * 10 + 0.5);
    return right;
}

static bool read_churn(dp_arguments *args, const char *text)
{
    double percent = 0;
    const bool right = dp_read_decimal(text, 1000, &percent);

    args->options.churn_milli = (uint32_t)(percent * 10 + 0.5);
    return right;
}

static bool read_profile(dp_arguments *args, const char *text)
{
    for (int i = 0; i < DP_PROFILE_COUNT; i++) {
        if (strcmp(text, dp_profile_name((dp_profile)i)) == 0) {
            args->options.profile = (dp_profile)i;
            return true;
        }
    }
    return false;
}

const char *dp_store_name(dp_sim_store store)
{
    static const char *const names[] = {"drawn", "model", "real", "lies"};

    return names[store];
}

static bool read_store(dp_arguments *args, const char *text)
{
    for (int i = 0; i <= DP_SIM_STORE_LIES; i++) {
        if (strcmp(text, dp_store_name((dp_sim_store)i)) == 0) {
            args->options.store = (dp_sim_store)i;
            return true;
        }
    }
    return false;
}

static bool read_evil(dp_arguments *args, const char *text)
{
    args->options.evil = dp_evil_named(text);
    return args->options.evil != 0;
}

static bool read_faults(dp_arguments *args, const char *text)
{
    args->faults = text;
    return dp_plan_faults(text, &args->options.faults, NULL) == DP_OK;
}

static bool read_script(dp_arguments *args, const char *text)
{
    args->script = text;
    return text[0] != '\0';
}

static bool read_output(dp_arguments *args, const char *text)
{
    args->output = text;
    return text[0] != '\0';
}

static const struct value_option {
    const char *name;
    bool (*read)(dp_arguments *args, const char *text);
    const char *needs;
} value_options[] = {
    {"--seed", read_seeds, "a number from 1 to 2^64 - 1, or two as A..B"},
    {"--seeds", read_seeds, "two numbers from 1 to 2^64 - 1 as A..B, A not above B"},
    {"--script", read_script, "a file that dpsim --shrink wrote"},
    {"--output", read_output, "the name of a file"},
    {"--nodes", read_nodes, "a number of nodes, from 1 to 1024"},
    {"--sites", read_sites, "a number of sites, from 1 to 1024"},
    {"--contributors", read_contributors, "contributors that a record lists, 32 to 1024"},
    {"--until", read_until, "simulated seconds, above 0"},
    {"--faults", read_faults, "names of classes with commas, all, or none"},
    {"--profile", read_profile, "one of the profiles that --help lists"},
    {"--jobs", read_jobs, "a number of processes, from 1 to 64"},
    {"--max-failures", read_failures, "a number, at least 1"},
    {"--trace", read_trace, "the number of a node, from 0"},
    {"--loss", read_loss, "percent of all messages, 0 to 99.9"},
    {"--churn", read_churn, "percent of the nodes per minute, 0 to 1000"},
    {"--round", read_round, "seconds, at least 0.1"},
    {"--store", read_store, "model, real or lies"},
    {"--evil", read_evil, "voter, trainer, holder, member, inviter or mixed"},
};

_Static_assert(DP_SIM_NODES_MAX == 1024 && JOBS_MAX == 64, "what the sentences say");

static bool *flag_of(dp_arguments *args, const char *name)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {
        {"--json", &args->json},
        {"--quiet", &args->quiet},
        {"--shrink", &args->shrink},
        {"--help", &args->help},
        {"--every", &args->options.all_on},
        {"--lucky", &args->options.lucky},
        {"--rotate", &args->options.rotate},
        {"--parts", &args->options.parts},
        {"--span", &args->options.span},
        {"--sums", &args->options.sums},
        {"--enrolled", &args->options.enrolled},
        {"--keep-vote-key", &args->options.keep_vote_key},
    };

    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (strcmp(name, flags[i].name) == 0) {
            return flags[i].flag;
        }
    }
    return NULL;
}

static const struct value_option *option_of(const char *name)
{
    for (size_t i = 0; i < sizeof value_options / sizeof value_options[0]; i++) {
        if (strcmp(name, value_options[i].name) == 0) {
            return &value_options[i];
        }
    }
    return NULL;
}

dp_status dp_arguments_read(dp_arguments *args, int argc, char **argv, dp_why *why)
{
    dp_arguments read = *args;

    for (int i = 1; i < argc; i++) {
        bool *flag = flag_of(&read, argv[i]);
        if (flag != NULL) {
            *flag = true;
            continue;
        }
        const struct value_option *option = option_of(argv[i]);
        if (option == NULL) {
            return dp_why_set(why, DP_BADARG, "\"%.60s\" is no option; dpsim --help lists them",
                              argv[i]);
        }
        if (i + 1 >= argc) {
            return dp_why_set(why, DP_BADARG, "%s needs %s", option->name, option->needs);
        }
        if (option->read == read_faults) { /* The sentence names the wrong fault. */
            DP_TRY(dp_plan_faults(argv[i + 1], &read.options.faults, why));
        }
        if (!option->read(&read, argv[++i])) {
            return dp_why_set(why, DP_BADARG, "%s \"%.60s\": needs %s", option->name, argv[i],
                              option->needs);
        }
    }
    if (read.first == 0 && read.script == NULL && !read.help) {
        return dp_why_set(why, DP_BADARG,
                          "what to run is not said: --seed N, --seeds A..B or --script FILE");
    }
    if (read.shrink && read.first != read.last) {
        return dp_why_set(why, DP_BADARG, "--shrink takes one seed that fails, as --seed N");
    }
    if (read.options.span && (read.options.parts || read.options.profile == DP_PROFILE_STEPS)) {
        return dp_why_set(why, DP_BADARG,
                          "--span goes with neither --parts nor --profile steps: a manifest that "
                          "asks for both is refused");
    }
    if (read.options.sums && !read.options.parts) {
        return dp_why_set(why, DP_BADARG, "--sums goes with --parts: they are sums of parts");
    }
    if (read.options.enrolled &&
        (read.options.profile != DP_PROFILE_SCALE || read.options.store >= DP_SIM_STORE_REAL)) {
        return dp_why_set(why, DP_BADARG,
                          "--enrolled goes with --profile scale, and not with --store real: the "
                          "store was not told of the records that the run begins with");
    }
    if (read.output != NULL && !read.shrink) {
        return dp_why_set(why, DP_BADARG, "--output goes with --shrink, which writes that file");
    }
    *args = read;
    return DP_OK;
}

void dp_arguments_usage(FILE *out)
{
    fputs("usage: dpsim --seed N | --seeds A..B | --script FILE [--nodes N] [--until SECONDS] "
          "[--faults LIST|all|none] [--every]\n"
          "             [--profile NAME] [--jobs N] [--max-failures N] [--trace NODE] [--shrink "
          "[--output FILE]]\n"
          "             [--loss PERCENT] [--churn PERCENT-PER-MINUTE] [--round SECONDS]\n"
          "             [--sites N] [--lucky] [--rotate] "
          "[--enrolled] "
          "[--parts] [--sums] [--span] "
          "[--keep-vote-key] "
          "[--store "
          "model|real|lies]\n"
          "             [--evil KIND] [--json] [--quiet]\n"
          "       dpsim --explore ... (dpsim --explore --help says what)\n"
          "profiles:",
          out);
    for (int i = 0; i < DP_PROFILE_COUNT; i++) {
        fprintf(out, " %s", dp_profile_name((dp_profile)i));
    }
    fputs("\nfaults:", out);
    for (int i = 0; i < DP_FAULT_COUNT; i++) {
        fprintf(out, " %s", dp_fault_name((dp_fault)i));
    }
    fputs(
        "\n--every turns every listed class on; otherwise each is on with probability one half.\n",
        out);
}
