/* The dense exchange between transports: real sockets on loopback, three members in one loop. The arithmetic of these tests
 * sends floats as they are. */
#include "base/alloc.h"
#include "daemon/exchange.h"
#include "daemon/transport_conn.h"
#include "tests/unit/daemon/scene.h"

/* As floats a record has 15 blocks, and on long paths a chunk of so few elements has 8. */
enum { N = 3, CHUNK = 15 * 1024, ELEMENTS = 5 * CHUNK + 1000, CODEC = 1 };

static size_t plain_bytes(uint8_t codec, size_t n)
{
    return codec == CODEC ? 4 * n : 0;
}

static dp_status plain_encode(uint8_t codec, const float *x, size_t n, uint8_t *out)
{
    memcpy(out, x, plain_bytes(codec, n));
    return x[0] > 1e6F ? DP_DIVERGED : DP_OK;
}

static dp_status plain_check(uint8_t codec, dp_view bytes, size_t n)
{
    return n > 0 && bytes.size == plain_bytes(codec, n) ? DP_OK : DP_BADMSG;
}

static int64_t plain_sum(const dp_terms *terms, size_t i)
{
    int64_t sum = terms->begun ? terms->sum[i] : (int64_t)terms->weight * (int64_t)terms->x[i];
    for (uint32_t k = 0; k < terms->n_parts; k++) {
        float one;
        memcpy(&one, terms->parts[k] + 4 * i, 4);
        sum += (int64_t)terms->weights[k] * (int64_t)one;
    }
    return sum;
}

static dp_status plain_add(const dp_terms *terms)
{
    for (size_t i = 0; i < terms->n; i++) {
        terms->sum[i] = plain_sum(terms, i);
    }
    return DP_OK;
}

static dp_status plain_mean(const dp_terms *terms, uint64_t weights, uint8_t *out)
{
    for (size_t i = 0; i < terms->n; i++) {
        terms->x[i] = (float)plain_sum(terms, i) / (float)weights;
    }
    memcpy(out, terms->x, 4 * terms->n);
    return DP_OK;
}

static dp_status plain_decode(uint8_t codec, dp_view bytes, size_t n, float *x)
{
    const dp_status status = plain_check(codec, bytes, n);
    if (status == DP_OK) {
        memcpy(x, bytes.data, bytes.size);
    }
    return status;
}

static const dp_exchange_ops ops = {plain_bytes, plain_encode, plain_check,
                                    plain_add,   plain_mean,   plain_decode};

struct seat {
    struct guest guest; /* first: hooks get it */
    dp_exchange *exchange;
    float *x;
    unsigned ended;
    dp_status status;
    uint32_t has_mean;   /* bit i: member i has sent one */
    unsigned late_parts; /* that came after it */
};

struct table {
    uv_loop_t loop;
    size_t n_elements;
    struct seat seats[N];
};

static void seat_message(void *context, const dp_peer *peer, dp_view bytes)
{
    struct seat *seat = context;
    dp_dense_message message;
    if (dp_dense_read(bytes, &message) == DP_OK) {
        const uint32_t bit = 1U << (peer->bytes[0] & 31U);
        seat->has_mean |= message.kind == DP_DENSE_MEAN ? bit : 0;
        seat->late_parts += message.kind == DP_DENSE_PART && (seat->has_mean & bit) != 0;
    }
    if (seat->exchange != NULL && !dp_exchange_message(seat->exchange, peer, bytes)) {
        guest_message(context, peer, bytes);
    }
}

static void seat_drained(void *context, const dp_peer *peer)
{
    struct seat *seat = context;
    if (seat->exchange != NULL) {
        dp_exchange_drained(seat->exchange, peer);
    }
}

static void seat_done(void *context, dp_status status)
{
    struct seat *seat = context;
    seat->ended++;
    seat->status = status;
}

static void fill(struct seat *seat, unsigned self, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        seat->x[i] = (float)((i * 7 + self * 1000) % 5000) * (self == 1 ? -6.0F : 3.0F);
    }
}

