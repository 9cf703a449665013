#include "compute/corpus/tokenize.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "compute/corpus/chat_files.h"
#include "compute/corpus/document.h"
#include "compute/corpus/foreign_data.h"
#include "compute/corpus/jsonl.h"
#include "compute/corpus/window_packer.h"
#include "compute/data/shard.h"
#include "compute/machine/files.h"
#include "compute/unicode/utf8.h"

enum { COPY_TOKENS = 4096 };

static const char end_of_text[] = "<|endoftext|>";

bool dp_input_format_of(const char *name, dp_input_format *format)
{
    static const char *const names[] = {"auto", "text", "jsonl", "tokens", "nanogpt", "documents"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], name) == 0) {
            *format = (dp_input_format)i;
            return true;
        }
    }
    return false;
}

static bool ends_with(const char *path, const char *end)
{
    const size_t size = strlen(path);
    const size_t end_size = strlen(end);
    return size >= end_size && strcmp(path + size - end_size, end) == 0;
}

bool dp_tokenize_is_jsonl(const char *path)
{
    return ends_with(path, ".jsonl") || ends_with(path, ".ndjson");
}

static dp_input_format format_of(const dp_tokenize_job *job, const char *path)
{
    if (job->format != DP_INPUT_AUTO) {
        return job->format;
    }
    if (dp_tokenize_is_jsonl(path)) {
        return DP_INPUT_JSONL;
    }
    return ends_with(path, ".bin") ? DP_INPUT_TOKENS : DP_INPUT_TEXT;
}

/* ---- Going through documents: once to train, once to write. */

/* A document of text, or some tokens (ids not NULL). DP_CLOSED: enough. */
typedef dp_status take_document(void *context, dp_view text, const uint32_t *ids, size_t count,
                                dp_why *why);

/* A line of JSON whose document is kept apart, to be read and taken. */
typedef dp_status take_line(void *context, dp_view line, dp_why *why);

typedef struct walk {
    take_document *take;
    take_line *take_line; /* documents are kept apart; NULL: they are not */
    void *context;
    bool writes; /* what fails from here on is no line's fault; set by take and take_line */
    uint64_t bad_lines;
    dp_why first_bad;
} walk;

static dp_status in_file(const char *path, dp_status status, const dp_why *inner, dp_why *why)
{
    return status == DP_OK || status == DP_CLOSED
               ? status
               : dp_why_set(why, status, "%.200s: %.280s", path,
                            inner->text[0] != '\0' ? inner->text : dp_status_text(status));
}

static dp_status walk_line(walk *w, const dp_tokenize_job *job, dp_jsonl *jsonl, dp_view line,
                           dp_why *why)
{
    dp_view text;
    if (w->take_line != NULL) {
        return w->take_line(w->context, line, why);
    }
    DP_TRY(dp_jsonl_read(jsonl, line, job->field, &text, why));
    return text.size == 0 ? DP_OK : w->take(w->context, text, NULL, 0, why);
}

/* The fault lies in the line, and others may be good. */
static bool is_of_line(dp_status status)
{
    return status == DP_BADMSG || status == DP_BADARG || status == DP_TOOBIG ||
           status == DP_UNSUPPORTED;
}

/* Counts a line that cannot be used. False: it ends the work. */
static bool skips(walk *w, const dp_tokenize_job *job, dp_status status, const dp_why *why)
{
    if (!job->skip_bad_lines || !is_of_line(status) || w->writes) {
        return false;
    }
    w->bad_lines++;
    if (w->bad_lines == 1) {
        w->first_bad = *why;
    }
    return true;
}

/* The sentence of a line that ends the work; of_line: the file can be read. */
static dp_status end_at(const dp_tokenize_job *job, dp_status status, bool of_line,
                        const dp_why *named, dp_why *why)
{
    const bool tells =
        of_line && is_of_line(status) && !job->skip_bad_lines && job->skip_option != NULL;
    return dp_why_set(why, status, "%s%s%s%s", named->text, tells ? "; " : "",
                      tells ? job->skip_option : "", tells ? " counts such lines and goes on" : "");
}

