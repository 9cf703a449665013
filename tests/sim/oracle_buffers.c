/* The judge of work buffers: after every command of a trainer, the place of each unit of
 * displacement must follow from its place before, from the stored vectors and from the chain.
 * Computes an outcome by its own arithmetic. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tests/sim/oracle_internal.h"

static unsigned long long wide(uint64_t value)
{
    return (unsigned long long)value;
}

static bool equal(const dp_toy_vector a, const dp_toy_vector b)
{
    return memcmp(a, b, sizeof(dp_toy_vector)) == 0;
}

static bool is_empty(const dp_toy_vector a)
{
    static const dp_toy_vector none;

    return equal(a, none);
}

static void faded(dp_toy_vector out, const dp_toy_vector in, uint32_t lambda_q16)
{
    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        out[i] = (int64_t)((__int128)in[i] * lambda_q16 / 65536);
    }
}

static dp_buffer_book *book_of(const dp_host *host)
{
    return &host->sim->oracle->buffers[host->index];
}

static dp_parcel_book *parcel_of(const dp_host *host, const dp_hash *root)
{
    dp_oracle *o = host->sim->oracle;

    for (uint32_t i = o->n_parcels; i > 0; i--) {
        if (o->parcels[i - 1].owner == host->index &&
            dp_hash_equal(&o->parcels[i - 1].root, root)) {
            return &o->parcels[i - 1];
        }
    }
    return NULL;
}

static dp_hash stored_root(dp_host *host, const uint8_t *data, uint32_t size)
{
    dp_shelf *shelf = &host->sim->shelf;
    const uint32_t object = dp_shelf_add(shelf, dp_view_of(data, size));

    return shelf->items[object].root;
}

/* The elements of a stored vector: a, or F. */
static bool read_vector(dp_host *host, const dp_hash *root, dp_toy_vector out)
{
    const uint32_t object = dp_shelf_find(&host->sim->shelf, root);

    if (object == DP_SHELF_NONE || host->sim->shelf.items[object].n_bytes != DP_TOY_VECTOR_BYTES) {
        return false;
    }
    dp_reader r = dp_reader_of(dp_shelf_bytes(&host->sim->shelf, object));
    (void)dp_read_u64(&r);
    (void)dp_read_u64(&r);
    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        out[i] = (int64_t)dp_read_u64(&r);
    }
    return true;
}

/* The residual of a publication by the chain (SAFETY B1, B2, B6): beta (a - clip d) if it is
 * listed, else a. */
static bool outcome_of(dp_host *host, const dp_parcel_book *parcel, dp_toy_vector out)
{
    dp_toy_vector sent;
    unsigned __int128 energy = 0;
    const uint32_t blob = dp_shelf_find(&host->sim->shelf, &parcel->blob_root);
    const dp_root_book *root = dp_oracle_root(host->sim->oracle, &parcel->root);

    if (!read_vector(host, &parcel->a_root, out)) {
        return false;
    }
    if (root == NULL || root->listed == 0) {
        return true;
    }
    if (blob == DP_SHELF_NONE ||
        dp_toy_decode(dp_shelf_bytes(&host->sim->shelf, blob), sent, &energy) != DP_OK) {
        return false;
    }
    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        if (root->cuts.n > 0 && (root->taken >> dp_toy_part_of(&root->cuts, i) & 1U) == 0) {
            continue; /* Counted by no result: all of it goes back. */
        }
        const int64_t took = (int64_t)((__int128)sent[i] * root->clip / 65536);
        out[i] = (out[i] - took) * host->sim->manifest.feedback_beta_milli / 1000;
    }
    return true;
}

/* ---- what each command may do ---- */

/* A later publication of this node may not be counted by this round: it contains the residual of
 * this one (SAFETY B5). */
static void check_newest(dp_host *host, const dp_parcel_book *parcel, uint64_t round)
{
    dp_oracle *o = host->sim->oracle;

    for (uint32_t i = 0; i < o->n_parcels; i++) {
        const dp_parcel_book *later = &o->parcels[i];
        if (later->owner != host->index || later->number <= parcel->number) {
            continue;
        }
        const dp_root_book *root = dp_oracle_root(o, &later->root);
        if (root != NULL && root->listed != 0 && root->listed <= round) {
            dp_sim_fail(host->sim, "B5", host->index,
                        "brings back what a publication counted in round %llu held",
                        wide(root->listed));
            return;
        }
    }
}

