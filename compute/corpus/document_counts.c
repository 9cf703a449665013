#include "compute/corpus/document_counts.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* A line of a file may stand in a sentence, which need not be UTF-8, and a long one is cut, perhaps
 * inside of a character. */
static json_t *sentence_of(const dp_why *why)
{
    dp_why cut = *why;
    json_t *text = json_string(cut.text);
    for (size_t i = 0, size = strlen(cut.text); text == NULL && i < 3 && size > 0; i++) {
        cut.text[--size] = '\0';
        text = json_string(cut.text);
    }
    return text != NULL ? text : json_string("");
}

static json_t *object_of(const dp_document_counts *c)
{
    json_t *const object = json_object();
    int bad = 0;
    if (c->apart) {
        bad |= json_object_set_new(object, "losses", json_integer((json_int_t)c->losses));
        bad |= json_object_set_new(object, "padding", json_integer((json_int_t)c->padding));
        bad |= json_object_set_new(object, "cut", json_integer((json_int_t)c->cut));
        bad |= json_object_set_new(object, "left_out", json_integer((json_int_t)c->left_out));
    }
    if (c->bad_lines > 0) {
        bad |= json_object_set_new(object, "bad_lines", json_integer((json_int_t)c->bad_lines));
        bad |= json_object_set_new(object, "first_bad", sentence_of(&c->first_bad));
    }
    if (bad != 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

bool dp_document_counts_print(const dp_document_counts *counts, FILE *out)
{
    json_t *const object = object_of(counts);
    if (object == NULL) {
        return false;
    }
    char *const text = json_dumps(object, JSON_EMBED | JSON_ENSURE_ASCII);
    json_decref(object);
    if (text != NULL && text[0] != '\0') {
        fprintf(out, ", %s", text);
    }
    const bool good = text != NULL;
    free(text);
    return good;
}
