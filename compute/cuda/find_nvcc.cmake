# Finds an nvcc that can compile the kernels: DP_NVCC, or DP_NVCC-NOTFOUND. cmake -P compute/cuda/find_nvcc.cmake prints it, and fails
# where there is none.
set(DP_NVCC_LEAST 12.0) # The first that knows sm_90a. Debian 12's own is 11.8.

function(dp_nvcc_validate result file)
    execute_process(COMMAND ${file} --version OUTPUT_VARIABLE told ERROR_QUIET)
    if(NOT told MATCHES "release ([0-9]+\\.[0-9]+)")
        message(STATUS "${file} --version does not tell its release: not used")
        set(${result} FALSE PARENT_SCOPE)
    elseif(CMAKE_MATCH_1 VERSION_LESS DP_NVCC_LEAST)
        message(STATUS "${file} is of CUDA ${CMAKE_MATCH_1}, older than ${DP_NVCC_LEAST}: not used")
        set(${result} FALSE PARENT_SCOPE)
    endif()
endfunction()

find_program(DP_NVCC nvcc PATHS ENV CUDA_PATH ENV CUDA_HOME /usr/local/cuda PATH_SUFFIXES bin VALIDATOR dp_nvcc_validate)
if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
    if(NOT DP_NVCC)
        message(FATAL_ERROR "No nvcc of CUDA ${DP_NVCC_LEAST} or later")
    endif()
    message(STATUS "${DP_NVCC}")
endif()
