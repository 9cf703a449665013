/* The publication under way after a restart from a disk that is older than what the chain
 * counts. */
#include "gossip/context/context.h"
#include "gossip/pairs/mix_internal.h"
#include "gossip/training/state_load.h"
#include "gossip/training/training.h"
#include "tests/unit/gossip/kit/node_kit.h"

typedef struct copy {
    uint8_t pending[512];
    size_t pending_size;
    uint64_t slots;
    uint64_t saved_round;
    dp_hash saved_root;
} copy;

static kit_world *three(void)
{
    kit_world *world = kit_open(3);

    kit_link_all(world);
    kit_run_ms(world, 4000);
    assert_int_equal(kit_look(world, 0).voters, 3);
    return world;
}

/* Contents of a backup of this node's disk made now. */
static copy copy_of(const kit_node *node)
{
    copy c = {.pending_size = node->pending_size,
              .slots = node->slots,
              .saved_round = node->saved_round,
              .saved_root = node->saved_root};

    assert_in_range(node->pending_size, 1, sizeof c.pending);
    memcpy(c.pending, node->pending, node->pending_size);
    return c;
}

static void put_back_row(kit_node *node, const copy *c)
{
    free(node->pending);
    node->pending = malloc(c->pending_size);
    assert_non_null(node->pending);
    memcpy(node->pending, c->pending, c->pending_size);
    node->pending_size = c->pending_size;
}

static void a_row_older_than_what_the_chain_counts_brings_nothing_back(void **state)
{
    kit_world *world = three();
    kit_node *node = &world->nodes[2];
    const copy old = copy_of(node);

    (void)state;
    kit_run_ms(world, 3000);
    kit_kill(world, 2);
    put_back_row(node, &old);
    node->restores = 0;
    kit_boot(world, 2);
    kit_link_all(world);
    kit_run_ms(world, 3000);
    assert_int_equal(node->restores, 0);
    assert_int_equal(kit_look(world, 2).listed_last, 3);
    kit_close(world);
}

/* Its disk was an old copy when it published for that round again, and the chain counts the first
 * one, which had the same samples. They were counted twice if its process restarted before it had
 * published again (dpsim seed 7793). */
static void another_publication_of_a_round_that_is_counted_brings_nothing_back(void **state)
{
    kit_world *world = three();
    kit_node *node = &world->nodes[2];
    const copy of_this_round = copy_of(node);

    (void)state;
    kit_kill(world, 2);
    put_back_row(node, &of_this_round);
    kit_boot(world, 2);
    kit_link_all(world);
    dp_node *const made = node->node;
    dp_pending *const pending = &made->train->pending;
    assert_true(pending->has);
    made->chain->own_round = pending->ready.round;
    made->chain->own_root = dp_hash_of("test", dp_view_text("the first one"));
    pending->settled = false;
    memset(world->actions, 0, sizeof *world->actions);
    dp_out_begin(&made->out, world->actions);
    dp_train_bring_back(made);
    assert_true(pending->settled);
    assert_null(kit_find(world->actions, DP_DO_TRAINER_RESTORE));
    kit_close(world);
}

static void work_of_an_old_disk_is_dropped_when_the_chain_counts_newer_work(void **state)
{
    kit_world *world = three();
    kit_node *node = &world->nodes[2];
    const copy old = copy_of(node);

    (void)state;
    kit_run_ms(world, 3000);
    kit_kill(world, 2);
    put_back_row(node, &old);
    for (; node->slots > old.slots; node->slots--) {
        free(node->records[node->slots].record);
        node->records[node->slots].record = NULL;
    }
    node->saved_round = old.saved_round;
    node->saved_root = old.saved_root;
    free(node->vote);
    node->vote = NULL;
    node->restores = 0;
    node->emptied = 0;
    kit_boot(world, 2);
    kit_run_ms(world, 300);
    /* Alone it cannot know better. */
    assert_int_equal(node->restores, 1);
    assert_int_equal(node->emptied, 0);
    kit_link_all(world);
    kit_run_ms(world, 3000);
    assert_true(node->emptied >= 1);
    const uint32_t emptied = node->emptied;
    kit_run_ms(world, 3000);
    assert_int_equal(node->emptied, emptied);
    assert_int_equal(kit_look(world, 2).listed_last, 3);
    kit_close(world);
}

/* Its chunks were deleted: the private vector of the publication, or its blob, is nowhere. */
static void a_publication_that_the_disk_lost_is_let_go_of_and_the_node_goes_on(void **state)
{
    (void)state;
    for (uint32_t which = 0; which < 2; which++) {
        kit_world *world = three();
        kit_node *node = &world->nodes[2];
        kit_kill(world, 2);
        kit_boot(world, 2);
        dp_event lost = {.type = DP_EV_OBJECT_LOST};
        const dp_pending *pending = &node->node->train->pending;
        assert_true(pending->has);
        lost.u.object.root = which == 0 ? pending->a_root : pending->blob_root;
        kit_event_in(world, 2, &lost);
        assert_true(which == 0 ? pending->lost : pending->blob_lost);
        node->restores = 0;
        /* As the driver does when it cannot give a RESTORE. */
        (void)kit_push(world, 2, DP_EV_TRAINER_DOWN);
        kit_drain(world);
        (void)kit_push(world, 2, DP_EV_TRAINER_UP);
        kit_drain(world);
        kit_link_all(world);
        kit_run_ms(world, 4000);
        assert_int_equal(node->restores, 0);
        assert_int_equal(kit_look(world, 2).listed_last, 3);
        assert_int_equal(kit_look(world, 2).diverged, 0);
        assert_false(pending->lost || pending->blob_lost); /* Of the next one. */
        kit_close(world);
    }
}

