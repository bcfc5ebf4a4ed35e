// SPDX-License-Identifier: Apache-2.0

// Package direct is the HTTP front of direct access: it turns a request into a DirectReservation, waits for the slot, passes the
// request on to the upstream of the queue, and gives the slot back.
//
// Every replica of the manager serves it, whoever leads. A front is a client of the API like any other: it creates a reservation,
// renews it, acknowledges the grant and releases it, and needs nothing of the dispatcher but what the reservation's status
// shows. So a change of leader cuts no stream, requests are spread over all replicas, and a front that dies just stops renewing:
// its reservations expire. (Served by the leader alone, every change of leader would cut every stream, and a Service would have
// to know who leads.)
//
// Follow one request through exchange.go; each step is a file of its own. What must hold:
//
//   - The upstream is called only after the grant was acknowledged on the very version of the reservation that showed it.
//   - The call is cut before its slot counts as free: at the expiry that status shows, and no later than a lease after the last
//     answered renewal was sent, whichever is sooner.
//   - A request is sent to the upstream at most once, and an answer that was cut never looks whole.
//   - Nothing is said about a queue or run to someone who may not use it.
//   - Neither tokens nor bodies nor values of headers are logged or stored.
package direct
