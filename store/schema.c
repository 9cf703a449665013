#include "store/schema.h"

/* Hashes are blobs of 32 bytes; times are unix milliseconds. A column named chk is a checksum of
 * the other columns of the row (sql.h): SQLite has none of its own, and a flipped bit in a vote
 * would be worse than a lost one. */
const char *const dp_schema_meta[DP_STORE_VERSION] = {
    "CREATE TABLE kv(key TEXT PRIMARY KEY, val BLOB NOT NULL, chk BLOB NOT NULL) WITHOUT ROWID;"

    /* Objects and their chunks. An index row exists only for a chunk that is committed in
     * chunks.db. */
    "CREATE TABLE object(id INTEGER PRIMARY KEY, root BLOB NOT NULL UNIQUE CHECK(length(root)=32),"
    " size INTEGER NOT NULL, complete INTEGER NOT NULL CHECK(complete IN(0,1)));"
    "CREATE TABLE part(object_id INTEGER NOT NULL, seq INTEGER NOT NULL, hash BLOB NOT NULL "
    "CHECK(length(hash)=32),"
    " PRIMARY KEY(object_id,seq)) WITHOUT ROWID;"
    "CREATE INDEX part_hash ON part(hash);"
    "CREATE TABLE chunk_ix(hash BLOB PRIMARY KEY, chunk_id INTEGER NOT NULL UNIQUE, size INTEGER "
    "NOT NULL)"
    " WITHOUT ROWID;"
    "CREATE TABLE pin(root BLOB NOT NULL, run BLOB NOT NULL, kind INTEGER NOT NULL, round INTEGER "
    "NOT NULL,"
    " PRIMARY KEY(root,run,kind,round)) WITHOUT ROWID;"
    "CREATE INDEX pin_round ON pin(run,kind,round);"

    /* The chain. head is a row of its own, so that a hole in record is seen. */
    "CREATE TABLE record(run BLOB NOT NULL, slot INTEGER NOT NULL, hash BLOB NOT NULL, record BLOB "
    "NOT NULL,"
    " cert BLOB NOT NULL, chk BLOB NOT NULL, PRIMARY KEY(run,slot));"
    "CREATE TABLE head(run BLOB PRIMARY KEY, slot INTEGER NOT NULL, hash BLOB NOT NULL, chk BLOB "
    "NOT NULL)"
    " WITHOUT ROWID;"
    "CREATE TABLE vote(run BLOB PRIMARY KEY, secret BLOB NOT NULL, public BLOB NOT NULL, slot "
    "INTEGER NOT NULL,"
    " promised INTEGER NOT NULL, accepted INTEGER NOT NULL, place BLOB NOT NULL, record BLOB NOT "
    "NULL,"
    " chk BLOB NOT NULL);"

    "CREATE TABLE ckpt(id INTEGER PRIMARY KEY, run BLOB NOT NULL, round INTEGER NOT NULL, slot "
    "INTEGER NOT NULL,"
    " state_root BLOB NOT NULL, object BLOB NOT NULL, created_ms INTEGER NOT NULL,"
    " state INTEGER NOT NULL CHECK(state IN(0,1,2,3)), UNIQUE(run,round));" /* dp_ckpt_state */

    /* Rows of the protocol, and the objects that live while they name them. */
    "CREATE TABLE row(run BLOB NOT NULL, name TEXT NOT NULL, keep0 BLOB NOT NULL, keep1 BLOB NOT "
    "NULL,"
    " keep2 BLOB NOT NULL, bytes BLOB NOT NULL, chk BLOB NOT NULL, PRIMARY KEY(run,name));"

    /* AUTOINCREMENT: an event id is never given twice, also after the oldest rows are gone. */
    "CREATE TABLE event(id INTEGER PRIMARY KEY AUTOINCREMENT, time_ms INTEGER NOT NULL, round "
    "INTEGER NOT NULL,"
    " name TEXT NOT NULL, text TEXT NOT NULL);"

    "CREATE TABLE peer(id BLOB PRIMARY KEY, card BLOB NOT NULL, addresses TEXT NOT NULL, "
    "last_ok_ms INTEGER NOT NULL,"
    " bad INTEGER NOT NULL);"
    "CREATE INDEX peer_ok ON peer(last_ok_ms);"

    /* Every reason for which an object is kept (SAFETY R2: reasons, not counts). */
    "CREATE VIEW live(root) AS SELECT root FROM pin UNION ALL SELECT object FROM ckpt WHERE "
    "state<>3"
    " UNION ALL SELECT keep0 FROM row UNION ALL SELECT keep1 FROM row UNION ALL SELECT keep2 FROM "
    "row;",
};

/* data is the last column: a scan for ids and hashes then never follows the overflow pages. recipe
 * repeats meta.db's rows of a complete object, so that a lost meta.db costs no downloads; leaves:
 * the hashes in order. */
const char *const dp_schema_chunks[DP_STORE_VERSION] = {
    "CREATE TABLE chunk(id INTEGER PRIMARY KEY, hash BLOB NOT NULL CHECK(length(hash)=32), size "
    "INTEGER NOT NULL,"
    " data BLOB NOT NULL);"
    "CREATE TABLE recipe(root BLOB PRIMARY KEY, size INTEGER NOT NULL, run BLOB NOT NULL, kind "
    "INTEGER NOT NULL,"
    " round INTEGER NOT NULL, leaves BLOB NOT NULL);",
};
