// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// reviewed is a bench whose API server answers reviews with that.
func reviewed(t *testing.T, answer func(client.Object) error) *bench {
	b := newBench(t)
	o := b.options(interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
		return answer(o)
	}})
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	b.Front = f
	return b
}

func bearing(values ...string) *http.Request {
	return &http.Request{Header: http.Header{"Authorization": values}}
}

// knows answers that every token is ada's, for those audiences.
func knows(asked *atomic.Int32, audiences ...string) func(client.Object) error {
	return func(o client.Object) error {
		asked.Add(1)
		review := o.(*authenticationv1.TokenReview)
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: "ada"}, Audiences: audiences}
		return nil
	}
}

func TestATokenIsReviewedOnceForAWhile(t *testing.T) {
	g := NewWithT(t)
	var asked atomic.Int32
	b := reviewed(t, knows(&asked, audience))
	for range 3 {
		u, p := b.users.user(t.Context(), bearing("Bearer one"))
		g.Expect(p).To(BeNil())
		g.Expect(u.Username).To(Equal("ada"))
	}
	g.Expect(asked.Load()).To(Equal(int32(1)))
	b.clock.Step(10 * time.Second)
	_, p := b.users.user(t.Context(), bearing("bearer  one"))
	g.Expect(p).To(BeNil())
	g.Expect(asked.Load()).To(Equal(int32(2)))
	_, p = b.users.user(t.Context(), bearing("Bearer two"))
	g.Expect(p).To(BeNil())
	g.Expect(asked.Load()).To(Equal(int32(3)))
}

func TestWhatIsNoTokenForUsIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		values []string
		answer func(*atomic.Int32) func(client.Object) error
		asked  int32
	}{
		"none":                    {nil, nil, 0},
		"a password":              {[]string{"Basic YTpi"}, nil, 0},
		"an empty one":            {[]string{"Bearer "}, nil, 0},
		"two":                     {[]string{"Bearer one", "Bearer two"}, nil, 0},
		"two in one":              {[]string{"Bearer one two"}, nil, 0},
		"one of another audience": {[]string{"Bearer one"}, func(n *atomic.Int32) func(client.Object) error { return knows(n, "another.test") }, 2},
		"one of no audience":      {[]string{"Bearer one"}, func(n *atomic.Int32) func(client.Object) error { return knows(n) }, 2},
		"one that is not anyone's": {[]string{"Bearer one"}, func(n *atomic.Int32) func(client.Object) error {
			return func(client.Object) error { n.Add(1); return nil }
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var asked atomic.Int32
			answer := knows(&asked, audience)
			if c.answer != nil {
				answer = c.answer(&asked)
			}
			b := reviewed(t, answer)
			for range 2 {
				_, p := b.users.user(t.Context(), bearing(c.values...))
				g.Expect(p.status).To(Equal(http.StatusUnauthorized))
				g.Expect(p.message).NotTo(ContainSubstring("one two"))
			}
			g.Expect(asked.Load()).To(Equal(c.asked), "a refusal is not remembered")
		})
	}
}

func TestAnAPIServerThatDoesNotAnswerIsNoRefusal(t *testing.T) {
	g := NewWithT(t)
	b := reviewed(t, func(client.Object) error { return errAway })
	_, p := b.users.user(t.Context(), bearing("Bearer one"))
	g.Expect(p.status).To(Equal(http.StatusServiceUnavailable))
	g.Expect(p.after).To(BeNumerically(">", 0))
	g.Expect(p.cause).To(MatchError(errAway))
	p = b.rights.mayCreate(t.Context(), user{}, "ns", "jobruns")
	g.Expect(p.status).To(Equal(http.StatusServiceUnavailable))
}

