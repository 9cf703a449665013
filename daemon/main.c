/* dpnoded: from the command line to the exit status. */
#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "daemon/control/check.h"
#include "daemon/control/control.h"
#include "daemon/control/first_start.h"
#include "daemon/host/disk_reserve.h"
#include "daemon/host/tool.h"
#include "daemon/model/held_out.h"
#include "daemon/net/transport.h"
#include "daemon/peer/bandwidth_limiter.h"
#include "daemon/peer/driver.h"
#include "daemon/peer/supervisor.h"
#include "daemon/peer/suspension.h"
#include "store/chain.h"
#include "store/dir.h"
#include "store/journal.h"

enum {
    EXIT_USAGE = 64,
    EXIT_SOFTWARE = 70,
    EXIT_CANTCREATE = 73,
    EXIT_IO = 74,
    EXIT_TEMPORARY = 75,
    EXIT_NEWER = 76,
    EXIT_DENIED = 77,
    EXIT_CONFIG = 78,
    SIGNALS = 3, /* signals that end the daemon, or reopen the log */
    AGAIN_MS = 100,
    EVENTS_OF_A_SECOND_BITS = 20
};

static unsigned n_stops; /* SIGTERMs and SIGINTs that this life of the daemon has received */

static int exit_of(dp_status status)
{
    switch ((int)status) {
    case DP_OK:
        return 0;
    case DP_BADARG:
        return EXIT_USAGE;
    case DP_BUSY:
        return EXIT_CANTCREATE;
    case DP_DENIED:
        return EXIT_DENIED;
    case DP_IO:
    case DP_NOSPACE:
        return EXIT_IO;
    case DP_VERSION:
        return EXIT_NEWER;
    case DP_UNSUPPORTED:
        return EXIT_CONFIG;
    default:
        return EXIT_SOFTWARE;
    }
}

static void print_help(void)
{
    size_t count = 0;
    const dp_setting *settings = dp_settings(&count);
    printf("usage: dpnoded [--dir PATH] [--socket PATH] [--listen ADDR:PORT] ...\n       dpnoded "
           "--check ...   check this machine and exit, for dpnode doctor\nThe node daemon of "
           "dpnode. It is idle, with no port open, until dpnode creates or joins a run.\n\n");
    for (size_t i = 0; i < count; i++) {
        char flag[64];
        snprintf(flag, sizeof flag, "--%s %s", settings[i].name, settings[i].unit);
        printf("  %-24s %s%s%s%s\n", flag, settings[i].text,
               settings[i].standard[0] != '\0' ? " [" : "", settings[i].standard,
               settings[i].standard[0] != '\0' ? "]" : "");
    }
    printf(
        "\nThe environment sets them too, as DPNODE_<NAME>. DPNODE_TOKEN is an invite token, as in "
        "the file of --token-file.\n");
}

static dp_status set_log(const dp_config *config, dp_log_sink **sink, dp_why *why)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    dp_log_level level = DP_LOG_INFO;
    for (int i = 0; i < 4; i++) {
        if (strcmp(config->log_level, names[i]) == 0) {
            level = (dp_log_level)i;
        }
    }
    dp_log_init(stderr, level, "dpnoded");
    /* dpnode up opens this one, which would grow without bound. */
    char own[DP_CONFIG_PATH_MAX + sizeof "/dpnoded.log"];
    snprintf(own, sizeof own, "%s/dpnoded.log", config->dir);
    const bool follows = config->log_file[0] == '\0' && dp_log_sink_may_follow(own, STDERR_FILENO);
    const dp_log_sink_config where = {
        .path = follows ? own : config->log_file, .fd = STDERR_FILENO, .fd_follows = follows};
    return dp_log_sink_open(sink, &where, why);
}

/* Make dir and the folders above it, so that the first start of an unprivileged user works. */
static void make_folders(const char *dir)
{
    char path[DP_CONFIG_PATH_MAX];
    snprintf(path, sizeof path, "%s", dir);
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        DP_IGNORE(mkdir(path, 0700) !=
                  0); /* If the folder is still missing, the store reports it. */
        *slash = '/';
    }
}

static void on_entry(void *context, const dp_event_log_entry *entry)
{
    const dp_daemon *daemon = context;
    (void)entry;
    if (daemon->control != NULL) {
        dp_control_on_entry(daemon->control);
    }
}

