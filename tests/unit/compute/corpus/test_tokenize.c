#include "tests/lib/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "compute/corpus/jsonl.h"
#include "compute/corpus/tokenize.h"
#include "compute/data/data.h"
#include "compute/machine/files.h"
#include "tests/lib/tempdir.h"
#include "tests/unit/compute/tiny_run.h"

enum { BUF_MAX = 1 << 22, LINES = 40 };

typedef struct desk {
    tempdir dir;
    char paths[3][TEMPDIR_FILE_MAX];
    char *words[3];
    char out[TEMPDIR_FILE_MAX];
    dp_tokenize_job job;
} desk;

static void desk_open(desk *d)
{
    memset(d, 0, sizeof *d);
    tempdir_open(&d->dir);
    d->job = (dp_tokenize_job){.paths = d->words,
                               .field = "text",
                               .vocab = 300,
                               .folder = tempdir_file(&d->dir, "out", d->out),
                               .shard_tokens = 1000};
}

static void desk_close(desk *d)
{
    tempdir_close(&d->dir);
}

/* One more input. */
static void add_file(desk *d, const char *name, dp_view bytes)
{
    CHECK_OK(dp_file_write(d->dir.path, name, bytes, NULL));
    tempdir_file(&d->dir, name, d->paths[d->job.n_paths]);
    d->words[d->job.n_paths] = d->paths[d->job.n_paths];
    d->job.n_paths++;
}

static void add_text(desk *d, const char *name, const char *text)
{
    add_file(d, name, dp_view_text(text));
}

static dp_tokenized run(const desk *d)
{
    dp_tokenized made;
    dp_why why = {{0}};
    const dp_status status = dp_tokenize(&d->job, &made, &why);
    if (status != DP_OK) {
        print_error("%s\n", why.text);
    }
    CHECK_OK(status);
    return made;
}

static void check_refused(const desk *d, dp_status wanted, const char *words)
{
    dp_tokenized made;
    dp_why why = {{0}};
    CHECK_STATUS(dp_tokenize(&d->job, &made, &why), wanted);
    if (strstr(why.text, words) == NULL) {
        print_error("'%s' lacks '%s'\n", why.text, words);
        CHECK(false);
    }
}

static dp_buf read_out(const desk *d, const char *name)
{
    char path[TEMPDIR_FILE_MAX];
    char inside[64];
    dp_buf bytes;
    snprintf(inside, sizeof inside, "out/%s", name);
    dp_buf_init(&bytes, BUF_MAX);
    CHECK_OK(dp_file_read(tempdir_file(&d->dir, inside, path), &bytes, NULL));
    return bytes;
}

/* The text that all shards stand for. */
static dp_buf text_of(const desk *d, uint32_t shards)
{
    dp_buf json = read_out(d, DP_CORPUS_TOKENIZER);
    dp_buf text;
    dp_bpe *bpe;
    dp_buf_init(&text, BUF_MAX);
    CHECK_OK(dp_bpe_load(&bpe, dp_buf_view(&json), NULL));
    for (uint32_t i = 0; i < shards; i++) {
        char name[32];
        snprintf(name, sizeof name, "tokens-%05u.bin", i);
        dp_buf bytes = read_out(d, name);
        dp_shard shard;
        CHECK_OK(dp_shard_open(&shard, dp_buf_view(&bytes), NULL));
        for (uint64_t j = 0; j < shard.n_tokens; j++) {
            uint32_t id;
            dp_shard_read(&shard, j, 1, &id);
            CHECK_OK(dp_bpe_decode(bpe, &id, 1, &text));
        }
        dp_buf_close(&bytes);
    }
    dp_bpe_close(bpe);
    dp_buf_close(&json);
    return text;
}

