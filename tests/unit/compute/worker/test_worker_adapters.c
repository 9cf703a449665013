/* Trainers of a run with adapters: OPEN carries the base, and all that they agree on is the
 * adapters'. */
#include "tests/unit/compute/worker_kit.h"

#include <stdlib.h>

#include "base/run/adapt.h"
#include "compute/model/base_weights.h"

static dp_buf base;
static dp_hash base_root;

static dp_status append(void *context, dp_view bytes)
{
    return dp_buf_append(context, bytes);
}

/* The tiny run, as adapters of first weights. */
static int make_adapted(void **state)
{
    dp_manifest m;
    dp_model model;
    make_slow_files(state);
    CHECK_OK(dp_manifest_decode(&m, dp_view_of(files.manifest, files.manifest_size)));
    const dp_model_config config = dp_manifest_model(&m);
    CHECK_OK(dp_model_open(&model, &config, NULL));
    float *const theta = calloc(model.n_elements, sizeof *theta);
    dp_model_init(&model, 11, theta);
    dp_buf_init(&base, 1 << 24);
    CHECK_OK(dp_base_weights_write(&model, DP_BASE_INT8, theta, append, &base));
    base_root = dp_object_hash(dp_buf_view(&base), NULL);
    free(theta);
    dp_model_close(&model);
    m.adapt_rank = 4;
    m.base_kind = DP_BASE_INT8;
    m.base = base_root;
    m.base_bytes = base.size;
    CHECK_OK(dp_manifest_encode(&m, files.manifest, &files.manifest_size));
    return 0;
}

static int drop_adapted(void **state)
{
    dp_buf_close(&base);
    return drop_files(state);
}

static void send_open(const peer *p, uint8_t member, dp_view weights)
{
    expect(p, DP_TRAINER_HELLO);
    const dp_trainer_msg msg = {.kind = DP_TRAINER_OPEN, .member = {member}};
    const dp_view views[4] = {dp_view_of(files.manifest, files.manifest_size),
                              dp_buf_view(&files.tokenizer), dp_buf_view(&files.data), weights};
    send_views(p, &msg, views, weights.size > 0 ? 4 : 3);
}

static peer open_adapted(uint8_t member, size_t threads)
{
    const peer p = start_with(&(dp_worker_options){.threads = threads});
    send_open(&p, member, dp_buf_view(&base));
    dp_manifest m;
    CHECK_OK(dp_manifest_decode(&m, dp_view_of(files.manifest, files.manifest_size)));
    const uint64_t elements = expect(&p, DP_TRAINER_OPENED).msg.elements;
    const uint64_t parameters = dp_manifest_parameters(&m);
    CHECK(elements >= parameters && elements < parameters + 16 * 64);
    return p;
}

static void members_agree_on_adapters_to_the_bit(void **state)
{
    (void)state;
    const peer peers[2] = {open_adapted(1, 1), open_adapted(2, 2)};
    const dp_hash first = init(&peers[0]);
    const dp_hash other = init(&peers[1]);
    CHECK(dp_hash_equal(&first, &other));
    for (uint64_t round = 1; round <= 3; round++) {
        int fds[2];
        answer published[2];
        dp_hash roots[2];
        for (size_t i = 0; i < 2; i++) {
            train_until(&peers[i], round, STEPS);
            published[i] = publish(&peers[i], round);
            fds[i] = published[i].fds[0];
            check_blob(&peers[1 - i], fds[i], true);
        }
        const dp_trainer_msg record = record_of(round, DP_SETTLE_INCLUDED, 2);
        for (size_t i = 0; i < 2; i++) {
            roots[i] = apply(&peers[i], &record, fds);
        }
        CHECK(dp_hash_equal(&roots[0], &roots[1]) && !dp_hash_equal(&roots[0], &first));
        release(&published[0]);
        release(&published[1]);
    }
    stop(&peers[0]);
    stop(&peers[1]);
}

static void a_run_of_adapters_opens_no_socket_for_scripts(void **state)
{
    (void)state;
    char path[] = "/tmp/dpnode-adapters-XXXXXX";
    CHECK(mkdtemp(path) != NULL);
    char socket_path[sizeof path + 8];
    snprintf(socket_path, sizeof socket_path, "%s/s", path);
    const peer p = start_with(&(dp_worker_options){.threads = 1, .script_path = socket_path});
    send_open(&p, 1, dp_buf_view(&base));
    expect(&p, DP_TRAINER_OPENED);
    init(&p);
    train_until(&p, 1, 1);
    CHECK(access(socket_path, F_OK) != 0);
    stop(&p);
    CHECK(rmdir(path) == 0);
}

static void a_missing_base_and_one_of_another_model_are_refused(void **state)
{
    (void)state;
    const peer p = start();
    send_open(&p, 1, dp_view_of(NULL, 0)); /* The shard is taken for it, and none is left. */
    CHECK(expect(&p, DP_TRAINER_FAILED).msg.text[0] != '\0');
    stop(&p);
    const peer q = start();
    uint8_t *const kept = malloc(base.size);
    memcpy(kept, base.data, base.size);
    kept[40] ^= 1; /* of the table's hash */
    send_open(&q, 1, dp_view_of(kept, base.size));
    CHECK(strstr(expect(&q, DP_TRAINER_FAILED).msg.text, "another model") != NULL);
    free(kept);
    stop(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_agree_on_adapters_to_the_bit),
        cmocka_unit_test(a_run_of_adapters_opens_no_socket_for_scripts),
        cmocka_unit_test(a_missing_base_and_one_of_another_model_are_refused),
    };
    return cmocka_run_group_tests(tests, make_adapted, drop_adapted);
}
