/* Any bytes as a msgpack value: the pre-scan and msgpack-c must agree, and every value must be
 * readable. */
#include <stdlib.h>

#include "base/pack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Bounded by DP_PACK_DEPTH_MAX, which is checked here. */
static uint64_t walk(const dp_pack_value *value, unsigned depth)
{
    uint64_t sum = 0;
    int64_t i = 0;
    double f = 0;
    bool b = false;
    uint32_t count = 0;
    dp_view view = {0};
    char text[8];

    if (depth > DP_PACK_DEPTH_MAX) {
        abort();
    }
    (void)dp_pack_get_u64(value, &sum);
    (void)dp_pack_get_i64(value, &i);
    (void)dp_pack_get_f64(value, &f);
    (void)dp_pack_get_bool(value, &b);
    (void)dp_pack_copy_text(value, text, sizeof text);
    if (dp_pack_get_text(value, &view) || dp_pack_get_bytes(value, &view)) {
        for (size_t at = 0; at < view.size; at++) {
            sum += view.data[at];
        }
    }
    if (dp_pack_is_array(value, &count)) {
        for (uint32_t at = 0; at < count; at++) {
            sum += walk(dp_pack_at(value, at), depth + 1);
        }
    }
    const dp_pack_value *const child = dp_pack_key(value, "a");
    return child != NULL ? sum + walk(child, depth + 1) : sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const dp_view bytes = dp_view_of(data, size);
    const dp_status checked = dp_pack_check(bytes);
    dp_unpacked *unpacked = NULL;
    const dp_status opened = dp_unpack_open(&unpacked, bytes);

    if (checked != opened) {
        abort();
    }
    if (opened == DP_OK) {
        volatile uint64_t sum = walk(dp_unpack_root(unpacked), 0);
        (void)sum;
        dp_unpack_close(unpacked);
    }
    return 0;
}
