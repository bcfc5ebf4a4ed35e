// SPDX-License-Identifier: Apache-2.0

package httpwork

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestAHeaderTakesItsValueFromASecretAtTheTimeOfTheCall(t *testing.T) {
	url, calls := recorder(t)
	b := newBench(t, loopback)
	b.secrets.data["token"] = map[string][]byte{"value": []byte("Bearer one\n"), "team": []byte("blue")}
	work := batchv1alpha1.HTTPWork{URL: url, Headers: []batchv1alpha1.HTTPHeader{fromSecret("Authorization", "token", "value"), fromSecret("X-Team", "token", "team")}}
	b.outcome(claimed("first", work))
	if h := (<-calls).header; h.Get("Authorization") != "Bearer one" || h.Get("X-Team") != "blue" || b.secrets.reads != 1 {
		t.Errorf("%v after %d reads", h, b.secrets.reads)
	}
	b.secrets.data["token"] = map[string][]byte{"value": []byte("Bearer two"), "team": nil}
	b.outcome(claimed("second", work))
	if h := (<-calls).header; h.Get("Authorization") != "Bearer two" {
		t.Errorf("%v", h)
	}
}

func TestWhatIsWrongWithTheHeadersFailsTheRunBeforeTheCall(t *testing.T) {
	var calls atomic.Int32
	s := serve(t, func(http.ResponseWriter, *http.Request) { calls.Add(1) })
	for name, c := range map[string]struct {
		header          batchv1alpha1.HTTPHeader
		reading         error
		reason, message string
	}{
		"a missing Secret": {
			fromSecret("Authorization", "nowhere", "value"), nil,
			batchv1alpha1.ReasonSecretNotFound, `secret "nowhere" does not exist`,
		},
		"a missing key": {
			fromSecret("Authorization", "token", "other"), nil,
			batchv1alpha1.ReasonSecretNotFound, `secret "token" has no key "other", which header Authorization needs`,
		},
		"a Secret that may not be read": {
			fromSecret("Authorization", "token", "value"), apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "token", errors.New("no")),
			batchv1alpha1.ReasonSecretNotFound, `the manager may not read secret "token"`,
		},
		"a line end within the value of a Secret": {
			fromSecret("Authorization", "token", "broken"), nil,
			batchv1alpha1.ReasonInvalidWork, "the value of header Authorization holds characters that are not allowed in a header",
		},
		"a control character in a value": {
			inClear("X-A", "a\x01b")[0], nil,
			batchv1alpha1.ReasonInvalidWork, "the value of header X-A holds characters that are not allowed in a header",
		},
		"a name that is none": {
			inClear("X A", "a")[0], nil,
			batchv1alpha1.ReasonInvalidWork, `"X A" is not a valid name of a header`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, loopback)
			b.secrets.data["token"] = map[string][]byte{"value": []byte("hunter2"), "broken": []byte("hunter2\r\nX-Evil: 1")}
			b.secrets.err = c.reading
			o := b.outcome(claimed("a", batchv1alpha1.HTTPWork{URL: s.URL, Headers: []batchv1alpha1.HTTPHeader{c.header}}))
			want(t, o, batchv1alpha1.JobRunFailed, c.reason, c.message)
		})
	}
	if calls.Load() != 0 {
		t.Errorf("%d calls", calls.Load())
	}
}

func TestACallWaitsForAnAPIServerThatDoesNotAnswer(t *testing.T) {
	url, calls := recorder(t)
	b := newBench(t, loopback)
	b.secrets.data["token"] = map[string][]byte{"value": []byte("x")}
	b.secrets.asked = make(chan struct{}, 16)
	b.secrets.fail(errors.New("connection refused"))
	r := claimed("a", batchv1alpha1.HTTPWork{URL: url, Headers: []batchv1alpha1.HTTPHeader{fromSecret("Authorization", "token", "value")}})
	b.start(r)
	await(t, "reading the Secret", b.secrets.asked)
	b.tick(1)
	await(t, "reading the Secret again", b.secrets.asked)
	b.secrets.fail(nil)
	b.tick(1)
	b.awaitEnd(r)
	want(t, b.result(r), batchv1alpha1.JobRunCompleted, batchv1alpha1.ReasonSucceeded, "server answered 200 OK")
	if len(calls) != 1 {
		t.Errorf("%d calls", len(calls))
	}
}

