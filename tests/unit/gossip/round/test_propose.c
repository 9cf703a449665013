/* Conditions for a voter to accept a record that is valid by the chain (its blobs are here and
 * decode, its time has come), and for the records that it proposes itself. */
#include "gossip/context/context.h"
#include "gossip/round/round.h"
#include "gossip/round/round_msg.h"
#include "tests/unit/gossip/kit/node_kit.h"

/* Three voters; node 2's blobs cannot be fetched, so the round waits for it, with two contributions
 * at hand. */
typedef struct scene {
    kit_world *world;
    dp_node *node; /* the judging node: node 0 */
    uint8_t record[DP_RECORD_BYTES_MAX];
    size_t size; /* of the record that node 1 would propose */
} scene;

static scene *open_scene(void)
{
    scene *at = calloc(1, sizeof *at);

    assert_non_null(at);
    at->world = kit_together(3);
    at->world->nodes[2].mute_blobs = true;
    at->node = at->world->nodes[0].node;
    for (uint32_t i = 0; i < 1000 && at->size == 0; i++) {
        kit_run_ms(at->world, KIT_STEP_MS);
        const dp_node *other = at->world->nodes[1].node;
        if (dp_round_held(at->node, NULL) == 2 && dp_round_held(other, NULL) == 2 &&
            at->node->ledger.slot == other->ledger.slot && !at->node->commit->decided) {
            at->size = dp_round_value(at->world->nodes[1].node, at->record);
        }
    }
    assert_true(at->size > 0);
    return at;
}

static void close_scene(scene *at)
{
    kit_close(at->world);
    free(at);
}

/* As if it were asked for the first time. */
static dp_verdict judge(scene *at)
{
    static dp_actions actions;

    dp_out_begin(&at->node->out, &actions);
    at->node->round->judged = (dp_hash){{0}};
    return dp_round_judge(at->node, dp_view_of(at->record, at->size));
}

static void nothing_is_accepted_before_its_blobs_are_here_and_decode(void **state)
{
    scene *at = open_scene();
    const dp_peer author = kit_peer(1);

    (void)state;
    dp_claim *claim = dp_round_claim_of(at->node, &author);
    assert_non_null(claim);
    const dp_claim good = *claim;
    assert_int_equal(judge(at), DP_VERDICT_YES);
    claim->checked = false;
    assert_int_equal(judge(at), DP_VERDICT_LATER);
    *claim = good;
    claim->held = false;
    assert_int_equal(judge(at), DP_VERDICT_LATER);
    *claim = good;
    claim->bad = true;
    assert_int_equal(judge(at), DP_VERDICT_NO);
    *claim = good;
    claim->energy++;
    assert_int_equal(judge(at), DP_VERDICT_NO);
    *claim = good;
    claim->size++;
    assert_int_equal(judge(at), DP_VERDICT_NO);
    *claim = good;
    assert_int_equal(judge(at), DP_VERDICT_YES);
    /* It knows none of them yet; it will learn of them from the record. */
    at->node->round->n_claims = 0;
    dp_round_index_claims(at->node);
    assert_int_equal(judge(at), DP_VERDICT_LATER);
    assert_int_equal(at->node->round->n_claims, 2);
    close_scene(at);
}

/* The record with another time. */
static void set_time(scene *at, uint64_t time_ms)
{
    static dp_record record;
    dp_view bytes;

    assert_int_equal(dp_record_decode(&record, dp_view_of(at->record, at->size)), DP_OK);
    record.time_ms = time_ms;
    assert_int_equal(dp_record_encode(&record, at->record, sizeof at->record, &bytes), DP_OK);
    assert_true(bytes.data == at->record);
    at->size = bytes.size;
}

static void a_record_from_the_future_waits_and_not_for_ever(void **state)
{
    scene *at = open_scene();
    const uint64_t agreed_ms = dp_heartbeat_agreed_ms(&at->node->beat, at->node->now);
    const uint64_t here_ms = at->node->wall_ms > agreed_ms ? at->node->wall_ms : agreed_ms;

    (void)state;
    assert_true(here_ms > at->node->ledger.time_ms);
    set_time(at, here_ms + DP_RECORD_SKEW_MS);
    assert_int_equal(judge(at), DP_VERDICT_YES);
    set_time(at, here_ms + DP_RECORD_SKEW_MS + 1);
    assert_int_equal(judge(at), DP_VERDICT_LATER);
    at->node->wall_ms = here_ms + 1; /* Its time has come. */
    assert_int_equal(judge(at), DP_VERDICT_YES);
    set_time(at, here_ms + 100 * DP_RECORD_SKEW_MS);
    assert_int_equal(judge(at), DP_VERDICT_LATER);
    at->node->now = dp_time_after(at->node->round->ahead_since, DP_RECORD_PATIENCE_US - 1);
    assert_int_equal(judge(at), DP_VERDICT_LATER);
    at->node->now =
        dp_time_after(at->node->now, 1); /* It may be the only one that can be decided. */
    assert_int_equal(judge(at), DP_VERDICT_YES);
    close_scene(at);
}

