/* The command line of the trainer program, made from the daemon's settings. */
#ifndef DP_DAEMON_TRAINER_TRAINER_WORDS_H
#define DP_DAEMON_TRAINER_TRAINER_WORDS_H

#include "daemon/trainer/trainer_process.h"

enum { DP_TRAINER_WORDS_MAX = 22, DP_TRAINER_NUMBER_MAX = 24 };

typedef struct dp_trainer_words {
    char *at[DP_TRAINER_WORDS_MAX + 1]; /* ends with NULL; points into its sources */
    size_t n;
    char numbers[DP_TRAINER_WORDS_MAX][DP_TRAINER_NUMBER_MAX];
} dp_trainer_words;

/* The caller keeps program, backend ("": none requested) and config, which must live as long. fd:
 * the trainer's end of the socket. */
void dp_trainer_say(dp_trainer_words *all, const dp_trainer_process_config *config, char *program,
                    char *backend, int fd);

#endif
