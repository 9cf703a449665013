/* run create, run validate: from a manifest file to a run. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/run/run_mode.h"
#include "cli/demo.h"
#include "cli/file.h"
#include "cli/json.h"
#include "cli/plan.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/qr.h"
#include "cli/start/start.h"
#include "cli/verbs/cmd_run.h"

/* ---- the manifest and its text ---- */

/* A path that the manifest at manifest_path names: absolute, or relative to it. "": too long. */
static void named_path(const char *manifest_path, const char *named, char path[DP_CLI_PATH_MAX])
{
    const char *slash = named[0] == '/' ? NULL : strrchr(manifest_path, '/');
    const int folder = slash != NULL ? (int)(slash + 1 - manifest_path) : 0;
    const int size = snprintf(path, DP_CLI_PATH_MAX, "%.*s%s", folder, manifest_path, named);
    if (size >= DP_CLI_PATH_MAX || named[0] == '\0') {
        path[0] = '\0';
    }
}

void dp_run_text_path(const char *manifest_path, const dp_manifest_file *file,
                      char path[DP_CLI_PATH_MAX])
{
    named_path(manifest_path, file->text_path, path);
}

/* With weights, model keys that are not given are those of the weights, as with a preset. */
static dp_status read_yaml(dp_view bytes, const char *path, const char *from,
                           dp_manifest_file *file, dp_why *what, dp_why *fix)
{
    dp_model_config model;
    char named[DP_CLI_PATH_MAX] = "";
    if (from == NULL) {
        const dp_status status = dp_manifest_yaml_read(bytes, path, NULL, file, what, fix);
        named_path(path, file->from_path, named);
        if (named[0] == '\0' || !dp_plan_model(named, &model)) {
            return status;
        }
        return dp_manifest_yaml_read(bytes, path, &model, file, what, fix);
    }
    const bool known = dp_plan_model(from, &model);
    return dp_manifest_yaml_read(bytes, path, known ? &model : NULL, file, what, fix);
}

int dp_run_manifest_read(const char *path, const char *from, dp_manifest_file *file,
                         dp_control_error *error)
{
    dp_buf buf;
    dp_why what = {""};
    dp_why fix = {""};
    dp_buf_init(&buf, DP_YAML_BYTES_MAX + 1);
    const dp_status read = dp_cli_file_read(path, &buf);
    if (read != DP_OK && read != DP_TOOBIG) {
        char why[DP_CLI_PATH_MAX + 64];
        snprintf(why, sizeof why, "%.400s: %s", path,
                 read == DP_BADARG ? "it is not a file" : dp_status_text(read));
        dp_error_set(error, DP_EXIT_NOINPUT, "E0306",
                     "name a manifest file that can be read, or --demo kjv",
                     "the manifest cannot be read", why);
        dp_buf_close(&buf);
        return error->exit;
    }
    const dp_status status = read_yaml(dp_buf_view(&buf), path, from, file, &what, &fix);
    dp_buf_close(&buf);
    if (status != DP_OK) {
        dp_error_set(error, DP_EXIT_DATA, "E0301",
                     fix.text[0] != '\0' ? fix.text
                                         : "dpnode run validate --keys   # lists keys and bounds",
                     "the manifest cannot be used", what.text);
        return error->exit;
    }
    return 0;
}

static int demo_manifest(const char *name, dp_manifest_file *file, dp_control_error *error)
{
    dp_why what = {""};
    dp_why fix = {""};
    if (strcmp(name, "kjv") != 0) {
        dp_error_set(error, DP_EXIT_USAGE, "E0307", "--demo kjv", "unknown demo", name);
        return error->exit;
    }
    if (dp_manifest_yaml_read(dp_view_text(dp_demo_kjv), "kjv.yaml", NULL, file, &what, &fix) !=
        DP_OK) {
        dp_error_set(error, DP_EXIT_SOFTWARE, "E0301", "", "the built-in manifest is broken",
                     what.text);
        return error->exit;
    }
    return 0;
}

