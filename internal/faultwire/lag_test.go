// SPDX-License-Identifier: Apache-2.0

package faultwire

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"k8s.io/apimachinery/pkg/watch"
)

// happened writes events as the API server does: "ADDED a 1", the type, the name and the version.
func happened(lines ...string) string {
	var b strings.Builder
	for _, line := range lines {
		f := strings.Fields(line)
		fmt.Fprintf(&b, `{"type":%q,"object":{"kind":"Thing","metadata":{"namespace":"ns","name":%q,"resourceVersion":%q}}}`+"\n", f[0], f[1], f[2])
	}
	return b.String()
}

// events reads a body to its end and returns its events in the form of happened.
func events(body io.Reader) ([]string, error) {
	var lines []string
	d := json.NewDecoder(body)
	for {
		var e struct {
			Type   string
			Object struct {
				Code     int
				Metadata struct{ Name, ResourceVersion string }
			}
		}
		switch err := d.Decode(&e); {
		case errors.Is(err, io.EOF):
			return lines, nil
		case err != nil:
			return lines, err
		case e.Object.Code != 0:
			lines = append(lines, fmt.Sprintf("%s %d", e.Type, e.Object.Code))
		default:
			lines = append(lines, fmt.Sprintf("%s %s %s", e.Type, e.Object.Metadata.Name, e.Object.Metadata.ResourceVersion))
		}
	}
}

func TestWhatHappenedToAnObjectUnseenIsOneChange(t *testing.T) {
	for name, c := range map[string]struct{ happened, seen []string }{
		"of several states the last one is seen":    {[]string{"MODIFIED a 1", "MODIFIED a 2"}, []string{"MODIFIED a 2"}},
		"an object that came and changed has come":  {[]string{"ADDED a 1", "MODIFIED a 2"}, []string{"ADDED a 2"}},
		"one that came and went was never there":    {[]string{"ADDED a 1", "MODIFIED a 2", "DELETED a 3"}, nil},
		"one that changed and went has gone":        {[]string{"MODIFIED a 1", "DELETED a 2"}, []string{"DELETED a 2"}},
		"one that was made anew has merely changed": {[]string{"DELETED a 1", "ADDED a 2"}, []string{"MODIFIED a 2"}},
		"so has one that then changed":              {[]string{"DELETED a 1", "ADDED a 2", "MODIFIED a 3"}, []string{"MODIFIED a 3"}},
		"one that was made anew and went has gone":  {[]string{"DELETED a 1", "ADDED a 2", "DELETED a 3"}, []string{"DELETED a 1"}},
		"and so has one that changed before":        {[]string{"MODIFIED a 1", "DELETED a 2", "ADDED a 3", "DELETED a 4"}, []string{"DELETED a 2"}},
		"what went meanwhile goes when it did":      {[]string{"DELETED a 1", "ADDED a 2", "ADDED b 3", "DELETED a 4"}, []string{"DELETED a 1", "ADDED b 3"}},
		"two that came and went were never there":   {[]string{"ADDED a 1", "DELETED a 2", "ADDED a 3", "DELETED a 4"}, nil},
		"one that came, went and came has come":     {[]string{"ADDED a 1", "DELETED a 2", "ADDED a 3"}, []string{"ADDED a 3"}},
		"others keep their place":                   {[]string{"MODIFIED a 1", "ADDED b 2", "MODIFIED a 3"}, []string{"ADDED b 2", "MODIFIED a 3"}},
		"a bookmark stays":                          {[]string{"MODIFIED a 1", "BOOKMARK - 2", "MODIFIED a 3"}, []string{"BOOKMARK - 2", "MODIFIED a 3"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var b strings.Builder
			for _, e := range merge(decoded(t, happened(c.happened...))) {
				b.Write(e.encode())
			}
			g.Expect(events(strings.NewReader(b.String()))).To(Equal(c.seen))
		})
	}
}

type fataler interface{ Fatal(...any) }

func decoded(t fataler, raw string) []event {
	var all []event
	d := json.NewDecoder(strings.NewReader(raw))
	for {
		e, err := decode(d)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
}

// births tells for each version which one the object came with.
func births(lines []string) map[string]string {
	births, last := map[string]string{}, map[string]string{}
	for _, line := range lines {
		f := strings.Fields(line)
		if watch.EventType(f[0]) == watch.Added {
			last[f[1]] = f[2]
		}
		births[f[2]] = last[f[1]]
	}
	return births
}

// apply makes a cache of events: the version of each object, by name. It fails on an event that no cache can be given.
func apply(t fataler, cache, births map[string]string, lines []string) {
	for _, line := range lines {
		f := strings.Fields(line)
		_, known := cache[f[1]]
		switch watch.EventType(f[0]) {
		case watch.Added:
			if known {
				t.Fatal("added twice: " + line)
			}
			cache[f[1]] = f[2]
		case watch.Modified:
			if !known {
				t.Fatal("changed before it came: " + line)
			}
			cache[f[1]] = f[2]
		case watch.Deleted:
			if !known {
				t.Fatal("went before it came: " + line)
			}
			if births[cache[f[1]]] != births[f[2]] {
				t.Fatal("another of its name went: " + line)
			}
			delete(cache, f[1])
		default:
			t.Fatal(line)
		}
	}
}

// history draws events that can happen in this order, of a few objects.
func history(t *rapid.T) []string {
	there := map[string]bool{}
	var lines []string
	for i := range rapid.IntRange(0, 20).Draw(t, "events") {
		name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
		kind := watch.Added
		if there[name] {
			kind = rapid.SampledFrom([]watch.EventType{watch.Modified, watch.Deleted}).Draw(t, "type")
		}
		there[name] = kind != watch.Deleted
		lines = append(lines, fmt.Sprintf("%s %s %d", kind, name, i+1))
	}
	return lines
}

func TestAMergedHistoryLeadsToTheSameCacheByEventsThatCanHappen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := history(t)
		at := rapid.IntRange(0, len(lines)).Draw(t, "at")
		var b strings.Builder
		for _, e := range merge(decoded(t, happened(lines[at:]...))) {
			b.Write(e.encode())
		}
		left, err := events(strings.NewReader(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		whole, merged, born := map[string]string{}, map[string]string{}, births(lines)
		apply(t, whole, born, lines)
		apply(t, merged, born, lines[:at])
		apply(t, merged, born, left)
		if fmt.Sprint(whole) != fmt.Sprint(merged) {
			t.Fatalf("%v, and %v with the rest merged", whole, merged)
		}
	})
}

