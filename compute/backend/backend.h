/* The table of a compute backend: an engine that holds one node's model, trains it and does the
 * arithmetic of rounds. The trainer (trainer.h) decides what happens and uses only this table. The
 * CPU (backend_cpu.h) is the first implementation and the reference; a plugin (plugin.h) may be
 * another. Knows no network, no files, no data.
 *
 * An engine holds the vectors of dp_vector, the gradients and the state of the optimizer, in memory
 * of its device. All vectors have the layout of the model's arena, n = model->n_elements floats.
 * There are two kinds of results:
 *
 * - exact: results that replicas must agree on, or that must add up between work buffers. Every
 * operation is one rounded float operation in the order written here, without contraction, with
 * subnormals: the same bits on every backend.
 *
 * - near: results of a step (loss, gradient, norm, moments). The same bits for the same engine,
 * device and build; near the CPU's within the precision of the run.
 *
 * One thread calls at a time, any thread. Seen through this table a call is complete when it
 * returns, although the device may still be busy; only encode_start continues beside later calls.
 * Bytes and pointers are borrowed for the call. Calls that can fail on a device return a status:
 * DP_DIVERGED where noted; DP_IO: the device is gone or broken, problem() has the sentence, and
 * only close() may follow; DP_NOMEM. The caller has checked blobs (dp_codec_check). */
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
    DP_BACKEND_VERSION = 19,       /* raised by any change of this table or of its meaning */
    DP_BACKEND_LAYOUTS = 13,
    DP_BACKEND_STATE_MAX = 1 + DP_OPTIM_VECTORS_MAX,
    DP_DEVICE_NAME_MAX = 96
};

/* Sizes of all types in the table: they tell a plugin of another build apart, even with the same
 * version. */
#define DP_BACKEND_LAYOUT                                                                          \
    {                                                                                              \
        (uint32_t)sizeof(dp_backend), (uint32_t)sizeof(dp_engine_setup),                           \
            (uint32_t)sizeof(dp_device), (uint32_t)sizeof(dp_model), (uint32_t)sizeof(dp_tensor),  \
            (uint32_t)sizeof(dp_manifest), (uint32_t)sizeof(dp_plan),                              \
            (uint32_t)sizeof(dp_gpt_batch), (uint32_t)sizeof(dp_optim_options),                    \
            (uint32_t)sizeof(dp_codec), (uint32_t)sizeof(dp_why),                                  \
            (uint32_t)sizeof(dp_backend_parts), (uint32_t)sizeof(dp_consensus_items)               \
    }

/* Capabilities of a backend. The trainer refuses a run that needs one which is missing. */
typedef enum dp_capability {
    DP_CAN_FP32 = 1 << 0,
    DP_CAN_BF16 = 1 << 1,
    DP_CAN_FP16 = 1 << 2,
    DP_CAN_ADAMW = 1 << 3,
    DP_CAN_LAMB = 1 << 4,
    DP_CAN_LARS = 1 << 5,
    DP_CAN_MUON = 1 << 6,
    DP_CAN_BF16_WEIGHTS = 1 << 7, /* DP_WEIGHTS_BF16 and DP_WEIGHTS_BF16_SR */
    DP_CAN_CODECS = 1 << 8,       /* all of codec.h; every backend must have it */
    DP_CAN_ADAPTERS = 1 << 9,     /* models with adapters on a base */
    DP_CAN_DOCUMENTS = 1 << 10    /* batches with marks (dp_gpt_batch) */
} dp_capability;

typedef struct dp_engine dp_engine; /* defined by the backend */

/* Named as in trainer.h. */
typedef enum dp_vector {
    DP_VECTOR_X,      /* the weights that step, norm and update work on */
    DP_VECTOR_THETA,  /* the weights of all replicas */
    DP_VECTOR_E,      /* error feedback */
    DP_VECTOR_F,      /* frozen */
    DP_VECTOR_A,      /* published */
    DP_VECTOR_ANCHOR, /* x at the publication */
    DP_VECTOR_M,      /* momentum of the outer step, if dp_engine_setup asks for it */
    DP_VECTORS,
    DP_VECTOR_NONE = DP_VECTORS
} dp_vector;

