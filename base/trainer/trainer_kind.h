/* The trainer protocol: the messages between the daemon (D) and a trainer process (T) over a
 * SOCK_SEQPACKET socketpair. Their C form is in trainer_msg.h; FORMATS, section 8, has the numbers.
 *
 * One packet is one msgpack map of at most DP_TRAINER_PACKET_MAX bytes. Bulk data travels as sealed
 * memfds passed with SCM_RIGHTS, at most DP_TRAINER_FDS_MAX per packet, in the order named here.
 * The key "type" of the map is the dp_trainer_kind; the other keys are the names in braces, where a
 * question mark means that the key may be absent.
 *
 * The daemon leads. The trainer answers each command once, in order, with the message below it or
 * with FAILED. RESTORE, TRAIN, LIMITS and STOP have no answer, and FAILED if they fail. Five
 * things may come out of order: CHECKED, at any time; PUBLISHED, after later TRAIN and REDUCE
 * commands; STEP, SCRIPT and RESTING, which nobody asks for. Peers, ballots and votes never appear
 * here.
 *
 * Rounds: a state of round r holds r ROUND records, so INIT gives round 0. TRAIN, PUBLISH and STEP
 * name the round that the work is for. APPLY names the round of the state that it makes, LOAD that
 * in the header of the state. INIT and LOAD pause training until the next TRAIN.
 *
 * Rounds of parts (gossip/record/part.h): cuts are shares in 1/65536 of the vector
 * (base/run/part_cuts.h); first and end are the shares that a blob covers; compute/outer/part.h
 * maps shares to elements. Without these keys a blob covers the whole vector.
 *
 * T->D HELLO {abi, name, pid}
 *
 * D->T OPEN {member[32], seed}   fds: manifest, tokenizer.json, token shards, base?
 *     In a run of any model the second is the table of tensors (compute/model/tensor_table.h), and
 *     there are no shards; such a trainer holds vectors, and a script takes the steps
 *     (SCRIPT).
 *     base, of a run with adapters: the weights below them (compute/model/base_weights.h).
 *     The manifest is canonical bytes; the shards come in its order, at most 32. seed differs for
 *     every process; it drives random choices that need not be repeatable.
 * T->D OPENED {elements, device?}
 *     elements: floats of the model. device: text for people.
 *
 * D->T INIT {}
 *     Sets theta from the seed of the manifest.
 * D->T LOAD {round}   fds: state
 *     state: canonical bytes (compute/model/state.h).
 * T->D READY_AT {round, root}
 *     Answers INIT and LOAD. root: object hash of the bytes of the state.
 *
 * D->T RESTORE {round, kind, settle, clip, lambda, steps, tokens, carried?, cuts?, taken?}
 *                fds: a, blob?
 *     After LOAD, which empties all work buffers: restores a vector a of an earlier process.
 *     kind FROZEN: F := lambda a; steps and tokens are the work in F and count as done.
 *     kind PENDING: blob was published, steps and tokens are those of that publication, and carried
 *     of the tokens it carried. settle NONE: it is pending again. INCLUDED: e := lambda beta (a -
 *     clip decode(blob)). LEFT_OUT: e := lambda a, and the tokens are carried. cuts: those of its
 *     round; bit p of taken says that part p counts the publication, and on the other parts e :=
 *     lambda a.
 *
 * D->T TRAIN {round, tokens, leased, own, lease: [first, count, ...]}
 *     Trains for this round. round 0 pauses steps until the next TRAIN and keeps everything.
 *     tokens: committed so far, for the learning rate. lease: sample ranges of this trainer alone
 *     (base/run/reach.h), at most DP_LEASE_RANGES_MAX, in the order of use; leased: samples of the
 *     lease before the first range. The trainer continues there, or farther on if it has come
 *     farther; after the last range it uses its own line from sample own on, or farther.
 * T->D STEP {round, steps, tokens, loss, skipped?, spikes?, empty?, again?, computed_us?,
 *            trained_us?, data_us?, publish_us?, apply_us?, state_us?, tell_us?, celsius?, watts?}
 *     Totals since the last publication, at most 10 messages per second. skipped: dropped steps,
 *     spikes of which had a loss spike and empty of which no token with a loss; the others were not
 *     finite. again: these are of a publication that a record left out, and a publication of now
 *     would have them; in a run of any model, without a script, also after APPLY and RESTORE. The
 *     times count from the start of the trainer: trained_us, from TRAIN to its end; computed_us of
 *     it, for local steps; the other times are the rest (dp_trainer_spent). An absent number is 0.
 *     celsius, watts: of the device that computes, as read in the last seconds; 0: not known.
 * D->T PUBLISH {round, dense, cuts?, keep?}
 *     a := e + F + O; encodes it, keeps it pending and trains on. keep: one element of so many is
 *     sent, within the limits of the manifest; 0 or absent: its codec_keep.
 * T->D PUBLISHED {round, steps, tokens, loss, carried, energy, leased, own, norm?, error?, cuts?}
 *                fds: blob, a, parts
 *     With cuts, which are those of PUBLISH, a blob of each part follows, energy is the sum over
 *     the parts, and blob holds all of them for RESTORE. leased, own: how far a goes in the lease
 *     and on the own line; no earlier sample is in a later publication. norm: |a|. error:
 *     |a - decode(blob)|, the loss of the codec. Absent: 0.
 *
 * D->T CHECK {id, first?, end?, keep?}   fds: blob
 *     Decodes the blob in full, on any thread. keep: as in the PUBLISH of its round.
 * T->D CHECKED {id, ok, energy[16], foreign?}
 *     energy: sum of squares (u128, little-endian). foreign: the blob is not ok because manifest
 *     and keep do not allow its codec.
 *
 * D->T JUDGE {id, keep?, scale, tokens, seed, member[32], own, own_count, lease: [first, count,
 *             ...]}   fds: blob
 *     Measures the effect of a peer's update d (base/run/judged.h) and changes nothing. keep: as in
 *     CHECK. The step measured is alpha of the manifest, times scale (Q16: the clipping factor of
 *     d), times the gain of the codec if the manifest has one. tokens: at most so many held-out
 *     ones, and as many of the samples that its author (member) claims: lease, and own_count
 *     samples of its line from own on. 0: no gain is measured. seed draws the windows.
 * T->D JUDGED {id, failed?, compared?, align, held: [micro, error, tokens], claimed: [micro, error,
 *              tokens], likeness[32]}
 *     failed: nothing was measured. align, Q16: -65536 to 65536. Gains lie within 10^9 micronats
 *     of 0.
 *
 * D->T REDUCE {round, part, first, end, items: [q]}   fds: a blob per item, in order of peer key
 *     Encodes the sum of q_i d_i over these shares. Changes nothing.
 * T->D REDUCED {round, part, energy, norm?, error?}   fds: blob
 *     norm: of the sum. error: what encoding has lost; no error feedback keeps it.
 *
 * D->T ADD {round, at, items: [q]}   fds: a blob per item, in order of peer key
 *     A slice of a record with more updates than one packet holds: adds them, as APPLY would, to
 *     the sum of the at updates before them; at 0 starts a sum. Changes nothing else.
 * T->D ADDED {round, at}
 *     at: updates in the sum now.
 * D->T APPLY {round, tokens, alpha, settle, clip, lambda, items: [q], shares?: [first, end, ...],
 *             contributors?, cuts?, taken?, at?}   fds: a blob per item, in order of peer key; of
 *             parts, in order of the parts
 *     theta -= alpha sum q_i d_i; settles the pending publication (settle, and clip, cuts and taken
 *     as in RESTORE); scales e, F and O by lambda; rebases x on the new theta. at above 0: the
 *     update is the sum of so many that ADD has made, and there are no items. shares: of each item.
 *     contributors: publications in the record; 0 or absent: as many as items.
 * T->D APPLIED {round, root, outer_reach?}   fds: state
 *     outer_reach: how many updates far the outer step with momentum would go
 *     (compute/outer/consensus.h); 0 or absent: unknown.
 *
 * D->T FREEZE {exchange}
 *     F += O, O := 0; encodes F with a dense codec.
 * T->D FROZEN {exchange, steps, tokens, leased, own, energy}   fds: blob, f
 * D->T MIX {exchange, weight_own, weight_other, lambda}   fds: own blob, other blob
 *     With D' the weighted mean of both decoded blobs: F += lambda (D' - D_own), x -= the same.
 *     lambda: the factor by which APPLY and RESTORE have scaled F since FREEZE.
 * T->D MIXED {exchange, moved}
 *     moved: sum over all elements of weight_own times the change of F, for the journal.
 *
 * D->T EVAL {tokens}
 *     Loss over at most so many held-out tokens; 0: all. While it computes for this or for SAMPLE,
 *     which may take long, the trainer sends STEP; one that is silent for longer than the daemon's
 *     answer-time is ended.
 * T->D EVALUATED {loss, bits_per_byte, tokens}
 * D->T SAMPLE {prompt, tokens, seed, temperature?, top_k?, top_p?}
 *     Text from theta; training stands still meanwhile. Of temperature and the others there are all
 *     or none (compute/trainer/sample.h).
 * T->D SAMPLED {text}
 *
 * T->D SCRIPT {pid}
 *     Unasked, in a run of any model: a script has connected (docs/TRAINER.md); pid 0: it is gone,
 *     as at the start. With a script, PUBLISH and FREEZE wait for its next look: at most 8 s, and
 *     not beyond a command other than REDUCE and TRAIN of a round. Steps are told once the trainer
 *     has a copy of some.
 *
 * D->T LIMITS {celsius, watts}
 *     The owner's limits of heat and power from now on, in place of those of the command line; 0:
 *     none. At any time, also before OPEN.
 * T->D RESTING {ok, celsius?}
 *     Unasked. ok: the machine is so hot that nothing is computed until it is cooler; training that
 *     was asked for goes on then by itself. Not ok: it may compute again, as at the start.
 *
 * D->T STOP {}
 *     Ends the trainer.
 * T->D FAILED {what, of?, lacks?}
 *     A command failed; the trainer continues with the next. of: the kind of that command; 0 or
 *     absent: the oldest one without an answer. lacks: memory or descriptors were missing, and the
 *     command itself is valid; unless it was EVAL or SAMPLE the daemon starts another trainer. Of
 *     OPEN: the model does not fit this machine, and the next trainer starts after minutes. */
