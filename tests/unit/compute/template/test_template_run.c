/* Templates of Jinja. tests/interop/test_templates.py compares whole ones with Jinja itself. */
#include "tests/lib/check.h"

#include <stdio.h>
#include <stdlib.h>

#include "compute/template/template.h"

static dp_status render(const char *source, const char *variables, dp_buf *out, dp_why *why)
{
    dp_template *t;
    json_t *const json = json_loads(variables, 0, NULL);
    CHECK(json != NULL);
    dp_status status = dp_template_open(&t, dp_view_text(source), why);
    if (status == DP_OK) {
        status = dp_template_run(t, json, out, why);
        dp_template_close(t);
    }
    json_decref(json);
    return status;
}

static void check(const char *source, const char *variables, const char *wanted)
{
    dp_buf out;
    dp_why why = {{0}};
    dp_buf_init(&out, 1 << 20);
    const dp_status status = render(source, variables, &out, &why);
    if (status != DP_OK || !dp_view_equal(dp_buf_view(&out), dp_view_text(wanted))) {
        fail_msg("%s gives '%.*s', not '%s'; %s", source, (int)out.size, (const char *)out.data,
                 wanted, why.text);
    }
    dp_buf_close(&out);
}

static void check_bad(const char *source, const char *variables, dp_status wanted,
                      const char *words)
{
    dp_buf out;
    dp_why why = {{0}};
    dp_buf_init(&out, 1 << 20);
    const dp_status status = render(source, variables, &out, &why);
    if (status != wanted || strstr(why.text, words) == NULL || out.size != 0) {
        fail_msg("%s gives status %d, '%s', which lacks '%s'", source, (int)status, why.text,
                 words);
    }
    dp_buf_close(&out);
}

static void blanks_are_trimmed_as_transformers_does(void **state)
{
    (void)state;
    check("a\n  {% if true %}\n  b\n  {% endif %}\nc\n", "{}", "a\n  b\nc");
    check("a  {%- if true -%}  b  {%- endif -%}  c", "{}", "abc");
    check("a\n  {{ 'x' }}\n  {{- 'y' -}}\n z", "{}", "a\n  xyz");
    check("a\n  {%+ if true %}\nb{% endif +%}\nc", "{}", "a\n  b\nc");
    check("a{# no #}\n  {# no -#}\n b", "{}", "ab");
    check("{{ 1 }} {% if true %}x{% endif %}", "{}", "1 x");
}

static void line_ends_of_other_systems_become_ours(void **state)
{
    (void)state;
    check("{% if true %}\r\na\r\n{% endif %}\r\nb\r\n", "{}", "a\nb");
    check("{% if true %}\ra\r{% endif %}\r\rb\r", "{}", "a\n\nb");
    check("{{ 'a\r\nb' }}{{ 'a\\r\\nb' }}", "{}", "a\nba\r\nb");
    check_bad("\r\r\n{{ 1|frob }}", "{}", DP_UNSUPPORTED, "line 3 of the template");
}

static void what_is_set_in_a_loop_stays_there(void **state)
{
    (void)state;
    check("{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = 5 %}{{ x }}{% endfor %}{{ x }}",
          "{}", "15151");
    check("{% set n = namespace(x=1) %}{% for i in [1, 2] %}{% set n.x = n.x + i %}{% endfor %}{{ "
          "n.x }}",
          "{}", "4");
    check("{% if true %}{% set y = 2 %}{% endif %}{{ y }}", "{}", "2");
    check("{% macro m(a, b='!') %}{{ a }}{{ b }}{{ z }}{{ x }}{% endmacro %}{% set x = 7 %}"
          "{% for z in [3] %}{{ m('q') }}{{ m(b=1, a=2) }}{% endfor %}",
          "{}", "q!7217");
}

static void loops_know_where_they_are(void **state)
{
    (void)state;
    check("{% for i in l if i > 1 %}{{ i }}{{ loop.index0 }}{{ loop.last }}{{ loop.length }} {% "
          "endfor %}",
          "{\"l\": [1, 2, 3]}", "20False2 31True2 ");
    check("{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
          "{\"d\": {\"b\": 1, \"a\": 2}}", "b=1;a=2;");
    check("{% for i in [] %}x{% else %}none{% endfor %}{% for c in 'h\xc3\xa4' %}{{ c }}.{% endfor "
          "%}",
          "{}", "noneh.\xc3\xa4.");
    check("{% for i in [1, 2, 3, 4] %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 4 %}{% "
          "break %}"
          "{% endif %}{{ i }}{% endfor %}",
          "{}", "13");
}

