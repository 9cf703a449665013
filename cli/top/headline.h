/* The lines above the panels of `dpnode top`: run, node, state, speed, limits, and the reason where
 * something is wrong. On a small terminal they are the whole picture. */
#ifndef DP_CLI_TOP_HEADLINE_H
#define DP_CLI_TOP_HEADLINE_H

#include "cli/top/facts.h"
#include "cli/top/grid.h"

/* Draws at the top of the grid. Returns the lines that it took. */
int dp_headline_draw(dp_grid *grid, const dp_facts *facts, uint64_t unix_ms);
/* The most important lines first, as many as there are rows. */
void dp_headline_small(dp_grid *grid, const dp_facts *facts, uint64_t unix_ms);
/* Where there is no run or no daemon: what it waits for, and the command that brings it. */
void dp_headline_absence(dp_grid *grid, const dp_area *area, const dp_facts *facts);

#endif
