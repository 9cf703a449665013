#include "tests/unit/compute/tiny_run.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/run/samples.h"
#include "base/run/token_marks.h"
#include "compute/corpus/tokenize.h"
#include "compute/format/export.h"
#include "compute/format/llmc.h"
#include "compute/format/prepare.h"
#include "compute/machine/files.h"
#include "compute/model/model.h"
#include "compute/model/state.h"
#include "tests/lib/tempdir.h"

enum { BUF_MAX = 1 << 22 };

static dp_buf read_file(const char *path)
{
    dp_buf bytes;
    dp_buf_init(&bytes, BUF_MAX);
    CHECK_OK(dp_file_read(path, &bytes, NULL));
    return bytes;
}

static dp_manifest manifest_of(uint32_t vocab)
{
    dp_manifest m;
    dp_manifest_default(&m);
    memcpy(m.name, "small", 6);
    m.vocab = vocab;
    return m;
}

static void text_becomes_a_tokenizer_and_a_shard(void **state)
{
    (void)state;
    tempdir dir;
    tempdir_open(&dir);
    char text[4000];
    tiny_run_text(text, sizeof text);
    CHECK_OK(dp_file_write(dir.path, "text", dp_view_of(text, sizeof text), NULL));
    char path[TEMPDIR_FILE_MAX];
    char folder[TEMPDIR_FILE_MAX];
    dp_prepared made;
    dp_manifest m = manifest_of(280);
    const dp_prepare_job job = {.text = tempdir_file(&dir, "text", path),
                                .folder = tempdir_file(&dir, "out", folder)};
    CHECK_OK(dp_prepare(&job, &m, &made, NULL));
    CHECK(made.vocab == 280 && made.text_bytes == sizeof text);
    dp_buf json = read_file(tempdir_file(&dir, "out/tokenizer.json", path));
    dp_buf shard = read_file(tempdir_file(&dir, "out/tokens-00000.bin", path));
    CHECK(json.size == made.tokenizer_bytes && shard.size == made.data_bytes);
    const dp_hash roots[2] = {dp_object_hash(dp_buf_view(&json), NULL),
                              dp_object_hash(dp_buf_view(&shard), NULL)};
    CHECK(dp_hash_equal(&roots[0], &m.tokenizer) && m.tokenizer_bytes == json.size);
    CHECK(m.n_shards == 1 && dp_hash_equal(&roots[1], &m.shards[0].root));
    CHECK(m.shards[0].bytes == shard.size && m.shards[0].tokens == made.tokens);
    CHECK(dp_hash_is_zero(&m.init) && m.init_bytes == 0);
    dp_bpe *bpe;
    dp_data data;
    CHECK_OK(dp_bpe_load(&bpe, dp_buf_view(&json), NULL));
    CHECK_OK(dp_data_open(&data, dp_buf_view(&shard), 280, 0, NULL));
    CHECK(data.n_tokens == made.tokens);
    dp_buf back;
    dp_buf_init(&back, BUF_MAX);
    for (uint64_t i = 0; i < data.n_tokens; i++) {
        uint32_t id;
        dp_shard_read(&data.one.shard, i, 1, &id);
        CHECK_OK(dp_bpe_decode(bpe, &id, 1, &back));
    }
    CHECK(dp_view_equal(dp_buf_view(&back), dp_view_of(text, sizeof text)));
    dp_buf_close(&back);
    dp_bpe_close(bpe);
    dp_buf_close(&json);
    dp_buf_close(&shard);
    tempdir_close(&dir);
}

