/* Statements that fail at the critical place: in the middle of an operation of several statements.
 * (Each statement of short operations in turn: test_steps.c.) */
#include "tests/unit/store/ckpt_kit.h"
#include "tests/unit/store/strike.h"

#include <unistd.h>

#include "store/chain.h"
#include "store/ckpt.h"
#include "store/journal.h"
#include "store/pieces.h"
#include "store/vote.h"

enum { SIZE = 700000, BATCH = 300000, LARGE = 17 * 1024 * 1024 };

/* call gives DP_NOMEM while the at-th such statement fails, which it meets. */
#define CHECK_STRUCK(file, text, at, call)                                                         \
    do {                                                                                           \
        strike((file), (text), (at), SQLITE_NOMEM);                                                \
        CHECK_STATUS((call), DP_NOMEM);                                                            \
        CHECK(strike_over());                                                                      \
    } while (0)

/* ---- objects ---- */

static dp_status put(shelf *s, const uint8_t *bytes, dp_hash *root)
{
    const dp_pin pin = pin_of(DP_PIN_BLOB, 1);
    return dp_object_put(s->store, dp_view_of(bytes, SIZE), &pin, root);
}

static void
an_object_of_several_batches_fails_in_any_of_its_parts_and_can_be_put_again(void **state)
{
    (void)state;
    uint8_t *bytes = noise(1, SIZE);
    dp_hash root;
    shelf s;
    shelf_open(&s);
    s.options.batch_bytes = BATCH;
    shelf_reopen(&s);
    CHECK_STRUCK("meta.db", "INSERT INTO object", 1, put(&s, bytes, &root));
    CHECK_STRUCK("chunks.db", "INSERT INTO chunk", 2, put(&s, bytes, &root));
    CHECK_STRUCK("chunks.db", "COMMIT", 1, put(&s, bytes, &root));
    CHECK_STRUCK("chunks.db", "INTO recipe", 1, put(&s, bytes, &root));
    CHECK_STRUCK("meta.db", "SET complete=1 WHERE root", 1, put(&s, bytes, &root));
    CHECK_OK(put(&s, bytes, &root));
    CHECK(holds_noise(s.store, &root, 1, SIZE));
    shelf_reopen(&s);
    CHECK(holds_noise(s.store, &root, 1, SIZE));
    free(bytes);
    shelf_close(&s);
}

static void the_flush_and_the_commit_of_an_object_in_chunks_tell_a_failure(void **state)
{
    (void)state;
    uint8_t *bytes = noise(1, SIZE);
    const dp_pin pin = pin_of(DP_PIN_STATE, 1);
    dp_hash leaves[4];
    shelf s;
    shelf_open(&s);
    const uint32_t count = dp_object_chunks(SIZE);
    const dp_hash root = dp_object_hash(dp_view_of(bytes, SIZE), leaves);
    CHECK_OK(dp_object_begin(s.store, &root, SIZE, leaves, &pin));
    for (unsigned turn = 0; turn < 2; turn++) {
        const uint8_t *at = bytes;
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t size = dp_object_chunk_size(SIZE, i);
            CHECK_OK(dp_object_put_chunk(s.store, &root, i, dp_view_of(at, size)));
            at += size;
        }
        if (turn == 0) { /* They are missing again, which is reported once. */
            CHECK_STRUCK("chunks.db", "COMMIT", 1, dp_object_flush(s.store));
            CHECK_STATUS(dp_object_flush(s.store), DP_AGAIN);
        }
    }
    CHECK_STRUCK("chunks.db", "COMMIT", 1, dp_object_collect(s.store, NULL));
    const uint8_t *at = bytes;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t size = dp_object_chunk_size(SIZE, i);
        CHECK_OK(dp_object_put_chunk(s.store, &root, i, dp_view_of(at, size)));
        at += size;
    }
    CHECK_STATUS(dp_object_flush(s.store), DP_AGAIN);
    CHECK_STRUCK("chunks.db", "BEGIN", 1, dp_object_commit(s.store, &root));
    CHECK_OK(put(&s, bytes, NULL)); /* Whole at once: known, and not complete. */
    CHECK_OK(dp_object_commit(s.store, &root));
    CHECK(holds_noise(s.store, &root, 1, SIZE));
    free(bytes);
    shelf_close(&s);
}

