#include "tests/sim/disk.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tests/sim/object.h"

static void row_clear(dp_disk_row *row)
{
    free(row->data);
    memset(row, 0, sizeof *row);
    row->keep[0] = DP_SHELF_NONE;
    row->keep[1] = DP_SHELF_NONE;
    row->keep[2] = DP_SHELF_NONE;
}

void dp_disk_write_free(dp_disk_write *write)
{
    if (write != NULL) {
        free(write->row.data);
        free(write->record.data);
        free(write);
    }
}

static void drop_writes(dp_disk *disk)
{
    while (disk->first != NULL) {
        dp_disk_write *write = disk->first;
        disk->first = write->next;
        dp_disk_write_free(write);
    }
    disk->last = NULL;
    disk->n_writes = 0;
    disk->free_us = 0;
}

static void drop_records(dp_disk *disk, uint32_t kept)
{
    while (disk->n_records > kept) {
        free(disk->records[--disk->n_records].data);
    }
}

void dp_disk_close(dp_disk *disk)
{
    drop_writes(disk);
    drop_records(disk, 0);
    free(disk->records);
    free(disk->uses);
    dp_parts_close(&disk->parts);
    row_clear(&disk->vote);
    row_clear(&disk->pending);
    row_clear(&disk->copied);
    row_clear(&disk->proof);
    for (uint32_t i = 0; i < disk->n_exchanges; i++) {
        row_clear(&disk->exchanges[i]);
    }
    memset(disk, 0, sizeof *disk);
}

static void rebuild_shadow(dp_disk *disk)
{
    if (disk->shadow != NULL) {
        disk->shadow->rebuild(disk->shadow, disk);
    }
}

void dp_disk_wipe(dp_disk *disk, bool keep_vote_key)
{
    const uint64_t incarnation = disk->incarnation;
    const uint32_t vote_key = disk->vote_key + (keep_vote_key ? 0 : 1);

    dp_shadow *const shadow = disk->shadow;

    dp_disk_close(disk);
    disk->shadow = shadow;
    /* The identity key survives in its own file, and with it a clock by which incarnations grow. */
    disk->incarnation = incarnation;
    disk->vote_key = vote_key;
    rebuild_shadow(disk);
}

/* Sometimes the owner copies the row of the publication under way. */
static void back_up(dp_disk *disk)
{
    if (disk->n_records % 4 != 0 || disk->pending.size == 0) {
        return;
    }
    row_clear(&disk->copied);
    disk->copied = disk->pending;
    disk->copied.data = malloc(disk->pending.size);
    dp_assert(disk->copied.data != NULL);
    memcpy(disk->copied.data, disk->pending.data, disk->pending.size);
    disk->copied.slot = disk->n_records; /* of the same moment */
}

void dp_disk_lose_votes(dp_disk *disk, bool keep_vote_key, uint32_t records_kept)
{
    drop_writes(disk);
    row_clear(&disk->vote);
    row_clear(&disk->pending);
    while (disk->n_exchanges > 0) {
        row_clear(&disk->exchanges[--disk->n_exchanges]);
    }
    if (disk->copied.size != 0 && disk->copied.slot <= records_kept) {
        disk->pending = disk->copied;
        disk->copied = (dp_disk_row){0};
        for (uint32_t i = 0; i < 3; i++) {
            if (disk->pending.keep[i] < disk->uses_capacity) {
                disk->uses[disk->pending.keep[i]] |= 1U;
            }
        }
    }
    drop_records(disk, records_kept);
    if (!keep_vote_key) {
        disk->vote_key++;
    }
    rebuild_shadow(disk);
}

uint32_t dp_disk_objects(const dp_disk *disk)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < disk->uses_capacity; i++) {
        count += disk->uses[i] != 0 ? 1 : 0;
    }
    return count;
}

bool dp_disk_holds(const dp_disk *disk, uint32_t object)
{
    return object < disk->uses_capacity && (disk->uses[object] & 1) != 0;
}

