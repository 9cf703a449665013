#include "tests/sim/rot.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tests/sim/faults.h"

static const uint64_t news_us = 200000; /* The write of a vote has ended by then. */

static dp_rot *find(dp_host *host, uint32_t object)
{
    for (uint32_t i = 0; i < host->n_rotten; i++) {
        if (host->rotten[i].object == object) {
            return &host->rotten[i];
        }
    }
    return NULL;
}

/* Removes entries of objects that have since been dropped or fetched again. */
static void tidy(dp_host *host)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < host->n_rotten; i++) {
        const dp_rot rot = host->rotten[i];
        if (dp_disk_holds(&host->disk, rot.object) != rot.found) {
            host->rotten[kept++] = rot;
        }
    }
    host->n_rotten = kept;
}

/* ---- what may rot ---- */

static bool is_well(dp_host *host, uint32_t object)
{
    return dp_disk_holds(&host->disk, object) && find(host, object) == NULL;
}

/* True if all other hosts that have ever run have it, and they are more than half of all, so that
 * any core has it: at most one disk lacks a part of the data at a time. */
static bool others_have(dp_sim *sim, const dp_host *victim, uint32_t object)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        dp_host *host = &sim->hosts[i];
        if (host == victim || !host->started_once || host->left) {
            continue;
        }
        if (!is_well(host, object)) {
            return false;
        }
        count++;
    }
    return count * 2 > sim->plan.nodes;
}

/* Have most of the others saved this round or a later one? Then no host remains without a state. */
static bool others_saved(dp_sim *sim, const dp_host *victim, uint64_t round)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        dp_host *host = &sim->hosts[i];
        bool saved = false;
        for (uint32_t k = 0; host != victim && !host->left && k < host->disk.n_checkpoints; k++) {
            const dp_disk_checkpoint *ckpt = &host->disk.checkpoints[k];
            saved = saved || (ckpt->round >= round && is_well(host, ckpt->object));
        }
        count += saved ? 1 : 0;
    }
    return count * 2 > sim->plan.nodes;
}

static uint32_t shelf_of(const dp_sim *sim, const dp_hash *root)
{
    return dp_shelf_find(&sim->shelf, root);
}

/* The tokenizer or a shard, by number. */
static uint32_t data_of(const dp_sim *sim, uint32_t number)
{
    return shelf_of(sim, number == 0 ? &sim->manifest.tokenizer
                                     : &sim->manifest.shards[number - 1].root);
}

static bool is_data(const dp_sim *sim, uint32_t object)
{
    for (uint32_t d = 0; d <= sim->manifest.n_shards; d++) {
        if (data_of(sim, d) == object) {
            return true;
        }
    }
    return false;
}

static bool row_keeps(const dp_disk_row *row, uint32_t object)
{
    return row->size != 0 &&
           (row->keep[0] == object || row->keep[1] == object || row->keep[2] == object);
}

static bool is_of_exchange(const dp_disk *disk, uint32_t object)
{
    for (uint32_t i = 0; i < disk->n_exchanges; i++) {
        if (row_keeps(&disk->exchanges[i], object)) {
            return !row_keeps(&disk->pending, object);
        }
    }
    return false;
}

/* True if more than half of the hosts have it besides this one, or if no record will ever name it:
 * a private vector, or an object that only an exchange keeps. A voter's HAVE may decide a record,
 * and then some node must have the object. */
static bool others_keep(dp_sim *sim, const dp_host *victim, uint32_t object)
{
    const bool is_vector = sim->shelf.items[object].n_bytes == DP_TOY_VECTOR_BYTES;
    uint32_t count = 0;

    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        dp_host *host = &sim->hosts[i];
        count += host != victim && !host->left && is_well(host, object) ? 1 : 0;
    }
    return count * 2 > sim->plan.nodes || is_vector || is_of_exchange(&victim->disk, object);
}

/* Can the run do without this disk's copy? */
static bool is_spare(dp_sim *sim, dp_host *host, uint32_t object)
{
    if (!is_well(host, object)) {
        return false;
    }
    if (is_data(sim, object)) {
        return others_have(sim, host, object);
    }
    for (uint32_t i = 0; i < host->disk.n_checkpoints; i++) {
        const dp_disk_checkpoint *ckpt = &host->disk.checkpoints[i];
        if (ckpt->object == object && !others_saved(sim, host, ckpt->round)) {
            return false;
        }
    }
    return others_keep(sim, host, object);
}

