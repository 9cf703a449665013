/* The run manifest: the settings that all nodes of a run share, as parsed values and as canonical
 * bytes, which are hashed, signed and sent. YAML is read in cli/manifest_yaml.h.
 *
 * Canonical bytes, little-endian: "DPM1" | u16 version | the fields of dp_manifest in order of
 * declaration (text as u8 length + bytes, enums as u8, hashes as 32 bytes, shards as u8 count + 48
 * bytes each) | 64-byte Ed25519 signature of the founder's root key over all before it (domain
 * "dpnode/manifest/1"). Some fields exist from a version on: pairs and exchange 7, reduce 8, stale
 * 9, codec_keep_most 10, contributors_max 11, site_sums 13, codec_gain 14, trust 15, samples, unit
 * and elements 16, those of adapters 17, long_once 22. Settings that were deleted keep their place
 * with the one value that is left of them: behind codec a u32 0 (its block), behind codec_keep a
 * u32 2 (its bits), behind outer_mu_milli a u32 1 and a u32 1000 (least contributors, patience),
 * before site_sums a u32 0 of version 12 (a share of the members that closed rounds at once). The
 * version is the lowest, from 6 on, that has every field whose value is not the default, so that a
 * manifest has one form and older runs keep theirs. run id =
 * H("dpnode/run/1", canonical bytes without the signature). */
#ifndef DP_BASE_RUN_MANIFEST_H
#define DP_BASE_RUN_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/run/adapt.h"
#include "base/run/codec_kind.h"
#include "base/run/manifest_rows.h"
#include "base/run/model_config.h"

#define DP_MANIFEST_SAMPLES_MAX ((uint64_t)1 << 40)

enum {
    DP_NAME_MAX = 32, /* bytes of a run or node name, without NUL */
    DP_MANIFEST_BYTES_MAX = 4096,
    DP_MANIFEST_CONTEXT_MAX = 16384, /* of model.context */
    DP_MANIFEST_WORDS_MAX = 128,     /* the words of one choice as text */
    DP_MANIFEST_MEMBERS_MAX = 2048,  /* the member table of gossip/node/node.h */
    DP_MANIFEST_SHARDS_MAX = 32, /* OPEN hands over all of them (trainer_kind.h); with a base 31 */
    DP_MANIFEST_TABLE_MAX = 4 << 20, /* bytes of a table of tensors */
    DP_MANIFEST_LISTED_DEFAULT = 32, /* contributions in one record */
    DP_MANIFEST_LISTED_MAX = 1024,   /* the same with contribution lists (gossip/record/lists.h) */
    DP_MANIFEST_STEP_MILLI_MAX = 3000, /* alpha times the gain of the codec */
    /* Span of densities of a run whose manifest names none: it begins with the densest. */
    DP_MANIFEST_KEEP_DENSEST = 32,
    DP_MANIFEST_KEEP_SPARSEST = DP_CODEC_KEEP_MAX,
    DP_MANIFEST_UNIT_MAX = 65536,
    DP_MANIFEST_SIGNATURE_BYTES = 64,
    DP_MANIFEST_KEY_BYTES = 32
};

typedef enum dp_schedule_kind {
    DP_SCHEDULE_CONSTANT = 1,
    DP_SCHEDULE_LINEAR = 2,
    DP_SCHEDULE_COSINE = 3,
    DP_SCHEDULE_WSD = 4
} dp_schedule_kind;

/* Optimizers of local training (compute/model/optim.h). */
typedef enum dp_optim_kind {
    DP_OPTIM_ADAMW = 1,
    DP_OPTIM_LAMB = 2,
    DP_OPTIM_LARS = 3,
    DP_OPTIM_MUON = 4,
    DP_OPTIM_LAST = DP_OPTIM_MUON
} dp_optim_kind;

