#include "cli/manifest_yaml.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/assert.h"
#include "base/nearest.h"
#include "base/run/run_mode.h"
#include "cli/print.h"

enum { KEY_MAX = 64, KEYS_MAX = 128 };

/* Text keys come first, then the rows of words and the rows of numbers of base/run/manifest.h. */
typedef enum text_key {
    KEY_NAME,
    KEY_TEXT,
    KEY_FROM,
    KEY_MODEL_FROM, /* the same */
    KEY_PRESET,
    KEY_TARGETS,
    KEY_MODE,
    TEXT_KEYS
} text_key;
static const char *const text_keys[TEXT_KEYS] = {
    "name", "text", "from", "model.from", "model.preset", "model.adapt.targets", "round.mode"};

typedef struct reading {
    yaml_parser_t parser;
    const char *file_name;
    dp_manifest_file *file;
    dp_why *what;
    dp_why *fix;
    const dp_manifest_choice *choices;
    size_t n_choices;
    const dp_manifest_row *rows;
    size_t n_rows;
    yaml_mark_t marks[KEYS_MAX]; /* place of each given key */
    bool given[KEYS_MAX];
} reading;

/* DP_BADMSG with "file:line:column: " before the sentence. */
__attribute__((format(printf, 3, 4))) static dp_status
complain(const reading *self, const yaml_mark_t *mark, const char *format, ...)
{
    char text[DP_WHY_MAX];
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(text, sizeof text, format, arguments) < 0) {
        text[0] = '\0';
    }
    va_end(arguments);
    dp_print_harmless(text); /* It may have words of the file. */
    return dp_why_set(self->what, DP_BADMSG, "%s:%zu:%zu: %s", self->file_name, mark->line + 1,
                      mark->column + 1, text);
}

static const char *key_name(const reading *self, size_t key)
{
    if (key < TEXT_KEYS) {
        return text_keys[key];
    }
    key -= TEXT_KEYS;
    return key < self->n_choices ? self->choices[key].key : self->rows[key - self->n_choices].key;
}

static size_t key_count(const reading *self)
{
    return TEXT_KEYS + self->n_choices + self->n_rows;
}

static dp_status unknown_key(const reading *self, const yaml_mark_t *mark, const char *key)
{
    dp_nearest nearest = {.word = key};
    const dp_manifest_gone *const gone = dp_manifest_gone_find(key);
    if (gone != NULL) {
        DP_IGNORE(dp_why_set(self->fix, DP_OK, "%s", gone->instead)); /* As below. */
        return complain(self, mark, "%s is gone: %s", key, gone->now);
    }
    for (size_t i = 0; i < key_count(self); i++) {
        const char *const dot = strchr(key_name(self, i), '.');
        if (dot != NULL && strcmp(dot + 1, key) == 0) { /* The section of the key is missing. */
            nearest = (dp_nearest){.word = key, .best = key_name(self, i)};
        } else {
            dp_nearest_offer(&nearest, key_name(self, i));
        }
    }
    if (nearest.best != NULL) {
        DP_IGNORE(dp_why_set(self->fix, DP_OK, "write %s",
                             nearest.best)); /* This only fills the sentence. */
        return complain(self, mark, "unknown key \"%s\" (did you mean %s?)", key, nearest.best);
    }
    DP_IGNORE(dp_why_set(self->fix, DP_OK,
                         "dpnode run validate --keys   # lists all keys")); /* As above. */
    return complain(self, mark, "unknown key \"%s\"", key);
}

/* The fix for a word that a key does not allow: the nearest allowed one, or the command that lists
 * all. */
static void tell_nearest(const reading *self, const char *key, const dp_nearest *nearest)
{
    if (nearest->best != NULL) {
        const char *const dot = strrchr(key, '.');
        DP_IGNORE(dp_why_set(self->fix, DP_OK, "write %s: %s", dot != NULL ? dot + 1 : key,
                             nearest->best)); /* A sentence. */
    } else {
        DP_IGNORE(dp_why_set(self->fix, DP_OK, "dpnode run validate --keys   # lists all of %s",
                             key)); /* As above. */
    }
}

