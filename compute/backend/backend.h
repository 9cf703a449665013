/* The table that a compute backend fills: an engine that holds one node's model, trains it and does
 * the arithmetic of rounds. The trainer (trainer.h) decides what happens and talks to nothing else;
 * the CPU (backend_cpu.h) is the first implementation and the definition of right, a plugin
 * (plugin.h) may be another. Knows no network, no files, no data.
 *
 * An engine holds the vectors of dp_vector, the gradients and the optimizer's state, wherever its
 * device likes them. All vectors have the layout of the model's arena, n = model->n_elements
 * floats. Two kinds of results:
 * - exact: what replicas must agree on, or what must add up between drawers. Every operation is one
 *   rounded float operation in the order written here, without contraction, with subnormals: the
 *   same bits on every backend.
 * - near: what a step computes (loss, gradient, norm, moments). The same bits for the same engine,
 *   device and build; near the CPU's within the precision of the run.
 *
 * One thread calls at a time, any thread. A call has happened when it returns, to those who look
 * through this table; a device may still be busy. encode_start alone goes on beside the calls that
 * follow. Bytes and pointers are borrowed for the call. Calls that can fail on a device return a
 * status: DP_DIVERGED where it says so; DP_IO: the device is gone or broken, then problem() has the
 * sentence and only close() may follow; DP_NOMEM. Blobs have been checked (dp_codec_check) by the
 * caller. */
#ifndef DP_COMPUTE_BACKEND_BACKEND_H
#define DP_COMPUTE_BACKEND_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/run/manifest.h"
#include "compute/backend/plan.h"
#include "compute/codec/codec.h"
#include "compute/model/gpt.h"
#include "compute/model/model.h"
#include "compute/model/optim.h"
#include "compute/outer/consensus.h"

enum {
    DP_BACKEND_MAGIC = 0x42504431, /* "1DPB" as bytes */
    DP_BACKEND_VERSION = 13,       /* of this table and of what it says; any change is another */
    DP_BACKEND_LAYOUTS = 13,
    DP_BACKEND_STATE_MAX = 1 + DP_OPTIM_VECTORS_MAX,
    DP_DEVICE_NAME_MAX = 96
};

/* Sizes of all that crosses the seam, so that a plugin of another build is told apart even when
 * nobody raised the version. */
#define DP_BACKEND_LAYOUT                                                                          \
    {                                                                                              \
        (uint32_t)sizeof(dp_backend), (uint32_t)sizeof(dp_engine_setup),                           \
            (uint32_t)sizeof(dp_device), (uint32_t)sizeof(dp_model), (uint32_t)sizeof(dp_tensor),  \
            (uint32_t)sizeof(dp_manifest), (uint32_t)sizeof(dp_plan),                              \
            (uint32_t)sizeof(dp_gpt_batch), (uint32_t)sizeof(dp_optim_options),                    \
            (uint32_t)sizeof(dp_codec), (uint32_t)sizeof(dp_why),                                  \
            (uint32_t)sizeof(dp_backend_parts), (uint32_t)sizeof(dp_consensus_items)               \
    }

/* What a backend can do; the trainer refuses a run that needs another. */
typedef enum dp_capability {
    DP_CAN_FP32 = 1 << 0,
    DP_CAN_BF16 = 1 << 1,
    DP_CAN_FP16 = 1 << 2,
    DP_CAN_ADAMW = 1 << 3,
    DP_CAN_LAMB = 1 << 4,
    DP_CAN_LARS = 1 << 5,
    DP_CAN_MUON = 1 << 6,
    DP_CAN_BF16_WEIGHTS = 1 << 7, /* DP_WEIGHTS_BF16 and DP_WEIGHTS_BF16_SR */
    DP_CAN_CODECS = 1 << 8,       /* all of codec.h; there is no backend without */
    DP_CAN_TELL_FINAL = 1 << 9    /* on_final tells; else it does nothing */
} dp_capability;

typedef struct dp_engine dp_engine; /* the backend's own */

