/* The method invite: makes a token for other nodes. */
#include <sodium.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "daemon/control/control.h"
#include "daemon/control/reply.h"
#include "daemon/host/issued.h"
#include "daemon/peer/driver.h"
#include "gossip/identity/invite.h"

#define INVITE_STANDARD_MS (24ULL * 3600 * 1000)

typedef struct invite_terms {
    uint16_t uses;
    uint64_t lasts_ms;
    uint32_t caps;
} invite_terms;

/* The token is shown after the store has it (issued.h). */
typedef struct inviting {
    dp_store_thread_job job;
    dp_call call;
    dp_run_id run;
    uint64_t now_ms;
    dp_issued issued;
    dp_status status;
    bool anew; /* the stored list was damaged */
    char text[DP_TOKEN_TEXT_MAX + 1];
} inviting;

uint8_t dp_invite_addresses(const dp_driver *driver, dp_address addresses[DP_TOKEN_ADDRESSES_MAX])
{
    uint32_t count = dp_driver_addresses(driver, addresses);
    const dp_node *const node = dp_driver_node(driver);
    dp_member_view member;

    dp_assert(count <= DP_TOKEN_ADDRESSES_MAX);
    for (uint32_t i = 1; node != NULL && count < DP_TOKEN_ADDRESSES_MAX; i++) {
        if (!dp_node_member(node, i, &member)) {
            break;
        }
        if (!member.voter || !member.linked || member.n_addrs == 0) {
            continue;
        }
        const dp_address at = dp_addr_address(&member.addrs[0]);
        bool there = false;
        for (uint32_t k = 0; k < count; k++) {
            there = there || dp_address_equal(&addresses[k], &at);
        }
        if (!there) {
            addresses[count++] = at;
        }
    }
    return (uint8_t)count;
}

static dp_status make_invite(const dp_daemon *daemon, const invite_terms *terms, inviting *self,
                             dp_why *why)
{
    const dp_run_identity *facts = dp_driver_run_identity(daemon->driver);
    dp_address addresses[DP_TOKEN_ADDRESSES_MAX];
    dp_invite invite;
    dp_entropy entropy;
    const uint64_t now = dp_driver_wall_ms(daemon->driver);
    const dp_sign_key *const root = dp_daemon_root_of(daemon, facts->root);
    const dp_invite_request request = {
        .run = &facts->run,
        .root = facts->root,
        .join_secret = facts->join_secret,
        .psk_epoch = facts->psk_epoch,
        .issuer = root != NULL ? root : &daemon->identity.ed,
        .issuer_credential =
            dp_view_of(facts->credential, root != NULL ? 0 : facts->credential_bytes),
        .caps = terms->caps,
        .uses = terms->uses,
        .not_before_ms = now - DP_CERT_SKEW_MS,
        .not_after_ms = now + terms->lasts_ms,
        .addresses = addresses,
        .n_addresses = dp_invite_addresses(daemon->driver, addresses),
        .name = facts->name,
    };
    randombytes_buf(entropy.bytes, sizeof entropy.bytes);
    dp_status status = dp_invite_make(&request, &entropy, &invite, why);
    sodium_memzero(&entropy, sizeof entropy);
    if (status == DP_OK) {
        dp_credential made;
        status = dp_invite_write(&invite, self->text);
        status = status == DP_OK ? dp_invite_check(&invite, now, &made, why) : status;
        dp_invite_close(&invite);
        if (status == DP_OK) {
            self->issued.id = made.invite;
        }
    }
    self->run = facts->run;
    self->now_ms = now;
    self->issued.uses = terms->uses;
    self->issued.caps = terms->caps;
    self->issued.from_ms = request.not_before_ms;
    self->issued.until_ms = request.not_after_ms;
    return status;
}

