/* Calls by their names: filters, methods, tests, functions. */
#include <string.h>

#include "compute/template/template_call.h"

typedef dp_template_node node;

/* ---- The tables. */

/* The next word of a list of names; empty behind the last. */
static dp_view next_word(const char **at)
{
    *at += strspn(*at, " ");
    const size_t size = strcspn(*at, " ");
    const dp_view word = dp_view_of((const uint8_t *)*at, size);
    *at += size;
    return word;
}

/* How many arguments there may be by their places, and where one with this name would stand; that
 * is SIZE_MAX for a name that is not taken. */
static size_t places_of(const char *takes, dp_view name, size_t *place)
{
    size_t count = 0;
    *place = SIZE_MAX;
    for (dp_view word = next_word(&takes); word.size > 0; word = next_word(&takes)) {
        if (dp_view_equal(word, dp_view_text("..."))) {
            return SIZE_MAX;
        }
        *place = dp_view_equal(word, name) ? count : *place;
        count++;
    }
    return count;
}

dp_status dp_call_check(const dp_call *c, const dp_call_row *row, const char *kind)
{
    const dp_arguments *const a = c->arguments;
    const size_t unnamed = a->count - a->n_names;
    size_t place;
    if (row->takes == NULL) {
        return DP_OK;
    }
    const size_t most = places_of(row->takes, dp_view_text(""), &place);
    if (unnamed > most) {
        return dp_run_fail(c->run, c->node, DP_UNSUPPORTED,
                           "the %s '%s' takes no more than %zu arguments", kind, row->name, most);
    }
    for (size_t i = 0; i < a->n_names; i++) {
        DP_IGNORE(places_of(row->takes, a->names[i], &place) == 0);
        if (place == SIZE_MAX || place < unnamed) {
            return dp_run_fail(c->run, c->node, DP_UNSUPPORTED,
                               "the %s '%s' has no argument '%.*s' here", kind, row->name,
                               (int)(a->names[i].size < 64 ? a->names[i].size : 64),
                               (const char *)a->names[i].data);
        }
    }
    return DP_OK;
}

/* The row of the node's word in either table. */
static dp_status run_row(const dp_call *c, const dp_call_row *rows, const dp_call_row *more,
                         const char *kind)
{
    const dp_view name = c->node->text;
    for (const dp_call_row *row = rows; row->name != NULL; row++) {
        if (dp_view_equal(name, dp_view_text(row->name))) {
            DP_TRY(dp_call_check(c, row, kind));
            return row->run(c);
        }
    }
    if (more != NULL) {
        return run_row(c, more, NULL, kind);
    }
    if (c->of->kind == DP_UNDEFINED && strcmp(kind, "method") == 0) {
        return dp_run_fail(c->run, c->node, DP_BADARG, "undefined has no method '%.*s'",
                           (int)(name.size < 64 ? name.size : 64), (const char *)name.data);
    }
    return dp_run_fail(c->run, c->node, DP_UNSUPPORTED, "the %s '%.*s' is not known for %s", kind,
                       (int)(name.size < 64 ? name.size : 64), (const char *)name.data,
                       dp_value_name(c->of));
}

dp_status dp_run_filter(dp_run *run, const node *n, const dp_value *subject,
                        const dp_arguments *arguments, dp_value *out)
{
    const dp_call c = {run, n, subject, arguments, out};
    DP_TRY(dp_run_charge_for(run, n, subject));
    return run_row(&c, dp_call_filters, dp_call_text_filters, "filter");
}

dp_status dp_run_method(dp_run *run, const node *n, const dp_value *subject,
                        const dp_arguments *arguments, dp_value *out)
{
    static const dp_call_row none[] = {{NULL, NULL, NULL}};
    const dp_call c = {run, n, subject, arguments, out};
    DP_TRY(dp_run_charge_for(run, n, subject));
    return run_row(&c,
                   subject->kind == DP_TEXT   ? dp_call_text_methods
                   : subject->kind == DP_DICT ? dp_call_dict_methods
                                              : none,
                   NULL, "method");
}