static dp_status walk_jsonl(walk *w, const dp_tokenize_job *job, const char *path, dp_why *why)
{
    dp_jsonl jsonl = {0};
    dp_lines l = {.fd = -1};
    uint64_t number = 1;
    dp_status status = dp_lines_open(&l, path, why);
    if (status != DP_OK) {
        return status;
    }
    for (;; number++) {
        dp_view line;
        dp_why inner = {{0}};
        status = dp_lines_next(&l, &line, &inner);
        if (status == DP_NOTFOUND) {
            status = DP_OK;
            break;
        }
        const bool of_line = status == DP_OK || status == DP_TOOBIG;
        w->writes = false;
        if (status == DP_OK) {
            status = walk_line(w, job, &jsonl, line, &inner);
        }
        if (status == DP_CLOSED) {
            break;
        }
        dp_why named = {{0}};
        if (status != DP_OK) {
            status = dp_why_set(&named, status, "%.200s, line %" PRIu64 ": %.240s", path, number,
                                inner.text[0] != '\0' ? inner.text : dp_status_text(status));
        }
        if (status != DP_OK && !(of_line && skips(w, job, status, &named))) {
            status = end_at(job, status, of_line && !w->writes, &named, why);
            break;
        }
    }
    dp_jsonl_close(&jsonl);
    dp_lines_close(&l);
    return status;
}

static dp_status walk_tokens(walk *w, dp_view bytes, bool nanogpt, dp_why *why)
{
    dp_shard shard;
    DP_TRY(nanogpt ? dp_shard_open_nanogpt(&shard, bytes, why) : dp_shard_open(&shard, bytes, why));
    dp_status status = DP_OK;
    for (uint64_t at = 0; at < shard.n_tokens && status == DP_OK; at += COPY_TOKENS) {
        uint32_t ids[COPY_TOKENS];
        const uint64_t left = shard.n_tokens - at;
        const size_t n = left < COPY_TOKENS ? (size_t)left : COPY_TOKENS;
        dp_shard_read(&shard, at, n, ids);
        status = w->take(w->context, dp_view_of(NULL, 0), ids, n, why);
    }
    return status;
}

static dp_status walk_file(walk *w, const dp_tokenize_job *job, const char *path, dp_why *why)
{
    const dp_input_format format = format_of(job, path);
    if (format == DP_INPUT_JSONL || format == DP_INPUT_DOCUMENTS) {
        return walk_jsonl(w, job, path, why);
    }
    if (w->take_line != NULL) {
        return dp_why_set(
            why, DP_BADARG,
            "%.200s is not JSON lines, and prompts with their answers do not mix with "
            "other data: name files of JSON lines alone",
            path);
    }
    dp_buf bytes;
    dp_why inner = {{0}};
    int fd = -1;
    DP_TRY(dp_file_open_once(path, &fd, why));
    dp_buf_init(&bytes, DP_OBJECT_BYTES_MAX);
    dp_status status = dp_file_read_fd(fd, path, &bytes, why);
    close(fd);
    if (status == DP_OK) {
        const dp_view view = dp_buf_view(&bytes);
        status = format == DP_INPUT_TEXT ? w->take(w->context, view, NULL, 0, &inner)
                                         : walk_tokens(w, view, format == DP_INPUT_NANOGPT, &inner);
        status = in_file(path, status, &inner, why);
    }
    dp_buf_close(&bytes);
    return status;
}

static dp_status walk_all(walk *w, const dp_tokenize_job *job, dp_why *why)
{
    for (size_t i = 0; i < job->n_paths; i++) {
        DP_TRY(walk_file(w, job, job->paths[i], why));
    }
    return DP_OK;
}

