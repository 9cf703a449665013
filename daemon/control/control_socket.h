/* The creation of the control socket (control_socket.c), for control.c. */
#ifndef DP_DAEMON_CONTROL_CONTROL_SOCKET_H
#define DP_DAEMON_CONTROL_CONTROL_SOCKET_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/status.h"

bool dp_control_somebody_answers(const char *path);
void dp_control_remove_stale(const char *path);
void dp_control_make_folder(const char *path);
mode_t dp_control_mode_of_socket(const char *path);
struct sockaddr_un dp_control_address_of(const char *path);

#endif
