/* The advertised addresses: from settings, from the variables of clouds (in an environment made by
 * the test), from interfaces. */
#include <arpa/inet.h>
#include <string.h>

#include "daemon/host/advertise.h"
#include "tests/lib/check.h"

static void up_to_four_addresses_and_names_are_told(void **state)
{
    dp_address told[DP_ADDRS_MAX];
    uint32_t n = 7;
    (void)state;
    CHECK_OK(dp_advertise_parse("", told, &n, NULL));
    assert_int_equal(n, 0);
    CHECK_OK(dp_advertise_parse("node.example:7717, 192.0.2.1:7717,[2001:db8::1]:1 x:2", told, &n,
                                NULL));
    assert_int_equal(n, 4);
    CHECK(told[0].kind == DP_ADDRESS_DNS && told[1].kind == DP_ADDRESS_IP4 &&
          told[2].kind == DP_ADDRESS_IP6 && told[3].port == 2);
    assert_string_equal(told[0].name, "node.example");
}

static void an_invalid_address_is_named_and_five_are_too_many(void **state)
{
    static const char *const bad[] = {"node.example", "1.2.3.4:0", "a:1,b", "a:1,,b:70000",
                                      "a:1 b:2 c:3 d:4 e:5"};
    dp_address told[DP_ADDRS_MAX];
    uint32_t n = 7;
    char text[DP_ADDRESS_NAME_MAX + 8];
    dp_why why;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_STATUS(dp_advertise_parse(bad[i], told, &n, &why), DP_BADARG);
        assert_non_null(strstr(why.text, "advertise: "));
        assert_int_equal(n, 7);
    }
    memset(text, 'a', sizeof text);
    memcpy(text + DP_ADDRESS_NAME_MAX, ":1", 3);
    CHECK_OK(dp_advertise_parse(text, told, &n, &why));
    memcpy(text + DP_ADDRESS_NAME_MAX, "a:1", 4);
    CHECK_STATUS(dp_advertise_parse(text, told, &n, &why), DP_BADARG);
    char *long_one = text; /* longer than any address: still a sentence */
    memset(long_one, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    CHECK_STATUS(dp_advertise_parse(text, told, &n, &why), DP_BADARG);
}

/* "inner > address", or "none". */
static const char *found(char *const *environment, uint16_t wanted, bool only_wanted)
{
    static char text[DP_ADDRESS_TEXT_MAX + 16];
    char outer[DP_ADDRESS_TEXT_MAX];
    dp_cloud_port port;
    if (!dp_cloud_port_find(environment, wanted, only_wanted, &port)) {
        return "none";
    }
    dp_address_text(&port.outer, outer);
    snprintf(text, sizeof text, "%u > %s", port.inner, outer);
    return text;
}

#define ENV(...) ((char *[]){__VA_ARGS__, NULL})

static void a_cloud_that_maps_one_odd_port_is_understood(void **state)
{
    (void)state;
    assert_string_equal(found(ENV("PUBLIC_IPADDR=192.0.2.7", "VAST_TCP_PORT_22=40001",
                                  "VAST_TCP_PORT_7717=40002", "VAST_TCP_PORT_8000=40003"),
                              7717, false),
                        "7717 > 192.0.2.7:40002");
    assert_string_equal(
        found(ENV("VAST_TCP_PORT_22=40001", "VAST_TCP_PORT_8000=40003", "PUBLIC_IPADDR=192.0.2.7"),
              7717, false),
        "8000 > 192.0.2.7:40003");
    assert_string_equal(found(ENV("RUNPOD_PUBLIC_IP=192.0.2.8", "RUNPOD_TCP_PORT_22=10341",
                                  "RUNPOD_TCP_PORT_70001=10777", "RUNPOD_TCP_PORT_70000=10342"),
                              7717, false),
                        "10342 > 192.0.2.8:10342");
    assert_string_equal(
        found(ENV("RUNPOD_PUBLIC_IP=2001:db8::8", "RUNPOD_TCP_PORT_7717=10341"), 7717, false),
        "7717 > [2001:db8::8]:10341");
}

