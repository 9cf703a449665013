#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/cli/doctor_kit.h"

#define GIB ((json_int_t)1 << 30)
#define MIB ((json_int_t)1 << 20)

static dp_finding look(const char *name, const dp_doctor *doctor)
{
    return doctor_look(dp_doctor_node, name, doctor);
}

static void nothing_is_said_of_a_node_that_nobody_could_look_at(void **state)
{
    static const char *const names[] = {"directory", "space", "disk", "port", "plan"};
    (void)state;
    const dp_doctor doctor = doctor_of(NULL, NULL, NULL);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_int_equal(look(names[i], &doctor).level, DP_FINDING_NONE);
    }
}

static void a_directory_must_be_writable_and_local(void **state)
{
    (void)state;
    json_t *const check = json_pack("{s:s,s:i}", "dir", "/d", "dir_exists", 1);
    const dp_doctor doctor = doctor_of(NULL, check, NULL);
    expect(look("directory", &doctor), DP_FINDING_OK, "/d", NULL, NULL);
    json_object_set_new(check, "dir_exists", json_integer(0));
    expect(look("directory", &doctor), DP_FINDING_OK, "/d, not created yet", NULL, NULL);
    json_object_set_new(check, "network", json_string("nfs is a network file system"));
    expect(look("directory", &doctor), DP_FINDING_FAIL, "cannot hold a store", "nfs", "--dir");
    json_object_set_new(check, "private_why", json_string("others may enter /d"));
    expect(look("directory", &doctor), DP_FINDING_FAIL, "accessible to other users", "others",
           "--dir");
    json_object_set_new(check, "dir_why", json_string("/d: Permission denied"));
    expect(look("directory", &doctor), DP_FINDING_FAIL, "cannot be written", "denied", "--dir");
    json_object_set_new(check, "key_why", json_string("others may read /d/root.key"));
    expect(look("directory", &doctor), DP_FINDING_FAIL, "a key in /d", "root.key", "chmod 600");
    json_decref(check);
}

static void the_directory_of_another_users_daemon_is_its_own_affair(void **state)
{
    (void)state;
    json_t *const check = json_pack("{s:s,s:s}", "dir", "/d", "dir_why", "/d: Permission denied");
    json_t *const status = json_pack("{s:s}", "dir", "/d");
    dp_doctor doctor = doctor_of(NULL, check, status);
    expect(look("directory", &doctor), DP_FINDING_OK, "/d, in use by the daemon", NULL, NULL);
    json_object_set_new(status, "dir", json_string("/other"));
    assert_int_equal(look("directory", &doctor).level, DP_FINDING_FAIL);
    json_decref(status);
    json_decref(check);
}

static json_t *space_of(json_int_t free_bytes, json_int_t quota)
{
    return json_pack("{s:I,s:I,s:I,s:I}", "free", free_bytes, "ballast", 64 * MIB, "margin",
                     64 * MIB, "store_max", quota);
}

