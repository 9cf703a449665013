/* Statements of a run. */
#include <string.h>

#include "base/alloc.h"
#include "compute/template/template_run.h"

typedef dp_template_node node;

/* ---- Statements. */

/* The names of a target get a value, or each its item. */
static dp_status assign(dp_run *run, const node *n, size_t from, dp_value value)
{
    const size_t names = run->globals.count + run->locals.count;
    DP_TRY(dp_run_charge(run, n, n->n_names * names / DP_STEP_NAMES));
    if (n->n_names == 1) {
        return dp_run_set(run, from, n->names[0], value);
    }
    if (value.kind != DP_LIST || value.u.list->count != n->n_names) {
        return dp_run_fail(run, n, DP_BADARG, "%zu names for %s", n->n_names,
                           dp_value_name(&value));
    }
    for (size_t i = 0; i < n->n_names; i++) {
        DP_TRY(dp_run_set(run, from, n->names[i], value.u.list->items[i]));
    }
    return DP_OK;
}

static dp_status set(dp_run *run, const node *n, dp_flow *end)
{
    dp_value value;
    if (n->a != NULL) {
        DP_TRY(dp_run_eval(run, n->a, &value));
    } else {
        dp_view text;
        DP_TRY(dp_run_capture(run, n->body, &text, end));
        if (*end != DP_FLOW_NEXT) {
            return DP_OK;
        }
        value = dp_value_text(text);
    }
    if (n->text.size == 0) {
        return assign(run, n, run->scope, value);
    }
    const dp_value in = dp_run_find(run, n->names[0]);
    if (in.kind != DP_DICT || !in.u.dict->is_namespace) {
        return dp_run_fail(run, n, DP_BADARG, "an attribute is set of what is no namespace");
    }
    DP_TRY(dp_run_charge_for(run, n, &in));
    return dp_dict_set(&run->arena, in.u.dict, n->text, value);
}

/* Fills in loop, an object. */
static dp_status set_loop(dp_run *run, const dp_template_list *items, size_t i, dp_value loop)
{
    const int64_t at = (int64_t)i;
    const int64_t count = (int64_t)items->count;
    const dp_value undefined = {.kind = DP_UNDEFINED};
    const struct {
        const char *name;
        dp_value value;
    } rows[] = {{"index", dp_value_int(at + 1)},
                {"index0", dp_value_int(at)},
                {"revindex", dp_value_int(count - at)},
                {"revindex0", dp_value_int(count - at - 1)},
                {"first", dp_value_bool(i == 0)},
                {"last", dp_value_bool(at + 1 == count)},
                {"length", dp_value_int(count)},
                {"previtem", i > 0 ? items->items[i - 1] : undefined},
                {"nextitem", at + 1 < count ? items->items[i + 1] : undefined}};
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        DP_TRY(dp_dict_set(&run->arena, loop.u.dict, dp_view_text(rows[r].name), rows[r].value));
    }
    return DP_OK;
}

/* Those for which the loop's condition holds. */
static dp_status choose(dp_run *run, const node *n, size_t from, dp_value *items)
{
    dp_value chosen;
    DP_TRY(dp_value_list(&run->arena, &chosen));
    for (size_t i = 0; i < items->u.list->count; i++) {
        dp_value holds;
        run->locals.count = from;
        DP_TRY(assign(run, n, from, items->u.list->items[i]));
        DP_TRY(dp_run_eval(run, n->b, &holds));
        if (dp_value_true(&holds)) {
            DP_TRY(dp_list_add(&run->arena, chosen.u.list, items->u.list->items[i]));
        }
    }
    *items = chosen;
    return DP_OK;
}

/* The items of a loop, whose locals begin at from. */
static dp_status go_through(dp_run *run, const node *n, size_t from, dp_value *items)
{
    dp_flow end = DP_FLOW_NEXT;
    dp_value own;
    DP_TRY(dp_value_dict(&run->arena, &own));
    if (n->b != NULL) {
        DP_TRY(choose(run, n, from, items));
    }
    for (size_t i = 0; i < items->u.list->count && end != DP_FLOW_BREAK; i++) {
        run->locals.count = from;
        DP_TRY(dp_run_charge(run, n, 1));
        DP_TRY(assign(run, n, from, items->u.list->items[i]));
        DP_TRY(set_loop(run, items->u.list, i, own));
        DP_TRY(dp_run_set(run, from, dp_view_text("loop"), own));
        DP_TRY(dp_run_execute(run, n->body, &end));
    }
    return DP_OK;
}

static dp_status loop(dp_run *run, const node *n, dp_flow *end)
{
    dp_value of;
    dp_value items;
    const size_t from = run->locals.count;
    const size_t scope = run->scope;
    const bool inside = run->inside;
    DP_TRY(dp_run_eval(run, n->a, &of));
    DP_TRY(dp_run_items(run, n, &of, &items));
    run->inside = true;
    run->scope = from;
    const dp_status status = go_through(run, n, from, &items);
    run->locals.count = from;
    run->scope = scope;
    run->inside = inside;
    DP_TRY(status);
    return items.u.list->count == 0 && n->other != NULL ? dp_run_execute(run, n->other, end)
                                                        : DP_OK;
}

static dp_status output(dp_run *run, const node *n)
{
    dp_value value;
    DP_TRY(dp_run_eval(run, n->a, &value));
    return dp_value_write(&value, false, run->out);
}

