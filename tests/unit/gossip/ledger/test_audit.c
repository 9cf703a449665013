/* The audit of a chain: good ones hold, and each thing that may be wrong with one is found. */
#include "gossip/core/msg.h"
#include "gossip/ledger/audit.h"
#include "tests/lib/allocfail.h"
#include "tests/unit/gossip/kit/chain_kit.h"

enum { RECORDS = 24, MORE = 40, MEMBERS = 3 };

/* Records as a store has them. */
typedef struct row {
    uint8_t record[8192];
    size_t size;
    uint8_t cert[DP_CERT_OF_RECORD_BYTES_MAX];
    size_t cert_size;
    dp_hash hash;
} row;

static row rows[RECORDS + MORE + 1]; /* by slot; most tests take RECORDS of them */
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

/* The founder votes; the first record admits 1 and 2; each of the first n advances by ten in its
 * lease, and skips two samples. */
static void make_round(uint32_t n)
{
    static uint8_t credentials[MEMBERS][KIT_CREDENTIAL];
    dp_admitted admitted[DP_CONFIG_ADMIT_MAX] = {0};

    kit_round(&ledger, &record);
    for (uint32_t i = 0; i < n; i++) {
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
        make_round(MEMBERS);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    dp_ledger_close(&ledger);
    return 0;
}

static void feed(dp_audit *audit, uint64_t slot)
{
    const row *r = &rows[slot];

    dp_audit_record(audit, slot, &r->hash, dp_view_of(r->record, r->size),
                    dp_view_of(r->cert, r->cert_size));
}

/* Feeds records 1..RECORDS but for the slot that is missing; 0: none is. */
static dp_audit *audited_without(uint32_t missing, dp_audit_view *view)
{
    const dp_manifest manifest = kit_manifest();
    const dp_audit_config config = {.manifest = &manifest,
                                    .run = kit_run(),
                                    .crypto = kit_crypto(0),
                                    .admission = kit_admission()};
    dp_audit *audit = NULL;

    assert_int_equal(dp_audit_open(&audit, &config), DP_OK);
    for (uint32_t slot = 1; slot <= RECORDS; slot++) {
        if (slot == missing) {
            dp_audit_gap(audit, slot, "missing");
        } else {
            feed(audit, slot);
        }
    }
    dp_audit_look(audit, view);
    return audit;
}

static dp_audit *audited(dp_audit_view *view)
{
    return audited_without(0, view);
}

static bool found(const dp_audit_view *view, uint64_t slot, const char *text)
{
    for (uint64_t i = 0; i < view->n_findings && i < DP_AUDIT_FINDINGS_MAX; i++) {
        if (view->findings[i].slot == slot && strcmp(view->findings[i].text, text) == 0) {
            return true;
        }
    }
    return false;
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

/* A record that the ledger cannot apply: it is reported, and later ones are checked as far as
 * possible without a ledger. */
static void behind_a_damaged_record_the_others_are_judged_for_form(void **state)
{
    (void)state;
    for (uint32_t slot = 1; slot <= RECORDS; slot += 7) {
        for (uint32_t what = 0; what < 2; what++) {
            const row good = rows[slot];
            dp_audit_view view;
            rows[slot].record[what == 0 ? 120 : 4] ^= 1;
            dp_audit *audit = audited(&view);
            assert_true(found(&view, slot, "the record does not match its hash"));
            assert_in_range(view.n_findings, 2, 3);
            assert_int_equal(view.findings[view.n_findings - 1].slot, slot);
            assert_int_equal(view.records, slot - 1);
            assert_int_equal(view.rounds, slot - 1);
            assert_int_equal(view.stopped, slot);
            assert_int_equal(view.loosely, RECORDS - slot);
            dp_audit_close(audit);
            rows[slot] = good;
        }
    }
}

/* A wrong certificate or name does not change the record's content: the audit still counts the
 * record, and finds no fault in later ones. */
static void a_wrong_certificate_or_name_is_named_and_the_record_counted(void **state)
{
    (void)state;
    for (uint32_t slot = 1; slot <= RECORDS; slot += 7) {
        for (uint32_t what = 0; what < 2; what++) {
            const row good = rows[slot];
            dp_audit_view view;
            rows[slot].cert[rows[slot].cert_size - 1] ^= what == 0 ? 1 : 0;
            rows[slot].hash.bytes[0] ^= what == 1 ? 1 : 0;
            dp_audit *audit = audited(&view);
            assert_int_equal(view.n_findings, 1);
            assert_true(found(&view, slot,
                              what == 0 ? "the certificate is not by a majority of the voters"
                                        : "the record does not match its hash"));
            assert_int_equal(view.records, RECORDS - 1);
            assert_int_equal(view.rounds, RECORDS);
            assert_int_equal(view.count.samples, RECORDS * MEMBERS * 8);
            assert_int_equal(view.stopped, 0);
            dp_audit_close(audit);
            rows[slot] = good;
        }
    }
}

static void all_findings_are_listed_and_counted_by_cause(void **state)
{
    static row good[RECORDS + 1];
    dp_audit_view view;

    (void)state;
    memcpy(good, rows, sizeof good);
    rows[3].cert[rows[3].cert_size - 1] ^= 1;
    rows[5].cert[rows[5].cert_size - 1] ^= 1;
    rows[9].size = 7;
    rows[12].hash.bytes[3] ^= 1;
    rows[20].cert_size = 1;
    dp_audit *audit = audited(&view);
    assert_int_equal(view.n_findings, 6);
    assert_true(found(&view, 5, "the certificate is not by a majority of the voters"));
    assert_true(found(&view, 9, "the record does not match its hash"));
    assert_true(found(&view, 9, "the record does not decode"));
    assert_true(found(&view, 12, "the record does not match its hash"));
    assert_true(found(&view, 20, "the certificate does not decode"));
    assert_int_equal(view.n_causes, 4);
    assert_string_equal(view.causes[1].text, "the record does not match its hash");
    assert_int_equal(view.causes[1].count, 2);
    assert_int_equal(view.causes[1].first, 9);
    assert_int_equal(view.causes[1].last, 12);
    assert_int_equal(view.records, 6);
    assert_int_equal(view.rounds, 8);
    assert_int_equal(view.stopped, 9);
    assert_int_equal(view.loosely, RECORDS - 9 - 2);
    dp_audit_close(audit);
    memcpy(rows, good, sizeof good);
}

static void more_findings_than_are_kept_are_counted(void **state)
{
    dp_audit_view view;
    dp_audit *audit = audited(&view);

    (void)state;
    for (uint64_t i = 1; i <= DP_AUDIT_FINDINGS_MAX + 10; i++) {
        dp_audit_gap(audit, RECORDS + i, "missing");
    }
    dp_audit_look(audit, &view);
    assert_int_equal(view.n_findings, DP_AUDIT_FINDINGS_MAX + 10);
    assert_int_equal(view.n_causes, 1);
    assert_int_equal(view.causes[0].count, DP_AUDIT_FINDINGS_MAX + 10);
    assert_int_equal(view.causes[0].last, RECORDS + DP_AUDIT_FINDINGS_MAX + 10);
    dp_audit_close(audit);
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
    assert_string_equal(view.findings[0].text,
                        "a contribution has samples outside of its member's lease");
    dp_audit_close(audit);
    rows[RECORDS] = good;
}

static void a_record_in_the_place_of_another_is_found(void **state)
{
    dp_audit_view view;
    const row good = rows[5];

    (void)state;
    rows[5] = rows[6];
    dp_audit *audit = audited(&view);
    assert_true(found(&view, 5, "the record is of another slot"));
    assert_int_equal(view.stopped, 5);
    dp_audit_close(audit);
    rows[5] = good;
}

static void a_missing_record_is_one_finding(void **state)
{
    dp_audit_view view;
    dp_audit *audit = audited_without(5, &view);

    (void)state;
    assert_int_equal(view.n_findings, 1);
    assert_int_equal(view.findings[0].slot, 5);
    assert_int_equal(view.records, 4);
    assert_int_equal(view.loosely, RECORDS - 5);
    dp_audit_close(audit);
}

/* Of a member that publishes nothing for many rounds. */
static void samples_that_came_back_are_counted_as_returned(void **state)
{
    dp_audit_view view;
    dp_audit *audit = audited(&view);
    const dp_peer last = kit_peer(MEMBERS - 1);
    const dp_lease *const lease = dp_ledger_lease(&ledger, &last);
    const uint64_t left = lease->granted - lease->reach.leased;

    (void)state;
    assert_true(left > 0);
    assert_int_equal(view.returned, 0);
    for (uint32_t i = 1; i <= MORE && view.returned == 0; i++) {
        make_round(MEMBERS - 1);
        feed(audit, RECORDS + i);
        dp_audit_look(audit, &view);
    }
    assert_int_equal(view.n_findings, 0);
    assert_int_equal(view.returned, left);
    assert_int_equal(view.lost, 0);
    dp_audit_close(audit);
}

static dp_status open_and_close(void *context)
{
    dp_audit *audit = NULL;
    const dp_status status = dp_audit_open(&audit, context);

    dp_audit_close(audit);
    return status;
}

static void an_audit_without_memory_is_refused_whole(void **state)
{
    const dp_manifest manifest = kit_manifest();
    dp_audit_config config = {.manifest = &manifest,
                              .run = kit_run(),
                              .crypto = kit_crypto(0),
                              .admission = kit_admission()};

    (void)state;
    assert_true(fail_each_allocation(open_and_close, &config) > 4);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_good_chain_holds_and_is_counted),
        TEST(behind_a_damaged_record_the_others_are_judged_for_form),
        TEST(a_wrong_certificate_or_name_is_named_and_the_record_counted),
        TEST(all_findings_are_listed_and_counted_by_cause),
        TEST(more_findings_than_are_kept_are_counted),
        TEST(a_certified_record_that_counts_samples_again_is_found),
        TEST(a_record_in_the_place_of_another_is_found),
        TEST(a_missing_record_is_one_finding),
        TEST(an_audit_without_memory_is_refused_whole),
        TEST(samples_that_came_back_are_counted_as_returned), /* It makes more records. */
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
