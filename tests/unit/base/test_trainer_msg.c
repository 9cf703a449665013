#include "tests/lib/check.h"

#include <fcntl.h>
#include <math.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/trainer_msg.h"
#include "tests/lib/mutate.h"

/* Every field set, so that what a kind does not carry is seen to be dropped. */
static dp_trainer_msg full(dp_trainer_kind kind)
{
    dp_trainer_msg msg = {.kind = kind,
                          .abi = 1,
                          .pid = 2,
                          .round = UINT64_MAX,
                          .elements = 4,
                          .tokens = 5,
                          .carried = 6,
                          .steps = UINT32_MAX,
                          .id = 8,
                          .exchange = {9},
                          .member = {10},
                          .root = {{11}},
                          .loss = 12.5,
                          .bits_per_byte = 13.25,
                          .moved = -14.125,
                          .weight_own = 15,
                          .weight_other = 16,
                          .energy = (unsigned __int128)17 << 100 | 3,
                          .alpha = 18,
                          .clip = 19,
                          .lambda = 20,
                          .settle = DP_SETTLE_LEFT_OUT,
                          .restore = DP_RESTORE_FROZEN,
                          .dense = true,
                          .ok = true,
                          .seed = 21,
                          .n_items = 2,
                          .q = {22, UINT32_MAX},
                          .text = "twenty-three"};
    return msg;
}

static void every_kind_comes_back_as_it_was_sent(void **state)
{
    (void)state;
    for (unsigned kind = DP_TRAINER_HELLO; kind < DP_TRAINER_KIND_COUNT; kind++) {
        const dp_trainer_msg msg = full((dp_trainer_kind)kind);
        dp_trainer_msg back;
        dp_buf first;
        dp_buf second;
        dp_buf_init(&first, DP_TRAINER_PACKET_MAX);
        dp_buf_init(&second, DP_TRAINER_PACKET_MAX);
        CHECK_OK(dp_trainer_encode(&msg, &first));
        CHECK_OK(dp_trainer_decode(&back, dp_buf_view(&first)));
        CHECK(back.kind == msg.kind);
        CHECK_OK(dp_trainer_encode(&back, &second));
        CHECK(dp_view_equal(dp_buf_view(&first), dp_buf_view(&second)));
        CHECK(strcmp(dp_trainer_kind_name(msg.kind), "unknown") != 0);
        dp_buf_close(&first);
        dp_buf_close(&second);
    }
}

static void fields_arrive_where_they_belong(void **state)
{
    (void)state;
    static const dp_trainer_kind kinds[] = {DP_TRAINER_APPLY, DP_TRAINER_CHECKED, DP_TRAINER_MIX, DP_TRAINER_PUBLISHED};
    dp_trainer_msg back[4];
    for (size_t i = 0; i < 4; i++) {
        const dp_trainer_msg msg = full(kinds[i]);
        dp_buf bytes;
        dp_buf_init(&bytes, DP_TRAINER_PACKET_MAX);
        CHECK_OK(dp_trainer_encode(&msg, &bytes));
        CHECK_OK(dp_trainer_decode(&back[i], dp_buf_view(&bytes)));
        dp_buf_close(&bytes);
    }
    CHECK(back[0].alpha == 18 && back[0].clip == 19 && back[0].lambda == 20 && back[0].settle == DP_SETTLE_LEFT_OUT);
    CHECK(back[0].n_items == 2 && back[0].q[0] == 22 && back[0].q[1] == UINT32_MAX && back[0].round == UINT64_MAX);
    CHECK(back[0].steps == 0 && back[0].text[0] == '\0');
    CHECK(back[1].energy == ((unsigned __int128)17 << 100 | 3) && back[1].ok && back[1].id == 8);
    CHECK(back[2].weight_own == 15 && back[2].weight_other == 16 && back[2].exchange[0] == 9);
    CHECK(back[3].carried == 6 && back[3].loss == 12.5 && back[3].steps == UINT32_MAX);
}

static void what_is_out_of_bounds_is_refused(void **state)
{
    (void)state;
    dp_trainer_msg msg = full(DP_TRAINER_APPLY);
    dp_buf bytes;
    dp_buf_init(&bytes, DP_TRAINER_PACKET_MAX);
    msg.n_items = DP_TRAINER_ITEMS_MAX + 1;
    CHECK_STATUS(dp_trainer_encode(&msg, &bytes), DP_BADARG);
    msg = full((dp_trainer_kind)0);
    CHECK_STATUS(dp_trainer_encode(&msg, &bytes), DP_BADARG);
    static const uint8_t unknown[] = {0x81, 0xa4, 't', 'y', 'p', 'e', 99};
    static const uint8_t bare_publish[] = {0x81, 0xa4, 't', 'y', 'p', 'e', DP_TRAINER_PUBLISH};
    static const uint8_t extra_key[] = {0x82, 0xa4, 't', 'y', 'p', 'e', DP_TRAINER_STOP, 0xa1, 'z', 0xc0};
    static const uint8_t no_map[] = {0x01};
    CHECK_STATUS(dp_trainer_decode(&msg, dp_view_of(unknown, sizeof unknown)), DP_BADMSG);
    CHECK_STATUS(dp_trainer_decode(&msg, dp_view_of(bare_publish, sizeof bare_publish)), DP_BADMSG);
    CHECK_STATUS(dp_trainer_decode(&msg, dp_view_of(no_map, sizeof no_map)), DP_BADMSG);
    CHECK_OK(dp_trainer_decode(&msg, dp_view_of(extra_key, sizeof extra_key)));
    CHECK(msg.kind == DP_TRAINER_STOP);
    dp_trainer_msg nan = full(DP_TRAINER_STEP);
    nan.loss = (double)NAN;
    dp_buf_clear(&bytes);
    CHECK_OK(dp_trainer_encode(&nan, &bytes));
    CHECK_STATUS(dp_trainer_decode(&msg, dp_buf_view(&bytes)), DP_BADMSG);
    dp_buf_close(&bytes);
}

