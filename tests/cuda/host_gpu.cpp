/* Blocks, warps and barriers of host_gpu.h. */
#include "tests/cuda/host_gpu.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "tests/cuda/host_fiber.h"

enum {
    THREADS_MAX = 1024, /* of a block; CUDA C++ Programming Guide, compute capabilities */
    WARPS_MAX = THREADS_MAX / HOST_GPU_LANES,
    SHARED_MAX = 227 * 1024,
    GRID_MAX = 65535 /* blocks in y and z */
};

/* Why a thread does not run. */
enum waiting { READY, AT_BARRIER, IN_WARP, AT_CONDITION, ENDED };

struct thread_state {
    host_fiber *fiber;
    waiting state;
    uint3 index;
    const char *what; /* the call that it waits in */
    const char *file;
    int line;
    unsigned mask;
    bool (*ready)(const void *argument); /* AT_CONDITION */
    const void *argument;
};

enum { RESULTS = HOST_GPU_LANES + 1 }; /* every lane keeps one at most, and one is made */

/* The values that lanes gave to their meetings. A result stays until all its lanes have gone to
 * their next one: some may leave late. */
struct warp_state {
    alignas(16) unsigned char given[HOST_GPU_LANES][HOST_GPU_SLOT];
    alignas(16) unsigned char results[RESULTS][HOST_GPU_LANES][HOST_GPU_SLOT];
    struct {
        unsigned present[RESULTS];
        unsigned readers[RESULTS];
        unsigned kept[HOST_GPU_LANES]; /* number of its result from 1, or 0 */
        unsigned waiting;              /* lanes that wait in a call of the warp */
        unsigned alive;                /* lanes that have not returned */
    } book;
};

host_gpu_place host_gpu_here;
bool (*host_gpu_capture)(cudaStream_t stream, const host_gpu_task &task);

static struct {
    const char *kernel; /* NULL: nothing runs */
    const std::function<void()> *body;
    unsigned n_threads;
    unsigned at;        /* the running one */
    unsigned n_waiting; /* at the barrier */
    unsigned first_waiting;
    unsigned n_ended;
    unsigned n_yes;
    unsigned yes_before; /* of the barrier that was passed */
    uint64_t order;
    unsigned char *shared;
    thread_state threads[THREADS_MAX];
    warp_state warps[WARPS_MAX];
} gpu;

/* ---- What went wrong. */

static void say_where(void)
{
    const uint3 b = host_gpu_here.block;
    const uint3 t = host_gpu_here.thread;
    fprintf(stderr, "  kernel %s, block (%u, %u, %u), thread (%u, %u, %u)\n",
            gpu.kernel != nullptr ? gpu.kernel : "(none)", b.x, b.y, b.z, t.x, t.y, t.z);
}

void host_gpu_fail(const char *file, int line, const char *format, ...)
{
    fprintf(stderr, "host_gpu: %s:%d: ", file, line);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    say_where();
    abort();
}

/* Nobody can go on: says who waits for whom. */
[[noreturn]] static void fail_stuck(void)
{
    enum { SAID_MAX = 8 };
    fprintf(stderr, "host_gpu: kernel %s, block (%u, %u, %u) is stuck: not all come together\n",
            gpu.kernel, host_gpu_here.block.x, host_gpu_here.block.y, host_gpu_here.block.z);
    unsigned said = 0;
    unsigned last = THREADS_MAX;
    for (unsigned i = 0; i < gpu.n_threads && said < SAID_MAX; i++) {
        const thread_state *const t = &gpu.threads[i];
        const thread_state *const before = &gpu.threads[last == THREADS_MAX ? i : last];
        if (last != THREADS_MAX && before->state == t->state && before->line == t->line) {
            continue; /* As the one before. */
        }
        if (t->state == ENDED) {
            fprintf(stderr, "  thread %u and on: have returned\n", i);
        } else {
            fprintf(stderr, "  thread %u and on: in %s at %s:%d, mask %08x\n", i, t->what, t->file,
                    t->line, t->mask);
        }
        last = i;
        said++;
    }
    abort();
}

/* ---- Waiting. */

