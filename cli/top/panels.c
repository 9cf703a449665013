#include "cli/top/panels.h"

#include <stdio.h>
#include <string.h>

#include "cli/print.h"
#include "cli/top/chart.h"
#include "cli/top/grid_columns.h"

enum {
    HEAD_ROWS = 2,
    BAR_COLUMNS = 10,
    LINE_BAR = 0x2500,
    BLOCK_FULL = 0x2588,
    BLOCK_LIGHT = 0x2591
};

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])

/* ---- common parts ---- */

void dp_panel_title(dp_grid *grid, const dp_area *area, const char *text, bool focused)
{
    const dp_style style = focused ? DP_STYLE_STRONG : DP_STYLE_FAINT;
    for (int i = 0; i < area->columns; i++) {
        dp_grid_set(grid, area->row, area->column + i, grid->utf8 ? (uint32_t)LINE_BAR : '-',
                    style);
    }
    dp_grid_put(grid, area->row, area->column + 2, 1, style, " ");
    const int used = dp_grid_put(grid, area->row, area->column + 3, area->columns - 4, style, text);
    dp_grid_put(grid, area->row, area->column + 3 + used, 1, style, " ");
}

/* The lines of a table that are seen: the selected one in their middle where it can be. */
typedef struct window {
    uint32_t first;
    uint32_t count;
} window;

static window window_of(uint32_t lines, uint32_t chosen, int rows)
{
    const uint32_t room = rows > 0 ? (uint32_t)rows : 0;
    if (lines <= room) {
        return (window){.count = lines};
    }
    const uint32_t half = room / 2;
    const uint32_t first = chosen > half ? chosen - half : 0;
    return (window){.first = first < lines - room ? first : lines - room, .count = room};
}

/* A table with its title and its heads, and "12-17 of 64" where not all lines fit. */
typedef struct listing {
    dp_panel panel;
    const char *name;
    const dp_grid_columns *columns;
    const char *none; /* where it has no lines */
    bool bare;        /* without heads */
    window shown;
    dp_area line; /* where the next one goes */
    bool focused;
} listing;

static void open_listing(listing *list, dp_grid *grid, const dp_area *area, const dp_facts *facts,
                         const dp_screen *screen)
{
    char title[DP_FACTS_NAME_MAX];
    const uint32_t lines = dp_screen_lines(facts, list->panel);
    list->focused = screen->focus == list->panel;
    list->shown = window_of(lines, screen->chosen[list->panel].index,
                            area->rows - (list->bare ? 1 : HEAD_ROWS));
    snprintf(title, sizeof title, "%s", list->name);
    if (list->shown.count < lines) {
        snprintf(title, sizeof title, "%s %u-%u of %u", list->name, list->shown.first + 1,
                 list->shown.first + list->shown.count, lines);
    }
    dp_panel_title(grid, area, title, list->focused);
    list->line = (dp_area){
        .row = area->row + 1, .column = area->column + 1, .rows = 1, .columns = area->columns - 2};
    if (lines > 0 && !list->bare) {
        dp_grid_columns_put(grid, &list->line, list->columns, NULL, DP_STYLE_FAINT);
        list->line.row++;
    } else if (lines == 0) {
        const dp_area rest = {.row = area->row + 1,
                              .column = area->column + 1,
                              .rows = area->rows - 1,
                              .columns = area->columns - 2};
        dp_grid_paragraph(grid, &rest, 0, DP_STYLE_PLAIN, list->none);
    }
}

static void put_line(listing *list, dp_grid *grid, const dp_screen *screen, uint32_t index,
                     const char *const *cells, dp_style style)
{
    const bool chosen = list->focused && screen->chosen[list->panel].index == index;
    dp_grid_columns_put(grid, &list->line, list->columns, cells, style);
    if (chosen) {
        dp_grid_paint(grid, list->line.row, list->line.column - 1, list->line.columns + 2,
                      DP_STYLE_CHOSEN);
    }
    list->line.row++;
}

/* ---- loss ---- */

