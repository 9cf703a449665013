#include "base/run/manifest.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/run/manifest_rounds.h"

#define ROW(member, key_, unit_, scale_, min_, max_, default_, text_)                              \
    {                                                                                              \
        .key = (key_), .unit = (unit_), .text = (text_), .offset = offsetof(dp_manifest, member),  \
        .size = sizeof(((dp_manifest *)0)->member), .scale = (scale_), .min = (min_),              \
        .max = (max_), .default_value = (default_)                                                 \
    }

/* Limits of the model keep every tensor index, object and activation within the size that one node
 * can hold and hash. */
static const dp_manifest_row rows[] = {
    ROW(layers, "model.layers", "", 1, 1, 128, 4, "Transformer blocks."),
    ROW(width, "model.width", "", 1, 8, 16384, 128, "Channels per token."),
    ROW(heads, "model.heads", "", 1, 1, 256, 4, "Attention heads."),
    ROW(context, "model.context", "tokens", 1, 8, DP_MANIFEST_CONTEXT_MAX, 128,
        "Tokens that the model sees at once."),
    ROW(vocab, "model.vocab", "tokens", 1, 256, DP_MODEL_VOCAB_MAX, 1024,
        "Entries of the tokenizer."),
    ROW(kv_heads, "model.kv_heads", "", 1, 0, 256, 0,
        "Heads of k and v, each for as many query heads; 0: as many as heads."),
    ROW(head_width, "model.head_width", "", 1, 0, 256, 0, "Channels of a head; 0: width / heads."),
    ROW(hidden, "model.hidden", "", 1, 0, 65536, 0,
        "Inner width of the feed-forward part; 0: 4 width, gated 8/3 width."),
    ROW(norm_eps_nano, "model.norm_eps", "1e-9", 1000000000, 0, 1000000, 0,
        "Epsilon of the norms; 0: 1e-5."),
    ROW(rope_theta, "model.rope_theta", "", 1, 0, 100000000, 0,
        "Base of the rotary angles; 0: 10000, none for gpt2."),
    ROW(softcap_milli, "model.softcap", "1e-3", 1000, 0, 1000000, 0,
        "Logits x become s tanh(x / s); 0 turns it off."),
    ROW(adapt_rank, "model.adapt.rank", "", 1, 0, DP_ADAPT_RANK_MAX, 0,
        "Adapters of so many rows beside the linear layers are all that is trained; 0: every "
        "weight "
        "is."),
    ROW(adapt_alpha_milli, "model.adapt.alpha", "1e-3", 1000, 0, 10000000, 0,
        "Adapters count alpha / rank times; 0: alpha is the rank."),
    ROW(rope_factor_milli, "model.rope_factor", "1e-3", 1000, 0, 1000000, 0,
        "Factor by which rope_scaling stretches rotary angles."),
    ROW(rope_low_milli, "model.rope_low", "1e-3", 1000, 0, 1000000, 0,
        "With rope_scaling llama3: waves above rope_context / this are stretched."),
    ROW(rope_high_milli, "model.rope_high", "1e-3", 1000, 0, 1000000, 0,
        "With rope_scaling llama3: waves below rope_context / this are not stretched."),
    ROW(rope_context, "model.rope_context", "tokens", 1, 0, 1 << 20, 0,
        "With rope_scaling llama3: the context before the stretch."),
    ROW(rope_off_every, "model.rope_off_every", "layers", 1, 0, 128, 0,
        "Every N-th layer has no rotary positions; 0: all have them."),
    ROW(window, "model.window", "tokens", 1, 0, 1 << 20, 0,
        "Tokens that attention sees, with the own one; 0: all."),
    ROW(full_every, "model.full_every", "layers", 1, 0, 128, 0,
        "Every N-th layer attends to all tokens instead of the window; 0: none does."),
    ROW(rope_local_theta, "model.rope_local_theta", "", 1, 0, 100000000, 0,
        "Base of the rotary angles of layers with a window; 0: as that of the others."),
    ROW(scores_softcap_milli, "model.scores_softcap", "1e-3", 1000, 0, 1000000, 0,
        "Attention's scores x become s tanh(x / s); 0 turns it off."),
    ROW(query_scalar, "model.query_scalar", "", 1, 0, 65536, 0,
        "Scores are scaled by 1 / sqrt of this; 0: of the width of a head."),
    ROW(rope_width, "model.rope_width", "", 1, 0, 256, 0,
        "Channels of a head that rotary positions turn; 0: all."),
    ROW(model_seed, "model.seed", "", 1, 0, UINT64_MAX, 1,
        "Seed of the first weights and of the data order."),
    ROW(val_per_mille, "data.val", "1e-3", 1000, 0, 500, 50,
        "Share of the token stream that is held out of training."),
    ROW(samples, "data.samples", "samples", 1, 0, DP_MANIFEST_SAMPLES_MAX, 0,
        "With model.arch external: samples of one pass through the data, which the script reads."),
    ROW(unit, "data.unit", "tokens", 1, 0, DP_MANIFEST_UNIT_MAX, 0,
        "With model.arch external: tokens that one sample counts as; 0: 1, so tokens are samples."),
    ROW(batch_rows, "train.batch", "sequences", 1, 1, 65536, 8, "Sequences per optimizer step."),
    ROW(lr_nano, "train.lr", "1e-9", 1000000000, 1, 1000000000, 3000000, "Peak learning rate."),
    ROW(lr_floor_per_mille, "train.lr_floor", "1e-3", 1000, 0, 1000, 100,
        "Final learning rate as a share of the peak."),
    ROW(warmup_tokens, "train.warmup_tokens", "tokens", 1, 0, UINT64_MAX / 2, 0,
        "Committed tokens over which the learning rate rises; 0: 200 steps of each contributor, at "
        "most a quarter of the run."),
    ROW(total_tokens, "train.total_tokens", "tokens", 1, 1, UINT64_MAX / 2, 20000000,
        "Committed tokens at which the schedule ends."),
    ROW(beta1_micro, "train.beta1", "1e-6", 1000000, 0, 999999, 900000,
        "AdamW, LAMB, vectors of Muon: first moment's decay."),
    ROW(beta2_micro, "train.beta2", "1e-6", 1000000, 0, 999999, 950000,
        "AdamW, LAMB, vectors of Muon: second moment's decay."),
    ROW(decay_micro, "train.decay", "1e-6", 1000000, 0, 1000000, 100000,
        "Weight decay of matrices."),
    ROW(clip_milli, "train.clip", "1e-3", 1000, 0, 1000000, 1000,
        "Largest global gradient norm; 0 turns it off."),
    ROW(momentum_micro, "train.momentum", "1e-6", 1000000, 0, 999999, 950000,
        "Muon and LARS: momentum."),
    ROW(batch_reference, "train.batch_reference", "tokens", 1, 0, UINT64_MAX / 2, 0,
        "Tokens of the batch that train.lr was found for; 0: the batch of this run."),
    ROW(spike_milli, "train.spike", "1e-3", 1000, 0, 1000000, 8000,
        "A step is skipped if its loss is so many deviations above the last steps; 0 turns it "
        "off."),
    ROW(round_ms, "round.time", "ms", 1000, 100, 86400000, 30000,
        "Seconds of local work that one round aims at."),
    ROW(inner_steps_max, "round.steps_max", "steps", 1, 1, 1000000, 500,
        "Optimizer steps after which an update is due, also before round.time; a node goes on "
        "while a round is decided."),
    ROW(codec_keep, "round.codec_keep", "elements", 1, DP_CODEC_KEEP_MIN, DP_CODEC_KEEP_MAX,
        DP_MANIFEST_KEEP_DENSEST,
        "Codec sparse: always one element of 16, 32, 64 or 128 is sent; if not given, 1 of 32 to 1 "
        "of 128, as the lines permit."),
    ROW(alpha_milli, "round.alpha", "1e-3", 1000, 1, 4000, 1000, "Length of the outer step."),
    ROW(outer_mu_milli, "round.momentum", "1e-3", 1000, 0, 990, 0,
        "Nesterov momentum of the outer step; 0: none. With momentum, a step longer than 1.5 times "
        "the round's update is cut to that length."),
    ROW(contributors_max, "round.contributors_max", "", 1, DP_MANIFEST_LISTED_DEFAULT,
        DP_MANIFEST_LISTED_MAX, DP_MANIFEST_LISTED_DEFAULT,
        "Most contributors of one round. Above 32 a record names them in lists, and every node "
        "downloads and adds up that many updates per round."),
    ROW(gossip_round_ms, "gossip.time", "ms", 1000, 100, 86400000, 10000,
        "Seconds between pair exchanges: while no majority answers, and with round.mode gossip."),
    ROW(voter_uptime_s, "vote.uptime", "s", 1, 0, 31536000, 600,
        "Seconds a node must have been up before it may become a voter."),
    ROW(voters_max, "vote.voters_max", "", 1, 1, 7, 7, "Most voters; an odd number."),
    ROW(members_max, "members.max", "", 1, 2, DP_MANIFEST_MEMBERS_MAX, 64,
        "Most members of the run."),
    ROW(members_absent_s, "members.absent", "s", 1, 0, 31536000, 604800,
        "In a full run a member without a counted update for so many seconds gives its place to a "
        "newcomer; 0: never."),
};

enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

/* Keys that were deleted (docs/decisions/050-what-a-run-decides.md). */
static const dp_manifest_gone gone[] = {
    {"round.close_at", "delete round.close_at",
     "a round ends when all are ready, or 60 % and a grace"},
    {"round.codec_block", "delete round.codec_block",
     "int8 has a scale for each 256 elements, int4 for each 64"},
    {"round.codec_bits", "delete round.codec_bits", "codec sparse sends 2 bits of each value"},
    {"round.codec_keep_most", "delete round.codec_keep_most",
     "1 of 32 to 1 of 128 elements are sent, as the lines permit, or what round.codec_keep says"},
    {"round.feedback_beta", "delete round.feedback_beta",
     "0.95 of the compression error is kept for the next round"},
    {"round.pairs", "write round: {mode: gossip}", "round.mode gossip exchanges in pairs"},
    {"round.exchange", "write round: {mode: ddp}",
     "round.mode ddp averages gradients, every other one updates"},
    {"round.stale", "write round: {mode: stale}", "round.mode stale counts late updates"},
    {"round.reduce", "delete round.reduce",
     "with members.trust members and a codec that keeps every element the owner of each part sums "
     "it; else every node sums whole updates"},
    {"round.site_sums", "delete round.site_sums",
     "where owners sum parts, updates of nearby nodes are summed before they are sent to distant "
     "ones"},
    {"round.contributors_min", "delete round.contributors_min",
     "a round may end at its deadline with one contributor"},
    {"round.patience", "delete round.patience; write a longer round.time",
     "a round waits by the times that its nodes take"},
};

