/* THREADS_TEST: two object transfers, each with a store, a store thread and a transport, in one
 * loop. */
#include <stdlib.h>

#include "base/rng.h"
#include "daemon/net/transport_conn.h"
#include "gossip/record/wire.h"
#include "store/inside.h"
#include "store/object.h"
#include "tests/lib/mutate.h"
#include "tests/unit/daemon/post.h"

static void an_object_travels_chunk_by_chunk(void **state)
{
    static struct route route;
    (void)state;
    route_open(&route);
    const dp_hash root = give_object(&route.a, OBJECT_BYTES);
    fetch(&route.b, &route.a, &root);
    assert_int_equal(route.b.size, OBJECT_BYTES);
    assert_int_equal(route.b.n_chunks, dp_object_chunks(OBJECT_BYTES));
    assert_int_equal(route.b.n_objects, 1);
    CHECK(dp_peer_equal(&route.b.last_peer, &route.a.guest.peer));
    CHECK(holds_noise(route.b.shelf.store, &root, 5, OBJECT_BYTES));
    route_close(&route);
}

/* Peers without a link represent floods of strangers: their answers are dropped. */
static void a_greedy_peer_leaves_room_for_others(void **state)
{
    enum { GREEDY = 8, REQUESTS = 2 * DP_OBJECT_TRANSFER_SERVES_MAX };
    static struct route route;
    (void)state;
    route_open(&route);
    const dp_hash root = give_object(&route.a, OBJECT_BYTES);
    for (unsigned peers = 1; peers <= GREEDY; peers += GREEDY - 1) {
        route.b.n_infos_before = route.b.n_infos;
        for (unsigned i = 0; i < REQUESTS; i++) {
            const dp_peer greedy = {.bytes = {(uint8_t)(1 + i % peers)}};
            dp_object_transfer_serve_chunk(route.a.object_transfer, &greedy, &root, 0);
        }
        dp_object_transfer_serve_info(route.a.object_transfer, &route.b.guest.peer, &root);
        turn_until(&route.loop, has_info, &route.b);
    }
    route_close(&route);
}

static void an_empty_object_is_whole_at_once(void **state)
{
    static struct route route;
    (void)state;
    route_open(&route);
    const dp_hash root = dp_object_root(0, NULL);
    dp_object_transfer_begin(route.b.object_transfer, &root, 0, route.b.leaves, DP_USE_BLOB, ROUND);
    turn_until(&route.loop, has_object, &route.b);
    route_close(&route);
}

static bool says_all_again(void *context)
{
    const struct post *post = context;
    return post->n_chunks >= 2;
}

/* The chunks that an earlier life of post fetched of the object of give_object: 0 and 2 of four. */
static void leave_two_chunks(struct post *post, const dp_hash *root)
{
    const dp_pin pin = {.run = party_of()->run, .kind = DP_PIN_BLOB, .round = ROUND};
    uint8_t *bytes = noise(5, OBJECT_BYTES);
    CHECK_OK(dp_object_begin(post->shelf.store, root, OBJECT_BYTES, post->leaves, &pin));
    for (uint32_t i = 0; i < 4; i += 2) {
        CHECK_OK(dp_object_put_chunk(
            post->shelf.store, root, i,
            dp_view_of(bytes + (size_t)i * DP_CHUNK_BYTES_MIN, DP_CHUNK_BYTES_MIN)));
    }
    free(bytes);
}

static void a_fetch_goes_on_where_an_earlier_life_ended(void **state)
{
    static struct route route;
    (void)state;
    route_open(&route);
    const dp_hash root = give_object(&route.a, OBJECT_BYTES);
    fetch_info(&route.b, &route.a, &root);
    leave_two_chunks(&route.b, &root);
    dp_object_transfer_begin(route.b.object_transfer, &root, OBJECT_BYTES, route.b.leaves,
                             DP_USE_BLOB, ROUND);
    turn_until(&route.loop, says_all_again, &route.b);
    CHECK(route.b.have[0] && !route.b.have[1] && route.b.have[2] && !route.b.have[3]);
    CHECK(dp_peer_is_zero(&route.b.last_peer));
    dp_object_transfer_get_chunk(route.b.object_transfer, &route.a.guest.peer, &root, 1);
    dp_object_transfer_get_chunk(route.b.object_transfer, &route.a.guest.peer, &root, 3);
    turn_until(&route.loop, has_object, &route.b);
    CHECK(holds_noise(route.b.shelf.store, &root, 5, OBJECT_BYTES));
    route_close(&route);
}

