/* Chats by templates as those of published models (tests/golden/templates). */
#include "tests/lib/check.h"

#include "compute/machine/files.h"
#include "compute/template/chat.h"

static const char tokens[] = "{\"bos_token\": \"<s>\", \"eos_token\": {\"content\": \"</s>\"}}";

static dp_chat *chat_of(const char *name)
{
    char path[256];
    dp_buf source;
    dp_chat *chat;
    dp_why why = {{0}};
    dp_buf_init(&source, 1 << 20);
    snprintf(path, sizeof path, "tests/golden/templates/%s.jinja", name);
    CHECK_OK(dp_file_read(path, &source, NULL));
    const dp_status status = dp_chat_open(&chat, dp_view_text(tokens), dp_buf_view(&source), &why);
    if (status != DP_OK) {
        fail_msg("%s: %s", name, why.text);
    }
    dp_buf_close(&source);
    return chat;
}

/* The text in which what the assistant says is in « ». */
static dp_status mark(const dp_chat *chat, const char *line, dp_buf *marked, dp_why *why)
{
    static dp_span spans[DP_CHAT_TURNS_MAX];
    dp_buf text;
    size_t n = 0;
    size_t at = 0;
    json_t *const object = json_loads(line, 0, NULL);
    CHECK(object != NULL);
    dp_buf_init(&text, 1 << 20);
    const dp_status status = dp_chat_text(chat, object, &text, spans, &n, why);
    for (size_t i = 0; i < n && status == DP_OK; i++) {
        CHECK(spans[i].begin >= at && spans[i].end >= spans[i].begin && spans[i].end <= text.size);
        const dp_view parts[] = {
            dp_view_of(text.data + at, spans[i].begin - at), dp_view_text("\xc2\xab"),
            dp_view_of(text.data + spans[i].begin, spans[i].end - spans[i].begin),
            dp_view_text("\xc2\xbb")};
        for (size_t p = 0; p < 4; p++) {
            CHECK_OK(dp_buf_append(marked, parts[p]));
        }
        at = spans[i].end;
    }
    if (status == DP_OK) {
        CHECK_OK(dp_buf_append(marked, dp_view_of(text.data + at, text.size - at)));
    }
    dp_buf_close(&text);
    json_decref(object);
    return status;
}

static void check_marked(dp_chat *chat, const char *name, const char *line, const char *wanted)
{
    dp_buf marked;
    dp_why why = {{0}};
    dp_buf_init(&marked, 1 << 20);
    const dp_status status = mark(chat, line, &marked, &why);
    if (status != DP_OK || !dp_view_equal(dp_buf_view(&marked), dp_view_text(wanted))) {
        fail_msg("%s gives '%.*s', not '%s'; %s", name, (int)marked.size, (const char *)marked.data,
                 wanted, why.text);
    }
    dp_buf_close(&marked);
    dp_chat_close(chat);
}

static void check(const char *name, const char *line, const char *wanted)
{
    check_marked(chat_of(name), name, line, wanted);
}

/* By a template that stands in the test. */
static void check_by(const char *source, const char *line, const char *wanted)
{
    dp_chat *chat;
    CHECK_OK(dp_chat_open(&chat, dp_view_text(tokens), dp_view_text(source), NULL));
    check_marked(chat, source, line, wanted);
}

