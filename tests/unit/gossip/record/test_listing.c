/* Lists of contributions: exact bytes, one form; all other bytes are refused. */
#include "gossip/record/listing.h"

#include <stdlib.h>

#include "base/rng.h"
#include "gossip/ledger/valid.h"
#include "tests/unit/gossip/kit/chain_kit.h"

static dp_listed rows[DP_LIST_ROWS_MAX];
static dp_listed back[DP_LIST_ROWS_MAX];
static uint8_t room[DP_LIST_BYTES_MAX + 1];
static uint8_t whole_room[DP_RECORD_WHOLE_MAX];
static dp_record record;
static dp_record again;

static dp_peer peer_of(uint32_t number)
{
    return (dp_peer){{(uint8_t)(number >> 8), (uint8_t)number, 1}};
}

static dp_view list_of(uint32_t n)
{
    dp_writer writer = dp_writer_of(room, sizeof room);

    for (uint32_t i = 0; i < n; i++) {
        rows[i] = (dp_listed){.peer = peer_of(i),
                              .root = {{(uint8_t)i, 2}},
                              .bytes = 100 + i,
                              .tokens = 1000,
                              .carried = i,
                              .reach = {.leased = 7, .own = i},
                              .steps = 3,
                              .loss_micro = 5,
                              .energy = (unsigned __int128)i << 70,
                              .w = 9,
                              .clip = 65536,
                              .q = i};
    }
    dp_listing_write(&writer, rows, n);
    assert_false(writer.full);
    return dp_view_of(room, writer.size);
}

/* A record of so many contributions, all of them in lists; its whole form. */
static dp_view record_of(uint32_t n)
{
    dp_view bytes;

    memset(&record, 0, sizeof record);
    record.kind = DP_RECORD_ROUND;
    record.slot = 3;
    record.round = 2;
    record.in_lists = true;
    record.n_state = 2;
    record.state[1].voter = 1;
    record.n_late = 1;
    record.late[0] = peer_of(5000);
    record.n_listed = n;
    for (uint32_t i = 0; i < n; i++) {
        record.listed[i] = (dp_listed){.peer = peer_of(i), .bytes = 1 + i, .q = i};
    }
    assert_int_equal(dp_record_encode(&record, whole_room, sizeof whole_room, &bytes), DP_OK);
    return bytes;
}

static void a_list_comes_back_as_it_was(void **state)
{
    uint32_t n = 0;

    (void)state;
    for (uint32_t rows_of = 1; rows_of <= DP_LIST_ROWS_MAX; rows_of++) {
        const dp_view bytes = list_of(rows_of);
        assert_int_equal(bytes.size, dp_listing_bytes(rows_of));
        assert_int_equal(dp_listing_read(bytes, back, &n), DP_OK);
        assert_int_equal(n, rows_of);
        assert_true(back[n - 1].energy == rows[n - 1].energy);
        assert_int_equal(back[n - 1].reach.own, rows[n - 1].reach.own);
        assert_true(dp_peer_equal(&back[n - 1].peer, &rows[n - 1].peer));
    }
}

/* A change of these bytes is another version of records. */
static void the_bytes_of_a_list_are_these(void **state)
{
    static const uint8_t golden[] = {0xfa, 0x80, 0x2c, 0x75, 0xb8, 0xa1, 0x01, 0x5b};
    const dp_hash hash = dp_listing_hash(list_of(3));

    (void)state;
    assert_int_equal(DP_LIST_ROW_BYTES, 208);
    assert_memory_equal(hash.bytes, golden, sizeof golden);
}

static void every_shorter_or_longer_list_is_refused(void **state)
{
    const dp_view bytes = list_of(4);
    uint32_t n = 0;

    (void)state;
    for (size_t size = 0; size < bytes.size; size++) {
        uint8_t *exact = malloc(size + 1);
        assert_non_null(exact);
        memcpy(exact, bytes.data, size);
        assert_int_equal(dp_listing_read(dp_view_of(exact, size), back, &n), DP_BADMSG);
        free(exact);
    }
    assert_int_equal(dp_listing_read(dp_view_of(room, bytes.size + 1), back, &n), DP_BADMSG);
    room[0]++;
    assert_int_equal(dp_listing_read(bytes, back, &n), DP_VERSION);
    room[0]--;
    room[1] = 0;
    assert_int_equal(dp_listing_read(bytes, back, &n), DP_BADMSG);
    room[1] = DP_LIST_ROWS_MAX + 1;
    assert_int_equal(dp_listing_read(bytes, back, &n), DP_BADMSG);
}

