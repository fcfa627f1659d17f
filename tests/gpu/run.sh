#!/bin/bash
# The checks on a GPU machine, from the folder that `make gpu-bundle` made. Sections of at most eight minutes:
#   run.sh 1 | suites   conformance, deadlocks, graphs, faults (parts 3, 4, 5, 7, 8)
#   run.sh 2 | clients  nccl-tests, cupy                        (part 9)
#   run.sh 3 | torch    PyTorch                                 (part 9)
#   run.sh 4 | speed    times beside floors and NVIDIA's NCCL, compute-sanitizer
#   run.sh 5 | net      NVIDIA's NCCL over our network, beside its own sockets; two minutes
#   run.sh 6 | python   the Python package and the backend gccl on CUDA tensors; five minutes
#   run.sh 7 | tools    gccl-doctor, gccl-info, gccl-top: their output, to be looked at; one minute
#   run.sh 8 | device   kernels of the device API: suites, times; four minutes
#   run.sh peers        programs of others that use the device API, from folders that peers.py names: NCCL's examples, nccl-tests -D; five minutes
#   run.sh peers-more   PyTorch's symmetric memory, NVSHMEM beside our times, compute-sanitizer over kernels; three minutes
# One row for each requirement, the table last, and as JSON in $OUT (./out when unset). Exit code 1 if a row fails.
exec python3 "$(dirname "$0")/run.py" "$@"
