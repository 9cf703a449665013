/* Reads the reports of all daemons: one connection each, which follows rounds and events, and
 * sometimes asks for the states of the last rounds. No call waits longer than its argument. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#include "cli/json.h"
#include "tests/chaos/chaos.h"

enum {
    CONNECT_EVERY_MS = 20,
    ASK_EVERY_MS = 700,
    READ_BYTES = 64 * 1024,
    HISTORY = 64,       /* rounds reported again after a start: each is compared */
    EVENTS_LAST = 1024, /* all events since the start */
    ASKED_ROUNDS =
        12 /* rounds whose states are asked for; more than a node commits between questions */
};

void dp_chaos_deaf(dp_chaos_node *node)
{
    if (node->client.fd >= 0) {
        dp_client_close(&node->client);
    }
}

static bool send_request(dp_chaos_node *node, const dp_packer *packer)
{
    dp_client *client = &node->client;
    return dp_control_end(&client->out, client->start, packer) == DP_OK &&
           send(client->fd, client->out.data, client->out.size, MSG_NOSIGNAL | MSG_DONTWAIT) ==
               (ssize_t)client->out.size;
}

static bool ask_list(dp_chaos_node *node, const char *method, uint64_t last, bool follow)
{
    dp_packer packer = dp_client_begin(&node->client, method);
    dp_pack_map(&packer, 2);
    dp_pack_text(&packer, "last");
    dp_pack_u64(&packer, last);
    dp_pack_text(&packer, "follow");
    dp_pack_bool(&packer, follow);
    return send_request(node, &packer);
}

static bool ask_status(dp_chaos_node *node)
{
    dp_packer packer = dp_client_begin(&node->client, "status");
    dp_pack_map(&packer, 0);
    return send_request(node, &packer);
}

static void connect_to(dp_chaos *self, unsigned index, uint64_t now_ms)
{
    dp_chaos_node *node = &self->nodes[index];
    dp_control_error error;
    char path[DP_CLI_PATH_MAX];
    node->try_ms = now_ms + CONNECT_EVERY_MS;
    dp_chaos_node_path(self, index, "s", path);
    if (dp_client_open(&node->client, path, &error) != DP_OK) {
        dp_client_close(&node->client);
        return;
    }
    node->ask_ms = now_ms + ASK_EVERY_MS;
    /* A daemon that has not loaded its run yet refuses the first, and the connection is opened
     * again. */
    if (!ask_list(node, "rounds", HISTORY, true) || !ask_list(node, "events", EVENTS_LAST, true)) {
        dp_chaos_deaf(node);
    }
}

static void take_status(dp_chaos_node *node, const json_t *result)
{
    const json_t *run = json_object_get(result, "run");
    if (run == NULL) {
        return;
    }
    node->round = (uint64_t)dp_json_int(run, "round", 0);
    node->voters = (unsigned)dp_json_int(run, "voters", 0);
    snprintf(node->owner, sizeof node->owner, "%s", dp_json_text(run, "ballot_owner", ""));
}

/* False if the connection must be opened again. */
static bool take_frame(dp_chaos *self, unsigned index, const dp_control_frame *frame)
{
    if (frame->kind == DP_CONTROL_REPLY && frame->error != NULL) {
        return false;
    }
    json_t *value = frame->body != NULL ? dp_json_of(frame->body) : NULL;
    const json_t *round = json_object_get(value, "round");
    const json_t *event = json_object_get(value, "event");
    if (json_is_object(round)) {
        dp_chaos_book_round(&self->book, index, dp_chaos_now_ms(), round);
    } else if (json_is_object(event)) {
        dp_chaos_book_event(&self->book, index, event);
    } else {
        take_status(&self->nodes[index], value);
    }
    json_decref(value);
    return true;
}

static bool take_bytes(dp_chaos *self, unsigned index)
{
    dp_client *client = &self->nodes[index].client;
    uint8_t *room = NULL;
    if (dp_buf_reserve(&client->in, READ_BYTES, &room) != DP_OK) {
        return false;
    }
    const ssize_t got = recv(client->fd, room, READ_BYTES, MSG_DONTWAIT);
    if (got <= 0) {
        return got < 0 && (errno == EAGAIN || errno == EINTR);
    }
    dp_buf_commit(&client->in, (size_t)got);
    for (;;) {
        size_t size = 0;
        dp_control_frame frame;
        if (dp_control_frame_size(dp_buf_view(&client->in), &size) != DP_OK) {
            return false;
        }
        if (size == 0) {
            return true;
        }
        if (dp_control_frame_open(&frame, dp_view_of(client->in.data, size)) != DP_OK) {
            return false;
        }
        const bool good = take_frame(self, index, &frame);
        dp_control_frame_close(&frame);
        dp_buf_consume(&client->in, size);
        if (!good) {
            return false;
        }
    }
}

static void keep_asking(dp_chaos *self, unsigned index, uint64_t now_ms)
{
    dp_chaos_node *node = &self->nodes[index];
    if (node->pid > 0 && node->client.fd < 0 && now_ms >= node->try_ms) {
        connect_to(self, index, now_ms);
    } else if (node->client.fd >= 0 && now_ms >= node->ask_ms) {
        node->ask_ms = now_ms + ASK_EVERY_MS;
        if (!ask_list(node, "rounds", ASKED_ROUNDS, false) || !ask_status(node)) {
            dp_chaos_deaf(node);
        }
    }
}

void dp_chaos_listen(dp_chaos *self, int wait_ms)
{
    struct pollfd polls[DP_CHAOS_NODES_MAX];
    unsigned who[DP_CHAOS_NODES_MAX];
    nfds_t count = 0;
    const uint64_t now_ms = dp_chaos_now_ms();
    for (unsigned i = 0; i < self->options->nodes; i++) {
        keep_asking(self, i, now_ms);
        if (self->nodes[i].client.fd >= 0) {
            polls[count] = (struct pollfd){.fd = self->nodes[i].client.fd, .events = POLLIN};
            who[count++] = i;
        }
    }
    if (poll(polls, count, wait_ms) <= 0) {
        return;
    }
    for (nfds_t i = 0; i < count; i++) {
        if (polls[i].revents != 0 && !take_bytes(self, who[i])) {
            dp_chaos_deaf(&self->nodes[who[i]]);
        }
    }
}
