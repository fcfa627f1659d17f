// Package comm owns the communicator's life: creation by ids, split, shrink and grow, the areas and mappings that its
// ranks share, plans for the launch table, windows, faults, and teardown in any order.
//
// It must not know the C ABI (capi decodes and encodes), the format of sockets (net/bootstrap, device/host/clique) or how
// an operation runs (device/host/exec): a steady call never comes here.
package comm
