/* The tree of a template, from its source to a run. Private to template*.c. */
#ifndef DP_COMPUTE_TEMPLATE_TEMPLATE_NODE_H
#define DP_COMPUTE_TEMPLATE_TEMPLATE_NODE_H

#include "compute/template/template.h"
#include "compute/template/template_value.h"

typedef enum dp_node_kind {
    /* Statements; next is the one behind it. */
    DP_NODE_TEXT,   /* text */
    DP_NODE_OUTPUT, /* a */
    DP_NODE_FOR,    /* names; a: what; b: condition or NULL; body; other */
    DP_NODE_IF,     /* a; body; other */
    DP_NODE_SET,    /* names, or text an attribute of names[0]; a: value; or NULL, then body */
    DP_NODE_MACRO,  /* text: its name; names, list: their defaults, kind NULL: none; body */
    DP_NODE_BLOCK,  /* body */
    DP_NODE_BREAK,
    DP_NODE_CONTINUE,
    /* Expressions. */
    DP_NODE_VALUE,     /* value */
    DP_NODE_NAME,      /* text */
    DP_NODE_LIST,      /* list */
    DP_NODE_DICT,      /* list: key, value, key ... */
    DP_NODE_NOT,       /* a */
    DP_NODE_NEGATE,    /* a */
    DP_NODE_AND,       /* a, b */
    DP_NODE_OR,        /* a, b */
    DP_NODE_CHOICE,    /* a if b else c or NULL */
    DP_NODE_BINARY,    /* a, operation, b */
    DP_NODE_COMPARE,   /* a; list: right sides; operations: of each */
    DP_NODE_ATTRIBUTE, /* a . text */
    DP_NODE_ITEM,      /* a [ b ] */
    DP_NODE_SLICE,     /* a [ b : c : d ], each may be NULL */
    DP_NODE_CALL,      /* a ( list, with names of the last ones ) */
    DP_NODE_FILTER,    /* a | text ( list ... ) */
    DP_NODE_TEST       /* a is text ( list ... ) */
} dp_node_kind;

typedef enum dp_operation {
    DP_OP_ADD,
    DP_OP_SUBTRACT,
    DP_OP_MULTIPLY,
    DP_OP_DIVIDE,
    DP_OP_FLOOR,
    DP_OP_MODULO,
    DP_OP_JOIN,
    DP_OP_EQUAL,
    DP_OP_UNEQUAL,
    DP_OP_LESS,
    DP_OP_LESS_EQUAL,
    DP_OP_GREATER,
    DP_OP_GREATER_EQUAL,
    DP_OP_IN,
    DP_OP_NOT_IN
} dp_operation;

typedef struct dp_template_node dp_template_node;

struct dp_template_node {
    dp_node_kind kind;
    uint32_t line;
    dp_view text;
    dp_operation operation;
    dp_value value;
    dp_template_node *a;
    dp_template_node *b;
    dp_template_node *c;
    dp_template_node *d;
    dp_template_node *body;
    dp_template_node *other;
    dp_template_node *next; /* of statements, and of the items of list */
    dp_template_node *list;
    dp_view *names; /* of arguments; targets */
    dp_operation *operations;
    size_t n_list;
    bool is_tuple; /* of a list: how str() writes it */
    size_t n_names;
};

struct dp_template {
    dp_arena arena;
    dp_view source; /* a copy */
    dp_template_node *first;
};

/* template_lex.c: the pieces of a source. */
typedef enum dp_lexeme_kind {
    DP_LEX_TEXT,
    DP_LEX_BLOCK_BEGIN,
    DP_LEX_BLOCK_END,
    DP_LEX_OUTPUT_BEGIN,
    DP_LEX_OUTPUT_END,
    DP_LEX_NAME,
    DP_LEX_STRING, /* with its escapes resolved */
    DP_LEX_INT,
    DP_LEX_FLOAT,
    DP_LEX_SIGN, /* an operator or a bracket */
    DP_LEX_END
} dp_lexeme_kind;

typedef struct dp_lexeme {
    dp_lexeme_kind kind;
    uint32_t line;
    dp_view text;
} dp_lexeme;

/* The pieces in order, ended by DP_LEX_END, in the arena, borrowed from source. DP_BADMSG,
 * DP_NOMEM. */
DP_MUST dp_status dp_template_lex(dp_arena *arena, dp_view source, dp_lexeme **out, dp_why *why);
/* template_parse.c: fills first. */
DP_MUST dp_status dp_template_parse(dp_template *t, const dp_lexeme *lexemes, dp_why *why);

#endif
