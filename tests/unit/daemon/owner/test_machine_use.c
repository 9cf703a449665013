/* Battery, load and input of a machine that is written into a folder; and when somebody uses it. */
#include "daemon/owner/machine_use.h"

#include <stdlib.h>
#include <sys/time.h>

#include "tests/lib/check.h"
#include "tests/lib/fake_root.h"

enum { SELF = 100, SCRIPT = 500, NOW_S = 1000000 };

static void touch(const char *name, long at_s)
{
    char path[TEMPDIR_FILE_MAX];
    const struct timeval times[2] = {{.tv_sec = at_s}, {.tv_sec = at_s}};
    put(name, "");
    assert_int_equal(utimes(tempdir_file(&fake_root, name, path), times), 0);
}

static dp_machine_use look(dp_machine_use before)
{
    dp_machine_use_look(&before, fake_root.path, SELF, SCRIPT, NOW_S);
    return before;
}

static dp_machine_power power(void)
{
    return look((dp_machine_use){.has_load = false}).power;
}

static void without_supplies_a_machine_is_on_mains(void **state)
{
    (void)state;
    assert_int_equal(power(), DP_MACHINE_POWER_MAINS); /* no such folder */
    folder("sys/class/power_supply");
    assert_int_equal(power(), DP_MACHINE_POWER_MAINS);
    folder("sys/class/power_supply/mouse");
    put("sys/class/power_supply/mouse/type", "Battery\n");
    put("sys/class/power_supply/mouse/scope", "Device\n");
    put("sys/class/power_supply/mouse/status", "Discharging\n");
    assert_int_equal(power(), DP_MACHINE_POWER_MAINS);
}

static void a_laptop_is_on_battery_when_no_supply_is_online(void **state)
{
    (void)state;
    folder("sys/class/power_supply/BAT0");
    put("sys/class/power_supply/BAT0/type", "Battery\n");
    put("sys/class/power_supply/BAT0/status", "Discharging\n");
    assert_int_equal(power(), DP_MACHINE_POWER_BATTERY);
    put("sys/class/power_supply/BAT0/status", "Full\n");
    assert_int_equal(power(), DP_MACHINE_POWER_MAINS);
    folder("sys/class/power_supply/AC");
    put("sys/class/power_supply/AC/type", "Mains\n");
    put("sys/class/power_supply/AC/online", "0\n");
    assert_int_equal(power(), DP_MACHINE_POWER_BATTERY);
    folder("sys/class/power_supply/ucsi");
    put("sys/class/power_supply/ucsi/type", "USB_PD\n");
    put("sys/class/power_supply/ucsi/online", "1\n");
    assert_int_equal(power(), DP_MACHINE_POWER_MAINS);
}

static void a_supply_that_says_nonsense_is_not_believed(void **state)
{
    (void)state;
    folder("sys/class/power_supply/AC");
    assert_int_equal(power(), DP_MACHINE_POWER_UNKNOWN);
    put("sys/class/power_supply/AC/type", "Mains\n");
    assert_int_equal(power(), DP_MACHINE_POWER_UNKNOWN);
    put("sys/class/power_supply/AC/online", "maybe\n");
    assert_int_equal(power(), DP_MACHINE_POWER_UNKNOWN);
    put("sys/class/power_supply/AC/online", "");
    assert_int_equal(power(), DP_MACHINE_POWER_UNKNOWN);
    put("sys/class/power_supply/AC/online", "0\n");
    assert_int_equal(power(), DP_MACHINE_POWER_MAINS); /* There is no battery. */
}

static void a_free_usb_c_port_does_not_mean_battery(void **state)
{
    (void)state;
    folder("sys/class/power_supply/ucsi");
    put("sys/class/power_supply/ucsi/type", "USB\n");
    put("sys/class/power_supply/ucsi/online", "0\n");
    assert_int_equal(power(), DP_MACHINE_POWER_MAINS);
    folder("sys/class/power_supply/BAT0");
    put("sys/class/power_supply/BAT0/type", "Battery\n");
    put("sys/class/power_supply/BAT0/status", "Not charging\n");
    assert_int_equal(power(), DP_MACHINE_POWER_BATTERY);
}

/* ended: ticks of children that have ended. */
static void put_parent(unsigned pid, unsigned parent, unsigned long long ticks,
                       unsigned long long ended)
{
    char name[64];
    char text[256];
    snprintf(name, sizeof name, "proc/%u", pid);
    if (ticks == 0) {
        folder(name);
    }
    snprintf(name, sizeof name, "proc/%u/stat", pid);
    snprintf(text, sizeof text,
             "%u (a (b) c) S %u 1 1 0 -1 4194560 1 2 3 4 %llu 0 %llu 0 20 0 1 0 5\n", pid, parent,
             ticks, ended);
    put(name, text);
}

static void put_process(unsigned pid, unsigned parent, unsigned long long ticks)
{
    put_parent(pid, parent, ticks, 0);
}

