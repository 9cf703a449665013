/* The join secret rotated among whole nodes: the nodes that get the new one, and the time of its
 * use. The attackers of these tests wait for admission and ask for the secret, or spread another
 * one than the chain names. */
#include "gossip/context/context.h"
#include "gossip/requests/requests.h"
#include "gossip/requests/rotate.h"
#include "tests/unit/gossip/kit/node_kit.h"

enum { VISITOR = 5, CAPS = DP_CAP_TRAIN | DP_CAP_SERVE };

static const uint8_t fresh[DP_JOIN_SECRET_BYTES] = {1, 2, 3};

static dp_rotate *rotate_of(const kit_world *world, uint32_t i)
{
    return world->nodes[i].node->requests->rotate;
}

static bool sign_without_root(void *context, int key, const char *domain, dp_view bytes,
                              uint8_t signature[DP_SIGNATURE_BYTES])
{
    return key != DP_KEY_ROOT && kit_sign(context, key, domain, bytes, signature);
}

static dp_status give(kit_world *world, uint32_t to, const uint8_t *secret)
{
    dp_status status = DP_NOMEM;
    dp_why why = {""};
    kit_event *item = kit_push(world, to, DP_EV_ADMIN_COMMAND);

    item->event.u.order = (dp_admin_command){
        .kind = DP_ADMIN_ROTATE, .secret = secret, .status = &status, .why = &why};
    kit_drain(world);
    return status;
}

static bool holds(const kit_world *world, uint32_t i, uint16_t epoch, const uint8_t *secret)
{
    const dp_secrets *held = &world->nodes[i].secrets;

    return held->n > 0 && held->items[0].epoch == epoch &&
           memcmp(held->items[0].bytes, secret, DP_JOIN_SECRET_BYTES) == 0;
}

static void every_member_has_the_secret_when_the_chain_names_it(void **state)
{
    kit_world *world = kit_together(3);

    (void)state;
    assert_int_equal(give(world, 1, fresh), DP_OK);
    assert_int_equal(give(world, 1, fresh), DP_AGAIN); /* One waits. */
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(rotate_of(world, i)->waits);
        assert_int_equal(world->nodes[i].secrets.n, 0); /* Not used before the record. */
    }
    kit_run_ms(world, 3000);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(world->nodes[i].node->ledger.epoch.epoch, 1);
        assert_true(holds(world, i, 1, fresh));
        assert_false(rotate_of(world, i)->waits);
    }
    kit_close(world);
}

static void a_member_that_is_no_admin_rotates_nothing(void **state)
{
    kit_world *world = kit_together(3);

    (void)state;
    world->nodes[1].node->config.crypto.sign = sign_without_root;
    world->nodes[1].node->ledger.roster[1].caps = DP_CAP_ALL & ~(uint32_t)DP_CAP_ADMIN;
    dp_roster_entry *entry = &world->nodes[1].node->ledger.roster[dp_ledger_find(
        &world->nodes[1].node->ledger, &world->nodes[1].node->self)];
    entry->caps = DP_CAP_ALL & ~(uint32_t)DP_CAP_ADMIN;
    assert_int_equal(give(world, 1, fresh), DP_DENIED);
    assert_false(rotate_of(world, 0)->waits);
    kit_close(world);
}

static void refuse(kit_world *world, uint32_t to, dp_status wanted, const char *sentence)
{
    dp_status status = DP_OK;
    dp_why why = {""};
    kit_event *item = kit_push(world, to, DP_EV_ADMIN_COMMAND);

    item->event.u.order = (dp_admin_command){
        .kind = DP_ADMIN_ROTATE, .secret = fresh, .status = &status, .why = &why};
    kit_drain(world);
    assert_int_equal(status, wanted);
    assert_non_null(strstr(why.text, sentence));
    assert_false(rotate_of(world, to)->waits);
}

static bool sign_no_rotation(void *context, int key, const char *domain, dp_view bytes,
                             uint8_t signature[DP_SIGNATURE_BYTES])
{
    return strcmp(domain, "dpnode/rotation/1") != 0 &&
           kit_sign(context, key, domain, bytes, signature);
}

