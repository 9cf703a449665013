#include "tests/cuda/host_fiber.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#define TELL_SANITIZER 1
extern "C" {
void __sanitizer_start_switch_fiber(void **fake_stack, const void *bottom, size_t size);
void __sanitizer_finish_switch_fiber(void *fake_stack, const void **bottom, size_t *size);
}
#else
#define TELL_SANITIZER 0
#endif

struct host_fiber {
    char *stack;
    void (*work)(void *);
    void *argument;
    bool ended;
#if defined(__x86_64__)
    void *own;    /* stack pointer while it does not run */
    void *caller; /* of who resumed it, while it runs */
#else
    ucontext_t own;
    ucontext_t caller;
#endif
    void *own_fake;
    const void *caller_bottom;
    size_t caller_size;
};

#if defined(__x86_64__)
/* void host_fiber_switch(void **save, void *to): what a call must keep goes onto this stack, and comes from the other. A system
 * call as in swapcontext would cost more than most kernels. */
extern "C" void host_fiber_switch(void **save, void *to);
__asm__(".text\n"
        ".type host_fiber_switch, @function\n"
        "host_fiber_switch:\n"
        "pushq %rbp\n"
        "pushq %rbx\n"
        "pushq %r12\n"
        "pushq %r13\n"
        "pushq %r14\n"
        "pushq %r15\n"
        "movq %rsp, (%rdi)\n"
        "movq %rsi, %rsp\n"
        "popq %r15\n"
        "popq %r14\n"
        "popq %r13\n"
        "popq %r12\n"
        "popq %rbx\n"
        "popq %rbp\n"
        "ret\n"
        ".size host_fiber_switch, . - host_fiber_switch\n");
#endif

static host_fiber *entering; /* the fiber that is started: a first switch carries no argument */

static void to_caller(host_fiber *fiber)
{
#if TELL_SANITIZER
    __sanitizer_start_switch_fiber(fiber->ended ? nullptr : &fiber->own_fake, fiber->caller_bottom,
                                   fiber->caller_size);
#endif
#if defined(__x86_64__)
    host_fiber_switch(&fiber->own, fiber->caller);
#else
    swapcontext(&fiber->own, &fiber->caller);
#endif
#if TELL_SANITIZER
    __sanitizer_finish_switch_fiber(fiber->own_fake, &fiber->caller_bottom, &fiber->caller_size);
#endif
}

static bool to_fiber(host_fiber *fiber)
{
#if TELL_SANITIZER
    void *fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, fiber->stack, HOST_FIBER_STACK);
#endif
#if defined(__x86_64__)
    host_fiber_switch(&fiber->caller, fiber->own);
#else
    swapcontext(&fiber->caller, &fiber->own);
#endif
#if TELL_SANITIZER
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
    return fiber->ended;
}

/* The first function on a fiber's stack. It never returns: there is nothing below it. */
static void enter(void)
{
    host_fiber *const fiber = entering;
#if TELL_SANITIZER
    __sanitizer_finish_switch_fiber(nullptr, &fiber->caller_bottom, &fiber->caller_size);
#endif
    fiber->work(fiber->argument);
    fiber->ended = true;
    to_caller(fiber);
    abort();
}

host_fiber *host_fiber_open(void)
{
    auto *const fiber = static_cast<host_fiber *>(calloc(1, sizeof(host_fiber)));
    void *const stack = mmap(nullptr, HOST_FIBER_STACK, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fiber == nullptr || stack == MAP_FAILED) {
        fprintf(stderr, "host_fiber: no memory for a stack\n");
        abort();
    }
    fiber->stack = static_cast<char *>(stack);
    return fiber;
}

bool host_fiber_start(host_fiber *fiber, void (*work)(void *), void *argument)
{
    fiber->work = work;
    fiber->argument = argument;
    fiber->ended = false;
    entering = fiber;
#if defined(__x86_64__)
    /* Six registers, then the address that the switch returns to; a function begins 8 bytes off 16. */
    auto *const top = reinterpret_cast<uintptr_t *>(fiber->stack + HOST_FIBER_STACK);
    for (int i = 1; i <= 8; i++) {
        top[-i] = 0;
    }
    top[-2] = reinterpret_cast<uintptr_t>(enter);
    fiber->own = top - 8;
#else
    getcontext(&fiber->own);
    fiber->own.uc_stack.ss_sp = fiber->stack;
    fiber->own.uc_stack.ss_size = HOST_FIBER_STACK;
    fiber->own.uc_link = nullptr;
    makecontext(&fiber->own, enter, 0);
#endif
    return to_fiber(fiber);
}

bool host_fiber_resume(host_fiber *fiber)
{
    return to_fiber(fiber);
}

void host_fiber_yield(host_fiber *fiber)
{
    to_caller(fiber);
}
