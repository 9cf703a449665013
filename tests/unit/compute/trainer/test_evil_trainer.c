/* THREADS_TEST. The trainer that harms (tests/attack/evil_updates.c), as a daemon sees it, and what
 * an honest one finds of it. */
#include "tests/unit/compute/worker_kit.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "compute/codec/codec.h"
#include "compute/model/state.h"
#include "compute/outer/part.h"
#include "tests/unit/compute/update_kit.h"

enum { PARTS = 2, FIRST_PART = 2, ELEMENTS_MAX = 1 << 20 };

static char folder[PATH_MAX]; /* of the programs */

static peer start_evil(const char *kind)
{
    char program[PATH_MAX + 32];
    char real[PATH_MAX + 32];
    char number[16];
    int pair[2];
    snprintf(program, sizeof program, "%s/evil_trainer", folder);
    snprintf(real, sizeof real, "%s/dpnode-worker", folder);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    fflush(NULL);
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        fcntl(pair[1], F_SETFD, 0);
        snprintf(number, sizeof number, "%d", pair[1]);
        execl(program, program, kind, real, "--fd", number, "--threads", "1", "--backend", "cpu",
              (char *)NULL);
        _exit(99);
    }
    close(pair[1]);
    const peer p = {.pid = pid, .socket = pair[0]};
    CHECK(open_run(&p, 2) > 0);
    init(&p);
    return p;
}

static answer publish_any(const peer *p, uint64_t round, const dp_part_cuts *cuts)
{
    const dp_trainer_msg msg = {.kind = DP_TRAINER_PUBLISH, .round = round, .cuts = *cuts};
    send_views(p, &msg, NULL, 0);
    const answer a = expect(p, DP_TRAINER_PUBLISHED);
    assert_int_equal(a.n_fds, FIRST_PART + cuts->n);
    return a;
}

/* Checks that the numbers in the answer fit the files, and that the files fit each other. Copies a,
 * and returns the number of its elements. */
static size_t check_whole(const peer *judge, const answer *told, float *copy)
{
    const dp_view blob = map(told->fds[0]);
    const dp_view a = map(told->fds[1]);
    const size_t n = a.size / sizeof(float);
    double norm = 0;
    double error = 0;
    unsigned __int128 energy = 0;
    CHECK(n <= ELEMENTS_MAX);
    CHECK_OK(dp_floats_read(a, copy, n));
    CHECK_OK(dp_codec_error(blob, copy, n, &norm, &error));
    CHECK(fabs(norm - told->msg.norm) <= 1e-9 * norm && error <= norm);
    CHECK(fabs(error - told->msg.error) <= 1e-9 * norm);
    if (told->msg.cuts.n == 0) {
        CHECK_OK(dp_codec_energy(blob, n, &energy));
        CHECK(energy == told->msg.energy);
    }
    dp_memfd_unmap(blob);
    dp_memfd_unmap(a);
    const dp_trainer_msg check = {.kind = DP_TRAINER_CHECK, .id = 77};
    CHECK_OK(dp_trainer_send(judge->socket, &check, told->fds, 1));
    CHECK(expect(judge, DP_TRAINER_CHECKED).msg.ok);
    return n;
}

static dp_judged judged_by(const peer *judge, const answer *told)
{
    const dp_trainer_msg msg = {.kind = DP_TRAINER_JUDGE,
                                .id = 1,
                                .scale = ONE / 8,
                                .tokens = 8 * TINY_CONTEXT,
                                .seed = 5,
                                .member = {2},
                                .own_count = 4 * STEPS};
    CHECK_OK(dp_trainer_send(judge->socket, &msg, told->fds, 1));
    const answer a = expect(judge, DP_TRAINER_JUDGED);
    CHECK(!a.msg.judged.failed && a.msg.judged.compared);
    return a.msg.judged;
}

static const dp_part_cuts whole;

/* The first publication of a trainer of this kind, and its measurement by one that has published
 * itself. */
