/* dpnode: from the command line to a verb to an exit status. */
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/cmd.h"
#include "cli/paths.h"

static void print_usage(void)
{
    size_t count = 0;
    const dp_verb *const *verbs = dp_verbs(&count);
    printf("  dpnode run create --demo kjv     create a run\n"
           "  dpnode invite                    print a token for one node\n"
           "  dpnode join DPN1-...             join that run and train\n"
           "  dpnode status                    show the progress\n\n"
           "usage: dpnode VERB [ARGUMENTS] [--json] [--socket PATH]\n\n");
    for (size_t i = 0; i < count; i++) {
        printf("  %-14s %s\n", verbs[i]->name, verbs[i]->summary);
    }
    printf("\ndpnode VERB --help shows the options of a verb, dpnode -V the version. --socket or "
           "DPNODE_SOCKET names the daemon.\n");
}

/* The number of arguments that are the verb's name; 0: another verb. */
static int words_matched(const char *name, int argc, char **argv)
{
    int words = 0;
    while (words < argc) {
        const size_t size = strlen(argv[words]);
        if (size == 0 || strncmp(name, argv[words], size) != 0 ||
            (name[size] != ' ' && name[size] != '\0')) {
            return 0;
        }
        words++;
        if (name[size] == '\0') {
            return words;
        }
        name += size + 1;
    }
    return 0;
}

/* Names of verbs that begin with word, such as "run create, run validate" of run. */
static void list_group(const char *word, char *text, size_t size)
{
    size_t count = 0;
    size_t used = 0;
    const dp_verb *const *verbs = dp_verbs(&count);
    const size_t length = strlen(word);
    text[0] = '\0';
    for (size_t i = 0; i < count && used < size; i++) {
        if (strncmp(verbs[i]->name, word, length) == 0 && verbs[i]->name[length] == ' ') {
            const int more =
                snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", verbs[i]->name);
            used += more > 0 ? (size_t)more : 0;
        }
    }
}

/* The verb that was probably meant; NULL: none is similar. */
static const char *nearest_verb(const char *word, const char *second)
{
    char both[DP_NEAREST_SIZE_MAX * 2 + 2];
    size_t count = 0;
    const dp_verb *const *verbs = dp_verbs(&count);
    snprintf(both, sizeof both, "%.*s %.*s", DP_NEAREST_SIZE_MAX, word, DP_NEAREST_SIZE_MAX,
             second != NULL ? second : "");
    dp_nearest whole = {.word = second != NULL ? both : word};
    dp_nearest first = {.word = word};
    dp_nearest_offer(&first, "help");
    for (size_t i = 0; i < count; i++) {
        const char *const space = strchr(verbs[i]->name, ' ');
        /* The first word of the verb is missing. */
        if (space != NULL && strcmp(space + 1, word) == 0) {
            return verbs[i]->name;
        }
        dp_nearest_offer(&whole, verbs[i]->name);
        dp_nearest_offer(&first, verbs[i]->name);
    }
    return whole.best != NULL || dp_verbs_in_group(word) ? whole.best : first.best;
}

static int no_verb(const dp_cmd *cmd, const char *what, const char *why)
{
    dp_control_error error;
    dp_error_set(&error, DP_EXIT_USAGE, "E0002", "dpnode --help   # lists all verbs", what, why);
    return dp_cmd_fail(cmd, &error);
}

/* second: NULL, or the word after it. */
static int unknown_verb(const dp_cmd *cmd, const char *word, const char *second)
{
    const bool is_group = dp_verbs_in_group(word);
    const bool has_second = second != NULL && second[0] != '-';
    char others[256];
    char why[400];
    dp_control_error error;
    if (word[0] == '-') {
        dp_nearest nearest = {.word = word};
        dp_nearest_offer(&nearest, "--help");
        dp_nearest_offer(&nearest, "--version");
        snprintf(why, sizeof why, "%.100s%s%s%s", word,
                 nearest.best != NULL ? "; did you mean " : "",
                 nearest.best != NULL ? nearest.best : "", nearest.best != NULL ? "?" : "");
        dp_error_set(&error, DP_EXIT_USAGE, "E0002", "dpnode VERB [ARGUMENTS] [OPTIONS]",
                     "the verb comes before its options", why);
        return dp_cmd_fail(cmd, &error);
    }
    list_group(word, others, sizeof others);
    if (is_group && !has_second) {
        return no_verb(cmd, "the verb is incomplete", others);
    }
    const char *const near =
        has_second && second[0] == '\0' ? NULL : nearest_verb(word, has_second ? second : NULL);
    const int used = snprintf(why, sizeof why, "%.60s%s%.60s", word[0] != '\0' ? word : "\"\"",
                              is_group ? " " : "",
                              !is_group           ? ""
                              : second[0] != '\0' ? second
                                                  : "\"\"");
    if (near != NULL) {
        snprintf(why + used, sizeof why - (size_t)used, "; did you mean %s?", near);
    } else if (is_group) {
        snprintf(why + used, sizeof why - (size_t)used, "; known are %s", others);
    }
    return no_verb(cmd, "unknown verb", why);
}

int main(int argc, char **argv)
{
    dp_cmd cmd = {.tell_others = dp_verbs_tell_others};
    size_t count = 0;
    const dp_verb *const *verbs = dp_verbs(&count);
    setlocale(LC_ALL, "");
    setlocale(LC_NUMERIC, "C"); /* Numbers must be readable for programs too. */
    dp_path_be_private();
    signal(SIGPIPE, SIG_IGN);
    /* So that a mistake in the arguments is also reported as JSON. */
    for (int i = 1; i < argc; i++) {
        cmd.json = cmd.json || strcmp(argv[i], "--json") == 0;
    }
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        (argc == 2 && strcmp(argv[1], "help") == 0)) {
        print_usage();
        return argc < 2 ? DP_EXIT_USAGE : 0;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        return dp_cmd_run(&cmd, &dp_verb_version, argc - 2, argv + 2);
    }
    if (strcmp(argv[1], "help") == 0) { /* help VERB */
        argc--;
        argv++;
        cmd.help = true;
    }
    for (size_t i = 0; i < count; i++) {
        const int words = words_matched(verbs[i]->name, argc - 1, argv + 1);
        const char *const next = words > 0 ? argv[words + 1] : NULL;
        if (next != NULL && next[0] != '-' && verbs[i]->n_args_max == 0 &&
            dp_verbs_in_group(verbs[i]->name)) {
            return unknown_verb(&cmd, verbs[i]->name, next);
        }
        if (words > 0) {
            return dp_cmd_run(&cmd, verbs[i], argc - 1 - words, argv + 1 + words);
        }
    }
    const bool asked = argc > 2 && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0);
    if ((cmd.help || asked) && dp_verbs_in_group(argv[1])) {
        dp_verbs_help_group(argv[1]);
        return 0;
    }
    return unknown_verb(&cmd, argv[1], argv[2]);
}