/* Like the node, asks for all chunks as soon as size and leaves are known, before the store has
 * reported the present ones. */
static void chunks_of_an_earlier_life_are_not_requested_again(void **state)
{
    static struct route route;
    (void)state;
    route_open(&route);
    const dp_hash root = give_object(&route.a, OBJECT_BYTES);
    fetch_info(&route.b, &route.a, &root);
    leave_two_chunks(&route.b, &root);
    const unsigned asked = route.a.n_others;
    dp_object_transfer_begin(route.b.object_transfer, &root, OBJECT_BYTES, route.b.leaves,
                             DP_USE_BLOB, ROUND);
    for (uint32_t i = 0; i < 4; i++) {
        dp_object_transfer_get_chunk(route.b.object_transfer, &route.a.guest.peer, &root, i);
    }
    turn_until(&route.loop, has_object, &route.b);
    CHECK(holds_noise(route.b.shelf.store, &root, 5, OBJECT_BYTES));
    CHECK(route.a.n_others == asked + 2);
    route_close(&route);
}

static void told_of_what_is_here_the_node_may_ask_for_more_of_it_in_vain(void **state)
{
    static struct route route;
    (void)state;
    route_open(&route);
    const dp_hash root = give_object(&route.a, OBJECT_BYTES);
    fetch_info(&route.b, &route.a, &root);
    const dp_pin pin = {.run = party_of()->run, .kind = DP_PIN_BLOB, .round = ROUND};
    uint8_t *bytes = noise(5, OBJECT_BYTES);
    CHECK_OK(dp_object_begin(route.b.shelf.store, &root, OBJECT_BYTES, route.b.leaves, &pin));
    for (uint32_t i = 0; i < 3; i++) { /* Left by an earlier life: all but the last. */
        const dp_view chunk = dp_view_of(bytes + i * DP_CHUNK_BYTES_MIN, DP_CHUNK_BYTES_MIN);
        CHECK_OK(dp_object_put_chunk(route.b.shelf.store, &root, i, chunk));
    }
    const unsigned asked = route.a.n_others;
    route.b.asks = &route.a;
    dp_object_transfer_begin(route.b.object_transfer, &root, OBJECT_BYTES, route.b.leaves,
                             DP_USE_BLOB, ROUND);
    dp_object_transfer_get_chunk(route.b.object_transfer, &route.a.guest.peer, &root, 0);
    turn_until(&route.loop, has_object, &route.b);
    CHECK(holds_noise(route.b.shelf.store, &root, 5, OBJECT_BYTES));
    assert_int_equal(route.a.n_others, asked + 1);
    free(bytes);
    route_close(&route);
}

/* A CHUNK message as a peer may invent it. */
static void send_chunk(struct post *from, const struct post *to, const dp_hash *root,
                       uint32_t index, bool found, dp_view bytes)
{
    dp_buf message = {.max = DP_MESSAGE_BULK_MAX};
    uint8_t *room = NULL;
    CHECK_OK(dp_buf_reserve(&message, DP_CHUNK_HEAD_BYTES, &room));
    dp_writer writer = dp_writer_of(room, DP_CHUNK_HEAD_BYTES);
    dp_wire_write_chunk_head(&writer, root, index, found);
    dp_buf_commit(&message, writer.size);
    CHECK_OK(dp_buf_append(&message, bytes));
    CHECK_OK(dp_transport_send(from->guest.transport, &to->guest.peer, DP_LANE_BULK,
                               dp_buf_view(&message)));
    dp_buf_close(&message);
}

