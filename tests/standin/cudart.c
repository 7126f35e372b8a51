#include "tests/standin/cudart.h"

static __thread CUresult dti_last_error;

static CUresult keep(CUresult result)
{
    if (result != CUDA_SUCCESS)
        dti_last_error = result;
    return result;
}

CUresult cudaEventQuery(CUevent event)
{
    return keep(cuEventQuery(event));
}

CUresult cudaStreamQuery(CUstream stream)
{
    return keep(cuStreamQuery(stream));
}

CUresult cudaPeekAtLastError(void)
{
    return dti_last_error;
}

CUresult cudaGetLastError(void)
{
    CUresult error = dti_last_error;

    dti_last_error = CUDA_SUCCESS;
    return error;
}
