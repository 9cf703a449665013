/* The panels of `dpnode top`, each as a function of the facts and an area of the grid. */
#ifndef DP_CLI_TOP_PANELS_H
#define DP_CLI_TOP_PANELS_H

#include "cli/top/grid.h"
#include "cli/top/screen.h"

/* The line above a panel. */
void dp_panel_title(dp_grid *grid, const dp_area *area, const char *text, bool focused);

void dp_panel_curve(dp_grid *grid, const dp_area *area, const dp_facts *facts);
void dp_panel_rounds(dp_grid *grid, const dp_area *area, const dp_facts *facts,
                     const dp_screen *screen);
void dp_panel_peers(dp_grid *grid, const dp_area *area, const dp_facts *facts,
                    const dp_screen *screen);
void dp_panel_events(dp_grid *grid, const dp_area *area, const dp_facts *facts,
                     const dp_screen *screen);
/* One line. */
void dp_panel_own(dp_grid *grid, const dp_area *area, const dp_facts *facts);

/* In words, for tables and details. */
const char *dp_panel_role(const dp_facts_peer *peer);
const char *dp_panel_link(const dp_facts_peer *peer);

#endif