static dp_status statement(dp_run *run, const node *n, dp_flow *end)
{
    switch ((int)n->kind) {
    case DP_NODE_TEXT:
        return dp_buf_append(run->out, n->text);
    case DP_NODE_OUTPUT:
        return output(run, n);
    case DP_NODE_FOR:
        return loop(run, n, end);
    case DP_NODE_IF: {
        dp_value holds;
        DP_TRY(dp_run_eval(run, n->a, &holds));
        return dp_run_execute(run, dp_value_true(&holds) ? n->body : n->other, end);
    }
    case DP_NODE_SET:
        return set(run, n, end);
    case DP_NODE_MACRO:
        return dp_run_set(run, run->scope, n->text, (dp_value){.kind = DP_MACRO, .u.macro = n});
    case DP_NODE_BLOCK:
        return dp_run_execute(run, n->body, end);
    case DP_NODE_BREAK:
        *end = DP_FLOW_BREAK;
        return DP_OK;
    default: /* DP_NODE_CONTINUE */
        *end = DP_FLOW_CONTINUE;
        return DP_OK;
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by depth */
dp_status dp_run_execute(dp_run *run, const node *first, dp_flow *end)
{
    *end = DP_FLOW_NEXT;
    for (const node *n = first; n != NULL && *end == DP_FLOW_NEXT; n = n->next) {
        DP_TRY(dp_run_charge(run, n, 1));
        if (++run->depth > DP_TEMPLATE_DEPTH_MAX) {
            return dp_run_fail(run, n, DP_TOOBIG, "it nests too deep");
        }
        DP_TRY(statement(run, n, end));
        run->depth--;
    }
    return DP_OK;
}

/* ---- The whole. */

static dp_status begin(dp_run *run, json_t *variables)
{
    dp_value all;
    for (unsigned f = 0; dp_run_function_name(f) != NULL; f++) {
        const dp_value function = {.kind = DP_FUNCTION, .u.function = f};
        DP_TRY(dp_run_bind(run, &run->globals, 0, dp_view_text(dp_run_function_name(f)), function));
    }
    DP_TRY(dp_value_of_json(&run->arena, variables, &all));
    for (size_t i = 0; all.kind == DP_DICT && i < all.u.dict->count; i++) {
        const dp_template_entry *const entry = &all.u.dict->entries[i];
        DP_TRY(dp_run_bind(run, &run->globals, 0, entry->key, entry->value));
    }
    return DP_OK;
}

dp_status dp_template_run(const dp_template *t, json_t *variables, dp_buf *out, dp_why *why)
{
    dp_flow end;
    dp_why told = {{0}};
    dp_run run = {.arena = {.bound = DP_TEMPLATE_MEMORY_MAX}, .out = out, .why = &told};
    const size_t before = out->size;
    dp_status status = begin(&run, variables);
    if (status == DP_OK) {
        status = dp_run_execute(&run, t->first, &end);
    }
    if (status == DP_NOMEM && run.arena.refused) {
        status = dp_why_set(&told, DP_TOOBIG, "the template takes more than %d MiB of memory",
                            DP_TEMPLATE_MEMORY_MAX >> 20);
    } else if (status == DP_TOOBIG && told.text[0] == '\0') { /* A buffer says no more. */
        status = dp_why_set(&told, DP_TOOBIG, "its text is longer than %d MiB",
                            DP_TEMPLATE_TEXT_MAX >> 20);
    }
    dp_arena_close(&run.arena);
    if (status != DP_OK) {
        out->size = before;
        return dp_why_set(why, status, "%s", told.text);
    }
    return status;
}

/* A copy of a source whose line ends, CR LF or CR as well, are LF, as Jinja reads it. */
static dp_status copy_source(dp_template *t, dp_view source)
{
    DP_TRY(dp_text_join(&t->arena, source, (dp_view){0}, &t->source));
    uint8_t *const text = (uint8_t *)(uintptr_t)t->source.data; /* our own copy */
    size_t size = 0;
    for (size_t i = 0; i < source.size; i++) {
        const bool pair =
            source.data[i] == '\r' && i + 1 < source.size && source.data[i + 1] == '\n';
        text[size++] = source.data[i] == '\r' ? '\n' : source.data[i];
        i += pair;
    }
    t->source.size = size;
    return DP_OK;
}

dp_status dp_template_open(dp_template **out, dp_view source, dp_why *why)
{
    enum { TREE_BYTES_MAX = 512 << 20 };
    dp_lexeme *lexemes;
    if (source.size > DP_TEMPLATE_BYTES_MAX) {
        return dp_why_set(why, DP_TOOBIG, "the template is longer than %d KiB",
                          DP_TEMPLATE_BYTES_MAX >> 10);
    }
    dp_template *const t = dp_alloc(1, sizeof *t);
    if (t == NULL) {
        return DP_NOMEM;
    }
    t->arena.bound = TREE_BYTES_MAX;
    dp_status status = copy_source(t, source);
    if (status == DP_OK) {
        status = dp_template_lex(&t->arena, t->source, &lexemes, why);
    }
    if (status == DP_OK) {
        status = dp_template_parse(t, lexemes, why);
    }
    if (status != DP_OK) {
        dp_template_close(t);
        return status;
    }
    *out = t;
    return DP_OK;
}

void dp_template_close(dp_template *t)
{
    if (t != NULL) {
        dp_arena_close(&t->arena);
        dp_free(t);
    }
}
