#include "base/alloc.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/assert.h"

/* Before each block stands its size. The block itself starts on a cache line, so it suits any type,
 * dp_digest too, and it ends where malloc's block ends, so that the address sanitizer sees an
 * overrun of one byte. */
enum {
    LINE_BYTES = 64,
    RESERVE_BYTES_MIN = 64 * 1024 /* less is not worth pages of its own */
};

/* A sanitizer needs malloc's blocks: mapped pages have no red zone. */
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

typedef struct header {
    size_t size;
    uint64_t mark; /* Catches memory that did not come from here, and double frees. */
} header;

_Static_assert(sizeof(header) <= LINE_BYTES, "the header fits before the block");

static const uint64_t mark_live = 0x64706c6976653a29ULL;
static const uint64_t mark_mapped = 0x64706d61703a2d29ULL; /* of dp_reserve */
static const uint64_t mark_dead = 0x6470646561643a28ULL;

static atomic_size_t live_bytes;
static atomic_size_t budget_bytes;
static atomic_size_t fail_countdown;

static header *header_of(void *memory)
{
    header *h = (header *)(void *)((uint8_t *)memory - LINE_BYTES);

    dp_assert(h->mark == mark_live || h->mark == mark_mapped);
    return h;
}

/* True if the test hook wants this allocation to fail. */
static bool hook_fails(void)
{
    size_t left = atomic_load(&fail_countdown);

    while (left > 1) {
        if (atomic_compare_exchange_weak(&fail_countdown, &left, left - 1)) {
            return false;
        }
    }
    return left == 1;
}

static bool take_budget(size_t size)
{
    const size_t budget = atomic_load(&budget_bytes);
    size_t live = atomic_load(&live_bytes);

    do {
        if (live > SIZE_MAX - size || (budget != 0 && live + size > budget)) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&live_bytes, &live, live + size));
    return true;
}

static void *allocate(size_t size)
{
    void *base = NULL;

    if (size > PTRDIFF_MAX - LINE_BYTES || hook_fails() || !take_budget(size)) {
        return NULL;
    }
    if (posix_memalign(&base, LINE_BYTES, LINE_BYTES + size) != 0) {
        atomic_fetch_sub(&live_bytes, size);
        return NULL;
    }
    *(header *)base = (header){.size = size, .mark = mark_live};
    return (uint8_t *)base + LINE_BYTES;
}

void *dp_alloc(size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size) {
        return NULL;
    }
    void *const memory = allocate(count * size);
    if (memory != NULL) {
        memset(memory, 0, count * size);
    }
    return memory;
}

void *dp_reserve(size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size) {
        return NULL;
    }
    const size_t bytes = count * size;
    if (SANITIZED || bytes < RESERVE_BYTES_MIN) {
        return dp_alloc(count, size);
    }
    if (bytes > PTRDIFF_MAX - LINE_BYTES || hook_fails() || !take_budget(bytes)) {
        return NULL;
    }
    void *const base =
        mmap(NULL, LINE_BYTES + bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
        atomic_fetch_sub(&live_bytes, bytes);
        return NULL;
    }
    *(header *)base = (header){.size = bytes, .mark = mark_mapped};
    return (uint8_t *)base + LINE_BYTES;
}

void *dp_realloc(void *memory, size_t size)
{
    void *const grown = allocate(size);

    if (grown != NULL && memory != NULL) {
        const size_t old_size = header_of(memory)->size;

        memcpy(grown, memory, old_size < size ? old_size : size);
        dp_free(memory);
    }
    return grown;
}

void dp_free(void *memory)
{
    if (memory == NULL) {
        return;
    }
    header *const h = header_of(memory);
    atomic_fetch_sub(&live_bytes, h->size);
    if (h->mark == mark_mapped) {
        const int failed = munmap(h, LINE_BYTES + h->size);
        dp_assert(failed == 0);
        return;
    }
    h->mark = mark_dead;
    free(h);
}

size_t dp_alloc_live_bytes(void)
{
    return atomic_load(&live_bytes);
}

void dp_alloc_set_budget(size_t bytes)
{
    atomic_store(&budget_bytes, bytes);
}

void dp_alloc_fail_after(size_t countdown)
{
    atomic_store(&fail_countdown, countdown);
}
