#include "cli/manifest_yaml.h"

#include <stdio.h>

#include "base/rng.h"
#include "cli/demo.h"
#include "tests/lib/check.h"
#include "tests/lib/mutate.h"

static dp_manifest_file file;
static dp_why what;
static dp_why fix;

static dp_status read_text(const char *text)
{
    return dp_manifest_yaml_read(dp_view_text(text), "run.yaml", NULL, &file, &what, &fix);
}

/* The text is refused, at that line and column, with these words. */
static void refused(const char *text, const char *place, const char *words)
{
    CHECK_STATUS(read_text(text), DP_BADMSG);
    char start[64];
    snprintf(start, sizeof start, "run.yaml:%s: ", place);
    if (strncmp(what.text, start, strlen(start)) != 0 || strstr(what.text, words) == NULL) {
        print_error("got: %s\n", what.text);
        fail();
    }
}

static void the_demo_is_a_good_manifest(void **state)
{
    (void)state;
    CHECK_OK(read_text(dp_demo_kjv));
    CHECK(strcmp(file.manifest.name, "kjv") == 0);
    CHECK(file.manifest.layers == 4 && file.manifest.width == 128 && file.manifest.vocab == 1024);
    CHECK(file.manifest.batch_rows == 8 && file.manifest.lr_nano == 3000000);
    CHECK(file.manifest.round_ms == 3000 && file.manifest.voter_uptime_s == 0);
    CHECK(file.manifest.codec == DP_CODEC_SPARSE && file.text_path[0] == '\0');
}

static void the_example_in_the_documents_is_the_demo(void **state)
{
    (void)state;
    static char text[DP_YAML_BYTES_MAX];
    FILE *example = fopen("docs/examples/kjv.yaml", "re");
    assert_non_null(example);
    const size_t size = fread(text, 1, sizeof text - 1, example);
    text[size] = '\0';
    fclose(example);
    CHECK(strcmp(text, dp_demo_kjv) == 0);
}

static void absent_keys_have_their_defaults(void **state)
{
    (void)state;
    dp_manifest standard;
    dp_manifest_default(&standard);
    CHECK_OK(read_text("name: a\n"));
    CHECK(file.manifest.width == standard.width && file.manifest.schedule == standard.schedule);
}

static void a_preset_sets_what_is_not_given(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "name: a\nmodel:\n  preset: qwen3-0.6b\n  vocab: 512\n  seed: 7\n",
        "name: a\nmodel.seed: 7\nmodel.vocab: 512\nmodel.preset: qwen3-0.6b\n"};
    for (size_t i = 0; i < 2; i++) {
        CHECK_OK(read_text(texts[i]));
        const dp_manifest *const m = &file.manifest;
        CHECK(m->vocab == 512 && m->model_seed == 7);
        CHECK(m->layers == 28 && m->head_width == 128 && m->rope_theta == 1000000);
        CHECK(m->arch == DP_ARCH_LLAMA && m->qk_norm == DP_ON && m->head == DP_HEAD_TIED);
    }
    CHECK_OK(read_text("name: a\nmodel: {preset: llama-tiny, qk_norm: on, norm_eps: 1e-6}\n"));
    CHECK(file.manifest.qk_norm == DP_ON && file.manifest.norm_eps_nano == 1000);
    refused("name: a\nmodel:\n  preset: gpt5\n", "3:11", "model.preset \"gpt5\" is not known");
    CHECK(strstr(fix.text, "--keys") != NULL);
    refused("name: a\nmodel:\n  preset: gpt2-tiny\n  qk_norm: on\n", "4:12", "model.qk_norm");
}

