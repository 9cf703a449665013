#include "cli/start/start_unit.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/tool.h"

/* Exit status of systemctl(1): the unit is not installed. */
enum { NOT_INSTALLED = 5 };
enum { USER_ROW_BYTES = 4096, USER_NAME_MAX = 32 };

static dp_cli_tool tool; /* the last systemctl */

static const char *option_of(dp_unit_manager manager)
{
    return manager == DP_UNIT_OF_USER ? "--user" : "--system";
}

/* The unit's state begins with this word ("enabled", "enabled-runtime"). */
static bool is_in_state(dp_unit_manager manager, const char *state)
{
    const char *const words[] = {option_of(manager), "is-enabled", "dpnoded.service", NULL};
    return dp_cli_tool_run_program(&tool, "systemctl", words) == DP_OK &&
           strncmp(tool.answer, state, strlen(state)) == 0;
}

bool dp_start_unit_disabled(dp_unit_manager manager)
{
    return is_in_state(manager, "disabled");
}

/* A package makes the user of its unit; cmake --install does not. True also if systemctl does not
 * tell which user that is. */
static bool user_exists(char name[USER_NAME_MAX + 1])
{
    static const char *const words[] = {"show", "--property=User", "--value", "dpnoded.service",
                                        NULL};
    char room[USER_ROW_BYTES];
    struct passwd row;
    struct passwd *found = NULL;
    if (dp_cli_tool_run_program(&tool, "systemctl", words) != DP_OK || tool.exit != 0) {
        return true;
    }
    const size_t size = strcspn(tool.answer, "\n");
    if (size == 0 || size > USER_NAME_MAX) {
        return true;
    }
    memcpy(name, tool.answer, size);
    name[size] = '\0';
    return getpwnam_r(name, &row, room, sizeof room, &found) != 0 || found != NULL ||
           strspn(name, "0123456789") == size;
}

dp_unit_start dp_start_unit(dp_unit_manager manager, const char *managed, dp_control_error *error)
{
    const char *const words[] = {option_of(manager), "start", "dpnoded.service", NULL};
    const bool machine = manager == DP_UNIT_OF_MACHINE;
    char user[USER_NAME_MAX + 1];
    if (access(managed, F_OK) != 0 || (!machine && !is_in_state(manager, "enabled"))) {
        return DP_UNIT_NONE;
    }
    if (machine && !user_exists(user)) {
        char why[128];
        char fix[128];
        snprintf(why, sizeof why, "the unit dpnoded.service runs as user %s", user);
        snprintf(fix, sizeof fix,
                 "sudo useradd --system --user-group --home-dir /var/lib/dpnode %s", user);
        dp_error_set(error, DP_EXIT_CONFIG, "E0114", fix, "the daemon's user does not exist", why);
        return DP_UNIT_FAILED;
    }
    if (dp_cli_tool_run_program(&tool, "systemctl", words) != DP_OK || tool.exit == NOT_INSTALLED) {
        return DP_UNIT_NONE;
    }
    if (tool.exit == 0) {
        return DP_UNIT_STARTED;
    }
    dp_error_set(error, DP_EXIT_SOFTWARE, "E0106",
                 machine ? "journalctl -u dpnoded -n 20   # its log"
                         : "journalctl --user -u dpnoded -n 20   # its log",
                 "the daemon ended right after its start", tool.words);
    return DP_UNIT_FAILED;
}
