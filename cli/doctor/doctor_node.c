/* Checks of the node: its directory and disk, its port, its run, and whether a run that it may join
 * fits. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/doctor/doctor.h"
#include "cli/json.h"
#include "cli/print.h"

enum {
    STATES_KEPT = 4, /* two checkpoints, one being written, and one that peers fetch */
    COMMIT_US_MAX = 100 * 1000
};
#define SPACE_LEAST ((uint64_t)64 << 20) /* in addition to ballast and margin */
#define SPACE_WANTED ((uint64_t)2 << 30)
#define WRITE_WANTED ((uint64_t)20 << 20) /* bytes per second */

static uint64_t bytes_of(const json_t *object, const char *key)
{
    const long long bytes = dp_json_int(object, key, 0);
    return bytes > 0 ? (uint64_t)bytes : 0;
}

/* ---- directory and disk ---- */

static void look_directory(const dp_doctor *doctor, dp_finding *out)
{
    if (doctor->check == NULL) {
        return;
    }
    const char *const dir = dp_json_text(doctor->check, "dir", "?");
    const char *const why = dp_json_text(doctor->check, "dir_why", "");
    const char *const network = dp_json_text(doctor->check, "network", "");
    const char *const private = dp_json_text(doctor->check, "private_why", "");
    const char *const key = dp_json_text(doctor->check, "key_why", "");
    const bool is_closed = why[0] != '\0' || private[0] != '\0';
    if (key[0] != '\0') {
        dp_finding_what(out, DP_FINDING_FAIL, "a key in %.160s is readable by other users", dir);
        dp_finding_why(out, "%s", key);
        dp_finding_fix(out, "chmod 600 %.160s/*.key   # as the daemon's user", dir);
    } else if (is_closed && strcmp(dp_json_text(doctor->status, "dir", ""), dir) == 0) {
        dp_finding_what(out, DP_FINDING_OK, "%.160s, in use by the daemon", dir);
    } else if (why[0] != '\0') {
        dp_finding_what(out, DP_FINDING_FAIL, "%.160s cannot be written", dir);
        dp_finding_why(out, "%s", why);
        dp_finding_fix(out, "dpnode up --dir PATH   # another directory");
    } else if (private[0] != '\0') {
        dp_finding_what(out, DP_FINDING_FAIL, "%.160s is accessible to other users", dir);
        dp_finding_why(out, "%s", private);
        dp_finding_fix(out, "dpnode up --dir PATH   # a directory of its own");
    } else if (network[0] != '\0') {
        dp_finding_what(out, DP_FINDING_FAIL, "%.160s cannot hold a store", dir);
        dp_finding_why(out, "%s", network);
        dp_finding_fix(out, "dpnode up --dir PATH   # on a local disk");
    } else {
        dp_finding_what(out, DP_FINDING_OK, "%.160s%s", dir,
                        dp_json_int(doctor->check, "dir_exists", 0) != 0 ? ""
                                                                         : ", not created yet");
    }
}

/* The disk space that the kept states of the run take, where a run is known: four bytes for each
 * parameter. */
static uint64_t states_bytes(const dp_doctor *doctor)
{
    const uint64_t parameters = doctor->plan != NULL
                                    ? bytes_of(doctor->plan, "parameters")
                                    : bytes_of(json_object_get(doctor->status, "run"), "elements");
    return (uint64_t)STATES_KEPT * 4 * parameters;
}

