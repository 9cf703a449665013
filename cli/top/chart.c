#include "cli/top/chart.h"

#include <math.h>
#include <stdio.h>

enum {
    LABEL = 7, /* columns of "12.345 " */
    COLUMNS_MIN = 12,
    ROWS_MIN = 2,
    BRAILLE = 0x2800,
    BRAILLE_END = 0x2900,
    DOTS_ACROSS = 2,
    DOTS_DOWN = 4
};

/* The place of the dots: the area right of the labels, and how many dots it has. */
typedef struct canvas {
    dp_grid *grid;
    dp_area area;
    int dots_across;
    int dots_down;
} canvas;

static void put_dot(const canvas *c, int x, int y)
{
    /* Bits of U+2800: the left column of dots from above, then the right one; the lowest dots were
     * added later. */
    static const uint8_t bits[DOTS_DOWN][DOTS_ACROSS] = {
        {0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    if (!c->grid->utf8) {
        dp_grid_set(c->grid, c->area.row + y, c->area.column + x, '*', DP_STYLE_CURVE);
        return;
    }
    const int row = c->area.row + y / DOTS_DOWN;
    const int column = c->area.column + x / DOTS_ACROSS;
    const uint32_t before = dp_grid_get(c->grid, row, column);
    const uint32_t dots = before >= BRAILLE && before < BRAILLE_END ? before : (uint32_t)BRAILLE;
    dp_grid_set(c->grid, row, column, dots | bits[y % DOTS_DOWN][x % DOTS_ACROSS], DP_STYLE_CURVE);
}

/* The value at dot x: a mean of those that fall on it, or between two neighbours. */
static double value_at(const double *values, size_t count, int x, int dots)
{
    if (count <= (size_t)dots) {
        const double at = (double)x * (double)(count - 1) / (double)(dots - 1);
        const size_t left = (size_t)at < count - 1 ? (size_t)at : count - 2;
        return values[left] + (values[left + 1] - values[left]) * (at - (double)left);
    }
    const size_t from = (size_t)x * count / (size_t)dots;
    const size_t to = ((size_t)x + 1) * count / (size_t)dots;
    double sum = 0;
    for (size_t i = from; i < to; i++) {
        sum += values[i];
    }
    return sum / (double)(to - from);
}

static void put_label(const canvas *c, int row, double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.*f", fabs(value) >= 100 ? 1 : 3, value);
    const int spare = LABEL - 1 - dp_grid_width(c->grid, text);
    const int shift = spare > 0 ? spare : 0;
    dp_grid_put(c->grid, row, c->area.column - LABEL + shift, LABEL - 1 - shift, DP_STYLE_FAINT,
                text);
}

/* A column of dots from the last height to the next, so that the curve has no gaps. */
static void put_stroke(const canvas *c, int x, int from, int to)
{
    put_dot(c, x, to);
    for (int y = from < to ? from + 1 : to + 1; y < (from < to ? to : from); y++) {
        put_dot(c, x, y);
    }
}

void dp_chart_draw(dp_grid *grid, const dp_area *area, const double *values, size_t count)
{
    if (count < 2 || area->columns < COLUMNS_MIN || area->rows < ROWS_MIN) {
        return;
    }
    canvas c = {.grid = grid, .area = *area};
    c.area.column += LABEL;
    c.area.columns -= LABEL;
    c.dots_across = c.area.columns * (grid->utf8 ? (int)DOTS_ACROSS : 1);
    c.dots_down = c.area.rows * (grid->utf8 ? (int)DOTS_DOWN : 1);
    double least = value_at(values, count, 0, c.dots_across);
    double most = least;
    for (int x = 1; x < c.dots_across; x++) {
        least = fmin(least, value_at(values, count, x, c.dots_across));
        most = fmax(most, value_at(values, count, x, c.dots_across));
    }
    const double span = most > least ? most - least : 1;
    int before = 0;
    for (int x = 0; x < c.dots_across; x++) {
        const double value = value_at(values, count, x, c.dots_across);
        const int y = (int)lround((most - value) / span * (c.dots_down - 1));
        put_stroke(&c, x, x == 0 ? y : before, y);
        before = y;
    }
    put_label(&c, area->row, most);
    put_label(&c, area->row + area->rows - 1, least);
}
