/* Lists that a record names (gossip/record/listing.h), from and for other voters. */
#ifndef DP_GOSSIP_CATCHUP_LIST_EXCHANGE_H
#define DP_GOSSIP_CATCHUP_LIST_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/status.h"
#include "gossip/core/limits.h"
#include "gossip/record/lists.h"

typedef struct dp_list_exchange {
    dp_lists lists;    /* of records of the slot under way */
    uint8_t *whole;    /* DP_RECORD_WHOLE_MAX; NULL in a run without lists, as the next one */
    uint8_t *vote_row; /* the row of the vote with the whole record in it */
    dp_hash asked_for; /* the record whose lists were last asked for: */
    dp_time asked_at;
    uint32_t asked; /* times */
} dp_list_exchange;

/* Reserves memory for a run with records of so many contributions. DP_NOMEM. */
DP_MUST dp_status dp_list_open(dp_node *node, uint32_t listed_max);
void dp_list_close(dp_node *node);
/* Lists of the record before are not asked for any more. */
void dp_list_open_slot(dp_node *node);
/* The whole form of a record of the slot under way, lent until the next call; DP_AGAIN: lists are
 * missing, and with wanted they are asked for. */
dp_status dp_list_join(dp_node *node, dp_view record, bool wanted, dp_view *whole);
dp_status dp_list_message(dp_node *node, uint8_t type, dp_view bytes, const dp_peer *from);
/* A row of the vote with its record as a vote has it becomes one with the whole record; and back:
 * empty, if the lists in it are not those of its record. The lists of the record in the row stay
 * known. */
dp_view dp_list_row_whole(dp_node *node, dp_view row);
dp_view dp_list_row_voted(dp_node *node, dp_view row);

#endif