/* ---- Tests. */

static bool is_letters(const dp_value *v, bool upper)
{
    bool any = false;
    for (size_t i = 0; v->kind == DP_TEXT && i < v->u.text.size; i++) {
        const uint8_t ch = v->u.text.data[i];
        if (upper ? dp_is_lower(ch) : dp_is_upper(ch)) {
            return false;
        }
        any = any || dp_is_lower(ch) || dp_is_upper(ch);
    }
    return any;
}

/* Tests without an argument. */
static bool test_alone(dp_view name, const dp_value *v, bool *known)
{
    const bool mapping = v->kind == DP_DICT && !v->u.dict->is_namespace;
    const bool has_items =
        v->kind == DP_TEXT || v->kind == DP_LIST || mapping || v->kind == DP_UNDEFINED;
    const bool odd = v->kind == DP_INT && v->u.integer % 2 != 0;
    const struct {
        const char *name;
        bool holds;
    } rows[] = {{"defined", v->kind != DP_UNDEFINED},
                {"undefined", v->kind == DP_UNDEFINED},
                {"none", v->kind == DP_NONE},
                {"string", v->kind == DP_TEXT},
                {"mapping", mapping},
                {"sequence", has_items},
                {"iterable", has_items},
                {"number", dp_value_is_number(v)},
                {"integer", v->kind == DP_INT},
                {"float", v->kind == DP_FLOAT},
                {"boolean", v->kind == DP_BOOL},
                {"true", v->kind == DP_BOOL && v->u.truth},
                {"false", v->kind == DP_BOOL && !v->u.truth},
                {"odd", odd},
                {"even", v->kind == DP_INT && !odd},
                {"lower", is_letters(v, false)},
                {"upper", is_letters(v, true)},
                {"callable", v->kind == DP_MACRO || v->kind == DP_FUNCTION}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (dp_view_equal(name, dp_view_text(rows[i].name))) {
            *known = true;
            return rows[i].holds;
        }
    }
    *known = false;
    return false;
}

/* Tests against one value. */
static dp_status test_against(dp_run *run, const node *n, const dp_value *a, const dp_value *b,
                              bool *holds)
{
    static const char *const equal[] = {"equalto", "eq", "=="};
    for (size_t i = 0; i < sizeof equal / sizeof equal[0]; i++) {
        if (dp_view_equal(n->text, dp_view_text(equal[i]))) {
            return dp_run_equal(run, n, a, b, holds);
        }
    }
    if (dp_view_equal(n->text, dp_view_text("sameas"))) {
        *holds = a->kind == b->kind && (a->kind == DP_LIST   ? a->u.list == b->u.list
                                        : a->kind == DP_DICT ? a->u.dict == b->u.dict
                                                             : true);
        return *holds ? dp_run_equal(run, n, a, b, holds) : DP_OK;
    }
    if (dp_view_equal(n->text, dp_view_text("ne")) || dp_view_equal(n->text, dp_view_text("!="))) {
        DP_TRY(dp_run_equal(run, n, a, b, holds));
        *holds = !*holds;
        return DP_OK;
    }
    if (dp_view_equal(n->text, dp_view_text("in"))) {
        return dp_run_contains(run, n, a, b, holds);
    }
    if (dp_view_equal(n->text, dp_view_text("divisibleby")) && a->kind == DP_INT &&
        b->kind == DP_INT && b->u.integer > 0) {
        *holds = a->u.integer % b->u.integer == 0;
        return DP_OK;
    }
    return dp_run_fail(run, n, DP_UNSUPPORTED, "the test '%.*s' is not known",
                       (int)(n->text.size < 64 ? n->text.size : 64), (const char *)n->text.data);
}

