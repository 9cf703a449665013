/* One slot decided by voters that crash, lose messages and bid against each other. */
#include <stdlib.h>

#include "base/rng.h"
#include "gossip/core/msg.h"
#include "gossip/vote/commit.h"
#include "tests/unit/gossip/kit/chain_kit.h"

enum { NODES = 5, MAIL_MAX = 400 };

typedef struct mail {
    uint32_t to;
    size_t size;
    uint8_t *bytes;
} mail;

typedef struct voter {
    uint32_t index;
    struct world *world;
    dp_commit *commit;
    bool up;
    uint32_t op;  /* of the write under way */
    uint8_t *row; /* being written */
    size_t row_size;
    uint8_t *disk; /* durable */
    size_t disk_size;
    uint32_t ops;
    dp_verdict verdict;
    bool blank; /* has no own value */
} voter;

typedef struct world {
    uint32_t n;
    dp_ledger ledger;
    voter voters[NODES];
    mail mails[MAIL_MAX];
    uint32_t n_mails;
    uint32_t proofs;
    dp_hash chosen; /* by any certificate */
    bool has_chosen;
    dp_rng rng;
    dp_hash by_ballot[64]; /* one record per ballot in all votes sent */
    bool ballot_used[64];
} world;

static dp_verdict judge(void *context, dp_view record)
{
    const voter *self = context;

    assert_true(record.size > 0);
    return self->verdict;
}

static size_t value(void *context, uint8_t *out)
{
    const voter *self = context;

    if (self->blank) {
        return 0;
    }
    memset(out, (int)(1 + self->index), 100);
    out[0] = (uint8_t)(self->world->n_mails & 0xff); /* Another value at another time. */
    return 100;
}

static void send(void *context, uint32_t to, dp_view message)
{
    voter *self = context;
    world *all = self->world;
    dp_vote_msg msg;

    assert_int_not_equal(to, self->index);
    assert_int_equal(dp_vote_msg_read(message, &msg), DP_OK);
    if (msg.vote.type == DP_MSG_ACCEPTED || msg.vote.type == DP_MSG_PROPOSE) {
        assert_true(msg.vote.ballot < 64);
        if (all->ballot_used[msg.vote.ballot]) {
            assert_true(dp_hash_equal(&all->by_ballot[msg.vote.ballot], &msg.vote.hash));
        }
        all->ballot_used[msg.vote.ballot] = true;
        all->by_ballot[msg.vote.ballot] = msg.vote.hash;
    }
    if (all->n_mails == MAIL_MAX) {
        return; /* Lost. */
    }
    mail *item = &all->mails[all->n_mails++];
    item->to = to;
    item->size = message.size;
    item->bytes = malloc(message.size);
    assert_non_null(item->bytes);
    memcpy(item->bytes, message.data, message.size);
}

static uint32_t store(void *context, uint64_t slot, dp_view row)
{
    voter *self = context;

    assert_int_equal(slot, 1);
    assert_int_equal(self->op, 0);
    memcpy(self->row, row.data, row.size);
    self->row_size = row.size;
    self->op = ++self->ops;
    return self->op;
}

static void proof(void *context, const dp_vote *a, const dp_vote *b)
{
    voter *self = context;

    assert_false(dp_hash_equal(&a->hash, &b->hash));
    self->world->proofs++;
}

static void boot(world *all, uint32_t index)
{
    voter *self = &all->voters[index];
    const dp_commit_host host = {.context = self,
                                 .judge = judge,
                                 .value = value,
                                 .send = send,
                                 .store = store,
                                 .proof = proof};
    const dp_crypto crypto = kit_crypto(index);
    const dp_peer peer = kit_peer(index);
    uint8_t key[DP_PUBLIC_KEY_BYTES];

    kit_vote_key(index, key);
    dp_commit_init(self->commit, &host, &crypto, &all->ledger.run, key);
    self->op = 0;
    self->up = true;
    if (self->disk_size > 0) {
        assert_int_equal(dp_commit_restore(self->commit, dp_view_of(self->disk, self->disk_size)),
                         DP_OK);
    }
    dp_commit_begin(self->commit, &all->ledger, &peer);
}

static world *make(uint32_t n, uint64_t seed)
{
    world *all = calloc(1, sizeof *all);

    assert_non_null(all);
    kit_ledger(&all->ledger);
    kit_voters(&all->ledger, n);
    all->n = n;
    dp_rng_init(&all->rng, seed);
    for (uint32_t i = 0; i < n; i++) {
        voter *self = &all->voters[i];
        *self = (voter){.index = i, .world = all, .verdict = DP_VERDICT_YES};
        self->commit = calloc(1, sizeof *self->commit);
        self->row = malloc(DP_COMMIT_ROW_MAX);
        self->disk = malloc(DP_COMMIT_ROW_MAX);
        assert_true(self->commit != NULL && self->row != NULL && self->disk != NULL);
        boot(all, i);
    }
    return all;
}

