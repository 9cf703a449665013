/* dpnode: argv to a verb to an exit status. */
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/paths.h"

static void print_usage(void)
{
    size_t count = 0;
    const dp_verb *const *verbs = dp_verbs(&count);
    printf("  dpnode run create --demo kjv     create a run and get an invite token\n"
           "  dpnode join DPN1-...             train with others; the token is all it takes\n"
           "  dpnode status                    how it goes\n\n"
           "usage: dpnode VERB [ARGUMENTS] [--json] [--socket PATH]\n\n");
    for (size_t i = 0; i < count; i++) {
        printf("  %-14s %s\n", verbs[i]->name, verbs[i]->summary);
    }
    printf("\ndpnode VERB --help tells more. The daemon is found by --socket or DPNODE_SOCKET.\n");
}

/* How many of the arguments are the verb's name; 0: another verb. */
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

/* Names of verbs that begin with word, such as "create, validate" of run. */
static void list_second_words(const char *word, char *text, size_t size)
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

/* second: NULL, or the word after it. */
static int unknown_verb(const dp_cmd *cmd, const char *word, const char *second)
{
    const bool wrong = second != NULL && second[0] != '-';
    char others[256];
    char why[400];
    dp_control_error error;
    if (word[0] == '-') {
        dp_error_set(&error, DP_EXIT_USAGE, "E0002", "dpnode VERB [ARGUMENTS] [OPTIONS]",
                     "a verb comes first, its options stand behind it", word);
        return dp_cmd_fail(cmd, &error);
    }
    list_second_words(word, others, sizeof others);
    if (others[0] == '\0') {
        snprintf(why, sizeof why, "%.100s", word[0] != '\0' ? word : "\"\"");
    } else if (wrong) {
        snprintf(why, sizeof why, "%.60s %.60s; there are %s", word,
                 second[0] != '\0' ? second : "\"\"", others);
    } else {
        snprintf(why, sizeof why, "%s", others);
    }
    dp_error_set(&error, DP_EXIT_USAGE, "E0002", "dpnode --help   # lists all verbs",
                 others[0] == '\0' || wrong ? "there is no such verb"
                                            : "this verb needs a second word",
                 why);
    return dp_cmd_fail(cmd, &error);
}

static int run_verb(dp_cmd *cmd, const dp_verb *verb, int argc, char **argv)
{
    dp_control_error error;
    char socket[DP_CLI_PATH_MAX];
    dp_path_socket(socket);
    const bool long_socket = strlen(socket) > DP_CONTROL_PATH_MAX;
    snprintf(cmd->socket, sizeof cmd->socket, "%.*s", DP_CONTROL_PATH_MAX, socket);
    if (dp_cmd_parse(cmd, verb, argc, argv, &error) != DP_OK) {
        return dp_cmd_fail(cmd, &error);
    }
    if (cmd->help) {
        dp_cmd_help(verb);
        return 0;
    }
    if (long_socket && !cmd->socket_given) {
        dp_error_set(&error, DP_EXIT_USAGE, "E0003", "give a shorter one with --socket",
                     "a unix socket has a path of at most 100 characters", socket);
        return dp_cmd_fail(cmd, &error);
    }
    return verb->run(cmd);
}

int main(int argc, char **argv)
{
    dp_cmd cmd = {.json = false};
    size_t count = 0;
    const dp_verb *const *verbs = dp_verbs(&count);
    setlocale(LC_ALL, "");
    setlocale(LC_NUMERIC, "C"); /* Numbers are written for programs too. */
    signal(SIGPIPE, SIG_IGN);
    for (int i = 1; i < argc; i++) { /* So that a mistake in the arguments is told as JSON too. */
        cmd.json = cmd.json || strcmp(argv[i], "--json") == 0;
    }
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        (argc == 2 && strcmp(argv[1], "help") == 0)) {
        print_usage();
        return argc < 2 ? DP_EXIT_USAGE : 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        return run_verb(&cmd, &dp_verb_version, argc - 2, argv + 2);
    }
    if (strcmp(argv[1], "help") == 0) { /* help VERB */
        argc--;
        argv++;
        cmd.help = true;
    }
    for (size_t i = 0; i < count; i++) {
        const int words = words_matched(verbs[i]->name, argc - 1, argv + 1);
        if (words > 0) {
            return run_verb(&cmd, verbs[i], argc - 1 - words, argv + 1 + words);
        }
    }
    return unknown_verb(&cmd, argv[1], argv[2]);
}
