#include "daemon/control/check.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "base/alloc.h"
#include "base/disk.h"
#include "base/rng.h"
#include "base/version.h"
#include "daemon/host/tool.h"
#include "daemon/net/transport.h"
#include "store/dir.h"
#include "store/object.h"

enum {
    SMALL_BYTES = 4 << 20,
    LARGE_BYTES = 32 << 20, /* written only if the small object took less than QUICK_NS */
    QUICK_NS = 500 * 1000 * 1000,
    TRIES = 3,
    ROWS = 15,
    KEY_BYTES_MAX = 4096,
    ROW_BYTES = 200 /* about the size of a vote */
};

/* A value is one line. */
static void say(FILE *out, const char *key, const char *value)
{
    fprintf(out, "%s ", key);
    for (const char *at = value; *at != '\0'; at++) {
        putc(*at == '\n' ? '?' : *at, out);
    }
    putc('\n', out);
}

static void say_number(FILE *out, const char *key, uint64_t value)
{
    fprintf(out, "%s %" PRIu64 "\n", key, value);
}

static void say_error(FILE *out, const char *key, const char *path, int error)
{
    char text[DP_CONFIG_PATH_MAX + 128];
    snprintf(text, sizeof text, "%s: %s", path,
             strerror(error)); /* NOLINT(concurrency-mt-unsafe): one thread */
    say(out, key, text);
}

static void say_settings(FILE *out, const dp_config *config)
{
    say(out, "version", DP_VERSION_TEXT);
    say(out, "dir", config->dir);
    say(out, "listen", config->listen);
    if (config->advertise[0] != '\0') {
        say(out, "advertise", config->advertise);
    }
    say(out, "backend", config->backend);
    say_number(out, "threads", config->threads);
    say_number(out, "processes", config->processes);
    say_number(out, "ballast", config->ballast);
    say_number(out, "margin", config->margin);
    say_number(out, "store_max", config->store_max);
}

/* ---- the disk ---- */

/* The directory, or its nearest existing parent. */
static void existing(const char *dir, char path[DP_CONFIG_PATH_MAX])
{
    struct stat found;
    snprintf(path, DP_CONFIG_PATH_MAX, "%s", dir);
    /* Each iteration removes one name from the path. */
    while (stat(path, &found) != 0 && errno == ENOENT) {
        char *const slash = strrchr(path, '/');
        if (slash == NULL) {
            snprintf(path, DP_CONFIG_PATH_MAX, ".");
            return;
        }
        slash[slash == path] = '\0';
    }
}