static void an_update_that_too_few_voters_hold_is_not_proposed(void **state)
{
    scene *at = open_scene();
    const dp_peer author = kit_peer(1);
    uint8_t room[DP_RECORD_BYTES_MAX];
    uint32_t chosen[DP_CLAIMS_MAX];

    (void)state;
    for (uint32_t i = 0; i < at->node->round->n_claims; i++) {
        at->node->round->claims[i].have = 0;
    }
    assert_int_equal(dp_round_held(at->node, chosen),
                     0); /* Itself alone is no majority of three. */
    assert_int_equal(dp_round_value(at->node, room), 0);
    dp_claim *claim = dp_round_claim_of(at->node, &author);
    claim->have = 1U << ((at->node->commit->self + 1) % 3);
    assert_int_equal(dp_round_held(at->node, chosen), 1);
    assert_true(dp_round_value(at->node, room) > 0);
    dp_claim *other = dp_round_claim_of(at->node, &at->node->self);
    other->have =
        /* A majority holds each, but no majority holds both. */
        1U << ((at->node->commit->self + 2) % 3);
    assert_int_equal(dp_round_held(at->node, chosen), 1);
    claim->bad = true;
    other->checked = false;
    assert_int_equal(dp_round_held(at->node, chosen), 0);
    close_scene(at);
}

/* By a member in the name of a voter: the round would be proposed with a blob that no majority
 * has. */
static void nobody_else_says_what_a_voter_holds(void **state)
{
    scene *at = open_scene();
    const dp_peer author = kit_peer(1);
    const dp_peer liar = kit_peer(2);
    dp_claim *claim = dp_round_claim_of(at->node, &author);
    dp_have_msg have = {.voter = kit_peer(1), .round = at->node->ledger.round + 1, .n = 1};
    uint8_t bytes[DP_ROUND_MESSAGE_MAX];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);

    (void)state;
    have.roots[0] = claim->ready.root;
    claim->have = 0;
    dp_have_msg_write(&writer, &have);
    const dp_view message = dp_view_of(bytes, writer.size);
    assert_int_equal(dp_round_message(at->node, DP_MSG_HAVE, message, &liar), DP_BADSIG);
    assert_int_equal(dp_round_message(at->node, DP_MSG_HAVE, message, NULL), DP_BADSIG);
    assert_int_equal(claim->have, 0);
    close_scene(at);
}

/* A HAVE of a node that does not vote, or of another round, sets no bit. */
static void only_voters_say_what_voters_hold(void **state)
{
    scene *at = open_scene();
    const dp_peer author = kit_peer(1);
    dp_claim *claim = dp_round_claim_of(at->node, &author);
    dp_have_msg have = {.voter = kit_peer(9), .round = at->node->ledger.round + 1, .n = 1};
    uint8_t bytes[DP_ROUND_MESSAGE_MAX];

    (void)state;
    have.roots[0] = claim->ready.root;
    claim->have = 0;
    for (uint32_t i = 0; i < 3; i++) {
        dp_writer writer = dp_writer_of(bytes, sizeof bytes);
        dp_have_msg_write(&writer, &have);
        assert_int_equal(
            dp_round_message(at->node, DP_MSG_HAVE, dp_view_of(bytes, writer.size), &have.voter),
            DP_OK);
        assert_int_equal(claim->have,
                         i < 2 ? 0 : 1U << dp_ledger_voter(&at->node->ledger, &have.voter));
        have.voter = kit_peer(1);
        have.round += i == 0 ? 1 : 0;
        have.round -= i == 1 ? 1 : 0;
    }
    close_scene(at);
}

static uint32_t rejections(const dp_actions *actions)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < actions->count; i++) {
        n += actions->items[i].type == DP_DO_NOTE &&
             actions->items[i].u.note.code == DP_NOTE_REJECTED;
    }
    return n;
}

