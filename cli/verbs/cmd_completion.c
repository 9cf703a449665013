/* completion: the completion scripts of shells, made from the table of verbs. */
#include <stdio.h>
#include <string.h>

#include "cli/cmd.h"

static void print_options(const dp_verb *verb)
{
    for (size_t i = 0; i < DP_OPTIONS_MAX && verb->options[i].name != NULL; i++) {
        printf("--%s ", verb->options[i].name);
    }
}

/* Is verb i the first one with its first word, which has *size characters? */
static bool begins_word(const dp_verb *const *verbs, size_t i, size_t *size)
{
    *size = strcspn(verbs[i]->name, " ");
    return i == 0 || strcspn(verbs[i - 1]->name, " ") != *size ||
           strncmp(verbs[i - 1]->name, verbs[i]->name, *size) != 0;
}

/* The second word of verb k if its first one is that of verb i, which has size characters; else
 * NULL. */
static const char *second_word(const dp_verb *const *verbs, size_t k, size_t i, size_t size)
{
    const bool same =
        strncmp(verbs[k]->name, verbs[i]->name, size) == 0 && verbs[k]->name[size] == ' ';
    return same ? verbs[k]->name + size + 1 : NULL;
}

/* Second words of verbs that begin with the first word of verb i, once per first word. */
static void print_pair(const dp_verb *const *verbs, size_t count, size_t i)
{
    size_t size = 0;
    if (!begins_word(verbs, i, &size)) {
        return;
    }
    printf("    '%.*s') words='", (int)size, verbs[i]->name);
    for (size_t k = i; k < count; k++) {
        const char *const second = second_word(verbs, k, i, size);
        if (second != NULL) {
            printf("%s ", second);
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
        size_t size = 0;
        if (begins_word(verbs, i, &size)) {
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

/* ---- zsh and fish, which also show what a word does ---- */

/* The text inside single quotes: before each character of marks stands a backslash; a quote ends
 * the text, and begins it again, in zsh. */
static void print_quoted(const char *text, const char *marks)
{
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '\'' && strchr(marks, '\'') == NULL) {
            printf("'\\''");
            continue;
        }
        if (strchr(marks, *at) != NULL) {
            putchar('\\');
        }
        putchar(*at);
    }
}

/* Describes the first word of verb i by its second words, or by the summary of the verb. */
static void print_purpose(const dp_verb *const *verbs, size_t count, size_t i, size_t size,
                          const char *marks)
{
    const char *comma = "";
    if (strchr(verbs[i]->name, ' ') == NULL) {
        print_quoted(verbs[i]->summary, marks);
        return;
    }
    for (size_t k = i; k < count; k++) {
        const char *const second = second_word(verbs, k, i, size);
        if (second != NULL) {
            printf("%s%s", comma, second);
            comma = ", ";
        }
    }
}

static const char zsh_marks[] = ":\\";

static void print_zsh_options(const dp_option *options, size_t count)
{
    for (size_t i = 0; i < count && options[i].name != NULL; i++) {
        printf(" '--%s:", options[i].name);
        print_quoted(options[i].text, zsh_marks);
        putchar('\'');
    }
}

static void print_zsh_verb(const dp_verb *const *verbs, size_t count, size_t i)
{
    size_t n_common = 0;
    size_t size = 0;
    const dp_option *const common = dp_cmd_common(&n_common);
    const bool pair = strchr(verbs[i]->name, ' ') != NULL;
    if (begins_word(verbs, i, &size) && pair) {
        printf("      '%.*s') found=(", (int)size, verbs[i]->name);
        for (size_t k = i; k < count; k++) {
            const char *const second = second_word(verbs, k, i, size);
            if (second != NULL) {
                printf(" '%s:", second);
                print_quoted(verbs[k]->summary, zsh_marks);
                putchar('\'');
            }
        }
        printf(" ) ;;\n");
    }
    printf("      '%s'%s) found=(", verbs[i]->name, pair ? "" : "*");
    print_zsh_options(verbs[i]->options, DP_OPTIONS_MAX);
    print_zsh_options(common, n_common);
    printf(" ) ;;\n");
}

static void print_zsh(void)
{
    size_t count = 0;
    const dp_verb *const *verbs = dp_verbs(&count);
    printf("#compdef dpnode\n"
           "# zsh completion of dpnode; made by: dpnode completion zsh\n"
           "_dpnode() {\n"
           "  local verb=$words[2]\n"
           "  local -a found\n"
           "  if ((CURRENT == 2)); then\n"
           "    found=(\n");
    for (size_t i = 0; i < count; i++) {
        size_t size = 0;
        if (begins_word(verbs, i, &size)) {
            printf("      '%.*s:", (int)size, verbs[i]->name);
            print_purpose(verbs, count, i, size, zsh_marks);
            printf("'\n");
        }
    }
    printf("    )\n"
           "  else\n"
           "    if ((CURRENT > 3)); then verb+=\" $words[3]\"; fi\n"
           "    case $verb in\n");
    for (size_t i = 0; i < count; i++) {
        print_zsh_verb(verbs, count, i);
    }
    printf("    esac\n"
           "  fi\n"
           "  _describe dpnode found || _files\n"
           "}\n"
           "if [[ $funcstack[1] == _dpnode ]]; then _dpnode; else compdef _dpnode dpnode; fi\n");
}

static const char fish_marks[] = "'\\";

static void print_fish_options(const char *verb, const dp_option *options, size_t count)
{
    for (size_t i = 0; i < count && options[i].name != NULL; i++) {
        printf("complete -c dpnode");
        if (verb != NULL) {
            printf(" -n '__dpnode_typed %s'", verb);
        }
        if (options[i].letter != 0) {
            printf(" -s %c", options[i].letter);
        }
        printf(" -l %s%s -d '", options[i].name, options[i].value != NULL ? " -r" : "");
        print_quoted(options[i].text, fish_marks);
        printf("'\n");
    }
}

static void print_fish(void)
{
    size_t count = 0;
    size_t n_common = 0;
    const dp_verb *const *verbs = dp_verbs(&count);
    const dp_option *const common = dp_cmd_common(&n_common);
    printf("# fish completion of dpnode; made by: dpnode completion fish\n"
           "function __dpnode_typed # The command line begins with these words.\n"
           "    set -l typed (commandline -opc)\n"
           "    set -l last (math 1 + (count $argv))\n"
           "    test (count $typed) -gt (count $argv)\n"
           "    and test \"$typed[2..$last]\" = \"$argv\"\n"
           "end\n"
           "function __dpnode_next # ... and the next word is being typed.\n"
           "    test (count (commandline -opc)) -eq (math 1 + (count $argv))\n"
           "    and __dpnode_typed $argv\n"
           "end\n");
    print_fish_options(NULL, common, n_common);
    for (size_t i = 0; i < count; i++) {
        const char *const space = strchr(verbs[i]->name, ' ');
        size_t size = 0;
        if (begins_word(verbs, i, &size)) {
            printf("complete -c dpnode -n 'test (count (commandline -opc)) -eq 1' -f -a %.*s -d '",
                   (int)size, verbs[i]->name);
            print_purpose(verbs, count, i, size, fish_marks);
            printf("'\n");
        }
        if (space != NULL) {
            printf("complete -c dpnode -n '__dpnode_next %.*s' -f -a %s -d '", (int)size,
                   verbs[i]->name, space + 1);
            print_quoted(verbs[i]->summary, fish_marks);
            printf("'\n");
        }
        print_fish_options(verbs[i]->name, verbs[i]->options, DP_OPTIONS_MAX);
    }
}

static int run_completion(dp_cmd *cmd)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    dp_control_error error;
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
        if (strcmp(cmd->args[0], shells[i].name) == 0) {
            shells[i].print();
            return 0;
        }
    }
    dp_error_set(&error, DP_EXIT_USAGE, "E0001", "dpnode completion bash   # or zsh, or fish",
                 "there is no completion for this shell", cmd->args[0]);
    return dp_cmd_fail(cmd, &error);
}

const dp_verb dp_verb_completion = {
    .name = "completion",
    .run = run_completion,
    .arguments = "bash|zsh|fish",
    .summary = "print the completion script of a shell",
    .examples = "  source <(dpnode completion bash)   # or zsh\n"
                "  dpnode completion fish | source\n",
    .n_args_min = 1,
    .n_args_max = 1,
};
