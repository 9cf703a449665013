#include "tests/lib/check.h"

#include "base/rng.h"
#include "compute/corpus/window_packer.h"
#include "compute/data/shard.h"
#include "compute/machine/files.h"
#include "tests/lib/tempdir.h"
#include "tests/unit/compute/tiny_run.h"

enum { WINDOW = 16, PAD = 3, LONG = 40 };

typedef struct desk {
    tempdir dir;
    dp_bpe *bpe;
    dp_corpus corpus;
    dp_window_packer packer;
} desk;

static void desk_open(desk *d, uint64_t shard_tokens)
{
    static char text[2000];
    tempdir_open(&d->dir);
    tiny_run_text(text, sizeof text);
    CHECK_OK(dp_bpe_train(&d->bpe, dp_view_of(text, sizeof text), 256, NULL));
    CHECK_OK(dp_corpus_open(&d->corpus, d->bpe, d->dir.path, shard_tokens));
    CHECK_OK(dp_window_packer_open(&d->packer, &d->corpus, WINDOW, PAD));
}

static void desk_close(desk *d)
{
    dp_window_packer_close(&d->packer);
    dp_corpus_close(&d->corpus);
    dp_bpe_close(d->bpe);
    tempdir_close(&d->dir);
}

/* Tokens id, id + 1 ..., of which the last `losses` have one. */
static void add(desk *d, uint32_t id, size_t count, size_t losses)
{
    uint32_t ids[LONG];
    uint8_t marks[LONG];
    for (size_t i = 0; i < count; i++) {
        ids[i] = (id + (uint32_t)i) % 256;
        marks[i] = i == 0 ? DP_MARK_BEGINS : i + losses >= count ? DP_MARK_LOSS : 0;
    }
    CHECK_OK(dp_window_packer_add(&d->packer, ids, marks, count, NULL));
}

static dp_buf finish(desk *d)
{
    char path[TEMPDIR_FILE_MAX];
    dp_hash root;
    dp_buf bytes;
    CHECK_OK(dp_window_packer_finish(&d->packer, NULL));
    CHECK_OK(dp_corpus_finish(&d->corpus, &root, NULL));
    dp_buf_init(&bytes, 1 << 20);
    CHECK_OK(dp_file_read(tempdir_file(&d->dir, "tokens-00000.bin", path), &bytes, NULL));
    return bytes;
}

/* The best place of 5 is beside 11, not beside 9. */
static void a_document_goes_where_it_fills_most(void **state)
{
    (void)state;
    desk d;
    dp_shard shard;
    desk_open(&d, 1000);
    add(&d, 10, 9, 2);
    add(&d, 30, 11, 2);
    add(&d, 50, 5, 1);
    add(&d, 70, 6, 3);
    dp_buf bytes = finish(&d);
    CHECK_OK(dp_shard_open(&shard, dp_buf_view(&bytes), NULL));
    CHECK_OK(dp_shard_check(&shard, 256, NULL));
    CHECK(shard.n_tokens == 2 * WINDOW + 1);
    static const uint32_t first[WINDOW] = {10, 11, 12, 13, 14, 15, 16, 17,
                                           18, 70, 71, 72, 73, 74, 75, PAD};
    static const uint32_t second[WINDOW] = {30, 31, 32, 33, 34, 35, 36, 37,
                                            38, 39, 40, 50, 51, 52, 53, 54};
    uint32_t ids[2 * WINDOW + 1];
    dp_shard_read(&shard, 0, 2 * WINDOW + 1, ids);
    CHECK(memcmp(ids, first, sizeof first) == 0 &&
          memcmp(ids + WINDOW, second, sizeof second) == 0);
    CHECK(d.packer.padding == 1 && ids[2 * WINDOW] == PAD);
    CHECK(dp_shard_marks(&shard, 15) == DP_MARK_BEGINS && dp_shard_marks(&shard, 9) == 1);
    CHECK(dp_shard_marks(&shard, 16) == 1 && dp_shard_marks(&shard, 2 * WINDOW) == 1);
    CHECK(dp_shard_losses(&shard, 0, shard.n_tokens) == 8);
    dp_buf_close(&bytes);
    desk_close(&d);
}

static void long_documents_are_cut_and_those_without_a_loss_left_out(void **state)
{
    (void)state;
    desk d;
    dp_shard shard;
    desk_open(&d, 1000);
    add(&d, 10, 30, 20); /* Six of its losses are before the cut. */
    add(&d, 90, 40, 4);  /* None is. */
    add(&d, 60, 5, 0);
    dp_buf bytes = finish(&d);
    CHECK_OK(dp_shard_open(&shard, dp_buf_view(&bytes), NULL));
    CHECK(shard.n_tokens == WINDOW + 1 && dp_shard_losses(&shard, 0, WINDOW + 1) == 6);
    CHECK(d.packer.cut == 1 && d.packer.left_out == 2 && d.packer.padding == 0);
    dp_buf_close(&bytes);
    desk_close(&d);
}

