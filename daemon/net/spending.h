/* Bounds the spending of peers: processor time of the loop thread for their messages, and bytes of
 * the answers on the control lane, which never wait for the owner's limit (throttle.h). Two token
 * buckets, which a message may overdraw, since its cost is known afterwards: then the peer is not
 * read until enough time has passed. Pure.
 *
 *                        processor time             answers
 *   all guests together  5 % after 50 ms at once    64 KiB/s after 256 KiB at once
 *   a member             10 % after 250 ms at once  256 KiB/s after 1 MiB at once
 *
 * The rates of answers are at most a quarter of the owner's upload limit. Honest peers stay below:
 * a guest asks for a manifest (4 KiB) once, and in a run of thousands of members for 48 rows of the
 * table of peers (about 40 KiB) every 20 s. The votes on the largest record (40 KiB) take rounds
 * that are longer than 0.4 s. */
#ifndef DP_DAEMON_NET_SPENDING_H
#define DP_DAEMON_NET_SPENDING_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed at the start. */
typedef struct dp_spending {
    uint64_t work_us; /* processor time, less what the passed time allows */
    uint64_t bytes;   /* of answers, likewise */
    uint64_t at_us;   /* when they were that */
} dp_spending;

/* upload: the owner's limit in bytes per second; 0: none. */
void dp_spending_pay(dp_spending *spending, bool guest, uint64_t upload, uint64_t work_us,
                     uint64_t bytes, uint64_t now_us);
/* True: more was spent than is allowed up to now. */
bool dp_spending_over(dp_spending *spending, bool guest, uint64_t upload, uint64_t now_us);

#endif
