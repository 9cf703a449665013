#include "tests/sim/explore_arguments.h"

#include <string.h>

#include "tests/sim/arguments.h"

enum { BIDS_MAX = 7, BIDS_ALL_MAX = 31, CRASHES_MAX = 7 };

static bool read_count(const char *text, uint32_t least, uint32_t most, uint32_t *out)
{
    uint64_t value = 0;

    if (!dp_read_number(text, 10, most, &value) || value < least) {
        return false;
    }
    *out = (uint32_t)value;
    return true;
}

/* text is one of two words: *second says which. */
static bool read_choice(const char *text, const char *first, const char *other, bool *second)
{
    *second = strcmp(text, other) == 0;
    return *second || strcmp(text, first) == 0;
}

/* ---- one reader per kind of value ---- */

static bool read_slots(dp_explore_arguments *args, const char *text)
{
    return read_count(text, 1, DP_EXPLORE_SLOTS_MAX, &args->bounds.slots);
}

static bool read_voters(dp_explore_arguments *args, const char *text)
{
    return read_choice(text, "stay", "change", &args->bounds.hand_over);
}

static bool read_bids(dp_explore_arguments *args, const char *text)
{
    return read_count(text, 0, BIDS_MAX, &args->bounds.bids);
}

static bool read_bids_all(dp_explore_arguments *args, const char *text)
{
    return read_count(text, 0, BIDS_ALL_MAX, &args->bids_all);
}

static bool read_crashes(dp_explore_arguments *args, const char *text)
{
    return read_count(text, 0, CRASHES_MAX, &args->crashes);
}

static bool read_states(dp_explore_arguments *args, const char *text)
{
    return dp_read_number(text, 10, UINT64_MAX, &args->states) && args->states > 0;
}

static bool read_claim(dp_explore_arguments *args, const char *text)
{
    return read_choice(text, "all", "s1", &args->only_s1);
}

static bool read_votes(dp_explore_arguments *args, const char *text)
{
    return read_choice(text, "together", "each", &args->votes_each);
}

static const struct option {
    const char *name;
    bool (*read)(dp_explore_arguments *args, const char *text);
    const char *needs;
} options[] = {
    {"--slots", read_slots, "a number from 1 to 3"},
    {"--voters", read_voters, "stay or change"},
    {"--bids", read_bids, "a number of bids of each voter, from 0 to 7"},
    {"--bids-all", read_bids_all, "a number of bids of all voters together, from 0 to 31"},
    {"--crashes", read_crashes, "a number from 0 to 7"},
    {"--states", read_states, "a number of states to stop at, at least 1"},
    {"--claim", read_claim, "all or s1"},
    {"--votes", read_votes, "together or each"},
};
_Static_assert(DP_EXPLORE_SLOTS_MAX == 3 && BIDS_MAX == 7 && BIDS_ALL_MAX == 31 && CRASHES_MAX == 7,
               "what the sentences say");

static const struct option *option_of(const char *name)
{
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (strcmp(name, options[i].name) == 0) {
            return &options[i];
        }
    }
    return NULL;
}

dp_status dp_explore_arguments_read(dp_explore_arguments *args, int argc, char **argv, dp_why *why)
{
    dp_explore_arguments read = *args;

    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            read.help = true;
            continue;
        }
        const struct option *option = option_of(argv[i]);
        if (option == NULL) {
            return dp_why_set(why, DP_BADARG,
                              "\"%.60s\" is no option of --explore; dpsim --explore --help lists "
                              "them",
                              argv[i]);
        }
        if (i + 1 >= argc) {
            return dp_why_set(why, DP_BADARG, "%s needs %s", option->name, option->needs);
        }
        if (!option->read(&read, argv[++i])) {
            return dp_why_set(why, DP_BADARG, "%s \"%.60s\": needs %s", option->name, argv[i],
                              option->needs);
        }
    }
    *args = read;
    return DP_OK;
}

void dp_explore_arguments_usage(FILE *out)
{
    fputs("usage: dpsim --explore [--slots N] [--voters stay|change] [--bids N] [--bids-all N] "
          "[--crashes N]\n"
          "                       [--states N] [--claim all|s1] [--votes together|each]\n"
          "Searches every interleaving of the votes of a slot, or of slots that follow each other, "
          "within these bounds.\n"
          "Exit: 0 all searched and right, 1 a claim fails, 2 more than --states states, 64 wrong "
          "words.\n",
          out);
}
