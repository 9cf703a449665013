/* Counts of documents and lines of an input that were not taken as they are, for people. */
#ifndef DP_COMPUTE_CORPUS_DOCUMENT_COUNTS_H
#define DP_COMPUTE_CORPUS_DOCUMENT_COUNTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"

typedef struct dp_document_counts {
    bool apart;         /* documents are kept apart; the next four are of these alone */
    uint64_t losses;    /* tokens with a loss */
    uint64_t padding;   /* tokens that fill windows */
    uint64_t cut;       /* documents that were longer than a window */
    uint64_t left_out;  /* documents without a loss, in a window if they are packed */
    uint64_t bad_lines; /* lines of JSON that were skipped */
    dp_why first_bad;   /* the sentence of the first of them; "" without */
} dp_document_counts;

/* Appends the members that are known to an object of JSON: `, "losses": 3, ...`; may be nothing.
 * Returns false if there is no memory. */
bool dp_document_counts_print(const dp_document_counts *counts, FILE *out);

#endif