static void a_mode_sets_what_is_not_given(void **state)
{
    (void)state;
    CHECK_OK(read_text("name: a\nround:\n  mode: diloco\n  time: 2\n"));
    const dp_manifest *const m = &file.manifest;
    CHECK(m->codec == DP_CODEC_INT8 && m->outer_mu_milli > 0 && m->alpha_milli < 1000);
    CHECK(m->round_ms == 2000);
    static const char *const texts[] = {
        "name: a\nround: {mode: diloco, codec: bf16, momentum: 0}\n",
        "name: a\nround: {momentum: 0, codec: bf16, mode: diloco}\n"};
    for (size_t i = 0; i < 2; i++) {
        CHECK_OK(read_text(texts[i]));
        CHECK(m->codec == DP_CODEC_BF16 && m->outer_mu_milli == 0 && m->alpha_milli < 1000);
    }
    CHECK_OK(read_text("name: a\nround: {mode: gossip, time: 9}\ngossip: {time: 3}\n"
                       "members: {trust: members}\n"));
    CHECK(m->pairs == DP_ON && m->round_ms == 9000 && m->gossip_round_ms == 3000);
    CHECK_OK(read_text("name: a\nround: {mode: ddp}\nmembers: {trust: members}\n"));
    CHECK(m->exchange == DP_EXCHANGE_GRADIENTS && m->inner_steps_max == 1 && m->pairs == DP_OFF);
    CHECK_OK(read_text("name: a\nround: {mode: stale}\n"));
    CHECK(m->stale == DP_ON && m->exchange == DP_EXCHANGE_UPDATES);
    refused("name: a\nround: {mode: ddp, steps_max: 2}\nmembers: {trust: members}\n", "2:31",
            "a round is one step");
    refused("name: a\nround: {mode: ddp}\n", "2:15", "write members: {trust: members}");
    refused("round: {mode: gossip}\nmembers: {trust: open}\n", "1:15", "exchanges in pairs");
    refused("name: a\nround:\n  mode: adhoc\n", "3:9", "round.mode \"adhoc\" is not known");
    CHECK(strstr(fix.text, "--keys") != NULL);
}

static void every_row_can_be_set_to_its_standard(void **state)
{
    (void)state;
    size_t count = 0;
    const dp_manifest_row *rows = dp_manifest_rows(&count);
    for (size_t i = 0; i < count; i++) {
        char text[200];
        const char *dot = strchr(rows[i].key, '.');
        assert_non_null(dot);
        snprintf(text, sizeof text, "%.*s:\n  %s: %.12g\n", (int)(dot - rows[i].key), rows[i].key,
                 dot + 1, (double)rows[i].default_value / (double)rows[i].scale);
        CHECK_OK(read_text(text));
    }
}

static void the_weights_are_read_also_where_only_their_model_makes_the_rest_right(void **state)
{
    (void)state;
    CHECK_OK(read_text("text: b\nfrom: ../SmolLM2\n"));
    CHECK(strcmp(file.from_path, "../SmolLM2") == 0);
    CHECK_STATUS(read_text("from: m\nmodel: {width: 33, heads: 2}\n"), DP_BADMSG);
    CHECK(strcmp(file.from_path, "m") == 0);
    CHECK_STATUS(read_text("colour: red\nfrom: m\n"), DP_BADMSG);
    CHECK(file.from_path[0] == '\0');
}

static void words_and_the_text_are_read(void **state)
{
    (void)state;
    CHECK_OK(
        read_text("text: ../book.txt\ntrain: {schedule: wsd}\nround: {codec: int8, time: 0.5}\n"));
    CHECK(strcmp(file.text_path, "../book.txt") == 0 && file.from_path[0] == '\0');
    CHECK(file.manifest.schedule == DP_SCHEDULE_WSD && file.manifest.codec == DP_CODEC_INT8);
    CHECK(file.manifest.round_ms == 500);
    CHECK_OK(read_text("text: b\nround: {codec: sparse, codec_keep: 32}\n"));
    CHECK(file.manifest.codec_keep == 32 && file.manifest.codec_keep_most == 0);
    CHECK_OK(read_text(
        "text: b\ntrain: {optimizer: muon, weights: bf16_sr, batch_rule: sqrt, momentum: 0.9}\n"));
    CHECK(file.manifest.optimizer == DP_OPTIM_MUON && file.manifest.weights == DP_WEIGHTS_BF16_SR);
    CHECK(file.manifest.batch_rule == DP_BATCH_SQRT && file.manifest.momentum_micro == 900000);
}

