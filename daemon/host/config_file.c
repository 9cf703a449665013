/* The configuration file of the daemon: lines `name = value` over the names of the settings. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "daemon/host/config.h"

typedef struct reading {
    dp_config *config;
    const char *path;
    dp_why *why;
    const char *line; /* of the file; ends at end */
    const char *end;
    uint16_t number;
    uint16_t lines[DP_CONFIG_SETTINGS_MAX]; /* that set each; 0: none */
} reading;

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static dp_status refuse(const reading *self, const char *at, const char *sentence)
{
    return dp_why_set(self->why, DP_BADMSG, "%s:%u:%u: %s", self->path, self->number,
                      (unsigned)(at - self->line) + 1, sentence);
}

static dp_status unknown(const reading *self, const char *name, size_t size)
{
    char text[160];
    const char *const nearest = dp_setting_nearest(name, size);
    const int shown = (int)(size < 40 ? size : 40);
    if (nearest != NULL) {
        snprintf(text, sizeof text, "unknown setting \"%.*s\"; did you mean %s?", shown, name,
                 nearest);
    } else {
        snprintf(text, sizeof text, "unknown setting \"%.*s\"; see dpnoded --help", shown, name);
    }
    return refuse(self, name, text);
}

/* Sets one; value ends at end. */
static dp_status set(reading *self, int index, const char *value, const char *end)
{
    char text[DP_CONFIG_VALUE_MAX];
    dp_why wrong = {""};
    size_t count = 0;
    const size_t size = (size_t)(end - value);
    const dp_setting *const setting = &dp_settings(&count)[index];
    if (size >= sizeof text) {
        return refuse(self, value, "the value is longer than any");
    }
    memcpy(text, value, size);
    text[size] = '\0';
    if (dp_config_set(self->config, setting->name, text, &wrong) != DP_OK) {
        return refuse(self, value, wrong.text);
    }
    self->config->from[index] = DP_SETTING_FILE;
    self->config->line[index] = self->number;
    self->lines[index] = self->number;
    return DP_OK;
}

static dp_status read_line(reading *self)
{
    char text[80];
    const char *name = self->line;
    const char *end = self->end;
    for (const char *c = name; c < end; c++) {
        if ((unsigned char)*c < ' ' && !is_space(*c)) {
            return refuse(self, c, "a control character");
        }
    }
    while (name < end && is_space(*name)) {
        name++;
    }
    while (end > name && is_space(end[-1])) {
        end--;
    }
    if (name == end || *name == '#') {
        return DP_OK;
    }
    const char *const equals = memchr(name, '=', (size_t)(end - name));
    const char *name_end = equals != NULL ? equals : end;
    while (name_end > name && is_space(name_end[-1])) {
        name_end--;
    }
    const size_t size = (size_t)(name_end - name);
    const int index = dp_setting_find(name, size);
    if (equals == NULL) {
        return refuse(self, end, "a line looks like: upload-max = 20");
    }
    if (index < 0) {
        return unknown(self, name, size);
    }
    if (index == dp_setting_find("config", strlen("config"))) {
        return refuse(self, name, "a configuration file cannot name another one");
    }
    if (self->lines[index] != 0) {
        snprintf(text, sizeof text, "line %u has this setting already", self->lines[index]);
        return refuse(self, name, text);
    }
    const char *value = equals + 1;
    while (value < end && is_space(*value)) {
        value++;
    }
    return set(self, index, value, end);
}

/* *size: its bytes, at most size_max. */
static dp_status load(const char *path, char *bytes, size_t size_max, size_t *size, dp_why *why)
{
    struct stat about;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return dp_why_set(why, errno == ENOENT || errno == ENOTDIR ? DP_NOTFOUND : DP_IO,
                          "%s: the configuration file cannot be read: %s", path,
                          strerror(errno)); /* NOLINT(concurrency-mt-unsafe): one thread */
    }
    dp_status status = DP_OK;
    *size = 0;
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
        status = dp_why_set(why, DP_BADMSG, "%s:1:1: it is not a file", path);
    }
    while (status == DP_OK && *size < size_max) {
        const ssize_t got = read(fd, bytes + *size, size_max - *size);
        if (got == 0) {
            break;
        }
        if (got < 0 && errno != EINTR) {
            status = dp_why_set(why, DP_IO, "%s: the configuration file cannot be read: %s", path,
                                strerror(errno)); /* NOLINT(concurrency-mt-unsafe): one thread */
        }
        *size += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    return status;
}

dp_status dp_config_file_parse(dp_config *config, const char *path, dp_view bytes, dp_why *why)
{
    reading self = {.config = config, .path = path, .why = why};
    if (bytes.size > DP_CONFIG_FILE_MAX) {
        return dp_why_set(why, DP_BADMSG, "%s:1:1: it has more than 64 KiB", path);
    }
    const char *const text = (const char *)bytes.data;
    const char *const end = text + bytes.size;
    for (const char *at = text; at < end; at = self.end + 1) {
        const char *const broken = memchr(at, '\n', (size_t)(end - at));
        self.line = at;
        self.end = broken != NULL ? broken : end;
        if (self.number == UINT16_MAX) {
            return dp_why_set(why, DP_BADMSG, "%s:65536:1: too many lines", path);
        }
        self.number++;
        DP_TRY(read_line(&self));
    }
    return DP_OK;
}

dp_status dp_config_file_read(dp_config *config, const char *path, dp_why *why)
{
    char *const bytes = dp_alloc(1, DP_CONFIG_FILE_MAX + 1);
    size_t size = 0;
    if (bytes == NULL) {
        return dp_why_set(why, DP_NOMEM, "out of memory");
    }
    dp_status status = load(path, bytes, DP_CONFIG_FILE_MAX + 1, &size, why);
    if (status == DP_OK) {
        status = dp_config_file_parse(config, path, dp_view_of(bytes, size), why);
    }
    dp_free(bytes);
    return status;
}
