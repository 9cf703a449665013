#include "tests/fault/proxy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/list.h"
#include "base/rng.h"

enum {
    FORWARDS_MAX = 256,
    LINKS_MAX = 4096,
    SEGMENT_MAX =
        1448, /* what one Ethernet frame carries for TCP: the unit that is lost or damaged */
    HELD_MAX = 256 * 1024, /* bytes in a direction; then its reading stops */
    BACKLOG = 64,
    CHECK_S = 2,
    PPM = 1000000
};

typedef enum segment_kind { SEGMENT_BYTES, SEGMENT_END, SEGMENT_RESET } segment_kind;

typedef struct segment {
    dp_list node;
    segment_kind kind;
    uint64_t due_us;
    uv_write_t write;
    size_t size;
    char bytes[]; /* SEGMENT_MAX of them are there */
} segment;

typedef struct joint joint;

/* One direction of a link: read from one side, hold, write to the other. */
typedef struct pipe_way {
    joint *owner;
    uv_tcp_t *from;
    uv_tcp_t *to;
    uv_timer_t timer;
    dp_list held;
    size_t held_bytes; /* with those handed to the system and not yet taken */
    uint64_t free_us;  /* when the rate lets the next byte go */
    uint64_t last_due_us;
    bool reading;
    bool ended; /* nothing more is read: the end was seen */
} pipe_way;

typedef struct forward {
    dp_fault_proxy *proxy;
    char name[DP_FAULT_NAME_MAX + 1];
    char target_text[DP_FAULT_ADDRESS_MAX + 1];
    struct sockaddr_in target;
    uv_tcp_t listener;
    dp_fault_rule rule[2];
    bool cut[2];
    /* By number of the forward whose target dials. */
    bool cut_from[FORWARDS_MAX][2];
    bool has_rule_from[FORWARDS_MAX];
    dp_fault_rule rule_from[FORWARDS_MAX][2];
    bool told_down; /* that the target does not answer, once per time that it is down */
} forward;

struct joint {
    dp_list node;
    forward *forward;
    unsigned from; /* number of the forward whose target dialled; FORWARDS_MAX: none */
    uv_tcp_t client;
    uv_tcp_t server;
    uv_connect_t connect;
    pipe_way way[2];
    unsigned open_handles;
    bool connecting;
    bool connected;
    bool half; /* the target's side is gone, the client's bytes are swallowed */
    bool closing;
};

struct dp_fault_proxy {
    uv_loop_t *loop;
    dp_rng rng;
    forward *forwards[FORWARDS_MAX];
    unsigned n_forwards;
    dp_list links;
    unsigned n_links;
    unsigned n_handles; /* of everything; the memory goes with the last */
    bool closing;
};

static uint64_t now_us(void)
{
    return uv_hrtime() / 1000;
}

static bool is_cut(const joint *self, unsigned direction)
{
    const forward *owner = self->forward;
    return owner->cut[direction] ||
           (self->from < FORWARDS_MAX && owner->cut_from[self->from][direction]);
}

static const dp_fault_rule *rule_of(const joint *self, unsigned direction)
{
    const forward *owner = self->forward;
    return self->from < FORWARDS_MAX && owner->has_rule_from[self->from]
               ? &owner->rule_from[self->from][direction]
               : &owner->rule[direction];
}

static bool chance(dp_fault_proxy *proxy, uint64_t ppm)
{
    return ppm > 0 && dp_rng_below(&proxy->rng, PPM) < ppm;
}

/* ---- the end of a link ---- */

static void free_when_done(dp_fault_proxy *proxy)
{
    if (!proxy->closing || proxy->n_handles > 0) {
        return;
    }
    for (unsigned i = 0; i < proxy->n_forwards; i++) {
        free(proxy->forwards[i]);
    }
    free(proxy);
}

static void drop_held(pipe_way *way)
{
    while (!dp_list_empty(&way->held)) {
        segment *first = DP_LIST_ITEM(way->held.next, segment, node);
        dp_list_remove(&first->node);
        free(first);
    }
    way->held_bytes = 0;
}

static void one_handle_less(joint *self)
{
    dp_fault_proxy *proxy = self->forward->proxy;
    proxy->n_handles--;
    if (--self->open_handles == 0) {
        drop_held(&self->way[0]);
        drop_held(&self->way[1]);
        dp_list_remove(&self->node);
        proxy->n_links--;
        free(self);
    }
    free_when_done(proxy);
}

static void on_stream_closed(uv_handle_t *handle)
{
    one_handle_less(handle->data);
}

