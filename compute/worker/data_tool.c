#include "compute/worker/data_tool.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>

#include "compute/corpus/corpus.h"
#include "compute/corpus/tokenize.h"
#include "compute/data/shard.h"
#include "compute/machine/files.h"
#include "compute/machine/tool.h"
#include "compute/text/bpe.h"

enum { PATH_BYTES_MAX = 4096 };

typedef struct arguments {
    dp_tokenize_job job;
    char **words;
    size_t n_words;
} arguments;

static int usage(void)
{
    fputs("usage: dpnode-worker data tokenize FILE... --out FOLDER [--tokenizer FILE | --vocab N]\n"
          "           [--format auto|text|jsonl|documents|tokens|nanogpt] [--field NAME]\n"
          "           [--separator TOKEN] [--shard-tokens N] [--skip-bad-lines]\n"
          "       dpnode-worker data info FILE... [--format nanogpt]\n"
          "       dpnode-worker data verify FOLDER\n"
          "       dpnode-worker data encode TOKENIZER FILE\n",
          stderr);
    return EX_USAGE;
}

static bool take_option(arguments *args, int option)
{
    uint64_t value = 0;
    switch (option) {
    case 'o':
        args->job.folder = optarg;
        return true;
    case 't':
        args->job.tokenizer = optarg;
        return true;
    case 'v':
        if (!dp_tool_number(optarg, DP_BPE_TOKENS_MIN, DP_BPE_TOKENS_MAX, &value)) {
            return false;
        }
        args->job.vocab = (uint32_t)value;
        return true;
    case 'f':
        if (!dp_input_format_of(optarg, &args->job.format)) {
            fprintf(stderr, "there is no format '%s'\n", optarg);
            return false;
        }
        return true;
    case 'k':
        args->job.field = optarg;
        return true;
    case 's':
        args->job.separator = optarg;
        return true;
    case 'b':
        args->job.skip_bad_lines = true;
        return true;
    case 'n':
        return dp_tool_number(optarg, 1, DP_CORPUS_SHARD_TOKENS_MAX, &args->job.shard_tokens);
    default:
        return false;
    }
}

static bool parse(int argc, char **argv, arguments *args)
{
    static const struct option options[] = {{"out", required_argument, NULL, 'o'},
                                            {"tokenizer", required_argument, NULL, 't'},
                                            {"vocab", required_argument, NULL, 'v'},
                                            {"format", required_argument, NULL, 'f'},
                                            {"field", required_argument, NULL, 'k'},
                                            {"separator", required_argument, NULL, 's'},
                                            {"shard-tokens", required_argument, NULL, 'n'},
                                            {"skip-bad-lines", no_argument, NULL, 'b'},
                                            {NULL, 0, NULL, 0}};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (!take_option(args, option)) {
            return false;
        }
    }
    args->words = argv + optind;
    args->n_words = (size_t)(argc - optind);
    return true;
}

static void print_sum(const dp_corpus_sum *sum)
{
    char root[2 * DP_HASH_BYTES + 1];
    dp_hex(dp_view_of(sum->root.bytes, sizeof sum->root.bytes), root);
    printf("{\"tokens\": %" PRIu64 ", \"text_bytes\": %" PRIu64 ", \"vocab\": %" PRIu32
           ", \"shards\": %" PRIu32 ", \"root\": \"%s\"",
           sum->tokens, sum->text_bytes, sum->vocab, sum->shards, root);
}

static int finish(void)
{
    return fflush(stdout) == 0 ? EX_OK : EX_IOERR;
}

/* Token shards that are there may be all that somebody has: they are not written over. */
static bool holds_shards(const char *folder)
{
    char path[PATH_BYTES_MAX];
    struct stat info;
    const int size = snprintf(path, sizeof path, "%s/tokens-00000.bin", folder);

    return size > 0 && (size_t)size < sizeof path && stat(path, &info) == 0;
}

static int tokenize(arguments *args)
{
    dp_why why = {{0}};
    dp_tokenized made;
    if (args->n_words == 0 || args->job.folder == NULL) {
        return usage();
    }
    if (holds_shards(args->job.folder)) {
        const dp_status status =
            dp_why_set(&why, DP_EXISTS, "%s holds token shards already: give another folder",
                       args->job.folder);
        return dp_tool_complain(status, &why);
    }
    args->job.paths = args->words;
    args->job.n_paths = args->n_words;
    const dp_status status = dp_tokenize(&args->job, &made, &why);
    if (status != DP_OK) {
        return dp_tool_complain(status, &why);
    }
    print_sum(&made.sum);
    printf(", \"documents\": %" PRIu64, made.documents);
    if (!dp_document_counts_print(&made.counts, stdout)) {
        return dp_tool_complain(DP_NOMEM, &why);
    }
    puts("}");
    return finish();
}

