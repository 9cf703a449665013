/* The trainer protocol: what the daemon and a trainer process say to each other over a
 * SOCK_SEQPACKET socketpair.
 *
 * One packet is one msgpack map, at most DP_TRAINER_PACKET_MAX bytes; bulk data travels as sealed
 * memfds passed with SCM_RIGHTS in the order that the message names (at most DP_TRAINER_FDS_MAX per
 * packet). Key "type" of the map is the dp_trainer_kind; the other keys are the names in braces
 * below. The daemon (D) leads; a trainer (T) answers each command once, in order, with the message
 * below it or with FAILED. RESTORE, TRAIN and STOP have no answer, only FAILED if they could not be
 * done. CHECK may be answered out of order, at once, and PUBLISH after TRAIN and REDUCE that came
 * behind it; STEP is sent unasked. Numbers the trainer must not know (peers, ballots, votes) never
 * appear here.
 *
 * Rounds: a state of round r holds r ROUND records, so INIT gives round 0. TRAIN, PUBLISH and STEP
 * name the round that is worked for; APPLY names the round of the state that it makes, and LOAD the
 * one that the state's header holds. INIT and LOAD pause until the next TRAIN.
 *
 * Rounds of parts (gossip/ledger/part.h): cuts are shares in 1/65536 of the vector
 * (base/run/part_cuts.h), and first and end are shares that a blob is of; compute/outer/part.h maps
 * them to elements. Keys of parts that are absent mean one blob of the whole vector.
 *
 *   T->D HELLO      {abi, name, pid}
 *   D->T OPEN       {member[32], seed} fds: manifest (canonical bytes), tokenizer.json, and the
 *                                              token shards in the manifest's order, up to 32
 *                                                 seed: another one for every process, for chance
 *                                                   that need not come again
 *   T->D OPENED     {elements, device?}           elements: floats in the arena; device: who
 *     computes, for people; or FAILED
 *   D->T INIT       {}                            theta from the manifest's seed, round 0
 *   D->T LOAD       {round} fds: state            state: canonical bytes of theta
 *     (compute/model/state.h)
 *   T->D READY_AT   {round, root}                 answer to INIT and LOAD; root: object root of the
 *     state bytes
 *   D->T RESTORE    {round, kind, settle, clip, lambda, steps, tokens, cuts?, taken?} fds: a [,
 *                                                 blob] what an earlier process had published or
 *                                                 frozen and how it was settled: residual e :=
 *                                                 lambda * (included ? beta*(a - clip*decode(blob))
 *                                                 : a), F := lambda * a; settle NONE: pending
 *                                                 again, whole (blob needed). After LOAD, which
 *                                                 empties all drawers. steps and tokens: those that
 *                                                 F holds, counted on from there; of what was
 *                                                 published, those that it told, which ride along
 *                                                 if it was left out. cuts: those of its round;
 *                                                 taken: INCLUDED, bit p: part p counts it, and on
 *                                                 the others e := lambda * a
 *   D->T TRAIN      {round, tokens, leased, own, lease: [first, count, ...], cuts?}
 *                                                 train on towards this round; tokens: committed so
 *                                                   far (for the rate); round 0:
 *                                                 stop stepping until the next TRAIN (paused), keep
 *                                                   everything. lease: ranges
 *                                                 of samples (base/run/reach.h) that are this
 *                                                   trainer's alone, in the order in
 *                                                 which it goes through them, at most
 *                                                   DP_LEASE_RANGES_MAX; leased: how many
 *                                                 of its lease lie before the first of them. It
 *                                                   goes on from there, or from
 *                                                 where it stands if that is farther; after the
 *                                                   last range, on its own line
 *                                                 from sample own on, or from where it stands
 *                                                   there. cuts: those of this
 *                                                 round; who exchanges gradients may tell of parts
 *                                                   by EARLY then
 *   T->D STEP       {round, steps, tokens, loss, skipped?, spikes?, computed_us?, trained_us?,
 *                    data_us?, publish_us?, apply_us?, state_us?, tell_us?}
 *                    totals since the last publication, unasked, at most 10 per second; skipped:
 *                    steps dropped as not finite or, spikes of them, as too far from the ones
 *                    before; absent: 0. Since the trainer's start: computed_us, in which local
 *                    steps were computed, of trained_us, from TRAIN until it is stopped. The
 *                    others: what the rest of it went to (dp_trainer_spent); absent: 0
 *   T->D EARLY      {round, part, first, end} fds: blob  unasked: a part that the coming
 *                                                 publication will have, unless something happens
 *                                                 to it, so that it can be stored and sent while
 *                                                 the gradient of the others is computed. round:
 *                                                 that of the state, and one. Of each part the last
 *                                                 one that was told counts; where PUBLISHED has the
 *                                                 same, it comes as the same file
 *   D->T PUBLISH    {round, dense, cuts?, keep?}  a = e + F + O; encode; keep pending; go on
 *                                                 training. keep: one element of so many, within
 *                                                 the manifest's span; absent or 0: its codec_keep
 *   T->D PUBLISHED  {round, steps, tokens, loss, carried, energy, leased, own, norm?, error?,
 *                                                 cuts?} fds: blob, a [, parts] cuts as in PUBLISH:
 *                                                 then a blob of each part follows, and blob, all
 *                                                 of them in one, is for a RESTORE alone; energy:
 *                                                 the sum of those of the parts leased, own: how
 *                                                 far it has come with what is in a; no sample
 *                                                 below that is ever in another publication
 *                                                 norm: |a|, error: |a - decode(blob)|, what the
 *                                                   codec left over; absent: 0
 *   D->T CHECK      {id, first?, end?, keep?} fds: blob  decode totally, any trainer thread. keep:
 *     as in PUBLISH for its round
 *   T->D CHECKED    {id, ok, energy[16], foreign?}  energy: section E of the commit rules, u128
 *                                                 little-endian; foreign: not ok, as the blob is of
 *                                                 a codec that the manifest and keep do not allow
 *   D->T JUDGE      {id, keep?, scale, tokens, seed, member[32], own, own_count, lease: [first,
 *                                                 count, ...]} fds: blob measure what somebody
 *                                                 else's update d would do (base/run/judged.h);
 *                                                 nothing else changes. keep: as in CHECK. scale,
 *                                                 Q16: what clipping leaves of d; the step is alpha
 *                                                 of the manifest, and the gain of the codec where
 *                                                 the manifest has it, times that. tokens: to
 *                                                 measure a gain on, at most, on held-out windows,
 *                                                 and as many on samples of lease and own .. own +
 *                                                 own_count - 1 of the line of member, its author;
 *                                                 0: no gain. seed draws the windows. In the order
 *                                                 of commands
 *   T->D JUDGED     {id, failed?, compared?, align, held: [micro, error, tokens], claimed: [micro,
 *                                                 error, tokens], likeness[32]} failed: nothing was
 *                                                 measured; align, Q16: -65536 .. 65536; gains
 *                                                 within +-10^9 micronats
 *   D->T REDUCE     {round, part, first, end, items: [q]} fds: one blob per item, of these shares,
 *                                                 in order of peer key sum f_i d_i on that part,
 *                                                 encoded again; nothing else changes
 *   T->D REDUCED    {round, part, energy, norm?, error?} fds: blob
 *                                                 norm: of the sum; error: what encoding it has
 *                                                   lost, for good
 *   D->T ADD        {round, at, items: [q]} fds: one blob per item, in order of peer key
 *                                                 a slice of the updates of a record that has more
 *                                                   than one packet hands over: they
 *                                                 are added, as APPLY would, to the sum of the at
 *                                                   updates before them; at 0: to
 *                                                 nothing. Nothing else changes
 *   T->D ADDED      {round, at}                   at: of how many the sum is now
 *   D->T APPLY      {round, tokens, alpha, settle, clip, lambda, items: [q], shares?: [first, end,
 *                    ...], contributors?, cuts?, taken?, at?} fds: one blob per item, in order of
 *                    peer key; of parts, in their order at, above 0: the update is the sum of so
 *                    many that ADD has made, and there are no items
 *                                                 theta -= alpha * sum f_i d_i; settle the pending
 *                                                   publication:
 *                                                 DP_SETTLE_NONE | INCLUDED (clip, Q16; taken as in
 *                                                   RESTORE) | LEFT_OUT; then
 *                                                 rebase. shares: of each item. contributors:
 *                                                   publications that the record
 *                                                 lists; absent or 0: as many as items
 *   T->D APPLIED    {round, root, outer_reach?} fds: state  state snapshot, sealed; outer_reach:
 *                                                 how many updates far the outer step with momentum
 *                                                 would have gone (compute/outer/consensus.h);
 *                                                 absent: 0, unknown
 *   D->T FREEZE     {exchange}                    F += O (O := 0); encode F dense; nothing is
 *     applied
 *   T->D FROZEN     {exchange, steps, tokens, leased, own, energy} fds: blob, f
 *   D->T MIX        {exchange, weight_own, weight_other, lambda} fds: own blob, other blob
 *                                                 F += lambda (D' - D_own), x -= the same; D' =
 *                                                   weighted mean of the decoded;
 *                                                 lambda: by what APPLY and RESTORE have scaled F
 *                                                   since it was frozen
 *   T->D MIXED      {exchange, moved}             moved: sum of weight_own * change of F over all
 *     elements (for the journal)
 *   D->T EVAL       {tokens}                      validation loss over at most so many held-out
 *     tokens (0: all)
 *   T->D EVALUATED  {loss, bits_per_byte, tokens}
 *   D->T SAMPLE     {prompt, tokens, seed}
 *   T->D SAMPLED    {text}
 *   D->T STOP       {}                            leave cleanly
 *   T->D FAILED     {what, of?, lacks?}           the command could not be done; the trainer stays
 *                                                 in step. of: the kind of that command; absent or
 *                                                 0: the oldest without an answer. lacks: nothing
 *                                                 is wrong with what came with it, memory or
 *                                                 descriptors are missing here; but for EVAL and
 *                                                 SAMPLE the daemon then starts another trainer */
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

