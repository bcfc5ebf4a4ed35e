// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"strings"
	"testing"
	"time"
)

func TestTasksComeInOrderOfTimeAndThenOfTheirKeys(t *testing.T) {
	var a agenda
	var order strings.Builder
	at := func(seconds int64, key string) {
		a.add(time.Unix(seconds, 0), key, func() { order.WriteString(key) })
	}
	at(2, "d")
	at(1, "c")
	at(1, "a")
	at(1, "b")
	for {
		next, wait := a.next(time.Unix(1, 0))
		if next == nil {
			if wait != time.Second {
				t.Errorf("the last is due in %s", wait)
			}
			break
		}
		next.do()
	}
	if order.String() != "abc" {
		t.Errorf("the order was %s", order.String())
	}
}

func TestAnEmptyAgendaWaitsForNothing(t *testing.T) {
	var a agenda
	if next, wait := a.next(time.Unix(0, 0)); next != nil || wait >= 0 {
		t.Errorf("%v in %s", next, wait)
	}
}
