#include "tests/store/world.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "store/vote.h"

bool dp_world_open(dp_world *w, uint64_t seed, const char *folder, dp_platter_sync sync)
{
    memset(w, 0, sizeof *w);
    w->seed = seed;
    dp_rng_init(&w->rng, seed);
    w->platter = dp_platter_open(sync);
    if (w->platter == NULL) {
        return false;
    }
    snprintf(w->path, sizeof w->path, "%s/store", folder);
    /* Nothing of it survives a cut but what is on the platter: the lock file holds no fact, and a
     * ballast is not needed. */
    w->options = (dp_store_options){.vfs = dp_platter_vfs(w->platter)};
    if (dp_rng_below(&w->rng, 4) == 0) {
        w->options.max_bytes = (uint64_t)3 << 20;
    }
    w->filling = DP_BOOK_LARGE;
    w->loose = -1;
    w->atomic = true;
    w->act = "start";
    for (uint32_t i = 0; i < DP_BOOK_ROWS; i++) {
        w->now.rows[i] = (dp_book_row){.keep = {-1, -1, -1}};
    }
    w->next = w->now;
    return true;
}

void dp_world_close(dp_world *w)
{
    char lock[DP_WORLD_PATH_MAX + 8];

    dp_store_close(w->store);
    dp_platter_close(w->platter);
    if (w->path[0] != '\0') {
        snprintf(lock, sizeof lock, "%s/lock", w->path);
        unlink(lock);
        rmdir(w->path);
    }
    memset(w, 0, sizeof *w);
}

static bool fails(dp_world *w, const char *what, dp_status status)
{
    if (w->sentence[0] == '\0') {
        snprintf(w->sentence, sizeof w->sentence, "%s: %s", what, dp_status_name(status));
    }
    return false;
}

/* After a cut: nothing of this process reaches the disk any more. */
static void lose_power(dp_world *w)
{
    dp_platter_kill(w->platter);
    dp_store_close(w->store);
    w->store = NULL;
    dp_platter_settle(w->platter, &w->rng);
    w->n_cuts++;
    w->unsaved = 0;
}

/* Opens the store; some of the first attempts are cut off as well. */
static bool open_store(dp_world *w, dp_store_report *report)
{
    dp_why why = {0};

    for (;;) {
        if (dp_rng_below(&w->rng, 4) == 0) {
            dp_platter_arm(w->platter, DP_PLATTER_CUT, 1 + dp_rng_below(&w->rng, 40), false);
        }
        const dp_status status = dp_store_open(&w->store, w->path, &w->options, report, &why);
        if (status == DP_OK && !dp_platter_dead(w->platter)) {
            dp_platter_arm(w->platter, DP_PLATTER_SOUND, 0, false);
            return true;
        }
        if (!dp_platter_dead(w->platter)) {
            fails(w, "the store does not open", status);
            return false;
        }
        w->n_opening++;
        lose_power(w);
    }
}

static bool is_quiet(const dp_store_report *r)
{
    return !r->meta_rebuilt && !r->chunks_rebuilt && r->moved_to[0] == '\0' &&
           r->chunks_damaged == 0;
}

/* A start that follows a good one has nothing to do: all was brought into one story. */
static bool is_settled(dp_world *w)
{
    dp_store_report r = {0};

    dp_store_close(w->store);
    w->store = NULL;
    const dp_status status = dp_store_open(&w->store, w->path, &w->options, &r, NULL);
    if (status != DP_OK) {
        return fails(w, "the store does not open a second time", status);
    }
    if (!is_quiet(&r) || r.objects_dropped + r.chunks_swept + r.chunks_adopted + r.ckpts_dropped) {
        return fails(w, "a second start found something to repair", DP_OK);
    }
    return true;
}

/* Removes the pins that the interrupted call left in doubt, so that the book is exact again. */
static bool settle_doubts(dp_world *w, const dp_book *seen)
{
    const dp_hash run = dp_book_run();
    dp_status status = dp_object_prune(w->store, &run, DP_PIN_STATE, INT64_MAX);

    for (uint32_t i = 0; i < DP_BOOK_OBJECTS * DP_BOOK_KINDS * DP_BOOK_ROUNDS; i++) {
        const uint32_t object = i / (DP_BOOK_KINDS * DP_BOOK_ROUNDS);
        const uint32_t bit = i % (DP_BOOK_KINDS * DP_BOOK_ROUNDS);
        const uint32_t doubt = w->now.objects[object].pins ^ w->next.objects[object].pins;
        const dp_pin pin = dp_book_pin(bit / DP_BOOK_ROUNDS, bit % DP_BOOK_ROUNDS);
        if (status == DP_OK && (doubt >> bit & 1) != 0) {
            status = dp_object_unpin(w->store, &dp_book_matter_of(object)->root, &pin);
        }
    }
    if (status == DP_OK) {
        status = dp_object_collect(w->store, NULL);
    }
    w->now = *seen;
    for (uint32_t i = 0; i < DP_BOOK_OBJECTS; i++) {
        dp_object_info info;
        if (dp_object_stat(w->store, &dp_book_matter_of(i)->root, &info) != DP_OK) {
            w->now.objects[i] = (dp_book_object){0};
        }
    }
    return status == DP_OK || fails(w, "doubts do not settle", status);
}

static bool check_incarnation(dp_world *w, uint64_t before, uint64_t *given)
{
    const dp_status status = dp_store_bump_incarnation(w->store, 0, given);

    if (status != DP_OK) {
        return fails(w, "no incarnation", status);
    }
    return *given > before || fails(w, "an incarnation was given twice", DP_OK);
}