/* A voter may send what it likes: this one says no, why, and says so once. */
static void a_record_that_does_not_decode_or_may_not_follow_is_refused_once_by_name(void **state)
{
    static dp_actions actions;
    scene *at = open_scene();
    dp_node *node = at->node;

    (void)state;
    for (uint32_t what = 0; what < 3; what++) {
        const size_t size = at->size;
        if (what == 1) {
            set_time(at, node->ledger.time_ms - 1);
        } else if (what == 2) {
            at->size--;
        }
        const dp_view bytes = dp_view_of(at->record, at->size);
        node->round->judged = (dp_hash){{0}};
        for (uint32_t turn = 0; turn < 2; turn++) {
            dp_out_begin(&node->out, &actions);
            assert_int_equal(dp_round_judge(node, bytes),
                             what == 0 ? DP_VERDICT_YES : DP_VERDICT_NO);
            assert_int_equal(rejections(&actions), what > 0 && turn == 0 ? 1 : 0);
        }
        at->size = size;
    }
    close_scene(at);
}

/* Node 2 was admitted before node 1; of the round node 0 knows its own update alone. */
static void members_that_are_not_listed_are_late_in_order_of_peer_unless_they_are_away(void **state)
{
    static uint8_t out[DP_RECORD_BYTES_MAX];
    static dp_actions actions;
    kit_world *world = kit_open(3);
    dp_node *node = world->nodes[0].node;
    dp_round *round = node->round;
    const dp_peer one = kit_peer(1);
    const dp_peer two = kit_peer(2);

    (void)state;
    kit_link(world, 0, 2);
    kit_drain(world);
    kit_run_ms(world, 3000);
    kit_link_all(world);
    kit_run_ms(world, 3000);
    assert_true(dp_ledger_find(&node->ledger, &one) > dp_ledger_find(&node->ledger, &two));
    world->nodes[1].mute_blobs = world->nodes[2].mute_blobs = true; /* No round ends. */
    for (uint32_t i = 0; i < 1000 && dp_round_claim_of(node, &node->self) == NULL; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    assert_non_null(dp_round_claim_of(node, &node->self));
    dp_claim own = *dp_round_claim_of(node, &node->self);
    own.held = own.checked = true;
    own.have = 7;
    dp_member *member =
        (dp_member *)(uintptr_t)dp_members_at(node->members, dp_node_member_index(node, &one));
    const dp_member_state states[] = {DP_MEMBER_ALIVE, DP_MEMBER_SUSPECT, DP_MEMBER_DEAD,
                                      DP_MEMBER_LEFT};
    for (uint32_t what = 0; what < 5; what++) {
        const dp_member_state before = member->state;
        round->claims[0] = own;
        round->n_claims = 1;
        if (what < 4) {
            member->state = states[what];
        } else { /* Its update is here, too. */
            round->claims[1] = own;
            round->claims[1].ready.peer = one;
            round->claims[1].ready.root.bytes[0] ^= 1;
            round->claims[1].ready.reach = (dp_reach){
                .leased = dp_ledger_lease(&node->ledger, &one)->reach.leased,
                .own = dp_ledger_lease(&node->ledger, &one)->reach.own + own.ready.steps};
            round->n_claims = 2;
        }
        dp_round_index_claims(node);
        dp_out_begin(&node->out, &actions);
        (void)dp_round_value(node, out);
        member->state = before;
        const dp_record *draft = &node->draft;
        assert_int_equal(draft->n_listed, what == 4 ? 2 : 1);
        assert_int_equal(draft->n_late, what < 2 ? 2 : 1);
        assert_true(dp_peer_equal(&draft->late[draft->n_late - 1], &two));
        assert_true(what >= 2 || dp_peer_equal(&draft->late[0], &one));
    }
    round->n_claims = 0;
    dp_round_index_claims(node);
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_accepted_before_its_blobs_are_here_and_decode),
        cmocka_unit_test(a_record_from_the_future_waits_and_not_for_ever),
        cmocka_unit_test(an_update_that_too_few_voters_hold_is_not_proposed),
        cmocka_unit_test(only_voters_say_what_voters_hold),
        cmocka_unit_test(nobody_else_says_what_a_voter_holds),
        cmocka_unit_test(a_record_that_does_not_decode_or_may_not_follow_is_refused_once_by_name),
        cmocka_unit_test(
            members_that_are_not_listed_are_late_in_order_of_peer_unless_they_are_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
