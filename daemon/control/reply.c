#include "daemon/control/reply.h"

enum { MAP32 = 0xdf, ARRAY32 = 0xdd, HEADER_BYTES = 5, HEX_MAX = 64 };

static dp_group begin(dp_packer *packer, uint8_t type)
{
    const dp_group group = {.packer = packer, .at = packer->buf->size};
    const uint8_t header[HEADER_BYTES] = {type};
    if (packer->status == DP_OK) {
        packer->status = dp_buf_append(packer->buf, dp_view_of(header, sizeof header));
    }
    return group;
}

dp_group dp_map_begin(dp_packer *packer)
{
    return begin(packer, MAP32);
}

dp_group dp_array_begin(dp_packer *packer)
{
    return begin(packer, ARRAY32);
}

void dp_group_end(const dp_group *group)
{
    if (group->packer->status != DP_OK) {
        return;
    }
    uint8_t *header = group->packer->buf->data + group->at;
    for (int i = 0; i < 4; i++) { /* msgpack is big-endian */
        header[1 + i] = (uint8_t)(group->count >> (24 - 8 * i));
    }
}

dp_packer *dp_pair(dp_group *map, const char *key)
{
    map->count++;
    dp_pack_text(map->packer, key);
    return map->packer;
}

dp_packer *dp_item(dp_group *array)
{
    array->count++;
    return array->packer;
}

void dp_pair_u64(dp_group *map, const char *key, uint64_t value)
{
    dp_pack_u64(dp_pair(map, key), value);
}

void dp_pair_f64(dp_group *map, const char *key, double value)
{
    dp_pack_f64(dp_pair(map, key), value);
}

void dp_pair_bool(dp_group *map, const char *key, bool value)
{
    dp_pack_bool(dp_pair(map, key), value);
}

void dp_pair_text(dp_group *map, const char *key, const char *value)
{
    dp_pack_text(dp_pair(map, key), value);
}

void dp_pair_hex(dp_group *map, const char *key, dp_view value)
{
    char text[2 * HEX_MAX + 1];
    value.size = value.size < HEX_MAX ? value.size : HEX_MAX;
    dp_hex(value, text);
    dp_pair_text(map, key, text);
}

void dp_pair_nil(dp_group *map, const char *key)
{
    dp_pack_nil(dp_pair(map, key));
}