static void expressions_have_the_order_of_jinja(void **state)
{
    (void)state;
    check("{{ 1 + 2 * 3 }} {{ (1 + 2) * 3 }} {{ 1 - 2 - 3 }} {{ 'a' ~ 1 * 3 }} {{ -7 // 2 }}", "{}",
          "7 9 -4 a3 -4");
    check(
        "{{ not true or true }} {{ 1 < 2 < 3 }} {{ 'b' not in 'abc' }} {{ 'x' if false else 'y' }}",
        "{}", "True True False y");
    check("{{ [1, 2][-1] }} {{ 'abcd'[1:3] }} {{ 'abcd'[::-1] }} {{ [1, 2, 3][:-1] }}", "{}",
          "2 bc dcba [1, 2]");
    check("{{ (-700000000000000000 * 10) % (600000000000000000 * 10) }} {{ -7 % 3 }} {{ 7 % -3 }} "
          "{{ 6 % -3 }}",
          "{}", "5000000000000000000 2 -2 0");
    check("{{ 'ab' is in 'cabd' }} {{ 'x' is in ['x'] }} {{ 'k' is in {'k': 1} }}", "{}",
          "True True True");
    check("{{ x is defined }} {{ x is not none }} {{ 3 is odd }} {{ 'a'|upper ~ 'b' }} {{ 2|string "
          "+ '!' }}",
          "{}", "False True True Ab 2!");
}

static void json_is_that_of_python(void **state)
{
    (void)state;
    check("{{ v|tojson }}",
          "{\"v\": {\"a\": [1, 2.0, 1e22, 1e-7, null, true], \"b\": \"\\u00e4\\n\\\"\"}}",
          "{\"a\": [1, 2.0, 1e+22, 1e-07, null, true], \"b\": \"\xc3\xa4\\n\\\"\"}");
    check("{{ v|tojson(indent=1) }}", "{\"v\": {\"a\": [1], \"b\": {}}}",
          "{\n \"a\": [\n  1\n ],\n \"b\": {}\n}");
    check("{{ v }}", "{\"v\": [\"it's\", 0.1, 100000.0, \"a\"]}", "[\"it's\", 0.1, 100000.0, 'a']");
}

static void json_is_written_as_its_arguments_say(void **state)
{
    (void)state;
    static const char v[] = "{\"v\": {\"b\": 1, \"a\": [1, {\"d\": 2, \"c\": 3}], \"e\": []}}";
    check("{{ v|tojson(separators=(',', ':')) }}", v,
          "{\"b\":1,\"a\":[1,{\"d\":2,\"c\":3}],\"e\":[]}");
    check("{{ v|tojson(sort_keys=true) }}", v,
          "{\"a\": [1, {\"c\": 3, \"d\": 2}], \"b\": 1, \"e\": []}");
    check("{{ v|tojson(4) }}", v, "{\"b\": 1, \"a\": [1, {\"d\": 2, \"c\": 3}], \"e\": []}");
    check("{{ v|tojson(false, 1, ('; ', '=')) }}", v,
          "{\n \"b\"=1; \n \"a\"=[\n  1; \n  {\n   \"d\"=2; \n   \"c\"=3\n  }\n ]; \n \"e\"=[]\n}");
    check("{{ [1, [2]]|tojson(indent=0) }} {{ [1]|tojson(indent='\\t') }} {{ "
          "[1]|tojson(indent=none) }}",
          "{}", "[\n1,\n[\n2\n]\n] [\n\t1\n] [1]");
    check(
        "{{ t|tojson(ensure_ascii=true) }}{{ t|tojson(true) }}{{ t|tojson(ensure_ascii=false) }}",
        "{\"t\": \"a\xc3\xa4\xf0\x9f\x98\x80\x7f\"}",
        "\"a\\u00e4\\ud83d\\ude00\\u007f\"\"a\\u00e4\\ud83d\\ude00\\u007f\"\"a\xc3\xa4\xf0\x9f\x98"
        "\x80\x7f\"");
    check_bad("{{ 1|tojson(indent=65) }}", "{}", DP_BADARG, "0 to 64 blanks");
    check_bad("{{ 1|tojson(separators=',') }}", "{}", DP_BADARG, "two texts");
}

