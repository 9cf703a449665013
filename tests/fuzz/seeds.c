/* The seeds with records in them, made anew: a record's version reaches into four messages, and a
 * seed of an older one is refused at its first byte. fuzz_seeds FOLDER writes FOLDER/record/... and
 * FOLDER/message/...; --check FOLDER only compares with what is there, and ends with 1 where it
 * differs. Nothing in them is signed: no decoder looks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "gossip/identity/renewal.h"
#include "gossip/ledger/harm.h"
#include "gossip/member/summary.h"
#include "gossip/record/lists.h"
#include "gossip/record/part_sum.h"
#include "gossip/record/wire.h"
#include "gossip/round/round_msg.h"
#include "gossip/vote/commit_msg.h"

enum { VOTERS = 3, LISTED = 2 };

static bool only_check;
static const char *corpus;
static unsigned wrong;

static bool is_there(const char *path, dp_view bytes)
{
    static uint8_t room[DP_MESSAGE_MAX + 1];
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return false;
    }
    const size_t size = fread(room, 1, sizeof room, file);
    DP_IGNORE(fclose(file) != 0); /* only read */
    return dp_view_equal(dp_view_of(room, size), bytes);
}

static void seed(const char *name, dp_view bytes)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", corpus, name);
    if (only_check) {
        if (!is_there(path, bytes)) {
            fprintf(stderr, "%s is not what fuzz_seeds makes; write it anew with fuzz_seeds %s\n",
                    path, corpus);
            wrong++;
        }
        return;
    }
    FILE *file = fopen(path, "wb");
    const bool written = file != NULL && fwrite(bytes.data, 1, bytes.size, file) == bytes.size;
    if ((file != NULL && fclose(file) != 0) || !written) {
        perror(path);
        wrong++;
    }
}

static dp_hash hash_of(uint8_t of)
{
    dp_hash hash;
    memset(hash.bytes, of, sizeof hash.bytes);
    return hash;
}

static dp_peer peer_of(uint8_t of)
{
    dp_peer peer;
    memset(peer.bytes, of, sizeof peer.bytes);
    return peer;
}

static bool sign_nothing(void *context, int key, const char *domain, dp_view bytes,
                         uint8_t signature[DP_SIGNATURE_BYTES])
{
    (void)context;
    (void)key;
    (void)domain;
    (void)bytes;
    memset(signature, 0, DP_SIGNATURE_BYTES);
    return true;
}

static dp_record record_of(dp_record_kind kind)
{
    dp_record record = {.kind = kind,
                        .has_config = true,
                        .run = hash_of(1),
                        .fork = hash_of(2),
                        .slot = 8,
                        .prev = hash_of(3),
                        .time_ms = 1700000000000,
                        .round = 7,
                        .state_root = hash_of(5)};
    record.config.n_voters = VOTERS;
    for (uint8_t i = 0; i < VOTERS; i++) {
        dp_voter_entry *entry = &record.config.voters[i];
        entry->voter.peer = peer_of((uint8_t)(0x10 + i));
        memset(entry->voter.key, 0x80 + i, sizeof entry->voter.key);
        entry->kept = kind == DP_RECORD_ROUND && i == 0;
        memset(entry->signature, entry->kept ? 0 : 0x40 + i, sizeof entry->signature);
    }
    return record;
}

/* As encode_round, its two contributions in the first of two parts; the second part has no
 * result. */
static dp_view encode_parts(uint8_t *out, dp_view round)
{
    static dp_record record;
    static dp_record again;
    dp_view bytes;

    dp_assert(dp_record_decode(&record, round) == DP_OK);
    record.parted = true;
    record.n_parts = 2;
    record.parts[0] = (dp_part_row){.has = true,
                                    .owner = peer_of(0x11),
                                    .root = hash_of(0x30),
                                    .bytes = 2048,
                                    .from = 3,
                                    .q = 1U << 31};
    record.parts[1] = (dp_part_row){.has = false};
    record.listed[0].rate = 12500;
    dp_assert(dp_record_encode(&record, out, DP_RECORD_BYTES_MAX, &bytes) == DP_OK);
    dp_assert(dp_record_decode(&again, bytes) == DP_OK);
    return bytes;
}