static int find_text(const dp_run_source *source, dp_run_input *input, dp_control_error *error)
{
    char path[DP_CLI_PATH_MAX];
    if (source->text != NULL) {
        snprintf(path, sizeof path, "%s", source->text);
    } else if (source->demo != NULL) {
        input->text_is_ours = true;
        const int status = dp_demo_text(input->text_path, error);
        input->text_is_ours = status == 0;
        return status;
    } else if (input->file.text_path[0] != '\0') {
        dp_run_text_path(source->path, &input->file, path);
    } else {
        dp_error_set(error, DP_EXIT_USAGE, "E0308",
                     "add --text FILE, or a line \"text: FILE\" to the manifest",
                     "the run has no text to train on", source->path != NULL ? source->path : "");
        return error->exit;
    }
    if (dp_path_absolute(path, input->text_path) != DP_OK || access(input->text_path, R_OK) != 0) {
        char why[DP_CLI_PATH_MAX + 80];
        snprintf(why, sizeof why, "%s: %s", path,
                 strerror(errno)); /* NOLINT(concurrency-mt-unsafe): one thread */
        dp_error_set(
            error, DP_EXIT_NOINPUT, "E0309",
            "give --text FILE, or a line \"text: FILE\" in the manifest, with the right path",
            "the text cannot be read", why);
        return error->exit;
    }
    return 0;
}

/* Of a run of any model: its file is the model, and the script reads the data. Sets elements. */
static int find_tensors(const dp_run_source *source, dp_run_input *input, dp_control_error *error)
{
    static const char fix[] = "dpnode run create FILE --from model.safetensors   # a file of F32, "
                              "F16 and BF16 tensors";
    char why[DP_PLAN_WHY_MAX] = "";
    if (source->text != NULL || input->file.text_path[0] != '\0') {
        dp_error_set(error, DP_EXIT_USAGE, "E0314",
                     source->text != NULL
                         ? "dpnode run create FILE --from model.safetensors   # without --text"
                         : "dpnode run create FILE --from model.safetensors   # a manifest without "
                           "the line text:",
                     "this run takes no text",
                     "model.arch is external: its script alone reads data");
    } else if (input->from_path[0] == '\0') {
        dp_error_set(error, DP_EXIT_USAGE, "E0314", fix, "the run has no model to begin from",
                     "model.arch is external: a safetensors file gives names, shapes and first "
                     "weights of the tensors");
    } else if (!dp_plan_tensors(input->from_path, &input->file.manifest, why)) {
        dp_error_set(error, DP_EXIT_DATA, "E0313", fix, "no run can begin from this file", why);
    } else {
        return 0;
    }
    return error->exit;
}

static int read_manifest(const dp_run_source *source, dp_manifest_file *file,
                         dp_control_error *error)
{
    dp_model_config model;
    if (source->demo != NULL) {
        return demo_manifest(source->demo, file, error);
    }
    if (source->path != NULL) {
        return dp_run_manifest_read(source->path, source->from, file, error);
    }
    *file = (dp_manifest_file){.text_path = ""};
    dp_manifest_default(&file->manifest);
    if (source->from != NULL && dp_plan_model(source->from, &model)) {
        dp_manifest_set_model(&file->manifest, &model);
    }
    return 0;
}

/* The weights of --from, or those that the manifest names. */
static int find_weights(const dp_run_source *source, dp_run_input *input, dp_control_error *error)
{
    char named[DP_CLI_PATH_MAX] = "";
    input->from_path[0] = '\0';
    if (source->from == NULL && source->path != NULL) {
        named_path(source->path, input->file.from_path, named);
    }
    const char *const from = source->from != NULL ? source->from : named;
    if (from[0] != '\0' && dp_path_absolute(from, input->from_path) != DP_OK) {
        dp_error_set(error, DP_EXIT_DATA, "E0310", "give a shorter path",
                     "the path of the weights is too long", from);
        return error->exit;
    }
    return 0;
}

int dp_run_input_open(const dp_run_source *source, dp_run_input *input, dp_control_error *error)
{
    *input = (dp_run_input){.skip_bad_lines = source->skip_bad_lines};
    int status = read_manifest(source, &input->file, error);
    status = status == 0 ? find_weights(source, input, error) : status;
    if (status != 0) {
        return status;
    }
    if (dp_manifest_adapts(&input->file.manifest) && input->from_path[0] == '\0') {
        dp_error_set(error, DP_EXIT_USAGE, "E0318",
                     "add --from FOLDER, or model: {from: FOLDER, ...} in the manifest",
                     "the run has no weights to adapt",
                     "model.adapt trains adapters of given weights, and none are given");
        return error->exit;
    }
    return dp_manifest_external(&input->file.manifest) ? find_tensors(source, input, error)
                                                       : find_text(source, input, error);
}

void dp_run_input_close(dp_run_input *input)
{
    if (input->text_is_ours) {
        unlink(input->text_path);
        input->text_is_ours = false;
    }
}

