#!/bin/bash
# The checks on several GPUs of one host: run-multi.sh [topology|tests|torch|faults ...], all when none is named. NVLink multicast is off
# everywhere: a program that uses it can take the GPUs of the host out of service.
export NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1 NVSHMEM_DISABLE_NVLS=1
exec python3 "$(dirname "$0")/multi.py" "$@"
