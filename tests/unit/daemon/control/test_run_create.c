/* A run is founded: data that the tool prepared becomes objects, the manifest is signed, and this
 * node is its first member. Tool, port and driver are played; store and keys are real. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/run/prepared.h"
#include "daemon/control/run_create.h"
#include "daemon/host/tool.h"
#include "store/inside.h"
#include "store/vote.h"
#include "tests/unit/daemon/desk.h"
#include "tests/unit/daemon/party.h"

enum { DATA_BYTES = 3000, TOKENIZER_BYTES = 200 };

static struct {
    char folder[DP_CONFIG_PATH_MAX];
    dp_status folders;
    dp_status runs;
    char words[2048]; /* of the tool */
    dp_tool_done *tool_done;
    void *tool_context;
    uint32_t n_removed;
    bool port_is_taken;
    dp_status keeps_root;
    uint8_t root_seed[DP_ROOT_SEED_BYTES];
    const char *moved; /* NULL: there was no earlier key */
    uint32_t n_dropped;
    char put_back[DP_ROOT_NAME_MAX];
    dp_status opens;
    dp_run_identity facts; /* that the driver was opened with */
    uint32_t n_opened;
    uint32_t n_done;
    dp_status status;
    char code[8];
    char why[256];
    char fix[256];
    uint32_t n_progress;
    char progress[256];
} net;

dp_status dp_tool_folder(const dp_daemon *daemon, char path[DP_CONFIG_PATH_MAX])
{
    (void)daemon;
    snprintf(path, DP_CONFIG_PATH_MAX, "%s", net.folder);
    return net.folders;
}

void dp_tool_folder_remove(const char *path)
{
    assert_string_equal(path, net.folder);
    net.n_removed++;
}

