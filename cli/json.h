/* Converts the daemon's msgpack replies to JSON, unchanged: --json shows what the daemon sends.
 * Does not parse JSON. */
#ifndef DP_CLI_JSON_H
#define DP_CLI_JSON_H

#include <jansson.h>

#include "base/pack.h"

/* A new reference; NULL without memory. Binary becomes lower-case hexadecimal, text loses bytes
 * that are not UTF-8, integers above 2^63 - 1 become text, numbers that are not finite become
 * null. */
json_t *dp_json_of(const dp_pack_value *value);

/* A new reference to a text from a person or a program, without its bytes that are not UTF-8, which
 * jansson refuses; NULL without memory. */
json_t *dp_json_of_text(dp_view text);
/* The same; NULL for NULL. */
json_t *dp_json_string(const char *text);

/* Fields of an object, with a default for fields that are absent or of another type. Borrowed from
 * object. */
const char *dp_json_text(const json_t *object, const char *key, const char *standard);
long long dp_json_int(const json_t *object, const char *key, long long standard);
double dp_json_real(const json_t *object, const char *key, double standard);
int dp_json_flag(const json_t *object, const char *key);

#endif
