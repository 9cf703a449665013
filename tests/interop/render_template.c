/* Writes what a template makes of variables: render_template TEMPLATE VARIABLES.json. Ends with 1
 * and a sentence if the template refuses them. */
#include <stdio.h>

#include "compute/machine/files.h"
#include "compute/template/template.h"

static dp_status render(const char *path, json_t *variables, dp_buf *out, dp_why *why)
{
    dp_buf source;
    dp_template *t = NULL;
    dp_buf_init(&source, DP_TEMPLATE_BYTES_MAX);
    dp_status status = dp_file_read(path, &source, why);
    if (status == DP_OK) {
        status = dp_template_open(&t, dp_buf_view(&source), why);
    }
    if (status == DP_OK) {
        status = dp_template_run(t, variables, out, why);
    }
    dp_template_close(t);
    dp_buf_close(&source);
    return status;
}

int main(int argc, char **argv)
{
    dp_buf out;
    dp_why why = {{0}};
    json_t *const variables = argc == 3 ? json_load_file(argv[2], JSON_ALLOW_NUL, NULL) : NULL;
    if (variables == NULL) {
        fputs("usage: render_template TEMPLATE VARIABLES.json\n", stderr);
        return 2;
    }
    dp_buf_init(&out, DP_TEMPLATE_TEXT_MAX);
    const dp_status status = render(argv[1], variables, &out, &why);
    json_decref(variables);
    if (status != DP_OK) {
        fprintf(stderr, "%s\n", why.text[0] != '\0' ? why.text : dp_status_text(status));
    } else if (fwrite(out.data, 1, out.size, stdout) != out.size || fflush(stdout) != 0) {
        return 2;
    }
    dp_buf_close(&out);
    return status == DP_OK ? 0 : 1;
}
