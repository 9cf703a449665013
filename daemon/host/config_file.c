/* The configuration file of the daemon: lines `name = value` over the names of the settings. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/settings/setting_lines.h"
#include "daemon/host/config.h"

typedef struct reading {
    dp_config *config;
    const char *path;
    dp_why *why;
    dp_setting_lines lines;
    uint16_t set_by[DP_CONFIG_SETTINGS_MAX]; /* the line that has set each; 0: none */
} reading;

static dp_status refuse(const reading *self, const char *at, const char *sentence)
{
    return dp_why_set(self->why, DP_BADMSG, "%s:%u:%u: %s", self->path, self->lines.number,
                      (unsigned)(at - self->lines.line) + 1, sentence);
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

/* Sets the setting of the line. */
static dp_status set(reading *self, int index)
{
    char text[DP_CONFIG_VALUE_MAX];
    dp_why wrong = {""};
    size_t count = 0;
    const dp_setting *const setting = &dp_settings(&count)[index];
    if (self->lines.value_size >= sizeof text) {
        return refuse(self, self->lines.value, "the value is longer than any");
    }
    memcpy(text, self->lines.value, self->lines.value_size);
    text[self->lines.value_size] = '\0';
    if (dp_config_set(self->config, setting->name, text, &wrong) != DP_OK) {
        return refuse(self, self->lines.value, wrong.text);
    }
    self->config->from[index] = DP_SETTING_FILE;
    self->config->line[index] = (uint16_t)self->lines.number;
    self->set_by[index] = (uint16_t)self->lines.number;
    return DP_OK;
}

static dp_status take_line(reading *self)
{
    char text[80];
    const char *const name = self->lines.name;
    const int index = dp_setting_find(name, self->lines.name_size);
    if (index < 0) {
        return unknown(self, name, self->lines.name_size);
    }
    if (index == dp_setting_find("config", strlen("config"))) {
        return refuse(self, name, "a configuration file cannot name another one");
    }
    if (self->set_by[index] != 0) {
        snprintf(text, sizeof text, "line %u has this setting already", self->set_by[index]);
        return refuse(self, name, text);
    }
    return set(self, index);
}

dp_status dp_config_file_parse(dp_config *config, const char *path, dp_view bytes, dp_why *why)
{
    const char *const text = (const char *)bytes.data;
    reading self = {.config = config,
                    .path = path,
                    .why = why,
                    .lines = {.next = text, .end = text + bytes.size}};
    if (bytes.size > DP_SETTING_FILE_MAX) {
        return dp_why_set(why, DP_BADMSG, "%s:1:1: it has more than 64 KiB", path);
    }
    while (dp_setting_lines_next(&self.lines) && self.lines.number <= UINT16_MAX) {
        DP_TRY(take_line(&self));
    }
    if (self.lines.number > UINT16_MAX) {
        return dp_why_set(why, DP_BADMSG, "%s:65536:1: too many lines", path);
    }
    return self.lines.wrong == NULL ? DP_OK : refuse(&self, self.lines.wrong_at, self.lines.wrong);
}

dp_status dp_config_file_read(dp_config *config, const char *path, dp_why *why)
{
    char *const bytes = dp_alloc(1, DP_SETTING_FILE_MAX + 1);
    size_t size = 0;
    if (bytes == NULL) {
        return dp_why_set(why, DP_NOMEM, "out of memory");
    }
    dp_status status = dp_setting_file_load(path, bytes, &size, why);
    if (status == DP_OK) {
        status = dp_config_file_parse(config, path, dp_view_of(bytes, size), why);
    }
    dp_free(bytes);
    return status;
}
