/* top: the node on a screen of the terminal. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/top/draw.h"
#include "cli/top/top_session.h"

enum { SIZE_COLUMNS = 80, SIZE_ROWS = 24, EVERY_MAX_S = 3600, DECIMAL = 10, MS_OF_SECOND = 1000 };

/* "100x30". */
static bool read_size(const dp_cmd *cmd, int *columns, int *rows, dp_control_error *error)
{
    const char *const text = dp_cmd_option(cmd, "size");
    char *end = NULL;
    if (text == NULL) {
        return true;
    }
    const long across = strtol(text, &end, DECIMAL);
    const long down = *end == 'x' ? strtol(end + 1, &end, DECIMAL) : 0;
    if (*end == '\0' && across >= 1 && across <= DP_GRID_COLUMNS_MAX && down >= 1 &&
        down <= DP_GRID_ROWS_MAX) {
        *columns = (int)across;
        *rows = (int)down;
        return true;
    }
    dp_error_set(error, DP_EXIT_USAGE, "E0001", "dpnode top --once --size 100x30",
                 "--size is COLUMNSxROWS, at most 500x200", text);
    return false;
}

static bool read_every(const dp_cmd *cmd, uint64_t *seconds, dp_control_error *error)
{
    if (!dp_cmd_seconds(cmd, "every", seconds, error)) {
        return false;
    }
    if (*seconds >= 1 && *seconds <= EVERY_MAX_S) {
        return true;
    }
    dp_error_set(error, DP_EXIT_USAGE, "E0001", "dpnode top --every 5s", "--every is 1s to 1h",
                 dp_cmd_option(cmd, "every"));
    return false;
}

/* Programs ask for status and get what the picture is made of. */
static int refuse_json(const dp_cmd *cmd)
{
    dp_control_error error;
    dp_error_set(&error, DP_EXIT_USAGE, "E0001",
                 "dpnode status --json   # also peers, rounds and logs with --json",
                 "a picture is not for programs", "--json");
    return dp_cmd_fail(cmd, &error);
}

static int run_top(dp_cmd *cmd)
{
    int columns = SIZE_COLUMNS;
    int rows = SIZE_ROWS;
    uint64_t every = 1;
    dp_control_error error;
    if (cmd->json) {
        return refuse_json(cmd);
    }
    if (!read_size(cmd, &columns, &rows, &error) || !read_every(cmd, &every, &error)) {
        return dp_cmd_fail(cmd, &error);
    }
    const int status = dp_cmd_option(cmd, "once") != NULL
                           ? dp_top_once(cmd->socket, columns, rows, &error)
                           : dp_top_session(cmd->socket, (uint32_t)every * MS_OF_SECOND, &error);
    return status != 0 ? dp_cmd_fail(cmd, &error) : 0;
}

const dp_verb dp_verb_top = {
    .name = "top",
    .run = run_top,
    .arguments = "",
    .summary = "watch this node on a screen: loss, rounds, nodes, events; q leaves, it trains on",
    .examples = "  dpnode top\n  dpnode top --once --size 100x30\n",
    .options = {{"every", 0, "TIME", "time between two looks [1s]"},
                {"once", 0, NULL, "print one picture as text; needs no terminal"},
                {"size", 0, "CxR", "columns and rows of that picture [80x24]"}},
    .refuses_json = true,
};