const dp_manifest_gone *dp_manifest_gone_find(const char *key)
{
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) {
        if (strcmp(gone[i].key, key) == 0) {
            return &gone[i];
        }
    }
    return NULL;
}

const char *dp_manifest_refusal(dp_status status)
{
    return status != DP_VERSION
               ? dp_status_text(status)
               : "the run is of another version of dpnode: a later one, to which this node must be "
                 "updated, or an earlier one with what is gone, which goes on with that version";
}

const dp_manifest_row *dp_manifest_rows(size_t *count)
{
    *count = ROW_COUNT;
    return rows;
}

static const dp_manifest_word archs[] = {
    {"gpt2", DP_ARCH_GPT2},     {"llama", DP_ARCH_LLAMA},     {"external", DP_ARCH_EXTERNAL},
    {"qwen2", DP_ARCH_QWEN2},   {"smollm3", DP_ARCH_SMOLLM3}, {"mistral", DP_ARCH_MISTRAL},
    {"phi3", DP_ARCH_PHI3},     {"olmo2", DP_ARCH_OLMO2},     {"gemma2", DP_ARCH_GEMMA2},
    {"gemma3", DP_ARCH_GEMMA3}, {"gpt_neox", DP_ARCH_NEOX}};
static const dp_manifest_word scalings[] = {
    {"none", DP_ROPE_PLAIN}, {"linear", DP_ROPE_LINEAR}, {"llama3", DP_ROPE_LLAMA3}};
