/* completion: the bash completion script, made from the table of verbs. */
#include <stdio.h>
#include <string.h>

#include "cli/cmd.h"

static void print_options(const dp_verb *verb)
{
    for (size_t i = 0; i < DP_OPTIONS_MAX && verb->options[i].name != NULL; i++) {
        printf("--%s ", verb->options[i].name);
    }
}

/* Second words of verbs that begin with the first word of verb i, once per first word. */
static void print_pair(const dp_verb *const *verbs, size_t count, size_t i)
{
    const char *space = strchr(verbs[i]->name, ' ');
    const size_t size = (size_t)(space - verbs[i]->name) + 1;
    if (i > 0 && strncmp(verbs[i - 1]->name, verbs[i]->name, size) == 0) {
        return;
    }
    printf("    '%.*s') words='", (int)size - 1, verbs[i]->name);
    for (size_t k = i; k < count; k++) {
        if (strncmp(verbs[k]->name, verbs[i]->name, size) == 0) {
            printf("%s ", verbs[k]->name + size);
        }
    }
    printf("--help' ;;\n");
}

static void print_bash(void)
{
    size_t count = 0;
    const dp_verb *const *verbs = dp_verbs(&count);
    printf("# bash completion of dpnode; made by: dpnode completion bash\n"
           "_dpnode() {\n"
           "  local word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} words='' common='--json "
           "--socket --help'\n"
           "  if ((COMP_CWORD == 1)); then\n    words='");
    for (size_t i = 0; i < count; i++) {
        const size_t size = strcspn(verbs[i]->name, " ");
        if (i == 0 || strcspn(verbs[i - 1]->name, " ") != size ||
            strncmp(verbs[i - 1]->name, verbs[i]->name, size) != 0) {
            printf("%.*s ", (int)size, verbs[i]->name);
        }
    }
    printf("--help --version'\n  else\n    if ((COMP_CWORD > 2)); then verb+=\" "
           "${COMP_WORDS[2]}\"; fi\n    case "
           "$verb in\n");
    for (size_t i = 0; i < count; i++) {
        if (strchr(verbs[i]->name, ' ') != NULL) {
            print_pair(verbs, count, i);
        }
        printf("    '%s'%s) words=\"", verbs[i]->name,
               strchr(verbs[i]->name, ' ') == NULL ? "*" : "");
        print_options(verbs[i]);
        printf("$common\" ;;\n");
    }
    printf("    esac\n  fi\n"
           "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
           "  if [[ ${#COMPREPLY[@]} == 0 && $word != -* ]]; then compopt -o default; fi\n"
           "}\n"
           "complete -F _dpnode dpnode\n");
}

static int run_completion(dp_cmd *cmd)
{
    dp_control_error error;
    if (strcmp(cmd->args[0], "bash") == 0) {
        print_bash();
        return 0;
    }
    dp_error_set(&error, DP_EXIT_USAGE, "E0001", "dpnode completion bash",
                 "there is no completion for this shell", cmd->args[0]);
    return dp_cmd_fail(cmd, &error);
}

const dp_verb dp_verb_completion = {
    .name = "completion",
    .run = run_completion,
    .arguments = "bash",
    .summary = "print the completion script of a shell",
    .examples = "  source <(dpnode completion bash)\n",
    .n_args_min = 1,
    .n_args_max = 1,
};
