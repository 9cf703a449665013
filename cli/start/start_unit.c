#include "cli/start/start_unit.h"

#include <stdio.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/tool.h"

/* Exit status of systemctl(1): the unit is not installed. */
enum { NOT_INSTALLED = 5 };

dp_unit_start dp_start_unit(const char *managed, dp_control_error *error)
{
    static dp_cli_tool tool;
    static const char *const words[] = {"start", "dpnoded.service", NULL};
    if (access(managed, F_OK) != 0 || dp_cli_tool_run_program(&tool, "systemctl", words) != DP_OK ||
        tool.exit == NOT_INSTALLED) {
        return DP_UNIT_NONE;
    }
    if (tool.exit == 0) {
        return DP_UNIT_STARTED;
    }
    dp_error_set(error, DP_EXIT_SOFTWARE, "E0106", "journalctl -u dpnoded -n 20   # its log",
                 "the daemon ended right after its start", tool.words);
    return DP_UNIT_FAILED;
}