static void text_becomes_shards_that_stand_for_it(void **state)
{
    (void)state;
    static char text[20000];
    desk d;
    desk_open(&d);
    tiny_run_text(text, sizeof text);
    add_file(&d, "book.txt", dp_view_of(text, sizeof text));
    const dp_tokenized made = run(&d);
    CHECK(made.documents == 1 && made.sum.text_bytes == sizeof text && made.sum.shards > 3);
    CHECK(made.sum.tokens > 1000 * (made.sum.shards - 1));
    dp_buf back = text_of(&d, made.sum.shards);
    CHECK(dp_view_equal(dp_buf_view(&back), dp_view_of(text, sizeof text)));
    dp_corpus_sum sum;
    CHECK_OK(dp_corpus_verify(d.job.folder, &sum, NULL));
    CHECK(dp_hash_equal(&sum.root, &made.sum.root) && sum.tokens == made.sum.tokens);
    dp_buf_close(&back);
    desk_close(&d);
}

static dp_buf many_lines(void)
{
    dp_buf lines;
    dp_buf_init(&lines, BUF_MAX);
    for (int i = 0; i < LINES; i++) {
        char line[128];
        snprintf(line, sizeof line, "{\"id\": %d, \"text\": \"and the waters were %d\"}\n%s", i, i,
                 i % 7 == 0 ? "\n" : "");
        CHECK_OK(dp_buf_append(&lines, dp_view_text(line)));
    }
    return lines;
}

static void each_line_of_json_is_a_document_with_an_end(void **state)
{
    (void)state;
    desk d;
    desk_open(&d);
    dp_buf lines = many_lines();
    add_file(&d, "web.jsonl", dp_buf_view(&lines));
    const dp_tokenized made = run(&d);
    CHECK(made.documents == LINES);
    dp_buf back = text_of(&d, made.sum.shards);
    CHECK(dp_view_equal(
        dp_view_of(back.data, 60),
        dp_view_text("and the waters were 0<|endoftext|>and the waters were 1<|end")));
    dp_buf_close(&back);
    d.job.separator = "";
    const dp_tokenized bare = run(&d);
    CHECK(bare.sum.tokens == made.sum.tokens - LINES);
    d.job.separator = "<|nothing|>";
    check_refused(&d, DP_BADARG, "no added token '<|nothing|>'");
    dp_buf_close(&lines);
    desk_close(&d);
}

/* A Unigram of a few words, whose post-processor puts <s> before a text and </s> after it. */
static void documents_stand_between_the_tokens_of_the_post_processor(void **state)
{
    (void)state;
    static const char json[] =
        "{\"added_tokens\":[{\"id\":1,\"content\":\"<s>\",\"special\":true,\"normalized\":false},"
        "{\"id\":2,\"content\":\"</s>\",\"special\":true,\"normalized\":false}],"
        "\"post_processor\":{\"type\":\"RobertaProcessing\",\"sep\":[\"</"
        "s>\",2],\"cls\":[\"<s>\",1]},"
        "\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"<s>\",0],[\"</"
        "s>\",0],"
        "[\"and the waters were \",-1],[\"1\",-2]]}}";
    static const uint8_t wanted[] = {1, 0, 3, 0, 0, 0, 2, 0, 1, 0, 3, 0, 4, 0, 2, 0, 1, 0};
    char path[TEMPDIR_FILE_MAX];
    desk d;
    desk_open(&d);
    dp_buf lines = many_lines();
    add_file(&d, "web.jsonl", dp_buf_view(&lines));
    CHECK_OK(dp_file_write(d.dir.path, "given.json", dp_view_text(json), NULL));
    d.job.tokenizer = tempdir_file(&d.dir, "given.json", path);
    const dp_tokenized made = run(&d);
    dp_buf shard = read_out(&d, "tokens-00000.bin");
    CHECK(shard.size > DP_SHARD_HEADER_BYTES + sizeof wanted &&
          memcmp(shard.data + DP_SHARD_HEADER_BYTES, wanted, sizeof wanted) == 0);
    dp_buf_close(&shard);
    d.job.separator = "";
    const dp_tokenized bare = run(&d);
    CHECK(bare.sum.tokens == made.sum.tokens - (uint64_t)2 * LINES);
    dp_buf_close(&lines);
    desk_close(&d);
}