static void destroy(world *all)
{
    for (uint32_t i = 0; i < all->n; i++) {
        free(all->voters[i].commit);
        free(all->voters[i].row);
        free(all->voters[i].disk);
    }
    for (uint32_t i = 0; i < all->n_mails; i++) {
        free(all->mails[i].bytes);
    }
    dp_ledger_close(&all->ledger);
    free(all);
}

static void look(world *all, uint32_t index)
{
    const dp_commit *commit = all->voters[index].commit;
    dp_why why;

    assert_int_equal(dp_commit_check(commit, &why), DP_OK);
    if (!commit->decided) {
        return;
    }
    assert_true(dp_cert_verify(&commit->cert, &commit->crypto, &all->ledger.run, &all->ledger.fork,
                               1, &all->ledger.head, &commit->outcome.hash, all->ledger.voters,
                               all->n));
    if (all->has_chosen) {
        assert_true(dp_hash_equal(&all->chosen, &commit->outcome.hash));
    }
    all->has_chosen = true;
    all->chosen = commit->outcome.hash;
}

static void finish_write(world *all, uint32_t index, dp_time now, dp_status status)
{
    voter *self = &all->voters[index];
    const uint32_t op = self->op;

    if (op == 0) {
        return;
    }
    if (status == DP_OK) {
        memcpy(self->disk, self->row, self->row_size);
        self->disk_size = self->row_size;
    }
    self->op = 0;
    assert_true(dp_commit_stored(self->commit, now, op, status));
    look(all, index);
}

static void deliver(world *all, uint32_t at, dp_time now, bool keep)
{
    mail item = all->mails[at];
    dp_vote_msg msg;

    if (!keep) {
        all->mails[at] = all->mails[--all->n_mails];
    }
    if (all->voters[item.to].up) {
        assert_int_equal(dp_vote_msg_read(dp_view_of(item.bytes, item.size), &msg), DP_OK);
        const dp_status status = dp_commit_message(all->voters[item.to].commit, now, &msg);
        assert_true(status == DP_OK);
        look(all, item.to);
    }
    if (!keep) {
        free(item.bytes);
    }
}

/* Delivers and writes everything in order, until there is no progress. */
static void settle(world *all, dp_time now)
{
    bool moved = true;

    while (moved) {
        moved = false;
        for (uint32_t i = 0; i < all->n; i++) {
            if (all->voters[i].up && all->voters[i].op != 0) {
                finish_write(all, i, now, DP_OK);
                moved = true;
            }
        }
        if (all->n_mails > 0) {
            deliver(all, 0, now, false);
            moved = true;
        }
    }
}

static const dp_time t0 = {.us = 1000000};

static void ballot_zero_of_its_owner_decides_without_prepare(void **state)
{
    world *all = make(3, 1);
    const uint32_t owner = dp_commit_owner(all->voters[0].commit, 0);

    (void)state;
    assert_true(dp_commit_propose(all->voters[owner].commit, t0));
    settle(all, t0);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(all->voters[i].commit->decided);
        assert_int_equal(all->voters[i].commit->cert.ballot, 0);
    }
    destroy(all);
}

static void a_single_voter_decides_alone(void **state)
{
    world *all = make(1, 1);

    (void)state;
    assert_true(dp_commit_propose(all->voters[0].commit, t0));
    assert_false(all->voters[0].commit->decided);
    settle(all, t0);
    assert_true(all->voters[0].commit->decided);
    destroy(all);
}

static void nobody_but_the_owner_uses_ballot_zero(void **state)
{
    world *all = make(3, 1);
    const uint32_t owner = dp_commit_owner(all->voters[0].commit, 0);

    (void)state;
    assert_false(dp_commit_propose(all->voters[(owner + 1) % 3].commit, t0));
    destroy(all);
}

static void nothing_leaves_before_the_own_accept_is_durable(void **state)
{
    world *all = make(3, 1);
    const uint32_t owner = dp_commit_owner(all->voters[0].commit, 0);

    (void)state;
    assert_true(dp_commit_propose(all->voters[owner].commit, t0));
    assert_int_equal(all->n_mails, 0);
    finish_write(all, owner, t0, DP_OK);
    assert_true(all->n_mails > 0);
    destroy(all);
}

