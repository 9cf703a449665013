/* Rows, pins, checkpoints and addresses: the contents of the disk when the node gets its event.
 * Store, store thread and event log are real; the node is a mock. */
#include <unistd.h>

#include "gossip/vote/commit_row.h"
#include "store/chain.h"
#include "store/inside.h"
#include "store/peers.h"
#include "store/rows.h"
#include "store/vote.h"
#include "tests/unit/daemon/desk.h"

static struct {
    uint32_t n_members;
    dp_member_view members[4];
} net;

bool dp_node_member(const dp_node *node, uint32_t index, dp_member_view *view)
{
    (void)node;
    if (index >= net.n_members) {
        return false;
    }
    *view = net.members[index];
    return true;
}

uint32_t dp_node_keep(const dp_node *node, uint64_t round)
{
    (void)node;
    return round == 0 ? 0 : 16;
}

static dp_driver *open_member(void)
{
    memset(&net, 0, sizeof net);
    return desk_open();
}

static dp_hash run_of(void)
{
    return desk.driver->facts.run;
}

static dp_action row_action(dp_store_kind kind, const char *bytes)
{
    dp_action action = {.type = DP_DO_STORE};
    action.u.store.op = 41;
    action.u.store.kind = kind;
    action.u.store.bytes = dp_view_text(bytes);
    return action;
}

/* The status that the node got for the last row. */
static dp_status heard(void)
{
    desk_settle();
    CHECK(desk.n_events > 0);
    const dp_event *event = &desk.events[desk.n_events - 1];
    CHECK(event->type == DP_EV_STORED && event->u.stored.op == 41);
    return event->u.stored.status;
}

static dp_status remember_row(const dp_store_row *row, void *context)
{
    snprintf(context, 256, "%s=%.*s", row->name, (int)row->bytes.size,
             (const char *)row->bytes.data);
    return DP_OK;
}

static const char *row_of(const char *prefix)
{
    static char text[256];
    const dp_hash run = run_of();
    text[0] = '\0';
    CHECK_OK(dp_store_row_each(desk.shelf.store, &run, prefix, remember_row, text));
    return text;
}

static void rows_of_the_protocol_stand_under_their_names_and_empty_ones_go(void **state)
{
    dp_action action = row_action(DP_STORE_PENDING, "a publication");
    (void)state;
    open_member();
    dp_driver_store(desk.driver, &action);
    assert_int_equal(heard(), DP_OK);
    assert_string_equal(row_of("pending"), "pending=a publication");
    action = row_action(DP_STORE_EXCHANGE, "an exchange");
    action.u.store.exchange[0] = 0xab;
    dp_driver_store(desk.driver, &action);
    assert_int_equal(heard(), DP_OK);
    assert_string_equal(row_of("exchange:"),
                        "exchange:ab000000000000000000000000000000=an exchange");
    action.u.store.bytes = (dp_view){0};
    dp_driver_store(desk.driver, &action);
    assert_int_equal(heard(), DP_OK);
    assert_string_equal(row_of("exchange:"), "");
    action = row_action(DP_STORE_PROOF, "a proof");
    dp_driver_store(desk.driver, &action);
    assert_int_equal(heard(), DP_OK);
    assert_string_equal(row_of("proof"), "proof=a proof");
    desk_close();
}

static void a_row_that_needs_an_object_which_is_not_here_is_refused(void **state)
{
    dp_action action = row_action(DP_STORE_PENDING, "a publication");
    (void)state;
    open_member();
    action.u.store.keep[0] = name_of(5);
    dp_driver_store(desk.driver, &action);
    assert_int_equal(heard(), DP_NOTFOUND);
    assert_string_equal(row_of("pending"), "");
    assert_true(desk_logged("store.failed"));
    assert_false(desk.ended); /* The disk is well. */
    desk_close();
}

