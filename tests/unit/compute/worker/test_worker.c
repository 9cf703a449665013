/* THREADS_TEST. The worker over a socketpair, as a daemon sees it: a child process for each
 * trainer. */
#include "tests/unit/compute/worker_kit.h"

#include <sys/resource.h>

#include "compute/backend/backend_cpu.h"
#include "compute/codec/codec.h"
#include "compute/model/state.h"
#include "compute/worker/worker_inside.h"

static void two_workers_hold_the_same_state_after_every_round(void **state)
{
    (void)state;
    const peer a = ready_peer(1);
    const peer b = ready_peer(2);
    for (uint64_t round = 1; round <= 2; round++) {
        train_until(&a, round, STEPS);
        train_until(&b, round, STEPS);
        const answer from_a = publish(&a, round);
        const answer from_b = publish(&b, round);
        CHECK(from_a.msg.steps >= STEPS);
        check_blob(&a, from_b.fds[0], true);
        check_blob(&b, from_a.fds[0], true);
        const int blobs[2] = {from_a.fds[0], from_b.fds[0]};
        /* In the second round b is late: its work is carried, and theta is equal nevertheless. */
        const bool both = round == 1;
        const dp_trainer_msg to_a = record_of(round, DP_SETTLE_INCLUDED, both ? 2 : 1);
        const dp_trainer_msg to_b =
            record_of(round, both ? DP_SETTLE_INCLUDED : DP_SETTLE_LEFT_OUT, both ? 2 : 1);
        const dp_hash root_a = apply(&a, &to_a, blobs);
        const dp_hash root_b = apply(&b, &to_b, blobs);
        CHECK(dp_hash_equal(&root_a, &root_b));
        release(&from_a);
        release(&from_b);
    }
    stop(&a);
    stop(&b);
}

static void a_trainer_says_how_far_it_came_in_the_lease_that_it_was_told(void **state)
{
    (void)state;
    const peer p = ready_peer(7);
    const dp_trainer_msg train = {.kind = DP_TRAINER_TRAIN,
                                  .round = 1,
                                  .reach = {.leased = 11, .own = 5},
                                  .n_ranges = 2,
                                  .ranges = {{.first = 3, .count = 6}, {.first = 40, .count = 2}}};
    send_views(&p, &train, NULL, 0);
    uint32_t steps = 0;
    while (steps < 3) {
        steps = expect(&p, DP_TRAINER_STEP).msg.steps;
    }
    answer a = publish(&p, 1);
    CHECK(a.msg.reach.leased == 11 + 8); /* All of it, and what came after on the own line. */
    CHECK(a.msg.reach.own >= 5 + 4 && (a.msg.reach.own - 5) % 4 == 0);
    CHECK((a.msg.reach.leased - 11 + a.msg.reach.own - 5) * TINY_CONTEXT >= a.msg.tokens);
    release(&a);
    stop(&p);
}

static void check_at(const peer *p, const dp_codec *codec, size_t n, uint32_t keep, bool allowed)
{
    float *const a = test_calloc(n, sizeof *a);
    a[n / 2] = 1;
    dp_buf blob;
    dp_buf_init(&blob, dp_codec_bytes_max(codec, n));
    CHECK_OK(dp_codec_encode(codec, a, n, &blob));
    const dp_view view = dp_buf_view(&blob);
    const dp_trainer_msg msg = {.kind = DP_TRAINER_CHECK, .id = 3, .keep = keep};
    send_views(p, &msg, &view, 1);
    const answer reply = expect(p, DP_TRAINER_CHECKED);
    CHECK(reply.msg.ok == allowed && reply.msg.foreign == !allowed);
    dp_buf_close(&blob);
    test_free(a);
}

static void check_codec(const peer *p, const dp_codec *codec, size_t n, bool allowed)
{
    check_at(p, codec, n, 0, allowed);
}

