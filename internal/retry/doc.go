// SPDX-License-Identifier: Apache-2.0

// Package retry decides whether and when a failed run is tried again, builds the run that does it, judges retries that
// people ask for, and says when a chain of attempts is over. Everything here is pure.
//
// Attempts number the chain: the root is attempt 0, every retry after it, automatic or manual, takes the next number. The
// budget belongs to the chain, too: a failed run is retried automatically while its attempt is below maxRetries. So there
// are never more than maxRetries automatic retries, and a manual retry beyond them that fails is left to a person again.
package retry