static void a_vote_is_written_and_never_goes_back(void **state)
{
    uint8_t bytes[DP_COMMIT_ROW_HEAD];
    dp_action action = row_action(DP_STORE_VOTE, "");
    const dp_vote_key_row key = {.secret = {1}, .public_key = {2}};
    dp_vote_row vote;
    dp_buf record = {.max = 1000};
    (void)state;
    open_member();
    const dp_hash run = run_of();
    CHECK_OK(dp_vote_create_key(desk.shelf.store, &run, &key));
    for (int64_t promised = 7; promised >= 6; promised--) {
        const dp_commit_row row = {.fork = name_of(1),
                                   .slot = 3,
                                   .prev = name_of(2),
                                   .promised = promised,
                                   .accepted = -1};
        dp_writer writer = dp_writer_of(bytes, sizeof bytes);
        dp_commit_row_write(&writer, &row);
        CHECK_OK(dp_writer_finish(&writer, &action.u.store.bytes));
        dp_driver_store(desk.driver, &action);
        assert_int_equal(heard(), promised == 7 ? DP_OK : DP_BADARG);
        CHECK_OK(dp_vote_load(desk.shelf.store, &run, &vote, &record));
        assert_true(vote.slot == 3 && vote.promised == 7 && vote.accepted == DP_VOTE_ROW_NONE);
    }
    action.u.store.bytes = dp_view_text("no row of a vote");
    dp_driver_store(desk.driver, &action);
    assert_true(heard() != DP_OK);
    dp_buf_close(&record);
    desk_close();
}

static void records_follow_one_another_and_a_fork_takes_some_back(void **state)
{
    dp_action action = row_action(DP_STORE_DECIDED, "one");
    dp_chain_tip head;
    dp_buf cert = {.max = 1000};
    (void)state;
    open_member();
    const dp_hash run = run_of();
    for (uint64_t slot = 1; slot <= 3; slot++) {
        action.u.store.slot = slot;
        action.u.store.cert = dp_view_text("certificate");
        dp_driver_store(desk.driver, &action);
        assert_int_equal(heard(), DP_OK);
    }
    action.u.store.slot = 9; /* A gap. */
    dp_driver_store(desk.driver, &action);
    assert_int_equal(heard(), DP_BADARG);
    action = row_action(DP_STORE_FORK, "two");
    action.u.store.slot = 2;
    action.u.store.cert = dp_view_text("another");
    dp_driver_store(desk.driver, &action);
    assert_int_equal(heard(), DP_OK);
    const dp_hash hash = dp_record_hash(dp_view_text("two"));
    CHECK_OK(dp_chain_head(desk.shelf.store, &run, &head));
    assert_true(head.slot == 2 && dp_hash_equal(&head.hash, &hash));
    CHECK_OK(dp_chain_read(desk.shelf.store, &run, 2, NULL, &cert, NULL));
    assert_true(cert.size == 7 && memcmp(cert.data, "another", 7) == 0);
    dp_buf_close(&cert);
    desk_close();
}

static void a_row_without_memory_or_room_is_refused_at_once(void **state)
{
    const dp_action action = row_action(DP_STORE_PENDING, "a publication");
    (void)state;
    open_member();
    dp_alloc_fail_after(1);
    dp_driver_store(desk.driver, &action);
    dp_alloc_fail_after(0);
    assert_int_equal(heard(), DP_NOMEM);
    desk.is_full = true;
    dp_driver_store(desk.driver, &action);
    assert_int_equal(desk.n_events, 2);
    assert_int_equal(heard(), DP_NOMEM);
    assert_string_equal(row_of("pending"), "");
    desk_close();
}

static uint32_t pins(dp_pin_kind kind)
{
    dp_hash roots[16];
    uint32_t count = 0;
    const dp_hash run = run_of();
    CHECK_OK(dp_object_pins(desk.shelf.store, &run, kind, roots, 16, &count));
    return count;
}

static void an_object_is_kept_for_its_use_and_dropped_again(void **state)
{
    static const struct {
        dp_object_use use;
        dp_pin_kind kind;
    } uses[] = {{DP_USE_BLOB, DP_PIN_BLOB},
                {DP_USE_STATE, DP_PIN_STATE},
                {DP_USE_DATA, DP_PIN_DATA},
                {DP_USE_PENDING, DP_PIN_PENDING},
                {DP_USE_EXCHANGE, DP_PIN_EXCHANGE}};
    dp_action action = {.type = DP_DO_OBJECT_KEEP};
    (void)state;
    open_member();
    action.u.keep.root = put_noise(desk.shelf.store, 1, 100, DP_PIN_LEASE, 7);
    for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++) {
        action.type = DP_DO_OBJECT_KEEP;
        action.u.keep.use = uses[i].use;
        dp_driver_keep(desk.driver, &action);
        desk_settle();
        assert_int_equal(pins(uses[i].kind), 1);
        action.type = DP_DO_OBJECT_DROP;
        dp_driver_keep(desk.driver, &action);
        desk_settle();
        assert_int_equal(pins(uses[i].kind), 0);
    }
    action.type = DP_DO_OBJECT_KEEP;
    action.u.keep.root = name_of(5); /* It is gone already: peers have it. */
    dp_driver_keep(desk.driver, &action);
    dp_alloc_fail_after(1);
    dp_driver_keep(desk.driver, &action);
    dp_alloc_fail_after(0);
    desk_settle();
    assert_true(desk.n_events == 0 && !desk_logged("store.failed"));
    desk_close();
}

