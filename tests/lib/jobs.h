/* Distributes the work of a program over forked processes, which write their results to one
 * pipe. */
#ifndef DP_TESTS_LIB_JOBS_H
#define DP_TESTS_LIB_JOBS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOBS_MAX = 64 };

typedef struct jobs {
    uint32_t count; /* 1 to JOBS_MAX */
    void (*work)(void *context, uint32_t job,
                 int out); /* in a process of its own; each write is at most PIPE_BUF bytes */
    void (*collect)(void *context, int in); /* until the end of the pipe, or until it has enough */
    void *context;
} jobs;

/* True if every job finished, or ended because its reader did: a job that writes to a closed pipe
 * ends by SIGPIPE, so collect stops the others by returning. */
static inline bool jobs_run(const jobs *all)
{
    int pipes[2];
    pid_t workers[JOBS_MAX];
    bool good = true;

    if (pipe(pipes) != 0) {
        perror("pipe");
        return false;
    }
    fflush(NULL);
    for (uint32_t job = 0; job < all->count; job++) {
        workers[job] = fork();
        if (workers[job] == 0) {
            close(pipes[0]);
            all->work(all->context, job, pipes[1]);
            _exit(0);
        }
    }
    close(pipes[1]);
    all->collect(all->context, pipes[0]);
    close(pipes[0]);
    for (uint32_t job = 0; job < all->count; job++) {
        int status = 0;
        good = workers[job] > 0 && waitpid(workers[job], &status, 0) == workers[job] &&
               (status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE)) && good;
    }
    return good;
}

#endif
