/* Addresses as bytes: each kind is read back; a truncated one, or one without name or port, or of
 * an unknown kind, is refused. */
#include "tests/lib/check.h"

#include "gossip/core/address.h"

static const dp_address of_kind[] = {
    {.kind = DP_ADDRESS_IP4, .port = 1, .ip = {192, 0, 2, 1}},
    {.kind = DP_ADDRESS_IP6, .port = 65535, .ip = {0x20, 1, 0xd, 0xb8, [15] = 1}},
    {.kind = DP_ADDRESS_DNS, .port = 7000, .name = "node-1.example.org"},
};
enum { KINDS = sizeof of_kind / sizeof of_kind[0] };

static dp_status read_bytes(const uint8_t *bytes, size_t size, dp_address *address)
{
    dp_reader reader = dp_reader_of(dp_view_of(bytes, size));

    DP_TRY(dp_address_read(&reader, address));
    return dp_reader_finish(&reader);
}

static void every_kind_comes_back_and_no_cut_of_it(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < KINDS; i++) {
        uint8_t bytes[DP_ADDRESS_BYTES_MAX];
        dp_writer writer = dp_writer_of(bytes, sizeof bytes);
        dp_address read;
        dp_address_write(&writer, &of_kind[i]);
        assert_false(writer.full);
        CHECK_OK(read_bytes(bytes, writer.size, &read));
        assert_true(dp_address_equal(&read, &of_kind[i]));
        for (size_t size = 0; size < writer.size; size++) {
            CHECK_STATUS(read_bytes(bytes, size, &read), DP_BADMSG);
        }
    }
}

static void an_invalid_address_is_refused_and_changes_nothing(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
    } wrong[] = {
        {"\x04\xc0\x00\x02\x01\x00\x00", 7}, /* port 0 */
        {"\x00\xc0\x00\x02\x01\x00\x01", 7}, /* kind 0 */
        {"\x05\xc0\x00\x02\x01\x00\x01", 7}, /* a kind that nobody knows */
        {"\x01\x00\x01\x00", 4},             /* a name without letters */
        {"\x01\x03"
         "a b\x01\x00",
         7},                       /* one with a blank */
        {"\x01\x02-a\x01\x00", 6}, /* one that begins with a hyphen */
        {"\x01\x07"
         "1.2.3.4\x01\x00",
         11}, /* a number as a name */
    };
    dp_address address = of_kind[0];

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_STATUS(read_bytes((const uint8_t *)wrong[i].bytes, wrong[i].size, &address),
                     DP_BADMSG);
    }
    assert_true(dp_address_equal(&address, &of_kind[0]));
}

static void addresses_differ_by_kind_port_number_and_name(void **state)
{
    dp_address other = of_kind[0];
    char text[DP_ADDRESS_TEXT_MAX];

    (void)state;
    other.port++;
    assert_false(dp_address_equal(&other, &of_kind[0]));
    other = of_kind[0];
    other.ip[3]++;
    assert_false(dp_address_equal(&other, &of_kind[0]));
    other = of_kind[0];
    other.kind = DP_ADDRESS_IP6;
    assert_false(dp_address_equal(&other, &of_kind[0]));
    other = of_kind[2];
    other.name[0] = 'N';
    assert_false(dp_address_equal(&other, &of_kind[2]));
    dp_address_text(&(dp_address){.kind = DP_ADDRESS_NONE}, text);
    assert_string_equal(text, "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_comes_back_and_no_cut_of_it),
        cmocka_unit_test(an_invalid_address_is_refused_and_changes_nothing),
        cmocka_unit_test(addresses_differ_by_kind_port_number_and_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