static void work_of_others_is_what_is_not_of_this_daemon_and_its_children(void **state)
{
    dp_machine_use use = {.has_load = false};
    (void)state;
    folder("proc/1");
    put("proc/stat", "cpu  1000 200 100 8000 50 10 5 7 0 0\ncpu0 1 2 3 4\n");
    put_process(SELF, 1, 0);
    put_process(200, SELF, 0);
    put_process(300, 200, 0);
    put_process(400, 1, 0);
    use = look(use);
    assert_false(use.has_load);
    put("proc/stat", "cpu  1300 600 100 8300 50 10 5 7 0 0\n"); /* 700 of 1000 ticks */
    put_process(SELF, 1, 50);
    put_process(300, 200, 400);
    put_process(400, 1, 250);
    use = look(use);
    assert_true(use.has_load);
    assert_int_equal(use.others_milli, 250);
    use = look(use); /* No time has passed. */
    assert_false(use.has_load);
    put("proc/stat", "cpu  x\n");
    assert_false(look(use).has_load);
    put("proc/stat", "cpu  1 2 3 4\n"); /* less than before: another boot */
    assert_false(look(use).has_load);
}

static void work_of_the_nodes_script_is_not_of_others(void **state)
{
    (void)state;
    folder("proc/1");
    put("proc/stat", "cpu  1000 0 0 8000 0 0 0 0 0 0\n");
    put_process(SELF, 1, 0);
    put_process(SCRIPT, 1, 0);
    put_process(501, SCRIPT, 0);
    const dp_machine_use use = look((dp_machine_use){.has_load = false});
    put("proc/stat", "cpu  1700 0 0 8300 0 0 0 0 0 0\n");
    put_process(SCRIPT, 1, 600);
    put_process(501, SCRIPT, 100);
    assert_int_equal(look(use).others_milli, 0);
}

static void work_of_a_trainer_that_has_ended_is_not_of_others(void **state)
{
    (void)state;
    folder("proc/1");
    put("proc/stat", "cpu  1000 0 0 8000 0 0 0 0 0 0\n");
    put_process(SELF, 1, 0);
    put_process(200, SELF, 0);
    put_process(200, SELF, 5000);
    const dp_machine_use use = look((dp_machine_use){.has_load = false});
    put("proc/stat", "cpu  1700 0 0 8300 0 0 0 0 0 0\n");
    put_process(200, 1, 1); /* Its number is another's. */
    put_parent(SELF, 1, 1, 5699);
    assert_int_equal(look(use).others_milli, 0);
}

static void the_newest_input_counts_of_terminals_and_the_keyboard(void **state)
{
    dp_machine_use use = {.has_load = false};
    (void)state;
    assert_false(look(use).has_input);
    folder("dev/pts");
    touch("dev/tty", NOW_S); /* of the process that looks */
    touch("dev/tty0", NOW_S);
    touch("dev/tty1", NOW_S - 900);
    touch("dev/pts/ptmx", NOW_S);
    touch("dev/pts/3", NOW_S - 60);
    use = look(use);
    assert_true(use.has_input && use.input_s == 60);
    touch("dev/pts/3", NOW_S + 60); /* The clock was set back. */
    assert_int_equal(look(use).input_s, 0);
    touch("dev/pts/3", NOW_S - 7000);
    folder("proc");
    put("proc/interrupts", "   CPU0 CPU1\n  1:  9  0  IO-APIC  1-edge  i8042\n"
                           " 12:  4  2  IO-APIC  12-edge  i8042\n 16: 1 1 ehci\n");
    use = look(use);
    assert_int_equal(use.input_s, 900);
    put("proc/interrupts", "   CPU0 CPU1\n  1:  9  1  IO-APIC  1-edge  i8042\n"
                           " 12:  4  2  IO-APIC  12-edge  i8042\n 16: 8 1 ehci\n");
    use = look(use);
    assert_int_equal(use.input_s, 0);
}

static void a_machine_is_in_use_by_input_or_load_until_it_is_calm(void **state)
{
    dp_machine_busy busy = {.input = false};
    dp_machine_use use = {.has_load = true, .others_milli = 250, .has_input = true, .input_s = 179};
    (void)state;
    dp_machine_busy_pass(&busy, &use, 100);
    assert_true(busy.input && !busy.load);
    use.input_s = 180;
    dp_machine_busy_pass(&busy, &use, 101);
    assert_true(!busy.input && !busy.load);
    use.others_milli = 251;
    dp_machine_busy_pass(&busy, &use, 200);
    assert_true(busy.load);
    use.others_milli = 125;
    dp_machine_busy_pass(&busy, &use, 300);
    assert_true(busy.load);
    use.others_milli = 124;
    dp_machine_busy_pass(&busy, &use, 359);
    assert_true(busy.load);
    dp_machine_busy_pass(&busy, &use, 360);
    assert_false(busy.load);
    use = (dp_machine_use){.has_load = false};
    dp_machine_busy_pass(&busy, &use, 361);
    assert_true(!busy.load && !busy.input);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_root(without_supplies_a_machine_is_on_mains),
        in_root(a_laptop_is_on_battery_when_no_supply_is_online),
        in_root(a_supply_that_says_nonsense_is_not_believed),
        in_root(a_free_usb_c_port_does_not_mean_battery),
        in_root(work_of_the_nodes_script_is_not_of_others),
        in_root(work_of_a_trainer_that_has_ended_is_not_of_others),
        in_root(work_of_others_is_what_is_not_of_this_daemon_and_its_children),
        in_root(the_newest_input_counts_of_terminals_and_the_keyboard),
        cmocka_unit_test(a_machine_is_in_use_by_input_or_load_until_it_is_calm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