static void look_space(const dp_doctor *doctor, dp_finding *out)
{
    char text[DP_PRINT_CELL_MAX];
    char states[DP_PRINT_CELL_MAX];
    if (json_object_get(doctor->check, "free") == NULL) {
        return; /* The directory cannot be used. */
    }
    const uint64_t free_bytes = bytes_of(doctor->check, "free");
    const uint64_t quota = bytes_of(doctor->check, "store_max");
    const uint64_t kept = bytes_of(doctor->check, "margin") +
                          (doctor->status != NULL ? 0 : bytes_of(doctor->check, "ballast"));
    const uint64_t model = states_bytes(doctor);
    dp_print_bytes(free_bytes, text);
    dp_print_bytes(model, states);
    dp_finding_what(out, DP_FINDING_OK, "%s free", text);
    if (free_bytes < kept + SPACE_LEAST) {
        out->level = DP_FINDING_FAIL;
        dp_print_bytes(kept, text);
        dp_finding_why(
            out, "%s stay free as disk reserve and margin, and the rest is too small for a run",
            text);
    } else if (quota > 0 && quota < model) {
        out->level = DP_FINDING_WARN;
        dp_print_bytes(quota, text);
        dp_finding_why(out, "store-max is %s, and the states of the run need up to %s", text,
                       states);
    } else if (free_bytes < kept + (model > SPACE_WANTED ? model : SPACE_WANTED)) {
        out->level = DP_FINDING_WARN;
        dp_finding_why(out,
                       "the states of a run need up to 16 bytes per parameter%s%s; with less space "
                       "fewer checkpoints are kept",
                       model > 0 ? ", here " : "", model > 0 ? states : "");
    }
    if (out->level != DP_FINDING_OK) {
        dp_finding_fix(out,
                       quota > 0 && quota < model
                           ? "dpnoded --store-max SIZE   # 0: unlimited"
                           : "dpnode up --dir PATH   # on another disk, or free space on this one");
    }
}

static void look_disk(const dp_doctor *doctor, dp_finding *out)
{
    char rate[DP_PRINT_CELL_MAX];
    const char *const why = dp_json_text(doctor->check, "disk_why", "");
    const uint64_t write = bytes_of(doctor->check, "write_bytes_s");
    const uint64_t commit_us = bytes_of(doctor->check, "commit_us");
    dp_print_bytes(write, rate);
    if (why[0] != '\0') {
        dp_finding_what(out, DP_FINDING_WARN, "the disk could not be tested");
        dp_finding_why(out, "%s", why);
        dp_finding_fix(out, "dpnode up --dir PATH   # on another disk, or free space on this one");
        return;
    }
    if (write == 0) {
        return;
    }
    const bool slow = write < WRITE_WANTED;
    const bool late = commit_us > COMMIT_US_MAX;
    dp_finding_what(out, slow || late ? DP_FINDING_WARN : DP_FINDING_OK,
                    "the store writes %s/s; a small row takes %.1f ms", rate,
                    (double)commit_us / 1000);
    if (late) {
        dp_finding_why(out, "each round waits for two or three small rows of every voter");
    } else if (slow) {
        dp_finding_why(out, "each update and each checkpoint is written completely");
    }
    if (slow || late) {
        dp_finding_fix(out, "dpnode up --dir PATH   # on another disk");
    }
}

/* ---- port ---- */

static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strncmp(address, "[::1]", 5) == 0 ||
           strncmp(address, "localhost", 9) == 0;
}

/* Do the others (or does this node) have addresses, all of which only this machine can dial? */
static bool all_loopback(const json_t *peers, bool self)
{
    size_t at = 0;
    const json_t *peer = NULL;
    size_t others = 0;
    json_array_foreach(peers, at, peer)
    {
        size_t index = 0;
        const json_t *address = NULL;
        if ((dp_json_flag(peer, "self") == 1) != self) {
            continue;
        }
        json_array_foreach(json_object_get(peer, "addresses"), index, address)
        {
            const char *const text = json_string_value(address);
            if (text == NULL || !is_loopback(text)) {
                return false;
            }
            others++;
        }
    }
    return others > 0;
}

/* None of the advertised addresses answered; text gets them. */
static bool none_answers(const json_t *dialed, char *text, size_t size)
{
    const char *address = NULL;
    json_t *answered = NULL;
    json_t *const all = json_deep_copy(dialed);
    size_t used = 0;
    bool any = false;
    text[0] = '\0';
    json_object_foreach(all, address, answered)
    {
        any = any || json_is_true(answered);
        const int more =
            used < size ? snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", address)
                        : 0;
        used += more > 0 ? (size_t)more : 0;
    }
    json_decref(all);
    return used > 0 && !any;
}

