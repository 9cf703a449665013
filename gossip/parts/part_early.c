/* Parts that are told before the publication that they are of: while the author's backward pass
 * goes on, the owner of a part fetches what has been computed of it. A hint binds no node: READY
 * names the parts, and objects that it does not name are dropped. */
#include <string.h>

#include "base/assert.h"
#include "gossip/context/context.h"
#include "gossip/parts/part_round.h"
#include "gossip/round/round.h"
#include "gossip/training/training.h"

/* ---- what others tell ---- */

static bool is_claimed(const dp_node *node, const dp_hash *root)
{
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        const dp_part_list *list = &node->round->claims[i].ready.parts;
        for (uint32_t p = 0; p < list->n; p++) {
            if (dp_hash_equal(&list->refs[p].root, root)) {
                return true;
            }
        }
    }
    return false;
}

bool dp_part_early_knows(const dp_node *node, const dp_hash *root)
{
    const dp_part_round *parts = node->parts;

    for (uint32_t i = 0; i < parts->n_early; i++) {
        if (dp_hash_equal(&parts->early[i].root, root)) {
            return true;
        }
    }
    return false;
}

static void forget(dp_part_round *parts, uint32_t index)
{
    dp_assert(index < parts->n_early);
    parts->early[index] = parts->early[--parts->n_early];
}

/* Its place is empty by now, so that others with the same root keep it. */
static void let_go(dp_node *node, const dp_hash *root, uint64_t round)
{
    if (!is_claimed(node, root) && !dp_part_early_knows(node, root)) {
        dp_part_round_throw_away(node, root, round);
    }
}

static dp_early *find(dp_part_round *parts, const dp_peer *author, uint32_t part)
{
    for (uint32_t i = 0; i < parts->n_early; i++) {
        if (parts->early[i].part == part && dp_peer_equal(&parts->early[i].author, author)) {
            return &parts->early[i];
        }
    }
    return NULL;
}

/* Others leave room for this node's own. */
static bool has_room(const dp_node *node, const dp_peer *author)
{
    const dp_part_round *parts = node->parts;
    uint32_t others = 0;

    for (uint32_t i = 0; i < parts->n_early; i++) {
        others += dp_peer_equal(&parts->early[i].author, &node->self) ? 0 : 1;
    }
    return dp_peer_equal(author, &node->self) ? parts->n_early < DP_EARLY_MAX
                                              : others < DP_EARLY_OTHERS_MAX;
}

/* Remember what is the newest of this part. NULL: it is known already, has changed too often, or
 * there is no room. */
static dp_early *note(dp_node *node, const dp_peer *author, const dp_part_early *told)
{
    dp_part_round *parts = node->parts;
    dp_early *known = find(parts, author, told->part);

    dp_assert(told->part < node->ledger.layout.cuts.n);
    if (known == NULL) {
        if (!has_room(node, author)) {
            return NULL;
        }
        known = &parts->early[parts->n_early++];
        *known =
            (dp_early){.author = *author, .part = told->part, .root = told->ref.root, .changes = 0};
        return known;
    }
    if (dp_hash_equal(&known->root, &told->ref.root) || known->changes >= DP_EARLY_CHANGES_MAX) {
        return NULL;
    }
    const dp_hash before = known->root;
    known->root = told->ref.root;
    known->changes++;
    let_go(node, &before, told->round);
    return known;
}

/* Leaves half of the places for wanted objects to those that READYs name. */
static bool may_fetch(const dp_node *node)
{
    return node->mode == DP_MODE_SYNC && !node->paused && !node->halted &&
           dp_picker_count(node->picker) < DP_WANTED_MAX / 2;
}

