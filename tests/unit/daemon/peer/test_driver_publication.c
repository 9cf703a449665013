/* Vectors of the trainer become objects before the node learns of them. Store and store thread are
 * real; the trainer and the transport's figures are mocks. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "store/inside.h"
#include "store/pieces.h"
#include "tests/unit/daemon/desk.h"

enum { SIZE = 5000, LARGE = DP_PIECE_BYTES + 5000, N_PARTS = 2 };

static struct {
    uint32_t n_replaced;
    uint32_t n_renewed; /* asked to, when a publication was stored */
    uint64_t uplink;
    uint32_t n_hashed; /* chunks; store thread */
} net;

dp_hash __wrap_dp_chunk_leaf(dp_view chunk);
dp_hash __real_dp_chunk_leaf(dp_view chunk);

dp_hash __wrap_dp_chunk_leaf(dp_view chunk)
{
    net.n_hashed++;
    return __real_dp_chunk_leaf(chunk);
}

void dp_driver_renew_trainer(dp_driver *driver)
{
    net.n_renewed++;
    (void)driver;
}

void dp_trainer_process_replace(dp_trainer_process *trainer, const char *cause)
{
    (void)trainer;
    (void)cause;
    net.n_replaced++;
}

void dp_transport_look(const dp_transport *transport, dp_transport_stats *stats)
{
    (void)transport;
    *stats = (dp_transport_stats){.uplink = net.uplink};
}

static dp_driver *open_trained(void)
{
    memset(&net, 0, sizeof net);
    return desk_open();
}

/* A sealed file of noise, as the trainer sends one. */
static int vector_of_size(uint64_t seed, size_t size)
{
    uint8_t *bytes = noise(seed, size);
    int fd = -1;
    CHECK_OK(dp_memfd_make("vector", dp_view_of(bytes, size), &fd));
    free(bytes);
    return fd;
}

static int vector_of(uint64_t seed)
{
    return vector_of_size(seed, SIZE);
}

/* Blob, vector and parts, of seed and those after it. */
static void publish(uint64_t round, uint64_t seed, uint32_t n_parts)
{
    int fds[DP_TRAINER_FDS_MAX];
    const dp_trainer_msg msg = {.kind = DP_TRAINER_PUBLISHED,
                                .round = round,
                                .cuts = {.n = n_parts},
                                .steps = 4,
                                .tokens = 400,
                                .carried = 100,
                                .loss = 2.5,
                                .norm = 3,
                                .error = 0.5,
                                .energy = 77};
    for (uint32_t i = 0; i < 2 + n_parts; i++) {
        fds[i] = vector_of(seed + i);
    }
    dp_driver_publication_store(desk.driver, &msg, fds, 2 + n_parts);
}

static void give_sum(uint64_t round, uint32_t part, int fd)
{
    const dp_trainer_msg msg = {.kind = DP_TRAINER_REDUCED,
                                .round = round,
                                .part = part,
                                .range = {.first = 10, .end = 20},
                                .norm = 4,
                                .error = 1};
    dp_driver_publication_store(desk.driver, &msg, &fd, 1);
}

static bool is_closed(int fd)
{
    return fcntl(fd, F_GETFD) == -1 && errno == EBADF;
}

static uint32_t pins(dp_pin_kind kind)
{
    dp_hash roots[16];
    uint32_t count = 0;
    CHECK_OK(dp_object_pins(desk.shelf.store, &desk.driver->facts.run, kind, roots, 16, &count));
    return count;
}

/* Makes the store refuse later writes for lack of space, or accept them again. */
static void fill(bool full)
{
    desk_settle();
    desk.shelf.store->options.max_bytes = full ? 1 : 0;
}