static void bad_chunks_are_told_with_their_sender(void **state)
{
    static struct route route;
    (void)state;
    route_open(&route);
    const dp_hash root = give_object(&route.a, OBJECT_BYTES);
    fetch_info(&route.b, &route.a, &root);
    dp_object_transfer_close(route.a.object_transfer);
    route.a.object_transfer = NULL; /* only invented answers from here on */
    dp_object_transfer_begin(route.b.object_transfer, &root, OBJECT_BYTES, route.b.leaves,
                             DP_USE_BLOB, ROUND);
    uint8_t *bytes = noise(6, DP_CHUNK_BYTES_MIN);
    static const struct {
        bool found;
        size_t size;
        dp_status wanted;
    } cases[] = {
        {true, DP_CHUNK_BYTES_MIN, DP_BADHASH}, {true, 10, DP_BADHASH}, {false, 0, DP_NOTFOUND}};
    for (unsigned i = 0; i < 3; i++) {
        route.b.n_chunks = 0;
        dp_object_transfer_get_chunk(route.b.object_transfer, &route.a.guest.peer, &root, 1);
        send_chunk(&route.a, &route.b, &root, 1, cases[i].found, dp_view_of(bytes, cases[i].size));
        turn_until(&route.loop, has_chunk, &route.b);
        CHECK_STATUS(route.b.last, cases[i].wanted);
        CHECK(dp_peer_equal(&route.b.last_peer, &route.a.guest.peer));
    }
    assert_int_equal(route.b.n_objects, 0);
    free(bytes);
    route_close(&route);
}

static bool heard_the_end(void *context)
{
    return ((struct post *)context)->n_others > 0;
}

static void chunks_that_nobody_asked_for_are_dropped(void **state)
{
    static struct route route;
    (void)state;
    route_open(&route);
    const dp_hash root = give_object(&route.a, OBJECT_BYTES);
    uint8_t *bytes = noise(5, DP_CHUNK_BYTES_MIN);
    fetch_info(&route.b, &route.a, &root);
    const dp_view chunk = dp_view_of(bytes, DP_CHUNK_BYTES_MIN);
    send_chunk(&route.a, &route.b, &root, 0, true, chunk); /* no such fetch */
    dp_object_transfer_begin(route.b.object_transfer, &root, OBJECT_BYTES, route.b.leaves,
                             DP_USE_BLOB, ROUND);
    send_chunk(&route.a, &route.b, &root, 0, true, chunk); /* not asked for */
    send_chunk(&route.a, &route.b, &root, 4000, true, chunk);
    dp_object_transfer_get_chunk(route.b.object_transfer, &route.a.guest.peer, &root,
                                 4000); /* no such chunk */
    CHECK_OK(dp_transport_send(route.a.guest.transport, &route.b.guest.peer, DP_LANE_BULK,
                               dp_view_text("the end")));
    turn_until(&route.loop, heard_the_end, &route.b);
    assert_int_equal(route.b.n_chunks, 0);
    free(bytes);
    route_close(&route);
}

/* A job that keeps the store thread until it is let go. */
struct gate {
    dp_store_thread_job job;
    uv_sem_t open;
};

static void wait_at_gate(dp_store_thread_job *job, dp_store *store)
{
    (void)store;
    uv_sem_wait(&((struct gate *)job)->open);
}

static void gate_done(dp_store_thread_job *job)
{
    (void)job;
}

/* So that later jobs wait for the store. */
static void close_gate(struct post *post, struct gate *gate)
{
    *gate = (struct gate){.job = {.run = wait_at_gate, .done = gate_done}};
    assert_int_equal(uv_sem_init(&gate->open, 0), 0);
    CHECK_OK(dp_store_thread_post(post->store_thread, &gate->job, DP_STORE_THREAD_URGENT));
}

/* Otherwise any peer could keep the store thread busy with obviously wrong bytes, and so delay the
 * right ones. */
