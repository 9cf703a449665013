/* The whole picture of `dpnode top`, as a function of the facts and the state of the screen. */
#ifndef DP_CLI_TOP_DRAW_H
#define DP_CLI_TOP_DRAW_H

#include "cli/top/grid.h"
#include "cli/top/screen.h"

enum { DP_DRAW_COLUMNS_MIN = 60, DP_DRAW_ROWS_MIN = 12 }; /* a smaller grid has a few lines only */

/* Draws over the whole grid. screen: settled with these facts. unix_ms: now. Returns how far the
 * text of the open dialog can scroll. */
uint32_t dp_draw(dp_grid *grid, const dp_facts *facts, const dp_screen *screen, uint64_t unix_ms);

#endif
