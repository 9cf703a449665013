#include "cli/cmd.h"

static const dp_verb *const verbs[] = {
    &dp_verb_up,
    &dp_verb_down,
    &dp_verb_doctor,
    &dp_verb_run_create,
    &dp_verb_run_validate,
    &dp_verb_run_fork,
    &dp_verb_run_merge,
    &dp_verb_invite,
    &dp_verb_token_inspect,
    &dp_verb_token_ls,
    &dp_verb_token_revoke,
    &dp_verb_token_rotate,
    &dp_verb_join,
    &dp_verb_status,
    &dp_verb_peers,
    &dp_verb_audit,
    &dp_verb_rounds,
    &dp_verb_wait,
    &dp_verb_why,
    &dp_verb_logs,
    &dp_verb_pause,
    &dp_verb_resume,
    &dp_verb_drain,
    &dp_verb_limits,
    &dp_verb_config_show,
    &dp_verb_leave,
    &dp_verb_revoke,
    &dp_verb_ckpt_ls,
    &dp_verb_ckpt_verify,
    &dp_verb_ckpt_export,
    &dp_verb_sample,
    &dp_verb_eval,
    &dp_verb_train,
    &dp_verb_data_tokenize,
    &dp_verb_data_info,
    &dp_verb_data_verify,
    &dp_verb_data,
    &dp_verb_top,
    &dp_verb_web,
    &dp_verb_swarm,
    &dp_verb_explain,
    &dp_verb_completion,
    &dp_verb_version,
};

const dp_verb *const *dp_verbs(size_t *count)
{
    *count = sizeof verbs / sizeof verbs[0];
    return verbs;
}