static void a_density_that_is_not_given_moves_with_the_lines(void **state)
{
    static const struct {
        const char *text;
        uint32_t keep;
        uint32_t most;
    } cases[] = {
        {"name: a\n", 32, 128},
        {"round: {mode: stale}\n", 32, 128},
        {"round: {mode: diloco, codec: sparse, alpha: 1}\n", 32, 128},
        {"round: {codec_keep: 32}\n", 32, 0},
        {"round: {codec_keep: 128}\n", 128, 0},
        {"round: {codec: int8}\n", 32, 0},
        {"round: {mode: average}\n", 32, 0},
        {"round: {mode: ddp, codec: sparse}\nmembers: {trust: members}\n", 32, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_OK(read_text(cases[i].text));
        CHECK(file.manifest.codec_keep == cases[i].keep);
        CHECK(file.manifest.codec_keep_most == cases[i].most);
    }
}

static void trust_and_codec_say_how_updates_are_added_up(void **state)
{
    (void)state;
    const dp_manifest *const m = &file.manifest;
    CHECK_OK(read_text("round: {mode: diloco}\nmembers: {trust: members}\n"));
    CHECK(m->reduce == DP_REDUCE_PARTS && m->site_sums == DP_ON);
    CHECK_OK(read_text("members.trust: members\nround: {codec: int4}\n"));
    CHECK(m->reduce == DP_REDUCE_PARTS && m->site_sums == DP_ON);
    CHECK_OK(read_text("round: {mode: diloco}\n"));
    CHECK(m->reduce == DP_REDUCE_WHOLE && m->site_sums == DP_OFF);
    CHECK_OK(read_text("round: {mode: diloco, codec: sparse}\nmembers: {trust: members}\n"));
    CHECK(m->reduce == DP_REDUCE_WHOLE);
    CHECK_OK(read_text("round: {mode: ddp, contributors_max: 33}\nmembers: {trust: members}\n"));
    CHECK(m->reduce == DP_REDUCE_WHOLE);
}

static void absent_model_keys_are_those_of_the_weights(void **state)
{
    (void)state;
    const dp_model_config weights = dp_model_preset_find("llama-tiny")->config;
    const char *const text = "model: {context: 64}\ntrain: {batch: 3}\n";
    CHECK_OK(dp_manifest_yaml_read(dp_view_text(text), "run.yaml", &weights, &file, &what, &fix));
    dp_model_config wanted = weights;
    wanted.context = 64;
    const dp_model_config found = dp_manifest_model(&file.manifest);
    CHECK(memcmp(&found, &wanted, sizeof found) == 0 && file.manifest.batch_rows == 3);
}

static void an_unknown_key_is_named_with_its_place_and_a_guess(void **state)
{
    (void)state;
    refused("model:\n  layers: 4\n  widht: 8\n", "3:3",
            "unknown key \"model.widht\" (did you mean model.width?)");
    CHECK(strcmp(fix.text, "write model.width") == 0);
    refused("nmae: x\n", "1:1", "did you mean name?");
    refused("preset: llama-tiny\n", "1:1", "did you mean model.preset?");
    refused("'': 1\n", "1:1", "unknown key \"\"");
    refused("{? : 1}\n", "1:4", "unknown key \"\"");
    refused("an_extremely_long_key_that_no_row_has_ever_had_or_will_ever_have_in_this_program: 1\n",
            "1:1", "unknown key");
    refused("zebra: 1\n", "1:1", "unknown key \"zebra\"");
    refused("model:\n  zebracrossing: 1\n", "2:3", "unknown key");
}

static void a_word_that_a_key_does_not_take_gets_a_guess(void **state)
{
    (void)state;
    refused("round: {mode: sprase}\n", "1:15", "round.mode \"sprase\" is not known");
    CHECK(strcmp(fix.text, "write mode: sparse") == 0);
    refused("model: {preset: lama-tiny}\n", "1:17", "not known");
    CHECK(strcmp(fix.text, "write preset: llama-tiny") == 0);
    refused("round: {codec: spares}\n", "1:16", "round.codec is \"spares\"");
    CHECK(strcmp(fix.text, "write codec: sparse") == 0);
    refused("round: {mode: zebra}\n", "1:15", "not known");
    CHECK(strstr(fix.text, "run validate --keys") != NULL);
}

static void a_codec_that_is_gone_is_told_with_its_successor(void **state)
{
    (void)state;
    refused("round: {codec: e3m0}\n", "1:16", "round.codec e3m0 is gone; write int4");
    CHECK(strcmp(fix.text, "write codec: int4") == 0);
    refused("round: {codec: sign}\n", "1:16", "round.codec sign is gone; write int4");
    refused("round: {codec: fp16}\n", "1:16", "round.codec fp16 is gone; write bf16");
    refused("round: {codec: random}\n", "1:16", "round.codec random is gone; write sparse");
    CHECK(strcmp(fix.text, "write codec: sparse") == 0);
    CHECK_OK(read_text("text: b\ntrain: {precision: fp16}\n"));
    refused("train: {optimizer: sign}\n", "1:20", "it must be adamw");
}

static void a_key_that_is_gone_is_told_with_what_to_do(void **state)
{
    (void)state;
    static const char *const gone[] = {"close_at",   "codec_keep_most", "codec_block",
                                       "codec_bits", "feedback_beta",   "contributors_min",
                                       "patience"};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) {
        char text[64];
        char words[64];
        snprintf(text, sizeof text, "round:\n  %s: 1\n", gone[i]);
        snprintf(words, sizeof words, "round.%s is gone: ", gone[i]);
        refused(text, "2:3", words);
        CHECK(strncmp(fix.text, "delete round.", strlen("delete round.")) == 0);
    }
    refused("round: {reduce: parts}\n", "1:9", "the owner of each part sums it");
    CHECK(strcmp(fix.text, "delete round.reduce") == 0);
    refused("round: {site_sums: on}\n", "1:9", "round.site_sums is gone: where owners sum parts");
    refused("round: {pairs: on}\n", "1:9", "round.pairs is gone: round.mode gossip");
    CHECK(strcmp(fix.text, "write round: {mode: gossip}") == 0);
    refused("round: {exchange: gradients}\n", "1:9", "round.mode ddp averages gradients");
    CHECK(strcmp(fix.text, "write round: {mode: ddp}") == 0);
    refused("round: {stale: on}\n", "1:9", "round.mode stale counts late updates");
    CHECK(strcmp(fix.text, "write round: {mode: stale}") == 0);
    refused("round:\n  close_at: 0.9\n", "2:3", "round.close_at is gone: a round ends");
    CHECK(strcmp(fix.text, "delete round.close_at") == 0);
    refused("round: {close_at: 0}\n", "1:9", "60 % and a grace");
    refused("close_at: 0.9\n", "1:1", "unknown key \"close_at\"");
    CHECK(dp_manifest_gone_find("round.time") == NULL);
}