void dp_panel_curve(dp_grid *grid, const dp_area *area, const dp_facts *facts)
{
    static double losses[DP_FACTS_ROUNDS_MAX];
    char title[DP_FACTS_NAME_MAX];
    uint64_t first = 0;
    uint64_t last = 0;
    size_t n = 0;
    for (uint32_t i = 0; i < facts->n_rounds; i++) {
        if (facts->rounds[i].loss > 0) {
            first = n == 0 ? facts->rounds[i].round : first;
            last = facts->rounds[i].round;
            losses[n++] = facts->rounds[i].loss;
        }
    }
    const dp_area inside = {.row = area->row + 1,
                            .column = area->column + 1,
                            .rows = area->rows - 1,
                            .columns = area->columns - 2};
    if (n < 2) {
        dp_panel_title(grid, area, "loss", false);
        dp_grid_paragraph(grid, &inside, 0, DP_STYLE_PLAIN,
                          "The curve begins with the second round.");
        return;
    }
    snprintf(title, sizeof title, "loss, rounds %llu to %llu", (unsigned long long)first,
             (unsigned long long)last);
    dp_panel_title(grid, area, title, false);
    dp_chart_draw(grid, &inside, losses, n);
}

/* ---- rounds ---- */

static const dp_grid_column round_columns[] = {
    {.head = "ROUND", .width = 6, .right = true},
    {.head = "TOOK", .width = 7, .right = true},
    {.head = "COUNTED", .width = 9, .right = true},
    {.head = "LOSS", .width = 6, .right = true},
    {.head = "THIS NODE", .width = 9, .rank = 1},
    {.head = "TIME", .width = 8, .rank = 3},
    {.head = "UPDATES", .width = 9, .right = true, .rank = 2},
    {.head = "COMPUTE", .width = 7, .right = true, .rank = 4},
    {.head = "TRANSFER", .width = 8, .right = true, .rank = 5},
    {.head = "WAIT", .width = 6, .right = true, .rank = 6},
};
static const dp_grid_columns round_table = {round_columns, COUNT(round_columns)};

static void describe_rounds_to_come(const dp_facts *facts, char *text, size_t size)
{
    char span[DP_PRINT_CELL_MAX];
    if (facts->round_ms == 0) {
        snprintf(text, size, "No round is decided yet.");
        return;
    }
    dp_print_span((facts->round_ms + 999) / 1000, span);
    snprintf(text, size, "No round is decided yet. A round takes about %s.", span);
}

static void write_time(bool known, uint64_t ms, char text[DP_PRINT_CELL_MAX])
{
    snprintf(text, DP_PRINT_CELL_MAX, known ? "%.1f s" : "-", (double)ms / 1000);
}

static void put_round(listing *list, dp_grid *grid, const dp_screen *screen, uint32_t index,
                      const dp_facts_round *round)
{
    char number[DP_PRINT_CELL_MAX];
    char took[DP_PRINT_CELL_MAX] = "-";
    char counted[DP_PRINT_CELL_MAX];
    char loss[DP_PRINT_CELL_MAX] = "-";
    char clock[DP_PRINT_CELL_MAX];
    char bytes[DP_PRINT_CELL_MAX];
    char compute[DP_PRINT_CELL_MAX];
    char transfer[DP_PRINT_CELL_MAX];
    char wait[DP_PRINT_CELL_MAX];
    snprintf(number, sizeof number, "%llu", (unsigned long long)round->round);
    snprintf(counted, sizeof counted, "%u of %u", round->listed, round->active);
    if (round->duration_ms > 0) {
        snprintf(took, sizeof took, "%.1f s", (double)round->duration_ms / 1000);
    }
    if (round->loss > 0) {
        snprintf(loss, sizeof loss, "%.3f", round->loss);
    }
    dp_print_clock(round->time_ms, clock);
    dp_print_bytes(round->bytes, bytes);
    write_time(round->has_times, round->compute_ms, compute);
    write_time(round->has_times, round->transfer_ms, transfer);
    write_time(round->has_times, round->wait_ms, wait);
    const char *const cells[] = {
        number, took,  counted, loss,     round->counted ? "counted" : "left out",
        clock,  bytes, compute, transfer, wait};
    const bool full = round->listed >= round->active && round->counted;
    put_line(list, grid, screen, index, cells, full ? DP_STYLE_PLAIN : DP_STYLE_WARN);
}

