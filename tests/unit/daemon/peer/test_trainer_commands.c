/* Commands to the trainer: the command of each action, its objects, and the result if one is
 * missing. Store and store thread are real; the trainer and the other files of the driver are
 * mocks. test_driver_judge.c tests judgements, test_driver_slices.c slices. */
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/peer/trainer_commands_inside.h"
#include "store/inside.h"
#include "tests/unit/daemon/desk.h"

enum { TOLD_MAX = 300, SIZE = 3000 };

static struct {
    dp_status tells;
    uint32_t n_told;
    dp_trainer_msg told[TOLD_MAX];
    uint32_t n_fds[TOLD_MAX];
    uint64_t seeds_hold; /* bit i: the i-th file of the last command holds noise of seed i + 1 */
    uint32_t n_expected;
    dp_driver_wait expected;
    uint32_t n_failed;
    dp_driver_wait failed;
    uint32_t n_replaced;
    uint32_t n_judged;
} net;

static bool holds(int fd, uint64_t seed)
{
    uint8_t *bytes = noise(seed, SIZE);
    dp_view view = {0};
    const bool same = dp_memfd_map(fd, 1 << 20, &view) == DP_OK && view.size == SIZE &&
                      memcmp(view.data, bytes, SIZE) == 0;
    dp_memfd_unmap(view);
    free(bytes);
    return same;
}

dp_status dp_trainer_process_tell(dp_trainer_process *trainer, const dp_trainer_msg *msg,
                                  const int *fds, uint32_t n_fds)
{
    (void)trainer;
    CHECK(net.n_told < TOLD_MAX);
    net.told[net.n_told] = *msg;
    net.n_fds[net.n_told++] = n_fds;
    net.seeds_hold = 0;
    for (uint32_t i = 0; i < n_fds; i++) {
        if (msg->kind != DP_TRAINER_OPEN || i > 0) { /* The first one is the manifest. */
            net.seeds_hold |= (uint64_t)holds(fds[i], i + 1) << i;
        }
        close(fds[i]);
    }
    return net.tells;
}

void dp_trainer_process_replace(dp_trainer_process *trainer, const char *cause)
{
    (void)trainer;
    (void)cause;
    net.n_replaced++;
}

void dp_driver_expect(dp_driver *driver, const dp_driver_wait *wait)
{
    driver->n_waits++;
    net.n_expected++;
    net.expected = *wait;
}

void dp_driver_command_failed(dp_driver *driver, const dp_driver_wait *wait, const char *what)
{
    (void)driver;
    (void)what;
    net.n_failed++;
    net.failed = *wait;
}

void dp_driver_judged(dp_driver *driver, const dp_hash *root, const dp_judged *found)
{
    (void)root;
    CHECK(found == NULL);
    driver->n_judges--;
    net.n_judged++;
}

/* Objects of noise 1, 2 and so on, whose roots are given. */
static dp_hash roots[4];

static dp_driver *open_trainer(void)
{
    memset(&net, 0, sizeof net);
    dp_driver *driver = desk_open();
    driver->trainer = (dp_trainer_process *)(void *)&net;
    driver->trainer_open = true;
    desk.config.apply_memory = UINT64_MAX;
    for (uint64_t i = 0; i < 4; i++) {
        roots[i] = put_noise(desk.shelf.store, i + 1, SIZE, DP_PIN_BLOB, 0);
    }
    return driver;
}

static void close_trainer(void)
{
    dp_driver_commands_drop(desk.driver);
    desk_close();
}

static const dp_trainer_msg *told(const dp_action *action)
{
    const uint32_t before = net.n_told;
    dp_driver_command_trainer(desk.driver, action);
    desk_settle();
    assert_int_equal(net.n_told, before + 1);
    return &net.told[before];
}

static void a_model_is_opened_with_manifest_tokenizer_and_shards(void **state)
{
    dp_driver *driver = open_trainer();
    (void)state;
    memcpy(driver->facts.manifest, "manifest", 8);
    driver->facts.manifest_bytes = 8;
    driver->self.bytes[0] = 9;
    driver->manifest.tokenizer = roots[1]; /* The second file holds noise 2. */
    driver->manifest.n_shards = 1;
    driver->manifest.shards[0].root = roots[2];
    dp_driver_open_model(driver);
    desk_settle();
    assert_true(net.n_told == 1 && net.told[0].kind == DP_TRAINER_OPEN && net.n_fds[0] == 3);
    assert_true(net.told[0].member[0] == 9 && net.seeds_hold == 6);
    assert_int_equal(net.expected.command, DP_TRAINER_OPEN);
    close_trainer();
}

