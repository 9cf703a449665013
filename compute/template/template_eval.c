/* Names and expressions of a run. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "compute/template/template_run.h"

typedef dp_template_node node;

/* ---- Small things. */

dp_status(dp_run_fail)(const dp_run *run, const node *n, dp_status status, const char *format, ...)
{
    char text[320];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return dp_why_set(run->why, status, "line %u of the template: %s", n->line, text);
}

dp_status dp_run_charge(dp_run *run, const node *n, uint64_t steps)
{
    run->steps += steps;
    return run->steps <= DP_TEMPLATE_STEPS_MAX
               ? DP_OK
               : dp_run_fail(run, n, DP_TOOBIG, "the template takes more than %d steps",
                             DP_TEMPLATE_STEPS_MAX);
}

dp_status dp_run_charge_for(dp_run *run, const node *n, const dp_value *value)
{
    return dp_run_charge(run, n, dp_value_work(value));
}

dp_status dp_run_equal(dp_run *run, const node *n, const dp_value *a, const dp_value *b,
                       bool *equal)
{
    const uint64_t all = DP_TEMPLATE_STEPS_MAX + 1 - run->steps;
    uint64_t left = all;
    *equal = dp_value_equal(a, b, &left);
    return dp_run_charge(run, n, all - left);
}

const dp_value *dp_argument(const dp_arguments *a, size_t index, dp_view name)
{
    const size_t unnamed = a->count - a->n_names;
    if (index < unnamed) {
        return &a->values[index];
    }
    for (size_t i = 0; i < a->n_names; i++) {
        if (dp_view_equal(a->names[i], name)) {
            return &a->values[unnamed + i];
        }
    }
    return NULL;
}

/* Copies what buf holds into the arena, and closes it. */
static dp_status keep(dp_run *run, dp_status status, dp_buf *buf, dp_view *text)
{
    if (status == DP_OK) {
        status = dp_text_join(&run->arena, dp_buf_view(buf), (dp_view){0}, text);
    }
    dp_buf_close(buf);
    return status;
}

dp_status dp_run_text(dp_run *run, const node *n, const dp_value *value, dp_view *text)
{
    dp_buf buf;
    if (value->kind == DP_TEXT) {
        *text = value->u.text;
        return DP_OK;
    }
    (void)n;
    dp_buf_init(&buf, DP_TEMPLATE_TEXT_MAX);
    return keep(run, dp_value_write(value, false, &buf), &buf, text);
}

dp_status dp_run_items(dp_run *run, const node *n, const dp_value *of, dp_value *list)
{
    if (of->kind == DP_LIST) {
        *list = *of;
        return DP_OK;
    }
    DP_TRY(dp_value_list(&run->arena, list));
    if (of->kind == DP_DICT) {
        for (size_t i = 0; i < of->u.dict->count; i++) {
            const dp_value key = dp_value_text(of->u.dict->entries[i].key);
            DP_TRY(dp_list_add(&run->arena, list->u.list, key));
        }
        return DP_OK;
    }
    if (of->kind == DP_TEXT) {
        const dp_view text = of->u.text;
        for (size_t at = 0; at < text.size;) {
            const size_t size = dp_text_character(text, at);
            const dp_value c = dp_value_text(dp_text_cut(text, at, size));
            DP_TRY(dp_list_add(&run->arena, list->u.list, c));
            at += size;
        }
        return DP_OK;
    }
    return of->kind == DP_UNDEFINED
               ? DP_OK
               : dp_run_fail(run, n, DP_BADARG, "%s has no items", dp_value_name(of));
}

dp_value dp_run_attribute(const dp_value *value, dp_view name)
{
    const dp_value *const found = value->kind == DP_DICT ? dp_dict_get(value->u.dict, name) : NULL;
    return found != NULL ? *found : (dp_value){.kind = DP_UNDEFINED};
}