/* The same, its part from one sum of both. */
static dp_view encode_sums(uint8_t *out, dp_view parts)
{
    static dp_record record;
    static dp_record again;
    dp_view bytes;

    dp_assert(dp_record_decode(&record, parts) == DP_OK);
    record.n_sums = 1;
    record.sums[0] = (dp_site_sum){.collector = 1, .from = 3, .root = hash_of(0x33), .bytes = 512};
    record.parts[0].n_sums = 1;
    dp_assert(dp_record_encode(&record, out, DP_RECORD_BYTES_MAX, &bytes) == DP_OK);
    dp_assert(dp_record_decode(&again, bytes) == DP_OK);
    return bytes;
}

/* The same round, whose proposer says that lines were slow. */
static dp_view encode_slow(uint8_t *out, dp_view round)
{
    static dp_record record;
    dp_view bytes;

    dp_assert(dp_record_decode(&record, round) == DP_OK);
    record.lines = DP_LINES_SLOW;
    dp_assert(dp_record_encode(&record, out, DP_RECORD_BYTES_MAX, &bytes) == DP_OK);
    return bytes;
}

/* Of a run whose updates may be thinner, and of one whose rounds a share closes, which is gone. */
static void manifest_seeds(void)
{
    uint8_t room[DP_MANIFEST_BYTES_MAX];
    dp_manifest manifest;
    size_t size = 0;

    dp_manifest_default(&manifest);
    manifest.precision = DP_PRECISION_FP32;
    manifest.codec_keep = 64; /* As runs had it that gave their span by key. */
    dp_assert(dp_manifest_encode(&manifest, room, &size) == DP_OK);
    seed("manifest/span", dp_view_of(room, size));
    room[size - DP_MANIFEST_SIGNATURE_BYTES - 11] = 1; /* Behind it: sums, gain, absent, trust. */
    dp_assert(dp_manifest_decode(&manifest, dp_view_of(room, size)) == DP_VERSION);
    seed("manifest/gone_close", dp_view_of(room, size));

    /* A new run, whose nodes choose their precision. */
    dp_manifest_default(&manifest);
    dp_assert(dp_manifest_encode(&manifest, room, &size) == DP_OK);
    seed("manifest/auto", dp_view_of(room, size));

    /* A run of any model, founded. */
    const dp_model_config shape = {.arch = DP_ARCH_EXTERNAL};
    dp_manifest_default(&manifest);
    manifest.precision = DP_PRECISION_FP32;
    dp_manifest_set_model(&manifest, &shape);
    manifest.val_per_mille = 0;
    manifest.trust = DP_TRUST_MEMBERS;
    manifest.samples = 5000;
    manifest.unit = 4;
    manifest.elements = 12;
    manifest.tokenizer = hash_of(1);
    manifest.tokenizer_bytes = 60;
    manifest.init = hash_of(2);
    manifest.init_bytes = 288;
    dp_assert(dp_manifest_encode(&manifest, room, &size) == DP_OK);
    seed("manifest/any_model", dp_view_of(room, size));

    /* A run of adapters, founded. */
    dp_manifest_default(&manifest);
    manifest.precision = DP_PRECISION_FP32;
    manifest.adapt_rank = 8;
    manifest.adapt_alpha_milli = 16000;
    manifest.adapt_targets = DP_ADAPT_Q | DP_ADAPT_K | DP_ADAPT_V;
    manifest.base_kind = DP_BASE_NF4;
    manifest.base = hash_of(3);
    manifest.base_bytes = 700000;
    dp_assert(dp_manifest_encode(&manifest, room, &size) == DP_OK);
    seed("manifest/adapters", dp_view_of(room, size));
}

/* As encode_round, in lists; another 32 before them, so that there are two. */
static dp_view encode_lists(uint8_t *out, dp_view round)
{
    static dp_record record;
    static dp_record again;
    dp_view bytes;

    dp_assert(dp_record_decode(&record, round) == DP_OK);
    record.in_lists = true;
    memmove(&record.listed[DP_LIST_ROWS_MAX], &record.listed[0],
            record.n_listed * sizeof record.listed[0]);
    for (uint8_t i = 0; i < DP_LIST_ROWS_MAX; i++) {
        record.listed[i] = record.listed[DP_LIST_ROWS_MAX];
        record.listed[i].peer = peer_of(0);
        record.listed[i].peer.bytes[31] = i;
        record.listed[i].root = hash_of((uint8_t)(0x80 + i));
    }
    record.n_listed += DP_LIST_ROWS_MAX;
    dp_assert(dp_record_encode(&record, out, DP_RECORD_WHOLE_MAX, &bytes) == DP_OK);
    dp_assert(dp_record_decode(&again, bytes) == DP_OK);
    return bytes;
}