/* Tells nothing of the lines of a file: it is blank, or would be skipped. */
static bool is_passed_over(const dp_tokenize_job *job, dp_view line)
{
    return dp_jsonl_is_blank(line) || (job->skip_bad_lines && !dp_jsonl_is_object(line));
}

/* Reads the first line that tells, unless the file is a pipe, which is read once. */
static bool first_is_document(const dp_tokenize_job *job, const char *path)
{
    dp_document document;
    dp_lines l = {.fd = -1};
    dp_view line = {0};
    bool is = false;
    if (dp_file_is_pipe(path) || dp_lines_open(&l, path, NULL) != DP_OK) {
        return false;
    }
    dp_document_init(&document, NULL, NULL);
    dp_status status = dp_lines_next(&l, &line, NULL);
    while ((status == DP_OK && is_passed_over(job, line)) ||
           (status == DP_TOOBIG && job->skip_bad_lines)) {
        status = dp_lines_next(&l, &line, NULL);
    }
    is = status == DP_OK && dp_document_is(&document, line, job->field);
    dp_document_close(&document);
    dp_lines_close(&l);
    return is;
}

bool dp_tokenize_keeps_apart(const dp_tokenize_job *job)
{
    return job->format == DP_INPUT_DOCUMENTS ||
           (job->format == DP_INPUT_AUTO && job->n_paths > 0 &&
            dp_tokenize_is_jsonl(job->paths[0]) && first_is_document(job, job->paths[0]));
}

/* ---- The tokenizer. */

/* Text that a tokenizer is trained on. */
typedef struct sampling {
    dp_buf text;
    dp_document document;
    const char *field;
} sampling;

static dp_status gather(void *context, dp_view text, const uint32_t *ids, size_t count, dp_why *why)
{
    dp_buf *const sample = &((sampling *)context)->text;
    (void)count;
    if (ids != NULL) {
        return dp_why_set(why, DP_BADARG, "tokens need the tokenizer that made them");
    }
    DP_TRY(dp_utf8_check(text, why));
    size_t left = sample->max - sample->size;
    left = left < text.size ? left : text.size;
    while (left > 0 && left < text.size && (text.data[left] & 0xc0) == 0x80) {
        left--; /* Not inside of a character. */
    }
    DP_TRY(dp_buf_append(sample, dp_view_of(text.data, left)));
    return left < text.size ? DP_CLOSED : DP_OK;
}

static dp_status gather_line(void *context, dp_view line, dp_why *why)
{
    sampling *const s = context;
    DP_TRY(dp_document_read(&s->document, line, s->field, why));
    return gather(context, dp_buf_view(&s->document.text), NULL, 0, why);
}

static bool several_documents(const dp_tokenize_job *job)
{
    const dp_input_format first = format_of(job, job->paths[0]);
    return job->n_paths > 1 || first == DP_INPUT_JSONL || first == DP_INPUT_DOCUMENTS;
}

/* A pipe can be read only once; keeping its contents, of any size, is left to the caller. */
static dp_status check_read_twice(const dp_tokenize_job *job, dp_why *why)
{
    for (size_t i = 0; i < job->n_paths; i++) {
        if (dp_file_is_pipe(job->paths[i])) {
            return dp_why_set(why, DP_BADARG,
                              "%.200s is a pipe, which can be read only once, and a tokenizer that "
                              "is trained reads the input before it is tokenized: give a tokenizer "
                              "(--tokenizer FILE), or write what comes of the pipe to a file",
                              job->paths[i]);
        }
    }
    return DP_OK;
}

/* The sentence of an input that gave nothing, with the lines of it that were skipped. */
static dp_status gave_nothing(const walk *w, const char *sentence, dp_why *why)
{
    return w->bad_lines == 0
               ? dp_why_set(why, DP_BADARG, "%s", sentence)
               : dp_why_set(why, DP_BADARG, "%s; lines skipped: %" PRIu64 ", the first: %.260s",
                            sentence, w->bad_lines, w->first_bad.text);
}