static void a_chunk_of_a_wrong_size_is_told_without_the_store(void **state)
{
    static const size_t sizes[] = {0, 1, DP_CHUNK_BYTES_MIN - 1, DP_CHUNK_BYTES_MIN + 1};
    static struct route route;
    static struct gate gate;
    (void)state;
    route_open(&route);
    const dp_hash root = give_object(&route.a, OBJECT_BYTES);
    fetch_info(&route.b, &route.a, &root);
    dp_object_transfer_close(route.a.object_transfer);
    route.a.object_transfer = NULL; /* only invented answers from here on */
    dp_object_transfer_begin(route.b.object_transfer, &root, OBJECT_BYTES, route.b.leaves,
                             DP_USE_BLOB, ROUND);
    close_gate(&route.b, &gate);
    uint8_t *bytes = noise(5, OBJECT_BYTES);
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        route.b.n_chunks = 0;
        dp_object_transfer_get_chunk(route.b.object_transfer, &route.a.guest.peer, &root, 1);
        send_chunk(&route.a, &route.b, &root, 1, true,
                   dp_view_of(bytes + DP_CHUNK_BYTES_MIN, sizes[i]));
        turn_until(&route.loop, has_chunk, &route.b);
        CHECK_STATUS(route.b.last, DP_BADHASH);
    }
    uv_sem_post(&gate.open);
    route.b.n_chunks = 0;
    dp_object_transfer_get_chunk(route.b.object_transfer, &route.a.guest.peer, &root, 1);
    send_chunk(&route.a, &route.b, &root, 1, true,
               dp_view_of(bytes + DP_CHUNK_BYTES_MIN, DP_CHUNK_BYTES_MIN));
    turn_until(&route.loop, has_chunk, &route.b);
    CHECK_STATUS(route.b.last, DP_OK);
    uv_sem_destroy(&gate.open);
    free(bytes);
    route_close(&route);
}

static bool all_asked(void *context)
{
    return ((struct post *)context)->n_others >= 5;
}

static bool is_linked_and_quiet(void *context)
{
    return ((struct post *)context)->n_manifests > 0;
}

static void a_cancelled_object_is_no_longer_sent(void **state)
{
    static struct route route;
    static struct gate gate;
    const uint8_t manifest[] = {1, 2, 3};
    (void)state;
    route_open(&route);
    dp_object_transfer_set_manifest(route.a.object_transfer, dp_view_of(manifest, sizeof manifest));
    const dp_hash root = give_object(&route.a, OBJECT_BYTES);
    fetch_info(&route.b, &route.a, &root);
    dp_object_transfer_begin(route.b.object_transfer, &root, OBJECT_BYTES, route.b.leaves,
                             DP_USE_BLOB, ROUND);
    close_gate(&route.a, &gate);
    for (uint32_t i = 0; i < 4; i++) {
        dp_object_transfer_get_chunk(route.b.object_transfer, &route.a.guest.peer, &root, i);
    }
    turn_until(&route.loop, all_asked, &route.a); /* Two are at the store, two wait. */
    dp_object_transfer_cancel(route.b.object_transfer, &root);
    dp_object_transfer_get_manifest(route.b.object_transfer,
                                    &route.a.guest.peer); /* Comes after the cancel. */
    turn_until(&route.loop, is_linked_and_quiet, &route.b);
    uv_sem_post(&gate.open);
    fetch_info(&route.b, &route.a, &root);
    assert_int_equal(route.b.n_chunk_messages, DP_OBJECT_TRANSFER_SERVES_PER_PEER);
    assert_int_equal(route.b.n_chunks, 0);
    uv_sem_destroy(&gate.open);
    fetch(&route.b, &route.a, &root); /* And it may be wanted again. */
    CHECK(holds_noise(route.b.shelf.store, &root, 5, OBJECT_BYTES));
    route_close(&route);
}

static void a_chunk_that_is_being_written_is_not_written_twice(void **state)
{
    static struct route route;
    static struct gate gate = {.job = {.run = wait_at_gate, .done = gate_done}};
    (void)state;
    route_open(&route);
    const dp_hash root = give_object(&route.a, OBJECT_BYTES);
    fetch_info(&route.b, &route.a, &root);
    dp_object_transfer_begin(route.b.object_transfer, &root, OBJECT_BYTES, route.b.leaves,
                             DP_USE_BLOB, ROUND);
    const dp_peer *peer = &route.a.guest.peer;
    for (uint32_t i = 1; i < 4; i++) {
        dp_object_transfer_get_chunk(route.b.object_transfer, peer, &root, i);
    }
    while (route.b.n_chunks < 3) {
        uv_run(&route.loop, UV_RUN_ONCE);
    }
    assert_int_equal(uv_sem_init(&gate.open, 0), 0);
    CHECK_OK(dp_store_thread_post(route.b.store_thread, &gate.job, DP_STORE_THREAD_URGENT));
    uint8_t *bytes = noise(5, OBJECT_BYTES);
    for (unsigned i = 0; i < 2; i++) {
        dp_object_transfer_get_chunk(route.b.object_transfer, peer, &root, 0);
        send_chunk(&route.a, &route.b, &root, 0, true, dp_view_of(bytes, DP_CHUNK_BYTES_MIN));
    }
    CHECK_OK(dp_transport_send(route.a.guest.transport, &route.b.guest.peer, DP_LANE_BULK,
                               dp_view_text("the end")));
    turn_until(&route.loop, heard_the_end, &route.b);
    uv_sem_post(&gate.open);
    turn_until(&route.loop, has_object, &route.b);
    /* A second job would have waited behind the first, and this one behind both. */
    route.b.n_infos_before = route.b.n_infos;
    fetch_info(&route.a, &route.b, &root);
    assert_int_equal(route.b.n_chunks, 4);
    uv_sem_destroy(&gate.open);
    free(bytes);
    route_close(&route);
}