static void table_open_of(struct table *table, size_t n_elements, bool far)
{
    dp_peer peers[N];
    turn_open(&table->loop);
    table->n_elements = n_elements;
    memset(table->seats, 0, sizeof table->seats);
    for (int i = 0; i < N; i++) {
        struct seat *seat = &table->seats[i];
        dp_transport_config config = guest_config(&seat->guest, &table->loop, i, 1);
        config.hooks.message = seat_message;
        config.hooks.drained = seat_drained;
        guest_open_as(&seat->guest, &config);
        peers[i] = seat->guest.peer;
    }
    for (int i = 0; i < N; i++) {
        struct seat *seat = &table->seats[i];
        const dp_exchange_config config = {.transport = seat->guest.transport,
                                           .ops = &ops,
                                           .n_members = N,
                                           .self = (uint32_t)i,
                                           .peers = peers,
                                           .far = far,
                                           .n_elements = n_elements,
                                           .codec = CODEC,
                                           .context = seat,
                                           .done = seat_done};
        CHECK_OK(dp_exchange_open(&seat->exchange, &config));
        seat->x = malloc(n_elements * sizeof *seat->x);
        assert_non_null(seat->x);
        fill(seat, (unsigned)i, n_elements);
        for (int k = 0; k < i; k++) {
            party_link(&seat->guest, &table->seats[k].guest);
        }
    }
}

static void table_open(struct table *table)
{
    table_open_of(table, ELEMENTS, false);
}

static void table_close(struct table *table)
{
    for (int i = 0; i < N; i++) {
        guest_close(&table->seats[i].guest);
    }
    turn_close(&table->loop);
    for (int i = 0; i < N; i++) {
        dp_exchange_close(table->seats[i].exchange);
        free(table->seats[i].x);
    }
    assert_int_equal(dp_alloc_live_bytes(), 0);
}

struct ends {
    struct table *table;
    unsigned count;
};

static bool all_ended(void *context)
{
    const struct ends *ends = context;
    for (int i = 0; i < N; i++) {
        if (ends->table->seats[i].ended < ends->count) {
            return false;
        }
    }
    return true;
}

static float expected(size_t i, unsigned members)
{
    double sum = 0;
    unsigned n = 0;
    for (unsigned self = 0; self < N; self++) {
        if ((members >> self & 1U) != 0) {
            sum += (double)((i * 7 + self * 1000) % 5000) * (self == 1 ? -6.0 : 3.0);
            n++;
        }
    }
    return (float)sum / (float)n;
}

static void all_end_with_the_same_mean(void **state)
{
    struct table table;
    struct ends ends = {&table, 1};
    (void)state;
    table_open(&table);
    for (int i = 0; i < N; i++) {
        dp_exchange_start(table.seats[i].exchange, 1, 1, table.seats[i].x);
    }
    turn_until(&table.loop, all_ended, &ends);
    for (int i = 0; i < N; i++) {
        CHECK_OK(table.seats[i].status);
        assert_int_equal(dp_exchange_dropped(table.seats[i].exchange), 0);
        for (uint32_t chunk = 0; chunk < 6; chunk++) {
            assert_int_equal(dp_exchange_present(table.seats[i].exchange, chunk), 7);
        }
        assert_memory_equal(table.seats[i].x, table.seats[0].x, ELEMENTS * sizeof(float));
    }
    for (size_t i = 0; i < ELEMENTS; i += 31) {
        CHECK(table.seats[0].x[i] == expected(i, 7));
    }
    table_close(&table);
}

/* Member 2 begins long after the others have sent it all that they may. */
static void a_late_member_finds_what_came_early_and_asks_for_the_rest(void **state)
{
    struct table table;
    (void)state;
    table_open(&table);
    for (unsigned round = 1; round <= 3; round++) {
        struct ends ends = {&table, round};
        for (unsigned i = 0; i < N; i++) {
            fill(&table.seats[i], i, ELEMENTS);
        }
        dp_exchange_start(table.seats[0].exchange, round, 1, table.seats[0].x);
        dp_exchange_start(table.seats[1].exchange, round, 1, table.seats[1].x);
        for (unsigned i = 0; i < 50; i++) {
            uv_run(&table.loop, UV_RUN_NOWAIT);
        }
        assert_int_equal(table.seats[0].ended, round - 1);
        dp_exchange_start(table.seats[2].exchange, round, 1, table.seats[2].x);
        turn_until(&table.loop, all_ended, &ends);
        for (size_t i = 0; i < ELEMENTS; i += 31) {
            CHECK(table.seats[2].x[i] == expected(i, 7));
        }
    }
    table_close(&table);
}

