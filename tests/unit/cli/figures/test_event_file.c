/* Event files, taken apart byte by byte by a reader of its own; tests/interop/test_tensorboard.py
 * opens some in TensorBoard. */
#include "cli/figures/event_file.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/lib/check.h"

enum { FILE_MAX = 1 << 20, FIELDS_MAX = 16 };

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/dpnode-events-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    char command[96];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command); /* NOLINT(cert-env33-c): the path is mkdtemp's */
}

/* ---- a reader ---- */

static uint64_t number(const uint8_t *at, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = bytes; i > 0; i--) {
        value = value << 8 | at[i - 1];
    }
    return value;
}

/* One field of a message: its bytes, or its number. */
typedef struct field {
    unsigned number;
    unsigned type;
    uint64_t value;
    dp_view bytes;
} field;

typedef struct message {
    size_t count;
    field fields[FIELDS_MAX];
} message;

static uint64_t varint(dp_view *rest)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        CHECK(rest->size > 0 && shift < 64);
        const uint8_t byte = rest->data[0];
        *rest = dp_view_of(rest->data + 1, rest->size - 1);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            return value;
        }
    }
}

static message parse(dp_view rest)
{
    message m = {.count = 0};
    while (rest.size > 0) {
        CHECK(m.count < FIELDS_MAX);
        field *const f = &m.fields[m.count++];
        const uint64_t key = varint(&rest);
        *f = (field){.number = (unsigned)(key >> 3), .type = (unsigned)(key & 7)};
        uint64_t size = f->type == 1 ? 8 : f->type == 5 ? 4 : 0;
        if (f->type == 0) {
            f->value = varint(&rest);
            continue;
        }
        size = f->type == 2 ? varint(&rest) : size;
        CHECK(size > 0 || f->type == 2);
        CHECK(size <= rest.size);
        f->bytes = dp_view_of(rest.data, (size_t)size);
        f->value = size <= 8 ? number(rest.data, (unsigned)size) : 0;
        rest = dp_view_of(rest.data + size, rest.size - (size_t)size);
    }
    return m;
}

/* The first field with this number; each test asks for ones that are there. */
static field at(const message *m, unsigned wanted)
{
    for (size_t i = 0; i < m->count; i++) {
        if (m->fields[i].number == wanted) {
            return m->fields[i];
        }
    }
    fail_msg("there is no field %u", wanted);
    return (field){0};
}

static double real(field f)
{
    double value;
    float single;
    const uint32_t low = (uint32_t)f.value;
    memcpy(&value, &f.value, sizeof value);
    memcpy(&single, &low, sizeof single);
    return f.type == 1 ? value : (double)single;
}

/* The next frame of a file, with its sums checked. False: the end. */
static bool next(dp_view *rest, message *event)
{
    if (rest->size == 0) {
        return false;
    }
    CHECK(rest->size > 16);
    const uint64_t size = number(rest->data, 8);
    CHECK(size <= rest->size - 16);
    CHECK(number(rest->data + 8, 4) == dp_event_file_sum(dp_view_of(rest->data, 8)));
    const dp_view data = dp_view_of(rest->data + 12, (size_t)size);
    CHECK(number(data.data + size, 4) == dp_event_file_sum(data));
    *event = parse(data);
    *rest = dp_view_of(data.data + size + 4, rest->size - 16 - (size_t)size);
    return true;
}

static dp_view content(const dp_event_file *file)
{
    static uint8_t bytes[FILE_MAX];
    FILE *const stream = fopen(file->file.path, "re");
    CHECK(stream != NULL);
    const size_t size = fread(bytes, 1, sizeof bytes, stream);
    CHECK(size < sizeof bytes && fclose(stream) == 0);
    return dp_view_of(bytes, size);
}

static dp_event_file opened(uint64_t first_step)
{
    dp_event_file file;
    dp_why why;
    CHECK_OK(dp_event_file_open(&file, folder, 1700000000123, first_step, &why));
    return file;
}