/* Format of the weights of local training between steps; exchanged vectors stay fp32. */
typedef enum dp_weights_kind {
    DP_WEIGHTS_FP32 = 1,
    DP_WEIGHTS_BF16 = 2,   /* bf16 with a master copy in fp32 */
    DP_WEIGHTS_BF16_SR = 3 /* bf16 alone, with stochastic rounding */
} dp_weights_kind;

/* Format to which inputs of matrix products are rounded (compute/cpu/precision.h); fp16 has dynamic
 * loss scaling. */
typedef enum dp_precision_kind {
    DP_PRECISION_FP32 = 1,
    DP_PRECISION_BF16 = 2,
    DP_PRECISION_FP16 = 3,
    DP_PRECISION_AUTO = 4 /* each node: bf16 where products of it are faster, else fp32 */
} dp_precision_kind;

/* Scaling of the learning rate by the size of the batch (compute/rules/schedule.h). */
typedef enum dp_batch_rule {
    DP_BATCH_NONE = 1,
    DP_BATCH_LINEAR = 2,
    DP_BATCH_SQRT = 3
} dp_batch_rule;

/* Contents of a publication. */
typedef enum dp_exchange_kind {
    DP_EXCHANGE_UPDATES = 0,  /* the displacement of the weights by local steps */
    DP_EXCHANGE_GRADIENTS = 1 /* the gradient of one batch; only the outer step moves weights */
} dp_exchange_kind;

/* Members whose updates a record may list. */
typedef enum dp_trust {
    DP_TRUST_MEMBERS = 0, /* every admitted member */
    DP_TRUST_OPEN = 1     /* every one whose update the voters have judged (gossip/round/judge.h) */
} dp_trust;

/* Which nodes sum the updates of a round. */
typedef enum dp_reduce_kind {
    DP_REDUCE_WHOLE = 0, /* every node fetches every update and sums them */
    DP_REDUCE_PARTS = 1  /* owners sum parts (gossip/record/part.h); every node fetches the sums */
} dp_reduce_kind;

/* A token shard of the data (compute/data/shard.h), as an object. */
typedef struct dp_manifest_shard {
    dp_hash root;
    uint64_t bytes;
    uint64_t tokens;
} dp_manifest_shard;

