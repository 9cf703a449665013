/* libdpclock.so, preloaded into a daemon by tests: the wall clock is wrong by as many seconds as
 * the file DPCLOCK_FILE says (i64, which may change at any time). Clocks that only go on are left
 * alone. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *now);
int gettimeofday(struct timeval *restrict now, void *restrict zone);
time_t time(time_t *now);

static const volatile int64_t *offset_s;

__attribute__((constructor)) static void open_offset(void)
{
    static const int64_t none = 0;
    const char *path = getenv("DPCLOCK_FILE"); /* NOLINT(concurrency-mt-unsafe): before main */
    const int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *map = fd >= 0 ? mmap(NULL, sizeof none, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    offset_s = map != MAP_FAILED ? map : &none;
    if (fd >= 0) {
        close(fd);
    }
}

int clock_gettime(clockid_t id, struct timespec *now)
{
    const long status = syscall(SYS_clock_gettime, id, now);
    if (status == 0 && offset_s != NULL && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
        now->tv_sec += *offset_s;
    }
    return (int)status;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec is = {0};
    (void)zone;
    const int status = clock_gettime(CLOCK_REALTIME, &is);
    *now = (struct timeval){.tv_sec = is.tv_sec, .tv_usec = is.tv_nsec / 1000};
    return status;
}

time_t time(time_t *now)
{
    struct timespec is = {0};
    (void)clock_gettime(CLOCK_REALTIME, &is);
    if (now != NULL) {
        *now = is.tv_sec;
    }
    return is.tv_sec;
}