dp_status dp_part_early_message(dp_node *node, uint32_t from, dp_view bytes)
{
    const dp_peer author = dp_members_at(node->members, from)->peer;
    dp_part_early told;

    DP_TRY(dp_part_early_read(bytes, &told));
    if (node->parts == NULL) {
        return DP_DENIED;
    }
    if (told.round != node->ledger.round + 1 || !dp_hash_equal(&told.base, &node->ledger.base)) {
        return DP_OK; /* Its READY comes too. */
    }
    if (told.part >= node->ledger.layout.cuts.n ||
        !dp_peer_equal(&node->ledger.layout.owners[told.part], &node->self) ||
        !dp_round_may_contribute(node, &author)) {
        return DP_DENIED;
    }
    const dp_claim told_by = {.ready = {.peer = author}};
    dp_time until;
    if (dp_round_claim_of(node, &author) != NULL || !may_fetch(node) ||
        dp_part_take_awaits(node, told.part, &told_by, &until)) {
        return DP_OK;
    }
    /* Takes no hint about an object that is here or wanted already: it may be data or a state, and
     * a later change of the hint would drop it. */
    if (!dp_node_holds(node, &told.ref.root) && !dp_picker_wants(node->picker, &told.ref.root) &&
        note(node, &author, &told) != NULL) {
        dp_part_round_fetch(node, &told.ref.root, told.ref.bytes, &author);
    }
    return DP_OK;
}

/* ---- what this node's trainer tells ---- */

/* Its parts are objects here, and of the publication of the round under way. */
static bool is_of_use(const dp_node *node, const dp_event *event)
{
    const dp_part_cuts *cuts = &node->ledger.layout.cuts;
    const uint32_t part = event->u.early.part;

    return node->parts != NULL && event->u.early.round == node->ledger.round + 1 &&
           node->standing.state == DP_TRAINER_SET && node->standing.applied == node->ledger.round &&
           !dp_train_undecided(node) && part < cuts->n &&
           event->u.early.first == cuts->first[part] &&
           event->u.early.end == dp_part_end(cuts, part);
}

static void tell(dp_node *node, const dp_part_early *early)
{
    const dp_peer *owner = &node->ledger.layout.owners[early->part];
    dp_writer writer = dp_writer_of(node->room, sizeof node->room);

    if (dp_peer_equal(owner, &node->self) || node->mode != DP_MODE_SYNC || node->leaving) {
        return;
    }
    dp_part_early_write(&writer, early);
    dp_assert(!writer.full);
    dp_node_send(node, owner, dp_view_of(writer.data, writer.size));
}

void dp_part_early_made(dp_node *node, const dp_event *event)
{
    const dp_part_early early = {
        .round = event->u.early.round,
        .base = node->ledger.base,
        .part = event->u.early.part,
        .ref = {.root = event->u.early.root, .bytes = event->u.early.bytes}};

    if (!dp_out_room(&node->out, 4)) {
        return; /* The disk is looked through at a start. */
    }
    if (!is_of_use(node, event) || note(node, &node->self, &early) == NULL) {
        if (!dp_node_holds(node, &early.ref.root)) { /* The same bytes may be another's. */
            dp_action *drop = dp_out_add(&node->out, DP_DO_OBJECT_DROP);
            drop->u.keep.root = early.ref.root;
            drop->u.keep.use = DP_USE_BLOB;
            drop->u.keep.round = early.round;
        }
        return;
    }
    dp_action *keep = dp_out_add(&node->out, DP_DO_OBJECT_KEEP);
    keep->u.keep.root = early.ref.root;
    keep->u.keep.use = DP_USE_BLOB;
    keep->u.keep.round = early.round;
    dp_node_hold(node, &early.ref.root, early.ref.bytes);
    tell(node, &early);
}

/* ---- the end of a hint ---- */

/* Was it right, and what was it worth? */
static void count(dp_node *node, const dp_early *early, const dp_ready *ready)
{
    const bool right = early->part < ready->parts.n &&
                       dp_hash_equal(&ready->parts.refs[early->part].root, &early->root);

    if (!dp_peer_equal(&early->author, &node->self)) {
        node->parts->early_told++;
        node->parts->early_here += right && dp_node_holds(node, &early->root) ? 1 : 0;
    }
}

void dp_part_early_claimed(dp_node *node, const dp_ready *ready)
{
    dp_part_round *parts = node->parts;

    for (uint32_t i = parts->n_early; i-- > 0;) {
        if (dp_peer_equal(&parts->early[i].author, &ready->peer)) {
            const dp_hash root = parts->early[i].root;
            count(node, &parts->early[i], ready);
            forget(parts, i);
            let_go(node, &root, ready->round);
        }
    }
}

void dp_part_early_drop(dp_node *node)
{
    dp_part_round *parts = node->parts;

    dp_assert(node->parts->n_early <= DP_EARLY_MAX);
    while (parts->n_early > 0) {
        const dp_hash root = parts->early[0].root;
        forget(parts, 0);
        let_go(node, &root, node->ledger.round);
    }
}
