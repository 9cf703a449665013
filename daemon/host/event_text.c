#include "daemon/host/event_text.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

enum { NUMBER_MAX = 32 };

/* A sentence has placeholders: {who}, {round}, {cause}; {a} and {b} as numbers, or as {a mode}, {a
 * state}, {a share}. */
static const struct {
    dp_log_level level;
    const char *sentence;
} notes[DP_NOTE_CODE_COUNT] = {
    [DP_NOTE_MODE] = {DP_LOG_INFO, "this node: {a mode} -> {b mode}: {cause}"},
    [DP_NOTE_ROUND_OPENED] = {DP_LOG_DEBUG, "round {round} opened"},
    [DP_NOTE_PUBLISHED] = {DP_LOG_DEBUG,
                           "published an update for round {round}: {a} bytes, {b} tokens"},
    [DP_NOTE_READY] = {DP_LOG_DEBUG, "{who} is ready for round {round}"},
    [DP_NOTE_CLOSED] = {DP_LOG_DEBUG, "round {round} closes with {a} of {b}: {cause}"},
    [DP_NOTE_STRAGGLER] = {DP_LOG_INFO, "round {round} does not wait for {who}: {cause}"},
    [DP_NOTE_BID] = {DP_LOG_DEBUG, "slot {round}: started ballot {a}"},
    [DP_NOTE_DECIDED] = {DP_LOG_INFO, "round {round} decided in slot {b} with {a} contributors"},
    [DP_NOTE_COUNTED] = {DP_LOG_INFO, "round {round} counted this node's update"},
    [DP_NOTE_LEFT_OUT] = {DP_LOG_INFO, "round {round} did not count this node's update: {cause}"},
    [DP_NOTE_APPLIED] = {DP_LOG_DEBUG, "round {round} applied"},
    [DP_NOTE_CERTIFIED] = {DP_LOG_DEBUG, "a majority signed the state after round {round}"},
    [DP_NOTE_VOTERS] = {DP_LOG_INFO, "voters {a} -> {b}"},
    [DP_NOTE_ADMITTED] = {DP_LOG_INFO, "{who} is now a member"},
    [DP_NOTE_REMOVED] = {DP_LOG_INFO, "{who} is no longer a member: {cause}"},
    [DP_NOTE_MEMBER] = {DP_LOG_INFO, "{who}: {a state} -> {b state}: {cause}"},
    [DP_NOTE_FETCH] = {DP_LOG_DEBUG, "fetching from {who}: {cause}"},
    [DP_NOTE_CATCHUP] = {DP_LOG_INFO, "catching up from round {a} to {b}: {cause}"},
    [DP_NOTE_EXCHANGE] = {DP_LOG_INFO, "gossip exchange with {who}, weights {a} and {b}: {cause}"},
    [DP_NOTE_DISCARDED] = {DP_LOG_WARN, "discarded {a share} % of the unaveraged work: {cause}"},
    [DP_NOTE_DIVERGED] =
        {DP_LOG_WARN, "this node's state after round {round} is not the certified one: {cause}"},
    [DP_NOTE_VOTE_KEY_LOST] =
        {DP_LOG_WARN,
         "the vote key is lost; this node does not vote until it is enrolled again: {cause}"},
    [DP_NOTE_REJECTED] = {DP_LOG_WARN, "refused a message from {who}: {cause}"},
    [DP_NOTE_JUDGED] = {DP_LOG_DEBUG, "the update of {who} is aligned {a share} % {cause}"},
    [DP_NOTE_ADOPTED] = {DP_LOG_WARN, "the root key restarts the chain after round {round}: this "
                                      "node drops {a} records with {b} rounds"},
    [DP_NOTE_NO_SECRET] = {DP_LOG_WARN, "the join secret of epoch {a} is missing: asking the "
                                        "members, using the older secrets until it arrives"},
};