static void blobs_of_other_codecs_than_the_runs_are_refused_by_name(void **state)
{
    (void)state;
    const peer p = start();
    const size_t n = open_run(&p, 6);
    size_t count = 0;
    const dp_codec_row *const rows = dp_codec_rows(&count);
    for (size_t i = 0; i < count; i++) {
        const dp_codec codec = dp_codec_default(rows[i].kind);
        check_codec(&p, &codec, n, codec.kind == DP_CODEC_SPARSE || codec.kind == DP_CODEC_INT8);
    }
    check_codec(&p, &(dp_codec){.kind = DP_CODEC_SPARSE, .keep = 32, .bits = 2}, n,
                true); /* After a loss. */
    check_codec(&p, &(dp_codec){.kind = DP_CODEC_SPARSE, .keep = 16, .bits = 2}, n, false);
    check_codec(&p, &(dp_codec){.kind = DP_CODEC_SPARSE, .keep = 64, .bits = 1}, n, false);
    check_codec(&p, &(dp_codec){.kind = DP_CODEC_INT8, .block = 512}, n, false);
    const dp_codec sparse = dp_codec_default(DP_CODEC_SPARSE);
    check_at(&p, &sparse, n, sparse.keep, true);
    check_at(&p, &sparse, n, 2 * sparse.keep, false); /* No density of this run. */
    stop(&p);
}

static void loss_falls_without_any_peer(void **state)
{
    (void)state;
    const peer p = ready_peer(3);
    train_until(&p, 1, 1);
    const answer first = publish(&p, 1);
    release(&first);
    train_until(&p, 1, 30);
    const dp_trainer_msg left_out = record_of(1, DP_SETTLE_LEFT_OUT, 0);
    apply(&p, &left_out, NULL);
    train_until(&p, 2, 60);
    const answer last = publish(&p, 2);
    CHECK(first.msg.loss > 4.5); /* near log 300 = 5.7 */
    CHECK(last.msg.loss < 0.8 * first.msg.loss);
    CHECK(last.msg.carried == first.msg.tokens);
    release(&last);
    stop(&p);
}

static void a_restored_publication_gives_the_same_feedback(void **state)
{
    (void)state;
    const peer first = ready_peer(4);
    train_until(&first, 1, STEPS);
    const answer published = publish(&first, 1);
    const dp_view a = map(published.fds[1]);
    const dp_view blob = map(published.fds[0]);
    const dp_trainer_msg record = record_of(1, DP_SETTLE_INCLUDED, 1);
    CHECK_OK(dp_trainer_send(first.socket, &record, published.fds, 1));
    const answer applied = expect(&first, DP_TRAINER_APPLIED);

    /* Another process continues from the certified state. It does not train, so it publishes only
     * e. */
    const peer second = start();
    const size_t n = open_run(&second, 4);
    const dp_trainer_msg load = {.kind = DP_TRAINER_LOAD, .round = 1};
    CHECK_OK(dp_trainer_send(second.socket, &load, applied.fds, 1));
    const answer loaded = expect(&second, DP_TRAINER_READY_AT);
    CHECK(dp_hash_equal(&loaded.msg.root, &applied.msg.root));
    const dp_trainer_msg restore = {.kind = DP_TRAINER_RESTORE,
                                    .round = 1,
                                    .restore = DP_RESTORE_PENDING,
                                    .settle = DP_SETTLE_INCLUDED,
                                    .clip = ONE,
                                    .lambda = ONE / 2};
    const int fds[2] = {published.fds[1], published.fds[0]};
    CHECK_OK(dp_trainer_send(second.socket, &restore, fds, 2));
    const answer again = publish(&second, 2);
    const dp_view e = map(again.fds[1]);

    float *const values = test_calloc(3 * n, sizeof *values);
    CHECK_OK(dp_floats_read(a, values, n));
    CHECK_OK(dp_floats_read(e, values + n, n));
    CHECK_OK(dp_codec_decode(blob, values + 2 * n, n));
    for (size_t i = 0; i < n; i++) {
        const float kept =
            0.95F * (values[i] - values[2 * n + i]) / 2; /* exact but for subnormals */
        CHECK(memcmp(&kept, &values[n + i], sizeof kept) == 0 || (kept == 0 && values[n + i] == 0));
    }
    test_free(values);
    dp_memfd_unmap(a);
    dp_memfd_unmap(blob);
    dp_memfd_unmap(e);
    release(&published);
    release(&applied);
    release(&again);
    stop(&first);
    stop(&second);
}

