#include "tests/sim/real.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "gossip/vote/commit_row.h"
#include "store/chain.h"
#include "store/ckpt.h"
#include "store/rows.h"
#include "store/vote.h"
#include "tests/store/platter.h"

enum {
    SEEDS_PER_REAL = 16,
    USES = 8,
    WRITES_PER_CUT = 100,
    CUT_OPS_MAX = 12,   /* changes of the disk after which the power fails in a write */
    START_OPS_MAX = 40, /* ... and in a start */
    ROW_MAX = DP_COMMIT_ROW_HEAD + DP_RECORD_WHOLE_MAX
};

typedef struct real {
    dp_shadow shadow;
    dp_sim *sim;
    uint32_t index;
    dp_rng rng;
    dp_platter *platter;
    dp_store *store;
    char path[128];
} real;

static real *of(dp_shadow *shadow)
{
    return (real *)shadow;
}

static bool must(real *r, const char *what, dp_status status)
{
    if (status != DP_OK && !dp_platter_dead(r->platter)) {
        dp_sim_fail(r->sim, "S8", r->index, "the store: %s: %s", what, dp_status_name(status));
    }
    return status == DP_OK;
}

static void differs(real *r, const char *what, uint64_t number)
{
    dp_sim_fail(r->sim, "S8", r->index, "the store lost what was durable: %s %llu", what,
                (unsigned long long)number);
}

/* ---- names ---- */

static dp_pin pin_of(const real *r, uint32_t use)
{
    return (dp_pin){.run = r->sim->run, .kind = DP_PIN_BLOB, .round = use};
}

static const dp_hash *root_of(const real *r, uint32_t object)
{
    return &r->sim->shelf.items[object].root;
}

static void name_row(dp_store_kind kind, const uint8_t exchange[16], char name[DP_ROW_NAME_MAX])
{
    char hex[33];

    snprintf(name, DP_ROW_NAME_MAX, "%s", kind == DP_STORE_PENDING ? "pending" : "proof");
    if (kind == DP_STORE_EXCHANGE) {
        dp_hex(dp_view_of(exchange, 16), hex);
        snprintf(name, DP_ROW_NAME_MAX, "exchange/%s", hex);
    }
}

/* ---- writes ---- */

static dp_status put_object(real *r, const dp_disk *disk, uint32_t object)
{
    const uint32_t uses = object < disk->uses_capacity ? disk->uses[object] : 0;
    dp_pin pin = pin_of(r, 0); /* of an object that no row names yet */
    bool put = false;

    for (uint32_t use = 1; use < USES; use++) {
        if ((uses >> use & 1) != 0) {
            pin = pin_of(r, use);
            if (put) {
                DP_TRY(dp_object_pin(r->store, root_of(r, object), &pin));
            } else {
                DP_TRY(dp_object_put(r->store, dp_shelf_bytes(&r->sim->shelf, object), &pin, NULL));
                put = true;
            }
        }
    }
    return put ? DP_OK
               : dp_object_put(r->store, dp_shelf_bytes(&r->sim->shelf, object), &pin, NULL);
}

static dp_status save_checkpoint(real *r, uint64_t round, uint32_t object)
{
    dp_ckpt ckpt = {.round = round,
                    .state_root = *root_of(r, object),
                    .created_ms = 1700000000000ULL + r->sim->now_us / 1000};
    const dp_status status =
        dp_ckpt_save(r->store, &r->sim->run, &ckpt, dp_shelf_bytes(&r->sim->shelf, object));

    return status == DP_EXISTS ? DP_OK : status;
}

static dp_status save_vote(real *r, dp_view bytes)
{
    dp_commit_row row;
    DP_TRY(dp_commit_row_read(bytes, &row));
    dp_vote_row vote = {
        .slot = row.slot, .promised = row.promised, .accepted = row.accepted, .record = row.record};
    memcpy(vote.place, row.fork.bytes, DP_HASH_BYTES);
    memcpy(vote.place + DP_HASH_BYTES, row.prev.bytes, DP_HASH_BYTES);
    return dp_vote_save(r->store, &r->sim->run, &vote);
}

static dp_status append_record(real *r, uint64_t slot, const dp_disk_record *record)
{
    const dp_view bytes = dp_view_of(record->data, record->record_size);
    const dp_chain_record row = {
        .slot = slot,
        .hash = dp_record_hash(bytes),
        .record = bytes,
        .cert = dp_view_of(record->data + record->record_size, record->cert_size)};
    return dp_chain_append(r->store, &r->sim->run, &row);
}

