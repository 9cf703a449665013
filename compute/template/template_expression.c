/* Expressions: recursive descent with a bound on nesting, by Jinja's precedence: choice, or, and,
 * not, comparisons, + -, ~, * / // %, sign, filters and tests. */
#include <stdlib.h>

#include "compute/template/template_parser.h"

typedef dp_template_node node;

static dp_status unary(dp_parser *p, bool filters, node **out);

/* ---- Primary expressions. */

static dp_status constant(dp_parser *p, dp_value value, node **out)
{
    node *const n = dp_parse_make(p, DP_NODE_VALUE);
    if (n == NULL) {
        return DP_NOMEM;
    }
    n->value = value;
    *out = n;
    return DP_OK;
}

static dp_status number(dp_parser *p, node **out)
{
    char text[64];
    size_t size = 0;
    for (size_t i = 0; i < p->at->text.size && size + 1 < sizeof text; i++) {
        if (p->at->text.data[i] != '_') {
            text[size++] = (char)p->at->text.data[i];
        }
    }
    text[size] = '\0';
    const bool real = p->at->kind == DP_LEX_FLOAT;
    if (size > 18 && !real) {
        return dp_parse_fail(p, DP_TOOBIG, "the number is too large");
    }
    const dp_value value = real ? (dp_value){.kind = DP_FLOAT, .u.real = strtod(text, NULL)}
                                : dp_value_int(strtoll(text, NULL, 10));
    p->at++;
    return constant(p, value, out);
}

static dp_status string(dp_parser *p, node **out)
{
    dp_view text = p->at->text;
    p->at++;
    while (p->at->kind == DP_LEX_STRING) {
        DP_TRY(dp_text_join(p->arena, text, p->at->text, &text));
        p->at++;
    }
    return constant(p, dp_value_text(text), out);
}

static dp_status name(dp_parser *p, node **out)
{
    static const struct {
        const char *word;
        dp_value value;
    } words[] = {{"true", {.kind = DP_BOOL, .u.truth = true}},
                 {"True", {.kind = DP_BOOL, .u.truth = true}},
                 {"false", {.kind = DP_BOOL}},
                 {"False", {.kind = DP_BOOL}},
                 {"none", {.kind = DP_NONE}},
                 {"None", {.kind = DP_NONE}}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (dp_parse_takes_word(p, words[i].word)) {
            return constant(p, words[i].value, out);
        }
    }
    node *const n = dp_parse_make(p, DP_NODE_NAME);
    if (n == NULL) {
        return DP_NOMEM;
    }
    n->text = p->at->text;
    p->at++;
    *out = n;
    return DP_OK;
}

/* Expressions up to a closing sign. */
static dp_status items(dp_parser *p, node *n, node **end, const char *close)
{
    while (!dp_parse_takes_sign(p, close)) {
        node *item;
        DP_TRY(dp_parse_expression(p, &item));
        dp_parse_append(n, &end, item);
        if (!dp_parse_is_sign(p, close)) {
            DP_TRY(dp_parse_need_sign(p, ","));
        }
    }
    return DP_OK;
}

static dp_status list(dp_parser *p, node **out)
{
    node *const n = dp_parse_make(p, DP_NODE_LIST);
    if (n == NULL) {
        return DP_NOMEM;
    }
    *out = n;
    p->at++;
    return items(p, n, &n->list, "]");
}

static dp_status dict(dp_parser *p, node **out)
{
    node *const n = dp_parse_make(p, DP_NODE_DICT);
    if (n == NULL) {
        return DP_NOMEM;
    }
    node **end = &n->list;
    p->at++;
    while (!dp_parse_takes_sign(p, "}")) {
        node *key;
        node *value;
        DP_TRY(dp_parse_expression(p, &key));
        DP_TRY(dp_parse_need_sign(p, ":"));
        DP_TRY(dp_parse_expression(p, &value));
        dp_parse_append(n, &end, key);
        dp_parse_append(n, &end, value);
        if (!dp_parse_is_sign(p, "}")) {
            DP_TRY(dp_parse_need_sign(p, ","));
        }
    }
    *out = n;
    return DP_OK;
}

