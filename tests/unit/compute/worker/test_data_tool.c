/* dpnode-worker data: its words, the lines that it prints, and its exit status. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

#include "compute/worker/data_tool.h"
#include "tests/lib/check.h"
#include "tests/lib/tempdir.h"

enum { TEXT_MAX = 16384, WORDS_MAX = 12 };

static tempdir dir;
static char text_path[TEMPDIR_FILE_MAX];
static char folder[TEMPDIR_FILE_MAX];
static char out[TEXT_MAX];
static char err[TEXT_MAX];

static int open_folder(void **state)
{
    (void)state;
    tempdir_open(&dir);
    tempdir_file(&dir, "made", folder);
    FILE *file = fopen(tempdir_file(&dir, "book.txt", text_path), "we");
    assert_non_null(file);
    for (int i = 0; i < 200; i++) {
        fprintf(file, "In the beginning was word %d, and the word was good.\n", i);
    }
    return fclose(file);
}

static int close_folder(void **state)
{
    (void)state;
    tempdir_close(&dir);
    return 0;
}

static void read_back(FILE *file, int fd, int before, char *text)
{
    assert_true(dup2(before, fd) >= 0);
    close(before);
    rewind(file);
    text[fread(text, 1, TEXT_MAX - 1, file)] = '\0';
    fclose(file);
}

/* The words behind "data", the last NULL. */
static int run(const char *const *words)
{
    static char room[WORDS_MAX][TEMPDIR_FILE_MAX];
    char *argv[WORDS_MAX + 1];
    int argc = 0;
    for (; words[argc] != NULL; argc++) {
        snprintf(room[argc], sizeof room[argc], "%s", words[argc]);
        argv[argc] = room[argc];
    }
    argv[argc] = NULL;
    FILE *const to_out = tmpfile();
    FILE *const to_err = tmpfile();
    assert_true(to_out != NULL && to_err != NULL);
    fflush(stdout);
    fflush(stderr);
    const int out_before = dup(STDOUT_FILENO);
    const int err_before = dup(STDERR_FILENO);
    assert_true(dup2(fileno(to_out), STDOUT_FILENO) >= 0);
    assert_true(dup2(fileno(to_err), STDERR_FILENO) >= 0);
    optind = 0; /* A new command line for getopt. */
    const int status = dp_data_tool(argc, argv);
    fflush(stdout);
    fflush(stderr);
    read_back(to_out, STDOUT_FILENO, out_before, out);
    read_back(to_err, STDERR_FILENO, err_before, err);
    return status;
}

#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL})

static void a_text_becomes_shards_that_verify_to_the_same_root(void **state)
{
    char root[80] = "";
    char wanted[96];
    (void)state;
    assert_int_equal(RUN("tokenize", text_path, "--out", folder, "--vocab", "300"), EX_OK);
    assert_non_null(strstr(out, "\"vocab\": 300"));
    assert_non_null(strstr(out, "\"documents\": 1}"));
    assert_int_equal(sscanf(strstr(out, "\"root\": \""), "\"root\": \"%64[0-9a-f]", root), 1);
    assert_int_equal(RUN("verify", folder), EX_OK);
    snprintf(wanted, sizeof wanted, "\"root\": \"%s\"}\n", root);
    assert_non_null(strstr(out, wanted));
    char other[TEMPDIR_FILE_MAX];
    tempdir_file(&dir, "made-again", other);
    assert_int_equal(RUN("tokenize", text_path, "--out", other, "--vocab", "300"), EX_OK);
    assert_non_null(strstr(out, root)); /* The same text gives the same shards. */
}

static void shards_that_are_there_are_not_written_over(void **state)
{
    (void)state;
    assert_int_equal(RUN("tokenize", text_path, "--out", folder, "--vocab", "300"), EX_OK);
    assert_int_not_equal(RUN("tokenize", text_path, "--out", folder, "--vocab", "280"), EX_OK);
    assert_non_null(strstr(err, "holds token shards already"));
    assert_int_equal(RUN("verify", folder), EX_OK);
    assert_non_null(strstr(out, "\"vocab\": 300"));
}