static void write_file(const char *name, dp_view bytes)
{
    char path[DP_CONFIG_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", net.folder, name);
    FILE *file = fopen(path, "we");
    CHECK(file != NULL && fwrite(bytes.data, 1, bytes.size, file) == bytes.size);
    CHECK(fclose(file) == 0);
}

dp_status dp_tool_file(const char *folder, const char *name, dp_view bytes)
{
    assert_string_equal(folder, net.folder);
    write_file(name, bytes);
    return DP_OK;
}

dp_status dp_tool_run(dp_daemon *daemon, const char *program, const char *const *arguments,
                      dp_tool_done *done, void *context)
{
    (void)program;
    (void)daemon;
    net.words[0] = '\0';
    for (size_t i = 0; arguments[i] != NULL; i++) {
        strncat(net.words, arguments[i], sizeof net.words - strlen(net.words) - 2);
        strcat(net.words, " ");
    }
    net.tool_done = done;
    net.tool_context = context;
    return net.runs;
}

void dp_tool_sentence(const char *output, char *text, size_t size)
{
    snprintf(text, size, "%s", output);
}

dp_status dp_transport_try(const char *address, dp_why *why)
{
    (void)address;
    return net.port_is_taken ? dp_why_set(why, DP_BUSY, "the port is in use") : DP_OK;
}

dp_status dp_daemon_keep_root(dp_daemon *daemon, const uint8_t seed[DP_ROOT_SEED_BYTES],
                              char moved[DP_ROOT_NAME_MAX], dp_why *why)
{
    (void)daemon;
    (void)why;
    memcpy(net.root_seed, seed, sizeof net.root_seed);
    snprintf(moved, DP_ROOT_NAME_MAX, "%s", net.moved != NULL ? net.moved : "");
    return net.keeps_root;
}

dp_status dp_daemon_drop_root(dp_daemon *daemon, const char *moved)
{
    (void)daemon;
    net.n_dropped++;
    snprintf(net.put_back, sizeof net.put_back, "%s", moved);
    return DP_OK;
}

dp_status dp_driver_open(dp_driver **driver, dp_daemon *daemon, const dp_run_identity *facts,
                         dp_why *why)
{
    (void)daemon;
    net.n_opened++;
    net.facts = *facts;
    if (net.opens == DP_OK) {
        *driver = desk.driver;
        return DP_OK;
    }
    return dp_why_set(why, net.opens, "the port is in use");
}

static void on_progress(void *context, const char *phase, const char *text)
{
    (void)context;
    (void)phase;
    net.n_progress++;
    snprintf(net.progress, sizeof net.progress, "%s", text);
}

static void on_done(void *context, dp_status status, const char *code, const char *what,
                    const char *why, const char *fix)
{
    (void)context;
    CHECK(status == DP_OK || (what[0] != '\0' && fix != NULL));
    CHECK(status != DP_OK || net.moved != NULL || why[0] == '\0');
    net.n_done++;
    net.status = status;
    snprintf(net.code, sizeof net.code, "%s", code);
    snprintf(net.why, sizeof net.why, "%s", why);
    snprintf(net.fix, sizeof net.fix, "%s", fix);
}

static void open_idle(void)
{
    memset(&net, 0, sizeof net);
    desk_open();
    tempdir_file(&desk.shelf.dir, "tool", net.folder);
    assert_int_equal(mkdir(net.folder, 0700), 0);
    desk.config.margin = 0;
    desk.daemon.identity = party_of()->identities[0];
}

static void start(const char *from)
{
    static dp_manifest manifest;
    dp_manifest_default(&manifest);
    snprintf(manifest.name, sizeof manifest.name, "kjv");
    const dp_run_create_request request = {.manifest = &manifest,
                                           .text_path = "/book.txt",
                                           .from_path = from,
                                           .node_name = "ann",
                                           .progress = on_progress,
                                           .done = on_done};
    dp_run_create_start(&desk.daemon, &request);
}

/* The hash of an object of noise. */
static dp_hash root_of(uint64_t seed, size_t size)
{
    dp_hash leaves[4];
    uint8_t *bytes = noise(seed, size);
    const dp_hash root = dp_object_hash(dp_view_of(bytes, size), leaves);
    free(bytes);
    return root;
}

static void write_noise(const char *name, uint64_t seed, size_t size)
{
    uint8_t *bytes = noise(seed, size);
    write_file(name, dp_view_of(bytes, size));
    free(bytes);
}

/* The result of the tool: shards of seeds 2 and 3, of which the manifest names only the first
 * correctly. */
static void prepare(uint64_t second_seed)
{
    static dp_manifest prepared;
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    dp_manifest_default(&prepared);
    snprintf(prepared.name, sizeof prepared.name, "kjv");
    prepared.tokenizer = root_of(1, TOKENIZER_BYTES);
    prepared.tokenizer_bytes = TOKENIZER_BYTES;
    prepared.n_shards = 2;
    for (uint64_t i = 0; i < 2; i++) {
        prepared.shards[i] = (dp_manifest_shard){
            .root = root_of(2 + i, DATA_BYTES), .bytes = DATA_BYTES, .tokens = DATA_BYTES / 2};
    }
    CHECK_OK(dp_manifest_encode(&prepared, bytes, &size));
    write_file(DP_PREPARED_MANIFEST, dp_view_of(bytes, size));
    write_noise(DP_PREPARED_TOKENIZER, 1, TOKENIZER_BYTES);
    write_noise("tokens-00000.bin", 2, DATA_BYTES);
    write_noise("tokens-00001.bin", second_seed, DATA_BYTES);
}

static bool is_done(void *context)
{
    (void)context;
    return net.n_done > 0;
}

/* The tool has ended well; until it is answered. */
static void go_on(void)
{
    net.tool_done(net.tool_context, 0, "1,234 tokens");
    turn_until(&desk.loop, is_done, NULL);
}

static void a_run_has_a_signed_manifest_a_founder_and_its_data(void **state)
{
    dp_manifest manifest;
    dp_credential credential;
    dp_vote_key_row key;
    dp_sign_key root;
    const dp_run_id none = {{0}};
    dp_hash roots[4];
    uint32_t n_roots = 0;
    (void)state;
    open_idle();
    start(NULL);
    assert_true(strncmp(net.words, "--prepare /book.txt ", 20) == 0);
    assert_non_null(strstr(net.words, "--manifest "));
    assert_null(strstr(net.words, "--from"));
    prepare(3);
    go_on();
    assert_true(net.n_done == 1 && net.status == DP_OK && desk.daemon.driver == desk.driver);
    assert_string_equal(net.progress, "1,234 tokens");
    const dp_view bytes = dp_view_of(net.facts.manifest, net.facts.manifest_bytes);
    CHECK_OK(dp_manifest_decode(&manifest, bytes));
    dp_sign_key_of_seed(net.root_seed, &root);
    assert_memory_equal(manifest.root_key, root.public_key, sizeof root.public_key);
    assert_true(dp_verify(manifest.root_key, "dpnode/manifest/1",
                          dp_view_of(bytes.data, bytes.size - DP_MANIFEST_SIGNATURE_BYTES),
                          manifest.signature));
    const dp_run_id run = dp_manifest_run_id(bytes);
    assert_true(dp_hash_equal(&run, &net.facts.run));
    CHECK_OK(dp_credential_check(dp_view_of(net.facts.credential, net.facts.credential_bytes), &run,
                                 net.facts.root, NULL, party_now_ms(), &credential, NULL));
    assert_true((credential.caps & DP_CAP_ADMIN) != 0);
    CHECK_OK(dp_vote_load_key(desk.shelf.store, &run, &key));
    assert_memory_equal(manifest.founder_vote_key, key.public_key, sizeof key.public_key);
    assert_true(holds_noise(desk.shelf.store, &manifest.shards[1].root, 3, DATA_BYTES));
    assert_true(holds_noise(desk.shelf.store, &manifest.tokenizer, 1, TOKENIZER_BYTES));
    CHECK_OK(dp_object_pins(desk.shelf.store, &run, DP_PIN_DATA, roots, 4, &n_roots));
    assert_int_equal(n_roots, 3); /* They are of this run: it keeps them, and they go with it. */
    CHECK_OK(dp_object_pins(desk.shelf.store, &none, DP_PIN_DATA, roots, 4, &n_roots));
    assert_int_equal(n_roots, 0);
    assert_string_equal(net.facts.node_name, "ann");
    assert_int_equal(net.n_removed, 1);
    desk_close();
}

static void a_trainer_is_told_who_computes_and_an_observer_is_not(void **state)
{
    (void)state;
    open_idle();
    start("/weights");
    assert_non_null(strstr(net.words, "--from /weights --backend "));
    net.tool_done(net.tool_context, 65, "these are no weights");
    desk.config.observer = true;
    start(NULL);
    assert_null(strstr(net.words, "--backend"));
    net.tool_done(net.tool_context, 65, "this is no text");
    desk_close();
}

static void a_refusal_of_the_tool_has_its_own_code(void **state)
{
    static const struct {
        const char *from;
        int exit;
        const char *code;
        dp_status status;
    } rows[] = {{NULL, 65, "E0304", DP_BADMSG},
                {"/weights", 65, "E0310", DP_BADMSG},
                {NULL, DP_PREPARED_NO_MEMORY, "E0311", DP_UNSUPPORTED}};
    (void)state;
    open_idle();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        start(rows[i].from);
        net.tool_done(net.tool_context, rows[i].exit, "the tool's own words");
        assert_true(net.n_done == i + 1 && net.status == rows[i].status);
        assert_string_equal(net.code, rows[i].code);
        assert_string_equal(net.why, "the tool's own words");
        assert_int_equal(net.n_removed, i + 1);
    }
    assert_int_equal(net.n_opened, 0);
    desk_close();
}

