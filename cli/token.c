#include "cli/token.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int no_token(dp_control_error *error, int exit, const char *what, const char *why)
{
    dp_error_set(error, exit, "E0203",
                 "copy the whole text that dpnode invite printed, from DPN1- on", what, why);
    return exit;
}

/* A token has no spaces, but mail programs and terminals insert line breaks. */
static void drop_spaces(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        if (!isspace((unsigned char)*from)) {
            *to++ = *from;
        }
    }
    *to = '\0';
}

static bool is_token(const char *given)
{
    given += strspn(given, " \t\r\n");
    return given[0] == '\0' || strncasecmp(given, "DPN", 3) == 0;
}

static int no_file(const char *given, dp_control_error *error)
{
    char why[256];
    snprintf(why, sizeof why, "%.160s: %s", given,
             strerror(errno)); /* NOLINT(concurrency-mt-unsafe): one thread */
    return no_token(error, DP_EXIT_DATA, "this is neither a token nor a file that can be read",
                    why);
}

int dp_token_input(const dp_cmd *cmd, char token[DP_TOKEN_INPUT_MAX], dp_control_error *error)
{
    const char *given =
        cmd->n_args > 0 ? cmd->args[0]
                        : getenv("DPNODE_TOKEN"); /* NOLINT(concurrency-mt-unsafe): one thread */
    if (given == NULL) {
        char fix[96];
        snprintf(fix, sizeof fix, "dpnode %s DPN1-...   # the text that dpnode invite printed",
                 cmd->verb->name);
        dp_error_set(error, DP_EXIT_USAGE, "E0001", fix, "a token is missing",
                     "there is no argument, and DPNODE_TOKEN is empty");
        return error->exit;
    }
    FILE *const file = strcmp(given, "-") == 0 ? stdin
                       : is_token(given)       ? NULL
                                               : fopen(given, "re");
    if (file == NULL && !is_token(given)) {
        return no_file(given, error);
    }
    if (file == stdin && isatty(STDIN_FILENO)) { /* It may have several lines. */
        fputs("Paste the token, then press Enter and Ctrl-D:\n", stderr);
    }
    if (file != NULL) {
        const size_t size = fread(token, 1, DP_TOKEN_INPUT_MAX - 1, file);
        token[size] = '\0';
        if (file != stdin) {
            DP_IGNORE(fclose(file) != 0); /* It was only read. */
        }
        if (size == DP_TOKEN_INPUT_MAX - 1 || strlen(token) != size) {
            return no_token(error, DP_EXIT_DATA, "this is not an invite token",
                            "the input is too long, or not text");
        }
    } else if (snprintf(token, DP_TOKEN_INPUT_MAX, "%s", given) >= DP_TOKEN_INPUT_MAX) {
        return no_token(error, DP_EXIT_DATA, "this is not an invite token",
                        "it is longer than any token");
    }
    drop_spaces(token);
    return token[0] != '\0'
               ? 0
               : no_token(error, DP_EXIT_DATA, "this is not an invite token", "it is empty");
}
