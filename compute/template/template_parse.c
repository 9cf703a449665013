/* Statements of a template. */
#include "compute/template/template_parser.h"

typedef dp_template_node node;

static dp_status statements(dp_parser *p, const char *const *ends, node **out);

/* ---- Statements. */

static dp_status end_block(dp_parser *p)
{
    return dp_parse_need(p, DP_LEX_BLOCK_END, "the tag does not end here");
}

/* Statements up to a tag that begins with one of ends, which is left; and the word behind it. */
static dp_status body(dp_parser *p, const char *const *ends, node **out)
{
    DP_TRY(end_block(p));
    return statements(p, ends, out);
}

/* "{% word %}" */
static dp_status close(dp_parser *p, const char *word)
{
    if (!dp_parse_takes_word(p, word)) {
        return dp_parse_fail(p, DP_BADMSG, "another end is expected");
    }
    return end_block(p);
}

static dp_status targets(dp_parser *p, node *n)
{
    const bool open = dp_parse_takes_sign(p, "(");
    do {
        dp_view word;
        DP_TRY(dp_parse_need_name(p, &word));
        DP_TRY(dp_parse_add_name(p, n, word));
    } while (dp_parse_takes_sign(p, ","));
    return open ? dp_parse_need_sign(p, ")") : DP_OK;
}

static dp_status loop(dp_parser *p, node *n)
{
    static const char *const ends[] = {"else", "endfor", NULL};
    static const char *const last[] = {"endfor", NULL};
    n->kind = DP_NODE_FOR;
    DP_TRY(targets(p, n));
    if (!dp_parse_takes_word(p, "in")) {
        return dp_parse_fail(p, DP_BADMSG, "'in' is missing");
    }
    DP_TRY(dp_parse_tuple(p, false, &n->a));
    if (dp_parse_takes_word(p, "if")) {
        DP_TRY(dp_parse_expression(p, &n->b));
    }
    if (dp_parse_is_word(p, "recursive")) {
        return dp_parse_fail(p, DP_UNSUPPORTED, "recursive loops are not known");
    }
    p->loops++;
    DP_TRY(body(p, ends, &n->body));
    p->loops--;
    if (dp_parse_takes_word(p, "else")) {
        DP_TRY(body(p, last, &n->other));
    }
    return close(p, "endfor");
}

static dp_status branch(dp_parser *p, node *n)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    static const char *const last[] = {"endif", NULL};
    for (;;) {
        n->kind = DP_NODE_IF;
        DP_TRY(dp_parse_tuple(p, true, &n->a));
        DP_TRY(body(p, ends, &n->body));
        if (!dp_parse_takes_word(p, "elif")) {
            break;
        }
        node *const other = dp_parse_make(p, DP_NODE_IF);
        if (other == NULL) {
            return DP_NOMEM;
        }
        n->other = other;
        n = other;
    }
    if (dp_parse_takes_word(p, "else")) {
        DP_TRY(body(p, last, &n->other));
    }
    return close(p, "endif");
}

static dp_status assignment(dp_parser *p, node *n)
{
    static const char *const ends[] = {"endset", NULL};
    n->kind = DP_NODE_SET;
    DP_TRY(targets(p, n));
    if (n->n_names == 1 && dp_parse_takes_sign(p, ".")) {
        DP_TRY(dp_parse_need_name(p, &n->text));
    }
    if (dp_parse_takes_sign(p, "=")) {
        DP_TRY(dp_parse_tuple(p, true, &n->a));
        return end_block(p);
    }
    if (dp_parse_is_sign(p, "|")) {
        return dp_parse_fail(p, DP_UNSUPPORTED, "filters of a set block are not known");
    }
    DP_TRY(body(p, ends, &n->body));
    return close(p, "endset");
}

