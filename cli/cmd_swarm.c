#include <stdio.h>

#include "cli/cmd.h"

static int run_swarm(dp_cmd *cmd)
{
    (void)cmd;
    return DP_EXIT_SOFTWARE;
}

const dp_verb dp_verb_swarm = {
    .name = "swarm", .run = run_swarm, .arguments = "", .summary = "x", .examples = ""};
