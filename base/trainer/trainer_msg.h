/* Messages of the trainer protocol (trainer_kind.h) as a struct, their encoding, and their
 * transport with descriptors. */
#ifndef DP_BASE_TRAINER_TRAINER_MSG_H
#define DP_BASE_TRAINER_TRAINER_MSG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/run/judged.h"
#include "base/run/manifest.h"
#include "base/run/part_cuts.h"
#include "base/run/reach.h"
#include "base/trainer/trainer_kind.h"

/* Shares first .. end - 1 of a vector; {0, 0}: all of it. */
typedef struct dp_part_range {
    uint32_t first;
    uint32_t end;
} dp_part_range;

/* Microseconds of trained_us outside local steps. Other commands and waiting for commands are in
 * none of these. */
typedef struct dp_trainer_spent {
    uint64_t data_us;    /* waits for samples */
    uint64_t publish_us; /* publications: snapshot, encoding, measurements */
    uint64_t apply_us;   /* records: theta and settling */
    uint64_t state_us;   /* bytes of states and their roots */
    uint64_t tell_us;    /* files and messages to the daemon */
} dp_trainer_spent;

/* One message of any kind (trainer_kind.h). Fields that a kind does not carry are zero and are not
 * encoded. */
typedef struct dp_trainer_msg {
    dp_trainer_kind kind;
    uint32_t abi;
    uint32_t pid;
    uint64_t round;
    uint64_t elements;
    uint64_t tokens;
    uint64_t carried;
    uint32_t steps;
    uint32_t skipped;
    uint32_t spikes;
    uint32_t empty;
    uint64_t computed_us; /* STEP */
    uint64_t trained_us;
    dp_trainer_spent spent; /* STEP */
    uint32_t id;            /* CHECK, JUDGE */
    dp_trainer_kind of;
    uint8_t exchange[16];
    uint8_t member[32];
    dp_hash root;
    double loss; /* mean nats per token */
    double bits_per_byte;
    double moved;
    double outer_reach; /* APPLIED */
    double norm;
    double error;
    uint64_t weight_own;
    uint64_t weight_other;
    unsigned __int128 energy;
    uint32_t alpha;  /* Q16 */
    uint32_t clip;   /* Q16 */
    uint32_t lambda; /* Q16: e, F, O, or the change of a MIX, are scaled by it; 65536 = keep */
    dp_settle settle;
    dp_restore restore;
    bool dense;
    bool ok;
    bool foreign;
    bool lacks;
    bool again; /* STEP: of a publication that was left out */
    uint64_t seed;
    double temperature; /* SAMPLE */
    double top_p;
    uint32_t top_k; /* 0: an older daemon, which says none of the three */
    uint32_t n_items;
    uint32_t q[DP_TRAINER_ITEMS_MAX];           /* Q31 */
    dp_part_range shares[DP_TRAINER_ITEMS_MAX]; /* of each item */
    uint32_t contributors;
    uint32_t at;         /* ADD, ADDED, APPLY */
    uint32_t part;       /* REDUCE */
    dp_part_range range; /* CHECK, REDUCE */
    dp_part_cuts cuts;   /* n = 0: no parts */
    uint32_t taken;      /* bit p: part p counts the publication */
    uint32_t keep;    /* PUBLISH, CHECK, JUDGE: one element of so many; 0: as the manifest says */
    uint32_t scale;   /* JUDGE, Q16 */
    dp_judged judged; /* JUDGED */
    dp_reach reach;   /* JUDGE: own alone, and own_count from there on */
    uint64_t own_count;
    uint32_t celsius; /* STEP, LIMITS, RESTING: degrees; 0: no limit, or not known */
    uint32_t watts;   /* STEP, LIMITS: the same */
    uint32_t n_ranges;
    dp_sample_range ranges[DP_LEASE_RANGES_MAX];
    /* HELLO name, OPENED device, FAILED what, SAMPLE prompt, SAMPLED text; ends with NUL */
    char text[DP_TRAINER_TEXT_MAX + 1];
} dp_trainer_msg;

/* "hello" to "script"; "unknown" for any other number. */
const char *dp_trainer_kind_name(dp_trainer_kind kind);
/* Appends the map to out. DP_BADARG: unknown kind, more items, ranges or text than the limits, or
 * cuts that do not ascend; DP_NOMEM, DP_TOOBIG: as dp_packer_finish. */
DP_MUST dp_status dp_trainer_encode(const dp_trainer_msg *msg, dp_buf *out);
/* Accepts any bytes. DP_BADMSG: unknown kind, missing or mistyped fields, counts or numbers beyond
 * the limits; DP_TOOBIG: more than DP_TRAINER_PACKET_MAX; DP_NOMEM. Unknown keys are ignored. */
DP_MUST dp_status dp_trainer_decode(dp_trainer_msg *msg, dp_view bytes);

/* Sends one packet with n_fds descriptors, which stay the caller's. Blocks if the socket does.
 * DP_AGAIN, DP_CLOSED, DP_IO; DP_TOOBIG; DP_NOMEM. */
DP_MUST dp_status dp_trainer_send(int socket, const dp_trainer_msg *msg, const int *fds,
                                  uint32_t n_fds);
/* Receives one packet and its *n_fds descriptors, which the caller owns (close-on-exec). DP_AGAIN,
 * DP_CLOSED, DP_IO, DP_BADMSG, DP_TOOBIG; DP_NOMEM: no memory or no free descriptors, and the
 * packet is lost. No descriptor is left open on failure. */
DP_MUST dp_status dp_trainer_receive(int socket, dp_trainer_msg *msg, int fds[DP_TRAINER_FDS_MAX],
                                     uint32_t *n_fds);

/* Makes a sealed memfd (no growing, shrinking, writing) of bytes. The caller owns *fd. */
DP_MUST dp_status dp_memfd_make(const char *name, dp_view bytes, int *fd);
/* The same in pieces: start makes an empty memfd, add appends, seal ends it. The caller owns fd
 * also when a later call fails. */
DP_MUST dp_status dp_memfd_start(const char *name, int *fd);
DP_MUST dp_status dp_memfd_add(int fd, dp_view bytes);
DP_MUST dp_status dp_memfd_seal(int fd);
/* Maps a sealed memfd for reading; the mapping outlives fd. DP_BADMSG: not sealed against writing
 * and shrinking, or larger than bytes_max. */
DP_MUST dp_status dp_memfd_map(int fd, uint64_t bytes_max, dp_view *bytes);
void dp_memfd_unmap(dp_view bytes);

#endif