static const dp_manifest_word activations[] = {
    {"standard", DP_ACTIVATION_OWN}, {"gelu", DP_ACTIVATION_GELU},
    {"relu2", DP_ACTIVATION_RELU2},  {"swiglu", DP_ACTIVATION_SWIGLU},
    {"geglu", DP_ACTIVATION_GEGLU},  {"gelu_erf", DP_ACTIVATION_GELU_ERF}};
static const dp_manifest_word switches[] = {{"off", DP_OFF}, {"on", DP_ON}};
static const dp_manifest_word heads[] = {
    {"standard", DP_HEAD_OWN}, {"tied", DP_HEAD_TIED}, {"untied", DP_HEAD_UNTIED}};
#define CHOICE(member, key_, default_, words_, text_)                                              \
    {                                                                                              \
        .key = (key_), .text = (text_), .offset = offsetof(dp_manifest, member),                   \
        .default_value = (int)(default_), .words = (words_),                                       \
        .n_words = sizeof(words_) / sizeof((words_)[0])                                            \
    }

static const dp_manifest_word schedules[] = {{"constant", DP_SCHEDULE_CONSTANT},
                                             {"linear", DP_SCHEDULE_LINEAR},
                                             {"cosine", DP_SCHEDULE_COSINE},
                                             {"wsd", DP_SCHEDULE_WSD}};
static const dp_manifest_word optimizers[] = {{"adamw", DP_OPTIM_ADAMW},
                                              {"lamb", DP_OPTIM_LAMB},
                                              {"lars", DP_OPTIM_LARS},
                                              {"muon", DP_OPTIM_MUON}};
static const dp_manifest_word weights[] = {
    {"fp32", DP_WEIGHTS_FP32}, {"bf16", DP_WEIGHTS_BF16}, {"bf16_sr", DP_WEIGHTS_BF16_SR}};
static const dp_manifest_word precisions[] = {{"auto", DP_PRECISION_AUTO},
                                              {"fp32", DP_PRECISION_FP32},
                                              {"bf16", DP_PRECISION_BF16},
                                              {"fp16", DP_PRECISION_FP16}};
static const dp_manifest_word batch_rules[] = {
    {"none", DP_BATCH_NONE}, {"linear", DP_BATCH_LINEAR}, {"sqrt", DP_BATCH_SQRT}};
static const dp_manifest_word bases[] = {
    {"bf16", DP_BASE_BF16}, {"fp32", DP_BASE_FP32}, {"int8", DP_BASE_INT8}, {"nf4", DP_BASE_NF4}};
static const dp_manifest_word trusts[] = {{"members", DP_TRUST_MEMBERS}, {"open", DP_TRUST_OPEN}};
#define CODEC_WORD(name, NAME, number, least, most, standard, thins) {#name, DP_CODEC_##NAME},
static const dp_manifest_word codecs[] = {DP_CODEC_LIST(CODEC_WORD)};

static const dp_manifest_choice choices[] = {
    CHOICE(arch, "model.arch", DP_ARCH_GPT2, archs,
           "Family; qwen3 is llama with qk_norm; external: any model, of the tensors of a file."),
    CHOICE(activation, "model.activation", DP_ACTIVATION_OWN, activations,
           "Activation of the feed-forward part; standard: gelu for gpt2, geglu for gemma2 and "
           "gemma3, gelu_erf for gpt_neox, swiglu for others."),
    CHOICE(qk_norm, "model.qk_norm", DP_OFF, switches,
           "Norms of the heads of q and k; llama only."),
    CHOICE(rope_scaling, "model.rope_scaling", DP_ROPE_PLAIN, scalings,
           "How rotary angles are stretched beyond the context of the first training."),
    CHOICE(head, "model.head", DP_HEAD_OWN, heads,
           "Whether logits use the embedding; standard: tied for gpt2, smollm3, gemma2 and gemma3, "
           "untied for others."),
    CHOICE(base_kind, "model.adapt.base", DP_BASE_BF16, bases,
           "Number format of the linear layers below adapters, as every node holds them."),
    CHOICE(schedule, "train.schedule", DP_SCHEDULE_COSINE, schedules,
           "Schedule of the learning rate over the committed tokens."),
    CHOICE(optimizer, "train.optimizer", DP_OPTIM_ADAMW, optimizers,
           "Optimizer of the local steps."),
    CHOICE(weights, "train.weights", DP_WEIGHTS_FP32, weights,
           "Number format of the weights in local steps; bf16_sr rounds stochastically and has no "
           "fp32 copy."),
    CHOICE(precision, "train.precision", DP_PRECISION_AUTO, precisions,
           "Number format of the inputs of matrix products in local steps; auto: each node takes "
           "bf16 where it is faster, else fp32; fp16 scales the loss."),
    CHOICE(batch_rule, "train.batch_rule", DP_BATCH_NONE, batch_rules,
           "How train.lr grows with the batch over train.batch_reference."),
    CHOICE(codec, "round.codec", DP_CODEC_SPARSE, codecs, "Codec of updates."),
    CHOICE(trust, "members.trust", DP_TRUST_OPEN, trusts,
           "open: voters evaluate each update before it counts, and remove harmful members; "
           "members: no update is evaluated, and the owner of each part sums it."),
};