static bool is_place(dp_view name, size_t *place)
{
    *place = 0;
    for (size_t i = 0; i < name.size; i++) {
        if (name.data[i] < '0' || name.data[i] > '9' || i == 9) {
            return false;
        }
        *place = 10 * *place + (name.data[i] - '0');
    }
    return name.size > 0;
}

dp_status dp_run_path(dp_run *run, const node *n, const dp_value *value, dp_view names,
                      const dp_value *otherwise, dp_value *out)
{
    size_t at = 0;
    *out = *value;
    do {
        size_t end = at;
        size_t place;
        DP_TRY(dp_run_charge_for(run, n, out));
        while (end < names.size && names.data[end] != '.') {
            end++;
        }
        const dp_view name = dp_text_cut(names, at, end - at);
        if (out->kind == DP_UNDEFINED) {
            return dp_run_fail(run, n, DP_BADARG, "an item is undefined and has no '%.*s'",
                               (int)(name.size < 64 ? name.size : 64), (const char *)name.data);
        }
        *out = out->kind != DP_LIST || !is_place(name, &place) ? dp_run_attribute(out, name)
               : place < out->u.list->count                    ? out->u.list->items[place]
                                                               : (dp_value){.kind = DP_UNDEFINED};
        *out = out->kind == DP_UNDEFINED && otherwise != NULL ? *otherwise : *out;
        at = end + 1;
    } while (at <= names.size);
    return DP_OK;
}

/* ---- Names. */

dp_status dp_run_bind(dp_run *run, dp_bindings *in, size_t from, dp_view name, dp_value value)
{
    for (size_t i = in->count; i > from; i--) {
        if (dp_view_equal(in->list[i - 1].name, name)) {
            in->list[i - 1].value = value;
            return DP_OK;
        }
    }
    if (in->count == in->room) {
        const size_t room = in->room == 0 ? 32 : 2 * in->room;
        dp_binding *const wider = dp_arena_take(&run->arena, room * sizeof *wider);
        if (wider == NULL) {
            return DP_NOMEM;
        }
        if (in->count > 0) {
            memcpy(wider, in->list, in->count * sizeof *wider);
        }
        in->list = wider;
        in->room = room;
    }
    in->list[in->count++] = (dp_binding){name, value};
    return DP_OK;
}

/* A local of the innermost loop or macro, whose locals begin at from; or a global. */
dp_status dp_run_set(dp_run *run, size_t from, dp_view name, dp_value value)
{
    return run->inside ? dp_run_bind(run, &run->locals, from, name, value)
                       : dp_run_bind(run, &run->globals, 0, name, value);
}

dp_value dp_run_find(const dp_run *run, dp_view name)
{
    for (size_t i = run->locals.count; i > run->base; i--) {
        if (dp_view_equal(run->locals.list[i - 1].name, name)) {
            return run->locals.list[i - 1].value;
        }
    }
    for (size_t i = run->globals.count; i > 0; i--) {
        if (dp_view_equal(run->globals.list[i - 1].name, name)) {
            return run->globals.list[i - 1].value;
        }
    }
    return (dp_value){.kind = DP_UNDEFINED};
}

/* ---- Attributes, items, slices. */

static dp_status attribute(dp_run *run, const node *n, dp_value *out)
{
    dp_value of;
    DP_TRY(dp_run_eval(run, n->a, &of));
    if (of.kind == DP_UNDEFINED) {
        const dp_view name = n->a->kind == DP_NODE_NAME ? n->a->text : dp_view_text("it");
        return dp_run_fail(run, n, DP_BADARG, "%.*s is undefined and has no '%.*s'",
                           (int)(name.size < 64 ? name.size : 64), (const char *)name.data,
                           (int)(n->text.size < 64 ? n->text.size : 64),
                           (const char *)n->text.data);
    }
    *out = dp_run_attribute(&of, n->text);
    return dp_run_charge_for(run, n, &of);
}

