/* The method limits: shows and sets the limits of the owner, and what is left of a month. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "daemon/control/control.h"
#include "daemon/control/reply.h"
#include "daemon/peer/bandwidth_limiter.h"
#include "daemon/peer/suspension.h"

/* A key of the control protocol, and its setting of the daemon. */
static const struct limit {
    const char *key;
    const char *setting;
} limits[] = {
    {"upload_mbit", "upload-max"},
    {"download_mbit", "download-max"},
    {"upload_month", "upload-month"},
    {"download_month", "download-month"},
    {"month_day", "month-day"},
    {"celsius_max", "celsius-max"},
    {"watts_max", "watts-max"},
    {"vram_share", "vram-share"},
    {"yield_card", "yield-card"},
    {"threads", "threads"},
    {"schedule", "schedule"},
    {"idle_only", "idle-only"},
    {"not_on_battery", "not-on-battery"},
    {"nice", "nice"},
    {"store_max", "store-max"},
};
enum { LIMITS = sizeof limits / sizeof limits[0] };

static const dp_setting *setting_of(int limit, int *index)
{
    size_t count = 0;
    const dp_setting *const settings = dp_settings(&count);
    *index = dp_setting_find(limits[limit].setting, strlen(limits[limit].setting));
    return &settings[*index];
}

/* ---- the answer ---- */

static void pack_value(dp_group *map, const dp_daemon *daemon, int limit)
{
    const char *const key = limits[limit].key;
    int index = 0;
    const dp_setting *const setting = setting_of(limit, &index);
    const char *const at = (const char *)daemon->config + setting->offset;
    uint64_t number = 0;
    bool on = false;
    switch (setting->kind) {
    case DP_SETTING_TEXT:
        dp_pair_text(map, key, at);
        break;
    case DP_SETTING_FLAG:
        memcpy(&on, at, sizeof on);
        dp_pair_bool(map, key, on);
        break;
    case DP_SETTING_NUMBER:
    case DP_SETTING_BYTES:
        memcpy(&number, at, sizeof number);
        dp_pair_u64(map, key, number);
        break;
    }
}

static void pack_from(dp_group *map, const dp_daemon *daemon)
{
    int index = 0;
    dp_group from = dp_map_begin(dp_pair(map, "from"));
    for (int i = 0; i < LIMITS; i++) {
        DP_IGNORE(setting_of(i, &index) == NULL);
        dp_pair_text(&from, limits[i].key,
                     dp_setting_from_text((dp_setting_from)daemon->config->from[index]));
    }
    dp_group_end(&from);
    dp_group set = dp_map_begin(dp_pair(map, "set"));
    for (int i = 0; i < LIMITS && daemon->live != NULL; i++) {
        DP_IGNORE(setting_of(i, &index) == NULL);
        const dp_config_order *const order = &daemon->live->orders[index];
        if (order->kept && order->set_ms != 0) {
            dp_group one = dp_map_begin(dp_pair(&set, limits[i].key));
            dp_pair_u64(&one, "ms", order->set_ms);
            if (order->user[0] != '\0') {
                dp_pair_text(&one, "by", order->user);
            }
            dp_group_end(&one);
        }
    }
    dp_group_end(&set);
}

/* The present state of limits that depend on the time or the machine. */
static void pack_notes(dp_group *map, const dp_daemon *daemon)
{
    char text[DP_SUSPENSION_TEXT_MAX];
    dp_group notes = dp_map_begin(dp_pair(map, "notes"));
    for (int i = 0; i < LIMITS; i++) {
        if (dp_suspension_note(daemon->suspension, limits[i].setting, text)) {
            dp_pair_text(&notes, limits[i].key, text);
        }
    }
    if (dp_daemon_store_note(daemon, text, sizeof text)) {
        dp_pair_text(&notes, "store_max", text);
    }
    dp_group_end(&notes);
}