/* In the letters of trainer.h. */
typedef enum dp_vector {
    DP_VECTOR_X,      /* the weights that step, norm and update work on */
    DP_VECTOR_THETA,  /* what all replicas hold */
    DP_VECTOR_E,      /* error feedback */
    DP_VECTOR_F,      /* frozen */
    DP_VECTOR_A,      /* published */
    DP_VECTOR_ANCHOR, /* x at the publication */
    DP_VECTOR_M,      /* momentum of the outer step; only where dp_engine_setup says so */
    DP_VECTORS,
    DP_VECTOR_NONE = DP_VECTORS
} dp_vector;

/* During a step, on its thread, which waits: elements first .. n - 1 of gradients, n floats in
 * memory of the host to read, have all their terms, the loss scale still in them. first falls from
 * call to call. beside: the same elements of the vector that was asked for with them; NULL: none
 * was. */
typedef void (*dp_backend_final)(void *context, const float *gradients, const float *beside,
                                 size_t first);

typedef struct dp_device {
    char name[DP_DEVICE_NAME_MAX]; /* "NVIDIA H200", "avx512bf16, 8 threads" */
    uint64_t memory_total;         /* bytes; 0: not known, as below */
    uint64_t memory_usable;
    int32_t celsius;  /* INT32_MIN: not known */
    uint32_t watts;   /* 0: not known */
    uint32_t percent; /* busy with others' work; 0 also where it is not known */
    bool taken;       /* a trainer of dpnode on this machine has it: create gives DP_BUSY */
} dp_device;

/* What create needs; borrowed until close. */
typedef struct dp_engine_setup {
    const dp_model *model;
    dp_precision_kind precision;
    dp_optim_kind optimizer;
    dp_weights_kind weights;
    uint64_t seed; /* of stochastic rounding */
    uint32_t device;
    uint32_t rows_max;
    dp_recompute recompute;
    dp_gpt_packs packs;
    size_t threads; /* of the host's processors, in each process; 0: as many as the machine gives */
    /* processes of this host that train together (team.h); a plugin does not look at it; NULL: this
     * one */
    struct dp_team *team;
    /* of so many parts of the arena: whose moments are here (dp_optim_cut), as in dp_optim_setup */
    size_t part;
    size_t parts; /* 0: one, the whole. More than one only where the table has parts */
    /* theta is x, and there are no other vectors: only init and what trains or looks is called */
    bool alone;
    bool momentum; /* of the outer step: there is an m */
    /* another engine may be on the device too, as for a self-test beside a node; else create gives
     * DP_BUSY */
    bool shared;
} dp_engine_setup;

enum { DP_LINK_BYTES = 128 };

/* By which engines of one host find each other; one for each link. */
typedef struct dp_card_link_id {
    uint8_t bytes[DP_LINK_BYTES];
} dp_card_link_id;

/* One end of a link. */
typedef struct dp_card_link {
    dp_card_link_id id;
    /* Asked while the others are waited for: whether one of them is gone, so that there is nothing
     * to wait for. */
    bool (*is_over)(void *context);
    void *context; /* borrowed until close */
} dp_card_link;

/* Engines that train as one: as many as parts, each on a device and in a process of its own, engine
 * part of setup.part. Each steps with its own rows; sums are then made, and the optimizer's step is
 * done, by part; zero.h has the order. What all must come to is marked so: it ends with DP_IO where
 * one is gone. */
