/* The names of kernels with an operator (kernels.h has them for the host), for the element type of this compilation:
 * -DGCCL_TYPE=f32 and so on. */
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define GCCL_ELEMENT CAT(type_, GCCL_TYPE)
#define FOLD_NAME__(COLL, OP, TYPE, WHO) ncclDevKernel_##COLL##_##OP##_##TYPE##_GCCL_##WHO
#define FOLD_NAME_(COLL, OP, TYPE, WHO) FOLD_NAME__(COLL, OP, TYPE, WHO)
#define FOLD_NAME(COLL, OP, WHO) FOLD_NAME_(COLL, OP, GCCL_TYPE, WHO)

/* F(collective, its number, operator, its number) for all that this type has. */
#define FOR_COLLS(F, OP, O)                  \
  F(AllReduce, GCCL_ALL_REDUCE, OP, O)       \
  F(ReduceScatter, GCCL_REDUCE_SCATTER, OP, O) \
  F(Reduce, GCCL_REDUCE, OP, O)
#define FOR_ALL_OPS(F)                     \
  FOR_COLLS(F, Sum, GCCL_WORK_SUM)         \
  FOR_COLLS(F, Prod, GCCL_WORK_PROD)       \
  FOR_COLLS(F, Max, GCCL_WORK_MAX)         \
  FOR_COLLS(F, Min, GCCL_WORK_MIN)         \
  FOR_COLLS(F, PreMulSum, GCCL_WORK_PREMULSUM)
#ifdef GCCL_TYPE_IS_INTEGER
#define FOR_OPS(F) FOR_ALL_OPS(F) FOR_COLLS(F, SumPostDiv, GCCL_WORK_SUMPOSTDIV)
#else
#define FOR_OPS(F) FOR_ALL_OPS(F)
#endif
