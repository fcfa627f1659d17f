// Package kernels checks the CUDA kernels against device/host/reduce. The C program of this folder (build/bin/kernels-check) runs
// them in their CPU form here, or from the fat binary on a GPU, where it measures them too.
package kernels
