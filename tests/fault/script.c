#include "tests/fault/script.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const dp_fault_rule dp_fault_rule_standard = {.stall_ms = 200}; /* least RTO of Linux */

typedef enum value_kind { VALUE_TIME, VALUE_RATE, VALUE_PERCENT } value_kind;

static const struct key {
    const char *name;
    value_kind kind;
    size_t offset;
} keys[] = {{"delay", VALUE_TIME, offsetof(dp_fault_rule, delay_ms)},
            {"jitter", VALUE_TIME, offsetof(dp_fault_rule, jitter_ms)},
            {"stall", VALUE_TIME, offsetof(dp_fault_rule, stall_ms)},
            {"rate", VALUE_RATE, offsetof(dp_fault_rule, rate)},
            {"loss", VALUE_PERCENT, offsetof(dp_fault_rule, loss_ppm)},
            {"corrupt", VALUE_PERCENT, offsetof(dp_fault_rule, corrupt_ppm)}};

enum { KEYS = sizeof keys / sizeof keys[0] };

typedef struct scanner {
    const char *line;
    const char *at;
    unsigned number;
    char word[DP_FAULT_LINE_MAX + 1];
    unsigned column; /* of word, from 1 */
    dp_why *why;
} scanner;

static dp_status bad(const scanner *self, const char *what)
{
    return dp_why_set(self->why, DP_BADMSG, "line %u, column %u: %s%s%.60s%s", self->number,
                      self->column, what, self->word[0] != '\0' ? ": \"" : "", self->word,
                      self->word[0] != '\0' ? "\"" : "");
}

/* The next word up to a blank, or to a comma where that separates; empty at the end of the line. */
static bool next(scanner *self, const char *separators)
{
    self->at += strspn(self->at, separators);
    self->column = (unsigned)(self->at - self->line) + 1;
    size_t size = self->at[0] == '#' ? 0 : strcspn(self->at, separators);
    memcpy(self->word, self->at, size);
    self->word[size] = '\0';
    self->at += size;
    return size > 0;
}

static bool next_word(scanner *self)
{
    return next(self, " \t\r");
}

/* Digits with an optional fraction, in units of 1/scale; *end behind them. */
static bool read_fixed(const char *text, uint64_t scale, uint64_t *value, const char **end)
{
    uint64_t whole = 0;
    uint64_t part = 0;
    const char *at = text;
    if (!isdigit((unsigned char)*at)) {
        return false;
    }
    for (; isdigit((unsigned char)*at); at++) {
        if (whole > UINT32_MAX) {
            return false;
        }
        whole = 10 * whole + (uint64_t)(*at - '0');
    }
    if (*at == '.') {
        uint64_t unit = scale;
        at++;
        for (; isdigit((unsigned char)*at); at++) {
            unit /= 10;
            part += unit * (uint64_t)(*at - '0');
        }
    }
    *value = whole * scale + part;
    *end = at;
    return true;
}

static bool read_time(const char *text, uint64_t *ms)
{
    const char *unit = NULL;
    uint64_t thousandths = 0;
    if (!read_fixed(text, 1000, &thousandths, &unit)) {
        return false;
    }
    if (strcmp(unit, "ms") == 0) {
        *ms = thousandths / 1000;
    } else if (strcmp(unit, "s") == 0) {
        *ms = thousandths;
    } else if (strcmp(unit, "m") == 0) {
        *ms = 60 * thousandths;
    } else {
        return false;
    }
    return *ms <= DP_FAULT_TIME_MS_MAX;
}

static bool read_rate(const char *text, uint64_t *rate)
{
    const char *unit = NULL;
    uint64_t value = 0;
    if (!read_fixed(text, 1000, &value, &unit)) {
        return false;
    }
    const uint64_t times = strcmp(unit, "M") == 0   ? 1000000
                           : strcmp(unit, "K") == 0 ? 1000
                           : unit[0] == '\0'        ? 1
                                                    : 0;
    *rate = value * times / 1000;
    return times > 0;
}