static void a_folder_of_data_is_taken_as_it_is(void **state)
{
    (void)state;
    tempdir dir;
    tempdir_open(&dir);
    char text[4000];
    tiny_run_text(text, sizeof text);
    CHECK_OK(dp_file_write(dir.path, "text", dp_view_of(text, sizeof text), NULL));
    char path[TEMPDIR_FILE_MAX];
    char data[TEMPDIR_FILE_MAX];
    char folder[TEMPDIR_FILE_MAX];
    char *words[1] = {path};
    tempdir_file(&dir, "text", path);
    tempdir_file(&dir, "out", folder);
    dp_tokenize_job job = {.paths = words,
                           .n_paths = 1,
                           .field = "text",
                           .vocab = 280,
                           .folder = tempdir_file(&dir, "data", data),
                           .shard_tokens = 100000};
    dp_tokenized tokenized;
    dp_prepared made;
    dp_why why = {{0}};
    CHECK_OK(dp_tokenize(&job, &tokenized, NULL));
    const dp_prepare_job prepare = {.text = data, .folder = folder};
    dp_manifest m = manifest_of(300);
    CHECK_OK(dp_prepare(&prepare, &m, &made, NULL));
    CHECK(made.tokens == tokenized.sum.tokens && made.vocab == 280 && made.shards == 1 &&
          made.text_bytes == sizeof text);
    dp_buf shard = read_file(tempdir_file(&dir, "out/tokens-00000.bin", path));
    CHECK(shard.size == made.data_bytes);
    dp_buf_close(&shard);
    m = manifest_of(279);
    CHECK_STATUS(dp_prepare(&prepare, &m, &made, &why), DP_BADARG);
    CHECK(strstr(why.text, "280 tokens, the model has 279") != NULL && m.n_shards == 0);
    tempdir_close(&dir);
}

static void a_folder_may_have_several_shards_up_to_a_bound(void **state)
{
    (void)state;
    tempdir dir;
    tempdir_open(&dir);
    char text[4000];
    tiny_run_text(text, sizeof text);
    CHECK_OK(dp_file_write(dir.path, "text", dp_view_of(text, sizeof text), NULL));
    char path[TEMPDIR_FILE_MAX];
    char data[TEMPDIR_FILE_MAX];
    char folder[TEMPDIR_FILE_MAX];
    char *words[1] = {path};
    tempdir_file(&dir, "text", path);
    dp_tokenize_job job = {.paths = words,
                           .n_paths = 1,
                           .field = "text",
                           .vocab = 280,
                           .folder = tempdir_file(&dir, "data", data),
                           .shard_tokens = 500};
    const dp_prepare_job prepare = {.text = data, .folder = tempdir_file(&dir, "out", folder)};
    dp_tokenized tokenized;
    dp_prepared made;
    dp_why why = {{0}};
    dp_manifest m = manifest_of(300);
    CHECK_OK(dp_tokenize(&job, &tokenized, NULL));
    CHECK_OK(dp_prepare(&prepare, &m, &made, NULL));
    CHECK(made.shards > 1 && m.n_shards == made.shards && made.tokens == tokenized.sum.tokens);
    for (uint32_t i = 0; i < m.n_shards; i++) {
        char name[64];
        char file[TEMPDIR_FILE_MAX];
        snprintf(name, sizeof name, "out/tokens-%05u.bin", i);
        dp_buf shard = read_file(tempdir_file(&dir, name, file));
        const dp_hash root = dp_object_hash(dp_buf_view(&shard), NULL);
        CHECK(dp_hash_equal(&root, &m.shards[i].root) && shard.size == m.shards[i].bytes);
        CHECK(m.shards[i].tokens == (i + 1 < m.n_shards ? 500 : made.tokens - 500 * i));
        dp_buf_close(&shard);
    }
    job.shard_tokens = 20;
    CHECK_OK(dp_tokenize(&job, &tokenized, NULL));
    CHECK(tokenized.sum.shards > DP_MANIFEST_SHARDS_MAX);
    CHECK_STATUS(dp_prepare(&prepare, &m, &made, &why), DP_TOOBIG);
    CHECK(strstr(why.text, "at most 32 shards") != NULL);
    job.shard_tokens = strtoull(strstr(why.text, "--shard-tokens ") + 15, NULL, 10);
    CHECK_OK(dp_tokenize(&job, &tokenized, NULL));
    CHECK_STATUS(dp_prepare(&prepare, &m, &made, &why), DP_BADARG);
    CHECK(strstr(why.text, "of one shard") != NULL); /* None of them holds a sequence. */
    m.context = 32;
    CHECK_OK(dp_prepare(&prepare, &m, &made, NULL));
    tempdir_close(&dir);
}