static dp_status put_row(real *r, dp_store_kind kind, const dp_disk_row *from)
{
    dp_store_row row = {.bytes = dp_view_of(from->data, from->size)};

    name_row(kind, from->exchange, row.name);
    if (from->size == 0) {
        return dp_store_row_delete(r->store, &r->sim->run, row.name);
    }
    for (uint32_t i = 0; i < DP_ROW_KEEPS; i++) {
        if (from->keep[i] != DP_SHELF_NONE) {
            row.keep[i] = *root_of(r, from->keep[i]);
        }
    }
    DP_TRY(dp_store_row_put(r->store, &r->sim->run, &row));
    for (uint32_t i = 0; i < DP_ROW_KEEPS; i++) {
        const dp_pin fresh = pin_of(r, DP_DISK_FRESH);
        if (from->keep[i] != DP_SHELF_NONE) { /* From here on only the row keeps it. */
            DP_TRY(dp_object_unpin(r->store, &row.keep[i], &fresh));
        }
    }
    return DP_OK;
}

static dp_status do_write(real *r, const dp_disk *disk, const dp_disk_write *write)
{
    switch (write->kind) {
    case DP_WRITE_OBJECT:
        return put_object(r, disk, write->object);
    case DP_WRITE_CHECKPOINT:
        return save_checkpoint(r, write->round, write->object);
    case DP_WRITE_CHUNK:
        return DP_BADARG; /* Here objects have one chunk. */
    case DP_WRITE_ROW:
        break;
    }
    if (write->row_kind == DP_STORE_DECIDED) {
        return append_record(r, write->row.slot, &write->record);
    }
    if (write->row_kind == DP_STORE_VOTE) {
        return save_vote(r, dp_view_of(write->row.data, write->row.size));
    }
    return put_row(r, write->row_kind, &write->row);
}

static void on_write(dp_shadow *shadow, const dp_disk *disk, const dp_disk_write *write)
{
    real *r = of(shadow);

    must(r, "a write", do_write(r, disk, write));
}

static void on_use(dp_shadow *shadow, const dp_disk *disk, uint32_t object, uint32_t use, bool on)
{
    real *r = of(shadow);
    const dp_pin pin = pin_of(r, use);
    const dp_pin unnamed = pin_of(r, 0);

    /* It did not open, which was reported. */
    if (object >= r->sim->shelf.count || r->store == NULL) {
        return;
    }
    if (on) {
        if (dp_disk_holds(disk, object)) {
            must(r, "a pin", dp_object_pin(r->store, root_of(r, object), &pin));
        }
        return;
    }
    must(r, "unpin", dp_object_unpin(r->store, root_of(r, object), &pin));
    if (!dp_disk_holds(disk, object)) {
        must(r, "unpin", dp_object_unpin(r->store, root_of(r, object), &unnamed));
    }
}

/* ---- cuts ---- */

/* Only the lock is a real file, and it has no content: no file remains after any end of this
 * process. */
static dp_status open_store(real *r, dp_store_report *report)
{
    const dp_store_options options = {.vfs = dp_platter_vfs(r->platter)};
    char lock[sizeof r->path + 8];
    const dp_status status = dp_store_open(&r->store, r->path, &options, report, NULL);

    snprintf(lock, sizeof lock, "%s/lock", r->path);
    unlink(lock);
    rmdir(r->path);
    return status;
}

static void cut_and_start(real *r)
{
    dp_store_report report = {0};
    dp_status status = DP_OK;

    do {
        dp_platter_kill(r->platter);
        dp_store_close(r->store);
        r->store = NULL;
        dp_platter_settle(r->platter, &r->rng);
        if (dp_rng_below(&r->rng, 4) == 0) {
            dp_platter_arm(r->platter, DP_PLATTER_CUT, 1 + dp_rng_below(&r->rng, START_OPS_MAX),
                           false);
        }
        status = open_store(r, &report);
    } while (dp_platter_dead(r->platter));
    dp_platter_arm(r->platter, DP_PLATTER_SOUND, 0, false);
    if (must(r, "it does not open", status) &&
        (report.meta_rebuilt || report.chunks_rebuilt || report.chunks_damaged != 0)) {
        dp_sim_fail(r->sim, "S8", r->index, "the store took a file for damaged");
    }
}