static void check_settled(dp_host *host, const dp_hash *root, uint32_t lambda_q16, uint64_t round)
{
    dp_buffer_book *book = book_of(host);
    dp_parcel_book *parcel = parcel_of(host, root);
    dp_toy_vector rest;

    if (parcel == NULL) {
        return; /* dp_oracle_settled has reported it */
    }
    if (lambda_q16 != 0) {
        check_newest(host, parcel, round);
    }
    if (parcel->settled == book->epoch + 1) {
        dp_sim_fail(host->sim, "B4", host->index, "settles a publication twice");
    }
    parcel->settled = book->epoch + 1;
    if (parcel->number > book->settled) {
        book->settled = parcel->number;
    }
    if (!outcome_of(host, parcel, rest)) {
        dp_sim_fail(host->sim, "D3", host->index, "what was published is nowhere");
        return;
    }
    faded(rest, rest, lambda_q16);
    if (!equal(host->toy.e, rest) || !is_empty(host->toy.a) || host->toy.pending) {
        dp_sim_fail(host->sim, "S5", host->index,
                    "the residual is not what the record leaves of the publication");
    }
}

static void on_load(dp_host *host)
{
    dp_buffer_book *book = book_of(host);
    const dp_toy *toy = &host->toy;

    book->epoch++;
    book->settled = 0;
    if (toy->pending || !is_empty(toy->open) || !is_empty(toy->frozen) || !is_empty(toy->a) ||
        !is_empty(toy->e)) {
        dp_sim_fail(host->sim, "S5", host->index, "a loaded state does not empty the work buffers");
    }
}

static void on_restore(dp_host *host, const dp_action *action)
{
    const dp_toy *was = &book_of(host)->was;
    const dp_toy *toy = &host->toy;
    dp_toy_vector stored;

    if (!read_vector(host, &action->u.restore.a_root, stored)) {
        return; /* the host has reported it */
    }
    if (action->u.restore.frozen) {
        faded(stored, stored, action->u.restore.lambda);
        book_of(host)->kept = action->u.restore.lambda;
        if (!is_empty(was->frozen) || !equal(toy->frozen, stored) || !equal(toy->e, was->e)) {
            dp_sim_fail(host->sim, "S5", host->index, "what was frozen is brought back wrongly");
        } else if (toy->frozen_work.steps != action->u.restore.steps ||
                   toy->frozen_work.tokens != action->u.restore.tokens) {
            dp_sim_fail(host->sim, "S14", host->index,
                        "F is brought back as %u steps, and holds %u", action->u.restore.steps,
                        toy->frozen_work.steps);
        }
        return;
    }
    if (was->pending || !is_empty(was->e)) {
        dp_sim_fail(host->sim, "S5", host->index,
                    "a publication is brought back on top of a residual");
        return;
    }
    if (action->u.restore.settle != DP_SETTLE_NONE) {
        check_settled(host, &action->u.restore.ready_root, action->u.restore.lambda,
                      host->toy.round);
    } else if (!equal(toy->a, stored) || !is_empty(toy->e)) {
        dp_sim_fail(host->sim, "S5", host->index, "a publication is brought back wrongly");
    }
}

/* The parts of a publication in a round of parts; otherwise NULL. */
static dp_part_list *list_of(dp_host *host, const dp_toy_parcel *made)
{
    if (made->cuts.n == 0) {
        return NULL;
    }
    dp_part_list *list = calloc(1, sizeof *list);
    dp_assert(list != NULL);
    list->n = made->cuts.n;
    for (uint32_t p = 0; p < list->n; p++) {
        const uint32_t object = dp_shelf_add(&host->sim->shelf, dp_toy_part(made, p));
        list->refs[p] = (dp_part_ref){.root = host->sim->shelf.items[object].root,
                                      .bytes = host->sim->shelf.items[object].size};
    }
    return list;
}

static void on_publish(dp_host *host)
{
    dp_oracle *o = host->sim->oracle;
    dp_buffer_book *book = book_of(host);
    const dp_toy *was = &book->was;
    const dp_toy *toy = &host->toy;
    const dp_toy_parcel *made = &host->parcels[host->n_parcels % DP_HOST_PARCELS_MAX].made;
    uint64_t capacity = o->parcels_capacity;

    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        if (toy->a[i] != was->e[i] + was->frozen[i] + was->open[i] || toy->e[i] != 0 ||
            toy->frozen[i] != 0 || toy->open[i] != 0) {
            dp_sim_fail(host->sim, "S5", host->index,
                        "a publication is not all that was not applied");
            return;
        }
    }
    if (book->announced > book->settled && !o->members[host->index].forgot) {
        dp_sim_fail(host->sim, "B6", host->index,
                    "publishes, and an announced publication has no outcome here");
    }
    o->parcels = dp_oracle_room(o->parcels, o->n_parcels, &capacity, sizeof *o->parcels);
    o->parcels_capacity = (uint32_t)capacity;
    const dp_hash blob_root = stored_root(host, made->blob, made->blob_size);
    dp_part_list *parts = list_of(host, made);
    o->parcels[o->n_parcels++] =
        (dp_parcel_book){.root = parts != NULL ? dp_part_list_root(parts) : blob_root,
                         .blob_root = blob_root,
                         .parts = parts,
                         .a_root = stored_root(host, made->vector, sizeof made->vector),
                         .owner = host->index,
                         .number = ++book->published,
                         .samples = made->samples};
}

