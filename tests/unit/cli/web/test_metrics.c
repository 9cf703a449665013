#include "cli/web/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/cli/verb_kit.h"

/* The text for these replies, until the next call; peers may be NULL. */
static const char *written(const char *status, const char *peers)
{
    static char text[DP_METRICS_BYTES_MAX + 1];
    dp_buf out;
    json_t *const is = status != NULL ? verb_json(status) : NULL;
    json_t *const others = peers != NULL ? verb_json(peers) : NULL;
    dp_buf_init(&out, DP_METRICS_BYTES_MAX);
    CHECK_OK(dp_metrics_write(&out, is, others));
    memcpy(text, out.data, out.size);
    text[out.size] = '\0';
    dp_buf_close(&out);
    json_decref(is);
    json_decref(others);
    return text;
}

static void expect(const char *text, const char *line)
{
    char whole[256];
    snprintf(whole, sizeof whole, "\n%s\n", line);
    if (strstr(text, whole) == NULL) {
        fail_msg("no line %s in %s", line, text);
    }
}

static void without_a_daemon_the_node_is_down_and_nothing_else_is_told(void **state)
{
    (void)state;
    const char *const text = written(NULL, NULL);
    assert_string_equal(text, "# HELP dpnode_up 1: the daemon answers.\n# TYPE dpnode_up gauge\n"
                              "dpnode_up 0\n");
}

static void what_is_not_known_is_left_out(void **state)
{
    (void)state;
    const char *const text = written("{'state':'starting','version':'1','uptime_s':5,'rss_bytes':9,"
                                     "'run':{'name':'a','round':null,'tokens_per_s':null,"
                                     "'trainer':'starting'}}",
                                     NULL);
    expect(text, "dpnode_state{state=\"starting\"} 1");
    expect(text, "dpnode_state{state=\"training\"} 0");
    expect(text, "dpnode_trainer_state{state=\"starting\"} 1");
    assert_null(strstr(text, "dpnode_round"));
    assert_null(strstr(text, "tokens_per_second"));
    assert_null(strstr(text, "peer"));
}

static void the_loss_on_held_out_text_has_its_round(void **state)
{
    (void)state;
    const char *const text =
        written("{'state':'training','version':'1','run':{'name':'a','round':9,"
                "'trainer':'up','held_out':{'loss':3.25,'bits_per_byte':1.5,"
                "'tokens':8192,'round':7,'time_ms':1}}}",
                NULL);
    expect(text, "dpnode_held_out_loss_nats{run=\"a\"} 3.25");
    expect(text, "dpnode_held_out_bits_per_byte{run=\"a\"} 1.5");
    expect(text, "dpnode_held_out_round{run=\"a\"} 7");
}

static void heat_and_power_are_told_where_a_sensor_was_read(void **state)
{
    (void)state;
    const char *text = written("{'state':'training','version':'1','machine':{'celsius':71,"
                               "'watts':180.5,'load':1.25}}",
                               NULL);
    expect(text, "dpnode_device_temperature_celsius 71");
    expect(text, "dpnode_device_power_watts 180.5");
    expect(text, "dpnode_machine_load 1.25");
    text = written("{'state':'training','version':'1','machine':{'celsius':null,'watts':null,"
                   "'load':0.0}}",
                   NULL);
    assert_null(strstr(text, "dpnode_device_"));
    expect(text, "dpnode_machine_load 0");
}

static void the_last_round_tells_its_phases_and_all_of_them_how_they_closed(void **state)
{
    (void)state;
    const char *const text =
        written("{'state':'training','version':'1','rests':[],'run':{'name':'a','trainer':'up',"
                "'rounds_all':40,'rounds_some':2,"
                "'phases':{'round':9,'compute_ms':9000,'transfer_ms':1500,'wait_ms':20}}}",
                NULL);
    expect(text, "dpnode_round_phase_seconds{run=\"a\",phase=\"compute\"} 9");
    expect(text, "dpnode_round_phase_seconds{run=\"a\",phase=\"transfer\"} 1.5");
    expect(text, "dpnode_round_phase_seconds{run=\"a\",phase=\"wait\"} 0.02");
    expect(text, "# TYPE dpnode_rounds_decided_total counter");
    expect(text, "dpnode_rounds_decided_total{run=\"a\",members=\"all\"} 40");
    expect(text, "dpnode_rounds_decided_total{run=\"a\",members=\"some\"} 2");
    expect(text, "dpnode_rest{reason=\"heat\"} 0");
}

static void a_node_that_rests_tells_each_reason(void **state)
{
    (void)state;
    const char *const text = written("{'state':'paused','version':'1','rests':[{'reason':'pause'},"
                                     "{'reason':'heat'},{'reason':'other'}]}",
                                     NULL);
    expect(text, "dpnode_rest{reason=\"pause\"} 1");
    expect(text, "dpnode_rest{reason=\"heat\"} 1");
    expect(text, "dpnode_rest{reason=\"schedule\"} 0");
    assert_null(strstr(text, "other"));
}

