#include "base/run/manifest.h"
#include "base/run/run_mode.h"

#include <stdlib.h>

#include "base/rng.h"
#include "tests/lib/check.h"
#include "tests/lib/mutate.h"

/* A manifest in which every byte of keys, hashes and signature is set. */
static dp_manifest sample(void)
{
    dp_manifest manifest;

    dp_manifest_default(&manifest);
    manifest.precision = DP_PRECISION_FP32;
    manifest.members_absent_s = 0;
    manifest.codec_keep = 64;
    manifest.codec_keep_most = 0;
    /* As before version 14; other tests cover manifests with this field. */
    manifest.codec_gain = DP_OFF;
    manifest.trust = DP_TRUST_MEMBERS;
    memcpy(manifest.name, "kjv-1", 6);
    manifest.created_ms = 1700000000123;
    manifest.nonce = 0x0123456789abcdefULL;
    manifest.tokenizer_bytes = 50000;
    manifest.n_shards = 3;
    for (uint32_t i = 0; i < manifest.n_shards; i++) {
        manifest.shards[i].bytes = 4000000 + i;
        manifest.shards[i].tokens = 2000000 - i;
        memset(manifest.shards[i].root.bytes, 5 + (int)i, DP_HASH_BYTES);
    }
    memset(manifest.root_key, 1, sizeof manifest.root_key);
    memset(manifest.founder, 2, sizeof manifest.founder);
    memset(manifest.founder_vote_key, 3, sizeof manifest.founder_vote_key);
    memset(manifest.tokenizer.bytes, 4, DP_HASH_BYTES);
    memset(manifest.init.bytes, 17, DP_HASH_BYTES);
    memset(manifest.signature, 6, sizeof manifest.signature);
    return manifest;
}

/* Checks that manifest is refused with a sentence that holds word. */
static void assert_refused(const dp_manifest *manifest, const char *word)
{
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    size_t size = 77;
    dp_why why = {""};

    CHECK_STATUS(dp_manifest_check(manifest, &why), DP_BADARG);
    if (strstr(why.text, word) == NULL) {
        fail_msg("\"%s\" does not name %s", why.text, word);
    }
    CHECK_STATUS(dp_manifest_encode(manifest, bytes, &size), DP_BADARG);
    assert_int_equal(size, 77);
}

static void set_row(dp_manifest *manifest, const dp_manifest_row *row, uint64_t value)
{
    const uint32_t small = (uint32_t)value;

    if (row->size == sizeof value) {
        memcpy((char *)manifest + row->offset, &value, sizeof value);
    } else {
        memcpy((char *)manifest + row->offset, &small, sizeof small);
    }
}

static void the_defaults_are_a_possible_run(void **state)
{
    const dp_manifest manifest = sample();

    (void)state;
    CHECK_OK(dp_manifest_check(&manifest, NULL));
    assert_int_equal(manifest.codec, DP_CODEC_SPARSE);
    assert_int_equal(manifest.voters_max % 2, 1);
}