// open is a source that stays open after its events.
type open struct {
	io.Reader
	closed chan struct{}
}

func opened(raw string) *open {
	o := &open{closed: make(chan struct{})}
	o.Reader = io.MultiReader(strings.NewReader(raw), o.end())
	return o
}

func (o *open) end() io.Reader {
	return readerFunc(func([]byte) (int, error) { <-o.closed; return 0, io.EOF })
}

func (o *open) Close() error {
	select {
	case <-o.closed:
	default:
		close(o.closed)
	}
	return nil
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// many changes of one object.
func many(n int) []string {
	var lines []string
	for i := range n {
		lines = append(lines, fmt.Sprintf("MODIFIED a %d", i+1))
	}
	return lines
}

func TestEventsAreHeldBackAndKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		v := NewView(Blur{Seed: 1, Lag: time.Minute})
		begun := time.Now()
		seen, err := events(v.Watch("things", io.NopCloser(slow(strings.NewReader(happened(many(50)...)), time.Second))))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(seen).To(Equal(many(50)))
		g.Expect(time.Since(begun)).To(BeNumerically(">", 10*time.Second))
		g.Expect(v.Seen().Events).To(Equal(50))
		g.Expect(v.Seen().Late).To(BeNumerically("~", 25, 15))
	})
}

// slow gives a line at a time, with a pause before each.
func slow(r io.Reader, pause time.Duration) io.Reader {
	in, out := io.Pipe()
	go func() {
		raw, _ := io.ReadAll(r)
		for line := range strings.Lines(string(raw)) {
			<-time.After(pause)
			if _, err := io.WriteString(out, line); err != nil {
				return
			}
		}
		_ = out.Close()
	}()
	return in
}

func TestWhatIsHeldBackComesAtOnceWhenTheViewClears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		v := NewView(Blur{Seed: 1, Lag: 24 * time.Hour, Merge: 1, Expire: 1, Ends: 9})
		source := opened(happened(many(9)...))
		body := v.Watch("things", source)
		synctest.Wait()
		begun := time.Now()
		v.Clear()
		seen := make(chan []string)
		go func() {
			lines, _ := events(body)
			seen <- lines
		}()
		synctest.Wait()
		_ = source.Close()
		g.Expect(<-seen).To(Equal(many(9)))
		g.Expect(time.Since(begun)).To(BeZero())
	})
}

func TestAnExpiredWatchEndsAsTheAPIServerEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		v := NewView(Blur{Seed: 1, Lag: time.Minute, Expire: 1, Ends: 1})
		seen, err := events(v.Watch("things", opened(happened(many(9)...))))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(seen).To(Equal([]string{"ERROR 410"}))
		seen, _ = events(v.Watch("things", io.NopCloser(strings.NewReader(happened(many(9)...)))))
		g.Expect(seen).To(HaveLen(9), "one of each kind ends")
		g.Expect(v.Seen().Expired).To(Equal(1))
	})
}

func TestABrokenWatchEndsInTheMiddleOfAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		v := NewView(Blur{Seed: 1, Break: 1, Ends: 1})
		source := opened(happened(many(9)...))
		seen, err := events(v.Watch("things", source))
		g.Expect(err).To(MatchError(io.ErrUnexpectedEOF))
		g.Expect(seen).To(BeEmpty())
		<-source.closed
		g.Expect(v.Seen().Broken).To(Equal(1))
	})
}

func TestAWatchThatIsClosedTellsTheAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := opened(happened(many(9)...))
		body := NewView(Blur{Seed: 1, Lag: time.Hour}).Watch("things", source)
		NewWithT(t).Expect(body.Close()).To(Succeed())
		<-source.closed
	})
}

func TestTheSameSeedHoldsBackTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var runs [][]string
		for range 2 {
			v := NewView(Blur{Seed: 7, Lag: time.Minute, Merge: 0.3})
			seen, err := events(v.Watch("things", io.NopCloser(slow(strings.NewReader(happened(many(99)...)), time.Second))))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(slices.IsSorted(versions(seen))).To(BeTrue())
			g.Expect(v.Seen().Unseen).To(Equal(99 - len(seen)))
			g.Expect(len(seen)).To(And(BeNumerically(">", 5), BeNumerically("<", 90)))
			runs = append(runs, seen)
		}
		g.Expect(runs[1]).To(Equal(runs[0]))
	})
}

func versions(lines []string) []int {
	var all []int
	for _, line := range lines {
		var v int
		_, _ = fmt.Sscanf(strings.Fields(line)[2], "%d", &v)
		all = append(all, v)
	}
	return all
}
