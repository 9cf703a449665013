/* Filters, and methods of objects. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compute/template/template_call.h"

typedef dp_template_node node;

/* ---- Methods of objects. */

typedef enum of_entry { KEY, VALUE, BOTH } of_entry;

static dp_status entries(const dp_call *c, of_entry what)
{
    if (c->of->kind != DP_DICT) {
        return dp_call_refuse(c, "is of an object");
    }
    DP_TRY(dp_value_list(&c->run->arena, c->out));
    for (size_t i = 0; i < c->of->u.dict->count; i++) {
        const dp_template_entry *const entry = &c->of->u.dict->entries[i];
        dp_value item = what == KEY ? dp_value_text(entry->key) : entry->value;
        if (what == BOTH) {
            DP_TRY(dp_value_list(&c->run->arena, &item));
            item.u.list->is_tuple = true;
            DP_TRY(dp_list_add(&c->run->arena, item.u.list, dp_value_text(entry->key)));
            DP_TRY(dp_list_add(&c->run->arena, item.u.list, entry->value));
        }
        DP_TRY(dp_list_add(&c->run->arena, c->out->u.list, item));
    }
    return DP_OK;
}

static dp_status do_items(const dp_call *c)
{
    return entries(c, BOTH);
}

static dp_status do_keys(const dp_call *c)
{
    return entries(c, KEY);
}

static dp_status do_values(const dp_call *c)
{
    return entries(c, VALUE);
}

static dp_status do_get(const dp_call *c)
{
    dp_view key;
    const dp_value *const otherwise = dp_call_argument(c, 1, NULL);
    DP_TRY(dp_call_text_argument(c, 0, NULL, &key));
    const dp_value *const found = dp_dict_get(c->of->u.dict, key);
    return dp_call_give(c, found != NULL       ? *found
                           : otherwise != NULL ? *otherwise
                                               : dp_value_none());
}

/* ---- Filters. */

static dp_status do_tojson(const dp_call *c)
{
    dp_buf buf;
    dp_view made;
    const dp_value *const indent = dp_call_argument(c, 0, "indent");
    int spaces = -1;
    if (indent != NULL && indent->kind == DP_INT && indent->u.integer >= 0) {
        spaces = indent->u.integer > 16 ? 16 : (int)indent->u.integer;
    }
    dp_buf_init(&buf, DP_TEMPLATE_TEXT_MAX);
    dp_status status = dp_value_write_json(c->of, spaces, &buf);
    if (status == DP_BADARG) {
        status = dp_call_refuse(c, "is of a value that JSON does not have");
    }
    if (status == DP_OK) {
        status = dp_text_join(&c->run->arena, dp_buf_view(&buf), dp_view_of(NULL, 0), &made);
    }
    dp_buf_close(&buf);
    return status == DP_OK ? dp_call_give_text(c, made) : status;
}

static dp_status do_length(const dp_call *c)
{
    size_t length = 0;
    switch ((int)c->of->kind) {
    case DP_TEXT:
        length = dp_text_length(c->of->u.text);
        break;
    case DP_LIST:
        length = c->of->u.list->count;
        break;
    case DP_DICT:
        length = c->of->u.dict->count;
        break;
    case DP_UNDEFINED:
        break;
    default:
        return dp_call_refuse(c, "is of a text, a list or an object");
    }
    return dp_call_give(c, dp_value_int((int64_t)length));
}

static dp_status end_item(const dp_call *c, bool last)
{
    dp_value list;
    DP_TRY(dp_call_items(c, &list));
    const size_t count = list.u.list->count;
    return dp_call_give(c, count == 0 ? (dp_value){.kind = DP_UNDEFINED}
                                      : list.u.list->items[last ? count - 1 : 0]);
}

static dp_status do_first(const dp_call *c)
{
    return end_item(c, false);
}

static dp_status do_last(const dp_call *c)
{
    return end_item(c, true);
}