static void rows_that_do_not_rise_are_refused(void **state)
{
    uint32_t n = 0;

    (void)state;
    (void)list_of(3);
    rows[2].peer = rows[1].peer;
    dp_writer writer = dp_writer_of(room, sizeof room);
    dp_listing_write(&writer, rows, 3);
    assert_int_equal(dp_listing_read(dp_view_of(room, writer.size), back, &n), DP_BADMSG);
}

static void a_record_with_lists_comes_back_whole(void **state)
{
    static const uint32_t counts[] = {1, 31, 32, 33, 64, 65, 1000, DP_LISTED_MAX};
    static uint8_t second[DP_RECORD_WHOLE_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        dp_view copy;
        const dp_view bytes = record_of(counts[i]);
        const dp_view voted = dp_record_voted(bytes);
        assert_true(voted.size < 2000);
        assert_int_equal(dp_record_decode(&again, bytes), DP_OK);
        assert_int_equal(again.n_listed, counts[i]);
        assert_int_equal(again.listed[counts[i] - 1].q, counts[i] - 1);
        assert_int_equal(again.n_late, 1);
        assert_int_equal(dp_record_encode(&again, second, sizeof second, &copy), DP_OK);
        assert_true(dp_view_equal(bytes, copy));
        /* The voted form names the same record. */
        const dp_hash whole = dp_record_hash(bytes);
        const dp_hash of_voted = dp_record_hash(voted);
        assert_true(dp_hash_equal(&whole, &of_voted));
        assert_int_equal(dp_record_decode(&again, voted), DP_AGAIN);
        assert_int_equal(again.n_listed, counts[i]);
        assert_int_equal(again.slot, 3);
    }
}

static void a_voted_form_tells_its_lists(void **state)
{
    dp_hash hashes[DP_LISTS_MAX];
    uint32_t n = 0;

    (void)state;
    const dp_view bytes = record_of(70);
    const dp_view voted = dp_record_voted(bytes);
    assert_int_equal(dp_record_lists(voted, hashes, &n), DP_OK);
    assert_int_equal(n, 3);
    const size_t full = dp_listing_bytes(DP_LIST_ROWS_MAX);
    const dp_hash second = dp_listing_hash(dp_view_of(bytes.data + voted.size + full, full));
    assert_true(dp_hash_equal(&hashes[1], &second));
    assert_int_equal(dp_record_lists(bytes, hashes, &n), DP_OK);
    assert_int_equal(n, 0); /* It is whole. */
}

static void every_cut_of_a_record_with_lists_is_refused(void **state)
{
    (void)state;
    const dp_view bytes = record_of(40);
    const size_t voted = dp_record_voted(bytes).size;

    for (size_t size = 0; size < bytes.size; size++) {
        uint8_t *exact = malloc(size + 1);
        assert_non_null(exact);
        memcpy(exact, bytes.data, size);
        const dp_status status = dp_record_decode(&again, dp_view_of(exact, size));
        assert_true(size == voted ? status == DP_AGAIN : status != DP_OK);
        free(exact);
    }
}

