/* dpfault: a TCP proxy that makes links bad on purpose, between real programs. Commands come from a
 * script or from standard input, see script.h; what happens by chance comes from a seed. Ends with
 * 0 at quit, at SIGTERM, and when standard input is over and nothing waits any more; 64 usage, 65 a
 * command that does not parse or names no forward, 66 no script, 69 a target that is not up, 73 an
 * address that is taken. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fault/proxy.h"

enum { COMMANDS_MAX = 4096, READ_BYTES = 4096 };

typedef struct player {
    uv_loop_t loop;
    uv_timer_t timer;
    uv_poll_t input;
    uv_signal_t signals[2];
    bool polls;
    bool input_over; /* it ends when all that waits is done */
    dp_fault_proxy *proxy;
    const char *source; /* of the lines, for errors */
    uint64_t begin_ms;
    dp_fault_command commands[COMMANDS_MAX]; /* a ring; those not done yet */
    unsigned first;
    unsigned count;
    uint64_t last_at_ms; /* of the last command read */
    unsigned n_lines;
    char line[READ_BYTES]; /* of standard input, not whole yet */
    size_t line_size;
    bool over;
    int status;
} player;

static void end(player *self, int status)
{
    if (self->over) {
        return;
    }
    self->over = true;
    self->status = status;
    dp_fault_close(self->proxy);
    uv_close((uv_handle_t *)&self->timer, NULL);
    uv_close((uv_handle_t *)&self->signals[0], NULL);
    uv_close((uv_handle_t *)&self->signals[1], NULL);
    if (self->polls) {
        uv_close((uv_handle_t *)&self->input, NULL);
    }
}

static int exit_of(dp_status status)
{
    if (status == DP_CLOSED) {
        return 69;
    }
    return status == DP_BUSY ? 73 : status == DP_TOOBIG ? 70 : 65;
}

static void on_timer(uv_timer_t *timer);

/* Does the commands that are due, in order; the timer waits for the next. */
static void play(player *self)
{
    while (self->count > 0 && !self->over) {
        const dp_fault_command *next = &self->commands[self->first];
        const uint64_t now = uv_hrtime() / 1000000 - self->begin_ms;
        dp_why why = {.text = ""};
        if (next->at_ms > now) {
            uv_timer_start(&self->timer, on_timer, next->at_ms - now, 0);
            return;
        }
        self->first = (self->first + 1) % COMMANDS_MAX;
        self->count--;
        if (next->verb == DP_FAULT_QUIT) {
            end(self, 0);
        } else if (next->verb == DP_FAULT_SAY) {
            printf("%s\n", next->name);
            fflush(stdout);
        } else {
            const dp_status status = dp_fault_do(self->proxy, next, &why);
            if (status != DP_OK) {
                fprintf(stderr, "dpfault: %s\n", why.text);
                end(self, exit_of(status));
            }
        }
    }
    if (self->input_over) {
        end(self, 0);
    }
}

static void on_timer(uv_timer_t *timer)
{
    play(timer->data);
}

/* One line into the queue. False, with the sentence said, when it does not parse. */
static bool take_line(player *self, const char *line)
{
    dp_fault_command command;
    dp_why why = {.text = ""};
    self->n_lines++;
    if (dp_fault_parse(line, self->n_lines, &command, &why) != DP_OK) {
        fprintf(stderr, "dpfault: %s, %s\n", self->source, why.text);
        return false;
    }
    if (command.verb == DP_FAULT_NOTHING) {
        return true;
    }
    if (self->count == COMMANDS_MAX) {
        fprintf(stderr, "dpfault: %s, line %u: more than %d commands wait\n", self->source,
                self->n_lines, COMMANDS_MAX);
        return false;
    }
    if (command.has_time && command.at_ms < self->last_at_ms) {
        fprintf(stderr, "dpfault: %s, line %u: its time is before that of the line above\n",
                self->source, self->n_lines);
        return false;
    }
    command.at_ms = command.has_time ? command.at_ms : self->last_at_ms;
    self->last_at_ms = command.at_ms;
    self->commands[(self->first + self->count) % COMMANDS_MAX] = command;
    self->count++;
    return true;
}

static bool take_bytes(player *self, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] == '\n') {
            self->line[self->line_size] = '\0';
            self->line_size = 0;
            if (!take_line(self, self->line)) {
                return false;
            }
        } else if (self->line_size + 1 < sizeof self->line) {
            self->line[self->line_size++] = bytes[i] != '\0' ? bytes[i] : '?';
        }
    }
    return true;
}