/* ---- values ---- */

static dp_status take_text(const reading *self, const yaml_mark_t *mark, const char *key,
                           const char *value, char *out, size_t size)
{
    if (value[0] == '\0' || strlen(value) >= size) {
        return complain(self, mark, "%s must have 1 to %zu bytes", key, size - 1);
    }
    memcpy(out, value, strlen(value) + 1);
    return DP_OK;
}

static dp_status take_word(const reading *self, const yaml_mark_t *mark,
                           const dp_manifest_choice *choice, const char *value)
{
    dp_nearest nearest = {.word = value};
    for (size_t i = 0; i < choice->n_words; i++) {
        if (strcmp(value, choice->words[i].name) == 0) {
            memcpy((char *)&self->file->manifest + choice->offset, &choice->words[i].value,
                   sizeof choice->words[i].value);
            return DP_OK;
        }
        dp_nearest_offer(&nearest, choice->words[i].name);
    }
    const bool is_codec = choice->offset == offsetof(dp_manifest, codec);
    const char *const instead = is_codec ? dp_codec_instead(value) : NULL;
    if (instead != NULL) {
        tell_nearest(self, choice->key, &(dp_nearest){.best = instead});
        return complain(self, mark, "%s %s is gone; write %s", choice->key, value, instead);
    }
    char words[DP_MANIFEST_WORDS_MAX];
    tell_nearest(self, choice->key, &nearest);
    dp_manifest_words_text(choice, words, sizeof words);
    return complain(self, mark, "%s is \"%.32s\"; it must be %s", choice->key, value, words);
}

/* The stored integer of a number in the file: value * scale, which must be an integer. */
static bool to_stored(const char *text, uint64_t scale, uint64_t *stored)
{
    char *end = NULL;
    if (text[0] == '\0' || strspn(text, "0123456789.eE+-") != strlen(text)) {
        return false; /* strtold would take "inf", "0x10" and blanks. */
    }
    errno = 0;
    if (strspn(text, "0123456789") == strlen(text) && scale == 1) {
        *stored = strtoull(text, &end, 10); /* Exact up to 2^64 - 1. */
        return errno == 0 && *end == '\0';
    }
    const long double value = strtold(text, &end) * (long double)scale;
    const long double whole = roundl(value);
    if (*end != '\0' || errno != 0 || !(value >= 0) || value > 1e18L ||
        fabsl(value - whole) > 1e-6L) {
        return false;
    }
    *stored = (uint64_t)whole;
    return true;
}

static dp_status take_number(const reading *self, const yaml_mark_t *mark,
                             const dp_manifest_row *row, const char *value)
{
    uint64_t stored = 0;
    const double scale = (double)row->scale;
    const bool read = to_stored(value, row->scale, &stored);
    if (!read || stored < row->min || stored > row->max) {
        return complain(self, mark, "%s is \"%.32s\"; it must be a %s from %.10g to %.10g",
                        row->key, value, row->scale == 1 ? "whole number" : "number",
                        (double)row->min / scale, (double)row->max / scale);
    }
    char *at = (char *)&self->file->manifest + row->offset;
    const uint32_t small = (uint32_t)stored;
    if (row->size == sizeof stored) {
        memcpy(at, &stored, sizeof stored);
    } else {
        memcpy(at, &small, sizeof small);
    }
    return DP_OK;
}

/* True if a preset of this section gives the key, and the file does not. */
static bool is_of_preset(const reading *self, size_t key, const char *section)
{
    const char *const name = key_name(self, key);
    return strncmp(name, section, strlen(section)) == 0 && strcmp(name, "model.seed") != 0 &&
           !self->given[key];
}

/* Takes the keys of a section that the file does not give from the preset. */
static void take_section(const reading *self, const dp_manifest *from, const char *section)
{
    char *const to = (char *)&self->file->manifest;
    for (size_t i = 0; i < self->n_choices; i++) {
        if (is_of_preset(self, TEXT_KEYS + i, section)) {
            const size_t at = self->choices[i].offset;
            memcpy(to + at, (const char *)from + at, sizeof(int));
        }
    }
    for (size_t i = 0; i < self->n_rows; i++) {
        if (is_of_preset(self, TEXT_KEYS + self->n_choices + i, section)) {
            const size_t at = self->rows[i].offset;
            memcpy(to + at, (const char *)from + at, self->rows[i].size);
        }
    }
}

