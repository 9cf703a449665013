/* completion: the scripts that shells read have every verb and option of the table. */
#include <sys/wait.h>

#include "tests/unit/cli/verb_kit.h"

static void every_verb_and_option_stands_in_the_script(void **state)
{
    size_t count = 0;
    const dp_verb *const *verbs = dp_verbs(&count);
    (void)state;
    assert_int_equal(VERB(dp_verb_completion, "bash"), 0);
    for (size_t i = 0; i < count; i++) {
        char row[128];
        snprintf(row, sizeof row, "    '%s'%s) words=\"", verbs[i]->name,
                 strchr(verbs[i]->name, ' ') == NULL ? "*" : "");
        const char *at = strstr(verb_kit.out, row);
        assert_non_null(at);
        const char *end = strchr(at, '\n');
        for (size_t k = 0; k < DP_OPTIONS_MAX && verbs[i]->options[k].name != NULL; k++) {
            snprintf(row, sizeof row, "--%s ", verbs[i]->options[k].name);
            const char *option = strstr(at, row);
            assert_true(option != NULL && option < end);
        }
    }
}

/* The line that begins with this text; its end. */
static const char *line_of(const char *text, const char **end)
{
    const char *const at = strstr(verb_kit.out, text);
    if (at == NULL) {
        print_error("no line %s\n", text);
    }
    assert_non_null(at);
    *end = strchr(at, '\n');
    return at;
}

static void the_scripts_of_zsh_and_fish_have_them_with_what_they_do(void **state)
{
    size_t count = 0;
    const dp_verb *const *verbs = dp_verbs(&count);
    char text[256];
    const char *end = NULL;
    (void)state;
    for (size_t i = 0; i < count; i++) {
        const bool pair = strchr(verbs[i]->name, ' ') != NULL;
        assert_int_equal(VERB(dp_verb_completion, "zsh"), 0);
        snprintf(text, sizeof text, "      '%s'%s) found=(", verbs[i]->name, pair ? "" : "*");
        const char *const at = line_of(text, &end);
        for (size_t k = 0; k < DP_OPTIONS_MAX && verbs[i]->options[k].name != NULL; k++) {
            snprintf(text, sizeof text, " '--%s:", verbs[i]->options[k].name);
            const char *const option = strstr(at, text);
            assert_true(option != NULL && option < end);
        }
        assert_true(strstr(at, " '--help:show this help' ) ;;") < end);
        assert_int_equal(VERB(dp_verb_completion, "fish"), 0);
        for (size_t k = 0; k < DP_OPTIONS_MAX && verbs[i]->options[k].name != NULL; k++) {
            const dp_option *const option = &verbs[i]->options[k];
            snprintf(text, sizeof text, " -n '__dpnode_typed %s'%s%.1s -l %s%s -d '",
                     verbs[i]->name, option->letter != 0 ? " -s " : "", &option->letter,
                     option->name, option->value != NULL ? " -r" : "");
            line_of(text, &end);
        }
    }
    line_of(
        "complete -c dpnode -n 'test (count (commandline -opc)) -eq 1' -f -a token -d 'inspect, "
        "ls, revoke, rotate'\n",
        &end);
    line_of("complete -c dpnode -n '__dpnode_next ckpt' -f -a verify -d 'read every", &end);
    line_of("a round has counted this node\\'s work, then stop the daemon'\n", &end); /* A quote. */
    assert_int_equal(VERB(dp_verb_completion, "zsh"), 0);
    line_of("      'token:inspect, ls, revoke, rotate'\n", &end);
    line_of("'rounds:list the last rounds\\: updates counted, duration, loss'\n", &end);
    line_of("a round has counted this node'\\''s work, then stop the daemon'\n", &end);
}

/* Asks bash what it would complete; the words are typed, the last one is begun. */
static void completes(const char *words, const char *wanted)
{
    char path[] = "/tmp/completion-XXXXXX";
    char command[512];
    char answer[4096];
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, verb_kit.out, strlen(verb_kit.out)), strlen(verb_kit.out));
    close(fd);
    snprintf(command, sizeof command,
             "bash --norc -c 'compopt() { :; }; . %s; COMP_WORDS=(%s); "
             "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _dpnode; echo \"${COMPREPLY[*]}\"' 2>&1",
             path, words);
    FILE *shell = popen(command, "r"); /* NOLINT(cert-env33-c): a test's own command */
    assert_non_null(shell);
    answer[fread(answer, 1, sizeof answer - 1, shell)] = '\0';
    assert_int_equal(pclose(shell), 0);
    unlink(path);
    if (strcmp(answer, wanted) != 0) {
        print_error("%s -> %s", words, answer);
    }
    assert_string_equal(answer, wanted);
}

static void a_shell_completes_verbs_second_words_and_options(void **state)
{
    (void)state;
    if (access("/bin/bash", X_OK) != 0) {
        skip();
    }
    assert_int_equal(VERB(dp_verb_completion, "bash"), 0);
    completes("dpnode pau", "pause\n");
    completes("dpnode ckpt ve", "verify\n");
    completes("dpnode ckpt export --l", "--llmc\n");
    completes("dpnode status --ch", "--check\n");
    completes("dpnode nothing-like-it", "\n");
}

static void another_shell_is_refused(void **state)
{
    (void)state;
    assert_int_equal(VERB(dp_verb_completion, "tcsh"), DP_EXIT_USAGE);
    assert_true(verb_warned("there is no completion for this shell"));
    assert_string_equal(verb_kit.out, "");
    assert_int_equal(VERB_ALONE(dp_verb_completion), DP_EXIT_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        VERB_TEST(every_verb_and_option_stands_in_the_script),
        VERB_TEST(the_scripts_of_zsh_and_fish_have_them_with_what_they_do),
        VERB_TEST(a_shell_completes_verbs_second_words_and_options),
        VERB_TEST(another_shell_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
