#include "store/ckpt.h"

#include "base/assert.h"
#include "store/inside.h"

#define HOUR_MS ((uint64_t)3600 * 1000)
#define DAY_MS (24 * HOUR_MS)
enum { COMPLETE_KEPT = 2 }; /* SAFETY R7 */

static void read_row(const dp_query *query, dp_ckpt *ckpt)
{
    ckpt->round = dp_column_u64(query, 0);
    ckpt->slot = dp_column_u64(query, 1);
    ckpt->state_root = dp_column_hash(query, 2);
    ckpt->object = dp_column_hash(query, 3);
    ckpt->created_ms = dp_column_u64(query, 4);
    ckpt->state = (dp_ckpt_state)dp_column_i64(query, 5);
}

dp_status dp_ckpt_list(dp_store *store, const dp_hash *run, dp_ckpt *list, uint32_t max,
                       uint32_t *count)
{
    static const char sql[] =
        "SELECT round,slot,state_root,object,created_ms,state FROM ckpt WHERE run=?"
        " ORDER BY round DESC LIMIT ?";
    uint32_t n = 0;
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, run);
    dp_bind_u64(&query, max);
    dp_status status = dp_query_next(&query);
    while (status == DP_OK) {
        read_row(&query, &list[n++]);
        status = dp_query_next(&query);
    }
    if (status != DP_NOTFOUND) {
        return status;
    }
    *count = n;
    return DP_OK;
}

static dp_status find(dp_store *store, const dp_hash *run, uint64_t round, dp_ckpt *ckpt)
{
    static const char sql[] =
        "SELECT round,slot,state_root,object,created_ms,state FROM ckpt WHERE run=? AND round=?";
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, run);
    dp_bind_u64(&query, round);
    DP_TRY(dp_query_next(&query));
    read_row(&query, ckpt);
    dp_query_end(&query);
    return DP_OK;
}

static bool is_complete(const dp_ckpt *ckpt)
{
    return ckpt->state == DP_CKPT_COMPLETE || ckpt->state == DP_CKPT_KEPT;
}

bool dp_ckpt_is_recovered(const dp_ckpt *ckpt)
{
    return dp_hash_is_zero(&ckpt->state_root);
}

/* ---- Writing. */

struct begin {
    const dp_hash *run;
    const dp_ckpt *ckpt;
};

static dp_status begin_body(dp_store *store, void *context)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO ckpt(run,round,slot,state_root,object,created_ms,state) "
        "VALUES(?,?,?,?,?,?,0)";
    const struct begin *begin = (const struct begin *)context;
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, begin->run);
    dp_bind_u64(&query, begin->ckpt->round);
    dp_bind_u64(&query, begin->ckpt->slot);
    dp_bind_hash(&query, &begin->ckpt->state_root);
    dp_bind_hash(&query, &begin->ckpt->object);
    dp_bind_u64(&query, begin->ckpt->created_ms);
    return dp_query_run(&query);
}

/* DP_EXISTS: it is there already. DP_TOOBIG: there are DP_CKPTS_MAX, and none of them goes. */
static dp_status make_place(dp_store *store, const dp_hash *run, const dp_ckpt *ckpt)
{
    dp_ckpt list[DP_CKPTS_MAX];
    uint32_t count = 0;
    dp_ckpt there;
    const dp_status found = find(store, run, ckpt->round, &there);
    if (found != DP_NOTFOUND) {
        DP_TRY(found);
        if (is_complete(&there) && !dp_ckpt_is_recovered(&there)) {
            return DP_EXISTS;
        }
    }
    DP_TRY(dp_ckpt_list(store, run, list, DP_CKPTS_MAX, &count));
    if (count == DP_CKPTS_MAX && found == DP_NOTFOUND) {
        DP_TRY(dp_ckpt_prune(store, run, ckpt->created_ms));
        DP_TRY(dp_ckpt_list(store, run, list, DP_CKPTS_MAX, &count));
        if (count == DP_CKPTS_MAX) {
            return DP_TOOBIG;
        }
    }
    return DP_OK;
}

dp_status dp_ckpt_begin(dp_store *store, const dp_hash *run, const dp_ckpt *ckpt)
{
    DP_TRY(make_place(store, run, ckpt));
    struct begin begin = {.run = run, .ckpt = ckpt};
    return dp_store_atomically(store, begin_body, &begin);
}

struct set_state {
    const dp_hash *run;
    uint64_t round;
    dp_ckpt_state state;
};

static dp_status set_state_body(dp_store *store, void *context)
{
    static const char sql[] = "UPDATE ckpt SET state=? WHERE run=? AND round=?";
    const struct set_state *set = (const struct set_state *)context;
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_i64(&query, set->state);
    dp_bind_hash(&query, set->run);
    dp_bind_u64(&query, set->round);
    return dp_query_run(&query);
}

