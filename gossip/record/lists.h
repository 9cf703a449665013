/* Lists of contributions (listing.h) that this node knows of the slot under way: those of its own
 * proposal, of the records that it has accepted, and those that it has requested. Joins the voted
 * form of a record with them to its whole form. Bytes only, no I/O.
 *
 *   LIST_GET   head | 32 asker | u8 n, 1 to 32 | n times 32 hash of a list
 *   LIST       head | bytes of a list, to the end
 * Both are unsigned: a list is checked by its hash, and only requested lists are taken. */
#ifndef DP_GOSSIP_RECORD_LISTS_H
#define DP_GOSSIP_RECORD_LISTS_H

#include "gossip/record/listing.h"

enum {
    DP_LISTS_RECORDS =
        4, /* records in whose lists there is room: own, accepted, waiting, one more */
    DP_LIST_GET_BYTES_MAX = 2 + 32 + 1 + DP_LISTS_MAX * 32,
    DP_LIST_MESSAGE_MAX = 2 + DP_LIST_BYTES_MAX
};

typedef struct dp_known_list {
    dp_hash hash;
    uint64_t order; /* of its last use; 0: free */
    bool pinned;
    uint32_t size;
    uint8_t bytes[DP_LIST_BYTES_MAX];
} dp_known_list;

typedef struct dp_lists {
    uint32_t capacity; /* 0: of a run without lists */
    dp_known_list *known;
    uint64_t order;
    uint32_t n_wanted;
    dp_hash wanted[DP_LISTS_MAX]; /* the lists that were last missing */
} dp_lists;

/* listed_max: of the run. DP_NOMEM. */
DP_MUST dp_status dp_lists_open(dp_lists *lists, uint32_t listed_max);
void dp_lists_close(dp_lists *lists);

/* In the place of the one that was not used for longest, and is not pinned. */
void dp_lists_put(dp_lists *lists, dp_view list);
/* Empty: not known. Lent until the next put. */
dp_view dp_lists_get(dp_lists *lists, const dp_hash *hash);
/* The lists behind the voted form of a whole record, each with the hash that it names. */
void dp_lists_put_all(dp_lists *lists, dp_view whole);
/* Pins the known lists of this voted form; those pinned before are unpinned. */
void dp_lists_pin(dp_lists *lists, dp_view record);
/* The whole form of a record into out (DP_RECORD_WHOLE_MAX); of one that is whole, or has no lists,
 * a copy. DP_AGAIN: some lists are not known, and with wanted they are waited for instead of those
 * before. DP_BADMSG, DP_TOOBIG: no record with lists, or with more of them than the run has. */
DP_MUST dp_status dp_lists_join(dp_lists *lists, dp_view record, bool wanted, uint8_t *out,
                                dp_view *whole);
/* True: it was wanted, and is known now. */
bool dp_lists_take(dp_lists *lists, dp_view list);

typedef struct dp_list_get_msg {
    dp_peer asker;
    uint32_t n;
    dp_hash hashes[DP_LISTS_MAX];
} dp_list_get_msg;

void dp_list_get_msg_write(dp_writer *writer, const dp_list_get_msg *get);
DP_MUST dp_status dp_list_get_msg_read(dp_view message, dp_list_get_msg *get);
void dp_list_msg_write(dp_writer *writer, dp_view list);
/* Its rows are read, and rise. list is lent. */
DP_MUST dp_status dp_list_msg_read(dp_view message, dp_view *list);

#endif
