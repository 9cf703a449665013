#include "cli/token.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int no_token(dp_control_error *error, int exit, const char *what, const char *why)
{
    dp_error_set(error, exit, "E0203",
                 "copy the whole text that dpnode invite printed; it begins with DPN1-", what, why);
    return exit;
}

static void trim(char *text)
{
    size_t size = strlen(text);
    size_t start = 0;
    while (size > 0 && isspace((unsigned char)text[size - 1])) {
        size--;
    }
    while (start < size && isspace((unsigned char)text[start])) {
        start++;
    }
    memmove(text, text + start, size - start);
    text[size - start] = '\0';
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
                     "neither an argument nor DPNODE_TOKEN holds one");
        return error->exit;
    }
    if (strcmp(given, "-") == 0) {
        const size_t size = fread(token, 1, DP_TOKEN_INPUT_MAX - 1, stdin);
        token[size] = '\0';
        if (size == DP_TOKEN_INPUT_MAX - 1 || strlen(token) != size) {
            return no_token(error, DP_EXIT_DATA, "this is no invite token",
                            "standard input is too long, or not text");
        }
    } else if (snprintf(token, DP_TOKEN_INPUT_MAX, "%s", given) >= DP_TOKEN_INPUT_MAX) {
        return no_token(error, DP_EXIT_DATA, "this is no invite token",
                        "it is longer than any token");
    }
    trim(token);
    return token[0] != '\0'
               ? 0
               : no_token(error, DP_EXIT_DATA, "this is no invite token", "it is empty");
}
