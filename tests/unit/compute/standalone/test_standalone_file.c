/* The head of a checkpoint as bytes. */
#include "tests/lib/check.h"

#include <string.h>

#include "compute/standalone/standalone_file.h"

static dp_standalone_head head_of(void)
{
    dp_standalone_head head = {.rows = 3,
                               .vectors = 3,
                               .elements = 1000,
                               .place = {.steps = 7,
                                         .done = 6,
                                         .tokens = 6144,
                                         .skipped = 1,
                                         .spikes = 1,
                                         .updates = 6,
                                         .losses = {.count = 6, .next = 6, .row = 1},
                                         .scaler = {.scale = 32768.0F, .good = 5, .skipped = 1}}};
    memset(head.manifest.bytes, 0x5a, sizeof head.manifest.bytes);
    for (size_t i = 0; i < 6; i++) {
        head.place.losses.recent[i] = 3.5F - (float)i;
    }
    return head;
}

static void a_head_that_was_written_is_read_back(void **state)
{
    (void)state;
    const dp_standalone_head head = head_of();
    dp_standalone_head read;
    uint8_t bytes[DP_STANDALONE_HEAD_BYTES];
    uint8_t again[DP_STANDALONE_HEAD_BYTES];
    dp_standalone_head_write(&head, bytes);
    CHECK_OK(dp_standalone_head_read(&read, dp_view_of(bytes, sizeof bytes)));
    dp_standalone_head_write(&read, again);
    CHECK(memcmp(bytes, again, sizeof bytes) == 0);
    CHECK(read.place.tokens == 6144 && read.place.losses.recent[5] == -1.5F);
}

static void every_other_length_start_version_or_count_is_refused(void **state)
{
    (void)state;
    const dp_standalone_head head = head_of();
    dp_standalone_head read = {.rows = 77};
    uint8_t bytes[DP_STANDALONE_HEAD_BYTES + 1] = {0};
    dp_standalone_head_write(&head, bytes);
    for (size_t size = 0; size <= sizeof bytes; size++) {
        if (size != DP_STANDALONE_HEAD_BYTES) {
            CHECK_STATUS(dp_standalone_head_read(&read, dp_view_of(bytes, size)), DP_BADMSG);
        }
    }
    static const struct {
        size_t at;
        uint8_t value;
        dp_status status;
    } changes[] = {{0, 'X', DP_BADMSG},   {4, 2, DP_VERSION},   {40, 0, DP_BADMSG}, /* no rows */
                   {43, 0xff, DP_BADMSG},                                           /* too many */
                   {44, 0, DP_BADMSG},                                              /* no vectors */
                   {44, 9, DP_BADMSG},    {55, 0xff, DP_BADMSG}}; /* elements beyond any object */
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        dp_standalone_head_write(&head, bytes);
        bytes[changes[i].at] = changes[i].value;
        CHECK_STATUS(dp_standalone_head_read(&read, dp_view_of(bytes, DP_STANDALONE_HEAD_BYTES)),
                     changes[i].status);
    }
    CHECK(read.rows == 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_that_was_written_is_read_back),
        cmocka_unit_test(every_other_length_start_version_or_count_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