static void an_accept_is_told_only_when_it_is_durable(void **state)
{
    world *all = make(3, 1);
    const uint32_t owner = dp_commit_owner(all->voters[0].commit, 0);

    (void)state;
    assert_true(dp_commit_propose(all->voters[owner].commit, t0));
    finish_write(all, owner, t0, DP_OK);
    while (all->n_mails > 0) {
        deliver(all, 0, t0, false);
    }
    assert_int_equal(all->n_mails, 0); /* Writes of the others are under way. */
    for (uint32_t i = 0; i < 3; i++) {
        assert_false(all->voters[i].commit->decided);
    }
    settle(all, t0);
    assert_true(all->voters[owner].commit->decided);
    destroy(all);
}

static void a_failed_write_is_not_spoken_of(void **state)
{
    world *all = make(3, 1);
    const uint32_t owner = dp_commit_owner(all->voters[0].commit, 0);

    (void)state;
    assert_true(dp_commit_propose(all->voters[owner].commit, t0));
    finish_write(all, owner, t0, DP_NOSPACE);
    assert_int_equal(all->n_mails, 0);
    assert_true(dp_commit_bid(all->voters[owner].commit, t0)); /* Another ballot. */
    settle(all, t0);
    assert_true(all->voters[owner].commit->decided);
    destroy(all);
}

static void a_bidder_takes_over_what_may_have_been_chosen(void **state)
{
    world *all = make(3, 1);
    const uint32_t owner = dp_commit_owner(all->voters[0].commit, 0);
    const uint32_t next = dp_commit_owner(all->voters[0].commit, 1);
    const uint32_t third = dp_commit_owner(all->voters[0].commit, 2);

    (void)state;
    assert_true(dp_commit_propose(all->voters[owner].commit, t0));
    finish_write(all, owner, t0, DP_OK);
    /* Only the third voter gets it and accepts, and the owner dies. */
    for (uint32_t i = all->n_mails; i-- > 0;) {
        if (all->mails[i].to == third &&
            dp_msg_type_of(dp_view_of(all->mails[i].bytes, 2)) == DP_MSG_PROPOSE) {
            deliver(all, i, t0, false);
        }
    }
    const dp_hash first = all->voters[owner].commit->state.hash;
    finish_write(all, third, t0, DP_OK);
    for (uint32_t i = 0; i < all->n_mails; i++) {
        free(all->mails[i].bytes);
    }
    all->n_mails = 0;
    all->voters[owner].up = false;
    assert_true(dp_commit_bid(all->voters[next].commit, t0));
    settle(all, t0);
    assert_true(all->voters[next].commit->decided);
    assert_true(dp_hash_equal(&all->voters[next].commit->outcome.hash, &first));
    destroy(all);
}

static void a_promise_survives_a_crash(void **state)
{
    world *all = make(3, 1);
    const uint32_t owner = dp_commit_owner(all->voters[0].commit, 0);
    const uint32_t next = dp_commit_owner(all->voters[0].commit, 1);
    const uint32_t third = dp_commit_owner(all->voters[0].commit, 2);

    (void)state;
    assert_true(dp_commit_bid(all->voters[next].commit, t0));
    finish_write(all, next, t0, DP_OK);
    for (uint32_t i = all->n_mails; i-- > 0;) {
        if (all->mails[i].to == third) {
            deliver(all, i, t0, false);
        }
    }
    finish_write(all, third, t0, DP_OK);
    boot(all, third);
    assert_int_equal(all->voters[third].commit->state.promised, 1);
    assert_true(dp_commit_propose(all->voters[owner].commit, t0));
    finish_write(all, owner, t0, DP_OK);
    for (uint32_t i = all->n_mails; i-- > 0;) {
        if (all->mails[i].to == third) {
            deliver(all, i, t0, false);
        }
    }
    assert_int_equal(all->voters[third].commit->state.accepted, -1);
    destroy(all);
}

static void a_blob_that_is_missing_delays_the_accept(void **state)
{
    world *all = make(3, 1);
    const uint32_t owner = dp_commit_owner(all->voters[0].commit, 0);
    const uint32_t next = dp_commit_owner(all->voters[0].commit, 1);

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        all->voters[i].verdict = i == owner ? DP_VERDICT_YES : DP_VERDICT_LATER;
    }
    assert_true(dp_commit_propose(all->voters[owner].commit, t0));
    settle(all, t0);
    assert_false(all->voters[owner].commit->decided);
    all->voters[next].verdict = DP_VERDICT_YES;
    dp_commit_poke(all->voters[next].commit, t0);
    settle(all, t0);
    assert_true(all->voters[owner].commit->decided);
    destroy(all);
}

