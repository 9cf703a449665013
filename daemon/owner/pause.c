#include "daemon/owner/pause.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"

enum { VERSION = 2, VERSION_WITHOUT_END = 1 };

static const uint64_t minute_ms = UINT64_C(60000);

dp_view dp_pause_write(const dp_pause *pause, uint8_t out[DP_PAUSE_BYTES_MAX])
{
    dp_writer writer = dp_writer_of(out, DP_PAUSE_BYTES_MAX);
    dp_view view = dp_view_of(out, 0);
    const size_t size = strlen(pause->user);
    dp_write_u8(&writer, VERSION);
    dp_write_u64(&writer, pause->since_ms);
    dp_write_u8(&writer, (uint8_t)size);
    dp_write_bytes(&writer, pause->user, size);
    dp_write_u64(&writer, pause->until_ms);
    dp_write_u64(&writer, pause->for_ms);
    dp_write_u8(&writer, pause->waits ? 1 : 0);
    const dp_status status = dp_writer_finish(&writer, &view);
    dp_assert(status == DP_OK);
    return view;
}

/* A name is printed on terminals. */
static bool is_plain(dp_view name)
{
    for (size_t i = 0; i < name.size; i++) {
        if (name.data[i] < ' ' || name.data[i] > '~') { /* "uid 10001" has a space. */
            return false;
        }
    }
    return true;
}

dp_status dp_pause_read(dp_pause *pause, dp_view bytes)
{
    dp_reader reader = dp_reader_of(bytes);
    *pause = (dp_pause){.holds = true};
    const uint8_t version = dp_read_u8(&reader);
    if (version != VERSION && version != VERSION_WITHOUT_END) {
        return reader.failed ? DP_CORRUPT : DP_VERSION;
    }
    dp_pause read = {.holds = true, .since_ms = dp_read_u64(&reader)};
    const dp_view user = dp_read_view(&reader, dp_read_u8(&reader));
    uint8_t waits = 0;
    if (version == VERSION) {
        read.until_ms = dp_read_u64(&reader);
        read.for_ms = dp_read_u64(&reader);
        waits = dp_read_u8(&reader);
    }
    if (dp_reader_finish(&reader) != DP_OK || user.size > DP_PAUSE_USER_MAX || !is_plain(user) ||
        read.for_ms > DP_PAUSE_MS_MAX || waits > 1) {
        return DP_CORRUPT;
    }
    read.waits = waits == 1;
    if (user.size > 0) {
        memcpy(read.user, user.data, user.size);
    }
    *pause = read;
    return DP_OK;
}

void dp_pause_begin(dp_pause *pause, uint64_t now_ms)
{
    pause->waits = false;
    pause->since_ms = now_ms;
    pause->until_ms = pause->for_ms != 0 ? now_ms + pause->for_ms : pause->until_ms;
}

bool dp_pause_is_over(const dp_pause *pause, uint64_t now_ms)
{
    return pause->holds && pause->until_ms != 0 && now_ms >= pause->until_ms;
}

bool dp_pause_clock_moved(dp_pause *pause, int64_t moved_ms)
{
    if (!pause->holds || pause->waits || pause->for_ms == 0) {
        return false;
    }
    pause->until_ms = (uint64_t)((int64_t)pause->until_ms + moved_ms);
    return true;
}

bool dp_pause_restart(dp_pause *pause, uint64_t now_ms)
{
    if (pause->holds && pause->waits) {
        dp_pause_begin(pause, now_ms);
        return true;
    }
    if (pause->holds && pause->for_ms != 0 && pause->until_ms > now_ms + pause->for_ms) {
        pause->until_ms = now_ms + pause->for_ms;
        return true;
    }
    return false;
}

/* " since DATE", in local time; "" for 0. */
static void date_text(const char *word, uint64_t at_ms, char text[64])
{
    struct tm parts;
    char date[48] = "";
    const time_t at = (time_t)(at_ms / 1000);
    text[0] = '\0';
    if (at_ms != 0 && localtime_r(&at, &parts) != NULL &&
        strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S %Z", &parts) > 0) {
        snprintf(text, 64, ", %s %s", word, date);
    }
}

static void length_text(uint64_t for_ms, char text[64])
{
    const unsigned long long minutes = for_ms / minute_ms;
    text[0] = '\0';
    if (minutes > 0 && minutes % 60 == 0) {
        snprintf(text, 64, ", for %llu h", minutes / 60);
    } else if (minutes > 0) {
        snprintf(text, 64, ", for %llu min", minutes);
    } else if (for_ms > 0) {
        snprintf(text, 64, ", for %llu s", (unsigned long long)for_ms / 1000);
    }
}

void dp_pause_text(const dp_pause *pause, char *text, size_t size)
{
    char since[64];
    char until[64];
    const char *const by = pause->user[0] != '\0' ? ", by " : "";
    date_text("until", pause->until_ms, until);
    if (pause->waits) {
        if (pause->for_ms != 0) {
            length_text(pause->for_ms, until);
        }
        snprintf(text, size, "%s%s, when a round has counted this node's work%s", by, pause->user,
                 until);
        return;
    }
    date_text("since", pause->since_ms, since);
    snprintf(text, size, "%s%s%s%s", by, pause->user, since, until);
}
