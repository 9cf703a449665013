#include "compute/cuda/gemm_cache.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "compute/machine/files.h"

enum {
    WORDS = 7 + DP_GEMM_ALGORITHM_WORDS + 1,
    DIGITS_MAX = 16,
    HEADER_MAX = 256,
    FLAG_A_TRANSPOSED = 1 << 0,
    FLAG_B_TRANSPOSED = 1 << 1,
    FLAG_BIAS = 1 << 2,
    FLAG_ADD = 1 << 3,
    FLAG_ADD_IS_C = 1 << 4,
    FLAG_UNALIGNED = 1 << 5,
    FLAG_TF32 = 1 << 6,
    SHIFT_IN = 8,
    SHIFT_OUT = 12
};

_Static_assert(sizeof(dp_gemm_found) == WORDS * sizeof(uint64_t), "a line is its words");

bool dp_gemm_is_aligned(const dp_cuda_product *p)
{
    return ((uintptr_t)p->a | (uintptr_t)p->b | (uintptr_t)p->c | (uintptr_t)p->add |
            (uintptr_t)p->bias) %
               DP_GEMM_ALIGN ==
           0;
}

dp_gemm_key dp_gemm_key_of(const dp_cuda_product *p)
{
    const unsigned flags =
        (p->a_transposed ? FLAG_A_TRANSPOSED : 0U) | (p->b_transposed ? FLAG_B_TRANSPOSED : 0U) |
        (p->bias != NULL ? FLAG_BIAS : 0U) | (p->add != NULL ? FLAG_ADD : 0U) |
        (p->add == p->c ? FLAG_ADD_IS_C : 0U) | (dp_gemm_is_aligned(p) ? 0U : FLAG_UNALIGNED) |
        (p->tf32 ? FLAG_TF32 : 0U) | (unsigned)p->in << SHIFT_IN | (unsigned)p->out << SHIFT_OUT;
    return (dp_gemm_key){.m = p->m,
                         .n = p->n,
                         .k = p->k,
                         .lda = p->lda,
                         .ldb = p->ldb,
                         .ldc = p->ldc,
                         .flags = flags};
}

static void read_file(dp_gemm_cache *cache)
{
    char path[sizeof cache->folder + sizeof cache->file + 1];
    dp_buf bytes;
    snprintf(path, sizeof path, "%s/%s", cache->folder, cache->file);
    dp_buf_init(&bytes, DP_GEMM_CACHE_BYTES_MAX);
    if (cache->folder[0] != '\0' && dp_file_read(path, &bytes, NULL) == DP_OK) {
        dp_gemm_cache_read(cache, dp_buf_view(&bytes), cache->purpose);
    }
    dp_buf_close(&bytes);
}

dp_status dp_gemm_cache_open(dp_gemm_cache *cache, const char *folder, const char *file,
                             const char *purpose)
{
    *cache = (dp_gemm_cache){.found = dp_alloc(DP_GEMM_CACHE_MAX, sizeof *cache->found)};
    if (cache->found == NULL) {
        return DP_NOMEM;
    }
    snprintf(cache->folder, sizeof cache->folder, "%s", folder);
    snprintf(cache->file, sizeof cache->file, "%s", file);
    snprintf(cache->purpose, sizeof cache->purpose, "%s", purpose);
    read_file(cache);
    return DP_OK;
}

void dp_gemm_cache_close(dp_gemm_cache *cache)
{
    dp_free(cache->found);
    *cache = (dp_gemm_cache){0};
}

const dp_gemm_found *dp_gemm_cache_get(const dp_gemm_cache *cache, const dp_gemm_key *key)
{
    for (size_t i = 0; i < cache->count; i++) {
        if (memcmp(&cache->found[i].key, key, sizeof *key) == 0) {
            return &cache->found[i];
        }
    }
    return NULL;
}

