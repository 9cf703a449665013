/* Opens a node and passes durable data to it: without memory, and with wrong rows and records. */
#include "gossip/catchup/fork.h"
#include "gossip/catchup/proof.h"
#include "gossip/context/context.h"
#include "gossip/node/node.h"
#include "gossip/pairs/mix_internal.h"
#include "gossip/pairs/mix_msg.h"
#include "gossip/parts/part_round.h"
#include "gossip/round/round.h"
#include "gossip/training/training.h"
#include "gossip/vote/commit_row.h"
#include "tests/lib/allocfail.h"
#include "tests/unit/gossip/kit/node_kit.h"

/* Three nodes that have decided a few rounds; node 2 is opened again with its disk. */
static kit_world *three(void)
{
    kit_world *world = kit_open(3);

    kit_link_all(world);
    kit_run_ms(world, 4000);
    assert_true(world->nodes[2].slots > 4);
    return world;
}

static dp_node *open_again(kit_world *world)
{
    uint8_t credential[KIT_CREDENTIAL];
    const dp_node_config config = kit_config(world, 2, credential);
    dp_node *node = NULL;

    assert_int_equal(dp_node_open(&node, &config), DP_OK);
    return node;
}

static dp_view record_of(const kit_record *record)
{
    return dp_view_of(record->record, record->record_size);
}

static dp_view cert_of(const kit_record *record)
{
    return dp_view_of(record->cert, record->cert_size);
}

static dp_status give(dp_node *node, const kit_world *world, uint64_t slot)
{
    const kit_record *record = &world->nodes[2].records[slot];

    return dp_node_restore_record(node, slot, record_of(record), cert_of(record));
}

static dp_status open_and_close(void *context)
{
    uint8_t credential[KIT_CREDENTIAL];
    const dp_node_config config = kit_config(context, 0, credential);
    dp_node *node = NULL;

    DP_TRY(dp_node_open(&node, &config));
    dp_node_close(node);
    return DP_OK;
}

static void without_memory_no_node_is_opened_and_none_leaks(void **state)
{
    kit_world *world = kit_open(1);

    (void)state;
    assert_true(fail_each_allocation(open_and_close, world) > 15);
    world->manifest.codec = DP_CODEC_INT8;
    world->manifest.reduce = DP_REDUCE_PARTS; /* Rounds of parts have memory of their own. */
    world->manifest.trust = DP_TRUST_MEMBERS;
    assert_true(fail_each_allocation(open_and_close, world) > 15);
    kit_close(world);
}

static void a_configuration_that_cannot_be_is_refused(void **state)
{
    kit_world *world = kit_open(1);
    uint8_t credential[KIT_CREDENTIAL];
    static const uint8_t long_one[DP_CREDENTIAL_MAX + 1];
    const dp_node_config good = kit_config(world, 0, credential);
    dp_node_config bad = good;
    dp_node *node = NULL;

    (void)state;
    bad.credential = dp_view_of(long_one, sizeof long_one);
    assert_int_equal(dp_node_open(&node, &bad), DP_BADARG);
    bad = good;
    bad.members_max = 1;
    assert_int_equal(dp_node_open(&node, &bad), DP_BADARG);
    bad.members_max = DP_MEMBERS_MAX + 1;
    assert_int_equal(dp_node_open(&node, &bad), DP_BADARG);
    bad = good;
    bad.n_addrs = DP_ADDRS_MAX + 1;
    assert_int_equal(dp_node_open(&node, &bad), DP_BADARG);
    assert_null(node);
    kit_close(world);
}

static void a_node_without_credential_opens_and_admits_by_certificates(void **state)
{
    kit_world *world = kit_open(1);
    uint8_t credential[KIT_CREDENTIAL];
    dp_node_config config = kit_config(world, 0, credential);
    dp_node *node = NULL;

    (void)state;
    config.credential = (dp_view){0};
    config.admission = (dp_admission){0};
    config.has_vote_key = false;
    assert_int_equal(dp_node_open(&node, &config), DP_OK);
    assert_ptr_equal(node->config.admission.check, dp_admission_certs().check);
    dp_node_close(node);
    kit_close(world);
}