enum { CHOICE_COUNT = sizeof choices / sizeof choices[0] };

const dp_manifest_choice *dp_manifest_choices(size_t *count)
{
    *count = CHOICE_COUNT;
    return choices;
}

static uint64_t row_value(const dp_manifest *manifest, const dp_manifest_row *row)
{
    const char *const at = (const char *)manifest + row->offset;
    if (row->size == sizeof(uint64_t)) {
        uint64_t value;
        memcpy(&value, at, sizeof value);
        return value;
    }
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

void dp_manifest_default(dp_manifest *manifest)
{
    memset(manifest, 0, sizeof *manifest);
    memcpy(manifest->name, "run", sizeof "run");
    for (size_t i = 0; i < CHOICE_COUNT; i++) {
        memcpy((char *)manifest + choices[i].offset, &choices[i].default_value, sizeof(int));
    }
    for (size_t i = 0; i < ROW_COUNT; i++) {
        char *const at = (char *)manifest + rows[i].offset;
        const uint32_t small = (uint32_t)rows[i].default_value;
        if (rows[i].size == sizeof(uint64_t)) {
            memcpy(at, &rows[i].default_value, sizeof(uint64_t));
        } else {
            memcpy(at, &small, sizeof small);
        }
    }
    manifest->codec_keep_most = DP_MANIFEST_KEEP_SPARSEST;
    manifest->feedback_beta_milli = 950;
    manifest->codec_gain = DP_ON;
}

/* Names stand in file names and in log lines, so only plain characters. */
static bool name_is_plain(const char *name)
{
    const size_t size = strnlen(name, DP_NAME_MAX + 1);
    if (size == 0 || size > DP_NAME_MAX || name[0] == '.' || name[0] == '-') {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        const char c = name[i];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && !(c >= '0' && c <= '9') && c != '.' && c != '_' && c != '-') {
            return false;
        }
    }
    return true;
}

void dp_name_clean(dp_view text, char name[DP_NAME_MAX + 1])
{
    size_t size = 0;

    for (size_t i = 0; i < text.size && size < DP_NAME_MAX; i++) {
        const uint8_t c = text.data[i];
        name[size++] = (char)(c > ' ' && c < 127 && c != '"' && c != '\\' ? c : '_');
    }
    name[size] = '\0';
}

dp_model_config dp_manifest_model(const dp_manifest *manifest)
{
    return (dp_model_config){.layers = manifest->layers,
                             .width = manifest->width,
                             .heads = manifest->heads,
                             .context = manifest->context,
                             .vocab = manifest->vocab,
                             .arch = manifest->arch,
                             .kv_heads = manifest->kv_heads,
                             .head_width = manifest->head_width,
                             .hidden = manifest->hidden,
                             .norm_eps_nano = manifest->norm_eps_nano,
                             .rope_theta = manifest->rope_theta,
                             .activation = manifest->activation,
                             .qk_norm = manifest->qk_norm,
                             .head = manifest->head,
                             .softcap_milli = manifest->softcap_milli,
                             .adapt_rank = manifest->adapt_rank,
                             .adapt_alpha_milli = manifest->adapt_alpha_milli,
                             .adapt_targets = manifest->adapt_targets,
                             .rope_scaling = manifest->rope_scaling,
                             .rope_factor_milli = manifest->rope_factor_milli,
                             .rope_low_milli = manifest->rope_low_milli,
                             .rope_high_milli = manifest->rope_high_milli,
                             .rope_context = manifest->rope_context,
                             .rope_off_every = manifest->rope_off_every,
                             .window = manifest->window,
                             .full_every = manifest->full_every,
                             .rope_local_theta = manifest->rope_local_theta,
                             .scores_softcap_milli = manifest->scores_softcap_milli,
                             .query_scalar = manifest->query_scalar,
                             .rope_width = manifest->rope_width};
}