typedef struct dp_backend_parts {
    /* "NCCL 2.21.5", for people; or why there is none. DP_UNSUPPORTED with a sentence: the devices
     * reach each other by the host alone. */
    dp_status (*library)(char name[DP_DEVICE_NAME_MAX], dp_why *why);
    /* By the first, for all. DP_UNSUPPORTED, DP_IO with a sentence. */
    dp_status (*link_id)(dp_card_link_id *out, dp_why *why);
    /* All must come. DP_UNSUPPORTED, DP_NOMEM, DP_IO with a sentence; the engine can do without if
     * it is DP_UNSUPPORTED. */
    dp_status (*link)(dp_engine *engine, const dp_card_link *link, dp_why *why);

    /* ---- With a link. */

    /* All must come. The own part of the gradients becomes the sum of everybody's, added as zero.h
     * says. squares: sums of squares of blocks of DP_NORM_BLOCK of the part, counted from its first
     * element: dp_norm_blocks(part's size) doubles of the host. */
    dp_status (*sum)(dp_engine *engine, double *squares);
    /* All must come. x = everybody's own part of it. */
    dp_status (*spread)(dp_engine *engine);

    /* ---- Without: by memory of the host. */

    /* The own part of the gradients = sum, as many floats as it has; squares as above. */
    dp_status (*put_sum)(dp_engine *engine, const float *sum, double *squares);

    /* ---- Either. */

    /* x = n floats, whatever they are. */
    dp_status (*put_x)(dp_engine *engine, const float *x);
    /* Gradients = 0 but for the own part. */
    dp_status (*keep_part)(dp_engine *engine);
} dp_backend_parts;