static void an_object_that_was_begun_and_is_put_whole_can_fail_at_its_end(void **state)
{
    (void)state;
    uint8_t *bytes = noise(1, SIZE);
    const dp_pin pin = pin_of(DP_PIN_STATE, 1);
    dp_hash leaves[4];
    dp_object_info info;
    shelf s;
    shelf_open(&s);
    const dp_hash root = dp_object_hash(dp_view_of(bytes, SIZE), leaves);
    CHECK_OK(dp_object_begin(s.store, &root, SIZE, leaves, &pin));
    CHECK_STRUCK("meta.db", "SET complete=1 WHERE root", 1, put(&s, bytes, NULL));
    CHECK_OK(dp_object_stat(s.store, &root, &info));
    CHECK(!info.complete);
    CHECK_OK(put(&s, bytes, NULL));
    CHECK(holds_noise(s.store, &root, 1, SIZE));
    free(bytes);
    shelf_close(&s);
}

static void the_commit_of_what_is_whole_tells_that_another_could_not_be_written(void **state)
{
    (void)state;
    uint8_t *bytes = noise(1, SIZE);
    uint8_t *others = noise(2, SIZE);
    const dp_pin pin = pin_of(DP_PIN_STATE, 1);
    dp_hash leaves[4];
    dp_hash whole;
    shelf s;
    shelf_open(&s);
    CHECK_OK(put(&s, bytes, &whole));
    const dp_hash root = dp_object_hash(dp_view_of(others, SIZE), leaves);
    CHECK_OK(dp_object_begin(s.store, &root, SIZE, leaves, &pin));
    const dp_view chunk = dp_view_of(others, dp_object_chunk_size(SIZE, 0));
    CHECK_OK(dp_object_put_chunk(s.store, &root, 0, chunk));
    CHECK_STRUCK("chunks.db", "COMMIT", 1, dp_object_commit(s.store, &whole));
    CHECK_STATUS(dp_object_flush(s.store), DP_AGAIN);
    CHECK_OK(dp_object_commit(s.store, &whole));
    free(others);
    free(bytes);
    shelf_close(&s);
}

static void spoil_chunks(shelf *s, const char *sql)
{
    CHECK_OK(dp_sql_exec(&s->store->chunks, sql));
}

static void a_bad_chunk_is_told_also_when_that_cannot_be_written_down(void **state)
{
    (void)state;
    uint8_t *bytes = noise(2, SIZE);
    const dp_pin pin = pin_of(DP_PIN_STATE, 1);
    dp_hash leaves[4];
    dp_object_info info;
    shelf s;
    shelf_open(&s);
    const dp_hash bad = put_noise(s.store, 1, 1000, DP_PIN_BLOB, 1);
    spoil_chunks(&s, "UPDATE chunk SET data=zeroblob(size)");
    strike("meta.db", "DELETE FROM chunk_ix WHERE hash", 1, SQLITE_NOMEM);
    CHECK_STATUS(dp_object_verify(s.store, &bad), DP_BADHASH);
    CHECK(strike_over());
    CHECK_OK(dp_object_stat(s.store, &bad, &info));
    CHECK(info.complete); /* The next reader finds out again. */

    const dp_hash root = dp_object_hash(dp_view_of(bytes, SIZE), leaves);
    CHECK_OK(dp_object_begin(s.store, &root, SIZE, leaves, &pin));
    CHECK_OK(
        dp_object_put_chunk(s.store, &root, 0, dp_view_of(bytes, dp_object_chunk_size(SIZE, 0))));
    strike("chunks.db", "COMMIT", 1, SQLITE_NOMEM); /* Of a batch that is open by chance. */
    CHECK_STATUS(dp_object_verify(s.store, &bad), DP_BADHASH);
    CHECK(strike_over());
    CHECK_OK(dp_object_stat(s.store, &bad, &info));
    CHECK(!info.complete);
    CHECK_STATUS(dp_object_flush(s.store), DP_AGAIN);
    free(bytes);
    shelf_close(&s);
}