/* A place that may count from the end. */
static bool place_of(int64_t index, size_t count, size_t *place)
{
    const int64_t at = index < 0 ? index + (int64_t)count : index;
    *place = (size_t)at;
    return at >= 0 && (size_t)at < count;
}

static dp_status item(dp_run *run, const node *n, dp_value *out)
{
    dp_value of;
    dp_value key;
    size_t place;
    DP_TRY(dp_run_eval(run, n->a, &of));
    DP_TRY(dp_run_eval(run, n->b, &key));
    *out = (dp_value){.kind = DP_UNDEFINED};
    if (of.kind == DP_UNDEFINED) {
        return dp_run_fail(run, n, DP_BADARG, "an item of what is undefined");
    }
    if (key.kind == DP_TEXT) {
        *out = dp_run_attribute(&of, key.u.text);
    } else if (key.kind == DP_INT && of.kind == DP_LIST &&
               place_of(key.u.integer, of.u.list->count, &place)) {
        *out = of.u.list->items[place];
    } else if (key.kind == DP_INT && of.kind == DP_TEXT &&
               place_of(key.u.integer, dp_text_length(of.u.text), &place)) {
        const size_t at = dp_text_offset(of.u.text, place);
        *out = dp_value_text(dp_text_cut(of.u.text, at, dp_text_character(of.u.text, at)));
    }
    return of.kind == DP_LIST ? DP_OK : dp_run_charge_for(run, n, &of);
}

/* An optional bound of a slice, as Python counts it. */
static dp_status bound(dp_run *run, const node *n, const node *part, int64_t otherwise,
                       int64_t *value)
{
    dp_value v = dp_value_none();
    if (part != NULL) {
        DP_TRY(dp_run_eval(run, part, &v));
    }
    if (v.kind != DP_INT && v.kind != DP_NONE) {
        return dp_run_fail(run, n, DP_BADARG, "a slice by %s", dp_value_name(&v));
    }
    *value = v.kind == DP_INT ? v.u.integer : otherwise;
    return DP_OK;
}

static int64_t clamp(int64_t at, int64_t count, int64_t least, int64_t most)
{
    at = at < 0 ? at + count : at;
    return at < least ? least : at > most ? most : at;
}

/* First item, and one behind the last, of a slice over count. */
static dp_status bounds(dp_run *run, const node *n, int64_t count, int64_t range[3])
{
    DP_TRY(bound(run, n, n->d, 1, &range[2]));
    const int64_t step = range[2];
    if (step == 0 || step > INT32_MAX || step < -INT32_MAX) {
        return dp_run_fail(run, n, DP_BADARG, "a slice in steps of %lld", (long long)step);
    }
    const int64_t least = step > 0 ? 0 : -1;
    const int64_t most = step > 0 ? count : count - 1;
    DP_TRY(bound(run, n, n->b, step > 0 ? 0 : INT64_MAX / 2, &range[0]));
    DP_TRY(bound(run, n, n->c, step > 0 ? INT64_MAX / 2 : INT64_MIN / 2, &range[1]));
    range[0] = clamp(range[0], count, least, most);
    range[1] = clamp(range[1], count, least, most);
    return DP_OK;
}