/* A voter asks for lists, and is given one. */
static void list_seeds(dp_view round_of_lists)
{
    static uint8_t room[DP_LIST_MESSAGE_MAX];
    const size_t voted = dp_record_voted(round_of_lists).size;
    dp_list_get_msg get = {
        .asker = peer_of(0x11), .n = 2, .hashes = {hash_of(0x40), hash_of(0x41)}};
    dp_view list;

    dp_writer writer = dp_writer_of(room, sizeof room);
    dp_list_get_msg_write(&writer, &get);
    dp_assert(dp_list_get_msg_read(dp_view_of(room, writer.size), &get) == DP_OK);
    seed("message/list_get", dp_view_of(room, writer.size));
    writer = dp_writer_of(room, sizeof room);
    dp_list_msg_write(&writer,
                      dp_view_of(round_of_lists.data + voted + dp_listing_bytes(DP_LIST_ROWS_MAX),
                                 dp_listing_bytes(LISTED)));
    dp_assert(dp_list_msg_read(dp_view_of(room, writer.size), &list) == DP_OK);
    seed("message/list", dp_view_of(room, writer.size));
}

/* The messages of a round of parts. */
static void part_seeds(void)
{
    static uint8_t room[DP_MESSAGE_MAX];
    static dp_part_word word;
    static dp_ready ready;
    dp_writer writer = dp_writer_of(room, sizeof room);

    ready = (dp_ready){.peer = peer_of(0x10),
                       .round = 7,
                       .base = hash_of(4),
                       .tokens = 1500,
                       .steps = 10,
                       .state_root = hash_of(5),
                       .parted = true,
                       .energy = 1 << 20,
                       .rate = 12500,
                       .parts = {.n = 2, .refs = {{hash_of(0x31), 2048}, {hash_of(0x32), 1024}}}};
    ready.root = dp_part_list_root(&ready.parts);
    ready.bytes = dp_part_list_bytes(&ready.parts);
    dp_ready_msg_write(&writer, &ready);
    dp_assert(dp_ready_msg_read(dp_view_of(room, writer.size), &ready) == DP_OK && ready.parted);
    seed("message/ready_of_parts", dp_view_of(room, writer.size));
    word =
        (dp_part_word){.owner = peer_of(0x11),
                       .round = 7,
                       .base = hash_of(4),
                       .part = 1,
                       .root = hash_of(0x30),
                       .bytes = 2048,
                       .n = 2,
                       .sources = {{peer_of(0x10), hash_of(0x20)}, {peer_of(0x11), hash_of(0x21)}}};
    writer = dp_writer_of(room, sizeof room);
    dp_part_msg_write(&writer, &word);
    dp_assert(dp_part_msg_read(dp_view_of(room, writer.size), &word) == DP_OK);
    seed("message/part", dp_view_of(room, writer.size));
    word.n_sums = 1;
    word.sums[0] = (dp_site_sum){.collector = 1, .from = 3, .root = hash_of(0x33), .bytes = 512};
    writer = dp_writer_of(room, sizeof room);
    dp_part_msg_write(&writer, &word);
    dp_assert(dp_part_msg_read(dp_view_of(room, writer.size), &word) == DP_OK);
    seed("message/part_of_sums", dp_view_of(room, writer.size));
    word.n_sums = 0;
    writer = dp_writer_of(room, sizeof room);
    dp_site_sum_msg_write(&writer, &word);
    dp_assert(dp_site_sum_msg_read(dp_view_of(room, writer.size), &word) == DP_OK);
    seed("message/subtotal", dp_view_of(room, writer.size));
    const dp_collect told = {
        .round = 7, .base = hash_of(4), .part = 1, .n = 2, .peers = {peer_of(0x10), peer_of(0x11)}};
    writer = dp_writer_of(room, sizeof room);
    dp_collect_write(&writer, &told);
    seed("message/collect", dp_view_of(room, writer.size));
    const dp_crypto unsigned_crypto = {.sign = sign_nothing};
    const dp_signed_summary said = {
        .peer = peer_of(0x10),
        .incarnation = 3,
        .sequence = 9,
        .name = "atlas",
        .summary = {.slot = 8, .round = 7, .mode = DP_MODE_SYNC, .has_trainer = true}};
    seed("message/summary",
         dp_view_of(room, dp_summary_sign(&said, &unsigned_crypto, &(dp_run_id){{0}}, room)));
}

