#include "cli/top/grid.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "base/alloc.h"
#include "base/assert.h"

enum { SOFT_HYPHEN = 0xad, ELLIPSIS = 0x2026, GAP = 3 };

static int within(int value, int least, int most)
{
    return value < least ? least : value > most ? most : value;
}

dp_status dp_grid_open(dp_grid *grid, int columns, int rows, bool utf8)
{
    *grid = (dp_grid){.columns = within(columns, 1, DP_GRID_COLUMNS_MAX),
                      .rows = within(rows, 1, DP_GRID_ROWS_MAX),
                      .utf8 = utf8};
    grid->cells = dp_alloc((size_t)grid->columns * (size_t)grid->rows, sizeof *grid->cells);
    if (grid->cells == NULL) {
        dp_grid_close(grid);
        return DP_NOMEM;
    }
    dp_grid_clear(grid);
    return DP_OK;
}

void dp_grid_close(dp_grid *grid)
{
    dp_free(grid->cells);
    *grid = (dp_grid){0};
}

void dp_grid_clear(dp_grid *grid)
{
    for (int i = 0; i < grid->columns * grid->rows; i++) {
        grid->cells[i] = (dp_cell){.character = ' ', .style = DP_STYLE_PLAIN};
    }
}

dp_cell *dp_grid_row(const dp_grid *grid, int row)
{
    dp_assert(row >= 0 && row < grid->rows);
    return &grid->cells[(size_t)row * (size_t)grid->columns];
}

static dp_cell *cell_at(const dp_grid *grid, int row, int column)
{
    const bool inside = row >= 0 && row < grid->rows && column >= 0 && column < grid->columns;
    return inside ? &dp_grid_row(grid, row)[column] : NULL;
}

/* ---- characters ---- */

typedef struct glyph {
    uint32_t character;
    int width;   /* 0: it is not shown */
    size_t size; /* bytes of it; 0: the text is over */
} glyph;

/* Where only ASCII is shown: one '?' for each character of UTF-8. */
static glyph next_ascii(const char *text)
{
    const unsigned char byte = (unsigned char)text[0];
    const bool goes_on = (byte & 0xc0) == 0x80;
    const bool shown = byte >= ' ' && byte < 0x7f;
    return (glyph){.character = shown ? byte : '?', .width = goes_on ? 0 : 1, .size = byte != 0};
}

static glyph next_glyph(const dp_grid *grid, const char *text)
{
    wchar_t wide = 0;
    mbstate_t state = {0};
    if (text[0] == '\n' || text[0] == '\t' || text[0] == '\r') {
        return (glyph){.character = ' ', .width = 1, .size = 1};
    }
    if (!grid->utf8 || text[0] == '\0') {
        return next_ascii(text);
    }
    const size_t size =
        mbrtowc(&wide, text, MB_LEN_MAX, &state); /* NOLINT(concurrency-mt-unsafe): has a state */
    if (size == 0 || size > MB_LEN_MAX) {
        return (glyph){.character = '?', .width = 1, .size = 1}; /* no character */
    }
    const int width = wcwidth(wide);
    if (width < 0) {
        return (glyph){.character = '?', .width = 1, .size = size}; /* it controls, or is unknown */
    }
    return (glyph){.character = (uint32_t)wide,
                   .width = wide == SOFT_HYPHEN ? 0 : width, /* Terminals do not agree about it. */
                   .size = size};
}

int dp_grid_width(const dp_grid *grid, const char *text)
{
    int width = 0;
    for (glyph next = next_glyph(grid, text); next.size > 0 && width < INT32_MAX / 2;
         next = next_glyph(grid, text)) {
        width += next.width;
        text += next.size;
    }
    return width;
}

/* A wide character that is written over in half leaves a space in its other half. */
static void unhook(const dp_grid *grid, int row, int column)
{
    dp_cell *const cell = cell_at(grid, row, column);
    dp_cell *const left = cell_at(grid, row, column - 1);
    dp_cell *const right = cell_at(grid, row, column + 1);
    if (cell != NULL && cell->character == 0 && left != NULL) {
        left->character = ' ';
    }
    if (right != NULL && right->character == 0) {
        right->character = ' ';
    }
}

void dp_grid_set(dp_grid *grid, int row, int column, uint32_t character, dp_style style)
{
    dp_cell *const cell = cell_at(grid, row, column);
    if (cell != NULL) {
        unhook(grid, row, column);
        *cell = (dp_cell){.character = character, .style = style};
    }
}

uint32_t dp_grid_get(const dp_grid *grid, int row, int column)
{
    const dp_cell *const cell = cell_at(grid, row, column);
    return cell != NULL ? cell->character : 0;
}

