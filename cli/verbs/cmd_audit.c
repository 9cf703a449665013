/* audit: the samples of each member, as the chain proves them. */
#include <stdio.h>

#include "cli/client.h"
#include "cli/json.h"
#include "cli/print.h"

static void number(dp_table *table, const json_t *item, const char *key)
{
    char text[DP_PRINT_CELL_MAX];
    snprintf(text, sizeof text, "%lld", dp_json_int(item, key, 0));
    dp_table_cell(table, text);
}

static void print_members(const json_t *result)
{
    static const char *const columns[] = {"MEMBER", "COUNTED", "SAMPLES", "LEASED",
                                          "OWN",    "SKIPPED", "LEASE",   ""};
    dp_table *table = dp_table_open(columns, sizeof columns / sizeof columns[0], 0x7e);
    size_t index = 0;
    const json_t *item = NULL;
    json_array_foreach(json_object_get(result, "members"), index, item)
    {
        const char *name = dp_json_text(item, "name", "");
        dp_table_row(table);
        dp_table_cell(table, name[0] != '\0' ? name : dp_json_text(item, "short", "?"));
        number(table, item, "counted");
        number(table, item, "samples");
        number(table, item, "leased");
        number(table, item, "own");
        number(table, item, "holes");
        number(table, item, "lease");
        dp_table_cell(table, dp_json_flag(item, "gone") ? "gone" : "");
    }
    dp_table_close(table, true);
    const long long more = dp_json_int(result, "more", 0);
    if (more > 0) {
        printf("and %lld more; the sums above are of all of them\n", more);
    }
}

static void print_samples(const json_t *result)
{
    const long long pass = dp_json_int(result, "pass_samples", 0);
    const long long granted = dp_json_int(result, "granted", 0);
    printf("  samples     %lld committed: %lld from leases, %lld from members' own lines, %lld "
           "skipped, %lld counted twice\n",
           dp_json_int(result, "samples", 0), dp_json_int(result, "leased", 0),
           dp_json_int(result, "own", 0), dp_json_int(result, "holes", 0),
           dp_json_int(result, "twice", 0));
    if (pass > 0) {
        printf("  leases      %lld samples granted, %.2f passes of %lld samples; %lld returned and "
               "waiting\n",
               granted, (double)granted / (double)pass, pass, dp_json_int(result, "returned", 0));
    }
    if (dp_json_int(result, "lost", 0) > 0) {
        printf("  dropped     %lld samples were returned when the list was full\n",
               dp_json_int(result, "lost", 0));
    }
}

static void print_findings(const json_t *result)
{
    const json_t *findings = json_object_get(result, "findings");
    const long long n = dp_json_int(result, "n_findings", 0);
    size_t index = 0;
    const json_t *item = NULL;
    json_array_foreach(findings, index, item)
    {
        printf("  record %lld: ", dp_json_int(item, "slot", 0));
        dp_print_text(dp_json_text(item, "text", ""));
        putchar('\n');
    }
    if (n > (long long)json_array_size(findings)) {
        printf("  ... %lld findings in all:\n", n);
        json_array_foreach(json_object_get(result, "causes"), index, item)
        {
            printf("  %6lld x ", dp_json_int(item, "count", 0));
            dp_print_text(dp_json_text(item, "text", ""));
            printf(", records %lld to %lld\n", dp_json_int(item, "first", 0),
                   dp_json_int(item, "last", 0));
        }
    }
    if (dp_json_int(result, "stopped", 0) > 0) {
        printf("  record %lld cannot be applied; of the later records only hashes, form and links "
               "were checked: %lld of them are valid. The numbers below are of the records before "
               "it\n",
               dp_json_int(result, "stopped", 0), dp_json_int(result, "loosely", 0));
    }
}

static int run_audit(dp_cmd *cmd)
{
    dp_control_error error;
    json_t *result = NULL;
    if (dp_client_ask(cmd, "audit", &result, &error) != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    const long long n = dp_json_int(result, "n_findings", 0);
    const int answer = n == 0 ? 0 : DP_EXIT_NEGATIVE;
    if (cmd->json) {
        const int printed = dp_cmd_print(result);
        return printed != 0 ? printed : answer;
    }
    const long long records = dp_json_int(result, "records", 0);
    printf("%s %lld of %lld records are valid, with %lld rounds: links, certificates, signatures, "
           "numbers, leases\n",
           dp_print_mark(n == 0), records, dp_json_int(result, "head", 0),
           dp_json_int(result, "rounds", 0));
    print_findings(result);
    print_samples(result);
    print_members(result);
    json_decref(result);
    return answer;
}

const dp_verb dp_verb_audit = {
    .name = "audit",
    .run = run_audit,
    .arguments = "",
    .summary = "verify the chain from its first record, and list the samples of each member",
    .examples = "  dpnode audit\n  dpnode audit --json | jq .twice\n",
};
