/* Places and flags in the bytes of a record (record.h), for the files that write and read them. */
#ifndef DP_GOSSIP_RECORD_RECORD_INSIDE_H
#define DP_GOSSIP_RECORD_RECORD_INSIDE_H

#include "gossip/record/record.h"

enum {
    DP_RECORD_FLAG_CONFIG = 1,
    DP_RECORD_FLAG_PARTED = 2,
    DP_RECORD_FLAG_AGED = 4,
    DP_RECORD_FLAG_SLOW = 8,
    DP_RECORD_FLAG_FREE = 16,
    DP_RECORD_FLAG_LISTS = 32,
    DP_RECORD_FLAG_REVOKED = 64,
    DP_RECORD_FLAG_ROTATED = 128,
    DP_RECORD_PART_OF_OBJECTS = 1,
    DP_RECORD_PART_OF_SUMS = 2, /* ... and of objects */
    DP_RECORD_KIND_AT = 1,
    DP_RECORD_FLAGS_AT = 2,
    DP_RECORD_VOTED_AT = 115 /* u16, of a ROUND with lists */
};

/* u8 n | n times {u8 voter, 64 signature}, voters rising; False: another form. */
bool dp_record_read_seals(dp_reader *reader, dp_seal seals[DP_VOTERS_MAX], uint32_t *n);

#endif
