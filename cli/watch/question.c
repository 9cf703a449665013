#include "cli/watch/question.h"

int dp_question_put(dp_client *client, const dp_question *question, json_t **result,
                    dp_control_error *error)
{
    dp_packer packer = dp_client_begin(client, question->method);
    dp_pack_map(&packer, question->n_parameters);
    for (uint32_t i = 0; i < question->n_parameters; i++) {
        const dp_parameter *const parameter = &question->parameters[i];
        dp_pack_text(&packer, parameter->key);
        if (parameter->text != NULL) {
            dp_pack_text(&packer, parameter->text);
        } else {
            dp_pack_u64(&packer, parameter->number);
        }
    }
    return dp_client_call(client, &packer, question->on_notice, question->context, result, error);
}

static int bound(dp_client *client, uint32_t most_ms, dp_control_error *error)
{
    if (most_ms > 0 && dp_client_bound(client, most_ms) != DP_OK) {
        dp_error_set(error, DP_EXIT_SOFTWARE, "E0199", "", "the socket takes no bound of time", "");
        return error->exit;
    }
    return 0;
}

int dp_question_ask(const char *socket, uint32_t most_ms, const dp_question *question,
                    json_t **result, dp_control_error *error)
{
    dp_client client;
    int status = dp_client_open(&client, socket, error) == DP_OK ? bound(&client, most_ms, error)
                                                                 : error->exit;
    if (status == 0) {
        status = dp_question_put(&client, question, result, error);
    }
    dp_client_close(&client);
    return status;
}
