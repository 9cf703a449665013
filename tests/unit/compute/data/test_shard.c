#include "tests/lib/check.h"

#include "compute/data/shard.h"
#include "tests/unit/compute/marked_shard.h"

enum { COUNT = 9000, LLMC_HEADER = 1024, ROOM = 8192 };

static void check_own(uint32_t vocab, uint32_t token_bytes, uint32_t step)
{
    static uint32_t ids[COUNT];
    static uint32_t back[COUNT];
    dp_buf bytes;
    dp_shard shard;
    for (uint32_t i = 0; i < COUNT; i++) {
        ids[i] = i * step % vocab;
    }
    ids[COUNT - 1] = vocab - 1;
    dp_buf_init(&bytes, 1 << 20);
    CHECK_OK(dp_shard_write(ids, COUNT, vocab, 77, &bytes));
    CHECK(bytes.size == DP_SHARD_HEADER_BYTES + (size_t)token_bytes * COUNT);
    CHECK_OK(dp_shard_open(&shard, dp_buf_view(&bytes), NULL));
    CHECK(shard.format == DP_SHARD_OWN && shard.token_bytes == token_bytes);
    CHECK(shard.n_tokens == COUNT && shard.vocab == vocab && shard.text_bytes == 77);
    CHECK(dp_shard_needs(&shard) == vocab);
    CHECK_OK(dp_shard_check(&shard, vocab, NULL));
    dp_shard_read(&shard, 0, COUNT, back);
    CHECK(memcmp(ids, back, sizeof ids) == 0);
    dp_shard_read(&shard, COUNT - 1, 1, back);
    CHECK(back[0] == vocab - 1);
    dp_buf_close(&bytes);
}

static void tokens_come_back_in_the_width_of_their_vocabulary(void **state)
{
    (void)state;
    check_own(300, 2, 7);
    check_own(65536, 2, 9973);
    check_own(65537, 4, 9973);
    check_own(262144, 4, 99991);
}