static dp_status slice(dp_run *run, const node *n, dp_value *out)
{
    dp_value of;
    int64_t range[3];
    DP_TRY(dp_run_eval(run, n->a, &of));
    if (of.kind != DP_LIST && of.kind != DP_TEXT) {
        return dp_run_fail(run, n, DP_BADARG, "a slice of %s", dp_value_name(&of));
    }
    const bool text = of.kind == DP_TEXT;
    DP_TRY(dp_run_charge_for(run, n, &of));
    const int64_t count = (int64_t)(text ? dp_text_length(of.u.text) : of.u.list->count);
    DP_TRY(bounds(run, n, count, range));
    if (text && range[2] == 1) {
        const size_t from = dp_text_offset(of.u.text, (size_t)range[0]);
        const size_t to = dp_text_offset(of.u.text, (size_t)range[1]);
        *out = dp_value_text(dp_text_cut(of.u.text, from, to > from ? to - from : 0));
        return DP_OK;
    }
    dp_value all;
    DP_TRY(dp_run_items(run, n, &of, &all));
    DP_TRY(dp_run_charge(run, n, (uint64_t)count));
    DP_TRY(dp_value_list(&run->arena, out));
    for (int64_t i = range[0]; range[2] > 0 ? i < range[1] : i > range[1]; i += range[2]) {
        DP_TRY(dp_list_add(&run->arena, out->u.list, all.u.list->items[i]));
    }
    if (!text) {
        return DP_OK;
    }
    dp_buf buf;
    dp_status status = DP_OK;
    dp_buf_init(&buf, DP_TEMPLATE_TEXT_MAX);
    for (size_t i = 0; i < out->u.list->count && status == DP_OK; i++) {
        status = dp_buf_append(&buf, out->u.list->items[i].u.text);
    }
    dp_view joined;
    DP_TRY(keep(run, status, &buf, &joined));
    *out = dp_value_text(joined);
    return DP_OK;
}

/* ---- Calls. */

dp_status dp_run_capture(dp_run *run, const node *body, dp_view *text, dp_flow *end)
{
    dp_buf buf;
    dp_buf *const before = run->out;
    const size_t held = run->held;
    run->held += run->blocks > 0 ? before->size : 0;
    run->blocks++;
    dp_buf_init(&buf, DP_TEMPLATE_TEXT_MAX - run->held);
    run->out = &buf;
    const dp_status status = dp_run_execute(run, body, end);
    run->out = before;
    run->held = held;
    run->blocks--;
    return keep(run, status, &buf, text);
}

/* Refuses what is no argument of a macro, or is given by its place already. */
static dp_status check_arguments(const dp_run *run, const node *n, const node *macro,
                                 const dp_arguments *a)
{
    const size_t unnamed = a->count - a->n_names;
    if (unnamed > macro->n_names) {
        return dp_run_fail(run, n, DP_BADARG, "the macro takes %zu arguments at most",
                           macro->n_names);
    }
    for (size_t i = 0; i < a->n_names; i++) {
        size_t at = unnamed;
        while (at < macro->n_names && !dp_view_equal(a->names[i], macro->names[at])) {
            at++;
        }
        if (at == macro->n_names) {
            return dp_run_fail(run, n, DP_BADARG, "the macro has no argument '%.*s' here",
                               (int)(a->names[i].size < 64 ? a->names[i].size : 64),
                               (const char *)a->names[i].data);
        }
    }
    return DP_OK;
}

/* The parameters of a macro from its arguments, as its first locals. */
static dp_status bind_arguments(dp_run *run, const node *n, const node *macro,
                                const dp_arguments *arguments)
{
    const node *otherwise = macro->list;
    DP_TRY(check_arguments(run, n, macro, arguments));
    for (size_t i = 0; i < macro->n_names; i++, otherwise = otherwise->next) {
        const dp_view word = macro->names[i];
        const dp_value *const given = dp_argument(arguments, i, word);
        dp_value value = given != NULL ? *given : otherwise->value;
        if (given == NULL && !(otherwise->kind == DP_NODE_VALUE)) {
            DP_TRY(dp_run_eval(run, otherwise, &value));
        }
        DP_TRY(dp_run_bind(run, &run->locals, run->locals.count, word, value));
    }
    return DP_OK;
}

