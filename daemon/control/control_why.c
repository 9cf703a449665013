/* The method why: the state of this node, of a round or of a member, and the events that explain
 * it. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "daemon/control/control.h"
#include "daemon/control/first_start.h"
#include "daemon/control/reply.h"
#include "daemon/history/history.h"
#include "daemon/peer/driver.h"
#include "daemon/peer/suspension.h"

enum { WHY_WINDOW_MS = 120 * 1000, WHY_CAUSES_MAX = 12 };

/* The filter, and for a question without a time the begin of what explains the present. */
typedef struct question {
    dp_history_filter filter;
    bool has_times;
    uint64_t window_ms;
} question;

/* Does this entry explain something? Routine entries are left out. */
static bool explains(const dp_event_log_entry *entry, const question *about)
{
    static const dp_note_code routine[] = {
        DP_NOTE_ROUND_OPENED, DP_NOTE_PUBLISHED, DP_NOTE_READY,  DP_NOTE_DECIDED, DP_NOTE_COUNTED,
        DP_NOTE_APPLIED,      DP_NOTE_CERTIFIED, DP_NOTE_CLOSED, DP_NOTE_CATCHUP, DP_NOTE_FETCH};
    if (!dp_history_takes_event(&about->filter, entry)) {
        return false;
    }
    if (about->filter.has_round) {
        return true;
    }
    /* One from the journal has a name alone. */
    for (size_t i = 0; i < sizeof routine / sizeof routine[0]; i++) {
        if (strcmp(entry->name, dp_note_name(routine[i])) == 0) {
            return false;
        }
    }
    const bool routine_name = /* A verdict explains something about its peer alone. */
        (!about->filter.has_peer && strcmp(entry->name, dp_note_name(DP_NOTE_JUDGED)) == 0) ||
        strncmp(entry->name, "ckpt.", 5) == 0 || strncmp(entry->name, "link.", 5) == 0;
    return !routine_name &&
           (about->filter.has_peer || about->has_times || entry->time_ms >= about->window_ms);
}

static bool has_id(const dp_peer *peer, const char *text)
{
    char id[DP_PEER_TEXT_MAX];
    char hex[2 * sizeof peer->bytes + 1];
    dp_peer_text(peer, id);
    dp_hex(dp_view_of(peer->bytes, sizeof peer->bytes), hex);
    return strcmp(text, id) == 0 || strcmp(text, hex) == 0;
}

bool dp_call_find_peer(const dp_daemon *daemon, const dp_call *call,
                       const dp_pack_value *parameters, dp_peer *peer)
{
    char text[2 * sizeof peer->bytes + 1] = "";
    const dp_node *node = dp_driver_node(daemon->driver);
    dp_member_view member;
    dp_roster_view row;
    uint32_t named = 0;
    const bool read = dp_pack_copy_text(dp_pack_key(parameters, "peer"), text, sizeof text);
    for (uint32_t i = 0; read && node != NULL && dp_node_roster(node, i, &row); i++) {
        if (has_id(&row.peer, text)) { /* Maybe a former member: history has them too. */
            *peer = row.peer;
            return true;
        }
    }
    for (uint32_t i = 0; read && node != NULL && dp_node_member(node, i, &member); i++) {
        if (has_id(&member.peer, text)) {
            *peer = member.peer;
            return true;
        }
        if (strcmp(text, dp_driver_peer_name(daemon->driver, &member.peer)) == 0) {
            *peer = member.peer;
            named++;
        }
    }
    if (named != 1) {
        dp_call_fail(call, 1, "E0120", "dpnode peers   # lists names and ids",
                     named == 0 ? "unknown peer" : "several peers have this name", text);
    }
    return named == 1;
}

static bool took_part(const dp_event_log_round *round, const dp_peer *peer)
{
    /* Not all entries are kept: then the answer does not mention them. */
    bool listed = round->listed > round->n_peers;
    for (uint32_t i = 0; i < round->n_peers; i++) {
        listed = listed || dp_peer_equal(&round->peers[i].peer, peer);
    }
    for (uint32_t i = 0; i < round->n_left_out; i++) {
        listed = listed || dp_peer_equal(&round->left_out[i].peer, peer);
    }
    return listed;
}

