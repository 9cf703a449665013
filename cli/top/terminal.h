/* The terminal of `dpnode top`: paints a grid, reads keys. The only file with ncurses. One thread,
 * one terminal at a time. */
#ifndef DP_CLI_TOP_TERMINAL_H
#define DP_CLI_TOP_TERMINAL_H

#include "cli/cmd.h"
#include "cli/top/grid.h"

typedef struct dp_terminal dp_terminal;

/* Takes stdin and stdout, which must be a terminal that can place its cursor (E0607, E0608). Until
 * close, SIGINT, SIGTERM and SIGHUP end dp_terminal_key. */
DP_MUST int dp_terminal_open(dp_terminal **terminal, dp_control_error *error);
/* The terminal is as before. Accepts NULL. */
void dp_terminal_close(dp_terminal *terminal);

/* The locale is a UTF-8 one. */
bool dp_terminal_utf8(void);
void dp_terminal_size(const dp_terminal *terminal, int *columns, int *rows);
/* Changes what differs from the picture before. */
void dp_terminal_paint(dp_terminal *terminal, const dp_grid *grid);
/* Waits for a key (dp_key, cli/top/screen.h) for at most most_ms. 0: the time is over, or the size
 * has changed; -1: a signal, or the terminal is gone. */
int dp_terminal_key(dp_terminal *terminal, int most_ms);

#endif