static void with_adapters_the_base_is_the_last_file(void **state)
{
    dp_driver *driver = open_trainer();
    (void)state;
    memcpy(driver->facts.manifest, "manifest", 8);
    driver->facts.manifest_bytes = 8;
    driver->manifest.tokenizer = roots[1];
    driver->manifest.n_shards = 1;
    driver->manifest.shards[0].root = roots[2];
    driver->manifest.adapt_rank = 4;
    driver->manifest.base = roots[1];
    dp_driver_open_model(driver);
    desk_settle();
    assert_true(net.n_told == 1 && net.told[0].kind == DP_TRAINER_OPEN && net.n_fds[0] == 4);
    close_trainer();
}

static void training_and_its_stop_wait_for_no_answer(void **state)
{
    dp_action action = {.type = DP_DO_TRAIN};
    dp_driver *driver = open_trainer();
    (void)state;
    action.u.train.round = 9;
    action.u.train.tokens = 500;
    action.u.train.n_ranges = 1;
    action.u.train.ranges[0] = (dp_sample_range){.first = 5, .count = 6};
    driver->step_ms = 77;
    const dp_trainer_msg *msg = told(&action);
    assert_true(msg->kind == DP_TRAINER_TRAIN && msg->round == 9 && msg->tokens == 500);
    assert_true(msg->n_ranges == 1 && msg->ranges[0].count == 6);
    assert_true(driver->training && driver->step_ms == 77);
    action.type = DP_DO_TRAIN_STOP;
    msg = told(&action);
    assert_true(msg->kind == DP_TRAINER_TRAIN && msg->round == 0 && msg->n_ranges == 0);
    assert_true(!driver->training && driver->step_ms == 0 && net.n_expected == 0);
    close_trainer();
}

static void starts_and_publications_are_answered(void **state)
{
    dp_action action = {.type = DP_DO_TRAINER_INIT};
    (void)state;
    open_trainer();
    assert_int_equal(told(&action)->kind, DP_TRAINER_INIT);
    assert_int_equal(net.expected.command, DP_TRAINER_INIT);
    action = (dp_action){.type = DP_DO_TRAINER_LOAD};
    action.u.load.round = 8;
    action.u.load.root = roots[0];
    assert_true(told(&action)->round == 8 && net.seeds_hold == 1);
    assert_true(net.expected.command == DP_TRAINER_LOAD && net.expected.round == 8);
    action = (dp_action){.type = DP_DO_PUBLISH};
    action.u.publish.round = 9;
    action.u.publish.dense = true;
    action.u.publish.keep = 16;
    action.u.publish.cuts = (dp_part_cuts){.n = 1, .first = {5}};
    const dp_trainer_msg *msg = told(&action);
    assert_true(msg->kind == DP_TRAINER_PUBLISH && msg->dense && msg->keep == 16);
    assert_true(net.expected.cuts.n == 1 && net.expected.cuts.first[0] == 5);
    close_trainer();
}

static void a_record_is_applied_with_its_blobs_in_order(void **state)
{
    dp_apply_item items[3];
    dp_action action = {.type = DP_DO_APPLY};
    (void)state;
    open_trainer();
    for (uint32_t i = 0; i < 3; i++) {
        items[i] = (dp_apply_item){.root = roots[i], .bytes = SIZE, .q = i + 1, .end = 65536};
    }
    action.u.apply.round = 9;
    action.u.apply.alpha = 3;
    action.u.apply.settle = DP_SETTLE_INCLUDED;
    action.u.apply.contributors = 3;
    action.u.apply.n_items = 3;
    action.u.apply.items = items;
    const dp_trainer_msg *msg = told(&action);
    assert_true(msg->kind == DP_TRAINER_APPLY && msg->n_items == 3 && msg->q[2] == 3);
    assert_true(msg->settle == DP_SETTLE_INCLUDED && msg->alpha == 3 && msg->at == 0);
    assert_true(msg->shares[0].end == 65536 && net.seeds_hold == 7);
    assert_true(net.expected.command == DP_TRAINER_APPLY && net.expected.round == 9);
    close_trainer();
}