static void numbers_of_the_wrong_kind_are_refused_where_they_stand(void **state)
{
    (void)state;
    refused("model:\n  layers: four\n", "2:11", "model.layers is \"four\"");
    refused("model: {layers: 4.5}\n", "1:17", "whole number");
    refused("model: {layers: 0}\n", "1:17", "from 1 to 128");
    refused("model: {layers: -4}\n", "1:17", "it must be");
    refused("model: {layers: 99999999999999999999999}\n", "1:17", "it must be");
    refused("train: {lr: inf}\n", "1:13", "it must be");
    refused("train: {lr: nan}\n", "1:13", "it must be");
    refused("train: {lr: 0x10}\n", "1:13", "it must be");
    refused("train: {lr: 1e-12}\n", "1:13", "it must be");
    refused("train: {lr: 3e-3kg}\n", "1:13", "it must be");
    refused("train: {lr: ''}\n", "1:13", "it must be");
    refused("round: {codec: zip}\n", "1:16", "fp32, bf16, int8, sparse");
    refused("round: {codec_keep: 24}\n", "1:21", "round.codec_keep is 24; it may be 16, 32, 64");
    refused("model: {layers: [1, 2]}\n", "1:17", "a list");
    refused("model: {layers: {a: 1}}\n", "1:17", "a section");
}

static void an_impossible_model_is_told_at_the_key_that_makes_it_so(void **state)
{
    (void)state;
    refused("name: x\nmodel:\n  heads: 3\n  width: 128\n", "4:10", "not a multiple");
    refused("model:\n  heads: 3\n", "2:10", "not a multiple");
    refused("vote: {voters_max: 4}\n", "1:20", "odd");
    refused("train: {total_tokens: 10, warmup_tokens: 20}\n", "1:42", "must be less");
    refused("name: 'a b'\n", "1:7", "letters");
}

static void structures_that_are_no_manifest_are_refused(void **state)
{
    (void)state;
    refused("", "1:1", "empty");
    CHECK_STATUS(dp_manifest_yaml_read((dp_view){0}, "run.yaml", NULL, &file, &what, &fix),
                 DP_BADMSG);
    CHECK(strstr(what.text, "run.yaml:1:1: ") != NULL && strstr(what.text, "empty") != NULL);
    refused("# only a comment\n", "2:1", "empty");
    refused("- a\n- b\n", "1:1", "key: value");
    refused("just words\n", "1:1", "key: value");
    refused("model: 4\n", "1:8", "is a section");
    refused("name: a\nname: b\n", "2:1", "given twice; first in line 1");
    refused("model: {layers: 4}\nmodel: {layers: 5}\n", "2:9", "given twice");
    refused("name: a\n---\nname: b\n", "2:1", "second document");
    refused("name: &a x\n", "1:7", "anchors");
    refused("name: *a\n", "1:7", "alias");
    refused("name: !!int 4\n", "1:7", "tags");
    refused("model: &m {layers: 4}\n", "1:8", "anchors");
    refused("{? {a: b} : c}\n", "1:4", "expected a key");
    refused("name: \"a\\0b\"\n", "1:7", "zero byte");
    refused("name: [\n", "1:7", "a list");
    refused("name: 'open\n", "2:1", "not valid YAML");
    refused("\xff\xfe", "1:1", "");
}

