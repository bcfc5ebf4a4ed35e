// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

// reading is a body that comes from r, and the context that it cuts.
func reading(b *bench, r io.Reader, limit int64) (*body, context.Context) {
	ctx, cut := context.WithCancelCause(b.t.Context())
	request := httptest.NewRequest(http.MethodPost, "/", struct{ io.Reader }{r})
	request.ContentLength = -1
	return newBody(request, http.NewResponseController(httptest.NewRecorder()), limit, b.budget, b.clock, cut), ctx
}

func TestASmallBodyIsWholeBeforeAnybodyReadsIt(t *testing.T) {
	g := NewWithT(t)
	body, _ := reading(newBench(t), strings.NewReader("hello"), 100)
	g.Expect(body.begun(t.Context(), time.Second)).To(BeNil())
	g.Eventually(body.whole, patience, time.Millisecond).Should(BeTrue())
	content, err := io.ReadAll(body)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).To(Equal("hello"))
	g.Expect(body.taken()).To(Equal(int64(5)))
}

func TestOfALargeBodyNoMoreIsTakenThanFits(t *testing.T) {
	g := NewWithT(t)
	sent := bytes.Repeat([]byte("0123456789"), 1<<17)
	body, _ := reading(newBench(t), bytes.NewReader(sent), 1<<30)
	g.Eventually(body.taken, patience, time.Millisecond).Should(BeNumerically("==", maxAhead))
	g.Consistently(body.taken, 20*time.Millisecond, time.Millisecond).Should(BeNumerically("==", maxAhead))
	content, err := io.ReadAll(body)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(bytes.Equal(content, sent)).To(BeTrue())
}

func TestAllBodiesShareOneBudgetAndEachMovesOnWithoutIt(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t)
	b.budget = newBudget(4 * pieceSize)
	sent := bytes.Repeat([]byte("0123456789"), 1<<17)
	greedy, _ := reading(b, bytes.NewReader(sent), 1<<30)
	g.Eventually(greedy.taken, patience, time.Millisecond).Should(BeNumerically("==", 5*pieceSize), "one of its own and the budget")
	late, _ := reading(b, bytes.NewReader(sent), 1<<30)
	g.Eventually(late.taken, patience, time.Millisecond).Should(BeNumerically("==", pieceSize))
	g.Consistently(func() int64 { return greedy.taken() + late.taken() }, 20*time.Millisecond, time.Millisecond).Should(BeNumerically("==", 6*pieceSize))
	content, err := io.ReadAll(late)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(bytes.Equal(content, sent)).To(BeTrue())
	g.Expect(b.budget).To(HaveLen(4), "the other keeps what it has")

	next, _ := reading(b, bytes.NewReader(sent), 1<<30)
	g.Eventually(next.taken, patience, time.Millisecond).Should(BeNumerically("==", pieceSize))
	greedy.stop(0)
	g.Eventually(next.taken, patience, time.Millisecond).Should(BeNumerically("==", 5*pieceSize), "what is given back is the next one's")
	next.stop(0)
	g.Expect(b.budget).To(BeEmpty())
}

func TestWhatIsTakenOfABodyIsWhatWasReadWhateverTheSizes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := &ahead{budget: newBudget(rapid.IntRange(0, 3).Draw(t, "budget") * pieceSize)}
		var in, out byte
		held := 0
		t.Repeat(map[string]func(*rapid.T){
			"read": func(t *rapid.T) {
				space := a.space()
				space = space[:rapid.IntRange(0, len(space)).Draw(t, "n")]
				for i := range space {
					in++
					space[i] = in
				}
				if space != nil {
					a.filled(len(space))
				}
				held += len(space)
			},
			"take": func(t *rapid.T) {
				p := make([]byte, rapid.IntRange(0, 2*pieceSize).Draw(t, "n"))
				n := a.take(p)
				for _, c := range p[:n] {
					if out++; c != out {
						t.Fatalf("%d where %d was to come", c, out)
					}
				}
				held -= n
			},
			"": func(t *rapid.T) {
				if a.empty() != (held == 0) {
					t.Fatalf("empty is %t, and %d bytes are held", a.empty(), held)
				}
				if len(a.budget) != max(0, len(a.pieces)-1) {
					t.Fatalf("%d pieces, of which %d are of the budget", len(a.pieces), len(a.budget))
				}
			},
		})
		a.drop()
		if len(a.budget) != 0 {
			t.Fatal("not all of the budget is given back")
		}
	})
}

func TestABodyThatBreaksOffOrGrowsTooLongCutsTheRequest(t *testing.T) {
	for name, c := range map[string]struct {
		from io.Reader
		code string
	}{
		"too long":  {strings.NewReader("12345678901"), "BodyTooLarge"},
		"broken":    {io.MultiReader(strings.NewReader("123"), broken{}), "BodyUnreadable"},
		"not begun": {broken{}, "BodyUnreadable"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			body, ctx := reading(newBench(t), c.from, 10)
			await(t, "the cut", ctx.Done())
			g.Expect(cause(ctx).code).To(Equal(c.code))
			_, err := io.ReadAll(body)
			p := (*problem)(nil)
			g.Expect(errors.As(err, &p)).To(BeTrue(), "it must not look whole")
			g.Expect(body.whole()).To(BeFalse())
		})
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestABodyThatDoesNotBeginIsNotWaitedForForLong(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t)
	from, to := io.Pipe()
	body, _ := reading(b, from, 10)
	done := make(chan *problem, 1)
	go func() { done <- body.begun(t.Context(), 10*time.Second) }()
	b.step(1, 10*time.Second)
	g.Expect(await(t, "the refusal", done).status).To(Equal(http.StatusRequestTimeout))
	g.Expect(to.Close()).To(Succeed())
	<-body.ended
}

func TestAClientThatStopsSendingIsCutAndOneThatIsNotWaitedForIsNot(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t)
	from, to := io.Pipe()
	body, ctx := reading(b, from, 1<<30)
	full := make([]byte, maxAhead)
	_, err := to.Write(full)
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() bool {
		body.mu.Lock()
		defer body.mu.Unlock()
		return body.reading.IsZero()
	}, patience, time.Millisecond).Should(BeTrue())
	done := make(chan struct{})
	go func() {
		defer close(done)
		body.watch(ctx, 30*time.Second)
	}()
	b.step(1, 30*time.Second) // nobody takes what there is: that is not the client's fault
	b.step(1, 0)
	g.Expect(ctx.Err()).NotTo(HaveOccurred())
	_, err = io.ReadFull(body, full)
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() bool {
		b.clock.Step(time.Second)
		return ctx.Err() != nil
	}, patience, time.Millisecond).Should(BeTrue())
	g.Expect(cause(ctx).code).To(Equal("BodyTimeout"))
	<-done
	g.Expect(to.Close()).To(Succeed())
}

func TestABodyThatIsClosedLetsNobodyWait(t *testing.T) {
	g := NewWithT(t)
	from, to := io.Pipe()
	body, _ := reading(newBench(t), from, 10)
	done := make(chan error, 1)
	go func() {
		_, err := body.Read(make([]byte, 1))
		done <- err
	}()
	g.Expect(body.Close()).To(Succeed())
	g.Expect(await(t, "the end", done)).To(MatchError(http.ErrBodyReadAfterClose))
	g.Expect(body.Close()).To(Succeed())
	g.Expect(to.Close()).To(Succeed())
	<-body.ended
}
