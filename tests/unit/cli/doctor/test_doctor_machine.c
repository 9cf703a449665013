#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/lib/fake_root.h"
#include "tests/unit/cli/doctor_kit.h"

static dp_finding look(const char *name, const dp_doctor *doctor)
{
    return doctor_look(dp_doctor_machine, name, doctor);
}

/* ---- programs ---- */

static void a_program_that_gives_no_answer_is_in_the_way(void **state)
{
    (void)state;
    dp_doctor doctor = doctor_of(NULL, NULL, NULL);
    doctor.worker_why = "the program is not installed";
    expect(look("worker", &doctor), DP_FINDING_FAIL, "dpnode-worker does not answer",
           "the program is not installed", "beside dpnode");
    expect(look("daemon", &doctor), DP_FINDING_FAIL, "dpnoded does not answer", "", "install");
    assert_int_equal(look("cpu", &doctor).level, DP_FINDING_NONE);
    assert_int_equal(look("memory", &doctor).level, DP_FINDING_NONE);
    assert_int_equal(look("device", &doctor).level, DP_FINDING_NONE);
}

static void programs_of_two_releases_do_not_go_together(void **state)
{
    (void)state;
    json_t *const worker = json_pack("{s:s}", "version", "1.1");
    dp_doctor doctor = doctor_of(worker, NULL, NULL);
    expect(look("worker", &doctor), DP_FINDING_FAIL, "has version 1.1, dpnode has 1.0", "",
           "one release");
    doctor.version = "1.1";
    expect(look("worker", &doctor), DP_FINDING_OK, "dpnode-worker 1.1", NULL, NULL);
    json_decref(worker);
}

static void a_daemon_from_before_the_upgrade_is_told(void **state)
{
    (void)state;
    json_t *const check = json_pack("{s:s}", "version", "1.0");
    json_t *const status = json_pack("{s:s}", "version", "0.9");
    dp_doctor doctor = doctor_of(NULL, check, status);
    expect(look("daemon", &doctor), DP_FINDING_WARN, "has version 0.9", "was installed",
           "dpnode down");
    doctor.status = NULL;
    expect(look("daemon", &doctor), DP_FINDING_OK, "dpnoded 1.0", NULL, NULL);
    json_decref(status);
    json_decref(check);
}

/* ---- what computes ---- */

static json_t *worker_of(const char *kernels, int cpus, int quota)
{
    return json_pack("{s:s,s:i,s:i,s:i}", "kernels", kernels, "cpus", cpus, "quota", quota,
                     "threads", quota > 0 && quota < cpus ? quota : cpus);
}

