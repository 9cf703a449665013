/* A picture as a grid of character cells, without a terminal. Text of others is written into it
 * harmlessly: whatever its bytes are, a put changes the cells of its width and nothing else. */
#ifndef DP_CLI_TOP_GRID_H
#define DP_CLI_TOP_GRID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum { DP_GRID_COLUMNS_MAX = 500, DP_GRID_ROWS_MAX = 200 };

typedef enum dp_style {
    DP_STYLE_PLAIN,
    DP_STYLE_STRONG,
    DP_STYLE_FAINT,
    DP_STYLE_BAR,    /* the first and the last line */
    DP_STYLE_CHOSEN, /* the selected line */
    DP_STYLE_CURVE,
    DP_STYLE_GOOD,
    DP_STYLE_WARN,
    DP_STYLE_BAD
} dp_style;

typedef struct dp_cell {
    uint32_t character; /* Unicode; 0: the right half of a wide character */
    uint32_t style;     /* dp_style */
} dp_cell;

typedef struct dp_grid {
    int columns;
    int rows;
    bool utf8;      /* the terminal shows Unicode; else a character beyond ASCII becomes '?' */
    dp_cell *cells; /* rows of columns */
} dp_grid;

/* A rectangle of a grid. Parts of it that are outside of the grid are not written. */
typedef struct dp_area {
    int row;
    int column;
    int rows;
    int columns;
} dp_area;

/* Sizes are cut to the maxima, and are at least 1. With utf8, the locale is a UTF-8 one: widths of
 * characters are those of wcwidth(3). DP_NOMEM: grid is closed. */
DP_MUST dp_status dp_grid_open(dp_grid *grid, int columns, int rows, bool utf8);
void dp_grid_close(dp_grid *grid); /* accepts a closed one */
void dp_grid_clear(dp_grid *grid); /* spaces, plain */

/* Writes text into width cells from column on; a longer text ends with a mark. Control characters
 * and bytes that are no character become '?', line breaks and tabs spaces; characters without a
 * width (marks, joiners, directions) are dropped. Returns the columns that it took. */
int dp_grid_put(dp_grid *grid, int row, int column, int width, dp_style style, const char *text);
/* One cell with a character of one column, which is our own: it is not cleaned. */
void dp_grid_set(dp_grid *grid, int row, int column, uint32_t character, dp_style style);
/* The character of a cell; 0 outside of the grid. */
uint32_t dp_grid_get(const dp_grid *grid, int row, int column);
/* The cells of a row that there is. Borrowed. */
dp_cell *dp_grid_row(const dp_grid *grid, int row);
/* Gives cells a style and leaves their characters. */
void dp_grid_paint(dp_grid *grid, int row, int column, int width, dp_style style);
/* The columns that text takes, however long. */
int dp_grid_width(const dp_grid *grid, const char *text);

/* Bytes of text that fit into width columns. */
size_t dp_grid_fit(const dp_grid *grid, const char *text, int width);
/* Writes text over the lines of an area, broken between words where it can be; the first skip lines
 * of it are left out. Returns the lines of the whole text; an area without rows only counts. */
int dp_grid_paragraph(dp_grid *grid, const dp_area *area, int skip, dp_style style,
                      const char *text);
/* Writes those of count texts that fit whole, in order, with three spaces between them; the first
 * one is cut if it must be. Empty ones are left out. Returns the columns that it took. */
int dp_grid_parts(dp_grid *grid, const dp_area *line, dp_style style, const char *const *texts,
                  size_t count);

/* Appends a row as UTF-8 without the spaces at its end, and without a line break. DP_NOMEM,
 * DP_TOOBIG. */
DP_MUST dp_status dp_grid_text(const dp_grid *grid, int row, dp_buf *out);

#endif