static void weights_count(void **state)
{
    struct table table;
    struct ends ends = {&table, 1};
    (void)state;
    table_open(&table);
    for (unsigned i = 0; i < N; i++) {
        for (size_t k = 0; k < ELEMENTS; k++) {
            table.seats[i].x[k] = (float)(i + 1);
        }
        dp_exchange_start(table.seats[i].exchange, 1, i + 1, table.seats[i].x);
    }
    turn_until(&table.loop, all_ended, &ends);
    CHECK(table.seats[0].x[12345] == 14.0F / 6.0F);
    table_close(&table);
}

static bool two_have_all_they_can(void *context)
{
    const struct table *table = context;
    uint32_t count = 0;
    const dp_dense_layout *layout = dp_exchange_layout(table->seats[0].exchange);
    for (uint32_t chunk = 0; chunk < layout->first[2]; chunk++) {
        const uint32_t owner = dp_dense_owner(layout, chunk);
        count += dp_exchange_present(table->seats[owner].exchange, chunk) == 3;
    }
    return count == layout->first[2];
}

static bool first_two_ended(void *context)
{
    const struct table *table = context;
    return table->seats[0].ended == 1 && table->seats[1].ended == 1;
}

static bool means_are_here(void *context)
{
    const struct table *table = context;
    return dp_exchange_present(table->seats[0].exchange, 2) != 0 &&
           dp_exchange_present(table->seats[0].exchange, 3) != 0;
}

/* Member 2 never begins: its own chunks have no mean, those of others count two, and who was left out is named. */
static void without_a_member_the_rest_is_averaged_when_time_is_over(void **state)
{
    struct table table;
    (void)state;
    table_open(&table);
    dp_exchange_start(table.seats[0].exchange, 1, 1, table.seats[0].x);
    dp_exchange_start(table.seats[1].exchange, 1, 1, table.seats[1].x);
    turn_until(&table.loop, two_have_all_they_can, &table);
    assert_int_equal(table.seats[0].ended + table.seats[1].ended, 0);
    dp_exchange_expire(table.seats[1].exchange); /* Its means go out ... */
    turn_until(&table.loop, means_are_here, &table);
    dp_exchange_expire(table.seats[0].exchange);
    CHECK(first_two_ended(&table));
    CHECK_STATUS(table.seats[0].status, DP_TIMEOUT);
    const size_t own = 0;
    const size_t others = 2 * (size_t)CHUNK;
    const size_t lost = 4 * (size_t)CHUNK;
    CHECK(table.seats[0].x[own + 5] == expected(own + 5, 3));
    CHECK(table.seats[0].x[others + 5] == expected(others + 5, 3));
    assert_int_equal(dp_exchange_present(table.seats[0].exchange, 0), 3);
    assert_int_equal(dp_exchange_present(table.seats[0].exchange, 4), 0);
    CHECK(table.seats[0].x[lost + 5] == expected(lost + 5, 1)); /* as it was */
    table_close(&table);
}

static void what_cannot_be_encoded_ends_the_exchange(void **state)
{
    struct table table;
    (void)state;
    table_open(&table);
    for (size_t i = 0; i < ELEMENTS; i++) {
        table.seats[0].x[i] = 1e7F;
    }
    dp_exchange_start(table.seats[0].exchange, 1, 1, table.seats[0].x);
    assert_int_equal(table.seats[0].ended, 1);
    CHECK_STATUS(table.seats[0].status, DP_DIVERGED);
    table_close(&table);
}