static void processors_are_judged_by_kernels_quota_and_the_threads_that_are_set(void **state)
{
    static const struct {
        const char *kernels;
        int cpus;
        int quota;
        int threads; /* of the daemon's settings */
        dp_finding_level level;
        const char *what;
        const char *why;
    } rows[] = {
        {"avx512", 8, 0, 0, DP_FINDING_OK, "avx512 kernels, 8 of 8 processors", NULL},
        {"avx2", 8, 2, 0, DP_FINDING_OK, "2 of 8 processors (limit of the control group)", NULL},
        {"avx2", 8, 2, 2, DP_FINDING_OK, "2 of 8", NULL},
        {"avx2", 8, 2, 8, DP_FINDING_WARN, "8 threads are configured, 2 processors",
         "control group"},
        {"avx2", 4, 0, 8, DP_FINDING_WARN, "8 threads are configured, 4 processors", "wait"},
        {"generic", 8, 0, 0, DP_FINDING_WARN, "generic kernels", "AVX2"},
        {"reference-bf16", 8, 0, 0, DP_FINDING_WARN, "reference", "AVX2"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_t *const worker = worker_of(rows[i].kernels, rows[i].cpus, rows[i].quota);
        json_t *const check = json_pack("{s:i}", "threads", rows[i].threads);
        const dp_doctor doctor = doctor_of(worker, check, NULL);
        expect(look("cpu", &doctor), rows[i].level, rows[i].what, rows[i].why,
               rows[i].why != NULL ? "" : NULL);
        json_decref(check);
        json_decref(worker);
    }
}

static void memory_is_judged_by_what_may_be_used(void **state)
{
    static const struct {
        json_int_t usable;
        json_int_t limit;
        dp_finding_level level;
        const char *what;
    } rows[] = {
        {(json_int_t)8 << 30, 0, DP_FINDING_OK, "8.0 GiB available for training"},
        {(json_int_t)2 << 30, (json_int_t)4 << 30, DP_FINDING_OK,
         "limit of the control group: 4.0 GiB"},
        {(json_int_t)512 << 20, 0, DP_FINDING_WARN, "512 MiB"},
        {(json_int_t)100 << 20, 0, DP_FINDING_FAIL, "100 MiB"},
        {0, 0, DP_FINDING_NONE, ""}, /* not known */
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_t *const worker =
            json_pack("{s:I,s:I}", "memory_usable", rows[i].usable, "memory_limit", rows[i].limit);
        const dp_doctor doctor = doctor_of(worker, NULL, NULL);
        const bool good = rows[i].level <= DP_FINDING_OK;
        expect(look("memory", &doctor), rows[i].level, rows[i].what, good ? NULL : "36 bytes",
               good ? NULL : "dpnode doctor MANIFEST");
        json_decref(worker);
    }
}

static void a_device_that_was_not_taken_is_told_in_its_own_words(void **state)
{
    (void)state;
    json_t *const worker = json_pack("{s:s,s:s,s:I,s:s}", "backend", "cuda", "device", "H200",
                                     "device_memory_usable", (json_int_t)1 << 30, "line", "");
    const dp_doctor doctor = doctor_of(worker, NULL, NULL);
    expect(look("device", &doctor), DP_FINDING_OK, "cuda: H200; 1.0 GiB available", NULL, NULL);
    json_object_set_new(worker, "cards", json_integer(2));
    json_object_set_new(worker, "link", json_string("NCCL 2.21.5"));
    expect(look("device", &doctor), DP_FINDING_OK, "GiB available; 2 cards, NCCL 2.21.5", NULL,
           NULL);
    json_object_set_new(worker, "celsius", json_integer(90));
    expect(look("device", &doctor), DP_FINDING_WARN, "H200", "90 degrees", "fans");
    json_object_set_new(worker, "celsius", json_integer(60));
    assert_int_equal(look("device", &doctor).level, DP_FINDING_OK);
    json_object_set_new(worker, "busy_percent", json_integer(95));
    expect(look("device", &doctor), DP_FINDING_WARN, "H200", "other programs use 95 %", "cuda:1");
    json_t *const status = json_pack("{s:{s:s}}", "run", "device", "cuda: H200");
    const dp_doctor own = doctor_of(worker, NULL, status);
    assert_int_equal(look("device", &own).level,
                     DP_FINDING_OK); /* It is this node that trains there. */
    json_object_set_new(json_object_get(status, "run"), "device", json_string("cpu: x"));
    expect(look("device", &own), DP_FINDING_WARN, "H200", "this node trains on cpu: x",
           "dpnode up");
    json_decref(status);
    json_object_set_new(worker, "busy_percent", json_integer(3));
    json_object_set_new(worker, "line", json_string("H200 computes (cuda)"));
    assert_int_equal(look("device", &doctor).level, DP_FINDING_OK);
    json_object_set_new(worker, "backend", json_string("cpu"));
    json_object_set_new(worker, "line", json_string("the driver is too old; the CPU computes"));
    expect(look("device", &doctor), DP_FINDING_WARN, "", "the driver is too old", "--backend cpu");
    json_decref(worker);
}

/* ---- limits and network, below a root that is not the machine's ---- */

static void bbr_is_asked_for_and_its_module_where_it_is_missing(void **state)
{
    (void)state;
    dp_doctor doctor = doctor_of(NULL, NULL, NULL);
    doctor.root = fake_root.path;
    assert_int_equal(look("congestion", &doctor).level, DP_FINDING_NONE); /* no such files */
    folder("proc/sys/net/ipv4");
    put("proc/sys/net/ipv4/tcp_congestion_control", "bbr\n");
    expect(look("congestion", &doctor), DP_FINDING_OK, "TCP uses bbr", NULL, NULL);
    put("proc/sys/net/ipv4/tcp_congestion_control", "cubic\n");
    put("proc/sys/net/ipv4/tcp_available_congestion_control", "reno cubic bbr\n");
    expect(look("congestion", &doctor), DP_FINDING_WARN, "TCP uses cubic", "50 ms", "sysctl -w");
    put("proc/sys/net/ipv4/tcp_available_congestion_control", "reno cubic\n");
    expect(look("congestion", &doctor), DP_FINDING_WARN, "cubic", "", "modprobe tcp_bbr; sysctl");
    put("proc/sys/net/ipv4/tcp_congestion_control", "");
    assert_int_equal(look("congestion", &doctor).level, DP_FINDING_NONE);
}

static void a_machine_without_a_card_misses_none_and_one_with_a_card_does(void **state)
{
    (void)state;
    json_t *const check = json_pack("{s:s}", "backend", "auto");
    json_t *const worker =
        json_pack("{s:s,s:s,s:I,s:s}", "backend", "cpu", "device", "avx2", "device_memory_usable",
                  (json_int_t)1 << 30, "line", "no driver; the CPU computes instead");
    dp_doctor doctor = doctor_of(worker, check, NULL);
    doctor.root = fake_root.path;
    expect(look("device", &doctor), DP_FINDING_OK, "1.0 GiB available; this machine has no GPU",
           NULL, NULL);
    json_object_set_new(check, "backend", json_string("cuda")); /* asked for */
    expect(look("device", &doctor), DP_FINDING_WARN, "cpu: avx2", "no driver", "--backend cpu");
    json_object_set_new(check, "backend", json_string("auto"));
    folder("dev/nvidiactl");
    expect(look("device", &doctor), DP_FINDING_WARN, "cpu: avx2", "no driver", "--backend cpu");
    json_decref(worker);
    json_decref(check);
}

static void a_machine_without_shared_memory_is_told(void **state)
{
    (void)state;
    dp_doctor doctor = doctor_of(NULL, NULL, NULL);
    doctor.root = fake_root.path;
    expect(look("shm", &doctor), DP_FINDING_WARN, "/dev/shm is missing", "PyTorch", "mount");
    folder("dev/shm");
    assert_true(look("shm", &doctor).level >= DP_FINDING_OK); /* of the disk that tests use */
}

static void descriptors_are_counted(void **state)
{
    (void)state;
    dp_doctor doctor = doctor_of(NULL, NULL, NULL);
    doctor.files_max = 127;
    expect(look("files", &doctor), DP_FINDING_FAIL, "127 file descriptors", "two", "ulimit -Hn");
    doctor.files_max = 1023;
    expect(look("files", &doctor), DP_FINDING_WARN, "1023", "two", "LimitNOFILE");
    doctor.files_max = 1024;
    expect(look("files", &doctor), DP_FINDING_OK, "1024", NULL, NULL);
}

/* ---- clock ---- */

/* Rounds of which each was seen later_ms after it was written. */
static void fill_rounds(json_t *rounds, json_t *events, const long long *later_ms, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const json_int_t written = (json_int_t)1800000000000 + (json_int_t)i * 10000;
        json_array_append_new(
            rounds, json_pack("{s:I,s:I}", "round", (json_int_t)i + 1, "time_ms", written));
        json_array_append_new(events, json_pack("{s:s,s:I,s:I}", "name", "round.decided", "round",
                                                (json_int_t)i + 1, "time_ms",
                                                written + (json_int_t)later_ms[i]));
        json_array_append_new(events, json_pack("{s:s,s:I,s:I}", "name", "round.counted", "round",
                                                (json_int_t)i + 1, "time_ms", (json_int_t)0));
    }
}

