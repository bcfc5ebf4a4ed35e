// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"testing"
)

// BenchmarkView is one command over a namespace with many runs.
func BenchmarkView(b *testing.B) {
	objects := []any{aQueue(10, withType("a", 3), withResource("gpu", 2)), aReservation("shell", "7", active)}
	for i := range 50_000 {
		r := aRun(fmt.Sprint("n", i), submitted(fmt.Sprint(i+1)))
		switch {
		case i < 10:
			running(-i)(r)
		case i%3 == 0:
			ofType("a")(r)
		case i%3 == 1:
			claiming("gpu", 1)(r)
		}
		objects = append(objects, r)
	}
	s := seen(objects...)
	for b.Loop() {
		v := New(s, at(60).Time)
		if _, ok := v.Queue("main", 1000); !ok {
			b.Fatal("no queue")
		}
	}
}