static void on_timer_closed(uv_handle_t *handle)
{
    const pipe_way *way = handle->data;
    one_handle_less(way->owner);
}

static void close_stream(uv_tcp_t *stream, bool reset)
{
    if (uv_is_closing((uv_handle_t *)stream)) {
        return;
    }
    if (!reset || uv_tcp_close_reset(stream, on_stream_closed) != 0) {
        uv_close((uv_handle_t *)stream, on_stream_closed);
    }
}

static void close_link(joint *self, bool reset)
{
    if (self->closing) {
        return;
    }
    self->closing = true;
    close_stream(&self->client, reset);
    close_stream(&self->server, reset);
    uv_close((uv_handle_t *)&self->way[0].timer, on_timer_closed);
    uv_close((uv_handle_t *)&self->way[1].timer, on_timer_closed);
}

/* ---- bytes ---- */

static void pump(pipe_way *way);

static dp_fault_direction direction_of(const pipe_way *way)
{
    return way == &way->owner->way[DP_FAULT_UP] ? DP_FAULT_UP : DP_FAULT_DOWN;
}

static void on_timer(uv_timer_t *timer)
{
    pump(timer->data);
}

static void give_segment(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    (void)handle;
    (void)suggested;
    segment *room = malloc(sizeof *room + SEGMENT_MAX);
    *buffer = room != NULL ? uv_buf_init(room->bytes, SEGMENT_MAX) : uv_buf_init(NULL, 0);
}

/* When a segment of this size, read now, comes out at the other end. */
static uint64_t due(pipe_way *way, size_t size)
{
    dp_fault_proxy *proxy = way->owner->forward->proxy;
    const dp_fault_rule *rule = rule_of(way->owner, direction_of(way));
    const uint64_t now = now_us();
    uint64_t leaves = way->free_us > now ? way->free_us : now;
    leaves += rule->rate > 0 ? size * 1000000 / rule->rate : 0;
    way->free_us = leaves;
    uint64_t arrives = leaves + rule->delay_ms * 1000;
    arrives += rule->jitter_ms > 0 ? dp_rng_below(&proxy->rng, rule->jitter_ms * 1000 + 1) : 0;
    arrives += size > 0 && chance(proxy, rule->loss_ppm) ? rule->stall_ms * 1000 : 0;
    way->last_due_us = arrives > way->last_due_us ? arrives : way->last_due_us;
    return way->last_due_us;
}

static void hold(pipe_way *way, segment *what, segment_kind kind, size_t size)
{
    dp_fault_proxy *proxy = way->owner->forward->proxy;
    const dp_fault_rule *rule = rule_of(way->owner, direction_of(way));
    what->kind = kind;
    what->size = size;
    what->due_us = due(way, size);
    if (size > 0 && chance(proxy, rule->corrupt_ppm)) {
        const uint64_t bit = dp_rng_below(&proxy->rng, 8 * size);
        what->bytes[bit / 8] = (char)(what->bytes[bit / 8] ^ (1 << bit % 8));
    }
    dp_list_push_back(&way->held, &what->node);
    way->held_bytes += size;
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buffer)
{
    joint *self = stream->data;
    pipe_way *way =
        &self->way[stream == (uv_stream_t *)&self->client ? DP_FAULT_UP : DP_FAULT_DOWN];
    segment *what = buffer->base != NULL ? DP_LIST_ITEM(buffer->base, segment, bytes) : NULL;
    if (self->half || got == 0 || (what == NULL && got >= 0)) {
        free(what);
        if (self->half && got < 0) {
            close_link(self, false);
        }
        return;
    }
    if (got < 0 && what == NULL) {
        what = malloc(sizeof *what + SEGMENT_MAX);
    }
    if (what == NULL) {
        close_link(self, true);
        return;
    }
    if (got < 0) {
        way->ended = true;
        uv_read_stop(stream);
        way->reading = false;
        hold(way, what, got == UV_EOF ? SEGMENT_END : SEGMENT_RESET, 0);
    } else {
        hold(way, what, SEGMENT_BYTES, (size_t)got);
    }
    pump(way);
}

static void set_reading(pipe_way *way)
{
    const joint *self = way->owner;
    const bool wanted = !way->ended && !self->closing && self->connected &&
                        (way->held_bytes < HELD_MAX || self->half) &&
                        !uv_is_closing((uv_handle_t *)way->from);
    if (wanted && !way->reading) {
        way->reading = uv_read_start((uv_stream_t *)way->from, give_segment, on_read) == 0;
    } else if (!wanted && way->reading) {
        uv_read_stop((uv_stream_t *)way->from);
        way->reading = false;
    }
}

