#include "cli/top/terminal.h"

#include <errno.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ncurses.h has names without a prefix. */
#include <ncurses.h>

#include "base/alloc.h"
#include "cli/top/screen.h"

enum { ESCAPE_MS = 25, MS_OF_SECOND = 1000, NS_OF_MS = 1000000 };

struct dp_terminal {
    SCREEN *screen;
    bool colours;
    dp_grid shown;
    sigset_t before; /* the mask, which holds while a key is waited for */
};

static volatile sig_atomic_t ended;

static void on_end(int number)
{
    (void)number;
    ended = 1;
}

static const int ends[] = {SIGINT, SIGTERM, SIGHUP};

/* They come only while a key is waited for, so that none is missed. One that is ignored stays
 * ignored. */
static void watch_signals(dp_terminal *terminal)
{
    const struct sigaction ending = {.sa_handler = on_end};
    sigset_t set;
    ended = 0;
    sigemptyset(&set);
    sigaddset(&set, SIGWINCH);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct sigaction old;
        if (sigaction(ends[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) {
            sigaction(ends[i], &ending, NULL);
        }
        sigaddset(&set, ends[i]);
    }
    sigprocmask(SIG_BLOCK, &set, &terminal->before); /* NOLINT(concurrency-mt-unsafe): one thread */
}

static void start_colours(dp_terminal *terminal)
{
    static const struct {
        dp_style style;
        short colour;
    } rows[] = {{DP_STYLE_CURVE, COLOR_CYAN},
                {DP_STYLE_GOOD, COLOR_GREEN},
                {DP_STYLE_WARN, COLOR_YELLOW},
                {DP_STYLE_BAD, COLOR_RED}};
    const char *const off = getenv("NO_COLOR"); /* NOLINT(concurrency-mt-unsafe): one thread */
    if ((off != NULL && off[0] != '\0') || !has_colors() || start_color() == ERR ||
        use_default_colors() == ERR) {
        return;
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        init_pair((short)rows[i].style, rows[i].colour, -1);
    }
    terminal->colours = true;
}

static int fail_terminal(dp_control_error *error, const char *code, const char *what,
                         const char *why)
{
    dp_error_set(error, DP_EXIT_UNAVAILABLE, code,
                 "dpnode status   # or status --json for programs; dpnode top --once prints one "
                 "picture",
                 what, why);
    return error->exit;
}

static void restore_signals(const dp_terminal *terminal)
{
    const struct sigaction standard = {.sa_handler = SIG_DFL};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct sigaction now;
        if (sigaction(ends[i], NULL, &now) == 0 && now.sa_handler == on_end) {
            sigaction(ends[i], &standard, NULL);
        }
    }
    sigprocmask(SIG_SETMASK, &terminal->before, NULL); /* NOLINT(concurrency-mt-unsafe): one */
}

int dp_terminal_open(dp_terminal **terminal, dp_control_error *error)
{
    const char *const name = getenv("TERM"); /* NOLINT(concurrency-mt-unsafe): one thread */
    *terminal = NULL;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        return fail_terminal(error, "E0607", "the screen needs a terminal",
                             "stdin or stdout is a file or a pipe");
    }
    dp_terminal *const made = dp_alloc(1, sizeof *made);
    if (made == NULL) {
        dp_error_set(error, DP_EXIT_SOFTWARE, "E0199", "", "out of memory", "");
        return error->exit;
    }
    watch_signals(made);
    made->screen = newterm(NULL, stdout, stdin);
    const char *const places = made->screen != NULL ? tigetstr("cup") : NULL;
    if (places == NULL || places == (const char *)-1) { /* NOLINT: as terminfo says it */
        dp_terminal_close(made);
        return fail_terminal(error, "E0608", "this terminal cannot show a screen",
                             name != NULL ? name : "TERM is not set");
    }
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(ESCAPE_MS);
    curs_set(0);
    start_colours(made);
    *terminal = made;
    return 0;
}

void dp_terminal_close(dp_terminal *terminal)
{
    if (terminal == NULL) {
        return;
    }
    if (terminal->screen != NULL) {
        endwin();
        delscreen(terminal->screen);
    }
    restore_signals(terminal);
    dp_grid_close(&terminal->shown);
    dp_free(terminal);
}

bool dp_terminal_utf8(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0; /* NOLINT(concurrency-mt-unsafe): one */
}

void dp_terminal_size(const dp_terminal *terminal, int *columns, int *rows)
{
    (void)terminal;
    *columns = getmaxx(stdscr);
    *rows = getmaxy(stdscr);
}

