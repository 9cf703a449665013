#include "compute/template/template_value.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "compute/template/template.h"

enum { PIECE_BYTES = 1 << 16, ALIGN = 16 };

/* ---- Memory. */

typedef union piece {
    union piece *older;
    max_align_t align;
} piece;

void *dp_arena_take(dp_arena *arena, size_t bytes)
{
    const size_t size = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (size < bytes || size > arena->bound) {
        arena->refused = true;
        return NULL;
    }
    if (arena->newest == NULL || size > arena->left) {
        const size_t room = size > PIECE_BYTES ? size : PIECE_BYTES;
        if (room > arena->bound - arena->used) {
            arena->refused = true;
            return NULL;
        }
        piece *const made = dp_alloc(1, sizeof(piece) + room);
        if (made == NULL) {
            return NULL;
        }
        made->older = arena->newest;
        arena->newest = made;
        arena->left = room;
        arena->used += room;
        arena->end = (uint8_t *)(made + 1) + room;
    }
    void *const taken = arena->end - arena->left;
    arena->left -= size;
    return taken;
}

void dp_arena_close(dp_arena *arena)
{
    piece *at = arena->newest;
    while (at != NULL) {
        piece *const older = at->older;
        dp_free(at);
        at = older;
    }
    *arena = (dp_arena){.bound = arena->bound};
}

/* ---- Values. */

bool dp_value_is_number(const dp_value *v)
{
    return v->kind == DP_INT || v->kind == DP_FLOAT || v->kind == DP_BOOL;
}

double dp_value_real(const dp_value *v)
{
    dp_assert(dp_value_is_number(v));
    return v->kind == DP_FLOAT ? v->u.real
           : v->kind == DP_INT ? (double)v->u.integer
                               : (double)v->u.truth;
}

bool dp_value_true(const dp_value *v)
{
    switch (v->kind) {
    case DP_UNDEFINED:
    case DP_NONE:
        return false;
    case DP_BOOL:
        return v->u.truth;
    case DP_INT:
        return v->u.integer != 0;
    case DP_FLOAT:
        return v->u.real != 0.0;
    case DP_TEXT:
        return v->u.text.size > 0;
    case DP_LIST:
        return v->u.list->count > 0;
    case DP_DICT:
        return v->u.dict->count > 0 || v->u.dict->is_namespace;
    case DP_MACRO:
    case DP_FUNCTION:
        return true;
    }
    return false;
}

const char *dp_value_name(const dp_value *v)
{
    static const char *const names[] = {"undefined", "none",      "a truth value", "an integer",
                                        "a number",  "a text",    "a list",        "an object",
                                        "a macro",   "a function"};
    return names[v->kind];
}

uint64_t dp_value_work(const dp_value *v)
{
    return v->kind == DP_TEXT   ? v->u.text.size / DP_STEP_BYTES
           : v->kind == DP_DICT ? v->u.dict->count / DP_STEP_ENTRIES
           : v->kind == DP_LIST ? v->u.list->count / DP_STEP_ENTRIES
                                : 0;
}

/* False: the steps are used up. */
static bool pay(uint64_t *left, uint64_t steps)
{
    *left = steps < *left ? *left - steps : 0;
    return *left > 0;
}

static bool equal_at(const dp_value *a, const dp_value *b, unsigned depth, uint64_t *left);

static bool lists_equal(const dp_template_list *a, const dp_template_list *b, unsigned depth,
                        uint64_t *left)
{
    bool equal = a->count == b->count;
    for (size_t i = 0; i < a->count && equal; i++) {
        equal = equal_at(&a->items[i], &b->items[i], depth, left);
    }
    return equal;
}

static bool dicts_equal(const dp_template_dict *a, const dp_template_dict *b, unsigned depth,
                        uint64_t *left)
{
    bool equal = a->count == b->count;
    for (size_t i = 0; i < a->count && equal; i++) {
        const dp_value *const other = dp_dict_get(b, a->entries[i].key);
        equal = other != NULL && pay(left, b->count / DP_STEP_ENTRIES) &&
                equal_at(&a->entries[i].value, other, depth, left);
    }
    return equal;
}

