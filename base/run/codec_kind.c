#include "base/run/codec_kind.h"

#include <string.h>

#define DP_CODEC_ROW(name_, NAME, number, least, most, standard, thins_)                           \
    {.name = #name_,                                                                               \
     .kind = DP_CODEC_##NAME,                                                                      \
     .block_min = (least),                                                                         \
     .block_max = (most),                                                                          \
     .block_default = (standard),                                                                  \
     .thins = (thins_)},

static const dp_codec_row rows[] = {DP_CODEC_LIST(DP_CODEC_ROW)};

/* Codecs that were deleted (decisions/021-codecs.md), and which to use for them. */
static const struct {
    const char *name;
    const char *instead;
} gone[] = {{"fp16", "bf16"}, {"e3m0", "int4"}, {"sign", "int4"}, {"random", "sparse"}};

enum { GAIN_ONE = 65536, GONE_COUNT = sizeof gone / sizeof gone[0] };

const dp_codec_row *dp_codec_rows(size_t *count)
{
    *count = DP_CODEC_COUNT;
    return rows;
}

const dp_codec_row *dp_codec_row_of(unsigned kind)
{
    for (size_t i = 0; i < DP_CODEC_COUNT; i++) {
        if ((unsigned)rows[i].kind == kind) {
            return &rows[i];
        }
    }
    return NULL;
}

uint32_t dp_codec_gain(dp_codec_kind kind, uint32_t keep)
{
    const dp_codec_row *const row = dp_codec_row_of((unsigned)kind);

    if (row == NULL || !row->thins || keep == 0) {
        return GAIN_ONE;
    }
    return keep <= DP_CODEC_KEEP_MIN ? 2 * GAIN_ONE : 5 * GAIN_ONE / 2;
}

const char *dp_codec_name(dp_codec_kind kind)
{
    const dp_codec_row *const row = dp_codec_row_of((unsigned)kind);
    return row == NULL ? NULL : row->name;
}

bool dp_codec_named(const char *name, dp_codec_kind *kind)
{
    for (size_t i = 0; i < DP_CODEC_COUNT; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            *kind = rows[i].kind;
            return true;
        }
    }
    return false;
}

const char *dp_codec_instead(const char *name)
{
    for (size_t i = 0; i < GONE_COUNT; i++) {
        if (strcmp(gone[i].name, name) == 0) {
            return gone[i].instead;
        }
    }
    return NULL;
}

static bool is_power_of_two(uint32_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

dp_status dp_codec_options_check(dp_codec_kind kind, uint32_t block, uint32_t keep, uint32_t bits,
                                 dp_why *why)
{
    const dp_codec_row *const row = dp_codec_row_of((unsigned)kind);
    if (row == NULL) {
        return dp_why_set(why, DP_BADARG, "round.codec is %u, which is none", (unsigned)kind);
    }
    if (block != 0 && row->block_min == 0) {
        return dp_why_set(why, DP_BADARG, "a block of %u; the codec %s has none, so 0", block,
                          row->name);
    }
    if (block != 0 &&
        (block < row->block_min || block > row->block_max || !is_power_of_two(block))) {
        return dp_why_set(why, DP_BADARG,
                          "a block of %u; for the codec %s it may be a power of two from %u to %u",
                          block, row->name, row->block_min, row->block_max);
    }
    if (row->thins &&
        (keep < DP_CODEC_KEEP_MIN || keep > DP_CODEC_KEEP_MAX || !is_power_of_two(keep))) {
        return dp_why_set(why, DP_BADARG, "round.codec_keep is %u; it may be 16, 32, 64 or 128",
                          keep);
    }
    if (row->thins && (bits < 1 || bits > DP_CODEC_BITS_MAX)) {
        return dp_why_set(why, DP_BADARG, "%u bits of a value; it may be 1 or 2", bits);
    }
    return DP_OK;
}
