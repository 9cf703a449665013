#include "compute/cuda/codecs_host.h"

_Static_assert((int)DP_CUDA_RUN == (int)DP_CODEC_RUN, "kernels know the run");

dp_cuda_blob dp_cuda_blob_of(const dp_codec *codec)
{
    return (dp_cuda_blob){.kind = codec->kind,
                          .block = codec->block,
                          .keep = codec->keep,
                          .bits = codec->bits,
                          .end = UINT32_MAX};
}

bool dp_cuda_runs_differ(const dp_codec *codec)
{
    return codec->keep != 0;
}

dp_status dp_cuda_find_runs(dp_view blob, dp_part_place place, uint64_t *runs)
{
    dp_codec_cursor cursor;
    DP_TRY(dp_codec_open_at(&cursor, blob, place.first, place.n));
    dp_codec_run run;
    size_t at = 0;
    while (cursor.left > 0) {
        runs[at] = (uint64_t)(cursor.reader.at - blob.data);
        DP_TRY(dp_codec_next(&cursor, &run));
        at++;
    }
    runs[at] = blob.size;
    return DP_OK;
}
