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

/* The beginning of each inner line: a number of blanks, or a text. */
static dp_status indent_of(const dp_call *c, const dp_value *given, dp_view *indent)
{
    enum { BLANKS_MAX = 64 };
    static const char blanks[BLANKS_MAX + 1] =
        "                                                                ";
    if (given->kind == DP_TEXT) {
        *indent = given->u.text;
        return DP_OK;
    }
    const int64_t count = given->kind == DP_INT    ? given->u.integer
                          : given->kind == DP_BOOL ? given->u.truth
                                                   : BLANKS_MAX + 1;
    if (count > BLANKS_MAX) {
        return dp_call_refuse(c, "takes 0 to 64 blanks, or a text");
    }
    *indent = dp_view_of((const uint8_t *)blanks, count > 0 ? (size_t)count : 0);
    return DP_OK;
}

static dp_status json_style(const dp_call *c, dp_json_style *style)
{
    const dp_value *const ascii = dp_call_argument(c, 0, "ensure_ascii");
    const dp_value *const indent = dp_call_argument(c, 1, "indent");
    const dp_value *const signs = dp_call_argument(c, 2, "separators");
    *style = (dp_json_style){.ascii_alone = ascii != NULL && dp_value_true(ascii),
                             .lines = indent != NULL && indent->kind != DP_NONE,
                             .colon = dp_view_text(": ")};
    style->comma = dp_view_text(style->lines ? "," : ", ");
    if (style->lines) {
        DP_TRY(indent_of(c, indent, &style->indent));
    }
    if (signs == NULL || signs->kind == DP_NONE) {
        return DP_OK;
    }
    const dp_template_list *const two = signs->kind == DP_LIST ? signs->u.list : NULL;
    if (two == NULL || two->count != 2 || two->items[0].kind != DP_TEXT ||
        two->items[1].kind != DP_TEXT) {
        return dp_call_refuse(c, "has two texts as separators");
    }
    style->comma = two->items[0].u.text;
    style->colon = two->items[1].u.text;
    return DP_OK;
}