static dp_status train_tokenizer(dp_bpe **bpe, const dp_tokenize_job *job, bool apart, dp_why *why)
{
    sampling s = {.field = job->field};
    uint32_t id;
    DP_TRY(check_read_twice(job, why));
    dp_buf_init(&s.text, DP_TOKENIZE_TRAIN_BYTES);
    dp_document_init(&s.document, NULL, NULL);
    walk w = {.take = gather, .take_line = apart ? gather_line : NULL, .context = &s};
    const bool ends = several_documents(job) && job->vocab > DP_BPE_TOKENS_MIN;
    dp_status status = walk_all(&w, job, why);
    if (status == DP_OK || status == DP_CLOSED) {
        status = s.text.size == 0 ? gave_nothing(&w, "the text is empty", why)
                                  : dp_bpe_train(bpe, dp_buf_view(&s.text), job->vocab - ends, why);
    }
    if (status == DP_OK && ends) {
        status = dp_bpe_add_special(*bpe, dp_view_text(end_of_text), &id);
    }
    dp_document_close(&s.document);
    dp_buf_close(&s.text);
    return status;
}

/* The tokenizer, and its file as bytes: as given, byte for byte. */
static dp_status get_tokenizer(dp_bpe **bpe, dp_buf *json, const dp_tokenize_job *job, bool apart,
                               dp_why *why)
{
    if (job->tokenizer == NULL) {
        DP_TRY(train_tokenizer(bpe, job, apart, why));
        return dp_bpe_save(*bpe, json);
    }
    DP_TRY(dp_file_read(job->tokenizer, json, why));
    return dp_bpe_load(bpe, dp_buf_view(json), why);
}

/* The folder that a file is in. */
static dp_status folder_of(const char *path, char folder[PATH_MAX], dp_why *why)
{
    const char *const slash = strrchr(path, '/');
    const int size = slash == NULL ? snprintf(folder, PATH_MAX, ".")
                     : slash == path
                         ? snprintf(folder, PATH_MAX, "/")
                         : snprintf(folder, PATH_MAX, "%.*s", (int)(slash - path), path);
    return size < PATH_MAX ? DP_OK
                           : dp_why_set(why, DP_BADARG, "the path %.300s is too long", path);
}

/* *chat: NULL if the tokenizer has none, or one that cannot be used, of which *chat_why tells; then
 * chats are refused where they come. */
static dp_status open_chat(const dp_tokenize_job *job, dp_chat **chat, dp_why *chat_why,
                           dp_why *why)
{
    char folder[PATH_MAX];
    dp_buf files[DP_CHAT_FILES];
    if (job->tokenizer == NULL) {
        return DP_OK;
    }
    DP_TRY(folder_of(job->tokenizer, folder, why));
    dp_buf_init(&files[0], DP_CHAT_CONFIG_MAX);
    dp_buf_init(&files[1], DP_CHAT_CONFIG_MAX);
    dp_status status = dp_chat_files_read(folder, files, why);
    if (status == DP_OK) {
        const dp_status opened =
            dp_chat_open(chat, dp_buf_view(&files[0]), dp_buf_view(&files[1]), chat_why);
        status = opened == DP_NOMEM ? opened : DP_OK;
        if (opened == DP_NOTFOUND) {
            *chat_why = (dp_why){{0}};
        }
    }
    dp_buf_close(&files[1]);
    dp_buf_close(&files[0]);
    return status;
}

/* So that a folder of data has what its tokenizer's folder had. */
static dp_status keep_chat(const dp_tokenize_job *job, dp_why *why)
{
    char folder[PATH_MAX];
    if (job->tokenizer == NULL) {
        return DP_OK;
    }
    DP_TRY(folder_of(job->tokenizer, folder, why));
    return dp_chat_files_copy(folder, job->folder, why);
}

