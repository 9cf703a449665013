/* The tables of both databases, as the steps that lead from an empty file to the newest version.
 * SQL text only. */
#ifndef DP_STORE_SCHEMA_H
#define DP_STORE_SCHEMA_H

#include "store/db.h"

#define DP_SCHEMA_APPLICATION_ID 0x44504E31 /* "DPN1", in the header of both files. */

/* Step v leads from user_version v to v + 1. Steps are never edited once released, only added. */
extern const char *const dp_schema_meta[DP_STORE_VERSION];
extern const char *const dp_schema_chunks[DP_STORE_VERSION];

#endif