static void a_peer_that_was_not_asked_cannot_answer_for_another(void **state)
{
    static struct route route;
    static struct post stranger;
    static struct gate gate;
    (void)state;
    route_open(&route);
    post_open(&stranger, &route.loop, 2);
    party_link(&stranger.guest, &route.b.guest);
    const dp_hash root = give_object(&route.a, OBJECT_BYTES);
    fetch_info(&route.b, &route.a, &root);
    dp_object_transfer_begin(route.b.object_transfer, &root, OBJECT_BYTES, route.b.leaves,
                             DP_USE_BLOB, ROUND);
    close_gate(&route.a, &gate);
    dp_object_transfer_get_chunk(route.b.object_transfer, &route.a.guest.peer, &root, 1);
    uint8_t *bytes = noise(6, DP_CHUNK_BYTES_MIN);
    send_chunk(&stranger, &route.b, &root, 1, false, dp_view_of(bytes, 0));
    send_chunk(&stranger, &route.b, &root, 1, true, dp_view_of(bytes, 10));
    send_chunk(&stranger, &route.b, &root, 1, true, dp_view_of(bytes, DP_CHUNK_BYTES_MIN));
    CHECK_OK(dp_transport_send(stranger.guest.transport, &route.b.guest.peer, DP_LANE_BULK,
                               dp_view_text("the end")));
    turn_until(&route.loop, heard_the_end, &route.b);
    assert_int_equal(route.b.n_chunks, 0);
    uv_sem_post(&gate.open);
    turn_until(&route.loop, has_chunk, &route.b);
    CHECK_OK(route.b.last);
    CHECK(dp_peer_equal(&route.b.last_peer, &route.a.guest.peer));
    uv_sem_destroy(&gate.open);
    free(bytes);
    post_close(&stranger);
    route_close(&route);
    shelf_close(&stranger.shelf);
}

static void requests_that_stay_unanswered_make_place_for_newer_ones(void **state)
{
    static struct route route;
    const dp_peer silent = {.bytes = {7}};
    (void)state;
    route_open(&route);
    const dp_hash root = give_object(&route.a, OBJECT_BYTES);
    fetch_info(&route.b, &route.a, &root);
    dp_object_transfer_begin(route.b.object_transfer, &root, OBJECT_BYTES, route.b.leaves,
                             DP_USE_BLOB, ROUND);
    for (uint32_t i = 0; i < 300; i++) {
        dp_object_transfer_get_chunk(route.b.object_transfer, &silent, &root, i % 4);
    }
    for (uint32_t i = 0; i < 4; i++) {
        dp_object_transfer_get_chunk(route.b.object_transfer, &route.a.guest.peer, &root, i);
    }
    turn_until(&route.loop, has_object, &route.b);
    CHECK(holds_noise(route.b.shelf.store, &root, 5, OBJECT_BYTES));
    route_close(&route);
}

