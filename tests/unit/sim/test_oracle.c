#include "tests/lib/check.h"

#include "gossip/core/msg.h"
#include "gossip/vote/commit_msg.h"
#include "tests/sim/oracle_internal.h"

/* A world of three voters that stands still. */
static void open_world(dp_sim *sim)
{
    const dp_sim_options options = {.seed = 7, .nodes = 3, .faults = 0, .trace = -1};

    CHECK_OK(dp_sim_open(sim, &options));
    dp_slot_book *slot = dp_oracle_slot(sim, 1);
    slot->n_voters = 3;
    for (uint32_t i = 0; i < 3; i++) {
        slot->voters[i] = sim->hosts[i].peer;
    }
}

static dp_hash named(uint8_t mark)
{
    dp_hash hash = {{0}};

    hash.bytes[0] = mark;
    return hash;
}

static void say_with(dp_sim *sim, uint8_t type, uint32_t voter, uint32_t ballot, uint32_t accepted,
                     uint8_t mark, const dp_vote *just)
{
    static uint8_t bytes[DP_VOTE_MESSAGE_MAX];
    dp_vote_msg msg = {0};
    dp_writer w = dp_writer_of(bytes, sizeof bytes);
    uint8_t record[4] = {mark, 0, 0, 0};

    msg.vote.type = type;
    msg.vote.voter = (uint8_t)voter;
    msg.vote.slot = 1;
    msg.vote.prev = sim->run;
    msg.vote.ballot = ballot;
    msg.vote.accepted = accepted;
    if (type == DP_MSG_PROPOSE || type == DP_MSG_ACCEPTED) {
        msg.vote.hash = dp_record_hash(dp_view_of(record, sizeof record));
    } else if (accepted != 0) {
        msg.vote.hash = dp_record_hash(dp_view_of(record, sizeof record));
        msg.record = dp_view_of(record, sizeof record);
    }
    if (type == DP_MSG_PROPOSE) {
        msg.record = dp_view_of(record, sizeof record);
    }
    if (just != NULL) {
        msg.n_just = 1;
        msg.just[0] = *just;
    }
    dp_vote_msg_write(&w, &msg);
    CHECK(!w.full);
    dp_oracle_sent(&sim->hosts[voter], dp_view_of(bytes, w.size));
}

static void say(dp_sim *sim, uint8_t type, uint32_t voter, uint32_t ballot, uint32_t accepted,
                uint8_t mark)
{
    say_with(sim, type, voter, ballot, accepted, mark, NULL);
}

static void two_records_in_one_ballot_are_noticed(void **state)
{
    static dp_sim sim;

    (void)state;
    open_world(&sim);
    say(&sim, DP_MSG_PROPOSE, 0, 0, 0, 1);
    say(&sim, DP_MSG_PROPOSE, 0, 0, 0, 1);
    assert_string_equal(sim.failure.invariant, "");
    say(&sim, DP_MSG_PROPOSE, 1, 0, 0, 2);
    assert_string_equal(sim.failure.invariant, "V3");
    dp_sim_close(&sim);
}

static void an_accept_below_a_promise_is_noticed_and_a_repeated_one_is_not(void **state)
{
    static dp_sim sim;

    (void)state;
    open_world(&sim);
    say(&sim, DP_MSG_ACCEPTED, 1, 0, 0, 1);
    say(&sim, DP_MSG_PROMISE, 1, 3, 1, 1);
    say(&sim, DP_MSG_ACCEPTED, 1, 0, 0, 1);
    assert_string_equal(sim.failure.invariant, "");
    say(&sim, DP_MSG_PROMISE, 2, 3, 0, 0);
    say(&sim, DP_MSG_ACCEPTED, 2, 0, 0, 1);
    assert_string_equal(sim.failure.invariant, "V2");
    dp_sim_close(&sim);
}

static void a_promise_that_hides_an_accept_is_noticed(void **state)
{
    static dp_sim sim;

    (void)state;
    open_world(&sim);
    say(&sim, DP_MSG_ACCEPTED, 1, 0, 0, 1);
    say(&sim, DP_MSG_PROMISE, 1, 2, 0, 0);
    assert_string_equal(sim.failure.invariant, "V1");
    dp_sim_close(&sim);
}