static int order_of(dp_view a, dp_view b)
{
    const size_t least = a.size < b.size ? a.size : b.size;
    const int order = least > 0 ? memcmp(a.data, b.data, least) : 0;
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

static int entry_order(const void *a, const void *b)
{
    const dp_template_entry *const x = a;
    const dp_template_entry *const y = b;
    return order_of(x->key, y->key);
}

static dp_status sorted_at(const dp_call *c, const dp_value *of, unsigned depth, dp_value *out);

static dp_status sorted_dict(const dp_call *c, const dp_template_dict *of, unsigned depth,
                             dp_value *out)
{
    DP_TRY(dp_value_dict(&c->run->arena, out));
    for (size_t i = 0; i < of->count; i++) {
        dp_value value;
        DP_TRY(sorted_at(c, &of->entries[i].value, depth + 1, &value));
        DP_TRY(dp_dict_add(&c->run->arena, out->u.dict, of->entries[i].key, value));
    }
    if (of->count > 0) {
        qsort(out->u.dict->entries, of->count, sizeof *of->entries, entry_order);
    }
    return DP_OK;
}

/* A copy whose objects have their keys in order.
 * NOLINTNEXTLINE(misc-no-recursion): bounded by depth */
static dp_status sorted_at(const dp_call *c, const dp_value *of, unsigned depth, dp_value *out)
{
    if (depth > DP_TEMPLATE_DEPTH_MAX) {
        return dp_run_fail(c->run, c->node, DP_TOOBIG, "a value nests too deep");
    }
    DP_TRY(dp_run_charge(c->run, c->node, 1));
    if (of->kind == DP_DICT) {
        return sorted_dict(c, of->u.dict, depth, out);
    }
    *out = *of;
    if (of->kind != DP_LIST) {
        return DP_OK;
    }
    DP_TRY(dp_value_list(&c->run->arena, out));
    for (size_t i = 0; i < of->u.list->count; i++) {
        dp_value item;
        DP_TRY(sorted_at(c, &of->u.list->items[i], depth + 1, &item));
        DP_TRY(dp_list_add(&c->run->arena, out->u.list, item));
    }
    return DP_OK;
}

static dp_status do_tojson(const dp_call *c)
{
    dp_buf buf;
    dp_view made;
    dp_json_style style;
    dp_value of = *c->of;
    const dp_value *const sorts = dp_call_argument(c, 3, "sort_keys");
    DP_TRY(json_style(c, &style));
    if (sorts != NULL && dp_value_true(sorts)) {
        DP_TRY(sorted_at(c, c->of, 0, &of));
    }
    dp_buf_init(&buf, DP_TEMPLATE_TEXT_MAX);
    dp_status status = dp_value_write_json(&of, &style, &buf);
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
    dp_view between = dp_view_of(NULL, 0);
    dp_view path = dp_view_of(NULL, 0);
    const dp_value *const given = dp_call_argument(c, 0, "d");
    const dp_value *const attribute = dp_call_argument(c, 1, "attribute");
    DP_TRY(dp_call_items(c, &list));
    if (given != NULL) {
        DP_TRY(dp_run_text(c->run, c->node, given, &between));
    }
    if (attribute != NULL && attribute->kind != DP_NONE) {
        DP_TRY(dp_call_text_argument(c, 1, "attribute", &path));
    }
    return dp_call_join(c, between, path, list.u.list);
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

/* The number that a text is; false: none. */
static bool real_of(dp_view text, double *real)
{
    char copy[64];
    char *end;
    const dp_view bare = dp_text_strip(text, NULL, true, true);
    snprintf(copy, sizeof copy, "%.*s", (int)(bare.size < 63 ? bare.size : 63),
             (const char *)bare.data);
    if (copy[strspn(copy, "0123456789+-.eE")] != '\0') { /* No hexadecimal one. */
        return false;
    }
    *real = strtod(copy, &end);
    return end != copy && *end == '\0' && bare.size < 63 && isfinite(*real);
}

/* The integer that a text is, in which "_" may stand between digits; false: none. *fits: in 64
 * bits. */
static bool integer_of(dp_view text, int64_t *integer, bool *fits)
{
    const dp_view bare = dp_text_strip(text, NULL, true, true);
    const bool sign = bare.size > 0 && (bare.data[0] == '-' || bare.data[0] == '+');
    const bool negative = sign && bare.data[0] == '-';
    bool digit = false;
    *integer = 0;
    *fits = true;
    for (size_t i = sign; i < bare.size; i++) {
        const uint8_t ch = bare.data[i];
        const bool joins = ch == '_' && digit;
        digit = ch >= '0' && ch <= '9';
        if (!digit && !joins) {
            return false;
        }
        if (digit) {
            *fits = *fits && !__builtin_mul_overflow(*integer, 10, integer) &&
                    !__builtin_add_overflow(*integer, negative ? '0' - ch : ch - '0', integer);
        }
    }
    return digit;
}

static dp_status do_int(const dp_call *c)
{
    const dp_value *const otherwise = dp_call_argument(c, 0, "default");
    double real = 0;
    int64_t integer = 0;
    bool fits = true;
    bool is = dp_value_is_number(c->of);
    if (c->of->kind == DP_INT) {
        return dp_call_give(c, *c->of);
    }
    if (c->of->kind == DP_TEXT && integer_of(c->of->u.text, &integer, &fits)) {
        return fits ? dp_call_give(c, dp_value_int(integer))
                    : dp_call_refuse(c, "is of a number that is too large");
    }
    if (is) {
        real = dp_value_real(c->of);
    } else {
        is = c->of->kind == DP_TEXT && real_of(c->of->u.text, &real);
    }
    if (is && fabs(real) >= 0x1p63) {
        return dp_call_refuse(c, "is of a number that is too large");
    }
    return dp_call_give(c, is && isfinite(real) ? dp_value_int((int64_t)real)
                           : otherwise != NULL  ? *otherwise
                                                : dp_value_int(0));
}

static dp_status do_float(const dp_call *c)
{
    double real = 0;
    const dp_value *const otherwise = dp_call_argument(c, 0, "default");
    if (dp_value_is_number(c->of)) {
        real = dp_value_real(c->of);
    } else if (c->of->kind != DP_TEXT || !real_of(c->of->u.text, &real)) {
        real = 0;
        if (otherwise != NULL) {
            return dp_call_give(c, *otherwise);
        }
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

/* A text in small letters, for comparisons; other values as they are. */
static dp_status fold(const dp_call *c, const dp_value *of, dp_value *out)
{
    uint8_t *room;
    const dp_call copy = {c->run, c->node, of, c->arguments, out};
    *out = *of;
    if (of->kind != DP_TEXT) {
        return DP_OK;
    }
    DP_TRY(dp_call_copy(&copy, of->u.text, &room));
    for (size_t i = 0; i < of->u.text.size; i++) {
        room[i] = dp_is_upper(room[i]) ? (uint8_t)(room[i] + 32) : room[i];
    }
    return DP_OK;
}

static dp_status do_unique(const dp_call *c)
{
    dp_value list;
    dp_value known;
    DP_TRY(dp_call_items(c, &list));
    DP_TRY(dp_value_list(&c->run->arena, &known));
    DP_TRY(dp_value_list(&c->run->arena, c->out));
    for (size_t i = 0; i < list.u.list->count; i++) {
        dp_value key;
        bool is = false;
        DP_TRY(fold(c, &list.u.list->items[i], &key));
        for (size_t j = 0; j < known.u.list->count && !is; j++) {
            DP_TRY(dp_run_equal(c->run, c->node, &key, &known.u.list->items[j], &is));
        }
        if (!is) {
            DP_TRY(dp_list_add(&c->run->arena, known.u.list, key));
            DP_TRY(dp_list_add(&c->run->arena, c->out->u.list, list.u.list->items[i]));
        }
    }
    return DP_OK;
}

/* The arguments behind the first ones, with their names. */
static dp_arguments rest_of(const dp_call *c, size_t used)
{
    const dp_arguments *const a = c->arguments;
    if (a->count <= used) {
        return (dp_arguments){.count = 0};
    }
    return (dp_arguments){.values = &a->values[used],
                          .count = a->count - used,
                          .names = a->names,
                          .n_names = a->n_names};
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
    const dp_arguments rest = rest_of(c, first + 1);
    node named = *c->node;
    named.text = test != NULL ? test->u.text : dp_view_text("");
    for (size_t i = 0; i < list.u.list->count; i++) {
        const dp_value *const item = &list.u.list->items[i];
        dp_value of = *item;
        DP_TRY(dp_run_charge(c->run, c->node, 1));
        if (by_attribute) {
            DP_TRY(dp_run_path(c->run, c->node, item, attribute, NULL, &of));
        }
        bool holds = dp_value_true(&of);
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

/* An attribute of each item. */
static dp_status map_attribute(const dp_call *c, const dp_template_list *list,
                               dp_template_list *made)
{
    static const dp_call_row row = {"map", NULL, "attribute default"};
    dp_view path = dp_view_of(NULL, 0);
    const dp_value *const otherwise = dp_call_argument(c, SIZE_MAX, "default");
    const bool has = otherwise != NULL && otherwise->kind != DP_NONE;
    DP_TRY(dp_call_check(c, &row, "filter"));
    DP_TRY(dp_call_text_argument(c, SIZE_MAX, "attribute", &path));
    for (size_t i = 0; i < list->count; i++) {
        dp_value value;
        DP_TRY(dp_run_charge(c->run, c->node, 1));
        DP_TRY(dp_run_path(c->run, c->node, &list->items[i], path, has ? otherwise : NULL, &value));
        DP_TRY(dp_list_add(&c->run->arena, made, value));
    }
    return DP_OK;
}

/* Each item as a filter changes it, with the arguments behind its name. */
static dp_status map_filter(const dp_call *c, const dp_template_list *list, dp_template_list *made)
{
    node named = *c->node;
    const dp_arguments rest = rest_of(c, 1);
    DP_TRY(dp_call_text_argument(c, 0, NULL, &named.text));
    for (size_t i = 0; i < list->count; i++) {
        dp_value value;
        DP_TRY(dp_run_charge(c->run, c->node, 1));
        if (++c->run->depth > DP_TEMPLATE_DEPTH_MAX) { /* map('map') */
            return dp_call_refuse(c, "nests too deep");
        }
        DP_TRY(dp_run_filter(c->run, &named, &list->items[i], &rest, &value));
        c->run->depth--;
        DP_TRY(dp_list_add(&c->run->arena, made, value));
    }
    return DP_OK;
}

static dp_status do_map(const dp_call *c)
{
    dp_value list;
    dp_value made;
    DP_TRY(dp_call_items(c, &list));
    DP_TRY(dp_value_list(&c->run->arena, &made));
    DP_TRY(c->arguments->count == c->arguments->n_names ? map_attribute(c, list.u.list, made.u.list)
                                                        : map_filter(c, list.u.list, made.u.list));
    return dp_call_give(c, made);
}

/* An entry of an object, with its key in small letters and its place. */
typedef struct place {
    dp_view key;
    const dp_template_entry *entry;
} place;

static int order_without_case(const void *a, const void *b)
{
    const place *const x = a;
    const place *const y = b;
    const int order = order_of(x->key, y->key);
    return order != 0 ? order : (x->entry > y->entry) - (x->entry < y->entry);
}

static dp_status do_dictsort(const dp_call *c)
{
    if (c->of->kind != DP_DICT) {
        return dp_call_refuse(c, "is of an object");
    }
    const dp_template_dict *const from = c->of->u.dict;
    dp_value sorted;
    place *const places = dp_arena_take(&c->run->arena, from->count * sizeof *places);
    if (places == NULL) {
        return DP_NOMEM;
    }
    for (size_t i = 0; i < from->count; i++) {
        const dp_value key = dp_value_text(from->entries[i].key);
        dp_value small;
        DP_TRY(fold(c, &key, &small));
        places[i] = (place){small.u.text, &from->entries[i]};
    }
    qsort(places, from->count, sizeof *places, order_without_case);
    DP_TRY(dp_value_dict(&c->run->arena, &sorted));
    for (size_t i = 0; i < from->count; i++) {
        DP_TRY(dp_dict_add(&c->run->arena, sorted.u.dict, places[i].entry->key,
                           places[i].entry->value));
    }
    const dp_call inner = {c->run, c->node, &sorted, c->arguments, c->out};
    return do_items(&inner);
}

static dp_status do_indent(const dp_call *c)
{
    dp_view text;
    dp_view made;
    dp_view indent = dp_view_text("    ");
    dp_buf buf;
    const dp_value *const width = dp_call_argument(c, 0, "width");
    const dp_value *const first = dp_call_argument(c, 1, "first");
    const dp_value *const blank = dp_call_argument(c, 2, "blank");
    const bool all = blank != NULL && dp_value_true(blank);
    DP_TRY(dp_call_text(c, &text));
    if (width != NULL) {
        DP_TRY(indent_of(c, width, &indent));
    }
    dp_status status = DP_OK;
    dp_buf_init(&buf, DP_TEMPLATE_TEXT_MAX);
    if (first != NULL && dp_value_true(first)) {
        status = dp_buf_append(&buf, indent);
    }
    for (size_t i = 0; i < text.size && status == DP_OK; i++) {
        const bool filled = i + 1 < text.size && text.data[i + 1] != '\n';
        status = dp_buf_append(&buf, dp_text_cut(text, i, 1));
        if (status == DP_OK && text.data[i] == '\n' && (all || filled)) {
            status = dp_buf_append(&buf, indent);
        }
    }
    if (status == DP_OK) {
        status = dp_text_join(&c->run->arena, dp_buf_view(&buf), dp_view_of(NULL, 0), &made);
    }
    dp_buf_close(&buf);
    return status == DP_OK ? dp_call_give_text(c, made) : status;
}

const dp_call_row dp_call_filters[] = {
    {"tojson", do_tojson, "ensure_ascii indent separators sort_keys"},
    {"length", do_length, ""},
    {"count", do_length, ""},
    {"first", do_first, ""},
    {"last", do_last, ""},
    {"join", do_join, "d attribute"},
    {"default", do_default, "default_value boolean"},
    {"d", do_default, "default_value boolean"},
    {"string", do_string, ""},
    {"safe", do_safe, ""},
    {"int", do_int, "default"},
    {"float", do_float, "default"},
    {"abs", do_abs, ""},
    {"list", do_list, ""},
    {"items", do_items, ""},
    {"dictsort", do_dictsort, ""},
    {"selectattr", do_selectattr, "..."},
    {"rejectattr", do_rejectattr, "..."},
    {"select", do_select, "..."},
    {"reject", do_reject, "..."},
    {"map", do_map, NULL},
    {"reverse", do_reverse, ""},
    {"unique", do_unique, ""},
    {"indent", do_indent, "width first blank"},
    {NULL, NULL, NULL}};

const dp_call_row dp_call_dict_methods[] = {{"items", do_items, ""},
                                            {"keys", do_keys, ""},
                                            {"values", do_values, ""},
                                            {"get", do_get, "- -"},
                                            {NULL, NULL, NULL}};