static void a_missing_chunk_is_answered_not_found(void **state)
{
    static struct route route;
    (void)state;
    route_open(&route);
    const dp_hash root = give_object(&route.a, OBJECT_BYTES);
    fetch_info(&route.b, &route.a, &root);
    dp_hash other = root;
    other.bytes[0] ^= 1;
    dp_object_transfer_begin(route.b.object_transfer, &root, OBJECT_BYTES, route.b.leaves,
                             DP_USE_BLOB, ROUND);
    dp_object_transfer_get_chunk(route.a.object_transfer, &route.b.guest.peer, &root,
                                 0); /* a knows no fetch: nothing is sent */
    CHECK_OK(dp_object_unpin(route.a.shelf.store, &root,
                             &(dp_pin){.run = name_of(1000), .kind = DP_PIN_BLOB, .round = ROUND}));
    CHECK_OK(dp_object_collect(route.a.shelf.store, NULL));
    dp_object_transfer_get_chunk(route.b.object_transfer, &route.a.guest.peer, &root, 0);
    turn_until(&route.loop, has_chunk, &route.b);
    CHECK_STATUS(route.b.last, DP_NOTFOUND);
    route_close(&route);
}

/* Bytes of one chunk change on the disk; nothing is posted meanwhile. */
static void damage(struct post *post, const dp_hash *leaf)
{
    static const char sql[] = "UPDATE chunk SET data=zeroblob(size) WHERE hash=?";
    dp_query query = dp_query_of(&post->shelf.store->chunks, sql);
    dp_bind_hash(&query, leaf);
    CHECK_OK(dp_query_run(&query));
}

static void ask_for(struct post *to, const struct post *from, const dp_hash *root, uint32_t index)
{
    to->n_chunks = 0;
    dp_object_transfer_get_chunk(to->object_transfer, &from->guest.peer, root, index);
    turn_until(to->guest.loop, has_chunk, to);
}

static void damage_found_while_serving_is_reported(void **state)
{
    static struct route route;
    (void)state;
    route_open(&route);
    const dp_hash root = give_object(&route.a, OBJECT_BYTES);
    fetch_info(&route.b, &route.a, &root);
    damage(&route.a, &route.b.leaves[1]);
    dp_object_transfer_begin(route.b.object_transfer, &root, OBJECT_BYTES, route.b.leaves,
                             DP_USE_BLOB, ROUND);
    ask_for(&route.b, &route.a, &root, 0);
    CHECK_OK(route.b.last);
    assert_int_equal(route.a.n_lost, 0);
    ask_for(&route.b, &route.a, &root, 1);
    CHECK_STATUS(route.b.last, DP_NOTFOUND); /* Bad bytes are not sent. */
    assert_int_equal(route.a.n_lost, 1);
    CHECK_STATUS(route.a.lost_status, DP_BADHASH);
    assert_true(dp_hash_equal(&route.a.lost_root, &root));
    ask_for(&route.b, &route.a, &root, 1);
    CHECK_STATUS(route.b.last, DP_NOTFOUND);
    assert_int_equal(route.a.n_lost, 2); /* Also where another reader had found out. */
    CHECK_STATUS(route.a.lost_status, DP_NOTFOUND);
    /* While it is fetched again this is not reported again; nor is the loss of an object that was
     * never here. */
    dp_object_transfer_begin(route.a.object_transfer, &root, OBJECT_BYTES, route.b.leaves,
                             DP_USE_BLOB, ROUND);
    ask_for(&route.b, &route.a, &root, 1);
    const dp_hash other = name_of(1234);
    dp_object_transfer_begin(route.b.object_transfer, &other, OBJECT_BYTES, route.b.leaves,
                             DP_USE_BLOB, ROUND);
    ask_for(&route.b, &route.a, &other, 0);
    assert_int_equal(route.a.n_lost, 2);
    assert_int_equal(route.b.n_lost, 0);
    route_close(&route);
}