typedef struct dp_backend {
    uint32_t magic;
    uint32_t version;
    uint32_t layout[DP_BACKEND_LAYOUTS]; /* DP_BACKEND_LAYOUT */
    uint32_t capabilities;               /* dp_capability bits */
    const char *name;                    /* "cpu", "cuda" */
    const dp_backend_parts *parts;       /* NULL: its engines hold the whole each */

    /* ---- Devices. */

    /* How many there are; 0 with a sentence in why ("no CUDA device: ..."). */
    uint32_t (*devices)(dp_why *why);
    /* DP_BADARG: no such device; DP_IO. */
    dp_status (*device)(uint32_t index, dp_device *out, dp_why *why);
    /* What training takes there, without taking it (plan.h). request->budget 0: what is usable
     * now. */
    dp_status (*plan)(uint32_t index, const dp_plan_request *request, dp_plan *plan, dp_why *why);

    /* ---- Life. */

    /* Takes all memory. All vectors and gradients are 0. DP_BADARG, DP_TOOBIG, DP_NOMEM,
     * DP_UNSUPPORTED, DP_IO, each but DP_NOMEM with a sentence. */
    dp_status (*create)(dp_engine **out, const dp_engine_setup *setup, dp_why *why);
    void (*close)(dp_engine *engine); /* Accepts NULL. */
    /* A sentence about the last call that failed with DP_IO; "" if none did. Lent until close. */
    const char *(*problem)(const dp_engine *engine);

    /* ---- Vectors, exact. to and from are different ones. */

    /* theta as dp_model_init makes it. */
    dp_status (*init)(dp_engine *engine, uint64_t seed);
    /* From n little-endian floats. DP_BADMSG: not so many bytes; DP_DIVERGED: one is not finite;
     * then it is unchanged. */
    dp_status (*load)(dp_engine *engine, dp_vector to, dp_view bytes);
    /* The vector in memory of the host, as it is now: n floats to read, lent until the next call
     * that changes it or asks for another vector. NULL: problem(). */
    const float *(*values)(dp_engine *engine, dp_vector from);
    dp_status (*zero)(dp_engine *engine, dp_vector to);
    dp_status (*copy)(dp_engine *engine, dp_vector to, dp_vector from);
    dp_status (*add)(dp_engine *engine, dp_vector to, dp_vector from);      /* to = to + from */
    dp_status (*subtract)(dp_engine *engine, dp_vector to, dp_vector from); /* to = to - from */
    /* to = to * (lambda 2^-16); untouched for 65536, 0 for 0. */
    dp_status (*scale)(dp_engine *engine, dp_vector to, uint32_t lambda);
    /* to = e + (from - weights), weights = x; without "e +" where e is DP_VECTOR_NONE. DP_DIVERGED
     * if some result is not finite; to may then hold anything. */
    dp_status (*snapshot)(dp_engine *engine, dp_vector to, dp_vector e, dp_vector from);

    /* ---- Training, near. */

    /* Moments, masters and step count back to 0. */
    dp_status (*reset)(dp_engine *engine);
    /* Gradients = 0: what was added since the last update is forgotten. */
    dp_status (*drop)(dp_engine *engine);
    /* Forward and backward of a micro-batch at x, as dp_gpt_step: gradients += scale * d(sum of
     * losses). *loss_sum in nats. DP_BADARG, DP_DIVERGED (the loss is not finite: drop() must
     * follow). */
    dp_status (*step)(dp_engine *engine, const dp_gpt_batch *batch, float scale, double *loss_sum);
    /* Whom the next step alone tells of gradients that have all their terms, the one that completes
     * a batch: while it computes the others. NULL: nobody. May tell of some or of none, where
     * gradients are not in memory of the host by then; what it told before DP_DIVERGED is spoiled
     * like the rest. beside: a vector whose elements come with those that are told, and no others;
     * DP_VECTOR_NONE: none does. What values() lent is over then. */
    void (*on_final)(dp_engine *engine, dp_backend_final final, dp_vector beside, void *context);
    /* The gradients in memory of the host, as they are now: n floats to read, lent until the next
     * call. NULL: problem(). */
    const float *(*gradients)(dp_engine *engine);
    /* |gradients|, the loss scale still in it; not finite where one is not. */
    dp_status (*norm)(dp_engine *engine, double *norm);
    /* dp_optim_step_with on x and the gradients. DP_DIVERGED: nothing has changed. The gradients
     * stay until drop(). */
    dp_status (*update)(dp_engine *engine, const dp_optim_options *options, double norm);

    /* With parts update moves the own part of x alone, norm is that of the gradients here, and of
     * the optimizer's vectors below only the own part is read and written, at its place in the
     * arena. */

    /* "x" and the optimizer's vectors (dp_optim_vectors) in memory of the host, as they are now,
     * lent until the next call, to read and to fill. Returns how many; 0: problem(). */
    size_t (*lend_state)(dp_engine *engine, dp_optim_vector out[DP_BACKEND_STATE_MAX]);
    /* Go on from what the lent vectors hold now, after so many updates. */
    dp_status (*take_state)(dp_engine *engine, uint64_t updates);
    /* Since reset, or as take_state said. */
    uint64_t (*updates)(const dp_engine *engine);

    /* ---- Looking at a model, near. weights: DP_VECTOR_X or DP_VECTOR_THETA; nothing changes. */

    dp_status (*loss)(dp_engine *engine, dp_vector weights, const dp_gpt_batch *batch,
                      double *loss_sum);
    /* As dp_gpt_logits. DP_DIVERGED when one is not finite. */
    dp_status (*logits)(dp_engine *engine, dp_vector weights, const uint32_t *tokens, size_t length,
                        float *logits);

    /* ---- Rounds, exact. */

    /* The blob of a or F (dp_codec_encode), lent until the next call with the same vector.
     * DP_DIVERGED, DP_TOOBIG. */
    dp_status (*encode)(dp_engine *engine, dp_vector from, const dp_codec *codec, dp_view *blob);
    /* The same while other calls go on. start begins with the vector as it is now, which may be
     * read but not written until take; one at a time, and no encode meanwhile. ready: whether take
     * would give it without waiting. take ends it, whatever it gives: the blob, and the vector in
     * memory of the host, n floats, lent until the next start or encode with the same vector. */
    dp_status (*encode_start)(dp_engine *engine, dp_vector from, const dp_codec *codec);
    dp_status (*encode_ready)(dp_engine *engine, bool *ready);
    dp_status (*encode_take)(dp_engine *engine, dp_view *blob, const float **values);
    /* e = beta * (a - clip * decode(blob)), clip in Q16 (feedback.h). */
    dp_status (*settle)(dp_engine *engine, dp_view blob, uint32_t clip, float beta);
    /* The outer step on theta and m (dp_consensus_apply), *seen included. DP_DIVERGED: they are not
     * finite; load others. */
    dp_status (*apply)(dp_engine *engine, const dp_consensus_items *items, const dp_outer *outer,
                       dp_outer_seen *seen);
    /* c = float(share * (double(other) - double(own))), element by element of the two decoded
     * blobs; F += c, x -= c. *sum: of all c, in double; near. */
    dp_status (*mix)(dp_engine *engine, const dp_view blobs[2], double share, double *sum);
} dp_backend;

#endif