/* Explicit keys override a preset, in any order. */
static dp_status take_preset(const reading *self, const yaml_mark_t *mark, const char *value)
{
    const dp_model_preset *const preset = dp_model_preset_find(value);
    if (preset == NULL) {
        size_t count = 0;
        const dp_model_preset *const presets = dp_model_presets(&count);
        dp_nearest nearest = {.word = value};
        for (size_t i = 0; i < count; i++) {
            dp_nearest_offer(&nearest, presets[i].name);
        }
        tell_nearest(self, "model.preset", &nearest);
        return complain(self, mark, "model.preset \"%.32s\" is not known", value);
    }
    dp_manifest from;
    dp_manifest_default(&from);
    dp_manifest_set_model(&from, &preset->config);
    take_section(self, &from, "model.");
    return DP_OK;
}

/* The same for round.mode. */
static dp_status take_mode(const reading *self, const yaml_mark_t *mark, const char *value)
{
    const dp_run_mode *const mode = dp_run_mode_find(value);
    if (mode == NULL) {
        tell_nearest(self, "round.mode", &(dp_nearest){.best = dp_run_mode_near(value)});
        return complain(self, mark, "round.mode \"%.32s\" is not known", value);
    }
    dp_manifest from;
    dp_manifest_default(&from);
    dp_run_mode_set(&from, mode);
    take_section(self, &from, "round.");
    self->file->manifest.pairs = from.pairs;
    self->file->manifest.exchange = from.exchange;
    self->file->manifest.stale = from.stale;
    return DP_OK;
}

/* A word of model.adapt.targets. */
static dp_status take_target(const reading *self, const yaml_mark_t *mark, const char *word)
{
    const uint32_t bits = dp_adapt_bits(word);
    if (bits == 0) {
        size_t count = 0;
        const dp_adapt_word *const words = dp_adapt_words(&count);
        dp_nearest nearest = {.word = word};
        for (size_t i = 0; i < count; i++) {
            dp_nearest_offer(&nearest, words[i].word);
        }
        tell_nearest(self, "model.adapt.targets", &nearest);
        return complain(self, mark,
                        "model.adapt.targets has \"%.32s\", which is no linear layer of a block; "
                        "there are all, attention, q_proj, k_proj, v_proj, o_proj, gate_proj, "
                        "up_proj, down_proj, and for gpt2 c_attn, attn.c_proj, c_fc, mlp.c_proj",
                        word);
    }
    /* All of them is 0, as if not given: the linear layers that the family has. */
    self->file->manifest.adapt_targets |= bits != DP_ADAPT_ALL ? bits : 0;
    return DP_OK;
}

/* "q_proj, v_proj". */
static dp_status take_targets(const reading *self, const yaml_mark_t *mark, const char *value)
{
    char text[DP_ADAPT_TEXT_MAX];
    if (value[0] == '\0' || strlen(value) >= sizeof text) {
        return complain(self, mark, "model.adapt.targets must have 1 to %zu bytes",
                        sizeof text - 1);
    }
    memcpy(text, value, strlen(value) + 1);
    char *rest = NULL;
    char *word = strtok_r(text, ", ", &rest);
    for (; word != NULL; word = strtok_r(NULL, ", ", &rest)) {
        DP_TRY(take_target(self, mark, word));
    }
    return DP_OK;
}