static bool read_percent(const char *text, uint64_t *ppm)
{
    const char *unit = NULL;
    uint64_t value = 0;
    if (!read_fixed(text, 10000, &value, &unit) || strcmp(unit, "%") != 0 || value > 1000000) {
        return false;
    }
    *ppm = value;
    return true;
}

static bool read_value(value_kind kind, const char *text, uint64_t *value)
{
    switch (kind) {
    case VALUE_TIME:
        return read_time(text, value);
    case VALUE_RATE:
        return read_rate(text, value);
    case VALUE_PERCENT:
        return read_percent(text, value);
    }
    return false;
}

static dp_status read_setting(scanner *self, dp_fault_command *command)
{
    const char *equals = strchr(self->word, '=');
    const size_t size = equals != NULL ? (size_t)(equals - self->word) : 0;
    for (unsigned i = 0; i < KEYS && equals != NULL; i++) {
        if (strlen(keys[i].name) != size || memcmp(keys[i].name, self->word, size) != 0) {
            continue;
        }
        uint64_t value = 0;
        if (!read_value(keys[i].kind, equals + 1, &value)) {
            static const char *const needs[] = {
                [VALUE_TIME] = "a time is needed, such as 20ms or 3s (at most a day)",
                [VALUE_RATE] = "bytes per second are needed, such as 500K or 2M",
                [VALUE_PERCENT] = "a share is needed, such as 2% or 0.01%"};
            self->column += (unsigned)size + 1;
            return bad(self, needs[keys[i].kind]);
        }
        memcpy((char *)&command->rule + keys[i].offset, &value, sizeof value);
        command->given |= 1U << i;
        return DP_OK;
    }
    return bad(self, "delay=, jitter=, stall=, rate=, loss= or corrupt= is needed");
}

void dp_fault_rule_apply(const dp_fault_command *command, dp_fault_rule *rule)
{
    for (unsigned i = 0; i < KEYS; i++) {
        if ((command->given & 1U << i) != 0) {
            memcpy((char *)rule + keys[i].offset, (const char *)&command->rule + keys[i].offset,
                   sizeof(uint64_t));
        }
    }
}

static dp_status read_name(scanner *self, bool all_allowed, dp_fault_command *command)
{
    if (!next_word(self)) {
        return bad(self, all_allowed ? "a forward's name or * is missing" : "a name is missing");
    }
    if (strlen(self->word) > DP_FAULT_NAME_MAX || (strcmp(self->word, "*") == 0 && !all_allowed)) {
        return bad(self, "this is no name of at most 24 characters");
    }
    memcpy(command->name, self->word, strlen(self->word) + 1);
    return DP_OK;
}

static dp_status read_address(scanner *self, char out[DP_FAULT_ADDRESS_MAX + 1])
{
    const bool there = next_word(self);
    const char *colon = strrchr(self->word, ':');
    unsigned quads[4] = {0};
    unsigned port = 0;
    char extra = 0;
    if (!there || strlen(self->word) > DP_FAULT_ADDRESS_MAX || colon == NULL ||
        sscanf(self->word, "%3u.%3u.%3u.%3u:%5u%c", &quads[0], &quads[1], &quads[2], &quads[3],
               &port, &extra) != 5 ||
        quads[0] > 255 || quads[1] > 255 || quads[2] > 255 || quads[3] > 255 || port > 65535) {
        return bad(self, "an address is needed, such as 127.0.0.1:7717");
    }
    memcpy(out, self->word, strlen(self->word) + 1);
    return DP_OK;
}

/* "up" or "down" when it stands there; else both. */
static void read_direction(scanner *self, dp_fault_command *command)
{
    scanner ahead = *self;
    const bool there = next_word(&ahead);
    const bool up = there && strcmp(ahead.word, "up") == 0;
    const bool down = there && strcmp(ahead.word, "down") == 0;
    if (up || down) {
        *self = ahead;
    }
    command->direction[DP_FAULT_UP] = !down;
    command->direction[DP_FAULT_DOWN] = !up;
}