typedef struct dp_device {
    char name[DP_DEVICE_NAME_MAX]; /* "NVIDIA H200", "avx512bf16, 8 threads" */
    uint64_t memory_total;         /* bytes; 0: unknown */
    uint64_t memory_usable;
    int32_t celsius;  /* INT32_MIN: unknown */
    uint32_t watts;   /* 0: not known */
    uint32_t percent; /* load by other programs; 0 also if unknown */
    bool bf16;        /* products of bf16 are faster than those of fp32 */
    bool taken;       /* another trainer of dpnode holds it: create gives DP_BUSY */
} dp_device;

/* Arguments of create; borrowed until close. */
typedef struct dp_engine_setup {
    const dp_model *model;
    /* the weights below the adapters of the model; NULL without adapters */
    const struct dp_base_weights *base;
    dp_precision_kind precision;
    dp_optim_kind optimizer;
    dp_weights_kind weights;
    uint64_t seed; /* of stochastic rounding */
    uint32_t device;
    uint32_t rows_max;
    dp_recompute recompute;
    dp_gpt_packs packs;
    /* Bytes of the device that everything together may take; 0: what is free. Rounds that need more
     * go by the host. */
    uint64_t memory_max;
    size_t threads; /* host threads of each process; 0: the default of the machine */
    /* Process group of this host (process_group.h); plugins ignore it; NULL: this process only. */
    struct dp_process_group *team;
    /* The part of the arena whose moments are here, and the number of parts (dp_optim_cut). */
    size_t part;
    size_t parts; /* 0: one, the whole. More than 1 only if the table has parts. */
    /* Standalone: theta is x, there are no other vectors, and only init and the calls of training
     * and evaluation are used. */
    bool alone;
    bool momentum; /* the outer step has momentum, so there is an m */
    /* Allows a second engine on the device, as a self-test beside a node needs; else create gives
     * DP_BUSY. */
    bool shared;
} dp_engine_setup;

enum { DP_LINK_BYTES = 128 };

/* Name of a link, by which engines of one host find each other; a new one for each link. */
typedef struct dp_card_link_id {
    uint8_t bytes[DP_LINK_BYTES];
} dp_card_link_id;

/* One end of a link. */
typedef struct dp_card_link {
    dp_card_link_id id;
    /* Polled while waiting for the other engines: true if one of them is gone. */
    bool (*is_over)(void *context);
    void *context; /* borrowed until close */
} dp_card_link;

/* Engines that train as one: as many as parts, each on a device and in a process of its own; an
 * engine has part setup.part. Each engine steps with its own rows; then sums and the optimizer's
 * step are made by part, in the order of zero.h. A collective call must be made by all engines; it
 * gives DP_IO if one is gone. */
typedef struct dp_backend_parts {
    /* Name and version for people, "NCCL 2.21.5". DP_UNSUPPORTED with a sentence: the devices have
     * no direct link. */
    dp_status (*library)(char name[DP_DEVICE_NAME_MAX], dp_why *why);
    /* Makes the name of a link; the first engine calls it for all. DP_UNSUPPORTED, DP_IO with a
     * sentence. */
    dp_status (*link_id)(dp_card_link_id *out, dp_why *why);
    /* Collective: opens the link. DP_UNSUPPORTED, DP_NOMEM, DP_IO with a sentence; after
     * DP_UNSUPPORTED the engine works without a link. */
    dp_status (*link)(dp_engine *engine, const dp_card_link *link, dp_why *why);

    /* ---- With a link. */

    /* Collective: the own part of the gradients becomes the sum over all engines, in the order of
     * zero.h. squares: sums of squares of blocks of DP_NORM_BLOCK of the part, counted from its
     * first element: dp_norm_blocks(size of the part) doubles in host memory. */
    dp_status (*sum)(dp_engine *engine, double *squares);
    /* Collective: x gets every part from the engine that has it. */
    dp_status (*spread)(dp_engine *engine);

    /* ---- Without a link, through host memory. */

    /* The own part of the gradients = sum, which has the size of the part; squares as above. */
    dp_status (*put_sum)(dp_engine *engine, const float *sum, double *squares);

    /* ---- Either. */

    /* x = n floats, unchecked. */
    dp_status (*put_x)(dp_engine *engine, const float *x);
    /* Sets the gradients outside the own part to 0. */
    dp_status (*keep_part)(dp_engine *engine);
} dp_backend_parts;

