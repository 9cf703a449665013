/* Rounds of parts: the owner of each range of a round's update, and the owner's statement of a part
 * that it has summed. Pure arithmetic and bytes; part_round.h is the machine around them.
 *
 * A part is a range of the vector, cut at shares in 1/65536 of it: part p is [first[p], first[p +
 * 1]), the last one ends at 65536; the trainer maps shares to elements of its codec's runs. Layout
 * and owners of round t follow from record t - 1 alone: the members listed in it in order of peer,
 * in proportion to max(0, (2N - 2) r_i - sum r) of the rates r that stand in it (equal where a rate
 * is unknown), none above twice the lower median; a member with a share of 0 is no owner. Before
 * the first record the founder owns all. Derivation: member i sends n + (N - 2) s_i elements when
 * it owns s_i of n (reduce-scatter of the others' parts, then its result to all), so all members
 * end together at s_i = n ((2N - 2) r_i / sum r - 1) / (N - 2).
 *
 * A publication is one object per part, in the run's codec. READY names the list of them:
 *     root = H("dpnode/parts/1", u8 n | n times {32 object root, u64 bytes})
 *
 *   PART       head | 32 owner | u64 t | 32 base | u8 part | 32 root of the result | u64 bytes | u8
 *              n | n times {32 peer, 32 root of its READY}, peers rising | 64 signature
 * The signature is of the owner's identity key, domain "dpnode/part/1", over run | fork | all of
 * these but the signature. Where publications came as sums of sites (part_sum.h) 128 is added to n,
 * and behind the sources stand u8 m, 1 to DP_SITE_SUMS_MAX | m times {u8 which source is the
 * collector | u32 bit i: source i is in it | 32 root | u64 bytes | 64 signature of the collector},
 * by their first sources; the domain is "dpnode/part/2" then. */
#ifndef DP_GOSSIP_RECORD_PART_H
#define DP_GOSSIP_RECORD_PART_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/run/part_cuts.h"
#include "gossip/core/crypto.h"
#include "gossip/core/id.h"

enum {
    DP_PART_SOURCES_MAX = 32, /* contributions in one part; as many as a record lists */
    DP_SITE_SUMS_MAX = 16,    /* sums of sites in one part, each of two contributions at least, */
    DP_SITE_SUMS_ALL = 64     /* ... and in all parts of a record */
};

typedef struct dp_part_layout {
    dp_part_cuts cuts;
    dp_peer owners[DP_PARTS_MAX];
} dp_part_layout;

void dp_part_layout_first(dp_part_layout *layout, const dp_peer *founder);
/* peers rise; n in 1..DP_PARTS_MAX. rates in one unit, 0: unknown. */
void dp_part_layout_of(dp_part_layout *layout, const dp_peer *peers, const uint32_t *rates,
                       uint32_t n);

/* The rate that a member tells of its own line: the lower median of the rates in the last record if
 * its own is within a quarter of that, else the rate that it has measured. Measured rates are
 * noisy, since the line carries other traffic too: of four equal lines, one that seems a tenth
 * faster would add up three tenths more than the others, and a round takes twice as long as its
 * largest part. median 0: unknown. */
uint32_t dp_part_rate_told(uint32_t measured, uint32_t median);

/* An object of a publication. */
typedef struct dp_part_ref {
    dp_hash root;
    uint64_t bytes;
} dp_part_ref;

typedef struct dp_part_list {
    uint32_t n;
    dp_part_ref refs[DP_PARTS_MAX];
} dp_part_list;

dp_hash dp_part_list_root(const dp_part_list *list);
uint64_t dp_part_list_bytes(const dp_part_list *list);
void dp_part_list_write(dp_writer *writer, const dp_part_list *list);
/* False: bad count, or an object of no or too many bytes. */
bool dp_part_list_read(dp_reader *reader, dp_part_list *list);

typedef struct dp_part_source {
    dp_peer peer;
    dp_hash root; /* of its READY */
} dp_part_source;

/* Contributions that came added up (part_sum.h). Of a part its bits are those of the word's
 * sources, in a record those of the listed. */
typedef struct dp_site_sum {
    uint32_t collector; /* which of them has added it up */
    uint32_t from;      /* bit i: it is in it */
    dp_hash root;
    uint64_t bytes;
    uint8_t signature[DP_SIGNATURE_BYTES]; /* of the collector's word */
} dp_site_sum;

/* An owner's word: the content of a PART message. */
typedef struct dp_part_word {
    dp_peer owner;
    uint64_t round;
    dp_hash base;
    uint32_t part;
    dp_hash root;
    uint64_t bytes;
    uint32_t n;
    dp_part_source sources[DP_PART_SOURCES_MAX];
    uint32_t n_sums; /* of sites; 0 in a run without them */
    dp_site_sum sums[DP_SITE_SUMS_MAX];
    uint8_t signature[DP_SIGNATURE_BYTES];
} dp_part_word;

bool dp_part_sign(dp_part_word *word, const dp_crypto *crypto, const dp_hash *run,
                  const dp_hash *fork);
/* With the words of the collectors that are in it. */
bool dp_part_verify(const dp_part_word *word, const dp_crypto *crypto, const dp_hash *run,
                    const dp_hash *fork);
void dp_part_msg_write(dp_writer *writer, const dp_part_word *word);
/* Total and strict; the signature is not looked at. */
DP_MUST dp_status dp_part_msg_read(dp_view message, dp_part_word *word);

#endif