static void every_so_many_drops_what_nobody_names_leaves_the_disk(void **state)
{
    dp_action action = {.type = DP_DO_OBJECT_DROP};
    dp_object_info info;
    (void)state;
    dp_driver *driver = open_member();
    action.u.keep.use = DP_USE_BLOB;
    action.u.keep.root = put_noise(desk.shelf.store, 1, 100, DP_PIN_BLOB, 0);
    dp_driver_keep(driver, &action);
    desk_settle();
    CHECK_OK(dp_object_stat(desk.shelf.store, &action.u.keep.root, &info));
    driver->n_drops = 31;
    dp_driver_keep(driver, &action);
    desk_settle();
    CHECK_STATUS(dp_object_stat(desk.shelf.store, &action.u.keep.root, &info), DP_NOTFOUND);
    desk_close();
}

/* The trainer's state after a round is mapped here, and the action that saves it. */
static dp_action state_of(uint64_t round, const char *bytes)
{
    dp_action action = {.type = DP_DO_SAVE};
    int fd = -1;
    CHECK_OK(dp_memfd_make("state", dp_view_text(bytes), &fd));
    dp_memfd_unmap(desk.driver->snapshot);
    CHECK_OK(dp_memfd_map(fd, 1000, &desk.driver->snapshot));
    close(fd);
    desk.driver->snapshot_round = round;
    desk.driver->snapshot_root = name_of(round);
    action.u.save.round = round;
    action.u.save.slot = round + 1;
    action.u.save.tensor_root = name_of(round);
    action.u.save.state_root = name_of(100 + round);
    return action;
}

static void a_state_becomes_a_checkpoint_and_the_node_hears_its_name(void **state)
{
    dp_ckpt ckpt;
    (void)state;
    dp_driver *driver = open_member();
    const dp_action action = state_of(8, "tensors");
    const dp_hash run = run_of();
    const dp_hash state_root = name_of(108);
    dp_driver_save(driver, &action);
    assert_int_equal(driver->snapshot.size, 0); /* Handed over. */
    desk_settle();
    CHECK_OK(dp_ckpt_newest(desk.shelf.store, &run, &ckpt));
    assert_true(ckpt.round == 8 && ckpt.slot == 9 && dp_hash_equal(&ckpt.state_root, &state_root));
    assert_true(driver->has_checkpoint && driver->checkpoint_round == 8);
    assert_true(desk.n_events == 1 && desk.events[0].type == DP_EV_SAVED);
    assert_true(desk.events[0].u.saved.round == 8 && desk.events[0].u.saved.tensor_bytes == 7);
    assert_true(dp_hash_equal(&desk.events[0].u.saved.tensor_root, &ckpt.object));
    desk_close();
}

static void a_state_that_is_another_is_not_saved(void **state)
{
    dp_ckpt ckpt;
    (void)state;
    dp_driver *driver = open_member();
    dp_action action = state_of(8, "tensors");
    const dp_hash run = run_of();
    action.u.save.round = 9;
    dp_driver_save(driver, &action);
    action.u.save.round = 8;
    action.u.save.tensor_root = name_of(77);
    dp_driver_save(driver, &action);
    desk_settle();
    assert_true(desk.n_events == 0 && !driver->has_checkpoint && driver->snapshot.size == 7);
    CHECK_STATUS(dp_ckpt_newest(desk.shelf.store, &run, &ckpt), DP_NOTFOUND);
    dp_memfd_unmap(driver->snapshot);
    desk_close();
}

