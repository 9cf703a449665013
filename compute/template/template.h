/* Templates in a subset of Jinja (the language of Pallets Jinja 3), as chat templates of published
 * models use it: they turn the messages of a chat into text. Opens no files, has no clock, and runs
 * nothing but the template.
 *
 * Statements: for (with if, else, loop, break, continue), if, set (also of a block, and of an
 * attribute of a namespace), macro, generation. Expressions: those of Jinja but star arguments.
 * Filters, methods, tests and functions: the tables of template_filters.c, template_texts.c and
 * template_calls.c. Blocks are trimmed as transformers does it (trim_blocks, lstrip_blocks). Any
 * other word, and an argument that is not known, is refused with its name. Letters have the case of
 * ASCII alone. strftime_now is not defined: a text must not depend on the day when it is made.
 *
 * A template and its variables may be any bytes: a step, a nesting or a byte beyond the bounds
 * below ends the work with a sentence. */
#ifndef DP_COMPUTE_TEMPLATE_TEMPLATE_H
#define DP_COMPUTE_TEMPLATE_TEMPLATE_H

#include <jansson.h>

#include "base/bytes.h"

enum {
    DP_TEMPLATE_BYTES_MAX = 1 << 20,    /* of its source */
    DP_TEMPLATE_DEPTH_MAX = 96,         /* of nested expressions, statements and calls */
    DP_TEMPLATE_STEPS_MAX = 5000000,    /* of one run: expressions, statements, items of lists */
    DP_TEMPLATE_MEMORY_MAX = 256 << 20, /* bytes of values of one run */
    DP_TEMPLATE_TEXT_MAX = 128 << 20    /* bytes that a run may write */
};

typedef struct dp_template dp_template;

/* Reads a template; source may go afterwards. DP_BADMSG (its syntax, with the line), DP_UNSUPPORTED
 * (a part that is not known, with its name and line), DP_TOOBIG, DP_NOMEM. */
DP_MUST dp_status dp_template_open(dp_template **out, dp_view source, dp_why *why);
void dp_template_close(dp_template *template); /* Accepts NULL. */
/* Appends what the template writes with these variables, an object of JSON. DP_BADARG: it refuses
 * them, or an operation does not fit its values (with the line); DP_UNSUPPORTED; DP_TOOBIG (a bound
 * above, or out's); DP_NOMEM. */
DP_MUST dp_status dp_template_run(const dp_template *template, json_t *variables, dp_buf *out,
                                  dp_why *why);

#endif