static void tokens_of_others_are_taken_over(void **state)
{
    (void)state;
    static char text[4000];
    char path[TEMPDIR_FILE_MAX];
    desk d;
    desk_open(&d);
    tiny_run_text(text, sizeof text);
    add_file(&d, "book.txt", dp_view_of(text, sizeof text));
    d.job.shard_tokens = 100000;
    const dp_tokenized first = run(&d);
    dp_buf ours = read_out(&d, "tokens-00000.bin");
    dp_buf json = read_out(&d, DP_CORPUS_TOKENIZER);
    CHECK_OK(dp_file_write(d.dir.path, "given.json", dp_buf_view(&json), NULL));
    CHECK_OK(dp_file_write(
        d.dir.path, "raw.bin",
        dp_view_of(ours.data + DP_SHARD_HEADER_BYTES, ours.size - DP_SHARD_HEADER_BYTES), NULL));
    tempdir_file(&d.dir, "raw.bin", d.paths[0]);
    d.job.tokenizer = tempdir_file(&d.dir, "given.json", path);
    d.job.format = DP_INPUT_NANOGPT;
    const dp_tokenized second = run(&d);
    CHECK(dp_hash_equal(&first.sum.root, &second.sum.root));
    d.job.tokenizer = NULL;
    check_refused(&d, DP_BADARG, "raw.bin: tokens need the tokenizer that made them");
    d.job.tokenizer = path;
    d.job.format = DP_INPUT_AUTO;
    check_refused(&d, DP_BADMSG, "raw.bin: the data is not a token shard");
    const uint8_t beyond[] = {1, 0, 0xff, 0x7f};
    CHECK_OK(dp_file_write(d.dir.path, "raw.bin", dp_view_of(beyond, sizeof beyond), NULL));
    d.job.format = DP_INPUT_NANOGPT;
    check_refused(&d, DP_BADARG, "token 1 is 32767, which the tokenizer of ");
    dp_buf_close(&ours);
    dp_buf_close(&json);
    desk_close(&d);
}

static void text_that_cannot_be_tokenized_is_named_with_its_line(void **state)
{
    (void)state;
    desk d;
    desk_open(&d);
    check_refused(&d, DP_BADARG, "files");
    add_text(&d, "a.jsonl", "{\"text\": \"fine\"}\n\n{\"body\": \"not\"}");
    check_refused(&d, DP_BADMSG, "a.jsonl, line 3: no object with a text");
    add_text(&d, "a.jsonl", "{\"text\": \"fine\"}\n{\"text\": \"cut");
    d.job.n_paths = 1;
    check_refused(&d, DP_BADMSG, "a.jsonl, line 2: not JSON");
    add_text(&d, "b.txt", "caf\xe9");
    CHECK_OK(dp_file_write(d.dir.path, "a.jsonl", dp_view_text("{\"text\": \"fine\"}"), NULL));
    check_refused(&d, DP_BADMSG, "b.txt: the text is not UTF-8 at byte 3");
    tempdir_file(&d.dir, "none", d.paths[1]);
    check_refused(&d, DP_NOTFOUND, "none");
    CHECK_OK(dp_file_write(d.dir.path, "a.jsonl", dp_view_text("\n\n"), NULL));
    d.job.n_paths = 1;
    check_refused(&d, DP_BADARG, "the text is empty");
    desk_close(&d);
}

/* The words of a shell's <(...): the reading end of a pipe, by the name that it has in this
 * process. Its writer is done. */
static int add_pipe(desk *d, const char *text)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    CHECK(write(ends[1], text, strlen(text)) == (ssize_t)strlen(text) && close(ends[1]) == 0);
    snprintf(d->paths[d->job.n_paths], sizeof d->paths[0], "/dev/fd/%d", ends[0]);
    d->words[d->job.n_paths] = d->paths[d->job.n_paths];
    d->job.n_paths++;
    return ends[0];
}

