#include "base/settings/setting_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool refuse(dp_setting_lines *self, const char *at, const char *sentence)
{
    self->wrong = sentence;
    self->wrong_at = at;
    return false;
}

/* Takes the line up to end apart. False: it is blank, a comment, or has a mistake. */
static bool take_line(dp_setting_lines *self, const char *end)
{
    const char *name = self->line;
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
        return false;
    }
    const char *const equals = memchr(name, '=', (size_t)(end - name));
    if (equals == NULL) {
        return refuse(self, end, "a line looks like: upload-max = 20");
    }
    const char *name_end = equals;
    while (name_end > name && is_space(name_end[-1])) {
        name_end--;
    }
    const char *value = equals + 1;
    while (value < end && is_space(*value)) {
        value++;
    }
    self->name = name;
    self->name_size = (size_t)(name_end - name);
    self->value = value;
    self->value_size = (size_t)(end - value);
    return true;
}

bool dp_setting_lines_next(dp_setting_lines *lines)
{
    while (lines->next < lines->end && lines->wrong == NULL) {
        const char *const broken = memchr(lines->next, '\n', (size_t)(lines->end - lines->next));
        const char *const end = broken != NULL ? broken : lines->end;
        lines->line = lines->next;
        lines->next = broken != NULL ? broken + 1 : lines->end;
        lines->number++;
        if (take_line(lines, end)) {
            return true;
        }
    }
    return false;
}

dp_status dp_setting_file_load(const char *path, char bytes[DP_SETTING_FILE_MAX + 1], size_t *size,
                               dp_why *why)
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
    while (status == DP_OK && *size < DP_SETTING_FILE_MAX + 1) {
        const ssize_t got = read(fd, bytes + *size, DP_SETTING_FILE_MAX + 1 - *size);
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