static void canonical_bytes_give_the_same_manifest_back(void **state)
{
    const dp_manifest manifest = sample();
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    uint8_t again[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    size_t again_size = 0;
    dp_manifest back;

    (void)state;
    CHECK_OK(dp_manifest_encode(&manifest, bytes, &size));
    assert_memory_equal(bytes, "DPM1\x06\x00\x05kjv-1", 12);
    CHECK_OK(dp_manifest_decode(&back, dp_view_of(bytes, size)));
    CHECK_OK(dp_manifest_encode(&back, again, &again_size));
    assert_int_equal(size, again_size);
    assert_memory_equal(bytes, again, size);
    assert_string_equal(back.name, "kjv-1");
    assert_int_equal(back.nonce, manifest.nonce);
    assert_int_equal(back.members_max, manifest.members_max);
    assert_memory_equal(back.signature, manifest.signature, sizeof back.signature);
}

static void every_number_is_refused_below_and_above_its_range(void **state)
{
    size_t count = 0;
    const dp_manifest_row *const rows = dp_manifest_rows(&count);

    (void)state;
    assert_true(count > 20);
    for (size_t i = 0; i < count; i++) {
        const uint64_t top = rows[i].size == sizeof(uint64_t) ? UINT64_MAX : UINT32_MAX;

        assert_in_range(rows[i].default_value, rows[i].min, rows[i].max);
        if (rows[i].min > 0) {
            dp_manifest manifest = sample();
            set_row(&manifest, &rows[i], rows[i].min - 1);
            assert_refused(&manifest, rows[i].key);
        }
        if (rows[i].max < top) {
            dp_manifest manifest = sample();
            set_row(&manifest, &rows[i], rows[i].max + 1);
            assert_refused(&manifest, rows[i].key);
        }
    }
}

static void a_run_has_room_for_two_and_no_more_than_the_member_table(void **state)
{
    static const struct {
        uint32_t members;
        dp_status wanted;
    } cases[] = {{0, DP_BADARG}, {1, DP_BADARG}, {2, DP_OK}, {2048, DP_OK}, {2049, DP_BADARG}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dp_manifest manifest = sample();
        dp_why why = {{0}};

        manifest.members_max = cases[i].members;
        CHECK_STATUS(dp_manifest_check(&manifest, &why), cases[i].wanted);
        assert_true(cases[i].wanted == DP_OK || strstr(why.text, "members.max") != NULL);
    }
}

static void the_model_goes_in_and_out(void **state)
{
    size_t count = 0;
    const dp_model_preset *const presets = dp_model_presets(&count);

    (void)state;
    for (size_t i = 0; i < count; i++) {
        dp_manifest manifest = sample();
        uint8_t bytes[DP_MANIFEST_BYTES_MAX];
        size_t size = 0;
        dp_manifest back;

        dp_manifest_set_model(&manifest, &presets[i].config);
        CHECK_OK(dp_manifest_encode(&manifest, bytes, &size));
        CHECK_OK(dp_manifest_decode(&back, dp_view_of(bytes, size)));
        const dp_model_config config = dp_manifest_model(&back);
        assert_memory_equal(&config, &presets[i].config, sizeof config);
    }
}

static void an_impossible_model_is_named(void **state)
{
    dp_manifest manifest = sample();

    (void)state;
    manifest.qk_norm = DP_ON;
    assert_refused(&manifest, "model.qk_norm");
    manifest = sample();
    manifest.arch = DP_ARCH_LLAMA;
    manifest.kv_heads = 3;
    assert_refused(&manifest, "model.kv_heads");
}

static void contradictions_are_named(void **state)
{
    dp_manifest manifest = sample();

    (void)state;
    manifest.heads = 3;
    assert_refused(&manifest, "model.heads");
    manifest = sample();
    manifest.voters_max = 4;
    assert_refused(&manifest, "vote.voters_max");
    manifest = sample();
    manifest.warmup_tokens = manifest.total_tokens;
    assert_refused(&manifest, "train.warmup_tokens");
    manifest = sample();
    manifest.codec = DP_CODEC_KINDS;
    assert_refused(&manifest, "round.codec is 7, which is none");
    manifest = sample();
    manifest.codec_keep = 48;
    assert_refused(&manifest, "round.codec_keep");
    manifest = sample();
    manifest.schedule = (dp_schedule_kind)0;
    assert_refused(&manifest, "train.schedule");
    manifest = sample();
    manifest.tokenizer_bytes = DP_OBJECT_BYTES_MAX + 1;
    assert_refused(&manifest, "tokenizer");
    manifest = sample();
    manifest.width = 16384;
    manifest.layers = 128;
    manifest.heads = 256;
    assert_refused(&manifest, "parameters");
}

static void gradients_leave_no_choice_of_what_moves_weights(void **state)
{
    dp_manifest right = sample();

    (void)state;
    right.exchange = DP_EXCHANGE_GRADIENTS;
    right.inner_steps_max = 1;
    CHECK_OK(dp_manifest_check(&right, NULL));
    assert_int_equal(dp_manifest_moments(&right), 2);
    dp_manifest manifest = right;
    manifest.inner_steps_max = 2;
    assert_refused(&manifest, "round.steps_max");
    manifest = right;
    manifest.optimizer = DP_OPTIM_MUON;
    assert_refused(&manifest, "train.optimizer");
    manifest = right;
    manifest.weights = DP_WEIGHTS_BF16;
    assert_refused(&manifest, "train.weights");
    manifest = right;
    manifest.outer_mu_milli = 900;
    assert_refused(&manifest, "round.momentum");
    manifest = right;
    manifest.alpha_milli = 500;
    assert_refused(&manifest, "round.alpha");
    manifest = right;
    manifest.pairs = DP_ON;
    assert_refused(&manifest, "exchanges in pairs");
}

static void impossible_shards_are_named(void **state)
{
    dp_manifest manifest = sample();

    (void)state;
    manifest.shards[2].bytes = DP_OBJECT_BYTES_MAX + 1;
    assert_refused(&manifest, "shard 2");
    manifest = sample();
    manifest.shards[0].tokens = 0;
    assert_refused(&manifest, "shard 0");
    manifest = sample();
    manifest.shards[1].tokens = manifest.shards[1].bytes / 2 + 1;
    assert_refused(&manifest, "shard 1");
    manifest = sample();
    manifest.n_shards = DP_MANIFEST_SHARDS_MAX + 1;
    assert_refused(&manifest, "33 shards");
}

static void the_list_of_shards_comes_back_at_any_length(void **state)
{
    dp_manifest manifest = sample();
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    size_t none = 0;
    size_t size = 0;
    dp_manifest back;

    (void)state;
    manifest.n_shards = 0;
    CHECK_OK(dp_manifest_encode(&manifest, bytes, &none));
    for (uint32_t n = 0; n <= DP_MANIFEST_SHARDS_MAX; n++) {
        manifest.n_shards = n;
        for (uint32_t i = 0; i < n; i++) {
            manifest.shards[i] = (dp_manifest_shard){.bytes = 1000 + i, .tokens = 100 + i};
            memset(manifest.shards[i].root.bytes, (int)i, DP_HASH_BYTES);
        }
        CHECK_OK(dp_manifest_encode(&manifest, bytes, &size));
        assert_int_equal(size, none + 48 * n);
        CHECK_OK(dp_manifest_decode(&back, dp_view_of(bytes, size)));
        assert_int_equal(back.n_shards, n);
        assert_memory_equal(back.shards, manifest.shards, n * sizeof back.shards[0]);
    }
}

static void every_word_is_taken_and_no_other(void **state)
{
    size_t count = 0;
    const dp_manifest_choice *const choices = dp_manifest_choices(&count);

    (void)state;
    assert_true(count >= 5);
    for (size_t i = 0; i < count; i++) {
        int most = 0;
        char words[DP_MANIFEST_WORDS_MAX] = "";

        dp_manifest_words_text(&choices[i], words, sizeof words);
        assert_true(strlen(words) < sizeof words - 1);
        for (size_t w = 0; w < choices[i].n_words; w++) {
            dp_manifest manifest = sample();

            most = choices[i].words[w].value > most ? choices[i].words[w].value : most;
            if (strcmp(choices[i].words[w].name, "external") == 0 ||
                strcmp(choices[i].key, "model.rope_scaling") == 0) {
                /* They exclude or need others: test_manifest_external.c, test_model_config.c. */
                continue;
            }
            if (strncmp(choices[i].key, "model.", 6) == 0) {
                manifest.arch = DP_ARCH_LLAMA; /* It has all features. */
            }
            if (strncmp(choices[i].key, "model.adapt.", 12) == 0) {
                manifest.adapt_rank = 1; /* It is of adapters alone. */
            }
            memcpy((char *)&manifest + choices[i].offset, &choices[i].words[w].value, sizeof(int));
            CHECK_OK(dp_manifest_check(&manifest, NULL));
            assert_non_null(strstr(words, choices[i].words[w].name));
        }
        const bool from_zero = choices[i].words[0].value == 0;
        for (int value = from_zero ? -1 : 0; value <= most + 1;
             value += most + (from_zero ? 2 : 1)) {
            dp_manifest manifest = sample();

            memcpy((char *)&manifest + choices[i].offset, &value, sizeof value);
            assert_refused(&manifest, choices[i].key);
            assert_refused(&manifest, words);
        }
    }
}

static void names_are_plain(void **state)
{
    static const char *const bad[] = {
        "",    ".hidden", "-flag",    "a/b",
        "a b", "a\n",     "\xc3\xa9", "123456789012345678901234567890123"};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        dp_manifest manifest = sample();

        memset(manifest.name, 0, sizeof manifest.name);
        memcpy(manifest.name, bad[i], strlen(bad[i]));
        assert_refused(&manifest, "name");
    }
}

