/* dpnode-web: pages about one node, for browsers and for Prometheus: a client of the daemon's
 * control socket that changes nothing. `dpnode web` starts it. */
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/trainer/trainer_kind.h"
#include "cli/figures/run_figures.h"
#include "cli/paths.h"
#include "cli/web/options.h"
#include "cli/web/server.h"
#include "cli/web/texts.h"

static volatile int ended;

static void on_end(int number)
{
    (void)number;
    ended = 1;
}

/* --name A,B: cuts text in place. False: more than DP_SITE_NAMES_MAX, or an empty one. */
static bool read_names(dp_site *site, char *text)
{
    size_t n = 0;
    char *rest = text;
    for (char *name = strsep(&rest, ","); name != NULL; name = strsep(&rest, ",")) {
        if (name[0] == '\0' || n == DP_SITE_NAMES_MAX) {
            return false;
        }
        site->names[n++] = name;
    }
    return true;
}

/* ---- event files and texts */

enum { LOOK_MS = 1000 };

static void on_warning(void *context, const char *sentence)
{
    (void)context;
    fprintf(stderr, "note: %s; the page goes on\n", sentence);
}

static uint64_t clock_ms(clockid_t clock)
{
    struct timespec now = {0};
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Writes what is new since the last look, and asks for rounds only if there is something. */
static void look(dp_run_figures *figures, dp_source *source)
{
    dp_control_error error;
    dp_source_look(source, clock_ms(CLOCK_MONOTONIC));
    if (figures->folder == NULL || !dp_run_figures_lacks(figures, source->status)) {
        return;
    }
    json_t *const rounds = dp_source_list(source, "rounds", DP_SOURCE_LAST_MAX, &error);
    if (rounds != NULL) {
        dp_run_figures_take(figures, source->status, rounds, clock_ms(CLOCK_REALTIME));
        json_decref(rounds);
    }
}

/* texts: without a prompt none are made. */
static dp_status serve_until_end(dp_server *server, dp_site *site, dp_run_figures *figures,
                                 dp_texts *texts)
{
    const bool looks = figures->folder != NULL || texts->prompt != NULL;
    dp_status status = DP_OK;
    uint64_t looked_ms = 0;
    while (status == DP_OK && ended == 0) {
        status = dp_server_step(server, looks ? LOOK_MS : -1);
        const uint64_t now = clock_ms(CLOCK_MONOTONIC);
        if (!looks || now - looked_ms < LOOK_MS) {
            continue;
        }
        looked_ms = now;
        look(figures, &site->source);
        const uint64_t time_ms = clock_ms(CLOCK_REALTIME);
        const json_t *const text =
            texts->prompt != NULL ? dp_texts_look(texts, site->source.status, now, time_ms) : NULL;
        if (text != NULL) {
            dp_run_figures_text(figures, text, time_ms);
        }
    }
    return status;
}

static int serve(dp_cmd *cmd)
{
    static char names[DP_SITE_NAMES_MAX * 256];
    const struct sigaction ending = {.sa_handler = on_end};
    const char *const listen = dp_cmd_option(cmd, "listen");
    const char *const given = dp_cmd_option(cmd, "name");
    dp_control_error error;
    dp_server *server = NULL;
    dp_site site = {0};

    snprintf(names, sizeof names, "%s", given != NULL ? given : "");
    if (given != NULL && (strlen(given) >= sizeof names || !read_names(&site, names))) {
        dp_error_set(&error, DP_EXIT_USAGE, "E0604", "--name HOST, or --name HOST,HOST",
                     "--name has 1 to 4 names with a comma between them", given);
        return dp_cmd_fail(cmd, &error);
    }
    const char *const prompt = dp_cmd_option(cmd, "sample");
    if (prompt != NULL && strlen(prompt) > DP_TRAINER_TEXT_MAX) {
        dp_error_set(&error, DP_EXIT_USAGE, "E0001", "dpnode web --help",
                     "--sample has more than 8192 bytes", "the daemon takes no longer prompt");
        return dp_cmd_fail(cmd, &error);
    }
    dp_source_open(&site.source, cmd->socket);
    if (dp_server_open(&server, &site, listen != NULL ? listen : DP_WEB_LISTEN, &error) != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    sigaction(SIGINT, &ending, NULL);
    sigaction(SIGTERM, &ending, NULL);
    if (cmd->json) {
        const int printed = dp_cmd_print(json_pack("{s:s}", "address", dp_server_address(server)));
        ended = printed != 0 ? 1 : ended;
    } else {
        printf("http://%s   page; /metrics is for Prometheus; Ctrl-C ends it\n",
               dp_server_address(server));
        fflush(stdout);
    }
    dp_run_figures figures = {.folder = dp_cmd_option(cmd, "tensorboard"), .warn = on_warning};
    dp_texts texts;
    dp_status status = dp_texts_open(&texts, cmd->socket, prompt);
    site.texts = texts.list;
    status = status == DP_OK ? serve_until_end(server, &site, &figures, &texts) : status;
    dp_run_figures_close(&figures);
    dp_server_close(server);
    dp_texts_close(&texts);
    dp_source_close(&site.source);
    if (status != DP_OK) {
        dp_error_set(&error, DP_EXIT_IO, "E0605", "start it again", "the server has failed",
                     dp_status_text(status));
        return dp_cmd_fail(cmd, &error);
    }
    return 0;
}

static const dp_verb web_verb = {
    .program = "dpnode-web",
    .name = "",
    .run = serve,
    .arguments = "",
    .summary = DP_WEB_SUMMARY,
    .examples = "  dpnode-web\n  dpnode-web --listen 0.0.0.0:7719 --name node1.example\n",
    .options = {DP_WEB_OPTIONS},
};

int main(int argc, char **argv)
{
    setlocale(LC_ALL, "");
    setlocale(LC_NUMERIC, "C"); /* Numbers are written for programs. */
    dp_path_be_private();
    signal(SIGPIPE, SIG_IGN);
    return dp_cmd_program(&web_verb, argc, argv);
}
