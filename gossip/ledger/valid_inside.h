/* Private header of the files that judge a record. */
#ifndef DP_GOSSIP_LEDGER_VALID_INSIDE_H
#define DP_GOSSIP_LEDGER_VALID_INSIDE_H

#include "base/status.h"

/* DP_DENIED, for this cause: a fixed text. */
static inline dp_status no(const char **cause, const char *why)
{
    *cause = why;
    return DP_DENIED;
}

#endif