static void a_key_that_does_not_sign_rotates_nothing(void **state)
{
    kit_world *world = kit_together(1);
    dp_crypto *crypto = &world->nodes[0].node->config.crypto;

    (void)state;
    crypto->sign = sign_no_rotation;
    refuse(world, 0, DP_DENIED, "this node does not have the key to sign with");
    crypto->sign = kit_sign;
    assert_int_equal(give(world, 0, fresh), DP_OK);
    kit_close(world);
}

static void after_the_last_epoch_there_is_no_new_secret(void **state)
{
    kit_world *world = kit_together(1);
    dp_epoch *epoch = &world->nodes[0].node->ledger.epoch;

    (void)state;
    epoch->epoch = UINT16_MAX;
    refuse(world, 0, DP_TOOBIG, "its last epoch");
    epoch->epoch = UINT16_MAX - 1;
    assert_int_equal(give(world, 0, fresh), DP_OK);
    assert_int_equal(rotate_of(world, 0)->word.next.epoch, UINT16_MAX);
    kit_close(world);
}

/* The chain names a secret that node 2 does not have, since it was away when the others got it. */
static kit_world *one_lacks(void)
{
    kit_world *world = kit_together(3);

    assert_int_equal(give(world, 1, fresh), DP_OK);
    rotate_of(world, 2)->waits = false;
    memset(&rotate_of(world, 2)->secret, 0, sizeof rotate_of(world, 2)->secret);
    return world;
}

static void a_member_that_lacks_the_secret_asks_and_gets_it(void **state)
{
    kit_world *world = one_lacks();

    (void)state;
    kit_run_ms(world, 8000);
    assert_int_equal(world->nodes[2].node->ledger.epoch.epoch, 1);
    assert_true(holds(world, 2, 1, fresh));
    kit_close(world);
}

static void say(kit_world *world, uint32_t to, uint32_t from, dp_view bytes)
{
    dp_event event = {.type = DP_EV_MESSAGE};

    event.u.message.peer = kit_peer(from);
    event.u.message.bytes = bytes;
    kit_event_in(world, to, &event);
}

static void a_secret_that_the_chain_does_not_name_is_not_taken(void **state)
{
    kit_world *world = kit_together(3);
    uint8_t room[64];
    dp_writer writer = dp_writer_of(room, sizeof room);
    dp_secret junk = {.epoch = 1, .bytes = {9}};
    const dp_secret real = {.epoch = 1, .bytes = {1, 2, 3}};
    dp_ledger *ledger = &world->nodes[2].node->ledger;

    (void)state;
    ledger->epoch.epoch = 1;
    ledger->epoch.commitment = dp_secret_commitment(&ledger->run, &real);
    dp_secret_msg_write(&writer, &junk);
    say(world, 2, 1, dp_view_of(room, writer.size));
    assert_int_equal(world->nodes[2].secrets.n, 0);
    writer = dp_writer_of(room, sizeof room);
    dp_secret_msg_write(&writer, &real);
    say(world, 2, 1, dp_view_of(room, writer.size));
    assert_int_equal(rotate_of(world, 2)->held.n, 1);
    kit_close(world);
}

/* A message of member 1 about a new secret, signed with its own key; junk: with a secret other than
 * the committed one. */
static dp_view word_from(uint8_t *room, size_t size, uint16_t epoch, bool junk)
{
    const dp_crypto crypto = kit_crypto(1);
    const dp_run_id run = kit_run();
    dp_secret secret = {.epoch = epoch, .bytes = {6}};
    dp_rotation word = {.next = {.epoch = epoch}, .by = kit_peer(1)};
    dp_writer writer = dp_writer_of(room, size);

    word.next.commitment = dp_secret_commitment(&run, &secret);
    assert_true(dp_rotation_sign(&word, &crypto, DP_KEY_IDENTITY, &run));
    secret.bytes[0] = junk ? 7 : 6;
    dp_rotation_msg_write(&writer, &word, &secret);
    return dp_view_of(room, writer.size);
}