/* The last entry about this member's state before the round was decided; NULL if that entry says
 * that it was alive. */
static const dp_event_log_entry *away_at(const dp_event_log *event_log, const dp_peer *peer,
                                         uint64_t time_ms)
{
    for (uint32_t i = dp_event_log_entries(event_log); i-- > 0;) {
        const dp_event_log_entry *entry = dp_event_log_entry_at(event_log, i);
        if (entry->time_ms <= time_ms && strcmp(entry->name, "member.state") == 0 &&
            dp_peer_equal(&entry->peer, peer)) {
            return strstr(entry->text, "-> alive") == NULL ? entry : NULL;
        }
    }
    return NULL;
}

/* The members for which the round did not wait, since they were suspect or dead. */
static void add_away(const dp_daemon *daemon, const dp_event_log_round *round, char *text,
                     size_t size)
{
    const dp_node *node = dp_driver_node(daemon->driver);
    dp_member_view member;
    size_t used = strlen(text);
    for (uint32_t i = 1; round->live && node != NULL && dp_node_member(node, i, &member); i++) {
        const dp_event_log_entry *entry =
            member.in_roster && !took_part(round, &member.peer)
                ? away_at(daemon->event_log, &member.peer, round->time_ms)
                : NULL;
        if (entry != NULL && used < size) {
            const int more =
                snprintf(text + used, size - used, " Not waited for: %s.", entry->text);
            used += more > 0 ? (size_t)more : 0;
        }
    }
}

/* The phases of this node. */
static void add_phases(const dp_event_log_round *round, char *text, size_t size)
{
    static const char *const words[DP_PHASES] = {[DP_PHASE_PUBLISHED] = "published",
                                                 [DP_PHASE_READY] = "ready",
                                                 [DP_PHASE_HELD] = "all updates here",
                                                 [DP_PHASE_DECIDED] = "decided",
                                                 [DP_PHASE_APPLIED] = "applied"};
    const char *before = " After this node opened it: ";
    dp_phase_times times;
    uint64_t ms = 0;
    size_t used = strlen(text);
    for (int i = DP_PHASE_OPENED + 1; i < DP_PHASES && used < size; i++) {
        if (dp_phases_ms(&round->phases, (dp_phase)i, &ms)) {
            const int more = snprintf(text + used, size - used, "%s%s %.1f s", before, words[i],
                                      (double)ms / 1000);
            used += more > 0 ? (size_t)more : 0;
            before = ", ";
        }
    }
    if (before[0] != ',' || used >= size) {
        return;
    }
    if (dp_phases_times(&round->phases, &times)) {
        snprintf(text + used, size - used, ": compute %.1f s, transfer %.1f s, wait %.1f s.",
                 (double)times.compute_ms / 1000, (double)times.transfer_ms / 1000,
                 (double)times.wait_ms / 1000);
    } else {
        snprintf(text + used, size - used, ".");
    }
}

/* round: NULL if this node does not know it. False: so, or it is in the future. */
static bool answer_round(const dp_daemon *daemon, uint64_t number_, const dp_event_log_round *round,
                         char *text, size_t size)
{
    if (round == NULL) {
        dp_driver_view view;
        dp_driver_look(daemon->driver, &view);
        snprintf(text, size, "round %llu %s", (unsigned long long)number_,
                 number_ == view.node.round + 1  ? "is under way"
                 : number_ > view.node.round + 1 ? "has not begun"
                                                 : "is not known to this node");
        return number_ == view.node.round + 1;
    }
    const int at = snprintf(
        text, size, "round %llu was decided with %u of %u contributors. This node's update was %s.",
        (unsigned long long)round->round, round->listed, round->active,
        round->counted ? "counted" : "not counted");
    size_t used = at > 0 ? (size_t)at : 0;
    for (uint32_t i = 0; i < round->n_left_out && used < size; i++) {
        const int more = snprintf(text + used, size - used, " %s was left out: %s.",
                                  dp_driver_peer_name(daemon->driver, &round->left_out[i].peer),
                                  round->left_out[i].cause);
        used += more > 0 ? (size_t)more : 0;
    }
    add_away(daemon, round, text, size);
    add_phases(round, text, size);
    return true;
}