/* ---- pieces ---- */

static dp_status put_all(dp_pieces *pieces, dp_store *store)
{
    dp_status status = DP_AGAIN;
    while (status == DP_AGAIN) {
        status = dp_pieces_put(pieces, store);
    }
    return status;
}

static void an_object_in_pieces_fails_in_any_of_them(void **state)
{
    (void)state;
    uint8_t *bytes = noise(3, LARGE);
    dp_pieces pieces = {.bytes = dp_view_of(bytes, LARGE), .pin = pin_of(DP_PIN_STATE, 3)};
    uint8_t *chunk = malloc(DP_CHUNK_BYTES_MAX);
    size_t size = 0;
    shelf s;
    shelf_open(&s);
    assert_non_null(chunk);
    CHECK_STRUCK("meta.db", "INSERT INTO object", 1, put_all(&pieces, s.store));
    CHECK_STRUCK("chunks.db", "INSERT INTO chunk", 2, put_all(&pieces, s.store));
    CHECK_STRUCK("chunks.db", "COMMIT", 1, put_all(&pieces, s.store));
    dp_pieces_drop(&pieces, s.store); /* As the caller does ... */
    CHECK_OK(dp_object_collect(s.store, NULL));
    dp_pieces_close(&pieces); /* ... and then starts again. */

    pieces = (dp_pieces){.bytes = dp_view_of(bytes, LARGE), .pin = pin_of(DP_PIN_STATE, 3)};
    while (pieces.written == 0) {
        CHECK_STATUS(dp_pieces_put(&pieces, s.store), DP_AGAIN);
    }
    spoil_chunks(&s, "UPDATE chunk SET data=zeroblob(size) WHERE id=(SELECT min(id) FROM chunk)");
    CHECK_STATUS(dp_object_read_chunk(s.store, &pieces.root, 0, chunk, DP_CHUNK_BYTES_MAX, &size),
                 DP_BADHASH);
    CHECK_STATUS(put_all(&pieces, s.store), DP_IO); /* A piece that was written is gone. */
    dp_pieces_close(&pieces);

    pieces = (dp_pieces){.bytes = dp_view_of(bytes, LARGE), .pin = pin_of(DP_PIN_STATE, 3)};
    CHECK_STRUCK("meta.db", "INTO pin", 2, put_all(&pieces, s.store)); /* The one that stays. */
    CHECK_OK(put_all(&pieces, s.store));
    CHECK_OK(dp_object_verify(s.store, &pieces.root));
    dp_pieces_close(&pieces);
    free(chunk);
    free(bytes);
    shelf_close(&s);
}

/* ---- checkpoints, room, votes ---- */

static void a_failure_while_a_checkpoint_looks_for_its_place_is_told(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    dp_ckpt ckpt = {.slot = 1, .created_ms = 1000, .object = name_of(5)};
    shelf s;
    shelf_open(&s);
    for (ckpt.round = 1; ckpt.round <= DP_CKPTS_MAX; ckpt.round++) {
        CHECK_OK(dp_ckpt_begin(s.store, &run, &ckpt));
    }
    CHECK_STATUS(dp_ckpt_begin(s.store, &run, &ckpt), DP_TOOBIG);
    for (unsigned list = 0; list < 3; list++) { /* Before, within and after the pruning. */
        const unsigned at = list * (DP_CKPTS_MAX + 1) + 1;
        CHECK_STRUCK("meta.db", "round DESC LIMIT ?", at, dp_ckpt_begin(s.store, &run, &ckpt));
    }
    shelf_close(&s);
}