static void many_updates_go_before_their_record_in_slices(void **state)
{
    static dp_apply_item items[DP_TRAINER_ITEMS_MAX + 1];
    dp_action action = {.type = DP_DO_APPLY};
    dp_action check = {.type = DP_DO_CHECK};
    dp_driver *driver = open_trainer();
    (void)state;
    for (uint32_t i = 0; i < DP_TRAINER_ITEMS_MAX + 1; i++) {
        items[i] = (dp_apply_item){.root = roots[0], .bytes = SIZE, .end = 65536};
    }
    action.u.apply.round = 9;
    action.u.apply.n_items = DP_TRAINER_ITEMS_MAX + 1;
    action.u.apply.items = items;
    dp_driver_command_trainer(driver, &action);
    check.u.check.root = roots[0];
    dp_driver_command_trainer(driver, &check); /* Others' updates do not wait for a record. */
    desk_settle();
    assert_true(net.n_told == 3 && net.told[0].kind == DP_TRAINER_ADD && net.told[0].at == 0);
    assert_true(net.told[1].kind == DP_TRAINER_ADD && net.told[1].at == DP_TRAINER_ITEMS_MAX);
    assert_int_equal(net.told[2].kind, DP_TRAINER_CHECK);
    assert_int_equal(driver->n_behind, 1);
    for (uint32_t i = 0; i < 2; i++) {
        const dp_trainer_msg added = {.round = 9, .at = net.told[i].at + net.told[i].n_items};
        dp_driver_slices_added(driver, &added);
    }
    desk_settle();
    assert_true(net.n_told == 4 && net.told[3].kind == DP_TRAINER_APPLY);
    assert_true(net.told[3].at == DP_TRAINER_ITEMS_MAX + 1 && net.told[3].n_items == 0);
    close_trainer();
}

static void checks_have_numbers_and_a_range_where_it_is_not_the_whole(void **state)
{
    dp_action action = {.type = DP_DO_CHECK};
    dp_driver *driver = open_trainer();
    (void)state;
    action.u.check.root = roots[0];
    action.u.check.end = DP_PART_WHOLE;
    const dp_trainer_msg *msg = told(&action);
    assert_true(msg->id == 0 && msg->range.end == 0 && net.seeds_hold == 1);
    action.u.check.first = 10;
    action.u.check.end = 20;
    msg = told(&action);
    assert_true(msg->id == 1 && msg->range.first == 10 && msg->range.end == 20);
    assert_true(dp_hash_equal(&driver->checks[1].root, &roots[0]) && net.n_expected == 0);
    close_trainer();
}

static void sums_restores_and_exchanges_carry_what_they_are_about(void **state)
{
    dp_action action = {.type = DP_DO_REDUCE};
    (void)state;
    open_trainer();
    action.u.reduce.round = 9;
    action.u.reduce.part = 3;
    action.u.reduce.n_items = 1;
    action.u.reduce.items[0] = (dp_apply_item){.root = roots[0], .q = 5};
    const dp_trainer_msg *msg = told(&action);
    assert_true(msg->kind == DP_TRAINER_REDUCE && msg->part == 3 && net.expected.part == 3);
    action = (dp_action){.type = DP_DO_TRAINER_RESTORE};
    action.u.restore.frozen = true;
    action.u.restore.a_root = roots[0];
    msg = told(&action);
    assert_true(msg->restore == DP_RESTORE_FROZEN && net.n_fds[net.n_told - 1] == 1);
    action.u.restore.frozen = false;
    action.u.restore.blob_root = roots[1];
    msg = told(&action);
    assert_true(msg->restore == DP_RESTORE_PENDING && net.seeds_hold == 3);
    action = (dp_action){.type = DP_DO_FREEZE};
    action.u.mix.exchange[0] = 7;
    msg = told(&action);
    assert_true(msg->kind == DP_TRAINER_FREEZE && msg->exchange[0] == 7);
    action.type = DP_DO_MIX;
    action.u.mix.own_root = roots[0];
    action.u.mix.other_root = roots[1];
    action.u.mix.weight_other = 30;
    msg = told(&action);
    assert_true(msg->kind == DP_TRAINER_MIX && msg->weight_other == 30 && net.seeds_hold == 3);
    assert_int_equal(net.expected.exchange[0], 7);
    close_trainer();
}

