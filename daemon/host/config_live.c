#include "daemon/host/config_live.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/log.h"

enum { VERSION = 2, VERSION_OF_NUMBERS = 1 };

static const char row_key[] = "limits";

_Static_assert((int)DP_CONFIG_LIVE_BYTES_MAX <= (int)DP_STORE_THREAD_ROW_MAX, "the row fits");

/* The settings of version 1, by their number. */
static const char *const numbered[] = {"upload-max", "download-max", "upload-month",
                                       "download-month", "month-day"};

static bool wins_over_order(uint8_t from)
{
    return from == DP_SETTING_ENVIRONMENT || from == DP_SETTING_COMMAND;
}

static void compose(dp_config_live *live)
{
    size_t count = 0;
    const dp_setting *const settings = dp_settings(&count);
    live->now = live->said;
    for (size_t i = 0; i < count; i++) {
        const dp_config_order *const order = &live->orders[i];
        const bool overruled = wins_over_order(live->said.from[i]);
        if (!order->kept || (overruled && !order->fresh)) {
            continue;
        }
        const dp_status status = dp_config_set(&live->now, settings[i].name, order->text, NULL);
        dp_assert(status == DP_OK);
        if (!overruled) {
            live->now.from[i] = DP_SETTING_ORDER;
        } else if (!dp_config_same(&live->now, &live->said, i)) {
            live->now.from[i] = DP_SETTING_ORDER_NOW;
        }
    }
}

void dp_config_live_init(dp_config_live *live, const dp_config *said)
{
    *live = (dp_config_live){.said = *said};
    compose(live);
}

/* The order as given, if its text is a value of a live setting. */
static dp_status make_order(const dp_config_live *live, int index, const dp_config_order *given,
                            dp_config_order *order, dp_why *why)
{
    size_t count = 0;
    const dp_setting *const setting = &dp_settings(&count)[index];
    dp_config probe = live->said;
    if (!setting->live) {
        return dp_why_set(why, DP_UNSUPPORTED, "%s needs a restart of the daemon", setting->name);
    }
    DP_TRY(dp_config_set(&probe, setting->name, given->text, why));
    *order = *given;
    order->kept = true;
    return DP_OK;
}

dp_status dp_config_live_order(dp_config_live *live, const char *name, const char *text,
                               const char *user, uint64_t now_ms, dp_why *why)
{
    dp_config_order given = {.fresh = true, .set_ms = now_ms};
    const int index = dp_setting_find(name, strlen(name));
    if (index < 0) {
        return dp_why_set(why, DP_NOTFOUND, "unknown setting \"%.40s\"", name);
    }
    if (strlen(text) > DP_CONFIG_ORDER_MAX) {
        return dp_why_set(why, DP_BADARG, "%s: must have at most %d characters", name,
                          DP_CONFIG_ORDER_MAX);
    }
    snprintf(given.text, sizeof given.text, "%s", text);
    snprintf(given.user, sizeof given.user, "%s", user);
    DP_TRY(make_order(live, index, &given, &live->orders[index], why));
    compose(live);
    return DP_OK;
}

void dp_config_live_forget(dp_config_live *live, const char *name)
{
    const int index = dp_setting_find(name, strlen(name));
    dp_assert(index >= 0);
    live->orders[index] = (dp_config_order){.kept = false};
    compose(live);
}

static void copy_setting(dp_config *to, const dp_config *from, const dp_setting *setting)
{
    memcpy((char *)to + setting->offset, (const char *)from + setting->offset, setting->size);
}

void dp_config_live_take(dp_config_live *live, const dp_config *fresh,
                         bool changed[DP_CONFIG_SETTINGS_MAX])
{
    const dp_config before = live->now;
    size_t count = 0;
    const dp_setting *const settings = dp_settings(&count);
    for (size_t i = 0; i < count; i++) {
        live->left[i] = !settings[i].live && !dp_config_same(&live->said, fresh, i);
        if (!live->left[i]) {
            copy_setting(&live->said, fresh, &settings[i]);
            live->said.from[i] = fresh->from[i];
            live->said.line[i] = fresh->line[i];
        }
    }
    compose(live);
    for (size_t i = 0; i < count; i++) {
        changed[i] = !dp_config_same(&before, &live->now, i);
    }
}

/* ---- the row ---- */

static void write_text(dp_writer *writer, const char *text)
{
    dp_write_u8(writer, (uint8_t)strlen(text));
    dp_write_bytes(writer, text, strlen(text));
}