static dp_status take_value(reading *self, size_t key, const yaml_mark_t *mark, const char *value)
{
    dp_manifest_file *const file = self->file;
    const char *name = key_name(self, key);
    if (key == KEY_NAME) {
        return take_text(self, mark, name, value, file->manifest.name, sizeof file->manifest.name);
    }
    if (key == KEY_TEXT) {
        return take_text(self, mark, name, value, file->text_path, sizeof file->text_path);
    }
    if ((key == KEY_FROM || key == KEY_MODEL_FROM) && file->from_path[0] != '\0') {
        return complain(self, mark, "from and model.from are the same key; it is given twice");
    }
    if (key == KEY_FROM || key == KEY_MODEL_FROM) {
        return take_text(self, mark, name, value, file->from_path, sizeof file->from_path);
    }
    if (key == KEY_PRESET) {
        return take_preset(self, mark, value);
    }
    if (key == KEY_MODE) {
        return take_mode(self, mark, value);
    }
    if (key == KEY_TARGETS) {
        return take_targets(self, mark, value);
    }
    key -= TEXT_KEYS;
    return key < self->n_choices
               ? take_word(self, mark, &self->choices[key], value)
               : take_number(self, mark, &self->rows[key - self->n_choices], value);
}

/* ---- structure ---- */

/* The next event, which the caller deletes. */
static dp_status next_event(reading *self, yaml_event_t *event)
{
    if (yaml_parser_parse(&self->parser, event)) {
        return DP_OK;
    }
    const yaml_mark_t *mark = &self->parser.problem_mark;
    const char *problem = self->parser.problem != NULL ? self->parser.problem : "not YAML";
    return complain(self, mark, "not valid YAML: %s", problem);
}

static const char *kind_of(const yaml_event_t *event)
{
    switch ((int)event->type) {
    case YAML_ALIAS_EVENT:
        return "an alias, which a manifest cannot have";
    case YAML_SEQUENCE_START_EVENT:
        return "a list";
    case YAML_MAPPING_START_EVENT:
        return "a section";
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return "the end of the file";
    default:
        return "something else";
    }
}

/* A plain scalar as a C string, or an error. wanted: the expected value, in words. */
static dp_status scalar_text(const reading *self, const yaml_event_t *event, const char *wanted,
                             const char **text)
{
    if (event->type != YAML_SCALAR_EVENT) {
        return complain(self, &event->start_mark, "expected %s, found %s", wanted, kind_of(event));
    }
    *text = (const char *)event->data.scalar.value;
    if (event->data.scalar.anchor != NULL || event->data.scalar.tag != NULL) {
        return complain(self, &event->start_mark, "a manifest cannot have anchors and tags");
    }
    if (strlen(*text) != event->data.scalar.length) {
        return complain(self, &event->start_mark, "a manifest cannot have a zero byte");
    }
    return DP_OK;
}

/* Whether some key starts with "section.". */
static bool is_section(const reading *self, const char *name)
{
    const size_t size = strlen(name);
    for (size_t i = 0; i < key_count(self); i++) {
        const char *key = key_name(self, i);
        if (strncmp(key, name, size) == 0 && key[size] == '.') {
            return true;
        }
    }
    return false;
}

static dp_status find_key(reading *self, const yaml_mark_t *mark, const char *section,
                          const char *name, size_t *key)
{
    char full[KEY_MAX];
    /* A long name is cut, and then matches no key. */
    snprintf(full, sizeof full, "%s%s%.40s", section, section[0] != '\0' ? "." : "", name);
    for (size_t i = 0; i < key_count(self); i++) {
        if (strcmp(full, key_name(self, i)) != 0) {
            continue;
        }
        if (self->given[i]) {
            return complain(self, mark, "%s is given twice; first in line %zu", full,
                            self->marks[i].line + 1);
        }
        self->given[i] = true;
        self->marks[i] = *mark;
        *key = i;
        return DP_OK;
    }
    return unknown_key(self, mark, full);
}

/* The words of a list whose start has been read. */
static dp_status read_targets(reading *self)
{
    for (;;) { /* Each iteration consumes bytes of a bounded file. */
        yaml_event_t event;
        const char *text = NULL;
        DP_TRY(next_event(self, &event));
        const bool over = event.type == YAML_SEQUENCE_END_EVENT;
        dp_status status = over ? DP_OK : scalar_text(self, &event, "a layer", &text);
        if (status == DP_OK && !over) {
            status = take_target(self, &event.start_mark, text);
        }
        yaml_event_delete(&event);
        if (status != DP_OK || over) {
            return status;
        }
    }
}

