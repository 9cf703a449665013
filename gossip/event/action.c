#include "gossip/event/action.h"

const char *dp_note_name(dp_note_code code)
{
    static const char *const names[DP_NOTE_CODE_COUNT] = {
        [DP_NOTE_MODE] = "mode",
        [DP_NOTE_ROUND_OPENED] = "round.opened",
        [DP_NOTE_PUBLISHED] = "round.published",
        [DP_NOTE_READY] = "round.ready",
        [DP_NOTE_CLOSED] = "round.closed",
        [DP_NOTE_STRAGGLER] = "round.straggler",
        [DP_NOTE_BID] = "round.bid",
        [DP_NOTE_DECIDED] = "round.decided",
        [DP_NOTE_COUNTED] = "round.counted",
        [DP_NOTE_LEFT_OUT] = "round.left_out",
        [DP_NOTE_APPLIED] = "round.applied",
        [DP_NOTE_CERTIFIED] = "round.certified",
        [DP_NOTE_VOTERS] = "voters",
        [DP_NOTE_ADMITTED] = "member.admitted",
        [DP_NOTE_REMOVED] = "member.removed",
        [DP_NOTE_MEMBER] = "member.state",
        [DP_NOTE_FETCH] = "fetch",
        [DP_NOTE_CATCHUP] = "catchup",
        [DP_NOTE_EXCHANGE] = "exchange",
        [DP_NOTE_DISCARDED] = "discarded",
        [DP_NOTE_DIVERGED] = "diverged",
        [DP_NOTE_VOTE_KEY_LOST] = "vote_key.lost",
        [DP_NOTE_REJECTED] = "rejected",
        [DP_NOTE_JUDGED] = "judged",
        [DP_NOTE_ADOPTED] = "chain.adopted",
        [DP_NOTE_NO_SECRET] = "secret.missing",
    };

    return code > 0 && code < DP_NOTE_CODE_COUNT ? names[code] : "unknown";
}
