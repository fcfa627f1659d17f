/* libmlx5: what the other library has. */
#include "../../../../net/ib/mlx5dv.h"

int stub_init_obj(dv_obj *, uint64_t);
unsigned char stub_is_supported(vb_device *);

__attribute__((visibility("default"))) int mlx5dv_init_obj(dv_obj *o, uint64_t type) { return stub_init_obj(o, type); }
__attribute__((visibility("default"))) unsigned char mlx5dv_is_supported(vb_device *d) { return stub_is_supported(d); }