static dp_status do_join(const dp_call *c)
{
    dp_value list;
    const dp_value *const between = dp_call_argument(c, 0, "d");
    const dp_value *const attribute = dp_call_argument(c, 1, "attribute");
    const bool named = attribute != NULL && attribute->kind == DP_TEXT;
    DP_TRY(dp_call_items(c, &list));
    return dp_call_join(
        c, between != NULL && between->kind == DP_TEXT ? between->u.text : dp_view_of(NULL, 0),
        named ? attribute->u.text : dp_view_of(NULL, 0), list.u.list);
}

static dp_status do_default(const dp_call *c)
{
    const dp_value *const otherwise = dp_call_argument(c, 0, "default_value");
    const dp_value *const also_false = dp_call_argument(c, 1, "boolean");
    const bool replaces =
        c->of->kind == DP_UNDEFINED ||
        (also_false != NULL && dp_value_true(also_false) && !dp_value_true(c->of));
    return dp_call_give(c, !replaces           ? *c->of
                           : otherwise != NULL ? *otherwise
                                               : dp_value_text(dp_view_of(NULL, 0)));
}

static dp_status do_string(const dp_call *c)
{
    dp_view text;
    DP_TRY(dp_call_text(c, &text));
    return dp_call_give_text(c, text);
}

static dp_status do_safe(const dp_call *c)
{
    return dp_call_give(c, *c->of);
}

/* The number that a text begins to be; false: none. */
static bool real_of(dp_view text, double *real)
{
    char copy[64];
    char *end;
    const dp_view bare = dp_text_strip(text, NULL, true, true);
    snprintf(copy, sizeof copy, "%.*s", (int)(bare.size < 63 ? bare.size : 63),
             (const char *)bare.data);
    *real = strtod(copy, &end);
    return end != copy && *end == '\0' && bare.size < 63 && isfinite(*real);
}

static dp_status do_int(const dp_call *c)
{
    const dp_value *const otherwise = dp_call_argument(c, 0, "default");
    double real = 0;
    const bool is = dp_value_is_number(c->of) ? (real = dp_value_real(c->of), true)
                    : c->of->kind == DP_TEXT  ? real_of(c->of->u.text, &real)
                                              : false;
    if (c->of->kind == DP_INT) {
        return dp_call_give(c, *c->of);
    }
    return dp_call_give(c, is && fabs(real) < 1e18 ? dp_value_int((int64_t)real)
                           : otherwise != NULL     ? *otherwise
                                                   : dp_value_int(0));
}

static dp_status do_float(const dp_call *c)
{
    double real = 0;
    if (dp_value_is_number(c->of)) {
        real = dp_value_real(c->of);
    } else if (c->of->kind != DP_TEXT || !real_of(c->of->u.text, &real)) {
        real = 0;
    }
    return dp_call_give(c, (dp_value){.kind = DP_FLOAT, .u.real = real});
}

static dp_status do_abs(const dp_call *c)
{
    if (c->of->kind == DP_INT && c->of->u.integer != INT64_MIN) {
        return dp_call_give(
            c, dp_value_int(c->of->u.integer < 0 ? -c->of->u.integer : c->of->u.integer));
    }
    if (c->of->kind != DP_FLOAT) {
        return dp_call_refuse(c, "is of a number");
    }
    return dp_call_give(c, (dp_value){.kind = DP_FLOAT, .u.real = fabs(c->of->u.real)});
}

static dp_status do_list(const dp_call *c)
{
    dp_value list;
    DP_TRY(dp_call_items(c, &list));
    DP_TRY(dp_value_list(&c->run->arena, c->out));
    for (size_t i = 0; i < list.u.list->count; i++) {
        DP_TRY(dp_list_add(&c->run->arena, c->out->u.list, list.u.list->items[i]));
    }
    return DP_OK;
}

static dp_status do_reverse(const dp_call *c)
{
    dp_value list;
    DP_TRY(dp_call_items(c, &list));
    DP_TRY(dp_value_list(&c->run->arena, c->out));
    for (size_t i = list.u.list->count; i > 0; i--) {
        DP_TRY(dp_list_add(&c->run->arena, c->out->u.list, list.u.list->items[i - 1]));
    }
    return c->of->kind == DP_TEXT
               ? dp_call_join(c, dp_view_of(NULL, 0), dp_view_of(NULL, 0), c->out->u.list)
               : DP_OK;
}

