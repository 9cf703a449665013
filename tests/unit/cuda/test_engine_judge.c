/* Updates judged on a card: results near those of the CPU, and training continues with the same
 * bits. */
#include "compute/backend/plugin.h"
#include "tests/cuda/fake_cuda.h"
#include "tests/lib/check.h"
#include "tests/unit/compute/tiny_node.h"

enum { ONE = 65536, ROUNDS = 2, WINDOWS = 3 };

static const uint32_t halves[2] = {0x40000000U, 0x40000000U};

const dp_backend *dp_backend_query(uint32_t version);

static const dp_backend *cuda;

static int find_card(void **state)
{
    (void)state;
    cuda = dp_backend_query(DP_BACKEND_VERSION);
    fake_cuda_set(&(fake_cuda){.arch = 75});
    return cuda == NULL;
}

/* A batch of one row: how many make a micro-batch would follow the clock. */
static dp_manifest tiny(uint32_t mu_milli)
{
    dp_manifest m = node_settings(DP_CODEC_SPARSE, 950);
    m.layers = 1;
    m.width = 16;
    m.batch_rows = 1;
    m.outer_mu_milli = mu_milli;
    return m;
}

static node open_on(const dp_manifest *m, uint8_t member, const dp_backend *backend)
{
    return node_open_with(m, (dp_trainer_setup){.member = {member}, .seed = 3, .backend = backend});
}

/* Kept in the node's blob. */
static dp_view publish(node *x)
{
    dp_view blob;
    dp_view a;
    CHECK_OK(dp_trainer_publish(x->trainer, false, &blob, &a));
    dp_buf_clear(&x->blob);
    CHECK_OK(dp_buf_append(&x->blob, blob));
    return dp_buf_view(&x->blob);
}

static dp_judged judge(const node *x, dp_view blob)
{
    dp_judged found;
    const dp_trainer_update update = {.blob = blob,
                                      .scale = ONE,
                                      .tokens = WINDOWS * TINY_CONTEXT,
                                      .seed = 7,
                                      .member = {2},
                                      .own_count = 4};
    CHECK_OK(dp_trainer_judge(x->trainer, &update, &found));
    CHECK(found.held.tokens == WINDOWS * TINY_CONTEXT && found.claimed.tokens == found.held.tokens);
    return found;
}

/* The root of the state after some rounds, and x; the caller frees that. */
static float *rounds(const dp_manifest *m, bool judging, dp_view other, dp_hash *root)
{
    node x = open_on(m, 1, cuda);
    dp_view state;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        dp_trainer_aim(x.trainer, round, 100 * round);
        node_train(&x, 1);
        if (judging) {
            judge(&x, other);
        }
        node_train(&x, 1);
        const dp_view blobs[2] = {publish(&x), other};
        if (judging) {
            CHECK(judge(&x, other).compared);
        }
        const dp_trainer_record record = {.round = round,
                                          .tokens = 100 * round,
                                          .alpha = ONE,
                                          .clip = ONE,
                                          .lambda = ONE,
                                          .settle = DP_SETTLE_INCLUDED,
                                          .q = halves,
                                          .blobs = blobs,
                                          .n_items = 2};
        CHECK_OK(dp_trainer_apply(x.trainer, &record));
    }
    node_train(&x, 1);
    *root = node_root(&x, &state);
    float *const params = node_copy(dp_trainer_params(x.trainer), x.n);
    node_close(&x);
    return params;
}

static void a_card_trains_on_to_the_bit_as_if_nothing_was_judged(void **state)
{
    (void)state;
    for (uint32_t mu = 0; mu <= 500; mu += 500) {
        const dp_manifest m = tiny(mu);
        node author = open_on(&m, 2, NULL);
        dp_hash roots[2];
        node_train(&author, 2);
        const dp_view other = publish(&author);
        float *const without = rounds(&m, false, other, &roots[0]);
        float *const with = rounds(&m, true, other, &roots[1]);
        CHECK(dp_hash_equal(&roots[0], &roots[1]));
        CHECK(memcmp(without, with, 4 * author.n) == 0);
        test_free(without);
        test_free(with);
        node_close(&author);
    }
    CHECK(fake_cuda_used() == 0);
}

static bool near(int64_t a, int64_t b, int64_t least)
{
    const int64_t off = a > b ? a - b : b - a;
    return off <= least + (a < 0 ? -a : a) / 1000;
}

static void a_card_finds_what_the_cpu_finds(void **state)
{
    (void)state;
    const dp_manifest m = tiny(0);
    node author = open_on(&m, 2, NULL);
    node on_cpu = open_on(&m, 1, NULL);
    node on_card = open_on(&m, 1, cuda);
    node_train(&author, 4);
    node_train(&on_cpu, 4);
    node_train(&on_card, 4);
    const dp_view other = publish(&author);
    publish(&on_cpu);
    publish(&on_card);
    const dp_judged a = judge(&on_cpu, other);
    const dp_judged b = judge(&on_card, other);
    CHECK(a.compared && b.compared && near(a.align, b.align, 64) && a.align > 0);
    CHECK(near(a.held.micro, b.held.micro, 3) && near(a.claimed.micro, b.claimed.micro, 3));
    CHECK(near((int64_t)a.held.error_micro, (int64_t)b.held.error_micro, 3));
    assert_memory_equal(a.likeness, b.likeness, DP_LIKENESS_BYTES);
    node_close(&on_card);
    node_close(&on_cpu);
    node_close(&author);
    CHECK(fake_cuda_used() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_card_trains_on_to_the_bit_as_if_nothing_was_judged),
        cmocka_unit_test(a_card_finds_what_the_cpu_finds),
    };
    return cmocka_run_group_tests(tests, find_card, NULL);
}