static void a_text_shorter_than_one_sequence_makes_no_run(void **state)
{
    (void)state;
    tempdir dir;
    tempdir_open(&dir);
    char text[4000];
    char path[TEMPDIR_FILE_MAX];
    char folder[TEMPDIR_FILE_MAX];
    dp_prepared made;
    dp_why why = {{0}};
    dp_manifest m = manifest_of(256); /* A byte is a token. */
    tiny_run_text(text, sizeof text);
    m.context = 99;
    m.val_per_mille = 500;
    const dp_prepare_job job = {.text = tempdir_file(&dir, "text", path),
                                .folder = tempdir_file(&dir, "out", folder)};
    CHECK_OK(dp_file_write(dir.path, "text", dp_view_of(text, 198), NULL));
    CHECK_STATUS(dp_prepare(&job, &m, &made, &why), DP_BADARG);
    CHECK(strstr(why.text, "has 198 tokens, of which 99 train and 99 are held out") != NULL);
    CHECK(strstr(why.text, "model.context 99 needs 100") != NULL && m.n_shards == 0);
    CHECK_OK(dp_file_write(dir.path, "text", dp_view_of(text, 200), NULL));
    CHECK_OK(dp_prepare(&job, &m, &made, &why));
    CHECK(made.tokens == 200 && dp_manifest_samples(&m) == 1);
    tempdir_close(&dir);
}

static void the_files_of_a_folder_are_taken_in_the_order_of_their_names(void **state)
{
    (void)state;
    tempdir dir;
    tempdir_open(&dir);
    char text[4000];
    char paths[3][TEMPDIR_FILE_MAX];
    dp_prepared made;
    dp_why why = {{0}};
    dp_manifest m = manifest_of(300);
    const dp_prepare_job job = {.text = tempdir_file(&dir, "texts", paths[0]),
                                .folder = tempdir_file(&dir, "out", paths[1])};
    tiny_run_text(text, sizeof text);
    CHECK_OK(dp_folder_make(paths[0], NULL));
    CHECK_STATUS(dp_prepare(&job, &m, &made, &why), DP_NOTFOUND);
    CHECK(strstr(why.text, "no files") != NULL);
    CHECK_OK(dp_file_write(paths[0], "b.txt", dp_view_of(text, 2000), NULL));
    CHECK_OK(dp_file_write(paths[0], "a.txt", dp_view_of(text + 2000, 2000), NULL));
    CHECK_OK(dp_file_write(paths[0], "c.jsonl", dp_view_text("{\"text\": \"said\"}\n"), NULL));
    CHECK_OK(dp_file_write(paths[0], ".hidden", dp_view_text("\xff"), NULL));
    CHECK_OK(dp_prepare(&job, &m, &made, NULL));
    CHECK(made.shards == 1 && m.n_shards == 1 && made.vocab <= 300);
    dp_buf json = read_file(tempdir_file(&dir, "out/tokenizer.json", paths[2]));
    dp_buf bytes = read_file(tempdir_file(&dir, "out/tokens-00000.bin", paths[2]));
    const dp_hash root = dp_object_hash(dp_buf_view(&bytes), NULL);
    CHECK(dp_hash_equal(&root, &m.shards[0].root));
    dp_shard shard;
    dp_bpe *bpe;
    dp_buf back;
    dp_buf_init(&back, BUF_MAX);
    CHECK_OK(dp_shard_open(&shard, dp_buf_view(&bytes), NULL));
    CHECK_OK(dp_bpe_load(&bpe, dp_buf_view(&json), NULL));
    for (uint64_t i = 0; i < shard.n_tokens; i++) {
        uint32_t id;
        dp_shard_read(&shard, i, 1, &id);
        CHECK_OK(dp_bpe_decode(bpe, &id, 1, &back));
    }
    const dp_view end = dp_view_text("<|endoftext|>");
    CHECK(back.size == sizeof text + 4 + 3 * end.size);
    CHECK(memcmp(back.data, text + 2000, 2000) == 0);
    CHECK(memcmp(back.data + 2000, end.data, end.size) == 0);
    CHECK(memcmp(back.data + 2000 + end.size, text, 2000) == 0);
    dp_buf_close(&back);
    dp_bpe_close(bpe);
    dp_buf_close(&bytes);
    dp_buf_close(&json);
    tempdir_close(&dir);
}

