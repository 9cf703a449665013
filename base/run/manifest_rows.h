/* The settings of a manifest as rows of tables: their keys, bounds, words and texts. The manifest
 * itself is in manifest.h. */
#ifndef DP_BASE_RUN_MANIFEST_ROWS_H
#define DP_BASE_RUN_MANIFEST_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One row per number in the YAML file: drives keys, help and checks. */
typedef struct dp_manifest_row {
    const char *key;  /* "train.lr" */
    const char *unit; /* "" | "ms" | "tokens" | "1e-9" ...: the unit of the stored integer */
    const char *text; /* one sentence */
    size_t offset;    /* in dp_manifest */
    size_t size;      /* 4 or 8 */
    uint64_t scale;   /* stored = value in the file * scale (3e-3 * 1e9) */
    uint64_t min;     /* of the stored integer */
    uint64_t max;     /* of the same */
    uint64_t default_value;
} dp_manifest_row;

const dp_manifest_row *dp_manifest_rows(size_t *count);

/* One row per setting whose value is a word. */
typedef struct dp_manifest_word {
    const char *name;
    int value;
} dp_manifest_word;

typedef struct dp_manifest_choice {
    const char *key;  /* "train.schedule" */
    const char *text; /* one sentence */
    size_t offset;    /* of an enum in dp_manifest */
    int default_value;
    const dp_manifest_word *words;
    size_t n_words;
} dp_manifest_choice;

const dp_manifest_choice *dp_manifest_choices(size_t *count);
/* True for the key of a row or choice that shapes a model of dpnode's own: "model.layers", but not
 * "model.arch" and "model.seed". */
bool dp_manifest_of_shape(const char *key);
/* "constant, linear, cosine or wsd"; DP_MANIFEST_WORDS_MAX bytes are enough for any row. */
void dp_manifest_words_text(const dp_manifest_choice *choice, char *out, size_t size);

#endif
