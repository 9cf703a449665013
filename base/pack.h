/* Bounded msgpack: a pre-scan that refuses what would hurt, readers of checked messages, and a
 * writer. Never the streaming unpacker; tensors never travel as msgpack. */
#ifndef DP_BASE_PACK_H
#define DP_BASE_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum { DP_PACK_DEPTH_MAX = 8, DP_PACK_NODES_MAX = 4096, DP_PACK_BYTES_MAX = 1024 * 1024 };

/* Check one complete msgpack value: depth, nodes, and no container that claims more items than
 * bytes are left. Extension types are not spoken here. Allocates nothing. DP_BADMSG or
 * DP_TOOBIG. */
DP_MUST dp_status dp_pack_check(dp_view bytes);

/* A parsed value (msgpack-c behind it). Borrowed parts live as long as the dp_unpacked and the
 * bytes. */
typedef struct dp_unpacked dp_unpacked;
typedef struct dp_pack_value dp_pack_value; /* one node, owned by its dp_unpacked */

/* Runs dp_pack_check first. bytes must outlive the result. */
DP_MUST dp_status dp_unpack_open(dp_unpacked **unpacked, dp_view bytes);
void dp_unpack_close(dp_unpacked *unpacked);
const dp_pack_value *dp_unpack_root(const dp_unpacked *unpacked);

/* Typed access. A NULL or mistyped value gives false and leaves *out alone. */
bool dp_pack_get_u64(const dp_pack_value *value, uint64_t *out);
bool dp_pack_get_i64(const dp_pack_value *value, int64_t *out);
bool dp_pack_get_f64(const dp_pack_value *value, double *out); /* also from integers */
bool dp_pack_get_bool(const dp_pack_value *value, bool *out);
bool dp_pack_get_text(const dp_pack_value *value, dp_view *out);  /* str */
bool dp_pack_get_bytes(const dp_pack_value *value, dp_view *out); /* bin */
bool dp_pack_is_array(const dp_pack_value *value, uint32_t *count);
/* NULL if not an array or index out of range. */
const dp_pack_value *dp_pack_at(const dp_pack_value *array, uint32_t index);
bool dp_pack_is_map(const dp_pack_value *value, uint32_t *count);
/* The pair at index of a map, in the order of the message; false as above. */
bool dp_pack_pair(const dp_pack_value *map, uint32_t index, const dp_pack_value **key,
                  const dp_pack_value **value);
/* Value under a text key of a map, or NULL. Of two equal keys the first counts. */
const dp_pack_value *dp_pack_key(const dp_pack_value *map, const char *key);
/* Copies a str value as a C string; false if it does not fit, holds a NUL, or is not there. */
bool dp_pack_copy_text(const dp_pack_value *value, char *out, size_t out_size);

/* Writer. Values go to a dp_buf; after an error every further call does nothing and
 * dp_packer_finish tells. */
typedef struct dp_packer {
    dp_buf *buf;
    dp_status status;
} dp_packer;

dp_packer dp_packer_of(dp_buf *buf);
void dp_pack_map(dp_packer *packer, uint32_t pairs);
void dp_pack_array(dp_packer *packer, uint32_t items);
void dp_pack_u64(dp_packer *packer, uint64_t value);
void dp_pack_i64(dp_packer *packer, int64_t value);
void dp_pack_f64(dp_packer *packer, double value);
void dp_pack_bool(dp_packer *packer, bool value);
void dp_pack_nil(dp_packer *packer);
void dp_pack_text(dp_packer *packer, const char *text);
void dp_pack_bytes(dp_packer *packer, dp_view bytes);
DP_MUST dp_status dp_packer_finish(const dp_packer *packer);

#endif