/* Answers of twenty lengths, of which the longest do not fit into a window. */
static void write_answers(const tempdir *dir, const char *name)
{
    dp_buf lines;
    dp_buf_init(&lines, BUF_MAX);
    for (int i = 0; i < 400; i++) {
        char line[256];
        snprintf(line, sizeof line, "{\"prompt\": \"say %d times \", \"completion\": \"%.*s\"}\n%s",
                 i, 2 * (i % 20 + 1),
                 "light and darkness were over the waters and the deep, light and darkness said",
                 i == 30 ? "nothing\n" : "");
        CHECK_OK(dp_buf_append(&lines, dp_view_text(line)));
    }
    CHECK_OK(dp_file_write(dir->path, name, dp_buf_view(&lines), NULL));
    dp_buf_close(&lines);
}

static void check_windows(const tempdir *dir, const char *name, const dp_manifest *m)
{
    char path[TEMPDIR_FILE_MAX];
    dp_data data;
    uint32_t x[64];
    uint32_t y[64];
    dp_buf shard = read_file(tempdir_file(dir, name, path));
    const dp_hash root = dp_object_hash(dp_buf_view(&shard), NULL);
    CHECK(m->n_shards == 1 && dp_hash_equal(&root, &m->shards[0].root));
    CHECK(m->shards[0].bytes == shard.size && m->context == 64);
    CHECK_OK(dp_data_open(&data, dp_buf_view(&shard), 300, m->val_per_mille, NULL));
    CHECK(data.documents && dp_data_windows(&data, 64) == dp_manifest_samples(m));
    CHECK(dp_data_val_windows(&data, 64) > 0);
    for (uint64_t i = 0; i < dp_data_windows(&data, 64); i++) {
        CHECK_OK(dp_data_sample(&data, 1, i, 64, x, y));
        CHECK((x[0] & DP_TOKEN_BEGINS) != 0 && y[63] == DP_TOKEN_NO_LOSS);
    }
    dp_buf_close(&shard);
}

static void answers_are_packed_into_windows_of_the_run(void **state)
{
    (void)state;
    tempdir dir;
    char path[TEMPDIR_FILE_MAX];
    char folder[TEMPDIR_FILE_MAX];
    dp_prepared made;
    dp_why why = {{0}};
    tempdir_open(&dir);
    write_answers(&dir, "answers.jsonl");
    dp_prepare_job job = {.text = tempdir_file(&dir, "answers.jsonl", path),
                          .folder = tempdir_file(&dir, "out", folder)};
    dp_manifest m = manifest_of(300);
    m.context = 64;
    m.val_per_mille = 100;
    CHECK_STATUS(dp_prepare(&job, &m, &made, &why), DP_BADMSG);
    CHECK(strstr(why.text, "answers.jsonl, line 32: not JSON") != NULL);
    job.skip_bad_lines = true;
    CHECK_OK(dp_prepare(&job, &m, &made, &why));
    CHECK(made.counts.apart && made.counts.bad_lines == 1 && made.counts.losses > 400);
    check_windows(&dir, "out/tokens-00000.bin", &m);
    tempdir_close(&dir);
}

/* A folder of data knows no length of windows: they are those of each run that takes it. */
static void documents_of_a_folder_are_packed_for_each_run(void **state)
{
    (void)state;
    tempdir dir;
    char path[TEMPDIR_FILE_MAX];
    char data[TEMPDIR_FILE_MAX];
    char folder[TEMPDIR_FILE_MAX];
    char *words[1] = {path};
    dp_tokenized tokenized;
    dp_prepared made;
    tempdir_open(&dir);
    write_answers(&dir, "answers.jsonl");
    tempdir_file(&dir, "answers.jsonl", path);
    const dp_tokenize_job tokenize = {.paths = words,
                                      .n_paths = 1,
                                      .field = "text",
                                      .vocab = 300,
                                      .folder = tempdir_file(&dir, "data", data),
                                      .skip_bad_lines = true,
                                      .shard_tokens = 2000};
    CHECK_OK(dp_tokenize(&tokenize, &tokenized, NULL));
    CHECK(tokenized.sum.shards > 1);
    const dp_prepare_job job = {.text = data, .folder = tempdir_file(&dir, "out", folder)};
    dp_manifest m = manifest_of(300);
    m.context = 64;
    m.val_per_mille = 100;
    CHECK_OK(dp_prepare(&job, &m, &made, NULL));
    CHECK(made.counts.apart && made.counts.losses <= tokenized.counts.losses);
    CHECK(made.counts.cut == 0 && made.counts.losses == tokenized.counts.losses);
    check_windows(&dir, "out/tokens-00000.bin", &m);
    m = manifest_of(300);
    m.context = 10;
    CHECK_OK(dp_prepare(&job, &m, &made, NULL));
    CHECK(made.counts.cut > 0 && made.counts.losses < tokenized.counts.losses);
    tempdir_close(&dir);
}