static dp_status find_separator(const dp_tokenize_job *job, const dp_bpe *bpe, uint32_t *id,
                                bool *found, dp_why *why)
{
    *found = false;
    if (job->separator != NULL) {
        *found = job->separator[0] != '\0';
        if (*found && !dp_bpe_special(bpe, dp_view_text(job->separator), id)) {
            return dp_why_set(why, DP_BADARG, "the tokenizer has no added token '%.64s'",
                              job->separator);
        }
        return DP_OK;
    }
    *found = dp_bpe_end_of_text(bpe, id);
    return DP_OK;
}

/* ---- Writing. */

typedef struct writing {
    dp_corpus corpus;
    dp_encoder *encoder;
    dp_tokens tokens;      /* of one document */
    dp_document_ends ends; /* around each */
    uint64_t documents;
    walk walk; /* of all lines */
    /* of documents that are kept apart */
    const char *field;
    dp_document document;
    dp_window_packer packer; /* without a window: zero */
    bool packs;
    uint64_t left_out;
} writing;

static dp_status write_document(void *context, dp_view text, const uint32_t *ids, size_t count,
                                dp_why *why)
{
    writing *const w = context;
    if (ids != NULL) {
        w->walk.writes = true;
        return dp_corpus_add(&w->corpus, ids, count, why);
    }
    w->tokens.count = 0;
    DP_TRY(dp_tokens_append(&w->tokens, w->ends.before, w->ends.n_before));
    DP_TRY(dp_encode(w->encoder, text, &w->tokens, why));
    if (w->ends.has_after) {
        DP_TRY(dp_tokens_append(&w->tokens, &w->ends.after, 1));
    }
    w->documents++;
    w->walk.writes = true;
    return dp_corpus_add(&w->corpus, w->tokens.ids, w->tokens.count, why);
}

/* A document that is kept apart. */
static dp_status write_line(void *context, dp_view line, dp_why *why)
{
    writing *const w = context;
    dp_document *const d = &w->document;
    const dp_status read = dp_document_read(d, line, w->field, why);
    w->walk.writes = read != DP_OK && d->is_chat && d->chat == NULL; /* no template */
    DP_TRY(read);
    if (d->text.size == 0) {
        return DP_OK;
    }
    DP_TRY(dp_document_encode(d, w->encoder, &w->ends, why));
    w->documents++;
    w->walk.writes = true;
    if (w->packs) {
        return dp_window_packer_add(&w->packer, d->tokens.ids, d->marks.data, d->tokens.count, why);
    }
    if (dp_document_losses(d->marks.data, d->tokens.count) == 0) {
        w->left_out++;
        return DP_OK;
    }
    return dp_corpus_add_marked(&w->corpus, d->tokens.ids, d->marks.data, d->tokens.count, why);
}

static dp_status open_writing(writing *w, const dp_tokenize_job *job, const dp_bpe *bpe, bool apart,
                              dp_why *why)
{
    w->walk = (walk){.take = write_document, .take_line = apart ? write_line : NULL, .context = w};
    w->field = job->field;
    w->packs = apart && job->window != 0;
    DP_TRY(find_separator(job, bpe, &w->ends.after, &w->ends.has_after, why));
    if (w->ends.has_after) {
        w->ends.before = dp_bpe_begin_of_text(bpe, &w->ends.n_before);
    }
    DP_TRY(dp_encoder_open(&w->encoder, bpe, why));
    DP_TRY(dp_folder_make(job->folder, why));
    DP_TRY(dp_corpus_open(&w->corpus, bpe, job->folder, job->shard_tokens));
    return w->packs ? dp_window_packer_open(&w->packer, &w->corpus, job->window,
                                            w->ends.has_after ? w->ends.after : 0)
                    : DP_OK;
}