static void pack_month(dp_group *map, const dp_bandwidth_limiter_view *view)
{
    static const char *const used[] = {"upload_used", "download_used"};
    static const char *const rate[] = {"upload_rate", "download_rate"};
    dp_group month = dp_map_begin(dp_pair(map, "month"));
    dp_pair_u64(&month, "begin_ms", view->begin_ms);
    dp_pair_u64(&month, "end_ms", view->end_ms);
    for (int way = 0; way < DP_BANDWIDTH_QUOTA_WAYS; way++) {
        dp_pair_u64(&month, used[way], view->used[way]);
        if (view->rate[way] != UINT64_MAX) {
            dp_pair_u64(&month, rate[way], view->rate[way]);
        }
    }
    dp_pair_bool(&month, "used_up", view->used_up);
    dp_group_end(&month);
}

/* The rates that apply now, and for each its source, the lowest limit. */
static void pack_holds(dp_group *map, const dp_bandwidth_limiter_view *view)
{
    static const char *const rate[] = {"upload_rate", "download_rate"};
    static const char *const by[] = {"upload_by", "download_by"};
    static const char *const line[] = {"upload_mbit", "download_mbit"};
    static const char *const month[] = {"upload_month", "download_month"};
    const uint64_t holds[] = {view->holds.upload, view->holds.download};
    dp_group now = dp_map_begin(dp_pair(map, "holds"));
    for (int way = 0; way < DP_BANDWIDTH_QUOTA_WAYS; way++) {
        if (holds[way] != 0) {
            dp_pair_u64(&now, rate[way], holds[way]);
            dp_pair_text(&now, by[way], view->by_month[way] ? month[way] : line[way]);
        }
    }
    dp_group_end(&now);
}

static void reply(const dp_daemon *daemon, const dp_call *call)
{
    dp_packer packer;
    dp_bandwidth_limiter_view view;
    if (!dp_bandwidth_limiter_look(daemon->bandwidth_limiter, &view) ||
        !dp_call_begin(call, DP_CONTROL_REPLY, &packer)) {
        return;
    }
    dp_group map = dp_map_begin(&packer);
    for (int i = 0; i < LIMITS; i++) {
        pack_value(&map, daemon, i);
    }
    pack_from(&map, daemon);
    pack_notes(&map, daemon);
    pack_month(&map, &view);
    pack_holds(&map, &view);
    dp_group_end(&map);
    dp_call_end(call, &packer);
}

/* ---- orders ---- */

/* A client that waits until the change is durable. */
typedef struct keeping {
    const dp_daemon *daemon;
    dp_call call;
} keeping;

static void tell_lost(const dp_call *call, dp_status status)
{
    dp_call_fail(call, 74, "E0127", "dpnode doctor   # checks the disk",
                 "the limits hold until the daemon stops: they could not be stored",
                 dp_status_text(status));
}

static void on_kept(void *context, dp_status status)
{
    keeping *self = context;
    if (dp_call_alive(&self->call)) {
        if (status == DP_OK) {
            reply(self->daemon, &self->call);
        } else {
            tell_lost(&self->call, status);
        }
    }
    dp_free(self);
}

static void keep(const dp_daemon *daemon, const dp_call *call)
{
    keeping *self = dp_alloc(1, sizeof *self);
    dp_status status = DP_NOMEM;
    if (self != NULL) {
        *self = (keeping){.daemon = daemon, .call = *call};
        status = dp_config_live_keep(daemon->live, daemon->store_thread, on_kept, self);
    }
    if (status != DP_OK) {
        dp_free(self);
        tell_lost(call, status);
    }
}

/* The parameter as the text of a setting; its type shows what it is. */
static bool text_of(const dp_pack_value *value, char text[DP_CONFIG_ORDER_MAX + 1])
{
    uint64_t number = 0;
    bool on = false;
    if (dp_pack_get_u64(value, &number)) {
        snprintf(text, DP_CONFIG_ORDER_MAX + 1, "%llu", (unsigned long long)number);
        return true;
    }
    if (dp_pack_get_bool(value, &on)) {
        snprintf(text, DP_CONFIG_ORDER_MAX + 1, "%d", on ? 1 : 0);
        return true;
    }
    return dp_pack_copy_text(value, text, DP_CONFIG_ORDER_MAX + 1);
}