static void a_manifest_file_is_filled_in(void **state)
{
    (void)state;
    tempdir dir;
    tempdir_open(&dir);
    char text[4000];
    char paths[3][TEMPDIR_FILE_MAX];
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    dp_prepared made;
    dp_manifest m = manifest_of(280);
    tiny_run_text(text, sizeof text);
    CHECK_OK(dp_manifest_encode(&m, bytes, &size));
    CHECK_OK(dp_file_write(dir.path, "text", dp_view_of(text, sizeof text), NULL));
    CHECK_OK(dp_file_write(dir.path, "before", dp_view_of(bytes, size), NULL));
    const dp_prepare_job job = {.text = tempdir_file(&dir, "text", paths[0]),
                                .folder = tempdir_file(&dir, "out", paths[1])};
    CHECK_OK(dp_prepare_files(&job, tempdir_file(&dir, "before", paths[2]), &made, NULL));
    dp_buf after = read_file(tempdir_file(&dir, "out/manifest.bin", paths[2]));
    CHECK_OK(dp_manifest_decode(&m, dp_buf_view(&after)));
    CHECK(m.n_shards == 1 && m.shards[0].tokens == made.tokens && m.vocab == 280);
    CHECK_STATUS(dp_prepare_files(&job, paths[0], &made, NULL), DP_BADMSG);
    dp_buf_close(&after);
    tempdir_close(&dir);
}

static dp_status try_text(const tempdir *dir, const char *name, dp_why *why)
{
    char path[TEMPDIR_FILE_MAX];
    char folder[TEMPDIR_FILE_MAX];
    dp_prepared made;
    dp_manifest m = manifest_of(300);
    const dp_prepare_job job = {.text = tempdir_file(dir, name, path),
                                .folder = tempdir_file(dir, "out", folder)};
    return dp_prepare(&job, &m, &made, why);
}

static void an_unusable_text_is_explained(void **state)
{
    (void)state;
    tempdir dir;
    tempdir_open(&dir);
    char path[TEMPDIR_FILE_MAX];
    dp_why why = {{0}};
    CHECK_STATUS(try_text(&dir, "none", &why), DP_NOTFOUND);
    CHECK(strstr(why.text, "none") != NULL);
    CHECK_OK(dp_file_write(dir.path, "latin1", dp_view_text("caf\xe9 au lait"), NULL));
    CHECK_STATUS(try_text(&dir, "latin1", &why), DP_BADMSG);
    CHECK(strstr(why.text, "at byte 3;") != NULL);
    CHECK_OK(dp_file_write(dir.path, "empty", dp_view_of(NULL, 0), NULL));
    CHECK_STATUS(try_text(&dir, "empty", &why), DP_BADARG);
    dp_buf small;
    dp_buf_init(&small, 4);
    CHECK_STATUS(dp_file_read(tempdir_file(&dir, "latin1", path), &small, &why), DP_TOOBIG);
    dp_buf_close(&small);
    tempdir_close(&dir);
}