/* They would change the text: none is passed over. */
static void arguments_that_are_not_known_are_refused(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"{{ 1|string(x=1) }}", "the filter 'string' has no argument 'x'"},
        {"{{ 1|tojson(x=1) }}", "the filter 'tojson' has no argument 'x'"},
        {"{{ 1|tojson(1, ensure_ascii=1) }}", "the filter 'tojson' has no argument 'ensure_ascii'"},
        {"{{ 'a'.find('a', 1) }}", "the method 'find' takes no more than 1 arguments"},
        {"{{ 'a'.startswith('a', 1) }}", "the method 'startswith' takes no more than 1 arguments"},
        {"{{ 'a'.startswith(prefix='a') }}", "the method 'startswith' has no argument 'prefix'"},
        {"{{ 'a'.upper(1) }}", "the method 'upper' takes no more than 0 arguments"},
        {"{{ '7'|int(base=8) }}", "the filter 'int' has no argument 'base'"},
        {"{{ [1]|unique(attribute='a') }}", "the filter 'unique' has no argument 'attribute'"},
        {"{{ [1]|select('eq', other=1) }}", "the filter 'select' has no argument 'other'"},
        {"{{ [{}]|map(attribute='a', x=9) }}", "the filter 'map' has no argument 'x'"},
        {"{{ [{}]|map('first', x=9) }}", "the filter 'first' has no argument 'x'"},
        {"{{ 4 is divisibleby(num=2) }}", "the test 'divisibleby' has no argument with a name"},
        {"{{ raise_exception('a', 1) }}", "the function 'raise_exception' takes no more than 1"},
        {"{{ {}|dictsort(by='value') }}", "the filter 'dictsort' has no argument 'by'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        check_bad(bad[i][0], "{}", DP_UNSUPPORTED, bad[i][1]);
    }
    check_bad("{% macro m(a) %}{% endmacro %}{{ m(b=1) }}", "{}", DP_BADARG,
              "the macro has no argument 'b'");
    check_bad("{% macro m(a) %}{% endmacro %}{{ m(1, a=1) }}", "{}", DP_BADARG,
              "the macro has no argument 'a'");
}

static void arguments_of_filters_of_items_are_passed_on(void **state)
{
    (void)state;
    check("{{ [['a', 'b'], ['c']]|map('join', '+')|join(' ') }}", "{}", "a+b c");
    check(
        "{{ [u, 1]|map('default', 'x')|join }} {{ ['a']|map('replace', old='a', new='b')|first }}",
        "{}", "x1 b");
    check("{{ [{'a': 1}, {}]|map(attribute='a', default=9)|join(',') }}", "{}", "1,9");
    check("{{ 'a\n\nb'|indent(2, blank=true) }}|{{ 'a\n\nb'|indent(2) }}|{{ '\na'|indent(1, "
          "first=true) "
          "}}",
          "{}", "a\n  \n  b|a\n\n  b| \n a");
    check("{{ 'x'|float(default=1.5) }} {{ [1, 2]|join(0) }}", "{}", "1.5 102");
}

static void attributes_of_attributes_are_found(void **state)
{
    (void)state;
    static const char t[] =
        "{\"t\": [{\"f\": {\"n\": \"x\", \"l\": [7, 8]}}, {\"f\": {\"n\": \"y\", \"l\": [9]}}]}";
    check("{{ t|map(attribute='f.n')|join(',') }} {{ t|join(':', attribute='f.n') }}", t,
          "x,y x:y");
    check("{{ t|map(attribute='f.l.0')|list }} {{ t|map(attribute='f.l.1', default=0)|list }}", t,
          "[7, 9] [8, 0]");
    check("{{ (t|selectattr('f.n', 'eq', 'y')|first).f.n }}{{ t|rejectattr('f.z')|list|length }}",
          t, "y2");
    check_bad("{{ t|map(attribute='z.n')|list }}", t, DP_BADARG, "undefined and has no 'n'");
    check("{{ t|map(attribute='z.n', default={'n': 1})|list }}", t, "[1, 1]");
}