static bool row_is(real *r, dp_store_kind kind, const dp_disk_row *row);
static bool vote_is(real *r, dp_view bytes);
static bool has_checkpoint(real *r, uint64_t round);

/* Is the interrupted write on the disk? */
static bool is_done(real *r, const dp_disk_write *write)
{
    dp_object_info info = {0};
    dp_chain_tip tip = {0};

    if (write->kind == DP_WRITE_OBJECT) {
        return dp_object_stat(r->store, root_of(r, write->object), &info) == DP_OK && info.complete;
    }
    if (write->kind == DP_WRITE_CHECKPOINT) {
        const dp_pin pin = {.run = r->sim->run, .kind = DP_PIN_STATE, .round = write->round};
        must(r, "unpin", dp_object_unpin(r->store, root_of(r, write->object), &pin));
        return has_checkpoint(r, write->round);
    }
    if (write->row_kind == DP_STORE_DECIDED) {
        return dp_chain_head(r->store, &r->sim->run, &tip) == DP_OK && tip.slot >= write->row.slot;
    }
    if (write->row_kind == DP_STORE_VOTE) {
        return vote_is(r, dp_view_of(write->row.data, write->row.size));
    }
    return row_is(r, write->row_kind, &write->row);
}

static bool on_cut(dp_shadow *shadow, const dp_disk *disk)
{
    real *r = of(shadow);
    const dp_disk_write *write = disk->first;

    if (r->store == NULL) {
        return false;
    }
    const bool begun = write != NULL && dp_rng_below(&r->rng, 4) != 0;
    if (begun) {
        dp_platter_arm(r->platter, DP_PLATTER_CUT, 1 + dp_rng_below(&r->rng, CUT_OPS_MAX), false);
        must(r, "a write", do_write(r, disk, write));
    }
    cut_and_start(r);
    return begun && r->store != NULL && is_done(r, write);
}

/* ---- comparing ---- */

static dp_status visit_record(const dp_chain_record *row, void *context)
{
    const dp_disk_record *records = context;
    const dp_disk_record *here = &records[row->slot - 1];

    return dp_view_equal(row->record, dp_view_of(here->data, here->record_size)) &&
                   dp_view_equal(row->cert,
                                 dp_view_of(here->data + here->record_size, here->cert_size))
               ? DP_OK
               : DP_DIVERGED;
}

static void compare_chain(real *r, const dp_disk *disk)
{
    dp_chain_tip tip = {0};
    const dp_status status = dp_chain_head(r->store, &r->sim->run, &tip);

    if ((status != DP_OK && status != DP_NOTFOUND) || tip.slot != disk->n_records) {
        differs(r, "record", disk->n_records);
    } else if (disk->n_records != 0) {
        must(
            r, "the chain",
            dp_chain_each(r->store, &r->sim->run, 1, disk->n_records, visit_record, disk->records));
    }
}

static bool vote_is(real *r, dp_view bytes)
{
    static uint8_t written[ROW_MAX];
    dp_vote_row vote = {0};
    dp_writer w = dp_writer_of(written, sizeof written);
    dp_buf record;
    bool same = false;

    dp_buf_init(&record, DP_RECORD_WHOLE_MAX);
    if (must(r, "the vote", dp_vote_load(r->store, &r->sim->run, &vote, &record))) {
        dp_commit_row row = {.slot = vote.slot,
                             .promised = vote.promised,
                             .accepted = vote.accepted,
                             .record = dp_buf_view(&record)};
        memcpy(row.fork.bytes, vote.place, DP_HASH_BYTES);
        memcpy(row.prev.bytes, vote.place + DP_HASH_BYTES, DP_HASH_BYTES);
        dp_commit_row_write(&w, &row);
        same = dp_view_equal(dp_view_of(written, w.size), bytes);
        /* The model drops the vote with the record of its slot; the store keeps it. */
        same = same || (bytes.size == 0 && (vote.promised == DP_VOTE_ROW_NONE ||
                                            vote.slot <= r->sim->hosts[r->index].disk.n_records));
    }
    dp_buf_close(&record);
    return same;
}

typedef struct row_wanted {
    const real *real;
    const dp_disk_row *row;
    const char *name;
    bool found;
    bool same;
} row_wanted;

