/* Packets between a script and the worker, as docs/TRAINER.md draws them. */
#include "tests/lib/check.h"

#include <string.h>

#include "compute/worker/script_msg.h"

static dp_view packet(uint8_t *room, uint32_t kind, uint32_t number)
{
    dp_writer w = dp_writer_of(room, 8);
    dp_view bytes;
    dp_write_u32(&w, kind);
    dp_write_u32(&w, number);
    CHECK_OK(dp_writer_finish(&w, &bytes));
    return bytes;
}

static dp_status read_of(uint32_t kind, uint32_t number, dp_script_ask *ask)
{
    uint8_t room[8];
    return dp_script_read(packet(room, kind, number), ask);
}

static void questions_are_read_as_drawn(void **state)
{
    (void)state;
    dp_script_ask ask;
    CHECK_OK(read_of(1, 7, &ask));
    CHECK(ask.kind == DP_SCRIPT_HELLO && ask.version == 7);
    CHECK_OK(read_of(4, 1, &ask));
    CHECK(ask.kind == DP_SCRIPT_LOOK && ask.flags == 1);
    CHECK_OK(read_of(7, 8000, &ask));
    CHECK(ask.kind == DP_SCRIPT_DRAW && ask.n == 8000);
    CHECK_OK(read_of(9, UINT32_MAX, &ask));
    CHECK(ask.kind == DP_SCRIPT_READ && ask.n == UINT32_MAX); /* no such file */
    const uint8_t bytes[32] = {6, 0, 0, 0, 3, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0,    0,
                               5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f};
    CHECK_OK(dp_script_read(dp_view_of(bytes, sizeof bytes), &ask));
    CHECK(ask.kind == DP_SCRIPT_DONE && ask.what == DP_SCRIPT_COPY && ask.steps == 513 &&
          ask.samples == 5 && ask.loss == 1.5);
}

static void what_is_no_question_is_refused(void **state)
{
    (void)state;
    static const uint32_t answers[] = {0, 2, 3, 5, 8, 10, 11, UINT32_MAX};
    dp_script_ask ask = {.kind = DP_SCRIPT_LOOK};
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        CHECK_STATUS(read_of(answers[i], 1, &ask), DP_BADMSG);
    }
    CHECK_STATUS(read_of(7, 0, &ask), DP_BADMSG);
    CHECK_STATUS(read_of(7, 8001, &ask), DP_BADMSG);
    CHECK(ask.kind == DP_SCRIPT_LOOK); /* untouched */
}

static void packets_of_another_size_are_refused(void **state)
{
    (void)state;
    uint8_t bytes[64] = {6, 0, 0, 0, 3};
    dp_script_ask ask;
    for (size_t size = 0; size <= sizeof bytes; size++) {
        bytes[0] = 6;
        CHECK((dp_script_read(dp_view_of(bytes, size), &ask) == DP_OK) == (size == 32));
        bytes[0] = 4;
        CHECK((dp_script_read(dp_view_of(bytes, size), &ask) == DP_OK) == (size == 8));
    }
    for (uint8_t what = 0; what < 8; what++) { /* Only what can be told can be done. */
        bytes[0] = 6;
        bytes[4] = what;
        CHECK((dp_script_read(dp_view_of(bytes, 32), &ask) == DP_OK) == (what >= 1 && what <= 3));
    }
}

static void answers_are_written_as_drawn(void **state)
{
    (void)state;
    uint8_t room[64];
    dp_writer w = dp_writer_of(room, sizeof room);
    dp_view bytes;
    dp_script_write_welcome(
        &w, &(dp_script_welcome){
                .elements = 10, .samples = 20, .unit = 30, .tokens_total = 40, .bytes = 50});
    CHECK_OK(dp_writer_finish(&w, &bytes));
    dp_reader r = dp_reader_of(bytes);
    CHECK(bytes.size == 56 && dp_read_u32(&r) == 2 && dp_read_u32(&r) == 1);
    CHECK(dp_read_u64(&r) == 10 && dp_read_u64(&r) == 20 && dp_read_u64(&r) == 30);
    CHECK(dp_read_u64(&r) == 40 && dp_read_u64(&r) == 4096 && dp_read_u64(&r) == 50);
    w = dp_writer_of(room, sizeof room);
    dp_script_write_do(&w, DP_SCRIPT_ADD, 5, 6);
    CHECK_OK(dp_writer_finish(&w, &bytes));
    r = dp_reader_of(bytes);
    CHECK(bytes.size == 24 && dp_read_u32(&r) == 5 && dp_read_u32(&r) == 2);
    CHECK(dp_read_u64(&r) == 5 && dp_read_u64(&r) == 6);
    w = dp_writer_of(room, sizeof room);
    dp_script_write_drawn(&w, (const uint64_t[]){9, 8}, 2);
    CHECK_OK(dp_writer_finish(&w, &bytes));
    r = dp_reader_of(bytes);
    CHECK(bytes.size == 24 && dp_read_u32(&r) == 8 && dp_read_u32(&r) == 2);
    CHECK(dp_read_u64(&r) == 9 && dp_read_u64(&r) == 8);
}

static void a_refusal_is_cut_to_its_packet(void **state)
{
    (void)state;
    uint8_t room[16];
    dp_writer w = dp_writer_of(room, sizeof room);
    dp_view bytes;
    dp_script_write_refused(&w, DP_SCRIPT_SLOW, "a sentence that is longer");
    CHECK_OK(dp_writer_finish(&w, &bytes));
    CHECK(bytes.size == 16 && memcmp(bytes.data + 8, "a senten", 8) == 0);
    dp_reader r = dp_reader_of(bytes);
    CHECK(dp_read_u32(&r) == 3 && dp_read_u32(&r) == 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(questions_are_read_as_drawn),
        cmocka_unit_test(what_is_no_question_is_refused),
        cmocka_unit_test(packets_of_another_size_are_refused),
        cmocka_unit_test(answers_are_written_as_drawn),
        cmocka_unit_test(a_refusal_is_cut_to_its_packet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