static void on_written(uv_write_t *write, int status)
{
    segment *what = DP_LIST_ITEM(write, segment, write);
    pipe_way *way = write->data;
    joint *self = way->owner;
    way->held_bytes -= what->size <= way->held_bytes ? what->size : way->held_bytes;
    free(what);
    if (self->closing || self->half) {
        return;
    }
    if (status != 0) {
        close_link(self, true);
        return;
    }
    set_reading(way);
}

static void on_shut(uv_shutdown_t *request, int status)
{
    joint *self = request->data;
    free(request);
    const pipe_way *up = &self->way[0];
    const pipe_way *down = &self->way[1];
    if (status != 0 ||
        (up->ended && down->ended && dp_list_empty(&up->held) && dp_list_empty(&down->held))) {
        close_link(self, false);
    }
}

/* One segment goes out, or the end it stands for. */
static void deliver(pipe_way *way, segment *what)
{
    joint *self = way->owner;
    if (what->kind == SEGMENT_BYTES) {
        const uv_buf_t buffer = uv_buf_init(what->bytes, (unsigned)what->size);
        what->write.data = way;
        if (uv_write(&what->write, (uv_stream_t *)way->to, &buffer, 1, on_written) != 0) {
            free(what);
            close_link(self, true);
        }
        return;
    }
    const segment_kind kind = what->kind;
    free(what);
    uv_shutdown_t *request = kind == SEGMENT_END ? malloc(sizeof *request) : NULL;
    if (request == NULL) {
        close_link(self, true);
        return;
    }
    request->data = self;
    if (uv_shutdown(request, (uv_stream_t *)way->to, on_shut) != 0) {
        free(request);
        close_link(self, true);
    }
}

/* All that is due goes out; the timer waits for the rest. */
static void pump(pipe_way *way)
{
    joint *self = way->owner;
    while (!self->closing && !self->half && self->connected && !dp_list_empty(&way->held) &&
           !is_cut(self, direction_of(way))) {
        segment *first = DP_LIST_ITEM(way->held.next, segment, node);
        const uint64_t now = now_us();
        if (first->due_us > now) {
            uv_timer_start(&way->timer, on_timer, (first->due_us - now + 999) / 1000, 0);
            break;
        }
        dp_list_remove(&first->node);
        deliver(way, first);
    }
    if (!self->closing) {
        set_reading(way);
    }
}

/* ---- connections ---- */

static void on_connected(uv_connect_t *request, int status)
{
    joint *self = request->data;
    forward *owner = self->forward;
    self->connecting = false;
    if (self->closing || self->half) {
        return;
    }
    if (status != 0) {
        if (!owner->told_down) {
            fprintf(stderr, "dpfault: forward %s: the target %s is not up: %s\n", owner->name,
                    owner->target_text, uv_strerror(status));
        }
        owner->told_down = true;
        close_link(self, true);
        return;
    }
    owner->told_down = false;
    self->connected = true;
    uv_tcp_nodelay(&self->server, 1);
    pump(&self->way[0]);
    pump(&self->way[1]);
}

/* A SYN that is cut gets no answer, so the target is dialled when nothing is cut. */
static void dial(joint *self)
{
    const forward *owner = self->forward;
    if (self->connecting || self->connected || self->closing || is_cut(self, 0) ||
        is_cut(self, 1)) {
        return;
    }
    self->connect.data = self;
    const int status = uv_tcp_connect(&self->connect, &self->server,
                                      (const struct sockaddr *)&owner->target, on_connected);
    if (status != 0) {
        close_link(self, true);
        return;
    }
    self->connecting = true;
}

static void open_way(joint *self, dp_fault_direction direction, uv_tcp_t *from, uv_tcp_t *to)
{
    pipe_way *way = &self->way[direction];
    way->owner = self;
    way->from = from;
    way->to = to;
    dp_list_init(&way->held);
    uv_timer_init(self->forward->proxy->loop, &way->timer);
    way->timer.data = way;
}

/* Which of the programs behind the forwards has dialled, by its address. */
static unsigned number_of_dialler(const dp_fault_proxy *proxy, const uv_tcp_t *client)
{
    struct sockaddr_storage peer = {0};
    struct sockaddr_in address;
    int size = sizeof peer;
    unsigned number = 0;
    if (uv_tcp_getpeername(client, (struct sockaddr *)&peer, &size) != 0) {
        return FORWARDS_MAX;
    }
    memcpy(&address, &peer, sizeof address);
    while (number < proxy->n_forwards &&
           proxy->forwards[number]->target.sin_addr.s_addr != address.sin_addr.s_addr) {
        number++;
    }
    return number < proxy->n_forwards ? number : FORWARDS_MAX;
}

