#include "base/trainer/trainer_field.h"

#include <math.h>
#include <string.h>

static void pack_gain(dp_packer *packer, const char *at)
{
    dp_gain gain;
    memcpy(&gain, at, sizeof gain);
    dp_pack_array(packer, 3);
    dp_pack_i64(packer, gain.micro);
    dp_pack_u64(packer, gain.error_micro);
    dp_pack_u64(packer, gain.tokens);
}

void dp_trainer_field_pack(dp_packer *packer, const dp_trainer_msg *msg, const dp_trainer_field *f)
{
    const char *const at = (const char *)msg + f->offset;
    uint32_t small;
    uint64_t large;
    double real;
    bool flag;
    uint8_t energy[16];
    dp_writer writer = dp_writer_of(energy, sizeof energy);
    dp_pack_text(packer, f->key);
    switch (f->type) {
    case DP_FIELD_U32:
    case DP_FIELD_ENUM:
        memcpy(&small, at, sizeof small);
        dp_pack_u64(packer, small);
        break;
    case DP_FIELD_U64:
        memcpy(&large, at, sizeof large);
        dp_pack_u64(packer, large);
        break;
    case DP_FIELD_F64:
        memcpy(&real, at, sizeof real);
        dp_pack_f64(packer, real);
        break;
    case DP_FIELD_BOOL:
        memcpy(&flag, at, sizeof flag);
        dp_pack_bool(packer, flag);
        break;
    case DP_FIELD_BIN16:
        dp_pack_bytes(packer, dp_view_of(at, 16));
        break;
    case DP_FIELD_BIN32:
        dp_pack_bytes(packer, dp_view_of(at, 32));
        break;
    case DP_FIELD_ENERGY:
        dp_write_u128(&writer, msg->energy);
        dp_pack_bytes(packer, dp_view_of(energy, sizeof energy));
        break;
    case DP_FIELD_ITEMS:
        dp_pack_array(packer, msg->n_items);
        for (uint32_t i = 0; i < msg->n_items; i++) {
            dp_pack_u64(packer, msg->q[i]);
        }
        break;
    case DP_FIELD_RANGES:
        dp_pack_array(packer, 2 * msg->n_ranges);
        for (uint32_t i = 0; i < msg->n_ranges; i++) {
            dp_pack_u64(packer, msg->ranges[i].first);
            dp_pack_u64(packer, msg->ranges[i].count);
        }
        break;
    case DP_FIELD_SHARES:
        dp_pack_array(packer, 2 * msg->n_items);
        for (uint32_t i = 0; i < msg->n_items; i++) {
            dp_pack_u64(packer, msg->shares[i].first);
            dp_pack_u64(packer, msg->shares[i].end);
        }
        break;
    case DP_FIELD_CUTS:
        dp_pack_array(packer, msg->cuts.n);
        for (uint32_t i = 0; i < msg->cuts.n; i++) {
            dp_pack_u64(packer, msg->cuts.first[i]);
        }
        break;
    case DP_FIELD_COSINE:
        dp_pack_i64(packer, msg->judged.align);
        break;
    case DP_FIELD_GAIN:
        pack_gain(packer, at);
        break;
    case DP_FIELD_TEXT:
        dp_pack_text(packer, at);
        break;
    }
}

bool dp_trainer_field_u32(const dp_pack_value *value, uint32_t *out)
{
    uint64_t large;
    if (!dp_pack_get_u64(value, &large) || large > UINT32_MAX) {
        return false;
    }
    *out = (uint32_t)large;
    return true;
}

static bool unpack_bin(const dp_pack_value *value, void *out, size_t size)
{
    dp_view bytes;
    if (!dp_pack_get_bytes(value, &bytes) || bytes.size != size) {
        return false;
    }
    memcpy(out, bytes.data, size);
    return true;
}

static bool unpack_items(const dp_pack_value *value, dp_trainer_msg *msg)
{
    uint32_t count;
    if (!dp_pack_is_array(value, &count) || count > DP_TRAINER_ITEMS_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!dp_trainer_field_u32(dp_pack_at(value, i), &msg->q[i])) {
            return false;
        }
    }
    msg->n_items = count;
    return true;
}

bool dp_trainer_are_samples(uint64_t first, uint64_t count)
{
    const uint64_t most = (uint64_t)1 << 62;
    return first <= most && count <= most - first;
}

/* A lease has no empty range. */
static bool unpack_ranges(const dp_pack_value *value, dp_trainer_msg *msg)
{
    uint32_t count;
    if (!dp_pack_is_array(value, &count) || count > 2 * DP_LEASE_RANGES_MAX || count % 2 != 0) {
        return false;
    }
    for (uint32_t i = 0; i < count / 2; i++) {
        dp_sample_range *const range = &msg->ranges[i];
        if (!dp_pack_get_u64(dp_pack_at(value, 2 * i), &range->first) ||
            !dp_pack_get_u64(dp_pack_at(value, 2 * i + 1), &range->count) || range->count == 0 ||
            !dp_trainer_are_samples(range->first, range->count)) {
            return false;
        }
    }
    msg->n_ranges = count / 2;
    return true;
}