static void a_publication_is_whole_on_the_disk_before_the_node_hears_of_it(void **state)
{
    (void)state;
    open_trained();
    net.uplink = 5999;
    publish(9, 1, N_PARTS);
    assert_int_equal(desk.n_events, 0);
    desk_settle();
    assert_int_equal(desk.n_events, 1);
    const dp_event *event = &desk.events[0];
    assert_int_equal(event->type, DP_EV_PUBLISHED);
    assert_int_equal(net.n_renewed, 1);
    assert_true(event->u.published.round == 9 && event->u.published.bytes == SIZE);
    assert_true(event->u.published.steps == 4 && event->u.published.tokens == 400);
    assert_true(event->u.published.carried == 100 && event->u.published.energy == 77);
    assert_true(event->u.published.loss_micro == 2500000 && event->u.published.rate == 5);
    assert_true(holds_noise(desk.shelf.store, &event->u.published.root, 1, SIZE));
    assert_true(holds_noise(desk.shelf.store, &event->u.published.a_root, 2, SIZE));
    assert_int_equal(event->u.published.parts.n, N_PARTS);
    for (uint64_t p = 0; p < N_PARTS; p++) {
        assert_true(
            holds_noise(desk.shelf.store, &event->u.published.parts.refs[p].root, 3 + p, SIZE));
    }
    assert_int_equal(pins(DP_PIN_PENDING), 2 + N_PARTS);
    assert_true(desk.driver->update_round == 9 && desk.driver->update_norm == 3);
    desk_close();
}

static void figures_that_make_no_sense_are_unknown(void **state)
{
    int fds[2];
    dp_trainer_msg msg = {.kind = DP_TRAINER_PUBLISHED, .loss = -1};
    static const struct {
        uint64_t uplink;
        uint32_t rate;
    } rates[] = {{0, 0}, {1, 1}, {UINT64_MAX, UINT32_MAX}};
    (void)state;
    open_trained();
    for (uint32_t i = 0; i < 3; i++) {
        net.uplink = rates[i].uplink;
        fds[0] = vector_of(1);
        fds[1] = vector_of(2);
        dp_driver_publication_store(desk.driver, &msg, fds, 2);
        desk_settle();
        assert_int_equal(desk.events[i].u.published.rate, rates[i].rate);
        assert_int_equal(desk.events[i].u.published.loss_micro, 0);
        msg.loss = i == 0 ? 1e9 : 0.0 / 0.0;
    }
    desk_close();
}

static void the_next_publication_drops_the_objects_staged_before(void **state)
{
    (void)state;
    open_trained();
    publish(9, 1, 0);
    desk_settle();
    const dp_hash blob = desk.events[0].u.published.root;
    publish(10, 2, 0); /* Its blob is the vector of the one before, which stays. */
    desk_settle();
    assert_int_equal(pins(DP_PIN_PENDING), 2);
    CHECK_OK(dp_object_collect(desk.shelf.store, NULL));
    assert_false(holds_noise(desk.shelf.store, &blob, 1, SIZE));
    assert_true(holds_noise(desk.shelf.store, &desk.events[1].u.published.root, 2, SIZE));
    desk_close();
}

static void a_sum_is_told_with_what_its_codec_lost(void **state)
{
    (void)state;
    dp_driver *driver = open_trained();
    give_sum(9, 3, vector_of(1));
    desk_settle();
    assert_int_equal(desk.events[0].type, DP_EV_REDUCED);
    assert_true(desk.events[0].u.reduced.part == 3 && desk.events[0].u.reduced.bytes == SIZE);
    assert_int_equal(desk.events[0].u.reduced.status, DP_OK);
    assert_true(driver->part_error == 0.25);
    assert_int_equal(pins(DP_PIN_BLOB), 1);
    desk_close();
}

static void a_frozen_displacement_is_staged_for_its_exchange(void **state)
{
    const int fds[2] = {vector_of(1), vector_of(2)};
    const dp_trainer_msg msg = {
        .kind = DP_TRAINER_FROZEN, .exchange = {5}, .steps = 2, .tokens = 30, .energy = 8};
    (void)state;
    open_trained();
    dp_driver_publication_store(desk.driver, &msg, fds, 2);
    desk_settle();
    assert_int_equal(desk.events[0].type, DP_EV_FROZEN);
    assert_true(desk.events[0].u.frozen.exchange[0] == 5 && desk.events[0].u.frozen.energy == 8);
    assert_true(holds_noise(desk.shelf.store, &desk.events[0].u.frozen.f_root, 2, SIZE));
    assert_int_equal(pins(DP_PIN_EXCHANGE), 2);
    assert_int_equal(pins(DP_PIN_PENDING), 0);
    desk_close();
}

