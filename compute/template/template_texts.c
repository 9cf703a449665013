/* Methods of texts, and filters that are the same. */
#include <string.h>

#include "compute/template/template_call.h"

/* ---- Texts: filters and methods alike. */

/* Counts work that may look at each byte of one text for each of the other. */
static dp_status charge_pairs(const dp_call *c, dp_view a, dp_view b)
{
    uint64_t pairs;
    return dp_run_charge(c->run, c->node,
                         __builtin_mul_overflow((uint64_t)a.size, (uint64_t)b.size, &pairs)
                             ? DP_TEMPLATE_STEPS_MAX
                             : pairs / DP_STEP_BYTES);
}

static dp_status strip(const dp_call *c, bool left, bool right)
{
    dp_view text;
    const dp_value *const set = dp_call_argument(c, 0, "chars");
    DP_TRY(dp_call_text(c, &text));
    if (set != NULL && set->kind != DP_TEXT && set->kind != DP_NONE) {
        return dp_call_refuse(c, "needs a text");
    }
    const bool given = set != NULL && set->kind == DP_TEXT;
    DP_TRY(given ? charge_pairs(c, text, set->u.text) : DP_OK);
    return dp_call_give_text(c, dp_text_strip(text, given ? &set->u.text : NULL, left, right));
}

static dp_status do_strip(const dp_call *c)
{
    return strip(c, true, true);
}

static dp_status do_lstrip(const dp_call *c)
{
    return strip(c, true, false);
}

static dp_status do_rstrip(const dp_call *c)
{
    return strip(c, false, true);
}

static dp_status do_upper(const dp_call *c)
{
    dp_view text;
    uint8_t *room;
    DP_TRY(dp_call_text(c, &text));
    DP_TRY(dp_call_copy(c, text, &room));
    for (size_t i = 0; i < text.size; i++) {
        room[i] = dp_is_lower(room[i]) ? (uint8_t)(room[i] - 32) : room[i];
    }
    return DP_OK;
}

static dp_status do_lower(const dp_call *c)
{
    dp_view text;
    uint8_t *room;
    DP_TRY(dp_call_text(c, &text));
    DP_TRY(dp_call_copy(c, text, &room));
    for (size_t i = 0; i < text.size; i++) {
        room[i] = dp_is_upper(room[i]) ? (uint8_t)(room[i] + 32) : room[i];
    }
    return DP_OK;
}

/* Each word, or the first alone, begins with a capital, and goes on with small letters. */
static dp_status capitals(const dp_call *c, bool each)
{
    uint8_t *room;
    bool inside = false;
    DP_TRY(do_lower(c));
    const dp_view text = c->out->u.text;
    DP_TRY(dp_call_copy(c, text, &room));
    for (size_t i = 0; i < text.size; i++) {
        room[i] = dp_is_lower(room[i]) && !inside ? (uint8_t)(room[i] - 32) : room[i];
        inside = !each || dp_is_lower(room[i]) || dp_is_upper(room[i]) || room[i] >= 0x80;
    }
    return DP_OK;
}

static dp_status do_title(const dp_call *c)
{
    return capitals(c, true);
}

/* The filter: a word begins behind a blank, a hyphen or an opening bracket alone. */
static dp_status do_title_filter(const dp_call *c)
{
    uint8_t *room;
    bool inside = false;
    DP_TRY(do_lower(c));
    const dp_view text = c->out->u.text;
    DP_TRY(dp_call_copy(c, text, &room));
    for (size_t i = 0; i < text.size; i++) {
        const uint8_t ch = text.data[i];
        room[i] = dp_is_lower(ch) && !inside ? (uint8_t)(ch - 32) : ch;
        inside = strchr("-({[<", ch == 0 ? 'x' : ch) == NULL && dp_text_blank(text, i) == 0;
    }
    return DP_OK;
}

static dp_status do_capitalize(const dp_call *c)
{
    return capitals(c, false);
}

static dp_status do_replace(const dp_call *c)
{
    dp_view text;
    dp_view from;
    dp_view to;
    dp_buf buf;
    const dp_value *const most = dp_call_argument(c, 2, "count");
    DP_TRY(dp_call_text(c, &text));
    DP_TRY(dp_call_text_argument(c, 0, "old", &from));
    DP_TRY(dp_call_text_argument(c, 1, "new", &to));
    if (from.size == 0) {
        return dp_call_refuse(c, "does not replace an empty text");
    }
    int64_t left = most != NULL && most->kind == DP_INT ? most->u.integer : -1;
    size_t at = 0;
    size_t found;
    dp_status status = DP_OK;
    dp_buf_init(&buf, DP_TEMPLATE_TEXT_MAX);
    while (status == DP_OK && left != 0 && dp_text_find(text, from, at, &found)) {
        status = dp_buf_append(&buf, dp_text_cut(text, at, found - at));
        status = status == DP_OK ? dp_buf_append(&buf, to) : status;
        at = found + from.size;
        left -= left > 0;
    }
    if (status == DP_OK) {
        status = dp_buf_append(&buf, dp_text_cut(text, at, text.size - at));
    }
    dp_view made;
    if (status == DP_OK) {
        status = dp_text_join(&c->run->arena, dp_buf_view(&buf), dp_view_of(NULL, 0), &made);
    }
    dp_buf_close(&buf);
    return status == DP_OK ? dp_call_give_text(c, made) : status;
}