static void a_pipe_is_read_as_a_file_where_once_is_enough(void **state)
{
    (void)state;
    static const dp_input_format formats[] = {DP_INPUT_TEXT, DP_INPUT_JSONL};
    for (size_t i = 0; i < 2; i++) {
        const char *const words =
            i == 0 ? "sea and sky, sky and sea" : "{\"text\":\"sea and sky\"}\n";
        char tokenizer[TEMPDIR_FILE_MAX];
        desk d;
        desk_open(&d);
        add_text(&d, "plain", words);
        d.job.format = formats[i];
        const dp_tokenized plain = run(&d);
        d.job.tokenizer = tempdir_file(&d.dir, "out/" DP_CORPUS_TOKENIZER, tokenizer);
        d.job.n_paths = 0;
        char again[TEMPDIR_FILE_MAX];
        d.job.folder = tempdir_file(&d.dir, "again", again);
        const int end = add_pipe(&d, words);
        const dp_tokenized piped = run(&d);
        CHECK(piped.documents == plain.documents && piped.sum.tokens == plain.sum.tokens);
        CHECK(dp_hash_equal(&piped.sum.root, &plain.sum.root));
        close(end);
        desk_close(&d);
    }
}

static void a_pipe_is_no_input_to_train_a_tokenizer_on(void **state)
{
    (void)state;
    desk d;
    desk_open(&d);
    add_text(&d, "plain", "sea and sky");
    const int end = add_pipe(&d, "sky and sea");
    check_refused(&d, DP_BADARG, "is a pipe, which can be read only once");
    check_refused(&d, DP_BADARG, "--tokenizer FILE");
    close(end);
    desk_close(&d);
}

static void damage_write(const desk *d, const char *name, dp_view bytes)
{
    CHECK_OK(dp_file_write(d->job.folder, name, bytes, NULL));
}

static void check_corpus(const desk *d, dp_status wanted, const char *words)
{
    dp_corpus_sum sum;
    dp_why why = {{0}};
    CHECK_STATUS(dp_corpus_verify(d->job.folder, &sum, &why), wanted);
    CHECK(strstr(why.text, words) != NULL);
}

static void damage_in_a_folder_is_found_and_named(void **state)
{
    (void)state;
    static char text[8000];
    desk d;
    desk_open(&d);
    tiny_run_text(text, sizeof text);
    add_file(&d, "book.txt", dp_view_of(text, sizeof text));
    CHECK(run(&d).sum.shards >= 2);
    dp_buf good = read_out(&d, "tokens-00001.bin");
    dp_buf json = read_out(&d, DP_CORPUS_TOKENIZER);
    dp_buf table = read_out(&d, DP_CORPUS_TABLE);
    good.data[40] ^= 1;
    damage_write(&d, "tokens-00001.bin", dp_buf_view(&good));
    check_corpus(&d, DP_BADHASH, "tokens-00001.bin: it is not what the table names");
    good.data[40] ^= 1;
    damage_write(&d, "tokens-00001.bin", dp_buf_view(&good));
    dp_bpe *other;
    dp_buf other_json;
    dp_buf_init(&other_json, BUF_MAX);
    CHECK_OK(dp_bpe_train(&other, dp_view_of(text, sizeof text), 270, NULL));
    CHECK_OK(dp_bpe_save(other, &other_json));
    dp_bpe_close(other);
    damage_write(&d, DP_CORPUS_TOKENIZER, dp_buf_view(&other_json));
    check_corpus(&d, DP_BADARG, "tokenizer.json has 270");
    damage_write(&d, DP_CORPUS_TOKENIZER, dp_buf_view(&json));
    damage_write(&d, DP_CORPUS_TABLE, dp_view_of(table.data, table.size - 1));
    check_corpus(&d, DP_BADMSG, "cut off");
    damage_write(&d, DP_CORPUS_TABLE, dp_buf_view(&table));
    dp_corpus_sum sum;
    CHECK_OK(dp_corpus_verify(d.job.folder, &sum, NULL));
    dp_buf_close(&other_json);
    dp_buf_close(&good);
    dp_buf_close(&json);
    dp_buf_close(&table);
    desk_close(&d);
}

/* Questions and answers, with a bad line among them; a shard of them holds 100 tokens. */
static void add_answers(desk *d, const char *name)
{
    dp_buf lines;
    dp_buf_init(&lines, BUF_MAX);
    for (int i = 0; i < LINES; i++) {
        char line[160];
        snprintf(line, sizeof line, "%s{\"prompt\": \"and %d the \", \"completion\": \"waters\"}\n",
                 i == 7 ? "{\"prompt\": 3}\n" : "", i);
        CHECK_OK(dp_buf_append(&lines, dp_view_text(line)));
    }
    add_file(d, name, dp_buf_view(&lines));
    dp_buf_close(&lines);
}