static dp_status do_unique(const dp_call *c)
{
    dp_value list;
    DP_TRY(dp_call_items(c, &list));
    DP_TRY(dp_value_list(&c->run->arena, c->out));
    for (size_t i = 0; i < list.u.list->count; i++) {
        bool known = false;
        for (size_t j = 0; j < c->out->u.list->count && !known; j++) {
            DP_TRY(dp_run_equal(c->run, c->node, &list.u.list->items[i], &c->out->u.list->items[j],
                                &known));
        }
        DP_TRY(known ? DP_OK : dp_list_add(&c->run->arena, c->out->u.list, list.u.list->items[i]));
    }
    return DP_OK;
}

/* The items, or some attribute of them, for which a test holds, or not. */
static dp_status choose(const dp_call *c, bool by_attribute, bool holds_wanted)
{
    dp_value list;
    dp_view attribute = dp_view_of(NULL, 0);
    const size_t first = by_attribute ? 1 : 0;
    const dp_value *const test = dp_call_argument(c, first, NULL);
    if (by_attribute) {
        DP_TRY(dp_call_text_argument(c, 0, NULL, &attribute));
    }
    if (test != NULL && test->kind != DP_TEXT) {
        return dp_call_refuse(c, "needs the name of a test");
    }
    DP_TRY(dp_call_items(c, &list));
    DP_TRY(dp_value_list(&c->run->arena, c->out));
    const size_t used = first + 1;
    const size_t count = c->arguments->count;
    const dp_arguments rest = {.values = count > used ? &c->arguments->values[used] : NULL,
                               .count = count > used ? count - used : 0};
    node named = *c->node;
    named.text = test != NULL ? test->u.text : dp_view_text("");
    for (size_t i = 0; i < list.u.list->count; i++) {
        const dp_value *const item = &list.u.list->items[i];
        const dp_value of = by_attribute ? dp_run_attribute(item, attribute) : *item;
        bool holds = dp_value_true(&of);
        DP_TRY(dp_run_charge(c->run, c->node, 1));
        if (test != NULL) {
            DP_TRY(dp_run_test(c->run, &named, &of, &rest, &holds));
        }
        if (holds == holds_wanted) {
            DP_TRY(dp_list_add(&c->run->arena, c->out->u.list, *item));
        }
    }
    return DP_OK;
}

static dp_status do_selectattr(const dp_call *c)
{
    return choose(c, true, true);
}

static dp_status do_rejectattr(const dp_call *c)
{
    return choose(c, true, false);
}

static dp_status do_select(const dp_call *c)
{
    return choose(c, false, true);
}

static dp_status do_reject(const dp_call *c)
{
    return choose(c, false, false);
}

static dp_status do_map(const dp_call *c)
{
    dp_value list;
    dp_value made;
    const dp_value *const attribute = dp_call_argument(c, SIZE_MAX, "attribute");
    const dp_value *const filter = dp_call_argument(c, 0, NULL);
    const dp_value *const by = attribute != NULL ? attribute : filter;
    if (by == NULL || by->kind != DP_TEXT) {
        return dp_call_refuse(c, "needs the name of an attribute or of a filter");
    }
    DP_TRY(dp_call_items(c, &list));
    DP_TRY(dp_value_list(&c->run->arena, &made));
    node named = *c->node;
    named.text = by->u.text;
    const dp_arguments none = {.count = 0};
    for (size_t i = 0; i < list.u.list->count; i++) {
        dp_value value = dp_run_attribute(&list.u.list->items[i], by->u.text);
        DP_TRY(dp_run_charge(c->run, c->node, 1));
        if (attribute == NULL) {
            if (++c->run->depth > DP_TEMPLATE_DEPTH_MAX) { /* map('map') */
                return dp_call_refuse(c, "nests too deep");
            }
            DP_TRY(dp_run_filter(c->run, &named, &list.u.list->items[i], &none, &value));
            c->run->depth--;
        }
        DP_TRY(dp_list_add(&c->run->arena, made.u.list, value));
    }
    return dp_call_give(c, made);
}

