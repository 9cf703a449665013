/* Operators of two sides. */
#include <math.h>
#include <string.h>

#include "compute/template/template_run.h"

typedef dp_template_node node;

static dp_status misfit(const dp_run *run, const node *n, dp_operation operation, const dp_value *a,
                        const dp_value *b)
{
    static const char *const signs[] = {
        "+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};
    return dp_run_fail(run, n, DP_BADARG, "'%s' does not fit %s and %s", signs[operation],
                       dp_value_name(a), dp_value_name(b));
}

static dp_status join_lists(dp_run *run, const dp_template_list *a, const dp_template_list *b,
                            dp_value *out)
{
    DP_TRY(dp_value_list(&run->arena, out));
    for (size_t i = 0; i < a->count; i++) {
        DP_TRY(dp_list_add(&run->arena, out->u.list, a->items[i]));
    }
    for (size_t i = 0; i < b->count; i++) {
        DP_TRY(dp_list_add(&run->arena, out->u.list, b->items[i]));
    }
    return DP_OK;
}

static dp_status join_texts(dp_run *run, dp_view a, dp_view b, dp_value *out)
{
    dp_view text;
    DP_TRY(dp_text_join(&run->arena, a, b, &text));
    *out = dp_value_text(text);
    return DP_OK;
}

static int64_t floor_of(int64_t a, int64_t b)
{
    const int64_t quotient = a / b;
    return quotient - ((a % b != 0) && ((a < 0) != (b < 0)));
}

static dp_status integers(dp_run *run, const node *n, int64_t a, int64_t b, dp_value *out)
{
    int64_t result = 0;
    bool good = true;
    const bool divides = n->operation == DP_OP_FLOOR || n->operation == DP_OP_MODULO;
    if (divides && (b == 0 || (b == -1 && a == INT64_MIN))) {
        return dp_run_fail(run, n, DP_BADARG, "a division by %lld", (long long)b);
    }
    switch ((int)n->operation) {
    case DP_OP_ADD:
        good = !__builtin_add_overflow(a, b, &result);
        break;
    case DP_OP_SUBTRACT:
        good = !__builtin_sub_overflow(a, b, &result);
        break;
    case DP_OP_MULTIPLY:
        good = !__builtin_mul_overflow(a, b, &result);
        break;
    case DP_OP_FLOOR:
        result = floor_of(a, b);
        break;
    default: /* DP_OP_MODULO */
        result = a % b;
        result += result != 0 && (result < 0) != (b < 0) ? b : 0;
        break;
    }
    *out = dp_value_int(result);
    return good ? DP_OK : dp_run_fail(run, n, DP_BADARG, "the number is too large");
}

static dp_status reals(dp_run *run, const node *n, double a, double b, dp_value *out)
{
    double result = 0;
    const bool divides =
        n->operation == DP_OP_DIVIDE || n->operation == DP_OP_FLOOR || n->operation == DP_OP_MODULO;
    if (divides && b == 0) {
        return dp_run_fail(run, n, DP_BADARG, "a division by 0");
    }
    switch ((int)n->operation) {
    case DP_OP_ADD:
        result = a + b;
        break;
    case DP_OP_SUBTRACT:
        result = a - b;
        break;
    case DP_OP_MULTIPLY:
        result = a * b;
        break;
    case DP_OP_DIVIDE:
        result = a / b;
        break;
    case DP_OP_FLOOR:
        result = floor(a / b);
        break;
    default: /* DP_OP_MODULO */
        result = a - floor(a / b) * b;
        break;
    }
    *out = (dp_value){.kind = DP_FLOAT, .u.real = result};
    return DP_OK;
}

static dp_status repeat(dp_run *run, const node *n, dp_view text, int64_t times, dp_value *out)
{
    if (times > 0 && text.size > DP_TEMPLATE_MEMORY_MAX / (size_t)times) {
        return dp_run_fail(run, n, DP_TOOBIG, "the text is too long");
    }
    uint8_t *const room = dp_arena_take(&run->arena, times > 0 ? text.size * (size_t)times + 1 : 1);
    if (room == NULL) {
        return DP_NOMEM;
    }
    DP_TRY(dp_run_charge(run, n, times > 0 ? (uint64_t)times : 0));
    for (int64_t i = 0; i < times && text.size > 0; i++) {
        memcpy(room + (size_t)i * text.size, text.data, text.size);
    }
    *out = dp_value_text(dp_view_of(room, times > 0 ? text.size * (size_t)times : 0));
    return DP_OK;
}

dp_status dp_run_combine(dp_run *run, const node *n, const dp_value *a, const dp_value *b,
                         dp_value *out)
{
    if (n->operation == DP_OP_JOIN) {
        dp_view texts[2];
        DP_TRY(dp_run_text(run, n, a, &texts[0]));
        DP_TRY(dp_run_text(run, n, b, &texts[1]));
        return join_texts(run, texts[0], texts[1], out);
    }
    if (n->operation == DP_OP_ADD && a->kind == DP_TEXT && b->kind == DP_TEXT) {
        return join_texts(run, a->u.text, b->u.text, out);
    }
    if (n->operation == DP_OP_ADD && a->kind == DP_LIST && b->kind == DP_LIST) {
        return join_lists(run, a->u.list, b->u.list, out);
    }
    if (n->operation == DP_OP_MULTIPLY && a->kind == DP_TEXT && b->kind == DP_INT) {
        return repeat(run, n, a->u.text, b->u.integer, out);
    }
    if (!dp_value_is_number(a) || !dp_value_is_number(b)) {
        return misfit(run, n, n->operation, a, b);
    }
    if (a->kind != DP_FLOAT && b->kind != DP_FLOAT && n->operation != DP_OP_DIVIDE) {
        return integers(run, n, a->kind == DP_INT ? a->u.integer : a->u.truth,
                        b->kind == DP_INT ? b->u.integer : b->u.truth, out);
    }
    return reals(run, n, dp_value_real(a), dp_value_real(b), out);
}

dp_status dp_run_contains(dp_run *run, const node *n, const dp_value *a, const dp_value *b,
                          bool *holds)
{
    size_t at;
    *holds = false;
    DP_TRY(b->kind == DP_LIST ? DP_OK : dp_run_charge_for(run, n, b));
    switch (b->kind) {
    case DP_TEXT:
        if (a->kind != DP_TEXT) {
            return misfit(run, n, DP_OP_IN, a, b);
        }
        *holds = dp_text_find(b->u.text, a->u.text, 0, &at);
        return DP_OK;
    case DP_LIST:
        for (size_t i = 0; i < b->u.list->count && !*holds; i++) {
            DP_TRY(dp_run_equal(run, n, a, &b->u.list->items[i], holds));
        }
        return DP_OK;
    case DP_DICT:
        *holds = a->kind == DP_TEXT && dp_dict_get(b->u.dict, a->u.text) != NULL;
        return DP_OK;
    case DP_UNDEFINED: /* It has no items. */
        return DP_OK;
    case DP_NONE:
    case DP_BOOL:
    case DP_INT:
    case DP_FLOAT:
    case DP_MACRO:
    case DP_FUNCTION:
        break;
    }
    return misfit(run, n, DP_OP_IN, a, b);
}

static int order_of(dp_view a, dp_view b)
{
    const size_t least = a.size < b.size ? a.size : b.size;
    const int order = least > 0 ? memcmp(a.data, b.data, least) : 0;
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

static dp_status holds_order(dp_run *run, const node *n, dp_operation operation, const dp_value *a,
                             const dp_value *b, bool *holds)
{
    int order;
    if (a->kind == DP_TEXT && b->kind == DP_TEXT) {
        DP_TRY(dp_run_charge_for(run, n, a));
        order = order_of(a->u.text, b->u.text);
    } else if (dp_value_is_number(a) && dp_value_is_number(b)) {
        const double x = dp_value_real(a);
        const double y = dp_value_real(b);
        order = (x > y) - (x < y);
    } else {
        return dp_run_fail(run, n, DP_BADARG, "%s and %s have no order", dp_value_name(a),
                           dp_value_name(b));
    }
    *holds = operation == DP_OP_LESS         ? order < 0
             : operation == DP_OP_LESS_EQUAL ? order <= 0
             : operation == DP_OP_GREATER    ? order > 0
                                             : order >= 0;
    return DP_OK;
}

dp_status dp_run_holds(dp_run *run, const node *n, dp_operation operation, const dp_value *a,
                       const dp_value *b, bool *holds)
{
    if (operation == DP_OP_EQUAL || operation == DP_OP_UNEQUAL) {
        DP_TRY(dp_run_equal(run, n, a, b, holds));
        *holds = *holds == (operation == DP_OP_EQUAL);
        return DP_OK;
    }
    if (operation == DP_OP_IN || operation == DP_OP_NOT_IN) {
        DP_TRY(dp_run_contains(run, n, a, b, holds));
        *holds = *holds == (operation == DP_OP_IN);
        return DP_OK;
    }
    return holds_order(run, n, operation, a, b, holds);
}