/* Its chunks were damaged, and others had the blob: with the vector, which is here, all of it
 * is. */
static void a_publication_whose_blob_comes_back_is_whole(void **state)
{
    kit_world *world = three();
    dp_node *node = world->nodes[2].node;
    dp_pending *pending = &node->train->pending;
    const dp_hash vector = {{1, 2, 3}};

    (void)state;
    assert_true(pending->has);
    pending->a_root = vector;
    const dp_hash blob = pending->blob_root;
    dp_train_lost(node, &blob);
    assert_true(pending->blob_lost && !pending->lost);
    dp_train_came(node, &blob);
    assert_false(pending->blob_lost);
    dp_train_lost(node, &vector);
    dp_train_came(node, &vector); /* Useless: it is of another node, or a lie. */
    assert_true(pending->lost);
    kit_close(world);
}

/* The trainer draws the same samples as before: the chain would count them twice. */
static void a_node_that_published_samples_again_drops_the_work_and_continues(void **state)
{
    kit_world *world = three();
    kit_node *node = &world->nodes[2];

    (void)state;
    node->again = 1;
    node->emptied = 0;
    node->restores = 0;
    kit_run_ms(world, 4000);
    assert_int_equal(node->again, 0);
    assert_int_equal(node->restores, 1); /* With nothing left of it. */
    assert_int_equal(node->restore.u.restore.lambda, 0);
    assert_int_equal(kit_look(world, 2).listed_last, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(kit_look(world, i).rejected, 0); /* No other node knows of it. */
    }
    kit_close(world);
}

/* Rows of publications among the writes of the node. */
static uint32_t rows_in(const dp_actions *actions)
{
    uint32_t rows = 0;

    for (uint32_t i = 0; i < actions->count; i++) {
        const dp_action *action = &actions->items[i];
        rows += action->type == DP_DO_STORE && action->u.store.kind == DP_STORE_PENDING ? 1 : 0;
    }
    return rows;
}

static void a_row_that_could_not_be_written_is_tried_again_until_it_is_there(void **state)
{
    kit_world *world = three();
    dp_node *const node = world->nodes[2].node;
    dp_train *const train = node->train;

    (void)state;
    assert_true(train->pending.has && train->op == 0);
    dp_out_begin(&node->out, world->actions);
    dp_train_write_row(node);
    for (uint32_t fails = 0; fails < 3; fails++) {
        assert_int_equal(rows_in(world->actions), 1);
        assert_true(dp_train_stored(node, train->op, DP_IO));
        dp_out_begin(&node->out, world->actions);
        dp_train_tick(node);
    }
    assert_int_equal(rows_in(world->actions), 1);
    assert_true(dp_train_stored(node, train->op, DP_OK));
    dp_out_begin(&node->out, world->actions);
    dp_train_tick(node);
    assert_int_equal(rows_in(world->actions), 0);
    kit_close(world);
}

/* F comes back with the publication that it went into, and then the trainer has all that it had. */
static void exchanges_go_on_when_a_publication_brings_the_frozen_work_back(void **state)
{
    kit_world *world = three();
    dp_node *const node = world->nodes[2].node;
    dp_mix *const mix = node->mix;

    (void)state;
    dp_out_begin(&node->out, world->actions);
    dp_mix_set(mix, node->now, &(dp_mix_now){.gossip = true}, &node->out);
    assert_true(dp_mix_may_begin(mix));
    mix->has_f = true;
    mix->f.f_root = (dp_hash){{5}};
    node->train->pending.f_root = mix->f.f_root;
    assert_true(node->train->pending.durable);
    dp_mix_trainer_down(mix, node->now, &node->out);
    assert_false(dp_mix_may_begin(mix));
    dp_train_bring_back(node);
    assert_false(mix->has_f);
    assert_true(dp_mix_may_begin(mix));
    for (uint32_t i = 0; i < world->actions->count; i++) { /* F is in a: it comes once. */
        const dp_action *action = &world->actions->items[i];
        assert_true(action->type != DP_DO_TRAINER_RESTORE || !action->u.restore.frozen);
    }
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_older_than_what_the_chain_counts_brings_nothing_back),
        cmocka_unit_test(another_publication_of_a_round_that_is_counted_brings_nothing_back),
        cmocka_unit_test(work_of_an_old_disk_is_dropped_when_the_chain_counts_newer_work),
        cmocka_unit_test(a_publication_that_the_disk_lost_is_let_go_of_and_the_node_goes_on),
        cmocka_unit_test(a_publication_whose_blob_comes_back_is_whole),
        cmocka_unit_test(a_node_that_published_samples_again_drops_the_work_and_continues),
        cmocka_unit_test(a_row_that_could_not_be_written_is_tried_again_until_it_is_there),
        cmocka_unit_test(exchanges_go_on_when_a_publication_brings_the_frozen_work_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
