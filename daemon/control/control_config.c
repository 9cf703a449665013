/* The settings while the daemon runs: the method config shows them with their sources, and the
 * configuration file is read again on SIGHUP. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "daemon/control/control.h"
#include "daemon/control/reply.h"
#include "daemon/peer/bandwidth_limiter.h"
#include "daemon/peer/driver.h"
#include "daemon/peer/suspension.h"

/* The quota of the store, which its thread owns. */
typedef struct quota_job {
    dp_store_thread_job job;
    dp_daemon *daemon;
    uint64_t max_bytes;
    uint64_t used; /* 0: not known */
} quota_job;

static void run_quota(dp_store_thread_job *job, dp_store *store)
{
    quota_job *const self = (quota_job *)job;
    dp_store_limit(store, self->max_bytes);
    if (dp_store_bytes(store, &self->used) != DP_OK) {
        self->used = 0;
    }
}

bool dp_daemon_store_note(const dp_daemon *daemon, char *text, size_t size)
{
    char used[DP_SIZE_TEXT_MAX];
    const uint64_t max = daemon->config->store_max;
    if (max == 0 || daemon->store_bytes <= max) {
        return false;
    }
    dp_size_text(daemon->store_bytes, used);
    snprintf(text, size, "the store uses %s, and updates may wait for room", used);
    return true;
}

static void done_quota(dp_store_thread_job *job)
{
    quota_job *const self = (quota_job *)job;
    dp_daemon *const daemon = self->daemon;
    char max[DP_SIZE_TEXT_MAX];
    char note[128];
    daemon->store_bytes = self->used;
    if (dp_daemon_store_note(daemon, note, sizeof note)) {
        dp_size_text(self->max_bytes, max);
        dp_event_log_add(daemon->event_log, DP_LOG_WARN, "limits.disk", 0, NULL,
                         "the limit of the store is %s; %s. Only old checkpoints are dropped; to "
                         "raise it: dpnode limits --disk SIZE",
                         max, note);
    }
    dp_free(job);
}

static void limit_store(dp_daemon *daemon)
{
    quota_job *const job = dp_alloc(1, sizeof *job);
    if (job != NULL) {
        job->job.run = run_quota;
        job->job.done = done_quota;
        job->daemon = daemon;
        job->max_bytes = daemon->config->store_max;
        if (dp_store_thread_post(daemon->store_thread, &job->job, DP_STORE_THREAD_BULK) == DP_OK) {
            return;
        }
    }
    dp_free(job);
    dp_event_log_add(daemon->event_log, DP_LOG_WARN, "limits.late", 0, NULL,
                     "store-max holds from the next change of a limit on: the store is busy");
}

void dp_daemon_apply_limits(dp_daemon *daemon)
{
    dp_bandwidth_limiter_act(daemon->bandwidth_limiter);
    dp_suspension_act(daemon->suspension);
    if (daemon->driver != NULL) {
        dp_driver_limit_trainer(daemon->driver);
    }
    limit_store(daemon);
}

/* ---- the file, again ---- */

static void add_name(char *text, size_t size, const char *name)
{
    const size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", name);
}

static void tell_reloaded(const dp_daemon *daemon, const bool changed[DP_CONFIG_SETTINGS_MAX])
{
    char taken[256] = "";
    char left[256] = "";
    char held[256] = "";
    size_t count = 0;
    const dp_setting *const settings = dp_settings(&count);
    for (size_t i = 0; i < count; i++) {
        const dp_config_live *const live = daemon->live;
        if (changed[i]) {
            add_name(taken, sizeof taken, settings[i].name);
        }
        if (live->left[i]) {
            add_name(left, sizeof left, settings[i].name);
        }
        if (live->said.from[i] == DP_SETTING_FILE && live->now.from[i] == DP_SETTING_ORDER) {
            add_name(held, sizeof held, settings[i].name);
        }
    }
    dp_event_log_add(
        daemon->event_log, left[0] != '\0' ? DP_LOG_WARN : DP_LOG_INFO, "config.reloaded", 0, NULL,
        "the settings were read again; changed: %s%s%s%s%s", taken[0] != '\0' ? taken : "none",
        left[0] != '\0' ? "; changed at the next start of the daemon: " : "", left,
        held[0] != '\0' ? "; overruled by dpnode limits: " : "", held);
}

void dp_daemon_reload(dp_daemon *daemon)
{
    bool changed[DP_CONFIG_SETTINGS_MAX] = {false};
    bool ignored = false;
    dp_why why = {"out of memory"};
    dp_config *const fresh = dp_alloc(1, sizeof *fresh);
    const dp_status status =
        fresh == NULL ? DP_NOMEM
                      : dp_config_read(fresh, daemon->argc, daemon->argv, &ignored, &ignored, &why);
    if (status == DP_OK) {
        dp_config_live_take(daemon->live, fresh, changed);
        tell_reloaded(daemon, changed);
        dp_daemon_apply_limits(daemon);
    } else {
        dp_event_log_add(daemon->event_log, DP_LOG_ERROR, "config.refused", 0, NULL,
                         "%s the configuration file is not valid, nothing has changed: %s", "E0133",
                         why.text);
    }
    dp_free(fresh);
}

/* ---- config ---- */

static const char *from_word(dp_setting_from from)
{
    return from == DP_SETTING_ORDER || from == DP_SETTING_ORDER_NOW ? "order"
                                                                    : dp_setting_from_text(from);
}

static void pack_setting(dp_packer *packer, const dp_daemon *daemon, size_t index)
{
    char value[DP_CONFIG_VALUE_MAX];
    size_t count = 0;
    const dp_setting *const setting = &dp_settings(&count)[index];
    const dp_setting_from from = (dp_setting_from)daemon->config->from[index];
    dp_group map = dp_map_begin(packer);
    dp_config_text(daemon->config, setting, value);
    dp_pair_text(&map, "name", setting->name);
    dp_pair_text(&map, "value", value);
    dp_pair_text(&map, "from", from_word(from));
    if (from == DP_SETTING_FILE) {
        dp_pair_u64(&map, "line", daemon->config->line[index]);
    }
    dp_pair_bool(&map, "live", setting->live);
    if (daemon->live != NULL) {
        const dp_config_order *const order = &daemon->live->orders[index];
        if (strcmp(from_word(from), "order") == 0 && order->set_ms != 0) {
            dp_pair_u64(&map, "set_ms", order->set_ms);
        }
        if (strcmp(from_word(from), "order") == 0 && order->user[0] != '\0') {
            dp_pair_text(&map, "by", order->user);
        }
        if (from == DP_SETTING_ORDER_NOW || daemon->live->left[index]) {
            dp_pair_bool(&map, "until_restart", true);
        }
    }
    dp_group_end(&map);
}

void dp_method_config(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    (void)parameters;
    dp_packer packer;
    size_t count = 0;
    if (!dp_call_begin(call, DP_CONTROL_REPLY, &packer)) {
        return;
    }
    DP_IGNORE(dp_settings(&count) == NULL);
    dp_group map = dp_map_begin(&packer);
    dp_pair_text(&map, "file", daemon->config->config_file);
    dp_group settings = dp_array_begin(dp_pair(&map, "settings"));
    for (size_t i = 0; i < count; i++) {
        pack_setting(dp_item(&settings), daemon, i);
    }
    dp_group_end(&settings);
    dp_group_end(&map);
    dp_call_end(call, &packer);
}