static void prompts_and_answers_become_documents_that_are_kept_apart(void **state)
{
    (void)state;
    desk d;
    desk_open(&d);
    add_answers(&d, "answers.jsonl");
    d.job.shard_tokens = 100;
    CHECK(dp_tokenize_keeps_apart(&d.job));
    check_refused(&d, DP_BADMSG, "answers.jsonl, line 8: no object with texts");
    d.job.skip_bad_lines = true;
    const dp_tokenized made = run(&d);
    CHECK(made.documents == LINES && made.counts.apart && made.counts.bad_lines == 1);
    CHECK(strstr(made.counts.first_bad.text, "answers.jsonl, line 8: no object") != NULL);
    dp_corpus_sum sum;
    CHECK_OK(dp_corpus_verify(d.job.folder, &sum, NULL));
    CHECK(sum.documents && sum.losses == made.counts.losses && sum.shards > 2);
    uint64_t begins = 0;
    for (uint32_t i = 0; i < sum.shards; i++) {
        char name[32];
        dp_shard shard;
        snprintf(name, sizeof name, "tokens-%05u.bin", i);
        dp_buf bytes = read_out(&d, name);
        CHECK_OK(dp_shard_open(&shard, dp_buf_view(&bytes), NULL));
        for (uint64_t t = 0; t < shard.n_tokens; t++) {
            begins += (dp_shard_marks(&shard, t) & DP_MARK_BEGINS) != 0;
        }
        dp_buf_close(&bytes);
    }
    CHECK(begins == LINES); /* None goes on in the next shard. */
    d.job.shard_tokens = 4;
    check_refused(&d, DP_TOOBIG, "does not fit into a shard of 4"); /* No line's fault. */
    desk_close(&d);
}

/* The rest of the lines are the same: the same shards, as if the bad one had not been there. */
static void a_skipped_line_leaves_no_trace(void **state)
{
    (void)state;
    char path[TEMPDIR_FILE_MAX];
    desk d;
    desk_open(&d);
    add_text(&d, "a.jsonl", "{\"text\": \"sea and sky\"}\n{\"text\": \"sky\"}\n");
    const dp_tokenized whole = run(&d);
    d.job.tokenizer = tempdir_file(&d.dir, "out/" DP_CORPUS_TOKENIZER, path);
    char again[TEMPDIR_FILE_MAX];
    d.job.folder = tempdir_file(&d.dir, "again", again);
    d.job.n_paths = 0;
    d.job.skip_bad_lines = true;
    add_text(&d, "b.jsonl",
             "{\"text\": \"sea and sky\"}\n{\"text\": \nnothing\n{\"text\": \"sky\"}\n{}");
    const dp_tokenized rest = run(&d);
    CHECK(dp_hash_equal(&whole.sum.root, &rest.sum.root));
    CHECK(rest.documents == 2 && rest.counts.bad_lines == 3 && !rest.counts.apart);
    CHECK(strstr(rest.counts.first_bad.text, "b.jsonl, line 2: not JSON") != NULL);
    desk_close(&d);
}

