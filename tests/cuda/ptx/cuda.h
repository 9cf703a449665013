/* The parts of the driver's header that bulk.cuh uses, for clang where there is no CUDA
 * (cuda_runtime.h beside this). */
#ifndef DP_TESTS_CUDA_PTX_CUDA_H
#define DP_TESTS_CUDA_PTX_CUDA_H

#include <stdint.h>

typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;
typedef struct alignas(64) CUtensorMap {
    uint64_t opaque[16];
} CUtensorMap;

typedef enum CUresult { CUDA_SUCCESS } CUresult;
typedef enum CUtensorMapDataType {
    CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
    CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
} CUtensorMapDataType;
typedef enum CUtensorMapInterleave { CU_TENSOR_MAP_INTERLEAVE_NONE } CUtensorMapInterleave;
typedef enum CUtensorMapSwizzle { CU_TENSOR_MAP_SWIZZLE_128B } CUtensorMapSwizzle;
typedef enum CUtensorMapL2promotion { CU_TENSOR_MAP_L2_PROMOTION_L2_256B } CUtensorMapL2promotion;
typedef enum CUtensorMapFloatOOBfill { CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE } CUtensorMapFloatOOBfill;

extern "C" CUresult
cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                       const cuuint64_t *size, const cuuint64_t *stride, const cuuint32_t *box,
                       const cuuint32_t *steps, CUtensorMapInterleave interleave,
                       CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                       CUtensorMapFloatOOBfill fill);

#endif
