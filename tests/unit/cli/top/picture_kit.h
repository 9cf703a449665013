/* Pictures as text, and facts of a run to draw: for tests of what `dpnode top` draws. */
#ifndef DP_TESTS_UNIT_CLI_TOP_PICTURE_KIT_H
#define DP_TESTS_UNIT_CLI_TOP_PICTURE_KIT_H

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/top/grid.h"
#include "cli/top/screen.h"
#include "tests/lib/check.h"

enum { PICTURE_MAX = 64 * 1024 };

#define PICTURE_NOW UINT64_C(1795900267000) /* 2026-11-28 21:11:07 UTC */

static dp_grid picture;
static dp_facts picture_facts;

/* The lines of the picture, each with its line break. */
static inline const char *picture_text(void)
{
    static char text[PICTURE_MAX];
    dp_buf all;
    dp_buf_init(&all, PICTURE_MAX - 1);
    for (int i = 0; i < picture.rows; i++) {
        CHECK_OK(dp_grid_text(&picture, i, &all));
        CHECK_OK(dp_buf_append(&all, dp_view_text("\n")));
    }
    snprintf(text, sizeof text, "%.*s", (int)all.size, (const char *)all.data);
    dp_buf_close(&all);
    return text;
}

static inline bool picture_is(const char *wanted)
{
    const bool same = strcmp(picture_text(), wanted) == 0;
    if (!same) {
        fprintf(stderr, "the picture is:\n%s", picture_text());
    }
    return same;
}

/* The text of a file of the tree; tests run in its root. */
static inline const char *picture_file(const char *path)
{
    static char text[2 * PICTURE_MAX];
    FILE *const file = fopen(path, "re");
    CHECK(file != NULL);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

/* The picture is the one of this file. To make the files anew after a change that is meant:
 * DP_WRITE_PICTURES=1 build/release/test_draw; then read what git diff shows. */
static inline bool picture_is_of(const char *path)
{
    if (getenv("DP_WRITE_PICTURES") != NULL) {
        FILE *const file = fopen(path, "we");
        CHECK(file != NULL && fputs(picture_text(), file) >= 0 && fclose(file) == 0);
    }
    return picture_is(picture_file(path));
}

static inline bool picture_has(const char *text)
{
    const bool has = strstr(picture_text(), text) != NULL;
    if (!has) {
        fprintf(stderr, "no \"%s\" in:\n%s", text, picture_text());
    }
    return has;
}

static inline void picture_open(int columns, int rows, bool utf8)
{
    dp_grid_close(&picture);
    CHECK_OK(dp_grid_open(&picture, columns, rows, utf8));
}

/* A setup and a teardown of cmocka. */
static inline int picture_setup(void **state)
{
    (void)state;
    CHECK(setlocale(LC_ALL, "C.UTF-8") != NULL && setenv("TZ", "UTC", 1) == 0);
    tzset();
    memset(&picture_facts, 0, sizeof picture_facts);
    picture_open(80, 24, true);
    return 0;
}

static inline int picture_teardown(void **state)
{
    (void)state;
    dp_grid_close(&picture);
    return 0;
}

/* Fills text fields. */
#define PICTURE_SET(field, text) snprintf((field), sizeof(field), "%s", (text))

static inline void picture_peer(const char *name, double rtt_ms)
{
    const uint32_t at = picture_facts.n_peers++;
    dp_facts_peer *const peer = &picture_facts.peers[at];
    *peer = (dp_facts_peer){.key = at + 1,
                            .self = at == 0,
                            .linked = at > 0,
                            .member = true,
                            .voter = at < 3,
                            .has_round = true,
                            .round = 40,
                            .counted = 40,
                            .rtt_ms = rtt_ms,
                            .step_ms = 500};
    PICTURE_SET(peer->name, name);
    PICTURE_SET(peer->brief, "q3x7aap2mfd4");
    PICTURE_SET(peer->state, "alive");
    snprintf(peer->address, sizeof peer->address, "192.0.2.%u:7717", at + 1);
}

static inline void picture_round(uint64_t number, double loss, uint32_t listed)
{
    dp_facts_round *const round = &picture_facts.rounds[picture_facts.n_rounds++];
    *round = (dp_facts_round){.key = number,
                              .round = number,
                              .time_ms = PICTURE_NOW - (41 - number) * 4000,
                              .duration_ms = 4000,
                              .counted = listed == 3,
                              .listed = listed,
                              .active = 3,
                              .loss = loss,
                              .bytes = 97000,
                              .tokens = 24000,
                              .own_tokens = listed == 3 ? 8000 : 0,
                              .step_tokens = 1024};
}

static inline void picture_event(uint64_t id, const char *text)
{
    dp_facts_event *const event = &picture_facts.events[picture_facts.n_events++];
    *event = (dp_facts_event){.key = id, .time_ms = PICTURE_NOW - 60000 + 1000 * id};
    PICTURE_SET(event->name, "round.decided");
    PICTURE_SET(event->text, text);
}

/* Three nodes in round 40. */
static inline void picture_of_three(void)
{
    dp_facts *const facts = &picture_facts;
    facts->known = true;
    facts->healthy = true;
    facts->in_run = true;
    facts->has_round = true;
    facts->voter = true;
    facts->answered_ms = PICTURE_NOW;
    PICTURE_SET(facts->node, "alice");
    PICTURE_SET(facts->state, "training");
    PICTURE_SET(facts->run, "kjv");
    PICTURE_SET(facts->unit, "tokens");
    PICTURE_SET(facts->device, "cpu: avx512, 1 thread");
    facts->round = 40;
    facts->slot = 42;
    facts->tokens = 960000;
    facts->alive = 3;
    facts->members = 3;
    facts->loss = 3.412;
    facts->tokens_per_s = 2048;
    facts->round_ms = 3500;
    facts->upload_max = 625000;
    facts->bytes_sent = 14 << 20;
    facts->bytes_received = 22 << 20;
    facts->spent[0] =
        (dp_facts_spent){.at_ms = 1, .trained = 100000, .steps = 92000, .rounds = 6000};
    picture_peer("alice", 0);
    picture_peer("bob", 38.2);
    picture_peer("carol", 81);
    for (uint64_t i = 1; i <= 40; i++) {
        picture_round(i, 3.4 + 3.5 / (double)i, i == 39 ? 2 : 3);
    }
    PICTURE_SET(picture_facts.rounds[38].left_out, "alice: its update came too late");
    picture_facts.rounds[38].n_left_out = 1;
    for (uint64_t i = 1; i <= 20; i++) {
        char text[64];
        snprintf(text, sizeof text, "round %llu applied", (unsigned long long)i + 20);
        picture_event(i, text);
    }
}

#endif