static void records_come_back_in_order_each_in_its_slot(void **state)
{
    kit_world *world = three();
    dp_node *node = open_again(world);
    const kit_record *first = &world->nodes[2].records[1];

    (void)state;
    assert_int_equal(give(node, world, 2), DP_AGAIN);
    assert_int_equal(dp_node_restore_record(node, 7, record_of(first), cert_of(first)), DP_CORRUPT);
    assert_int_equal(give(node, world, 1), DP_OK);
    assert_int_equal(give(node, world, 1), DP_EXISTS);
    assert_int_equal(give(node, world, 2), DP_OK);
    dp_node_close(node);
    kit_close(world);
}

static void a_record_or_certificate_that_is_damaged_is_not_taken_back(void **state)
{
    kit_world *world = three();
    dp_node *node = open_again(world);
    kit_record *first = &world->nodes[2].records[1];

    (void)state;
    assert_int_equal(dp_node_restore_record(node, 1, dp_view_of(first->record, 10), cert_of(first)),
                     DP_BADMSG);
    assert_int_equal(dp_node_restore_record(node, 1, record_of(first), dp_view_of(first->cert, 3)),
                     DP_BADMSG);
    first->cert[first->cert_size - 1] ^= 1;
    assert_int_equal(give(node, world, 1), DP_BADSIG);
    first->cert[first->cert_size - 1] ^= 1;
    first->record[3] ^= 1; /* Of another run. */
    assert_int_equal(give(node, world, 1), DP_DENIED);
    first->record[3] ^= 1;
    assert_int_equal(give(node, world, 1), DP_OK);
    dp_node_close(node);
    kit_close(world);
}

static dp_status admit_nobody(void *context, dp_view credential, const dp_run_id *run,
                              const uint8_t *root, const dp_peer *peer, uint64_t now_ms,
                              dp_admitted *out)
{
    (void)context;
    (void)credential;
    (void)run;
    (void)root;
    (void)peer;
    (void)now_ms;
    (void)out;
    return DP_DENIED;
}

static void a_record_that_admits_by_a_credential_that_does_not_hold_is_not_taken_back(void **state)
{
    kit_world *world = three();
    dp_node *node = open_again(world);
    dp_status status = DP_OK;
    uint64_t slot = 1;

    (void)state;
    node->config.admission.check = admit_nobody;
    while (status == DP_OK && slot < world->nodes[2].slots) {
        status = give(node, world, slot++);
    }
    assert_int_equal(status, DP_DENIED);
    assert_int_equal(node->ledger.n_roster, 1);
    dp_node_close(node);
    kit_close(world);
}

/* Node 0 lost the others, began the chain anew, and continued. */
static kit_world *forked(uint64_t *slot)
{
    kit_world *world = three();
    dp_status status = DP_AGAIN;
    dp_why why = {""};

    kit_kill(world, 0);
    kit_kill(world, 1);
    kit_run_ms(world, 4000);
    *slot = kit_look(world, 2).slot + 1;
    kit_event *item = kit_push(world, 2, DP_EV_ADMIN_COMMAND);
    item->event.u.order = (dp_admin_command){.kind = DP_ADMIN_FORK, .status = &status, .why = &why};
    kit_drain(world);
    assert_int_equal(status, DP_OK);
    kit_run_ms(world, 3000);
    assert_true(world->nodes[2].slots > *slot);
    return world;
}

static void a_fork_comes_back_only_with_its_signature_and_without_seals(void **state)
{
    uint64_t fork = 0;
    kit_world *world = forked(&fork);
    dp_node *node = open_again(world);
    kit_record *record = &world->nodes[2].records[fork];
    const kit_record *sealed = &world->nodes[2].records[fork - 1];

    (void)state;
    for (uint64_t slot = 1; slot < fork; slot++) {
        assert_int_equal(give(node, world, slot), DP_OK);
    }
    assert_int_equal(dp_node_restore_record(node, fork, record_of(record), cert_of(sealed)),
                     DP_BADMSG);
    static const uint8_t ballot_one[5] = {1};
    assert_int_equal(dp_node_restore_record(node, fork, record_of(record),
                                            dp_view_of(ballot_one, sizeof ballot_one)),
                     DP_BADMSG);
    record->record[record->record_size - 1] ^= 1;
    assert_int_equal(give(node, world, fork), DP_BADSIG);
    record->record[record->record_size - 1] ^= 1;
    assert_int_equal(give(node, world, fork), DP_OK);
    assert_int_equal(give(node, world, fork + 1), DP_OK);
    dp_node_close(node);
    kit_close(world);
}