static void a_budget_of_a_day_delays_checkpoints_that_need_not_be(void **state)
{
    (void)state;
    dp_driver *driver = open_member();
    dp_action action = state_of(8, "tensors");
    desk.config.write_per_day = 1; /* Seven bytes take a week. */
    dp_driver_save(driver, &action);
    desk_settle();
    assert_int_equal(desk.n_events, 1); /* The first one is free. */
    driver->saved_ms = driver->saved_ms > 0 ? driver->saved_ms : 1;
    action = state_of(9, "tensors");
    dp_driver_save(driver, &action);
    assert_int_equal(driver->n_jobs, 0);
    action.u.save.must = true;
    dp_driver_save(driver, &action);
    desk_settle();
    assert_true(desk.n_events == 2 && driver->checkpoint_round == 9);
    desk_close();
}

static void a_checkpoint_that_finds_no_room_is_told_and_training_goes_on(void **state)
{
    dp_ckpt ckpt;
    (void)state;
    dp_driver *driver = open_member();
    const dp_action action = state_of(8, "tensors");
    const dp_hash run = run_of();
    desk.shelf.store->options.max_bytes = 1;
    dp_driver_save(driver, &action);
    desk_settle();
    assert_true(desk_logged("ckpt.failed") && desk_logged("training continues"));
    assert_true(desk.n_events == 0 && !driver->has_checkpoint && !desk.ended);
    CHECK_STATUS(dp_ckpt_newest(desk.shelf.store, &run, &ckpt), DP_NOTFOUND);
    desk_close();
}

static void a_state_without_memory_or_room_at_the_store_stays_for_the_next_try(void **state)
{
    (void)state;
    dp_driver *driver = open_member();
    const dp_action action = state_of(8, "tensors");
    dp_alloc_fail_after(1);
    dp_driver_save(driver, &action);
    dp_alloc_fail_after(0);
    desk.is_full = true;
    dp_driver_save(driver, &action);
    assert_true(driver->snapshot.size == 7 && driver->n_jobs == 0);
    desk.is_full = false;
    dp_driver_save(driver, &action);
    desk_settle();
    assert_int_equal(desk.n_events, 1);
    desk_close();
}

static void a_state_that_found_no_room_is_saved_at_the_next_try(void **state)
{
    (void)state;
    dp_driver *driver = open_member();
    const dp_action action = state_of(8, "tensors");
    desk.config.write_per_day = 1;
    driver->saved_ms = 0;
    desk.shelf.store->options.max_bytes = 1;
    dp_driver_save(driver, &action);
    desk_settle();
    assert_true(desk.n_events == 0 && driver->snapshot.size == 7 && driver->saved_ms == 0);
    desk.shelf.store->options.max_bytes = 0;
    dp_driver_save(driver, &action);
    desk_settle();
    assert_true(desk.n_events == 1 && driver->has_checkpoint && driver->snapshot.size == 0);
    desk_close();
}

static void a_failed_checkpoint_gives_way_to_a_newer_state(void **state)
{
    (void)state;
    dp_driver *driver = open_member();
    const dp_action action = state_of(8, "tensors");
    desk.shelf.store->options.max_bytes = 1;
    dp_driver_save(driver, &action);
    (void)state_of(9, "newer");
    desk_settle();
    assert_true(driver->snapshot.size == 5 && driver->snapshot_round == 9);
    desk_close();
}

/* A read may have found its object damaged, and then it has been written again. */
static void a_checkpoint_that_is_there_already_is_told_again(void **state)
{
    (void)state;
    dp_driver *driver = open_member();
    for (uint32_t i = 1; i <= 2; i++) {
        const dp_action action = state_of(8, "tensors");
        dp_driver_save(driver, &action);
        desk_settle();
        assert_true(desk.n_events == i && desk.events[i - 1].type == DP_EV_SAVED);
        assert_int_equal(desk.events[i - 1].u.saved.tensor_bytes, 7);
    }
    assert_false(desk_logged("ckpt.failed"));
    desk_close();
}