static dp_status read_value(reading *self, size_t key)
{
    yaml_event_t event;
    const char *text = NULL;
    DP_TRY(next_event(self, &event));
    if (key == KEY_TARGETS && event.type == YAML_SEQUENCE_START_EVENT &&
        event.data.sequence_start.anchor == NULL && event.data.sequence_start.tag == NULL) {
        self->marks[key] = event.start_mark;
        yaml_event_delete(&event);
        return read_targets(self);
    }
    dp_status status = scalar_text(self, &event, "a value", &text);
    if (status == DP_OK) {
        self->marks[key] = event.start_mark;
        status = take_value(self, key, &event.start_mark, text);
    }
    yaml_event_delete(&event);
    return status;
}

/* The beginning of a section. */
static dp_status open_section(reading *self, const char *name)
{
    yaml_event_t event;
    DP_TRY(next_event(self, &event));
    dp_status status = DP_OK;
    if (event.type != YAML_MAPPING_START_EVENT) {
        status = complain(self, &event.start_mark,
                          "%s is a section: write its keys below it, indented", name);
    } else if (event.data.mapping_start.anchor != NULL || event.data.mapping_start.tag != NULL) {
        status = complain(self, &event.start_mark, "a manifest cannot have anchors and tags");
    }
    yaml_event_delete(&event);
    return status;
}

/* Pairs up to the end of a section, whose start has been read. */
static dp_status read_section(reading *self, const char *section)
{
    char inner[KEY_MAX] = ""; /* the section inside this one that is being read */
    for (;;) {                /* Each iteration consumes bytes of a bounded file. */
        yaml_event_t event;
        const char *name = NULL;
        char full[KEY_MAX] = "";
        size_t key = 0;
        bool within = false;
        DP_TRY(next_event(self, &event));
        if (event.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&event);
            if (inner[0] == '\0') {
                return DP_OK;
            }
            inner[0] = '\0';
            continue;
        }
        dp_status status = scalar_text(self, &event, "a key", &name);
        if (status == DP_OK) {
            snprintf(full, sizeof full, "%.20s.%.40s", section, name);
            within = inner[0] == '\0' && is_section(self, full);
            status = within ? DP_OK
                            : find_key(self, &event.start_mark, inner[0] != '\0' ? inner : section,
                                       name, &key);
        }
        yaml_event_delete(&event);
        DP_TRY(status);
        DP_TRY(within ? open_section(self, full) : read_value(self, key));
        if (within) {
            memcpy(inner, full, sizeof inner);
        }
    }
}

/* "model:" was read; its section must follow. */
static dp_status enter_section(reading *self, const char *name)
{
    DP_TRY(open_section(self, name));
    return read_section(self, name);
}

/* One pair of the top level, or its end (*over). */
static dp_status read_top(reading *self, bool *over)
{
    yaml_event_t event;
    const char *text = NULL;
    char name[KEY_MAX] = "";
    size_t key = 0;
    bool section = false;
    DP_TRY(next_event(self, &event));
    if (event.type == YAML_MAPPING_END_EVENT) {
        *over = true;
        yaml_event_delete(&event);
        return DP_OK;
    }
    dp_status status = scalar_text(self, &event, "a key", &text);
    if (status == DP_OK) {
        snprintf(name, sizeof name, "%s", text);
        section = is_section(self, name);
        status = section ? DP_OK : find_key(self, &event.start_mark, "", name, &key);
    }
    yaml_event_delete(&event);
    DP_TRY(status);
    return section ? enter_section(self, name) : read_value(self, key);
}

/* Expect an event of this type. */
static dp_status expect(reading *self, yaml_event_type_t type, const char *wanted)
{
    yaml_event_t event;
    DP_TRY(next_event(self, &event));
    dp_status status = DP_OK;
    if (event.type != type) {
        status = complain(self, &event.start_mark, "%s", wanted);
    }
    yaml_event_delete(&event);
    return status;
}

