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
        } else if (parameter->is_flag) {
            dp_pack_bool(&packer, parameter->number != 0);
        } else {
            dp_pack_u64(&packer, parameter->number);
        }
    }
    return dp_client_call(client, &packer, question->on_notice, question->context, result, error);
}

int dp_question_ask(const char *socket, uint32_t most_ms, const dp_question *question,
                    json_t **result, dp_control_error *error)
{
    dp_client client;
    int status = dp_client_open_within(&client, socket, most_ms, error) == DP_OK ? 0 : error->exit;
    if (status == 0) {
        status = dp_question_put(&client, question, result, error);
    }
    dp_client_close(&client);
    return status;
}
