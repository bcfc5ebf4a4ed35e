// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkThroughput measures runs per second and API writes per run at a queue without a limit that matters. The runs wait
// when the clock starts; their creation is the third write of a run and is added to the figure.
func BenchmarkThroughput(b *testing.B) {
	const runs = 2000
	for range b.N {
		b.StopTimer()
		be := newBench(b, 100000, true)
		be.submit(runs)
		stop := be.manage()
		be.wait(func() bool { return be.writes.total() > 0 })
		be.writes.take()
		b.StartTimer()
		start := time.Now()
		be.release()
		be.wait(func() bool { return be.calls.Load() >= runs })
		be.ended()
		elapsed := time.Since(start)
		b.StopTimer()
		report(b, be.writes.take(), runs)
		b.ReportMetric(runs/elapsed.Seconds(), "runs/s")
		stop()
		b.StartTimer()
	}
}

// BenchmarkLimitOne measures the time from one run to the next at a queue with one slot.
func BenchmarkLimitOne(b *testing.B) {
	const runs = 300
	for range b.N {
		b.StopTimer()
		be := newBench(b, 1, true)
		be.submit(runs)
		stop := be.manage()
		be.wait(func() bool { return be.writes.total() > 0 })
		be.writes.take()
		b.StartTimer()
		start := time.Now()
		be.release()
		be.wait(func() bool { return be.calls.Load() >= runs })
		elapsed := time.Since(start)
		be.ended()
		b.StopTimer()
		report(b, be.writes.take(), runs)
		b.ReportMetric(float64(elapsed.Milliseconds())/runs, "ms/run")
		stop()
		b.StartTimer()
	}
}

// BenchmarkRestartOverALongQueue measures how soon a manager that starts over waiting runs admits the first of them.
func BenchmarkRestartOverALongQueue(b *testing.B) {
	for _, waiting := range []int{5000, 100000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			be := newBench(b, 1, false)
			be.submit(waiting)
			b.ResetTimer()
			for range b.N {
				before := be.calls.Load()
				start := time.Now()
				stop := be.manage()
				be.wait(func() bool { return be.calls.Load() > before })
				b.ReportMetric(time.Since(start).Seconds(), "s/first-call")
				b.StopTimer()
				stop()
				b.StartTimer()
			}
		})
	}
}

// report prints the writes per run, the creation included, and where they went.
func report(b *testing.B, counted map[string]int, runs int) {
	total := 0
	for _, n := range counted {
		total += n
	}
	b.ReportMetric(1+float64(total)/float64(runs), "writes/run")
	b.ReportMetric(float64(counted["queueledgers"])/float64(runs), "swaps/run")
	b.ReportMetric(float64(counted["jobqueues"])/float64(runs), "queue-status/run")
}