/* An expression in brackets, or a tuple, which is a list here. */
static dp_status bracket(dp_parser *p, node **out)
{
    node *first;
    p->at++;
    if (dp_parse_is_sign(p, ")")) {
        DP_TRY(dp_parse_make_of(p, DP_NODE_LIST, NULL, NULL, out));
        (*out)->is_tuple = true;
        p->at++;
        return DP_OK;
    }
    DP_TRY(dp_parse_expression(p, &first));
    if (dp_parse_takes_sign(p, ")")) {
        *out = first;
        return DP_OK;
    }
    DP_TRY(dp_parse_need_sign(p, ","));
    node *const n = dp_parse_make(p, DP_NODE_LIST);
    if (n == NULL) {
        return DP_NOMEM;
    }
    n->list = first;
    n->n_list = 1;
    n->is_tuple = true;
    *out = n;
    return items(p, n, &first->next, ")");
}

static dp_status primary(dp_parser *p, node **out)
{
    switch (p->at->kind) {
    case DP_LEX_NAME:
        return name(p, out);
    case DP_LEX_STRING:
        return string(p, out);
    case DP_LEX_INT:
    case DP_LEX_FLOAT:
        return number(p, out);
    case DP_LEX_SIGN:
        if (dp_parse_is_sign(p, "(")) {
            return bracket(p, out);
        }
        if (dp_parse_is_sign(p, "[")) {
            return list(p, out);
        }
        if (dp_parse_is_sign(p, "{")) {
            return dict(p, out);
        }
        break;
    case DP_LEX_TEXT:
    case DP_LEX_BLOCK_BEGIN:
    case DP_LEX_BLOCK_END:
    case DP_LEX_OUTPUT_BEGIN:
    case DP_LEX_OUTPUT_END:
    case DP_LEX_END:
        break;
    }
    return dp_parse_fail(p, DP_BADMSG, "an expression is missing");
}

/* ---- Behind them: attributes, items, calls, filters, tests. */

/* Arguments up to ")"; the ones with a name are the last. */
static dp_status arguments(dp_parser *p, node *n)
{
    node **end = &n->list;
    while (!dp_parse_takes_sign(p, ")")) {
        node *value;
        if (dp_parse_is_sign(p, "*") || dp_parse_is_sign(p, "**")) {
            return dp_parse_fail(p, DP_UNSUPPORTED, "star arguments are not known");
        }
        if (p->at->kind == DP_LEX_NAME && dp_parse_is_text(p->at + 1, DP_LEX_SIGN, "=")) {
            DP_TRY(dp_parse_add_name(p, n, p->at->text));
            p->at += 2;
        } else if (n->n_names > 0) {
            return dp_parse_fail(p, DP_BADMSG,
                                 "an argument without a name follows one with a name");
        }
        DP_TRY(dp_parse_expression(p, &value));
        dp_parse_append(n, &end, value);
        if (!dp_parse_is_sign(p, ")")) {
            DP_TRY(dp_parse_need_sign(p, ","));
        }
    }
    return DP_OK;
}

static dp_status item(dp_parser *p, node *of, node **out)
{
    node *parts[3] = {NULL, NULL, NULL};
    size_t colons = 0;
    while (!dp_parse_is_sign(p, "]")) {
        if (dp_parse_takes_sign(p, ":")) {
            if (++colons > 2) {
                return dp_parse_fail(p, DP_BADMSG, "a slice has three parts at most");
            }
        } else {
            if (parts[colons] != NULL) {
                return dp_parse_fail(p, DP_BADMSG, "']' is missing");
            }
            DP_TRY(dp_parse_expression(p, &parts[colons]));
        }
    }
    p->at++;
    if (colons == 0 && parts[0] == NULL) {
        return dp_parse_fail(p, DP_BADMSG, "an index is missing");
    }
    DP_TRY(dp_parse_make_of(p, colons > 0 ? DP_NODE_SLICE : DP_NODE_ITEM, of, parts[0], out));
    (*out)->c = parts[1];
    (*out)->d = parts[2];
    return DP_OK;
}

/* "a.b", "a[b]" and "a(b)" any number of times. */
static dp_status postfix(dp_parser *p, node **out)
{
    for (;;) {
        if (dp_parse_takes_sign(p, ".")) {
            node *n;
            DP_TRY(dp_parse_make_of(p, DP_NODE_ATTRIBUTE, *out, NULL, &n));
            DP_TRY(dp_parse_need_name(p, &n->text));
            *out = n;
        } else if (dp_parse_takes_sign(p, "[")) {
            DP_TRY(item(p, *out, out));
        } else if (dp_parse_takes_sign(p, "(")) {
            node *n;
            DP_TRY(dp_parse_make_of(p, DP_NODE_CALL, *out, NULL, &n));
            DP_TRY(arguments(p, n));
            *out = n;
        } else {
            return DP_OK;
        }
    }
}