void dp_gemm_cache_put(dp_gemm_cache *cache, const dp_gemm_found *found)
{
    const dp_gemm_found *const old = dp_gemm_cache_get(cache, &found->key);
    if (old != NULL) {
        cache->found[old - cache->found] = *found;
        return;
    }
    if (cache->count == DP_GEMM_CACHE_MAX) {
        cache->count = 0;
    }
    cache->found[cache->count++] = *found;
}

static dp_status write_file(const dp_gemm_cache *cache)
{
    dp_buf bytes;
    if (cache->folder[0] == '\0') {
        return DP_OK;
    }
    dp_buf_init(&bytes, DP_GEMM_CACHE_BYTES_MAX);
    dp_status status = dp_gemm_cache_write(cache, cache->purpose, &bytes);
    if (status == DP_OK) {
        status = dp_folder_make(cache->folder, NULL);
    }
    if (status == DP_OK) {
        status = dp_file_replace(cache->folder, cache->file, dp_buf_view(&bytes), NULL);
    }
    dp_buf_close(&bytes);
    return status;
}

dp_status dp_gemm_cache_keep(dp_gemm_cache *cache, dp_gemm_found *found, bool spoilt)
{
    read_file(cache); /* So that the products that other processes have added stay in it. */
    const dp_gemm_found *const first = spoilt ? NULL : dp_gemm_cache_get(cache, &found->key);
    if (first != NULL) {
        *found = *first;
        return DP_OK;
    }
    dp_gemm_cache_put(cache, found);
    return write_file(cache);
}

/* ---- The file. */

static int digit_of(uint8_t c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One number and the separator behind it. */
static bool take_word(dp_reader *reader, char separator, uint64_t *word)
{
    uint64_t value = 0;
    for (int digits = 0; digits <= DIGITS_MAX; digits++) {
        const uint8_t c = dp_read_u8(reader);
        const int digit = digit_of(c);
        if (digit < 0 || digits == DIGITS_MAX) {
            *word = value;
            return !reader->failed && digits > 0 && c == (uint8_t)separator;
        }
        value = value << 4 | (uint64_t)digit;
    }
    return false;
}

static bool take_line(dp_reader *reader, dp_gemm_found *found)
{
    uint64_t words[WORDS];
    for (size_t i = 0; i < WORDS; i++) {
        if (!take_word(reader, i + 1 < WORDS ? ' ' : '\n', &words[i])) {
            return false;
        }
    }
    memcpy(found, words, sizeof *found);
    return true;
}

static void header_of(const char *purpose, char out[HEADER_MAX])
{
    snprintf(out, HEADER_MAX, "dpnode gemm 1 %s\n", purpose);
}

void dp_gemm_cache_read(dp_gemm_cache *cache, dp_view bytes, const char *purpose)
{
    char header[HEADER_MAX];
    header_of(purpose, header);
    const size_t size = strlen(header);
    if (bytes.size < size || memcmp(bytes.data, header, size) != 0) {
        return;
    }
    dp_reader reader = dp_reader_of(dp_view_of(bytes.data + size, bytes.size - size));
    dp_gemm_found found;
    for (size_t lines = 0; lines < DP_GEMM_CACHE_MAX && take_line(&reader, &found); lines++) {
        dp_gemm_cache_put(cache, &found);
    }
}

dp_status dp_gemm_cache_write(const dp_gemm_cache *cache, const char *purpose, dp_buf *out)
{
    char text[HEADER_MAX];
    header_of(purpose, text);
    DP_TRY(dp_buf_append(out, dp_view_text(text)));
    for (size_t i = 0; i < cache->count; i++) {
        uint64_t words[WORDS];
        memcpy(words, &cache->found[i], sizeof words);
        for (size_t w = 0; w < WORDS; w++) {
            snprintf(text, sizeof text, "%" PRIx64 "%c", words[w], w + 1 < WORDS ? ' ' : '\n');
            DP_TRY(dp_buf_append(out, dp_view_text(text)));
        }
    }
    return DP_OK;
}
