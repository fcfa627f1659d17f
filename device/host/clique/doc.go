// Package clique owns how the processes of one host reach each other's arenas: a process serves the descriptor of its
// memory file over an abstract Unix socket to peers that prove a communicator's secret, and keeps the mappings of
// its peers' arenas, one per peer process however many communicators use it.
//
// It must not know ranks, areas, plans or the bootstrap. That a mapping works is not proved here but by the
// communicator, which writes patterns through it.
//
// The conversation, over a SOCK_SEQPACKET socket, one message each:
//
//	server → client  challenge (32)
//	client → server  id of the secret (16), challenge (32), HMAC(secret, "client" both challenges) (32)
//	server → client  process nonce (16), arena size (8), HMAC(secret, "server" both challenges, nonce, size) (32), descriptor
//
// Both sides also require that the other has their user id (SO_PEERCRED, unix(7)). A peer that fails gets a closed
// connection and nothing else.
package clique
