#include "cli/top/draw.h"

#include "cli/top/dialogs.h"
#include "cli/top/headline.h"
#include "cli/top/panels.h"

enum {
    BESIDE_COLUMNS = 76, /* curve and rounds side by side */
    WIDE_COLUMNS = 104,
    ROUNDS_NARROW = 43, /* its table without the last two columns, and with all */
    ROUNDS_WIDE = 62,
    ALL_ROWS = 14, /* of a body that has room for all panels */
    UPPER_ROWS_MIN = 6,
    NODES_MIN = 2, /* lines of the panel of nodes, besides its title and heads */
    EVENTS_ROWS_MIN = 4
};

static void draw_footer(dp_grid *grid, const dp_facts *facts, const dp_screen *screen)
{
    const char *const keys[] = {"q quit",        "? help", "Tab panel",
                                "Enter details", "w why",  facts->paused ? "r resume" : "p pause",
                                "l limits"};
    const dp_area line = {
        .row = grid->rows - 1, .column = 1, .rows = 1, .columns = grid->columns - 2};
    if (screen->message[0] != '\0') {
        dp_grid_put(grid, line.row, line.column, line.columns, DP_STYLE_BAR, screen->message);
    } else {
        dp_grid_parts(grid, &line, DP_STYLE_BAR, keys, sizeof keys / sizeof keys[0]);
    }
    dp_grid_paint(grid, line.row, 0, grid->columns, DP_STYLE_BAR);
}

static void draw_focused(dp_grid *grid, const dp_area *body, const dp_facts *facts,
                         const dp_screen *screen)
{
    switch (screen->focus) {
    case DP_PANEL_PEERS:
    case DP_PANELS:
        dp_panel_peers(grid, body, facts, screen);
        break;
    case DP_PANEL_ROUNDS:
        dp_panel_rounds(grid, body, facts, screen);
        break;
    case DP_PANEL_EVENTS:
        dp_panel_events(grid, body, facts, screen);
        break;
    }
}

/* The curve, and the rounds beside it where there is room. */
static void draw_upper(dp_grid *grid, const dp_area *area, const dp_facts *facts,
                       const dp_screen *screen)
{
    dp_area left = *area;
    dp_area right = *area;
    if (area->columns < BESIDE_COLUMNS) {
        dp_panel_rounds(grid, area, facts, screen);
        return;
    }
    right.columns = area->columns < WIDE_COLUMNS ? ROUNDS_NARROW : ROUNDS_WIDE;
    left.columns = area->columns - right.columns;
    right.column = area->column + left.columns;
    dp_panel_curve(grid, &left, facts);
    dp_panel_rounds(grid, &right, facts, screen);
}

static void draw_all(dp_grid *grid, const dp_area *body, const dp_facts *facts,
                     const dp_screen *screen)
{
    const int rest = body->rows - 1; /* one line is for the own share */
    const int listed = facts->n_peers > NODES_MIN ? (int)facts->n_peers : NODES_MIN;
    const int upper = rest * 2 / 5 > UPPER_ROWS_MIN ? rest * 2 / 5 : UPPER_ROWS_MIN;
    int nodes = rest - upper - rest / 4;
    nodes = nodes > rest - upper - EVENTS_ROWS_MIN ? rest - upper - EVENTS_ROWS_MIN : nodes;
    nodes = nodes > listed + 2 ? listed + 2 : nodes;
    dp_area area = *body;
    area.rows = upper;
    draw_upper(grid, &area, facts, screen);
    area.row += area.rows;
    area.rows = nodes;
    dp_panel_peers(grid, &area, facts, screen);
    area.row += area.rows;
    area.rows = 1;
    dp_panel_own(grid, &area, facts);
    area.row += area.rows;
    area.rows = body->row + body->rows - area.row;
    dp_panel_events(grid, &area, facts, screen);
}

static void draw_body(dp_grid *grid, const dp_area *body, const dp_facts *facts,
                      const dp_screen *screen)
{
    if (!facts->in_run) {
        dp_area inside = *body;
        inside.row += 1;
        inside.column += 1;
        inside.rows -= 1;
        inside.columns -= 2;
        dp_headline_absence(grid, &inside, facts);
    } else if (body->rows < ALL_ROWS) {
        draw_focused(grid, body, facts, screen);
    } else {
        draw_all(grid, body, facts, screen);
    }
}

uint32_t dp_draw(dp_grid *grid, const dp_facts *facts, const dp_screen *screen, uint64_t unix_ms)
{
    dp_grid_clear(grid);
    if (grid->columns < DP_DRAW_COLUMNS_MIN || grid->rows < DP_DRAW_ROWS_MIN) {
        dp_headline_small(grid, facts, unix_ms);
        if (screen->message[0] != '\0') {
            dp_grid_put(grid, grid->rows - 1, 0, grid->columns, DP_STYLE_PLAIN, screen->message);
        }
    } else {
        const int used = dp_headline_draw(grid, facts, unix_ms);
        const dp_area body = {.row = used, .rows = grid->rows - used - 1, .columns = grid->columns};
        draw_body(grid, &body, facts, screen);
        draw_footer(grid, facts, screen);
    }
    return dp_dialog_draw(grid, facts, screen);
}