static void wait_here(waiting state, const char *what, const char *file, int line)
{
    thread_state *const t = &gpu.threads[gpu.at];
    t->state = state;
    t->what = what;
    t->file = file;
    t->line = line;
    host_fiber_yield(t->fiber);
}

void host_gpu_wait_until(const char *what, bool (*ready)(const void *argument),
                         const void *argument, const char *file, int line)
{
    if (gpu.kernel == nullptr) {
        host_gpu_fail(file, line, "%s outside of a kernel", what);
    }
    thread_state *const t = &gpu.threads[gpu.at];
    t->ready = ready;
    t->argument = argument;
    t->mask = 0;
    if (!ready(argument)) {
        wait_here(AT_CONDITION, what, file, line);
    }
}

unsigned host_gpu_lane(void)
{
    return gpu.at % HOST_GPU_LANES;
}

unsigned host_gpu_barrier(const char *what, bool yes, const char *file, int line)
{
    if (gpu.kernel == nullptr) {
        host_gpu_fail(file, line, "%s outside of a kernel", what);
    }
    const thread_state *const first = &gpu.threads[gpu.first_waiting];
    if (gpu.n_waiting > 0 && (first->line != line || strcmp(first->file, file) != 0)) {
        host_gpu_fail(file, line, "thread %u of the block waits at another barrier, %s:%d",
                      gpu.first_waiting, first->file, first->line);
    }
    gpu.first_waiting = gpu.n_waiting == 0 ? gpu.at : gpu.first_waiting;
    gpu.n_waiting++;
    gpu.n_yes += yes ? 1 : 0;
    if (gpu.n_waiting < gpu.n_threads) {
        wait_here(AT_BARRIER, what, file, line);
        return gpu.yes_before;
    }
    for (unsigned i = 0; i < gpu.n_threads; i++) {
        gpu.threads[i].state = READY;
    }
    gpu.yes_before = gpu.n_yes;
    gpu.n_waiting = 0;
    gpu.n_yes = 0;
    return gpu.yes_before;
}

static bool same_call(const thread_state *a, const thread_state *b)
{
    return a->mask == b->mask && a->line == b->line &&
           (a->what == b->what || strcmp(a->what, b->what) == 0) &&
           (a->file == b->file || strcmp(a->file, b->file) == 0);
}

/* Whether all of the lane's mask that have not returned wait with it in the same call; if so, *here says who. Some may wait in
 * another one, for this lane too: they would wait for ever. */
static bool all_come(const warp_state *warp, unsigned first, unsigned self_lane, unsigned *here)
{
    const thread_state *const self = &gpu.threads[first + self_lane];
    const unsigned wanted = self->mask & warp->book.alive;
    *here = wanted;
    if ((wanted & ~warp->book.waiting & ~(1U << self_lane)) != 0) {
        return false;
    }
    bool all = true;
    for (unsigned lane = 0; lane < HOST_GPU_LANES; lane++) {
        const thread_state *const t = &gpu.threads[first + lane];
        if ((wanted >> lane & 1U) == 0 || t == self || same_call(t, self)) {
            continue;
        }
        all = false; /* It may go on without this lane. */
        if ((t->mask >> self_lane & 1U) != 0) {
            host_gpu_fail(self->file, self->line,
                          "%s with mask %08x, but lane %u waits in %s at %s:%d, mask %08x",
                          self->what, self->mask, lane, t->what, t->file, t->line, t->mask);
        }
    }
    return all;
}

/* The lanes here, whose masks agree, meet: their values become a result, and they run again. */
static void meet(warp_state *warp, unsigned first, unsigned here)
{
    unsigned result = 0;
    while (warp->book.readers[result] > 0) {
        result++;
    }
    memcpy(warp->results[result], warp->given, sizeof warp->given);
    warp->book.present[result] = here;
    for (unsigned i = 0; i < HOST_GPU_LANES; i++) {
        if ((here >> i & 1U) != 0) {
            gpu.threads[first + i].state = READY;
            warp->book.waiting &= ~(1U << i);
            warp->book.kept[i] = result + 1;
            warp->book.readers[result]++;
        }
    }
}

