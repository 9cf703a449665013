/* Tables in a grid: columns of fixed widths, of which the least important are left out where the
 * table is narrow. */
#ifndef DP_CLI_TOP_GRID_COLUMNS_H
#define DP_CLI_TOP_GRID_COLUMNS_H

#include "cli/top/grid.h"

enum { DP_GRID_TABLE_MAX = 12 };

typedef struct dp_grid_column {
    const char *head;
    int width;
    bool right;      /* numbers stand at the right */
    unsigned rank;   /* 0: always there; the highest is left out first */
    bool takes_rest; /* of the width; one column of a table at most */
} dp_grid_column;

typedef struct dp_grid_columns {
    const dp_grid_column *rows; /* borrowed */
    size_t count;               /* DP_GRID_TABLE_MAX at most */
} dp_grid_columns;

/* The width of each column in a table of that width; 0: it is left out. One space stands between
 * two columns. */
void dp_grid_columns_fit(const dp_grid_columns *columns, int width, int widths[DP_GRID_TABLE_MAX]);
/* One line of the table; cells NULL: the heads. */
void dp_grid_columns_put(dp_grid *grid, const dp_area *line, const dp_grid_columns *columns,
                         const char *const *cells, dp_style style);

#endif