/* No majority of the voters was reachable: an average of two nodes. */
static void put_exchange(listing *list, dp_grid *grid, const dp_screen *screen, uint32_t index,
                         const dp_facts_round *round)
{
    static const dp_grid_column wide[] = {{.head = "", .width = 6, .right = true},
                                          {.head = "", .width = 8, .takes_rest = true}};
    static const dp_grid_columns table = {wide, COUNT(wide)};
    char text[DP_FACTS_NAME_MAX + 40];
    snprintf(text, sizeof text, "averaged with %s alone", round->partner);
    const char *const cells[] = {"-", text};
    const dp_grid_columns *const before = list->columns;
    list->columns = &table;
    put_line(list, grid, screen, index, cells, DP_STYLE_WARN);
    list->columns = before;
}

void dp_panel_rounds(dp_grid *grid, const dp_area *area, const dp_facts *facts,
                     const dp_screen *screen)
{
    char none[DP_FACTS_TEXT_MAX];
    listing list = {
        .panel = DP_PANEL_ROUNDS, .name = "rounds", .columns = &round_table, .none = none};
    describe_rounds_to_come(facts, none, sizeof none);
    open_listing(&list, grid, area, facts, screen);
    for (uint32_t i = list.shown.first; i < list.shown.first + list.shown.count; i++) {
        const dp_facts_round *const round = &facts->rounds[facts->n_rounds - 1 - i];
        if (round->gossip) {
            put_exchange(&list, grid, screen, i, round);
        } else {
            put_round(&list, grid, screen, i, round);
        }
    }
}

/* ---- peers ---- */

static const dp_grid_column peer_columns[] = {
    {.head = "NAME", .width = 14, .takes_rest = true},
    {.head = "STATE", .width = 8},
    {.head = "ROLE", .width = 8, .rank = 1},
    {.head = "LINK", .width = 10},
    {.head = "ROUND TRIP", .width = 10, .right = true},
    {.head = "TOKENS/S", .width = 8, .right = true},
    {.head = "LAST COUNTED", .width = 12, .right = true, .rank = 2},
    {.head = "ADDRESS", .width = 21, .rank = 3},
};
static const dp_grid_columns peer_table = {peer_columns, COUNT(peer_columns)};

const char *dp_panel_role(const dp_facts_peer *peer)
{
    return peer->voter                         ? "voter"
           : peer->member                      ? "trainer"
           : strcmp(peer->state, "alive") == 0 ? "newcomer"
                                               : "-";
}

const char *dp_panel_link(const dp_facts_peer *peer)
{
    return peer->self                          ? "this node"
           : peer->linked                      ? "direct"
           : strcmp(peer->state, "alive") == 0 ? "via voters"
                                               : "none";
}

static dp_style peer_mood(const dp_facts_peer *peer)
{
    return strcmp(peer->state, "alive") == 0  ? DP_STYLE_PLAIN
           : strcmp(peer->state, "dead") == 0 ? DP_STYLE_FAINT
                                              : DP_STYLE_WARN;
}

static void put_peer(listing *list, dp_grid *grid, const dp_screen *screen, uint32_t index,
                     const dp_facts *facts)
{
    const dp_facts_peer *const peer = &facts->peers[index];
    const bool dead = strcmp(peer->state, "dead") == 0; /* Its numbers are of before. */
    const double speed = dead ? 0 : dp_facts_peer_speed(facts, peer);
    char name[DP_FACTS_NAME_MAX + DP_FACTS_WORD_MAX + 4];
    char trip[DP_PRINT_CELL_MAX] = "-";
    char rate[DP_PRINT_CELL_MAX] = "-";
    char counted[DP_PRINT_CELL_MAX] = "-";
    snprintf(name, sizeof name, "%s", peer->name[0] != '\0' ? peer->name : peer->brief);
    if (peer->rtt_ms > 0 && !dead) {
        snprintf(trip, sizeof trip, "%.1f ms", peer->rtt_ms);
    }
    if (speed > 0) {
        dp_print_count(speed, rate);
    }
    if (peer->counted > 0) {
        snprintf(counted, sizeof counted, "%llu", (unsigned long long)peer->counted);
    }
    const char *const cells[] = {name, peer->state, dp_panel_role(peer), dp_panel_link(peer), trip,
                                 rate, counted,     peer->address};
    put_line(list, grid, screen, index, cells, peer_mood(peer));
}

