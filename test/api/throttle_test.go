// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/controllers/jobqueue"
	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/operator"
	"reprise.dev/reprise/internal/run"
)

// The disaster that the start-up throttle is for: a manager that starts over what 231 runs at work and thousands of waiting
// ones have become.
const (
	staleRunning    = 200
	staleCancelling = 31
	queuedRuns      = 5000
	farmSlots       = 8 // of a queue: scrape 1, crawl 6, extract 1
	farmBurst       = 5
	farmWindow      = 60 * time.Second
	farmStagger     = time.Second
)

// farm is the queues of the disaster and the server that their runs call, each queue under a path of its own. Calls are held
// until they are released.
type farm struct {
	*world
	queues   []string
	server   *httptest.Server
	clock    *clocktesting.FakeClock
	since    time.Time
	released chan struct{}

	mu      sync.Mutex
	started map[string]int
	atWork  map[string]int
}

func newFarm(t *testing.T, queues int) *farm {
	f := &farm{world: newWorld(t), released: make(chan struct{}), started: map[string]int{}, atWork: map[string]int{}}
	f.server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(func() {
		f.server.CloseClientConnections()
		f.server.Close()
	})
	limits := []batchv1alpha1.TypeConcurrency{{Name: "scrape", Limit: ptr.To[int32](1)}, {Name: "crawl", Limit: ptr.To[int32](6)}, {Name: "extract", Limit: ptr.To[int32](1)}}
	for i := range queues {
		q := &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: fmt.Sprintf("farm-%d", i)}}
		q.Spec.Concurrency = &batchv1alpha1.QueueConcurrency{Types: limits}
		f.create(q)
		f.queues = append(f.queues, q.Name)
	}
	return f
}

func (f *farm) serve(rw http.ResponseWriter, r *http.Request) {
	queue := r.URL.Path[1:]
	f.count(queue, 1, 1)
	defer f.count(queue, 0, -1)
	select {
	case <-f.released:
		_, _ = io.WriteString(rw, "done")
	case <-r.Context().Done():
	}
}

func (f *farm) count(queue string, started, atWork int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started[queue] += started
	f.atWork[queue] += atWork
}

// read returns a count of each queue, in the order of the queues.
func (f *farm) read(of func() map[string]int) func() []int {
	return func() []int {
		f.mu.Lock()
		defer f.mu.Unlock()
		var all []int
		for _, q := range f.queues {
			all = append(all, of()[q])
		}
		return all
	}
}

func (f *farm) working() []int    { return f.read(func() map[string]int { return f.atWork })() }
func (f *farm) admissions() []int { return f.read(func() map[string]int { return f.started })() }

