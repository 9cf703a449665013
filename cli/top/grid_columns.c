#include "cli/top/grid_columns.h"

#include "base/assert.h"

static int total(const dp_grid_columns *columns, const int widths[DP_GRID_TABLE_MAX])
{
    int sum = 0;
    for (size_t i = 0; i < columns->count; i++) {
        sum += widths[i] > 0 ? widths[i] + (sum > 0 ? 1 : 0) : 0;
    }
    return sum;
}

/* The column that is left out next; count: none may be. */
static size_t least(const dp_grid_columns *columns, const int widths[DP_GRID_TABLE_MAX])
{
    size_t found = columns->count;
    for (size_t i = 0; i < columns->count; i++) {
        const unsigned rank = widths[i] > 0 ? columns->rows[i].rank : 0;
        if (rank > 0 && (found == columns->count || rank > columns->rows[found].rank)) {
            found = i;
        }
    }
    return found;
}

void dp_grid_columns_fit(const dp_grid_columns *columns, int width, int widths[DP_GRID_TABLE_MAX])
{
    dp_assert(columns->count <= DP_GRID_TABLE_MAX);
    for (size_t i = 0; i < columns->count; i++) {
        widths[i] = columns->rows[i].width;
    }
    size_t next = least(columns, widths);
    while (total(columns, widths) > width && next < columns->count) {
        widths[next] = 0;
        next = least(columns, widths);
    }
    const int rest = width - total(columns, widths);
    for (size_t i = 0; i < columns->count; i++) {
        if (columns->rows[i].takes_rest && widths[i] > 0 && rest > 0) {
            widths[i] += rest;
        }
    }
}

void dp_grid_columns_put(dp_grid *grid, const dp_area *line, const dp_grid_columns *columns,
                         const char *const *cells, dp_style style)
{
    int widths[DP_GRID_TABLE_MAX];
    int at = line->column;
    const int end = line->column + line->columns;
    dp_grid_columns_fit(columns, line->columns, widths);
    for (size_t i = 0; i < columns->count; i++) {
        if (widths[i] == 0 || at >= end) {
            continue;
        }
        const char *const text = cells != NULL ? cells[i] : columns->rows[i].head;
        const int room = widths[i] < end - at ? widths[i] : end - at;
        const int spare = room - dp_grid_width(grid, text);
        const int shift = columns->rows[i].right && spare > 0 ? spare : 0;
        dp_grid_put(grid, line->row, at + shift, room - shift, style, text);
        at += widths[i] + 1;
    }
}