/* Each as Jinja itself writes it. */
static void words_that_are_rare_do_as_in_jinja(void **state)
{
    (void)state;
    check("{{ {'userName': 1, 'user_id': 2, 'B': 3, 'a': 4}|dictsort }}", "{}",
          "[('a', 4), ('B', 3), ('user_id', 2), ('userName', 1)]");
    check("{{ {'b': 0, 'A': 1, 'a': 2}|dictsort }}", "{}", "[('A', 1), ('a', 2), ('b', 0)]");
    check("{{ \"don't a_b 3d\"|title }}|{{ \"don't a_b 3d\".title() }}", "{}",
          "Don't A_b 3d|Don'T A_B 3D");
    check("{{ 'x(y [z {w <v a-b 9a'|title }}", "{}", "X(Y [Z {W <V A-B 9a");
    check("{{ ['a', 'A', 'b', 1, 1.0]|unique|list }}", "{}", "['a', 'b', 1]");
    check("{{ ' a  b c '.split(None, 1) }}{{ 'a  b  '.split(None, 0) }}{{ ' a b '.split() }}", "{}",
          "['a', 'b c ']['a  b  ']['a', 'b']");
    check("{{ 'a\xc2\xa0 b'.split() }}", "{}", "['a', 'b']");
    check("{{ u is sequence }} {{ namespace() is mapping }} {{ namespace() is iterable }} "
          "{{ 'y' if namespace() }}",
          "{}", "True False False y");
    check("{{ 1 is sameas true }} {{ 1 is sameas 1 }} {{ none is sameas none }} {{ 1.0 is sameas 1 "
          "}}",
          "{}", "False True True False");
    check("{{ '9007199254740993'|int }} {{ '0x10'|int }} {{ ' 1_000 '|int }} {{ '12.9'|int }} {{ "
          "'0x10'|float }} {{ '-7'|int }} {{ '1__0'|int }}",
          "{}", "9007199254740993 0 1000 12 0.0 -7 0");
    check_bad("{{ '99999999999999999999'|int }}", "{}", DP_BADARG, "too large");
    check("{{ [u] }} {{ {'a': u} }}", "{}", "[Undefined] {'a': Undefined}");
    check("a\xc2\xa0{{- 1 -}}\xe3\x80\x80"
          "b\n\xc2\xa0{% if true %}c{% endif %}",
          "{}", "a1b\nc");
    check_bad("{{ u.x() }}", "{}", DP_BADARG, "undefined has no method 'x'");
}

static void characters_of_strings_are_written_by_number(void **state)
{
    (void)state;
    check("{{ '\\u2014\\x41\\xe4\\U0001F600\\101\\q\\\\' }}", "{}",
          "\xe2\x80\x94"
          "A\xc3\xa4\xf0\x9f\x98\x80"
          "A\\q\\");
    check("{{ 'a\\\nb\\0' ~ 1 == 'ab\\x001' }}", "{}", "True");
    check_bad("{{ '\\x4' }}", "{}", DP_BADMSG, "an escape of a string");
    check_bad("{{ '\\ud83d' }}", "{}", DP_BADMSG, "an escape of a string");
    check_bad("{{ '\\U00110000' }}", "{}", DP_BADMSG, "an escape of a string");
    check_bad("{{ '\\N{DASH}' }}", "{}", DP_UNSUPPORTED, "characters by their names");
}

static void a_loop_is_left_only_from_inside(void **state)
{
    (void)state;
    check("{% for i in [1, 2] %}{% set x %}{% break %}{% endset %}{{ i }}{% endfor %}", "{}", "");
    check_bad("{% break %}", "{}", DP_BADMSG, "outside of a loop");
    check_bad("{% if true %}{% continue %}{% endif %}", "{}", DP_BADMSG, "outside of a loop");
    check_bad("{% for i in [1] %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}", "{}",
              DP_BADMSG, "outside of a loop");
    check_bad("{% for i in [] %}{% else %}{% break %}{% endfor %}", "{}", DP_BADMSG,
              "outside of a loop");
}

static void faults_are_named_with_their_line(void **state)
{
    (void)state;
    check_bad("a\n{% if x %}", "{}", DP_BADMSG, "line 2 of the template: it ends before 'elif'");
    check_bad("\n\n{{ 1 +", "{}", DP_BADMSG, "line 3 of the template: a tag does not end");
    check_bad("{{ a b }}", "{}", DP_BADMSG, "the tag does not end here, at 'b'");
    check_bad("{{ 'x }}", "{}", DP_BADMSG, "a string does not end");
    check_bad("{% include 'f' %}", "{}", DP_UNSUPPORTED,
              "a statement that is not known, at 'include'");
    check_bad("\n{{ 1|frob }}", "{}", DP_UNSUPPORTED, "line 2 of the template: the filter 'frob'");
    check_bad("{{ 'a'.format(1) }}", "{}", DP_UNSUPPORTED,
              "the method 'format' is not known for a text");
    check_bad("{{ strftime_now('%d') }}", "{}", DP_UNSUPPORTED, "no function 'strftime_now'");
    check_bad("x{{ m.role }}", "{}", DP_BADARG, "m is undefined and has no 'role'");
    check_bad("{{ 'a' + 1 }}", "{}", DP_BADARG, "'+' does not fit a text and an integer");
    check_bad("{{ 1 in 2 }}", "{}", DP_BADARG, "'in' does not fit an integer and an integer");
    check_bad("{{ 1 is in 2 }}", "{}", DP_BADARG, "'in' does not fit an integer and an integer");
    check_bad("{{ 1 // 0 }}", "{}", DP_BADARG, "a division by 0");
    check_bad("{{ raise_exception('no ' ~ 'way') }}", "{}", DP_BADARG,
              "it refuses the chat: no way");
    check_bad("{% set a.b = 1 %}", "{\"a\": {}}", DP_BADARG, "no namespace");
}

