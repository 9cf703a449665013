/* The methods token.list and token.revoke: invites, the members that joined by them, and their
 * revocation. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "daemon/control/control.h"
#include "daemon/control/first_start.h"
#include "daemon/control/reply.h"
#include "daemon/host/issued.h"
#include "daemon/peer/driver.h"
#include "gossip/ledger/ledger.h"

enum {
    ID_TEXT = 2 * DP_INVITE_ID_BYTES,
    ID_TEXT_MIN = 4, /* One or two characters soon match several ids. */
    /* Members in one reply: a reader of messages takes DP_PACK_NODES_MAX nodes of msgpack, and a
     * member that came by an invite is a map of up to six pairs. */
    SHOWN_MAX = (DP_PACK_NODES_MAX - 64) / (1 + 2 * 6)
};

typedef struct token_job {
    dp_store_thread_job job;
    dp_call call;
    dp_daemon *daemon;
    dp_run_id run;
    bool revokes;
    bool members;
    char text[ID_TEXT + 1];
    dp_status status;
    dp_issued_list list;
} token_job;

static bool same_id(const dp_invite_id *a, const dp_invite_id *b)
{
    return dp_invite_id_compare(a, b) == 0;
}

/* ---- one of them ---- */

static const char *word_of(uint32_t gone)
{
    switch (gone) {
    case DP_REMOVE_LEFT:
        return "left";
    case DP_REMOVE_REVOKED:
        return "revoked";
    case DP_REMOVE_ABSENT:
        return "away";
    case DP_REMOVE_HARMFUL:
        return "removed for harm";
    default:
        return "removed";
    }
}

static void pack_roles(dp_group *map, uint32_t caps)
{
    static const struct {
        uint32_t cap;
        const char *name;
    } rows[] = {{DP_CAP_TRAIN, "train"},
                {DP_CAP_VOTE, "vote"},
                {DP_CAP_INVITE, "invite"},
                {DP_CAP_ADMIN, "admin"},
                {DP_CAP_OBSERVE, "observe"}};
    dp_group roles = dp_array_begin(dp_pair(map, "roles"));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if ((caps & rows[i].cap) != 0) {
            dp_pack_text(dp_item(&roles), rows[i].name);
        }
    }
    dp_group_end(&roles);
}

static void pack_brought(dp_group *array, const dp_daemon *daemon, const dp_roster_view *row,
                         bool through)
{
    char text[DP_PEER_TEXT_MAX];
    const char *name = dp_driver_peer_name(daemon->driver, &row->peer);
    dp_group map = dp_map_begin(dp_item(array));
    dp_peer_text(&row->peer, text);
    dp_pair_hex(&map, "id", dp_view_of(row->peer.bytes, sizeof row->peer.bytes));
    dp_pair_text(&map, "short", text);
    if (name[0] != '\0') {
        dp_pair_text(&map, "name", name);
    } else {
        dp_pair_nil(&map, "name");
    }
    if (row->gone != 0) {
        dp_pair_text(&map, "gone", word_of(row->gone));
    }
    if (through) {
        dp_pair_bool(&map, "through", true);
    }
    dp_group_end(&map);
}

/* Packs the nodes that joined by the invite, or by an invite of such a node. Returns how many of
 * them count as uses. */
static uint32_t pack_all_brought(dp_group *map, const dp_daemon *daemon, const dp_invite_id *id)
{
    const dp_node *node = dp_driver_node(daemon->driver);
    dp_roster_view row;
    uint32_t uses = 0;
    uint32_t members = 0;
    uint32_t all = 0;
    dp_group array = dp_array_begin(dp_pair(map, "admitted"));
    for (uint32_t i = 0; node != NULL && dp_node_roster(node, i, &row); i++) {
        const bool direct = same_id(&row.invite, id);
        if (!direct && !same_id(&row.invite_above, id)) {
            continue;
        }
        uses += direct ? 1 : 0;
        members += row.gone == 0 ? 1 : 0;
        if (all++ < SHOWN_MAX) {
            pack_brought(&array, daemon, &row, !direct);
        }
    }
    dp_group_end(&array);
    dp_pair_u64(map, "admitted_count", all);
    dp_pair_u64(map, "members_count", members);
    return uses;
}

static const char *state_of(const dp_daemon *daemon, const dp_invite_id *id,
                            const dp_issued *issued, uint32_t uses)
{
    const dp_node *node = dp_driver_node(daemon->driver);
    const dp_invite_state state = node != NULL ? dp_node_invite(node, id) : DP_INVITE_STANDS;
    if (state != DP_INVITE_STANDS) {
        return state == DP_INVITE_REVOKED ? "revoked" : "revoking";
    }
    if (issued == NULL) {
        return "made elsewhere";
    }
    return issued->until_ms < dp_driver_wall_ms(daemon->driver) ? "expired"
           : issued->uses > 0 && uses >= issued->uses           ? "used up"
                                                                : "valid";
}

