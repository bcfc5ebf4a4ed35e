// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"testing"
	"time"

	"reprise.dev/reprise/internal/operator"
)

// BenchmarkThroughput measures runs per second and API writes per run at a queue without a limit that matters.
func BenchmarkThroughput(b *testing.B) {
	const runs = 2000
	for range b.N {
		elapsed := drain(b, 100000, runs)
		b.ReportMetric(runs/elapsed.Seconds(), "runs/s")
	}
}

// BenchmarkLimitOne measures the time from one run to the next at a queue with one slot.
func BenchmarkLimitOne(b *testing.B) {
	const runs = 300
	for range b.N {
		elapsed := drain(b, 1, runs)
		b.ReportMetric(float64(elapsed.Milliseconds())/runs, "ms/run")
	}
}

// drain lets a queue that is full of waiting runs go, and returns how long it took until all have ended.
func drain(b *testing.B, limit int32, runs int) time.Duration {
	b.Helper()
	b.StopTimer()
	defer b.StartTimer()
	be := newBench(b, limit, true)
	be.submit(runs)
	stop := be.manage()
	defer stop()
	be.wait(func() bool { return be.writes.total() > 0 })
	be.writes.take()
	b.StartTimer()
	start := time.Now()
	be.release()
	be.wait(func() bool { return be.calls.Load() >= int64(runs) })
	be.ended()
	elapsed := time.Since(start)
	b.StopTimer()
	report(b, be.writes.take(), runs)
	return elapsed
}

// BenchmarkRestartOverALongQueue measures how soon a manager that starts over waiting runs is ready, and admits the first of
// them.
func BenchmarkRestartOverALongQueue(b *testing.B) {
	for _, waiting := range []int{5000, 100000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			be := newBench(b, 1, false)
			be.submit(waiting)
			b.ResetTimer()
			for range b.N {
				before := be.calls.Load()
				address := freeAddress(b)
				start := time.Now()
				stop := be.manage(func(o *operator.Options) { o.ProbeAddress = address })
				be.wait(func() bool { return ready(address) })
				b.ReportMetric(time.Since(start).Seconds(), "s/ready")
				be.wait(func() bool { return be.calls.Load() > before })
				b.ReportMetric(time.Since(start).Seconds(), "s/first-call")
				b.StopTimer()
				stop()
				b.StartTimer()
			}
		})
	}
}

// report prints the writes per run and where they went. The creation of a run, which is the client's, counts as one.
func report(b *testing.B, counted map[string]int, runs int) {
	b.Helper()
	total := 0
	for _, n := range counted {
		total += n
	}
	b.ReportMetric(1+float64(total)/float64(runs), "writes/run")
	b.ReportMetric(float64(counted["queueledgers"])/float64(runs), "swaps/run")
	b.ReportMetric(float64(counted["jobqueues"])/float64(runs), "queue-status/run")
}