/* ---- tests ---- */

/* RFC 3720, B.4, before the mask: 32 bytes of zeros, of ones, and ascending. */
static void sums_are_those_of_the_standard(void **state)
{
    (void)state;
    static const uint32_t sums[] = {0x8a9136aaU, 0x62a8ab43U, 0x46dd794eU};
    uint8_t bytes[32];
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned j = 0; j < sizeof bytes; j++) {
            bytes[j] = (uint8_t)(i == 0 ? 0 : i == 1 ? 0xff : j);
        }
        const uint32_t masked = (sums[i] >> 15 | sums[i] << 17) + 0xa282ead8U;
        assert_int_equal(dp_event_file_sum(dp_view_of(bytes, sizeof bytes)), masked);
    }
}

static void a_file_begins_with_its_version_and_its_first_step(void **state)
{
    (void)state;
    dp_event_file file = opened(40);
    const dp_event_scalar loss = {"train/loss", 2.5};
    dp_why why;
    message event;
    CHECK_OK(dp_event_file_scalars(&file, 1700000001500, 41, &loss, 1, &why));
    dp_event_file_close(&file);
    dp_view rest = content(&file);
    CHECK(next(&rest, &event));
    CHECK(dp_view_equal(at(&event, 3).bytes, dp_view_text("brain.Event:2")));
    CHECK(next(&rest, &event));
    CHECK(at(&event, 2).value == 40);
    const message log = parse(at(&event, 7).bytes);
    CHECK(at(&log, 1).value == 1);
    CHECK(next(&rest, &event));
    CHECK(real(at(&event, 1)) == 1700000001.5 && at(&event, 2).value == 41);
    const message summary = parse(at(&event, 5).bytes);
    const message value = parse(at(&summary, 1).bytes);
    CHECK(dp_view_equal(at(&value, 1).bytes, dp_view_text("train/loss")));
    CHECK(at(&value, 2).type == 5 && real(at(&value, 2)) == 2.5);
    CHECK(!next(&rest, &event));
}

static void a_step_is_one_record_and_numbers_that_are_none_are_left_out(void **state)
{
    (void)state;
    dp_event_file file = opened(0);
    const dp_event_scalar scalars[] = {{"a", 1}, {"b", NAN}, {"c", -2}, {"d", INFINITY}};
    dp_why why;
    message event;
    CHECK_OK(dp_event_file_scalars(&file, 1, 1ULL << 40, scalars, 4, &why));
    CHECK_OK(dp_event_file_scalars(&file, 1, 2, scalars + 1, 1, &why)); /* nothing to say */
    dp_event_file_close(&file);
    dp_view rest = content(&file);
    CHECK(next(&rest, &event) && next(&rest, &event) && next(&rest, &event));
    CHECK(at(&event, 2).value == 1ULL << 40);
    const message summary = parse(at(&event, 5).bytes);
    CHECK(summary.count == 2);
    const message second = parse(summary.fields[1].bytes);
    CHECK(dp_view_equal(at(&second, 1).bytes, dp_view_text("c")) && real(at(&second, 2)) == -2);
    CHECK(!next(&rest, &event));
}

