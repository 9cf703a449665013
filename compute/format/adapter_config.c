#include "compute/format/adapter_config.h"

#include <stdio.h>
#include <string.h>

#include "base/run/adapt.h"

enum { TEXT_MAX = 1024 };

dp_status dp_adapter_config_write(const dp_model_config *config, dp_buf *out)
{
    const dp_model_config m = dp_model_config_resolve(config);
    char words[DP_ADAPT_TEXT_MAX];
    char list[2 * DP_ADAPT_TEXT_MAX] = "";
    char text[TEXT_MAX];
    char *rest = NULL;
    size_t used = 0;
    dp_adapt_text(&m, words);
    for (char *word = strtok_r(words, ",", &rest); word != NULL;
         word = strtok_r(NULL, ",", &rest)) {
        const int size =
            snprintf(list + used, sizeof list - used, "%s\"%s\"", used == 0 ? "" : ", ", word);
        used += size > 0 ? (size_t)size : 0;
    }
    const int size = snprintf(text, sizeof text,
                              "{\n"
                              "  \"peft_type\": \"LORA\",\n"
                              "  \"task_type\": \"CAUSAL_LM\",\n"
                              "  \"base_model_name_or_path\": null,\n"
                              "  \"r\": %u,\n"
                              "  \"lora_alpha\": %.10g,\n"
                              "  \"lora_dropout\": 0.0,\n"
                              "  \"bias\": \"none\",\n"
                              "  \"fan_in_fan_out\": %s,\n"
                              "  \"target_modules\": [%s],\n"
                              "  \"inference_mode\": true\n"
                              "}\n",
                              (unsigned)m.adapt_rank, (double)m.adapt_alpha_milli / 1000.0,
                              m.arch == DP_ARCH_GPT2 ? "true" : "false", list);
    return size > 0 && (size_t)size < sizeof text
               ? dp_buf_append(out, dp_view_of(text, (size_t)size))
               : DP_TOOBIG;
}