static void a_vote_row_that_cannot_be_read_costs_the_key(void **state)
{
    kit_world *world = three();
    kit_node *disk = &world->nodes[2];
    dp_node *node = open_again(world);

    (void)state;
    assert_non_null(disk->vote);
    assert_int_equal(dp_node_restore_vote(node, dp_view_of(disk->vote, disk->vote_size)), DP_OK);
    assert_false(node->commit->key_lost);
    assert_int_equal(dp_node_restore_vote(node, dp_view_of(disk->vote, disk->vote_size - 1)),
                     DP_BADMSG);
    assert_true(node->commit->key_lost); /* It may hide a promise. */
    disk->vote[0]++;
    assert_int_equal(dp_node_restore_vote(node, dp_view_of(disk->vote, disk->vote_size)),
                     DP_VERSION);
    dp_node_close(node);
    kit_close(world);
}

static void a_vote_row_that_contradicts_itself_is_refused(void **state)
{
    static uint8_t room[DP_COMMIT_ROW_HEAD + DP_RECORD_WHOLE_MAX + 1];
    static const uint8_t record[DP_RECORD_WHOLE_MAX + 1];
    dp_commit_row row = {.slot = 3, .promised = 4, .accepted = -1};
    dp_commit_row read;
    dp_writer writer = dp_writer_of(room, sizeof room);

    (void)state;
    dp_commit_row_write(&writer, &row);
    assert_int_equal(dp_commit_row_read(dp_view_of(room, writer.size), &read), DP_OK);
    assert_int_equal(read.promised, 4);
    row.accepted = 4; /* Accepted, and no record. */
    writer = dp_writer_of(room, sizeof room);
    dp_commit_row_write(&writer, &row);
    assert_int_equal(dp_commit_row_read(dp_view_of(room, writer.size), &read), DP_BADMSG);
    row.record = dp_view_of(record, 5);
    row.accepted = 5; /* Above the promise. */
    writer = dp_writer_of(room, sizeof room);
    dp_commit_row_write(&writer, &row);
    assert_int_equal(dp_commit_row_read(dp_view_of(room, writer.size), &read), DP_BADMSG);
    row.accepted = 4;
    row.record = dp_view_of(record, sizeof record); /* No record is so long. */
    writer = dp_writer_of(room, sizeof room);
    dp_commit_row_write(&writer, &row);
    assert_int_equal(dp_commit_row_read(dp_view_of(room, writer.size), &read), DP_BADMSG);
}

static void a_pending_row_that_cannot_be_read_or_is_anothers_is_refused(void **state)
{
    kit_world *world = three();
    kit_node *disk = &world->nodes[2];
    const kit_node *other = &world->nodes[1];
    dp_node *node = open_again(world);

    (void)state;
    assert_non_null(disk->pending);
    assert_int_equal(dp_node_restore_pending(node, dp_view_of(disk->pending, 0)), DP_VERSION);
    assert_int_equal(
        dp_node_restore_pending(node, dp_view_of(disk->pending, disk->pending_size - 1)),
        DP_BADMSG);
    assert_int_equal(dp_node_restore_pending(node, dp_view_of(other->pending, other->pending_size)),
                     DP_DENIED);
    disk->pending[1] = DP_MSG_HAVE; /* Not a READY. */
    assert_int_equal(dp_node_restore_pending(node, dp_view_of(disk->pending, disk->pending_size)),
                     DP_BADMSG);
    assert_false(node->train->pending.has);
    disk->pending[1] = DP_MSG_READY;
    assert_int_equal(dp_node_restore_pending(node, dp_view_of(disk->pending, disk->pending_size)),
                     DP_OK);
    assert_true(node->train->pending.has);
    dp_node_close(node);
    kit_close(world);
}

