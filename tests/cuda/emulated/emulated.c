/* libdpnode_cuda_emulated.so: the CUDA backend as a plugin whose card is fake_cuda.h's, for
 * programs as their users start them. The environment says what the card is: DP_FAKE_CUDA="arch=60"
 * or "memory_kib=4096,armed_by_kib=3000,fail_at=200,fail_with=719"; the names are those of
 * fake_cuda, and "capabilities=513" (dp_capability) makes a backend that can less, whose self-test
 * is so much shorter. A program that understands none of it ends at once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The whole table under another name, so that this library can export one of its own. */
#define dp_backend_query dp_whole_query
#include "compute/cuda/plugin.c" /* NOLINT(bugprone-suspicious-include) */
#undef dp_backend_query
#include "tests/cuda/fake_cuda.h"

const dp_backend *dp_backend_query(uint32_t version);

enum { NAME_MAX_ = 32 };

static uint32_t capabilities = UINT32_MAX; /* those that are left */

static bool set(fake_cuda *fake, const char *name, unsigned long value)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {
        {"no_driver", &fake->no_driver}, {"no_card", &fake->no_card}, {"hangs", &fake->hangs}};
    const struct {
        const char *name;
        int *number;
    } numbers[] = {{"driver", &fake->driver},       {"count_error", &fake->count_error},
                   {"cards", &fake->cards},         {"arch", &fake->arch},
                   {"set_error", &fake->set_error}, {"fail_with", &fake->fail_with}};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (strcmp(name, flags[i].name) == 0) {
            *flags[i].flag = value != 0;
            return true;
        }
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (strcmp(name, numbers[i].name) == 0) {
            *numbers[i].number = (int)value;
            return true;
        }
    }
    if (strcmp(name, "fail_at") == 0) {
        fake->fail_at = (unsigned)value;
    } else if (strcmp(name, "card") == 0) {
        fake->card = (unsigned)value;
    } else if (strcmp(name, "poison_at") == 0) {
        fake->poison_at = (unsigned)value;
    } else if (strcmp(name, "memory_kib") == 0) {
        fake->memory = value << 10;
    } else if (strcmp(name, "capabilities") == 0) {
        capabilities = (uint32_t)value;
    } else if (strcmp(name, "armed_by_kib") == 0) {
        fake->armed_by = value << 10;
    } else {
        return false;
    }
    return true;
}

/* Before anybody asks for the table. */
__attribute__((constructor)) static void set_card(void)
{
    const char *at = getenv("DP_FAKE_CUDA"); /* Nobody sets it meanwhile. */
    fake_cuda fake = {0};
    while (at != NULL && *at != '\0') {
        char name[NAME_MAX_];
        unsigned long value;
        int size = 0;
        if (sscanf(at, "%31[a-z_]=%lu%n", name, &value, &size) != 2 || !set(&fake, name, value)) {
            fprintf(stderr, "DP_FAKE_CUDA: no card is '%s'\n", at);
            abort();
        }
        at += size;
        at += *at == ',';
    }
    fake_cuda_set(&fake);
}

__attribute__((visibility("default"))) const dp_backend *dp_backend_query(uint32_t version)
{
    static dp_backend part;
    const dp_backend *const whole = dp_whole_query(version);
    if (whole == NULL) {
        return NULL;
    }
    part = *whole;
    part.capabilities &= capabilities;
    return &part;
}