static void a_peer_that_lacks_an_object_answers_so(void **state)
{
    static struct route route;
    (void)state;
    route_open(&route);
    const dp_hash root = name_of(1234);
    dp_object_transfer_get_info(route.b.object_transfer, &route.a.guest.peer, &root, 0);
    turn_until(&route.loop, has_chunk, &route.b);
    CHECK_STATUS(route.b.last, DP_NOTFOUND);
    assert_memory_equal(&route.b.last_peer, &route.a.guest.peer, sizeof(dp_peer));
    assert_int_equal(route.b.n_infos, 0);
    /* Half of it is not it. */
    const dp_hash half = give_object(&route.b, OBJECT_BYTES);
    fetch_info(&route.a, &route.b, &half);
    dp_object_transfer_begin(route.a.object_transfer, &half, OBJECT_BYTES, route.a.leaves,
                             DP_USE_BLOB, ROUND);
    route.b.n_chunks = 0;
    dp_object_transfer_get_info(route.b.object_transfer, &route.a.guest.peer, &half, 0);
    turn_until(&route.loop, has_chunk, &route.b);
    CHECK_STATUS(route.b.last, DP_NOTFOUND);
    route_close(&route);
}

static bool has_manifest(void *context)
{
    return ((struct post *)context)->n_manifests > 0;
}

static void a_manifest_is_served_when_there_is_one(void **state)
{
    static struct route route;
    (void)state;
    route_open(&route);
    dp_object_transfer_get_manifest(route.b.object_transfer, &route.a.guest.peer);
    turn_until(&route.loop, heard_the_end, &route.a); /* it has none */
    dp_object_transfer_set_manifest(route.a.object_transfer, dp_view_text("canonical bytes"));
    dp_object_transfer_get_manifest(route.b.object_transfer, &route.a.guest.peer);
    turn_until(&route.loop, has_manifest, &route.b);
    assert_int_equal(route.b.n_manifests, 1);
    assert_int_equal(route.b.manifest_bytes, 15);
    route_close(&route);
}

enum { FLOOD_ANSWERS = DP_OBJECT_TRANSFER_WAITING_PER_PEER + DP_OBJECT_TRANSFER_SERVES_PER_PEER };

static bool has_the_flood(void *context)
{
    return ((struct post *)context)->n_infos >= FLOOD_ANSWERS;
}

static void a_flood_of_requests_is_bounded_and_answered(void **state)
{
    static struct route route;
    (void)state;
    route_open(&route);
    const dp_hash root = give_object(&route.a, OBJECT_BYTES);
    for (unsigned i = 0; i < 3 * DP_OBJECT_TRANSFER_SERVES_MAX; i++) {
        dp_object_transfer_serve_info(route.a.object_transfer, &route.b.guest.peer, &root);
    }
    CHECK(dp_store_thread_waiting(route.a.store_thread) <= DP_OBJECT_TRANSFER_SERVES_PER_PEER);
    turn_until(&route.loop, has_the_flood, &route.b);
    fetch(&route.b, &route.a, &root);
    assert_int_equal(route.b.n_infos, FLOOD_ANSWERS + 1);
    route_close(&route);
}

static bool has_all_chunks(void *context)
{
    return ((struct post *)context)->n_chunk_messages >= 4;
}

static void above_the_budget_of_memory_a_peer_is_served_one_chunk_at_a_time(void **state)
{
    static struct route route;
    static struct gate gate;
    (void)state;
    route_open(&route);
    const dp_hash root = give_object(&route.a, OBJECT_BYTES);
    route.a.guest.transport->peer_memory.limit = 1;
    close_gate(&route.a, &gate);
    const uint32_t waiting = dp_store_thread_waiting(route.a.store_thread);
    for (uint32_t i = 0; i < 4; i++) {
        dp_object_transfer_serve_chunk(route.a.object_transfer, &route.b.guest.peer, &root, i);
    }
    assert_int_equal(dp_store_thread_waiting(route.a.store_thread), waiting + 1);
    uv_sem_post(&gate.open);
    turn_until(&route.loop, has_all_chunks, &route.b); /* And none is forgotten. */
    uv_sem_destroy(&gate.open);
    route_close(&route);
}