static void documents_are_packed_where_a_window_is_given(void **state)
{
    (void)state;
    desk d;
    dp_shard shard;
    desk_open(&d);
    add_answers(&d, "answers.jsonl");
    d.job.skip_bad_lines = true;
    d.job.window = 32;
    const dp_tokenized made = run(&d);
    dp_buf bytes = read_out(&d, "tokens-00000.bin");
    CHECK_OK(dp_shard_open(&shard, dp_buf_view(&bytes), NULL));
    CHECK(made.sum.shards == 1 && (shard.n_tokens - 1) % 32 == 0);
    for (uint64_t i = 0; i < shard.n_tokens; i += 32) {
        CHECK((dp_shard_marks(&shard, i) & DP_MARK_BEGINS) != 0);
    }
    CHECK(made.counts.cut == 0 && made.counts.left_out == 0);
    dp_buf_close(&bytes);
    d.job.window = 2; /* The prompts alone are longer. */
    check_refused(&d, DP_BADARG,
                  "there is no token in the input; documents without an answer in the first 2 "
                  "tokens (model.context): 40 of 40; lines skipped: 1, the first: ");
    d.job.n_paths = 0;
    add_text(&d, "empty.jsonl", "{\"prompt\": \"sea and sky\", \"completion\": \"\"}\n");
    check_refused(&d, DP_BADARG, "in the first 2 tokens (model.context): 1 of 1");
    d.job.window = 0;
    d.job.separator = ""; /* It would be learned. */
    check_refused(&d, DP_BADARG, "documents without an answer: 1 of 1");
    desk_close(&d);
}

/* A tokenizer of bytes with two special tokens; the job takes it. */
static void give_tokenizer(desk *d, char path[TEMPDIR_FILE_MAX])
{
    dp_bpe *bpe;
    dp_buf json;
    uint32_t id;
    dp_buf_init(&json, BUF_MAX);
    CHECK_OK(dp_bpe_train(&bpe, dp_view_text("sea and sky"), 256, NULL));
    CHECK_OK(dp_bpe_add_special(bpe, dp_view_text("<|im_start|>"), &id));
    CHECK_OK(dp_bpe_add_special(bpe, dp_view_text("<|im_end|>"), &id));
    CHECK_OK(dp_bpe_save(bpe, &json));
    CHECK_OK(dp_file_write(d->dir.path, "tokenizer.json", dp_buf_view(&json), NULL));
    d->job.tokenizer = tempdir_file(&d->dir, "tokenizer.json", path);
    dp_buf_close(&json);
    dp_bpe_close(bpe);
}

/* Skipping them all must not hide why. */
static void a_file_of_bad_lines_alone_names_the_first(void **state)
{
    (void)state;
    char path[TEMPDIR_FILE_MAX];
    desk d;
    desk_open(&d);
    d.job.skip_bad_lines = true;
    add_text(&d, "bad.jsonl", "{\"body\": \"sea\"}\nnothing\n");
    check_refused(&d, DP_BADARG, "; lines skipped: 2, the first: ");
    check_refused(&d, DP_BADARG, "bad.jsonl, line 1: no object with a text");
    give_tokenizer(&d, path);
    check_refused(&d, DP_BADARG, "; lines skipped: 2, the first: ");
    check_refused(&d, DP_BADARG, "bad.jsonl, line 1: no object with a text");
    desk_close(&d);
}

/* The first line that is an object does. */
static void a_bad_first_line_does_not_decide(void **state)
{
    (void)state;
    desk d;
    desk_open(&d);
    add_text(&d, "a.jsonl",
             "{\"prompt\": \"cut off\n[1]\n{\"prompt\": \"sea\", \"completion\": \"sky\"}\n");
    CHECK(!dp_tokenize_keeps_apart(&d.job));
    d.job.skip_bad_lines = true;
    CHECK(dp_tokenize_keeps_apart(&d.job));
    const dp_tokenized made = run(&d);
    CHECK(made.documents == 1 && made.counts.bad_lines == 2 && made.counts.apart);
    desk_close(&d);
}

/* It is a line like others that cannot be used. */
static void a_line_that_is_too_long_is_skipped_too(void **state)
{
    (void)state;
    static const char first[] = "{\"text\": \"sea\"}\n{\"text\": \"";
    static const char last[] = "\"}\n{\"text\": \"sky\"}\n";
    const size_t size = DP_JSONL_LINE_MAX + (3 << 20);
    desk d;
    desk_open(&d);
    char *const lines = test_malloc(size);
    memset(lines, 'a', size);
    memcpy(lines, first, sizeof first - 1);
    memcpy(lines + size - sizeof last + 1, last, sizeof last - 1);
    add_file(&d, "a.jsonl", dp_view_of((const uint8_t *)lines, size));
    check_refused(&d, DP_TOOBIG, "a.jsonl, line 2: it is longer than 64 MiB");
    d.job.skip_bad_lines = true;
    dp_tokenized made = run(&d);
    CHECK(made.documents == 2 && made.counts.bad_lines == 1);
    d.job.n_paths = 0; /* It is the last one, too. */
    add_file(&d, "b.jsonl", dp_view_of((const uint8_t *)lines, size - sizeof last));
    made = run(&d);
    CHECK(made.documents == 1 && made.counts.bad_lines == 1);
    test_free(lines);
    desk_close(&d);
}