static dp_judged judged_kind(const char *kind, dp_trainer_msg *told)
{
    static float a[ELEMENTS_MAX];
    const peer judge = ready_peer(1);
    const peer evil = start_evil(kind);
    train_until(&judge, 1, STEPS);
    train_until(&evil, 1, STEPS);
    const answer own = publish(&judge, 1);
    const answer theirs = publish_any(&evil, 1, &whole);
    check_whole(&judge, &theirs, a);
    const dp_judged found = judged_by(&judge, &theirs);
    *told = theirs.msg;
    release(&own);
    release(&theirs);
    stop(&evil);
    stop(&judge);
    return found;
}

static void every_kind_is_well_formed_and_found_out(void **state)
{
    (void)state;
    dp_trainer_msg told;
    const dp_judged honest = judged_kind("honest", &told);
    CHECK(honest.align > 0);
    CHECK(honest.held.micro > 0 && told.steps > 1);
    const dp_judged flip1 = judged_kind("flip1", &told);
    CHECK(flip1.align < 0);
    CHECK(flip1.held.micro < 0 && told.steps > 1);
    const dp_judged flip10 = judged_kind("flip10", &told);
    CHECK(flip10.align < 0);
    CHECK(flip10.held.micro < 0 && told.steps > 1);
    const dp_judged step = judged_kind("flip10-step", &told);
    CHECK(step.align < 0 && told.steps == 1);
    const dp_judged noise = judged_kind("noise", &told);
    CHECK(abs(noise.align) < ONE / 16 && abs(noise.align) < honest.align && told.energy > 0);
    const dp_judged zero = judged_kind("zero", &told);
    CHECK(zero.align == 0 && zero.held.micro == 0 && told.energy == 0 && told.norm == 0);
    const dp_judged later = judged_kind("flip1@2", &told);
    CHECK(later.align > 0);
}

/* a of publications of rounds one after the other, of which only its own count. */
static void rounds_of(const char *kind, float *a[], uint64_t rounds, size_t *n)
{
    const peer judge = ready_peer(1);
    const peer evil = start_evil(kind);
    for (uint64_t round = 1; round <= rounds; round++) {
        train_until(&evil, round, 1);
        const answer told = publish_any(&evil, round, &whole);
        *n = check_whole(&judge, &told, a[round - 1]);
        const dp_trainer_msg record = record_of(round, DP_SETTLE_INCLUDED, 1);
        apply(&evil, &record, told.fds);
        release(&told);
    }
    stop(&evil);
    stop(&judge);
}

static double cosine(const float *x, const float *y, size_t n)
{
    double sums[3] = {0};
    for (size_t i = 0; i < n; i++) {
        sums[0] += (double)x[i] * (double)y[i];
        sums[1] += (double)x[i] * (double)x[i];
        sums[2] += (double)y[i] * (double)y[i];
    }
    return sums[0] / sqrt(sums[1]) / sqrt(sums[2]);
}

static void a_replay_is_the_update_of_three_rounds_before(void **state)
{
    (void)state;
    float *a[5];
    size_t n = 0;
    for (size_t i = 0; i < 5; i++) {
        a[i] = test_malloc(ELEMENTS_MAX * sizeof *a[i]);
    }
    rounds_of("replay", a, 5, &n);
    CHECK(memcmp(a[0], a[3], n * sizeof *a[0]) == 0 && memcmp(a[1], a[4], n * sizeof *a[0]) == 0);
    CHECK(memcmp(a[0], a[1], n * sizeof *a[0]) != 0 && memcmp(a[1], a[2], n * sizeof *a[0]) != 0);
    for (size_t i = 0; i < 5; i++) {
        test_free(a[i]);
    }
}

