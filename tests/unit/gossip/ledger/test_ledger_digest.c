/* Two ledgers that differ in anything that members must agree on have unlike digests. */
#include <stddef.h>
#include <stdio.h>

#include "gossip/ledger/ledger.h"
#include "tests/lib/check.h"

typedef struct field {
    const char *name;
    size_t offset;
    size_t size;
} field;

#define FIELD(type, name)                                                                          \
    {                                                                                              \
#name, offsetof(type, name), sizeof(((type *)0)->name)                                     \
    }

enum { MEMBERS = 2 };

static dp_ledger ledger;
static dp_roster_entry roster[MEMBERS];

static void open_sample(void)
{
    ledger = (dp_ledger){.has_before = true,
                         .slot = 9,
                         .round = 8,
                         .n_voters = 2,
                         .n_roster = MEMBERS,
                         .n_members = MEMBERS,
                         .roster = roster,
                         .judges_invites = true,
                         .n_revoked = 1,
                         .pool = {.n = 1},
                         .pace = {.bounded = true},
                         .density = {.densest = 4, .sparsest = 64},
                         .epoch = {.epoch = 1}};
    memset(roster, 0, sizeof roster);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        roster[i].lease.n = 1;
        roster[i].strict = true;
    }
}

static void every_byte_counts(uint8_t *at, const field *fields, size_t n)
{
    const dp_hash before = dp_ledger_digest(&ledger);

    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < fields[i].size; k++) {
            at[fields[i].offset + k] ^= 0x10;
            const dp_hash after = dp_ledger_digest(&ledger);
            if (dp_hash_equal(&before, &after)) {
                fail_msg("%s is not in the digest", fields[i].name);
            }
            at[fields[i].offset + k] ^= 0x10;
        }
    }
    const dp_hash again = dp_ledger_digest(&ledger);
    assert_true(dp_hash_equal(&before, &again));
}

static void the_digest_covers_the_state_of_the_chain(void **state)
{
    static const field fields[] = {
        FIELD(dp_ledger, run),
        FIELD(dp_ledger, fork),
        FIELD(dp_ledger, slot),
        FIELD(dp_ledger, head),
        FIELD(dp_ledger, time_ms),
        FIELD(dp_ledger, round),
        FIELD(dp_ledger, base),
        FIELD(dp_ledger, base_before),
        FIELD(dp_ledger, state_before),
        FIELD(dp_ledger, tokens),
        FIELD(dp_ledger, clip_median),
        FIELD(dp_ledger, pace.speed),
        FIELD(dp_ledger, voters[0].peer),
        FIELD(dp_ledger, voters[0].key),
        FIELD(dp_ledger, voters[1].peer),
        FIELD(dp_ledger, voters[1].key),
        FIELD(dp_ledger, pool.cursor),
        FIELD(dp_ledger, pool.lost),
        FIELD(dp_ledger, pool.ranges[0].first),
        FIELD(dp_ledger, pool.ranges[0].count),
        FIELD(dp_ledger, revoked[0].id),
        FIELD(dp_ledger, epoch.epoch),
        FIELD(dp_ledger, epoch.commitment),
        FIELD(dp_ledger, density.keep),
        FIELD(dp_ledger, density.before),
        FIELD(dp_ledger, density.n_slow),
        FIELD(dp_ledger, density.n_free),
    };

    (void)state;
    open_sample();
    every_byte_counts((uint8_t *)&ledger, fields, sizeof fields / sizeof fields[0]);
}

static void the_digest_covers_the_state_of_a_member(void **state)
{
    static const field fields[] = {
        FIELD(dp_roster_entry, peer),
        FIELD(dp_roster_entry, caps),
        FIELD(dp_roster_entry, invite),
        FIELD(dp_roster_entry, admitted_slot),
        FIELD(dp_roster_entry, admitted_round),
        FIELD(dp_roster_entry, included),
        FIELD(dp_roster_entry, touched),
        FIELD(dp_roster_entry, w),
        FIELD(dp_roster_entry, counted_ms),
        FIELD(dp_roster_entry, owed),
        FIELD(dp_roster_entry, owed_round),
        FIELD(dp_roster_entry, fenced),
        FIELD(dp_roster_entry, gone),
        FIELD(dp_roster_entry, lease.reach.leased),
        FIELD(dp_roster_entry, lease.reach.own),
        FIELD(dp_roster_entry, lease.granted),
        FIELD(dp_roster_entry, lease.ranges[0].first),
        FIELD(dp_roster_entry, lease.ranges[0].count),
    };

    (void)state;
    open_sample();
    for (uint32_t i = 0; i < MEMBERS; i++) {
        every_byte_counts((uint8_t *)&roster[i], fields, sizeof fields / sizeof fields[0]);
    }
}

static void the_state_root_names_round_vector_and_ledger(void **state)
{
    const dp_hash one = {.bytes = {1}};
    const dp_hash two = {.bytes = {2}};
    const dp_hash root = dp_state_root(5, &one, &two);
    const dp_hash others[] = {dp_state_root(6, &one, &two), dp_state_root(5, &two, &two),
                              dp_state_root(5, &one, &one), dp_state_root(5, &two, &one)};

    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_false(dp_hash_equal(&root, &others[i]));
    }
}

/* Members of other builds compute it too, so no build may compute another one. */
static void the_digest_of_a_known_ledger_stays_what_it_is(void **state)
{
    char text[2 * sizeof(dp_hash) + 1];

    (void)state;
    open_sample();
    const dp_hash digest = dp_ledger_digest(&ledger);
    for (size_t i = 0; i < sizeof digest.bytes; i++) {
        snprintf(text + 2 * i, 3, "%02x", digest.bytes[i]);
    }
    assert_string_equal(text, "b85fb1143134db803d73cc837bd2d560e7d67cc24e8970942f40aac8f6172284");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_digest_covers_the_state_of_the_chain),
        cmocka_unit_test(the_digest_covers_the_state_of_a_member),
        cmocka_unit_test(the_state_root_names_round_vector_and_ledger),
        cmocka_unit_test(the_digest_of_a_known_ledger_stays_what_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
