/* The shadow of the disk of a simulated node: none, or a second disk that does the same writes and
 * is compared with the model (real.h). Only its calls; the model uses nothing else of it. */
#ifndef DP_SIM_SHADOW_H
#define DP_SIM_SHADOW_H

#include <stdbool.h>
#include <stdint.h>

struct dp_disk;
struct dp_disk_write;

typedef struct dp_shadow dp_shadow;
struct dp_shadow {
    /* A write has ended; the model applies it afterwards. */
    void (*write)(dp_shadow *shadow, const struct dp_disk *disk, const struct dp_disk_write *write);
    /* The model has applied it. */
    void (*use)(dp_shadow *shadow, const struct dp_disk *disk, uint32_t object, uint32_t use,
                bool on);
    /* The power fails during the first write, if there is one: true if it was done nevertheless. */
    bool (*cut)(dp_shadow *shadow, const struct dp_disk *disk);
    /* The model is in the state after a crash: compares it with the shadow. */
    void (*compare)(dp_shadow *shadow, const struct dp_disk *disk);
    /* A new disk with the contents of the model. */
    void (*rebuild)(dp_shadow *shadow, const struct dp_disk *disk);
};

#endif
