/* card.h on the emulator. */
#include "tests/cuda/host_gpu.h"

#include <cstdlib>

extern "C" {
#include "tests/cuda/card.h"
}

enum { ALIGN = 256 };

extern "C" cudaStream_t card_open(void)
{
    return nullptr;
}

extern "C" bool card_has_warpgroups(void)
{
    return true;
}

extern "C" void *card_put(const void *bytes, size_t size)
{
    void *at;
    if (posix_memalign(&at, ALIGN, size > 0 ? size : 1) != 0) {
        abort();
    }
    if (bytes != nullptr) {
        memcpy(at, bytes, size);
    } else {
        memset(at, 0xff, size);
    }
    return at;
}

extern "C" void card_get(const void *card, void *bytes, size_t size)
{
    memcpy(bytes, card, size);
}

extern "C" void card_free(void *card)
{
    free(card);
}

extern "C" void card_order(uint64_t seed)
{
    host_gpu_order(seed);
}