static void answer_peer(const dp_daemon *daemon, const dp_peer *peer, char *text, size_t size)
{
    const dp_node *node = dp_driver_node(daemon->driver);
    dp_member_view member;
    for (uint32_t i = 0; node != NULL && dp_node_member(node, i, &member); i++) {
        if (!dp_peer_equal(&member.peer, peer)) {
            continue;
        }
        char id[DP_PEER_TEXT_MAX];
        const char *name = dp_driver_peer_name(daemon->driver, peer);
        dp_peer_text(peer, id);
        snprintf(text, size, "%s%s is %s, %s, at round %llu; last counted in round %llu%s",
                 name[0] != '\0' ? name : id, i == 0 ? " (this node)" : "",
                 dp_member_state_name(member.state),
                 member.voter       ? "a voter"
                 : member.in_roster ? "a member without a vote"
                                    : "not a member",
                 (unsigned long long)member.round, (unsigned long long)member.included,
                 i == 0 || member.linked ? "" : "; not connected");
        return;
    }
    snprintf(text, size, "this peer is no longer known to this node");
}

static void answer_halted(const dp_daemon *daemon, const dp_peer *culprit, char *text, size_t size)
{
    char id[DP_PEER_TEXT_MAX];
    const char *name = dp_driver_peer_name(daemon->driver, culprit);
    if (dp_peer_is_zero(culprit)) {
        snprintf(text, size,
                 "halted: the chain was restarted twice with the root key at one place. No round "
                 "is decided until one of the two is chosen. To continue with the chain of a node, "
                 "run on it: dpnode run merge");
        return;
    }
    dp_peer_text(culprit, id);
    snprintf(text, size,
             "halted: the voter %s%s%s signed two different records in one ballot; the proof is "
             "stored. No round is decided and no node trains until the root key names new voters. "
             "On the node that created the run: dpnode run fork",
             name, name[0] != '\0' ? ", " : "", id);
}

/* Its owner asked for it, or others have removed it. */
static void answer_left(const dp_daemon *daemon, char *text, size_t size)
{
    const dp_node *node = dp_driver_node(daemon->driver);
    const dp_peer self = dp_identity_peer(&daemon->identity);
    uint32_t gone = 0;
    dp_roster_view row;
    for (uint32_t i = 0; node != NULL && dp_node_roster(node, i, &row); i++) {
        gone = dp_peer_equal(&row.peer, &self) ? row.gone : gone;
    }
    snprintf(text, size, "%s",
             gone == DP_REMOVE_HARMFUL
                 ? "removed from the run: a majority of the voters found that most of this node's "
                   "updates make the model worse. Its data, memory or trainer may be damaged. This "
                   "identity cannot join again; a new one (another --dir) needs a new token"
             : gone == DP_REMOVE_REVOKED
                 ? "removed from the run: this node's membership was revoked"
                 : "this node has left the run");
}

/* Joins the causes other than the owner's pause; word is that of the first one. */
static bool say_causes(const dp_daemon *daemon, const char **word, char *text, size_t size)
{
    char one[DP_SUSPENSION_TEXT_MAX];
    const char *ignored = "";
    size_t used = 0;
    text[0] = '\0';
    for (unsigned i = 0;
         used < size && dp_suspension_cause(daemon->suspension, i, i == 0 ? word : &ignored, one);
         i++) {
        const int more = snprintf(text + used, size - used, "%s%s", i > 0 ? ", and " : "", one);
        used += more > 0 ? (size_t)more : 0;
    }
    return used > 0;
}