static void on_round(void *context, const dp_event_log_round *round)
{
    const dp_daemon *daemon = context;
    (void)round;
    if (daemon->control != NULL) {
        dp_control_on_round(daemon->control);
    }
}

void dp_daemon_end(dp_daemon *daemon, int exit_status, const char *cause)
{
    if (daemon->ending) {
        _exit(exit_status);
    }
    daemon->ending = true;
    daemon->exit_status = exit_status;
    dp_event_log_add(daemon->event_log, DP_LOG_INFO, "daemon.ending", 0, NULL, "%s", cause);
    uv_stop(daemon->loop);
}

static void on_again(uv_timer_t *timer)
{
    dp_daemon *daemon = timer->data;
    uv_close((uv_handle_t *)timer, (uv_close_cb)dp_free);
    if (!daemon->ending) {
        daemon->again = n_stops == 0; /* A node that drains ends for good. */
        dp_daemon_end(daemon, 0, daemon->again ? "to restart from the store" : "it was draining");
    }
}

void dp_daemon_again(dp_daemon *daemon, const char *cause)
{
    uv_timer_t *timer = dp_alloc(1, sizeof *timer);
    dp_event_log_add(daemon->event_log, DP_LOG_INFO, "daemon.again", 0, NULL, "%s", cause);
    if (timer == NULL || uv_timer_init(daemon->loop, timer) != 0) {
        dp_free(timer);
        dp_daemon_end(daemon, EXIT_TEMPORARY, "no memory to restart; start the daemon again");
        return;
    }
    timer->data = daemon;
    uv_timer_start(timer, on_again, AGAIN_MS, 0); /* Replies are sent first. */
}

/* The first SIGTERM drains, also a node that drains already for the sake of drain-on-file: its
 * orchestrator sends one in any case. */
static void on_stop(dp_daemon *daemon, int number)
{
    n_stops++;
    if (daemon->ending) {
        return; /* It completes its writes. */
    }
    if (number == SIGINT) {
        dp_daemon_end(daemon, 0, "SIGINT received");
    } else if (!dp_supervisor_drain(daemon->supervisor, "SIGTERM received") && n_stops > 1) {
        dp_daemon_end(daemon, 0, "SIGTERM received twice");
    }
}

static void on_signal(uv_signal_t *handle, int number)
{
    dp_daemon *daemon = handle->data;
    if (number != SIGHUP) {
        on_stop(daemon, number);
    } else if (!daemon->ending) {
        dp_log_sink_reopen(daemon->log);
        dp_daemon_reload(daemon);
    }
}

static const int signal_numbers[SIGNALS] = {SIGTERM, SIGINT, SIGHUP};

/* The last number of the event log; 0: none, or it cannot be read. */
static uint64_t last_event(const dp_daemon *daemon)
{
    uint64_t last = 0;
    DP_IGNORE(dp_journal_last(daemon->store, &last) != DP_OK);
    return last;
}

/* The clock, or the last life that the event log knows of, if the clock was set back: the row of
 * the last incarnation may be damaged. */
static uint64_t incarnation_floor(const dp_daemon *daemon)
{
    const uint64_t now_s = dp_unix_ms() / 1000;
    const uint64_t lived = last_event(daemon) >> EVENTS_OF_A_SECOND_BITS;
    return now_s > lived ? now_s : lived;
}

static dp_status open_store(dp_daemon *daemon, dp_store_report *report, dp_why *why)
{
    dp_store_options options = dp_store_options_default();
    options.reserve_bytes = daemon->config->ballast;
    options.margin_bytes = daemon->config->margin;
    options.max_bytes = daemon->config->store_max;
    make_folders(daemon->config->dir);
    if (!daemon->config->network_dir) {
        DP_TRY(dp_dir_check_disk(daemon->config->dir, why));
    }
    DP_TRY(dp_store_open(&daemon->store, daemon->config->dir, &options, report, why));
    dp_tool_folders_remove(daemon->config->dir);
    if (report->mode_was != 0 || report->n_tightened > 0) {
        dp_log(
            report->created ? DP_LOG_INFO : DP_LOG_WARN, "store.private",
            "dir=%s mode_was=%04o files=%u msg=\"other users could %s; it is private now\"",
            daemon->config->dir, report->mode_was, report->n_tightened,
            report->created
                ? "enter the directory"
                : "enter the directory of this node or read its files, and may know its secrets");
    }
    const dp_status status =
        dp_store_bump_incarnation(daemon->store, incarnation_floor(daemon), &daemon->incarnation);
    return status == DP_OK
               ? DP_OK
               : dp_why_set(why, status, "the store cannot be written: %s", dp_status_text(status));
}