/* Fails if a counted publication that the trainer does not know is later than the publication of
 * the residual: it contained all of that residual. */
static void check_overtaken(dp_host *host, uint64_t round)
{
    const dp_oracle *o = host->sim->oracle;
    const dp_buffer_book *book = book_of(host);

    for (uint32_t i = 0; i < o->n_parcels && book->settled != 0; i++) {
        const dp_parcel_book *parcel = &o->parcels[i];
        if (parcel->owner != host->index || parcel->number <= book->settled) {
            continue;
        }
        const dp_root_book *root = dp_oracle_root(host->sim->oracle, &parcel->root);
        if (root != NULL && root->listed == round && !is_empty(host->toy.e)) {
            dp_sim_fail(host->sim, "B5", host->index,
                        "keeps a residual that a publication counted in round %llu held",
                        wide(round));
        }
    }
}

static void on_apply(dp_host *host, const dp_action *action)
{
    const dp_toy *was = &book_of(host)->was;
    const dp_toy *toy = &host->toy;
    const uint32_t lambda = action->u.apply.lambda;
    dp_toy_vector open;
    dp_toy_vector frozen;
    dp_toy_vector rest;

    dp_buffer_book *book = book_of(host);
    book->kept = (uint32_t)((uint64_t)book->kept * lambda / 65536);
    faded(open, was->open, lambda);
    faded(frozen, was->frozen, lambda);
    faded(rest, was->e, lambda);
    if (!equal(toy->open, open) || !equal(toy->frozen, frozen)) {
        dp_sim_fail(host->sim, "S5", host->index, "APPLY changes work that is not applied");
    } else if (action->u.apply.settle != DP_SETTLE_NONE) {
        check_settled(host, &host->pending_root, lambda, action->u.apply.round);
    } else if (!equal(toy->e, rest) || !equal(toy->a, was->a)) {
        dp_sim_fail(host->sim, "S5", host->index, "APPLY changes a residual without an outcome");
    }
    check_overtaken(host, action->u.apply.round);
}

static void on_freeze(dp_host *host)
{
    book_of(host)->kept = 65536;
    const dp_toy *was = &book_of(host)->was;
    const dp_toy *toy = &host->toy;

    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        if (toy->frozen[i] != was->frozen[i] + was->open[i] || toy->open[i] != 0 ||
            toy->a[i] != was->a[i] || toy->e[i] != was->e[i]) {
            dp_sim_fail(host->sim, "S5", host->index, "FREEZE takes something else than open work");
            return;
        }
    }
}

static uint64_t weight_of(dp_toy_work work)
{
    const unsigned __int128 most = (unsigned __int128)1 << 62;
    const unsigned __int128 square = (unsigned __int128)work.tokens * work.tokens;

    if (work.steps == 0) {
        return 0;
    }
    return (uint64_t)(square / work.steps < most ? square / work.steps : most);
}

/* Weights stay with their node (SAFETY C3), and only F changes, by the difference of the exchange
 * (C4). If F has aged since it was frozen, the same share of this difference remains as of F. */
static void on_mix(dp_host *host, const dp_action *action, const dp_toy_vector change)
{
    const dp_toy *was = &book_of(host)->was;
    const dp_toy *toy = &host->toy;

    if (action->u.mix.lambda != 0 && /* Otherwise nothing is left of F and of its weight. */
        (weight_of(toy->frozen_work) != action->u.mix.weight_own ||
         weight_of(was->frozen_work) != action->u.mix.weight_own)) {
        dp_sim_fail(host->sim, "S14", host->index,
                    "an exchange takes F for %llu where it weighs %llu, and %llu after it",
                    wide(action->u.mix.weight_own), wide(weight_of(was->frozen_work)),
                    wide(weight_of(toy->frozen_work)));
        return;
    }
    dp_toy_vector added;
    const uint64_t left = (uint64_t)book_of(host)->kept * action->u.mix.damp / 65536;
    if (action->u.mix.lambda != left) {
        dp_sim_fail(
            host->sim, "S14", host->index,
            "an exchange adds %u / 65536 of its difference to F, of which %u is left, damped to %u",
            action->u.mix.lambda, book_of(host)->kept, action->u.mix.damp);
        return;
    }
    faded(added, change, action->u.mix.lambda);
    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        if (toy->frozen[i] != was->frozen[i] + added[i] || toy->open[i] != was->open[i] ||
            toy->a[i] != was->a[i] || toy->e[i] != was->e[i]) {
            dp_sim_fail(host->sim, "S14", host->index,
                        "an exchange changes more than F, or by more than its difference");
            return;
        }
    }
}