func TestARightIsThatOfOneUserToOneResourceInOneNamespace(t *testing.T) {
	g := NewWithT(t)
	var questions []authorizationv1.SubjectAccessReviewSpec
	b := reviewed(t, func(o client.Object) error {
		review := o.(*authorizationv1.SubjectAccessReview)
		questions = append(questions, review.Spec)
		review.Status.Allowed = review.Spec.ResourceAttributes.Namespace == "ns"
		return nil
	})
	ada := user{Username: "ada", UID: "1", Groups: []string{"staff"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}}}
	for range 2 {
		g.Expect(b.rights.mayCreate(t.Context(), ada, "ns", "jobruns")).To(BeNil())
	}
	g.Expect(questions).To(HaveLen(1))
	g.Expect(questions[0]).To(Equal(authorizationv1.SubjectAccessReviewSpec{
		User: "ada", UID: "1", Groups: []string{"staff"}, Extra: map[string]authorizationv1.ExtraValue{"k": {"v"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: "ns", Verb: "create", Group: "batch.reprise.dev", Version: "v1alpha1", Resource: "jobruns",
		},
	}))
	lessened := ada
	lessened.Groups = nil
	g.Expect(b.rights.mayCreate(t.Context(), lessened, "ns", "jobruns")).To(BeNil())
	g.Expect(b.rights.mayCreate(t.Context(), ada, "ns", "directreservations")).To(BeNil())
	g.Expect(b.rights.mayCreate(t.Context(), ada, "other", "jobruns").status).To(Equal(http.StatusForbidden))
	g.Expect(b.rights.mayCreate(t.Context(), ada, "other", "jobruns").status).To(Equal(http.StatusForbidden))
	g.Expect(questions).To(HaveLen(5), "a refusal is not remembered")
}

func TestOneQuestionIsAskedOnceHoweverManyWait(t *testing.T) {
	g := NewWithT(t)
	var asked atomic.Int32
	begun, go_ := make(chan struct{}), make(chan struct{})
	answer := knows(&asked, audience)
	b := reviewed(t, func(o client.Object) error {
		close(begun)
		<-go_
		return answer(o)
	})
	leaving, leave := context.WithCancel(t.Context())
	first := make(chan *problem, 1)
	go func() {
		_, p := b.users.user(leaving, bearing("Bearer one"))
		first <- p
	}()
	<-begun
	leave()
	g.Expect(await(t, "the end of the first", first).cause).To(MatchError(context.Canceled))
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			_, p := b.users.user(t.Context(), bearing("Bearer one"))
			g.Expect(p).To(BeNil())
		})
	}
	close(go_)
	all.Wait()
	g.Expect(asked.Load()).To(Equal(int32(1)))
}

func TestTooManyQuestionsAtOnceAreNotAsked(t *testing.T) {
	g := NewWithT(t)
	var atOnce atomic.Int32
	go_ := make(chan struct{})
	r := newReviews[int](newBench(t).clock, timing{call: 50 * time.Millisecond, remember: time.Second})
	errs := make(chan error, maxReviews+1)
	for i := range maxReviews + 1 {
		go func() {
			_, err := r.answer(t.Context(), digest{byte(i)}, func(context.Context) (int, error) {
				atOnce.Add(1)
				<-go_
				return i, nil
			})
			errs <- err
		}()
	}
	g.Expect(errors.Is(await(t, "the refusal of one", errs), errBusy)).To(BeTrue())
	g.Expect(atOnce.Load()).To(Equal(int32(maxReviews)))
	close(go_)
	for range maxReviews {
		g.Expect(await(t, "an answer", errs)).To(Succeed())
	}
}

func TestAMemoryIsBounded(t *testing.T) {
	g := NewWithT(t)
	m := &memory[int]{clock: newBench(t).clock, last: time.Second, limit: 10}
	for i := range 1000 {
		m.put(digest{byte(i), byte(i >> 8)}, i)
		g.Expect(len(m.young) + len(m.old)).To(BeNumerically("<=", 20))
	}
	for i := 990; i < 1000; i++ {
		v, ok := m.get(digest{byte(i), byte(i >> 8)})
		g.Expect(ok).To(BeTrue())
		g.Expect(v).To(Equal(i))
	}
	_, ok := m.get(digest{})
	g.Expect(ok).To(BeFalse())
}