static void a_file_that_only_the_caller_may_read_is_told_with_a_place_for_it(void **state)
{
    static const char *const froms[] = {NULL, "/home/ann/weights"};
    (void)state;
    open_idle();
    for (size_t i = 0; i < sizeof froms / sizeof froms[0]; i++) {
        start(froms[i]);
        net.tool_done(net.tool_context, 65, "cannot open /home/ann: Permission denied");
        assert_non_null(strstr(net.fix, "nothing below /home"));
        start(froms[i]);
        net.tool_done(net.tool_context, 65, "this is no text");
        assert_non_null(strstr(net.fix, "dpnode run create"));
    }
    desk_close();
}

/* The store has nothing of the run that was not created. */
static bool is_forgotten(void)
{
    dp_run_id run;
    dp_vote_key_row key;
    uint8_t root[DP_PUBLIC_KEY_BYTES];
    int64_t n_pins = 0;
    int64_t n_objects = 0;
    CHECK_OK(dp_sql_number(&desk.shelf.store->meta, "SELECT count(*) FROM pin", &n_pins));
    CHECK_OK(dp_sql_number(&desk.shelf.store->meta, "SELECT count(*) FROM object", &n_objects));
    return n_pins == 0 && n_objects == 0 &&
           dp_vote_load_key(desk.shelf.store, &net.facts.run, &key) == DP_NOTFOUND &&
           dp_run_identity_unfinished(desk.shelf.store, &run, root) == DP_NOTFOUND;
}

