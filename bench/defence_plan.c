#include "bench/defence_plan.h"

const char *defence_attack_name(defence_attack attack)
{
    static const char *const names[DEFENCE_ATTACKS] = {"honest", "flip",      "flip-10", "noise",
                                                       "copy",   "copy-near", "replay",  "lazy",
                                                       "drift",  "collude",   "nudge"};
    return names[attack];
}

const char *defence_rule_name(defence_rule rule)
{
    static const char *const names[DEFENCE_RULES] = {"clip",  "trim",     "signs",   "cosine",
                                                     "loss",  "loss-all", "shipped", "judge",
                                                     "align", "oracle"};
    return names[rule];
}

defence_limits defence_limits_standard(void)
{
    return (defence_limits){.reference = DEFENCE_OF_ROUND,
                            .align_share = 0.5,
                            .acquit = 1,
                            .errors = 4,
                            .likeness = 8,
                            .step = 0.25,
                            .budget = 0.03};
}
