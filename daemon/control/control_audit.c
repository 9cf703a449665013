/* The method audit: verifies the chain in the store from its first record. It runs on the store
 * thread, a few records at a time, so that votes are not delayed. */
#include "base/alloc.h"
#include "base/run/samples.h"
#include "daemon/control/control.h"
#include "daemon/control/reply.h"
#include "daemon/peer/driver.h"
#include "gossip/ledger/audit.h"
#include "store/chain.h"

enum {
    RECORDS_AT_ONCE = 16,
    GAPS_MAX = 1024, /* consecutive slots without a readable record; after more the audit ends */
    /* Members in one reply: a reader of messages takes DP_PACK_NODES_MAX nodes of msgpack. A member
     * is a map of 11 pairs, a finding one of 2, a cause one of 4. */
    MEMBERS_MAX = (DP_PACK_NODES_MAX - 64 - 5 * DP_AUDIT_FINDINGS_MAX - 9 * DP_AUDIT_CAUSES_MAX) /
                  (1 + 2 * 11)
};

typedef struct audit_job {
    dp_store_thread_job job;
    dp_call call;
    dp_daemon *daemon;
    dp_run_id run;
    uint64_t samples;    /* of a pass */
    dp_crypto_keys keys; /* it only verifies */
    dp_audit *audit;
    dp_chain_tip tip; /* its beginning; slot 0: not started, or no record */
    bool begun;
    uint64_t next;
    uint32_t gaps;
    dp_status status;
} audit_job;

static dp_status judge(const dp_chain_record *row, void *context)
{
    audit_job *self = context;
    dp_audit_record(self->audit, row->slot, &row->hash, row->record, row->cert);
    self->next = row->slot + 1;
    return DP_OK;
}

/* The record of slot next is missing, or its row is damaged. */
static void pass_over(audit_job *self, dp_status status)
{
    dp_audit_gap(self->audit, self->next,
                 status == DP_CORRUPT ? "the stored record is damaged" : "the record is missing");
    self->next++;
    self->gaps++;
    if (self->gaps == GAPS_MAX) {
        dp_audit_gap(self->audit, self->next, "too many records cannot be read; the audit stopped");
        self->next = self->tip.slot + 1;
    }
}

static void run_audit(dp_store_thread_job *job, dp_store *store)
{
    audit_job *self = (audit_job *)job;
    if (!self->begun) {
        self->begun = true;
        self->status = dp_chain_head(store, &self->run, &self->tip);
        self->status = self->status == DP_NOTFOUND ? DP_OK : self->status;
    }
    const uint64_t left = self->tip.slot >= self->next ? self->tip.slot + 1 - self->next : 0;
    if (self->status != DP_OK || left == 0) {
        return;
    }
    const uint32_t count = left < RECORDS_AT_ONCE ? (uint32_t)left : RECORDS_AT_ONCE;
    const uint64_t begin = self->next;
    dp_status status = dp_chain_each(store, &self->run, self->next, count, judge, self);
    if (status == DP_OK && self->next == begin) {
        status = DP_NOTFOUND; /* The last ones are missing. */
    }
    if (status == DP_CORRUPT || status == DP_NOTFOUND) {
        /* After other records it is read once more, separately, to find out which of the two
         * applies. */
        if (self->next == begin) {
            pass_over(self, status);
        }
        status = DP_OK;
    }
    self->status = status;
    job->again = self->status == DP_OK && self->next <= self->tip.slot;
}

static void pack_count(dp_group *map, const dp_audit_count *count)
{
    const uint64_t gone_over = count->leased + count->own;
    dp_pair_u64(map, "counted", count->counted);
    dp_pair_u64(map, "samples", count->samples);
    dp_pair_u64(map, "leased", count->leased);
    dp_pair_u64(map, "own", count->own);
    dp_pair_u64(map, "holes", gone_over > count->samples ? gone_over - count->samples : 0);
    dp_pair_u64(map, "twice", count->twice);
}

static void pack_member(dp_packer *packer, const audit_job *self,
                        const dp_audit_member_view *member)
{
    char text[DP_PEER_TEXT_MAX];
    dp_peer_text(&member->peer, text);
    dp_group item = dp_map_begin(packer);
    dp_pair_hex(&item, "id", dp_view_of(member->peer.bytes, sizeof member->peer.bytes));
    dp_pair_text(&item, "short", text);
    dp_pair_text(&item, "name",
                 self->daemon->driver != NULL
                     ? dp_driver_peer_name(self->daemon->driver, &member->peer)
                     : "");
    dp_pair_bool(&item, "gone", member->gone);
    pack_count(&item, &member->count);
    dp_pair_u64(&item, "lease", member->left);
    dp_group_end(&item);
}

