#include "bench/defence_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const defence_row *find(const defence_row *rows, size_t n_rows, const char *group,
                               const char *kind, defence_rule rule)
{
    for (size_t i = 0; i < n_rows; i++) {
        if (strcmp(rows[i].group, group) == 0 && strcmp(rows[i].kind, kind) == 0 &&
            rows[i].c.rule == rule) {
            return &rows[i];
        }
    }
    return NULL;
}

/* Means over the seeds. */
static defence_result mean_of(const defence_row *row)
{
    defence_result sum = row->results[0];
    for (uint32_t i = 1; i < row->n; i++) {
        const defence_result *const r = &row->results[i];
        sum.quality.loss += r->quality.loss;
        sum.quality.cpu_s += r->quality.cpu_s;
        sum.honest_seen += r->honest_seen;
        sum.honest_rejected += r->honest_rejected;
        sum.hostile_seen += r->hostile_seen;
        sum.hostile_rejected += r->hostile_rejected;
        sum.hostile_out += r->hostile_out;
        sum.honest_out += r->honest_out;
        sum.last_out = fmax(sum.last_out, r->last_out);
        sum.size += r->size;
        sum.rule_s += r->rule_s;
    }
    sum.quality.loss /= row->n;
    sum.size /= row->n;
    return sum;
}

static double percent(double part, double all)
{
    return all > 0 ? 100 * part / all : 0;
}

static double loss_of(const defence_row *row)
{
    return row != NULL ? mean_of(row).quality.loss : NAN;
}

/* Loss above the base, and the shares of hostile and honest updates that were left out. */
static void print_cell(const defence_row *row, double base)
{
    if (row == NULL) {
        printf(" |");
        return;
    }
    const defence_result r = mean_of(row);
    printf(" %+.3f", r.quality.loss - base);
    if (r.hostile_rejected > 0 || r.honest_rejected > 0) {
        printf(" (%.0f, %.1f)", percent(r.hostile_rejected, r.hostile_seen),
               percent(r.honest_rejected, r.honest_seen));
    }
    if (r.hostile_out > 0 || r.honest_out > 0) {
        printf(" [%.0f, %.0f out by %.0f]", r.hostile_out, r.honest_out, r.last_out);
    }
    printf(" |");
}

static bool is_new(const defence_row *rows, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (strcmp(rows[k].group, rows[i].group) == 0 && strcmp(rows[k].kind, rows[i].kind) == 0) {
            return false;
        }
    }
    return true;
}

static void print_costs(const defence_row *rows, size_t n_rows, const char *group)
{
    printf("| CPU of the rule, %% of the run |");
    for (defence_rule rule = 0; rule < DEFENCE_ORACLE; rule++) {
        const defence_row *const row = find(rows, n_rows, group, "alike", rule);
        if (row == NULL) {
            printf(" |");
        } else {
            const defence_result r = mean_of(row);
            printf(" %.1f |", percent(r.rule_s, r.quality.cpu_s));
        }
    }
    printf("\n");
}

static void print_table(const defence_row *rows, size_t n_rows, const char *group)
{
    const double alone = loss_of(find(rows, n_rows, group, "alone", DEFENCE_ORACLE));
    const double all = loss_of(find(rows, n_rows, group, "alike", DEFENCE_CLIP));
    printf("\n%s: loss %.4f of the honest workers alone, %.4f of all workers if they are honest. "
           "Runs with attackers: loss above "
           "the first; without: above that of clip. In brackets: %% of hostile updates left out, "
           "%% of honest ones.\n\n| |",
           group, alone, all);
    for (defence_rule rule = 0; rule < DEFENCE_ORACLE; rule++) {
        printf(" %s |", defence_rule_name(rule));
    }
    printf("\n| --- |");
    for (defence_rule rule = 0; rule < DEFENCE_ORACLE; rule++) {
        printf(" --- |");
    }
    printf("\n");
    for (size_t i = 0; i < n_rows; i++) {
        if (strcmp(rows[i].group, group) != 0 || !is_new(rows, i) ||
            rows[i].c.rule == DEFENCE_ORACLE) {
            continue;
        }
        const bool hostile = rows[i].c.hostile > 0;
        const double base =
            hostile ? alone : loss_of(find(rows, n_rows, group, rows[i].kind, DEFENCE_CLIP));
        printf("| %s |", rows[i].kind);
        for (defence_rule rule = 0; rule < DEFENCE_ORACLE; rule++) {
            print_cell(find(rows, n_rows, group, rows[i].kind, rule), base);
        }
        printf("\n");
    }
    print_costs(rows, n_rows, group);
}

static void print_json(const defence_row *row)
{
    const defence_result r = mean_of(row);
    printf(
        "{\"case\":\"%s\",\"seeds\":%u,\"loss\":%.5f,\"honest\":%.0f,\"honest_rejected\":%.0f,"
        "\"hostile\":%.0f,\"hostile_rejected\":%.0f,\"size\":%.3f,\"rule_s\":%.3f,\"cpu_s\":%.2f,"
        "\"tests\":%.0f}\n",
        row->name, row->n, r.quality.loss, r.honest_seen, r.honest_rejected, r.hostile_seen,
        r.hostile_rejected, r.size, r.rule_s, r.quality.cpu_s, r.tests);
}

void defence_report(const defence_row *rows, size_t n_rows, const char *group, bool json)
{
    bool any = false;
    for (size_t i = 0; i < n_rows; i++) {
        const bool here = strcmp(rows[i].group, group) == 0;
        any = any || here;
        if (here && json) {
            print_json(&rows[i]);
        }
    }
    if (any && !json) {
        print_table(rows, n_rows, group);
    }
}
