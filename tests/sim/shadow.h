/* The shadow behind the disk of a simulated node: nothing, or a second disk that does the same
 * writes and is judged by the model (real.h). Only the calls; the model knows no more of it. */
#ifndef DP_SIM_SHADOW_H
#define DP_SIM_SHADOW_H

#include <stdbool.h>
#include <stdint.h>

struct dp_disk;
struct dp_disk_write;

typedef struct dp_shadow dp_shadow;
struct dp_shadow {
    /* A write has ended; the model does it right after. */
    void (*write)(dp_shadow *shadow, const struct dp_disk *disk, const struct dp_disk_write *write);
    /* The model has done so. */
    void (*use)(dp_shadow *shadow, const struct dp_disk *disk, uint32_t object, uint32_t use,
                bool on);
    /* The power goes while the first write is under way, if there is one: true if it was done after
     * all. */
    bool (*cut)(dp_shadow *shadow, const struct dp_disk *disk);
    /* The model has been brought to what a crash left: is it the same here? */
    void (*compare)(dp_shadow *shadow, const struct dp_disk *disk);
    /* A new disk, with what the model has. */
    void (*rebuild)(dp_shadow *shadow, const struct dp_disk *disk);
};

#endif
