#include "compute/data/data.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/rng.h"
#include "base/run/samples.h"
#include "base/run/token_marks.h"
#include "compute/data/order.h"

static const dp_data_part *part_of(const dp_data *data, uint32_t index)
{
    return data->parts != NULL ? &data->parts[index] : &data->one;
}

static dp_status hold_out(dp_data *data, uint32_t val_per_mille, dp_why *why)
{
    if (val_per_mille > 1000) {
        return dp_why_set(why, DP_BADMSG, "%u per mille of the data cannot be held out",
                          val_per_mille);
    }
    data->n_train = dp_samples_training(data->n_tokens, val_per_mille);
    return DP_OK;
}

dp_status dp_data_open(dp_data *data, dp_view bytes, uint32_t vocab, uint32_t val_per_mille,
                       dp_why *why)
{
    dp_data read = {.n_parts = 1, .vocab_most = vocab};
    DP_TRY(dp_shard_open(&read.one.shard, bytes, why));
    DP_TRY(dp_shard_check(&read.one.shard, vocab, why));
    read.n_tokens = read.one.shard.n_tokens;
    read.text_bytes = read.one.shard.text_bytes;
    read.vocab = read.one.shard.vocab;
    read.documents = read.one.shard.begins != NULL;
    DP_TRY(hold_out(&read, val_per_mille, why));
    *data = read;
    return DP_OK;
}

dp_status dp_data_open_list(dp_data *data, const uint64_t *tokens, uint32_t n, uint32_t vocab,
                            uint32_t val_per_mille, dp_why *why)
{
    dp_data read = {.n_parts = n, .vocab_most = vocab};
    if (n == 0) {
        return dp_why_set(why, DP_BADARG, "there is no data");
    }
    for (uint32_t i = 0; i < n; i++) {
        read.n_tokens += tokens[i];
    }
    DP_TRY(hold_out(&read, val_per_mille, why));
    read.parts = dp_alloc(n, sizeof *read.parts);
    if (read.parts == NULL) {
        return DP_NOMEM;
    }
    uint64_t begin = 0;
    for (uint32_t i = 0; i < n; i++) {
        read.parts[i].begin = begin;
        read.parts[i].shard.n_tokens = tokens[i];
        begin += tokens[i];
    }
    *data = read;
    return DP_OK;
}

void dp_data_close(dp_data *data)
{
    dp_free(data->parts);
    *data = (dp_data){0};
}

/* Sets text_bytes, vocab and documents from the attached shards. */
static void look_at_parts(dp_data *data)
{
    bool says = true;
    data->text_bytes = 0;
    data->vocab = 0;
    data->documents = false;
    for (uint32_t i = 0; i < data->n_parts; i++) {
        const dp_shard *const shard = &data->parts[i].shard;
        if (shard->tokens != NULL) {
            says = says && shard->text_bytes > 0;
            data->documents = data->documents || shard->begins != NULL;
            data->text_bytes += shard->text_bytes;
            data->vocab = shard->vocab > data->vocab ? shard->vocab : data->vocab;
        }
    }
    data->text_bytes = says ? data->text_bytes : 0;
}

dp_status dp_data_attach(dp_data *data, uint32_t index, dp_view bytes, dp_why *why)
{
    dp_shard shard;
    if (data->parts == NULL || index >= data->n_parts) {
        return dp_why_set(why, DP_BADARG, "the data has no shard %u", index);
    }
    DP_TRY(dp_shard_open(&shard, bytes, why));
    if (shard.n_tokens != data->parts[index].shard.n_tokens) {
        return dp_why_set(why, DP_BADMSG, "shard %u of the data has %llu tokens, the run says %llu",
                          index, (unsigned long long)shard.n_tokens,
                          (unsigned long long)data->parts[index].shard.n_tokens);
    }
    DP_TRY(dp_shard_check(&shard, data->vocab_most, why));
    data->parts[index].shard = shard;
    look_at_parts(data);
    return DP_OK;
}

/* Adds the marks of documents to a window. */
static void mark_window(const dp_shard *shard, uint64_t start, size_t length, uint32_t *x,
                        uint32_t *y)
{
    for (size_t i = 0; i < length; i++) {
        x[i] |= (dp_shard_marks(shard, start + i) & DP_MARK_BEGINS) != 0 ? DP_TOKEN_BEGINS : 0;
        y[i] = (dp_shard_marks(shard, start + i + 1) & DP_MARK_LOSS) != 0 ? y[i] : DP_TOKEN_NO_LOSS;
    }
}

static dp_status copy_window(const dp_data_part *part, uint64_t start, size_t length, uint32_t *x,
                             uint32_t *y)
{
    if (part->shard.tokens == NULL) {
        return DP_AGAIN;
    }
    dp_shard_read(&part->shard, start, length, x);
    dp_shard_read(&part->shard, start + 1, length, y);
    if (part->shard.begins != NULL) {
        mark_window(&part->shard, start, length, x, y);
    }
    return DP_OK;
}

/* Training tokens of a part: its first ones. */
static uint64_t n_train_of(const dp_data *data, const dp_data_part *part)
{
    return dp_samples_training_here(data->n_train, part->begin, part->shard.n_tokens);
}