/* ---- Methods of texts. */

static dp_status add_piece(const dp_call *c, dp_view piece)
{
    return dp_list_add(&c->run->arena, c->out->u.list, dp_value_text(piece));
}

/* By blanks, of which several are one. */
static dp_status split_blanks(const dp_call *c, dp_view text, int64_t left)
{
    size_t at = 0;
    for (;;) {
        for (size_t n = dp_text_blank(text, at); n > 0; n = dp_text_blank(text, at)) {
            at += n;
        }
        if (at == text.size) {
            return DP_OK;
        }
        size_t end = at;
        while (end < text.size && (left == 0 || dp_text_blank(text, end) == 0)) {
            end += dp_text_character(text, end);
        }
        DP_TRY(add_piece(c, dp_text_cut(text, at, end - at)));
        at = end;
        left -= left > 0;
    }
}

static dp_status do_split(const dp_call *c)
{
    const dp_value *const by = dp_call_argument(c, 0, "sep");
    const dp_value *const most = dp_call_argument(c, 1, "maxsplit");
    const dp_view text = c->of->u.text;
    int64_t left = most != NULL && most->kind == DP_INT ? most->u.integer : -1;
    size_t at = 0;
    size_t found;
    DP_TRY(dp_value_list(&c->run->arena, c->out));
    if (by == NULL || by->kind == DP_NONE) {
        return split_blanks(c, text, left);
    }
    if (by->kind != DP_TEXT || by->u.text.size == 0) {
        return dp_call_refuse(c, "needs a text that is not empty");
    }
    while (left != 0 && dp_text_find(text, by->u.text, at, &found)) {
        DP_TRY(add_piece(c, dp_text_cut(text, at, found - at)));
        at = found + by->u.text.size;
        left -= left > 0;
    }
    return add_piece(c, dp_text_cut(text, at, text.size - at));
}

/* The last place where a text is found before an end. */
static bool find_last(dp_view text, dp_view part, size_t end, size_t *found)
{
    for (size_t at = end >= part.size ? end - part.size + 1 : 0; at > 0; at--) {
        if (memcmp(text.data + at - 1, part.data, part.size) == 0) {
            *found = at - 1;
            return true;
        }
    }
    return false;
}

static dp_status do_rsplit(const dp_call *c)
{
    const dp_value *const most = dp_call_argument(c, 1, "maxsplit");
    const dp_view text = c->of->u.text;
    dp_view by = dp_view_of(NULL, 0);
    dp_value pieces;
    size_t end = text.size;
    size_t found;
    int64_t left = most != NULL && most->kind == DP_INT ? most->u.integer : -1;
    DP_TRY(dp_call_text_argument(c, 0, "sep", &by));
    if (by.size == 0) {
        return dp_call_refuse(c, "needs a text that is not empty");
    }
    DP_TRY(charge_pairs(c, text, by));
    DP_TRY(dp_value_list(&c->run->arena, &pieces));
    while (left != 0 && find_last(text, by, end, &found)) {
        const size_t from = found + by.size;
        const dp_value piece = dp_value_text(dp_text_cut(text, from, end - from));
        DP_TRY(dp_list_add(&c->run->arena, pieces.u.list, piece));
        end = found;
        left -= left > 0;
    }
    DP_TRY(dp_value_list(&c->run->arena, c->out));
    DP_TRY(add_piece(c, dp_view_of(text.data, end)));
    for (size_t i = pieces.u.list->count; i > 0; i--) {
        DP_TRY(dp_list_add(&c->run->arena, c->out->u.list, pieces.u.list->items[i - 1]));
    }
    return DP_OK;
}

static bool stands_at(dp_view text, dp_view part, bool end)
{
    return part.size <= text.size &&
           (part.size == 0 ||
            memcmp(end ? text.data + text.size - part.size : text.data, part.data, part.size) == 0);
}

static dp_status edge(const dp_call *c, bool end)
{
    const dp_value *const parts = dp_call_argument(c, 0, NULL);
    bool holds = false;
    if (parts != NULL && parts->kind == DP_LIST) {
        for (size_t i = 0; i < parts->u.list->count; i++) {
            const dp_value *const part = &parts->u.list->items[i];
            DP_TRY(dp_run_charge_for(c->run, c->node, part));
            holds = holds || (part->kind == DP_TEXT && stands_at(c->of->u.text, part->u.text, end));
        }
        return dp_call_give(c, dp_value_bool(holds));
    }
    dp_view part = dp_view_of(NULL, 0);
    DP_TRY(dp_call_text_argument(c, 0, NULL, &part));
    return dp_call_give(c, dp_value_bool(stands_at(c->of->u.text, part, end)));
}