static dp_finding clock_of(const long long *later_ms, size_t count)
{
    json_t *const rounds = json_array();
    json_t *const events = json_array();
    dp_doctor doctor = doctor_of(NULL, NULL, NULL);
    fill_rounds(rounds, events, later_ms, count);
    doctor.rounds = rounds;
    doctor.events = events;
    const dp_finding finding = look("clock", &doctor);
    json_decref(events);
    json_decref(rounds);
    return finding;
}

static void a_clock_is_compared_with_those_that_wrote_the_rounds(void **state)
{
    (void)state;
    const long long near[] = {300, 200, 400, 250, 900};
    const long long behind[] = {-59000, -60000, -61000};
    const long long before[] = {7000, 6900, 7100};
    /* Most were live; the first ones came while this node caught up. */
    const long long caught_up[] = {600000, 500000, 300, 200, 100};
    expect(clock_of(near, 5), DP_FINDING_OK, "within 300 ms of the run", NULL, NULL);
    expect(clock_of(behind, 3), DP_FINDING_WARN, "60 s behind those of the run", "certificates",
           "set-ntp");
    expect(clock_of(before, 3), DP_FINDING_WARN, "7 s before those of the run", "", "set-ntp");
    expect(clock_of(caught_up, 5), DP_FINDING_OK, "within 300 ms", NULL, NULL);
    expect(clock_of(NULL, 0), DP_FINDING_OK, "synchronised", NULL, NULL);
}

