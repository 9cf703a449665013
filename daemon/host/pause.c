#include "daemon/host/pause.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"

enum { VERSION = 1 };

dp_view dp_pause_write(const dp_pause *pause, uint8_t out[DP_PAUSE_BYTES_MAX])
{
    dp_writer writer = dp_writer_of(out, DP_PAUSE_BYTES_MAX);
    dp_view view = dp_view_of(out, 0);
    const size_t size = strlen(pause->user);
    dp_write_u8(&writer, VERSION);
    dp_write_u64(&writer, pause->since_ms);
    dp_write_u8(&writer, (uint8_t)size);
    dp_write_bytes(&writer, pause->user, size);
    const dp_status status = dp_writer_finish(&writer, &view);
    dp_assert(status == DP_OK);
    return view;
}

/* A name is printed on terminals. */
static bool is_plain(dp_view name)
{
    for (size_t i = 0; i < name.size; i++) {
        if (name.data[i] <= ' ' || name.data[i] > '~') {
            return false;
        }
    }
    return true;
}

dp_status dp_pause_read(dp_pause *pause, dp_view bytes)
{
    dp_reader reader = dp_reader_of(bytes);
    *pause = (dp_pause){.holds = true};
    if (dp_read_u8(&reader) != VERSION) {
        return reader.failed ? DP_CORRUPT : DP_VERSION;
    }
    const uint64_t since_ms = dp_read_u64(&reader);
    const dp_view user = dp_read_view(&reader, dp_read_u8(&reader));
    if (dp_reader_finish(&reader) != DP_OK || user.size > DP_PAUSE_USER_MAX || !is_plain(user)) {
        return DP_CORRUPT;
    }
    pause->since_ms = since_ms;
    if (user.size > 0) {
        memcpy(pause->user, user.data, user.size);
    }
    return DP_OK;
}

void dp_pause_text(const dp_pause *pause, char *text, size_t size)
{
    char date[48] = "";
    struct tm parts;
    const time_t since = (time_t)(pause->since_ms / 1000);
    if (pause->since_ms != 0 && gmtime_r(&since, &parts) != NULL) {
        DP_IGNORE(strftime(date, sizeof date, ", since %Y-%m-%d %H:%M:%S UTC", &parts) ==
                  0); /* Then the text leaves it out. */
    }
    snprintf(text, size, "%s%s%s", pause->user[0] != '\0' ? ", by " : "", pause->user, date);
}