static void a_cut_or_longer_manifest_is_bad(void **state)
{
    const dp_manifest manifest = sample();
    uint8_t bytes[DP_MANIFEST_BYTES_MAX] = {0};
    size_t size = 0;
    dp_manifest back;

    (void)state;
    CHECK_OK(dp_manifest_encode(&manifest, bytes, &size));
    for (size_t cut = 0; cut < size; cut++) {
        uint8_t *const exact = malloc(cut + 1);

        assert_non_null(exact);
        memcpy(exact, bytes, cut);
        CHECK_STATUS(dp_manifest_decode(&back, dp_view_of(exact, cut)), DP_BADMSG);
        free(exact);
    }
    CHECK_STATUS(dp_manifest_decode(&back, dp_view_of(bytes, size + 1)), DP_BADMSG);
}

static void another_version_is_told_apart_from_damage(void **state)
{
    const dp_manifest manifest = sample();
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    dp_manifest back;

    (void)state;
    CHECK_OK(dp_manifest_encode(&manifest, bytes, &size));
    bytes[4] = 5;
    CHECK_STATUS(dp_manifest_decode(&back, dp_view_of(bytes, size)), DP_VERSION);
    bytes[4] = 16;
    CHECK_STATUS(dp_manifest_decode(&back, dp_view_of(bytes, size)), DP_VERSION);
    bytes[0] = 'X';
    CHECK_STATUS(dp_manifest_decode(&back, dp_view_of(bytes, size)), DP_BADMSG);
}

