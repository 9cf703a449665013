/* The audit of a chain: good ones hold, and each thing that may be wrong with one is found. */
#include "gossip/audit.h"
#include "gossip/msg.h"
#include "tests/unit/gossip/chain_kit.h"

enum { RECORDS = 24, MEMBERS = 3 };

/* Records as a store has them. */
typedef struct row {
    uint8_t record[8192];
    size_t size;
    uint8_t cert[DP_CERT_OF_RECORD_BYTES_MAX];
    size_t cert_size;
    dp_hash hash;
} row;

static row rows[RECORDS + 1]; /* by slot */
static dp_ledger ledger;
static dp_record record;

static void seal(row *out)
{
    const dp_crypto crypto = kit_crypto(0);
    dp_cert_of_record cert = {.n = 1};
    dp_view bytes;

    assert_int_equal(dp_record_encode(&record, out->record, sizeof out->record, &bytes), DP_OK);
    out->size = bytes.size;
    out->hash = dp_record_hash(bytes);
    dp_vote vote = {.type = DP_MSG_ACCEPTED,
                    .fork = record.fork,
                    .slot = record.slot,
                    .prev = record.prev,
                    .hash = out->hash};
    assert_true(dp_vote_sign(&vote, &crypto, &ledger.run));
    memcpy(cert.seals[0].signature, vote.signature, sizeof vote.signature);
    assert_int_equal(dp_cert_of_record_encode(&cert, out->cert, sizeof out->cert, &bytes), DP_OK);
    out->cert_size = bytes.size;
}

static void list(uint32_t index, dp_reach reach, uint64_t samples)
{
    const dp_crypto crypto = kit_crypto(index);
    dp_listed *listed =
        kit_list(&ledger, &record, index, samples * ledger.context, 10, 100 + index);

    listed->reach = reach;
    listed->root = dp_hash_of("test/blob", dp_view_of(&reach, sizeof reach));
    listed->root.bytes[0] = (uint8_t)index;
    dp_ready ready = dp_ready_of_listed(&record, listed);
    assert_true(dp_ready_sign(&ready, &crypto, &ledger.run, &ledger.fork));
    memcpy(listed->signature, ready.signature, sizeof listed->signature);
}

/* The founder votes; 1 and 2 come with the first record; each goes on in its lease by ten, and passes over two of them. */
static void make_round(void)
{
    static uint8_t credentials[MEMBERS][KIT_CREDENTIAL];
    dp_admitted admitted[DP_CONFIG_ADMIT_MAX] = {0};

    kit_round(&ledger, &record);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        const dp_peer peer = kit_peer(i);
        const dp_lease *lease = dp_ledger_lease(&ledger, &peer);
        if (lease == NULL || lease->granted == 0) {
            list(i, (dp_reach){.own = 10}, 8);
        } else {
            list(i, (dp_reach){.leased = lease->reach.leased + 10, .own = lease->reach.own}, 8);
        }
        if (lease == NULL) {
            dp_admit *admit = &record.config.admits[record.config.n_admits];
            admit->peer = peer;
            admit->credential = kit_credential(i, DP_CAP_TRAIN, 0, 1, credentials[i]);
            admitted[record.config.n_admits++] = (dp_admitted){.caps = DP_CAP_TRAIN};
            memset(admitted[record.config.n_admits - 1].invite.bytes, 1, DP_INVITE_ID_BYTES);
            record.has_config = true;
        }
    }
    dp_valid_fill(&ledger, &record);
    row *out = &rows[record.slot];
    seal(out);
    dp_ledger_apply(&ledger, &record, &out->hash, admitted);
}

