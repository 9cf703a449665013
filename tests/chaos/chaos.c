/* One run of the chaos bench: starts the nodes, kills and restarts one after another on a schedule
 * drawn from the seed, and checks that at the end all are back with one state. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/run/run_mode.h"
#include "cli/json.h"
#include "cli/verbs/cmd_join.h"
#include "cli/verbs/cmd_run.h"
#include "tests/chaos/chaos.h"

enum {
    WARM_UP_MS_MAX = 120 * 1000,
    ANSWER_MS_MAX = 60 * 1000, /* for the start of a daemon: a slow disk syncs its new store */
    STEP_MS = 10,
    SUPERVISOR_MS = 1000, /* until a daemon that ended by itself is restarted */
    SAMPLE_EVERY_MS = 1000,
    TELL_EVERY_MS = 10 * 1000,
    VOTERS_MAX = 7,   /* of the protocol */
    STEPS_MAX = 2000, /* of a round: its time ends it, unless a round is one step */
    WORDS = 60,
    TEXT_BYTES = 120 * 1000
};

static int fail(dp_control_error *error, int exit, const char *what, const char *why)
{
    dp_error_set(error, exit, "E0131", "", what, why);
    return exit;
}

/* ---- the run's manifest and text ---- */

/* A small language: sixty words, each followed by one of eight. A model of this size learns quickly
 * and for a long time. Always the same text. */
static bool write_text(const char *path)
{
    char words[WORDS][8];
    dp_rng rng;
    size_t written = 0;
    FILE *file = fopen(path, "we");
    dp_rng_init(&rng, 7);
    for (unsigned i = 0; i < WORDS; i++) {
        const unsigned size = 2 + (unsigned)dp_rng_below(&rng, 4);
        for (unsigned k = 0; k < size; k++) {
            words[i][k] = (char)('a' + dp_rng_below(&rng, 12));
        }
        words[i][size] = '\0';
    }
    for (unsigned word = 0; file != NULL && written < TEXT_BYTES;) {
        word = (word * 7 + 3 + (unsigned)dp_rng_below(&rng, 8)) % WORDS;
        const int size =
            fprintf(file, "%s%s", words[word], dp_rng_below(&rng, 9) == 0 ? ".\n" : " ");
        written += size > 0 ? (size_t)size : TEXT_BYTES;
    }
    return file != NULL && fclose(file) == 0;
}

static bool write_manifest(const char *path, const dp_chaos_options *options)
{
    FILE *file = fopen(path, "we");
    if (file == NULL) {
        return false;
    }
    const dp_run_mode *const mode = dp_run_mode_find(options->mode);
    const int steps_max = mode != NULL && mode->exchange == DP_EXCHANGE_GRADIENTS ? 1 : STEPS_MAX;
    fprintf(file,
            "name: chaos\n"
            "model: {layers: 1, width: 32, heads: 2, context: 32, vocab: 300}\n"
            "train: {batch: 2, lr: 3e-3, warmup_tokens: 20000, total_tokens: 100000000}\n"
            "round: {mode: %s, time: %llu.%03llu, steps_max: %d}\n"
            "gossip: {time: 0.5}\n"
            "vote: {uptime: 0}\n"
            "members: {trust: %s}\n",
            options->mode, (unsigned long long)options->round_ms / 1000,
            (unsigned long long)options->round_ms % 1000, steps_max,
            options->parts ? "members" : "open");
    return fclose(file) == 0;
}

static int open_input(const dp_chaos *self, dp_run_input *input, dp_control_error *error)
{
    char manifest[DP_CLI_PATH_MAX];
    char text[DP_CLI_PATH_MAX];
    snprintf(manifest, sizeof manifest, "%.300s/run.yaml", self->dir);
    snprintf(text, sizeof text, "%.300s/text.txt", self->dir);
    if (!write_manifest(manifest, self->options) || !write_text(text)) {
        return fail(error, DP_EXIT_CANTCREATE, "the run's files cannot be written", self->dir);
    }
    const dp_run_source source = {.path = manifest, .text = text};
    const int status = dp_run_input_open(&source, input, error);
    if (status == 0 && self->options->parts && input->file.manifest.reduce != DP_REDUCE_PARTS) {
        return fail(error, DP_EXIT_DATA, "this mode has no rounds of parts", self->options->mode);
    }
    return status;
}

