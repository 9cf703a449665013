#include "cli/top/headline.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "cli/print.h"

enum { PART_MAX = 200, PARTS = 6, REASON_ROWS = 2 };

/* Parts of a line. */
typedef struct parts {
    char texts[PARTS][PART_MAX];
    const char *list[PARTS];
    size_t count;
} parts;

static void add(parts *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(parts *line, const char *format, ...)
{
    va_list arguments;
    dp_assert(line->count < PARTS);
    va_start(arguments, format);
    vsnprintf(line->texts[line->count], PART_MAX, format, arguments);
    va_end(arguments);
    line->list[line->count] = line->texts[line->count];
    line->count++;
}

static dp_style mood(const dp_facts *facts)
{
    if (facts->old || strcmp(facts->state, "halted") == 0 || strcmp(facts->state, "left") == 0) {
        return DP_STYLE_BAD;
    }
    return facts->healthy ? DP_STYLE_GOOD : DP_STYLE_WARN;
}

/* ---- parts ---- */

static void add_round(parts *line, const dp_facts *facts)
{
    if (!facts->has_round) {
        return;
    }
    add(line, "round %llu", (unsigned long long)facts->round);
    if (facts->loss > 0 && facts->held_out > 0) {
        add(line, "loss %.3f, held out %.3f", facts->loss, facts->held_out);
    } else if (facts->loss > 0) {
        add(line, "loss %.3f", facts->loss);
    }
}

static void add_nodes(parts *line, const dp_facts *facts)
{
    const unsigned long long all = facts->members > facts->alive ? facts->members : facts->alive;
    if (facts->has_round) {
        add(line, "%llu of %llu node%s alive", (unsigned long long)facts->alive, all,
            all == 1 ? "" : "s");
    }
}

static void add_tokens(parts *line, const dp_facts *facts)
{
    char count[DP_PRINT_CELL_MAX];
    if (facts->has_round) {
        dp_print_count((double)facts->tokens, count);
        add(line, "%s %s so far", count, facts->unit);
    }
}

static void add_speed(parts *line, const dp_facts *facts)
{
    char here[DP_PRINT_CELL_MAX];
    char all[DP_PRINT_CELL_MAX];
    const bool known = dp_facts_speed(facts) > 0;
    dp_print_count(facts->tokens_per_s, here);
    dp_print_count(dp_facts_speed(facts), all);
    if (facts->tokens_per_s <= 0) {
        add(line, "no training here now");
    } else {
        add(line, "%s %s/s here%s%s%s", here, facts->unit, known ? ", " : "", known ? all : "",
            known ? " counted" : "");
    }
}

static void add_times(parts *line, const dp_facts *facts)
{
    dp_facts_times times;
    if (facts->tokens_per_s > 0 && dp_facts_times_of(facts, &times)) {
        add(line, "steps %.0f %%, rounds %.0f %%, waiting %.0f %%", 100 * times.steps,
            100 * times.rounds, 100 * times.waiting);
    }
}

static void add_limits(parts *line, const dp_facts *facts)
{
    char up[DP_PRINT_CELL_MAX] = "unlimited";
    char down[DP_PRINT_CELL_MAX] = "unlimited";
    if (facts->upload_max > 0) {
        dp_print_rate(facts->upload_max, up);
    }
    if (facts->download_max > 0) {
        dp_print_rate(facts->download_max, down);
    }
    add(line, "upload %s, download %s", up, down);
}

static void add_traffic(parts *line, const dp_facts *facts)
{
    char sent[DP_PRINT_CELL_MAX];
    char received[DP_PRINT_CELL_MAX];
    dp_print_bytes(facts->bytes_sent, sent);
    dp_print_bytes(facts->bytes_received, received);
    add(line, "sent %s, received %s", sent, received);
}

/* ---- lines ---- */

static void put_parts(dp_grid *grid, int row, int column, dp_style style, const parts *line)
{
    const dp_area area = {
        .row = row, .column = column, .rows = 1, .columns = grid->columns - column - 1};
    dp_grid_parts(grid, &area, style, line->list, line->count);
}

static void put_title(dp_grid *grid, const dp_facts *facts, uint64_t unix_ms)
{
    char clock[DP_PRINT_CELL_MAX];
    char node[DP_FACTS_NAME_MAX + DP_PRINT_CELL_MAX + 16];
    const char *const run = facts->in_run ? facts->run : "dpnode";
    dp_print_clock(unix_ms, clock);
    snprintf(node, sizeof node, "%s%s  %s", facts->node, facts->voter ? " (voter)" : "", clock);
    const int width = dp_grid_width(grid, node);
    const int left = dp_grid_put(grid, 0, 1, grid->columns - 2, DP_STYLE_BAR, run);
    if (left + width + 4 <= grid->columns) {
        dp_grid_put(grid, 0, grid->columns - width - 1, width, DP_STYLE_BAR, node);
    }
    dp_grid_paint(grid, 0, 0, grid->columns, DP_STYLE_BAR);
}

static void describe_old(const dp_facts *facts, uint64_t unix_ms, char *text, size_t size)
{
    char age[DP_PRINT_CELL_MAX];
    const uint64_t ms = unix_ms > facts->answered_ms ? unix_ms - facts->answered_ms : 0;
    dp_print_span(ms / 1000, age);
    snprintf(text, size,
             "OLD PICTURE, %s old: %s. It goes on by itself when a daemon answers (%s).", age,
             facts->problem, facts->remedy);
}

/* The line or two of what is wrong. Returns how many. */
static int put_reason(dp_grid *grid, int row, const dp_facts *facts, uint64_t unix_ms)
{
    char text[DP_FACTS_SENTENCE_MAX];
    const dp_area area = {
        .row = row, .column = 1, .rows = REASON_ROWS, .columns = grid->columns - 2};
    snprintf(text, sizeof text, "%s", facts->reason);
    if (facts->old) {
        describe_old(facts, unix_ms, text, sizeof text);
    }
    const int lines = dp_grid_paragraph(grid, &area, 0, mood(facts), text);
    if (lines > REASON_ROWS) { /* w shows the whole. */
        dp_grid_put(grid, row + REASON_ROWS - 1, grid->columns - 12, 11, mood(facts),
                    " ... w: all");
    }
    return lines < REASON_ROWS ? lines : REASON_ROWS;
}

int dp_headline_draw(dp_grid *grid, const dp_facts *facts, uint64_t unix_ms)
{
    parts run = {.count = 0};
    parts speed = {.count = 0};
    parts line = {.count = 0};
    put_title(grid, facts, unix_ms);
    if (!facts->known) {
        return 1;
    }
    const int state = dp_grid_put(grid, 1, 1, grid->columns - 2, mood(facts),
                                  facts->old ? "no answer" : facts->state);
    if (!facts->in_run) {
        return 2 + put_reason(grid, 2, facts, unix_ms);
    }
    add_round(&run, facts);
    add_nodes(&run, facts);
    add_tokens(&run, facts);
    put_parts(grid, 1, state + 4, DP_STYLE_STRONG, &run);
    add_speed(&speed, facts);
    add_times(&speed, facts);
    put_parts(grid, 2, 1, DP_STYLE_PLAIN, &speed);
    add_limits(&line, facts);
    add_traffic(&line, facts);
    if (facts->device[0] != '\0') {
        add(&line, "on %s", facts->device);
    }
    put_parts(grid, 3, 1, DP_STYLE_FAINT, &line);
    return 4 + put_reason(grid, 4, facts, unix_ms);
}

void dp_headline_small(dp_grid *grid, const dp_facts *facts, uint64_t unix_ms)
{
    parts lines = {.count = 0};
    char text[DP_FACTS_SENTENCE_MAX];
    const dp_area all = {.rows = grid->rows, .columns = grid->columns};
    if (!facts->known || !facts->in_run) {
        dp_headline_absence(grid, &all, facts);
        return;
    }
    add(&lines, facts->has_round ? "%s, round %llu" : "%s", facts->old ? "OLD" : facts->state,
        (unsigned long long)facts->round);
    if (facts->loss > 0) {
        add(&lines, "loss %.3f", facts->loss);
    }
    add_speed(&lines, facts);
    add_nodes(&lines, facts);
    for (int row = 0; row < (int)lines.count; row++) {
        dp_grid_put(grid, row, 0, grid->columns, row == 0 ? mood(facts) : DP_STYLE_PLAIN,
                    lines.list[row]);
    }
    const dp_area rest = {
        .row = (int)lines.count, .rows = grid->rows - (int)lines.count, .columns = grid->columns};
    snprintf(text, sizeof text, "%s", facts->reason);
    if (facts->old) {
        describe_old(facts, unix_ms, text, sizeof text);
    }
    dp_grid_paragraph(grid, &rest, 0, DP_STYLE_PLAIN, text);
}

void dp_headline_absence(dp_grid *grid, const dp_area *area, const dp_facts *facts)
{
    char text[DP_FACTS_SENTENCE_MAX];
    if (!facts->known && facts->problem[0] == '\0') {
        snprintf(text, sizeof text, "asking the daemon ...");
    } else if (!facts->known) {
        snprintf(text, sizeof text,
                 "%s.\nTo start it: %s\n\nThis screen goes on by itself when the daemon answers.",
                 facts->problem, facts->remedy);
    } else {
        snprintf(
            text, sizeof text,
            "This node is in no run yet.\nTo join one:    dpnode join TOKEN   (a member prints "
            "a token: dpnode invite)\nTo create one:  dpnode run create --demo kjv\n\nThis "
            "screen goes on by itself when the node is in a run.");
    }
    dp_grid_paragraph(grid, area, 0, DP_STYLE_PLAIN, text);
}