static dp_status call_macro(dp_run *run, const node *n, const node *macro,
                            const dp_arguments *arguments, dp_value *out)
{
    const size_t base = run->base;
    const size_t count = run->locals.count;
    const size_t scope = run->scope;
    const bool inside = run->inside;
    dp_view text;
    dp_flow end;
    run->base = count;
    run->scope = count;
    run->inside = true;
    dp_status status = bind_arguments(run, n, macro, arguments);
    if (status == DP_OK) {
        status = dp_run_capture(run, macro->body, &text, &end);
    }
    run->base = base;
    run->scope = scope;
    run->inside = inside;
    run->locals.count = count;
    DP_TRY(status);
    *out = dp_value_text(text);
    return DP_OK;
}

static dp_status eval_list(dp_run *run, const node *n, dp_value *list)
{
    DP_TRY(dp_value_list(&run->arena, list));
    for (const node *at = n->list; at != NULL; at = at->next) {
        dp_value value;
        DP_TRY(dp_run_eval(run, at, &value));
        DP_TRY(dp_list_add(&run->arena, list->u.list, value));
    }
    list->u.list->is_tuple = n->is_tuple;
    return DP_OK;
}

static dp_status eval_arguments(dp_run *run, const node *n, dp_arguments *arguments)
{
    dp_value list;
    DP_TRY(eval_list(run, n, &list));
    *arguments = (dp_arguments){.values = list.u.list->items,
                                .count = list.u.list->count,
                                .names = n->names,
                                .n_names = n->n_names};
    return DP_OK;
}

static dp_status call(dp_run *run, const node *n, dp_value *out)
{
    dp_arguments arguments;
    dp_value callee;
    if (n->a->kind == DP_NODE_ATTRIBUTE) {
        dp_value subject;
        DP_TRY(dp_run_eval(run, n->a->a, &subject));
        DP_TRY(eval_arguments(run, n, &arguments));
        return dp_run_method(run, n->a, &subject, &arguments, out);
    }
    DP_TRY(dp_run_eval(run, n->a, &callee));
    DP_TRY(eval_arguments(run, n, &arguments));
    if (callee.kind == DP_MACRO) {
        return call_macro(run, n, callee.u.macro, &arguments, out);
    }
    if (callee.kind == DP_FUNCTION) {
        return dp_run_function(run, n, callee.u.function, &arguments, out);
    }
    const dp_view name = n->a->kind == DP_NODE_NAME ? n->a->text : dp_view_text("it");
    return dp_run_fail(run, n, DP_UNSUPPORTED, "there is no function '%.*s'",
                       (int)(name.size < 64 ? name.size : 64), (const char *)name.data);
}

static dp_status filter_or_test(dp_run *run, const node *n, dp_value *out)
{
    dp_arguments arguments;
    dp_value subject;
    bool holds = false;
    DP_TRY(dp_run_eval(run, n->a, &subject));
    DP_TRY(eval_arguments(run, n, &arguments));
    if (n->kind == DP_NODE_FILTER) {
        return dp_run_filter(run, n, &subject, &arguments, out);
    }
    DP_TRY(dp_run_test(run, n, &subject, &arguments, &holds));
    *out = dp_value_bool(holds);
    return DP_OK;
}

/* ---- Expressions. */

static dp_status dict(dp_run *run, const node *n, dp_value *out)
{
    DP_TRY(dp_value_dict(&run->arena, out));
    for (const node *at = n->list; at != NULL; at = at->next->next) {
        dp_value key;
        dp_value value;
        DP_TRY(dp_run_eval(run, at, &key));
        DP_TRY(dp_run_eval(run, at->next, &value));
        if (key.kind != DP_TEXT) {
            return dp_run_fail(run, n, DP_UNSUPPORTED, "the key of an object is %s",
                               dp_value_name(&key));
        }
        DP_TRY(dp_run_charge_for(run, n, out));
        DP_TRY(dp_dict_set(&run->arena, out->u.dict, key.u.text, value));
    }
    return DP_OK;
}