static void a_store_at_its_limit_is_not_told_as_a_full_disk(void **state)
{
    (void)state;
    open_idle();
    start(NULL);
    prepare(3);
    dp_store_limit(desk.shelf.store, 1);
    go_on();
    assert_true(net.n_done == 1 && net.status == DP_IO && net.n_opened == 0);
    assert_string_equal(net.code, "E0312");
    assert_non_null(strstr(net.why, "the store is at its limit: it uses "));
    assert_non_null(strstr(net.fix, "dpnode limits --disk SIZE"));
    desk_close();
}

static void data_that_is_not_what_the_manifest_names_founds_nothing(void **state)
{
    (void)state;
    open_idle();
    start(NULL);
    prepare(77); /* The second shard has other bytes. */
    go_on();
    assert_true(net.status == DP_IO && net.n_opened == 0 && net.n_removed == 1);
    assert_string_equal(net.code, "E0302");
    assert_true(is_forgotten()); /* The tokenizer and the first shard were stored. */
    net.n_done = 0;
    start(NULL);
    write_file(DP_PREPARED_MANIFEST, dp_view_text("no manifest"));
    go_on();
    assert_true(net.status == DP_IO && net.n_opened == 0);
    desk_close();
}

static void a_run_that_does_not_fit_the_quota_leaves_nothing(void **state)
{
    uint64_t used = 0;
    (void)state;
    open_idle();
    CHECK_OK(dp_store_bytes(desk.shelf.store, &used));
    dp_store_limit(desk.shelf.store, used + DATA_BYTES); /* The tokenizer fits. */
    start(NULL);
    prepare(3);
    go_on();
    assert_true(net.status == DP_IO && net.n_opened == 0);
    assert_string_equal(net.code, "E0312");
    assert_true(is_forgotten());
    desk_close();
}

static void nothing_is_begun_without_a_port_a_folder_room_or_memory(void **state)
{
    (void)state;
    open_idle();
    net.port_is_taken = true;
    start(NULL);
    assert_true(net.n_done == 1 && net.status == DP_BUSY && strcmp(net.code, "E0303") == 0);
    net.port_is_taken = false;
    net.folders = DP_NOSPACE;
    start(NULL);
    assert_true(net.n_done == 2 && strcmp(net.code, "E0302") == 0);
    net.folders = DP_OK;
    desk.config.margin = UINT64_MAX / 2;
    start(NULL);
    assert_true(net.n_done == 3 && strcmp(net.code, "E0312") == 0);
    assert_non_null(strstr(net.why, "are free in"));
    desk.config.margin = 0;
    dp_alloc_fail_after(1);
    start(NULL);
    dp_alloc_fail_after(0);
    assert_true(net.n_done == 4 && strcmp(net.code, "E0199") == 0);
    net.runs = DP_TOOBIG;
    start(NULL);
    assert_true(net.n_done == 5 && strcmp(net.code, "E0304") == 0 && net.n_removed == 1);
    assert_int_equal(net.status, DP_TOOBIG);
    net.runs = DP_NOSPACE;
    start(NULL);
    assert_true(net.n_done == 6 && net.status == DP_IO && strcmp(net.code, "E0302") == 0);
    desk_close();
}

static void a_node_that_entered_a_run_meanwhile_or_cannot_listen_is_not_opened(void **state)
{
    (void)state;
    open_idle();
    start(NULL);
    prepare(3);
    desk.daemon.driver = desk.driver;
    go_on();
    assert_true(net.status == DP_BUSY && net.n_opened == 0 && strcmp(net.code, "E0303") == 0);
    desk.daemon.driver = NULL;
    net.n_done = 0;
    net.opens = DP_BUSY;
    start(NULL);
    prepare(3);
    go_on();
    assert_true(net.status == DP_BUSY && net.n_opened == 1 && desk.daemon.driver == NULL);
    assert_string_equal(net.why, "the port is in use");
    assert_int_equal(net.n_dropped, 1);
    assert_string_equal(net.put_back, "");
    assert_true(is_forgotten());
    net.n_done = 0;
    net.moved = "root.key.01020304"; /* It may try again, also where a run was before. */
    start(NULL);
    prepare(3);
    go_on();
    assert_int_equal(net.n_dropped, 2);
    assert_string_equal(net.put_back, "root.key.01020304");
    net.n_done = 0;
    net.keeps_root = DP_IO;
    start(NULL);
    prepare(3);
    go_on();
    assert_true(net.status == DP_IO && net.n_dropped == 2 && is_forgotten());
    desk_close();
}

