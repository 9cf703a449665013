/* The dialogs of `dpnode top`, over the middle of its picture. */
#ifndef DP_CLI_TOP_DIALOGS_H
#define DP_CLI_TOP_DIALOGS_H

#include "cli/top/grid.h"
#include "cli/top/screen.h"

/* Draws the open dialog; nothing if there is none. Returns how far its text can scroll. */
uint32_t dp_dialog_draw(dp_grid *grid, const dp_facts *facts, const dp_screen *screen);

#endif
