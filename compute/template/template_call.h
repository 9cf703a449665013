/* Calls of templates, as their tables share them. Private to template*.c. */
#ifndef DP_COMPUTE_TEMPLATE_TEMPLATE_CALL_H
#define DP_COMPUTE_TEMPLATE_TEMPLATE_CALL_H

#include "compute/template/template_run.h"

/* One call: its node, the value that it is of, and its arguments. */
typedef struct dp_call {
    dp_run *run;
    const dp_template_node *node;
    const dp_value *of;
    const dp_arguments *arguments;
    dp_value *out;
} dp_call;

typedef struct dp_call_row {
    const char *name;
    dp_status (*run)(const dp_call *c);
    /* Names of its arguments, in their order: "-" is known by its place alone, "..." are any more
     * by their places. NULL: it looks itself. */
    const char *takes;
} dp_call_row;

/* template_texts.c: methods of texts, and filters that are the same; each ends with a NULL name. */
extern const dp_call_row dp_call_text_methods[];
extern const dp_call_row dp_call_text_filters[];
/* template_filters.c: the other filters, and the methods of objects. */
extern const dp_call_row dp_call_filters[];
extern const dp_call_row dp_call_dict_methods[];
/* Refuses arguments that a row does not take. kind: "filter" ... DP_UNSUPPORTED. */
DP_MUST dp_status dp_call_check(const dp_call *c, const dp_call_row *row, const char *kind);
/* The items of a list, or an attribute of each, as texts with something between them. */
DP_MUST dp_status dp_call_join(const dp_call *c, dp_view between, dp_view attribute,
                               const dp_template_list *list);

static inline dp_status dp_call_refuse(const dp_call *c, const char *what)
{
    const dp_view name = c->node->text;
    return dp_run_fail(c->run, c->node, DP_BADARG, "'%.*s' %s", (int)name.size,
                       (const char *)name.data, what);
}

static inline const dp_value *dp_call_argument(const dp_call *c, size_t index, const char *name)
{
    return dp_argument(c->arguments, index, dp_view_text(name != NULL ? name : ""));
}

static inline dp_status dp_call_text(const dp_call *c, dp_view *text)
{
    if (c->of->kind == DP_UNDEFINED) {
        *text = dp_view_of(NULL, 0);
        return DP_OK;
    }
    return dp_run_text(c->run, c->node, c->of, text);
}

static inline dp_status dp_call_give_text(const dp_call *c, dp_view text)
{
    *c->out = dp_value_text(text);
    return DP_OK;
}

static inline dp_status dp_call_give(const dp_call *c, dp_value value)
{
    *c->out = value;
    return DP_OK;
}

static inline dp_status dp_call_text_argument(const dp_call *c, size_t index, const char *name,
                                              dp_view *text)
{
    const dp_value *const value = dp_call_argument(c, index, name);
    if (value == NULL || value->kind != DP_TEXT) {
        return dp_call_refuse(c, "needs a text");
    }
    *text = value->u.text;
    return DP_OK;
}

static inline dp_status dp_call_items(const dp_call *c, dp_value *list)
{
    return dp_run_items(c->run, c->node, c->of, list);
}

static inline dp_status dp_call_copy(const dp_call *c, dp_view text, uint8_t **room)
{
    dp_view made;
    DP_TRY(dp_text_join(&c->run->arena, text, dp_view_of(NULL, 0), &made));
    *c->out = dp_value_text(made);
    *room = (uint8_t *)(uintptr_t)made.data; /* our own copy */
    return DP_OK;
}

static inline bool dp_is_lower(uint8_t ch)
{
    return ch >= 'a' && ch <= 'z';
}

static inline bool dp_is_upper(uint8_t ch)
{
    return ch >= 'A' && ch <= 'Z';
}

#endif