void dp_manifest_set_model(dp_manifest *manifest, const dp_model_config *config)
{
    manifest->layers = config->layers;
    manifest->width = config->width;
    manifest->heads = config->heads;
    manifest->context = config->context;
    manifest->vocab = config->vocab;
    manifest->arch = config->arch;
    manifest->kv_heads = config->kv_heads;
    manifest->head_width = config->head_width;
    manifest->hidden = config->hidden;
    manifest->norm_eps_nano = config->norm_eps_nano;
    manifest->rope_theta = config->rope_theta;
    manifest->activation = config->activation;
    manifest->qk_norm = config->qk_norm;
    manifest->head = config->head;
    manifest->softcap_milli = config->softcap_milli;
    manifest->adapt_rank = config->adapt_rank;
    manifest->adapt_alpha_milli = config->adapt_alpha_milli;
    manifest->adapt_targets = config->adapt_targets;
    manifest->rope_scaling = config->rope_scaling;
    manifest->rope_factor_milli = config->rope_factor_milli;
    manifest->rope_low_milli = config->rope_low_milli;
    manifest->rope_high_milli = config->rope_high_milli;
    manifest->rope_context = config->rope_context;
    manifest->rope_off_every = config->rope_off_every;
    manifest->window = config->window;
    manifest->full_every = config->full_every;
    manifest->rope_local_theta = config->rope_local_theta;
    manifest->scores_softcap_milli = config->scores_softcap_milli;
    manifest->query_scalar = config->query_scalar;
    manifest->rope_width = config->rope_width;
}

void dp_manifest_words_text(const dp_manifest_choice *choice, char *out, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < choice->n_words && used < size; i++) {
        const char *const between = i == 0 ? "" : i + 1 < choice->n_words ? ", " : " or ";
        const int written =
            snprintf(out + used, size - used, "%s%s", between, choice->words[i].name);
        used += written > 0 ? (size_t)written : 0;
    }
}

bool dp_manifest_of_shape(const char *key)
{
    return strncmp(key, "model.", 6) == 0 && strcmp(key, "model.arch") != 0 &&
           strcmp(key, "model.seed") != 0;
}

static dp_status check_choice(const dp_manifest *manifest, const dp_manifest_choice *choice,
                              dp_why *why)
{
    int value;
    memcpy(&value, (const char *)manifest + choice->offset, sizeof value);
    for (size_t i = 0; i < choice->n_words; i++) {
        if (choice->words[i].value == value) {
            return DP_OK;
        }
    }
    char words[DP_MANIFEST_WORDS_MAX];
    dp_manifest_words_text(choice, words, sizeof words);
    return dp_why_set(why, DP_BADARG, "%s is %d, which is none; it must be %s", choice->key, value,
                      words);
}

uint32_t dp_manifest_moments(const dp_manifest *manifest)
{
    if (manifest->exchange == DP_EXCHANGE_GRADIENTS) {
        return 2;
    }
    return manifest->outer_mu_milli > 0 ? 1 : 0;
}

bool dp_manifest_external(const dp_manifest *manifest)
{
    return manifest->arch == DP_ARCH_EXTERNAL;
}

bool dp_manifest_adapts(const dp_manifest *manifest)
{
    return manifest->adapt_rank > 0;
}

uint64_t dp_manifest_parameters(const dp_manifest *manifest)
{
    const dp_model_config config = dp_manifest_model(manifest);
    return dp_manifest_external(manifest) ? manifest->elements
                                          : dp_model_config_parameters(&config);
}

uint32_t dp_manifest_sample_tokens(const dp_manifest *manifest)
{
    const uint32_t unit = manifest->unit > 0 ? manifest->unit : 1;
    return dp_manifest_external(manifest) ? unit : manifest->context;
}