static const char two[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, "
                          "{\"role\": \"assistant\", \"content\": \"b\"}, "
                          "{\"role\": \"user\", \"content\": \"c\"}, "
                          "{\"role\": \"assistant\", \"content\": \"d\"}]}";

/* With the tokens that end a turn, which the model must learn to write. */
static void turns_of_the_assistant_are_learned_with_their_end(void **state)
{
    (void)state;
    check("chatml", two,
          "<|im_start|>system\nYou are a helpful "
          "assistant.<|im_end|>\n<|im_start|>user\na<|im_end|>\n"
          "<|im_start|>assistant\n\xc2\xab"
          "b<|im_end|>\n\xc2\xbb<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\n\xc2\xab"
          "d<|im_end|>\n\xc2\xbb");
    check("llama3", two,
          "<s><|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\n"
          "Today Date: 26 Jul "
          "2024\n\n<|eot_id|><|start_header_id|>user<|end_header_id|>\n\na<|eot_id|>"
          "<|start_header_id|>assistant<|end_header_id|>\n\n\xc2\xab"
          "b<|eot_id|>\xc2\xbb<|start_header_id|>user<|end_header_id|>\n\nc<|eot_id|>"
          "<|start_header_id|>assistant<|end_header_id|>\n\n\xc2\xab"
          "d<|eot_id|>\xc2\xbb");
    check("gemma", two,
          "<s><start_of_turn>user\na<end_of_turn>\n<start_of_turn>model\n\xc2\xab"
          "b<end_of_turn>\n\xc2\xbb<start_of_turn>user\nc<end_of_turn>\n<start_of_turn>"
          "model\n\xc2\xab"
          "d<end_of_turn>\n\xc2\xbb");
    check("mistral", two,
          "<s>[INST] a[/INST]\xc2\xab b</s>\xc2\xbb[INST] c[/INST]\xc2\xab d</s>\xc2\xbb");
}

/* Where a template ends with more than the turn, or writes an earlier turn in another way. */
static void turns_that_change_with_those_behind_them_are_found_by_their_content(void **state)
{
    (void)state;
    check("phi3", two,
          "<|user|>\na<|end|>\n<|assistant|>\n\xc2\xab"
          "b<|end|>\n<\xc2\xbb|user|>\nc<|end|>\n<|assistant|>\n\xc2\xab"
          "d<|end|>\n</s>\xc2\xbb");
    /* Qwen 3 thinks in the last turn alone. */
    check("qwen3", two,
          "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n\xc2\xab"
          "b\xc2\xbb<|im_end|>\n<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\n\xc2\xab"
          "<think>\n\n</think>\n\nd<|im_end|>\n\xc2\xbb");
    /* Mistral drops the system's words where the last message is not the user's. */
    check("mistral",
          "{\"messages\": [{\"role\": \"system\", \"content\": \"s\"}, {\"role\": \"user\", "
          "\"content\": "
          "\"a\"}, {\"role\": \"assistant\", \"content\": \"b\"}]}",
          "<s>[INST] a[/INST] \xc2\xab"
          "b</s>\xc2\xbb");
}

/* Its place is certain, although its content is not there letter by letter. */
static void a_turn_that_the_template_writes_anew_is_learned(void **state)
{
    (void)state;
    check("qwen3",
          "{\"messages\": [{\"role\": \"user\", \"content\": \"q\"}, {\"role\": \"assistant\", "
          "\"content\": \"<think>r</think>a\"}]}",
          "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n\xc2\xab"
          "<think>\nr\n</think>\n\na<|im_end|>\n\xc2\xbb");
}

static void a_short_answer_is_not_found_in_the_words_of_the_template(void **state)
{
    (void)state;
    static const char *const answers[] = {"a", "assistant", "s"};
    for (size_t i = 0; i < 3; i++) {
        char line[512];
        char wanted[512];
        snprintf(
            line, sizeof line,
            "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}, {\"role\": \"assistant\", "
            "\"content\": \"%s\"}, {\"role\": \"user\", \"content\": \"c\"}, {\"role\": "
            "\"assistant\", \"content\": \"d\"}]}",
            answers[i]);
        snprintf(
            wanted, sizeof wanted,
            "<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n\xc2\xab%s\xc2\xbb<|im_end|>\n"
            "<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\n\xc2\xab"
            "<think>\n\n</think>\n\nd<|im_end|>\n\xc2\xbb",
            answers[i]);
        check("qwen3", line, wanted);
    }
}

/* The prompt for an answer opens a thought, which the answers of a chat do not have. */
static void a_prompt_that_goes_on_tells_where_an_answer_begins(void **state)
{
    (void)state;
    check_by("{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
             "{% if add_generation_prompt %}<|assistant|><think>\n{% endif %}",
             "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}, {\"role\": \"assistant\", "
             "\"content\": \"a\"}, {\"role\": \"user\", \"content\": \"y\"}, {\"role\": "
             "\"assistant\", \"content\": \"<th\"}]}",
             "<|user|>x<|assistant|>\xc2\xab"
             "a\xc2\xbb<|user|>y<|assistant|>\xc2\xab<th\xc2\xbb");
}

static void a_turn_ends_with_a_whole_character(void **state)
{
    (void)state;
    check_by("{% for m in messages %}[{{ m.content }}{% if m.role == 'assistant' %}"
             "{{ '\xc3\xa9' if loop.last else '\xc3\xa8' }}{% endif %}{% endfor %}",
             two, "[a\xc2\xab[b\xc2\xbb\xc3\xa8[c\xc2\xab[d\xc3\xa9\xc2\xbb");
}

/* A template that uses messages which are not there yet is asked for whole chats alone. */
static void a_method_of_what_is_undefined_is_no_word_that_lacks(void **state)
{
    (void)state;
    check_by("{{ (messages|map(attribute='content')|list)[1].upper() }}"
             "{% for m in messages %}[{{ m.content }}]{% endfor %}",
             two,
             "B[a][\xc2\xab"
             "b\xc2\xbb][c]\xc2\xab[d]\xc2\xbb");
}

static void words_that_the_template_drops_do_not_hide_a_turn(void **state)
{
    (void)state;
    check_by("{% for m in messages if m.role != 'system' %}[{{ m.role }}]{{ m.content }}"
             "{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}",
             "{\"messages\": [{\"role\": \"system\", \"content\": \"ok\"}, {\"role\": \"user\", "
             "\"content\": \"q\"}, {\"role\": \"assistant\", \"content\": \"ok then\"}]}",
             "[user]q[assistant]\xc2\xabok then\xc2\xbb");
}

static void what_a_user_says_is_not_taken_for_the_assistant(void **state)
{
    (void)state;
    check("mistral",
          "{\"messages\": [{\"role\": \"system\", \"content\": \"s\"}, {\"role\": \"user\", "
          "\"content\": "
          "\"b b\"}, {\"role\": \"assistant\", \"content\": \"b\"}]}",
          "<s>[INST] b b[/INST] \xc2\xab"
          "b</s>\xc2\xbb");
}

static void tools_are_shown_to_the_template(void **state)
{
    (void)state;
    check("qwen2",
          "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", "
          "\"content\": "
          "null, \"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": {\"x\": 1}}}]}], "
          "\"tools\": "
          "[{\"name\": \"f\"}]}",
          "<|im_start|>system\nYou are Qwen. You are a helpful assistant.\n\n# Tools\n\nFunction "
          "signatures "
          "within <tools></tools>:\n<tools>\n{\"name\": "
          "\"f\"}\n</tools><|im_end|>\n<|im_start|>user\na"
          "<|im_end|>\n<|im_start|>assistant\n\xc2\xab<tool_call>\n{\"name\": \"f\", "
          "\"arguments\": {\"x\": "
          "1}}\n</tool_call><|im_end|>\n\xc2\xbb");
}

/* As with transformers: a template may ask whether they are none. */
static void tools_are_none_where_a_line_has_none(void **state)
{
    (void)state;
    static const char source[] = "{% if tools is not none %}T{% endif %}"
                                 "{% if documents is not none %}D{% endif %}"
                                 "{% for m in messages %}[{{ m.content }}]{% endfor %}";
    static const char chat[] = "{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\"}]%s}";
    char line[256];
    snprintf(line, sizeof line, chat, "");
    check_by(source, line, "\xc2\xab[a]\xc2\xbb");
    snprintf(line, sizeof line, chat, ", \"tools\": null");
    check_by(source, line, "\xc2\xab[a]\xc2\xbb");
    snprintf(line, sizeof line, chat, ", \"tools\": []");
    check_by(source, line, "T\xc2\xab[a]\xc2\xbb");
}

static void check_refused(const char *line, dp_status wanted, const char *words)
{
    dp_buf marked;
    dp_why why = {{0}};
    dp_chat *const chat = chat_of("mistral");
    dp_buf_init(&marked, 1 << 20);
    CHECK_STATUS(mark(chat, line, &marked, &why), wanted);
    if (strstr(why.text, words) == NULL) {
        fail_msg("'%s' lacks '%s'", why.text, words);
    }
    dp_buf_close(&marked);
    dp_chat_close(chat);
}

static void chats_that_cannot_be_used_are_refused(void **state)
{
    (void)state;
    check_refused("{\"messages\": []}", DP_BADMSG, "no list of messages");
    check_refused("{\"messages\": [{\"content\": \"a\"}]}", DP_BADMSG, "message 1 has no \"role\"");
    check_refused("{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}", DP_BADARG,
                  "no turn of an assistant");
    check_refused(
        "{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\"}]}", DP_BADARG,
        "it refuses the chat: After the optional system message, conversation roles must");
}

static void check_config(const char *config, dp_status wanted, const char *words)
{
    dp_chat *chat = NULL;
    dp_why why = {{0}};
    CHECK_STATUS(dp_chat_open(&chat, dp_view_text(config), dp_view_of(NULL, 0), &why), wanted);
    CHECK(strstr(why.text, words) != NULL);
    dp_chat_close(chat);
}

static void templates_are_found_where_models_have_them(void **state)
{
    (void)state;
    check_config("{\"chat_template\": \"{{ 1 }}\"}", DP_OK, "");
    check_config("{\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"{{\"}, "
                 "{\"name\": \"default\", \"template\": \"{{ 1 }}\"}]}",
                 DP_OK, "");
    /* As published ones have it: an integer that fits no 64 bits. */
    check_config("{\"model_max_length\": 1000000000000000019884624838656, "
                 "\"chat_template\": \"{{ 1 }}\"}",
                 DP_OK, "");
    check_config("{}", DP_NOTFOUND, "no chat_template");
    check_config("", DP_NOTFOUND, "no chat_template");
    check_config("{", DP_BADMSG, "tokenizer_config.json is no JSON");
    check_config("{\"chat_template\": \"{{ 1|frob }\"}", DP_BADMSG,
                 "the chat template cannot be used: line 1");
}

static void check_text(const dp_chat *chat, const char *line, dp_status wanted, const char *words)
{
    dp_buf marked;
    dp_why why = {{0}};
    dp_buf_init(&marked, 1 << 16);
    CHECK_STATUS(mark(chat, line, &marked, &why), wanted);
    if (wanted == DP_OK) {
        CHECK(dp_view_equal(dp_buf_view(&marked), dp_view_text(words)));
    } else {
        CHECK(strstr(why.text, words) != NULL);
    }
    dp_buf_close(&marked);
}

/* As transformers chooses; one that cannot be used harms only the lines with tools. */
static void a_template_for_tools_is_used_with_tools(void **state)
{
    (void)state;
    static const char chat[] = "{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\"}]";
    static const char *const ends[] = {"", "{{ 1"};
    for (size_t i = 0; i < 2; i++) {
        char text[512];
        char line[256];
        dp_chat *both;
        snprintf(text, sizeof text,
                 "{\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"T{{ "
                 "messages[0].content }}%s\"}, "
                 "{\"name\": \"default\", \"template\": \"D{{ messages[0].content }}\"}]}",
                 ends[i]);
        CHECK_OK(dp_chat_open(&both, dp_view_text(text), dp_view_of(NULL, 0), NULL));
        snprintf(line, sizeof line, "%s, \"tools\": null}", chat);
        check_text(both, line, DP_OK,
                   "D\xc2\xab"
                   "a\xc2\xbb");
        snprintf(line, sizeof line, "%s, \"tools\": []}", chat);
        check_text(both, line, i == 0 ? DP_OK : DP_BADMSG,
                   i == 0 ? "T\xc2\xab"
                            "a\xc2\xbb"
                          : "the chat template tool_use cannot be used: line 1 of the template: a "
                            "tag does not end");
        dp_chat_close(both);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_of_the_assistant_are_learned_with_their_end),
        cmocka_unit_test(turns_that_change_with_those_behind_them_are_found_by_their_content),
        cmocka_unit_test(a_turn_that_the_template_writes_anew_is_learned),
        cmocka_unit_test(a_short_answer_is_not_found_in_the_words_of_the_template),
        cmocka_unit_test(a_prompt_that_goes_on_tells_where_an_answer_begins),
        cmocka_unit_test(a_turn_ends_with_a_whole_character),
        cmocka_unit_test(a_method_of_what_is_undefined_is_no_word_that_lacks),
        cmocka_unit_test(words_that_the_template_drops_do_not_hide_a_turn),
        cmocka_unit_test(what_a_user_says_is_not_taken_for_the_assistant),
        cmocka_unit_test(tools_are_shown_to_the_template),
        cmocka_unit_test(tools_are_none_where_a_line_has_none),
        cmocka_unit_test(chats_that_cannot_be_used_are_refused),
        cmocka_unit_test(templates_are_found_where_models_have_them),
        cmocka_unit_test(a_template_for_tools_is_used_with_tools),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