/* Real numbers are stored as integers, so that canonical bytes are equal on all machines. */
typedef struct dp_manifest {
    char name[DP_NAME_MAX + 1];
    uint64_t created_ms; /* unix */
    uint64_t nonce;      /* random, so that two runs of one file differ */
    /* Ed25519: signs the manifest, the founder's certificate, forks */
    uint8_t root_key[DP_MANIFEST_KEY_BYTES];
    uint8_t founder[DP_MANIFEST_KEY_BYTES]; /* node id of the first member and voter */
    uint8_t founder_vote_key[DP_MANIFEST_KEY_BYTES];

    uint32_t layers;
    uint32_t width;
    uint32_t heads;
    uint32_t context;
    uint32_t vocab;
    /* From here to softcap_milli as in dp_model_config: 0 means the default of the family. */
    dp_arch arch;
    uint32_t kv_heads;
    uint32_t head_width;
    uint32_t hidden;
    uint32_t norm_eps_nano;
    uint32_t rope_theta;
    dp_activation_choice activation;
    dp_switch qk_norm;
    dp_head_choice head;
    uint32_t softcap_milli;
    uint64_t model_seed;

    /* Object: tokenizer.json. A run of any model (DP_ARCH_EXTERNAL) has no words; its table of
     * tensors (compute/model/tensor_table.h) takes this place, which every node fetches before it
     * opens a trainer. */
    dp_hash tokenizer;
    dp_hash init; /* object: state of round 0 (compute/model/state.h); zero: from model_seed */
    uint64_t tokenizer_bytes;
    uint64_t init_bytes;
    uint32_t n_shards;                                /* 0: no data yet, before run create */
    dp_manifest_shard shards[DP_MANIFEST_SHARDS_MAX]; /* the rest is zero */
    uint32_t val_per_mille; /* last part of the token stream held out: 50 = 5 % */

    uint32_t batch_rows;         /* sequences per optimizer step */
    uint32_t lr_nano;            /* peak learning rate in 1e-9: 3e-3 = 3000000 */
    uint32_t lr_floor_per_mille; /* final rate as a share of the peak */
    dp_schedule_kind schedule;
    uint64_t warmup_tokens; /* committed tokens */
    uint64_t total_tokens;  /* committed tokens at which the schedule ends */
    uint32_t beta1_micro;   /* AdamW: 0.9 = 900000 */
    uint32_t beta2_micro;
    uint32_t decay_micro; /* weight decay: 0.1 = 100000 */
    uint32_t clip_milli;  /* global gradient norm: 1.0 = 1000; 0 = off */
    dp_optim_kind optimizer;
    uint32_t momentum_micro; /* Muon, LARS: 0.95 = 950000 */
    dp_weights_kind weights;
    dp_batch_rule batch_rule;
    /* tokens of the batch that the learning rate was found for; 0: this run's */
    uint64_t batch_reference;
    uint32_t spike_milli; /* deviations at which a step is dropped: 8.0 = 8000, 0 = off */
    dp_precision_kind precision;

    uint32_t round_ms;        /* target wall time of local work per round */
    uint32_t inner_steps_max; /* limit of optimizer steps per round */
    dp_codec_kind codec;
    uint32_t codec_keep;          /* sparse: one element of so many is sent, at the densest */
    uint32_t feedback_beta_milli; /* error feedback beta: 0.95 = 950; has no YAML key */
    uint32_t alpha_milli;         /* outer step: 1.0 = 1000 */
    uint32_t outer_mu_milli; /* its Nesterov momentum: 0.9 = 900; 0: none, and the state has no m */
    uint32_t gossip_round_ms; /* pause between pair exchanges */
    uint32_t voter_uptime_s;  /* before a node may be enrolled as voter */
    uint32_t voters_max;      /* odd, at most 7 */
    uint32_t members_max;
    /* a member that is away for longer may lose its place to a newcomer; 0: never */
    uint32_t members_absent_s;
    /* These, and stale, are of the mode (run_mode.h) and have no YAML key. */
    dp_switch pairs; /* pairwise averaging between rounds, every gossip_round_ms */
    dp_exchange_kind exchange;
    dp_reduce_kind reduce; /* of trust and codec, as site_sums (dp_run_decide); no YAML key */
    dp_switch stale;       /* late updates may count in the next round, at half their clip */
    /* on slow links one element of up to so many is sent; 0: always codec_keep. Has no YAML key. */
    uint32_t codec_keep_most;
    uint32_t contributors_max; /* of one record; above 32 in lists (gossip/record/lists.h) */
    /* In rounds of parts, owners of other sites get one sum per site (gossip/record/part_sum.h). */
    dp_switch site_sums;
    /* each update's outer step is scaled by dp_codec_gain; off in older runs. Has no YAML key. */
    dp_switch codec_gain;
    /* of an update that is longer than the momentum, the rest moves the model once
     * (compute/outer/consensus.h); off without momentum and in older runs (dp_run_decide) */
    dp_switch long_once;
    dp_trust trust;
    /* These are of a run of any model, and 0 in others. */
    uint64_t samples;  /* of one pass */
    uint32_t unit;     /* tokens that a sample counts as; 0: 1 */
    uint64_t elements; /* of all its tensors; has no YAML key. 0: no table yet, before run create */
    uint32_t adapt_rank; /* adapters, as in dp_model_config; 0 in runs without */
    uint32_t adapt_alpha_milli;
    uint32_t adapt_targets;
    dp_base_kind base_kind;
    uint64_t base_bytes; /* 0: none yet, before run create */
    dp_hash base;        /* object: the weights below the adapters (compute/model/base_weights.h) */
    dp_rope_scaling rope_scaling; /* from here on as in dp_model_config */
    uint32_t rope_factor_milli;
    uint32_t rope_low_milli;
    uint32_t rope_high_milli;
    uint32_t rope_context;
    uint32_t rope_off_every;
    uint32_t window;
    uint32_t full_every;
    uint32_t rope_local_theta;
    uint32_t scores_softcap_milli;
    uint32_t query_scalar;
    uint32_t rope_width;
    uint8_t signature[DP_MANIFEST_SIGNATURE_BYTES];
} dp_manifest;

