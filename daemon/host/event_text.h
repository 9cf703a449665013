/* The text and the log level of each note of the protocol core. The event log (event_log.h) stores
 * them. */
#ifndef DP_DAEMON_HOST_EVENT_TEXT_H
#define DP_DAEMON_HOST_EVENT_TEXT_H

#include "base/log.h"
#include "gossip/node/node.h"

dp_log_level dp_event_text_level(dp_note_code code);
/* who: the name of its peer. Cut at size. */
void dp_event_text_write(const dp_note *note, const char *who, char *text, size_t size);

#endif