bool dp_disk_uses(const dp_disk *disk, uint32_t object, uint32_t use)
{
    return object < disk->uses_capacity && (disk->uses[object] >> use & 1) != 0;
}

static uint8_t *uses_of(dp_disk *disk, uint32_t object)
{
    if (object >= disk->uses_capacity) {
        const uint32_t capacity = (object + 256) * 2;
        disk->uses = realloc(disk->uses, capacity);
        dp_assert(disk->uses != NULL);
        memset(disk->uses + disk->uses_capacity, 0, capacity - disk->uses_capacity);
        disk->uses_capacity = capacity;
    }
    return &disk->uses[object];
}

static bool row_needs(const dp_disk_row *row, uint32_t object)
{
    return row->size != 0 &&
           (row->keep[0] == object || row->keep[1] == object || row->keep[2] == object);
}

static bool needed(const dp_disk *disk, uint32_t object)
{
    if (row_needs(&disk->pending, object)) {
        return true;
    }
    for (uint32_t i = 0; i < disk->n_exchanges; i++) {
        if (row_needs(&disk->exchanges[i], object)) {
            return true;
        }
    }
    for (uint32_t i = 0; i < disk->n_checkpoints; i++) {
        if (disk->checkpoints[i].object == object) {
            return true;
        }
    }
    return false;
}

void dp_disk_use(dp_disk *disk, uint32_t object, uint32_t use, bool on)
{
    uint8_t *uses = uses_of(disk, object);

    dp_assert(use > 0 && use < 8);
    if (on) {
        *uses = (uint8_t)(*uses | (1U << use));
    } else {
        *uses = (uint8_t)(*uses & ~(1U << use));
        if ((*uses & ~1U) == 0 && !needed(disk, object)) {
            *uses = 0;
            dp_parts_drop(&disk->parts, object);
        }
    }
    if (disk->shadow != NULL) {
        disk->shadow->use(disk->shadow, disk, object, use, on);
    }
}

void dp_disk_spoil(dp_disk *disk, uint32_t object)
{
    uint8_t *uses = uses_of(disk, object);

    *uses = (uint8_t)(*uses & ~1U);
}

void dp_disk_complete(dp_disk *disk, uint32_t object)
{
    if (dp_parts_find(&disk->parts, object) != NULL) {
        uint8_t *uses = uses_of(disk, object);
        *uses = (uint8_t)(*uses | 1U);
        dp_parts_drop(&disk->parts, object);
    }
}

uint64_t dp_disk_begin(dp_disk *disk, const dp_disk_write *write, uint64_t now_us, uint64_t took_us)
{
    dp_disk_write *item = malloc(sizeof *item);

    dp_assert(item != NULL);
    *item = *write;
    item->next = NULL;
    if (disk->free_us < now_us) {
        disk->free_us = now_us;
    }
    disk->free_us += took_us;
    item->done_us = disk->free_us;
    if (disk->last != NULL) {
        disk->last->next = item;
    } else {
        disk->first = item;
    }
    disk->last = item;
    disk->n_writes++;
    return item->done_us;
}

bool dp_disk_is_writing(const dp_disk *disk, uint32_t object, uint32_t index)
{
    for (const dp_disk_write *item = disk->first; item != NULL; item = item->next) {
        if (item->then == DP_THEN_CHUNK && item->object == object && item->index == index) {
            return true;
        }
    }
    return false;
}

void dp_disk_hasten(dp_disk *disk, uint64_t now_us, uint32_t times)
{
    for (dp_disk_write *item = disk->first; item != NULL; item = item->next) {
        if (item->done_us > now_us) {
            item->done_us = now_us + (item->done_us - now_us) / times;
        }
    }
    if (disk->free_us > now_us) {
        disk->free_us = now_us + (disk->free_us - now_us) / times;
    }
}

