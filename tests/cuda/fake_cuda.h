/* A card that is none, for tests of the CUDA backend: fills api.h with memory of the host, so that
 * kernels on the emulator (host_gpu.h) compute with it, and fails in every way that a volunteer's
 * card can. Graphs keep what was put on the stream, in order; so do streams of low priority, if
 * they are told to be late.
 * One thread at a time. */
#ifndef DP_TESTS_CUDA_FAKE_CUDA_H
#define DP_TESTS_CUDA_FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The behaviour of the fake card from now on. All zeros: one healthy card of Ampere's architecture
 * with enough memory. */
typedef struct fake_cuda {
    bool no_driver;
    int driver;      /* 0: the newest */
    int count_error; /* of device_count */
    bool no_card;
    int cards;         /* 0: one */
    int arch;          /* 80; 75 ... */
    int set_error;     /* of set_device: taken by another process */
    size_t memory;     /* bytes of the card; 0: plenty */
    unsigned fail_at;  /* the n-th call from now that touches the card fails; 0: none does */
    int fail_with;     /* CUDA's number; it stays, unless it is a lack of memory */
    unsigned alloc_at; /* the n-th allocation on the card from now finds no memory; 0: none */
    /* the n-th allocation of page-locked memory from now, and all after it, find none; 0: none */
    unsigned host_at;
    /* nothing that was put on the stream ever ends; a call that frees something ends the test,
     * since a driver may wait in it for ever */
    bool hangs;
    /* what is put on a stream of low priority happens when its end was asked for so often, or when
     * another stream waits for it; 0: at once */
    unsigned late;
    /* with late: what is put on any stream is as late, so that who waits for too little reads what
     * is not there yet */
    bool late_all;
    unsigned poison_at; /* the n-th copy to the host from now brings NaN; 0: none */
    /* calls and copies count only behind an allocation on the card of so many bytes; 0: all do */
    size_t armed_by;
    unsigned card; /* the same in processes that have the same card; 0: each has its own */
} fake_cuda;

/* Also forgets an error that stays. */
void fake_cuda_set(const fake_cuda *wanted);
/* Since the last fake_cuda_set: */
unsigned fake_cuda_calls(void);   /* that touch the card */
unsigned fake_cuda_entered(void); /* calls that open the card's context where there is none */
unsigned fake_cuda_graphs(void);  /* graphs run */
size_t fake_cuda_most(void);      /* the most bytes of the card that were taken at a time */
size_t
fake_cuda_used(void); /* bytes allocated now, of card and page-locked; 0 when all is given back */
void fake_cuda_end(void); /* frees what a process that ends leaves behind */

#ifdef __cplusplus
}
#endif

#endif