static bool check(dp_world *w, const dp_store_report *report)
{
    static dp_book_check c;
    uint64_t given = 0;

    if (!is_quiet(report)) {
        return fails(w, "a file was taken for damaged", DP_CORRUPT);
    }
    if (dp_rng_below(&w->rng, 8) == 0 && !is_settled(w)) {
        return false;
    }
    c = (dp_book_check){.store = w->store,
                        .now = &w->now,
                        .next = &w->next,
                        .atomic = w->atomic,
                        .quota = w->options.max_bytes != 0,
                        .thorough = dp_rng_below(&w->rng, 16) == 0,
                        .loose = w->loose};
    if (!dp_book_check_run(&c)) {
        memcpy(w->sentence, c.sentence, sizeof w->sentence);
        return false;
    }
    if (!check_incarnation(w, w->now.incarnation, &given)) {
        return false;
    }
    c.seen.incarnation = given;
    if (!settle_doubts(w, &c.seen)) {
        return false;
    }
    w->next = w->now;
    return true;
}

/* Acts until the power goes. */
static bool act_until_cut(dp_world *w)
{
    static const uint64_t lengths[] = {6, 30, 120, 400};

    dp_platter_arm(w->platter, DP_PLATTER_CUT,
                   1 + dp_rng_below(&w->rng, lengths[dp_rng_below(&w->rng, 4)]), false);
    while (!dp_platter_dead(w->platter)) {
        const dp_status status = dp_world_act(w);
        if (status == DP_OK) {
            w->now = w->next; /* Acknowledged, even if the power went while it tidied up. */
        } else if (status == DP_NOSPACE && w->options.max_bytes != 0) {
            w->now = w->next;
        } else if (!dp_platter_dead(w->platter)) {
            return fails(w, w->act, status);
        }
        if (dp_rng_below(&w->rng, 200) == 0 && !dp_platter_dead(w->platter)) {
            dp_store_close(w->store); /* A good end, which may be cut off too. */
            w->store = NULL;
            w->unsaved = 0;
            w->next = w->now;
            w->act = "close";
            break;
        }
    }
    return true;
}

bool dp_world_cut(dp_world *w)
{
    dp_store_report report = {0};

    if (w->store == NULL) {
        if (!open_store(w, &report) || !check(w, &report)) {
            return false;
        }
    }
    if (!act_until_cut(w)) {
        return false;
    }
    if (strcmp(w->act, "collect") == 0 || strcmp(w->act, "retention") == 0) {
        w->n_dropping++;
    }
    lose_power(w);
    return open_store(w, &report) && check(w, &report);
}

/* ---- failing calls ---- */

/* A call of some kind will fail. Short reads are not among them: they look like damage, which has
 * tests of its own. */
static void arm(dp_world *w)
{
    static const dp_platter_fault kinds[] = {DP_PLATTER_READ_EIO, DP_PLATTER_WRITE_EIO,
                                             DP_PLATTER_FULL, DP_PLATTER_SYNC_EIO,
                                             DP_PLATTER_OPEN_EIO};
    const uint64_t kind = dp_rng_below(&w->rng, 6);

    if (kind == 5) {
        dp_alloc_fail_after(1 + dp_rng_below(&w->rng, 12));
    } else {
        dp_platter_arm(w->platter, kinds[kind], 1 + dp_rng_below(&w->rng, 40),
                       dp_rng_below(&w->rng, 2) == 0);
    }
}

static void disarm(dp_world *w)
{
    dp_alloc_fail_after(0);
    dp_platter_arm(w->platter, DP_PLATTER_SOUND, 0, false);
}

static bool is_told(dp_status status)
{
    return status == DP_IO || status == DP_NOSPACE || status == DP_NOMEM;
}

/* A start that fails leaves all as it was; the next one succeeds. */
static bool start(dp_world *w, dp_store_report *report)
{
    dp_store_close(w->store);
    w->store = NULL;
    w->unsaved = 0;
    if (dp_rng_below(&w->rng, 3) == 0) {
        arm(w);
        const dp_status status = dp_store_open(&w->store, w->path, &w->options, report, NULL);
        disarm(w);
        if (status != DP_OK && !is_told(status)) {
            return fails(w, "a failing start", status);
        }
        w->n_failures += status != DP_OK ? 1 : 0;
        dp_store_close(w->store);
        w->store = NULL;
    }
    const dp_status status = dp_store_open(&w->store, w->path, &w->options, report, NULL);
    return status == DP_OK || fails(w, "the store does not open", status);
}

/* After lack of space or memory the store that is open goes on. */
static bool go_on(dp_world *w)
{
    for (int i = 0; i < 3; i++) {
        const dp_status status = dp_world_act(w);
        if (status != DP_OK && !(status == DP_NOSPACE && w->options.max_bytes != 0)) {
            return fails(w, "it does not go on after lack of space or memory", status);
        }
        w->now = w->next;
    }
    return true;
}

bool dp_world_fail(dp_world *w)
{
    dp_store_report report = {0};
    dp_status status = DP_OK;

    if (w->store == NULL && (!start(w, &report) || !check(w, &report))) {
        return false;
    }
    w->failing = true;
    arm(w);
    for (int i = 0; i < 60 && status == DP_OK; i++) {
        status = dp_world_act(w);
        if (status == DP_OK) {
            w->now = w->next;
        }
    }
    disarm(w);
    if (status != DP_OK) {
        w->n_failures++;
        w->unsaved = 0; /* A failing write takes the open batch with it. */
        if (!is_told(status)) {
            return fails(w, w->act, status);
        }
        if (status != DP_IO && w->atomic) {
            w->next = w->now;
            if (dp_store_failed(w->store) == DP_OK && !go_on(w)) {
                return false;
            }
        }
    }
    return start(w, &report) && check(w, &report);
}
