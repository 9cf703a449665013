/* The welcome of a script: its table of tensors beside the run's, the memory that it shares, and
 * the weights on their way through that. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/run/samples.h"
#include "compute/machine/stopwatch.h"
#include "compute/model/tensor_table.h"
#include "compute/worker/script_inside.h"

enum { SHAPE_TEXT_MAX = 128 };

static void shape_text(const dp_tensor_row *row, char text[SHAPE_TEXT_MAX])
{
    size_t at = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < row->n_dims && at < SHAPE_TEXT_MAX; i++) {
        at +=
            (size_t)snprintf(text + at, SHAPE_TEXT_MAX - at, i > 0 ? " x %u" : "%u", row->shape[i]);
    }
}

static bool same_shape(const dp_tensor_row *a, const dp_tensor_row *b)
{
    return a->n_dims == b->n_dims &&
           memcmp(a->shape, b->shape, a->n_dims * sizeof a->shape[0]) == 0;
}

/* In a table's order. */
static bool comes_before(dp_view a, dp_view b)
{
    const int order = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);
    return order < 0 || (order == 0 && a.size < b.size);
}

/* Names the first tensor that differs. */
static dp_status compare_tables(const dp_tensor_table *run, const dp_tensor_table *script,
                                dp_why *why)
{
    dp_tensor_walk walks[2] = {{0}, {0}};
    dp_tensor_row a;
    dp_tensor_row b;
    char shapes[2][SHAPE_TEXT_MAX];
    for (;;) {
        const bool has_a = dp_tensor_table_next(run, &walks[0], &a);
        const bool has_b = dp_tensor_table_next(script, &walks[1], &b);
        if (!has_a && !has_b) {
            return DP_OK;
        }
        if (!has_a || !has_b || !dp_view_equal(a.name, b.name)) {
            const bool lacks = !has_b || (has_a && comes_before(a.name, b.name));
            const dp_view odd = lacks ? a.name : b.name;
            return dp_why_set(
                why, DP_BADMSG,
                lacks ? "the run has a tensor \"%.*s\", the script has none of that name"
                      : "the script has a tensor \"%.*s\", the run has none of that name",
                (int)odd.size, (const char *)odd.data);
        }
        if (!same_shape(&a, &b)) {
            shape_text(&a, shapes[0]);
            shape_text(&b, shapes[1]);
            return dp_why_set(why, DP_BADMSG,
                              "tensor \"%.*s\" is (%s) in the run and (%s) in the script",
                              (int)a.name.size, (const char *)a.name.data, shapes[0], shapes[1]);
        }
    }
}

static dp_status check_tensors(const dp_script *s, int file, dp_why *why)
{
    dp_buf bytes;
    dp_tensor_table run;
    dp_tensor_table script;
    if (file < 0) {
        return dp_why_set(why, DP_BADMSG, "HELLO came without the table of tensors");
    }
    dp_buf_init(&bytes, DP_TENSOR_TABLE_BYTES_MAX);
    dp_status status = dp_script_read_file(file, DP_TENSOR_TABLE_BYTES_MAX, &bytes);
    if (status != DP_OK) {
        status = dp_why_set(why, status, "the script's table of tensors cannot be read");
    } else {
        status = dp_tensor_table_open(&script, dp_buf_view(&bytes), why);
    }
    if (status == DP_OK) {
        const dp_view own =
            s->layout != NULL ? dp_hf_layout_table(s->layout) : dp_trainer_table(s->setup.trainer);
        status = dp_tensor_table_open(&run, own, why);
    }
    if (status == DP_OK) {
        status = compare_tables(&run, &script, why);
    }
    dp_buf_close(&bytes);
    return status;
}

static bool map_memory(dp_script_session *on, int fd, size_t bytes)
{
    if (ftruncate(fd, (off_t)bytes) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
        return false;
    }
    void *const at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        return false;
    }
    on->header = at;
    on->buffer = (float *)((uint8_t *)at + DP_SCRIPT_HEADER_BYTES);
    on->bytes = bytes;
    return true;
}

static uint64_t elements_of_tensors(const dp_script *s)
{
    return s->layout != NULL ? dp_hf_layout_elements(s->layout)
                             : dp_trainer_manifest(s->setup.trainer)->elements;
}

/* Of the buffer: in a run of any model it is the trainer's vector, with zeros at its end. */
static uint64_t elements_of_buffer(const dp_script *s)
{
    return s->layout != NULL ? dp_hf_layout_elements(s->layout)
                             : dp_trainer_elements(s->setup.trainer);
}