static void a_proof_row_that_cannot_be_read_is_refused_and_halts_nobody(void **state)
{
    kit_world *world = three();
    dp_node *node = open_again(world);
    uint8_t row[DP_PROOF_ROW_MAX + 1] = {0};
    enum { VOTES = 1, FORKS, STOP };

    (void)state;
    assert_int_equal(dp_node_restore_proof(node, dp_view_of(row, DP_PROOF_ROW_HEAD - 1)),
                     DP_BADMSG);
    assert_int_equal(dp_node_restore_proof(node, dp_view_of(row, sizeof row)), DP_VERSION);
    row[0] = VOTES;
    assert_int_equal(dp_node_restore_proof(node, dp_view_of(row, sizeof row)), DP_BADMSG);
    assert_int_equal(dp_node_restore_proof(node, dp_view_of(row, DP_PROOF_ROW_HEAD + 10)),
                     DP_BADMSG);
    row[0] = FORKS; /* The first of the two is longer than all. */
    row[1] = row[2] = 0xff;
    assert_int_equal(dp_node_restore_proof(node, dp_view_of(row, DP_PROOF_ROW_HEAD + 10)),
                     DP_BADMSG);
    row[1] = row[2] = 0; /* Two that are of another chain have done their work. */
    assert_int_equal(dp_node_restore_proof(node, dp_view_of(row, DP_PROOF_ROW_HEAD + 10)), DP_OK);
    row[0] = STOP;
    assert_int_equal(dp_node_restore_proof(node, dp_view_of(row, DP_PROOF_ROW_HEAD + 10)),
                     DP_BADMSG);
    assert_int_equal(node->proof->row_size, 0);
    assert_false(node->forks->stop.has);
    dp_node_close(node);
    kit_close(world);
}

/* Row: u8 form | u16 size | own FORK | the other. */
static size_t write_forks(uint8_t *row, dp_view own, dp_view other)
{
    dp_writer writer = dp_writer_of(row, DP_PROOF_ROW_MAX);

    dp_write_u8(&writer, 2);
    dp_write_u16(&writer, (uint16_t)own.size);
    dp_write_view(&writer, own);
    dp_write_view(&writer, other);
    assert_false(writer.full);
    return writer.size;
}

static void of_two_forks_on_the_disk_the_other_must_be_one(void **state)
{
    uint64_t fork = 0;
    kit_world *world = forked(&fork);
    dp_node *node = open_again(world);
    const dp_view own = record_of(&world->nodes[2].records[fork]);
    static uint8_t row[DP_PROOF_ROW_MAX];
    static const uint8_t garbage[40];
    dp_record config = {.kind = DP_RECORD_CONFIG, .has_config = true};
    uint8_t room[300];
    dp_view bytes;

    (void)state;
    for (uint64_t slot = 1; slot <= fork; slot++) {
        assert_int_equal(give(node, world, slot), DP_OK);
    }
    size_t size = write_forks(row, own, dp_view_of(garbage, sizeof garbage));
    assert_int_not_equal(dp_node_restore_proof(node, dp_view_of(row, size)), DP_OK);
    config.config.n_fences = 1;
    assert_int_equal(dp_record_encode(&config, room, sizeof room, &bytes), DP_OK);
    size = write_forks(row, own, bytes);
    assert_int_equal(dp_node_restore_proof(node, dp_view_of(row, size)), DP_BADMSG);
    assert_false(node->forks->other.has);
    size = write_forks(row, own, own);
    assert_int_equal(dp_node_restore_proof(node, dp_view_of(row, size)), DP_OK);
    assert_true(node->forks->other.has);
    dp_node_close(node);
    kit_close(world);
}

static void an_exchange_row_that_cannot_be_read_or_is_one_too_many_is_refused(void **state)
{
    kit_world *world = kit_open(1);
    dp_node *node = NULL;
    uint8_t credential[KIT_CREDENTIAL];
    const dp_node_config config = kit_config(world, 0, credential);
    uint8_t bytes[DP_MIX_ROW_BYTES];
    dp_mix_row row = {.mark = DP_MIX_MARK_ABORTED};
    const uint8_t other[DP_EXCHANGE_BYTES] = {99};

    (void)state;
    assert_int_equal(dp_node_open(&node, &config), DP_OK);
    dp_mix_row_write(&row, bytes);
    const dp_view view = dp_view_of(bytes, sizeof bytes);
    assert_int_equal(dp_node_restore_exchange(node, row.id.bytes, dp_view_of(bytes, 20)),
                     DP_BADMSG);
    assert_int_equal(dp_node_restore_exchange(node, other, view), DP_BADMSG);
    for (uint32_t i = 0; i < DP_MIX_ROWS_MAX; i++) {
        assert_int_equal(dp_node_restore_exchange(node, row.id.bytes, view), DP_OK);
    }
    assert_int_equal(dp_node_restore_exchange(node, row.id.bytes, view), DP_TOOBIG);
    dp_node_close(node);
    kit_close(world);
}