#ifndef DP_BASE_TRAINER_TRAINER_KIND_H
#define DP_BASE_TRAINER_TRAINER_KIND_H

enum {
    /* 1: the trainer drew its samples; 2: without parts; 3: without ADD; 4: without JUDGE; 5: with
     * EARLY, parts of a gradient before its publication, and other numbers behind it; 6: without
     * SCRIPT. */
    DP_TRAINER_ABI = 7,
    DP_TRAINER_PACKET_MAX = 64 * 1024,
    /* 32 shards with manifest and tokenizer; 32 contributors; 32 parts with their whole and a. */
    DP_TRAINER_FDS_MAX = 34,
    DP_TRAINER_ITEMS_MAX = 32,
    DP_TRAINER_TEXT_MAX = 8192 /* bytes, without the NUL */
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
    DP_TRAINER_ADD,
    DP_TRAINER_ADDED,
    DP_TRAINER_JUDGE,
    DP_TRAINER_JUDGED,
    DP_TRAINER_SCRIPT,
    DP_TRAINER_LIMITS,
    DP_TRAINER_RESTING,
    DP_TRAINER_KIND_COUNT
} dp_trainer_kind;

/* Effect of a record on the publication of this node: none, counted, left out. */
typedef enum dp_settle {
    DP_SETTLE_NONE = 0,
    DP_SETTLE_INCLUDED = 1,
    DP_SETTLE_LEFT_OUT = 2
} dp_settle;

/* The buffer that RESTORE fills. PENDING with DP_SETTLE_NONE is published and undecided. */
typedef enum dp_restore { DP_RESTORE_PENDING = 1, DP_RESTORE_FROZEN = 2 } dp_restore;

#endif