static void put_glyph(dp_grid *grid, int row, int column, const glyph *next, dp_style style)
{
    dp_grid_set(grid, row, column, next->character, style);
    if (next->width == 2) {
        dp_grid_set(grid, row, column + 1, ' ', style);
        cell_at(grid, row, column + 1)->character = 0;
    }
}

int dp_grid_put(dp_grid *grid, int row, int column, int width, dp_style style, const char *text)
{
    const int most = width < grid->columns - column ? width : grid->columns - column;
    if (row < 0 || row >= grid->rows || column < 0 || most <= 0) {
        return 0;
    }
    const bool cut = dp_grid_width(grid, text) > most;
    const int room = cut ? most - 1 : most;
    int used = 0;
    for (glyph next = next_glyph(grid, text); next.size > 0; next = next_glyph(grid, text)) {
        if (used + next.width > room) {
            break;
        }
        if (next.width > 0) {
            put_glyph(grid, row, column + used, &next, style);
        }
        used += next.width;
        text += next.size;
    }
    if (cut) {
        dp_grid_set(grid, row, column + used, grid->utf8 ? (uint32_t)ELLIPSIS : '~', style);
        used++;
    }
    return used;
}

void dp_grid_paint(dp_grid *grid, int row, int column, int width, dp_style style)
{
    for (int i = column; i < column + width && i < grid->columns; i++) {
        dp_cell *const cell = cell_at(grid, row, i);
        if (cell != NULL) {
            cell->style = style;
        }
    }
}

size_t dp_grid_fit(const dp_grid *grid, const char *text, int width)
{
    size_t size = 0;
    int used = 0;
    for (glyph next = next_glyph(grid, text); next.size > 0 && used + next.width <= width;
         next = next_glyph(grid, text + size)) {
        used += next.width;
        size += next.size;
    }
    return size;
}

/* Bytes of the next line of a paragraph. It moves on with each call: 0 is before a break alone. */
static size_t next_line(const dp_grid *grid, const char *text, int width)
{
    const size_t whole = strcspn(text, "\n");
    const size_t fits = dp_grid_fit(grid, text, width);
    if (whole <= fits) {
        return whole;
    }
    size_t end = fits;
    while (end > 0 && text[end] != ' ') {
        end--;
    }
    return end > 0 ? end : fits > 0 ? fits : 1;
}

int dp_grid_paragraph(dp_grid *grid, const dp_area *area, int skip, dp_style style,
                      const char *text)
{
    char line[4 * DP_GRID_COLUMNS_MAX + 1];
    int lines = 0;
    while (text[0] != '\0') {
        const size_t size = next_line(grid, text, area->columns);
        const int row = lines - skip;
        snprintf(line, sizeof line, "%.*s", (int)size, text);
        if (row >= 0 && row < area->rows) {
            dp_grid_put(grid, area->row + row, area->column, area->columns, style, line);
        }
        lines++;
        text += size;
        text += text[0] == '\n' || text[0] == ' ';
    }
    return lines;
}

int dp_grid_parts(dp_grid *grid, const dp_area *line, dp_style style, const char *const *texts,
                  size_t count)
{
    int used = 0;
    for (size_t i = 0; i < count; i++) {
        const int gap = used > 0 ? GAP : 0;
        const int size = dp_grid_width(grid, texts[i]);
        if (size > 0 && (used == 0 || used + gap + size <= line->columns)) {
            used += gap + dp_grid_put(grid, line->row, line->column + used + gap,
                                      line->columns - used - gap, style, texts[i]);
        }
    }
    return used;
}

/* ---- as text ---- */

/* UTF-8; the right half of a wide character has no bytes. */
static size_t encode(uint32_t c, uint8_t out[4])
{
    if (c == 0) {
        return 0;
    }
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (uint8_t)(0xc0 | c >> 6);
        out[1] = (uint8_t)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (uint8_t)(0xe0 | c >> 12);
        out[1] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
        out[2] = (uint8_t)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (uint8_t)(0xf0 | (c >> 18 & 0x07));
    out[1] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
    out[2] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
    out[3] = (uint8_t)(0x80 | (c & 0x3f));
    return 4;
}

dp_status dp_grid_text(const dp_grid *grid, int row, dp_buf *out)
{
    int end = grid->columns;
    while (end > 0 && dp_grid_get(grid, row, end - 1) == ' ') {
        end--;
    }
    for (int i = 0; i < end; i++) {
        uint8_t bytes[4];
        const size_t size = encode(dp_grid_get(grid, row, i), bytes);
        DP_TRY(dp_buf_append(out, dp_view_of(bytes, size)));
    }
    return DP_OK;
}