static void pack_token(dp_packer *packer, const dp_daemon *daemon, const dp_invite_id *id,
                       const dp_issued *issued)
{
    dp_group map = dp_map_begin(packer);
    dp_pair_hex(&map, "token", dp_view_of(id->bytes, sizeof id->bytes));
    dp_pair_bool(&map, "issued", issued != NULL);
    if (issued != NULL) {
        dp_pair_u64(&map, "uses", issued->uses);
        pack_roles(&map, issued->caps);
        dp_pair_u64(&map, "from_ms", issued->from_ms);
        dp_pair_u64(&map, "expires_ms", issued->until_ms);
    }
    const uint32_t uses = pack_all_brought(&map, daemon, id);
    dp_pair_text(&map, "state", state_of(daemon, id, issued, uses));
    dp_group_end(&map);
}

/* ---- all of them ---- */

/* The ids of known invites, each once: of those made by this node, then of those of the members,
 * then of the revoked ones. */
typedef struct known {
    uint32_t n;
    uint32_t max;
    dp_invite_id *ids;
} known;

static void add_known(known *all, const dp_invite_id *id)
{
    static const dp_invite_id none;

    for (uint32_t i = 0; i < all->n; i++) {
        if (same_id(&all->ids[i], id)) {
            return;
        }
    }
    if (all->n < all->max && !same_id(id, &none)) {
        all->ids[all->n++] = *id;
    }
}

/* False: no memory. */
static bool find_known(const token_job *self, known *all)
{
    const dp_node *node = dp_driver_node(self->daemon->driver);
    dp_roster_view row;
    dp_invite_id id;
    uint32_t rows = 0;
    while (node != NULL && dp_node_roster(node, rows, &row)) {
        rows++;
    }
    *all = (known){.max = self->list.n + 2 * rows + DP_REVOKED_INVITES_MAX};
    all->ids = dp_alloc(all->max, sizeof *all->ids);
    if (all->ids == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < self->list.n; i++) {
        add_known(all, &self->list.items[i].id);
    }
    for (uint32_t i = 0; node != NULL && dp_node_roster(node, i, &row); i++) {
        add_known(all, &row.invite);
        add_known(all, &row.invite_above);
    }
    for (uint32_t i = 0; node != NULL && dp_node_revoked_invite(node, i, &id); i++) {
        add_known(all, &id);
    }
    return true;
}

static void reply_list(const token_job *self, const known *all)
{
    dp_packer packer;
    for (uint32_t i = 0; i < all->n; i++) {
        if (!dp_call_begin(&self->call, DP_CONTROL_NOTICE, &packer)) {
            return;
        }
        dp_group map = dp_map_begin(&packer);
        pack_token(dp_pair(&map, "token"), self->daemon, &all->ids[i],
                   dp_issued_find(&self->list, &all->ids[i]));
        dp_group_end(&map);
        dp_call_end(&self->call, &packer);
    }
    if (dp_call_begin(&self->call, DP_CONTROL_REPLY, &packer)) {
        dp_group map = dp_map_begin(&packer);
        dp_pair_u64(&map, "count", all->n);
        dp_group_end(&map);
        dp_call_end(&self->call, &packer);
    }
}

/* ---- token.revoke ---- */

/* The only known id that begins with text, or text itself if it is a whole id. False, and
 * answered. */
static bool find_id(const token_job *self, const known *all, dp_invite_id *id)
{
    const size_t size = strlen(self->text);
    uint32_t matches = 0;
    for (uint32_t i = 0; i < all->n; i++) {
        char text[ID_TEXT + 1];
        dp_hex(dp_view_of(all->ids[i].bytes, sizeof all->ids[i].bytes), text);
        if (strncmp(text, self->text, size) == 0) {
            *id = all->ids[i];
            matches++;
        }
    }
    if (size >= ID_TEXT_MIN && matches == 1) {
        return true;
    }
    if (size == ID_TEXT && dp_unhex(self->text, id->bytes, sizeof id->bytes) == DP_OK) {
        return true;
    }
    dp_call_fail(
        &self->call, 1, "E0212",
        "dpnode token ls   # lists the ids; dpnode token inspect TOKEN shows the id of a token",
        matches > 1 && size >= ID_TEXT_MIN ? "several tokens have an id with this beginning"
                                           : "no token has this id",
        size < ID_TEXT_MIN ? "give at least its first 4 characters" : self->text);
    return false;
}