static void add_said(char *said, size_t size, const char *name, const char *value)
{
    const size_t used = strlen(said);
    snprintf(said + used, size - used, "%s%s %s", used > 0 ? ", " : "", name, value);
}

/* Drops the order about the limit of this key, or all of them. */
static bool forget(dp_config_live *live, const dp_pack_value *value, char *said, size_t size)
{
    char key[32] = "";
    bool any = false;
    if (!dp_pack_copy_text(value, key, sizeof key)) {
        return false;
    }
    for (int i = 0; i < LIMITS; i++) {
        if (strcmp(key, limits[i].key) == 0 || strcmp(key, "all") == 0) {
            dp_config_live_forget(live, limits[i].setting);
            any = true;
        }
    }
    add_said(said, size, key, "by default, file, environment or command line");
    return any;
}

/* Takes the orders of the request into live, which is a copy. False after an error reply. */
static bool take_orders(const dp_call *call, const dp_pack_value *parameters, dp_config_live *live,
                        char *said, size_t size)
{
    static const char fix[] = "dpnode limits --help   # lists the limits";
    char user[DP_CONFIG_USER_MAX + 1] = "";
    char text[DP_CONFIG_ORDER_MAX + 1];
    dp_why why = {""};
    const dp_pack_value *const reset = dp_pack_key(parameters, "reset");
    dp_call_user(call, user, sizeof user);
    if (reset != NULL && !forget(live, reset, said, size)) {
        dp_call_fail(call, 64, "E0125", fix, "there is no such limit", "reset");
        return false;
    }
    for (int i = 0; i < LIMITS; i++) {
        const dp_pack_value *const value = dp_pack_key(parameters, limits[i].key);
        if (value == NULL) {
            continue;
        }
        if (!text_of(value, text)) {
            dp_call_fail(call, 64, "E0125", fix, "a limit is out of its bounds", limits[i].setting);
            return false;
        }
        if (dp_config_live_order(live, limits[i].setting, text, user, dp_unix_ms(), &why) !=
            DP_OK) {
            dp_call_fail(call, 64, "E0125", fix, "a limit is out of its bounds", why.text);
            return false;
        }
        add_said(said, size, limits[i].setting, text);
    }
    if (said[0] != '\0' && user[0] != '\0') {
        const size_t used = strlen(said);
        snprintf(said + used, size - used, " (by %s)", user);
    }
    return true;
}

void dp_method_limits(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    bool any = dp_pack_key(parameters, "reset") != NULL;
    char said[512] = "";
    if (daemon->bandwidth_limiter == NULL) {
        dp_call_fail(call, 75, "E0402", "try again", "the daemon is stopping", "");
        return;
    }
    for (int i = 0; i < LIMITS; i++) {
        any = any || dp_pack_key(parameters, limits[i].key) != NULL;
    }
    if (!any) {
        reply(daemon, call);
        return;
    }
    if (!dp_call_may_order(call)) {
        return;
    }
    dp_config_live *const next = dp_alloc(1, sizeof *next); /* All of it is taken, or nothing. */
    if (next == NULL) {
        dp_call_fail(call, 70, "E0199", "", "out of memory", "");
        return;
    }
    *next = *daemon->live;
    const bool good = take_orders(call, parameters, next, said, sizeof said);
    if (good) {
        *daemon->live = *next;
        dp_event_log_add(daemon->event_log, DP_LOG_INFO, "limits.set", 0, NULL,
                         "limits set by the owner: %s", said);
        dp_daemon_apply_limits(daemon);
        keep(daemon, call);
    }
    dp_free(next);
}