/* Comparisons behind each other: all must hold. */
static dp_status compare(dp_run *run, const node *n, dp_value *out)
{
    dp_value left;
    bool holds = true;
    size_t i = 0;
    DP_TRY(dp_run_eval(run, n->a, &left));
    for (const node *at = n->list; at != NULL && holds; at = at->next) {
        dp_value right;
        DP_TRY(dp_run_eval(run, at, &right));
        DP_TRY(dp_run_holds(run, n, n->operations[i++], &left, &right, &holds));
        left = right;
    }
    *out = dp_value_bool(holds);
    return DP_OK;
}

static dp_status negate(dp_run *run, const node *n, dp_value *out)
{
    dp_value a;
    DP_TRY(dp_run_eval(run, n->a, &a));
    if (a.kind == DP_FLOAT) {
        *out = (dp_value){.kind = DP_FLOAT, .u.real = -a.u.real};
        return DP_OK;
    }
    if (a.kind != DP_INT || a.u.integer == INT64_MIN) {
        return dp_run_fail(run, n, DP_BADARG, "the negative of %s", dp_value_name(&a));
    }
    *out = dp_value_int(-a.u.integer);
    return DP_OK;
}

/* "a and b", "a or b", "a if b else c" */
static dp_status decide(dp_run *run, const node *n, dp_value *out)
{
    if (n->kind == DP_NODE_CHOICE) {
        dp_value condition;
        DP_TRY(dp_run_eval(run, n->b, &condition));
        if (dp_value_true(&condition)) {
            return dp_run_eval(run, n->a, out);
        }
        *out = (dp_value){.kind = DP_UNDEFINED};
        return n->c != NULL ? dp_run_eval(run, n->c, out) : DP_OK;
    }
    DP_TRY(dp_run_eval(run, n->a, out));
    return dp_value_true(out) == (n->kind == DP_NODE_AND) ? dp_run_eval(run, n->b, out) : DP_OK;
}

static dp_status binary(dp_run *run, const node *n, dp_value *out)
{
    dp_value a;
    dp_value b;
    DP_TRY(dp_run_eval(run, n->a, &a));
    DP_TRY(dp_run_eval(run, n->b, &b));
    return dp_run_combine(run, n, &a, &b, out);
}

static dp_status eval_kind(dp_run *run, const node *n, dp_value *out)
{
    switch ((int)n->kind) {
    case DP_NODE_VALUE:
        *out = n->value;
        return DP_OK;
    case DP_NODE_NAME:
        *out = dp_run_find(run, n->text);
        return dp_run_charge(run, n, (run->globals.count + run->locals.count) / DP_STEP_NAMES);
    case DP_NODE_LIST:
        return eval_list(run, n, out);
    case DP_NODE_DICT:
        return dict(run, n, out);
    case DP_NODE_NOT:
        DP_TRY(dp_run_eval(run, n->a, out));
        *out = dp_value_bool(!dp_value_true(out));
        return DP_OK;
    case DP_NODE_NEGATE:
        return negate(run, n, out);
    case DP_NODE_AND:
    case DP_NODE_OR:
    case DP_NODE_CHOICE:
        return decide(run, n, out);
    case DP_NODE_BINARY:
        return binary(run, n, out);
    case DP_NODE_COMPARE:
        return compare(run, n, out);
    case DP_NODE_ATTRIBUTE:
        return attribute(run, n, out);
    case DP_NODE_ITEM:
        return item(run, n, out);
    case DP_NODE_SLICE:
        return slice(run, n, out);
    case DP_NODE_CALL:
        return call(run, n, out);
    default: /* DP_NODE_FILTER, DP_NODE_TEST */
        return filter_or_test(run, n, out);
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by depth */
dp_status dp_run_eval(dp_run *run, const node *n, dp_value *out)
{
    DP_TRY(dp_run_charge(run, n, 1));
    if (++run->depth > DP_TEMPLATE_DEPTH_MAX) {
        return dp_run_fail(run, n, DP_TOOBIG, "it nests too deep");
    }
    const dp_status status = eval_kind(run, n, out);
    run->depth--;
    return status;
}
