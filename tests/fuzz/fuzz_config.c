/* Any bytes as the configuration file of the daemon. The values of a file that can be read are
 * within their bounds, and the same after they were written as text and read again. The mistake of
 * another one is named with its place. */
#include <string.h>

#include "base/assert.h"
#include "daemon/host/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static dp_config start;
    static dp_config config;
    static dp_config again;
    char text[DP_CONFIG_VALUE_MAX];
    dp_why why = {""};
    size_t count = 0;
    const dp_setting *const settings = dp_settings(&count);
    dp_assert(start.nice != 0 || dp_config_default(&start, &why) == DP_OK);
    config = start;
    again = start;
    if (dp_config_file_parse(&config, "f", dp_view_of(data, size), &why) != DP_OK) {
        dp_assert(strncmp(why.text, "f:", 2) == 0);
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        dp_assert((config.line[i] != 0) == (config.from[i] == DP_SETTING_FILE));
        dp_config_text(&config, &settings[i], text);
        dp_assert(dp_config_set(&again, settings[i].name, text, &why) == DP_OK);
        dp_assert(dp_config_same(&config, &again, i));
    }
    return 0;
}
