/* Text of the dialogs of `dpnode top`: all that is known of one line, and the answer of why. */
#ifndef DP_CLI_TOP_DETAILS_H
#define DP_CLI_TOP_DETAILS_H

#include <stddef.h>

#include "cli/top/facts.h"

/* Each fills text with lines; what is longer than size is cut. */
void dp_details_peer(const dp_facts *facts, const dp_facts_peer *peer, char *text, size_t size);
void dp_details_event(const dp_facts_event *event, char *text, size_t size);
/* round: the daemon's words on it, an item of rounds. */
void dp_details_round(const json_t *round, char *text, size_t size);
/* why: a reply. */
void dp_details_why(const json_t *why, char *text, size_t size);

#endif
