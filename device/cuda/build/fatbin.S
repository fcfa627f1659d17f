/* The kernels, in a section of their own (device/cuda/image.h). Linked where they have been built. */
	.section .gccl_fatbin, "a", %progbits
	.balign 64
	.globl gccl_cuda_fatbin
	.hidden gccl_cuda_fatbin
gccl_cuda_fatbin:
	.incbin GCCL_FATBIN
	.size gccl_cuda_fatbin, . - gccl_cuda_fatbin
	.section .note.GNU-stack, "", %progbits