/* The place of a deleted setting remains in the bytes, and a run with another value needs the
 * version that has the setting. */
static void a_manifest_with_another_value_of_a_gone_setting_is_of_another_version(void **state)
{
    /* Behind them stand time of pairs and three numbers of voters and members; codec and codec_keep
     * stand before bits, and beta, alpha and momentum behind these. */
    enum { PATIENCE = 5 * 4, MIN = 6 * 4, BITS = 10 * 4, BLOCK = 12 * 4 };
    static const size_t places[] = {PATIENCE, MIN, BITS, BLOCK};
    static const uint32_t values[] = {1000, 1, 2, 0};
    const dp_manifest manifest = sample();
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    dp_manifest back;

    (void)state;
    CHECK_OK(dp_manifest_encode(&manifest, bytes, &size));
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        uint8_t *const at = &bytes[size - sizeof manifest.signature - places[i]];
        dp_reader reader = dp_reader_of(dp_view_of(at, 4));

        assert_int_equal(dp_read_u32(&reader), values[i]);
        at[0] ^= 1;
        CHECK_STATUS(dp_manifest_decode(&back, dp_view_of(bytes, size)), DP_VERSION);
        at[0] ^= 1;
    }
    CHECK_OK(dp_manifest_decode(&back, dp_view_of(bytes, size)));
}

static void a_manifest_is_of_the_first_version_that_has_all_it_says(void **state)
{
    dp_manifest manifest = sample();
    uint8_t bytes[3][DP_MANIFEST_BYTES_MAX];
    size_t size[3] = {0, 0, 0};
    dp_manifest back;

    (void)state;
    CHECK_OK(dp_manifest_encode(&manifest, bytes[0], &size[0]));
    manifest.pairs = DP_ON;
    CHECK_OK(dp_manifest_encode(&manifest, bytes[1], &size[1]));
    assert_int_equal(bytes[0][4], 6);
    assert_int_equal(bytes[1][4], 7);
    assert_int_equal(size[1], size[0] + 2);
    CHECK_OK(dp_manifest_decode(&back, dp_view_of(bytes[1], size[1])));
    assert_int_equal(back.pairs, DP_ON);
    CHECK_OK(dp_manifest_decode(&back, dp_view_of(bytes[0], size[0])));
    assert_int_equal(back.pairs, DP_OFF);
    manifest.pairs = DP_OFF;
    manifest.stale = DP_ON;
    CHECK_OK(dp_manifest_encode(&manifest, bytes[2], &size[2]));
    assert_int_equal(bytes[2][4], 9);
    assert_int_equal(size[2], size[0] + 4);
    CHECK_OK(dp_manifest_decode(&back, dp_view_of(bytes[2], size[2])));
    assert_int_equal(back.stale, DP_ON);
    bytes[2][size[2] - sizeof manifest.signature - 1] = DP_OFF;
    CHECK_STATUS(dp_manifest_decode(&back, dp_view_of(bytes[2], size[2])), DP_BADMSG);
    /* A version 7 without need would be a second form of a manifest of version 6. */
    bytes[1][size[1] - sizeof manifest.signature - 2] = DP_OFF;
    CHECK_STATUS(dp_manifest_decode(&back, dp_view_of(bytes[1], size[1])), DP_BADMSG);
}

