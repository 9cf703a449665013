#include "compute/corpus/chat_files.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "compute/machine/files.h"
#include "compute/template/chat.h"

const char *const dp_chat_file_names[DP_CHAT_FILES] = {"tokenizer_config.json",
                                                       "chat_template.jinja"};

dp_status dp_chat_files_read(const char *folder, dp_buf files[DP_CHAT_FILES], dp_why *why)
{
    for (size_t i = 0; i < DP_CHAT_FILES; i++) {
        char path[PATH_MAX];
        const int size = snprintf(path, sizeof path, "%s/%s", folder, dp_chat_file_names[i]);
        if (size < 0 || (size_t)size >= sizeof path) {
            return dp_why_set(why, DP_BADARG, "the path %.300s is too long", folder);
        }
        if (access(path, F_OK) == 0) {
            DP_TRY(dp_file_read(path, &files[i], why));
        }
    }
    return DP_OK;
}

static void open_files(dp_buf files[DP_CHAT_FILES])
{
    for (size_t i = 0; i < DP_CHAT_FILES; i++) {
        dp_buf_init(&files[i], DP_CHAT_CONFIG_MAX);
    }
}

static void close_files(dp_buf files[DP_CHAT_FILES])
{
    for (size_t i = 0; i < DP_CHAT_FILES; i++) {
        dp_buf_close(&files[i]);
    }
}

dp_status dp_chat_files_source(const char *folder, dp_buf *out, dp_why *why)
{
    dp_buf files[DP_CHAT_FILES];
    open_files(files);
    dp_status status = dp_chat_files_read(folder, files, why);
    if (status == DP_OK) {
        status = dp_chat_source(dp_buf_view(&files[0]), dp_buf_view(&files[1]), out, why);
    }
    close_files(files);
    return status;
}

dp_status dp_chat_files_copy(const char *from, const char *to, dp_why *why)
{
    dp_buf files[DP_CHAT_FILES];
    open_files(files);
    dp_status status = dp_chat_files_read(from, files, why);
    for (size_t i = 0; i < DP_CHAT_FILES && status == DP_OK; i++) {
        if (files[i].size > 0) {
            status = dp_file_write(to, dp_chat_file_names[i], dp_buf_view(&files[i]), why);
        }
    }
    close_files(files);
    return status;
}