static void what_does_not_belong_is_dropped_and_counted(void **state)
{
    struct table table;
    uint8_t bytes[DP_DENSE_HEAD_BYTES + 8] = {0};
    const dp_peer stranger = {{9}};
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);
    const dp_dense_message part = {
        .exchange = 1, .kind = DP_DENSE_PART, .codec = CODEC, .weight = 1};
    (void)state;
    table_open(&table);
    dp_exchange *exchange = table.seats[0].exchange;
    const dp_peer *peer = &table.seats[1].guest.peer;
    dp_exchange_start(exchange, 1, 1, table.seats[0].x);
    dp_dense_write_head(&writer, &part);
    CHECK(!dp_exchange_message(exchange, peer, dp_view_text("something else")));
    CHECK(dp_exchange_message(exchange, &stranger, dp_view_of(bytes, sizeof bytes)));
    CHECK(dp_exchange_message(exchange, peer, dp_view_of(bytes, 10)));           /* cut */
    CHECK(dp_exchange_message(exchange, peer, dp_view_of(bytes, sizeof bytes))); /* wrong size */
    bytes[2] = 77; /* of an exchange to come */
    CHECK(dp_exchange_message(exchange, peer, dp_view_of(bytes, sizeof bytes)));
    assert_int_equal(dp_exchange_dropped(exchange), 4);
    table_close(&table);
}

/* As if loopback were a long path; no tick puts that right. */
static void go_far(struct table *table)
{
    for (int i = 0; i < N; i++) {
        dp_transport *transport = table->seats[i].guest.transport;
        uv_timer_stop(transport->tick);
        for (dp_list *at = transport->conns.next; at != &transport->conns; at = at->next) {
            DP_LIST_ITEM(at, dp_conn, item)->path.last.min_rtt_us = 100000;
        }
    }
}

/* More for each than a lane takes at once, and less than goes out before the other has said that it is there. */
static void on_long_paths_parts_leave_before_means(void **state)
{
    enum { MANY = 1400 * 1024 };
    struct table table;
    struct ends ends = {&table, 1};
    (void)state;
    table_open_of(&table, MANY, true);
    go_far(&table);
    for (int i = 0; i < N; i++) {
        CHECK(dp_transport_is_far(table.seats[i].guest.transport,
                                  &table.seats[(i + 1) % N].guest.peer));
        dp_exchange_start(table.seats[i].exchange, 1, 1, table.seats[i].x);
    }
    turn_until(&table.loop, all_ended, &ends);
    for (int i = 0; i < N; i++) {
        CHECK_OK(table.seats[i].status);
        assert_int_equal(table.seats[i].late_parts, 0);
        assert_memory_equal(table.seats[i].x, table.seats[0].x, MANY * sizeof(float));
    }
    for (size_t i = 0; i < MANY; i += 31) {
        CHECK(table.seats[0].x[i] == expected(i, 7));
    }
    table_close(&table);
}

static void on_long_paths_a_small_vector_has_smaller_chunks(void **state)
{
    struct table table;
    struct ends ends = {&table, 1};
    (void)state;
    table_open_of(&table, ELEMENTS, true);
    assert_int_equal(dp_exchange_layout(table.seats[0].exchange)->chunk_elements, 8 * 1024);
    for (int i = 0; i < N; i++) {
        dp_exchange_start(table.seats[i].exchange, 1, 1, table.seats[i].x);
    }
    turn_until(&table.loop, all_ended, &ends);
    for (size_t i = 0; i < ELEMENTS; i += 31) {
        CHECK(table.seats[N - 1].x[i] == expected(i, 7));
    }
    table_close(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_end_with_the_same_mean),
        cmocka_unit_test(a_late_member_finds_what_came_early_and_asks_for_the_rest),
        cmocka_unit_test(weights_count),
        cmocka_unit_test(without_a_member_the_rest_is_averaged_when_time_is_over),
        cmocka_unit_test(what_cannot_be_encoded_ends_the_exchange),
        cmocka_unit_test(what_does_not_belong_is_dropped_and_counted),
        cmocka_unit_test(on_long_paths_parts_leave_before_means),
        cmocka_unit_test(on_long_paths_a_small_vector_has_smaller_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