/* Members first, then those that are gone, as far as there is room. */
static void pack_members(dp_group *map, const audit_job *self, const dp_audit_view *view)
{
    dp_group list = dp_array_begin(dp_pair(map, "members"));
    uint32_t count = 0;
    for (uint32_t i = 0; i < 2 * view->members && count < MEMBERS_MAX; i++) {
        const bool gone = i >= view->members;
        dp_audit_member_view member;
        dp_audit_member(self->audit, gone ? i - view->members : i, &member);
        if (member.gone == gone) {
            pack_member(dp_item(&list), self, &member);
            count++;
        }
    }
    dp_group_end(&list);
    dp_pair_u64(map, "more", view->members - count);
}

static void pack_findings(dp_group *map, const dp_audit_view *view)
{
    dp_pair_u64(map, "n_findings", view->n_findings);
    dp_pair_u64(map, "stopped", view->stopped);
    dp_pair_u64(map, "loosely", view->loosely);
    dp_group causes = dp_array_begin(dp_pair(map, "causes"));
    for (uint32_t i = 0; i < view->n_causes; i++) {
        dp_group item = dp_map_begin(dp_item(&causes));
        dp_pair_text(&item, "text", view->causes[i].text);
        dp_pair_u64(&item, "count", view->causes[i].count);
        dp_pair_u64(&item, "first", view->causes[i].first);
        dp_pair_u64(&item, "last", view->causes[i].last);
        dp_group_end(&item);
    }
    dp_group_end(&causes);
    dp_group list = dp_array_begin(dp_pair(map, "findings"));
    for (uint32_t i = 0; i < view->n_findings && i < DP_AUDIT_FINDINGS_MAX; i++) {
        dp_group item = dp_map_begin(dp_item(&list));
        dp_pair_u64(&item, "slot", view->findings[i].slot);
        dp_pair_text(&item, "text", view->findings[i].text);
        dp_group_end(&item);
    }
    dp_group_end(&list);
}

static void pack_audit(dp_packer *packer, const audit_job *self)
{
    dp_audit_view view;
    dp_audit_look(self->audit, &view);
    dp_group map = dp_map_begin(packer);
    dp_pair_u64(&map, "head", self->tip.slot);
    dp_pair_u64(&map, "records", view.records);
    dp_pair_u64(&map, "rounds", view.rounds);
    pack_count(&map, &view.count);
    dp_pair_u64(&map, "granted", view.granted);
    dp_pair_u64(&map, "returned", view.returned);
    dp_pair_u64(&map, "lost", view.lost);
    dp_pair_u64(&map, "pass_samples", self->samples);
    pack_findings(&map, &view);
    pack_members(&map, self, &view);
    dp_group_end(&map);
}

static void done_audit(dp_store_thread_job *job)
{
    audit_job *self = (audit_job *)job;
    dp_audit_view view;
    dp_packer packer;
    dp_audit_look(self->audit, &view);
    if (dp_call_alive(&self->call)) {
        if (self->status != DP_OK) {
            dp_call_fail(&self->call, 74, "E0401", "dpnode logs   # shows the cause",
                         "the store could not be read", dp_status_text(self->status));
        } else if (dp_call_begin(&self->call, DP_CONTROL_REPLY, &packer)) {
            pack_audit(&packer, self);
            dp_call_end(&self->call, &packer);
        }
    }
    dp_audit_close(self->audit);
    dp_free(self);
}

static dp_status open_job(audit_job **job, dp_daemon *daemon, const dp_call *call)
{
    const dp_driver *driver = daemon->driver;
    const dp_manifest *manifest = dp_driver_manifest(driver);
    audit_job *made = dp_alloc(1, sizeof *made);
    if (made == NULL) {
        return DP_NOMEM;
    }
    made->job.run = run_audit;
    made->job.done = done_audit;
    made->call = *call;
    made->daemon = daemon;
    made->run = dp_driver_run_identity(driver)->run;
    made->samples = dp_manifest_samples(manifest);
    made->next = 1;
    made->keys.identity = &daemon->identity;
    const dp_audit_config config = {.manifest = manifest,
                                    .run = made->run,
                                    .crypto = dp_crypto_sodium(&made->keys),
                                    .admission = dp_admission_certs()};
    const dp_status status = dp_audit_open(&made->audit, &config);
    if (status != DP_OK) {
        dp_free(made);
        return status;
    }
    *job = made;
    return DP_OK;
}

void dp_method_audit(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    (void)parameters;
    audit_job *job = NULL;
    if (dp_call_driver(daemon, call) == NULL) {
        return;
    }
    if (dp_driver_manifest(daemon->driver) == NULL) {
        dp_call_fail(call, 75, "E0406", "dpnode audit   # again when dpnode status shows training",
                     "the manifest has not arrived yet", "no record can be checked without it");
        return;
    }
    if (open_job(&job, daemon, call) != DP_OK) {
        dp_call_fail(call, 70, "E0199", "", "out of memory", "");
        return;
    }
    if (dp_store_thread_post(daemon->store_thread, &job->job, DP_STORE_THREAD_BULK) != DP_OK) {
        dp_audit_close(job->audit);
        dp_free(job);
        dp_call_fail(call, 75, "E0402", "try again", "the store is busy",
                     "too many writes are waiting");
    }
}