static void the_name_of_an_earlier_root_key_is_told(void **state)
{
    dp_run_id run;
    uint8_t root[DP_PUBLIC_KEY_BYTES];
    (void)state;
    open_idle();
    net.moved = "root.key.01020304";
    start(NULL);
    prepare(3);
    go_on();
    assert_true(net.status == DP_OK && net.n_dropped == 0);
    assert_string_equal(net.why, "root.key.01020304");
    assert_true(desk_logged("root.key.01020304"));
    /* Until the driver has stored the run, it may have been created in vain. */
    CHECK_OK(dp_run_identity_unfinished(desk.shelf.store, &run, root));
    assert_true(dp_hash_equal(&run, &net.facts.run));
    assert_memory_equal(root, net.facts.root, sizeof root);
    desk_close();
}

static void any_model_is_founded_from_its_file_alone(void **state)
{
    static dp_manifest manifest;
    static dp_manifest prepared;
    const dp_model_config shape = {.arch = DP_ARCH_EXTERNAL};
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    (void)state;
    open_idle();
    dp_manifest_default(&manifest);
    dp_manifest_set_model(&manifest, &shape);
    manifest.val_per_mille = 0;
    manifest.samples = 10;
    manifest.trust = DP_TRUST_MEMBERS;
    const dp_run_create_request request = {.manifest = &manifest,
                                           .text_path = "",
                                           .from_path = "/m.safetensors",
                                           .node_name = "ann",
                                           .progress = on_progress,
                                           .done = on_done};
    dp_run_create_start(&desk.daemon, &request);
    assert_string_equal(net.progress, "/m.safetensors");
    assert_true(strncmp(net.words, "--prepare  ", 11) == 0);
    assert_non_null(strstr(net.words, "--from /m.safetensors "));
    net.tool_done(net.tool_context, 65, "tensor w has no elements");
    assert_string_equal(net.code, "E0313");
    net.n_done = 0;
    dp_run_create_start(&desk.daemon, &request);
    prepared = manifest;
    prepared.elements = 40;
    prepared.tokenizer = root_of(1, TOKENIZER_BYTES);
    prepared.tokenizer_bytes = TOKENIZER_BYTES;
    prepared.init = root_of(4, 288);
    prepared.init_bytes = 288;
    CHECK_OK(dp_manifest_encode(&prepared, bytes, &size));
    char path[DP_CONFIG_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/manifest", net.folder);
    unlink(path);
    write_file(DP_PREPARED_MANIFEST, dp_view_of(bytes, size));
    write_noise(DP_PREPARED_TABLE, 1, TOKENIZER_BYTES);
    write_noise(DP_PREPARED_INIT, 4, 288);
    go_on();
    assert_true(net.status == DP_OK && net.n_opened == 1);
    CHECK_OK(
        dp_manifest_decode(&prepared, dp_view_of(net.facts.manifest, net.facts.manifest_bytes)));
    assert_int_equal(prepared.elements, 40);
    assert_true(holds_noise(desk.shelf.store, &prepared.tokenizer, 1, TOKENIZER_BYTES));
    assert_true(holds_noise(desk.shelf.store, &prepared.init, 4, 288));
    desk_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_has_a_signed_manifest_a_founder_and_its_data),
        cmocka_unit_test(a_trainer_is_told_who_computes_and_an_observer_is_not),
        cmocka_unit_test(a_refusal_of_the_tool_has_its_own_code),
        cmocka_unit_test(a_file_that_only_the_caller_may_read_is_told_with_a_place_for_it),
        cmocka_unit_test(a_store_at_its_limit_is_not_told_as_a_full_disk),
        cmocka_unit_test(data_that_is_not_what_the_manifest_names_founds_nothing),
        cmocka_unit_test(a_run_that_does_not_fit_the_quota_leaves_nothing),
        cmocka_unit_test(nothing_is_begun_without_a_port_a_folder_room_or_memory),
        cmocka_unit_test(a_node_that_entered_a_run_meanwhile_or_cannot_listen_is_not_opened),
        cmocka_unit_test(the_name_of_an_earlier_root_key_is_told),
        cmocka_unit_test(any_model_is_founded_from_its_file_alone),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
