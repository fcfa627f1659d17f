/* Included first by every isa_*.c: whatever the command line says, loops are vectorised and a multiplication is
 * never fused with an addition, because a fused one would round once and change the bits. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("O3", "fp-contract=off", "no-trapping-math", "no-fast-math")
#endif