static void an_exchange_moves_as_much_out_of_one_as_into_the_other(void **state)
{
    (void)state;
    const peer a = ready_peer(5);
    const peer b = ready_peer(6);
    train_until(&a, 1, STEPS);
    train_until(&b, 1, STEPS);
    const dp_trainer_msg freeze = {.kind = DP_TRAINER_FREEZE, .exchange = {9}};
    send_views(&a, &freeze, NULL, 0);
    send_views(&b, &freeze, NULL, 0);
    const answer from_a = expect(&a, DP_TRAINER_FROZEN);
    const answer from_b = expect(&b, DP_TRAINER_FROZEN);
    CHECK(from_a.msg.exchange[0] == 9 && from_a.n_fds == 2);
    /* Its energy equals the one that the other side computes, since both damp the exchange by
     * it. */
    const dp_trainer_msg check = {
        .kind = DP_TRAINER_CHECK, .id = 7, .range = {.end = DP_PART_WHOLE}};
    CHECK_OK(dp_trainer_send(b.socket, &check, &from_a.fds[0], 1));
    const answer checked = expect(&b, DP_TRAINER_CHECKED);
    CHECK(checked.msg.ok && checked.msg.energy > 0 && checked.msg.energy == from_a.msg.energy);
    const int fds_a[2] = {from_a.fds[0], from_b.fds[0]};
    const int fds_b[2] = {from_b.fds[0], from_a.fds[0]};
    const dp_trainer_msg mix_a = {.kind = DP_TRAINER_MIX,
                                  .exchange = {9},
                                  .weight_own = 3000,
                                  .weight_other = 1000,
                                  .lambda = 65536};
    const dp_trainer_msg mix_b = {.kind = DP_TRAINER_MIX,
                                  .exchange = {9},
                                  .weight_own = 1000,
                                  .weight_other = 3000,
                                  .lambda = 65536};
    CHECK_OK(dp_trainer_send(a.socket, &mix_a, fds_a, 2));
    CHECK_OK(dp_trainer_send(b.socket, &mix_b, fds_b, 2));
    const double moved_a = expect(&a, DP_TRAINER_MIXED).msg.moved;
    const double moved_b = expect(&b, DP_TRAINER_MIXED).msg.moved;
    CHECK(moved_a != 0);
    CHECK(moved_a + moved_b < 1e-5 && moved_a + moved_b > -1e-5);
    release(&from_a);
    release(&from_b);
    stop(&a);
    stop(&b);
}

static void a_paused_worker_keeps_its_work(void **state)
{
    (void)state;
    const peer p = ready_peer(10);
    train_until(&p, 1, STEPS);
    const dp_trainer_msg pause = {.kind = DP_TRAINER_TRAIN, .round = 0};
    send_views(&p, &pause, NULL, 0);
    const dp_trainer_msg freeze = {.kind = DP_TRAINER_FREEZE};
    send_views(&p, &freeze, NULL, 0);
    const answer first = expect(&p, DP_TRAINER_FROZEN);
    const dp_view f = map(first.fds[1]);
    const answer published = publish(&p, 1);
    const dp_view a = map(published.fds[1]);
    CHECK(published.msg.steps >= STEPS && published.msg.steps == first.msg.steps);
    CHECK(dp_view_equal(a, f)); /* nothing was trained in between, and e is empty */
    dp_memfd_unmap(a);
    dp_memfd_unmap(f);
    release(&first);
    release(&published);
    stop(&p);
}