static void two_formable_certificates_are_noticed(void **state)
{
    static dp_sim sim;

    (void)state;
    open_world(&sim);
    say(&sim, DP_MSG_ACCEPTED, 0, 0, 0, 1);
    say(&sim, DP_MSG_ACCEPTED, 1, 0, 0, 1);
    say(&sim, DP_MSG_ACCEPTED, 2, 1, 0, 2);
    assert_string_equal(sim.failure.invariant, "");
    say(&sim, DP_MSG_ACCEPTED, 1, 1, 0, 2);
    assert_string_equal(sim.failure.invariant, "S1");
    dp_sim_close(&sim);
}

static void a_proposal_against_its_own_promises_is_noticed(void **state)
{
    static dp_sim sim;
    const dp_vote just = {.type = DP_MSG_PROMISE,
                          .voter = 1,
                          .slot = 1,
                          .ballot = 1,
                          .accepted = 1,
                          .hash = named(9)};

    (void)state;
    open_world(&sim);
    say_with(&sim, DP_MSG_PROPOSE, 0, 1, 0, 1, &just);
    assert_string_equal(sim.failure.invariant, "V2");
    dp_sim_close(&sim);
}

static dp_action mix_of(const dp_sim *sim, uint8_t own, uint8_t other, uint64_t w_own,
                        uint64_t w_other)
{
    dp_action action = {.type = DP_DO_MIX};

    (void)sim;
    memset(action.u.mix.exchange, 3, sizeof action.u.mix.exchange);
    action.u.mix.own_root = named(own);
    action.u.mix.other_root = named(other);
    action.u.mix.weight_own = w_own;
    action.u.mix.weight_other = w_other;
    action.u.mix.damp = 65536;
    return action;
}

static void an_exchange_that_makes_displacement_is_noticed(void **state)
{
    static dp_sim sim;
    dp_toy_vector up = {200};
    dp_toy_vector down = {-100};
    dp_toy_vector wrong = {-50};

    (void)state;
    open_world(&sim);
    dp_action a = mix_of(&sim, 1, 2, 10, 20);
    dp_action b = mix_of(&sim, 2, 1, 20, 10);
    dp_oracle_mixed(&sim.hosts[0], &a, up);
    dp_oracle_mixed(&sim.hosts[1], &b, down);
    dp_oracle_mixed(&sim.hosts[1], &b, down);
    assert_string_equal(sim.failure.invariant, "");
    a.u.mix.exchange[0] = 4;
    b.u.mix.exchange[0] = 4;
    dp_oracle_mixed(&sim.hosts[0], &a, up);
    dp_oracle_mixed(&sim.hosts[1], &b, wrong);
    assert_string_equal(sim.failure.invariant, "S14");
    dp_sim_close(&sim);
}

static void a_publication_taken_back_and_counted_is_noticed(void **state)
{
    static dp_sim sim;
    const dp_hash root = named(5);

    (void)state;
    open_world(&sim);
    dp_oracle_published(&sim.hosts[1], &root);
    const dp_toy_outcome left_out = {.settle = DP_SETTLE_LEFT_OUT};
    dp_oracle_settled(&sim.hosts[1], &root, &left_out, 1);
    static dp_record record;
    record.round = 2;
    record.listed[0] = (dp_listed){.peer = sim.hosts[1].peer, .root = root};
    dp_oracle_listed(&sim, &record, 0);
    assert_string_equal(sim.failure.invariant, "S3");
    dp_sim_close(&sim);
}

static void two_publications_for_one_round_are_noticed(void **state)
{
    static dp_sim sim;
    dp_ready ready = {.round = 4, .root = named(1)};

    (void)state;
    open_world(&sim);
    ready.peer = sim.hosts[2].peer;
    dp_oracle_ready(&sim.hosts[2], &ready);
    dp_oracle_ready(&sim.hosts[2], &ready);
    assert_string_equal(sim.failure.invariant, "");
    ready.root = named(2);
    dp_oracle_ready(&sim.hosts[2], &ready);
    assert_string_equal(sim.failure.invariant, "B4");
    dp_sim_close(&sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_records_in_one_ballot_are_noticed),
        cmocka_unit_test(an_accept_below_a_promise_is_noticed_and_a_repeated_one_is_not),
        cmocka_unit_test(a_promise_that_hides_an_accept_is_noticed),
        cmocka_unit_test(two_formable_certificates_are_noticed),
        cmocka_unit_test(a_proposal_against_its_own_promises_is_noticed),
        cmocka_unit_test(an_exchange_that_makes_displacement_is_noticed),
        cmocka_unit_test(a_publication_taken_back_and_counted_is_noticed),
        cmocka_unit_test(two_publications_for_one_round_are_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