/* An object that the publication under way or an exchange needs. */
static uint32_t draw_of_rows(dp_sim *sim, const dp_disk *disk)
{
    const uint32_t row = (uint32_t)dp_fault_below(sim, disk->n_exchanges + 1);
    const uint32_t place = (uint32_t)dp_fault_below(sim, 3);
    const dp_disk_row *drawn = row == 0 ? &disk->pending : &disk->exchanges[row - 1];

    return drawn->size == 0 ? DP_SHELF_NONE : drawn->keep[place];
}

/* DP_SHELF_NONE: no object may rot now. */
static uint32_t draw_object(dp_sim *sim, dp_host *host)
{
    const dp_disk *disk = &host->disk;
    const uint64_t kind = dp_fault_below(sim, 4);
    uint32_t object = DP_SHELF_NONE;

    if (kind == 0) {
        object = data_of(sim, (uint32_t)dp_fault_below(sim, sim->manifest.n_shards + 1));
    } else if (kind == 1 && disk->n_checkpoints > 0) {
        object = disk->checkpoints[dp_fault_below(sim, disk->n_checkpoints)].object;
    } else if (kind == 2) {
        object = draw_of_rows(sim, disk);
    } else if (kind == 3 && sim->shelf.count > 0) {
        object = (uint32_t)dp_fault_below(sim, sim->shelf.count);
    }
    return is_spare(sim, host, object) ? object : DP_SHELF_NONE;
}

static void add(dp_host *host, uint32_t object, uint32_t chunk)
{
    host->rotten[host->n_rotten++] = (dp_rot){.object = object, .chunk = chunk};
}

/* The file of all chunks is deleted, or truncated to a half. */
static void lose_file(dp_sim *sim, dp_host *host)
{
    const bool half = dp_fault_below(sim, 2) == 0;

    for (uint32_t i = 0; i < sim->shelf.count && host->n_rotten < DP_ROT_MAX; i++) {
        if (dp_disk_holds(&host->disk, i) && (!half || dp_fault_below(sim, 2) == 0) &&
            is_spare(sim, host, i)) {
            add(host, i, DP_ROT_WHOLE);
        }
    }
}

void dp_rot_strike(dp_sim *sim)
{
    dp_host *host = dp_fault_any_up(sim);

    if (host == NULL || host->disk.shadow != NULL) { /* The real store reads its own writes. */
        return;
    }
    tidy(host);
    if (dp_fault_below(sim, 8) == 0) {
        dp_fault_count(sim);
        lose_file(sim, host);
        return;
    }
    const uint32_t object = draw_object(sim, host);
    if (object == DP_SHELF_NONE || host->n_rotten == DP_ROT_MAX) {
        return;
    }
    dp_fault_count(sim);
    add(host, object, (uint32_t)dp_fault_below(sim, sim->shelf.items[object].n_chunks));
}

void dp_rot_boot(dp_host *host)
{
    for (uint32_t i = 0; i < host->n_rotten; i++) {
        dp_rot *rot = &host->rotten[i];
        if (rot->chunk == DP_ROT_WHOLE && !rot->found && dp_disk_holds(&host->disk, rot->object)) {
            rot->found = true;
            dp_disk_spoil(&host->disk, rot->object);
        }
        /* The node knows it from the objects present at its start. */
        rot->told = rot->told || rot->found;
    }
}

/* A holder of the object: in the core (in 1), or one that can join it (in 0); plan.nodes: none. */
static uint32_t holder_of(dp_sim *sim, const uint8_t *core, uint32_t object, uint8_t in)
{
    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        const dp_host *host = &sim->hosts[i];
        if (core[i] == in && !host->left && !host->leaving && dp_disk_holds(&host->disk, object)) {
            return i;
        }
    }
    return sim->plan.nodes;
}

bool dp_rot_take_holders(dp_sim *sim, uint8_t *core)
{
    for (uint32_t d = 0; dp_fault_on(sim, DP_FAULT_ROT) && d <= sim->manifest.n_shards; d++) {
        const uint32_t object = data_of(sim, d);
        if (holder_of(sim, core, object, 1) == sim->plan.nodes) {
            const uint32_t other = holder_of(sim, core, object, 0);
            if (other == sim->plan.nodes) {
                return false;
            }
            core[other] = 1;
        }
    }
    return true;
}