static void commands_that_cannot_be_done_fail_and_leave_the_worker_in_step(void **state)
{
    (void)state;
    const peer p = start();
    expect(&p, DP_TRAINER_HELLO);
    const dp_trainer_msg early = {.kind = DP_TRAINER_TRAIN};
    send_views(&p, &early, NULL, 0);
    expect(&p, DP_TRAINER_FAILED);
    CHECK(send(p.socket, "\x81\xa1x", 3, 0) == 3);
    expect(&p, DP_TRAINER_FAILED);
    const dp_trainer_msg bare = {.kind = DP_TRAINER_OPEN};
    send_views(&p, &bare, NULL, 0);
    expect(&p, DP_TRAINER_FAILED);
    const dp_view junk[3] = {dp_view_text("not"), dp_view_text("what"),
                             dp_view_text("it asks for")};
    send_views(&p, &bare, junk, 3);
    expect(&p, DP_TRAINER_FAILED);
    const dp_trainer_msg check = {.kind = DP_TRAINER_CHECK, .id = 1};
    send_views(&p, &check, junk, 1);
    CHECK(!expect(&p, DP_TRAINER_CHECKED).msg.ok);

    const dp_trainer_msg open = {.kind = DP_TRAINER_OPEN, .member = {8}};
    const dp_view views[3] = {dp_view_of(files.manifest, files.manifest_size),
                              dp_buf_view(&files.tokenizer), dp_buf_view(&files.data)};
    send_views(&p, &open, views, 3);
    expect(&p, DP_TRAINER_OPENED);
    const dp_hash root = init(&p);
    send_views(&p, &check, junk, 1);
    CHECK(!expect(&p, DP_TRAINER_CHECKED).msg.ok);
    const dp_trainer_msg bad_apply = record_of(1, DP_SETTLE_NONE, 1);
    send_views(&p, &bad_apply, junk, 1);
    expect(&p, DP_TRAINER_FAILED);
    const dp_trainer_msg nothing_pending = record_of(1, DP_SETTLE_INCLUDED, 0);
    send_views(&p, &nothing_pending, NULL, 0);
    expect(&p, DP_TRAINER_FAILED);
    const dp_hash after = init(&p);
    CHECK(dp_hash_equal(&root, &after));
    stop(&p);
}

static void a_closed_socket_ends_the_worker(void **state)
{
    (void)state;
    const peer p = ready_peer(9);
    train_until(&p, 1, 1);
    close(p.socket);
    expect_clean_end(&p);
}