/* A key that was deleted. */
typedef struct dp_manifest_gone {
    const char *key;     /* "round.close_at" */
    const char *instead; /* what to do in a file: "delete round.close_at" */
    const char *now;     /* what holds without it, a clause */
} dp_manifest_gone;

/* NULL: no deleted key had this name. */
const dp_manifest_gone *dp_manifest_gone_find(const char *key);
/* The cause in words of a status of dp_manifest_decode, with the side to update. */
const char *dp_manifest_refusal(dp_status status);
/* Sets defaults where there are any, as a file without keys has them; keys, hashes and signature
 * are zero. */
void dp_manifest_default(dp_manifest *manifest);
/* DP_BADARG with a sentence about the first invalid value: the field and its range. Ignores keys
 * and hashes. */
DP_MUST dp_status dp_manifest_check(const dp_manifest *manifest, dp_why *why);
/* Canonical bytes with the signature field as it stands. *size: bytes written to out. */
DP_MUST dp_status dp_manifest_encode(const dp_manifest *manifest,
                                     uint8_t out[DP_MANIFEST_BYTES_MAX], size_t *size);
/* Accepts any bytes. Checks the form and dp_manifest_check, but not the signature. DP_BADMSG,
 * DP_VERSION. */
DP_MUST dp_status dp_manifest_decode(dp_manifest *manifest, dp_view bytes);
/* False: what is exchanged reaches no voter whole, as an update of the model (gradients, parts,
 * exchanges in pairs), or no voter can run the model, so only members that trust each other may do
 * it. */
bool dp_manifest_judgeable(const dp_manifest *manifest);
/* A run of any model: of tensors whose meaning only a script outside of dpnode knows. */
bool dp_manifest_external(const dp_manifest *manifest);
/* A run that trains adapters on a base. */
bool dp_manifest_adapts(const dp_manifest *manifest);
/* Parameters that are trained; 0: of a run of any model that has no table yet. */
uint64_t dp_manifest_parameters(const dp_manifest *manifest);
/* Tokens that one sample counts as: model.context, or the unit of a run of any model. */
uint32_t dp_manifest_sample_tokens(const dp_manifest *manifest);
/* Vectors in the replicated state beside theta: 1, m, with outer momentum; 2, m and v, if the outer
 * step is AdamW; else 0. */
uint32_t dp_manifest_moments(const dp_manifest *manifest);
/* Upper bounds of objects of this run, for any codec: an update, part or sum; a state. Sizes that
 * peers announce are checked against them before a fetch. */
uint64_t dp_manifest_update_bytes_max(const dp_manifest *manifest);
uint64_t dp_manifest_state_bytes_max(const dp_manifest *manifest);
/* The fields of the model, not resolved; and the reverse. */
dp_model_config dp_manifest_model(const dp_manifest *manifest);
void dp_manifest_set_model(dp_manifest *manifest, const dp_model_config *config);
/* Run id from canonical bytes (which end in the signature). */
dp_hash dp_manifest_run_id(dp_view canonical);

/* Cleans the name of a node from a peer: printable ASCII without quotes stays, other bytes become
 * "_", the rest beyond DP_NAME_MAX is cut. */
void dp_name_clean(dp_view text, char name[DP_NAME_MAX + 1]);

#endif
