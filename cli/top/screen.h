/* The state of the screen of `dpnode top` besides the facts: selection, dialogs, the message of the
 * last line. Keys change it and give orders; a state machine without terminal, socket and clock. */
#ifndef DP_CLI_TOP_SCREEN_H
#define DP_CLI_TOP_SCREEN_H

#include "cli/top/facts.h"

typedef enum dp_panel { DP_PANEL_PEERS, DP_PANEL_ROUNDS, DP_PANEL_EVENTS, DP_PANELS } dp_panel;

typedef enum dp_dialog {
    DP_DIALOG_NONE,
    DP_DIALOG_HELP,
    DP_DIALOG_TEXT, /* title and text; scrolls */
    DP_DIALOG_PAUSE,
    DP_DIALOG_RESUME,
    DP_DIALOG_LIMITS
} dp_dialog;

/* A printable ASCII character is its own key. */
typedef enum dp_key {
    DP_KEY_NONE = 0,
    DP_KEY_TAB = '\t',
    DP_KEY_ENTER = '\n',
    DP_KEY_ESCAPE = 27,
    DP_KEY_BACKSPACE = 127,
    DP_KEY_UP = 256,
    DP_KEY_DOWN,
    DP_KEY_LEFT,
    DP_KEY_RIGHT,
    DP_KEY_PAGE_UP,
    DP_KEY_PAGE_DOWN,
    DP_KEY_HOME,
    DP_KEY_END,
    DP_KEY_BACK_TAB
} dp_key;

/* An order of a key, for the caller. */
typedef enum dp_screen_order {
    DP_SCREEN_NOTHING,
    DP_SCREEN_QUIT,
    DP_SCREEN_PAUSE,
    DP_SCREEN_RESUME,
    DP_SCREEN_ASK_LIMITS, /* then dp_screen_limits */
    DP_SCREEN_SET_LIMITS, /* fields of the screen */
    DP_SCREEN_WHY,        /* of the selected line, then dp_screen_show */
    DP_SCREEN_DETAILS     /* of the selected line, then dp_screen_show */
} dp_screen_order;

enum {
    DP_SCREEN_TEXT_MAX = 4096,
    DP_SCREEN_MESSAGE_MAX = 256,
    DP_SCREEN_FIELDS = 2,     /* upload, download */
    DP_SCREEN_DIGITS_MAX = 6, /* a rate is at most 100000 Mbit/s */
    DP_SCREEN_PAGE = 10
};

typedef struct dp_screen {
    dp_panel focus;
    /* The selected line of each panel: its place, where 0 is the first line, and its key (facts.h).
     * At place 0 the selection stays at the first line, whatever comes there. */
    struct {
        uint32_t index;
        uint64_t key;
    } chosen[DP_PANELS];
    dp_dialog dialog;
    char title[DP_FACTS_NAME_MAX + 32];
    char text[DP_SCREEN_TEXT_MAX];
    uint32_t scroll;                   /* first line of a dialog's text; dp_draw bounds it */
    uint32_t field;                    /* of the limits: which one is edited */
    uint64_t before[DP_SCREEN_FIELDS]; /* values that they had */
    char digits[DP_SCREEN_FIELDS][DP_SCREEN_DIGITS_MAX + 1];
    char message[DP_SCREEN_MESSAGE_MAX]; /* "" for none; the next key clears it */
} dp_screen;

/* A key. facts: as they are shown. */
dp_screen_order dp_screen_key(dp_screen *screen, const dp_facts *facts, int key);
/* After new facts: the selection goes with its lines. */
void dp_screen_settle(dp_screen *screen, const dp_facts *facts);

/* Lines of a panel. Rounds and events: the newest is first. */
uint32_t dp_screen_lines(const dp_facts *facts, dp_panel panel);
/* The selected line; NULL if there is none. */
const dp_facts_round *dp_screen_round(const dp_screen *screen, const dp_facts *facts);
const dp_facts_peer *dp_screen_peer(const dp_screen *screen, const dp_facts *facts);
const dp_facts_event *dp_screen_event(const dp_screen *screen, const dp_facts *facts);

/* Opens a dialog with this text; both are cut to their sizes. */
void dp_screen_show(dp_screen *screen, const char *title, const char *text);
/* Opens the dialog of the limits with the values of now. */
void dp_screen_limits(dp_screen *screen, uint64_t upload_mbit, uint64_t download_mbit);
/* The value that was typed. */
uint64_t dp_screen_field(const dp_screen *screen, uint32_t field);
void dp_screen_say(dp_screen *screen, const char *message);

#endif