static void put_u32(uint8_t *at, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

/* A file of llm.c with tokens 0, 1, 2 ... of this width; returns its size. */
static size_t make_llmc(uint8_t out[ROOM], uint32_t number, uint32_t version, uint32_t n_tokens,
                        uint32_t width)
{
    memset(out, 0, ROOM);
    put_u32(out, number);
    put_u32(out + 4, version);
    put_u32(out + 8, n_tokens);
    for (uint32_t i = 0; i < n_tokens && i < 500; i++) {
        out[LLMC_HEADER + width * i] = (uint8_t)i;
        out[LLMC_HEADER + width * i + 1] = (uint8_t)(i >> 8);
    }
    return LLMC_HEADER + (size_t)width * (n_tokens < 500 ? n_tokens : 500);
}

static void files_of_llm_c_are_known_by_their_magic(void **state)
{
    (void)state;
    static uint8_t bytes[ROOM];
    static const uint32_t kinds[][3] = {{20240520, 1, 2}, {20240801, 7, 4}};
    for (size_t i = 0; i < 2; i++) {
        dp_shard shard;
        uint32_t last;
        const size_t size = make_llmc(bytes, kinds[i][0], kinds[i][1], 500, kinds[i][2]);
        CHECK_OK(dp_shard_open(&shard, dp_view_of(bytes, size), NULL));
        CHECK(shard.format == DP_SHARD_LLMC && shard.n_tokens == 500 && shard.vocab == 0);
        dp_shard_read(&shard, 499, 1, &last);
        CHECK(last == 499 && dp_shard_needs(&shard) == 500);
    }
}

static void check_bad(const uint8_t *bytes, size_t size, dp_status wanted, const char *words)
{
    dp_shard shard = {.n_tokens = 5};
    dp_why why = {{0}};
    CHECK_STATUS(dp_shard_open(&shard, dp_view_of(bytes, size), &why), wanted);
    CHECK(strstr(why.text, words) != NULL && shard.n_tokens == 5);
}

static void headers_that_lie_are_refused(void **state)
{
    (void)state;
    static uint8_t bytes[ROOM];
    size_t size = make_llmc(bytes, 20240520, 2, 500, 2);
    check_bad(bytes, size, DP_VERSION, "version 2");
    size = make_llmc(bytes, 20240520, 1, UINT32_MAX, 2);
    check_bad(bytes, size, DP_BADMSG, "-1 tokens");
    size = make_llmc(bytes, 20240520, 1, INT32_MAX, 2);
    check_bad(bytes, size, DP_BADMSG, "2147483647 tokens");
    size = make_llmc(bytes, 20240801, 7, 500, 4);
    check_bad(bytes, size - 1, DP_BADMSG, "cut off");
    check_bad(bytes, 1000, DP_BADMSG, "cut off");
    check_bad(bytes, 3, DP_BADMSG, "not a token shard");
    check_bad((const uint8_t *)"GGUF", 4, DP_BADMSG, "not a token shard");
    dp_shard_header(bytes, 300, UINT64_MAX / 2, 0, false);
    check_bad(bytes, 1000, DP_BADMSG, "cut off");
    dp_shard_header(bytes, 300, 10, 0, false);
    bytes[4] = 5;
    check_bad(bytes, 52, DP_VERSION, "version 5");
    bytes[4] = 0;
    check_bad(bytes, 52, DP_VERSION, "version 0");
    bytes[4] = 3; /* The tokens are there, their bits are not. */
    check_bad(bytes, 52, DP_BADMSG, "two bits for each");
    bytes[4] = 2; /* u32, but a vocabulary of u16 */
    bytes[6] = 4;
    check_bad(bytes, 72, DP_BADMSG, "damaged");
    dp_shard_header(bytes, 300, 10, 0, false);
    bytes[13] = 1; /* The same tokens would have another hash. */
    check_bad(bytes, 52, DP_BADMSG, "damaged");
}

static void files_of_nanogpt_are_what_they_are_called(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {1, 0, 255, 255, 7};
    dp_shard shard;
    dp_why why = {{0}};
    uint32_t ids[2];
    CHECK_OK(dp_shard_open_nanogpt(&shard, dp_view_of(bytes, 4), NULL));
    dp_shard_read(&shard, 0, 2, ids);
    CHECK(ids[0] == 1 && ids[1] == 65535 && dp_shard_needs(&shard) == 65536);
    CHECK_STATUS(dp_shard_open_nanogpt(&shard, dp_view_of(bytes, 5), &why), DP_BADMSG);
    CHECK(strstr(why.text, "5 bytes") != NULL);
}

static void a_token_outside_is_named_with_the_vocabulary(void **state)
{
    (void)state;
    static uint8_t bytes[ROOM];
    dp_shard shard;
    dp_why why = {{0}};
    const size_t size = make_llmc(bytes, 20240520, 1, 500, 2);
    CHECK_OK(dp_shard_open(&shard, dp_view_of(bytes, size), NULL));
    CHECK_STATUS(dp_shard_check(&shard, 300, &why), DP_BADARG);
    CHECK(strstr(why.text, "token 300 of the shard is 300") != NULL);
    CHECK(strstr(why.text, "vocabulary of 300") != NULL);
    /* A shard that declares 300 and has larger tokens is invalid for any model. */
    dp_shard_header(bytes, 300, 1, 0, false);
    bytes[32] = 0x2c;
    bytes[33] = 1;
    CHECK_OK(dp_shard_open(&shard, dp_view_of(bytes, 34), NULL));
    CHECK_STATUS(dp_shard_check(&shard, 1000, &why), DP_BADMSG);
    CHECK_STATUS(dp_shard_check(&shard, 299, &why), DP_BADARG);
    CHECK(strstr(why.text, "300 tokens, the model has 299") != NULL);
}

/* Eleven tokens in documents of four, one and six. */
static const uint32_t some_ids[] = {5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const uint8_t some_marks[] = {1, 0, 2, 2, 1, 1, 0, 2, 0, 2, 2};
enum { SOME = sizeof some_marks };

static void check_marks(uint32_t vocab)
{
    dp_buf bytes;
    dp_shard shard;
    dp_buf_init(&bytes, 1 << 10);
    marked_shard(some_ids, some_marks, SOME, vocab, &bytes);
    CHECK(bytes.size == DP_SHARD_HEADER_BYTES + SOME * (size_t)dp_shard_token_bytes(vocab) + 4);
    CHECK_OK(dp_shard_open(&shard, dp_buf_view(&bytes), NULL));
    CHECK_OK(dp_shard_check(&shard, vocab, NULL));
    CHECK(shard.n_tokens == SOME && shard.begins != NULL);
    for (size_t i = 0; i < SOME; i++) {
        uint32_t id;
        dp_shard_read(&shard, i, 1, &id);
        CHECK(id == some_ids[i] && dp_shard_marks(&shard, i) == some_marks[i]);
    }
    for (size_t first = 0; first <= SOME; first++) {
        for (size_t count = 0; count <= SOME - first; count++) {
            uint64_t losses = 0;
            for (size_t i = first; i < first + count; i++) {
                losses += (some_marks[i] & DP_MARK_LOSS) != 0;
            }
            CHECK(dp_shard_losses(&shard, first, count) == losses);
        }
    }
    dp_buf_close(&bytes);
}

static void documents_come_back_with_their_marks(void **state)
{
    (void)state;
    check_marks(300);
    check_marks(70000);
}

static void every_token_of_a_shard_without_documents_has_a_loss(void **state)
{
    (void)state;
    dp_buf bytes;
    dp_shard shard;
    dp_buf_init(&bytes, 1 << 10);
    CHECK_OK(dp_shard_write(some_ids, SOME, 300, 0, &bytes));
    CHECK_OK(dp_shard_open(&shard, dp_buf_view(&bytes), NULL));
    CHECK(shard.begins == NULL && dp_shard_marks(&shard, 0) == DP_MARK_LOSS);
    CHECK(dp_shard_losses(&shard, 2, 7) == 7);
    dp_buf_close(&bytes);
}

/* A liar could make two shards of one meaning, or teach the first token of a document by the text
 * before it. */
static void bits_that_lie_are_refused(void **state)
{
    (void)state;
    dp_buf bytes;
    dp_shard shard;
    dp_why why = {{0}};
    dp_buf_init(&bytes, 1 << 10);
    marked_shard(some_ids, some_marks, SOME, 300, &bytes);
    uint8_t *const begins = bytes.data + bytes.size - 4;
    uint8_t *const losses = begins + 2;
    check_bad(bytes.data, bytes.size - 1, DP_BADMSG, "cut off");
    begins[0] &= 0xfe;
    check_bad(bytes.data, bytes.size, DP_BADMSG, "begins no document");
    begins[0] |= 1;
    begins[1] |= 0x08;
    check_bad(bytes.data, bytes.size, DP_BADMSG, "behind its last one, number 10");
    begins[1] &= 0x07;
    losses[1] |= 0x80;
    check_bad(bytes.data, bytes.size, DP_BADMSG, "behind its last one");
    losses[1] &= 0x07;
    losses[0] |= 1U << 5;
    CHECK_OK(dp_shard_open(&shard, dp_buf_view(&bytes), NULL));
    CHECK_STATUS(dp_shard_check(&shard, 300, &why), DP_BADMSG);
    CHECK(strstr(why.text, "token 5 begins a document and has a loss") != NULL);
    dp_buf_close(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_come_back_in_the_width_of_their_vocabulary),
        cmocka_unit_test(files_of_llm_c_are_known_by_their_magic),
        cmocka_unit_test(headers_that_lie_are_refused),
        cmocka_unit_test(files_of_nanogpt_are_what_they_are_called),
        cmocka_unit_test(a_token_outside_is_named_with_the_vocabulary),
        cmocka_unit_test(documents_come_back_with_their_marks),
        cmocka_unit_test(every_token_of_a_shard_without_documents_has_a_loss),
        cmocka_unit_test(bits_that_lie_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