/* The text for a cause that gossip/ gives as a word. */
static const char *explained(const char *cause)
{
    static const struct {
        const char *cause;
        const char *text;
    } rows[] = {
        {"all", "all are ready"},
        {"grace", "enough are ready, and the grace for the others has ended"},
        {"deadline", "the hard deadline has passed"},
        {"config", "no update is ready, and the roster changes"},
        {"parts", "the sums of all parts are stored"},
        {"parts missing", "the time to wait for the missing sums of parts has ended"},
        {"along the own one", "with this node's update"},
        {"against the own one", "against this node's update"},
        {"quorum", "a majority of the voters is reachable"},
        {"no quorum", "no majority of the voters is reachable"},
        {"voted twice", "a voter voted twice"},
        {"two forks", "the root key has restarted the chain twice at one place"},
        {"owner", "its owner paused it"},
        {"no state", "the model has not arrived yet"},
        {"removed", "it was removed from the run"},
        {"revoked", "it was removed from the run"},
        {"left", "it left the run"},
        {"harmful", "a majority of the voters found its updates harmful"},
        {"absent", "it was absent, and a new node needed its place"},
        {"linked", "a connection is up"},
        {"says so", "it announced itself"},
        {"restarted", "it was restarted"},
        {"stopped", "it stopped"},
        {"accused", "another member reports that it does not answer"},
        {"connection broken", "the connection to it broke"},
        {"silent", "it does not answer"},
        {"heard", "it answers again"},
        {"slow", "it answered too late; another node is asked as well"},
        {"bad chunks", "it sent damaged data"},
        {"wrong size", "it announced a wrong size"},
        {"state", "the trainer loads a checkpoint of the model"},
        {"fenced", "the voters declared unfinished pair exchanges void"},
        {"done", "its work is mixed in"},
        {"aborted", "it was aborted; no work moved"},
        {"in doubt", "the partner does not confirm it; this node asks again"},
        {"lost", "the disk lost a part of it"},
        {"old copy", "the disk of this node held an old copy"},
        {"lambda", "work ages with the rounds that its node missed"},
        {"apply failed", "the trainer could not apply the round"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(cause, rows[i].cause) == 0) {
            return rows[i].text;
        }
    }
    return cause;
}

/* The sixteen bits of a share as per cent. */
static void write_share(uint64_t share, char text[NUMBER_MAX])
{
    snprintf(text, NUMBER_MAX, "%llu.%llu", (unsigned long long)(share * 100 / 65536),
             (unsigned long long)(share * 1000 / 65536 % 10));
}

/* The text for a placeholder of that name; number is room for one number. */
static const char *filling(const char *hole, const dp_note *note, const char *who,
                           char number[NUMBER_MAX])
{
    if (strcmp(hole, "who") == 0) {
        return who;
    }
    if (strcmp(hole, "cause") == 0) {
        return explained(note->cause);
    }
    const uint64_t value = strcmp(hole, "round") == 0 ? note->round
                           : hole[0] == 'a'           ? note->a
                                                      : note->b;
    const char *const kind = strchr(hole, ' ');
    if (kind == NULL) {
        snprintf(number, NUMBER_MAX, "%llu", (unsigned long long)value);
    } else if (strcmp(kind, " mode") == 0) {
        return dp_mode_name((dp_mode)value);
    } else if (strcmp(kind, " state") == 0) {
        return dp_member_state_name((dp_member_state)value);
    } else {
        write_share(value, number);
    }
    return number;
}

dp_log_level dp_event_text_level(dp_note_code code)
{
    dp_assert(code > 0 && code < DP_NOTE_CODE_COUNT);
    return notes[code].level;
}

void dp_event_text_write(const dp_note *note, const char *who, char *text, size_t size)
{
    dp_assert(note->code > 0 && note->code < DP_NOTE_CODE_COUNT);
    const char *at = notes[note->code].sentence;
    size_t used = 0;
    while (*at != '\0' &&
           /* Each iteration handles the text before a placeholder, and the placeholder. */
           used < size) {
        char hole[NUMBER_MAX] = "";
        char number[NUMBER_MAX];
        const size_t words = strcspn(at, "{");
        const size_t length = at[words] == '{' ? strcspn(at + words + 1, "}") : 0;
        snprintf(hole, sizeof hole, "%.*s", (int)length, at + words + (length > 0));
        const int more = snprintf(text + used, size - used, "%.*s%s", (int)words, at,
                                  length > 0 ? filling(hole, note, who, number) : "");
        used += more > 0 ? (size_t)more : 0;
        at += words + (length > 0 ? length + 2 : 0);
    }
}
