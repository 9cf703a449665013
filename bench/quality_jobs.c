#include "bench/quality_jobs.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

bool quality_jobs(size_t n, uint32_t at_once, void (*work)(void *context, size_t i), void *context)
{
    bool good = true;
    uint32_t running = 0;
    for (size_t i = 0; i < n || running > 0;) {
        if (i < n && running < at_once && good) {
            fflush(NULL);
            const pid_t child = fork();
            if (child == 0) {
                work(context, i);
                fflush(NULL);
                _exit(0);
            }
            good = child > 0;
            running += child > 0;
            i++;
            continue;
        }
        if (running == 0) {
            break;
        }
        int how;
        good = wait(&how) > 0 && WIFEXITED(how) && WEXITSTATUS(how) == 0 && good;
        running--;
    }
    return good;
}

void *quality_jobs_memory(size_t bytes)
{
    void *const memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}