static dp_status filter(dp_parser *p, node **out)
{
    node *n;
    DP_TRY(dp_parse_make_of(p, DP_NODE_FILTER, *out, NULL, &n));
    DP_TRY(dp_parse_need_name(p, &n->text));
    if (dp_parse_takes_sign(p, "(")) {
        DP_TRY(arguments(p, n));
    }
    *out = n;
    return DP_OK;
}

/* "is defined", "is not in [1]", "is divisibleby 3" */
static dp_status test(dp_parser *p, node **out)
{
    node *n;
    const bool negated = dp_parse_takes_word(p, "not");
    DP_TRY(dp_parse_make_of(p, DP_NODE_TEST, *out, NULL, &n));
    DP_TRY(dp_parse_need_name(p, &n->text));
    const bool literal = p->at->kind == DP_LEX_STRING || p->at->kind == DP_LEX_INT ||
                         p->at->kind == DP_LEX_FLOAT || dp_parse_is_sign(p, "[") ||
                         dp_parse_is_sign(p, "{");
    const bool named = p->at->kind == DP_LEX_NAME && !dp_parse_is_word(p, "else") &&
                       !dp_parse_is_word(p, "or") && !dp_parse_is_word(p, "and") &&
                       !dp_parse_is_word(p, "is") && !dp_parse_is_word(p, "if") &&
                       !dp_parse_is_word(p, "in") && !dp_parse_is_word(p, "not");
    if (dp_parse_takes_sign(p, "(")) {
        DP_TRY(arguments(p, n));
    } else if (literal || named) {
        DP_TRY(primary(p, &n->list));
        DP_TRY(postfix(p, &n->list));
        n->n_list = 1;
    }
    *out = n;
    return negated ? dp_parse_make_of(p, DP_NODE_NOT, n, NULL, out) : DP_OK;
}

