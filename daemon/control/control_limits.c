/* The method limits: shows and sets the owner's bandwidth limits. */
#include <stdio.h>

#include "base/alloc.h"
#include "base/size.h"
#include "daemon/control/control.h"
#include "daemon/control/reply.h"
#include "daemon/peer/bandwidth_limiter.h"

static const char bounds[] = "a rate is 0 (unlimited) to 100000 Mbit/s, a month's quota 0 "
                             "(unlimited) to 2^60 bytes, the day 1 to 28";

/* Reads the values in the request; named: which ones they are. False after an error reply. */
static bool read_limits(const dp_call *call, const dp_pack_value *parameters,
                        uint64_t values[DP_BANDWIDTH_CONFIG_COUNT],
                        bool named[DP_BANDWIDTH_CONFIG_COUNT])
{
    for (int i = 0; i < DP_BANDWIDTH_CONFIG_COUNT; i++) {
        const dp_bandwidth_config_row *const row = &dp_bandwidth_config_rows[i];
        const dp_pack_value *const value = dp_pack_key(parameters, row->key);
        named[i] = value != NULL;
        if (value != NULL && (!dp_pack_get_u64(value, &values[i]) || values[i] < row->least ||
                              values[i] > row->most)) {
            dp_call_fail(call, 64, "E0125", "dpnode limits --upload 20 --upload-month 200GB",
                         bounds, row->key);
            return false;
        }
    }
    return true;
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
    const uint64_t holds[] = {view->holds.upload, view->holds.download};
    dp_group now = dp_map_begin(dp_pair(map, "holds"));
    for (int way = 0; way < DP_BANDWIDTH_QUOTA_WAYS; way++) {
        if (holds[way] != 0) {
            dp_pair_u64(&now, rate[way], holds[way]);
            dp_pair_text(&now, by[way], dp_bandwidth_config_rows[view->by[way]].key);
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
    for (int i = 0; i < DP_BANDWIDTH_CONFIG_COUNT; i++) {
        dp_pair_u64(&map, dp_bandwidth_config_rows[i].key, view.set.values[i].value);
    }
    dp_group from = dp_map_begin(dp_pair(&map, "from"));
    for (int i = 0; i < DP_BANDWIDTH_CONFIG_COUNT; i++) {
        dp_pair_text(&from, dp_bandwidth_config_rows[i].key,
                     dp_bandwidth_config_from_text(view.set.values[i].from));
    }
    dp_group_end(&from);
    pack_month(&map, &view);
    pack_holds(&map, &view);
    dp_group_end(&map);
    dp_call_end(call, &packer);
}

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
        status = dp_bandwidth_limiter_keep(daemon->bandwidth_limiter, on_kept, self);
    }
    if (status != DP_OK) {
        dp_free(self);
        tell_lost(call, status);
    }
}

static void tell(const dp_daemon *daemon)
{
    dp_bandwidth_limiter_view view;
    if (dp_bandwidth_limiter_look(daemon->bandwidth_limiter, &view)) {
        const dp_bandwidth_config_value *const values = view.set.values;
        char up[DP_SIZE_TEXT_MAX];
        char down[DP_SIZE_TEXT_MAX];
        dp_size_text(values[DP_BANDWIDTH_CONFIG_UPLOAD_MONTH].value, up);
        dp_size_text(values[DP_BANDWIDTH_CONFIG_DOWNLOAD_MONTH].value, down);
        dp_event_log_add(
            daemon->event_log, DP_LOG_INFO, "limits.set", 0, NULL,
            "limits set by the owner: upload %llu Mbit/s, download %llu Mbit/s, upload %s "
            "and download %s per month from day %llu (0: unlimited)",
            (unsigned long long)values[DP_BANDWIDTH_CONFIG_UPLOAD].value,
            (unsigned long long)values[DP_BANDWIDTH_CONFIG_DOWNLOAD].value, up, down,
            (unsigned long long)values[DP_BANDWIDTH_CONFIG_MONTH_DAY].value);
    }
}

void dp_method_limits(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    uint64_t values[DP_BANDWIDTH_CONFIG_COUNT] = {0};
    bool named[DP_BANDWIDTH_CONFIG_COUNT];
    bool any = false;
    if (!read_limits(call, parameters, values, named)) {
        return;
    }
    if (daemon->bandwidth_limiter == NULL) {
        dp_call_fail(call, 75, "E0402", "try again", "the daemon is stopping", "");
        return;
    }
    for (int i = 0; i < DP_BANDWIDTH_CONFIG_COUNT; i++) {
        any = any || named[i];
    }
    if (!any) {
        reply(daemon, call);
        return;
    }
    if (!dp_call_may_order(call)) {
        return;
    }
    for (int i = 0; i < DP_BANDWIDTH_CONFIG_COUNT; i++) {
        if (named[i]) {
            dp_bandwidth_limiter_change(daemon->bandwidth_limiter, (dp_bandwidth_config)i,
                                        values[i]);
        }
    }
    tell(daemon);
    keep(daemon, call);
}