static void missing_variables_of_a_cloud_are_not_guessed(void **state)
{
    (void)state;
    assert_string_equal(found(ENV("PATH=/bin", "VAST_TCP_PORT_7717=40002"), 7717, false), "none");
    assert_string_equal(found(ENV("PUBLIC_IPADDR=", "VAST_TCP_PORT_7717=40002"), 7717, false),
                        "none");
    assert_string_equal(
        found(ENV("PUBLIC_IPADDR=192.0.2.7", "RUNPOD_TCP_PORT_7717=2"), 7717, false), "none");
    assert_string_equal(
        found(ENV("PUBLIC_IPADDR=192.0.2.7", "VAST_TCP_PORT_22=40001"), 7717, false), "none");
    assert_string_equal(found(ENV("PUBLIC_IPADDR=192.0.2.7", "VAST_TCP_PORT_8080=40001",
                                  "VAST_TCP_PORT_8081=40002"),
                              7717, false),
                        "none");
    assert_string_equal(
        found(ENV("PUBLIC_IPADDR=192.0.2.7", "VAST_TCP_PORT_8080=40001"), 7717, true),
        "none"); /* The port is set. */
    static char *const broken[] = {"VAST_TCP_PORT_7717=0",     "VAST_TCP_PORT_7717=65536",
                                   "VAST_TCP_PORT_7717=x",     "VAST_TCP_PORT_7717=1x",
                                   "VAST_TCP_PORT_=1",         "VAST_TCP_PORT_7717",
                                   "VAST_TCP_PORT_7717x=1",    "VAST_TCP_PORT_0=1",
                                   "VAST_TCP_PORT_7717=-1",    "VAST_TCP_PORT_7717=99999999999999",
                                   "VAST_TCP_PORT_99999999=1", "VAST_TCP_PORT_7717="};
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        assert_string_equal(found(ENV("PUBLIC_IPADDR=192.0.2.7", broken[i]), 7717, false), "none");
    }
}

static uv_interface_address_t interface_of(const char *ip)
{
    uv_interface_address_t made = {.name = NULL};
    if (strchr(ip, ':') != NULL) {
        made.address.address6.sin6_family = AF_INET6;
        assert_int_equal(inet_pton(AF_INET6, ip, &made.address.address6.sin6_addr), 1);
    } else {
        made.address.address4.sin_family = AF_INET;
        assert_int_equal(inet_pton(AF_INET, ip, &made.address.address4.sin_addr), 1);
    }
    made.is_internal = strcmp(ip, "127.0.0.1") == 0 || strcmp(ip, "::1") == 0;
    return made;
}

/* The addresses told of interfaces with these, with spaces between. */
static const char *told_of(const char *const *ips, int count, bool with_v6)
{
    static char text[DP_ADDRS_MAX * DP_ADDRESS_TEXT_MAX];
    uv_interface_address_t list[8];
    dp_address addresses[DP_ADDRS_MAX];
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        list[i] = interface_of(ips[i]);
    }
    const uint32_t n = dp_advertise_interfaces(list, count, 9, with_v6, addresses);
    text[0] = '\0';
    for (uint32_t i = 0; i < n; i++) {
        char one[DP_ADDRESS_TEXT_MAX];
        dp_address_text(&addresses[i], one);
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", i > 0 ? " " : "", one);
    }
    return text;
}

static void interfaces_of_both_families_are_told_and_loopback_last(void **state)
{
    static const char *const ips[] = {"127.0.0.1", "10.0.0.1", "::1",        "fe80::1",
                                      "10.0.0.2",  "10.0.0.3", "2001:db8::1"};
    (void)state;
    assert_string_equal(told_of(ips, 7, true), "10.0.0.1:9 [2001:db8::1]:9 10.0.0.2:9 127.0.0.1:9");
    assert_string_equal(told_of(ips, 7, false), "10.0.0.1:9 10.0.0.2:9 10.0.0.3:9 127.0.0.1:9");
    assert_string_equal(told_of(&ips[6], 1, true), "[2001:db8::1]:9");
    assert_string_equal(told_of(ips, 0, true), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(up_to_four_addresses_and_names_are_told),
        cmocka_unit_test(an_invalid_address_is_named_and_five_are_too_many),
        cmocka_unit_test(a_cloud_that_maps_one_odd_port_is_understood),
        cmocka_unit_test(missing_variables_of_a_cloud_are_not_guessed),
        cmocka_unit_test(interfaces_of_both_families_are_told_and_loopback_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
