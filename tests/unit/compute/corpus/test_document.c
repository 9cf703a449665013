#include "tests/lib/check.h"

#include "compute/corpus/document.h"
#include "compute/data/shard.h"
#include "tests/unit/compute/tiny_run.h"

typedef struct desk {
    dp_bpe *bpe;
    dp_encoder *encoder;
    dp_document document;
    dp_document_ends ends;
} desk;

static void desk_open(desk *d)
{
    static char text[4000];
    tiny_run_text(text, sizeof text);
    memset(d, 0, sizeof *d);
    CHECK_OK(dp_bpe_train(&d->bpe, dp_view_of(text, sizeof text), 300, NULL));
    CHECK_OK(dp_encoder_open(&d->encoder, d->bpe, NULL));
    dp_document_init(&d->document, NULL, NULL);
}

static void desk_close(desk *d)
{
    dp_document_close(&d->document);
    dp_encoder_close(d->encoder);
    dp_bpe_close(d->bpe);
}

static void read_line(desk *d, const char *line)
{
    dp_why why = {{0}};
    const dp_status status = dp_document_read(&d->document, dp_view_text(line), "text", &why);
    if (status != DP_OK) {
        print_error("%s\n", why.text);
    }
    CHECK_OK(status);
    CHECK_OK(dp_document_encode(&d->document, d->encoder, &d->ends, NULL));
}

/* The text of the tokens with a loss. */
static void check_learned(desk *d, const char *wanted)
{
    dp_buf text;
    dp_buf_init(&text, 1 << 16);
    CHECK(d->document.marks.size == d->document.tokens.count);
    for (size_t i = 0; i < d->document.tokens.count; i++) {
        if ((d->document.marks.data[i] & DP_MARK_LOSS) != 0) {
            CHECK_OK(dp_bpe_decode(d->bpe, &d->document.tokens.ids[i], 1, &text));
        }
    }
    if (!dp_view_equal(dp_buf_view(&text), dp_view_text(wanted))) {
        fail_msg("learns '%.*s', not '%s'", (int)text.size, (const char *)text.data, wanted);
    }
    dp_buf_close(&text);
}

static void only_the_completion_has_a_loss(void **state)
{
    (void)state;
    desk d;
    desk_open(&d);
    read_line(&d, "{\"prompt\": \"Q: 1+1? A:\", \"completion\": \" 2\", \"id\": [7]}");
    check_learned(&d, " 2");
    read_line(&d, "{\"output\": \"zwei\", \"input\": \"two: \"}\n");
    check_learned(&d, "zwei");
    read_line(&d, "{\"prompt\": \"\", \"completion\": \"xyz\"}");
    check_learned(&d, "yz"); /* Nothing stands before the first token. */
    read_line(&d, "{\"prompt\": \"abc\", \"completion\": \"\"}");
    check_learned(&d, "");
    desk_close(&d);
}

static void an_instruction_beside_an_input_is_refused(void **state)
{
    (void)state;
    static const char alpaca[] = "{\"instruction\": \"Add.\", \"input\": \"\", \"output\": \"4\"}";
    desk d;
    dp_why why = {{0}};
    desk_open(&d);
    CHECK(dp_document_is(&d.document, dp_view_text(alpaca), "text"));
    CHECK_STATUS(dp_document_read(&d.document, dp_view_text(alpaca), "text", &why), DP_BADMSG);
    CHECK(strstr(why.text, "\"prompt\"") != NULL && strlen(why.text) < 240);
    read_line(&d, "{\"instruction\": \"Add.\", \"prompt\": \"Q\", \"completion\": \"4\"}");
    check_learned(&d, "4");
    desk_close(&d);
}

static void all_of_a_text_but_its_first_token_has_a_loss(void **state)
{
    (void)state;
    desk d;
    desk_open(&d);
    read_line(&d, "{\"text\": \"QRS\"}");
    check_learned(&d, "RS");
    CHECK(d.document.marks.data[0] == DP_MARK_BEGINS);
    read_line(&d, " \n");
    CHECK(d.document.text.size == 0 && d.document.tokens.count == 0);
    desk_close(&d);
}

