#include "daemon/net/allow.h"

#include "base/assert.h"
#include "daemon/host/month.h"

enum { VERSION = 1 };

const dp_allow_row dp_allow_rows[DP_ALLOWS] = {
    [DP_ALLOW_UPLOAD] = {"upload_mbit", "upload-max", 0, DP_CONFIG_MBIT_MAX},
    [DP_ALLOW_DOWNLOAD] = {"download_mbit", "download-max", 0, DP_CONFIG_MBIT_MAX},
    [DP_ALLOW_UPLOAD_MONTH] = {"upload_month", "upload-month", 0, DP_MONTH_CAP_MAX},
    [DP_ALLOW_DOWNLOAD_MONTH] = {"download_month", "download-month", 0, DP_MONTH_CAP_MAX},
    [DP_ALLOW_MONTH_DAY] = {"month_day", "month-day", 1, DP_MONTH_DAY_MAX},
};

const char *dp_allow_from_text(dp_allow_from from)
{
    switch (from) {
    case DP_ALLOW_STANDARD:
        return "default";
    case DP_ALLOW_ENVIRONMENT:
        return "environment";
    case DP_ALLOW_COMMAND:
        return "command line";
    case DP_ALLOW_KEPT:
        return "dpnode limits";
    case DP_ALLOW_NOW:
        return "dpnode limits, until the daemon ends";
    }
    return "?";
}

void dp_allow_begin(dp_allow_set *set, const dp_config *config)
{
    static const dp_allow_from from[] = {[DP_SETTING_STANDARD] = DP_ALLOW_STANDARD,
                                         [DP_SETTING_ENVIRONMENT] = DP_ALLOW_ENVIRONMENT,
                                         [DP_SETTING_COMMAND] = DP_ALLOW_COMMAND};
    const uint64_t said[DP_ALLOWS] = {config->upload_max, config->download_max,
                                      config->upload_month, config->download_month,
                                      config->month_day};
    for (int i = 0; i < DP_ALLOWS; i++) {
        const dp_allow_from by = from[dp_config_from(config, dp_allow_rows[i].setting)];
        set->values[i] =
            (dp_allow_value){.value = said[i], .from = by, .said = said[i], .said_from = by};
    }
}

void dp_allow_change(dp_allow_set *set, dp_allow which, uint64_t value)
{
    dp_allow_value *const at = &set->values[which];
    dp_assert(value >= dp_allow_rows[which].least && value <= dp_allow_rows[which].most);
    at->kept = true;
    at->kept_value = value;
    at->value = value;
    at->from = at->said_from == DP_ALLOW_STANDARD ? DP_ALLOW_KEPT
               : value == at->said                ? at->said_from
                                                  : DP_ALLOW_NOW;
}

dp_view dp_allow_write(const dp_allow_set *set, uint8_t out[DP_ALLOW_BYTES_MAX])
{
    dp_writer writer = dp_writer_of(out, DP_ALLOW_BYTES_MAX);
    dp_view view = dp_view_of(out, 0);
    uint8_t n = 0;
    for (int i = 0; i < DP_ALLOWS; i++) {
        n = (uint8_t)(n + (set->values[i].kept ? 1 : 0));
    }
    dp_write_u8(&writer, VERSION);
    dp_write_u8(&writer, n);
    for (int i = 0; i < DP_ALLOWS; i++) {
        if (set->values[i].kept) {
            dp_write_u8(&writer, (uint8_t)i);
            dp_write_u64(&writer, set->values[i].kept_value);
        }
    }
    const dp_status status = dp_writer_finish(&writer, &view);
    dp_assert(status == DP_OK);
    return view;
}

dp_status dp_allow_read(dp_allow_set *set, dp_view bytes)
{
    dp_allow_set read = *set;
    dp_reader reader = dp_reader_of(bytes);
    if (dp_read_u8(&reader) != VERSION) {
        return reader.failed ? DP_CORRUPT : DP_VERSION;
    }
    const uint8_t n = dp_read_u8(&reader);
    int last = -1;
    for (uint8_t i = 0; i < n; i++) {
        const int which = dp_read_u8(&reader);
        const uint64_t value = dp_read_u64(&reader);
        if (reader.failed || which <= last || which >= DP_ALLOWS ||
            value < dp_allow_rows[which].least || value > dp_allow_rows[which].most) {
            return DP_CORRUPT;
        }
        last = which;
        dp_allow_value *const at = &read.values[which];
        at->kept = true;
        at->kept_value = value;
        if (at->said_from == DP_ALLOW_STANDARD) {
            at->value = value;
            at->from = DP_ALLOW_KEPT;
        }
    }
    if (dp_reader_finish(&reader) != DP_OK) {
        return DP_CORRUPT;
    }
    *set = read;
    return DP_OK;
}