dp_view dp_config_live_write(const dp_config_live *live, uint8_t out[DP_CONFIG_LIVE_BYTES_MAX])
{
    dp_writer writer = dp_writer_of(out, DP_CONFIG_LIVE_BYTES_MAX);
    dp_view view = dp_view_of(out, 0);
    size_t count = 0;
    const dp_setting *const settings = dp_settings(&count);
    uint8_t n = 0;
    for (size_t i = 0; i < count; i++) {
        n = (uint8_t)(n + (live->orders[i].kept ? 1 : 0));
    }
    dp_write_u8(&writer, VERSION);
    dp_write_u8(&writer, n);
    for (size_t i = 0; i < count; i++) {
        const dp_config_order *const order = &live->orders[i];
        if (order->kept) {
            write_text(&writer, settings[i].name);
            write_text(&writer, order->text);
            dp_write_u64(&writer, order->set_ms);
            write_text(&writer, order->user);
        }
    }
    const dp_status status = dp_writer_finish(&writer, &view);
    dp_assert(status == DP_OK);
    return view;
}

/* A text of at most size - 1 characters, as terminals may show it. */
static bool read_text(dp_reader *reader, char *text, size_t size)
{
    const dp_view view = dp_read_view(reader, dp_read_u8(reader));
    if (reader->failed || view.size >= size) {
        return false;
    }
    for (size_t i = 0; i < view.size; i++) {
        if (view.data[i] < ' ' || view.data[i] > '~') {
            return false;
        }
        text[i] = (char)view.data[i];
    }
    text[view.size] = '\0';
    return true;
}

static dp_status add_order(const dp_config_live *live, dp_config_order *orders, int index,
                           const dp_config_order *read)
{
    if (orders[index].kept || make_order(live, index, read, &orders[index], NULL) != DP_OK) {
        return DP_CORRUPT;
    }
    return DP_OK;
}

static dp_status read_named(const dp_config_live *live, dp_reader *reader, dp_config_order *orders)
{
    char name[32];
    dp_config_order read = {.kept = false};
    if (!read_text(reader, name, sizeof name) || !read_text(reader, read.text, sizeof read.text)) {
        return DP_CORRUPT;
    }
    read.set_ms = dp_read_u64(reader);
    if (!read_text(reader, read.user, sizeof read.user)) {
        return DP_CORRUPT;
    }
    const int index = dp_setting_find(name, strlen(name));
    return index < 0 ? DP_OK : add_order(live, orders, index, &read);
}

static dp_status read_numbered(const dp_config_live *live, dp_reader *reader,
                               dp_config_order *orders, int *last)
{
    dp_config_order read = {.kept = false};
    const int which = dp_read_u8(reader);
    snprintf(read.text, sizeof read.text, "%llu", (unsigned long long)dp_read_u64(reader));
    if (reader->failed || which <= *last || which >= (int)(sizeof numbered / sizeof numbered[0])) {
        return DP_CORRUPT;
    }
    *last = which;
    return add_order(live, orders, dp_setting_find(numbered[which], strlen(numbered[which])),
                     &read);
}

dp_status dp_config_live_read(dp_config_live *live, dp_view bytes)
{
    dp_config_order orders[DP_CONFIG_SETTINGS_MAX] = {{.kept = false}};
    dp_reader reader = dp_reader_of(bytes);
    const uint8_t version = dp_read_u8(&reader);
    int last = -1;
    if (version != VERSION && version != VERSION_OF_NUMBERS) {
        return reader.failed ? DP_CORRUPT : DP_VERSION;
    }
    const uint8_t n = dp_read_u8(&reader);
    for (uint8_t i = 0; i < n; i++) {
        DP_TRY(version == VERSION ? read_named(live, &reader, orders)
                                  : read_numbered(live, &reader, orders, &last));
    }
    if (dp_reader_finish(&reader) != DP_OK) {
        return DP_CORRUPT;
    }
    memcpy(live->orders, orders, sizeof live->orders);
    compose(live);
    return DP_OK;
}

void dp_config_live_load(dp_config_live *live, dp_store *store)
{
    dp_buf buf;
    dp_buf_init(&buf, DP_STORE_THREAD_ROW_MAX);
    dp_status status = dp_store_get_either(store, row_key, &buf);
    status = status == DP_OK ? dp_config_live_read(live, dp_buf_view(&buf)) : status;
    live->damaged = status != DP_OK && status != DP_NOTFOUND;
    if (live->damaged) {
        dp_log(DP_LOG_WARN, "limits.lost",
               "msg=\"the stored limits cannot be read: %s; set them again: dpnode limits\"",
               dp_status_text(status));
    }
    dp_buf_close(&buf);
}

dp_status dp_config_live_keep(dp_config_live *live, dp_store_thread *store_thread,
                              dp_store_thread_kept *done, void *context)
{
    uint8_t bytes[DP_CONFIG_LIVE_BYTES_MAX];
    live->damaged = false;
    return dp_store_thread_put(store_thread, row_key, dp_config_live_write(live, bytes), done,
                               context);
}