void dp_rot_heal(dp_sim *sim)
{
    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        dp_host *host = &sim->hosts[i];
        uint32_t kept = 0;
        for (uint32_t k = 0; k < host->n_rotten; k++) {
            if (host->rotten[k].found) {
                host->rotten[kept++] = host->rotten[k];
            }
        }
        host->n_rotten = kept;
    }
}

/* ---- finding out ---- */

/* The chunk is lost; the others remain. */
static void spoil(dp_host *host, dp_rot *rot)
{
    const dp_shelf *shelf = &host->sim->shelf;
    const dp_shelf_item *item = &shelf->items[rot->object];

    rot->found = true;
    dp_disk_spoil(&host->disk, rot->object);
    if (item->n_chunks == 1 || rot->chunk == DP_ROT_WHOLE) {
        return;
    }
    dp_parts_begin(&host->disk.parts, rot->object, item->n_chunks, item->leaves);
    for (uint32_t i = 0; i < item->n_chunks; i++) {
        const dp_view bytes = dp_shelf_chunk(shelf, rot->object, i);
        uint8_t *copy = malloc(bytes.size + 1);
        dp_assert(copy != NULL);
        if (i == rot->chunk) {
            free(copy);
            continue;
        }
        memcpy(copy, bytes.data, bytes.size);
        dp_parts_put(&host->disk.parts, rot->object, i, copy, (uint32_t)bytes.size);
    }
}

bool dp_rot_read(dp_host *host, uint32_t object, uint32_t chunk)
{
    dp_rot *rot = find(host, object);

    if (rot == NULL || rot->found || (rot->chunk != chunk && rot->chunk != DP_ROT_WHOLE)) {
        return true;
    }
    spoil(host, rot);
    return false;
}

bool dp_rot_is_lost(const dp_host *host, uint32_t object)
{
    for (uint32_t i = 0; i < host->n_rotten; i++) {
        if (host->rotten[i].object == object && host->rotten[i].found) {
            return !dp_disk_holds(&host->disk, object);
        }
    }
    return false;
}

bool dp_rot_give(dp_host *host, uint32_t object)
{
    const dp_rot *rot = find(host, object);

    return !dp_rot_is_lost(host, object) && (rot == NULL || dp_rot_read(host, object, rot->chunk));
}

bool dp_rot_is_news(const dp_host *host, uint32_t object)
{
    for (uint32_t i = 0; i < host->n_rotten; i++) {
        const dp_rot *rot = &host->rotten[i];
        if (rot->object == object && rot->found) {
            return !dp_disk_holds(&host->disk, object) &&
                   (!rot->told || host->sim->now_us < rot->told_us + news_us);
        }
    }
    return false;
}

void dp_rot_say(dp_host *host, uint32_t object)
{
    dp_rot *rot = find(host, object);
    dp_event event = {.type = DP_EV_OBJECT_LOST};

    if (!dp_rot_is_lost(host, object)) {
        return; /* It has been fetched again meanwhile. */
    }
    rot->told = true;
    rot->told_us = host->sim->now_us;
    event.u.object.root = host->sim->shelf.items[object].root;
    dp_host_event(host, &event);
}

void dp_rot_tell(dp_host *host, uint32_t object)
{
    dp_sim_push(host->sim, &(dp_occasion){.at_us = host->sim->now_us + 1,
                                          .kind = DP_ON_LOST,
                                          .node = host->index,
                                          .boot = host->boot,
                                          .value = object});
}

bool dp_rot_open(dp_host *host, const dp_hash *root)
{
    const uint32_t object = shelf_of(host->sim, root);
    const dp_rot *rot = find(host, object);

    if (dp_disk_holds(&host->disk, object) &&
        (rot == NULL || dp_rot_read(host, object, rot->chunk))) {
        return true;
    }
    if (find(host, object) != NULL) {
        find(host, object)->told = true;
        find(host, object)->told_us = host->sim->now_us;
    }
    dp_event event = {.type = DP_EV_OBJECT_LOST};
    event.u.object.root = *root;
    dp_host_event(host, &event);
    return false;
}

bool dp_rot_open_data(dp_host *host)
{
    const dp_sim *sim = host->sim;
    bool whole = true;

    for (uint32_t i = 0; whole && dp_fault_on(sim, DP_FAULT_ROT) && i <= sim->manifest.n_shards;
         i++) {
        const dp_hash root = sim->shelf.items[data_of(sim, i)].root;
        whole = dp_rot_open(host, &root);
    }
    return whole;
}