/* Does the store have records of this run, although its row about the run is lost? */
static bool has_chain(const dp_daemon *daemon, const dp_run_id *run)
{
    dp_chain_tip head;
    return dp_chain_head(daemon->store, run, &head) == DP_OK;
}

/* Names the part of its run that a damaged store has lost; told when the event log is open. */
typedef struct loss {
    dp_log_level level;
    char text[DP_EVENT_LOG_TEXT_MAX]; /* "": nothing */
} loss;

/* The store has lost the run, or its rows about the run are damaged: with its certificate and its
 * key the node is still a member. If all of the store was lost, its unpublished work and its vote
 * key are lost too; the chain and the state come from peers. */
static dp_status enter_again(dp_daemon *daemon, bool damaged, bool rebuilt, dp_run_identity *facts,
                             loss *lost, dp_why *why)
{
    const char *dir = daemon->config->dir;
    dp_status status = dp_run_identity_copy_load(dir, facts, why);
    if (!rebuilt && !damaged && (status != DP_OK || !has_chain(daemon, &facts->run))) {
        return DP_NOTFOUND; /* It is in no run, or has left that run. */
    }
    if (status == DP_DENIED || (status == DP_NOTFOUND && !damaged)) {
        return status;
    }
    status = status == DP_OK ? dp_run_identity_save(daemon->store, facts) : status;
    if (status != DP_OK) {
        DP_IGNORE(dp_run_identity_lost_save(daemon->store) !=
                  DP_OK); /* The log has it in any case. */
        lost->level = DP_LOG_ERROR;
        snprintf(lost->text, sizeof lost->text,
                 "the store was damaged, and %.80s/run.member, which names its run, cannot be read "
                 "(%s): dpnode join TOKEN joins again",
                 dir, dp_status_name(status));
        return DP_NOTFOUND;
    }
    lost->level = DP_LOG_WARN;
    snprintf(lost->text, sizeof lost->text, "%s: %s", facts->name,
             rebuilt ? "the store had lost this run; the node joins it again with its certificate, "
                       "without its unpublished work and its vote key"
                     : "the run identity in the store is damaged; it is read from run.member; "
                       "check the disk: smartctl -a DEVICE");
    return DP_OK;
}

/* As events, which dpnode logs and why show too: the log's file may be nobody's to read. */
static void tell_losses(const dp_daemon *daemon, const dp_store_report *report, const loss *lost)
{
    if (report->meta_rebuilt) {
        dp_event_log_add(daemon->event_log, DP_LOG_WARN, "store.rebuilt", 0, NULL,
                         "meta.db was damaged and is rebuilt%s%s: the chain, the vote key and the "
                         "list of checkpoints are gone; of the run's states the newest stays, for "
                         "dpnode ckpt export; check the disk: smartctl -a DEVICE",
                         report->moved_to[0] != '\0' ? ", the old file is " : "", report->moved_to);
    }
    if (report->chunks_rebuilt) {
        dp_event_log_add(daemon->event_log, DP_LOG_WARN, "store.rebuilt", 0, NULL,
                         "chunks.db was damaged and is rebuilt; what could not be read is fetched "
                         "again; check the disk: smartctl -a DEVICE");
    }
    if (lost->text[0] != '\0') {
        dp_event_log_add(daemon->event_log, lost->level, "store.lost", 0, NULL, "%s", lost->text);
    }
}

/* Numbers of events go on above those of every earlier life: the incarnation grows with each start,
 * and a life of fewer than 2^20 events for each second of it does not reach the next one's; the
 * journal knows if one did. Below 2^53, which every reader of JSON takes, until the year 2242. */
static uint64_t first_event(const dp_daemon *daemon)
{
    const uint64_t last = last_event(daemon);
    const uint64_t first = daemon->incarnation << EVENTS_OF_A_SECOND_BITS;
    return first > last ? first : last + 1;
}

/* The daemon ended before it had deleted the data of a run that it left. */
static void drop_left(const dp_daemon *daemon)
{
    const dp_status status = dp_run_identity_drop(daemon->store);
    if (status != DP_OK) {
        dp_log(DP_LOG_WARN, "store.left",
               "msg=\"the data of the run that this node left could not be deleted; the next start "
               "tries again\" status=%s",
               dp_status_name(status));
    }
}