/* Of one kind, and no numbers. */
static bool alike_equal(const dp_value *a, const dp_value *b, unsigned depth, uint64_t *left)
{
    switch (a->kind) {
    case DP_TEXT:
        return a->u.text.size == b->u.text.size && pay(left, dp_value_work(a)) &&
               dp_view_equal(a->u.text, b->u.text);
    case DP_LIST:
        return a->u.list == b->u.list || lists_equal(a->u.list, b->u.list, depth + 1, left);
    case DP_DICT:
        return a->u.dict == b->u.dict || dicts_equal(a->u.dict, b->u.dict, depth + 1, left);
    case DP_MACRO:
        return a->u.macro == b->u.macro;
    case DP_FUNCTION:
        return a->u.function == b->u.function;
    case DP_UNDEFINED:
    case DP_NONE:
    case DP_BOOL:
    case DP_INT:
    case DP_FLOAT:
        return true;
    }
    return false;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as values nest, which is bounded */
static bool equal_at(const dp_value *a, const dp_value *b, unsigned depth, uint64_t *left)
{
    if (!pay(left, depth > DP_TEMPLATE_DEPTH_MAX ? UINT64_MAX : 1)) {
        return false;
    }
    if (a->kind == DP_INT && b->kind == DP_INT) {
        return a->u.integer == b->u.integer;
    }
    if (dp_value_is_number(a) && dp_value_is_number(b)) {
        return dp_value_real(a) == dp_value_real(b);
    }
    return a->kind == b->kind && alike_equal(a, b, depth, left);
}

bool dp_value_equal(const dp_value *a, const dp_value *b, uint64_t *left)
{
    return equal_at(a, b, 0, left);
}

/* ---- Lists and dicts. */

dp_status dp_value_list(dp_arena *arena, dp_value *out)
{
    dp_template_list *const list = dp_arena_take(arena, sizeof *list);
    if (list == NULL) {
        return DP_NOMEM;
    }
    *out = (dp_value){.kind = DP_LIST, .u.list = list};
    return DP_OK;
}

dp_status dp_value_dict(dp_arena *arena, dp_value *out)
{
    dp_template_dict *const dict = dp_arena_take(arena, sizeof *dict);
    if (dict == NULL) {
        return DP_NOMEM;
    }
    *out = (dp_value){.kind = DP_DICT, .u.dict = dict};
    return DP_OK;
}

/* Room for one more of so many bytes each: a copy of twice the room. */
static dp_status grow(dp_arena *arena, void **items, size_t count, size_t *room, size_t each)
{
    if (count < *room) {
        return DP_OK;
    }
    const size_t more = *room == 0 ? 4 : 2 * *room;
    void *const wider = dp_arena_take(arena, more * each);
    if (wider == NULL) {
        return DP_NOMEM;
    }
    if (count > 0) {
        memcpy(wider, *items, count * each);
    }
    *items = wider;
    *room = more;
    return DP_OK;
}

dp_status dp_list_add(dp_arena *arena, dp_template_list *list, dp_value value)
{
    void *items = list->items;
    DP_TRY(grow(arena, &items, list->count, &list->room, sizeof value));
    list->items = items;
    list->items[list->count++] = value;
    return DP_OK;
}

static dp_template_entry *find(const dp_template_dict *dict, dp_view key)
{
    for (size_t i = 0; i < dict->count; i++) {
        if (dp_view_equal(dict->entries[i].key, key)) {
            return &dict->entries[i];
        }
    }
    return NULL;
}

dp_status dp_dict_add(dp_arena *arena, dp_template_dict *dict, dp_view key, dp_value value)
{
    void *entries = dict->entries;
    DP_TRY(grow(arena, &entries, dict->count, &dict->room, sizeof *dict->entries));
    dict->entries = entries;
    dict->entries[dict->count++] = (dp_template_entry){key, value};
    return DP_OK;
}

dp_status dp_dict_set(dp_arena *arena, dp_template_dict *dict, dp_view key, dp_value value)
{
    dp_template_entry *const there = find(dict, key);
    if (there == NULL) {
        return dp_dict_add(arena, dict, key, value);
    }
    there->value = value;
    return DP_OK;
}

const dp_value *dp_dict_get(const dp_template_dict *dict, dp_view key)
{
    const dp_template_entry *const there = find(dict, key);
    return there != NULL ? &there->value : NULL;
}

dp_status dp_text_join(dp_arena *arena, dp_view a, dp_view b, dp_view *out)
{
    uint8_t *const room = dp_arena_take(arena, a.size + b.size + 1);
    if (room == NULL) {
        return DP_NOMEM;
    }
    if (a.size > 0) {
        memcpy(room, a.data, a.size);
    }
    if (b.size > 0) {
        memcpy(room + a.size, b.data, b.size);
    }
    *out = dp_view_of(room, a.size + b.size);
    return DP_OK;
}

/* ---- From JSON. */

static dp_status json_at(dp_arena *arena, json_t *json, unsigned depth, dp_value *out);

static dp_status list_of(dp_arena *arena, json_t *json, unsigned depth, dp_value *out)
{
    DP_TRY(dp_value_list(arena, out));
    for (size_t i = 0; i < json_array_size(json); i++) {
        dp_value item;
        DP_TRY(json_at(arena, json_array_get(json, i), depth + 1, &item));
        DP_TRY(dp_list_add(arena, out->u.list, item));
    }
    return DP_OK;
}

static dp_status dict_of(dp_arena *arena, json_t *json, unsigned depth, dp_value *out)
{
    DP_TRY(dp_value_dict(arena, out));
    void *at = json_object_iter(json);
    for (; at != NULL; at = json_object_iter_next(json, at)) {
        dp_value value;
        const dp_view key = dp_view_text(json_object_iter_key(at));
        DP_TRY(json_at(arena, json_object_iter_value(at), depth + 1, &value));
        DP_TRY(dp_dict_add(arena, out->u.dict, key, value));
    }
    return DP_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by depth */
static dp_status json_at(dp_arena *arena, json_t *json, unsigned depth, dp_value *out)
{
    if (depth > DP_TEMPLATE_DEPTH_MAX) {
        return DP_TOOBIG;
    }
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        return dict_of(arena, json, depth, out);
    case JSON_ARRAY:
        return list_of(arena, json, depth, out);
    case JSON_STRING:
        *out = dp_value_text(dp_view_of(json_string_value(json), json_string_length(json)));
        return DP_OK;
    case JSON_INTEGER:
        *out = dp_value_int(json_integer_value(json));
        return DP_OK;
    case JSON_REAL:
        *out = (dp_value){.kind = DP_FLOAT, .u.real = json_real_value(json)};
        return DP_OK;
    case JSON_TRUE:
    case JSON_FALSE:
        *out = dp_value_bool(json_is_true(json));
        return DP_OK;
    case JSON_NULL:
        break;
    }
    *out = dp_value_none();
    return DP_OK;
}

dp_status dp_value_of_json(dp_arena *arena, json_t *json, dp_value *out)
{
    return json_at(arena, json, 0, out);
}

/* ---- Characters. */

size_t dp_text_length(dp_view text)
{
    size_t length = 0;
    for (size_t i = 0; i < text.size; i++) {
        length += (text.data[i] & 0xc0) != 0x80;
    }
    return length;
}

size_t dp_text_offset(dp_view text, size_t index)
{
    size_t at = 0;
    while (at < text.size) {
        if ((text.data[at] & 0xc0) != 0x80) {
            if (index == 0) {
                return at;
            }
            index--;
        }
        at++;
    }
    return at;
}

bool dp_text_find(dp_view text, dp_view part, size_t from, size_t *at)
{
    if (part.size > text.size || from > text.size - part.size) {
        return false;
    }
    if (part.size == 0) {
        *at = from;
        return true;
    }
    const uint8_t *const found = memmem(text.data + from, text.size - from, part.data, part.size);
    if (found == NULL) {
        return false;
    }
    *at = (size_t)(found - text.data);
    return true;
}

size_t dp_text_character(dp_view text, size_t at)
{
    size_t n = 1;
    while (at + n < text.size && (text.data[at + n] & 0xc0) == 0x80) {
        n++;
    }
    return n;
}

/* Blanks of Python's str.strip(). */
static bool is_blank(dp_view c)
{
    static const char *const wide[] = {"\xc2\x85", "\xc2\xa0", "\xe1\x9a\x80", "\xe2\x81\x9f",
                                       "\xe3\x80\x80"};
    if (c.size == 1) {
        return c.data[0] == ' ' || (c.data[0] >= 9 && c.data[0] <= 13) ||
               (c.data[0] >= 0x1c && c.data[0] <= 0x1f);
    }
    if (c.size == 3 && c.data[0] == 0xe2 && c.data[1] == 0x80) {
        return c.data[2] <= 0x8a || c.data[2] == 0xa8 || c.data[2] == 0xa9 || c.data[2] == 0xaf;
    }
    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++) {
        if (dp_view_equal(c, dp_view_text(wide[i]))) {
            return true;
        }
    }
    return false;
}

