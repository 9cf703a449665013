#include "cli/top/screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DECIMAL = 10 };

/* ---- the selection ---- */

uint32_t dp_screen_lines(const dp_facts *facts, dp_panel panel)
{
    switch (panel) {
    case DP_PANEL_PEERS:
        return facts->n_peers;
    case DP_PANEL_ROUNDS:
        return facts->n_rounds;
    case DP_PANEL_EVENTS:
        return facts->n_events;
    case DP_PANELS:
        break;
    }
    return 0;
}

static uint64_t key_at(const dp_facts *facts, dp_panel panel, uint32_t index)
{
    const uint32_t lines = dp_screen_lines(facts, panel);
    if (index >= lines) {
        return 0;
    }
    return panel == DP_PANEL_PEERS    ? facts->peers[index].key
           : panel == DP_PANEL_ROUNDS ? facts->rounds[lines - 1 - index].key
                                      : facts->events[lines - 1 - index].key;
}

const dp_facts_peer *dp_screen_peer(const dp_screen *screen, const dp_facts *facts)
{
    const uint32_t index = screen->chosen[DP_PANEL_PEERS].index;
    return index < facts->n_peers ? &facts->peers[index] : NULL;
}

const dp_facts_round *dp_screen_round(const dp_screen *screen, const dp_facts *facts)
{
    const uint32_t index = screen->chosen[DP_PANEL_ROUNDS].index;
    return index < facts->n_rounds ? &facts->rounds[facts->n_rounds - 1 - index] : NULL;
}

const dp_facts_event *dp_screen_event(const dp_screen *screen, const dp_facts *facts)
{
    const uint32_t index = screen->chosen[DP_PANEL_EVENTS].index;
    return index < facts->n_events ? &facts->events[facts->n_events - 1 - index] : NULL;
}

static void choose(dp_screen *screen, const dp_facts *facts, dp_panel panel, uint32_t index)
{
    const uint32_t lines = dp_screen_lines(facts, panel);
    screen->chosen[panel].index = index < lines ? index : lines > 0 ? lines - 1 : 0;
    screen->chosen[panel].key = key_at(facts, panel, screen->chosen[panel].index);
}

void dp_screen_settle(dp_screen *screen, const dp_facts *facts)
{
    for (dp_panel panel = DP_PANEL_PEERS; panel < DP_PANELS; panel++) {
        uint32_t index = screen->chosen[panel].index;
        const uint32_t lines = dp_screen_lines(facts, panel);
        for (uint32_t i = 0; index > 0 && i < lines; i++) {
            if (key_at(facts, panel, i) == screen->chosen[panel].key) {
                index = i;
                break;
            }
        }
        choose(screen, facts, panel, index);
    }
}

static void move(dp_screen *screen, const dp_facts *facts, int key)
{
    const uint32_t at = screen->chosen[screen->focus].index;
    const bool near = key == DP_KEY_UP || key == DP_KEY_DOWN || key == 'k' || key == 'j';
    const uint32_t step = near ? 1 : DP_SCREEN_PAGE;
    if (key == DP_KEY_HOME || key == 'g') {
        choose(screen, facts, screen->focus, 0);
    } else if (key == DP_KEY_END || key == 'G') {
        choose(screen, facts, screen->focus, UINT32_MAX);
    } else if (key == DP_KEY_DOWN || key == 'j' || key == DP_KEY_PAGE_DOWN) {
        choose(screen, facts, screen->focus, at + step);
    } else {
        choose(screen, facts, screen->focus, at > step ? at - step : 0);
    }
}

/* ---- dialogs ---- */

void dp_screen_say(dp_screen *screen, const char *message)
{
    snprintf(screen->message, sizeof screen->message, "%s", message);
}

void dp_screen_show(dp_screen *screen, const char *title, const char *text)
{
    screen->dialog = DP_DIALOG_TEXT;
    screen->scroll = 0;
    snprintf(screen->title, sizeof screen->title, "%s", title);
    snprintf(screen->text, sizeof screen->text, "%s", text);
}

void dp_screen_limits(dp_screen *screen, uint64_t upload_mbit, uint64_t download_mbit)
{
    const uint64_t values[DP_SCREEN_FIELDS] = {upload_mbit, download_mbit};
    screen->dialog = DP_DIALOG_LIMITS;
    screen->field = 0;
    for (uint32_t i = 0; i < DP_SCREEN_FIELDS; i++) {
        screen->before[i] = values[i];
        snprintf(screen->digits[i], sizeof screen->digits[i], "%llu",
                 (unsigned long long)values[i]); /* It is at most 100000. */
    }
}

uint64_t dp_screen_field(const dp_screen *screen, uint32_t field)
{
    return strtoull(screen->digits[field], NULL, DECIMAL); /* Nothing typed is 0: unlimited. */
}