static void look_open_port(const dp_doctor *doctor, const json_t *run, dp_finding *out)
{
    const long long links = dp_json_int(run, "links", 0);
    const long long members = dp_json_int(run, "members", 1);
    const json_t *const peers = json_object_get(doctor->peers, "peers");
    char own[160];
    dp_finding_what(out, DP_FINDING_OK, "listens on port %lld; %lld link%s",
                    dp_json_int(doctor->status, "port", 0), links, links == 1 ? "" : "s");
    if (dp_json_flag(run, "refused")) {
        out->level = DP_FINDING_FAIL;
        dp_finding_why(out, "every address that is reached closes the connection without an "
                            "answer: the node there is down behind a proxy, or refuses this node, "
                            "which was removed, or was away while the join secret was rotated "
                            "twice");
        dp_finding_fix(out, "ask a member whether the run is up; if it is: dpnode join TOKEN   # "
                            "printed by dpnode invite on a member; this node keeps its identity");
    } else if (links == 0 && members > 1) {
        out->level = DP_FINDING_WARN;
        dp_finding_why(out, "the run has %lld members, and none is connected", members);
        dp_finding_fix(out,
                       "dpnode peers   # shows their last addresses; dpnode why shows the cause");
    } else if (none_answers(doctor->dialed, own, sizeof own)) {
        out->level = DP_FINDING_WARN;
        dp_finding_why(out,
                       "peers dial %s; no connection from here succeeds: a firewall blocks it, "
                       "the router does not loop it back, or a name has no address",
                       own);
        dp_finding_fix(
            out,
            "nc -vz HOST PORT   # test it from another machine; if it fails, open the TCP port");
    } else if (all_loopback(peers, true) && json_array_size(peers) > 1 &&
               !all_loopback(peers, false)) {
        out->level = DP_FINDING_WARN;
        dp_finding_why(out, "the advertised address works on this machine only");
        dp_finding_fix(out,
                       "dpnode down; dpnode up --listen 0.0.0.0:7717   # or set DPNODE_ADVERTISE");
    }
}

static void look_port(const dp_doctor *doctor, dp_finding *out)
{
    const json_t *const run = json_object_get(doctor->status, "run");
    const char *const why = dp_json_text(doctor->check, "listen_why", "");
    if (run != NULL) {
        look_open_port(doctor, run, out);
    } else if (why[0] != '\0') {
        dp_finding_what(out, DP_FINDING_FAIL, "%.80s cannot be used for listening",
                        dp_json_text(doctor->check, "listen", "?"));
        dp_finding_why(out, "%s", why);
        dp_finding_fix(out, "dpnode up --listen ADDR:PORT");
    } else if (doctor->check != NULL) {
        dp_finding_what(out, DP_FINDING_OK, "%.80s is free",
                        dp_json_text(doctor->check, "listen", "?"));
    }
}

/* ---- run ---- */