static void damaged_packets_never_crash(void **state)
{
    (void)state;
    dp_rng rng;
    dp_rng_init(&rng, 5);
    unsigned refused = 0;
    for (unsigned i = 0; i < 20000; i++) {
        const dp_trainer_msg msg = full((dp_trainer_kind)(1 + i % (DP_TRAINER_KIND_COUNT - 1)));
        dp_buf bytes;
        dp_buf_init(&bytes, DP_TRAINER_PACKET_MAX);
        CHECK_OK(dp_trainer_encode(&msg, &bytes));
        uint8_t damaged[2048];
        CHECK(bytes.size <= sizeof damaged);
        memcpy(damaged, bytes.data, bytes.size);
        const size_t size = mutate(&rng, damaged, bytes.size, sizeof damaged);
        dp_trainer_msg back;
        const dp_status status = dp_trainer_decode(&back, dp_view_of(damaged, size));
        CHECK(status != DP_OK || (back.n_items <= DP_TRAINER_ITEMS_MAX && back.text[DP_TRAINER_TEXT_MAX] == '\0'));
        refused += status != DP_OK;
        dp_buf_close(&bytes);
    }
    CHECK(refused > 1000);
}

static void files_travel_with_a_packet(void **state)
{
    (void)state;
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
    int sent[DP_TRAINER_FDS_MAX];
    for (size_t i = 0; i < DP_TRAINER_FDS_MAX; i++) {
        const uint8_t byte = (uint8_t)i;
        CHECK_OK(dp_memfd_make("one", dp_view_of(&byte, 1), &sent[i]));
    }
    const dp_trainer_msg msg = full(DP_TRAINER_CHECK);
    CHECK_OK(dp_trainer_send(pair[0], &msg, sent, DP_TRAINER_FDS_MAX));
    dp_trainer_msg back;
    int got[DP_TRAINER_FDS_MAX];
    uint32_t n_got;
    CHECK_OK(dp_trainer_receive(pair[1], &back, got, &n_got));
    CHECK(n_got == DP_TRAINER_FDS_MAX && back.id == 8);
    for (size_t i = 0; i < n_got; i++) {
        dp_view bytes;
        CHECK_OK(dp_memfd_map(got[i], 1, &bytes));
        CHECK(bytes.size == 1 && bytes.data[0] == i);
        CHECK((fcntl(got[i], F_GETFD) & FD_CLOEXEC) != 0);
        dp_memfd_unmap(bytes);
        close(got[i]);
        close(sent[i]);
    }
    CHECK(fcntl(pair[1], F_SETFL, O_NONBLOCK) == 0);
    CHECK_STATUS(dp_trainer_receive(pair[1], &back, got, &n_got), DP_AGAIN);
    close(pair[0]);
    CHECK_STATUS(dp_trainer_receive(pair[1], &back, got, &n_got), DP_CLOSED);
    CHECK_STATUS(dp_trainer_send(pair[1], &msg, NULL, 0), DP_CLOSED);
    close(pair[1]);
}

static void only_sealed_files_of_the_promised_size_are_mapped(void **state)
{
    (void)state;
    dp_view bytes;
    const int open_fd = memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK(open_fd >= 0 && write(open_fd, "abc", 3) == 3);
    CHECK_STATUS(dp_memfd_map(open_fd, 10, &bytes), DP_BADMSG);
    close(open_fd);
    int fd;
    CHECK_OK(dp_memfd_make("sealed", dp_view_text("abc"), &fd));
    CHECK(write(fd, "d", 1) == -1);
    CHECK_STATUS(dp_memfd_map(fd, 2, &bytes), DP_BADMSG);
    CHECK_OK(dp_memfd_map(fd, 3, &bytes));
    close(fd);
    CHECK(dp_view_equal(bytes, dp_view_text("abc"))); /* The mapping outlives the fd. */
    dp_memfd_unmap(bytes);
    CHECK_OK(dp_memfd_make("empty", dp_view_of(NULL, 0), &fd));
    CHECK_OK(dp_memfd_map(fd, 0, &bytes));
    CHECK(bytes.size == 0);
    close(fd);
    CHECK_STATUS(dp_memfd_map(-1, 10, &bytes), DP_BADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_comes_back_as_it_was_sent),
        cmocka_unit_test(fields_arrive_where_they_belong),
        cmocka_unit_test(what_is_out_of_bounds_is_refused),
        cmocka_unit_test(damaged_packets_never_crash),
        cmocka_unit_test(files_travel_with_a_packet),
        cmocka_unit_test(only_sealed_files_of_the_promised_size_are_mapped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