/* ---- bringing in ---- */

/* Its short id, as in rounds and events; empty until the node is open. */
static int ask_id_once(dp_chaos *self, unsigned index, dp_client *client, dp_control_error *error)
{
    json_t *result = NULL;
    dp_packer packer = dp_client_begin(client, "peers");
    dp_pack_map(&packer, 0);
    const int status = dp_client_call(client, &packer, NULL, NULL, &result, error);
    const json_t *peers = json_object_get(result, "peers");
    for (size_t i = 0; i < json_array_size(peers); i++) {
        const json_t *peer = json_array_get(peers, i);
        if (dp_json_flag(peer, "self") == 1) {
            snprintf(self->book.lives[index].id, DP_CHAOS_ID_MAX, "%s",
                     dp_json_text(peer, "short", ""));
        }
    }
    json_decref(result);
    return status;
}

static int ask_id(dp_chaos *self, unsigned index, dp_client *client, dp_control_error *error)
{
    const uint64_t until = dp_chaos_now_ms() + ANSWER_MS_MAX;
    int status = 0;
    while (status == 0 && self->book.lives[index].id[0] == '\0') {
        status = ask_id_once(self, index, client, error);
        if (status == 0 && dp_chaos_now_ms() > until) {
            status = fail(error, DP_EXIT_TEMPORARY, "a node does not open its run", self->dir);
        }
        poll(NULL, 0, STEP_MS);
    }
    return status;
}

/* The bench reads no reports before all ids are known, since it records each round with the nodes
 * that it lists. */
static bool wait_for_socket(dp_chaos *self, unsigned index, dp_client *client,
                            dp_control_error *error)
{
    char path[DP_CLI_PATH_MAX];
    const uint64_t until = dp_chaos_now_ms() + ANSWER_MS_MAX;
    dp_chaos_node_path(self, index, "s", path);
    while (dp_client_open(client, path, error) != DP_OK) {
        dp_client_close(client);
        if (dp_chaos_ended(self, index)) {
            DP_IGNORE(fail(error, DP_EXIT_SOFTWARE, "a daemon ended at once", path));
            return false;
        }
        if (dp_chaos_now_ms() > until || dp_children_interrupted()) {
            return false;
        }
        poll(NULL, 0, STEP_MS);
    }
    return true;
}

/* The founder (index 0) creates the run, and token gets the invite; the others join by it. */
static int bring_in(dp_chaos *self, unsigned index, const dp_run_input *input, char **token,
                    dp_control_error *error)
{
    dp_client client;
    char name[16];
    json_t *result = NULL;
    snprintf(name, sizeof name, "node%u", index + 1);
    int status = 0;
    if (!wait_for_socket(self, index, &client, error)) {
        return error->exit;
    }
    if (index == 0) {
        status = dp_run_create(&client, input, name, NULL, NULL, &result, error);
        if (status == 0) {
            status = dp_invite_own(&client, token, error);
        }
        if (status == 0 && *token == NULL) {
            status = fail(error, DP_EXIT_SOFTWARE, "out of memory", "");
        }
    } else {
        status = dp_join(&client, *token, name, NULL, NULL, &result, error);
    }
    json_decref(result);
    if (status == 0) {
        status = ask_id(self, index, &client, error);
    }
    dp_client_close(&client);
    if (status == 0) {
        dp_chaos_book_back(&self->book, index, dp_chaos_now_ms());
    }
    return status;
}