func TestNoCallIsMadeWhileTheManagerIsNotSureToLead(t *testing.T) {
	url, calls := recorder(t)
	b := newBench(t, loopback)
	b.leader.set(true)
	b.leader.asked = make(chan struct{}, 16)
	late, renewed := claimed("late", batchv1alpha1.HTTPWork{URL: url}), claimed("renewed", batchv1alpha1.HTTPWork{URL: url})
	late.Status.Deadline = &metav1.Time{Time: start.Add(2 * time.Second)}

	b.start(late)
	await(t, "asking for the lease", b.leader.asked)
	b.eventually("a wait", func() bool { return b.clock.Waiters() > 1 })
	b.clock.Step(2 * time.Second)
	b.awaitEnd(late)
	want(t, b.result(late), batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonTimeout, "no call was made: its time was over (the lease is over)")

	b.start(renewed)
	await(t, "asking for the lease", b.leader.asked)
	b.leader.set(false)
	b.tick(1)
	b.awaitEnd(renewed)
	want(t, b.result(renewed), batchv1alpha1.JobRunCompleted, batchv1alpha1.ReasonSucceeded, "server answered 200 OK")
	if got := <-calls; got.header.Get(HeaderRun) != "shop/renewed" || len(calls) != 0 {
		t.Errorf("%+v and %d more", got, len(calls))
	}
}

func TestACallEndsWithTheLease(t *testing.T) {
	s, reached := silent(t)
	b := newBench(t, loopback)
	r := claimed("a", batchv1alpha1.HTTPWork{URL: s.URL})
	b.start(r)
	request := await(t, "the call", reached)
	b.leader.lose()
	b.awaitEnd(r)
	want(t, b.result(r), batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonManagerShutdown,
		"the call was aborted, since the manager could not be sure to lead any more")
	await(t, "the end of the request at the server", request.Context().Done())
}

func TestAServerThatNeverAnswersTimesOut(t *testing.T) {
	s, reached := silent(t)
	for name, c := range map[string]struct {
		seconds  *int64
		deadline *metav1.Time
		after    time.Duration
	}{
		"after the timeout of the run":      {ptr.To[int64](3), nil, 3 * time.Second},
		"after the default of the manager":  {nil, nil, 10 * time.Minute},
		"at the deadline that is on record": {ptr.To[int64](3), &metav1.Time{Time: start.Add(time.Minute)}, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, loopback)
			r := claimed("a", batchv1alpha1.HTTPWork{URL: s.URL})
			r.Spec.TimeoutSeconds, r.Status.Deadline = c.seconds, c.deadline
			b.start(r)
			request := await(t, "the call", reached)
			b.clock.Step(c.after - time.Nanosecond)
			if !b.clock.HasWaiters() {
				t.Error("it timed out early")
			}
			b.clock.Step(time.Nanosecond)
			b.awaitEnd(r)
			want(t, b.result(r), batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonTimeout, "the call was aborted: its time was over")
			await(t, "the end of the request at the server", request.Context().Done())
		})
	}
}

func TestAServerThatNeverEndsItsBodyTimesOut(t *testing.T) {
	reached := make(chan struct{}, 1)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "working")
		_ = http.NewResponseController(w).Flush()
		reached <- struct{}{}
		<-r.Context().Done()
	})
	b := newBench(t, loopback)
	r := claimed("a", batchv1alpha1.HTTPWork{URL: s.URL})
	b.start(r)
	await(t, "the call", reached)
	b.clock.Step(10 * time.Minute)
	b.awaitEnd(r)
	o := b.result(r)
	// The deadline may strike before the beginning of the response has come through.
	if o.Phase != batchv1alpha1.JobRunFailed || o.Reason != batchv1alpha1.ReasonTimeout || !strings.HasSuffix(o.Message, "the call was aborted: its time was over") {
		t.Errorf("%s/%s %q", o.Phase, o.Reason, o.Message)
	}
}

func TestACallWhoseTimeIsOverIsNotMade(t *testing.T) {
	url, calls := recorder(t)
	b := newBench(t, loopback)
	r := claimed("a", batchv1alpha1.HTTPWork{URL: url})
	r.Status.Deadline = &metav1.Time{Time: start}
	want(t, b.outcome(r), batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonTimeout, "no call was made: its time was over before it began")
	if len(calls) != 0 {
		t.Errorf("%d calls", len(calls))
	}
}

func TestAClosedPortFailsTheRun(t *testing.T) {
	o := newBench(t, loopback).outcome(claimed("a", batchv1alpha1.HTTPWork{URL: "http://" + closedPort(t) + "/hook?token=hunter2"}))
	if o.Phase != batchv1alpha1.JobRunFailed || o.Reason != batchv1alpha1.ReasonConnectionFailed || !strings.Contains(o.Message, "connection refused") {
		t.Errorf("%s/%s %q", o.Phase, o.Reason, o.Message)
	}
}

func TestABadCertificateFailsTheRun(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = nil
	s.StartTLS()
	defer s.Close()
	o := newBench(t, loopback).outcome(claimed("a", batchv1alpha1.HTTPWork{URL: s.URL}))
	if o.Reason != batchv1alpha1.ReasonConnectionFailed || !strings.Contains(o.Message, "certificate") {
		t.Errorf("%s/%s %q", o.Phase, o.Reason, o.Message)
	}
}