static int verify(const arguments *args)
{
    dp_why why = {{0}};
    dp_corpus_sum sum;
    if (args->n_words != 1) {
        return usage();
    }
    const dp_status status = dp_corpus_verify(args->words[0], &sum, &why);
    if (status != DP_OK) {
        return dp_tool_complain(status, &why);
    }
    print_sum(&sum);
    if (sum.documents) {
        printf(", \"losses\": %" PRIu64, sum.losses);
    }
    puts("}");
    return finish();
}

static dp_status info_of(const char *path, bool nanogpt, dp_buf *bytes, dp_why *why)
{
    dp_shard shard;
    struct stat about;
    dp_buf_clear(bytes);
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode)) {
        return dp_why_set(why, DP_BADARG,
                          "%.300s is a folder: name the shards in it (*.bin), or see what it holds "
                          "with data verify",
                          path);
    }
    DP_TRY(dp_file_read(path, bytes, why));
    DP_TRY(nanogpt ? dp_shard_open_nanogpt(&shard, dp_buf_view(bytes), why)
                   : dp_shard_open(&shard, dp_buf_view(bytes), why));
    printf("{\"format\": \"%s\", \"tokens\": %" PRIu64 ", \"token_bytes\": %u, \"vocab\": %u"
           ", \"text_bytes\": %" PRIu64 ", \"needs\": %" PRIu64 ", \"losses\": %" PRIu64 "}\n",
           dp_shard_format_name(shard.format), shard.n_tokens, shard.token_bytes, shard.vocab,
           shard.text_bytes, dp_shard_needs(&shard), dp_shard_losses(&shard, 0, shard.n_tokens));
    return DP_OK;
}

/* A line for each file, in their order; the first bad one ends it. */
static int info(const arguments *args)
{
    dp_buf bytes;
    dp_status status = DP_OK;
    dp_why why = {{0}};
    if (args->n_words == 0) {
        return usage();
    }
    dp_buf_init(&bytes, DP_OBJECT_BYTES_MAX);
    for (size_t i = 0; i < args->n_words && status == DP_OK; i++) {
        dp_why inner = {{0}};
        status = info_of(args->words[i], args->job.format == DP_INPUT_NANOGPT, &bytes, &inner);
        if (status != DP_OK) {
            status = dp_why_set(&why, status, "%.200s: %.280s", args->words[i], inner.text);
        }
    }
    dp_buf_close(&bytes);
    return status == DP_OK ? finish() : dp_tool_complain(status, &why);
}

static dp_status encode_file(const char *const *paths, dp_buf *json, dp_buf *text,
                             dp_tokens *tokens, dp_why *why)
{
    dp_bpe *bpe;
    DP_TRY(dp_file_read(paths[0], json, why));
    DP_TRY(dp_file_read(paths[1], text, why));
    DP_TRY(dp_bpe_load(&bpe, dp_buf_view(json), why));
    const dp_status status = dp_bpe_encode(bpe, dp_buf_view(text), tokens, why);
    dp_bpe_close(bpe);
    return status;
}

/* The ids of a text, one a line: to look at, and to compare. */
static int encode(const arguments *args)
{
    dp_buf json;
    dp_buf text;
    dp_tokens tokens = {0};
    dp_why why = {{0}};
    if (args->n_words != 2) {
        return usage();
    }
    dp_buf_init(&json, DP_BPE_JSON_BYTES_MAX);
    dp_buf_init(&text, DP_OBJECT_BYTES_MAX);
    const char *const paths[2] = {args->words[0], args->words[1]};
    const dp_status status = encode_file(paths, &json, &text, &tokens, &why);
    for (size_t i = 0; status == DP_OK && i < tokens.count; i++) {
        printf("%" PRIu32 "\n", tokens.ids[i]);
    }
    dp_tokens_close(&tokens);
    dp_buf_close(&text);
    dp_buf_close(&json);
    return status == DP_OK ? finish() : dp_tool_complain(status, &why);
}

int dp_data_tool(int argc, char **argv)
{
    arguments args = {.job = {.field = "text",
                              .vocab = 1024,
                              .shard_tokens = DP_CORPUS_SHARD_TOKENS,
                              .skip_option = "--skip-bad-lines"}};
    if (argc < 1) {
        return usage();
    }
    const char *const verb = argv[0];
    if (!parse(argc, argv, &args)) {
        return usage();
    }
    if (strcmp(verb, "tokenize") == 0) {
        return tokenize(&args);
    }
    if (strcmp(verb, "info") == 0) {
        return info(&args);
    }
    if (strcmp(verb, "verify") == 0) {
        return verify(&args);
    }
    return strcmp(verb, "encode") == 0 ? encode(&args) : usage();
}