static uint32_t caps_of(const dp_pack_value *roles)
{
    static const struct {
        const char *name;
        uint32_t caps;
    } rows[] = {
        {"train", DP_CAP_TRAIN | DP_CAP_SERVE | DP_CAP_RELAY},
        {"vote", DP_CAP_VOTE},
        {"invite", DP_CAP_INVITE},
        {"observe", DP_CAP_OBSERVE | DP_CAP_SERVE},
    };
    uint32_t count = 0;
    uint32_t caps = 0;
    if (!dp_pack_is_array(roles, &count)) {
        return rows[0].caps;
    }
    for (uint32_t i = 0; i < count; i++) {
        char name[16];
        for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
            if (dp_pack_copy_text(dp_pack_at(roles, i), name, sizeof name) &&
                strcmp(name, rows[k].name) == 0) {
                caps |= rows[k].caps;
            }
        }
    }
    return caps;
}

static void run_inviting(dp_store_thread_job *job, dp_store *store)
{
    inviting *self = (inviting *)job;
    self->status = dp_issued_add(store, &self->run, &self->issued, self->now_ms, &self->anew);
}

static void free_inviting(inviting *self)
{
    sodium_memzero(self->text, sizeof self->text);
    dp_free(self);
}

static void done_inviting(dp_store_thread_job *job)
{
    inviting *self = (inviting *)job;
    dp_packer packer;
    if (self->status == DP_OK && self->anew) {
        dp_event_log_add(self->call.daemon->event_log, DP_LOG_WARN, "invites.lost", 0, NULL,
                         "the stored list of this node's invites was damaged and begins anew; "
                         "earlier tokens stay valid until they expire; check the disk: smartctl -a "
                         "DEVICE");
    }
    if (self->status == DP_TOOBIG) {
        dp_call_fail(&self->call, 77, "E0205",
                     "dpnode token ls   # shows when the next one expires",
                     "this node cannot create that invite",
                     "it has 512 invites that have not expired, the largest number that it stores");
    } else if (self->status != DP_OK) {
        dp_call_fail(&self->call, 74, "E0401", "dpnode doctor   # checks the disk",
                     "the invite could not be stored, so it is not shown",
                     dp_status_text(self->status));
    } else if (dp_call_begin(&self->call, DP_CONTROL_REPLY, &packer)) {
        dp_group map = dp_map_begin(&packer);
        dp_pair_text(&map, "token", self->text);
        dp_pair_hex(&map, "id", dp_view_of(self->issued.id.bytes, sizeof self->issued.id.bytes));
        dp_pair_u64(&map, "uses", self->issued.uses);
        dp_pair_u64(&map, "expires_ms", self->issued.until_ms);
        dp_group_end(&map);
        dp_call_end(&self->call, &packer);
    }
    free_inviting(self);
}

void dp_method_invite(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    if (dp_call_driver(daemon, call) == NULL) {
        return;
    }
    uint64_t uses = 1; /* The caller must ask for more nodes, a vote, more time. */
    uint64_t expires_s = INVITE_STANDARD_MS / 1000;
    DP_IGNORE(!dp_pack_get_u64(dp_pack_key(parameters, "uses"), &uses));
    DP_IGNORE(!dp_pack_get_u64(dp_pack_key(parameters, "expires_s"), &expires_s));
    const invite_terms terms = {.uses = (uint16_t)(uses < UINT16_MAX ? uses : UINT16_MAX),
                                .lasts_ms = expires_s < 10ULL * 365 * 86400 ? expires_s * 1000
                                                                            : INVITE_STANDARD_MS,
                                .caps = caps_of(dp_pack_key(parameters, "roles"))};
    dp_why why = {""};
    inviting *self = dp_alloc(1, sizeof *self);
    if (self == NULL) {
        dp_call_fail(call, 70, "E0199", "", "out of memory", "");
        return;
    }
    self->job.run = run_inviting;
    self->job.done = done_inviting;
    self->call = *call;
    const dp_status status = make_invite(daemon, &terms, self, &why);
    if (status != DP_OK) {
        dp_call_fail(
            call, 77, "E0205",
            "dpnode invite --role invite   # on the founder's node; join again by that token",
            "this node cannot create that invite",
            why.text[0] != '\0' ? why.text : dp_status_text(status));
        free_inviting(self);
    } else if (dp_store_thread_post(daemon->store_thread, &self->job, DP_STORE_THREAD_BULK) !=
               DP_OK) {
        dp_call_fail(call, 75, "E0402", "try again", "the store is busy",
                     "too many writes are waiting");
        free_inviting(self);
    }
}
