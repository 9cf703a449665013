#include "cli/top/dialogs.h"

#include <stdio.h>
#include <string.h>

#include "cli/print.h"

enum { COLUMNS_MAX = 76, REST_MIN = 24, ROWS_MAX = 22, BORDER = 2 };

static const char help_text[] =
    "q        quit; the node trains on\n"
    "Tab      next panel: nodes, rounds, events\n"
    "Up Down  select a line, as k and j; Page Up, Page Down; g first, G last\n"
    "Enter    details of the selected line\n"
    "w        why: explains the selected node or round, or this node\n"
    "p r      pause and resume training on this node, after a question\n"
    "l        limits of upload and download\n"
    "\n"
    "steps    share of the trainer's time that goes to training itself\n"
    "rounds   to packing its updates and applying those of others\n"
    "waiting  the rest: for data, for other nodes, for a limit of its owner\n"
    "\n"
    "COUNTED  updates that the round counted, of those it expected\n"
    "LINK     direct: a connection; via voters: messages go through voters\n"
    "TOKENS/S speed of a node's steps, as it says";

/* A remainder beside it that is too narrow to be read is covered, too. */
static int columns_of(const dp_grid *grid)
{
    return grid->columns < COLUMNS_MAX + REST_MIN ? grid->columns : COLUMNS_MAX;
}

/* A frame over the middle of the grid. Returns the area inside; on a small grid there is no frame
 * and the area is the grid. */
static dp_area open_frame(dp_grid *grid, const char *title, int rows)
{
    const int columns = columns_of(grid);
    const int most = grid->rows < ROWS_MAX ? grid->rows : ROWS_MAX;
    const int height = rows + BORDER < most ? rows + BORDER : most;
    const dp_area frame = {.row = (grid->rows - height) / 2,
                           .column = (grid->columns - columns) / 2,
                           .rows = height,
                           .columns = columns};
    const bool framed = height > BORDER && columns > 2 * BORDER;
    for (int i = 0; i < frame.rows; i++) {
        for (int j = 0; j < frame.columns; j++) {
            dp_grid_set(grid, frame.row + i, frame.column + j, ' ', DP_STYLE_PLAIN);
        }
    }
    if (!framed) {
        return frame;
    }
    dp_grid_paint(grid, frame.row, frame.column, frame.columns, DP_STYLE_BAR);
    dp_grid_paint(grid, frame.row + frame.rows - 1, frame.column, frame.columns, DP_STYLE_BAR);
    for (int i = 0; i < frame.columns; i++) {
        const uint32_t line = grid->utf8 ? (uint32_t)0x2500 : '-';
        dp_grid_set(grid, frame.row, frame.column + i, line, DP_STYLE_STRONG);
        dp_grid_set(grid, frame.row + frame.rows - 1, frame.column + i, line, DP_STYLE_STRONG);
    }
    dp_grid_put(grid, frame.row, frame.column + 2, 1, DP_STYLE_STRONG, " ");
    const int used =
        dp_grid_put(grid, frame.row, frame.column + 3, frame.columns - 5, DP_STYLE_STRONG, title);
    dp_grid_put(grid, frame.row, frame.column + 3 + used, 1, DP_STYLE_STRONG, " ");
    return (dp_area){.row = frame.row + 1,
                     .column = frame.column + BORDER,
                     .rows = frame.rows - BORDER,
                     .columns = frame.columns - 2 * BORDER};
}

static int lines_of(dp_grid *grid, const char *text)
{
    const int columns = columns_of(grid) - 2 * BORDER;
    const dp_area none = {.columns = columns > 1 ? columns : 1};
    return dp_grid_paragraph(grid, &none, 0, DP_STYLE_PLAIN, text);
}

static uint32_t draw_text(dp_grid *grid, const dp_screen *screen, const char *title,
                          const char *text)
{
    const dp_area inside = open_frame(grid, title, lines_of(grid, text));
    const int lines =
        dp_grid_paragraph(grid, &(dp_area){.columns = inside.columns}, 0, DP_STYLE_PLAIN, text);
    const int most = lines > inside.rows ? lines - inside.rows : 0;
    const int skip = screen->scroll < (uint32_t)most ? (int)screen->scroll : most;
    dp_grid_paragraph(grid, &inside, skip, DP_STYLE_PLAIN, text);
    if (most > 0) {
        char place[48];
        snprintf(place, sizeof place, " %d-%d of %d lines ", skip + 1, skip + inside.rows, lines);
        dp_grid_put(grid, inside.row + inside.rows, inside.column, inside.columns, DP_STYLE_STRONG,
                    place);
    }
    return (uint32_t)most;
}

static void draw_limits(dp_grid *grid, const dp_screen *screen)
{
    static const char *const names[DP_SCREEN_FIELDS] = {"upload", "download"};
    const dp_area inside = open_frame(grid, "limits of this node", DP_SCREEN_FIELDS + 2);
    for (uint32_t i = 0; i < DP_SCREEN_FIELDS; i++) {
        char text[64];
        const bool edited = i == screen->field;
        const bool unlimited = dp_screen_field(screen, i) == 0;
        snprintf(text, sizeof text, "%s %-9s %6s%s Mbit/s%s", edited ? ">" : " ", names[i],
                 screen->digits[i], edited ? "_" : " ", unlimited ? "   (0: unlimited)" : "");
        dp_grid_put(grid, inside.row + (int)i, inside.column, inside.columns,
                    edited ? DP_STYLE_STRONG : DP_STYLE_PLAIN, text);
    }
    const dp_area rest = {.row = inside.row + DP_SCREEN_FIELDS + 1,
                          .column = inside.column,
                          .rows = inside.rows - DP_SCREEN_FIELDS - 1,
                          .columns = inside.columns};
    dp_grid_paragraph(grid, &rest, 0, DP_STYLE_FAINT, "Tab the other one   Enter set   Esc leave");
}

uint32_t dp_dialog_draw(dp_grid *grid, const dp_facts *facts, const dp_screen *screen)
{
    char text[DP_FACTS_TEXT_MAX];
    switch (screen->dialog) {
    case DP_DIALOG_NONE:
        return 0;
    case DP_DIALOG_HELP:
        return draw_text(grid, screen, "keys and words", help_text);
    case DP_DIALOG_TEXT:
        return draw_text(grid, screen, screen->title, screen->text);
    case DP_DIALOG_PAUSE:
        snprintf(text, sizeof text,
                 "Pause training on %s? It stays a member; the other nodes train on.\ny yes   any "
                 "other key no",
                 facts->node);
        draw_text(grid, screen, "pause", text);
        return 0;
    case DP_DIALOG_RESUME:
        snprintf(text, sizeof text, "Train again on %s?\ny yes   any other key no", facts->node);
        draw_text(grid, screen, "resume", text);
        return 0;
    case DP_DIALOG_LIMITS:
        draw_limits(grid, screen);
        return 0;
    }
    return 0;
}