static void a_word_that_is_forged_or_has_junk_with_it_waits_for_no_record(void **state)
{
    uint8_t room[256];
    kit_world *world = kit_together(3);
    dp_ledger *ledger = &world->nodes[2].node->ledger;
    dp_roster_entry *liar = NULL;
    const dp_peer peer = kit_peer(1);

    (void)state;
    liar = &ledger->roster[dp_ledger_find(ledger, &peer)];
    say(world, 2, 1, word_from(room, sizeof room, 1, true));
    assert_false(rotate_of(world, 2)->waits);
    liar->caps = DP_CAP_ALL & ~(uint32_t)DP_CAP_ADMIN;
    say(world, 2, 1, word_from(room, sizeof room, 1, false));
    assert_false(rotate_of(world, 2)->waits);
    liar->caps = DP_CAP_ALL;
    const dp_view altered = word_from(room, sizeof room, 1, false);
    room[DP_MSG_HEAD_BYTES + 2 + 32 + 32] ^= 1; /* The signature. */
    say(world, 2, 1, altered);
    assert_false(rotate_of(world, 2)->waits);
    say(world, 2, 1, word_from(room, sizeof room, 1, false)); /* It may indeed. */
    assert_true(rotate_of(world, 2)->waits);
    kit_close(world);
}

static void a_word_that_is_over_is_taken_from_nobody_again(void **state)
{
    uint8_t room[256];
    kit_world *world = kit_together(3);
    const uint8_t *second = (const uint8_t[DP_JOIN_SECRET_BYTES]){4};

    (void)state;
    say(world, 2, 1, word_from(room, sizeof room, 1, false));
    kit_run_ms(world, 4000);
    assert_int_equal(give(world, 1, second), DP_OK);
    kit_run_ms(world, 4000);
    assert_true(holds(world, 2, 2, second));
    say(world, 2, 1, word_from(room, sizeof room, 1, false));
    assert_false(rotate_of(world, 2)->waits);
    assert_true(holds(world, 2, 2, second));
    assert_int_equal(rotate_of(world, 2)->held.n, 2);
    kit_close(world);
}

/* An admin signs an epoch and gives its secret to no node. */
static void an_epoch_whose_secret_nobody_has_is_followed_by_the_next(void **state)
{
    kit_world *world = kit_together(3);

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        world->nodes[i].node->ledger.epoch = (dp_epoch){.epoch = 1, .commitment = {{5}}};
    }
    kit_run_ms(world, 3000); /* They ask in vain, and go on. */
    assert_int_equal(world->nodes[0].secrets.n, 0);
    assert_true(world->nodes[0].node->ledger.round > 0);
    assert_int_equal(give(world, 1, fresh), DP_OK);
    kit_run_ms(world, 4000);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(holds(world, i, 2, fresh));
    }
    kit_close(world);
}

/* Did the node's last step send this peer a message of this type? */
static bool sent(const kit_world *world, uint32_t i, uint8_t type)
{
    const dp_peer peer = kit_peer(i);
    bool found = false;

    for (uint32_t k = 0; k < world->actions->count; k++) {
        const dp_action *action = &world->actions->items[k];
        found =
            found || (action->type == DP_DO_SEND && dp_peer_equal(&action->u.send.peer, &peer) &&
                      dp_msg_type_of(action->u.send.bytes) == type);
    }
    return found;
}

static void a_guest_that_waits_for_admission_gets_no_secret(void **state)
{
    static const uint8_t question[DP_MSG_HEAD_BYTES] = {DP_MSG_SECRET_GET, DP_MSG_VERSION};
    kit_world *world = kit_together(3);
    const dp_secret real = {.epoch = 1, .bytes = {1, 2, 3}};
    const dp_peer visitor = kit_peer(VISITOR);
    dp_node *node = world->nodes[0].node;

    (void)state;
    node->ledger.epoch.epoch = 1;
    node->ledger.epoch.commitment = dp_secret_commitment(&node->ledger.run, &real);
    rotate_of(world, 0)->held = (dp_secrets){.n = 1, .items = {real}};
    assert_int_equal(dp_rotate_message(node, &visitor, dp_view_of(question, sizeof question)),
                     DP_DENIED);
    say(world, 0, 1, dp_view_of(question, sizeof question));
    assert_true(sent(world, 1, DP_MSG_SECRET));
    kit_close(world);
}