static dp_screen_order key_of_limits(dp_screen *screen, int key)
{
    char *const digits = screen->digits[screen->field];
    const size_t size = strlen(digits);
    if (key >= '0' && key <= '9' && size < DP_SCREEN_DIGITS_MAX) {
        const size_t at = size == 1 && digits[0] == '0' ? 0 : size;
        digits[at] = (char)key;
        digits[at + 1] = '\0';
    } else if (key == DP_KEY_BACKSPACE && size > 0) {
        digits[size - 1] = '\0';
    } else if (key == DP_KEY_TAB || key == DP_KEY_BACK_TAB || key == DP_KEY_UP ||
               key == DP_KEY_DOWN) {
        screen->field = (screen->field + 1) % DP_SCREEN_FIELDS;
    } else if (key == DP_KEY_ENTER) {
        screen->dialog = DP_DIALOG_NONE;
        return DP_SCREEN_SET_LIMITS;
    } else if (key == DP_KEY_ESCAPE || key == 'q') {
        screen->dialog = DP_DIALOG_NONE;
        dp_screen_say(screen, "the limits were not changed");
    }
    return DP_SCREEN_NOTHING;
}

static dp_screen_order key_of_question(dp_screen *screen, int key)
{
    const bool pauses = screen->dialog == DP_DIALOG_PAUSE;
    if (key == 'y' || key == 'Y') {
        screen->dialog = DP_DIALOG_NONE;
        return pauses ? DP_SCREEN_PAUSE : DP_SCREEN_RESUME;
    }
    screen->dialog = DP_DIALOG_NONE;
    dp_screen_say(screen, pauses ? "not paused" : "not resumed");
    return DP_SCREEN_NOTHING;
}

static dp_screen_order key_of_text(dp_screen *screen, int key)
{
    if (key == DP_KEY_DOWN || key == 'j') {
        screen->scroll++;
    } else if (key == DP_KEY_PAGE_DOWN || key == ' ') {
        screen->scroll += DP_SCREEN_PAGE;
    } else if (key == DP_KEY_UP || key == 'k') {
        screen->scroll -= screen->scroll > 0;
    } else if (key == DP_KEY_PAGE_UP) {
        screen->scroll -= screen->scroll < DP_SCREEN_PAGE ? screen->scroll : DP_SCREEN_PAGE;
    } else {
        screen->dialog = DP_DIALOG_NONE;
    }
    return DP_SCREEN_NOTHING;
}

/* ---- keys ---- */

static void open_help(dp_screen *screen)
{
    screen->dialog = DP_DIALOG_HELP;
    screen->scroll = 0;
}

/* Asks before it pauses or resumes, and only where that changes something. */
static void open_question(dp_screen *screen, const dp_facts *facts, bool pauses)
{
    if (!facts->in_run) {
        dp_screen_say(screen, "this node is in no run");
    } else if (pauses == facts->paused) {
        dp_screen_say(screen, pauses ? "it is paused already; r resumes" : "it is not paused");
    } else {
        screen->dialog = pauses ? DP_DIALOG_PAUSE : DP_DIALOG_RESUME;
    }
}

/* Keys that ask the daemon for something. */
static dp_screen_order key_of_order(dp_screen *screen, const dp_facts *facts, int key)
{
    if (!facts->known || facts->old) {
        dp_screen_say(screen, "no daemon answers; this key works when it does");
        return DP_SCREEN_NOTHING;
    }
    if (key == 'p' || key == 'r') {
        open_question(screen, facts, key == 'p');
        return DP_SCREEN_NOTHING;
    }
    return key == 'l' ? DP_SCREEN_ASK_LIMITS : DP_SCREEN_WHY;
}

static dp_screen_order key_of_panels(dp_screen *screen, const dp_facts *facts, int key)
{
    switch (key) {
    case 'q':
        return DP_SCREEN_QUIT;
    case '?':
    case 'h':
        open_help(screen);
        return DP_SCREEN_NOTHING;
    case DP_KEY_TAB:
    case DP_KEY_RIGHT:
        screen->focus = (screen->focus + 1) % DP_PANELS;
        return DP_SCREEN_NOTHING;
    case DP_KEY_BACK_TAB:
    case DP_KEY_LEFT:
        screen->focus = (screen->focus + DP_PANELS - 1) % DP_PANELS;
        return DP_SCREEN_NOTHING;
    case DP_KEY_ENTER:
        return dp_screen_lines(facts, screen->focus) > 0 ? DP_SCREEN_DETAILS : DP_SCREEN_NOTHING;
    case 'p':
    case 'r':
    case 'l':
    case 'w':
        return key_of_order(screen, facts, key);
    case 'g':
    case 'G':
    case 'j':
    case 'k':
    case DP_KEY_UP:
    case DP_KEY_DOWN:
    case DP_KEY_PAGE_UP:
    case DP_KEY_PAGE_DOWN:
    case DP_KEY_HOME:
    case DP_KEY_END:
        move(screen, facts, key);
        return DP_SCREEN_NOTHING;
    default:
        dp_screen_say(screen, "? shows the keys");
        return DP_SCREEN_NOTHING;
    }
}

dp_screen_order dp_screen_key(dp_screen *screen, const dp_facts *facts, int key)
{
    screen->message[0] = '\0';
    switch (screen->dialog) {
    case DP_DIALOG_NONE:
        return key_of_panels(screen, facts, key);
    case DP_DIALOG_HELP:
    case DP_DIALOG_TEXT:
        return key_of_text(screen, key);
    case DP_DIALOG_PAUSE:
    case DP_DIALOG_RESUME:
        return key_of_question(screen, key);
    case DP_DIALOG_LIMITS:
        return key_of_limits(screen, key);
    }
    return DP_SCREEN_NOTHING;
}