static void at_the_quota_a_publication_waits_until_there_is_room(void **state)
{
    (void)state;
    dp_driver *driver = open_trained();
    fill(true);
    publish(9, 1, 0);
    desk_settle();
    assert_true(desk.n_events == 0 && driver->waiting[0] != NULL && net.n_replaced == 0);
    assert_true(desk_logged("store.full") && desk_logged("An update waits for room"));
    assert_true(desk_logged("the store is at its limit: it uses ") &&
                desk_logged(" of 1 B (store-max)"));
    assert_true(!desk_logged("the disk is full"));
    assert_non_null(strstr(driver->no_room, "dpnode limits --disk SIZE"));
    dp_driver_publication_retry(driver); /* Still full. */
    desk_settle();
    assert_true(desk.n_events == 0 && driver->waiting[0] != NULL);
    desk.is_full = true; /* The store thread has no room for the job itself. */
    dp_driver_publication_retry(driver);
    assert_non_null(driver->waiting[0]);
    desk.is_full = false;
    fill(false);
    dp_driver_publication_retry(driver);
    desk_settle();
    assert_int_equal(desk.n_events, 1);
    assert_true(holds_noise(desk.shelf.store, &desk.events[0].u.published.root, 1, SIZE));
    assert_null(driver->waiting[0]);
    assert_string_equal(driver->no_room, "");
    desk_close();
}

/* The tick tries twice a second: a vector of 2 GiB would keep the store thread busy for good. */
static void on_a_full_disk_a_publication_is_hashed_once(void **state)
{
    static const size_t sizes[] = {SIZE, LARGE};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        int fds[2] = {vector_of(1), vector_of_size(2, sizes[i])};
        const dp_trainer_msg msg = {.kind = DP_TRAINER_PUBLISHED, .round = 9};
        dp_driver *driver = open_trained();
        desk.shelf.store->options.max_bytes = 1;
        dp_driver_publication_store(driver, &msg, fds, 2);
        desk_settle(); /* The first vector finds no room ... */
        uint64_t used = 0;
        CHECK_OK(dp_store_bytes(desk.shelf.store, &used));
        desk.shelf.store->options.max_bytes = used + 1000000;
        for (uint32_t turn = 0; turn < 10; turn++) { /* ... and then the second one, if large. */
            assert_true(i == 0 || driver->waiting[0] != NULL);
            dp_driver_publication_retry(driver);
            desk_settle();
        }
        const uint32_t n_chunks = 1 + dp_object_chunks(sizes[i]);
        assert_int_equal(net.n_hashed, n_chunks);
        fill(false);
        dp_driver_publication_retry(driver);
        desk_settle();
        assert_true(desk.n_events == 1 && driver->waiting[0] == NULL);
        assert_true(holds_noise(desk.shelf.store, &desk.events[0].u.published.root, 1, SIZE));
        assert_true(holds_noise(desk.shelf.store, &desk.events[0].u.published.a_root, 2, sizes[i]));
        desk_close();
    }
}

static void a_second_one_that_finds_no_room_replaces_the_trainer(void **state)
{
    (void)state;
    dp_driver *driver = open_trained();
    fill(true);
    publish(9, 1, 0);
    desk_settle();
    publish(10, 5, 0);
    desk_settle();
    assert_int_equal(net.n_replaced, 1);
    assert_true(desk_logged("an update could not be stored"));
    /* The trainer has ended: waiting vectors are dropped too. */
    dp_driver_publication_drop(driver);
    assert_null(driver->waiting[0]);
    desk_close();
}

static void a_sum_does_not_wait_for_room(void **state)
{
    (void)state;
    dp_driver *driver = open_trained();
    fill(true);
    give_sum(9, 3, vector_of(1));
    desk_settle();
    assert_int_equal(desk.n_events, 1);
    assert_int_equal(desk.events[0].type, DP_EV_REDUCED);
    assert_int_equal(desk.events[0].u.reduced.status, DP_NOSPACE);
    assert_true(driver->waiting[0] == NULL && driver->waiting[1] == NULL);
    desk_close();
}

