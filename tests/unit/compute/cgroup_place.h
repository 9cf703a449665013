/* Control groups of a root that is not the machine's: "cgroup" in it stands for /proc/self/cgroup.
 * Include it after cmocka.h. */
#ifndef DP_TESTS_UNIT_COMPUTE_CGROUP_PLACE_H
#define DP_TESTS_UNIT_COMPUTE_CGROUP_PLACE_H

#include "compute/machine/cgroup.h"
#include "tests/lib/fake_root.h"

/* Valid until the next call. */
static inline const dp_cgroup_place *fake_place(void)
{
    static char groups[TEMPDIR_FILE_MAX];
    static dp_cgroup_place place;
    place = (dp_cgroup_place){.groups = tempdir_file(&fake_root, "cgroup", groups),
                              .root = fake_root.path};
    return &place;
}

#endif
