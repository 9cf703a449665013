/* dpnoded --check: tests directory, disk and port with these settings, for `dpnode doctor`. It
 * takes no lock, makes no key, and does not disturb a daemon in the same directory. It reports
 * values; doctor judges them. */
#ifndef DP_DAEMON_CONTROL_CHECK_H
#define DP_DAEMON_CONTROL_CHECK_H

#include <stdio.h>

#include "daemon/host/config.h"

/* Lines "key value" to out, numbers as decimals, the value up to the end of the line:
 *   version, dir, listen, advertise?, backend, threads, processes, ballast, margin, store_max
 *   dir_exists     1: it exists; 0: the daemon will create it
 *   dir_why?       the reason why it cannot be used: a sentence
 *   network?       the sentence of dp_dir_check_disk, unless network-dir allows such a directory
 *   free           bytes that its disk has for it
 *   write_bytes_s? of an object of 4 or 32 MiB, written like by the store (in a folder beside it,
 *     which is removed afterwards)
 *   commit_us?     the median of 15 small rows, each durable
 *   disk_why?      the reason why neither could be measured: a sentence
 *   listen_why?    the reason why listening there is impossible now: a sentence
 * Takes up to a few seconds. False: out cannot be written. */
bool dp_check_tell(const dp_config *config, FILE *out);

#endif