static int ascending(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* *took: nanoseconds to write an object of that size durably. Random bytes, so that no layer can
 * compress them. */
static dp_status write_object(dp_store *store, uint8_t *bytes, size_t size, uint64_t *took)
{
    dp_rng rng;
    const dp_pin pin = {.kind = DP_PIN_DATA, .round = size};
    dp_rng_init(&rng, uv_hrtime());
    for (size_t i = 0; i + sizeof(uint64_t) <= size; i += sizeof(uint64_t)) {
        const uint64_t word = dp_rng_next(&rng);
        memcpy(bytes + i, &word, sizeof word);
    }
    const uint64_t begin = uv_hrtime();
    DP_TRY(dp_object_put(store, dp_view_of(bytes, size), &pin, NULL));
    *took = uv_hrtime() - begin;
    return DP_OK;
}

static dp_status write_rows(dp_store *store, uint64_t *median_ns)
{
    uint64_t took[ROWS];
    static const uint8_t row[ROW_BYTES] = {1};
    for (size_t i = 0; i < ROWS; i++) {
        const uint64_t begin = uv_hrtime();
        DP_TRY(dp_store_put(store, "doctor", dp_view_of(row, sizeof row)));
        took[i] = uv_hrtime() - begin;
    }
    qsort(took, ROWS, sizeof took[0], ascending);
    *median_ns = took[ROWS / 2];
    return DP_OK;
}

static dp_status measure(FILE *out, const char *folder, bool room)
{
    const dp_store_options options = {.reserve_bytes = 0};
    dp_store *store = NULL;
    dp_why why = {{0}};
    uint64_t took = 0;
    uint64_t commit = 0;
    size_t size = SMALL_BYTES;
    uint8_t *const bytes = dp_alloc(1, LARGE_BYTES);
    if (bytes == NULL) {
        return DP_NOMEM;
    }
    dp_status status = dp_store_open(&store, folder, &options, NULL, &why);
    if (status == DP_OK) {
        status = write_rows(store, &commit);
    }
    for (int i = 0; i < TRIES && status == DP_OK && (i == 0 || took >= QUICK_NS); i++) {
        uint64_t again = 0;
        status = write_object(store, bytes, size, &again);
        /* Other programs may have written meanwhile. */
        took = i == 0 || again < took ? again : took;
    }
    if (status == DP_OK && room && took < QUICK_NS) {
        size = LARGE_BYTES;
        status = write_object(store, bytes, size, &took);
    }
    dp_store_close(store);
    dp_free(bytes);
    DP_TRY(status);
    say_number(out, "write_bytes_s",
               (uint64_t)((double)size * 1e9 / (double)(took > 0 ? took : 1)));
    say_number(out, "commit_us", commit / 1000);
    return DP_OK;
}

/* Reports the files that a start would refuse: a directory or a key to which others than its user
 * have access. */
static void say_private(FILE *out, const char *dir)
{
    static const char *const keys[] = {"identity.key", "root.key"};
    dp_why why = {{0}};
    if (dp_dir_check_private(dir, &why) != DP_OK) {
        say(out, "private_why", why.text);
        return;
    }
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        dp_buf file;
        dp_buf_init(&file, KEY_BYTES_MAX);
        if (dp_dir_read_secret(dir, keys[i], &file, &why) == DP_DENIED) {
            say(out, "key_why", why.text);
        }
        if (file.data != NULL) {
            sodium_memzero(file.data, file.size);
        }
        dp_buf_close(&file);
    }
}

static void say_disk(FILE *out, const dp_config *config)
{
    char base[DP_CONFIG_PATH_MAX];
    char folder[DP_CONFIG_PATH_MAX + 32];
    uint64_t free_bytes = 0;
    dp_why why = {{0}};
    existing(config->dir, base);
    say_number(out, "dir_exists", strcmp(base, config->dir) == 0);
    if (!config->network_dir && dp_dir_check_disk(config->dir, &why) != DP_OK) {
        say(out, "network", why.text);
    }
    say_private(out, config->dir);
    snprintf(folder, sizeof folder, "%s/doctor-XXXXXX", base);
    if (mkdtemp(folder) == NULL) {
        say_error(out, "dir_why", base, errno);
        return;
    }
    DP_IGNORE(!dp_disk_free(base, &free_bytes));
    say_number(out, "free", free_bytes);
    const bool room = free_bytes / 4 > LARGE_BYTES;
    const dp_status status = free_bytes / 4 > SMALL_BYTES ? measure(out, folder, room) : DP_NOSPACE;
    if (status != DP_OK) {
        say(out, "disk_why", dp_status_text(status));
    }
    dp_tool_folder_remove(folder);
}

bool dp_check_tell(const dp_config *config, FILE *out)
{
    dp_why why = {{0}};
    sigset_t all;
    sigset_t before;
    say_settings(out, config);
    /* Ctrl-C waits until the folder is removed, which takes seconds, and then ends the program. */
    sigfillset(&all);
    DP_IGNORE(sigprocmask(SIG_BLOCK, &all, &before) != 0);
    say_disk(out, config);
    DP_IGNORE(sigprocmask(SIG_SETMASK, &before, NULL) != 0);
    if (dp_transport_try(config->listen, &why) != DP_OK) {
        say(out, "listen_why", why.text);
    }
    return fflush(out) == 0 && ferror(out) == 0;
}