/* " waters" is one token, whose beginning is of the prompt: the model must learn to write it. */
static void a_token_of_prompt_and_answer_is_learned(void **state)
{
    (void)state;
    desk d;
    desk_open(&d);
    read_line(&d, "{\"prompt\": \"the wat\", \"completion\": \"ers were\"}");
    size_t first = 0;
    while ((d.document.marks.data[first] & DP_MARK_LOSS) == 0) {
        first++;
    }
    dp_buf before;
    dp_buf_init(&before, 1 << 10);
    for (size_t i = 0; i < first; i++) {
        CHECK_OK(dp_bpe_decode(d.bpe, &d.document.tokens.ids[i], 1, &before));
    }
    CHECK(before.size < strlen("the wat"));
    dp_buf_close(&before);
    desk_close(&d);
}

static void the_token_after_an_answer_is_learned_and_those_before_it_are_not(void **state)
{
    (void)state;
    desk d;
    desk_open(&d);
    const uint32_t before[2] = {1, 2};
    d.ends = (dp_document_ends){.before = before, .n_before = 2, .after = 9, .has_after = true};
    read_line(&d, "{\"prompt\": \"Q\", \"completion\": \"A\"}");
    CHECK(d.document.tokens.count == 5 && d.document.tokens.ids[0] == 1 &&
          d.document.tokens.ids[4] == 9);
    static const uint8_t wanted[5] = {DP_MARK_BEGINS, 0, 0, DP_MARK_LOSS, DP_MARK_LOSS};
    CHECK(memcmp(d.document.marks.data, wanted, sizeof wanted) == 0);
    CHECK(dp_document_losses(d.document.marks.data, 4) == 1);
    desk_close(&d);
}

static void check_bad(desk *d, const char *line, const char *words)
{
    dp_why why = {{0}};
    CHECK_STATUS(dp_document_read(&d->document, dp_view_text(line), "text", &why), DP_BADMSG);
    if (strstr(why.text, words) == NULL) {
        fail_msg("'%s' lacks '%s'", why.text, words);
    }
}

static void lines_of_no_kind_are_refused(void **state)
{
    (void)state;
    desk d;
    desk_open(&d);
    check_bad(&d, "{\"prompt\": \"Q\"}", "\"prompt\" and \"completion\"");
    check_bad(&d, "{\"prompt\": \"Q\", \"completion\": 3}", "\"prompt\" and \"completion\"");
    check_bad(&d, "[1]", "no object");
    check_bad(&d, "{\"prompt\": ", "not JSON");
    check_bad(&d, "{\"prompt\": \"\xff\", \"completion\": \"\"}", "not JSON");
    desk_close(&d);
}

/* A template may write it, and must write the digits that are there. */
static void an_integer_beyond_64_bits_may_stand_in_any_line_but_a_chat(void **state)
{
    (void)state;
    desk d;
    desk_open(&d);
    read_line(&d, "{\"prompt\": \"Q\", \"completion\": \"A\", \"id\": 123456789012345678901}");
    check_learned(&d, "A");
    const char *const chat =
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"id\": 123456789012345678901}";
    CHECK(dp_document_is(&d.document, dp_view_text(chat), "text"));
    check_bad(&d, chat, "an integer of a chat fits no 64 bits");
    desk_close(&d);
}

static void the_first_line_tells_the_kind(void **state)
{
    (void)state;
    desk d;
    desk_open(&d);
    const char *const apart = "{\"prompt\": \"Q\", \"completion\": \"A\"}";
    CHECK(dp_document_is(&d.document, dp_view_text(apart), "text"));
    CHECK(!dp_document_is(&d.document, dp_view_text(apart), "prompt"));
    CHECK(!dp_document_is(&d.document, dp_view_text("{\"text\": \"Q\"}"), "text"));
    CHECK(!dp_document_is(&d.document, dp_view_text("nothing"), "text"));
    CHECK(!dp_document_is(&d.document, dp_view_text(""), "text"));
    desk_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_completion_has_a_loss),
        cmocka_unit_test(an_instruction_beside_an_input_is_refused),
        cmocka_unit_test(all_of_a_text_but_its_first_token_has_a_loss),
        cmocka_unit_test(a_token_of_prompt_and_answer_is_learned),
        cmocka_unit_test(the_token_after_an_answer_is_learned_and_those_before_it_are_not),
        cmocka_unit_test(lines_of_no_kind_are_refused),
        cmocka_unit_test(an_integer_beyond_64_bits_may_stand_in_any_line_but_a_chat),
        cmocka_unit_test(the_first_line_tells_the_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