static void an_object_that_is_gone_fails_its_command_and_is_told_as_lost(void **state)
{
    dp_action action = {.type = DP_DO_TRAINER_LOAD};
    (void)state;
    open_trainer();
    action.u.load.round = 8;
    action.u.load.root = name_of(99);
    dp_driver_command_trainer(desk.driver, &action);
    desk_settle();
    assert_true(net.n_told == 0 && net.n_failed == 1 && net.failed.round == 8);
    assert_true(desk.n_lost == 1 && net.n_replaced == 0);
    action = (dp_action){.type = DP_DO_CHECK};
    action.u.check.root = name_of(99);
    action.u.check.first = 10;
    dp_driver_command_trainer(desk.driver, &action);
    desk_settle();
    assert_true(desk.n_events == 1 && desk.events[0].type == DP_EV_CHECKED);
    assert_true(!desk.events[0].u.checked.ok && desk.events[0].u.checked.first == 10);
    assert_int_equal(net.n_failed, 1);
    close_trainer();
}

static bool has_told(void *context)
{
    (void)context;
    return net.n_told > 0;
}

/* A state of many GiB takes longer to read than systemd waits for a sign of life. */
static void votes_are_written_while_a_state_or_a_shard_is_read(void **state)
{
    dp_action load = {.type = DP_DO_TRAINER_LOAD};
    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        dp_driver *driver = open_trainer();
        const dp_hash root = put_noise(desk.shelf.store, 9, DP_PIECE_BYTES + SIZE, DP_PIN_DATA, 0);
        load.u.load.root = root;
        driver->manifest.tokenizer = root;
        desk_hold();
        if (turn == 0) {
            dp_driver_command_trainer(driver, &load);
        } else {
            dp_driver_open_model(driver);
        }
        assert_true(desk_writes_between(DP_STORE_THREAD_URGENT, has_told));
        desk_settle();
        assert_int_equal(net.told[0].kind, turn == 0 ? DP_TRAINER_LOAD : DP_TRAINER_OPEN);
        assert_int_equal(net.n_fds[0], turn + 1);
        close_trainer();
    }
}

static void a_command_does_not_overtake_one_that_is_being_read(void **state)
{
    const dp_action train = {.type = DP_DO_TRAIN, .u.train.round = 3};
    dp_action load = {.type = DP_DO_TRAINER_LOAD};
    (void)state;
    dp_driver *driver = open_trainer();
    load.u.load.root = put_noise(desk.shelf.store, 9, DP_PIECE_BYTES + SIZE, DP_PIN_DATA, 0);
    desk_hold();
    dp_driver_command_trainer(driver, &load);
    dp_driver_command_trainer(driver, &train);
    assert_true(desk_writes_between(DP_STORE_THREAD_URGENT, has_told));
    desk_settle();
    assert_true(net.n_told == 2 && net.told[0].kind == DP_TRAINER_LOAD);
    assert_int_equal(net.told[1].kind, DP_TRAINER_TRAIN);
    close_trainer();
}

static void a_shard_that_is_damaged_is_fetched_anew(void **state)
{
    dp_driver *driver = open_trainer();
    (void)state;
    driver->manifest.tokenizer = roots[0];
    driver->manifest.n_shards = 2;
    driver->manifest.shards[0].root = roots[1];
    driver->manifest.shards[1].root = name_of(99);
    dp_driver_open_model(driver);
    desk_settle();
    assert_true(net.n_told == 0 && net.n_failed == 1);
    assert_true(desk.n_events == 1 && desk.events[0].type == DP_EV_OBJECT_LOST);
    const dp_hash lost = name_of(99);
    assert_true(dp_hash_equal(&desk.events[0].u.object.root, &lost));
    assert_true(desk_logged("data.damaged") && desk_logged("shard 2 of 2"));
    close_trainer();
}