/* A round of two, a third is late; one comes, one leaves, one exchange is fenced off. */
static dp_view encode_round(uint8_t *out)
{
    static const uint8_t credential[] = "credential";
    static dp_record record;
    static dp_record again;
    dp_view bytes;

    record = record_of(DP_RECORD_ROUND);
    record.base = hash_of(4);
    record.alpha = 65536;
    record.tokens_total = 3000;
    record.w_total = 3000;
    record.clip_median = 1 << 20;
    record.n_state = 2;
    record.n_listed = LISTED;
    record.n_late = 1;
    record.late[0] = peer_of(0x12);
    for (uint8_t i = 0; i < LISTED; i++) {
        record.state[i].voter = i;
        record.listed[i] = (dp_listed){.peer = peer_of((uint8_t)(0x10 + i)),
                                       .root = hash_of((uint8_t)(0x20 + i)),
                                       .bytes = 4096,
                                       .tokens = 1500,
                                       .carried = i,
                                       .reach = {.leased = 100, .own = 5},
                                       .steps = 10,
                                       .loss_micro = 3000000,
                                       .energy = 1 << 20,
                                       .w = 1500,
                                       .clip = 65536,
                                       .q = 1U << 30};
    }
    record.config.n_admits = 1;
    record.config.admits[0] = (dp_admit){
        .peer = peer_of(0x13), .credential = dp_view_of(credential, sizeof credential - 1)};
    record.config.n_removes = 2;
    record.config.removes[0] =
        (dp_remove){.peer = peer_of(0x12), .reason = DP_REMOVE_LEFT, .incarnation = 3};
    record.config.removes[1] = (dp_remove){.peer = peer_of(0x14), .reason = DP_REMOVE_ABSENT};
    record.config.n_fences = 1;
    record.config.fences[0] = (dp_fence){.peer = peer_of(0x11), .incarnation = 2};
    dp_assert(dp_record_encode(&record, out, DP_RECORD_BYTES_MAX, &bytes) == DP_OK);
    dp_assert(dp_record_decode(&again, bytes) == DP_OK);
    return bytes;
}

static dp_view encode_fork(uint8_t *out)
{
    static dp_record record;
    static dp_record again;
    dp_view bytes;

    record = record_of(DP_RECORD_FORK);
    memset(record.root_signature, 0x77, sizeof record.root_signature);
    dp_assert(dp_record_encode(&record, out, DP_RECORD_BYTES_MAX, &bytes) == DP_OK);
    dp_assert(dp_record_decode(&again, bytes) == DP_OK);
    return bytes;
}

/* The same with a word about an invite, which is a message too. */
static void revoke_seeds(dp_view round)
{
    static dp_record record;
    static uint8_t room[DP_RECORD_BYTES_MAX];
    const dp_invite_revoke word = {.id = {{9}}, .until_ms = UINT64_MAX, .by = peer_of(0x10)};
    const dp_renewal renewal = {.peer = peer_of(0x11), .until_ms = 77, .by = peer_of(0x10)};
    dp_writer writer = dp_writer_of(room, sizeof room);
    dp_view bytes;

    dp_invite_revoke_msg_write(&writer, &word);
    seed("message/invite_revoke", dp_view_of(room, writer.size));
    writer = dp_writer_of(room, sizeof room);
    dp_renewal_msg_write(&writer, &renewal);
    seed("message/renewal", dp_view_of(room, writer.size));
    const dp_harm harm = {.accused = peer_of(0x11), .round = 9, .voter = peer_of(0x10)};
    writer = dp_writer_of(room, sizeof room);
    dp_harm_write(&writer, &harm);
    seed("message/harm", dp_view_of(room, writer.size));
    dp_assert(dp_record_decode(&record, round) == DP_OK);
    record.config.has_revoked = true;
    record.config.n_revoked = 1;
    record.config.revoked[0] = word;
    dp_assert(dp_record_encode(&record, room, sizeof room, &bytes) == DP_OK);
    seed("record/round_that_revokes", bytes);
}

/* The same with a new join secret. */
static void rotate_seeds(dp_view round)
{
    static dp_record record;
    static uint8_t room[DP_RECORD_BYTES_MAX];
    const dp_rotation word = {.next = {.epoch = 3, .commitment = hash_of(5)}, .by = peer_of(0x10)};
    const dp_secret secret = {.epoch = 3, .bytes = {7}};
    dp_writer writer = dp_writer_of(room, sizeof room);
    dp_view bytes;

    dp_rotation_msg_write(&writer, &word, &secret);
    seed("message/rotate", dp_view_of(room, writer.size));
    writer = dp_writer_of(room, sizeof room);
    dp_secret_msg_write(&writer, &secret);
    seed("message/secret", dp_view_of(room, writer.size));
    dp_assert(dp_record_decode(&record, round) == DP_OK);
    record.config.has_rotation = true;
    record.config.rotation = word;
    dp_assert(dp_record_encode(&record, room, sizeof room, &bytes) == DP_OK);
    seed("record/round_that_rotates", bytes);
}