static void a_file_that_is_not_sealed_replaces_the_trainer(void **state)
{
    int fds[2] = {-1, vector_of(2)};
    const dp_trainer_msg msg = {.kind = DP_TRAINER_PUBLISHED, .round = 9};
    (void)state;
    open_trained();
    CHECK_OK(dp_memfd_start("open", &fds[0]));
    dp_driver_publication_store(desk.driver, &msg, fds, 2);
    desk_settle();
    assert_true(desk.n_events == 0 && net.n_replaced == 1);
    assert_true(is_closed(fds[0]) && is_closed(fds[1]));
    assert_int_equal(pins(DP_PIN_PENDING), 0);
    desk_close();
}

static void vectors_of_a_dead_trainer_are_dropped(void **state)
{
    (void)state;
    dp_driver *driver = open_trained();
    fill(true);
    publish(9, 1, 0);
    driver->trainer_life++;
    desk_settle();
    assert_true(desk.n_events == 0 && driver->waiting[0] == NULL && net.n_replaced == 0);
    desk_close();
}

static void a_dead_trainers_publication_is_not_told_as_the_next_ones(void **state)
{
    (void)state;
    dp_driver *driver = open_trained();
    publish(9, 1, 0);
    driver->trainer_life++; /* Before it is stored. */
    desk_settle();
    assert_true(desk.n_events == 0 && net.n_renewed == 0);
    publish(9, 11, 0);
    desk_settle();
    assert_true(desk.n_events == 1 && desk.events[0].type == DP_EV_PUBLISHED);
    assert_true(holds_noise(desk.shelf.store, &desk.events[0].u.published.root, 11, SIZE));
    assert_int_equal(pins(DP_PIN_PENDING), 2); /* The first one's are dropped. */
    give_sum(9, 0, vector_of(21));
    driver->trainer_life++;
    desk_settle();
    assert_true(desk.n_events == 2 && desk.events[1].type == DP_EV_REDUCED);
    desk_close();
}

static void without_memory_or_room_at_the_store_the_node_hears_of_a_sum_that_failed(void **state)
{
    (void)state;
    open_trained();
    const int fd = vector_of(1);
    dp_alloc_fail_after(1);
    give_sum(9, 3, fd);
    dp_alloc_fail_after(0);
    assert_true(is_closed(fd));
    desk.is_full = true;
    give_sum(10, 4, vector_of(1));
    assert_int_equal(desk.n_events, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(desk.events[i].type, DP_EV_REDUCED);
        assert_int_equal(desk.events[i].u.reduced.status, DP_NOMEM);
        assert_int_equal(desk.events[i].u.reduced.part, 3 + i);
    }
    assert_int_equal(net.n_replaced, 0);
    /* The node would never learn of this publication: a new trainer makes another. */
    publish(11, 1, 0);
    assert_int_equal(net.n_replaced, 1);
    desk_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_publication_is_whole_on_the_disk_before_the_node_hears_of_it),
        cmocka_unit_test(figures_that_make_no_sense_are_unknown),
        cmocka_unit_test(the_next_publication_drops_the_objects_staged_before),
        cmocka_unit_test(a_sum_is_told_with_what_its_codec_lost),
        cmocka_unit_test(a_frozen_displacement_is_staged_for_its_exchange),
        cmocka_unit_test(at_the_quota_a_publication_waits_until_there_is_room),
        cmocka_unit_test(on_a_full_disk_a_publication_is_hashed_once),
        cmocka_unit_test(a_second_one_that_finds_no_room_replaces_the_trainer),
        cmocka_unit_test(a_sum_does_not_wait_for_room),
        cmocka_unit_test(a_file_that_is_not_sealed_replaces_the_trainer),
        cmocka_unit_test(vectors_of_a_dead_trainer_are_dropped),
        cmocka_unit_test(a_dead_trainers_publication_is_not_told_as_the_next_ones),
        cmocka_unit_test(without_memory_or_room_at_the_store_the_node_hears_of_a_sum_that_failed),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
