/* Builds msgpack maps and arrays whose length is known only at the end. Headers are always
 * 32-bit. */
#ifndef DP_DAEMON_CONTROL_REPLY_H
#define DP_DAEMON_CONTROL_REPLY_H

#include "base/digest.h"
#include "base/pack.h"

typedef struct dp_group {
    dp_packer *packer;
    size_t at; /* of the header in packer->buf */
    uint32_t count;
} dp_group;

dp_group dp_map_begin(dp_packer *packer);
dp_group dp_array_begin(dp_packer *packer);
void dp_group_end(const dp_group *group);

/* One pair of a map. */
void dp_pair_u64(dp_group *map, const char *key, uint64_t value);
void dp_pair_f64(dp_group *map, const char *key, double value);
void dp_pair_bool(dp_group *map, const char *key, bool value);
void dp_pair_text(dp_group *map, const char *key, const char *value);
/* A value that exists but is not known yet. */
void dp_pair_nil(dp_group *map, const char *key);
void dp_pair_hex(dp_group *map, const char *key, dp_view value);
/* A pair; the caller packs exactly one value next. */
dp_packer *dp_pair(dp_group *map, const char *key);
/* An item of an array; the caller packs it next. */
dp_packer *dp_item(dp_group *array);

#endif