static void on_incoming(uv_stream_t *listener, int status)
{
    forward *owner = listener->data;
    dp_fault_proxy *proxy = owner->proxy;
    joint *self = status == 0 && proxy->n_links < LINKS_MAX ? calloc(1, sizeof *self) : NULL;
    if (self == NULL) {
        return; /* The backlog fills, and those who dial wait. */
    }
    self->forward = owner;
    self->from = FORWARDS_MAX;
    uv_tcp_init(proxy->loop, &self->client);
    uv_tcp_init(proxy->loop, &self->server);
    open_way(self, DP_FAULT_UP, &self->client, &self->server);
    open_way(self, DP_FAULT_DOWN, &self->server, &self->client);
    self->client.data = self;
    self->server.data = self;
    self->open_handles = 4;
    proxy->n_handles += 4;
    proxy->n_links++;
    dp_list_push_back(&proxy->links, &self->node);
    if (uv_accept(listener, (uv_stream_t *)&self->client) != 0) {
        close_link(self, false);
        return;
    }
    uv_tcp_nodelay(&self->client, 1);
    self->from = number_of_dialler(proxy, &self->client);
    dial(self);
}

/* ---- commands ---- */

/* Number of the forward of that name; FORWARDS_MAX if there is none. */
static unsigned find(const dp_fault_proxy *proxy, const char *name)
{
    for (unsigned i = 0; i < proxy->n_forwards; i++) {
        if (strcmp(proxy->forwards[i]->name, name) == 0) {
            return i;
        }
    }
    return FORWARDS_MAX;
}

static void address_of(const char *text, struct sockaddr_in *address)
{
    char host[DP_FAULT_ADDRESS_MAX + 1];
    const char *colon = strrchr(text, ':');
    snprintf(host, sizeof host, "%.*s", (int)(colon - text), text);
    uv_ip4_addr(host, (int)strtol(colon + 1, NULL, 10), address); /* The parser has checked it. */
}

static void on_listener_closed(uv_handle_t *handle)
{
    forward *owner = handle->data;
    owner->proxy->n_handles--;
    free_when_done(owner->proxy);
}

static dp_status add_forward(dp_fault_proxy *proxy, const dp_fault_command *command, dp_why *why)
{
    struct sockaddr_in address;
    if (find(proxy, command->name) < FORWARDS_MAX) {
        return dp_why_set(why, DP_EXISTS, "there is a forward %s already", command->name);
    }
    forward *self = proxy->n_forwards < FORWARDS_MAX ? calloc(1, sizeof *self) : NULL;
    if (self == NULL) {
        return dp_why_set(why, DP_TOOBIG, "there are %u forwards already", proxy->n_forwards);
    }
    proxy->forwards[proxy->n_forwards++] = self;
    self->proxy = proxy;
    self->rule[0] = self->rule[1] = dp_fault_rule_standard;
    memcpy(self->name, command->name, sizeof self->name);
    memcpy(self->target_text, command->target, sizeof self->target_text);
    address_of(command->target, &self->target);
    address_of(command->listen, &address);
    uv_tcp_init(proxy->loop, &self->listener);
    self->listener.data = self;
    proxy->n_handles++;
    int status = uv_tcp_bind(&self->listener, (const struct sockaddr *)&address, 0);
    if (status == 0) {
        status = uv_listen((uv_stream_t *)&self->listener, BACKLOG, on_incoming);
    }
    return status == 0 ? DP_OK
                       : dp_why_set(why, DP_BUSY, "forward %s cannot listen at %s: %s",
                                    command->name, command->listen, uv_strerror(status));
}

static dp_status check_target(const forward *self, dp_why *why)
{
    const struct timeval patience = {.tv_sec = CHECK_S};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool up = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0;
    up = up && connect(fd, (const struct sockaddr *)&self->target, sizeof self->target) == 0;
    const int cause = errno;
    if (fd >= 0) {
        close(fd);
    }
    return up ? DP_OK
              : dp_why_set(why, DP_CLOSED, "forward %s: the target %s is not up: %s", self->name,
                           self->target_text, strerror(cause));
}

