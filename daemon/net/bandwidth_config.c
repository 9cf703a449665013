#include "daemon/net/bandwidth_config.h"

#include "base/assert.h"
#include "daemon/host/bandwidth_quota.h"

enum { VERSION = 1 };

const dp_bandwidth_config_row dp_bandwidth_config_rows[DP_BANDWIDTH_CONFIG_COUNT] = {
    [DP_BANDWIDTH_CONFIG_UPLOAD] = {"upload_mbit", "upload-max", 0, DP_CONFIG_MBIT_MAX},
    [DP_BANDWIDTH_CONFIG_DOWNLOAD] = {"download_mbit", "download-max", 0, DP_CONFIG_MBIT_MAX},
    [DP_BANDWIDTH_CONFIG_UPLOAD_MONTH] = {"upload_month", "upload-month", 0,
                                          DP_BANDWIDTH_QUOTA_CAP_MAX},
    [DP_BANDWIDTH_CONFIG_DOWNLOAD_MONTH] = {"download_month", "download-month", 0,
                                            DP_BANDWIDTH_QUOTA_CAP_MAX},
    [DP_BANDWIDTH_CONFIG_MONTH_DAY] = {"month_day", "month-day", 1, DP_BANDWIDTH_QUOTA_DAY_MAX},
};

const char *dp_bandwidth_config_from_text(dp_bandwidth_config_from from)
{
    switch (from) {
    case DP_BANDWIDTH_CONFIG_STANDARD:
        return "default";
    case DP_BANDWIDTH_CONFIG_ENVIRONMENT:
        return "environment";
    case DP_BANDWIDTH_CONFIG_COMMAND:
        return "command line";
    case DP_BANDWIDTH_CONFIG_KEPT:
        return "dpnode limits";
    case DP_BANDWIDTH_CONFIG_NOW:
        return "dpnode limits, until the daemon ends";
    }
    return "?";
}

void dp_bandwidth_config_begin(dp_bandwidth_config_set *set, const dp_config *config)
{
    static const dp_bandwidth_config_from from[] = {
        [DP_SETTING_STANDARD] = DP_BANDWIDTH_CONFIG_STANDARD,
        [DP_SETTING_ENVIRONMENT] = DP_BANDWIDTH_CONFIG_ENVIRONMENT,
        [DP_SETTING_COMMAND] = DP_BANDWIDTH_CONFIG_COMMAND};
    const uint64_t said[DP_BANDWIDTH_CONFIG_COUNT] = {config->upload_max, config->download_max,
                                                      config->upload_month, config->download_month,
                                                      config->month_day};
    for (int i = 0; i < DP_BANDWIDTH_CONFIG_COUNT; i++) {
        const dp_bandwidth_config_from by =
            from[dp_config_from(config, dp_bandwidth_config_rows[i].setting)];
        set->values[i] = (dp_bandwidth_config_value){
            .value = said[i], .from = by, .said = said[i], .said_from = by};
    }
}

void dp_bandwidth_config_change(dp_bandwidth_config_set *set, dp_bandwidth_config which,
                                uint64_t value)
{
    dp_bandwidth_config_value *const at = &set->values[which];
    dp_assert(value >= dp_bandwidth_config_rows[which].least &&
              value <= dp_bandwidth_config_rows[which].most);
    at->kept = true;
    at->kept_value = value;
    at->value = value;
    at->from = at->said_from == DP_BANDWIDTH_CONFIG_STANDARD ? DP_BANDWIDTH_CONFIG_KEPT
               : value == at->said                           ? at->said_from
                                                             : DP_BANDWIDTH_CONFIG_NOW;
}

dp_view dp_bandwidth_config_write(const dp_bandwidth_config_set *set,
                                  uint8_t out[DP_BANDWIDTH_CONFIG_BYTES_MAX])
{
    dp_writer writer = dp_writer_of(out, DP_BANDWIDTH_CONFIG_BYTES_MAX);
    dp_view view = dp_view_of(out, 0);
    uint8_t n = 0;
    for (int i = 0; i < DP_BANDWIDTH_CONFIG_COUNT; i++) {
        n = (uint8_t)(n + (set->values[i].kept ? 1 : 0));
    }
    dp_write_u8(&writer, VERSION);
    dp_write_u8(&writer, n);
    for (int i = 0; i < DP_BANDWIDTH_CONFIG_COUNT; i++) {
        if (set->values[i].kept) {
            dp_write_u8(&writer, (uint8_t)i);
            dp_write_u64(&writer, set->values[i].kept_value);
        }
    }
    const dp_status status = dp_writer_finish(&writer, &view);
    dp_assert(status == DP_OK);
    return view;
}

dp_status dp_bandwidth_config_read(dp_bandwidth_config_set *set, dp_view bytes)
{
    dp_bandwidth_config_set read = *set;
    dp_reader reader = dp_reader_of(bytes);
    if (dp_read_u8(&reader) != VERSION) {
        return reader.failed ? DP_CORRUPT : DP_VERSION;
    }
    const uint8_t n = dp_read_u8(&reader);
    int last = -1;
    for (uint8_t i = 0; i < n; i++) {
        const int which = dp_read_u8(&reader);
        const uint64_t value = dp_read_u64(&reader);
        if (reader.failed || which <= last || which >= DP_BANDWIDTH_CONFIG_COUNT ||
            value < dp_bandwidth_config_rows[which].least ||
            value > dp_bandwidth_config_rows[which].most) {
            return DP_CORRUPT;
        }
        last = which;
        dp_bandwidth_config_value *const at = &read.values[which];
        at->kept = true;
        at->kept_value = value;
        if (at->said_from == DP_BANDWIDTH_CONFIG_STANDARD) {
            at->value = value;
            at->from = DP_BANDWIDTH_CONFIG_KEPT;
        }
    }
    if (dp_reader_finish(&reader) != DP_OK) {
        return DP_CORRUPT;
    }
    *set = read;
    return DP_OK;
}
