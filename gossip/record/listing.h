/* Lists: the rows of a round's contributions where a record names them by hash instead of holding
 * them (a run whose manifest permits more than 32 contributors). Bytes alone; valid.h checks the
 * content of rows.
 *
 * A row, as in a record that holds its contributions itself (record.h), little-endian, 208 bytes:
 *     32 peer | 32 blob root | u64 blob bytes | u64 tokens | u64 carried | u64 reach leased | u64
 *     reach own | u32 steps | u32 loss | 64 READY signature | u128 energy | u64 w | u32 clip Q16
 *     | u32 q Q31 A list: u8 version 1 | u8 n, 1 to 32 | n rows, peers rising. Its hash is
 *     H("dpnode/list/1", all of these bytes). The contributions of a round are cut into lists in
 *     order of peer: all but the last one have 32 rows, and peers rise from one list to the next.
 *     So nodes that list the same contributions make the same lists. */
#ifndef DP_GOSSIP_RECORD_LISTING_H
#define DP_GOSSIP_RECORD_LISTING_H

#include "gossip/record/record.h"

enum {
    DP_LIST_VERSION = 1,
    DP_LIST_ROW_BYTES = 2 * 32 + 5 * 8 + 2 * 4 + DP_SIGNATURE_BYTES + 16 + 8 + 2 * 4,
    DP_LIST_HEAD_BYTES = 2,
    DP_LIST_BYTES_MAX = DP_LIST_HEAD_BYTES + DP_LIST_ROWS_MAX * DP_LIST_ROW_BYTES
};

/* One row; without the rate that a run of parts adds. */
void dp_listing_row_write(dp_writer *writer, const dp_listed *listed);
void dp_listing_row_read(dp_reader *reader, dp_listed *listed);

/* How many lists n contributions make, and how many rows list i of them has; n in
 * 1..DP_LISTED_MAX. */
uint32_t dp_listing_count(uint32_t n);
uint32_t dp_listing_rows(uint32_t n, uint32_t i);
/* Bytes of a list of so many rows. */
size_t dp_listing_bytes(uint32_t rows);

/* n in 1..DP_LIST_ROWS_MAX. */
void dp_listing_write(dp_writer *writer, const dp_listed *rows, uint32_t n);
/* Total and strict: one form per list. rows is undefined on failure. */
DP_MUST dp_status dp_listing_read(dp_view bytes, dp_listed rows[DP_LIST_ROWS_MAX], uint32_t *n);
dp_hash dp_listing_hash(dp_view bytes);

#endif
