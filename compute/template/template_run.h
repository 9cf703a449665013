/* A run of a template, as its parts share it. Private to template*.c. */
#ifndef DP_COMPUTE_TEMPLATE_TEMPLATE_RUN_H
#define DP_COMPUTE_TEMPLATE_TEMPLATE_RUN_H

#include "compute/template/template_node.h"

typedef struct dp_binding {
    dp_view name;
    dp_value value;
} dp_binding;

typedef struct dp_bindings {
    dp_binding *list;
    size_t count;
    size_t room;
} dp_bindings;

typedef struct dp_template_run_state {
    dp_arena arena;
    dp_buf *out;     /* of the template, or of a block that is captured */
    size_t held;     /* bytes in the outer ones of blocks that are captured within each other */
    unsigned blocks; /* that are captured */
    dp_why *why;
    uint64_t steps;
    unsigned depth;
    dp_bindings globals; /* variables, functions, and what the outermost statements set */
    dp_bindings locals;  /* of loops and macros under way */
    size_t base;         /* locals before it are hidden: of the caller of a macro */
    size_t scope;        /* locals from here on are of the innermost loop or macro */
    bool inside;         /* of a loop or a macro: set makes a local */
} dp_run;

/* Arguments of a call: the last n_names of count have names. */
typedef struct dp_arguments {
    const dp_value *values;
    size_t count;
    const dp_view *names;
    size_t n_names;
} dp_arguments;

/* A status with the line of a node. */
DP_MUST dp_status dp_run_fail(const dp_run *run, const dp_template_node *node, dp_status status,
                              const char *format, ...) __attribute__((format(printf, 4, 5)));
/* As for dp_why_set: the analyzer would follow calls that return another status. */
#ifdef __clang_analyzer__
#define dp_run_fail(run, node, status, ...)                                                        \
    ((void)dp_run_fail(run, node, status, __VA_ARGS__), (status))
#endif
/* Counts work. DP_TOOBIG. */
DP_MUST dp_status dp_run_charge(dp_run *run, const dp_template_node *node, uint64_t steps);
/* Counts work that goes through a value once. DP_TOOBIG. */
DP_MUST dp_status dp_run_charge_for(dp_run *run, const dp_template_node *node,
                                    const dp_value *value);
/* a == b, with its steps counted. DP_TOOBIG. */
DP_MUST dp_status dp_run_equal(dp_run *run, const dp_template_node *node, const dp_value *a,
                               const dp_value *b, bool *equal);
/* The argument at a place, or with this name; NULL: not given. */
const dp_value *dp_argument(const dp_arguments *arguments, size_t index, dp_view name);
/* A value as str() has it, in the arena. */
DP_MUST dp_status dp_run_text(dp_run *run, const dp_template_node *node, const dp_value *value,
                              dp_view *text);
/* The items of a list, the keys of a dict, the characters of a text. */
DP_MUST dp_status dp_run_items(dp_run *run, const dp_template_node *node, const dp_value *of,
                               dp_value *list);
/* value.name or value[name]; undefined if there is none. */
dp_value dp_run_attribute(const dp_value *value, dp_view name);

/* value.name.name ..., where a name of digits is a place in a list. A part that is not there is
 * otherwise, if that is not NULL. DP_BADARG: a part of what is undefined. */
DP_MUST dp_status dp_run_path(dp_run *run, const dp_template_node *node, const dp_value *value,
                              dp_view names, const dp_value *otherwise, dp_value *out);

/* How a statement ends. */
typedef enum dp_flow { DP_FLOW_NEXT, DP_FLOW_BREAK, DP_FLOW_CONTINUE } dp_flow;

/* template_run.c: runs statements up to a break or a continue. */
DP_MUST dp_status dp_run_execute(dp_run *run, const dp_template_node *first, dp_flow *end);
/* template_eval.c: the value of an expression. */
DP_MUST dp_status dp_run_eval(dp_run *run, const dp_template_node *node, dp_value *out);
/* Binds a name, anew or in the place of one from `from` on. */
DP_MUST dp_status dp_run_bind(dp_run *run, dp_bindings *in, size_t from, dp_view name,
                              dp_value value);
/* The same among the locals from `from` on, or outside of loops and macros among the globals. */
DP_MUST dp_status dp_run_set(dp_run *run, size_t from, dp_view name, dp_value value);
dp_value dp_run_find(const dp_run *run, dp_view name);
/* Runs a block, and gives what it writes, and how it ends. */
DP_MUST dp_status dp_run_capture(dp_run *run, const dp_template_node *body, dp_view *text,
                                 dp_flow *end);
/* template_operators.c: a operation b, of node. */
DP_MUST dp_status dp_run_combine(dp_run *run, const dp_template_node *node, const dp_value *a,
                                 const dp_value *b, dp_value *out);
DP_MUST dp_status dp_run_contains(dp_run *run, const dp_template_node *node, const dp_value *a,
                                  const dp_value *b, bool *holds); /* a in b */
DP_MUST dp_status dp_run_holds(dp_run *run, const dp_template_node *node, dp_operation operation,
                               const dp_value *a, const dp_value *b, bool *holds);

/* template_calls.c. Each: DP_UNSUPPORTED (no such word, for this value), DP_BADARG. */
DP_MUST dp_status dp_run_filter(dp_run *run, const dp_template_node *node, const dp_value *subject,
                                const dp_arguments *arguments, dp_value *out);
DP_MUST dp_status dp_run_test(dp_run *run, const dp_template_node *node, const dp_value *subject,
                              const dp_arguments *arguments, bool *holds);
/* node: the attribute. */
DP_MUST dp_status dp_run_method(dp_run *run, const dp_template_node *node, const dp_value *subject,
                                const dp_arguments *arguments, dp_value *out);
DP_MUST dp_status dp_run_function(dp_run *run, const dp_template_node *node, unsigned function,
                                  const dp_arguments *arguments, dp_value *out);
/* The name of a function that templates may call; NULL behind the last. */
const char *dp_run_function_name(unsigned function);

#endif