static void peers_met_before_come_back_until_the_table_is_full_and_then_the_first_goes(void **state)
{
    kit_world *world = kit_open(1);
    uint8_t credential[KIT_CREDENTIAL];
    dp_node_config config = kit_config(world, 0, credential);
    const dp_addr addr = {.family = 4, .port = 1};
    dp_node *node = NULL;

    (void)state;
    config.members_max = 3;
    assert_int_equal(dp_node_open(&node, &config), DP_OK);
    for (uint32_t i = 1; i <= 3 + DP_GUESTS_MAX; i++) {
        const dp_peer peer = kit_peer(i);
        assert_int_equal(dp_node_restore_peer(node, &peer, &addr, 1), DP_OK);
    }
    const dp_peer first = kit_peer(1);
    assert_int_equal(dp_members_count(node->members), 3 + DP_GUESTS_MAX);
    assert_int_equal(dp_members_find(node->members, &first), DP_MEMBER_NONE);
    for (uint32_t i = 0; i < dp_members_count(node->members); i++) {
        ((dp_member *)(uintptr_t)dp_members_at(node->members, i))->in_roster = true;
    }
    assert_int_equal(dp_node_restore_peer(node, &first, &addr, 1), DP_TOOBIG); /* Of the run all. */
    dp_node_close(node);
    kit_close(world);
}

/* In a run of parts, and of the rows alone the one that another peer has now. */
static void a_row_that_another_peer_gets_brings_nothing_of_the_one_before(void **state)
{
    kit_world *world = kit_open(1);
    uint8_t credential[KIT_CREDENTIAL];
    dp_node_config config = kit_config(world, 0, credential);
    const dp_addr addr = {.family = 4, .port = 1};
    const uint32_t rows = 3 + DP_GUESTS_MAX;
    dp_node *node = NULL;

    (void)state;
    world->manifest.codec = DP_CODEC_INT8;
    world->manifest.reduce = DP_REDUCE_PARTS;
    world->manifest.trust = DP_TRUST_MEMBERS;
    config.members_max = 3;
    assert_int_equal(dp_node_open(&node, &config), DP_OK);
    for (uint32_t i = 1; i < rows; i++) {
        const dp_peer peer = kit_peer(i);
        assert_int_equal(dp_node_restore_peer(node, &peer, &addr, 1), DP_OK);
    }
    for (uint32_t i = 0; i < rows; i++) {
        node->parts->site.near[i / 64] |= 1ULL << (i % 64);
        node->round->missed[i] = 1;
        node->round->gave_way[i] = true;
        node->mix->seen[i] = (dp_time){.us = 1};
    }
    const dp_peer next = kit_peer(rows);
    assert_int_equal(dp_node_restore_peer(node, &next, &addr, 1), DP_OK);
    const uint32_t at = dp_node_member_index(node, &next);
    assert_int_not_equal(at, DP_MEMBER_NONE);
    for (uint32_t i = 0; i < rows; i++) {
        assert_int_equal(dp_part_site_near(node->parts, i), i != at);
        assert_int_equal(node->round->missed[i], i != at);
        assert_int_equal(node->round->gave_way[i], i != at);
        assert_int_equal(node->mix->seen[i].us, i != at);
    }
    dp_node_close(node);
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_no_node_is_opened_and_none_leaks),
        cmocka_unit_test(a_configuration_that_cannot_be_is_refused),
        cmocka_unit_test(a_node_without_credential_opens_and_admits_by_certificates),
        cmocka_unit_test(records_come_back_in_order_each_in_its_slot),
        cmocka_unit_test(a_record_or_certificate_that_is_damaged_is_not_taken_back),
        cmocka_unit_test(a_record_that_admits_by_a_credential_that_does_not_hold_is_not_taken_back),
        cmocka_unit_test(a_fork_comes_back_only_with_its_signature_and_without_seals),
        cmocka_unit_test(a_vote_row_that_cannot_be_read_costs_the_key),
        cmocka_unit_test(a_vote_row_that_contradicts_itself_is_refused),
        cmocka_unit_test(a_pending_row_that_cannot_be_read_or_is_anothers_is_refused),
        cmocka_unit_test(a_proof_row_that_cannot_be_read_is_refused_and_halts_nobody),
        cmocka_unit_test(of_two_forks_on_the_disk_the_other_must_be_one),
        cmocka_unit_test(an_exchange_row_that_cannot_be_read_or_is_one_too_many_is_refused),
        cmocka_unit_test(
            peers_met_before_come_back_until_the_table_is_full_and_then_the_first_goes),
        cmocka_unit_test(a_row_that_another_peer_gets_brings_nothing_of_the_one_before),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