static void a_damaged_record_with_lists_has_one_form_or_none(void **state)
{
    static uint8_t second[DP_RECORD_WHOLE_MAX];
    dp_rng rng;

    (void)state;
    dp_rng_init(&rng, 7);
    const dp_view bytes = record_of(40);
    uint8_t *copy = malloc(bytes.size);
    assert_non_null(copy);
    for (int i = 0; i < 3000; i++) {
        dp_view out;
        memcpy(copy, bytes.data, bytes.size);
        /* Most of the damage where it is not noticed by the hash of a list alone. */
        const size_t most = i % 4 == 0 ? bytes.size : dp_record_voted(bytes).size;
        for (uint64_t k = 0; k <= dp_rng_below(&rng, 3); k++) {
            copy[dp_rng_below(&rng, most)] ^= (uint8_t)(1U << dp_rng_below(&rng, 8));
        }
        if (dp_record_decode(&again, dp_view_of(copy, bytes.size)) == DP_OK) {
            assert_int_equal(dp_record_encode(&again, second, sizeof second, &out), DP_OK);
            assert_true(dp_view_equal(out, dp_view_of(copy, bytes.size)));
        }
    }
    memcpy(copy, bytes.data, bytes.size);
    copy[bytes.size - 1] ^= 1;
    assert_int_equal(dp_record_decode(&again, dp_view_of(copy, bytes.size)), DP_BADHASH);
    free(copy);
}

static void peers_must_rise_from_list_to_list(void **state)
{
    dp_view bytes;

    (void)state;
    (void)record_of(64);
    const dp_listed last = record.listed[31];
    record.listed[31] = record.listed[32];
    record.listed[32] = last;
    assert_int_equal(dp_record_encode(&record, whole_room, sizeof whole_room, &bytes), DP_OK);
    assert_int_equal(dp_record_decode(&again, bytes), DP_BADMSG);
}

static void a_list_of_another_version_is_refused_though_the_record_names_it(void **state)
{
    const dp_view bytes = record_of(33);
    const size_t voted = dp_record_voted(bytes).size;
    const dp_view list = dp_view_of(whole_room + voted, dp_listing_bytes(DP_LIST_ROWS_MAX));
    const dp_hash before = dp_listing_hash(list);
    uint8_t *const named = memmem(whole_room, voted, before.bytes, sizeof before.bytes);

    (void)state;
    assert_non_null(named);
    whole_room[voted] = DP_LIST_VERSION + 1;
    assert_int_equal(dp_record_decode(&again, bytes), DP_BADHASH);
    const dp_hash after = dp_listing_hash(list);
    memcpy(named, after.bytes, sizeof after.bytes);
    assert_int_equal(dp_record_decode(&again, bytes), DP_VERSION);
}

static void the_largest_record_with_lists_fits(void **state)
{
    dp_view bytes;
    static uint8_t credential[DP_CREDENTIAL_MAX];

    (void)state;
    (void)record_of(DP_LISTED_MAX);
    record.n_state = DP_VOTERS_MAX;
    record.n_late = DP_LATE_MAX;
    record.has_config = true;
    record.config.n_admits = DP_CONFIG_ADMIT_MAX;
    for (uint32_t i = 0; i < DP_CONFIG_ADMIT_MAX; i++) {
        record.config.admits[i].credential = dp_view_of(credential, sizeof credential);
    }
    assert_int_equal(dp_record_encode(&record, whole_room, sizeof whole_room, &bytes), DP_OK);
    assert_true(dp_record_voted(bytes).size < DP_RECORD_BYTES_MAX);
    assert_int_equal(dp_record_encode(&record, whole_room, bytes.size - 1, &bytes), DP_TOOBIG);
}

static void only_a_run_that_permits_more_has_lists(void **state)
{
    dp_ledger ledger;
    dp_admitted admitted[DP_CONFIG_ADMIT_MAX];
    const dp_crypto crypto = kit_crypto(0);
    const dp_admission admission = kit_admission();
    const dp_valid valid = {
        .ledger = &ledger, .crypto = &crypto, .admission = &admission, .admitted = admitted};
    const char *cause = "";

    (void)state;
    kit_ledger(&ledger);
    kit_round(&ledger, &record);
    (void)kit_list(&ledger, &record, 0, 1000, 10, 77);
    dp_valid_fill(&ledger, &record);
    assert_int_equal(dp_valid_record(&valid, &record, &cause), DP_OK);
    record.in_lists = true;
    assert_int_equal(dp_valid_record(&valid, &record, &cause), DP_DENIED);
    ledger.listed_max = 64;
    assert_true(dp_ledger_lists(&ledger));
    assert_int_equal(dp_valid_record(&valid, &record, &cause), DP_OK);
    record.in_lists = false;
    assert_int_equal(dp_valid_record(&valid, &record, &cause), DP_DENIED);
    dp_ledger_close(&ledger);
}

