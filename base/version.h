/* The version of this tree, which all programs of one release report. */
#ifndef DP_BASE_VERSION_H
#define DP_BASE_VERSION_H

#define DP_VERSION_TEXT "0.1.0"

#endif