/* A template is a file from somewhere: it ends, and takes bounded memory. */
static void work_and_memory_are_bounded(void **state)
{
    (void)state;
    check_bad("{% set l = range(3000) %}{% for i in l %}{% for j in l %}{% endfor %}{% endfor %}",
              "{}", DP_TOOBIG, "more than 5000000 steps");
    check_bad("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "{}", DP_TOOBIG, "nests too deep");
    check_bad("{% set n = namespace(s='aaaaaaaaaaaaaaaa') %}{% for i in range(60) %}"
              "{% set n.s = n.s + n.s %}{% endfor %}",
              "{}", DP_TOOBIG, "MiB of memory");
    check_bad("{{ 'a' * 999999999999 }}", "{}", DP_TOOBIG, "too long");
    char deep[4 * DP_TEMPLATE_DEPTH_MAX];
    memset(deep, '-', sizeof deep - 1);
    memcpy(deep, "{{ ", 3);
    memcpy(deep + sizeof deep - 5, "1 }}", 5);
    check_bad(deep, "{}", DP_TOOBIG, "nests too deep");
    char *const long_one = test_malloc(DP_TEMPLATE_BYTES_MAX + 2);
    memset(long_one, 'a', DP_TEMPLATE_BYTES_MAX + 1);
    long_one[DP_TEMPLATE_BYTES_MAX + 1] = '\0';
    check_bad(long_one, "{}", DP_TOOBIG, "longer than 1024 KiB");
    test_free(long_one);
}

/* Two lists of 60 levels, each of twice the same one, have 2^60 items to compare. */
static void comparisons_are_bounded(void **state)
{
    (void)state;
    static const char twins[] =
        "{%% set n = namespace(a=[0], b=[0]) %%}{%% for i in range(60) %%}"
        "{%% set n.a = [n.a, n.a] %%}{%% set n.b = [n.b, n.b] %%}{%% endfor %%}"
        "{{ %s }}";
    static const char *const words[] = {"n.a == n.b",
                                        "n.a != n.b",
                                        "n.a in [n.b]",
                                        "[n.a, n.b]|unique",
                                        "n.a is equalto(n.b)",
                                        "n.a is ne(n.b)",
                                        "n.a is in([n.b])",
                                        "[n.a]|select('eq', n.b)",
                                        "{'x': n.a} == {'x': n.b}"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        char source[512];
        snprintf(source, sizeof source, twins, words[i]);
        check_bad(source, "{}", DP_TOOBIG, "more than 5000000 steps");
    }
}

/* Nothing is made of the text that would count against the memory. */
static void long_texts_cost_steps(void **state)
{
    (void)state;
    static const char loop[] =
        "{%% set n = namespace(s='aaaaaaaaaaaaaaaa', t='aaaaaaaaaaaaaaaa') %%}{%% for i in "
        "range(17) %%}"
        "{%% set n.s = n.s + n.s %%}{%% set n.t = n.t + n.t %%}{%% endfor %%}"
        "{%% for i in range(500000) %%}{%% if %s %%}{%% endif %%}{%% endfor %%}";
    static const char *const words[] = {"n.s|length",
                                        "n.s[1]",
                                        "n.s[5:9]",
                                        "n.s.find('b')",
                                        "'b' in n.s",
                                        "n.s < n.t",
                                        "n.s == n.t",
                                        "n.s is lower",
                                        "['b']|select('in', n.s)|first",
                                        "[n.s]|select('lower')|first",
                                        "n.s.strip('ab')",
                                        "n.s|trim('ab')",
                                        "n.s.rsplit('bb')",
                                        "n.s.startswith([n.s, n.t])",
                                        "n.s.startswith(n.t)",
                                        "n.s.count('b')"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        char source[512];
        snprintf(source, sizeof source, loop, words[i]);
        check_bad(source, "{}", DP_TOOBIG, "more than 5000000 steps");
    }
}

static void blocks_within_blocks_share_one_bound(void **state)
{
    (void)state;
    check_bad("{% set y = 'a' * 1024 %}{% set x = y * 61440 %}{% set a %}{{ x }}{% set b %}{{ x "
              "}}{% set c %}{{ x }}"
              "{% endset %}{% endset %}{% endset %}",
              "{}", DP_TOOBIG, "its text is longer than 128 MiB");
}

/* Memory that is left does not hide that the bound refused. */
static void a_bound_is_told_as_a_bound(void **state)
{
    (void)state;
    check_bad("{% set y = 'a' * 1024 %}{% set a = y * 102400 %}{% set b = y * 204800 %}", "{}",
              DP_TOOBIG, "more than 256 MiB of memory");
}

/* The keys of JSON are different from each other: none is sought while they are taken over. */
static void an_object_of_many_keys_is_read_at_once(void **state)
{
    (void)state;
    enum { KEYS = 200000 };
    dp_buf out;
    dp_why why = {{0}};
    dp_template *t;
    json_t *const all = json_object();
    json_t *const one = json_object();
    for (int i = 0; i < KEYS; i++) {
        char name[16];
        snprintf(name, sizeof name, "k%d", KEYS - i);
        CHECK(json_object_set_new(one, name, json_integer(i)) == 0);
    }
    CHECK(json_object_set_new(all, "o", one) == 0);
    dp_buf_init(&out, 1 << 20);
    static const char *const words[] = {"o.z", "o['z']", "'z' in o", "o.get('z')",
                                        "[o]|selectattr('z')|list"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        char source[128];
        snprintf(source, sizeof source,
                 "{%% for i in range(300000) %%}{%% if %s %%}{%% endif %%}{%% endfor %%}",
                 words[i]);
        CHECK_OK(dp_template_open(&t, dp_view_text(source), &why));
        CHECK_STATUS(dp_template_run(t, all, &out, &why), DP_TOOBIG);
        dp_template_close(t);
    }
    CHECK_OK(dp_template_open(
        &t, dp_view_text("{{ o|length }} {{ (o|dictsort)[0] }} {{ (o.items()|list)[0] }}"), &why));
    CHECK_OK(dp_template_run(t, all, &out, &why));
    CHECK(dp_view_equal(dp_buf_view(&out), dp_view_text("200000 ('k1', 199999) ('k200000', 0)")));
    dp_template_close(t);
    dp_buf_close(&out);
    json_decref(all);
}

/* A dict or list that holds itself would never end. */
static void a_namespace_that_holds_itself_ends(void **state)
{
    (void)state;
    dp_buf out;
    dp_why why = {{0}};
    dp_buf_init(&out, 1 << 16);
    const char *const source = "{% set n = namespace() %}{% set n.me = n %}{{ n == n }}{{ n }}";
    CHECK_STATUS(render(source, "{}", &out, &why), DP_TOOBIG);
    dp_buf_close(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blanks_are_trimmed_as_transformers_does),
        cmocka_unit_test(line_ends_of_other_systems_become_ours),
        cmocka_unit_test(what_is_set_in_a_loop_stays_there),
        cmocka_unit_test(loops_know_where_they_are),
        cmocka_unit_test(expressions_have_the_order_of_jinja),
        cmocka_unit_test(json_is_that_of_python),
        cmocka_unit_test(json_is_written_as_its_arguments_say),
        cmocka_unit_test(arguments_that_are_not_known_are_refused),
        cmocka_unit_test(arguments_of_filters_of_items_are_passed_on),
        cmocka_unit_test(attributes_of_attributes_are_found),
        cmocka_unit_test(words_that_are_rare_do_as_in_jinja),
        cmocka_unit_test(characters_of_strings_are_written_by_number),
        cmocka_unit_test(a_loop_is_left_only_from_inside),
        cmocka_unit_test(faults_are_named_with_their_line),
        cmocka_unit_test(work_and_memory_are_bounded),
        cmocka_unit_test(comparisons_are_bounded),
        cmocka_unit_test(long_texts_cost_steps),
        cmocka_unit_test(blocks_within_blocks_share_one_bound),
        cmocka_unit_test(a_bound_is_told_as_a_bound),
        cmocka_unit_test(an_object_of_many_keys_is_read_at_once),
        cmocka_unit_test(a_namespace_that_holds_itself_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