static void look_run(const dp_doctor *doctor, dp_finding *out)
{
    const json_t *const run = json_object_get(doctor->status, "run");
    const char *const state = dp_json_text(doctor->status, "state", "?");
    const char *const trainer = dp_json_text(run, "trainer", "?");
    const char *const device = dp_json_text(run, "device", "");
    if (doctor->status == NULL) {
        dp_finding_what(out, DP_FINDING_OK, "no daemon is running; to start one: dpnode up");
        return;
    }
    const char *const lost = dp_json_text(doctor->status, "lost", "");
    if (lost[0] != '\0') {
        dp_finding_what(out, DP_FINDING_FAIL,
                        "the daemon is idle: it is no longer a member of its run");
        dp_finding_why(out, "%s", lost);
        dp_finding_fix(out, "dpnode join TOKEN   # printed by dpnode invite on a member");
        return;
    }
    if (run == NULL) {
        dp_finding_what(out, DP_FINDING_OK, "the daemon is idle: it has no run");
        return;
    }
    if (json_is_null(json_object_get(run, "round"))) {
        dp_finding_what(out, DP_FINDING_OK, "%.64s: %s, round not known yet",
                        dp_json_text(run, "name", "?"), state);
        return;
    }
    dp_finding_what(out, DP_FINDING_OK, "%.64s: %s, round %lld%s%s", dp_json_text(run, "name", "?"),
                    state, dp_json_int(run, "round", 0), device[0] != '\0' ? ", on " : "", device);
    if (strcmp(trainer, "failing") == 0) {
        out->level = DP_FINDING_FAIL;
        dp_finding_why(out, "the trainer has crashed %lld times; it restarts in %lld s",
                       dp_json_int(run, "trainer_restarts", 0),
                       (dp_json_int(run, "trainer_next_ms", 0) + 999) / 1000);
        dp_finding_fix(out, "dpnode logs   # shows the trainer's last output");
    } else if (strcmp(state, "halted") == 0) {
        out->level = DP_FINDING_FAIL;
        dp_finding_why(
            out,
            "a voter signed two records in one ballot, or two forks exist; the run has stopped");
        dp_finding_fix(out, "dpnode why");
    } else if (strcmp(state, "left") == 0) {
        out->level = DP_FINDING_WARN;
        dp_finding_why(out, "this node is no longer a member of the run");
        dp_finding_fix(out, "dpnode why");
    } else if (strcmp(state, "gossip") == 0 || dp_json_flag(run, "quorum") == 0) {
        out->level = DP_FINDING_WARN;
        dp_finding_why(out,
                       "no majority of the voters is reachable; until then nodes average in pairs");
        dp_finding_fix(out, "dpnode why");
    }
}

static void look_plan(const dp_doctor *doctor, dp_finding *out)
{
    char total[DP_PRINT_CELL_MAX];
    char budget[DP_PRINT_CELL_MAX];
    if (doctor->plan_name == NULL || doctor->worker == NULL) {
        return;
    }
    dp_print_bytes(bytes_of(doctor->plan, "total"), total);
    dp_print_bytes(bytes_of(doctor->plan, "budget"), budget);
    if (doctor->text_why != NULL && doctor->text_why[0] != '\0') {
        dp_finding_what(out, DP_FINDING_FAIL, "%.64s has no text to train on", doctor->plan_name);
        dp_finding_why(out, "%s", doctor->text_why);
        dp_finding_fix(out, "dpnode run validate MANIFEST");
    } else if (doctor->plan_external) {
        dp_finding_what(out, DP_FINDING_OK,
                        "%.64s is a run of any model; its file tells what it needs: dpnode run "
                        "validate MANIFEST --from FILE",
                        doctor->plan_name);
    } else if (doctor->plan == NULL) {
        dp_finding_what(out, DP_FINDING_FAIL, "the memory that %.64s needs is not known",
                        doctor->plan_name);
        dp_finding_why(out, "dpnode-worker printed no memory plan");
        dp_finding_fix(out, "dpnode run validate MANIFEST");
    } else if (!json_is_true(json_object_get(doctor->plan, "fits"))) {
        dp_finding_what(out, DP_FINDING_FAIL, "%.64s does not fit: it needs %s, %s are available",
                        doctor->plan_name, total, budget);
        dp_finding_why(out, "%s", dp_json_text(doctor->plan, "why", ""));
        dp_finding_fix(out, "free memory, or change the setting named above");
    } else {
        dp_finding_what(
            out, DP_FINDING_OK,
            "%.64s fits: it needs %s of %s, trains %lld sequences at a time, recomputes: %s",
            doctor->plan_name, total, budget, dp_json_int(doctor->plan, "rows", 0),
            dp_json_text(doctor->plan, "recompute", "?"));
    }
}

const dp_doctor_check *dp_doctor_node(size_t *count)
{
    static const dp_doctor_check checks[] = {
        {"directory", look_directory}, {"space", look_space}, {"disk", look_disk},
        {"port", look_port},           {"run", look_run},     {"plan", look_plan},
    };
    *count = sizeof checks / sizeof checks[0];
    return checks;
}