/* One range for each item. */
static bool unpack_shares(const dp_pack_value *value, dp_trainer_msg *msg)
{
    uint32_t count;
    if (!dp_pack_is_array(value, &count) || count != 2 * msg->n_items) {
        return false;
    }
    for (uint32_t i = 0; i < msg->n_items; i++) {
        dp_part_range *const range = &msg->shares[i];
        if (!dp_trainer_field_u32(dp_pack_at(value, 2 * i), &range->first) ||
            !dp_trainer_field_u32(dp_pack_at(value, 2 * i + 1), &range->end) ||
            range->first > range->end || range->end > DP_PART_WHOLE) {
            return false;
        }
    }
    return true;
}

static bool unpack_cuts(const dp_pack_value *value, dp_trainer_msg *msg)
{
    uint32_t count;
    if (!dp_pack_is_array(value, &count) || count > DP_PARTS_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t share;
        if (!dp_trainer_field_u32(dp_pack_at(value, i), &share) || share >= DP_PART_WHOLE) {
            return false;
        }
        msg->cuts.first[i] = (uint16_t)share;
    }
    msg->cuts.n = count;
    return dp_part_cuts_good(&msg->cuts);
}

/* Q16. */
static bool unpack_cosine(const dp_pack_value *value, dp_trainer_msg *msg)
{
    int64_t large;
    if (!dp_pack_get_i64(value, &large) || large < -DP_ALIGN_ONE || large > DP_ALIGN_ONE) {
        return false;
    }
    msg->judged.align = (int32_t)large;
    return true;
}

static bool unpack_gain(const dp_pack_value *value, char *at)
{
    dp_gain gain;
    uint32_t count;
    if (!dp_pack_is_array(value, &count) || count != 3 ||
        !dp_pack_get_i64(dp_pack_at(value, 0), &gain.micro) ||
        !dp_pack_get_u64(dp_pack_at(value, 1), &gain.error_micro) ||
        !dp_trainer_field_u32(dp_pack_at(value, 2), &gain.tokens) ||
        gain.micro < -DP_GAIN_MICRO_MAX || gain.micro > DP_GAIN_MICRO_MAX ||
        gain.error_micro > DP_GAIN_MICRO_MAX) {
        return false;
    }
    memcpy(at, &gain, sizeof gain);
    return true;
}

bool dp_trainer_field_unpack(const dp_pack_value *value, dp_trainer_msg *msg,
                             const dp_trainer_field *f)
{
    char *const at = (char *)msg + f->offset;
    uint32_t small;
    uint64_t large;
    double real;
    bool flag;
    uint8_t energy[16];
    switch (f->type) {
    case DP_FIELD_U32:
        if (!dp_trainer_field_u32(value, &small)) {
            return false;
        }
        memcpy(at, &small, sizeof small);
        return true;
    case DP_FIELD_ENUM:
        if (!dp_trainer_field_u32(value, &small) || small < f->min || small > f->max) {
            return false;
        }
        memcpy(at, &small, sizeof small);
        return true;
    case DP_FIELD_U64:
        if (!dp_pack_get_u64(value, &large)) {
            return false;
        }
        memcpy(at, &large, sizeof large);
        return true;
    case DP_FIELD_F64:
        if (!dp_pack_get_f64(value, &real) || !isfinite(real)) {
            return false;
        }
        memcpy(at, &real, sizeof real);
        return true;
    case DP_FIELD_BOOL:
        if (!dp_pack_get_bool(value, &flag)) {
            return false;
        }
        memcpy(at, &flag, sizeof flag);
        return true;
    case DP_FIELD_BIN16:
        return unpack_bin(value, at, 16);
    case DP_FIELD_BIN32:
        return unpack_bin(value, at, 32);
    case DP_FIELD_ENERGY: {
        if (!unpack_bin(value, energy, sizeof energy)) {
            return false;
        }
        dp_reader reader = dp_reader_of(dp_view_of(energy, sizeof energy));
        msg->energy = dp_read_u128(&reader);
        return true;
    }
    case DP_FIELD_ITEMS:
        return unpack_items(value, msg);
    case DP_FIELD_RANGES:
        return unpack_ranges(value, msg);
    case DP_FIELD_SHARES:
        return unpack_shares(value, msg);
    case DP_FIELD_CUTS:
        return unpack_cuts(value, msg);
    case DP_FIELD_COSINE:
        return unpack_cosine(value, msg);
    case DP_FIELD_GAIN:
        return unpack_gain(value, at);
    case DP_FIELD_TEXT:
        return dp_pack_copy_text(value, at, DP_TRAINER_TEXT_MAX + 1);
    }
    return false;
}