enum {
    DP_TRAINER_ABI =
        5, /* 1 drew its samples itself; 2 knew no parts; 3 no slices; 4 did not judge */
    DP_TRAINER_PACKET_MAX = 64 * 1024,
    /* 32 shards of data with manifest and tokenizer; 32 contributors; 32 parts with what they are
     * of, and a. */
    DP_TRAINER_FDS_MAX = 34,
    DP_TRAINER_ITEMS_MAX = 32,
    DP_TRAINER_TEXT_MAX = 8192
};

typedef enum dp_trainer_kind {
    DP_TRAINER_HELLO = 1,
    DP_TRAINER_OPEN,
    DP_TRAINER_OPENED,
    DP_TRAINER_INIT,
    DP_TRAINER_LOAD,
    DP_TRAINER_READY_AT,
    DP_TRAINER_RESTORE,
    DP_TRAINER_TRAIN,
    DP_TRAINER_STEP,
    DP_TRAINER_PUBLISH,
    DP_TRAINER_PUBLISHED,
    DP_TRAINER_CHECK,
    DP_TRAINER_CHECKED,
    DP_TRAINER_APPLY,
    DP_TRAINER_APPLIED,
    DP_TRAINER_FREEZE,
    DP_TRAINER_FROZEN,
    DP_TRAINER_MIX,
    DP_TRAINER_MIXED,
    DP_TRAINER_EVAL,
    DP_TRAINER_EVALUATED,
    DP_TRAINER_SAMPLE,
    DP_TRAINER_SAMPLED,
    DP_TRAINER_STOP,
    DP_TRAINER_FAILED,
    DP_TRAINER_REDUCE,
    DP_TRAINER_REDUCED,
    DP_TRAINER_EARLY,
    DP_TRAINER_ADD,
    DP_TRAINER_ADDED,
    DP_TRAINER_JUDGE,
    DP_TRAINER_JUDGED,
    DP_TRAINER_KIND_COUNT
} dp_trainer_kind;