static void revoke_token(const token_job *self, const known *all)
{
    dp_why why = {""};
    dp_admin_command order = {.kind = DP_ADMIN_REVOKE_INVITE,
                              .until_ms = UINT64_MAX,
                              .members = self->members,
                              .why = &why};
    dp_packer packer;
    char text[ID_TEXT + 1];
    if (!find_id(self, all, &order.invite)) {
        return;
    }
    const dp_issued *issued = dp_issued_find(&self->list, &order.invite);
    if (issued != NULL) {
        order.until_ms = issued->until_ms;
    }
    const dp_status status = dp_driver_order(self->daemon->driver, &order);
    if (status != DP_OK) {
        dp_call_fail(
            &self->call, status == DP_AGAIN ? 75 : 77, "E0213",
            status == DP_AGAIN
                ? "dpnode status   # repeat the command when one more round is decided"
                : "repeat the command on the node that created the run, or on an admin's node",
            "this token is not revoked", why.text);
        return;
    }
    dp_first_start_revoked(self->daemon->first_start);
    dp_hex(dp_view_of(order.invite.bytes, sizeof order.invite.bytes), text);
    dp_event_log_add(self->daemon->event_log, DP_LOG_WARN, "token.revoked", 0, NULL,
                     "token %s is revoked by this node's owner%s", text,
                     self->members ? ", with the members that joined by it" : "");
    if (dp_call_begin(&self->call, DP_CONTROL_REPLY, &packer)) {
        dp_group map = dp_map_begin(&packer);
        pack_token(dp_pair(&map, "token"), self->daemon, &order.invite, issued);
        dp_pair_bool(&map, "members", self->members);
        dp_pair_text(&map, "text", why.text);
        dp_group_end(&map);
        dp_call_end(&self->call, &packer);
    }
}

/* ---- both ---- */

static void run_token(dp_store_thread_job *job, dp_store *store)
{
    token_job *self = (token_job *)job;
    self->status = dp_issued_load(store, &self->run, &self->list);
}

static void answer(const token_job *self)
{
    known all;
    if (self->status != DP_OK) {
        dp_call_fail(&self->call, 74, "E0401", "dpnode logs   # shows the cause",
                     "the store could not be read", dp_status_text(self->status));
        return;
    }
    if (dp_call_driver(self->daemon, &self->call) == NULL) {
        return; /* The node has left its run meanwhile. */
    }
    if (!find_known(self, &all)) {
        dp_call_fail(&self->call, 70, "E0199", "", "out of memory", "");
        return;
    }
    if (self->revokes) {
        revoke_token(self, &all);
    } else {
        reply_list(self, &all);
    }
    dp_free(all.ids);
}

static void done_token(dp_store_thread_job *job)
{
    token_job *self = (token_job *)job;
    if (dp_call_alive(&self->call)) {
        answer(self);
    }
    dp_free(self);
}

static token_job *new_job(dp_daemon *daemon, const dp_call *call)
{
    const dp_driver *driver = dp_call_driver(daemon, call);
    if (driver == NULL) {
        return NULL;
    }
    token_job *self = dp_alloc(1, sizeof *self);
    if (self == NULL) {
        dp_call_fail(call, 70, "E0199", "", "out of memory", "");
        return NULL;
    }
    self->job.run = run_token;
    self->job.done = done_token;
    self->call = *call;
    self->daemon = daemon;
    self->run = dp_driver_run_identity(driver)->run;
    return self;
}

static void post(token_job *self)
{
    if (dp_store_thread_post(self->daemon->store_thread, &self->job, DP_STORE_THREAD_BULK) !=
        DP_OK) {
        dp_call_fail(&self->call, 75, "E0402", "try again", "the store is busy",
                     "too many writes are waiting");
        dp_free(self);
    }
}

void dp_method_token_list(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    (void)parameters;
    token_job *self = new_job(daemon, call);
    if (self != NULL) {
        post(self);
    }
}

void dp_method_token_revoke(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    token_job *self = new_job(daemon, call);
    if (self == NULL) {
        return;
    }
    self->revokes = true;
    DP_IGNORE(!dp_pack_get_bool(dp_pack_key(parameters, "members"), &self->members));
    if (!dp_pack_copy_text(dp_pack_key(parameters, "id"), self->text, sizeof self->text)) {
        dp_call_fail(call, 1, "E0212", "dpnode token ls   # lists ids", "no token has this id",
                     "an id has 32 characters, 0-9 and a-f");
        dp_free(self);
        return;
    }
    for (char *at = self->text; *at != '\0'; at++) {
        if (*at >= 'A' && *at <= 'F') {
            *at = (char)(*at - 'A' + 'a');
        }
    }
    post(self);
}