static void answer_paused(const dp_daemon *daemon, char *text, size_t size)
{
    char order[DP_PAUSE_TEXT_MAX];
    char causes[4 * DP_SUSPENSION_TEXT_MAX];
    const char *word = "";
    const dp_pause pause = dp_suspension_owner(daemon->suspension);
    dp_pause_text(&pause, order, sizeof order);
    if (!say_causes(daemon, &word, causes, sizeof causes)) {
        snprintf(text, size, "paused by its owner%s. To train again: dpnode resume", order);
    } else if (pause.holds) {
        snprintf(text, size,
                 "paused by its owner%s, and %s. To train again: dpnode resume. To change the "
                 "limits: dpnode limits",
                 order, causes);
    } else if (strcmp(word, "limits") ==
               0) { /* They cannot be read: nothing ends that by itself. */
        snprintf(text, size, "training is stopped: %s. This node stays a member and votes", causes);
    } else {
        snprintf(text, size,
                 "training stopped by the %s: %s. This node stays a member, votes, and resumes "
                 "training then. To change the limits: dpnode limits",
                 word, causes);
    }
}

/* In synchronous rounds, of a run of any model or with a script. */
static void answer_script(const dp_daemon *daemon, const dp_driver_view *view, char *text,
                          size_t size)
{
    if (view->script_pid != 0) {
        snprintf(text, size,
                 "training in synchronous rounds: process %u takes the steps; %u nodes alive, %u "
                 "members, last decided round %llu",
                 view->script_pid, view->node.alive, view->node.members,
                 (unsigned long long)view->node.round);
        return;
    }
    snprintf(
        text, size,
        "waiting for a script: only a script trains this run's model (model.arch external), "
        "and none is connected to %.300s/script.sock. The node holds the model, votes and serves; "
        "%u nodes alive, %u members, last decided round %llu. How a script connects: "
        "docs/TRAINER.md",
        daemon->config->dir, view->node.alive, view->node.members,
        (unsigned long long)view->node.round);
}

static void answer_now(const dp_daemon *daemon, char *text, size_t size)
{
    dp_driver_view view;
    dp_driver_look(daemon->driver, &view);
    if (!view.running && dp_driver_manifest(daemon->driver) != NULL) {
        snprintf(text, size, "starting: reading the store");
        return;
    }
    if (!view.running) {
        snprintf(text, size, "joining: waiting for a member of the run to answer (%u links)",
                 view.transport.links);
        return;
    }
    const bool up = strcmp(view.trainer, "up") == 0;
    const dp_manifest *const manifest = dp_driver_manifest(daemon->driver);
    uint32_t here = 0;
    const uint32_t objects = dp_data_objects(daemon->driver, &here);
    const bool external = manifest != NULL && dp_manifest_external(manifest);
    switch (view.node.mode) {
    case DP_MODE_JOINING:
        snprintf(text, size,
                 "joining: catching up with round %llu; %u of %u parts of the data are on this "
                 "node; %.1f of %.1f MiB fetched, from %u peers; trainer %s",
                 (unsigned long long)view.node.round, here, objects,
                 (double)(view.node.bytes_wanted - view.node.bytes_waiting) / 0x1p20,
                 (double)view.node.bytes_wanted / 0x1p20, view.node.sources, view.trainer);
        break;
    case DP_MODE_SYNC:
        if (up && (external || view.script_pid != 0)) {
            answer_script(daemon, &view, text, size);
            break;
        }
        snprintf(
            text, size,
            "%s in synchronous rounds: %u nodes alive, %u members, last decided round %llu%s%s",
            up ? "training" : "following", view.node.alive, view.node.members,
            (unsigned long long)view.node.round,
            !up                      ? "; trainer "
            : view.device[0] != '\0' ? ", on "
                                     : "",
            up ? view.device : view.trainer);
        break;
    case DP_MODE_GOSSIP:
        snprintf(text, size,
                 "no majority of the %u voters is reachable, so no round can be decided. Until "
                 "then this node %s",
                 view.node.voters,
                 external && view.script_pid == 0 ? "waits"
                 : manifest != NULL && manifest->exchange == DP_EXCHANGE_GRADIENTS
                     ? "waits with its next gradient"
                     : "trains on and averages in pairs");
        break;
    case DP_MODE_PAUSED:
        answer_paused(daemon, text, size);
        break;
    case DP_MODE_HALTED:
        answer_halted(daemon, &view.node.culprit, text, size);
        break;
    case DP_MODE_LEFT:
        answer_left(daemon, text, size);
        break;
    }
}