static void append_record(dp_disk *disk, dp_disk_write *write)
{
    const uint64_t slot = write->row.slot;

    if (slot != (uint64_t)disk->n_records + 1) {
        return; /* the oracle has already reported a gap */
    }
    if (disk->n_records == disk->records_capacity) {
        disk->records_capacity = disk->records_capacity == 0 ? 64 : disk->records_capacity * 2;
        disk->records = realloc(disk->records, disk->records_capacity * sizeof *disk->records);
        dp_assert(disk->records != NULL);
    }
    disk->records[disk->n_records++] = write->record;
    write->record.data = NULL;
    if (disk->vote.size != 0 && disk->vote.slot <= slot) {
        row_clear(&disk->vote);
    }
}

void dp_disk_add_record(dp_disk *disk, dp_view record, dp_view cert)
{
    dp_disk_write write = {.row.slot = (uint64_t)disk->n_records + 1,
                           .record = {.data = malloc(record.size + cert.size),
                                      .record_size = (uint32_t)record.size,
                                      .cert_size = (uint32_t)cert.size}};

    dp_assert(write.record.data != NULL && disk->shadow == NULL);
    memcpy(write.record.data, record.data, record.size);
    memcpy(write.record.data + record.size, cert.data, cert.size);
    append_record(disk, &write);
}

/* Stores the record in its slot and drops the records after it, and the checkpoints of later
 * rounds. */
static void fork_records(dp_disk *disk, dp_disk_write *write)
{
    uint32_t kept = 0;

    drop_records(disk, (uint32_t)write->row.slot - 1);
    append_record(disk, write);
    for (uint32_t i = 0; i < disk->n_checkpoints; i++) {
        const dp_disk_checkpoint checkpoint = disk->checkpoints[i];
        if (checkpoint.round <= write->round) {
            disk->checkpoints[kept++] = checkpoint;
        }
    }
    disk->n_checkpoints = kept;
}

/* Drops the objects that only the replaced row used. */
static void let_go(dp_disk *disk, const uint32_t keep[3])
{
    for (uint32_t i = 0; i < 3; i++) {
        if (keep[i] < disk->uses_capacity && (disk->uses[keep[i]] & ~1U) == 0 &&
            !needed(disk, keep[i])) {
            disk->uses[keep[i]] = 0;
        }
    }
}

static void replace_row(dp_disk *disk, dp_disk_row *row, dp_disk_write *write)
{
    const uint32_t keep[3] = {row->keep[0], row->keep[1], row->keep[2]};
    const bool had = row->size != 0;

    row_clear(row);
    *row = write->row;
    write->row.data = NULL;
    for (uint32_t i = 0; i < 3; i++) {
        if (row->keep[i] < disk->uses_capacity) {
            disk->uses[row->keep[i]] = (uint8_t)(disk->uses[row->keep[i]] & ~(1U << DP_DISK_FRESH));
        }
    }
    if (had) {
        let_go(disk, keep);
    }
}

static void put_exchange(dp_disk *disk, dp_disk_write *write)
{
    uint32_t i = 0;

    while (i < disk->n_exchanges &&
           memcmp(disk->exchanges[i].exchange, write->row.exchange, 16) != 0) {
        i++;
    }
    if (write->row.size == 0) {
        if (i < disk->n_exchanges) {
            const uint32_t keep[3] = {disk->exchanges[i].keep[0], disk->exchanges[i].keep[1],
                                      disk->exchanges[i].keep[2]};
            row_clear(&disk->exchanges[i]);
            disk->exchanges[i] = disk->exchanges[--disk->n_exchanges];
            let_go(disk, keep);
        }
        return;
    }
    if (i == disk->n_exchanges) {
        dp_assert(disk->n_exchanges < DP_DISK_EXCHANGES_MAX);
        disk->n_exchanges++;
        memset(&disk->exchanges[i], 0, sizeof disk->exchanges[i]);
    }
    replace_row(disk, &disk->exchanges[i], write);
}