static void a_shard_tells_its_tokens_and_a_folder_is_none(void **state)
{
    char shard[TEMPDIR_FILE_MAX];
    (void)state;
    assert_int_equal(RUN("tokenize", text_path, "--out", folder, "--vocab", "300"), EX_OK);
    tempdir_file(&dir, "made/tokens-00000.bin", shard);
    assert_int_equal(RUN("info", shard, shard), EX_OK);
    assert_non_null(strstr(out, "\"token_bytes\": 2"));
    assert_non_null(strchr(out, '\n'));
    assert_true(strchr(out, '\n')[1] == '{'); /* A line for each. */
    assert_int_not_equal(RUN("info", folder), EX_OK);
    assert_non_null(strstr(err, "is a folder"));
    assert_int_not_equal(RUN("info", shard, text_path), EX_OK);
    assert_non_null(strstr(err, "book.txt"));
    assert_int_not_equal(RUN("info", text_path, shard), EX_OK); /* The first bad one ends it. */
    assert_string_equal(out, "");
}

static void a_changed_shard_does_not_verify(void **state)
{
    char shard[TEMPDIR_FILE_MAX];
    (void)state;
    assert_int_equal(RUN("tokenize", text_path, "--out", folder, "--vocab", "300"), EX_OK);
    FILE *file = fopen(tempdir_file(&dir, "made/tokens-00000.bin", shard), "r+be");
    assert_non_null(file);
    assert_int_equal(fseek(file, -1, SEEK_END), 0);
    fputc(0x7f, file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(RUN("verify", folder), EX_DATAERR);
    assert_true(err[0] != '\0' && out[0] == '\0');
}

static void a_text_is_encoded_an_id_a_line(void **state)
{
    char tokenizer[TEMPDIR_FILE_MAX];
    unsigned lines = 0;
    (void)state;
    assert_int_equal(RUN("tokenize", text_path, "--out", folder, "--vocab", "300"), EX_OK);
    tempdir_file(&dir, "made/tokenizer.json", tokenizer);
    assert_int_equal(RUN("encode", tokenizer, text_path), EX_OK);
    for (const char *at = out; *at != '\0'; at++) {
        lines += *at == '\n' ? 1 : 0;
        assert_true((*at >= '0' && *at <= '9') || *at == '\n');
    }
    assert_true(lines > 100 && atoi(out) < 300);
    assert_int_not_equal(RUN("encode", text_path, text_path), EX_OK);
}

static void words_that_are_not_understood_give_the_usage(void **state)
{
    (void)state;
    assert_int_equal(run((const char *const[]){NULL}), EX_USAGE);
    assert_int_equal(RUN("shuffle", text_path), EX_USAGE);
    assert_int_equal(RUN("tokenize", text_path), EX_USAGE); /* Where to? */
    assert_int_equal(RUN("tokenize", "--out", folder), EX_USAGE);
    assert_int_equal(RUN("tokenize", text_path, "--out", folder, "--vocab", "1"), EX_USAGE);
    assert_int_equal(RUN("tokenize", text_path, "--out", folder, "--format", "pdf"), EX_USAGE);
    assert_non_null(strstr(err, "there is no format 'pdf'"));
    assert_int_equal(RUN("verify"), EX_USAGE);
    assert_int_equal(RUN("info"), EX_USAGE);
    assert_int_equal(RUN("encode", text_path), EX_USAGE);
    assert_int_equal(access(folder, F_OK), -1);
}

static void a_file_that_is_not_there_is_named(void **state)
{
    (void)state;
    assert_int_not_equal(RUN("tokenize", "/nowhere/book.txt", "--out", folder), EX_OK);
    assert_non_null(strstr(err, "/nowhere/book.txt"));
    assert_int_not_equal(RUN("verify", "/nowhere"), EX_OK);
    assert_string_equal(out, "");
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, open_folder, close_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_text_becomes_shards_that_verify_to_the_same_root),
        TEST(shards_that_are_there_are_not_written_over),
        TEST(a_shard_tells_its_tokens_and_a_folder_is_none),
        TEST(a_changed_shard_does_not_verify),
        TEST(a_text_is_encoded_an_id_a_line),
        TEST(words_that_are_not_understood_give_the_usage),
        TEST(a_file_that_is_not_there_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