typedef enum dp_settle {
    DP_SETTLE_NONE = 0,
    DP_SETTLE_INCLUDED = 1,
    DP_SETTLE_LEFT_OUT = 2
} dp_settle;

/* What RESTORE brings back. PENDING with settle NONE: published and undecided, kept as pending. */
typedef enum dp_restore { DP_RESTORE_PENDING = 1, DP_RESTORE_FROZEN = 2 } dp_restore;

/* Shares first .. end - 1 of a vector; {0, 0}: all of it. */
typedef struct dp_part_range {
    uint32_t first;
    uint32_t end;
} dp_part_range;

/* What trained_us went to beside local steps. What is in none of these: commands without a name
 * here, and looking for them. */
typedef struct dp_trainer_spent {
    uint64_t data_us;    /* waiting for samples */
    uint64_t publish_us; /* what leaves: the snapshot, its encoding, what is measured of it */
    uint64_t apply_us;   /* records: theta, and what is settled */
    uint64_t state_us;   /* the bytes of states, and their roots */
    uint64_t tell_us;    /* files and messages to the daemon */
} dp_trainer_spent;

/* One message of any kind; fields that a kind does not name are zero and do not travel. */
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
    uint64_t seed;
    uint32_t n_items;
    uint32_t q[DP_TRAINER_ITEMS_MAX];           /* Q31 */
    dp_part_range shares[DP_TRAINER_ITEMS_MAX]; /* of each item */
    uint32_t contributors;
    uint32_t at;         /* ADD, ADDED, APPLY */
    uint32_t part;       /* REDUCE, EARLY */
    dp_part_range range; /* CHECK, REDUCE, EARLY */
    dp_part_cuts cuts;   /* n = 0: no parts */
    uint32_t taken;      /* bit p: part p counts the publication */
    uint32_t keep;    /* PUBLISH, CHECK, JUDGE: one element of so many; 0: as the manifest says */
    uint32_t scale;   /* JUDGE, Q16 */
    dp_judged judged; /* JUDGED */
    dp_reach reach;   /* JUDGE: own alone, and own_count from there on */
    uint64_t own_count;
    uint32_t n_ranges;
    dp_sample_range ranges[DP_LEASE_RANGES_MAX];
    char text[DP_TRAINER_TEXT_MAX +
              1]; /* HELLO name, OPENED device, FAILED what, SAMPLE prompt, SAMPLED text */
} dp_trainer_msg;

