/* The files of a chat template beside a tokenizer, as Hugging Face names them:
 * tokenizer_config.json and chat_template.jinja. Either may be absent. */
#ifndef DP_COMPUTE_CORPUS_CHAT_FILES_H
#define DP_COMPUTE_CORPUS_CHAT_FILES_H

#include "base/bytes.h"

enum { DP_CHAT_FILES = 2, DP_CHAT_SOURCE_MAX = 16 << 20 /* bytes of a template */ };

/* Their names, the configuration first. */
extern const char *const dp_chat_file_names[DP_CHAT_FILES];

/* Appends what is in folder to the two buffers, whose max limits it. DP_BADARG (path too long),
 * DP_IO, DP_TOOBIG, DP_NOMEM. */
DP_MUST dp_status dp_chat_files_read(const char *folder, dp_buf files[DP_CHAT_FILES], dp_why *why);
/* Copies those that are in from to another folder, which exists. The statuses of the reader, and
 * DP_NOSPACE. */
DP_MUST dp_status dp_chat_files_copy(const char *from, const char *to, dp_why *why);
/* Appends the source of the template in folder, for a program that runs it itself. DP_NOTFOUND:
 * there is none; the statuses of the reader, and DP_BADMSG. */
DP_MUST dp_status dp_chat_files_source(const char *folder, dp_buf *out, dp_why *why);

#endif