/* The run's shard as two. */
static void data_may_be_several_shards(void **state)
{
    (void)state;
    dp_shard whole;
    dp_buf halves[2];
    dp_manifest m;
    uint8_t manifest[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    CHECK_OK(dp_shard_open(&whole, dp_buf_view(&files.data), NULL));
    CHECK_OK(dp_manifest_decode(&m, dp_view_of(files.manifest, files.manifest_size)));
    m.n_shards = 2;
    for (size_t i = 0; i < 2; i++) {
        const size_t count = (size_t)(whole.n_tokens / 2);
        uint32_t *const ids = test_calloc(count, sizeof *ids);
        dp_shard_read(&whole, i * count, count, ids);
        dp_buf_init(&halves[i], 1 << 20);
        CHECK_OK(dp_shard_write(ids, count, whole.vocab, 1, &halves[i]));
        m.shards[i] = (dp_manifest_shard){.bytes = halves[i].size, .tokens = count};
        test_free(ids);
    }
    CHECK_OK(dp_manifest_encode(&m, manifest, &size));
    const peer p = start();
    expect(&p, DP_TRAINER_HELLO);
    const dp_trainer_msg open = {.kind = DP_TRAINER_OPEN, .member = {8}};
    const dp_view views[4] = {dp_view_of(manifest, size), dp_buf_view(&files.tokenizer),
                              dp_buf_view(&halves[0]), dp_buf_view(&halves[1])};
    send_views(&p, &open, views, 3);
    CHECK(strstr(expect(&p, DP_TRAINER_FAILED).msg.text, "2 shards, 1 of them") != NULL);
    send_views(&p, &open, views, 4);
    expect(&p, DP_TRAINER_OPENED);
    init(&p);
    CHECK(train_until(&p, 1, 3) > 0);
    stop(&p);
    dp_buf_close(&halves[0]);
    dp_buf_close(&halves[1]);
}

static void dropped_steps_are_told_though_none_was_done(void **state)
{
    (void)state;
    const peer p = start();
    const size_t n = open_run(&p, 9);
    float *const huge = test_malloc(n * sizeof *huge);
    dp_buf bytes;
    dp_buf_init(&bytes, dp_state_bytes(n, false));
    for (size_t i = 0; i < n; i++) {
        huge[i] = 1e38F;
    }
    CHECK_OK(dp_state_write(3, huge, NULL, n, &bytes));
    const dp_trainer_msg load = {.kind = DP_TRAINER_LOAD, .round = 3};
    const dp_view view = dp_buf_view(&bytes);
    send_views(&p, &load, &view, 1);
    expect(&p, DP_TRAINER_READY_AT);
    const dp_trainer_msg train = {.kind = DP_TRAINER_TRAIN, .round = 4};
    send_views(&p, &train, NULL, 0);
    uint32_t last = 0;
    for (int i = 0; i < 2; i++) {
        const answer a = expect(&p, DP_TRAINER_STEP);
        CHECK(a.msg.steps == 0 && a.msg.tokens == 0 && a.msg.loss == 0);
        CHECK(a.msg.skipped > last && a.msg.spikes == 0);
        last = a.msg.skipped;
    }
    stop(&p);
    dp_buf_close(&bytes);
    test_free(huge);
}

/* A worker that waits for the publication of its only gradient reports each gradient that it has;
 * otherwise the daemon would not ask for it. */
static void after_a_gradient_that_was_let_go_the_next_is_told(void **state)
{
    (void)state;
    const tiny_run before = files;
    const struct timeval most = {.tv_sec = 20};
    exchange_gradients(4);
    const peer other = ready_peer(11);
    train_until(&other, 1, 1);
    const dp_trainer_msg msg = {.kind = DP_TRAINER_PUBLISH, .round = 1};
    send_views(&other, &msg, NULL, 0);
    const answer theirs = expect(&other, DP_TRAINER_PUBLISHED);
    const peer p = ready_peer(12);
    CHECK(setsockopt(p.socket, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most) == 0);
    train_until(&p, 1, 1);
    dp_trainer_msg record = record_of(1, DP_SETTLE_NONE, 1);
    record.lambda = 0; /* Too old to count, as that of who has joined just now. */
    apply(&p, &record, theirs.fds);
    train_until(&p, 2, 1);
    release(&theirs);
    stop(&p);
    stop(&other);
    memcpy(files.manifest, before.manifest, sizeof files.manifest);
    files.manifest_size = before.manifest_size;
}

/* In the worker's process: so many readings of a heat far above the limit, and then none of it. */
enum { HOT = 20 };
static uint32_t readings;

static dp_status hot_at_first(uint32_t index, dp_device *out, dp_why *why)
{
    DP_TRY(dp_backend_cpu()->device(index, out, why));
    out->celsius = readings++ < HOT ? 95 : 40;
    return DP_OK;
}

static void a_hot_worker_rests_obeys_and_continues_when_it_has_cooled(void **state)
{
    (void)state;
    dp_backend backend = *dp_backend_cpu();
    backend.device = hot_at_first;
    const peer p = start_with(&(dp_worker_options){
        .threads = 1, .backend = &backend, .celsius_max = 80, .look_us = 20 * 1000});
    CHECK(open_run(&p, 13) > 0);
    init(&p);
    const dp_trainer_msg train = {.kind = DP_TRAINER_TRAIN, .round = 1};
    send_views(&p, &train, NULL, 0);
    const dp_trainer_msg eval = {.kind = DP_TRAINER_EVAL, .tokens = 200};
    send_views(&p, &eval, NULL, 0);
    static answer a;
    do {
        CHECK_OK(dp_trainer_receive(p.socket, &a.msg, a.fds, &a.n_fds));
        CHECK(a.msg.kind == DP_TRAINER_EVALUATED || a.msg.kind == DP_TRAINER_STEP ||
              a.msg.kind == DP_TRAINER_RESTING);
        CHECK(a.msg.kind != DP_TRAINER_STEP || a.msg.steps <= 2); /* It rests. */
        CHECK(a.msg.kind != DP_TRAINER_RESTING || (a.msg.ok && a.msg.celsius == 95));
    } while (a.msg.kind != DP_TRAINER_EVALUATED);
    CHECK(!expect(&p, DP_TRAINER_RESTING).msg.ok); /* It has cooled. */
    const answer step = expect(&p, DP_TRAINER_STEP);
    CHECK(step.msg.trained_us > (HOT - 2) * 20 * 1000U); /* All the readings lie before it. */
    CHECK(step.msg.computed_us < step.msg.trained_us / 2);
    stop(&p);
}

/* The daemon takes the node out of the round meanwhile, and must hear when it may go on. */
static void a_hot_worker_that_is_paused_tells_when_it_has_cooled(void **state)
{
    (void)state;
    dp_backend backend = *dp_backend_cpu();
    backend.device = hot_at_first;
    const peer p = start_with(&(dp_worker_options){
        .threads = 1, .backend = &backend, .celsius_max = 80, .look_us = 20 * 1000});
    CHECK(open_run(&p, 13) > 0);
    init(&p);
    dp_trainer_msg train = {.kind = DP_TRAINER_TRAIN, .round = 1};
    send_views(&p, &train, NULL, 0);
    CHECK(expect(&p, DP_TRAINER_RESTING).msg.ok);
    train.round = 0;
    send_views(&p, &train, NULL, 0);
    CHECK(!expect(&p, DP_TRAINER_RESTING).msg.ok);
    const dp_trainer_msg eval = {.kind = DP_TRAINER_EVAL, .tokens = 200};
    send_views(&p, &eval, NULL, 0);
    CHECK(expect(&p, DP_TRAINER_EVALUATED).msg.tokens > 0); /* No step comes: it is paused. */
    const dp_trainer_msg limits = {.kind = DP_TRAINER_LIMITS, .celsius = 30};
    send_views(&p, &limits, NULL, 0);
    train.round = 1;
    send_views(&p, &train, NULL, 0);
    CHECK(expect(&p, DP_TRAINER_RESTING).msg.ok);
    const dp_trainer_msg none = {.kind = DP_TRAINER_LIMITS};
    send_views(&p, &none, NULL, 0);
    CHECK(!expect(&p, DP_TRAINER_RESTING).msg.ok);
    CHECK(expect(&p, DP_TRAINER_STEP).msg.steps > 0);
    stop(&p);
}

static dp_status create_nothing(dp_engine **out, const dp_engine_setup *setup, dp_why *why)
{
    (void)out;
    (void)setup;
    return dp_why_set(why, DP_TOOBIG, "the card is too small");
}

static int told[2]; /* a pipe out of the worker's process */

static void tell(const char *sentence)
{
    CHECK(write(told[1], sentence, strlen(sentence)) > 0);
}

static void a_model_that_a_backend_cannot_hold_is_opened_on_the_cpu(void **state)
{
    (void)state;
    dp_backend small = *dp_backend_cpu();
    small.create = create_nothing;
    assert_int_equal(pipe(told), 0);
    const peer p = start_with(&(dp_worker_options){.threads = 1, .backend = &small, .tell = tell});
    CHECK(open_run(&p, 1) > 0);
    char line[DP_WHY_MAX] = "";
    CHECK(read(told[0], line, sizeof line - 1) > 0);
    assert_string_equal(line, "the card is too small; the CPU computes instead");
    init(&p);
    CHECK(train_until(&p, 1, 1) > 0);
    close(p.socket);
    expect_clean_end(&p);
    close(told[0]);
    close(told[1]);
}

static dp_status hot_for_ever(uint32_t index, dp_device *out, dp_why *why)
{
    (void)index;
    (void)why;
    *out = (dp_device){.celsius = 199};
    return DP_OK;
}

static void where_the_cpu_took_over_the_heat_of_the_card_is_no_matter(void **state)
{
    (void)state;
    const struct timeval most = {.tv_sec = 20};
    dp_backend small = *dp_backend_cpu();
    small.create = create_nothing;
    small.device = hot_for_ever;
    const peer p =
        start_with(&(dp_worker_options){.threads = 1, .backend = &small, .celsius_max = 150});
    CHECK(setsockopt(p.socket, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most) == 0);
    CHECK(open_run(&p, 14) > 0);
    init(&p);
    CHECK(train_until(&p, 1, 1) > 0);
    stop(&p);
}

static dp_status step_nowhere(dp_engine *engine, const dp_gpt_batch *batch, float scale,
                              double *loss_sum)
{
    (void)engine;
    (void)batch;
    (void)scale;
    (void)loss_sum;
    return DP_IO;
}

static const char *card_is_gone(const dp_engine *engine)
{
    (void)engine;
    return "the card has fallen off the bus";
}

static void a_worker_whose_card_vanishes_says_so_and_ends(void **state)
{
    (void)state;
    dp_backend gone = *dp_backend_cpu();
    gone.step = step_nowhere;
    gone.problem = card_is_gone;
    const peer p = start_with(&(dp_worker_options){.threads = 1, .backend = &gone});
    CHECK(open_run(&p, 1) > 0);
    init(&p);
    send_views(&p, &(dp_trainer_msg){.kind = DP_TRAINER_TRAIN, .round = 1}, NULL, 0);
    const answer a = expect(&p, DP_TRAINER_FAILED);
    CHECK(strstr(a.msg.text, "train: the card has fallen off the bus") != NULL);
    expect_end(&p, 1);
    close(p.socket);
}

/* No update can be sent; then one can, but its accompanying message cannot be received. */
/* A backend whose blobs take as long as BESIDE steps do, or longer than there is time for. */
enum { BESIDE = 2 };
static uint32_t stepped;
static bool never;

static dp_status step_counted(dp_engine *e, const dp_gpt_batch *batch, float scale,
                              double *loss_sum)
{
    stepped++;
    return dp_backend_cpu()->step(e, batch, scale, loss_sum);
}

static dp_status start_counted(dp_engine *e, dp_vector from, const dp_codec *codec)
{
    stepped = 0;
    return dp_backend_cpu()->encode_start(e, from, codec);
}

static dp_status ready_later(dp_engine *e, bool *ready)
{
    DP_TRY(dp_backend_cpu()->encode_ready(e, ready));
    *ready = !never && stepped >= BESIDE;
    return DP_OK;
}

static dp_status take_later(dp_engine *e, dp_view *blob, const float **values)
{
    DP_TRY(dp_backend_cpu()->encode_take(e, blob, values));
    return never || stepped >= BESIDE ? DP_OK : DP_DIVERGED;
}

static peer start_slow(void)
{
    static dp_backend slow;
    slow = *dp_backend_cpu();
    slow.name = "slow";
    slow.step = step_counted;
    slow.encode_start = start_counted;
    slow.encode_ready = ready_later;
    slow.encode_take = take_later;
    const peer p = start_with(&(dp_worker_options){.threads = 1, .backend = &slow});
    CHECK(open_run(&p, 1) > 0);
    init(&p);
    return p;
}

static void steps_go_on_while_a_publication_is_made(void **state)
{
    (void)state;
    never = false;
    const peer p = start_slow();
    train_until(&p, 1, STEPS);
    answer a = publish(&p, 1);
    CHECK(a.msg.steps >= STEPS);
    release(&a);
    stop(&p);
}

static void commands_on_work_buffers_wait_for_a_publication_under_way(void **state)
{
    (void)state;
    never = true;
    const peer p = start_slow();
    train_until(&p, 1, STEPS);
    send_views(&p, &(dp_trainer_msg){.kind = DP_TRAINER_PUBLISH, .round = 1}, NULL, 0);
    send_views(&p, &(dp_trainer_msg){.kind = DP_TRAINER_TRAIN, .round = 2}, NULL, 0);
    send_views(&p, &(dp_trainer_msg){.kind = DP_TRAINER_EVAL, .tokens = 64}, NULL, 0);
    answer a = expect(&p, DP_TRAINER_PUBLISHED);
    CHECK(a.msg.round == 1 && a.n_fds == 2);
    release(&a);
    expect(&p, DP_TRAINER_EVALUATED);
    stop(&p);
}

static void a_worker_without_descriptors_says_what_it_lacks_and_ends(void **state)
{
    (void)state;
    const uint8_t bytes[4] = {1, 2, 3, 4};
    const dp_view blob = dp_view_of(bytes, sizeof bytes);
    const struct rlimit none = {0, 0};
    peer p = ready_peer(1);
    train_until(&p, 1, 1);
    assert_int_equal(prlimit(p.pid, RLIMIT_NOFILE, &none, NULL), 0);
    send_views(&p, &(dp_trainer_msg){.kind = DP_TRAINER_PUBLISH, .round = 1}, NULL, 0);
    answer a = expect(&p, DP_TRAINER_FAILED);
    CHECK(a.msg.lacks && a.msg.of == DP_TRAINER_PUBLISH);
    assert_string_equal(a.msg.text, "publish: there is no memory left (DP_NOMEM)");
    expect_end(&p, 1);
    close(p.socket);

    p = ready_peer(2);
    assert_int_equal(prlimit(p.pid, RLIMIT_NOFILE, &none, NULL), 0);
    send_views(&p, &(dp_trainer_msg){.kind = DP_TRAINER_CHECK, .id = 3}, &blob, 1);
    a = expect(&p, DP_TRAINER_FAILED); /* And not: the blob is bad. */
    CHECK(a.msg.lacks && a.msg.of == 0);
    expect_end(&p, 0); /* As if the daemon had gone. */
    close(p.socket);
}

static void check_lack(dp_trainer_kind of, dp_status status, bool lacks)
{
    int pair[2];
    static dp_trainer_msg msg;
    int fds[DP_TRAINER_FDS_MAX];
    uint32_t n_fds = 0;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    const dp_worker w = {.socket = pair[0]};
    CHECK(dp_worker_answer_failed(&w, of, status, NULL) == (lacks ? status : DP_OK));
    CHECK_OK(dp_trainer_receive(pair[1], &msg, fds, &n_fds));
    CHECK(msg.kind == DP_TRAINER_FAILED && msg.of == of && msg.lacks == lacks);
    close(pair[0]);
    close(pair[1]);
}

static void a_model_that_does_not_fit_is_a_lack_of_memory(void **state)
{
    (void)state;
    check_lack(DP_TRAINER_OPEN, DP_TOOBIG, true);
    check_lack(DP_TRAINER_APPLY, DP_TOOBIG, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_workers_hold_the_same_state_after_every_round),
        cmocka_unit_test(a_trainer_says_how_far_it_came_in_the_lease_that_it_was_told),
        cmocka_unit_test(blobs_of_other_codecs_than_the_runs_are_refused_by_name),
        cmocka_unit_test(loss_falls_without_any_peer),
        cmocka_unit_test(a_restored_publication_gives_the_same_feedback),
        cmocka_unit_test(an_exchange_moves_as_much_out_of_one_as_into_the_other),
        cmocka_unit_test(a_paused_worker_keeps_its_work),
        cmocka_unit_test(commands_that_cannot_be_done_fail_and_leave_the_worker_in_step),
        cmocka_unit_test(data_may_be_several_shards),
        cmocka_unit_test(dropped_steps_are_told_though_none_was_done),
        cmocka_unit_test(after_a_gradient_that_was_let_go_the_next_is_told),
        cmocka_unit_test(a_hot_worker_rests_obeys_and_continues_when_it_has_cooled),
        cmocka_unit_test(a_hot_worker_that_is_paused_tells_when_it_has_cooled),
        cmocka_unit_test(a_closed_socket_ends_the_worker),
        cmocka_unit_test(a_model_that_a_backend_cannot_hold_is_opened_on_the_cpu),
        cmocka_unit_test(where_the_cpu_took_over_the_heat_of_the_card_is_no_matter),
        cmocka_unit_test(a_worker_whose_card_vanishes_says_so_and_ends),
        cmocka_unit_test(steps_go_on_while_a_publication_is_made),
        cmocka_unit_test(commands_on_work_buffers_wait_for_a_publication_under_way),
        cmocka_unit_test(a_model_that_does_not_fit_is_a_lack_of_memory),
        cmocka_unit_test(a_worker_without_descriptors_says_what_it_lacks_and_ends),
    };
    return cmocka_run_group_tests(tests, make_files, drop_files);
}