/* Upper bound of the bytes of a vector, with the padding of tensors (compute/model/model.h; a layer
 * has fewer than 16) and room for heads. */
static uint64_t vector_bytes_max(const dp_manifest *manifest)
{
    const uint64_t tensors =
        16 * ((uint64_t)manifest->layers + 1); /* External: one row of zeros. */
    return (dp_manifest_parameters(manifest) + 64 * tensors) * sizeof(float);
}

uint64_t dp_manifest_update_bytes_max(const dp_manifest *manifest)
{
    return vector_bytes_max(manifest) + 32768; /* heads of parts, and a run that is not full */
}

uint64_t dp_manifest_state_bytes_max(const dp_manifest *manifest)
{
    return (1 + dp_manifest_moments(manifest)) * vector_bytes_max(manifest) + DP_MANIFEST_BYTES_MAX;
}

static dp_status check_model(const dp_manifest *manifest, dp_why *why)
{
    const dp_model_config config = dp_manifest_model(manifest);
    DP_TRY(dp_model_config_check(&config, why));
    const size_t each = (1 + dp_manifest_moments(manifest)) * sizeof(float);
    const uint64_t most = (DP_OBJECT_BYTES_MAX - DP_MANIFEST_BYTES_MAX) / each;
    const uint64_t parameters = dp_manifest_parameters(manifest);
    if (parameters > most && dp_manifest_external(manifest)) {
        return dp_why_set(why, DP_BADARG,
                          "the tensors have %llu elements; one state object holds %llu",
                          (unsigned long long)parameters, (unsigned long long)most);
    }
    if (parameters > most) {
        return dp_why_set(why, DP_BADARG,
                          "the model has %llu parameters; one state object holds %llu, so lower "
                          "model.width or model.layers",
                          (unsigned long long)parameters, (unsigned long long)most);
    }
    return DP_OK;
}

/* Samples, unit and elements belong to runs of any model alone. The objects of such a run are there
 * together or not at all. */
static dp_status check_external(const dp_manifest *m, dp_why *why)
{
    if (!dp_manifest_external(m)) {
        return m->samples == 0 && m->unit == 0 && m->elements == 0
                   ? DP_OK
                   : dp_why_set(why, DP_BADARG,
                                "%s is only for model.arch external; the samples of a text are "
                                "counted: delete it",
                                m->samples != 0 ? "data.samples" : "data.unit");
    }
    if (m->samples == 0) {
        return dp_why_set(why, DP_BADARG,
                          "with model.arch external, data.samples must say how many samples one "
                          "pass through the data has: write data: {samples: N}");
    }
    if (m->val_per_mille != 0 || m->n_shards != 0) {
        return dp_why_set(why, DP_BADARG,
                          "with model.arch external the script alone reads data: delete data.val");
    }
    if (m->exchange == DP_EXCHANGE_GRADIENTS) {
        return dp_why_set(
            why, DP_BADARG,
            "with model.arch external, round.mode ddp is not possible, since a script "
            "gives weights and no gradients: write another round.mode");
    }
    const bool table = m->tokenizer_bytes > 0;
    if (m->tokenizer_bytes > DP_MANIFEST_TABLE_MAX || (table && m->elements == 0) ||
        table != (m->init_bytes > 0) || table == dp_hash_is_zero(&m->init) ||
        m->init_bytes > dp_manifest_state_bytes_max(m)) {
        return dp_why_set(why, DP_BADARG,
                          "the table of tensors (%llu bytes) and the first weights (%llu bytes) do "
                          "not belong together",
                          (unsigned long long)m->tokenizer_bytes,
                          (unsigned long long)m->init_bytes);
    }
    return DP_OK;
}