dp_status dp_run_test(dp_run *run, const node *n, const dp_value *subject,
                      const dp_arguments *arguments, bool *holds)
{
    bool known;
    DP_TRY(dp_run_charge_for(run, n, subject));
    if (arguments->n_names > 0) {
        return dp_run_fail(run, n, DP_UNSUPPORTED, "the test '%.*s' has no argument with a name",
                           (int)(n->text.size < 64 ? n->text.size : 64),
                           (const char *)n->text.data);
    }
    if (arguments->count == 1) {
        return test_against(run, n, subject, &arguments->values[0], holds);
    }
    *holds = test_alone(n->text, subject, &known);
    return known && arguments->count == 0
               ? DP_OK
               : dp_run_fail(run, n, DP_UNSUPPORTED, "the test '%.*s' is not known",
                             (int)(n->text.size < 64 ? n->text.size : 64),
                             (const char *)n->text.data);
}

/* ---- Functions. */

static dp_status named_dict(const dp_call *c)
{
    const dp_arguments *const a = c->arguments;
    DP_TRY(dp_value_dict(&c->run->arena, c->out));
    for (size_t i = 0; i < a->n_names; i++) {
        DP_TRY(dp_dict_set(&c->run->arena, c->out->u.dict, a->names[i],
                           a->values[a->count - a->n_names + i]));
    }
    return a->n_names == a->count ? DP_OK
                                  : dp_run_fail(c->run, c->node, DP_UNSUPPORTED,
                                                "only arguments with names are known");
}

static dp_status do_namespace(const dp_call *c)
{
    DP_TRY(named_dict(c));
    c->out->u.dict->is_namespace = true;
    return DP_OK;
}

static dp_status do_range(const dp_call *c)
{
    int64_t of[3] = {0, 0, 1};
    const dp_arguments *const a = c->arguments;
    for (size_t i = 0; i < a->count; i++) {
        if (i > 2 || a->values[i].kind != DP_INT || a->n_names > 0) {
            return dp_run_fail(c->run, c->node, DP_BADARG, "range takes one to three integers");
        }
        of[a->count == 1 ? 1 : i] = a->values[i].u.integer;
    }
    if (a->count == 0 || of[2] == 0 || of[2] > INT32_MAX || of[2] < -INT32_MAX) {
        return dp_run_fail(c->run, c->node, DP_BADARG, "range takes one to three integers");
    }
    DP_TRY(dp_value_list(&c->run->arena, c->out));
    for (int64_t i = of[0]; of[2] > 0 ? i < of[1] : i > of[1];) {
        DP_TRY(dp_run_charge(c->run, c->node, 1));
        DP_TRY(dp_list_add(&c->run->arena, c->out->u.list, dp_value_int(i)));
        if (__builtin_add_overflow(i, of[2], &i)) {
            break;
        }
    }
    return DP_OK;
}

static dp_status do_raise(const dp_call *c)
{
    dp_view text = dp_view_text("no reason");
    const dp_value *const message = dp_call_argument(c, 0, "message");
    if (message != NULL) {
        DP_TRY(dp_run_text(c->run, c->node, message, &text));
    }
    return dp_run_fail(c->run, c->node, DP_BADARG, "it refuses the chat: %.*s",
                       (int)(text.size < 200 ? text.size : 200), (const char *)text.data);
}

static const dp_call_row functions[] = {{"namespace", do_namespace, NULL},
                                        {"range", do_range, NULL},
                                        {"dict", named_dict, NULL},
                                        {"raise_exception", do_raise, "message"},
                                        {NULL, NULL, NULL}};

const char *dp_run_function_name(unsigned function)
{
    return functions[function].name;
}

dp_status dp_run_function(dp_run *run, const node *n, unsigned function,
                          const dp_arguments *arguments, dp_value *out)
{
    const dp_call c = {run, n, NULL, arguments, out};
    DP_TRY(dp_call_check(&c, &functions[function], "function"));
    return functions[function].run(&c);
}