static bool take_last_line(player *self)
{
    return self->line_size == 0 || take_bytes(self, "\n", 1);
}

static void on_input(uv_poll_t *poll, int status, int events)
{
    player *self = poll->data;
    char bytes[READ_BYTES];
    (void)events;
    const ssize_t got = status == 0 ? read(STDIN_FILENO, bytes, sizeof bytes) : -1;
    if (got < 0 && (errno == EAGAIN || errno == EINTR) && status == 0) {
        return;
    }
    if (got <= 0) {
        uv_poll_stop(poll);
        self->input_over = true;
        if (take_last_line(self)) {
            play(self);
        } else {
            end(self, 65);
        }
    } else if (!take_bytes(self, bytes, (size_t)got)) {
        end(self, 65);
    } else {
        play(self);
    }
}

static void on_signal(uv_signal_t *signal, int number)
{
    (void)number;
    end(signal->data, 0);
}

/* All of a script is read before anything begins, so that a mistake in its last line is told at
 * once. */
static int read_script(player *self, const char *path)
{
    char bytes[READ_BYTES];
    FILE *file = fopen(path, "r");
    bool good = true;
    size_t got = 0;
    if (file == NULL) {
        fprintf(stderr, "dpfault: %s: %s\n", path, strerror(errno));
        return 66;
    }
    while (good && (got = fread(bytes, 1, sizeof bytes, file)) > 0) {
        good = take_bytes(self, bytes, got);
    }
    if (ferror(file) != 0) { /* A folder, for one; half a script is none. */
        fprintf(stderr, "dpfault: %s: cannot be read: %s\n", path, strerror(errno));
        fclose(file);
        return 66;
    }
    fclose(file);
    return good && take_last_line(self) ? 0 : 65;
}

static const char usage[] =
    "usage: dpfault [--seed N] [--script FILE]   # commands, also from standard input: "
    "tests/fault/script.h\n";

static int refuse(const char *what, const char *word)
{
    fprintf(stderr, "dpfault: %.100s%s\n%s", word, what, usage);
    return 64;
}

static void watch(player *self, bool standard_input)
{
    static const int numbers[] = {SIGINT, SIGTERM};
    for (int i = 0; i < 2; i++) {
        uv_signal_init(&self->loop, &self->signals[i]);
        self->signals[i].data = self;
        uv_signal_start(&self->signals[i], on_signal, numbers[i]);
    }
    uv_timer_init(&self->loop, &self->timer);
    self->timer.data = self;
    if (standard_input) {
        self->polls = uv_poll_init(&self->loop, &self->input, STDIN_FILENO) == 0;
    }
    if (self->polls) {
        self->input.data = self;
        uv_poll_start(&self->input, UV_READABLE, on_input);
    }
}

int main(int argc, char **argv)
{
    static player self = {.source = "standard input"};
    const char *script = NULL;
    uint64_t seed = 1;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        char *rest = NULL;
        if (strcmp(argv[i], "--help") == 0) {
            fputs(usage, stdout);
            return 0;
        }
        if (strcmp(argv[i], "--script") == 0) {
            script = value;
            if (value[0] == '\0') {
                return refuse(" needs the name of a file", argv[i]);
            }
        } else if (strcmp(argv[i], "--seed") == 0) {
            errno = 0;
            seed = strtoull(value, &rest, 10);
            if (value[0] < '0' || value[0] > '9' || *rest != '\0' || errno != 0) {
                return refuse(" needs a number from 0 to 2^64 - 1", argv[i]);
            }
        } else {
            return refuse(": there is no such option", argv[i][0] != '\0' ? argv[i] : "\"\"");
        }
        i++;
    }
    signal(SIGPIPE, SIG_IGN);
    if (uv_guess_handle(STDIN_FILENO) == UV_FILE && script == NULL) {
        script = "/dev/stdin"; /* A plain file cannot be waited for. */
    }
    self.source = script != NULL ? script : self.source;
    const int status = script != NULL ? read_script(&self, script) : 0;
    if (status != 0) {
        return status;
    }
    self.begin_ms = uv_hrtime() / 1000000;
    if (uv_loop_init(&self.loop) != 0 || dp_fault_open(&self.proxy, &self.loop, seed) != DP_OK) {
        return 70;
    }
    watch(&self, script == NULL);
    play(&self);
    uv_run(&self.loop, UV_RUN_DEFAULT);
    uv_loop_close(&self.loop);
    return self.status;
}
