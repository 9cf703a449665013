/* Writes of a whole buffer to a descriptor; a single write() may stop short or be interrupted. */
#ifndef DP_BASE_FD_H
#define DP_BASE_FD_H

#include "base/bytes.h"

/* Writes all bytes at the position of fd, which should block. DP_IO: errno has the cause, and a
 * part may have been written. Any thread. */
DP_MUST dp_status dp_fd_write(int fd, dp_view bytes);

#endif