/* Weights that are one file have no template of their own. */
static void the_chat_template_of_the_data_is_kept_with_weights_of_llm_c(void **state)
{
    (void)state;
    const dp_model_config config = {
        .layers = 2, .width = 32, .heads = 2, .context = TINY_CONTEXT, .vocab = 280};
    dp_model model;
    tempdir dir;
    dp_buf file;
    char text[4000];
    char paths[4][TEMPDIR_FILE_MAX];
    char *words[1] = {paths[0]};
    tempdir_open(&dir);
    tempdir_file(&dir, "text", paths[0]);
    CHECK_OK(dp_model_open(&model, &config, NULL));
    float *const theta = test_calloc(model.n_elements, sizeof *theta);
    dp_model_init(&model, 1, theta);
    dp_buf_init(&file, BUF_MAX);
    CHECK_OK(dp_llmc_write(&model, theta, DP_LLMC_FP32, &file, NULL));
    CHECK_OK(dp_file_write(dir.path, "model.bin", dp_buf_view(&file), NULL));
    tiny_run_text(text, sizeof text);
    CHECK_OK(dp_file_write(dir.path, "text", dp_view_of(text, sizeof text), NULL));
    const dp_tokenize_job job = {.paths = words,
                                 .n_paths = 1,
                                 .field = "text",
                                 .vocab = 280,
                                 .folder = tempdir_file(&dir, "data", paths[1]),
                                 .shard_tokens = 100000};
    const dp_prepare_job prepare = {.text = job.folder,
                                    .folder = tempdir_file(&dir, "out", paths[2]),
                                    .weights = tempdir_file(&dir, "model.bin", paths[3])};
    dp_tokenized tokenized;
    dp_prepared made;
    dp_why why = {{0}};
    CHECK_OK(dp_tokenize(&job, &tokenized, NULL));
    CHECK_OK(dp_file_write(job.folder, "chat_template.jinja", dp_view_text("{{ 1 }}"), NULL));
    dp_manifest m = manifest_of(280);
    dp_manifest_set_model(&m, &config);
    if (dp_prepare(&prepare, &m, &made, &why) != DP_OK) {
        fail_msg("%s", why.text);
    }
    dp_buf kept = read_file(tempdir_file(&dir, "out/chat_template.jinja", paths[0]));
    CHECK(dp_view_equal(dp_buf_view(&kept), dp_view_text("{{ 1 }}")));
    dp_buf_close(&kept);
    dp_buf_close(&file);
    test_free(theta);
    dp_model_close(&model);
    tempdir_close(&dir);
}

static void a_state_is_exported_with_its_config(void **state)
{
    (void)state;
    tiny_run run;
    tiny_run_open(&run, DP_CODEC_SPARSE, 950);
    const dp_model_config config = {
        .layers = 2, .width = 32, .heads = 2, .context = TINY_CONTEXT, .vocab = TINY_VOCAB};
    dp_model model;
    CHECK_OK(dp_model_open(&model, &config, NULL));
    float *const theta = test_calloc(model.n_elements, sizeof *theta);
    dp_model_init(&model, 1, theta);
    dp_buf bytes;
    dp_buf_init(&bytes, BUF_MAX);
    CHECK_OK(dp_state_write(3, theta, NULL, model.n_elements, &bytes));
    tempdir dir;
    tempdir_open(&dir);
    CHECK_OK(
        dp_file_write(dir.path, "manifest", dp_view_of(run.manifest, run.manifest_size), NULL));
    CHECK_OK(dp_file_write(dir.path, "state", dp_buf_view(&bytes), NULL));
    CHECK_OK(dp_file_write(dir.path, "tokenizer", dp_buf_view(&run.tokenizer), NULL));
    char paths[4][TEMPDIR_FILE_MAX];
    tempdir_file(&dir, "manifest", paths[0]);
    tempdir_file(&dir, "state", paths[1]);
    tempdir_file(&dir, "tokenizer", paths[2]);
    tempdir_file(&dir, "model", paths[3]);
    dp_why why = {{0}};
    dp_export_job job = {
        .manifest = paths[0], .state = paths[1], .tokenizer = paths[2], .folder = paths[3]};
    CHECK_OK(dp_export(&job, &why));
    char path[TEMPDIR_FILE_MAX];
    dp_buf weights = read_file(tempdir_file(&dir, "model/model.safetensors", path));
    dp_buf about = read_file(tempdir_file(&dir, "model/config.json", path));
    /* The first tensor stands right behind the header. */
    uint64_t header;
    memcpy(&header, weights.data, sizeof header);
    CHECK(memcmp(weights.data + 8 + header, theta, 4 * model.tensors[0].elements) == 0);
    CHECK(memmem(about.data, about.size, "\"vocab_size\": 300", 17) != NULL);
    dp_buf sampling = read_file(tempdir_file(&dir, "model/generation_config.json", path));
    CHECK(memmem(sampling.data, sampling.size, "eos_token_id", 12) == NULL); /* It has none. */
    dp_buf_close(&sampling);
    job.llmc = "bf16";
    CHECK_OK(dp_export(&job, &why));
    dp_buf file = read_file(tempdir_file(&dir, "model/model.bin", path));
    dp_model_config found;
    CHECK_OK(dp_llmc_config(dp_buf_view(&file), &found, &why));
    CHECK(found.vocab == TINY_VOCAB && found.width == 32);
    dp_buf_close(&file);
    job.gguf = "f32";
    CHECK_STATUS(dp_export(&job, &why), DP_BADARG);
    job.gguf = NULL;
    job.llmc = "f16";
    CHECK_STATUS(dp_export(&job, &why), DP_BADARG);
    job.llmc = NULL;
    job.state = paths[2];
    tempdir_file(&dir, "none", paths[3]);
    CHECK_STATUS(dp_export(&job, &why), DP_BADMSG);
    CHECK(strstr(why.text, "state") != NULL);
    CHECK(access(tempdir_file(&dir, "none/config.json", path), F_OK) != 0); /* It is no model. */
    dp_buf_close(&weights);
    dp_buf_close(&about);
    dp_buf_close(&bytes);
    test_free(theta);
    dp_model_close(&model);
    tempdir_close(&dir);
    tiny_run_close(&run);
}

