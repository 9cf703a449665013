#include "cli/cmd.h"

#include <stdio.h>
#include <string.h>

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

static bool is_of_group(const dp_verb *verb, const char *word)
{
    const size_t size = strlen(word);
    return strncmp(verb->name, word, size) == 0 && verb->name[size] == ' ';
}

static void print_group(const char *word)
{
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (is_of_group(verbs[i], word)) {
            printf("  %-14s %s\n", verbs[i]->name, verbs[i]->summary);
        }
    }
}

bool dp_verbs_in_group(const char *word)
{
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (is_of_group(verbs[i], word)) {
            return true;
        }
    }
    return false;
}

void dp_verbs_help_group(const char *word)
{
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (is_of_group(verbs[i], word)) {
            fputs(verbs[i]->examples, stdout);
        }
    }
    printf("\nusage: dpnode %s VERB [ARGUMENTS] [OPTIONS]\n\n", word);
    print_group(word);
    printf("\ndpnode %s VERB --help lists its options.\n", word);
}

void dp_verbs_tell_others(const char *word)
{
    if (dp_verbs_in_group(word)) {
        printf("\nThere are also:\n");
        print_group(word);
    }
}