/* Has the last round listed every node, and are all expected voters enrolled? */
static bool warm(const dp_chaos *self)
{
    const unsigned n = self->options->nodes;
    const unsigned voters = n >= VOTERS_MAX ? VOTERS_MAX : n - (n % 2 == 0 && n > 0);
    const uint32_t all = n == 32 ? UINT32_MAX : (1U << n) - 1;
    for (unsigned i = 0; i < n; i++) {
        if (self->nodes[i].voters < voters) {
            return false;
        }
    }
    return self->book.last_round > 0 && self->book.rounds[self->book.last_round].listed == all;
}

static int start_all(dp_chaos *self, dp_control_error *error)
{
    static dp_run_input input;
    char *token = NULL;
    int status = open_input(self, &input, error);
    for (unsigned i = 0; i < self->options->nodes && status == 0; i++) {
        status = dp_chaos_spawn(self, i, error);
    }
    for (unsigned i = 0; i < self->options->nodes && status == 0 && !dp_children_interrupted();
         i++) {
        status = bring_in(self, i, &input, &token, error);
    }
    free(token);
    dp_run_input_close(&input);
    const uint64_t until = dp_chaos_now_ms() + WARM_UP_MS_MAX;
    if (self->options->chatty) {
        fprintf(stderr, "%u nodes are in\n", self->options->nodes);
    }
    while (status == 0 && !dp_children_interrupted() && !warm(self)) {
        dp_chaos_listen(self, STEP_MS);
        if (dp_chaos_now_ms() > until) {
            status = fail(error, DP_EXIT_TEMPORARY,
                          "the nodes did not come to a round that lists all of them",
                          "two minutes have passed; is the machine busy?");
        }
    }
    return status;
}

/* ---- faults ---- */

static int restart_due(dp_chaos *self, uint64_t now_ms, dp_control_error *error)
{
    for (unsigned i = 0; i < self->options->nodes; i++) {
        dp_chaos_node *node = &self->nodes[i];
        if (dp_chaos_ended(self, i)) { /* It was not killed. */
            self->died++;
            dp_chaos_book_fault(&self->book, i, DP_CHAOS_KILL, now_ms);
            node->faulty = false;
            node->restart_ms = now_ms + SUPERVISOR_MS;
        }
        if (node->pid > 0 || node->restart_ms > now_ms) {
            continue;
        }
        const int status = dp_chaos_spawn(self, i, error);
        if (status != 0) {
            return status;
        }
        node->try_ms = 0;
        node->round = 0;
        dp_chaos_book_back(&self->book, i, now_ms);
    }
    return 0;
}

/* Prints the nodes that are not back yet, and the fault of each: "; node3 after cut". */
static void tell_waiting(const dp_chaos *self)
{
    for (unsigned i = 0; i < self->options->nodes; i++) {
        const dp_chaos_life *life = &self->book.lives[i];
        if (life->waits) {
            fprintf(stderr, "; node%u after %s", i + 1, dp_chaos_kind_name(life->fault));
        }
    }
}

static void tell(const dp_chaos *self, uint64_t since_ms)
{
    const dp_chaos_book *book = &self->book;
    uint64_t faults = 0;
    for (unsigned i = 0; i < DP_CHAOS_KINDS; i++) {
        faults += book->faults[i];
    }
    if (self->options->chatty) {
        fprintf(stderr, "%4llu s: round %llu, %llu faults, %llu back, %u waiting",
                (unsigned long long)since_ms / 1000, (unsigned long long)book->last_round,
                (unsigned long long)faults, (unsigned long long)book->rejoined,
                dp_chaos_book_waiting(book));
        tell_waiting(self);
        fprintf(stderr, "%s%s\n", book->first_wrong[0] != '\0' ? "; " : "", book->first_wrong);
    }
}

