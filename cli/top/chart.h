/* A curve in a grid: dots of braille characters where the terminal shows Unicode, stars else. */
#ifndef DP_CLI_TOP_CHART_H
#define DP_CLI_TOP_CHART_H

#include "cli/top/grid.h"

/* Draws count values, oldest first, over the whole width of the area: the mean of several values
 * where there are more of them than dots, a straight line between two where there are fewer. The
 * largest and the least value of the drawn ones stand at the left. Fewer than two values, or an
 * area below 12x2: nothing is drawn. The values are finite. */
void dp_chart_draw(dp_grid *grid, const dp_area *area, const double *values, size_t count);

#endif