static void rounds_of_parts_make_a_manifest_of_version_8(void **state)
{
    dp_manifest manifest = sample();
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    dp_manifest back;

    (void)state;
    manifest.codec = DP_CODEC_INT8;
    manifest.reduce = DP_REDUCE_PARTS;
    CHECK_OK(dp_manifest_encode(&manifest, bytes, &size));
    assert_int_equal(bytes[4], 8);
    CHECK_OK(dp_manifest_decode(&back, dp_view_of(bytes, size)));
    assert_int_equal(back.reduce, DP_REDUCE_PARTS);
    assert_int_equal(back.pairs, DP_OFF);
    bytes[size - sizeof manifest.signature - 1] = DP_REDUCE_WHOLE; /* A second form of version 6. */
    CHECK_STATUS(dp_manifest_decode(&back, dp_view_of(bytes, size)), DP_BADMSG);
    bytes[size - sizeof manifest.signature - 1] = 2; /* No such way to add up. */
    CHECK_STATUS(dp_manifest_decode(&back, dp_view_of(bytes, size)), DP_BADMSG);
}

static void a_sum_is_not_encoded_by_a_codec_that_drops_most_of_it(void **state)
{
    dp_manifest manifest = sample();

    (void)state;
    manifest.reduce = DP_REDUCE_PARTS;
    size_t count = 0;
    const dp_codec_row *const codecs = dp_codec_rows(&count);
    for (size_t i = 0; i < count; i++) {
        manifest.codec = codecs[i].kind;
        if (codecs[i].thins) {
            assert_refused(&manifest, "rounds of parts need");
        } else {
            CHECK_OK(dp_manifest_check(&manifest, NULL));
        }
    }
}

static void more_contributors_than_32_make_a_manifest_of_version_11(void **state)
{
    dp_manifest manifest = sample();
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    dp_manifest back;

    (void)state;
    assert_int_equal(manifest.contributors_max, 32);
    manifest.contributors_max = 1000;
    CHECK_OK(dp_manifest_encode(&manifest, bytes, &size));
    assert_int_equal(bytes[4], 11);
    CHECK_OK(dp_manifest_decode(&back, dp_view_of(bytes, size)));
    assert_int_equal(back.contributors_max, 1000);
    bytes[size - sizeof manifest.signature - 4] = 32; /* A second form of version 6. */
    bytes[size - sizeof manifest.signature - 3] = 0;
    CHECK_STATUS(dp_manifest_decode(&back, dp_view_of(bytes, size)), DP_BADMSG);
    manifest.contributors_max = 31;
    assert_refused(&manifest, "round.contributors_max");
    manifest.contributors_max = 1025;
    assert_refused(&manifest, "round.contributors_max");
    manifest.contributors_max = 33;
    manifest.stale = DP_ON;
    assert_refused(&manifest, "round.contributors_max");
    manifest.stale = DP_OFF;
    manifest.codec = DP_CODEC_INT8;
    manifest.reduce = DP_REDUCE_PARTS;
    assert_refused(&manifest, "round.contributors_max");
}

static void sums_of_sites_are_of_version_13_and_of_parts(void **state)
{
    dp_manifest manifest = sample();
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    dp_manifest back;

    (void)state;
    assert_int_equal(manifest.site_sums, DP_OFF);
    manifest.site_sums = DP_ON;
    assert_refused(&manifest, "sums of sites");
    manifest.codec = DP_CODEC_INT8;
    manifest.reduce = DP_REDUCE_PARTS;
    CHECK_OK(dp_manifest_encode(&manifest, bytes, &size));
    assert_int_equal(bytes[4], 13);
    CHECK_OK(dp_manifest_decode(&back, dp_view_of(bytes, size)));
    assert_int_equal(back.site_sums, DP_ON);
    bytes[size - sizeof manifest.signature - 1] = 0; /* A second form of version 8. */
    CHECK_STATUS(dp_manifest_decode(&back, dp_view_of(bytes, size)), DP_BADMSG);
}

