// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	svix "github.com/svix/svix-webhooks/go"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// written is a signing key as a Secret has it.
func written(b byte) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(b), 32)))
}

func secret(name, key, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Data: map[string][]byte{key: []byte(value)}}
}

// signing has the receivers of the queue sign with those keys, given as secret/key.
func signing(queue *batchv1alpha1.JobQueue, refs ...string) *batchv1alpha1.JobQueue {
	var keys []batchv1alpha1.SecretKeyRef
	for _, ref := range refs {
		name, key, _ := strings.Cut(ref, "/")
		keys = append(keys, batchv1alpha1.SecretKeyRef{Name: name, Key: key})
	}
	for i := range queue.Spec.Notifications.Receivers {
		queue.Spec.Notifications.Receivers[i].SigningKeys = keys
	}
	return queue
}

// verifying is a receiver that takes only what is signed with that key, by the time of its own clock.
func verifying(t *testing.T, secret string) (url string) {
	t.Helper()
	hook, err := svix.NewWebhook(secret)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if err := hook.Verify(body, r.Header); err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestEveryKeyOfTheReceiverSignsWhileOneIsReplaced(t *testing.T) {
	g := NewWithT(t)
	queue := signing(queueNaming("old", verifying(t, written('o')), "new", verifying(t, written('n'))), "hook/new", "hook/old", "hook/new")
	keys := secret("hook", "new", written('n'))
	keys.Data["old"] = []byte(written('o') + "\n")
	b := start(t, newAPI(queue, keys, failedRun("nightly", queue)), interceptor.Funcs{})
	b.see("nightly")
	b.settle("nightly")
	for _, receiver := range []string{"old", "new"} {
		g.Expect(b.announcement("nightly", receiver).State).To(Equal(batchv1alpha1.AnnouncementDelivered))
	}
	g.Expect(b.notes.read()).To(BeEmpty())
}

func TestWithoutItsKeyNothingIsSentUntilAPersonHasPutItRight(t *testing.T) {
	cases := map[string]struct {
		there []client.Object
		want  string
	}{
		"no secret":       {nil, `secret "hook" does not exist`},
		"no key in it":    {[]client.Object{secret("hook", "other", "hidden")}, `secret "hook" has no key "key"`},
		"no signing key":  {[]client.Object{secret("hook", "key", "hidden")}, `key "key" of secret "hook" does not begin with whsec_`},
		"not in base64":   {[]client.Object{secret("hook", "key", "whsec_hidden!")}, `key "key" of secret "hook" is not in base64 after whsec_`},
		"far too short":   {[]client.Object{secret("hook", "key", "whsec_aGlkZGVu")}, `key "key" of secret "hook" is a key of 6 bytes, and has to be one of 24 to 64`},
		"another is fine": {[]client.Object{secret("fine", "key", written('k'))}, `secret "hook" does not exist`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			queue := signing(queueNaming("ops", verifying(t, written('k'))), "fine/key", "hook/key")
			if len(c.there) == 0 || c.there[0].GetName() != "fine" {
				c.there = append(c.there, secret("fine", "key", written('f')))
			}
			b := start(t, newAPI(append(c.there, queue, failedRun("nightly", queue))...), interceptor.Funcs{})
			b.see("nightly")
			b.step()
			for n := 1; n <= 3; n++ {
				result := b.step()
				a := b.announcement("nightly", "ops")
				g.Expect(a.State).To(Equal(batchv1alpha1.AnnouncementOwed))
				g.Expect(a.Attempts).To(BeEquivalentTo(n))
				g.Expect(a.Message).To(Equal("not sent, since it could not be signed: " + c.want))
				b.clock.SetTime(b.clock.Now().Add(result.RequeueAfter))
				b.see("nightly")
				b.step()
			}
			g.Expect(b.notes.read()).To(Equal([]string{
				"Warning AnnouncementNotSigned nightly: job.run.failed is not announced to receiver ops until this is put right: not sent, since it could not be signed: " + c.want,
			}), "it is told once")

			g.Expect(client.IgnoreNotFound(b.api.Delete(t.Context(), secret("hook", "", "")))).To(Succeed())
			g.Expect(b.api.Create(t.Context(), secret("hook", "key", written('k')))).To(Succeed())
			b.clock.SetTime(b.clock.Now().Add(b.step().RequeueAfter))
			b.see("nightly")
			b.settle("nightly")
			g.Expect(b.announcement("nightly", "ops").State).To(Equal(batchv1alpha1.AnnouncementDelivered))
		})
	}
}

func TestAKeyThatCannotBeReadIsAFailedAttemptThatSaysWhy(t *testing.T) {
	for want, problem := range map[string]error{
		`the manager may not read secret "hook"`:        apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "hook", errors.New("no")),
		`secret "hook" cannot be read: the API is away`: errors.New("the API is away"),
	} {
		t.Run(want, func(t *testing.T) {
			g := NewWithT(t)
			queue := signing(queueNaming("ops", "http://unused.test"), "hook/key")
			b := start(t, newAPI(queue, failedRun("nightly", queue)), interceptor.Funcs{})
			b.r.Live = interceptor.NewClient(b.api, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return problem
			}})
			b.see("nightly")
			b.step()
			b.step()
			g.Expect(b.announcement("nightly", "ops").Message).To(Equal("not sent, since it could not be signed: " + want))
			g.Expect(b.notes.read()).To(HaveLen(1))
		})
	}
}