static void put_checkpoint(dp_disk *disk, const dp_disk_write *write)
{
    uint8_t *uses = uses_of(disk, write->object);

    *uses = (uint8_t)(*uses | 1U);
    for (uint32_t i = 0; i < disk->n_checkpoints; i++) {
        if (disk->checkpoints[i].round == write->round) {
            return; /* As the store has it: one of each round. */
        }
    }
    if (disk->n_checkpoints == DP_DISK_CHECKPOINTS_MAX) {
        const uint32_t old = disk->checkpoints[0].object;
        memmove(disk->checkpoints, disk->checkpoints + 1,
                sizeof disk->checkpoints - sizeof disk->checkpoints[0]);
        disk->n_checkpoints--;
        disk->checkpoints[disk->n_checkpoints] =
            (dp_disk_checkpoint){.round = write->round, .object = write->object};
        disk->n_checkpoints++;
        if (old != write->object) {
            dp_disk_use(disk, old, DP_USE_STATE, false);
        }
        return;
    }
    disk->checkpoints[disk->n_checkpoints++] =
        (dp_disk_checkpoint){.round = write->round, .object = write->object};
}

static void perform(dp_disk *disk, dp_disk_write *write)
{
    if (disk->shadow != NULL) {
        disk->shadow->write(disk->shadow, disk, write);
    }
    if (write->kind == DP_WRITE_OBJECT) {
        uint8_t *uses = uses_of(disk, write->object);
        *uses = (uint8_t)(*uses | 1U);
    } else if (write->kind == DP_WRITE_CHUNK) {
        dp_parts_put(&disk->parts, write->object, write->index, write->row.data, write->row.size);
        write->row.data = NULL;
    } else if (write->kind == DP_WRITE_CHECKPOINT) {
        put_checkpoint(disk, write);
    } else if (write->row_kind == DP_STORE_VOTE) {
        replace_row(disk, &disk->vote, write);
    } else if (write->row_kind == DP_STORE_DECIDED) {
        append_record(disk, write);
    } else if (write->row_kind == DP_STORE_PENDING) {
        replace_row(disk, &disk->pending, write);
        back_up(disk);
    } else if (write->row_kind == DP_STORE_FORK) {
        fork_records(disk, write);
    } else if (write->row_kind == DP_STORE_PROOF) {
        replace_row(disk, &disk->proof, write);
    } else {
        put_exchange(disk, write);
    }
}

dp_disk_write *dp_disk_fail(dp_disk *disk)
{
    dp_disk_write *write = disk->first;

    if (write != NULL) {
        disk->first = write->next;
        disk->n_writes--;
        if (disk->first == NULL) {
            disk->last = NULL;
        }
    }
    return write;
}

dp_disk_write *dp_disk_end(dp_disk *disk)
{
    dp_disk_write *write = dp_disk_fail(disk);

    if (write != NULL) {
        perform(disk, write);
    }
    return write;
}

/* Drops the fresh objects: after a crash, an object that no row names is garbage. */
static void sweep(dp_disk *disk)
{
    for (uint32_t i = 0; i < disk->uses_capacity; i++) {
        if ((disk->uses[i] & (1U << DP_DISK_FRESH)) != 0) {
            dp_disk_use(disk, i, DP_DISK_FRESH, false);
        }
    }
}

/* The model takes the outcome of the interrupted write from the shadow: if the shadow has done it,
 * it is done here too. */
static void cut_shadow(dp_disk *disk)
{
    dp_shadow *const shadow = disk->shadow;

    if (shadow != NULL && shadow->cut(shadow, disk)) {
        disk->shadow = NULL;
        dp_disk_write_free(dp_disk_end(disk));
        disk->shadow = shadow;
    }
}

void dp_disk_crash(dp_disk *disk, dp_rng *rng)
{
    uint32_t count = 0;

    for (const dp_disk_write *write = disk->first; write != NULL; write = write->next) {
        count++;
    }
    for (uint64_t kept = dp_rng_below(rng, (uint64_t)count + 1); kept > 0; kept--) {
        dp_disk_write_free(dp_disk_end(disk));
    }
    cut_shadow(disk);
    drop_writes(disk);
    sweep(disk);
    if (disk->shadow != NULL) {
        disk->shadow->compare(disk->shadow, disk);
    }
}