/* Of a chain that was given up: the number is the same, and the secret is not the one named. */
static void a_secret_of_the_same_epoch_that_the_chain_does_not_name_is_asked_for(void **state)
{
    kit_world *world = kit_together(2);
    dp_node *node = world->nodes[0].node;
    dp_secrets *held = &rotate_of(world, 0)->held;

    (void)state;
    assert_int_equal(give(world, 0, fresh), DP_OK);
    kit_run_ms(world, 3000);
    assert_int_equal(node->ledger.epoch.epoch, 1);
    for (uint32_t what = 0; what < 4; what++) {
        held->n = what == 3 ? 0 : 1;
        held->items[0].epoch = what == 2 ? 2 : 1; /* A later one is of a chain that continues. */
        memcpy(held->items[0].bytes, fresh, sizeof fresh);
        held->items[0].bytes[0] ^= what != 0;
        rotate_of(world, 0)->asked_at = (dp_time){0};
        memset(world->actions, 0, sizeof *world->actions);
        dp_out_begin(&node->out, world->actions);
        dp_rotate_repeat(node);
        const dp_action *send = kit_find(world->actions, DP_DO_SEND);
        assert_int_equal(send != NULL, what == 1 || what == 3);
        assert_true(send == NULL || dp_msg_type_of(send->u.send.bytes) == DP_MSG_SECRET_GET);
    }
    kit_close(world);
}

/* Once every pause; a secret that nobody gave after the first question is told to the owner, once
 * for each epoch. */
static void a_secret_is_asked_for_again_after_a_pause_and_missed_after_the_first(void **state)
{
    kit_world *world = kit_together(2);
    dp_node *node = world->nodes[0].node;
    dp_rotate *rotate = rotate_of(world, 0);

    (void)state;
    for (uint16_t epoch = 1; epoch <= 2; epoch++) {
        const dp_secret real = {.epoch = epoch, .bytes = {9, (uint8_t)epoch}};
        node->ledger.epoch.epoch = epoch;
        node->ledger.epoch.commitment = dp_secret_commitment(&node->run, &real);
        for (uint32_t time = 0; time < 4; time++) {
            for (uint32_t early = 1; early <= 1; early--) {
                const uint64_t asked = rotate->asked_at.us;
                if (time > 0) {
                    node->now.us = asked + DP_SECRET_PAUSE_US - early;
                } else if (early == 1) {
                    continue;
                }
                dp_out_begin(&node->out, world->actions);
                dp_rotate_repeat(node);
                assert_int_equal(sent(world, 1, DP_MSG_SECRET_GET), early == 0);
                assert_int_equal(rotate->asked_at.us, early == 0 ? node->now.us : asked);
                const dp_action *note = kit_find(world->actions, DP_DO_NOTE);
                assert_int_equal(note != NULL, time == 1 && early == 0);
                assert_true(note == NULL || note->u.note.code == DP_NOTE_NO_SECRET);
                assert_true(note == NULL || note->u.note.a == epoch);
            }
        }
        uint8_t bytes[128];
        dp_writer writer = dp_writer_of(bytes, sizeof bytes);
        dp_secret_msg_write(&writer, &real);
        const dp_peer from = kit_peer(1);
        assert_int_equal(dp_rotate_message(node, &from, dp_view_of(bytes, writer.size)), DP_OK);
        assert_int_equal(rotate->held.items[0].epoch, epoch);
        dp_out_begin(&node->out, world->actions);
        dp_rotate_repeat(node); /* It lacks none. */
        assert_int_equal(world->actions->count, 0);
    }
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_member_has_the_secret_when_the_chain_names_it),
        cmocka_unit_test(a_member_that_is_no_admin_rotates_nothing),
        cmocka_unit_test(a_key_that_does_not_sign_rotates_nothing),
        cmocka_unit_test(after_the_last_epoch_there_is_no_new_secret),
        cmocka_unit_test(a_member_that_lacks_the_secret_asks_and_gets_it),
        cmocka_unit_test(a_secret_that_the_chain_does_not_name_is_not_taken),
        cmocka_unit_test(a_word_that_is_forged_or_has_junk_with_it_waits_for_no_record),
        cmocka_unit_test(a_word_that_is_over_is_taken_from_nobody_again),
        cmocka_unit_test(an_epoch_whose_secret_nobody_has_is_followed_by_the_next),
        cmocka_unit_test(a_guest_that_waits_for_admission_gets_no_secret),
        cmocka_unit_test(a_secret_of_the_same_epoch_that_the_chain_does_not_name_is_asked_for),
        cmocka_unit_test(a_secret_is_asked_for_again_after_a_pause_and_missed_after_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