/* Each window is whole in its shard, so that samples counted from the manifest are the windows. */
static void documents_of_any_length_stay_whole_in_windows_and_shards(void **state)
{
    (void)state;
    desk d;
    dp_rng rng;
    uint64_t tokens = 0;
    uint64_t losses = 0;
    desk_open(&d, 10 * WINDOW + 5);
    dp_rng_init(&rng, 3);
    for (int i = 0; i < 2000; i++) {
        const size_t count = 2 + (size_t)dp_rng_below(&rng, WINDOW - 1);
        add(&d, (uint32_t)i % 200, count, 1);
        tokens += count;
        losses++;
    }
    dp_buf first = finish(&d);
    uint64_t found = 0;
    uint64_t all = 0;
    for (uint32_t s = 0; s < d.corpus.n_rows; s++) {
        char name[DP_PREPARED_NAME_MAX];
        char path[TEMPDIR_FILE_MAX];
        dp_buf bytes;
        dp_shard shard;
        dp_buf_init(&bytes, 1 << 20);
        dp_prepared_shard(s, name);
        CHECK_OK(dp_file_read(tempdir_file(&d.dir, name, path), &bytes, NULL));
        CHECK_OK(dp_shard_open(&shard, dp_buf_view(&bytes), NULL));
        CHECK_OK(dp_shard_check(&shard, 256, NULL));
        CHECK((shard.n_tokens - 1) % WINDOW == 0);
        for (uint64_t i = 0; i < shard.n_tokens; i += WINDOW) {
            CHECK((dp_shard_marks(&shard, i) & DP_MARK_BEGINS) != 0);
        }
        found += dp_shard_losses(&shard, 0, shard.n_tokens);
        all += shard.n_tokens - 1;
        dp_buf_close(&bytes);
    }
    CHECK(found == losses && all == tokens + d.packer.padding);
    CHECK(all <= dp_window_packer_tokens_max(tokens, WINDOW));
    CHECK(d.packer.padding * 20 < all); /* Best fit wastes little. */
    dp_buf_close(&first);
    desk_close(&d);
}

/* Halves and a bit: the worst that lengths can do. */
static void the_bound_of_tokens_holds_for_the_worst_lengths(void **state)
{
    (void)state;
    desk d;
    desk_open(&d, 100000);
    for (uint32_t i = 0; i < 500; i++) {
        add(&d, i % 200, WINDOW / 2 + 1, 1);
    }
    dp_buf bytes = finish(&d);
    CHECK(d.corpus.tokens <= dp_window_packer_tokens_max((uint64_t)500 * (WINDOW / 2 + 1), WINDOW));
    dp_buf_close(&bytes);
    desk_close(&d);
}

static void a_folder_is_packed_again_for_another_length(void **state)
{
    (void)state;
    desk d;
    desk again;
    desk_open(&d, 1000);
    add(&d, 10, 9, 2);
    add(&d, 30, 16, 2);
    add(&d, 50, 5, 1);
    dp_buf bytes = finish(&d);
    dp_buf_close(&bytes);
    tempdir_open(&again.dir);
    CHECK_OK(dp_corpus_open(&again.corpus, d.bpe, again.dir.path, 1000));
    CHECK_OK(dp_window_packer_open(&again.packer, &again.corpus, 32, PAD));
    CHECK_OK(dp_window_packer_add_folder(&again.packer, d.dir.path, 1, NULL));
    CHECK(again.packer.cut == 0 && again.packer.left_out == 2); /* padding */
    dp_hash root;
    CHECK_OK(dp_window_packer_finish(&again.packer, NULL));
    CHECK_OK(dp_corpus_finish(&again.corpus, &root, NULL));
    CHECK(again.corpus.tokens == 33 && again.corpus.losses_all == 5);
    dp_window_packer_close(&again.packer);
    dp_corpus_close(&again.corpus);
    tempdir_close(&again.dir);
    desk_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_document_goes_where_it_fills_most),
        cmocka_unit_test(long_documents_are_cut_and_those_without_a_loss_left_out),
        cmocka_unit_test(documents_of_any_length_stay_whole_in_windows_and_shards),
        cmocka_unit_test(the_bound_of_tokens_holds_for_the_worst_lengths),
        cmocka_unit_test(a_folder_is_packed_again_for_another_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
