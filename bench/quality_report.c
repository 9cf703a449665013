#include "bench/quality_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

double quality_loss(const quality_row *row)
{
    double sum = 0;
    for (uint32_t i = 0; i < row->n; i++) {
        sum += row->results[i].loss;
    }
    return sum / row->n;
}

void quality_loss_range(const quality_row *row, double *least, double *most)
{
    *least = row->results[0].loss;
    *most = *least;
    for (uint32_t i = 1; i < row->n; i++) {
        *least = fmin(*least, row->results[i].loss);
        *most = fmax(*most, row->results[i].loss);
    }
}

static const quality_row *find(const quality_row *rows, size_t n_rows, const char *name)
{
    for (size_t i = 0; i < n_rows; i++) {
        if (strcmp(rows[i].plan->name, name) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

/* Losses of all seeds, and the curve of each: the bytes that one node has sent to all others, in
 * proportion to the share of one copy at that point. */
static void print_seeds(const quality_row *row)
{
    printf("\"losses\":[");
    for (uint32_t i = 0; i < row->n; i++) {
        printf("%s%.5f", i == 0 ? "" : ",", row->results[i].loss);
    }
    printf("],\"curves\":[");
    for (uint32_t i = 0; i < row->n; i++) {
        const quality_result *const one = &row->results[i];
        const double copies = one->bytes > 0 ? one->sent / one->bytes : 0;
        for (uint32_t k = 0; k < one->n_points; k++) {
            const quality_point *const point = &one->points[k];
            printf("%s{\"tokens\":%.0f,\"bytes\":%.6f,\"sent\":%.6f,\"loss\":%.5f}",
                   k > 0   ? ","
                   : i > 0 ? ",["
                           : "[",
                   point->tokens, point->bytes, point->bytes * copies, point->loss);
        }
        putchar(']');
    }
    printf("]}\n");
}

static void print_json(const quality_row *row, double gap, uint32_t inner)
{
    const quality_result *const one = &row->results[0];
    double least;
    double most;
    quality_loss_range(row, &least, &most);
    printf("{\"configuration\":\"%s\",\"seeds\":%u,\"loss\":%.4f,\"least\":%.4f,\"most\":%.4f,"
           "\"gap_to_ddp\":%.4f,\"bytes_per_param_step\":%.6f,\"bytes_formula\":%.6f,"
           "\"workers\":%u,\"nodes\":%u,\"sent_per_param_step\":%.6f,\"sent\":%.6f,"
           "\"parameters\":%.0f,\"tokens\":%.0f,\"rounds\":%.0f,\"cpu_s\":%.1f,\"eval_s\":%.2f,",
           row->plan->name, row->n, quality_loss(row), least, most, gap, one->bytes,
           one->bytes_formula, row->plan->workers, quality_nodes(row->plan), one->sent,
           one->sent * inner, one->parameters, one->tokens, one->rounds, one->cpu_s, one->eval_s);
    print_seeds(row);
}

static void print_row(const quality_row *row, double gap)
{
    const quality_result *const one = &row->results[0];
    const double loss = quality_loss(row);
    double least;
    double most;
    quality_loss_range(row, &least, &most);
    printf("| %-22s | %9.5f | %9.5f | %9.5f | %.4f | %.4f..%.4f | %+.4f | %8.0f | %5.0f |\n",
           row->plan->name, one->bytes, one->bytes_formula, one->sent, loss, least, most, gap,
           one->tokens, one->cpu_s);
}

void quality_print(const quality_row *rows, size_t n_rows, uint32_t inner, bool json)
{
    const quality_row *const ddp = find(rows, n_rows, "ddp");
    if (!json) {
        puts("| configuration          | B/param/step | formula | sent to all | loss | seeds | "
             "to ddp | tokens | CPU s |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    }
    for (size_t i = 0; i < n_rows; i++) {
        const double gap = ddp != NULL ? quality_loss(&rows[i]) - quality_loss(ddp) : 0;
        if (json) {
            print_json(&rows[i], gap, inner);
        } else {
            print_row(&rows[i], gap);
        }
    }
}

/* loss(above) - loss(below) lies in (least, most]. */
typedef struct claim {
    const char *above;
    const char *below;
    double least;
    double most;
} claim;

/* A configuration without a feature is worse than one with it; nodes that exchange are better than
 * one alone; losing or delaying a part of the contributions costs little. */
static const claim claims[] = {
    {"no-feedback", "sparse-1/32", 0, INFINITY}, {"sparse-1/32", "ddp", 0, INFINITY},
    {"single", "sparse-1/32", 0, INFINITY},      {"single", "shipped", 0, INFINITY},
    {"sparse-1/32", "average", -INFINITY, 0.04}, {"dropped", "sparse-1/32", -INFINITY, 0.03},
    {"overlap", "sparse-1/32", -INFINITY, 0.04},
};

static unsigned say(bool holds, bool json, const char *text, double value)
{
    if (json) {
        printf("{\"claim\":\"%s\",\"value\":%.4f,\"holds\":%s}\n", text, value,
               holds ? "true" : "false");
    } else {
        printf("%s %s (%.4f)\n", holds ? "holds:" : "DOES NOT HOLD:", text, value);
    }
    return holds ? 0 : 1;
}

/* A plan with a period without decided rounds, and the same plan without it. */
static const struct {
    const char *away;
    const char *steady;
} returns[] = {{"return", "shipped"}, {"return-dense", "average"}, {"return-diloco", "diloco"}};

/* Gossip alone gains two thirds of the gain of rounds in that time; the return of its work does not
 * raise the loss, neither at once nor later. */
static unsigned check_return(const quality_row *rows, size_t n_rows, size_t which, bool json)
{
    const quality_row *const away = find(rows, n_rows, returns[which].away);
    const quality_row *const steady = find(rows, n_rows, returns[which].steady);
    unsigned broken = 0;
    for (uint32_t i = 0; away != NULL && i < away->n; i++) {
        const quality_result *const one = &away->results[i];
        char text[160];
        snprintf(text, sizeof text,
                 "%s, seed %u: %.4f before, %.4f with the return, %.4f after %d rounds more",
                 away->plan->name, i + 1, one->before, one->back, one->after, QUALITY_AFTER);
        broken += say(one->back <= one->before && one->after <= one->before, json, text,
                      one->back - one->before);
        if (steady == NULL) {
            continue;
        }
        const quality_result *const other = &steady->results[i];
        const double share = (one->before - one->back) / (other->before - other->back);
        snprintf(text, sizeof text, "%s, seed %u: at least 2/3 of what %s gains in that time",
                 away->plan->name, i + 1, steady->plan->name);
        broken += say(share >= 2.0 / 3, json, text, share);
    }
    return broken;
}

static unsigned check_bytes(const quality_row *row, bool json)
{
    const quality_result *const one = &row->results[0];
    if (one->bytes_formula <= 0) {
        return 0;
    }
    char text[96];
    snprintf(text, sizeof text, "%s: bytes within 2 %% of the formula", row->plan->name);
    const double ratio = one->bytes / one->bytes_formula;
    return say(fabs(ratio - 1) <= 0.02, json, text, ratio);
}

unsigned quality_check(const quality_row *rows, size_t n_rows, double slack, bool json)
{
    unsigned broken = 0;
    for (size_t i = 0; i < sizeof claims / sizeof claims[0]; i++) {
        const claim *const c = &claims[i];
        const quality_row *const above = find(rows, n_rows, c->above);
        const quality_row *const below = find(rows, n_rows, c->below);
        if (above == NULL || below == NULL) {
            continue;
        }
        char text[96];
        const double most = c->most * slack;
        if (c->most < INFINITY) {
            snprintf(text, sizeof text, "loss of %s at most %.2f above %s", c->above, most,
                     c->below);
        } else {
            snprintf(text, sizeof text, "loss of %s above %s", c->above, c->below);
        }
        const double gap = quality_loss(above) - quality_loss(below);
        broken += say(gap > c->least && gap <= most, json, text, gap);
    }
    for (size_t i = 0; i < sizeof returns / sizeof returns[0]; i++) {
        broken += check_return(rows, n_rows, i, json);
    }
    for (size_t i = 0; i < n_rows; i++) {
        if (!rows[i].plan->away) { /* Pairs exchange blobs of another codec. */
            broken += check_bytes(&rows[i], json);
        }
    }
    return broken;
}

/* Curves of the first seed. A logarithmic axis has no place for zero bytes, so that case is a
 * horizontal line. */
static void write_plot(FILE *out, const quality_row *rows, size_t n_rows, const char *png)
{
    fprintf(out,
            "set terminal pngcairo size 1200,800 noenhanced\nset output '%s'\n"
            "set logscale x\nset grid\nset key outside right\n"
            "set xlabel 'bytes sent by one node, one copy, per parameter'\n"
            "set ylabel 'loss on held-out text, nats per byte'\n",
            png);
    for (size_t i = 0; i < n_rows; i++) {
        const quality_result *const one = &rows[i].results[0];
        fprintf(out, "$c%zu << EOD\n", i);
        for (uint32_t k = 0; k < one->n_points; k++) {
            const quality_point *const point = &one->points[k];
            if (rows[i].plan->workers > 1 || rows[i].plan->kind == QUALITY_AS_ONE) {
                fprintf(out, "%.6g %.5f\n", point->bytes, point->loss);
            }
        }
        if (rows[i].plan->workers == 1 && rows[i].plan->kind != QUALITY_AS_ONE) {
            fprintf(out, "0.1 %.5f\n10000 %.5f\n", one->loss, one->loss);
        }
        fputs("EOD\n", out);
    }
    for (size_t i = 0; i < n_rows; i++) {
        fprintf(out, "%s$c%zu using 1:2 with linespoints title '%s'", i == 0 ? "plot " : ", ", i,
                rows[i].plan->name);
    }
    fputc('\n', out);
}

dp_status quality_plot(const quality_row *rows, size_t n_rows, const char *png, dp_why *why)
{
    if (strchr(png, '\'') != NULL) {
        return dp_why_set(why, DP_BADARG, "the name of the plot may not hold a quote");
    }
    FILE *const out = popen("gnuplot", "w"); /* NOLINT(cert-env33-c): a constant command */
    if (out == NULL) {
        return dp_why_set(why, DP_IO, "no process can be started");
    }
    write_plot(out, rows, n_rows, png);
    return pclose(out) == 0
               ? DP_OK
               : dp_why_set(why, DP_IO, "gnuplot did not make the plot: apt install gnuplot");
}
