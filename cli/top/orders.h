/* Orders of the keys of `dpnode top` to the daemon: the same questions and orders that the verbs
 * pause, resume, limits and why send. */
#ifndef DP_CLI_TOP_ORDERS_H
#define DP_CLI_TOP_ORDERS_H

#include "cli/top/screen.h"
#include "cli/watch/source.h"

/* Does what a key ordered; the screen tells the answer, or the error. Blocks as the source does.
 * DP_SCREEN_NOTHING and DP_SCREEN_QUIT: nothing. */
void dp_orders_do(dp_screen_order order, const dp_source *source, const dp_facts *facts,
                  dp_screen *screen);

#endif