static void a_state_that_was_fetched_becomes_a_checkpoint_without_the_trainer(void **state)
{
    dp_ckpt ckpt;
    dp_action action = {.type = DP_DO_SAVE};
    const dp_hash state_root = name_of(105);
    (void)state;
    dp_driver *driver = open_member();
    const dp_hash run = run_of();
    action.u.save.round = 5;
    action.u.save.slot = 6;
    action.u.save.state_root = state_root;
    action.u.save.tensor_root = name_of(5);
    dp_driver_save(driver, &action); /* No such object. */
    desk_settle();
    assert_true(desk.n_events == 0 && !desk_logged("ckpt.failed") && !driver->has_checkpoint);
    action.u.save.tensor_root = put_noise(desk.shelf.store, 1, 100, DP_PIN_STATE, 0);
    dp_driver_save(driver, &action);
    desk_settle();
    assert_true(desk.n_events == 1 && desk.events[0].type == DP_EV_SAVED);
    assert_true(desk.events[0].u.saved.round == 5 && desk.events[0].u.saved.tensor_bytes == 100);
    CHECK_OK(dp_ckpt_newest(desk.shelf.store, &run, &ckpt));
    assert_true(ckpt.round == 5 && ckpt.slot == 6 && dp_hash_equal(&ckpt.state_root, &state_root));
    assert_true(dp_hash_equal(&ckpt.object, &action.u.save.tensor_root));
    const dp_pin pin = {.run = run, .kind = DP_PIN_STATE};
    CHECK_OK(dp_object_unpin(desk.shelf.store, &ckpt.object, &pin));
    CHECK_OK(dp_object_collect(desk.shelf.store, NULL));
    CHECK_OK(dp_object_verify(desk.shelf.store, &ckpt.object)); /* The checkpoint keeps it. */
    desk_close();
}

static void addresses_of_linked_peers_outlive_the_daemon(void **state)
{
    dp_peer_row rows[4];
    uint32_t count = 0;
    (void)state;
    dp_driver *driver = open_member();
    net.n_members = 4; /* 0 is this node. */
    for (uint8_t i = 0; i < 4; i++) {
        net.members[i] = (dp_member_view){.peer = {{i}}, .linked = i != 2, .n_addrs = 2};
        net.members[i].addrs[0] = (dp_addr){.family = 4, .ip = {10, 0, 0, i}, .port = 7};
        net.members[i].addrs[1] = (dp_addr){.family = 4, .ip = {10, 0, 1, i}, .port = 8};
    }
    net.members[3].n_addrs = 0;
    dp_driver_remember_peers(driver);
    desk_settle();
    CHECK_OK(dp_peer_list(desk.shelf.store, rows, 4, &count));
    assert_int_equal(count, 1); /* 2 has no link, 3 no address. */
    assert_int_equal(rows[0].id.bytes[0], 1);
    assert_string_equal(rows[0].addresses, "10.0.0.1:7 10.0.1.1:8");
    net.n_members = 1;
    dp_driver_remember_peers(driver); /* There is nobody. */
    assert_int_equal(driver->n_jobs, 0);
    desk_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_the_protocol_stand_under_their_names_and_empty_ones_go),
        cmocka_unit_test(a_row_that_needs_an_object_which_is_not_here_is_refused),
        cmocka_unit_test(a_vote_is_written_and_never_goes_back),
        cmocka_unit_test(records_follow_one_another_and_a_fork_takes_some_back),
        cmocka_unit_test(a_row_without_memory_or_room_is_refused_at_once),
        cmocka_unit_test(an_object_is_kept_for_its_use_and_dropped_again),
        cmocka_unit_test(every_so_many_drops_what_nobody_names_leaves_the_disk),
        cmocka_unit_test(a_state_becomes_a_checkpoint_and_the_node_hears_its_name),
        cmocka_unit_test(a_state_that_is_another_is_not_saved),
        cmocka_unit_test(a_budget_of_a_day_delays_checkpoints_that_need_not_be),
        cmocka_unit_test(a_checkpoint_that_finds_no_room_is_told_and_training_goes_on),
        cmocka_unit_test(a_state_without_memory_or_room_at_the_store_stays_for_the_next_try),
        cmocka_unit_test(a_state_that_found_no_room_is_saved_at_the_next_try),
        cmocka_unit_test(a_failed_checkpoint_gives_way_to_a_newer_state),
        cmocka_unit_test(a_checkpoint_that_is_there_already_is_told_again),
        cmocka_unit_test(a_state_that_was_fetched_becomes_a_checkpoint_without_the_trainer),
        cmocka_unit_test(addresses_of_linked_peers_outlive_the_daemon),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
