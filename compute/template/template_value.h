/* Values of templates: made in the memory of one run, which goes as a whole. */
#ifndef DP_COMPUTE_TEMPLATE_TEMPLATE_VALUE_H
#define DP_COMPUTE_TEMPLATE_TEMPLATE_VALUE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/* Memory of a template or of a run. A zeroed one with a bound is empty and open. */
typedef struct dp_arena {
    void *newest; /* piece, linked to older ones */
    uint8_t *end; /* of it */
    size_t left;  /* bytes in it */
    size_t used;  /* bytes of all pieces */
    size_t bound;
    bool refused; /* the bound refused more */
} dp_arena;

/* Zeroed; NULL: beyond the bound, or no memory. */
void *dp_arena_take(dp_arena *arena, size_t bytes);
void dp_arena_close(dp_arena *arena);

typedef enum dp_template_kind {
    DP_UNDEFINED,
    DP_NONE,
    DP_BOOL,
    DP_INT,
    DP_FLOAT,
    DP_TEXT,
    DP_LIST,
    DP_DICT,
    DP_MACRO,
    DP_FUNCTION
} dp_template_kind;

struct dp_template_list;
struct dp_template_dict;
struct dp_template_node;

typedef struct dp_value {
    dp_template_kind kind;
    union {
        bool truth;
        int64_t integer;
        double real;
        dp_view text; /* UTF-8 */
        struct dp_template_list *list;
        struct dp_template_dict *dict;
        const struct dp_template_node *macro;
        unsigned function;
    } u;
} dp_value;

typedef struct dp_template_list {
    dp_value *items;
    size_t count;
    size_t room;
    bool is_tuple; /* str() writes it in round brackets */
} dp_template_list;

typedef struct dp_template_entry {
    dp_view key;
    dp_value value;
} dp_template_entry;

/* In the order of insertion. */
typedef struct dp_template_dict {
    dp_template_entry *entries;
    size_t count;
    size_t room;
    bool is_namespace; /* its entries may be set */
} dp_template_dict;

static inline dp_value dp_value_none(void)
{
    return (dp_value){.kind = DP_NONE};
}
static inline dp_value dp_value_bool(bool truth)
{
    return (dp_value){.kind = DP_BOOL, .u.truth = truth};
}
static inline dp_value dp_value_int(int64_t integer)
{
    return (dp_value){.kind = DP_INT, .u.integer = integer};
}
static inline dp_value dp_value_text(dp_view text)
{
    return (dp_value){.kind = DP_TEXT, .u.text = text};
}
/* Work on so many bytes, entries of a dict, or names is one step. */
enum { DP_STEP_BYTES = 64, DP_STEP_ENTRIES = 8, DP_STEP_NAMES = 64 };

/* Steps of work that goes through a value once. */
uint64_t dp_value_work(const dp_value *value);
bool dp_value_is_number(const dp_value *value); /* bool counts, as in Python */
double dp_value_real(const dp_value *value);    /* of a number */
bool dp_value_true(const dp_value *value);
/* Takes a step off *left for each pair of values, and more for long ones. Gives up, and leaves 0,
 * where they are used up, or values nest deeper than DP_TEMPLATE_DEPTH_MAX. */
bool dp_value_equal(const dp_value *a, const dp_value *b, uint64_t *left);
/* "a text", "a list" ... */
const char *dp_value_name(const dp_value *value);

/* An empty list or dict; DP_NOMEM, as of the next ones. */
DP_MUST dp_status dp_value_list(dp_arena *arena, dp_value *out);
DP_MUST dp_status dp_value_dict(dp_arena *arena, dp_value *out);
DP_MUST dp_status dp_list_add(dp_arena *arena, dp_template_list *list, dp_value value);
/* Of a key that the dict does not have. */
DP_MUST dp_status dp_dict_add(dp_arena *arena, dp_template_dict *dict, dp_view key, dp_value value);
/* Replaces the value of a key that is there. */
DP_MUST dp_status dp_dict_set(dp_arena *arena, dp_template_dict *dict, dp_view key, dp_value value);
/* NULL: no such key. */
const dp_value *dp_dict_get(const dp_template_dict *dict, dp_view key);
/* A copy of two texts behind each other. */
DP_MUST dp_status dp_text_join(dp_arena *arena, dp_view a, dp_view b, dp_view *out);

/* The value of JSON; texts are borrowed. DP_TOOBIG: it nests too deep. */
DP_MUST dp_status dp_value_of_json(dp_arena *arena, json_t *json, dp_value *out);

/* Appends a value as Python's str() or repr() writes it. DP_TOOBIG, DP_NOMEM. */
DP_MUST dp_status dp_value_write(const dp_value *value, bool repr, dp_buf *out);
/* How json.dumps writes. */
typedef struct dp_json_style {
    bool lines;       /* each item in a line of its own, */
    dp_view indent;   /* behind so many of these */
    dp_view comma;    /* with the blank behind it */
    dp_view colon;    /* the same */
    bool ascii_alone; /* other characters are escaped */
} dp_json_style;

/* Appends it as json.dumps does. DP_BADARG: it has no JSON. */
DP_MUST dp_status dp_value_write_json(const dp_value *value, const dp_json_style *style,
                                      dp_buf *out);

/* ---- Characters: code points of UTF-8. */

/* size bytes of a text from one on; no arithmetic on the address of an empty one. */
static inline dp_view dp_text_cut(dp_view text, size_t from, size_t size)
{
    return dp_view_of(text.size == 0 ? text.data : text.data + from, size);
}

/* Bytes of the character that begins here. */
size_t dp_text_character(dp_view text, size_t at);
size_t dp_text_length(dp_view text);
/* Where character number index begins; the size for one behind the last. */
size_t dp_text_offset(dp_view text, size_t index);
/* Bytes of the blank (of Python's str.isspace) that begins here; 0: none does. */
size_t dp_text_blank(dp_view text, size_t at);
/* Bytes of the blank that ends here, behind the first bytes. */
size_t dp_text_blank_before(dp_view text, size_t end);
bool dp_text_find(dp_view text, dp_view part, size_t from, size_t *at);
/* Cuts characters of a set, or blanks if there is none, from either end. */
dp_view dp_text_strip(dp_view text, const dp_view *set, bool left, bool right);

#endif