/* Those who have no such option are not told of one. */
static void an_option_to_skip_lines_is_told_where_there_is_one(void **state)
{
    (void)state;
    desk d;
    dp_tokenized made;
    dp_why why = {{0}};
    desk_open(&d);
    add_text(&d, "a.jsonl", "nothing\n");
    CHECK_STATUS(dp_tokenize(&d.job, &made, &why), DP_BADMSG);
    CHECK(strstr(why.text, "skip") == NULL);
    d.job.skip_option = "--leave-out";
    check_refused(&d, DP_BADMSG, "; --leave-out counts such lines and goes on");
    desk_close(&d);
}

static void the_first_line_decides_whether_documents_are_kept_apart(void **state)
{
    (void)state;
    desk d;
    desk_open(&d);
    add_text(&d, "a.jsonl",
             "\n{\"text\": \"sea\"}\n{\"prompt\": \"sea\", \"completion\": \"sky\"}\n");
    CHECK(!dp_tokenize_keeps_apart(&d.job));
    check_refused(&d, DP_BADMSG, "line 3: no object with a text");
    d.job.format = DP_INPUT_DOCUMENTS;
    CHECK(run(&d).counts.apart);
    d.job.format = DP_INPUT_AUTO;
    d.job.n_paths = 0;
    add_text(&d, "a.jsonl", "\n{\"prompt\": \"sea\", \"completion\": \"sky\"}\n");
    add_text(&d, "b.txt", "sea and sky");
    CHECK(dp_tokenize_keeps_apart(&d.job));
    check_refused(&d, DP_BADARG, "b.txt is not JSON lines");
    desk_close(&d);
}

/* The text of all tokens with a loss. */
static void check_learned(const desk *d, const char *wanted)
{
    dp_buf json = read_out(d, DP_CORPUS_TOKENIZER);
    dp_buf bytes = read_out(d, "tokens-00000.bin");
    dp_buf text;
    dp_bpe *bpe;
    dp_shard shard;
    dp_buf_init(&text, BUF_MAX);
    CHECK_OK(dp_bpe_load(&bpe, dp_buf_view(&json), NULL));
    CHECK_OK(dp_shard_open(&shard, dp_buf_view(&bytes), NULL));
    for (uint64_t i = 0; i < shard.n_tokens; i++) {
        uint32_t id;
        dp_shard_read(&shard, i, 1, &id);
        if ((dp_shard_marks(&shard, i) & DP_MARK_LOSS) != 0) {
            CHECK_OK(dp_bpe_decode(bpe, &id, 1, &text));
        }
    }
    if (!dp_view_equal(dp_buf_view(&text), dp_view_text(wanted))) {
        fail_msg("learns '%.*s', not '%s'", (int)text.size, (const char *)text.data, wanted);
    }
    dp_bpe_close(bpe);
    dp_buf_close(&text);
    dp_buf_close(&bytes);
    dp_buf_close(&json);
}

static const char chat_config[] =
    "{\"chat_template\": \"{% for m in messages %}{% if m.role == 'clown' %}"
    "{{ raise_exception('no clowns') }}{% endif %}{{ '<|im_start|>' + m.role + '\\n' + m.content + "
    "'<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\\n' }}{% endif %}\"}";