static void a_run_judges_updates_from_version_15_on(void **state)
{
    dp_manifest manifest = sample();
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    dp_manifest back;

    (void)state;
    dp_manifest_default(&back);
    assert_int_equal(back.trust,
                     DP_TRUST_OPEN); /* Of a new run; one from before trusts its members. */
    manifest.trust = DP_TRUST_OPEN;
    CHECK_OK(dp_manifest_encode(&manifest, bytes, &size));
    assert_int_equal(bytes[4], 15);
    CHECK_OK(dp_manifest_decode(&back, dp_view_of(bytes, size)));
    assert_int_equal(back.trust, DP_TRUST_OPEN);
    bytes[size - sizeof manifest.signature - 1] = 0; /* A second form of version 6. */
    CHECK_STATUS(dp_manifest_decode(&back, dp_view_of(bytes, size)), DP_BADMSG);
}

static void late_updates_count_only_where_rounds_are_of_whole_updates(void **state)
{
    dp_manifest manifest = sample();

    (void)state;
    manifest.stale = DP_ON;
    CHECK_OK(dp_manifest_check(&manifest, NULL));
    manifest.pairs = DP_ON;
    assert_refused(&manifest, "late updates");
    manifest.pairs = DP_OFF;
    manifest.codec = DP_CODEC_INT8;
    manifest.reduce = DP_REDUCE_PARTS;
    assert_refused(&manifest, "late updates");
    manifest.reduce = DP_REDUCE_WHOLE;
    dp_run_mode_set(&manifest, dp_run_mode_find("ddp"));
    manifest.stale = DP_ON;
    assert_refused(&manifest, "late updates");
}

static void a_span_of_densities_makes_a_manifest_of_version_10(void **state)
{
    dp_manifest manifest = sample();
    uint8_t bytes[2][DP_MANIFEST_BYTES_MAX];
    size_t size[2] = {0, 0};
    dp_manifest back;

    (void)state;
    CHECK_OK(dp_manifest_encode(&manifest, bytes[0], &size[0]));
    manifest.codec_keep = 32;
    manifest.codec_keep_most = 128;
    CHECK_OK(dp_manifest_encode(&manifest, bytes[1], &size[1]));
    assert_int_equal(bytes[1][4], 10);
    assert_int_equal(size[1], size[0] + 8);
    CHECK_OK(dp_manifest_decode(&back, dp_view_of(bytes[1], size[1])));
    assert_int_equal(back.codec_keep_most, 128);
    bytes[1][size[1] - sizeof manifest.signature - 4] = 96; /* No density. */
    CHECK_STATUS(dp_manifest_decode(&back, dp_view_of(bytes[1], size[1])), DP_BADMSG);
    bytes[1][size[1] - sizeof manifest.signature - 4] = 0; /* A second form of version 6. */
    CHECK_STATUS(dp_manifest_decode(&back, dp_view_of(bytes[1], size[1])), DP_BADMSG);
    CHECK_OK(dp_manifest_decode(&back, dp_view_of(bytes[0], size[0])));
    assert_int_equal(back.codec_keep_most, 0);
}

static void a_span_of_densities_goes_from_dense_to_sparse(void **state)
{
    dp_manifest manifest = sample();

    (void)state;
    manifest.codec_keep = 64;
    manifest.codec_keep_most = 64;
    assert_refused(&manifest, "from 1 of 64 to 1 of 64");
    manifest.codec_keep_most = 32;
    assert_refused(&manifest, "a span of densities");
    manifest.codec_keep_most = 256;
    assert_refused(&manifest, "a span of densities");
    manifest.codec_keep_most = 127;
    assert_refused(&manifest, "a span of densities");
    manifest.codec_keep_most = 128;
    CHECK_OK(dp_manifest_check(&manifest, NULL));
    manifest.stale = DP_ON;
    CHECK_OK(dp_manifest_check(&manifest, NULL));
    manifest.stale = DP_OFF;
    manifest.codec = DP_CODEC_INT8;
    assert_refused(&manifest, "keeps some elements only");
    dp_run_mode_set(&manifest, dp_run_mode_find("ddp"));
    manifest.codec = DP_CODEC_SPARSE;
    manifest.reduce = DP_REDUCE_WHOLE;
    manifest.site_sums = DP_OFF;
    manifest.codec_keep_most = 128;
    assert_refused(&manifest, "nothing of a gradient");
}