/* While no majority of the voters is reachable: which of them are away, and the remedy. */
static void add_voters_away(const dp_daemon *daemon, char *text, size_t size)
{
    const dp_node *const node = dp_driver_node(daemon->driver);
    dp_member_view member;
    dp_driver_view view;
    const char *before = "; away: ";
    size_t used = strlen(text);
    dp_driver_look(daemon->driver, &view);
    if (!view.running || view.node.mode != DP_MODE_GOSSIP) {
        return;
    }
    for (uint32_t i = 1; node != NULL && used < size && dp_node_member(node, i, &member); i++) {
        if (member.voter && member.state != DP_MEMBER_ALIVE) {
            char id[DP_PEER_TEXT_MAX];
            dp_peer_text(&member.peer, id);
            const int more = snprintf(text + used, size - used, "%s%s (%s)", before,
                                      dp_driver_peer_name(daemon->driver, &member.peer), id);
            used += more > 0 ? (size_t)more : 0;
            before = ", ";
        }
    }
    if (before[0] == ',' && used < size) {
        snprintf(text + used, size - used,
                 ". Start these voters: dpnode up on their machines. If a majority is lost for "
                 "good, the founder's machine names new ones: dpnode run fork");
    }
}

/* The chain names this node as a voter under a key that went with its store. */
static void add_vote_key(const dp_daemon *daemon, char *text, size_t size)
{
    dp_member_view self;
    dp_driver_view view;
    const size_t at = strlen(text);
    dp_driver_look(daemon->driver, &view);
    if (view.running && !view.node.is_voter && view.node.mode != DP_MODE_LEFT &&
        dp_node_member(dp_driver_node(daemon->driver), 0, &self) && self.voter) {
        snprintf(
            text + at, size - at,
            "; this node has lost its vote key, with its store or on its disk, and votes again "
            "when a majority of the voters has given it another. If they are lost for good: "
            "dpnode run fork on the founder's machine");
    }
}

static void add_clock(const dp_daemon *daemon, char *text, size_t size)
{
    char clock[256];
    dp_wall_view view;
    const size_t at = strlen(text);
    if (dp_driver_clock(daemon->driver, &view, clock, sizeof clock)) {
        snprintf(text + at, size - at, "; %s (timedatectl set-ntp true)", clock);
    }
}

/* The owner's pause that waits for a round. */
static void add_pause(const dp_daemon *daemon, char *text, size_t size)
{
    const dp_pause pause = dp_suspension_owner(daemon->suspension);
    const size_t at = strlen(text);
    if (pause.holds && pause.waits) {
        char order[DP_PAUSE_TEXT_MAX];
        dp_pause_text(&pause, order, sizeof order);
        snprintf(text + at, size - at, "; its owner has ordered a pause%s", order);
    }
}

static void add_trainer(const dp_daemon *daemon, char *text, size_t size)
{
    dp_driver_view view;
    const size_t at = strlen(text);
    dp_driver_look(daemon->driver, &view);
    if (view.trainer_next_ms > 0) {
        snprintf(text + at, size - at,
                 "; the trainer crashed %u time%s in a row and restarts in %llu s",
                 view.trainer_deaths, view.trainer_deaths == 1 ? "" : "s",
                 (unsigned long long)(view.trainer_next_ms + 999) / 1000);
    }
}

static void add_refused(const dp_daemon *daemon, char *text, size_t size)
{
    dp_driver_view view;
    const size_t at = strlen(text);
    dp_driver_look(daemon->driver, &view);
    if (view.refused) {
        snprintf(
            text + at, size - at,
            "; every address that is reached closes the connection without an answer: the node "
            "there is down behind a proxy, or refuses this node, which was removed, or was "
            "away while the join secret was rotated twice. Ask a member whether the run is "
            "up; if it is, to join again: dpnode join TOKEN   # printed by dpnode invite on a "
            "member");
    }
}