static void of_a_trainer_that_died_no_command_is_told(void **state)
{
    const dp_action action = {.type = DP_DO_TRAINER_INIT};
    dp_driver *driver = open_trainer();
    (void)state;
    dp_driver_command_trainer(driver, &action);
    driver->trainer_life++;
    desk_settle();
    assert_true(net.n_told == 0 && net.n_failed == 0 && net.n_replaced == 0);
    driver->trainer = NULL; /* And before there is one. */
    dp_driver_command_trainer(driver, &action);
    assert_int_equal(driver->n_jobs, 0);
    close_trainer();
}

static void a_command_without_memory_waits_for_the_next_tick(void **state)
{
    const dp_action train = {.type = DP_DO_TRAIN, .u.train.round = 3};
    const dp_action publish = {.type = DP_DO_PUBLISH, .u.publish.round = 3};
    (void)state;
    dp_driver *driver = open_trainer();
    net.tells = DP_NOMEM;
    assert_int_equal(told(&train)->kind, DP_TRAINER_TRAIN);
    dp_driver_command_trainer(driver, &publish); /* It comes after the other, so it is not told. */
    desk_settle();
    assert_true(net.n_told == 1 && driver->n_held == 2 && driver->n_waits == 0);
    dp_driver_commands_retry(driver);
    desk_settle();
    assert_true(net.n_told == 2 && driver->n_held == 2);
    net.tells = DP_OK;
    dp_driver_commands_retry(driver);
    desk_settle();
    assert_true(net.n_told == 4 && driver->n_held == 0 && driver->n_waits == 1);
    assert_int_equal(net.told[2].kind, DP_TRAINER_TRAIN);
    assert_int_equal(net.told[3].kind, DP_TRAINER_PUBLISH);
    close_trainer();
}

/* The number of a closed file may be another one's by now. */
static void a_command_that_waits_for_memory_has_no_files(void **state)
{
    dp_action load = {.type = DP_DO_TRAINER_LOAD};
    (void)state;
    dp_driver *driver = open_trainer();
    load.u.load.root = roots[0];
    net.tells = DP_NOMEM;
    assert_int_equal(told(&load)->kind, DP_TRAINER_LOAD);
    assert_true(net.n_fds[0] == 1 && driver->n_held == 1);
    assert_int_equal(DP_LIST_ITEM(driver->held.next, command_job, job.link)->n_fds, 0);
    close_trainer();
}

static void a_store_that_takes_no_command_replaces_the_trainer(void **state)
{
    const dp_action action = {.type = DP_DO_TRAINER_INIT};
    (void)state;
    open_trainer();
    desk.is_full = true;
    dp_driver_command_trainer(desk.driver, &action);
    /* Otherwise it would disagree with the node. */
    assert_true(net.n_replaced == 1 && net.n_told == 0);
    close_trainer();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_opened_with_manifest_tokenizer_and_shards),
        cmocka_unit_test(with_adapters_the_base_is_the_last_file),
        cmocka_unit_test(training_and_its_stop_wait_for_no_answer),
        cmocka_unit_test(starts_and_publications_are_answered),
        cmocka_unit_test(a_record_is_applied_with_its_blobs_in_order),
        cmocka_unit_test(many_updates_go_before_their_record_in_slices),
        cmocka_unit_test(checks_have_numbers_and_a_range_where_it_is_not_the_whole),
        cmocka_unit_test(sums_restores_and_exchanges_carry_what_they_are_about),
        cmocka_unit_test(an_object_that_is_gone_fails_its_command_and_is_told_as_lost),
        cmocka_unit_test(votes_are_written_while_a_state_or_a_shard_is_read),
        cmocka_unit_test(a_command_does_not_overtake_one_that_is_being_read),
        cmocka_unit_test(a_shard_that_is_damaged_is_fetched_anew),
        cmocka_unit_test(of_a_trainer_that_died_no_command_is_told),
        cmocka_unit_test(a_command_without_memory_waits_for_the_next_tick),
        cmocka_unit_test(a_command_that_waits_for_memory_has_no_files),
        cmocka_unit_test(a_store_that_takes_no_command_replaces_the_trainer),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