/* A record of an update that nothing else has to do with, by a codec that keeps all of it. */
static void apply_made_up(const peer *p, float *m, size_t n)
{
    const dp_codec exact = {.kind = DP_CODEC_FP32};
    int fd;
    memset(m, 0, n * sizeof *m);
    update_add(m, n, 1e-4, 1);
    dp_buf blob;
    dp_buf_init(&blob, dp_codec_bytes_max_any(n));
    CHECK_OK(dp_codec_encode(&exact, m, n, &blob));
    CHECK_OK(dp_memfd_make("test", dp_buf_view(&blob), &fd));
    const dp_trainer_msg record = record_of(1, DP_SETTLE_INCLUDED, 1);
    apply(p, &record, &fd);
    close(fd);
    dp_buf_close(&blob);
}

static double along_the_round_before(const char *kind)
{
    static float m[ELEMENTS_MAX];
    static float a[ELEMENTS_MAX];
    const peer judge = ready_peer(1);
    const peer evil = start_evil(kind);
    train_until(&evil, 1, 1);
    const answer first = publish_any(&evil, 1, &whole);
    apply_made_up(&evil, m, check_whole(&judge, &first, a));
    train_until(&evil, 2, 1);
    const answer second = publish_any(&evil, 2, &whole);
    const size_t n = check_whole(&judge, &second, a);
    release(&first);
    release(&second);
    stop(&evil);
    stop(&judge);
    return cosine(a, m, n);
}

static void a_drift_leads_back_along_the_round_before(void **state)
{
    (void)state;
    CHECK(fabs(along_the_round_before("honest")) < 0.05);
    /* -0.3 of an update that 0.3 were added to across. */
    CHECK(fabs(along_the_round_before("drift") + 0.3 / sqrt(1.09)) < 0.05);
}

static void parts_are_of_what_it_tells(void **state)
{
    (void)state;
    static float a[ELEMENTS_MAX];
    const dp_part_cuts cuts = {.n = PARTS, .first = {0, 30000}};
    const peer judge = ready_peer(1);
    const peer evil = start_evil("flip1");
    unsigned __int128 sum = 0;
    train_until(&evil, 1, STEPS);
    const answer told = publish_any(&evil, 1, &cuts);
    check_whole(&judge, &told, a);
    for (uint32_t p = 0; p < PARTS; p++) {
        const dp_trainer_msg check = {
            .kind = DP_TRAINER_CHECK, .id = p, .range = dp_part_range_of(&cuts, p)};
        CHECK_OK(dp_trainer_send(judge.socket, &check, &told.fds[FIRST_PART + p], 1));
        const answer checked = expect(&judge, DP_TRAINER_CHECKED);
        CHECK(checked.msg.ok);
        sum += checked.msg.energy;
    }
    CHECK(sum == told.msg.energy);
    release(&told);
    stop(&evil);
    stop(&judge);
}

static int run(const char *command)
{
    char line[2 * PATH_MAX];
    snprintf(line, sizeof line, "%s/evil_trainer %s", folder, command);
    const int status = system(line);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void all_else_is_the_real_worker(void **state)
{
    (void)state;
    char command[2 * PATH_MAX];
    snprintf(command, sizeof command, "flip1 %s/dpnode-worker --help >/dev/null", folder);
    assert_int_equal(run(command), 0);
    snprintf(command, sizeof command, "flip1 %s/dpnode-worker --odd 2>/dev/null", folder);
    assert_int_equal(run(command), 64);
    assert_int_equal(run("kind worker 2>/dev/null"), 64);
    assert_int_equal(run("flip1 2>/dev/null"), 64);
}

static int find_programs(void **state)
{
    const ssize_t size = readlink("/proc/self/exe", folder, sizeof folder - 1);
    CHECK(size > 0);
    *strrchr(folder, '/') = '\0';
    return make_slow_files(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_is_well_formed_and_found_out),
        cmocka_unit_test(a_replay_is_the_update_of_three_rounds_before),
        cmocka_unit_test(a_drift_leads_back_along_the_round_before),
        cmocka_unit_test(parts_are_of_what_it_tells),
        cmocka_unit_test(all_else_is_the_real_worker),
    };
    return cmocka_run_group_tests(tests, find_programs, drop_files);
}