static void add_no_room(const dp_daemon *daemon, char *text, size_t size)
{
    dp_driver_view view;
    const size_t at = strlen(text);
    dp_driver_look(daemon->driver, &view);
    if (view.no_room != NULL && view.no_room[0] != '\0') {
        snprintf(text + at, size - at, "; its update waits for room and is not counted: %s",
                 view.no_room);
    }
}

/* The first start has failed so far, or its token is not used. */
static void add_problem(const dp_daemon *daemon, char *text, size_t size)
{
    const dp_control_error *const problem = dp_first_start_problem(daemon->first_start);
    const size_t at = strlen(text);
    if (problem != NULL) {
        snprintf(text + at, size - at, "%s%s %s: %s. To correct it: %s", at > 0 ? "; " : "",
                 problem->code, problem->what, problem->why, problem->fix);
    } else if (dp_first_start_tries(daemon->first_start)) {
        snprintf(text + at, size - at, "this node makes its first try to join or to create a run");
    }
}

/* A question to the store: the round, and the last events that explain. */
typedef struct why_job {
    dp_store_thread_job job;
    dp_daemon *daemon;
    dp_call call;
    question about;
    dp_history_chain chain;
    bool has_row;
    dp_event_log_round row;
    dp_history_page page;
    uint32_t n_causes; /* found so far; the last ones are kept */
    dp_event_log_entry causes[WHY_CAUSES_MAX];
} why_job;

static void pack_cause(dp_group *causes, const dp_event_log_entry *entry)
{
    dp_group cause = dp_map_begin(dp_item(causes));
    dp_pair_u64(&cause, "time_ms", entry->time_ms);
    dp_pair_text(&cause, "text", entry->text);
    dp_group_end(&cause);
}

/* The last ones: those of the event log, and before them those of the store, which may be NULL. */
static void pack_causes(dp_group *map, const dp_daemon *daemon, const question *about,
                        const why_job *stored)
{
    const uint32_t kept = dp_event_log_entries(daemon->event_log);
    uint32_t found = 0;
    uint32_t from = kept;
    while (from > 0 && found < WHY_CAUSES_MAX) {
        from--;
        found += explains(dp_event_log_entry_at(daemon->event_log, from), about);
    }
    const uint32_t n = stored != NULL ? stored->n_causes : 0;
    const uint32_t has = n < WHY_CAUSES_MAX ? n : WHY_CAUSES_MAX;
    const uint32_t older = has < WHY_CAUSES_MAX - found ? has : WHY_CAUSES_MAX - found;
    dp_group causes = dp_array_begin(dp_pair(map, "causes"));
    for (uint32_t i = n - older; i < n; i++) {
        pack_cause(&causes, &stored->causes[i % WHY_CAUSES_MAX]);
    }
    for (uint32_t i = from; i < kept; i++) {
        const dp_event_log_entry *entry = dp_event_log_entry_at(daemon->event_log, i);
        if (explains(entry, about)) {
            pack_cause(&causes, entry);
        }
    }
    dp_group_end(&causes);
}

/* stored: what the store had; NULL: it was not asked. */
static void answer(const dp_daemon *daemon, const dp_call *call, const question *about,
                   const why_job *stored)
{
    const dp_history_filter *const filter = &about->filter;
    char text[1500] = "";
    dp_packer packer;
    bool known = true;
    if (filter->has_round) {
        const dp_event_log_round *const row =
            dp_event_log_round_find(daemon->event_log, filter->round);
        known = answer_round(daemon, filter->round,
                             row == NULL && stored != NULL && stored->has_row ? &stored->row : row,
                             text, sizeof text);
    } else if (filter->has_peer) {
        answer_peer(daemon, &filter->peer, text, sizeof text);
    } else if (daemon->driver != NULL) {
        answer_now(daemon, text, sizeof text);
        add_voters_away(daemon, text, sizeof text);
        add_vote_key(daemon, text, sizeof text);
        add_refused(daemon, text, sizeof text);
        add_no_room(daemon, text, sizeof text);
        add_pause(daemon, text, sizeof text);
        add_trainer(daemon, text, sizeof text);
        add_clock(daemon, text, sizeof text);
    }
    if (!filter->has_round && !filter->has_peer) {
        add_problem(daemon, text, sizeof text);
    }
    if (!dp_call_begin(call, DP_CONTROL_REPLY, &packer)) {
        return;
    }
    dp_group map = dp_map_begin(&packer);
    dp_pair_text(&map, "answer", text);
    if (filter->has_round) {
        dp_pair_bool(&map, "known", known);
    }
    pack_causes(&map, daemon, about, stored);
    dp_group_end(&map);
    dp_call_end(call, &packer);
}