static void a_restored_backup_does_not_vote_again(void **state)
{
    world *all = make(3, 1);
    const uint32_t owner = dp_commit_owner(all->voters[0].commit, 0);
    const uint32_t next = dp_commit_owner(all->voters[0].commit, 1);
    dp_vote vote;

    (void)state;
    assert_true(dp_commit_propose(all->voters[owner].commit, t0));
    settle(all, t0);
    assert_true(dp_commit_echo(all->voters[owner].commit, next, &vote));
    all->voters[next].disk_size = 0; /* The vote row of before, and the same key. */
    boot(all, next);
    const dp_vote_msg echo = {.vote = vote};
    assert_int_equal(dp_commit_message(all->voters[next].commit, t0, &echo), DP_OK);
    assert_true(all->voters[next].commit->key_lost);
    assert_false(dp_commit_bid(all->voters[next].commit, t0));
    destroy(all);
}

static void a_row_that_does_not_parse_ends_voting(void **state)
{
    world *all = make(3, 1);
    const uint8_t junk[10] = {1, 2, 3};

    (void)state;
    assert_int_not_equal(dp_commit_restore(all->voters[0].commit, dp_view_of(junk, sizeof junk)),
                         DP_OK);
    assert_false(dp_commit_bid(all->voters[0].commit, t0));
    destroy(all);
}

/* Counts the mail of this type, which is lost with all other mail. */
static uint32_t lose(world *all, dp_msg_type type)
{
    uint32_t count = 0;

    for (; all->n_mails > 0; all->n_mails--) {
        const mail *item = &all->mails[all->n_mails - 1];
        count += dp_msg_type_of(dp_view_of(item->bytes, item->size)) == type ? 1 : 0;
        free(item->bytes);
    }
    return count;
}

static void a_proposal_of_ballot_zero_that_was_lost_is_sent_again(void **state)
{
    const dp_time later = dp_time_after(t0, DP_COMMIT_RESEND_US);
    world *all = make(3, 1);
    voter *owner = &all->voters[dp_commit_owner(all->voters[0].commit, 0)];

    (void)state;
    assert_true(dp_commit_propose(owner->commit, t0));
    finish_write(all, owner->index, t0, DP_OK);
    assert_true(lose(all, DP_MSG_PROPOSE) > 0);
    dp_commit_poke(owner->commit, (dp_time){.us = later.us - 1});
    assert_int_equal(all->n_mails, 0);
    dp_commit_poke(owner->commit, later);
    assert_int_equal(all->n_mails, 2);
    settle(all, later);
    assert_true(owner->commit->decided);
    destroy(all);
}

static void only_those_who_have_not_promised_are_asked_again(void **state)
{
    const dp_time later = dp_time_after(t0, DP_COMMIT_RESEND_US);
    world *all = make(5, 1);
    const uint32_t bidder = dp_commit_owner(all->voters[0].commit, 1);
    const uint32_t other = (bidder + 1) % 5;

    (void)state;
    assert_true(dp_commit_bid(all->voters[bidder].commit, t0));
    finish_write(all, bidder, t0, DP_OK);
    for (uint32_t i = all->n_mails; i-- > 0;) {
        if (all->mails[i].to == other) {
            deliver(all, i, t0, false);
        }
    }
    assert_int_equal(lose(all, DP_MSG_PREPARE), 3);
    finish_write(all, other, t0, DP_OK);
    assert_int_equal(all->n_mails, 1); /* Its promise, the second of five. */
    deliver(all, 0, t0, false);
    assert_int_equal(all->voters[bidder].commit->phase, DP_COMMIT_PREPARING);
    dp_commit_poke(all->voters[bidder].commit, later);
    assert_int_equal(all->n_mails, 3);
    for (uint32_t i = 0; i < all->n_mails; i++) {
        assert_int_not_equal(all->mails[i].to, other);
    }
    settle(all, later);
    assert_true(all->voters[bidder].commit->decided);
    destroy(all);
}

