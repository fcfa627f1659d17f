// Package plugin owns NCCL's plugin tables: loading them and adapting old versions to the seams of this library. It must not
// know the communicator.
//
// Nothing is here yet: the settings that name plugins are accepted without effect (docs/env.md).
package plugin
