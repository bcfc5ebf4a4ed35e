// SPDX-License-Identifier: Apache-2.0

// Package egress makes the client for every call that a user's object makes the manager do: HTTP work and the receivers of
// announcements. One rule says which addresses it may call. The rule is applied to each address right before the
// connection is made, after names were resolved, so that no packet goes to a refused address, whatever a name resolves to
// at that moment.
//
// The rule refuses what only the manager's own node or cloud identity can reach: loopback, link-local, unspecified,
// multicast and metadata addresses. Everything else is allowed, private ranges in particular, since cluster services live
// there. Lists of "special purpose" ranges do not fit: clusters give their pods addresses of the shared, benchmarking,
// documentation and class E ranges too.
package egress