/* The daemon ended while it created a run, before that was stored: nobody has heard of that run.
 * Its root key would keep --create-from from creating one. */
static void end_founding(dp_daemon *daemon, dp_run_identity *scratch)
{
    dp_run_id run;
    uint8_t root[DP_PUBLIC_KEY_BYTES];
    if (dp_run_identity_unfinished(daemon->store, &run, root) != DP_OK) {
        return;
    }
    dp_status status =
        dp_daemon_root_of(daemon, root) != NULL ? dp_daemon_drop_root(daemon, "") : DP_OK;
    if (status == DP_OK && dp_run_identity_copy_load(daemon->config->dir, scratch, NULL) == DP_OK &&
        dp_hash_equal(&scratch->run, &run)) {
        status = dp_run_identity_copy_forget(daemon->config->dir);
    }
    status = status == DP_OK ? dp_run_identity_abandon(daemon->store, &run) : status;
    dp_log(DP_LOG_WARN, "create.unfinished",
           "msg=\"the daemon ended while it created a run, and that run does not exist\" "
           "status=%s",
           dp_status_name(status));
}

/* A failed write of chunks; for rows of the protocol the driver ends it. */
static void on_store_failed(void *context)
{
    dp_daemon *const daemon = context;
    if (!daemon->ending) {
        dp_daemon_end(daemon, EXIT_TEMPORARY,
                      "the store failed: the disk refused a write; to check it: dpnode down; "
                      "dpnode up");
    }
}

/* Everything that may fail before the loop runs. */
static dp_status start(dp_daemon *daemon, dp_run_identity *facts, bool *member, dp_why *why)
{
    dp_store_report report = {0};
    loss lost = {.text = ""};
    DP_TRY(open_store(daemon, &report, why));
    DP_TRY(dp_daemon_load_identity(daemon, why));
    DP_TRY(dp_daemon_load_root(daemon, why));
    drop_left(daemon);
    end_founding(daemon, facts);
    dp_status status = dp_run_identity_load(daemon->store, facts);
    if (status == DP_NOTFOUND || status == DP_CORRUPT) {
        status = enter_again(daemon, report.meta_rebuilt || status == DP_CORRUPT,
                             report.meta_rebuilt || report.created, facts, &lost, why);
    }
    *member = status == DP_OK;
    daemon->lost = status == DP_NOTFOUND && dp_run_identity_lost(daemon->store);
    if (status == DP_DENIED) {
        return status;
    }
    if (status != DP_OK && status != DP_NOTFOUND) {
        return dp_why_set(why, status, "the run identity in the store cannot be read: %s",
                          dp_status_text(status));
    }
    dp_config_live_load(daemon->live, daemon->store);
    dp_store_limit(daemon->store, daemon->config->store_max); /* An order may say another quota. */
    DP_TRY(dp_bandwidth_limiter_open(&daemon->bandwidth_limiter, daemon, dp_unix_ms));
    DP_TRY(dp_suspension_open(&daemon->suspension, daemon, NULL));
    const dp_event_log_hooks hooks = {daemon, on_entry, on_round};
    const uint64_t first_id = first_event(daemon);
    DP_TRY(dp_store_thread_open(&daemon->store_thread, daemon->loop, daemon->store));
    dp_store_thread_watch(daemon->store_thread, on_store_failed, daemon);
    DP_TRY(dp_event_log_open(&daemon->event_log, daemon->loop, daemon->store_thread, &hooks));
    dp_event_log_begin(daemon->event_log, first_id);
    tell_losses(daemon, &report, &lost);
    DP_TRY(dp_control_open(&daemon->control, daemon, daemon->config->socket, why));
    DP_TRY(dp_supervisor_open(&daemon->supervisor, daemon));
    DP_TRY(dp_disk_reserve_open(&daemon->disk_reserve, daemon, DP_DISK_RESERVE_LOOK_MS));
    DP_TRY(dp_held_out_open(&daemon->held_out, daemon, DP_HELD_OUT_LOOK_MS));
    if (*member) {
        DP_TRY(dp_driver_open(&daemon->driver, daemon, facts, why));
    }
    return dp_first_start_open(&daemon->first_start, daemon);
}

