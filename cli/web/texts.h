/* Text that the model of each checkpoint writes after one prompt: by `dpnode sample`, as a process
 * of its own, so that the pages are served meanwhile. One process at a time, and after each a rest
 * of DP_TEXTS_SHARE times its duration. One thread. */
#ifndef DP_CLI_WEB_TEXTS_H
#define DP_CLI_WEB_TEXTS_H

#include <jansson.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "cli/paths.h"

enum {
    DP_TEXTS_KEPT = 8,
    DP_TEXTS_TOKENS = 80,
    DP_TEXTS_SHARE = 20,
    DP_TEXTS_BYTES_MAX = 64 * 1024,   /* of the answer of one process */
    DP_TEXTS_MOST_MS = 10 * 60 * 1000 /* a process that takes longer is ended */
};

typedef struct dp_texts {
    const char *prompt;            /* borrowed */
    const char *socket;            /* of the daemon, borrowed */
    char program[DP_CLI_PATH_MAX]; /* dpnode */
    json_t *list;                  /* [{"round","time_ms","text"}], oldest first */
    long long round;               /* of the newest checkpoint that was asked for; below 0: none */
    pid_t pid;                     /* 0: none runs */
    int fd;
    dp_buf answer;
    uint64_t begun_ms;
    uint64_t next_ms; /* not before */
} dp_texts;

/* DP_NOMEM. */
DP_MUST dp_status dp_texts_open(dp_texts *texts, const char *socket, const char *prompt);
/* Ends a process that runs. */
void dp_texts_close(dp_texts *texts);
/* Takes an answer that has come, or asks for the text of a new checkpoint. status: the daemon's;
 * NULL: none. now_ms: of a clock that only rises; time_ms: unix. The new text, lent until the next
 * call, or NULL. A text that cannot be made is left out. */
const json_t *dp_texts_look(dp_texts *texts, const json_t *status, uint64_t now_ms,
                            uint64_t time_ms);

#endif
