/* limits: what of its line the owner lets this node take, looked at and set while it runs. */
#include "daemon/control.h"
#include "daemon/driver.h"
#include "daemon/reply.h"

/* *mbit: set when the request names it. False after an error reply. */
static bool read_limit(const dp_call *call, const dp_pack_value *parameters, const char *key,
                       uint64_t *mbit)
{
    const dp_pack_value *const value = dp_pack_key(parameters, key);
    uint64_t number = 0;
    if (value == NULL) {
        return true;
    }
    if (!dp_pack_get_u64(value, &number) || number > DP_CONFIG_MBIT_MAX) {
        dp_call_fail(call, 64, "E0125", "dpnode limits --upload 20 --download 100",
                     "a limit is a whole number of Mbit/s from 0, which means none, to 100000",
                     key);
        return false;
    }
    *mbit = number;
    return true;
}

static void tell(const dp_daemon *daemon)
{
    dp_diary_add(daemon->diary, DP_LOG_INFO, "limits.set", 0, NULL,
                 "upload %llu Mbit/s, download %llu Mbit/s at most (0: any), as the owner says",
                 (unsigned long long)daemon->upload_mbit,
                 (unsigned long long)daemon->download_mbit);
}

void dp_method_limits(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    uint64_t upload = daemon->upload_mbit;
    uint64_t download = daemon->download_mbit;
    dp_packer packer;
    if (!read_limit(call, parameters, "upload_mbit", &upload) ||
        !read_limit(call, parameters, "download_mbit", &download)) {
        return;
    }
    if (upload != daemon->upload_mbit || download != daemon->download_mbit) {
        daemon->upload_mbit = upload;
        daemon->download_mbit = download;
        if (daemon->driver != NULL) {
            dp_driver_limit(daemon->driver);
        }
        tell(daemon);
    }
    if (dp_call_begin(call, DP_CONTROL_REPLY, &packer)) {
        dp_group map = dp_map_begin(&packer);
        dp_pair_u64(&map, "upload_mbit", upload);
        dp_pair_u64(&map, "download_mbit", download);
        dp_group_end(&map);
        dp_call_end(call, &packer);
    }
}
