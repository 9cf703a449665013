/* The words for what the protocol core notes: a level of the log, and a sentence for the owner. Not
 * where they go (diary.h). */
#ifndef DP_DAEMON_HOST_NOTE_H
#define DP_DAEMON_HOST_NOTE_H

#include "base/log.h"
#include "gossip/node/node.h"

dp_log_level dp_note_level(dp_note_code code);
/* who: how its peer is called. Cut at size. */
void dp_note_sentence(const dp_note *note, const char *who, char *text, size_t size);

#endif