static int make_faults(dp_chaos *self, dp_control_error *error)
{
    const dp_chaos_options *options = self->options;
    const uint64_t begin_ms = dp_chaos_now_ms();
    uint64_t now_ms = begin_ms;
    uint64_t fault_ms = options->kill_every_ms > 0 ? begin_ms + options->kill_every_ms : UINT64_MAX;
    uint64_t sample_ms = begin_ms;
    uint64_t tell_ms = begin_ms + TELL_EVERY_MS;
    int status = 0;
    dp_chaos_book_begin(&self->book, begin_ms);
    while (status == 0 && !dp_children_interrupted() && now_ms < begin_ms + options->duration_ms &&
           self->book.last_round + 1 < DP_CHAOS_ROUNDS_MAX) {
        if (now_ms >= fault_ms) {
            dp_chaos_begin_fault(self, now_ms);
            fault_ms += options->kill_every_ms;
        }
        dp_chaos_end_faults(self, now_ms, false);
        status = restart_due(self, now_ms, error);
        if (now_ms >= sample_ms) {
            dp_chaos_sample(self, now_ms);
            sample_ms += SAMPLE_EVERY_MS;
        }
        if (now_ms >= tell_ms) {
            tell(self, now_ms - begin_ms);
            tell_ms += TELL_EVERY_MS;
        }
        dp_chaos_listen(self, STEP_MS);
        now_ms = dp_chaos_now_ms();
    }
    self->measured_ms = now_ms - begin_ms;
    return status;
}

/* ---- the end ---- */

/* The last round whose state all nodes have reported; 0: none. The book counts different states as
 * broken parity. */
static uint64_t last_agreed(const dp_chaos *self)
{
    const unsigned n = self->options->nodes;
    const uint32_t all = n == 32 ? UINT32_MAX : (1U << n) - 1;
    uint64_t r = self->book.last_round;
    while (r > 0 && self->book.rounds[r].rooted_by != all) {
        r--;
    }
    return r;
}

/* Rounds continue during this wait: every node must be counted again, and report the state after a
 * round that was decided after the faults. The chain is hash-linked, so a node with that state has
 * all rounds before it. */
static int let_rejoin(dp_chaos *self, dp_control_error *error)
{
    const uint64_t begin_ms = dp_chaos_now_ms();
    const uint64_t until = begin_ms + DP_CHAOS_REJOIN_MS_MAX;
    uint64_t tell_ms = begin_ms + TELL_EVERY_MS;
    const uint64_t wanted = self->book.last_round;
    int status = 0;
    self->book.measuring = false;
    dp_chaos_end_faults(self, dp_chaos_now_ms(), true);
    for (unsigned i = 0; i < self->options->nodes; i++) {
        dp_chaos_sample_end(self, i);
    }
    while (status == 0 && !dp_children_interrupted() && dp_chaos_now_ms() < until &&
           !self->agreed) {
        status = restart_due(self, dp_chaos_now_ms(), error);
        dp_chaos_listen(self, STEP_MS);
        if (dp_chaos_now_ms() >= tell_ms) {
            tell(self, self->measured_ms + dp_chaos_now_ms() - begin_ms);
            tell_ms += TELL_EVERY_MS;
        }
        self->agreed = dp_chaos_book_waiting(&self->book) == 0 && last_agreed(self) >= wanted;
    }
    tell(self, self->measured_ms + dp_chaos_now_ms() - begin_ms);
    self->not_rejoined = dp_chaos_book_waiting(&self->book);
    uint64_t head = self->book.last_round;
    for (unsigned i = 0; i < self->options->nodes && !self->agreed; i++) {
        head = i == 0 || self->nodes[i].round > head ? self->nodes[i].round : head;
    }
    dp_chaos_book_end(&self->book, head);
    if (status == 0 && !dp_children_interrupted()) {
        dp_chaos_audit(self);
    }
    return status;
}

int dp_chaos_run(dp_chaos *self, dp_control_error *error)
{
    int status = start_all(self, error);
    if (status == 0 && !dp_children_interrupted()) {
        status = make_faults(self, error);
    }
    if (status == 0 && !dp_children_interrupted()) {
        status = let_rejoin(self, error);
    }
    return status;
}