/* A ledger of so many members, and a record that lists them all. */
static void list_members(dp_ledger *ledger, uint32_t n)
{
    static uint32_t indexes[DP_LISTED_MAX];

    kit_ledger(ledger);
    ledger->listed_max = DP_LISTED_MAX;
    for (uint32_t i = 1; i < n; i++) {
        const dp_peer peer = kit_peer(i);
        dp_hash key;
        memcpy(key.bytes, peer.bytes, sizeof key.bytes);
        assert_int_equal(dp_map_put(&ledger->map, &key, ledger->n_roster), DP_OK);
        ledger->roster[ledger->n_roster++] = (dp_roster_entry){.peer = peer, .caps = DP_CAP_ALL};
        ledger->n_members++;
    }
    kit_round(ledger, &record);
    record.in_lists = true;
    for (uint32_t i = 0; i < n; i++) {
        dp_listed *listed = &record.listed[record.n_listed++];
        indexes[i] = i;
        const dp_crypto crypto = {.context = &indexes[i], .sign = kit_sign, .verify = kit_verify};
        *listed = (dp_listed){.peer = kit_peer(i),
                              .root = {{(uint8_t)i, 9}},
                              .bytes = 100,
                              .tokens = 1000,
                              .reach = {.own = 1U << 30},
                              .steps = 10,
                              .energy = 77};
        dp_ready ready = dp_ready_of_listed(&record, listed);
        assert_true(dp_ready_sign(&ready, &crypto, &ledger->run, &ledger->fork));
        memcpy(listed->signature, ready.signature, sizeof listed->signature);
    }
    dp_valid_fill(ledger, &record);
}

static void a_forged_row_of_a_later_list_is_refused(void **state)
{
    enum { MEMBERS = 40 };
    dp_ledger ledger;
    dp_admitted admitted[DP_CONFIG_ADMIT_MAX];
    const dp_crypto crypto = kit_crypto(0);
    const dp_admission admission = kit_admission();
    const dp_valid valid = {
        .ledger = &ledger, .crypto = &crypto, .admission = &admission, .admitted = admitted};
    const char *cause = "";

    (void)state;
    list_members(&ledger, MEMBERS);
    assert_int_equal(dp_valid_record(&valid, &record, &cause), DP_OK);
    /* Each has its share of the whole, and all of them are applied. */
    assert_true(record.w_total == (unsigned __int128)MEMBERS * record.listed[0].w);
    record.listed[MEMBERS - 2].signature[0] ^= 1;
    assert_int_equal(dp_valid_record(&valid, &record, &cause), DP_BADSIG);
    record.listed[MEMBERS - 2].signature[0] ^= 1;
    record.listed[MEMBERS - 1].q++;
    assert_int_equal(dp_valid_record(&valid, &record, &cause), DP_DENIED);
    record.listed[MEMBERS - 1].q--;
    const dp_hash hash = {{1}};
    dp_ledger_apply(&ledger, &record, &hash, admitted);
    assert_int_equal(ledger.roster[MEMBERS - 1].included, ledger.round);
    dp_ledger_close(&ledger);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_comes_back_as_it_was),
        cmocka_unit_test(the_bytes_of_a_list_are_these),
        cmocka_unit_test(every_shorter_or_longer_list_is_refused),
        cmocka_unit_test(rows_that_do_not_rise_are_refused),
        cmocka_unit_test(a_record_with_lists_comes_back_whole),
        cmocka_unit_test(a_voted_form_tells_its_lists),
        cmocka_unit_test(every_cut_of_a_record_with_lists_is_refused),
        cmocka_unit_test(a_damaged_record_with_lists_has_one_form_or_none),
        cmocka_unit_test(peers_must_rise_from_list_to_list),
        cmocka_unit_test(a_list_of_another_version_is_refused_though_the_record_names_it),
        cmocka_unit_test(the_largest_record_with_lists_fits),
        cmocka_unit_test(only_a_run_that_permits_more_has_lists),
        cmocka_unit_test(a_forged_row_of_a_later_list_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
