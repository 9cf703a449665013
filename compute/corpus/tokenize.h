/* Tokenizes files of text, JSON lines or tokens into a folder of token shards (corpus.h), with a
 * given or a trained tokenizer. */
#ifndef DP_COMPUTE_CORPUS_TOKENIZE_H
#define DP_COMPUTE_CORPUS_TOKENIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compute/corpus/corpus.h"
#include "compute/corpus/document_counts.h"

enum {
    DP_TOKENIZE_FILES_MAX = 4096,
    DP_TOKENIZE_TRAIN_BYTES =
        64 << 20 /* text for training a tokenizer, from the start of the input */
};

typedef enum dp_input_format {
    /* by the name: .jsonl and .ndjson, .bin (ours or llm.c's), else text. If the first line of JSON
     * lines (where bad ones are skipped, the first that is an object) is a document that document.h
     * knows, and has no field of text: all are documents */
    DP_INPUT_AUTO,
    DP_INPUT_TEXT,
    DP_INPUT_JSONL,
    DP_INPUT_TOKENS, /* ours or llm.c's */
    DP_INPUT_NANOGPT,
    DP_INPUT_DOCUMENTS /* JSON lines whose documents are kept apart (document.h) */
} dp_input_format;

typedef struct dp_tokenize_job {
    char *const *paths;
    size_t n_paths;
    dp_input_format format;
    const char *field;     /* of JSON lines */
    const char *tokenizer; /* path of a tokenizer.json; NULL: train one of vocab tokens */
    uint32_t vocab;
    /* Token after each document. NULL: the tokenizer's own (dp_bpe_end_of_text); "": none. Except
     * with "", the tokens of dp_bpe_begin_of_text stand before each document. */
    const char *separator;
    const char *folder;
    uint64_t shard_tokens;
    size_t window;       /* documents are packed into windows of so many tokens; 0: they are not */
    bool skip_bad_lines; /* of JSON lines: count them and go on */
    /* Named where a bad line ends the work: what sets skip_bad_lines; NULL: nothing does. */
    const char *skip_option;
} dp_tokenize_job;

typedef struct dp_tokenized {
    dp_corpus_sum sum;
    uint64_t documents;
    dp_document_counts counts;
} dp_tokenized;

/* Tokenizes all paths. A text file is one document, a line of JSON lines another; files of tokens
 * are taken as they are. Documents that are kept apart have marks (shard.h). A trained tokenizer
 * gets <|endoftext|> if there are several documents. With a given tokenizer each input is read
 * once, and may be a pipe. Errors name file and line. */
DP_MUST dp_status dp_tokenize(const dp_tokenize_job *job, dp_tokenized *made, dp_why *why);

/* True if the job makes documents that are kept apart: its format says so, or its first line. */
bool dp_tokenize_keeps_apart(const dp_tokenize_job *job);
/* True for the name of a file that is taken as JSON lines. */
bool dp_tokenize_is_jsonl(const char *path);
/* False: no such format; auto, text, jsonl, tokens, nanogpt, documents exist. */
bool dp_input_format_of(const char *name, dp_input_format *format);

#endif
