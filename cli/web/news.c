#include "cli/web/news.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"
#include "cli/watch/question.h"

enum { ID_MAX = 80 };

static bool read_number(const char **text, char after, uint64_t *number)
{
    char *end = NULL;
    if (**text < '0' || **text > '9') {
        return false;
    }
    *number = strtoull(*text, &end, 10);
    if (*end != after) {
        return false;
    }
    *text = end + (after != '\0');
    return true;
}

bool dp_news_read(dp_news *news, const char *id)
{
    dp_news read = {.begun = true};
    *news = (dp_news){.begun = false};
    if (id == NULL || !read_number(&id, '-', &read.event) || !read_number(&id, '-', &read.seq) ||
        !read_number(&id, '\0', &read.slot)) {
        return false;
    }
    *news = read;
    return true;
}

/* ---- lists ---- */

typedef struct taken {
    dp_news *news; /* moved */
    json_t *list;
    size_t max;
} taken;

static uint64_t number_of(const json_t *object, const char *key)
{
    const long long value = dp_json_int(object, key, 0);
    return value > 0 ? (uint64_t)value : 0;
}

/* An older daemon does not know "after", and sends the last ones again. A round without a seq is
 * from before the daemon's start; the slots of others go back with the chain (FORK). */
static bool is_new(const dp_news *news, const json_t *event, const json_t *round)
{
    const uint64_t seq = number_of(round, "seq");
    return event != NULL ? number_of(event, "id") > news->event
           : seq != 0    ? seq > news->seq
                         : number_of(round, "slot") > news->slot;
}

static void move(dp_news *news, const json_t *event, const json_t *round)
{
    const uint64_t id = number_of(event, "id");
    const uint64_t seq = number_of(round, "seq");
    const uint64_t slot = number_of(round, "slot");
    news->event = id > news->event ? id : news->event;
    news->seq = seq > news->seq ? seq : news->seq;
    if (slot != 0 && json_object_get(round, "exchange") == NULL) {
        news->slot = slot;
    }
}

static int take(void *context, const json_t *notice)
{
    taken *const self = context;
    json_t *const event = json_object_get(notice, "event");
    json_t *const round = json_object_get(notice, "round");
    if (!is_new(self->news, event, round)) {
        return 0;
    }
    if (json_array_size(self->list) >= self->max) {
        return DP_EXIT_TEMPORARY; /* The others are in the next one. */
    }
    move(self->news, event, round);
    return json_array_append(self->list, event != NULL ? event : round) == 0 ? 0 : DP_EXIT_SOFTWARE;
}

/* False: the daemon did not answer. */
static bool ask(dp_news *news, const dp_source *source, const char *method, json_t *list,
                size_t max)
{
    const bool of_events = strcmp(method, "events") == 0;
    const dp_parameter parameters[] = {{.key = news->begun ? "after" : "last",
                                        .number = !news->begun ? 1
                                                  : of_events  ? news->event
                                                               : news->seq},
                                       {.key = "after_slot", .number = news->slot}};
    taken taking = {.news = news, .list = list, .max = max};
    const dp_question question = {.method = method,
                                  .parameters = parameters,
                                  .n_parameters = news->begun && !of_events ? 2 : 1,
                                  .on_notice = take,
                                  .context = &taking};
    dp_control_error error = {.exit = 0};
    json_t *result = NULL;
    const int status =
        dp_question_ask(source->socket, DP_SOURCE_WAIT_MS, &question, &result, &error);
    json_decref(result);
    return status == 0 || (error.code[0] == '\0' && json_array_size(list) >= max);
}

/* ---- the event ---- */

static dp_status write_event(const dp_news *news, json_t *value, dp_buf *out)
{
    char head[ID_MAX + 32];
    char *const text = json_dumps(value, JSON_COMPACT);
    const size_t before = out->size;
    if (text == NULL) {
        return DP_NOMEM;
    }
    snprintf(head, sizeof head,
             "event: news\nid: %llu-%llu-%llu\ndata: ", (unsigned long long)news->event,
             (unsigned long long)news->seq, (unsigned long long)news->slot);
    dp_status status = dp_buf_append(out, dp_view_text(head));
    status = status == DP_OK ? dp_buf_append(out, dp_view_text(text)) : status;
    status = status == DP_OK ? dp_buf_append(out, dp_view_text("\n\n")) : status;
    out->size = status == DP_OK ? out->size : before;
    free(text);
    return status;
}

dp_status dp_news_write(dp_news *news, const dp_source *source, dp_buf *out)
{
    const json_t *const run = json_object_get(source->status, "run");
    const uint64_t exchanges = number_of(run, "exchanges");
    dp_news now = *news;
    if (run == NULL) {
        return DP_OK;
    }
    json_t *const events = json_array();
    json_t *const rounds = json_array();
    bool answered = ask(&now, source, "events", events, DP_NEWS_EVENTS_MAX);
    if (answered &&
        (!now.begun || number_of(run, "slot") != now.slot || exchanges != now.exchanges)) {
        answered = ask(&now, source, "rounds", rounds, DP_NEWS_ROUNDS_MAX);
        now.exchanges = exchanges;
    }
    const bool begins = !now.begun;
    if (begins) { /* It asks for lists itself. */
        json_array_clear(events);
        json_array_clear(rounds);
    }
    json_t *const value = json_pack("{s:o, s:o}", "events", events, "rounds", rounds);
    dp_status status = value == NULL ? DP_NOMEM : DP_OK;
    now.begun = true;
    if (status == DP_OK && answered &&
        (begins || json_array_size(events) > 0 || json_array_size(rounds) > 0)) {
        status = write_event(&now, value, out);
    }
    if (status == DP_OK && answered) {
        *news = now;
    }
    json_decref(value);
    return status;
}