/* How many windows of some sort begin in a part. */
typedef uint64_t count_windows(const dp_data *data, const dp_data_part *part, size_t length);

static uint64_t count_side_by_side(const dp_data *data, const dp_data_part *part, size_t length)
{
    return dp_samples_windows(n_train_of(data, part), length);
}

/* The first window of documents that is held out. */
static uint64_t first_held_out(const dp_data *data, const dp_data_part *part, size_t length)
{
    return (n_train_of(data, part) + length - 1) / length;
}

static uint64_t count_held_out(const dp_data *data, const dp_data_part *part, size_t length)
{
    if (part->shard.begins != NULL && length > 0) {
        const uint64_t all = dp_samples_windows(part->shard.n_tokens, length);
        const uint64_t before = first_held_out(data, part, length);
        return all > before ? all - before : 0;
    }
    return dp_samples_windows(part->shard.n_tokens - n_train_of(data, part), length);
}

static uint64_t count_all(const dp_data *data, count_windows *count, size_t length)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < data->n_parts; i++) {
        sum += count(data, part_of(data, i), length);
    }
    return sum;
}

/* The part of window *index of all, which becomes its index there. */
static uint32_t find_part(const dp_data *data, count_windows *count, size_t length, uint64_t *index)
{
    uint32_t i = 0;
    for (;;) {
        dp_assert(i < data->n_parts);
        const uint64_t here = count(data, part_of(data, i), length);
        if (*index < here) {
            return i;
        }
        *index -= here;
        i++;
    }
}

uint64_t dp_data_windows(const dp_data *data, size_t length)
{
    return count_all(data, count_side_by_side, length);
}

uint64_t dp_data_losses(const dp_data *data, size_t length)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < data->n_parts; i++) {
        const dp_data_part *const part = part_of(data, i);
        const uint64_t targets = count_side_by_side(data, part, length) * length;
        if (part->shard.tokens != NULL && targets > 0) {
            sum += dp_shard_losses(&part->shard, 1, targets);
        }
    }
    return sum;
}

/* Part and window inside of it. */
static dp_status find_sample(const dp_data *data, uint64_t seed, uint64_t sample, size_t length,
                             uint32_t *part, uint64_t *window)
{
    const uint64_t n = dp_data_windows(data, length);
    if (n == 0) {
        return DP_BADARG;
    }
    *window = dp_order_at(seed, sample / n, n, sample % n);
    *part = find_part(data, count_side_by_side, length, window);
    return DP_OK;
}

dp_status dp_data_sample(const dp_data *data, uint64_t seed, uint64_t sample, size_t length,
                         uint32_t *x, uint32_t *y)
{
    uint32_t part;
    uint64_t window;
    DP_TRY(find_sample(data, seed, sample, length, &part, &window));
    return copy_window(part_of(data, part), window * length, length, x, y);
}

dp_status dp_data_sample_shard(const dp_data *data, uint64_t seed, uint64_t sample, size_t length,
                               uint32_t *index)
{
    uint64_t window;
    return find_sample(data, seed, sample, length, index, &window);
}

static uint64_t short_window(const dp_data *data)
{
    const dp_data_part *const last = part_of(data, data->n_parts - 1);
    const uint64_t n = last->shard.n_tokens - n_train_of(data, last);
    return n >= 2 ? n - 1 : 0;
}

uint64_t dp_data_val_windows(const dp_data *data, size_t length)
{
    const uint64_t full = count_all(data, count_held_out, length);
    return full > 0 || length == 0 ? full : short_window(data) > 0;
}

/* The first token of the full windows that are held out in a part. */
static uint64_t begin_held_out(const dp_data *data, const dp_data_part *part, size_t length)
{
    return part->shard.begins != NULL ? first_held_out(data, part, length) * length
                                      : n_train_of(data, part);
}

uint64_t dp_data_val_losses(const dp_data *data, size_t length)
{
    const bool full = count_all(data, count_held_out, length) > 0;
    uint64_t sum = 0;
    for (uint32_t i = full ? 0 : data->n_parts - 1; i < data->n_parts; i++) {
        const dp_data_part *const part = part_of(data, i);
        const uint64_t targets =
            full ? count_held_out(data, part, length) * length : short_window(data);
        const uint64_t begin = full ? begin_held_out(data, part, length) : n_train_of(data, part);
        if (part->shard.tokens != NULL && targets > 0) {
            sum += dp_shard_losses(&part->shard, begin + 1, targets);
        }
    }
    return sum;
}

size_t dp_data_val_row(const dp_data *data, uint64_t index, size_t length, uint32_t *x, uint32_t *y)
{
    dp_assert(index < dp_data_val_windows(data, length));
    uint32_t part = data->n_parts - 1;
    size_t targets = length;
    const bool full = count_all(data, count_held_out, length) > 0;
    if (full) {
        part = find_part(data, count_held_out, length, &index);
    } else {
        targets = (size_t)short_window(data);
    }
    const dp_data_part *const p = part_of(data, part);
    const uint64_t begin = full ? begin_held_out(data, p, length) : n_train_of(data, p);
    const uint64_t start = begin + index * length;
    return copy_window(p, start, targets, x, y) == DP_OK ? targets : 0;
}