func sum(counts []int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

// typeOf spreads the runs over the types as the limits do.
func typeOf(i int) string {
	switch i % farmSlots {
	case 0:
		return "scrape"
	case 1:
		return "extract"
	default:
		return "crawl"
	}
}

// fill leaves what the crashed manager left, and returns the versions of the runs that wait.
func (f *farm) fill() map[string]string {
	f.t.Helper()
	var writers errgroup.Group
	writers.SetLimit(32)
	build := func(kind string, i int) *batchv1alpha1.JobRun {
		queue := f.queues[i%len(f.queues)]
		return f.httpRun(fmt.Sprintf("%s-%04d", kind, i), f.server.URL+"/"+queue, inQueue(queue), ofType(typeOf(i/len(f.queues))))
	}
	for i := range staleRunning + staleCancelling {
		writers.Go(func() error {
			r := build("stale", i)
			r.Spec.Cancel = i >= staleRunning
			if err := f.Create(f.ctx, r); err != nil {
				return err
			}
			started := time.Now().Add(-ranFor)
			run.Claim{Incarnation: crashed(), Deadline: ptr.To(started.Add(time.Hour))}.Apply(r, started)
			if err := f.Status().Update(f.ctx, r); err != nil || !r.Spec.Cancel {
				return err
			}
			run.BeginCancel(r, started)
			return f.Status().Update(f.ctx, r)
		})
	}
	waiting := make([]*batchv1alpha1.JobRun, queuedRuns)
	for i := range waiting {
		waiting[i] = build("queued", i)
		writers.Go(func() error { return f.Create(f.ctx, waiting[i]) })
	}
	f.Expect(writers.Wait()).To(Succeed())
	versions := map[string]string{}
	for _, r := range waiting {
		versions[r.Name] = r.ResourceVersion
	}
	return versions
}

// restart starts a manager whose clock the test moves, and waits until it is ready.
func (f *farm) restart() *manager {
	f.t.Helper()
	f.clock = clocktesting.NewFakeClock(time.Now())
	f.since = f.clock.Now()
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(listen.Close()).To(Succeed())
	m := f.start(func(o *operator.Options) {
		o.Clock = f.clock
		o.ProbeAddress = listen.Addr().String()
		o.Startup = jobqueue.Startup{Window: farmWindow, Stagger: farmStagger, BurstLimit: farmBurst}
	})
	f.Eventually(func() bool {
		response, err := http.Get("http://" + listen.Addr().String() + "/readyz")
		if err != nil {
			return false
		}
		defer func() { _ = response.Body.Close() }()
		return response.StatusCode == http.StatusOK
	}).Should(BeTrue())
	return m
}

// until moves the clock, and has every queue looked at again: its own wake-ups are by the time of the machine.
func (f *farm) until(after time.Duration) {
	f.t.Helper()
	f.clock.SetTime(f.since.Add(after))
	for _, name := range f.queues {
		q := f.readQueue(name)
		f.patch(q, func() { metav1.SetMetaDataAnnotation(&q.ObjectMeta, "test", after.String()) })
	}
}

// open is how many slots of each queue are open at that time after the start.
func (f *farm) open(after time.Duration) []int {
	var open []int
	for _, name := range f.queues {
		n := 0
		if since := after - admission.Offset(f.ns, name, farmStagger); since >= 0 {
			n = min(farmSlots, 1+int(since/farmStagger))
		}
		open = append(open, n)
	}
	return open
}

func TestAManagerThatStartsOverHundredsOfStaleAndThousandsOfQueuedRunsDoesNotFlood(t *testing.T) {
	t.Parallel()
	for name, queues := range map[string]int{"in one queue": 1, "over eight queues": 8} {
		t.Run(name, func(t *testing.T) {
			f := newFarm(t, queues)
			versions := f.fill()
			m := f.restart()

			byType := map[string]int{}
			for i := range staleRunning + staleCancelling {
				byType[typeOf(i/queues)]++
			}
			f.Expect(f.summary(m)).To(And(counts(staleRunning, staleCancelling, 0, 0), HaveKeyWithValue("not_evaluated", BeNumerically("==", 0)),
				HaveKeyWithValue("by_type", And(HaveLen(3),
					HaveKeyWithValue("scrape", BeNumerically("==", byType["scrape"])),
					HaveKeyWithValue("crawl", BeNumerically("==", byType["crawl"])),
					HaveKeyWithValue("extract", BeNumerically("==", byType["extract"]))))))
			f.resolved()
			f.untouched(versions)

			f.staggered()
			close(f.released)
			burst := make([]int, queues)
			for i := range burst {
				burst[i] = farmBurst * farmSlots
			}
			f.Eventually(f.admissions).Should(Equal(burst))
			f.until(farmWindow - time.Second)
			f.Consistently(f.admissions, time.Second).Should(Equal(burst), "retries count, too")

			f.until(farmWindow + time.Second)
			f.Eventually(func() int { return sum(f.admissions()) }).Should(BeNumerically(">=", 2*sum(burst)), "at full speed")
			lines := len(m.log.all())
			f.Expect(lines).To(BeNumerically("<=", 5*sum(f.admissions())+staleRunning+staleCancelling))
			for _, q := range f.queues {
				ledger := &batchv1alpha1.QueueLedger{}
				f.Expect(f.Get(f.ctx, client.ObjectKey{Namespace: f.ns, Name: q}, ledger)).To(Succeed())
				f.Expect(ledger.Spec.RecentAdmissions).To(BeEmpty())
			}
		})
	}
}

// resolved expects every run of the crashed manager to be Failed with its reason.
func (f *farm) resolved() {
	f.t.Helper()
	for i := range staleRunning + staleCancelling {
		r := f.get(fmt.Sprintf("stale-%04d", i))
		f.Expect(r.Status.Phase).To(Equal(batchv1alpha1.JobRunFailed), r.Name)
		f.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonCrashRecovery), r.Name)
		f.Expect(r.Status.Message).To(Equal(map[bool]string{false: wasRunning, true: wasCancelling}[i >= staleRunning]), r.Name)
	}
}

// untouched expects that nothing was written to the runs that wait, but for those that were admitted.
func (f *farm) untouched(versions map[string]string) {
	f.t.Helper()
	list := &batchv1alpha1.JobRunList{}
	f.Expect(f.List(f.ctx, list, client.InNamespace(f.ns))).To(Succeed())
	changed := 0
	for _, r := range list.Items {
		if version, waited := versions[r.Name]; waited && r.ResourceVersion != version {
			changed++
		}
	}
	f.Expect(changed).To(BeNumerically("<=", len(f.queues)), "one slot of each queue may have opened by now")
}

// staggered moves the clock by less than a stagger at a time, and expects the slots to open one after the other.
func (f *farm) staggered() {
	f.t.Helper()
	after := time.Duration(0)
	for {
		f.Eventually(f.working).Should(Equal(f.open(after)), "%s after the start", after)
		if n := f.open(after); sum(n) == farmSlots*len(f.queues) {
			return
		}
		after += farmStagger / 2
		f.Expect(f.working()).To(Equal(f.open(after-farmStagger/2)), "no slot opens early")
		f.until(after)
	}
}