static void run_why(dp_store_thread_job *job, dp_store *store)
{
    enum { PAGE = 16 };
    why_job *const self = (why_job *)job;
    dp_event_log_entry list[PAGE];
    const dp_history_filter *const filter = &self->about.filter;
    if (filter->has_round && !self->has_row) {
        self->has_row = dp_history_round(store, &self->chain, filter->round, &self->row) == DP_OK;
    }
    self->page.max = PAGE;
    if (dp_history_events(store, filter, &self->page, list) != DP_OK) {
        return; /* The answer is given with less. */
    }
    for (uint32_t i = 0; i < self->page.n; i++) {
        if (explains(&list[i], &self->about)) {
            self->causes[self->n_causes++ % WHY_CAUSES_MAX] = list[i];
        }
    }
    job->again = !self->page.over;
}

static void done_why(dp_store_thread_job *job)
{
    why_job *const self = (why_job *)job;
    if (dp_call_alive(&self->call) && dp_call_driver(self->daemon, &self->call) != NULL) {
        answer(self->daemon, &self->call, &self->about, self);
    }
    dp_free(self);
}

/* False: it is not asked, for lack of memory or of a place for the job. */
static bool ask_store(dp_daemon *daemon, const dp_call *call, const question *about)
{
    const dp_event_log_entry *const first = dp_event_log_entry_at(daemon->event_log, 0);
    why_job *const job = dp_alloc(1, sizeof *job);
    if (job == NULL) {
        return false;
    }
    job->job.run = run_why;
    job->job.done = done_why;
    job->daemon = daemon;
    job->call = *call;
    job->about = *about;
    job->chain.run = dp_driver_run_identity(daemon->driver)->run;
    job->chain.self = dp_identity_peer(&daemon->identity);
    job->page.end = first != NULL ? first->id : dp_event_log_next_id(daemon->event_log);
    if (dp_store_thread_post(daemon->store_thread, &job->job, DP_STORE_THREAD_BULK) != DP_OK) {
        dp_free(job);
        return false;
    }
    return true;
}

/* An absent key leaves the value. */
static bool take_time(const dp_pack_value *parameters, const char *key, uint64_t *value)
{
    return dp_pack_get_u64(dp_pack_key(parameters, key), value);
}

void dp_method_why(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    question about = {.window_ms = dp_unix_ms() - WHY_WINDOW_MS,
                      .filter = {.until_ms = UINT64_MAX}};
    dp_history_filter *const filter = &about.filter;
    const bool idle = daemon->driver == NULL;
    const bool tried = dp_first_start_problem(daemon->first_start) != NULL ||
                       dp_first_start_tries(daemon->first_start);
    if (!(idle && tried) && dp_call_driver(daemon, call) == NULL) {
        return;
    }
    about.has_times = take_time(parameters, "since_ms", &filter->since_ms);
    about.has_times = take_time(parameters, "until_ms", &filter->until_ms) || about.has_times;
    filter->has_round = !idle && dp_pack_get_u64(dp_pack_key(parameters, "round"), &filter->round);
    filter->has_peer = !idle && !filter->has_round && dp_pack_key(parameters, "peer") != NULL;
    if (filter->has_peer && !dp_call_find_peer(daemon, call, parameters, &filter->peer)) {
        return;
    }
    const bool older = filter->has_round || filter->has_peer || about.has_times;
    if (idle || !older || !ask_store(daemon, call, &about)) {
        answer(daemon, call, &about, NULL);
    }
}