static dp_status macro(dp_parser *p, node *n)
{
    static const char *const ends[] = {"endmacro", NULL};
    n->kind = DP_NODE_MACRO;
    node **end = &n->list;
    DP_TRY(dp_parse_need_name(p, &n->text));
    DP_TRY(dp_parse_need_sign(p, "("));
    while (!dp_parse_takes_sign(p, ")")) {
        dp_view word;
        node *value = dp_parse_make(p, DP_NODE_VALUE); /* undefined */
        if (value == NULL) {
            return DP_NOMEM;
        }
        DP_TRY(dp_parse_need_name(p, &word));
        DP_TRY(dp_parse_add_name(p, n, word));
        if (dp_parse_takes_sign(p, "=")) {
            DP_TRY(dp_parse_expression(p, &value));
        }
        dp_parse_append(n, &end, value);
        if (!dp_parse_is_sign(p, ")")) {
            DP_TRY(dp_parse_need_sign(p, ","));
        }
    }
    const unsigned loops = p->loops;
    p->loops = 0;
    DP_TRY(body(p, ends, &n->body));
    p->loops = loops;
    if (dp_parse_takes_word(p, "endmacro")) {
        p->at += p->at->kind == DP_LEX_NAME; /* Its name may stand here again. */
    }
    return end_block(p);
}

static dp_status generation(dp_parser *p, node *n)
{
    static const char *const ends[] = {"endgeneration", NULL};
    n->kind = DP_NODE_BLOCK;
    DP_TRY(body(p, ends, &n->body));
    return close(p, "endgeneration");
}

static dp_status end_in_loop(dp_parser *p)
{
    return p->loops > 0 ? end_block(p)
                        : dp_parse_fail(p, DP_BADMSG, "break or continue outside of a loop");
}

static dp_status leave(dp_parser *p, node *n)
{
    n->kind = DP_NODE_BREAK;
    return end_in_loop(p);
}

static dp_status go_on(dp_parser *p, node *n)
{
    n->kind = DP_NODE_CONTINUE;
    return end_in_loop(p);
}

static dp_status block(dp_parser *p, node *n)
{
    static const struct {
        const char *word;
        dp_status (*parse)(dp_parser *p, node *n);
    } rows[] = {{"for", loop},
                {"if", branch},
                {"set", assignment},
                {"macro", macro},
                {"generation", generation},
                {"break", leave},
                {"continue", go_on}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (dp_parse_takes_word(p, rows[i].word)) {
            return rows[i].parse(p, n);
        }
    }
    return dp_parse_fail(p, p->at->kind == DP_LEX_NAME ? DP_UNSUPPORTED : DP_BADMSG,
                         "a statement that is not known");
}

static bool ends_here(const dp_parser *p, const char *const *ends)
{
    bool is = false;
    for (size_t i = 0; ends[i] != NULL && !is; i++) {
        is = p->at->kind == DP_LEX_BLOCK_BEGIN && dp_parse_is_text(p->at + 1, DP_LEX_NAME, ends[i]);
    }
    return is;
}

static dp_status statement(dp_parser *p, node **out)
{
    node *const n = dp_parse_make(p, DP_NODE_TEXT);
    if (n == NULL) {
        return DP_NOMEM;
    }
    *out = n;
    if (p->at->kind == DP_LEX_TEXT) {
        n->text = p->at->text;
        p->at++;
        return DP_OK;
    }
    if (p->at->kind == DP_LEX_OUTPUT_BEGIN) {
        p->at++;
        n->kind = DP_NODE_OUTPUT;
        DP_TRY(dp_parse_tuple(p, true, &n->a));
        return dp_parse_need(p, DP_LEX_OUTPUT_END, "the tag does not end here");
    }
    p->at++;
    return block(p, n);
}

static dp_status statements(dp_parser *p, const char *const *ends, node **out)
{
    DP_TRY(dp_parse_enter(p));
    while (!ends_here(p, ends)) {
        if (p->at->kind == DP_LEX_END) {
            if (ends[0] == NULL) {
                break;
            }
            char what[64];
            snprintf(what, sizeof what, "it ends before '%s'", ends[0]);
            return dp_parse_fail(p, DP_BADMSG, what);
        }
        DP_TRY(statement(p, out));
        out = &(*out)->next;
    }
    p->at += ends[0] != NULL; /* its "{%" */
    p->depth--;
    return DP_OK;
}

dp_status dp_template_parse(dp_template *t, const dp_lexeme *lexemes, dp_why *why)
{
    static const char *const none[] = {NULL};
    dp_parser p = {.arena = &t->arena, .at = lexemes, .why = why};
    return statements(&p, none, &t->first);
}
