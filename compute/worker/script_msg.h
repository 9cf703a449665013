/* Messages between a script and the worker (docs/TRAINER.md): their numbers, and packets read and
 * written. Knows no socket. */
#ifndef DP_COMPUTE_WORKER_SCRIPT_MSG_H
#define DP_COMPUTE_WORKER_SCRIPT_MSG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum {
    DP_SCRIPT_VERSION = 1,
    DP_SCRIPT_PACKET_MAX = 65536,
    DP_SCRIPT_DRAW_MAX = 8000, /* samples in one answer */
    DP_SCRIPT_HEADER_BYTES = 4096
};

typedef enum dp_script_kind {
    DP_SCRIPT_HELLO = 1,
    DP_SCRIPT_WELCOME,
    DP_SCRIPT_REFUSED,
    DP_SCRIPT_LOOK,
    DP_SCRIPT_DO,
    DP_SCRIPT_DONE,
    DP_SCRIPT_DRAW,
    DP_SCRIPT_DRAWN,
    DP_SCRIPT_READ,
    DP_SCRIPT_GIVEN
} dp_script_kind;

typedef enum dp_script_what {
    DP_SCRIPT_GO,
    DP_SCRIPT_ASSIGN,
    DP_SCRIPT_ADD,
    DP_SCRIPT_COPY,
    DP_SCRIPT_PAUSED
} dp_script_what;

typedef enum dp_script_refusal {
    DP_SCRIPT_TAKEN = 1,
    DP_SCRIPT_OTHER_VERSION,
    DP_SCRIPT_OTHER_TENSORS,
    DP_SCRIPT_OTHER_USER,
    DP_SCRIPT_ENDS,
    DP_SCRIPT_ODD,
    DP_SCRIPT_NOT_FINITE,
    DP_SCRIPT_NOT_DRAWN,
    DP_SCRIPT_SLOW,
    DP_SCRIPT_NO_MEMORY
} dp_script_refusal;

/* Bits of the word in the shared memory. */
enum {
    DP_SCRIPT_WORD_COPY = 1,
    DP_SCRIPT_WORD_ADD = 2,
    DP_SCRIPT_WORD_ASSIGN = 4,
    DP_SCRIPT_WORD_PAUSED = 8,
    DP_SCRIPT_WORD_OVER = 16 /* the session has ended; the next answer says why */
};

/* The start of the shared memory. Each number is aligned and has one writer. */
typedef struct dp_script_header {
    _Atomic uint32_t word; /* worker */
    uint32_t unused;
    _Atomic uint64_t round;  /* worker */
    _Atomic uint64_t tokens; /* worker */
    _Atomic uint64_t theta;  /* worker */
    _Atomic double rate;     /* worker */
    uint64_t space[3];
    _Atomic uint64_t steps;   /* script */
    _Atomic uint64_t samples; /* script */
    _Atomic double loss;      /* script */
} dp_script_header;

/* A question of a script; fields that its kind does not have are 0. */
typedef struct dp_script_ask {
    dp_script_kind kind;
    uint32_t version;    /* HELLO */
    uint32_t flags;      /* LOOK */
    uint32_t n;          /* DRAW; READ: of the file */
    dp_script_what what; /* DONE: ASSIGN, ADD or COPY */
    uint64_t steps;
    uint64_t samples;
    double loss;
} dp_script_ask;

typedef struct dp_script_welcome {
    uint64_t elements;
    uint64_t samples;
    uint64_t unit;
    uint64_t tokens_total;
    uint64_t bytes; /* of the shared memory; the buffer begins at DP_SCRIPT_HEADER_BYTES */
} dp_script_welcome;

/* Accepts any bytes. DP_BADMSG: no question, or of a wrong size or value. */
DP_MUST dp_status dp_script_read(dp_view packet, dp_script_ask *ask);

/* Each writes a whole packet. Texts are cut. */
void dp_script_write_welcome(dp_writer *packet, const dp_script_welcome *welcome);
void dp_script_write_refused(dp_writer *packet, dp_script_refusal code, const char *text);
void dp_script_write_do(dp_writer *packet, dp_script_what what, uint64_t round, uint64_t tokens);
void dp_script_write_drawn(dp_writer *packet, const uint64_t *indices, uint32_t n);
void dp_script_write_given(dp_writer *packet, uint32_t file, uint64_t bytes);

#endif