/* Where the character begins that ends here. */
static size_t begin_of(dp_view text, size_t end)
{
    size_t from = end - 1;
    while (from > 0 && (text.data[from] & 0xc0) == 0x80) {
        from--;
    }
    return from;
}

size_t dp_text_blank(dp_view text, size_t at)
{
    const size_t size = at < text.size ? dp_text_character(text, at) : 0;
    return size > 0 && is_blank(dp_text_cut(text, at, size)) ? size : 0;
}

size_t dp_text_blank_before(dp_view text, size_t end)
{
    const size_t from = end > 0 ? begin_of(text, end) : 0;
    return end > from && is_blank(dp_text_cut(text, from, end - from)) ? end - from : 0;
}

static bool in_set(dp_view c, const dp_view *set)
{
    for (size_t at = 0; at < set->size;) {
        const size_t n = dp_text_character(*set, at);
        if (dp_view_equal(c, dp_view_of(set->data + at, n))) {
            return true;
        }
        at += n;
    }
    return false;
}

dp_view dp_text_strip(dp_view text, const dp_view *set, bool left, bool right)
{
    size_t begin = 0;
    size_t end = text.size;
    while (left && begin < end) {
        const size_t n = dp_text_character(text, begin);
        const dp_view c = dp_text_cut(text, begin, n);
        if (!(set != NULL ? in_set(c, set) : is_blank(c))) {
            break;
        }
        begin += n;
    }
    while (right && end > begin) {
        size_t from = end - 1;
        while (from > begin && (text.data[from] & 0xc0) == 0x80) {
            from--;
        }
        const dp_view c = dp_text_cut(text, from, end - from);
        if (!(set != NULL ? in_set(c, set) : is_blank(c))) {
            break;
        }
        end = from;
    }
    return dp_text_cut(text, begin, end - begin);
}