static dp_status filters_and_tests(dp_parser *p, node **out)
{
    for (;;) {
        if (dp_parse_takes_sign(p, "|")) {
            DP_TRY(filter(p, out));
        } else if (dp_parse_takes_word(p, "is")) {
            DP_TRY(test(p, out));
        } else if (dp_parse_is_sign(p, "(")) {
            DP_TRY(postfix(p, out));
        } else {
            return DP_OK;
        }
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by depth, as all below */
static dp_status unary(dp_parser *p, bool filters, node **out)
{
    DP_TRY(dp_parse_enter(p));
    if (dp_parse_takes_sign(p, "-")) {
        DP_TRY(unary(p, false, out));
        DP_TRY(dp_parse_make_of(p, DP_NODE_NEGATE, *out, NULL, out));
    } else if (dp_parse_takes_sign(p, "+")) {
        DP_TRY(unary(p, false, out));
    } else {
        DP_TRY(primary(p, out));
    }
    DP_TRY(postfix(p, out));
    if (filters) {
        DP_TRY(filters_and_tests(p, out));
    }
    p->depth--;
    return DP_OK;
}

/* ---- Operators of two sides, by levels. */

typedef struct sign_row {
    const char *sign;
    dp_operation operation;
} sign_row;

/* The lowest level binds most. */
static const sign_row levels[3][5] = {{{"*", DP_OP_MULTIPLY},
                                       {"//", DP_OP_FLOOR},
                                       {"/", DP_OP_DIVIDE},
                                       {"%", DP_OP_MODULO},
                                       {NULL, DP_OP_ADD}},
                                      {{"~", DP_OP_JOIN}, {NULL, DP_OP_ADD}},
                                      {{"+", DP_OP_ADD}, {"-", DP_OP_SUBTRACT}, {NULL, DP_OP_ADD}}};

static dp_status binary(dp_parser *p, size_t level, node **out)
{
    if (level == 0) {
        DP_TRY(unary(p, true, out));
    } else {
        DP_TRY(binary(p, level - 1, out));
    }
    for (const sign_row *row = levels[level]; row->sign != NULL;) {
        if (!dp_parse_takes_sign(p, row->sign)) {
            row++;
            continue;
        }
        node *right;
        node *n;
        DP_TRY(level == 0 ? unary(p, true, &right) : binary(p, level - 1, &right));
        DP_TRY(dp_parse_make_of(p, DP_NODE_BINARY, *out, right, &n));
        n->operation = row->operation;
        *out = n;
        row = levels[level]; /* Any of the level may follow. */
    }
    return DP_OK;
}

static bool comparison(dp_parser *p, dp_operation *operation)
{
    static const sign_row rows[] = {{"==", DP_OP_EQUAL},      {"!=", DP_OP_UNEQUAL},
                                    {"<=", DP_OP_LESS_EQUAL}, {">=", DP_OP_GREATER_EQUAL},
                                    {"<", DP_OP_LESS},        {">", DP_OP_GREATER}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (dp_parse_takes_sign(p, rows[i].sign)) {
            *operation = rows[i].operation;
            return true;
        }
    }
    if (dp_parse_takes_word(p, "in")) {
        *operation = DP_OP_IN;
        return true;
    }
    if (dp_parse_is_word(p, "not") && dp_parse_is_text(p->at + 1, DP_LEX_NAME, "in")) {
        p->at += 2;
        *operation = DP_OP_NOT_IN;
        return true;
    }
    return false;
}

static dp_status compare(dp_parser *p, node **out)
{
    dp_operation operation;
    DP_TRY(binary(p, 2, out));
    if (!comparison(p, &operation)) {
        return DP_OK;
    }
    node *n;
    DP_TRY(dp_parse_make_of(p, DP_NODE_COMPARE, *out, NULL, &n));
    node **end = &n->list;
    do {
        node *right;
        dp_operation *const operations =
            dp_parse_more(p, n->operations, n->n_list, sizeof *operations);
        if (operations == NULL) {
            return DP_NOMEM;
        }
        operations[n->n_list] = operation;
        n->operations = operations;
        DP_TRY(binary(p, 2, &right));
        dp_parse_append(n, &end, right);
    } while (comparison(p, &operation));
    *out = n;
    return DP_OK;
}

static dp_status negation(dp_parser *p, node **out)
{
    unsigned count = 0;
    while (dp_parse_takes_word(p, "not")) {
        DP_TRY(dp_parse_enter(p));
        count++;
    }
    DP_TRY(compare(p, out));
    p->depth -= count;
    while (count-- > 0) {
        DP_TRY(dp_parse_make_of(p, DP_NODE_NOT, *out, NULL, out));
    }
    return DP_OK;
}

static dp_status both(dp_parser *p, node **out)
{
    DP_TRY(negation(p, out));
    while (dp_parse_takes_word(p, "and")) {
        node *right;
        DP_TRY(negation(p, &right));
        DP_TRY(dp_parse_make_of(p, DP_NODE_AND, *out, right, out));
    }
    return DP_OK;
}

/* Without a choice: what a loop goes through, before its condition. */
static dp_status either(dp_parser *p, node **out)
{
    DP_TRY(both(p, out));
    while (dp_parse_takes_word(p, "or")) {
        node *right;
        DP_TRY(both(p, &right));
        DP_TRY(dp_parse_make_of(p, DP_NODE_OR, *out, right, out));
    }
    return DP_OK;
}

dp_status dp_parse_expression(dp_parser *p, node **out)
{
    DP_TRY(dp_parse_enter(p));
    DP_TRY(either(p, out));
    while (dp_parse_takes_word(p, "if")) {
        node *condition;
        node *n;
        DP_TRY(either(p, &condition));
        DP_TRY(dp_parse_make_of(p, DP_NODE_CHOICE, *out, condition, &n));
        if (dp_parse_takes_word(p, "else")) {
            DP_TRY(dp_parse_expression(p, &n->c));
        }
        *out = n;
    }
    p->depth--;
    return DP_OK;
}

dp_status dp_parse_tuple(dp_parser *p, bool choices, node **out)
{
    node *first;
    DP_TRY(choices ? dp_parse_expression(p, &first) : either(p, &first));
    if (!dp_parse_is_sign(p, ",")) {
        *out = first;
        return DP_OK;
    }
    node *const n = dp_parse_make(p, DP_NODE_LIST);
    if (n == NULL) {
        return DP_NOMEM;
    }
    node **end = &n->list;
    n->is_tuple = true;
    dp_parse_append(n, &end, first);
    while (dp_parse_takes_sign(p, ",") && p->at->kind != DP_LEX_BLOCK_END) {
        node *next;
        DP_TRY(choices ? dp_parse_expression(p, &next) : either(p, &next));
        dp_parse_append(n, &end, next);
    }
    *out = n;
    return DP_OK;
}