static void vote_seed(const char *name, uint8_t type, dp_view record)
{
    static uint8_t room[DP_MESSAGE_MAX];
    static dp_vote_msg msg;
    static dp_vote_msg again;
    dp_writer writer = dp_writer_of(room, sizeof room);

    msg = (dp_vote_msg){.vote = {.type = type,
                                 .voter = 1,
                                 .fork = hash_of(2),
                                 .slot = 8,
                                 .prev = hash_of(3),
                                 .ballot = 4,
                                 .accepted = type == DP_MSG_PROMISE ? 3 : 0,
                                 .hash = dp_record_hash(record)},
                        .record = record};
    for (uint8_t i = 0; type == DP_MSG_PROPOSE && i < 2; i++) {
        msg.just[msg.n_just++] = (dp_vote){.type = DP_MSG_PROMISE,
                                           .voter = i,
                                           .fork = msg.vote.fork,
                                           .slot = msg.vote.slot,
                                           .prev = msg.vote.prev,
                                           .ballot = msg.vote.ballot,
                                           .accepted = i == 0 ? 0 : 3,
                                           .hash = i == 0 ? hash_of(0) : msg.vote.hash};
    }
    dp_vote_msg_write(&writer, &msg);
    dp_assert(!writer.full);
    dp_assert(dp_vote_msg_read(dp_view_of(room, writer.size), &again) == DP_OK);
    seed(name, dp_view_of(room, writer.size));
}

static void chain_seeds(dp_view round, dp_view fork, dp_view cert)
{
    static uint8_t room[DP_MESSAGE_MAX];
    static dp_wire_records records;
    dp_decide_msg decide;

    dp_writer writer = dp_writer_of(room, sizeof room);
    dp_decide_msg_write(&writer, 8, cert, round);
    dp_assert(dp_decide_msg_read(dp_view_of(room, writer.size), &decide) == DP_OK);
    seed("message/decide", dp_view_of(room, writer.size));
    writer = dp_writer_of(room, sizeof room);
    dp_wire_begin_records(&writer, 8);
    dp_assert(dp_wire_add_record(&writer, round, cert) && dp_wire_add_record(&writer, fork, cert));
    dp_assert(dp_wire_read_records(dp_view_of(room, writer.size), &records) == DP_OK);
    seed("message/records", dp_view_of(room, writer.size));
}

int main(int argc, char **argv)
{
    static uint8_t rooms[4][DP_RECORD_BYTES_MAX];
    static uint8_t lists_room[DP_RECORD_WHOLE_MAX];
    static uint8_t cert_room[DP_CERT_OF_RECORD_BYTES_MAX];
    const dp_cert_of_record seals = {.ballot = 4, .n = 2, .seals = {{.voter = 0}, {.voter = 2}}};
    dp_view cert;

    only_check = argc == 3 && strcmp(argv[1], "--check") == 0;
    if (argc != 2 && !only_check) {
        fputs("usage: fuzz_seeds [--check] FOLDER\n", stderr);
        return 64;
    }
    corpus = argv[argc - 1];
    const dp_view round = encode_round(rooms[0]);
    const dp_view fork = encode_fork(rooms[1]);
    dp_assert(dp_cert_of_record_encode(&seals, cert_room, sizeof cert_room, &cert) == DP_OK);
    seed("record/round", round);
    const dp_view parts = encode_parts(rooms[2], round);
    seed("record/round_of_parts", parts);
    seed("record/round_of_sums", encode_sums(rooms[3], parts));
    seed("record/round_of_slow_lines", encode_slow(rooms[2], round));
    manifest_seeds();
    seed("record/fork", fork);
    vote_seed("message/promise", DP_MSG_PROMISE, round);
    vote_seed("message/propose", DP_MSG_PROPOSE, round);
    chain_seeds(round, fork, cert);
    revoke_seeds(round);
    rotate_seeds(round);
    part_seeds();
    const dp_view lists = encode_lists(lists_room, round);
    seed("record/round_of_lists", lists);
    list_seeds(lists);
    return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