/* A running tool would keep the loop alive; nothing waits for its answer. */
static void end_child(uv_handle_t *handle, void *context)
{
    (void)context;
    if (handle->type == UV_PROCESS && !uv_is_closing(handle)) {
        DP_IGNORE(uv_process_kill((uv_process_t *)handle, SIGKILL) !=
                  0); /* It may have just ended. */
    }
}

static void close_all(dp_daemon *daemon)
{
    dp_supervisor_close(daemon->supervisor);
    daemon->supervisor = NULL;
    dp_first_start_close(daemon->first_start);
    daemon->first_start = NULL;
    dp_disk_reserve_close(daemon->disk_reserve);
    daemon->disk_reserve = NULL;
    dp_suspension_close(daemon->suspension);
    daemon->suspension = NULL;
    dp_bandwidth_limiter_close(daemon->bandwidth_limiter);
    daemon->bandwidth_limiter = NULL;
    dp_driver_close(daemon->driver);
    daemon->driver = NULL;
    dp_held_out_close(daemon->held_out);
    daemon->held_out = NULL;
    dp_control_close(daemon->control);
    daemon->control = NULL;
    if (daemon->event_log != NULL) {
        dp_event_log_flush(daemon->event_log);
    }
    dp_store_thread_close(daemon->store_thread); /* The last jobs still write to the event log. */
    daemon->store_thread = NULL;
    dp_event_log_close(daemon->event_log);
    daemon->event_log = NULL;
    uv_walk(daemon->loop, end_child, NULL);
    uv_run(daemon->loop, UV_RUN_DEFAULT); /* close callbacks */
    dp_store_close(daemon->store);
    dp_identity_close(&daemon->identity);
    sodium_memzero(&daemon->root, sizeof daemon->root);
    sodium_memzero(&daemon->vote, sizeof daemon->vote);
}

static void watch_signals(dp_daemon *daemon, uv_signal_t handles[SIGNALS])
{
    for (int i = 0; i < SIGNALS; i++) {
        handles[i].data = daemon;
        if (uv_signal_init(daemon->loop, &handles[i]) == 0) {
            uv_signal_start(&handles[i], on_signal, signal_numbers[i]);
        }
    }
}

/* It holds the keys, so it lies in pages that are not swapped out. NULL: no memory. */
static dp_daemon *make_daemon(void)
{
    dp_daemon *const daemon = sodium_malloc(sizeof *daemon);
    if (daemon == NULL) {
        return NULL;
    }
    /* sodium_malloc tries to lock its pages, but does not report a failure. */
    if (sodium_mlock(daemon, sizeof *daemon) != 0) {
        dp_log(DP_LOG_WARN, "keys.unlocked",
               "msg=\"the node's keys may be swapped out: their memory cannot be locked (%s); "
               "raise ulimit -l, or LimitMEMLOCK= of the unit\"",
               strerror(errno)); /* NOLINT(concurrency-mt-unsafe): one thread */
    }
    memset(daemon, 0, sizeof *daemon);
    return daemon;
}

/* False: a signal that ends the daemon came while it closed. From here on such a signal ends it
 * before the next life begins, and SIGHUP is ignored until that one watches it. */