/* "from NAME" when it stands there. */
static dp_status read_from(scanner *self, dp_fault_command *command)
{
    scanner ahead = *self;
    if (!next_word(&ahead) || strcmp(ahead.word, "from") != 0) {
        return DP_OK;
    }
    *self = ahead;
    if (!next_word(self) || strlen(self->word) > DP_FAULT_NAME_MAX) {
        return bad(self, "after \"from\" a forward's name is needed");
    }
    memcpy(command->from, self->word, strlen(self->word) + 1);
    return DP_OK;
}

static dp_status read_settings(scanner *self, dp_fault_command *command)
{
    while (next(self, " \t\r,")) {
        DP_TRY(read_setting(self, command));
    }
    return command->given != 0 ? DP_OK : bad(self, "nothing is set");
}

static dp_status read_rest(scanner *self, dp_fault_command *command)
{
    switch (command->verb) {
    case DP_FAULT_FORWARD:
        DP_TRY(read_name(self, false, command));
        DP_TRY(read_address(self, command->listen));
        return read_address(self, command->target);
    case DP_FAULT_SET:
        DP_TRY(read_name(self, true, command));
        DP_TRY(read_from(self, command));
        read_direction(self, command);
        return read_settings(self, command);
    case DP_FAULT_CUT:
        DP_TRY(read_name(self, true, command));
        DP_TRY(read_from(self, command));
        read_direction(self, command);
        return DP_OK;
    case DP_FAULT_HEAL:
    case DP_FAULT_HALFOPEN:
    case DP_FAULT_RESET:
        DP_TRY(read_name(self, true, command));
        return read_from(self, command);
    case DP_FAULT_CHECK:
        return read_name(self, true, command);
    case DP_FAULT_SAY:
        return read_name(self, false, command);
    case DP_FAULT_NOTHING:
    case DP_FAULT_QUIT:
        break;
    }
    return DP_OK;
}

static dp_status read_verb(scanner *self, dp_fault_command *command)
{
    static const struct {
        const char *name;
        dp_fault_verb verb;
    } verbs[] = {
        {"forward", DP_FAULT_FORWARD}, {"set", DP_FAULT_SET},           {"cut", DP_FAULT_CUT},
        {"heal", DP_FAULT_HEAL},       {"halfopen", DP_FAULT_HALFOPEN}, {"reset", DP_FAULT_RESET},
        {"check", DP_FAULT_CHECK},     {"say", DP_FAULT_SAY},           {"quit", DP_FAULT_QUIT}};
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verbs[i].name, self->word) == 0) {
            command->verb = verbs[i].verb;
            return DP_OK;
        }
    }
    return bad(self, "forward, set, cut, heal, halfopen, reset, check, say or quit is needed");
}

dp_status dp_fault_parse(const char *line, unsigned line_number, dp_fault_command *command,
                         dp_why *why)
{
    scanner self = {.line = line, .at = line, .number = line_number, .column = 1, .why = why};
    *command = (dp_fault_command){.verb = DP_FAULT_NOTHING};
    if (strlen(line) > DP_FAULT_LINE_MAX) {
        return bad(&self, "a line has at most 400 characters");
    }
    if (!next_word(&self)) {
        return DP_OK;
    }
    if (strcmp(self.word, "at") == 0) {
        DP_IGNORE(!next_word(&self)); /* An empty word is no time either. */
        if (!read_time(self.word, &command->at_ms)) {
            return bad(&self, "a time is needed, such as 250ms or 3s (at most a day)");
        }
        command->has_time = true;
        DP_IGNORE(!next_word(&self)); /* An empty word is no verb either. */
    }
    DP_TRY(read_verb(&self, command));
    DP_TRY(read_rest(&self, command));
    return next_word(&self) ? bad(&self, "this is one word too many") : DP_OK;
}
