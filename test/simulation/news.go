// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/invariant"
)

// Who is told of ends, what receivers do, and what users do about it.

// ofSchedules is before the name of a receiver that a ScheduledJob names, in its address. Those of queues have the same names.
const ofSchedules = "schedules-"

// keySecret holds the key that announcements of queue "two" are signed with.
const keySecret = "signing"

// queues makes the queues: one with a limit of 1, one of 2 with types and a resource, whose announcements are signed, and receivers
// for each.
func (s *sim) queues() {
	s.bringKey()
	s.create(&batchv1alpha1.JobQueue{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"},
		Spec: batchv1alpha1.JobQueueSpec{
			Concurrency:   &batchv1alpha1.QueueConcurrency{Limit: ptr.To[int32](1)},
			Notifications: &batchv1alpha1.Notifications{Receivers: []batchv1alpha1.NotificationReceiver{listener("ops")}},
		},
	})
	s.create(&batchv1alpha1.JobQueue{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "two"},
		Spec: batchv1alpha1.JobQueueSpec{
			Notifications: receiversOfTwo(),
			Concurrency: &batchv1alpha1.QueueConcurrency{
				Limit: ptr.To[int32](2), Types: []batchv1alpha1.TypeConcurrency{{Name: "story", Limit: ptr.To[int32](1)}},
				Resources: []batchv1alpha1.QueueResource{{Name: "gpu", Capacity: 1}},
			},
		},
	})
}

// receiversOfTwo are those of queue "two".
func receiversOfTwo() *batchv1alpha1.Notifications {
	all, alarm := listener("ops"), listener("alarm", batchv1alpha1.EventRunFailed, batchv1alpha1.EventRunPermanentlyFailed, batchv1alpha1.EventGroupFailed)
	all.SigningKeys = []batchv1alpha1.SecretKeyRef{{Name: keySecret, Key: "key"}}
	return &batchv1alpha1.Notifications{Receivers: []batchv1alpha1.NotificationReceiver{all, alarm}}
}

func listener(name string, events ...batchv1alpha1.EventType) batchv1alpha1.NotificationReceiver {
	return batchv1alpha1.NotificationReceiver{Name: name, URL: "http://" + receiverHost + "/" + name, Events: events}
}

// toldOf are the receivers of a ScheduledJob.
func (s *sim) toldOf(c chance) *batchv1alpha1.Notifications {
	r := listener("ops", pick(c.of("events"), nil, []batchv1alpha1.EventType{batchv1alpha1.EventRunCompleted, batchv1alpha1.EventGroupCompleted})...)
	r.URL = "http://" + receiverHost + "/" + ofSchedules + "ops"
	return &batchv1alpha1.Notifications{Receivers: []batchv1alpha1.NotificationReceiver{r}}
}

func (s *sim) bringKey() {
	key := "whsec_" + base64.StdEncoding.EncodeToString([]byte("twenty-four bytes or more"))
	err := s.direct.Create(context.Background(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: keySecret}, Data: map[string][]byte{"key": []byte(key)},
	})
	s.trace("a user brings the key: %s", s.result(err))
}

// meddleWithNews does something to what is told, and to whom.
func (s *sim) meddleWithNews(w wish, c chance) {
	switch w.What {
	case "resend":
		ask := map[string]string{batchv1alpha1.AnnotationResend: strconv.Itoa(w.N)}
		if c.of("kind").hits(0.8) {
			change(s, c, &batchv1alpha1.JobRunList{}, func(r *batchv1alpha1.JobRun) bool { return r.Status.Phase.Terminal() }, func(r *batchv1alpha1.JobRun) { r.Annotations = ask })
		} else {
			change(s, c, &batchv1alpha1.JobGroupList{}, func(g *batchv1alpha1.JobGroup) bool { return g.Status.Phase.Terminal() }, func(g *batchv1alpha1.JobGroup) { g.Annotations = ask })
		}
	case "silence":
		s.tell(nil)
		s.after(c.of("back").between(time.Second, 30*time.Second), "receivers are back", func() { s.tell(receiversOfTwo()) })
	case "lose key":
		err := s.direct.Delete(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: keySecret}})
		s.trace("a user loses the key: %s", s.result(err))
		s.after(c.of("back").between(time.Second, 30*time.Second), "the key is back", s.bringKey)
	}
}

// tell has queue "two" name these receivers.
func (s *sim) tell(n *batchv1alpha1.Notifications) {
	q := &batchv1alpha1.JobQueue{}
	if s.direct.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: "two"}, q) != nil {
		return
	}
	q.Spec.Notifications = n
	s.trace("a user edits the receivers of queue two: %s", s.result(s.direct.Update(context.Background(), q)))
	s.changed()
}

// receive is what a receiver of announcements does.
func (s *sim) receive(r *request, c chance) {
	code := http.StatusNoContent
	switch {
	case s.calm.Load():
	case c.of("refuses").hits(0.2):
		code = http.StatusServiceUnavailable
	case c.of("wants no more").hits(0.05):
		code = http.StatusGone
	}
	var e struct {
		Type string `json:"type"`
		Data struct {
			UID  types.UID `json:"uid"`
			Name string    `json:"name"`
		} `json:"data"`
	}
	if err := json.Unmarshal(r.web.body, &e); err != nil {
		s.trace("the receiver cannot read an announcement: %v", err)
	}
	name, schedules := strings.CutPrefix(strings.TrimPrefix(r.web.request.URL.Path, "/"), ofSchedules)
	s.history.Announcements = append(s.history.Announcements, invariant.Announcement{
		At: s.now(), Receiver: name, ScheduledJob: schedules, UID: e.Data.UID, Event: e.Type, Accepted: code < 300, Gone: code == http.StatusGone,
	})
	s.trace("receiver %s is told %s of %s: %d", name, e.Type, e.Data.Name, code)
	if !s.calm.Load() && c.of("hangs").hits(0.05) {
		return
	}
	s.respond(r, code)
}
