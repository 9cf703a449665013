#include "compute/corpus/foreign_data.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "compute/machine/files.h"

enum { MAGIC_BYTES_MAX = 6 };

typedef struct format {
    const char *magic;
    const char *is;
    const char *command; /* with the path behind it */
} format;

#define BY_PYTHON "python3 -m dpnode.dataset"

static const format formats[] = {
    {"PAR1", "Parquet", BY_PYTHON},
    {"ARROW1", "an Arrow file", BY_PYTHON},
    {"\xff\xff\xff\xff", "a stream of Arrow", BY_PYTHON},
    {"\x1f\x8b", "compressed by gzip", "zcat"},
    {"\x28\xb5\x2f\xfd", "compressed by zstd", "zstdcat"},
    {"\xfd\x37zXZ", "compressed by xz", "xzcat"},
};
enum { FORMATS = sizeof formats / sizeof formats[0] };

static dp_status refuse(const char *path, const char *is, const char *command, dp_why *why)
{
    return dp_why_set(why, DP_UNSUPPORTED, "%.160s is %s; make %s of it: %s %.160s > data.%s", path,
                      is, strcmp(command, BY_PYTHON) == 0 ? "JSON lines" : "a plain file", command,
                      path, strcmp(command, BY_PYTHON) == 0 ? "jsonl" : "txt");
}

static bool holds(const char *folder, const char *name)
{
    char path[PATH_MAX];
    const int size = snprintf(path, sizeof path, "%s/%s", folder, name);
    return size > 0 && (size_t)size < sizeof path && access(path, F_OK) == 0;
}

/* Most such files of the hub are an array, or JSON lines with a short name. */
static dp_status check_json(const char *path, char first, dp_why *why)
{
    const char *const dot = strrchr(path, '.');
    if (dot == NULL || strcmp(dot, ".json") != 0 || (first != '{' && first != '[')) {
        return DP_OK;
    }
    return dp_why_set(why, DP_UNSUPPORTED,
                      first == '['
                          ? "%.160s is a JSON array, and would be learned as text with its "
                            "syntax; make JSON lines of it: jq -c '.[]' %.160s > data.jsonl"
                          : "%.160s is JSON, and would be learned as text with its syntax; "
                            "JSON lines need another name: cp %.160s data.jsonl",
                      path, path);
}

dp_status dp_foreign_data_check(const char *path, bool told, dp_why *why)
{
    char head[MAGIC_BYTES_MAX + 1] = {0};
    int fd = -1;
    if (dp_folder_is(path)) {
        return holds(path, "dataset_dict.json") || holds(path, "dataset_info.json")
                   ? refuse(path, "a folder of the datasets library", BY_PYTHON, why)
                   : DP_OK;
    }
    if (dp_file_is_pipe(path) || dp_file_open(path, &fd, NULL) != DP_OK) {
        return DP_OK;
    }
    const ssize_t size = pread(fd, head, MAGIC_BYTES_MAX, 0);
    close(fd);
    for (size_t i = 0; i < FORMATS; i++) {
        const size_t n = strlen(formats[i].magic);
        if (size >= (ssize_t)n && memcmp(head, formats[i].magic, n) == 0) {
            return refuse(path, formats[i].is, formats[i].command, why);
        }
    }
    return told ? DP_OK : check_json(path, head[strspn(head, " \t\r\n")], why);
}
