/* GGUF files with false fields: each gives a sentence, and no claim is trusted. */
#include "tests/lib/check.h"

#include <string.h>

#include "compute/format/gguf_read.h"
#include "compute/format/gguf_words.h"

enum { FILE_MAX = 4096, DATA_BYTES = 192, VALUES = 4 };

/* The claims of a file's header: one pair, whose value is an array, and two tensors. */
typedef struct claims {
    uint32_t version;
    uint64_t n_tensors;
    uint64_t n_pairs;
    uint64_t key_bytes;
    uint32_t value_type;
    uint64_t value_count;
    uint32_t n_dims;
    uint64_t dims[2];
    uint32_t type;
    uint64_t offsets[2];
    const char *key; /* key_bytes of it, if that is what it has */
} claims;

/* 4 u64 under "k"; two matrices of F32, 2 rows of 8, 64 bytes each. */
static const claims good = {.version = 3,
                            .n_tensors = 2,
                            .n_pairs = 1,
                            .key_bytes = 1,
                            .value_type = 10,
                            .value_count = VALUES,
                            .n_dims = 2,
                            .dims = {8, 2},
                            .type = DP_GGUF_F32,
                            .offsets = {0, 64},
                            .key = "k"};

static void write_tensor(dp_writer *w, const claims *c, unsigned index)
{
    dp_write_u64(w, 1);
    dp_write_bytes(w, index == 0 ? "a" : "b", 1);
    dp_write_u32(w, index == 0 ? c->n_dims : 2);
    const uint64_t dims[] = {8, 2};
    for (unsigned i = 0; i < 2; i++) {
        dp_write_u64(w, index == 0 ? c->dims[i] : dims[i]);
    }
    dp_write_u32(w, index == 0 ? c->type : DP_GGUF_F32);
    dp_write_u64(w, c->offsets[index]);
}

static dp_status read_file(const claims *c, dp_why *why)
{
    static const uint8_t zeros[DATA_BYTES + DP_GGUF_ALIGN];
    uint8_t bytes[FILE_MAX];
    dp_writer w = dp_writer_of(bytes, sizeof bytes);
    dp_write_bytes(&w, "GGUF", 4);
    dp_write_u32(&w, c->version);
    dp_write_u64(&w, c->n_tensors);
    dp_write_u64(&w, c->n_pairs);
    dp_write_u64(&w, c->key_bytes);
    dp_write_bytes(&w, c->key, strlen(c->key));
    dp_write_u32(&w, DP_GGUF_ARRAY);
    dp_write_u32(&w, c->value_type);
    dp_write_u64(&w, c->value_count);
    dp_write_bytes(&w, zeros, VALUES * sizeof(uint64_t));
    write_tensor(&w, c, 0);
    write_tensor(&w, c, 1);
    dp_write_bytes(&w, zeros, (DP_GGUF_ALIGN - w.size % DP_GGUF_ALIGN) % DP_GGUF_ALIGN);
    dp_write_bytes(&w, zeros, DATA_BYTES);
    CHECK(!w.full);
    dp_gguf *file = NULL;
    const dp_status status = dp_gguf_open(&file, dp_view_of(bytes, w.size), why);
    dp_gguf_close(file);
    return status;
}

static void the_fields_of_a_file_are_read(void **state)
{
    (void)state;
    dp_why why = {{0}};
    CHECK_OK(read_file(&good, &why));
}

static void refused(const claims *c, dp_status status, const char *words)
{
    dp_why why = {{0}};
    CHECK_STATUS(read_file(c, &why), status);
    if (strstr(why.text, words) == NULL) {
        fail_msg("'%s' does not say '%s'", why.text, words);
    }
}

static void counts_that_no_file_has_are_refused(void **state)
{
    (void)state;
    const uint64_t huge[] = {DP_GGUF_TENSORS_MAX + 1, (uint64_t)1 << 61, UINT64_MAX};
    for (size_t i = 0; i < sizeof huge / sizeof huge[0]; i++) {
        claims c = good;
        c.n_tensors = huge[i];
        refused(&c, DP_TOOBIG, "more than");
        c = good;
        c.n_pairs = huge[i];
        refused(&c, DP_TOOBIG, "more than");
        c = good;
        c.key_bytes = huge[i];
        refused(&c, DP_BADMSG, "pair 0");
        c = good;
        c.value_count = huge[i]; /* 2^61 of 8 bytes are none in 64 bits. */
        refused(&c, DP_BADMSG, "pair 0");
        c.value_type = DP_GGUF_TEXT;
        refused(&c, DP_BADMSG, "pair 0");
    }
}

static void arrays_of_arrays_and_of_nothing_known_are_refused(void **state)
{
    (void)state;
    claims c = good;
    c.value_type = DP_GGUF_ARRAY;
    refused(&c, DP_BADMSG, "pair 0");
    c.value_type = 13;
    refused(&c, DP_BADMSG, "pair 0");
}

static void shapes_that_are_none_are_refused(void **state)
{
    (void)state;
    claims c = good;
    c.n_dims = 0;
    refused(&c, DP_BADMSG, "1 to 4 dimensions");
    c.n_dims = 5;
    refused(&c, DP_BADMSG, "1 to 4 dimensions");
    c = good;
    c.dims[1] = (uint64_t)1 << 61;
    refused(&c, DP_BADMSG, "too many elements");
    c.dims[1] = (uint64_t)1 << 59; /* which are too many bytes */
    refused(&c, DP_BADMSG, "");
    c = good;
    c.type = DP_GGUF_Q8_0; /* rows of 8, blocks of 32 */
    refused(&c, DP_BADMSG, "whole blocks");
    c.type = 2; /* Q4_0 */
    refused(&c, DP_UNSUPPORTED, "type 2");
    c = good;
    c.version = 2;
    refused(&c, DP_VERSION, "version 2");
}

static void places_that_cannot_be_are_refused(void **state)
{
    (void)state;
    claims c = good;
    c.offsets[1] = 32;
    refused(&c, DP_BADMSG, "overlap");
    c.offsets[1] = 0;
    refused(&c, DP_BADMSG, "overlap");
    c.offsets[1] = 65;
    refused(&c, DP_BADMSG, "not aligned");
    c.offsets[1] = DATA_BYTES;
    refused(&c, DP_BADMSG, "ends behind it");
    c.offsets[1] = DATA_BYTES - 32;
    refused(&c, DP_BADMSG, "ends behind it");
    c.offsets[1] = UINT64_MAX - 31; /* Its end is 32. */
    refused(&c, DP_BADMSG, "ends behind it");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fields_of_a_file_are_read),
        cmocka_unit_test(counts_that_no_file_has_are_refused),
        cmocka_unit_test(arrays_of_arrays_and_of_nothing_known_are_refused),
        cmocka_unit_test(shapes_that_are_none_are_refused),
        cmocka_unit_test(places_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
