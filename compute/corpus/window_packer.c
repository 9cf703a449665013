#include "compute/corpus/window_packer.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "compute/corpus/document.h"
#include "compute/data/shard.h"
#include "compute/machine/files.h"

dp_status dp_window_packer_open(dp_window_packer *p, dp_corpus *corpus, size_t window, uint32_t pad)
{
    dp_assert(window > 0);
    *p = (dp_window_packer){.corpus = corpus, .window = window, .pad = pad};
    p->ids = dp_alloc(DP_WINDOWS_OPEN * window, sizeof *p->ids);
    p->marks = dp_alloc(DP_WINDOWS_OPEN * window, sizeof *p->marks);
    if (p->ids == NULL || p->marks == NULL) {
        dp_window_packer_close(p);
        return DP_NOMEM;
    }
    dp_corpus_close_shards_with(corpus, pad);
    return DP_OK;
}

void dp_window_packer_close(dp_window_packer *p)
{
    dp_free(p->ids);
    dp_free(p->marks);
    *p = (dp_window_packer){0};
}

uint64_t dp_window_packer_tokens_max(uint64_t tokens, size_t window)
{
    return 2 * tokens + (uint64_t)(DP_WINDOWS_OPEN + 1) * window;
}

/* Fills the rest of an open window, writes it, and puts the last open one in its place. */
static dp_status write_window(dp_window_packer *p, size_t index, dp_why *why)
{
    uint32_t *const ids = p->ids + index * p->window;
    uint8_t *const marks = p->marks + index * p->window;
    const size_t used = p->used[index];
    for (size_t i = used; i < p->window; i++) {
        ids[i] = p->pad;
        marks[i] = i == used ? DP_MARK_BEGINS : 0;
    }
    p->padding += p->window - used;
    DP_TRY(dp_corpus_add_marked(p->corpus, ids, marks, p->window, why));
    p->n_open--;
    if (index != p->n_open) {
        memcpy(ids, p->ids + p->n_open * p->window, p->window * sizeof *ids);
        memcpy(marks, p->marks + p->n_open * p->window, p->window);
        p->used[index] = p->used[p->n_open];
    }
    return DP_OK;
}

/* The open window that a document fills most; n_open: it fits into none. */
static size_t find_place(const dp_window_packer *p, size_t count)
{
    size_t best = p->n_open;
    for (size_t i = 0; i < p->n_open; i++) {
        if (p->window - p->used[i] >= count && (best == p->n_open || p->used[i] > p->used[best])) {
            best = i;
        }
    }
    return best;
}

static size_t find_fullest(const dp_window_packer *p)
{
    size_t fullest = 0;
    for (size_t i = 1; i < p->n_open; i++) {
        fullest = p->used[i] > p->used[fullest] ? i : fullest;
    }
    return fullest;
}

dp_status dp_window_packer_add(dp_window_packer *p, const uint32_t *ids, const uint8_t *marks,
                               size_t count, dp_why *why)
{
    const size_t n = count < p->window ? count : p->window;
    if (dp_document_losses(marks, n) == 0) {
        p->left_out++;
        return DP_OK;
    }
    dp_assert(marks[0] == DP_MARK_BEGINS);
    p->cut += n < count;
    size_t place = find_place(p, n);
    if (place == p->n_open && p->n_open == DP_WINDOWS_OPEN) {
        DP_TRY(write_window(p, find_fullest(p), why));
        place = p->n_open;
    }
    if (place == p->n_open) {
        p->used[p->n_open++] = 0;
    }
    memcpy(p->ids + place * p->window + p->used[place], ids, n * sizeof *ids);
    memcpy(p->marks + place * p->window + p->used[place], marks, n);
    p->used[place] += n;
    return DP_OK;
}

dp_status dp_window_packer_finish(dp_window_packer *p, dp_why *why)
{
    while (p->n_open > 0) {
        DP_TRY(write_window(p, 0, why));
    }
    return DP_OK;
}

/* ---- From a folder of data. */

static dp_status read_shard(const char *folder, const char *name, dp_buf *out, dp_why *why)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) {
        return dp_why_set(why, DP_BADARG, "the path %.300s is too long", folder);
    }
    return dp_file_read(path, out, why);
}

/* The documents of a shard, one after the other. */
static dp_status add_documents(dp_window_packer *packer, const dp_shard *shard, dp_tokens *ids,
                               dp_buf *marks, dp_why *why)
{
    for (uint64_t at = 0; at < shard->n_tokens;) {
        uint64_t end = at + 1;
        while (end < shard->n_tokens && (dp_shard_marks(shard, end) & DP_MARK_BEGINS) == 0) {
            end++;
        }
        ids->count = 0;
        dp_buf_clear(marks);
        for (uint64_t i = at; i < end; i++) {
            uint32_t id;
            const uint8_t mark = (uint8_t)dp_shard_marks(shard, i);
            dp_shard_read(shard, i, 1, &id);
            DP_TRY(dp_tokens_append(ids, &id, 1));
            DP_TRY(dp_buf_append(marks, dp_view_of(&mark, 1)));
        }
        DP_TRY(dp_window_packer_add(packer, ids->ids, marks->data, ids->count, why));
        at = end;
    }
    return DP_OK;
}

static dp_status add_shard(dp_window_packer *packer, const char *folder, uint32_t index,
                           dp_why *why)
{
    char name[DP_PREPARED_NAME_MAX];
    dp_buf bytes;
    dp_buf marks;
    dp_tokens ids = {0};
    dp_shard shard;
    dp_prepared_shard(index, name);
    dp_buf_init(&bytes, DP_OBJECT_BYTES_MAX);
    dp_buf_init(&marks, DP_OBJECT_BYTES_MAX);
    dp_status status = read_shard(folder, name, &bytes, why);
    if (status == DP_OK) {
        status = dp_shard_open(&shard, dp_buf_view(&bytes), why);
    }
    if (status == DP_OK && shard.begins == NULL) {
        status =
            dp_why_set(why, DP_BADMSG, "%s keeps no documents apart, as other shards of %.200s do",
                       name, folder);
    }
    if (status == DP_OK) {
        status = add_documents(packer, &shard, &ids, &marks, why);
    }
    dp_tokens_close(&ids);
    dp_buf_close(&marks);
    dp_buf_close(&bytes);
    return status;
}

dp_status dp_window_packer_add_folder(dp_window_packer *p, const char *folder, uint32_t n_shards,
                                      dp_why *why)
{
    for (uint32_t i = 0; i < n_shards; i++) {
        DP_TRY(add_shard(p, folder, i, why));
    }
    return DP_OK;
}
