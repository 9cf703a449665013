/* Bounded msgpack: a check of untrusted bytes, readers of checked messages, and a writer. It never
 * uses msgpack's streaming unpacker; tensors never travel as msgpack. */
#ifndef DP_BASE_PACK_H
#define DP_BASE_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum { DP_PACK_DEPTH_MAX = 8, DP_PACK_NODES_MAX = 4096, DP_PACK_BYTES_MAX = 1024 * 1024 };

/* Checks one complete msgpack value: depth, nodes, and that no container claims more items than
 * bytes are left. Extension types are refused. Allocates nothing. DP_BADMSG or DP_TOOBIG. */
DP_MUST dp_status dp_pack_check(dp_view bytes);

/* A parsed value (by msgpack-c). Borrowed parts live as long as the dp_unpacked and the bytes. */
typedef struct dp_unpacked dp_unpacked;
typedef struct dp_pack_value dp_pack_value; /* one node, owned by its dp_unpacked */

/* Checks and parses bytes, which must outlive the result. DP_BADMSG, DP_TOOBIG, DP_NOMEM. */
DP_MUST dp_status dp_unpack_open(dp_unpacked **unpacked, dp_view bytes);
void dp_unpack_close(dp_unpacked *unpacked);
const dp_pack_value *dp_unpack_root(const dp_unpacked *unpacked);

/* Typed access. A NULL value or another type gives false and leaves *out unchanged. */
bool dp_pack_get_u64(const dp_pack_value *value, uint64_t *out);
bool dp_pack_get_i64(const dp_pack_value *value, int64_t *out);
bool dp_pack_get_f64(const dp_pack_value *value, double *out); /* also from integers */
bool dp_pack_get_bool(const dp_pack_value *value, bool *out);
bool dp_pack_get_text(const dp_pack_value *value, dp_view *out);  /* str */
bool dp_pack_get_bytes(const dp_pack_value *value, dp_view *out); /* bin */
bool dp_pack_is_array(const dp_pack_value *value, uint32_t *count);
/* The item at index; NULL if the value is no array or the index is out of range. */
const dp_pack_value *dp_pack_at(const dp_pack_value *array, uint32_t index);
bool dp_pack_is_map(const dp_pack_value *value, uint32_t *count);
/* The pair at index of a map, in the order of the message; false if it is no map or the index is
 * out of range. */
bool dp_pack_pair(const dp_pack_value *map, uint32_t index, const dp_pack_value **key,
                  const dp_pack_value **value);
/* The value of a text key of a map, or NULL. The first of equal keys counts. */
const dp_pack_value *dp_pack_key(const dp_pack_value *map, const char *key);
/* Copies a str value as a C string; false if it is absent, does not fit, or holds a NUL. */
bool dp_pack_copy_text(const dp_pack_value *value, char *out, size_t out_size);

/* Writer into a dp_buf. After an error further calls do nothing, and dp_packer_finish returns the
 * error. */
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