static void control_characters_of_the_file_do_not_reach_the_terminal(void **state)
{
    (void)state;
    CHECK_STATUS(read_text("\"\\e[2Jevil\": 1\n"), DP_BADMSG);
    CHECK(strchr(what.text, 0x1b) == NULL && strstr(what.text, "?[2Jevil") != NULL);
}

static void a_huge_file_is_refused_unread(void **state)
{
    (void)state;
    static char text[DP_YAML_BYTES_MAX + 1];
    memset(text, '#', sizeof text);
    CHECK_STATUS(
        dp_manifest_yaml_read(dp_view_of(text, sizeof text), "run.yaml", NULL, &file, &what, &fix),
        DP_BADMSG);
    CHECK(strstr(what.text, "at most") != NULL);
}

static void deep_nesting_ends_at_its_first_bracket(void **state)
{
    (void)state;
    static char text[DP_YAML_BYTES_MAX];
    memset(text, '[', sizeof text);
    CHECK_STATUS(
        dp_manifest_yaml_read(dp_view_of(text, sizeof text), "run.yaml", NULL, &file, &what, &fix),
        DP_BADMSG);
    memset(text, '{', sizeof text);
    CHECK_STATUS(
        dp_manifest_yaml_read(dp_view_of(text, sizeof text), "run.yaml", NULL, &file, &what, &fix),
        DP_BADMSG);
}

static void cut_and_damaged_manifests_never_crash(void **state)
{
    (void)state;
    const size_t size = strlen(dp_demo_kjv);
    uint8_t bytes[4096];
    dp_rng rng;
    dp_rng_init(&rng, 7);
    unsigned good = 0;
    for (size_t cut = 0; cut <= size; cut++) {
        const dp_status status =
            dp_manifest_yaml_read(dp_view_of(dp_demo_kjv, cut), "f", NULL, &file, &what, &fix);
        CHECK(status == DP_OK || (status == DP_BADMSG && strncmp(what.text, "f:", 2) == 0));
        good += status == DP_OK;
    }
    CHECK(good > 0 && good < size);
    for (int i = 0; i < 2000; i++) {
        memcpy(bytes, dp_demo_kjv, size);
        const size_t damaged = mutate(&rng, bytes, size, sizeof bytes);
        const dp_status status =
            dp_manifest_yaml_read(dp_view_of(bytes, damaged), "f", NULL, &file, &what, &fix);
        CHECK(status == DP_OK || (status == DP_BADMSG && strncmp(what.text, "f:", 2) == 0));
        CHECK(status != DP_OK || dp_manifest_check(&file.manifest, NULL) == DP_OK);
    }
}

static void adapters_are_a_section_of_the_model(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "name: a\nmodel:\n  from: base\n  arch: llama\n  adapt:\n    rank: 4\n    alpha: 6.5\n"
        "    targets: [q_proj, v_proj]\n    base: nf4\n",
        "name: a\nmodel: {adapt: {targets: \"q_proj, v_proj\", base: nf4, rank: 4, alpha: 6.5}, "
        "arch: llama, from: base}\n",
        "name: a\nfrom: base\nmodel.arch: llama\nmodel.adapt: {rank: 4, alpha: 6.5, base: nf4, "
        "targets: [v_proj, q_proj]}\n",
        "name: a\nfrom: base\nmodel.arch: llama\nmodel.adapt.rank: 4\nmodel.adapt.alpha: 6.5\n"
        "model.adapt.base: nf4\nmodel.adapt.targets: q_proj,v_proj\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        CHECK_OK(read_text(texts[i]));
        const dp_manifest *const m = &file.manifest;
        CHECK(m->adapt_rank == 4 && m->adapt_alpha_milli == 6500 && m->base_kind == DP_BASE_NF4);
        CHECK(m->adapt_targets == (DP_ADAPT_Q | DP_ADAPT_V));
        CHECK(strcmp(file.from_path, "base") == 0);
    }
    CHECK_OK(read_text("name: a\nmodel: {adapt: {rank: 4, targets: all}}\n"));
    CHECK(file.manifest.adapt_targets == 0);
    refused("name: a\nmodel: {adapt: {rank: 4, targets: [q_porj]}}\n", "2:36", "\"q_porj\"");
    CHECK(strstr(fix.text, "write targets: q_proj") != NULL);
    refused("name: a\nmodel: {adapt: {rank: 4, targets: [[q_proj]]}}\n", "2:36", "found a list");
    refused("name: a\nmodel: {adapt: {rank: 4, rank: 5}}\n", "2:26", "given twice");
    refused("name: a\nmodel: {adapt: 4}\n", "2:16", "is a section");
    refused("name: a\nmodel: {adapt: {rank: {a: 1}}}\n", "2:23", "found a section");
    refused("name: a\nmodel: {adapt: {rnk: 4}}\n", "2:17", "model.adapt.rank");
    refused("name: a\nmodel: {from: a}\nfrom: b\n", "3:7", "given twice");
    refused("name: a\nmodel: {adapt: {rank: 4, targets: q_proj}}\n", "2:35", "write c_attn");
    refused("name: a\nmodel: {adapt: {targets: all, base: int8}}\n", "2:37", "rank is not");
}