void dp_panel_peers(dp_grid *grid, const dp_area *area, const dp_facts *facts,
                    const dp_screen *screen)
{
    listing list = {.panel = DP_PANEL_PEERS,
                    .name = "nodes",
                    .columns = &peer_table,
                    .none = "The members follow when this node has read its chain."};
    open_listing(&list, grid, area, facts, screen);
    for (uint32_t i = list.shown.first; i < list.shown.first + list.shown.count; i++) {
        put_peer(&list, grid, screen, i, facts);
    }
    if (facts->n_peers == 1 && list.line.row < area->row + area->rows) {
        dp_grid_put(grid, list.line.row, list.line.column, list.line.columns, DP_STYLE_PLAIN,
                    "No other node yet. dpnode invite prints a token for one: dpnode join TOKEN");
    }
}

/* ---- this node's share ---- */

void dp_panel_own(dp_grid *grid, const dp_area *area, const dp_facts *facts)
{
    char share[DP_PRINT_CELL_MAX];
    char counted[DP_FACTS_TEXT_MAX];
    dp_facts_own own;
    int at = area->column + 1;
    if (!dp_facts_own_of(facts, &own)) {
        dp_grid_put(grid, area->row, at, area->columns - 2, DP_STYLE_FAINT,
                    "this node's share is known after the first round");
        return;
    }
    at += dp_grid_put(grid, area->row, at, area->columns - 2, DP_STYLE_STRONG, "this node ");
    const int filled = (int)(own.share * BAR_COLUMNS + 0.5);
    for (int i = 0; i < BAR_COLUMNS && at + i < area->column + area->columns; i++) {
        const uint32_t block = i < filled ? (uint32_t)BLOCK_FULL : (uint32_t)BLOCK_LIGHT;
        dp_grid_set(grid, area->row, at + i,
                    grid->utf8   ? block
                    : i < filled ? '#'
                                 : '.',
                    DP_STYLE_CURVE);
    }
    at += BAR_COLUMNS + 1;
    snprintf(share, sizeof share, "%.0f %% of the %s", 100 * own.share, facts->unit);
    snprintf(counted, sizeof counted, "counted in %u of the last %u round%s", own.counted,
             own.rounds, own.rounds == 1 ? "" : "s");
    const char *const texts[] = {share, counted};
    const dp_area line = {
        .row = area->row, .column = at, .rows = 1, .columns = area->column + area->columns - at};
    dp_grid_parts(grid, &line, DP_STYLE_PLAIN, texts, COUNT(texts));
}

/* ---- events ---- */

static const dp_grid_column event_columns[] = {
    {.head = "TIME", .width = 8},
    {.head = "EVENT", .width = 20, .takes_rest = true},
};
static const dp_grid_columns event_table = {event_columns, COUNT(event_columns)};

void dp_panel_events(dp_grid *grid, const dp_area *area, const dp_facts *facts,
                     const dp_screen *screen)
{
    listing list = {.panel = DP_PANEL_EVENTS,
                    .name = "events",
                    .columns = &event_table,
                    .none = "No events yet.",
                    .bare = true};
    open_listing(&list, grid, area, facts, screen);
    for (uint32_t i = list.shown.first; i < list.shown.first + list.shown.count; i++) {
        const dp_facts_event *const event = &facts->events[facts->n_events - 1 - i];
        char clock[DP_PRINT_CELL_MAX];
        dp_print_clock(event->time_ms, clock);
        const char *const cells[] = {clock, event->text};
        put_line(&list, grid, screen, i, cells, DP_STYLE_PLAIN);
    }
}