/* Of the session; what is there already when it fails goes with it. */
static bool get_memory(dp_script *s, int *fd)
{
    dp_script_session *const on = &s->session;
    const size_t bytes = DP_SCRIPT_HEADER_BYTES + elements_of_buffer(s) * sizeof(float);
    if (s->layout != NULL) {
        on->arena = dp_alloc(dp_trainer_elements(s->setup.trainer), sizeof *on->arena);
        if (on->arena == NULL) {
            return false;
        }
    }
    *fd = memfd_create("dpnode-script", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return *fd >= 0 && map_memory(on, *fd, bytes);
}

static void refuse_memory(dp_script *s)
{
    const uint64_t each = s->layout != NULL ? 2 : 1;
    dp_why why;
    DP_IGNORE(dp_why_set(
        &why, DP_NOMEM, "this machine lacks %llu MiB of memory to share",
        (unsigned long long)(each * elements_of_buffer(s) * sizeof(float) + (1U << 20)) >> 20));
    dp_script_session_refuse(s, DP_SCRIPT_NO_MEMORY, why.text);
}

void dp_script_welcome_unmap(dp_script_session *on)
{
    if (on->header != NULL) {
        atomic_store(&on->header->word, DP_SCRIPT_WORD_OVER);
        munmap(on->header, on->bytes);
        on->header = NULL;
    }
    dp_free(on->arena);
    on->arena = NULL;
}

static void send_welcome(dp_script *s, int fd)
{
    const dp_manifest *const m = dp_trainer_manifest(s->setup.trainer);
    const dp_script_welcome about = {.elements = elements_of_tensors(s),
                                     .samples = dp_manifest_samples(m),
                                     .unit = dp_manifest_sample_tokens(m),
                                     .tokens_total = m->total_tokens,
                                     .bytes = s->session.bytes};
    dp_writer packet = dp_writer_of(s->packet, sizeof s->packet);
    dp_script_write_welcome(&packet, &about);
    dp_script_session_send(s, &packet, fd);
}

static void welcome(dp_script *s)
{
    dp_script_session *const on = &s->session;
    int fd = -1;
    if (!get_memory(s, &fd)) {
        refuse_memory(s);
    } else if (dp_trainer_begin_script(s->setup.trainer) != DP_OK) {
        dp_script_session_refuse_broken(s);
    } else {
        on->welcome = true;
        on->assign = true;
        on->since_us = dp_now_us();
        dp_script_set_word(s);
        s->setup.present(s->setup.context, on->pid);
        send_welcome(s, fd);
    }
    if (fd >= 0) {
        close(fd);
    }
}

void dp_script_welcome_hello(dp_script *s, const dp_script_ask *ask, int file)
{
    dp_why why = {{0}};
    if (ask->version != DP_SCRIPT_VERSION) {
        DP_IGNORE(dp_why_set(&why, DP_VERSION,
                             "the script speaks version %u of the protocol, this node version %d: "
                             "install both from one release",
                             ask->version, DP_SCRIPT_VERSION));
        dp_script_session_refuse(s, DP_SCRIPT_OTHER_VERSION, why.text);
    } else if (check_tensors(s, file, &why) != DP_OK) {
        dp_script_session_refuse(s, DP_SCRIPT_OTHER_TENSORS, why.text);
    } else {
        welcome(s);
    }
}

/* ---- The buffer. */

dp_status dp_script_take_weights(dp_script *s, const dp_script_work *work)
{
    dp_script_session *const on = &s->session;
    if (s->layout == NULL) {
        const uint64_t own = elements_of_tensors(s);
        memset(on->buffer + own, 0, (elements_of_buffer(s) - own) * sizeof *on->buffer);
        return dp_trainer_take_weights(s->setup.trainer, on->buffer, work);
    }
    dp_hf_layout_place(s->layout, on->buffer, on->arena);
    return dp_trainer_take_weights(s->setup.trainer, on->arena, work);
}

dp_status dp_script_give_weights(dp_script *s)
{
    const dp_script_session *const on = &s->session;
    if (s->layout == NULL) {
        return dp_trainer_give_weights(s->setup.trainer, on->buffer);
    }
    DP_TRY(dp_trainer_give_weights(s->setup.trainer, on->arena));
    dp_hf_layout_name(s->layout, on->arena, on->buffer);
    return DP_OK;
}

dp_status dp_script_give_moves(dp_script *s)
{
    const dp_script_session *const on = &s->session;
    if (s->layout == NULL) {
        return dp_trainer_give_moves(s->setup.trainer, on->buffer);
    }
    DP_TRY(dp_trainer_give_weights(s->setup.trainer, on->arena));
    dp_hf_layout_moves(s->layout, on->arena, on->buffer);
    return DP_OK;
}