static void a_text_is_a_tensor_of_a_string(void **state)
{
    (void)state;
    static char longest[2 * DP_EVENT_FILE_TEXT_MAX];
    dp_event_file file = opened(0);
    dp_why why;
    message event;
    memset(longest, 'x', sizeof longest - 1);
    memcpy(longest + DP_EVENT_FILE_TEXT_MAX - 1, "\xc3\xbc", 2); /* across the end */
    CHECK_OK(dp_event_file_text(&file, 1, 7, "text", "In the \xc3\xbc", &why));
    CHECK_OK(dp_event_file_text(&file, 1, 8, "text", longest, &why));
    dp_event_file_close(&file);
    dp_view rest = content(&file);
    CHECK(next(&rest, &event) && next(&rest, &event) && next(&rest, &event));
    message summary = parse(at(&event, 5).bytes);
    message value = parse(at(&summary, 1).bytes);
    message tensor = parse(at(&value, 8).bytes);
    CHECK(at(&tensor, 1).value == 7 && at(&tensor, 2).bytes.size == 0);
    CHECK(dp_view_equal(at(&tensor, 8).bytes, dp_view_text("In the \xc3\xbc")));
    const message metadata = parse(at(&value, 9).bytes);
    const message plugin = parse(at(&metadata, 1).bytes);
    CHECK(dp_view_equal(at(&plugin, 1).bytes, dp_view_text("text")));
    CHECK(next(&rest, &event));
    summary = parse(at(&event, 5).bytes);
    value = parse(at(&summary, 1).bytes);
    tensor = parse(at(&value, 8).bytes);
    CHECK(at(&tensor, 8).bytes.size == DP_EVENT_FILE_TEXT_MAX - 1); /* No half character. */
}

static void a_folder_gets_one_more_file_each_time_and_is_made_with_its_parents(void **state)
{
    (void)state;
    char deep[128];
    dp_event_file files[2];
    const dp_event_scalar loss = {"loss", 1};
    dp_why why;
    size_t count = 0;
    snprintf(deep, sizeof deep, "%s/runs/of/mine", folder);
    for (size_t i = 0; i < 2; i++) {
        CHECK_OK(dp_event_file_open(&files[i], deep, 1700000000000, 0, &why));
        CHECK_OK(dp_event_file_scalars(&files[i], 1, 1, &loss, 1, &why));
        dp_event_file_close(&files[i]);
    }
    DIR *const dir = opendir(deep);
    CHECK(dir != NULL);
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        count += strncmp(entry->d_name, "events.out.tfevents.1700000000.", 31) == 0;
    }
    closedir(dir);
    CHECK(count == 2);
    CHECK(dp_event_file_open(&files[0], "/dev/null/x", 1, 0, &why) == DP_IO);
    CHECK(strstr(why.text, "/dev/null") != NULL);
    CHECK(dp_event_file_open(&files[0], "", 1, 0, &why) == DP_BADARG);
}

/* The version comes first, whenever the first record fits. */
static void a_record_that_was_not_written_leaves_no_hole_at_the_front(void **state)
{
    (void)state;
    char deep[128];
    char gone[160];
    dp_event_file file;
    const dp_event_scalar loss = {"loss", 1};
    dp_why why;
    message event;
    snprintf(deep, sizeof deep, "%s/away", folder);
    snprintf(gone, sizeof gone, "%s/gone", folder);
    CHECK_OK(dp_event_file_open(&file, deep, 1, 0, &why));
    CHECK(rename(deep, gone) == 0);
    CHECK_STATUS(dp_event_file_scalars(&file, 1, 1, &loss, 1, &why), DP_IO);
    CHECK(why.text[0] != '\0');
    CHECK_STATUS(dp_event_file_scalars(&file, 1, 2, &loss, 1, &why), DP_IO);
    CHECK(why.text[0] == '\0');
    CHECK(rename(gone, deep) == 0);
    CHECK_OK(dp_event_file_scalars(&file, 1, 3, &loss, 1, &why));
    dp_event_file_close(&file);
    dp_view rest = content(&file);
    CHECK(next(&rest, &event) && at(&event, 3).bytes.size > 0);
    CHECK(next(&rest, &event) && next(&rest, &event) && at(&event, 2).value == 3);
    CHECK(!next(&rest, &event));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_those_of_the_standard),
        cmocka_unit_test(a_file_begins_with_its_version_and_its_first_step),
        cmocka_unit_test(a_step_is_one_record_and_numbers_that_are_none_are_left_out),
        cmocka_unit_test(a_text_is_a_tensor_of_a_string),
        cmocka_unit_test(a_folder_gets_one_more_file_each_time_and_is_made_with_its_parents),
        cmocka_unit_test(a_record_that_was_not_written_leaves_no_hole_at_the_front),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