static dp_status set_state(dp_store *store, const dp_hash *run, uint64_t round, dp_ckpt_state state)
{
    struct set_state set = {.run = run, .round = round, .state = state};
    return dp_store_atomically(store, set_state_body, &set);
}

dp_status dp_ckpt_commit(dp_store *store, const dp_hash *run, uint64_t round)
{
    dp_ckpt ckpt;
    DP_TRY(find(store, run, round, &ckpt));
    if (is_complete(&ckpt)) {
        return DP_OK;
    }
    const dp_status object = dp_object_require(store, &ckpt.object);
    if (object != DP_OK) {
        return object == DP_NOTFOUND ? DP_AGAIN : object;
    }
    return set_state(store, run, round, DP_CKPT_COMPLETE);
}

/* Begins and commits in one transaction: a checkpoint left in between would keep a row and its
 * object until the next start. */
static dp_status adopt_body(dp_store *store, void *context)
{
    const struct begin *begin = (const struct begin *)context;
    DP_TRY(begin_body(store, context));
    return dp_ckpt_commit(store, begin->run, begin->ckpt->round);
}

dp_status dp_ckpt_adopt(dp_store *store, const dp_hash *run, const dp_ckpt *ckpt, const dp_pin *pin)
{
    struct begin begin = {.run = run, .ckpt = ckpt};
    dp_status status = make_place(store, run, ckpt);
    if (status == DP_OK) {
        status = dp_store_atomically(store, adopt_body, &begin);
    }
    /* From here the checkpoint itself keeps the object; without one, nothing shall. */
    const dp_status unpinned = dp_object_unpin(store, &ckpt->object, pin);
    DP_TRY(status);
    DP_TRY(unpinned);
    DP_IGNORE(dp_ckpt_prune(
        store, run, ckpt->created_ms)); /* The state is saved; the next save prunes again. */
    return DP_OK;
}

dp_status dp_ckpt_save(dp_store *store, const dp_hash *run, dp_ckpt *ckpt, dp_view tensors)
{
    const dp_pin pin = {.run = *run, .kind = DP_PIN_STATE, .round = ckpt->round};
    dp_ckpt named = *ckpt;
    named.state = DP_CKPT_COMPLETE;
    DP_TRY(dp_object_put(store, tensors, &pin, &named.object));
    DP_TRY(dp_ckpt_adopt(store, run, &named, &pin));
    *ckpt = named;
    return DP_OK;
}

dp_status dp_ckpt_keep(dp_store *store, const dp_hash *run, uint64_t round, bool keep)
{
    dp_ckpt ckpt;
    DP_TRY(find(store, run, round, &ckpt));
    if (!is_complete(&ckpt)) {
        return DP_NOTFOUND;
    }
    return set_state(store, run, round, keep ? DP_CKPT_KEPT : DP_CKPT_COMPLETE);
}

/* ---- Reading. */

/* The newest complete one with round < below. */
static dp_status newest_below(dp_store *store, const dp_hash *run, uint64_t below, dp_ckpt *ckpt)
{
    static const char sql[] =
        "SELECT round,slot,state_root,object,created_ms,state FROM ckpt WHERE run=? AND"
        " round<? AND state IN(1,2) ORDER BY round DESC LIMIT 1";
    dp_query query = dp_query_of(&store->meta, sql);
    dp_bind_hash(&query, run);
    dp_bind_u64(&query, below);
    DP_TRY(dp_query_next(&query));
    read_row(&query, ckpt);
    dp_query_end(&query);
    return DP_OK;
}

dp_status dp_ckpt_newest(dp_store *store, const dp_hash *run, dp_ckpt *ckpt)
{
    return newest_below(store, run, INT64_MAX, ckpt);
}

/* True if the failure means a bad checkpoint, and not a fault of the machine or of the caller. */
static bool is_damage(dp_status status)
{
    return status == DP_BADHASH || status == DP_NOTFOUND || status == DP_AGAIN ||
           status == DP_CORRUPT;
}

static dp_status begin_next(dp_store *store, dp_ckpt_reading *reading)
{
    const bool first = reading->n_good + reading->n_bad == 0;
    DP_TRY(newest_below(store, &reading->run, first ? INT64_MAX : reading->ckpt.round,
                        &reading->ckpt));
    reading->pieces.root = reading->ckpt.object;
    reading->pieces.next = 0;
    reading->begun = true;
    return DP_OK;
}

/* A save between two pieces may drop its row. */
static void keep_read(dp_store *store, dp_ckpt_reading *reading)
{
    if (!reading->pinned) {
        reading->pin = dp_object_writing(store, &reading->run);
        reading->pinned = true;
        /* On a full disk it is read without. */
        DP_IGNORE(dp_object_pin(store, &reading->pieces.root, &reading->pin));
    }
}

