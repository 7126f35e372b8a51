/* What tests/fake/libcuda.so.1 has besides the driver's own functions: FAKE_BYTES of each memory.
 */
#ifndef DT_TESTS_FAKE_CUDA_H
#define DT_TESTS_FAKE_CUDA_H

enum { FAKE_BYTES = 1 << 16 };

int cuPointerGetAttribute(void *data, int attribute, unsigned long long ptr);
void *fake_device_memory(void);
void *fake_managed_memory(void);

#endif