static void values_have_base_units_and_a_family_has_one_head(void **state)
{
    (void)state;
    const char *const text =
        written("{'state':'training','version':'1','paused':{},'run':{'name':'a','round':7,"
                "'round_ms':1500,'tokens':123456789012,'quorum':true,'bytes_sent':10,"
                "'bytes_received':20,'trainer':'up','trainer_ms':{'computed':2500,'tell':1},"
                "'clock':{'behind_ms':250}}}",
                "{'peers':[{'short':'me','name':'me','self':true,'rtt_ms':1},"
                "{'short':'b','name':'bob','self':false,'linked':true,'rtt_ms':12.5},"
                "{'short':'c','name':null,'self':false,'linked':false}]}");
    expect(text, "dpnode_round{run=\"a\"} 7");
    expect(text, "dpnode_round_target_seconds{run=\"a\"} 1.5");
    expect(text, "dpnode_tokens_total{run=\"a\"} 123456789012");
    expect(text, "dpnode_quorum{run=\"a\"} 1");
    expect(text, "dpnode_paused_by_owner 1");
    expect(text, "dpnode_bytes_total{run=\"a\",direction=\"sent\"} 10");
    expect(text, "dpnode_bytes_total{run=\"a\",direction=\"received\"} 20");
    expect(text, "dpnode_trainer_seconds_total{run=\"a\",phase=\"computed\"} 2.5");
    expect(text, "dpnode_clock_behind_seconds 0.25");
    expect(text, "dpnode_peer_rtt_seconds{peer=\"b\",name=\"bob\"} 0.0125");
    expect(text, "dpnode_peer_linked{peer=\"c\",name=\"\"} 0");
    assert_null(strstr(text, "peer=\"me\""));
    const char *const head = strstr(text, "# TYPE dpnode_bytes_total counter");
    assert_non_null(head);
    assert_null(strstr(head + 1, "# TYPE dpnode_bytes_total"));
}

/* A second value of a family is known and the first is not: the head has its help all the same. */
static void a_family_whose_first_value_is_not_known_has_its_help(void **state)
{
    (void)state;
    const char *const text = written("{'state':'training','version':'1','run':{'name':'a',"
                                     "'download_max':5,'trainer':'up'}}",
                                     NULL);
    expect(text, "# HELP dpnode_limit_bytes_per_second The owner's limit, where one holds.");
    expect(text, "dpnode_limit_bytes_per_second{run=\"a\",direction=\"received\"} 5");
}

/* The liar has a name with quotes and a line break: it gains no line of its own. */
static void a_name_of_a_peer_cannot_write_metrics(void **state)
{
    (void)state;
    const char *const text = written(
        "{'state':'training','version':'1','run':{'name':'a','trainer':'up'}}",
        "{'peers':[{'short':'b','name':'x\\\"} 1\\ndpnode_up 0\\\\\\u00e9','linked':true}]}");
    expect(text, "dpnode_peer_linked{peer=\"b\",name=\"x\\\"} 1?dpnode_up 0\\\\??\"} 1");
    assert_null(strstr(text, "\ndpnode_up 0"));
}

static void names_that_are_too_long_are_cut(void **state)
{
    (void)state;
    char peers[512];
    char name[301];
    memset(name, '\\', 300);
    name[300] = '\0';
    snprintf(peers, sizeof peers, "{'peers':[{'short':'b','name':'%.200s','linked':true}]}", name);
    const char *const text =
        written("{'state':'training','version':'1','run':{'name':'a','trainer':'up'}}", peers);
    assert_non_null(strstr(text, "dpnode_peer_linked{peer=\"b\",name=\""));
    assert_non_null(strstr(text, "\"} 1\n"));
}

static void a_text_that_does_not_fit_is_none(void **state)
{
    (void)state;
    dp_buf out;
    json_t *const status = verb_json("{'state':'idle','version':'1'}");
    dp_buf_init(&out, 200);
    CHECK_STATUS(dp_metrics_write(&out, status, NULL), DP_TOOBIG);
    dp_buf_close(&out);
    json_decref(status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_daemon_the_node_is_down_and_nothing_else_is_told),
        cmocka_unit_test(what_is_not_known_is_left_out),
        cmocka_unit_test(the_loss_on_held_out_text_has_its_round),
        cmocka_unit_test(heat_and_power_are_told_where_a_sensor_was_read),
        cmocka_unit_test(the_last_round_tells_its_phases_and_all_of_them_how_they_closed),
        cmocka_unit_test(a_node_that_rests_tells_each_reason),
        cmocka_unit_test(values_have_base_units_and_a_family_has_one_head),
        cmocka_unit_test(a_family_whose_first_value_is_not_known_has_its_help),
        cmocka_unit_test(a_name_of_a_peer_cannot_write_metrics),
        cmocka_unit_test(names_that_are_too_long_are_cut),
        cmocka_unit_test(a_text_that_does_not_fit_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