static void any_model_has_samples_and_no_shape(void **state)
{
    (void)state;
    static const char head[] = "members: {trust: members}\nmodel:\n  arch: external\n";
    char text[400];
    snprintf(text, sizeof text, "%sdata: {samples: 500, unit: 4}\n", head);
    CHECK_OK(read_text(text));
    CHECK(dp_manifest_external(&file.manifest) && file.manifest.samples == 500);
    CHECK(file.manifest.unit == 4 && file.manifest.layers == 0 && file.manifest.vocab == 0);
    CHECK(file.manifest.val_per_mille == 0 && file.manifest.model_seed == 1);
    CHECK(file.manifest.batch_rows == 8); /* The script may want to know. */
    refused(head, "3:9", "write data: {samples: N}");
    snprintf(text, sizeof text, "%s  layers: 3\ndata: {samples: 500}\n", head);
    refused(text, "3:9", "delete model.layers");
    snprintf(text, sizeof text, "%sdata: {samples: 500, val: 0.05}\n", head);
    refused(text, "3:9", "delete data.val");
    refused("model: {arch: external}\ndata: {samples: 500}\n", "1:15",
            "write members: {trust: members}");
    refused("data: {samples: 500}\n", "1:17", "only for model.arch external");
    refused("model: {arch: outer}\n", "1:15", "it must be gpt2, llama, external");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_demo_is_a_good_manifest),
        cmocka_unit_test(the_example_in_the_documents_is_the_demo),
        cmocka_unit_test(absent_keys_have_their_defaults),
        cmocka_unit_test(a_preset_sets_what_is_not_given),
        cmocka_unit_test(a_mode_sets_what_is_not_given),
        cmocka_unit_test(every_row_can_be_set_to_its_standard),
        cmocka_unit_test(the_weights_are_read_also_where_only_their_model_makes_the_rest_right),
        cmocka_unit_test(words_and_the_text_are_read),
        cmocka_unit_test(trust_and_codec_say_how_updates_are_added_up),
        cmocka_unit_test(a_density_that_is_not_given_moves_with_the_lines),
        cmocka_unit_test(absent_model_keys_are_those_of_the_weights),
        cmocka_unit_test(an_unknown_key_is_named_with_its_place_and_a_guess),
        cmocka_unit_test(a_word_that_a_key_does_not_take_gets_a_guess),
        cmocka_unit_test(a_codec_that_is_gone_is_told_with_its_successor),
        cmocka_unit_test(a_key_that_is_gone_is_told_with_what_to_do),
        cmocka_unit_test(numbers_of_the_wrong_kind_are_refused_where_they_stand),
        cmocka_unit_test(an_impossible_model_is_told_at_the_key_that_makes_it_so),
        cmocka_unit_test(structures_that_are_no_manifest_are_refused),
        cmocka_unit_test(control_characters_of_the_file_do_not_reach_the_terminal),
        cmocka_unit_test(a_huge_file_is_refused_unread),
        cmocka_unit_test(deep_nesting_ends_at_its_first_bracket),
        cmocka_unit_test(cut_and_damaged_manifests_never_crash),
        cmocka_unit_test(adapters_are_a_section_of_the_model),
        cmocka_unit_test(any_model_has_samples_and_no_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