/* The target's side ends; the client's stays, and its bytes go nowhere. */
static void half_open(joint *self)
{
    if (self->closing || self->half) {
        return;
    }
    self->half = true;
    drop_held(&self->way[0]);
    drop_held(&self->way[1]);
    self->way[DP_FAULT_DOWN].reading = false;
    close_stream(&self->server, true);
    self->connected = true;
    set_reading(&self->way[DP_FAULT_UP]);
}

static void act_on_link(joint *self, const dp_fault_command *command)
{
    if (command->verb == DP_FAULT_RESET) {
        close_link(self, true);
    } else if (command->verb == DP_FAULT_HALFOPEN) {
        half_open(self);
    } else if (command->verb == DP_FAULT_HEAL) {
        dial(self);
        pump(&self->way[0]);
        pump(&self->way[1]);
    }
}

/* Cuts of one dialler's connections, or of all. A general heal undoes both kinds. */
static void cut_or_heal(forward *self, const dp_fault_command *command, unsigned from)
{
    const bool cut = command->verb == DP_FAULT_CUT;
    for (unsigned d = 0; d < 2; d++) {
        bool *now = from < FORWARDS_MAX ? &self->cut_from[from][d] : &self->cut[d];
        *now = cut && (*now || command->direction[d]);
    }
    if (!cut && from == FORWARDS_MAX) {
        memset(self->cut_from, 0, sizeof self->cut_from);
    }
}

static void set_rules(forward *self, const dp_fault_command *command, unsigned from)
{
    dp_fault_rule *rules = from < FORWARDS_MAX ? self->rule_from[from] : self->rule;
    if (from < FORWARDS_MAX && !self->has_rule_from[from]) {
        memcpy(rules, self->rule, sizeof self->rule);
        self->has_rule_from[from] = true;
    }
    for (unsigned d = 0; d < 2; d++) {
        if (command->direction[d]) {
            dp_fault_rule_apply(command, &rules[d]);
        }
    }
}

static dp_status act(forward *self, const dp_fault_command *command, unsigned from, dp_why *why)
{
    if (command->verb == DP_FAULT_SET) {
        set_rules(self, command, from);
    }
    if (command->verb == DP_FAULT_CUT || command->verb == DP_FAULT_HEAL) {
        cut_or_heal(self, command, from);
    }
    if (command->verb == DP_FAULT_CHECK) {
        return check_target(self, why);
    }
    dp_list *node = self->proxy->links.next;
    while (node != &self->proxy->links) {
        dp_list *after = node->next;
        joint *each = DP_LIST_ITEM(node, joint, node);
        if (each->forward == self && (from == FORWARDS_MAX || each->from == from)) {
            act_on_link(each, command);
        }
        node = after;
    }
    return DP_OK;
}

dp_status dp_fault_do(dp_fault_proxy *proxy, const dp_fault_command *command, dp_why *why)
{
    if (command->verb == DP_FAULT_FORWARD) {
        return add_forward(proxy, command, why);
    }
    const bool all = strcmp(command->name, "*") == 0;
    const char *const names[] = {all ? "" : command->name, command->from};
    for (size_t i = 0; i < 2; i++) {
        if (names[i][0] != '\0' && find(proxy, names[i]) == FORWARDS_MAX) {
            return dp_why_set(why, DP_NOTFOUND, "there is no forward %s", names[i]);
        }
    }
    const unsigned from = command->from[0] != '\0' ? find(proxy, command->from) : FORWARDS_MAX;
    for (unsigned i = 0; i < proxy->n_forwards; i++) {
        if (all || strcmp(proxy->forwards[i]->name, command->name) == 0) {
            DP_TRY(act(proxy->forwards[i], command, from, why));
        }
    }
    return DP_OK;
}

dp_status dp_fault_open(dp_fault_proxy **proxy, uv_loop_t *loop, uint64_t seed)
{
    dp_fault_proxy *self = calloc(1, sizeof *self);
    if (self == NULL) {
        return DP_NOMEM;
    }
    self->loop = loop;
    dp_rng_init(&self->rng, seed);
    dp_list_init(&self->links);
    *proxy = self;
    return DP_OK;
}

void dp_fault_close(dp_fault_proxy *proxy)
{
    proxy->closing = true;
    for (unsigned i = 0; i < proxy->n_forwards; i++) {
        uv_close((uv_handle_t *)&proxy->forwards[i]->listener, on_listener_closed);
    }
    for (dp_list *node = proxy->links.next; node != &proxy->links; node = node->next) {
        close_link(DP_LIST_ITEM(node, joint, node), true);
    }
    free_when_done(proxy);
}