func TestAForbiddenAddressFailsTheRun(t *testing.T) {
	closed := closedPort(t)
	_, port, err := net.SplitHostPort(closed)
	if err != nil {
		t.Fatal(err)
	}
	const rest = "address, which the manager does not call unless its flag --allow-outgoing-cidr allows it"
	for url, message := range map[string]string{
		"http://169.254.169.254/latest/?token=hunter2": "169.254.169.254 is a link-local " + rest,
		"http://[::ffff:169.254.169.254]/":             "::ffff:169.254.169.254 resolves to 169.254.169.254, which is a link-local " + rest,
		"http://[fe80::1]/":                            "fe80::1 is a link-local " + rest,
		"http://" + closed:                             "127.0.0.1 is a loopback " + rest,
		"http://localhost:" + port:                     "localhost resolves to ",
	} {
		o := newBench(t, nil).outcome(claimed("a", batchv1alpha1.HTTPWork{URL: url}))
		if o.Phase != batchv1alpha1.JobRunFailed || o.Reason != batchv1alpha1.ReasonAddressForbidden || !strings.HasPrefix(o.Message, message) {
			t.Errorf("%s: %s/%s %q", url, o.Phase, o.Reason, o.Message)
		}
	}
}

func TestARedirectToALinkLocalAddressIsNotFollowed(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/", http.StatusFound)
	})
	o := newBench(t, loopback).outcome(claimed("a", batchv1alpha1.HTTPWork{URL: s.URL}))
	want(t, o, batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonWorkFailed, "server answered 302 Found")
}

func TestAnAddressThatIsNoneFailsTheRun(t *testing.T) {
	for _, url := range []string{
		"http://127.0.0.1:port/?token=hunter2", "http://[::1", "/relative?token=hunter2", "ftp://127.0.0.1/", "http:///path",
		"http://user:hunter2@127.0.0.1/", "http://127.0.0.1/%zz?token=hunter2",
	} {
		o := newBench(t, loopback).outcome(claimed("a", batchv1alpha1.HTTPWork{URL: url}))
		if o.Phase != batchv1alpha1.JobRunFailed || o.Reason != batchv1alpha1.ReasonInvalidWork || strings.Contains(o.Message, "hunter2") {
			t.Errorf("%s: %s/%s %q", url, o.Phase, o.Reason, o.Message)
		}
	}
}

func TestTextsQuoteNoSecret(t *testing.T) {
	garbage := listen(t)
	done := make(chan struct{})
	t.Cleanup(func() { _ = garbage.Close(); <-done })
	go func() {
		defer close(done)
		for {
			c, err := garbage.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1024))
			_, _ = io.WriteString(c, "what?\x1b[2J\r\n\r\n")
			_ = c.Close()
		}
	}()
	unresolved(t)
	for _, host := range []string{closedPort(t), "no-such-host.invalid:80", garbage.Addr().String()} {
		b := newBench(t, loopback)
		b.secrets.data["token"] = map[string][]byte{"value": []byte("hunter2")}
		o := b.outcome(claimed("a", batchv1alpha1.HTTPWork{
			URL:     "http://" + host + "/path-hunter2?token=hunter2#hunter2",
			Headers: []batchv1alpha1.HTTPHeader{fromSecret("Authorization", "token", "value")},
		}))
		if o.Reason != batchv1alpha1.ReasonConnectionFailed || strings.Contains(o.Message, "hunter2") || strings.Contains(o.Message, "\x1b") {
			t.Errorf("%s: %s %q", host, o.Reason, o.Message)
		}
	}
}

func TestANameThatDoesNotResolveFailsTheRun(t *testing.T) {
	unresolved(t)
	o := newBench(t, loopback).outcome(claimed("a", batchv1alpha1.HTTPWork{URL: "http://no-such-host.invalid/?token=hunter2"}))
	if o.Reason != batchv1alpha1.ReasonConnectionFailed || !strings.HasPrefix(o.Message, "call to no-such-host.invalid failed: dial tcp: lookup no-such-host.invalid") {
		t.Errorf("%s %q", o.Reason, o.Message)
	}
}

// unresolved makes every name server unreachable.
func unresolved(t *testing.T) {
	system := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = system })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no name server")
	}}
}

// closedPort returns an address at which nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l := listen(t)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func fromSecret(header, secret, key string) batchv1alpha1.HTTPHeader {
	return batchv1alpha1.HTTPHeader{Name: header, SecretKeyRef: &batchv1alpha1.SecretKeyRef{Name: secret, Key: key}}
}