/* Where no token was written: why. */
static dp_status check_written(const writing *w, const dp_tokenize_job *job, dp_why *why)
{
    char within[64] = "";
    char left_out[128] = "";
    char sentence[256];
    const uint64_t n = w->left_out + w->packer.left_out;
    if (w->corpus.n_rows > 0 || w->corpus.tokens_here > 0) {
        return DP_OK;
    }
    if (w->packs) {
        snprintf(within, sizeof within, " in the first %zu tokens (model.context)", job->window);
    }
    if (n > 0) {
        snprintf(left_out, sizeof left_out, ": %" PRIu64 " of %" PRIu64, n, w->documents);
    }
    snprintf(sentence, sizeof sentence, "there is no token in the input%s%s%s",
             n > 0 ? "; documents without an answer" : "", n > 0 ? within : "", left_out);
    return gave_nothing(&w->walk, sentence, why);
}

static dp_status write_all(writing *w, const dp_tokenize_job *job, const dp_bpe *bpe, bool apart,
                           dp_view json, dp_tokenized *made, dp_why *why)
{
    dp_hash root;
    DP_TRY(open_writing(w, job, bpe, apart, why));
    DP_TRY(walk_all(&w->walk, job, why));
    if (w->packs) {
        DP_TRY(dp_window_packer_finish(&w->packer, why));
    }
    DP_TRY(check_written(w, job, why));
    DP_TRY(dp_file_write(job->folder, DP_CORPUS_TOKENIZER, json, why));
    DP_TRY(keep_chat(job, why));
    DP_TRY(dp_corpus_finish(&w->corpus, &root, why));
    *made = (dp_tokenized){.documents = w->documents,
                           .counts = {.apart = apart,
                                      .losses = w->corpus.losses_all,
                                      .padding = w->packer.padding,
                                      .cut = w->packer.cut,
                                      .left_out = w->left_out + w->packer.left_out,
                                      .bad_lines = w->walk.bad_lines,
                                      .first_bad = w->walk.first_bad},
                           .sum = {.shards = w->corpus.n_rows,
                                   .vocab = w->corpus.vocab,
                                   .tokens = w->corpus.tokens,
                                   .text_bytes = w->corpus.text_bytes,
                                   .losses = w->corpus.losses_all,
                                   .documents = w->corpus.documents,
                                   .root = root}};
    return DP_OK;
}

dp_status dp_tokenize(const dp_tokenize_job *job, dp_tokenized *made, dp_why *why)
{
    writing w = {.documents = 0};
    dp_bpe *bpe = NULL;
    dp_buf json;
    dp_buf_init(&json, DP_BPE_JSON_BYTES_MAX);
    if (job->n_paths == 0 || job->n_paths > DP_TOKENIZE_FILES_MAX) {
        return dp_why_set(why, DP_BADARG, "give 1 to %d files", DP_TOKENIZE_FILES_MAX);
    }
    for (size_t i = 0; i < job->n_paths; i++) {
        DP_TRY(dp_foreign_data_check(job->paths[i], job->format != DP_INPUT_AUTO, why));
    }
    dp_chat *chat = NULL;
    dp_why chat_why = {{0}};
    const bool apart = dp_tokenize_keeps_apart(job);
    dp_status status = get_tokenizer(&bpe, &json, job, apart, why);
    if (status == DP_OK && apart) {
        status = open_chat(job, &chat, &chat_why, why);
    }
    dp_document_init(&w.document, chat, &chat_why);
    if (status == DP_OK) {
        status = write_all(&w, job, bpe, apart, dp_buf_view(&json), made, why);
    }
    dp_window_packer_close(&w.packer);
    dp_document_close(&w.document);
    dp_chat_close(chat);
    dp_tokens_close(&w.tokens);
    dp_corpus_close(&w.corpus);
    dp_encoder_close(w.encoder);
    dp_bpe_close(bpe);
    dp_buf_close(&json);
    return status;
}