int dp_run_create(dp_client *client, const dp_run_input *input, const char *name,
                  dp_on_notice *on_notice, void *context, json_t **result, dp_control_error *error)
{
    uint8_t canonical[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    if (dp_manifest_encode(&input->file.manifest, canonical, &size) != DP_OK) {
        dp_error_set(error, DP_EXIT_SOFTWARE, "E0301", "", "the manifest cannot be written", "");
        return error->exit;
    }
    dp_packer packer = dp_client_begin(client, "run.create");
    const bool from = input->from_path[0] != '\0';
    const bool text = input->text_path[0] != '\0';
    dp_pack_map(&packer, 1U + text + (name != NULL) + from + input->skip_bad_lines);
    dp_pack_text(&packer, "manifest");
    dp_pack_bytes(&packer, dp_view_of(canonical, size));
    if (text) {
        dp_pack_text(&packer, "text_path");
        dp_pack_text(&packer, input->text_path);
    }
    if (from) {
        dp_pack_text(&packer, "from_path");
        dp_pack_text(&packer, input->from_path);
    }
    if (input->skip_bad_lines) {
        dp_pack_text(&packer, "skip_bad_lines");
        dp_pack_bool(&packer, true);
    }
    if (name != NULL) {
        dp_pack_text(&packer, "name");
        dp_pack_text(&packer, name);
    }
    return dp_client_call(client, &packer, on_notice, context, result, error);
}

/* ---- run create ---- */

static int print_created(const dp_cmd *cmd, json_t *result)
{
    if (cmd->json) {
        return dp_cmd_print(result);
    }
    char size[DP_PRINT_CELL_MAX];
    const double elements = dp_json_real(result, "elements", 0);
    printf("%s run %s created (id %.16s", dp_print_mark(true), dp_json_text(result, "run", "?"),
           dp_json_text(result, "id", ""));
    if (elements > 0) {
        dp_print_count(elements, size);
        printf(", %s parameters", size);
    }
    printf(")\n");
    const char *const earlier = dp_json_text(result, "earlier_root_key", "");
    if (earlier[0] != '\0') {
        printf("The root key of the earlier run is %s now, beside root.key of this run.\n",
               earlier);
    }
    printf("Invite nodes that train:          dpnode invite\nInvite nodes that vote as well:   "
           "dpnode invite --role vote --uses 2   # for people you trust; a run with one voter is "
           "lost with its disk\n");
    json_decref(result);
    return 0;
}

static bool is_on(const char *variable)
{
    const char *const value = getenv(variable); /* NOLINT(concurrency-mt-unsafe): one thread */
    return value != NULL && strspn(value, "1tTyYoO") > 0 && strcmp(value, "off") != 0;
}

/* Checks the plan of the run before a daemon is started for it; a daemon that runs already checks
 * it itself, with its own settings. */
static int plan_first(const dp_run_input *input, const char *dir, dp_control_error *error)
{
    const dp_manifest *const manifest = &input->file.manifest;
    const uint64_t data_bytes = dp_plan_data_bytes(input->text_path);
    const char *const backend =
        getenv("DPNODE_BACKEND"); /* NOLINT(concurrency-mt-unsafe): as above */
    char why[DP_PLAN_WHY_MAX] = "";
    json_t *const plan =
        is_on("DPNODE_OBSERVER")
            ? NULL
            : dp_plan_ask(manifest, backend != NULL ? backend : "auto", data_bytes);
    error->exit = 0;
    if (plan != NULL && !json_is_true(json_object_get(plan, "fits"))) {
        dp_error_set(error, DP_EXIT_UNAVAILABLE, "E0311",
                     "free memory, or change the setting named above",
                     "this model does not fit this machine", dp_json_text(plan, "why", ""));
    } else if (input->text_path[0] != '\0' && input->from_path[0] == '\0' &&
               !dp_plan_text_holds(manifest, input->text_path, input->skip_bad_lines, why)) {
        dp_error_set(error, DP_EXIT_DATA, "E0304",
                     "dpnode run create FILE --text TEXT   # a file of UTF-8 text, or a folder",
                     "the text cannot be used", why);
    } else if (!dp_plan_disk_holds(manifest, data_bytes, dir, why)) {
        dp_error_set(error, DP_EXIT_IO, "E0312",
                     "free space there, or use another disk with --dir PATH",
                     "the disk has no room for this run", why);
    }
    json_decref(plan);
    return error->exit;
}

/* Removes a run that could not be made, and the daemon that was started for it. */
static int create(dp_cmd *cmd, const dp_run_input *input, json_t **result, dp_control_error *error)
{
    dp_client client;
    char dir[DP_CLI_PATH_MAX];
    bool started = false;
    int status = dp_start_would(cmd, dir) ? plan_first(input, dir, error) : 0;
    if (status != 0) {
        return status;
    }
    status = dp_start_if_none(cmd, &client, &started, error);
    if (status != 0) {
        return status;
    }
    status =
        dp_run_create(&client, input, dp_cmd_option(cmd, "name"), dp_progress, cmd, result, error);
    dp_client_close(&client);
    if (status != 0 && started) {
        dp_start_undo(cmd);
    }
    return status;
}

static int run_create(dp_cmd *cmd)
{
    const dp_run_source source = {.path = cmd->n_args > 0 ? cmd->args[0] : NULL,
                                  .demo = dp_cmd_option(cmd, "demo"),
                                  .text = dp_cmd_option(cmd, "text"),
                                  .from = dp_cmd_option(cmd, "from"),
                                  .skip_bad_lines = dp_cmd_option(cmd, "skip-bad-lines") != NULL};
    dp_control_error error;
    dp_run_input input;
    json_t *result = NULL;
    if ((source.path == NULL) == (source.demo == NULL)) {
        dp_error_set(&error, DP_EXIT_USAGE, "E0001", "dpnode run create --help",
                     "give either a manifest file or --demo kjv", "");
        return dp_cmd_fail(cmd, &error);
    }
    int status = dp_run_input_open(&source, &input, &error);
    if (status == 0) {
        status = create(cmd, &input, &result, &error);
    }
    dp_run_input_close(&input);
    return status == 0 ? print_created(cmd, result) : dp_cmd_fail(cmd, &error);
}

const dp_verb dp_verb_run_create = {
    .name = "run create",
    .run = run_create,
    .arguments = "FILE | --demo kjv",
    .summary = "create a run from a manifest and a text, or a model file of any kind",
    .examples =
        "  dpnode run create --demo kjv\n  dpnode run create run.yaml --text book.txt "
        "--name alice\n"
        "  dpnode run create run.yaml --text book.txt --from ./SmolLM2-135M\n"
        "  dpnode run create any.yaml --from model.safetensors   # model: {arch: external}\n",
    .n_args_max = 1,
    .options = {DP_RUN_INPUT_OPTIONS, {"name", 0, "NAME", "name of this node"}, DP_START_OPTIONS},
};

/* ---- run validate ---- */

/* Prints the settings that the program decides. */
static void print_decided(const dp_manifest *m)
{
    if (m->codec_keep_most != 0) {
        printf("Updates: codec %s, 1 of %u to 1 of %u elements, as the lines permit.\n",
               dp_codec_name(m->codec), m->codec_keep, m->codec_keep_most);
    } else if (dp_codec_row_of(m->codec)->thins) {
        printf("Updates: codec %s, 1 of %u elements.\n", dp_codec_name(m->codec), m->codec_keep);
    } else {
        printf("Updates: codec %s, every element.\n", dp_codec_name(m->codec));
    }
    printf("Sums: %s.\n", m->reduce == DP_REDUCE_PARTS
                              ? "the owner of each part adds it up; no update is evaluated"
                          : m->trust == DP_TRUST_MEMBERS
                              ? "every node adds up whole updates; none is evaluated"
                              : "every node adds up whole updates; voters evaluate "
                                "each before it counts");
}

static void print_validated(const dp_cmd *cmd, const dp_run_input *input, const json_t *plan,
                            const char *text_why, const char *disk_why)
{
    printf("%s %s is valid: a manifest of run %s\n", dp_print_mark(true), cmd->args[0],
           input->file.manifest.name);
    print_decided(&input->file.manifest);
    if (text_why[0] != '\0') {
        printf("%s the text: %s\n", dp_print_mark(false), text_why);
    }
    if (disk_why[0] != '\0') {
        printf("%s the disk: %s\n", dp_print_mark(false), disk_why);
    }
    if (plan != NULL) {
        dp_plan_print(plan, dp_manifest_external(&input->file.manifest));
    } else if (dp_manifest_external(&input->file.manifest) && input->from_path[0] == '\0') {
        printf("Memory and disk follow from the model: dpnode run validate %s --from "
               "model.safetensors\n",
               cmd->args[0]);
    } else {
        printf("The memory for training is not known: dpnode-worker printed no plan.\n");
    }
}

/* valid: a run can be created from it on this machine. */
static int tell_validated(const dp_cmd *cmd, const dp_run_input *input)
{
    const dp_manifest *const manifest = &input->file.manifest;
    const uint64_t data_bytes = dp_plan_data_bytes(input->text_path);
    const char *const backend =
        getenv("DPNODE_BACKEND"); /* NOLINT(concurrency-mt-unsafe): one thread */
    char dir[DP_CLI_PATH_MAX];
    char text[DP_PLAN_WHY_MAX] = "";
    char disk[DP_PLAN_WHY_MAX] = "";
    dp_path_dir(NULL, dir);
    /* The tokenizer of other weights is known only when the text is prepared. */
    if (input->text_path[0] == '\0' || input->from_path[0] != '\0' ||
        dp_plan_text_holds(manifest, input->text_path, false, text)) {
        text[0] = '\0';
    }
    if (dp_plan_disk_holds(manifest, data_bytes, dir, disk)) {
        disk[0] = '\0';
    }
    const bool unknown = dp_manifest_external(manifest) && manifest->elements == 0;
    json_t *plan =
        unknown ? NULL : dp_plan_ask(manifest, backend != NULL ? backend : "auto", data_bytes);
    const bool valid = text[0] == '\0' && disk[0] == '\0' &&
                       (plan == NULL || json_is_true(json_object_get(plan, "fits")));
    if (cmd->json) {
        const int status = dp_cmd_print(
            json_pack("{s:b,s:s,s:o*,s:o*,s:o?}", "valid", valid, "name", manifest->name,
                      "text_why", dp_json_string(text[0] != '\0' ? text : NULL), "disk_why",
                      dp_json_string(disk[0] != '\0' ? disk : NULL), "plan", plan));
        return valid || status != 0 ? status : DP_EXIT_NEGATIVE;
    }
    print_validated(cmd, input, plan, text, disk);
    json_decref(plan);
    return valid ? 0 : DP_EXIT_NEGATIVE;
}

/* Finds the text or the model file that the manifest is meant to be used with, if one is named. */
static bool find_inputs(const dp_run_source *source, dp_run_input *input, dp_control_error *error)
{
    const bool external = dp_manifest_external(&input->file.manifest);
    input->text_path[0] = '\0';
    if (source->from != NULL && !external) {
        dp_error_set(error, DP_EXIT_USAGE, "E0001", "dpnode run create --help",
                     "--from is for model.arch external",
                     "memory for another model follows from its manifest");
        return false;
    }
    if (find_weights(source, input, error) != 0) {
        return false;
    }
    if (external) {
        return (input->from_path[0] == '\0' && input->file.text_path[0] == '\0') ||
               find_tensors(source, input, error) == 0;
    }
    return input->file.text_path[0] == '\0' || find_text(source, input, error) == 0;
}

static int run_validate(dp_cmd *cmd)
{
    static dp_run_input input;
    dp_control_error error;
    if (dp_cmd_option(cmd, "keys") != NULL) {
        return dp_run_print_keys(cmd);
    }
    if (cmd->n_args == 0) {
        dp_error_set(&error, DP_EXIT_USAGE, "E0001", "dpnode run validate --help",
                     "an argument is missing", "usage: dpnode run validate FILE, or --keys");
        return dp_cmd_fail(cmd, &error);
    }
    if (dp_run_manifest_read(cmd->args[0], dp_cmd_option(cmd, "from"), &input.file, &error) != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    /* A manifest may lack a text; if it names one, that text is to be used. */
    const dp_run_source source = {.path = cmd->args[0], .from = dp_cmd_option(cmd, "from")};
    if (!find_inputs(&source, &input, &error)) {
        return dp_cmd_fail(cmd, &error);
    }
    return tell_validated(cmd, &input);
}

const dp_verb dp_verb_run_validate = {
    .name = "run validate",
    .run = run_validate,
    .arguments = "FILE | --keys",
    .summary = "check a manifest without a daemon, or list its keys",
    .examples = "  dpnode run validate run.yaml\n  dpnode run validate --keys\n",
    .n_args_max = 1,
    .options = {{"keys", 0, NULL, "list every key with its default and bounds"},
                {"from", 0, "FILE", "with model.arch external: the safetensors file of the model"}},
};