static dp_status visit_row(const dp_store_row *row, void *context)
{
    row_wanted *wanted = context;

    if (strcmp(row->name, wanted->name) != 0) {
        return DP_OK;
    }
    wanted->found = true;
    wanted->same = dp_view_equal(row->bytes, dp_view_of(wanted->row->data, wanted->row->size));
    for (uint32_t i = 0; i < DP_ROW_KEEPS; i++) {
        const bool none = wanted->row->keep[i] == DP_SHELF_NONE;
        wanted->same =
            wanted->same &&
            (none || wanted->row->size == 0
                 ? dp_hash_is_zero(&row->keep[i])
                 : dp_hash_equal(&row->keep[i], root_of(wanted->real, wanted->row->keep[i])));
    }
    return DP_OK;
}

static bool row_is(real *r, dp_store_kind kind, const dp_disk_row *row)
{
    char name[DP_ROW_NAME_MAX];
    row_wanted wanted = {.real = r, .row = row, .name = name};

    name_row(kind, row->exchange, name);
    must(r, "the rows", dp_store_row_each(r->store, &r->sim->run, name, visit_row, &wanted));
    return row->size == 0 ? !wanted.found : wanted.found && wanted.same;
}

static dp_status count_row(const dp_store_row *row, void *context)
{
    (void)row;
    (*(uint32_t *)context)++;
    return DP_OK;
}

static void compare_rows(real *r, const dp_disk *disk)
{
    uint32_t count = 0;

    if (!vote_is(r, dp_view_of(disk->vote.data, disk->vote.size))) {
        differs(r, "the vote of slot", disk->vote.slot);
    }
    if (!row_is(r, DP_STORE_PENDING, &disk->pending)) {
        differs(r, "the pending publication", 0);
    }
    if (!row_is(r, DP_STORE_PROOF, &disk->proof)) {
        differs(r, "the proof of a double vote", 0);
    }
    for (uint32_t i = 0; i < disk->n_exchanges; i++) {
        if (!row_is(r, DP_STORE_EXCHANGE, &disk->exchanges[i])) {
            differs(r, "the row of exchange", i);
        }
    }
    must(r, "the rows", dp_store_row_each(r->store, &r->sim->run, "exchange/", count_row, &count));
    if (count != disk->n_exchanges) {
        differs(r, "an exchange that was over is back; rows", count);
    }
}

static bool has_checkpoint(real *r, uint64_t round)
{
    dp_ckpt list[DP_CKPTS_MAX];
    uint32_t count = 0;
    bool found = false;

    must(r, "the checkpoints", dp_ckpt_list(r->store, &r->sim->run, list, DP_CKPTS_MAX, &count));
    for (uint32_t i = 0; i < count; i++) {
        found = found || (list[i].round == round && list[i].state == DP_CKPT_COMPLETE);
    }
    return found;
}

static void compare_objects(real *r, const dp_disk *disk)
{
    static uint8_t room[DP_CHUNK_BYTES_MIN];

    for (uint32_t i = 0; i < disk->n_checkpoints; i++) {
        if (!has_checkpoint(r, disk->checkpoints[i].round)) {
            differs(r, "the checkpoint of round", disk->checkpoints[i].round);
        }
    }
    for (uint32_t i = 0; i < disk->uses_capacity && i < r->sim->shelf.count; i++) {
        const dp_view bytes = dp_shelf_bytes(&r->sim->shelf, i);
        if (dp_disk_holds(disk, i) &&
            (dp_object_read(r->store, root_of(r, i), room, bytes.size) != DP_OK ||
             memcmp(room, bytes.data, bytes.size) != 0)) {
            differs(r, "object", i);
        }
    }
}

static void on_compare(dp_shadow *shadow, const dp_disk *disk)
{
    real *r = of(shadow);

    if (r->store != NULL && r->sim->failure.invariant[0] == '\0') {
        compare_chain(r, disk);
        compare_rows(r, disk);
        compare_objects(r, disk);
    }
}

/* ---- a new disk ---- */

