/* Parts of a publication that the trainer finished before the whole, and that are stored as
 * objects already: if the publication has the same files, they are not hashed and written again.
 * All on the store thread, one job after another, except the last call. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "daemon/peer/driver_inside.h"

static void forget(dp_driver_early *early)
{
    if (early->has) {
        close(early->fd);
    }
    early->has = false;
}

void dp_driver_early_keep(dp_driver *driver, uint32_t part, int fd, const dp_hash *root,
                          uint64_t size)
{
    dp_assert(part < DP_PARTS_MAX);
    forget(&driver->early[part]);
    driver->early[part] = (dp_driver_early){.has = true, .fd = fd, .root = *root, .size = size};
}

/* A sealed file that is open here has its number alone, and the bytes that were hashed. */
bool dp_driver_early_find(const dp_driver *driver, int fd, dp_hash *root, uint64_t *size)
{
    struct stat wanted;
    struct stat known;
    if (fstat(fd, &wanted) != 0) {
        return false;
    }
    for (uint32_t p = 0; p < DP_PARTS_MAX; p++) {
        const dp_driver_early *const early = &driver->early[p];
        if (early->has && fstat(early->fd, &known) == 0 && known.st_dev == wanted.st_dev &&
            known.st_ino == wanted.st_ino) {
            *root = early->root;
            *size = early->size;
            return true;
        }
    }
    return false;
}

void dp_driver_early_forget(dp_driver *driver)
{
    for (uint32_t p = 0; p < DP_PARTS_MAX; p++) {
        forget(&driver->early[p]);
    }
}