static bool may_live_again(dp_daemon *daemon, uv_signal_t handles[SIGNALS])
{
    signal(SIGHUP, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    for (int i = 0; i < SIGNALS; i++) {
        uv_ref((uv_handle_t *)&handles[i]);
    }
    uv_run(daemon->loop, UV_RUN_NOWAIT); /* for a signal that waits in the loop's pipe */
    return n_stops == 0;
}

static int run_daemon(dp_daemon *daemon, bool *again)
{
    static dp_run_identity facts;
    static uv_signal_t signals[SIGNALS]; /* They stay open: to the end signals must be harmless. */
    dp_why why = {""};
    bool member = false;
    const dp_status status = start(daemon, &facts, &member, &why);
    if (status != DP_OK) {
        fprintf(stderr, "dpnoded: %s\n", why.text[0] != '\0' ? why.text : dp_status_text(status));
        close_all(daemon);
        return exit_of(status);
    }
    watch_signals(daemon, signals);
    dp_event_log_add(daemon->event_log, DP_LOG_INFO, "daemon.started", 0, NULL, "dpnoded %s, %s",
                     DP_VERSION_TEXT, member ? facts.name : "idle");
    uv_run(daemon->loop, UV_RUN_DEFAULT);
    for (int i = 0; i < SIGNALS; i++) {
        uv_unref((uv_handle_t *)&signals[i]); /* The loop of close_all does not wait for them. */
    }
    close_all(daemon);
    *again = daemon->again && may_live_again(daemon, signals);
    return daemon->exit_status;
}

static int run(dp_config_live *live, int argc, char **argv, dp_log_sink *log, bool *again)
{
    dp_daemon *const daemon = dp_crypto_start() == DP_OK ? make_daemon() : NULL;
    if (daemon == NULL) {
        fprintf(stderr, "dpnoded: libsodium failed to start, or memory ran out\n");
        return EXIT_SOFTWARE;
    }
    daemon->loop = uv_default_loop();
    daemon->live = live;
    daemon->config = &live->now;
    daemon->argc = argc;
    daemon->argv = argv;
    daemon->log = log;
    daemon->started_ms = dp_boot_ms();
    const int exit_status = run_daemon(daemon, again);
    sodium_free(daemon); /* Wipes it. */
    return exit_status;
}

/* No core file and no other process of this user can read the keys. Sanitizers and debuggers read
 * the process, so builds for them allow it. */
static void hide_memory(void)
{
    const struct rlimit no_core = {0, 0};
    DP_IGNORE(setrlimit(RLIMIT_CORE, &no_core) != 0); /* Best effort, as is the next. */
#if !defined(DP_PARANOID) && !defined(__SANITIZE_ADDRESS__)
    DP_IGNORE(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0);
#endif
}

/* A link has two descriptors or more, and the usual soft limit is for programs that call select. */
static void allow_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        DP_IGNORE(setrlimit(RLIMIT_NOFILE, &files) != 0); /* Then it keeps the limit that it had. */
    }
}

int main(int argc, char **argv)
{
    static dp_config config;
    static dp_config_live live;
    dp_why why = {""};
    bool help = false;
    bool version = false;
    umask(S_IRWXG | S_IRWXO); /* The store, its log and later files hold secrets. */
    signal(SIGHUP, SIG_IGN);  /* until it is watched: it must not end a start */
    signal(SIGPIPE, SIG_IGN);
    /* A limit of file sizes must be an error of the write, not a signal. */
    signal(SIGXFSZ, SIG_IGN);
    hide_memory();
    allow_files();
    const bool check = argc > 1 && strcmp(argv[1], "--check") == 0;
    argc -= check;
    argv += check;
    const dp_status read = dp_config_read(&config, argc, argv, &help, &version, &why);
    if (read == DP_BADARG) {
        fprintf(stderr, "dpnoded: %s\n", why.text);
        return EXIT_USAGE;
    }
    if (read != DP_OK) {
        fprintf(stderr, "dpnoded: %s the configuration file is not valid: %s\n", "E0133", why.text);
        return EXIT_CONFIG;
    }
    /* The trainer and scripts must not know it. */
    DP_IGNORE(unsetenv("DPNODE_TOKEN") != 0); /* NOLINT(concurrency-mt-unsafe): one thread */
    if (config.machine_root[0] != '\0') {     /* Trainers read their sensors there, too. */
        DP_IGNORE(setenv("DPNODE_MACHINE_ROOT", config.machine_root, 1) != 0); /* NOLINT */
    }
    if (help) {
        print_help();
        return 0;
    }
    if (version) {
        printf("dpnoded %s\n", DP_VERSION_TEXT);
        return 0;
    }
    if (dp_transport_check(config.listen, &why) != DP_OK) {
        fprintf(stderr, "dpnoded: --listen: %s\n", why.text);
        return EXIT_USAGE;
    }
    if (check) {
        return dp_check_tell(&config, stdout) ? 0 : EXIT_IO;
    }
    dp_log_sink *log = NULL;
    const dp_status status = set_log(&config, &log, &why);
    if (status != DP_OK) {
        fprintf(stderr, "dpnoded: %s\n", why.text[0] != '\0' ? why.text : dp_status_text(status));
        return exit_of(status);
    }
    bool again = false;
    dp_config_live_init(&live, &config);
    int exit_status = run(&live, argc, argv, log, &again);
    dp_log_sink_close(log);
    if (again) {
        execv("/proc/self/exe", argv);
        exit_status = EXIT_TEMPORARY; /* The supervisor starts it again. */
    }
    return exit_status;
}