static void of_a_chat_the_assistant_is_learned(void **state)
{
    (void)state;
    char path[TEMPDIR_FILE_MAX];
    desk d;
    desk_open(&d);
    give_tokenizer(&d, path);
    add_text(&d, "chats.jsonl",
             "{\"messages\": [{\"role\": \"user\", \"content\": \"1?\"}, {\"role\": \"assistant\", "
             "\"content\": \"one\"}, {\"role\": \"user\", \"content\": \"2?\"}, {\"role\": "
             "\"assistant\", \"content\": \"two\"}]}\n"
             "{\"messages\": [{\"role\": \"clown\", \"content\": \"3?\"}]}\n"
             "{\"prompt\": \"4?\", \"completion\": \"four\"}\n");
    CHECK(dp_tokenize_keeps_apart(&d.job));
    check_refused(&d, DP_NOTFOUND, "chats.jsonl, line 1: a chat needs the template");
    CHECK_OK(dp_file_write(d.dir.path, "tokenizer_config.json", dp_view_text(chat_config), NULL));
    check_refused(&d, DP_BADARG,
                  "chats.jsonl, line 2: line 1 of the template: it refuses the chat: "
                  "no clowns");
    d.job.skip_bad_lines = true;
    const dp_tokenized made = run(&d);
    CHECK(made.documents == 2 && made.counts.bad_lines == 1);
    CHECK(strstr(made.counts.first_bad.text, "line 2") != NULL);
    check_learned(&d, "one<|im_end|>\ntwo<|im_end|>\nfour");
    desk_close(&d);
}

/* It is no matter of the lines that need none. */
static void a_template_that_cannot_be_used_is_told_by_chats_alone(void **state)
{
    (void)state;
    char path[TEMPDIR_FILE_MAX];
    desk d;
    desk_open(&d);
    give_tokenizer(&d, path);
    CHECK_OK(dp_file_write(d.dir.path, "chat_template.jinja", dp_view_text("{{ 1|frob }"), NULL));
    add_text(&d, "a.jsonl", "{\"prompt\": \"4?\", \"completion\": \"four\"}\n");
    CHECK(run(&d).documents == 1);
    d.job.n_paths = 0;
    d.job.skip_bad_lines = true; /* The fault is not the line's. */
    add_text(&d, "b.jsonl", "{\"messages\": [{\"role\": \"assistant\", \"content\": \"one\"}]}\n");
    check_refused(&d, DP_UNSUPPORTED, "b.jsonl, line 1: the chat template cannot be used: line 1");
    check_refused(&d, DP_UNSUPPORTED, "put one that can be used as chat_template.jinja");
    d.job.skip_bad_lines = false;
    d.job.skip_option = "--skip-bad-lines";
    dp_tokenized made;
    dp_why why = {{0}};
    CHECK_STATUS(dp_tokenize(&d.job, &made, &why), DP_UNSUPPORTED);
    CHECK(strstr(why.text, "--skip-bad-lines") == NULL);
    desk_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_becomes_shards_that_stand_for_it),
        cmocka_unit_test(each_line_of_json_is_a_document_with_an_end),
        cmocka_unit_test(documents_stand_between_the_tokens_of_the_post_processor),
        cmocka_unit_test(tokens_of_others_are_taken_over),
        cmocka_unit_test(text_that_cannot_be_tokenized_is_named_with_its_line),
        cmocka_unit_test(a_pipe_is_read_as_a_file_where_once_is_enough),
        cmocka_unit_test(a_pipe_is_no_input_to_train_a_tokenizer_on),
        cmocka_unit_test(damage_in_a_folder_is_found_and_named),
        cmocka_unit_test(prompts_and_answers_become_documents_that_are_kept_apart),
        cmocka_unit_test(a_skipped_line_leaves_no_trace),
        cmocka_unit_test(documents_are_packed_where_a_window_is_given),
        cmocka_unit_test(a_file_of_bad_lines_alone_names_the_first),
        cmocka_unit_test(a_bad_first_line_does_not_decide),
        cmocka_unit_test(a_line_that_is_too_long_is_skipped_too),
        cmocka_unit_test(an_option_to_skip_lines_is_told_where_there_is_one),
        cmocka_unit_test(the_first_line_decides_whether_documents_are_kept_apart),
        cmocka_unit_test(of_a_chat_the_assistant_is_learned),
        cmocka_unit_test(a_template_that_cannot_be_used_is_told_by_chats_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