static dp_status fill(real *r, const dp_disk *disk)
{
    const dp_vote_key_row key = {.secret = {1}, .public_key = {(uint8_t)disk->vote_key}};

    DP_TRY(dp_vote_create_key(r->store, &r->sim->run, &key));
    for (uint32_t i = 0; i < disk->uses_capacity && i < r->sim->shelf.count; i++) {
        if (dp_disk_holds(disk, i)) {
            DP_TRY(put_object(r, disk, i));
        }
    }
    for (uint32_t i = 0; i < disk->n_checkpoints; i++) {
        DP_TRY(save_checkpoint(r, disk->checkpoints[i].round, disk->checkpoints[i].object));
    }
    for (uint32_t i = 0; i < disk->n_records; i++) {
        DP_TRY(append_record(r, (uint64_t)i + 1, &disk->records[i]));
    }
    if (disk->vote.size != 0) {
        DP_TRY(save_vote(r, dp_view_of(disk->vote.data, disk->vote.size)));
    }
    if (disk->pending.size != 0) {
        DP_TRY(put_row(r, DP_STORE_PENDING, &disk->pending));
    }
    if (disk->proof.size != 0) {
        DP_TRY(put_row(r, DP_STORE_PROOF, &disk->proof));
    }
    for (uint32_t i = 0; i < disk->n_exchanges; i++) {
        DP_TRY(put_row(r, DP_STORE_EXCHANGE, &disk->exchanges[i]));
    }
    return DP_OK;
}

static void on_rebuild(dp_shadow *shadow, const dp_disk *disk)
{
    real *r = of(shadow);

    dp_store_close(r->store);
    r->store = NULL;
    dp_platter_wipe(r->platter);
    if (must(r, "it does not open", open_store(r, NULL))) {
        must(r, "a new disk", fill(r, disk));
    }
}

/* ---- outside ---- */

bool dp_real_wanted(const dp_sim *sim)
{
    const dp_profile profile = sim->options.profile;

    if (sim->options.store == DP_SIM_STORE_MODEL || sim->plan.nodes > DP_REAL_NODES_MAX ||
        profile == DP_PROFILE_DUEL || profile == DP_PROFILE_LIAR || profile == DP_PROFILE_MERGE ||
        sim->options.enrolled) {
        /* Duels have only vote rows; the real store gets neither FORKs nor earlier records. */
        return false;
    }
    return sim->options.store >= DP_SIM_STORE_REAL || sim->options.seed % SEEDS_PER_REAL == 0;
}

void dp_real_open(dp_sim *sim)
{
    static const dp_shadow calls = {.write = on_write,
                                    .use = on_use,
                                    .cut = on_cut,
                                    .compare = on_compare,
                                    .rebuild = on_rebuild};
    const char *tmp = getenv("TMPDIR");

    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        real *r = calloc(1, sizeof *r);
        dp_assert(r != NULL);
        r->shadow = calls;
        r->sim = sim;
        r->index = i;
        dp_rng_init(&r->rng, dp_mix64(sim->options.seed) ^ (0x7265616c + (uint64_t)i));
        snprintf(r->path, sizeof r->path, "%.80s/dpsim-%ld-%u", tmp != NULL ? tmp : "/tmp",
                 (long)getpid(), i);
        r->platter = dp_platter_open(sim->options.store == DP_SIM_STORE_LIES ? DP_PLATTER_LIES
                                                                             : DP_PLATTER_HONEST);
        dp_assert(r->platter != NULL);
        sim->hosts[i].disk.shadow = &r->shadow;
        on_rebuild(&r->shadow, &sim->hosts[i].disk);
    }
}

bool dp_real_strikes(dp_host *host)
{
    dp_sim *sim = host->sim;

    if (host->disk.shadow == NULL || sim->healed || (sim->plan.on >> DP_FAULT_CRASH & 1) == 0 ||
        dp_rng_below(&of(host->disk.shadow)->rng, WRITES_PER_CUT) != 0) {
        return false;
    }
    dp_host_crash(host, dp_rng_below(&sim->crash_rng, 4) != 0);
    host->restart_at = sim->now_us + 20000 + dp_rng_below(&sim->crash_rng, sim->plan.away_us_max);
    dp_sim_push(sim,
                &(dp_occasion){.at_us = host->restart_at, .kind = DP_ON_BOOT, .node = host->index});
    return true;
}

void dp_real_close(dp_host *host)
{
    if (host->disk.shadow != NULL) {
        real *r = of(host->disk.shadow);
        dp_store_close(r->store);
        dp_platter_close(r->platter);
        free(r);
        host->disk.shadow = NULL;
    }
}
