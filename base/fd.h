/* Writing all of something to a descriptor: a call of the system may take a part, or be
 * interrupted. */
#ifndef DP_BASE_FD_H
#define DP_BASE_FD_H

#include "base/bytes.h"

/* On from where the descriptor stands; it should block. DP_IO: errno says why, and a part may have
 * been written. Any thread. */
DP_MUST dp_status dp_fd_write(int fd, dp_view bytes);

#endif