static void a_bad_checkpoint_that_cannot_be_marked_is_counted_all_the_same(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    const uint8_t tensors[64] = {7};
    dp_ckpt ckpt = {.round = 1, .slot = 1, .created_ms = 1000};
    uint32_t n_good = 0;
    uint32_t n_bad = 0;
    shelf s;
    shelf_open(&s);
    CHECK_OK(dp_ckpt_save(s.store, &run, &ckpt, dp_view_of(tensors, sizeof tensors)));
    spoil_chunks(&s, "UPDATE chunk SET data=zeroblob(size)");
    for (unsigned turn = 0; turn < 2; turn++) { /* The next reader marks it. */
        strike("meta.db", "UPDATE ckpt SET state", turn + 1, SQLITE_NOMEM);
        CHECK_OK(verify_ckpts(s.store, &run, &n_good, &n_bad));
        CHECK(strike_over() == (turn == 0));
        assert_int_equal(n_bad, 1);
    }
    CHECK_OK(verify_ckpts(s.store, &run, &n_good, &n_bad));
    assert_int_equal(n_bad, 0);
    shelf_close(&s);
}

static void a_failure_while_room_is_made_is_told(void **state)
{
    (void)state;
    shelf s;
    shelf_open(&s);
    s.options.max_bytes = 1000000;
    shelf_reopen(&s);
    CHECK_STATUS(dp_store_admit(s.store, 2000000), DP_NOSPACE);
    CHECK_STRUCK("meta.db", "SELECT id,root FROM object", 1, dp_store_admit(s.store, 2000000));
    CHECK_STRUCK("meta.db", "DELETE FROM ckpt WHERE state=1", 1, dp_store_admit(s.store, 2000000));
    CHECK_STRUCK("meta.db", "SELECT id,root FROM object", 2, dp_store_admit(s.store, 2000000));
    CHECK_OK(dp_store_admit(s.store, 1000));
    shelf_close(&s);
}

static void a_chain_that_cannot_be_cut_is_told(void **state)
{
    (void)state;
    const dp_hash run = dp_hash_of("test", dp_view_text("a run"));
    shelf s;
    shelf_open(&s);
    CHECK_STRUCK("meta.db", "DELETE FROM record WHERE run=? AND slot>?", 1,
                 dp_chain_cut(s.store, &run, 0));
    CHECK_OK(dp_chain_cut(s.store, &run, 0));
    shelf_close(&s);
}

static void a_vote_key_that_could_not_be_wiped_is_still_there(void **state)
{
    (void)state;
    const dp_hash run = name_of(1);
    const dp_vote_key_row key = {.secret = {1}};
    dp_vote_key_row found;
    shelf s;
    shelf_open(&s);
    CHECK_OK(dp_vote_create_key(s.store, &run, &key));
    CHECK_STRUCK("meta.db", "UPDATE vote SET secret", 1, dp_vote_destroy_key(s.store, &run));
    CHECK_OK(dp_vote_load_key(s.store, &run, &found));
    assert_memory_equal(found.secret, key.secret, sizeof key.secret);
    CHECK_OK(dp_vote_destroy_key(s.store, &run));
    CHECK_STATUS(dp_vote_load_key(s.store, &run, &found), DP_NOTFOUND);
    shelf_close(&s);
}

static void a_ballast_that_somebody_removed_changes_nothing_about_a_full_disk(void **state)
{
    (void)state;
    shelf s;
    shelf_open(&s);
    CHECK(dp_store_reserve_held(s.store));
    assert_int_equal(unlink(shelf_file(&s, DP_STORE_RESERVE_NAME)), 0);
    strike("meta.db", "INTO kv", 1, SQLITE_FULL); /* There is room now, for that very reason. */
    CHECK_OK(dp_store_put(s.store, "vote", dp_view_text("kept")));
    CHECK(strike_over() && !dp_store_reserve_held(s.store));
    strike("meta.db", "INTO kv", 1, SQLITE_FULL);
    CHECK_STATUS(dp_store_put(s.store, "vote", dp_view_text("two")), DP_NOSPACE);
    CHECK(strike_over());
    shelf_close(&s);
}

/* ---- starts ---- */

