// SPDX-License-Identifier: Apache-2.0

package notify

import "time"

// Failure is why a delivery failed. It holds no secret.
type Failure struct {
	// Text is for a person to read.
	Text string
	// Gone says that the receiver wants no more of it.
	Gone bool
	// After is how long the receiver wants to be left alone; 0 if it does not say.
	After time.Duration
	// Unsigned says that nothing was sent, since it could not be signed.
	Unsigned bool
}

// Error returns the text.
func (f *Failure) Error() string { return f.Text }
