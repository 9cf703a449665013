/* The state of parsing a template, and small steps of it. Private to template*.c. */
#ifndef DP_COMPUTE_TEMPLATE_TEMPLATE_PARSER_H
#define DP_COMPUTE_TEMPLATE_TEMPLATE_PARSER_H

#include <stdio.h>
#include <string.h>

#include "compute/template/template_node.h"

typedef struct dp_parser {
    dp_arena *arena;
    const dp_lexeme *at;
    unsigned depth;
    unsigned loops; /* around the statement */
    dp_why *why;
} dp_parser;

/* template_expression.c */
DP_MUST dp_status dp_parse_expression(dp_parser *p, dp_template_node **out);
/* An expression, or several of them with commas, which are a list. choices: of "a if b else c"
 * too. */
DP_MUST dp_status dp_parse_tuple(dp_parser *p, bool choices, dp_template_node **out);

static inline dp_status dp_parse_fail(const dp_parser *p, dp_status status, const char *what)
{
    const dp_view text = p->at->text;
    const int size = text.size < 40 ? (int)text.size : 40;
    return dp_why_set(p->why, status, "line %u of the template: %s%s%.*s%s", p->at->line, what,
                      size > 0 ? ", at '" : "", size, (const char *)text.data, size > 0 ? "'" : "");
}

static inline bool dp_parse_is_text(const dp_lexeme *l, dp_lexeme_kind kind, const char *text)
{
    return l->kind == kind && dp_view_equal(l->text, dp_view_text(text));
}

static inline bool dp_parse_is_sign(const dp_parser *p, const char *sign)
{
    return dp_parse_is_text(p->at, DP_LEX_SIGN, sign);
}

static inline bool dp_parse_is_word(const dp_parser *p, const char *word)
{
    return dp_parse_is_text(p->at, DP_LEX_NAME, word);
}

static inline bool dp_parse_takes_sign(dp_parser *p, const char *sign)
{
    const bool is = dp_parse_is_sign(p, sign);
    p->at += is;
    return is;
}

static inline bool dp_parse_takes_word(dp_parser *p, const char *word)
{
    const bool is = dp_parse_is_word(p, word);
    p->at += is;
    return is;
}

static inline dp_status dp_parse_need_sign(dp_parser *p, const char *sign)
{
    if (!dp_parse_takes_sign(p, sign)) {
        char what[64];
        snprintf(what, sizeof what, "'%s' is missing", sign);
        return dp_parse_fail(p, DP_BADMSG, what);
    }
    return DP_OK;
}

static inline dp_status dp_parse_need(dp_parser *p, dp_lexeme_kind kind, const char *what)
{
    if (p->at->kind != kind) {
        return dp_parse_fail(p, DP_BADMSG, what);
    }
    p->at++;
    return DP_OK;
}

static inline dp_status dp_parse_need_name(dp_parser *p, dp_view *name)
{
    *name = p->at->text;
    return dp_parse_need(p, DP_LEX_NAME, "a name is missing");
}

static inline dp_status dp_parse_enter(dp_parser *p)
{
    return ++p->depth > DP_TEMPLATE_DEPTH_MAX ? dp_parse_fail(p, DP_TOOBIG, "it nests too deep")
                                              : DP_OK;
}

static inline dp_template_node *dp_parse_make(dp_parser *p, dp_node_kind kind)
{
    dp_template_node *const n = dp_arena_take(p->arena, sizeof *n);
    if (n != NULL) {
        n->kind = kind;
        n->line = p->at->line;
    }
    return n;
}

/* Makes a node of two parts; DP_NOMEM. */
static inline dp_status dp_parse_make_of(dp_parser *p, dp_node_kind kind, dp_template_node *a,
                                         dp_template_node *b, dp_template_node **out)
{
    dp_template_node *const n = dp_parse_make(p, kind);
    if (n == NULL) {
        return DP_NOMEM;
    }
    n->a = a;
    n->b = b;
    *out = n;
    return DP_OK;
}

static inline void dp_parse_append(dp_template_node *n, dp_template_node ***end,
                                   dp_template_node *item)
{
    **end = item;
    *end = &item->next;
    n->n_list++;
}

/* One more of an array that grows in the arena. */
static inline void *dp_parse_more(dp_parser *p, const void *items, size_t count, size_t each)
{
    void *const wider = dp_arena_take(p->arena, (count + 1) * each);
    if (wider != NULL && count > 0) {
        memcpy(wider, items, count * each);
    }
    return wider;
}

static inline dp_status dp_parse_add_name(dp_parser *p, dp_template_node *n, dp_view name)
{
    dp_view *const names = dp_parse_more(p, n->names, n->n_names, sizeof *names);
    if (names == NULL) {
        return DP_NOMEM;
    }
    names[n->n_names++] = name;
    n->names = names;
    return DP_OK;
}

#endif