static void damage_that_shows_itself_late_is_told_when_the_file_cannot_be_set_aside(void **state)
{
    (void)state;
    dp_store *store = NULL;
    dp_store_report report;
    dp_why why;
    shelf s;
    shelf_open(&s);
    const dp_hash root = put_noise(s.store, 1, 1000, DP_PIN_BLOB, 1);
    dp_store_close(s.store);
    s.store = NULL;
    for (int n = 1; n <= 1000; n++) { /* More than it will look through. */
        char name[40];
        snprintf(name, sizeof name, "meta.db.corrupt-%d", n);
        FILE *file = fopen(shelf_file(&s, name), "w");
        assert_non_null(file);
        assert_int_equal(fclose(file), 0);
    }
    strike("meta.db", "DELETE FROM ckpt WHERE state=0", 1, SQLITE_CORRUPT);
    CHECK_STATUS(dp_store_open(&store, s.path, &s.options, &report, &why), DP_TOOBIG);
    CHECK(strike_over() && strstr(why.text, s.path) != NULL);
    assert_int_equal(unlink(shelf_file(&s, "meta.db.corrupt-7")), 0);
    strike("meta.db", "DELETE FROM ckpt WHERE state=0", 1, SQLITE_CORRUPT);
    CHECK_OK(dp_store_open(&s.store, s.path, &s.options, &report, &why));
    CHECK(strike_over());
    assert_string_equal(report.moved_to, "meta.db.corrupt-7");
    CHECK(holds_noise(s.store, &root, 1, 1000));
    shelf_close(&s);
}

static void a_full_journal_that_cannot_be_trimmed_stays_as_it_is(void **state)
{
    (void)state;
    static dp_journal_event events[DP_JOURNAL_EVENTS_MAX / 2];
    dp_journal_event first;
    uint32_t count = 0;
    shelf s;
    shelf_open(&s);
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        snprintf(events[i].name, sizeof events[i].name, "round.commit");
    }
    CHECK_OK(dp_journal_append(s.store, events, sizeof events / sizeof events[0]));
    CHECK_OK(dp_journal_append(s.store, events, sizeof events / sizeof events[0]));
    CHECK_STRUCK("meta.db", "DELETE FROM event", 1, dp_journal_append(s.store, events, 2));
    CHECK_OK(dp_journal_read(s.store, 0, &first, 1, &count));
    CHECK(count == 1 && first.id == 1);
    CHECK_OK(dp_journal_append(s.store, events, 2));
    CHECK_OK(dp_journal_read(s.store, 0, &first, 1, &count));
    CHECK(count == 1 && first.id == 3);
    shelf_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            an_object_of_several_batches_fails_in_any_of_its_parts_and_can_be_put_again),
        cmocka_unit_test(the_flush_and_the_commit_of_an_object_in_chunks_tell_a_failure),
        cmocka_unit_test(an_object_that_was_begun_and_is_put_whole_can_fail_at_its_end),
        cmocka_unit_test(the_commit_of_what_is_whole_tells_that_another_could_not_be_written),
        cmocka_unit_test(a_bad_chunk_is_told_also_when_that_cannot_be_written_down),
        cmocka_unit_test(an_object_in_pieces_fails_in_any_of_them),
        cmocka_unit_test(a_failure_while_a_checkpoint_looks_for_its_place_is_told),
        cmocka_unit_test(a_bad_checkpoint_that_cannot_be_marked_is_counted_all_the_same),
        cmocka_unit_test(a_failure_while_room_is_made_is_told),
        cmocka_unit_test(a_chain_that_cannot_be_cut_is_told),
        cmocka_unit_test(a_vote_key_that_could_not_be_wiped_is_still_there),
        cmocka_unit_test(a_ballast_that_somebody_removed_changes_nothing_about_a_full_disk),
        cmocka_unit_test(a_full_journal_that_cannot_be_trimmed_stays_as_it_is),
        cmocka_unit_test(damage_that_shows_itself_late_is_told_when_the_file_cannot_be_set_aside),
    };
    tempdir_in_memory(); /* Many small writes, each with its syncs. */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
