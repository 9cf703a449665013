/* The types of fields in messages to and from a trainer: each field of a dp_trainer_msg to msgpack
 * and back. Private to trainer_msg.c, which knows which fields a message has. */
#ifndef DP_BASE_TRAINER_TRAINER_FIELD_H
#define DP_BASE_TRAINER_TRAINER_FIELD_H

#include <stddef.h>

#include "base/pack.h"
#include "base/trainer/trainer_msg.h"

typedef enum dp_trainer_field_type {
    DP_FIELD_U32,
    DP_FIELD_U64,
    DP_FIELD_F64, /* finite */
    DP_FIELD_BOOL,
    DP_FIELD_ENUM,   /* uint32_t or an enum, within min and max */
    DP_FIELD_BIN16,  /* 16 bytes */
    DP_FIELD_BIN32,  /* 32 bytes */
    DP_FIELD_ENERGY, /* energy: 16 bytes, little-endian */
    DP_FIELD_ITEMS,  /* q and n_items: [q, ...] */
    DP_FIELD_RANGES, /* ranges and n_ranges: [first, count, ...] */
    DP_FIELD_SHARES, /* shares, as many as items: [first, end, ...] */
    DP_FIELD_CUTS,   /* cuts: [first, ...] */
    DP_FIELD_COSINE, /* judged.align */
    DP_FIELD_GAIN,   /* a dp_gain: [micro, error, tokens] */
    DP_FIELD_TEXT    /* text */
} dp_trainer_field_type;

typedef struct dp_trainer_field {
    const char *key;
    dp_trainer_field_type type;
    size_t offset; /* in dp_trainer_msg */
    uint32_t min;  /* of DP_FIELD_ENUM */
    uint32_t max;
} dp_trainer_field;

/* Writes the key and the value of a field. */
void dp_trainer_field_pack(dp_packer *packer, const dp_trainer_msg *msg, const dp_trainer_field *f);
/* Reads a value. False: NULL, another type, or out of range; msg may have changed. */
bool dp_trainer_field_unpack(const dp_pack_value *value, dp_trainer_msg *msg,
                             const dp_trainer_field *f);
/* A number of 32 bits; false leaves *out alone. */
bool dp_trainer_field_u32(const dp_pack_value *value, uint32_t *out);
/* True if first, count and their sum are sample numbers: at most 2^62, so that no sum overflows. */
bool dp_trainer_are_samples(uint64_t first, uint64_t count);

#endif