static void end_read(dp_store *store, dp_ckpt_reading *reading)
{
    if (reading->pinned) {
        /* If this fails, the next start removes it. */
        DP_IGNORE(dp_object_unpin(store, &reading->pieces.root, &reading->pin));
    }
    reading->pinned = false;
    reading->begun = false;
}

dp_status dp_ckpt_read(dp_store *store, dp_ckpt_reading *reading)
{
    if (!reading->begun) {
        DP_TRY(begin_next(store, reading));
    }
    const dp_status status = dp_pieces_read(&reading->pieces, store);
    if (status == DP_OK && reading->pieces.more) {
        keep_read(store, reading);
        return DP_AGAIN;
    }
    end_read(store, reading);
    if (status == DP_OK) {
        reading->n_good++;
    }
    if (!is_damage(status)) {
        return status;
    }
    reading->n_bad++;
    /* On a full disk the mark is lost and made again by the next reader. */
    DP_IGNORE(set_state(store, &reading->run, reading->ckpt.round, DP_CKPT_BAD));
    return DP_AGAIN;
}

/* ---- Retention. */

struct prune {
    const dp_hash *run;
    uint64_t rounds[DP_CKPTS_MAX];
    uint32_t count;
};

static dp_status prune_body(dp_store *store, void *context)
{
    static const char sql[] = "DELETE FROM ckpt WHERE run=? AND round=?";
    const struct prune *prune = (const struct prune *)context;
    for (uint32_t i = 0; i < prune->count; i++) {
        dp_query query = dp_query_of(&store->meta, sql);
        dp_bind_hash(&query, prune->run);
        dp_bind_u64(&query, prune->rounds[i]);
        DP_TRY(dp_query_run(&query));
    }
    return DP_OK;
}

/* First and last complete checkpoint (indices into a list, newest first) older and younger than
 * some age. */
struct border {
    uint32_t newest_over;
    uint32_t oldest_within;
};

static struct border border_at(const dp_ckpt *list, uint32_t count, uint64_t now_ms,
                               uint64_t border_ms)
{
    struct border border = {.newest_over = UINT32_MAX, .oldest_within = UINT32_MAX};
    for (uint32_t i = 0; i < count; i++) {
        if (!is_complete(&list[i]) || dp_ckpt_is_recovered(&list[i])) {
            continue;
        }
        const uint64_t age_ms = now_ms > list[i].created_ms ? now_ms - list[i].created_ms : 0;
        if (age_ms <= border_ms) {
            border.oldest_within = i;
        } else if (border.newest_over == UINT32_MAX) {
            border.newest_over = i;
        }
    }
    return border;
}

static void choose(struct prune *prune, const dp_ckpt *list, uint32_t count, uint64_t now_ms)
{
    const struct border hour = border_at(list, count, now_ms, HOUR_MS);
    const struct border day = border_at(list, count, now_ms, DAY_MS);
    uint32_t complete = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool keep = list[i].state == DP_CKPT_WRITING || list[i].state == DP_CKPT_KEPT;
        if (list[i].state == DP_CKPT_BAD || dp_ckpt_is_recovered(&list[i])) {
            keep = keep || complete == 0; /* One older than a good one is of no use. */
        } else if (is_complete(&list[i])) {
            keep = keep || complete < COMPLETE_KEPT || i == hour.newest_over ||
                   i == hour.oldest_within || i == day.newest_over || i == day.oldest_within;
            complete++;
        }
        if (!keep) {
            prune->rounds[prune->count++] = list[i].round;
        }
    }
}

dp_status dp_ckpt_prune(dp_store *store, const dp_hash *run, uint64_t now_ms)
{
    dp_ckpt list[DP_CKPTS_MAX];
    struct prune prune = {.run = run};
    uint32_t count = 0;
    DP_TRY(dp_ckpt_list(store, run, list, DP_CKPTS_MAX, &count));
    choose(&prune, list, count, now_ms);
    if (prune.count == 0) {
        return DP_OK;
    }
    DP_TRY(dp_store_atomically(store, prune_body, &prune));
    return dp_object_collect(store, NULL);
}

static dp_status make_room_body(dp_store *store, void *context)
{
    /* A recovered one of a later round is no reason to drop those that the run goes on with. */
    static const char sql[] = "DELETE FROM ckpt WHERE state=1 AND round<(SELECT max(n.round) FROM "
                              "ckpt n WHERE n.run=ckpt.run AND"
                              " n.state IN(1,2) AND n.state_root<>zeroblob(32))";
    (void)context;
    dp_query query = dp_query_of(&store->meta, sql);
    return dp_query_run(&query);
}

dp_status dp_ckpt_make_room(dp_store *store)
{
    dp_assert(store->depth == 0);
    return dp_store_atomically(store, make_room_body, NULL);
}
