#include "daemon/trainer/trainer_words.h"

#include <stdio.h>

#include "base/assert.h"

static void add_word(dp_trainer_words *all, char *word)
{
    dp_assert(all->n < DP_TRAINER_WORDS_MAX);
    all->at[all->n++] = word;
}

static void add_number(dp_trainer_words *all, char *option, uint64_t value)
{
    char *const text = all->numbers[all->n];
    snprintf(text, DP_TRAINER_NUMBER_MAX, "%llu", (unsigned long long)value);
    add_word(all, option);
    add_word(all, text);
}

/* Optional arguments come last, and only if they are set: another trainer program may not know
 * them. */
void dp_trainer_say(dp_trainer_words *all, const dp_trainer_process_config *config, char *program,
                    char *own_backend, int worker_fd)
{
    static char fd[] = "--fd";
    static char threads[] = "--threads";
    static char nice[] = "--nice";
    static char processes[] = "--processes";
    static char backend[] = "--backend";
    static char celsius[] = "--celsius-max";
    static char watts[] = "--watts-max";
    static char vram_share[] = "--vram-share";
    static char script[] = "--script";
    *all = (dp_trainer_words){.n = 0};
    add_word(all, program);
    add_number(all, fd, (uint64_t)worker_fd);
    add_number(all, threads, config->threads);
    add_number(all, nice, config->nice);
    if (config->processes > 1) {
        add_number(all, processes, config->processes);
    }
    if (own_backend[0] != '\0') {
        add_word(all, backend);
        add_word(all, own_backend);
    }
    if (config->celsius_max > 0) {
        add_number(all, celsius, config->celsius_max);
    }
    if (config->watts_max > 0) {
        add_number(all, watts, config->watts_max);
    }
    if (config->vram_share > 0) {
        add_number(all, vram_share, config->vram_share);
    }
    if (config->script != NULL && config->script[0] != '\0') {
        add_word(all, script);
        add_word(all, (char *)(uintptr_t)config->script);
    }
}