const char *dp_trainer_kind_name(dp_trainer_kind kind);
DP_MUST dp_status dp_trainer_encode(const dp_trainer_msg *msg, dp_buf *out);
/* Total: unknown kind, missing or mistyped fields, counts beyond the limits give DP_BADMSG. Unknown
 * keys are ignored. */
DP_MUST dp_status dp_trainer_decode(dp_trainer_msg *msg, dp_view bytes);

/* Send one packet with fds (may be 0 of them). Blocking or not follows the socket. DP_AGAIN,
 * DP_CLOSED, DP_IO. */
DP_MUST dp_status dp_trainer_send(int socket, const dp_trainer_msg *msg, const int *fds,
                                  uint32_t n_fds);
/* Receive one packet; *n_fds says how many arrived in fds (owned by the caller, close-on-exec).
 * DP_NOMEM: memory, or room for its descriptors, was missing, and the packet is lost. */
DP_MUST dp_status dp_trainer_receive(int socket, dp_trainer_msg *msg, int fds[DP_TRAINER_FDS_MAX],
                                     uint32_t *n_fds);

/* Bulk data: a sealed memfd (no grow, shrink, write) from bytes, and its mapping. The mapping
 * outlives the fd. */
DP_MUST dp_status dp_memfd_make(const char *name, dp_view bytes, int *fd);
/* The same in pieces: an empty one, more bytes at its end, and sealed. The caller closes fd if a
 * later step fails. */
DP_MUST dp_status dp_memfd_start(const char *name, int *fd);
DP_MUST dp_status dp_memfd_add(int fd, dp_view bytes);
DP_MUST dp_status dp_memfd_seal(int fd);
/* DP_BADMSG if it is not sealed against writing and shrinking or larger than bytes_max. */
DP_MUST dp_status dp_memfd_map(int fd, uint64_t bytes_max, dp_view *bytes);
void dp_memfd_unmap(dp_view bytes);

#endif