/* ---- called by the hosts ---- */

void dp_oracle_command(dp_host *host)
{
    if (host->sim->forks != NULL) {
        return;
    }
    book_of(host)->was = host->toy;
}

void dp_oracle_buffers(dp_host *host, const dp_action *action, const dp_toy_vector change)
{
    if (host->sim->forks != NULL) {
        return;
    }
    if (action->type == DP_DO_TRAINER_LOAD || action->type == DP_DO_TRAINER_INIT) {
        on_load(host);
    } else if (action->type == DP_DO_TRAINER_RESTORE) {
        on_restore(host, action);
    } else if (action->type == DP_DO_PUBLISH) {
        on_publish(host);
    } else if (action->type == DP_DO_APPLY) {
        on_apply(host, action);
    } else if (action->type == DP_DO_FREEZE) {
        on_freeze(host);
        dp_oracle_frozen(host, action->u.mix.exchange);
    } else {
        dp_assert(action->type == DP_DO_MIX);
        on_mix(host, action, change);
    }
    if (!dp_toy_balanced(&host->toy)) {
        dp_sim_fail(host->sim, "S5", host->index, "displacement was made or lost, or x hides it");
    }
}

void dp_oracle_trainer_gone(dp_host *host)
{
    if (host->sim->forks != NULL) {
        return;
    }
    if (host->sim->oracle != NULL) {
        book_of(host)->epoch++;
        book_of(host)->settled = 0;
    }
}

void dp_oracle_announced(dp_host *host, const dp_hash *root)
{
    const dp_parcel_book *parcel = parcel_of(host, root);

    if (parcel != NULL && parcel->number > book_of(host)->announced) {
        book_of(host)->announced = parcel->number;
    }
}

/* Has the disk lost one of the objects that this row keeps? */
static bool some_lost(const dp_host *host, const dp_disk_row *row)
{
    bool lost = false;

    for (uint32_t i = 0; i < 3 && row->size != 0; i++) {
        lost = lost || (row->keep[i] != DP_SHELF_NONE && dp_rot_is_lost(host, row->keep[i]));
    }
    return lost;
}

/* The node reports that its own work is lost with the disk: the disk must have lost it, and the
 * publication needs no outcome any more. */
void dp_oracle_discarded(dp_host *host, const dp_note *note)
{
    const dp_disk *disk = &host->disk;
    const bool publication = strstr(note->cause, "disk lost this node's published update") != NULL;
    bool lost = publication && some_lost(host, &disk->pending);

    if (!publication && strstr(note->cause, "the disk lost") == NULL) {
        return;
    }
    for (uint32_t i = 0; i < disk->n_exchanges && !publication; i++) {
        lost = lost || some_lost(host, &disk->exchanges[i]);
    }
    if (!lost) {
        dp_sim_fail(host->sim, "B8", host->index, "%s, and the disk has all of it", note->cause);
    } else if (publication && host->sim->forks == NULL) {
        book_of(host)->settled = book_of(host)->announced;
    }
}

/* Checks that work is discarded for its age only with a note (SAFETY B8). */
void dp_oracle_ordered(dp_host *host, const dp_action *action)
{
    if (host->sim->forks != NULL) {
        return;
    }
    const dp_actions *actions = host->sim->actions;
    const uint32_t lambda = action->type == DP_DO_APPLY             ? action->u.apply.lambda
                            : action->type == DP_DO_TRAINER_RESTORE ? action->u.restore.lambda
                                                                    : 65536;
    bool told = lambda == 65536;

    for (uint32_t i = 0; i < actions->count && !told; i++) {
        told = actions->items[i].type == DP_DO_NOTE &&
               actions->items[i].u.note.code == DP_NOTE_DISCARDED;
    }
    if (!told) {
        dp_sim_fail(host->sim, "B8", host->index, "work is discarded and nobody is told");
    }
}