static dp_status read_stream(reading *self)
{
    bool over = false;
    DP_TRY(expect(self, YAML_STREAM_START_EVENT, "not valid YAML"));
    DP_TRY(expect(self, YAML_DOCUMENT_START_EVENT, "the manifest is empty"));
    DP_TRY(expect(self, YAML_MAPPING_START_EVENT, "a manifest is made of \"key: value\" lines"));
    while (!over) {
        DP_TRY(read_top(self, &over));
    }
    DP_TRY(expect(self, YAML_DOCUMENT_END_EVENT, "the manifest must end here"));
    return expect(self, YAML_STREAM_END_EVENT,
                  "a second document begins here; a manifest is one document");
}

static bool is_given(const reading *self, const char *name)
{
    size_t key = 0;
    while (key < key_count(self) && strcmp(key_name(self, key), name) != 0) {
        key++;
    }
    dp_assert(key < key_count(self));
    return self->given[key];
}

/* A run of any model has no shape and holds nothing out: defaults of such keys become 0, and a key
 * that the file gives is refused by dp_manifest_check. */
static void leave_out_shape(const reading *self)
{
    const dp_manifest none = {.val_per_mille = 0};
    if (!dp_manifest_external(&self->file->manifest)) {
        return;
    }
    for (size_t i = TEXT_KEYS; i < key_count(self); i++) {
        const char *const key = key_name(self, i);
        const size_t index = i - TEXT_KEYS;
        const bool is_word = index < self->n_choices;
        const size_t at =
            is_word ? self->choices[index].offset : self->rows[index - self->n_choices].offset;
        const size_t size = is_word ? sizeof(int) : self->rows[index - self->n_choices].size;
        if (!self->given[i] && (dp_manifest_of_shape(key) || strcmp(key, "data.val") == 0)) {
            memcpy((char *)&self->file->manifest + at, (const char *)&none + at, size);
        }
    }
}

/* Reports an error of dp_manifest_check at the place of the first key that its sentence names and
 * the file gives. */
static dp_status check(reading *self)
{
    dp_why why = {""};
    if (dp_manifest_check(&self->file->manifest, &why) == DP_OK) {
        return DP_OK;
    }
    const yaml_mark_t start = {0};
    const yaml_mark_t *mark = &start;
    const char *first = NULL;
    for (size_t i = 0; i < key_count(self); i++) {
        const char *at = self->given[i] ? strstr(why.text, key_name(self, i)) : NULL;
        if (at != NULL && (first == NULL || at < first)) {
            first = at;
            mark = &self->marks[i];
        }
    }
    return complain(self, mark, "%s", why.text);
}

dp_status dp_manifest_yaml_read(dp_view bytes, const char *file_name, const dp_model_config *model,
                                dp_manifest_file *file, dp_why *what, dp_why *fix)
{
    reading self = {.file_name = file_name, .file = file, .what = what, .fix = fix};
    self.choices = dp_manifest_choices(&self.n_choices);
    self.rows = dp_manifest_rows(&self.n_rows);
    dp_assert(key_count(&self) <= KEYS_MAX);
    dp_manifest_default(&file->manifest);
    if (model != NULL) {
        dp_manifest_set_model(&file->manifest, model);
    }
    file->text_path[0] = '\0';
    file->from_path[0] = '\0';
    what->text[0] = '\0';
    fix->text[0] = '\0';
    if (bytes.size > DP_YAML_BYTES_MAX) {
        return dp_why_set(what, DP_BADMSG, "%s:1:1: a manifest has at most %d bytes, this has %zu",
                          file_name, DP_YAML_BYTES_MAX, bytes.size);
    }
    if (!yaml_parser_initialize(&self.parser)) {
        return dp_why_set(what, DP_NOMEM, "%s:1:1: out of memory", file_name);
    }
    yaml_parser_set_encoding(&self.parser, YAML_UTF8_ENCODING);
    /* libyaml requires a pointer also for zero bytes, and an empty file has none. */
    const uint8_t *const text = bytes.data != NULL ? bytes.data : (const uint8_t *)"";
    yaml_parser_set_input_string(&self.parser, text, bytes.size);
    dp_status status = read_stream(&self);
    yaml_parser_delete(&self.parser);
    if (status != DP_OK) {
        return status;
    }
    leave_out_shape(&self);
    dp_run_decide(&file->manifest, is_given(&self, "round.codec_keep"));
    return check(&self);
}
