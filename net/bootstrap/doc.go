// Package bootstrap lets the ranks of a communicator find each other over TCP
// and keeps a control plane between them afterwards.
//
// It owns the unique id and its candidate addresses, one listening service per
// process, the rooms hosted there, the mutual proof of a room's secret, and the
// star of control connections (all-gather, barrier, point messages, failure
// news) of a live communicator.
//
// It must not know devices, plans, the data path, environment variables or the
// C ABI. What the ranks tell each other in their hello is bytes to it.
//
// A room is hosted by one process. Members prove that they know its secret,
// register a rank and a hello, and get the table of all members when the last
// one has come. A room made by NewID (the first stage) hands over to a room at
// rank 0 unless its own process holds rank 0; from then on the connections to
// rank 0 are the control star. Rooms of children (split, shrink) are derived
// from their parent's secret and have only the second stage.
//
// The peers are authenticated, the traffic is neither encrypted nor
// authenticated per message: whoever can change packets on the way can disturb
// a communicator, whoever can merely connect cannot.
package bootstrap