/* The object of the base is there with its size, or neither is. */
static dp_status check_base(const dp_manifest *m, dp_why *why)
{
    if (!dp_manifest_adapts(m)) {
        return m->base_kind == DP_BASE_BF16 && m->base_bytes == 0 && dp_hash_is_zero(&m->base)
                   ? DP_OK
                   : dp_why_set(why, DP_BADARG,
                                "model.adapt.base is given and model.adapt.rank is not: write a "
                                "rank, such as 8, or delete model.adapt");
    }
    if (m->optimizer == DP_OPTIM_MUON) {
        return dp_why_set(why, DP_BADARG,
                          "train.optimizer muon is for whole matrices, and model.adapt trains the "
                          "factors of some: write train.optimizer adamw");
    }
    if (m->n_shards >= DP_MANIFEST_SHARDS_MAX) {
        return dp_why_set(why, DP_BADARG,
                          "the data has %u shards; a run with model.adapt may have %d", m->n_shards,
                          DP_MANIFEST_SHARDS_MAX - 1);
    }
    if ((m->base_bytes == 0) != dp_hash_is_zero(&m->base) || m->base_bytes > DP_OBJECT_BYTES_MAX) {
        return dp_why_set(why, DP_BADARG,
                          "the base has %llu bytes; it may have 8 GiB: write a smaller "
                          "model.adapt.base, such as nf4",
                          (unsigned long long)m->base_bytes);
    }
    return DP_OK;
}

static dp_status check_codec(const dp_manifest *manifest, dp_why *why)
{
    return dp_codec_options_check(manifest->codec, 0, manifest->codec_keep, DP_CODEC_BITS_DEFAULT,
                                  why);
}

/* A token takes two bytes at least, so no sum of them wraps. */
static dp_status check_shards(const dp_manifest *manifest, dp_why *why)
{
    if (manifest->n_shards > DP_MANIFEST_SHARDS_MAX) {
        return dp_why_set(why, DP_BADARG, "the data has %u shards; a run may have %d",
                          manifest->n_shards, DP_MANIFEST_SHARDS_MAX);
    }
    for (uint32_t i = 0; i < manifest->n_shards; i++) {
        const dp_manifest_shard *const shard = &manifest->shards[i];
        if (shard->bytes > DP_OBJECT_BYTES_MAX || shard->tokens == 0 ||
            shard->tokens > shard->bytes / 2) {
            return dp_why_set(why, DP_BADARG,
                              "shard %u of the data cannot have %llu tokens in %llu bytes; a shard "
                              "may have 8 GiB",
                              i, (unsigned long long)shard->tokens,
                              (unsigned long long)shard->bytes);
        }
    }
    return DP_OK;
}

dp_status dp_manifest_check(const dp_manifest *manifest, dp_why *why)
{
    if (!name_is_plain(manifest->name)) {
        return dp_why_set(why, DP_BADARG,
                          "name must be 1 to %d letters, digits, '.', '_' or '-', and start with "
                          "none of '.' and '-'",
                          (int)DP_NAME_MAX);
    }
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const uint64_t value = row_value(manifest, &rows[i]);
        if (dp_manifest_external(manifest) && dp_manifest_of_shape(rows[i].key)) {
            continue; /* 0, by check_model. */
        }
        if (value < rows[i].min || value > rows[i].max) {
            const double scale = (double)rows[i].scale;
            return dp_why_set(why, DP_BADARG, "%s is %.10g; it may be %.10g to %.10g", rows[i].key,
                              (double)value / scale, (double)rows[i].min / scale,
                              (double)rows[i].max / scale);
        }
    }
    for (size_t i = 0; i < CHOICE_COUNT; i++) {
        DP_TRY(check_choice(manifest, &choices[i], why));
    }
    DP_TRY(check_model(manifest, why));
    DP_TRY(check_external(manifest, why));
    DP_TRY(check_base(manifest, why));
    DP_TRY(check_codec(manifest, why));
    DP_TRY(dp_manifest_check_rounds(manifest, why));
    if (manifest->warmup_tokens >= manifest->total_tokens) {
        return dp_why_set(why, DP_BADARG,
                          "train.warmup_tokens must be less than train.total_tokens");
    }
    if (manifest->voters_max % 2 == 0) {
        return dp_why_set(why, DP_BADARG,
                          "vote.voters_max is %u; it must be odd, so that a majority is clear",
                          manifest->voters_max);
    }
    if (manifest->tokenizer_bytes > DP_OBJECT_BYTES_MAX ||
        manifest->init_bytes > DP_OBJECT_BYTES_MAX) {
        return dp_why_set(why, DP_BADARG,
                          "the tokenizer and the first weights may have at most 8 GiB each");
    }
    return check_shards(manifest, why);
}