/* "w" of 3 floats and "h", a half. */
static const char any_header[] = "{\"h\":{\"dtype\":\"F16\",\"shape\":[],\"data_offsets\":[12,14]},"
                                 "\"w\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}}";
static const uint8_t any_values[14] = {0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 0, 0, 0x40, 0x40, 0, 0x3c};

static void write_any(const tempdir *dir, const char *name)
{
    uint8_t file[8 + sizeof any_header + sizeof any_values] = {sizeof any_header - 1};
    memcpy(file + 8, any_header, sizeof any_header - 1);
    memcpy(file + 8 + sizeof any_header - 1, any_values, sizeof any_values);
    CHECK_OK(dp_file_write(dir->path, name, dp_view_of(file, sizeof file - 1), NULL));
}

static dp_manifest any_manifest(void)
{
    const dp_model_config shape = {.arch = DP_ARCH_EXTERNAL};
    dp_manifest m = manifest_of(0);
    dp_manifest_set_model(&m, &shape);
    m.val_per_mille = 0;
    m.samples = 10;
    m.trust = DP_TRUST_MEMBERS;
    m.outer_mu_milli = 900;
    return m;
}

static void any_model_is_prepared_and_exported_as_it_came(void **state)
{
    (void)state;
    tempdir dir;
    char paths[3][TEMPDIR_FILE_MAX];
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    dp_prepared made;
    dp_state first;
    dp_why why = {{0}};
    tempdir_open(&dir);
    write_any(&dir, "model.safetensors");
    dp_manifest m = any_manifest();
    const dp_prepare_job job = {.text = "",
                                .folder = tempdir_file(&dir, "out", paths[0]),
                                .weights = tempdir_file(&dir, "model.safetensors", paths[1])};
    CHECK_OK(dp_prepare(&job, &m, &made, &why));
    CHECK(made.tensors == 2 && made.elements == 4 && m.elements == 4 && m.n_shards == 0);
    dp_buf table = read_file(tempdir_file(&dir, "out/tensors.table", paths[2]));
    dp_buf init = read_file(tempdir_file(&dir, "out/init.state", paths[2]));
    const dp_hash roots[2] = {dp_object_hash(dp_buf_view(&table), NULL),
                              dp_object_hash(dp_buf_view(&init), NULL)};
    CHECK(dp_hash_equal(&roots[0], &m.tokenizer) && m.tokenizer_bytes == table.size);
    CHECK(dp_hash_equal(&roots[1], &m.init) && m.init_bytes == init.size);
    CHECK_OK(dp_state_open(&first, dp_buf_view(&init)));
    CHECK(first.elements == 64 && first.moments == 1 && first.round == 0);
    CHECK_OK(dp_manifest_encode(&m, bytes, &size));

    const dp_export_inputs in = {.manifest = dp_view_of(bytes, size),
                                 .state = dp_buf_view(&init),
                                 .tokenizer = dp_buf_view(&table)};
    dp_export_job export = {.folder = tempdir_file(&dir, "model", paths[2])};
    CHECK_OK(dp_export_views(&export, &in, &why));
    dp_buf file = read_file(tempdir_file(&dir, "model/model.safetensors", paths[0]));
    CHECK(file.size > sizeof any_values);
    CHECK(memcmp(file.data + file.size - sizeof any_values, any_values, sizeof any_values) == 0);
    export.gguf = "f32";
    CHECK_STATUS(dp_export_views(&export, &in, &why), DP_UNSUPPORTED);
    export.gguf = NULL;
    const dp_export_inputs other = {.manifest = in.manifest,
                                    .state = dp_view_of(init.data, init.size - 4),
                                    .tokenizer = in.tokenizer};
    CHECK_STATUS(dp_export_views(&export, &other, &why), DP_BADMSG);
    dp_buf_close(&file);
    dp_buf_close(&init);
    dp_buf_close(&table);
    tempdir_close(&dir);
}