static void damaged_messages_never_crash(void **state)
{
    static struct route route;
    dp_rng rng;
    (void)state;
    route_open(&route);
    const dp_hash root = give_object(&route.a, OBJECT_BYTES);
    fetch_info(&route.b, &route.a, &root);
    dp_object_transfer_begin(route.b.object_transfer, &root, OBJECT_BYTES, route.b.leaves,
                             DP_USE_BLOB, ROUND);
    dp_rng_init(&rng, 9);
    uint8_t *bytes = malloc(80000);
    assert_non_null(bytes);
    for (unsigned i = 0; i < 3000; i++) {
        dp_writer writer = dp_writer_of(bytes, 40000);
        if (i % 3 == 0) {
            dp_wire_write_info(&writer, &root, OBJECT_BYTES, route.b.leaves);
        } else if (i % 3 == 1) {
            dp_wire_write_chunk_head(&writer, &root, i % 5, true);
        } else {
            dp_wire_write_manifest(&writer, dp_view_text("canonical bytes"));
        }
        if (i % 7 == 0) {
            dp_object_transfer_get_chunk(route.b.object_transfer, &route.a.guest.peer, &root,
                                         i % 4);
        }
        const size_t size = mutate(&rng, bytes, writer.size, 80000);
        uint8_t *exact = malloc(size + 1);
        assert_non_null(exact);
        memcpy(exact, bytes, size);
        DP_IGNORE(dp_object_transfer_message(route.b.object_transfer, &route.a.guest.peer,
                                             dp_view_of(exact, size)));
        free(exact);
    }
    free(bytes);
    route_close(&route);
}

static void a_hook_may_close_the_courier(void **state)
{
    static struct route route;
    (void)state;
    route_open(&route);
    const dp_hash root = give_object(&route.a, OBJECT_BYTES);
    fetch_info(&route.b, &route.a, &root);
    route.b.close_in_hook = true;
    dp_object_transfer_begin(route.b.object_transfer, &root, route.b.size, route.b.leaves,
                             DP_USE_BLOB, ROUND);
    for (uint32_t i = 0; i < 4; i++) {
        dp_object_transfer_get_chunk(route.b.object_transfer, &route.a.guest.peer, &root, i);
    }
    turn_until(&route.loop, has_chunk, &route.b);
    CHECK(route.b.object_transfer == NULL);
    route_close(&route);
    assert_int_equal(route.b.n_chunks, 1); /* no hook after close */
}

static void closing_with_jobs_under_way_loses_no_memory(void **state)
{
    static struct route route;
    (void)state;
    route_open(&route);
    const dp_hash root = give_object(&route.a, OBJECT_BYTES);
    fetch_info(&route.b, &route.a, &root);
    dp_object_transfer_begin(route.b.object_transfer, &root, route.b.size, route.b.leaves,
                             DP_USE_BLOB, ROUND);
    dp_object_transfer_serve_info(route.a.object_transfer, &route.b.guest.peer, &root);
    route_close(&route);
    assert_int_equal(route.b.n_objects, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_travels_chunk_by_chunk),
        cmocka_unit_test(a_greedy_peer_leaves_room_for_others),
        cmocka_unit_test(an_empty_object_is_whole_at_once),
        cmocka_unit_test(a_fetch_goes_on_where_an_earlier_life_ended),
        cmocka_unit_test(chunks_of_an_earlier_life_are_not_requested_again),
        cmocka_unit_test(told_of_what_is_here_the_node_may_ask_for_more_of_it_in_vain),
        cmocka_unit_test(bad_chunks_are_told_with_their_sender),
        cmocka_unit_test(chunks_that_nobody_asked_for_are_dropped),
        cmocka_unit_test(a_chunk_of_a_wrong_size_is_told_without_the_store),
        cmocka_unit_test(a_cancelled_object_is_no_longer_sent),
        cmocka_unit_test(a_chunk_that_is_being_written_is_not_written_twice),
        cmocka_unit_test(a_peer_that_was_not_asked_cannot_answer_for_another),
        cmocka_unit_test(requests_that_stay_unanswered_make_place_for_newer_ones),
        cmocka_unit_test(a_missing_chunk_is_answered_not_found),
        cmocka_unit_test(damage_found_while_serving_is_reported),
        cmocka_unit_test(a_peer_that_lacks_an_object_answers_so),
        cmocka_unit_test(a_manifest_is_served_when_there_is_one),
        cmocka_unit_test(a_flood_of_requests_is_bounded_and_answered),
        cmocka_unit_test(above_the_budget_of_memory_a_peer_is_served_one_chunk_at_a_time),
        cmocka_unit_test(damaged_messages_never_crash),
        cmocka_unit_test(a_hook_may_close_the_courier),
        cmocka_unit_test(closing_with_jobs_under_way_loses_no_memory),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
