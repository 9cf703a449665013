#include "cli/top/top_session.h"

#include <stdio.h>
#include <time.h>

#include "base/alloc.h"
#include "cli/print.h"
#include "cli/top/draw.h"
#include "cli/top/gather.h"
#include "cli/top/orders.h"
#include "cli/top/terminal.h"

enum { LINE_MAX = 4 * DP_GRID_COLUMNS_MAX }; /* bytes of a row as UTF-8 */

typedef struct session {
    dp_gather gather;
    dp_facts *facts;
    dp_screen screen;
    dp_grid grid;
    bool no_memory;
} session;

static uint64_t now_ms(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000 + 1;
}

static int fail_memory(dp_control_error *error)
{
    dp_error_set(error, DP_EXIT_SOFTWARE, "E0199", "", "out of memory", "");
    return error->exit;
}

static dp_status open_session(session *self, const char *socket)
{
    *self = (session){.screen = {.focus = DP_PANEL_PEERS}};
    dp_gather_open(&self->gather, socket);
    self->facts = dp_alloc(1, sizeof *self->facts);
    return self->facts != NULL ? DP_OK : DP_NOMEM;
}

static void close_session(session *self)
{
    dp_gather_close(&self->gather);
    dp_free(self->facts);
    dp_grid_close(&self->grid);
}

static dp_status fit_grid(session *self, int columns, int rows)
{
    const dp_grid *const grid = &self->grid;
    if (grid->cells != NULL && grid->columns == columns && grid->rows == rows) {
        return DP_OK;
    }
    dp_grid_close(&self->grid);
    return dp_grid_open(&self->grid, columns, rows, dp_terminal_utf8());
}

static void look(session *self)
{
    dp_gather_look(&self->gather, self->facts, now_ms(), dp_print_now_ms());
    dp_screen_settle(&self->screen, self->facts);
}

static void draw(session *self)
{
    const uint32_t most = dp_draw(&self->grid, self->facts, &self->screen, dp_print_now_ms());
    self->screen.scroll = self->screen.scroll < most ? self->screen.scroll : most;
}

/* Shows keys and answers until next_ms. False: it ends. */
static bool attend(session *self, dp_terminal *terminal, uint64_t next_ms)
{
    for (;;) {
        int columns = 0;
        int rows = 0;
        dp_terminal_size(terminal, &columns, &rows);
        if (fit_grid(self, columns, rows) != DP_OK) {
            self->no_memory = true;
            return false;
        }
        draw(self);
        dp_terminal_paint(terminal, &self->grid);
        const uint64_t now = now_ms();
        if (now >= next_ms) {
            return true;
        }
        const int key = dp_terminal_key(terminal, (int)(next_ms - now));
        if (key < 0) {
            return false;
        }
        const dp_screen_order order =
            key != 0 ? dp_screen_key(&self->screen, self->facts, key) : DP_SCREEN_NOTHING;
        if (order == DP_SCREEN_QUIT) {
            return false;
        }
        dp_orders_do(order, &self->gather.source, self->facts, &self->screen);
        if (order == DP_SCREEN_PAUSE || order == DP_SCREEN_RESUME ||
            order == DP_SCREEN_SET_LIMITS) {
            dp_source_expire(&self->gather.source);
            return true;
        }
    }
}

int dp_top_session(const char *socket, uint32_t every_ms, dp_control_error *error)
{
    session self;
    dp_terminal *terminal = NULL;
    int status = open_session(&self, socket) == DP_OK ? dp_terminal_open(&terminal, error)
                                                      : fail_memory(error);
    for (bool goes_on = status == 0; goes_on;) {
        look(&self);
        /* From the answer on: a daemon that hangs leaves time for keys. */
        goes_on = attend(&self, terminal, now_ms() + every_ms);
    }
    dp_terminal_close(terminal);
    close_session(&self);
    return self.no_memory ? fail_memory(error) : status;
}

static dp_status print_picture(const dp_grid *grid)
{
    dp_buf line;
    dp_status status = DP_OK;
    dp_buf_init(&line, LINE_MAX);
    for (int row = 0; status == DP_OK && row < grid->rows; row++) {
        dp_buf_clear(&line);
        status = dp_grid_text(grid, row, &line);
        printf("%.*s\n", (int)line.size, line.size > 0 ? (const char *)line.data : "");
    }
    dp_buf_close(&line);
    return status;
}

int dp_top_once(const char *socket, int columns, int rows, dp_control_error *error)
{
    session self;
    dp_status status = open_session(&self, socket);
    bool answered = false;
    if (status == DP_OK) {
        status = fit_grid(&self, columns, rows);
    }
    if (status == DP_OK) {
        look(&self);
        *error = self.gather.source.error;
        answered = self.facts->known;
    }
    if (answered) {
        draw(&self);
        status = print_picture(&self.grid);
    }
    close_session(&self);
    return status != DP_OK ? fail_memory(error) : answered ? 0 : error->exit;
}
