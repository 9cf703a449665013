/* The newest checkpoint of the run as files for a tool of dpnode-worker, in a folder of their own:
 * manifest, state, and tokenizer or table of tensors. */
#ifndef DP_DAEMON_MODEL_MODEL_FILES_H
#define DP_DAEMON_MODEL_MODEL_FILES_H

#include "daemon/host/daemon.h"
#include "daemon/host/run_identity.h"
#include "daemon/host/store_thread.h"
#include "store/ckpt.h"

#define DP_MODEL_FILES_MANIFEST "manifest"
#define DP_MODEL_FILES_STATE "state"
#define DP_MODEL_FILES_TOKENIZER "tokenizer.json"
#define DP_MODEL_FILES_BASE "base"

enum { DP_MODEL_FILES_PATH_MAX = DP_CONFIG_PATH_MAX + 64 };

typedef struct dp_model_files {
    char folder[DP_CONFIG_PATH_MAX];
    uint64_t margin_bytes; /* stay free on the disk */
    uint64_t round;        /* of the state, once it is written */
    dp_run_identity facts;
    dp_hash tokenizer; /* or the table of tensors */
    dp_hash init;      /* zero: drawn from the seed */
    /* below adapters; zero, as after open: there is none, or it is not needed */
    dp_hash base;
    bool first; /* no round has been decided */
    /* the writing; store thread */
    uint32_t step;           /* file being written */
    bool goes_on;            /* a part of it is written */
    bool more;               /* call dp_model_files_write again */
    bool has_state;          /* of a checkpoint */
    const char *name;        /* of the file */
    int fd;                  /* -1: no file is open */
    dp_ckpt_reading reading; /* its pieces are those of every file that is an object */
} dp_model_files;

/* Makes the folder. The daemon is in a run whose manifest is here. Loop thread. DP_IO. */
DP_MUST dp_status dp_model_files_open(dp_model_files *files, const dp_daemon *daemon);
/* Removes the folder with all files in it. */
void dp_model_files_close(dp_model_files *files);
/* The path of one of the files, or of another one there (dp_tool_file). */
void dp_model_files_path(const dp_model_files *files, const char *name,
                         char path[DP_MODEL_FILES_PATH_MAX]);
/* Writes a piece of the files (store/pieces.h); sets more unless they are complete, and then wants
 * to be called again. Before the first checkpoint the state is that of the weights that the run
 * began from, if it has them as an object. Store thread. DP_NOTFOUND: there is no checkpoint;
 * DP_NOSPACE, also if less than the margin would stay free; DP_IO, DP_NOMEM, and what reading the
 * store gives. */
DP_MUST dp_status dp_model_files_write(dp_model_files *files, dp_store *store);

#endif