static void files_of_no_model_are_named_with_their_fault(void **state)
{
    (void)state;
    tempdir dir;
    char paths[2][TEMPDIR_FILE_MAX];
    dp_prepared made = {.tensors = 77};
    dp_why why = {{0}};
    tempdir_open(&dir);
    dp_manifest m = any_manifest();
    dp_prepare_job job = {.text = "", .folder = tempdir_file(&dir, "out", paths[0])};
    CHECK_STATUS(dp_prepare(&job, &m, &made, &why), DP_BADARG);
    CHECK(strstr(why.text, "begins from a safetensors file") != NULL);
    job.weights = dir.path;
    CHECK_STATUS(dp_prepare(&job, &m, &made, &why), DP_BADARG);
    CHECK(strstr(why.text, "model.safetensors") != NULL);
    CHECK_OK(dp_file_write(dir.path, "text", dp_view_text("In the beginning"), NULL));
    job.weights = tempdir_file(&dir, "text", paths[1]);
    CHECK_STATUS(dp_prepare(&job, &m, &made, &why), DP_BADMSG);
    CHECK(strstr(why.text, "/text: this is no safetensors file") != NULL);
    CHECK_STATUS(dp_prepare_tensors(job.weights, &made, &why), DP_BADMSG);
    CHECK(made.tensors == 77 && m.elements == 0 && m.tokenizer_bytes == 0);
    write_any(&dir, "any");
    CHECK_OK(dp_prepare_tensors(tempdir_file(&dir, "any", paths[1]), &made, &why));
    CHECK(made.tensors == 2 && made.elements == 4 && made.tokenizer_bytes == 24 + 4 + 8);
    tempdir_close(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_becomes_a_tokenizer_and_a_shard),
        cmocka_unit_test(a_folder_of_data_is_taken_as_it_is),
        cmocka_unit_test(a_folder_may_have_several_shards_up_to_a_bound),
        cmocka_unit_test(a_text_shorter_than_one_sequence_makes_no_run),
        cmocka_unit_test(the_files_of_a_folder_are_taken_in_the_order_of_their_names),
        cmocka_unit_test(a_manifest_file_is_filled_in),
        cmocka_unit_test(an_unusable_text_is_explained),
        cmocka_unit_test(the_chat_template_of_the_data_is_kept_with_weights_of_llm_c),
        cmocka_unit_test(a_state_is_exported_with_its_config),
        cmocka_unit_test(any_model_is_prepared_and_exported_as_it_came),
        cmocka_unit_test(files_of_no_model_are_named_with_their_fault),
        cmocka_unit_test(answers_are_packed_into_windows_of_the_run),
        cmocka_unit_test(documents_of_a_folder_are_packed_for_each_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
