#include "cli/top/orders.h"

#include <stdio.h>

#include "cli/json.h"
#include "cli/print.h"
#include "cli/top/details.h"
#include "cli/watch/question.h"

static void say_error(dp_screen *screen, const dp_control_error *error)
{
    char text[DP_SCREEN_MESSAGE_MAX];
    snprintf(text, sizeof text, "%s: %.110s%s%.110s", error->code, error->what,
             error->why[0] != '\0' ? ": " : "", error->why);
    dp_screen_say(screen, text);
}

/* The answer, or NULL after the screen has told the error. */
static json_t *ask(const dp_source *source, const dp_question *question, dp_screen *screen)
{
    dp_control_error error;
    json_t *result = NULL;
    if (dp_question_ask(source->socket, DP_SOURCE_WAIT_MS, question, &result, &error) != 0) {
        say_error(screen, &error);
        return NULL;
    }
    return result;
}

static void change_state(const dp_source *source, const char *method, dp_screen *screen,
                         const char *sentence)
{
    json_t *const result = ask(source, &(dp_question){.method = method}, screen);
    if (result != NULL) {
        dp_screen_say(screen, sentence);
        json_decref(result);
    }
}

static void say_limits(const json_t *limits, dp_screen *screen)
{
    char up[DP_PRINT_CELL_MAX];
    char down[DP_PRINT_CELL_MAX];
    char text[DP_SCREEN_MESSAGE_MAX];
    dp_print_mbit(dp_json_int(limits, "upload_mbit", 0), up);
    dp_print_mbit(dp_json_int(limits, "download_mbit", 0), down);
    snprintf(text, sizeof text, "upload %s, download %s; kept over restarts", up, down);
    dp_screen_say(screen, text);
}

static void ask_limits(const dp_source *source, dp_screen *screen)
{
    json_t *const result = ask(source, &(dp_question){.method = "limits"}, screen);
    if (result != NULL) {
        dp_screen_limits(screen, (uint64_t)dp_json_int(result, "upload_mbit", 0),
                         (uint64_t)dp_json_int(result, "download_mbit", 0));
        json_decref(result);
    }
}

/* Sends the values that were changed: the others keep their source. */
static void set_limits(const dp_source *source, dp_screen *screen)
{
    static const char *const keys[DP_SCREEN_FIELDS] = {"upload_mbit", "download_mbit"};
    dp_parameter changed[DP_SCREEN_FIELDS];
    dp_question question = {.method = "limits", .parameters = changed};
    for (uint32_t i = 0; i < DP_SCREEN_FIELDS; i++) {
        if (dp_screen_field(screen, i) != screen->before[i]) {
            changed[question.n_parameters++] =
                (dp_parameter){.key = keys[i], .number = dp_screen_field(screen, i)};
        }
    }
    if (question.n_parameters == 0) {
        dp_screen_say(screen, "the limits were not changed");
        return;
    }
    json_t *const result = ask(source, &question, screen);
    if (result != NULL) {
        say_limits(result, screen);
        json_decref(result);
    }
}

static void ask_why(const dp_source *source, const dp_facts *facts, dp_screen *screen)
{
    char title[DP_FACTS_NAME_MAX + 32] = "why: this node";
    char text[DP_SCREEN_TEXT_MAX];
    const dp_facts_peer *const peer = dp_screen_peer(screen, facts);
    const dp_facts_round *const round = dp_screen_round(screen, facts);
    dp_parameter about = {.key = "peer"};
    dp_question question = {.method = "why", .parameters = &about};
    if (screen->focus == DP_PANEL_PEERS && peer != NULL && !peer->self) {
        about.text = peer->id;
        question.n_parameters = 1;
        snprintf(title, sizeof title, "why: %s", peer->name[0] != '\0' ? peer->name : peer->brief);
    } else if (screen->focus == DP_PANEL_ROUNDS && round != NULL) {
        about = (dp_parameter){.key = "round", .number = round->round};
        question.n_parameters = 1;
        snprintf(title, sizeof title, "why: round %llu", (unsigned long long)round->round);
    }
    json_t *const result = ask(source, &question, screen);
    if (result != NULL) {
        dp_details_why(result, text, sizeof text);
        dp_screen_show(screen, title, text);
        json_decref(result);
    }
}

/* The daemon's words on the selected round: the facts have no list of its contributors. */
static void show_round(const dp_source *source, const dp_facts *facts, dp_screen *screen)
{
    char title[DP_FACTS_NAME_MAX];
    char text[DP_SCREEN_TEXT_MAX];
    dp_control_error error;
    size_t index = 0;
    const json_t *item = NULL;
    const dp_facts_round *const round = dp_screen_round(screen, facts);
    /* Some have come since these facts. */
    const uint32_t last = screen->chosen[DP_PANEL_ROUNDS].index + DP_SCREEN_PAGE;
    json_t *const list = dp_source_list(source, "rounds", last, &error);
    if (list == NULL) {
        say_error(screen, &error);
        return;
    }
    snprintf(title, sizeof title, "round %llu", (unsigned long long)round->round);
    json_array_foreach(list, index, item)
    {
        if ((uint64_t)dp_json_int(item, "time_ms", 0) == round->time_ms &&
            (uint64_t)dp_json_int(item, "round", 0) == round->round) {
            dp_details_round(item, text, sizeof text);
            dp_screen_show(screen, title, text);
        }
    }
    json_decref(list);
}

static void show_details(const dp_source *source, const dp_facts *facts, dp_screen *screen)
{
    char text[DP_SCREEN_TEXT_MAX];
    const dp_facts_peer *const peer = dp_screen_peer(screen, facts);
    const dp_facts_event *const event = dp_screen_event(screen, facts);
    if (screen->focus == DP_PANEL_ROUNDS && dp_screen_round(screen, facts) != NULL) {
        show_round(source, facts, screen);
    } else if (screen->focus == DP_PANEL_PEERS && peer != NULL) {
        dp_details_peer(facts, peer, text, sizeof text);
        dp_screen_show(screen, "node", text);
    } else if (screen->focus == DP_PANEL_EVENTS && event != NULL) {
        dp_details_event(event, text, sizeof text);
        dp_screen_show(screen, "event", text);
    }
}

void dp_orders_do(dp_screen_order order, const dp_source *source, const dp_facts *facts,
                  dp_screen *screen)
{
    switch (order) {
    case DP_SCREEN_NOTHING:
    case DP_SCREEN_QUIT:
        break;
    case DP_SCREEN_PAUSE:
        change_state(source, "pause", screen,
                     "paused; training continues on the other nodes. r resumes");
        break;
    case DP_SCREEN_RESUME:
        change_state(source, "resume", screen, "resumed training");
        break;
    case DP_SCREEN_ASK_LIMITS:
        ask_limits(source, screen);
        break;
    case DP_SCREEN_SET_LIMITS:
        set_limits(source, screen);
        break;
    case DP_SCREEN_WHY:
        ask_why(source, facts, screen);
        break;
    case DP_SCREEN_DETAILS:
        show_details(source, facts, screen);
        break;
    }
}
