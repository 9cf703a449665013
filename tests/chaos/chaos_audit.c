/* The end of a chaos run: each daemon audits its chain from the first record, and the result is
 * compared with the book of the reports of all nodes during the run. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/json.h"
#include "tests/chaos/chaos.h"

enum { BEHIND_MS = 200, BEHIND_MAX = 50 };

static void find(dp_chaos *self, unsigned node, const char *what)
{
    if (self->findings++ == 0) {
        snprintf(self->finding, sizeof self->finding, "node%u: %.140s", node + 1, what);
    }
}

/* Reported rounds that list this node. */
static uint64_t told_of(const dp_chaos_book *book, unsigned node)
{
    uint64_t count = 0;
    for (uint64_t r = 1; r <= book->last_round; r++) {
        count += book->rounds[r].listed >> node & 1;
    }
    return count;
}

/* Checks for contributions that were reported but are in no record of the chain, or the reverse.
 * Rounds continued during the query. */
static void compare_counts(dp_chaos *self, unsigned node, const json_t *audit)
{
    const dp_chaos_book *book = &self->book;
    const uint64_t rounds = (uint64_t)dp_json_int(audit, "rounds", 0);
    const uint64_t since = rounds > book->last_round ? rounds - book->last_round : 0;
    const json_t *members = json_object_get(audit, "members");
    char text[120];
    if (rounds < book->last_round) {
        snprintf(text, sizeof text, "its chain has %llu rounds, and %llu were told",
                 (unsigned long long)rounds, (unsigned long long)book->last_round);
        find(self, node, text);
        return;
    }
    for (size_t i = 0; i < json_array_size(members); i++) {
        const json_t *member = json_array_get(members, i);
        const char *id = dp_json_text(member, "short", "");
        const uint64_t counted = (uint64_t)dp_json_int(member, "counted", 0);
        for (unsigned k = 0; k < book->n_nodes; k++) {
            const uint64_t told = told_of(book, k);
            if (strcmp(book->lives[k].id, id) == 0 && (counted < told || counted > told + since)) {
                snprintf(text, sizeof text,
                         "its chain counts node%u in %llu rounds, and %llu were told", k + 1,
                         (unsigned long long)counted, (unsigned long long)told);
                find(self, node, text);
            }
        }
    }
}

/* NULL with an error. */
static json_t *ask(const dp_chaos *self, unsigned node, dp_control_error *error)
{
    char path[DP_CLI_PATH_MAX];
    dp_client client;
    json_t *audit = NULL;
    dp_chaos_node_path(self, node, "s", path);
    if (dp_client_open(&client, path, error) == DP_OK) {
        dp_packer packer = dp_client_begin(&client, "audit");
        dp_pack_map(&packer, 0);
        error->exit = dp_client_call(&client, &packer, NULL, NULL, &audit, error);
    }
    dp_client_close(&client);
    return audit;
}

static void audit_one(dp_chaos *self, unsigned node)
{
    const struct timespec pause = {.tv_nsec = BEHIND_MS * 1000000L};
    dp_control_error error = {.exit = 0};
    json_t *audit = ask(self, node, &error);
    /* Another node may have reported a round that this one will get soon. */
    for (unsigned i = 0; i < BEHIND_MAX && audit != NULL &&
                         (uint64_t)dp_json_int(audit, "rounds", 0) < self->book.last_round;
         i++) {
        json_decref(audit);
        nanosleep(&pause, NULL);
        audit = ask(self, node, &error);
    }
    if (audit == NULL) {
        find(self, node, error.what[0] != '\0' ? error.what : "its chain cannot be judged");
        return;
    }
    self->audited++;
    if (dp_json_int(audit, "n_findings", -1) != 0) {
        const json_t *first = json_array_get(json_object_get(audit, "findings"), 0);
        find(self, node, dp_json_text(first, "text", "its chain does not hold"));
    }
    if (dp_json_int(audit, "twice", -1) != 0) {
        find(self, node, "samples were counted twice");
    }
    compare_counts(self, node, audit);
    json_decref(audit);
}

void dp_chaos_audit(dp_chaos *self)
{
    for (unsigned i = 0; i < self->options->nodes; i++) {
        if (self->nodes[i].pid > 0) {
            audit_one(self, i);
        } else {
            find(self, i, "it does not run");
        }
    }
}