static dp_status do_startswith(const dp_call *c)
{
    return edge(c, false);
}

static dp_status do_endswith(const dp_call *c)
{
    return edge(c, true);
}

static dp_status without(const dp_call *c, bool end)
{
    dp_view part = dp_view_of(NULL, 0);
    dp_view text = c->of->u.text;
    DP_TRY(dp_call_text_argument(c, 0, NULL, &part));
    if (stands_at(text, part, end)) {
        text = dp_text_cut(text, end ? 0 : part.size, text.size - part.size);
    }
    return dp_call_give_text(c, text);
}

static dp_status do_removeprefix(const dp_call *c)
{
    return without(c, false);
}

static dp_status do_removesuffix(const dp_call *c)
{
    return without(c, true);
}

static dp_status do_find(const dp_call *c)
{
    dp_view part;
    size_t at;
    const dp_view text = c->of->u.text;
    DP_TRY(dp_call_text_argument(c, 0, NULL, &part));
    const bool found = dp_text_find(text, part, 0, &at);
    const int64_t index = found ? (int64_t)dp_text_length(dp_view_of(text.data, at)) : -1;
    return dp_call_give(c, dp_value_int(index));
}

static dp_status do_count(const dp_call *c)
{
    dp_view part;
    size_t at = 0;
    int64_t count = 0;
    DP_TRY(dp_call_text_argument(c, 0, NULL, &part));
    if (part.size == 0) {
        return dp_call_refuse(c, "needs a text that is not empty");
    }
    while (dp_text_find(c->of->u.text, part, at, &at)) {
        at += part.size;
        count++;
    }
    return dp_call_give(c, dp_value_int(count));
}

dp_status dp_call_join(const dp_call *c, dp_view between, dp_view attribute,
                       const dp_template_list *list)
{
    dp_buf buf;
    dp_view made;
    dp_status status = DP_OK;
    dp_buf_init(&buf, DP_TEMPLATE_TEXT_MAX);
    for (size_t i = 0; i < list->count && status == DP_OK; i++) {
        dp_value item = list->items[i];
        status = attribute.size > 0
                     ? dp_run_path(c->run, c->node, &list->items[i], attribute, NULL, &item)
                     : DP_OK;
        status = status == DP_OK && i > 0 ? dp_buf_append(&buf, between) : status;
        status = status == DP_OK ? dp_value_write(&item, false, &buf) : status;
    }
    if (status == DP_OK) {
        status = dp_text_join(&c->run->arena, dp_buf_view(&buf), dp_view_of(NULL, 0), &made);
    }
    dp_buf_close(&buf);
    DP_TRY(status);
    return dp_call_give_text(c, made);
}

static dp_status do_join_method(const dp_call *c)
{
    dp_value list;
    const dp_value *const items = dp_call_argument(c, 0, NULL);
    if (items == NULL) {
        return dp_call_refuse(c, "needs a list");
    }
    DP_TRY(dp_run_items(c->run, c->node, items, &list));
    return dp_call_join(c, c->of->u.text, dp_view_of(NULL, 0), list.u.list);
}

static dp_status do_isdigit(const dp_call *c)
{
    const dp_view text = c->of->u.text;
    bool holds = text.size > 0;
    for (size_t i = 0; i < text.size; i++) {
        holds = holds && text.data[i] >= '0' && text.data[i] <= '9';
    }
    return dp_call_give(c, dp_value_bool(holds));
}

const dp_call_row dp_call_text_methods[] = {{"strip", do_strip, "-"},
                                            {"lstrip", do_lstrip, "-"},
                                            {"rstrip", do_rstrip, "-"},
                                            {"split", do_split, "sep maxsplit"},
                                            {"rsplit", do_rsplit, "sep maxsplit"},
                                            {"startswith", do_startswith, "-"},
                                            {"endswith", do_endswith, "-"},
                                            {"removeprefix", do_removeprefix, "-"},
                                            {"removesuffix", do_removesuffix, "-"},
                                            {"upper", do_upper, ""},
                                            {"lower", do_lower, ""},
                                            {"title", do_title, ""},
                                            {"capitalize", do_capitalize, ""},
                                            {"replace", do_replace, "- - count"},
                                            {"find", do_find, "-"},
                                            {"count", do_count, "-"},
                                            {"join", do_join_method, "-"},
                                            {"isdigit", do_isdigit, ""},
                                            {NULL, NULL, NULL}};

const dp_call_row dp_call_text_filters[] = {{"trim", do_strip, "chars"},
                                            {"upper", do_upper, ""},
                                            {"lower", do_lower, ""},
                                            {"title", do_title_filter, ""},
                                            {"capitalize", do_capitalize, ""},
                                            {"replace", do_replace, "old new count"},
                                            {NULL, NULL, NULL}};