typedef struct dp_backend {
    uint32_t magic;
    uint32_t version;
    uint32_t layout[DP_BACKEND_LAYOUTS]; /* DP_BACKEND_LAYOUT */
    uint32_t capabilities;               /* dp_capability bits */
    const char *name;                    /* "cpu", "cuda" */
    const dp_backend_parts *parts;       /* NULL: every engine holds all parts */

    /* ---- Devices. */

    /* Number of devices; 0 with a sentence in why ("no CUDA device: ..."). */
    uint32_t (*devices)(dp_why *why);
    /* DP_BADARG: no such device; DP_IO. */
    dp_status (*device)(uint32_t index, dp_device *out, dp_why *why);
    /* Memory of training on that device, computed without allocating (plan.h). request->budget 0:
     * the memory that is usable now, or of that the share which request->card_share allows. */
    dp_status (*plan)(uint32_t index, const dp_plan_request *request, dp_plan *plan, dp_why *why);

    /* ---- Life. */

    /* Allocates all memory; vectors and gradients are 0. For a model that is only a vector
     * (dp_model_open_vector), of the CPU's backend alone: then init and the calls of training and
     * evaluation give DP_UNSUPPORTED or nothing, but reset and drop, which have nothing to do.
     * DP_BADARG, DP_TOOBIG, DP_NOMEM, DP_UNSUPPORTED, DP_IO, each but DP_NOMEM with a sentence. */
    dp_status (*create)(dp_engine **out, const dp_engine_setup *setup, dp_why *why);
    void (*close)(dp_engine *engine); /* Accepts NULL. */
    /* A sentence about the last call that failed with DP_IO; "" if none did. Lent until close. */
    const char *(*problem)(const dp_engine *engine);

    /* ---- Vectors, exact. to and from are different ones. */

    /* theta = the initial weights of dp_model_init. */
    dp_status (*init)(dp_engine *engine, uint64_t seed);
    /* Reads n little-endian floats. DP_BADMSG: another size; DP_DIVERGED: one is not finite; in
     * both cases to is unchanged. */
    dp_status (*load)(dp_engine *engine, dp_vector to, dp_view bytes);
    /* The current vector in host memory: n floats to read, lent until the next call that changes it
     * or asks for another vector. NULL: see problem(). */
    const float *(*values)(dp_engine *engine, dp_vector from);
    dp_status (*zero)(dp_engine *engine, dp_vector to);
    dp_status (*copy)(dp_engine *engine, dp_vector to, dp_vector from);
    dp_status (*add)(dp_engine *engine, dp_vector to, dp_vector from);      /* to = to + from */
    dp_status (*subtract)(dp_engine *engine, dp_vector to, dp_vector from); /* to = to - from */
    /* to = to * (lambda 2^-16); untouched for 65536, 0 for 0. */
    dp_status (*scale)(dp_engine *engine, dp_vector to, uint32_t lambda);
    /* to = e + (from - x); without "e +" if e is DP_VECTOR_NONE. DP_DIVERGED if some result is not
     * finite; then to is undefined. */
    dp_status (*snapshot)(dp_engine *engine, dp_vector to, dp_vector e, dp_vector from);

    /* ---- Training, near. */

    /* Sets moments, master weights and step count to 0. */
    dp_status (*reset)(dp_engine *engine);
    /* Sets gradients to 0, which discards steps since the last update. */
    dp_status (*drop)(dp_engine *engine);
    /* Forward and backward of a micro-batch at x, as dp_gpt_step: gradients += scale * d(sum of
     * losses). *loss_sum in nats. DP_BADARG, DP_DIVERGED (the loss is not finite: drop() must
     * follow). */
    dp_status (*step)(dp_engine *engine, const dp_gpt_batch *batch, float scale, double *loss_sum);
    /* The current gradients in host memory: n floats to read, lent until the next call. NULL: see
     * problem(). */
    const float *(*gradients)(dp_engine *engine);
    /* |gradients|, with the loss scale; not finite if a gradient is not. */
    dp_status (*norm)(dp_engine *engine, double *norm);
    /* dp_optim_step_with on x and the gradients. DP_DIVERGED: nothing has changed. The gradients
     * stay until drop(). */
    dp_status (*update)(dp_engine *engine, const dp_optim_options *options, double norm);

    /* With parts, update moves only the own part of x, norm is that of the gradients here, and only
     * the own part of the vectors below is read and written, at its place in the arena. */

    /* "x" and the vectors of the optimizer (dp_optim_vectors) in host memory, lent until the next
     * call, to read and to fill. Returns how many; 0: see problem(). */
    size_t (*lend_state)(dp_engine *engine, dp_optim_vector out[DP_BACKEND_STATE_MAX]);
    /* Continues from the values in the lent vectors, after so many updates. */
    dp_status (*take_state)(dp_engine *engine, uint64_t updates);
    /* Updates since reset, counted on from take_state. */
    uint64_t (*updates)(const dp_engine *engine);

    /* ---- Evaluation, near. weights: DP_VECTOR_X or DP_VECTOR_THETA; nothing changes. */

    dp_status (*loss)(dp_engine *engine, dp_vector weights, const dp_gpt_batch *batch,
                      double *loss_sum);
    /* As dp_gpt_logits. DP_DIVERGED: a logit is not finite. */
    dp_status (*logits)(dp_engine *engine, dp_vector weights, const uint32_t *tokens, size_t length,
                        float *logits);

    /* ---- Rounds, exact. */

    /* The blob of a or F (dp_codec_encode), lent until the next call with the same vector.
     * DP_DIVERGED, DP_TOOBIG. */
    dp_status (*encode)(dp_engine *engine, dp_vector from, const dp_codec *codec, dp_view *blob);
    /* The same beside other calls. start encodes the vector of this moment, which may be read but
     * not written until take; one at a time, and no encode meanwhile. ready: true if take returns
     * without waiting. take ends it, also on failure: the blob, and the vector in host memory, n
     * floats, lent until the next start or encode of the same vector. */
    dp_status (*encode_start)(dp_engine *engine, dp_vector from, const dp_codec *codec);
    dp_status (*encode_ready)(dp_engine *engine, bool *ready);
    dp_status (*encode_take)(dp_engine *engine, dp_view *blob, const float **values);
    /* e = beta * (a - clip * decode(blob)), clip in Q16 (feedback.h). */
    dp_status (*settle)(dp_engine *engine, dp_view blob, uint32_t clip, float beta);
    /* The outer step on theta and m (dp_consensus_apply), with *seen. DP_DIVERGED: the result is
     * not finite; load another state. */
    dp_status (*apply)(dp_engine *engine, const dp_consensus_items *items, const dp_outer *outer,
                       dp_outer_seen *seen);
    /* c = float(share * (double(other) - double(own))), element by element of the two decoded
     * blobs; F += c, x -= c. *sum: of all c, in double; near. */
    dp_status (*mix)(dp_engine *engine, const dp_view blobs[2], double share, double *sum);
} dp_backend;

#endif
