// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"testing"
)

func TestWhatAGoBenchmarkPrintsIsReadByNameAndUnit(t *testing.T) {
	got, err := benchmarked(`goos: linux
cpu: AMD EPYC
BenchmarkAdmission/queued=1000-2         	   20000	      9123 ns/op	        21.50 queue-ops/op	    3456 B/op	      41 allocs/op
BenchmarkAdmission/queued=100000-2       	   20000	     15000 ns/op	        22.50 queue-ops/op	    4000 B/op	      42 allocs/op
PASS
ok  	reprise.dev/reprise/internal/admission	3.1s
`)
	if err != nil {
		t.Fatal(err)
	}
	want := Sample{
		"queued=1000 ns/op": 9123, "queued=1000 queue-ops/op": 21.5, "queued=1000 B/op": 3456, "queued=1000 allocs/op": 41,
		"queued=100000 ns/op": 15000, "queued=100000 queue-ops/op": 22.5, "queued=100000 B/op": 4000, "queued=100000 allocs/op": 42,
	}
	if !maps.Equal(got, want) {
		t.Errorf("read %v", got)
	}
}

func TestAnOutputWithoutABenchmarkIsAnError(t *testing.T) {
	for _, output := range []string{"", "PASS\nok reprise.dev/reprise/internal/admission 3.1s [no tests to run]\n", "BenchmarkAdmission-2 20000 many ns/op\n"} {
		if got, err := benchmarked(output); err == nil {
			t.Errorf("of %q it reads %v", output, got)
		}
	}
}