const unsigned char *host_gpu_meet(const char *what, unsigned mask, const void *value, size_t size,
                                   unsigned *present, const char *file, int line)
{
    if (gpu.kernel == nullptr) {
        host_gpu_fail(file, line, "%s outside of a kernel", what);
    }
    const unsigned lane = host_gpu_lane();
    if ((mask >> lane & 1U) == 0) {
        host_gpu_fail(file, line, "%s: lane %u is not in its own mask %08x", what, lane, mask);
    }
    warp_state *const warp = &gpu.warps[gpu.at / HOST_GPU_LANES];
    unsigned *const kept = &warp->book.kept[lane];
    if (*kept > 0) {
        warp->book.readers[*kept - 1]--;
        *kept = 0;
    }
    if (size > 0) {
        memcpy(warp->given[lane], value, size);
    }
    thread_state *const self = &gpu.threads[gpu.at];
    self->mask = mask;
    self->what = what;
    self->file = file;
    self->line = line;
    const unsigned first = gpu.at - lane;
    unsigned here;
    if (all_come(warp, first, lane, &here)) {
        meet(warp, first, here);
    } else {
        warp->book.waiting |= 1U << lane;
        wait_here(IN_WARP, what, file, line);
    }
    *present = warp->book.present[*kept - 1];
    return warp->results[*kept - 1][0];
}

/* ---- Blocks. */

extern "C" {
/* Of the section that __shared__ names; absent where no kernel has any. */
extern unsigned char __start_dp_shared[] __attribute__((weak));
extern unsigned char __stop_dp_shared[] __attribute__((weak));
}

/* Over redzones too, which is why it is not told to AddressSanitizer. */
__attribute__((no_sanitize("address", "undefined"))) static void spoil_static_shared(void)
{
    for (volatile unsigned char *at = __start_dp_shared; at < __stop_dp_shared;) {
        if (reinterpret_cast<uintptr_t>(at) % 8 == 0 && __stop_dp_shared - at >= 8) {
            *reinterpret_cast<volatile uint64_t *>(at) = UINT64_MAX;
            at += 8;
        } else {
            *at = 0xff;
            at++;
        }
    }
}

void *host_gpu_shared_bytes(void)
{
    return gpu.shared;
}

void host_gpu_order(uint64_t seed)
{
    gpu.order = seed;
}

static uint64_t mixed(uint64_t x)
{
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

/* 0 .. count-1 in the order that was chosen. */
static void put_in_order(unsigned *out, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        out[i] = gpu.order == 1 ? count - 1 - i : i;
    }
    for (unsigned i = count; gpu.order > 1 && i > 1; i--) {
        const auto other = static_cast<unsigned>(mixed(gpu.order + i) % i);
        const unsigned kept = out[i - 1];
        out[i - 1] = out[other];
        out[other] = kept;
    }
}

static void run_thread(void *)
{
    (*gpu.body)();
}

/* Runs or resumes one thread; false: it waits. */
static bool turn(unsigned index, bool begun)
{
    thread_state *const t = &gpu.threads[index];
    gpu.at = index;
    host_gpu_here.thread = t->index;
    if (t->state == AT_CONDITION && t->ready(t->argument)) {
        t->state = READY;
    }
    if (t->state != READY) {
        return false;
    }
    const bool ended =
        begun ? host_fiber_resume(t->fiber) : host_fiber_start(t->fiber, run_thread, nullptr);
    if (ended) {
        t->state = ENDED;
        gpu.n_ended++;
        gpu.warps[index / HOST_GPU_LANES].book.alive &= ~(1U << index % HOST_GPU_LANES);
    }
    return true;
}

/* The lanes that wait for one who has returned since need it no more. */
static void release_warp(warp_state *warp, unsigned first)
{
    for (unsigned lane = 0; lane < HOST_GPU_LANES; lane++) {
        unsigned here;
        if ((warp->book.waiting >> lane & 1U) != 0 && all_come(warp, first, lane, &here)) {
            meet(warp, first, here);
        }
    }
}