static int setup(void **state)
{
    (void)state;
    kit_ledger(&ledger);
    for (uint32_t i = 0; i < RECORDS; i++) {
        make_round();
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    dp_ledger_close(&ledger);
    return 0;
}

/* Feeds records 1..RECORDS until one cannot be judged. */
static dp_audit *audited(dp_audit_view *view)
{
    const dp_manifest manifest = kit_manifest();
    const dp_audit_config config = {.manifest = &manifest,
                                    .run = kit_run(),
                                    .crypto = kit_crypto(0),
                                    .admission = kit_admission()};
    dp_audit *audit = NULL;

    assert_int_equal(dp_audit_open(&audit, &config), DP_OK);
    for (uint32_t slot = 1; slot <= RECORDS; slot++) {
        const row *r = &rows[slot];
        if (dp_audit_record(audit, slot, &r->hash, dp_view_of(r->record, r->size),
                            dp_view_of(r->cert, r->cert_size)) != DP_OK) {
            break;
        }
    }
    dp_audit_look(audit, view);
    return audit;
}

static void a_good_chain_holds_and_is_counted(void **state)
{
    dp_audit_view view;
    dp_audit *audit = audited(&view);

    (void)state;
    assert_int_equal(view.n_findings, 0);
    assert_int_equal(view.records, RECORDS);
    assert_int_equal(view.rounds, RECORDS);
    assert_int_equal(view.members, MEMBERS);
    assert_int_equal(view.count.counted, RECORDS * MEMBERS);
    assert_int_equal(view.count.samples, RECORDS * MEMBERS * 8);
    assert_int_equal(view.count.leased + view.count.own, RECORDS * MEMBERS * 10);
    assert_int_equal(view.count.own, MEMBERS * 10);
    assert_int_equal(view.count.twice, 0);
    assert_true(view.granted >= view.count.leased);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        dp_audit_member_view member;
        dp_audit_member(audit, i, &member);
        assert_int_equal(member.count.counted, RECORDS);
        assert_int_equal(member.count.own, 10);
        assert_false(member.gone);
    }
    dp_audit_close(audit);
    dp_audit_close(NULL);
}

static void the_first_wrong_record_is_named_and_ends_it(void **state)
{
    (void)state;
    for (uint32_t slot = 1; slot <= RECORDS; slot += 7) {
        for (uint32_t what = 0; what < 4; what++) {
            const row good = rows[slot];
            dp_audit_view view;
            rows[slot].record[what == 0 ? 120 : 4] ^= what < 2 ? 1 : 0;
            rows[slot].cert[rows[slot].cert_size - 1] ^= what == 2 ? 1 : 0;
            rows[slot].hash.bytes[0] ^= what == 3 ? 1 : 0;
            dp_audit *audit = audited(&view);
            assert_int_equal(view.n_findings, 1);
            assert_int_equal(view.findings[0].slot, slot);
            assert_int_equal(view.records, slot - 1);
            dp_audit_close(audit);
            rows[slot] = good;
        }
    }
}

/* Voters agreed on a record that no honest one would have accepted. */
static void a_certified_record_that_counts_samples_again_is_found(void **state)
{
    dp_audit_view view;
    const row good = rows[RECORDS];

    (void)state;
    assert_int_equal(
        dp_record_decode(&record, dp_view_of(rows[RECORDS].record, rows[RECORDS].size)), DP_OK);
    record.listed[1].reach.leased -= 15; /* Ten that the round before counted, and five more. */
    dp_ready ready = dp_ready_of_listed(&record, &record.listed[1]);
    const dp_crypto crypto = kit_crypto(1);
    assert_true(dp_ready_sign(&ready, &crypto, &ledger.run, &ledger.fork));
    memcpy(record.listed[1].signature, ready.signature, sizeof ready.signature);
    seal(&rows[RECORDS]);
    dp_audit *audit = audited(&view);
    assert_int_equal(view.n_findings, 1);
    assert_int_equal(view.findings[0].slot, RECORDS);
    assert_string_equal(view.findings[0].text, "samples outside of a lease");
    dp_audit_close(audit);
    rows[RECORDS] = good;
}

static void a_missing_record_is_found(void **state)
{
    dp_audit_view view;
    const row good = rows[5];

    (void)state;
    rows[5] = rows[6];
    dp_audit *audit = audited(&view);
    assert_int_equal(view.n_findings, 1);
    assert_int_equal(view.findings[0].slot, 5);
    dp_audit_close(audit);
    rows[5] = good;
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_good_chain_holds_and_is_counted),
        TEST(the_first_wrong_record_is_named_and_ends_it),
        TEST(a_certified_record_that_counts_samples_again_is_found),
        TEST(a_missing_record_is_found),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