static void space_is_judged_beside_ballast_margin_quota_and_model(void **state)
{
    static const struct {
        json_int_t free;
        json_int_t quota;
        json_int_t parameters; /* of the manifest */
        dp_finding_level level;
        const char *why;
        const char *fix;
    } rows[] = {
        {100 * GIB, 0, 0, DP_FINDING_OK, NULL, NULL},
        {100 * GIB, 0, 124000000, DP_FINDING_OK, NULL, NULL},
        {191 * MIB, 0, 0, DP_FINDING_FAIL, "128 MiB stay free as disk reserve", "free space"},
        {193 * MIB, 0, 0, DP_FINDING_WARN, "16 bytes per parameter", "free space"},
        {3 * GIB, 0, 0, DP_FINDING_OK, NULL, NULL},
        {3 * GIB, 0, 1000000000, DP_FINDING_WARN, "here 14.9 GiB", "free space"},
        {100 * GIB, GIB, 124000000, DP_FINDING_WARN, "store-max is 1.0 GiB", "--store-max"},
        {100 * GIB, 4 * GIB, 124000000, DP_FINDING_OK, NULL, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_t *const check = space_of(rows[i].free, rows[i].quota);
        json_t *const plan = json_pack("{s:I}", "parameters", rows[i].parameters);
        dp_doctor doctor = doctor_of(NULL, check, NULL);
        doctor.plan = plan;
        expect(look("space", &doctor), rows[i].level, " free", rows[i].why, rows[i].fix);
        json_decref(plan);
        json_decref(check);
    }
}

static void a_running_daemon_has_its_ballast_already(void **state)
{
    (void)state;
    json_t *const check = space_of(150 * MIB, 0);
    json_t *const status = json_object();
    dp_doctor doctor = doctor_of(NULL, check, NULL);
    assert_int_equal(look("space", &doctor).level, DP_FINDING_FAIL);
    doctor.status = status;
    assert_int_equal(look("space", &doctor).level, DP_FINDING_WARN);
    json_decref(status);
    json_decref(check);
}

static void a_disk_is_judged_by_how_the_store_writes(void **state)
{
    (void)state;
    json_t *const check =
        json_pack("{s:I,s:I}", "write_bytes_s", 300 * MIB, "commit_us", (json_int_t)1500);
    const dp_doctor doctor = doctor_of(NULL, check, NULL);
    expect(look("disk", &doctor), DP_FINDING_OK, "300 MiB/s; a small row takes 1.5 ms", NULL, NULL);
    json_object_set_new(check, "commit_us", json_integer(100001));
    expect(look("disk", &doctor), DP_FINDING_WARN, "100.0 ms", "every voter", "another disk");
    json_object_set_new(check, "commit_us", json_integer(1500));
    json_object_set_new(check, "write_bytes_s", json_integer(5 * MIB));
    expect(look("disk", &doctor), DP_FINDING_WARN, "5.0 MiB/s", "checkpoint", "another disk");
    json_object_set_new(check, "disk_why", json_string("no space"));
    expect(look("disk", &doctor), DP_FINDING_WARN, "could not be tested", "no space", "free space");
    json_decref(check);
}

static void a_port_must_be_free_before_there_is_a_run(void **state)
{
    (void)state;
    json_t *const check = json_pack("{s:s}", "listen", "0.0.0.0:7717");
    const dp_doctor doctor = doctor_of(NULL, check, NULL);
    expect(look("port", &doctor), DP_FINDING_OK, "0.0.0.0:7717 is free", NULL, NULL);
    json_object_set_new(check, "listen_why", json_string("in use by another program"));
    expect(look("port", &doctor), DP_FINDING_FAIL, "0.0.0.0:7717 cannot be used for listening",
           "in use", "--listen");
    json_decref(check);
}

static json_t *peers_of(const char *own, const char *other)
{
    return json_pack("{s:[{s:b,s:[s]},{s:b,s:[s]}]}", "peers", "self", 1, "addresses", own, "self",
                     0, "addresses", other);
}

static void a_port_that_listens_should_have_links_and_an_address_for_others(void **state)
{
    static const struct {
        int links;
        const char *own;
        const char *other;
        dp_finding_level level;
        const char *why;
        const char *fix;
    } rows[] = {
        {1, "192.0.2.1:7717", "192.0.2.2:7717", DP_FINDING_OK, NULL, NULL},
        {1, "127.0.0.1:7717", "127.0.0.1:7718", DP_FINDING_OK, NULL, NULL}, /* one machine */
        {1, "127.0.0.1:7717", "192.0.2.2:7717", DP_FINDING_WARN, "this machine only",
         "DPNODE_ADVERTISE"},
        {1, "[::1]:7717", "192.0.2.2:7717", DP_FINDING_WARN, "this machine only", "--listen"},
        {0, "192.0.2.1:7717", "192.0.2.2:7717", DP_FINDING_WARN, "has 2 members", "dpnode why"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_t *const status = json_pack("{s:i,s:{s:i,s:i}}", "port", 7717, "run", "links",
                                         rows[i].links, "members", 2);
        json_t *const check = json_pack("{s:s}", "listen_why", "in use"); /* by this very daemon */
        json_t *const peers = peers_of(rows[i].own, rows[i].other);
        dp_doctor doctor = doctor_of(NULL, check, status);
        doctor.peers = peers;
        expect(look("port", &doctor), rows[i].level, "listens on port 7717", rows[i].why,
               rows[i].fix);
        json_decref(peers);
        json_decref(check);
        json_decref(status);
    }
}

static void a_port_that_nobody_answers_at_is_told_with_its_addresses(void **state)
{
    (void)state;
    json_t *const status =
        json_pack("{s:i,s:{s:i,s:i}}", "port", 7717, "run", "links", 1, "members", 2);
    json_t *const dialed = json_pack("{s:b,s:b}", "192.0.2.1:7717", 0, "198.51.100.1:7717", 0);
    dp_doctor doctor = doctor_of(NULL, NULL, status);
    doctor.dialed = dialed;
    expect(look("port", &doctor), DP_FINDING_WARN, "listens on port 7717",
           "peers dial 192.0.2.1:7717, 198.51.100.1:7717; no connection", "another machine");
    json_object_set_new(dialed, "198.51.100.1:7717", json_true());
    expect(look("port", &doctor), DP_FINDING_OK, "listens", NULL, NULL);
    json_object_clear(dialed); /* It advertises no address. */
    expect(look("port", &doctor), DP_FINDING_OK, "listens", NULL, NULL);
    json_decref(dialed);
    json_decref(status);
}

static void a_node_that_nobody_lets_in_is_told_how_it_comes_back(void **state)
{
    (void)state;
    json_t *const status = json_pack("{s:i,s:{s:i,s:i,s:b}}", "port", 7717, "run", "links", 0,
                                     "members", 2, "refused", 1);
    const dp_doctor doctor = doctor_of(NULL, NULL, status);
    expect(look("port", &doctor), DP_FINDING_FAIL, "listens on port 7717", "rotated twice",
           "dpnode join TOKEN");
    json_decref(status);
}

static void a_run_is_told_with_its_device(void **state)
{
    static const struct {
        const char *state;
        const char *trainer;
        int quorum;
        dp_finding_level level;
        const char *why;
        const char *fix;
    } rows[] = {
        {"training", "up", 1, DP_FINDING_OK, NULL, NULL},
        {"paused", "up", 1, DP_FINDING_OK, NULL, NULL},
        {"gossip", "up", 0, DP_FINDING_WARN, "no majority", "dpnode why"},
        {"training", "up", 0, DP_FINDING_WARN, "no majority", "dpnode why"},
        {"halted", "up", 1, DP_FINDING_FAIL, "two records in one ballot", "dpnode why"},
        {"training", "failing", 1, DP_FINDING_FAIL, "crashed 7 times; it restarts in 12 s",
         "dpnode logs"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_t *const status = json_pack(
            "{s:s,s:{s:s,s:s,s:s,s:i,s:b,s:i,s:i}}", "state", rows[i].state, "run", "name", "kjv",
            "trainer", rows[i].trainer, "device", "cpu: avx2, 2 threads", "round", 12, "quorum",
            rows[i].quorum, "trainer_restarts", 7, "trainer_next_ms", 11200);
        const dp_doctor doctor = doctor_of(NULL, NULL, status);
        expect(look("run", &doctor), rows[i].level, ", round 12, on cpu: avx2, 2 threads",
               rows[i].why, rows[i].fix);
        json_decref(status);
    }
    json_t *const idle = json_pack("{s:s}", "state", "idle");
    const dp_doctor doctor = doctor_of(NULL, NULL, idle);
    expect(look("run", &doctor), DP_FINDING_OK, "idle", NULL, NULL);
    json_t *const lost = json_pack("{s:s,s:s}", "state", "idle", "lost", "its store was damaged");
    const dp_doctor of_lost = doctor_of(NULL, NULL, lost);
    expect(look("run", &of_lost), DP_FINDING_FAIL, "no longer a member", "its store was damaged",
           "dpnode join");
    json_decref(lost);
    const dp_doctor none = doctor_of(NULL, NULL, NULL);
    expect(look("run", &none), DP_FINDING_OK, "no daemon is running", NULL, NULL);
    json_decref(idle);
}

static void a_run_whose_chain_is_being_read_lacks_no_majority(void **state)
{
    (void)state;
    json_t *const status = json_pack("{s:s,s:{s:s,s:s,s:n,s:n}}", "state", "starting", "run",
                                     "name", "kjv", "trainer", "down", "round", "quorum");
    const dp_doctor doctor = doctor_of(NULL, NULL, status);
    expect(look("run", &doctor), DP_FINDING_OK, "kjv: starting, round not known yet", NULL, NULL);
    json_decref(status);
}

static void a_manifest_fits_or_the_reason_is_told(void **state)
{
    (void)state;
    json_t *const worker = json_object();
    json_t *const plan = json_pack("{s:b,s:I,s:I,s:i,s:s}", "fits", 1, "total", GIB, "budget",
                                   4 * GIB, "rows", 8, "recompute", "nothing");
    dp_doctor doctor = doctor_of(worker, NULL, NULL);
    doctor.plan_name = "kjv";
    expect(look("plan", &doctor), DP_FINDING_FAIL, "is not known", "no memory plan", "validate");
    doctor.plan_external = true;
    expect(look("plan", &doctor), DP_FINDING_OK, "kjv is a run of any model", NULL, NULL);
    doctor.plan_external = false;
    doctor.plan = plan;
    expect(look("plan", &doctor), DP_FINDING_OK, "it needs 1.0 GiB of 4.0 GiB, trains 8 sequences",
           NULL, NULL);
    json_object_set_new(plan, "fits", json_false());
    json_object_set_new(plan, "why", json_string("model.context 512 would fit"));
    expect(look("plan", &doctor), DP_FINDING_FAIL,
           "kjv does not fit: it needs 1.0 GiB, 4.0 GiB are available", "model.context 512",
           "free memory");
    doctor.text_why = "it has 7 tokens";
    expect(look("plan", &doctor), DP_FINDING_FAIL, "kjv has no text to train on", "7 tokens",
           "validate");
    json_decref(plan);
    json_decref(worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_said_of_a_node_that_nobody_could_look_at),
        cmocka_unit_test(a_directory_must_be_writable_and_local),
        cmocka_unit_test(the_directory_of_another_users_daemon_is_its_own_affair),
        cmocka_unit_test(space_is_judged_beside_ballast_margin_quota_and_model),
        cmocka_unit_test(a_running_daemon_has_its_ballast_already),
        cmocka_unit_test(a_disk_is_judged_by_how_the_store_writes),
        cmocka_unit_test(a_port_must_be_free_before_there_is_a_run),
        cmocka_unit_test(a_port_that_listens_should_have_links_and_an_address_for_others),
        cmocka_unit_test(a_port_that_nobody_answers_at_is_told_with_its_addresses),
        cmocka_unit_test(a_node_that_nobody_lets_in_is_told_how_it_comes_back),
        cmocka_unit_test(a_run_is_told_with_its_device),
        cmocka_unit_test(a_run_whose_chain_is_being_read_lacks_no_majority),
        cmocka_unit_test(a_manifest_fits_or_the_reason_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
