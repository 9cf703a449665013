/* explain: the meaning of an error code. docs/ERRORS.md is the table, and part of the program. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "cli/cmd.h"

/* The bytes of the file between two symbols. CMakeLists.txt gives its path. */
__asm__(".pushsection .rodata\n"
        "dp_errors_md:\n.incbin \"" DP_ERRORS_FILE "\"\n"
        "dp_errors_md_end:\n.byte 0\n.popsection\n");
extern const char dp_errors_md[] __attribute__((visibility("hidden")));
extern const char dp_errors_md_end[] __attribute__((visibility("hidden")));

enum { CODE_CHARACTERS = 5 };

/* "| E0203 [65] | meaning |" below "## Tokens". Views of the file. */
typedef struct error_row {
    dp_view group;
    dp_view code;
    dp_view exits; /* "65", "75, 77" or "-": the cause decides */
    dp_view meaning;
} error_row;

static dp_view between(const char *from, const char *to)
{
    return dp_view_of(from, (size_t)(to - from));
}

/* Moves *at behind the next row, whose group may begin before it. False: there are no more. */
static bool next_row(const char **at, dp_view *group, error_row *out)
{
    while (*at < dp_errors_md_end) {
        const char *const line = *at;
        const char *const end = memchr(line, '\n', (size_t)(dp_errors_md_end - line));
        const char *const open = strstr(line, " [");
        const char *const close = strstr(line, "] | ");
        if (end == NULL) {
            return false;
        }
        *at = end + 1;
        if (strncmp(line, "## ", 3) == 0) {
            *group = between(line + 3, end);
        } else if (strncmp(line, "| E0", 4) == 0 && open != NULL && close != NULL && close < end &&
                   end - close > 6) {
            *out = (error_row){*group, between(line + 2, open), between(open + 2, close),
                               between(close + 4, end - 2)};
            return true;
        }
    }
    return false;
}

static json_t *json_of(const error_row *row)
{
    json_t *const exits = json_array();
    const char *at = (const char *)row->exits.data;
    while (isdigit((unsigned char)*at)) {
        char *end = NULL;
        json_array_append_new(exits, json_integer(strtol(at, &end, 10)));
        at = end + strspn(end, ", ");
    }
    return json_pack("{s:s%,s:o,s:s%,s:s%}", "code", row->code.data, row->code.size, "exit", exits,
                     "group", row->group.data, row->group.size, "meaning", row->meaning.data,
                     row->meaning.size);
}

static void print_view(dp_view view)
{
    printf("%.*s", (int)view.size, (const char *)view.data);
}

static int print_one(const dp_cmd *cmd, const error_row *row)
{
    if (cmd->json) {
        return dp_cmd_print(json_of(row));
    }
    print_view(row->code);
    printf("  ");
    print_view(row->meaning);
    putchar('\n');
    return 0;
}

static bool is_code(dp_view code, const char *given)
{
    return code.size == CODE_CHARACTERS && strlen(given) == CODE_CHARACTERS &&
           strncasecmp((const char *)code.data, given, CODE_CHARACTERS) == 0;
}

static int run_explain(dp_cmd *cmd)
{
    const char *at = dp_errors_md;
    const char *const given = cmd->n_args > 0 ? cmd->args[0] : NULL;
    dp_control_error error;
    dp_view group = {0};
    int status = 0;
    error_row found;
    while (status == 0 && next_row(&at, &group, &found)) {
        if (given == NULL) {
            status = print_one(cmd, &found);
        } else if (is_code(found.code, given)) {
            status = print_one(cmd, &found);
            if (!cmd->json) {
                printf("exit status: ");
                print_view(found.exits.data[0] == '-' ? dp_view_text("that of the cause")
                                                      : found.exits);
                putchar('\n');
            }
            return status;
        }
    }
    if (given == NULL) {
        return status;
    }
    dp_error_set(&error, DP_EXIT_USAGE, "E0001", "dpnode explain   # lists all codes",
                 "no error has this code", given);
    return dp_cmd_fail(cmd, &error);
}

const dp_verb dp_verb_explain = {
    .name = "explain",
    .run = run_explain,
    .arguments = "[CODE]",
    .summary = "print the meaning of an error code, or of all",
    .examples = "  dpnode explain E0203\n  dpnode explain | grep token\n",
    .n_args_max = 1,
};
