/* The state of the door for scripts. Private to script_door.c (thread, enter and leave),
 * script_session.c (one script: its questions) and script_welcome.c (its tensors and memory). */
#ifndef DP_COMPUTE_WORKER_SCRIPT_INSIDE_H
#define DP_COMPUTE_WORKER_SCRIPT_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/un.h>

#include "compute/format/hf_layout.h"
#include "compute/worker/script_door.h"
#include "compute/worker/script_link.h"
#include "compute/worker/script_msg.h"

/* A connection; fd -1: none. */
typedef struct dp_script_session {
    int fd;
    int process; /* pidfd of the script; -1: none */
    uint32_t pid;
    bool welcome; /* HELLO was answered: it is the script */
    uint64_t since_us;
    dp_script_header *header; /* the shared memory */
    float *buffer;            /* in it: as the script has the weights, unless it holds the buffer */
    size_t bytes;             /* mapped */
    float *arena;             /* of a built-in model: room for weights as the trainer has them */
    uint64_t steps;           /* as of the last DONE */
    uint64_t samples;
    double loss;
    bool assign;          /* the script must take all weights */
    bool moved;           /* weights have moved since */
    dp_script_what holds; /* the buffer, for this; GO: does not */
    uint64_t held_us;     /* since then */
    uint64_t copied_us;   /* end of the last copy */
    uint64_t copy_us;     /* the time that it took */
    bool gives;           /* the script ends, and hands in its steps */
    bool patient;         /* the look under way waits while the node is paused */
    bool waits;           /* for an answer: it is paused */
    uint32_t draws;       /* so many samples, and waits for the lease; 0: does not */
    uint64_t draws_us;    /* since then */
    uint64_t told_steps;  /* by stepped ... */
    uint64_t told_us;     /* ... at that time */
} dp_script_session;

struct dp_script {
    dp_script_setup setup;
    char path[sizeof((struct sockaddr_un *)0)->sun_path];
    int listener;
    int wake; /* eventfd */
    pthread_t thread;
    dp_hf_layout *layout;  /* of a built-in model; NULL: a script has the vector as it is */
    atomic_bool in_line;   /* the thread of scripts waits for the lock */
    pthread_mutex_t lock;  /* guards all below, and the trainer */
    pthread_cond_t freed;  /* the buffer is not held any more */
    pthread_cond_t let_in; /* in_line has ended */
    bool ends;
    bool cut;   /* the script has held the buffer too long */
    bool asked; /* for a copy */
    uint64_t round;
    uint64_t tokens;
    uint64_t welcomed_us; /* by dp_now_us: ahead of it by 1 s for each of the newest connections */
    uint64_t clock_us;    /* of the times below */
    uint64_t trained_us;
    uint64_t looked_us;
    dp_script_session session;
    uint8_t packet[DP_SCRIPT_PACKET_MAX]; /* in and out */
    uint64_t indices[DP_SCRIPT_DRAW_MAX];
};

/* All under the lock, on the thread of scripts. */

void dp_script_session_begin(dp_script *script, const dp_script_peer *peer);
/* Closes the connection, and forgets what the script has not given. */
void dp_script_session_end(dp_script *script);
/* Tells the script why, and ends the session. */
void dp_script_session_refuse(dp_script *script, dp_script_refusal code, const char *text);
/* The same where the device of the vectors is gone; the next command finds it, too. */
void dp_script_session_refuse_broken(dp_script *script);
/* Sends an answer, with a file unless it is -1. Ends the session if the script does not read. */
void dp_script_session_send(dp_script *script, const dp_writer *packet, int file);
/* Reads questions and answers them. */
void dp_script_session_serve(dp_script *script);
/* Ends the session of a process that has ended; a child of it may keep the socket open. */
void dp_script_session_look_at_process(dp_script *script);
/* Answers a LOOK or a DRAW that waits, if there is something to say now. */
void dp_script_session_look(dp_script *script);

/* Answers HELLO, whose table of tensors is in file (-1: none): a welcome, or a refusal. */
void dp_script_welcome_hello(dp_script *script, const dp_script_ask *ask, int file);
/* The shared memory goes. */
void dp_script_welcome_unmap(dp_script_session *session);
/* The weights of the script's buffer to the trainer and back: trainer_script.h, in the script's
 * order. */
DP_MUST dp_status dp_script_take_weights(dp_script *script, const dp_script_work *work);
DP_MUST dp_status dp_script_give_weights(dp_script *script);
DP_MUST dp_status dp_script_give_moves(dp_script *script);

/* Either thread: the script's steps since its last copy should be copied, so that a publication has
 * something, and so that a script that dies or whose steps are long loses little. */
bool dp_script_wants_copy(const dp_script *script);
/* Tells the worker of steps since the last publication: those of copies, and with news those that
 * the script says that it took since; without a script what a publication of now would offer.
 * False, and nothing is told, if there are none with tokens, as then none could be published. Under
 * the lock, either thread. */
bool dp_script_tell_steps(dp_script *script, bool news);
/* Either thread: the word says what there is to do. */
void dp_script_set_word(dp_script *script);

#endif
