/* The version of this tree: programs of one release say the same. */
#ifndef DP_BASE_VERSION_H
#define DP_BASE_VERSION_H

#define DP_VERSION_TEXT "0.1.0"

#endif
