/* The built-in demo: a manifest as text, and the King James Bible from Debian's bible-kjv as a
 * file. */
#ifndef DP_CLI_DEMO_H
#define DP_CLI_DEMO_H

#include "cli/cmd.h"
#include "cli/paths.h"

/* docs/examples/kjv.yaml holds the same text. */
extern const char dp_demo_kjv[];

/* Writes the text to a new file; path gets its path, and the caller removes it. 0 or the exit
 * status of *error. */
DP_MUST int dp_demo_text(char path[DP_CLI_PATH_MAX], dp_control_error *error);

#endif
