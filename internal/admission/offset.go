// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// offsetStaggers bounds how much later than another the first slot of a queue opens.
const offsetStaggers = 5

// Offset returns when the first slot of a queue opens after a manager has begun to lead: a time of its own for each name, so
// that the queues of a manager do not open together. It is less than 5 staggers, however many queues there are: a manager
// that lives longer than that has admitted something from every queue, so that even one that restarts again and again
// starves none.
func Offset(namespace, name string, stagger time.Duration) time.Duration {
	if stagger <= 0 {
		return 0
	}
	hash := sha256.Sum256([]byte(namespace + "/" + name)) // simpler hashes crowd names that are much alike
	part := float64(binary.BigEndian.Uint32(hash[:])) / (1 << 32)
	return time.Duration(part * float64(offsetStaggers*stagger))
}