/* ---- painting ---- */

static attr_t attributes_of(const dp_terminal *terminal, dp_style style)
{
    const attr_t colour = terminal->colours ? (attr_t)COLOR_PAIR(style) : A_NORMAL;
    switch (style) {
    case DP_STYLE_PLAIN:
        return A_NORMAL;
    case DP_STYLE_STRONG:
        return A_BOLD;
    case DP_STYLE_FAINT:
        return A_DIM;
    case DP_STYLE_BAR:
    case DP_STYLE_CHOSEN:
        return A_REVERSE;
    case DP_STYLE_CURVE:
        return colour;
    case DP_STYLE_GOOD:
    case DP_STYLE_WARN:
    case DP_STYLE_BAD:
        return colour | A_BOLD;
    }
    return A_NORMAL;
}

/* The cells of one style from column on; returns the column after them. */
static int paint_run(const dp_terminal *terminal, const dp_grid *grid, int row, int column)
{
    wchar_t text[DP_GRID_COLUMNS_MAX + 1];
    size_t n = 0;
    const dp_cell *const cells = dp_grid_row(grid, row);
    int end = column;
    for (; end < grid->columns && cells[end].style == cells[column].style; end++) {
        if (cells[end].character != 0) {
            text[n++] = (wchar_t)cells[end].character;
        }
    }
    attrset((int)attributes_of(terminal, (dp_style)cells[column].style));
    mvaddnwstr(row, column, text, (int)n);
    return end;
}

void dp_terminal_paint(dp_terminal *terminal, const dp_grid *grid)
{
    dp_grid *const shown = &terminal->shown;
    const bool same = shown->columns == grid->columns && shown->rows == grid->rows;
    const size_t line = (size_t)grid->columns * sizeof *grid->cells;
    if (!same) {
        dp_grid_close(shown);
        erase();
    }
    for (int row = 0; row < grid->rows; row++) {
        const dp_cell *const cells = dp_grid_row(grid, row);
        const bool changed =
            !same || shown->cells == NULL || memcmp(cells, dp_grid_row(shown, row), line) != 0;
        for (int column = 0; changed && column < grid->columns;) {
            column = paint_run(terminal, grid, row, column);
        }
    }
    if (shown->cells == NULL &&
        dp_grid_open(shown, grid->columns, grid->rows, grid->utf8) != DP_OK) {
        *shown = (dp_grid){0}; /* Without memory every line is painted each time. */
    }
    if (shown->cells != NULL) {
        memcpy(shown->cells, grid->cells, line * (size_t)grid->rows);
    }
    refresh();
}

/* ---- keys ---- */

static int translate(int key)
{
    static const struct {
        int from;
        int to;
    } rows[] = {{KEY_UP, DP_KEY_UP},         {KEY_DOWN, DP_KEY_DOWN},
                {KEY_LEFT, DP_KEY_LEFT},     {KEY_RIGHT, DP_KEY_RIGHT},
                {KEY_PPAGE, DP_KEY_PAGE_UP}, {KEY_NPAGE, DP_KEY_PAGE_DOWN},
                {KEY_HOME, DP_KEY_HOME},     {KEY_END, DP_KEY_END},
                {KEY_BTAB, DP_KEY_BACK_TAB}, {KEY_BACKSPACE, DP_KEY_BACKSPACE},
                {'\b', DP_KEY_BACKSPACE},    {KEY_ENTER, DP_KEY_ENTER},
                {'\r', DP_KEY_ENTER}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].from == key) {
            return rows[i].to;
        }
    }
    return key < KEY_MIN ? key : DP_KEY_NONE;
}

int dp_terminal_key(dp_terminal *terminal, int most_ms)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    const struct timespec most = {.tv_sec = most_ms / MS_OF_SECOND,
                                  .tv_nsec = (long)(most_ms % MS_OF_SECOND) * NS_OF_MS};
    int key = getch(); /* One that came before, or the new size. */
    if (key == ERR) {
        const int ready = ppoll(&in, 1, &most, &terminal->before);
        if (ended || (ready < 0 && errno != EINTR) || (ready > 0 && (in.revents & POLLIN) == 0)) {
            return -1;
        }
        key = getch();
        if (key == ERR && ready > 0) {
            return -1; /* The end of its input. */
        }
    }
    return key == ERR || key == KEY_RESIZE ? DP_KEY_NONE : translate(key);
}