static int entry_order(const void *a, const void *b)
{
    const dp_template_entry *const x = a;
    const dp_template_entry *const y = b;
    const size_t least = x->key.size < y->key.size ? x->key.size : y->key.size;
    const int order = least > 0 ? memcmp(x->key.data, y->key.data, least) : 0;
    return order != 0 ? order : (x->key.size > y->key.size) - (x->key.size < y->key.size);
}

static dp_status do_dictsort(const dp_call *c)
{
    if (c->of->kind != DP_DICT || c->arguments->count > 0) {
        return dp_call_refuse(c, "is of an object, without arguments");
    }
    const dp_template_dict *const from = c->of->u.dict;
    dp_value sorted;
    DP_TRY(dp_value_dict(&c->run->arena, &sorted));
    for (size_t i = 0; i < from->count; i++) {
        DP_TRY(dp_dict_add(&c->run->arena, sorted.u.dict, from->entries[i].key,
                           from->entries[i].value));
    }
    if (from->count > 0) {
        qsort(sorted.u.dict->entries, from->count, sizeof *from->entries, entry_order);
    }
    const dp_call inner = {c->run, c->node, &sorted, c->arguments, c->out};
    return do_items(&inner);
}

static dp_status do_indent(const dp_call *c)
{
    dp_view text;
    dp_view made;
    dp_buf buf;
    const dp_value *const width = dp_call_argument(c, 0, "width");
    const dp_value *const first = dp_call_argument(c, 1, "first");
    const int64_t spaces = width != NULL && width->kind == DP_INT ? width->u.integer : 4;
    DP_TRY(dp_call_text(c, &text));
    if (spaces < 0 || spaces > 64) {
        return dp_call_refuse(c, "takes 0 to 64 blanks");
    }
    dp_status status = DP_OK;
    bool begins = first != NULL && dp_value_true(first);
    dp_buf_init(&buf, DP_TEMPLATE_TEXT_MAX);
    for (size_t i = 0; i < text.size && status == DP_OK; i++) {
        for (int64_t s = 0; begins && text.data[i] != '\n' && s < spaces && status == DP_OK; s++) {
            status = dp_buf_append(&buf, dp_view_text(" "));
        }
        begins = text.data[i] == '\n';
        status = status == DP_OK ? dp_buf_append(&buf, dp_text_cut(text, i, 1)) : status;
    }
    if (status == DP_OK) {
        status = dp_text_join(&c->run->arena, dp_buf_view(&buf), dp_view_of(NULL, 0), &made);
    }
    dp_buf_close(&buf);
    return status == DP_OK ? dp_call_give_text(c, made) : status;
}

const dp_call_row dp_call_filters[] = {{"tojson", do_tojson},
                                       {"length", do_length},
                                       {"count", do_length},
                                       {"first", do_first},
                                       {"last", do_last},
                                       {"join", do_join},
                                       {"default", do_default},
                                       {"d", do_default},
                                       {"string", do_string},
                                       {"safe", do_safe},
                                       {"int", do_int},
                                       {"float", do_float},
                                       {"abs", do_abs},
                                       {"list", do_list},
                                       {"items", do_items},
                                       {"dictsort", do_dictsort},
                                       {"selectattr", do_selectattr},
                                       {"rejectattr", do_rejectattr},
                                       {"select", do_select},
                                       {"reject", do_reject},
                                       {"map", do_map},
                                       {"reverse", do_reverse},
                                       {"unique", do_unique},
                                       {"indent", do_indent},
                                       {NULL, NULL}};

const dp_call_row dp_call_dict_methods[] = {
    {"items", do_items}, {"keys", do_keys}, {"values", do_values}, {"get", do_get}, {NULL, NULL}};