static void damaged_bytes_give_a_status_or_their_own_canonical_form(void **state)
{
    const dp_manifest manifest = sample();
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    unsigned decoded = 0;
    dp_rng rng;

    (void)state;
    CHECK_OK(dp_manifest_encode(&manifest, bytes, &size));
    dp_rng_init(&rng, 3);
    for (unsigned i = 0; i < 20000; i++) {
        uint8_t damaged[DP_MANIFEST_BYTES_MAX];
        uint8_t again[DP_MANIFEST_BYTES_MAX];
        size_t again_size = 0;
        dp_manifest back;

        memcpy(damaged, bytes, size);
        const size_t damaged_size = mutate(&rng, damaged, size, sizeof damaged);
        if (dp_manifest_decode(&back, dp_view_of(damaged, damaged_size)) == DP_OK) {
            CHECK_OK(dp_manifest_encode(&back, again, &again_size));
            assert_int_equal(again_size, damaged_size);
            assert_memory_equal(again, damaged, again_size);
            decoded++;
        }
    }
    assert_in_range(decoded, 100, 19900);
}

static void the_run_id_covers_all_but_the_signature(void **state)
{
    const dp_manifest manifest = sample();
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;

    (void)state;
    CHECK_OK(dp_manifest_encode(&manifest, bytes, &size));
    const dp_hash id = dp_manifest_run_id(dp_view_of(bytes, size));
    const size_t signed_size = size - DP_MANIFEST_SIGNATURE_BYTES;
    const dp_hash wanted = dp_hash_of("dpnode/run/1", dp_view_of(bytes, signed_size));
    assert_true(dp_hash_equal(&id, &wanted));
    bytes[size - 1] ^= 1;
    const dp_hash resigned = dp_manifest_run_id(dp_view_of(bytes, size));
    assert_true(dp_hash_equal(&id, &resigned));
    bytes[signed_size - 1] ^= 1;
    const dp_hash other = dp_manifest_run_id(dp_view_of(bytes, size));
    assert_false(dp_hash_equal(&id, &other));
    const dp_hash of_nothing = dp_manifest_run_id((dp_view){0});
    assert_false(dp_hash_equal(&id, &of_nothing));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_defaults_are_a_possible_run),
        cmocka_unit_test(canonical_bytes_give_the_same_manifest_back),
        cmocka_unit_test(every_number_is_refused_below_and_above_its_range),
        cmocka_unit_test(a_run_has_room_for_two_and_no_more_than_the_member_table),
        cmocka_unit_test(the_model_goes_in_and_out),
        cmocka_unit_test(an_impossible_model_is_named),
        cmocka_unit_test(contradictions_are_named),
        cmocka_unit_test(gradients_leave_no_choice_of_what_moves_weights),
        cmocka_unit_test(impossible_shards_are_named),
        cmocka_unit_test(the_list_of_shards_comes_back_at_any_length),
        cmocka_unit_test(every_word_is_taken_and_no_other),
        cmocka_unit_test(names_are_plain),
        cmocka_unit_test(a_cut_or_longer_manifest_is_bad),
        cmocka_unit_test(another_version_is_told_apart_from_damage),
        cmocka_unit_test(a_manifest_with_another_value_of_a_gone_setting_is_of_another_version),
        cmocka_unit_test(a_manifest_is_of_the_first_version_that_has_all_it_says),
        cmocka_unit_test(rounds_of_parts_make_a_manifest_of_version_8),
        cmocka_unit_test(a_sum_is_not_encoded_by_a_codec_that_drops_most_of_it),
        cmocka_unit_test(sums_of_sites_are_of_version_13_and_of_parts),
        cmocka_unit_test(a_run_judges_updates_from_version_15_on),
        cmocka_unit_test(late_updates_count_only_where_rounds_are_of_whole_updates),
        cmocka_unit_test(a_span_of_densities_makes_a_manifest_of_version_10),
        cmocka_unit_test(a_span_of_densities_goes_from_dense_to_sparse),
        cmocka_unit_test(more_contributors_than_32_make_a_manifest_of_version_11),
        cmocka_unit_test(damaged_bytes_give_a_status_or_their_own_canonical_form),
        cmocka_unit_test(the_run_id_covers_all_but_the_signature),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