/* Until all lanes of the warp wait for other warps, or have returned. */
static bool run_warp(unsigned first, const unsigned lanes[HOST_GPU_LANES], bool begun)
{
    warp_state *const warp = &gpu.warps[first / HOST_GPU_LANES];
    const unsigned all = warp->book.alive;
    bool any = false;
    bool moved = true;
    while (moved) {
        moved = false;
        for (unsigned i = 0; i < HOST_GPU_LANES; i++) {
            if (first + lanes[i] < gpu.n_threads && turn(first + lanes[i], begun)) {
                moved = true;
            }
        }
        any = any || moved;
        begun = true;
        if (warp->book.waiting != 0 && warp->book.alive != all) {
            release_warp(warp, first);
        }
    }
    return any;
}

static void begin_block(dim3 block)
{
    gpu.n_waiting = 0;
    gpu.n_ended = 0;
    gpu.n_yes = 0;
    for (unsigned i = 0; i < (gpu.n_threads + HOST_GPU_LANES - 1) / HOST_GPU_LANES; i++) {
        memset(&gpu.warps[i].book, 0, sizeof gpu.warps[i].book);
    }
    for (unsigned i = 0; i < gpu.n_threads; i++) {
        thread_state *const t = &gpu.threads[i];
        t->fiber = t->fiber != nullptr ? t->fiber : host_fiber_open();
        t->state = READY;
        gpu.warps[i / HOST_GPU_LANES].book.alive |= 1U << i % HOST_GPU_LANES;
        t->index = {i % block.x, i / block.x % block.y, i / (block.x * block.y)};
    }
    spoil_static_shared();
}

static void run_block(dim3 block)
{
    begin_block(block);
    const unsigned n_warps = (gpu.n_threads + HOST_GPU_LANES - 1) / HOST_GPU_LANES;
    unsigned warps[WARPS_MAX];
    unsigned lanes[HOST_GPU_LANES];
    put_in_order(warps, n_warps);
    put_in_order(lanes, HOST_GPU_LANES);
    bool begun[WARPS_MAX] = {};
    while (gpu.n_ended < gpu.n_threads) {
        bool moved = false;
        for (unsigned i = 0; i < n_warps; i++) {
            const bool any = run_warp(warps[i] * HOST_GPU_LANES, lanes, begun[warps[i]]);
            begun[warps[i]] = true;
            moved = moved || any;
        }
        if (!moved) {
            fail_stuck();
        }
    }
}

static void run_grid(const char *name, dim3 grid, dim3 block, size_t shared,
                     const std::function<void()> &body)
{
    if (gpu.kernel != nullptr) {
        host_gpu_fail(name, 0, "a launch inside of a kernel");
    }
    gpu.kernel = name;
    gpu.body = &body;
    gpu.n_threads = block.x * block.y * block.z;
    host_gpu_here.block_dim = block;
    host_gpu_here.grid_dim = grid;
    for (unsigned z = 0; z < grid.z; z++) {
        for (unsigned y = 0; y < grid.y; y++) {
            for (unsigned x = 0; x < grid.x; x++) {
                host_gpu_here.block = {x, y, z};
                gpu.shared = static_cast<unsigned char *>(malloc(shared));
                memset(gpu.shared, 0xff, shared);
                run_block(block);
                free(gpu.shared);
            }
        }
    }
    gpu.shared = nullptr;
    gpu.kernel = nullptr;
}

dp_status host_gpu_launch(const char *name, dim3 grid, dim3 block, size_t shared,
                          cudaStream_t stream, std::function<void()> body)
{
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) {
        return DP_OK;
    }
    const size_t threads = static_cast<size_t>(block.x) * block.y * block.z;
    if (threads == 0 || threads > THREADS_MAX || block.z > 64 || shared > SHARED_MAX ||
        grid.x > 0x7fffffffU || grid.y > GRID_MAX || grid.z > GRID_MAX) {
        host_gpu_fail(name, 0, "no device takes %u x %u x %u blocks of %zu threads with %zu bytes",
                      grid.x, grid.y, grid.z, threads, shared);
    }
    const host_gpu_task task = [=] { run_grid(name, grid, block, shared, body); };
    if (host_gpu_capture == nullptr || !host_gpu_capture(stream, task)) {
        task();
    }
    return DP_OK;
}