/* One random move. */
static void move(world *all, dp_time now)
{
    const uint32_t who = (uint32_t)dp_rng_below(&all->rng, all->n);
    voter *self = &all->voters[who];

    switch (dp_rng_below(&all->rng, 12)) {
    case 0:
        if (self->up) {
            (void)dp_commit_bid(self->commit, now);
        }
        break;
    case 1:
        if (self->up) {
            (void)dp_commit_propose(self->commit, now);
        }
        break;
    case 2: /* Crash; the write under way may have reached the disk. */
        if (dp_rng_below(&all->rng, 3) == 0) {
            if (self->up && self->op != 0 && dp_rng_below(&all->rng, 2) == 0) {
                memcpy(self->disk, self->row, self->row_size);
                self->disk_size = self->row_size;
            }
            boot(all, who);
        }
        break;
    case 3:
        if (self->up) {
            dp_commit_poke(self->commit, now);
        }
        break;
    case 4:
    case 5:
    case 6:
        if (self->up) {
            finish_write(all, who, now, dp_rng_below(&all->rng, 20) == 0 ? DP_IO : DP_OK);
        }
        break;
    case 7:
        if (all->n_mails > 0) { /* A copy comes, the message stays. */
            deliver(all, (uint32_t)dp_rng_below(&all->rng, all->n_mails), now, true);
        }
        break;
    case 8:
        if (all->n_mails > 0) {
            const uint32_t at = (uint32_t)dp_rng_below(&all->rng, all->n_mails);
            free(all->mails[at].bytes);
            all->mails[at] = all->mails[--all->n_mails];
        }
        break;
    default:
        if (all->n_mails > 0) {
            deliver(all, (uint32_t)dp_rng_below(&all->rng, all->n_mails), now, false);
        }
        break;
    }
    look(all, who);
}

static void random_schedules_never_choose_two_records(void **state)
{
    uint32_t chosen = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        world *all = make(seed % 3 == 0 ? 5 : 3, seed);
        dp_time now = t0;
        for (uint32_t i = 0; i < 300; i++) {
            now = dp_time_after(now, 50 * DP_MS);
            bool high = false;
            for (uint32_t k = 0; k < all->n; k++) {
                high = high || all->voters[k].commit->seen > 50;
            }
            if (high) {
                break;
            }
            move(all, now);
        }
        assert_int_equal(all->proofs, 0);
        chosen += all->has_chosen ? 1 : 0;
        destroy(all);
    }
    /* Otherwise the schedules decide too few slots for a meaningful test. */
    assert_true(chosen > 150);
}

/* A voter cannot choose a slot, a chain or a run in which it is first. */
static void the_order_of_the_ballots_is_another_in_another_slot_fork_or_run(void **state)
{
    static dp_commit commit;
    dp_ledger ledger;
    const dp_crypto crypto = kit_crypto(0);
    const dp_commit_host host = {0};
    const dp_peer self = kit_peer(0);
    uint32_t orders[5][DP_VOTERS_MAX];

    (void)state;
    kit_ledger(&ledger);
    kit_voters(&ledger, DP_VOTERS_MAX);
    for (uint32_t i = 0; i < 5; i++) {
        dp_run_id run = ledger.run;
        run.bytes[31] ^= i == 1;
        ledger.fork.bytes[31] ^= i == 2;
        ledger.slot += i == 3;
        dp_commit_init(&commit, &host, &crypto, &run, NULL);
        dp_commit_begin(&commit, &ledger, &self);
        memcpy(orders[i], commit.order, sizeof orders[i]);
        ledger.fork.bytes[31] ^= i == 2;
        ledger.slot -= i == 3;
        for (uint32_t k = 0; k < i; k++) { /* The last is the first again. */
            assert_int_equal(memcmp(orders[i], orders[k], sizeof orders[i]) == 0, i == 4 && k == 0);
        }
    }
    dp_ledger_close(&ledger);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ballot_zero_of_its_owner_decides_without_prepare),
        cmocka_unit_test(a_single_voter_decides_alone),
        cmocka_unit_test(nobody_but_the_owner_uses_ballot_zero),
        cmocka_unit_test(nothing_leaves_before_the_own_accept_is_durable),
        cmocka_unit_test(an_accept_is_told_only_when_it_is_durable),
        cmocka_unit_test(a_failed_write_is_not_spoken_of),
        cmocka_unit_test(a_bidder_takes_over_what_may_have_been_chosen),
        cmocka_unit_test(a_promise_survives_a_crash),
        cmocka_unit_test(a_blob_that_is_missing_delays_the_accept),
        cmocka_unit_test(a_restored_backup_does_not_vote_again),
        cmocka_unit_test(a_row_that_does_not_parse_ends_voting),
        cmocka_unit_test(a_proposal_of_ballot_zero_that_was_lost_is_sent_again),
        cmocka_unit_test(only_those_who_have_not_promised_are_asked_again),
        cmocka_unit_test(random_schedules_never_choose_two_records),
        cmocka_unit_test(the_order_of_the_ballots_is_another_in_another_slot_fork_or_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