static void more_rounds_than_are_looked_at_do_no_harm(void **state)
{
    (void)state;
    long long later_ms[64];
    for (size_t i = 0; i < 64; i++) {
        later_ms[i] = 64 - (long long)i;
    }
    assert_int_equal(clock_of(later_ms, 64).level, DP_FINDING_OK);
}

static void a_clock_that_nobody_keeps_is_told_and_an_old_one_fails(void **state)
{
    (void)state;
    dp_doctor doctor = doctor_of(NULL, NULL, NULL);
    doctor.clock_synchronised = false;
    expect(look("clock", &doctor), DP_FINDING_WARN, "not synchronized", "drift", "timedatectl");
    doctor.now_ms = 0;
    expect(look("clock", &doctor), DP_FINDING_FAIL, "before 2026", "certificates", "set-ntp");
}

static void processes_of_the_trainer_are_told_and_too_many_warned_of(void **state)
{
    (void)state;
    static const struct {
        int processes;
        dp_finding_level level;
        const char *what;
        const char *why;
    } rows[] = {{1, DP_FINDING_OK, "4 of 4 processors", NULL},
                {2, DP_FINDING_OK, "4 processors for 2 processes", NULL},
                {5, DP_FINDING_WARN, "5 processes are configured, 4 processors", "slowest"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_t *const worker = worker_of("avx2", 4, 0);
        json_t *const check = json_pack("{s:i,s:i}", "threads", 0, "processes", rows[i].processes);
        const dp_doctor doctor = doctor_of(worker, check, NULL);
        expect(look("cpu", &doctor), rows[i].level, rows[i].what, rows[i].why,
               rows[i].why != NULL ? "--processes 1" : NULL);
        json_decref(check);
        json_decref(worker);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_of_the_trainer_are_told_and_too_many_warned_of),
        cmocka_unit_test(a_program_that_gives_no_answer_is_in_the_way),
        cmocka_unit_test(programs_of_two_releases_do_not_go_together),
        cmocka_unit_test(a_daemon_from_before_the_upgrade_is_told),
        cmocka_unit_test(processors_are_judged_by_kernels_quota_and_the_threads_that_are_set),
        cmocka_unit_test(memory_is_judged_by_what_may_be_used),
        cmocka_unit_test(a_device_that_was_not_taken_is_told_in_its_own_words),
        in_root(bbr_is_asked_for_and_its_module_where_it_is_missing),
        in_root(a_machine_without_a_card_misses_none_and_one_with_a_card_does),
        in_root(a_machine_without_shared_memory_is_told),
        cmocka_unit_test(descriptors_are_counted),
        cmocka_unit_test(a_clock_is_compared_with_those_that_wrote_the_rounds),
        cmocka_unit_test(more_rounds_than_are_looked_at_do_no_harm),
        cmocka_unit_test(a_clock_that_nobody_keeps_is_told_and_an_old_one_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
